/* connection.h: one native client's connection, without its socket (native-protocol.md section 1).
 *
 * The shell cuts the byte stream into frames and hands them in one by one; frames come out as bytes
 * to be written in order.
 *
 * States: NEW -> GREETED -> AUTHENTICATED -> CLOSED, and any -> CLOSED. On an open broker GREETED
 * may do what AUTHENTICATED may.
 *
 * Order. Answers leave in the order of their requests. Produces overlap; any other request begins
 * when those before it are answered, and holds back those behind it. Heartbeats overtake. A frame
 * that would overfill the queue is refused for now (STATUS_AGAIN): the shell keeps it, stops
 * reading, and offers it again on `resume`.
 *
 * Callbacks may run inside native_connection_receive(), inside broker callbacks and from timers;
 * they must not free the connection: free it at the end of the loop turn. Thread: event loop.   */
#ifndef MOONMQ_NATIVE_CONNECTION_H
#define MOONMQ_NATIVE_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/status.h"
#include "native/native.h"

struct native_connection;

struct native_connection_handlers {
    /* Bytes to write, whole frames; borrowed for the call. */
    void (*send)(void *context, struct slice bytes);
    /* Bytes given to `send` that the socket has not taken yet. */
    size_t (*unsent)(void *context);
    /* A frame that got STATUS_AGAIN may be offered again. Always from the loop, never nested. */
    void (*resume)(void *context);
    /* Close it when what was sent is out, at most 250 ms from now. `reason` is one sentence for the
     * log, borrowed. Called once. */
    void (*close)(void *context, enum native_close_reason reason, const char *text);
    void *context;
};

/* peer_host: the peer's address, for the log; copied. NULL when out of memory. */
struct native_connection *native_connection_new(struct native *native,
                                                const struct native_connection_handlers *handlers,
                                                const char *peer_host);
/* Drops what is in flight; no callback after this returns. */
void native_connection_free(struct native_connection *connection);

/* Size of the frame behind a 4-byte length field; before login the bound is 64 KiB (decisions 2).
 * STATUS_INVALID, STATUS_TOO_LARGE: refuse it with native_connection_refuse_frame().            */
STATUS_MUST_CHECK
enum status native_frame_bytes(const struct native_connection *connection, const uint8_t prefix[4],
                               size_t *frame_bytes);
/* The stream cannot be followed any further: fatal 1 or 9, and close. */
void native_connection_refuse_frame(struct native_connection *connection, enum status why);

/* One whole frame without its length field; borrowed for the call.
 *
 * STATUS_OK      taken
 * STATUS_AGAIN   not now: nothing happened; `resume` will be called
 * STATUS_CLOSED  the connection is closed (by this frame, or before)                          */
STATUS_MUST_CHECK
enum status native_connection_receive(struct native_connection *connection, struct slice frame);

/* An ERROR frame for a socket that gets no connection: over the limit (code 6), before any frame
 * (decisions 3). Appended to `out`.                                                            */
void native_refuse_connection(struct buffer *out, const char *text);

#endif
