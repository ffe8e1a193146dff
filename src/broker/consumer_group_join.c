/* consumer_group_join.c: who joins, and how a generation comes about (kafka-listener.md 7.2). */
#include <string.h>

#include "base/assert.h"
#include "broker/consumer_group_state.h"

/* ---- a rebalance ---- */

static void refuse_syncs(struct consumer_group *group, enum status status,
                         struct group_actions *actions)
{
    for (struct consumer_member *member = group->members; member != NULL;
         member = member->hh.next) {
        member_set_assignment(group, member, (struct slice){0});
        answer_sync(member, status, actions);
    }
}

/* A static member whose new id was being stored waits for the generation to come instead. */
static void move_replaced(struct consumer_group *group)
{
    for (struct consumer_member *member = group->members; member != NULL;
         member = member->hh.next) {
        if (!member->replaced) continue;
        member->replaced = false;
        member->awaiting_join = true;
        member->due_us = CONSUMER_GROUP_NEVER_US;
        group->awaiting_join_count++;
    }
}

/* The first of an empty group does not wait for others. */
static bool wants_no_delay(const struct consumer_group *group)
{
    return group->members != NULL && group->members->at_once;
}

void rebalance_prepare(struct consumer_group *group, struct group_clock clock,
                       struct group_actions *actions)
{
    ASSERT(group->state != CONSUMER_GROUP_PREPARING);
    if (group->state == CONSUMER_GROUP_COMPLETING) {
        refuse_syncs(group, STATUS_REBALANCE_IN_PROGRESS, actions);
    }
    move_replaced(group);
    int64_t timeout_us = group_rebalance_timeout_us(group);
    int64_t delay_us = group->limits->initial_delay_us;
    group->initial = group->state == CONSUMER_GROUP_EMPTY && delay_us > 0 && !wants_no_delay(group);
    group->newcomers = false;
    group->assigned = false;
    group->storing = false;
    group->sync_due_us = CONSUMER_GROUP_NEVER_US;
    group->initial_end_us = clock.now_us + (timeout_us > delay_us ? timeout_us : delay_us);
    group->rebalance_due_us = clock.now_us + (group->initial ? delay_us : timeout_us);
    group_due_by(group, group->rebalance_due_us);
    group_set_state(group, CONSUMER_GROUP_PREPARING, clock);
    rebalance_try_complete(group, clock, actions);
}

/* Dynamic members that did not come again are gone; static ones stay until their session ends. */
static void drop_absent(struct consumer_group *group, struct group_actions *actions)
{
    struct consumer_member *member, *next;
    for (member = group->members; member != NULL; member = next) {
        next = member->hh.next;
        if (member->awaiting_join || member->instance_id.data != NULL) continue;
        group_drop_member(group, member, actions);
    }
}

/* The old leader if it is there, else the first that joined. NULL: nobody is. */
static struct consumer_member *elect(const struct consumer_group *group)
{
    if (group->leader != NULL && group->leader->awaiting_join) return group->leader;
    for (struct consumer_member *member = group->members; member != NULL;
         member = member->hh.next) {
        if (member->awaiting_join) return member;
    }
    return NULL;
}

static void next_generation(struct consumer_group *group)
{
    group->generation =
        group->generation >= 0 && group->generation < INT32_MAX ? group->generation + 1 : 1;
    group->initial = false;
    group->assigned = false;
    group->storing = false;
    group->rebalance_due_us = CONSUMER_GROUP_NEVER_US;
}

static void become_empty(struct consumer_group *group, struct group_clock clock,
                         struct group_actions *actions)
{
    next_generation(group);
    group->leader = NULL;
    group_release(group, &group->protocol);
    group_set_state(group, CONSUMER_GROUP_EMPTY, clock);
    group_want_stored(group, actions);
}

static void begin_generation(struct consumer_group *group, struct group_clock clock,
                             struct group_actions *actions)
{
    next_generation(group);
    struct slice chosen = protocols_vote(group);
    ASSERT(chosen.data != NULL); /* nobody joins without one that all have */
    struct slice copy = group_copy(group, chosen);
    group_release(group, &group->protocol);
    group->protocol = copy;
    group_set_state(group, CONSUMER_GROUP_COMPLETING, clock);
    group->sync_due_us = clock.now_us + group_rebalance_timeout_us(group);
    group_due_by(group, group->sync_due_us);
    for (struct consumer_member *member = group->members; member != NULL;
         member = member->hh.next) {
        /* One that is absent is not expected to ask for its assignment. */
        member->synced = !member->awaiting_join;
        if (!member->awaiting_join) continue;
        session_begin(group, member, clock);
        answer_join(group, member, STATUS_OK, actions);
    }
}

