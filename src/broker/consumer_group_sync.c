/* consumer_group_sync.c: assignments, heartbeats, leaving, and who may commit (kafka-listener.md
 * 7.3, 7.4). */
#include "base/assert.h"
#include "broker/consumer_group_state.h"

/* ---- assignments ---- */

static void assign(struct consumer_group *group, const struct consumer_sync *sync)
{
    for (struct consumer_member *member = group->members; member != NULL;
         member = member->hh.next) {
        member_set_assignment(group, member, (struct slice){0});
    }
    for (uint32_t i = 0; i < sync->assignment_count; i++) {
        struct consumer_member *member = member_find(group, sync->assignments[i].member_id);
        if (member == NULL) continue;
        member_set_assignment(group, member, sync->assignments[i].assignment);
    }
}

static size_t assignment_bytes(const struct consumer_sync *sync)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < sync->assignment_count; i++)
        bytes += sync->assignments[i].assignment.bytes;
    return bytes;
}

static void park_sync(struct consumer_member *member, struct group_waiter *waiter,
                      struct group_actions *actions)
{
    if (member->syncing != NULL) answer_sync(member, STATUS_REBALANCE_IN_PROGRESS, actions);
    member->awaiting_sync = true;
    member->synced = true;
    member->syncing = waiter;
    member->due_us = CONSUMER_GROUP_NEVER_US;
    waiter->member = member;
}

static enum status check_sync(const struct consumer_group *group, const struct consumer_sync *sync,
                              struct consumer_member **member)
{
    enum status status = group_identify(group, sync->member_id, sync->instance_id, member);
    if (status != STATUS_OK) return status;
    if (group->state == CONSUMER_GROUP_EMPTY) return STATUS_UNKNOWN_MEMBER;
    if (sync->generation != group->generation) return STATUS_ILLEGAL_GENERATION;
    if ((sync->protocol_type.data != NULL &&
         !group_slices_equal(sync->protocol_type, group->protocol_type)) ||
        (sync->protocol.data != NULL && !group_slices_equal(sync->protocol, group->protocol))) {
        return STATUS_GROUP_PROTOCOL;
    }
    if (group->state == CONSUMER_GROUP_PREPARING) return STATUS_REBALANCE_IN_PROGRESS;
    bool leads = group->leader == *member && group->state == CONSUMER_GROUP_COMPLETING;
    if (leads && group->bytes + assignment_bytes(sync) > CONSUMER_GROUP_BYTES_MAX) {
        return STATUS_TOO_LARGE;
    }
    return STATUS_OK;
}

void consumer_group_sync(struct consumer_group *group, const struct consumer_sync *sync,
                         struct group_waiter *waiter, struct group_clock clock,
                         struct group_actions *actions)
{
    struct consumer_member *member;
    ASSERT(waiter->member == NULL);
    enum status status = check_sync(group, sync, &member);
    if (status != STATUS_OK) {
        answer(actions, waiter, status, NULL);
        return;
    }
    park_sync(member, waiter, actions);
    if (group->state == CONSUMER_GROUP_STABLE) {
        session_begin(group, member, clock);
        answer_sync(member, STATUS_OK, actions);
    } else if (group->leader == member && !group->assigned) {
        assign(group, sync);
        group->assigned = true;
        group_want_stored(group, actions);
    }
}

/* ---- what was stored, or was not ---- */

static void give_assignments(struct consumer_group *group, struct group_clock clock,
                             struct group_actions *actions)
{
    group->assigned = false;
    group_set_state(group, CONSUMER_GROUP_STABLE, clock);
    for (struct consumer_member *member = group->members; member != NULL;
         member = member->hh.next) {
        if (!member->awaiting_sync) continue;
        session_begin(group, member, clock);
        answer_sync(member, STATUS_OK, actions);
    }
}

static void answer_replaced(struct consumer_group *group, enum status status,
                            struct group_actions *actions)
{
    for (struct consumer_member *member = group->members; member != NULL;
         member = member->hh.next) {
        if (member->replaced) answer_join(group, member, status, actions);
    }
}

