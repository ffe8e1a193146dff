/* compaction.c: a pass as the loop sees it: what may be cleaned, one step after the other, and the
 * new segments in the place of the old ones.
 *
 * While a swap is under way no file of the log is opened by its name: reads from disk and look-ups
 * by time wait for its end, and those that began before start anew. Appends, commits and reads from
 * memory go on. Thread: loop, but for compaction_run(). */
#include "log/compaction.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "log/compaction_work.h"

/* ---- waiting for a swap ---- */

void compaction_await_swap(struct partition_log *log, void (*resume)(void *context), void *context)
{
    struct swap_waiter *waiter = memory_new(sizeof(*waiter));
    ASSERT(log->swapping);
    *waiter = (struct swap_waiter){.resume = resume, .context = context};
    if (log->swap_waiters == NULL) {
        log->swap_waiters = waiter;
    } else {
        log->swap_waiters_last->next = waiter;
    }
    log->swap_waiters_last = waiter;
}

static void swap_begin(struct partition_log *log)
{
    log->swapping = true;
    log->cut_generation++;
}

/* Where reads ended says nothing any more. */
static void swap_end(struct partition_log *log)
{
    log->swapping = false;
    log->cut_generation++;
    free(log->hints);
    log->hints = NULL;
    struct swap_waiter *waiter = log->swap_waiters;
    log->swap_waiters = NULL;
    while (waiter != NULL) {
        struct swap_waiter *next = waiter->next;
        waiter->resume(waiter->context);
        free(waiter);
        waiter = next;
    }
    retention_retire(log);
}

/* ---- what may be cleaned ---- */

/* A segment whose file is complete and in nobody's way: no commit, no journal record, no synced
 * position speaks of it any more. */
static bool segment_is_at_rest(const struct partition_log *log, const struct segment *segment)
{
    return segment->sealed && segment->cut_to_length && segment->created && !segment->in_commit &&
           segment->behind == 0 && segment->bytes > 0 &&
           segment->durable_offset == segment->end_offset &&
           segment->end_offset <= log->recorded_base;
}

/* How many segments, from the first on, a pass may clean. */
static uint32_t cleanable_count(const struct partition_log *log, int64_t limit_offset,
                                int64_t settled_before_ms)
{
    uint32_t count = 0;
    while (count + 1 < log->segment_count && count < log->settled_count) {
        const struct segment *segment = log->segments[count];
        if (!segment_is_at_rest(log, segment)) break;
        if (segment->end_offset > limit_offset && !MUTANT(17)) break;
        if (segment->max_timestamp_ms > settled_before_ms &&
            segment->clean_to < segment->end_offset)
            break;
        count++;
    }
    return count;
}

/* The first segment that is not wholly clean. */
static uint32_t first_dirty_index(const struct partition_log *log)
{
    uint32_t i = 0;
    while (i < log->segment_count && log->segments[i]->bytes > 0 &&
           log->segments[i]->clean_to == log->segments[i]->end_offset) {
        i++;
    }
    return i;
}

void partition_log_cleanable(const struct partition_log *log, int64_t limit_offset,
                             int64_t settled_before_ms, struct log_cleanable *out)
{
    uint32_t count = cleanable_count(log, limit_offset, settled_before_ms);
    uint32_t first = first_dirty_index(log);
    *out = (struct log_cleanable){.oldest_dirty_ms = -1, .first_dirty_offset = log->log_end};
    for (uint32_t i = 0; i < first; i++) {
        out->clean_bytes += log->segments[i]->bytes;
    }
    for (uint32_t i = first; i < count; i++) {
        out->dirty_bytes += log->segments[i]->bytes;
    }
    if (first == log->segment_count) return;
    out->oldest_dirty_ms = log->segments[first]->first_timestamp_ms;
    out->first_dirty_offset = log->segments[first]->clean_to;
}

/* ---- a pass ---- */

static void compaction_free(struct compaction *compaction)
{
    compaction_forget_transactions(compaction);
    offset_map_free(compaction->map);
    buffer_deinit(&compaction->batch);
    free(compaction->segments);
    free(compaction);
}

void compaction_cancel(struct partition_log *log)
{
    if (log->compaction == NULL) return;
    __atomic_store_n(&log->compaction->cancelled, true, __ATOMIC_RELAXED);
}

