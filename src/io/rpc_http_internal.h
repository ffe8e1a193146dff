/* rpc_http_internal.h: what rpc_http.c, rpc_http_client.c and rpc_http_server.c share. */
#ifndef MOONMQ_IO_RPC_HTTP_INTERNAL_H
#define MOONMQ_IO_RPC_HTTP_INTERNAL_H

#include "base/log.h"
#include "io/resolver.h"
#include "io/rpc_http.h"

#define RPC_HTTP_TOKENS_MAX 2

struct rpc_http_request;

struct rpc_http {
    struct rpc_transport base;
    struct rpc_http_options options; /* defaults filled in; tokens are copies */
    struct resolver *resolver;
    struct http_server *server; /* NULL until listening */
    const struct rpc_route *routes;
    size_t route_count;
    const struct rpc_server_handlers *handlers;
    void *context;
    struct rpc_http_request *requests; /* handed out and not answered yet */
    /* While its handler is called. */
    const struct rpc_http_request *arriving;
    const struct http_head *arriving_head;
    uint32_t links;
    struct rpc_http_stats stats;
    struct log_limiter limiter;
};

static inline struct rpc_http *rpc_http_of(struct rpc_transport *transport)
{
    return (struct rpc_http *)transport;
}

static inline struct loop *rpc_http_loop(const struct rpc_http *http)
{
    return loop_event_interface(http->options.loop);
}

/* rpc_http_client.c */
struct rpc_link *rpc_http_link_new(struct rpc_transport *transport, const char *address,
                                   const struct rpc_link_handlers *handlers, void *context);
void rpc_http_link_connect(struct rpc_link *link);
void rpc_http_link_call(struct rpc_link *link, const char *method, const char *path,
                        struct slice body, bool binary, int64_t timeout_us, rpc_answer_fn answered,
                        void *context);
void rpc_http_link_fields(struct rpc_link *link, const char *fields);
void rpc_http_link_close(struct rpc_link *link);
void rpc_http_link_free(struct rpc_link *link);

/* rpc_http_server.c */
enum status rpc_http_listen(struct rpc_transport *transport, const char *host, int port,
                            const struct rpc_route *routes, size_t route_count,
                            const struct rpc_server_handlers *handlers, void *context,
                            struct error *error);
void rpc_http_answer(struct rpc_request *request, int status, bool binary,
                     const struct slice *parts, size_t part_count);
const char *rpc_http_request_field(const struct rpc_request *request, const char *name);
void rpc_http_answer_text(struct rpc_request *request, int status, const char *text);
bool rpc_http_peer_is_loopback(const struct rpc_request *request);
/* Requests that nobody will answer any more. */
void rpc_http_drop_requests(struct rpc_http *http);

#endif
