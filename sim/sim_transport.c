/* sim_transport.c: struct rpc_transport of one virtual process: its links, its server side, and
 * the notices through which the kernel tells it what happened.                                  */
#include <string.h>
#include <strings.h>

#include "base/assert.h"
#include "sim/sim_network_internal.h"

#define CONNECT_TIMEOUT_US 1000000

static struct sim_world *endpoint_world(const struct sim_endpoint *endpoint)
{
    return endpoint->network->world;
}

static int64_t endpoint_clock_us(const struct sim_endpoint *endpoint)
{
    return endpoint->machine == NULL ? endpoint_world(endpoint)->now_us
                                     : sim_machine_clock_us(endpoint->machine);
}

static int64_t endpoint_when(const struct sim_endpoint *endpoint, int64_t clock_us)
{
    return endpoint->machine == NULL ? clock_us : sim_machine_when(endpoint->machine, clock_us);
}

/* Notices. */

static void notice_leave_link(struct sim_notice *notice)
{
    struct sim_link *link = notice->link;
    if (link == NULL) return;
    struct sim_notice **at = &link->notices;
    while (*at != notice)
        at = &(*at)->link_next;
    *at = notice->link_next;
    notice->link = NULL;
}

static void notice_free(struct sim_notice *notice)
{
    struct sim_endpoint *endpoint = notice->endpoint;
    notice_leave_link(notice);
    sim_world_cancel(endpoint_world(endpoint), &notice->event);
    sim_machine_unhang(endpoint->machine, &notice->resource);
    sim_body_unref(notice->body);
    sim_release(notice->query);
    sim_release(notice);
}

static void notice_release(struct sim_resource *resource)
{
    notice_free(CONTAINER_OF(resource, struct sim_notice, resource));
}

static void request_detach(struct sim_request *request)
{
    if (request->connection == NULL) return;
    request->connection->request = NULL;
    request->connection = NULL;
}

static void request_free(struct sim_request *request)
{
    request_detach(request);
    sim_machine_unhang(request->endpoint->machine, &request->resource);
    sim_body_unref(request->body);
    sim_release(request->fields);
    sim_release(request);
}

static void request_release(struct sim_resource *resource)
{
    request_free(CONTAINER_OF(resource, struct sim_request, resource));
}

static void link_tell_closed(struct sim_link *link, enum status why)
{
    link->state = SIM_LINK_CLOSED;
    if (link->handlers.closed != NULL) link->handlers.closed(link->context, &link->base, why);
}

/* The bookkeeping is done before the process is called: it may not come back. */
static void notice_deliver(struct sim_event *event)
{
    struct sim_notice notice = *CONTAINER_OF(event, struct sim_notice, event);
    struct sim_notice *original = CONTAINER_OF(event, struct sim_notice, event);
    struct sim_endpoint *endpoint = notice.endpoint;
    struct slice body = {NULL, 0};
    if (notice.body != NULL) body = (struct slice){notice.body->data, notice.body->bytes};
    notice_leave_link(original);
    switch (notice.kind) {
    case SIM_NOTICE_OPENED:
        notice_free(original);
        if (notice.link->handlers.opened != NULL)
            notice.link->handlers.opened(notice.link->context, &notice.link->base);
        return;
    case SIM_NOTICE_CLOSED:
        notice_free(original);
        link_tell_closed(notice.link, notice.why);
        return;
    case SIM_NOTICE_DISCONNECTED:
        notice_free(original);
        endpoint->handlers->disconnected(endpoint->context, notice.connection_id);
        return;
    case SIM_NOTICE_ANSWER: {
        const struct rpc_answer answer = {notice.http_status, notice.why, body};
        notice.answered(notice.answered_context, &answer);
        break;
    }
    case SIM_NOTICE_REQUEST:
        endpoint->handlers->request(endpoint->context, &notice.request->base, notice.connection_id,
                                    notice.route, notice.query, body);
        break;
    }
    notice_free(original);
}

