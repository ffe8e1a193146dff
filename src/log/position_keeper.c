/* position_keeper.c: keeps `synced-positions` at most one commit behind what is synced.
 *
 * A finished commit marks its logs; beside the next one (or after a moment of idleness) what is
 * marked is written and synced by another worker. The commit does not wait for it, but the one
 * after that does. A log whose epoch history is not on disk yet is left for later: once a position
 * is on record, the epochs of what lies below it must be known. Thread: loop, but for
 * positions_run().            */
#include <stdlib.h>

#include "base/assert.h"
#include "base/memory.h"
#include "log/store_internal.h"

void positions_mark(struct partition_log *log)
{
    struct log_store *store = log->store;
    if (log->position_dirty || log->failed || log->dropped) return;
    if (store->position_dirty_count == store->position_dirty_capacity) {
        uint32_t capacity = store->position_dirty_capacity;
        store->position_dirty_capacity = capacity == 0 ? 16 : capacity * 2;
        store->position_dirty = memory_resize(store->position_dirty, store->position_dirty_capacity,
                                              sizeof(*store->position_dirty));
    }
    log->position_dirty = true;
    store->position_dirty[store->position_dirty_count++] = log;
}

void positions_forget(struct partition_log *log)
{
    struct log_store *store = log->store;
    if (!log->position_dirty) return;
    log->position_dirty = false;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < store->position_dirty_count; i++) {
        if (store->position_dirty[i] != log)
            store->position_dirty[kept++] = store->position_dirty[i];
    }
    store->position_dirty_count = kept;
}

void positions_assign_slot(struct partition_log *log)
{
    struct log_store *store = log->store;
    if (log->slot != POSITION_SLOT_NONE) return;
    log->slot_generation = 0;
    log->slot = store->free_slot_count > 0 ? store->free_slots[--store->free_slot_count]
                                           : store->slot_count++;
}

void positions_free_slot(struct partition_log *log)
{
    struct log_store *store = log->store;
    if (log->slot == POSITION_SLOT_NONE) return;
    if (store->free_slot_count == store->free_slot_capacity) {
        store->free_slot_capacity =
            store->free_slot_capacity == 0 ? 16 : store->free_slot_capacity * 2;
        store->free_slots =
            memory_resize(store->free_slots, store->free_slot_capacity, sizeof(*store->free_slots));
    }
    store->free_slots[store->free_slot_count++] = log->slot;
    log->slot = POSITION_SLOT_NONE;
}

void positions_current(const struct partition_log *log, struct synced_position *out)
{
    out->floor = log->segment_count == 0 ? log->log_start : log->segments[0]->base_offset;
    out->segment_base = out->end_offset = out->floor;
    out->position = 0;
    /* Files lost from the front are missing, not removed: the floor stays where they began. */
    if (log->quarantine_count > 0 && log->quarantine[0].from < out->floor) {
        out->floor = log->quarantine[0].from;
    }
    for (uint32_t i = log->segment_count; i > 0; i--) {
        const struct segment *segment = log->segments[i - 1];
        if (!segment->created) continue;
        out->segment_base = segment->base_offset;
        out->position = segment->durable_bytes;
        out->end_offset = segment->durable_offset;
        return;
    }
}

/* ---- the write ----------------------------------------------------------------------------------
 */

static void positions_run(struct job *job)
{
    struct positions_job *work = CONTAINER_OF(job, struct positions_job, job);
    struct log_store *store = CONTAINER_OF(work, struct log_store, positions_job);
    work->status =
        synced_positions_write(&store->positions, work->updates, work->count, &work->error);
    if (work->status == STATUS_OK && work->publish) {
        work->status = synced_positions_publish(&store->positions, &work->error);
    }
    if (work->status != STATUS_OK && work->status != STATUS_NO_SPACE) work->status = STATUS_IO;
    work->error.status = work->status;
}

static void positions_done(struct job *job)
{
    struct positions_job *work = CONTAINER_OF(job, struct positions_job, job);
    struct log_store *store = CONTAINER_OF(work, struct log_store, positions_job);
    work->in_flight = false;
    store->stats.synced_position_writes++;
    for (uint32_t i = 0; i < work->count; i++) {
        struct partition_log *log = work->logs[i];
        /* What cannot tell a tear from rot any more is not safe to go on with. */
        if (work->status != STATUS_OK) log_set_failed(log, &work->error);
        if (work->status == STATUS_OK) {
            log->recorded_base = work->updates[i].content.synced.segment_base;
        }
        log_job_ended(log, false);
        if (work->status == STATUS_OK) retention_remove_retired(log);
    }
    log_store_check_waiters(store);
    commit_schedule(store);
    positions_touch_idle_timer(store);
}

static void positions_add(struct positions_job *work, struct partition_log *log)
{
    if (work->count == work->capacity) {
        work->capacity = work->capacity == 0 ? 16 : work->capacity * 2;
        work->updates = memory_resize(work->updates, work->capacity, sizeof(*work->updates));
        work->logs = memory_resize(work->logs, work->capacity, sizeof(*work->logs));
    }
    positions_assign_slot(log);
    struct position_update *update = &work->updates[work->count];
    *update = (struct position_update){.slot = log->slot,
                                       .content = {.uid = log->uid,
                                                   .partition = log->partition,
                                                   .generation = ++log->slot_generation}};
    positions_current(log, &update->content.synced);
    work->logs[work->count++] = log;
    log->position_dirty = false;
    log->retiring = log->retired_count > 0;
    log->retired_ready = log->retired_count;
    log_job_began(log, false);
}

bool positions_start(struct log_store *store)
{
    struct positions_job *work = &store->positions_job;
    if (work->in_flight) return false;
    uint32_t kept = 0;
    work->count = 0;
    for (uint32_t i = 0; i < store->position_dirty_count; i++) {
        struct partition_log *log = store->position_dirty[i];
        if (log->failed) {
            log->position_dirty = false;
        } else if (log->epochs_dirty || !log->epochs_recorded || log->in_commit_epochs) {
            store->position_dirty[kept++] = log;
        } else {
            positions_add(work, log);
        }
    }
    store->position_dirty_count = kept;
    if (work->count == 0) return true;
    work->publish = kept == 0;
    work->in_flight = true;
    work->job = (struct job){.run = positions_run, .done = positions_done};
    executor_submit(store->options.executor, EXECUTOR_LANE_DISK, &work->job);
    return true;
}

bool positions_behind(const struct log_store *store)
{
    return store->positions_job.in_flight && store->position_dirty_count > 0;
}

/* ---- after a moment of idleness ---- */

static void positions_idle(void *context)
{
    struct log_store *store = context;
    log_store_adopt(store);
    if (!store->commit.in_flight) positions_start(store);
}

void positions_touch_idle_timer(struct log_store *store)
{
    if (store->position_dirty_count == 0) return;
    timer_start(store->positions_timer, store->stopping ? 0 : POSITIONS_IDLE_US);
}

void positions_init(struct log_store *store)
{
    store->positions_timer = timer_new(store->loop, positions_idle, store);
}

void positions_deinit(struct log_store *store)
{
    timer_free(store->positions_timer);
    free(store->positions_job.updates);
    free(store->positions_job.logs);
    free(store->position_dirty);
    free(store->free_slots);
}
