/* time_lookup.c: offsets by timestamp. What is durable is searched by a worker, with the time index
 * as a hint where to begin; what is not yet, in memory, when the worker is done.
 *
 * The exact record is found by iterating its batch. Damage is stepped over: the rest answers.
 * Thread: loop, but for lookup_run() and what it calls.                                        */
#include <stdlib.h>

#include "base/assert.h"
#include "base/memory.h"
#include "log/segment_walk.h"
#include "log/store_internal.h"
#include "record/batch.h"

/* A segment as it was when the look-up began. */
struct lookup_segment {
    int64_t base_offset, end_offset, bytes;
    int64_t max_timestamp_ms, max_timestamp_offset;
    int64_t start_position, start_offset; /* a batch to begin at, from memory; -1: none known */
    bool searched;
};

struct lookup_job {
    struct job job;
    struct partition_log *log;
    struct log_time_lookup *lookup;
    int64_t timestamp_ms, limit_offset, log_start;
    bool want_max;
    struct lookup_segment *segments;
    uint32_t segment_count;
    int64_t durable; /* memory is searched from here on */
    uint32_t cut_generation;
    /* the answer so far */
    int64_t found_offset, found_timestamp_ms;
    int32_t found_epoch;
    enum status status;
    struct error error;
};

/* Of equal largest timestamps the first counts. */
static bool lookup_improves(const struct lookup_job *work, int64_t timestamp_ms, int64_t offset)
{
    return timestamp_ms > work->found_timestamp_ms ||
           (timestamp_ms == work->found_timestamp_ms && offset < work->found_offset);
}

/* Is this record a better answer than the one so far? */
static bool lookup_wants(const struct lookup_job *work, const struct record *record)
{
    if (record->offset < work->log_start) return false;
    if (!work->want_max) return record->timestamp_ms >= work->timestamp_ms;
    return lookup_improves(work, record->timestamp_ms, record->offset);
}

/* Looks into one batch for a better answer. Its header names the largest timestamp it ever held:
 * compaction may have taken that record. */
