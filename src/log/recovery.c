/* recovery.c: one partition, from its files and its records to a log in use; see recovery.h. */
#include "log/recovery.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/failpoint.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "log/compaction_work.h"

static void recovery_forget_segments(struct recovery *recovery)
{
    for (uint32_t i = 0; i < recovery->segment_count; i++) {
        segment_index_free(recovery->segments[i].index);
    }
    free(recovery->segments);
    free(recovery->ranges);
    recovery->segments = NULL;
    recovery->ranges = NULL;
    recovery->segment_count = recovery->range_count = 0;
    recovery->agreeing = recovery->contradicting = 0;
}

void recovery_deinit(struct recovery *recovery)
{
    recovery_forget_segments(recovery);
    free(recovery->bases);
    buffer_deinit(&recovery->strays);
    epoch_history_deinit(&recovery->history);
}

/* ---- the chain of segments ----------------------------------------------------------------------
 */

/* Were offsets from `offset` on known synced? */
static bool recovery_is_synced(const struct recovery *recovery, int64_t offset)
{
    if (MUTANT(22)) return false;
    if (recovery->record == SYNCED_LOST) return true;
    return recovery->record == SYNCED_KNOWN && offset < recovery->synced.end_offset;
}

static void chain_remove_from(struct recovery *recovery, uint32_t first)
{
    for (uint32_t i = first; i < recovery->segment_count; i++) {
        recovery->segments[i].remove = true;
    }
}

/* A segment should begin at `expected` and the next one there begins later. True: the chain goes on
 * at it; false: it and all that follows were never known synced, and go. */
static bool chain_bridge_hole(struct recovery *recovery, int64_t base)
{
    if (!recovery_is_synced(recovery, recovery->expected)) return false;
    bool known = recovery->record == SYNCED_KNOWN;
    int64_t to = known && base > recovery->synced.end_offset ? recovery->synced.end_offset : base;
    recovery_quarantine(recovery, recovery->expected, to);
    recovery->expected = to;
    return to == base;
}

/* Does the record agree that the whole segment is synced and wanted? Beyond it a segment may be
 * what a cut or reset did not get to: read, its batches are held against the epoch history. */
static bool chain_digest_counts(const struct recovery *recovery,
                                const struct segment_digest *digest)
{
    const struct synced_position *synced = &recovery->synced;
    if (recovery->record != SYNCED_KNOWN) return recovery->record == SYNCED_LOST;
    if (digest->base_offset == synced->segment_base) return digest->bytes <= synced->position;
    return digest->base_offset < synced->segment_base;
}

/* Takes a sealed segment on its digest's word, if the file has the length it names. */
static enum status chain_try_digest(struct recovery *recovery, struct recovered_segment *segment,
                                    int64_t next_base, struct error *error)
{
    struct segment_digest digest;
    char path[SEGMENT_PATH_BYTES];
    struct file *file = NULL;
    enum status status = segment_digest_read(recovery->fs, recovery->directory,
                                             segment->base_offset, &digest, error);
    if (status != STATUS_OK) return status == STATUS_IO ? STATUS_IO : STATUS_NOT_FOUND;
    segment_path(path, recovery->directory, segment->base_offset, ".log");
    status = file_open(recovery->fs, path, FILE_READ, &file, error);
    if (status == STATUS_OK) status = file_size(file, &segment->file_bytes, error);
    file_close(file);
    if (status != STATUS_OK) return status;
    if (segment->file_bytes != digest.bytes || (next_base >= 0 && digest.end_offset > next_base) ||
        !chain_digest_counts(recovery, &digest)) {
        return STATUS_NOT_FOUND;
    }
    segment->has_digest = true;
    segment->end_offset = digest.end_offset;
    segment->bytes = digest.bytes;
    segment->first_timestamp_ms = digest.first_timestamp_ms;
    segment->max_timestamp_ms = digest.max_timestamp_ms;
    segment->max_timestamp_offset = digest.max_timestamp_offset;
    segment->clean_to = digest.base_offset + digest.clean_delta;
    segment->crc = digest.crc;
    segment->crc_known = true;
    recovery->expected = digest.end_offset;
    return STATUS_OK;
}

