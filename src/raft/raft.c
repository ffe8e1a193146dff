/* raft.c: creation, the order of one step, and questions; see raft.h. */
#include "raft/raft.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "raft/raft_core.h"

void raft_options_init(struct raft_options *options)
{
    *options = (struct raft_options){
        .may_found = true,
        .min_insync = 1,
        .election_timeout_us = 1000 * RAFT_MS,
        .election_timeout_us_max = 2000 * RAFT_MS,
        .heartbeat_us = 100 * RAFT_MS,
        .commit_timeout_us = 10000 * RAFT_MS,
        .follower_gone_us = 500 * RAFT_MS,
        .max_log_entries = 512,
    };
}

static void raft_check_options(const struct raft_options *options)
{
    ASSERT(options->members.count >= 2 && options->members.count <= RAFT_MEMBERS_MAX);
    ASSERT(options->self >= 0 && raft_ids_contain(&options->members, options->self));
    ASSERT(!uuid_is_none(&options->incarnation));
    ASSERT(options->min_insync >= 1 && options->min_insync <= options->members.count);
    ASSERT(options->election_timeout_us > 0);
    ASSERT(options->election_timeout_us_max >= options->election_timeout_us);
    ASSERT(options->heartbeat_us > 0 && options->commit_timeout_us > 0);
    ASSERT(options->max_log_entries >= 2 && options->max_log_entries <= 4096);
    ASSERT(options->append_entries_max >= 0 &&
           options->append_entries_max <= RAFT_APPEND_ENTRIES_MAX);
}

static void raft_init_peers(struct raft *raft)
{
    const struct raft_ids *members = &raft->options.members;
    for (int i = 0; i < members->count; i++) {
        if (members->ids[i] == raft->options.self) continue;
        raft->peers[raft->peer_count++] = (struct raft_peer){
            .id = members->ids[i],
            .recorded_heard_us = RAFT_TIME_LONG_AGO,
            .other_heard_us = RAFT_TIME_LONG_AGO,
            .heard_us = RAFT_TIME_LONG_AGO,
        };
    }
}

struct raft *raft_new(const struct raft_options *options, const struct raft_state *state)
{
    raft_check_options(options);
    struct raft *raft = memory_new(sizeof(*raft));
    raft->options = *options;
    if (raft->options.append_entries_max == 0) {
        raft->options.append_entries_max = RAFT_APPEND_ENTRIES_MAX;
    }
    random_seed(&raft->random, options->seed);
    raft->now_us = options->now_us;
    raft->voted_for = RAFT_NOBODY;
    raft->leader = RAFT_NOBODY;
    raft->heard_leader = RAFT_NOBODY;
    raft->heard_us = RAFT_TIME_LONG_AGO;
    raft->role = RAFT_ROLE_FOLLOWER;
    raft->data = RAFT_DATA_OK;
    raft->holds_records = options->holds_records;
    raft->leaderless_since_us = options->now_us;
    raft->rest_until_us = options->now_us;
    raft->founding_not_before_us = options->now_us;
    raft->founding_at_us = RAFT_TIME_NEVER;
    raft->change_since_us = RAFT_TIME_NEVER;
    raft->next_call = 1;
    int capacity =
        2 * options->max_log_entries + RAFT_APPEND_ENTRIES_MAX + RAFT_UNCOMMITTED_CLAIMS_MAX;
    if (state != NULL && (size_t)capacity < state->entry_count + 8) {
        capacity = (int)state->entry_count + 8; /* MaxLogEntries was lowered */
    }
    raft_log_init(&raft->log, capacity);
    if (state != NULL) {
        ASSERT(state->replica == options->self);
        raft->term = raft->durable_term = state->term;
        raft->voted_for = state->voted_for;
        raft->readmitted_count = state->readmitted_count;
        memcpy(raft->readmitted, state->readmitted, sizeof(raft->readmitted));
        raft_log_load(&raft->log, state);
    }
    raft->group = options->group;
    raft->bound = raft->bound_synced = raft->bound_reported = !uuid_is_none(&options->group);
    raft_init_peers(raft);
    raft_arm_election(raft);
    return raft;
}

void raft_free(struct raft *raft)
{
    if (raft == NULL) return;
    raft_log_deinit(&raft->log);
    free(raft);
}

