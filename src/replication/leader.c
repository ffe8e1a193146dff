/* leader.c: life of a leadership: partitions, high watermarks, the committed manifest version. */
#include "replication/leader_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/mutant.h"

static const char *const why_texts[ISR_WHY_COUNT] = {"lag",   "gone",   "refused",
                                                     "stall", "failed", "caught_up"};

const char *isr_why_text(enum isr_why why)
{
    ASSERT(why < ISR_WHY_COUNT);
    return why_texts[why];
}

struct leader *leader_new(const struct leader_options *options)
{
    struct leader *leader = calloc(1, sizeof(*leader));
    if (leader == NULL) return NULL;
    leader->options = *options;
    random_seed(&leader->random, options->random_seed);
    leader->committed = (struct manifest_version){-1, 0};
    leader->serving_since_us = -1;
    leader->wake_timer = timer_new(options->loop, leader_wake_all, leader);
    leader->marks_timer = timer_new(options->loop, leader_wake_marks, leader);
    int64_t now = leader_now(leader);
    for (uint32_t i = 0; i < options->member_count; i++) {
        struct follower *follower = &leader->followers[i];
        follower->member = i;
        follower->fetched_us = follower->raft_us = -1;
        follower->good_since_us = -1;
        follower->incomplete_since_us = now;
        follower->bytes_wait_since_us = -1;
        follower->applied = (struct manifest_version){-1, 0};
    }
    leader->forgiven_until_us = now;
    struct topic *topic = NULL;
    while ((topic = catalog_next(options->broker, topic)) != NULL) {
        for (uint32_t i = 0; i < topic_partition_count(topic); i++) {
            leader_partition_added(leader, topic_partition(topic, i));
        }
    }
    return leader;
}

static void leader_destroy(void *context)
{
    struct leader *leader = context;
    for (uint32_t i = 0; i < leader->options.member_count; i++) {
        struct follower *follower = &leader->followers[i];
        follower_drop_session(leader, follower);
        free(follower->slots);
        free(follower->parked.entries);
        free(follower->parked.pieces);
    }
    struct leader_partition *of, *next;
    DL_FOREACH_SAFE(leader->partitions, of, next)
    {
        free(of);
    }
    free(leader->seen);
    free(leader);
}

/* Everything outside lets go of it now; its memory goes when the callback that led here, maybe from
 * inside one of its own functions, has returned. */
void leader_free(struct leader *leader, int32_t leader_id, int32_t epoch)
{
    ASSERT(!leader->dead);
    leader->dead = true;
    for (uint32_t i = 0; i < leader->options.member_count; i++) {
        struct follower *follower = &leader->followers[i];
        follower_refuse_parked(leader, follower, 409, "not_leader", leader_id, epoch);
        if (follower->cold != NULL) follower->cold->leader = NULL;
        follower->cold = NULL;
    }
    struct leader_partition *of;
    DL_FOREACH(leader->partitions, of)
    {
        partition_set_replica(of->partition, NULL);
    }
    timer_free(leader->wake_timer);
    timer_free(leader->marks_timer);
    leader->wake_timer = leader->marks_timer = NULL;
    loop_defer(leader->options.loop, leader_destroy, leader);
}

void leader_partition_added(struct leader *leader, struct partition *partition)
{
    struct leader_partition *of = calloc(1, sizeof(*of));
    ASSERT(of != NULL);
    of->leader = leader;
    of->partition = partition;
    partition_set_replica(partition, of);
    DL_APPEND(leader->partitions, of);
    leader->partition_count++;
}

void leader_partition_removed(struct leader *leader, struct partition *partition)
{
    struct leader_partition *of = partition_replica(partition);
    if (of == NULL) return;
    for (uint32_t i = 0; i < leader->options.member_count; i++) {
        struct position *position = of->positions[i];
        if (position == NULL) continue;
        struct follower *follower = &leader->followers[i];
        if (position->failed || position->conflict) follower->failed_count--;
        if (position->apart) follower->apart_count--;
        position->failed = position->conflict = position->apart = false;
        position->of = NULL;
        position->error = WIRE_ERROR_UNKNOWN_UID;
        position->told_error = false;
        follower->defined--;
        position_update_lag(leader, position, false);
        position_add_news(leader, position);
    }
    partition_set_replica(partition, NULL);
    DL_DELETE(leader->partitions, of);
    leader->partition_count--;
    free(of);
}

/* The durable offset of a member that may be counted for this partition; 0: nothing known. */
static int64_t counted_position(const struct leader *leader, const struct leader_partition *of,
                                uint32_t member)
{
    const struct follower *follower = &leader->followers[member];
    const struct leader_member *known = &leader->group.members[member];
    const struct position *position = of->positions[member];
    if (position == NULL || follower->amnesia) return 0;
    bool same = known->counts && uuid_equal(&known->incarnation, &follower->incarnation);
    if (!same && !MUTANT(7)) return 0;
    if (position->failed || position->conflict || position->apart) return 0;
    return MUTANT(10) ? position->fetch_offset : position->durable;
}

