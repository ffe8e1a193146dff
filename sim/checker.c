#include "sim/checker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "log/log_store.h"
#include "sim/checker_files.h"
#include "sim/checker_raft.h"
#include "sim/wire_watch.h"

/* Setting a topic aside takes a worker some time. */
#define MISSING_GRACE_US 5000000

/* What was seen of one partition on one node, by one process of it. */
struct copy_seen {
    uint32_t generation; /* of the process; 0: nothing yet */
    uint32_t look;       /* number of the last look at which it was there */
    int64_t missing_us;  /* since when it is not, though nobody deleted it; 0: it is there */
    int64_t high_watermark;
    int64_t log_start, log_end;
    bool begun_anew;    /* at a log start above all it had */
    bool below_minimum; /* it was its leader's, and the recorded in-sync set below the minimum */
};

struct node_seen {
    uint32_t generation;
    bool serving;
    int32_t epoch;
    bool excused;
    struct copy_seen *copies; /* by log of the history */
    uint32_t copy_count;
};

struct sim_checker {
    struct sim_workload *workload;
    struct sim_group *group;
    struct sim_verdict *verdict;
    struct sim_wire_watch *votes;
    struct sim_raft_checker *entries;
    struct node_seen nodes[SIM_NODES_MAX];
    int32_t *epoch_leaders; /* by epoch; 0: nobody served in it yet */
    int32_t epoch_count;
    int32_t epoch_max; /* the highest that anybody served in, and since when */
    int64_t epoch_max_us;
    uint32_t looks;
    int64_t *exposed; /* by log: highest high watermark of any serving leader */
    uint32_t exposed_count;
};

void sim_checker_free(struct sim_checker *checker)
{
    for (int i = 0; i < SIM_NODES_MAX; i++)
        sim_release(checker->nodes[i].copies);
    sim_wire_watch_free(checker->votes);
    sim_raft_checker_free(checker->entries);
    sim_release(checker->epoch_leaders);
    sim_release(checker->exposed);
    sim_release(checker);
}

void sim_checker_excuse(struct sim_checker *checker, int node)
{
    checker->nodes[node].excused = true;
    sim_wire_watch_excuse(checker->votes, node + 1);
}

uint32_t sim_checker_excused(const struct sim_checker *checker)
{
    uint32_t mask = 0;
    for (int i = 0; i < checker->group->node_count; i++)
        mask |= checker->nodes[i].excused ? 1u << i : 0;
    return mask;
}

/* I8: one leader an epoch. */
static void look_at_claim(struct sim_checker *checker, int node, int32_t epoch)
{
    if (epoch < 0) return;
    if (epoch >= checker->epoch_count) {
        int32_t count = 2 * epoch + 16;
        checker->epoch_leaders = sim_grow(checker->epoch_leaders, (size_t)count * sizeof(int32_t));
        memset(&checker->epoch_leaders[checker->epoch_count], 0,
               (size_t)(count - checker->epoch_count) * sizeof(int32_t));
        checker->epoch_count = count;
    }
    if (checker->epoch_leaders[epoch] != 0 && checker->epoch_leaders[epoch] != node + 1)
        sim_verdict_fail(checker->verdict, "I8", "nodes %d and %d both serve in epoch %d",
                         checker->epoch_leaders[epoch], node + 1, epoch);
    checker->epoch_leaders[epoch] = node + 1;
    if (epoch <= checker->epoch_max) return;
    checker->epoch_max = epoch;
    checker->epoch_max_us = checker->group->world->now_us;
}

/* F7: a leader that was stopped while another took over answers nobody with OK when it goes on. */
static void answered_ok(void *context, const struct sim_call *call)
{
    struct sim_checker *checker = context;
    const struct sim_node *node = call->node;
    if (call->epoch >= checker->epoch_max || node->resumed_us < 0 ||
        call->served_us < node->resumed_us || checker->epoch_max_us >= node->resumed_us)
        return;
    sim_verdict_fail(checker->verdict, "I8",
                     "node %d, stopped while epoch %d began, answers OK in epoch %d",
                     node->index + 1, checker->epoch_max, call->epoch);
}

struct sim_checker *sim_checker_new(struct sim_workload *workload, struct sim_verdict *verdict)
{
    struct sim_checker *checker = sim_alloc(sizeof(*checker));
    checker->workload = workload;
    checker->group = workload->group;
    checker->verdict = verdict;
    checker->epoch_max = -1;
    workload->clients.answered_ok = answered_ok;
    workload->clients.context = checker;
    checker->votes = sim_wire_watch_new(workload->group, verdict);
    checker->entries = sim_raft_checker_new(verdict);
    return checker;
}

