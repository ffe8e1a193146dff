/* SUBSCRIBE: what is pushed, how much of it, and what is committed of it (native-protocol.md 4.7).
 */
#include "unit/native/front_end.h"

#include "native/push_window.h"

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

static uint64_t ask_subscribe(const char *topic, const char *group)
{
    struct wire_subscribe subscribe = {.topic = wire_text(topic), .group = wire_text(group)};
    return client_ask(&client, WIRE_SUBSCRIBE, &subscribe);
}

static void subscribe(const char *topic, const char *group)
{
    client_expect(&client, ask_subscribe(topic, group), WIRE_OK);
}

static void produce_numbers(const char *topic, uint32_t from, uint32_t count)
{
    struct buffer items;
    buffer_init(&items, 0);
    for (uint32_t i = from; i < from + count; i++) {
        char value[16];
        snprintf(value, sizeof(value), "%u", i);
        struct wire_key_value record = {wire_text(""), wire_text(value)};
        wire_put(&items, &wire_shape_key_value, &record);
    }
    struct wire_produce_batch batch = {.topic = wire_text(topic),
                                       .records = {count, buffer_slice(&items)}};
    struct client other;
    client_open(&other, client.front);
    client_greet(&other);
    client_expect(&other, client_ask(&other, WIRE_PRODUCE_BATCH, &batch), WIRE_PRODUCE_BATCH_ACK);
    client_free(&other);
    buffer_deinit(&items);
}

static void answer_mark(const struct wire_id *id)
{
    struct buffer out;
    buffer_init(&out, 0);
    wire_encode(&out, WIRE_HEARTBEAT_RESP, id, NULL);
    struct slice frame = {out.data + WIRE_LENGTH_BYTES, out.bytes - WIRE_LENGTH_BYTES};
    enum status status = native_connection_receive(client.connection, frame);
    assert_true(status == STATUS_OK || status == STATUS_CLOSED);
    buffer_deinit(&out);
}

/* The answer to `number`; marks before it are answered, records before it counted. */
static union wire_message expect_amid(uint64_t number, uint8_t opcode, uint32_t *records)
{
    struct wire_id id = client_id(number);
    for (;;) {
        struct wire_frame frame = client_frame(&client);
        if (frame.opcode == WIRE_HEARTBEAT_REQ) {
            answer_mark(&frame.id);
        } else if (frame.opcode == WIRE_RECORD) {
            ++*records;
        } else {
            assert_true(wire_id_equal(&frame.id, &id));
            assert_int_equal(frame.opcode, opcode);
            return client_decode(&frame);
        }
    }
}

/* The next record; marks before it are answered if `answers`. */
static union wire_message next_record(bool answers)
{
    for (;;) {
        struct wire_frame frame = client_frame(&client);
        if (frame.opcode == WIRE_HEARTBEAT_REQ) {
            if (answers) answer_mark(&frame.id);
            continue;
        }
        if (frame.opcode == WIRE_ERROR) {
            union wire_message message = client_decode(&frame);
            fail_msg("error %u: %.*s", message.error.code, (int)message.error.text.bytes,
                     (const char *)message.error.text.data);
        }
        assert_int_equal(frame.opcode, WIRE_RECORD);
        assert_true(wire_id_is_zero(&frame.id));
        return client_decode(&frame);
    }
}

static void expect_numbers(uint32_t from, uint32_t count)
{
    for (uint32_t i = from; i < from + count; i++) {
        char value[16];
        union wire_message message = next_record(true);
        snprintf(value, sizeof(value), "%u", i);
        assert_int_equal(message.record.value.bytes, strlen(value));
        assert_memory_equal(message.record.value.data, value, strlen(value));
    }
}

/* The mark behind the last record. */
static void answer_next_mark(void)
{
    struct wire_frame frame = client_frame(&client);
    assert_int_equal(frame.opcode, WIRE_HEARTBEAT_REQ);
    answer_mark(&frame.id);
}

