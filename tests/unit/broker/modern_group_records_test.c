#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/slice.h"
#include "broker/classic_member.h"
#include "broker/modern_group_records.h"

#define BYTES(...) \
    ((struct slice){(const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})})
#define UID(n) 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, n

/* Laid out by hand from appendix B: group "g", member "m1". */
#define GROUP_KEY          BYTES(0, 3, 0, 1, 'g')
#define MEMBER_KEY         BYTES(0, 5, 0, 1, 'g', 0, 2, 'm', '1')
#define TARGET_KEY         BYTES(0, 6, 0, 1, 'g')
#define MEMBER_TARGET_KEY  BYTES(0, 7, 0, 1, 'g', 0, 2, 'm', '1')
#define MEMBER_CURRENT_KEY BYTES(0, 8, 0, 1, 'g', 0, 2, 'm', '1')

/* Epoch 5; the hash 0x0102 as tagged field 0. */
#define GROUP_VALUE BYTES(0, 0, 0, 0, 0, 5, 1, 0, 8, 0, 0, 0, 0, 0, 0, 1, 2)
/* Instance "i", no rack, client "c" at "/h", topics "a" and "b", no regex, 0x0100 ms, "range". */
#define MEMBER_VALUE                                                                           \
    BYTES(0, 0, 2, 'i', 0, 2, 'c', 3, '/', 'h', 3, 2, 'a', 2, 'b', 0, 0, 0, 1, 0, 6, 'r', 'a', \
          'n', 'g', 'e', 0)
/* Epoch 7. */
#define TARGET_VALUE BYTES(0, 0, 0, 0, 0, 7, 0)
/* Topic 1: partitions 0 and 3; topic 2: 1. */
#define MEMBER_TARGET_VALUE \
    BYTES(0, 0, 3, UID(1), 3, 0, 0, 0, 0, 0, 0, 0, 3, 0, UID(2), 2, 0, 0, 0, 1, 0, 0)
/* Epoch 7 after 6, must revoke; has 1-0, gives up 2-1. */
#define MEMBER_CURRENT_VALUE                                                                      \
    BYTES(0, 0, 0, 0, 0, 7, 0, 0, 0, 6, 1, 2, UID(1), 2, 0, 0, 0, 0, 0, 2, UID(2), 2, 0, 0, 0, 1, \
          0, 0)

static const struct uuid topic_1 = {{UID(1)}}, topic_2 = {{UID(2)}};

static void assert_written(const struct modern_record *record, struct slice key, struct slice value)
{
    struct modern_records records = {0};
    struct slice written_key, written_value;
    modern_records_add(&records, record);
    modern_records_get(&records, 0, &written_key, &written_value);
    assert_int_equal(written_key.bytes, key.bytes);
    assert_memory_equal(written_key.data, key.data, key.bytes);
    assert_int_equal(written_value.bytes, value.bytes);
    assert_memory_equal(written_value.data, value.data, value.bytes);
    modern_records_deinit(&records);
}

static struct modern_record record_of(enum modern_record_type type)
{
    struct modern_record record = {.type = type, .group = slice_of_text("g")};
    if (type != MODERN_RECORD_GROUP && type != MODERN_RECORD_TARGET)
        record.member = slice_of_text("m1");
    return record;
}

static void epochs_are_written_as_kafka_writes_them(void **state)
{
    (void)state;
    struct modern_record record = record_of(MODERN_RECORD_GROUP);
    record.epoch = 5;
    record.metadata_hash = 0x0102;
    assert_written(&record, GROUP_KEY, GROUP_VALUE);
    record = record_of(MODERN_RECORD_TARGET);
    record.epoch = 7;
    assert_written(&record, TARGET_KEY, TARGET_VALUE);
}

