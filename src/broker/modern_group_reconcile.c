/* modern_group_reconcile.c: a member's way to its target, and the time-outs on it.
 *
 * A partition goes from one to another in two steps: first the old owner reports what it owns
 * without it (or is taken out), and only then is it among what the new one has. See
 * modern_group.h. */
#include "broker/classic_member.h"
#include "broker/modern_group_state.h"

static bool is_elsewhere(const struct modern_group *group, const struct modern_member *member,
                         const struct partition_id *id)
{
    for (uint32_t i = 0; i < group->member_count; i++) {
        const struct modern_member *other = group->members[i];
        if (other == member) continue;
        if (partition_set_contains(&other->assigned, id) ||
            partition_set_contains(&other->revoking, id))
            return true;
    }
    return false;
}

/* What of `wanted` nobody else has. */
static void take_free(const struct modern_group *group, const struct modern_member *member,
                      const struct partition_set *wanted, struct partition_set *out)
{
    for (uint32_t i = 0; i < wanted->count; i++) {
        const struct partition_id *id = &wanted->items[i];
        if (!is_elsewhere(group, member, id)) partition_set_append(out, &id->topic, id->partition);
    }
}

bool modern_group_target_is_free(const struct modern_group *group,
                                 const struct modern_member *member)
{
    for (uint32_t i = 0; i < member->target.count; i++)
        if (is_elsewhere(group, member, &member->target.items[i])) return false;
    return true;
}

static bool still_owns(const struct partition_set *owned, const struct partition_set *lost)
{
    return lost->count > 0 && (owned == NULL || partition_set_overlaps(owned, lost));
}

/* The next current assignment; `next` takes the sets over. */
static void next_assignment(const struct modern_group *group, const struct modern_member *member,
                            const struct partition_set *owned, struct modern_record *next)
{
    struct partition_set kept = {0}, lost = {0}, wanted = {0}, free_now = {0};
    partition_set_intersect(&kept, &member->assigned, &member->target);
    partition_set_subtract(&lost, &member->assigned, &member->target);
    if (still_owns(owned, &lost)) {
        next->state = MODERN_MEMBER_UNREVOKED;
        partition_set_move(&next->partitions, &kept);
        partition_set_move(&next->revoking, &lost);
        return;
    }
    partition_set_subtract(&wanted, &member->target, &kept);
    take_free(group, member, &wanted, &free_now);
    next->state = free_now.count == wanted.count ? MODERN_MEMBER_STABLE : MODERN_MEMBER_UNRELEASED;
    partition_set_unite(&next->partitions, &kept, &free_now);
    if (member->epoch != group->target_epoch) {
        next->previous_epoch = member->epoch;
        next->epoch = group->target_epoch;
    }
    partition_set_deinit(&kept);
    partition_set_deinit(&lost);
    partition_set_deinit(&wanted);
    partition_set_deinit(&free_now);
}

static bool is_news(const struct modern_member *member, const struct modern_record *next)
{
    return member->epoch != next->epoch || member->state != next->state ||
           !partition_set_equal(&member->assigned, &next->partitions) ||
           !partition_set_equal(&member->revoking, &next->revoking);
}

/* The time-out runs from when the member was told what to give up; a classic one is told with a
 * heartbeat (modern_group_classic.c). */
static void set_rebalance_timer(struct modern_member *member, bool told, int64_t now_us)
{
    if (modern_member_is_classic(member)) return;
    if (member->state != MODERN_MEMBER_UNREVOKED) {
        member->rebalance_due_us = 0;
    } else if (told || member->rebalance_due_us == 0) {
        member->rebalance_due_us = now_us + member->settings.rebalance_timeout_ms * INT64_C(1000);
    }
}

void modern_group_reconcile(struct modern_group *group, const struct modern_group_step *step,
                            struct modern_member *member, const struct partition_set *owned)
{
    bool told = false;
    if (member->state == MODERN_MEMBER_STABLE && member->epoch == group->target_epoch) return;
    if (member->state == MODERN_MEMBER_UNREVOKED && still_owns(owned, &member->revoking)) return;
    struct modern_record next = {.type = MODERN_RECORD_MEMBER_CURRENT,
                                 .group = group->id,
                                 .member = member->id,
                                 .epoch = member->epoch,
                                 .previous_epoch = member->previous_epoch};
    next_assignment(group, member, owned, &next);
    if (is_news(member, &next)) {
        told = !partition_set_equal(&member->revoking, &next.revoking);
        modern_group_emit(group, step->records, &next);
    }
    set_rebalance_timer(member, told, step->now_us);
    modern_record_deinit(&next);
}

/* ---- time ---- */

void modern_member_begin_session(struct modern_member *member,
                                 const struct modern_group_options *options, int64_t now_us)
{
    struct classic_member classic;
    int32_t timeout_ms = options->session_timeout_ms;
    if (classic_member_read(member->settings.classic, &classic))
        timeout_ms = classic.session_timeout_ms;
    member->session_due_us = now_us + timeout_ms * INT64_C(1000);
}

/* Begun anew; one that a classic member had stays. */
static void restart_timers(struct modern_member *member, const struct modern_group_options *options,
                           int64_t now_us)
{
    modern_member_begin_session(member, options, now_us);
    if (member->rebalance_due_us != 0)
        member->rebalance_due_us = now_us + member->settings.rebalance_timeout_ms * INT64_C(1000);
    set_rebalance_timer(member, true, now_us);
}

void modern_group_start_timers(struct modern_group *group,
                               const struct modern_group_options *options, int64_t now_us)
{
    for (uint32_t i = 0; i < group->member_count; i++)
        restart_timers(group->members[i], options, now_us);
}

static int64_t member_due(const struct modern_member *member)
{
    int64_t due = INT64_MAX;
    if (member->session_due_us != 0) due = member->session_due_us;
    if (member->rebalance_due_us != 0 && member->rebalance_due_us < due)
        due = member->rebalance_due_us;
    return due;
}

int64_t modern_group_next_due(const struct modern_group *group)
{
    int64_t due = INT64_MAX;
    for (uint32_t i = 0; i < group->member_count; i++) {
        int64_t next = member_due(group->members[i]);
        if (next < due) due = next;
    }
    return due;
}

void modern_group_expire(struct modern_group *group, const struct modern_group_step *step)
{
    bool changed = false;
    for (uint32_t i = 0; i < group->member_count;) {
        struct modern_member *member = group->members[i];
        if (member_due(member) > step->now_us) {
            i++;
            continue;
        }
        modern_group_remove(group, step->records, member);
        changed = true;
    }
    if (changed) modern_group_refresh(group, step, true);
}
