/* persist.c: what waits for the state file.
 *
 * Each change of term, vote, log or snapshot is a new generation. Answers that promise something
 * are held until a state of at least their generation is durable. A held answer given in a term
 * that has passed is turned into a refusal: what it promised no longer describes this replica. No
 * answer, held or not, tells a term that a crash could take back (I13).                         */
#include "base/assert.h"
#include "raft/raft_core.h"

void raft_touch(struct raft *raft)
{
    raft->generation++;
}

void raft_enter_term(struct raft *raft, int64_t term, int32_t voted_for)
{
    ASSERT(term > raft->term);
    raft->term = term;
    raft->voted_for = voted_for;
    raft_touch(raft);
    raft->term_generation = raft->generation;
}

bool raft_is_synced(const struct raft *raft)
{
    return raft->generation == raft->persisted_generation;
}

static void persist_emit(struct raft *raft, uint64_t token, const struct raft_message *message)
{
    struct raft_action *action = raft_act(raft, RAFT_ACTION_ANSWER);
    action->answer.token = token;
    action->answer.message = *message;
}

/* The same answer, saying no for `why`. */
static void persist_revoke(struct raft_message *message, int64_t term, enum raft_no why)
{
    message->term = term;
    if (message->kind == RAFT_MESSAGE_VOTE_ANSWER) {
        message->vote_answer.granted = false;
        message->vote_answer.why = why;
    } else if (message->kind == RAFT_MESSAGE_APPEND_ANSWER) {
        message->append_answer.ok = false;
        message->append_answer.hint = message->append_answer.match;
        message->append_answer.match = 0;
    } else if (message->kind == RAFT_MESSAGE_SNAPSHOT_ANSWER) {
        message->snapshot_answer.ok = false;
        message->snapshot_answer.match = 0;
    }
}

void raft_answer(struct raft *raft, uint64_t token, const struct raft_message *message,
                 bool wait_for_disk)
{
    if (!wait_for_disk || raft_is_synced(raft)) {
        persist_emit(raft, token, message);
    } else if (raft->held_count == RAFT_HELD_MAX) {
        raft_refuse(raft, token, RAFT_REFUSE_BUSY);
    } else {
        raft->held[raft->held_count++] = (struct raft_held){
            .generation = raft->generation,
            .token = token,
            .message = *message,
        };
    }
}

void raft_on_persisted(struct raft *raft, uint64_t generation)
{
    ASSERT(generation <= raft->generation);
    if (raft->disk_failed || generation <= raft->persisted_generation) return;
    raft->persisted_generation = generation;
    if (generation >= raft->term_generation) raft->durable_term = raft->term;
    int kept = 0;
    for (int i = 0; i < raft->held_count; i++) {
        struct raft_held *held = &raft->held[i];
        if (held->generation > generation) {
            raft->held[kept++] = *held;
            continue;
        }
        if (held->message.term > raft->durable_term) raft->durable_term = held->message.term;
        if (held->message.term < raft->term) {
            persist_revoke(&held->message, raft->durable_term, RAFT_NO_TERM);
        }
        persist_emit(raft, held->token, &held->message);
    }
    raft->held_count = kept;
}

void raft_on_persist_failed(struct raft *raft)
{
    if (raft->disk_failed) return;
    raft->disk_failed = true;
    for (int i = 0; i < raft->held_count; i++) {
        struct raft_held *held = &raft->held[i];
        if (held->message.kind == RAFT_MESSAGE_VOTE_ANSWER) {
            persist_revoke(&held->message, raft->durable_term, RAFT_NO_DISK);
            persist_emit(raft, held->token, &held->message);
        } else {
            raft_refuse(raft, held->token, RAFT_REFUSE_BUSY);
        }
    }
    raft->held_count = 0;
    raft_alarm(raft, RAFT_ALARM_DISK, raft->options.self, "");
    if (raft->role == RAFT_ROLE_LEADER) raft_step_down(raft, RAFT_DOWN_DISK);
    raft_follow(raft);
}
