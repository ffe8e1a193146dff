/* raft_rig.h: one Raft core under test, fed by hand. Replicas 1, 2, 3; the core is replica 1
 * unless said otherwise. Included, not linked.                                                */
#ifndef MOONMQ_TESTS_RAFT_RIG_H
#define MOONMQ_TESTS_RAFT_RIG_H

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "raft/raft.h"

#define RIG_MS    INT64_C(1000)
#define RIG_T     (1000 * RIG_MS)
#define RIG_START (50 * RIG_T)
#define RIG_GROUP 77
#define RIG_LOG   8

struct rig {
    struct raft *raft;
    struct raft_actions *out;
    int64_t now_us;
    uint64_t token;
    struct raft_options options;
};

static inline struct uuid rig_uuid(int number)
{
    struct uuid uuid = {{0}};
    uuid.bytes[0] = 1;
    uuid.bytes[15] = (uint8_t)number;
    return uuid;
}

static inline struct raft_ids rig_ids(int a, int b, int c)
{
    struct raft_ids set = {0};
    int all[] = {a, b, c};
    for (int i = 0; i < 3; i++) {
        if (all[i] != 0) (void)raft_ids_add(&set, all[i]);
    }
    return set;
}

/* ---- entries ------------------------------------------------------------------------------ */

static inline struct raft_entry rig_founding(int64_t index, int64_t term, int leader)
{
    struct raft_entry entry = {.index = index, .term = term, .epoch = term};
    entry.kind = RAFT_ENTRY_CLAIM;
    entry.claim.leader = leader;
    entry.claim.min_insync = 2;
    entry.claim.founding = true;
    entry.claim.group = rig_uuid(RIG_GROUP);
    entry.claim.member_count = 3;
    for (int i = 0; i < 3; i++) {
        entry.claim.members[i] = (struct raft_member){.id = i + 1, .incarnation = rig_uuid(i + 1)};
    }
    entry.claim.isr = rig_ids(1, 2, 3);
    return entry;
}

static inline struct raft_entry rig_claim(int64_t index, int64_t term, int leader)
{
    struct raft_entry entry = {.index = index, .term = term, .epoch = term};
    entry.kind = RAFT_ENTRY_CLAIM;
    entry.claim.leader = leader;
    entry.claim.min_insync = 2;
    return entry;
}

static inline struct raft_entry rig_isr(int64_t index, int64_t term, int64_t epoch,
                                        struct raft_ids isr)
{
    struct raft_entry entry = {.index = index, .term = term, .epoch = epoch};
    entry.kind = RAFT_ENTRY_ISR;
    entry.isr.isr = isr;
    entry.isr.why = RAFT_ISR_GONE;
    return entry;
}

static inline struct raft_entry rig_incarnation(int64_t index, int64_t term, int replica,
                                                int incarnation)
{
    struct raft_entry entry = {.index = index, .term = term, .epoch = term};
    entry.kind = RAFT_ENTRY_INCARNATION;
    entry.incarnation.replica = replica;
    entry.incarnation.incarnation = rig_uuid(incarnation);
    return entry;
}

static inline struct raft_entry rig_noop(int64_t index, int64_t term)
{
    return (struct raft_entry){.index = index, .term = term, .kind = RAFT_ENTRY_NOOP};
}

static inline struct raft_entry rig_opaque(int64_t index, int64_t term)
{
    struct raft_entry entry = {.index = index, .term = term, .kind = RAFT_ENTRY_OPAQUE};
    strcpy(entry.opaque.kind, "members");
    strcpy(entry.opaque.data, "{}");
    return entry;
}

/* ---- the core ----------------------------------------------------------------------------- */

static inline void rig_step(struct rig *rig, struct raft_event event)
{
    event.now_us = rig->now_us;
    (void)raft_step(rig->raft, &event, rig->out);
}

static inline enum status rig_try(struct rig *rig, struct raft_event event)
{
    event.now_us = rig->now_us;
    return raft_step(rig->raft, &event, rig->out);
}

static inline void rig_tick(struct rig *rig)
{
    rig_step(rig, (struct raft_event){.kind = RAFT_EVENT_TICK});
}

static inline void rig_wait(struct rig *rig, int64_t us)
{
    rig->now_us += us;
    rig_tick(rig);
}

static inline struct rig *rig_new_with(struct raft_options options, const struct raft_state *state)
{
    struct rig *rig = memory_new(sizeof(*rig));
    rig->out = memory_new(sizeof(*rig->out));
    rig->now_us = RIG_START;
    options.now_us = RIG_START;
    rig->options = options;
    rig->raft = raft_new(&options, state);
    rig_tick(rig);
    return rig;
}

