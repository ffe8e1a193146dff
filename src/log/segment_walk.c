/* segment_walk.c: see segment_walk.h. */
#include "log/segment_walk.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

void segment_walk_init(struct segment_walk *walk, struct file *file, int64_t position, int64_t end,
                       size_t read_bytes)
{
    *walk = (struct segment_walk){
        .file = file, .position = position, .end = end, .read_bytes = read_bytes};
}

void segment_walk_deinit(struct segment_walk *walk)
{
    free(walk->window);
    walk->window = NULL;
}

static enum status segment_walk_reserve(struct segment_walk *walk, size_t bytes,
                                        struct error *error)
{
    if (walk->window_capacity >= bytes) return STATUS_OK;
    free(walk->window);
    walk->window_bytes = 0;
    walk->window_capacity = 0;
    walk->window = malloc(bytes);
    if (walk->window == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a batch of %zu bytes", bytes);
    }
    walk->window_capacity = bytes;
    return STATUS_OK;
}

/* Makes `bytes` at `position` part of the window. STATUS_NOT_FOUND: the file is shorter. */
static enum status segment_walk_fill(struct segment_walk *walk, size_t bytes, struct error *error)
{
    int64_t have_to = walk->window_at + (int64_t)walk->window_bytes;
    if (walk->position >= walk->window_at && walk->position + (int64_t)bytes <= have_to) {
        return STATUS_OK;
    }
    size_t want = bytes > walk->read_bytes ? bytes : walk->read_bytes;
    if ((int64_t)want > walk->end - walk->position) want = (size_t)(walk->end - walk->position);
    enum status status = segment_walk_reserve(walk, want, error);
    if (status != STATUS_OK) return status;
    walk->window_at = walk->position;
    walk->window_bytes = 0;
    status = file_read(walk->file, walk->window, want, walk->position, &walk->window_bytes, error);
    if (status != STATUS_OK) {
        walk->window_bytes = 0;
        return status;
    }
    return walk->window_bytes >= bytes ? STATUS_OK : STATUS_NOT_FOUND;
}

static const uint8_t *segment_walk_here(const struct segment_walk *walk)
{
    return walk->window + (walk->position - walk->window_at);
}

static enum status segment_walk_cut_short(struct segment_walk *walk, struct error *error)
{
    return error_set(error, STATUS_CORRUPT, "position %lld: cut short", (long long)walk->position);
}

enum status segment_walk_header(struct segment_walk *walk, struct batch_header *out,
                                struct error *error)
{
    if (walk->position >= walk->end) return STATUS_NOT_FOUND;
    if (walk->end - walk->position < BATCH_HEADER_BYTES) return segment_walk_cut_short(walk, error);
    enum status status = segment_walk_fill(walk, BATCH_HEADER_BYTES, error);
    if (status == STATUS_NOT_FOUND) return segment_walk_cut_short(walk, error);
    if (status != STATUS_OK) return status;
    status = batch_parse(segment_walk_here(walk), BATCH_HEADER_BYTES, false, out, error);
    if (status != STATUS_OK) {
        error_prefix(error, "position %lld", (long long)walk->position);
        return STATUS_CORRUPT;
    }
    if (out->batch_bytes > walk->end - walk->position) return segment_walk_cut_short(walk, error);
    return STATUS_OK;
}

enum status segment_walk_batch(struct segment_walk *walk, struct batch_header *out,
                               const uint8_t **data, struct error *error)
{
    enum status status = segment_walk_header(walk, out, error);
    if (status != STATUS_OK) return status;
    status = segment_walk_fill(walk, out->batch_bytes, error);
    if (status == STATUS_NOT_FOUND) return segment_walk_cut_short(walk, error);
    if (status != STATUS_OK) return status;
    *data = segment_walk_here(walk);
    if (!batch_crc_matches(*data, out)) {
        return error_set(error, STATUS_CORRUPT, "position %lld: offset %lld: CRC does not match",
                         (long long)walk->position, (long long)out->base_offset);
    }
    return STATUS_OK;
}

enum status segment_walk_zeros(struct file *file, int64_t position, int64_t end, int64_t *last_byte,
                               struct error *error)
{
    enum { STEP = 256 * 1024 };
    uint8_t *window = malloc(STEP);
    *last_byte = position;
    if (window == NULL) return error_set(error, STATUS_NO_MEMORY, "no memory to read");
    enum status status = STATUS_OK;
    while (status == STATUS_OK && position < end) {
        size_t got = 0;
        size_t want = end - position < STEP ? (size_t)(end - position) : STEP;
        status = file_read(file, window, want, position, &got, error);
        if (status != STATUS_OK || got == 0) break;
        for (size_t i = got; i > 0; i--) {
            if (window[i - 1] == 0) continue;
            *last_byte = position + (int64_t)i;
            break;
        }
        position += (int64_t)got;
    }
    free(window);
    return status;
}

/* Is there a whole valid batch at the walk's position, with a base offset in the range? */
static enum status segment_walk_try(struct segment_walk *walk, int64_t offset_min,
                                    int64_t offset_max, int64_t *offset)
{
    struct batch_header header;
    const uint8_t *data;
    enum status status = segment_walk_header(walk, &header, NULL);
    if (status == STATUS_OK &&
        (header.base_offset < offset_min || header.base_offset > offset_max)) {
        return STATUS_CORRUPT;
    }
    if (status == STATUS_OK) status = segment_walk_batch(walk, &header, &data, NULL);
    if (status == STATUS_OK) *offset = header.base_offset;
    return status;
}

enum status segment_walk_resume(struct file *file, int64_t from, int64_t end, int64_t offset_min,
                                int64_t offset_max, int64_t *position, int64_t *offset,
                                struct error *error)
{
    struct segment_walk walk;
    enum status status = STATUS_NOT_FOUND;
    segment_walk_init(&walk, file, from, end, SEGMENT_WALK_BYTES);
    for (; walk.end - walk.position >= BATCH_HEADER_BYTES; walk.position++) {
        status = segment_walk_try(&walk, offset_min, offset_max, offset);
        if (status != STATUS_CORRUPT) break;
        status = STATUS_NOT_FOUND;
    }
    *position = walk.position;
    segment_walk_deinit(&walk);
    if (status == STATUS_IO)
        error_set(error, status, "read failed behind position %lld", (long long)from);
    return status;
}
