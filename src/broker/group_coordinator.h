/* group_coordinator.h: the consumer groups on the leader: what the protocols ask of them.
 *
 * A group with members lives as a state machine (consumer_group.h) while this replica serves; it is
 * made of its record when the partition of `__consumer_offsets` it belongs to is applied up to the
 * leadership's start, and dropped with the leadership. All sessions begin anew then, and nothing
 * else changes: a failover costs no rebalance. Until then NOT_READY. A group without members is
 * only its record and its offsets.
 *
 * What a generation assigns is given out when its record is replicated, never before.
 * One group id means one thing: native members share these groups and their committed offsets.
 * Bounds: LIVE_GROUPS_MAX, LIVE_GROUPS_BYTES_MAX; over them: GROUP_FULL. Thread: event loop.
 * kafka-listener.md section 7. */
#ifndef MOONMQ_BROKER_GROUP_COORDINATOR_H
#define MOONMQ_BROKER_GROUP_COORDINATOR_H

#include "broker/consumer_group.h"
#include "broker/modern_group.h"
#include "broker/offsets.h"

struct broker;

#define LIVE_GROUPS_MAX       100000
#define LIVE_GROUPS_BYTES_MAX ((size_t)256 << 20)

/* ---- what may wait ---- */

/* Borrowed for the callback, which must not call the coordinator. */
struct group_result {
    enum status status;
    const struct consumer_group *group; /* OK: as it is now */
    const struct group_answer *answer;  /* OK */
    struct slice member_id;             /* join, with OK or MEMBER_ID_REQUIRED */
};
struct group_request {
    struct group_waiter waiter;                                     /* zeroed */
    void (*done)(void *context, const struct group_result *result); /* once, maybe at once */
    void *context;
};
/* What `join` and `sync` hold is borrowed for the call; without a join->new_id the coordinator
 * makes one. Errors: NOT_LEADER, NOT_READY, STORAGE_ERROR, INVALID_GROUP, and those of
 * consumer_group.h; of sync also those of storing. */
void broker_join_group(struct broker *broker, struct slice group, struct consumer_join *join,
                       struct group_request *request);
void broker_sync_group(struct broker *broker, struct slice group, const struct consumer_sync *sync,
                       struct group_request *request);
/* The client is gone: `done` will not be called. Its member stays; its session decides. */
void broker_group_cancel(struct broker *broker, struct group_request *request);

/* ---- what is answered at once ---- */

enum status broker_group_heartbeat(struct broker *broker, struct slice group,
                                   const struct consumer_identity *who);
/* By member id, or by instance id with an empty member id. */
enum status broker_leave_group(struct broker *broker, struct slice group, struct slice member_id,
                               struct slice instance_id);

/* Borrowed for the callback. */
struct group_description {
    struct slice id;
    enum consumer_group_state state;
    struct slice protocol_type;
    const struct consumer_group *group; /* for members and protocol; NULL: it has none */
    const struct modern_group *modern; /* of the new protocol (KIP-848), as replicated; else NULL */
};
typedef void (*group_description_fn)(void *context, const struct group_description *group);
/* A classic group. UNKNOWN_GROUP: neither members nor record nor committed offsets, or a group of
 * the new protocol. */
enum status broker_describe_group(struct broker *broker, struct slice group,
                                  group_description_fn each, void *context);
/* Every group, or NOT_READY while some are not known yet. */
enum status broker_list_groups(struct broker *broker, group_description_fn each, void *context);

/* ---- removing ---- */

typedef void (*group_removed_fn)(void *context, enum status status, const struct error *error);
/* A group without members goes, with its committed offsets: answered when that is replicated.
 * UNKNOWN_GROUP, GROUP_NOT_EMPTY. `group` is borrowed for the call. */
void broker_delete_group(struct broker *broker, struct slice group, int64_t timeout_us,
                         group_removed_fn done, void *context);
/* Committed offsets go: request->offsets names them. Of an offset: GROUP_SUBSCRIBED; of all:
 * UNKNOWN_GROUP, or GROUP_NOT_EMPTY when what the members read can't be told. */
void broker_delete_offsets(struct broker *broker, struct offsets_request *request);

#endif
