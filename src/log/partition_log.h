/* partition_log.h: one partition's log: segments of RecordBatch v2, kept byte for byte.
 *
 * Offsets: log_start <= durable <= log_end. An append is in memory at once and queued for the
 * store's next group commit (log_store.h); durable moves when that commit is synced: every byte
 * below it, the file's directory entry and the epoch history up to it. Recent batches are read from
 * memory, older ones from disk with their CRC checked once per residence. States: OPEN -> BUSY
 * (truncating or resetting: no appends) -> OPEN; any -> FAILED (sticky until reopened: an error
 * from write or sync is never retried). A corrupt range below the synced position is quarantined:
 * reads into it give STATUS_CORRUPT, the rest stays readable. Thread: loop, but for functions
 * marked "worker". Files: design.md, "The log on disk".        */
#ifndef MOONMQ_LOG_PARTITION_LOG_H
#define MOONMQ_LOG_PARTITION_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/shared_bytes.h"
#include "base/status.h"
#include "base/uuid.h"
#include "log/epoch_history.h"

struct log_store;
struct partition_log;

/* What a topic's configuration says about its files. -1 = no limit. */
struct log_config {
    int64_t segment_bytes; /* roll before a segment would exceed this */
    int64_t segment_ms;
    int64_t segment_jitter_ms; /* segments end up to so much earlier, each by its own share */
    int64_t index_interval_bytes;
    int64_t index_bytes; /* roll when an index has this; 0: no limit */
    int64_t retention_ms, retention_bytes;
    bool delete_old; /* cleanup.policy has delete */
    bool compacted;  /* cleanup.policy has compact: gaps between offsets are legal */
};

const char *partition_log_topic(const struct partition_log *log);
int32_t partition_log_partition(const struct partition_log *log); /* 0-based */
/* For logs and errors: "orders/3". Valid as long as the log. */
const char *partition_log_name(const struct partition_log *log);
/* The owner's pointer (broker's struct partition). */
void partition_log_set_owner(struct partition_log *log, void *owner);
void *partition_log_owner(const struct partition_log *log);
void partition_log_configure(struct partition_log *log, const struct log_config *config);

int64_t partition_log_start_offset(const struct partition_log *log);
/* Up to which the log start does not come back after a crash. */
int64_t partition_log_recorded_start(const struct partition_log *log);
int64_t partition_log_end_offset(const struct partition_log *log);
int64_t partition_log_durable_offset(const struct partition_log *log);
int64_t partition_log_bytes(const struct partition_log *log); /* on disk + queued */
uint32_t partition_log_segment_count(const struct partition_log *log);
const struct epoch_history *partition_log_epochs(const struct partition_log *log);
int64_t partition_log_max_timestamp_ms(const struct partition_log *log); /* -1: empty */
bool partition_log_failed(const struct partition_log *log);
bool partition_log_busy(const struct partition_log *log);
/* Quarantined range of offsets, if there is one. */
bool partition_log_quarantined(const struct partition_log *log, int64_t *from, int64_t *to);
/* Is all of [from, to) quarantined? */
bool partition_log_lacks(const struct partition_log *log, int64_t from, int64_t to);
/* Offsets that one who read the files could not; from == to: none. */
struct log_damage {
    int64_t from, to;
};
/* [from, to) was found damaged by one who reads the files himself: no read gives it from now on. */
void partition_log_quarantine(struct partition_log *log, int64_t from, int64_t to);

/* Appends whole batches whose base offsets and leader epochs are already filled in, the first at
 * the log end (a gap only if `allow_gap`: compacted topics). One reference to `batches` is taken.
 * `batches` holds one or more whole, validated batches; epochs may not fall below the latest, and
 * new ones are recorded in the history at their first offset.
 * STATUS_OK             readable at once, durable later
 * STATUS_STORAGE_ERROR  the copy has failed: nothing appended
 * STATUS_AGAIN          busy, or too many bytes wait for the disk: nothing appended
 * STATUS_INVALID        offsets or epochs out of order: nothing appended                       */
STATUS_MUST_CHECK
enum status partition_log_append(struct partition_log *log, struct shared_bytes *batches,
                                 bool allow_gap, struct error *error);

/* Records that `epoch` begins at `start_offset` (the log end, or where the leader says), though
 * nothing may be written in it. Durable with the next commit. */
void partition_log_assign_epoch(struct partition_log *log, int32_t epoch, int64_t start_offset);

/* A read. In: offset .. at_least_one. Out: pieces (whole batches, the first containing `offset`).
 */
