/* replicate.c: the leader's side of the Raft log: one call in flight a peer, and what commits.
 *
 * An unbound peer gets the whole log from index 1 (or a snapshot) each time; others from where
 * they agree. An entry commits when a majority of members, in incarnations that count, holds it
 * durably, the leader's own copy included only when it is on disk; only entries of the own term
 * are counted, earlier ones commit with them. A founding claim needs every member.            */
#include "base/assert.h"
#include "base/mutant.h"
#include "raft/raft_core.h"

/* ---- calls -------------------------------------------------------------------------------- */

void raft_call(struct raft *raft, struct raft_peer *peer, const struct raft_message *message)
{
    peer->call = raft->next_call++;
    peer->call_kind = message->kind;
    peer->call_sent_us = raft->now_us;
    peer->heartbeat_at_us = raft->now_us + raft->options.heartbeat_us;
    struct raft_action *action = raft_act(raft, RAFT_ACTION_CALL);
    action->call.peer = peer->id;
    action->call.channel = RAFT_CHANNEL_RAFT;
    action->call.call = peer->call;
    action->call.message = *message;
}

/* Before its identity file names the group, a founder's messages name none, and members that
 * learned of the commit would refuse them: it keeps the commit to itself until then. */
static int64_t replicate_commit(const struct raft *raft)
{
    return raft->bound_synced ? raft->log.commit : 0;
}

static void replicate_note_round(struct raft *raft, struct raft_peer *peer)
{
    peer->round_sent = raft->round;
    raft->round_is_out = true;
}

static void replicate_send_snapshot(struct raft *raft, struct raft_peer *peer)
{
    const struct raft_log *log = &raft->log;
    struct raft_message message = {
        .kind = RAFT_MESSAGE_SNAPSHOT,
        .term = raft->term,
        .snapshot =
            {
                .leader = raft->options.self,
                .last_index = log->snapshot_index,
                .last_term = log->snapshot_term,
                .round = raft->round,
                .state = log->snapshot,
            },
    };
    replicate_note_round(raft, peer);
    raft_call(raft, peer, &message);
}

static void replicate_send_append(struct raft *raft, struct raft_peer *peer)
{
    const struct raft_log *log = &raft->log;
    int64_t prev = peer->next_index - 1;
    int64_t count = raft_log_last_index(log) - prev;
    int64_t count_max =
        peer->whole_log ? RAFT_APPEND_ENTRIES_MAX : raft->options.append_entries_max;
    if (count > count_max) count = count_max;
    struct raft_message message = {
        .kind = RAFT_MESSAGE_APPEND,
        .term = raft->term,
        .append =
            {
                .leader = raft->options.self,
                .caretaker = raft->caretaker,
                .prev_index = prev,
                .prev_term = raft_log_term_at(log, prev),
                .commit = replicate_commit(raft),
                .round = raft->round,
                .entry_count = (size_t)count,
                .entries = count > 0 ? raft_log_at(log, prev + 1) : NULL,
            },
    };
    peer->commit_sent = message.append.commit;
    replicate_note_round(raft, peer);
    raft_call(raft, peer, &message);
}

/* Anything to tell this peer before its heartbeat is due? */
static bool replicate_has_news(const struct raft *raft, const struct raft_peer *peer)
{
    return peer->match < raft_log_last_index(&raft->log) ||
           peer->commit_sent < replicate_commit(raft) || peer->round_sent < raft->round;
}

static void replicate_send(struct raft *raft, struct raft_peer *peer)
{
    if (!peer->raft_out_open || peer->call != 0 || raft->now_us < peer->not_before_us) return;
    if (raft_stand_due(raft, peer)) {
        raft_send_stand(raft, peer);
        return;
    }
    if (!replicate_has_news(raft, peer) && raft->now_us < peer->heartbeat_at_us) return;
    if (peer->whole_log) peer->next_index = 1;
    if (peer->next_index <= raft->log.snapshot_index) {
        replicate_send_snapshot(raft, peer);
    } else {
        replicate_send_append(raft, peer);
    }
}

void raft_send_all(struct raft *raft)
{
    for (int i = 0; i < raft->peer_count && !raft->quiet; i++) {
        replicate_send(raft, &raft->peers[i]);
    }
}

/* ---- what commits ------------------------------------------------------------------------- */

/* Members, in incarnations that count, that hold `index` durably. */
static int replicate_holders(const struct raft *raft, int64_t index, int64_t own_durable)
{
    int holders = own_durable >= index && raft_counts_self(raft) ? 1 : 0;
    for (int i = 0; i < raft->peer_count; i++) {
        const struct raft_peer *peer = &raft->peers[i];
        if (peer->match >= index && raft_peer_counts(raft, peer)) holders++;
    }
    return holders;
}

