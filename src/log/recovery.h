/* recovery.h: the steps of bringing one partition's files back into use. Private to
 * log/recovery*.c.
 *
 * Three cases are told apart by the synced position on record: what is bad below it is rot:
 * quarantined, never cut; what is bad beyond it is the tear of a crash: cut there; and a clean end.
 * Where no record exists because it was lost, the careful view holds: only what nothing sound
 * follows is cut. Nothing is changed before all of it was looked at; running it twice gives the
 * same bytes. What was not known synced is written again before it counts: a sync that failed
 * leaves it in memory only, and clean. Thread: worker. */
#ifndef MOONMQ_LOG_RECOVERY_H
#define MOONMQ_LOG_RECOVERY_H

#include "log/segment_walk.h"
#include "log/store_internal.h"

enum synced_record {
    SYNCED_NEVER, /* the partition never had a position recorded: all is beyond */
    SYNCED_KNOWN,
    SYNCED_LOST, /* it may have had one */
};

struct recovered_segment {
    int64_t base_offset, end_offset;
    int64_t bytes, file_bytes;
    int64_t first_timestamp_ms, max_timestamp_ms, max_timestamp_offset;
    int64_t clean_to;
    uint32_t crc;
    bool crc_known;              /* of [0, bytes) */
    bool has_digest;             /* sealed, and taken on its digest's word */
    bool damaged;                /* a range of it is quarantined */
    bool cut;                    /* the file is to end at `bytes` */
    bool remove;                 /* the files are to go */
    bool beyond;                 /* holds bytes that were not known synced … */
    int64_t beyond_from;         /* … from this position on */
    struct segment_index *index; /* of a scanned one */
};

struct recovery {
    struct log_store *store;
    struct file_system *fs;
    const struct log_identity *identity;
    char directory[LOG_DIRECTORY_BYTES];
    bool gaps;
    int64_t index_interval_bytes;
    enum synced_record record;
    struct synced_position synced;
    bool has_offsets;
    int64_t log_start, high_watermark, dropped_to;
    uint32_t slot;
    uint64_t slot_generation;

    struct epoch_history history;
    bool epochs_known; /* the epochs file says something of this partition */
    bool epochs_rebuilt;
    uint32_t agreeing, contradicting; /* sound batches and the history */
    int32_t last_epoch;

    bool directory_exists;
    int64_t *bases; /* of .log files, ascending */
    uint32_t base_count, base_capacity;
    struct buffer strays; /* names to remove, NUL after each */
    struct recovered_segment *segments;
    uint32_t segment_count;
    int64_t expected;            /* the offset that comes next */
    struct offset_range *ranges; /* quarantined */
    uint32_t range_count;
    struct log_recovery *out;
};

/* recovery_directory.c: what is there. */
STATUS_MUST_CHECK
enum status recovery_list(struct recovery *recovery, struct error *error);
/* Executes what was decided: removals, cuts, syncs, indexes, digests. */
STATUS_MUST_CHECK
enum status recovery_apply(struct recovery *recovery, struct error *error);

/* recovery_scan.c: one segment, read and judged. *cut: it ends before its file does, all after it
 * goes. */
STATUS_MUST_CHECK
enum status recovery_scan(struct recovery *recovery, struct recovered_segment *segment,
                          int64_t next_base, bool *cut, struct error *error);
void recovery_quarantine(struct recovery *recovery, int64_t from, int64_t to);

/* epoch_rebuild.c: the history as the batches of all segments tell it. */
STATUS_MUST_CHECK
enum status epoch_rebuild(struct recovery *recovery, struct error *error);

/* recovery.c */
STATUS_MUST_CHECK
enum status recovery_run(struct recovery *recovery, struct error *error);
void recovery_deinit(struct recovery *recovery);

#endif
