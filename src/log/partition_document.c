/* partition_document.c: see partition_document.h. */
#include "log/partition_document.h"

#include "base/json.h"

#define DOCUMENT_BYTES_MAX (512u * 1024 * 1024)

enum status partition_document_key(const json_t *item, struct partition_key *key,
                                   const char **topic, struct error *error)
{
    int64_t partition = 0;
    enum status status = json_get_string(item, "topic", false, topic, error);
    if (status == STATUS_OK) status = json_get_uuid(item, "uid", true, &key->uid, error);
    if (status == STATUS_OK) {
        status = json_get_int(item, "partition", 0, INT32_MAX, &partition, error);
    }
    key->partition = (int32_t)partition;
    return status;
}

enum status partition_document_load(struct partition_table *table, struct file_system *fs,
                                    const char *path, partition_document_read_head_fn read_head,
                                    partition_document_read_fn read, struct error *error)
{
    struct buffer content;
    json_t *document = NULL;
    const json_t *partitions = NULL, *item;
    size_t i;
    buffer_init(&content, 0);
    enum status status = file_read_whole(fs, path, DOCUMENT_BYTES_MAX, &content, error);
    if (status == STATUS_OK) {
        status = json_open_sealed(content.data, content.bytes, &document, error);
    }
    if (status == STATUS_OK && read_head != NULL) status = read_head(table, document, error);
    if (status == STATUS_OK) status = json_get_array(document, "partitions", &partitions, error);
    if (status == STATUS_OK) {
        json_array_foreach(partitions, i, item)
        {
            status = read(table, item, error);
            if (status != STATUS_OK) break;
        }
    }
    if (status == STATUS_INVALID || status == STATUS_TOO_LARGE) status = STATUS_CORRUPT;
    json_decref(document);
    buffer_deinit(&content);
    return status;
}

static json_t *list_records(struct partition_table *table, partition_document_put_fn put)
{
    char uid[UUID_TEXT_BYTES];
    json_t *partitions = json_array();
    for (struct partition_record *record = table->records; record; record = record->hh.next) {
        if (record->topic == NULL) continue;
        json_t *item =
            json_pack("{s:s,s:s,s:i}", "topic", record->topic, "uid",
                      uuid_format(&record->key.uid, uid), "partition", (int)record->key.partition);
        if (put(record, item))
            json_array_append_new(partitions, item);
        else
            json_decref(item);
    }
    return partitions;
}

enum status partition_document_write(struct partition_table *table, struct file_system *fs,
                                     const char *path, partition_document_put_head_fn put_head,
                                     partition_document_put_fn put, struct error *error)
{
    struct buffer text;
    buffer_init(&text, DOCUMENT_BYTES_MAX);
    pthread_mutex_lock(&table->mutex);
    json_t *document = json_pack("{s:i,s:o}", "version", 1, "partitions", list_records(table, put));
    if (put_head != NULL) put_head(table, document);
    pthread_mutex_unlock(&table->mutex);
    json_seal(&text, document);
    json_decref(document);
    enum status status = buffer_failed(&text)
                             ? error_set(error, STATUS_NO_MEMORY, "%s: no memory", path)
                             : file_replace(fs, path, text.data, text.bytes, error);
    buffer_deinit(&text);
    return status;
}
