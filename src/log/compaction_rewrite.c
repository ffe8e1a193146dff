/* compaction_rewrite.c: one group of neighbouring segments, rewritten into one file.
 *
 * Everything goes to `<base>.log.cleaned`, `.index.cleaned` and `.timeindex.cleaned`, each synced,
 * and their names too; nothing else is touched. Groups come in offset order, so that a tombstone
 * goes only after the values it stands for have gone from the files before it. Thread: worker. */
#include <stdlib.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "log/compaction_work.h"

#define OUTPUT_BYTES (1024 * 1024)

/* The new file. */
struct output {
    struct compaction *compaction;
    struct file *file;
    struct buffer pending; /* not written yet */
    int64_t written;
    struct segment_index *index;
    bool changed;
};

/* ---- writing ---- */

static enum status output_flush(struct output *output, struct error *error)
{
    enum status status = compaction_failpoint("compaction.write", error);
    if (status == STATUS_OK && output->pending.bytes > 0) {
        status = file_write(output->file, output->pending.data, output->pending.bytes,
                            output->written, error);
    }
    output->written += (int64_t)output->pending.bytes;
    buffer_clear(&output->pending);
    return status;
}

/* Takes over one batch that is to stay. */
static enum status output_put(struct output *output, struct slice batch, struct error *error)
{
    struct compaction *compaction = output->compaction;
    struct segment_digest *digest = &compaction->digest;
    struct batch_header header;
    enum status status = batch_parse(batch.data, batch.bytes, true, &header, error);
    ASSERT(status == STATUS_OK && header.batch_bytes == batch.bytes);
    segment_index_note(output->index, digest->base_offset, header.base_offset, digest->bytes,
                       compaction->index_interval_bytes, digest->max_timestamp_ms,
                       digest->max_timestamp_offset);
    digest->crc = crc32c_extend(digest->crc, batch.data, batch.bytes);
    digest->bytes += (int64_t)batch.bytes;
    digest->end_offset = batch_last_offset(&header) + 1;
    if (digest->first_timestamp_ms < 0) digest->first_timestamp_ms = header.max_timestamp_ms;
    if (header.max_timestamp_ms > digest->max_timestamp_ms) {
        digest->max_timestamp_ms = header.max_timestamp_ms;
        digest->max_timestamp_offset = header.base_offset;
    }
    compaction->group_records_out += (uint32_t)header.record_count;
    buffer_put(&output->pending, batch.data, batch.bytes);
    if (buffer_failed(&output->pending)) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to write");
    }
    return output->pending.bytes >= OUTPUT_BYTES ? output_flush(output, error) : STATUS_OK;
}

/* ---- which records stay ---- */

struct keeping {
    struct compaction *compaction;
    bool aborted; /* the batch's transaction was given up */
    bool expired; /* its tombstones have been there long enough */
};

/* Nothing of what it deleted or ended is left here, but others may hold that. */
static void note_dropped(struct compaction *compaction, int64_t offset)
{
    if (compaction->group_dropped_to <= offset) compaction->group_dropped_to = offset + 1;
}

static bool keep_record(void *context, const struct record *record)
{
    const struct keeping *keeping = context;
    struct compaction *compaction = keeping->compaction;
    if (record->offset >= compaction->map_end) return true;
    if (record->offset < compaction->log_start || keeping->aborted || !record->has_key) {
        return false;
    }
    if (offset_map_get(compaction->map, record->key) > record->offset) return false;
    if (record->has_value || !keeping->expired ||
        record->offset >= compaction->request->copied_to) {
        return true;
    }
    note_dropped(compaction, record->offset);
    return false;
}

static int64_t new_horizon_ms(const struct compaction *compaction)
{
    int64_t horizon_ms;
    const struct log_compaction *request = compaction->request;
    if (request->now_ms == COMPACTION_NO_CLOCK) return BATCH_HORIZON_NONE;
    return __builtin_add_overflow(request->now_ms, request->delete_retention_ms, &horizon_ms)
               ? INT64_MAX
               : horizon_ms;
}