static struct copy_seen *copy_of(struct node_seen *seen, uint32_t log)
{
    if (log >= seen->copy_count) {
        uint32_t count = 2 * log + 8;
        seen->copies = sim_grow(seen->copies, count * sizeof(seen->copies[0]));
        memset(&seen->copies[seen->copy_count], 0,
               (count - seen->copy_count) * sizeof(seen->copies[0]));
        seen->copy_count = count;
    }
    return &seen->copies[log];
}

static int64_t *exposed_of(struct sim_checker *checker, uint32_t log)
{
    if (log >= checker->exposed_count) {
        uint32_t count = 2 * log + 8;
        checker->exposed = sim_grow(checker->exposed, count * sizeof(checker->exposed[0]));
        memset(&checker->exposed[checker->exposed_count], 0,
               (count - checker->exposed_count) * sizeof(checker->exposed[0]));
        checker->exposed_count = count;
    }
    return &checker->exposed[log];
}

/* The other copies of a partition of the leader. */
static struct partition *other_copy(struct sim_node *node, const struct topic *topic,
                                    uint32_t index)
{
    if (node->broker == NULL || !node->running) return NULL;
    struct topic *there = catalog_find_uid(node->broker, topic_uid(topic));
    return there == NULL ? NULL : topic_partition(there, index);
}

static bool is_below_minimum(const struct sim_checker *checker, const struct node_facts *facts)
{
    return __builtin_popcount(facts->isr_mask) < checker->group->config.min_insync;
}

static int32_t epoch_at(const struct partition *partition, int64_t offset)
{
    return epoch_history_at(partition_log_epochs(partition_log_of(partition)), offset);
}

/* I11: logs whose batches at one offset are of one epoch are equal up to there. */
static void compare_epochs(struct sim_checker *checker, int leader, const struct partition *mine,
                           int node, const struct partition *copy, int64_t offset)
{
    int32_t ours = epoch_at(mine, offset), theirs = epoch_at(copy, offset);
    /* A history made out of a compacted log, rebuilt or copied, begins with the first batch left.
     */
    bool unknown = (ours < 0 || theirs < 0) && topic_settings_of(partition_topic(mine))->compacted;
    if (offset < partition_log_start(mine) || offset < partition_log_start(copy) ||
        offset >= partition_high_watermark(mine) || ours == theirs || unknown)
        return;
    sim_verdict_fail(
        checker->verdict, "I11",
        "%s: offset %lld, below the high watermark, is of epoch %d on leader %d, of %d "
        "on waited-on %d",
        partition_name(copy), (long long)offset, ours, leader + 1, theirs, node + 1);
}

/* I10, I11: below the leader's high watermark everything is durable on each waited-on replica, and
 * the same. `before`: the mark of the last look. */
static void look_at_waited_on(struct sim_checker *checker, int leader, uint32_t waited_mask,
                              const struct topic *topic, uint32_t index, int64_t before)
{
    struct partition *mine = topic_partition(topic, index);
    int64_t high_watermark = partition_high_watermark(mine);
    for (int i = 0; i < checker->group->node_count; i++) {
        if ((waited_mask & 1u << i) == 0 || checker->nodes[i].excused) continue;
        struct partition *copy = other_copy(&checker->group->nodes[i], topic, index);
        if (copy == NULL || partition_damaged(copy)) continue;
        if (partition_durable(copy) < high_watermark && partition_log_start(copy) < high_watermark)
            sim_verdict_fail(checker->verdict, "I10",
                             "%s: high watermark %lld on leader %d, durable %lld on waited-on %d",
                             partition_name(copy), (long long)high_watermark, leader + 1,
                             (long long)partition_durable(copy), i + 1);
        if (before == high_watermark) continue;
        compare_epochs(checker, leader, mine, i, copy, before);
        compare_epochs(checker, leader, mine, i, copy, high_watermark - 1);
    }
}

