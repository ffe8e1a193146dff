#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "broker/assignor.h"

#define TOPICS_MAX  6
#define MEMBERS_MAX 9

/* A group as the assignors see it: members by number, topics by number. */
struct world {
    struct assignor_topic topics[TOPICS_MAX];
    struct assignor_member members[MEMBERS_MAX];
    uint32_t subscribed[MEMBERS_MAX][TOPICS_MAX];
    struct partition_set targets[MEMBERS_MAX], before[MEMBERS_MAX];
    uint32_t topic_count, member_count;
};

static struct uuid uid_of(uint32_t topic)
{
    return (struct uuid){.bytes = {[15] = (uint8_t)(topic + 1)}};
}

static void add_topic(struct world *world, uint32_t partitions)
{
    world->topics[world->topic_count] =
        (struct assignor_topic){uid_of(world->topic_count), partitions};
    world->topic_count++;
}

/* `topics`: bit n is topic n. */
static void set_member(struct world *world, uint32_t member, unsigned topics)
{
    struct assignor_member *out = &world->members[member];
    out->topic_count = 0;
    out->topics = world->subscribed[member];
    out->before = &world->before[member];
    for (uint32_t i = 0; i < world->topic_count; i++)
        if (topics & 1u << i) world->subscribed[member][out->topic_count++] = i;
}

static void add_member(struct world *world, unsigned topics)
{
    set_member(world, world->member_count++, topics);
}

static void run(struct world *world, enum assignor_kind kind)
{
    const struct assignor_input input = {world->topics, world->topic_count, world->members,
                                         world->member_count};
    for (uint32_t i = 0; i < MEMBERS_MAX; i++) {
        partition_set_move(&world->before[i], &world->targets[i]);
    }
    assignor_run(kind, &input, world->targets);
}

static void world_deinit(struct world *world)
{
    for (uint32_t i = 0; i < MEMBERS_MAX; i++) {
        partition_set_deinit(&world->targets[i]);
        partition_set_deinit(&world->before[i]);
    }
}

static uint32_t owner_of(const struct world *world, uint32_t topic, uint32_t partition)
{
    const struct partition_id id = {uid_of(topic), (int32_t)partition};
    uint32_t owner = UINT32_MAX;
    for (uint32_t i = 0; i < world->member_count; i++) {
        if (!partition_set_contains(&world->targets[i], &id)) continue;
        assert_int_equal(owner, UINT32_MAX); /* one owner */
        assert_true(assignor_subscribes(&world->members[i], topic));
        owner = i;
    }
    return owner;
}

static void assert_each_partition_has_one_subscriber(const struct world *world)
{
    uint32_t partitions = 0, given = 0;
    for (uint32_t topic = 0; topic < world->topic_count; topic++) {
        bool wanted = false;
        for (uint32_t i = 0; i < world->member_count; i++)
            wanted |= assignor_subscribes(&world->members[i], topic);
        if (!wanted) continue;
        partitions += world->topics[topic].partitions;
        for (uint32_t i = 0; i < world->topics[topic].partitions; i++)
            assert_int_not_equal(owner_of(world, topic, i), UINT32_MAX);
    }
    for (uint32_t i = 0; i < world->member_count; i++)
        given += world->targets[i].count;
    assert_int_equal(given, partitions);
}

static uint32_t spread(const struct world *world)
{
    uint32_t least = UINT32_MAX, most = 0;
    for (uint32_t i = 0; i < world->member_count; i++) {
        if (world->targets[i].count < least) least = world->targets[i].count;
        if (world->targets[i].count > most) most = world->targets[i].count;
    }
    return most - least;
}

/* Partitions that a member has now and did not have before. */
static uint32_t count_gained(const struct world *world)
{
    struct partition_set gained = {0};
    uint32_t count = 0;
    for (uint32_t i = 0; i < world->member_count; i++) {
        partition_set_subtract(&gained, &world->targets[i], &world->before[i]);
        count += gained.count;
    }
    partition_set_deinit(&gained);
    return count;
}

