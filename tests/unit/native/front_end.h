/* front_end.h: the native front end over a real broker that leads a group of one, in a temporary
 * directory; and clients that are byte buffers instead of sockets.                              */
#ifndef MOONMQ_TESTS_NATIVE_FRONT_END_H
#define MOONMQ_TESTS_NATIVE_FRONT_END_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <event2/event.h>

#include "base/assert.h"
#include "base/log.h"
#include "io/executor_threads.h"
#include "io/file_system.h"
#include "io/loop_event.h"
#include "native/connection.h"
#include "native/wire.h"
#include "replication/node.h"

/* Far beyond what anything here takes; reached only by a test that fails. */
#define FRONT_END_PATIENCE_US 30000000

struct front_end {
    char directory[64];
    struct loop_event *loop;
    struct executor *executor;
    struct broker *broker;
    struct node *node;
    struct native *native;
    bool done;
    enum status status;
};

static inline void front_end_done(void *context, enum status status, const struct error *error)
{
    struct front_end *front = context;
    if (status != STATUS_OK) fprintf(stderr, "%s\n", error == NULL ? "?" : error->text);
    front->done = true;
    front->status = status;
}

/* One turn of the loop, waiting for something to happen. */
static inline void front_end_turn(struct front_end *front)
{
    event_base_loop(loop_event_base(front->loop), EVLOOP_ONCE);
}

static inline void front_end_wait_done(struct front_end *front)
{
    int64_t end_us = loop_now_us(loop_event_interface(front->loop)) + FRONT_END_PATIENCE_US;
    while (!front->done) {
        front_end_turn(front);
        assert_true(loop_now_us(loop_event_interface(front->loop)) < end_us);
    }
    assert_int_equal(front->status, STATUS_OK);
    front->done = false;
}

static inline void front_end_start_with(struct front_end *front,
                                        const struct native_settings *settings,
                                        const struct native_user *users, size_t user_count)
{
    *front = (struct front_end){0};
    log_set_level(LOG_ERROR);
    strcpy(front->directory, "/tmp/moonmq-native-XXXXXX");
    assert_non_null(mkdtemp(front->directory));
    assert_int_equal(loop_event_new(&front->loop, NULL), STATUS_OK);
    assert_int_equal(executor_threads_new(front->loop, &front->executor, NULL), STATUS_OK);
    struct broker_options broker_options = {
        .fs = file_system_posix(),
        .executor = front->executor,
        .loop = loop_event_interface(front->loop),
        .data_dir = front->directory,
        .random_seed = 1,
    };
    broker_settings_default(&broker_options.settings);
    front->broker = broker_new(&broker_options);
    struct node_options node_options = {
        .loop = broker_options.loop,
        .executor = front->executor,
        .fs = broker_options.fs,
        .data_dir = front->directory,
        .random_seed = 2,
        .broker = front->broker,
    };
    replication_config_default(&node_options.config, 1);
    node_options.config.replica_id = 1;
    node_options.config.may_found = true;
    front->node = node_new(&node_options);
    assert_int_equal(
        native_new(front->broker, settings, users, user_count, 3, &front->native, NULL), STATUS_OK);
    node_start(front->node, front_end_done, front);
    front_end_wait_done(front);
    int64_t end_us = loop_now_us(broker_options.loop) + FRONT_END_PATIENCE_US;
    while (broker_check_serving(front->broker) != STATUS_OK) {
        front_end_turn(front);
        assert_true(loop_now_us(broker_options.loop) < end_us);
    }
}

static inline void front_end_start(struct front_end *front)
{
    struct native_settings settings;
    native_settings_default(&settings);
    front_end_start_with(front, &settings, NULL, 0);
}

static inline void front_end_stop(struct front_end *front)
{
    node_stop(front->node, front_end_done, front);
    front_end_wait_done(front);
    executor_threads_drain(front->executor);
    node_free(front->node);
    broker_free(front->broker);
    native_free(front->native);
    executor_threads_free(front->executor);
    loop_event_free(front->loop);
    assert_int_equal(file_remove_tree(file_system_posix(), front->directory, NULL), STATUS_OK);
}

/* Of all tests of a program, as the group's fixtures; in *state. */
static inline int front_end_set_up(void **state)
{
    struct front_end *front = malloc(sizeof(*front));
    front_end_start(front);
    *state = front;
    return 0;
}

static inline int front_end_tear_down(void **state)
{
    front_end_stop(*state);
    free(*state);
    return 0;
}

/* ---- clients ---- */

struct client {
    struct front_end *front;
    struct native_connection *connection;
    struct buffer in; /* what the broker sent */
    size_t in_at;
    size_t unsent; /* what the test says the socket has not taken */
    bool closed, resumed;
    enum native_close_reason reason;
    uint64_t next_id;
};

static inline void client_send(void *context, struct slice bytes)
{
    struct client *client = context;
    buffer_put(&client->in, bytes.data, bytes.bytes);
}
static inline size_t client_unsent(void *context)
{
    return ((struct client *)context)->unsent;
}
static inline void client_resume(void *context)
{
    ((struct client *)context)->resumed = true;
}
static inline void client_close(void *context, enum native_close_reason reason, const char *text)
{
    struct client *client = context;
    (void)text;
    assert_false(client->closed);
    client->closed = true;
    client->reason = reason;
}