void raft_advance_commit(struct raft *raft)
{
    struct raft_log *log = &raft->log;
    int need = raft->bound ? raft_majority(raft) : raft_member_count(raft);
    int64_t own = raft_log_durable_index(log, raft->persisted_generation);
    for (int64_t index = raft_log_last_index(log); index > log->commit; index--) {
        /* An entry of an earlier term may be held by a majority and still be overwritten by one
         * of a term in between: it commits only under an entry of this term. */
        if (raft_log_term_at(log, index) != raft->term && !MUTANT(24)) return;
        if (replicate_holders(raft, index, own) < need) continue;
        log->commit = index;
        return;
    }
}

static void replicate_check_round(struct raft *raft)
{
    uint64_t answered[RAFT_MEMBERS_MAX];
    int count = 0;
    for (int i = 0; i < raft->peer_count; i++) {
        const struct raft_peer *peer = &raft->peers[i];
        if (!raft_peer_counts(raft, peer)) continue;
        int at = count++;
        while (at > 0 && answered[at - 1] < peer->round_answered) {
            answered[at] = answered[at - 1];
            at--;
        }
        answered[at] = peer->round_answered;
    }
    int needed = raft_majority(raft) - 1;
    if (needed > count || (needed > 0 && answered[needed - 1] <= raft->round_confirmed)) return;
    raft->round_confirmed = needed == 0 ? raft->round : answered[needed - 1];
    raft_act(raft, RAFT_ACTION_CONFIRMED)->confirmed.round = raft->round_confirmed;
}

/* ---- answers ------------------------------------------------------------------------------ */

/* What a peer answered belongs to its incarnation: nothing carries over to another one. */
static void replicate_note_incarnation(struct raft_peer *peer, const struct uuid *incarnation)
{
    if (uuid_equal(&peer->match_incarnation, incarnation)) return;
    peer->match = 0;
    peer->match_incarnation = *incarnation;
    peer->round_answered = 0;
}

static void replicate_matched(struct raft *raft, struct raft_peer *peer, int64_t match)
{
    int64_t last = raft_log_last_index(&raft->log);
    if (match > last) match = last; /* it cannot hold more of our log than we do */
    if (match > peer->match) peer->match = match;
    peer->next_index = peer->match + 1;
}

static void replicate_back_off(struct raft *raft, struct raft_peer *peer, int64_t hint)
{
    int64_t asked = peer->next_index - 1;
    int64_t next = hint < asked ? hint : asked - 1;
    if (asked == 0) {
        /* From the very beginning and still not: it has no room, or it is broken. */
        peer->not_before_us = raft->now_us + raft->options.heartbeat_us;
        next = 0;
    }
    peer->next_index = next < 0 ? 1 : next + 1;
}

static void replicate_on_append_answer(struct raft *raft, struct raft_peer *peer,
                                       const struct raft_append_answer *answer)
{
    peer->bound = answer->bound;
    if (answer->ok) {
        replicate_matched(raft, peer, answer->match);
        bool founding_only = raft->log.snapshot_index == 0 && peer->match > 0 &&
                             raft_entry_is_founding(raft_log_at(&raft->log, peer->match));
        peer->whole_log = !answer->bound && founding_only;
    } else if (answer->need_snapshot) {
        peer->whole_log = true;
        if (peer->next_index == 1) replicate_back_off(raft, peer, 0);
    } else {
        peer->whole_log = false;
        replicate_back_off(raft, peer, answer->hint);
    }
}

void raft_on_raft_answer(struct raft *raft, struct raft_peer *peer,
                         const struct raft_sender *sender, const struct raft_message *message)
{
    peer->call = 0;
    if (raft->role != RAFT_ROLE_LEADER || message->term < raft->term) return;
    if (message->term > raft->term) {
        raft_observe_term(raft, message->term);
        return;
    }
    replicate_note_incarnation(peer, &sender->incarnation);
    peer->contact_us = peer->call_sent_us;
    peer->heard_us = raft->now_us;
    uint64_t round = message->append_answer.round;
    if (message->kind == RAFT_MESSAGE_SNAPSHOT_ANSWER) {
        round = message->snapshot_answer.round;
        if (message->snapshot_answer.ok) {
            replicate_matched(raft, peer, message->snapshot_answer.match);
            peer->whole_log = false;
        } else {
            peer->not_before_us = raft->now_us + raft->options.heartbeat_us;
        }
    } else {
        replicate_on_append_answer(raft, peer, &message->append_answer);
    }
    /* Not more than was sent: the round is what proves that the answer is younger. */
    if (round > peer->round_sent) round = peer->round_sent;
    if (round > peer->round_answered) peer->round_answered = round;
    replicate_check_round(raft);
}

void raft_on_raft_failed(struct raft *raft, struct raft_peer *peer)
{
    bool stand = peer->call_kind == RAFT_MESSAGE_STAND;
    peer->call = 0;
    peer->not_before_us = raft->now_us + raft->options.heartbeat_us;
    if (!stand || raft->role != RAFT_ROLE_LEADER) return;
    raft->hand_over_at_us = raft->now_us;
    if (raft->transfer.active) raft->transfer.sent = false;
}
