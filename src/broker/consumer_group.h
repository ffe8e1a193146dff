/* consumer_group.h: one consumer group whose members share topics among themselves (Kafka's classic
 * protocol), as a pure state machine.
 *
 * Members join; when all are there the group has a new generation, one of them (the leader) is told
 * all the others and sends back what each is assigned; what it sent is stored, then given out.
 * States: EMPTY -> PREPARING (collects joins) -> COMPLETING (waits for the leader's assignment, and
 * until it is stored) -> STABLE; any change of membership leads back to PREPARING; no members:
 * EMPTY. kafka-listener.md 7.1-7.4.
 *
 * Events in, answers out: who joins or syncs waits (struct group_waiter) and is answered exactly
 * once, by that event or a later one. What an event wants stored is written by the caller, who
 * comes back with consumer_group_stored(). Time comes in with each event; consumer_group_tick() is
 * due at consumer_group_due_us(). No loop, no log, no clock, no random.
 *
 * Bounds: members, members that were given an id and have not come with it, bytes; all refused with
 * GROUP_FULL, but of the second the oldest is forgotten. */
#ifndef MOONMQ_BROKER_CONSUMER_GROUP_H
#define MOONMQ_BROKER_CONSUMER_GROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/status.h"
#include "broker/consumer_group_records.h"

#define CONSUMER_GROUP_NEVER_US       INT64_MAX
#define CONSUMER_GROUP_PROTOCOLS_MAX  64    /* of one member: GROUP_PROTOCOL */
#define CONSUMER_GROUP_TEXT_BYTES_MAX 32767 /* ids and names: INVALID */
#define CONSUMER_GROUP_MEMBERS_MAX    10000 /* whatever the settings say */
#define CONSUMER_GROUP_BYTES_MAX      8388608
#define CONSUMER_GROUP_NEW_MEMBER_US  300000000 /* a newcomer without an answer is dropped */
#define CONSUMER_GROUP_TIMEOUT_MS_MAX 86400000  /* longer rebalance time-outs are cut to it */

/* Type of the protocol of Kafka's consumers, and of members whose partitions the broker divides;
 * and the name of the one the latter have (group_session.h). */
#define CONSUMER_PROTOCOL_TYPE   "consumer"
#define CONSUMER_PROTOCOL_NATIVE "moonmq-range"

struct consumer_group;
struct consumer_member;

struct consumer_group_limits {
    int32_t session_timeout_ms_min, session_timeout_ms_max;
    int64_t initial_delay_us; /* the first members of an empty group wait for others */
    uint32_t members_max;     /* 1 .. CONSUMER_GROUP_MEMBERS_MAX */
};
void consumer_group_limits_default(struct consumer_group_limits *limits);

enum consumer_group_state {
    CONSUMER_GROUP_EMPTY,
    CONSUMER_GROUP_PREPARING,
    CONSUMER_GROUP_COMPLETING,
    CONSUMER_GROUP_STABLE,
};

struct group_clock {
    int64_t now_us; /* monotonic */
    int64_t wall_ms;
};

/* Embedded in a request that may wait; zeroed to begin. */
struct group_waiter {
    struct consumer_member *member; /* the group's while it waits */
};

struct consumer_protocol {
    struct slice name, metadata;
};
/* Borrowed for the call. */
struct consumer_join {
    struct slice member_id;   /* empty: none yet */
    struct slice instance_id; /* data NULL: not static */
    struct slice client_id, client_host;
    struct slice protocol_type;
    const struct consumer_protocol *protocols; /* the preferred one first */
    uint32_t protocol_count;
    int32_t session_timeout_ms, rebalance_timeout_ms;
    bool id_required;      /* a new dynamic member is given its id first, and joins with it */
    bool skips_assignment; /* understands that it need not assign */
    bool at_once;          /* the first of an empty group: no delay for others */
    struct slice new_id;   /* taken if it needs one; unique */
};
/* Of its texts and time-outs: OK, INVALID, SESSION_TIMEOUT_RANGE. */
enum status consumer_join_check(const struct consumer_join *join,
                                const struct consumer_group_limits *limits);
struct consumer_assignment {
    struct slice member_id, assignment;
};
struct consumer_sync {
    struct slice member_id, instance_id;
    int32_t generation;
    struct slice protocol_type, protocol; /* data NULL: not said */
    const struct consumer_assignment *assignments;
    uint32_t assignment_count;
};
/* Who heartbeats, leaves, commits. */
struct consumer_identity {
    struct slice member_id, instance_id;
    int32_t generation;
};

/* One waiter's answer. With STATUS_OK it is about `member` in the group as it is now; slices are
 * borrowed until the next event. */
