/* cold_read.c: see cold_read.h. */
#include "log/cold_read.h"

#include <string.h>

#include "base/mutant.h"
#include "log/segment_walk.h"
#include "record/batch.h"

void cold_range_look_up(struct file_system *fs, const char *directory, struct cold_range *range)
{
    char path[SEGMENT_PATH_BYTES];
    struct index_entry entry;
    struct file *file = NULL;
    segment_path(path, directory, range->segment_base, index_suffix(INDEX_OFFSETS));
    if (file_open(fs, path, FILE_READ, &file, NULL) != STATUS_OK) return;
    if (index_file_find(file, INDEX_OFFSETS, range->segment_base, false,
                        range->offset - range->segment_base, &entry, NULL) == STATUS_OK &&
        entry.value > range->start_position && entry.value < range->end_position) {
        range->start_position = entry.value;
        range->start_offset = range->segment_base + entry.key;
    }
    file_close(file);
}

/* Is the batch in its place? These fields are not under its CRC. */
static bool cold_range_fits(const struct cold_range *range, const struct batch_header *header,
                            int64_t expected)
{
    bool in_place = range->gaps ? header->base_offset >= expected : header->base_offset == expected;
    if (!in_place && !MUTANT(31)) return false;
    if (batch_last_offset(header) >= range->end_offset) return false;
    int32_t epoch = epoch_history_at(range->epochs, header->base_offset);
    return header->leader_epoch == -1 || epoch == -1 || epoch == header->leader_epoch;
}

/* Damage at the walk's position, where `*expected` should be. On behind it, unless it holds what is
 * wanted. */
static enum status cold_range_step_over(struct cold_range *range, struct segment_walk *walk,
                                        int64_t *expected, struct error *error)
{
    int64_t position = 0, offset = 0;
    enum status status =
        segment_walk_resume(walk->file, walk->position + 1, walk->end, *expected + 1,
                            range->end_offset - 1, &position, &offset, NULL);
    if (status != STATUS_OK && status != STATUS_NOT_FOUND) {
        return error_set(error, status, "read failed");
    }
    if (status == STATUS_NOT_FOUND || offset > range->offset) {
        range->bad_from = *expected;
        range->bad_to = status == STATUS_OK ? offset : range->end_offset;
        return error_set(error, STATUS_CORRUPT, "position %lld: no batch of offset %lld",
                         (long long)walk->position, (long long)*expected);
    }
    walk->position = position;
    *expected = offset;
    return STATUS_OK;
}

/* Places the walk at the hint, if the batch there is whole and the one meant; else at the front. */
static void cold_range_begin(const struct cold_range *range, struct segment_walk *walk,
                             int64_t *expected)
{
    struct batch_header header;
    const uint8_t *data;
    *expected = range->segment_base;
    if (walk->position == 0) return;
    if (segment_walk_batch(walk, &header, &data, NULL) == STATUS_OK &&
        header.base_offset == range->start_offset && header.base_offset <= range->offset) {
        *expected = header.base_offset;
    } else {
        walk->position = 0;
    }
}

/* Walks from the start to the batch that holds `offset`, or the first after it: start_position is
 * then exact, *expected the offset that follows the batch before it. Not `careful`: from header to
 * header, so that a damaged length leads astray; then it is done again, with every CRC checked on
 * the way. */
static enum status cold_range_seek(struct file *file, struct cold_range *range, bool careful,
                                   int64_t *expected, struct error *error)
{
    struct segment_walk walk;
    struct batch_header header;
    const uint8_t *data;
    enum status status;
    segment_walk_init(&walk, file, range->start_position, range->end_position,
                      careful ? SEGMENT_WALK_BYTES : SEGMENT_HEADER_BYTES);
    cold_range_begin(range, &walk, expected);
    for (;;) {
        status = careful ? segment_walk_batch(&walk, &header, &data, error)
                         : segment_walk_header(&walk, &header, error);
        if (status == STATUS_OK && !cold_range_fits(range, &header, *expected)) {
            status = STATUS_CORRUPT;
        }
        if (status == STATUS_CORRUPT && careful) {
            status = cold_range_step_over(range, &walk, expected, error);
            if (status == STATUS_OK) continue;
        }
        if (status != STATUS_OK || batch_last_offset(&header) >= range->offset) break;
        *expected = batch_last_offset(&header) + 1;
        segment_walk_skip(&walk, &header);
    }
    if (status != STATUS_CORRUPT) range->start_position = walk.position;
    segment_walk_deinit(&walk);
    return status;
}