/* One segment. *cut: the log ends in it. */
static enum status chain_take(struct recovery *recovery, uint32_t i, bool *cut, struct error *error)
{
    struct recovered_segment *segment = &recovery->segments[i];
    int64_t next_base =
        i + 1 < recovery->segment_count ? recovery->segments[i + 1].base_offset : -1;
    *cut = false;
    enum status status = chain_try_digest(recovery, segment, next_base, error);
    if (status != STATUS_NOT_FOUND) return status;
    status = recovery_scan(recovery, segment, next_base, cut, error);
    segment->cut = *cut;
    return status;
}

/* What was known synced and is not there at all: its file is gone. */
static void chain_note_lost_end(struct recovery *recovery)
{
    if (recovery->record != SYNCED_KNOWN || MUTANT(22)) return;
    if (recovery->expected >= recovery->synced.end_offset) return;
    recovery_quarantine(recovery, recovery->expected, recovery->synced.end_offset);
    recovery->expected = recovery->synced.end_offset;
}

static enum status chain_walk(struct recovery *recovery, struct error *error)
{
    bool cut = false;
    recovery->segments = memory_new((recovery->base_count + 1) * sizeof(*recovery->segments));
    recovery->segment_count = recovery->base_count;
    for (uint32_t i = 0; i < recovery->base_count; i++) {
        struct recovered_segment *segment = &recovery->segments[i];
        segment->base_offset = segment->end_offset = segment->clean_to =
            segment->max_timestamp_offset = recovery->bases[i];
        segment->first_timestamp_ms = segment->max_timestamp_ms = -1;
        /* Left by a reset, or by retention, that did not get to the end. */
        segment->remove =
            recovery->record == SYNCED_KNOWN && segment->base_offset < recovery->synced.floor;
    }
    uint32_t i = 0;
    while (i < recovery->segment_count && recovery->segments[i].remove) {
        i++;
    }
    bool has_floor = recovery->record == SYNCED_KNOWN || i == recovery->segment_count;
    recovery->expected = has_floor ? recovery->synced.floor : recovery->segments[i].base_offset;
    for (; i < recovery->segment_count && !cut; i++) {
        struct recovered_segment *segment = &recovery->segments[i];
        if (segment->base_offset > recovery->expected &&
            !chain_bridge_hole(recovery, segment->base_offset)) {
            break;
        }
        if (segment->base_offset < recovery->expected) {
            /* Two files claim the same offsets: the first one's digest is believed. */
            segment->remove = true;
            continue;
        }
        enum status status = chain_take(recovery, i, &cut, error);
        if (status != STATUS_OK) return status;
    }
    chain_remove_from(recovery, i);
    chain_note_lost_end(recovery);
    return STATUS_OK;
}

/* Does the log itself speak against the history on record? One batch may be damaged; not most. */
static bool recovery_doubts_epochs(const struct recovery *recovery)
{
    if (recovery->epochs_rebuilt || recovery->contradicting == 0) return false;
    if (recovery->history.count == 0) return true;
    return recovery->contradicting >= 2 && recovery->contradicting > recovery->agreeing;
}

enum status recovery_run(struct recovery *recovery, struct error *error)
{
    enum status status = compaction_finish_swaps(recovery->fs, recovery->directory, error);
    if (status == STATUS_OK) status = recovery_list(recovery, error);
    if (status != STATUS_OK) return status;
    recovery->out->had_files = recovery->base_count > 0;
    if (!recovery->epochs_known && recovery->base_count > 0)
        status = epoch_rebuild(recovery, error);
    if (status == STATUS_OK) status = chain_walk(recovery, error);
    if (status == STATUS_OK && recovery_doubts_epochs(recovery)) {
        recovery_forget_segments(recovery);
        recovery->out->cut_bytes = 0; /* the second walk counts anew */
        status = epoch_rebuild(recovery, error);
        if (status == STATUS_OK) status = chain_walk(recovery, error);
    }
    return status == STATUS_OK ? recovery_apply(recovery, error) : status;
}

/* ---- a log out of it ---- */

