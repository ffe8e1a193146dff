/* OffsetCommit (8): offsets that a consumer has worked through (section 7.4): a member of its
 * group, or one that assigns itself (no generation, no member). Answered when the commit is
 * replicated. */
#include "kafka/errors.h"
#include "kafka/handlers.h"

struct commit_state {
    struct offsets_request offsets;
    struct kafka_offset_commit_response_partition **answers; /* one for each of the offsets */
};

static bool lay_out_answer(struct kafka_request *request, int16_t error)
{
    const struct kafka_offset_commit_request *message = KAFKA_MESSAGE(request, offset_commit);
    struct kafka_offset_commit_response *answer = KAFKA_ANSWER(request, offset_commit);
    int32_t topics = message->topics.count;
    answer->topics.items = kafka_offset_commit_response_topic_new(&request->arena, topics);
    for (int32_t i = 0; i < topics && !request->arena.failed; i++) {
        const struct kafka_offset_commit_request_topic *in = &message->topics.items[i];
        struct kafka_offset_commit_response_topic *out = &answer->topics.items[i];
        out->name = in->name;
        out->partitions.count = in->partitions.count;
        out->partitions.items =
            kafka_offset_commit_response_partition_new(&request->arena, in->partitions.count);
        if (out->partitions.items == NULL) return false;
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

static void add_offset(struct kafka_request *request, const struct topic *topic, struct slice name,
                       const struct kafka_offset_commit_request_partition *in,
                       struct kafka_offset_commit_response_partition *out)
{
    struct commit_state *state = request->state;
    if (kafka_find_partition(topic, in->partition_index) == NULL) {
        out->error_code = KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
        return;
    }
    if (in->committed_metadata.bytes >
        broker_settings_of(kafka_request_broker(request))->offset_metadata_bytes_max) {
        out->error_code = KAFKA_OFFSET_METADATA_TOO_LARGE;
        return;
    }
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
    const struct kafka_offset_commit_request *message = KAFKA_MESSAGE(request, offset_commit);
    struct kafka_offset_commit_response *answer = KAFKA_ANSWER(request, offset_commit);
    for (int32_t i = 0; i < message->topics.count; i++) {
        const struct kafka_offset_commit_request_topic *in = &message->topics.items[i];
        const struct topic *topic = kafka_find_topic(request, in->name);
        for (int32_t k = 0; k < in->partitions.count; k++) {
            add_offset(request, topic, in->name, &in->partitions.items[k],
                       &answer->topics.items[i].partitions.items[k]);
        }
    }
}

static bool make_room(struct kafka_request *request)
{
    const struct kafka_offset_commit_request *message = KAFKA_MESSAGE(request, offset_commit);
    size_t count = 0;
    for (int32_t i = 0; i < message->topics.count; i++) {
        count += (size_t)message->topics.items[i].partitions.count;
    }
    struct commit_state *state = arena_new(&request->arena, sizeof(*state));
    if (state == NULL) return false;
    state->answers = arena_new_array(&request->arena, count, sizeof(*state->answers));
    state->offsets.offsets =
        arena_new_array(&request->arena, count, sizeof(*state->offsets.offsets));
    request->state = state;
    return !request->arena.failed;
}

void offset_commit_handle(struct kafka_request *request)
{
    const struct kafka_offset_commit_request *message = KAFKA_MESSAGE(request, offset_commit);
    struct broker *broker = kafka_request_broker(request);
    enum status serving = broker_check_serving(broker);
    int16_t error = kafka_request_error(request, serving);
    if (!lay_out_answer(request, error) || error != KAFKA_NONE || !make_room(request)) {
        kafka_finish(request);
        return;
    }
    add_offsets(request);
    struct commit_state *state = request->state;
    if (state->offsets.offset_count == 0) {
        kafka_finish(request);
        return;
    }
    state->offsets.group = message->group_id;
    state->offsets.member_id = message->member_id;
    state->offsets.instance_id = message->group_instance_id;
    state->offsets.generation = message->generation_id_or_member_epoch;
    state->offsets.timeout_us = broker_settings_of(broker)->ack_timeout_us;
    state->offsets.done = committed;
    state->offsets.context = request;
    broker_commit_offsets(broker, &state->offsets);
}
