/* node_raft.c: the Raft core's shell: events go in, its actions are carried out.
 *
 * An action may lead to another event (a role change proposes, a commit confirms): steps nest, each
 * with its own actions. What borrows from the core (messages) is encoded before anything can step
 * again; the rest follows.  */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "replication/node_internal.h"

#define FAILED_CALLS_MAX RAFT_ACTIONS_MAX
#define DAMAGE_CHECK_US  250000

static bool holds_records(const struct node *node)
{
    struct topic *topic = NULL;
    while ((topic = catalog_next(node->options.broker, topic)) != NULL) {
        for (uint32_t i = 0; i < topic_partition_count(topic); i++) {
            if (partition_log_end(topic_partition(topic, i)) > 0) return true;
        }
    }
    return false;
}

/* A replica that brings records into a new group (from a time alone, decisions 6) may have used
 * epochs: terms, which become epochs, go on above them. NULL: nothing to raise. */
static struct raft_state *raise_term(const struct node *node, const struct raft_state *state)
{
    if (!uuid_is_none(&node->identity.group)) return NULL;
    int32_t latest = -1;
    struct topic *topic = NULL;
    while ((topic = catalog_next(node->options.broker, topic)) != NULL) {
        for (uint32_t i = 0; i < topic_partition_count(topic); i++) {
            const struct partition_log *log = partition_log_of(topic_partition(topic, i));
            int32_t epoch = epoch_history_latest(partition_log_epochs(log));
            if (epoch > latest) latest = epoch;
        }
    }
    if (latest <= (state == NULL ? 0 : state->term)) return NULL;
    size_t entries_bytes = state == NULL ? 0 : state->entry_count * sizeof(state->entries[0]);
    struct raft_state *raised = calloc(1, sizeof(*raised) + entries_bytes);
    ASSERT(raised != NULL);
    if (state != NULL) {
        memcpy(raised, state, sizeof(*raised) + entries_bytes);
    } else {
        raised->replica = node->options.config.replica_id;
        raised->incarnation = node->identity.incarnation;
        raft_view_init(&raised->snapshot);
    }
    raised->term = latest;
    raised->voted_for = RAFT_NOBODY;
    return raised;
}

void node_raft_begin(struct node *node, const struct raft_state *state)
{
    const struct replication_config *config = &node->options.config;
    struct raft_options options;
    raft_options_init(&options);
    options.self = config->replica_id;
    options.members = node->raft_members;
    options.incarnation = node->identity.incarnation;
    options.group = node->identity.group;
    options.may_found = config->may_found;
    options.min_insync = config->min_insync;
    options.election_timeout_us = config->election_timeout_us;
    options.election_timeout_us_max = config->election_timeout_max_us;
    options.heartbeat_us = config->heartbeat_us;
    options.commit_timeout_us = config->commit_timeout_us;
    options.follower_gone_us = config->follower_gone_us;
    options.max_log_entries = (int)config->max_log_entries;
    options.seed = random_u64(&node->random);
    options.now_us = node_now(node);
    options.holds_records = uuid_is_none(&node->identity.group) && holds_records(node);
    node_look_for_damage(node);
    struct raft_state *raised = raise_term(node, state);
    node->raft_life++;
    node->told_data = 0;
    node->raft = raft_new(&options, raised != NULL ? raised : state);
    free(raised);
    ASSERT(node->raft != NULL);
    struct raft_info info;
    raft_get_info(node->raft, &info);
    node->replayed_index = info.last_index;
    node_update_condition(node);
    struct raft_event event = {.kind = RAFT_EVENT_TICK};
    (void)node_step(node, &event, NULL, NULL);
}

/* ---- the state of the own copies ---- */

static bool any_partition_damaged(const struct node *node)
{
    struct topic *topic = NULL;
    while ((topic = catalog_next(node->options.broker, topic)) != NULL) {
        for (uint32_t i = 0; i < topic_partition_count(topic); i++) {
            if (partition_damaged(topic_partition(topic, i))) return true;
        }
    }
    return false;
}

