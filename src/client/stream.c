/* stream.c: see stream.h. */
#include "client/stream.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/fail.h"

/* One read: several frames of a busy reply, and small beside the 16 MiB bound of a frame. */
#define STREAM_READ_BYTES 65536

int64_t client_stream_now_us(void)
{
    return clock_monotonic_us(&clock_system);
}

void client_stream_init(struct client_stream *stream)
{
    *stream = (struct client_stream){.descriptor = -1};
    buffer_init(&stream->out, 0);
    buffer_init(&stream->in, WIRE_CLIENT_BODY_BYTES_MAX + WIRE_LENGTH_BYTES + STREAM_READ_BYTES);
}

void client_stream_close(struct client_stream *stream)
{
    if (stream->descriptor >= 0) close(stream->descriptor);
    stream->descriptor = -1;
    buffer_deinit(&stream->out);
    buffer_deinit(&stream->in);
    stream->out_at = 0;
    stream->in_at = 0;
}

size_t client_stream_unsent(const struct client_stream *stream)
{
    return stream->out.bytes - stream->out_at;
}

/* Waits for `events`; false at the deadline. Errors of the socket show at the next call on it. */
static bool client_stream_wait(int descriptor, short events, int64_t deadline_us)
{
    for (;;) {
        int64_t left_us = deadline_us - client_stream_now_us();
        if (left_us < 0) left_us = 0;
        int64_t left_ms = (left_us + 999) / 1000;
        struct pollfd wait = {.fd = descriptor, .events = events};
        int ready = poll(&wait, 1, left_ms > INT32_MAX ? INT32_MAX : (int)left_ms);
        if (ready > 0) return true;
        if (ready == 0) return false;
        if (errno != EINTR) return true;
    }
}

/* ---- connecting ---- */

/* 0, or the errno of the attempt. The descriptor is open on success only. */
static int connect_one(const struct addrinfo *target, int64_t deadline_us, int *out)
{
    int descriptor =
        socket(target->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
    if (descriptor < 0) return errno;
    int result = 0;
    if (connect(descriptor, target->ai_addr, target->ai_addrlen) != 0) {
        result = errno;
        if (result == EINPROGRESS) {
            socklen_t bytes = sizeof(result);
            if (!client_stream_wait(descriptor, POLLOUT, deadline_us)) {
                result = ETIMEDOUT;
            } else if (getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &result, &bytes) != 0) {
                result = errno;
            }
        }
    }
    if (result != 0) {
        close(descriptor);
        return result;
    }
    int on = 1;
    /* Only a matter of speed: without it a small frame may wait for an acknowledgement. */
    (void)setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    *out = descriptor;
    return 0;
}

int client_stream_connect(struct client_stream *stream, const struct client_address *address,
                          int64_t deadline_us, struct moonmq_error *error)
{
    char text[CLIENT_ADDRESS_TEXT_BYTES];
    client_address_format(address, text);
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *targets;
    int failure = getaddrinfo(address->host, address->port, &hints, &targets);
    if (failure != 0) {
        return client_fail(error, MOONMQ_UNREACHABLE, "%s: %s", text, gai_strerror(failure));
    }
    int result = ECONNREFUSED;
    for (const struct addrinfo *target = targets; target != NULL; target = target->ai_next) {
        result = connect_one(target, deadline_us, &stream->descriptor);
        if (result == 0) break;
    }
    freeaddrinfo(targets);
    if (result == 0) return MOONMQ_OK;
    return client_fail(error, MOONMQ_UNREACHABLE, "%s: %s", text, strerror(result));
}

/* ---- pumping ---- */

static int client_stream_lost(struct client_stream *stream, int reason, struct moonmq_error *error)
{
    client_stream_close(stream);
    return client_fail(error, MOONMQ_CLOSED, "connection lost: %s",
                       reason == 0 ? "closed by the broker" : strerror(reason));
}

/* MSG_NOSIGNAL: a broker that went away is an error, not the end of the program. */
static int client_stream_write(struct client_stream *stream, bool *progress,
                               struct moonmq_error *error)
{
    while (client_stream_unsent(stream) > 0) {
        ssize_t written = send(stream->descriptor, stream->out.data + stream->out_at,
                               client_stream_unsent(stream), MSG_NOSIGNAL);
        if (written < 0) {
            int reason = errno;
            if (reason == EINTR) continue;
            if (reason == EAGAIN || reason == EWOULDBLOCK) return MOONMQ_OK;
            /* What the broker said before it closed may still be readable, and says why. */
            if (reason == EPIPE || reason == ECONNRESET) return MOONMQ_OK;
            return client_stream_lost(stream, reason, error);
        }
        stream->out_at += (size_t)written;
        *progress = true;
    }
    buffer_clear(&stream->out);
    stream->out_at = 0;
    return MOONMQ_OK;
}

