#include "sim/scenario_steps.h"

#include <string.h>

#define FOUND_US    (20 * SECOND_US)
#define WIN_US      (40 * SECOND_US)
#define GROW_US     (10 * SECOND_US)
#define PATIENCE_US (20 * SECOND_US)

void scenario_prepare_one_log(struct sim_group *group, struct sim_workload_options *options)
{
    /* A connection that was refused is found to be cut before somebody is elected who would hold
     * the refusal against its other end. */
    group->config.election_timeout_us = 2 * SECOND_US;
    group->config.election_timeout_max_us = 3 * SECOND_US;
    group->config.follower_gone_us = PATIENCE_US;
    group->config.durable_stall_us = PATIENCE_US;
    group->config.isr_lag_us = PATIENCE_US;
    /* Nor does a leader give up soon if nobody fetches from it. */
    group->config.max_fetch_wait_us = 2 * SECOND_US;
    options->plain = 3;
    options->idempotent = 5;
    options->data_topics = options->partitions = 1;
    options->records_max = 1;
    options->churns = options->weak_acks = options->idle_spells = false;
    options->retention_bytes = 0;
    options->pause_us_min = 2000;
    options->pause_us_max = 20000;
}

struct sim_node *scenario_begin(struct sim_run *run)
{
    for (int i = 0; i < run->group.node_count; i++)
        sim_node_start(&run->group.nodes[i]);
    sim_workload_start(&run->workload);
    if (sim_run_until_served(run, FOUND_US) == NULL) return NULL;
    if (!sim_run_for(run, 2 * SECOND_US)) return NULL;
    return sim_run_until_served(run, TAKEOVER_US);
}

void scenario_keep_down(struct sim_run *run, int node, enum sim_death death)
{
    sim_node_kill(&run->group.nodes[node], death);
    run->faults.restart_us[node] = INT64_MAX;
}

void scenario_start(struct sim_run *run, int node)
{
    sim_node_start(&run->group.nodes[node]);
}

struct sim_node *scenario_until_other_serves(struct sim_run *run, const struct sim_node *old,
                                             int64_t limit_us, const char *why)
{
    int64_t until_us = run->world.now_us + limit_us;
    while (sim_run_for(run, 20000)) {
        struct sim_node *leader = sim_group_leader(&run->group);
        if (leader != NULL && leader != old) return leader;
        if (run->world.now_us < until_us) continue;
        sim_verdict_fail(&run->verdict, "I23", "%s: nobody took over from node %d within %.0f s",
                         why, old->index + 1, (double)limit_us / SECOND_US);
        return NULL;
    }
    return NULL;
}

int scenario_another(const struct sim_run *run, int node)
{
    return (node + 1) % run->group.node_count;
}

bool scenario_until(struct sim_run *run, scenario_fn happened, void *context, int64_t limit_us,
                    const char *what)
{
    int64_t until_us = run->world.now_us + limit_us;
    while (!run->verdict.failed) {
        if (happened(run, context)) return true;
        if (run->deadline_us != 0 && run->world.now_us >= run->deadline_us) return false;
        if (sim_world_step(&run->world, until_us)) continue;
        sim_verdict_fail(&run->verdict, "I23", "not within %.0f s: %s",
                         (double)limit_us / SECOND_US, what);
    }
    return false;
}

void scenario_cut_off(struct sim_run *run, int node, bool cut)
{
    for (int i = 0; i < run->group.node_count; i++) {
        if (i != node) sim_group_cut(&run->group, node, i, cut);
    }
}

void scenario_starve(struct sim_run *run, int node, bool starved)
{
    for (int i = 0; i < run->group.node_count; i++) {
        if (i == node) continue;
        sim_network_path(run->group.network, node + 1, i + 1)->deaf = starved;
        if (starved) sim_network_reset(run->group.network, node + 1, i + 1);
    }
}

struct winning {
    uint32_t among;
    int64_t term; /* above it only */
    int winner;
};

static bool somebody_won(struct sim_run *run, void *context)
{
    struct winning *winning = context;
    for (int i = 0; i < run->group.node_count; i++) {
        struct node_facts facts;
        if ((winning->among & 1u << i) == 0) continue;
        if (!sim_node_facts(&run->group.nodes[i], &facts) || !facts.raft_leader) continue;
        if (facts.raft_term <= winning->term) continue;
        winning->winner = i;
        winning->term = facts.raft_term;
        return true;
    }
    return false;
}

int scenario_until_won(struct sim_run *run, uint32_t among, int64_t *term)
{
    struct winning winning = {.among = among, .term = *term, .winner = -1};
    if (!scenario_until(run, somebody_won, &winning, WIN_US, "an election won")) return -1;
    *term = winning.term;
    return winning.winner;
}

struct partition *scenario_copy(struct sim_run *run, int node)
{
    struct sim_node *at = &run->group.nodes[node];
    const char *name = run->workload.topics[0].name;
    if (at->broker == NULL || !at->running) return NULL;
    struct topic *topic = catalog_find(at->broker, name, strlen(name));
    return topic == NULL ? NULL : topic_partition(topic, 0);
}

int64_t scenario_log_end(struct sim_run *run, int node)
{
    struct partition *copy = scenario_copy(run, node);
    return copy == NULL ? -1 : partition_log_end(copy);
}

struct growth {
    int node;
    int64_t end;
};

static bool has_grown(struct sim_run *run, void *context)
{
    const struct growth *growth = context;
    return scenario_log_end(run, growth->node) >= growth->end;
}

bool scenario_until_grown(struct sim_run *run, int node, int64_t end)
{
    struct growth growth = {node, end};
    return scenario_until(run, has_grown, &growth, GROW_US, "records appended");
}

bool scenario_grow(struct sim_run *run, int node, int64_t records)
{
    return scenario_until_grown(run, node, scenario_log_end(run, node) + records);
}
