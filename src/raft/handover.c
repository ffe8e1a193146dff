/* handover.c: telling another replica to stand, and being told.
 *
 * A serving leader does it for a transfer: the shell has stopped produces and made sure that the
 * target holds all data; here the target must hold the whole Raft log. A caretaker does it as soon
 * as an ISR member holds its log. The target pre-votes at once; voters let go of a living leader
 * because the vote names it and its epoch. Spec: replication-wire.md section 4 (`stand`).      */
#include "base/assert.h"
#include "raft/raft_core.h"

/* ---- the one who leads -------------------------------------------------------------------- */

enum status raft_transfer_start(struct raft *raft, const struct raft_event *event)
{
    if (raft->role != RAFT_ROLE_LEADER || raft->caretaker || !raft->claim_reported) {
        return STATUS_NOT_LEADER;
    }
    const struct raft_peer *peer = raft_find_peer(raft, event->transfer.target);
    if (peer == NULL || !raft_ids_contain(&raft->log.known.isr, peer->id)) return STATUS_INVALID;
    if (raft->transfer.active || raft_log_change_pending(&raft->log)) return STATUS_CONFLICT;
    raft->transfer = (struct raft_transfer){
        .active = true,
        .target = peer->id,
        .has_version = event->transfer.has_version,
        .version = event->transfer.version,
        .deadline_us = raft->now_us + RAFT_TRANSFER_US,
    };
    return STATUS_OK;
}

void raft_transfer_cancel(struct raft *raft)
{
    raft->transfer = (struct raft_transfer){0};
}

void raft_transfer_fail(struct raft *raft, enum raft_no why)
{
    struct raft_action *action = raft_act(raft, RAFT_ACTION_TRANSFER_FAILED);
    action->transfer_failed.target = raft->transfer.target;
    action->transfer_failed.why = why;
    raft->transfer = (struct raft_transfer){0};
}

/* May the caretaker hand over to this one? It is in the set by the whole log, counts, and has the
 * caretaker's log; those that refused for damage get another turn after the others. */
static bool handover_suits_caretaker(const struct raft *raft, const struct raft_peer *peer)
{
    return raft_ids_contain(&raft->log.seen.isr, peer->id) && raft_peer_counts(raft, peer) &&
           raft->now_us >= peer->stand_not_before_us && raft->now_us >= raft->hand_over_at_us;
}

bool raft_stand_due(const struct raft *raft, const struct raft_peer *peer)
{
    if (peer->match != raft_log_last_index(&raft->log)) return false;
    if (raft->caretaker) return handover_suits_caretaker(raft, peer);
    return raft->transfer.active && !raft->transfer.sent && raft->transfer.target == peer->id;
}

void raft_send_stand(struct raft *raft, struct raft_peer *peer)
{
    struct raft_message message = {
        .kind = RAFT_MESSAGE_STAND,
        .term = raft->term,
        .stand =
            {
                .leader = raft->options.self,
                .epoch = raft->log.seen.epoch,
                .has_version = raft->transfer.active && raft->transfer.has_version,
                .version = raft->transfer.version,
            },
    };
    if (raft->transfer.active) raft->transfer.sent = true;
    /* Accepted or not: the next to be asked is another, this one only after a while, and none while
     * this one may be standing: two at a time split the votes. */
    raft->hand_over_at_us = raft->now_us + raft->options.election_timeout_us / 4;
    peer->stand_not_before_us = raft->now_us + raft->options.election_timeout_us / 2;
    raft_call(raft, peer, &message);
}

void raft_on_stand_answer(struct raft *raft, struct raft_peer *peer,
                          const struct raft_message *message)
{
    peer->call = 0;
    if (raft->role != RAFT_ROLE_LEADER) return;
    if (message->term > raft->term) {
        raft_observe_term(raft, message->term);
        return;
    }
    if (!message->stand_answer.accepted) raft->hand_over_at_us = raft->now_us;
    bool ours = raft->transfer.active && raft->transfer.target == peer->id;
    if (ours && !message->stand_answer.accepted) {
        raft_transfer_fail(raft, message->stand_answer.why);
    }
}

/* ---- the one who is told ------------------------------------------------------------------ */

static enum raft_no handover_judge(const struct raft *raft, const struct raft_event *event)
{
    const struct raft_message *message = event->request.message;
    if (raft->disk_failed) return RAFT_NO_DISK;
    if (message->term != raft->term) return RAFT_NO_TERM;
    if (raft->leader != event->request.sender.id) return RAFT_NO_OTHER;
    if (raft_is_learner(raft)) return RAFT_NO_LEARNER;
    if (!raft_is_synced(raft)) return RAFT_NO_LOG;
    if (raft_may_stand(raft) != RAFT_STANDS_ELIGIBLE) {
        bool damaged =
            raft->data != RAFT_DATA_OK && raft_ids_contain(&raft->log.seen.isr, raft->options.self);
        return damaged ? RAFT_NO_DAMAGED : RAFT_NO_NOT_ELIGIBLE;
    }
    return event->request.version_applied ? RAFT_NO_NOTHING : RAFT_NO_VERSION;
}

/* A leader with a claim that names no version cut its own tail and found this replica to hold more:
 * here is damage, there may be committed records missing. Damaged copies answer errors and are
 * mended by the other; refusing, both would wait for ever (F28). */
static bool handover_is_for_want_of_data(const struct raft *raft,
                                         const struct raft_message *message)
{
    return !raft->leader_is_caretaker && !message->stand.has_version;
}

void raft_on_stand_request(struct raft *raft, const struct raft_event *event)
{
    if (!raft->bound || uuid_is_none(&event->request.sender.group)) {
        raft_refuse(raft, event->request.token, RAFT_REFUSE_WRONG_GROUP);
        return;
    }
    bool was_though_damaged = raft->stand_though_damaged;
    if (handover_is_for_want_of_data(raft, event->request.message)) {
        raft->stand_though_damaged = true;
    }
    enum raft_no why = handover_judge(raft, event);
    if (why != RAFT_NO_NOTHING) raft->stand_though_damaged = was_though_damaged;
    struct raft_message answer = {
        .kind = RAFT_MESSAGE_STAND_ANSWER,
        .term = raft->durable_term,
        .stand_answer = {.accepted = why == RAFT_NO_NOTHING, .why = why},
    };
    raft_answer(raft, event->request.token, &answer, false);
    if (why != RAFT_NO_NOTHING) return;
    raft->transfer_leader = event->request.sender.id;
    raft->transfer_epoch = event->request.message->stand.epoch;
    raft_stand(raft, RAFT_WHY_TRANSFER);
}