static struct sim_notice *notice_new(struct sim_endpoint *endpoint, enum sim_notice_kind kind,
                                     struct sim_link *link, uint64_t detail)
{
    struct sim_notice *notice = sim_alloc(sizeof(*notice));
    notice->endpoint = endpoint;
    notice->kind = kind;
    sim_event_init(&notice->event, kind == SIM_NOTICE_REQUEST ? SIM_EVENT_REQUEST : SIM_EVENT_LINK,
                   endpoint->machine, notice_deliver);
    notice->event.detail = detail << 4 | (uint64_t)kind;
    notice->resource.release = notice_release;
    sim_machine_hang(endpoint->machine, &notice->resource);
    if (link != NULL) {
        notice->link = link;
        notice->link_next = link->notices;
        link->notices = notice;
    }
    sim_world_schedule(endpoint_world(endpoint), &notice->event, 0);
    return notice;
}

/* Links. */

static void link_answer(struct sim_link *link, int http_status, enum status why,
                        struct sim_body *body)
{
    if (link->answered == NULL) return;
    uint64_t id = link->connection == NULL ? 0 : link->connection->id;
    struct sim_notice *notice = notice_new(link->endpoint, SIM_NOTICE_ANSWER, link, id);
    notice->http_status = http_status;
    notice->why = why;
    notice->body = body;
    if (body != NULL) body->references++;
    notice->answered = link->answered;
    notice->answered_context = link->answered_context;
    link->answered = NULL;
}

static void link_leave_connection(struct sim_link *link, bool peer_is_told)
{
    struct sim_connection *connection = link->connection;
    if (connection == NULL) return;
    link->connection = NULL;
    connection->link = NULL;
    if (peer_is_told && connection->end[SIM_SIDE_SERVER] != NULL)
        sim_connection_send(connection, SIM_SIDE_CLIENT, SIM_SEGMENT_CLOSE, 0);
    sim_connection_set_open(connection, SIM_SIDE_CLIENT, false);
}

static void link_shut(struct sim_link *link, enum status why, bool peer_is_told)
{
    if (link->state != SIM_LINK_OPEN && link->state != SIM_LINK_CONNECTING) return;
    sim_world_cancel(endpoint_world(link->endpoint), &link->timeout);
    link_answer(link, 0, why, NULL);
    uint64_t id = link->connection == NULL ? 0 : link->connection->id;
    link_leave_connection(link, peer_is_told);
    link->state = SIM_LINK_CLOSING;
    notice_new(link->endpoint, SIM_NOTICE_CLOSED, link, id)->why = why;
}

void sim_link_broke(struct sim_link *link, enum status why)
{
    link_shut(link, why, false);
}

void sim_link_accepted(struct sim_link *link)
{
    if (link->state != SIM_LINK_CONNECTING) return;
    sim_world_cancel(endpoint_world(link->endpoint), &link->timeout);
    link->state = SIM_LINK_OPEN;
    notice_new(link->endpoint, SIM_NOTICE_OPENED, link, link->connection->id);
}

void sim_link_answered(struct sim_link *link, int status, struct sim_body *body)
{
    if (link->state != SIM_LINK_OPEN || link->answered == NULL) return;
    sim_world_cancel(endpoint_world(link->endpoint), &link->timeout);
    link_answer(link, status, STATUS_OK, body);
}

static void link_timed_out(struct sim_event *event)
{
    struct sim_link *link = CONTAINER_OF(event, struct sim_link, timeout);
    if (endpoint_clock_us(link->endpoint) < link->deadline_us) {
        sim_world_schedule(endpoint_world(link->endpoint), event,
                           endpoint_when(link->endpoint, link->deadline_us));
        return;
    }
    link_shut(link, STATUS_TIMEOUT, true);
}

static void link_start_timeout(struct sim_link *link, int64_t delay_us)
{
    link->deadline_us = endpoint_clock_us(link->endpoint) + delay_us;
    sim_world_schedule(endpoint_world(link->endpoint), &link->timeout,
                       endpoint_when(link->endpoint, link->deadline_us));
}

