/* log_store.c: the store as a whole: opening and loading it, flushing, stopping, reading logs
 * through. Commits are commit.c, recovery of a partition recovery.c. Thread: loop, but where the
 * header says worker. */
#include "log/log_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/assert.h"
#include "base/memory.h"
#include "log/segment_walk.h"
#include "log/store_internal.h"

struct log_store *log_store_new(const struct log_store_options *options)
{
    struct log_store *store = memory_new(sizeof(*store));
    store->options = *options;
    store->loop = options->loop;
    store->data_dir = memory_copy_text(options->data_dir);
    store->options.data_dir = store->data_dir;
    partition_table_init(&store->table);
    pthread_mutex_init(&store->recovered_mutex, NULL);
    pthread_mutex_init(&store->segments_mutex, NULL);
    commit_init(store);
    positions_init(store);
    offsets_init(store);
    journal_init(store);
    return store;
}

void log_store_free(struct log_store *store)
{
    if (store == NULL) return;
    ASSERT(!store->start_scheduled);
    store->freeing = true; /* no commit begins, and files are closed here, not by a job */
    log_store_adopt(store);
    ASSERT(!store->commit.in_flight && !store->positions_job.in_flight &&
           !store->offsets_job.in_flight);
    struct partition_log *log, *next;
    DL_FOREACH_SAFE(store->logs, log, next)
    {
        log->dirty = false;
        log->flight_chunks = 0;
        cache_clear(log);
        DL_DELETE(store->logs, log);
        log_free(log);
    }
    open_files_free(store);
    cache_free_pool(store);
    commit_deinit(store);
    positions_deinit(store);
    offsets_deinit(store);
    journal_deinit(store);
    synced_positions_close(&store->positions);
    partition_table_deinit(&store->table);
    pthread_mutex_destroy(&store->recovered_mutex);
    pthread_mutex_destroy(&store->segments_mutex);
    free(store->data_dir);
    free(store);
}

/* ---- loading ------------------------------------------------------------------------------------
 */

static void load_slot(void *context, uint32_t slot, const struct position_slot *content)
{
    struct log_store *store = context;
    if (content->generation == 0) {
        if (store->free_slot_count == store->free_slot_capacity) {
            store->free_slot_capacity =
                store->free_slot_capacity == 0 ? 64 : store->free_slot_capacity * 2;
            store->free_slots = memory_resize(store->free_slots, store->free_slot_capacity,
                                              sizeof(*store->free_slots));
        }
        store->free_slots[store->free_slot_count++] = slot;
        return;
    }
    struct partition_key key = {.uid = content->uid, .partition = content->partition};
    struct partition_record *record = partition_table_get(&store->table, &key, NULL);
    /* Of two slots for one partition (a freed one that came back) the newer one holds. */
    if (record->slot != POSITION_SLOT_NONE && record->slot_generation > content->generation) return;
    record->slot = slot;
    record->slot_generation = content->generation;
    record->synced = content->synced;
}

/* The order in which free ones are taken: lowest first. */
static void load_sort_free_slots(struct log_store *store)
{
    for (uint32_t i = 0; i < store->free_slot_count / 2; i++) {
        uint32_t *low = &store->free_slots[i];
        uint32_t *high = &store->free_slots[store->free_slot_count - 1 - i];
        uint32_t swap = *low;
        *low = *high;
        *high = swap;
    }
}

static enum status load_positions(struct log_store *store, struct error *error)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/synced-positions", store->data_dir);
    enum status status =
        synced_positions_open(&store->positions, store->options.fs, path, load_slot, store,
                              &store->slot_count, &store->table.positions_complete, error);
    load_sort_free_slots(store);
    return status;
}

/* A sealed document that is missing or damaged is begun anew, or rebuilt; one that cannot be read
 * stops us. */
static enum status load_document(struct log_store *store, const char *name, const char *consequence,
                                 enum status (*load)(struct partition_table *, struct file_system *,
                                                     const char *, struct error *),
                                 bool *known, struct error *error)
{
    char path[PATH_MAX];
    struct error problem = {0};
    snprintf(path, sizeof(path), "%s/%s", store->data_dir, name);
    enum status status = load(&store->table, store->options.fs, path, &problem);
    *known = status == STATUS_OK;
    if (status == STATUS_OK || status == STATUS_NOT_FOUND) return STATUS_OK;
    if (status != STATUS_CORRUPT) return error_set(error, status, "%s", problem.text);
    log_error("%s_damaged file=%s consequence=\"%s\" error=\"%s\"", name, path, consequence,
              problem.text);
    return STATUS_OK;
}