/* The group's committed offset of the one partition it reads; -1: none. */
static int64_t committed_offset(const char *group)
{
    struct client other;
    struct wire_text_message describe = {wire_text(group)};
    int64_t offset = -1;
    client_open(&other, client.front);
    client_greet(&other);
    client_ask(&other, WIRE_DESCRIBE_GROUP, &describe);
    struct wire_frame frame = client_frame(&other);
    if (frame.opcode == WIRE_GROUP_DESCRIPTION) {
        union wire_message message = client_decode(&frame);
        struct wire_cursor cursor;
        struct wire_topic_offset item;
        wire_cursor_init(&cursor, &message.group_description.offsets, &wire_shape_topic_offset);
        if (wire_cursor_next(&cursor, &item)) offset = item.offset;
    }
    client_free(&other);
    return offset;
}

static void wait_committed(const char *group, int64_t offset)
{
    struct loop *loop = loop_event_interface(client.front->loop);
    int64_t end_us = loop_now_us(loop) + FRONT_END_PATIENCE_US;
    while (committed_offset(group) != offset) {
        assert_true(loop_now_us(loop) < end_us);
        event_base_loop(loop_event_base(client.front->loop), EVLOOP_ONCE | EVLOOP_NONBLOCK);
    }
}

/* ---- what comes ---- */

static void subscriber_gets_what_is_there_and_what_comes(void **state)
{
    (void)state;
    client_create_topic(&client, "news", 1);
    produce_numbers("news", 0, 3);
    subscribe("news", "g");
    expect_numbers(0, 3);
    produce_numbers("news", 3, 2);
    expect_numbers(3, 2);
}

static void connection_may_subscribe_to_several_topics(void **state)
{
    (void)state;
    client_create_topic(&client, "left", 2);
    client_create_topic(&client, "right", 2);
    subscribe("left", "two");
    subscribe("right", "two");
    produce_numbers("right", 0, 1);
    assert_memory_equal(next_record(true).record.topic.data, "right", 5);
    produce_numbers("left", 0, 1);
    assert_memory_equal(next_record(true).record.topic.data, "left", 4);
}

static void many_records_come_in_order_and_once(void **state)
{
    (void)state;
    client_create_topic(&client, "many", 1);
    for (uint32_t i = 0; i < 5; i++)
        produce_numbers("many", i * 2000, 2000);
    subscribe("many", "many");
    expect_numbers(0, 10000);
}

static void other_requests_are_answered_in_between(void **state)
{
    (void)state;
    client_create_topic(&client, "busy", 1);
    subscribe("busy", "busy");
    produce_numbers("busy", 0, 2);
    uint32_t records = 0;
    expect_amid(client_ask(&client, WIRE_LIST_TOPICS, NULL), WIRE_TOPIC_LIST, &records);
    expect_numbers(records, 2 - records);
}

/* ---- how much ---- */

static void without_an_answer_to_its_marks_the_window_is_all_that_comes(void **state)
{
    (void)state;
    client_create_topic(&client, "flood", 1);
    produce_numbers("flood", 0, 500);
    subscribe("flood", "flood");
    for (uint32_t i = 0; i < PUSH_RECORDS_FIRST; i++)
        next_record(false);
    /* Nothing but the last mark is before the answer to this. */
    uint64_t number = client_ask(&client, WIRE_LIST_TOPICS, NULL);
    struct wire_frame frame = client_frame(&client);
    assert_int_equal(frame.opcode, WIRE_HEARTBEAT_REQ);
    struct wire_id last = frame.id;
    client_expect(&client, number, WIRE_TOPIC_LIST);
    answer_mark(&last);
    expect_numbers(PUSH_RECORDS_FIRST, 500 - PUSH_RECORDS_FIRST);
}

static uint32_t received_count;
static void count_received(void *context, const struct push_delivery *delivery)
{
    (void)context;
    (void)delivery;
    received_count++;
}

