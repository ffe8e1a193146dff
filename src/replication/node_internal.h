/* node_internal.h: the replica's state, shared by node*.c only. */
#ifndef MOONMQ_REPLICATION_NODE_INTERNAL_H
#define MOONMQ_REPLICATION_NODE_INTERNAL_H

#include "base/log.h"
#include "raft/raft.h"
#include "raft/raft_json.h"
#include "replication/alarms.h"
#include "replication/follower.h"
#include "replication/identity.h"
#include "replication/leader.h"
#include "replication/node.h"
#include "replication/static_follower.h"
#include "replication/static_leader.h"
#include "replication/wire_json.h"

#define NODE_TICK_US        20000
#define NODE_STEP_DEPTH_MAX 8
#define RAFT_FILE           "replication-raft.json"

/* decisions 25 */

enum node_role {
    NODE_STARTING,
    NODE_FOLLOWER,
    NODE_PENDING, /* won: claim, tail or coordinators not done */
    NODE_SERVING,
    NODE_CARETAKER,
    NODE_STOPPED
};

/* One of our connections to a peer: hello first, then its calls, one at a time. */
enum node_link_kind { NODE_LINK_CONTROL, NODE_LINK_RAFT };
struct node_call {
    uint64_t call; /* raft's name for it; 0: none */
    uint64_t rid;
    enum raft_message_kind kind;
};
struct peer;
struct node_link {
    struct node *node;
    struct peer *peer;
    enum node_link_kind kind;
    struct rpc_link *link;   /* NULL: not wanted now */
    bool connected, greeted; /* open; hello answered */
    bool busy;
    uint64_t rid; /* of the call in flight */
    bool hello_in_flight, hello_wanted;
    struct node_call in_flight;
    struct node_call waiting; /* control only: the next vote */
    struct buffer waiting_body;
    struct timer *retry_timer;
    uint32_t quick_retries; /* dials at once since hello was last answered */
};
struct peer {
    struct node *node;
    uint32_t index; /* among the members */
    const struct replication_peer *config;
    struct node_link control, raft;
    bool refused;                   /* our last connect to it was */
    struct uuid incarnation, group; /* last heard; none: never */
    bool heard;
    bool settings_warned, addresses_differ;
    bool holds_records;   /* said its last hello, before the group is founded */
    int64_t unreached_us; /* since when our control connection has not been greeted */
    bool unreached_warned;
    char refusal[64]; /* why its last answer refused us; "": it did not */
    struct log_limiter refused_log, unauthorized_log;
    uint64_t append_connection; /* on which it sends appends; 0: none */
    int64_t incarnation_proposed_us;
    /* Its wall clock less our monotonic one when it last answered, and when that was. */
    int64_t wall_base_ms, wall_seen_us; /* seen 0: never */
};

struct node_request { /* of a peer, waiting for the core's answer */
    struct node_request *prev, *next;
    uint64_t token;
    struct rpc_request *request;
    struct raft_id id; /* of the request */
    enum raft_message_kind kind;
    bool holds_isr; /* an append with an ISR entry */
};

struct node_confirm {
    struct node_confirm *prev, *next;
    uint64_t round; /* 0: not begun */
    group_done_fn done;
    void *context;
};

struct node_forward; /* node_forward.c */
struct node_hashing; /* node_hash.c */

struct node_transfer {
    bool active;
    bool pausing; /* produces wait: the target is close behind */
    bool handed;  /* raft was told; waits for the claim */
    int32_t target;
    int64_t deadline_us, pause_until_us;
    group_done_fn done;
    void *context;
};

/* What start-up reads and decides on a worker. */
struct node_start_job;
/* Writes of the identity file, one at a time. */
struct node_file_job;

