/* JoinGroup (11): a member joins its group, or joins it again; answered when the generation begins
 * (section 7.2). */
#include "broker/group_coordinator.h"
#include "kafka/errors.h"
#include "kafka/handlers.h"

#define VERSION_ID_REQUIRED      4
#define VERSION_NULL_PROTOCOL    7
#define VERSION_SKIPS_ASSIGNMENT 9

/* Borrowed from the group for the callback: the answer is encoded in it. */
static void list_members(struct kafka_request *request, const struct consumer_group *group)
{
    struct kafka_join_group_response *answer = KAFKA_ANSWER(request, join_group);
    uint32_t count = consumer_group_member_count(group);
    answer->members.items = kafka_join_group_response_member_new(&request->arena, (int32_t)count);
    if (answer->members.items == NULL) return;
    const struct consumer_member *member = NULL;
    while ((member = consumer_group_next(group, member)) != NULL) {
        const struct consumer_member_view view = consumer_member_view(group, member);
        answer->members.items[answer->members.count++] = (struct kafka_join_group_response_member){
            .member_id = view.id,
            .group_instance_id = view.instance_id,
            .metadata = view.metadata,
        };
    }
}

static void joined(void *context, const struct group_result *result)
{
    struct kafka_request *request = context;
    const struct kafka_join_group_request *message = KAFKA_MESSAGE(request, join_group);
    struct kafka_join_group_response *answer = KAFKA_ANSWER(request, join_group);
    answer->error_code = kafka_request_error(request, result->status);
    /* Which it was that failed, so that it can be told from another. */
    answer->member_id = result->member_id.data != NULL ? result->member_id : message->member_id;
    answer->leader = kafka_text("");
    bool null_legal = request->header.api_version >= VERSION_NULL_PROTOCOL;
    answer->protocol_name = null_legal ? KAFKA_NULL : kafka_text("");
    if (result->status == STATUS_OK) {
        answer->generation_id = result->generation;
        answer->protocol_type = result->protocol_type;
        answer->protocol_name = result->protocol;
        answer->leader = result->leader;
        answer->skip_assignment = result->skip_assignment;
        if (result->group != NULL && result->answer->lists_members)
            list_members(request, result->group);
    }
    kafka_finish(request);
}

static const struct consumer_protocol *read_protocols(struct kafka_request *request)
{
    const struct kafka_join_group_request *message = KAFKA_MESSAGE(request, join_group);
    int32_t count = message->protocols.count;
    struct consumer_protocol *protocols =
        arena_new_array(&request->arena, (size_t)count, sizeof(*protocols));
    for (int32_t i = 0; i < count && protocols != NULL; i++) {
        protocols[i].name = message->protocols.items[i].name;
        protocols[i].metadata = message->protocols.items[i].metadata;
    }
    return protocols;
}

void join_group_handle(struct kafka_request *request)
{
    const struct kafka_join_group_request *message = KAFKA_MESSAGE(request, join_group);
    struct group_request *wait = arena_new(&request->arena, sizeof(*wait));
    const struct consumer_protocol *protocols = read_protocols(request);
    if (request->arena.failed) {
        kafka_finish(request);
        return;
    }
    wait->done = joined;
    wait->context = request;
    request->state = wait;
    struct slice client_id = request->header.client_id;
    struct consumer_join join = {
        .member_id = message->member_id,
        .instance_id = message->group_instance_id,
        .client_id = client_id.data != NULL ? client_id : kafka_text(""),
        .client_host = arena_printf(&request->arena, "/%s", kafka_request_client_host(request)),
        .protocol_type = message->protocol_type,
        .protocols = protocols,
        .protocol_count = (uint32_t)message->protocols.count,
        .session_timeout_ms = message->session_timeout_ms,
        .rebalance_timeout_ms = message->rebalance_timeout_ms,
        .id_required = request->header.api_version >= VERSION_ID_REQUIRED,
        .skips_assignment = request->header.api_version >= VERSION_SKIPS_ASSIGNMENT,
    };
    broker_join_group(kafka_request_broker(request), message->group_id, &join, wait);
}

bool join_group_cancel(struct kafka_request *request)
{
    broker_group_cancel(kafka_request_broker(request), request->state);
    return true;
}
