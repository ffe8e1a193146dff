/* commit_worker.c: group commit, the workers' half: directories, files, bytes, syncs.
 *
 * A log's files are written in order and then synced, each once; an error ends that log's part of
 * the commit and nothing of it counts. New names are synced last: only then is what the files hold
 * reachable after a power cut. Segments are reserved ahead in steps, so that most syncs change no
 * metadata. Thread: worker. Reads of a log only what never changes (topic, partition, uid). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/failpoint.h"
#include "base/memory.h"
#include "log/store_internal.h"

#define SMALL_WRITE_BYTES (16 * 1024) /* below this a copy is cheaper than a call */
#define GATHER_BYTES      (256 * 1024)
#define RESERVE_BYTES_MIN (64 * 1024)
#define RESERVE_BYTES_MAX (8 * 1024 * 1024)
#define RESERVE_COMMITS   64 /* a step holds so many commits like this one */

static enum status commit_failpoint(const char *name, struct error *error)
{
    (void)name;
    if (FAILPOINT(name)) return error_set(error, STATUS_IO, "failpoint %s", name);
    return STATUS_OK;
}

static void topic_path(char path[LOG_DIRECTORY_BYTES], const struct log_store *store,
                       const char *topic)
{
    int length = snprintf(path, LOG_DIRECTORY_BYTES, "%s/topics/%s", store->data_dir, topic);
    ASSERT(length > 0 && length < LOG_DIRECTORY_BYTES);
}

static enum status commit_make_directories(struct log_store *store, const char *directory,
                                           const char *topic_directory, struct error *error)
{
    struct file_system *fs = store->options.fs;
    enum status status = file_make_directory(fs, topic_directory, error);
    return status == STATUS_OK ? file_make_directory(fs, directory, error) : status;
}

static enum status commit_open(struct log_store *store, const char *directory,
                               struct commit_file *file, struct error *error)
{
    char path[SEGMENT_PATH_BYTES];
    if (file->file != NULL) return STATUS_OK;
    segment_path(path, directory, file->base_offset, ".log");
    /* A file that should be there and is not is never made anew (F44). */
    int flags = FILE_WRITE | (file->create ? FILE_CREATE | FILE_TRUNCATE : 0);
    return file_open(store->options.fs, path, flags, &file->file, error);
}

/* Room for the bytes of this commit and some that follow; no more than needed if space is short. */
static enum status commit_reserve(struct commit_file *file, struct error *error)
{
    if (file->seal || file->bytes_after <= file->reserved_bytes) return STATUS_OK;
    int64_t step = (file->bytes_after - file->bytes_before) * RESERVE_COMMITS;
    if (step > RESERVE_BYTES_MAX) step = RESERVE_BYTES_MAX;
    if (step < RESERVE_BYTES_MIN) step = RESERVE_BYTES_MIN;
    int64_t bytes = file->bytes_after + step;
    if (file->reserve_max > 0 && bytes > file->reserve_max) bytes = file->reserve_max;
    if (bytes < file->bytes_after) bytes = file->bytes_after;
    enum status status = file_allocate(file->file, bytes, error);
    if (status == STATUS_NO_SPACE) {
        bytes = file->bytes_after;
        status = file_allocate(file->file, bytes, error);
    }
    if (status == STATUS_OK) file->reserved_bytes = bytes;
    return status;
}

/* Adjacent small appends go out in one write; large ones are not copied. */
struct commit_gather {
    struct file *file;
    uint8_t *data;
    size_t bytes;
    int64_t at;
};

static enum status commit_gather_flush(struct commit_gather *gather, struct error *error)
{
    if (gather->bytes == 0) return STATUS_OK;
    enum status status = file_write(gather->file, gather->data, gather->bytes, gather->at, error);
    gather->at += (int64_t)gather->bytes;
    gather->bytes = 0;
    return status;
}

static enum status commit_gather_put(struct commit_gather *gather, const struct commit_write *write,
                                     bool alone, struct error *error)
{
    enum status status = STATUS_OK;
    bool large = alone || write->bytes >= SMALL_WRITE_BYTES;
    if (gather->at + (int64_t)gather->bytes != write->position || large ||
        gather->bytes + write->bytes > GATHER_BYTES) {
        status = commit_gather_flush(gather, error);
        gather->at = write->position;
    }
    if (status != STATUS_OK) return status;
    if (large) {
        gather->at = write->position + write->bytes;
        return file_write(gather->file, write->data, write->bytes, write->position, error);
    }
    memcpy(gather->data + gather->bytes, write->data, write->bytes);
    gather->bytes += write->bytes;
    return STATUS_OK;
}

