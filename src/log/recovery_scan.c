/* recovery_scan.c: reading one segment from its start, batch by batch; see recovery.h. */
#include <string.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "log/recovery.h"

struct scan {
    struct recovery *recovery;
    struct recovered_segment *segment;
    struct segment_walk walk;
    int64_t next_base;     /* of the segment after it; -1: it is the last */
    int64_t synced_to;     /* position; below it bad is rot */
    int64_t synced_offset; /* the offset that position stands for */
    bool unknown;          /* no record: both of the above mean nothing */
};

void recovery_quarantine(struct recovery *recovery, int64_t from, int64_t to)
{
    if (from >= to) return;
    if (recovery->range_count > 0 && recovery->ranges[recovery->range_count - 1].to == from) {
        recovery->ranges[recovery->range_count - 1].to = to;
        return;
    }
    recovery->ranges =
        memory_resize(recovery->ranges, recovery->range_count + 1, sizeof(*recovery->ranges));
    recovery->ranges[recovery->range_count++] = (struct offset_range){.from = from, .to = to};
}

static bool scan_is_beyond(const struct scan *scan)
{
    return !scan->unknown && scan->walk.position >= scan->synced_to;
}

/* Does the batch's epoch agree with the history? Beyond the synced position a new one is news. */
static bool scan_epoch_fits(struct scan *scan, const struct batch_header *header)
{
    struct recovery *recovery = scan->recovery;
    int32_t epoch = header->leader_epoch;
    if (epoch == -1) return true;
    if (epoch < -1) return false;
    int32_t known = epoch_history_at(&recovery->history, header->base_offset);
    if (epoch == known) {
        recovery->agreeing++;
        recovery->last_epoch = epoch;
        return true;
    }
    /* Below its first entry the history says nothing: a raised log start cut it. */
    const struct epoch_history *history = &recovery->history;
    if (known == -1 && history->count > 0 && epoch <= history->entries[0].last_epoch) return true;
    bool may_be_news = scan->unknown || scan_is_beyond(scan);
    if (may_be_news && epoch > epoch_history_latest(&recovery->history) &&
        epoch >= recovery->last_epoch) {
        epoch_history_assign(&recovery->history, epoch, header->base_offset);
        recovery->last_epoch = epoch;
        return true;
    }
    if (!scan_is_beyond(scan)) recovery->contradicting++;
    return false;
}

/* Is a batch with a good CRC the one that belongs here? */
static bool scan_fits(struct scan *scan, const struct batch_header *header)
{
    const struct recovery *recovery = scan->recovery;
    if (recovery->gaps ? header->base_offset < recovery->expected
                       : header->base_offset != recovery->expected) {
        return false;
    }
    if (scan->next_base >= 0 && batch_last_offset(header) >= scan->next_base) return false;
    if (!scan_is_beyond(scan) && !scan->unknown &&
        batch_last_offset(header) >= scan->synced_offset) {
        return false;
    }
    return scan_epoch_fits(scan, header);
}

static void scan_take(struct scan *scan, const struct batch_header *header, const uint8_t *data)
{
    struct recovered_segment *segment = scan->segment;
    int64_t position = scan->walk.position;
    if (!segment->beyond && (scan_is_beyond(scan) || scan->unknown)) {
        segment->beyond = true;
        segment->beyond_from = position;
    }
    segment_index_note(segment->index, segment->base_offset, header->base_offset, position,
                       scan->recovery->index_interval_bytes, segment->max_timestamp_ms,
                       segment->max_timestamp_offset);
    segment->crc = crc32c_extend(segment->crc, data, header->batch_bytes);
    if (segment->first_timestamp_ms < 0) segment->first_timestamp_ms = header->max_timestamp_ms;
    if (header->max_timestamp_ms > segment->max_timestamp_ms) {
        segment->max_timestamp_ms = header->max_timestamp_ms;
        segment->max_timestamp_offset = header->base_offset;
    }
    segment_walk_skip(&scan->walk, header);
    segment->bytes = scan->walk.position;
    scan->recovery->expected = batch_last_offset(header) + 1;
    scan->recovery->out->scanned_bytes += header->batch_bytes;
}

static void scan_quarantine(struct scan *scan, int64_t to, int64_t position)
{
    struct recovery *recovery = scan->recovery;
    recovery_quarantine(recovery, recovery->expected, to);
    scan->segment->damaged = true;
    scan->segment->crc_known = false;
    recovery->expected = to;
    scan->walk.position = position;
    scan->segment->bytes = position;
}

/* Rot at the walk's position. On behind it: at the next sound batch, else at the end of what is
 * synced. *end: nothing follows in this segment. */
static enum status scan_step_over(struct scan *scan, bool *end, struct error *error)
{
    struct recovery *recovery = scan->recovery;
    int64_t size = scan->walk.end;
    int64_t to = scan->synced_to < size ? scan->synced_to : size;
    int64_t position = 0, offset = 0;
    enum status status =
        segment_walk_resume(scan->walk.file, scan->walk.position + 1, to, recovery->expected + 1,
                            scan->synced_offset - 1, &position, &offset, error);
    *end = false;
    if (status == STATUS_OK) {
        scan_quarantine(scan, offset, position);
        return STATUS_OK;
    }
    if (status != STATUS_NOT_FOUND) return status;
    *end = size <= scan->synced_to;
    /* The place of what is missing is kept: a repair fills it, an append goes behind it. */
    bool whole_file = scan->synced_to == INT64_MAX;
    scan_quarantine(scan, scan->synced_offset, whole_file ? size : scan->synced_to);
    return STATUS_OK;
}

