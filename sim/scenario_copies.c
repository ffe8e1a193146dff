/* scenario_copies.c: scripts in which a follower's copy and the leader's go different ways.
 *
 * The groups have three nodes, one data partition with a record a batch, and no patience limits: a
 * follower that does not fetch stays in the in-sync set, so that all that is written meanwhile is
 * not acknowledged, and can be lost.                                                            */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "broker/admin.h"
#include "record/batch.h"
#include "sim/scenario_steps.h"

static bool all_know_epoch(struct sim_run *run, void *context)
{
    struct sim_node *leader = sim_group_leader(&run->group);
    struct node_facts leads, knows;
    (void)context;
    if (leader == NULL || !sim_node_facts(leader, &leads)) return false;
    for (int i = 0; i < run->group.node_count; i++) {
        if (!sim_node_facts(&run->group.nodes[i], &knows) || knows.epoch != leads.epoch)
            return false;
    }
    return true;
}

/* `to` leads instead of `from`, with the vote of the third; nobody fetches anything meanwhile, nor
 * does any but `to` afterwards. */
static bool take_lead(struct sim_run *run, int from, int to)
{
    for (int i = 0; i < run->group.node_count; i++)
        scenario_starve(run, i, true);
    scenario_cut_off(run, from, true);
    scenario_starve(run, to, false);
    struct sim_node *leader = scenario_until_other_serves(run, &run->group.nodes[from],
                                                          2 * TAKEOVER_US, "the leader is cut off");
    if (leader == NULL) return false;
    scenario_cut_off(run, from, false);
    sim_network_reset(run->group.network, from + 1, to + 1);
    return scenario_until(run, all_know_epoch, NULL, TAKEOVER_US, "the epoch known to all");
}

/* T2: leaders of four epochs in a row, each of which wrote what nobody else has. The follower's log
 * has epochs 1 and 3, the leader's 1, 2 and 4: where epoch 3 ended, the leader cannot say, and
 * where it ends with epoch 2 says nothing of epoch 1. */
static void play_two_rounds(struct sim_run *run)
{
    struct sim_node *first = scenario_begin(run);
    if (first == NULL) return;
    int follower = scenario_another(run, first->index);
    int leader = scenario_another(run, follower);
    scenario_starve(run, leader, true);
    if (!scenario_grow(run, follower, 4)) return;
    if (!take_lead(run, first->index, leader) || !scenario_grow(run, leader, 8)) return;
    if (!take_lead(run, leader, follower) || !scenario_grow(run, follower, 2)) return;
    if (!take_lead(run, follower, leader)) return;
    for (int i = 0; i < run->group.node_count; i++)
        scenario_starve(run, i, false);
    if (!sim_run_for(run, 3 * SECOND_US)) return;
    sim_run_settle(run);
}

static bool serves_again(struct sim_run *run, void *context)
{
    return sim_group_leader(&run->group) == context;
}

static bool follower_has_all(struct sim_run *run, void *context)
{
    struct sim_node *leader = sim_group_leader(&run->group);
    const int *node = context;
    return leader != NULL && leader->index != *node &&
           scenario_log_end(run, *node) == scenario_log_end(run, leader->index);
}

/* The follower is cut off; its leader begins anew, follows another one and so loses what the two
 * alone had, and leads again, in a later epoch. */
static bool lead_again(struct sim_run *run, int leader, int between)
{
    scenario_keep_down(run, leader, SIM_DEATH_KILL);
    scenario_cut_off(run, 3 - leader - between, true);
    sim_group_cut(&run->group, leader, between, false);
    /* The other one stands by then, and is answered as soon as the old leader is back. */
    if (!sim_run_for(run, 2 * run->group.config.election_timeout_max_us)) return false;
    scenario_start(run, leader);
    if (scenario_until_other_serves(run, &run->group.nodes[leader], 2 * TAKEOVER_US,
                                    "the leader began anew") == NULL)
        return false;
    if (!scenario_grow(run, between, 2) ||
        !scenario_until(run, follower_has_all, &leader, TAKEOVER_US, "the old leader's catch-up"))
        return false;
    sim_node_transfer(&run->group.nodes[between], leader + 1);
    return scenario_until(run, serves_again, &run->group.nodes[leader], TAKEOVER_US,
                          "the old leader leads again");
}

/* T8: a leader comes back as leader, with another log than the follower knows it by. */
static void play_same_leader_again(struct sim_run *run)
{
    struct sim_node *leader = scenario_begin(run);
    if (leader == NULL) return;
    int follower = scenario_another(run, leader->index);
    int between = scenario_another(run, follower);
    sim_group_cut(&run->group, leader->index, between, true);
    if (!scenario_grow(run, follower, 6)) return;
    if (!lead_again(run, leader->index, between)) return;
    if (!scenario_until_grown(run, leader->index, scenario_log_end(run, follower) + 3)) return;
    scenario_cut_off(run, follower, false);
    if (!sim_run_for(run, 3 * SECOND_US)) return;
    sim_run_settle(run);
}

