/* sim_network.h: the network between the virtual machines, behind io/rpc.h.
 *
 * A connection is TCP as replicas see it: segments arrive whole and in order, or late (a lost one
 * is sent again after a while, also across a cut that heals), or never (the connection went
 * silent and only time-outs end it). A process that is killed refuses at once; a machine without
 * power answers nothing; a stopped process still accepts, because its kernel does. Requests are
 * kept and delivered again on connections of their own, at once or much later, whose answers
 * nobody reads. Tokens, routes and size caps are checked as rpc_http.c does. */
#ifndef MOONMQ_SIM_SIM_NETWORK_H
#define MOONMQ_SIM_SIM_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#include "io/rpc.h"

struct sim_world;
struct sim_machine;
struct sim_network;
struct sim_endpoint;

#define SIM_NETWORK_ENDPOINTS_MAX 16

/* One direction between two machines. */
struct sim_path {
    bool cut;
    bool clogged; /* new connections are refused, old ones go on */
    bool deaf;    /* new connections get no answer, old ones go on */
    int64_t delay_us_min, delay_us_max;
    uint32_t loss_ppm;        /* a segment comes a retransmission time later */
    uint32_t silence_ppm;     /* its connection says nothing any more, both ways */
    int64_t bytes_per_second; /* 0: no limit */
    int64_t free_at_us;       /* when the last segment has left */
};

struct sim_network_faults {
    uint32_t duplicate_ppm; /* a delivered request comes again soon */
    uint32_t replay_ppm;    /* … or up to replay_us_max later */
    int64_t replay_us_max;
};

struct sim_network_counts {
    uint64_t requests, answers, connects, refused, duplicates, retransmissions, resets;
};

/* Called for each answer as it leaves its server: for checks on what was promised to whom. */
struct sim_answer_seen {
    int server_id, client_id; /* client 0: a replay, or the rig itself */
    const char *path;
    int status;
    struct slice request, answer;
};
typedef void (*sim_answer_seen_fn)(void *context, const struct sim_answer_seen *seen);

struct sim_network *sim_network_new(struct sim_world *world);
void sim_network_free(struct sim_network *network);
struct sim_network_faults *sim_network_faults(struct sim_network *network);
const struct sim_network_counts *sim_network_counts(const struct sim_network *network);
/* The path between the machines with these ids, as joined; 0 is the rig's own endpoint. */
struct sim_path *sim_network_path(struct sim_network *network, int from_id, int to_id);
void sim_network_watch(struct sim_network *network, sim_answer_seen_fn seen, void *context);
/* Breaks every open connection between two machines, at once and on both ends. */
void sim_network_reset(struct sim_network *network, int a_id, int b_id);

/* `machine` NULL: an endpoint of the rig itself, id 0, whose handlers run outside any process. */
struct sim_endpoint *sim_network_join(struct sim_network *network, struct sim_machine *machine,
                                      const char *address);
void sim_network_leave(struct sim_endpoint *endpoint);
struct rpc_transport *sim_endpoint_transport(struct sim_endpoint *endpoint);
/* Tokens: what it sends, and what it accepts (NULL: none; accepts anything if both are). Borrowed.
 */
void sim_endpoint_set_tokens(struct sim_endpoint *endpoint, const char *sends, const char *accepts,
                             const char *accepts_too);
/* What the address of a peer means to this machine: a peer that moved, or a stranger there. */
void sim_endpoint_redirect(struct sim_endpoint *endpoint, const char *address, int to_id);

/* For the machine: its process is gone; peers are told, or (power cut) hear nothing. */
void sim_endpoint_process_died(struct sim_endpoint *endpoint, bool peers_are_told);

#endif
