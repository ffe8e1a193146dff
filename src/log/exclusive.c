/* exclusive.c: what needs a log for itself: cutting it, starting it anew, taking it out of the
 * store.
 *
 * The log is BUSY from the call on: no appends, no reads from the cut on. What is queued below the
 * cut is still committed; then, when nothing else works on the log, its exclusive goes into a
 * commit (commit.c), where the worker's half (exclusive_worker.c) does it. Thread: loop. */
#include <stdlib.h>
#include <utlist.h>

#include "base/assert.h"
#include "base/memory.h"
#include "log/store_internal.h"
#include "record/batch.h"

static struct exclusive *exclusive_new(struct partition_log *log, enum exclusive_kind kind,
                                       log_done_fn done, void *context)
{
    struct exclusive *exclusive = memory_new(sizeof(*exclusive));
    exclusive->kind = kind;
    exclusive->log = log;
    exclusive->epoch = -1;
    exclusive->done = done;
    exclusive->context = context;
    exclusive->slot = POSITION_SLOT_NONE;
    exclusive->target_base = -1;
    return exclusive;
}

static void exclusive_free(struct exclusive *exclusive)
{
    epoch_history_deinit(&exclusive->closing.epochs);
    free(exclusive->bases);
    free(exclusive->behind);
    free(exclusive);
}

static void exclusive_wait(struct exclusive *exclusive)
{
    struct log_store *store = exclusive->log->store;
    if (store->waiting_first == NULL) {
        store->waiting_first = exclusive;
    } else {
        store->waiting_last->next = exclusive;
    }
    store->waiting_last = exclusive;
    if (exclusive->log->retired_count > 0) positions_start(store);
    commit_schedule(store);
}

static void exclusive_tell(struct exclusive *exclusive)
{
    if (exclusive->done != NULL) {
        exclusive->done(exclusive->context, exclusive->status,
                        exclusive->status == STATUS_OK ? NULL : &exclusive->error);
    }
}

static void exclusive_refused(void *context)
{
    struct exclusive *exclusive = context;
    exclusive_tell(exclusive);
    exclusive_free(exclusive);
}

/* One at a time; the second is told so, later, as by any other end. */
static bool exclusive_take_log(struct exclusive *exclusive, int64_t read_limit)
{
    struct partition_log *log = exclusive->log;
    log_store_adopt(log->store);
    if (log->busy || log->dropped) {
        exclusive->status =
            error_set(&exclusive->error, STATUS_CONFLICT, "%s: is being cut already", log->name);
        loop_defer(log->store->loop, exclusive_refused, exclusive);
        return false;
    }
    log->busy = true;
    log->read_limit = read_limit;
    log->cut_generation++;
    log->exclusive = exclusive;
    compaction_cancel(log);
    return true;
}

/* ---- what is queued ---- */

/* Keeps the batches of a waiting append that lie wholly below `offset`. */
static void queue_trim(struct partition_log *log, struct cached_batches *chunk, int64_t offset)
{
    struct batch_header header;
    uint32_t kept = 0;
    int64_t end_offset = chunk->base_offset;
    while (kept < chunk->bytes) {
        enum status status =
            batch_parse(chunk->shared->data + kept, chunk->bytes - kept, true, &header, NULL);
        ASSERT(status == STATUS_OK);
        if (batch_last_offset(&header) >= offset) break;
        kept += header.batch_bytes;
        end_offset = batch_last_offset(&header) + 1;
    }
    log->store->unsynced_bytes -= chunk->bytes - kept;
    chunk->bytes = kept;
    chunk->end_offset = end_offset;
    if (kept == 0) cache_pop_last(log);
}

