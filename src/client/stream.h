/* stream.h: one TCP connection of a client: a non-blocking socket, what is still to be written, and
 * what arrived, cut into frames. Every wait has a deadline on the monotonic clock.
 *
 * States: closed (descriptor -1) -> open -> closed. Heartbeats are answered here; frames go to the
 * owner's function. Thread: the client's.                                                       */
#ifndef MOONMQ_CLIENT_STREAM_H
#define MOONMQ_CLIENT_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "client/address.h"
#include "moonmq.h"
#include "native/wire.h"

struct client_stream {
    int descriptor;    /* -1: closed */
    struct buffer out; /* frames to write, from out_at on */
    size_t out_at;
    struct buffer in; /* bytes read, unparsed from in_at on */
    size_t in_at;
};

/* Handles one frame, borrowed for the call. A code other than MOONMQ_OK ends the pump with it. */
typedef int (*client_stream_frame_fn)(void *context, const struct wire_frame *frame,
                                      struct moonmq_error *error);

int64_t client_stream_now_us(void);

void client_stream_init(struct client_stream *stream);
void client_stream_close(struct client_stream *stream);

/* Resolves and connects, each address of the name in turn. The stream must be closed.
 * MOONMQ_UNREACHABLE with the address and the reason. */
int client_stream_connect(struct client_stream *stream, const struct client_address *address,
                          int64_t deadline_us, struct moonmq_error *error);

/* Writes what it can and hands over the frames that are there; waits for one, or for bytes to
 * leave, until the deadline. *progress: something arrived or left.
 * MOONMQ_OK, MOONMQ_CLOSED (stream closed), MOONMQ_PROTOCOL_ERROR (closed), or the function's code.
 * Frames that had arrived before the connection broke are handed over first.                    */
int client_stream_pump(struct client_stream *stream, int64_t deadline_us,
                       client_stream_frame_fn each, void *context, bool *progress,
                       struct moonmq_error *error);

/* Bytes queued and not yet taken by the kernel. */
size_t client_stream_unsent(const struct client_stream *stream);

#endif