static void a_member_is_written_as_kafka_writes_it(void **state)
{
    (void)state;
    struct modern_record record = record_of(MODERN_RECORD_MEMBER);
    struct slice names[] = {slice_of_text("a"), slice_of_text("b")};
    record.settings = (struct modern_member_settings){.instance_id = slice_of_text("i"),
                                                      .client_id = slice_of_text("c"),
                                                      .client_host = slice_of_text("/h"),
                                                      .names = names,
                                                      .name_count = 2,
                                                      .assignor = slice_of_text("range"),
                                                      .rebalance_timeout_ms = 256};
    assert_written(&record, MEMBER_KEY, MEMBER_VALUE);
}

static void assignments_are_written_as_kafka_writes_them(void **state)
{
    (void)state;
    struct modern_record record = record_of(MODERN_RECORD_MEMBER_TARGET);
    partition_set_append(&record.partitions, &topic_1, 0);
    partition_set_append(&record.partitions, &topic_1, 3);
    partition_set_append(&record.partitions, &topic_2, 1);
    assert_written(&record, MEMBER_TARGET_KEY, MEMBER_TARGET_VALUE);
    modern_record_deinit(&record);

    record = record_of(MODERN_RECORD_MEMBER_CURRENT);
    record.epoch = 7;
    record.previous_epoch = 6;
    record.state = MODERN_MEMBER_UNREVOKED;
    partition_set_append(&record.partitions, &topic_1, 0);
    partition_set_append(&record.revoking, &topic_2, 1);
    assert_written(&record, MEMBER_CURRENT_KEY, MEMBER_CURRENT_VALUE);
    modern_record_deinit(&record);
}

static void assert_text(struct slice slice, const char *expected)
{
    assert_true(slice_equal(slice, slice_of_text(expected)));
}

static void every_type_is_read(void **state)
{
    (void)state;
    struct modern_record record;
    assert_int_equal(modern_record_decode(GROUP_KEY, GROUP_VALUE, &record), STATUS_OK);
    assert_int_equal(record.type, MODERN_RECORD_GROUP);
    assert_text(record.group, "g");
    assert_int_equal(record.epoch, 5);
    assert_int_equal(record.metadata_hash, 0x0102);

    assert_int_equal(modern_record_decode(MEMBER_KEY, MEMBER_VALUE, &record), STATUS_OK);
    assert_text(record.member, "m1");
    assert_text(record.settings.instance_id, "i");
    assert_null(record.settings.rack_id.data);
    assert_text(record.settings.client_host, "/h");
    assert_int_equal(record.settings.name_count, 2);
    assert_text(record.settings.names[1], "b");
    assert_null(record.settings.regex.data);
    assert_int_equal(record.settings.rebalance_timeout_ms, 256);
    assert_text(record.settings.assignor, "range");
    modern_record_deinit(&record);

    assert_int_equal(modern_record_decode(TARGET_KEY, TARGET_VALUE, &record), STATUS_OK);
    assert_int_equal(record.epoch, 7);

    assert_int_equal(modern_record_decode(MEMBER_TARGET_KEY, MEMBER_TARGET_VALUE, &record),
                     STATUS_OK);
    assert_int_equal(record.partitions.count, 3);
    assert_int_equal(record.partitions.items[1].partition, 3);
    modern_record_deinit(&record);

    assert_int_equal(modern_record_decode(MEMBER_CURRENT_KEY, MEMBER_CURRENT_VALUE, &record),
                     STATUS_OK);
    assert_int_equal(record.epoch, 7);
    assert_int_equal(record.previous_epoch, 6);
    assert_int_equal(record.state, MODERN_MEMBER_UNREVOKED);
    assert_int_equal(record.partitions.count, 1);
    assert_int_equal(record.revoking.items[0].partition, 1);
    modern_record_deinit(&record);
}

