/* segment_index.h: offset → position and time → offset of one segment, sparse.
 *
 * Hints only. An entry is made each index interval; 64 of them make a block with its own CRC, which
 * the next commit writes behind the others in `.index` or `.timeindex` (not synced before the
 * segment is sealed). So memory holds at most the entries of one unfinished block, and a look-up
 * that needs older ones searches the file, on a worker. What a look-up gives is verified against
 * the log by its user; a block that fails its CRC, or a missing file, only makes the walk to the
 * batch longer.
 *
 * offsets:  key = offset - base offset,      value = position
 * times:    key = largest timestamp so far,  value = offset (- base) of the batch it came with   */
#ifndef MOONMQ_LOG_SEGMENT_INDEX_H
#define MOONMQ_LOG_SEGMENT_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "io/file_system.h"

enum index_kind { INDEX_OFFSETS, INDEX_TIMES, INDEX_KIND_COUNT };
#define INDEX_BLOCK_ENTRIES 64

struct index_entry {
    int64_t key;
    uint32_t value;
};
/* The unfinished block of one kind. */
struct index_tail {
    struct index_entry *entries;
    uint32_t count, capacity;
};
/* What a segment open for append holds. Zeroed = empty, but last_position = -1. */
struct segment_index {
    struct index_tail tails[INDEX_KIND_COUNT];
    struct buffer pending[INDEX_KIND_COUNT]; /* finished blocks that no commit took yet */
    uint32_t blocks[INDEX_KIND_COUNT];       /* finished ones, pending ones included */
    int64_t last_position;                   /* of the newest entry; -1: none */
};

struct segment_index *segment_index_new(const uint32_t blocks[INDEX_KIND_COUNT]);
void segment_index_free(struct segment_index *index); /* NULL is allowed */

/* A batch at `position` with `base_offset` follows; the largest timestamp before it is
 * max_timestamp_ms
 * (-1: none), of the batch at max_timestamp_offset. Makes entries when `interval` bytes have
 * passed. */
void segment_index_note(struct segment_index *index, int64_t segment_base, int64_t base_offset,
                        int64_t position, int64_t interval_bytes, int64_t max_timestamp_ms,
                        int64_t max_timestamp_offset);
/* The largest entry not above `wanted`, of those in memory: by key, or by value (both ascend). */
bool segment_index_find(const struct segment_index *index, enum index_kind kind, bool by_value,
                        int64_t wanted, struct index_entry *out);
/* The segment now ends earlier: forgets what lies from there on. */
void segment_index_cut(struct segment_index *index, int64_t offset_delta, int64_t position);
/* Entries made so far, those of a segment that was opened again included. */
int64_t segment_index_entries(const struct segment_index *index, enum index_kind kind);
/* Ends the unfinished blocks: for a segment that takes no more. */
void segment_index_seal(struct segment_index *index, int64_t segment_base);
/* Where in the file the first pending block goes. */
int64_t segment_index_pending_at(const struct segment_index *index, enum index_kind kind);

/* Worker. */
const char *index_suffix(enum index_kind kind); /* ".index", ".timeindex" */
/* As segment_index_find, in a file. STATUS_NOT_FOUND: none, or a bad block in the way. */
STATUS_MUST_CHECK
enum status index_file_find(struct file *file, enum index_kind kind, int64_t segment_base,
                            bool by_value, int64_t wanted, struct index_entry *out,
                            struct error *error);
/* The segment now ends at offset base + `offset_delta` and `position`: keeps the leading full
 * blocks that lie below, cuts the rest off and syncs. A missing or damaged file is cut to what is
 * sound. */
STATUS_MUST_CHECK
enum status index_file_cut(struct file_system *fs, const char *path, enum index_kind kind,
                           int64_t segment_base, int64_t offset_delta, int64_t position,
                           uint32_t *blocks, struct error *error);
size_t index_block_bytes(enum index_kind kind);

#endif
