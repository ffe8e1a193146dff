/* WriteTxnMarkers (27): ends transactions on partitions, past their coordinator. Ours writes its
 * markers itself; from outside they come of an operator who ends a transaction that hangs
 * (kafka-listener.md 8.2). Answered when every marker is committed or refused. What they say is
 * kept by the partition and later markers are judged by it: so they may neither name a coordinator
 * that is yet to come, nor a producer further on than the fence of who is known.            */
#include "kafka/errors.h"
#include "kafka/handlers.h"

#define TRANSACTION_VERSION_2 2

typedef struct kafka_write_txn_markers_response_partition partition_answer;

/* One marker on its way into one partition. */
struct marker_entry {
    struct kafka_request *request;
    partition_answer *answer;
    struct partition_marker marker;
};

/* Here the fence is the coordinator's, not the partition's leader's. */
static int16_t error_of(const struct kafka_request *request, enum status status)
{
    if (status == STATUS_FENCED_EPOCH) return KAFKA_TRANSACTION_COORDINATOR_FENCED;
    return kafka_request_error(request, status);
}

static void written(void *context, struct partition_marker *marker)
{
    struct marker_entry *entry = context;
    entry->answer->error_code = error_of(entry->request, marker->status);
    kafka_part_done(entry->request);
}

/* OK with *open false: there is nothing to end. */
static int16_t check_marker(const struct kafka_request *request, const struct partition *partition,
                            const struct kafka_write_txn_markers_request_marker *in, bool *open)
{
    struct broker *broker = kafka_request_broker(request);
    enum status status = broker_check_serving(broker);
    *open = false;
    if (status != STATUS_OK) return error_of(request, status);
    if (in->coordinator_epoch > broker_group_view(broker)->epoch) {
        return KAFKA_TRANSACTION_COORDINATOR_FENCED;
    }
    const struct producer_state *state =
        producer_table_find(partition_producers(partition), in->producer_id);
    if (state == NULL || state->open_first_offset < 0) return KAFKA_NONE;
    if (in->producer_epoch < state->epoch || in->producer_epoch > state->epoch + 1) {
        return KAFKA_INVALID_PRODUCER_EPOCH;
    }
    *open = true;
    return KAFKA_NONE;
}

static void write_marker(struct kafka_request *request, const struct topic *topic,
                         const struct kafka_write_txn_markers_request_marker *in, int32_t index,
                         partition_answer *out)
{
    struct partition *partition = kafka_find_partition(topic, index);
    out->partition_index = index;
    if (partition == NULL) {
        out->error_code = KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
        return;
    }
    bool open;
    out->error_code = check_marker(request, partition, in, &open);
    if (!open) return;
    struct marker_entry *entry = arena_new(&request->arena, sizeof(*entry));
    if (entry == NULL) {
        out->error_code = KAFKA_UNKNOWN_SERVER_ERROR;
        return;
    }
    entry->request = request;
    entry->answer = out;
    entry->marker = (struct partition_marker){
        .partition = partition,
        .producer_id = in->producer_id,
        .producer_epoch = in->producer_epoch,
        .coordinator_epoch = in->coordinator_epoch,
        .commit = in->transaction_result,
        .transaction_v2 = in->transaction_version >= TRANSACTION_VERSION_2,
        .impatient = true,
        .done = written,
        .context = entry,
    };
    request->open++;
    partition_write_marker(&entry->marker);
}

/* ---- the frame of the answer: every partition asked for, in the order asked ---- */

static void lay_out_topic(struct kafka_request *request,
                          const struct kafka_write_txn_markers_request_topic *in,
                          struct kafka_write_txn_markers_response_topic *out)
{
    int32_t count = in->partition_indexes.count;
    out->name = in->name;
    out->partitions.items = kafka_write_txn_markers_response_partition_new(&request->arena, count);
    out->partitions.count = count;
}

static void lay_out_answer(struct kafka_request *request)
{
    const struct kafka_write_txn_markers_request *message =
        KAFKA_MESSAGE(request, write_txn_markers);
    struct kafka_write_txn_markers_response *answer = KAFKA_ANSWER(request, write_txn_markers);
    int32_t count = message->markers.count;
    answer->markers.items = kafka_write_txn_markers_response_marker_new(&request->arena, count);
    for (int32_t i = 0; i < count && !request->arena.failed; i++) {
        const struct kafka_write_txn_markers_request_marker *in = &message->markers.items[i];
        struct kafka_write_txn_markers_response_marker *out = &answer->markers.items[i];
        out->producer_id = in->producer_id;
        out->topics.items =
            kafka_write_txn_markers_response_topic_new(&request->arena, in->topics.count);
        for (int32_t k = 0; k < in->topics.count && !request->arena.failed; k++)
            lay_out_topic(request, &in->topics.items[k], &out->topics.items[k]);
        out->topics.count = in->topics.count;
    }
    answer->markers.count = count;
}

static void write_topic(struct kafka_request *request,
                        const struct kafka_write_txn_markers_request_marker *marker,
                        const struct kafka_write_txn_markers_request_topic *in,
                        struct kafka_write_txn_markers_response_topic *out)
{
    const struct topic *topic = kafka_find_topic(request, in->name);
    for (int32_t i = 0; i < in->partition_indexes.count; i++) {
        write_marker(request, topic, marker, in->partition_indexes.items[i],
                     &out->partitions.items[i]);
    }
}

void write_txn_markers_handle(struct kafka_request *request)
{
    const struct kafka_write_txn_markers_request *message =
        KAFKA_MESSAGE(request, write_txn_markers);
    struct kafka_write_txn_markers_response *answer = KAFKA_ANSWER(request, write_txn_markers);
    lay_out_answer(request);
    if (request->arena.failed) {
        kafka_finish(request);
        return;
    }
    request->open = 1; /* ours, until all are under way */
    for (int32_t i = 0; i < message->markers.count; i++) {
        const struct kafka_write_txn_markers_request_marker *in = &message->markers.items[i];
        for (int32_t k = 0; k < in->topics.count; k++)
            write_topic(request, in, &in->topics.items[k],
                        &answer->markers.items[i].topics.items[k]);
    }
    kafka_part_done(request);
}
