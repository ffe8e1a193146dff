/* NACK: records given back, delivered again, and moved to the dead letters (native-protocol.md
 * 4.10). */
#include "unit/native/front_end.h"

#include "native/attempts.h"
#include "native/dead_letter.h"

static struct client client;

static int greet(void **state)
{
    client_open(&client, *state);
    client_greet(&client);
    return 0;
}

static int leave(void **state)
{
    (void)state;
    client_free(&client);
    return 0;
}

static void fill(const char *topic, const char *const *values, uint32_t count)
{
    client_create_topic(&client, topic, 1);
    for (uint32_t i = 0; i < count; i++)
        client_produce(&client, topic, "key", values[i]);
}
#define FILL(topic, ...)                            \
    fill(topic, (const char *const[]){__VA_ARGS__}, \
         sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *))

/* The next fetch delivers these values. */
static void expect_fetch(const char *topic, const char *expected)
{
    char values[512] = "";
    struct wire_fetch fetch = {.topic = wire_text(topic),
                               .group = wire_text("g"),
                               .max_records = 100,
                               .has_isolation = true,
                               .has_flags = true,
                               .flags = WIRE_FETCH_BATCHED};
    client_ask(&client, WIRE_FETCH, &fetch);
    struct wire_frame frame = client_frame(&client);
    if (frame.opcode == WIRE_RECORD_BATCH) {
        union wire_message message = client_decode(&frame);
        values_of(&message.record_batch.records, values, sizeof(values));
        frame = client_frame(&client);
    }
    assert_int_equal(frame.opcode, WIRE_OK);
    assert_string_equal(values, expected);
}

static void expect_fetch_anything(const char *topic)
{
    struct wire_fetch fetch = {
        .topic = wire_text(topic), .group = wire_text("g"), .max_records = 100};
    client_ask(&client, WIRE_FETCH, &fetch);
    while (client_frame(&client).opcode != WIRE_OK) {
    }
}

static uint64_t ask_nack(const char *topic, int32_t partition, int64_t offset)
{
    struct wire_nack nack = {.topic = wire_text(topic),
                             .partition = partition,
                             .offset = offset,
                             .reason = wire_text("bad")};
    return client_ask(&client, WIRE_NACK, &nack);
}

/* Given back for the n-th time. */
static void expect_nack(const char *topic, int64_t offset, uint16_t attempts, const char *dead)
{
    uint64_t number = ask_nack(topic, 0, offset);
    struct wire_nack_ack ack = client_expect(&client, number, WIRE_NACK_ACK).nack_ack;
    assert_int_equal(ack.attempts, attempts);
    assert_int_equal(ack.dead_lettered, dead != NULL);
    assert_int_equal(ack.dlq_topic.bytes, dead == NULL ? 0 : strlen(dead));
    if (dead != NULL) assert_memory_equal(ack.dlq_topic.data, dead, strlen(dead));
}

/* The group's committed offset of the topic; -1: none. */
static int64_t committed_offset(const char *topic)
{
    struct wire_text_message describe = {wire_text("g")};
    uint64_t number = client_ask(&client, WIRE_DESCRIBE_GROUP, &describe);
    union wire_message message = client_expect(&client, number, WIRE_GROUP_DESCRIPTION);
    struct wire_cursor cursor;
    struct wire_topic_offset item;
    wire_cursor_init(&cursor, &message.group_description.offsets, &wire_shape_topic_offset);
    while (wire_cursor_next(&cursor, &item)) {
        if (item.topic.bytes == strlen(topic) &&
            memcmp(item.topic.data, topic, item.topic.bytes) == 0) {
            return item.offset;
        }
    }
    return -1;
}

/* ---- delivered again ---- */

static void record_given_back_is_delivered_again_with_those_behind_it(void **state)
{
    (void)state;
    FILL("again", "a", "b", "c");
    expect_fetch("again", "a b c");
    expect_nack("again", 1, 1, NULL);
    expect_fetch("again", "b c");
    expect_fetch("again", "");
}

static void a_record_given_back_takes_none_before_it_along(void **state)
{
    (void)state;
    FILL("before", "a", "b", "c");
    expect_fetch("before", "a b c");
    expect_nack("before", 2, 1, NULL);
    client_reconnect(&client);
    expect_fetch("before", "a b c");
}

