/* The event queue: order, moving, cancelling, and the hash that tells two runs apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/assert.h"
#include "sim/world.h"

#define EVENTS 500

struct probe {
    struct sim_event event;
    struct sim_world *world;
    int number;
    int64_t fired_us;
};

static int fired[EVENTS];
static int fired_count;

static void probe_fire(struct sim_event *event)
{
    struct probe *probe = CONTAINER_OF(event, struct probe, event);
    probe->fired_us = probe->world->now_us;
    fired[fired_count++] = probe->number;
}

static void probe_init(struct probe *probe, struct sim_world *world, int number)
{
    sim_event_init(&probe->event, SIM_EVENT_WORLD, NULL, probe_fire);
    probe->event.detail = (uint64_t)number;
    probe->world = world;
    probe->number = number;
    probe->fired_us = -1;
}

static void ties_go_by_order_of_scheduling(void **state)
{
    struct sim_world world;
    struct probe probes[4];
    (void)state;
    sim_world_init(&world, 1);
    fired_count = 0;
    for (int i = 0; i < 4; i++) {
        probe_init(&probes[i], &world, i);
        sim_world_schedule(&world, &probes[i].event, i < 2 ? 100 : 50);
    }
    sim_world_run_until(&world, 99);
    assert_int_equal(fired_count, 2);
    assert_int_equal(world.now_us, 99);
    sim_world_run_until(&world, 1000);
    assert_int_equal(fired_count, 4);
    assert_int_equal(fired[0], 2);
    assert_int_equal(fired[1], 3);
    assert_int_equal(fired[2], 0);
    assert_int_equal(fired[3], 1);
    sim_world_deinit(&world);
}

static void an_event_moves_and_is_cancelled(void **state)
{
    struct sim_world world;
    struct probe a, b;
    (void)state;
    sim_world_init(&world, 1);
    fired_count = 0;
    probe_init(&a, &world, 1);
    probe_init(&b, &world, 2);
    sim_world_schedule(&world, &a.event, 10);
    sim_world_schedule(&world, &b.event, 20);
    sim_world_schedule(&world, &a.event, 30);
    sim_world_cancel(&world, &b.event);
    sim_world_cancel(&world, &b.event);
    assert_false(sim_event_is_queued(&b.event));
    sim_world_run_until(&world, 100);
    assert_int_equal(fired_count, 1);
    assert_int_equal(a.fired_us, 30);
    sim_world_deinit(&world);
}

/* A random storm of scheduling, moving and cancelling; returns the hash. */
static uint64_t storm(uint64_t seed)
{
    struct sim_world world;
    static struct probe probes[EVENTS];
    sim_world_init(&world, seed);
    fired_count = 0;
    for (int i = 0; i < EVENTS; i++)
        probe_init(&probes[i], &world, i);
    for (int i = 0; i < 3 * EVENTS; i++) {
        struct probe *probe = &probes[random_below(&world.random, EVENTS)];
        if (random_below(&world.random, 4) == 0)
            sim_world_cancel(&world, &probe->event);
        else
            sim_world_schedule(&world, &probe->event, (int64_t)random_below(&world.random, 10000));
    }
    int64_t last_us = -1;
    while (sim_world_step(&world, INT64_MAX)) {
        assert_true(world.now_us >= last_us);
        last_us = world.now_us;
    }
    for (int i = 0; i < EVENTS; i++)
        assert_false(sim_event_is_queued(&probes[i].event));
    uint64_t hash = world.trace_hash;
    sim_world_deinit(&world);
    return hash;
}

static void one_seed_gives_one_hash(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        assert_int_equal(storm(seed), storm(seed));
        assert_int_not_equal(storm(seed), storm(seed + 1));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ties_go_by_order_of_scheduling),
        cmocka_unit_test(an_event_moves_and_is_cancelled),
        cmocka_unit_test(one_seed_gives_one_hash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
