/* sim_network_internal.h: what the two halves of the network share: sim_network.c carries segments
 * between hosts, sim_transport.c is the process's side (struct rpc_transport).                   */
#ifndef MOONMQ_SIM_SIM_NETWORK_INTERNAL_H
#define MOONMQ_SIM_SIM_NETWORK_INTERNAL_H

#include "sim/machine.h"
#include "sim/sim_network.h"
#include "sim/world.h"

enum sim_side { SIM_SIDE_CLIENT, SIM_SIDE_SERVER };

enum sim_segment_kind {
    SIM_SEGMENT_CONNECT,
    SIM_SEGMENT_ACCEPT,
    SIM_SEGMENT_REFUSE,
    SIM_SEGMENT_REQUEST,
    SIM_SEGMENT_ANSWER,
    SIM_SEGMENT_CLOSE, /* to either side */
};

struct sim_body {
    uint32_t references;
    size_t bytes;
    uint8_t data[];
};

/* What an HTTP request says; text is owned. */
struct sim_call {
    char *method, *path;
    char *fields; /* whole lines; NULL: none */
    const char *token;
    bool binary;
    struct sim_body *body;
};

/* Lives while one of its ends is open or one of its segments is under way. */
struct sim_connection {
    struct sim_network *network;
    uint64_t id;
    uint32_t references;
    bool silent;
    struct sim_endpoint *end[2]; /* by side; NULL: nobody (a replay's client) */
    bool open[2];
    uint64_t sent[2], arrived[2];                 /* segments, by the side that sends */
    struct sim_link *link;                        /* the client's, while it is open */
    struct sim_request *request;                  /* at the server, unanswered */
    struct sim_connection *previous[2], *next[2]; /* on the endpoints' lists, while open */
};

struct sim_segment {
    struct sim_event event;
    struct sim_segment *previous, *next; /* all that are under way */
    struct sim_connection *connection;
    enum sim_side from;
    enum sim_segment_kind kind;
    uint64_t number; /* position among the segments of its side */
    uint32_t attempts;
    struct sim_call call;  /* REQUEST */
    struct sim_body *body; /* ANSWER */
    int status;            /* ANSWER */
};

enum sim_link_state { SIM_LINK_CLOSED, SIM_LINK_CONNECTING, SIM_LINK_OPEN, SIM_LINK_CLOSING };

struct sim_link {
    struct rpc_link base;
    struct sim_resource resource;
    struct sim_endpoint *endpoint;
    char *address;
    struct rpc_link_handlers handlers;
    void *context;
    enum sim_link_state state;
    struct sim_connection *connection; /* while CONNECTING or OPEN */
    struct sim_event timeout;          /* of the connect or the call, on the machine's clock */
    int64_t deadline_us;
    rpc_answer_fn answered; /* NULL: no call pending */
    void *answered_context;
    char *fields; /* of the next call; NULL: none */
    struct sim_notice *notices;
};

struct sim_request {
    struct rpc_request base;
    struct sim_resource resource;
    struct sim_endpoint *endpoint;
    struct sim_connection *connection; /* NULL: gone; the answer goes nowhere */
    struct sim_body *body;             /* kept for whoever watches the answers */
    char *fields;                      /* its lines, each ended by a zero; an empty one ends them */
    size_t route;
};

enum sim_notice_kind {
    SIM_NOTICE_OPENED,
    SIM_NOTICE_ANSWER,
    SIM_NOTICE_CLOSED,
    SIM_NOTICE_REQUEST,
    SIM_NOTICE_DISCONNECTED,
};

/* Something a process is about to be told. */
struct sim_notice {
    struct sim_event event;
    struct sim_resource resource;
    struct sim_endpoint *endpoint;
    enum sim_notice_kind kind;
    struct sim_link *link; /* OPENED, ANSWER, CLOSED */
    struct sim_notice *link_next;
    rpc_answer_fn answered;
    void *answered_context;
    int http_status;
    enum status why;
    struct sim_body *body;
    struct sim_request *request; /* REQUEST */
    size_t route;
    char *query;
    uint64_t connection_id;
};

struct sim_redirect {
    char *address;
    int to_id;
};

struct sim_endpoint {
    struct rpc_transport base;
    struct sim_network *network;
    struct sim_machine *machine; /* NULL: the rig */
    int id;
    char *address;
    const char *token, *accepts, *accepts_too;
    bool listening;
    const struct rpc_route *routes;
    size_t route_count;
    const struct rpc_server_handlers *handlers;
    void *context;
    struct sim_connection *connections[2]; /* in which it is client, server */
    struct sim_redirect *redirects;
    size_t redirect_count;
};

struct sim_network {
    struct sim_world *world;
    sim_answer_seen_fn seen;
    void *seen_context;
    struct sim_network_faults faults;
    struct sim_network_counts counts;
    struct sim_endpoint *endpoints[SIM_NETWORK_ENDPOINTS_MAX];
    struct sim_segment *segments;
    struct sim_path paths[SIM_NETWORK_ENDPOINTS_MAX][SIM_NETWORK_ENDPOINTS_MAX];
    uint64_t next_connection;
};

struct sim_body *sim_body_new(const struct slice *parts, size_t part_count);
void sim_body_unref(struct sim_body *body);
char *sim_copy_text(const char *text);
void sim_call_free(struct sim_call *call);

/* sim_network.c */
struct sim_connection *sim_connection_new(struct sim_network *network, struct sim_endpoint *client,
                                          struct sim_endpoint *server);
void sim_connection_unref(struct sim_connection *connection);
void sim_connection_set_open(struct sim_connection *connection, enum sim_side side, bool open);
/* Queues a segment; the caller fills in its content before the next event. */
struct sim_segment *sim_connection_send(struct sim_connection *connection, enum sim_side from,
                                        enum sim_segment_kind kind, size_t bytes);

void sim_segment_free(struct sim_segment *segment);

/* sim_transport.c: what the process's side makes of an arrival. */
extern const struct rpc_transport_ops sim_transport_ops;
void sim_link_accepted(struct sim_link *link);
void sim_link_broke(struct sim_link *link, enum status why);
void sim_link_answered(struct sim_link *link, int status, struct sim_body *body);
void sim_server_receive(struct sim_connection *connection, const struct sim_call *call);
void sim_server_disconnected(struct sim_connection *connection);

#endif