static enum status commit_write_batches(struct commit_part *part, struct commit_file *file,
                                        struct error *error)
{
    const struct commit_write *writes = part->store->commit.writes + file->first_write;
    if (part->small == NULL) part->small = memory_new(GATHER_BYTES);
    struct commit_gather gather = {.file = file->file, .data = part->small};
    enum status status = STATUS_OK;
    for (uint32_t i = 0; status == STATUS_OK && i < file->write_count; i++) {
        status = commit_gather_put(&gather, &writes[i], file->write_count == 1, error);
        if (file->digest_known) {
            file->digest = crc32c_extend(file->digest, writes[i].data, writes[i].bytes);
        }
    }
    return status == STATUS_OK ? commit_gather_flush(&gather, error) : status;
}

/* Index blocks are hints: an error costs speed, not data, and is only told. */
static void commit_write_index(struct log_store *store, const char *directory,
                               struct commit_file *file)
{
    char path[SEGMENT_PATH_BYTES];
    struct error error = {0};
    for (int kind = 0; kind < INDEX_KIND_COUNT; kind++) {
        struct file *index = NULL;
        if (file->index[kind].bytes == 0) continue;
        segment_path(path, directory, file->base_offset, index_suffix((enum index_kind)kind));
        enum status status =
            file_open(store->options.fs, path, FILE_WRITE | FILE_CREATE, &index, &error);
        if (status == STATUS_OK) {
            status = file_write(index, file->index[kind].data, file->index[kind].bytes,
                                file->index_at[kind], &error);
        }
        file_close(index);
        if (status != STATUS_OK)
            log_warn("index_not_written path=%s error=\"%s\"", path, error.text);
    }
}

/* `journaled`: its sync is not waited for, so nothing is reserved to make it cheap. */
static enum status commit_write_file(struct commit_part *part, const char *directory,
                                     struct commit_file *file, bool journaled, struct error *error)
{
    enum status status = STATUS_OK;
    if (file->create && !file->first_of_log) status = commit_failpoint("segment.roll", error);
    if (status == STATUS_OK) status = commit_failpoint("commit.write", error);
    if (status == STATUS_OK) status = commit_open(part->store, directory, file, error);
    if (status == STATUS_OK && !journaled) status = commit_reserve(file, error);
    if (status == STATUS_OK) status = commit_write_batches(part, file, error);
    if (file->reserved_bytes < file->bytes_after) file->reserved_bytes = file->bytes_after;
    if (status == STATUS_OK && file->seal) {
        status = file_truncate(file->file, file->bytes_after, error);
        file->reserved_bytes = file->bytes_after;
    }
    if (status != STATUS_OK) {
        error_prefix(error, "segment %020lld.log: write", (long long)file->base_offset);
        return status;
    }
    commit_write_index(part->store, directory, file);
    return STATUS_OK;
}

static enum status commit_sync_file(struct commit_file *file, struct error *error)
{
    enum status status = commit_failpoint(file->seal ? "segment.sync" : "commit.sync", error);
    if (status == STATUS_OK) status = segment_sync_file(file->file, error);
    if (status != STATUS_OK) {
        error_prefix(error, "segment %020lld.log: sync", (long long)file->base_offset);
    }
    return status;
}

static enum status commit_write_log(struct commit_part *part, struct commit_log *item)
{
    struct log_store *store = part->store;
    struct commit_file *files = store->commit.files + item->first_file;
    char directory[LOG_DIRECTORY_BYTES], topic_directory[LOG_DIRECTORY_BYTES];
    bool created = false;
    enum status status = STATUS_OK;
    log_directory(directory, store, item->log->topic, item->log->partition);
    topic_path(topic_directory, store, item->log->topic);
    if (files[0].first_of_log) {
        status = commit_make_directories(store, directory, topic_directory, &item->error);
    }
    for (uint32_t i = 0; status == STATUS_OK && i < item->file_count; i++) {
        status = commit_write_file(part, directory, &files[i], item->journaled, &item->error);
        created = created || files[i].create;
    }
    if (item->journaled) return status;
    if (status != STATUS_OK) return status;
    for (uint32_t i = 0; status == STATUS_OK && i < item->file_count; i++) {
        status = commit_sync_file(&files[i], &item->error);
    }
    if (status == STATUS_OK && (created || item->sync_names)) {
        status = segment_sync_directory(store->options.fs, directory, &item->error);
    }
    /* A sync that found no space may have dropped bytes that a read would still show (F41). */
    return status == STATUS_NO_SPACE ? STATUS_IO : status;
}

