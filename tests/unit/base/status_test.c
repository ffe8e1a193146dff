/* status_test.c: every status has a text; errors carry causes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/status.h"

static void every_status_has_a_text_of_its_own(void **state)
{
    (void)state;
    for (int i = 0; i < STATUS_COUNT; i++) {
        assert_true(strlen(status_text((enum status)i)) > 0);
        for (int j = 0; j < i; j++) {
            assert_string_not_equal(status_text((enum status)i), status_text((enum status)j));
        }
    }
    assert_string_equal(status_text((enum status)9999), "unknown status");
    assert_false(status_is_retriable((enum status)9999));
}

static void success_and_damage_are_not_retriable_and_time_is(void **state)
{
    (void)state;
    assert_false(status_is_retriable(STATUS_OK));
    assert_false(status_is_retriable(STATUS_CORRUPT));
    assert_false(status_is_retriable(STATUS_IO));
    assert_true(status_is_retriable(STATUS_TIMEOUT));
    assert_true(status_is_retriable(STATUS_NOT_LEADER));
}

static void error_set_returns_its_status_and_takes_no_error(void **state)
{
    (void)state;
    struct error error;
    assert_int_equal(error_set(&error, STATUS_LIMIT, "%d of %d", 3, 2), STATUS_LIMIT);
    assert_int_equal(error.status, STATUS_LIMIT);
    assert_string_equal(error.text, "3 of 2");
    assert_int_equal(error_set(NULL, STATUS_IO, "x"), STATUS_IO);
    error_prefix(NULL, "x");
}

static void prefixes_stack_up_in_front(void **state)
{
    (void)state;
    struct error error;
    error_set(&error, STATUS_IO, "append: no space left");
    error_prefix(&error, "%s.log", "0042");
    error_prefix(&error, "orders/%d", 3);
    assert_string_equal(error.text, "orders/3: 0042.log: append: no space left");
}

static void error_may_be_set_from_its_own_text(void **state)
{
    (void)state;
    struct error error;
    error_set(&error, STATUS_IO, "inner");
    error_set(&error, STATUS_CORRUPT, "outer (%s)", error.text);
    assert_string_equal(error.text, "outer (inner)");
}

static void long_texts_are_cut_not_overrun(void **state)
{
    (void)state;
    struct error error;
    char text[1000];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = 0;
    error_set(&error, STATUS_IO, "%s", text);
    assert_int_equal(strlen(error.text), sizeof(error.text) - 1);
    error_prefix(&error, "%s", text);
    assert_int_equal(strlen(error.text), sizeof(error.text) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_a_text_of_its_own),
        cmocka_unit_test(success_and_damage_are_not_retriable_and_time_is),
        cmocka_unit_test(error_set_returns_its_status_and_takes_no_error),
        cmocka_unit_test(prefixes_stack_up_in_front),
        cmocka_unit_test(error_may_be_set_from_its_own_text),
        cmocka_unit_test(long_texts_are_cut_not_overrun),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
