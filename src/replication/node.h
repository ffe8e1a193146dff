/* node.h: one replica of the group: identity, Raft, roles, and the shipping of the log.
 *
 * Stands between the broker (floor 3: it drives roles, high watermarks, appends) and the other
 * replicas (io/rpc.h). The same object runs in the broker and in the simulator: everything outside
 * comes in through interfaces.
 *
 * Roles: STARTING -> FOLLOWER <-> CANDIDATE (in raft) -> LEADER_PENDING (won; claim not committed,
 * tail not synced, coordinators not loaded) -> LEADER (serves) -> FOLLOWER; CARETAKER leads Raft
 * only. A group of one (no Replication block) is LEADER from its start on, with epoch 1 + restarts.
 * replication.md, replication-wire.md.  Thread: loop.   */
#ifndef MOONMQ_REPLICATION_NODE_H
#define MOONMQ_REPLICATION_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/broker.h"
#include "io/executor.h"
#include "io/file_system.h"
#include "io/loop.h"
#include "io/rpc.h"
#include "replication/config.h"

struct node;

struct node_options {
    struct loop *loop;
    struct executor *executor;
    struct file_system *fs;
    struct rpc_transport *transport; /* NULL for a group of one */
    const char *data_dir;
    uint64_t random_seed;
    struct replication_config config;
    struct broker *broker; /* not started; outlives the node */
};

/* Installs itself in the broker (broker_set_group). */
struct node *node_new(const struct node_options *options);
/* After node_stop() finished, or at once in the simulator's crash: pending jobs never complete
 * then. */
void node_free(struct node *node);

/* Reads identity and Raft state, starts the broker (recovery), listens on the replication port,
 * joins the group. `done`: STATUS_OK when it follows or stands; an error (config 78-worthy ones are
 * STATUS_INVALID) is final. */
void node_start(struct node *node, broker_done_fn done, void *context);
/* SIGTERM: hands leadership over (gives up after 5 s), flushes, stops the broker. */
void node_stop(struct node *node, broker_done_fn done, void *context);

/* A gap of the loop longer than a heartbeat was noticed: contact is checked before anything queued
 * is served. Also noticed by the node itself from its own timers; a shell that can tell earlier
 * (before it reads sockets) calls this. */
void node_loop_gap(struct node *node, int64_t gap_us);

/* readyz: true, or false with the reason (and which members are missing while founding). */
bool node_ready(struct node *node, char *reason, size_t reason_bytes);

/* A Kafka request that a follower forwarded to this leader (replication-wire.md S8). `kafka/`
 * executes it and answers once. */
struct node_forwarded {
    int16_t api_key, api_version;
    const char *client_id; /* NULL: none */
    const char *principal, *client_host;
    int64_t deadline_us;
    struct slice body; /* borrowed for the call of the handler */
    void *private_state;
};
/* With STATUS_OK `answer` is the response body without its header; else the follower waits for a
 * leader. */
void node_answer_forwarded(struct node_forwarded *forwarded, enum status status,
                           struct slice answer);
typedef void (*node_forwarded_fn)(void *context, struct node_forwarded *forwarded);
void node_set_forward_handler(struct node *node, node_forwarded_fn handler, void *context);

/* For metrics, the simulator's checker and tests. */
struct node_facts {
    int32_t id;
    bool raft_leader, caretaker, leader_serving, electing;
    int64_t raft_term;
    int32_t raft_leader_id;
    int64_t raft_commit_index;
    uint64_t raft_life; /* the core is begun anew when its file fails or its incarnation changes */
    int32_t epoch, leader_id;
    struct uuid group, incarnation;
    uint32_t isr_mask;    /* bit i: members[i] of the view */
    uint32_t waited_mask; /* what acks=all waits for */
    bool change_pending;  /* one of the in-sync set or of an incarnation is not known committed */
    uint64_t elections, leader_changes, isr_shrinks, isr_expands, truncations, fetched_records,
        alarms;
    struct manifest_version manifest, manifest_committed;
    int64_t last_failover_us; /* leader lost (or won) -> serving */
};
void node_facts(const struct node *node, struct node_facts *out);
/* Term of the Raft entry at `index`; -1: not in the log, or in its snapshot already. */
int64_t node_raft_term_of(const struct node *node, int64_t index);
/* Alarms by kind (decisions 25), for moonmq_alarms_total: in a fixed order; false at the end. */
bool node_alarm_count(const struct node *node, uint32_t index, const char **kind, uint64_t *count);

/* Per follower, on the leader. */
struct node_follower_facts {
    int32_t id;
    bool in_isr, learner, connected;
    int64_t lag_records, lag_bytes, last_contact_us_ago, durable_lag_us;
    const char *refusal; /* why it answers nothing else; NULL: it does not refuse */
};
/* Static mode: per configured follower; false at the end. */
struct static_follower_facts;
bool node_static_follower(const struct node *node, uint32_t index,
                          struct static_follower_facts *out);
uint32_t node_followers(const struct node *node, struct node_follower_facts out[GROUP_MEMBERS_MAX]);

#endif
