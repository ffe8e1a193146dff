/* ListGroups (16): asked of every broker, the answers merged by the client; so one that does not
 * lead has none, and is no error (rule 13). Filters are names, whatever their case.           */
#include <strings.h>

#include "broker/group_coordinator.h"
#include "kafka/errors.h"
#include "kafka/group_state.h"
#include "kafka/handlers.h"

#define TYPE_CLASSIC "classic"
#define TYPE_MODERN  "consumer"

struct listing {
    struct kafka_request *request;
    struct kafka_list_groups_response_group *groups;
    int32_t count, capacity;
};

static bool is_in(const struct slice *names, int32_t count, struct slice name)
{
    if (count <= 0) return true;
    for (int32_t i = 0; i < count; i++) {
        if (names[i].bytes == name.bytes &&
            strncasecmp((const char *)names[i].data, (const char *)name.data, name.bytes) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_wanted(const struct kafka_request *request, struct slice state, struct slice type)
{
    const struct kafka_list_groups_request *message = KAFKA_MESSAGE(request, list_groups);
    return is_in(message->states_filter.items, message->states_filter.count, state) &&
           is_in(message->types_filter.items, message->types_filter.count, type);
}

/* How many there are is known at the end only: the list doubles, in the arena. */
static bool make_room(struct listing *listing)
{
    if (listing->count < listing->capacity) return true;
    int32_t capacity = listing->capacity == 0 ? 64 : 2 * listing->capacity;
    struct kafka_list_groups_response_group *groups =
        kafka_list_groups_response_group_new(&listing->request->arena, capacity);
    if (groups == NULL) return false;
    for (int32_t i = 0; i < listing->count; i++)
        groups[i] = listing->groups[i];
    listing->groups = groups;
    listing->capacity = capacity;
    return true;
}

static void put_group(void *context, const struct group_description *group)
{
    struct listing *listing = context;
    struct arena *arena = &listing->request->arena;
    const struct modern_group *modern = group->modern;
    struct slice type = kafka_text(modern != NULL ? TYPE_MODERN : TYPE_CLASSIC);
    struct slice state = modern != NULL ? kafka_text(modern_group_state_name(modern))
                                        : kafka_group_state_text(group->state);
    if (!is_wanted(listing->request, state, type) || !make_room(listing)) return;
    listing->groups[listing->count++] = (struct kafka_list_groups_response_group){
        .group_id = arena_copy(arena, group->id),
        .protocol_type = arena_copy(arena, group->protocol_type),
        .group_state = state,
        .group_type = type,
    };
}

void list_groups_handle(struct kafka_request *request)
{
    struct kafka_list_groups_response *answer = KAFKA_ANSWER(request, list_groups);
    struct listing listing = {.request = request};
    enum status status = broker_list_groups(kafka_request_broker(request), put_group, &listing);
    if (status == STATUS_NOT_READY) {
        answer->error_code = KAFKA_COORDINATOR_LOAD_IN_PROGRESS;
    } else if (status != STATUS_NOT_LEADER) {
        answer->error_code = kafka_request_error(request, status);
        answer->groups.items = listing.groups;
        answer->groups.count = listing.count;
    }
    kafka_finish(request);
}
