/* cold_read.h: reading batches from a segment file: what the loop may do without waiting, and what
 * a worker does. Every batch that is given out had its CRC and its place checked. */
#ifndef MOONMQ_LOG_COLD_READ_H
#define MOONMQ_LOG_COLD_READ_H

#include "base/shared_bytes.h"
#include "io/file_system.h"
#include "log/epoch_history.h"
#include "log/segment.h"

/* What to read and what came of it. Thread: whoever runs it. */
struct cold_range {
    /* in */
    int64_t segment_base;
    int64_t end_position, end_offset; /* of what is durable in the segment */
    int64_t start_position;           /* of a batch at or before `offset`; 0 is always one */
    int64_t start_offset;             /* the base offset of that batch, to verify; -1: any */
    bool exact; /* the batch at start_position is the one that holds `offset` */
    int64_t offset, limit_offset;
    uint32_t bytes_max;
    bool at_least_one;
    bool gaps;                          /* offsets need not be contiguous (a compacted topic) */
    const struct epoch_history *epochs; /* batches agree with it, where it reaches */
    /* out */
    struct shared_bytes *shared; /* NULL: no batch below the limit */
    uint32_t bytes;
    int64_t next_offset, next_position;
    int64_t bad_from, bad_to; /* STATUS_CORRUPT: offsets that can't be read */
};

/* `nowait`: STATUS_AGAIN if a byte is not in memory, or the place is not exactly known.
 * STATUS_NOT_FOUND: no batch at or after `offset` in this segment. */
STATUS_MUST_CHECK
enum status cold_range_read(struct file *file, struct cold_range *range, bool nowait,
                            struct error *error);
/* Worker: improves start_position by the segment's index file. */
void cold_range_look_up(struct file_system *fs, const char *directory, struct cold_range *range);

#endif
