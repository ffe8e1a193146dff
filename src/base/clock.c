/* clock.c: the system's clocks. Monotonic time is CLOCK_MONOTONIC: it stands still while the
 * machine is suspended, as do the timers that are compared with it. */
#include "base/clock.h"

#include <stddef.h>
#include <time.h>

static int64_t clock_system_monotonic_us(void *context)
{
    (void)context;
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int64_t clock_system_wall_ms(void *context)
{
    (void)context;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

const struct clock clock_system = {clock_system_monotonic_us, clock_system_wall_ms, NULL};
