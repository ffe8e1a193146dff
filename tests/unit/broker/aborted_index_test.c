/* aborted_index_test.c: which aborted transactions a reader is told of (kafka-listener.md 5.3). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "broker/aborted_index.h"

static struct aborted_index aborted;

static int setup(void **state)
{
    (void)state;
    aborted = (struct aborted_index){0};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    aborted_index_deinit(&aborted);
    return 0;
}

static void add(int64_t producer_id, int64_t first_offset, int64_t marker_offset,
                int64_t last_stable_offset)
{
    const struct aborted_transaction transaction = {producer_id, first_offset, marker_offset,
                                                    last_stable_offset};
    assert_true(aborted_index_reserve(&aborted));
    aborted_index_add(&aborted, &transaction);
}

/* Producers found, as digits of one number in the order found. */
static int64_t found(int64_t offset, int64_t end_offset)
{
    struct aborted_transaction out[8];
    uint32_t count = aborted_index_find(&aborted, offset, end_offset, out, 8);
    int64_t digits = 0;
    assert_true(count <= 8);
    for (uint32_t i = 0; i < count; i++)
        digits = digits * 10 + out[i].producer_id;
    return digits;
}

static void a_transaction_is_found_from_its_first_batch_to_its_marker(void **state)
{
    (void)state;
    add(7, 10, 20, 21);
    assert_int_equal(found(0, 10), 0);  /* all below its first batch */
    assert_int_equal(found(0, 11), 7);  /* touches its first batch */
    assert_int_equal(found(15, 16), 7); /* in the midst of it */
    assert_int_equal(found(20, 30), 7); /* begins at the marker */
    assert_int_equal(found(21, 30), 0); /* its later data is not to be dropped */
}

static void nothing_read_is_touched_by_nothing(void **state)
{
    (void)state;
    add(7, 10, 20, 21);
    assert_int_equal(found(15, 15), 0);
}

static void several_of_one_producer_are_all_told(void **state)
{
    (void)state;
    add(7, 10, 12, 13);
    add(7, 14, 16, 17);
    add(7, 18, 19, 20);
    assert_int_equal(found(11, 18), 77);
    assert_int_equal(found(0, 100), 777);
}

/* 1 spans 2 and 3: ends last, begins first. */
static void a_long_one_around_short_ones_is_found(void **state)
{
    (void)state;
    add(2, 11, 12, 10);
    add(3, 20, 21, 10);
    add(1, 10, 30, 31);
    assert_int_equal(found(13, 15), 1);
    assert_int_equal(found(13, 21), 31);
    assert_int_equal(found(0, 11), 1);
}

static void a_search_ends_where_nothing_later_can_begin(void **state)
{
    (void)state;
    add(1, 0, 5, 6);
    add(9, 2, 8, 9); /* begins below 6: no log gives that; an endless search would find it */
    assert_int_equal(found(0, 6), 1);
    assert_int_equal(found(0, 7), 19);
}

static void more_than_there_is_room_for_are_counted(void **state)
{
    (void)state;
    struct aborted_transaction out[1];
    add(1, 0, 1, 2);
    add(2, 2, 3, 4);
    assert_int_equal(aborted_index_find(&aborted, 0, 4, NULL, 0), 2);
    assert_int_equal(aborted_index_find(&aborted, 0, 4, out, 1), 2);
    assert_int_equal(out[0].producer_id, 1);
}

static void a_cut_takes_those_whose_marker_went(void **state)
{
    (void)state;
    add(1, 0, 5, 6);
    add(2, 1, 8, 9);
    aborted_index_truncate(&aborted, 9);
    assert_int_equal(found(0, 9), 12);
    aborted_index_truncate(&aborted, 8);
    assert_int_equal(found(0, 8), 1);
    add(3, 6, 8, 9);
    assert_int_equal(found(0, 9), 13);
}

static void a_log_start_takes_those_whose_marker_is_below(void **state)
{
    (void)state;
    for (int i = 0; i < 9; i++)
        add(i + 1, 2 * i, 2 * i + 1, 2 * i + 2);
    aborted_index_prune(&aborted, 13);
    assert_int_equal(aborted.count, 3);
    assert_int_equal(found(13, 100), 789);
    aborted_index_prune(&aborted, 13);
    assert_int_equal(aborted.count, 3);
    aborted_index_prune(&aborted, 1000);
    assert_int_equal(aborted.count, 0);
}

static bool holds(uint32_t *at, int64_t producer_id, int64_t base_offset)
{
    return aborted_transactions_hold(aborted.entries, aborted.count, at, producer_id, base_offset);
}

static void a_reader_drops_what_lies_between_first_batch_and_marker(void **state)
{
    (void)state;
    uint32_t at = 0;
    add(2, 11, 13, 10);
    add(1, 10, 15, 16);
    add(2, 20, 22, 23);
    assert_false(holds(&at, 1, 9));
    assert_true(holds(&at, 1, 10));
    assert_false(holds(&at, 3, 10));
    assert_true(holds(&at, 2, 11));
    assert_true(holds(&at, 1, 12));
    assert_false(holds(&at, 2, 14)); /* its next transaction, which was committed */
    assert_true(holds(&at, 1, 14));
    assert_false(holds(&at, 1, 16));
    assert_true(holds(&at, 2, 21));
    assert_false(holds(&at, 2, 23));
}

int main(void)
{
#define CLAIM(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CLAIM(a_transaction_is_found_from_its_first_batch_to_its_marker),
        CLAIM(nothing_read_is_touched_by_nothing),
        CLAIM(several_of_one_producer_are_all_told),
        CLAIM(a_long_one_around_short_ones_is_found),
        CLAIM(a_search_ends_where_nothing_later_can_begin),
        CLAIM(more_than_there_is_room_for_are_counted),
        CLAIM(a_cut_takes_those_whose_marker_went),
        CLAIM(a_reader_drops_what_lies_between_first_batch_and_marker),
        CLAIM(a_log_start_takes_those_whose_marker_is_below),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
