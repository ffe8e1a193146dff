/* group_session.h: members of consumer groups whose partitions the broker divides
 * (native-protocol.md 4.8).
 *
 * A session is one member, on behalf of one connection. It is a member of the coordinator's group
 * like any other (group_coordinator.h), of a protocol that no Kafka consumer speaks, so that the
 * two do not meet in one group. What a Kafka consumer does itself is done for it here: it joins
 * again whenever the group begins anew, asks for its assignment, and divides the partitions when
 * the group makes it the leader. So a join is answered as soon as the assignment is on record, and
 * its client learns of later ones when it wants.
 *
 * States: OUT -> JOINING -> SYNCING -> SETTLED -> (the group begins anew) JOINING …; any -> OUT.
 * Before it joins anew a SETTLED one may be YIELDING for a while: its client still holds what it
 * was given, and its commits still count; it is given nothing more.
 * A member that comes back with its id and its topics while its session still runs takes its place
 * again without the group beginning anew: after a failover, too. Thread: event loop. */
#ifndef MOONMQ_BROKER_GROUP_SESSION_H
#define MOONMQ_BROKER_GROUP_SESSION_H

#include "broker/consumer_assignment.h"
#include "broker/group_coordinator.h"

/* How long it may be silent. */
#define GROUP_SESSION_TIMEOUT_MS 30000
/* How long a group that begins anew waits for members that have no connection (any more). */
#define GROUP_SESSION_REBALANCE_MS 5000
/* How long a group that begins anew waits for what a client holds. */
#define GROUP_SESSION_YIELD_US   2000000
#define GROUP_SESSION_TOPICS_MAX 256
/* Groups with sessions; beyond: STATUS_LIMIT. */
#define GROUP_SESSION_GROUPS_MAX 1024

struct group_session;

struct group_session_handlers {
    /* It has its partitions, or has them no more (group_session_is_settled() and _is_member() tell
     * which). From the loop, never nested. */
    void (*changed)(void *context);
    void *context;
    /* The group begins anew: does its client hold records that it has not committed? NULL: never.
     */
    bool (*holds)(void *context);
};

/* `group` is copied. */
struct group_session *group_session_new(struct broker *broker, struct slice group,
                                        const struct group_session_handlers *handlers);
/* Leaves the group. NULL is allowed. */
void group_session_free(struct group_session *session);

/* Joins, or joins again with other topics; `done` once, never inside the call, unless it leaves, is
 * freed, or joins again before.
 *
 * member_id  empty: the one it had, or a new one. Another session that has it loses it.
 * topics     1 .. GROUP_SESSION_TOPICS_MAX, copied.
 *
 * GROUP_PROTOCOL (a group of other members), LIMIT, GROUP_FULL, NOT_LEADER, NOT_READY, … */
typedef void (*group_session_fn)(void *context, enum status status);
void group_session_join(struct group_session *session, struct slice member_id,
                        const struct slice *topics, uint32_t topic_count, group_session_fn done,
                        void *context);
/* Its client was heard. UNKNOWN_MEMBER: it was silent too long, or somebody took its id. */
enum status group_session_heartbeat(struct group_session *session);
/* UNKNOWN_MEMBER: it is none. */
enum status group_session_leave(struct group_session *session);

/* The client holds nothing any more: a session that is yielding joins, in its next turn. */
void group_session_yield(struct group_session *session);

bool group_session_is_member(const struct group_session *session);
/* Its assignment is in force. */
bool group_session_is_settled(const struct group_session *session);
bool group_session_is_yielding(const struct group_session *session);
struct slice group_session_group(const struct group_session *session);
/* Empty: it never was a member. */
struct slice group_session_member_id(const struct group_session *session);
/* While settled; -1 otherwise. */
int32_t group_session_generation(const struct group_session *session);
/* For commits: who asks. While settled or yielding. */
struct consumer_identity group_session_identity(const struct group_session *session);
/* While settled or yielding: the partitions, topics ascending; else empty. Borrowed until the next
 * event. */
struct slice group_session_assignment(const struct group_session *session);
bool group_session_owns(const struct group_session *session, struct slice topic, int32_t partition);

#endif