struct group_answer {
    struct group_waiter *waiter;
    enum status status;
    const struct consumer_member *member; /* OK only */
    struct slice leader;                  /* join, OK: the leader's id, as this member is told it */
    bool lists_members;                   /* join: it is told all members */
    bool skip_assignment;                 /* join: it leads, and need not assign */
};
/* What an event leads to, in order; the caller acts on it before the next event. */
struct group_actions {
    struct group_answer *answers;
    uint32_t answer_count, answer_capacity;
    bool store; /* write the group as consumer_group_record() tells it, then consumer_group_stored()
                   with consumer_group_store_id() */
};
void group_actions_init(struct group_actions *actions);
void group_actions_deinit(struct group_actions *actions);

/* Empty. `limits` is borrowed for as long as the group lives. */
struct consumer_group *consumer_group_new(struct slice id,
                                          const struct consumer_group_limits *limits);
/* As a stored record has it, sessions beginning now. One with members and without a leader was a
 * group of the new protocol before: it begins anew. */
struct consumer_group *consumer_group_restore(struct slice id,
                                              const struct consumer_group_limits *limits,
                                              struct group_record *record,
                                              struct group_clock clock);
/* Who waits is not answered. */
void consumer_group_free(struct consumer_group *group);

/* ---- events ---- */

void consumer_group_join(struct consumer_group *group, const struct consumer_join *join,
                         struct group_waiter *waiter, struct group_clock clock,
                         struct group_actions *actions);
void consumer_group_sync(struct consumer_group *group, const struct consumer_sync *sync,
                         struct group_waiter *waiter, struct group_clock clock,
                         struct group_actions *actions);
/* STATUS_OK, or UNKNOWN_MEMBER, FENCED_INSTANCE, ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS. */
enum status consumer_group_heartbeat(struct consumer_group *group,
                                     const struct consumer_identity *who, struct group_clock clock);
/* By member id, or by instance id with an empty member id. */
enum status consumer_group_leave(struct consumer_group *group, struct slice member_id,
                                 struct slice instance_id, struct group_clock clock,
                                 struct group_actions *actions);
/* May offsets be committed by `who`? Generation below 0 and no member id: a consumer that assigns
 * itself, or a transaction that does not tell its member. Counts as a heartbeat. */
enum status consumer_group_check_commit(struct consumer_group *group,
                                        const struct consumer_identity *who, bool transactional,
                                        struct group_clock clock);
void consumer_group_tick(struct consumer_group *group, struct group_clock clock,
                         struct group_actions *actions);
/* What was wanted stored is (or is not). An id that is not the last one's is ignored. */
void consumer_group_stored(struct consumer_group *group, uint64_t store_id, enum status status,
                           struct group_clock clock, struct group_actions *actions);
/* Time went by without anybody being heard: every session begins anew. */
void consumer_group_restart_sessions(struct consumer_group *group, struct group_clock clock);
/* Answers everybody who waits. */
void consumer_group_refuse_all(struct consumer_group *group, enum status status,
                               struct group_actions *actions);
/* The one who waits is gone: will not be answered. Its member stays. */
void consumer_group_cancel(struct group_waiter *waiter);

/* ---- questions ---- */

struct slice consumer_group_id(const struct consumer_group *group);
enum consumer_group_state consumer_group_state(const struct consumer_group *group);
int32_t consumer_group_generation(const struct consumer_group *group);
uint32_t consumer_group_member_count(const struct consumer_group *group);
/* "" while it has none. */
struct slice consumer_group_protocol_type(const struct consumer_group *group);
/* Chosen for this generation; data NULL: none. */
struct slice consumer_group_protocol(const struct consumer_group *group);
size_t consumer_group_bytes(const struct consumer_group *group);
/* CONSUMER_GROUP_NEVER_US: nothing is due. May be too early, never too late. */
int64_t consumer_group_due_us(const struct consumer_group *group);
uint64_t consumer_group_store_id(const struct consumer_group *group);
/* Is consumer_group_stored() awaited? */
bool consumer_group_is_storing(const struct consumer_group *group);
/* No members and none expected: it may be forgotten once its record says so. */
bool consumer_group_is_idle(const struct consumer_group *group);
/* Does a member subscribe to the topic? Only the "consumer" protocol type can be read. */
bool consumer_group_reads_topic(const struct consumer_group *group, struct slice topic);

/* The members in the order in which they joined; NULL begins, NULL ends. */
const struct consumer_member *consumer_group_next(const struct consumer_group *group,
                                                  const struct consumer_member *after);
/* Borrowed until the next event. */
struct consumer_member_view {
    struct slice id, instance_id, client_id, client_host;
    struct slice metadata; /* of the chosen protocol */
    struct slice assignment;
    const struct consumer_protocol *protocols; /* the preferred one first */
    uint32_t protocol_count;
    int32_t session_timeout_ms, rebalance_timeout_ms;
    bool nameless; /* its client was not told its id, and can't come back with it */
};
struct consumer_member_view consumer_member_view(const struct consumer_group *group,
                                                 const struct consumer_member *member);
/* The record that tells the group as it is: head and members, appended to `out`. */
void consumer_group_record(const struct consumer_group *group, struct buffer *out);

#endif