static void committed_offset_goes_down_to_a_record_given_back(void **state)
{
    (void)state;
    FILL("down", "a", "b", "c");
    expect_fetch("down", "a b c");
    expect_fetch("down", "");
    assert_int_equal(committed_offset("down"), 3);
    expect_nack("down", 1, 1, NULL);
    assert_int_equal(committed_offset("down"), 1);
    client_reconnect(&client);
    expect_fetch("down", "b c");
}

/* ---- moved away ---- */

static struct wire_dead_letter fetch_letter(const char *topic, int64_t offset, char key[16])
{
    static uint8_t copy[512];
    struct buffer items;
    buffer_init(&items, 0);
    struct wire_position position = {0, offset};
    wire_put(&items, &wire_shape_position, &position);
    struct wire_fetch fetch = {.topic = wire_text(topic),
                               .group = wire_text(""),
                               .max_records = 1,
                               .has_isolation = true,
                               .has_flags = true,
                               .flags = WIRE_FETCH_POSITIONS,
                               .positions = {1, buffer_slice(&items)}};
    uint64_t number = client_ask(&client, WIRE_FETCH, &fetch);
    buffer_deinit(&items);
    union wire_message message = client_expect(&client, number, WIRE_RECORD_BATCH);
    struct wire_cursor cursor;
    struct wire_record record;
    wire_cursor_init(&cursor, &message.record_batch.records, &wire_shape_record);
    assert_true(wire_cursor_next(&cursor, &record));
    snprintf(key, 16, "%.*s", (int)record.key.bytes, (const char *)record.key.data);
    assert_true(record.value.bytes <= sizeof(copy));
    memcpy(copy, record.value.data, record.value.bytes);
    struct wire_dead_letter letter;
    assert_int_equal(
        wire_decode_dead_letter((struct slice){copy, record.value.bytes}, &letter, NULL),
        STATUS_OK);
    client_expect(&client, number, WIRE_OK);
    return letter;
}

static void record_given_back_for_the_third_time_is_a_dead_letter(void **state)
{
    (void)state;
    char key[16];
    FILL("orders", "hello", "next");
    expect_fetch("orders", "hello next");
    expect_nack("orders", 0, 1, NULL);
    expect_fetch("orders", "hello next");
    expect_nack("orders", 0, 2, NULL);
    expect_fetch("orders", "hello next");
    expect_nack("orders", 0, 3, "orders.dlq");
    assert_int_equal(committed_offset("orders"), 1);
    struct wire_dead_letter letter = fetch_letter("orders.dlq", 0, key);
    assert_string_equal(key, "key");
    assert_memory_equal(letter.topic.data, "orders", 6);
    assert_int_equal(letter.partition, 0);
    assert_int_equal(letter.offset, 0);
    assert_true(letter.timestamp_ms > 0);
    assert_memory_equal(letter.group.data, "g", 1);
    assert_int_equal(letter.attempts, 3);
    assert_memory_equal(letter.reason.data, "bad", 3);
    assert_int_equal(letter.value.bytes, 5);
    assert_memory_equal(letter.value.data, "hello", 5);
    client_reconnect(&client);
    expect_fetch("orders", "next");
    expect_nack("orders", 0, 1, NULL);
}

static void without_a_fetch_in_between_the_session_goes_past_a_dead_letter(void **state)
{
    (void)state;
    FILL("straight", "a", "b");
    expect_fetch("straight", "a b");
    expect_nack("straight", 0, 1, NULL);
    expect_nack("straight", 0, 2, NULL);
    expect_nack("straight", 0, 3, "straight.dlq");
    expect_fetch("straight", "b");
}

static void dead_letter_of_an_older_record_moves_nobody_back(void **state)
{
    (void)state;
    FILL("older", "a", "b", "c");
    expect_fetch("older", "a b c");
    expect_nack("older", 0, 1, NULL);
    expect_nack("older", 0, 2, NULL);
    expect_fetch("older", "a b c");
    expect_fetch("older", "");
    assert_int_equal(committed_offset("older"), 3);
    expect_nack("older", 0, 3, "older.dlq");
    assert_int_equal(committed_offset("older"), 3);
    expect_fetch("older", "");
}

