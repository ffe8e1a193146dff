/* loop.c: the interface's calls, handed to the implementation. */
#include "io/loop.h"

#include <stddef.h>

struct timer *timer_new(struct loop *loop, loop_fn fire, void *context)
{
    return loop->ops->timer_new(loop, fire, context);
}

void timer_start(struct timer *timer, int64_t delay_us)
{
    timer->loop->ops->timer_start(timer, delay_us);
}

void timer_stop(struct timer *timer)
{
    timer->loop->ops->timer_stop(timer);
}

void timer_free(struct timer *timer)
{
    if (timer != NULL) timer->loop->ops->timer_free(timer);
}

void loop_defer(struct loop *loop, loop_fn run, void *context)
{
    loop->ops->defer(loop, run, context);
}