/* Nobody may go on with what is not on record: all begin again. */
static void not_stored(struct consumer_group *group, enum status status, struct group_clock clock,
                       struct group_actions *actions)
{
    if (group->state == CONSUMER_GROUP_EMPTY) return;
    answer_replaced(group, status, actions);
    for (struct consumer_member *member = group->members; member != NULL;
         member = member->hh.next) {
        if (!member->awaiting_sync) continue;
        session_begin(group, member, clock);
        answer_sync(member, status, actions);
    }
    rebalance_prepare(group, clock, actions);
}

void consumer_group_stored(struct consumer_group *group, uint64_t store_id, enum status status,
                           struct group_clock clock, struct group_actions *actions)
{
    if (!group->storing || store_id != group->store_id) return;
    group->storing = false;
    if (status != STATUS_OK) {
        not_stored(group, status, clock, actions);
    } else if (group->state == CONSUMER_GROUP_COMPLETING) {
        give_assignments(group, clock, actions);
    } else {
        answer_replaced(group, STATUS_OK, actions);
    }
}

/* ---- heartbeats ---- */

/* A member that waits in JoinGroup or SyncGroup has no session that runs. */
static void heard(struct consumer_group *group, struct consumer_member *member,
                  struct group_clock clock)
{
    if (member->due_us == CONSUMER_GROUP_NEVER_US || member->fresh) return;
    member->due_us = clock.now_us + (int64_t)member->session_timeout_ms * 1000;
    group_due_by(group, member->due_us);
}

enum status consumer_group_heartbeat(struct consumer_group *group,
                                     const struct consumer_identity *who, struct group_clock clock)
{
    struct consumer_member *member;
    enum status status = group_identify(group, who->member_id, who->instance_id, &member);
    if (status != STATUS_OK) return status;
    if (who->generation != group->generation) return STATUS_ILLEGAL_GENERATION;
    heard(group, member, clock);
    return group->state == CONSUMER_GROUP_PREPARING ? STATUS_REBALANCE_IN_PROGRESS : STATUS_OK;
}

enum status consumer_group_check_commit(struct consumer_group *group,
                                        const struct consumer_identity *who, bool transactional,
                                        struct group_clock clock)
{
    struct consumer_member *member;
    bool simple = who->generation < 0 && who->member_id.bytes == 0 && who->instance_id.data == NULL;
    if (simple) {
        bool alone = group->state == CONSUMER_GROUP_EMPTY || transactional;
        return alone ? STATUS_OK : STATUS_UNKNOWN_MEMBER;
    }
    if (group->state == CONSUMER_GROUP_EMPTY && who->generation < 0) return STATUS_OK;
    enum status status = group_identify(group, who->member_id, who->instance_id, &member);
    if (status != STATUS_OK) return status;
    if (who->generation != group->generation) return STATUS_ILLEGAL_GENERATION;
    if (group->state == CONSUMER_GROUP_COMPLETING) {
        return transactional ? STATUS_OK : STATUS_REBALANCE_IN_PROGRESS;
    }
    heard(group, member, clock);
    return STATUS_OK;
}

/* ---- leaving ---- */

enum status consumer_group_leave(struct consumer_group *group, struct slice member_id,
                                 struct slice instance_id, struct group_clock clock,
                                 struct group_actions *actions)
{
    struct consumer_member *member = NULL;
    struct pending_member *pending = pending_find(group, member_id);
    if (pending != NULL && instance_id.data == NULL) {
        pending_drop(group, pending);
        rebalance_try_complete(group, clock, actions);
        return STATUS_OK;
    }
    if (member_id.bytes == 0 && instance_id.data != NULL) {
        member = member_find_instance(group, instance_id);
        if (member == NULL) return STATUS_UNKNOWN_MEMBER;
    } else {
        enum status status = group_identify(group, member_id, instance_id, &member);
        if (status != STATUS_OK) return status;
    }
    group_drop_member(group, member, actions);
    group_members_left(group, clock, actions);
    return STATUS_OK;
}
