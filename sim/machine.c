#include "sim/machine.h"

#include <setjmp.h>
#include <string.h>

#include "base/assert.h"
#include "sim/sim_executor.h"
#include "sim/sim_loop.h"
#include "sim/sim_memory.h"

struct sim_clock {
    int64_t base_us;   /* what it showed at set_at_us */
    int64_t set_at_us; /* world time */
    int64_t rate_ppm;
    int64_t tick_us;
    int64_t wall_offset_ms;
    bool stopped;
};

struct sim_machine {
    struct sim_loop loop;
    struct sim_executor executor;
    struct sim_world *world;
    int id;
    bool host_up, process_up, paused;
    uint32_t generation;
    struct sim_clock clock;
    struct sim_stall stall;
    struct sim_disk *disk;
    struct sim_endpoint *endpoint;
    struct sim_memory memory;
    struct sim_resource *resources;
    struct sim_event *held_first, *held_last;
    sim_death_fn died;
    void *died_context;
    sim_gap_fn gap;
    void *gap_context;
    int64_t paused_clock_us; /* what the clock showed when it was stopped */
    sigjmp_buf leave;        /* valid while world->running == this */
};

static void machine_boot(struct sim_machine *machine)
{
    machine->host_up = true;
    machine->clock.base_us = sim_world_between(machine->world, 1000000, 900000000);
    machine->clock.set_at_us = machine->world->now_us;
}

struct sim_machine *sim_machine_new(struct sim_world *world, struct sim_network *network,
                                    const struct sim_machine_options *options)
{
    struct sim_machine *machine = sim_alloc(sizeof(*machine));
    machine->world = world;
    machine->id = options->id;
    machine->clock.rate_ppm = 1000000;
    machine->clock.tick_us = 1;
    sim_memory_init(&machine->memory);
    sim_loop_init(&machine->loop, machine);
    sim_executor_init(&machine->executor, machine, options->lanes);
    machine->disk = sim_disk_new(world, machine);
    machine->endpoint = sim_network_join(network, machine, options->address);
    machine_boot(machine);
    return machine;
}

void sim_machine_free(struct sim_machine *machine)
{
    if (machine == NULL) return;
    machine->died = NULL;
    sim_machine_kill(machine, SIM_DEATH_KILL);
    sim_network_leave(machine->endpoint);
    sim_disk_free(machine->disk);
    sim_loop_deinit(&machine->loop);
    sim_release(machine);
}

void sim_machine_on_death(struct sim_machine *machine, sim_death_fn died, void *context)
{
    machine->died = died;
    machine->died_context = context;
}

int sim_machine_id(const struct sim_machine *machine)
{
    return machine->id;
}

struct sim_world *sim_machine_world(const struct sim_machine *machine)
{
    return machine->world;
}

struct sim_disk *sim_machine_disk(const struct sim_machine *machine)
{
    return machine->disk;
}

struct sim_endpoint *sim_machine_endpoint(const struct sim_machine *machine)
{
    return machine->endpoint;
}

bool sim_machine_host_is_up(const struct sim_machine *machine)
{
    return machine->host_up;
}

bool sim_machine_process_is_up(const struct sim_machine *machine)
{
    return machine->process_up;
}

bool sim_machine_is_paused(const struct sim_machine *machine)
{
    return machine->paused;
}

size_t sim_machine_memory_bytes(const struct sim_machine *machine)
{
    return machine->memory.bytes;
}

uint32_t sim_machine_generation(const struct sim_machine *machine)
{
    return machine->generation;
}

struct loop *sim_machine_loop(struct sim_machine *machine)
{
    return &machine->loop.base;
}

struct executor *sim_machine_executor(struct sim_machine *machine)
{
    return &machine->executor.base;
}

struct rpc_transport *sim_machine_transport(struct sim_machine *machine)
{
    return sim_endpoint_transport(machine->endpoint);
}

struct file_system *sim_machine_file_system(struct sim_machine *machine)
{
    return sim_disk_file_system(machine->disk);
}

