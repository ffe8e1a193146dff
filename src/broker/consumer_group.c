/* consumer_group.c: the life of a group, its answers, its timers, and what may be asked of it. */
#include "broker/consumer_group.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "broker/consumer_group_state.h"
#include "broker/consumer_protocol.h"

void consumer_group_limits_default(struct consumer_group_limits *limits)
{
    *limits = (struct consumer_group_limits){
        .session_timeout_ms_min = 6000,
        .session_timeout_ms_max = 1800000,
        .initial_delay_us = 3000000,
        .members_max = CONSUMER_GROUP_MEMBERS_MAX,
    };
}

void group_actions_init(struct group_actions *actions)
{
    *actions = (struct group_actions){0};
}

void group_actions_deinit(struct group_actions *actions)
{
    free(actions->answers);
}

struct consumer_group *consumer_group_new(struct slice id,
                                          const struct consumer_group_limits *limits)
{
    struct consumer_group *group = memory_new(sizeof(*group));
    group->limits = limits;
    group->id = group_copy(group, id.data != NULL ? id : (struct slice){(const uint8_t *)"", 0});
    group->state_timestamp_ms = -1;
    group->rebalance_due_us = CONSUMER_GROUP_NEVER_US;
    group->sync_due_us = CONSUMER_GROUP_NEVER_US;
    group->due_us = CONSUMER_GROUP_NEVER_US;
    return group;
}

void consumer_group_free(struct consumer_group *group)
{
    if (group == NULL) return;
    while (group->members != NULL) {
        group->members->joining = group->members->syncing = NULL;
        member_drop(group, group->members);
    }
    while (group->pending != NULL)
        pending_drop(group, group->pending);
    group_release(group, &group->id);
    group_release(group, &group->protocol_type);
    group_release(group, &group->protocol);
    ASSERT(group->support_count == 0 && group->bytes == 0);
    free(group->supports);
    free(group);
}

/* ---- restored ---- */

static void restore_member(struct consumer_group *group, const struct group_record *record,
                           const struct group_record_member *from, struct group_clock clock)
{
    if (from->id.bytes == 0 || member_find(group, from->id) != NULL) return;
    const struct consumer_protocol protocol = {group->protocol, from->subscription};
    const struct consumer_join join = {
        .instance_id = from->instance_id,
        .client_id = from->client_id,
        .client_host = from->client_host,
        .protocols = &protocol,
        .protocol_count = 1,
        .session_timeout_ms = from->session_timeout_ms,
        .rebalance_timeout_ms = from->rebalance_timeout_ms,
    };
    if (member_find_instance(group, from->instance_id) != NULL) return;
    struct consumer_member *member = member_add(group, &join, from->id);
    member_set_assignment(group, member, from->assignment);
    member->synced = true;
    member->unheard = true;
    session_begin(group, member, clock);
    if (record->leader.data != NULL && group_slices_equal(record->leader, from->id)) {
        group->leader = member;
    }
}

/* Nobody waits yet, so nothing is answered. */
static void begin_anew(struct consumer_group *group, struct group_clock clock)
{
    struct group_actions actions;
    group_actions_init(&actions);
    rebalance_prepare(group, clock, &actions);
    ASSERT(actions.answer_count == 0 && !actions.store);
    group_actions_deinit(&actions);
}

struct consumer_group *consumer_group_restore(struct slice id,
                                              const struct consumer_group_limits *limits,
                                              struct group_record *record, struct group_clock clock)
{
    struct consumer_group *group = consumer_group_new(id, limits);
    group->generation = record->generation;
    group->state_timestamp_ms = record->state_timestamp_ms;
    group->protocol_type = group_copy(group, record->protocol_type);
    if (record->member_count == 0) return group;
    group->protocol =
        group_copy(group, record->protocol.data != NULL ? record->protocol
                                                        : (struct slice){(const uint8_t *)"", 0});
    for (uint32_t i = 0; i < record->member_count; i++) {
        struct group_record_member member;
        group_record_next(record, &member);
        restore_member(group, record, &member, clock);
    }
    if (group->leader == NULL) group->leader = group->members;
    group->state = group->member_count > 0 ? CONSUMER_GROUP_STABLE : CONSUMER_GROUP_EMPTY;
    if (group->member_count > 0 && record->leader.data == NULL) begin_anew(group, clock);
    return group;
}

/* ---- small things for the group's files ---- */

void group_due_by(struct consumer_group *group, int64_t due_us)
{
    if (due_us < group->due_us) group->due_us = due_us;
}

void group_set_state(struct consumer_group *group, enum consumer_group_state state,
                     struct group_clock clock)
{
    group->state = state;
    group->state_timestamp_ms = clock.wall_ms;
}

