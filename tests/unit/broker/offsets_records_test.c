#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "broker/offsets.h"
#include "broker/offsets_records.h"

static struct slice text(const char *characters)
{
    return (struct slice){(const uint8_t *)characters, strlen(characters)};
}

#define BYTES(...) \
    ((struct slice){(const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})})

/* Laid out by hand from appendix B: group "g1", topic "t", partition 7. */
#define KEY_V1 BYTES(0, 1, 0, 2, 'g', '1', 0, 1, 't', 0, 0, 0, 7)
/* offset 5, epoch 3, metadata "m", commit time 0x0102. */
#define VALUE_V3 BYTES(0, 3, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 3, 0, 1, 'm', 0, 0, 0, 0, 0, 0, 1, 2)
#define VALUE_V1 \
    BYTES(0, 1, 0, 0, 0, 0, 0, 0, 0, 5, 0, 1, 'm', 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 9, 9)
#define VALUE_V4 BYTES(0, 4, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 3, 2, 'm', 0, 0, 0, 0, 0, 0, 1, 2, 0)

static void assert_slice(struct slice slice, const char *expected)
{
    assert_int_equal(slice.bytes, strlen(expected));
    assert_memory_equal(slice.data, expected, slice.bytes);
}

static void a_key_is_written_as_kafka_writes_it(void **state)
{
    (void)state;
    struct buffer out;
    buffer_init(&out, 0);
    offset_key_encode(&out, &(struct offset_key){text("g1"), text("t"), 7});
    assert_int_equal(out.bytes, KEY_V1.bytes);
    assert_memory_equal(out.data, KEY_V1.data, out.bytes);
    buffer_deinit(&out);
}

static void a_value_is_written_as_kafka_writes_it(void **state)
{
    (void)state;
    struct buffer out;
    buffer_init(&out, 0);
    offset_value_encode(&out, &(struct offset_value){5, 3, text("m"), 0x0102});
    assert_int_equal(out.bytes, VALUE_V3.bytes);
    assert_memory_equal(out.data, VALUE_V3.data, out.bytes);
    buffer_deinit(&out);
}

static void keys_of_both_offset_versions_are_read(void **state)
{
    (void)state;
    struct offset_key key;
    assert_int_equal(offset_key_decode(KEY_V1, &key), STATUS_OK);
    assert_slice(key.group, "g1");
    assert_slice(key.topic, "t");
    assert_int_equal(key.partition, 7);
    assert_int_equal(offset_key_decode(BYTES(0, 0, 0, 1, 'g', 0, 1, 't', 0, 0, 0, 1), &key),
                     STATUS_OK);
    assert_int_equal(offset_key_decode(BYTES(0, 2, 0, 1, 'g'), &key), STATUS_NOT_FOUND);
}

static void values_of_every_age_are_read(void **state)
{
    (void)state;
    const struct slice values[] = {VALUE_V1, VALUE_V3, VALUE_V4};
    for (size_t i = 0; i < 3; i++) {
        struct offset_value value;
        assert_int_equal(offset_value_decode(values[i], &value), STATUS_OK);
        assert_int_equal(value.offset, 5);
        assert_int_equal(value.leader_epoch, i == 0 ? -1 : 3);
        assert_slice(value.metadata, "m");
        assert_int_equal(value.commit_timestamp_ms, 0x0102);
    }
    struct offset_value value;
    assert_int_equal(offset_value_decode(BYTES(0, 5, 0), &value), STATUS_UNSUPPORTED);
}

static void every_truncation_is_an_error(void **state)
{
    (void)state;
    for (size_t bytes = 0; bytes < KEY_V1.bytes; bytes++) {
        struct offset_key key;
        assert_int_equal(offset_key_decode((struct slice){KEY_V1.data, bytes}, &key),
                         STATUS_CORRUPT);
    }
    for (size_t bytes = 0; bytes < VALUE_V3.bytes; bytes++) {
        struct offset_value value;
        assert_int_equal(offset_value_decode((struct slice){VALUE_V3.data, bytes}, &value),
                         STATUS_CORRUPT);
    }
}

/* Known values of Java's String.hashCode(): "hello" 99162322, "polygenelubricants" MIN_VALUE, "" 0,
 * "Aa" = "BB" = 2112. */
static void the_partition_of_a_group_is_kafkas(void **state)
{
    (void)state;
    assert_int_equal(internal_partition_of(text("hello"), 50), 99162322 % 50);
    assert_int_equal(internal_partition_of(text("polygenelubricants"), 50), 0);
    assert_int_equal(internal_partition_of(text(""), 50), 0);
    assert_int_equal(internal_partition_of(text("Aa"), 50), 2112 % 50);
    assert_int_equal(internal_partition_of(text("BB"), 50), 2112 % 50);
    /* U+00E9 is one code unit 233; U+1F600 is the two D83D DE00: 31 * 55357 + 56832 = 1772899. */
    assert_int_equal(internal_partition_of(text("\xC3\xA9"), 50), 233 % 50);
    assert_int_equal(internal_partition_of(text("\xF0\x9F\x98\x80"), 50), 1772899 % 50);
    assert_int_equal(internal_partition_of(text("\xFF"), 50), 0xFFFD % 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_is_written_as_kafka_writes_it),
        cmocka_unit_test(a_value_is_written_as_kafka_writes_it),
        cmocka_unit_test(keys_of_both_offset_versions_are_read),
        cmocka_unit_test(values_of_every_age_are_read),
        cmocka_unit_test(every_truncation_is_an_error),
        cmocka_unit_test(the_partition_of_a_group_is_kafkas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
