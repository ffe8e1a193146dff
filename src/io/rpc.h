/* rpc.h: request and answer between replicas, as replication sees it.
 *
 * A link is one kept-alive connection to one address, with one request in flight
 * (replication-wire.md section 1). Behind it stand rpc_http.c (HTTP/1.1) and the simulator's
 * virtual network. The transport checks token, route and size caps; bodies reach the handlers
 * whole or not at all.                                                                         */
#ifndef MOONMQ_IO_RPC_H
#define MOONMQ_IO_RPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/status.h"

struct rpc_transport;
struct rpc_link;
struct rpc_request;

/* One route the server side knows. Sorted lookups are not needed: there are fewer than twenty. */
struct rpc_route {
    const char *method; /* "POST", "GET" */
    const char *path;   /* without query */
    size_t request_bytes_max;
    bool binary; /* request body is application/octet-stream, else JSON */
};

/* An answer. status: HTTP status, or 0 when none came (then `failure` says why). The body is
 * borrowed for the call. */
struct rpc_answer {
    int status;
    enum status failure; /* STATUS_TIMEOUT, STATUS_CLOSED, STATUS_CORRUPT */
    struct slice body;
};

struct rpc_link_handlers {
    void (*opened)(void *context, struct rpc_link *link);
    /* The link is down: STATUS_REFUSED (nobody listens), STATUS_TIMEOUT, STATUS_CLOSED (was open,
     * broke). Not called for rpc_link_free(). A pending call got its answer (status 0) before.
     * The owner decides when to rpc_link_connect() again. */
    void (*closed)(void *context, struct rpc_link *link, enum status why);
};
typedef void (*rpc_answer_fn)(void *context, const struct rpc_answer *answer);

/* A request that arrived. Valid until it is answered or cancelled; parked fetches keep it. */
struct rpc_server_handlers {
    /* `connection` identifies the peer's connection for `disconnected`; body borrowed for the
     * call. The handler (or someone later) answers once, with rpc_answer(). `query` is the text
     * after '?', or "". */
    void (*request)(void *context, struct rpc_request *request, uint64_t connection, size_t route,
                    const char *query, struct slice body);
    /* The connection is gone; unanswered requests of it are dead: rpc_answer() on them is legal
     * and only frees them. */
    void (*disconnected)(void *context, uint64_t connection);
};

struct rpc_transport_ops {
    struct rpc_link *(*link_new)(struct rpc_transport *transport, const char *address,
                                 const struct rpc_link_handlers *handlers, void *context);
    void (*link_connect)(struct rpc_link *link);
    void (*link_call)(struct rpc_link *link, const char *method, const char *path,
                      struct slice body, bool binary, int64_t timeout_us, rpc_answer_fn answered,
                      void *context);
    void (*link_close)(struct rpc_link *link);
    void (*link_free)(struct rpc_link *link);
    enum status (*listen)(struct rpc_transport *transport, const char *host, int port,
                          const struct rpc_route *routes, size_t route_count,
                          const struct rpc_server_handlers *handlers, void *context,
                          struct error *error);
    void (*answer)(struct rpc_request *request, int status, bool binary, const struct slice *parts,
                   size_t part_count);
    bool (*peer_is_loopback)(const struct rpc_request *request);
    /* HTTP's own, for static mode (native-protocol.md section 7); NULL: not there. */
    void (*link_fields)(struct rpc_link *link, const char *fields);
    const char *(*request_field)(const struct rpc_request *request, const char *name);
    void (*answer_text)(struct rpc_request *request, int status, const char *text);
};
struct rpc_transport {
    const struct rpc_transport_ops *ops;
};
struct rpc_link {
    struct rpc_transport *transport;
};
struct rpc_request {
    struct rpc_transport *transport;
};

/* A closed link; connect to use it. Connecting times out after 1 s. `address` is host:port. */
static inline struct rpc_link *rpc_link_new(struct rpc_transport *transport, const char *address,
                                            const struct rpc_link_handlers *handlers, void *context)
{
    return transport->ops->link_new(transport, address, handlers, context);
}
/* No-op unless closed. Handlers are called from the loop, never from inside. */
static inline void rpc_link_connect(struct rpc_link *link)
{
    link->transport->ops->link_connect(link);
}
/* Needs an open link without a call in flight (asserted). The body is copied or written before
 * return. `answered` is called exactly once unless the link is freed first. A late, cut or
 * malformed answer closes the link. */
static inline void rpc_link_call(struct rpc_link *link, const char *method, const char *path,
                                 struct slice body, bool binary, int64_t timeout_us,
                                 rpc_answer_fn answered, void *context)
{
    link->transport->ops->link_call(link, method, path, body, binary, timeout_us, answered,
                                    context);
}
/* Closes now; a pending call gets STATUS_CLOSED; `closed` is called. */
static inline void rpc_link_close(struct rpc_link *link)
{
    link->transport->ops->link_close(link);
}
/* No callback after this returns. */
static inline void rpc_link_free(struct rpc_link *link)
{
    if (link != NULL) link->transport->ops->link_free(link);
}
STATUS_MUST_CHECK
static inline enum status rpc_listen(struct rpc_transport *transport, const char *host, int port,
                                     const struct rpc_route *routes, size_t route_count,
                                     const struct rpc_server_handlers *handlers, void *context,
                                     struct error *error)
{
    return transport->ops->listen(transport, host, port, routes, route_count, handlers, context,
                                  error);
}
/* Answers and frees the request. The body is the parts one after the other, copied before return.
 */
static inline void rpc_answer(struct rpc_request *request, int status, bool binary,
                              const struct slice *parts, size_t part_count)
{
    request->transport->ops->answer(request, status, binary, parts, part_count);
}
/* Header fields of the next call: whole lines, each ended by CR LF; copied. */
static inline void rpc_link_fields(struct rpc_link *link, const char *fields)
{
    link->transport->ops->link_fields(link, fields);
}
/* A header field of the request, or NULL. Inside the handler's call only. */
static inline const char *rpc_request_field(const struct rpc_request *request, const char *name)
{
    return request->transport->ops->request_field(request, name);
}
/* As rpc_answer(), with a body of plain text. */
static inline void rpc_answer_text(struct rpc_request *request, int status, const char *text)
{
    request->transport->ops->answer_text(request, status, text);
}
static inline bool rpc_peer_is_loopback(const struct rpc_request *request)
{
    return request->transport->ops->peer_is_loopback(request);
}

#endif
