/* loop_event.c: libevent behind loop.h.
 *
 * Two priorities: the gap tick has the first, everything else the second. After a gap its timer is
 * due, so libevent runs it before what else became due; and the dispatch interval makes libevent
 * look at the timers again as soon as one callback took longer than a few milliseconds.
 *
 * libevent's timers go by a coarse clock (up to 4 ms behind ours) and its cached time: a timer that
 * comes early by our clock is started again for the rest, so none ever fires early.           */
#include "io/loop_event.h"

#include <event2/event.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/memory.h"

#define LOOP_PRIORITY_TICK     0
#define LOOP_PRIORITY_COUNT    2
#define LOOP_DISPATCH_US_MAX   3000
#define LOOP_LOG_INTERVAL_US   1000000
#define LOOP_TICK_US_MIN       5000
#define LOOP_TICK_US_MAX       100000
#define LOOP_REST_US_MIN       1000
#define LOOP_DEFERRED_KEEP_MAX 1024

struct loop_deferred {
    loop_fn run;
    void *context;
};

#define LOOP_SIGNALS_MAX 8

struct loop_signal {
    struct loop_event *loop;
    struct event *event;
    loop_event_signal_fn handler;
    void *context;
};

struct loop_event {
    struct loop base;
    struct event_base *events;
    bool stopping;

    /* Deferred calls, in order; `deferred_event` is active while there are any. */
    struct event *deferred_event;
    struct loop_deferred *deferred;
    size_t deferred_count;
    size_t deferred_capacity;

    struct event *tick; /* NULL: gaps are not watched */
    int64_t tick_us;
    int64_t tick_seen_us;
    int64_t gap_us;
    loop_event_gap_fn gap_handler;
    void *gap_context;

    struct loop_signal signals[LOOP_SIGNALS_MAX];
    uint32_t signal_count;

    struct loop_event_stats stats;
    struct log_limiter slow_limiter;
};

struct loop_event_timer {
    struct timer base;
    struct loop_event *loop;
    struct event *event;
    int64_t due_us;
    loop_fn fire;
    void *context;
};

static struct loop_event *loop_event_of(struct loop *loop)
{
    return (struct loop_event *)loop;
}

static struct timeval loop_timeval(int64_t us)
{
    if (us < 0) us = 0;
    return (struct timeval){(time_t)(us / 1000000), (suseconds_t)(us % 1000000)};
}

int64_t loop_event_step_begin(struct loop_event *loop)
{
    return loop_now_us(&loop->base);
}

void loop_event_step_end(struct loop_event *loop, int64_t began_us, const char *what)
{
    int64_t now_us = loop_now_us(&loop->base);
    int64_t took_us = now_us - began_us;
    if (took_us > loop->stats.step_longest_us) loop->stats.step_longest_us = took_us;
    if (took_us <= LOOP_EVENT_STEP_SLOW_US) return;
    loop->stats.steps_slow++;
    log_limited(&loop->slow_limiter, now_us, LOOP_LOG_INTERVAL_US, LOG_WARN,
                "loop_step_slow what=%s took_ms=%lld", what, (long long)(took_us / 1000));
}

static void loop_timer_fired(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    struct loop_event_timer *timer = context;
    struct loop_event *loop = timer->loop;
    int64_t began_us = loop_event_step_begin(loop);
    if (began_us < timer->due_us) {
        int64_t rest_us = timer->due_us - began_us;
        struct timeval rest = loop_timeval(rest_us < LOOP_REST_US_MIN ? LOOP_REST_US_MIN : rest_us);
        evtimer_add(timer->event, &rest);
        return;
    }
    timer->fire(timer->context);
    loop_event_step_end(loop, began_us, "timer");
}

