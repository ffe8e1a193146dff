/* modern_coordinator_state.h: the inside of modern_coordinator.h, for this folder only. */
#ifndef MOONMQ_BROKER_MODERN_COORDINATOR_STATE_H
#define MOONMQ_BROKER_MODERN_COORDINATOR_STATE_H

#include <uthash.h>

#include "broker/group_coordinator.h"
#include "broker/modern_coordinator.h"
#include "broker/partition_state.h"

struct modern_live;

struct modern_coordinator {
    struct modern_live *live; /* uthash walks in the order in which they came to life */
    size_t bytes;             /* of all of them */
    uint32_t waiting;         /* heartbeats that wait for records */
};

struct modern_coordinator *modern_coordinator_new(void);
/* Calls nobody back. */
void modern_coordinator_free(struct broker *broker);
void modern_coordinator_demoted(struct broker *broker);
/* What the partition holds is known to the leader: its groups with members come to life. */
void modern_coordinator_restore(struct partition *partition);
/* Is the id a group of this kind, with members? */
bool modern_coordinator_has_members(struct broker *broker, struct slice group);
/* NULL: none of this kind. The one that lives, else the one on record. */
const struct modern_group *modern_coordinator_find(struct broker *broker, struct slice group);
/* May offsets be committed? NOT_FOUND: no group of this kind with members; NOT_READY. */
enum status modern_coordinator_check_commit(struct broker *broker, struct slice group,
                                            const struct consumer_identity *who);
/* Members, or records on their way. */
bool modern_coordinator_is_in_use(struct broker *broker, struct slice group);
/* The group, which has no members, is to go: tombstones for all of its records are added. */
void modern_coordinator_forget(struct broker *broker, struct slice group,
                               struct modern_records *records);
/* A classic member wants the id: what is left of a group without members goes. GROUP_PROTOCOL: it
 * has members; NOT_READY. */
enum status modern_coordinator_yield(struct broker *broker, struct slice group);

/* modern_classic.c: what members of the classic protocol ask, if the group is one of these and has
 * members, or may be; false: it is none, and nothing was done. */
bool modern_classic_join(struct broker *broker, struct slice group,
                         const struct consumer_join *join, struct group_request *request);
bool modern_classic_sync(struct broker *broker, struct slice group,
                         const struct consumer_sync *sync, struct group_request *request);
bool modern_classic_heartbeat(struct broker *broker, struct slice group,
                              const struct consumer_identity *who, enum status *status);
bool modern_classic_leave(struct broker *broker, struct slice group, struct slice member_id,
                          struct slice instance_id, enum status *status);
void modern_classic_cancel(struct broker *broker, struct group_request *request);

#endif