static inline struct raft_options rig_options(bool bound)
{
    struct raft_options options;
    raft_options_init(&options);
    options.self = 1;
    options.members = rig_ids(1, 2, 3);
    options.incarnation = rig_uuid(1);
    options.group = bound ? rig_uuid(RIG_GROUP) : (struct uuid){{0}};
    options.min_insync = 2;
    options.seed = 9;
    return options;
}

/* Replica 1, bound, in `term`, with these entries on disk. */
static inline struct rig *rig_new(int64_t term, const struct raft_entry *entries, size_t count)
{
    struct raft_state *state = calloc(1, sizeof(*state) + count * sizeof(entries[0]));
    ASSERT(state != NULL);
    state->replica = 1;
    state->incarnation = rig_uuid(1);
    state->term = term;
    state->voted_for = RAFT_NOBODY;
    raft_view_init(&state->snapshot);
    state->entry_count = count;
    memcpy(state->entries, entries, count * sizeof(entries[0]));
    struct rig *rig = rig_new_with(rig_options(true), state);
    free(state);
    return rig;
}

/* Bound, term 1, the founding claim of replica 2 on disk. */
static inline struct rig *rig_member(void)
{
    struct raft_entry founding = rig_founding(1, 1, 2);
    return rig_new(1, &founding, 1);
}

static inline void rig_free(struct rig *rig)
{
    raft_free(rig->raft);
    free(rig->out);
    free(rig);
}

static inline struct raft_info rig_info(struct rig *rig)
{
    struct raft_info info;
    raft_get_info(rig->raft, &info);
    return info;
}

/* ---- actions ------------------------------------------------------------------------------ */

static inline const struct raft_action *rig_find(struct rig *rig, enum raft_action_kind kind)
{
    for (size_t i = 0; i < rig->out->count; i++) {
        if (rig->out->items[i].kind == kind) return &rig->out->items[i];
    }
    return NULL;
}

static inline int rig_count(struct rig *rig, enum raft_action_kind kind)
{
    int count = 0;
    for (size_t i = 0; i < rig->out->count; i++)
        count += rig->out->items[i].kind == kind;
    return count;
}

/* The call to `peer` in the last step, or NULL. */
static inline const struct raft_action *rig_call_to(struct rig *rig, int peer)
{
    for (size_t i = 0; i < rig->out->count; i++) {
        const struct raft_action *action = &rig->out->items[i];
        if (action->kind == RAFT_ACTION_CALL && action->call.peer == peer) return action;
    }
    return NULL;
}

static inline const struct raft_message *rig_answer(struct rig *rig)
{
    const struct raft_action *action = rig_find(rig, RAFT_ACTION_ANSWER);
    return action == NULL ? NULL : &action->answer.message;
}

static inline void rig_persist(struct rig *rig)
{
    struct raft_event event = {.kind = RAFT_EVENT_PERSISTED};
    event.persisted.generation = raft_generation(rig->raft);
    rig_step(rig, event);
}

/* ---- what peers say ----------------------------------------------------------------------- */

static inline struct raft_sender rig_sender(int id)
{
    return (struct raft_sender){
        .id = id, .incarnation = rig_uuid(id), .group = rig_uuid(RIG_GROUP)};
}

static inline void rig_request(struct rig *rig, struct raft_sender sender,
                               const struct raft_message *message)
{
    struct raft_event event = {.kind = RAFT_EVENT_REQUEST};
    event.request.sender = sender;
    event.request.token = ++rig->token;
    event.request.version_applied = true;
    event.request.message = message;
    rig_step(rig, event);
}

static inline struct raft_message rig_vote(bool pre, int64_t term, int64_t last_index,
                                           int64_t last_term)
{
    struct raft_message message = {.kind = RAFT_MESSAGE_VOTE, .term = term};
    message.vote.pre = pre;
    message.vote.why = RAFT_WHY_TIMEOUT;
    message.vote.last_index = last_index;
    message.vote.last_term = last_term;
    return message;
}

static inline struct raft_message rig_append(int64_t term, int leader, int64_t prev_index,
                                             int64_t prev_term, int64_t commit,
                                             const struct raft_entry *entries, size_t count)
{
    struct raft_message message = {.kind = RAFT_MESSAGE_APPEND, .term = term};
    message.append.leader = leader;
    message.append.prev_index = prev_index;
    message.append.prev_term = prev_term;
    message.append.commit = commit;
    message.append.round = 1;
    message.append.entries = entries;
    message.append.entry_count = count;
    return message;
}

