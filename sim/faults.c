#include "sim/faults.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/failpoint.h"
#include "sim/fault_disk.h"

#define CLIENTS_DRAWN     32 /* whom a cut hits; the others share their lot */
#define SECOND_US         1000000
#define RESTART_US_MIN    5000
#define RESTART_US_MAX    6000000
#define FAULT_US_MIN      50000
#define FAULT_US_MAX      9000000
#define CLOCK_JUMP_US_MAX 25000000 /* a pass of retention: 30 s */
#define MIB               (1024 * 1024)

/* A fault in force and how it ends. */
struct sim_ending {
    struct sim_event event;
    struct sim_faults *faults;
    enum sim_fault_kind kind;
    int node, other;
    int flaps; /* FLAP: half-periods left */
    int64_t period_us;
    struct sim_ending *previous, *next;
};

static const char *const fault_names[SIM_FAULT_KIND_COUNT] = {
    [SIM_FAULT_KILL] = "kill",
    [SIM_FAULT_KILL_MANY] = "kill-many",
    [SIM_FAULT_POWER] = "power",
    [SIM_FAULT_POWER_MANY] = "power-many",
    [SIM_FAULT_CRASH_POINT] = "crash-point",
    [SIM_FAULT_FAILPOINT] = "failpoint",
    [SIM_FAULT_PAUSE] = "pause",
    [SIM_FAULT_SUSPEND] = "suspend",
    [SIM_FAULT_TERM] = "term",
    [SIM_FAULT_TRANSFER] = "transfer",
    [SIM_FAULT_ISOLATE] = "isolate",
    [SIM_FAULT_SPLIT] = "split",
    [SIM_FAULT_ONE_WAY] = "one-way",
    [SIM_FAULT_PARTIAL] = "partial",
    [SIM_FAULT_FLAP] = "flap",
    [SIM_FAULT_SLOW_LINK] = "slow-link",
    [SIM_FAULT_LOSS] = "loss",
    [SIM_FAULT_CLAMP] = "clamp",
    [SIM_FAULT_REPLAY] = "replay",
    [SIM_FAULT_RESET] = "reset",
    [SIM_FAULT_CLOG] = "clog",
    [SIM_FAULT_CLIENT_CUT] = "client-cut",
    [SIM_FAULT_SLOW_DISK] = "slow-disk",
    [SIM_FAULT_STALL] = "stall",
    [SIM_FAULT_FULL_DISK] = "full-disk",
    [SIM_FAULT_COLD_READS] = "cold-reads",
    [SIM_FAULT_CLOCK_JUMP] = "clock-jump",
    [SIM_FAULT_CLOCK_RATE] = "clock-rate",
    [SIM_FAULT_WRITE_ERROR] = "write-error",
    [SIM_FAULT_SYNC_ERROR] = "sync-error",
    [SIM_FAULT_READ_ERROR] = "read-error",
    [SIM_FAULT_LYING_DISK] = "lying-disk",
    [SIM_FAULT_FLIP] = "flip",
    [SIM_FAULT_DAMAGE] = "damage",
    [SIM_FAULT_LOSE_FILE] = "lose-file",
    [SIM_FAULT_WIPE] = "wipe",
    [SIM_FAULT_RESTORE] = "restore",
};

const char *sim_fault_name(enum sim_fault_kind kind)
{
    return fault_names[kind];
}

bool sim_fault_find(const char *name, enum sim_fault_kind *kind)
{
    for (int i = 0; i < SIM_FAULT_KIND_COUNT; i++) {
        if (strcmp(fault_names[i], name) != 0) continue;
        *kind = (enum sim_fault_kind)i;
        return true;
    }
    return false;
}

/* Draws. Durations lie evenly on a logarithmic scale: most are short, some are long. */

static int64_t draw_time(struct sim_faults *faults, int64_t low_us, int64_t high_us)
{
    int64_t top_us = low_us;
    while (top_us < high_us && random_below(&faults->random, 4) != 0)
        top_us = 2 * top_us;
    if (top_us > high_us) top_us = high_us;
    return random_between(&faults->random, low_us, top_us);
}