/* The segment's end as its remaining chunks and what is durable say. */
static void segment_shorten(struct partition_log *log, struct segment *segment)
{
    segment->bytes = segment->durable_bytes;
    segment->end_offset = segment->durable_offset;
    for (uint32_t i = log->ring_count; i > log->durable_chunks; i--) {
        const struct cached_batches *chunk = cache_at(log, i - 1);
        if (chunk->segment != segment) continue;
        segment->bytes = chunk->position + chunk->bytes;
        segment->end_offset = chunk->end_offset;
        break;
    }
    if (segment->index != NULL) {
        segment_index_cut(segment->index, segment->end_offset - segment->base_offset,
                          segment->bytes);
    }
}

static bool segment_is_unused(const struct partition_log *log, const struct segment *segment)
{
    if (segment->created || segment->in_commit) return false;
    return log->ring_count == log->durable_chunks ||
           cache_at(log, log->ring_count - 1)->segment != segment;
}

static void queue_cut(struct partition_log *log, int64_t offset)
{
    bool changed = false;
    while (log->ring_count > log->durable_chunks + log->flight_chunks) {
        struct cached_batches *chunk = cache_at(log, log->ring_count - 1);
        if (chunk->end_offset <= offset) break;
        changed = true;
        if (chunk->base_offset < offset) {
            queue_trim(log, chunk, offset);
            break;
        }
        cache_pop_last(log);
    }
    while (log->segment_count > 0 && segment_is_unused(log, log_last_segment(log))) {
        segment_free(log_pop_segment(log));
        changed = true;
    }
    struct segment *last = log_last_segment(log);
    if (!changed) return;
    if (last == NULL) {
        log->log_end = log->durable;
        return;
    }
    segment_shorten(log, last);
    if (last->sealed && !last->cut_to_length && !last->sealing) last->sealed = false;
    log->log_end = last->end_offset;
}

/* ---- the calls ---- */

void partition_log_truncate(struct partition_log *log, int64_t offset, log_done_fn done,
                            void *context)
{
    struct exclusive *exclusive = exclusive_new(log, EXCLUSIVE_TRUNCATE, done, context);
    exclusive->offset = offset;
    if (!exclusive_take_log(exclusive, offset)) return;
    queue_cut(log, offset);
    exclusive_wait(exclusive);
}

void partition_log_resume(struct partition_log *log, log_done_fn done, void *context)
{
    struct exclusive *exclusive = exclusive_new(log, EXCLUSIVE_TRUNCATE, done, context);
    exclusive->offset = log->durable;
    exclusive->resumes = true;
    if (!exclusive_take_log(exclusive, log->durable)) return;
    queue_cut(log, log->durable);
    /* What failed is no longer queued; the segment and the log still end behind it. */
    if (log->segment_count == 0) {
        log->directory_made = false;
    } else {
        segment_shorten(log, log_last_segment(log));
    }
    log->log_end = log->durable;
    exclusive_wait(exclusive);
}

void partition_log_reset(struct partition_log *log, int64_t offset, int32_t epoch, bool set_aside,
                         log_done_fn done, void *context)
{
    struct exclusive *exclusive = exclusive_new(log, EXCLUSIVE_RESET, done, context);
    exclusive->set_aside = set_aside;
    exclusive->offset = offset;
    exclusive->epoch = epoch;
    if (!exclusive_take_log(exclusive, -1)) return;
    queue_cut(log, -1);
    exclusive_wait(exclusive);
}

static void exclusive_leave(struct log_store *store, struct partition_log *log,
                            struct exclusive *exclusive)
{
    ASSERT(!log->dropped);
    log_store_adopt(store);
    log->dropped = true;
    log->read_limit = -1;
    log->cut_generation++;
    compaction_cancel(log);
    while (log->ring_count > log->durable_chunks + log->flight_chunks) {
        cache_pop_last(log);
    }
    if (log->exclusive == NULL) log->exclusive = exclusive;
    exclusive_wait(exclusive);
}

void log_store_drop(struct log_store *store, struct partition_log *log, bool set_aside,
                    log_done_fn done, void *context)
{
    struct exclusive *exclusive = exclusive_new(log, EXCLUSIVE_DROP, done, context);
    exclusive->set_aside = set_aside;
    exclusive_leave(store, log, exclusive);
}

