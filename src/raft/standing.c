/* standing.c: when a replica stands, and how it asks.
 *
 * Timers: election_at_us (random; also the end of a round of questions) and founding_at_us. Each
 * attempt begins with a pre-vote in term + 1, which changes nothing anywhere; only a majority of
 * pre-votes makes it raise its term, vote for itself and, once that is durable, ask for votes.
 * Founding needs every member instead of a majority. Spec: replication.md section 6.           */
#include <string.h>

#include "base/assert.h"
#include "raft/raft_core.h"

/* ---- who may ------------------------------------------------------------------------------ */

static bool standing_waited(const struct raft *raft, int timeouts)
{
    return raft->now_us - raft->leaderless_since_us >= timeouts * raft->options.election_timeout_us;
}

enum raft_standing raft_may_stand(const struct raft *raft)
{
    const struct raft_view *seen = &raft->log.seen;
    /* A leader that may not send would win again and again, a claim in its log each time. */
    if (raft->quiet) return RAFT_STANDS_NOT;
    if (raft->disk_failed || seen->stopped || raft->term >= RAFT_TERM_MAX) return RAFT_STANDS_NOT;
    if (!raft->bound_synced || raft_log_room(&raft->log) < 2) return RAFT_STANDS_NOT;
    if (raft_is_learner(raft) || uuid_is_none(&seen->group) || !raft_counts_self(raft)) {
        return RAFT_STANDS_NOT;
    }
    /* The tail counts: a commit index is not on disk, so after a restart of all nobody could
     * otherwise know that it is in the set. */
    if (raft_ids_contain(&seen->isr, raft->options.self)) {
        if (raft->data == RAFT_DATA_OK) return RAFT_STANDS_ELIGIBLE;
        bool though_damaged =
            raft->stand_though_damaged || standing_waited(raft, RAFT_DAMAGED_AFTER);
        if (raft->data == RAFT_DATA_DAMAGED && though_damaged) return RAFT_STANDS_ELIGIBLE;
    }
    bool rested = raft->now_us >= raft->rest_until_us;
    return rested && standing_waited(raft, RAFT_CARETAKER_AFTER) ? RAFT_STANDS_CARETAKER
                                                                 : RAFT_STANDS_NOT;
}

/* Waiting gives a right to stand that it has not now: not to be slept through for a timeout more,
 * nor used by all at the same moment. */
static int64_t standing_by_waiting_us(struct raft *raft)
{
    static const int after[] = {RAFT_CARETAKER_AFTER, RAFT_DAMAGED_AFTER};
    int64_t timeout = raft->options.election_timeout_us;
    for (size_t i = 0; i < ARRAY_COUNT(after); i++) {
        int64_t at = raft->leaderless_since_us + after[i] * timeout;
        if (after[i] == RAFT_CARETAKER_AFTER && at < raft->rest_until_us) at = raft->rest_until_us;
        if (at > raft->now_us) return at + random_between(&raft->random, 0, timeout / 4);
    }
    return RAFT_TIME_NEVER;
}

void raft_arm_election(struct raft *raft)
{
    raft->election_at_us = raft->now_us + raft_random_timeout(raft);
    if (!raft->bound || raft_may_stand(raft) != RAFT_STANDS_NOT) return;
    int64_t by_waiting = standing_by_waiting_us(raft);
    if (by_waiting < raft->election_at_us) raft->election_at_us = by_waiting;
}

bool raft_peer_may_found(const struct raft_peer *peer)
{
    return peer->control_open && peer->greeted && peer->members_equal && peer->fresh &&
           uuid_is_none(&peer->group) && !peer->holds_records;
}

static bool standing_founding_ready(const struct raft *raft)
{
    if (raft->bound || raft->disk_failed || raft->data == RAFT_DATA_UNFIT) return false;
    if (!raft->options.may_found && raft->log.count == 0) return false;
    if (raft->term >= RAFT_TERM_MAX) return false;
    for (int i = 0; i < raft->peer_count; i++) {
        if (!raft_peer_may_found(&raft->peers[i])) return false;
    }
    return true;
}

static int64_t standing_rank_us(const struct raft *raft)
{
    int rank = 0;
    while (raft->options.members.ids[rank] != raft->options.self)
        rank++;
    return rank * RAFT_FOUNDING_RANK_US;
}

/* ---- asking ------------------------------------------------------------------------------- */

static void standing_ask(struct raft *raft, struct raft_peer *peer)
{
    bool pre = raft->role == RAFT_ROLE_PRE_CANDIDATE;
    peer->ask = RAFT_ASK_OUT;
    peer->ask_call = raft->next_call++;
    struct raft_action *action = raft_act(raft, RAFT_ACTION_CALL);
    action->call.peer = peer->id;
    action->call.channel = RAFT_CHANNEL_CONTROL;
    action->call.call = peer->ask_call;
    action->call.message = (struct raft_message){
        .kind = RAFT_MESSAGE_VOTE,
        .term = raft->term + (pre ? 1 : 0),
        .vote =
            {
                .pre = pre,
                .why = raft->stand_why,
                .last_index = raft_log_last_index(&raft->log),
                .last_term = raft_log_last_term(&raft->log),
                .has_transfer = raft->stand_why == RAFT_WHY_TRANSFER,
                .transfer_leader = raft->transfer_leader,
                .transfer_epoch = raft->transfer_epoch,
            },
    };
}