static void complete(struct consumer_group *group, struct group_clock clock,
                     struct group_actions *actions)
{
    drop_absent(group, actions);
    if (group->member_count == 0) {
        become_empty(group, clock, actions);
        return;
    }
    struct consumer_member *leader = elect(group);
    if (leader == NULL) {
        /* Static ones only, and none came: until one does, or their sessions end. */
        int64_t timeout_us = group_rebalance_timeout_us(group);
        group->initial = false;
        group->rebalance_due_us = clock.now_us + (timeout_us > 0 ? timeout_us : 1000000);
        group_due_by(group, group->rebalance_due_us);
        return;
    }
    group->leader = leader;
    begin_generation(group, clock, actions);
}

void rebalance_try_complete(struct consumer_group *group, struct group_clock clock,
                            struct group_actions *actions)
{
    if (group->state != CONSUMER_GROUP_PREPARING || group->initial) return;
    if (group->awaiting_join_count < group->member_count || group->pending != NULL) return;
    complete(group, clock, actions);
}

/* The initial delay goes on as long as newcomers come, up to the rebalance time-out. */
static bool extend_initial_delay(struct consumer_group *group, struct group_clock clock)
{
    if (!group->initial || !group->newcomers || clock.now_us >= group->initial_end_us) return false;
    int64_t until_us = clock.now_us + group->limits->initial_delay_us;
    group->newcomers = false;
    group->rebalance_due_us = until_us < group->initial_end_us ? until_us : group->initial_end_us;
    return true;
}

static void drop_unsynced(struct consumer_group *group, struct group_clock clock,
                          struct group_actions *actions)
{
    struct consumer_member *member, *next;
    bool left = false;
    group->sync_due_us = CONSUMER_GROUP_NEVER_US;
    for (member = group->members; member != NULL; member = next) {
        next = member->hh.next;
        if (member->synced) continue;
        group_drop_member(group, member, actions);
        left = true;
    }
    if (left) group_members_left(group, clock, actions);
}

void rebalance_tick(struct consumer_group *group, struct group_clock clock,
                    struct group_actions *actions)
{
    if (group->rebalance_due_us <= clock.now_us) {
        if (!extend_initial_delay(group, clock)) complete(group, clock, actions);
    } else if (group->sync_due_us <= clock.now_us) {
        drop_unsynced(group, clock, actions);
    }
}

void group_drop_member(struct consumer_group *group, struct consumer_member *member,
                       struct group_actions *actions)
{
    answer_join(group, member, STATUS_UNKNOWN_MEMBER, actions);
    answer_sync(member, STATUS_UNKNOWN_MEMBER, actions);
    member_drop(group, member);
}

void group_members_left(struct consumer_group *group, struct group_clock clock,
                        struct group_actions *actions)
{
    if (group->state == CONSUMER_GROUP_PREPARING) {
        rebalance_try_complete(group, clock, actions);
    } else if (group->state != CONSUMER_GROUP_EMPTY) {
        rebalance_prepare(group, clock, actions);
    }
}

/* ---- joining ---- */

static void park_join(struct consumer_group *group, struct consumer_member *member,
                      struct group_waiter *waiter, struct group_actions *actions)
{
    if (member->joining != NULL) {
        /* The same member again, the first question's connection being gone. */
        struct group_waiter *former = member->joining;
        member->joining = NULL;
        answer(actions, former, STATUS_REBALANCE_IN_PROGRESS, NULL);
    }
    if (!member->awaiting_join) group->awaiting_join_count++;
    member->awaiting_join = true;
    member->joining = waiter;
    waiter->member = member;
    if (!member->fresh) member->due_us = CONSUMER_GROUP_NEVER_US;
}

