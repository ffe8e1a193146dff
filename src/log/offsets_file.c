/* offsets_file.c: replication-offsets.json: high watermark and log start of every partition, as one
 * sealed document: {partitions: [{topic, uid, partition, high_watermark, log_start}], checksum}.
 * Written each second if something changed, and at stop. decisions 11. */
#include "base/json.h"
#include "log/partition_table.h"

#define OFFSETS_FILE_BYTES_MAX (512u * 1024 * 1024)

static enum status offsets_read_partition(struct partition_table *table, const json_t *item,
                                          struct error *error)
{
    struct partition_key key;
    const char *topic = NULL;
    int64_t partition = 0, high_watermark = -1, log_start = 0;
    enum status status = json_get_string(item, "topic", false, &topic, error);
    if (status == STATUS_OK) status = json_get_uuid(item, "uid", true, &key.uid, error);
    if (status == STATUS_OK) {
        status = json_get_int(item, "partition", 0, INT32_MAX, &partition, error);
    }
    if (status == STATUS_OK) {
        status = json_get_int(item, "high_watermark", -1, INT64_MAX, &high_watermark, error);
    }
    if (status == STATUS_OK) {
        status = json_get_int(item, "log_start", 0, INT64_MAX, &log_start, error);
    }
    if (status != STATUS_OK) return status;
    key.partition = (int32_t)partition;
    struct partition_record *record = partition_table_get(table, &key, topic);
    record->has_offsets = true;
    record->high_watermark = high_watermark;
    record->log_start = log_start;
    return STATUS_OK;
}

enum status offsets_file_load(struct partition_table *table, struct file_system *fs,
                              const char *path, struct error *error)
{
    struct buffer content;
    json_t *document = NULL;
    const json_t *partitions = NULL, *item;
    size_t i;
    buffer_init(&content, 0);
    enum status status = file_read_whole(fs, path, OFFSETS_FILE_BYTES_MAX, &content, error);
    if (status == STATUS_OK) {
        status = json_open_sealed(content.data, content.bytes, &document, error);
    }
    if (status == STATUS_OK) status = json_get_array(document, "partitions", &partitions, error);
    if (status == STATUS_OK) {
        json_array_foreach(partitions, i, item)
        {
            status = offsets_read_partition(table, item, error);
            if (status != STATUS_OK) break;
        }
    }
    if (status == STATUS_INVALID || status == STATUS_TOO_LARGE) status = STATUS_CORRUPT;
    json_decref(document);
    buffer_deinit(&content);
    return status;
}

static json_t *offsets_write_partition(const struct partition_record *record)
{
    char uid[UUID_TEXT_BYTES];
    return json_pack("{s:s,s:s,s:i,s:I,s:I}", "topic", record->topic, "uid",
                     uuid_format(&record->key.uid, uid), "partition", (int)record->key.partition,
                     "high_watermark", (json_int_t)record->high_watermark, "log_start",
                     (json_int_t)record->log_start);
}

enum status offsets_file_write(struct partition_table *table, struct file_system *fs,
                               const char *path, struct error *error)
{
    struct buffer text;
    buffer_init(&text, OFFSETS_FILE_BYTES_MAX);
    json_t *partitions = json_array();
    pthread_mutex_lock(&table->mutex);
    for (struct partition_record *record = table->records; record; record = record->hh.next) {
        if (record->has_offsets && record->topic != NULL) {
            json_array_append_new(partitions, offsets_write_partition(record));
        }
    }
    pthread_mutex_unlock(&table->mutex);
    json_t *document = json_pack("{s:i,s:o}", "version", 1, "partitions", partitions);
    json_seal(&text, document);
    json_decref(document);
    enum status status = buffer_failed(&text)
                             ? error_set(error, STATUS_NO_MEMORY, "%s: no memory", path)
                             : file_replace(fs, path, text.data, text.bytes, error);
    buffer_deinit(&text);
    return status;
}