enum status log_store_load(struct log_store *store, struct error *error)
{
    char topics[PATH_MAX];
    bool known;
    snprintf(topics, sizeof(topics), "%s/topics", store->data_dir);
    enum status status = file_make_directory(store->options.fs, topics, error);
    if (status == STATUS_OK) {
        status = segment_sync_directory(store->options.fs, store->data_dir, error);
    }
    if (status != STATUS_OK) return status;
    uint64_t replayed;
    trash_empty(store);
    status = commit_journal_replay(&store->journal.journal, &replayed, error);
    if (status != STATUS_OK) return status;
    status = load_document(store, "replication-epochs.json", "rebuilt from the batches",
                           epochs_file_load, &store->table.epochs_known, error);
    if (status == STATUS_OK) {
        status = load_document(store, "replication-offsets.json",
                               "high watermarks and log starts begin anew", offsets_file_load,
                               &known, error);
    }
    return status == STATUS_OK ? load_positions(store, error) : status;
}

/* ---- logs coming in ---- */

void log_store_adopt(struct log_store *store)
{
    if (__atomic_load_n(&store->recovered, __ATOMIC_ACQUIRE) == NULL) return;
    pthread_mutex_lock(&store->recovered_mutex);
    struct partition_log *log = store->recovered;
    store->recovered = NULL;
    pthread_mutex_unlock(&store->recovered_mutex);
    while (log != NULL) {
        struct partition_log *next = log->next_dirty;
        log->next_dirty = NULL;
        DL_APPEND(store->logs, log);
        store->stats.corrupt_ranges += log->corrupt_ranges;
        if (!log->failed) {
            if (log->position_stale && log->segment_count > 0) positions_mark(log);
            if (log->offsets_stale) offsets_mark(log);
            retention_retire(log);
            if (log->epochs_dirty || log_has_writes(log)) log_mark_dirty(log);
            positions_touch_idle_timer(store);
        }
        log = next;
    }
}

struct partition_log *log_store_create(struct log_store *store, const struct log_identity *identity,
                                       const struct log_config *config)
{
    log_store_adopt(store);
    struct partition_log *log = log_new(store, identity, config);
    DL_APPEND(store->logs, log);
    return log;
}

/* ---- flush and stop ---- */

static bool waiter_is_satisfied(const struct log_store *store, const struct flush_waiter *waiter)
{
    if (store->commit.number_done < waiter->commit) return false;
    if (store->offsets_round < waiter->offsets_round) return false;
    if (!waiter->everything) return true;
    return store->position_dirty_count == 0 && !store->positions_job.in_flight &&
           journal_is_empty(store) && store->snapshots_in_flight == 0 &&
           store->compactions_in_flight == 0 && store->waiting_first == NULL;
}

static void waiter_tell(void *context)
{
    struct flush_waiter *waiter = context;
    if (waiter->done != NULL) {
        waiter->done(waiter->context, waiter->status,
                     waiter->status == STATUS_OK ? NULL : &waiter->error);
    }
    free(waiter);
}

/* The round it waits for, or none: the one that was under way when it came may have said all that
 * an earlier one could not write, or the log that had something to say is dropped. */
static void waiter_start_offsets(struct log_store *store, struct flush_waiter *waiter)
{
    if (store->offsets_round >= waiter->offsets_round) return;
    offsets_start(store);
    if (!store->offsets_job.in_flight) waiter->offsets_round = store->offsets_round;
}

void log_store_check_waiters(struct log_store *store)
{
    struct flush_waiter **link = &store->waiters;
    while (*link != NULL) {
        struct flush_waiter *waiter = *link;
        waiter_start_offsets(store, waiter);
        if (waiter_is_satisfied(store, waiter)) {
            *link = waiter->next;
            loop_defer(store->loop, waiter_tell, waiter);
            continue;
        }
        link = &waiter->next;
        if (waiter->everything && !store->commit.in_flight) {
            positions_start(store);
            journal_start_cycle(store);
        }
    }
}

