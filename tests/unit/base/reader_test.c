/* reader_test.c: reads, their bounds, and every truncation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/reader.h"

static void reads_back_what_the_buffer_wrote(void **state)
{
    (void)state;
    static const uint64_t values[] = {0, 1, 127, 128, 300, 16383, 16384, UINT32_MAX, UINT64_MAX};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        struct buffer buffer;
        buffer_init(&buffer, 0);
        buffer_put_uvarint(&buffer, values[i]);
        buffer_put_varint(&buffer, (int64_t)values[i]);
        buffer_put_i64(&buffer, -(int64_t)i);
        struct reader reader;
        reader_init(&reader, buffer.data, buffer.bytes);
        assert_true(reader_uvarint64(&reader) == values[i]);
        assert_true(reader_varint64(&reader) == (int64_t)values[i]);
        assert_true(reader_i64(&reader) == -(int64_t)i);
        assert_false(reader_failed(&reader));
        assert_int_equal(reader_left(&reader), 0);
        buffer_deinit(&buffer);
    }
}

static void zigzag_of_32_bits_covers_both_ends(void **state)
{
    (void)state;
    struct reader reader;
    reader_init(&reader, "\xfe\xff\xff\xff\x0f\xff\xff\xff\xff\x0f\x03", 11);
    assert_int_equal(reader_varint32(&reader), INT32_MAX);
    assert_int_equal(reader_varint32(&reader), INT32_MIN);
    assert_int_equal(reader_varint32(&reader), -2);
    assert_false(reader_failed(&reader));
}

static bool uvarint32_fails(const char *bytes, size_t count)
{
    struct reader reader;
    reader_init(&reader, bytes, count);
    uint32_t value = reader_uvarint32(&reader);
    return reader_failed(&reader) && value == 0;
}

static void overlong_varints_fail(void **state)
{
    (void)state;
    assert_true(uvarint32_fails("\xff\xff\xff\xff\x10", 5)); /* bit 32 */
    assert_true(uvarint32_fails("\x80\x80\x80\x80\x80\x00", 6));
    assert_true(uvarint32_fails("\x80", 1));
    assert_true(uvarint32_fails("", 0));
    struct reader reader;
    reader_init(&reader, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10); /* bit 64 */
    reader_uvarint64(&reader);
    assert_true(reader_failed(&reader));
}

static void every_truncation_fails_and_sticks(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {1,  2,  3,  4,  5,  6,  7,    8, 9,
                                    10, 11, 12, 13, 14, 15, 0xac, 2, 'x'};
    for (size_t length = 0; length <= sizeof(bytes); length++) {
        struct reader reader;
        reader_init(&reader, bytes, length);
        reader_u8(&reader);
        reader_u16(&reader);
        reader_u32(&reader);
        reader_u64(&reader);
        reader_uvarint32(&reader);
        struct slice rest = reader_bytes(&reader, 1);
        assert_true(reader_failed(&reader) == (length < sizeof(bytes)));
        assert_int_equal(rest.bytes, length < sizeof(bytes) ? 0 : 1);
        assert_non_null(rest.data);
        if (length < sizeof(bytes)) {
            assert_int_equal(reader_left(&reader), 0);
            assert_int_equal(reader_u8(&reader), 0);
        }
    }
}

static void huge_lengths_do_not_wrap(void **state)
{
    (void)state;
    struct reader reader;
    reader_init(&reader, "abcdef", 6);
    reader_skip(&reader, 2);
    reader_skip(&reader, SIZE_MAX);
    assert_true(reader_failed(&reader));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_back_what_the_buffer_wrote),
        cmocka_unit_test(zigzag_of_32_bits_covers_both_ends),
        cmocka_unit_test(overlong_varints_fail),
        cmocka_unit_test(every_truncation_fails_and_sticks),
        cmocka_unit_test(huge_lengths_do_not_wrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