void log_store_close(struct log_store *store, struct partition_log *log, log_done_fn done,
                     void *context)
{
    exclusive_leave(store, log, exclusive_new(log, EXCLUSIVE_CLOSE, done, context));
}

bool exclusive_is_ready(const struct exclusive *exclusive)
{
    const struct partition_log *log = exclusive->log;
    if (log->journal_mark != 0 && !log->store->journal.broken &&
        !journal_has_room(log->store, JOURNAL_ENTRY_BYTES_MAX, true)) {
        return false; /* until a cycle makes room */
    }
    if (exclusive->kind == EXCLUSIVE_DROP || exclusive->kind == EXCLUSIVE_CLOSE) {
        bool alone = log->exclusive == exclusive || log->exclusive == NULL;
        return alone && log->jobs == 0 && !log->store->offsets_job.in_flight;
    }
    if (log->background_jobs > 0) return false;
    return log->failed || (!log_has_writes(log) && log->retired_count == 0);
}

/* ---- into the commit ---- */

static void exclusive_list_files(struct exclusive *exclusive)
{
    const struct partition_log *log = exclusive->log;
    exclusive->bases = memory_new((log->segment_count + 1) * sizeof(int64_t));
    for (uint32_t i = 0; i < log->segment_count; i++) {
        exclusive->bases[exclusive->base_count++] = log->segments[i]->base_offset;
    }
    struct synced_position now;
    positions_current(log, &now);
    exclusive->floor = now.floor;
}

static void exclusive_begin_truncate(struct exclusive *exclusive)
{
    struct partition_log *log = exclusive->log;
    struct segment *target = log_segment_of(log, exclusive->offset);
    /* What stands in the files behind a durable end is not known: a resumed log is always cut. */
    bool cuts = (exclusive->offset < log->log_end || exclusive->resumes) && target != NULL;
    uint32_t before = log->epochs.count;
    epoch_history_truncate_end(&log->epochs, exclusive->offset);
    /* The worker may find the end somewhat lower, at the batch that holds `offset`. */
    if (log->epochs.count != before || cuts || exclusive->resumes) {
        log->epochs_dirty = true;
        log_mark_dirty(log);
    }
    if (!cuts) return;
    struct index_entry entry;
    int64_t delta = exclusive->offset - target->base_offset;
    exclusive->target_base = target->base_offset;
    exclusive->target_bytes = target->durable_bytes;
    exclusive->hint_offset = exclusive->hint_position = -1;
    exclusive->max_timestamp_ms = -1;
    exclusive->max_timestamp_offset = target->base_offset;
    exclusive->first_timestamp_ms = target->first_timestamp_ms;
    if (target->index == NULL) return;
    if (segment_index_find(target->index, INDEX_OFFSETS, false, delta, &entry)) {
        exclusive->hint_offset = target->base_offset + entry.key;
        exclusive->hint_position = entry.value;
    }
    if (segment_index_find(target->index, INDEX_TIMES, true, delta - 1, &entry)) {
        exclusive->max_timestamp_ms = entry.key;
        exclusive->max_timestamp_offset = target->base_offset + entry.value;
    }
}

static void exclusive_begin_reset(struct exclusive *exclusive)
{
    struct partition_log *log = exclusive->log;
    if (exclusive->keeps_front) {
        epoch_history_truncate_end(&log->epochs, exclusive->offset);
    } else {
        epoch_history_clear(&log->epochs);
        epoch_history_assign(&log->epochs, exclusive->epoch, exclusive->offset);
    }
    log->epochs_dirty = true;
    log_mark_dirty(log);
}

