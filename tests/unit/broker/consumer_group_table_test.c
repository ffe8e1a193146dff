#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "broker/group_tables.h"
#include "record/batch.h"

static struct slice text(const char *characters)
{
    return (struct slice){(const uint8_t *)characters, strlen(characters)};
}

static enum status apply_bytes(struct consumer_group_table *table, struct slice key,
                               struct slice value)
{
    struct batch_builder builder;
    struct buffer batch;
    struct error error;
    batch_builder_init(&builder);
    buffer_init(&batch, 0);
    batch_builder_add(&builder, 1, key, value, 0, (struct slice){0});
    const struct batch_build_options options = BATCH_BUILD_PLAIN;
    assert_int_equal(batch_builder_finish(&builder, &options, &batch, &error), STATUS_OK);
    enum status status = group_tables_apply_batch(&(struct group_tables){.groups = table},
                                                  batch.data, batch.bytes, &error);
    buffer_deinit(&batch);
    batch_builder_deinit(&builder);
    return status;
}

/* group -> a record of that generation without members; -1: a tombstone. */
static void apply(struct consumer_group_table *table, const char *group, int32_t generation)
{
    struct buffer key, value;
    buffer_init(&key, 0);
    buffer_init(&value, 0);
    group_key_encode(&key, text(group));
    group_record_encode(&value, &(struct group_record){.protocol_type = text("consumer"),
                                                       .generation = generation});
    assert_int_equal(apply_bytes(table, buffer_slice(&key),
                                 generation < 0 ? (struct slice){0} : buffer_slice(&value)),
                     STATUS_OK);
    buffer_deinit(&key);
    buffer_deinit(&value);
}

static int setup(void **state)
{
    *state = consumer_group_table_new();
    return 0;
}

static int teardown(void **state)
{
    consumer_group_table_free(*state);
    return 0;
}

static void the_last_record_of_a_group_counts(void **state)
{
    struct group_record record;
    apply(*state, "a", 1);
    apply(*state, "b", 7);
    apply(*state, "a", 2);
    assert_true(consumer_group_table_find(*state, text("a"), &record));
    assert_int_equal(record.generation, 2);
    assert_true(consumer_group_table_find(*state, text("b"), &record));
    assert_int_equal(record.generation, 7);
    assert_false(consumer_group_table_find(*state, text("c"), &record));
}

static void a_tombstone_removes_a_group(void **state)
{
    struct group_record record;
    apply(*state, "a", 1);
    apply(*state, "a", -1);
    apply(*state, "never", -1);
    assert_false(consumer_group_table_find(*state, text("a"), &record));
    assert_int_equal(consumer_group_table_hash(*state), 0);
}

static void the_hash_tells_states_apart_and_not_the_way_there(void **state)
{
    struct consumer_group_table *other = consumer_group_table_new();
    apply(*state, "a", 1);
    apply(*state, "b", 2);
    apply(other, "b", 9);
    apply(other, "a", 1);
    assert_true(consumer_group_table_hash(*state) != consumer_group_table_hash(other));
    apply(other, "b", 2);
    assert_true(consumer_group_table_hash(*state) == consumer_group_table_hash(other));
    consumer_group_table_free(other);
}

static void other_records_are_skipped(void **state)
{
    static const uint8_t offset_key[] = {0, 1, 0, 1, 'g', 0, 1, 't', 0, 0, 0, 0};
    assert_int_equal(apply_bytes(*state, (struct slice){offset_key, sizeof(offset_key)}, text("x")),
                     STATUS_OK);
    assert_int_equal(consumer_group_table_hash(*state), 0);
}

static void a_record_that_cannot_be_read_is_an_error(void **state)
{
    static const uint8_t key[] = {0, 2, 0, 1, 'g'};
    static const uint8_t future[] = {0, 9, 0};
    assert_int_equal(apply_bytes(*state, (struct slice){key, sizeof(key)}, text("junk")),
                     STATUS_UNSUPPORTED);
    assert_int_equal(apply_bytes(*state, (struct slice){key, sizeof(key)},
                                 (struct slice){future, sizeof(future)}),
                     STATUS_UNSUPPORTED);
    assert_int_equal(apply_bytes(*state, (struct slice){key, 3}, text("")), STATUS_CORRUPT);
}

static void count(void *context, struct slice group, struct group_record *record)
{
    (void)group, (void)record;
    ++*(uint32_t *)context;
}

