/* The wire codec: vectors of native-protocol.md 1.2, 4.1 and 3.2, round trips of every message, and
 * every truncation of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/assert.h"
#include "native/wire.h"

static const struct wire_id vector_id = {{0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,
                                          0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f}};
#define ID_HEX "000102030405060708090a0b0c0d0e0f"

static size_t from_hex(const char *hex, uint8_t *out)
{
    size_t bytes = 0;
    for (; *hex != '\0'; hex++) {
        if (*hex == ' ') continue;
        char digits[3] = {hex[0], hex[1], '\0'};
        out[bytes++] = (uint8_t)strtoul(digits, NULL, 16);
        hex++;
    }
    return bytes;
}

/* The frame encoded from `message` is `hex`, and decodes into the same bytes again. */
static void assert_frame(uint8_t opcode, const void *message, const char *hex)
{
    uint8_t expected[256];
    size_t expected_bytes = from_hex(hex, expected);
    struct buffer out;
    buffer_init(&out, 0);
    wire_encode(&out, opcode, &vector_id, message);
    assert_int_equal(out.bytes, expected_bytes);
    assert_memory_equal(out.data, expected, expected_bytes);

    struct wire_frame frame;
    union wire_message decoded;
    assert_int_equal(wire_frame_parse(expected, expected_bytes, 1 << 20, &frame), STATUS_OK);
    assert_int_equal(frame.opcode, opcode);
    assert_true(wire_id_equal(&frame.id, &vector_id));
    assert_int_equal(wire_decode(wire_shape_of(opcode), frame.payload, &decoded, NULL), STATUS_OK);
    buffer_clear(&out);
    wire_encode(&out, opcode, &vector_id, &decoded);
    assert_memory_equal(out.data, expected, expected_bytes);
    buffer_deinit(&out);
}

static void hello_is_the_vector(void **state)
{
    (void)state;
    struct wire_hello hello = {.version = 1};
    assert_frame(WIRE_HELLO, &hello, "00000015 01 " ID_HEX " 00000001");
}

static void produce_is_the_vector(void **state)
{
    (void)state;
    struct wire_produce produce = {
        .topic = wire_text("t"), .key = wire_text("k1"), .value = wire_text("hello")};
    assert_frame(WIRE_PRODUCE, &produce,
                 "00000026 03 " ID_HEX " 00 0000000174 000000026b31 0000000568656c6c6f");
}

static void produce_ack_is_the_vector_and_counts_partitions_from_one(void **state)
{
    (void)state;
    struct wire_ack ack = {.partition = 1, .offset = 0};
    assert_frame(WIRE_PRODUCE_ACK, &ack, "0000001d 82 " ID_HEX " 00000002 0000000000000000");
}

static void not_leader_error_is_the_vector(void **state)
{
    (void)state;
    struct wire_error_message error = {.code = WIRE_CODE_NOT_LEADER,
                                       .text = wire_text("not the leader; leader=10.0.0.2:9092")};
    assert_frame(WIRE_ERROR, &error,
                 "0000003b fe " ID_HEX " 0014 00000024 "
                 "6e6f7420746865206c65616465723b206c65616465723d31302e302e302e323a39303932");
}

static void key_hashes_are_the_vectors(void **state)
{
    (void)state;
    assert_int_equal(wire_key_hash(wire_text("a")), 0xe40c292c);
    assert_int_equal(wire_key_hash(wire_text("k1")), 0x983d80c1);
    assert_int_equal(wire_key_hash(wire_text("key-1")), 0x57e03446);
    assert_int_equal(wire_key_hash(wire_text("orders")), 0x325e96ec);
}

static void leader_hint_stops_at_white_space(void **state)
{
    (void)state;
    char hint[32];
    assert_true(
        wire_leader_hint(wire_text("not the leader; leader=[::1]:9092 x"), hint, sizeof(hint)));
    assert_string_equal(hint, "[::1]:9092");
    assert_false(
        wire_leader_hint(wire_text("not the leader; no leader elected yet"), hint, sizeof(hint)));
    assert_false(wire_leader_hint(wire_text("leader= "), hint, sizeof(hint)));
    assert_false(wire_leader_hint((struct slice){NULL, 0}, hint, sizeof(hint)));
}