static enum status compaction_run_write(struct compaction *compaction, struct error *error)
{
    enum status status = STATUS_OK;
    if (!compaction->prepared) status = compaction_prepare(compaction, error);
    compaction->prepared = true;
    if (status == STATUS_OK && compaction->map_end > compaction->first_dirty) {
        status = compaction_write_group(compaction, error);
        if (status != STATUS_OK) compaction_discard(compaction);
    }
    if (compaction->map != NULL) offset_map_rest(compaction->map);
    /* Retention has taken a file meanwhile. */
    return status == STATUS_NOT_FOUND ? STATUS_CONFLICT : status;
}

static enum status compaction_run_swap(struct compaction *compaction, struct error *error)
{
    bool committed;
    enum status status = compaction_swap_in(compaction, &committed, error);
    if (!committed) compaction_discard(compaction);
    /* Half way through: only a start can tell what is there. */
    return committed && status != STATUS_OK ? STATUS_STORAGE_ERROR : status;
}

static void compaction_run(struct job *job)
{
    struct compaction *compaction = CONTAINER_OF(job, struct compaction, job);
    struct log_compaction *request = compaction->request;
    switch (compaction->step) {
    case COMPACTION_WRITE:
        request->status = compaction_run_write(compaction, &request->error);
        break;
    case COMPACTION_SWAP: request->status = compaction_run_swap(compaction, &request->error); break;
    case COMPACTION_DISCARD: compaction_discard(compaction); break;
    }
}

static void compaction_submit(struct compaction *compaction, enum compaction_step step)
{
    compaction->step = step;
    executor_submit(compaction->log->store->options.executor, EXECUTOR_LANE_PATIENT,
                    &compaction->job);
}

/* Batches in memory are still as they came. */
static int64_t compaction_forget_aborted(struct compaction *compaction)
{
    struct partition_log *log = compaction->log;
    int64_t gone_to = compaction->request->clean_to;
    if (compaction->next == 0) return 0; /* nothing was to be cleaned, or looked at */
    if (compaction->unread_from < gone_to) gone_to = compaction->unread_from;
    cache_drop_below(log, gone_to);
    if (log->ring_count > 0 && cache_at(log, 0)->base_offset < gone_to) {
        gone_to = cache_at(log, 0)->base_offset;
    }
    return gone_to;
}

static void compaction_end(struct compaction *compaction)
{
    struct partition_log *log = compaction->log;
    struct log_store *store = log->store;
    struct log_compaction *request = compaction->request;
    if (request->status == STATUS_OK && compaction->map_end > request->clean_to) {
        request->clean_to = compaction->map_end;
    }
    if (request->status == STATUS_OK) {
        request->aborted_gone_to = compaction_forget_aborted(compaction);
    }
    log->compaction = NULL;
    store->compactions_in_flight--;
    compaction_free(compaction);
    request->done(request->context, request);
    log_store_check_waiters(store);
    log_job_ended(log, true);
}

/* Are the group's segments still those of the log? Retention takes some from the front. */
static bool group_is_there(const struct compaction *compaction, uint32_t *at)
{
    const struct partition_log *log = compaction->log;
    const struct compaction_segment *first = &compaction->segments[compaction->group_first];
    for (*at = 0; *at < log->segment_count; (*at)++) {
        if (log->segments[*at]->base_offset == first->base_offset) break;
    }
    if (*at + compaction->group_count >= log->segment_count) return false;
    for (uint32_t i = 0; i < compaction->group_count; i++) {
        if (log->segments[*at + i]->end_offset != first[i].end_offset) return false;
    }
    return true;
}

static bool scans_are_under_way(struct partition_log *log)
{
    pthread_mutex_lock(&log->store->segments_mutex);
    bool any = log->scans > 0;
    pthread_mutex_unlock(&log->store->segments_mutex);
    return any;
}

