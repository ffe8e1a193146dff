/* modern_coordinator.h: the groups of the new protocol (KIP-848) on the leader: their requests, and
 * their records on the way to `__consumer_offsets`.
 *
 * A group with members lives here while this replica serves: copied from what is applied when the
 * leadership's start is (group_coordinator.h tells when), dropped with the leadership. It is ahead
 * of the log: what an event wrote is on its way. So an answer waits until all that the group wrote
 * before it is replicated. When one of its writes fails, what it holds is no longer what the log
 * has: it is dropped, and copied anew when everything in the log has been applied; NOT_READY until
 * then.
 *
 * One group id means one thing: who joins takes over the id of a group without members, whatever
 * its kind. A classic group with members becomes one of these when a member of the new protocol
 * joins, and the other way round when the last such is gone (modern_group_classic.h): in one write,
 * so that the log has one or the other. Thread: event loop. kafka-listener.md 7.6. */
#ifndef MOONMQ_BROKER_MODERN_COORDINATOR_H
#define MOONMQ_BROKER_MODERN_COORDINATOR_H

#include "broker/modern_group.h"

struct broker;
struct modern_store;

/* Groups, what they hold, and heartbeats that wait for their records; over them: GROUP_FULL, and
 * for those that wait NOT_READY. */
#define MODERN_GROUPS_MAX       100000
#define MODERN_GROUPS_BYTES_MAX ((size_t)256 << 20)
#define MODERN_WAITING_MAX      20000

struct modern_request;
typedef void (*modern_request_fn)(void *context, struct modern_request *request);
/* Zeroed but for `done` and `context`; lives until `done`. */
struct modern_request {
    modern_request_fn done; /* exactly once, maybe at once */
    void *context;
    /* out; the sets until `done` returns */
    enum status status;
    struct error error;
    int32_t member_epoch;
    bool has_assignment;
    struct partition_set assignment;
    /* the coordinator's while it waits */
    struct modern_store *store;
    struct modern_request *next, *prev;
};
/* The heartbeat is borrowed for the call. NOT_LEADER, NOT_READY, STORAGE_ERROR, UNKNOWN_GROUP (a
 * classic group has members, and can't be moved), GROUP_FULL, those of modern_group_heartbeat(),
 * those of a write. */
void broker_modern_heartbeat(struct broker *broker, struct slice group,
                             const struct modern_heartbeat *heartbeat,
                             struct modern_request *request);
/* The client is gone: `done` will not be called. */
void broker_modern_cancel(struct broker *broker, struct modern_request *request);

/* As replicated; borrowed for the callback. UNKNOWN_GROUP: none of this kind. */
typedef void (*modern_description_fn)(void *context, const struct modern_group *group);
enum status broker_modern_describe(struct broker *broker, struct slice group,
                                   modern_description_fn each, void *context);
/* May `member_id` at `epoch` read the group's offsets? OK for a group that is none of these. */
enum status broker_modern_check_fetch(struct broker *broker, struct slice group,
                                      struct slice member_id, int32_t epoch);
/* For a member that lets the coordinator name it. */
struct uuid broker_modern_new_id(struct broker *broker);
const struct modern_group_options *broker_modern_options(const struct broker *broker);

#endif