static inline void client_open(struct client *client, struct front_end *front)
{
    *client = (struct client){.front = front};
    buffer_init(&client->in, 0);
    struct native_connection_handlers handlers = {client_send, client_unsent, client_resume,
                                                  client_close, client};
    client->connection = native_connection_new(front->native, &handlers, "127.0.0.1");
    assert_non_null(client->connection);
}

static inline void client_free(struct client *client)
{
    native_connection_free(client->connection);
    buffer_deinit(&client->in);
}

static inline struct wire_id client_id(uint64_t number)
{
    struct wire_id id = {{1}};
    store_u64(id.bytes + 8, number);
    return id;
}

/* Sends a request; the answer has the returned number. */
static inline uint64_t client_ask(struct client *client, uint8_t opcode, const void *message)
{
    struct wire_id id = client_id(++client->next_id);
    struct buffer out;
    buffer_init(&out, 0);
    wire_encode(&out, opcode, &id, message);
    size_t bytes;
    assert_int_equal(native_frame_bytes(client->connection, out.data, &bytes), STATUS_OK);
    /* A copy of its own: what the front end keeps of it must be its own copy. */
    uint8_t *frame = malloc(bytes);
    memcpy(frame, out.data + WIRE_LENGTH_BYTES, bytes);
    enum status status =
        native_connection_receive(client->connection, (struct slice){frame, bytes});
    assert_true(status == STATUS_OK || status == STATUS_CLOSED);
    free(frame);
    buffer_deinit(&out);
    return client->next_id;
}

/* The next frame, waiting for it. It stays valid until the client is asked or freed. */
static inline struct wire_frame client_frame(struct client *client)
{
    struct wire_frame frame;
    struct loop *loop = loop_event_interface(client->front->loop);
    int64_t end_us = loop_now_us(loop) + FRONT_END_PATIENCE_US;
    while (wire_frame_parse(client->in.data + client->in_at, client->in.bytes - client->in_at,
                            1 << 26, &frame) == STATUS_AGAIN) {
        assert_false(client->closed);
        front_end_turn(client->front);
        assert_true(loop_now_us(loop) < end_us);
    }
    client->in_at += frame.frame_bytes;
    return frame;
}

static inline union wire_message client_decode(const struct wire_frame *frame)
{
    union wire_message message;
    assert_int_equal(wire_decode(wire_shape_of(frame->opcode), frame->payload, &message, NULL),
                     STATUS_OK);
    return message;
}

/* The next frame must be `opcode`, in answer to `number`. */
static inline union wire_message client_expect(struct client *client, uint64_t number,
                                               uint8_t opcode)
{
    struct wire_frame frame = client_frame(client);
    struct wire_id id = client_id(number);
    if (frame.opcode == WIRE_ERROR && opcode != WIRE_ERROR) {
        union wire_message message = client_decode(&frame);
        fail_msg("error %u: %.*s", message.error.code, (int)message.error.text.bytes,
                 (const char *)message.error.text.data);
    }
    assert_int_equal(frame.opcode, opcode);
    assert_true(wire_id_equal(&frame.id, &id));
    return client_decode(&frame);
}

static inline void client_expect_error(struct client *client, uint64_t number, uint16_t code)
{
    union wire_message message = client_expect(client, number, WIRE_ERROR);
    if (message.error.code != code) {
        fail_msg("error %u instead of %u: %.*s", message.error.code, code,
                 (int)message.error.text.bytes, (const char *)message.error.text.data);
    }
}

static inline void client_greet(struct client *client)
{
    struct wire_hello hello = {.version = WIRE_PROTOCOL_VERSION};
    client_expect(client, client_ask(client, WIRE_HELLO, &hello), WIRE_WELCOME);
}

/* Another connection. */
static inline void client_reconnect(struct client *client)
{
    struct front_end *front = client->front;
    client_free(client);
    client_open(client, front);
    client_greet(client);
}

static inline void client_create_topic(struct client *client, const char *topic,
                                       uint32_t partitions)
{
    struct wire_topic_count create = {.name = wire_text(topic), .partitions = partitions};
    client_expect(client, client_ask(client, WIRE_CREATE_TOPIC, &create), WIRE_OK);
}

static inline uint64_t client_ask_produce(struct client *client, const char *topic, const char *key,
                                          const char *value)
{
    struct wire_produce produce = {
        .topic = wire_text(topic), .key = wire_text(key), .value = wire_text(value)};
    return client_ask(client, WIRE_PRODUCE, &produce);
}

static inline struct wire_ack client_produce(struct client *client, const char *topic,
                                             const char *key, const char *value)
{
    uint64_t number = client_ask_produce(client, topic, key, value);
    return client_expect(client, number, WIRE_PRODUCE_ACK).ack;
}

/* The values of a list of records as "a b c". */
static inline void values_of(const struct wire_list *records, char *text, size_t text_bytes)
{
    struct wire_cursor cursor;
    struct wire_record record;
    size_t at = 0;
    text[0] = '\0';
    wire_cursor_init(&cursor, records, &wire_shape_record);
    while (wire_cursor_next(&cursor, &record)) {
        at += (size_t)snprintf(text + at, text_bytes - at, "%s%.*s", at == 0 ? "" : " ",
                               (int)record.value.bytes, (const char *)record.value.data);
    }
}

#endif