static bool horizon_has_passed(const struct compaction *compaction,
                               const struct batch_header *header)
{
    int64_t horizon_ms = batch_horizon_ms(header);
    return horizon_ms != BATCH_HORIZON_NONE && horizon_ms <= compaction->request->now_ms;
}

/* The batch is what was written (its CRC holds), but its records cannot be read or would not fit:
 * nobody had to read them when they came. It stays as it is. */
static bool stays_unread(enum status status)
{
    return status != STATUS_OK && status != STATUS_NO_MEMORY;
}

/* What batch_rewrite() made of the batch, or the batch itself. */
static enum status rewrite_put(struct output *output, struct batch_rewrite *rewrite,
                               const uint8_t *data, const struct batch_header *header,
                               struct error *error)
{
    struct buffer *batch = &output->compaction->batch;
    buffer_clear(batch);
    enum status status = batch_rewrite(rewrite, data, header->batch_bytes, batch, error);
    if (stays_unread(status)) {
        /* It may be an aborted transaction's, and is all the same to be found as such. */
        if ((header->attributes & BATCH_TRANSACTIONAL) != 0 &&
            header->base_offset < output->compaction->unread_from) {
            output->compaction->unread_from = header->base_offset;
        }
        return output_put(output, (struct slice){data, header->batch_bytes}, error);
    }
    if (status != STATUS_OK) return status;
    output->changed = output->changed || rewrite->changed;
    return batch->bytes > 0 ? output_put(output, buffer_slice(batch), error) : STATUS_OK;
}

static enum status rewrite_data(struct output *output, const uint8_t *data,
                                const struct batch_header *header, bool keep_header,
                                struct error *error)
{
    struct compaction *compaction = output->compaction;
    bool transactional = (header->attributes & BATCH_TRANSACTIONAL) != 0;
    bool kept_for_producer = compaction_keeps_offset(compaction, batch_last_offset(header));
    struct keeping keeping = {
        .compaction = compaction,
        .aborted = transactional &&
                   compaction_is_aborted(compaction, header->producer_id, header->base_offset),
        .expired = horizon_has_passed(compaction, header)};
    struct batch_rewrite rewrite = {.keep = keep_record,
                                    .context = &keeping,
                                    .keep_header = keep_header || kept_for_producer,
                                    .keep_max_timestamp = kept_for_producer,
                                    .horizon_ms = new_horizon_ms(compaction),
                                    .decompressed_bytes_max = BATCH_BYTES_MAX};
    int64_t before = compaction->digest.bytes;
    enum status status = rewrite_put(output, &rewrite, data, header, error);
    bool stays = compaction->digest.bytes > before;
    if (stays && transactional) compaction_note_ongoing(compaction, header->producer_id);
    return status;
}

static bool keep_all(void *context, const struct record *record)
{
    (void)context;
    (void)record;
    return true;
}
static bool keep_none(void *context, const struct record *record)
{
    (void)context;
    (void)record;
    return false;
}

/* A marker stays while a batch of its transaction is there, and then until its horizon. */
static enum status rewrite_marker(struct output *output, const uint8_t *data,
                                  const struct batch_header *header, bool keep_header,
                                  struct error *error)
{
    struct compaction *compaction = output->compaction;
    bool needed = compaction_end_ongoing(compaction, header->producer_id) ||
                  compaction_keeps_offset(compaction, batch_last_offset(header)) ||
                  batch_last_offset(header) >= compaction->map_end;
    bool goes = !needed && horizon_has_passed(compaction, header) &&
                batch_last_offset(header) < compaction->request->copied_to;
    if (goes) note_dropped(compaction, batch_last_offset(header));
    struct batch_rewrite rewrite = {.keep = goes ? keep_none : keep_all,
                                    .keep_header = keep_header,
                                    .horizon_ms =
                                        needed ? BATCH_HORIZON_NONE : new_horizon_ms(compaction),
                                    .horizon_always = true,
                                    .decompressed_bytes_max = BATCH_BYTES_MAX};
    return rewrite_put(output, &rewrite, data, header, error);
}