static void exclusive_begin_close(struct exclusive *exclusive)
{
    struct partition_log *log = exclusive->log;
    struct partition_record *record = &exclusive->closing;
    log->flight_chunks = 0;
    cache_clear(log);
    positions_forget(log);
    record->high_watermark = log->noted_high_watermark;
    record->log_start = log->log_start;
    record->dropped_to = log->dropped_to;
    record->slot = log->slot;
    positions_current(log, &record->synced);
}

static void exclusive_begin_settling(struct exclusive *exclusive)
{
    struct partition_log *log = exclusive->log;
    if (log->store->journal.broken) {
        exclusive->status =
            error_set(&exclusive->error, STATUS_IO, "%s: the commit journal has failed", log->name);
        return;
    }
    exclusive->takes_back = true;
    journal_list_behind(log, exclusive);
}

void exclusive_begin(struct exclusive *exclusive)
{
    struct partition_log *log = exclusive->log;
    bool leaves = exclusive->kind == EXCLUSIVE_DROP || exclusive->kind == EXCLUSIVE_CLOSE;
    /* Nothing of a copy that failed outlives its reset. */
    if (exclusive->kind == EXCLUSIVE_RESET) log->failed = false;
    if (exclusive->resumes && partition_log_lacked_space(log)) log->failed = false;
    if (log->failed && !leaves) {
        exclusive->status = error_set(&exclusive->error, STATUS_STORAGE_ERROR,
                                      "%s: this copy has failed", log->name);
        return;
    }
    /* A cut below all there is begins anew there; the files that held what is before it are lost,
     * and that is not to be forgotten. */
    if (exclusive->kind == EXCLUSIVE_TRUNCATE && exclusive->offset < log->log_end &&
        log_segment_of(log, exclusive->offset) == NULL) {
        exclusive->kind = EXCLUSIVE_RESET;
        exclusive->keeps_front = true;
    }
    exclusive_list_files(exclusive);
    if (exclusive->kind == EXCLUSIVE_RESET &&
        (!exclusive->keeps_front || exclusive->floor > exclusive->offset)) {
        exclusive->floor = exclusive->offset;
    }
    if (exclusive->kind == EXCLUSIVE_TRUNCATE) exclusive_begin_truncate(exclusive);
    if (exclusive->kind == EXCLUSIVE_RESET) exclusive_begin_reset(exclusive);
    bool moves = exclusive->kind == EXCLUSIVE_RESET || exclusive->target_base >= 0;
    bool kept = exclusive->kind == EXCLUSIVE_CLOSE && log->segment_count > 0;
    if (moves || kept) positions_assign_slot(log);
    if (leaves) exclusive_begin_close(exclusive);
    if (moves || leaves) exclusive->slot = log->slot;
    if ((moves || leaves) && log->journal_mark != 0) exclusive_begin_settling(exclusive);
    exclusive->slot_generation = log->slot_generation;
}

/* ---- and out of it ---- */

static void exclusive_apply_truncate(struct exclusive *exclusive)
{
    struct partition_log *log = exclusive->log;
    if (exclusive->target_base < 0) return;
    while (log->ring_count > 0 &&
           cache_at(log, log->ring_count - 1)->end_offset > exclusive->end_offset) {
        cache_pop_last(log);
    }
    /* The first half of a chunk that the cut fell into is on disk only: what is appended next would
     * stand right behind the chunk before it, and a reader would take the hole for a gap. */
    if (log->ring_count > 0 &&
        cache_at(log, log->ring_count - 1)->end_offset != exclusive->end_offset) {
        cache_clear(log);
    }
    while (log_last_segment(log)->base_offset > exclusive->target_base) {
        segment_free(log_pop_segment(log));
    }
    struct segment *target = log_last_segment(log);
    ASSERT(target->base_offset == exclusive->target_base);
    segment_index_free(target->index);
    target->index = NULL;
    target->bytes = target->durable_bytes = target->reserved_bytes = exclusive->position;
    target->end_offset = target->durable_offset = exclusive->end_offset;
    target->first_timestamp_ms = exclusive->position > 0 ? exclusive->first_timestamp_ms : -1;
    target->max_timestamp_ms = exclusive->max_timestamp_ms;
    target->max_timestamp_offset = exclusive->max_timestamp_offset;
    for (int kind = 0; kind < INDEX_KIND_COUNT; kind++) {
        target->index_blocks[kind] = exclusive->index_blocks[kind];
    }
    target->sealed = target->cut_to_length = false;
    target->clean_to = target->base_offset;
    target->digest = 0;
    target->digest_known = exclusive->position == 0;
    if (log->settled_count >= log->segment_count) log->settled_count = log->segment_count - 1;
    log->log_end = log->durable = exclusive->end_offset;
    epoch_history_truncate_end(&log->epochs, exclusive->end_offset);
    log_unquarantine_from(log, exclusive->end_offset);
}