/* HW = the lowest durable position over the waited-on set, own included; frozen while the recorded
 * ISR is below the minimum (section 7, I10). */
void leader_update_high_watermark(struct leader *leader, struct leader_partition *of)
{
    const struct leader_group *group = &leader->group;
    int32_t min_insync = leader->options.config->min_insync;
    if (__builtin_popcount(group->isr_mask) < min_insync && !MUTANT(6)) return;
    if (partition_log_failed(partition_log_of(of->partition)) && !MUTANT(19)) return;
    uint32_t waited = group->waited_mask | leader->courted | 1u << leader->options.self;
    int64_t lowest =
        MUTANT(10) ? partition_log_end(of->partition) : partition_durable(of->partition);
    for (uint32_t i = 0; i < leader->options.member_count; i++) {
        if (i == leader->options.self || !(waited >> i & 1)) continue;
        int64_t position = counted_position(leader, of, i);
        if (position < lowest) lowest = position;
    }
    if (lowest <= partition_high_watermark(of->partition)) return;
    partition_set_high_watermark(of->partition, lowest);
    if (leader->dead) return; /* an answer led to its end */
    for (uint32_t i = 0; i < leader->options.member_count; i++) {
        if (of->positions[i] != NULL) position_add_news(leader, of->positions[i]);
    }
}

int64_t leader_followers_start(const struct leader *leader, const struct partition *partition)
{
    const struct leader_partition *of = partition_replica(partition);
    uint32_t waited = leader->group.waited_mask | leader->courted;
    int64_t lowest = INT64_MAX;
    for (uint32_t i = 0; of != NULL && i < leader->options.member_count; i++) {
        if (i == leader->options.self || !(waited >> i & 1)) continue;
        int64_t start = of->positions[i] == NULL ? -1 : of->positions[i]->follower_start;
        if (start < lowest) lowest = start;
    }
    return lowest;
}

int64_t leader_copied_to(const struct leader *leader, const struct partition *partition)
{
    const struct leader_partition *of = partition_replica(partition);
    int64_t lowest = INT64_MAX;
    for (uint32_t i = 0; of != NULL && i < leader->options.member_count; i++) {
        const struct position *position = of->positions[i];
        if (position == NULL || position->failed || position->conflict) continue;
        if (position->fetch_offset < lowest) lowest = position->fetch_offset;
    }
    return lowest;
}

void leader_update_all_high_watermarks(struct leader *leader)
{
    struct leader_partition *of;
    DL_FOREACH(leader->partitions, of)
    {
        leader_update_high_watermark(leader, of);
        if (leader->dead) return;
    }
}

/* The highest version that every waited-on member reported, at least the minimum of them (wire S5).
 */
void leader_update_committed(struct leader *leader)
{
    struct broker *broker = leader->options.broker;
    uint32_t waited = leader->group.waited_mask | 1u << leader->options.self;
    if (__builtin_popcount(leader->group.isr_mask) < leader->options.config->min_insync) return;
    struct manifest_version lowest = catalog_durable_version(broker);
    struct manifest_version everyone = lowest;
    for (uint32_t i = 0; i < leader->options.member_count; i++) {
        if (i == leader->options.self) continue;
        const struct follower *follower = &leader->followers[i];
        const struct leader_member *known = &leader->group.members[i];
        bool counted = known->counts && !follower->amnesia &&
                       (uuid_equal(&known->incarnation, &follower->incarnation) || MUTANT(7));
        struct manifest_version applied =
            counted ? follower->applied : (struct manifest_version){-1, 0};
        if (manifest_version_compare(applied, everyone) < 0) everyone = applied;
        if (!(waited >> i & 1)) continue;
        if (manifest_version_compare(applied, lowest) < 0) lowest = applied;
    }
    catalog_forget_tombstones(broker, everyone);
    if (manifest_version_compare(lowest, leader->committed) <= 0) return;
    leader->committed = lowest;
    leader->options.handlers.manifest_committed(leader->options.handlers.context, lowest);
    if (leader->dead) return;
    for (uint32_t i = 0; i < leader->options.member_count; i++) {
        follower_wake(leader, &leader->followers[i]);
    }
}

/* Positions, sequence numbers and sessions belong to an incarnation (FINDINGS 6). */
static void forget_other_incarnations(struct leader *leader)
{
    for (uint32_t i = 0; i < leader->options.member_count; i++) {
        struct follower *follower = &leader->followers[i];
        const struct leader_member *known = &leader->group.members[i];
        follower->learner =
            !known->counts || !uuid_equal(&known->incarnation, &follower->incarnation);
    }
}

void leader_set_group(struct leader *leader, const struct leader_group *group)
{
    uint32_t waited_before = leader->group.waited_mask, isr_before = leader->group.isr_mask;
    uint32_t left = isr_before & ~group->isr_mask;
    bool counts_changed =
        memcmp(leader->group.members, group->members, sizeof(group->members)) != 0;
    leader->group = *group;
    forget_other_incarnations(leader);
    for (uint32_t i = 0; i < leader->options.member_count; i++) {
        if (left >> i & 1) {
            leader->followers[i].left_before = true;
            leader->followers[i].good_since_us = -1;
        }
    }
    if (waited_before != group->waited_mask || isr_before != group->isr_mask || counts_changed) {
        leader_update_all_high_watermarks(leader);
        if (!leader->dead) leader_update_committed(leader);
    }
    if (!leader->dead) leader_judge(leader);
}