static int draw_node(struct sim_faults *faults)
{
    struct sim_node *leader = sim_group_leader(faults->group);
    /* Faults aim at the leader more often than at the others. */
    if (leader != NULL && random_below(&faults->random, 3) == 0) return leader->index;
    return (int)random_below(&faults->random, (uint64_t)faults->group->node_count);
}

static int draw_victim(struct sim_faults *faults)
{
    for (;;) {
        int node = (int)random_below(&faults->random, (uint64_t)faults->group->node_count);
        if ((faults->victims & 1u << node) != 0) return node;
    }
}

static int draw_other(struct sim_faults *faults, int node)
{
    int other = (int)random_below(&faults->random, (uint64_t)faults->group->node_count - 1);
    return other >= node ? other + 1 : other;
}

static struct sim_world *world_of(const struct sim_faults *faults)
{
    return faults->group->world;
}

static struct sim_disk_faults *disk_of(struct sim_faults *faults, int node)
{
    return sim_disk_faults(sim_machine_disk(faults->group->nodes[node].machine));
}

static struct sim_path *path_of(struct sim_faults *faults, int from, int to)
{
    return sim_network_path(faults->group->network, from + 1, to + 1);
}

/* Endings. */

static void ending_due(struct sim_event *event);

static struct sim_ending *end_later(struct sim_faults *faults, enum sim_fault_kind kind, int node,
                                    int other, int64_t delay_us)
{
    struct sim_ending *ending = sim_alloc(sizeof(*ending));
    sim_event_init(&ending->event, SIM_EVENT_WORLD, NULL, ending_due);
    ending->event.detail = 0xe0000000u + (uint64_t)kind;
    ending->faults = faults;
    ending->kind = kind;
    ending->node = node;
    ending->other = other;
    ending->next = faults->endings;
    if (faults->endings != NULL) faults->endings->previous = ending;
    faults->endings = ending;
    faults->workload->active_faults |= UINT64_C(1) << kind;
    sim_world_schedule(world_of(faults), &ending->event, world_of(faults)->now_us + delay_us);
    return ending;
}

static void ending_free(struct sim_ending *ending)
{
    struct sim_faults *faults = ending->faults;
    sim_world_cancel(world_of(faults), &ending->event);
    if (ending->previous != NULL)
        ending->previous->next = ending->next;
    else
        faults->endings = ending->next;
    if (ending->next != NULL) ending->next->previous = ending->previous;
    uint64_t active = 0;
    for (struct sim_ending *other = faults->endings; other != NULL; other = other->next)
        active |= UINT64_C(1) << other->kind;
    faults->workload->active_faults = active;
    sim_release(ending);
}

static void mend_paths(struct sim_faults *faults)
{
    sim_group_heal_network(faults->group);
}

static bool make_readable(void *context, const char *path, int64_t bytes)
{
    (void)bytes;
    return sim_disk_make_unreadable(context, path, 0, 0);
}

static void mend_disk(struct sim_faults *faults, int node)
{
    struct sim_disk *disk = sim_machine_disk(faults->group->nodes[node].machine);
    *disk_of(faults, node) = (struct sim_disk_faults){0};
    sim_disk_each_file(disk, make_readable, disk);
    sim_machine_set_stall(faults->group->nodes[node].machine, &(struct sim_stall){0});
}

