/* journal_keeper.c: which commits go to the journal, and the syncing of their segments behind it.
 *
 * A cycle: the file that took records hands over to the other one; the segments it speaks of are
 * synced, a few at a time; then it is invalidated and free again. One cycle at a time. A segment
 * that cannot be synced fails its log; then the journal is off: both files are kept for the next
 * start, and commits sync their segments themselves, as small ones always do. Thread: loop, but for
 * *_run(). */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "log/store_internal.h"

#define JOURNAL_FILES_MIN    16 /* measured: from here on one journal beats a sync a file */
#define JOURNAL_COMMIT_BYTES (8 * 1024 * 1024) /* more is better written once */
#define JOURNAL_VOID_RESERVE (4 * 1024 * 1024)
#define JOURNAL_CYCLE_BYTES  (8 * 1024 * 1024)
#define JOURNAL_CYCLE_US     200000
#define BEHIND_JOB_ITEMS     16

/* A few segments to sync. */
struct behind_job {
    struct job job;
    struct log_store *store;
    struct behind_item items[BEHIND_JOB_ITEMS];
    enum status status[BEHIND_JOB_ITEMS];
    struct error error;
    uint32_t count;
};

static void cycle_go_on(struct log_store *store);

/* ---- which commits ---- */

bool journal_has_room(const struct log_store *store, int64_t bytes, bool for_voids)
{
    const struct journal_keeper *keeper = &store->journal;
    int64_t limit = for_voids ? JOURNAL_BYTES : JOURNAL_BYTES - JOURNAL_VOID_RESERVE;
    if (keeper->broken || (keeper->off && !for_voids)) return false;
    return keeper->used_bytes[keeper->active] + bytes <= limit;
}

/* What a commit of these logs would take in the journal; 0: it is not for the journal. */
bool journal_wants(struct log_store *store, uint32_t files, int64_t bytes)
{
    int64_t record_bytes = bytes + (int64_t)files * JOURNAL_ENTRY_BYTES_MAX + JOURNAL_HEAD_BYTES;
    if (files <= JOURNAL_FILES_MIN || record_bytes > JOURNAL_COMMIT_BYTES) return false;
    if (journal_has_room(store, record_bytes, false)) return true;
    journal_start_cycle(store);
    return journal_has_room(store, record_bytes, false);
}

static void journal_add_item(struct journal_keeper *keeper, int which, struct behind_item item)
{
    struct behind_list *list = &keeper->behind[which];
    if (list->count == list->capacity) {
        list->capacity = list->capacity == 0 ? 64 : list->capacity * 2;
        list->items = memory_resize(list->items, list->capacity, sizeof(*list->items));
    }
    list->items[list->count++] = item;
}

/* A segment written without a sync, its bytes being in the active file. */
void journal_note(struct partition_log *log, struct segment *segment, bool created,
                  bool first_of_log)
{
    struct journal_keeper *keeper = &log->store->journal;
    uint8_t bit = (uint8_t)(1u << keeper->active);
    log->journal_mark |= bit;
    if (created) log->names_behind = true;
    if ((segment->behind & bit) && !created) return;
    segment->behind |= bit;
    journal_add_item(keeper, keeper->active,
                     (struct behind_item){.log = log,
                                          .base_offset = segment->base_offset,
                                          .created = created,
                                          .first_of_log = first_of_log});
}

void journal_took(struct log_store *store, int64_t bytes, enum status status)
{
    struct journal_keeper *keeper = &store->journal;
    if (bytes == 0) return;
    if (status != STATUS_OK) {
        /* What the file holds from here on is not known. */
        keeper->off = keeper->broken = true;
        log_error("commit_journal_off file=%d", keeper->active);
        return;
    }
    bool first = keeper->used_bytes[keeper->active] == 0;
    keeper->used_bytes[keeper->active] += bytes;
    bool wanted = keeper->cycle_wanted || keeper->used_bytes[keeper->active] >= JOURNAL_CYCLE_BYTES;
    keeper->cycle_wanted = false;
    if (wanted) {
        journal_start_cycle(store);
    } else if (first && keeper->cycle < 0) {
        timer_start(keeper->timer, JOURNAL_CYCLE_US);
    }
}

/* ---- the cycle ---- */