static struct segment *recovered_segment_open(const struct recovered_segment *from)
{
    struct segment *segment = segment_new(from->base_offset);
    segment->end_offset = segment->durable_offset = from->end_offset;
    segment->bytes = segment->durable_bytes = from->bytes;
    segment->reserved_bytes = from->cut ? from->bytes : from->file_bytes;
    segment->first_timestamp_ms = from->first_timestamp_ms;
    segment->max_timestamp_ms = from->max_timestamp_ms;
    segment->max_timestamp_offset = from->max_timestamp_offset;
    segment->clean_to = from->clean_to;
    segment->digest = from->crc;
    segment->digest_known = from->crc_known;
    segment->created = true;
    for (int kind = 0; kind < INDEX_KIND_COUNT && from->index != NULL; kind++) {
        segment->index_blocks[kind] = from->index->blocks[kind];
    }
    return segment;
}

static void recovery_fill_segments(const struct recovery *recovery, struct partition_log *log)
{
    for (uint32_t i = 0; i < recovery->segment_count; i++) {
        const struct recovered_segment *from = &recovery->segments[i];
        if (from->remove) continue;
        struct segment *last = log_last_segment(log);
        if (last != NULL) last->sealed = last->cut_to_length = true;
        struct segment *segment = recovered_segment_open(from);
        segment->sealed = segment->cut_to_length = from->has_digest;
        log_add_segment(log, segment);
    }
    log->settled_count = log->segment_count;
    struct segment *last = log_last_segment(log);
    if (last == NULL) return;
    if (last->end_offset < recovery->expected) {
        /* The file that was synced behind it is gone: what comes next begins a new one. */
        last->sealed = last->cut_to_length = true;
        log_add_segment(log, segment_new(recovery->expected));
    }
    while (log->settled_count > 0 && !log->segments[log->settled_count - 1]->cut_to_length) {
        log->settled_count--;
    }
}

static int64_t recovery_log_start(const struct recovery *recovery, const struct partition_log *log)
{
    int64_t start = recovery->record == SYNCED_KNOWN ? recovery->synced.floor : 0;
    bool lost_front = recovery->range_count > 0 && recovery->ranges[0].from == start;
    if (log->segment_count > 0 && log->segments[0]->base_offset > start && !lost_front) {
        start = log->segments[0]->base_offset;
    }
    if (recovery->has_offsets && recovery->log_start > start) start = recovery->log_start;
    return start < recovery->expected ? start : recovery->expected;
}

/* Where nobody wrote down what was dropped (the file was lost, or is of an older version), it may
 * be anything that compaction has been over. */
static int64_t recovery_dropped_to(const struct recovery *recovery, const struct partition_log *log)
{
    int64_t dropped_to = recovery->dropped_to;
    for (uint32_t i = 0; recovery->dropped_to < 0 && i < log->segment_count; i++) {
        const struct segment *segment = log->segments[i];
        if (segment->clean_to > segment->base_offset) dropped_to = segment->clean_to;
    }
    return dropped_to < 0 ? 0 : dropped_to;
}

static void recovery_fill_ranges(const struct recovery *recovery, struct partition_log *log)
{
    struct log_recovery *out = recovery->out;
    for (uint32_t i = 0; i < recovery->range_count; i++) {
        struct offset_range range = recovery->ranges[i];
        if (range.from < log->log_start) range.from = log->log_start;
        if (range.from >= range.to) continue;
        log_quarantine(log, range.from, range.to);
        if (!out->quarantined) out->quarantine_from = range.from;
        out->quarantined = true;
        out->quarantine_to = range.to;
        log->corrupt_ranges++;
    }
}

static void recovery_fill_epochs(struct recovery *recovery, struct partition_log *log)
{
    /* An epoch may begin at the log end, with nothing written in it; past it, the log lost its
     * tail. */
    epoch_history_truncate_end(&recovery->history, log->log_end + 1);
    epoch_history_truncate_start(&recovery->history, log->log_start);
    epoch_history_copy(&log->epochs, &recovery->history);
}