static void leader_hint_that_does_not_fit_is_none(void **state)
{
    (void)state;
    char hint[8];
    assert_false(wire_leader_hint(wire_text("leader=10.0.0.2:9092"), hint, sizeof(hint)));
}

static void frame_needs_its_last_byte(void **state)
{
    (void)state;
    uint8_t bytes[64];
    size_t count = from_hex("00000015 01 " ID_HEX " 00000001", bytes);
    struct wire_frame frame;
    for (size_t cut = 0; cut < count; cut++) {
        assert_int_equal(wire_frame_parse(bytes, cut, 1 << 20, &frame), STATUS_AGAIN);
    }
    assert_int_equal(wire_frame_parse(bytes, count, 1 << 20, &frame), STATUS_OK);
    assert_int_equal(frame.frame_bytes, count);
}

static void frame_length_is_bounded_on_both_sides(void **state)
{
    (void)state;
    struct wire_frame frame;
    assert_int_equal(wire_frame_parse((const uint8_t *)"\0\0\0\x10", 4, 100, &frame),
                     STATUS_INVALID);
    assert_int_equal(wire_frame_parse((const uint8_t *)"\0\0\0\x65", 4, 100, &frame),
                     STATUS_TOO_LARGE);
    assert_int_equal(wire_frame_parse((const uint8_t *)"\0\0\0\x64", 4, 100, &frame), STATUS_AGAIN);
}

/* ---- every message: round trip and truncation ---- */

/* A payload, and where its optional fields begin: cutting there leaves a legal message. */
struct sample {
    uint8_t opcode;
    const char *hex;
    size_t cuts[4];
};

