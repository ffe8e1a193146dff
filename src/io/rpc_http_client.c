/* rpc_http_client.c: links to other replicas.
 *
 * CLOSED -> RESOLVING -> CONNECTING -> OPEN -> CLOSING -> CLOSED. Whatever ends a link tears it
 * down at once and makes it CLOSING; the pending call's answer and `closed` follow as a deferred
 * call, so that no handler ever runs inside a call of its owner. A name look-up that outlasts the
 * connect timeout is kept, and the next attempt waits for it: names are never looked up twice at a
 * time. The socket is always read: a peer's close is noticed while idle too. */
#include <event2/event.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/memory.h"
#include "io/http_message.h"
#include "io/rpc_http_internal.h"
#include "io/socket.h"
#include "io/stream.h"

#define LINK_STALL_US           30000000
#define LINK_READ_BYTES         16384
#define LINK_BODY_READ_TURN_MAX (1024 * 1024)
#define LINK_BODY_KEEP_BYTES    (2 * 1024 * 1024)

enum link_state { LINK_CLOSED, LINK_RESOLVING, LINK_CONNECTING, LINK_OPEN, LINK_CLOSING };

struct rpc_http_link {
    struct rpc_link base;
    struct rpc_http *http;
    const struct rpc_link_handlers *handlers;
    void *context;
    enum link_state state;
    bool freed; /* memory goes when the deferred call or the answer returns */
    bool deferred;
    bool in_answer;

    char *address_text;
    struct address address;
    bool address_valid;
    struct resolve *resolve;  /* under way; may outlast a connect attempt */
    struct resolved resolved; /* count 0: not looked up */
    bool numeric;             /* resolved for good */
    unsigned tried;           /* addresses of this attempt */
    bool others_unreachable;  /* one of them was not plainly refused */
    int connect_fd;
    struct event *connect_event;
    struct timer *timer; /* of the connect attempt, then of the call */

    struct stream *stream; /* OPEN */
    struct http_message message;
    struct buffer head;     /* scratch */
    struct buffer fields;   /* of the next call */
    rpc_answer_fn answered; /* a call is in flight */
    void *answered_context;

    enum status why;     /* CLOSING: for `closed` */
    enum status failure; /* and for the call */
};

static void link_try_next_address(struct rpc_http_link *link);

static struct rpc_http_link *link_of(struct rpc_link *base)
{
    return (struct rpc_http_link *)base;
}

static void link_drop_socket(struct rpc_http_link *link)
{
    timer_stop(link->timer);
    if (link->connect_event != NULL) {
        event_free(link->connect_event);
        close(link->connect_fd);
        link->connect_event = NULL;
    }
    stream_free(link->stream);
    link->stream = NULL;
}

static void link_release(struct rpc_http_link *link)
{
    timer_free(link->timer);
    http_message_deinit(&link->message);
    buffer_deinit(&link->head);
    buffer_deinit(&link->fields);
    free(link->address_text);
    free(link);
}

static void link_answer(struct rpc_http_link *link, const struct rpc_answer *answer)
{
    rpc_answer_fn answered = link->answered;
    link->answered = NULL;
    if (answer->status == 0) link->http->stats.calls_failed++;
    link->in_answer = true;
    answered(link->answered_context, answer);
    link->in_answer = false;
}

/* The deferred half of a link's end. */
static void link_tell(void *context)
{
    struct rpc_http_link *link = context;
    link->deferred = false;
    if (!link->freed && link->answered != NULL) {
        struct rpc_answer answer = {.status = 0, .failure = link->failure};
        link_answer(link, &answer);
    }
    if (link->freed) {
        if (!link->deferred) link_release(link);
        return;
    }
    if (link->state != LINK_CLOSING) return;
    link->state = LINK_CLOSED;
    link->handlers->closed(link->context, &link->base, link->why);
}

static void link_tell_later(struct rpc_http_link *link)
{
    if (link->deferred) return;
    link->deferred = true;
    loop_defer(rpc_http_loop(link->http), link_tell, link);
}

/* Ends the link for `why`; a call in flight fails with `failure`. */
static void link_end(struct rpc_http_link *link, enum status why, enum status failure)
{
    link_drop_socket(link);
    link->state = LINK_CLOSING;
    link->why = why;
    link->failure = failure;
    link_tell_later(link);
}

static void link_timed_out(void *context)
{
    link_end(context, STATUS_TIMEOUT, STATUS_TIMEOUT);
}

