/* sim_network.c: connections and segments: what happens between two kernels. */
#include "sim/sim_network.h"

#include <string.h>

#include "base/assert.h"
#include "sim/sim_network_internal.h"

#define RETRANSMIT_US        200000
#define RETRANSMIT_US_MAX    3200000
#define RETRANSMIT_MAX       200  /* then the connection is given up: ten minutes */
#define ORDER_POLL_US        2000 /* how often a segment waits for the one before it */
#define DEFAULT_DELAY_US_MIN 50
#define DEFAULT_DELAY_US_MAX 250
#define DUPLICATE_US_MAX     20000

static void segment_arrives(struct sim_event *event);

struct sim_network *sim_network_new(struct sim_world *world)
{
    struct sim_network *network = sim_alloc(sizeof(*network));
    network->world = world;
    network->next_connection = 1;
    for (int from = 0; from < SIM_NETWORK_ENDPOINTS_MAX; from++) {
        for (int to = 0; to < SIM_NETWORK_ENDPOINTS_MAX; to++) {
            network->paths[from][to].delay_us_min = DEFAULT_DELAY_US_MIN;
            network->paths[from][to].delay_us_max = DEFAULT_DELAY_US_MAX;
        }
    }
    return network;
}

void sim_network_free(struct sim_network *network)
{
    for (int i = 0; i < SIM_NETWORK_ENDPOINTS_MAX; i++)
        ASSERT(network->endpoints[i] == NULL);
    /* Segments still under way belong to connections whose ends are all gone. */
    while (network->segments != NULL)
        sim_segment_free(network->segments);
    sim_release(network);
}

struct sim_network_faults *sim_network_faults(struct sim_network *network)
{
    return &network->faults;
}

const struct sim_network_counts *sim_network_counts(const struct sim_network *network)
{
    return &network->counts;
}

void sim_network_watch(struct sim_network *network, sim_answer_seen_fn seen, void *context)
{
    network->seen = seen;
    network->seen_context = context;
}

struct sim_path *sim_network_path(struct sim_network *network, int from_id, int to_id)
{
    ASSERT(from_id >= 0 && from_id < SIM_NETWORK_ENDPOINTS_MAX && to_id >= 0 &&
           to_id < SIM_NETWORK_ENDPOINTS_MAX);
    return &network->paths[from_id][to_id];
}

char *sim_copy_text(const char *text)
{
    if (text == NULL) return NULL;
    size_t bytes = strlen(text) + 1;
    char *copy = sim_alloc(bytes);
    memcpy(copy, text, bytes);
    return copy;
}

struct sim_body *sim_body_new(const struct slice *parts, size_t part_count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < part_count; i++)
        bytes += parts[i].bytes;
    struct sim_body *body = sim_grow(NULL, sizeof(*body) + bytes);
    body->references = 1;
    body->bytes = 0;
    for (size_t i = 0; i < part_count; i++) {
        if (parts[i].bytes == 0) continue;
        memcpy(body->data + body->bytes, parts[i].data, parts[i].bytes);
        body->bytes += parts[i].bytes;
    }
    return body;
}

void sim_body_unref(struct sim_body *body)
{
    if (body == NULL || --body->references > 0) return;
    sim_release(body);
}

void sim_call_free(struct sim_call *call)
{
    sim_release(call->method);
    sim_release(call->path);
    sim_release(call->fields);
    sim_body_unref(call->body);
}

/* Connections. */

struct sim_connection *sim_connection_new(struct sim_network *network, struct sim_endpoint *client,
                                          struct sim_endpoint *server)
{
    struct sim_connection *connection = sim_alloc(sizeof(*connection));
    connection->network = network;
    connection->id = network->next_connection++;
    connection->end[SIM_SIDE_CLIENT] = client;
    connection->end[SIM_SIDE_SERVER] = server;
    return connection;
}

void sim_connection_unref(struct sim_connection *connection)
{
    ASSERT(connection->references > 0);
    if (--connection->references > 0) return;
    ASSERT(!connection->open[0] && !connection->open[1] && connection->request == NULL);
    sim_release(connection);
}

