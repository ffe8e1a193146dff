/* group_tombstones.h: what goes from one partition of `__consumer_offsets`: tombstones on their way
 * into the log, in batches of bounded size (T37). For this folder only.
 *
 * Nothing is forgotten here: the state follows as the high watermark passes them (T36). */
#ifndef MOONMQ_BROKER_GROUP_TOMBSTONES_H
#define MOONMQ_BROKER_GROUP_TOMBSTONES_H

#include "broker/group_coordinator_state.h"

/* Collected, then written. */
struct group_tombstones;

/* `done` NULL: nobody asks; a failure is logged. */
struct group_tombstones *group_tombstones_new(struct partition *partition, group_removed_fn done,
                                              void *context);
void group_tombstones_add_offset(struct group_tombstones *tombstones, const struct offset_key *key);
/* Of a classic group. */
void group_tombstones_add_group(struct group_tombstones *tombstones, struct slice group);
/* Of a group of the new protocol, without members, which is not live any more. */
void group_tombstones_add_modern_group(struct group_tombstones *tombstones, struct slice group);
/* A key as it is in the log. */
void group_tombstones_add(struct group_tombstones *tombstones, struct slice key);
/* As much as should be under way at once; the rest is for the next time. */
bool group_tombstones_are_full(const struct group_tombstones *tombstones);
/* Takes them; `done` comes exactly once, maybe at once, with the first failure. timeout_us 0:
 * AckTimeout. */
void group_tombstones_write(struct group_tombstones *tombstones, int64_t timeout_us);
/* All that are on their way; calls nobody back. */
void group_tombstones_free_all(struct broker *broker);

#endif
