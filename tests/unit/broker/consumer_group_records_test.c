#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "broker/consumer_group_records.h"
#include "broker/consumer_protocol.h"

static struct slice text(const char *characters)
{
    return (struct slice){(const uint8_t *)characters, strlen(characters)};
}

#define BYTES(...) \
    ((struct slice){(const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})})

/* Laid out by hand from appendix B: group "g1". */
#define KEY BYTES(0, 2, 0, 2, 'g', '1')
/* Type "consumer", generation 5, protocol "range", leader "m", since 0x0102, one member: id "m",
 * instance "i", client "c", host "/h", rebalance 0x03E8, session 0x07D0, subscription "s",
 * assignment "as". */
#define VALUE_V3                                                                               \
    BYTES(0, 3, 0, 8, 'c', 'o', 'n', 's', 'u', 'm', 'e', 'r', 0, 0, 0, 5, 0, 5, 'r', 'a', 'n', \
          'g', 'e', 0, 1, 'm', 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 1, 0, 1, 'm', 0, 1, 'i', 0, 1, \
          'c', 0, 2, '/', 'h', 0, 0, 3, 0xE8, 0, 0, 7, 0xD0, 0, 0, 0, 1, 's', 0, 0, 0, 2, 'a', \
          's')
/* No instance id. */
#define VALUE_V2                                                                                  \
    BYTES(0, 2, 0, 1, 't', 0, 0, 0, 5, 0, 1, 'r', 0, 1, 'm', 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 1,  \
          0, 1, 'm', 0, 1, 'c', 0, 2, '/', 'h', 0, 0, 3, 0xE8, 0, 0, 7, 0xD0, 0, 0, 0, 1, 's', 0, \
          0, 0, 2, 'a', 's')
/* Nor a time stamp. */
#define VALUE_V1                                                                                  \
    BYTES(0, 1, 0, 1, 't', 0, 0, 0, 5, 0, 1, 'r', 0, 1, 'm', 0, 0, 0, 1, 0, 1, 'm', 0, 1, 'c', 0, \
          2, '/', 'h', 0, 0, 3, 0xE8, 0, 0, 7, 0xD0, 0, 0, 0, 1, 's', 0, 0, 0, 2, 'a', 's')
/* Nor a rebalance time-out. */
#define VALUE_V0                                                                                  \
    BYTES(0, 0, 0, 1, 't', 0, 0, 0, 5, 0, 1, 'r', 0, 1, 'm', 0, 0, 0, 1, 0, 1, 'm', 0, 1, 'c', 0, \
          2, '/', 'h', 0, 0, 7, 0xD0, 0, 0, 0, 1, 's', 0, 0, 0, 2, 'a', 's')
/* Flexible: lengths + 1 as varints, tag buffers; a tag 0 of two bytes behind the member. */
#define VALUE_V4                                                                                  \
    BYTES(0, 4, 2, 't', 0, 0, 0, 5, 2, 'r', 2, 'm', 0, 0, 0, 0, 0, 0, 1, 2, 2, 2, 'm', 2, 'i', 2, \
          'c', 3, '/', 'h', 0, 0, 3, 0xE8, 0, 0, 7, 0xD0, 2, 's', 3, 'a', 's', 1, 0, 2, 9, 9, 0)
/* Nobody: type kept, generation kept, protocol and leader null. */
#define VALUE_EMPTY                                                                               \
    BYTES(0, 3, 0, 8, 'c', 'o', 'n', 's', 'u', 'm', 'e', 'r', 0, 0, 0, 6, 0xFF, 0xFF, 0xFF, 0xFF, \
          0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0)

static void assert_slice(struct slice slice, const char *expected)
{
    assert_non_null(slice.data);
    assert_int_equal(slice.bytes, strlen(expected));
    assert_memory_equal(slice.data, expected, slice.bytes);
}

