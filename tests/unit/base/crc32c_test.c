/* crc32c_test.c: the vectors of RFC 3720, and continuation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/crc32c.h"

static void agrees_with_the_published_vectors(void **state)
{
    (void)state;
    uint8_t bytes[32];
    assert_int_equal(crc32c("123456789", 9), 0xe3069283);
    assert_int_equal(crc32c("", 0), 0);
    memset(bytes, 0, sizeof(bytes));
    assert_int_equal(crc32c(bytes, sizeof(bytes)), 0x8a9136aa);
    memset(bytes, 0xff, sizeof(bytes));
    assert_int_equal(crc32c(bytes, sizeof(bytes)), 0x62a8ab43);
    for (uint8_t i = 0; i < 32; i++)
        bytes[i] = i;
    assert_int_equal(crc32c(bytes, sizeof(bytes)), 0x46dd794e);
    for (uint8_t i = 0; i < 32; i++)
        bytes[i] = 31 - i;
    assert_int_equal(crc32c(bytes, sizeof(bytes)), 0x113fdb5c);
}

static void extends_at_every_split(void **state)
{
    (void)state;
    const char *text = "the quick brown fox jumps over the lazy dog";
    size_t bytes = strlen(text);
    for (size_t split = 0; split <= bytes; split++) {
        uint32_t front = crc32c(text, split);
        assert_int_equal(crc32c_extend(front, text + split, bytes - split), crc32c(text, bytes));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_the_published_vectors),
        cmocka_unit_test(extends_at_every_split),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