static void standing_forget_asks(struct raft *raft)
{
    for (int i = 0; i < raft->peer_count; i++) {
        raft->peers[i].ask = RAFT_ASK_NONE;
        raft->peers[i].ask_call = 0;
    }
}

static void standing_ask_all(struct raft *raft)
{
    for (int i = 0; i < raft->peer_count; i++) {
        if (raft_is_member(raft, raft->peers[i].id)) standing_ask(raft, &raft->peers[i]);
    }
}

static bool standing_is_asking(const struct raft *raft)
{
    return raft->role == RAFT_ROLE_PRE_CANDIDATE ||
           (raft->role == RAFT_ROLE_CANDIDATE && raft->votes_asked);
}

/* The connection is back: the question that failed on it, again. */
void raft_ask_again(struct raft *raft, struct raft_peer *peer)
{
    if (!standing_is_asking(raft) || !raft_is_member(raft, peer->id)) return;
    if (peer->ask == RAFT_ASK_FAILED || peer->ask == RAFT_ASK_NONE) standing_ask(raft, peer);
}

/* ---- standing ----------------------------------------------------------------------------- */

static void standing_rest(struct raft *raft)
{
    raft_follow(raft);
    standing_forget_asks(raft);
    raft_arm_election(raft);
}

static void standing_begin(struct raft *raft, enum raft_vote_why why, bool as_caretaker)
{
    bool though_damaged = raft->stand_though_damaged && why == RAFT_WHY_TRANSFER;
    raft_follow(raft);
    raft->stand_though_damaged = though_damaged;
    raft->role = RAFT_ROLE_PRE_CANDIDATE;
    raft->stand_why = why;
    raft->stand_as_caretaker = as_caretaker;
    /* Told to stand by a leader that is there, it is still the leader to point clients to. */
    if (why != RAFT_WHY_TRANSFER) raft_set_leader(raft, RAFT_NOBODY, false);
    standing_forget_asks(raft);
    raft_arm_election(raft);
    standing_ask_all(raft);
}

void raft_stand(struct raft *raft, enum raft_vote_why why)
{
    ASSERT(raft->role != RAFT_ROLE_LEADER);
    enum raft_standing standing = raft_may_stand(raft);
    if (standing == RAFT_STANDS_NOT) {
        standing_rest(raft);
        return;
    }
    bool caretaker = standing == RAFT_STANDS_CARETAKER;
    standing_begin(raft, caretaker ? RAFT_WHY_CARETAKER : why, caretaker);
}

/* Still? A replica told to stand goes on hearing its leader, who may have given it up meanwhile and
 * taken it out of the set. */
static bool standing_is_fit(const struct raft *raft)
{
    if (!raft->bound) return raft->term < RAFT_TERM_MAX;
    return raft->stand_as_caretaker || raft_may_stand(raft) == RAFT_STANDS_ELIGIBLE;
}

static void standing_go_to_vote(struct raft *raft)
{
    raft->role = RAFT_ROLE_CANDIDATE;
    raft_enter_term(raft, raft->term + 1, raft->options.self);
    raft->vote_generation = raft->generation;
    raft->votes_asked = false;
    raft->elections++;
    standing_forget_asks(raft);
    raft_arm_election(raft);
}

/* Votes, or pre-votes, that count, the own included if it is durable. */
static int standing_tally(const struct raft *raft)
{
    bool own = raft->role == RAFT_ROLE_PRE_CANDIDATE ||
               raft->persisted_generation >= raft->vote_generation;
    int votes = own ? 1 : 0;
    for (int i = 0; i < raft->peer_count; i++) {
        const struct raft_peer *peer = &raft->peers[i];
        if (peer->ask != RAFT_ASK_GRANTED) continue;
        bool counts = !raft->bound || raft_counts(raft, peer->id, &peer->vote_incarnation);
        if (counts) votes++;
    }
    return votes;
}

static void standing_count(struct raft *raft)
{
    int need = raft->bound ? raft_majority(raft) : raft->options.members.count;
    if (standing_tally(raft) < need) return;
    if (!standing_is_fit(raft)) {
        standing_rest(raft);
    } else if (raft->role == RAFT_ROLE_PRE_CANDIDATE) {
        standing_go_to_vote(raft);
    } else if (raft->votes_asked) {
        standing_forget_asks(raft);
        raft_win(raft);
    }
}

/* After losing a leader the usual timeout is too long to sit out one refusal (the others may not
 * have noticed yet) or a split vote: once all have answered, again after a short random while. */