static const struct group_record head = {.protocol_type = {(const uint8_t *)"consumer", 8},
                                         .generation = 5,
                                         .protocol = {(const uint8_t *)"range", 5},
                                         .leader = {(const uint8_t *)"m", 1},
                                         .state_timestamp_ms = 0x0102,
                                         .member_count = 1};

static void a_key_is_written_as_kafka_writes_it(void **state)
{
    (void)state;
    struct buffer out;
    buffer_init(&out, 0);
    group_key_encode(&out, text("g1"));
    assert_int_equal(out.bytes, KEY.bytes);
    assert_memory_equal(out.data, KEY.data, out.bytes);
    buffer_deinit(&out);
}

static void a_group_is_written_as_kafka_writes_it(void **state)
{
    (void)state;
    struct buffer out;
    buffer_init(&out, 0);
    group_record_encode(&out, &head);
    group_record_encode_member(&out, &(struct group_record_member){.id = text("m"),
                                                                   .instance_id = text("i"),
                                                                   .client_id = text("c"),
                                                                   .client_host = text("/h"),
                                                                   .rebalance_timeout_ms = 0x03E8,
                                                                   .session_timeout_ms = 0x07D0,
                                                                   .subscription = text("s"),
                                                                   .assignment = text("as")});
    assert_int_equal(out.bytes, VALUE_V3.bytes);
    assert_memory_equal(out.data, VALUE_V3.data, out.bytes);
    buffer_deinit(&out);
}

static void a_group_without_members_is_written_as_kafka_writes_it(void **state)
{
    (void)state;
    struct buffer out;
    struct group_record empty = head;
    empty.generation = 6;
    empty.protocol = empty.leader = (struct slice){0};
    empty.member_count = 0;
    buffer_init(&out, 0);
    group_record_encode(&out, &empty);
    assert_int_equal(out.bytes, VALUE_EMPTY.bytes);
    assert_memory_equal(out.data, VALUE_EMPTY.data, out.bytes);
    buffer_deinit(&out);
}

static void keys_of_other_types_are_told_apart(void **state)
{
    (void)state;
    struct slice group;
    assert_int_equal(group_key_decode(KEY, &group), STATUS_OK);
    assert_slice(group, "g1");
    assert_int_equal(group_key_decode(BYTES(0, 1, 0, 1, 'g'), &group), STATUS_NOT_FOUND);
    assert_int_equal(group_key_decode(BYTES(0, 3, 0, 1, 'g'), &group), STATUS_NOT_FOUND);
    assert_int_equal(group_key_decode(BYTES(0, 2, 0xFF, 0xFF), &group), STATUS_CORRUPT);
}

static void groups_of_every_age_are_read(void **state)
{
    (void)state;
    const struct slice values[] = {VALUE_V0, VALUE_V1, VALUE_V2, VALUE_V3, VALUE_V4};
    for (size_t version = 0; version < 5; version++) {
        struct group_record record;
        struct group_record_member member;
        assert_int_equal(group_record_decode(values[version], &record), STATUS_OK);
        assert_slice(record.protocol_type, version == 3 ? "consumer" : "t");
        assert_int_equal(record.generation, 5);
        assert_slice(record.protocol, version == 3 ? "range" : "r");
        assert_slice(record.leader, "m");
        assert_int_equal(record.state_timestamp_ms, version < 2 ? -1 : 0x0102);
        assert_int_equal(record.member_count, 1);
        group_record_next(&record, &member);
        assert_slice(member.id, "m");
        if (version >= 3) assert_slice(member.instance_id, "i");
        if (version < 3) assert_null(member.instance_id.data);
        assert_slice(member.client_id, "c");
        assert_slice(member.client_host, "/h");
        assert_int_equal(member.rebalance_timeout_ms, version == 0 ? 0x07D0 : 0x03E8);
        assert_int_equal(member.session_timeout_ms, 0x07D0);
        assert_slice(member.subscription, "s");
        assert_slice(member.assignment, "as");
    }
}

