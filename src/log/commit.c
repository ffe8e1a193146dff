/* commit.c: group commit, the loop's half: what goes into a commit, and what follows from its end.
 *
 * States: idle -> (prepare ->) parts at work -> finished -> idle. One commit at a time; it takes
 * everything queued when it starts. Up to COMMIT_PARTS_MAX workers share it: a commit of one log is
 * one job, so one write, one sync and two thread hops. Cuts, resets and drops run inside a commit,
 * after a step of preparation in which first the synced positions go down and then the epoch
 * histories are written: bytes go last. A commit of very many files could go to a journal instead:
 * its place would be commit_submit(). */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "log/store_internal.h"

static void commit_start(struct log_store *store);

static void commit_start_deferred(void *context)
{
    struct log_store *store = context;
    store->start_scheduled = false;
    commit_start(store);
}

void commit_schedule(struct log_store *store)
{
    if (store->start_scheduled || store->commit.in_flight || store->freeing) return;
    store->start_scheduled = true;
    loop_defer(store->loop, commit_start_deferred, store);
}

/* ---- what goes in ------------------------------------------------------------------------------
 */

static void *commit_room(void *array, uint32_t count, uint32_t *capacity, size_t item_bytes)
{
    if (count < *capacity) return array;
    uint32_t before = *capacity;
    *capacity = before == 0 ? 16 : before * 2;
    array = memory_resize(array, *capacity, item_bytes);
    memset((uint8_t *)array + before * item_bytes, 0, (*capacity - before) * item_bytes);
    return array;
}

static void commit_add_write(struct commit *commit, const struct cached_batches *chunk)
{
    commit->writes = commit_room(commit->writes, commit->write_count, &commit->write_capacity,
                                 sizeof(*commit->writes));
    commit->writes[commit->write_count++] = (struct commit_write){
        .data = chunk->shared->data, .bytes = chunk->bytes, .position = chunk->position};
}

/* Finished index blocks go along; the file's buffers and the index's change places. */
static void commit_take_index(struct commit_file *file, struct segment *segment)
{
    struct segment_index *index = segment->index;
    for (int kind = 0; kind < INDEX_KIND_COUNT; kind++) {
        buffer_clear(&file->index[kind]);
        if (index == NULL || index->pending[kind].bytes == 0) continue;
        struct buffer empty = file->index[kind];
        file->index_at[kind] = segment_index_pending_at(index, (enum index_kind)kind);
        file->index[kind] = index->pending[kind];
        index->pending[kind] = empty;
        segment->index_blocks[kind] = index->blocks[kind];
    }
}

/* `chunks` of the log's ring, from `first` on, belong to `segment`. */
static void commit_add_file(struct log_store *store, struct partition_log *log,
                            struct segment *segment, uint32_t first, uint32_t chunks)
{
    struct commit *commit = &store->commit;
    commit->files = commit_room(commit->files, commit->file_count, &commit->file_capacity,
                                sizeof(*commit->files));
    struct commit_file *file = &commit->files[commit->file_count++];
    bool seal = segment->sealed && !segment->cut_to_length;
    if (seal && segment->index != NULL) segment_index_seal(segment->index, segment->base_offset);
    file->segment = segment;
    segment->in_commit = true;
    segment->sealing = seal;
    file->base_offset = segment->base_offset;
    file->open = open_file_take(store, segment, true);
    file->file = file->open == NULL ? NULL : file->open->file;
    file->create = !segment->created;
    file->first_of_log = !log->directory_made;
    file->seal = seal;
    file->first_write = commit->write_count;
    file->write_count = chunks;
    file->bytes_before = segment->durable_bytes;
    file->bytes_after = segment->bytes;
    file->reserved_bytes = segment->reserved_bytes;
    file->reserve_max = log->config.segment_bytes;
    file->digest = segment->digest;
    file->digest_known = segment->digest_known;
    commit_take_index(file, segment);
    for (uint32_t i = 0; i < chunks; i++) {
        commit_add_write(commit, cache_at(log, first + i));
    }
    log->directory_made = true;
}