/* Everything of the process goes, in an order that lets peers and the disk see the death first. */
static void machine_bury(struct sim_machine *machine, enum sim_death death)
{
    sim_world_trace(machine->world, machine, "dies of %s",
                    death == SIM_DEATH_KILL    ? "kill"
                    : death == SIM_DEATH_POWER ? "power cut"
                                               : "exit");
    machine->process_up = false;
    machine->paused = false;
    if (machine->clock.stopped) {
        machine->clock.stopped = false;
        machine->clock.set_at_us = machine->world->now_us;
    }
    if (death == SIM_DEATH_POWER) machine->host_up = false;
    sim_endpoint_process_died(machine->endpoint, death != SIM_DEATH_POWER);
    while (machine->resources != NULL)
        machine->resources->release(machine->resources);
    ASSERT(machine->held_first == NULL);
    sim_loop_forget(&machine->loop);
    sim_executor_forget(&machine->executor);
    sim_disk_process_died(machine->disk);
    if (death == SIM_DEATH_POWER) sim_disk_power_cut(machine->disk, NULL);
    sim_memory_sweep(&machine->memory);
    if (machine->died != NULL) machine->died(machine->died_context, machine, death);
}

/* Enters the process, calls, and leaves; buries it if it died meanwhile. */
static bool machine_execute(struct sim_machine *machine, loop_fn run, void *context)
{
    ASSERT(machine->process_up && !machine->paused && machine->world->running == NULL);
    machine->world->running = machine;
    sim_memory_use(&machine->memory);
    int left = sigsetjmp(machine->leave, 0);
    if (left == 0) {
        run(context);
        sim_loop_run_deferred(&machine->loop);
    }
    sim_memory_use(NULL);
    machine->world->running = NULL;
    if (left == 0) return true;
    machine_bury(machine, (enum sim_death)(left - 1));
    return false;
}

void sim_machine_die(struct sim_machine *machine, enum sim_death death)
{
    ASSERT(machine->world->running == machine);
    siglongjmp(machine->leave, 1 + (int)death);
}

bool sim_machine_run(struct sim_machine *machine, loop_fn run, void *context)
{
    if (!machine->process_up || machine->paused) return false;
    return machine_execute(machine, run, context);
}

static void fire_event(void *context)
{
    struct sim_event *event = context;
    event->fire(event);
}

void sim_machine_deliver(struct sim_machine *machine, struct sim_event *event)
{
    ASSERT(machine->process_up);
    machine_execute(machine, fire_event, event);
}

void sim_machine_boot(struct sim_machine *machine)
{
    if (!machine->host_up) machine_boot(machine);
}

void sim_machine_start(struct sim_machine *machine, loop_fn main_fn, void *context)
{
    ASSERT(!machine->process_up);
    sim_machine_boot(machine);
    machine->process_up = true;
    machine->generation++;
    sim_world_trace(machine->world, machine, "starts");
    machine_execute(machine, main_fn, context);
}

void sim_machine_kill(struct sim_machine *machine, enum sim_death death)
{
    ASSERT(machine->world->running == NULL);
    if (machine->process_up) {
        machine_bury(machine, death);
    } else if (death == SIM_DEATH_POWER && machine->host_up) {
        machine->host_up = false;
        sim_disk_power_cut(machine->disk, NULL);
    }
}

void sim_machine_pause(struct sim_machine *machine, bool suspended)
{
    if (!machine->process_up || machine->paused) return;
    sim_world_trace(machine->world, machine, "%s", suspended ? "suspended" : "paused");
    if (suspended) {
        machine->clock.base_us = sim_machine_clock_us(machine);
        machine->clock.stopped = true;
    }
    machine->paused_clock_us = sim_machine_clock_us(machine);
    machine->paused = true;
}

void sim_machine_on_gap(struct sim_machine *machine, sim_gap_fn gap, void *context)
{
    machine->gap = gap;
    machine->gap_context = context;
}

static void machine_notice_gap(void *context)
{
    struct sim_machine *machine = context;
    machine->gap(machine->gap_context, sim_machine_clock_us(machine) - machine->paused_clock_us);
}

void sim_machine_hold(struct sim_machine *machine, struct sim_event *event)
{
    event->place = SIM_EVENT_HELD;
    event->held_next = NULL;
    event->held_previous = machine->held_last;
    if (machine->held_last != NULL)
        machine->held_last->held_next = event;
    else
        machine->held_first = event;
    machine->held_last = event;
}

void sim_machine_unhold(struct sim_machine *machine, struct sim_event *event)
{
    ASSERT(event->place == SIM_EVENT_HELD);
    if (event->held_previous != NULL)
        event->held_previous->held_next = event->held_next;
    else
        machine->held_first = event->held_next;
    if (event->held_next != NULL)
        event->held_next->held_previous = event->held_previous;
    else
        machine->held_last = event->held_previous;
    event->place = SIM_EVENT_IDLE;
    event->held_previous = NULL;
    event->held_next = NULL;
}