static void look_at_copy(struct sim_checker *checker, int node, const struct node_facts *facts,
                         const struct topic *topic, uint32_t index, bool begins_to_serve)
{
    struct sim_machine *machine = checker->group->nodes[node].machine;
    struct partition *partition = topic_partition(topic, index);
    uint32_t log = history_find_log(&checker->workload->history, topic_uid(topic), (int32_t)index,
                                    topic_name(topic));
    struct copy_seen *seen = copy_of(&checker->nodes[node], log);
    int64_t start = partition_log_start(partition), end = partition_log_end(partition);
    int64_t high_watermark = partition_high_watermark(partition);
    const char *name = partition_name(partition);
    bool damaged = partition_damaged(partition) || checker->nodes[node].excused;
    if (!damaged &&
        (start > high_watermark || high_watermark > end || partition_durable(partition) > end))
        sim_verdict_fail(checker->verdict, "I10",
                         "%s on node %d: log %lld..%lld, durable %lld, high watermark %lld", name,
                         node + 1, (long long)start, (long long)end,
                         (long long)partition_durable(partition), (long long)high_watermark);
    if (seen->generation == sim_machine_generation(machine)) {
        if (high_watermark > seen->high_watermark && facts->leader_serving && seen->below_minimum &&
            is_below_minimum(checker, facts))
            sim_verdict_fail(
                checker->verdict, "I10",
                "%s on leader %d: high watermark from %lld to %lld, though only %#x is "
                "in the in-sync set",
                name, node + 1, (long long)seen->high_watermark, (long long)high_watermark,
                facts->isr_mask);
        if (high_watermark < seen->high_watermark && !damaged)
            sim_verdict_fail(checker->verdict, "I10",
                             "%s on node %d: high watermark back from %lld to %lld", name, node + 1,
                             (long long)seen->high_watermark, (long long)high_watermark);
        if (start < seen->log_start && !damaged)
            sim_verdict_fail(checker->verdict, "I15",
                             "%s on node %d: log start back from %lld to %lld", name, node + 1,
                             (long long)seen->log_start, (long long)start);
        if (end < seen->high_watermark && !damaged)
            sim_verdict_fail(checker->verdict, "I12",
                             "%s on node %d: cut to %lld, below its high watermark %lld", name,
                             node + 1, (long long)end, (long long)seen->high_watermark);
    }
    int64_t before = seen->high_watermark;
    seen->begun_anew |= start > seen->log_end;
    seen->generation = sim_machine_generation(machine);
    seen->look = checker->looks;
    seen->missing_us = 0;
    seen->high_watermark = high_watermark;
    seen->log_start = start;
    seen->log_end = end;
    seen->below_minimum = facts->leader_serving && is_below_minimum(checker, facts);
    struct history *history = &checker->workload->history;
    const struct history_log *judged = &history->logs[log];
    /* One that was leader before may not know of it. */
    bool leads = facts->leader_serving && facts->epoch == checker->epoch_max;
    if (!damaged) history_see_start(history, log, start, leads, node);
    if (!facts->leader_serving) return;
    int64_t *exposed = exposed_of(checker, log);
    if (begins_to_serve && end < *exposed && !judged->dropped && !damaged)
        sim_verdict_fail(checker->verdict, "I9",
                         "node %d begins to serve epoch %d with %s ending at %lld; %lld was below "
                         "a high watermark",
                         node + 1, facts->epoch, name, (long long)end, (long long)*exposed);
    look_at_waited_on(checker, node, facts->waited_mask, topic, index, before);
    if (high_watermark > *exposed) *exposed = high_watermark;
}

/* I15: a partition that was here is gone: its topic was deleted, or set aside. */
static void look_for_missing(struct sim_checker *checker, int index)
{
    struct node_seen *seen = &checker->nodes[index];
    struct sim_machine *machine = checker->group->nodes[index].machine;
    int64_t now_us = checker->group->world->now_us;
    if (seen->excused) return;
    for (uint32_t i = 0; i < seen->copy_count && i < checker->workload->history.log_count; i++) {
        struct copy_seen *copy = &seen->copies[i];
        const struct history_log *log = &checker->workload->history.logs[i];
        char path[200], uid[UUID_TEXT_BYTES];
        enum file_kind kind;
        if (copy->look == 0 || copy->look == checker->looks || log->dropped) continue;
        if (copy->log_end == 0) continue; /* no files: there is nothing to set aside */
        if (copy->missing_us == 0) copy->missing_us = now_us;
        if (now_us - copy->missing_us < MISSING_GRACE_US) continue;
        snprintf(path, sizeof(path), SIM_DATA_DIR "/quarantine/%s.%s", log->topic,
                 uuid_format(&log->uid, uid));
        if (file_kind(sim_machine_file_system(machine), path, &kind, NULL) != STATUS_OK)
            sim_verdict_fail(checker->verdict, "I15",
                             "%s/%d is gone from node %d, though nobody deleted it", log->topic,
                             log->partition, index + 1);
        copy->look = 0;
    }
}

