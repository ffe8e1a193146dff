/* InitProducerId (22): a new producer id, or the next epoch of a transactional id.
 *
 * Without a transactional id any broker answers: a follower asks the leader (rule 14); only the
 * leader allocates, so ids never repeat across failovers (decisions 9). With one it belongs to the
 * transaction coordinator, and a follower says so (section 1.3).                              */
#include "kafka/errors.h"
#include "kafka/forward.h"
#include "kafka/handlers.h"

#include "broker/transactions.h"

void init_producer_id_refuse(struct kafka_request *request, enum status status)
{
    KAFKA_ANSWER(request, init_producer_id)->error_code = kafka_request_error(request, status);
    kafka_finish(request);
}

/* Asked as a coordinator, not as any broker. */
static int16_t coordinator_error(const struct kafka_request *request, enum status status)
{
    const struct kafka_api coordinator = {.key = KAFKA_INIT_PRODUCER_ID,
                                          .kind = KAFKA_KIND_COORDINATOR};
    return kafka_error_of(&coordinator, request->header.api_version, status);
}

static void transaction_begun(void *context, struct transaction_request *transaction)
{
    struct kafka_request *request = context;
    struct kafka_init_producer_id_response *answer = KAFKA_ANSWER(request, init_producer_id);
    answer->error_code = coordinator_error(request, transaction->status);
    if (transaction->status == STATUS_OK) {
        answer->producer_id = transaction->next_producer_id;
        answer->producer_epoch = transaction->next_producer_epoch;
    }
    kafka_finish(request);
}

static void init_transaction(struct kafka_request *request)
{
    const struct kafka_init_producer_id_request *message = KAFKA_MESSAGE(request, init_producer_id);
    struct transaction_request *transaction = arena_new(&request->arena, sizeof(*transaction));
    if (transaction == NULL) {
        kafka_finish(request);
        return;
    }
    transaction->id = message->transactional_id;
    transaction->producer_id = message->producer_id;
    transaction->producer_epoch = message->producer_epoch;
    transaction->transaction_timeout_ms = message->transaction_timeout_ms;
    transaction->done = transaction_begun;
    transaction->context = request;
    broker_init_transaction(kafka_request_broker(request), transaction);
}

static void new_producer_id(struct kafka_request *request)
{
    struct kafka_init_producer_id_response *answer = KAFKA_ANSWER(request, init_producer_id);
    int64_t producer_id = -1;
    enum status status = broker_new_producer_id(kafka_request_broker(request), &producer_id);
    answer->error_code = kafka_request_error(request, status);
    if (status == STATUS_OK) {
        answer->producer_id = producer_id;
        answer->producer_epoch = 0;
    }
    kafka_finish(request);
}

void init_producer_id_handle(struct kafka_request *request)
{
    const struct kafka_init_producer_id_request *message = KAFKA_MESSAGE(request, init_producer_id);
    if (message->transactional_id.data != NULL) {
        init_transaction(request);
    } else if (!kafka_forward(request)) {
        new_producer_id(request);
    }
}