#define LOG_READ_PIECES_MAX 64
struct log_piece {
    struct shared_bytes *shared; /* one reference each, owned by the read */
    uint32_t at, bytes;
};
struct log_read;
typedef void (*log_read_fn)(void *context, struct log_read *read);
struct log_read {
    int64_t offset;
    int64_t limit_offset; /* only batches wholly below this */
    uint32_t bytes_max;
    bool at_least_one; /* the first batch may exceed bytes_max */
    log_read_fn done;
    void *context;
    /* out */
    enum status status;
    struct error error;
    struct log_piece pieces[LOG_READ_PIECES_MAX];
    uint32_t piece_count;
    uint32_t bytes;
    int64_t next_offset; /* one past the last batch given; = offset when empty */
    bool cancelled;
    void *private_state;
};
/* STATUS_OK: filled now, `done` is not called. STATUS_AGAIN: `done` is called later, the read stays
 * alive until then. Others: filled `status` and `error`, not called: OUT_OF_RANGE, CORRUPT, IO. */
STATUS_MUST_CHECK
enum status partition_log_read(struct partition_log *log, struct log_read *read);
/* Drops the references. */
void log_read_release(struct log_read *read);

/* First record with timestamp >= `timestamp_ms` below limit_offset, or with -3 semantics
 * (`want_max`) the record with the largest timestamp. done: status OK with offset/timestamp/epoch,
 * offset -1: none. */
struct log_time_lookup;
typedef void (*log_time_lookup_fn)(void *context, struct log_time_lookup *lookup);
struct log_time_lookup {
    int64_t timestamp_ms;
    bool want_max;
    int64_t limit_offset;
    log_time_lookup_fn done; /* always called, later */
    void *context;
    enum status status;
    int64_t found_offset, found_timestamp_ms;
    int32_t found_epoch;
    void *private_state;
};
void partition_log_find_timestamp(struct partition_log *log, struct log_time_lookup *lookup);

/* Cuts the log so that it ends at `offset` (<= log end), epochs included, durably; queued commits
 * of the cut part are given up. New appends get STATUS_AGAIN until `done`. If the log end is
 * already at or below it, the epochs are still cut. */
typedef void (*log_done_fn)(void *context, enum status status, const struct error *error);
void partition_log_truncate(struct partition_log *log, int64_t offset, log_done_fn done,
                            void *context);
/* Throws all records away and restarts empty at `offset`, with `epoch` (-1: none) in force there.
 * A copy that failed while it ran is well again after it, and nothing has been dropped from it.
 * set_aside: its files are kept for a day, in quarantine/<topic>.<uid>-<n>/<partition>.
 * STATUS_STORAGE_ERROR: one that could not be recovered. */
void partition_log_reset(struct partition_log *log, int64_t offset, int32_t epoch, bool set_aside,
                         log_done_fn done, void *context);

/* Did it fail for want of space, in a way that partition_log_resume() can mend? */
bool partition_log_lacked_space(const struct partition_log *log);
/* Such a copy goes on from what is durable: the bytes and files above are cut off. Only where
 * nobody else can have what is cut: it was read by followers, maybe. STATUS_STORAGE_ERROR: it
 * failed for another reason. */
void partition_log_resume(struct partition_log *log, log_done_fn done, void *context);

/* Raises the log start (never lowers, never past `high_watermark`): DELETE_RECORDS, or what a
 * follower learns from its leader. Whole segments below it are removed in the background. */
void partition_log_raise_start(struct partition_log *log, int64_t offset, int64_t high_watermark);
/* Compaction has dropped tombstones or transaction markers below this offset for good: whoever
 * holds less of the log, and not from a copy made since, has values that they deleted, or
 * transactions that they ended (F56). 0: none. Durable before what it speaks of goes. */
int64_t partition_log_dropped_to(const struct partition_log *log);
/* The log, empty as after a reset, is going to be a copy of one of which that is gone. Durable with
 * the next log_store_flush(). */
void partition_log_note_dropped(struct partition_log *log, int64_t dropped_to);
/* Retention by time and size: what the log start should become (the caller raises it), considering
 * whole segments below `high_watermark` only; the last one only when all its records have expired
 * (raising the start past it begins a new one). clock_trusted: what log_store_look_at_clock() said
 * of `now_wall_ms`, once for all partitions of the pass; without it nothing goes by time. */
int64_t partition_log_retention_start(const struct partition_log *log, int64_t now_wall_ms,
                                      bool clock_trusted, int64_t high_watermark);

/* The high watermark kept on record for the partition: written each second if changed, and at stop.
 * After a recovery that cut or lost a tail the one on record may exceed the log end. */
void partition_log_note_high_watermark(struct partition_log *log, int64_t high_watermark);
int64_t partition_log_noted_high_watermark(const struct partition_log *log);

#endif
