/* http_server.c: connections and their states.
 *
 * READING -> ANSWERING (the owner has the request) -> WRITING (answer on its way) -> READING …
 * any -> LINGERING: a last answer is out and our side shut; what the peer still sends is read and
 * dropped for a moment, so that the answer is not lost to a reset -> gone.
 * Memory a connection holds: 16 KiB of head at most until its head is let in, then the body as it
 * arrives.                                                                                     */
#include "io/http_server.h"

#include <http_parser.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/memory.h"
#include "io/address.h"
#include "io/listener.h"
#include "io/socket.h"
#include "io/stream.h"

#define HTTP_CONNECTIONS_MAX     256
#define HTTP_REQUEST_TIMEOUT_US  5000000
#define HTTP_ANSWER_TIMEOUT_US   30000000
#define HTTP_LINGER_US           1000000
#define HTTP_LINGER_BYTES_MAX    (4 * 1024 * 1024)
#define HTTP_READ_BYTES          16384
#define HTTP_BODY_READ_TURN_MAX  (1024 * 1024)
#define HTTP_BODY_KEEP_BYTES     (64 * 1024)
#define HTTP_ANSWER_HEAD_BYTES   512
#define HTTP_ANSWER_PARTS_INLINE 16
#define HTTP_LOG_INTERVAL_US     1000000

enum http_connection_state {
    HTTP_CONNECTION_READING,
    HTTP_CONNECTION_ANSWERING,
    HTTP_CONNECTION_WRITING,
    HTTP_CONNECTION_LINGERING,
};

struct http_connection {
    struct http_server *server;
    struct http_connection *next, *previous; /* oldest first */
    uint64_t number;
    enum http_connection_state state;
    bool trusted;    /* had a request let in */
    bool delivered;  /* `disconnected` is owed */
    bool keep_alive; /* of the request in flight */
    bool loopback;
    bool in_read; /* its read callback runs: closing waits for its end */
    bool doomed;  /* close when that ends */
    size_t linger_bytes;
    struct stream *stream;
    struct timer *timer;
    struct http_message message;
    struct http_request *request; /* ANSWERING */
};

struct http_request {
    struct http_server *server;
    struct http_request *next, *previous; /* of all not answered yet */
    struct http_connection *connection;   /* NULL: gone */
    uint64_t number;
    bool loopback;
};

struct http_server {
    struct http_server_options options;
    struct listener *listener;
    struct http_connection *first, *last;
    struct http_request *requests;
    uint64_t next_number;
    struct http_server_stats stats;
    struct log_limiter limiter;
};

static void http_connection_timed_out(void *context);
static void http_connection_readable(void *context);
static void http_connection_drained(void *context);

static const struct stream_handlers http_stream_handlers = {
    .readable = http_connection_readable,
    .drained = http_connection_drained,
};

static struct loop *http_loop(const struct http_server *server)
{
    return loop_event_interface(server->options.loop);
}

/* Every connection that ends for a reason of ours says which, at a bounded rate. */
static void http_connection_log(struct http_connection *connection, const char *why)
{
    struct http_server *server = connection->server;
    log_limited(&server->limiter, loop_now_us(http_loop(server)), HTTP_LOG_INTERVAL_US, LOG_WARN,
                "http_connection_closed port=%d connection=%" PRIu64 " why=\"%s\"",
                listener_port(server->listener), connection->number, why);
}

static void http_connection_unlink(struct http_connection *connection)
{
    struct http_server *server = connection->server;
    if (connection->previous != NULL) {
        connection->previous->next = connection->next;
    } else {
        server->first = connection->next;
    }
    if (connection->next != NULL) {
        connection->next->previous = connection->previous;
    } else {
        server->last = connection->previous;
    }
    server->stats.connections--;
}

static void http_connection_free(struct http_connection *connection)
{
    http_connection_unlink(connection);
    if (connection->request != NULL) connection->request->connection = NULL;
    timer_free(connection->timer);
    stream_free(connection->stream);
    http_message_deinit(&connection->message);
    free(connection);
}

/* The end of a connection, from whatever callback; inside its own read it is put off to the end of
 * that. Tells the owner. */
static void http_connection_close(struct http_connection *connection)
{
    if (connection->in_read) {
        connection->doomed = true;
        return;
    }
    const struct http_server_options *options = &connection->server->options;
    bool delivered = connection->delivered;
    uint64_t number = connection->number;
    http_connection_free(connection);
    if (delivered && options->handlers->disconnected != NULL) {
        options->handlers->disconnected(options->context, number);
    }
}

static void http_connection_linger(struct http_connection *connection)
{
    connection->state = HTTP_CONNECTION_LINGERING;
    connection->linger_bytes = 0;
    stream_end_writing(connection->stream);
    timer_start(connection->timer, HTTP_LINGER_US);
}