static void go_on(struct consumer_group *group, struct group_clock clock,
                  struct group_actions *actions)
{
    if (group->state == CONSUMER_GROUP_PREPARING) {
        rebalance_try_complete(group, clock, actions);
    } else {
        rebalance_prepare(group, clock, actions);
    }
}

static void add_and_rebalance(struct consumer_group *group, const struct consumer_join *join,
                              struct slice id, struct group_waiter *waiter,
                              struct group_clock clock, struct group_actions *actions)
{
    struct consumer_member *member = member_add(group, join, id);
    if (group->protocol_type.data == NULL || group->member_count == 1) {
        struct slice copy = group_copy(group, join->protocol_type);
        group_release(group, &group->protocol_type);
        group->protocol_type = copy;
    }
    if (group->leader == NULL) group->leader = member;
    park_join(group, member, waiter, actions);
    /* It does not know its id yet, so nobody would hear whether it is alive. */
    member->fresh = true;
    member->named = join->member_id.bytes > 0;
    member->due_us = clock.now_us + CONSUMER_GROUP_NEW_MEMBER_US;
    group_due_by(group, member->due_us);
    if (group->state == CONSUMER_GROUP_PREPARING && group->initial) group->newcomers = true;
    go_on(group, clock, actions);
}

static void update_and_rebalance(struct consumer_group *group, struct consumer_member *member,
                                 const struct consumer_join *join, struct group_waiter *waiter,
                                 struct group_clock clock, struct group_actions *actions)
{
    member_update(group, member, join);
    park_join(group, member, waiter, actions);
    go_on(group, clock, actions);
}

/* The generation as it is, once more. */
static void answer_current(struct consumer_group *group, struct consumer_member *member,
                           struct group_waiter *waiter, struct group_clock clock,
                           struct group_actions *actions)
{
    park_join(group, member, waiter, actions);
    session_begin(group, member, clock);
    answer_join(group, member, STATUS_OK, actions);
}

static void join_known(struct consumer_group *group, struct consumer_member *member,
                       const struct consumer_join *join, struct group_waiter *waiter,
                       struct group_clock clock, struct group_actions *actions)
{
    bool same = member_has_protocols(member, join);
    bool current = (group->state == CONSUMER_GROUP_COMPLETING && same) ||
                   (group->state == CONSUMER_GROUP_STABLE && same && group->leader != member);
    if (current && !member->replaced) {
        answer_current(group, member, waiter, clock, actions);
    } else {
        update_and_rebalance(group, member, join, waiter, clock, actions);
    }
}

static void refuse_former(struct consumer_group *group, struct consumer_member *member,
                          struct group_actions *actions)
{
    answer_join(group, member, STATUS_FENCED_INSTANCE, actions);
    answer_sync(member, STATUS_FENCED_INSTANCE, actions);
}

/* A static member came back without its id: it takes its old place with a new one. */
static void replace_static(struct consumer_group *group, struct consumer_member *member,
                           const struct consumer_join *join, struct group_waiter *waiter,
                           struct group_clock clock, struct group_actions *actions)
{
    refuse_former(group, member, actions);
    member->unheard = false;
    struct slice before = group_copy(group, member_metadata(member, group->protocol));
    member_set_id(group, member, join->new_id);
    member_update(group, member, join);
    session_begin(group, member, clock);
    bool same = group->state == CONSUMER_GROUP_STABLE &&
                group_slices_equal(protocols_vote(group), group->protocol) &&
                group_slices_equal(member_metadata(member, group->protocol), before);
    group_release(group, &before);
    if (same) {
        /* Told when the new id is on record: after a failover it must be known. */
        member->replaced = true;
        member->joining = waiter;
        waiter->member = member;
        group_want_stored(group, actions);
        return;
    }
    park_join(group, member, waiter, actions);
    go_on(group, clock, actions);
}