void group_want_stored(struct consumer_group *group, struct group_actions *actions)
{
    group->store_id++;
    group->storing = true;
    actions->store = true;
}

void session_begin(struct consumer_group *group, struct consumer_member *member,
                   struct group_clock clock)
{
    member->due_us = clock.now_us + (int64_t)member->session_timeout_ms * 1000;
    group_due_by(group, member->due_us);
}

int64_t group_rebalance_timeout_us(const struct consumer_group *group)
{
    int64_t timeout_ms = 0;
    for (const struct consumer_member *member = group->members; member != NULL;
         member = member->hh.next) {
        if (member->rebalance_timeout_ms > timeout_ms) timeout_ms = member->rebalance_timeout_ms;
    }
    return timeout_ms * 1000;
}

enum status group_identify(const struct consumer_group *group, struct slice member_id,
                           struct slice instance_id, struct consumer_member **out)
{
    *out = NULL;
    if (instance_id.data != NULL) {
        struct consumer_member *member = member_find_instance(group, instance_id);
        if (member == NULL) return STATUS_UNKNOWN_MEMBER;
        if (!group_slices_equal(member->id, member_id)) {
            /* The leader before may have given it an id and died before that was on record: it
             * joins anew and takes its seat. Fenced, it would be gone for good. */
            return member->unheard ? STATUS_UNKNOWN_MEMBER : STATUS_FENCED_INSTANCE;
        }
        member->unheard = false;
        *out = member;
        return STATUS_OK;
    }
    *out = member_find(group, member_id);
    if (*out != NULL) (*out)->unheard = false;
    return *out != NULL ? STATUS_OK : STATUS_UNKNOWN_MEMBER;
}

/* ---- answers ---- */

void answer(struct group_actions *actions, struct group_waiter *waiter, enum status status,
            const struct consumer_member *member)
{
    if (actions->answer_count == actions->answer_capacity) {
        actions->answer_capacity = actions->answer_capacity * 2 + 4;
        actions->answers =
            memory_resize(actions->answers, actions->answer_capacity, sizeof(*actions->answers));
    }
    waiter->member = NULL;
    actions->answers[actions->answer_count++] = (struct group_answer){
        .waiter = waiter, .status = status, .member = status == STATUS_OK ? member : NULL};
}

void answer_join(struct consumer_group *group, struct consumer_member *member, enum status status,
                 struct group_actions *actions)
{
    bool leads = group->leader == member;
    bool replaced = member->replaced;
    if (member->awaiting_join) group->awaiting_join_count--;
    member->awaiting_join = false;
    member->replaced = false;
    member->fresh = false;
    struct group_waiter *waiter = member->joining;
    member->joining = NULL;
    if (waiter == NULL) return;
    answer(actions, waiter, status, member);
    struct group_answer *last = &actions->answers[actions->answer_count - 1];
    if (status != STATUS_OK) return;
    last->leader = group->leader->id;
    last->lists_members = leads;
    if (!replaced || !leads) return;
    /* It came back with another id and the assignment stands: it must not assign again. One that
     * can't be told so is told that somebody else leads. */
    last->skip_assignment = member->skips_assignment;
    last->lists_members = member->skips_assignment;
    if (!member->skips_assignment) last->leader = member->former_id;
}

void answer_sync(struct consumer_member *member, enum status status, struct group_actions *actions)
{
    struct group_waiter *waiter = member->syncing;
    member->awaiting_sync = false;
    member->syncing = NULL;
    if (waiter != NULL) answer(actions, waiter, status, member);
}

void consumer_group_cancel(struct group_waiter *waiter)
{
    struct consumer_member *member = waiter->member;
    if (member == NULL) return;
    if (member->joining == waiter) member->joining = NULL;
    if (member->syncing == waiter) member->syncing = NULL;
    waiter->member = NULL;
}

void consumer_group_refuse_all(struct consumer_group *group, enum status status,
                               struct group_actions *actions)
{
    for (struct consumer_member *member = group->members; member != NULL;
         member = member->hh.next) {
        answer_join(group, member, status, actions);
        answer_sync(member, status, actions);
    }
}

/* ---- timers ---- */

/* False: nobody was overdue. */
static bool expire_sessions(struct consumer_group *group, struct group_clock clock,
                            struct group_actions *actions)
{
    bool left = false, dropped = false;
    struct consumer_member *member, *next;
    for (member = group->members; member != NULL; member = next) {
        next = member->hh.next;
        if (member->due_us > clock.now_us) continue;
        group_drop_member(group, member, actions);
        left = true;
    }
    struct pending_member *pending, *after;
    for (pending = group->pending; pending != NULL; pending = after) {
        after = pending->hh.next;
        if (pending->due_us > clock.now_us) continue;
        pending_drop(group, pending);
        dropped = true;
    }
    if (left) {
        group_members_left(group, clock, actions);
    } else if (dropped) {
        rebalance_try_complete(group, clock, actions);
    }
    return left || dropped;
}

