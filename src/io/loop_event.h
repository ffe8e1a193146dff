/* loop_event.h: the event loop of a real broker, on libevent.
 *
 * One thread runs it and owns everything on it; no call here may come from another thread. A step
 * is one callback's run: one over 10 ms is logged (limited) and counted. Steps begin and end at
 * loop_event_step_begin() and _end(): timers, deferred calls, finished jobs, streams and HTTP do it
 * themselves; who puts an event of its own on the base does it too.
 *
 * A gap is time in which the loop did not run: a long step, a stopped process, a suspended machine.
 * The gap handler runs before any other callback that became due during it, but for the rest of
 * the callback that was under way (replication.md section 6, "After any gap").                 */
#ifndef MOONMQ_IO_LOOP_EVENT_H
#define MOONMQ_IO_LOOP_EVENT_H

#include <stdint.h>

#include "base/status.h"
#include "io/loop.h"

#define LOOP_EVENT_STEP_SLOW_US 10000

struct event_base;
struct loop_event;

/* Also ignores SIGPIPE for the process: a broken socket is an error code here. */
STATUS_MUST_CHECK
enum status loop_event_new(struct loop_event **out, struct error *error);
/* Everything on the loop is freed before it. NULL is allowed. */
void loop_event_free(struct loop_event *loop);

/* Both valid as long as the loop. */
struct loop *loop_event_interface(struct loop_event *loop);
struct event_base *loop_event_base(struct loop_event *loop);

/* Runs until loop_event_stop(), which any callback may call. Can be run again. */
void loop_event_run(struct loop_event *loop);
void loop_event_stop(struct loop_event *loop);

/* Brackets a step; `what` names it in the log line. begin returns the time it began. */
int64_t loop_event_step_begin(struct loop_event *loop);
void loop_event_step_end(struct loop_event *loop, int64_t began_us, const char *what);

/* Calls `handler` on the loop after the signal came; until the loop is freed. At most 8. */
typedef void (*loop_event_signal_fn)(void *context, int number);
STATUS_MUST_CHECK
enum status loop_event_watch_signal(struct loop_event *loop, int number,
                                    loop_event_signal_fn handler, void *context,
                                    struct error *error);

/* Runs what was deferred so far, as the loop would after this callback; for draining at stop. */
void loop_event_run_deferred(struct loop_event *loop);

typedef void (*loop_event_gap_fn)(void *context, int64_t gap_us);
/* Calls `handler` after every gap longer than `gap_us`. Costs a timer of a quarter of that (5 to
 * 100 ms). One handler; NULL removes it. */
void loop_event_watch_gaps(struct loop_event *loop, int64_t gap_us, loop_event_gap_fn handler,
                           void *context);

struct loop_event_stats {
    uint64_t steps_slow; /* over LOOP_EVENT_STEP_SLOW_US */
    int64_t step_longest_us;
    uint64_t gaps;
    int64_t gap_longest_us;
};
struct loop_event_stats loop_event_stats(const struct loop_event *loop);

#endif
