/* producer_state.h: what one partition remembers of its idempotent and transactional producers.
 *
 * Per producer id: epoch, the last five batches, the first offset of the open transaction, the last
 * marker's coordinator epoch. And of all of them: the transactions that were aborted
 * (aborted_index.h). The table is derived from the log alone: the leader and its followers
 * call producer_apply() for every batch they append, in order, and so agree. Before its append the
 * leader asks producer_check(). Rules: kafka-listener.md 4.2 and 8.2; decisions.md 9 and 10.
 *
 * Truncation. Each apply leaves an undo record until producer_table_settle() says that its offset
 * can no longer be cut (the high watermark has passed it). producer_table_truncate() plays the
 * records back, so the table is exactly what the log below the cut gives. Where a record is gone
 * it says so, and the caller rebuilds from a snapshot and the log.
 *
 * Not derived from the log: `written_ms`, which decides expiry only, is neither hashed nor undone.
 * Pure: no clock, no I/O; nothing is iterated in hash order. Thread: event loop, or any one owner.
 */
#ifndef MOONMQ_BROKER_PRODUCER_STATE_H
#define MOONMQ_BROKER_PRODUCER_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/status.h"
#include "broker/aborted_index.h"
#include "record/batch.h"

#define PRODUCER_BATCHES_KEPT     5       /* clients keep at most five requests in flight */
#define PRODUCER_COUNT_MAX        100000u /* producer ids a partition remembers */
#define PRODUCER_UNDO_COUNT_MAX   8192u   /* undo records a partition keeps */
#define PRODUCER_SNAPSHOT_VERSION 2       /* 1 is read, too: nothing was ever aborted then */
/* A full table forgets nobody who wrote within this time. */
#define PRODUCER_IDLE_MS_MIN INT64_C(900000)
/* Default of producer.id.expiration.ms. */
#define PRODUCER_EXPIRATION_MS INT64_C(86400000)

/* One remembered batch: sequences and offsets run first/base .. + delta. */
struct producer_batch {
    int64_t base_offset;
    int64_t timestamp_ms; /* the batch's max timestamp */
    int32_t first_sequence;
    uint32_t delta : 31;          /* last offset delta, and so last sequence delta */
    uint32_t log_append_time : 1; /* timestamp_ms was set by the broker */
};

/* One producer, read-only outside this module. */
struct producer_state {
    int64_t producer_id;
    int64_t last_offset;       /* of its last batch or marker */
    int64_t last_timestamp_ms; /* of its last batch or marker */
    int64_t written_ms;        /* clock of the last apply; decides expiry */
    int64_t open_first_offset; /* of the open transaction; -1: none */
    int32_t coordinator_epoch; /* of the last marker; -1: none yet */
    int16_t epoch;
    uint8_t batch_count; /* 0: the epoch is known from a marker or unsequenced batch */
    struct producer_batch batches[PRODUCER_BATCHES_KEPT]; /* oldest first, all of `epoch` */
};

struct producer_table;

/* An empty table; NULL when out of memory. */
struct producer_table *producer_table_new(void);
void producer_table_free(struct producer_table *table); /* NULL is allowed */

/* Forgets everything, the settled offset too; the next apply may come at `end_offset` or above (a
 * log restarted there). */
void producer_table_clear(struct producer_table *table, int64_t end_offset);

/* One past the last offset applied: where a rebuild goes on reading the log. */
int64_t producer_table_end_offset(const struct producer_table *table);
size_t producer_table_count(const struct producer_table *table);

/* NULL when unknown. Valid until the next call that changes the table. */
const struct producer_state *producer_table_find(const struct producer_table *table,
                                                 int64_t producer_id);
/* Every producer, in the order in which they were first seen; NULL at the end. */
const struct producer_state *producer_table_first(const struct producer_table *table);
const struct producer_state *producer_table_next(const struct producer_state *state);

/* Of its last sequenced batch; -1: its epoch has none yet. */
int32_t producer_state_last_sequence(const struct producer_state *state);

/* Whose rules a batch is checked by. */
enum producer_rules {
    PRODUCER_RULES_KAFKA,    /* consecutive sequences */
    PRODUCER_RULES_KAFKA_V2, /* and, under transaction.version 2, a transaction starts at 0 */
    PRODUCER_RULES_NATIVE,   /* one sequence runs over all partitions of a topic: gaps are legal */
};
enum producer_verdict_kind { PRODUCER_APPEND, PRODUCER_DUPLICATE };
struct producer_verdict {
    enum producer_verdict_kind kind;
    /* DUPLICATE: where the original lies. Answer acks=all only once last_offset is committed. */
    int64_t base_offset;
    int64_t last_offset;
    int64_t log_append_time_ms; /* -1: create time */
    /* Ahead of what is known of its producer by this rule set: a batch before it is not here. Told
     * of batches that may be appended, too: of a producer that is not known at all. */
    bool gap;
    int64_t known_offset; /* of the producer's last record here, with `gap`; -1: none is known */
};