static struct timer *loop_timer_new(struct loop *base, loop_fn fire, void *context)
{
    struct loop_event_timer *timer = memory_new(sizeof(*timer));
    timer->base.loop = base;
    timer->loop = loop_event_of(base);
    timer->fire = fire;
    timer->context = context;
    timer->event = evtimer_new(timer->loop->events, loop_timer_fired, timer);
    ASSERT(timer->event != NULL);
    return &timer->base;
}

static void loop_timer_start(struct timer *base, int64_t delay_us)
{
    struct loop_event_timer *timer = (struct loop_event_timer *)base;
    if (delay_us < 0) delay_us = 0;
    struct timeval delay = loop_timeval(delay_us);
    timer->due_us = loop_now_us(base->loop) + delay_us;
    int added = evtimer_add(timer->event, &delay);
    ASSERT(added == 0);
}

static void loop_timer_stop(struct timer *base)
{
    evtimer_del(((struct loop_event_timer *)base)->event);
}

static void loop_timer_free(struct timer *base)
{
    struct loop_event_timer *timer = (struct loop_event_timer *)base;
    event_free(timer->event);
    free(timer);
}

void loop_event_run_deferred(struct loop_event *loop)
{
    /* A call may defer more, which grows the array: entries are copied out, by index. */
    for (size_t i = 0; i < loop->deferred_count; i++) {
        struct loop_deferred call = loop->deferred[i];
        int64_t began_us = loop_event_step_begin(loop);
        call.run(call.context);
        loop_event_step_end(loop, began_us, "deferred");
    }
    loop->deferred_count = 0;
    if (loop->deferred_capacity > LOOP_DEFERRED_KEEP_MAX) {
        free(loop->deferred);
        loop->deferred = NULL;
        loop->deferred_capacity = 0;
    }
}

static void loop_deferred_fired(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    loop_event_run_deferred(context);
}

static void loop_defer_call(struct loop *base, loop_fn run, void *context)
{
    struct loop_event *loop = loop_event_of(base);
    if (loop->deferred_count == loop->deferred_capacity) {
        loop->deferred_capacity = loop->deferred_capacity == 0 ? 32 : loop->deferred_capacity * 2;
        loop->deferred =
            memory_resize(loop->deferred, loop->deferred_capacity, sizeof(loop->deferred[0]));
    }
    loop->deferred[loop->deferred_count++] = (struct loop_deferred){run, context};
    /* Joins the events that are being run now: no poll comes between. */
    event_active(loop->deferred_event, EV_TIMEOUT, 0);
}

static const struct loop_ops loop_event_ops = {
    .timer_new = loop_timer_new,
    .timer_start = loop_timer_start,
    .timer_stop = loop_timer_stop,
    .timer_free = loop_timer_free,
    .defer = loop_defer_call,
};

static struct event_base *loop_events_new(void)
{
    struct event_config *config = event_config_new();
    if (config == NULL) return NULL;
    struct timeval interval = loop_timeval(LOOP_DISPATCH_US_MAX);
    struct event_base *events = NULL;
    if (event_config_set_max_dispatch_interval(config, &interval, -1, LOOP_PRIORITY_TICK + 1) ==
            0 &&
        event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK) == 0) {
        events = event_base_new_with_config(config);
    }
    event_config_free(config);
    if (events != NULL && event_base_priority_init(events, LOOP_PRIORITY_COUNT) != 0) {
        event_base_free(events);
        return NULL;
    }
    return events;
}

enum status loop_event_new(struct loop_event **out, struct error *error)
{
    *out = NULL;
    struct event_base *events = loop_events_new();
    if (events == NULL) return error_set(error, STATUS_IO, "event loop: could not be created");
    signal(SIGPIPE, SIG_IGN);
    struct loop_event *loop = memory_new(sizeof(*loop));
    loop->base.ops = &loop_event_ops;
    loop->base.clock = clock_system;
    loop->events = events;
    loop->deferred_event = event_new(events, -1, 0, loop_deferred_fired, loop);
    ASSERT(loop->deferred_event != NULL);
    *out = loop;
    return STATUS_OK;
}

