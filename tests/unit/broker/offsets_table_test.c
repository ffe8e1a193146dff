#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "broker/offsets_table.h"
#include "record/batch.h"

static struct slice text(const char *characters)
{
    return (struct slice){(const uint8_t *)characters, strlen(characters)};
}

/* A batch with one record: group/topic/partition -> offset; -1: a tombstone. */
static void apply_as(struct offsets_table *table, const char *group, const char *topic,
                     int32_t partition, int64_t offset, bool transactional)
{
    struct batch_builder builder;
    struct buffer key, value, batch;
    struct error error;
    batch_builder_init(&builder);
    buffer_init(&key, 0);
    buffer_init(&value, 0);
    buffer_init(&batch, 0);
    offset_key_encode(&key, &(struct offset_key){text(group), text(topic), partition});
    offset_value_encode(&value, &(struct offset_value){offset, 1, text("m"), 9});
    batch_builder_add(&builder, 1, buffer_slice(&key),
                      offset < 0 ? (struct slice){0} : buffer_slice(&value), 0, (struct slice){0});
    struct batch_build_options options = BATCH_BUILD_PLAIN;
    options.transactional = transactional;
    if (transactional) options.producer_id = 1, options.producer_epoch = 0;
    if (transactional) options.base_sequence = 0;
    assert_int_equal(batch_builder_finish(&builder, &options, &batch, &error), STATUS_OK);
    assert_int_equal(offsets_table_apply_batch(table, batch.data, batch.bytes, &error), STATUS_OK);
    buffer_deinit(&key);
    buffer_deinit(&value);
    buffer_deinit(&batch);
    batch_builder_deinit(&builder);
}

static void apply(struct offsets_table *table, const char *group, const char *topic,
                  int32_t partition, int64_t offset)
{
    apply_as(table, group, topic, partition, offset, false);
}

static int setup(void **state)
{
    *state = offsets_table_new();
    return 0;
}

static int teardown(void **state)
{
    offsets_table_free(*state);
    return 0;
}

static void the_last_commit_counts(void **state)
{
    struct offsets_table *table = *state;
    apply(table, "g", "orders", 1, 10);
    apply(table, "g", "orders", 1, 20);
    const struct offset_entry *entry = offsets_table_find(table, text("g"), text("orders"), 1);
    assert_non_null(entry);
    assert_int_equal(entry->offset, 20);
    assert_null(offsets_table_find(table, text("g"), text("orders"), 2));
    assert_null(offsets_table_find(table, text("h"), text("orders"), 1));
}

static void a_group_is_listed_by_topic_and_partition(void **state)
{
    struct offsets_table *table = *state;
    apply(table, "g", "b", 0, 1);
    apply(table, "g", "a", 9, 2);
    apply(table, "g", "a", 1, 3);
    apply(table, "g", "ab", 0, 4);
    struct offset_group group = offsets_table_group(table, text("g"));
    const int64_t expected[] = {3, 2, 4, 1};
    assert_int_equal(group.count, 4);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(group.entries[i].offset, expected[i]);
}

static void a_tombstone_removes_and_the_last_one_takes_the_group_along(void **state)
{
    struct offsets_table *table = *state;
    uint64_t empty = offsets_table_hash(table);
    apply(table, "g", "a", 0, 1);
    apply(table, "g", "b", 0, 1);
    apply(table, "g", "a", 0, -1);
    assert_null(offsets_table_find(table, text("g"), text("a"), 0));
    assert_int_equal(offsets_table_group(table, text("g")).count, 1);
    apply(table, "g", "b", 0, -1);
    apply(table, "g", "b", 0, -1);
    assert_int_equal(offsets_table_group(table, text("g")).count, 0);
    assert_true(offsets_table_hash(table) == empty);
}

static void the_hash_depends_on_the_state_not_on_the_way_there(void **state)
{
    struct offsets_table *table = *state, *other = offsets_table_new();
    apply(table, "g", "a", 0, 1);
    apply(table, "h", "a", 1, 2);
    apply(other, "h", "a", 1, 7);
    apply(other, "g", "a", 0, 1);
    assert_true(offsets_table_hash(table) != offsets_table_hash(other));
    apply(other, "h", "a", 1, 2);
    assert_true(offsets_table_hash(table) == offsets_table_hash(other));
    offsets_table_free(other);
}

static void records_of_a_transaction_wait_for_their_marker(void **state)
{
    struct offsets_table *table = *state;
    apply_as(table, "g", "a", 0, 1, true);
    assert_null(offsets_table_find(table, text("g"), text("a"), 0));
}

static void a_record_that_contradicts_itself_is_an_error(void **state)
{
    struct offsets_table *table = *state;
    struct batch_builder builder;
    struct buffer batch;
    struct error error;
    batch_builder_init(&builder);
    buffer_init(&batch, 0);
    batch_builder_add(&builder, 1, (struct slice){(const uint8_t *)"\0\1\0\5x", 5}, text("v"), 0,
                      (struct slice){0});
    const struct batch_build_options options = BATCH_BUILD_PLAIN;
    assert_int_equal(batch_builder_finish(&builder, &options, &batch, &error), STATUS_OK);
    assert_int_equal(offsets_table_apply_batch(table, batch.data, batch.bytes, &error),
                     STATUS_CORRUPT);
    buffer_deinit(&batch);
    batch_builder_deinit(&builder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_last_commit_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(a_group_is_listed_by_topic_and_partition, setup, teardown),
        cmocka_unit_test_setup_teardown(a_tombstone_removes_and_the_last_one_takes_the_group_along,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(the_hash_depends_on_the_state_not_on_the_way_there, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(records_of_a_transaction_wait_for_their_marker, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_record_that_contradicts_itself_is_an_error, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