/* As above without a record: only if something sound follows is it rot. STATUS_NOT_FOUND: a tear.
 */
static enum status scan_step_over_unknown(struct scan *scan, struct error *error)
{
    int64_t position = 0, offset = 0;
    int64_t offset_max = scan->next_base >= 0 ? scan->next_base - 1 : INT64_MAX;
    enum status status =
        segment_walk_resume(scan->walk.file, scan->walk.position + 1, scan->walk.end,
                            scan->recovery->expected + 1, offset_max, &position, &offset, error);
    if (status == STATUS_OK) scan_quarantine(scan, offset, position);
    if (status != STATUS_NOT_FOUND || scan->next_base < 0) return status;
    scan_quarantine(scan, scan->next_base, scan->walk.end);
    return STATUS_OK;
}

/* Something other than the expected batch. *end: the segment is through; *cut: it is to end here.
 */
static enum status scan_judge(struct scan *scan, bool at_end, bool *end, bool *cut,
                              struct error *error)
{
    int64_t last_byte = scan->walk.position;
    enum status status = STATUS_OK;
    bool torn_only = MUTANT(22);
    if (!at_end) {
        status = segment_walk_zeros(scan->walk.file, scan->walk.position, scan->walk.end,
                                    &last_byte, error);
        if (status != STATUS_OK) return status;
    }
    bool nothing_follows = last_byte == scan->walk.position;
    *end = true;
    if (scan->unknown && !torn_only) {
        if (nothing_follows) return STATUS_OK;
        status = scan_step_over_unknown(scan, error);
        if (status != STATUS_NOT_FOUND) {
            *end = scan->walk.position >= scan->walk.end;
            return status;
        }
    } else if (!scan_is_beyond(scan) && !torn_only) {
        /* A sealed one ends with its file. */
        if (nothing_follows && scan->recovery->expected == scan->synced_offset) return STATUS_OK;
        return scan_step_over(scan, end, error);
    }
    if (nothing_follows) return STATUS_OK;
    *cut = true;
    scan->recovery->out->cut_bytes += last_byte - scan->walk.position;
    return STATUS_OK;
}

static enum status scan_run(struct scan *scan, bool *cut, struct error *error)
{
    struct batch_header header;
    const uint8_t *data;
    struct error ignored;
    bool end = false;
    *cut = false;
    while (!end) {
        enum status status = segment_walk_batch(&scan->walk, &header, &data, &ignored);
        if (status == STATUS_OK && scan_fits(scan, &header)) {
            scan_take(scan, &header, data);
            continue;
        }
        if (status != STATUS_OK && status != STATUS_CORRUPT && status != STATUS_NOT_FOUND) {
            return error_set(error, status, "%s", ignored.text);
        }
        status = scan_judge(scan, status == STATUS_NOT_FOUND, &end, cut, error);
        if (status != STATUS_OK) return status;
    }
    return STATUS_OK;
}

/* Up to where the segment is known synced. */
static void scan_find_synced(struct scan *scan)
{
    const struct recovery *recovery = scan->recovery;
    const struct synced_position *synced = &recovery->synced;
    scan->unknown = recovery->record == SYNCED_LOST;
    scan->synced_to = 0;
    scan->synced_offset = scan->segment->base_offset;
    if (recovery->record != SYNCED_KNOWN) return;
    if (scan->segment->base_offset == synced->segment_base) {
        scan->synced_to = synced->position;
        scan->synced_offset = synced->end_offset;
    } else if (scan->segment->base_offset < synced->segment_base) {
        scan->synced_to = INT64_MAX;
        scan->synced_offset = scan->next_base >= 0 && scan->next_base < synced->segment_base
                                  ? scan->next_base
                                  : synced->segment_base;
    }
}

enum status recovery_scan(struct recovery *recovery, struct recovered_segment *segment,
                          int64_t next_base, bool *cut, struct error *error)
{
    static const uint32_t no_blocks[INDEX_KIND_COUNT];
    char path[SEGMENT_PATH_BYTES];
    struct file *file = NULL;
    segment_path(path, recovery->directory, segment->base_offset, ".log");
    enum status status = file_open(recovery->fs, path, FILE_READ, &file, error);
    if (status != STATUS_OK) return status;
    status = file_size(file, &segment->file_bytes, error);
    if (status == STATUS_OK) {
        struct scan scan = {.recovery = recovery, .segment = segment, .next_base = next_base};
        segment->index = segment_index_new(no_blocks);
        segment->crc_known = true;
        recovery->last_epoch = -1;
        segment_walk_init(&scan.walk, file, 0, segment->file_bytes, SEGMENT_WALK_BYTES);
        scan_find_synced(&scan);
        status = scan_run(&scan, cut, error);
        segment_walk_deinit(&scan.walk);
        segment->end_offset = recovery->expected;
    }
    if (status != STATUS_OK) error_prefix(error, "%s", path);
    file_close(file);
    return status;
}
