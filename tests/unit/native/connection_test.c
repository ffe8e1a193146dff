/* Connections of the native front end: states, order, liveness, limits. */
#include "unit/native/front_end.h"

/* ---- states ---- */

static void open_broker_serves_after_hello_alone(void **state)
{
    struct client client;
    client_open(&client, *state);
    client_greet(&client);
    client_expect(&client, client_ask(&client, WIRE_LIST_TOPICS, NULL), WIRE_TOPIC_LIST);
    client_free(&client);
}

static void open_broker_takes_any_login_once(void **state)
{
    struct client client;
    struct wire_auth auth = {wire_text("anybody"), wire_text("anything")};
    client_open(&client, *state);
    client_greet(&client);
    client_expect(&client, client_ask(&client, WIRE_AUTH, &auth), WIRE_AUTH_OK);
    client_expect_error(&client, client_ask(&client, WIRE_AUTH, &auth), WIRE_CODE_BAD_FRAME);
    assert_false(client.closed);
    client_free(&client);
}

static void operation_before_hello_is_refused_and_the_connection_stays(void **state)
{
    struct client client;
    client_open(&client, *state);
    client_expect_error(&client, client_ask(&client, WIRE_LIST_TOPICS, NULL), WIRE_CODE_BAD_FRAME);
    client_greet(&client);
    client_free(&client);
}

static void other_version_is_refused_and_closes(void **state)
{
    struct client client;
    struct wire_hello hello = {.version = 2};
    client_open(&client, *state);
    client_expect_error(&client, client_ask(&client, WIRE_HELLO, &hello), WIRE_CODE_BAD_PROTOCOL);
    assert_true(client.closed);
    assert_int_equal(client.reason, NATIVE_CLOSE_BAD_PROTOCOL);
    client_free(&client);
}

static void connection_stays_after_an_unknown_operation(void **state)
{
    struct client client;
    struct wire_id id = client_id(77);
    uint8_t ping[WIRE_BODY_BYTES_MIN] = {WIRE_RETIRED_PING};
    memcpy(ping + 1, id.bytes, WIRE_ID_BYTES);
    client_open(&client, *state);
    client_greet(&client);
    assert_int_equal(
        native_connection_receive(client.connection, (struct slice){ping, sizeof(ping)}),
        STATUS_OK);
    client_expect_error(&client, 77, WIRE_CODE_UNKNOWN_OP);
    client_expect(&client, client_ask(&client, WIRE_LIST_TOPICS, NULL), WIRE_TOPIC_LIST);
    client_free(&client);
}

static void goodbye_closes_without_an_answer(void **state)
{
    struct client client;
    client_open(&client, *state);
    client_greet(&client);
    size_t before = client.in.bytes;
    client_ask(&client, WIRE_GOODBYE, NULL);
    assert_true(client.closed);
    assert_int_equal(client.reason, NATIVE_CLOSE_CLIENT_GOODBYE);
    assert_int_equal(client.in.bytes, before);
    client_free(&client);
}

static void undecodable_request_is_refused_and_the_connection_stays(void **state)
{
    struct client client;
    struct wire_topic_count create = {.name = wire_text("t"), .partitions = 0};
    client_open(&client, *state);
    client_greet(&client);
    client_expect_error(&client, client_ask(&client, WIRE_CREATE_TOPIC, &create),
                        WIRE_CODE_BAD_FRAME);
    assert_false(client.closed);
    client_free(&client);
}

/* ---- frames ---- */

static void frame_over_the_limit_is_fatal_nine(void **state)
{
    struct client client;
    size_t bytes;
    client_open(&client, *state);
    client_greet(&client);
    assert_int_equal(native_frame_bytes(client.connection, (const uint8_t *)"\0\x10\0\1", &bytes),
                     STATUS_TOO_LARGE);
    native_connection_refuse_frame(client.connection, STATUS_TOO_LARGE);
    struct wire_frame frame = client_frame(&client);
    assert_true(wire_id_is_zero(&frame.id));
    assert_int_equal(client_decode(&frame).error.code, WIRE_CODE_FRAME_TOO_LARGE);
    assert_int_equal(client.reason, NATIVE_CLOSE_FRAME_TOO_LARGE);
    client_free(&client);
}

