/* failpoint_test.c: the environment stops, fails or stalls at the k-th passing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/log.h"

#if defined(MOONMQ_FAILPOINTS) || defined(MOONMQ_MUTANTS)

static int errors_logged;

static void count_errors(void *context, enum log_level level, const char *line)
{
    (void)context;
    (void)line;
    if (level == LOG_ERROR) errors_logged++;
}

/* Runs `body` in a child whose environment holds the setting, so that each is read afresh. */
static int in_child(const char *setting, int (*body)(void))
{
    pid_t child = fork();
    if (child == 0) {
        setenv("MOONMQ_FAILPOINTS", setting, 1);
        log_set_sink(count_errors, NULL);
        _exit(body());
    }
    int result = 0;
    waitpid(child, &result, 0);
    return WIFSIGNALED(result) ? -WTERMSIG(result) : WEXITSTATUS(result);
}

static int pass_three(void)
{
    int hits = 0;
    for (int i = 0; i < 3; i++)
        hits = hits * 2 + (FAILPOINT("commit.sync") ? 1 : 0);
    return hits;
}

static int pass_and_count_errors(void)
{
    (void)FAILPOINT("commit.sync");
    return errors_logged;
}

static void error_comes_once_at_the_passing_named(void **state)
{
    (void)state;
    assert_int_equal(in_child("commit.sync=error", pass_three), 4);
    assert_int_equal(in_child("commit.sync#2=error", pass_three), 2);
    assert_int_equal(in_child("commit.sync#1=error,commit.sync#3=error", pass_three), 5);
    assert_int_equal(in_child("segment.roll=error", pass_three), 0);
}

static void kill_is_a_kill(void **state)
{
    (void)state;
    assert_int_equal(in_child("commit.sync#3=kill", pass_three), -SIGKILL);
}

static void stall_goes_on_afterwards(void **state)
{
    (void)state;
    assert_int_equal(in_child("commit.sync=stall:1", pass_three), 0);
}

static void unknown_names_and_actions_are_error_lines(void **state)
{
    (void)state;
    assert_int_equal(in_child("no.such=kill", pass_and_count_errors), 1);
    assert_int_equal(
        in_child("commit.sync=explode,commit.sync#0=kill,commit.sync", pass_and_count_errors), 3);
}

static bool fail_segment_roll(void *context, const char *name)
{
    ++*(int *)context;
    return strcmp(name, "segment.roll") == 0;
}

static void handler_stands_in_for_the_environment(void **state)
{
    (void)state;
    int calls = 0;
    failpoint_set_handler(fail_segment_roll, &calls);
    assert_true(FAILPOINT("segment.roll"));
    assert_false(FAILPOINT("segment.sync"));
    assert_int_equal(calls, 2);
    failpoint_set_handler(NULL, NULL);
}

static void handler_takes_the_names_of_the_table(void **state)
{
    (void)state;
    size_t count = 0;
    const char *const *names = failpoint_names(&count);
    assert_true(count >= 22);
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(names[i], names[j]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(error_comes_once_at_the_passing_named),
        cmocka_unit_test(kill_is_a_kill),
        cmocka_unit_test(stall_goes_on_afterwards),
        cmocka_unit_test(unknown_names_and_actions_are_error_lines),
        cmocka_unit_test(handler_stands_in_for_the_environment),
        cmocka_unit_test(handler_takes_the_names_of_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 0; /* not compiled in */
}

#endif
