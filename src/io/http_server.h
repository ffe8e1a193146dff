/* http_server.h: HTTP/1.1 connections, as both the replication port and the metrics port need them.
 *
 * Kept alive; one request in flight a connection, and a byte of a second one before the answer
 * closes it; Content-Length bodies only. The head is judged before a byte of the body is kept. A
 * whole request within a limit from its first byte. Connections are capped: at the cap an idle one
 * that never had a request let in makes room, else the new one is closed.
 *
 * (Not evhttp: in libevent 2.1 it has no cap on connections, no look at the head before the body,
 * and no TCP_NODELAY.)   Thread: event loop.                                                   */
#ifndef MOONMQ_IO_HTTP_SERVER_H
#define MOONMQ_IO_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/status.h"
#include "io/http_message.h"
#include "io/loop_event.h"

struct http_server;
struct http_request;

/* An answer instead of a request: the connection is closed behind it. */
struct http_refusal {
    int status;
    const char *content_type;
    char body[512];
};

struct http_server_handlers {
    /* The head is there. True: the body comes next, if its length is at most *body_bytes_max (0 at
     * the call); else 413 unless the handler refused. False: *refusal is the answer. May be NULL:
     * every request without a body is let in. Heads with Transfer-Encoding get 400 after this said
     * true. */
    bool (*head)(void *context, const struct http_head *head, size_t *body_bytes_max,
                 struct http_refusal *refusal);
    /* A whole request. `head` and `body` are borrowed for the call, the request is valid until it
     * is answered, now or later; http_answer() ends it. */
    void (*request)(void *context, struct http_request *request, const struct http_head *head,
                    struct slice body);
    /* The connection of at least one request is gone; a request still unanswered is dead: answering
     * it is legal and only frees it. May be NULL. */
    void (*disconnected)(void *context, uint64_t connection);
    /* The text of an error this server answers itself (400, 413): filled like a refusal. May be
     * NULL: a line of plain text. */
    void (*error_body)(void *context, int status, const char *detail, struct http_refusal *refusal);
};

struct http_server_options {
    struct loop_event *loop;
    const char *host;
    int port;                   /* 0: any */
    uint32_t connections_max;   /* 0: 256 */
    int64_t request_timeout_us; /* from a request's first byte to its last; 0: 5 s */
    int64_t answer_timeout_us;  /* the peer takes none of an answer's bytes; 0: 30 s */
    int64_t idle_timeout_us;    /* between requests; 0: none */
    const struct http_server_handlers *handlers;
    void *context;
};

struct http_server_stats {
    uint32_t connections; /* now */
    uint64_t accepted;
    uint64_t turned_away; /* over the cap, or made room for another */
    uint64_t requests;    /* delivered */
    uint64_t refused;     /* answered with an error before they were whole */
    uint64_t malformed;   /* closed for breaking HTTP or the rules above */
    uint64_t timeouts;
};

STATUS_MUST_CHECK
enum status http_server_new(const struct http_server_options *options, struct http_server **out,
                            struct error *error);
/* Closes everything; requests still unanswered are freed too, without `disconnected`. */
void http_server_free(struct http_server *server);
int http_server_port(const struct http_server *server);
struct http_server_stats http_server_stats(const struct http_server *server);

/* Answers and frees the request. The body is the parts one after the other, written or copied
 * before return. Legal inside `request`. */
void http_answer(struct http_request *request, int status, const char *content_type,
                 const struct slice *parts, size_t part_count);
/* With a body of text. */
void http_answer_text(struct http_request *request, int status, const char *content_type,
                      const char *text);

/* A number of its own for each connection, never reused. Valid as long as the request. */
uint64_t http_request_connection(const struct http_request *request);
bool http_request_peer_is_loopback(const struct http_request *request);

#endif
