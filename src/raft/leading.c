/* leading.c: winning, proposing, confirming, and when to stop.
 *
 * A leader with a claim serves once the claim is known committed and a majority is bound. It stops
 * by itself without contact to a majority for an election timeout (measured from when it *sent*
 * what was answered), when a change or its claim does not commit in time, and when a founding does
 * not get to serve. A caretaker makes no claim and lasts one election timeout.                 */
#include "base/assert.h"
#include "base/mutant.h"
#include "raft/raft_core.h"

bool raft_peer_counts(const struct raft *raft, const struct raft_peer *peer)
{
    return !uuid_is_none(&peer->match_incarnation) &&
           raft_counts(raft, peer->id, &peer->match_incarnation);
}

/* ---- winning ------------------------------------------------------------------------------ */

static void leading_reset_peer(struct raft *raft, struct raft_peer *peer)
{
    peer->call = 0;
    peer->next_index = raft_log_last_index(&raft->log) + 1;
    peer->match = 0;
    peer->match_incarnation = (struct uuid){0};
    peer->bound = raft->bound && uuid_equal(&peer->group, &raft->group);
    peer->whole_log = !peer->bound;
    peer->contact_us = raft->now_us; /* its vote, or the time to get in touch */
    peer->heartbeat_at_us = raft->now_us;
    peer->not_before_us = raft->now_us;
    peer->commit_sent = 0;
    peer->round_sent = 0;
    peer->round_answered = 0;
    peer->stand_not_before_us = raft->now_us;
}

/* The founding claim: every member as it introduced itself. */
static void leading_found(struct raft *raft, struct raft_claim *claim)
{
    const struct raft_ids *members = &raft->options.members;
    claim->founding = true;
    claim->group = uuid_random(&raft->random);
    claim->member_count = members->count;
    for (int i = 0; i < members->count; i++) {
        int32_t id = members->ids[i];
        const struct raft_peer *peer = raft_find_peer(raft, id);
        claim->members[i].id = id;
        /* As it voted: a member wiped since its hello is another one. */
        claim->members[i].incarnation =
            peer == NULL ? raft->options.incarnation : peer->vote_incarnation;
        if (!raft->holds_records || id == raft->options.self) {
            (void)raft_ids_add(&claim->isr, id);
        }
    }
    /* Nobody is bound, or it would have refused its vote: earlier claims are void, and an unbound
     * member must get the whole log in one append. */
    if (raft->log.count >= RAFT_FOUNDING_LOG_MAX) raft_log_cut(&raft->log, 1);
}

void raft_win(struct raft *raft)
{
    raft->role = RAFT_ROLE_LEADER;
    raft->caretaker = raft->stand_as_caretaker;
    raft->founding = !raft->bound;
    raft->won_us = raft->now_us;
    raft->claim_reported = false;
    raft->change_since_us = RAFT_TIME_NEVER;
    raft->round = 1;
    raft->round_is_out = false;
    raft->round_confirmed = 0;
    raft->transfer = (struct raft_transfer){0};
    raft->hand_over_at_us = raft->now_us;
    raft->lost = false;
    struct raft_entry entry = {
        .term = raft->term,
        .epoch = raft->caretaker ? 0 : raft->term,
        .kind = raft->caretaker ? RAFT_ENTRY_NOOP : RAFT_ENTRY_CLAIM,
    };
    if (!raft->caretaker) {
        entry.claim.leader = raft->options.self;
        entry.claim.min_insync = raft->options.min_insync;
        if (raft->founding) leading_found(raft, &entry.claim);
    }
    for (int i = 0; i < raft->peer_count; i++)
        leading_reset_peer(raft, &raft->peers[i]);
    entry.index = raft_log_last_index(&raft->log) + 1;
    raft->claim_index = entry.index;
    raft_touch(raft);
    raft_log_append(&raft->log, &entry, raft->generation);
    struct raft_action *action = raft_act(raft, RAFT_ACTION_BECAME_LEADER);
    action->became_leader.term = raft->term;
    action->became_leader.caretaker = raft->caretaker;
    action->became_leader.founding = raft->founding;
    raft_set_leader(raft, raft->options.self, raft->caretaker);
}

static int leading_bound_count(const struct raft *raft)
{
    int bound = 1;
    for (int i = 0; i < raft->peer_count; i++) {
        if (raft->peers[i].bound && raft_peer_counts(raft, &raft->peers[i])) bound++;
    }
    return bound;
}

void raft_check_serving(struct raft *raft)
{
    const struct raft_log *log = &raft->log;
    if (raft->caretaker || raft->claim_reported || log->applied < raft->claim_index) return;
    if (log->known.leader != raft->options.self || log->known.epoch != raft->term) return;
    if (!raft->bound_synced || leading_bound_count(raft) < raft_majority(raft)) return;
    raft->claim_reported = true;
    raft_act(raft, RAFT_ACTION_CLAIM_COMMITTED)->claim_committed.epoch = raft->term;
}