static const struct sample samples[] = {
    {WIRE_HELLO, "00000001 01", {4}},
    {WIRE_AUTH, "00000001 75 00000002 7077", {0}},
    {WIRE_PRODUCE, "00 00000001 74 00000001 6b 00000001 76", {0}},
    {WIRE_FETCH, "00000001 74 00000001 67 00000064 01 01", {14, 15}},
    {WIRE_FETCH,
     "00000001 74 00000000 00000064 00 06 000001f4 00010000 "
     "00000002 00000001 0000000000000007 00000002 0000000000000000",
     {13, 14}},
    {WIRE_SUBSCRIBE, "00000001 74 00000001 67 01", {10}},
    {WIRE_COMMIT, "00000001 74 00000003 0000000000000029", {0}},
    {WIRE_CREATE_TOPIC, "00000001 74 00000400", {0}},
    {WIRE_LIST_TOPICS, "", {0}},
    {WIRE_GOODBYE, "", {0}},
    {WIRE_HEARTBEAT_REQ, "", {0}},
    {WIRE_HEARTBEAT_RESP, "", {0}},
    {WIRE_IDENTIFY_CLIENT, "00000001 61 00000005 302e302e31", {0}},
    {WIRE_INIT_PRODUCER_ID, "00000001 70", {0}},
    {WIRE_INIT_PRODUCER_ID, "00000000 0000000000000005 0001", {4}},
    {WIRE_PRODUCE_IDEMPOTENT,
     "0000000000000005 00000002 0001 00 00000001 74 00000000 00000001 76",
     {0}},
    {WIRE_JOIN_GROUP, "00000001 67 00000000 00000002 00000001 61 00000001 62", {0}},
    {WIRE_JOIN_GROUP, "00000001 67 00000001 6d 00000001 00000001 61 01", {19}},
    {WIRE_LEAVE_GROUP, "00000001 67 00000001 6d", {0}},
    {WIRE_GROUP_HEARTBEAT, "00000001 67 00000001 6d", {0}},
    {WIRE_BEGIN_TXN, "", {0}},
    {WIRE_END_TXN, "01", {0}},
    {WIRE_TXN_OFFSET_COMMIT, "00000001 67 00000001 00000001 74 00000001 0000000000000009", {0}},
    {WIRE_NACK, "00000001 74 00000001 0000000000000009 00000003 626164", {0}},
    {WIRE_PRODUCE_BATCH,
     "00 00 00000001 74 00000002 00000000 00000001 61 00000001 6b 00000000",
     {0}},
    {WIRE_PRODUCE_BATCH,
     "01 00 00000001 74 0000000000000005 00000002 0001 00000001 00000000 00000001 61",
     {0}},
    {WIRE_PRODUCE_BATCH, "06 00 00000001 74 00000001 00000000 00000001 61 0000002a", {20}},
    {WIRE_LIST_OFFSETS, "00000001 74 01 0000018bcfe5687b", {5}},
    {WIRE_DELETE_TOPIC, "00000001 74", {0}},
    {WIRE_DESCRIBE_TOPIC, "00000001 74", {0}},
    {WIRE_ALTER_TOPIC_CONFIG,
     "00000001 74 00000001 00000009 726574656e74696f6e 00000002 3630",
     {0}},
    {WIRE_LIST_GROUPS, "", {0}},
    {WIRE_DESCRIBE_GROUP, "00000001 67", {0}},
    {WIRE_DELETE_GROUP, "00000001 67", {0}},
    {WIRE_AUTH_SCRAM, "00000008 45585445524e414c 00000000", {0}},
    {WIRE_AUTH_SCRAM_FINAL, "00000002 633d", {0}},
    {WIRE_CREATE_PARTITIONS, "00000001 74 00000401", {0}},
    {WIRE_STATUS, "", {0}},
    {WIRE_TRANSFER, "ffffffff", {0}},
    {WIRE_WELCOME, "00000001", {0}},
    {WIRE_AUTH_OK, "00000002 763d", {0}},
    {WIRE_PRODUCE_ACK, "00000001 0000000000000003", {0}},
    {WIRE_RECORD,
     "00000001 74 00000002 0000000000000000 0000018bcfe5687b 00000000 00000001 76",
     {0}},
    {WIRE_TOPIC_LIST, "00000002 00000001 61 00000001 62", {0}},
    {WIRE_OK, "", {0}},
    {WIRE_IDENTIFY_ACK, "00000006 4d6f6f6e4d51 00000005 76302e3031", {0}},
    {WIRE_PRODUCER_ID, "0000000000000005 0001", {0}},
    {WIRE_GROUP_ASSIGNMENT, "00000001 6d 00000001 00000001 74 00000002 00000001 00000002", {0}},
    {WIRE_NACK_ACK, "01 0003 00000005 742e646c71", {0}},
    {WIRE_PRODUCE_BATCH_ACK, "00000001 00000001 0000000000000003 0007 00000001 78", {0}},
    {WIRE_RECORD_BATCH,
     "00000001 00000001 74 00000002 0000000000000000 0000018bcfe5687b 00000000 00000001 76",
     {0}},
    {WIRE_RECORD_BATCH, "00000000 00000001 00000001 0000000000000005 0000000000000009", {4}},
    {WIRE_OFFSETS,
     "00000001 00000001 0000000000000001 0000000000000002 0000000000000002 0000000000000002 07"
     "00000001 00000001 0000000000000001 01",
     {41}},
    {WIRE_TOPIC_DESCRIPTION, "00000001 74 00000003 00000001 00000001 6b 00000001 76", {0}},
    {WIRE_GROUP_LIST, "00000001 00000001 67 00000006 737461626c65 00000002", {0}},
    {WIRE_GROUP_DESCRIPTION,
     "00000001 67 00000006 737461626c65 00000001 00000001 6d 00000001 00000001 74 00000001 00000001"
     "00000001 00000001 74 00000001 0000000000000009",
     {0}},
    {WIRE_AUTH_CHALLENGE, "00000002 723d", {0}},
    {WIRE_STATUS_REPLY, "00000002 7b7d", {0}},
    {WIRE_ERROR, "0005 00000004 676f6e65", {0}},
};