static void end_fault(struct sim_ending *ending)
{
    struct sim_faults *faults = ending->faults;
    struct sim_node *node = ending->node < 0 ? NULL : &faults->group->nodes[ending->node];
    switch (ending->kind) {
    case SIM_FAULT_PAUSE:
    case SIM_FAULT_SUSPEND: sim_machine_resume(node->machine); break;
    case SIM_FAULT_ISOLATE:
    case SIM_FAULT_SPLIT:
    case SIM_FAULT_ONE_WAY:
    case SIM_FAULT_PARTIAL:
    case SIM_FAULT_FLAP:
    case SIM_FAULT_SLOW_LINK:
    case SIM_FAULT_LOSS:
    case SIM_FAULT_CLAMP:
    case SIM_FAULT_CLOG:
    case SIM_FAULT_REPLAY: mend_paths(faults); break;
    case SIM_FAULT_CLIENT_CUT: {
        struct sim_clients *clients = &faults->workload->clients;
        memset(clients->cut, 0, sizeof(clients->cut));
        break;
    }
    case SIM_FAULT_SLOW_DISK:
    case SIM_FAULT_STALL:
    case SIM_FAULT_FULL_DISK:
    case SIM_FAULT_COLD_READS:
    case SIM_FAULT_WRITE_ERROR:
    case SIM_FAULT_SYNC_ERROR:
    case SIM_FAULT_READ_ERROR:
    case SIM_FAULT_LYING_DISK: mend_disk(faults, ending->node); break;
    case SIM_FAULT_CLOCK_JUMP: sim_machine_set_wall_offset(node->machine, 0); break;
    default: break;
    }
}

static void ending_due(struct sim_event *event)
{
    struct sim_ending *ending = CONTAINER_OF(event, struct sim_ending, event);
    struct sim_faults *faults = ending->faults;
    if (ending->kind == SIM_FAULT_FLAP && ending->flaps > 0) {
        sim_group_cut(faults->group, ending->node, ending->other, ending->flaps % 2 == 1);
        ending->flaps--;
        sim_world_schedule(world_of(faults), event,
                           world_of(faults)->now_us + ending->period_us / 2);
        return;
    }
    sim_world_trace(world_of(faults), NULL, "ends: %s", fault_names[ending->kind]);
    end_fault(ending);
    ending_free(ending);
}

/* Nodes that are down come back; after the faults only those that are to live. */

static bool comes_back(const struct sim_faults *faults, int node)
{
    return !faults->stopped || (faults->revived & 1u << node) != 0;
}

void sim_faults_node_died(struct sim_faults *faults, struct sim_node *node)
{
    int64_t back_us = world_of(faults)->now_us + draw_time(faults, RESTART_US_MIN, RESTART_US_MAX);
    faults->restart_us[node->index] = back_us;
    if (comes_back(faults, node->index))
        sim_world_schedule(world_of(faults), &faults->restart_look,
                           world_of(faults)->now_us + RESTART_US_MIN);
}

static void look_for_restarts(struct sim_event *event)
{
    struct sim_faults *faults = CONTAINER_OF(event, struct sim_faults, restart_look);
    int64_t now_us = world_of(faults)->now_us, next_us = INT64_MAX;
    for (int i = 0; i < faults->group->node_count; i++) {
        struct sim_node *node = &faults->group->nodes[i];
        if (sim_node_is_up(node) || !comes_back(faults, i)) continue;
        if (faults->restart_us[i] <= now_us)
            sim_node_start(node);
        else if (faults->restart_us[i] < next_us)
            next_us = faults->restart_us[i];
    }
    if (next_us < INT64_MAX && !sim_event_is_queued(event))
        sim_world_schedule(world_of(faults), event, next_us);
}

/* Going back in time. */

/* Nothing is wrong with anybody: all run, are in sync, and hold the same of Raft's log. A lie does
 * no harm until it comes out. */
static bool group_is_whole(struct sim_faults *faults)
{
    struct sim_node *leader = sim_group_leader(faults->group);
    struct node_facts facts, other;
    if (faults->alone) return true;
    for (const struct sim_ending *ending = faults->endings; ending != NULL; ending = ending->next) {
        if (ending->kind != SIM_FAULT_LYING_DISK) return false;
    }
    if (leader == NULL || !sim_node_facts(leader, &facts)) return false;
    if (facts.isr_mask != (1u << faults->group->node_count) - 1) return false;
    for (int i = 0; i < faults->group->node_count; i++) {
        if (!sim_node_facts(&faults->group->nodes[i], &other)) return false;
        if (other.epoch != facts.epoch || other.raft_commit_index != facts.raft_commit_index)
            return false;
    }
    return true;
}

