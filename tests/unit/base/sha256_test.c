/* sha256_test.c: digests, hex text and secret comparison. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/constant_time.h"
#include "base/hex.h"
#include "base/sha256.h"

static void digests_agree_with_fips_180(void **state)
{
    (void)state;
    uint8_t digest[SHA256_BYTES];
    char text[SHA256_BYTES * 2 + 1];
    sha256("abc", 3, digest);
    assert_string_equal(hex_encode(digest, sizeof(digest), text),
                        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    sha256("", 0, digest);
    assert_string_equal(hex_encode(digest, sizeof(digest), text),
                        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

static void pieces_give_the_digest_of_the_whole(void **state)
{
    (void)state;
    uint8_t whole[SHA256_BYTES], pieces[SHA256_BYTES];
    sha256("1,2,3", 5, whole);
    struct sha256_state *running = sha256_new();
    sha256_add(running, "1,", 2);
    sha256_add(running, "2,3", 3);
    sha256_finish(running, pieces);
    assert_memory_equal(whole, pieces, SHA256_BYTES);
}

static void hex_round_trips_and_refuses_what_is_none(void **state)
{
    (void)state;
    uint8_t bytes[2];
    assert_true(hex_decode("0aFf", 4, bytes, 2));
    assert_int_equal(bytes[0], 0x0a);
    assert_int_equal(bytes[1], 0xff);
    assert_false(hex_decode("0aF", 3, bytes, 2));
    assert_false(hex_decode("0aFg", 4, bytes, 2));
    assert_false(hex_decode("0aFf", 4, bytes, 1));
}

static void secrets_are_equal_only_if_all_bytes_are(void **state)
{
    (void)state;
    assert_true(constant_time_equal("token", 5, "token", 5));
    assert_false(constant_time_equal("token", 5, "tokem", 5));
    assert_false(constant_time_equal("token", 5, "toke", 4));
    assert_false(constant_time_equal("token", 5, "", 0));
    assert_true(constant_time_equal("", 0, "", 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digests_agree_with_fips_180),
        cmocka_unit_test(pieces_give_the_digest_of_the_whole),
        cmocka_unit_test(hex_round_trips_and_refuses_what_is_none),
        cmocka_unit_test(secrets_are_equal_only_if_all_bytes_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
