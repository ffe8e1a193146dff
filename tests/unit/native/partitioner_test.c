/* The partitioner: vectors and rules of native-protocol.md 4.1. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/assert.h"
#include "native/partitioner.h"
#include "native/wire.h"

static const struct uuid topic_a = {{1}};
static const struct uuid topic_b = {{2}};
static struct partitioner partitioner;

static int start(void **state)
{
    (void)state;
    partitioner_init(&partitioner, 7);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    partitioner_deinit(&partitioner);
    return 0;
}

static uint32_t choose(const char *key, uint32_t count, int64_t now_us)
{
    return partitioner_choose(&partitioner, &topic_a, count, wire_text(key), now_us);
}

static void keys_go_where_the_vectors_say(void **state)
{
    (void)state;
    /* The page counts partitions from 1. */
    assert_int_equal(choose("k1", 3, 0), 0);
    assert_int_equal(choose("k1", 4, 0), 1);
    assert_int_equal(choose("k1", 12, 0), 9);
    assert_int_equal(choose("key-1", 3, 0), 1);
    assert_int_equal(choose("key-1", 4, 0), 2);
    assert_int_equal(choose("key-1", 12, 0), 10);
    assert_int_equal(choose("orders", 3, 0), 2);
    assert_int_equal(choose("orders", 4, 0), 0);
}

static void partition_is_kept_for_sixteen_records(void **state)
{
    (void)state;
    uint32_t first = choose("", 8, 0);
    for (int i = 1; i < 16; i++) {
        assert_int_equal(choose("", 8, 0), first);
    }
    assert_int_not_equal(choose("", 8, 0), first);
}

static void partition_is_kept_for_ten_milliseconds(void **state)
{
    (void)state;
    uint32_t first = choose("", 8, 1000);
    assert_int_equal(choose("", 8, 10999), first);
    assert_int_not_equal(choose("", 8, 11000), first);
}

static void growth_chooses_anew(void **state)
{
    (void)state;
    uint32_t first = choose("", 2, 0);
    /* Never the same twice in a row. */
    assert_int_not_equal(choose("", 3, 0), first);
}

static void every_partition_gets_its_turn(void **state)
{
    (void)state;
    uint32_t seen = 0;
    for (int64_t i = 0; i < 1000; i++) {
        seen |= 1u << choose("", 5, i * 10000);
    }
    assert_int_equal(seen, 0x1f);
}

static void topics_choose_apart(void **state)
{
    (void)state;
    uint32_t first = choose("", 1000, 0);
    uint32_t other = partitioner_choose(&partitioner, &topic_b, 1000, wire_text(""), 0);
    assert_int_equal(choose("", 1000, 0), first);
    assert_int_equal(partitioner_choose(&partitioner, &topic_b, 1000, wire_text(""), 0), other);
}

static void single_partition_takes_all(void **state)
{
    (void)state;
    for (int i = 0; i < 40; i++) {
        assert_int_equal(choose("", 1, 0), 0);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(keys_go_where_the_vectors_say),
        TEST(partition_is_kept_for_sixteen_records),
        TEST(partition_is_kept_for_ten_milliseconds),
        TEST(growth_chooses_anew),
        TEST(every_partition_gets_its_turn),
        TEST(topics_choose_apart),
        TEST(single_partition_takes_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