static bool is_partition_one(void *context, const struct push_delivery *delivery)
{
    (void)context;
    return delivery->partition == 1;
}

static void window_follows_how_fast_marks_are_answered(void **state)
{
    (void)state;
    struct push_window window;
    struct wire_id id = {{1}};
    push_window_init(&window);
    assert_int_equal(push_window_room(&window), PUSH_RECORDS_FIRST / 2);
    assert_true(push_window_send(&window, &id, 0, NULL, 0, PUSH_RECORDS_FIRST, 10));
    assert_int_equal(push_window_room(&window), 0);
    assert_true(push_window_answer(&window, &id, 1000, count_received, NULL));
    assert_int_equal(push_window_room(&window), PUSH_RECORDS_FIRST);
    for (uint32_t i = 0; i < 20; i++) {
        assert_true(push_window_send(&window, &id, 0, NULL, 0, 1, 10));
        assert_true(push_window_answer(&window, &id, PUSH_SLOW_US + 1, count_received, NULL));
    }
    assert_int_equal(push_window_room(&window), 1);
    assert_true(push_window_send(&window, &id, 0, NULL, 0, 1, PUSH_BYTES_MAX));
    assert_int_equal(push_window_room(&window), 0);
    push_window_deinit(&window);
}

static void answer_to_a_later_mark_answers_those_before_it(void **state)
{
    (void)state;
    struct push_window window;
    struct session_topic *topic = (struct session_topic *)&window; /* not looked into */
    struct wire_id ids[3] = {{{1}}, {{2}}, {{3}}};
    push_window_init(&window);
    for (int i = 0; i < 3; i++) {
        struct push_delivery deliveries[2] = {{topic, 0, i}, {topic, 1, i}};
        assert_true(push_window_send(&window, &ids[i], 0, deliveries, 2, 2, 10));
    }
    received_count = 0;
    assert_true(push_window_answer(&window, &ids[1], 0, count_received, NULL));
    assert_int_equal(received_count, 4);
    assert_false(push_window_answer(&window, &ids[0], 0, count_received, NULL));
    push_window_void(&window, is_partition_one, NULL);
    assert_true(push_window_answer(&window, &ids[2], 0, count_received, NULL));
    assert_int_equal(received_count, 5);
    assert_true(push_window_is_idle(&window));
    assert_int_equal(window.records_open, 0);
    assert_int_equal(window.bytes_open, 0);
    push_window_deinit(&window);
}

/* ---- what is committed ---- */

static void what_the_client_has_shown_to_have_is_committed(void **state)
{
    (void)state;
    client_create_topic(&client, "kept", 1);
    produce_numbers("kept", 0, 3);
    subscribe("kept", "kept");
    expect_numbers(0, 3);
    answer_next_mark();
    wait_committed("kept", 3);
    produce_numbers("kept", 3, 2);
    next_record(false);
    next_record(false);
    client_reconnect(&client);
    subscribe("kept", "kept");
    expect_numbers(3, 2);
}

static uint64_t ask_commit(const char *topic, int64_t offset)
{
    struct wire_commit commit = {.topic = wire_text(topic), .partition = 0, .offset = offset};
    return client_ask(&client, WIRE_COMMIT, &commit);
}

static void nothing_is_committed_for_a_client_that_commits_itself(void **state)
{
    (void)state;
    client_create_topic(&client, "own", 1);
    subscribe("own", "own");
    client_expect(&client, ask_commit("own", 0), WIRE_OK);
    produce_numbers("own", 0, 4);
    expect_numbers(0, 4);
    answer_next_mark();
    produce_numbers("own", 4, 1);
    expect_numbers(4, 1);
    uint32_t records = 0;
    union wire_message message = expect_amid(ask_commit("own", 6), WIRE_ERROR, &records);
    assert_int_equal(message.error.code, WIRE_CODE_BAD_FRAME);
    assert_int_equal(committed_offset("own"), 0);
    client_reconnect(&client);
    subscribe("own", "own");
    expect_numbers(0, 5);
}

