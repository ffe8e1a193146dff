/* scenario.c: which scripts there are, and those in which processes, disks or links go. */
#include "sim/scenario.h"

#include <string.h>

#include "base/assert.h"
#include "sim/scenario_steps.h"

/* Nothing goes wrong: founding, load, rest. */
static void play_calm(struct sim_run *run)
{
    if (scenario_begin(run) == NULL || !sim_run_for(run, 10 * SECOND_US)) return;
    sim_run_settle(run);
}

/* F1: the leader's process dies, again and again, some of them twice within 50 ms. */
static void play_leader_kills(struct sim_run *run)
{
    if (scenario_begin(run) == NULL) return;
    for (int i = 0; i < 12; i++) {
        struct sim_node *leader = sim_run_until_served(run, 2 * TAKEOVER_US);
        if (leader == NULL) return;
        sim_node_kill(leader, i % 3 == 2 ? SIM_DEATH_POWER : SIM_DEATH_KILL);
        run->faults.restart_us[leader->index] = run->world.now_us + 50000;
        if (!sim_run_for(run, random_between(&run->random, 10000, 2 * SECOND_US))) return;
    }
    sim_run_settle(run);
}

/* F5, F26: all lose power within 100 ms and come back in some order, staggered. */
static void play_power_cut_all(struct sim_run *run)
{
    if (scenario_begin(run) == NULL) return;
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < run->group.node_count; i++) {
            scenario_keep_down(run, i, SIM_DEATH_POWER);
            if (!sim_run_for(run, random_between(&run->random, 0, 30000))) return;
        }
        int first = (int)random_below(&run->random, (uint64_t)run->group.node_count);
        for (int i = 0; i < run->group.node_count; i++) {
            scenario_start(run, (first + i) % run->group.node_count);
            if (!sim_run_for(run, random_between(&run->random, 0, 3 * SECOND_US))) return;
        }
        if (sim_run_until_served(run, 30 * SECOND_US) == NULL) return;
        if (!sim_run_for(run, SECOND_US)) return;
    }
    sim_run_settle(run);
}

/* F7: the leader stands still while another takes over, and goes on with requests queued. */
static void play_paused_leader(struct sim_run *run)
{
    if (scenario_begin(run) == NULL) return;
    for (int round = 0; round < 4; round++) {
        struct sim_node *leader = sim_run_until_served(run, TAKEOVER_US);
        if (leader == NULL) return;
        sim_machine_pause(leader->machine, false);
        if (scenario_until_other_serves(run, leader, TAKEOVER_US, "paused leader") == NULL) return;
        if (!sim_run_for(run, random_between(&run->random, 0, 2 * SECOND_US))) return;
        sim_machine_resume(leader->machine);
        if (!sim_run_for(run, 2 * SECOND_US)) return;
    }
    sim_run_settle(run);
}

/* F14, KAFKA-15489: followers cannot connect to the leader, though it reaches them. */
static void play_no_fetches(struct sim_run *run)
{
    struct sim_node *leader = scenario_begin(run);
    if (leader == NULL) return;
    for (int i = 0; i < run->group.node_count; i++) {
        if (i == leader->index) continue;
        sim_network_path(run->group.network, i + 1, leader->index + 1)->clogged = true;
        sim_network_reset(run->group.network, i + 1, leader->index + 1);
    }
    if (scenario_until_other_serves(run, leader, TAKEOVER_US, "nobody fetches") == NULL) return;
    sim_run_settle(run);
}

/* F43: the leader's disk finishes nothing any more. */
static void play_stalled_leader(struct sim_run *run)
{
    struct sim_node *leader = scenario_begin(run);
    if (leader == NULL) return;
    sim_machine_set_stall(
        leader->machine,
        &(struct sim_stall){.until_us = INT64_MAX,
                            .lanes = 1u << EXECUTOR_LANE_DISK | 1u << EXECUTOR_LANE_BACKGROUND,
                            .before_run = random_below(&run->random, 2) == 0});
    if (scenario_until_other_serves(run, leader, TAKEOVER_US, "stalled disk") == NULL) return;
    if (!sim_run_for(run, 2 * SECOND_US)) return;
    sim_run_settle(run);
}

/* F37, T61: two of three hold what is acknowledged; one of them dies, the other is wiped. The
 * third knows nothing of the smaller set: it must not lead with the wiped one's vote. */