static void link_release(struct sim_resource *resource)
{
    struct sim_link *link = CONTAINER_OF(resource, struct sim_link, resource);
    sim_world_cancel(endpoint_world(link->endpoint), &link->timeout);
    while (link->notices != NULL)
        notice_free(link->notices);
    link_leave_connection(link, true);
    sim_machine_unhang(link->endpoint->machine, &link->resource);
    sim_release(link->address);
    sim_release(link->fields);
    sim_release(link);
}

static struct rpc_link *transport_link_new(struct rpc_transport *transport, const char *address,
                                           const struct rpc_link_handlers *handlers, void *context)
{
    struct sim_endpoint *endpoint = (struct sim_endpoint *)transport;
    struct sim_link *link = sim_alloc(sizeof(*link));
    link->base.transport = transport;
    link->endpoint = endpoint;
    link->address = sim_copy_text(address);
    link->handlers = *handlers;
    link->context = context;
    sim_event_init(&link->timeout, SIM_EVENT_TIMER, endpoint->machine, link_timed_out);
    link->resource.release = link_release;
    sim_machine_hang(endpoint->machine, &link->resource);
    return &link->base;
}

/* Who answers at `address`, as this endpoint sees it; NULL: nobody ever does. */
static struct sim_endpoint *endpoint_resolve(struct sim_endpoint *endpoint, const char *address)
{
    struct sim_network *network = endpoint->network;
    for (size_t i = 0; i < endpoint->redirect_count; i++) {
        if (strcmp(endpoint->redirects[i].address, address) == 0)
            return network->endpoints[endpoint->redirects[i].to_id];
    }
    for (int id = 0; id < SIM_NETWORK_ENDPOINTS_MAX; id++) {
        if (network->endpoints[id] != NULL && strcmp(network->endpoints[id]->address, address) == 0)
            return network->endpoints[id];
    }
    return NULL;
}

static void transport_link_connect(struct rpc_link *base)
{
    struct sim_link *link = (struct sim_link *)base;
    if (link->state != SIM_LINK_CLOSED) return;
    struct sim_endpoint *server = endpoint_resolve(link->endpoint, link->address);
    link->state = SIM_LINK_CONNECTING;
    link_start_timeout(link, CONNECT_TIMEOUT_US);
    if (server == NULL) return;
    struct sim_connection *connection =
        sim_connection_new(link->endpoint->network, link->endpoint, server);
    connection->link = link;
    link->connection = connection;
    sim_connection_set_open(connection, SIM_SIDE_CLIENT, true);
    sim_connection_send(connection, SIM_SIDE_CLIENT, SIM_SEGMENT_CONNECT, 0);
}

static void transport_link_call(struct rpc_link *base, const char *method, const char *path,
                                struct slice body, bool binary, int64_t timeout_us,
                                rpc_answer_fn answered, void *context)
{
    struct sim_link *link = (struct sim_link *)base;
    if (link->state == SIM_LINK_CLOSING) {
        /* It broke a moment ago and the process was not told yet. */
        link->answered = answered;
        link->answered_context = context;
        link_answer(link, 0, STATUS_CLOSED, NULL);
        return;
    }
    ASSERT(link->state == SIM_LINK_OPEN && link->answered == NULL);
    link->answered = answered;
    link->answered_context = context;
    link_start_timeout(link, timeout_us);
    struct sim_segment *segment =
        sim_connection_send(link->connection, SIM_SIDE_CLIENT, SIM_SEGMENT_REQUEST, body.bytes);
    segment->call = (struct sim_call){
        .method = sim_copy_text(method),
        .path = sim_copy_text(path),
        .fields = link->fields,
        .token = link->endpoint->token,
        .binary = binary,
        .body = sim_body_new(&body, 1),
    };
    link->fields = NULL;
}

static void transport_link_fields(struct rpc_link *base, const char *fields)
{
    struct sim_link *link = (struct sim_link *)base;
    sim_release(link->fields);
    link->fields = sim_copy_text(fields);
}

static void transport_link_close(struct rpc_link *base)
{
    link_shut((struct sim_link *)base, STATUS_CLOSED, true);
}