static void dead_letters_are_not_moved_on(void **state)
{
    (void)state;
    FILL("sick", "a");
    expect_fetch("sick", "a");
    expect_nack("sick", 0, 1, NULL);
    expect_nack("sick", 0, 2, NULL);
    expect_nack("sick", 0, 3, "sick.dlq");
    struct wire_fetch fetch = {
        .topic = wire_text("sick.dlq"), .group = wire_text("g"), .max_records = 1};
    uint64_t number = client_ask(&client, WIRE_FETCH, &fetch);
    client_expect(&client, number, WIRE_RECORD);
    client_expect(&client, number, WIRE_OK);
    for (uint16_t i = 1; i < 6; i++)
        expect_nack("sick.dlq", 0, i, NULL);
}

static void dead_letter_topic_has_as_many_partitions(void **state)
{
    (void)state;
    client_create_topic(&client, "wide", 3);
    struct wire_ack place = client_produce(&client, "wide", "k1", "v");
    expect_fetch("wide", "v");
    for (int i = 0; i < 3; i++) {
        uint64_t number = ask_nack("wide", place.partition, place.offset);
        client_expect(&client, number, WIRE_NACK_ACK);
    }
    struct wire_text_message describe = {wire_text("wide.dlq")};
    uint64_t number = client_ask(&client, WIRE_DESCRIBE_TOPIC, &describe);
    union wire_message message = client_expect(&client, number, WIRE_TOPIC_DESCRIPTION);
    assert_int_equal(message.topic_description.partitions, 3);
}

/* ---- refused ---- */

static void nack_is_checked(void **state)
{
    (void)state;
    FILL("checked", "a");
    client_expect_error(&client, ask_nack("checked", 0, 0), WIRE_CODE_BAD_PROTOCOL);
    expect_fetch("checked", "a");
    client_expect_error(&client, ask_nack("nowhere", 0, 0), WIRE_CODE_TOPIC_MISSING);
    client_expect_error(&client, ask_nack("checked", 1, 0), WIRE_CODE_BAD_FRAME);
    client_expect_error(&client, ask_nack("checked", 0, 1), WIRE_CODE_INTERNAL);
    client_expect_error(&client, ask_nack("checked", 0, 1000), WIRE_CODE_INTERNAL);
    expect_nack("checked", 0, 1, NULL);
}

/* ---- pushed ---- */

static struct wire_record next_pushed(void)
{
    for (;;) {
        struct wire_frame frame = client_frame(&client);
        if (frame.opcode == WIRE_HEARTBEAT_REQ) {
            struct buffer out;
            buffer_init(&out, 0);
            wire_encode(&out, WIRE_HEARTBEAT_RESP, &frame.id, NULL);
            struct slice answer = {out.data + WIRE_LENGTH_BYTES, out.bytes - WIRE_LENGTH_BYTES};
            assert_int_equal(native_connection_receive(client.connection, answer), STATUS_OK);
            buffer_deinit(&out);
            continue;
        }
        assert_int_equal(frame.opcode, WIRE_RECORD);
        return client_decode(&frame).record;
    }
}

static void record_given_back_is_pushed_again(void **state)
{
    (void)state;
    FILL("pushed", "a", "b");
    struct wire_subscribe subscribe = {.topic = wire_text("pushed"), .group = wire_text("push")};
    client_expect(&client, client_ask(&client, WIRE_SUBSCRIBE, &subscribe), WIRE_OK);
    assert_int_equal(next_pushed().offset, 0);
    assert_int_equal(next_pushed().offset, 1);
    for (uint16_t i = 1; i < 3; i++) {
        uint64_t number = ask_nack("pushed", 0, 0);
        struct wire_frame frame = client_frame(&client);
        while (frame.opcode == WIRE_HEARTBEAT_REQ)
            frame = client_frame(&client);
        assert_int_equal(frame.opcode, WIRE_NACK_ACK);
        (void)number;
        assert_int_equal(client_decode(&frame).nack_ack.attempts, i);
        assert_int_equal(next_pushed().offset, 0);
        assert_int_equal(next_pushed().offset, 1);
    }
}

static void client_may_leave_at_any_moment_of_a_nack(void **state)
{
    (void)state;
    FILL("brief", "a", "b");
    for (int turns = 0; turns < 40; turns++) {
        expect_fetch("brief", "a b");
        ask_nack("brief", 0, 1);
        for (int i = 0; i < turns; i++)
            event_base_loop(loop_event_base(client.front->loop), EVLOOP_ONCE | EVLOOP_NONBLOCK);
        client_reconnect(&client);
        /* Where the dead letter was written, the group may have been moved: back to the start. */
        expect_fetch_anything("brief");
        struct wire_commit commit = {.topic = wire_text("brief"), .partition = 0, .offset = 0};
        client_expect(&client, client_ask(&client, WIRE_COMMIT, &commit), WIRE_OK);
    }
}

