/* LeaveGroup (13): members leave, or are taken out by their instance ids (section 7.3). Up to
 * version 2 one member, and its error is that of the whole. */
#include "broker/group_coordinator.h"
#include "kafka/errors.h"
#include "kafka/handlers.h"

#define VERSION_MEMBERS 3

static bool is_of_the_whole(enum status status)
{
    return status != STATUS_OK && status != STATUS_UNKNOWN_MEMBER &&
           status != STATUS_FENCED_INSTANCE;
}

static void leave_all(struct kafka_request *request)
{
    const struct kafka_leave_group_request *message = KAFKA_MESSAGE(request, leave_group);
    struct kafka_leave_group_response *answer = KAFKA_ANSWER(request, leave_group);
    int32_t count = message->members.count;
    answer->members.items = kafka_leave_group_response_member_new(&request->arena, count);
    if (answer->members.items == NULL) return;
    for (int32_t i = 0; i < count; i++) {
        const struct kafka_leave_group_request_member *in = &message->members.items[i];
        struct kafka_leave_group_response_member *out = &answer->members.items[i];
        out->member_id = in->member_id;
        out->group_instance_id = in->group_instance_id;
        enum status status = broker_leave_group(kafka_request_broker(request), message->group_id,
                                                in->member_id, in->group_instance_id);
        out->error_code = kafka_request_error(request, status);
        if (is_of_the_whole(status)) {
            answer->error_code = out->error_code;
            answer->members.count = 0;
            return;
        }
        answer->members.count++;
    }
}

void leave_group_handle(struct kafka_request *request)
{
    const struct kafka_leave_group_request *message = KAFKA_MESSAGE(request, leave_group);
    if (request->header.api_version >= VERSION_MEMBERS) {
        leave_all(request);
    } else {
        enum status status = broker_leave_group(kafka_request_broker(request), message->group_id,
                                                message->member_id, KAFKA_NULL);
        KAFKA_ANSWER(request, leave_group)->error_code = kafka_request_error(request, status);
    }
    kafka_finish(request);
}