static void waiter_fail(struct flush_waiter *waiter, const struct error *error)
{
    if (waiter->status != STATUS_OK) return;
    waiter->status = error->status == STATUS_OK ? STATUS_IO : error->status;
    waiter->error = *error;
}

void log_store_fail_waiters(struct log_store *store, const struct error *error)
{
    for (struct flush_waiter *waiter = store->waiters; waiter != NULL; waiter = waiter->next) {
        waiter_fail(waiter, error);
    }
}

void log_store_fail_round(struct log_store *store, const struct error *error)
{
    for (struct flush_waiter *waiter = store->waiters; waiter != NULL; waiter = waiter->next) {
        bool waits = waiter->strictly && waiter->offsets_round == store->offsets_round;
        if (waits) waiter_fail(waiter, error);
    }
}

static void log_store_wait(struct log_store *store, struct flush_waiter wanted)
{
    struct flush_waiter *waiter = memory_new(sizeof(*waiter));
    log_store_adopt(store);
    *waiter = wanted;
    const struct commit *commit = &store->commit;
    waiter->commit = store->dirty_first != NULL ? commit->number + 1 : commit->number;
    /* A round under way was filled before this call. */
    bool offsets = store->offsets_dirty_count > 0 || store->offsets_unwritten;
    waiter->offsets_round =
        store->offsets_round + (store->offsets_job.in_flight ? 1 : 0) + (offsets ? 1 : 0);
    waiter->next = store->waiters;
    store->waiters = waiter;
    log_store_check_waiters(store);
}

void log_store_flush(struct log_store *store, log_done_fn done, void *context)
{
    log_store_wait(store, (struct flush_waiter){.done = done, .context = context});
}

void log_store_flush_offsets(struct log_store *store, log_done_fn done, void *context)
{
    log_store_wait(store,
                   (struct flush_waiter){.strictly = true, .done = done, .context = context});
}

/* So that the next start need not read the last segments for producers. Of what is durable only:
 * a snapshot may not know what a crash still takes. */
static void stop_take_snapshots(struct log_store *store)
{
    struct partition_log *log;
    DL_FOREACH(store->logs, log)
    {
        if (!log->appended || log->failed || log->dropped || log->busy) continue;
        if (log->durable != log->log_end) continue;
        struct buffer *snapshot = log_take_snapshot(log);
        if (snapshot != NULL) snapshot_start(log, log->log_end, snapshot);
    }
}

/* A stop: first all is flushed, then the snapshots are taken. */
struct store_stop {
    struct log_store *store;
    log_done_fn done;
    void *context;
    enum status status; /* of the flush */
    struct error error;
};

static void stop_ended(void *context, enum status status, const struct error *error)
{
    struct store_stop *stop = context;
    if (stop->status != STATUS_OK) {
        status = stop->status;
        error = &stop->error;
    }
    if (stop->done != NULL) stop->done(stop->context, status, error);
    free(stop);
}

static void stop_flushed(void *context, enum status status, const struct error *error)
{
    struct store_stop *stop = context;
    stop->status = status;
    if (error != NULL) stop->error = *error;
    stop_take_snapshots(stop->store);
    log_store_wait(stop->store,
                   (struct flush_waiter){.everything = true, .done = stop_ended, .context = stop});
}

void log_store_stop(struct log_store *store, log_done_fn done, void *context)
{
    log_store_adopt(store);
    store->stopping = true;
    struct partition_log *log;
    DL_FOREACH(store->logs, log)
    {
        compaction_cancel(log);
    }
    struct store_stop *stop = memory_new(sizeof(*stop));
    *stop = (struct store_stop){.store = store, .done = done, .context = context};
    log_store_wait(store, (struct flush_waiter){.done = stop_flushed, .context = stop});
}

size_t log_store_unsynced_bytes(const struct log_store *store)
{
    return store->unsynced_bytes;
}

int64_t log_store_commit_started_us(const struct log_store *store)
{
    return store->commit.started_us;
}

void log_store_stats(const struct log_store *store, struct log_store_stats *out)
{
    *out = store->stats;
}

/* ---- reading a log through (worker) ---- */