/* Writes head and body. STATUS_CLOSED: the stream reports it through its next read. */
static enum status http_connection_write(struct http_connection *connection, int status,
                                         const char *content_type, bool keep_alive,
                                         const struct slice *parts, size_t part_count)
{
    size_t body_bytes = 0;
    for (size_t i = 0; i < part_count; i++)
        body_bytes += parts[i].bytes;
    char head[HTTP_ANSWER_HEAD_BYTES];
    int length = snprintf(head, sizeof(head),
                          "HTTP/1.1 %d %s\r\nContent-Type: %.200s\r\nContent-Length: %zu\r\n%s\r\n",
                          status, http_status_str((enum http_status)status), content_type,
                          body_bytes, keep_alive ? "" : "Connection: close\r\n");
    ASSERT(length > 0 && (size_t)length < sizeof(head));
    struct slice inline_parts[HTTP_ANSWER_PARTS_INLINE + 1];
    struct slice *all = inline_parts;
    if (part_count > HTTP_ANSWER_PARTS_INLINE) {
        all = memory_resize(NULL, part_count + 1, sizeof(all[0]));
    }
    all[0] = (struct slice){(const uint8_t *)head, (size_t)length};
    if (part_count > 0) memcpy(all + 1, parts, part_count * sizeof(parts[0]));
    enum status written = stream_write(connection->stream, all, part_count + 1);
    if (all != inline_parts) free(all);
    return written;
}

/* Answers an error itself, before or instead of the request, and lets the connection go. */
static void http_connection_refuse(struct http_connection *connection,
                                   const struct http_refusal *refusal)
{
    connection->server->stats.refused++;
    struct slice body = {(const uint8_t *)refusal->body, strlen(refusal->body)};
    enum status written =
        http_connection_write(connection, refusal->status, refusal->content_type, false, &body, 1);
    if (written == STATUS_OK) {
        http_connection_linger(connection);
    } else {
        http_connection_close(connection);
    }
}

static void http_connection_error(struct http_connection *connection, int status,
                                  const char *detail)
{
    const struct http_server_options *options = &connection->server->options;
    struct http_refusal refusal = {.status = status, .content_type = "text/plain"};
    snprintf(refusal.body, sizeof(refusal.body), "%s\n", detail);
    if (options->handlers->error_body != NULL) {
        options->handlers->error_body(options->context, status, detail, &refusal);
    }
    http_connection_log(connection, detail);
    http_connection_refuse(connection, &refusal);
}

static void http_connection_malformed(struct http_connection *connection, const char *detail)
{
    connection->server->stats.malformed++;
    http_connection_error(connection, 400, detail);
}

/* Judges a head that is complete; the message goes on to its body, or the connection lingers. */
static void http_connection_judge(struct http_connection *connection)
{
    const struct http_server_options *options = &connection->server->options;
    struct http_message *message = &connection->message;
    struct http_refusal refusal = {.status = 400, .content_type = "text/plain"};
    size_t body_bytes_max = 0;
    if (options->handlers->head != NULL &&
        !options->handlers->head(options->context, &message->head, &body_bytes_max, &refusal)) {
        http_connection_refuse(connection, &refusal);
        return;
    }
    connection->trusted = true;
    if (message->head.has_transfer_encoding) {
        http_connection_malformed(connection, "Transfer-Encoding is not accepted");
        return;
    }
    if (message->head.body_bytes > body_bytes_max) {
        http_connection_error(connection, 413, "the body is over this route's limit");
        return;
    }
    http_message_accept_body(message);
}

static void http_connection_deliver(struct http_connection *connection)
{
    struct http_server *server = connection->server;
    struct http_request *request = memory_new(sizeof(*request));
    request->server = server;
    request->connection = connection;
    request->number = connection->number;
    request->loopback = connection->loopback;
    request->next = server->requests;
    if (request->next != NULL) request->next->previous = request;
    server->requests = request;
    server->stats.requests++;
    timer_stop(connection->timer);
    connection->state = HTTP_CONNECTION_ANSWERING;
    connection->request = request;
    connection->delivered = true;
    connection->keep_alive = connection->message.head.keep_alive;
    server->options.handlers->request(server->options.context, request, &connection->message.head,
                                      buffer_slice(&connection->message.body));
}

/* The answer is out: on to the next request, or away. */
static void http_connection_finish(struct http_connection *connection)
{
    if (!connection->keep_alive) {
        http_connection_linger(connection);
        return;
    }
    connection->state = HTTP_CONNECTION_READING;
    http_message_reset(&connection->message, HTTP_BODY_KEEP_BYTES);
    int64_t idle_us = connection->server->options.idle_timeout_us;
    if (idle_us > 0) {
        timer_start(connection->timer, idle_us);
    } else {
        timer_stop(connection->timer);
    }
}