static struct segment *segment_of_digest(const struct segment_digest *digest)
{
    struct segment *segment = segment_new(digest->base_offset);
    segment->end_offset = segment->durable_offset = digest->end_offset;
    segment->bytes = segment->durable_bytes = segment->reserved_bytes = digest->bytes;
    segment->first_timestamp_ms = digest->first_timestamp_ms;
    segment->max_timestamp_ms = digest->max_timestamp_ms;
    segment->max_timestamp_offset = digest->max_timestamp_offset;
    segment->clean_to = digest->base_offset + digest->clean_delta;
    segment->digest = digest->crc;
    segment->digest_known = true;
    segment->created = segment->sealed = segment->cut_to_length = true;
    for (int kind = 0; kind < INDEX_KIND_COUNT; kind++) {
        segment->index_blocks[kind] = digest->index_blocks[kind];
    }
    return segment;
}

/* The group's one new segment in the place of the old ones. */
static void group_replace(struct compaction *compaction, uint32_t at)
{
    struct partition_log *log = compaction->log;
    uint32_t gone = compaction->group_count - 1;
    struct segment *segment = segment_of_digest(&compaction->digest);
    for (uint32_t i = 0; i < compaction->group_count; i++) {
        open_file_detach(log->store, log->segments[at + i]);
        segment_free(log->segments[at + i]);
    }
    ASSERT(log->settled_count >= at + compaction->group_count);
    pthread_mutex_lock(&log->store->segments_mutex);
    log->segments[at] = segment;
    memmove(log->segments + at + 1, log->segments + at + 1 + gone,
            (log->segment_count - at - 1 - gone) * sizeof(*log->segments));
    log->segment_count -= gone;
    pthread_mutex_unlock(&log->store->segments_mutex);
    log->settled_count -= gone;
}

static void group_is_in_place(struct compaction *compaction)
{
    struct log_compaction *request = compaction->request;
    uint32_t at;
    bool there = group_is_there(compaction, &at);
    ASSERT(there); /* nobody takes segments out while a swap is under way */
    for (uint32_t i = 0; i < compaction->group_count; i++) {
        request->bytes_in += (uint64_t)compaction->log->segments[at + i]->bytes;
    }
    request->bytes_out += (uint64_t)compaction->digest.bytes;
    request->records_in += compaction->group_records_in;
    request->records_out += compaction->group_records_out;
    if (compaction->group_unchanged) {
        struct segment *segment = compaction->log->segments[at];
        segment->clean_to = segment->base_offset + compaction->digest.clean_delta;
        return;
    }
    request->swaps++;
    group_replace(compaction, at);
}

/* May what was written take its place? */
static enum status compaction_check_swap(const struct compaction *compaction)
{
    struct partition_log *log = compaction->log;
    uint32_t at;
    if (compaction_is_cancelled(compaction)) return STATUS_CANCELLED;
    if (log->failed) return STATUS_STORAGE_ERROR;
    if (!group_is_there(compaction, &at) || scans_are_under_way(log)) return STATUS_CONFLICT;
    return STATUS_OK;
}

static void compaction_try_swap(struct compaction *compaction)
{
    struct log_compaction *request = compaction->request;
    if (request->status == STATUS_OK) request->status = compaction_check_swap(compaction);
    if (request->status != STATUS_OK) {
        compaction_submit(compaction, COMPACTION_DISCARD);
        return;
    }
    swap_begin(compaction->log);
    compaction_submit(compaction, COMPACTION_SWAP);
}

/* A crash from here on finds at most more on record than is gone. */
static void dropped_is_durable(void *context, enum status status, const struct error *error)
{
    struct compaction *compaction = context;
    compaction->request->status = status;
    if (status != STATUS_OK) compaction->request->error = *error;
    compaction_try_swap(compaction);
}

static void compaction_after_write(struct compaction *compaction)
{
    struct partition_log *log = compaction->log;
    struct log_compaction *request = compaction->request;
    bool nothing = compaction->map_end <= compaction->first_dirty;
    if (request->status != STATUS_OK || nothing) {
        compaction_end(compaction);
        return;
    }
    if (compaction->group_dropped_to > log->dropped_to) {
        partition_log_note_dropped(log, compaction->group_dropped_to);
        log_store_flush_offsets(log->store, dropped_is_durable, compaction);
        return;
    }
    compaction_try_swap(compaction);
}

