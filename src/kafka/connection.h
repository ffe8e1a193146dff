/* connection.h: one Kafka client's connection, without its socket.
 *
 * The shell cuts the byte stream into frames and hands them in one by one; answers come out in the
 * order of the requests. A client may send ahead, but as in Kafka a request begins only when those
 * before it are answered; produces alone overlap, in order. So a frame can be refused for now
 * (STATUS_AGAIN): the shell keeps it, stops reading, and offers it again on `resume`. A Fetch that
 * waits for data gives way to a frame behind it after a few milliseconds (section 2.3), since a
 * heartbeat may be that frame.
 *
 * States: OPEN -> CLOSED (told once by `close`; everything further is refused).
 * Callbacks may run inside kafka_connection_receive() and inside broker callbacks; they must not
 * free the connection. Free it at the end of the loop turn. Thread: event loop.                */
#ifndef MOONMQ_KAFKA_CONNECTION_H
#define MOONMQ_KAFKA_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/status.h"
#include "kafka/response.h"

struct kafka;
struct kafka_connection;

struct kafka_connection_handlers {
    /* The next answer. Taken: kafka_response_free() when its last byte is out. */
    void (*send)(void *context, struct kafka_response *response);
    /* A frame that got STATUS_AGAIN may be offered again. Always from the loop, never nested. */
    void (*resume)(void *context);
    /* Close it after what was sent is flushed. `reason` for the log, borrowed. Called once. */
    void (*close)(void *context, const char *reason);
    void *context;
};
struct kafka_connection_options {
    struct kafka_connection_handlers handlers;
    const char *client_host; /* the peer's address without its port: what a group shows; copied */
    int client_port;         /* for the log */
    const char *local_host;  /* the address it reached us at; may be NULL; copied */
    int local_port;
};

struct kafka_connection *kafka_connection_new(struct kafka *kafka,
                                              const struct kafka_connection_options *options);
/* Drops what is in flight; no callback after this returns. */
void kafka_connection_free(struct kafka_connection *connection);

/* Size of the frame that follows a 4-byte prefix. STATUS_INVALID: no Kafka frame, or over
 * request_bytes_max: close, the error says why. */
STATUS_MUST_CHECK
enum status kafka_frame_bytes(const struct kafka *kafka, const uint8_t prefix[4],
                              size_t *frame_bytes, struct error *error);

/* One whole frame without its size prefix; borrowed for the call.
 *
 * STATUS_OK      taken
 * STATUS_AGAIN   not now: nothing happened; `resume` will be called
 * STATUS_CLOSED  the connection is closed (by this frame, or before)                          */
STATUS_MUST_CHECK
enum status kafka_connection_receive(struct kafka_connection *connection, struct slice frame);

/* Requests begun and not yet answered. */
uint32_t kafka_connection_in_flight(const struct kafka_connection *connection);

#endif
