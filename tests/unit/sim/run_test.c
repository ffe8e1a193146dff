/* Whole runs: a group is founded and serves, and a seed replays event for event. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/run.h"

static void play(uint64_t seed, const char *scenario, int64_t until_us,
                 struct sim_run_result *result)
{
    const struct sim_run_options options = {
        .seed = seed, .scenario = scenario, .until_us = until_us};
    sim_run(&options, result);
}

static void a_calm_group_serves_and_comes_to_rest(void **state)
{
    static struct sim_run_result result;
    (void)state;
    play(2, "calm", 0, &result);
    if (result.failed) fail_msg("%s: %s", result.invariant, result.text);
    assert_true(result.acknowledged > 100);
    assert_true(result.read > 100);
}

static void a_seed_replays_event_for_event(void **state)
{
    static struct sim_run_result first, second;
    (void)state;
    for (uint64_t seed = 11; seed < 14; seed++) {
        play(seed, NULL, 8000000, &first);
        play(seed, NULL, 8000000, &second);
        assert_int_equal(first.trace_hash, second.trace_hash);
        assert_int_equal(first.events, second.events);
        assert_int_equal(first.acknowledged, second.acknowledged);
    }
}

static void a_group_survives_the_death_of_its_leaders(void **state)
{
    static struct sim_run_result result;
    (void)state;
    play(3, "leader-kills", 6000000, &result);
    if (result.failed) fail_msg("%s: %s", result.invariant, result.text);
}

static void a_static_group_replays_and_is_caught_up(void **state)
{
    static struct sim_run_result first, second;
    const struct sim_run_options options = {.seed = 6, .static_mode = true};
    (void)state;
    sim_run(&options, &first);
    sim_run(&options, &second);
    if (first.failed) fail_msg("%s: %s", first.invariant, first.text);
    assert_true(first.acknowledged > 100 && first.read > 100);
    assert_int_equal(first.trace_hash, second.trace_hash);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_calm_group_serves_and_comes_to_rest),
        cmocka_unit_test(a_seed_replays_event_for_event),
        cmocka_unit_test(a_group_survives_the_death_of_its_leaders),
        cmocka_unit_test(a_static_group_replays_and_is_caught_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