static void frame_before_login_is_at_most_64_kib(void **state)
{
    struct client client;
    size_t bytes;
    client_open(&client, *state);
    assert_int_equal(native_frame_bytes(client.connection, (const uint8_t *)"\0\1\0\1", &bytes),
                     STATUS_TOO_LARGE);
    client_greet(&client);
    assert_int_equal(native_frame_bytes(client.connection, (const uint8_t *)"\0\1\0\1", &bytes),
                     STATUS_OK);
    client_free(&client);
}

/* ---- order ---- */

static void answers_keep_the_order_of_the_requests(void **state)
{
    struct client client;
    client_open(&client, *state);
    client_greet(&client);
    client_create_topic(&client, "order", 4);
    uint64_t numbers[64];
    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++) {
        numbers[i] = i % 8 == 7 ? client_ask(&client, WIRE_LIST_TOPICS, NULL)
                                : client_ask_produce(&client, "order", "", "v");
    }
    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++) {
        client_expect(&client, numbers[i], i % 8 == 7 ? WIRE_TOPIC_LIST : WIRE_PRODUCE_ACK);
    }
    client_free(&client);
}

static void produces_overlap(void **state)
{
    struct front_end *front = *state;
    struct client client;
    client_open(&client, front);
    client_greet(&client);
    client_create_topic(&client, "overlap", 1);
    for (int i = 0; i < 10; i++) {
        client_ask_produce(&client, "overlap", "", "v");
    }
    /* None is answered before a turn of the loop, and all of them were appended. */
    struct topic *topic = catalog_find(front->broker, "overlap", 7);
    assert_int_equal(partition_log_end(topic_partition(topic, 0)), 10);
    client_free(&client);
}

static void heartbeat_overtakes(void **state)
{
    struct client client;
    struct wire_id id;
    client_open(&client, *state);
    client_greet(&client);
    client_create_topic(&client, "heartbeat", 1);
    uint64_t produce = client_ask_produce(&client, "heartbeat", "", "v");
    uint64_t heartbeat = client_ask(&client, WIRE_HEARTBEAT_REQ, NULL);
    struct wire_frame first = client_frame(&client);
    struct wire_frame second = client_frame(&client);
    id = client_id(heartbeat);
    struct wire_frame *response = first.opcode == WIRE_HEARTBEAT_RESP ? &first : &second;
    assert_int_equal(response->opcode, WIRE_HEARTBEAT_RESP);
    assert_true(wire_id_equal(&response->id, &id));
    (void)produce;
    client_free(&client);
}

static void client_that_leaves_early_is_forgotten_when_its_requests_end(void **state)
{
    struct front_end *front = *state;
    struct client client, other;
    client_open(&client, front);
    client_greet(&client);
    client_create_topic(&client, "leave", 1);
    struct wire_topic_count create = {.name = wire_text("leave-2"), .partitions = 1};
    client_ask_produce(&client, "leave", "", "v");
    client_ask(&client, WIRE_CREATE_TOPIC, &create);
    client_free(&client);
    client_open(&other, front);
    client_greet(&other);
    client_produce(&other, "leave", "", "w");
    assert_int_equal(native_stats(front->native)->requests_in_flight, 0);
    client_free(&other);
}

static void slow_reader_is_cut_off(void **state)
{
    struct client client;
    client_open(&client, *state);
    client_greet(&client);
    client.unsent = (16u << 20) + 1;
    client_ask(&client, WIRE_LIST_TOPICS, NULL);
    assert_true(client.closed);
    assert_int_equal(client.reason, NATIVE_CLOSE_PENDING_SEND_TOO_LARGE);
    client_free(&client);
}

static void shutdown_tells_every_connection(void **state)
{
    struct front_end *front = *state;
    struct client client;
    client_open(&client, front);
    client_greet(&client);
    native_shut_down(front->native);
    struct wire_frame frame = client_frame(&client);
    assert_true(wire_id_is_zero(&frame.id));
    assert_int_equal(client_decode(&frame).error.code, WIRE_CODE_INTERNAL);
    assert_int_equal(client.reason, NATIVE_CLOSE_SERVER_SHUTDOWN);
    client_free(&client);
}

/* ---- deadlines, on a front end of their own ---- */