/* An open side holds a reference and stands on its endpoint's list. */
void sim_connection_set_open(struct sim_connection *connection, enum sim_side side, bool open)
{
    if (connection->open[side] == open) return;
    struct sim_connection **first = &connection->end[side]->connections[side];
    connection->open[side] = open;
    if (open) {
        connection->references++;
        connection->previous[side] = NULL;
        connection->next[side] = *first;
        if (*first != NULL) (*first)->previous[side] = connection;
        *first = connection;
        return;
    }
    if (connection->previous[side] != NULL)
        connection->previous[side]->next[side] = connection->next[side];
    else
        *first = connection->next[side];
    if (connection->next[side] != NULL)
        connection->next[side]->previous[side] = connection->previous[side];
    sim_connection_unref(connection);
}

/* Segments. */

static int endpoint_id(const struct sim_endpoint *endpoint)
{
    return endpoint == NULL ? 0 : endpoint->id;
}

static struct sim_path *connection_path(struct sim_connection *connection, enum sim_side from)
{
    return &connection->network
                ->paths[endpoint_id(connection->end[from])][endpoint_id(connection->end[!from])];
}

struct sim_segment *sim_connection_send(struct sim_connection *connection, enum sim_side from,
                                        enum sim_segment_kind kind, size_t bytes)
{
    struct sim_network *network = connection->network;
    struct sim_world *world = network->world;
    struct sim_path *path = connection_path(connection, from);
    struct sim_segment *segment = sim_alloc(sizeof(*segment));
    sim_event_init(&segment->event, SIM_EVENT_SEGMENT, NULL, segment_arrives);
    segment->event.detail = connection->id << 8 | (uint64_t)kind << 4 | (uint64_t)from;
    segment->connection = connection;
    segment->from = from;
    segment->kind = kind;
    segment->number = connection->sent[from]++;
    connection->references++;
    segment->next = network->segments;
    if (network->segments != NULL) network->segments->previous = segment;
    network->segments = segment;
    int64_t at_us = world->now_us;
    if (path->bytes_per_second > 0) {
        if (path->free_at_us < at_us) path->free_at_us = at_us;
        path->free_at_us += (int64_t)bytes * 1000000 / path->bytes_per_second;
        at_us = path->free_at_us;
    }
    at_us += sim_world_between(world, path->delay_us_min, path->delay_us_max);
    for (int lost = 0; lost < 4 && sim_world_chance(world, path->loss_ppm); lost++) {
        at_us += (int64_t)RETRANSMIT_US << lost;
        network->counts.retransmissions++;
    }
    if (sim_world_chance(world, path->silence_ppm)) connection->silent = true;
    sim_world_schedule(world, &segment->event, at_us);
    return segment;
}

void sim_segment_free(struct sim_segment *segment)
{
    struct sim_network *network = segment->connection->network;
    sim_world_cancel(network->world, &segment->event);
    if (segment->previous != NULL)
        segment->previous->next = segment->next;
    else
        network->segments = segment->next;
    if (segment->next != NULL) segment->next->previous = segment->previous;
    sim_call_free(&segment->call);
    sim_body_unref(segment->body);
    sim_connection_unref(segment->connection);
    sim_release(segment);
}

static void segment_send_again(struct sim_segment *segment)
{
    struct sim_network *network = segment->connection->network;
    int64_t wait_us = (int64_t)RETRANSMIT_US << (segment->attempts < 4 ? segment->attempts : 4);
    segment->attempts++;
    network->counts.retransmissions++;
    sim_world_schedule(network->world, &segment->event,
                       network->world->now_us +
                           (wait_us < RETRANSMIT_US_MAX ? wait_us : RETRANSMIT_US_MAX));
}

static bool endpoint_host_is_up(const struct sim_endpoint *endpoint)
{
    return endpoint != NULL &&
           (endpoint->machine == NULL || sim_machine_host_is_up(endpoint->machine));
}

/* Makes copies of a request that will arrive on connections of their own. */
static void request_replay(struct sim_segment *segment, int64_t delay_us_max)
{
    struct sim_network *network = segment->connection->network;
    struct sim_connection *ghost =
        sim_connection_new(network, NULL, segment->connection->end[SIM_SIDE_SERVER]);
    struct sim_segment *copy = sim_connection_send(ghost, SIM_SIDE_CLIENT, SIM_SEGMENT_REQUEST, 0);
    copy->call = segment->call;
    copy->call.method = sim_copy_text(segment->call.method);
    copy->call.path = sim_copy_text(segment->call.path);
    copy->call.fields = sim_copy_text(segment->call.fields);
    copy->call.body->references++;
    network->counts.duplicates++;
    sim_world_schedule(network->world, &copy->event,
                       network->world->now_us + sim_world_between(network->world, 0, delay_us_max));
}