/* I12, I25: without a disk that lies or was damaged, nobody is asked to cut what was committed, nor
 * finds that what it reported durable is not there. */
static void look_at_alarms(struct sim_checker *checker, const struct sim_node *node)
{
    static const char *const never[] = {"truncation_refused", "durable_went_back", "corrupt_range"};
    const char *kind;
    uint64_t count;
    if (sim_checker_excused(checker) != 0) return;
    for (uint32_t i = 0; node_alarm_count(node->node, i, &kind, &count); i++) {
        for (size_t j = 0; j < ARRAY_COUNT(never) && count > 0; j++) {
            if (strcmp(kind, never[j]) == 0)
                sim_verdict_fail(checker->verdict, "I12", "node %d raises an alarm: %s",
                                 node->index + 1, kind);
        }
    }
}

static void look_at_node(struct sim_checker *checker, int index)
{
    struct sim_node *node = &checker->group->nodes[index];
    struct node_seen *seen = &checker->nodes[index];
    struct node_facts facts;
    if (!sim_node_facts(node, &facts)) {
        seen->serving = false;
        return;
    }
    uint32_t generation = sim_machine_generation(node->machine);
    if (seen->generation == generation) {
        if (facts.epoch < seen->epoch)
            sim_verdict_fail(checker->verdict, "I8", "node %d: epoch back from %d to %d", index + 1,
                             seen->epoch, facts.epoch);
    }
    seen->generation = generation;
    seen->epoch = facts.epoch;
    if (facts.leader_serving) look_at_claim(checker, index, facts.epoch);
    if (!seen->excused) sim_raft_checker_look(checker->entries, node, &facts);
    if (facts.alarms > 0) look_at_alarms(checker, node);
    /* I14: only the entry of another incarnation may take the recorded set below the minimum. */
    if (facts.leader_serving && sim_checker_excused(checker) == 0 &&
        is_below_minimum(checker, &facts))
        sim_verdict_fail(checker->verdict, "I14", "node %d: recorded in-sync set %#x, minimum %d",
                         index + 1, facts.isr_mask, checker->group->config.min_insync);
    bool begins = facts.leader_serving && !seen->serving;
    seen->serving = facts.leader_serving;
    for (struct topic *topic = catalog_next(node->broker, NULL); topic != NULL;
         topic = catalog_next(node->broker, topic)) {
        for (uint32_t p = 0; p < topic_partition_count(topic); p++)
            look_at_copy(checker, index, &facts, topic, p, begins);
    }
    look_for_missing(checker, index);
}

void sim_checker_look(struct sim_checker *checker)
{
    checker->looks++;
    for (int i = 0; i < checker->group->node_count; i++)
        look_at_node(checker, i);
}

bool sim_checker_ever_served(const struct sim_checker *checker)
{
    return checker->epoch_count > 0;
}

/* Convergence. */

static bool copies_agree(struct sim_checker *checker, const struct topic *topic, uint32_t index,
                         uint32_t core, char *why, size_t why_bytes)
{
    struct partition *mine = topic_partition(topic, index);
    for (int i = 0; i < checker->group->node_count; i++) {
        if ((core & 1u << i) == 0) continue;
        struct partition *copy = other_copy(&checker->group->nodes[i], topic, index);
        if (copy != NULL && partition_log_end(copy) == partition_log_end(mine) &&
            partition_durable(copy) == partition_log_end(mine) &&
            partition_high_watermark(copy) == partition_log_end(mine) &&
            partition_last_stable_offset(copy) == partition_log_end(mine))
            continue;
        snprintf(why, why_bytes,
                 "%s on node %d: end %lld, durable %lld, high watermark %lld, last stable "
                 "offset %lld%s; "
                 "the leader's end is %lld",
                 partition_name(mine), i + 1,
                 (long long)(copy == NULL ? -1 : partition_log_end(copy)),
                 (long long)(copy == NULL ? -1 : partition_durable(copy)),
                 (long long)(copy == NULL ? -1 : partition_high_watermark(copy)),
                 (long long)(copy == NULL ? -1 : partition_last_stable_offset(copy)),
                 copy != NULL && partition_damaged(copy) ? " (damaged)" : "",
                 (long long)partition_log_end(mine));
        return false;
    }
    return true;
}