enum raft_restart raft_judge_restart(int32_t self, const struct uuid *incarnation,
                                     const struct raft_state *state)
{
    if (MUTANT(29)) return RAFT_RESTART_KEEP;
    if (uuid_is_none(incarnation) || state == NULL) return RAFT_RESTART_NEW_INCARNATION;
    bool ours = state->replica == self && uuid_equal(&state->incarnation, incarnation);
    return ours ? RAFT_RESTART_KEEP : RAFT_RESTART_NEW_INCARNATION;
}

struct raft_state *raft_state_copy(const struct raft *raft)
{
    const struct raft_log *log = &raft->log;
    size_t entries_bytes = (size_t)log->count * sizeof(log->entries[0]);
    struct raft_state *state = malloc(sizeof(*state) + entries_bytes);
    if (state == NULL) return NULL;
    *state = (struct raft_state){
        .replica = raft->options.self,
        .incarnation = raft->options.incarnation,
        .term = raft->term,
        .voted_for = raft->voted_for,
        .snapshot_index = log->snapshot_index,
        .snapshot_term = log->snapshot_term,
        .snapshot = log->snapshot,
        .readmitted_count = raft->readmitted_count,
        .entry_count = (size_t)log->count,
    };
    memcpy(state->readmitted, raft->readmitted, sizeof(state->readmitted));
    memcpy(state->entries, log->entries, entries_bytes);
    return state;
}

/* ---- small things every file needs -------------------------------------------------------- */

struct raft_action *raft_act(struct raft *raft, enum raft_action_kind kind)
{
    /* Entries applied leave RAFT_ACTIONS_RESERVED free; nothing else comes near that many. */
    ASSERT(raft->out->count < RAFT_ACTIONS_MAX);
    struct raft_action *action = &raft->out->items[raft->out->count++];
    action->kind = kind;
    return action;
}

void raft_alarm(struct raft *raft, enum raft_alarm alarm, int32_t replica, const char *text)
{
    struct raft_action *action = raft_act(raft, RAFT_ACTION_ALARM);
    action->alarm.alarm = alarm;
    action->alarm.replica = replica;
    memset(action->alarm.text, 0, sizeof(action->alarm.text));
    strncpy(action->alarm.text, text, sizeof(action->alarm.text) - 1);
}

void raft_refuse(struct raft *raft, uint64_t token, enum raft_refusal refusal)
{
    struct raft_action *action = raft_act(raft, RAFT_ACTION_REFUSE);
    action->refuse.token = token;
    action->refuse.refusal = refusal;
}

struct raft_peer *raft_find_peer(struct raft *raft, int32_t id)
{
    for (int i = 0; i < raft->peer_count; i++) {
        if (raft->peers[i].id == id) return &raft->peers[i];
    }
    return NULL;
}

int raft_member_count(const struct raft *raft)
{
    const struct raft_view *seen = &raft->log.seen;
    return seen->member_count > 0 ? seen->member_count : raft->options.members.count;
}

bool raft_is_member(const struct raft *raft, int32_t id)
{
    const struct raft_view *seen = &raft->log.seen;
    if (seen->member_count > 0) return raft_view_member(seen, id) != NULL;
    return raft_ids_contain(&raft->options.members, id);
}

int raft_majority(const struct raft *raft)
{
    return raft_member_count(raft) / 2 + 1;
}

static bool raft_is_readmitted(const struct raft *raft, int32_t id, const struct uuid *incarnation)
{
    for (int i = 0; i < raft->readmitted_count; i++) {
        const struct raft_member *member = &raft->readmitted[i];
        if (member->id == id && uuid_equal(&member->incarnation, incarnation)) return true;
    }
    return false;
}

bool raft_counts(const struct raft *raft, int32_t id, const struct uuid *incarnation)
{
    if (!raft_is_member(raft, id)) return false;
    const struct raft_view *seen = &raft->log.seen;
    if (uuid_is_none(&seen->group) || MUTANT(7)) return true;
    if (raft_is_readmitted(raft, id, incarnation)) return true;
    /* Known committed; or in the tail, and followed by proof that it was committed. Counting on
     * any other would let a wiped replica help to commit its own return. */
    if (raft_view_records(&raft->log.known, id, incarnation)) return true;
    return raft_view_records(seen, id, incarnation) && raft_view_member(seen, id)->sure;
}

bool raft_counts_self(const struct raft *raft)
{
    return raft_counts(raft, raft->options.self, &raft->options.incarnation);
}