static enum status rewrite_batch(struct output *output, const uint8_t *data,
                                 const struct batch_header *header, bool last, struct error *error)
{
    struct compaction *compaction = output->compaction;
    /* A copy made of what is left learns from it where the epoch began (epoch ends decide what
     * others cut off). */
    bool begins = header->leader_epoch != compaction->last_epoch;
    compaction->last_epoch = header->leader_epoch;
    compaction->group_records_in += (uint32_t)header->record_count;
    if ((header->attributes & BATCH_CONTROL) != 0) {
        return rewrite_marker(output, data, header, last || begins, error);
    }
    if (header->base_offset < compaction->map_end) {
        return rewrite_data(output, data, header, last || begins, error);
    }
    if ((header->attributes & BATCH_TRANSACTIONAL) != 0) {
        compaction_note_ongoing(compaction, header->producer_id);
    }
    return output_put(output, (struct slice){data, header->batch_bytes}, error);
}

/* With `bytes` more in the new segment: does the next one belong in it? A full one cannot fit
 * behind anything, and yet will shrink: it may come, as long as less than half of a segment is
 * there. */
static bool group_goes_on(const struct compaction *compaction, uint32_t i, int64_t bytes)
{
    if (i + 1 == compaction->count) return false;
    const struct compaction_segment *next = &compaction->segments[i + 1];
    int64_t so_far = compaction->digest.bytes + bytes;
    bool fits = so_far + next->bytes <= compaction->segment_bytes ||
                (so_far < compaction->segment_bytes / 2 && so_far + next->bytes <= INT32_MAX);
    return fits && next->base_offset < compaction->map_end &&
           next->end_offset - compaction->digest.base_offset <= INT32_MAX;
}

/* *goes_on: the next one belongs to the group, too. Else the last batch stays, whatever it holds:
 * it tells where the segment ends. */
static enum status rewrite_segment(struct output *output, uint32_t i, bool *goes_on,
                                   struct error *error)
{
    struct compaction *compaction = output->compaction;
    const struct compaction_segment *segment = &compaction->segments[i];
    char path[SEGMENT_PATH_BYTES];
    struct file *file = NULL;
    struct segment_walk walk;
    struct batch_header header;
    const uint8_t *data;
    int64_t expected = segment->base_offset;
    segment_path(path, compaction->directory, segment->base_offset, ".log");
    enum status status = file_open(compaction->fs, path, FILE_READ, &file, error);
    if (status != STATUS_OK) return status;
    segment_walk_init(&walk, file, 0, segment->bytes, SEGMENT_WALK_BYTES);
    while ((status = segment_walk_batch(&walk, &header, &data, error)) == STATUS_OK) {
        if (compaction_is_cancelled(compaction)) {
            status = STATUS_CANCELLED;
            break;
        }
        status = compaction_check_place(compaction, i, &header, expected, error);
        if (status != STATUS_OK) break;
        bool last = walk.position + header.batch_bytes == segment->bytes;
        if (last) *goes_on = group_goes_on(compaction, i, header.batch_bytes);
        status = rewrite_batch(output, data, &header, last && !*goes_on, error);
        if (status != STATUS_OK) break;
        expected = batch_last_offset(&header) + 1;
        segment_walk_skip(&walk, &header);
    }
    if (status == STATUS_NOT_FOUND) status = STATUS_OK;
    if (status == STATUS_OK && expected != segment->end_offset) {
        status = error_set(error, STATUS_CORRUPT, "ends at offset %lld", (long long)expected);
    }
    if (status == STATUS_CORRUPT) {
        compaction_found_damage(compaction, i, &walk, expected);
        error_prefix(error, "%s", path);
    }
    segment_walk_deinit(&walk);
    file_close(file);
    return status;
}

/* ---- the group ---- */

static enum status output_sync(struct output *output, struct error *error)
{
    enum status status = output_flush(output, error);
    if (status == STATUS_OK) status = compaction_failpoint("compaction.sync", error);
    if (status == STATUS_OK && !MUTANT(20)) status = segment_sync_file(output->file, error);
    return status;
}