bool sim_checker_converged(struct sim_checker *checker, uint32_t core, char *why, size_t why_bytes)
{
    struct sim_node *leader = sim_group_leader(checker->group);
    struct node_facts facts;
    if (leader == NULL || (core & 1u << leader->index) == 0 || !sim_node_facts(leader, &facts)) {
        snprintf(why, why_bytes, "nobody serves");
        return false;
    }
    for (int i = 0; i < checker->group->node_count; i++) {
        if ((core & 1u << i) == 0) continue;
        struct sim_node *node = &checker->group->nodes[i];
        if (!node->running) {
            snprintf(why, why_bytes, "node %d does not run%s%s", i + 1,
                     node->refusals > 0 ? "; a start ended with: " : "",
                     node->refusals > 0 ? node->start_error.text : "");
            return false;
        }
        if ((facts.isr_mask & 1u << i) == 0) {
            char behind[300] = "it has everything";
            for (struct topic *topic = catalog_next(leader->broker, NULL); topic != NULL;
                 topic = catalog_next(leader->broker, topic)) {
                for (uint32_t p = 0; p < topic_partition_count(topic); p++)
                    copies_agree(checker, topic, p, 1u << i, behind, sizeof(behind));
            }
            snprintf(why, why_bytes, "node %d is not back in the in-sync set %#x of leader %d: %s",
                     i + 1, facts.isr_mask, leader->index + 1, behind);
            return false;
        }
    }
    for (struct topic *topic = catalog_next(leader->broker, NULL); topic != NULL;
         topic = catalog_next(leader->broker, topic)) {
        for (uint32_t p = 0; p < topic_partition_count(topic); p++) {
            if (!copies_agree(checker, topic, p, core, why, why_bytes)) return false;
        }
    }
    return sim_workload_drained(checker->workload, why, why_bytes);
}

/* Who wrote what is gone is known to those only that saw it: not to a copy that was begun where the
 * log began by then. */
static bool may_know_less(struct sim_checker *checker, int node, const struct partition *partition,
                          uint32_t index)
{
    const struct topic *topic = partition_topic(partition);
    uint32_t log = history_find_log(&checker->workload->history, topic_uid(topic), (int32_t)index,
                                    topic_name(topic));
    return checker->workload->history.logs[log].asked > 0 &&
           (checker->nodes[node].excused || copy_of(&checker->nodes[node], log)->begun_anew);
}

/* I24: what is derived from equal logs is equal. */
static void compare_derived(struct sim_checker *checker, struct sim_node *leader, uint32_t core)
{
    for (struct topic *topic = catalog_next(leader->broker, NULL); topic != NULL;
         topic = catalog_next(leader->broker, topic)) {
        for (uint32_t p = 0; p < topic_partition_count(topic); p++) {
            struct partition *mine = topic_partition(topic, p);
            for (int i = 0; i < checker->group->node_count; i++) {
                struct sim_node *node = &checker->group->nodes[i];
                if ((core & 1u << i) == 0 || node == leader) continue;
                struct partition *copy = other_copy(node, topic, p);
                if (copy == NULL) continue;
                /* Of a compacted log without what was aborted: a copy made of it knows less of that
                 * than the log's own replica, which saw it. */
                if (!may_know_less(checker, i, copy, p) &&
                    !may_know_less(checker, leader->index, mine, p) &&
                    partition_producers_hash(copy) != partition_producers_hash(mine))
                    sim_verdict_fail(checker->verdict, "I24",
                                     "%s: producer state of nodes %d and %d differs",
                                     partition_name(mine), leader->index + 1, i + 1);
                if (topic_is_internal(topic) &&
                    broker_internal_state_hash(node->broker, copy) !=
                        broker_internal_state_hash(leader->broker, mine))
                    sim_verdict_fail(checker->verdict, "I24",
                                     "%s: coordinator state of nodes %d and %d differs",
                                     partition_name(mine), leader->index + 1, i + 1);
            }
        }
    }
}

void sim_checker_finish(struct sim_checker *checker, uint32_t core)
{
    struct sim_node *leader = sim_group_leader(checker->group);
    uint32_t excused = 0;
    ASSERT(leader != NULL);
    for (int i = 0; i < checker->group->node_count; i++) {
        if ((core & 1u << i) == 0) continue;
        sim_churner_check_catalog(checker->workload->churner, &checker->group->nodes[i]);
        if (checker->nodes[i].excused) excused |= 1u << i;
    }
    compare_derived(checker, leader, core);
    sim_files_judge(checker->workload, checker->verdict, leader->index, core, excused);
}
