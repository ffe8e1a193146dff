/* resolver_test.c: look-ups one at a time, and cancelled ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fixture.h"
#include "io/executor_threads.h"
#include "io/resolver.h"

struct seen {
    char order[64];
    enum status last;
    unsigned count;
};

struct lookup {
    struct seen *seen;
    const char *name;
};

static void found(void *context, enum status status, const struct resolved *resolved)
{
    struct lookup *lookup = context;
    strcat(lookup->seen->order, lookup->name);
    lookup->seen->last = status;
    lookup->seen->count = status == STATUS_OK ? resolved->count : 0;
}

struct home {
    struct loop_event *loop;
    struct executor *executor;
    struct resolver *resolver;
    struct seen seen;
};

static struct home *home_new(void)
{
    struct home *home = calloc(1, sizeof(*home));
    home->loop = fixture_loop();
    assert_int_equal(executor_threads_new(home->loop, &home->executor, NULL), STATUS_OK);
    home->resolver = resolver_new(home->executor);
    return home;
}

static void home_free(struct home *home)
{
    resolver_free(home->resolver);
    executor_threads_free(home->executor);
    loop_event_free(home->loop);
    free(home);
}

static const struct address local = {.host = "127.0.0.1", .port = 80};

static void lookups_end_in_order_from_the_loop(void **state)
{
    (void)state;
    struct home *home = home_new();
    struct lookup a = {&home->seen, "a"}, b = {&home->seen, "b"}, c = {&home->seen, "c"};
    resolver_start(home->resolver, &local, found, &a);
    resolver_start(home->resolver, &local, found, &b);
    resolver_start(home->resolver, &local, found, &c);
    assert_string_equal(home->seen.order, "");
    assert_int_equal(executor_threads_pending(home->executor), 1);
    LOOP_UNTIL(home->loop, strlen(home->seen.order) == 3);
    assert_string_equal(home->seen.order, "abc");
    assert_int_equal(home->seen.last, STATUS_OK);
    assert_int_equal(home->seen.count, 1);
    home_free(home);
}

static void cancelled_lookups_are_silent_and_the_rest_goes_on(void **state)
{
    (void)state;
    struct home *home = home_new();
    struct lookup a = {&home->seen, "a"}, b = {&home->seen, "b"}, c = {&home->seen, "c"};
    struct resolve *running = resolver_start(home->resolver, &local, found, &a);
    struct resolve *queued = resolver_start(home->resolver, &local, found, &b);
    resolve_cancel(queued);
    resolve_cancel(running);
    resolve_cancel(NULL);
    resolver_start(home->resolver, &local, found, &c);
    LOOP_UNTIL(home->loop, home->seen.order[0] != 0);
    assert_string_equal(home->seen.order, "c");
    home_free(home);
}

static void unknown_names_are_not_found(void **state)
{
    (void)state;
    struct home *home = home_new();
    struct lookup a = {&home->seen, "a"};
    struct address nowhere = {.host = "no such host", .port = 1};
    resolver_start(home->resolver, &nowhere, found, &a);
    LOOP_UNTIL(home->loop, home->seen.order[0] != 0);
    assert_int_equal(home->seen.last, STATUS_NOT_FOUND);
    home_free(home);
}

static void freeing_with_lookups_under_way_is_silent(void **state)
{
    (void)state;
    struct home *home = home_new();
    struct lookup a = {&home->seen, "a"}, b = {&home->seen, "b"};
    resolver_start(home->resolver, &local, found, &a);
    resolver_start(home->resolver, &local, found, &b);
    struct seen *seen = &home->seen;
    resolver_free(home->resolver);
    home->resolver = NULL;
    executor_threads_drain(home->executor);
    assert_string_equal(seen->order, "");
    home_free(home);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lookups_end_in_order_from_the_loop),
        cmocka_unit_test(cancelled_lookups_are_silent_and_the_rest_goes_on),
        cmocka_unit_test(unknown_names_are_not_found),
        cmocka_unit_test(freeing_with_lookups_under_way_is_silent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
