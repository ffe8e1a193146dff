/* compaction_work.h: the inside of a pass, shared by compaction*.c.
 *
 * Steps, in turn on the loop and on a worker: WRITE (the first one scans and makes the map; each
 * writes the next group to `<base>.log.cleaned` and so on), then, with the loop's leave, SWAP; or
 * DISCARD, if the loop does not want what was written. What a worker needs is copied when the pass
 * begins. */
#ifndef MOONMQ_LOG_COMPACTION_WORK_H
#define MOONMQ_LOG_COMPACTION_WORK_H

#include "log/compaction.h"
#include "log/offset_map.h"
#include "log/segment.h"
#include "log/segment_walk.h"
#include "log/store_internal.h"
#include "record/batch_rewrite.h"

#define CLEANED_SUFFIX ".cleaned" /* behind .log, .index, .timeindex: not in use yet */
/* Aborted transactions that one pass takes in; more are the next one's. */
#define COMPACTION_ABORTED_MAX (1u << 18)

enum compaction_step { COMPACTION_WRITE, COMPACTION_SWAP, COMPACTION_DISCARD };

struct compaction_segment {
    int64_t base_offset, end_offset, bytes;
};
/* A transaction that was given up: its producer's records in [first, marker) go. */
struct aborted_transaction {
    int64_t producer_id, first_offset, marker_offset;
};
struct open_transaction;

struct compaction {
    struct job job;
    struct partition_log *log;
    struct log_compaction *request;
    struct file_system *fs;
    char directory[LOG_DIRECTORY_BYTES];
    int64_t log_start, segment_bytes, index_interval_bytes;
    int64_t first_dirty;
    bool cancelled; /* atomic: set by the loop */
    enum compaction_step step;

    /* All segments with bytes; the first `count` of them may be cleaned. */
    struct compaction_segment *segments;
    uint32_t count, total;

    struct aborted_transaction *aborted; /* by producer, then first offset */
    uint32_t aborted_count, aborted_capacity;
    struct open_transaction *open;    /* while scanning: whose marker is still to come */
    struct open_transaction *ongoing; /* while writing: of which a batch was kept */
    bool prepared;
    struct offset_map *map;
    int64_t unread_from; /* of the first transactional batch that stayed unread; INT64_MAX: none */
    int64_t map_end;     /* the map knows all below; nothing at or above it is touched */
    struct buffer batch; /* one rewritten batch */
    int32_t last_epoch;  /* of the batch before the next one; -1: there is none */

    uint32_t next;                     /* first segment of the next group */
    uint32_t group_first, group_count; /* the one being written or swapped in */
    struct segment_digest digest;      /* what it became */
    bool group_unchanged;              /* only its digest is to be written */
    int64_t group_dropped_to;          /* behind the last tombstone or marker that is gone in it */
    uint64_t group_records_in, group_records_out;
};

static inline bool compaction_is_cancelled(const struct compaction *compaction)
{
    return __atomic_load_n(&compaction->cancelled, __ATOMIC_RELAXED);
}
/* compaction_scan.c (worker): transactions and the map. */
STATUS_MUST_CHECK
enum status compaction_prepare(struct compaction *compaction, struct error *error);
/* Is the batch of segment i in its place, behind the one that ends at `expected`? Its base offset
 * is not under its CRC. */
STATUS_MUST_CHECK
enum status compaction_check_place(const struct compaction *compaction, uint32_t i,
                                   const struct batch_header *header, int64_t expected,
                                   struct error *error);
/* The walk of segment i stopped at something that is not as written; `expected` is the offset that
 * follows the batch before it. Damaged is what lies up to the next sound batch. */
void compaction_found_damage(struct compaction *compaction, uint32_t i,
                             const struct segment_walk *walk, int64_t expected);
bool compaction_is_aborted(const struct compaction *compaction, int64_t producer_id,
                           int64_t offset);
/* Does a producer's state speak of the batch that ends there? */
bool compaction_keeps_offset(const struct compaction *compaction, int64_t offset);
void compaction_note_ongoing(struct compaction *compaction, int64_t producer_id);
/* Was one noted since the last marker? Forgets it. */
bool compaction_end_ongoing(struct compaction *compaction, int64_t producer_id);
void compaction_forget_transactions(struct compaction *compaction);
/* compaction_rewrite.c (worker): the group to its .cleaned files. */
STATUS_MUST_CHECK
enum status compaction_write_group(struct compaction *compaction, struct error *error);
/* compaction_swap.c (worker). */
STATUS_MUST_CHECK
enum status compaction_swap_in(struct compaction *compaction, bool *committed, struct error *error);
/* Removes what compaction_write_group() left. */
void compaction_discard(struct compaction *compaction);
/* Before recovery: swaps that were decided are carried out. Running it twice does no harm. */
STATUS_MUST_CHECK
enum status compaction_finish_swaps(struct file_system *fs, const char *directory,
                                    struct error *error);
/* Before a reset: a swap that stopped half way, carried out by the next start, would put old
 * records in the place of new ones. */
STATUS_MUST_CHECK
enum status compaction_forget_swaps(struct file_system *fs, const char *directory,
                                    struct error *error);
STATUS_MUST_CHECK
enum status compaction_failpoint(const char *name, struct error *error);

#endif
