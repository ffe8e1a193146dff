/* consumer_group_state.h: the inside of a consumer group, for its files only.
 *
 * consumer_group.c: life, members, questions; consumer_group_join.c: joining, and how a generation
 * comes about; consumer_group_sync.c: assignments, heartbeats, leaving, commits;
 * consumer_group_members.c: members, their protocols and the vote. */
#ifndef MOONMQ_BROKER_CONSUMER_GROUP_STATE_H
#define MOONMQ_BROKER_CONSUMER_GROUP_STATE_H

#include <uthash.h>

#include "broker/consumer_group.h"

struct consumer_member {
    struct slice id, instance_id; /* own memory; instance_id.data NULL: dynamic */
    struct slice client_id, client_host;
    int32_t session_timeout_ms, rebalance_timeout_ms;
    struct consumer_protocol *protocols;
    uint32_t protocol_count;
    struct slice assignment;
    struct group_waiter *joining, *syncing; /* NULL: nobody waits for the answer (any more) */
    bool awaiting_join;                     /* has joined for the generation to come */
    bool awaiting_sync;                     /* waits for its assignment */
    bool synced;   /* asked for its assignment in this generation, or need not */
    bool fresh;    /* never had an answer: does not know its id, unless it is named */
    bool named;    /* came with the id it had been given */
    bool replaced; /* static, has a new id; its join is answered when that is stored */
    bool unheard;  /* of the record, and has not spoken to this leader yet */
    bool skips_assignment;
    bool at_once;
    struct slice former_id; /* valid while replaced */
    int64_t due_us;         /* its session ends */
    UT_hash_handle hh, hh_instance;
};

/* Was given an id and is expected to come with it. */
struct pending_member {
    struct slice id;
    int64_t due_us;
    UT_hash_handle hh;
};

struct protocol_support {
    struct slice name;
    uint32_t count; /* of members that support it; > 0 */
};

struct consumer_group {
    const struct consumer_group_limits *limits;
    struct slice id;
    enum consumer_group_state state;
    int64_t state_timestamp_ms;                  /* wall clock; -1: not known */
    int32_t generation;                          /* 0: none yet */
    struct slice protocol_type;                  /* data NULL: none yet; kept while empty */
    struct slice protocol;                       /* data NULL: none */
    struct consumer_member *members, *instances; /* uthash walks in the order of joining */
    uint32_t member_count, awaiting_join_count;
    struct consumer_member *leader; /* NULL: none */
    struct pending_member *pending; /* the oldest first */
    struct protocol_support *supports;
    uint32_t support_count, support_capacity;
    bool initial;           /* PREPARING out of EMPTY: only time completes it */
    bool newcomers;         /* initial: somebody joined since the delay began */
    bool assigned;          /* COMPLETING: the leader's assignment is being stored */
    int64_t initial_end_us; /* initial: no longer than this */
    int64_t rebalance_due_us, sync_due_us;
    int64_t due_us; /* nothing is due before; consumer_group_due_us() */
    uint64_t store_id;
    bool storing; /* consumer_group_stored() with store_id is awaited */
    size_t bytes;
};

/* consumer_group_members.c */
struct consumer_member *member_find(const struct consumer_group *group, struct slice id);
struct consumer_member *member_find_instance(const struct consumer_group *group,
                                             struct slice instance_id);
struct pending_member *pending_find(const struct consumer_group *group, struct slice id);
void pending_add(struct consumer_group *group, struct slice id, int64_t due_us);
void pending_drop(struct consumer_group *group, struct pending_member *pending);
/* What the join would take of the group's bytes. */
size_t member_bytes(const struct consumer_join *join);
struct consumer_member *member_add(struct consumer_group *group, const struct consumer_join *join,
                                   struct slice id);
/* Takes in protocols and time-outs of a join. */
void member_update(struct consumer_group *group, struct consumer_member *member,
                   const struct consumer_join *join);
void member_set_id(struct consumer_group *group, struct consumer_member *member, struct slice id);
void member_set_assignment(struct consumer_group *group, struct consumer_member *member,
                           struct slice assignment);
/* Nobody may wait for it. */
void member_drop(struct consumer_group *group, struct consumer_member *member);
bool member_has_protocols(const struct consumer_member *member, const struct consumer_join *join);
struct slice member_metadata(const struct consumer_member *member, struct slice protocol);
/* Is there a protocol that all members but `except` and the join support? */
bool protocols_fit(const struct consumer_group *group, const struct consumer_member *except,
                   const struct consumer_join *join);
/* The name that most members prefer among those all support. */
struct slice protocols_vote(const struct consumer_group *group);
struct slice group_copy(struct consumer_group *group, struct slice slice);
void group_release(struct consumer_group *group, struct slice *slice);
bool group_slices_equal(struct slice a, struct slice b);

/* consumer_group.c */
void group_due_by(struct consumer_group *group, int64_t due_us);
void group_set_state(struct consumer_group *group, enum consumer_group_state state,
                     struct group_clock clock);
void group_want_stored(struct consumer_group *group, struct group_actions *actions);
void session_begin(struct consumer_group *group, struct consumer_member *member,
                   struct group_clock clock);
int64_t group_rebalance_timeout_us(const struct consumer_group *group);
/* OK answers tell the group as it is when the event is over. */
void answer(struct group_actions *actions, struct group_waiter *waiter, enum status status,
            const struct consumer_member *member);
void answer_join(struct consumer_group *group, struct consumer_member *member, enum status status,
                 struct group_actions *actions);
void answer_sync(struct consumer_member *member, enum status status, struct group_actions *actions);
/* The member that speaks, and so is heard of: OK, UNKNOWN_MEMBER or FENCED_INSTANCE. */
enum status group_identify(const struct consumer_group *group, struct slice member_id,
                           struct slice instance_id, struct consumer_member **out);

/* consumer_group_join.c */
void rebalance_prepare(struct consumer_group *group, struct group_clock clock,
                       struct group_actions *actions);
/* Members, pending ones or joins came or went: on to the next state if that was the last one. */
void rebalance_try_complete(struct consumer_group *group, struct group_clock clock,
                            struct group_actions *actions);
/* What is due of the rebalance itself; one thing a call. */
void rebalance_tick(struct consumer_group *group, struct group_clock clock,
                    struct group_actions *actions);
/* It goes; who waits for it gets UNKNOWN_MEMBER. group_members_left() follows, once for all. */
void group_drop_member(struct consumer_group *group, struct consumer_member *member,
                       struct group_actions *actions);
/* A rebalance begins, or goes on without them. */
void group_members_left(struct consumer_group *group, struct group_clock clock,
                        struct group_actions *actions);

#endif