static enum status behind_sync(struct log_store *store, const struct behind_item *item,
                               struct error *error)
{
    struct file_system *fs = store->options.fs;
    char directory[LOG_DIRECTORY_BYTES], path[SEGMENT_PATH_BYTES];
    struct file *file = NULL;
    log_directory(directory, store, item->log->topic, item->log->partition);
    segment_path(path, directory, item->base_offset, ".log");
    enum status status = file_open(fs, path, FILE_WRITE, &file, error);
    /* Retention has taken it meanwhile, or a cut. */
    if (status == STATUS_NOT_FOUND) return STATUS_OK;
    if (status == STATUS_OK) status = segment_sync_file(file, error);
    file_close(file);
    if (status == STATUS_OK && item->created) {
        status = segment_sync_directory(fs, directory, error);
    }
    return status;
}

static void behind_run(struct job *job)
{
    struct behind_job *work = CONTAINER_OF(job, struct behind_job, job);
    const char *topic = NULL; /* whose directory's name is synced by now */
    for (uint32_t i = 0; i < work->count; i++) {
        const struct behind_item *item = &work->items[i];
        work->status[i] = behind_sync(work->store, item, &work->error);
        bool known = topic != NULL && strcmp(topic, item->log->topic) == 0;
        if (work->status[i] != STATUS_OK || !item->first_of_log || known) continue;
        work->status[i] = segment_sync_parents(work->store->options.fs, work->store->data_dir,
                                               item->log->topic, &work->error);
        topic = item->log->topic;
    }
}

static void behind_done(struct job *job)
{
    struct behind_job *work = CONTAINER_OF(job, struct behind_job, job);
    struct log_store *store = work->store;
    for (uint32_t i = 0; i < work->count; i++) {
        struct partition_log *log = work->items[i].log;
        if (work->status[i] != STATUS_OK) {
            store->journal.cycle_failed = true;
            work->error.status = STATUS_IO;
            log_set_failed(log, &work->error);
        }
        log_job_ended(log, false);
    }
    store->journal.jobs--;
    free(work);
    cycle_go_on(store);
}

/* Takes the next few; false if there are none left. */
static bool cycle_submit(struct log_store *store)
{
    struct journal_keeper *keeper = &store->journal;
    const struct behind_list *list = &keeper->behind[keeper->cycle];
    struct behind_job *work = memory_new(sizeof(*work));
    while (keeper->cycle_next < list->count && work->count < BEHIND_JOB_ITEMS) {
        struct behind_item item = list->items[keeper->cycle_next++];
        if (item.log == NULL) continue;
        log_job_began(item.log, false);
        work->items[work->count++] = item;
    }
    if (work->count == 0) {
        free(work);
        return false;
    }
    work->job = (struct job){.run = behind_run, .done = behind_done};
    work->store = store;
    keeper->jobs++;
    executor_submit(store->options.executor, EXECUTOR_LANE_DISK, &work->job);
    return true;
}

static void invalidate_run(struct job *job)
{
    struct log_store *store = CONTAINER_OF(job, struct log_store, journal.invalidate);
    struct journal_keeper *keeper = &store->journal;
    keeper->invalidate_status =
        commit_journal_invalidate(&keeper->journal, keeper->cycle, &keeper->invalidate_error);
}

/* Nothing of the file counts any more: its marks go. */
static void cycle_clear_marks(struct journal_keeper *keeper, int which)
{
    struct behind_list *list = &keeper->behind[which];
    uint8_t bit = (uint8_t)(1u << which);
    for (uint32_t i = 0; i < list->count; i++) {
        struct partition_log *log = list->items[i].log;
        if (log == NULL) continue;
        struct segment *segment = log_segment_of(log, list->items[i].base_offset);
        if (segment != NULL) segment->behind &= (uint8_t)~bit;
        log->journal_mark &= (uint8_t)~bit;
        if (log->journal_mark == 0) log->names_behind = false;
    }
    list->count = 0;
    keeper->used_bytes[which] = 0;
}

static void cycle_end(struct log_store *store, bool ok)
{
    struct journal_keeper *keeper = &store->journal;
    int which = keeper->cycle;
    keeper->cycle = -1;
    if (ok) {
        cycle_clear_marks(keeper, which);
    } else {
        keeper->off = true;
        log_error("commit_journal_off file=%d", which);
    }
    if (!keeper->off && keeper->used_bytes[keeper->active] > 0) {
        timer_start(keeper->timer, store->stopping ? 0 : JOURNAL_CYCLE_US);
    }
    log_store_check_waiters(store);
    if (store->waiting_first != NULL || store->dirty_first != NULL) commit_schedule(store);
}