static void a_version_from_the_future_is_told(void **state)
{
    (void)state;
    struct group_record record;
    assert_int_equal(group_record_decode(BYTES(0, 5, 0), &record), STATUS_UNSUPPORTED);
}

static void every_truncation_is_an_error(void **state)
{
    (void)state;
    const struct slice values[] = {VALUE_V0, VALUE_V1, VALUE_V2, VALUE_V3, VALUE_EMPTY};
    for (size_t bytes = 0; bytes < KEY.bytes; bytes++) {
        struct slice group;
        assert_int_equal(group_key_decode((struct slice){KEY.data, bytes}, &group), STATUS_CORRUPT);
    }
    for (size_t i = 0; i < 5; i++) {
        for (size_t bytes = 0; bytes < values[i].bytes; bytes++) {
            struct group_record record;
            assert_int_equal(group_record_decode((struct slice){values[i].data, bytes}, &record),
                             STATUS_CORRUPT);
        }
    }
    /* The last tag buffer of version 4 is not needed. */
    for (size_t bytes = 0; bytes + 1 < VALUE_V4.bytes; bytes++) {
        struct group_record record;
        assert_int_equal(group_record_decode((struct slice){VALUE_V4.data, bytes}, &record),
                         STATUS_CORRUPT);
    }
}

static void a_count_that_cannot_be_there_is_an_error(void **state)
{
    (void)state;
    struct group_record record;
    const struct slice many = BYTES(0, 3, 0, 1, 't', 0, 0, 0, 1, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0,
                                    0, 0, 0, 0, 0x7F, 0xFF, 0xFF, 0xFF);
    const struct slice negative = BYTES(0, 3, 0, 1, 't', 0, 0, 0, 1, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0,
                                        0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFE);
    assert_int_equal(group_record_decode(many, &record), STATUS_CORRUPT);
    assert_int_equal(group_record_decode(negative, &record), STATUS_CORRUPT);
}

/* Version 1: topics "a" and "bc", no user data, nothing owned. */
#define SUBSCRIPTION \
    BYTES(0, 1, 0, 0, 0, 2, 0, 1, 'a', 0, 2, 'b', 'c', 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0)

static void a_subscription_names_its_topics(void **state)
{
    (void)state;
    assert_true(consumer_subscription_names(SUBSCRIPTION, text("a")));
    assert_true(consumer_subscription_names(SUBSCRIPTION, text("bc")));
    assert_false(consumer_subscription_names(SUBSCRIPTION, text("b")));
    assert_false(consumer_subscription_names(SUBSCRIPTION, text("")));
}

static void what_is_no_subscription_names_nothing(void **state)
{
    (void)state;
    for (size_t bytes = 0; bytes < 13; bytes++) {
        assert_false(
            consumer_subscription_names((struct slice){SUBSCRIPTION.data, bytes}, text("bc")));
    }
    assert_false(consumer_subscription_names((struct slice){0}, text("a")));
    assert_false(consumer_subscription_names(BYTES(0xFF, 0xFF, 0, 0, 0, 1, 0, 1, 'a'), text("a")));
    assert_false(consumer_subscription_names(BYTES(0, 0, 0, 0, 0, 1, 0xFF, 0xFF), text("a")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_is_written_as_kafka_writes_it),
        cmocka_unit_test(a_group_is_written_as_kafka_writes_it),
        cmocka_unit_test(a_group_without_members_is_written_as_kafka_writes_it),
        cmocka_unit_test(keys_of_other_types_are_told_apart),
        cmocka_unit_test(groups_of_every_age_are_read),
        cmocka_unit_test(a_version_from_the_future_is_told),
        cmocka_unit_test(every_truncation_is_an_error),
        cmocka_unit_test(a_count_that_cannot_be_there_is_an_error),
        cmocka_unit_test(a_subscription_names_its_topics),
        cmocka_unit_test(what_is_no_subscription_names_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