bool raft_is_learner(const struct raft *raft)
{
    if (!raft->bound || MUTANT(29)) return false;
    /* A bound replica without a log lost it: what the group has on record is not this one. */
    int32_t self = raft->options.self;
    const struct uuid *incarnation = &raft->options.incarnation;
    return !raft_view_records(&raft->log.seen, self, incarnation) &&
           !raft_is_readmitted(raft, self, incarnation);
}

int64_t raft_random_timeout(struct raft *raft)
{
    return random_between(&raft->random, raft->options.election_timeout_us,
                          raft->options.election_timeout_us_max);
}

void raft_set_leader(struct raft *raft, int32_t leader, bool caretaker)
{
    if (raft->leader == leader && raft->leader_is_caretaker == caretaker) return;
    raft->leader = leader;
    raft->leader_is_caretaker = caretaker;
    if (leader == raft->options.self) return; /* BECAME_LEADER says it */
    struct raft_action *action = raft_act(raft, RAFT_ACTION_FOLLOWS);
    action->follows.leader = leader;
    action->follows.term = raft->term;
    action->follows.caretaker = caretaker;
}

void raft_bind(struct raft *raft, const struct uuid *group)
{
    ASSERT(!raft->bound && !uuid_is_none(group));
    raft->bound = true;
    raft->group = *group;
}

void raft_follow(struct raft *raft)
{
    if (MUTANT(23) && raft->role != RAFT_ROLE_FOLLOWER) raft->voted_for = RAFT_NOBODY;
    raft->role = RAFT_ROLE_FOLLOWER;
    raft->stand_though_damaged = false;
}

void raft_observe_term(struct raft *raft, int64_t term)
{
    if (term <= raft->term) return;
    if (raft->role == RAFT_ROLE_LEADER) {
        raft_step_down(raft, raft->transfer.active ? RAFT_DOWN_TRANSFERRED : RAFT_DOWN_TERM);
    }
    raft_follow(raft);
    raft_enter_term(raft, term, RAFT_NOBODY);
    raft_set_leader(raft, RAFT_NOBODY, false);
}

/* ---- events ------------------------------------------------------------------------------- */

/* Two incarnations that speak in turn under one id are two hosts with one ReplicaId. */
static void raft_note_speaker(struct raft *raft, const struct raft_sender *sender)
{
    struct raft_peer *peer = raft_find_peer(raft, sender->id);
    const struct raft_view_member *member = raft_view_member(&raft->log.known, sender->id);
    if (peer == NULL || member == NULL || uuid_is_none(&member->incarnation)) return;
    if (!uuid_equal(&member->incarnation, &sender->incarnation)) {
        peer->other_heard_us = raft->now_us;
        peer->other_incarnation = sender->incarnation;
        return;
    }
    peer->recorded_heard_us = raft->now_us;
    /* The other one may be on record since: it came after a wipe, and is alone. */
    if (uuid_equal(&peer->other_incarnation, &sender->incarnation)) return;
    if (raft->now_us - peer->other_heard_us < raft->options.follower_gone_us) {
        peer->other_heard_us = RAFT_TIME_LONG_AGO;
        raft_alarm(raft, RAFT_ALARM_WRONG_REPLICA, sender->id, "");
    }
}

static void raft_on_request(struct raft *raft, const struct raft_event *event)
{
    const struct raft_sender *sender = &event->request.sender;
    uint64_t token = event->request.token;
    if (raft_find_peer(raft, sender->id) == NULL) {
        raft_refuse(raft, token, RAFT_REFUSE_WRONG_REPLICA);
        return;
    }
    raft_note_speaker(raft, sender);
    bool both = raft->bound && !uuid_is_none(&sender->group);
    if (both && !uuid_equal(&raft->group, &sender->group)) {
        raft_refuse(raft, token, RAFT_REFUSE_WRONG_GROUP);
        return;
    }
    switch (event->request.message->kind) {
    case RAFT_MESSAGE_VOTE: raft_on_vote_request(raft, event); return;
    case RAFT_MESSAGE_APPEND: raft_on_append_request(raft, event); return;
    case RAFT_MESSAGE_SNAPSHOT: raft_on_snapshot_request(raft, event); return;
    case RAFT_MESSAGE_STAND: raft_on_stand_request(raft, event); return;
    default: raft_refuse(raft, token, RAFT_REFUSE_BAD_REQUEST); return;
    }
}