static void request_arrives(struct sim_segment *segment)
{
    struct sim_connection *connection = segment->connection;
    struct sim_network *network = connection->network;
    struct sim_endpoint *server = connection->end[SIM_SIDE_SERVER];
    bool ghost = connection->end[SIM_SIDE_CLIENT] == NULL;
    if (ghost) {
        if (!server->listening) return;
        sim_connection_set_open(connection, SIM_SIDE_SERVER, true);
    }
    if (!connection->open[SIM_SIDE_SERVER]) {
        sim_connection_send(connection, SIM_SIDE_SERVER, SIM_SEGMENT_CLOSE, 0);
        return;
    }
    network->counts.requests++;
    if (!ghost) {
        if (sim_world_chance(network->world, network->faults.duplicate_ppm))
            request_replay(segment, DUPLICATE_US_MAX);
        if (sim_world_chance(network->world, network->faults.replay_ppm))
            request_replay(segment, network->faults.replay_us_max);
    }
    sim_server_receive(connection, &segment->call);
}

static void connect_arrives(struct sim_connection *connection)
{
    struct sim_endpoint *server = connection->end[SIM_SIDE_SERVER];
    const struct sim_path *path = connection_path(connection, SIM_SIDE_CLIENT);
    bool refused = !server->listening || path->clogged;
    if (path->deaf) return;
    connection->network->counts.connects++;
    if (refused) {
        connection->network->counts.refused++;
        sim_connection_send(connection, SIM_SIDE_SERVER, SIM_SEGMENT_REFUSE, 0);
        return;
    }
    sim_connection_set_open(connection, SIM_SIDE_SERVER, true);
    sim_connection_send(connection, SIM_SIDE_SERVER, SIM_SEGMENT_ACCEPT, 0);
}

/* A close reaches the side that did not send it. */
static void close_arrives(struct sim_connection *connection, enum sim_side from)
{
    if (from == SIM_SIDE_CLIENT) {
        sim_server_disconnected(connection);
    } else if (connection->link != NULL) {
        sim_link_broke(connection->link, STATUS_CLOSED);
    }
}

static void segment_take_effect(struct sim_segment *segment)
{
    struct sim_connection *connection = segment->connection;
    switch (segment->kind) {
    case SIM_SEGMENT_CONNECT: connect_arrives(connection); break;
    case SIM_SEGMENT_ACCEPT:
        if (connection->link != NULL)
            sim_link_accepted(connection->link);
        else
            sim_connection_send(connection, SIM_SIDE_CLIENT, SIM_SEGMENT_CLOSE, 0);
        break;
    case SIM_SEGMENT_REFUSE:
        if (connection->link != NULL) sim_link_broke(connection->link, STATUS_REFUSED);
        break;
    case SIM_SEGMENT_REQUEST: request_arrives(segment); break;
    case SIM_SEGMENT_ANSWER:
        connection->network->counts.answers++;
        if (connection->link != NULL)
            sim_link_answered(connection->link, segment->status, segment->body);
        else if (connection->end[SIM_SIDE_CLIENT] != NULL)
            sim_connection_send(connection, SIM_SIDE_CLIENT, SIM_SEGMENT_CLOSE, 0);
        break;
    case SIM_SEGMENT_CLOSE: close_arrives(connection, segment->from); break;
    }
}

static void segment_arrives(struct sim_event *event)
{
    struct sim_segment *segment = CONTAINER_OF(event, struct sim_segment, event);
    struct sim_connection *connection = segment->connection;
    struct sim_endpoint *to = connection->end[!segment->from];
    bool ghost = connection->end[SIM_SIDE_CLIENT] == NULL;
    bool passes = ghost || !connection_path(connection, segment->from)->cut;
    if (!connection->silent && (!passes || !endpoint_host_is_up(to))) {
        if (segment->attempts < RETRANSMIT_MAX) {
            segment_send_again(segment);
            return;
        }
        connection->silent = true;
    }
    if (connection->silent) {
        sim_segment_free(segment);
        return;
    }
    if (segment->number != connection->arrived[segment->from]) {
        sim_world_schedule(connection->network->world, event,
                           connection->network->world->now_us + ORDER_POLL_US);
        return;
    }
    connection->arrived[segment->from]++;
    segment_take_effect(segment);
    sim_segment_free(segment);
}

