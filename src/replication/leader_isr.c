/* leader_isr.c: who is in sync, who must leave the in-sync set, who may join (replication.md
 * section 7).
 *
 * shrink  lagging (has not reached, for IsrLagSeconds, what was the log end when its last mark was
 * reached), stalled (durable stands still for DurableStallMs while bytes wait), a failed or
 * conflicting copy, gone (nothing heard for FollowerGoneMs; at once if its address refuses):
 * proposed out if the minimum still holds. expand  every partition of the current manifest durable
 * to the high watermark and to the epoch's start, manifest applied, held for one FollowerGoneMs if
 * it left before. A leader that finds itself late judges nobody for one FollowerGoneMs (F11). */
#include "base/mutant.h"
#include "replication/leader_internal.h"

/* How many lagging slots a join looks at in one go: more is not "caught up". */
#define JOIN_LAG_MAX 16384
/* Who is near, for how long it is courted, and how soon again. */
#define NEAR_LAG_US    500000
#define COURT_US       200000
#define COURT_AGAIN_US 5000000

struct judgement {
    bool out;
    enum isr_why why;
};

static int64_t heard_us(const struct follower *follower)
{
    return follower->fetched_us > follower->raft_us ? follower->fetched_us : follower->raft_us;
}

static bool is_lagging(const struct leader *leader, const struct follower *follower, int64_t now)
{
    int64_t limit = leader->options.config->isr_lag_us;
    if (follower->incomplete_since_us >= 0 && now - follower->incomplete_since_us > limit) {
        return true;
    }
    return follower->lag != NULL && now - follower->lag->lag_since_us > limit;
}

/* The lag list is in order of marks, not of moves; a stalled slot's mark is old too, so it stands
 * near the head. */
static bool is_stalled(const struct leader *leader, const struct follower *follower, int64_t now)
{
    int64_t limit = leader->options.config->durable_stall_us;
    int looked = 0;
    if (follower->bytes_wait_since_us >= 0 && now - follower->bytes_wait_since_us > limit) {
        return true; /* it does not even ask for them */
    }
    const struct position *position;
    DL_FOREACH2(follower->lag, position, lag_next)
    {
        if (now - position->lag_since_us <= limit || ++looked > JOIN_LAG_MAX) break;
        if (now - position->moved_us > limit) return true;
    }
    return false;
}

static struct judgement judge(const struct leader *leader, const struct follower *follower,
                              int64_t now)
{
    const struct replication_config *config = leader->options.config;
    if (follower->refused) return (struct judgement){true, ISR_WHY_REFUSED};
    if (follower->failed_count > 0 || follower->amnesia) {
        return (struct judgement){true, ISR_WHY_FAILED};
    }
    int64_t heard = heard_us(follower);
    if (heard < leader->serving_since_us) heard = leader->serving_since_us;
    if (now - heard > config->follower_gone_us) return (struct judgement){true, ISR_WHY_GONE};
    if (is_stalled(leader, follower, now)) return (struct judgement){true, ISR_WHY_STALL};
    if (is_lagging(leader, follower, now)) return (struct judgement){true, ISR_WHY_LAG};
    return (struct judgement){false, ISR_WHY_LAG};
}

/* There are bytes in a partition that the follower has not come for. */
void follower_bytes_wait(struct leader *leader, struct follower *follower)
{
    if (follower->bytes_wait_since_us < 0) follower->bytes_wait_since_us = leader_now(leader);
}

static bool is_complete(const struct leader *leader, const struct follower *follower)
{
    return follower->session != 0 && follower->defined == leader->partition_count;
}

static void note_completeness(const struct leader *leader, struct follower *follower, int64_t now)
{
    if (is_complete(leader, follower))
        follower->incomplete_since_us = follower->bytes_wait_since_us = -1;
    else if (follower->incomplete_since_us < 0)
        follower->incomplete_since_us = now;
}

