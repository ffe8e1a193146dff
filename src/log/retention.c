/* retention.c: raising the log start, and removing the segments that fall below it.
 *
 * A removed segment leaves the log at once; its files go only when the record of synced positions
 * says that the log begins above it (its floor): a hole at the front of a log would else look like
 * loss. F45: a wall clock that jumped against the monotonic one postpones time-based deletion one
 * pass, one that is days ahead for longer. Thread: loop, but for retire_run(). */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "log/store_internal.h"

#define CLOCK_JUMP_MS   60000
#define CLOCK_FAR_MS    86400000            /* ahead: so far no clock is off that is looked after */
#define CLOCK_DOUBT_US  INT64_C(3600000000) /* by then one that is set at a start has been set */
#define CLOCK_RECORD_MS 600000

/* ---- removing ----------------------------------------------------------------------------------
 */

struct retire_job {
    struct job job;
    struct partition_log *log;
    int64_t *bases;
    uint32_t count;
    int64_t floor; /* the first segment that is left */
    enum status status;
    struct error error;
};

static void retire_run(struct job *job)
{
    struct retire_job *work = CONTAINER_OF(job, struct retire_job, job);
    struct log_store *store = work->log->store;
    char directory[LOG_DIRECTORY_BYTES];
    log_directory(directory, store, work->log->topic, work->log->partition);
    for (uint32_t i = 0; work->status == STATUS_OK && i < work->count; i++) {
        work->status =
            segment_remove_files(store->options.fs, directory, work->bases[i], &work->error);
    }
    if (work->status == STATUS_OK) {
        bool any;
        work->status = segment_snapshots_keep(store->options.fs, directory, work->floor, INT64_MAX,
                                              &any, &work->error);
    }
    if (work->status == STATUS_OK) {
        work->status = segment_sync_directory(store->options.fs, directory, &work->error);
    }
}

static void retire_done(struct job *job)
{
    struct retire_job *work = CONTAINER_OF(job, struct retire_job, job);
    struct partition_log *log = work->log;
    /* What is left over lies below the floor: the next recovery removes it. */
    if (work->status != STATUS_OK) {
        log_warn("segments_not_removed partition=%s error=\"%s\"", log->name, work->error.text);
    }
    free(work->bases);
    free(work);
    log_job_ended(log, true);
}

void retention_remove_retired(struct partition_log *log)
{
    if (!log->retiring || log->retired_count == 0) return;
    struct retire_job *work = memory_new(sizeof(*work));
    work->job = (struct job){.run = retire_run, .done = retire_done};
    work->log = log;
    work->bases = memory_new(log->retired_count * sizeof(int64_t));
    for (uint32_t i = 0; i < log->retired_ready; i++) {
        work->bases[work->count++] = log->retired[i]->base_offset;
        segment_free(log->retired[i]);
    }
    log->retired_count -= log->retired_ready;
    memmove(log->retired, log->retired + log->retired_ready,
            log->retired_count * sizeof(*log->retired));
    work->floor =
        log->retired_count > 0 ? log->retired[0]->base_offset : log->segments[0]->base_offset;
    log->retired_ready = 0;
    log->retiring = false;
    log_job_began(log, true);
    executor_submit(log->store->options.executor, EXECUTOR_LANE_BACKGROUND, &work->job);
}

/* Takes the first segment out of the log. */
static void segment_retire(struct partition_log *log)
{
    struct segment *segment = log->segments[0];
    pthread_mutex_lock(&log->store->segments_mutex);
    log->segment_count--;
    memmove(log->segments, log->segments + 1, log->segment_count * sizeof(*log->segments));
    pthread_mutex_unlock(&log->store->segments_mutex);
    if (log->settled_count > 0) log->settled_count--;
    cache_drop_below(log, segment->end_offset);
    open_file_detach(log->store, segment);
    log->retired = memory_resize(log->retired, log->retired_count + 1, sizeof(*log->retired));
    log->retired[log->retired_count++] = segment;
}

/* May it go? Not while a commit works on it, nor before all of it is on disk. */
static bool segment_may_retire(const struct partition_log *log, const struct segment *segment)
{
    return segment->created && segment->cut_to_length && !segment->in_commit &&
           segment->end_offset <= log->log_start && segment->durable_offset == segment->end_offset;
}

void retention_retire(struct partition_log *log)
{
    bool any = false;
    while (log->segment_count > 1 && !log->failed && !log->dropped && !log->swapping &&
           segment_may_retire(log, log->segments[0])) {
        segment_retire(log);
        any = true;
    }
    if (!any) return;
    positions_mark(log);
    positions_touch_idle_timer(log->store);
}

/* ---- raising ---- */

