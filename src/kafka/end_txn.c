/* EndTxn (26): commits or aborts a transaction (sections 8.1 and 8.3).
 *
 * Answered when the outcome is on record. From version 5 on each end raises the producer's epoch,
 * and the answer says with what it goes on.                                                   */
#include "kafka/errors.h"
#include "kafka/handlers.h"

#include "broker/transactions.h"

#define VERSION_EPOCH_BUMP 5

static void ended(void *context, struct transaction_request *transaction)
{
    struct kafka_request *request = context;
    struct kafka_end_txn_response *answer = KAFKA_ANSWER(request, end_txn);
    answer->error_code = kafka_request_error(request, transaction->status);
    if (transaction->status == STATUS_OK) {
        answer->producer_id = transaction->next_producer_id;
        answer->producer_epoch = transaction->next_producer_epoch;
    }
    kafka_finish(request);
}

void end_txn_handle(struct kafka_request *request)
{
    const struct kafka_end_txn_request *message = KAFKA_MESSAGE(request, end_txn);
    struct transaction_request *transaction = arena_new(&request->arena, sizeof(*transaction));
    if (transaction == NULL) {
        kafka_finish(request);
        return;
    }
    transaction->id = message->transactional_id;
    transaction->producer_id = message->producer_id;
    transaction->producer_epoch = message->producer_epoch;
    transaction->commit = message->committed;
    transaction->transaction_v2 = request->header.api_version >= VERSION_EPOCH_BUMP;
    transaction->done = ended;
    transaction->context = request;
    broker_end_transaction(kafka_request_broker(request), transaction);
}