/* Kafka 4 adds the epoch at which each partition was assigned, as tagged field 0 of a topic. */
static void tagged_fields_of_later_versions_are_skipped(void **state)
{
    (void)state;
    struct modern_record record;
    assert_int_equal(modern_record_decode(MEMBER_CURRENT_KEY,
                                          BYTES(0, 0, 0, 0, 0, 7, 0, 0, 0, 6, 0, 2, UID(1), 2, 0, 0,
                                                0, 4, 1, 0, 5, 2, 0, 0, 0, 7, 1, 0),
                                          &record),
                     STATUS_OK);
    assert_int_equal(record.partitions.count, 1);
    assert_int_equal(record.partitions.items[0].partition, 4);
    modern_record_deinit(&record);
    assert_int_equal(
        modern_record_decode(TARGET_KEY, BYTES(0, 0, 0, 0, 0, 7, 2, 0, 2, 9, 9, 5, 1, 9), &record),
        STATUS_OK);
}

static void tombstones_have_a_key_alone(void **state)
{
    (void)state;
    struct modern_record record;
    assert_int_equal(modern_record_decode(MEMBER_KEY, (struct slice){0}, &record), STATUS_OK);
    assert_true(record.tombstone);
    assert_text(record.member, "m1");
    struct modern_records records = {0};
    struct slice key, value;
    modern_records_add(&records, &record);
    modern_records_get(&records, 0, &key, &value);
    assert_true(slice_equal(key, MEMBER_KEY));
    assert_null(value.data);
    modern_records_deinit(&records);
}

static void other_types_and_later_versions_are_told_apart(void **state)
{
    (void)state;
    struct modern_record record;
    assert_int_equal(modern_record_decode(BYTES(0, 2, 0, 1, 'g'), TARGET_VALUE, &record),
                     STATUS_NOT_FOUND);
    assert_int_equal(modern_record_decode(BYTES(0, 16, 0, 1, 'g'), TARGET_VALUE, &record),
                     STATUS_NOT_FOUND);
    assert_int_equal(modern_record_decode(TARGET_KEY, BYTES(0, 1, 0), &record), STATUS_UNSUPPORTED);
    assert_int_equal(modern_record_decode(TARGET_KEY, BYTES(0xFF, 0xFF, 0), &record),
                     STATUS_CORRUPT);
}

static void every_truncation_is_an_error(void **state)
{
    (void)state;
    const struct slice keys[] = {GROUP_KEY, MEMBER_KEY, TARGET_KEY, MEMBER_TARGET_KEY,
                                 MEMBER_CURRENT_KEY};
    const struct slice values[] = {GROUP_VALUE, MEMBER_VALUE, TARGET_VALUE, MEMBER_TARGET_VALUE,
                                   MEMBER_CURRENT_VALUE};
    struct modern_record record;
    for (size_t i = 0; i < 5; i++) {
        for (size_t bytes = 0; bytes < keys[i].bytes; bytes++) {
            assert_int_equal(
                modern_record_decode((struct slice){keys[i].data, bytes}, values[i], &record),
                STATUS_CORRUPT);
        }
        for (size_t bytes = 0; bytes < values[i].bytes; bytes++) {
            assert_int_equal(
                modern_record_decode(keys[i], (struct slice){values[i].data, bytes}, &record),
                STATUS_CORRUPT);
        }
    }
}

/* A count beyond the bytes that are there must not be believed. */
static void counts_that_lie_are_refused(void **state)
{
    (void)state;
    struct modern_record record;
    assert_int_equal(
        modern_record_decode(MEMBER_TARGET_KEY, BYTES(0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F), &record),
        STATUS_CORRUPT);
    assert_int_equal(modern_record_decode(
                         MEMBER_TARGET_KEY,
                         BYTES(0, 0, 2, UID(1), 2, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0) /* partition -1 */,
                         &record),
                     STATUS_CORRUPT);
}

/* ---- classic members ---- */

/* By Kafka's ConsumerGroupMemberMetadataValue: there, 10 s, one protocol "r" with metadata "xy". */
static const uint8_t field[] = {1, 0, 0, 0x27, 0x10, 2, 2, 'r', 3, 'x', 'y', 0, 0};

