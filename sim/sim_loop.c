#include "sim/sim_loop.h"

#include "base/assert.h"
#include "sim/machine.h"

/* More deferrals after one callback than any sane code makes: a loop that feeds itself. */
#define DEFERRED_RUN_MAX 1000000

struct sim_timer {
    struct timer base;
    struct sim_resource resource;
    struct sim_event event;
    loop_fn fire;
    void *context;
    int64_t deadline_us; /* on the machine's clock */
};

static struct sim_machine *timer_machine(const struct sim_timer *timer)
{
    return ((struct sim_loop *)timer->base.loop)->machine;
}

static void timer_release(struct sim_resource *resource)
{
    struct sim_timer *timer = CONTAINER_OF(resource, struct sim_timer, resource);
    struct sim_machine *machine = timer_machine(timer);
    sim_world_cancel(sim_machine_world(machine), &timer->event);
    sim_machine_unhang(machine, &timer->resource);
    sim_release(timer);
}

static void timer_due(struct sim_event *event)
{
    struct sim_timer *timer = CONTAINER_OF(event, struct sim_timer, event);
    struct sim_machine *machine = timer_machine(timer);
    /* The clock may have slowed down, or stood still, since the timer was started. */
    if (sim_machine_clock_us(machine) < timer->deadline_us) {
        sim_world_schedule(sim_machine_world(machine), event,
                           sim_machine_when(machine, timer->deadline_us));
        return;
    }
    timer->fire(timer->context);
}

static struct timer *sim_timer_new(struct loop *loop, loop_fn fire, void *context)
{
    struct sim_machine *machine = ((struct sim_loop *)loop)->machine;
    struct sim_timer *timer = sim_alloc(sizeof(*timer));
    timer->base.loop = loop;
    timer->fire = fire;
    timer->context = context;
    sim_event_init(&timer->event, SIM_EVENT_TIMER, machine, timer_due);
    timer->resource.release = timer_release;
    sim_machine_hang(machine, &timer->resource);
    return &timer->base;
}

static void sim_timer_start(struct timer *base, int64_t delay_us)
{
    struct sim_timer *timer = (struct sim_timer *)base;
    struct sim_machine *machine = timer_machine(timer);
    if (delay_us < 0) delay_us = 0;
    timer->deadline_us = sim_machine_clock_us(machine) + delay_us;
    sim_world_schedule(sim_machine_world(machine), &timer->event,
                       sim_machine_when(machine, timer->deadline_us));
}

static void sim_timer_stop(struct timer *base)
{
    struct sim_timer *timer = (struct sim_timer *)base;
    sim_world_cancel(sim_machine_world(timer_machine(timer)), &timer->event);
}

static void sim_timer_free(struct timer *base)
{
    timer_release(&((struct sim_timer *)base)->resource);
}

static void sim_defer(struct loop *base, loop_fn run, void *context)
{
    struct sim_loop *loop = (struct sim_loop *)base;
    if (loop->count == loop->capacity) {
        size_t capacity = loop->capacity == 0 ? 16 : 2 * loop->capacity;
        struct sim_deferred *ring = sim_alloc(capacity * sizeof(*ring));
        for (size_t i = 0; i < loop->count; i++)
            ring[i] = loop->deferred[(loop->first + i) & (loop->capacity - 1)];
        sim_release(loop->deferred);
        loop->deferred = ring;
        loop->first = 0;
        loop->capacity = capacity;
    }
    loop->deferred[(loop->first + loop->count++) & (loop->capacity - 1)] =
        (struct sim_deferred){run, context};
}

static const struct loop_ops sim_loop_ops = {
    .timer_new = sim_timer_new,
    .timer_start = sim_timer_start,
    .timer_stop = sim_timer_stop,
    .timer_free = sim_timer_free,
    .defer = sim_defer,
};

static int64_t sim_monotonic_us(void *context)
{
    return sim_machine_clock_us(context);
}

static int64_t sim_wall_ms(void *context)
{
    return sim_machine_wall_ms(context);
}

void sim_loop_init(struct sim_loop *loop, struct sim_machine *machine)
{
    *loop = (struct sim_loop){
        .base = {.ops = &sim_loop_ops,
                 .clock = {.monotonic_us = sim_monotonic_us,
                           .wall_ms = sim_wall_ms,
                           .context = machine}},
        .machine = machine,
    };
}

void sim_loop_deinit(struct sim_loop *loop)
{
    sim_release(loop->deferred);
    loop->deferred = NULL;
}

void sim_loop_run_deferred(struct sim_loop *loop)
{
    struct sim_world *world = sim_machine_world(loop->machine);
    for (int runs = 0; loop->count > 0; runs++) {
        ASSERT(runs < DEFERRED_RUN_MAX);
        struct sim_deferred next = loop->deferred[loop->first];
        loop->first = (loop->first + 1) & (loop->capacity - 1);
        loop->count--;
        sim_world_mix(world, SIM_EVENT_DEFER);
        next.run(next.context);
    }
}

void sim_loop_forget(struct sim_loop *loop)
{
    loop->first = 0;
    loop->count = 0;
}