/* A whole answer: hands it out. The link may be gone afterwards. */
static void link_deliver(struct rpc_http_link *link)
{
    struct http_message *message = &link->message;
    struct rpc_answer answer = {
        .status = message->head.status,
        .failure = STATUS_OK,
        .body = buffer_slice(&message->body),
    };
    bool keep_alive = message->head.keep_alive;
    timer_stop(link->timer);
    link_answer(link, &answer);
    if (link->freed) {
        if (!link->deferred) link_release(link);
        return;
    }
    http_message_reset(message, LINK_BODY_KEEP_BYTES);
    if (!keep_alive && link->state == LINK_OPEN) link_end(link, STATUS_CLOSED, STATUS_CLOSED);
}

/* Judges the head of an answer. */
static bool link_head_is_good(const struct rpc_http_link *link)
{
    const struct http_head *head = &link->message.head;
    return head->status >= 200 && head->has_length && !head->has_transfer_encoding &&
           head->body_bytes <= link->http->options.answer_bytes_max;
}

/* Takes bytes that arrived for the head, with what of the body came along. False: malformed. */
static bool link_take(struct rpc_http_link *link, const uint8_t *data, size_t bytes)
{
    struct http_message *message = &link->message;
    size_t used = http_message_feed(message, data, bytes);
    if (message->state == HTTP_MESSAGE_HEAD_DONE) {
        if (!link_head_is_good(link)) return false;
        http_message_accept_body(message);
        used += http_message_feed(message, data + used, bytes - used);
    }
    /* Bytes behind the answer were not asked for. */
    return message->state != HTTP_MESSAGE_INVALID && used == bytes;
}

/* Reads once. STATUS_OK: perhaps there is more. */
static enum status link_read_some(struct rpc_http_link *link, size_t *body_bytes)
{
    struct http_message *message = &link->message;
    size_t got = 0;
    if (message->state == HTTP_MESSAGE_BODY) {
        size_t room;
        uint8_t *at = http_message_body_room(message, &room);
        if (at == NULL) return STATUS_NO_MEMORY;
        enum status status = stream_read(link->stream, at, room, &got);
        if (status != STATUS_OK) return status;
        http_message_body_filled(message, got);
        *body_bytes += got;
        return *body_bytes < LINK_BODY_READ_TURN_MAX ? STATUS_OK : STATUS_AGAIN;
    }
    uint8_t data[LINK_READ_BYTES];
    enum status status = stream_read(link->stream, data, sizeof(data), &got);
    if (status != STATUS_OK) return status;
    if (link->answered == NULL || !link_take(link, data, got)) return STATUS_CORRUPT;
    return STATUS_OK;
}

static void link_readable(void *context)
{
    struct rpc_http_link *link = context;
    size_t body_bytes = 0;
    enum status status;
    do {
        status = link_read_some(link, &body_bytes);
    } while (status == STATUS_OK && link->message.state != HTTP_MESSAGE_COMPLETE);
    if (status != STATUS_OK && status != STATUS_AGAIN) {
        link_end(link, STATUS_CLOSED, status);
    } else if (link->message.state == HTTP_MESSAGE_COMPLETE) {
        link_deliver(link);
    }
}

static const struct stream_handlers link_stream_handlers = {.readable = link_readable};

static void link_connect_ended(evutil_socket_t fd, short what, void *context)
{
    (void)what;
    struct rpc_http_link *link = context;
    event_free(link->connect_event);
    link->connect_event = NULL;
    enum status status = socket_connect_result(fd);
    if (status != STATUS_OK) {
        close(fd);
        if (status != STATUS_REFUSED) link->others_unreachable = true;
        link_try_next_address(link);
        return;
    }
    timer_stop(link->timer);
    socket_set_stall_limit(fd, LINK_STALL_US);
    link->state = LINK_OPEN;
    link->stream = stream_new(link->http->options.loop, fd, &link_stream_handlers, link);
    http_message_reset(&link->message, LINK_BODY_KEEP_BYTES);
    link->handlers->opened(link->context, &link->base);
}

static void link_try_next_address(struct rpc_http_link *link)
{
    while (link->tried < link->resolved.count) {
        unsigned i = link->tried++;
        enum status status = socket_connect((struct sockaddr *)&link->resolved.addresses[i],
                                            link->resolved.lengths[i], &link->connect_fd);
        if (status == STATUS_OK) {
            link->state = LINK_CONNECTING;
            link->connect_event = event_new(loop_event_base(link->http->options.loop),
                                            link->connect_fd, EV_WRITE, link_connect_ended, link);
            ASSERT(link->connect_event != NULL);
            event_add(link->connect_event, NULL);
            return;
        }
        if (status != STATUS_REFUSED) link->others_unreachable = true;
    }
    /* Refused only if every address said so: it may start an election. */
    enum status why = link->others_unreachable ? STATUS_TIMEOUT : STATUS_REFUSED;
    link_end(link, why, why);
}

static void link_start_attempt(struct rpc_http_link *link)
{
    link->tried = 0;
    link->others_unreachable = false;
    link_try_next_address(link);
}

