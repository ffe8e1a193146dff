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

static int64_t log_end;

/* Whose batch: producer 0 is no producer. */
struct from {
    int64_t producer_id;
};

/* A batch with one record: group/topic/partition -> offset; -1: a tombstone. */
static void apply_as(struct offsets_table *table, const char *group, const char *topic,
                     int32_t partition, int64_t offset, struct from from)
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
    options.base_offset = log_end++;
    options.transactional = from.producer_id > 0;
    if (options.transactional) options.producer_id = from.producer_id, options.producer_epoch = 0;
    assert_int_equal(batch_builder_finish(&builder, &options, &batch, &error), STATUS_OK);
    assert_int_equal(group_tables_apply_batch(&(struct group_tables){.offsets = table}, batch.data,
                                              batch.bytes, &error),
                     STATUS_OK);
    buffer_deinit(&key);
    buffer_deinit(&value);
    buffer_deinit(&batch);
    batch_builder_deinit(&builder);
}

static void end(struct offsets_table *table, int64_t producer_id, bool commit)
{
    struct buffer batch;
    struct error error;
    buffer_init(&batch, 0);
    batch_build_marker(&batch, producer_id, 0, commit, 1, 5, 1);
    batch_set_base_offset(batch.data, log_end++);
    assert_int_equal(group_tables_apply_batch(&(struct group_tables){.offsets = table}, batch.data,
                                              batch.bytes, &error),
                     STATUS_OK);
    buffer_deinit(&batch);
}

static void pend(struct offsets_table *table, int64_t producer_id, int32_t partition,
                 int64_t offset)
{
    apply_as(table, "g", "a", partition, offset, (struct from){producer_id});
}

/* The committed offset of g's a/partition; -1: none. */
static int64_t at(const struct offsets_table *table, int32_t partition)
{
    const struct offset_entry *entry = offsets_table_find(table, text("g"), text("a"), partition);
    return entry == NULL ? -1 : entry->offset;
}

static bool is_pending(const struct offsets_table *table, int32_t partition)
{
    return offsets_table_is_pending(table, &(struct offset_key){text("g"), text("a"), partition});
}

static void apply(struct offsets_table *table, const char *group, const char *topic,
                  int32_t partition, int64_t offset)
{
    apply_as(table, group, topic, partition, offset, (struct from){0});
}

static int setup(void **state)
{
    *state = offsets_table_new();
    log_end = 0;
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
    assert_int_equal(offsets_table_bytes(table), 0);
}

static void the_hash_depends_on_the_state_not_on_the_way_there(void **state)
{
    struct offsets_table *table = *state, *other = offsets_table_new();
    uint64_t empty = offsets_table_hash(table);
    apply(table, "g", "a", 0, 1);
    apply(table, "h", "a", 1, 2);
    log_end = 0;
    apply(other, "g", "a", 0, 1);
    assert_true(offsets_table_hash(table) != offsets_table_hash(other));
    log_end = 0;
    apply(other, "x", "a", 0, 1);
    apply(other, "h", "a", 1, 2);
    apply(other, "x", "a", 0, -1);
    assert_true(offsets_table_hash(table) == offsets_table_hash(other));
    pend(table, 7, 1, 10);
    assert_true(offsets_table_hash(table) != offsets_table_hash(other));
    end(table, 7, false);
    assert_true(offsets_table_hash(table) == offsets_table_hash(other));
    offsets_table_clear(other);
    assert_true(offsets_table_hash(other) == empty);
    assert_int_equal(offsets_table_bytes(other), 0);
    offsets_table_free(other);
}

static void the_room_of_what_is_pending_counts(void **state)
{
    struct offsets_table *table = *state;
    pend(table, 7, 0, 10);
    size_t one = offsets_table_bytes(table);
    assert_true(one > 0);
    assert_int_equal(offsets_table_pending_bytes(table), one);
    pend(table, 7, 0, 11); /* in its place */
    assert_int_equal(offsets_table_bytes(table), one);
    pend(table, 8, 0, 10);
    assert_true(offsets_table_bytes(table) > one);
    end(table, 8, false);
    assert_int_equal(offsets_table_bytes(table), one);
    end(table, 7, true);
    assert_int_equal(offsets_table_pending_bytes(table), 0);
    assert_true(offsets_table_bytes(table) > 0);
}