static bool is_legal_cut(const struct sample *sample, size_t cut)
{
    for (size_t i = 0; i < ARRAY_COUNT(sample->cuts); i++) {
        if (sample->cuts[i] != 0 && sample->cuts[i] == cut) return true;
    }
    /* Fields that are optional as a whole: an empty payload is legal. */
    return cut == 0 && (sample->opcode == WIRE_INIT_PRODUCER_ID || sample->opcode == WIRE_AUTH_OK);
}

static void every_message_comes_back_byte_for_byte(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(samples); i++) {
        uint8_t payload[256];
        size_t bytes = from_hex(samples[i].hex, payload);
        const struct wire_shape *shape = wire_shape_of(samples[i].opcode);
        assert_non_null(shape);
        union wire_message message;
        assert_int_equal(wire_decode(shape, (struct slice){payload, bytes}, &message, NULL),
                         STATUS_OK);
        struct buffer out;
        buffer_init(&out, 0);
        wire_put(&out, shape, &message);
        assert_int_equal(out.bytes, bytes);
        if (bytes != 0) assert_memory_equal(out.data, payload, bytes);
        buffer_deinit(&out);
    }
}

static void every_truncation_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(samples); i++) {
        uint8_t payload[256];
        size_t bytes = from_hex(samples[i].hex, payload);
        for (size_t cut = 0; cut < bytes; cut++) {
            /* On the heap, so that a read past the cut is seen. */
            uint8_t *short_payload = malloc(cut + 1);
            assert_non_null(short_payload);
            memcpy(short_payload, payload, cut);
            short_payload = realloc(short_payload, cut == 0 ? 1 : cut);
            union wire_message message;
            struct error error;
            enum status status = wire_decode(wire_shape_of(samples[i].opcode),
                                             (struct slice){short_payload, cut}, &message, &error);
            enum status expected = is_legal_cut(&samples[i], cut) ? STATUS_OK : STATUS_INVALID;
            if (status != expected) {
                fail_msg("%s cut at %zu: %s", wire_opcode_name(samples[i].opcode), cut,
                         status_text(status));
            }
            free(short_payload);
        }
    }
}

static void unknown_trailing_bytes_are_ignored(void **state)
{
    (void)state;
    uint8_t payload[64];
    size_t bytes = from_hex("00000001 74 00000003 0000000000000029 ffffff", payload);
    union wire_message message;
    assert_int_equal(
        wire_decode(wire_shape_of(WIRE_COMMIT), (struct slice){payload, bytes}, &message, NULL),
        STATUS_OK);
    assert_int_equal(message.commit.partition, 2);
    assert_int_equal(message.commit.offset, 41);
}

/* ---- bounds ---- */

static void assert_refused(uint8_t opcode, const char *hex)
{
    uint8_t payload[128];
    size_t bytes = from_hex(hex, payload);
    union wire_message message;
    struct error error;
    assert_int_equal(
        wire_decode(wire_shape_of(opcode), (struct slice){payload, bytes}, &message, &error),
        STATUS_INVALID);
    assert_non_null(strstr(error.text, "field"));
}

static void partition_zero_is_refused(void **state)
{
    (void)state;
    assert_refused(WIRE_COMMIT, "00000001 74 00000000 0000000000000029");
}

static void offset_of_two_to_the_63_is_refused(void **state)
{
    (void)state;
    assert_refused(WIRE_COMMIT, "00000001 74 00000001 8000000000000000");
}

static void count_larger_than_the_bytes_behind_it_is_refused(void **state)
{
    (void)state;
    /* Three records need 24 bytes at least; 16 are there. */
    assert_refused(WIRE_PRODUCE_BATCH,
                   "00 00 00000001 74 00000003 00000000 00000000 00000000 00000000");
    assert_refused(WIRE_PRODUCE_BATCH, "00 00 00000001 74 ffffffff 00000000 00000000");
}

