/* segment_walk.h: the batches of one segment file, one after another, through a window.
 *
 * Nothing is believed: a length is checked against where the walk ends before memory is taken for
 * it. Thread: worker (reads block). */
#ifndef MOONMQ_LOG_SEGMENT_WALK_H
#define MOONMQ_LOG_SEGMENT_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/file_system.h"
#include "record/batch.h"

/* Read ahead: much for walks that need every byte, little for those that hop from header to header.
 */
#define SEGMENT_WALK_BYTES   (256 * 1024)
#define SEGMENT_HEADER_BYTES (16 * 1024)

struct segment_walk {
    struct file *file;
    int64_t position;  /* of the next batch */
    int64_t end;       /* no batch reaches past this */
    size_t read_bytes; /* read ahead at least so much */
    uint8_t *window;
    size_t window_bytes, window_capacity;
    int64_t window_at; /* position of window[0] */
};

void segment_walk_init(struct segment_walk *walk, struct file *file, int64_t position, int64_t end,
                       size_t read_bytes);
void segment_walk_deinit(struct segment_walk *walk);

/* The header at `position`. STATUS_NOT_FOUND: at the end. STATUS_CORRUPT: no batch there. */
STATUS_MUST_CHECK
enum status segment_walk_header(struct segment_walk *walk, struct batch_header *out,
                                struct error *error);
/* The whole batch at `position`, CRC checked; *data is valid until the next call. */
STATUS_MUST_CHECK
enum status segment_walk_batch(struct segment_walk *walk, struct batch_header *out,
                               const uint8_t **data, struct error *error);
static inline void segment_walk_skip(struct segment_walk *walk, const struct batch_header *header)
{
    walk->position += header->batch_bytes;
}

/* Is [position, file end) all zeros? *last_byte: one past the last that is not. */
STATUS_MUST_CHECK
enum status segment_walk_zeros(struct file *file, int64_t position, int64_t end, int64_t *last_byte,
                               struct error *error);

/* The first place in [from, end) where a whole valid batch lies whose base offset is within
 * [offset_min, offset_max]: where to go on behind damage. STATUS_NOT_FOUND: none. */
STATUS_MUST_CHECK
enum status segment_walk_resume(struct file *file, int64_t from, int64_t end, int64_t offset_min,
                                int64_t offset_max, int64_t *position, int64_t *offset,
                                struct error *error);

#endif
