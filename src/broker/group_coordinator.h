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
 * Members of the classic protocol may also be in a group of the new one that is on its way from or
 * to it (modern_group_classic.h): what they ask goes there. Bounds: LIVE_GROUPS_MAX,
 * LIVE_GROUPS_BYTES_MAX; over them: GROUP_FULL. Thread: event loop. kafka-listener.md section 7. */
#ifndef MOONMQ_BROKER_GROUP_COORDINATOR_H
#define MOONMQ_BROKER_GROUP_COORDINATOR_H

#include "broker/consumer_group.h"
#include "broker/modern_coordinator.h"
#include "broker/modern_group.h"
#include "broker/offsets.h"

struct broker;

#define LIVE_GROUPS_MAX       100000
#define LIVE_GROUPS_BYTES_MAX ((size_t)256 << 20)

/* ---- what may wait ---- */

/* Borrowed for the callback, which must not call the coordinator. */
struct group_result {
    enum status status;
    struct slice member_id; /* join, with OK or MEMBER_ID_REQUIRED */
    /* with OK */
    int32_t generation;
    struct slice protocol_type, protocol;
    struct slice leader;     /* join: as the member is told it; "": nobody in the group */
    bool skip_assignment;    /* join: it leads, and need not assign */
    struct slice assignment; /* sync */
    const struct consumer_group *group; /* as it is now; NULL: one of the new protocol */
    const struct group_answer *answer;  /* NULL with it */
};
/* Zeroed but for `done` and `context`. */
struct group_request {
    struct group_waiter waiter;
    void (*done)(void *context, const struct group_result *result); /* once, maybe at once */
    void *context;
    /* at a group of the new protocol: the coordinator's while it waits */
    struct modern_request modern;
    struct buffer kept; /* what it will be told: member id, protocol, assignment */
    size_t id_bytes, protocol_bytes;
    int32_t generation;
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