/* Takes bytes that arrived for the head, with what of the body came along. */
static void http_connection_take(struct http_connection *connection, const uint8_t *data,
                                 size_t bytes)
{
    struct http_message *message = &connection->message;
    if (message->state == HTTP_MESSAGE_HEAD && message->head_bytes == 0) {
        timer_start(connection->timer, connection->server->options.request_timeout_us);
    }
    size_t used = http_message_feed(message, data, bytes);
    if (message->state == HTTP_MESSAGE_HEAD_DONE) {
        http_connection_judge(connection);
        if (connection->state != HTTP_CONNECTION_READING || connection->doomed) return;
        used += http_message_feed(message, data + used, bytes - used);
    }
    if (message->state == HTTP_MESSAGE_INVALID) {
        http_connection_malformed(connection, "malformed request");
    } else if (message->state == HTTP_MESSAGE_COMPLETE && used < bytes) {
        connection->server->stats.malformed++;
        http_connection_log(connection, "a second request before the answer to the first");
        http_connection_close(connection);
    }
}

/* Reads once. False: nothing more is to be read now. */
static bool http_connection_read_some(struct http_connection *connection, size_t *body_bytes)
{
    struct http_message *message = &connection->message;
    uint8_t data[HTTP_READ_BYTES];
    size_t got = 0;
    if (message->state == HTTP_MESSAGE_BODY) {
        size_t room;
        uint8_t *at = http_message_body_room(message, &room);
        if (at == NULL) {
            http_connection_error(connection, 503, "out of memory");
            return false;
        }
        enum status status = stream_read(connection->stream, at, room, &got);
        if (status == STATUS_CLOSED) http_connection_close(connection);
        if (status != STATUS_OK) return false;
        http_message_body_filled(message, got);
        *body_bytes += got;
        return *body_bytes < HTTP_BODY_READ_TURN_MAX;
    }
    enum status status = stream_read(connection->stream, data, sizeof(data), &got);
    if (status == STATUS_CLOSED) http_connection_close(connection);
    if (status != STATUS_OK) return false;
    http_connection_take(connection, data, got);
    return true;
}

static void http_connection_read_request(struct http_connection *connection)
{
    size_t body_bytes = 0;
    while (connection->state == HTTP_CONNECTION_READING && !connection->doomed &&
           connection->message.state != HTTP_MESSAGE_COMPLETE) {
        if (!http_connection_read_some(connection, &body_bytes)) break;
    }
    if (connection->state == HTTP_CONNECTION_READING && !connection->doomed &&
        connection->message.state == HTTP_MESSAGE_COMPLETE) {
        http_connection_deliver(connection);
    }
}

/* A byte while the answer is owed or under way breaks the rule; an end is an end. */
static void http_connection_read_early(struct http_connection *connection)
{
    uint8_t byte;
    size_t got;
    enum status status = stream_read(connection->stream, &byte, 1, &got);
    if (status == STATUS_AGAIN) return;
    if (status == STATUS_OK) {
        connection->server->stats.malformed++;
        http_connection_log(connection, "a second request before the answer to the first");
    }
    http_connection_close(connection);
}

static void http_connection_read_lingering(struct http_connection *connection)
{
    uint8_t data[HTTP_READ_BYTES];
    size_t got;
    enum status status = stream_read(connection->stream, data, sizeof(data), &got);
    connection->linger_bytes += got;
    if (status == STATUS_CLOSED || connection->linger_bytes > HTTP_LINGER_BYTES_MAX) {
        http_connection_close(connection);
    }
}

static void http_connection_readable(void *context)
{
    struct http_connection *connection = context;
    connection->in_read = true;
    switch (connection->state) {
    case HTTP_CONNECTION_READING: http_connection_read_request(connection); break;
    case HTTP_CONNECTION_ANSWERING:
    case HTTP_CONNECTION_WRITING: http_connection_read_early(connection); break;
    case HTTP_CONNECTION_LINGERING: http_connection_read_lingering(connection); break;
    }
    connection->in_read = false;
    if (connection->doomed) {
        http_connection_close(connection);
    } else if (connection->state == HTTP_CONNECTION_WRITING &&
               stream_queued_bytes(connection->stream) == 0) {
        http_connection_finish(connection);
    }
}

static void http_connection_drained(void *context)
{
    struct http_connection *connection = context;
    if (connection->state == HTTP_CONNECTION_WRITING) http_connection_finish(connection);
}

