/* scenario_sets.c: scripts in which replicas leave the in-sync set, or join it. */
#include "sim/scenario_steps.h"

static void prepare_little_patience(struct sim_group *group, struct sim_workload_options *options)
{
    (void)options;
    group->config.durable_stall_us = 300000;
}

/* T15: followers hold the connection, vote and answer, but fetch no more, one after the other: some
 * leave the in-sync set, the last ones must not, and nothing is committed without them. */
static void play_starved_followers(struct sim_run *run)
{
    if (scenario_begin(run) == NULL) return;
    for (int round = 0; round < 3; round++) {
        struct sim_node *leader = sim_run_until_served(run, 2 * TAKEOVER_US);
        if (leader == NULL) return;
        for (int i = 0; i < run->group.node_count; i++) {
            if (i == leader->index) continue;
            scenario_starve(run, i, true);
            if (!sim_run_for(run, random_between(&run->random, 0, 400000))) return;
        }
        if (!sim_run_for(run, SECOND_US)) return;
        for (int i = 0; i < run->group.node_count; i++)
            scenario_starve(run, i, false);
        if (!sim_run_for(run, 3 * SECOND_US)) return;
    }
    sim_run_settle(run);
}

static bool set_below_minimum(struct sim_run *run, void *context)
{
    struct node_facts facts;
    return sim_node_facts(context, &facts) && facts.leader_serving &&
           __builtin_popcount(facts.isr_mask) < run->group.config.min_insync;
}

/* T15, I10: one follower is dead and out of the set, the other is wiped and comes back as somebody
 * else: the entry of its new incarnation leaves the leader alone in the set. The mark stands still.
 */
static void play_frozen_mark(struct sim_run *run)
{
    struct sim_node *leader = scenario_begin(run);
    if (leader == NULL) return;
    int dead = scenario_another(run, leader->index), wiped = scenario_another(run, dead);
    scenario_keep_down(run, dead, SIM_DEATH_KILL);
    if (!sim_run_for(run, SECOND_US)) return;
    if (sim_group_leader(&run->group) != leader) return;
    sim_checker_excuse(run->checker, wiped);
    scenario_keep_down(run, wiped, SIM_DEATH_KILL);
    sim_disk_wipe(sim_machine_disk(run->group.nodes[wiped].machine));
    /* It votes for the entry, and fetches nothing, so that it stays out of the set. */
    scenario_starve(run, dead, true);
    scenario_starve(run, wiped, true);
    scenario_start(run, dead);
    scenario_start(run, wiped);
    if (!scenario_until(run, set_below_minimum, leader, TAKEOVER_US, "the new incarnation")) return;
    if (!sim_run_for(run, SECOND_US)) return;
    sim_run_settle(run);
}

static void stall_raft_file(struct sim_run *run, int node, bool stalled)
{
    struct sim_stall stall = {
        .until_us = INT64_MAX, .lanes = 1u << EXECUTOR_LANE_RAFT, .before_run = true};
    if (!stalled) stall = (struct sim_stall){0};
    sim_machine_set_stall(run->group.nodes[node].machine, &stall);
}

static bool change_is_pending(struct sim_run *run, void *context)
{
    struct node_facts facts;
    (void)run;
    return sim_node_facts(context, &facts) && facts.leader_serving && facts.change_pending;
}

static bool knows_entries(struct sim_run *run, void *context)
{
    const int *nodes = context; /* the leader, a follower */
    struct node_facts leads, follows;
    return sim_node_facts(&run->group.nodes[nodes[0]], &leads) &&
           sim_node_facts(&run->group.nodes[nodes[1]], &follows) &&
           follows.raft_commit_index == leads.raft_commit_index;
}

static void prepare_joining(struct sim_group *group, struct sim_workload_options *options)
{
    scenario_prepare_one_log(group, options);
    group->config.follower_gone_us = SECOND_US / 2;
}

/* T17: a follower's joining stays open, as nobody else can write it down; the follower gets no more
 * data meanwhile. Then the entry commits after all: what was acknowledged must be on it. */
static void play_pending_join(struct sim_run *run)
{
    struct sim_node *leader = scenario_begin(run);
    if (leader == NULL) return;
    int joining = scenario_another(run, leader->index);
    int other = scenario_another(run, joining);
    scenario_keep_down(run, joining, SIM_DEATH_KILL);
    if (!sim_run_for(run, SECOND_US / 2)) return;
    scenario_start(run, joining);
    int nodes[] = {leader->index, joining};
    if (!scenario_until(run, knows_entries, nodes, SECOND_US, "Raft's entries caught up") ||
        !sim_run_for(run, SECOND_US / 50))
        return;
    stall_raft_file(run, joining, true);
    stall_raft_file(run, other, true);
    if (!scenario_until(run, change_is_pending, leader, TAKEOVER_US, "a proposal to join")) return;
    scenario_starve(run, joining, true);
    if (!sim_run_for(run, SECOND_US / 5)) return;
    stall_raft_file(run, other, false);
    if (!sim_run_for(run, SECOND_US / 5)) return;
    stall_raft_file(run, joining, false);
    scenario_starve(run, joining, false);
    sim_run_settle(run);
}

