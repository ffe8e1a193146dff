/* epoch_history_test.c: where epochs began, and what is answered about it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "log/epoch_history.h"

static void assert_end(const struct epoch_history *history, int32_t asked, int32_t epoch,
                       int64_t end_offset)
{
    struct epoch_end end = epoch_history_end_of(history, asked, 1000);
    assert_int_equal(end.epoch, epoch);
    assert_int_equal(end.end_offset, end_offset);
}

static void empty_history_knows_nothing_but_the_log_end(void **state)
{
    struct epoch_history history;
    (void)state;
    epoch_history_init(&history);
    assert_int_equal(epoch_history_latest(&history), -1);
    assert_end(&history, 3, -1, 1000);
    assert_int_equal(epoch_history_at(&history, 0), -1);
    assert_false(epoch_history_assign(&history, -1, 0));
    epoch_history_deinit(&history);
}

static void epoch_zero_is_an_epoch(void **state)
{
    struct epoch_history history;
    (void)state;
    epoch_history_init(&history);
    assert_true(epoch_history_assign(&history, 0, 0));
    assert_int_equal(epoch_history_latest(&history), 0);
    assert_true(epoch_history_has(&history, 0));
    assert_end(&history, 0, 0, 1000);
    epoch_history_deinit(&history);
}

static void an_epoch_ends_where_the_next_one_began(void **state)
{
    struct epoch_history history;
    (void)state;
    epoch_history_init(&history);
    epoch_history_assign(&history, 2, 10);
    epoch_history_assign(&history, 4, 50);
    epoch_history_assign(&history, 9, 70);
    assert_end(&history, 2, 2, 50);
    assert_end(&history, 3, 2, 50); /* 3 wrote nothing here: the largest known below it */
    assert_end(&history, 4, 4, 70);
    assert_end(&history, 8, 4, 70);
    assert_end(&history, 9, 9, 1000);
    assert_end(&history, 99, 9, 1000);
    assert_end(&history, 1, 1, 10); /* before the first: nothing of it is here */
    assert_int_equal(epoch_history_at(&history, 9), -1);
    assert_int_equal(epoch_history_at(&history, 10), 2);
    assert_int_equal(epoch_history_at(&history, 69), 4);
    assert_int_equal(epoch_history_at(&history, 70), 9);
    epoch_history_deinit(&history);
}

static void empty_epochs_are_kept_and_consecutive_ones_share_an_entry(void **state)
{
    struct epoch_history history;
    (void)state;
    epoch_history_init(&history);
    epoch_history_assign(&history, 3, 100);
    epoch_history_assign(&history, 4, 100);
    epoch_history_assign(&history, 5, 100);
    assert_int_equal(history.count, 1);
    epoch_history_assign(&history, 8, 100);
    assert_int_equal(history.count, 2); /* 6 and 7 are not ours to claim */
    assert_false(epoch_history_has(&history, 6));
    assert_end(&history, 3, 3, 100);
    assert_end(&history, 5, 5, 100);
    assert_end(&history, 7, 5, 100);
    assert_end(&history, 8, 8, 1000);
    assert_false(epoch_history_assign(&history, 8, 200));
    assert_false(epoch_history_assign(&history, 5, 200));
    epoch_history_deinit(&history);
}

static void cutting_the_end_takes_entries_at_or_past_it(void **state)
{
    struct epoch_history history;
    (void)state;
    epoch_history_init(&history);
    epoch_history_assign(&history, 1, 0);
    epoch_history_assign(&history, 2, 40);
    epoch_history_assign(&history, 3, 40);
    epoch_history_truncate_end(&history, 40);
    assert_int_equal(epoch_history_latest(&history), 1);
    epoch_history_truncate_end(&history, 0);
    assert_int_equal(history.count, 0);
    epoch_history_deinit(&history);
}

static void cutting_epochs_splits_a_shared_entry(void **state)
{
    struct epoch_history history;
    (void)state;
    epoch_history_init(&history);
    epoch_history_assign(&history, 1, 0);
    epoch_history_assign(&history, 2, 40);
    epoch_history_assign(&history, 3, 40);
    epoch_history_assign(&history, 7, 90);
    epoch_history_truncate_epochs(&history, 2);
    assert_int_equal(epoch_history_latest(&history), 2);
    assert_int_equal(history.count, 2);
    epoch_history_truncate_epochs(&history, 0);
    assert_int_equal(history.count, 0);
    epoch_history_deinit(&history);
}

static void raising_the_start_drops_what_lies_below_and_moves_what_covers_it(void **state)
{
    struct epoch_history history;
    (void)state;
    epoch_history_init(&history);
    epoch_history_assign(&history, 1, 0);
    epoch_history_assign(&history, 2, 40);
    epoch_history_assign(&history, 5, 80);
    epoch_history_truncate_start(&history, 60);
    assert_int_equal(history.count, 2);
    assert_int_equal(history.entries[0].first_epoch, 2);
    assert_int_equal(history.entries[0].start_offset, 60);
    epoch_history_truncate_start(&history, 80);
    assert_int_equal(history.count, 1);
    epoch_history_truncate_start(&history, 500);
    assert_int_equal(history.count, 1);
    assert_int_equal(epoch_history_latest(&history), 5);
    assert_int_equal(history.entries[0].start_offset, 500);
    epoch_history_deinit(&history);
}

static void copies_are_equal_until_one_changes(void **state)
{
    struct epoch_history a, b;
    (void)state;
    epoch_history_init(&a);
    epoch_history_init(&b);
    epoch_history_assign(&a, 1, 0);
    epoch_history_copy(&b, &a);
    assert_true(epoch_history_equal(&a, &b));
    epoch_history_assign(&b, 2, 9);
    assert_false(epoch_history_equal(&a, &b));
    epoch_history_deinit(&a);
    epoch_history_deinit(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_history_knows_nothing_but_the_log_end),
        cmocka_unit_test(epoch_zero_is_an_epoch),
        cmocka_unit_test(an_epoch_ends_where_the_next_one_began),
        cmocka_unit_test(empty_epochs_are_kept_and_consecutive_ones_share_an_entry),
        cmocka_unit_test(cutting_the_end_takes_entries_at_or_past_it),
        cmocka_unit_test(cutting_epochs_splits_a_shared_entry),
        cmocka_unit_test(raising_the_start_drops_what_lies_below_and_moves_what_covers_it),
        cmocka_unit_test(copies_are_equal_until_one_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