bool sim_faults_may_forget(struct sim_faults *faults)
{
    if (!faults->whole) return false;
    if (faults->alone) return true;
    faults->unsettled = true;
    faults->failpoint = NULL;
    for (int i = 0; i < faults->group->node_count; i++)
        sim_disk_arm_crash(sim_machine_disk(faults->group->nodes[i].machine), 0, SIM_DEATH_KILL);
    return true;
}

static bool disk_may_forget(void *context)
{
    const struct sim_forgetting *forgetting = context;
    struct sim_faults *faults = forgetting->faults;
    if (!sim_faults_may_forget(faults)) return false;
    sim_world_trace(world_of(faults), faults->group->nodes[forgetting->node].machine,
                    "disk: forgets what it lied about");
    return true;
}

/* The strikes. */

static uint32_t draw_set(struct sim_faults *faults)
{
    uint32_t all = (1u << faults->group->node_count) - 1;
    if (random_below(&faults->random, 3) == 0) return all;
    return (uint32_t)random_below(&faults->random, all) + 1;
}

static void strike_death(struct sim_faults *faults, enum sim_fault_kind kind, int node)
{
    enum sim_death death =
        kind == SIM_FAULT_POWER || kind == SIM_FAULT_POWER_MANY ? SIM_DEATH_POWER : SIM_DEATH_KILL;
    uint32_t set =
        kind == SIM_FAULT_KILL || kind == SIM_FAULT_POWER ? 1u << node : draw_set(faults);
    faults->whole = faults->whole && __builtin_popcount(set) == 1;
    for (int i = 0; i < faults->group->node_count; i++) {
        if ((set & 1u << i) != 0) sim_node_kill(&faults->group->nodes[i], death);
    }
}

static void strike_crash_point(struct sim_faults *faults, int node)
{
    sim_disk_arm_crash(sim_machine_disk(faults->group->nodes[node].machine),
                       (uint32_t)draw_time(faults, 1, 200),
                       random_below(&faults->random, 2) == 0 ? SIM_DEATH_KILL : SIM_DEATH_POWER);
    end_later(faults, SIM_FAULT_CRASH_POINT, node, -1, SECOND_US);
}

static void strike_failpoint(struct sim_faults *faults, int node)
{
    size_t count;
    const char *const *names = failpoint_names(&count);
    faults->failpoint = names[random_below(&faults->random, count)];
    faults->failpoint_node = node;
    faults->failpoint_passings = (int)draw_time(faults, 1, 20);
    end_later(faults, SIM_FAULT_FAILPOINT, node, -1, SECOND_US);
}

static void strike_pause(struct sim_faults *faults, enum sim_fault_kind kind, int node)
{
    struct sim_machine *machine = faults->group->nodes[node].machine;
    if (!sim_machine_process_is_up(machine) || sim_machine_is_paused(machine)) return;
    sim_machine_pause(machine, kind == SIM_FAULT_SUSPEND);
    end_later(faults, kind, node, -1, draw_time(faults, FAULT_US_MIN, FAULT_US_MAX));
}

static void strike_cut(struct sim_faults *faults, enum sim_fault_kind kind, int node)
{
    struct sim_group *group = faults->group;
    int other = draw_other(faults, node);
    int64_t duration_us = draw_time(faults, FAULT_US_MIN, FAULT_US_MAX);
    switch (kind) {
    case SIM_FAULT_ISOLATE:
        for (int i = 0; i < group->node_count; i++) {
            if (i != node) sim_group_cut(group, node, i, true);
        }
        break;
    case SIM_FAULT_SPLIT: {
        uint32_t side = (uint32_t)random_below(&faults->random, 1u << group->node_count);
        for (int a = 0; a < group->node_count; a++) {
            for (int b = 0; b < a; b++) {
                if (((side >> a ^ side >> b) & 1) != 0) sim_group_cut(group, a, b, true);
            }
        }
        break;
    }
    case SIM_FAULT_ONE_WAY: {
        /* From one to all, from all to one, or between two. */
        uint64_t shape = random_below(&faults->random, 3);
        for (int i = 0; i < group->node_count; i++) {
            if (i == node || (shape == 2 && i != other)) continue;
            if (shape == 0)
                path_of(faults, i, node)->cut = true;
            else
                path_of(faults, node, i)->cut = true;
        }
        break;
    }
    case SIM_FAULT_PARTIAL: sim_group_cut(group, node, other, true); break;
    case SIM_FAULT_CLOG:
        for (int i = 0; i < group->node_count; i++) {
            if (i != node) path_of(faults, i, node)->clogged = true;
        }
        break;
    default: break;
    }
    end_later(faults, kind, node, other, duration_us);
}

