/* DescribeGroups (15): groups with their members (section 7.4). What members subscribe to and are
 * assigned is told of a stable group only; else it is about to change. */
#include "broker/group_coordinator.h"
#include "kafka/errors.h"
#include "kafka/group_state.h"
#include "kafka/handlers.h"

#define VERSION_UNKNOWN_IS_ERROR 6

struct describing {
    struct kafka_request *request;
    struct kafka_describe_groups_response_group *out;
};

static struct slice copy(struct kafka_request *request, struct slice slice)
{
    if (slice.data == NULL) return KAFKA_NULL;
    return slice.bytes > 0 ? arena_copy(&request->arena, slice) : kafka_text("");
}

static void put_members(struct kafka_request *request, const struct consumer_group *group,
                        struct kafka_describe_groups_response_group *out)
{
    bool stable = consumer_group_state(group) == CONSUMER_GROUP_STABLE;
    uint32_t count = consumer_group_member_count(group);
    out->members.items = kafka_describe_groups_response_member_new(&request->arena, (int32_t)count);
    if (out->members.items == NULL) return;
    const struct consumer_member *member = NULL;
    while ((member = consumer_group_next(group, member)) != NULL) {
        const struct consumer_member_view view = consumer_member_view(group, member);
        out->members.items[out->members.count++] = (struct kafka_describe_groups_response_member){
            .member_id = copy(request, view.id),
            .group_instance_id = copy(request, view.instance_id),
            .client_id = copy(request, view.client_id),
            .client_host = copy(request, view.client_host),
            .member_metadata = stable ? copy(request, view.metadata) : kafka_text(""),
            .member_assignment = stable ? copy(request, view.assignment) : kafka_text(""),
        };
    }
    struct slice protocol = consumer_group_protocol(group);
    if (stable && protocol.data != NULL) out->protocol_data = copy(request, protocol);
}

static void put_group(void *context, const struct group_description *group)
{
    struct describing *describing = context;
    struct kafka_describe_groups_response_group *out = describing->out;
    out->group_state = kafka_group_state_text(group->state);
    out->protocol_type = copy(describing->request, group->protocol_type);
    if (group->group != NULL) put_members(describing->request, group->group, out);
}

static void describe(struct kafka_request *request, struct slice id,
                     struct kafka_describe_groups_response_group *out)
{
    struct describing describing = {request, out};
    out->group_id = id;
    out->group_state = kafka_text("");
    out->protocol_type = kafka_text("");
    out->protocol_data = kafka_text("");
    enum status status =
        broker_describe_group(kafka_request_broker(request), id, put_group, &describing);
    if (status != STATUS_UNKNOWN_GROUP) {
        out->error_code = kafka_request_error(request, status);
        return;
    }
    out->group_state = kafka_text("Dead");
    if (request->header.api_version < VERSION_UNKNOWN_IS_ERROR) return;
    out->error_code = kafka_request_error(request, status);
    out->error_message = arena_printf(&request->arena, "Group %.*s not found.", (int)id.bytes,
                                      id.bytes > 0 ? (const char *)id.data : "");
}

void describe_groups_handle(struct kafka_request *request)
{
    const struct kafka_describe_groups_request *message = KAFKA_MESSAGE(request, describe_groups);
    struct kafka_describe_groups_response *answer = KAFKA_ANSWER(request, describe_groups);
    int32_t count = message->groups.count;
    struct seen seen;
    kafka_request_seen(request, &seen, (size_t)count);
    answer->groups.items = kafka_describe_groups_response_group_new(&request->arena, count);
    for (int32_t i = 0; i < count && !request->arena.failed; i++) {
        if (seen_before(&seen, message->groups.items[i], 0)) continue;
        describe(request, message->groups.items[i], &answer->groups.items[answer->groups.count++]);
    }
    kafka_finish(request);
}
