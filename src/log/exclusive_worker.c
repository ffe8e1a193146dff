/* exclusive_worker.c: cutting, resetting, dropping and closing a log: the worker's half.
 *
 * Each step leaves files that recovery understands. By the time a byte goes the synced position on
 * record has gone down and the epoch history is written: so what a crash leaves half cut is "beyond
 * the synced position", and is kept or cut, but never taken for rot. truncate: later segments go
 * (last first), then the digest of the one that is cut, then its tail. reset:    all segments go
 * (last first), then the new one is made.                           */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/memory.h"
#include "log/compaction_work.h"
#include "log/segment_walk.h"
#include "log/store_internal.h"

/* A directory's name has at most 255 bytes; topic names alone may have 249. */
#define ASIDE_TOPIC_BYTES 200
#define KEPT_RESETS_MAX   8 /* of a topic */

static enum status exclusive_failpoint(const char *name, struct error *error)
{
    (void)name;
    if (FAILPOINT(name)) return error_set(error, STATUS_IO, "failpoint %s", name);
    return STATUS_OK;
}

/* ---- where the cut falls ---- */

/* Fills in from the files what the loop had no longer in memory. */
static void cut_look_up(struct log_store *store, struct exclusive *exclusive, const char *directory)
{
    char path[SEGMENT_PATH_BYTES];
    struct index_entry entry;
    int64_t delta = exclusive->offset - exclusive->target_base;
    for (int kind = 0; kind < INDEX_KIND_COUNT; kind++) {
        struct file *file = NULL;
        bool times = kind == INDEX_TIMES;
        if (times ? exclusive->max_timestamp_ms >= 0 : exclusive->hint_position >= 0) continue;
        segment_path(path, directory, exclusive->target_base, index_suffix((enum index_kind)kind));
        if (file_open(store->options.fs, path, FILE_READ, &file, NULL) != STATUS_OK) continue;
        enum status status = index_file_find(file, (enum index_kind)kind, exclusive->target_base,
                                             times, times ? delta - 1 : delta, &entry, NULL);
        file_close(file);
        if (status != STATUS_OK) continue;
        if (times) {
            exclusive->max_timestamp_ms = entry.key;
            exclusive->max_timestamp_offset = exclusive->target_base + entry.value;
        } else {
            exclusive->hint_offset = exclusive->target_base + entry.key;
            exclusive->hint_position = entry.value;
        }
    }
}

/* Is there, at the hint, the batch that it names? */
static bool cut_hint_holds(struct segment_walk *walk, const struct exclusive *exclusive)
{
    struct batch_header header;
    const uint8_t *data;
    if (exclusive->hint_position <= 0 || exclusive->hint_position >= walk->end) return false;
    walk->position = exclusive->hint_position;
    return segment_walk_batch(walk, &header, &data, NULL) == STATUS_OK &&
           header.base_offset == exclusive->hint_offset;
}

/* Walks up to the first batch that reaches `offset`. Damage in between (it is quarantined) is
 * stepped over. */
