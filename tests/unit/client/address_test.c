/* Addresses as native-protocol.md 3.2 and 5.1 write them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/assert.h"
#include "client/address.h"

static void host_and_port_are_told_apart(void **state)
{
    (void)state;
    struct client_address address;
    char text[CLIENT_ADDRESS_TEXT_BYTES];
    assert_true(client_address_parse("broker-1.example:9092", &address));
    assert_string_equal(address.host, "broker-1.example");
    assert_string_equal(address.port, "9092");
    assert_string_equal(client_address_format(&address, text), "broker-1.example:9092");
}

static void brackets_hold_a_v6_address(void **state)
{
    (void)state;
    struct client_address address;
    char text[CLIENT_ADDRESS_TEXT_BYTES];
    assert_true(client_address_parse("[fe80::1]:65535", &address));
    assert_string_equal(address.host, "fe80::1");
    assert_string_equal(client_address_format(&address, text), "[fe80::1]:65535");
}

static void anything_else_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",           "host",          "host:",   ":9092",      "host:0", "host:65536",
        "host:+1",    "::1:",          "fe80::1", "fe80::1:80", "[]:80",  "[::1]80",
        "host:9092 ", "host:99999999", "[::1]",   "host:9a",
    };
    struct client_address address;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        if (client_address_parse(bad[i], &address)) fail_msg("\"%s\" was taken", bad[i]);
    }
}

static void host_name_of_256_bytes_is_refused(void **state)
{
    (void)state;
    char text[264];
    struct client_address address;
    memset(text, 'a', 256);
    strcpy(text + 256, ":1");
    assert_false(client_address_parse(text, &address));
    assert_true(client_address_parse(text + 1, &address));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_and_port_are_told_apart),
        cmocka_unit_test(brackets_hold_a_v6_address),
        cmocka_unit_test(anything_else_is_refused),
        cmocka_unit_test(host_name_of_256_bytes_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
