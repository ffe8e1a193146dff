#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "broker/transaction_records.h"

static struct slice text(const char *characters)
{
    return (struct slice){(const uint8_t *)characters, strlen(characters)};
}

#define BYTES(...) \
    ((struct slice){(const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})})

/* Laid out by hand from appendix B: id "tx". */
#define KEY BYTES(0, 0, 0, 2, 't', 'x')
/* Producer 5, epoch 3, time-out 0x1000, Ongoing, partitions t-1 and t-2, updated 0x0102, begun
 * 0x0101. */
#define HEAD       0, 0, 0, 0, 0, 0, 0, 5, 0, 3, 0, 0, 0x10, 0
#define TIMES      0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 1, 1
#define PARTITIONS 0, 0, 0, 1, 0, 0, 0, 2
#define VALUE_V0   BYTES(0, 0, HEAD, 1, 0, 0, 0, 1, 0, 1, 't', 0, 0, 0, 2, PARTITIONS, TIMES)
#define VALUE_V1   BYTES(0, 1, HEAD, 1, 2, 2, 't', 3, PARTITIONS, 0, TIMES, 0)
/* PrepareCommit of version 2: the client's version, and the producer id that comes next. */
#define VALUE_TAGS                                                                               \
    BYTES(0, 1, HEAD, 2, 2, 2, 't', 3, PARTITIONS, 0, TIMES, 2, 1, 8, 0, 0, 0, 0, 0, 0, 0, 6, 2, \
          2, 0, 2)
/* Epoch 3 was given to the producer of epoch 2: our own tag 10000. */
#define VALUE_LAST  BYTES(0, 1, HEAD, 0, 0, TIMES, 1, 0x90, 0x4e, 2, 0, 2)
#define VALUE_EMPTY BYTES(0, 1, HEAD, 0, 0, TIMES, 0)

static void ongoing(struct transaction_value *value)
{
    transaction_value_init(value);
    value->producer_id = 5;
    value->producer_epoch = 3;
    value->timeout_ms = 0x1000;
    value->status = TRANSACTION_ONGOING;
    value->last_update_ms = 0x0102;
    value->start_ms = 0x0101;
    for (int32_t partition = 2; partition >= 1; partition--) {
        const struct transaction_partition added = {text("t"), partition};
        assert_int_equal(transaction_partitions_add(&value->partitions, &added), STATUS_OK);
    }
}

static void assert_encodes(const struct transaction_value *value, struct slice expected)
{
    struct buffer out;
    buffer_init(&out, 0);
    transaction_value_encode(&out, value);
    assert_int_equal(out.bytes, expected.bytes);
    assert_memory_equal(out.data, expected.data, expected.bytes);
    buffer_deinit(&out);
}

static void a_key_is_written_as_kafka_writes_it(void **state)
{
    (void)state;
    struct buffer out;
    buffer_init(&out, 0);
    transaction_key_encode(&out, text("tx"));
    assert_int_equal(out.bytes, KEY.bytes);
    assert_memory_equal(out.data, KEY.data, out.bytes);
    buffer_deinit(&out);
}

static void a_value_is_written_as_kafka_writes_it(void **state)
{
    (void)state;
    struct transaction_value value;
    ongoing(&value);
    assert_encodes(&value, VALUE_V1);
    value.status = TRANSACTION_PREPARE_COMMIT;
    value.next_producer_id = 6;
    value.client_version = 2;
    assert_encodes(&value, VALUE_TAGS);
    transaction_value_deinit(&value);
}

static void an_empty_one_has_null_partitions(void **state)
{
    (void)state;
    struct transaction_value value;
    ongoing(&value);
    value.status = TRANSACTION_EMPTY;
    assert_encodes(&value, VALUE_EMPTY);
    transaction_value_deinit(&value);
}

static void assert_is_ongoing(struct slice bytes)
{
    struct transaction_value value;
    assert_int_equal(transaction_value_decode(bytes, &value), STATUS_OK);
    assert_int_equal(value.producer_id, 5);
    assert_int_equal(value.producer_epoch, 3);
    assert_int_equal(value.timeout_ms, 0x1000);
    assert_int_equal(value.status, TRANSACTION_ONGOING);
    assert_int_equal(value.partitions.count, 2);
    assert_int_equal(value.partitions.items[0].partition, 1);
    assert_int_equal(value.partitions.items[1].partition, 2);
    assert_memory_equal(value.partitions.items[1].topic.data, "t", 1);
    assert_int_equal(value.last_update_ms, 0x0102);
    assert_int_equal(value.start_ms, 0x0101);
    assert_int_equal(value.next_producer_id, -1);
    assert_int_equal(value.previous_producer_id, -1);
    assert_int_equal(value.client_version, 0);
    transaction_value_deinit(&value);
}

static void values_of_both_versions_are_read(void **state)
{
    (void)state;
    assert_is_ongoing(VALUE_V0);
    assert_is_ongoing(VALUE_V1);
}