static enum status cut_walk(struct exclusive *exclusive, struct segment_walk *walk)
{
    struct batch_header header;
    enum status status;
    for (;;) {
        status = segment_walk_header(walk, &header, &exclusive->error);
        if (status == STATUS_CORRUPT ||
            (status == STATUS_OK && header.base_offset < exclusive->end_offset)) {
            int64_t position, offset;
            status = segment_walk_resume(walk->file, walk->position + 1, walk->end,
                                         exclusive->end_offset + 1, INT64_MAX, &position, &offset,
                                         &exclusive->error);
            if (status != STATUS_OK) break;
            if (offset >= exclusive->offset) break;
            walk->position = position;
            continue;
        }
        if (status != STATUS_OK || batch_last_offset(&header) >= exclusive->offset) break;
        exclusive->end_offset = batch_last_offset(&header) + 1;
        if (header.max_timestamp_ms > exclusive->max_timestamp_ms) {
            exclusive->max_timestamp_ms = header.max_timestamp_ms;
            exclusive->max_timestamp_offset = header.base_offset;
        }
        segment_walk_skip(walk, &header);
    }
    exclusive->position = walk->position;
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status cut_find(struct log_store *store, struct exclusive *exclusive)
{
    char directory[LOG_DIRECTORY_BYTES], path[SEGMENT_PATH_BYTES];
    struct file *file = NULL;
    struct segment_walk walk;
    log_directory(directory, store, exclusive->log->topic, exclusive->log->partition);
    cut_look_up(store, exclusive, directory);
    segment_path(path, directory, exclusive->target_base, ".log");
    enum status status = file_open(store->options.fs, path, FILE_READ, &file, &exclusive->error);
    if (status != STATUS_OK) return status;
    segment_walk_init(&walk, file, 0, exclusive->target_bytes, SEGMENT_HEADER_BYTES);
    exclusive->end_offset = exclusive->target_base;
    if (cut_hint_holds(&walk, exclusive)) {
        exclusive->end_offset = exclusive->hint_offset;
    } else {
        walk.position = 0;
        exclusive->max_timestamp_ms = -1;
        exclusive->max_timestamp_offset = exclusive->target_base;
    }
    status = cut_walk(exclusive, &walk);
    segment_walk_deinit(&walk);
    file_close(file);
    return status;
}

/* An owner is told NO_SPACE or IO. */
static void exclusive_end(struct exclusive *exclusive, enum status status)
{
    exclusive->status = status;
    if (status == STATUS_OK) return;
    if (status != STATUS_NO_SPACE) exclusive->status = STATUS_IO;
    exclusive->error.status = exclusive->status;
    error_prefix(&exclusive->error, "%s", exclusive->log->name);
}

/* ---- doing it ---- */

/* Snapshots of states past the new end: they hold what the log no longer does. */
static enum status snapshots_remove_above(struct file_system *fs, const char *directory,
                                          int64_t offset, struct error *error)
{
    bool any;
    return segment_snapshots_keep(fs, directory, 0, offset, &any, error);
}

static enum status segments_remove_down_to(struct file_system *fs, const char *directory,
                                           const struct exclusive *exclusive, int64_t keep,
                                           struct error *error)
{
    enum status status = STATUS_OK;
    for (uint32_t i = exclusive->base_count; status == STATUS_OK && i > 0; i--) {
        if (exclusive->bases[i - 1] <= keep) break;
        status = segment_remove_files(fs, directory, exclusive->bases[i - 1], error);
    }
    return status;
}

/* All that is there, known of or not: a copy whose recovery failed knows of nothing. */
struct base_list {
    int64_t *bases;
    uint32_t count, capacity;
};

static bool base_list_one(void *context, const char *name, enum file_kind kind)
{
    static const char *const suffixes[] = {".digest", ".index", ".timeindex", ".log"};
    struct base_list *list = context;
    int64_t base;
    for (size_t i = 0; i < ARRAY_COUNT(suffixes) && kind == FILE_KIND_REGULAR; i++) {
        if (!segment_name_parse(name, suffixes[i], &base)) continue;
        /* Names come in ascending order. */
        if (list->count > 0 && list->bases[list->count - 1] == base) continue;
        if (list->count == list->capacity) {
            list->capacity = list->capacity == 0 ? 8 : list->capacity * 2;
            list->bases = memory_resize(list->bases, list->capacity, sizeof(int64_t));
        }
        list->bases[list->count++] = base;
    }
    return true;
}

static enum status segments_remove_above(struct file_system *fs, const char *directory,
                                         int64_t keep, struct error *error)
{
    struct base_list list = {0};
    enum status status = file_list(fs, directory, base_list_one, &list, error);
    for (uint32_t i = list.count; status == STATUS_OK && i > 0; i--) {
        if (list.bases[i - 1] <= keep) break;
        status = segment_remove_files(fs, directory, list.bases[i - 1], error);
    }
    free(list.bases);
    return status;
}

static enum status segment_cut_file(struct file_system *fs, const char *directory,
                                    const struct exclusive *exclusive, struct error *error)
{
    char path[SEGMENT_PATH_BYTES];
    struct file *file = NULL;
    segment_path(path, directory, exclusive->target_base, ".log");
    enum status status = file_open(fs, path, FILE_WRITE, &file, error);
    if (status == STATUS_OK) status = file_truncate(file, exclusive->position, error);
    if (status == STATUS_OK) status = segment_sync_file(file, error);
    file_close(file);
    return status;
}

static enum status truncate_run(struct file_system *fs, const char *directory,
                                struct exclusive *exclusive)
{
    char path[SEGMENT_PATH_BYTES];
    struct error *error = &exclusive->error;
    enum status status = exclusive_failpoint("truncate.begin", error);
    if (status != STATUS_OK || exclusive->target_base < 0) return status;
    /* A file that a commit without space had begun is not among the known ones. */
    status = exclusive->resumes
                 ? segments_remove_above(fs, directory, exclusive->target_base, error)
                 : segments_remove_down_to(fs, directory, exclusive, exclusive->target_base, error);
    if (status == STATUS_OK) {
        status = segment_remove_file(fs, directory, exclusive->target_base, ".digest", error);
    }
    /* The digest is gone for good before the file it describes gets shorter. */
    if (status == STATUS_OK) status = segment_sync_directory(fs, directory, error);
    if (status == STATUS_OK) status = segment_cut_file(fs, directory, exclusive, error);
    if (status == STATUS_OK) {
        status = snapshots_remove_above(fs, directory, exclusive->end_offset, error);
    }
    for (int kind = 0; status == STATUS_OK && kind < INDEX_KIND_COUNT; kind++) {
        segment_path(path, directory, exclusive->target_base, index_suffix((enum index_kind)kind));
        status = index_file_cut(fs, path, (enum index_kind)kind, exclusive->target_base,
                                exclusive->end_offset - exclusive->target_base, exclusive->position,
                                &exclusive->index_blocks[kind], error);
    }
    if (status == STATUS_OK) status = segment_sync_directory(fs, directory, error);
    return status == STATUS_OK ? exclusive_failpoint("truncate.done", error) : status;
}

static enum status reset_make_segment(struct file_system *fs, const char *directory,
                                      const struct exclusive *exclusive, struct error *error)
{
    char path[SEGMENT_PATH_BYTES];
    struct file *file = NULL;
    segment_path(path, directory, exclusive->offset, ".log");
    enum status status =
        file_open(fs, path, FILE_WRITE | FILE_CREATE | FILE_TRUNCATE, &file, error);
    if (status == STATUS_OK) status = segment_sync_file(file, error);
    file_close(file);
    return status;
}

static enum status reset_run(struct log_store *store, const char *directory,
                             struct exclusive *exclusive)
{
    struct file_system *fs = store->options.fs;
    struct error *error = &exclusive->error;
    char topic[LOG_DIRECTORY_BYTES], topics[LOG_DIRECTORY_BYTES];
    snprintf(topics, sizeof(topics), "%s/topics", store->data_dir);
    snprintf(topic, sizeof(topic), "%s/topics/%s", store->data_dir, exclusive->log->topic);
    enum status status = exclusive_failpoint("reset.begin", error);
    if (status == STATUS_OK) status = file_make_directory(fs, topic, error);
    if (status == STATUS_OK) status = file_make_directory(fs, directory, error);
    if (status == STATUS_OK) status = compaction_forget_swaps(fs, directory, error);
    if (status == STATUS_OK) status = segments_remove_above(fs, directory, -1, error);
    if (status == STATUS_OK) status = snapshots_remove_above(fs, directory, -1, error);
    if (status == STATUS_OK) status = segment_sync_directory(fs, directory, error);
    if (status == STATUS_OK) status = reset_make_segment(fs, directory, exclusive, error);
    if (status == STATUS_OK) status = segment_sync_directory(fs, directory, error);
    if (status == STATUS_OK) status = segment_sync_directory(fs, topic, error);
    if (status == STATUS_OK) status = segment_sync_directory(fs, topics, error);
    return status == STATUS_OK ? exclusive_failpoint("reset.done", error) : status;
}

/* The partition's directory leaves its place in one step, for parent/aside/: another may take it at
 * once. */
static enum status directory_leave(struct log_store *store, const char *directory,
                                   const struct partition_log *log, const char *parent,
                                   const char *aside, const char *path, struct error *error)
{
    struct file_system *fs = store->options.fs;
    char topic[LOG_DIRECTORY_BYTES];
    enum file_kind kind;
    snprintf(topic, sizeof(topic), "%s/topics/%s", store->data_dir, log->topic);
    enum status status = file_kind(fs, directory, &kind, error);
    if (status == STATUS_NOT_FOUND) return STATUS_OK;
    if (status == STATUS_OK) status = file_make_directory(fs, parent, error);
    if (status == STATUS_OK) status = file_make_directory(fs, aside, error);
    if (status == STATUS_OK) status = file_remove_tree(fs, path, error);
    if (status == STATUS_OK) status = file_rename(fs, directory, path, error);
    if (status == STATUS_OK) status = segment_sync_directory(fs, aside, error);
    if (status == STATUS_OK) status = segment_sync_directory(fs, parent, error);
    if (status == STATUS_OK) status = segment_sync_directory(fs, topic, error);
    if (status == STATUS_OK) status = segment_sync_directory(fs, store->data_dir, error);
    return status;
}

static enum status drop_run(struct log_store *store, const char *directory,
                            struct exclusive *exclusive)
{
    const struct partition_log *log = exclusive->log;
    char parent[LOG_DIRECTORY_BYTES], aside[LOG_DIRECTORY_BYTES], path[PATH_MAX];
    char uid[UUID_TEXT_BYTES];
    uuid_format(&log->uid, uid);
    if (exclusive->set_aside) {
        snprintf(parent, sizeof(parent), "%s/quarantine", store->data_dir);
        snprintf(aside, sizeof(aside), "%s/quarantine/%.*s.%s", store->data_dir, ASIDE_TOPIC_BYTES,
                 log->topic, uid);
        snprintf(path, sizeof(path), "%.*s/%d", LOG_DIRECTORY_BYTES - 1, aside, log->partition);
    } else {
        snprintf(parent, sizeof(parent), "%s", store->data_dir);
        snprintf(aside, sizeof(aside), "%s/" TRASH_DIRECTORY, store->data_dir);
        snprintf(path, sizeof(path), "%.*s/%s.%d", LOG_DIRECTORY_BYTES - 1, aside, uid,
                 log->partition);
    }
    return directory_leave(store, directory, log, parent, aside, path, &exclusive->error);
}

/* What a reset gives up is kept in a directory of its own, so that no later one replaces it and
 * each has its day. Before the position goes down: after a crash in between, the copy is known to
 * lack it all. */
static enum status reset_set_aside(struct log_store *store, struct exclusive *exclusive)
{
    const struct partition_log *log = exclusive->log;
    char directory[LOG_DIRECTORY_BYTES], parent[LOG_DIRECTORY_BYTES], aside[LOG_DIRECTORY_BYTES];
    char path[PATH_MAX], uid[UUID_TEXT_BYTES];
    enum file_kind kind;
    uuid_format(&log->uid, uid);
    log_directory(directory, store, log->topic, log->partition);
    snprintf(parent, sizeof(parent), "%s/quarantine", store->data_dir);
    for (int i = 0; i < KEPT_RESETS_MAX; i++) {
        snprintf(aside, sizeof(aside), "%s/quarantine/%.*s.%s-%d", store->data_dir,
                 ASIDE_TOPIC_BYTES, log->topic, uid, i);
        enum status status = file_kind(store->options.fs, aside, &kind, &exclusive->error);
        if (status == STATUS_OK) continue;
        if (status != STATUS_NOT_FOUND) return status;
        snprintf(path, sizeof(path), "%.*s/%d", LOG_DIRECTORY_BYTES - 1, aside, log->partition);
        log_warn("set_aside partition=%s directory=%s", log->name, aside);
        return directory_leave(store, directory, log, parent, aside, path, &exclusive->error);
    }
    log_warn("not_set_aside partition=%s reason=\"%d copies of its topic are kept already\"",
             log->name, KEPT_RESETS_MAX);
    return STATUS_OK;
}

void exclusive_look(struct log_store *store, struct exclusive *exclusive,
                    struct position_update *update)
{
    struct synced_position synced = {0};
    if (exclusive->status != STATUS_OK) return;
    switch (exclusive->kind) {
    case EXCLUSIVE_TRUNCATE:
        if (exclusive->target_base < 0) return;
        exclusive_end(exclusive, cut_find(store, exclusive));
        synced = (struct synced_position){.floor = exclusive->floor,
                                          .segment_base = exclusive->target_base,
                                          .position = exclusive->position,
                                          .end_offset = exclusive->end_offset};
        break;
    case EXCLUSIVE_RESET:
        if (exclusive->set_aside) exclusive_end(exclusive, reset_set_aside(store, exclusive));
        synced = (struct synced_position){.floor = exclusive->floor,
                                          .segment_base = exclusive->offset,
                                          .end_offset = exclusive->offset};
        break;
    case EXCLUSIVE_CLOSE: synced = exclusive->closing.synced; break;
    case EXCLUSIVE_DROP: break;
    }
    bool leaves = exclusive->kind == EXCLUSIVE_DROP;
    *update = (struct position_update){
        .slot = exclusive->slot,
        .content = {.uid = exclusive->log->uid,
                    .partition = exclusive->log->partition,
                    .generation = leaves ? 0 : exclusive->slot_generation + 1,
                    .synced = synced}};
}

static void record_update(struct log_store *store, const struct exclusive *exclusive)
{
    struct partition_key key = {.uid = exclusive->log->uid, .partition = exclusive->log->partition};
    pthread_mutex_lock(&store->table.mutex);
    if (exclusive->kind == EXCLUSIVE_DROP) {
        partition_table_remove(&store->table, &key);
    } else {
        struct partition_record *record =
            partition_table_get(&store->table, &key, exclusive->log->topic);
        record->has_offsets = true;
        record->high_watermark = exclusive->closing.high_watermark;
        record->log_start = exclusive->closing.log_start;
        record->dropped_to = exclusive->closing.dropped_to;
        record->slot = exclusive->closing.slot;
        record->slot_generation = exclusive->slot_generation;
        record->synced = exclusive->closing.synced;
    }
    pthread_mutex_unlock(&store->table.mutex);
}

void exclusive_run(struct log_store *store, struct exclusive *exclusive)
{
    char directory[LOG_DIRECTORY_BYTES];
    if (exclusive->status != STATUS_OK) return;
    log_directory(directory, store, exclusive->log->topic, exclusive->log->partition);
    switch (exclusive->kind) {
    case EXCLUSIVE_TRUNCATE:
        exclusive_end(exclusive, truncate_run(store->options.fs, directory, exclusive));
        break;
    case EXCLUSIVE_RESET: exclusive_end(exclusive, reset_run(store, directory, exclusive)); break;
    case EXCLUSIVE_DROP:
        exclusive_end(exclusive, drop_run(store, directory, exclusive));
        record_update(store, exclusive);
        break;
    case EXCLUSIVE_CLOSE: record_update(store, exclusive); break;
    }
}