static void strike_flap(struct sim_faults *faults, int node)
{
    static const int64_t periods_us[] = {200000, 900000, 1100000, 5000000};
    struct sim_ending *ending =
        end_later(faults, SIM_FAULT_FLAP, node, draw_other(faults, node), 1000);
    ending->period_us = periods_us[random_below(&faults->random, ARRAY_COUNT(periods_us))];
    ending->flaps = 2 * (int)random_between(&faults->random, 1, 8);
}

/* Delay, loss or a clamp, on one link or on all. */
static void strike_quality(struct sim_faults *faults, enum sim_fault_kind kind, int node)
{
    struct sim_group *group = faults->group;
    bool all = random_below(&faults->random, 2) == 0;
    int64_t delay_us = draw_time(faults, 2000, 500000);
    uint32_t loss_ppm = (uint32_t)random_between(&faults->random, 1000, 300000);
    bool silence = random_below(&faults->random, 3) == 0;
    for (int a = 0; a < group->node_count; a++) {
        for (int b = 0; b < group->node_count; b++) {
            if (a == b || (!all && a != node && b != node)) continue;
            struct sim_path *path = path_of(faults, a, b);
            if (kind == SIM_FAULT_SLOW_LINK) {
                path->delay_us_max = delay_us;
            } else if (kind == SIM_FAULT_LOSS) {
                path->loss_ppm = loss_ppm;
                path->silence_ppm = silence ? 5000 : 0;
            } else {
                path->bytes_per_second = 125000;
            }
        }
    }
    end_later(faults, kind, node, -1, draw_time(faults, FAULT_US_MIN, FAULT_US_MAX));
}

static void strike_replay(struct sim_faults *faults)
{
    *sim_network_faults(faults->group->network) = (struct sim_network_faults){
        .duplicate_ppm = random_below(&faults->random, 2) == 0 ? 0 : 500000,
        .replay_ppm = 20000,
        .replay_us_max = draw_time(faults, SECOND_US, 60 * SECOND_US),
    };
    end_later(faults, SIM_FAULT_REPLAY, -1, -1, draw_time(faults, SECOND_US, FAULT_US_MAX));
}

static void strike_client_cut(struct sim_faults *faults, int node)
{
    struct sim_clients *clients = &faults->workload->clients;
    for (int client = 0; client < CLIENTS_DRAWN; client++)
        clients->cut[client][node] = random_below(&faults->random, 2) == 0;
    for (int client = CLIENTS_DRAWN; client < SIM_CLIENTS_MAX; client++)
        clients->cut[client][node] = clients->cut[client % CLIENTS_DRAWN][node];
    end_later(faults, SIM_FAULT_CLIENT_CUT, node, -1,
              draw_time(faults, FAULT_US_MIN, FAULT_US_MAX));
}