static void commit_add_files(struct log_store *store, struct partition_log *log)
{
    uint32_t next = log->durable_chunks;
    for (uint32_t i = log->settled_count; i < log->segment_count; i++) {
        struct segment *segment = log->segments[i];
        uint32_t chunks = 0;
        while (next + chunks < log->ring_count &&
               cache_at(log, next + chunks)->segment == segment) {
            chunks++;
        }
        bool unsettled = !segment->created || (segment->sealed && !segment->cut_to_length);
        if (chunks > 0 || unsettled) commit_add_file(store, log, segment, next, chunks);
        next += chunks;
    }
    ASSERT(next == log->ring_count);
    log->flight_chunks = log->ring_count - log->durable_chunks;
}

static void commit_add_log(struct log_store *store, struct partition_log *log)
{
    struct commit *commit = &store->commit;
    if (log->failed || log->dropped) return;
    bool has_epochs = log->epochs_dirty || !log->epochs_recorded;
    bool has_writes = log_has_writes(log);
    if (!has_epochs && !has_writes) return;
    commit->logs =
        commit_room(commit->logs, commit->log_count, &commit->log_capacity, sizeof(*commit->logs));
    log->commit_item = commit->log_count;
    struct commit_log *item = &commit->logs[commit->log_count++];
    item->log = log;
    item->status = STATUS_OK;
    item->first_file = commit->file_count;
    if (has_writes) commit_add_files(store, log);
    item->file_count = commit->file_count - item->first_file;
    item->chunks = log->flight_chunks;
    item->end_offset = log->log_end;
    item->has_epochs = has_epochs;
    if (has_epochs) {
        epoch_history_copy(&item->epochs, &log->epochs);
        commit->has_epochs = true;
        log->epochs_dirty = false;
        log->epochs_recorded = true;
    }
    log->in_commit = true;
    log->in_commit_epochs = has_epochs;
}

static void commit_add_dirty(struct log_store *store)
{
    while (store->dirty_first != NULL) {
        struct partition_log *log = store->dirty_first;
        store->dirty_first = log->next_dirty;
        log->next_dirty = NULL;
        log->dirty = false;
        commit_add_log(store, log);
    }
    store->dirty_last = NULL;
}

static bool commit_exclusive_is_waiting(const struct log_store *store)
{
    for (const struct exclusive *each = store->waiting_first; each != NULL; each = each->next) {
        if (exclusive_is_ready(each)) return true;
    }
    return false;
}

static void commit_add_exclusives(struct log_store *store)
{
    struct commit *commit = &store->commit;
    struct exclusive *all = store->waiting_first;
    store->waiting_first = NULL;
    store->waiting_last = NULL;
    while (all != NULL) {
        struct exclusive *each = all;
        all = each->next;
        each->next = NULL;
        if (exclusive_is_ready(each)) {
            commit->exclusives =
                commit_room(commit->exclusives, commit->exclusive_count,
                            &commit->exclusive_capacity, sizeof(*commit->exclusives));
            commit->exclusives[commit->exclusive_count++] = each;
            exclusive_begin(each);
        } else if (store->waiting_first == NULL) {
            store->waiting_first = store->waiting_last = each;
        } else {
            store->waiting_last->next = each;
            store->waiting_last = each;
        }
    }
}

/* Does the commit go to the journal? Then all its logs do but those that seal a segment. */
static void commit_choose_journal(struct log_store *store)
{
    struct commit *commit = &store->commit;
    uint32_t files = 0;
    int64_t bytes = 0;
    for (uint32_t i = 0; i < commit->log_count; i++) {
        struct commit_log *item = &commit->logs[i];
        item->journaled = item->file_count == 1 && !commit->files[item->first_file].seal;
        if (!item->journaled) continue;
        const struct commit_file *file = &commit->files[item->first_file];
        files++;
        bytes += file->bytes_after - file->bytes_before;
    }
    commit->record_bytes = 0;
    commit->journal_status = STATUS_OK;
    commit->journaled = commit->exclusive_count == 0 && journal_wants(store, files, bytes);
    for (uint32_t i = 0; i < commit->log_count; i++) {
        struct commit_log *item = &commit->logs[i];
        if (!commit->journaled) item->journaled = false;
        item->sync_names = !item->journaled && item->file_count > 0 && item->log->names_behind;
    }
}