static void a_commit_in_a_transaction_counts_from_its_marker_on(void **state)
{
    struct offsets_table *table = *state;
    apply(table, "g", "a", 0, 1);
    pend(table, 7, 0, 10);
    pend(table, 7, 0, 11);
    pend(table, 7, 1, 20);
    assert_int_equal(at(table, 0), 1);
    assert_int_equal(at(table, 1), -1);
    assert_true(is_pending(table, 0));
    assert_false(is_pending(table, 2));
    end(table, 8, true); /* somebody else's */
    assert_int_equal(at(table, 0), 1);
    end(table, 7, true);
    assert_int_equal(at(table, 0), 11);
    assert_int_equal(at(table, 1), 20);
    assert_false(is_pending(table, 0));
}

static void an_abort_leaves_what_was_there(void **state)
{
    struct offsets_table *table = *state;
    apply(table, "g", "a", 0, 1);
    uint64_t hash = offsets_table_hash(table);
    pend(table, 7, 0, 10);
    assert_true(offsets_table_hash(table) != hash);
    end(table, 7, false);
    assert_int_equal(at(table, 0), 1);
    assert_false(is_pending(table, 0));
    assert_true(offsets_table_hash(table) == hash);
    end(table, 7, true); /* a late one changes nothing */
    assert_int_equal(at(table, 0), 1);
}

/* T35: compaction keeps the later record, so the later record counts, not the later marker. */
static void of_a_plain_and_a_transactional_commit_the_later_record_wins(void **state)
{
    struct offsets_table *table = *state;
    pend(table, 7, 0, 10);
    apply(table, "g", "a", 0, 5);
    end(table, 7, true);
    assert_int_equal(at(table, 0), 5);
    pend(table, 7, 0, 11);
    end(table, 7, true);
    assert_int_equal(at(table, 0), 11);
    apply(table, "g", "a", 0, 6);
    assert_int_equal(at(table, 0), 6);
}

static void of_two_transactions_the_later_record_wins(void **state)
{
    struct offsets_table *table = *state;
    pend(table, 7, 0, 70);
    pend(table, 8, 0, 80);
    end(table, 8, true);
    assert_int_equal(at(table, 0), 80);
    assert_true(is_pending(table, 0));
    end(table, 7, true);
    assert_int_equal(at(table, 0), 80);
    assert_false(is_pending(table, 0));
}

static void a_tombstone_takes_pending_ones_along(void **state)
{
    struct offsets_table *table = *state;
    pend(table, 7, 0, 70);
    pend(table, 8, 0, 80);
    pend(table, 8, 1, 81);
    apply(table, "g", "a", 0, -1);
    assert_false(is_pending(table, 0));
    end(table, 7, true);
    end(table, 8, true);
    assert_int_equal(at(table, 0), -1);
    assert_int_equal(at(table, 1), 81);
}

static void count_key(void *context, const struct offset_key *key)
{
    *(int *)context += key->partition;
}

static void keys_that_are_pending_are_listed_once(void **state)
{
    struct offsets_table *table = *state;
    int sum = 0;
    pend(table, 7, 1, 70);
    pend(table, 8, 1, 80);
    pend(table, 8, 10, 80);
    offsets_table_each_pending(table, count_key, &sum);
    assert_int_equal(sum, 11);
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
    assert_int_equal(group_tables_apply_batch(&(struct group_tables){.offsets = table}, batch.data,
                                              batch.bytes, &error),
                     STATUS_CORRUPT);
    buffer_deinit(&batch);
    batch_builder_deinit(&builder);
}

int main(void)
{
#define CLAIM(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CLAIM(the_last_commit_counts),
        CLAIM(a_group_is_listed_by_topic_and_partition),
        CLAIM(a_tombstone_removes_and_the_last_one_takes_the_group_along),
        CLAIM(the_hash_depends_on_the_state_not_on_the_way_there),
        CLAIM(the_room_of_what_is_pending_counts),
        CLAIM(a_commit_in_a_transaction_counts_from_its_marker_on),
        CLAIM(an_abort_leaves_what_was_there),
        CLAIM(of_a_plain_and_a_transactional_commit_the_later_record_wins),
        CLAIM(of_two_transactions_the_later_record_wins),
        CLAIM(a_tombstone_takes_pending_ones_along),
        CLAIM(keys_that_are_pending_are_listed_once),
        CLAIM(a_record_that_contradicts_itself_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
