/* rpc_http.c: the transport object; links are in rpc_http_client.c, the port in rpc_http_server.c.
 */
#include "io/rpc_http.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/memory.h"
#include "io/rpc_http_internal.h"

#define RPC_HTTP_CONNECTIONS_MAX    256
#define RPC_HTTP_REQUEST_TIMEOUT_US 5000000
#define RPC_HTTP_CONNECT_TIMEOUT_US 1000000
#define RPC_HTTP_TOKEN_BYTES_MAX    256
#define RPC_HTTP_ANSWER_BYTES_MAX   (128u * 1024 * 1024)

static const struct rpc_transport_ops rpc_http_ops = {
    .link_new = rpc_http_link_new,
    .link_connect = rpc_http_link_connect,
    .link_call = rpc_http_link_call,
    .link_close = rpc_http_link_close,
    .link_free = rpc_http_link_free,
    .listen = rpc_http_listen,
    .answer = rpc_http_answer,
    .peer_is_loopback = rpc_http_peer_is_loopback,
    .link_fields = rpc_http_link_fields,
    .request_field = rpc_http_request_field,
    .answer_text = rpc_http_answer_text,
};

bool rpc_http_token_is_valid(const char *token)
{
    size_t bytes = 0;
    for (; token[bytes] != '\0'; bytes++) {
        if (token[bytes] <= ' ' || token[bytes] > '~' || bytes == RPC_HTTP_TOKEN_BYTES_MAX) {
            return false;
        }
    }
    return bytes > 0;
}

struct rpc_transport *rpc_http_new(const struct rpc_http_options *options)
{
    struct rpc_http *http = memory_new(sizeof(*http));
    http->base.ops = &rpc_http_ops;
    http->options = *options;
    struct rpc_http_options *own = &http->options;
    if (own->connections_max == 0) own->connections_max = RPC_HTTP_CONNECTIONS_MAX;
    if (own->request_timeout_us == 0) own->request_timeout_us = RPC_HTTP_REQUEST_TIMEOUT_US;
    if (own->connect_timeout_us == 0) own->connect_timeout_us = RPC_HTTP_CONNECT_TIMEOUT_US;
    if (own->answer_bytes_max == 0) own->answer_bytes_max = RPC_HTTP_ANSWER_BYTES_MAX;
    for (size_t i = 0; i < RPC_HTTP_TOKENS_MAX; i++) {
        if (own->tokens[i] == NULL) continue;
        ASSERT(rpc_http_token_is_valid(own->tokens[i]));
        own->tokens[i] = memory_copy_text(own->tokens[i]);
    }
    http->resolver = resolver_new(options->executor);
    return &http->base;
}

void rpc_http_free(struct rpc_transport *transport)
{
    if (transport == NULL) return;
    struct rpc_http *http = rpc_http_of(transport);
    ASSERT(http->links == 0);
    rpc_http_drop_requests(http);
    http_server_free(http->server);
    resolver_free(http->resolver);
    for (size_t i = 0; i < RPC_HTTP_TOKENS_MAX; i++)
        free((char *)http->options.tokens[i]);
    free(http);
}

int rpc_http_port(const struct rpc_transport *transport)
{
    const struct rpc_http *http = (const struct rpc_http *)transport;
    return http->server == NULL ? 0 : http_server_port(http->server);
}

struct rpc_http_stats rpc_http_stats(const struct rpc_transport *transport)
{
    const struct rpc_http *http = (const struct rpc_http *)transport;
    struct rpc_http_stats stats = http->stats;
    if (http->server != NULL) stats.server = http_server_stats(http->server);
    return stats;
}