static void empty_batch_is_refused(void **state)
{
    (void)state;
    assert_refused(WIRE_PRODUCE_BATCH, "00 00 00000001 74 00000000");
}

static void partition_count_of_a_new_topic_is_bounded(void **state)
{
    (void)state;
    assert_refused(WIRE_CREATE_TOPIC, "00000001 74 00000000");
    assert_refused(WIRE_CREATE_TOPIC, "00000001 74 00000401");
}

static void topic_name_of_250_bytes_is_refused(void **state)
{
    (void)state;
    uint8_t payload[4 + 250];
    memset(payload, 't', sizeof(payload));
    store_u32(payload, 250);
    union wire_message message;
    const struct wire_shape *shape = wire_shape_of(WIRE_DELETE_TOPIC);
    assert_int_equal(wire_decode(shape, (struct slice){payload, 254}, &message, NULL),
                     STATUS_INVALID);
    store_u32(payload, 249);
    assert_int_equal(wire_decode(shape, (struct slice){payload, 253}, &message, NULL), STATUS_OK);
}

static void value_of_more_than_64_kib_is_refused_in_a_request(void **state)
{
    (void)state;
    struct buffer out;
    buffer_init(&out, 0);
    size_t value_bytes = WIRE_STRING_BYTES_MAX + 1;
    uint8_t *value = calloc(1, value_bytes);
    struct wire_produce produce = {
        .topic = wire_text("t"), .key = wire_text(""), .value = {value, value_bytes}};
    wire_put(&out, wire_shape_of(WIRE_PRODUCE), &produce);
    union wire_message message;
    assert_int_equal(wire_decode(wire_shape_of(WIRE_PRODUCE), buffer_slice(&out), &message, NULL),
                     STATUS_INVALID);
    free(value);
    buffer_deinit(&out);
}

/* The vector of 4.10. */
#define LETTER_HEX                                                        \
    "01 000000066f7264657273 00000002 0000000000000000 0000018bcfe5687b " \
    "0000000762696c6c696e67 0003 00000003626164 0000000568656c6c6f"

static void dead_letter_is_the_vector(void **state)
{
    (void)state;
    uint8_t expected[128];
    size_t bytes = from_hex(LETTER_HEX, expected);
    const struct wire_dead_letter letter = {
        .version = WIRE_DEAD_LETTER_VERSION,
        .topic = wire_text("orders"),
        .partition = 1,
        .timestamp_ms = 1700000000123,
        .group = wire_text("billing"),
        .attempts = 3,
        .reason = wire_text("bad"),
        .value = wire_text("hello"),
    };
    struct buffer out;
    buffer_init(&out, 0);
    wire_put(&out, &wire_shape_dead_letter, &letter);
    assert_int_equal(out.bytes, bytes);
    assert_memory_equal(out.data, expected, bytes);
    buffer_deinit(&out);
    struct wire_dead_letter decoded;
    assert_int_equal(wire_decode_dead_letter((struct slice){expected, bytes}, &decoded, NULL),
                     STATUS_OK);
    assert_int_equal(decoded.partition, 1);
    assert_int_equal(decoded.timestamp_ms, 1700000000123);
    assert_int_equal(decoded.attempts, 3);
    assert_memory_equal(decoded.value.data, "hello", 5);
}

static void dead_letter_is_refused_cut_off_or_of_an_unknown_version(void **state)
{
    (void)state;
    uint8_t bytes[128];
    size_t count = from_hex(LETTER_HEX, bytes);
    struct wire_dead_letter letter;
    for (size_t cut = 0; cut < count; cut++) {
        uint8_t *copy = malloc(cut + 1);
        memcpy(copy, bytes, cut);
        assert_int_equal(wire_decode_dead_letter((struct slice){copy, cut}, &letter, NULL),
                         STATUS_INVALID);
        free(copy);
    }
    bytes[0] = 2;
    assert_int_equal(wire_decode_dead_letter((struct slice){bytes, count}, &letter, NULL),
                     STATUS_UNSUPPORTED);
}