static void raft_on_answer(struct raft *raft, const struct raft_event *event)
{
    const struct raft_sender *sender = &event->answer.sender;
    const struct raft_message *message = event->answer.message;
    struct raft_peer *peer = raft_find_peer(raft, sender->id);
    if (peer == NULL || event->answer.call == 0) return;
    raft_note_speaker(raft, sender);
    bool stranger =
        raft->bound && !uuid_is_none(&sender->group) && !uuid_equal(&raft->group, &sender->group);
    if (peer->ask_call == event->answer.call) {
        if (message->kind == RAFT_MESSAGE_VOTE_ANSWER && !stranger) {
            raft_on_vote_answer(raft, peer, sender, message);
        } else {
            raft_on_vote_failed(raft, peer);
        }
    } else if (peer->call == event->answer.call) {
        /* A request is followed by its answer in the list of kinds. */
        bool fits = message->kind == peer->call_kind + 1 && !stranger;
        if (!fits) {
            raft_on_raft_failed(raft, peer);
        } else if (message->kind == RAFT_MESSAGE_STAND_ANSWER) {
            raft_on_stand_answer(raft, peer, message);
        } else {
            raft_on_raft_answer(raft, peer, sender, message);
        }
    }
}

static void raft_on_call_failed(struct raft *raft, uint64_t call)
{
    for (int i = 0; i < raft->peer_count && call != 0; i++) {
        struct raft_peer *peer = &raft->peers[i];
        if (peer->ask_call == call) raft_on_vote_failed(raft, peer);
        if (peer->call == call) raft_on_raft_failed(raft, peer);
    }
}

static void raft_on_link(struct raft *raft, const struct raft_event *event)
{
    struct raft_peer *peer = raft_find_peer(raft, event->link.peer);
    if (peer == NULL) return;
    bool open = event->link.state == RAFT_LINK_OPEN;
    switch (event->link.link) {
    case RAFT_LINK_CONTROL_OUT:
        peer->control_open = open;
        peer->control_refused = event->link.state == RAFT_LINK_REFUSED;
        if (open) raft_ask_again(raft, peer);
        break;
    case RAFT_LINK_RAFT_OUT:
        peer->raft_out_open = open;
        peer->call = 0;
        peer->not_before_us = raft->now_us;
        break;
    case RAFT_LINK_RAFT_IN: peer->raft_in_open = open; break;
    }
    raft_check_lost(raft);
}

/* Who names the group knew its founding claim committed. If that claim is in our log, it is known
 * committed here too. Without this, a founder that lost its Raft file before it told anybody would
 * leave members that can neither found (it is bound) nor elect (they are not). */
static void raft_learn_of_group(struct raft *raft, const struct uuid *group)
{
    const struct raft_view *seen = &raft->log.seen;
    if (raft->bound || uuid_is_none(group) || !uuid_equal(&seen->group, group)) return;
    if (raft_view_records(seen, raft->options.self, &raft->options.incarnation)) {
        raft_bind(raft, group);
    }
}

static void raft_on_hello(struct raft *raft, const struct raft_hello *hello)
{
    struct raft_peer *peer = raft_find_peer(raft, hello->sender.id);
    if (peer == NULL) return;
    raft_note_speaker(raft, &hello->sender);
    peer->greeted = true;
    peer->members_equal = hello->members_equal;
    peer->fresh = hello->fresh;
    peer->holds_records = hello->holds_records;
    peer->group = hello->sender.group;
    if (!uuid_equal(&peer->incarnation, &hello->sender.incarnation)) {
        /* Another DataDir: whatever it answered before is not there any more. */
        peer->incarnation = hello->sender.incarnation;
        peer->match = 0;
        peer->match_incarnation = (struct uuid){0};
        peer->whole_log = hello->fresh;
    }
    peer->bound = raft->bound && uuid_equal(&peer->group, &raft->group);
    raft_learn_of_group(raft, &hello->sender.group);
}

static void raft_on_not_leading(struct raft *raft, int32_t id, int64_t epoch)
{
    struct raft_peer *peer = raft_find_peer(raft, id);
    if (peer == NULL || raft->leader != id) return;
    /* Said before it began to lead: its leadership is newer than that. */
    if (!raft->leader_is_caretaker && epoch < raft->heard_term) return;
    peer->said_not_leading = true;
    raft_check_lost(raft);
}

