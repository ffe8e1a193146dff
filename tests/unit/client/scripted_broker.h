/* scripted_broker.h: brokers that play a script: what they expect and answer, connection by
 * connection. A broker is a thread with a port of its own. */
#ifndef MOONMQ_TESTS_CLIENT_SCRIPTED_BROKER_H
#define MOONMQ_TESTS_CLIENT_SCRIPTED_BROKER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "moonmq.h"
#include "native/wire.h"

/* ---- the scripted broker ---- */

struct peer {
    int descriptor;
    struct buffer in;
    struct wire_frame frame; /* the last one received */
    union wire_message message;
};

typedef void (*script_fn)(struct peer *peer);
struct broker {
    int listener;
    char address[32];
    script_fn scripts[4]; /* one a connection, in order */
    pthread_t thread;
};

/* Receives one frame and decodes it; cmocka's assertions do not work off the main thread. */
static inline uint8_t peer_receive(struct peer *peer)
{
    if (peer->frame.frame_bytes > 0) {
        peer->in.bytes -= peer->frame.frame_bytes;
        memmove(peer->in.data, peer->in.data + peer->frame.frame_bytes, peer->in.bytes);
        peer->frame.frame_bytes = 0;
    }
    while (wire_frame_parse(peer->in.data, peer->in.bytes, 1 << 20, &peer->frame) == STATUS_AGAIN) {
        uint8_t bytes[4096];
        ssize_t count = recv(peer->descriptor, bytes, sizeof(bytes), 0);
        if (count <= 0) return 0;
        buffer_put(&peer->in, bytes, (size_t)count);
    }
    if (wire_decode(wire_shape_of(peer->frame.opcode), peer->frame.payload, &peer->message, NULL) !=
        STATUS_OK) {
        abort();
    }
    return peer->frame.opcode;
}

static inline void peer_expect(struct peer *peer, uint8_t opcode)
{
    uint8_t received = peer_receive(peer);
    if (received == opcode) return;
    fprintf(stderr, "expected %s, received %s\n", wire_opcode_name(opcode),
            wire_opcode_name(received));
    abort();
}

static inline void peer_send(struct peer *peer, uint8_t opcode, const struct wire_id *id,
                             const void *message)
{
    struct buffer out;
    buffer_init(&out, 0);
    wire_encode(&out, opcode, id, message);
    if (send(peer->descriptor, out.data, out.bytes, MSG_NOSIGNAL) != (ssize_t)out.bytes) abort();
    buffer_deinit(&out);
}

static inline void peer_answer(struct peer *peer, uint8_t opcode, const void *message)
{
    peer_send(peer, opcode, &peer->frame.id, message);
}

static inline void peer_fail(struct peer *peer, uint16_t code, const char *text)
{
    struct wire_error_message error = {.code = code, .text = wire_text(text)};
    peer_answer(peer, WIRE_ERROR, &error);
}

static inline void peer_welcome(struct peer *peer)
{
    struct wire_welcome welcome = {.version = 1};
    peer_expect(peer, WIRE_HELLO);
    peer_answer(peer, WIRE_WELCOME, &welcome);
}

static inline void *broker_run(void *context)
{
    struct broker *broker = context;
    for (size_t i = 0; i < 4 && broker->scripts[i] != NULL; i++) {
        struct peer peer = {.descriptor = accept(broker->listener, NULL, NULL)};
        buffer_init(&peer.in, 0);
        broker->scripts[i](&peer);
        close(peer.descriptor);
        buffer_deinit(&peer.in);
    }
    return NULL;
}

static inline void broker_start(struct broker *broker)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof(address);
    broker->listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(broker->listener, (struct sockaddr *)&address, bytes), 0);
    assert_int_equal(listen(broker->listener, 8), 0);
    assert_int_equal(getsockname(broker->listener, (struct sockaddr *)&address, &bytes), 0);
    snprintf(broker->address, sizeof(broker->address), "127.0.0.1:%d", ntohs(address.sin_port));
    assert_int_equal(pthread_create(&broker->thread, NULL, broker_run, broker), 0);
}

static inline void broker_stop(struct broker *broker)
{
    pthread_join(broker->thread, NULL);
    close(broker->listener);
}

/* A port where nobody listens. */
static inline void nobody(struct broker *broker)
{
    broker_start(broker);
    broker_stop(broker);
}

static inline int connect_to(struct broker *broker, int reconnect_ms_max,
                             struct moonmq_client **client, struct moonmq_error *error)
{
    struct moonmq_options options = MOONMQ_OPTIONS_DEFAULT;
    const char *hosts[] = {broker->address};
    options.hosts = hosts;
    options.host_count = 1;
    options.reconnect_ms_max = reconnect_ms_max;
    options.connect_ms_max = reconnect_ms_max;
    return moonmq_client_new(&options, client, error);
}

static inline struct moonmq_client *connected_to(struct broker *broker, int reconnect_ms_max)
{
    struct moonmq_client *client = NULL;
    struct moonmq_error error;
    if (connect_to(broker, reconnect_ms_max, &client, &error) != MOONMQ_OK) {
        fail_msg("%s", error.text);
    }
    return client;
}

#endif
