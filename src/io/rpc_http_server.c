/* rpc_http_server.c: routes, token and error bodies on the replication port (replication-wire.md
 * sections 1 and 3). The token is checked first of all, as soon as the head is there: who has none
 * learns nothing else.                                                                         */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/constant_time.h"
#include "base/log.h"
#include "base/memory.h"
#include "io/rpc_http_internal.h"

#define RPC_HTTP_LOG_INTERVAL_US 60000000
#define RPC_HTTP_JSON            "application/json"
#define RPC_HTTP_BINARY          "application/octet-stream"

struct rpc_http_request {
    struct rpc_request base;
    struct http_request *http;
    struct rpc_http_request *next, *previous;
};

static bool rpc_http_token_matches(const struct rpc_http *http, const char *given)
{
    const char *const *tokens = http->options.tokens;
    bool any = tokens[0] != NULL || tokens[1] != NULL;
    bool matches = false;
    if (given == NULL) given = "";
    /* Both are always compared: which of them is in use is nobody's business. */
    for (size_t i = 0; i < RPC_HTTP_TOKENS_MAX; i++) {
        if (tokens[i] == NULL) continue;
        matches |= constant_time_equal(tokens[i], strlen(tokens[i]), given, strlen(given));
    }
    return !any || matches;
}

/* Fills a refusal in the shape of section 3; `detail` is a text of ours, without quotes. */
static void rpc_http_refuse(struct http_refusal *refusal, int status, const char *name,
                            const char *detail)
{
    refusal->status = status;
    refusal->content_type = RPC_HTTP_JSON;
    snprintf(refusal->body, sizeof(refusal->body),
             "{\"detail\":\"%s\",\"epoch\":-1,\"error\":\"%s\",\"leader\":null,\"rid\":null}",
             detail, name);
}

static void rpc_http_refuse_token(struct rpc_http *http, struct http_refusal *refusal)
{
    refusal->status = 401;
    refusal->content_type = RPC_HTTP_JSON;
    snprintf(refusal->body, sizeof(refusal->body), "{\"error\":\"unauthorized\"}");
    http->stats.unauthorized++;
    log_limited(&http->limiter, loop_now_us(rpc_http_loop(http)), RPC_HTTP_LOG_INTERVAL_US,
                LOG_WARN, "replication_token_refused port=%d", rpc_http_port(&http->base));
}

/* The route of that path and method, or -1; *path_known: one of another method has the path. */
static int rpc_http_route(const struct rpc_http *http, const struct http_head *head,
                          bool *path_known)
{
    *path_known = false;
    for (size_t i = 0; i < http->route_count; i++) {
        if (strcmp(http->routes[i].path, head->path) != 0) continue;
        *path_known = true;
        if (strcmp(http->routes[i].method, head->method) == 0) return (int)i;
    }
    return -1;
}

static bool rpc_http_judge(void *context, const struct http_head *head, size_t *body_bytes_max,
                           struct http_refusal *refusal)
{
    struct rpc_http *http = context;
    if (!rpc_http_token_matches(http, http_head_field(head, "X-Cluster-Token"))) {
        rpc_http_refuse_token(http, refusal);
        return false;
    }
    bool path_known;
    int route = rpc_http_route(http, head, &path_known);
    if (route < 0 && path_known) {
        rpc_http_refuse(refusal, 405, "method", "this route is asked with another method");
        return false;
    }
    if (route < 0) {
        rpc_http_refuse(refusal, 404, "no_route", "there is no such route");
        return false;
    }
    *body_bytes_max = http->routes[route].request_bytes_max;
    return true;
}

static void rpc_http_error_body(void *context, int status, const char *detail,
                                struct http_refusal *refusal)
{
    (void)context;
    const char *name = status == 413 ? "too_large" : status == 503 ? "busy" : "bad_request";
    rpc_http_refuse(refusal, status, name, detail);
}

static void rpc_http_request_arrived(void *context, struct http_request *arrived,
                                     const struct http_head *head, struct slice body)
{
    struct rpc_http *http = context;
    bool path_known;
    int route = rpc_http_route(http, head, &path_known);
    ASSERT(route >= 0);
    struct rpc_http_request *request = memory_new(sizeof(*request));
    request->base.transport = &http->base;
    request->http = arrived;
    request->next = http->requests;
    if (request->next != NULL) request->next->previous = request;
    http->requests = request;
    http->arriving = request;
    http->arriving_head = head;
    http->handlers->request(http->context, &request->base, http_request_connection(arrived),
                            (size_t)route, head->query, body);
    http->arriving = NULL;
    http->arriving_head = NULL;
}

static void rpc_http_disconnected(void *context, uint64_t connection)
{
    struct rpc_http *http = context;
    http->handlers->disconnected(http->context, connection);
}

static const struct http_server_handlers rpc_http_server_handlers = {
    .head = rpc_http_judge,
    .request = rpc_http_request_arrived,
    .disconnected = rpc_http_disconnected,
    .error_body = rpc_http_error_body,
};

enum status rpc_http_listen(struct rpc_transport *transport, const char *host, int port,
                            const struct rpc_route *routes, size_t route_count,
                            const struct rpc_server_handlers *handlers, void *context,
                            struct error *error)
{
    struct rpc_http *http = rpc_http_of(transport);
    ASSERT(http->server == NULL);
    http->routes = routes;
    http->route_count = route_count;
    http->handlers = handlers;
    http->context = context;
    struct http_server_options options = {
        .loop = http->options.loop,
        .host = host,
        .port = port,
        .connections_max = http->options.connections_max,
        .request_timeout_us = http->options.request_timeout_us,
        .handlers = &rpc_http_server_handlers,
        .context = http,
    };
    return http_server_new(&options, &http->server, error);
}

static void rpc_http_request_free(struct rpc_http *http, struct rpc_http_request *request)
{
    if (request->previous != NULL) {
        request->previous->next = request->next;
    } else {
        http->requests = request->next;
    }
    if (request->next != NULL) request->next->previous = request->previous;
    free(request);
}

void rpc_http_drop_requests(struct rpc_http *http)
{
    while (http->requests != NULL)
        rpc_http_request_free(http, http->requests);
}

void rpc_http_answer(struct rpc_request *base, int status, bool binary, const struct slice *parts,
                     size_t part_count)
{
    struct rpc_http_request *request = (struct rpc_http_request *)base;
    struct http_request *answered = request->http;
    rpc_http_request_free(rpc_http_of(base->transport), request);
    http_answer(answered, status, binary ? RPC_HTTP_BINARY : RPC_HTTP_JSON, parts, part_count);
}

void rpc_http_answer_text(struct rpc_request *base, int status, const char *text)
{
    struct rpc_http_request *request = (struct rpc_http_request *)base;
    struct http_request *answered = request->http;
    rpc_http_request_free(rpc_http_of(base->transport), request);
    http_answer_text(answered, status, "text/plain; charset=utf-8", text);
}

const char *rpc_http_request_field(const struct rpc_request *base, const char *name)
{
    const struct rpc_http *http = rpc_http_of(base->transport);
    ASSERT((const struct rpc_http_request *)base == http->arriving);
    return http_head_field(http->arriving_head, name);
}

bool rpc_http_peer_is_loopback(const struct rpc_request *base)
{
    return http_request_peer_is_loopback(((const struct rpc_http_request *)base)->http);
}
