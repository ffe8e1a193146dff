/* epoch_rebuild.c: an epoch history made from the headers of all batches of a partition.
 *
 * For a missing or damaged epochs file, or one that contradicts the log. Epochs in which nothing
 * was written leave no trace in batches and are lost; that is said in the log. Epoch -1 (static
 * mode) says nothing. The epoch is not under a batch's CRC, so one batch alone that breaks the
 * order is not believed. Thread: worker. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "log/recovery.h"

/* Neighbouring batches of one epoch. */
struct epoch_run {
    int32_t epoch;
    int64_t start_offset;
    uint64_t batches;
};
struct epoch_runs {
    struct epoch_run *runs;
    uint32_t count, capacity;
};

static void runs_add(struct epoch_runs *runs, int32_t epoch, int64_t start_offset)
{
    if (epoch < 0) return;
    if (runs->count > 0 && runs->runs[runs->count - 1].epoch == epoch) {
        runs->runs[runs->count - 1].batches++;
        return;
    }
    if (runs->count == runs->capacity) {
        runs->capacity = runs->capacity == 0 ? 16 : runs->capacity * 2;
        runs->runs = memory_resize(runs->runs, runs->capacity, sizeof(*runs->runs));
    }
    runs->runs[runs->count++] =
        (struct epoch_run){.epoch = epoch, .start_offset = start_offset, .batches = 1};
}

static enum status rebuild_segment(struct recovery *recovery, int64_t base, int64_t *expected,
                                   struct epoch_runs *runs, struct error *error)
{
    char path[SEGMENT_PATH_BYTES];
    struct file *file = NULL;
    struct segment_walk walk;
    struct batch_header header;
    int64_t size = 0;
    segment_path(path, recovery->directory, base, ".log");
    enum status status = file_open(recovery->fs, path, FILE_READ, &file, error);
    if (status == STATUS_OK) status = file_size(file, &size, error);
    if (status != STATUS_OK) {
        file_close(file);
        return status;
    }
    *expected = base;
    segment_walk_init(&walk, file, 0, size, SEGMENT_HEADER_BYTES);
    for (;;) {
        status = segment_walk_header(&walk, &header, error);
        bool fits = status == STATUS_OK && (recovery->gaps ? header.base_offset >= *expected
                                                           : header.base_offset == *expected);
        if (status == STATUS_CORRUPT || (status == STATUS_OK && !fits)) {
            int64_t position, offset;
            status = segment_walk_resume(file, walk.position + 1, size, *expected + 1, INT64_MAX,
                                         &position, &offset, error);
            walk.position = position;
            *expected = offset;
            if (status == STATUS_OK) continue;
        }
        if (status != STATUS_OK) break;
        runs_add(runs, header.leader_epoch, header.base_offset);
        *expected = batch_last_offset(&header) + 1;
        segment_walk_skip(&walk, &header);
    }
    segment_walk_deinit(&walk);
    file_close(file);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* A lone batch whose epoch its neighbours contradict. */
static bool run_is_outlier(const struct epoch_runs *runs, uint32_t i)
{
    const struct epoch_run *run = &runs->runs[i];
    const struct epoch_run *before = i > 0 ? run - 1 : NULL;
    const struct epoch_run *after = i + 1 < runs->count ? run + 1 : NULL;
    if (run->batches != 1) return false;
    if (after != NULL && run->epoch > after->epoch) {
        return before == NULL || before->epoch <= after->epoch;
    }
    return before != NULL && run->epoch < before->epoch &&
           (after == NULL || after->epoch >= before->epoch);
}

static void runs_assign(const struct epoch_runs *runs, struct epoch_history *history)
{
    epoch_history_clear(history);
    for (uint32_t i = 0; i < runs->count; i++) {
        if (run_is_outlier(runs, i)) continue;
        epoch_history_assign(history, runs->runs[i].epoch, runs->runs[i].start_offset);
    }
}

enum status epoch_rebuild(struct recovery *recovery, struct error *error)
{
    struct epoch_runs runs = {0};
    int64_t expected = 0;
    enum status status = STATUS_OK;
    for (uint32_t i = 0; status == STATUS_OK && i < recovery->base_count; i++) {
        status = rebuild_segment(recovery, recovery->bases[i], &expected, &runs, error);
    }
    if (status == STATUS_OK) {
        runs_assign(&runs, &recovery->history);
        recovery->epochs_rebuilt = true;
        recovery->out->epochs_rebuilt = true;
        if (recovery->base_count > 0) {
            log_warn("epochs_rebuilt partition=%s/%d epochs=%u note=\"epochs in which nothing was "
                     "written are lost\"",
                     recovery->identity->topic, recovery->identity->partition,
                     recovery->history.count);
        }
    }
    free(runs.runs);
    return status;
}
