/* fake_loop.h: a loop and an executor for unit tests: virtual time, one thread, everything in
 * order.
 *
 * Jobs run when the test lets them: fake_loop_run() goes on until nothing is due. With `manual`,
 * submitted jobs wait for fake_loop_run_job().                                                 */
#ifndef MOONMQ_TESTS_FAKE_LOOP_H
#define MOONMQ_TESTS_FAKE_LOOP_H

#include <stdbool.h>
#include <stdlib.h>

#include "base/assert.h"
#include "io/executor.h"
#include "io/loop.h"

struct fake_timer {
    struct loop *loop; /* first, as struct timer has it */
    loop_fn fire;
    void *context;
    bool running;
    int64_t at_us;
    struct fake_timer *next;
};
struct fake_deferred {
    loop_fn run;
    void *context;
};
struct fake_loop {
    struct loop loop;
    struct executor executor;
    int64_t now_us, wall_ms;
    struct fake_timer *timers;
    struct fake_deferred *deferred;
    size_t deferred_first, deferred_count, deferred_capacity;
    struct job *jobs_first, *jobs_last;
    size_t job_count;
    bool manual;
};

static inline struct fake_loop *fake_loop_of(struct loop *loop)
{
    return (struct fake_loop *)loop;
}
static inline int64_t fake_loop_monotonic(void *context)
{
    return ((struct fake_loop *)context)->now_us;
}
static inline int64_t fake_loop_wall(void *context)
{
    return ((struct fake_loop *)context)->wall_ms;
}
static inline struct timer *fake_timer_new(struct loop *loop, loop_fn fire, void *context)
{
    struct fake_timer *timer = calloc(1, sizeof(*timer));
    timer->loop = loop;
    timer->fire = fire;
    timer->context = context;
    timer->next = fake_loop_of(loop)->timers;
    fake_loop_of(loop)->timers = timer;
    return (struct timer *)timer;
}
static inline void fake_timer_start(struct timer *base, int64_t delay_us)
{
    struct fake_timer *timer = (struct fake_timer *)base;
    timer->running = true;
    timer->at_us = fake_loop_of(timer->loop)->now_us + delay_us;
}
static inline void fake_timer_stop(struct timer *base)
{
    ((struct fake_timer *)base)->running = false;
}
static inline void fake_timer_free(struct timer *base)
{
    struct fake_timer *timer = (struct fake_timer *)base;
    struct fake_timer **link = &fake_loop_of(timer->loop)->timers;
    while (*link != timer) {
        link = &(*link)->next;
    }
    *link = timer->next;
    free(timer);
}
static inline void fake_loop_defer(struct loop *base, loop_fn run, void *context)
{
    struct fake_loop *fake = fake_loop_of(base);
    if (fake->deferred_first + fake->deferred_count == fake->deferred_capacity) {
        fake->deferred_capacity = fake->deferred_capacity * 2 + 16;
        fake->deferred = realloc(fake->deferred, fake->deferred_capacity * sizeof(*fake->deferred));
    }
    fake->deferred[fake->deferred_first + fake->deferred_count++] =
        (struct fake_deferred){.run = run, .context = context};
}
static inline void fake_submit(struct executor *executor, enum executor_lane lane, struct job *job)
{
    struct fake_loop *fake = CONTAINER_OF(executor, struct fake_loop, executor);
    (void)lane;
    job->next = NULL;
    if (fake->jobs_first == NULL) {
        fake->jobs_first = job;
    } else {
        fake->jobs_last->next = job;
    }
    fake->jobs_last = job;
    fake->job_count++;
}

static inline void fake_loop_init(struct fake_loop *fake)
{
    static const struct loop_ops loop_ops = {.timer_new = fake_timer_new,
                                             .timer_start = fake_timer_start,
                                             .timer_stop = fake_timer_stop,
                                             .timer_free = fake_timer_free,
                                             .defer = fake_loop_defer};
    static const struct executor_ops executor_ops = {.submit = fake_submit};
    *fake = (struct fake_loop){
        .loop = {.ops = &loop_ops,
                 .clock = {.monotonic_us = fake_loop_monotonic, .wall_ms = fake_loop_wall}},
        .executor = {.ops = &executor_ops},
        .now_us = 1000000,
        .wall_ms = 1700000000000};
    fake->loop.clock.context = fake;
}
static inline void fake_loop_deinit(struct fake_loop *fake)
{
    while (fake->timers != NULL) {
        fake_timer_free((struct timer *)fake->timers);
    }
    free(fake->deferred);
}
static inline bool fake_loop_run_deferred(struct fake_loop *fake)
{
    bool any = fake->deferred_count > 0;
    while (fake->deferred_count > 0) {
        struct fake_deferred item = fake->deferred[fake->deferred_first++];
        if (--fake->deferred_count == 0) fake->deferred_first = 0;
        item.run(item.context);
    }
    return any;
}
/* The oldest job: its work, and then its end. False: there is none. */
static inline bool fake_loop_run_job(struct fake_loop *fake)
{
    struct job *job = fake->jobs_first;
    if (job == NULL) return false;
    fake->jobs_first = job->next;
    fake->job_count--;
    job->run(job);
    job->done(job);
    fake_loop_run_deferred(fake);
    return true;
}
/* Until nothing is left to do now. */
static inline void fake_loop_run(struct fake_loop *fake)
{
    bool any = true;
    while (any) {
        any = fake_loop_run_deferred(fake);
        if (!fake->manual && fake_loop_run_job(fake)) any = true;
    }
}
static inline struct fake_timer *fake_loop_next_timer(struct fake_loop *fake, int64_t until_us)
{
    struct fake_timer *first = NULL;
    for (struct fake_timer *timer = fake->timers; timer != NULL; timer = timer->next) {
        if (!timer->running || timer->at_us > until_us) continue;
        if (first == NULL || timer->at_us < first->at_us) first = timer;
    }
    return first;
}
/* Lets time pass. */
static inline void fake_loop_advance(struct fake_loop *fake, int64_t us)
{
    int64_t until_us = fake->now_us + us;
    struct fake_timer *timer;
    fake_loop_run(fake);
    while ((timer = fake_loop_next_timer(fake, until_us)) != NULL) {
        if (timer->at_us > fake->now_us) {
            fake->wall_ms += (timer->at_us - fake->now_us) / 1000;
            fake->now_us = timer->at_us;
        }
        timer->running = false;
        timer->fire(timer->context);
        fake_loop_run(fake);
    }
    fake->wall_ms += (until_us - fake->now_us) / 1000;
    fake->now_us = until_us;
}
/* The process is gone: jobs, timers and deferred calls with it, unrun. */
static inline void fake_loop_forget(struct fake_loop *fake)
{
    fake->jobs_first = fake->jobs_last = NULL;
    fake->job_count = 0;
    fake->deferred_count = fake->deferred_first = 0;
}

#endif