static void transport_link_free(struct rpc_link *base)
{
    link_release(&((struct sim_link *)base)->resource);
}

/* The server side. */

static enum status transport_listen(struct rpc_transport *transport, const char *host, int port,
                                    const struct rpc_route *routes, size_t route_count,
                                    const struct rpc_server_handlers *handlers, void *context,
                                    struct error *error)
{
    struct sim_endpoint *endpoint = (struct sim_endpoint *)transport;
    if (endpoint->listening)
        return error_set(error, STATUS_EXISTS, "%s:%d: address in use", host, port);
    endpoint->routes = routes;
    endpoint->route_count = route_count;
    endpoint->handlers = handlers;
    endpoint->context = context;
    endpoint->listening = true;
    return STATUS_OK;
}

static void server_send_answer(struct sim_connection *connection, int status,
                               const struct slice *parts, size_t part_count,
                               const struct sim_request *request)
{
    struct sim_network *network = connection->network;
    struct sim_endpoint *client = connection->end[SIM_SIDE_CLIENT];
    struct sim_body *body = sim_body_new(parts, part_count);
    if (request != NULL && network->seen != NULL) {
        const struct sim_answer_seen seen = {
            .server_id = connection->end[SIM_SIDE_SERVER]->id,
            .client_id = client == NULL ? 0 : client->id,
            .path = request->endpoint->routes[request->route].path,
            .status = status,
            .request = {request->body->data, request->body->bytes},
            .answer = {body->data, body->bytes},
        };
        network->seen(network->seen_context, &seen);
    }
    if (client == NULL) {
        sim_body_unref(body);
        sim_server_disconnected(connection); /* a replay: nobody reads the answer */
        return;
    }
    struct sim_segment *segment =
        sim_connection_send(connection, SIM_SIDE_SERVER, SIM_SEGMENT_ANSWER, body->bytes);
    segment->status = status;
    segment->body = body;
}

static void server_refuse(struct sim_connection *connection, int status, const char *text)
{
    const struct slice part = {(const uint8_t *)text, strlen(text)};
    server_send_answer(connection, status, &part, 1, NULL);
}

static bool token_is_accepted(const struct sim_endpoint *endpoint, const char *token)
{
    if (endpoint->accepts == NULL && endpoint->accepts_too == NULL) return true;
    if (token == NULL) return false;
    return (endpoint->accepts != NULL && strcmp(endpoint->accepts, token) == 0) ||
           (endpoint->accepts_too != NULL && strcmp(endpoint->accepts_too, token) == 0);
}

/* The route of a call; else the HTTP status that refuses it. */
static int server_find_route(const struct sim_endpoint *endpoint, const struct sim_call *call,
                             size_t *route)
{
    size_t path_bytes = strcspn(call->path, "?");
    int status = 404;
    for (size_t i = 0; i < endpoint->route_count; i++) {
        const struct rpc_route *candidate = &endpoint->routes[i];
        if (strlen(candidate->path) != path_bytes ||
            memcmp(candidate->path, call->path, path_bytes) != 0)
            continue;
        if (strcmp(candidate->method, call->method) != 0) {
            status = 405;
            continue;
        }
        *route = i;
        return call->body->bytes > candidate->request_bytes_max ? 413 : 200;
    }
    return status;
}

/* Each CR LF becomes zeros, with one more at the end. */
static char *split_lines(const char *fields)
{
    if (fields == NULL) return NULL;
    size_t bytes = strlen(fields);
    char *lines = sim_alloc(bytes + 1);
    for (size_t i = 0; i < bytes; i++)
        lines[i] = fields[i];
    for (size_t i = 0; i + 1 < bytes; i++) {
        if (lines[i] == '\r' && lines[i + 1] == '\n') lines[i] = lines[i + 1] = '\0';
    }
    return lines;
}