/* A hint, but it must not be the old one: none at all would do. */
static enum status output_write_index(struct output *output, enum index_kind kind,
                                      struct error *error)
{
    struct compaction *compaction = output->compaction;
    static const char *const suffixes[INDEX_KIND_COUNT] = {".index" CLEANED_SUFFIX,
                                                           ".timeindex" CLEANED_SUFFIX};
    struct buffer *blocks = &output->index->pending[kind];
    char path[SEGMENT_PATH_BYTES];
    struct file *file = NULL;
    compaction->digest.index_blocks[kind] = output->index->blocks[kind];
    if (blocks->bytes == 0) return STATUS_OK;
    segment_path(path, compaction->directory, compaction->digest.base_offset, suffixes[kind]);
    enum status status =
        file_open(compaction->fs, path, FILE_WRITE | FILE_CREATE | FILE_TRUNCATE, &file, error);
    if (status == STATUS_OK) status = file_write(file, blocks->data, blocks->bytes, 0, error);
    if (status == STATUS_OK && !MUTANT(20)) status = segment_sync_file(file, error);
    file_close(file);
    return status;
}

static enum status output_finish(struct output *output, struct error *error)
{
    struct compaction *compaction = output->compaction;
    uint32_t last = compaction->group_first + compaction->group_count - 1;
    struct segment_digest *digest = &compaction->digest;
    /* The last batch of a group stays, whatever it holds. */
    ASSERT(digest->end_offset == compaction->segments[last].end_offset);
    int64_t clean_to =
        compaction->map_end < digest->end_offset ? compaction->map_end : digest->end_offset;
    digest->clean_delta =
        clean_to > digest->base_offset ? (uint32_t)(clean_to - digest->base_offset) : 0;
    segment_index_seal(output->index, digest->base_offset);
    compaction->group_unchanged = compaction->group_count == 1 && !output->changed;
    if (compaction->group_unchanged) {
        for (int kind = 0; kind < INDEX_KIND_COUNT; kind++) {
            digest->index_blocks[kind] = output->index->blocks[kind];
        }
        return STATUS_OK;
    }
    enum status status = output_sync(output, error);
    for (int kind = 0; status == STATUS_OK && kind < INDEX_KIND_COUNT; kind++) {
        status = output_write_index(output, (enum index_kind)kind, error);
    }
    return status == STATUS_OK
               ? segment_sync_directory(compaction->fs, compaction->directory, error)
               : status;
}

enum status compaction_write_group(struct compaction *compaction, struct error *error)
{
    static const uint32_t no_blocks[INDEX_KIND_COUNT];
    char path[SEGMENT_PATH_BYTES];
    int64_t base = compaction->segments[compaction->next].base_offset;
    bool goes_on = true;
    compaction->group_first = compaction->next;
    compaction->group_count = 0;
    compaction->group_records_in = compaction->group_records_out = 0;
    compaction->group_dropped_to = 0;
    compaction->digest = (struct segment_digest){.base_offset = base,
                                                 .end_offset = base,
                                                 .first_timestamp_ms = -1,
                                                 .max_timestamp_ms = -1,
                                                 .max_timestamp_offset = base};
    struct output output = {.compaction = compaction};
    segment_path(path, compaction->directory, base, ".log" CLEANED_SUFFIX);
    enum status status = file_open(compaction->fs, path, FILE_WRITE | FILE_CREATE | FILE_TRUNCATE,
                                   &output.file, error);
    if (status != STATUS_OK) return status;
    buffer_init(&output.pending, 0);
    output.index = segment_index_new(no_blocks);
    while (status == STATUS_OK && goes_on) {
        compaction->group_count++;
        status = rewrite_segment(&output, compaction->next++, &goes_on, error);
    }
    if (status == STATUS_OK) status = output_finish(&output, error);
    segment_index_free(output.index);
    buffer_deinit(&output.pending);
    file_close(output.file);
    return status;
}
