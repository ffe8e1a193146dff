/* loop.h: the event loop as broker code sees it: time, timers, and "after this callback".
 *
 * Everything that holds broker state runs on it, one callback at a time. Behind it stand
 * loop_event.c (libevent) and the simulator's virtual time. Callbacks never nest: loop_defer()
 * runs after the current one returned.                                                        */
#ifndef MOONMQ_IO_LOOP_H
#define MOONMQ_IO_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct loop;
struct timer;
typedef void (*loop_fn)(void *context);

struct loop_ops {
    struct timer *(*timer_new)(struct loop *loop, loop_fn fire, void *context);
    void (*timer_start)(struct timer *timer, int64_t delay_us);
    void (*timer_stop)(struct timer *timer);
    void (*timer_free)(struct timer *timer);
    void (*defer)(struct loop *loop, loop_fn run, void *context);
};

/* Implementations embed these as their first member. */
struct loop {
    const struct loop_ops *ops;
    struct clock clock;
};
struct timer {
    struct loop *loop;
};

static inline int64_t loop_now_us(struct loop *loop)
{
    return clock_monotonic_us(&loop->clock);
}
static inline int64_t loop_wall_ms(struct loop *loop)
{
    return clock_wall_ms(&loop->clock);
}

/* One-shot timers; start moves a running one; a late one fires once. Free stops. */
struct timer *timer_new(struct loop *loop, loop_fn fire, void *context);
void timer_start(struct timer *timer, int64_t delay_us);
void timer_stop(struct timer *timer);
void timer_free(struct timer *timer); /* NULL is allowed */

/* Runs `run` once, soon, on the loop. The caller keeps `context` alive until then. */
void loop_defer(struct loop *loop, loop_fn run, void *context);

#endif