static void random_topics(struct world *world, struct random *random)
{
    uint32_t topics = 1 + (uint32_t)random_below(random, TOPICS_MAX);
    for (uint32_t i = 0; i < topics; i++)
        add_topic(world, (uint32_t)random_below(random, 14));
}

static void every_partition_goes_to_exactly_one_subscriber(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        struct random random;
        struct world world = {0};
        random_seed(&random, seed);
        random_topics(&world, &random);
        uint32_t members = 1 + (uint32_t)random_below(&random, MEMBERS_MAX);
        for (uint32_t i = 0; i < members; i++)
            add_member(&world, (unsigned)random_below(&random, 64));
        for (int round = 0; round < 4; round++) {
            run(&world, seed % 2 == 0 ? ASSIGNOR_UNIFORM : ASSIGNOR_RANGE);
            assert_each_partition_has_one_subscriber(&world);
            set_member(&world, (uint32_t)random_below(&random, members),
                       (unsigned)random_below(&random, 64));
        }
        world_deinit(&world);
    }
}

static void uniform_is_balanced_within_one_for_equal_subscriptions(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct random random;
        struct world world = {0};
        random_seed(&random, seed);
        random_topics(&world, &random);
        uint32_t most = 1 + (uint32_t)random_below(&random, MEMBERS_MAX);
        for (uint32_t i = 0; i < most; i++) {
            add_member(&world, 63);
            run(&world, ASSIGNOR_UNIFORM);
            assert_true(spread(&world) <= 1);
        }
        world_deinit(&world);
    }
}

static void uniform_moves_nothing_when_nothing_changed(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct random random;
        struct world world = {0};
        random_seed(&random, seed);
        random_topics(&world, &random);
        for (uint32_t i = 0; i < 1 + seed % MEMBERS_MAX; i++)
            add_member(&world, (unsigned)random_below(&random, 64));
        run(&world, ASSIGNOR_UNIFORM);
        run(&world, ASSIGNOR_UNIFORM);
        assert_int_equal(count_gained(&world), 0);
        world_deinit(&world);
    }
}

static void a_new_member_gets_its_share_and_nobody_else_gains(void **state)
{
    (void)state;
    struct world world = {0};
    add_topic(&world, 9);
    add_topic(&world, 7);
    add_member(&world, 3);
    add_member(&world, 3);
    add_member(&world, 3);
    run(&world, ASSIGNOR_UNIFORM);
    add_member(&world, 3);
    run(&world, ASSIGNOR_UNIFORM);
    assert_int_equal(world.targets[3].count, 4);
    assert_int_equal(count_gained(&world), 4);
    assert_true(spread(&world) <= 1);
    world_deinit(&world);
}

static void only_the_partitions_of_one_who_left_are_dealt_anew(void **state)
{
    (void)state;
    struct world world = {0};
    add_topic(&world, 16);
    for (int i = 0; i < 4; i++)
        add_member(&world, 1);
    run(&world, ASSIGNOR_UNIFORM);
    partition_set_clear(&world.targets[3]);
    world.member_count = 3;
    run(&world, ASSIGNOR_UNIFORM);
    assert_each_partition_has_one_subscriber(&world);
    assert_int_equal(count_gained(&world), 4);
    world_deinit(&world);
}

static void uniform_balances_members_of_different_subscriptions(void **state)
{
    (void)state;
    struct world world = {0};
    add_topic(&world, 6); /* both read it */
    add_topic(&world, 4); /* only the second does */
    add_member(&world, 1);
    add_member(&world, 3);
    run(&world, ASSIGNOR_UNIFORM);
    assert_each_partition_has_one_subscriber(&world);
    assert_int_equal(world.targets[0].count, 5);
    assert_int_equal(world.targets[1].count, 5);
    world_deinit(&world);
}