struct node {
    struct node_options options;
    struct random random;
    int64_t began_us;
    struct group_view view;
    int32_t member_ids[GROUP_MEMBERS_MAX];
    uint32_t member_count, self; /* self: index */
    struct raft_ids raft_members;
    char members_text[RAFT_MEMBERS_HASH_BYTES];
    uint8_t members_hash[8];
    struct peer peers[GROUP_MEMBERS_MAX]; /* by member index; [self] unused */
    struct identity identity;
    enum node_role role;
    struct raft *raft;  /* NULL: starting, or between two incarnations */
    uint32_t raft_life; /* grows with each core: writes of an earlier one are void */
    struct raft_actions *actions[NODE_STEP_DEPTH_MAX];
    uint32_t step_depth;
    struct timer *raft_timer, *tick_timer, *confirm_timer;
    uint64_t rid, token;
    struct node_request *requests;
    struct node_confirm *confirms;
    struct leader *leader;
    struct follow *follow;
    struct static_leader *pushing;     /* static mode, both: NULL unless the Role says so */
    struct static_follower *receiving; /* node_static.c */
    int32_t follow_leader, follow_epoch, last_followed_leader;
    uint64_t leadership; /* grows with each one: late callbacks of an old one are void */
    struct node_promotion *promotions; /* node_roles.c */
    struct node_ends *ends;            /* node_ends.c: under way */
    bool sure;                         /* see node_is_unsure() */
    uint32_t ends_refused;             /* hand-overs to who holds more that came to nothing */
    bool tail_synced, promoted;
    bool quiet;         /* heartbeats held: the own disk stalls */
    uint32_t verifying; /* loop gaps whose confirmation is awaited */
    bool paused;        /* produce is paused at the broker */
    bool damaged;       /* a copy is: see node_update_condition() */
    bool unfit;         /* metadata is unreadable */
    int64_t damage_checked_us, damage_handed_us;
    int64_t resume_at_us;     /* alone: when copies that lacked space are tried again */
    uint32_t rewinds;         /* cuts and resets under way, of ended followings too */
    enum raft_data told_data; /* of the last CONDITION; 0: none yet */
    bool told_holds;
    bool broker_ready;
    int64_t last_tick_us, last_reset_us;
    int64_t leader_lost_us;
    int64_t won_us; /* the last leadership of this replica: when it was elected */
    /* Files. */
    bool persist_wanted;
    struct node_file_job *persist_job, *identity_job;
    bool identity_dirty, identity_for_bound;
    int64_t identity_retry_us; /* it could not be written: not again before; 0 */
    bool shedding;             /* vote and Raft log go; the core begins anew when they are gone */
    struct timer *amnesia_timer;
    struct timer *reopen_timer; /* the Raft file could not be written: read again after a while */
    int64_t reopen_us;          /* how long a while */
    int64_t dropped_term;       /* of the core before this one */
    struct node_start_job *start_job;
    bool begin_when_written; /* joins the group when the identity file is */
    struct node_transfer transfer;
    struct node_forward *forwards;
    struct node_hashing *hashings; /* node_hash.c */
    node_forwarded_fn forwarded;
    void *forwarded_context;
    broker_done_fn started, stopped;
    void *started_context, *stopped_context;
    struct timer *stop_timer;
    int64_t stop_deadline_us;
    bool stopping, stop_begun; /* the latter: the broker stops */
    enum status stop_status;
    struct error stop_error;
    /* The last ISR change, and counters. */
    enum raft_isr_why last_isr_why;
    int32_t last_isr_replica;
    int64_t last_isr_us; /* -1: none */
    uint64_t elections, leader_changes, isr_shrinks, isr_expands, truncations, fetched_records;
    int64_t last_failover_us;
    struct alarms alarms;
    int64_t replayed_index; /* Raft's log reached to here when the core began: no news up to it */
};

static inline int64_t node_now(const struct node *node)
{
    return loop_now_us(node->options.loop);
}
static inline bool node_is_solo(const struct node *node)
{
    return !node->options.config.enabled;
}
/* May its DataDir lack what was committed, though nothing in it says so? Recovery cut a tail that
 * may have been more than a tear, or it is an old copy put back, or its disk lied. Until a leader
 * that knew its positions has said that it is in sync, or it led itself (F27, F28, F39). */
static inline bool node_is_unsure(const struct node *node)
{
    return node->identity.was_cut || !node->sure;
}
int node_member_index(const struct node *node, int32_t id); /* -1: no member */
/* Bit i: member of index i is in the set. */
uint32_t node_mask_of(const struct node *node, const struct raft_ids *ids);

/* node.c */
void node_raise_alarm(struct node *node, enum node_alarm alarm, const char *text);
void node_alarm_by_name(void *context, const char *kind, const char *text);
void node_finish_start(struct node *node, enum status status, const struct error *error);
void node_tick_start(struct node *node);
/* node_start.c */
void node_start_files(struct node *node);
void node_start_free(struct node *node);
void node_join(struct node *node);
/* node_verify.c: worker: a DataDir copied from another replica, before anything reads it. */
STATUS_MUST_CHECK
enum status node_verify_copy(const struct node *node, struct error *error);
/* node_files.c */
void node_persist_raft(struct node *node);
void node_persist_identity(struct node *node, bool for_bound);
/* Removes the Raft file and writes the identity as it is now, after what is under way; then
 * node_shed_done(). The core is gone already. */
void node_shed(struct node *node);
/* Reads Raft's state back from the disk and writes it again, as a restart would find it; then
 * node_reopened(). The core is gone already. */
void node_reopen(struct node *node);
/* Each tick: an identity file that could not be written is written anew. */
void node_files_tick(struct node *node);
bool node_files_busy(const struct node *node);
void node_files_free(struct node *node);
/* node_raft.c: events into the core, its actions carried out. */
enum status node_step(struct node *node, struct raft_event *event, int64_t *index, uint64_t *round);
void node_raft_begin(struct node *node, const struct raft_state *state);
void node_update_condition(struct node *node);
void node_look_for_damage(struct node *node);
void node_answer_request(struct node *node, uint64_t token, const struct raft_message *message,
                         enum raft_refusal refusal);