static void strike_disk(struct sim_faults *faults, enum sim_fault_kind kind, int node)
{
    struct sim_machine *machine = faults->group->nodes[node].machine;
    struct sim_disk_faults *disk = disk_of(faults, node);
    int64_t duration_us = draw_time(faults, FAULT_US_MIN, FAULT_US_MAX);
    switch (kind) {
    case SIM_FAULT_SLOW_DISK:
        disk->sync_us_min = 20000;
        disk->sync_us_max = 200000;
        disk->slow_sync_ppm = 10000;
        disk->slow_sync_us = 5 * SECOND_US;
        break;
    case SIM_FAULT_STALL: {
        /* The lanes before this one work on files. */
        uint64_t all = (1u << EXECUTOR_LANE_COMPUTE) - 1;
        struct sim_stall stall = {.until_us = world_of(faults)->now_us + duration_us,
                                  .lanes = 1 + (uint32_t)random_below(&faults->random, all),
                                  .before_run = random_below(&faults->random, 2) == 0};
        sim_machine_set_stall(machine, &stall);
        break;
    }
    case SIM_FAULT_FULL_DISK:
        disk->capacity_bytes = sim_disk_used_bytes(sim_machine_disk(machine)) +
                               random_between(&faults->random, 0, MIB / 4);
        break;
    case SIM_FAULT_COLD_READS: disk->cold_ppm = 500000; break;
    case SIM_FAULT_WRITE_ERROR:
        disk->write_error_ppm = (uint32_t)draw_time(faults, 1000, 1000000);
        disk->directory_error_ppm = disk->write_error_ppm;
        break;
    case SIM_FAULT_SYNC_ERROR:
        disk->sync_error_ppm = (uint32_t)draw_time(faults, 1000, 1000000);
        break;
    case SIM_FAULT_READ_ERROR:
        disk->read_error_ppm = (uint32_t)draw_time(faults, 1000, 500000);
        break;
    case SIM_FAULT_LYING_DISK:
        disk->lies = true;
        /* What was lost shows only after the power is gone. */
        duration_us = draw_time(faults, SECOND_US, 20 * SECOND_US);
        break;
    default: break;
    }
    end_later(faults, kind, node, -1, duration_us);
}

/* Far ahead for two passes of retention in a row, a clock is believed: what is old goes. No jump
 * lasts so long, and no two are alike. */
static void strike_clock(struct sim_faults *faults, enum sim_fault_kind kind, int node)
{
    static const int64_t jumps_ms[] = {1000, 60000, 3600000, 86400000LL * 365, 86400000LL * 3650};
    struct sim_machine *machine = faults->group->nodes[node].machine;
    if (kind == SIM_FAULT_CLOCK_JUMP) {
        int64_t jump_ms = jumps_ms[random_below(&faults->random, ARRAY_COUNT(jumps_ms))];
        jump_ms += (int64_t)random_below(&faults->random, (uint64_t)jump_ms / 8);
        sim_machine_set_wall_offset(machine,
                                    random_below(&faults->random, 2) == 0 ? jump_ms : -jump_ms);
        end_later(faults, kind, node, -1, draw_time(faults, FAULT_US_MIN, CLOCK_JUMP_US_MAX));
        return;
    }
    sim_machine_set_clock_rate(machine, random_between(&faults->random, 900000, 1100000),
                               random_below(&faults->random, 4) == 0 ? 16000 : 1);
}