static void retired_ping_has_no_shape(void **state)
{
    (void)state;
    assert_null(wire_shape_of(WIRE_RETIRED_PING));
    assert_null(wire_shape_of(0x00));
    assert_null(wire_shape_of(0xFF));
    assert_string_equal(wire_opcode_name(0x7F), "unknown");
}

/* ---- lists ---- */

static void cursor_walks_nested_lists(void **state)
{
    (void)state;
    uint8_t payload[128];
    size_t bytes = from_hex("00000001 6d 00000002 00000001 61 00000001 00000003"
                            "00000001 62 00000002 00000001 00000002",
                            payload);
    union wire_message message;
    assert_int_equal(wire_decode(wire_shape_of(WIRE_GROUP_ASSIGNMENT),
                                 (struct slice){payload, bytes}, &message, NULL),
                     STATUS_OK);
    struct wire_cursor topics, partitions;
    struct wire_assignment assignment;
    struct wire_partition partition;
    wire_cursor_init(&topics, &message.group_assignment.assignments, &wire_shape_assignment);
    assert_true(wire_cursor_next(&topics, &assignment));
    assert_memory_equal(assignment.topic.data, "a", 1);
    wire_cursor_init(&partitions, &assignment.partitions, &wire_shape_partition);
    assert_true(wire_cursor_next(&partitions, &partition));
    assert_int_equal(partition.partition, 2);
    assert_false(wire_cursor_next(&partitions, &partition));
    assert_true(wire_cursor_next(&topics, &assignment));
    assert_int_equal(assignment.partitions.count, 2);
    assert_false(wire_cursor_next(&topics, &assignment));
}

static void encoding_into_a_full_buffer_fails_without_a_frame(void **state)
{
    (void)state;
    for (size_t bytes_max = 1; bytes_max < 30; bytes_max++) {
        struct buffer out;
        buffer_init(&out, bytes_max);
        wire_encode_error(&out, &vector_id, WIRE_CODE_INTERNAL, "no room");
        assert_true(buffer_failed(&out));
        buffer_deinit(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hello_is_the_vector),
        cmocka_unit_test(produce_is_the_vector),
        cmocka_unit_test(produce_ack_is_the_vector_and_counts_partitions_from_one),
        cmocka_unit_test(not_leader_error_is_the_vector),
        cmocka_unit_test(key_hashes_are_the_vectors),
        cmocka_unit_test(leader_hint_stops_at_white_space),
        cmocka_unit_test(leader_hint_that_does_not_fit_is_none),
        cmocka_unit_test(frame_needs_its_last_byte),
        cmocka_unit_test(frame_length_is_bounded_on_both_sides),
        cmocka_unit_test(every_message_comes_back_byte_for_byte),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(unknown_trailing_bytes_are_ignored),
        cmocka_unit_test(partition_zero_is_refused),
        cmocka_unit_test(offset_of_two_to_the_63_is_refused),
        cmocka_unit_test(count_larger_than_the_bytes_behind_it_is_refused),
        cmocka_unit_test(empty_batch_is_refused),
        cmocka_unit_test(partition_count_of_a_new_topic_is_bounded),
        cmocka_unit_test(topic_name_of_250_bytes_is_refused),
        cmocka_unit_test(value_of_more_than_64_kib_is_refused_in_a_request),
        cmocka_unit_test(dead_letter_is_the_vector),
        cmocka_unit_test(dead_letter_is_refused_cut_off_or_of_an_unknown_version),
        cmocka_unit_test(retired_ping_has_no_shape),
        cmocka_unit_test(cursor_walks_nested_lists),
        cmocka_unit_test(encoding_into_a_full_buffer_fails_without_a_frame),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