/* All that joining needs, but for the positions. */
static bool is_fit_to_join(const struct leader *leader, const struct follower *follower)
{
    const struct leader_member *known = &leader->group.members[follower->member];
    if (!known->counts && !MUTANT(7)) return false;
    if (!uuid_equal(&known->incarnation, &follower->incarnation) && !MUTANT(7)) return false;
    if (!is_complete(leader, follower) || follower->refused || follower->amnesia) return false;
    if (follower->failed_count > 0 || follower->apart_count > 0) return false;
    return manifest_version_compare(follower->applied, catalog_version(leader->options.broker)) >=
           0;
}

/* Else it could lead, and bring back records that were answered as deleted. */
static bool has_log_starts(const struct follower *follower)
{
    const struct position *position;
    DL_FOREACH2(follower->all, position, all_next)
    {
        if (position->of == NULL) continue;
        if (position->follower_start < partition_log_start(position->of->partition)) return false;
    }
    return true;
}

bool follower_may_join(const struct leader *leader, const struct follower *follower)
{
    if (!is_fit_to_join(leader, follower)) return false;
    int looked = 0;
    const struct position *position;
    if (!has_log_starts(follower)) return false;
    DL_FOREACH2(follower->lag, position, lag_next)
    {
        if (++looked > JOIN_LAG_MAX) return false;
        const struct partition *partition = position->of->partition;
        if (position->durable < partition_high_watermark(partition)) return false;
        if (position->durable < partition_epoch_start(partition) && !MUTANT(3)) return false;
    }
    return true;
}

/* ---- joining ---- */

static void court_end(struct leader *leader)
{
    uint32_t was = leader->courted;
    leader->courted = 0;
    if (was != 0) leader_update_all_high_watermarks(leader);
}

/* Under steady load the high watermark can stay a moment ahead of a replica that is as fast as the
 * others but for a few milliseconds: it would never join (F74). Now and then they wait for it. */
static void court(struct leader *leader, struct follower *follower, int64_t now)
{
    if (leader->courted != 0 || now < follower->court_after_us) return;
    if (__builtin_popcount(leader->group.isr_mask) < leader->options.config->min_insync) return;
    leader->courted = 1u << follower->member;
    leader->court_until_us = now + COURT_US;
    follower->court_after_us = now + COURT_AGAIN_US;
}

/* Fit, and close to all log ends: what it lacks was appended just now. */
static bool is_near(const struct leader *leader, const struct follower *follower, int64_t now)
{
    if (!is_fit_to_join(leader, follower)) return false;
    return follower->lag == NULL || now - follower->lag->lag_since_us < NEAR_LAG_US;
}

/* true: near for as long as it must be, and not below any high watermark at this moment. */
static bool ready_to_join(struct leader *leader, struct follower *follower, int64_t now)
{
    if (!is_near(leader, follower, now)) {
        follower->good_since_us = -1;
        return false;
    }
    if (follower->good_since_us < 0) follower->good_since_us = now;
    int64_t held = now - follower->good_since_us;
    if (follower->left_before && held < leader->options.config->follower_gone_us) return false;
    if (follower_may_join(leader, follower)) return true;
    court(leader, follower, now);
    return false;
}

static uint32_t compute_in_sync(struct leader *leader, int64_t now, struct judgement *judgements)
{
    uint32_t mask = 0;
    for (uint32_t i = 0; i < leader->options.member_count; i++) {
        if (i == leader->options.self) {
            mask |= 1u << i;
            continue;
        }
        struct follower *follower = &leader->followers[i];
        note_completeness(leader, follower, now);
        judgements[i] = judge(leader, follower, now);
        bool recorded = leader->group.isr_mask >> i & 1;
        if (recorded && !judgements[i].out) mask |= 1u << i;
    }
    return mask;
}

/* One change at a time; leaving goes before joining. */
static void propose_one(struct leader *leader, int64_t now, const struct judgement *judgements)
{
    struct leader_handlers *handlers = &leader->options.handlers;
    int members_in = __builtin_popcount(leader->group.isr_mask);
    for (uint32_t i = 0; i < leader->options.member_count; i++) {
        if (i == leader->options.self || !(leader->group.isr_mask >> i & 1)) continue;
        if (!judgements[i].out) continue;
        if (members_in - 1 < leader->options.config->min_insync && !MUTANT(6)) continue;
        if (handlers->propose(handlers->context, i, false, judgements[i].why)) return;
        if (leader->dead) return;
    }
    for (uint32_t i = 0; i < leader->options.member_count; i++) {
        if (i == leader->options.self || leader->group.isr_mask >> i & 1) continue;
        if (judgements[i].out) {
            leader->followers[i].good_since_us = -1;
            continue;
        }
        if (!ready_to_join(leader, &leader->followers[i], now)) continue;
        if (handlers->propose(handlers->context, i, true, ISR_WHY_CAUGHT_UP)) return;
        if (leader->dead) return;
    }
}