static void play_wiped_voter(struct sim_run *run)
{
    struct sim_node *leader = scenario_begin(run);
    if (leader == NULL) return;
    int behind = scenario_another(run, leader->index), other = scenario_another(run, behind);
    if (run->group.node_count == 5) {
        int fourth = scenario_another(run, other), fifth = scenario_another(run, fourth);
        scenario_keep_down(run, fifth, SIM_DEATH_KILL);
        (void)fourth;
    }
    scenario_keep_down(run, behind, SIM_DEATH_KILL);
    if (!sim_run_for(run, 4 * SECOND_US)) return;
    leader = sim_run_until_served(run, TAKEOVER_US);
    if (leader == NULL) return;
    other = leader->index == other ? run->group.node_count - 1 : other;
    if (other == leader->index || other == behind) other = scenario_another(run, leader->index);
    if (other == behind) other = scenario_another(run, other);
    for (int i = 0; i < run->group.node_count; i++) {
        if (i != behind) scenario_keep_down(run, i, SIM_DEATH_KILL);
    }
    sim_checker_excuse(run->checker, other);
    sim_disk_wipe(sim_machine_disk(run->group.nodes[other].machine));
    scenario_start(run, other);
    scenario_start(run, behind);
    if (!sim_run_for(run, random_between(&run->random, 3, 20) * SECOND_US)) return;
    sim_run_settle(run);
}

/* F39: all go down at once; one comes back with an old copy of its DataDir, Raft log and all, and
 * stands together with just enough others. Whoever leads must hold what they hold. */
static void play_old_copy(struct sim_run *run)
{
    struct sim_node *leader = scenario_begin(run);
    if (leader == NULL) return;
    int count = run->group.node_count;
    int old = (int)random_below(&run->random, (uint64_t)count);
    struct sim_disk *disk = sim_machine_disk(run->group.nodes[old].machine);
    struct sim_disk_image *image = sim_disk_copy(disk);
    bool goes_on = sim_run_for(run, random_between(&run->random, 1, 6) * SECOND_US);
    if (goes_on) {
        for (int i = 0; i < count; i++)
            scenario_keep_down(run, i, SIM_DEATH_KILL);
        sim_checker_excuse(run->checker, old);
        sim_disk_restore(disk, image);
    }
    sim_disk_image_free(image);
    for (int i = 0; goes_on && i < sim_group_majority(&run->group); i++) {
        scenario_start(run, (old + i) % count);
        goes_on = sim_run_for(run, random_between(&run->random, 0, SECOND_US));
    }
    /* Told apart, it is a learner, and what is left may be no majority. */
    if (!goes_on || !sim_run_for(run, random_between(&run->random, 1, 6) * SECOND_US)) return;
    sim_run_settle(run);
}

/* F47: one replica is configured with a list of members two apart from the others'. */
static void play_member_lists(struct sim_run *run)
{
    if (run->group.node_count != 5) {
        play_calm(run);
        return;
    }
    if (scenario_begin(run) == NULL) return;
    int odd = (int)random_below(&run->random, 5);
    scenario_keep_down(run, odd, SIM_DEATH_KILL);
    /* What it asked before is answered before. */
    if (!sim_run_for(run, SECOND_US)) return;
    run->group.nodes[odd].members_mask = 0x1f & ~(1u << scenario_another(run, odd)) &
                                         ~(1u << scenario_another(run, scenario_another(run, odd)));
    scenario_start(run, odd);
    if (!sim_run_for(run, 6 * SECOND_US)) return;
    scenario_keep_down(run, odd, SIM_DEATH_KILL);
    if (!sim_run_for(run, SECOND_US)) return;
    run->group.nodes[odd].members_mask = 0x1f;
    scenario_start(run, odd);
    sim_run_settle(run);
}

/* F53: whoever leads dies soon after each acknowledged change of a topic. */
static void play_admin_then_kill(struct sim_run *run)
{
    if (scenario_begin(run) == NULL) return;
    for (int round = 0; round < 25; round++) {
        struct sim_node *leader = sim_run_until_served(run, TAKEOVER_US);
        if (leader == NULL) return;
        uint64_t before = run->workload.admin_acknowledged;
        for (int i = 0; i < 2000 && run->workload.admin_acknowledged == before; i++) {
            if (!sim_run_for(run, 2000)) return;
        }
        leader = sim_group_leader(&run->group);
        if (leader == NULL) continue;
        sim_node_kill(leader,
                      random_below(&run->random, 2) == 0 ? SIM_DEATH_POWER : SIM_DEATH_KILL);
        run->faults.restart_us[leader->index] = run->world.now_us + 3 * SECOND_US;
    }
    sim_run_settle(run);
}

