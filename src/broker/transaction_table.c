/* transaction_table.c: see transaction_table.h. */
#include "broker/transaction_table.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/fnv.h"
#include "base/memory.h"
#include "record/batch.h"

#define TRANSACTION_BATCH_BYTES_MAX 16777216

struct table_entry {
    struct transaction_entry entry; /* first */
    uint64_t hash;
    size_t bytes;
    UT_hash_handle hh;
};

struct transaction_table {
    struct table_entry *entries; /* uthash walks in the order of insertion */
    uint64_t hash;               /* sum of the entries' hashes */
    size_t bytes;                /* and of what they were taken over */
};

struct transaction_table *transaction_table_new(void)
{
    return memory_new(sizeof(struct transaction_table));
}

static void entry_remove(struct transaction_table *table, struct table_entry *entry)
{
    HASH_DEL(table->entries, entry);
    table->hash -= entry->hash;
    table->bytes -= entry->bytes;
    transaction_value_deinit(&entry->entry.value);
    free((void *)entry->entry.id.data);
    free(entry);
}

void transaction_table_clear(struct transaction_table *table)
{
    while (table->entries != NULL)
        entry_remove(table, table->entries);
}

void transaction_table_free(struct transaction_table *table)
{
    if (table == NULL) return;
    transaction_table_clear(table);
    free(table);
}

/* Over key and value as they are written: equal records, equal hashes. */
static void entry_measure(struct table_entry *entry)
{
    struct buffer bytes;
    buffer_init(&bytes, 0);
    transaction_key_encode(&bytes, entry->entry.id);
    transaction_value_encode(&bytes, &entry->entry.value);
    entry->hash = fnv64(FNV64_BASIS, bytes.data, bytes.bytes);
    entry->bytes = bytes.bytes;
    buffer_deinit(&bytes);
}

static struct table_entry *entry_find(const struct transaction_table *table, struct slice id)
{
    struct table_entry *entry = NULL;
    const void *key = id.bytes > 0 ? (const void *)id.data : "";
    HASH_FIND(hh, table->entries, key, id.bytes, entry);
    return entry;
}

const struct transaction_entry *transaction_table_find(const struct transaction_table *table,
                                                       struct slice id)
{
    const struct table_entry *entry = entry_find(table, id);
    return entry != NULL ? &entry->entry : NULL;
}

const struct transaction_entry *transaction_table_next(const struct transaction_table *table,
                                                       const struct transaction_entry *after)
{
    const struct table_entry *next =
        after == NULL ? table->entries : ((const struct table_entry *)after)->hh.next;
    return next != NULL ? &next->entry : NULL;
}

uint32_t transaction_table_count(const struct transaction_table *table)
{
    return HASH_COUNT(table->entries);
}

size_t transaction_table_bytes(const struct transaction_table *table)
{
    return table->bytes;
}

uint64_t transaction_table_hash(const struct transaction_table *table)
{
    return table->hash;
}

/* ---- changes ---- */

static struct table_entry *entry_add(struct transaction_table *table, struct slice id)
{
    struct table_entry *entry = memory_new(sizeof(*entry));
    uint8_t *copy = memory_new(id.bytes + 1);
    if (id.bytes > 0) memcpy(copy, id.data, id.bytes);
    entry->entry.id = (struct slice){copy, id.bytes};
    transaction_value_init(&entry->entry.value);
    HASH_ADD_KEYPTR(hh, table->entries, entry->entry.id.data, entry->entry.id.bytes, entry);
    return entry;
}

/* Takes the value. */
static void put(struct transaction_table *table, struct slice id, struct transaction_value *value)
{
    struct table_entry *entry = entry_find(table, id);
    if (entry == NULL) entry = entry_add(table, id);
    table->hash -= entry->hash;
    table->bytes -= entry->bytes;
    transaction_value_deinit(&entry->entry.value);
    entry->entry.value = *value;
    entry_measure(entry);
    table->hash += entry->hash;
    table->bytes += entry->bytes;
}

static enum status apply_record(struct transaction_table *table, const struct record *record,
                                struct error *error)
{
    struct slice id;
    struct transaction_value value;
    if (!record->has_key) return STATUS_OK;
    enum status status = transaction_key_decode(record->key, &id);
    if (status == STATUS_NOT_FOUND) return STATUS_OK;
    if (status == STATUS_OK && !record->has_value) {
        struct table_entry *entry = entry_find(table, id);
        if (entry != NULL) entry_remove(table, entry);
        return STATUS_OK;
    }
    if (status == STATUS_OK) status = transaction_value_decode(record->value, &value);
    if (status != STATUS_OK) {
        return error_set(error, status, "transaction at %lld: %s", (long long)record->offset,
                         status_text(status));
    }
    put(table, id, &value);
    return STATUS_OK;
}

enum status transaction_table_apply_batch(struct transaction_table *table, const uint8_t *data,
                                          size_t bytes, struct error *error)
{
    struct record_iterator iterator;
    struct record record;
    enum status status =
        record_iterator_init(&iterator, data, bytes, TRANSACTION_BATCH_BYTES_MAX, error);
    if (status != STATUS_OK) return status;
    if ((iterator.header.attributes & BATCH_CONTROL) == 0) {
        while ((status = record_iterator_next(&iterator, &record, error)) == STATUS_OK) {
            status = apply_record(table, &record, error);
            if (status != STATUS_OK) break;
        }
        if (status == STATUS_NOT_FOUND) status = STATUS_OK;
    }
    record_iterator_deinit(&iterator);
    return status;
}
