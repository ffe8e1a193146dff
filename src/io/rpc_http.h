/* rpc_http.h: rpc.h over HTTP/1.1, as replication-wire.md section 1 lays it down.
 *
 * One transport has any number of links and one listening port.  Thread: event loop.           */
#ifndef MOONMQ_IO_RPC_HTTP_H
#define MOONMQ_IO_RPC_HTTP_H

#include "base/status.h"
#include "io/executor.h"
#include "io/http_server.h"
#include "io/loop_event.h"
#include "io/rpc.h"

struct rpc_http_options {
    struct loop_event *loop;
    struct executor *executor; /* for name look-ups; NULL: numeric addresses only */
    /* Texts that X-Cluster-Token may be, copied; the first goes out with every request of ours. Two
     * while tokens are changed, none: not checked. */
    const char *tokens[2];      /* each rpc_http_token_is_valid() */
    uint32_t connections_max;   /* 0: 256 */
    int64_t request_timeout_us; /* a request's first byte to its last; 0: 5 s */
    int64_t connect_timeout_us; /* look-up included; 0: 1 s */
    size_t answer_bytes_max;    /* 0: 128 MiB */
};

/* 1 to 256 visible ASCII characters: what fits a header field unchanged. */
bool rpc_http_token_is_valid(const char *token);

struct rpc_transport *rpc_http_new(const struct rpc_http_options *options);
/* All links are freed before. Requests still unanswered are freed. NULL is allowed. */
void rpc_http_free(struct rpc_transport *transport);

/* The port listened on, or 0. */
int rpc_http_port(const struct rpc_transport *transport);

struct rpc_http_stats {
    struct http_server_stats server;
    uint64_t unauthorized; /* requests with a missing or wrong token */
    uint64_t calls;
    uint64_t calls_failed; /* no answer, or not a whole one */
};
struct rpc_http_stats rpc_http_stats(const struct rpc_transport *transport);

#endif