static void invalidate_done(struct job *job)
{
    struct log_store *store = CONTAINER_OF(job, struct log_store, journal.invalidate);
    store->journal.jobs--;
    cycle_end(store, store->journal.invalidate_status == STATUS_OK);
}

static void cycle_go_on(struct log_store *store)
{
    struct journal_keeper *keeper = &store->journal;
    while (keeper->jobs < 2 && cycle_submit(store)) {
    }
    if (keeper->jobs > 0) return;
    if (keeper->cycle_failed) {
        cycle_end(store, false);
        return;
    }
    keeper->jobs++;
    keeper->invalidate = (struct job){.run = invalidate_run, .done = invalidate_done};
    executor_submit(store->options.executor, EXECUTOR_LANE_DISK, &keeper->invalidate);
}

void journal_start_cycle(struct log_store *store)
{
    struct journal_keeper *keeper = &store->journal;
    /* A commit under way writes to the file that is active now. */
    if (keeper->cycle >= 0 || keeper->off || store->commit.in_flight) return;
    if (keeper->used_bytes[keeper->active] == 0) return;
    keeper->cycle = keeper->active;
    keeper->cycle_next = 0;
    keeper->cycle_failed = false;
    keeper->active = 1 - keeper->active;
    ASSERT(keeper->used_bytes[keeper->active] == 0);
    timer_stop(keeper->timer);
    cycle_go_on(store);
}

static void journal_due(void *context)
{
    struct log_store *store = context;
    if (store->commit.in_flight) {
        store->journal.cycle_wanted = true; /* commit_finish() comes back to it */
        return;
    }
    journal_start_cycle(store);
}

bool journal_is_empty(const struct log_store *store)
{
    const struct journal_keeper *keeper = &store->journal;
    return keeper->off || (keeper->cycle < 0 && keeper->used_bytes[keeper->active] == 0);
}

/* ---- logs that are cut or leave ---- */

/* The log's bytes are synced and its records taken back: nothing here concerns it any more. */
void journal_forget(struct partition_log *log)
{
    struct journal_keeper *keeper = &log->store->journal;
    if (log->journal_mark == 0) return;
    for (int which = 0; which < JOURNAL_FILES; which++) {
        struct behind_list *list = &keeper->behind[which];
        for (uint32_t i = 0; i < list->count; i++) {
            if (list->items[i].log == log) list->items[i].log = NULL;
        }
    }
    for (uint32_t i = 0; i < log->segment_count; i++) {
        log->segments[i]->behind = 0;
    }
    log->journal_mark = 0;
    log->names_behind = false;
}

/* Bases of the log's segments that were written without a sync. */
void journal_list_behind(const struct partition_log *log, struct exclusive *exclusive)
{
    exclusive->behind = memory_new((log->segment_count + 1) * sizeof(*exclusive->behind));
    for (uint32_t i = 0; i < log->segment_count; i++) {
        if (log->segments[i]->behind == 0) continue;
        exclusive->behind[exclusive->behind_count++] =
            (struct behind_item){.log = exclusive->log,
                                 .base_offset = log->segments[i]->base_offset,
                                 .created = true,
                                 .first_of_log = true};
    }
}

/* Worker: before a log is cut or leaves, its bytes reach their files. */
enum status journal_settle(struct log_store *store, struct exclusive *exclusive,
                           struct error *error)
{
    enum status status = STATUS_OK;
    for (uint32_t i = 0; status == STATUS_OK && i < exclusive->behind_count; i++) {
        status = behind_sync(store, &exclusive->behind[i], error);
    }
    if (status == STATUS_OK && exclusive->behind_count > 0) {
        status =
            segment_sync_parents(store->options.fs, store->data_dir, exclusive->log->topic, error);
    }
    return status;
}

void journal_init(struct log_store *store)
{
    struct journal_keeper *keeper = &store->journal;
    commit_journal_init(&keeper->journal, store->options.fs, store->data_dir);
    keeper->cycle = -1;
    keeper->timer = timer_new(store->loop, journal_due, store);
}

void journal_deinit(struct log_store *store)
{
    struct journal_keeper *keeper = &store->journal;
    ASSERT(keeper->jobs == 0);
    timer_free(keeper->timer);
    commit_journal_deinit(&keeper->journal);
    for (int i = 0; i < JOURNAL_FILES; i++) {
        free(keeper->behind[i].items);
    }
}