static enum status lookup_batch(struct lookup_job *work, const uint8_t *data,
                                const struct batch_header *header, struct error *error)
{
    struct record_iterator iterator;
    struct record record;
    if (header->attributes & BATCH_CONTROL) return STATUS_OK;
    bool may_hold = work->want_max
                        ? lookup_improves(work, header->max_timestamp_ms, header->base_offset)
                        : header->max_timestamp_ms >= work->timestamp_ms;
    if (!may_hold) return STATUS_OK;
    enum status status =
        record_iterator_init(&iterator, data, header->batch_bytes, BATCH_BYTES_MAX, error);
    if (status != STATUS_OK) return status;
    while ((status = record_iterator_next(&iterator, &record, error)) == STATUS_OK) {
        if (!lookup_wants(work, &record)) continue;
        work->found_offset = record.offset;
        work->found_timestamp_ms = record.timestamp_ms;
        work->found_epoch = header->leader_epoch;
        if (!work->want_max) break;
    }
    record_iterator_deinit(&iterator);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* Walks a segment from `walk->position` on, until the answer is there or the limit reached. */
static enum status lookup_walk(struct lookup_job *work, const struct lookup_segment *segment,
                               struct segment_walk *walk)
{
    struct batch_header header;
    const uint8_t *data;
    for (;;) {
        enum status status = segment_walk_batch(walk, &header, &data, &work->error);
        if (status == STATUS_NOT_FOUND) return STATUS_OK;
        if (status == STATUS_CORRUPT) {
            int64_t position, offset;
            status =
                segment_walk_resume(walk->file, walk->position + 1, walk->end, segment->base_offset,
                                    segment->end_offset, &position, &offset, &work->error);
            walk->position = position;
            if (status == STATUS_NOT_FOUND) return STATUS_OK;
            if (status == STATUS_OK) continue;
        }
        if (status != STATUS_OK) return status;
        if (batch_last_offset(&header) >= work->limit_offset) return STATUS_OK;
        status = lookup_batch(work, data, &header, &work->error);
        if (status != STATUS_OK && status != STATUS_CORRUPT) return status;
        if (work->found_offset >= 0 && !work->want_max) return STATUS_OK;
        segment_walk_skip(walk, &header);
    }
}

/* One entry of an index file; false if there is none to be had. */
static bool lookup_index(struct log_store *store, const char *directory, int64_t base_offset,
                         enum index_kind kind, int64_t wanted, struct index_entry *entry)
{
    char path[SEGMENT_PATH_BYTES];
    struct file *file = NULL;
    segment_path(path, directory, base_offset, index_suffix(kind));
    if (file_open(store->options.fs, path, FILE_READ, &file, NULL) != STATUS_OK) return false;
    enum status status = index_file_find(file, kind, base_offset, false, wanted, entry, NULL);
    file_close(file);
    return status == STATUS_OK;
}

/* Every batch before the start has timestamps below the wanted one. */
static void lookup_find_start(struct lookup_job *work, const char *directory,
                              struct lookup_segment *segment)
{
    struct log_store *store = work->log->store;
    struct index_entry entry;
    int64_t offset = segment->start_offset;
    if (segment->start_position >= 0) return;
    if (work->want_max) {
        bool counts = segment->end_offset <= work->limit_offset;
        offset = counts ? segment->max_timestamp_offset : segment->base_offset;
    } else if (offset < 0) {
        offset = segment->base_offset;
        if (lookup_index(store, directory, segment->base_offset, INDEX_TIMES,
                         work->timestamp_ms - 1, &entry)) {
            offset += entry.value;
        }
    }
    segment->start_position = 0;
    if (offset > segment->base_offset &&
        lookup_index(store, directory, segment->base_offset, INDEX_OFFSETS,
                     offset - segment->base_offset, &entry)) {
        segment->start_position = entry.value;
        segment->start_offset = segment->base_offset + entry.key;
    }
}

/* A hint must name a batch; else the walk begins at the front. */
static void lookup_verify_start(const struct lookup_segment *segment, struct segment_walk *walk)
{
    struct batch_header header;
    const uint8_t *data;
    if (walk->position == 0) return;
    if (walk->position < walk->end && segment_walk_batch(walk, &header, &data, NULL) == STATUS_OK &&
        header.base_offset == segment->start_offset) {
        return;
    }
    walk->position = 0;
}

static enum status lookup_segment(struct lookup_job *work, const char *directory,
                                  struct lookup_segment *segment)
{
    char path[SEGMENT_PATH_BYTES];
    struct file *file = NULL;
    struct segment_walk walk;
    segment->searched = true;
    lookup_find_start(work, directory, segment);
    segment_path(path, directory, segment->base_offset, ".log");
    enum status status =
        file_open(work->log->store->options.fs, path, FILE_READ, &file, &work->error);
    /* Retention may have taken it meanwhile. */
    if (status == STATUS_NOT_FOUND) return STATUS_OK;
    if (status != STATUS_OK) return status;
    segment_walk_init(&walk, file, segment->start_position, segment->bytes, SEGMENT_WALK_BYTES);
    lookup_verify_start(segment, &walk);
    status = lookup_walk(work, segment, &walk);
    segment_walk_deinit(&walk);
    file_close(file);
    return status;
}

/* The segment to search next for the largest timestamp: the one that claims most, the earlier if
 * equal. */
static struct lookup_segment *lookup_most_promising(struct lookup_job *work)
{
    struct lookup_segment *best = NULL;
    for (uint32_t i = 0; i < work->segment_count; i++) {
        struct lookup_segment *segment = &work->segments[i];
        if (segment->searched) continue;
        if (!lookup_improves(work, segment->max_timestamp_ms, segment->base_offset)) continue;
        if (best == NULL || segment->max_timestamp_ms > best->max_timestamp_ms) best = segment;
    }
    return best;
}

static void lookup_run(struct job *job)
{
    struct lookup_job *work = CONTAINER_OF(job, struct lookup_job, job);
    char directory[LOG_DIRECTORY_BYTES];
    log_directory(directory, work->log->store, work->log->topic, work->log->partition);
    if (work->want_max) {
        struct lookup_segment *segment;
        while (work->status == STATUS_OK && (segment = lookup_most_promising(work)) != NULL) {
            work->status = lookup_segment(work, directory, segment);
            /* What it claims is not there any more: then what lies before counts as well. */
            if (work->status == STATUS_OK && segment->start_position > 0 &&
                work->found_timestamp_ms < segment->max_timestamp_ms) {
                segment->start_position = 0;
                work->status = lookup_segment(work, directory, segment);
            }
        }
        return;
    }
    for (uint32_t i = 0; i < work->segment_count && work->found_offset < 0; i++) {
        struct lookup_segment *segment = &work->segments[i];
        if (segment->max_timestamp_ms < work->timestamp_ms) continue;
        if (segment->base_offset >= work->limit_offset) break;
        work->status = lookup_segment(work, directory, segment);
        if (work->status != STATUS_OK) return;
    }
}

/* What was not durable when the look-up began. */
static void lookup_memory(struct lookup_job *work)
{
    struct partition_log *log = work->log;
    struct batch_header header;
    for (uint32_t i = 0; i < log->ring_count; i++) {
        const struct cached_batches *chunk = cache_at(log, i);
        if (chunk->end_offset <= work->durable) continue;
        for (uint32_t at = 0; at < chunk->bytes; at += header.batch_bytes) {
            if (work->found_offset >= 0 && !work->want_max) return;
            enum status status =
                batch_parse(chunk->shared->data + at, chunk->bytes - at, true, &header, NULL);
            ASSERT(status == STATUS_OK);
            if (header.base_offset < work->durable) continue;
            if (batch_last_offset(&header) >= work->limit_offset) return;
            status = lookup_batch(work, chunk->shared->data + at, &header, NULL);
            (void)status; /* a batch that does not decode holds no answer */
        }
    }
}

static void lookup_begin(void *context);

static void lookup_done(struct job *job)
{
    struct lookup_job *work = CONTAINER_OF(job, struct lookup_job, job);
    struct partition_log *log = work->log;
    struct log_time_lookup *lookup = work->lookup;
    if (!log->dropped && work->cut_generation != log->cut_generation) {
        /* Files went or changed meanwhile: whatever came of it, ask again. */
        free(work->segments);
        work->segments = NULL;
        lookup_begin(work);
        log_job_ended(log, false);
        return;
    }
    if (log->dropped) {
        work->status = STATUS_CANCELLED;
    } else if (work->status == STATUS_OK) {
        lookup_memory(work);
    } else {
        log_warn("time_lookup_failed partition=%s error=\"%s\"", log->name, work->error.text);
    }
    lookup->status = work->status;
    lookup->found_offset = work->found_offset;
    lookup->found_timestamp_ms = work->found_timestamp_ms;
    lookup->found_epoch = work->found_epoch;
    lookup->private_state = NULL;
    free(work->segments);
    free(work);
    lookup->done(lookup->context, lookup);
    log_job_ended(log, false);
}

static void lookup_copy_segment(const struct lookup_job *work, const struct segment *segment,
                                struct lookup_segment *out)
{
    struct index_entry time, place;
    *out = (struct lookup_segment){.base_offset = segment->base_offset,
                                   .end_offset = segment->durable_offset,
                                   .bytes = segment->durable_bytes,
                                   .max_timestamp_ms = segment->max_timestamp_ms,
                                   .max_timestamp_offset = segment->max_timestamp_offset,
                                   .start_position = -1,
                                   .start_offset = -1};
    if (segment->index == NULL || work->want_max ||
        !segment_index_find(segment->index, INDEX_TIMES, false, work->timestamp_ms - 1, &time)) {
        return;
    }
    out->start_offset = segment->base_offset + time.value;
    if (segment_index_find(segment->index, INDEX_OFFSETS, false, time.value, &place) &&
        place.value < segment->durable_bytes) {
        out->start_position = place.value;
        out->start_offset = segment->base_offset + place.key;
    }
}

static void lookup_begin(void *context)
{
    struct lookup_job *work = context;
    struct partition_log *log = work->log;
    if (log->swapping) {
        compaction_await_swap(log, lookup_begin, work);
        return;
    }
    work->status = STATUS_OK;
    work->limit_offset = work->lookup->limit_offset;
    if (work->limit_offset > log->log_end) work->limit_offset = log->log_end;
    if (work->limit_offset > log->read_limit) work->limit_offset = log->read_limit;
    work->log_start = log->log_start;
    work->durable = log->durable;
    work->cut_generation = log->cut_generation;
    work->found_offset = work->found_timestamp_ms = -1;
    work->found_epoch = -1;
    work->segments = memory_new((log->segment_count + 1) * sizeof(*work->segments));
    work->segment_count = 0;
    for (uint32_t i = 0; i < log->segment_count; i++) {
        lookup_copy_segment(work, log->segments[i], &work->segments[work->segment_count++]);
    }
    log_job_began(log, false);
    executor_submit(log->store->options.executor, EXECUTOR_LANE_BACKGROUND, &work->job);
}

void partition_log_find_timestamp(struct partition_log *log, struct log_time_lookup *lookup)
{
    struct lookup_job *work = memory_new(sizeof(*work));
    work->job = (struct job){.run = lookup_run, .done = lookup_done};
    work->log = log;
    work->lookup = lookup;
    work->timestamp_ms = lookup->timestamp_ms;
    work->want_max = lookup->want_max;
    lookup->private_state = work;
    lookup_begin(work);
}