/* Walks all partitions: at start, when something broke, and now and then while something is. */
void node_look_for_damage(struct node *node)
{
    node->damage_checked_us = node_now(node);
    node->damaged = any_partition_damaged(node);
    node->unfit = catalog_damaged(node->options.broker);
}

static enum raft_data condition_of(const struct node *node)
{
    if (node->unfit) return RAFT_DATA_UNFIT;
    return node->damaged || node->rewinds > 0 ? RAFT_DATA_DAMAGED : RAFT_DATA_OK;
}

static void tell_condition(struct node *node, bool holds)
{
    node->told_data = condition_of(node);
    node->told_holds = holds;
    struct raft_event event = {.kind = RAFT_EVENT_CONDITION};
    event.condition.data = node->told_data;
    event.condition.holds_records = holds;
    (void)node_step(node, &event, NULL, NULL);
}

/* Tells the core what became of the own copies. Called each tick: once the group exists, and while
 * nothing is broken, nothing is walked here. */
void node_update_condition(struct node *node)
{
    bool broken = node->damaged || node->unfit;
    if (broken && node_now(node) - node->damage_checked_us > DAMAGE_CHECK_US) {
        node_look_for_damage(node);
    }
    bool founding = uuid_is_none(&node->identity.group);
    bool holds = founding && holds_records(node);
    if (condition_of(node) != node->told_data || holds != node->told_holds) {
        tell_condition(node, holds);
    }
}

static void alarm(struct node *node, const struct raft_action *action)
{
    static const enum node_alarm kinds[] = {
        [RAFT_ALARM_UNKNOWN_ENTRY] = ALARM_UNKNOWN_ENTRY,
        [RAFT_ALARM_WRONG_REPLICA] = ALARM_WRONG_REPLICA,
        [RAFT_ALARM_DISK] = ALARM_SYNC_FAILED,
        [RAFT_ALARM_CONFLICT] = ALARM_OTHER,
    };
    int32_t replica = action->alarm.replica;
    char text[160] = "";
    switch (action->alarm.alarm) {
    case RAFT_ALARM_UNKNOWN_ENTRY:
        snprintf(text, sizeof(text),
                 "the Raft log holds an entry of kind \"%s\", which this version does not know: "
                 "nothing after it is applied",
                 action->alarm.text);
        break;
    case RAFT_ALARM_WRONG_REPLICA:
        snprintf(text, sizeof(text),
                 "two hosts speak as replica %d: each needs a ReplicaId of its own", replica);
        break;
    case RAFT_ALARM_DISK:
        snprintf(text, sizeof(text), "%s cannot be written: replica %d does not vote", RAFT_FILE,
                 replica);
        break;
    case RAFT_ALARM_CONFLICT:
        snprintf(text, sizeof(text), "replica %d sent Raft entries that deny committed ones",
                 replica);
        break;
    }
    node_raise_alarm(node, kinds[action->alarm.alarm], text);
}

static void applied(struct node *node, const struct raft_action *action)
{
    const struct raft_entry *entry = &action->applied.entry;
    /* What the log held when this replica began happened before: neither counted nor said again. */
    bool news = action->applied.index > node->replayed_index;
    if (entry->kind == RAFT_ENTRY_ISR && action->applied.effective && news) {
        bool grew = entry->isr.why == RAFT_ISR_CAUGHT_UP;
        if (grew)
            node->isr_expands++;
        else
            node->isr_shrinks++;
        node->last_isr_why = entry->isr.why;
        node->last_isr_us = node_now(node);
        log_info("isr_changed epoch=%lld size=%d why=%s", (long long)entry->epoch,
                 entry->isr.isr.count, isr_why_text((enum isr_why)(entry->isr.why - RAFT_ISR_LAG)));
    }
    node_group_changed(node);
}