void partition_log_raise_start(struct partition_log *log, int64_t offset, int64_t high_watermark)
{
    log_store_adopt(log->store);
    if (offset > high_watermark) offset = high_watermark;
    if (offset > log->log_end) offset = log->log_end;
    if (offset <= log->log_start || log->failed || log->busy) return;
    log->log_start = offset;
    epoch_history_truncate_start(&log->epochs, offset);
    while (log->quarantine_count > 0 && log->quarantine[0].to <= offset) {
        log->quarantine_count--;
        memmove(log->quarantine, log->quarantine + 1,
                log->quarantine_count * sizeof(*log->quarantine));
    }
    offsets_mark(log);
    /* Nothing of the last segment is wanted any more: a new one takes over, and it may go too. */
    struct segment *last = log_last_segment(log);
    if (last != NULL && offset == log->log_end && log->durable == log->log_end &&
        last->end_offset > last->base_offset && last->created) {
        log_roll(log);
        log_mark_dirty(log);
    }
    retention_retire(log);
}

/* ---- what retention asks for ---- */

/* The record of the run before counts until this one has a better one. */
int64_t retention_recorded_clock(struct log_store *store)
{
    struct retention_clock *clock = &store->retention;
    if (!clock->begun) return store->table.wall_ms;
    return clock->recorded_ms;
}

/* How far the wall clock is ahead of where it should be: since the last look, or, at the first, of
 * what was on record. */
static int64_t clock_ahead_ms(const struct retention_clock *clock, int64_t now_wall_ms,
                              int64_t now_us)
{
    if (clock->begun) return now_wall_ms - clock->wall_ms - (now_us - clock->monotonic_us) / 1000;
    return clock->recorded_ms < 0 ? 0 : now_wall_ms - clock->recorded_ms;
}

static void clock_note(struct log_store *store, int64_t now_wall_ms)
{
    struct retention_clock *clock = &store->retention;
    int64_t since_ms = now_wall_ms - clock->recorded_ms;
    if (clock->recorded_ms >= 0 && since_ms >= 0 && since_ms < CLOCK_RECORD_MS) return;
    clock->recorded_ms = now_wall_ms;
    offsets_touch(store);
}

enum clock_trust log_store_look_at_clock(struct log_store *store, int64_t now_wall_ms,
                                         enum clock_witness witness)
{
    struct retention_clock *clock = &store->retention;
    int64_t now_us = loop_now_us(store->loop);
    if (!clock->begun) clock->recorded_ms = store->table.wall_ms;
    int64_t ahead_ms = clock_ahead_ms(clock, now_wall_ms, now_us);
    bool jumped = clock->begun && llabs(ahead_ms) > CLOCK_JUMP_MS;
    bool far = ahead_ms > CLOCK_FAR_MS;
    if (jumped || far) {
        log_warn("retention_postponed reason=\"the wall clock jumped\" jump_ms=%lld",
                 (long long)ahead_ms);
    }
    if (far) clock->doubted_until_us = now_us + CLOCK_DOUBT_US;
    if (witness == CLOCK_CONFIRMED) clock->doubted_until_us = 0;
    clock->begun = true;
    clock->wall_ms = now_wall_ms;
    clock->monotonic_us = now_us;
    if (witness == CLOCK_CONTRADICTED || now_us < clock->doubted_until_us) return CLOCK_DOUBTED;
    if (jumped) return CLOCK_JUMPED;
    clock_note(store, now_wall_ms);
    return CLOCK_TRUSTED;
}

static bool segment_has_expired(const struct partition_log *log, const struct segment *segment,
                                int64_t now_wall_ms)
{
    return log->config.retention_ms >= 0 && segment->max_timestamp_ms >= 0 &&
           segment->max_timestamp_ms < now_wall_ms - log->config.retention_ms;
}

int64_t partition_log_retention_start(const struct partition_log *log, int64_t now_wall_ms,
                                      bool clock_trusted, int64_t high_watermark)
{
    int64_t start = log->log_start;
    int64_t bytes = partition_log_bytes(log);
    if (!log->config.delete_old) return start;
    for (uint32_t i = 0; i < log->segment_count; i++) {
        const struct segment *segment = log->segments[i];
        bool last = i + 1 == log->segment_count;
        bool expired = clock_trusted && segment_has_expired(log, segment, now_wall_ms);
        bool too_much = !last && log->config.retention_bytes >= 0 &&
                        bytes - segment->bytes >= log->config.retention_bytes;
        if (segment->end_offset > high_watermark || segment->end_offset > log->durable) break;
        if (!expired && !too_much) break;
        bytes -= segment->bytes;
        if (segment->end_offset > start) start = segment->end_offset;
    }
    return start;
}