/* node_links.c */
void node_links_begin(struct node *node);
void node_links_free(struct node *node);
void node_raft_links_open(struct node *node);
void node_raft_links_close(struct node *node);
bool node_reaches_anyone(const struct node *node);
bool node_call(struct node *node, int32_t peer_id, enum raft_channel channel, uint64_t call,
               const struct raft_message *message);
void node_fill_id(struct node *node, struct raft_id *id, int32_t to,
                  const struct uuid *to_incarnation);
/* What the others' clocks, as heard of late, say of this one's. */
enum clock_witness node_clock(const struct node *node);
void node_fill_hello(struct node *node, struct wire_hello *hello, int32_t to,
                     const struct uuid *to_incarnation);
void node_learn_hello(struct node *node, struct peer *peer, const struct wire_hello *hello);
/* A peer's own, unasked. */
void node_heard_hello(struct node *node, struct peer *peer, const struct wire_hello *hello);
/* node_routes.c */
void replication_answer_error(struct rpc_request *request, int status, const char *error,
                              const char *detail, int32_t leader_id, int32_t epoch, int64_t rid);
enum status node_listen(struct node *node, struct error *error);
void node_requests_drop(struct node *node);
/* node_check.c: S2 */
struct node_refusal {
    int status; /* 0: passes */
    const char *error;
    char detail[200];
};
enum node_id_use { NODE_ID_HELLO, NODE_ID_VOTE, NODE_ID_APPEND, NODE_ID_OTHER };
void node_check_id(struct node *node, const struct raft_id *id, enum node_id_use use,
                   struct node_refusal *refusal);
/* Warns of clients' addresses that differ; refuses nothing. */
void node_compare_addresses(struct node *node, struct peer *peer, const struct wire_hello *hello);
/* Unfounded, with records in more than one replica: `text` says which, and the mend. */
bool node_founding_conflict(const struct node *node, char *text, size_t text_bytes);
/* node_roles.c */
void node_became_leader(struct node *node, bool caretaker);
void node_claim_committed(struct node *node, int32_t epoch);
void node_stepped_down(struct node *node, enum raft_stepped_down why);
void node_group_changed(struct node *node);
/* A connection to or from a peer came or went: is the leader still there, as clients see it? */
void node_contact_changed(struct node *node, const struct peer *peer);
void node_follow_again(struct node *node);
void node_serve_if_ready(struct node *node);
void node_amnesia(void *context);
void node_shed_done(struct node *node, enum status status);
void node_raft_file_failed(struct node *node);
void node_reopened(struct node *node, enum status status, const struct raft_state *state);
void node_promotions_free(struct node *node);
void node_make_leader(struct node *node, int32_t epoch);
/* The claim is committed, and nobody is known to hold more: on to serving. */
void node_take_over(struct node *node, int32_t epoch);
/* node_ends.c: who is unsure compares ends before it leads (F28). */
bool node_ends_are_due(const struct node *node);
/* The epoch of the last record; -1: none, or none left. Epochs in which nothing was written do not
 * count: not every replica keeps those, and nothing is missing without them. */
int32_t node_ends_epoch(const struct partition_log *log);
void node_ends_begin(struct node *node, int32_t epoch);
bool node_ends_transfer_failed(struct node *node);
void node_ends_free(struct node *node);
/* node_port.c */
void node_install_port(struct node *node);
void node_confirmed(struct node *node, uint64_t round);
void node_confirms_fail(struct node *node);
void node_set_paused(struct node *node);
void node_found_corrupt(void *context, struct partition *partition);
void node_hand_over_damaged(struct node *node);
/* node_transfer.c */
void node_transfer_begin(struct node *node, int32_t target, int64_t timeout_us, group_done_fn done,
                         void *context);
void node_transfer_poll(struct node *node);
void node_transfer_ended(struct node *node, enum status status, const char *text);
/* node_status.c */
/* `state_hash` NULL: without. Borrowed. */
void node_put_status(struct node *node, json_t *state_hash, struct buffer *out);

/* node_hash.c */
/* Answers the request with the status and `state_hash`, later. false: too many are under way, and
 * the request is the caller's. */
bool node_hash_begin(struct node *node, struct rpc_request *request);
void node_hashings_free(struct node *node);
/* node_forward.c */
void node_forward(void *context, struct group_forward *forward);
void node_route_forward(struct node *node, struct rpc_request *request, struct slice body);
void node_forwards_free(struct node *node);
/* node_static.c: alone, but for what is pushed and taken. */
/* The group of one serves: pushes begin, and the port opens; then the start is finished. */
void node_static_begin(struct node *node);
void node_static_tick(struct node *node);
void node_static_stop(struct node *node);
bool node_static_busy(const struct node *node);
void node_static_free(struct node *node);
void node_static_partition_came(struct node *node, struct partition *partition);
void node_static_partition_went(struct node *node, struct partition *partition);
void node_static_durable(struct node *node, struct partition *partition);
void node_static_failed(struct node *node, struct partition *partition);
json_t *node_static_status(const struct node *node);
/* node_solo.c */
void node_solo_begin(struct node *node);
void node_solo_tick(struct node *node);

#endif