static void wait_closed(struct client *client)
{
    while (!client->closed) {
        front_end_turn(client->front);
    }
}

static void silent_connection_is_closed(void **state)
{
    (void)state;
    struct front_end front;
    struct client client;
    struct native_settings settings;
    native_settings_default(&settings);
    settings.pre_auth_read_us = 20000;
    front_end_start_with(&front, &settings, NULL, 0);
    client_open(&client, &front);
    wait_closed(&client);
    assert_int_equal(client.reason, NATIVE_CLOSE_READ_DEADLINE);
    client_free(&client);
    front_end_stop(&front);
}

static void idle_client_is_asked_for_a_sign_of_life_and_then_closed(void **state)
{
    (void)state;
    struct front_end front;
    struct client client;
    struct native_settings settings;
    native_settings_default(&settings);
    settings.heartbeat_us = 20000;
    front_end_start_with(&front, &settings, NULL, 0);
    client_open(&client, &front);
    client_greet(&client);
    struct wire_frame frame = client_frame(&client);
    assert_int_equal(frame.opcode, WIRE_HEARTBEAT_REQ);
    assert_false(wire_id_is_zero(&frame.id));
    wait_closed(&client);
    assert_int_equal(client.reason, NATIVE_CLOSE_HEARTBEAT_TIMEOUT);
    client_free(&client);
    front_end_stop(&front);
}

static void time_of_an_idle_client_runs_from_its_last_answer(void **state)
{
    (void)state;
    struct front_end front;
    struct client client;
    struct native_settings settings;
    native_settings_default(&settings);
    settings.idle_us = 20000;
    settings.heartbeat_us = 3600000000;
    front_end_start_with(&front, &settings, NULL, 0);
    client_open(&client, &front);
    client_greet(&client);
    client_create_topic(&client, "idle", 1);
    wait_closed(&client);
    assert_int_equal(client.reason, NATIVE_CLOSE_READ_DEADLINE);
    client_free(&client);
    front_end_stop(&front);
}

static void handshake_that_dawdles_is_closed(void **state)
{
    (void)state;
    struct front_end front;
    struct client client;
    struct native_settings settings;
    struct native_user user = {.name = "me", .password = "secret"};
    native_settings_default(&settings);
    settings.handshake_us = 30000;
    front_end_start_with(&front, &settings, &user, 1);
    client_open(&client, &front);
    client_greet(&client);
    wait_closed(&client);
    assert_int_equal(client.reason, NATIVE_CLOSE_HANDSHAKE_TIMEOUT);
    client_free(&client);
    front_end_stop(&front);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(open_broker_serves_after_hello_alone),
        cmocka_unit_test(open_broker_takes_any_login_once),
        cmocka_unit_test(operation_before_hello_is_refused_and_the_connection_stays),
        cmocka_unit_test(other_version_is_refused_and_closes),
        cmocka_unit_test(connection_stays_after_an_unknown_operation),
        cmocka_unit_test(goodbye_closes_without_an_answer),
        cmocka_unit_test(undecodable_request_is_refused_and_the_connection_stays),
        cmocka_unit_test(frame_over_the_limit_is_fatal_nine),
        cmocka_unit_test(frame_before_login_is_at_most_64_kib),
        cmocka_unit_test(answers_keep_the_order_of_the_requests),
        cmocka_unit_test(produces_overlap),
        cmocka_unit_test(heartbeat_overtakes),
        cmocka_unit_test(client_that_leaves_early_is_forgotten_when_its_requests_end),
        cmocka_unit_test(slow_reader_is_cut_off),
        cmocka_unit_test(shutdown_tells_every_connection),
    };
    const struct CMUnitTest deadline_tests[] = {
        cmocka_unit_test(silent_connection_is_closed),
        cmocka_unit_test(idle_client_is_asked_for_a_sign_of_life_and_then_closed),
        cmocka_unit_test(time_of_an_idle_client_runs_from_its_last_answer),
        cmocka_unit_test(handshake_that_dawdles_is_closed),
    };
    int failed = cmocka_run_group_tests(tests, front_end_set_up, front_end_tear_down);
    return failed + cmocka_run_group_tests(deadline_tests, NULL, NULL);
}