/* T56: replicas with different terms and log lengths must still elect somebody: each is cut off in
 * turn, so that terms drift apart, then all but a majority stay away. */
static void play_drifting_terms(struct sim_run *run)
{
    if (scenario_begin(run) == NULL) return;
    for (int round = 0; round < 6; round++) {
        struct sim_node *leader = sim_run_until_served(run, 2 * TAKEOVER_US);
        if (leader == NULL) return;
        for (int i = 0; i < run->group.node_count; i++) {
            if (i != leader->index) sim_group_cut(&run->group, leader->index, i, true);
        }
        if (!sim_run_for(run, random_between(&run->random, 200000, 5 * SECOND_US))) return;
        scenario_keep_down(run, scenario_another(run, leader->index), SIM_DEATH_KILL);
        sim_group_heal_network(&run->group);
        if (sim_run_until_served(run, 2 * TAKEOVER_US) == NULL) return;
        scenario_start(run, scenario_another(run, leader->index));
    }
    sim_run_settle(run);
}

/* T15, I10, I14: followers leave one by one until too few are left, under load; then the leader
 * loses its process, and each of the others comes back first in turn. */
static void play_below_minimum(struct sim_run *run)
{
    struct sim_node *leader = scenario_begin(run);
    if (leader == NULL) return;
    for (int round = 0; round < 3; round++) {
        leader = sim_run_until_served(run, 2 * TAKEOVER_US);
        if (leader == NULL) return;
        for (int i = 0; i < run->group.node_count; i++) {
            if (i == leader->index) continue;
            sim_node_kill(&run->group.nodes[i], SIM_DEATH_KILL);
            run->faults.restart_us[i] = INT64_MAX;
            if (!sim_run_for(run, random_between(&run->random, 100000, SECOND_US))) return;
        }
        if (!sim_run_for(run, random_between(&run->random, 0, 2 * SECOND_US))) return;
        scenario_keep_down(run, leader->index, SIM_DEATH_KILL);
        for (int i = 0; i < run->group.node_count; i++) {
            if (i != leader->index) scenario_start(run, i);
        }
        if (!sim_run_for(run, random_between(&run->random, 1, 4) * SECOND_US)) return;
        scenario_start(run, leader->index);
    }
    sim_run_settle(run);
}

static const struct scenario processes[] = {
    {.name = "calm", .play = play_calm},
    {.name = "leader-kills", .play = play_leader_kills},
    {.name = "power-cut-all", .play = play_power_cut_all},
    {.name = "paused-leader", .play = play_paused_leader},
    {.name = "no-fetches", .play = play_no_fetches},
    {.name = "stalled-leader", .play = play_stalled_leader},
    {.name = "wiped-voter", .play = play_wiped_voter},
    {.name = "old-copy", .play = play_old_copy},
    {.name = "member-lists", .play = play_member_lists},
    {.name = "admin-then-kill", .play = play_admin_then_kill},
    {.name = "drifting-terms", .play = play_drifting_terms},
    {.name = "below-minimum", .play = play_below_minimum},
    {0},
};

static const struct scenario *const themes[] = {processes,       scenario_elections,
                                                scenario_copies, scenario_sets,
                                                scenario_disks,  scenario_transactions};

static const struct scenario *scenario_at(int index)
{
    for (size_t i = 0; i < ARRAY_COUNT(themes); i++) {
        for (const struct scenario *scenario = themes[i]; scenario->name != NULL; scenario++) {
            if (index-- == 0) return scenario;
        }
    }
    return NULL;
}

static const struct scenario *find_scenario(const char *name)
{
    const struct scenario *scenario;
    for (int i = 0; (scenario = scenario_at(i)) != NULL; i++) {
        if (strcmp(scenario->name, name) == 0) return scenario;
    }
    return NULL;
}

bool sim_scenario_exists(const char *name)
{
    return find_scenario(name) != NULL;
}

int sim_scenario_nodes(const char *name)
{
    return find_scenario(name)->nodes;
}

void sim_scenario_prepare(const char *name, struct sim_group *group,
                          struct sim_workload_options *options)
{
    const struct scenario *scenario = find_scenario(name);
    if (scenario->prepare != NULL) scenario->prepare(group, options);
}

void sim_scenario_play(const char *name, struct sim_run *run)
{
    const struct scenario *scenario = find_scenario(name);
    ASSERT(scenario != NULL);
    scenario->play(run);
}

const char *sim_scenario_name(int index)
{
    const struct scenario *scenario = scenario_at(index);
    return scenario == NULL ? NULL : scenario->name;
}
