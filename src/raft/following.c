/* following.c: taking the log from the leader.
 *
 * A member that is bound compares entries by term, as Raft does. One that is not holds founding
 * claims only; two of them can carry one index and one term (a voter was wiped and voted again),
 * so they are told apart by the group they would found, and nothing is believed about what comes
 * before the first entry: an append to it starts at index 0.                                  */
#include "base/mutant.h"
#include "raft/raft_core.h"

/* The sender leads in our term. A founding can have two such, if a voter was wiped between: they
 * must not take each other's claims while they lead. */
static bool following_accept_leader(struct raft *raft, int32_t leader, bool caretaker)
{
    if (raft->role == RAFT_ROLE_LEADER) return false;
    struct raft_peer *peer = raft_find_peer(raft, leader);
    peer->raft_in_open = true;
    peer->said_not_leading = false;
    bool told_to_stand =
        raft->role == RAFT_ROLE_PRE_CANDIDATE && raft->stand_why == RAFT_WHY_TRANSFER;
    if (!told_to_stand) raft_follow(raft);
    raft->lost = false;
    if (!caretaker) {
        raft->heard_leader = leader;
        raft->heard_term = raft->term;
        raft->heard_us = raft->now_us;
        raft->leaderless_since_us = raft->now_us;
    }
    if (!told_to_stand) raft_arm_election(raft);
    raft_set_leader(raft, leader, caretaker);
    return true;
}

/* Group rules of replication-wire.md section 2 for append and snapshot: the receiver's may be
 * missing, the sender's only if both are. */
static bool following_group_passes(const struct raft *raft, const struct raft_sender *sender)
{
    return !(raft->bound && uuid_is_none(&sender->group));
}

static bool following_same(const struct raft *raft, const struct raft_entry *ours,
                           const struct raft_entry *theirs)
{
    if (ours->term != theirs->term) return false;
    if (raft->bound) return true;
    return raft_entry_is_founding(ours) && raft_entry_is_founding(theirs) &&
           uuid_equal(&ours->claim.group, &theirs->claim.group);
}

/* Index to try next: before the run of the term that does not fit. */
static int64_t following_hint(const struct raft *raft, int64_t prev_index)
{
    const struct raft_log *log = &raft->log;
    int64_t last = raft_log_last_index(log);
    if (prev_index > last) return last;
    int64_t term = raft_log_term_at(log, prev_index);
    int64_t hint = prev_index;
    while (hint > log->commit && raft_log_term_at(log, hint) == term)
        hint--;
    return hint;
}

enum following_result { FOLLOWING_OK, FOLLOWING_MISMATCH, FOLLOWING_CONFLICT, FOLLOWING_FULL };

/* Is what comes before the entries equal to the leader's? */
static enum following_result following_check_prev(const struct raft *raft,
                                                  const struct raft_append *append)
{
    const struct raft_log *log = &raft->log;
    if (!raft->bound) return append->prev_index == 0 ? FOLLOWING_OK : FOLLOWING_MISMATCH;
    if (append->prev_index < log->snapshot_index) return FOLLOWING_OK; /* committed, so equal */
    if (append->prev_index > raft_log_last_index(log)) return FOLLOWING_MISMATCH;
    if (raft_log_term_at(log, append->prev_index) == append->prev_term) return FOLLOWING_OK;
    bool committed = append->prev_index <= log->commit;
    return committed ? FOLLOWING_CONFLICT : FOLLOWING_MISMATCH;
}

static enum following_result following_take(struct raft *raft, const struct raft_append *append)
{
    struct raft_log *log = &raft->log;
    size_t i = 0;
    while (i < append->entry_count && append->entries[i].index <= log->snapshot_index)
        i++;
    while (i < append->entry_count && append->entries[i].index <= raft_log_last_index(log) &&
           following_same(raft, raft_log_at(log, append->entries[i].index), &append->entries[i])) {
        i++;
    }
    if (i == append->entry_count) return FOLLOWING_OK;
    if (append->entries[i].index <= log->commit) return FOLLOWING_CONFLICT;
    int64_t keep = append->entries[i].index - 1 - log->snapshot_index;
    if ((int64_t)(append->entry_count - i) > log->capacity - keep) return FOLLOWING_FULL;
    raft_touch(raft);
    raft_log_cut(log, append->entries[i].index);
    for (; i < append->entry_count; i++) {
        raft_log_append(log, &append->entries[i], raft->generation);
    }
    return FOLLOWING_OK;
}

static void following_commit(struct raft *raft, const struct raft_append *append)
{
    struct raft_log *log = &raft->log;
    /* Only what was compared just now: what lies behind it may be another leader's. */
    int64_t verified = append->prev_index + (int64_t)append->entry_count;
    int64_t commit = append->commit < verified ? append->commit : verified;
    if (commit > log->commit || (MUTANT(25) && commit >= log->snapshot_index)) {
        log->commit = commit;
    }
}

static void following_answer(struct raft *raft, const struct raft_event *event, bool ok,
                             int64_t hint)
{
    const struct raft_append *append = &event->request.message->append;
    struct raft_message answer = {
        .kind = RAFT_MESSAGE_APPEND_ANSWER,
        .term = raft->term,
        .append_answer =
            {
                .ok = ok,
                .match = ok ? append->prev_index + (int64_t)append->entry_count : 0,
                .hint = hint,
                .need_snapshot = !ok && !raft->bound && append->prev_index > 0,
                .bound = raft->bound_synced,
                .round = append->round,
            },
    };
    raft_answer(raft, event->request.token, &answer, true);
}

/* To one that is not bound: the log begins with a founding claim, and only a bound leader may send
 * more than founding claims, of its own group. */
