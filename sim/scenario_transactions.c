/* scenario_transactions.c: scripts in which leaders go in the middle of transactions, and from
 * under groups. */
#include <string.h>

#include "broker/transactions.h"
#include "sim/scenario_steps.h"

static void prepare_transactions(struct sim_group *group, struct sim_workload_options *options)
{
    (void)group;
    options->domains = SIM_TRANSACTIONS;
    options->churns = false;
    options->plain = options->idempotent = 1;
}

struct seen {
    int prepared, ongoing;
};

static void see_transaction(void *context, struct slice id, const struct transaction_value *value)
{
    struct seen *seen = context;
    (void)id;
    seen->prepared += transaction_is_prepared(value);
    seen->ongoing += value->status == TRANSACTION_ONGOING;
}

/* A transaction that is decided and whose markers are not all written is on record at the leader.
 */
static bool is_any_prepared(struct sim_run *run, void *context)
{
    struct seen seen = {0};
    struct sim_node *leader = sim_group_leader(&run->group);
    struct sim_node **at = context;
    if (leader == NULL) return false;
    broker_list_transactions(leader->broker, see_transaction, &seen);
    *at = leader;
    return seen.prepared > 0;
}

static void lose_leader(struct sim_run *run, struct sim_node *leader)
{
    sim_node_kill(leader, random_below(&run->random, 2) == 0 ? SIM_DEATH_POWER : SIM_DEATH_KILL);
    run->faults.restart_us[leader->index] =
        run->world.now_us + random_between(&run->random, 0, 2 * SECOND_US);
}

/* F58: the leader dies between the decision on a transaction and its end; some of its markers are
 * there by then, or all, or none. */
static void play_prepared_then_kill(struct sim_run *run)
{
    if (scenario_begin(run) == NULL || !sim_run_for(run, 2 * SECOND_US)) return;
    for (int round = 0; round < 8; round++) {
        struct sim_node *leader = NULL;
        if (sim_run_until_served(run, 2 * TAKEOVER_US) == NULL) return;
        if (!scenario_until(run, is_any_prepared, &leader, 30 * SECOND_US, "a transaction ends"))
            return;
        if (!sim_run_for(run, random_between(&run->random, 0, 1500))) return;
        lose_leader(run, leader);
        if (!sim_run_for(run, random_between(&run->random, 0, 3 * SECOND_US))) return;
    }
    sim_run_settle(run);
}

/* F57: transactions are open over one leader after the other. */
static void play_open_over_failovers(struct sim_run *run)
{
    if (scenario_begin(run) == NULL) return;
    for (int round = 0; round < 12; round++) {
        struct sim_node *leader = sim_run_until_served(run, 2 * TAKEOVER_US);
        if (leader == NULL) return;
        if (!sim_run_for(run, random_between(&run->random, 20000, 2 * SECOND_US))) return;
        if (round % 3 == 0)
            sim_node_transfer(leader, -1);
        else
            lose_leader(run, leader);
        if (!sim_run_for(run, random_between(&run->random, 10000, SECOND_US))) return;
    }
    sim_run_settle(run);
}

/* F59: the leader stands still with requests of an instance in its queue, while another instance
 * takes the id at the next leader. */
static void play_paused_between_holders(struct sim_run *run)
{
    if (scenario_begin(run) == NULL) return;
    for (int round = 0; round < 5; round++) {
        struct sim_node *leader = sim_run_until_served(run, 2 * TAKEOVER_US);
        if (leader == NULL || !sim_run_for(run, random_between(&run->random, 0, SECOND_US))) return;
        sim_machine_pause(leader->machine, false);
        if (scenario_until_other_serves(run, leader, TAKEOVER_US, "paused leader") == NULL) return;
        if (!sim_run_for(run, random_between(&run->random, 0, 3 * SECOND_US))) return;
        sim_machine_resume(leader->machine);
        if (!sim_run_for(run, SECOND_US)) return;
    }
    sim_run_settle(run);
}

static void prepare_groups(struct sim_group *group, struct sim_workload_options *options,
                           uint32_t domain)
{
    /* A takeover is shorter than a session. */
    group->config.election_timeout_us = 300000;
    group->config.election_timeout_max_us = 600000;
    group->config.heartbeat_us = 50000;
    options->domains = domain;
    options->churns = false;
    options->plain = options->idempotent = 1;
    options->steady_groups = true;
}

static void prepare_group(struct sim_group *group, struct sim_workload_options *options)
{
    prepare_groups(group, options, SIM_GROUPS);
}

static void prepare_modern_group(struct sim_group *group, struct sim_workload_options *options)
{
    prepare_groups(group, options, SIM_MODERN_GROUPS);
}

static void prepare_native_group(struct sim_group *group, struct sim_workload_options *options)
{
    prepare_groups(group, options, SIM_NATIVE_GROUPS);
}

static bool is_group_formed(struct sim_run *run, void *context)
{
    const struct sim_workload *workload = &run->workload;
    char why[200];
    (void)context;
    if (workload->modern_grouper != NULL)
        return sim_modern_grouper_drained(workload->modern_grouper, why, sizeof(why));
    if (workload->native_grouper != NULL)
        return sim_native_grouper_drained(workload->native_grouper, why, sizeof(why));
    return sim_grouper_drained(workload->grouper, why, sizeof(why));
}

static int32_t group_generation(const struct sim_workload *workload)
{
    if (workload->modern_grouper != NULL) return sim_modern_grouper_epoch(workload->modern_grouper);
    if (workload->native_grouper != NULL)
        return sim_native_grouper_generation(workload->native_grouper);
    return sim_grouper_generation(workload->grouper);
}

/* F62: leader after leader goes; no member does: nobody is told to join again. */
static void play_group_over_failovers(struct sim_run *run)
{
    if (scenario_begin(run) == NULL) return;
    if (!sim_run_for(run, 4 * SECOND_US) ||
        !scenario_until(run, is_group_formed, NULL, 20 * SECOND_US, "a group of all members"))
        return;
    int32_t generation = group_generation(&run->workload);
    for (int round = 0; round < 8; round++) {
        struct sim_node *leader = sim_run_until_served(run, TAKEOVER_US);
        if (leader == NULL || !sim_run_for(run, random_between(&run->random, 0, 3 * SECOND_US)))
            return;
        if (round % 3 == 0)
            sim_node_transfer(leader, -1);
        else
            lose_leader(run, leader);
        if (!sim_run_for(run, random_between(&run->random, 2 * SECOND_US, 4 * SECOND_US))) return;
    }
    if (group_generation(&run->workload) != generation)
        sim_verdict_fail(&run->verdict, "I20", "generation %d after failovers only; it was %d",
                         group_generation(&run->workload), generation);
    sim_run_settle(run);
}

const struct scenario scenario_transactions[] = {
    {.name = "prepared-then-kill",
     .play = play_prepared_then_kill,
     .prepare = prepare_transactions},
    {.name = "open-over-failovers",
     .play = play_open_over_failovers,
     .prepare = prepare_transactions},
    {.name = "paused-between-holders",
     .play = play_paused_between_holders,
     .prepare = prepare_transactions},
    {.name = "group-over-failovers", .play = play_group_over_failovers, .prepare = prepare_group},
    {.name = "modern-group-over-failovers",
     .play = play_group_over_failovers,
     .prepare = prepare_modern_group},
    {.name = "native-group-over-failovers",
     .play = play_group_over_failovers,
     .prepare = prepare_native_group},
    {0},
};
