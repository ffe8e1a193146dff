/* AddOffsetsToTxn (25): a transaction is about to commit offsets of a group: the group's partition
 * of `__consumer_offsets` becomes part of it (section 8.1).                                   */
#include "kafka/errors.h"
#include "kafka/handlers.h"

#include "broker/transactions.h"

struct add_offsets_state {
    struct transaction_request transaction;
    struct transaction_partition partition;
};

static void finish(struct kafka_request *request, enum status status)
{
    KAFKA_ANSWER(request, add_offsets_to_txn)->error_code = kafka_request_error(request, status);
    kafka_finish(request);
}

static void added(void *context, struct transaction_request *transaction)
{
    finish(context, transaction->status);
}

void add_offsets_to_txn_handle(struct kafka_request *request)
{
    const struct kafka_add_offsets_to_txn_request *message =
        KAFKA_MESSAGE(request, add_offsets_to_txn);
    struct broker *broker = kafka_request_broker(request);
    struct add_offsets_state *state = arena_new(&request->arena, sizeof(*state));
    if (state == NULL) {
        kafka_finish(request);
        return;
    }
    enum status serving = broker_check_serving(broker);
    if (serving == STATUS_OK &&
        !broker_offsets_partition(broker, message->group_id, &state->partition)) {
        serving = STATUS_NOT_READY;
    }
    if (serving != STATUS_OK) {
        finish(request, serving);
        return;
    }
    state->transaction.id = message->transactional_id;
    state->transaction.producer_id = message->producer_id;
    state->transaction.producer_epoch = message->producer_epoch;
    state->transaction.partitions = &state->partition;
    state->transaction.partition_count = 1;
    state->transaction.done = added;
    state->transaction.context = request;
    broker_add_to_transaction(broker, &state->transaction);
}