static void tagged_fields_are_read_and_unknown_ones_skipped(void **state)
{
    (void)state;
    struct transaction_value value;
    assert_int_equal(transaction_value_decode(VALUE_TAGS, &value), STATUS_OK);
    assert_int_equal(value.next_producer_id, 6);
    assert_int_equal(value.client_version, 2);
    transaction_value_deinit(&value);
    struct slice unknown = BYTES(0, 1, HEAD, 0, 0, TIMES, 2, 2, 2, 0, 2, 99, 3, 7, 7, 7);
    assert_int_equal(transaction_value_decode(unknown, &value), STATUS_OK);
    assert_int_equal(value.client_version, 2);
    transaction_value_deinit(&value);
}

static void the_epoch_before_is_a_tag_of_our_own(void **state)
{
    (void)state;
    struct transaction_value value;
    ongoing(&value);
    value.status = TRANSACTION_EMPTY;
    value.last_epoch = 2;
    assert_encodes(&value, VALUE_LAST);
    transaction_value_deinit(&value);
    assert_int_equal(transaction_value_decode(VALUE_LAST, &value), STATUS_OK);
    assert_int_equal(value.last_epoch, 2);
    transaction_value_deinit(&value);
    assert_int_equal(transaction_value_decode(VALUE_EMPTY, &value), STATUS_OK);
    assert_int_equal(value.last_epoch, -1);
    transaction_value_deinit(&value);
}

static void assert_cuts_are_corrupt(struct slice whole)
{
    struct transaction_value value;
    for (size_t bytes = 0; bytes < whole.bytes; bytes++) {
        struct slice cut = {whole.data, bytes};
        assert_int_equal(transaction_value_decode(cut, &value), STATUS_CORRUPT);
    }
}

static void every_truncation_is_corrupt(void **state)
{
    (void)state;
    struct slice key = KEY, id;
    for (size_t bytes = 0; bytes < key.bytes; bytes++) {
        struct slice cut = {key.data, bytes};
        assert_int_equal(transaction_key_decode(cut, &id), STATUS_CORRUPT);
    }
    assert_cuts_are_corrupt(VALUE_V0);
    assert_cuts_are_corrupt(VALUE_LAST);
    assert_cuts_are_corrupt(VALUE_V1);
    assert_cuts_are_corrupt(VALUE_TAGS);
}

static void other_records_and_versions_to_come_are_told_apart(void **state)
{
    (void)state;
    struct slice id;
    struct transaction_value value;
    assert_int_equal(transaction_key_decode(KEY, &id), STATUS_OK);
    assert_int_equal(id.bytes, 2);
    assert_int_equal(transaction_key_decode(BYTES(0, 1, 0, 2, 't', 'x'), &id), STATUS_NOT_FOUND);
    assert_int_equal(transaction_key_decode(BYTES(0xff, 0xff, 0, 2, 't', 'x'), &id),
                     STATUS_CORRUPT);
    assert_int_equal(transaction_value_decode(BYTES(0, 2, HEAD), &value), STATUS_UNSUPPORTED);
    /* A state that is none. */
    assert_int_equal(transaction_value_decode(BYTES(0, 1, HEAD, 8, 0, TIMES, 0), &value),
                     STATUS_CORRUPT);
}

static void more_partitions_than_there_may_be_are_corrupt(void **state)
{
    (void)state;
    struct buffer out;
    struct slice head = BYTES(0, 0, HEAD, 1, 0, 0, 0, 1, 0, 1, 't'), times = BYTES(TIMES);
    struct transaction_value value;
    for (int32_t count = TRANSACTION_PARTITIONS_MAX; count <= TRANSACTION_PARTITIONS_MAX + 1;
         count++) {
        buffer_init(&out, 0);
        buffer_put(&out, head.data, head.bytes);
        buffer_put_i32(&out, count);
        for (int32_t i = 0; i < count; i++)
            buffer_put_i32(&out, i);
        buffer_put(&out, times.data, times.bytes);
        enum status status = transaction_value_decode(buffer_slice(&out), &value);
        assert_int_equal(status, count <= TRANSACTION_PARTITIONS_MAX ? STATUS_OK : STATUS_CORRUPT);
        if (status == STATUS_OK) transaction_value_deinit(&value);
        buffer_deinit(&out);
    }
}

static void the_states_have_the_names_that_tools_show(void **state)
{
    (void)state;
    assert_string_equal(transaction_status_name(TRANSACTION_EMPTY), "Empty");
    assert_string_equal(transaction_status_name(TRANSACTION_PREPARE_COMMIT), "PrepareCommit");
    assert_string_equal(transaction_status_name(TRANSACTION_COMPLETE_ABORT), "CompleteAbort");
    assert_string_equal(transaction_status_name(TRANSACTION_PREPARE_EPOCH_FENCE),
                        "PrepareEpochFence");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_is_written_as_kafka_writes_it),
        cmocka_unit_test(a_value_is_written_as_kafka_writes_it),
        cmocka_unit_test(an_empty_one_has_null_partitions),
        cmocka_unit_test(values_of_both_versions_are_read),
        cmocka_unit_test(tagged_fields_are_read_and_unknown_ones_skipped),
        cmocka_unit_test(the_epoch_before_is_a_tag_of_our_own),
        cmocka_unit_test(every_truncation_is_corrupt),
        cmocka_unit_test(other_records_and_versions_to_come_are_told_apart),
        cmocka_unit_test(more_partitions_than_there_may_be_are_corrupt),
        cmocka_unit_test(the_states_have_the_names_that_tools_show),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
