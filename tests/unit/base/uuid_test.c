/* uuid_test.c: ids and their text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/uuid.h"

static void base64url_agrees_with_rfc_4648(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"", ""},           {"f", "Zg"},          {"fo", "Zm8"},          {"foo", "Zm9v"},
        {"foob", "Zm9vYg"}, {"fooba", "Zm9vYmE"}, {"foobar", "Zm9vYmFy"}, {"\xfb\xff", "-_8"}};
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        char text[16];
        uint8_t bytes[16];
        size_t count = strlen(pairs[i][0]);
        base64url_encode(pairs[i][0], count, text);
        assert_string_equal(text, pairs[i][1]);
        assert_int_equal(base64url_decode(text, strlen(text), bytes, sizeof(bytes)), count);
        assert_memory_equal(bytes, pairs[i][0], count);
    }
}

static void malformed_base64url_is_refused(void **state)
{
    (void)state;
    uint8_t bytes[8];
    static const char *const texts[] = {"A", "AAAAA", "Zg==", "Z+8", "Z/8", "Zh", "Zm9", "Z 8"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_int_equal(base64url_decode(texts[i], strlen(texts[i]), bytes, sizeof(bytes)), -1);
    }
    assert_int_equal(base64url_decode("Zm9v", 4, bytes, 2), -1);
}

static void text_round_trips_and_is_22_characters(void **state)
{
    (void)state;
    struct random random;
    random_seed(&random, 3);
    for (int i = 0; i < 1000; i++) {
        struct uuid uuid = uuid_random(&random), back;
        char text[UUID_TEXT_BYTES];
        assert_int_equal(strlen(uuid_format(&uuid, text)), 22);
        assert_true(text[0] != '-');
        assert_false(uuid_is_none(&uuid));
        assert_true(uuid_parse(text, &back));
        assert_true(uuid_equal(&uuid, &back));
    }
}

static void none_is_all_zero_and_orders_first(void **state)
{
    (void)state;
    struct uuid none = {{0}}, one = {{0}}, parsed;
    one.bytes[15] = 1;
    char text[UUID_TEXT_BYTES];
    assert_true(uuid_is_none(&none));
    assert_string_equal(uuid_format(&none, text), "AAAAAAAAAAAAAAAAAAAAAA");
    assert_true(uuid_compare(&none, &one) < 0);
    assert_true(uuid_parse("AAAAAAAAAAAAAAAAAAAAAA", &parsed));
    assert_false(uuid_parse("AAAAAAAAAAAAAAAAAAAAA", &parsed));
    assert_false(uuid_parse("AAAAAAAAAAAAAAAAAAAAAAA", &parsed));
    assert_false(uuid_parse("AAAAAAAAAAAAAAAAAAAAAB", &parsed)); /* spare bits set */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(base64url_agrees_with_rfc_4648),
        cmocka_unit_test(malformed_base64url_is_refused),
        cmocka_unit_test(text_round_trips_and_is_22_characters),
        cmocka_unit_test(none_is_all_zero_and_orders_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