/* Counts the leading batches of `data` that are whole, sound, in order and below the limit. */
static enum status cold_range_check(struct cold_range *range, const uint8_t *data, size_t bytes,
                                    int64_t expected, struct error *error)
{
    struct batch_header header;
    range->bytes = 0;
    while (range->bytes < bytes) {
        const uint8_t *at = data + range->bytes;
        enum status status = batch_parse(at, bytes - range->bytes, true, &header, error);
        if (status == STATUS_AGAIN) break;
        bool holds = status == STATUS_OK && cold_range_fits(range, &header, expected);
        if (holds && batch_last_offset(&header) >= range->limit_offset) break;
        if (!holds || !batch_crc_matches(at, &header)) {
            if (range->bytes > 0) break;
            return error_set(error, STATUS_CORRUPT, "position %lld: offset %lld: not as written",
                             (long long)range->start_position, (long long)expected);
        }
        expected = batch_last_offset(&header) + 1;
        range->next_offset = expected;
        range->bytes += header.batch_bytes;
    }
    range->next_position = range->start_position + range->bytes;
    return STATUS_OK;
}

static enum status cold_range_fetch(struct file *file, struct cold_range *range, size_t bytes,
                                    bool nowait, size_t *got, struct error *error)
{
    if ((int64_t)bytes > range->end_position - range->start_position) {
        bytes = (size_t)(range->end_position - range->start_position);
    }
    *got = 0;
    range->shared = shared_bytes_new(bytes);
    if (range->shared == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for %zu bytes", bytes);
    }
    enum status status =
        nowait
            ? file_read_nowait(file, range->shared->data, bytes, range->start_position, got, error)
            : file_read(file, range->shared->data, bytes, range->start_position, got, error);
    if (nowait && status == STATUS_OK && *got < bytes) status = STATUS_AGAIN;
    return status;
}

/* The length the first batch claims, if it is believable. */
static size_t cold_range_first_bytes(const struct cold_range *range, size_t got)
{
    struct batch_header header;
    if (batch_parse(range->shared->data, got, false, &header, NULL) != STATUS_OK) return 0;
    if (header.batch_bytes > range->end_position - range->start_position) return 0;
    return header.batch_bytes;
}

static void cold_range_drop(struct cold_range *range)
{
    shared_bytes_unref(range->shared);
    range->shared = NULL;
}

/* Reads at start_position, which is exact, and keeps what is sound. */
static enum status cold_range_take(struct file *file, struct cold_range *range, bool nowait,
                                   int64_t expected, struct error *error)
{
    size_t got = 0, want = range->bytes_max;
    range->bytes = 0;
    range->next_offset = range->offset;
    if (want < BATCH_HEADER_BYTES) want = BATCH_HEADER_BYTES;
    enum status status = cold_range_fetch(file, range, want, nowait, &got, error);
    if (status != STATUS_OK) return status;
    size_t first = cold_range_first_bytes(range, got);
    if (first > got && !range->at_least_one) return STATUS_OK;
    if (first > got) {
        cold_range_drop(range);
        status = cold_range_fetch(file, range, first, nowait, &got, error);
        if (status != STATUS_OK) return status;
    }
    if (first == 0 || first > got) {
        return error_set(error, STATUS_CORRUPT, "position %lld: no whole batch",
                         (long long)range->start_position);
    }
    return cold_range_check(range, range->shared->data, got, expected, error);
}

enum status cold_range_read(struct file *file, struct cold_range *range, bool nowait,
                            struct error *error)
{
    int64_t expected = range->start_offset, start_position = range->start_position;
    enum status status = STATUS_OK;
    if (nowait && !range->exact) return STATUS_AGAIN;
    if (!range->exact) status = cold_range_seek(file, range, false, &expected, error);
    if (status == STATUS_OK && range->start_position >= range->end_position) {
        status = STATUS_NOT_FOUND;
    }
    if (status == STATUS_OK) status = cold_range_take(file, range, nowait, expected, error);
    if (status == STATUS_CORRUPT && nowait) status = STATUS_AGAIN;
    if (status == STATUS_CORRUPT) {
        cold_range_drop(range);
        range->start_position = start_position;
        status = cold_range_seek(file, range, true, &expected, error);
        if (status == STATUS_OK) status = cold_range_take(file, range, false, expected, error);
    }
    if (status != STATUS_OK || range->bytes == 0) cold_range_drop(range);
    return status;
}
