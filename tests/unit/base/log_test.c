/* log_test.c: levels, limits, and lines that stay lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

static char lines[8][512];
static int line_count;

static void collect(void *context, enum log_level level, const char *line)
{
    (void)context;
    (void)level;
    snprintf(lines[line_count++ % 8], sizeof(lines[0]), "%s", line);
}

static void begin(enum log_level level)
{
    line_count = 0;
    log_set_sink(collect, NULL);
    log_set_level(level);
}

static void lines_below_the_level_are_not_written(void **state)
{
    (void)state;
    begin(LOG_WARN);
    log_info("no");
    log_debug("no");
    log_error("code=%d", 7);
    assert_int_equal(line_count, 1);
    assert_string_equal(lines[0], "code=7");
}

static void control_characters_do_not_break_the_line(void **state)
{
    (void)state;
    begin(LOG_INFO);
    log_info("client=%s", "a\nERROR b\033[1m");
    assert_string_equal(lines[0], "client=a?ERROR b?[1m");
}

static void limited_lines_say_how_many_were_held_back(void **state)
{
    (void)state;
    begin(LOG_INFO);
    struct log_limiter limiter = {0};
    for (int64_t now = 0; now <= 10; now++)
        log_limited(&limiter, now, 10, LOG_WARN, "n=%d", 1);
    assert_int_equal(line_count, 2);
    assert_string_equal(lines[0], "n=1");
    assert_string_equal(lines[1], "n=1 suppressed=9");
}

static void levels_are_parsed_in_any_case(void **state)
{
    (void)state;
    enum log_level level;
    assert_true(log_level_parse("warn", &level));
    assert_int_equal(level, LOG_WARN);
    assert_false(log_level_parse("loud", &level));
}

static void default_sink_writes_one_line_with_time_and_level(void **state)
{
    (void)state;
    int ends[2], saved = dup(2);
    char text[256] = "";
    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], 2);
    log_set_sink(NULL, NULL);
    log_warn("isr_shrink partition=%s", "orders/3");
    dup2(saved, 2);
    close(saved);
    close(ends[1]);
    ssize_t got = read(ends[0], text, sizeof(text) - 1);
    close(ends[0]);
    assert_true(got > 0);
    assert_int_equal(text[got - 1], '\n');
    assert_non_null(strstr(text, "Z WARN  isr_shrink partition=orders/3\n"));
    assert_int_equal(text[4], '-');
    assert_int_equal(text[10], 'T');
}

static void lines_go_to_both_descriptors_or_to_none(void **state)
{
    (void)state;
    int one[2], two[2];
    char text[256];
    assert_int_equal(pipe(one), 0);
    assert_int_equal(pipe(two), 0);
    log_set_sink(NULL, NULL);
    log_set_descriptors(-1, -1);
    log_warn("nobody");
    log_set_descriptors(one[1], two[1]);
    log_warn("both");
    log_set_descriptors(2, -1);
    close(one[1]);
    close(two[1]);
    for (int i = 0; i < 2; i++) {
        int from = i == 0 ? one[0] : two[0];
        ssize_t got = read(from, text, sizeof(text) - 1);
        assert_true(got > 0);
        text[got] = '\0';
        assert_non_null(strstr(text, "WARN  both\n"));
        assert_null(strstr(text, "nobody"));
        close(from);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_below_the_level_are_not_written),
        cmocka_unit_test(control_characters_do_not_break_the_line),
        cmocka_unit_test(limited_lines_say_how_many_were_held_back),
        cmocka_unit_test(levels_are_parsed_in_any_case),
        cmocka_unit_test(default_sink_writes_one_line_with_time_and_level),
        cmocka_unit_test(lines_go_to_both_descriptors_or_to_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