void sim_faults_strike(struct sim_faults *faults, enum sim_fault_kind kind, int node)
{
    if (node < 0) node = kind >= SIM_FAULT_WRITE_ERROR ? draw_victim(faults) : draw_node(faults);
    sim_world_trace(world_of(faults), NULL, "FAULT %s at node %d", fault_names[kind], node + 1);
    faults->counts[kind]++;
    faults->whole = group_is_whole(faults);
    if (kind >= SIM_FAULT_WRITE_ERROR) sim_checker_excuse(faults->checker, node);
    switch (kind) {
    case SIM_FAULT_KILL:
    case SIM_FAULT_KILL_MANY:
    case SIM_FAULT_POWER:
    case SIM_FAULT_POWER_MANY: strike_death(faults, kind, node); break;
    case SIM_FAULT_CRASH_POINT: strike_crash_point(faults, node); break;
    case SIM_FAULT_FAILPOINT: strike_failpoint(faults, node); break;
    case SIM_FAULT_PAUSE:
    case SIM_FAULT_SUSPEND: strike_pause(faults, kind, node); break;
    case SIM_FAULT_TERM: sim_node_stop(&faults->group->nodes[node]); break;
    case SIM_FAULT_TRANSFER: {
        struct sim_node *leader = sim_group_leader(faults->group);
        int other = leader == NULL ? -1 : draw_other(faults, leader->index);
        if (leader == NULL) break;
        sim_node_transfer(leader, random_below(&faults->random, 3) == 0 ? -1 : other + 1);
        break;
    }
    case SIM_FAULT_ISOLATE:
    case SIM_FAULT_SPLIT:
    case SIM_FAULT_ONE_WAY:
    case SIM_FAULT_PARTIAL:
    case SIM_FAULT_CLOG: strike_cut(faults, kind, node); break;
    case SIM_FAULT_FLAP: strike_flap(faults, node); break;
    case SIM_FAULT_SLOW_LINK:
    case SIM_FAULT_LOSS:
    case SIM_FAULT_CLAMP: strike_quality(faults, kind, node); break;
    case SIM_FAULT_REPLAY: strike_replay(faults); break;
    case SIM_FAULT_RESET:
        sim_network_reset(faults->group->network, node + 1, draw_other(faults, node) + 1);
        break;
    case SIM_FAULT_CLIENT_CUT: strike_client_cut(faults, node); break;
    case SIM_FAULT_SLOW_DISK:
    case SIM_FAULT_STALL:
    case SIM_FAULT_FULL_DISK:
    case SIM_FAULT_COLD_READS:
    case SIM_FAULT_WRITE_ERROR:
    case SIM_FAULT_SYNC_ERROR:
    case SIM_FAULT_READ_ERROR:
    case SIM_FAULT_LYING_DISK: strike_disk(faults, kind, node); break;
    case SIM_FAULT_CLOCK_JUMP:
    case SIM_FAULT_CLOCK_RATE: strike_clock(faults, kind, node); break;
    case SIM_FAULT_FLIP: sim_fault_flip(faults, node); break;
    case SIM_FAULT_DAMAGE: sim_fault_damage(faults, node); break;
    case SIM_FAULT_LOSE_FILE: sim_fault_lose_file(faults, node); break;
    case SIM_FAULT_WIPE: sim_fault_wipe(faults, node); break;
    case SIM_FAULT_RESTORE: sim_fault_restore(faults, node); break;
    case SIM_FAULT_KIND_COUNT: break;
    }
    faults->whole = false;
}

static void next_fault(struct sim_event *event)
{
    struct sim_faults *faults = CONTAINER_OF(event, struct sim_faults, next);
    if (faults->stopped) return;
    int64_t pause_us = random_between(&faults->random, 1, 2 * faults->pause_us_mean);
    /* Now and then a calm spell, in which everything comes to rest. */
    if (random_below(&faults->random, 12) == 0) pause_us += 4 * SECOND_US;
    sim_world_schedule(world_of(faults), event, world_of(faults)->now_us + pause_us);
    if (faults->unsettled) faults->unsettled = !group_is_whole(faults);
    if (faults->enabled == 0 || faults->unsettled) return;
    for (;;) {
        enum sim_fault_kind kind =
            (enum sim_fault_kind)random_below(&faults->random, SIM_FAULT_KIND_COUNT);
        if ((faults->enabled & UINT64_C(1) << kind) == 0) continue;
        sim_faults_strike(faults, kind, -1);
        return;
    }
}

/* The failpoint that is armed kills; nothing else happens at any. */
static bool pass_failpoint(void *context, const char *name)
{
    struct sim_faults *faults = context;
    struct sim_machine *running = world_of(faults)->running;
    if (faults->failpoint == NULL || running == NULL ||
        running != faults->group->nodes[faults->failpoint_node].machine ||
        strcmp(name, faults->failpoint) != 0 || --faults->failpoint_passings > 0)
        return false;
    sim_world_trace(world_of(faults), running, "failpoint %s", name);
    faults->failpoint = NULL;
    sim_machine_die(running, SIM_DEATH_KILL);
}

