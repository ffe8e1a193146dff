/* stream.h: one connected socket, read and written without a detour.
 *
 * Not a bufferevent, for two measured reasons: libevent 2.1 reads at most 4096 bytes a wake-up
 * whatever its read quantum, and each write waits for a turn of the loop. Here the owner reads
 * straight into where the bytes belong, and a write goes to the socket at once; only what the
 * socket does not take is queued (copied, or kept by reference).
 *
 * States: OPEN -> FAILED (sticky: reads and writes say STATUS_CLOSED). The owner frees it, at any
 * time, its own callbacks included.  Thread: event loop.                                       */
#ifndef MOONMQ_IO_STREAM_H
#define MOONMQ_IO_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/status.h"
#include "io/loop_event.h"

struct stream;

struct stream_handlers {
    /* Bytes, the peer's end, or an error can be read: stream_read() until it has said enough.
     * Called again while there is more. Also called after a write failed: the read says
     * STATUS_CLOSED. */
    void (*readable)(void *context);
    /* The last queued byte went to the socket. May be NULL. */
    void (*drained)(void *context);
};

/* Takes `fd`: connected, non-blocking. Reads from the start. */
struct stream *stream_new(struct loop_event *loop, int fd, const struct stream_handlers *handlers,
                          void *context);
/* Closes the socket; queued bytes are dropped, references released. NULL is allowed. */
void stream_free(struct stream *stream);
int stream_fd(const struct stream *stream);

/* STATUS_OK with 1 .. `bytes` in *read_bytes; STATUS_AGAIN: nothing there now; STATUS_CLOSED: the
 * peer ended its side, or the connection broke. */
STATUS_MUST_CHECK
enum status stream_read(struct stream *stream, void *data, size_t bytes, size_t *read_bytes);

/* Back-pressure: no `readable` until resumed. Nor is the peer's close noticed meanwhile. */
void stream_pause(struct stream *stream);
void stream_resume(struct stream *stream);

/* Writes the parts one after the other; never blocks. What the socket does not take now is copied.
 * Returns STATUS_CLOSED once broken: nothing more will go out; `readable` follows.  */
enum status stream_write(struct stream *stream, const struct slice *parts, size_t part_count);

typedef void (*stream_release_fn)(void *context);
/* As stream_write of one part, but bytes not taken now are kept by reference: `release` is called
 * exactly once, when they are no longer needed (perhaps before this returns). */
enum status stream_write_reference(struct stream *stream, struct slice part,
                                   stream_release_fn release, void *context);

/* Bytes that wait for the socket. */
size_t stream_queued_bytes(const struct stream *stream);

/* Ends our side after what is queued so far; reading goes on. */
void stream_end_writing(struct stream *stream);

#endif