/* The base offsets of the segments there are. */
static int64_t *scan_copy_segments(struct partition_log *log, uint32_t *count)
{
    pthread_mutex_lock(&log->store->segments_mutex);
    int64_t *bases = memory_new((log->segment_count + 1) * sizeof(*bases));
    *count = log->segment_count;
    for (uint32_t i = 0; i < log->segment_count; i++) {
        bases[i] = log->segments[i]->base_offset;
    }
    log->scans++;
    pthread_mutex_unlock(&log->store->segments_mutex);
    return bases;
}

static void scan_free_segments(struct partition_log *log, int64_t *bases)
{
    free(bases);
    pthread_mutex_lock(&log->store->segments_mutex);
    log->scans--;
    pthread_mutex_unlock(&log->store->segments_mutex);
}

/* A log on its way through log_store_scan(). */
struct log_scan {
    struct partition_log *log;
    int64_t from, to;
    log_batch_fn each;
    void *context;
    struct log_damage *damage;
    const char *directory;
    int64_t expected; /* offset of the next batch */
    int64_t limit;    /* where the next segment begins, or the log ends */
    bool more;        /* neither the end nor a false was met */
};

static bool scan_allows_gaps(const struct log_scan *scan)
{
    return scan->log->config.compacted || !scan->log->config.delete_old;
}

/* Is the batch in its place? Its base offset is not under its CRC. */
static bool scan_fits(const struct log_scan *scan, const struct batch_header *header)
{
    bool follows = scan_allows_gaps(scan) ? header->base_offset >= scan->expected
                                          : header->base_offset == scan->expected;
    return follows && batch_last_offset(header) < scan->limit;
}

/* No batch where the walk stands; the next sound one is of offset `behind`, at `position`.
 * STATUS_OK: nothing that is wanted, on behind it. STATUS_CORRUPT: that is the damage. */
static enum status scan_damage(struct log_scan *scan, struct segment_walk *walk, int64_t behind,
                               int64_t position, struct error *error)
{
    if (behind > scan->from) {
        scan->damage->from = scan->expected > scan->from ? scan->expected : scan->from;
        scan->damage->to = behind;
        return error_set(error, STATUS_CORRUPT, "position %lld: offset %lld: not as written",
                         (long long)walk->position, (long long)scan->expected);
    }
    walk->position = position;
    scan->expected = behind;
    return STATUS_OK;
}

static enum status scan_step_over(struct log_scan *scan, struct segment_walk *walk,
                                  struct error *error)
{
    int64_t position = 0, offset = 0;
    enum status status =
        segment_walk_resume(walk->file, walk->position + 1, walk->end, scan->expected + 1,
                            scan->limit - 1, &position, &offset, error);
    if (status == STATUS_NOT_FOUND) {
        return scan_damage(scan, walk, scan->limit, walk->end, error);
    }
    return status == STATUS_OK ? scan_damage(scan, walk, offset, position, error) : status;
}

static enum status scan_walk(struct log_scan *scan, struct segment_walk *walk, struct error *error)
{
    struct batch_header header;
    const uint8_t *data;
    while (scan->more && scan->expected < scan->limit) {
        enum status status = segment_walk_batch(walk, &header, &data, error);
        if (status == STATUS_NOT_FOUND) {
            if (scan_allows_gaps(scan)) return STATUS_OK;
            return scan_damage(scan, walk, scan->limit, walk->end, error);
        }
        if (status == STATUS_CORRUPT || (status == STATUS_OK && !scan_fits(scan, &header))) {
            status = scan_step_over(scan, walk, error);
            if (status == STATUS_OK) continue;
        }
        if (status != STATUS_OK) return status;
        int64_t end = batch_last_offset(&header) + 1;
        if (header.base_offset < scan->to && end > scan->from) {
            scan->more = scan->each(scan->context, data, header.batch_bytes);
        }
        /* Behind the last batch lie zeros. */
        if (end >= scan->to) scan->more = false;
        scan->expected = end;
        segment_walk_skip(walk, &header);
    }
    return STATUS_OK;
}