/* ---- stopping ----------------------------------------------------------------------------- */

void raft_step_down(struct raft *raft, enum raft_stepped_down why)
{
    ASSERT(raft->role == RAFT_ROLE_LEADER);
    if (MUTANT(9) && why == RAFT_DOWN_NO_FETCH) return;
    raft_follow(raft);
    for (int i = 0; i < raft->peer_count; i++) {
        raft->peers[i].call = 0;
        raft->peers[i].raft_out_open = false; /* the shell closes them, silently perhaps */
    }
    raft->transfer = (struct raft_transfer){0};
    raft->heard_leader = RAFT_NOBODY;
    if (!raft->caretaker) raft->leaderless_since_us = raft->now_us;
    if (raft->caretaker && why == RAFT_DOWN_CARETAKER) {
        raft->rest_until_us =
            raft->now_us + RAFT_CARETAKER_AFTER * raft->options.election_timeout_us;
    }
    if (raft->founding && !raft->claim_reported) {
        raft->founding_not_before_us = raft->now_us + raft_random_timeout(raft);
        raft->founding_at_us = RAFT_TIME_NEVER;
    }
    raft_arm_election(raft);
    struct raft_action *action = raft_act(raft, RAFT_ACTION_STEPPED_DOWN);
    action->stepped_down.term = raft->term;
    action->stepped_down.caretaker = raft->caretaker;
    action->stepped_down.why = why;
    raft->caretaker = false;
    raft_set_leader(raft, RAFT_NOBODY, false);
}

/* When the majority's contact runs out: the time the (majority - 1)-th freshest counted peer was
 * last sent something it answered, and an election timeout. */
static int64_t leading_contact_until(const struct raft *raft)
{
    int64_t contacts[RAFT_MEMBERS_MAX];
    int count = 0;
    for (int i = 0; i < raft->peer_count; i++) {
        const struct raft_peer *peer = &raft->peers[i];
        bool silent_yet = uuid_is_none(&peer->match_incarnation);
        if (!silent_yet && !raft_peer_counts(raft, peer)) continue;
        if (silent_yet && !raft_is_member(raft, peer->id)) continue;
        int at = count++;
        while (at > 0 && contacts[at - 1] < peer->contact_us) {
            contacts[at] = contacts[at - 1];
            at--;
        }
        contacts[at] = peer->contact_us;
    }
    int needed = raft_majority(raft) - 1;
    if (needed == 0) return RAFT_TIME_NEVER;
    if (count < needed) return raft->now_us;
    return contacts[needed - 1] + raft->options.election_timeout_us;
}

static int64_t leading_term_of_office(const struct raft *raft)
{
    if (raft->caretaker) return raft->won_us + raft->options.election_timeout_us;
    if (raft->claim_reported) return RAFT_TIME_NEVER;
    return raft->won_us +
           (raft->founding ? raft->options.election_timeout_us : raft->options.commit_timeout_us);
}

static int64_t leading_change_until(const struct raft *raft)
{
    if (raft->change_since_us == RAFT_TIME_NEVER) return RAFT_TIME_NEVER;
    return raft->change_since_us + raft->options.commit_timeout_us;
}

void raft_run_leading(struct raft *raft)
{
    if (!raft_log_change_pending(&raft->log)) raft->change_since_us = RAFT_TIME_NEVER;
    if (raft->transfer.active && raft->now_us >= raft->transfer.deadline_us) {
        raft_transfer_fail(raft, RAFT_NO_NOTHING);
    }
    if (raft->log.seen.stopped) {
        raft_step_down(raft, RAFT_DOWN_UNKNOWN_ENTRY);
    } else if (raft->now_us >= leading_term_of_office(raft)) {
        raft_step_down(raft, raft->caretaker  ? RAFT_DOWN_CARETAKER
                             : raft->founding ? RAFT_DOWN_NOT_FOUNDED
                                              : RAFT_DOWN_COMMIT_TIMEOUT);
    } else if (raft->now_us >= leading_change_until(raft)) {
        raft_step_down(raft, RAFT_DOWN_COMMIT_TIMEOUT);
    } else if (raft->now_us >= leading_contact_until(raft)) {
        raft_step_down(raft, RAFT_DOWN_NO_MAJORITY);
    }
}