static void a_classic_members_field_is_kafkas(void **state)
{
    struct buffer bytes;
    struct classic_member classic;
    const struct consumer_protocol protocols[] = {{slice_of_text("r"), slice_of_text("xy")},
                                                  {slice_of_text("r"), slice_of_text("z")}};
    (void)state;
    buffer_init(&bytes, 0);
    classic_member_put(&bytes, 10000, protocols, 2);
    assert_int_equal(bytes.bytes, sizeof(field));
    assert_memory_equal(bytes.data, field, sizeof(field));
    assert_true(classic_member_read(buffer_slice(&bytes), &classic));
    assert_int_equal(classic.session_timeout_ms, 10000);
    assert_int_equal(classic.protocol_count, 1);
    struct consumer_protocol protocol = classic_member_next(&classic);
    assert_true(slice_equal(protocol.name, slice_of_text("r")));
    assert_true(slice_equal(protocol.metadata, slice_of_text("xy")));
    assert_true(slice_equal(classic_member_metadata(buffer_slice(&bytes), slice_of_text("r")),
                            slice_of_text("xy")));
    assert_null(classic_member_metadata(buffer_slice(&bytes), slice_of_text("s")).data);
    buffer_deinit(&bytes);
}

static void a_field_cut_short_is_none(void **state)
{
    struct classic_member classic;
    static const uint8_t missing[] = {0xFF};
    (void)state;
    for (size_t bytes = 0; bytes < sizeof(field); bytes++)
        assert_false(classic_member_read((struct slice){field, bytes}, &classic));
    assert_false(classic_member_read((struct slice){missing, 1}, &classic));
    assert_true(classic_member_is_null((struct slice){missing, 1}));
}

/* The same in a record: no instance, no rack, client "c" at "h", no topics, no pattern, 1 s. */
static void a_record_with_a_classic_member_is_read(void **state)
{
    struct modern_record record;
    uint8_t value[64] = {0, 0, 0, 0, 2, 'c', 2, 'h', 1, 0, 0, 0, 3, 0xE8, 0, 1, 0, sizeof(field)};
    static const uint8_t key[] = {0, 5, 0, 1, 'g', 0, 1, 'm'};
    const size_t head = 18;
    struct slice bytes = {value, head + sizeof(field)};
    (void)state;
    memcpy(value + head, field, sizeof(field));
    assert_int_equal(modern_record_decode((struct slice){key, sizeof(key)}, bytes, &record),
                     STATUS_OK);
    assert_int_equal(record.settings.classic.bytes, sizeof(field));
    modern_record_deinit(&record);
    value[head] = 7; /* neither there nor missing */
    assert_int_equal(modern_record_decode((struct slice){key, sizeof(key)}, bytes, &record),
                     STATUS_CORRUPT);
    value[head - 1] = 1;
    value[head] = 0xFF;
    bytes.bytes = head + 1;
    assert_int_equal(modern_record_decode((struct slice){key, sizeof(key)}, bytes, &record),
                     STATUS_OK);
    assert_null(record.settings.classic.data);
    modern_record_deinit(&record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(epochs_are_written_as_kafka_writes_them),
        cmocka_unit_test(a_member_is_written_as_kafka_writes_it),
        cmocka_unit_test(assignments_are_written_as_kafka_writes_them),
        cmocka_unit_test(every_type_is_read),
        cmocka_unit_test(tagged_fields_of_later_versions_are_skipped),
        cmocka_unit_test(tombstones_have_a_key_alone),
        cmocka_unit_test(other_types_and_later_versions_are_told_apart),
        cmocka_unit_test(every_truncation_is_an_error),
        cmocka_unit_test(counts_that_lie_are_refused),
        cmocka_unit_test(a_classic_members_field_is_kafkas),
        cmocka_unit_test(a_field_cut_short_is_none),
        cmocka_unit_test(a_record_with_a_classic_member_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
