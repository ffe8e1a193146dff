/* sim_client.h: the virtual client network: how a client's request gets to a broker and back.
 *
 * A call is one request on the client's connection to one node; calls of a client to a node keep
 * their order. It ends once: answered, refused (nothing listens: the request was never there),
 * closed (the process died: the outcome is open), or timed out (open as well; the request may
 * still take effect later, and its answer is thrown away).                                     */
#ifndef MOONMQ_SIM_SIM_CLIENT_H
#define MOONMQ_SIM_SIM_CLIENT_H

#include "sim/sim_group.h"

#define SIM_CLIENTS_MAX 48

enum sim_call_end { SIM_CALL_ANSWERED, SIM_CALL_REFUSED, SIM_CALL_CLOSED, SIM_CALL_TIMED_OUT };

struct sim_call;

struct sim_clients {
    struct sim_group *group;
    bool cut[SIM_CLIENTS_MAX][SIM_NODES_MAX]; /* this client does not reach that node */
    int64_t last_arrival_us[SIM_CLIENTS_MAX][SIM_NODES_MAX];
    int64_t delay_us_min, delay_us_max;
    /* Called inside the process for each answer that says OK. */
    void (*answered_ok)(void *context, const struct sim_call *call);
    void *context;
    struct sim_call *calls; /* all there are */
    uint64_t next_number;
};

/* Embedded as the first member of each kind of request; from sim_alloc(). */
struct sim_call {
    struct sim_clients *clients;
    int client; /* index, for order and cuts */
    struct sim_node *node;
    /* Runs inside the process; ends with sim_call_done(), maybe later. */
    void (*serve)(struct sim_call *call);
    /* Runs outside, exactly once; the call is freed afterwards. */
    void (*ended)(struct sim_call *call, enum sim_call_end end);
    /* the answer, filled inside the process */
    enum status status;
    int32_t leader_id, epoch; /* what that broker believed; -1 */
    /* sim_client.c's */
    int64_t served_us; /* when the process was given it */
    struct sim_event event, timeout;
    struct sim_resource resource;
    bool in_flight, at_node, waiting;
    enum sim_call_end end;
    struct sim_call *previous, *next;
};

void sim_clients_init(struct sim_clients *clients, struct sim_group *group);
void sim_clients_deinit(struct sim_clients *clients);
void *sim_call_new(struct sim_clients *clients, size_t bytes, int client,
                   void (*serve)(struct sim_call *call),
                   void (*ended)(struct sim_call *call, enum sim_call_end end));
void sim_call_send(struct sim_call *call, int node, int64_t timeout_us);
/* Inside the process: the answer is complete. */
void sim_call_done(struct sim_call *call);

/* Whom a client takes for the leader. */
struct sim_leader_guess {
    int node;
    int32_t epoch;
    bool fixed; /* it never asks another */
};
/* Learns from how a call ended; `redirected`: the answer said that it does not lead. */
void sim_leader_guess_learn(struct sim_leader_guess *guess, const struct sim_call *call,
                            enum sim_call_end end, bool redirected);
bool sim_status_redirects(enum status status);

#endif
