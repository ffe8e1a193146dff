/* What a line of progress says. */
#include "cli/progress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void assert_text(struct progress_view view, const char *expected)
{
    char text[PROGRESS_TEXT_BYTES];
    progress_text(&view, text);
    assert_string_equal(text, expected);
}

static void a_known_end_tells_the_time_left(void **state)
{
    (void)state;
    assert_text((struct progress_view){"records", 1000, 4000, 100000, -1, 2},
                "1000 of 4000 records, 25 %, 0.1 MB, 500 records/s, 0:06 left");
    assert_text((struct progress_view){"records", 1, 10001, -1, -1, 1},
                "1 of 10001 records, 0 %, 1 records/s, 2:46:40 left");
    assert_text((struct progress_view){"records", 4000, 4000, -1, -1, 2},
                "4000 of 4000 records, 100 %, 2000 records/s");
}

static void a_fraction_of_something_else_does_so_too(void **state)
{
    (void)state;
    assert_text((struct progress_view){"records", 500, -1, 2000000, 0.5, 5},
                "500 records, 50 %, 2.0 MB, 100 records/s, 0:05 left");
}

static void an_unknown_end_tells_the_rate_and_the_sum(void **state)
{
    (void)state;
    assert_text((struct progress_view){"records", 500, -1, 2000000, -1, 5},
                "500 records, 2.0 MB, 100 records/s");
}

static void nothing_is_guessed_at_once_or_from_nothing(void **state)
{
    (void)state;
    assert_text((struct progress_view){"records", 10, 1000, -1, -1, 0.5},
                "10 of 1000 records, 1 %, 20 records/s");
    assert_text((struct progress_view){"records", 0, 1000, -1, -1, 5},
                "0 of 1000 records, 0 %, 0 records/s");
    assert_text((struct progress_view){"records", 0, 0, -1, -1, 0}, "0 of 0 records");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_known_end_tells_the_time_left),
        cmocka_unit_test(a_fraction_of_something_else_does_so_too),
        cmocka_unit_test(an_unknown_end_tells_the_rate_and_the_sum),
        cmocka_unit_test(nothing_is_guessed_at_once_or_from_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