/* No partition can move to a subscriber that has two fewer: nothing better is one move away. */
static void uniform_leaves_no_single_move_that_would_balance_better(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct random random;
        struct world world = {0};
        random_seed(&random, seed);
        random_topics(&world, &random);
        for (uint32_t i = 0; i < 1 + seed % MEMBERS_MAX; i++)
            add_member(&world, (unsigned)random_below(&random, 64));
        run(&world, ASSIGNOR_UNIFORM);
        for (uint32_t topic = 0; topic < world.topic_count; topic++) {
            for (uint32_t i = 0; i < world.topics[topic].partitions; i++) {
                uint32_t owner = owner_of(&world, topic, i);
                if (owner == UINT32_MAX) continue;
                for (uint32_t m = 0; m < world.member_count; m++) {
                    if (!assignor_subscribes(&world.members[m], topic)) continue;
                    assert_true(world.targets[m].count + 2 > world.targets[owner].count);
                }
            }
        }
        world_deinit(&world);
    }
}

static void partitions_that_are_gone_and_topics_not_subscribed_to_are_let_go(void **state)
{
    (void)state;
    struct world world = {0};
    add_topic(&world, 4);
    add_topic(&world, 4);
    add_member(&world, 3);
    run(&world, ASSIGNOR_UNIFORM);
    world.topics[0].partitions = 2;
    set_member(&world, 0, 1);
    run(&world, ASSIGNOR_UNIFORM);
    assert_int_equal(world.targets[0].count, 2);
    assert_each_partition_has_one_subscriber(&world);
    world_deinit(&world);
}

static void range_gives_runs_and_the_longer_ones_to_the_first(void **state)
{
    (void)state;
    struct world world = {0};
    add_topic(&world, 7);
    for (int i = 0; i < 3; i++)
        add_member(&world, 1);
    run(&world, ASSIGNOR_RANGE);
    const uint32_t owners[] = {0, 0, 0, 1, 1, 2, 2};
    for (uint32_t i = 0; i < 7; i++)
        assert_int_equal(owner_of(&world, 0, i), owners[i]);
    world_deinit(&world);
}

static void range_keeps_topics_that_are_cut_alike_together(void **state)
{
    (void)state;
    struct world world = {0};
    add_topic(&world, 8);
    add_topic(&world, 8);
    for (int i = 0; i < 3; i++)
        add_member(&world, 3);
    run(&world, ASSIGNOR_RANGE);
    for (uint32_t i = 0; i < 8; i++)
        assert_int_equal(owner_of(&world, 0, i), owner_of(&world, 1, i));
    world_deinit(&world);
}

static void assignors_are_found_by_kafkas_names(void **state)
{
    (void)state;
    enum assignor_kind kind;
    assert_true(assignor_find((struct slice){(const uint8_t *)"uniform", 7}, &kind));
    assert_int_equal(kind, ASSIGNOR_UNIFORM);
    assert_true(assignor_find((struct slice){(const uint8_t *)"range", 5}, &kind));
    assert_int_equal(kind, ASSIGNOR_RANGE);
    assert_false(assignor_find((struct slice){(const uint8_t *)"sticky", 6}, &kind));
    assert_string_equal(assignor_name(ASSIGNOR_RANGE), "range");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_partition_goes_to_exactly_one_subscriber),
        cmocka_unit_test(uniform_is_balanced_within_one_for_equal_subscriptions),
        cmocka_unit_test(uniform_moves_nothing_when_nothing_changed),
        cmocka_unit_test(a_new_member_gets_its_share_and_nobody_else_gains),
        cmocka_unit_test(only_the_partitions_of_one_who_left_are_dealt_anew),
        cmocka_unit_test(uniform_balances_members_of_different_subscriptions),
        cmocka_unit_test(uniform_leaves_no_single_move_that_would_balance_better),
        cmocka_unit_test(partitions_that_are_gone_and_topics_not_subscribed_to_are_let_go),
        cmocka_unit_test(range_gives_runs_and_the_longer_ones_to_the_first),
        cmocka_unit_test(range_keeps_topics_that_are_cut_alike_together),
        cmocka_unit_test(assignors_are_found_by_kafkas_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
