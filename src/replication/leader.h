/* leader.h: what a replica does while it leads: sessions and positions of followers, the high
 * watermark, the in-sync set's rules, and the answers of the manifest, epochs, fetch and progress
 * routes.
 *
 * Made when a claim is won, dropped when leadership ends. The node tells it what the group's Raft
 * view says (leader_set_group) and is asked to propose ISR changes. Members are named by their
 * index in ascending id order. replication.md section 7, replication-wire.md S5–S6.  Thread: loop.
 */
#ifndef MOONMQ_REPLICATION_LEADER_H
#define MOONMQ_REPLICATION_LEADER_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/broker.h"
#include "io/loop.h"
#include "io/rpc.h"
#include "replication/config.h"
#include "replication/wire_fetch.h"

struct leader;

enum isr_why {
    ISR_WHY_LAG,
    ISR_WHY_GONE,
    ISR_WHY_REFUSED,
    ISR_WHY_STALL,
    ISR_WHY_FAILED,
    ISR_WHY_CAUGHT_UP,
    ISR_WHY_COUNT
};
const char *isr_why_text(enum isr_why why);

struct leader_handlers {
    /* An ISR change is due: true if it was proposed. One at a time; the node refuses while one is
     * pending. */
    bool (*propose)(void *context, uint32_t member, bool into, enum isr_why why);
    /* in_sync_now, follower facts or the waited-on set's effect changed. */
    void (*in_sync_changed)(void *context);
    /* Manifest versions up to this are committed. */
    void (*manifest_committed)(void *context, struct manifest_version committed);
    /* A follower refused to cut below a high watermark it knew (decisions 23). */
    void (*conflict)(void *context, uint32_t member, struct partition *partition);
    /* The own copy could not be read for a follower: it may be damaged. */
    void (*corrupt)(void *context, struct partition *partition);
    void (*alarm)(void *context, const char *kind, const char *text);
    void *context;
};
struct leader_options {
    struct broker *broker;
    struct loop *loop;
    const struct replication_config *config;
    int32_t epoch;
    const int32_t *member_ids; /* ascending; borrowed, outlives the leader */
    uint32_t member_count, self;
    uint8_t members_hash[8];
    struct uuid group, incarnation; /* own */
    uint64_t random_seed;
    struct leader_handlers handlers;
};
struct leader *leader_new(const struct leader_options *options);
/* Parked fetches are answered 409 not_leader with what `leader_id` says (-1: unknown). */
void leader_free(struct leader *leader, int32_t leader_id, int32_t epoch);

/* The group as Raft says now. Called after each change; re-evaluates every high watermark if the
 * waited-on set changed. */
struct leader_member {
    bool counts;             /* its incarnation is recorded and counts */
    struct uuid incarnation; /* the one that counts (or is heard of) */
};
struct leader_group {
    uint32_t isr_mask;    /* recorded and known committed */
    uint32_t waited_mask; /* union while a change is pending or its outcome unknown */
    bool change_pending;  /* ISR or incarnation entry not known committed */
    struct leader_member members[GROUP_MEMBERS_MAX];
};
void leader_set_group(struct leader *leader, const struct leader_group *group);

/* Partitions exist from leader_new on (it walks the catalog once); later ones by these. */
void leader_partition_added(struct leader *leader, struct partition *partition);
void leader_partition_removed(struct leader *leader, struct partition *partition);
void leader_appended(struct leader *leader, struct partition *partition);
void leader_partition_changed(struct leader *leader, struct partition *partition);
void leader_durable(struct leader *leader, struct partition *partition);
/* The lowest log start among the other replicas that are waited for; INT64_MAX: there are none. */
int64_t leader_followers_start(const struct leader *leader, const struct partition *partition);
/* The lowest offset that a follower in session fetches next; INT64_MAX: there is none. */
int64_t leader_copied_to(const struct leader *leader, const struct partition *partition);
void leader_manifest_changed(struct leader *leader);

/* Requests of followers whose id block or header passed the node's checks except session and epoch.
 */
void leader_fetch(struct leader *leader, uint32_t member, const struct wire_request_header *header,
                  struct reader *entries, struct rpc_request *request, uint64_t connection);
/* The connection is gone: a fetch parked on it is dropped. */
void leader_disconnected(struct leader *leader, uint64_t connection);

/* Facts from the links. */
void leader_heard_raft(struct leader *leader, uint32_t member);
void leader_refused(struct leader *leader, uint32_t member, bool refused);
/* Each tick (about 10 ms .. 50 ms): judges followers, expires parked fetches and sessions. */
void leader_tick(struct leader *leader);
/* Own lateness: judge nobody for a FollowerGoneMs. */
void leader_forgive(struct leader *leader);
/* Serving began: contact is measured from now. */
void leader_serving(struct leader *leader);
void leader_handing_over(struct leader *leader, bool handing_over);

/* Time since enough followers to make a majority with this replica were last heard fetching. */
int64_t leader_fetch_contact_age_us(const struct leader *leader);
uint32_t leader_in_sync_now(const struct leader *leader); /* mask, self included */
bool leader_member_caught_up(const struct leader *leader,
                             uint32_t member); /* durable to every log end */
/* Most caught up ISR member that is in sync now (fewest records behind); -1: none. */
int leader_best_successor(const struct leader *leader);
struct manifest_version leader_committed_manifest(const struct leader *leader);
struct leader_follower_facts {
    bool connected, learner, in_sync;
    int64_t lag_records, lag_bytes, last_contact_us, durable_lag_us;
};
void leader_follower_facts(const struct leader *leader, uint32_t member,
                           struct leader_follower_facts *out);

#endif