/* While late itself, a leader holds nobody's silence against it: only a refused connection and what
 * a follower says of its own copy count. */
static void forgive_silence(struct leader *leader, struct judgement *judgements, uint32_t *in_sync)
{
    for (uint32_t i = 0; i < leader->options.member_count; i++) {
        if (!judgements[i].out) continue;
        if (judgements[i].why == ISR_WHY_REFUSED || judgements[i].why == ISR_WHY_FAILED) continue;
        judgements[i].out = false;
        if (leader->group.isr_mask >> i & 1) *in_sync |= 1u << i;
    }
}

void leader_judge(struct leader *leader)
{
    if (leader->serving_since_us < 0) return;
    int64_t now = leader_now(leader);
    struct judgement judgements[GROUP_MEMBERS_MAX] = {{false, ISR_WHY_LAG}};
    uint32_t in_sync = compute_in_sync(leader, now, judgements);
    if (now < leader->forgiven_until_us) forgive_silence(leader, judgements, &in_sync);
    if (in_sync != leader->in_sync) {
        leader->in_sync = in_sync;
        leader->options.handlers.in_sync_changed(leader->options.handlers.context);
        if (leader->dead) return;
    }
    bool joined = leader->courted & leader->group.waited_mask;
    if (leader->courted != 0 && (joined || now >= leader->court_until_us)) court_end(leader);
    if (leader->dead) return;
    if (!leader->group.change_pending) propose_one(leader, now, judgements);
}

void leader_heard_raft(struct leader *leader, uint32_t member)
{
    leader->followers[member].raft_us = leader_now(leader);
    leader->followers[member].refused = false;
}

void leader_refused(struct leader *leader, uint32_t member, bool refused)
{
    if (leader->followers[member].refused == refused) return;
    leader->followers[member].refused = refused;
    leader_judge(leader);
}

void leader_forgive(struct leader *leader)
{
    leader->forgiven_until_us = leader_now(leader) + leader->options.config->follower_gone_us;
}

void leader_tick(struct leader *leader)
{
    int64_t now = leader_now(leader);
    const struct replication_config *config = leader->options.config;
    int64_t silence = 3 * (config->max_fetch_wait_us + config->rpc_timeout_us);
    for (uint32_t i = 0; i < leader->options.member_count; i++) {
        struct follower *follower = &leader->followers[i];
        struct parked_fetch *parked = &follower->parked;
        if (i == leader->options.self) continue;
        if (parked->request != NULL && !parked->building && now >= parked->deadline_us) {
            parked->force = true;
            follower_answer_parked(leader, follower);
        }
        if (follower->session != 0 && now - follower->fetched_us > silence) {
            follower_refuse_parked(leader, follower, 409, "session", -1, leader->options.epoch);
            follower_drop_session(leader, follower);
        }
    }
    leader_judge(leader);
}

uint32_t leader_in_sync_now(const struct leader *leader)
{
    return leader->in_sync;
}

int64_t leader_fetch_contact_age_us(const struct leader *leader)
{
    int64_t now = leader_now(leader);
    int64_t ages[GROUP_MEMBERS_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < leader->options.member_count; i++) {
        if (i == leader->options.self) continue;
        const struct follower *follower = &leader->followers[i];
        int64_t since = follower->fetched_us;
        if (since < leader->serving_since_us) since = leader->serving_since_us;
        int64_t age = now - since;
        uint32_t at = count++;
        while (at > 0 && ages[at - 1] > age) {
            ages[at] = ages[at - 1];
            at--;
        }
        ages[at] = age;
    }
    uint32_t needed = leader->options.member_count / 2; /* with itself a majority */
    return needed == 0 ? 0 : ages[needed - 1];
}
