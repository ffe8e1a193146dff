/* partition_log.c: the state of one log as the loop sees it: offsets, segments, failure,
 * quarantine. Appending is append.c, reading read.c, cutting exclusive.c. Thread: loop. */
#include "log/partition_log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "log/store_internal.h"

void log_directory(char path[LOG_DIRECTORY_BYTES], const struct log_store *store, const char *topic,
                   int32_t partition)
{
    int length = snprintf(path, LOG_DIRECTORY_BYTES, "%s/topics/%s/%" PRId32, store->data_dir,
                          topic, partition);
    ASSERT(length > 0 && length < LOG_DIRECTORY_BYTES);
}

struct partition_log *log_new(struct log_store *store, const struct log_identity *identity,
                              const struct log_config *config)
{
    struct partition_log *log = memory_new(sizeof(*log));
    size_t topic_bytes = strlen(identity->topic) + 1;
    size_t name_bytes = topic_bytes + 12;
    log->store = store;
    log->topic = memory_new(topic_bytes + name_bytes);
    memcpy(log->topic, identity->topic, topic_bytes);
    log->name = log->topic + topic_bytes;
    snprintf(log->name, name_bytes, "%s/%" PRId32, identity->topic, identity->partition);
    log->uid = identity->uid;
    log->partition = identity->partition;
    log->config = *config;
    log->read_limit = INT64_MAX;
    log->noted_high_watermark = -1;
    log->slot = POSITION_SLOT_NONE;
    log->recorded_base = -1;
    epoch_history_init(&log->epochs);
    return log;
}

void log_free(struct partition_log *log)
{
    ASSERT(log->jobs == 0 && !log->dirty && !log->in_commit && log->ring_count == 0);
    ASSERT(log->compaction == NULL && log->swap_waiters == NULL);
    for (uint32_t i = 0; i < log->segment_count; i++) {
        open_file_detach(log->store, log->segments[i]);
        segment_free(log->segments[i]);
    }
    for (uint32_t i = 0; i < log->retired_count; i++) {
        segment_free(log->retired[i]);
    }
    free(log->segments);
    free(log->retired);
    free(log->ring);
    free(log->quarantine);
    free(log->hints);
    epoch_history_deinit(&log->epochs);
    free(log->topic);
    free(log);
}

const char *partition_log_topic(const struct partition_log *log)
{
    return log->topic;
}

int32_t partition_log_partition(const struct partition_log *log)
{
    return log->partition;
}

const char *partition_log_name(const struct partition_log *log)
{
    return log->name;
}

void partition_log_set_owner(struct partition_log *log, void *owner)
{
    log->owner = owner;
}

void *partition_log_owner(const struct partition_log *log)
{
    return log->owner;
}

void partition_log_configure(struct partition_log *log, const struct log_config *config)
{
    log->config = *config;
}

int64_t partition_log_start_offset(const struct partition_log *log)
{
    return log->log_start;
}

int64_t partition_log_recorded_start(const struct partition_log *log)
{
    return log->recorded_start;
}

int64_t partition_log_end_offset(const struct partition_log *log)
{
    return log->log_end;
}

int64_t partition_log_durable_offset(const struct partition_log *log)
{
    return log->durable;
}

int64_t partition_log_bytes(const struct partition_log *log)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < log->segment_count; i++) {
        bytes += log->segments[i]->bytes;
    }
    return bytes;
}

uint32_t partition_log_segment_count(const struct partition_log *log)
{
    return log->segment_count;
}

const struct epoch_history *partition_log_epochs(const struct partition_log *log)
{
    return &log->epochs;
}

int64_t partition_log_max_timestamp_ms(const struct partition_log *log)
{
    int64_t max_ms = -1;
    for (uint32_t i = 0; i < log->segment_count; i++) {
        if (log->segments[i]->max_timestamp_ms > max_ms) {
            max_ms = log->segments[i]->max_timestamp_ms;
        }
    }
    return max_ms;
}

bool partition_log_failed(const struct partition_log *log)
{
    return log->failed;
}

bool partition_log_busy(const struct partition_log *log)
{
    return log->busy;
}

bool partition_log_quarantined(const struct partition_log *log, int64_t *from, int64_t *to)
{
    if (log->quarantine_count == 0) return false;
    *from = log->quarantine[0].from;
    *to = log->quarantine[0].to;
    return true;
}

bool partition_log_lacks(const struct partition_log *log, int64_t from, int64_t to)
{
    for (uint32_t i = 0; i < log->quarantine_count && from < to; i++) {
        if (log->quarantine[i].from > from) break;
        if (log->quarantine[i].to > from) from = log->quarantine[i].to;
    }
    return from >= to;
}

void partition_log_quarantine(struct partition_log *log, int64_t from, int64_t to)
{
    for (uint32_t i = 0; i < log->quarantine_count; i++) {
        if (log->quarantine[i].from <= from && log->quarantine[i].to >= to) return;
    }
    if (from >= to) return;
    log->store->stats.corrupt_ranges++;
    log_quarantine(log, from, to);
}

void log_add_segment(struct partition_log *log, struct segment *segment)
{
    pthread_mutex_lock(&log->store->segments_mutex);
    if (log->segment_count == log->segment_capacity) {
        log->segment_capacity = log->segment_capacity == 0 ? 1 : log->segment_capacity * 2;
        log->segments = memory_resize(log->segments, log->segment_capacity, sizeof(*log->segments));
    }
    log->segments[log->segment_count++] = segment;
    pthread_mutex_unlock(&log->store->segments_mutex);
}