static void link_resolved(void *context, enum status status, const struct resolved *resolved)
{
    struct rpc_http_link *link = context;
    link->resolve = NULL;
    if (link->state != LINK_RESOLVING) return; /* came after the attempt's end */
    if (status != STATUS_OK) {
        link_end(link, STATUS_TIMEOUT, STATUS_TIMEOUT);
        return;
    }
    link->resolved = *resolved;
    link_start_attempt(link);
}

struct rpc_link *rpc_http_link_new(struct rpc_transport *transport, const char *address,
                                   const struct rpc_link_handlers *handlers, void *context)
{
    struct rpc_http *http = rpc_http_of(transport);
    struct rpc_http_link *link = memory_new(sizeof(*link));
    link->base.transport = transport;
    link->http = http;
    link->handlers = handlers;
    link->context = context;
    link->address_text = memory_copy_text(address);
    struct error error;
    link->address_valid = address_parse(address, &link->address, &error) == STATUS_OK;
    if (!link->address_valid) log_warn("link_address_invalid error=\"%s\"", error.text);
    link->numeric =
        link->address_valid && address_resolve(link->address.host, link->address.port, true, false,
                                               &link->resolved, NULL) == STATUS_OK;
    link->timer = timer_new(rpc_http_loop(http), link_timed_out, link);
    http_message_init(&link->message, true);
    buffer_init(&link->head, 0);
    buffer_init(&link->fields, HTTP_HEAD_BYTES_MAX);
    http->links++;
    return &link->base;
}

void rpc_http_link_connect(struct rpc_link *base)
{
    struct rpc_http_link *link = link_of(base);
    if (link->state != LINK_CLOSED) return;
    bool can_resolve = link->http->options.executor != NULL;
    if (!link->address_valid || (!link->numeric && !can_resolve)) {
        link_end(link, STATUS_TIMEOUT, STATUS_TIMEOUT);
        return;
    }
    timer_start(link->timer, link->http->options.connect_timeout_us);
    if (link->numeric) {
        link_start_attempt(link);
        return;
    }
    link->state = LINK_RESOLVING;
    if (link->resolve == NULL) {
        link->resolve = resolver_start(link->http->resolver, &link->address, link_resolved, link);
    }
}

/* The request's head, in link->head. */
static void link_write_head(struct rpc_http_link *link, const char *method, const char *path,
                            size_t body_bytes, bool binary)
{
    const char *token = link->http->options.tokens[0];
    struct buffer *head = &link->head;
    buffer_clear(head);
    buffer_printf(head, "%s %s HTTP/1.1\r\nHost: %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n",
                  method, path, link->address_text,
                  binary ? "application/octet-stream" : "application/json", body_bytes);
    if (token != NULL) buffer_printf(head, "X-Cluster-Token: %s\r\n", token);
    if (link->fields.bytes > 0) buffer_put(head, link->fields.data, link->fields.bytes);
    buffer_clear(&link->fields);
    buffer_put_string(head, "\r\n");
}

void rpc_http_link_fields(struct rpc_link *base, const char *fields)
{
    struct rpc_http_link *link = link_of(base);
    buffer_clear(&link->fields);
    buffer_put_string(&link->fields, fields);
    ASSERT(!buffer_failed(&link->fields));
}

void rpc_http_link_call(struct rpc_link *base, const char *method, const char *path,
                        struct slice body, bool binary, int64_t timeout_us, rpc_answer_fn answered,
                        void *context)
{
    struct rpc_http_link *link = link_of(base);
    ASSERT(link->answered == NULL);
    link->answered = answered;
    link->answered_context = context;
    link->http->stats.calls++;
    if (link->state != LINK_OPEN) {
        /* It broke a moment ago, and its owner was not told yet. */
        link->failure = STATUS_CLOSED;
        link_tell_later(link);
        return;
    }
    link_write_head(link, method, path, body.bytes, binary);
    struct slice parts[] = {buffer_slice(&link->head), body};
    timer_start(link->timer, timeout_us);
    /* A broken stream says so at its next read, which ends the link and fails the call. */
    (void)stream_write(link->stream, parts, ARRAY_COUNT(parts));
}

void rpc_http_link_close(struct rpc_link *base)
{
    struct rpc_http_link *link = link_of(base);
    if (link->state == LINK_CLOSED || link->state == LINK_CLOSING) return;
    link_end(link, STATUS_CLOSED, STATUS_CLOSED);
}

void rpc_http_link_free(struct rpc_link *base)
{
    struct rpc_http_link *link = link_of(base);
    ASSERT(!link->freed);
    link_drop_socket(link);
    resolve_cancel(link->resolve);
    link->http->links--;
    link->freed = true;
    if (!link->deferred && !link->in_answer) link_release(link);
}
