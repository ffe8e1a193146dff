/* producer_load.c: the producer table of a partition, rebuilt from its newest snapshot and the log.
 *
 * A snapshot that does not decode costs time, not truth: then the whole log is read.  Thread:
 * worker. */
#include "base/assert.h"
#include "base/log.h"
#include "broker/partition_change.h"

struct producers_scan {
    struct producer_table *table;
    struct buffer *snapshot;
    int64_t written_ms;
    bool begun, unreadable;
};

void producers_apply_batch(struct producer_table *table, const uint8_t *data,
                           const struct batch_header *header, int64_t written_ms)
{
    struct batch_marker marker;
    struct error error = {0};
    bool marked = (header->attributes & BATCH_CONTROL) != 0 &&
                  batch_read_marker(data, header->batch_bytes, &marker, &error) == STATUS_OK;
    enum status status =
        producer_apply(table, header, marked ? &marker : NULL, written_ms, NULL, &error);
    /* Only out of memory or at an offset that the log would have refused. */
    ASSERT(status == STATUS_OK);
}

static bool scan_begin(struct producers_scan *scan)
{
    struct error error = {0};
    scan->begun = true;
    if (scan->snapshot->bytes == 0) return true;
    if (producer_table_decode(scan->table, buffer_slice(scan->snapshot), &error) == STATUS_OK) {
        return true;
    }
    log_warn("producer_snapshot_unreadable reason=\"%s\"", error.text);
    scan->unreadable = true;
    return false;
}

static bool scan_batch(void *context, const uint8_t *data, size_t bytes)
{
    struct producers_scan *scan = context;
    struct batch_header header;
    if (!scan->begun && !scan_begin(scan)) return false;
    if (batch_parse(data, bytes, true, &header, NULL) != STATUS_OK) return false;
    if (header.base_offset < producer_table_end_offset(scan->table)) return true;
    producers_apply_batch(scan->table, data, &header, scan->written_ms);
    return true;
}

/* From `begin` on, nothing being known before. */
static enum status scan_anew(struct partition_log *log, int64_t begin, struct producers_scan *scan,
                             struct log_damage *damage, struct error *error)
{
    *damage = (struct log_damage){0};
    scan->begun = true;
    producer_table_clear(scan->table, begin);
    return log_store_scan(log, begin, partition_log_end_offset(log), scan_batch, scan, damage,
                          error);
}

enum status producers_load(struct partition_log *log, int64_t written_ms,
                           struct producer_table *table, struct log_damage *damage,
                           struct error *error)
{
    int64_t start = partition_log_start_offset(log);
    struct buffer snapshot;
    buffer_init(&snapshot, 0);
    struct producers_scan scan = {.table = table, .snapshot = &snapshot, .written_ms = written_ms};
    enum status status = log_store_scan_producers(log, &snapshot, scan_batch, &scan, damage, error);
    if (status == STATUS_OK && !scan.begun) scan_begin(&scan);
    if (scan.unreadable) {
        status = scan_anew(log, log_store_files_begin(log), &scan, damage, error);
    }
    /* What was deleted may be damaged: who wrote it is forgotten, rather than known by less. */
    if (status == STATUS_CORRUPT && damage->from < start) {
        status = scan_anew(log, start, &scan, damage, error);
    }
    buffer_deinit(&snapshot);
    return status;
}