/* T10: the network delivers a follower's fetches of long ago to the same leader in a later epoch.
 */
static void play_replayed_fetches(struct sim_run *run)
{
    struct sim_node *leader = scenario_begin(run);
    if (leader == NULL) return;
    int follower = scenario_another(run, leader->index);
    int between = scenario_another(run, follower);
    sim_group_cut(&run->group, leader->index, between, true);
    sim_network_faults(run->group.network)->replay_ppm = 1000000;
    sim_network_faults(run->group.network)->replay_us_max = 30 * SECOND_US;
    for (int i = 0; i < 8; i++) {
        if (!scenario_grow(run, follower, 2)) return;
        sim_network_reset(run->group.network, follower + 1, leader->index + 1);
        if (!sim_run_for(run, 5000)) return;
    }
    sim_network_faults(run->group.network)->replay_ppm = 0;
    if (!lead_again(run, leader->index, between)) return;
    if (!sim_run_for(run, 20 * SECOND_US)) return;
    sim_run_settle(run);
}

/* What an administrator and a producer ask of a leader, inside its process: its memory goes with
 * that, and nobody waits for an answer. */
struct early_topic {
    struct sim_node *leader;
    struct admin_request creation;
    struct produce produce;
};

static void created(void *context, enum status status, const struct error *error)
{
    (void)context;
    (void)status;
    (void)error;
}

static void produced(void *context, struct produce *produce)
{
    (void)context;
    (void)produce;
}

static struct topic *early_topic(const struct sim_node *node)
{
    return !node->running ? NULL : catalog_find(node->broker, "early", strlen("early"));
}

static void create_early(void *context)
{
    struct early_topic *early = calloc(1, sizeof(*early));
    ASSERT(early != NULL);
    struct sim_node *leader = context;
    early->creation = (struct admin_request){
        .topic = "early", .partitions = 1, .timeout_us = SECOND_US, .done = created};
    broker_create_topic(leader->broker, &early->creation);
}

static void send_early(void *context)
{
    struct sim_node *leader = context;
    struct early_topic *early = calloc(1, sizeof(*early));
    ASSERT(early != NULL);
    struct batch_builder builder;
    struct buffer out;
    struct error error;
    const struct slice nothing = {NULL, 0}, value = {(const uint8_t *)"early", 5};
    const struct batch_build_options options = BATCH_BUILD_PLAIN;
    batch_builder_init(&builder);
    buffer_init(&out, 0);
    batch_builder_add(&builder, SIM_WALL_START_MS, nothing, value, 0, nothing);
    enum status status = batch_builder_finish(&builder, &options, &out, &error);
    ASSERT(status == STATUS_OK);
    early->produce = (struct produce){.partition = topic_partition(early_topic(leader), 0),
                                      .batch = shared_bytes_copy(out.data, out.bytes),
                                      .acks = ACKS_ALL,
                                      .timeout_us = 5 * SECOND_US,
                                      .done = produced};
    buffer_deinit(&out);
    batch_builder_deinit(&builder);
    broker_produce(leader->broker, &early->produce);
}

static bool early_topic_is_there(struct sim_run *run, void *context)
{
    (void)run;
    return early_topic(context) != NULL;
}

static bool early_record_is_there(struct sim_run *run, void *context)
{
    struct topic *topic = early_topic(context);
    (void)run;
    return topic != NULL && partition_durable(topic_partition(topic, 0)) > 0;
}

/* T25: a new leader's manifest lacks a topic that a follower has, with records: its creation was
 * not committed. Nobody deleted it, so it is set aside, not dropped. */
static void play_unknown_topic(struct sim_run *run)
{
    struct sim_node *leader = scenario_begin(run);
    if (leader == NULL) return;
    int follower = scenario_another(run, leader->index);
    int next = scenario_another(run, follower);
    struct sim_node *holder = &run->group.nodes[follower];
    scenario_starve(run, next, true);
    if (!sim_machine_run(leader->machine, create_early, leader) ||
        !scenario_until(run, early_topic_is_there, leader, SECOND_US, "a topic") ||
        !sim_machine_run(leader->machine, send_early, leader) ||
        !scenario_until(run, early_record_is_there, holder, 2 * SECOND_US, "a copy of it"))
        return;
    if (!sim_run_for(run, 100000)) return; /* the copy is looked at, too */
    scenario_starve(run, follower, true);
    scenario_keep_down(run, leader->index, SIM_DEATH_KILL);
    scenario_starve(run, next, false);
    if (scenario_until_other_serves(run, leader, 2 * TAKEOVER_US, "the leader is dead") == NULL)
        return;
    scenario_starve(run, follower, false);
    if (!sim_run_for(run, 8 * SECOND_US)) return;
    sim_run_settle(run);
}

static void prepare_keys(struct sim_group *group, struct sim_workload_options *options)
{
    scenario_prepare_one_log(group, options);
    options->domains = SIM_COMPACTION;
    options->plain = options->idempotent = 1;
}