/* ---- under way ---- */

static void commit_submit_parts(struct log_store *store)
{
    struct commit *commit = &store->commit;
    uint32_t items = commit->log_count + commit->exclusive_count +
                     (commit->has_epochs && commit->exclusive_count == 0) + commit->journaled;
    commit->part_count = items < COMMIT_PARTS_MAX ? items : COMMIT_PARTS_MAX;
    commit->parts_left = commit->part_count;
    for (uint32_t i = 0; i < commit->part_count; i++) {
        executor_submit(store->options.executor, EXECUTOR_LANE_DISK, &commit->parts[i].job);
    }
}

static void commit_prepare_done(struct job *job)
{
    commit_submit_parts(CONTAINER_OF(job, struct log_store, commit.prepare));
}

static void commit_submit(struct log_store *store)
{
    if (store->commit.exclusive_count > 0) {
        executor_submit(store->options.executor, EXECUTOR_LANE_DISK, &store->commit.prepare);
        return;
    }
    commit_submit_parts(store);
    /* After the commit's own jobs, so that its sync reaches the device first. */
    positions_start(store);
}

static void commit_start(struct log_store *store)
{
    struct commit *commit = &store->commit;
    log_store_adopt(store);
    if (commit->in_flight) return;
    bool exclusives = commit_exclusive_is_waiting(store);
    if (store->dirty_first == NULL && !exclusives) {
        log_store_check_waiters(store);
        return;
    }
    /* At most one commit may be ahead of the record, and a position must not go down in one write
     * while another still raises it. The write's end comes back here. */
    if (positions_behind(store) || (exclusives && store->positions_job.in_flight)) return;
    commit->log_count = commit->file_count = commit->write_count = commit->exclusive_count = 0;
    commit->has_epochs = false;
    commit->epochs_status = STATUS_OK;
    commit_add_exclusives(store);
    commit_add_dirty(store);
    for (uint32_t i = 0; i < commit->exclusive_count; i++) {
        commit->exclusives[i]->commit_item = commit->exclusives[i]->log->commit_item;
    }
    if (commit->log_count + commit->exclusive_count == 0) {
        log_store_check_waiters(store);
        return;
    }
    commit_choose_journal(store);
    commit->in_flight = true;
    commit->number++;
    commit->started_us = loop_now_us(store->loop);
    commit_submit(store);
}

/* ---- the end ---- */

static void commit_finish_file(struct log_store *store, struct partition_log *log,
                               struct commit_file *file, bool ok)
{
    struct segment *segment = file->segment;
    if (file->open != NULL) {
        open_file_release(store, file->open);
    } else {
        open_file_install(store, segment, file->file, true);
    }
    file->open = NULL;
    file->file = NULL;
    segment->in_commit = segment->sealing = false;
    if (!ok) return;
    segment->created = true;
    segment->durable_bytes = file->bytes_after;
    segment->reserved_bytes = file->reserved_bytes;
    segment->digest = file->digest;
    store->stats.commit_files++;
    if (segment->snapshot != NULL) {
        struct buffer *content = segment->snapshot;
        segment->snapshot = NULL;
        snapshot_start(log, segment->base_offset, content);
    }
    if (!file->seal) return;
    segment->cut_to_length = true;
    seal_start(log, segment);
}

/* The durable end of each segment: that of its last durable chunk, or of the segment itself. */
static void commit_move_durable(struct partition_log *log, const struct commit_log *item)
{
    struct log_store *store = log->store;
    for (uint32_t i = 0; i < item->chunks; i++) {
        struct cached_batches *chunk = cache_at(log, log->durable_chunks + i);
        chunk->segment->durable_offset = chunk->end_offset;
        store->unsynced_bytes -= chunk->bytes;
    }
    log->durable_chunks += item->chunks;
    log->flight_chunks = 0;
    while (log->settled_count < log->segment_count &&
           log->segments[log->settled_count]->cut_to_length) {
        log->settled_count++;
    }
}