static int64_t leading_earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t raft_leading_deadline(const struct raft *raft)
{
    int64_t at = leading_earlier(leading_term_of_office(raft), leading_change_until(raft));
    at = leading_earlier(at, leading_contact_until(raft));
    if (raft->transfer.active) at = leading_earlier(at, raft->transfer.deadline_us);
    for (int i = 0; i < raft->peer_count && !raft->quiet; i++) {
        const struct raft_peer *peer = &raft->peers[i];
        if (!peer->raft_out_open || peer->call != 0) continue;
        int64_t due = peer->heartbeat_at_us;
        if (due < peer->not_before_us) due = peer->not_before_us;
        at = leading_earlier(at, due);
    }
    return at;
}

/* ---- proposing ---------------------------------------------------------------------------- */

static bool leading_serves(const struct raft *raft)
{
    return raft->role == RAFT_ROLE_LEADER && !raft->caretaker && raft->claim_reported;
}

/* One member in or out, never the leader, never below the minimum, never one whose present
 * incarnation is not on record. */
static enum status leading_check_isr(struct raft *raft, const struct raft_ids *isr)
{
    const struct raft_view *known = &raft->log.known;
    int added = 0;
    int removed = 0;
    for (int i = 0; i < known->member_count; i++) {
        int32_t id = known->members[i].id;
        bool is = raft_ids_contain(&known->isr, id);
        bool will = raft_ids_contain(isr, id);
        removed += is && !will;
        if (is || !will) continue;
        added++;
        const struct raft_peer *peer = raft_find_peer(raft, id);
        if (peer == NULL || uuid_is_none(&known->members[i].incarnation)) return STATUS_INVALID;
        if (!uuid_equal(&peer->match_incarnation, &known->members[i].incarnation)) {
            return STATUS_INVALID;
        }
        /* A member of the set that did not hold its own incarnation entry would go on refusing its
         * vote as a learner, when it is needed most. */
        if (peer->match < raft->log.commit) return STATUS_CONFLICT;
    }
    if (added + removed != 1 || isr->count != known->isr.count + added - removed) {
        return STATUS_INVALID;
    }
    if (!raft_ids_contain(isr, raft->options.self)) return STATUS_INVALID;
    if (removed == 1 && isr->count < known->min_insync && !MUTANT(6)) return STATUS_INVALID;
    return STATUS_OK;
}

static enum status leading_check_incarnation(struct raft *raft, int32_t replica,
                                             const struct uuid *incarnation)
{
    const struct raft_view_member *member = raft_view_member(&raft->log.known, replica);
    const struct raft_peer *peer = raft_find_peer(raft, replica);
    if (member == NULL || peer == NULL || uuid_is_none(incarnation)) return STATUS_INVALID;
    if (uuid_equal(&member->incarnation, incarnation)) return STATUS_INVALID;
    bool alive = raft->now_us - peer->recorded_heard_us < raft->options.follower_gone_us;
    return alive ? STATUS_CONFLICT : STATUS_OK;
}

enum status raft_propose(struct raft *raft, const struct raft_event *event, int64_t *index)
{
    if (!leading_serves(raft)) return STATUS_NOT_LEADER;
    if (raft->transfer.active || raft_log_change_pending(&raft->log)) return STATUS_CONFLICT;
    if (raft_log_room(&raft->log) < 4) return STATUS_LIMIT;
    struct raft_entry entry = {
        .index = raft_log_last_index(&raft->log) + 1,
        .term = raft->term,
        .epoch = raft->term,
        .kind = event->propose.kind,
    };
    enum status status = STATUS_INVALID;
    if (entry.kind == RAFT_ENTRY_ISR) {
        entry.isr = event->propose.isr;
        status = leading_check_isr(raft, &entry.isr.isr);
    } else if (entry.kind == RAFT_ENTRY_INCARNATION) {
        status =
            leading_check_incarnation(raft, event->propose.replica, &event->propose.incarnation);
    }
    if (status != STATUS_OK) return status;
    if (entry.kind == RAFT_ENTRY_INCARNATION) {
        entry.incarnation.replica = event->propose.replica;
        entry.incarnation.incarnation = event->propose.incarnation;
        entry.incarnation.replaces =
            raft_view_member(&raft->log.known, event->propose.replica)->incarnation;
    }
    raft_touch(raft);
    raft_log_append(&raft->log, &entry, raft->generation);
    raft->change_since_us = raft->now_us;
    *index = entry.index;
    return STATUS_OK;
}

/* ---- confirming --------------------------------------------------------------------------- */

enum status raft_confirm(struct raft *raft, uint64_t *round)
{
    if (!leading_serves(raft)) return STATUS_NOT_LEADER;
    /* A round nobody was sent yet begins after this request too, and is shared. */
    if (raft->round_is_out) {
        raft->round++;
        raft->round_is_out = false;
    }
    *round = raft->round;
    return STATUS_OK;
}