/* What may step again. */
static void carry_out(struct node *node, const struct raft_action *action)
{
    switch (action->kind) {
    case RAFT_ACTION_BECAME_LEADER:
        log_info("raft_leader term=%lld caretaker=%d founding=%d",
                 (long long)action->became_leader.term, action->became_leader.caretaker,
                 action->became_leader.founding);
        node_became_leader(node, action->became_leader.caretaker);
        break;
    case RAFT_ACTION_CLAIM_COMMITTED:
        node_claim_committed(node, (int32_t)action->claim_committed.epoch);
        break;
    case RAFT_ACTION_STEPPED_DOWN: node_stepped_down(node, action->stepped_down.why); break;
    case RAFT_ACTION_FOLLOWS: node_group_changed(node); break;
    case RAFT_ACTION_APPLIED: applied(node, action); break;
    case RAFT_ACTION_INSTALLED:
        (void)FAILPOINT("raft.snapshot_install");
        node_group_changed(node);
        break;
    case RAFT_ACTION_BOUND:
        node->identity.group = action->bound.group;
        node_persist_identity(node, true);
        break;
    case RAFT_ACTION_CONFIRMED: node_confirmed(node, action->confirmed.round); break;
    case RAFT_ACTION_TRANSFER_FAILED:
        if (node_ends_transfer_failed(node)) break;
        node_transfer_ended(node, STATUS_TIMEOUT, "the successor did not take over");
        break;
    case RAFT_ACTION_ALARM: alarm(node, action); break;
    default: break;
    }
}

/* Messages borrow from the core: they leave first. Returns how many calls could not be sent. */
static size_t send_all(struct node *node, const struct raft_actions *actions, uint64_t *failed)
{
    size_t failed_count = 0;
    for (size_t i = 0; i < actions->count; i++) {
        const struct raft_action *action = &actions->items[i];
        if (action->kind == RAFT_ACTION_CALL) {
            if (!node_call(node, action->call.peer, action->call.channel, action->call.call,
                           &action->call.message)) {
                failed[failed_count++] = action->call.call;
            }
        } else if (action->kind == RAFT_ACTION_ANSWER) {
            node_answer_request(node, action->answer.token, &action->answer.message, 0);
        } else if (action->kind == RAFT_ACTION_REFUSE) {
            node_answer_request(node, action->refuse.token, NULL, action->refuse.refusal);
        }
    }
    return failed_count;
}

static void arm_timer(struct node *node, int64_t deadline_us)
{
    if (deadline_us == INT64_MAX || node->stop_begun) {
        timer_stop(node->raft_timer);
        return;
    }
    int64_t delay = deadline_us - node_now(node);
    timer_start(node->raft_timer, delay < 0 ? 0 : delay);
}

enum status node_step(struct node *node, struct raft_event *event, int64_t *index, uint64_t *round)
{
    if (node->raft == NULL) return STATUS_NOT_READY;
    /* Before anything can come of it: a copy that is being cut must not stand. */
    if (event->kind != RAFT_EVENT_CONDITION && condition_of(node) != node->told_data) {
        tell_condition(node, node->told_holds);
    }
    ASSERT(node->step_depth < NODE_STEP_DEPTH_MAX);
    struct raft_actions **slot = &node->actions[node->step_depth];
    if (*slot == NULL) *slot = malloc(sizeof(**slot));
    struct raft_actions *actions = *slot;
    ASSERT(actions != NULL);
    node->step_depth++;
    event->now_us = node_now(node);
    enum status status = raft_step(node->raft, event, actions);
    if (index != NULL) *index = actions->index;
    if (round != NULL) *round = actions->round;
    if (actions->persist) node_persist_raft(node);
    arm_timer(node, actions->deadline_us);
    uint64_t failed[FAILED_CALLS_MAX];
    size_t failed_count = send_all(node, actions, failed);
    for (size_t i = 0; i < actions->count; i++)
        carry_out(node, &actions->items[i]);
    for (size_t i = 0; i < failed_count; i++) {
        struct raft_event failure = {.kind = RAFT_EVENT_CALL_FAILED, .call_failed.call = failed[i]};
        (void)node_step(node, &failure, NULL, NULL);
    }
    node->step_depth--;
    return status;
}