/* Queues held events for now: all, only timers, or only the others. */
static void machine_let_go(struct sim_machine *machine, bool timers, bool others)
{
    struct sim_event *next;
    for (struct sim_event *event = machine->held_first; event != NULL; event = next) {
        next = event->held_next;
        bool timer = event->kind == SIM_EVENT_TIMER;
        if (timer ? timers : others)
            sim_world_schedule(machine->world, event, machine->world->now_us);
    }
}

void sim_machine_resume(struct sim_machine *machine)
{
    if (!machine->paused) return;
    sim_world_trace(machine->world, machine, "resumes");
    machine->paused = false;
    if (machine->clock.stopped) {
        machine->clock.stopped = false;
        machine->clock.set_at_us = machine->world->now_us;
    }
    if (machine->gap != NULL && !sim_machine_run(machine, machine_notice_gap, machine)) return;
    switch (random_below(&machine->world->random, 3)) {
    case 0: machine_let_go(machine, true, false); break;
    case 1: machine_let_go(machine, false, true); break;
    default: break;
    }
    machine_let_go(machine, true, true);
}

int64_t sim_machine_clock_us(const struct sim_machine *machine)
{
    const struct sim_clock *clock = &machine->clock;
    int64_t shown_us = clock->base_us;
    if (!clock->stopped)
        shown_us += (machine->world->now_us - clock->set_at_us) * clock->rate_ppm / 1000000;
    return clock->tick_us > 1 ? shown_us - shown_us % clock->tick_us : shown_us;
}

int64_t sim_machine_wall_ms(const struct sim_machine *machine)
{
    return SIM_WALL_START_MS + machine->world->now_us / 1000 + machine->clock.wall_offset_ms;
}

int64_t sim_machine_when(const struct sim_machine *machine, int64_t clock_us)
{
    const struct sim_clock *clock = &machine->clock;
    if (clock->tick_us > 1)
        clock_us = (clock_us + clock->tick_us - 1) / clock->tick_us * clock->tick_us;
    int64_t ahead_us = clock_us - clock->base_us;
    if (clock->stopped) return machine->world->now_us + (ahead_us > 0 ? ahead_us : 0);
    int64_t at_us = clock->set_at_us + (ahead_us * 1000000 + clock->rate_ppm - 1) / clock->rate_ppm;
    return at_us > machine->world->now_us ? at_us : machine->world->now_us;
}

void sim_machine_set_clock_rate(struct sim_machine *machine, int64_t rate_ppm, int64_t tick_us)
{
    struct sim_clock *clock = &machine->clock;
    ASSERT(rate_ppm > 0 && tick_us > 0);
    if (!clock->stopped) {
        clock->tick_us = 1;
        clock->base_us = sim_machine_clock_us(machine);
        clock->set_at_us = machine->world->now_us;
    }
    /* Coarser ticks are shown rounded down: from the next one on, so that time does not go back. */
    clock->base_us = (clock->base_us + tick_us - 1) / tick_us * tick_us;
    clock->rate_ppm = rate_ppm;
    clock->tick_us = tick_us;
}

void sim_machine_set_wall_offset(struct sim_machine *machine, int64_t offset_ms)
{
    machine->clock.wall_offset_ms = offset_ms;
}

void sim_machine_set_stall(struct sim_machine *machine, const struct sim_stall *stall)
{
    machine->stall = *stall;
}

const struct sim_stall *sim_machine_stall(const struct sim_machine *machine)
{
    return &machine->stall;
}

uint32_t sim_machine_jobs_pending(const struct sim_machine *machine)
{
    return machine->executor.pending;
}

void sim_machine_hang(struct sim_machine *machine, struct sim_resource *resource)
{
    if (machine == NULL) return;
    resource->previous = NULL;
    resource->next = machine->resources;
    if (machine->resources != NULL) machine->resources->previous = resource;
    machine->resources = resource;
}

void sim_machine_unhang(struct sim_machine *machine, struct sim_resource *resource)
{
    if (machine == NULL) return;
    if (resource->previous != NULL)
        resource->previous->next = resource->next;
    else
        machine->resources = resource->next;
    if (resource->next != NULL) resource->next->previous = resource->previous;
}