enum status consumer_join_check(const struct consumer_join *join,
                                const struct consumer_group_limits *limits)
{
    bool long_text = join->member_id.bytes > CONSUMER_GROUP_TEXT_BYTES_MAX ||
                     join->instance_id.bytes > CONSUMER_GROUP_TEXT_BYTES_MAX ||
                     join->client_id.bytes > CONSUMER_GROUP_TEXT_BYTES_MAX ||
                     join->protocol_type.bytes > CONSUMER_GROUP_TEXT_BYTES_MAX;
    for (uint32_t i = 0; i < join->protocol_count && i < CONSUMER_GROUP_PROTOCOLS_MAX; i++)
        long_text |= join->protocols[i].name.bytes > CONSUMER_GROUP_TEXT_BYTES_MAX;
    if (long_text) return STATUS_INVALID;
    if (join->session_timeout_ms < limits->session_timeout_ms_min ||
        join->session_timeout_ms > limits->session_timeout_ms_max) {
        return STATUS_SESSION_TIMEOUT_RANGE;
    }
    return STATUS_OK;
}

static enum status check_protocols(const struct consumer_group *group,
                                   const struct consumer_member *member,
                                   const struct consumer_join *join)
{
    if (join->protocol_type.bytes == 0 || join->protocol_count == 0 ||
        join->protocol_count > CONSUMER_GROUP_PROTOCOLS_MAX) {
        return STATUS_GROUP_PROTOCOL;
    }
    if (group->member_count == 0) return STATUS_OK;
    if (!group_slices_equal(join->protocol_type, group->protocol_type) ||
        !protocols_fit(group, member, join)) {
        return STATUS_GROUP_PROTOCOL;
    }
    return STATUS_OK;
}

/* Is there room for what it brings? */
static enum status check_room(const struct consumer_group *group,
                              const struct consumer_member *member,
                              const struct consumer_join *join)
{
    if (group->bytes + member_bytes(join) > CONSUMER_GROUP_BYTES_MAX) return STATUS_GROUP_FULL;
    bool room = member != NULL || group->member_count < group->limits->members_max;
    return room ? STATUS_OK : STATUS_GROUP_FULL;
}

/* The member it speaks for; NULL with OK: it has none yet. */
static enum status find_member(const struct consumer_group *group, const struct consumer_join *join,
                               struct consumer_member **out)
{
    *out = NULL;
    if (join->member_id.bytes == 0) {
        *out = member_find_instance(group, join->instance_id);
        return STATUS_OK;
    }
    if (pending_find(group, join->member_id) != NULL) {
        return join->instance_id.data == NULL ? STATUS_OK : STATUS_UNKNOWN_MEMBER;
    }
    return group_identify(group, join->member_id, join->instance_id, out);
}

static void give_id(struct consumer_group *group, const struct consumer_join *join,
                    struct group_clock clock)
{
    if (HASH_COUNT(group->pending) >= group->limits->members_max) {
        pending_drop(group, group->pending);
    }
    int64_t due_us = clock.now_us + (int64_t)join->session_timeout_ms * 1000;
    pending_add(group, join->new_id, due_us);
    group_due_by(group, due_us);
}

static void join_new(struct consumer_group *group, const struct consumer_join *join,
                     struct group_waiter *waiter, struct group_clock clock,
                     struct group_actions *actions)
{
    struct pending_member *pending = pending_find(group, join->member_id);
    if (pending != NULL) {
        pending_drop(group, pending);
        add_and_rebalance(group, join, join->member_id, waiter, clock, actions);
    } else if (join->instance_id.data == NULL && join->id_required) {
        give_id(group, join, clock);
        answer(actions, waiter, STATUS_MEMBER_ID_REQUIRED, NULL);
    } else {
        add_and_rebalance(group, join, join->new_id, waiter, clock, actions);
    }
}

void consumer_group_join(struct consumer_group *group, const struct consumer_join *join,
                         struct group_waiter *waiter, struct group_clock clock,
                         struct group_actions *actions)
{
    ASSERT(waiter->member == NULL && join->new_id.bytes > 0);
    struct consumer_member *member = NULL;
    enum status status = consumer_join_check(join, group->limits);
    if (status == STATUS_OK) status = find_member(group, join, &member);
    if (status == STATUS_OK) status = check_protocols(group, member, join);
    if (status == STATUS_OK) status = check_room(group, member, join);
    if (status != STATUS_OK) {
        answer(actions, waiter, status, NULL);
    } else if (member == NULL) {
        join_new(group, join, waiter, clock, actions);
    } else if (join->member_id.bytes == 0) {
        replace_static(group, member, join, waiter, clock, actions);
    } else {
        join_known(group, member, join, waiter, clock, actions);
    }
}