/* What recovery_run found, as a log that the loop can take over. */
static void recovery_fill(struct recovery *recovery, struct partition_log *log,
                          const struct epoch_history *on_record)
{
    recovery_fill_segments(recovery, log);
    log->log_end = log->durable = recovery->expected;
    log->log_start = log->recorded_start = recovery_log_start(recovery, log);
    log->dropped_to = recovery_dropped_to(recovery, log);
    recovery_fill_ranges(recovery, log);
    recovery_fill_epochs(recovery, log);
    log->epochs_recorded = recovery->epochs_known;
    log->epochs_dirty = recovery->epochs_rebuilt || !epoch_history_equal(&log->epochs, on_record);
    log->directory_made = recovery->directory_exists;
    log->noted_high_watermark = recovery->has_offsets ? recovery->high_watermark : -1;
    log->slot = recovery->slot;
    log->slot_generation = recovery->slot_generation;
    if (recovery->record == SYNCED_KNOWN) log->recorded_base = recovery->synced.segment_base;
    struct synced_position now;
    positions_current(log, &now);
    log->position_stale =
        recovery->record != SYNCED_KNOWN || memcmp(&now, &recovery->synced, sizeof(now)) != 0;
    log->offsets_stale = !recovery->has_offsets || recovery->log_start != log->log_start ||
                         recovery->dropped_to != log->dropped_to;
}

static void recovery_read_record(struct recovery *recovery)
{
    struct partition_table *table = &recovery->store->table;
    struct partition_key key = {.uid = recovery->identity->uid,
                                .partition = recovery->identity->partition};
    pthread_mutex_lock(&table->mutex);
    const struct partition_record *record = partition_table_find(table, &key);
    recovery->record = table->positions_complete ? SYNCED_NEVER : SYNCED_LOST;
    recovery->dropped_to = -1;
    recovery->slot = POSITION_SLOT_NONE;
    if (record != NULL) {
        recovery->slot = record->slot;
        recovery->slot_generation = record->slot_generation;
        if (record->slot != POSITION_SLOT_NONE && record->slot_generation > 0) {
            recovery->record = SYNCED_KNOWN;
            recovery->synced = record->synced;
        }
        recovery->epochs_known = record->has_epochs;
        epoch_history_copy(&recovery->history, &record->epochs);
        recovery->has_offsets = record->has_offsets;
        recovery->log_start = record->log_start;
        recovery->high_watermark = record->high_watermark;
        recovery->dropped_to = record->dropped_to;
    }
    pthread_mutex_unlock(&table->mutex);
}

static void recovery_say(const struct recovery *recovery, const struct partition_log *log)
{
    if (recovery->out->cut_bytes > 0) {
        log_warn("torn_tail_cut partition=%s end=%lld bytes=%lld", log->name,
                 (long long)log->log_end, (long long)recovery->out->cut_bytes);
    }
}

/* For the loop to take over (log_store_adopt). */
static void recovery_publish(struct partition_log *log)
{
    struct log_store *store = log->store;
    pthread_mutex_lock(&store->recovered_mutex);
    log->next_dirty = store->recovered;
    __atomic_store_n(&store->recovered, log, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&store->recovered_mutex);
}

enum status log_store_recover(struct log_store *store, const struct log_identity *identity,
                              const struct log_config *config, struct partition_log **out,
                              struct log_recovery *recovery, struct error *error)
{
    struct recovery work = {.store = store,
                            .fs = store->options.fs,
                            .identity = identity,
                            .gaps = config->compacted || !config->delete_old,
                            .index_interval_bytes = config->index_interval_bytes,
                            .out = recovery};
    struct epoch_history on_record = {0};
    struct partition_log *log = log_new(store, identity, config);
    *recovery = (struct log_recovery){0};
    buffer_init(&work.strays, 0);
    log_directory(work.directory, store, identity->topic, identity->partition);
    recovery_read_record(&work);
    epoch_history_copy(&on_record, &work.history);
    enum status status = STATUS_OK;
    if (FAILPOINT("recovery.partition")) {
        status = error_set(error, STATUS_IO, "failpoint recovery.partition");
    }
    if (status == STATUS_OK) status = recovery_run(&work, error);
    if (status == STATUS_OK) {
        recovery_fill(&work, log, &on_record);
        recovery_say(&work, log);
    } else {
        error_prefix(error, "%s: recovery", log->name);
        log_error("recovery_failed partition=%s error=\"%s\"", log->name,
                  error == NULL ? "" : error->text);
        log->failed = true;
        log->slot = work.slot;
        log->slot_generation = work.slot_generation;
        log->log_start = log->log_end = log->durable = work.synced.floor;
        status = STATUS_IO;
    }
    epoch_history_deinit(&on_record);
    recovery_deinit(&work);
    recovery_publish(log);
    *out = log;
    return status;
}
