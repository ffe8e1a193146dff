/* offsets_file.c: replication-offsets.json: high watermark, log start and what compaction dropped
 * of every partition, as one sealed document: {partitions: [{topic, uid, partition, high_watermark,
 * log_start, dropped_to}], wall_ms, checksum}. Written each second if something changed, before a
 * tombstone goes, and at stop. wall_ms: the wall clock when it was last trusted. An older file has
 * neither dropped_to nor wall_ms. decisions 11. */
#include "base/json.h"
#include "log/partition_document.h"

static enum status offsets_read_head(struct partition_table *table, const json_t *document,
                                     struct error *error)
{
    return json_get_int_or(document, "wall_ms", 0, INT64_MAX, -1, &table->wall_ms, error);
}

static void offsets_put_head(const struct partition_table *table, json_t *document)
{
    if (table->wall_ms < 0) return;
    json_object_set_new(document, "wall_ms", json_integer(table->wall_ms));
}

static enum status offsets_read_partition(struct partition_table *table, const json_t *item,
                                          struct error *error)
{
    struct partition_key key;
    const char *topic = NULL;
    int64_t high_watermark = -1, log_start = 0, dropped_to = -1;
    enum status status = partition_document_key(item, &key, &topic, error);
    if (status == STATUS_OK) {
        status = json_get_int(item, "high_watermark", -1, INT64_MAX, &high_watermark, error);
    }
    if (status == STATUS_OK) {
        status = json_get_int(item, "log_start", 0, INT64_MAX, &log_start, error);
    }
    if (status == STATUS_OK) {
        status = json_get_int_or(item, "dropped_to", 0, INT64_MAX, -1, &dropped_to, error);
    }
    if (status != STATUS_OK) return status;
    struct partition_record *record = partition_table_get(table, &key, topic);
    record->has_offsets = true;
    record->high_watermark = high_watermark;
    record->log_start = log_start;
    record->dropped_to = dropped_to;
    return STATUS_OK;
}

enum status offsets_file_load(struct partition_table *table, struct file_system *fs,
                              const char *path, struct error *error)
{
    return partition_document_load(table, fs, path, offsets_read_head, offsets_read_partition,
                                   error);
}

static bool offsets_put_partition(const struct partition_record *record, json_t *item)
{
    if (!record->has_offsets) return false;
    json_object_set_new(item, "high_watermark", json_integer(record->high_watermark));
    json_object_set_new(item, "log_start", json_integer(record->log_start));
    if (record->dropped_to >= 0) {
        json_object_set_new(item, "dropped_to", json_integer(record->dropped_to));
    }
    return true;
}

enum status offsets_file_write(struct partition_table *table, struct file_system *fs,
                               const char *path, struct error *error)
{
    return partition_document_write(table, fs, path, offsets_put_head, offsets_put_partition,
                                    error);
}