static void loop_signal_came(evutil_socket_t number, short what, void *context)
{
    (void)what;
    struct loop_signal *signal = context;
    int64_t began_us = loop_event_step_begin(signal->loop);
    signal->handler(signal->context, (int)number);
    loop_event_step_end(signal->loop, began_us, "signal");
}

enum status loop_event_watch_signal(struct loop_event *loop, int number,
                                    loop_event_signal_fn handler, void *context,
                                    struct error *error)
{
    ASSERT(loop->signal_count < LOOP_SIGNALS_MAX);
    struct loop_signal *signal = &loop->signals[loop->signal_count];
    *signal = (struct loop_signal){.loop = loop, .handler = handler, .context = context};
    signal->event = evsignal_new(loop->events, number, loop_signal_came, signal);
    if (signal->event == NULL || evsignal_add(signal->event, NULL) != 0) {
        if (signal->event != NULL) event_free(signal->event);
        return error_set(error, STATUS_IO, "signal %d: cannot be watched", number);
    }
    loop->signal_count++;
    return STATUS_OK;
}

void loop_event_free(struct loop_event *loop)
{
    if (loop == NULL) return;
    loop_event_watch_gaps(loop, 0, NULL, NULL);
    loop_event_run_deferred(loop); /* their contexts wait for it */
    event_free(loop->deferred_event);
    for (uint32_t i = 0; i < loop->signal_count; i++)
        event_free(loop->signals[i].event);
    event_base_free(loop->events);
    free(loop->deferred);
    free(loop);
}

struct loop *loop_event_interface(struct loop_event *loop)
{
    return &loop->base;
}

struct event_base *loop_event_base(struct loop_event *loop)
{
    return loop->events;
}

void loop_event_run(struct loop_event *loop)
{
    loop->stopping = false;
    loop->tick_seen_us = loop_now_us(&loop->base);
    while (!loop->stopping) {
        int result = event_base_loop(loop->events, EVLOOP_NO_EXIT_ON_EMPTY);
        ASSERT(result == 0);
    }
}

void loop_event_stop(struct loop_event *loop)
{
    loop->stopping = true;
    event_base_loopbreak(loop->events);
}

static void loop_tick_fired(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    struct loop_event *loop = context;
    int64_t now_us = loop_now_us(&loop->base);
    int64_t gap_us = now_us - loop->tick_seen_us - loop->tick_us;
    loop->tick_seen_us = now_us;
    struct timeval next = loop_timeval(loop->tick_us);
    evtimer_add(loop->tick, &next);
    if (gap_us <= loop->gap_us) return;
    loop->stats.gaps++;
    if (gap_us > loop->stats.gap_longest_us) loop->stats.gap_longest_us = gap_us;
    loop->gap_handler(loop->gap_context, gap_us);
}

void loop_event_watch_gaps(struct loop_event *loop, int64_t gap_us, loop_event_gap_fn handler,
                           void *context)
{
    if (loop->tick != NULL) event_free(loop->tick);
    loop->tick = NULL;
    if (handler == NULL) return;
    int64_t tick_us = gap_us / 4;
    if (tick_us < LOOP_TICK_US_MIN) tick_us = LOOP_TICK_US_MIN;
    if (tick_us > LOOP_TICK_US_MAX) tick_us = LOOP_TICK_US_MAX;
    loop->tick_us = tick_us;
    loop->tick_seen_us = loop_now_us(&loop->base);
    loop->gap_us = gap_us;
    loop->gap_handler = handler;
    loop->gap_context = context;
    loop->tick = evtimer_new(loop->events, loop_tick_fired, loop);
    ASSERT(loop->tick != NULL);
    event_priority_set(loop->tick, LOOP_PRIORITY_TICK);
    struct timeval first = loop_timeval(tick_us);
    evtimer_add(loop->tick, &first);
}

struct loop_event_stats loop_event_stats(const struct loop_event *loop)
{
    return loop->stats;
}