struct segment *log_pop_segment(struct partition_log *log)
{
    ASSERT(log->segment_count > 0);
    pthread_mutex_lock(&log->store->segments_mutex);
    struct segment *segment = log->segments[--log->segment_count];
    pthread_mutex_unlock(&log->store->segments_mutex);
    if (log->settled_count > log->segment_count) log->settled_count = log->segment_count;
    open_file_detach(log->store, segment);
    return segment;
}

struct segment *log_last_segment(const struct partition_log *log)
{
    return log->segment_count == 0 ? NULL : log->segments[log->segment_count - 1];
}

struct segment *log_segment_of(const struct partition_log *log, int64_t offset)
{
    uint32_t low = 0, high = log->segment_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (log->segments[middle]->base_offset <= offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low == 0 ? NULL : log->segments[low - 1];
}

bool log_has_writes(const struct partition_log *log)
{
    if (log->ring_count > log->durable_chunks) return true;
    for (uint32_t i = log->settled_count; i < log->segment_count; i++) {
        const struct segment *segment = log->segments[i];
        if (!segment->created || (segment->sealed && !segment->cut_to_length)) return true;
    }
    return false;
}

/* Gives up what is queued and not in flight: it never becomes durable. */
static void log_give_up_queue(struct partition_log *log)
{
    while (log->ring_count > log->durable_chunks + log->flight_chunks) {
        cache_pop_last(log);
    }
}

bool partition_log_lacked_space(const struct partition_log *log)
{
    return log->failed && log->lacked_space && !log->store->journal.broken;
}

void log_set_failed(struct partition_log *log, const struct error *error)
{
    struct log_store *store = log->store;
    if (log->failed || MUTANT(19)) return;
    log->failed = true;
    log_error("log_failed partition=%s durable=%lld end=%lld error=\"%s\"", log->name,
              (long long)log->durable, (long long)log->log_end, error->text);
    log_give_up_queue(log);
    log_store_fail_waiters(store, error);
    if (!log->dropped && store->options.handlers.failed != NULL) {
        store->options.handlers.failed(store->options.handlers.context, log, error);
    }
}

/* Ranges ascend and do not touch; beyond the bound the last two become one. */
static void quarantine_normalise(struct partition_log *log)
{
    for (uint32_t i = 0; i + 1 < log->quarantine_count;) {
        struct offset_range *range = &log->quarantine[i];
        bool full = log->quarantine_count > QUARANTINE_RANGES_MAX && i + 2 == log->quarantine_count;
        if (range[1].from > range->to && !full) {
            i++;
            continue;
        }
        if (range[1].to > range->to) range->to = range[1].to;
        memmove(range + 1, range + 2, (log->quarantine_count - i - 2) * sizeof(*range));
        log->quarantine_count--;
    }
}

void log_quarantine(struct partition_log *log, int64_t from, int64_t to)
{
    if (from >= to) return;
    log->quarantine =
        memory_resize(log->quarantine, log->quarantine_count + 1, sizeof(*log->quarantine));
    uint32_t at = log->quarantine_count;
    while (at > 0 && log->quarantine[at - 1].from > from) {
        log->quarantine[at] = log->quarantine[at - 1];
        at--;
    }
    log->quarantine[at] = (struct offset_range){.from = from, .to = to};
    log->quarantine_count++;
    quarantine_normalise(log);
    log_error("log_quarantined partition=%s from=%lld to=%lld", log->name, (long long)from,
              (long long)to);
}

void log_unquarantine_from(struct partition_log *log, int64_t offset)
{
    while (log->quarantine_count > 0 && log->quarantine[log->quarantine_count - 1].from >= offset) {
        log->quarantine_count--;
    }
    if (log->quarantine_count > 0 && log->quarantine[log->quarantine_count - 1].to > offset) {
        log->quarantine[log->quarantine_count - 1].to = offset;
    }
}

void log_job_began(struct partition_log *log, bool background)
{
    log->jobs++;
    if (background) log->background_jobs++;
}

void log_job_ended(struct partition_log *log, bool background)
{
    ASSERT(log->jobs > 0);
    log->jobs--;
    if (background) log->background_jobs--;
    /* Someone may wait to have the log for itself. */
    if (log->exclusive != NULL) commit_schedule(log->store);
}

void log_mark_dirty(struct partition_log *log)
{
    struct log_store *store = log->store;
    if (log->dropped) return;
    if (!log->dirty) {
        log->dirty = true;
        log->next_dirty = NULL;
        if (store->dirty_first == NULL) {
            store->dirty_first = log;
        } else {
            store->dirty_last->next_dirty = log;
        }
        store->dirty_last = log;
    }
    commit_schedule(store);
}

void partition_log_note_high_watermark(struct partition_log *log, int64_t high_watermark)
{
    log_store_adopt(log->store);
    if (log->noted_high_watermark == high_watermark) return;
    log->noted_high_watermark = high_watermark;
    offsets_mark(log);
}

int64_t partition_log_dropped_to(const struct partition_log *log)
{
    return log->dropped_to;
}

void partition_log_note_dropped(struct partition_log *log, int64_t dropped_to)
{
    if (dropped_to <= log->dropped_to) return;
    log->dropped_to = dropped_to;
    offsets_mark(log);
}

int64_t partition_log_noted_high_watermark(const struct partition_log *log)
{
    return log->noted_high_watermark;
}
