/* stream.c: direct reads and writes on a non-blocking socket; see stream.h. */
#include "io/stream.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/memory.h"

#define STREAM_PARTS_A_CALL 64

/* Bytes that wait: `data` points behind the chunk, or to referenced bytes. */
struct stream_chunk {
    struct stream_chunk *next;
    const uint8_t *data;
    size_t bytes;
    stream_release_fn release;
    void *context;
};

struct stream {
    struct loop_event *loop;
    int fd;
    bool failed;
    bool paused;
    bool ending; /* shut down our side when the queue is empty */
    struct event *read_event;
    struct event *write_event;
    struct stream_chunk *first;
    struct stream_chunk *last;
    size_t queued_bytes;
    const struct stream_handlers *handlers;
    void *context;
};

static void stream_chunk_free(struct stream_chunk *chunk)
{
    if (chunk->release != NULL) chunk->release(chunk->context);
    free(chunk);
}

static void stream_drop_queue(struct stream *stream)
{
    while (stream->first != NULL) {
        struct stream_chunk *chunk = stream->first;
        stream->first = chunk->next;
        stream_chunk_free(chunk);
    }
    stream->last = NULL;
    stream->queued_bytes = 0;
}

/* A write failed. The owner hears of it from its next read, which is made to come. */
static void stream_fail(struct stream *stream)
{
    if (stream->failed) return;
    stream->failed = true;
    event_del(stream->write_event);
    stream_drop_queue(stream);
    stream->paused = false;
    event_add(stream->read_event, NULL);
    event_active(stream->read_event, EV_READ, 0);
}

static void stream_readable(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    struct stream *stream = context;
    struct loop_event *loop = stream->loop;
    int64_t began_us = loop_event_step_begin(loop);
    stream->handlers->readable(stream->context);
    /* The owner may have freed the stream: only the loop is touched. */
    loop_event_step_end(loop, began_us, "stream_read");
}

/* Takes `sent` bytes off the front of the queue. */
static void stream_queue_advance(struct stream *stream, size_t sent)
{
    stream->queued_bytes -= sent;
    while (stream->first != NULL && sent >= stream->first->bytes) {
        struct stream_chunk *chunk = stream->first;
        sent -= chunk->bytes;
        stream->first = chunk->next;
        if (stream->first == NULL) stream->last = NULL;
        stream_chunk_free(chunk);
    }
    if (sent > 0) {
        stream->first->data += sent;
        stream->first->bytes -= sent;
    }
}

/* Sends; returns the bytes taken, 0 if the socket is full, -1 (and failed) if it broke. */
static ssize_t stream_send(struct stream *stream, struct iovec *parts, size_t count)
{
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
    ssize_t sent;
    do {
        sent = sendmsg(stream->fd, &message, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent >= 0) return sent;
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS) return 0;
    stream_fail(stream);
    return -1;
}

static void stream_writable(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    struct stream *stream = context;
    struct loop_event *loop = stream->loop;
    int64_t began_us = loop_event_step_begin(loop);
    struct iovec parts[STREAM_PARTS_A_CALL];
    size_t count = 0;
    for (struct stream_chunk *chunk = stream->first; chunk != NULL && count < ARRAY_COUNT(parts);
         chunk = chunk->next) {
        parts[count++] = (struct iovec){(void *)(uintptr_t)chunk->data, chunk->bytes};
    }
    ssize_t sent = stream_send(stream, parts, count);
    if (sent > 0) stream_queue_advance(stream, (size_t)sent);
    if (sent > 0 && stream->first == NULL) {
        event_del(stream->write_event);
        if (stream->ending) shutdown(stream->fd, SHUT_WR);
        if (stream->handlers->drained != NULL) stream->handlers->drained(stream->context);
    }
    loop_event_step_end(loop, began_us, "stream_write");
}

struct stream *stream_new(struct loop_event *loop, int fd, const struct stream_handlers *handlers,
                          void *context)
{
    struct stream *stream = memory_new(sizeof(*stream));
    struct event_base *base = loop_event_base(loop);
    stream->loop = loop;
    stream->fd = fd;
    stream->handlers = handlers;
    stream->context = context;
    stream->read_event = event_new(base, fd, EV_READ | EV_PERSIST, stream_readable, stream);
    stream->write_event = event_new(base, fd, EV_WRITE | EV_PERSIST, stream_writable, stream);
    ASSERT(stream->read_event != NULL && stream->write_event != NULL);
    event_add(stream->read_event, NULL);
    return stream;
}

void stream_free(struct stream *stream)
{
    if (stream == NULL) return;
    event_free(stream->read_event);
    event_free(stream->write_event);
    stream_drop_queue(stream);
    close(stream->fd);
    free(stream);
}

int stream_fd(const struct stream *stream)
{
    return stream->fd;
}

