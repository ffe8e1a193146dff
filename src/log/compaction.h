/* compaction.h: a pass of compaction over one log: of each key only the last record stays.
 *
 * What is cleaned: sealed segments wholly below the caller's limit, never the one that takes
 * appends. First a map of the dirty part is made (key -> last offset, in bounded memory: what does
 * not fit is the next pass's), then the segments are rewritten from the first on, small neighbours
 * becoming one, and each group takes the place of the old files in one step that a crash leaves old
 * or new (compaction_swap.c). Kept are: the last record of each key; tombstones until
 * delete.retention.ms after they were first cleaned; markers while a batch of their transaction is
 * left, and then as long; of a live producer what its state is made of; the last batch of each
 * segment, so that a file tells where it ends; the first batch of each leader epoch, so that a copy
 * made of the log knows where epochs began. Emptied batches that have to stay keep their header.
 * Records of aborted transactions and records without key go. Offsets and batches keep their place.
 * A batch whose CRC holds but whose records cannot be read stays as it is, and hides no other.
 *
 * Before a tombstone or marker goes for good it is written down up to where that has happened
 * (partition_log_dropped_to()): who missed it must not go on from the values that it deleted.
 * How far a log is clean is written in its segments' digests: what is cut, reset, recreated or
 * damaged is dirty again, without anybody's doing.
 * A pass is cancelled when its log is cut, reset, dropped or closed, or the store stops. Thread:
 * loop; the work is a BACKGROUND worker's. Source: kafka-listener.md 3 and 11.4; fault matrix F56.
 */
#ifndef MOONMQ_LOG_COMPACTION_H
#define MOONMQ_LOG_COMPACTION_H

#include "log/log_store.h"
#include "log/partition_log.h"

/* Memory of a broker's one map at a time: a million keys a pass. */
#define COMPACTION_MAP_BYTES (32u * 1024 * 1024)

#define COMPACTION_NO_CLOCK INT64_MIN

/* What there is to do in a log. */
struct log_cleanable {
    int64_t clean_bytes;
    int64_t dirty_bytes;     /* of sealed segments that a pass may clean now */
    int64_t oldest_dirty_ms; /* timestamp of the first dirty batch, cleanable or not; -1: none */
    int64_t first_dirty_offset;
};
/* limit_offset, settled_before_ms: as in struct log_compaction. */
void partition_log_cleanable(const struct partition_log *log, int64_t limit_offset,
                             int64_t settled_before_ms, struct log_cleanable *out);

struct log_compaction;
/* Exactly once, later. OK, CANCELLED, CONFLICT (someone else reads the files), NO_SPACE, CORRUPT
 * (`damage` says where), IO, NO_MEMORY: nothing is lost; what was swapped in before stays. */
typedef void (*log_compaction_fn)(void *context, struct log_compaction *compaction);
struct log_compaction {
    /* in; borrowed until done */
    int64_t limit_offset; /* below it all is decided and committed: min(high watermark, last stable
                             offset) */
    int64_t decided_offset;    /* markers up to here are looked at: the high watermark */
    int64_t now_ms;            /* wall clock; COMPACTION_NO_CLOCK: nothing goes or is dated by it */
    int64_t settled_before_ms; /* segments with a newer record stay dirty (min.compaction.lag.ms) */
    int64_t delete_retention_ms;
    /* Tombstones and markers from here on stay, whatever their age: somebody copies the log and has
     * not come so far. INT64_MAX: nobody does. */
    int64_t copied_to;
    size_t map_bytes;
    /* Last offsets of batches and markers that producers' state speaks of; the pass sorts them. */
    int64_t *kept_offsets;
    size_t kept_count;
    log_compaction_fn done;
    void *context;
    /* out */
    enum status status;
    struct error error;
    int64_t clean_to;        /* the log is clean below it */
    int64_t aborted_gone_to; /* STATUS_OK: nothing that an aborted transaction wrote is left below
                                it, in files or in memory */
    bool more;               /* the map was full before the limit was reached */
    uint64_t bytes_in, bytes_out, records_in, records_out;
    uint32_t swaps;
    struct log_damage damage;
};

/* Starts a pass. STATUS_AGAIN: not now (busy, failed, damaged, one under way, its files in use);
 * STATUS_NOT_FOUND: nothing to clean. `done` is called for STATUS_OK only. Not while a
 * log_store_scan() of the log is about to begin. */
STATUS_MUST_CHECK
enum status partition_log_compact(struct partition_log *log, struct log_compaction *compaction);

/* Begins a new segment if the last one's first record is older, so that compaction can get at it:
 * an idle log has no append to do so. */
/* True: it did. */
bool partition_log_roll_before(struct partition_log *log, int64_t first_timestamp_ms);

#endif
