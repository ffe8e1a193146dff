/* offsets_keeper.c: writes high watermarks, log starts and what was dropped to
 * replication-offsets.json, each second if something changed. Only the changed ones are handed to
 * the worker. Thread: loop, but for offsets_run(). */
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

#include "base/assert.h"
#include "base/memory.h"
#include "log/store_internal.h"

void offsets_mark(struct partition_log *log)
{
    struct log_store *store = log->store;
    if (log->offsets_dirty || log->dropped) return;
    log->offsets_dirty = true;
    if (store->offsets_dirty_count == store->offsets_dirty_capacity) {
        uint32_t capacity = store->offsets_dirty_capacity;
        store->offsets_dirty_capacity = capacity == 0 ? 16 : capacity * 2;
        store->offsets_dirty = memory_resize(store->offsets_dirty, store->offsets_dirty_capacity,
                                             sizeof(*store->offsets_dirty));
    }
    if (store->offsets_dirty_count == 0 && !store->offsets_job.in_flight) {
        timer_start(store->offsets_timer, OFFSETS_INTERVAL_US);
    }
    store->offsets_dirty[store->offsets_dirty_count++] = log;
}

void offsets_forget(struct partition_log *log)
{
    struct log_store *store = log->store;
    struct offsets_job *work = &store->offsets_job;
    for (uint32_t i = 0; work->in_flight && i < work->count; i++) {
        if (work->updates[i].log == log) work->updates[i].log = NULL;
    }
    if (!log->offsets_dirty) return;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < store->offsets_dirty_count; i++) {
        if (store->offsets_dirty[i] != log) store->offsets_dirty[kept++] = store->offsets_dirty[i];
    }
    store->offsets_dirty_count = kept;
    log->offsets_dirty = false;
}

static void offsets_run(struct job *job)
{
    struct offsets_job *work = CONTAINER_OF(job, struct offsets_job, job);
    struct log_store *store = CONTAINER_OF(work, struct log_store, offsets_job);
    char path[PATH_MAX];
    pthread_mutex_lock(&store->table.mutex);
    store->table.wall_ms = work->wall_ms;
    for (uint32_t i = 0; i < work->count; i++) {
        const struct offsets_update *update = &work->updates[i];
        struct partition_record *record =
            partition_table_get(&store->table, &update->key, update->topic);
        record->has_offsets = true;
        record->high_watermark = update->high_watermark;
        record->log_start = update->log_start;
        record->dropped_to = update->dropped_to;
    }
    pthread_mutex_unlock(&store->table.mutex);
    snprintf(path, sizeof(path), "%s/replication-offsets.json", store->data_dir);
    work->status = offsets_file_write(&store->table, store->options.fs, path, &work->error);
}

/* Log starts that are on disk now: their owners hear of it as of a durable offset. What they do may
 * ask for another round: this one is still under way. */
static void offsets_are_written(struct log_store *store)
{
    struct offsets_job *work = &store->offsets_job;
    for (uint32_t i = 0; i < work->count; i++) {
        struct partition_log *log = work->updates[i].log;
        if (log == NULL || work->updates[i].log_start <= log->recorded_start) continue;
        log->recorded_start = work->updates[i].log_start;
        if (!log->dropped && store->options.handlers.durable != NULL) {
            store->options.handlers.durable(store->options.handlers.context, log);
        }
    }
}

static void offsets_done(struct job *job)
{
    struct offsets_job *work = CONTAINER_OF(job, struct offsets_job, job);
    struct log_store *store = CONTAINER_OF(work, struct log_store, offsets_job);
    for (uint32_t i = 0; i < work->count; i++) {
        free(work->updates[i].topic);
    }
    /* The file is replaced whole, so the next round says all of it again: nothing is lost by an
     * error but time; who waited for this round is told. */
    if (work->status != STATUS_OK) {
        log_warn("offsets_not_written error=\"%s\"", work->error.text);
        store->offsets_unwritten = true;
        for (uint32_t i = 0; i < work->count; i++) {
            if (work->updates[i].log != NULL) offsets_mark(work->updates[i].log);
        }
    } else {
        store->offsets_unwritten = false;
        offsets_are_written(store);
    }
    work->in_flight = false;
    store->offsets_round++;
    if (work->status != STATUS_OK) log_store_fail_round(store, &work->error);
    if (store->offsets_dirty_count > 0 || store->offsets_unwritten) {
        timer_start(store->offsets_timer, OFFSETS_INTERVAL_US);
    }
    log_store_check_waiters(store);
    if (store->waiting_first != NULL) commit_schedule(store);
}

void offsets_touch(struct log_store *store)
{
    store->offsets_unwritten = true;
    if (!store->offsets_job.in_flight) timer_start(store->offsets_timer, OFFSETS_INTERVAL_US);
}

bool offsets_start(struct log_store *store)
{
    struct offsets_job *work = &store->offsets_job;
    if (work->in_flight) return false;
    if (store->offsets_dirty_count == 0 && !store->offsets_unwritten) return true;
    if (work->capacity < store->offsets_dirty_count) {
        work->capacity = store->offsets_dirty_count;
        work->updates = memory_resize(work->updates, work->capacity, sizeof(*work->updates));
    }
    work->count = store->offsets_dirty_count;
    for (uint32_t i = 0; i < work->count; i++) {
        struct partition_log *log = store->offsets_dirty[i];
        log->offsets_dirty = false;
        work->updates[i] =
            (struct offsets_update){.log = log,
                                    .key = {.uid = log->uid, .partition = log->partition},
                                    .topic = memory_copy_text(log->topic),
                                    .high_watermark = log->noted_high_watermark,
                                    .log_start = log->log_start,
                                    .dropped_to = log->dropped_to};
    }
    store->offsets_dirty_count = 0;
    work->wall_ms = retention_recorded_clock(store);
    work->in_flight = true;
    work->job = (struct job){.run = offsets_run, .done = offsets_done};
    executor_submit(store->options.executor, EXECUTOR_LANE_BACKGROUND, &work->job);
    return true;
}

static void offsets_due(void *context)
{
    struct log_store *store = context;
    log_store_adopt(store);
    offsets_start(store);
}

void offsets_init(struct log_store *store)
{
    store->offsets_timer = timer_new(store->loop, offsets_due, store);
}

void offsets_deinit(struct log_store *store)
{
    timer_free(store->offsets_timer);
    free(store->offsets_job.updates);
    free(store->offsets_dirty);
}