void sim_network_reset(struct sim_network *network, int a_id, int b_id)
{
    struct sim_endpoint *ends[2] = {network->endpoints[a_id], network->endpoints[b_id]};
    for (int i = 0; i < 2; i++) {
        struct sim_endpoint *client = ends[i], *server = ends[!i];
        struct sim_connection *next;
        if (client == NULL || server == NULL) continue;
        for (struct sim_connection *connection = client->connections[SIM_SIDE_CLIENT];
             connection != NULL; connection = next) {
            next = connection->next[SIM_SIDE_CLIENT];
            if (connection->end[SIM_SIDE_SERVER] != server) continue;
            network->counts.resets++;
            connection->references++;
            connection->silent = true;
            sim_server_disconnected(connection);
            if (connection->link != NULL) sim_link_broke(connection->link, STATUS_CLOSED);
            sim_connection_unref(connection);
        }
    }
}

/* Endpoints. */

struct sim_endpoint *sim_network_join(struct sim_network *network, struct sim_machine *machine,
                                      const char *address)
{
    int id = machine == NULL ? 0 : sim_machine_id(machine);
    ASSERT(id < SIM_NETWORK_ENDPOINTS_MAX && network->endpoints[id] == NULL);
    struct sim_endpoint *endpoint = sim_alloc(sizeof(*endpoint));
    endpoint->base.ops = &sim_transport_ops;
    endpoint->network = network;
    endpoint->machine = machine;
    endpoint->id = id;
    endpoint->address = sim_copy_text(address);
    network->endpoints[id] = endpoint;
    return endpoint;
}

void sim_endpoint_process_died(struct sim_endpoint *endpoint, bool peers_are_told)
{
    endpoint->listening = false;
    for (enum sim_side side = SIM_SIDE_CLIENT; side <= SIM_SIDE_SERVER; side++) {
        struct sim_connection *connection;
        while ((connection = endpoint->connections[side]) != NULL) {
            if (connection->end[!side] != NULL && peers_are_told)
                sim_connection_send(connection, side, SIM_SEGMENT_CLOSE, 0);
            if (side == SIM_SIDE_CLIENT) {
                connection->link->connection = NULL;
                connection->link = NULL;
            } else if (connection->request != NULL) {
                connection->request->connection = NULL;
                connection->request = NULL;
            }
            sim_connection_set_open(connection, side, false);
        }
    }
}

void sim_network_leave(struct sim_endpoint *endpoint)
{
    struct sim_network *network = endpoint->network;
    sim_endpoint_process_died(endpoint, false);
    network->endpoints[endpoint->id] = NULL;
    for (struct sim_segment *segment = network->segments, *next; segment != NULL; segment = next) {
        next = segment->next;
        if (segment->connection->end[0] == endpoint || segment->connection->end[1] == endpoint)
            sim_segment_free(segment);
    }
    for (int id = 0; id < SIM_NETWORK_ENDPOINTS_MAX; id++) {
        struct sim_endpoint *other = network->endpoints[id];
        if (other == NULL) continue;
        for (enum sim_side side = SIM_SIDE_CLIENT; side <= SIM_SIDE_SERVER; side++) {
            for (struct sim_connection *connection = other->connections[side]; connection != NULL;
                 connection = connection->next[side]) {
                if (connection->end[!side] == endpoint) {
                    connection->end[!side] = NULL;
                    connection->silent = true;
                }
            }
        }
    }
    for (size_t i = 0; i < endpoint->redirect_count; i++)
        sim_release(endpoint->redirects[i].address);
    sim_release(endpoint->redirects);
    sim_release(endpoint->address);
    sim_release(endpoint);
}

struct rpc_transport *sim_endpoint_transport(struct sim_endpoint *endpoint)
{
    return &endpoint->base;
}

void sim_endpoint_set_tokens(struct sim_endpoint *endpoint, const char *sends, const char *accepts,
                             const char *accepts_too)
{
    endpoint->token = sends;
    endpoint->accepts = accepts;
    endpoint->accepts_too = accepts_too;
}

void sim_endpoint_redirect(struct sim_endpoint *endpoint, const char *address, int to_id)
{
    for (size_t i = 0; i < endpoint->redirect_count; i++) {
        if (strcmp(endpoint->redirects[i].address, address) != 0) continue;
        endpoint->redirects[i].to_id = to_id;
        return;
    }
    endpoint->redirects = sim_grow(endpoint->redirects,
                                   (endpoint->redirect_count + 1) * sizeof(endpoint->redirects[0]));
    endpoint->redirects[endpoint->redirect_count++] =
        (struct sim_redirect){sim_copy_text(address), to_id};
}