/* ---- the parts ---- */

static struct attempts_key key_at(int64_t offset)
{
    return (struct attempts_key){.group = wire_text("g"), .partition = 3, .offset = offset};
}

static void attempts_are_counted_by_all_of_their_key(void **state)
{
    (void)state;
    struct attempts attempts;
    attempts_init(&attempts);
    struct attempts_key key = key_at(7), other = key_at(7);
    attempts_set(&attempts, &key, 2);
    assert_int_equal(attempts_get(&attempts, &key), 2);
    other.partition = 4;
    assert_int_equal(attempts_get(&attempts, &other), 0);
    other = key_at(8);
    assert_int_equal(attempts_get(&attempts, &other), 0);
    other = key_at(7);
    other.group = wire_text("h");
    assert_int_equal(attempts_get(&attempts, &other), 0);
    attempts_set(&attempts, &key, 0);
    assert_int_equal(attempts_get(&attempts, &key), 0);
    attempts_clear(&attempts);
}

static void attempts_forget_the_one_touched_longest_ago(void **state)
{
    (void)state;
    struct attempts attempts;
    attempts_init(&attempts);
    for (int64_t i = 0; i < ATTEMPTS_MAX; i++) {
        struct attempts_key key = key_at(i);
        attempts_set(&attempts, &key, 1);
    }
    struct attempts_key first = key_at(0), second = key_at(1), one_more = key_at(ATTEMPTS_MAX);
    attempts_set(&attempts, &first, 2);
    attempts_set(&attempts, &one_more, 1);
    assert_int_equal(attempts_get(&attempts, &first), 2);
    assert_int_equal(attempts_get(&attempts, &second), 0);
    assert_int_equal(attempts_get(&attempts, &one_more), 1);
    attempts_clear(&attempts);
}

static void name_too_long_for_its_suffix_is_cut_and_told_apart(void **state)
{
    (void)state;
    char topic[TOPIC_NAME_BYTES_MAX + 1], first[TOPIC_NAME_BYTES_MAX + 1],
        second[TOPIC_NAME_BYTES_MAX + 1];
    dead_letter_topic_name("orders", ".dlq", first);
    assert_string_equal(first, "orders.dlq");
    memset(topic, 't', sizeof(topic));
    topic[245] = '\0';
    dead_letter_topic_name(topic, ".dlq", first);
    assert_int_equal(strlen(first), 249);
    assert_memory_equal(first, topic, 245);
    topic[245] = 't';
    topic[249] = '\0';
    dead_letter_topic_name(topic, ".dlq", first);
    topic[248] = 'u';
    dead_letter_topic_name(topic, ".dlq", second);
    assert_int_equal(strlen(first), 249);
    assert_string_not_equal(first, second);
    assert_true(dead_letter_is_topic(first, ".dlq"));
    assert_false(dead_letter_is_topic(".dlq", ".dlq"));
    assert_false(dead_letter_is_topic("orders", ".dlq"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, greet, leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(record_given_back_is_delivered_again_with_those_behind_it),
        TEST(a_record_given_back_takes_none_before_it_along),
        TEST(committed_offset_goes_down_to_a_record_given_back),
        TEST(record_given_back_for_the_third_time_is_a_dead_letter),
        TEST(without_a_fetch_in_between_the_session_goes_past_a_dead_letter),
        TEST(dead_letter_of_an_older_record_moves_nobody_back),
        TEST(dead_letters_are_not_moved_on),
        TEST(dead_letter_topic_has_as_many_partitions),
        TEST(nack_is_checked),
        TEST(record_given_back_is_pushed_again),
        TEST(client_may_leave_at_any_moment_of_a_nack),
        cmocka_unit_test(attempts_are_counted_by_all_of_their_key),
        cmocka_unit_test(attempts_forget_the_one_touched_longest_ago),
        cmocka_unit_test(name_too_long_for_its_suffix_is_cut_and_told_apart),
    };
    return cmocka_run_group_tests(tests, front_end_set_up, front_end_tear_down);
}
