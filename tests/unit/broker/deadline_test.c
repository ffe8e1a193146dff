#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/random.h"
#include "broker/deadline.h"
#include "lib/stepped_loop.h"

#define COUNT 200

struct world {
    struct stepped_loop fake;
    struct deadlines deadlines;
    struct deadline each[COUNT];
    uint32_t expired[COUNT], expired_count;
    uint32_t remove_next; /* index + 1 of one to remove from within the next expiry */
};

static void expire(void *context, struct deadline *deadline)
{
    struct world *world = context;
    assert_int_equal(deadline->slot, 0);
    world->expired[world->expired_count++] = (uint32_t)(deadline - world->each);
    if (world->remove_next > 0) {
        deadlines_remove(&world->deadlines, &world->each[world->remove_next - 1]);
        world->remove_next = 0;
    }
}

static int setup(void **state)
{
    struct world *world = calloc(1, sizeof(*world));
    stepped_loop_init(&world->fake);
    deadlines_init(&world->deadlines, &world->fake.loop, world);
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;
    deadlines_deinit(&world->deadlines);
    free(world);
    return 0;
}

static void add(struct world *world, uint32_t index, int64_t after_us)
{
    deadlines_add(&world->deadlines, &world->each[index], world->fake.now_us + after_us, expire);
}

static void deadlines_expire_in_order_of_moment_then_of_adding(void **state)
{
    struct world *world = *state;
    add(world, 0, 300);
    add(world, 1, 100);
    add(world, 2, 200);
    add(world, 3, 100);
    stepped_loop_advance(&world->fake, 99);
    assert_int_equal(world->expired_count, 0);
    stepped_loop_advance(&world->fake, 1);
    assert_int_equal(world->expired_count, 2);
    stepped_loop_advance(&world->fake, 1000);
    const uint32_t expected[] = {1, 3, 2, 0};
    assert_int_equal(world->expired_count, 4);
    assert_memory_equal(world->expired, expected, sizeof(expected));
}

static void removed_ones_never_expire(void **state)
{
    struct world *world = *state;
    add(world, 0, 100);
    add(world, 1, 200);
    deadlines_remove(&world->deadlines, &world->each[0]);
    deadlines_remove(&world->deadlines, &world->each[0]);
    stepped_loop_advance(&world->fake, 500);
    assert_int_equal(world->expired_count, 1);
    assert_int_equal(world->expired[0], 1);
}

static void one_may_be_removed_while_another_of_the_same_moment_expires(void **state)
{
    struct world *world = *state;
    add(world, 0, 100);
    add(world, 1, 100);
    world->remove_next = 2;
    stepped_loop_advance(&world->fake, 500);
    assert_int_equal(world->expired_count, 1);
    assert_int_equal(world->expired[0], 0);
}

static void a_moment_in_the_past_expires_soon_and_not_inside_the_call(void **state)
{
    struct world *world = *state;
    add(world, 0, -5);
    assert_int_equal(world->expired_count, 0);
    stepped_loop_run(&world->fake);
    assert_int_equal(world->expired_count, 1);
}

static void random_adds_and_removes_keep_the_order(void **state)
{
    struct world *world = *state;
    struct random random;
    bool waiting[COUNT] = {false};
    int64_t at[COUNT];
    random_seed(&random, 7);
    for (int i = 0; i < 20000; i++) {
        uint32_t index = (uint32_t)random_below(&random, COUNT);
        if (waiting[index]) {
            deadlines_remove(&world->deadlines, &world->each[index]);
        } else {
            at[index] = (int64_t)random_below(&random, 50);
            add(world, index, at[index]);
        }
        waiting[index] = !waiting[index];
    }
    stepped_loop_advance(&world->fake, 100);
    uint32_t expected = 0;
    for (uint32_t i = 0; i < COUNT; i++)
        expected += waiting[i];
    assert_int_equal(world->expired_count, expected);
    for (uint32_t i = 1; i < world->expired_count; i++) {
        assert_true(at[world->expired[i - 1]] <= at[world->expired[i]]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(deadlines_expire_in_order_of_moment_then_of_adding, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(removed_ones_never_expire, setup, teardown),
        cmocka_unit_test_setup_teardown(one_may_be_removed_while_another_of_the_same_moment_expires,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_moment_in_the_past_expires_soon_and_not_inside_the_call,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(random_adds_and_removes_keep_the_order, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
