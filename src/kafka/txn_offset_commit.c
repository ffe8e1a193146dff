/* TxnOffsetCommit (28): offsets that count when the transaction commits (sections 7.4 and 8.1).
 *
 * They go into the group's partition of `__consumer_offsets` as part of the transaction, which
 * clients up to version 4 announced with AddOffsetsToTxn; from version 5 on this adds it.     */
#include "kafka/errors.h"
#include "kafka/handlers.h"

#define VERSION_ABORTABLE   4
#define VERSION_TRANSACTION 5

struct commit_state {
    struct offsets_request offsets;
    struct kafka_txn_offset_commit_response_partition **answers; /* one for each of the offsets */
};

static bool lay_out_answer(struct kafka_request *request, int16_t error)
{
    const struct kafka_txn_offset_commit_request *message =
        KAFKA_MESSAGE(request, txn_offset_commit);
    struct kafka_txn_offset_commit_response *answer = KAFKA_ANSWER(request, txn_offset_commit);
    int32_t topics = message->topics.count;
    answer->topics.items = kafka_txn_offset_commit_response_topic_new(&request->arena, topics);
    for (int32_t i = 0; i < topics && !request->arena.failed; i++) {
        const struct kafka_txn_offset_commit_request_topic *in = &message->topics.items[i];
        struct kafka_txn_offset_commit_response_topic *out = &answer->topics.items[i];
        out->name = in->name;
        out->partitions.items =
            kafka_txn_offset_commit_response_partition_new(&request->arena, in->partitions.count);
        if (out->partitions.items == NULL) return false;
        out->partitions.count = in->partitions.count;
        for (int32_t k = 0; k < in->partitions.count; k++) {
            out->partitions.items[k].partition_index = in->partitions.items[k].partition_index;
            out->partitions.items[k].error_code = error;
        }
    }
    answer->topics.count = topics;
    return !request->arena.failed;
}

static void committed(void *context, struct offsets_request *offsets)
{
    struct kafka_request *request = context;
    struct commit_state *state = request->state;
    for (uint32_t i = 0; i < offsets->offset_count; i++) {
        enum status status = offsets->status;
        if (status == STATUS_OK) status = offsets->offsets[i].status;
        state->answers[i]->error_code = kafka_request_error(request, status);
    }
    kafka_finish(request);
}

static void add_offset(struct commit_state *state, struct slice name,
                       const struct kafka_txn_offset_commit_request_partition *in,
                       struct kafka_txn_offset_commit_response_partition *out)
{
    uint32_t at = state->offsets.offset_count++;
    state->answers[at] = out;
    state->offsets.offsets[at] = (struct committed_offset){
        .topic = name,
        .partition = in->partition_index,
        .offset = in->committed_offset,
        .leader_epoch = in->committed_leader_epoch,
        .metadata = in->committed_metadata.data != NULL ? in->committed_metadata : kafka_text(""),
    };
}

static void add_offsets(struct kafka_request *request)
{
    const struct kafka_txn_offset_commit_request *message =
        KAFKA_MESSAGE(request, txn_offset_commit);
    struct kafka_txn_offset_commit_response *answer = KAFKA_ANSWER(request, txn_offset_commit);
    for (int32_t i = 0; i < message->topics.count; i++) {
        const struct kafka_txn_offset_commit_request_topic *in = &message->topics.items[i];
        for (int32_t k = 0; k < in->partitions.count; k++) {
            add_offset(request->state, in->name, &in->partitions.items[k],
                       &answer->topics.items[i].partitions.items[k]);
        }
    }
}

static bool make_room(struct kafka_request *request)
{
    const struct kafka_txn_offset_commit_request *message =
        KAFKA_MESSAGE(request, txn_offset_commit);
    size_t count = 0;
    for (int32_t i = 0; i < message->topics.count; i++)
        count += (size_t)message->topics.items[i].partitions.count;
    struct commit_state *state = arena_new(&request->arena, sizeof(*state));
    if (state == NULL) return false;
    state->answers = arena_new_array(&request->arena, count, sizeof(*state->answers));
    state->offsets.offsets =
        arena_new_array(&request->arena, count, sizeof(*state->offsets.offsets));
    request->state = state;
    return !request->arena.failed;
}

void txn_offset_commit_handle(struct kafka_request *request)
{
    const struct kafka_txn_offset_commit_request *message =
        KAFKA_MESSAGE(request, txn_offset_commit);
    struct broker *broker = kafka_request_broker(request);
    int16_t version = request->header.api_version;
    enum status serving = broker_check_serving(broker);
    bool named = message->group_id.bytes > 0;
    int16_t error = named ? kafka_request_error(request, serving) : KAFKA_INVALID_GROUP_ID;
    if (!lay_out_answer(request, error) || error != KAFKA_NONE || !make_room(request)) {
        kafka_finish(request);
        return;
    }
    add_offsets(request);
    struct commit_state *state = request->state;
    struct offsets_request *offsets = &state->offsets;
    if (offsets->offset_count == 0) {
        kafka_finish(request);
        return;
    }
    offsets->group = message->group_id;
    offsets->member_id = message->member_id;
    offsets->instance_id = message->group_instance_id;
    offsets->generation = message->generation_id_or_member_epoch;
    offsets->transactional = true;
    offsets->producer_id = message->producer_id;
    offsets->producer_epoch = message->producer_epoch;
    offsets->transactional_id = message->transactional_id;
    offsets->transaction_client = version >= VERSION_TRANSACTION ? TRANSACTION_CLIENT_V2
                                  : version >= VERSION_ABORTABLE ? TRANSACTION_CLIENT_ABORTABLE
                                                                 : TRANSACTION_CLIENT_OLD;
    offsets->timeout_us = broker_settings_of(broker)->ack_timeout_us;
    offsets->done = committed;
    offsets->context = request;
    broker_commit_offsets(broker, offsets);
}
