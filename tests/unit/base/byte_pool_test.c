/* byte_pool_test.c: a bound on what many hold together, and that nobody waits for ever. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/byte_pool.h"
#include "base/random.h"

#define MEMBERS 4

struct bench {
    struct byte_pool pool;
    struct byte_pool_member members[MEMBERS];
    int granted[MEMBERS];
};

static void count_grant(void *context)
{
    ++*(int *)context;
}

/* 100 bytes, of which the last 40 are for one at a time. */
static void set_up(struct bench *bench)
{
    *bench = (struct bench){0};
    byte_pool_init(&bench->pool, 100, 40);
    for (int i = 0; i < MEMBERS; i++) {
        bench->members[i].granted = count_grant;
        bench->members[i].context = &bench->granted[i];
    }
}

static bool take(struct bench *bench, int member, size_t bytes)
{
    return byte_pool_take(&bench->pool, &bench->members[member], bytes);
}

static void give_back(struct bench *bench, int member)
{
    byte_pool_give_back(&bench->pool, &bench->members[member]);
}

static void who_gets_no_room_stands_in_line_until_another_gives_back(void **state)
{
    (void)state;
    struct bench bench;
    set_up(&bench);
    assert_true(take(&bench, 0, 30));
    assert_true(take(&bench, 1, 30));
    assert_true(take(&bench, 2, 40)); /* the last part */
    assert_false(take(&bench, 3, 20));
    assert_int_equal(bench.pool.bytes, 100);
    give_back(&bench, 0);
    assert_int_equal(bench.granted[3], 0); /* 70 are held, 60 are for all */
    give_back(&bench, 1);
    assert_int_equal(bench.granted[3], 1);
    assert_int_equal(bench.members[3].bytes, 20);
    assert_int_equal(bench.pool.bytes, 60);
}

static void halves_that_fill_the_pool_become_whole_one_after_the_other(void **state)
{
    (void)state;
    struct bench bench;
    set_up(&bench);
    for (int i = 0; i < 3; i++)
        assert_true(take(&bench, i, 20));
    assert_true(take(&bench, 0, 40));
    assert_false(take(&bench, 1, 40));
    assert_false(take(&bench, 2, 40));
    give_back(&bench, 0);
    assert_int_equal(bench.granted[1], 1);
    give_back(&bench, 1);
    assert_int_equal(bench.granted[2], 1);
    give_back(&bench, 2);
    assert_int_equal(bench.pool.bytes, 0);
}

static void small_ones_do_not_overtake_a_large_one(void **state)
{
    (void)state;
    struct bench bench;
    set_up(&bench);
    assert_true(take(&bench, 0, 40));
    assert_true(take(&bench, 1, 30)); /* the last part */
    assert_false(take(&bench, 2, 40));
    assert_false(take(&bench, 3, 1));
    assert_false(byte_pool_has_room(&bench.pool, 1));
    give_back(&bench, 1);
    assert_int_equal(bench.granted[2], 1);
    assert_int_equal(bench.granted[3], 0);
}

static void who_leaves_the_line_lets_the_next_in(void **state)
{
    (void)state;
    struct bench bench;
    set_up(&bench);
    assert_true(take(&bench, 0, 40));
    assert_true(take(&bench, 1, 40));
    assert_false(take(&bench, 2, 40));
    assert_false(take(&bench, 3, 10));
    give_back(&bench, 2);
    assert_int_equal(bench.granted[2], 0);
    give_back(&bench, 0);
    assert_int_equal(bench.granted[3], 1);
}

static void what_is_charged_keeps_members_waiting(void **state)
{
    (void)state;
    struct bench bench;
    set_up(&bench);
    byte_pool_charge(&bench.pool, 90);
    assert_true(take(&bench, 0, 40)); /* one can always go on */
    assert_false(take(&bench, 1, 10));
    byte_pool_release(&bench.pool, 90);
    assert_int_equal(bench.granted[1], 1);
}

/* Random takers that grow step by step and at times give up. */
static void pool_is_never_overfilled_and_one_can_always_go_on(void **state)
{
    (void)state;
    struct bench bench;
    struct random random;
    random_seed(&random, 5);
    set_up(&bench);
    for (int step = 0; step < 100000; step++) {
        int i = (int)random_below(&random, MEMBERS);
        struct byte_pool_member *member = &bench.members[i];
        if (member->wanted != 0) {
            if (random_below(&random, 50) == 0) give_back(&bench, i);
        } else if (member->bytes == 40) {
            give_back(&bench, i);
        } else {
            (void)take(&bench, i, member->bytes + 1 + random_below(&random, 40 - member->bytes));
        }
        size_t held = 0, waiting = 0;
        for (int k = 0; k < MEMBERS; k++) {
            held += bench.members[k].bytes;
            waiting += bench.members[k].wanted != 0;
        }
        assert_int_equal(held, bench.pool.bytes);
        assert_true(held <= 100);
        assert_true(waiting < MEMBERS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_gets_no_room_stands_in_line_until_another_gives_back),
        cmocka_unit_test(halves_that_fill_the_pool_become_whole_one_after_the_other),
        cmocka_unit_test(small_ones_do_not_overtake_a_large_one),
        cmocka_unit_test(who_leaves_the_line_lets_the_next_in),
        cmocka_unit_test(what_is_charged_keeps_members_waiting),
        cmocka_unit_test(pool_is_never_overfilled_and_one_can_always_go_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
