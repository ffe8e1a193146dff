/* clock.h: the two clocks, behind an interface. Only the monotonic one decides anything; the wall
 * clock stamps records and drives time-based retention.                                       */
#ifndef MOONMQ_BASE_CLOCK_H
#define MOONMQ_BASE_CLOCK_H

#include <stdint.h>

struct clock {
    int64_t (*monotonic_us)(void *context);
    int64_t (*wall_ms)(void *context);
    void *context;
};

static inline int64_t clock_monotonic_us(const struct clock *clock)
{
    return clock->monotonic_us(clock->context);
}
static inline int64_t clock_wall_ms(const struct clock *clock)
{
    return clock->wall_ms(clock->context);
}

/* The system's clocks. */
extern const struct clock clock_system;

#endif