void leader_appended(struct leader *leader, struct partition *partition)
{
    struct leader_partition *of = partition_replica(partition);
    if (of == NULL) return;
    for (uint32_t i = 0; i < leader->options.member_count; i++) {
        struct position *position = of->positions[i];
        if (position == NULL) {
            follower_bytes_wait(leader, &leader->followers[i]);
            continue;
        }
        position_update_lag(leader, position, false);
        position_add_news(leader, position);
    }
    if (MUTANT(10)) leader_update_high_watermark(leader, of);
}

void leader_partition_changed(struct leader *leader, struct partition *partition)
{
    struct leader_partition *of = partition_replica(partition);
    if (of == NULL) return;
    for (uint32_t i = 0; i < leader->options.member_count; i++) {
        if (of->positions[i] != NULL) position_add_news(leader, of->positions[i]);
    }
}

void leader_durable(struct leader *leader, struct partition *partition)
{
    struct leader_partition *of = partition_replica(partition);
    if (of != NULL) leader_update_high_watermark(leader, of);
}

void leader_manifest_changed(struct leader *leader)
{
    leader_update_committed(leader);
    if (leader->dead) return;
    for (uint32_t i = 0; i < leader->options.member_count; i++) {
        follower_wake(leader, &leader->followers[i]);
    }
}

/* Of those that did not come yet: what is above the high watermarks waits for them, too. */
static void note_waiting_tails(struct leader *leader)
{
    const struct leader_partition *of;
    DL_FOREACH(leader->partitions, of)
    {
        if (partition_log_end(of->partition) == partition_high_watermark(of->partition)) continue;
        for (uint32_t i = 0; i < leader->options.member_count; i++) {
            if (of->positions[i] == NULL) follower_bytes_wait(leader, &leader->followers[i]);
        }
        return;
    }
}

void leader_serving(struct leader *leader)
{
    leader->serving_since_us = leader_now(leader);
    leader_update_all_high_watermarks(leader);
    if (!leader->dead) leader_update_committed(leader);
    if (leader->dead) return;
    note_waiting_tails(leader);
    leader_judge(leader);
}

void leader_handing_over(struct leader *leader, bool handing_over)
{
    if (leader->handing_over == handing_over) return;
    leader->handing_over = handing_over;
    for (uint32_t i = 0; i < leader->options.member_count; i++) {
        leader->followers[i].parked.force = true;
        follower_wake(leader, &leader->followers[i]);
    }
}

struct manifest_version leader_committed_manifest(const struct leader *leader)
{
    return leader->committed;
}

bool leader_member_caught_up(const struct leader *leader, uint32_t member)
{
    const struct follower *follower = &leader->followers[member];
    return follower->session != 0 && follower->defined == leader->partition_count &&
           follower->lag == NULL && follower->failed_count == 0 && follower->apart_count == 0 &&
           !follower->amnesia;
}

void leader_follower_facts(const struct leader *leader, uint32_t member,
                           struct leader_follower_facts *out)
{
    const struct follower *follower = &leader->followers[member];
    int64_t now = leader_now(leader);
    memset(out, 0, sizeof(*out));
    out->connected = follower->session != 0;
    out->learner = follower->learner;
    out->in_sync = leader->in_sync >> member & 1;
    int64_t heard =
        follower->fetched_us > follower->raft_us ? follower->fetched_us : follower->raft_us;
    out->last_contact_us = heard < 0 ? -1 : now - heard;
    const struct position *position;
    DL_FOREACH2(follower->lag, position, lag_next)
    {
        struct partition_log *log = partition_log_of(position->of->partition);
        int64_t records = partition_log_end_offset(log) - position->durable;
        int64_t span = partition_log_end_offset(log) - partition_log_start_offset(log);
        out->lag_records += records;
        /* Bytes are in proportion: positions are offsets, and batches differ in size. */
        if (span > 0) {
            out->lag_bytes +=
                (int64_t)((double)partition_log_bytes(log) * (double)records / (double)span);
        }
    }
    if (follower->lag != NULL) out->durable_lag_us = now - follower->lag->lag_since_us;
}

int leader_best_successor(const struct leader *leader)
{
    int best = -1;
    int64_t best_lag = 0;
    for (uint32_t i = 0; i < leader->options.member_count; i++) {
        if (i == leader->options.self || !(leader->group.isr_mask >> i & 1)) continue;
        if (!(leader->in_sync >> i & 1) || !leader->group.members[i].counts) continue;
        struct leader_follower_facts facts;
        leader_follower_facts(leader, i, &facts);
        if (best < 0 || facts.lag_records < best_lag) {
            best = (int)i;
            best_lag = facts.lag_records;
        }
    }
    return best;
}
