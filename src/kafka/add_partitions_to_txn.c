/* AddPartitionsToTxn (24): the partitions that a transaction is about to write to (section 8.1).
 *
 * All or none: when one of them is unknown, the others are not attempted.                     */
#include "kafka/errors.h"
#include "kafka/handlers.h"

#include "broker/transactions.h"

static int32_t count_partitions(const struct kafka_add_partitions_to_txn_request *message)
{
    int32_t count = 0;
    for (int32_t i = 0; i < message->v3_and_below_topics.count; i++)
        count += message->v3_and_below_topics.items[i].partitions.count;
    return count;
}

static void answer_all(struct kafka_request *request, int16_t error)
{
    struct kafka_add_partitions_to_txn_response *answer =
        KAFKA_ANSWER(request, add_partitions_to_txn);
    for (int32_t i = 0; i < answer->results_by_topic_v3_and_below.count; i++) {
        struct kafka_add_partitions_to_txn_response_topic *topic =
            &answer->results_by_topic_v3_and_below.items[i];
        for (int32_t k = 0; k < topic->results_by_partition.count; k++) {
            struct kafka_add_partitions_to_txn_response_partition *partition =
                &topic->results_by_partition.items[k];
            if (partition->partition_error_code == KAFKA_NONE) {
                partition->partition_error_code = error;
            }
        }
    }
}

static void added(void *context, struct transaction_request *transaction)
{
    struct kafka_request *request = context;
    answer_all(request, kafka_request_error(request, transaction->status));
    kafka_finish(request);
}

/* A partition of an internal topic is the coordinator's own: AddOffsetsToTxn adds it. */
static int16_t takes_records(const struct topic *topic, int32_t index)
{
    if (kafka_find_partition(topic, index) == NULL) return KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
    return topic_is_internal(topic) ? KAFKA_TOPIC_AUTHORIZATION_FAILED : KAFKA_NONE;
}

/* The answer's shape, and what the coordinator is asked. False: one of them can't be. */
static bool lay_out(struct kafka_request *request, struct transaction_partition *partitions)
{
    const struct kafka_add_partitions_to_txn_request *message =
        KAFKA_MESSAGE(request, add_partitions_to_txn);
    struct kafka_add_partitions_to_txn_response *answer =
        KAFKA_ANSWER(request, add_partitions_to_txn);
    int32_t topics = message->v3_and_below_topics.count;
    bool all_known = true;
    answer->results_by_topic_v3_and_below.items =
        kafka_add_partitions_to_txn_response_topic_new(&request->arena, topics);
    for (int32_t i = 0; i < topics && !request->arena.failed; i++) {
        const struct kafka_add_partitions_to_txn_request_topic *in =
            &message->v3_and_below_topics.items[i];
        struct kafka_add_partitions_to_txn_response_topic *out =
            &answer->results_by_topic_v3_and_below.items[i];
        const struct topic *topic = kafka_find_topic(request, in->name);
        out->name = in->name;
        out->results_by_partition.items = kafka_add_partitions_to_txn_response_partition_new(
            &request->arena, in->partitions.count);
        if (request->arena.failed) return false;
        out->results_by_partition.count = in->partitions.count;
        for (int32_t k = 0; k < in->partitions.count; k++) {
            int32_t index = in->partitions.items[k];
            int16_t error = takes_records(topic, index);
            out->results_by_partition.items[k].partition_index = index;
            out->results_by_partition.items[k].partition_error_code = error;
            all_known = all_known && error == KAFKA_NONE;
            *partitions++ = (struct transaction_partition){in->name, index};
        }
    }
    answer->results_by_topic_v3_and_below.count = topics;
    return all_known;
}

void add_partitions_to_txn_handle(struct kafka_request *request)
{
    const struct kafka_add_partitions_to_txn_request *message =
        KAFKA_MESSAGE(request, add_partitions_to_txn);
    int32_t count = count_partitions(message);
    struct transaction_request *transaction = arena_new(&request->arena, sizeof(*transaction));
    struct transaction_partition *partitions =
        arena_new_array(&request->arena, (size_t)count, sizeof(*partitions));
    if (request->arena.failed) {
        kafka_finish(request);
        return;
    }
    enum status serving = broker_check_serving(kafka_request_broker(request));
    bool all_known = lay_out(request, partitions);
    if (serving != STATUS_OK) {
        answer_all(request, kafka_request_error(request, serving));
        kafka_finish(request);
        return;
    }
    if (!all_known || request->arena.failed) {
        answer_all(request, KAFKA_OPERATION_NOT_ATTEMPTED);
        kafka_finish(request);
        return;
    }
    transaction->id = message->v3_and_below_transactional_id;
    transaction->producer_id = message->v3_and_below_producer_id;
    transaction->producer_epoch = message->v3_and_below_producer_epoch;
    transaction->partitions = partitions;
    transaction->partition_count = (uint32_t)count;
    transaction->done = added;
    transaction->context = request;
    broker_add_to_transaction(kafka_request_broker(request), transaction);
}
