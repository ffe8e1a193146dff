/* Codes and texts of errors (native-protocol.md 3.1, 3.2; decisions 15). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "native/errors.h"

static struct group_view view_of_three(int32_t self_id, int32_t leader_id)
{
    struct group_view view = {
        .self_id = self_id, .leader_id = leader_id, .successor_id = -1, .member_count = 3};
    view.members[0] =
        (struct group_member){.id = 1, .client_host = "10.0.0.1", .client_port = 9092};
    view.members[1] = (struct group_member){.id = 2, .client_host = "fe80::2", .client_port = 9102};
    view.members[2] = (struct group_member){.id = 3};
    return view;
}

static void assert_text(int32_t self_id, int32_t leader_id, const char *expected)
{
    struct group_view view = view_of_three(self_id, leader_id);
    char text[NATIVE_NOT_LEADER_BYTES];
    native_not_leader_text(&view, text);
    assert_string_equal(text, expected);
}

static void leader_is_named_by_its_client_address(void **state)
{
    (void)state;
    assert_text(2, 1, "not the leader; leader=10.0.0.1:9092");
    assert_text(1, 2, "not the leader; leader=[fe80::2]:9102");
}

static void nobody_is_named_without_leader_or_address(void **state)
{
    (void)state;
    static const char nobody[] = "not the leader; no leader elected yet";
    assert_text(1, -1, nobody);
    assert_text(1, 3, nobody);
    assert_text(1, 9, nobody);
}

static void successor_is_named_while_nobody_leads(void **state)
{
    (void)state;
    char text[NATIVE_NOT_LEADER_BYTES];
    struct group_view view = view_of_three(2, -1);
    view.successor_id = 1;
    native_not_leader_text(&view, text);
    assert_string_equal(text, "not the leader; leader=10.0.0.1:9092");
    view.leader_id = 3; /* another took over: the known leader counts */
    native_not_leader_text(&view, text);
    assert_string_equal(text, "not the leader; no leader elected yet");
}

static void leader_that_has_not_taken_over_names_nobody(void **state)
{
    (void)state;
    assert_text(1, 1, "not the leader; no leader elected yet");
}

static void statuses_have_their_codes(void **state)
{
    (void)state;
    assert_int_equal(native_error_code(STATUS_NOT_LEADER), WIRE_CODE_NOT_LEADER);
    assert_int_equal(native_error_code(STATUS_NOT_READY), WIRE_CODE_NOT_LEADER);
    assert_int_equal(native_error_code(STATUS_UNKNOWN_TOPIC), WIRE_CODE_TOPIC_MISSING);
    assert_int_equal(native_error_code(STATUS_NOT_ENOUGH_REPLICAS), WIRE_CODE_INTERNAL);
    assert_int_equal(native_error_code(STATUS_EXISTS), WIRE_CODE_INTERNAL);
    assert_int_equal(native_error_code(STATUS_INVALID_TOPIC), WIRE_CODE_INTERNAL);
    assert_int_equal(native_error_code(STATUS_LIMIT), WIRE_CODE_RATE_LIMITED);
    assert_int_equal(native_error_code(STATUS_INVALID_PARTITIONS), WIRE_CODE_INVALID_PARTITIONS);
    assert_int_equal(native_error_code(STATUS_TOPIC_FORBIDDEN), WIRE_CODE_TOPIC_FORBIDDEN);
    assert_int_equal(native_error_code(STATUS_OUT_OF_RANGE), WIRE_CODE_BAD_FRAME);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leader_is_named_by_its_client_address),
        cmocka_unit_test(nobody_is_named_without_leader_or_address),
        cmocka_unit_test(successor_is_named_while_nobody_leads),
        cmocka_unit_test(leader_that_has_not_taken_over_names_nobody),
        cmocka_unit_test(statuses_have_their_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
