/* modern_classic.c: what members of the classic protocol ask of a group of the new one
 * (modern_group_classic.h). Answered as all that such a group tells: when what it wrote before is
 * replicated. */
#include "base/assert.h"
#include "base/slice.h"
#include "broker/group_coordinator_state.h"
#include "broker/modern_group_classic.h"
#include "broker/modern_live.h"

/* One event at a group: what it comes with, and what it writes. */
struct classic_event {
    struct modern_live *live;
    struct group_topics topics;
    struct modern_records records;
    struct modern_group_step step;
};

/* NOT_FOUND: no group of the new protocol with members. NOT_READY: not known yet. */
static enum status find_group(struct broker *broker, struct slice id, struct modern_live **out)
{
    struct modern_live *live = modern_live_find(broker, id);
    ASSERT(!broker->groups->answering);
    if (live == NULL) return STATUS_NOT_FOUND;
    if (!modern_live_reload(live)) return STATUS_NOT_READY;
    if (modern_group_member_count(live->group) == 0) {
        modern_live_settle(live);
        return STATUS_NOT_FOUND;
    }
    *out = live;
    return STATUS_OK;
}

static enum status event_init(struct classic_event *event, struct broker *broker, struct slice id)
{
    *event = (struct classic_event){0};
    enum status status = find_group(broker, id, &event->live);
    if (status != STATUS_OK) return status;
    event->topics = modern_topics_now(broker);
    event->step = modern_step_now(broker, &event->topics, &event->records);
    return STATUS_OK;
}

/* ---- answers ---- */

static void refuse(struct group_request *request, enum status status, struct slice member_id)
{
    const struct group_result result = {.status = status, .member_id = member_id};
    request->done(request->context, &result);
}

/* What could not be written is asked for again: of these only a change of leader is told. */
static enum status status_of(enum status status)
{
    return status == STATUS_OK || status == STATUS_NOT_LEADER ? status : STATUS_NOT_READY;
}

static void stored(void *context, struct modern_request *modern)
{
    struct group_request *request = context;
    struct buffer kept = request->kept; /* the callback may let the request go */
    struct group_result result = {.status = status_of(modern->status)};
    request->kept = (struct buffer){0};
    if (result.status == STATUS_OK) {
        const uint8_t *at = kept.data;
        result.generation = request->generation;
        result.protocol_type = slice_of_text(CONSUMER_PROTOCOL_TYPE);
        result.leader = slice_of_text("");
        result.member_id = (struct slice){at, request->id_bytes};
        result.protocol = (struct slice){at + request->id_bytes, request->protocol_bytes};
        size_t head = request->id_bytes + request->protocol_bytes;
        result.assignment = (struct slice){at + head, kept.bytes - head};
    }
    request->done(request->context, &result);
    buffer_deinit(&kept);
}

static void keep(struct group_request *request, struct slice member_id, int32_t generation,
                 struct slice protocol)
{
    request->generation = generation;
    request->id_bytes = member_id.bytes;
    request->protocol_bytes = protocol.bytes;
    buffer_init(&request->kept, 0);
    buffer_put(&request->kept, member_id.data, member_id.bytes);
    buffer_put(&request->kept, protocol.data, protocol.bytes);
    request->modern = (struct modern_request){.done = stored, .context = request};
}

void modern_classic_cancel(struct broker *broker, struct group_request *request)
{
    broker_modern_cancel(broker, &request->modern);
    buffer_deinit(&request->kept);
}

/* ---- requests ---- */

static enum status check_room(const struct broker *broker, const struct consumer_join *join)
{
    enum status status = consumer_join_check(join, &broker->settings.groups);
    if (status != STATUS_OK) return status;
    bool full = broker->modern->bytes > MODERN_GROUPS_BYTES_MAX;
    if (full && join->member_id.bytes == 0) return STATUS_GROUP_FULL;
    return broker->modern->waiting < MODERN_WAITING_MAX ? STATUS_OK : STATUS_NOT_READY;
}

bool modern_classic_join(struct broker *broker, struct slice id, const struct consumer_join *join,
                         struct group_request *request)
{
    struct classic_event event;
    struct modern_joined joined = {0};
    enum status status = event_init(&event, broker, id);
    if (status == STATUS_NOT_FOUND) return false;
    if (status == STATUS_OK) status = check_room(broker, join);
    if (status == STATUS_OK)
        status = modern_group_classic_join(event.live->group, &event.step, join, &joined);
    if (status != STATUS_OK) {
        refuse(request, status, joined.member_id);
        return true;
    }
    keep(request, joined.member_id, joined.generation, joined.protocol);
    modern_live_answer(event.live, &event.records, &request->modern);
    modern_records_deinit(&event.records);
    return true;
}

bool modern_classic_sync(struct broker *broker, struct slice id, const struct consumer_sync *sync,
                         struct group_request *request)
{
    struct classic_event event;
    struct buffer assignment;
    struct slice protocol;
    enum status status = event_init(&event, broker, id);
    if (status == STATUS_NOT_FOUND) return false;
    if (status == STATUS_OK && broker->modern->waiting >= MODERN_WAITING_MAX)
        status = STATUS_NOT_READY;
    buffer_init(&assignment, 0);
    if (status == STATUS_OK)
        status =
            modern_group_classic_sync(event.live->group, &event.step, sync, &protocol, &assignment);
    if (status == STATUS_OK) {
        keep(request, (struct slice){0}, sync->generation, protocol);
        buffer_put(&request->kept, assignment.data, assignment.bytes);
        modern_live_answer(event.live, &event.records, &request->modern);
    } else {
        if (event.live != NULL) modern_live_settle(event.live);
        refuse(request, status, (struct slice){0});
    }
    buffer_deinit(&assignment);
    return true;
}

bool modern_classic_heartbeat(struct broker *broker, struct slice id,
                              const struct consumer_identity *who, enum status *status)
{
    struct classic_event event;
    *status = event_init(&event, broker, id);
    if (*status == STATUS_NOT_FOUND) return false;
    if (*status != STATUS_OK) return true;
    *status = modern_group_classic_heartbeat(event.live->group, &event.step, who);
    modern_live_settle(event.live);
    return true;
}

bool modern_classic_leave(struct broker *broker, struct slice id, struct slice member_id,
                          struct slice instance_id, enum status *status)
{
    struct classic_event event;
    *status = event_init(&event, broker, id);
    if (*status == STATUS_NOT_FOUND) return false;
    if (*status != STATUS_OK) return true;
    *status = modern_group_classic_leave(event.live->group, &event.step, member_id, instance_id);
    modern_live_send(event.live, &event.records);
    modern_records_deinit(&event.records);
    return true;
}