/* To the owner an error is NO_SPACE or IO: what else went wrong is in the text. */
static void commit_end_log(struct commit_log *item, enum status status)
{
    item->status = status;
    if (status == STATUS_OK) return;
    if (status != STATUS_NO_SPACE) item->status = STATUS_IO;
    item->error.status = item->status;
    error_prefix(&item->error, "%s", item->log->name);
}

static bool commit_made_directory(const struct commit *commit, const struct commit_log *item)
{
    return item->file_count > 0 && item->status == STATUS_OK && !item->journaled &&
           (item->sync_names || commit->files[item->first_file].first_of_log);
}

/* The names of new partition directories, and of their topics': once a topic that this part's logs
 * name in a row, and `topics` once. */
static void commit_sync_topics(struct commit_part *part, uint32_t first_log)
{
    struct log_store *store = part->store;
    struct commit *commit = &store->commit;
    char path[LOG_DIRECTORY_BYTES];
    const char *synced = NULL;
    for (uint32_t i = first_log; i < commit->log_count; i += commit->part_count) {
        struct commit_log *item = &commit->logs[i];
        if (!commit_made_directory(commit, item)) continue;
        if (synced != NULL && strcmp(synced, item->log->topic) == 0) continue;
        topic_path(path, store, item->log->topic);
        commit_end_log(item, segment_sync_directory(store->options.fs, path, &item->error));
        if (item->status == STATUS_OK) synced = item->log->topic;
    }
    if (synced == NULL) return;
    struct error error = {0};
    snprintf(path, sizeof(path), "%s/topics", store->data_dir);
    enum status status = segment_sync_directory(store->options.fs, path, &error);
    for (uint32_t i = first_log; status != STATUS_OK && i < commit->log_count;
         i += commit->part_count) {
        struct commit_log *item = &commit->logs[i];
        if (!commit_made_directory(commit, item)) continue;
        item->error = error;
        commit_end_log(item, status);
    }
}

/* The bytes of all journaled logs in one record, synced: the commit is durable with it. */
static void commit_write_journal(struct log_store *store)
{
    struct commit *commit = &store->commit;
    uint32_t entries = 0;
    journal_record_begin(&commit->record);
    for (uint32_t i = 0; i < commit->log_count; i++) {
        const struct commit_log *item = &commit->logs[i];
        if (!item->journaled) continue;
        const struct commit_file *file = &commit->files[item->first_file];
        const struct commit_write *writes = commit->writes + file->first_write;
        journal_record_write(&commit->record, &item->log->uid, item->log->partition,
                             item->log->topic, file->base_offset, file->bytes_before,
                             (uint32_t)(file->bytes_after - file->bytes_before));
        for (uint32_t j = 0; j < file->write_count; j++) {
            buffer_put(&commit->record, writes[j].data, writes[j].bytes);
        }
        entries++;
    }
    commit->record_bytes = (int64_t)commit->record.bytes;
    commit->journal_status = commit_failpoint("commit.sync", &commit->journal_error);
    if (commit->journal_status == STATUS_OK) {
        commit->journal_status =
            commit_journal_append(&store->journal.journal, store->journal.active, &commit->record,
                                  entries, &commit->journal_error);
    }
    if (commit->journal_status == STATUS_OK || commit->journal_status == STATUS_NO_SPACE) return;
    commit->journal_status = STATUS_IO;
    commit->journal_error.status = STATUS_IO;
}

static void commit_persist_epochs(struct log_store *store)
{
    struct commit *commit = &store->commit;
    char path[PATH_MAX];
    pthread_mutex_lock(&store->table.mutex);
    for (uint32_t i = 0; i < commit->log_count; i++) {
        const struct commit_log *item = &commit->logs[i];
        if (!item->has_epochs) continue;
        struct partition_key key = {.uid = item->log->uid, .partition = item->log->partition};
        struct partition_record *record =
            partition_table_get(&store->table, &key, item->log->topic);
        epoch_history_copy(&record->epochs, &item->epochs);
        record->has_epochs = true;
    }
    pthread_mutex_unlock(&store->table.mutex);
    snprintf(path, sizeof(path), "%s/replication-epochs.json", store->data_dir);
    commit->epochs_status = commit_failpoint("epochs.persist", &commit->epochs_error);
    if (commit->epochs_status == STATUS_OK) {
        commit->epochs_status =
            epochs_file_write(&store->table, store->options.fs, path, &commit->epochs_error);
    }
    if (commit->epochs_status == STATUS_OK || commit->epochs_status == STATUS_NO_SPACE) return;
    commit->epochs_status = STATUS_IO;
    commit->epochs_error.status = STATUS_IO;
}