static void http_connection_timed_out(void *context)
{
    struct http_connection *connection = context;
    bool idle = connection->state == HTTP_CONNECTION_READING &&
                connection->message.state == HTTP_MESSAGE_HEAD &&
                connection->message.head_bytes == 0;
    if (!idle && connection->state != HTTP_CONNECTION_LINGERING) {
        connection->server->stats.timeouts++;
        http_connection_log(connection, connection->state == HTTP_CONNECTION_READING
                                            ? "the request took too long to arrive"
                                            : "the answer was not taken in time");
    }
    http_connection_close(connection);
}

/* At the cap: the oldest connection that never had a request let in makes room, if there is one. */
static bool http_server_make_room(struct http_server *server)
{
    if (server->stats.connections < server->options.connections_max) return true;
    server->stats.turned_away++;
    for (struct http_connection *connection = server->first; connection != NULL;
         connection = connection->next) {
        if (connection->trusted) continue;
        http_connection_close(connection);
        return true;
    }
    return false;
}

static void http_server_accepted(void *context, int fd, const struct sockaddr *peer)
{
    struct http_server *server = context;
    if (!http_server_make_room(server)) {
        log_limited(&server->limiter, loop_now_us(http_loop(server)), HTTP_LOG_INTERVAL_US,
                    LOG_WARN, "http_connections_full port=%d limit=%" PRIu32,
                    listener_port(server->listener), server->options.connections_max);
        close(fd);
        return;
    }
    socket_set_stall_limit(fd, server->options.answer_timeout_us);
    struct http_connection *connection = memory_new(sizeof(*connection));
    connection->server = server;
    connection->number = ++server->next_number;
    connection->loopback = address_is_loopback(peer);
    connection->stream = stream_new(server->options.loop, fd, &http_stream_handlers, connection);
    connection->timer = timer_new(http_loop(server), http_connection_timed_out, connection);
    http_message_init(&connection->message, false);
    connection->previous = server->last;
    if (server->last != NULL) {
        server->last->next = connection;
    } else {
        server->first = connection;
    }
    server->last = connection;
    server->stats.connections++;
    server->stats.accepted++;
    if (server->options.idle_timeout_us > 0) {
        timer_start(connection->timer, server->options.idle_timeout_us);
    }
}

enum status http_server_new(const struct http_server_options *options, struct http_server **out,
                            struct error *error)
{
    *out = NULL;
    struct http_server *server = memory_new(sizeof(*server));
    server->options = *options;
    if (server->options.connections_max == 0)
        server->options.connections_max = HTTP_CONNECTIONS_MAX;
    if (server->options.request_timeout_us == 0) {
        server->options.request_timeout_us = HTTP_REQUEST_TIMEOUT_US;
    }
    if (server->options.answer_timeout_us == 0) {
        server->options.answer_timeout_us = HTTP_ANSWER_TIMEOUT_US;
    }
    enum status status = listener_new(options->loop, options->host, options->port,
                                      http_server_accepted, server, &server->listener, error);
    if (status != STATUS_OK) {
        free(server);
        return status;
    }
    *out = server;
    return STATUS_OK;
}

void http_server_free(struct http_server *server)
{
    if (server == NULL) return;
    listener_free(server->listener);
    while (server->first != NULL)
        http_connection_free(server->first);
    while (server->requests != NULL) {
        struct http_request *request = server->requests;
        server->requests = request->next;
        free(request);
    }
    free(server);
}

int http_server_port(const struct http_server *server)
{
    return listener_port(server->listener);
}

struct http_server_stats http_server_stats(const struct http_server *server)
{
    return server->stats;
}

static void http_request_free(struct http_request *request)
{
    if (request->previous != NULL) {
        request->previous->next = request->next;
    } else {
        request->server->requests = request->next;
    }
    if (request->next != NULL) request->next->previous = request->previous;
    free(request);
}

void http_answer(struct http_request *request, int status, const char *content_type,
                 const struct slice *parts, size_t part_count)
{
    struct http_connection *connection = request->connection;
    http_request_free(request);
    if (connection == NULL) return;
    connection->request = NULL;
    connection->state = HTTP_CONNECTION_WRITING;
    enum status written = http_connection_write(connection, status, content_type,
                                                connection->keep_alive, parts, part_count);
    /* A broken stream says so at its next read, which closes the connection. */
    if (written != STATUS_OK) return;
    if (stream_queued_bytes(connection->stream) == 0) {
        /* Inside the handler the head and body are still lent out: finished when it returned. */
        if (!connection->in_read) http_connection_finish(connection);
    } else {
        timer_start(connection->timer, connection->server->options.answer_timeout_us);
    }
}

void http_answer_text(struct http_request *request, int status, const char *content_type,
                      const char *text)
{
    struct slice body = {(const uint8_t *)text, strlen(text)};
    http_answer(request, status, content_type, &body, 1);
}

uint64_t http_request_connection(const struct http_request *request)
{
    return request->number;
}

bool http_request_peer_is_loopback(const struct http_request *request)
{
    return request->loopback;
}
