/* partition_change.h: a truncation or reset of a follower's partition while it is under way, and
 * the appends that feed the producer table.
 *
 * What is derived from the log goes with it: the producer table plays its undo records back, or, if
 * it does not remember that far, is rebuilt from a snapshot and the log on a worker before the
 * change ends. */
#ifndef MOONMQ_BROKER_PARTITION_CHANGE_H
#define MOONMQ_BROKER_PARTITION_CHANGE_H

#include "broker/partition_state.h"

struct partition_change {
    struct broker *broker;
    struct partition *partition; /* NULL: gone meanwhile */
    bool reset;
    int64_t offset, high_watermark;
    int64_t dropped_to; /* reset: of the log that is going to be copied */
    bool says_dropped;  /* what is on record of it is another value */
    log_done_fn done;
    void *context;
    bool rebuilding;                /* a worker reads the log */
    struct partition_log *drop_log; /* to be dropped when the worker is done with it */
    struct log_drops *drops;
    bool drop_set_aside;
    struct partition_change *next, *prev; /* in broker->changes */
};
bool partition_change_is_reset(const struct partition *partition);
/* The partition goes: the change ends on its own. */
void partition_change_orphan(struct partition *partition);
/* A worker still reads the partition's log: true, and the drop happens after it. */
bool partition_change_drop_later(struct partition *partition, struct log_drops *drops,
                                 bool set_aside);
void partition_changes_free(struct broker *broker);

/* Takes the batches under the cursor with a base offset below `below` into the producer table. */
void follow_cursor_apply(struct partition *partition, int64_t below);

/* producer_load.c, worker: the table that the log gives, from its newest snapshot on. */
STATUS_MUST_CHECK
enum status producers_load(struct partition_log *log, int64_t written_ms,
                           struct producer_table *table, struct log_damage *damage,
                           struct error *error);
/* Takes one whole batch of the log into the table, its marker read if it is one. */
void producers_apply_batch(struct producer_table *table, const uint8_t *data,
                           const struct batch_header *header, int64_t written_ms);

#endif