/* A heartbeat of replica 2, leader of `term`, after `prev`. */
static inline void rig_hear_leader(struct rig *rig, int64_t term, int64_t prev_index,
                                   int64_t prev_term, bool caretaker)
{
    struct raft_message beat = rig_append(term, 2, prev_index, prev_term, 0, NULL, 0);
    beat.append.caretaker = caretaker;
    rig_request(rig, rig_sender(2), &beat);
    rig_persist(rig);
}

static inline void rig_link(struct rig *rig, int peer, enum raft_link link,
                            enum raft_link_state state)
{
    struct raft_event event = {.kind = RAFT_EVENT_LINK};
    event.link.peer = peer;
    event.link.link = link;
    event.link.state = state;
    rig_step(rig, event);
}

static inline void rig_hello(struct rig *rig, struct raft_sender sender, bool holds_records)
{
    struct raft_event event = {.kind = RAFT_EVENT_HELLO};
    event.hello.sender = sender;
    event.hello.members_equal = true;
    event.hello.fresh = uuid_is_none(&sender.group);
    event.hello.holds_records = holds_records;
    rig_step(rig, event);
}

/* Answers our call to `peer` that is in the last step's actions; false if there is none. */
static inline bool rig_answer_call(struct rig *rig, struct raft_sender sender,
                                   const struct raft_message *answer)
{
    const struct raft_action *call = rig_call_to(rig, sender.id);
    if (call == NULL) return false;
    struct raft_event event = {.kind = RAFT_EVENT_ANSWER};
    event.answer.sender = sender;
    event.answer.call = call->call.call;
    event.answer.message = answer;
    rig_step(rig, event);
    return true;
}

static inline bool rig_answer_vote(struct rig *rig, struct raft_sender sender, bool granted)
{
    const struct raft_action *call = rig_call_to(rig, sender.id);
    if (call == NULL) return false;
    bool pre = call->call.message.vote.pre;
    struct raft_message answer = {.kind = RAFT_MESSAGE_VOTE_ANSWER};
    answer.term = pre ? call->call.message.term - 1 : call->call.message.term;
    answer.vote_answer.pre = pre;
    answer.vote_answer.granted = granted;
    answer.vote_answer.fresh = uuid_is_none(&sender.group);
    answer.vote_answer.why = granted ? RAFT_NO_NOTHING : RAFT_NO_LEADER_ALIVE;
    return rig_answer_call(rig, sender, &answer);
}

/* Answers the append in the last step: holds all of it. */
static inline bool rig_answer_append(struct rig *rig, struct raft_sender sender, bool bound)
{
    const struct raft_action *call = rig_call_to(rig, sender.id);
    if (call == NULL || call->call.message.kind != RAFT_MESSAGE_APPEND) return false;
    const struct raft_append *append = &call->call.message.append;
    struct raft_message answer = {.kind = RAFT_MESSAGE_APPEND_ANSWER};
    answer.term = call->call.message.term;
    answer.append_answer.ok = true;
    answer.append_answer.match = append->prev_index + (int64_t)append->entry_count;
    answer.append_answer.bound = bound;
    answer.append_answer.round = append->round;
    return rig_answer_call(rig, sender, &answer);
}

/* Stands by time-out and wins with the vote of replica 2; links open; nothing answered yet. The
 * last step's actions hold the appends if `links`. */
static inline void rig_win(struct rig *rig)
{
    rig_hello(rig, rig_sender(2), false);
    for (int i = 0; i < 80 && rig_info(rig).role != RAFT_ROLE_PRE_CANDIDATE; i++) {
        rig_wait(rig, 100 * RIG_MS);
    }
    ASSERT(rig_answer_vote(rig, rig_sender(2), true));
    rig_persist(rig);
    ASSERT(rig_answer_vote(rig, rig_sender(2), true));
    ASSERT(rig_info(rig).role == RAFT_ROLE_LEADER);
}

/* As rig_win(), and serves: replica 2 holds the claim, no call is in flight. */
static inline void rig_serve(struct rig *rig)
{
    rig_win(rig);
    rig_persist(rig);
    rig_link(rig, 2, RAFT_LINK_RAFT_OUT, RAFT_LINK_OPEN);
    while (rig_answer_append(rig, rig_sender(2), true))
        continue;
    ASSERT(rig_info(rig).claim_committed);
}

#endif