static void find_next_due(struct consumer_group *group)
{
    group->due_us = group->rebalance_due_us;
    group_due_by(group, group->sync_due_us);
    for (const struct consumer_member *member = group->members; member != NULL;
         member = member->hh.next) {
        group_due_by(group, member->due_us);
    }
    for (const struct pending_member *pending = group->pending; pending != NULL;
         pending = pending->hh.next) {
        group_due_by(group, pending->due_us);
    }
}

void consumer_group_tick(struct consumer_group *group, struct group_clock clock,
                         struct group_actions *actions)
{
    if (clock.now_us < group->due_us) return;
    /* One step at a time: its answers tell the group as it is then. What else is due now is the
     * next tick's, at once. */
    if (!expire_sessions(group, clock, actions)) rebalance_tick(group, clock, actions);
    find_next_due(group);
}

void consumer_group_restart_sessions(struct consumer_group *group, struct group_clock clock)
{
    for (struct consumer_member *member = group->members; member != NULL;
         member = member->hh.next) {
        if (member->due_us != CONSUMER_GROUP_NEVER_US && !member->fresh) {
            session_begin(group, member, clock);
        }
    }
}

/* ---- questions ---- */

struct slice consumer_group_id(const struct consumer_group *group)
{
    return group->id;
}

enum consumer_group_state consumer_group_state(const struct consumer_group *group)
{
    return group->state;
}

int32_t consumer_group_generation(const struct consumer_group *group)
{
    return group->generation;
}

uint32_t consumer_group_member_count(const struct consumer_group *group)
{
    return group->member_count;
}

struct slice consumer_group_protocol_type(const struct consumer_group *group)
{
    if (group->protocol_type.data != NULL) return group->protocol_type;
    return (struct slice){(const uint8_t *)"", 0};
}

struct slice consumer_group_protocol(const struct consumer_group *group)
{
    return group->protocol;
}

size_t consumer_group_bytes(const struct consumer_group *group)
{
    return group->bytes;
}

int64_t consumer_group_due_us(const struct consumer_group *group)
{
    return group->due_us;
}

uint64_t consumer_group_store_id(const struct consumer_group *group)
{
    return group->store_id;
}

bool consumer_group_is_storing(const struct consumer_group *group)
{
    return group->storing;
}

bool consumer_group_is_idle(const struct consumer_group *group)
{
    return group->state == CONSUMER_GROUP_EMPTY && group->pending == NULL && !group->storing;
}

bool consumer_group_reads_topic(const struct consumer_group *group, struct slice topic)
{
    for (const struct consumer_member *member = group->members; member != NULL;
         member = member->hh.next) {
        for (uint32_t i = 0; i < member->protocol_count; i++) {
            if (consumer_subscription_names(member->protocols[i].metadata, topic)) return true;
        }
    }
    return false;
}

const struct consumer_member *consumer_group_next(const struct consumer_group *group,
                                                  const struct consumer_member *after)
{
    return after == NULL ? group->members : after->hh.next;
}

struct consumer_member_view consumer_member_view(const struct consumer_group *group,
                                                 const struct consumer_member *member)
{
    return (struct consumer_member_view){
        .id = member->id,
        .instance_id = member->instance_id,
        .client_id = member->client_id,
        .client_host = member->client_host,
        .metadata = member_metadata(member, group->protocol),
        .assignment = member->assignment,
        .protocols = member->protocols,
        .protocol_count = member->protocol_count,
        .session_timeout_ms = member->session_timeout_ms,
        .rebalance_timeout_ms = member->rebalance_timeout_ms,
        .nameless = member->fresh && !member->named && member->instance_id.data == NULL,
    };
}

void consumer_group_record(const struct consumer_group *group, struct buffer *out)
{
    const struct group_record head = {
        .protocol_type = group->protocol_type,
        .generation = group->generation,
        .protocol = group->member_count > 0 ? group->protocol : (struct slice){0},
        .leader = group->leader != NULL ? group->leader->id : (struct slice){0},
        .state_timestamp_ms = group->state_timestamp_ms,
        .member_count = group->member_count,
    };
    group_record_encode(out, &head);
    for (const struct consumer_member *member = group->members; member != NULL;
         member = member->hh.next) {
        const struct group_record_member record = {
            .id = member->id,
            .instance_id = member->instance_id,
            .client_id = member->client_id,
            .client_host = member->client_host,
            .rebalance_timeout_ms = member->rebalance_timeout_ms,
            .session_timeout_ms = member->session_timeout_ms,
            .subscription = member_metadata(member, group->protocol),
            .assignment = member->assignment,
        };
        group_record_encode_member(out, &record);
    }
}
