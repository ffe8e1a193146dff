#include "sim/world.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "sim/machine.h"

static const char *const kind_names[SIM_EVENT_KIND_COUNT] = {
    [SIM_EVENT_WORLD] = "world",       [SIM_EVENT_TIMER] = "timer",
    [SIM_EVENT_DEFER] = "defer",       [SIM_EVENT_JOB_RUN] = "job_run",
    [SIM_EVENT_JOB_DONE] = "job_done", [SIM_EVENT_SEGMENT] = "segment",
    [SIM_EVENT_LINK] = "link",         [SIM_EVENT_REQUEST] = "request",
    [SIM_EVENT_CLIENT] = "client",
};

void sim_world_init(struct sim_world *world, uint64_t seed)
{
    memset(world, 0, sizeof(*world));
    world->seed = seed;
    world->trace_hash = 0xcbf29ce484222325u;
    random_seed(&world->random, seed);
}

void sim_world_deinit(struct sim_world *world)
{
    sim_release(world->heap);
    memset(world, 0, sizeof(*world));
}

void sim_event_init(struct sim_event *event, enum sim_event_kind kind, struct sim_machine *machine,
                    sim_event_fn fire)
{
    memset(event, 0, sizeof(*event));
    event->kind = kind;
    event->machine = machine;
    event->fire = fire;
    event->place = SIM_EVENT_IDLE;
}

static bool entry_before(const struct sim_heap_entry *a, const struct sim_heap_entry *b)
{
    return a->at_us < b->at_us || (a->at_us == b->at_us && a->sequence < b->sequence);
}

static void heap_put(struct sim_world *world, int32_t place, struct sim_heap_entry entry)
{
    world->heap[place] = entry;
    entry.event->place = place;
}

static void heap_move_up(struct sim_world *world, int32_t place, struct sim_heap_entry entry)
{
    while (place > 0) {
        int32_t parent = (place - 1) / 2;
        if (!entry_before(&entry, &world->heap[parent])) break;
        heap_put(world, place, world->heap[parent]);
        place = parent;
    }
    heap_put(world, place, entry);
}

static void heap_move_down(struct sim_world *world, int32_t place, struct sim_heap_entry entry)
{
    for (;;) {
        int32_t child = 2 * place + 1;
        if (child >= world->heap_count) break;
        if (child + 1 < world->heap_count &&
            entry_before(&world->heap[child + 1], &world->heap[child]))
            child++;
        if (!entry_before(&world->heap[child], &entry)) break;
        heap_put(world, place, world->heap[child]);
        place = child;
    }
    heap_put(world, place, entry);
}

static void heap_remove(struct sim_world *world, int32_t place)
{
    struct sim_heap_entry last = world->heap[--world->heap_count];
    world->heap[place].event->place = SIM_EVENT_IDLE;
    if (place == world->heap_count) return;
    if (place > 0 && entry_before(&last, &world->heap[(place - 1) / 2]))
        heap_move_up(world, place, last);
    else
        heap_move_down(world, place, last);
}

void sim_world_cancel(struct sim_world *world, struct sim_event *event)
{
    if (event->place == SIM_EVENT_IDLE) return;
    if (event->place == SIM_EVENT_HELD)
        sim_machine_unhold(event->machine, event);
    else
        heap_remove(world, event->place);
}

void sim_world_schedule(struct sim_world *world, struct sim_event *event, int64_t at_us)
{
    sim_world_cancel(world, event);
    if (world->heap_count == world->heap_capacity) {
        world->heap_capacity = world->heap_capacity == 0 ? 256 : 2 * world->heap_capacity;
        world->heap = sim_grow(world->heap, (size_t)world->heap_capacity * sizeof(world->heap[0]));
    }
    if (at_us < world->now_us) at_us = world->now_us;
    struct sim_heap_entry entry = {at_us, world->next_sequence++, event};
    heap_move_up(world, world->heap_count++, entry);
}

void sim_world_mix(struct sim_world *world, uint64_t value)
{
    uint64_t hash = (world->trace_hash ^ value) * 0x9e3779b97f4a7c15u;
    world->trace_hash = hash ^ (hash >> 29);
}

void sim_world_trace(struct sim_world *world, const struct sim_machine *machine, const char *format,
                     ...)
{
    if (!world->trace) return;
    va_list arguments;
    printf("%11.6f ", (double)world->now_us / 1e6);
    if (machine != NULL)
        printf("n%d ", sim_machine_id(machine));
    else
        printf("-- ");
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
}

bool sim_world_step(struct sim_world *world, int64_t until_us)
{
    if (world->heap_count == 0 || world->heap[0].at_us > until_us) return false;
    struct sim_heap_entry entry = world->heap[0];
    struct sim_event *event = entry.event;
    heap_remove(world, 0);
    ASSERT(entry.at_us >= world->now_us);
    world->now_us = entry.at_us;
    if (event->machine != NULL && sim_machine_is_paused(event->machine)) {
        sim_machine_hold(event->machine, event);
        return true;
    }
    world->events_delivered++;
    sim_world_mix(world, (uint64_t)world->now_us);
    sim_world_mix(
        world, event->detail ^ (uint64_t)event->kind << 56 ^
                   (uint64_t)(event->machine == NULL ? 255 : sim_machine_id(event->machine)) << 48);
    if (world->trace && event->kind != SIM_EVENT_SEGMENT && event->kind != SIM_EVENT_WORLD)
        sim_world_trace(world, event->machine, "%s %llx", kind_names[event->kind],
                        (unsigned long long)event->detail);
    if (event->machine != NULL)
        sim_machine_deliver(event->machine, event);
    else
        event->fire(event);
    return true;
}

void sim_world_run_until(struct sim_world *world, int64_t until_us)
{
    while (sim_world_step(world, until_us)) {
    }
    if (world->now_us < until_us) world->now_us = until_us;
}

bool sim_world_chance(struct sim_world *world, uint32_t chance_ppm)
{
    return chance_ppm != 0 && random_below(&world->random, 1000000) < chance_ppm;
}

int64_t sim_world_between(struct sim_world *world, int64_t low, int64_t high)
{
    return high <= low ? low : random_between(&world->random, low, high);
}
