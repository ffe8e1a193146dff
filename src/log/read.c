/* read.c: reading a log: from memory at once, from the page cache at once, else by a worker.
 *
 * A cold read remembers where it ended, so that a reader that goes on finds its place without the
 * index. A read that began before bytes were cut or removed starts anew when it comes back. Thread:
 * loop, but for read_run(). */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "log/cold_read.h"
#include "log/store_internal.h"
#include "record/batch.h"

#define NOWAIT_BYTES_MAX (128 * 1024) /* more is copied and summed on a worker */

/* A read on a worker. */
struct read_job {
    struct job job;
    struct partition_log *log;
    struct log_read *read;
    struct cold_range range;
    struct epoch_history epochs;
    struct open_file *open; /* a reference, or NULL */
    struct file *opened;    /* by the worker */
    uint32_t cut_generation;
    enum status status;
    struct error error;
};

void log_read_release(struct log_read *read)
{
    for (uint32_t i = 0; i < read->piece_count; i++) {
        shared_bytes_unref(read->pieces[i].shared);
    }
    read->piece_count = 0;
    read->bytes = 0;
}

static void read_add_piece(struct log_read *read, struct shared_bytes *shared, uint32_t at,
                           uint32_t bytes)
{
    ASSERT(read->piece_count < LOG_READ_PIECES_MAX);
    read->pieces[read->piece_count++] =
        (struct log_piece){.shared = shared, .at = at, .bytes = bytes};
    read->bytes += bytes;
}

static enum status read_set(struct log_read *read, enum status status, const char *name,
                            const char *what)
{
    read->status =
        error_set(&read->error, status, "%s: offset %lld: %s", name, (long long)read->offset, what);
    return status;
}

/* ---- from memory ---- */

/* Takes from one chunk what fits. False: the read is full or has reached its limit. */
static bool read_take_chunk(struct log_read *read, const struct cached_batches *chunk,
                            int64_t limit)
{
    struct batch_header header;
    uint32_t at = 0, from = UINT32_MAX;
    bool more = true;
    for (; at < chunk->bytes; at += header.batch_bytes) {
        enum status status =
            batch_parse(chunk->shared->data + at, chunk->bytes - at, true, &header, NULL);
        ASSERT(status == STATUS_OK);
        if (batch_last_offset(&header) < read->next_offset) continue;
        uint32_t taken = from == UINT32_MAX ? 0 : at - from;
        bool first = read->bytes + taken == 0;
        bool fits = read->bytes + taken + header.batch_bytes <= read->bytes_max ||
                    (first && read->at_least_one);
        if (batch_last_offset(&header) >= limit || !fits) {
            more = false;
            break;
        }
        if (from == UINT32_MAX) from = at;
        read->next_offset = batch_last_offset(&header) + 1;
    }
    if (from != UINT32_MAX) {
        read_add_piece(read, shared_bytes_ref(chunk->shared), from, at - from);
    }
    return more;
}

static bool read_takes_whole(const struct log_read *read, const struct cached_batches *chunk,
                             int64_t limit)
{
    return chunk->base_offset >= read->next_offset && chunk->end_offset <= limit &&
           read->bytes + chunk->bytes <= read->bytes_max;
}

static void read_from_memory(struct partition_log *log, struct log_read *read, uint32_t index,
                             int64_t limit)
{
    for (; index < log->ring_count && read->piece_count < LOG_READ_PIECES_MAX; index++) {
        const struct cached_batches *chunk = cache_at(log, index);
        if (read_takes_whole(read, chunk, limit)) {
            read_add_piece(read, shared_bytes_ref(chunk->shared), 0, chunk->bytes);
            read->next_offset = chunk->end_offset;
        } else if (!read_take_chunk(read, chunk, limit)) {
            return;
        }
    }
}

/* ---- from disk ---- */

static void hint_remember(struct partition_log *log, int64_t segment_base, int64_t offset,
                          int64_t position)
{
    if (log->hints == NULL) {
        log->hints = memory_new(READ_HINTS * sizeof(*log->hints));
        for (uint32_t i = 0; i < READ_HINTS; i++) {
            log->hints[i].offset = -1;
        }
    }
    log->hints[log->next_hint] =
        (struct read_hint){.offset = offset, .segment_base = segment_base, .position = position};
    log->next_hint = (log->next_hint + 1) % READ_HINTS;
}

/* Where to begin: after the last read of this reader, at an index entry in memory, or at the start.
 */
static void range_find_start(const struct partition_log *log, const struct segment *segment,
                             struct cold_range *range)
{
    struct index_entry entry;
    for (uint32_t i = 0; log->hints != NULL && i < READ_HINTS; i++) {
        const struct read_hint *hint = &log->hints[i];
        if (hint->offset != range->offset || hint->segment_base != segment->base_offset) continue;
        range->start_position = hint->position;
        range->start_offset = hint->offset;
        range->exact = true;
        return;
    }
    if (range->offset == segment->base_offset) {
        range->start_offset = segment->base_offset;
        range->exact = true;
    } else if (segment->index != NULL &&
               segment_index_find(segment->index, INDEX_OFFSETS, false,
                                  range->offset - segment->base_offset, &entry) &&
               entry.value < segment->durable_bytes) {
        range->start_position = entry.value;
        range->start_offset = segment->base_offset + entry.key;
    }
}

