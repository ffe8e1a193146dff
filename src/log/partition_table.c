/* partition_table.c: see partition_table.h. */
#include "log/partition_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

void partition_table_init(struct partition_table *table)
{
    *table = (struct partition_table){.positions_complete = true, .wall_ms = -1};
    pthread_mutex_init(&table->mutex, NULL);
}

static void partition_record_free(struct partition_record *record)
{
    epoch_history_deinit(&record->epochs);
    free(record->topic);
    free(record);
}

void partition_table_deinit(struct partition_table *table)
{
    struct partition_record *record, *next;
    HASH_ITER(hh, table->records, record, next)
    {
        HASH_DEL(table->records, record);
        partition_record_free(record);
    }
    pthread_mutex_destroy(&table->mutex);
}

struct partition_record *partition_table_find(struct partition_table *table,
                                              const struct partition_key *key)
{
    struct partition_record *record = NULL;
    HASH_FIND(hh, table->records, key, sizeof(*key), record);
    return record;
}

struct partition_record *partition_table_get(struct partition_table *table,
                                             const struct partition_key *key, const char *topic)
{
    struct partition_record *record = partition_table_find(table, key);
    if (record == NULL) {
        record = memory_new(sizeof(*record));
        record->key = *key;
        record->slot = POSITION_SLOT_NONE;
        record->high_watermark = record->dropped_to = -1;
        epoch_history_init(&record->epochs);
        HASH_ADD(hh, table->records, key, sizeof(record->key), record);
    }
    if (record->topic == NULL && topic != NULL) record->topic = memory_copy_text(topic);
    return record;
}

void partition_table_remove(struct partition_table *table, const struct partition_key *key)
{
    struct partition_record *record = partition_table_find(table, key);
    if (record == NULL) return;
    HASH_DEL(table->records, record);
    partition_record_free(record);
}