static const char *transport_request_field(const struct rpc_request *base, const char *name)
{
    const struct sim_request *request = (const struct sim_request *)base;
    size_t bytes = strlen(name);
    for (const char *line = request->fields; line != NULL && *line != '\0';
         line += strlen(line) + 2) {
        if (strncasecmp(line, name, bytes) == 0 && line[bytes] == ':')
            return line + bytes + 1 + strspn(line + bytes + 1, " ");
    }
    return NULL;
}

void sim_server_receive(struct sim_connection *connection, const struct sim_call *call)
{
    struct sim_endpoint *endpoint = connection->end[SIM_SIDE_SERVER];
    size_t route = 0;
    if (!token_is_accepted(endpoint, call->token)) {
        server_refuse(connection, 401, "{\"error\":\"unauthorized\"}");
        return;
    }
    int status = server_find_route(endpoint, call, &route);
    if (status != 200) {
        server_refuse(connection, status,
                      status == 404   ? "{\"error\":\"no_route\",\"detail\":\"\"}"
                      : status == 405 ? "{\"error\":\"method\",\"detail\":\"\"}"
                                      : "{\"error\":\"too_large\",\"detail\":\"\"}");
        return;
    }
    struct sim_request *request = sim_alloc(sizeof(*request));
    request->base.transport = &endpoint->base;
    request->endpoint = endpoint;
    request->connection = connection;
    request->route = route;
    request->body = call->body;
    request->body->references++;
    request->fields = split_lines(call->fields);
    request->resource.release = request_release;
    sim_machine_hang(endpoint->machine, &request->resource);
    ASSERT(connection->request == NULL);
    connection->request = request;
    struct sim_notice *notice = notice_new(endpoint, SIM_NOTICE_REQUEST, NULL, connection->id);
    const char *query = strchr(call->path, '?');
    notice->request = request;
    notice->route = route;
    notice->query = sim_copy_text(query == NULL ? "" : query + 1);
    notice->connection_id = connection->id;
    notice->body = call->body;
    notice->body->references++;
    sim_world_trace(
        endpoint_world(endpoint), endpoint->machine, "receives %s %s bytes=%zu from=%d",
        call->method, call->path, call->body->bytes,
        connection->end[SIM_SIDE_CLIENT] == NULL ? 0 : connection->end[SIM_SIDE_CLIENT]->id);
}

void sim_server_disconnected(struct sim_connection *connection)
{
    if (!connection->open[SIM_SIDE_SERVER]) return;
    struct sim_endpoint *endpoint = connection->end[SIM_SIDE_SERVER];
    if (connection->request != NULL) request_detach(connection->request);
    notice_new(endpoint, SIM_NOTICE_DISCONNECTED, NULL, connection->id)->connection_id =
        connection->id;
    sim_connection_set_open(connection, SIM_SIDE_SERVER, false);
}

static void transport_answer(struct rpc_request *base, int status, bool binary,
                             const struct slice *parts, size_t part_count)
{
    struct sim_request *request = (struct sim_request *)base;
    struct sim_connection *connection = request->connection;
    (void)binary;
    request_detach(request);
    if (connection != NULL) server_send_answer(connection, status, parts, part_count, request);
    request_free(request);
}

static void transport_answer_text(struct rpc_request *base, int status, const char *text)
{
    const struct slice part = {(const uint8_t *)text, strlen(text)};
    transport_answer(base, status, false, &part, 1);
}

static bool transport_peer_is_loopback(const struct rpc_request *base)
{
    const struct sim_connection *connection = ((const struct sim_request *)base)->connection;
    return connection != NULL && connection->end[SIM_SIDE_CLIENT] != NULL &&
           connection->end[SIM_SIDE_CLIENT]->id == 0;
}

const struct rpc_transport_ops sim_transport_ops = {
    .link_new = transport_link_new,
    .link_connect = transport_link_connect,
    .link_call = transport_link_call,
    .link_close = transport_link_close,
    .link_free = transport_link_free,
    .listen = transport_listen,
    .answer = transport_answer,
    .peer_is_loopback = transport_peer_is_loopback,
    .link_fields = transport_link_fields,
    .request_field = transport_request_field,
    .answer_text = transport_answer_text,
};
