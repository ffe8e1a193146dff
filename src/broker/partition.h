/* partition.h: one partition as the domain sees it: its log, high watermark, last stable offset,
 * producers.
 *
 * Invariants: log start <= high watermark <= log end; the high watermark never goes back on a
 * leader and is never lowered by a truncation (a replica never truncates below one it has known).
 * Consumers see offsets below the high watermark only. Producer state covers the whole log,
 * appended part included. Thread: loop. */
#ifndef MOONMQ_BROKER_PARTITION_H
#define MOONMQ_BROKER_PARTITION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/shared_bytes.h"
#include "base/status.h"
#include "broker/aborted_index.h"
#include "broker/producer_state.h"
#include "log/partition_log.h"

struct broker;
struct partition;
struct topic;

struct topic *partition_topic(const struct partition *partition);
int32_t partition_index(const struct partition *partition);    /* 0-based */
const char *partition_name(const struct partition *partition); /* "orders/3" */
struct partition_log *partition_log_of(const struct partition *partition);
int64_t partition_log_start(const struct partition *partition);
int64_t partition_log_end(const struct partition *partition);
int64_t partition_durable(const struct partition *partition);
int64_t partition_high_watermark(const struct partition *partition);
int64_t partition_last_stable_offset(const struct partition *partition);
/* Where the current leader epoch began here: time look-ups and LIST_OFFSETS say "not yet" below it
 * (I4). */
int64_t partition_epoch_start(const struct partition *partition);
/* What clients are told as the high watermark; false: it is not known exactly. In static mode it
 * says what followers hold, and nobody's reads end there. */
bool partition_told_high_watermark(const struct partition *partition, int64_t *out);
/* The copy cannot be trusted or written: broken, lacking what was committed, or being reset. */
bool partition_damaged(const struct partition *partition);
/* It gets no better by itself: failed, damaged anywhere, or what is derived from it could not be
 * read out of it. */
bool partition_is_broken(const struct partition *partition);
/* Its copy holds bytes that are not as written: the alarm, once until the copy is reset. */
void partition_alarm_corrupt(struct partition *partition, const char *text);
/* Recovery cut a torn tail off this copy when the broker started (F28). */
bool partition_was_cut(const struct partition *partition);
uint64_t partition_producers_hash(const struct partition *partition); /* I24 */
/* Read-only, until the next event. */
const struct producer_table *partition_producers(const struct partition *partition);
/* What a read_committed reader of [offset, end_offset) must skip: aborted_index_find(). The range
 * lies at or above the log start and below the last stable offset. */
uint32_t partition_find_aborted(const struct partition *partition, int64_t offset,
                                int64_t end_offset, struct aborted_transaction *out,
                                uint32_t capacity);

/* ---- transactions ---- */
/* The end of a producer's transaction here: a control batch (kafka-listener.md 8.2). Embedded in
 * the caller's object; in: up to `context`. */
struct partition_marker {
    struct partition *partition;
    int64_t producer_id;
    int16_t producer_epoch;
    int32_t coordinator_epoch; /* the leader epoch of who decided */
    bool commit;               /* false: abort */
    bool transaction_v2;       /* the marker's epoch is above that of the transaction's batches */
    /* Of somebody outside: bounded, refused and timed out as any produce. */
    bool impatient;
    /* Exactly once, maybe at once: STATUS_OK when the marker is below the high watermark, or was
     * not needed any more; NOT_LEADER, STALE_PRODUCER_EPOCH, FENCED_EPOCH, UNKNOWN_TOPIC, … */
    void (*done)(void *context, struct partition_marker *marker);
    void *context;
    /* out */
    enum status status;
    struct error error;
    void *private_state;
};
/* On the leader; unless impatient it waits for as long as it takes: there is no time-out but the
 * loss of leadership. */
void partition_write_marker(struct partition_marker *marker);

/* Replication's own pointer, set in its `partition_added` handler. */
void partition_set_replica(struct partition *partition, void *replica);
void *partition_replica(const struct partition *partition);

/* ---- by replication ---- */
/* Leader and follower: the high watermark is now `offset` (clamped to the log end; going back is
 * ignored). Wakes parked produces and fetches, applies internal topics up to it, notes it for the
 * record. */
void partition_set_high_watermark(struct partition *partition, int64_t offset);
/* Static mode: group_port.pushed_to() moved. */
void partition_copies_moved(struct partition *partition);
/* Follower: appends the leader's batches (already checked) and derives producer state. */
STATUS_MUST_CHECK
enum status partition_follow_append(struct partition *partition, struct shared_bytes *batches,
                                    bool allow_gap, struct error *error);
/* A group of one: if the copy failed for want of space, it goes on from what is durable, whether
 * there is space by now or not: the next append shows it. Nobody else has what is cut, nor was any
 * of it acknowledged. */
void partition_resume(struct partition *partition);
/* Follower: cuts log, epochs and everything derived. The caller made sure that it does not go below
 * a known high watermark (asserted). */
void partition_truncate(struct partition *partition, int64_t offset, log_done_fn done,
                        void *context);
/* Follower: restart at the leader's log start; high watermark and log start taken together. */
struct partition_restart {
    int64_t offset;
    int32_t epoch; /* in force there; -1: none */
    int64_t high_watermark;
    int64_t dropped_to; /* of the log that is going to be copied: partition_log_dropped_to() */
    bool set_aside;     /* the files are kept for a day */
};
void partition_reset(struct partition *partition, const struct partition_restart *restart,
                     log_done_fn done, void *context);
/* Follower: the leader's log start moved up. */
void partition_follow_log_start(struct partition *partition, int64_t log_start);
/* Leader: the epoch of this leadership begins at the log end. */
void partition_begin_epoch(struct partition *partition, int32_t epoch);

#endif
