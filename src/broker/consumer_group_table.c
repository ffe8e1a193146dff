/* consumer_group_table.c: see consumer_group_table.h. */
#include "broker/consumer_group_table.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/assert.h"
#include "base/fnv.h"
#include "base/memory.h"

struct table_group {
    uint8_t *id, *value;
    size_t id_bytes, value_bytes;
    uint64_t hash;
    UT_hash_handle hh;
};

struct consumer_group_table {
    struct table_group *groups; /* uthash walks in the order of insertion */
    uint64_t hash;              /* sum of the groups' hashes */
};

struct consumer_group_table *consumer_group_table_new(void)
{
    return memory_new(sizeof(struct consumer_group_table));
}

static void group_drop(struct consumer_group_table *table, struct table_group *group)
{
    table->hash -= group->hash;
    HASH_DEL(table->groups, group);
    free(group->id);
    free(group->value);
    free(group);
}

void consumer_group_table_clear(struct consumer_group_table *table)
{
    while (table->groups != NULL)
        group_drop(table, table->groups);
}

void consumer_group_table_free(struct consumer_group_table *table)
{
    if (table == NULL) return;
    consumer_group_table_clear(table);
    free(table);
}

uint64_t consumer_group_table_hash(const struct consumer_group_table *table)
{
    return table->hash;
}

static uint64_t group_hash(const struct table_group *group)
{
    uint8_t bytes[8];
    store_u64(bytes, group->id_bytes);
    uint64_t hash = fnv64(FNV64_BASIS, bytes, sizeof(bytes));
    hash = fnv64(hash, group->id, group->id_bytes);
    return fnv64(hash, group->value, group->value_bytes);
}

static struct table_group *group_find(const struct consumer_group_table *table, struct slice id)
{
    struct table_group *group = NULL;
    const void *key = id.bytes > 0 ? (const void *)id.data : "";
    HASH_FIND(hh, table->groups, key, id.bytes, group);
    return group;
}

static uint8_t *copy_slice(struct slice slice)
{
    uint8_t *copy = memory_new(slice.bytes + 1);
    if (slice.bytes > 0) memcpy(copy, slice.data, slice.bytes);
    return copy;
}

static void put(struct consumer_group_table *table, struct slice id, struct slice value)
{
    struct table_group *group = group_find(table, id);
    if (group == NULL) {
        group = memory_new(sizeof(*group));
        group->id = copy_slice(id);
        group->id_bytes = id.bytes;
        HASH_ADD_KEYPTR(hh, table->groups, group->id, group->id_bytes, group);
    }
    table->hash -= group->hash;
    free(group->value);
    group->value = copy_slice(value);
    group->value_bytes = value.bytes;
    group->hash = group_hash(group);
    table->hash += group->hash;
}

enum status consumer_group_table_apply_record(struct consumer_group_table *table,
                                              const struct record *record, struct error *error)
{
    struct slice id;
    struct group_record decoded;
    enum status status = group_key_decode(record->key, &id);
    if (status == STATUS_NOT_FOUND) return status;
    if (status == STATUS_OK && !record->has_value) {
        struct table_group *group = group_find(table, id);
        if (group != NULL) group_drop(table, group);
        return STATUS_OK;
    }
    if (status == STATUS_OK) status = group_record_decode(record->value, &decoded);
    if (status != STATUS_OK) {
        return error_set(error, status, "consumer group at %lld: %s", (long long)record->offset,
                         status_text(status));
    }
    put(table, id, record->value);
    return STATUS_OK;
}

static void decode(const struct table_group *group, struct group_record *out)
{
    enum status status = group_record_decode((struct slice){group->value, group->value_bytes}, out);
    ASSERT(status == STATUS_OK); /* checked when it came */
}

bool consumer_group_table_find(const struct consumer_group_table *table, struct slice id,
                               struct group_record *out)
{
    const struct table_group *group = group_find(table, id);
    if (group == NULL) return false;
    decode(group, out);
    return true;
}

void consumer_group_table_each(const struct consumer_group_table *table, group_record_fn each,
                               void *context)
{
    struct table_group *group, *next;
    HASH_ITER(hh, table->groups, group, next)
    {
        struct group_record record;
        decode(group, &record);
        each(context, (struct slice){group->id, group->id_bytes}, &record);
    }
}
