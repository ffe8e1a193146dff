/* loop_event_test.c: timers, deferred calls, steps and gaps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fixture.h"

static char trace[256];

static void add(void *context)
{
    strcat(trace, context);
}

static void begin(void)
{
    trace[0] = '\0';
}

struct timed {
    struct loop_event *loop;
    struct timer *timer;
    int64_t due_us;
    int64_t fired_us;
    int fired;
};

static void note(void *context)
{
    struct timed *timed = context;
    timed->fired_us = loop_now_us(loop_event_interface(timed->loop));
    timed->fired++;
}

static void timers_fire_once_and_never_early(void **state)
{
    (void)state;
    struct loop_event *loop = fixture_loop();
    struct loop *base = loop_event_interface(loop);
    struct timed timed[40];
    for (int i = 0; i < 40; i++) {
        timed[i] = (struct timed){.loop = loop};
        timed[i].timer = timer_new(base, note, &timed[i]);
        timed[i].due_us = loop_now_us(base) + i * 250;
        timer_start(timed[i].timer, i * 250);
    }
    for (int i = 0; i < 40; i++) {
        LOOP_UNTIL(loop, timed[i].fired > 0);
        assert_true(timed[i].fired_us >= timed[i].due_us);
    }
    for (int i = 0; i < 40; i++) {
        assert_int_equal(timed[i].fired, 1);
        timer_free(timed[i].timer);
    }
    loop_event_free(loop);
}

static void start_moves_a_timer_and_stop_stops_it(void **state)
{
    (void)state;
    begin();
    struct loop_event *loop = fixture_loop();
    struct loop *base = loop_event_interface(loop);
    struct timer *moved = timer_new(base, add, "moved "), *stopped = timer_new(base, add, "no ");
    struct timer *last = timer_new(base, add, "last ");
    timer_start(moved, 3600000000);
    timer_start(stopped, 1000);
    timer_start(moved, 2000);
    timer_start(last, 30000);
    timer_stop(stopped);
    LOOP_UNTIL(loop, strstr(trace, "last") != NULL);
    assert_string_equal(trace, "moved last ");
    timer_free(moved);
    timer_free(stopped);
    timer_free(last);
    timer_free(NULL);
    loop_event_free(loop);
}

static void free_own_timer(void *context)
{
    struct timed *timed = context;
    timer_free(timed->timer);
    timed->fired++;
}

static void timer_may_be_freed_by_its_own_call(void **state)
{
    (void)state;
    struct loop_event *loop = fixture_loop();
    struct timed timed = {.loop = loop};
    timed.timer = timer_new(loop_event_interface(loop), free_own_timer, &timed);
    timer_start(timed.timer, 0);
    LOOP_UNTIL(loop, timed.fired == 1);
    loop_event_free(loop);
}

static void defer_two(void *context)
{
    struct loop *loop = context;
    loop_defer(loop, add, "b ");
    loop_defer(loop, add, "c ");
    add("a ");
}

static void deferred_calls_keep_order_and_never_nest(void **state)
{
    (void)state;
    begin();
    struct loop_event *loop = fixture_loop();
    loop_defer(loop_event_interface(loop), defer_two, loop_event_interface(loop));
    loop_defer(loop_event_interface(loop), add, "x ");
    assert_string_equal(trace, "");
    fixture_turn(loop);
    assert_string_equal(trace, "a x b c ");
    loop_event_free(loop);
}

static void deferred_calls_survive_growth_and_run_at_the_loops_end(void **state)
{
    (void)state;
    begin();
    struct loop_event *loop = fixture_loop();
    for (int i = 0; i < 100; i++)
        loop_defer(loop_event_interface(loop), add, "y");
    loop_event_free(loop);
    assert_int_equal(strlen(trace), 100);
}

static void stop_it(void *context)
{
    loop_event_stop(context);
}

static void run_goes_on_until_stopped_and_can_be_repeated(void **state)
{
    (void)state;
    struct loop_event *loop = fixture_loop();
    for (int i = 0; i < 2; i++) {
        loop_defer(loop_event_interface(loop), stop_it, loop);
        loop_event_run(loop);
    }
    loop_event_free(loop);
}

/* A clock that can be put forward. */
static int64_t skipped_us;

static int64_t skipping_monotonic_us(void *context)
{
    (void)context;
    return clock_monotonic_us(&clock_system) + skipped_us;
}

static void skip_20_ms(void *context)
{
    (void)context;
    skipped_us += 20000;
}

static void slow_steps_are_counted(void **state)
{
    (void)state;
    struct loop_event *loop = fixture_loop();
    loop_event_interface(loop)->clock.monotonic_us = skipping_monotonic_us;
    uint64_t before = loop_event_stats(loop).steps_slow;
    loop_defer(loop_event_interface(loop), skip_20_ms, NULL);
    fixture_turn(loop);
    assert_int_equal(loop_event_stats(loop).steps_slow, before + 1);
    assert_true(loop_event_stats(loop).step_longest_us >= 20000);
    loop_event_free(loop);
}

static int64_t gap_seen_us;

static void saw_gap(void *context, int64_t gap_us)
{
    gap_seen_us = gap_us;
    add(context);
}

static void gap_is_seen_after_the_clock_jumped(void **state)
{
    (void)state;
    begin();
    struct loop_event *loop = fixture_loop();
    loop_event_interface(loop)->clock.monotonic_us = skipping_monotonic_us;
    loop_event_watch_gaps(loop, 500000, saw_gap, "gap ");
    skipped_us += 60000000;
    LOOP_UNTIL(loop, strstr(trace, "gap") != NULL);
    assert_true(gap_seen_us > 59000000 && gap_seen_us < 70000000);
    assert_int_equal(loop_event_stats(loop).gaps, 1);
    loop_event_free(loop);
}

/* A process that stood still: the only way to have one is to stand still. */
static void stand_still(void *context)
{
    (void)context;
    usleep(120000);
}

static void gap_is_told_before_what_became_due_during_it(void **state)
{
    (void)state;
    begin();
    struct loop_event *loop = fixture_loop();
    struct loop *base = loop_event_interface(loop);
    struct timer *timers[8];
    loop_event_watch_gaps(loop, 50000, saw_gap, "gap ");
    for (int i = 0; i < 8; i++) {
        timers[i] = timer_new(base, add, "due ");
        timer_start(timers[i], 20000);
    }
    loop_defer(base, stand_still, NULL);
    LOOP_UNTIL(loop, strlen(trace) >= 36);
    assert_string_equal(trace, "gap due due due due due due due due ");
    for (int i = 0; i < 8; i++)
        timer_free(timers[i]);
    loop_event_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timers_fire_once_and_never_early),
        cmocka_unit_test(start_moves_a_timer_and_stop_stops_it),
        cmocka_unit_test(timer_may_be_freed_by_its_own_call),
        cmocka_unit_test(deferred_calls_keep_order_and_never_nest),
        cmocka_unit_test(deferred_calls_survive_growth_and_run_at_the_loops_end),
        cmocka_unit_test(run_goes_on_until_stopped_and_can_be_repeated),
        cmocka_unit_test(slow_steps_are_counted),
        cmocka_unit_test(gap_is_seen_after_the_clock_jumped),
        cmocka_unit_test(gap_is_told_before_what_became_due_during_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
