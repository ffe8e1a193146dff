/* append.c: taking batches into a log: checks, place, memory; the disk is the next commit's.
 *
 * The place of a batch is decided here, on the loop: when a segment rolls is a matter of bytes,
 * offsets and the batches' own timestamps, so it is known at once, and the producer snapshot of the
 * new segment is exact. Thread: loop. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/fnv.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "log/store_internal.h"
#include "record/batch.h"

#define SEGMENT_BYTES_DEFAULT (1024 * 1024 * 1024)
#define SNAPSHOT_BYTES_MAX    (32u * 1024 * 1024)

/* What the batches of one append amount to. */
struct append_summary {
    int64_t end_offset;
    int64_t max_timestamp_ms;
};

static enum status append_check_batches(const struct partition_log *log,
                                        const struct shared_bytes *batches, bool allow_gap,
                                        struct append_summary *out, struct error *error)
{
    struct batch_header header;
    int64_t expected = log->log_end;
    int32_t epoch = epoch_history_latest(&log->epochs);
    *out = (struct append_summary){.max_timestamp_ms = -1};
    if (batches->bytes == 0 || batches->bytes > INT32_MAX) {
        return error_set(error, STATUS_INVALID, "%s: append of %zu bytes", log->name,
                         batches->bytes);
    }
    for (size_t at = 0; at < batches->bytes; at += header.batch_bytes) {
        if (batch_parse(batches->data + at, batches->bytes - at, true, &header, error) !=
            STATUS_OK) {
            return error_set(error, STATUS_INVALID, "%s: append: not whole batches", log->name);
        }
        if (header.base_offset < expected || (header.base_offset > expected && !allow_gap)) {
            return error_set(error, STATUS_INVALID, "%s: append at offset %lld, expected %lld",
                             log->name, (long long)header.base_offset, (long long)expected);
        }
        if (header.leader_epoch >= 0 && header.leader_epoch < epoch) {
            return error_set(error, STATUS_INVALID, "%s: append in epoch %d after epoch %d",
                             log->name, header.leader_epoch, epoch);
        }
        if (header.leader_epoch > epoch) epoch = header.leader_epoch;
        if (header.max_timestamp_ms > out->max_timestamp_ms) {
            out->max_timestamp_ms = header.max_timestamp_ms;
        }
        expected = batch_last_offset(&header) + 1;
    }
    out->end_offset = expected;
    return STATUS_OK;
}

/* Other segments of other logs get other shares, so that not all of them end at once; it is no
 * matter of chance, for the simulator replays it. */
int64_t log_segment_jitter_ms(const struct partition_log *log, const struct segment *segment)
{
    int64_t most = log->config.segment_jitter_ms;
    if (most > log->config.segment_ms) most = log->config.segment_ms;
    if (most <= 0) return 0;
    uint64_t hash = fnv64(FNV64_BASIS, log->name, strlen(log->name));
    hash = fnv64(hash, &segment->base_offset, sizeof(segment->base_offset));
    return (int64_t)((hash >> 16) % (uint64_t)most);
}

/* As Kafka counts: by its entries, which are of the same size as ours; one at least. */
static bool index_is_full(const struct segment_index *index, int64_t bytes_max)
{
    static const int64_t entry_bytes[INDEX_KIND_COUNT] = {[INDEX_OFFSETS] = 8, [INDEX_TIMES] = 12};
    for (int kind = 0; kind < INDEX_KIND_COUNT; kind++) {
        int64_t entries = segment_index_entries(index, (enum index_kind)kind);
        if (entries > 0 && entries >= bytes_max / entry_bytes[kind]) return true;
    }
    return false;
}

static bool append_must_roll(const struct partition_log *log, const struct segment *segment,
                             size_t bytes, const struct append_summary *summary)
{
    const struct log_config *config = &log->config;
    int64_t bytes_max = config->segment_bytes > 0 ? config->segment_bytes : SEGMENT_BYTES_DEFAULT;
    if (segment->sealed) return true;
    if (segment->bytes == 0) return false;
    if (segment->bytes + (int64_t)bytes > bytes_max) return true;
    /* The index counts in 32 bits. */
    if (summary->end_offset - segment->base_offset > INT32_MAX) return true;
    if (config->index_bytes > 0 && segment->index != NULL &&
        index_is_full(segment->index, config->index_bytes)) {
        return true;
    }
    return config->segment_ms > 0 && segment->first_timestamp_ms >= 0 &&
           summary->max_timestamp_ms - segment->first_timestamp_ms >
               config->segment_ms - log_segment_jitter_ms(log, segment);
}

