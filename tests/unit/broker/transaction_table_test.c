#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "broker/transaction_table.h"
#include "record/batch.h"

static struct slice text(const char *characters)
{
    return (struct slice){(const uint8_t *)characters, strlen(characters)};
}

/* One record: `epoch` < 0 is a tombstone. */
static enum status apply(struct transaction_table *table, const char *id, int16_t epoch)
{
    struct batch_builder builder;
    struct buffer key, value, bytes;
    struct error error;
    struct transaction_value written;
    buffer_init(&key, 0);
    buffer_init(&value, 0);
    buffer_init(&bytes, 0);
    batch_builder_init(&builder);
    transaction_key_encode(&key, text(id));
    transaction_value_init(&written);
    written.producer_epoch = epoch;
    transaction_value_encode(&value, &written);
    batch_builder_add(&builder, 1000, buffer_slice(&key),
                      epoch < 0 ? (struct slice){0} : buffer_slice(&value), 0, (struct slice){0});
    const struct batch_build_options options = BATCH_BUILD_PLAIN;
    assert_int_equal(batch_builder_finish(&builder, &options, &bytes, &error), STATUS_OK);
    enum status status = transaction_table_apply_batch(table, bytes.data, bytes.bytes, &error);
    batch_builder_deinit(&builder);
    buffer_deinit(&bytes);
    buffer_deinit(&value);
    buffer_deinit(&key);
    return status;
}

static void the_last_record_of_an_id_counts(void **state)
{
    (void)state;
    struct transaction_table *table = transaction_table_new();
    assert_int_equal(apply(table, "a", 1), STATUS_OK);
    assert_int_equal(apply(table, "b", 5), STATUS_OK);
    assert_int_equal(apply(table, "a", 2), STATUS_OK);
    assert_int_equal(transaction_table_count(table), 2);
    assert_int_equal(transaction_table_find(table, text("a"))->value.producer_epoch, 2);
    assert_int_equal(apply(table, "a", -1), STATUS_OK);
    assert_null(transaction_table_find(table, text("a")));
    assert_int_equal(transaction_table_count(table), 1);
    transaction_table_free(table);
}

static void equal_states_have_equal_hashes_however_they_came_about(void **state)
{
    (void)state;
    struct transaction_table *one = transaction_table_new(), *other = transaction_table_new();
    assert_int_equal(apply(one, "a", 1), STATUS_OK);
    assert_int_equal(apply(one, "b", 2), STATUS_OK);
    assert_int_equal(apply(other, "b", 1), STATUS_OK);
    assert_int_equal(apply(other, "c", 1), STATUS_OK);
    assert_int_equal(apply(other, "a", 1), STATUS_OK);
    assert_true(transaction_table_hash(one) != transaction_table_hash(other));
    assert_int_equal(apply(other, "b", 2), STATUS_OK);
    assert_int_equal(apply(other, "c", -1), STATUS_OK);
    assert_true(transaction_table_hash(one) == transaction_table_hash(other));
    transaction_table_clear(one);
    assert_int_equal(transaction_table_hash(one), 0);
    assert_int_equal(transaction_table_bytes(one), 0);
    transaction_table_free(one);
    transaction_table_free(other);
}

static void ids_are_listed_in_the_order_in_which_they_came(void **state)
{
    (void)state;
    struct transaction_table *table = transaction_table_new();
    const char *ids[] = {"c", "a", "b"};
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(apply(table, ids[i], 1), STATUS_OK);
    const struct transaction_entry *entry = NULL;
    for (size_t i = 0; i < 3; i++) {
        entry = transaction_table_next(table, entry);
        assert_memory_equal(entry->id.data, ids[i], 1);
    }
    assert_null(transaction_table_next(table, entry));
    transaction_table_free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_record_of_an_id_counts),
        cmocka_unit_test(equal_states_have_equal_hashes_however_they_came_about),
        cmocka_unit_test(ids_are_listed_in_the_order_in_which_they_came),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
