/* voting.c: judging a replica that stands.
 *
 * A pre-vote changes nothing here, whatever comes of it; a vote refused because a leader is alive
 * does not either, so that a replica that lost sight of the leader cannot depose it. Spec:
 * replication-wire.md section 4.                                                             */
#include "base/mutant.h"
#include "raft/raft_core.h"

/* A replica that leads with a majority behind it is its own living leader. */
static bool voting_lead_is_alive(const struct raft *raft, const struct raft_sender *sender,
                                 const struct raft_vote *vote)
{
    if (raft->caretaker) return false;
    bool ours = vote->has_transfer && vote->transfer_leader == raft->options.self &&
                vote->transfer_epoch == raft->term;
    return !(ours && raft->transfer.active && raft->transfer.target == sender->id);
}

static bool voting_leader_is_alive(struct raft *raft, const struct raft_sender *sender,
                                   const struct raft_vote *vote)
{
    if (raft->role == RAFT_ROLE_LEADER) return voting_lead_is_alive(raft, sender, vote);
    if (raft->heard_leader == RAFT_NOBODY) return false;
    if (raft->now_us - raft->heard_us >= raft->options.election_timeout_us) return false;
    if (raft->heard_leader == sender->id) return false; /* by standing it says that it leads not */
    struct raft_peer *leader = raft_find_peer(raft, raft->heard_leader);
    if (leader == NULL) return false;
    if (leader->control_refused && !leader->raft_in_open) return false;
    if (leader->said_not_leading) return false;
    bool transfer = vote->has_transfer && vote->transfer_leader == raft->heard_leader &&
                    vote->transfer_epoch == raft->heard_term;
    return !transfer;
}

static bool voting_log_is_complete(const struct raft *raft, const struct raft_vote *vote)
{
    int64_t last_term = raft_log_last_term(&raft->log);
    if (vote->last_term != last_term) return vote->last_term > last_term;
    return vote->last_index >= raft_log_last_index(&raft->log);
}

/* What stands against the asker before terms are looked at. */
static enum raft_no voting_judge_asker(struct raft *raft, const struct raft_sender *sender)
{
    bool asker_unbound = uuid_is_none(&sender->group);
    if (raft->disk_failed) return RAFT_NO_DISK;
    if (asker_unbound && raft->bound) return RAFT_NO_FOUNDED;
    if (raft_is_learner(raft)) return RAFT_NO_LEARNER;
    if (asker_unbound && raft->holds_records) return RAFT_NO_HOLDS_RECORDS;
    return RAFT_NO_NOTHING;
}

static void voting_grant(struct raft *raft, int32_t candidate)
{
    raft_follow(raft);
    if (raft->voted_for != candidate) {
        raft->voted_for = candidate;
        raft_touch(raft);
    }
    raft_arm_election(raft);
    /* One founds at a time: the others give it a chance. */
    if (!raft->bound) {
        raft->founding_not_before_us = raft->now_us + raft_random_timeout(raft);
        raft->founding_at_us = RAFT_TIME_NEVER;
    }
}

static enum raft_no voting_judge(struct raft *raft, const struct raft_sender *sender,
                                 const struct raft_message *message)
{
    const struct raft_vote *vote = &message->vote;
    enum raft_no why = voting_judge_asker(raft, sender);
    if (why != RAFT_NO_NOTHING) return why;
    if (message->term < raft->term) return RAFT_NO_TERM;
    if (voting_leader_is_alive(raft, sender, vote)) return RAFT_NO_LEADER_ALIVE;
    if (!vote->pre) raft_observe_term(raft, message->term);
    if (!voting_log_is_complete(raft, vote)) return RAFT_NO_LOG;
    bool voted = message->term == raft->term && raft->voted_for != RAFT_NOBODY &&
                 raft->voted_for != sender->id;
    return voted ? RAFT_NO_VOTED : RAFT_NO_NOTHING;
}

void raft_on_vote_request(struct raft *raft, const struct raft_event *event)
{
    const struct raft_message *message = event->request.message;
    const struct raft_sender *sender = &event->request.sender;
    bool pre = message->vote.pre;
    if (MUTANT(26) && pre && message->term < raft->term) {
        raft_refuse(raft, event->request.token, RAFT_REFUSE_BUSY);
        return;
    }
    enum raft_no why = voting_judge(raft, sender, message);
    bool granted = why == RAFT_NO_NOTHING;
    if (granted && !pre) voting_grant(raft, sender->id);
    /* A pre-vote promises nothing, and a broken disk will never hold what is promised. */
    bool at_once = pre || raft->disk_failed;
    struct raft_message answer = {
        .kind = RAFT_MESSAGE_VOTE_ANSWER,
        .term = at_once ? raft->durable_term : raft->term,
        .vote_answer =
            {
                .pre = pre,
                .granted = granted,
                .why = why,
                .fresh = !raft->bound,
                .holds_records = raft->holds_records,
            },
    };
    raft_answer(raft, event->request.token, &answer, !at_once);
}