/* The producer state as it is now: everything below the log end applied, nothing above. */
struct buffer *log_take_snapshot(struct partition_log *log)
{
    const struct log_store_handlers *handlers = &log->store->options.handlers;
    if (handlers->snapshot == NULL) return NULL;
    struct buffer *snapshot = memory_new(sizeof(*snapshot));
    buffer_init(snapshot, SNAPSHOT_BYTES_MAX);
    handlers->snapshot(handlers->context, log, log->log_end, snapshot);
    if (snapshot->bytes > 0 && !buffer_failed(snapshot)) return snapshot;
    buffer_deinit(snapshot);
    free(snapshot);
    return NULL;
}

void log_roll(struct partition_log *log)
{
    struct segment *last = log_last_segment(log);
    struct segment *segment = segment_new(log->log_end);
    if (last != NULL) {
        last->sealed = true;
        segment->snapshot = log_take_snapshot(log);
    }
    log_add_segment(log, segment);
}

/* The segment that takes the append, rolled if need be. */
static struct segment *append_segment(struct partition_log *log, size_t bytes,
                                      const struct append_summary *summary)
{
    struct segment *segment = log_last_segment(log);
    if (segment == NULL || append_must_roll(log, segment, bytes, summary)) log_roll(log);
    return log_last_segment(log);
}

/* One batch at `position` of its segment: index, timestamps, epoch. */
static void append_note_batch(struct partition_log *log, struct segment *segment,
                              const struct batch_header *header, int64_t position)
{
    if (segment->index == NULL) segment->index = segment_index_new(segment->index_blocks);
    segment_index_note(segment->index, segment->base_offset, header->base_offset, position,
                       log->config.index_interval_bytes, segment->max_timestamp_ms,
                       segment->max_timestamp_offset);
    if (segment->first_timestamp_ms < 0) segment->first_timestamp_ms = header->max_timestamp_ms;
    if (header->max_timestamp_ms > segment->max_timestamp_ms) {
        segment->max_timestamp_ms = header->max_timestamp_ms;
        segment->max_timestamp_offset = header->base_offset;
    }
    if (epoch_history_assign(&log->epochs, header->leader_epoch, header->base_offset)) {
        log->epochs_dirty = true;
    }
}

static void append_to_segment(struct partition_log *log, struct segment *segment,
                              struct shared_bytes *batches, int64_t end_offset)
{
    struct batch_header header;
    int64_t base_offset = log->log_end;
    for (size_t at = 0; at < batches->bytes; at += header.batch_bytes) {
        enum status status =
            batch_parse(batches->data + at, batches->bytes - at, true, &header, NULL);
        ASSERT(status == STATUS_OK);
        append_note_batch(log, segment, &header, segment->bytes + (int64_t)at);
    }
    cache_push(log, segment, batches, base_offset, end_offset, segment->bytes);
    segment->bytes += (int64_t)batches->bytes;
    segment->end_offset = end_offset;
    log->log_end = end_offset;
    log->appended = true;
    log->store->unsynced_bytes += batches->bytes;
    log->store->stats.appended_bytes += batches->bytes;
}

enum status partition_log_append(struct partition_log *log, struct shared_bytes *batches,
                                 bool allow_gap, struct error *error)
{
    struct log_store *store = log->store;
    struct append_summary summary;
    log_store_adopt(store);
    if (log->failed && !MUTANT(19)) {
        return error_set(error, STATUS_STORAGE_ERROR, "%s: this copy has failed", log->name);
    }
    if (log->busy) return error_set(error, STATUS_AGAIN, "%s: being cut", log->name);
    if (store->unsynced_bytes > 0 &&
        store->unsynced_bytes + batches->bytes > store->options.unsynced_bytes_max) {
        return error_set(error, STATUS_AGAIN, "%s: %zu bytes wait for the disk", log->name,
                         store->unsynced_bytes);
    }
    enum status status = append_check_batches(log, batches, allow_gap, &summary, error);
    if (status != STATUS_OK) return status;
    struct segment *segment = append_segment(log, batches->bytes, &summary);
    append_to_segment(log, segment, batches, summary.end_offset);
    cache_evict(store);
    log_mark_dirty(log);
    return STATUS_OK;
}

void partition_log_assign_epoch(struct partition_log *log, int32_t epoch, int64_t start_offset)
{
    log_store_adopt(log->store);
    if (log->failed || !epoch_history_assign(&log->epochs, epoch, start_offset)) return;
    log->epochs_dirty = true;
    log_mark_dirty(log);
}