static struct cold_range read_range(const struct partition_log *log, const struct segment *segment,
                                    const struct log_read *read, int64_t limit)
{
    struct cold_range range = {.segment_base = segment->base_offset,
                               .end_position = segment->durable_bytes,
                               .end_offset = segment->durable_offset,
                               .start_offset = -1,
                               .offset = read->next_offset,
                               .limit_offset = limit,
                               .bytes_max = read->bytes_max,
                               .at_least_one = read->at_least_one,
                               .gaps = log->config.compacted || !log->config.delete_old};
    range.epochs = &log->epochs;
    range_find_start(log, segment, &range);
    return range;
}

/* Puts what was read into the read. */
static void read_take_range(struct partition_log *log, struct log_read *read,
                            struct cold_range *range)
{
    read->next_offset = range->next_offset;
    log->store->stats.cold_reads++;
    if (range->shared == NULL) return;
    read_add_piece(read, range->shared, 0, range->bytes);
    range->shared = NULL;
    if (range->next_position < range->end_position) {
        hint_remember(log, range->segment_base, range->next_offset, range->next_position);
    }
}

static void read_job_free(struct read_job *work)
{
    epoch_history_deinit(&work->epochs);
    shared_bytes_unref(work->range.shared);
    free(work);
}

static void read_run(struct job *job)
{
    struct read_job *work = CONTAINER_OF(job, struct read_job, job);
    struct log_store *store = work->log->store;
    struct cold_range *range = &work->range;
    char directory[LOG_DIRECTORY_BYTES], path[SEGMENT_PATH_BYTES];
    struct file *file = work->open == NULL ? NULL : work->open->file;
    log_directory(directory, store, work->log->topic, work->log->partition);
    if (file == NULL) {
        segment_path(path, directory, range->segment_base, ".log");
        work->status = file_open(store->options.fs, path, FILE_READ, &work->opened, &work->error);
        if (work->status != STATUS_OK) return;
        file = work->opened;
    }
    if (!range->exact && range->start_position == 0) {
        cold_range_look_up(store->options.fs, directory, range);
    }
    work->status = cold_range_read(file, range, false, &work->error);
}

static enum status read_go_on(struct partition_log *log, struct log_read *read);

/* A range that cannot be read: quarantined, said and counted. */
static void read_found_corrupt(struct partition_log *log, struct log_read *read,
                               const struct read_job *work)
{
    log->store->stats.corrupt_ranges++;
    log_error("corrupt_range partition=%s segment=%lld from=%lld to=%lld error=\"%s\"", log->name,
              (long long)work->range.segment_base, (long long)work->range.bad_from,
              (long long)work->range.bad_to, work->error.text);
    log_quarantine(log, work->range.bad_from, work->range.bad_to);
    read_set(read, STATUS_CORRUPT, log->name, "damaged on disk");
}

/* Nothing from the read's offset to the end of what is durable of the segment: on to what follows
 * it. */
static enum status read_step_over_gap(struct partition_log *log, struct log_read *read,
                                      const struct segment *segment)
{
    int64_t next = segment->durable_offset;
    if (next <= read->next_offset && log->ring_count > 0) next = cache_at(log, 0)->base_offset;
    if (next <= read->next_offset) return STATUS_OK;
    read->next_offset = next;
    return read_go_on(log, read);
}

static void read_finish(struct log_read *read)
{
    read->private_state = NULL;
    read->done(read->context, read);
}

static void read_done(struct job *job)
{
    struct read_job *work = CONTAINER_OF(job, struct read_job, job);
    struct partition_log *log = work->log;
    struct log_read *read = work->read;
    struct segment *segment = log_segment_of(log, work->range.segment_base);
    bool changed = log->cut_generation != work->cut_generation;
    bool same = segment != NULL && segment->base_offset == work->range.segment_base && !changed;
    bool had_file = work->open != NULL || work->opened != NULL;
    open_file_release(log->store, work->open);
    open_file_install(log->store, same ? segment : NULL, work->opened, false);
    enum status status = STATUS_OK;
    if (log->dropped || read->cancelled) {
        read_set(read, STATUS_CANCELLED, log->name, "cancelled");
    } else if (!same) {
        /* Bytes or files went meanwhile: whatever came of it, ask again. */
        status = read_go_on(log, read);
    } else if (work->status == STATUS_CORRUPT) {
        read_found_corrupt(log, read, work);
    } else if (work->status == STATUS_NOT_FOUND && had_file) {
        status = read_step_over_gap(log, read, segment);
    } else if (work->status != STATUS_OK) {
        read->status = work->status == STATUS_NO_MEMORY ? STATUS_NO_MEMORY : STATUS_IO;
        read->error = work->error;
        error_prefix(&read->error, "%s", log->name);
    } else {
        read_take_range(log, read, &work->range);
    }
    read_job_free(work);
    if (status != STATUS_AGAIN) read_finish(read);
    log_job_ended(log, false);
}

