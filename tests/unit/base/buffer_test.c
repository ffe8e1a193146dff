/* buffer_test.c: growth, bound, stickiness, and the encodings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buffer.h"

static void holds(const struct buffer *buffer, const char *bytes, size_t count)
{
    assert_false(buffer_failed(buffer));
    assert_int_equal(buffer->bytes, count);
    assert_memory_equal(buffer->data, bytes, count);
}

static void integers_are_big_endian(void **state)
{
    (void)state;
    struct buffer buffer;
    buffer_init(&buffer, 0);
    buffer_put_u8(&buffer, 0x01);
    buffer_put_u16(&buffer, 0x0203);
    buffer_put_u32(&buffer, 0x04050607);
    buffer_put_u64(&buffer, 0x08090a0b0c0d0e0fu);
    buffer_put_i8(&buffer, -1);
    buffer_put_i16(&buffer, -2);
    buffer_put_i32(&buffer, -3);
    buffer_put_i64(&buffer, -4);
    holds(&buffer,
          "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f"
          "\xff\xff\xfe\xff\xff\xff\xfd\xff\xff\xff\xff\xff\xff\xff\xfc",
          30);
    buffer_deinit(&buffer);
}

static void varints_are_protobufs(void **state)
{
    (void)state;
    struct buffer buffer;
    buffer_init(&buffer, 0);
    buffer_put_uvarint(&buffer, 300);
    buffer_put_uvarint(&buffer, 0);
    buffer_put_varint(&buffer, -1);
    buffer_put_varint(&buffer, 1);
    buffer_put_varint(&buffer, INT32_MAX);
    buffer_put_varint(&buffer, INT32_MIN);
    buffer_put_varint(&buffer, INT64_MIN);
    holds(&buffer,
          "\xac\x02\x00\x01\x02\xfe\xff\xff\xff\x0f\xff\xff\xff\xff\x0f"
          "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
          25);
    buffer_deinit(&buffer);
}

static void bound_is_exact_and_failure_sticks_until_cleared(void **state)
{
    (void)state;
    struct buffer buffer;
    buffer_init(&buffer, 4);
    buffer_put(&buffer, "abcd", 4);
    assert_false(buffer_failed(&buffer));
    buffer_put_u8(&buffer, 1);
    assert_true(buffer_failed(&buffer));
    assert_int_equal(buffer.bytes, 4);
    buffer_put(&buffer, "", 0);
    assert_null(buffer_extend(&buffer, 0));
    buffer_clear(&buffer);
    buffer_put_u32(&buffer, 7);
    holds(&buffer, "\0\0\0\7", 4);
    assert_true(buffer.capacity <= 4);
    buffer_deinit(&buffer);
}

static void impossible_sizes_fail_without_allocating(void **state)
{
    (void)state;
    struct buffer buffer;
    buffer_init(&buffer, 0);
    assert_null(buffer_extend(&buffer, SIZE_MAX));
    assert_true(buffer_failed(&buffer));
    buffer_deinit(&buffer);
}

static void printf_appends_without_a_nul(void **state)
{
    (void)state;
    struct buffer buffer;
    buffer_init(&buffer, 0);
    buffer_put_string(&buffer, "a=");
    buffer_printf(&buffer, "%d;", 12);
    holds(&buffer, "a=12;", 5);
    buffer_deinit(&buffer);
}

static void set_overwrites_in_place(void **state)
{
    (void)state;
    struct buffer buffer;
    buffer_init(&buffer, 0);
    buffer_put(&buffer, "......", 6);
    buffer_set_u32(&buffer, 2, 0x41424344);
    holds(&buffer, "..ABCD", 6);
    buffer_deinit(&buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_are_big_endian),
        cmocka_unit_test(varints_are_protobufs),
        cmocka_unit_test(bound_is_exact_and_failure_sticks_until_cleared),
        cmocka_unit_test(impossible_sizes_fail_without_allocating),
        cmocka_unit_test(printf_appends_without_a_nul),
        cmocka_unit_test(set_overwrites_in_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