static void commit_does_not_move_what_is_pushed(void **state)
{
    (void)state;
    client_create_topic(&client, "still", 1);
    produce_numbers("still", 0, 3);
    subscribe("still", "still");
    expect_numbers(0, 3);
    answer_next_mark();
    client_expect(&client, ask_commit("still", 1), WIRE_OK);
    produce_numbers("still", 3, 1);
    expect_numbers(3, 1);
    assert_int_equal(committed_offset("still"), 1);
}

/* ---- what is refused ---- */

static void connection_pulls_or_is_pushed_to(void **state)
{
    (void)state;
    client_create_topic(&client, "mode", 1);
    struct wire_fetch fetch = {
        .topic = wire_text("mode"), .group = wire_text("g"), .max_records = 1};
    struct wire_subscribe committed = {
        .topic = wire_text("mode"), .group = wire_text("g"), .has_isolation = true, .isolation = 1};
    subscribe("mode", "g");
    client_expect_error(&client, client_ask(&client, WIRE_FETCH, &fetch), WIRE_CODE_BAD_PROTOCOL);
    client_expect_error(&client, ask_subscribe("mode", "h"), WIRE_CODE_BAD_PROTOCOL);
    client_expect_error(&client, client_ask(&client, WIRE_SUBSCRIBE, &committed),
                        WIRE_CODE_BAD_PROTOCOL);
    client_reconnect(&client);
    client_expect(&client, client_ask(&client, WIRE_FETCH, &fetch), WIRE_OK);
    client_expect_error(&client, ask_subscribe("mode", "g"), WIRE_CODE_BAD_PROTOCOL);
}

static void subscription_is_checked(void **state)
{
    (void)state;
    client_create_topic(&client, "there", 1);
    client_expect_error(&client, ask_subscribe("nowhere", "g"), WIRE_CODE_TOPIC_MISSING);
    client_expect_error(&client, ask_subscribe("no/where", "g"), WIRE_CODE_TOPIC_MISSING);
    client_expect_error(&client, ask_subscribe("__consumer_offsets", "g"),
                        WIRE_CODE_TOPIC_FORBIDDEN);
    client_expect_error(&client, ask_subscribe("there", ""), WIRE_CODE_BAD_FRAME);
}

/* ---- members ---- */

static void put_join(struct buffer *items, const char *topic)
{
    struct wire_name name = {wire_text(topic)};
    wire_put(items, &wire_shape_name, &name);
}

static struct wire_join_group join_request(const char *group, const struct buffer *items)
{
    return (struct wire_join_group){
        .group = wire_text(group), .member_id = wire_text("m"), .topics = {1, buffer_slice(items)}};
}

static void join(const char *topic, const char *group)
{
    struct buffer items;
    buffer_init(&items, 0);
    put_join(&items, topic);
    struct wire_join_group request = join_request(group, &items);
    client_expect(&client, client_ask(&client, WIRE_JOIN_GROUP, &request), WIRE_GROUP_ASSIGNMENT);
    buffer_deinit(&items);
}

/* The connection is closed with this error, which is nobody's answer. */
static void client_expect_fatal(uint16_t code)
{
    struct wire_frame frame = client_frame(&client);
    assert_int_equal(frame.opcode, WIRE_ERROR);
    assert_true(wire_id_is_zero(&frame.id));
    assert_int_equal(client_decode(&frame).error.code, code);
    assert_true(client.closed);
}

static void member_is_pushed_what_it_has_and_commits_as_itself(void **state)
{
    (void)state;
    client_create_topic(&client, "shared", 1);
    join("shared", "shared");
    produce_numbers("shared", 0, 3);
    subscribe("shared", "shared");
    expect_numbers(0, 3);
    answer_next_mark();
    wait_committed("shared", 3);
}