/* Moves unparsed bytes to the front once half the buffer is parsed. */
static void client_stream_compact(struct client_stream *stream)
{
    if (stream->in_at == 0 || stream->in_at * 2 < stream->in.bytes) return;
    stream->in.bytes -= stream->in_at;
    memmove(stream->in.data, stream->in.data + stream->in_at, stream->in.bytes);
    stream->in_at = 0;
}

/* *end: the broker closed, or the connection broke with *reason. */
static int client_stream_read(struct client_stream *stream, bool *progress, bool *end, int *reason,
                              struct moonmq_error *error)
{
    client_stream_compact(stream);
    for (;;) {
        uint8_t *at = buffer_extend(&stream->in, STREAM_READ_BYTES);
        if (at == NULL) {
            client_stream_close(stream);
            return client_fail(error, MOONMQ_NO_MEMORY, "no memory for a reply");
        }
        ssize_t count = recv(stream->descriptor, at, STREAM_READ_BYTES, 0);
        int failure = errno;
        stream->in.bytes -= STREAM_READ_BYTES - (count > 0 ? (size_t)count : 0);
        if (count > 0) {
            *progress = true;
            if (count < STREAM_READ_BYTES) return MOONMQ_OK;
            /* A whole buffer: parse before reading on, so that memory stays bounded. */
            return MOONMQ_OK;
        }
        if (count < 0 && failure == EINTR) continue;
        if (count < 0 && (failure == EAGAIN || failure == EWOULDBLOCK)) return MOONMQ_OK;
        *end = true;
        *reason = count == 0 ? 0 : failure;
        return MOONMQ_OK;
    }
}

static int client_stream_take_frame(struct client_stream *stream, const struct wire_frame *frame,
                                    client_stream_frame_fn each, void *context,
                                    struct moonmq_error *error)
{
    switch (frame->opcode) {
    case WIRE_HEARTBEAT_REQ:
        wire_encode(&stream->out, WIRE_HEARTBEAT_RESP, &frame->id, NULL);
        return MOONMQ_OK;
    case WIRE_HEARTBEAT_RESP: return MOONMQ_OK;
    default: return each(context, frame, error);
    }
}

static int client_stream_parse(struct client_stream *stream, client_stream_frame_fn each,
                               void *context, bool *progress, struct moonmq_error *error)
{
    while (stream->descriptor >= 0) {
        struct wire_frame frame;
        enum status status =
            wire_frame_parse(stream->in.data + stream->in_at, stream->in.bytes - stream->in_at,
                             WIRE_CLIENT_BODY_BYTES_MAX, &frame);
        if (status == STATUS_AGAIN) return MOONMQ_OK;
        if (status != STATUS_OK) {
            client_stream_close(stream);
            return client_fail(error, MOONMQ_PROTOCOL_ERROR,
                               "the peer does not speak MoonMQ's native protocol (is the port "
                               "right?)");
        }
        stream->in_at += frame.frame_bytes;
        *progress = true;
        int code = client_stream_take_frame(stream, &frame, each, context, error);
        if (code != MOONMQ_OK) return code;
    }
    return MOONMQ_OK;
}

int client_stream_pump(struct client_stream *stream, int64_t deadline_us,
                       client_stream_frame_fn each, void *context, bool *progress,
                       struct moonmq_error *error)
{
    *progress = false;
    if (stream->descriptor < 0) return client_fail(error, MOONMQ_CLOSED, "not connected");
    for (bool waited = false;; waited = true) {
        bool end = false;
        int reason = 0;
        int code = client_stream_write(stream, progress, error);
        if (code == MOONMQ_OK) code = client_stream_read(stream, progress, &end, &reason, error);
        if (code == MOONMQ_OK) code = client_stream_parse(stream, each, context, progress, error);
        if (code != MOONMQ_OK) return code;
        if (stream->descriptor < 0) return client_fail(error, MOONMQ_CLOSED, "not connected");
        if (end) return client_stream_lost(stream, reason, error);
        if (*progress || waited) return MOONMQ_OK;
        short events = client_stream_unsent(stream) > 0 ? POLLIN | POLLOUT : POLLIN;
        if (!client_stream_wait(stream->descriptor, events, deadline_us)) return MOONMQ_OK;
    }
}
