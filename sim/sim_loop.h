/* sim_loop.h: struct loop of one virtual process: timers on the machine's clock, and deferrals. */
#ifndef MOONMQ_SIM_SIM_LOOP_H
#define MOONMQ_SIM_SIM_LOOP_H

#include <stddef.h>

#include "io/loop.h"

struct sim_machine;

struct sim_deferred {
    loop_fn run;
    void *context;
};

struct sim_loop {
    struct loop base;
    struct sim_machine *machine;
    struct sim_deferred *deferred; /* a ring of `capacity` (a power of two) */
    size_t first, count, capacity;
};

void sim_loop_init(struct sim_loop *loop, struct sim_machine *machine);
void sim_loop_deinit(struct sim_loop *loop);
/* Runs what was deferred, and what that defers. Inside the process. */
void sim_loop_run_deferred(struct sim_loop *loop);
/* The process died. */
void sim_loop_forget(struct sim_loop *loop);

#endif