static enum status raft_readmit(struct raft *raft, int32_t replica, const struct uuid *incarnation)
{
    if (uuid_is_none(incarnation) || !raft_is_member(raft, replica)) return STATUS_INVALID;
    int at = 0;
    while (at < raft->readmitted_count && raft->readmitted[at].id != replica)
        at++;
    if (at == RAFT_MEMBERS_MAX) return STATUS_LIMIT;
    raft->readmitted[at].id = replica;
    raft->readmitted[at].incarnation = *incarnation;
    if (at == raft->readmitted_count) raft->readmitted_count++;
    raft_touch(raft);
    return STATUS_OK;
}

static enum status raft_dispatch(struct raft *raft, const struct raft_event *event)
{
    switch (event->kind) {
    case RAFT_EVENT_TICK: break;
    case RAFT_EVENT_REQUEST: raft_on_request(raft, event); break;
    case RAFT_EVENT_ANSWER: raft_on_answer(raft, event); break;
    case RAFT_EVENT_CALL_FAILED: raft_on_call_failed(raft, event->call_failed.call); break;
    case RAFT_EVENT_LINK: raft_on_link(raft, event); break;
    case RAFT_EVENT_NOT_LEADING:
        raft_on_not_leading(raft, event->not_leading.peer, event->not_leading.epoch);
        break;
    case RAFT_EVENT_HELLO: raft_on_hello(raft, &event->hello); break;
    case RAFT_EVENT_PERSISTED: raft_on_persisted(raft, event->persisted.generation); break;
    case RAFT_EVENT_PERSIST_FAILED: raft_on_persist_failed(raft); break;
    case RAFT_EVENT_IDENTITY_SYNCED: raft->bound_synced = raft->bound_reported; break;
    case RAFT_EVENT_CONDITION:
        raft->data = event->condition.data;
        raft->holds_records = event->condition.holds_records;
        break;
    case RAFT_EVENT_PROPOSE: return raft_propose(raft, event, &raft->out->index);
    case RAFT_EVENT_CONFIRM: return raft_confirm(raft, &raft->out->round);
    case RAFT_EVENT_TRANSFER: return raft_transfer_start(raft, event);
    case RAFT_EVENT_TRANSFER_CANCEL: raft_transfer_cancel(raft); break;
    case RAFT_EVENT_STEP_DOWN:
        if (raft->role == RAFT_ROLE_LEADER) raft_step_down(raft, event->step_down.why);
        break;
    case RAFT_EVENT_QUIET: raft->quiet = event->quiet.on; break;
    case RAFT_EVENT_READMIT:
        return raft_readmit(raft, event->readmit.replica, &event->readmit.incarnation);
    }
    return STATUS_OK;
}

/* ---- the step ----------------------------------------------------------------------------- */

/* A log that holds more than founding claims belongs to the group, whatever the identity file
 * says: only a bound leader appends anything else. */
static void raft_check_bound(struct raft *raft)
{
    if (!raft->bound && !raft_log_is_founding_only(&raft->log)) {
        raft_bind(raft, &raft->log.seen.group);
    }
    if (raft->bound && !raft->bound_reported) {
        raft->bound_reported = true;
        raft_act(raft, RAFT_ACTION_BOUND)->bound.group = raft->group;
    }
}

static void raft_check_stopped(struct raft *raft)
{
    const struct raft_log *log = &raft->log;
    if (!log->seen.stopped || raft->stopped_reported) {
        raft->stopped_reported = log->seen.stopped;
        return;
    }
    raft->stopped_reported = true;
    for (int64_t i = log->applied + 1; i <= raft_log_last_index(log); i++) {
        const struct raft_entry *entry = raft_log_at(log, i);
        if (entry->kind != RAFT_ENTRY_OPAQUE) continue;
        raft_alarm(raft, RAFT_ALARM_UNKNOWN_ENTRY, raft->options.self, entry->opaque.kind);
        break;
    }
}

static void raft_compact(struct raft *raft)
{
    struct raft_log *log = &raft->log;
    if (log->count <= raft->options.max_log_entries || log->applied <= log->snapshot_index) return;
    if (!raft->bound) return;
    raft_log_compact(log);
    raft_touch(raft);
}

static int64_t raft_deadline(const struct raft *raft)
{
    const struct raft_log *log = &raft->log;
    if (log->applied < log->commit && !log->known.stopped) return raft->now_us;
    return raft->role == RAFT_ROLE_LEADER ? raft_leading_deadline(raft)
                                          : raft_standing_deadline(raft);
}

