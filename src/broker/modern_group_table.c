/* modern_group_table.c: see modern_group_table.h. */
#include "broker/modern_group_table.h"

#include <stdlib.h>
#include <uthash.h>

#include "base/memory.h"

struct table_group {
    struct modern_group *group;
    UT_hash_handle hh; /* by the group's own id */
};

struct modern_group_table {
    struct table_group *groups; /* uthash walks in the order of insertion */
};

struct modern_group_table *modern_group_table_new(void)
{
    return memory_new(sizeof(struct modern_group_table));
}

static void drop(struct modern_group_table *table, struct table_group *entry)
{
    HASH_DEL(table->groups, entry);
    modern_group_free(entry->group);
    free(entry);
}

void modern_group_table_clear(struct modern_group_table *table)
{
    while (table->groups != NULL)
        drop(table, table->groups);
}

void modern_group_table_free(struct modern_group_table *table)
{
    if (table == NULL) return;
    modern_group_table_clear(table);
    free(table);
}

static struct table_group *find(const struct modern_group_table *table, struct slice id)
{
    struct table_group *entry = NULL;
    const void *key = id.bytes > 0 ? (const void *)id.data : "";
    HASH_FIND(hh, table->groups, key, id.bytes, entry);
    return entry;
}

static struct table_group *add(struct modern_group_table *table, struct slice id)
{
    struct table_group *entry = memory_new(sizeof(*entry));
    entry->group = modern_group_new(id);
    struct slice kept = modern_group_id(entry->group);
    HASH_ADD_KEYPTR(hh, table->groups, kept.data, kept.bytes, entry);
    return entry;
}

enum status modern_group_table_apply_record(struct modern_group_table *table,
                                            const struct record *record, struct error *error)
{
    struct modern_record decoded;
    enum status status = modern_record_decode(
        record->key, record->has_value ? record->value : (struct slice){0}, &decoded);
    if (status == STATUS_NOT_FOUND) return status;
    if (status != STATUS_OK) {
        return error_set(error, status, "consumer group at %lld: %s", (long long)record->offset,
                         status_text(status));
    }
    struct table_group *entry = find(table, decoded.group);
    if (entry == NULL && !decoded.tombstone) entry = add(table, decoded.group);
    if (entry != NULL) {
        modern_group_apply(entry->group, &decoded);
        if (modern_group_is_gone(entry->group)) drop(table, entry);
    }
    modern_record_deinit(&decoded);
    return STATUS_OK;
}

const struct modern_group *modern_group_table_find(const struct modern_group_table *table,
                                                   struct slice group)
{
    const struct table_group *entry = find(table, group);
    return entry != NULL ? entry->group : NULL;
}

void modern_group_table_each(const struct modern_group_table *table, modern_group_fn each,
                             void *context)
{
    for (const struct table_group *entry = table->groups; entry != NULL; entry = entry->hh.next)
        each(context, entry->group);
}

uint64_t modern_group_table_hash(const struct modern_group_table *table)
{
    uint64_t hash = 0;
    for (const struct table_group *entry = table->groups; entry != NULL; entry = entry->hh.next)
        hash += modern_group_hash(entry->group);
    return hash;
}