static void compaction_after_swap(struct compaction *compaction)
{
    struct partition_log *log = compaction->log;
    struct log_compaction *request = compaction->request;
    if (request->status == STATUS_OK) group_is_in_place(compaction);
    if (request->status == STATUS_STORAGE_ERROR) {
        request->error.status = STATUS_IO;
        log_set_failed(log, &request->error);
    }
    swap_end(log);
    bool through = compaction->next == compaction->count ||
                   compaction->segments[compaction->next].base_offset >= compaction->map_end;
    if (request->status == STATUS_OK && !through && compaction_is_cancelled(compaction)) {
        request->status = STATUS_CANCELLED;
    }
    if (request->status != STATUS_OK || through) {
        compaction_end(compaction);
        return;
    }
    compaction_submit(compaction, COMPACTION_WRITE);
}

static void compaction_done(struct job *job)
{
    struct compaction *compaction = CONTAINER_OF(job, struct compaction, job);
    switch (compaction->step) {
    case COMPACTION_WRITE: compaction_after_write(compaction); break;
    case COMPACTION_SWAP: compaction_after_swap(compaction); break;
    case COMPACTION_DISCARD: compaction_end(compaction); break;
    }
}

static void compaction_copy_segments(struct compaction *compaction)
{
    const struct partition_log *log = compaction->log;
    compaction->segments = memory_new((log->segment_count + 1) * sizeof(*compaction->segments));
    for (uint32_t i = 0; i < log->segment_count; i++) {
        const struct segment *segment = log->segments[i];
        if (!segment->created || segment->durable_bytes == 0) continue;
        compaction->segments[compaction->total++] =
            (struct compaction_segment){.base_offset = segment->base_offset,
                                        .end_offset = segment->durable_offset,
                                        .bytes = segment->durable_bytes};
    }
}

enum status partition_log_compact(struct partition_log *log, struct log_compaction *request)
{
    struct log_store *store = log->store;
    log_store_adopt(store);
    if (log->failed || log->busy || log->dropped || log->compaction != NULL ||
        log->quarantine_count > 0 || log->background_jobs > 0 || log->retired_count > 0 ||
        store->stopping || scans_are_under_way(log)) {
        return STATUS_AGAIN;
    }
    uint32_t count = cleanable_count(log, request->limit_offset, request->settled_before_ms);
    uint32_t first = first_dirty_index(log);
    if (first >= count) return STATUS_NOT_FOUND;
    struct compaction *compaction = memory_new(sizeof(*compaction));
    compaction->job = (struct job){.run = compaction_run, .done = compaction_done};
    compaction->log = log;
    compaction->request = request;
    compaction->fs = store->options.fs;
    log_directory(compaction->directory, store, log->topic, log->partition);
    compaction->log_start = log->log_start;
    compaction->segment_bytes =
        log->config.segment_bytes > 0 ? log->config.segment_bytes : INT32_MAX;
    compaction->index_interval_bytes = log->config.index_interval_bytes;
    compaction->first_dirty = log->segments[first]->clean_to;
    compaction->unread_from = INT64_MAX;
    compaction->last_epoch = -1; /* each pass begins at the first segment */
    buffer_init(&compaction->batch, 0);
    compaction_copy_segments(compaction);
    compaction->count = count;
    request->status = STATUS_OK;
    request->error = (struct error){0};
    request->clean_to = compaction->first_dirty;
    request->aborted_gone_to = 0;
    request->more = false;
    request->bytes_in = request->bytes_out = request->records_in = request->records_out = 0;
    request->swaps = 0;
    request->damage = (struct log_damage){0};
    log->compaction = compaction;
    store->compactions_in_flight++;
    log_job_began(log, true);
    compaction_submit(compaction, COMPACTION_WRITE);
    return STATUS_OK;
}

bool partition_log_roll_before(struct partition_log *log, int64_t first_timestamp_ms)
{
    const struct segment *last = log_last_segment(log);
    log_store_adopt(log->store);
    if (log->failed || log->busy || log->dropped || last == NULL || last->sealed ||
        !last->created || last->bytes == 0 || log->durable != log->log_end ||
        last->first_timestamp_ms < 0 ||
        last->first_timestamp_ms - log_segment_jitter_ms(log, last) >= first_timestamp_ms) {
        return false;
    }
    log_roll(log);
    log_mark_dirty(log);
    return true;
}
