/* DescribeTransactions (65): what is on record about some transactional ids. */
#include "kafka/errors.h"
#include "kafka/handlers.h"

#include "broker/transactions.h"

typedef struct kafka_describe_transactions_response_transaction_state described;
typedef struct kafka_describe_transactions_response_topic described_topic;

static bool same_topic(const struct transaction_partition *a, const struct transaction_partition *b)
{
    return kafka_slice_equal(a->topic, b->topic);
}

/* The set is ascending by topic: one entry a run. Copied, the table may change before the answer is
 * out. */
static void describe_topics(struct kafka_request *request, const struct transaction_value *value,
                            described *out)
{
    const struct transaction_partitions *set = &value->partitions;
    described_topic *topics =
        kafka_describe_transactions_response_topic_new(&request->arena, (int32_t)set->count);
    int32_t *indexes = arena_new_array(&request->arena, set->count, sizeof(*indexes));
    if (request->arena.failed) return;
    out->topics.items = topics;
    for (uint32_t i = 0; i < set->count; i++) {
        bool begins = i == 0 || !same_topic(&set->items[i - 1], &set->items[i]);
        described_topic *topic = &topics[out->topics.count - (begins ? 0 : 1)];
        if (begins) {
            out->topics.count++;
            topic->topic = arena_copy(&request->arena, set->items[i].topic);
            topic->partitions.items = &indexes[i];
            topic->partitions.count = 0;
        }
        indexes[i] = set->items[i].partition;
        topic->partitions.count++;
    }
}

static void describe(struct kafka_request *request, struct slice id, described *out)
{
    struct broker *broker = kafka_request_broker(request);
    out->transactional_id = id;
    out->transaction_state = kafka_text("");
    enum status status = broker_check_serving(broker);
    const struct transaction_value *value =
        status == STATUS_OK ? broker_describe_transaction(broker, id) : NULL;
    if (status == STATUS_OK && value == NULL) status = STATUS_TXN_NOT_FOUND;
    out->error_code = id.bytes == 0 ? KAFKA_INVALID_REQUEST : kafka_request_error(request, status);
    if (value == NULL) return;
    out->transaction_state = kafka_text(transaction_status_name(value->status));
    out->transaction_timeout_ms = value->timeout_ms;
    out->transaction_start_time_ms = value->start_ms;
    out->producer_id = value->producer_id;
    out->producer_epoch = value->producer_epoch;
    describe_topics(request, value, out);
}

void describe_transactions_handle(struct kafka_request *request)
{
    const struct kafka_describe_transactions_request *message =
        KAFKA_MESSAGE(request, describe_transactions);
    struct kafka_describe_transactions_response *answer =
        KAFKA_ANSWER(request, describe_transactions);
    int32_t count = message->transactional_ids.count;
    struct seen seen;
    kafka_request_seen(request, &seen, (size_t)count);
    described *entries =
        kafka_describe_transactions_response_transaction_state_new(&request->arena, count);
    answer->transaction_states.items = entries;
    for (int32_t i = 0; i < count && !request->arena.failed; i++) {
        struct slice id = message->transactional_ids.items[i];
        if (seen_before(&seen, id, 0)) continue;
        describe(request, id, &entries[answer->transaction_states.count++]);
    }
    kafka_finish(request);
}
