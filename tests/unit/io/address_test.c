/* address_test.c: addresses as text and as sockets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/assert.h"
#include "io/address.h"

static void addresses_are_split(void **state)
{
    (void)state;
    struct address address;
    assert_int_equal(address_parse("broker-1:9095", &address, NULL), STATUS_OK);
    assert_string_equal(address.host, "broker-1");
    assert_int_equal(address.port, 9095);
    assert_int_equal(address_parse("[fe80::1]:65535", &address, NULL), STATUS_OK);
    assert_string_equal(address.host, "fe80::1");
    assert_int_equal(address.port, 65535);
}

static void malformed_addresses_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",           "host",    ":1",      "host:",    "host:0",
        "host:65536", "host:-1", "host:1x", "::1:80",   "[::1]",
        "[::1]80",    "[]:80",   "[::1:80", "host: 80", "host:99999999999"};
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        struct address address;
        struct error error;
        assert_int_equal(address_parse(texts[i], &address, &error), STATUS_INVALID);
        assert_non_null(strstr(error.text, "address"));
    }
    char text[600];
    memset(text, 'h', sizeof(text));
    strcpy(text + 300, ":80");
    struct address address;
    assert_int_equal(address_parse(text, &address, NULL), STATUS_INVALID);
}

static void numeric_lookups_never_take_names(void **state)
{
    (void)state;
    struct resolved resolved;
    char text[ADDRESS_TEXT_BYTES];
    assert_int_equal(address_resolve("localhost", 1, true, false, &resolved, NULL),
                     STATUS_NOT_FOUND);
    assert_int_equal(address_resolve("127.0.0.1", 7, true, false, &resolved, NULL), STATUS_OK);
    assert_int_equal(resolved.count, 1);
    assert_string_equal(address_of_socket_text((struct sockaddr *)&resolved.addresses[0], text),
                        "127.0.0.1:7");
    assert_int_equal(address_resolve("::1", 7, true, false, &resolved, NULL), STATUS_OK);
    assert_string_equal(address_of_socket_text((struct sockaddr *)&resolved.addresses[0], text),
                        "[::1]:7");
}

static bool loopback(const char *host)
{
    struct resolved resolved;
    assert_int_equal(address_resolve(host, 1, true, false, &resolved, NULL), STATUS_OK);
    return address_is_loopback((struct sockaddr *)&resolved.addresses[0]);
}

static void loopback_is_told_from_the_rest(void **state)
{
    (void)state;
    assert_true(loopback("127.0.0.1"));
    assert_true(loopback("127.9.9.9"));
    assert_true(loopback("::1"));
    assert_true(loopback("::ffff:127.0.0.1"));
    assert_false(loopback("10.0.0.1"));
    assert_false(loopback("::2"));
    assert_false(loopback("::ffff:10.0.0.1"));
}

static void mapped_addresses_read_as_ipv4(void **state)
{
    (void)state;
    struct resolved resolved;
    char text[ADDRESS_HOST_BYTES];
    assert_int_equal(address_resolve("::ffff:10.1.2.3", 1, true, false, &resolved, NULL),
                     STATUS_OK);
    assert_string_equal(address_of_socket_host((struct sockaddr *)&resolved.addresses[0], text),
                        "10.1.2.3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_split),
        cmocka_unit_test(malformed_addresses_are_refused),
        cmocka_unit_test(numeric_lookups_never_take_names),
        cmocka_unit_test(loopback_is_told_from_the_rest),
        cmocka_unit_test(mapped_addresses_read_as_ipv4),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
