/* DescribeProducers (61): who writes to a partition, and whose transaction is open there since
 * when. With it an operator finds what keeps the last stable offset back. */
#include "kafka/errors.h"
#include "kafka/handlers.h"
#include "kafka/seen.h"

typedef struct kafka_describe_producers_response_partition partition_answer;

static void put_producers(struct kafka_request *request, const struct partition *partition,
                          partition_answer *out)
{
    const struct producer_table *table = partition_producers(partition);
    size_t count = producer_table_count(table);
    struct kafka_describe_producers_response_active_producer *item =
        kafka_describe_producers_response_active_producer_new(&request->arena, (int32_t)count);
    if (item == NULL) return;
    out->active_producers.items = item;
    out->active_producers.count = (int32_t)count;
    const struct producer_state *state = producer_table_first(table);
    for (; state != NULL; state = producer_table_next(state), item++) {
        item->producer_id = state->producer_id;
        item->producer_epoch = state->epoch;
        item->last_sequence = producer_state_last_sequence(state);
        item->last_timestamp = state->last_timestamp_ms;
        item->coordinator_epoch = state->coordinator_epoch;
        item->current_txn_start_offset = state->open_first_offset;
    }
}

static void put_partition(struct kafka_request *request, struct slice name,
                          const struct topic *topic, int32_t index, partition_answer *out)
{
    const struct partition *partition = kafka_find_partition(topic, index);
    enum status status = broker_check_serving(kafka_request_broker(request));
    out->partition_index = index;
    out->error_message = KAFKA_NULL;
    if (status == STATUS_OK && partition == NULL) status = STATUS_UNKNOWN_TOPIC;
    out->error_code = status == STATUS_UNKNOWN_TOPIC ? kafka_no_topic(name)
                                                     : kafka_request_error(request, status);
    if (status == STATUS_OK) put_producers(request, partition, out);
}

/* Each partition once, however often it is named (rule 15). */
static void put_topic(struct kafka_request *request, struct seen *seen,
                      const struct kafka_describe_producers_request_topic *in,
                      struct kafka_describe_producers_response_topic *out)
{
    const struct topic *topic = kafka_find_topic(request, in->name);
    int32_t count = in->partition_indexes.count;
    out->name = in->name;
    out->partitions.items = kafka_describe_producers_response_partition_new(&request->arena, count);
    for (int32_t i = 0; i < count && !request->arena.failed; i++) {
        int32_t index = in->partition_indexes.items[i];
        if (seen_before(seen, in->name, index)) continue;
        put_partition(request, in->name, topic, index,
                      &out->partitions.items[out->partitions.count++]);
    }
}

void describe_producers_handle(struct kafka_request *request)
{
    const struct kafka_describe_producers_request *message =
        KAFKA_MESSAGE(request, describe_producers);
    struct kafka_describe_producers_response *answer = KAFKA_ANSWER(request, describe_producers);
    int32_t count = message->topics.count;
    answer->topics.items = kafka_describe_producers_response_topic_new(&request->arena, count);
    size_t named = 0;
    for (int32_t i = 0; i < count; i++)
        named += (size_t)message->topics.items[i].partition_indexes.count;
    struct seen seen;
    kafka_request_seen(request, &seen, named);
    for (int32_t i = 0; i < count && !request->arena.failed; i++) {
        put_topic(request, &seen, &message->topics.items[i], &answer->topics.items[i]);
    }
    answer->topics.count = count;
    kafka_finish(request);
}