static void standing_retry_soon(struct raft *raft)
{
    if (!raft->lost || raft->lost_attempts >= RAFT_FAST_ATTEMPTS_MAX) return;
    if (raft->stand_why == RAFT_WHY_TRANSFER || !standing_is_asking(raft)) return;
    for (int i = 0; i < raft->peer_count; i++) {
        if (raft->peers[i].ask == RAFT_ASK_OUT) return;
    }
    raft->lost_attempts++;
    int64_t factor = raft->lost_attempts < 5 ? raft->lost_attempts : 5;
    int64_t wait = factor * random_between(&raft->random, RAFT_FAST_US_MIN, RAFT_FAST_US_MAX);
    if (raft->now_us + wait < raft->election_at_us) raft->election_at_us = raft->now_us + wait;
}

void raft_on_vote_answer(struct raft *raft, struct raft_peer *peer,
                         const struct raft_sender *sender, const struct raft_message *message)
{
    peer->ask_call = 0;
    peer->fresh = message->vote_answer.fresh;
    peer->holds_records = message->vote_answer.holds_records;
    /* A refusal from a higher term is how a replica with the longest log on a low term gets to a
     * term in which it can be elected. */
    if (message->term > raft->term) {
        raft_observe_term(raft, message->term);
        return;
    }
    bool pre = raft->role == RAFT_ROLE_PRE_CANDIDATE;
    if (!standing_is_asking(raft) || message->vote_answer.pre != pre) return;
    bool granted = message->vote_answer.granted;
    if (granted && !pre && message->term != raft->term) return;
    peer->ask = granted ? RAFT_ASK_GRANTED : RAFT_ASK_REFUSED;
    peer->vote_incarnation = sender->incarnation;
    standing_count(raft);
    if (standing_is_asking(raft)) standing_retry_soon(raft);
}

void raft_on_vote_failed(struct raft *raft, struct raft_peer *peer)
{
    peer->ask_call = 0;
    peer->ask = RAFT_ASK_FAILED;
    if (standing_is_asking(raft)) standing_retry_soon(raft);
}

/* ---- timers ------------------------------------------------------------------------------- */

/* Fast detection: the leader's process is gone, not only the path to it. */
void raft_check_lost(struct raft *raft)
{
    if (raft->role == RAFT_ROLE_LEADER || raft->leader == RAFT_NOBODY) return;
    struct raft_peer *peer = raft_find_peer(raft, raft->leader);
    if (peer == NULL) return;
    bool gone = peer->control_refused && !peer->raft_in_open;
    if (!gone && !peer->said_not_leading) return;
    if (raft->role == RAFT_ROLE_PRE_CANDIDATE && raft->stand_why == RAFT_WHY_TRANSFER) return;
    raft_set_leader(raft, RAFT_NOBODY, false);
    raft->lost = true;
    raft->lost_attempts = 0;
    int64_t at = raft->now_us + random_between(&raft->random, RAFT_FAST_US_MIN, RAFT_FAST_US_MAX);
    if (at < raft->election_at_us) raft->election_at_us = at;
}

static void standing_run_election_timer(struct raft *raft)
{
    if (raft->now_us < raft->election_at_us) return;
    bool lost = raft->lost && raft->lost_attempts < RAFT_FAST_ATTEMPTS_MAX;
    bool hears_leader = raft->leader != RAFT_NOBODY &&
                        raft->now_us - raft->heard_us < raft->options.election_timeout_us;
    if (raft->role == RAFT_ROLE_PRE_CANDIDATE && hears_leader) {
        standing_rest(raft); /* a transfer that came to nothing; its leader goes on */
    } else {
        raft_stand(raft, lost ? RAFT_WHY_LOST : RAFT_WHY_TIMEOUT);
    }
}

static void standing_run_founding_timer(struct raft *raft)
{
    if (!standing_founding_ready(raft)) {
        raft->founding_at_us = RAFT_TIME_NEVER;
        return;
    }
    if (raft->founding_at_us == RAFT_TIME_NEVER) {
        int64_t from = raft->founding_not_before_us;
        if (from < raft->now_us) from = raft->now_us;
        raft->founding_at_us = from + standing_rank_us(raft);
    }
    if (raft->now_us < raft->founding_at_us) return;
    raft->founding_not_before_us = raft->now_us + raft_random_timeout(raft);
    raft->founding_at_us = RAFT_TIME_NEVER;
    bool other_founds = raft->now_us - raft->heard_us < raft->options.election_timeout_us;
    if (!other_founds) standing_begin(raft, RAFT_WHY_FOUNDING, false);
}

void raft_run_standing(struct raft *raft)
{
    if (raft->role == RAFT_ROLE_LEADER) return;
    standing_run_election_timer(raft);
    standing_run_founding_timer(raft);
    if (raft->role == RAFT_ROLE_CANDIDATE && !raft->votes_asked &&
        raft->persisted_generation >= raft->vote_generation) {
        raft->votes_asked = true;
        standing_ask_all(raft);
    }
}

int64_t raft_standing_deadline(const struct raft *raft)
{
    int64_t founding = raft->founding_at_us;
    return founding < raft->election_at_us ? founding : raft->election_at_us;
}