/* Else it would be given all of it again each time it comes. */
static void who_subscribes_beside_the_members_is_told(void **state)
{
    struct client member;
    (void)state;
    client_create_topic(&client, "closed", 1);
    produce_numbers("closed", 0, 1);
    subscribe("closed", "closed");
    client_open(&member, client.front);
    client_greet(&member);
    struct buffer items;
    buffer_init(&items, 0);
    put_join(&items, "closed");
    struct wire_join_group request = join_request("closed", &items);
    client_expect(&member, client_ask(&member, WIRE_JOIN_GROUP, &request), WIRE_GROUP_ASSIGNMENT);
    buffer_deinit(&items);
    expect_numbers(0, 1);
    answer_next_mark();
    client_expect_fatal(WIRE_CODE_GROUP_MEMBER_UNKNOWN);
    client_free(&member);
}

static void deleted_topic_that_comes_again_is_read_from_its_start(void **state)
{
    (void)state;
    client_create_topic(&client, "twice", 1);
    produce_numbers("twice", 0, 2);
    subscribe("twice", "twice");
    expect_numbers(0, 2);
    answer_next_mark();
    wait_committed("twice", 2);
    struct wire_text_message name = {wire_text("twice")};
    client_expect(&client, client_ask(&client, WIRE_DELETE_TOPIC, &name), WIRE_OK);
    client_create_topic(&client, "twice", 1);
    produce_numbers("twice", 7, 1);
    expect_numbers(7, 1);
}

/* Turns of the loop that do not wait. */
static void turn(uint32_t turns)
{
    for (uint32_t i = 0; i < turns; i++)
        event_base_loop(loop_event_base(client.front->loop), EVLOOP_ONCE | EVLOOP_NONBLOCK);
}

/* Answers the marks that are there, and reads past everything else. */
static void answer_what_is_there(void)
{
    struct wire_frame frame;
    while (wire_frame_parse(client.in.data + client.in_at, client.in.bytes - client.in_at, 1 << 26,
                            &frame) == STATUS_OK) {
        client.in_at += frame.frame_bytes;
        if (frame.opcode == WIRE_HEARTBEAT_REQ) answer_mark(&frame.id);
    }
}

static void subscriber_may_leave_at_any_moment(void **state)
{
    (void)state;
    client_create_topic(&client, "brief", 3);
    produce_numbers("brief", 0, 300);
    for (uint32_t turns = 0; turns < 40; turns++) {
        ask_subscribe("brief", "brief");
        for (uint32_t i = 0; i < turns; i++) {
            turn(1);
            answer_what_is_there();
        }
        client_reconnect(&client);
    }
    turn(10);
    assert_int_equal(native_stats(client.front->native)->requests_in_flight, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, greet, leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(subscriber_gets_what_is_there_and_what_comes),
        TEST(connection_may_subscribe_to_several_topics),
        TEST(many_records_come_in_order_and_once),
        TEST(other_requests_are_answered_in_between),
        TEST(without_an_answer_to_its_marks_the_window_is_all_that_comes),
        cmocka_unit_test(window_follows_how_fast_marks_are_answered),
        cmocka_unit_test(answer_to_a_later_mark_answers_those_before_it),
        TEST(what_the_client_has_shown_to_have_is_committed),
        TEST(nothing_is_committed_for_a_client_that_commits_itself),
        TEST(commit_does_not_move_what_is_pushed),
        TEST(connection_pulls_or_is_pushed_to),
        TEST(subscription_is_checked),
        TEST(member_is_pushed_what_it_has_and_commits_as_itself),
        TEST(who_subscribes_beside_the_members_is_told),
        TEST(subscriber_may_leave_at_any_moment),
        TEST(deleted_topic_that_comes_again_is_read_from_its_start),
    };
    return cmocka_run_group_tests(tests, front_end_set_up, front_end_tear_down);
}
