/* alarms_test.c: what the status tells of what went wrong.  decisions 25. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "replication/alarms.h"

#define SECOND INT64_C(1000000)

static struct alarms alarms;

static int reset(void **state)
{
    (void)state;
    alarms = (struct alarms){0};
    return 0;
}

static const struct alarm_entry *newest(void)
{
    return &alarms.entries[alarms.entry_count - 1];
}

static void alternating_alarms_leave_the_others_in_the_book(void **state)
{
    (void)state;
    (void)alarms_raise(&alarms, ALARM_CORRUPT_RANGE, "orders/3", 0);
    for (int i = 1; i <= 100; i++) {
        (void)alarms_raise(&alarms, ALARM_WRONG_GROUP, "replica 2", i * SECOND);
        (void)alarms_raise(&alarms, ALARM_WRONG_REPLICA, "replica 3", i * SECOND);
    }
    assert_int_equal(alarms.entry_count, 3);
    assert_string_equal(alarms.entries[0].text, "orders/3");
    assert_int_equal(newest()->count, 100);
    assert_int_equal(newest()->raised_us, 100 * SECOND);
}

static void many_texts_of_a_kind_push_out_their_own_oldest(void **state)
{
    (void)state;
    (void)alarms_raise(&alarms, ALARM_SYNC_FAILED, "disk", 0);
    for (int i = 0; i < 100; i++) {
        char text[32];
        snprintf(text, sizeof(text), "orders/%d", i);
        (void)alarms_raise(&alarms, ALARM_CORRUPT_RANGE, text, i);
    }
    assert_int_equal(alarms.entry_count, ALARM_ENTRIES_MAX);
    assert_string_equal(alarms.entries[0].text, "disk");
    assert_string_equal(alarms.entries[1].text, "orders/85");
    assert_string_equal(newest()->text, "orders/99");
    assert_int_equal(alarms.counts[ALARM_CORRUPT_RANGE], 100);
}

static void one_of_each_kind_always_stays(void **state)
{
    (void)state;
    for (int kind = 0; kind < ALARM_COUNT; kind++)
        (void)alarms_raise(&alarms, (enum node_alarm)kind, "first", 0);
    for (int i = 0; i < 1000; i++) {
        char text[32];
        snprintf(text, sizeof(text), "%d", i);
        (void)alarms_raise(&alarms, (enum node_alarm)(i % ALARM_COUNT), text, i);
    }
    bool seen[ALARM_COUNT] = {false};
    for (uint32_t i = 0; i < alarms.entry_count; i++)
        seen[alarms.entries[i].kind] = true;
    for (int kind = 0; kind < ALARM_COUNT; kind++)
        assert_true(seen[kind]);
}

static void repeated_alarm_is_said_again_after_a_while_only(void **state)
{
    (void)state;
    assert_true(alarms_raise(&alarms, ALARM_WRONG_GROUP, "a", 0));
    assert_true(alarms_raise(&alarms, ALARM_WRONG_GROUP, "b", SECOND));
    assert_false(alarms_raise(&alarms, ALARM_WRONG_GROUP, "a", 9 * SECOND));
    assert_true(alarms_raise(&alarms, ALARM_WRONG_GROUP, "a", 10 * SECOND));
    assert_false(alarms_raise(&alarms, ALARM_WRONG_GROUP, "a", 19 * SECOND));
    assert_int_equal(alarms.counts[ALARM_WRONG_GROUP], 5);
}

static void every_kind_has_a_name_of_its_own(void **state)
{
    (void)state;
    for (int kind = 0; kind < ALARM_COUNT; kind++)
        assert_int_equal(alarm_of_name(alarm_name((enum node_alarm)kind)), kind);
    assert_int_equal(alarm_of_name("no such thing"), ALARM_OTHER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(alternating_alarms_leave_the_others_in_the_book, reset),
        cmocka_unit_test_setup(many_texts_of_a_kind_push_out_their_own_oldest, reset),
        cmocka_unit_test_setup(one_of_each_kind_always_stays, reset),
        cmocka_unit_test_setup(repeated_alarm_is_said_again_after_a_while_only, reset),
        cmocka_unit_test_setup(every_kind_has_a_name_of_its_own, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
