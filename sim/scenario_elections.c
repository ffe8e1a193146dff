/* scenario_elections.c: scripts in which terms, votes and Raft's entries go astray. */
#include "sim/scenario_steps.h"

static uint32_t everybody(const struct sim_run *run)
{
    return (1u << run->group.node_count) - 1;
}

/* One of `among` wins, and is cut off before anybody hears of it: its claim is on its own disk
 * only. Its index, or -1. */
static int win_unheard(struct sim_run *run, uint32_t among, int64_t *term)
{
    int winner = scenario_until_won(run, among, term);
    if (winner >= 0) scenario_cut_off(run, winner, true);
    return winner;
}

/* Those that are cut off have given up their leadership by the end. */
static bool until_deposed(struct sim_run *run)
{
    return sim_run_for(run, 2 * run->group.config.election_timeout_max_us);
}

/* The leader is gone for a moment, so that the next one is elected. *term: of before. */
static bool unseat_leader(struct sim_run *run, int64_t *term)
{
    struct node_facts facts;
    struct sim_node *leader = scenario_begin(run);
    if (leader == NULL || !sim_node_facts(leader, &facts)) return false;
    *term = facts.raft_term;
    sim_node_kill(leader, SIM_DEATH_KILL);
    scenario_start(run, leader->index);
    return true;
}

/* T51: many stand at once, and answers take as long as a term: votes are split, candidates give up
 * and stand again while the questions of others about the same term are still on their way. */
static void play_split_votes(struct sim_run *run)
{
    int64_t slow_us = run->group.config.election_timeout_us;
    if (scenario_begin(run) == NULL) return;
    for (int a = 0; a < run->group.node_count; a++) {
        for (int b = 0; b < run->group.node_count; b++) {
            if (a != b) sim_network_path(run->group.network, a + 1, b + 1)->delay_us_max = slow_us;
        }
    }
    for (int round = 0; round < 12; round++) {
        for (int i = 0; i < run->group.node_count; i++) {
            struct node_facts facts;
            if (!sim_node_facts(&run->group.nodes[i], &facts) || !facts.raft_leader) continue;
            sim_node_kill(&run->group.nodes[i], SIM_DEATH_KILL);
            run->faults.restart_us[i] = run->world.now_us + 2 * slow_us;
        }
        if (!sim_run_for(run, random_between(&run->random, slow_us, 6 * slow_us))) return;
    }
    sim_run_settle(run);
}

/* T52, Raft's figure 8: an entry of an earlier term comes to stand on a majority while the one
 * above it does not, and is overwritten by a leader of a term in between. */
static void play_earlier_term(struct sim_run *run)
{
    int64_t term;
    if (!unseat_leader(run, &term)) return;
    int reviver = win_unheard(run, everybody(run), &term);
    if (reviver < 0) return;
    int between = win_unheard(run, everybody(run) & ~(1u << reviver), &term);
    if (between < 0 || !until_deposed(run)) return;
    int voter = 3 - reviver - between;
    sim_group_cut(&run->group, reviver, voter, false);
    /* Its first entry of old is on disk; the one of its new term stays in memory. */
    if (scenario_until_won(run, everybody(run) & ~(1u << between), &term) != reviver) {
        sim_verdict_fail(&run->verdict, "I9", "node %d won with the shorter log", voter + 1);
        return;
    }
    sim_machine_set_stall(run->group.nodes[reviver].machine,
                          &(struct sim_stall){.until_us = INT64_MAX,
                                              .lanes = 1u << EXECUTOR_LANE_RAFT,
                                              .before_run = true});
    if (!sim_run_for(run, 200000)) return;
    scenario_keep_down(run, reviver, SIM_DEATH_POWER);
    sim_machine_set_stall(run->group.nodes[reviver].machine, &(struct sim_stall){0});
    scenario_cut_off(run, voter, true);
    sim_group_cut(&run->group, reviver, between, false);
    scenario_start(run, reviver);
    if (sim_run_until_served(run, 4 * TAKEOVER_US) == NULL) return;
    sim_run_settle(run);
}

/* A follower that may lead. */
static int draw_successor(const struct sim_run *run, struct sim_node *leader)
{
    struct node_facts facts;
    int successor = scenario_another(run, leader->index);
    if (!sim_node_facts(leader, &facts)) return successor;
    while (successor != leader->index && (facts.isr_mask & 1u << successor) == 0)
        successor = scenario_another(run, successor);
    return successor;
}

/* T53: who takes over has just begun anew and does not know yet how much is committed; the others
 * know. */
static void play_restarted_successor(struct sim_run *run)
{
    if (scenario_begin(run) == NULL) return;
    for (int round = 0; round < 5; round++) {
        struct sim_node *leader = sim_run_until_served(run, 2 * TAKEOVER_US);
        if (leader == NULL) return;
        int successor = draw_successor(run, leader);
        for (int i = 0; i < run->group.node_count; i++)
            scenario_starve(run, i, i != successor);
        scenario_keep_down(run, leader->index, SIM_DEATH_KILL);
        sim_node_kill(&run->group.nodes[successor], SIM_DEATH_KILL);
        scenario_start(run, successor);
        if (sim_run_until_served(run, 2 * TAKEOVER_US) == NULL) return;
        scenario_start(run, leader->index);
        for (int i = 0; i < run->group.node_count; i++)
            scenario_starve(run, i, false);
        if (!sim_run_for(run, 2 * SECOND_US)) return;
    }
    sim_run_settle(run);
}

/* T56: two of three are left: one with the longest log on a low term, the other with a shorter log
 * on a term so high that only its refusals tell of it. */
static void play_longest_log_on_a_low_term(struct sim_run *run)
{
    int64_t term;
    if (!unseat_leader(run, &term)) return;
    int longest = win_unheard(run, everybody(run), &term);
    if (longest < 0) return;
    uint32_t others = everybody(run) & ~(1u << longest);
    int ahead = win_unheard(run, others, &term);
    if (ahead < 0 || !until_deposed(run)) return;
    int voter = 3 - longest - ahead;
    for (int i = 0; i < 2; i++) {
        sim_group_cut(&run->group, ahead, voter, false);
        if (win_unheard(run, others, &term) < 0 || !until_deposed(run)) return;
    }
    scenario_keep_down(run, ahead, SIM_DEATH_KILL);
    sim_group_cut(&run->group, longest, voter, false);
    if (sim_run_until_served(run, 4 * TAKEOVER_US) == NULL) return;
    sim_run_settle(run);
}

const struct scenario scenario_elections[] = {
    {.name = "split-votes", .play = play_split_votes},
    {.name = "earlier-term", .play = play_earlier_term, .nodes = 3},
    {.name = "restarted-successor", .play = play_restarted_successor},
    {.name = "longest-log-on-a-low-term", .play = play_longest_log_on_a_low_term, .nodes = 3},
    {0},
};