enum status raft_step(struct raft *raft, const struct raft_event *event, struct raft_actions *out)
{
    out->count = 0;
    out->index = 0;
    out->round = 0;
    raft->out = out;
    ASSERT(event->now_us >= raft->now_us);
    raft->now_us = event->now_us;
    /* Here, not at the end of the last step: its actions may have pointed into the log. */
    raft_compact(raft);
    /* A leader that was away too long must not act as one first. */
    if (raft->role == RAFT_ROLE_LEADER) raft_run_leading(raft);
    enum status status = raft_dispatch(raft, event);
    raft_run_standing(raft);
    if (raft->role == RAFT_ROLE_LEADER) raft_advance_commit(raft);
    raft_apply(raft);
    raft_check_bound(raft);
    raft_check_stopped(raft);
    if (raft->role == RAFT_ROLE_LEADER) {
        raft_check_serving(raft);
        raft_run_leading(raft);
    }
    if (raft->role == RAFT_ROLE_LEADER) raft_send_all(raft);
    out->generation = raft->generation;
    out->persist = !raft->disk_failed && !raft_is_synced(raft);
    out->deadline_us = raft_deadline(raft);
    raft->out = NULL;
    return status;
}

/* ---- questions ---------------------------------------------------------------------------- */

void raft_get_info(const struct raft *raft, struct raft_info *info)
{
    const struct raft_log *log = &raft->log;
    bool leads = raft->role == RAFT_ROLE_LEADER;
    *info = (struct raft_info){
        .role = raft->role,
        .caretaker = leads && raft->caretaker,
        .claim_committed = leads && raft->claim_reported,
        .bound = raft->bound_synced,
        .learner = raft_is_learner(raft),
        .eligible = raft_may_stand(raft) == RAFT_STANDS_ELIGIBLE,
        .in_isr = raft_ids_contain(&log->seen.isr, raft->options.self),
        .term = raft->term,
        .leader = raft->leader,
        .last_index = raft_log_last_index(log),
        .last_term = raft_log_last_term(log),
        .commit = log->commit,
        .applied = log->applied,
        .elections = raft->elections,
    };
}

uint64_t raft_generation(const struct raft *raft)
{
    return raft->generation;
}

struct uuid raft_group(const struct raft *raft)
{
    return raft->bound_synced ? raft->group : (struct uuid){0};
}

const struct raft_view *raft_known(const struct raft *raft)
{
    return &raft->log.known;
}

const struct raft_view *raft_seen(const struct raft *raft)
{
    return &raft->log.seen;
}

bool raft_change_pending(const struct raft *raft)
{
    return raft_log_change_pending(&raft->log);
}

void raft_waited_on(const struct raft *raft, struct raft_ids *out)
{
    const struct raft_log *log = &raft->log;
    *out = log->known.isr;
    if (MUTANT(8)) return;
    for (int64_t i = log->applied + 1; i <= raft_log_last_index(log); i++) {
        const struct raft_entry *entry = raft_log_at(log, i);
        if (entry->kind == RAFT_ENTRY_ISR) raft_ids_unite(out, &entry->isr.isr);
    }
}

int64_t raft_heard_us(const struct raft *raft, int32_t peer)
{
    const struct raft_peer *found = raft_find_peer((struct raft *)raft, peer);
    bool never = found == NULL || found->heard_us == RAFT_TIME_LONG_AGO;
    return never ? INT64_MIN : found->heard_us;
}

int64_t raft_match(const struct raft *raft, int32_t peer)
{
    const struct raft_peer *found = raft_find_peer((struct raft *)raft, peer);
    return found == NULL || raft->role != RAFT_ROLE_LEADER ? 0 : found->match;
}

int64_t raft_term_of(const struct raft *raft, int64_t index)
{
    const struct raft_log *log = &raft->log;
    bool there = index > log->snapshot_index && index <= raft_log_last_index(log);
    return there ? raft_log_term_at(log, index) : -1;
}

void raft_missing_for_founding(const struct raft *raft, struct raft_ids *out)
{
    *out = (struct raft_ids){0};
    for (int i = 0; i < raft->peer_count && !raft->bound; i++) {
        if (!raft_peer_may_found(&raft->peers[i])) (void)raft_ids_add(out, raft->peers[i].id);
    }
}