static void prepare_leaving(struct sim_group *group, struct sim_workload_options *options)
{
    scenario_prepare_one_log(group, options);
    group->config.durable_stall_us = 300000;
}

/* The other way round: that a follower leaves is proposed, and not known committed. Until then what
 * is acknowledged must be on it: it may be the one that is elected. */
static void play_pending_shrink(struct sim_run *run)
{
    struct sim_node *leader = scenario_begin(run);
    if (leader == NULL) return;
    int leaving = scenario_another(run, leader->index);
    int other = scenario_another(run, leaving);
    scenario_starve(run, leaving, true);
    stall_raft_file(run, leaving, true);
    stall_raft_file(run, other, true);
    if (!scenario_until(run, change_is_pending, leader, TAKEOVER_US, "a proposal to leave")) return;
    if (!sim_run_for(run, SECOND_US / 5)) return;
    stall_raft_file(run, leaving, false);
    stall_raft_file(run, other, false);
    scenario_starve(run, leaving, false);
    if (!sim_run_for(run, 2 * SECOND_US)) return;
    sim_run_settle(run);
}

struct marks {
    struct sim_node *leader;
    int64_t high_watermark;
};

static bool mark_has_moved(struct sim_run *run, void *context)
{
    const struct marks *marks = context;
    struct partition *copy = scenario_copy(run, marks->leader->index);
    return copy != NULL && partition_high_watermark(copy) >= marks->high_watermark;
}

/* T7: the new leader holds all that was acknowledged, but was not told how much that is. Who
 * reaches the high watermark that it knows of, and not its epoch's start, lacks some of it: such a
 * one must not join, or it may be elected. */
static void play_join_below_epoch_start(struct sim_run *run)
{
    struct sim_node *leader = scenario_begin(run);
    if (leader == NULL) return;
    int behind = scenario_another(run, leader->index), next = scenario_another(run, behind);
    scenario_keep_down(run, behind, SIM_DEATH_KILL); /* out of the set, and back too soon to join */
    if (!sim_run_for(run, SECOND_US / 2)) return;
    scenario_start(run, behind);
    if (!sim_run_for(run, SECOND_US)) return;
    scenario_cut_off(run, leader->index, true);
    if (!scenario_grow(run, leader->index, 15)) return;
    struct marks marks = {leader, scenario_log_end(run, next) + 10};
    sim_group_cut(&run->group, leader->index, next, false);
    sim_network_reset(run->group.network, leader->index + 1, next + 1);
    if (!scenario_until(run, mark_has_moved, &marks, TAKEOVER_US, "acknowledgements")) return;
    sim_checker_look(run->checker);
    scenario_keep_down(run, leader->index, SIM_DEATH_KILL);
    sim_machine_set_stall(run->group.nodes[behind].machine,
                          &(struct sim_stall){.until_us = INT64_MAX,
                                              .lanes = 1u << EXECUTOR_LANE_DISK,
                                              .before_run = true});
    if (scenario_until_other_serves(run, leader, 2 * TAKEOVER_US, "the leader is dead") == NULL ||
        !sim_run_for(run, SECOND_US / 2))
        return;
    scenario_keep_down(run, next, SIM_DEATH_KILL);
    scenario_keep_down(run, behind, SIM_DEATH_KILL);
    sim_machine_set_stall(run->group.nodes[behind].machine, &(struct sim_stall){0});
    sim_group_heal_network(&run->group);
    scenario_start(run, behind);
    scenario_start(run, leader->index);
    if (sim_run_until_served(run, 5 * TAKEOVER_US) == NULL) return;
    sim_run_settle(run);
}

const struct scenario scenario_sets[] = {
    {.name = "starved-followers",
     .play = play_starved_followers,
     .prepare = prepare_little_patience},
    {.name = "frozen-mark", .play = play_frozen_mark, .nodes = 3},
    {.name = "pending-join", .play = play_pending_join, .nodes = 3, .prepare = prepare_joining},
    {.name = "pending-shrink", .play = play_pending_shrink, .nodes = 3, .prepare = prepare_leaving},
    {.name = "join-below-epoch-start",
     .play = play_join_below_epoch_start,
     .nodes = 3,
     .prepare = scenario_prepare_one_log},
    {0},
};
