/* InitProducerId (22): a new producer id, from any broker: a follower asks the leader (rule 14).
 *
 * Only the leader allocates, so ids never repeat across failovers (decisions 9). With a
 * transactional id it belongs to the transaction coordinator, which is not there yet.         */
#include "kafka/errors.h"
#include "kafka/forward.h"
#include "kafka/handlers.h"

void init_producer_id_refuse(struct kafka_request *request, enum status status)
{
    KAFKA_ANSWER(request, init_producer_id)->error_code = kafka_request_error(request, status);
    kafka_finish(request);
}

void init_producer_id_handle(struct kafka_request *request)
{
    const struct kafka_init_producer_id_request *message = KAFKA_MESSAGE(request, init_producer_id);
    struct kafka_init_producer_id_response *answer = KAFKA_ANSWER(request, init_producer_id);
    if (message->transactional_id.data != NULL) {
        answer->error_code = message->transactional_id.bytes == 0 ? KAFKA_INVALID_REQUEST
                                                                  : KAFKA_UNSUPPORTED_VERSION;
        kafka_finish(request);
        return;
    }
    if (kafka_forward(request)) return;
    int64_t producer_id = -1;
    enum status status = broker_new_producer_id(kafka_request_broker(request), &producer_id);
    answer->error_code = kafka_request_error(request, status);
    if (status == STATUS_OK) {
        answer->producer_id = producer_id;
        answer->producer_epoch = 0;
    }
    kafka_finish(request);
}