static void draw_kinds(struct sim_faults *faults)
{
    static const uint32_t chances[] = {1, 2, 4, 8}; /* of 16 */
    uint64_t chance = chances[random_below(&faults->random, ARRAY_COUNT(chances))];
    for (int kind = 0; kind < SIM_FAULT_KIND_COUNT; kind++) {
        if (random_below(&faults->random, 16) < chance) faults->enabled |= UINT64_C(1) << kind;
    }
    /* Half of the runs have no victim at all. */
    if (random_below(&faults->random, 2) == 0)
        faults->enabled &= (UINT64_C(1) << SIM_FAULT_WRITE_ERROR) - 1;
}

static void draw_victims(struct sim_faults *faults)
{
    int minority = (faults->group->node_count - 1) / 2;
    while (__builtin_popcount(faults->victims) < minority)
        faults->victims |= 1u << random_below(&faults->random, (uint64_t)faults->group->node_count);
}

void sim_faults_init(struct sim_faults *faults, struct sim_workload *workload,
                     struct sim_checker *checker, uint64_t seed, uint64_t only, uint64_t without)
{
    memset(faults, 0, sizeof(*faults));
    faults->group = workload->group;
    faults->workload = workload;
    faults->checker = checker;
    random_seed(&faults->random, seed);
    sim_event_init(&faults->next, SIM_EVENT_WORLD, NULL, next_fault);
    faults->next.detail = 0xf0000000u;
    sim_event_init(&faults->restart_look, SIM_EVENT_WORLD, NULL, look_for_restarts);
    faults->restart_look.detail = 0xf1000000u;
    draw_kinds(faults);
    draw_victims(faults);
    for (int i = 0; i < faults->group->node_count; i++) {
        faults->forgetting[i] = (struct sim_forgetting){faults, i};
        sim_disk_on_forgetting(sim_machine_disk(faults->group->nodes[i].machine), disk_may_forget,
                               &faults->forgetting[i]);
    }
    if (only != 0) faults->enabled = only;
    faults->enabled &= ~without;
    faults->pause_us_mean = draw_time(faults, 200000, 4 * SECOND_US);
    failpoint_set_handler(pass_failpoint, faults);
}

void sim_faults_deinit(struct sim_faults *faults)
{
    while (faults->endings != NULL)
        ending_free(faults->endings);
    sim_world_cancel(world_of(faults), &faults->next);
    sim_world_cancel(world_of(faults), &faults->restart_look);
    sim_disk_image_free(faults->old_image);
    failpoint_set_handler(NULL, NULL);
}

void sim_faults_start(struct sim_faults *faults)
{
    sim_world_schedule(world_of(faults), &faults->next,
                       world_of(faults)->now_us + faults->pause_us_mean);
}

void sim_faults_heal(struct sim_faults *faults, uint32_t revive)
{
    struct sim_group *group = faults->group;
    faults->stopped = true;
    faults->revived = revive;
    faults->failpoint = NULL;
    sim_world_cancel(world_of(faults), &faults->next);
    while (faults->endings != NULL) {
        end_fault(faults->endings);
        ending_free(faults->endings);
    }
    mend_paths(faults);
    memset(faults->workload->clients.cut, 0, sizeof(faults->workload->clients.cut));
    for (int i = 0; i < group->node_count; i++) {
        struct sim_node *node = &group->nodes[i];
        mend_disk(faults, i);
        sim_disk_arm_crash(sim_machine_disk(node->machine), 0, SIM_DEATH_KILL);
        sim_machine_set_clock_rate(node->machine, 1000000, 1);
        sim_machine_set_wall_offset(node->machine, 0);
        sim_machine_resume(node->machine);
        if ((revive & 1u << i) == 0)
            sim_node_kill(node, SIM_DEATH_KILL);
        else if (!sim_node_is_up(node))
            sim_node_start(node);
    }
}