static void read_submit(struct partition_log *log, struct segment *segment, struct log_read *read,
                        const struct cold_range *range)
{
    struct read_job *work = memory_new(sizeof(*work));
    work->job = (struct job){.run = read_run, .done = read_done};
    work->log = log;
    work->read = read;
    work->range = *range;
    epoch_history_init(&work->epochs);
    epoch_history_copy(&work->epochs, &log->epochs);
    work->range.epochs = &work->epochs;
    work->open = open_file_take(log->store, segment, false);
    work->cut_generation = log->cut_generation;
    read->private_state = work;
    log_job_began(log, false);
    executor_submit(log->store->options.executor, EXECUTOR_LANE_BACKGROUND, &work->job);
}

/* A read that came while files were changing their content. */
struct parked_read {
    struct partition_log *log;
    struct log_read *read;
};

static void read_resume(void *context)
{
    struct parked_read parked = *(struct parked_read *)context;
    enum status status = STATUS_OK;
    free(context);
    if (parked.log->dropped || parked.read->cancelled) {
        read_set(parked.read, STATUS_CANCELLED, parked.log->name, "cancelled");
    } else {
        status = read_go_on(parked.log, parked.read);
    }
    if (status != STATUS_AGAIN) read_finish(parked.read);
}

static void read_park(struct partition_log *log, struct log_read *read)
{
    struct parked_read *parked = memory_new(sizeof(*parked));
    *parked = (struct parked_read){.log = log, .read = read};
    read->private_state = parked;
    compaction_await_swap(log, read_resume, parked);
}

static enum status read_from_disk(struct partition_log *log, struct log_read *read, int64_t limit)
{
    if (log->swapping) {
        read_park(log, read);
        return STATUS_AGAIN;
    }
    struct segment *segment = log_segment_of(log, read->next_offset);
    if (segment == NULL) return read_set(read, STATUS_OUT_OF_RANGE, log->name, "not in the log");
    struct cold_range range = read_range(log, segment, read, limit);
    if (segment->open != NULL && range.exact && read->bytes_max <= NOWAIT_BYTES_MAX) {
        enum status status = cold_range_read(segment->open->file, &range, true, &read->error);
        if (status == STATUS_OK) {
            read_take_range(log, read, &range);
            return STATUS_OK;
        }
        range.shared = NULL;
    }
    read_submit(log, segment, read, &range);
    return STATUS_AGAIN;
}

/* ---- where to ---- */

/* The range of damage at or after `offset`. */
static const struct offset_range *read_damage(const struct partition_log *log, int64_t offset)
{
    for (uint32_t i = 0; i < log->quarantine_count; i++) {
        if (log->quarantine[i].to > offset) return &log->quarantine[i];
    }
    return NULL;
}

/* STATUS_OK: filled. STATUS_AGAIN: a worker is at it. Others: refused. */
static enum status read_go_on(struct partition_log *log, struct log_read *read)
{
    uint32_t index;
    int64_t limit = read->limit_offset < log->log_end ? read->limit_offset : log->log_end;
    read->status = STATUS_OK;
    if (read->next_offset < log->log_start || read->next_offset > log->log_end) {
        return read_set(read, STATUS_OUT_OF_RANGE, log->name, "not in the log");
    }
    if (log->failed && log->durable < limit) {
        limit = log->durable;
        if (read->next_offset >= limit && read->next_offset < log->log_end) {
            return read_set(read, STATUS_STORAGE_ERROR, log->name, "this copy has failed");
        }
    }
    if (limit > log->read_limit) limit = log->read_limit;
    const struct offset_range *damage = read_damage(log, read->next_offset);
    if (damage != NULL && damage->from <= read->next_offset && damage->from < limit) {
        return read_set(read, STATUS_CORRUPT, log->name, "damaged on disk");
    }
    if (damage != NULL && damage->from < limit) limit = damage->from;
    if (read->next_offset >= limit) return STATUS_OK;
    if (cache_find(log, read->next_offset, &index)) {
        read_from_memory(log, read, index, limit);
        return STATUS_OK;
    }
    return read_from_disk(log, read, limit);
}

enum status partition_log_read(struct partition_log *log, struct log_read *read)
{
    read->status = STATUS_OK;
    read->error = (struct error){0};
    read->piece_count = 0;
    read->bytes = 0;
    read->next_offset = read->offset;
    read->cancelled = false;
    read->private_state = NULL;
    return read_go_on(log, read);
}