/* The histories that go to disk end where the cuts of this commit do. */
static void commit_cut_epochs(struct commit *commit)
{
    for (uint32_t i = 0; i < commit->exclusive_count; i++) {
        const struct exclusive *exclusive = commit->exclusives[i];
        if (exclusive->kind != EXCLUSIVE_TRUNCATE || exclusive->target_base < 0) continue;
        struct commit_log *item = &commit->logs[exclusive->commit_item];
        epoch_history_truncate_end(&item->epochs, exclusive->end_offset);
    }
}

/* Bytes that are only in the journal reach their files, and the journal takes back what it holds of
 * the logs: else a start would write them again, over what comes after the cut. */
static void commit_settle_exclusives(struct log_store *store)
{
    struct commit *commit = &store->commit;
    struct error error = {0};
    uint32_t voids = 0;
    journal_record_begin(&commit->record);
    for (uint32_t i = 0; i < commit->exclusive_count; i++) {
        struct exclusive *exclusive = commit->exclusives[i];
        if (exclusive->status != STATUS_OK || !exclusive->takes_back) continue;
        exclusive->status = journal_settle(store, exclusive, &exclusive->error);
        if (exclusive->status != STATUS_OK) continue;
        journal_record_void(&commit->record, &exclusive->log->uid, exclusive->log->partition,
                            exclusive->log->topic);
        voids++;
    }
    if (voids == 0) return;
    commit->record_bytes = (int64_t)commit->record.bytes;
    commit->journal_status = commit_journal_append(&store->journal.journal, store->journal.active,
                                                   &commit->record, voids, &error);
    for (uint32_t i = 0; commit->journal_status != STATUS_OK && i < commit->exclusive_count; i++) {
        struct exclusive *exclusive = commit->exclusives[i];
        if (exclusive->status != STATUS_OK || !exclusive->takes_back) continue;
        exclusive->status = STATUS_IO;
        exclusive->error = error;
        exclusive->error.status = STATUS_IO;
    }
}

void commit_prepare_run(struct job *job)
{
    struct log_store *store = CONTAINER_OF(job, struct log_store, commit.prepare);
    struct commit *commit = &store->commit;
    struct error error = {0};
    struct position_update *updates =
        memory_new(commit->exclusive_count * sizeof(struct position_update));
    uint32_t count = 0;
    commit_settle_exclusives(store);
    for (uint32_t i = 0; i < commit->exclusive_count; i++) {
        struct exclusive *exclusive = commit->exclusives[i];
        exclusive_look(store, exclusive, &updates[count]);
        if (exclusive->status == STATUS_OK && exclusive->slot != POSITION_SLOT_NONE) count++;
    }
    commit_cut_epochs(commit);
    enum status status = synced_positions_lower(&store->positions, updates, count, &error);
    if (status == STATUS_OK && commit->has_epochs) {
        commit_persist_epochs(store);
        status = commit->epochs_status;
        error = commit->epochs_error;
    }
    for (uint32_t i = 0; i < commit->exclusive_count; i++) {
        struct exclusive *exclusive = commit->exclusives[i];
        if (exclusive->slot != POSITION_SLOT_NONE) exclusive->slot_generation += 2;
        if (status == STATUS_OK || exclusive->status != STATUS_OK) continue;
        exclusive->status = status;
        exclusive->error = error;
    }
    free(updates);
}

void commit_part_run(struct job *job)
{
    struct commit_part *part = CONTAINER_OF(job, struct commit_part, job);
    struct commit *commit = &part->store->commit;
    uint32_t epochs = commit->has_epochs && commit->exclusive_count == 0;
    uint32_t before_logs = commit->journaled + epochs + commit->exclusive_count;
    uint32_t items = before_logs + commit->log_count;
    uint32_t i = part->number;
    for (; i < before_logs; i += commit->part_count) {
        if (i < commit->journaled) {
            commit_write_journal(part->store);
        } else if (i < commit->journaled + epochs) {
            commit_persist_epochs(part->store);
        } else {
            exclusive_run(part->store, commit->exclusives[i - commit->journaled - epochs]);
        }
    }
    uint32_t first_log = i - before_logs;
    for (; i < items; i += commit->part_count) {
        struct commit_log *item = &commit->logs[i - before_logs];
        if (item->file_count > 0) commit_end_log(item, commit_write_log(part, item));
    }
    commit_sync_topics(part, first_log);
}
