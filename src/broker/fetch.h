/* fetch.h: a consumer's read over partitions, parked until there is enough (kafka-listener.md
 * section 5).
 *
 * High watermark, last stable offset and data of a partition's answer come from one moment. Wakes
 * on high-watermark advance. Both front ends use it; follower fetches are replication's own. */
#ifndef MOONMQ_BROKER_FETCH_H
#define MOONMQ_BROKER_FETCH_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/aborted_index.h"
#include "broker/deadline.h"
#include "broker/fetch_watch.h"
#include "log/partition_log.h"

struct broker;
struct partition;
struct fetch;
typedef void (*fetch_fn)(void *context, struct fetch *fetch);

struct fetch_partition {
    /* in */
    /* NULL: `status` was set by the caller (unknown topic, …); becomes NULL when the topic goes
     * meanwhile. */
    struct partition *partition;
    int64_t offset;
    uint32_t bytes_max;
    int32_t current_epoch;      /* -1: not checked */
    int32_t last_fetched_epoch; /* -1: not checked */
    struct fetch_watch *watch;  /* the caller's: where it came from, if from a set */
    /* out */
    enum status status;
    int64_t high_watermark, last_stable_offset, log_start; /* -1 on error */
    bool diverging;
    int32_t diverging_epoch;
    int64_t diverging_end_offset;
    struct log_read read; /* pieces; released by fetch_release() */
    /* Under read_committed: those that touch what was read, of the same moment. Released likewise.
     */
    struct aborted_transaction *aborted;
    uint32_t aborted_count;
    /* the broker's */
    struct fetch *fetch;
    struct fetch_partition **listed; /* the partition's list it is in; NULL: none */
    struct fetch_partition *next, *prev;
};
struct fetch {
    /* in */
    struct fetch_partition *partitions;
    uint32_t partition_count;
    int64_t max_wait_us;           /* 0: at once */
    uint32_t bytes_min, bytes_max; /* bytes_max is also capped by fetch.max.bytes */
    bool read_committed;
    fetch_fn done; /* exactly once; may be called before broker_fetch() returns */
    void *context;
    /* Not NULL: waits on this set instead of on its partitions. At the start of each round `gather`
     * settles the watches with news and appends to `partitions` those that it lacks; it may move
     * the array. */
    struct fetch_watch_set *watches;
    void (*gather)(void *context, struct fetch *fetch);
    /* out */
    uint32_t bytes;
    bool leadership_lost; /* completed because this replica stopped serving */
    /* the broker's */
    struct broker *broker;
    bool parked, reading, last_round, cancelled;
    uint32_t next_partition; /* read up to here; one cold read at a time */
    uint32_t ready_count;    /* partitions that were made ready for their first turn */
    bool answer_now;         /* an error or a divergence was met */
    struct deadline deadline;
    struct fetch *next, *prev;
};
void broker_fetch(struct broker *broker, struct fetch *fetch);
/* Completes a parked fetch with what there is. */
void broker_fetch_finish_now(struct broker *broker, struct fetch *fetch);
/* The client is gone. `done` is not called; true: the struct may go now; false: reads are open,
 * `done` will be called after all, for freeing only (fetch->cancelled). */
bool broker_fetch_cancel(struct broker *broker, struct fetch *fetch);
void fetch_release(struct fetch *fetch); /* references of all pieces */

/* ListOffsets (section 6). Special timestamps as there: -1 latest … -5. */
struct offset_lookup;
typedef void (*offset_lookup_fn)(void *context, struct offset_lookup *lookup);
struct offset_lookup {
    struct partition *partition;
    int64_t timestamp_ms;
    int32_t current_epoch; /* -1: not checked */
    bool read_committed;
    offset_lookup_fn done; /* exactly once, maybe at once */
    void *context;
    enum status status;
    int64_t offset, found_timestamp_ms;
    int32_t leader_epoch;
    /* the broker's */
    struct log_time_lookup time;
    bool below_epoch_start; /* begun before the high watermark reached the epoch's start */
    struct deadline deadline;
    struct offset_lookup *next, *prev;
};
void broker_lookup_offset(struct broker *broker, struct offset_lookup *lookup);

/* OffsetForLeaderEpoch (section 6): -1/-1 when unknown. */
enum status broker_epoch_end(struct broker *broker, struct partition *partition,
                             int32_t current_epoch, int32_t asked_epoch, int32_t *epoch,
                             int64_t *end_offset);

#endif
