/* epochs_file.c: replication-epochs.json: the history of every partition, as one sealed document:
 * {partitions: [{topic, uid, partition, epochs: [[first, last, start], …]}], checksum}.
 *
 * A partition without epochs is listed with none: that tells "nothing to know" from "lost".
 * replication.md section 8, decisions 11.                                                      */
#include "base/json.h"
#include "log/partition_document.h"

static enum status epochs_read_entry(const json_t *entry, struct epoch_history *history,
                                     struct error *error)
{
    int64_t values[3];
    for (size_t i = 0; i < 3; i++) {
        const json_t *value = json_array_get(entry, i);
        if (!json_is_integer(value)) {
            return error_set(error, STATUS_CORRUPT, "an epoch is not three integers");
        }
        values[i] = json_integer_value(value);
    }
    int64_t previous = history->count == 0 ? 0 : history->entries[history->count - 1].start_offset;
    if (values[0] <= epoch_history_latest(history) || values[1] < values[0] ||
        values[1] > INT32_MAX || values[2] < previous) {
        return error_set(error, STATUS_CORRUPT, "epochs do not ascend");
    }
    epoch_history_assign(history, (int32_t)values[0], values[2]);
    history->entries[history->count - 1].last_epoch = (int32_t)values[1];
    return STATUS_OK;
}

static enum status epochs_read_partition(struct partition_table *table, const json_t *item,
                                         struct error *error)
{
    struct partition_key key;
    const char *topic = NULL;
    const json_t *entries = NULL;
    enum status status = partition_document_key(item, &key, &topic, error);
    if (status == STATUS_OK) status = json_get_array(item, "epochs", &entries, error);
    if (status != STATUS_OK) return status;
    struct partition_record *record = partition_table_get(table, &key, topic);
    epoch_history_clear(&record->epochs);
    size_t i;
    const json_t *entry;
    json_array_foreach(entries, i, entry)
    {
        status = epochs_read_entry(entry, &record->epochs, error);
        if (status != STATUS_OK) return status;
    }
    record->has_epochs = true;
    return STATUS_OK;
}

/* Half a file is no answer to any question. */
static void epochs_forget(struct partition_table *table)
{
    for (struct partition_record *record = table->records; record; record = record->hh.next) {
        record->has_epochs = false;
        epoch_history_clear(&record->epochs);
    }
}

enum status epochs_file_load(struct partition_table *table, struct file_system *fs,
                             const char *path, struct error *error)
{
    enum status status =
        partition_document_load(table, fs, path, NULL, epochs_read_partition, error);
    if (status != STATUS_OK) epochs_forget(table);
    return status;
}

static bool epochs_put_partition(const struct partition_record *record, json_t *item)
{
    if (!record->has_epochs) return false;
    json_t *entries = json_array();
    for (uint32_t i = 0; i < record->epochs.count; i++) {
        const struct epoch_entry *entry = &record->epochs.entries[i];
        json_array_append_new(entries,
                              json_pack("[i,i,I]", (int)entry->first_epoch, (int)entry->last_epoch,
                                        (json_int_t)entry->start_offset));
    }
    json_object_set_new(item, "epochs", entries);
    return true;
}

enum status epochs_file_write(struct partition_table *table, struct file_system *fs,
                              const char *path, struct error *error)
{
    return partition_document_write(table, fs, path, NULL, epochs_put_partition, error);
}