/* May this data batch (validated; not a marker) be appended at the log end? Changes nothing. A
 * batch without producer id is always to be appended; one without sequences (base sequence -1:
 * written by a coordinator of ours) is judged by epoch and transaction only.
 *
 * expiration_ms  a producer idle for longer counts as unknown.
 *
 * STATUS_OK with *out filled, or OUT_OF_ORDER_SEQUENCE, STALE_PRODUCER_EPOCH, INVALID_TXN_STATE,
 * LIMIT (table full of producers too recent to forget). */
STATUS_MUST_CHECK
enum status producer_check(const struct producer_table *table, const struct batch_header *header,
                           enum producer_rules rules, int64_t now_ms, int64_t expiration_ms,
                           struct producer_verdict *out, struct error *error);

/* May the end marker be appended? Under `transaction_v2` its epoch must be above that of the open
 * transaction's batches, so that a late marker cannot end the next transaction. STATUS_OK,
 * STALE_PRODUCER_EPOCH, or FENCED_EPOCH: from a coordinator older than the last one seen. */
STATUS_MUST_CHECK
enum status producer_check_marker(const struct producer_table *table,
                                  const struct batch_header *header,
                                  const struct batch_marker *marker, bool transaction_v2,
                                  struct error *error);

/* Where the table has this marker already, or -1: the producer has nothing open here, and the last
 * end of a transaction it knows had this epoch. Not before the whole of what the producer wrote. */
int64_t producer_marked_offset(const struct producer_table *table,
                               const struct batch_header *header);

/* A transaction that a marker has just ended. */
struct producer_ended {
    bool ended; /* false: nothing was open, or the batch was no marker */
    bool aborted;
    int64_t producer_id;
    int64_t first_offset;
    int64_t marker_offset;
};

/* Takes in a batch that was just appended, offsets final. Every batch of the log is applied, also
 * those without producer, at increasing offsets. The log is right: nothing is checked against it.
 *
 * marker      NULL for data, else batch_read_marker()'s result.
 * written_ms  the clock; when rebuilding, the segment's modification time (or the clock).
 * ended       may be NULL.
 *
 * STATUS_NO_MEMORY: unchanged but for forgotten undo records; the caller fails the partition's copy
 * or rebuilds. STATUS_INVALID: an offset below the table's end, our caller's bug. */
STATUS_MUST_CHECK
enum status producer_apply(struct producer_table *table, const struct batch_header *header,
                           const struct batch_marker *marker, int64_t written_ms,
                           struct producer_ended *ended, struct error *error);

/* Offsets below `high_watermark`, which may lie beyond the end, will not be truncated any more.
 * Going back is ignored. Call it before a rebuild too: then no undo records are made below it. */
void producer_table_settle(struct producer_table *table, int64_t high_watermark);

/* The log was cut to end at `offset`, a batch boundary. True: the table is exactly the state of the
 * log below it. False: it does not remember that far back and was emptied (end offset 0): rebuild
 * it from the newest snapshot at or below `offset`, and the log from there. */
STATUS_MUST_CHECK
bool producer_table_truncate(struct producer_table *table, int64_t offset);

/* First offset of the oldest open transaction, or -1. */
int64_t producer_table_first_open_offset(const struct producer_table *table);

/* The last stable offset under `high_watermark`: held back by open transactions and by those whose
 * marker is not yet below it. */
int64_t producer_table_last_stable_offset(const struct producer_table *table,
                                          int64_t high_watermark);

/* See aborted_index_find(). */
uint32_t producer_table_find_aborted(const struct producer_table *table, int64_t offset,
                                     int64_t end_offset, struct aborted_transaction *out,
                                     uint32_t capacity);
/* The log begins at `log_start` now, or compaction has taken all that was aborted below. Producers
 * are remembered whatever becomes of their records (F61); aborted transactions whose marker went
 * are not. */
void producer_table_prune(struct producer_table *table, int64_t log_start);

/* Forgets producers without an open transaction that have not written for `expiration_ms`; returns
 * how many. Costs O(forgotten). The caller holds it back after a clock jump (fault matrix F45). */
size_t producer_table_expire(struct producer_table *table, int64_t now_ms, int64_t expiration_ms);

/* Last offsets, below `limit`, of the batches and markers that the table speaks of, or would after
 * a cut that it can undo: what compaction has to leave in the log so that a rebuild gives the same
 * table. In no order; *offsets is the caller's to free, NULL when there are none. */
size_t producer_table_list_offsets(const struct producer_table *table, int64_t limit,
                                   int64_t **offsets);

/* Equal tables have equal hashes, in whatever order they learned; written_ms, undo records and
 * settled offset are left out. Expire both sides alike before comparing. */
uint64_t producer_table_hash(const struct producer_table *table);
/* Without what was aborted. */
uint64_t producer_table_hash_producers(const struct producer_table *table);

/* Snapshot: versioned, checksummed bytes, appended to `out` (check buffer_failed). Decoding
 * replaces what is in the table, which is emptied on an error: CORRUPT, UNSUPPORTED (a version
 * from the future), NO_MEMORY. Undo records and the settled offset are not part of it. */
void producer_table_encode(const struct producer_table *table, struct buffer *out);
STATUS_MUST_CHECK
enum status producer_table_decode(struct producer_table *table, struct slice snapshot,
                                  struct error *error);

#endif