static bool following_fits_unbound(const struct raft_sender *sender,
                                   const struct raft_append *append)
{
    const struct raft_entry *claim = NULL;
    bool more = false;
    for (size_t i = 0; i < append->entry_count; i++) {
        const struct raft_entry *entry = &append->entries[i];
        if (!raft_entry_is_founding(entry)) {
            more = true;
        } else if (more) {
            return false;
        } else {
            claim = entry;
        }
    }
    if (claim == NULL) return append->entry_count == 0;
    if (uuid_is_none(&sender->group)) return !more;
    return uuid_equal(&sender->group, &claim->claim.group);
}

/* The message itself: entries follow one another, and no term passes the leader's. */
static bool following_is_well_formed(const struct raft_message *message)
{
    const struct raft_append *append = &message->append;
    int64_t term = append->prev_term;
    if (term > message->term || append->entry_count > RAFT_APPEND_ENTRIES_MAX) return false;
    for (size_t i = 0; i < append->entry_count; i++) {
        const struct raft_entry *entry = &append->entries[i];
        if (entry->index != append->prev_index + 1 + (int64_t)i) return false;
        if (entry->term < term || entry->term > message->term) return false;
        term = entry->term;
    }
    return true;
}

void raft_on_append_request(struct raft *raft, const struct raft_event *event)
{
    const struct raft_message *message = event->request.message;
    const struct raft_append *append = &message->append;
    const struct raft_sender *sender = &event->request.sender;
    uint64_t token = event->request.token;
    if (!following_group_passes(raft, sender)) {
        raft_refuse(raft, token, RAFT_REFUSE_WRONG_GROUP);
        return;
    }
    if (append->leader != sender->id || !following_is_well_formed(message)) {
        raft_refuse(raft, token, RAFT_REFUSE_BAD_REQUEST);
        return;
    }
    if (raft->disk_failed) {
        raft_refuse(raft, token, RAFT_REFUSE_BUSY);
        return;
    }
    if (!raft->bound && append->prev_index == 0 && !following_fits_unbound(sender, append)) {
        raft_refuse(raft, token, RAFT_REFUSE_BAD_REQUEST);
        return;
    }
    raft_observe_term(raft, message->term);
    if (message->term < raft->term ||
        !following_accept_leader(raft, append->leader, append->caretaker)) {
        following_answer(raft, event, false, 0);
        return;
    }
    enum following_result result = following_check_prev(raft, append);
    if (result == FOLLOWING_OK) result = following_take(raft, append);
    switch (result) {
    case FOLLOWING_OK:
        following_commit(raft, append);
        if (!raft->bound && !raft_log_is_founding_only(&raft->log)) {
            raft_bind(raft, &sender->group); /* that of its claim: following_fits_unbound() */
        }
        following_answer(raft, event, true, 0);
        break;
    case FOLLOWING_MISMATCH:
        following_answer(raft, event, false,
                         raft->bound ? following_hint(raft, append->prev_index) : 0);
        break;
    case FOLLOWING_CONFLICT:
        raft_alarm(raft, RAFT_ALARM_CONFLICT, sender->id, "");
        raft_refuse(raft, token, RAFT_REFUSE_BAD_REQUEST);
        break;
    case FOLLOWING_FULL: raft_refuse(raft, token, RAFT_REFUSE_BUSY); break;
    }
}

/* ---- snapshots ---------------------------------------------------------------------------- */

static void following_install(struct raft *raft, const struct raft_snapshot *snapshot)
{
    struct raft_log *log = &raft->log;
    if (snapshot->last_index <= log->commit && raft->bound) return; /* we have it all */
    bool keep_tail = raft->bound && snapshot->last_index <= raft_log_last_index(log) &&
                     snapshot->last_index > log->snapshot_index &&
                     raft_log_term_at(log, snapshot->last_index) == snapshot->last_term;
    raft_touch(raft);
    raft_log_install(log, snapshot, keep_tail);
    if (!raft->bound) raft_bind(raft, &snapshot->state.group);
    struct raft_action *action = raft_act(raft, RAFT_ACTION_INSTALLED);
    action->installed.index = snapshot->last_index;
    action->installed.view = log->known;
}

void raft_on_snapshot_request(struct raft *raft, const struct raft_event *event)
{
    const struct raft_message *message = event->request.message;
    const struct raft_snapshot *snapshot = &message->snapshot;
    const struct raft_sender *sender = &event->request.sender;
    uint64_t token = event->request.token;
    /* Only a bound leader has a snapshot, and it is of its own group. */
    if (uuid_is_none(&sender->group) || !uuid_equal(&snapshot->state.group, &sender->group)) {
        raft_refuse(raft, token, RAFT_REFUSE_WRONG_GROUP);
        return;
    }
    if (snapshot->leader != sender->id || snapshot->last_index < 1 ||
        snapshot->last_term > message->term) {
        raft_refuse(raft, token, RAFT_REFUSE_BAD_REQUEST);
        return;
    }
    if (raft->disk_failed) {
        raft_refuse(raft, token, RAFT_REFUSE_BUSY);
        return;
    }
    raft_observe_term(raft, message->term);
    /* A snapshot does not say whether a caretaker sends it: unless appends said that it is none,
     * it makes nobody sticky. */
    bool claims = raft->leader == snapshot->leader && !raft->leader_is_caretaker;
    bool ok =
        message->term == raft->term && following_accept_leader(raft, snapshot->leader, !claims);
    if (ok) following_install(raft, snapshot);
    struct raft_message answer = {
        .kind = RAFT_MESSAGE_SNAPSHOT_ANSWER,
        .term = raft->term,
        .snapshot_answer =
            {
                .ok = ok,
                .match = ok ? snapshot->last_index : 0,
                .round = snapshot->round,
            },
    };
    raft_answer(raft, token, &answer, true);
}