static enum status scan_one_segment(struct log_scan *scan, int64_t segment_base,
                                    struct error *error)
{
    char path[SEGMENT_PATH_BYTES];
    struct file *file = NULL;
    struct segment_walk walk;
    segment_path(path, scan->directory, segment_base, ".log");
    enum status status = file_open(scan->log->store->options.fs, path, FILE_READ, &file, error);
    if (status != STATUS_OK) return status;
    segment_walk_init(&walk, file, 0, INT64_MAX, SEGMENT_WALK_BYTES);
    status = file_size(file, &walk.end, error);
    if (status == STATUS_OK) status = scan_walk(scan, &walk, error);
    segment_walk_deinit(&walk);
    file_close(file);
    if (status != STATUS_OK) error_prefix(error, "%s", path);
    return status;
}

enum status log_store_scan(struct partition_log *log, int64_t from, int64_t to, log_batch_fn each,
                           void *context, struct log_damage *damage, struct error *error)
{
    char directory[LOG_DIRECTORY_BYTES];
    uint32_t count;
    enum status status = STATUS_OK;
    int64_t *bases = scan_copy_segments(log, &count);
    struct log_scan scan = {.log = log,
                            .from = from,
                            .to = to < log->log_end ? to : log->log_end,
                            .each = each,
                            .context = context,
                            .damage = damage,
                            .directory = directory,
                            .more = true};
    *damage = (struct log_damage){0};
    log_directory(directory, log->store, log->topic, log->partition);
    int64_t first = count == 0 || bases[0] > scan.to ? scan.to : bases[0];
    if (first > from && !scan_allows_gaps(&scan)) {
        *damage = (struct log_damage){.from = from, .to = first};
        status = error_set(error, STATUS_CORRUPT, "%s: no files of offsets %lld to %lld", log->name,
                           (long long)from, (long long)first);
    }
    for (uint32_t i = 0; status == STATUS_OK && scan.more && i < count; i++) {
        if (i + 1 < count && bases[i + 1] <= from) continue;
        if (bases[i] >= scan.to) break;
        scan.expected = bases[i];
        scan.limit = i + 1 < count ? bases[i + 1] : log->log_end;
        status = scan_one_segment(&scan, bases[i], error);
    }
    scan_free_segments(log, bases);
    return status;
}

int64_t log_store_files_begin(struct partition_log *log)
{
    int64_t begin = log->log_start;
    pthread_mutex_lock(&log->store->segments_mutex);
    if (log->segment_count > 0 && log->segments[0]->base_offset < begin) {
        begin = log->segments[0]->base_offset;
    }
    pthread_mutex_unlock(&log->store->segments_mutex);
    return begin;
}

/* Bases of snapshots at or below the log end, ascending. */
struct snapshot_list {
    int64_t *bases;
    uint32_t count, capacity;
    int64_t end_offset;
};

static bool snapshot_list_one(void *context, const char *name, enum file_kind kind)
{
    struct snapshot_list *list = context;
    int64_t base;
    if (kind != FILE_KIND_REGULAR || !segment_name_parse(name, ".snapshot", &base)) return true;
    if (base > list->end_offset) return true;
    if (list->count == list->capacity) {
        list->capacity = list->capacity == 0 ? 8 : list->capacity * 2;
        list->bases = memory_resize(list->bases, list->capacity, sizeof(int64_t));
    }
    list->bases[list->count++] = base;
    return true;
}

enum status log_store_scan_producers(struct partition_log *log, struct buffer *snapshot,
                                     log_batch_fn each, void *context, struct log_damage *damage,
                                     struct error *error)
{
    char directory[LOG_DIRECTORY_BYTES];
    struct snapshot_list list = {.end_offset = log->log_end};
    int64_t from = log_store_files_begin(log);
    *damage = (struct log_damage){0};
    log_directory(directory, log->store, log->topic, log->partition);
    enum status status =
        file_list(log->store->options.fs, directory, snapshot_list_one, &list, error);
    if (status == STATUS_NOT_FOUND) status = STATUS_OK;
    while (status == STATUS_OK && list.count > 0) {
        int64_t base = list.bases[--list.count];
        enum status read =
            segment_snapshot_read(log->store->options.fs, directory, base, snapshot, NULL);
        if (read != STATUS_OK) continue; /* an older one will do, or none */
        if (base > from) from = base;
        break;
    }
    free(list.bases);
    if (status != STATUS_OK) return status;
    return log_store_scan(log, from, log->durable, each, context, damage, error);
}
