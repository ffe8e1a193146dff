/* SyncGroup (14): the leader brings what each member is assigned, every member fetches its part
 * (section 7.3). */
#include "broker/group_coordinator.h"
#include "kafka/errors.h"
#include "kafka/handlers.h"

static void synced(void *context, const struct group_result *result)
{
    struct kafka_request *request = context;
    struct kafka_sync_group_response *answer = KAFKA_ANSWER(request, sync_group);
    answer->error_code = kafka_request_error(request, result->status);
    answer->assignment = kafka_text("");
    if (result->status == STATUS_OK) {
        answer->protocol_type = result->protocol_type;
        answer->protocol_name = result->protocol;
        answer->assignment = result->assignment;
    }
    kafka_finish(request);
}

void sync_group_handle(struct kafka_request *request)
{
    const struct kafka_sync_group_request *message = KAFKA_MESSAGE(request, sync_group);
    int32_t count = message->assignments.count;
    struct group_request *wait = arena_new(&request->arena, sizeof(*wait));
    struct consumer_assignment *assignments =
        arena_new_array(&request->arena, (size_t)count, sizeof(*assignments));
    if (request->arena.failed) {
        kafka_finish(request);
        return;
    }
    for (int32_t i = 0; i < count; i++) {
        assignments[i].member_id = message->assignments.items[i].member_id;
        assignments[i].assignment = message->assignments.items[i].assignment;
    }
    wait->done = synced;
    wait->context = request;
    request->state = wait;
    const struct consumer_sync sync = {
        .member_id = message->member_id,
        .instance_id = message->group_instance_id,
        .generation = message->generation_id,
        .protocol_type = message->protocol_type,
        .protocol = message->protocol_name,
        .assignments = assignments,
        .assignment_count = (uint32_t)count,
    };
    broker_sync_group(kafka_request_broker(request), message->group_id, &sync, wait);
}

bool sync_group_cancel(struct kafka_request *request)
{
    broker_group_cancel(kafka_request_broker(request), request->state);
    return true;
}
