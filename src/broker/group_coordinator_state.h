/* group_coordinator_state.h: the coordinator's inside, for this folder only. */
#ifndef MOONMQ_BROKER_GROUP_COORDINATOR_STATE_H
#define MOONMQ_BROKER_GROUP_COORDINATOR_STATE_H

#include <uthash.h>

#include "broker/group_coordinator.h"
#include "broker/partition_state.h"

struct live_group {
    struct broker *broker;
    struct consumer_group *group;
    struct deadline deadline;
    uint64_t life;  /* no two of an id have the same */
    bool forgotten; /* removed while its record was on the way: goes when that has ended */
    size_t bytes;   /* as counted in the coordinator */
    UT_hash_handle hh;
};
struct group_store;      /* a group's record on its way; group_coordinator.c */
struct group_tombstones; /* group_tombstones.h */
struct gone_offsets;
struct session_group; /* members the broker looks after, a group each; group_session.c */

struct group_coordinator {
    struct live_group *live; /* uthash walks in the order in which they came to life */
    uint64_t lives;          /* that ever were */
    size_t bytes;            /* of all of them */
    bool answering;          /* inside a callback */
    int64_t expired_us;      /* when offsets were last looked at for their age */
    struct group_store *stores;
    struct group_tombstones *tombstones; /* on their way */
    struct gone_offsets *gone;           /* of topics that are gone; group_expiry.c */
    struct session_group *sessions;      /* group_session.c */
};

/* group_coordinator.c */
struct group_coordinator *group_coordinator_new(void);
/* Calls nobody back. */
void group_coordinator_free(struct broker *broker);
void group_coordinator_serving_began(struct broker *broker);
void group_coordinator_demoted(struct broker *broker);
/* `applied` of the partition moved: its groups come to life if that was what they waited for. */
void group_coordinator_applied(struct partition *partition);
/* May offsets be committed by `who`? NOT_READY: ask again when `applied` moved. */
enum status group_coordinator_check_commit(struct broker *broker, struct slice group,
                                           const struct consumer_identity *who, bool transactional);
/* The partition of `__consumer_offsets` a group belongs to, when its groups are known: OK,
 * NOT_LEADER, NOT_READY, STORAGE_ERROR. */
enum status group_coordinator_partition(struct broker *broker, struct slice group,
                                        struct partition **out);
struct live_group *group_coordinator_find(struct broker *broker, struct slice group);
/* Does the id belong to a classic group with members? */
bool group_coordinator_has_members(struct broker *broker, struct slice group);
/* It became a group of the new protocol: who waits joins again, and what it was is forgotten. */
void group_coordinator_hand_over(struct broker *broker, struct slice group);
/* Of its record, if that has members: it was none that lived for a while. */
void group_coordinator_revive(struct broker *broker, struct slice group);
/* A group without members is being removed: only its record counts from here on. */
void group_coordinator_forget(struct broker *broker, struct slice group);

/* group_session.c */
/* The group begins anew: its sessions join again, in a later turn. */
void group_sessions_rebalancing(struct broker *broker, struct slice group);

/* group_expiry.c */
/* Offsets nobody has needed for offsets.retention.minutes, and groups without any. */
void group_offsets_expire(struct broker *broker);
/* A topic is gone, and so are the offsets committed for it: a new one of its name starts anew. */
void group_offsets_topic_gone(struct broker *broker, const char *topic_name);
/* As much for topics that are not there: who dropped them may have died before it forgot. */
void group_offsets_forget_gone(struct partition *partition);
/* Calls nobody back. */
void group_offsets_free(struct broker *broker);

#endif
