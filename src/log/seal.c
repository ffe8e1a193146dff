/* seal.c: after a roll, in the background: the sealed segment's digest and index, the new one's
 * producer snapshot.
 *
 * All of it is derived from the log, so an error is only told: the next recovery makes up for it.
 * The digest comes after the commit that synced the segment, so that a digest proves that all is
 * there. */
#include <stdlib.h>

#include "base/assert.h"
#include "base/memory.h"
#include "log/store_internal.h"

struct seal_job {
    struct job job;
    struct partition_log *log;
    struct segment_digest digest;
    bool digest_known;
    int64_t bytes, end_offset; /* as the loop knows them: what is read must agree */
    enum status status;
    struct error error;
};

static enum status seal_sync_index(struct log_store *store, const char *directory,
                                   int64_t base_offset, struct error *error)
{
    char path[SEGMENT_PATH_BYTES];
    for (int kind = 0; kind < INDEX_KIND_COUNT; kind++) {
        struct file *file = NULL;
        segment_path(path, directory, base_offset, index_suffix((enum index_kind)kind));
        enum status status = file_open(store->options.fs, path, FILE_WRITE, &file, error);
        if (status == STATUS_NOT_FOUND) continue;
        if (status == STATUS_OK) status = file_sync(file, error);
        file_close(file);
        if (status != STATUS_OK) return status;
    }
    return STATUS_OK;
}

static void seal_run(struct job *job)
{
    struct seal_job *work = CONTAINER_OF(job, struct seal_job, job);
    struct log_store *store = work->log->store;
    char directory[LOG_DIRECTORY_BYTES];
    log_directory(directory, store, work->log->topic, work->log->partition);
    enum status status = seal_sync_index(store, directory, work->digest.base_offset, &work->error);
    if (status == STATUS_OK && !work->digest_known) {
        struct segment_digest computed;
        status = segment_digest_compute(store->options.fs, directory, work->digest.base_offset,
                                        &computed, &work->error);
        if (status == STATUS_OK &&
            (computed.bytes != work->bytes || computed.end_offset != work->end_offset)) {
            status = error_set(&work->error, STATUS_CORRUPT, "sealed segment ends at offset %lld",
                               (long long)computed.end_offset);
        }
        for (int kind = 0; kind < INDEX_KIND_COUNT; kind++) {
            computed.index_blocks[kind] = work->digest.index_blocks[kind];
        }
        if (status == STATUS_OK) work->digest = computed;
    }
    if (status == STATUS_OK) {
        status = segment_digest_write(store->options.fs, directory, &work->digest, &work->error);
    }
    work->status = status;
}

static void seal_done(struct job *job)
{
    struct seal_job *work = CONTAINER_OF(job, struct seal_job, job);
    struct partition_log *log = work->log;
    if (work->status != STATUS_OK) {
        log_warn("segment_without_digest partition=%s segment=%lld error=\"%s\"", log->name,
                 (long long)work->digest.base_offset, work->error.text);
    }
    free(work);
    log_job_ended(log, true);
}

void seal_start(struct partition_log *log, struct segment *segment)
{
    struct seal_job *work = memory_new(sizeof(*work));
    segment_index_free(segment->index);
    segment->index = NULL;
    work->job = (struct job){.run = seal_run, .done = seal_done};
    work->log = log;
    work->digest_known = segment->digest_known;
    work->bytes = segment->bytes;
    work->end_offset = segment->end_offset;
    work->digest = (struct segment_digest){.base_offset = segment->base_offset,
                                           .end_offset = segment->end_offset,
                                           .bytes = segment->bytes,
                                           .first_timestamp_ms = segment->first_timestamp_ms,
                                           .max_timestamp_ms = segment->max_timestamp_ms,
                                           .max_timestamp_offset = segment->max_timestamp_offset,
                                           .crc = segment->digest};
    for (int kind = 0; kind < INDEX_KIND_COUNT; kind++) {
        work->digest.index_blocks[kind] = segment->index_blocks[kind];
    }
    log_job_began(log, true);
    executor_submit(log->store->options.executor, EXECUTOR_LANE_BACKGROUND, &work->job);
}

/* ---- producer snapshots -----------------------------------------------------------------------
 */

struct snapshot_job {
    struct job job;
    struct partition_log *log;
    int64_t base_offset;
    struct buffer *content;
    enum status status;
    struct error error;
};

static void snapshot_run(struct job *job)
{
    struct snapshot_job *work = CONTAINER_OF(job, struct snapshot_job, job);
    struct log_store *store = work->log->store;
    char directory[LOG_DIRECTORY_BYTES];
    log_directory(directory, store, work->log->topic, work->log->partition);
    work->status = segment_snapshot_write(store->options.fs, directory, work->base_offset,
                                          buffer_slice(work->content), &work->error);
}

static void snapshot_done(struct job *job)
{
    struct snapshot_job *work = CONTAINER_OF(job, struct snapshot_job, job);
    struct partition_log *log = work->log;
    struct log_store *store = log->store;
    if (work->status != STATUS_OK) {
        log_warn("producer_snapshot_not_written partition=%s error=\"%s\"", log->name,
                 work->error.text);
    }
    buffer_deinit(work->content);
    free(work->content);
    free(work);
    log_job_ended(log, true);
    store->snapshots_in_flight--;
    log_store_check_waiters(store);
}

void snapshot_start(struct partition_log *log, int64_t base_offset, struct buffer *content)
{
    struct snapshot_job *work = memory_new(sizeof(*work));
    work->job = (struct job){.run = snapshot_run, .done = snapshot_done};
    work->log = log;
    work->base_offset = base_offset;
    work->content = content;
    log_job_began(log, true);
    log->store->snapshots_in_flight++;
    executor_submit(log->store->options.executor, EXECUTOR_LANE_BACKGROUND, &work->job);
}
