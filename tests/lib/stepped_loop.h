/* stepped_loop.h: a loop with a hand-turned clock, and an executor that runs jobs when told to.
 *
 * Timers fire in order of their moment, then of their start; jobs run in order of submission, all
 * lanes in one queue. Everything happens inside the calls of the test.                         */
#ifndef MOONMQ_TESTS_LIB_STEPPED_LOOP_H
#define MOONMQ_TESTS_LIB_STEPPED_LOOP_H

/* A test uses what it needs. */
#pragma GCC diagnostic ignored "-Wunused-function"

#include <stdlib.h>

#include "base/assert.h"
#include "io/executor.h"
#include "io/loop.h"

struct stepped_timer {
    struct timer timer;
    loop_fn fire;
    void *context;
    bool running;
    int64_t at_us;
    uint64_t order;
    struct stepped_timer *next;
};
struct stepped_deferred {
    loop_fn run;
    void *context;
    struct stepped_deferred *next;
};
struct stepped_loop {
    struct loop loop;
    int64_t now_us, wall_ms;
    uint64_t next_order;
    struct stepped_timer *timers;
    struct stepped_deferred *deferred, **deferred_end;
    struct executor executor;
    struct job *jobs, **jobs_end;
    uint32_t job_count; /* waiting */
    uint64_t jobs_run;
};

static struct stepped_loop *stepped_of_loop(struct loop *loop)
{
    return CONTAINER_OF(loop, struct stepped_loop, loop);
}

static struct timer *stepped_timer_new(struct loop *loop, loop_fn fire, void *context)
{
    struct stepped_loop *fake = stepped_of_loop(loop);
    struct stepped_timer *timer = calloc(1, sizeof(*timer));
    timer->timer.loop = loop;
    timer->fire = fire;
    timer->context = context;
    timer->next = fake->timers;
    fake->timers = timer;
    return &timer->timer;
}

static void stepped_timer_start(struct timer *base, int64_t delay_us)
{
    struct stepped_timer *timer = CONTAINER_OF(base, struct stepped_timer, timer);
    struct stepped_loop *fake = stepped_of_loop(base->loop);
    timer->running = true;
    timer->at_us = fake->now_us + delay_us;
    timer->order = fake->next_order++;
}

static void stepped_timer_stop(struct timer *base)
{
    CONTAINER_OF(base, struct stepped_timer, timer)->running = false;
}

static void stepped_timer_free(struct timer *base)
{
    struct stepped_timer *timer = CONTAINER_OF(base, struct stepped_timer, timer);
    struct stepped_timer **at = &stepped_of_loop(base->loop)->timers;
    while (*at != timer)
        at = &(*at)->next;
    *at = timer->next;
    free(timer);
}

static void stepped_defer(struct loop *loop, loop_fn run, void *context)
{
    struct stepped_loop *fake = stepped_of_loop(loop);
    struct stepped_deferred *deferred = calloc(1, sizeof(*deferred));
    deferred->run = run;
    deferred->context = context;
    *fake->deferred_end = deferred;
    fake->deferred_end = &deferred->next;
}

static const struct loop_ops stepped_loop_ops = {
    .timer_new = stepped_timer_new,
    .timer_start = stepped_timer_start,
    .timer_stop = stepped_timer_stop,
    .timer_free = stepped_timer_free,
    .defer = stepped_defer,
};

static int64_t stepped_monotonic_us(void *context)
{
    return ((struct stepped_loop *)context)->now_us;
}

static int64_t stepped_wall_ms(void *context)
{
    return ((struct stepped_loop *)context)->wall_ms;
}

static void stepped_submit(struct executor *executor, enum executor_lane lane, struct job *job)
{
    struct stepped_loop *fake = CONTAINER_OF(executor, struct stepped_loop, executor);
    (void)lane;
    job->next = NULL;
    *fake->jobs_end = job;
    fake->jobs_end = &job->next;
    fake->job_count++;
}

static const struct executor_ops stepped_executor_ops = {.submit = stepped_submit};

static void stepped_loop_init(struct stepped_loop *fake)
{
    *fake = (struct stepped_loop){.now_us = 1000000, .wall_ms = 1700000000000};
    fake->loop.ops = &stepped_loop_ops;
    fake->loop.clock = (struct clock){stepped_monotonic_us, stepped_wall_ms, fake};
    fake->deferred_end = &fake->deferred;
    fake->executor.ops = &stepped_executor_ops;
    fake->jobs_end = &fake->jobs;
}

/* What was deferred and what waits at the executor is forgotten: a crash. */
static void stepped_loop_drop(struct stepped_loop *fake)
{
    while (fake->deferred != NULL) {
        struct stepped_deferred *deferred = fake->deferred;
        fake->deferred = deferred->next;
        free(deferred);
    }
    fake->deferred_end = &fake->deferred;
    fake->jobs = NULL;
    fake->jobs_end = &fake->jobs;
    fake->job_count = 0;
}

/* True: one deferred call or one due timer ran. */
static bool stepped_loop_step(struct stepped_loop *fake)
{
    if (fake->deferred != NULL) {
        struct stepped_deferred *deferred = fake->deferred;
        fake->deferred = deferred->next;
        if (fake->deferred == NULL) fake->deferred_end = &fake->deferred;
        loop_fn run = deferred->run;
        void *context = deferred->context;
        free(deferred);
        run(context);
        return true;
    }
    struct stepped_timer *due = NULL;
    for (struct stepped_timer *timer = fake->timers; timer != NULL; timer = timer->next) {
        if (!timer->running || timer->at_us > fake->now_us) continue;
        if (due == NULL || timer->at_us < due->at_us ||
            (timer->at_us == due->at_us && timer->order < due->order)) {
            due = timer;
        }
    }
    if (due == NULL) return false;
    due->running = false;
    due->fire(due->context);
    return true;
}

static bool stepped_job_step(struct stepped_loop *fake)
{
    struct job *job = fake->jobs;
    if (job == NULL) return false;
    fake->jobs = job->next;
    if (fake->jobs == NULL) fake->jobs_end = &fake->jobs;
    fake->job_count--;
    fake->jobs_run++;
    job->run(job);
    job->done(job);
    return true;
}

/* What can happen now, without jobs. */
static void stepped_loop_run(struct stepped_loop *fake)
{
    while (stepped_loop_step(fake))
        continue;
}

/* Until nothing is left to do at this moment, jobs included. */
static void stepped_loop_settle(struct stepped_loop *fake)
{
    while (stepped_loop_step(fake) || stepped_job_step(fake))
        continue;
}

/* Time passes, timers fire at their moments, jobs take no time. */
static void stepped_loop_advance(struct stepped_loop *fake, int64_t delay_us)
{
    int64_t end_us = fake->now_us + delay_us;
    for (;;) {
        stepped_loop_settle(fake);
        int64_t next_us = end_us;
        for (struct stepped_timer *timer = fake->timers; timer != NULL; timer = timer->next) {
            if (timer->running && timer->at_us < next_us) next_us = timer->at_us;
        }
        fake->wall_ms += next_us / 1000 - fake->now_us / 1000;
        fake->now_us = next_us;
        stepped_loop_settle(fake);
        if (fake->now_us >= end_us) return;
    }
}

#endif