enum status stream_read(struct stream *stream, void *data, size_t bytes, size_t *read_bytes)
{
    *read_bytes = 0;
    if (stream->failed) return STATUS_CLOSED;
    ssize_t got;
    do {
        got = recv(stream->fd, data, bytes, 0);
    } while (got < 0 && errno == EINTR);
    if (got > 0) {
        *read_bytes = (size_t)got;
        return STATUS_OK;
    }
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return STATUS_AGAIN;
    return STATUS_CLOSED;
}

void stream_pause(struct stream *stream)
{
    if (stream->failed || stream->paused) return;
    stream->paused = true;
    event_del(stream->read_event);
}

void stream_resume(struct stream *stream)
{
    if (!stream->paused) return;
    stream->paused = false;
    event_add(stream->read_event, NULL);
}

static void stream_queue_add(struct stream *stream, struct stream_chunk *chunk)
{
    chunk->next = NULL;
    if (stream->first == NULL) {
        stream->first = chunk;
        event_add(stream->write_event, NULL);
    } else {
        stream->last->next = chunk;
    }
    stream->last = chunk;
    stream->queued_bytes += chunk->bytes;
}

/* Queues a copy of the parts from byte `from` of the first on, in one chunk. */
static enum status stream_queue_copy(struct stream *stream, const struct slice *parts,
                                     size_t part_count, size_t from)
{
    size_t bytes = 0;
    for (size_t i = 0; i < part_count; i++)
        bytes += parts[i].bytes;
    bytes -= from;
    if (bytes == 0) return STATUS_OK;
    struct stream_chunk *chunk = malloc(sizeof(*chunk) + bytes);
    if (chunk == NULL) {
        /* Half a message is out: the connection is of no more use. */
        stream_fail(stream);
        return STATUS_CLOSED;
    }
    uint8_t *at = (uint8_t *)(chunk + 1);
    *chunk = (struct stream_chunk){.data = at, .bytes = bytes};
    for (size_t i = 0; i < part_count; i++) {
        size_t skip = i == 0 ? from : 0;
        if (parts[i].bytes > skip) memcpy(at, parts[i].data + skip, parts[i].bytes - skip);
        at += parts[i].bytes - skip;
    }
    stream_queue_add(stream, chunk);
    return STATUS_OK;
}

/* Sends what the socket takes now. *index, *from: the first byte it did not take. */
static enum status stream_write_now(struct stream *stream, const struct slice *parts,
                                    size_t part_count, size_t *index, size_t *from)
{
    *index = 0;
    *from = 0;
    if (stream->first != NULL) return STATUS_OK; /* behind what waits already */
    while (*index < part_count) {
        struct iovec vector[STREAM_PARTS_A_CALL];
        size_t count = 0, wanted = 0;
        for (size_t i = *index; i < part_count && count < ARRAY_COUNT(vector); i++) {
            size_t skip = i == *index ? *from : 0;
            if (parts[i].bytes == skip) continue;
            vector[count++] =
                (struct iovec){(void *)(uintptr_t)(parts[i].data + skip), parts[i].bytes - skip};
            wanted += parts[i].bytes - skip;
        }
        ssize_t sent = wanted == 0 ? 0 : stream_send(stream, vector, count);
        if (sent < 0) return STATUS_CLOSED;
        size_t left = (size_t)sent;
        while (*index < part_count && left >= parts[*index].bytes - *from) {
            left -= parts[*index].bytes - *from;
            *from = 0;
            ++*index;
        }
        *from += left;
        if ((size_t)sent < wanted) break;
    }
    return STATUS_OK;
}

enum status stream_write(struct stream *stream, const struct slice *parts, size_t part_count)
{
    if (stream->failed) return STATUS_CLOSED;
    ASSERT(!stream->ending);
    size_t index, from;
    enum status status = stream_write_now(stream, parts, part_count, &index, &from);
    if (status != STATUS_OK || index == part_count) return status;
    return stream_queue_copy(stream, parts + index, part_count - index, from);
}

enum status stream_write_reference(struct stream *stream, struct slice part,
                                   stream_release_fn release, void *context)
{
    size_t index = 0, from = 0;
    enum status status = STATUS_CLOSED;
    if (!stream->failed) status = stream_write_now(stream, &part, 1, &index, &from);
    if (status != STATUS_OK || index == 1) {
        release(context);
        return status;
    }
    struct stream_chunk *chunk = memory_new(sizeof(*chunk));
    chunk->data = part.data + from;
    chunk->bytes = part.bytes - from;
    chunk->release = release;
    chunk->context = context;
    stream_queue_add(stream, chunk);
    return STATUS_OK;
}

size_t stream_queued_bytes(const struct stream *stream)
{
    return stream->queued_bytes;
}

void stream_end_writing(struct stream *stream)
{
    if (stream->failed || stream->ending) return;
    stream->ending = true;
    if (stream->first == NULL) shutdown(stream->fd, SHUT_WR);
}