static void exclusive_apply_reset(struct exclusive *exclusive)
{
    struct partition_log *log = exclusive->log;
    cache_clear(log);
    while (log->segment_count > 0) {
        segment_free(log_pop_segment(log));
    }
    struct segment *segment = segment_new(exclusive->offset);
    segment->created = true;
    log_add_segment(log, segment);
    log->settled_count = 0;
    log->directory_made = true;
    log->log_end = log->durable = exclusive->offset;
    if (!exclusive->keeps_front || log->log_start > exclusive->offset) {
        log->log_start = log->recorded_start = exclusive->offset;
    }
    if (!exclusive->keeps_front) log->dropped_to = 0;
    log_unquarantine_from(log, exclusive->keeps_front ? exclusive->offset : log->log_start);
    offsets_mark(log);
}

static void exclusive_release_log(struct exclusive *exclusive)
{
    struct partition_log *log = exclusive->log;
    if (exclusive->slot != POSITION_SLOT_NONE) {
        log->slot_generation = exclusive->slot_generation;
        log->recorded_base = -1;
    }
    log->busy = false;
    log->exclusive = NULL;
    log->read_limit = log->dropped ? -1 : INT64_MAX;
    log->cut_generation++;
    free(log->hints);
    log->hints = NULL;
    if (exclusive->status == STATUS_OK && exclusive->slot != POSITION_SLOT_NONE) {
        positions_mark(log);
    }
    if (exclusive->status == STATUS_NO_SPACE || exclusive->status == STATUS_IO) {
        log->lacked_space = exclusive->resumes && exclusive->status == STATUS_NO_SPACE;
        log_set_failed(log, &exclusive->error);
    }
}

static void exclusive_finish_leaving(struct exclusive *exclusive)
{
    struct partition_log *log = exclusive->log;
    struct log_store *store = log->store;
    if (exclusive->kind == EXCLUSIVE_DROP) positions_free_slot(log);
    offsets_forget(log);
    DL_DELETE(store->logs, log);
    log_free(log);
    if (exclusive->kind == EXCLUSIVE_DROP && !exclusive->set_aside) trash_start(store);
}

void exclusive_finish(struct exclusive *exclusive)
{
    bool ok = exclusive->status == STATUS_OK;
    bool leaves = exclusive->kind == EXCLUSIVE_DROP || exclusive->kind == EXCLUSIVE_CLOSE;
    if ((ok && exclusive->takes_back) || leaves) journal_forget(exclusive->log);
    if (exclusive->kind == EXCLUSIVE_TRUNCATE || exclusive->kind == EXCLUSIVE_RESET) {
        if (ok && exclusive->kind == EXCLUSIVE_TRUNCATE) exclusive_apply_truncate(exclusive);
        if (ok && exclusive->kind == EXCLUSIVE_RESET) exclusive_apply_reset(exclusive);
        exclusive_release_log(exclusive);
    } else {
        exclusive_finish_leaving(exclusive);
    }
    exclusive_tell(exclusive);
    exclusive_free(exclusive);
}