static void every_group_is_walked(void **state)
{
    uint32_t groups = 0;
    apply(*state, "a", 1);
    apply(*state, "b", 1);
    consumer_group_table_each(*state, count, &groups);
    assert_int_equal(groups, 2);
    consumer_group_table_clear(*state);
    groups = 0;
    consumer_group_table_each(*state, count, &groups);
    assert_int_equal(groups, 0);
}

/* Of g: no classic group any more, a new one, an offset; and a key of a type nobody knows. */
static enum status apply_of_each_kind(const struct group_tables *tables,
                                      const struct batch_build_options *options)
{
    struct batch_builder builder;
    struct buffer batch, key, value;
    struct error error;
    batch_builder_init(&builder);
    buffer_init(&batch, 0);
    buffer_init(&key, 0);
    buffer_init(&value, 0);
    group_key_encode(&key, text("g"));
    batch_builder_add(&builder, 1, buffer_slice(&key), (struct slice){0}, 0, (struct slice){0});
    buffer_clear(&key);
    const struct modern_record record = {
        .type = MODERN_RECORD_GROUP, .group = text("g"), .epoch = 5};
    modern_record_encode_key(&key, &record);
    modern_record_encode_value(&value, &record);
    batch_builder_add(&builder, 1, buffer_slice(&key), buffer_slice(&value), 0, (struct slice){0});
    buffer_clear(&key);
    buffer_clear(&value);
    offset_key_encode(&key, &(struct offset_key){text("g"), text("t"), 0});
    offset_value_encode(&value, &(struct offset_value){3, 1, text(""), 9});
    batch_builder_add(&builder, 1, buffer_slice(&key), buffer_slice(&value), 0, (struct slice){0});
    batch_builder_add(&builder, 1, (struct slice){(const uint8_t *)"\0\143g", 3}, text("?"), 0,
                      (struct slice){0});
    assert_int_equal(batch_builder_finish(&builder, options, &batch, &error), STATUS_OK);
    enum status status = group_tables_apply_batch(tables, batch.data, batch.bytes, &error);
    batch_builder_deinit(&builder);
    buffer_deinit(&batch);
    buffer_deinit(&key);
    buffer_deinit(&value);
    return status;
}

static void a_record_goes_to_the_table_that_its_key_names(void **state)
{
    const struct batch_build_options options = BATCH_BUILD_PLAIN;
    const struct group_tables tables = {offsets_table_new(), *state, modern_group_table_new()};
    struct group_record record;
    apply(*state, "g", 1);
    assert_int_equal(apply_of_each_kind(&tables, &options), STATUS_OK);
    assert_false(consumer_group_table_find(*state, text("g"), &record));
    assert_non_null(modern_group_table_find(tables.modern, text("g")));
    assert_int_equal(offsets_table_find(tables.offsets, text("g"), text("t"), 0)->offset, 3);
    offsets_table_free(tables.offsets);
    modern_group_table_free(tables.modern);
}

static void in_a_transaction_offsets_alone_count(void **state)
{
    struct batch_build_options options = BATCH_BUILD_PLAIN;
    const struct group_tables tables = {offsets_table_new(), *state, modern_group_table_new()};
    const struct offset_key key = {text("g"), text("t"), 0};
    struct group_record record;
    options.transactional = true;
    options.producer_id = 7;
    options.producer_epoch = 0;
    apply(*state, "g", 1);
    assert_int_equal(apply_of_each_kind(&tables, &options), STATUS_OK);
    assert_true(consumer_group_table_find(*state, text("g"), &record));
    assert_null(modern_group_table_find(tables.modern, text("g")));
    assert_null(offsets_table_find(tables.offsets, text("g"), text("t"), 0));
    assert_true(offsets_table_is_pending(tables.offsets, &key));
    offsets_table_free(tables.offsets);
    modern_group_table_free(tables.modern);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_last_record_of_a_group_counts),
        TEST(a_tombstone_removes_a_group),
        TEST(the_hash_tells_states_apart_and_not_the_way_there),
        TEST(other_records_are_skipped),
        TEST(a_record_that_cannot_be_read_is_an_error),
        TEST(every_group_is_walked),
        TEST(a_record_goes_to_the_table_that_its_key_names),
        TEST(in_a_transaction_offsets_alone_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
