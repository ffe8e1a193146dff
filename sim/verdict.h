/* verdict.h: the first broken invariant of a run; the rest is consequences. */
#ifndef MOONMQ_SIM_VERDICT_H
#define MOONMQ_SIM_VERDICT_H

#include <stdbool.h>

#include "sim/world.h"

struct sim_verdict {
    struct sim_world *world;
    bool failed;
    char invariant[8]; /* "I2": fault-matrix.md section 4 */
    char text[512];
    int64_t at_us;
};

/* Keeps the first; a line of the trace as well. */
void sim_verdict_fail(struct sim_verdict *verdict, const char *invariant, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
