/* Heartbeat (12): a member lives (section 7.3). While groups are not known yet the answer is "go
 * on": nothing speaks against it, and every session begins anew then. */
#include "broker/group_coordinator.h"
#include "kafka/errors.h"
#include "kafka/handlers.h"

void heartbeat_handle(struct kafka_request *request)
{
    const struct kafka_heartbeat_request *message = KAFKA_MESSAGE(request, heartbeat);
    const struct consumer_identity who = {
        .member_id = message->member_id,
        .instance_id = message->group_instance_id,
        .generation = message->generation_id,
    };
    enum status status =
        broker_group_heartbeat(kafka_request_broker(request), message->group_id, &who);
    KAFKA_ANSWER(request, heartbeat)->error_code =
        status == STATUS_NOT_READY ? KAFKA_NONE : kafka_request_error(request, status);
    kafka_finish(request);
}
