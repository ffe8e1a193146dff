/* scenario_disks.c: scripts in which one replica's disk loses, refuses or changes something. */
#include <string.h>

#include "record/batch.h"
#include "sim/scenario_steps.h"

#define PATH_BYTES_MAX 200

static void prepare_small_memory(struct sim_group *group, struct sim_workload_options *options)
{
    scenario_prepare_one_log(group, options);
    group->config.follower_gone_us = SECOND_US / 2;
    options->value_bytes_max = 1000;
    group->settings.cache_bytes_max = 20000;
}

/* A batch in a file of the data partition. */
struct batch_place {
    struct sim_run *run;
    int node;
    int64_t from;   /* the first that begins at or above it, */
    int64_t unlike; /* and whose base offset has none of these bits */
    bool found;
    char path[PATH_BYTES_MAX];
    int64_t position;
};

static bool look_into_file(void *context, const char *path, int64_t bytes)
{
    struct batch_place *place = context;
    struct sim_machine *machine = place->run->group.nodes[place->node].machine;
    struct file *file;
    size_t got = 0;
    if (strstr(path, "/topics/data0/0/") == NULL || strstr(path, ".log") == NULL ||
        strlen(path) >= PATH_BYTES_MAX ||
        file_open(sim_machine_file_system(machine), path, FILE_READ, &file, NULL) != STATUS_OK)
        return true;
    uint8_t *data = sim_alloc((size_t)bytes);
    (void)!file_read(file, data, (size_t)bytes, 0, &got, NULL);
    file_close(file);
    struct batch_header header;
    for (size_t at = 0; at < got && !place->found; at += header.batch_bytes) {
        if (batch_parse(data + at, got - at, true, &header, NULL) != STATUS_OK) break;
        if (header.base_offset < place->from || (header.base_offset & place->unlike) != 0) continue;
        place->found = true;
        place->position = (int64_t)at;
        memcpy(place->path, path, strlen(path) + 1);
    }
    sim_release(data);
    return !place->found;
}

static bool find_batch(struct batch_place *place)
{
    struct sim_node *node = &place->run->group.nodes[place->node];
    sim_disk_each_file(sim_machine_disk(node->machine), look_into_file, place);
    return place->found;
}

/* F31: a follower comes back that must be fed from the leader's disk, where a batch says that it
 * lies elsewhere: its base offset is not under its CRC. */
static void play_flipped_offset(struct sim_run *run)
{
    struct sim_node *leader = scenario_begin(run);
    if (leader == NULL) return;
    int follower = scenario_another(run, leader->index);
    int64_t from = scenario_log_end(run, follower);
    scenario_keep_down(run, follower, SIM_DEATH_KILL);
    if (!scenario_until_grown(run, leader->index, from + 300)) return;
    if (sim_group_leader(&run->group) != leader) return;
    struct batch_place place = {.run = run, .node = leader->index, .from = from + 50, .unlike = 4};
    if (!find_batch(&place)) return;
    sim_checker_excuse(run->checker, leader->index);
    sim_disk_flip_bit(sim_machine_disk(leader->machine), place.path, place.position + 7, 2);
    scenario_start(run, follower);
    if (!sim_run_for(run, 3 * SECOND_US)) return;
    sim_run_settle(run);
}

static bool has_recovered(struct sim_run *run, void *context)
{
    const int *node = context;
    return scenario_copy(run, *node) != NULL;
}

/* T50: a batch that was synced has rotted, others follow it. That is no torn tail: what follows is
 * not to be cut. */
static void play_rotten_middle(struct sim_run *run)
{
    struct sim_node *leader = scenario_begin(run);
    if (leader == NULL) return;
    int victim = scenario_another(run, leader->index);
    if (!scenario_grow(run, victim, 100)) return;
    int64_t durable = partition_durable(scenario_copy(run, victim));
    scenario_keep_down(run, victim, SIM_DEATH_KILL);
    struct batch_place place = {.run = run, .node = victim, .from = durable - 60};
    if (!find_batch(&place)) return;
    sim_checker_excuse(run->checker, victim);
    sim_disk_flip_bit(sim_machine_disk(run->group.nodes[victim].machine), place.path,
                      place.position + BATCH_HEADER_BYTES + 2, 3);
    scenario_start(run, victim);
    if (!scenario_until(run, has_recovered, &victim, TAKEOVER_US, "recovery")) return;
    if (scenario_log_end(run, victim) < durable) {
        sim_verdict_fail(&run->verdict, "I12",
                         "node %d cut its log to %lld, of which %lld were synced", victim + 1,
                         (long long)scenario_log_end(run, victim), (long long)durable);
        return;
    }
    if (!sim_run_for(run, 3 * SECOND_US)) return;
    sim_run_settle(run);
}

/* T41, T49: some syncs fail, and the kernel gives up what they were to write; later ones succeed.
 * Then the power goes. */
static void play_failed_syncs(struct sim_run *run)
{
    if (scenario_begin(run) == NULL) return;
    for (int round = 0; round < 5; round++) {
        struct sim_node *leader = sim_run_until_served(run, 2 * TAKEOVER_US);
        if (leader == NULL) return;
        int victim = scenario_another(run, leader->index);
        struct sim_disk *disk = sim_machine_disk(run->group.nodes[victim].machine);
        sim_disk_faults(disk)->sync_error_ppm = 300000;
        if (!sim_run_for(run, random_between(&run->random, 5000, 100000))) return;
        sim_disk_faults(disk)->sync_error_ppm = 0;
        if (!sim_run_for(run, random_between(&run->random, 0, 200000))) return;
        scenario_keep_down(run, victim, SIM_DEATH_POWER);
        if (!sim_run_for(run, 100000)) return;
        scenario_start(run, victim);
        if (!sim_run_for(run, 4 * SECOND_US)) return;
    }
    sim_run_settle(run);
}

const struct scenario scenario_disks[] = {
    {.name = "flipped-offset",
     .play = play_flipped_offset,
     .nodes = 3,
     .prepare = prepare_small_memory},
    {.name = "rotten-middle",
     .play = play_rotten_middle,
     .nodes = 3,
     .prepare = prepare_small_memory},
    {.name = "failed-syncs",
     .play = play_failed_syncs,
     .nodes = 3,
     .prepare = prepare_small_memory},
    {0},
};