static void commit_settle_log(struct log_store *store, struct commit_log *item)
{
    struct partition_log *log = item->log;
    log->in_commit = log->in_commit_epochs = false;
    if (item->has_epochs && store->commit.epochs_status != STATUS_OK && item->status == STATUS_OK) {
        item->status = store->commit.epochs_status;
        item->error = store->commit.epochs_error;
    }
    if (item->journaled && item->status == STATUS_OK && store->commit.journal_status != STATUS_OK) {
        item->status = store->commit.journal_status;
        item->error = store->commit.journal_error;
    }
    if (MUTANT(19)) item->status = STATUS_OK;
    bool ok = item->status == STATUS_OK;
    for (uint32_t i = 0; i < item->file_count; i++) {
        struct commit_file *file = &store->commit.files[item->first_file + i];
        /* Also of a log that failed: the record is there, and a cut must take it back. */
        if (item->journaled && store->commit.journal_status == STATUS_OK) {
            journal_note(log, file->segment, file->create, file->first_of_log);
        }
        commit_finish_file(store, log, file, ok);
    }
    if (!ok) {
        log->flight_chunks = 0;
        return;
    }
    commit_move_durable(log, item);
    if (item->file_count == 0) return;
    positions_mark(log);
    retention_retire(log);
}

/* Tells the owner, now that every log of the commit has its new state. */
static void commit_tell_log(struct log_store *store, const struct commit_log *item)
{
    struct partition_log *log = item->log;
    if (item->status != STATUS_OK) {
        if (!log->failed) log->lacked_space = item->status == STATUS_NO_SPACE;
        log_set_failed(log, &item->error);
        return;
    }
    if (item->end_offset <= log->durable) return;
    log->durable = item->end_offset;
    if (!log->dropped && store->options.handlers.durable != NULL) {
        store->options.handlers.durable(store->options.handlers.context, log);
    }
}

static void commit_finish(struct log_store *store)
{
    struct commit *commit = &store->commit;
    int64_t took_us = loop_now_us(store->loop) - commit->started_us;
    store->stats.commits++;
    store->stats.last_commit_us = took_us;
    if (took_us > store->stats.max_commit_us) store->stats.max_commit_us = took_us;
    for (uint32_t i = 0; i < commit->log_count; i++) {
        commit_settle_log(store, &commit->logs[i]);
    }
    for (uint32_t i = 0; i < commit->log_count; i++) {
        commit_tell_log(store, &commit->logs[i]);
    }
    for (uint32_t i = 0; i < commit->exclusive_count; i++) {
        exclusive_finish(commit->exclusives[i]);
    }
    commit->in_flight = false;
    journal_took(store, commit->record_bytes, commit->journal_status);
    commit->started_us = 0;
    commit->number_done = commit->number;
    cache_evict(store);
    log_store_check_waiters(store);
    positions_touch_idle_timer(store);
    if (!store->start_scheduled) commit_start(store);
}

static void commit_part_done(struct job *job)
{
    struct commit_part *part = CONTAINER_OF(job, struct commit_part, job);
    if (--part->store->commit.parts_left == 0) commit_finish(part->store);
}

void commit_init(struct log_store *store)
{
    store->commit.prepare = (struct job){.run = commit_prepare_run, .done = commit_prepare_done};
    for (uint32_t i = 0; i < COMMIT_PARTS_MAX; i++) {
        store->commit.parts[i] = (struct commit_part){
            .job = {.run = commit_part_run, .done = commit_part_done}, .store = store, .number = i};
    }
}

void commit_deinit(struct log_store *store)
{
    struct commit *commit = &store->commit;
    for (uint32_t i = 0; i < COMMIT_PARTS_MAX; i++) {
        free(commit->parts[i].small);
    }
    for (uint32_t i = 0; i < commit->log_capacity; i++) {
        epoch_history_deinit(&commit->logs[i].epochs);
    }
    for (uint32_t i = 0; i < commit->file_capacity; i++) {
        for (int kind = 0; kind < INDEX_KIND_COUNT; kind++) {
            buffer_deinit(&commit->files[i].index[kind]);
        }
    }
    buffer_deinit(&commit->record);
    free(commit->logs);
    free(commit->files);
    free(commit->writes);
    free(commit->exclusives);
}