/* Keys that were deleted stay so. */
static void prepare_deleted_keys(struct sim_group *group, struct sim_workload_options *options)
{
    prepare_keys(group, options);
    options->leaves_keys = true;
    options->consumers = 1;
    options->pause_us_min = 50000;
    options->pause_us_max = 200000;
}

/* T38: what nobody has confirmed yet is appended over keys that are committed, and compacted; then
 * it is cut, and what it stood for has to be there. */
static void play_cut_after_cleaning(struct sim_run *run)
{
    if (scenario_begin(run) == NULL || !sim_run_for(run, 3 * SECOND_US)) return;
    for (int round = 0; round < 4; round++) {
        struct sim_node *leader = sim_run_until_served(run, 2 * TAKEOVER_US);
        if (leader == NULL) return;
        for (int i = 0; i < run->group.node_count; i++)
            scenario_starve(run, i, i != leader->index);
        if (!sim_run_for(run, 4 * SECOND_US)) return;
        scenario_keep_down(run, leader->index, SIM_DEATH_KILL);
        for (int i = 0; i < run->group.node_count; i++)
            scenario_starve(run, i, false);
        if (sim_run_until_served(run, 2 * TAKEOVER_US) == NULL || !sim_run_for(run, SECOND_US))
            return;
        scenario_start(run, leader->index);
        if (!sim_run_for(run, 5 * SECOND_US)) return;
    }
    sim_run_settle(run);
}

static struct partition *keyed_copy(struct sim_run *run, int node)
{
    static const char name[] = "keyed0";
    struct sim_node *at = &run->group.nodes[node];
    if (at->broker == NULL || !at->running) return NULL;
    struct topic *topic = catalog_find(at->broker, name, sizeof(name) - 1);
    return topic == NULL ? NULL : topic_partition(topic, 0);
}

/* Waits until the leader has dropped tombstones or markers past `offset`. */
static bool until_dropped(struct sim_run *run, int64_t offset)
{
    int64_t until_us = run->world.now_us + 300 * SECOND_US;
    while (sim_run_for(run, SECOND_US)) {
        struct sim_node *leader = sim_group_leader(&run->group);
        struct partition *copy = leader == NULL ? NULL : keyed_copy(run, leader->index);
        if (copy != NULL && partition_log_dropped_to(partition_log_of(copy)) > offset) return true;
        if (run->world.now_us < until_us) continue;
        sim_verdict_fail(&run->verdict, "I19", "no tombstone is ever dropped");
    }
    return false;
}

static bool is_in_set(struct sim_run *run, void *context)
{
    struct sim_node *leader = sim_group_leader(&run->group);
    struct node_facts facts;
    return leader != NULL && sim_node_facts(leader, &facts) &&
           (facts.isr_mask >> *(int *)context & 1) != 0;
}

/* F56: a replica is away for longer than tombstones are kept, comes back and leads: what was
 * deleted meanwhile stays deleted. */
static void play_away_past_tombstones(struct sim_run *run)
{
    struct sim_node *leader = scenario_begin(run);
    if (leader == NULL || !sim_run_for(run, 3 * SECOND_US)) return;
    int away = scenario_another(run, leader->index);
    struct partition *copy = keyed_copy(run, away);
    if (copy == NULL) return;
    int64_t end = partition_log_end(copy);
    scenario_keep_down(run, away, SIM_DEATH_KILL);
    if (!until_dropped(run, end)) return;
    scenario_start(run, away);
    if (!scenario_until(run, is_in_set, &away, 60 * SECOND_US, "it is back in the set")) return;
    leader = sim_run_until_served(run, TAKEOVER_US);
    if (leader == NULL) return;
    if (leader->index != away) {
        int third = 3 - away - leader->index;
        scenario_starve(run, third, true);
        scenario_keep_down(run, leader->index, SIM_DEATH_KILL);
        if (scenario_until_other_serves(run, leader, 3 * TAKEOVER_US, "the leader is dead") == NULL)
            return;
        scenario_starve(run, third, false);
        if (!sim_run_for(run, 5 * SECOND_US)) return;
        scenario_start(run, leader->index);
    }
    if (!sim_run_for(run, 20 * SECOND_US)) return;
    sim_run_settle(run);
}

const struct scenario scenario_copies[] = {
    {.name = "two-rounds",
     .play = play_two_rounds,
     .nodes = 3,
     .prepare = scenario_prepare_one_log},
    {.name = "same-leader-again",
     .play = play_same_leader_again,
     .nodes = 3,
     .prepare = scenario_prepare_one_log},
    {.name = "replayed-fetches",
     .play = play_replayed_fetches,
     .nodes = 3,
     .prepare = scenario_prepare_one_log},
    {.name = "unknown-topic",
     .play = play_unknown_topic,
     .nodes = 3,
     .prepare = scenario_prepare_one_log},
    {.name = "cut-after-cleaning", .play = play_cut_after_cleaning, .prepare = prepare_keys},
    {.name = "away-past-tombstones",
     .play = play_away_past_tombstones,
     .nodes = 3,
     .prepare = prepare_deleted_keys},
    {0},
};
