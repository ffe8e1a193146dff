/* offsets_table.c: see offsets_table.h. */
#include "broker/offsets_table.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/assert.h"
#include "base/fnv.h"
#include "base/memory.h"
#include "broker/pending_offsets.h"

struct group {
    char *id;
    size_t id_bytes;
    struct offset_entry *entries;
    uint32_t count, capacity;
    UT_hash_handle hh;
};

struct offsets_table {
    struct group *groups; /* uthash walks in the order of insertion */
    uint64_t hash;        /* sum of the entries' hashes */
    size_t bytes;         /* of groups and entries; pending counts for itself */
    struct pending_offsets *pending;
};

struct offsets_table *offsets_table_new(void)
{
    struct offsets_table *table = memory_new(sizeof(*table));
    table->pending = pending_offsets_new();
    return table;
}

static size_t entry_bytes(const struct offset_entry *entry)
{
    return sizeof(*entry) + entry->topic_bytes + entry->metadata_bytes;
}

static size_t group_bytes(const struct group *group)
{
    return sizeof(*group) + group->id_bytes;
}

static void entry_deinit(struct offset_entry *entry)
{
    free(entry->topic);
    free(entry->metadata);
}

static void group_free(struct offsets_table *table, struct group *group)
{
    HASH_DEL(table->groups, group);
    table->bytes -= group_bytes(group);
    for (uint32_t i = 0; i < group->count; i++) {
        table->bytes -= entry_bytes(&group->entries[i]);
        entry_deinit(&group->entries[i]);
    }
    free(group->entries);
    free(group->id);
    free(group);
}

void offsets_table_clear(struct offsets_table *table)
{
    while (table->groups != NULL)
        group_free(table, table->groups);
    table->hash = 0;
    pending_offsets_clear(table->pending);
}

void offsets_table_free(struct offsets_table *table)
{
    if (table == NULL) return;
    offsets_table_clear(table);
    pending_offsets_free(table->pending);
    free(table);
}

/* ---- hash: FNV-1a over the fields, one entry at a time ---- */

static uint64_t hash_number(uint64_t hash, uint64_t number)
{
    uint8_t bytes[8];
    store_u64(bytes, number);
    return fnv64(hash, bytes, sizeof(bytes));
}

static uint64_t entry_hash(const struct group *group, const struct offset_entry *entry)
{
    uint64_t hash = FNV64_BASIS;
    hash = hash_number(hash, group->id_bytes);
    hash = fnv64(hash, group->id, group->id_bytes);
    hash = hash_number(hash, entry->topic_bytes);
    hash = fnv64(hash, entry->topic, entry->topic_bytes);
    hash = hash_number(hash, (uint64_t)entry->partition);
    hash = hash_number(hash, (uint64_t)entry->offset);
    hash = hash_number(hash, (uint64_t)entry->leader_epoch);
    hash = fnv64(hash, entry->metadata, entry->metadata_bytes);
    hash = hash_number(hash, (uint64_t)entry->commit_timestamp_ms);
    return hash_number(hash, (uint64_t)entry->record_offset);
}

uint64_t offsets_table_hash(const struct offsets_table *table)
{
    return table->hash + pending_offsets_hash(table->pending);
}

size_t offsets_table_bytes(const struct offsets_table *table)
{
    return table->bytes + pending_offsets_bytes(table->pending);
}

size_t offsets_table_pending_bytes(const struct offsets_table *table)
{
    return pending_offsets_bytes(table->pending);
}

/* ---- look-ups ---- */

static struct group *group_find(const struct offsets_table *table, struct slice id)
{
    struct group *group = NULL;
    const void *key = id.bytes > 0 ? (const void *)id.data : "";
    HASH_FIND(hh, table->groups, key, id.bytes, group);
    return group;
}

struct offset_key offset_entry_key(struct slice group, const struct offset_entry *entry)
{
    return (struct offset_key){
        group, {(const uint8_t *)entry->topic, entry->topic_bytes}, entry->partition};
}

static int compare_key(const struct offset_entry *entry, struct slice topic, int32_t partition)
{
    size_t common = entry->topic_bytes < topic.bytes ? entry->topic_bytes : topic.bytes;
    int order = common == 0 ? 0 : memcmp(entry->topic, topic.data, common);
    if (order != 0) return order;
    if (entry->topic_bytes != topic.bytes) return entry->topic_bytes < topic.bytes ? -1 : 1;
    return entry->partition < partition ? -1 : entry->partition > partition;
}

/* Where the entry is or belongs; true if it is there. */
static bool entry_position(const struct group *group, struct slice topic, int32_t partition,
                           uint32_t *at)
{
    uint32_t low = 0, high = group->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (compare_key(&group->entries[middle], topic, partition) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *at = low;
    return low < group->count && compare_key(&group->entries[low], topic, partition) == 0;
}

const struct offset_entry *offsets_table_find(const struct offsets_table *table,
                                              struct slice group_id, struct slice topic,
                                              int32_t partition)
{
    uint32_t at;
    const struct group *group = group_find(table, group_id);
    if (group == NULL || !entry_position(group, topic, partition, &at)) return NULL;
    return &group->entries[at];
}

static struct offset_group group_view_of(const struct group *group)
{
    return (struct offset_group){.id = group->id,
                                 .id_bytes = group->id_bytes,
                                 .entries = group->entries,
                                 .count = group->count};
}

bool offsets_table_is_pending(const struct offsets_table *table, const struct offset_key *key)
{
    return pending_offsets_contain(table->pending, key);
}

struct offset_group offsets_table_group(const struct offsets_table *table, struct slice id)
{
    const struct group *group = group_find(table, id);
    return group != NULL ? group_view_of(group) : (struct offset_group){0};
}

void offsets_table_each(const struct offsets_table *table, offset_group_fn each, void *context)
{
    for (const struct group *group = table->groups; group != NULL; group = group->hh.next) {
        struct offset_group view = group_view_of(group);
        each(context, &view);
    }
}

void offsets_table_each_pending(const struct offsets_table *table, offset_key_fn each,
                                void *context)
{
    pending_offsets_each_key(table->pending, each, context);
}

/* ---- changes ---- */

static char *copy_slice(struct slice slice)
{
    char *copy = memory_new(slice.bytes + 1);
    if (slice.bytes > 0) memcpy(copy, slice.data, slice.bytes);
    return copy;
}

static struct group *group_new(struct offsets_table *table, struct slice id)
{
    struct group *group = memory_new(sizeof(*group));
    group->id = copy_slice(id);
    group->id_bytes = id.bytes;
    HASH_ADD_KEYPTR(hh, table->groups, group->id, group->id_bytes, group);
    table->bytes += group_bytes(group);
    return group;
}

static struct offset_entry *entry_insert(struct group *group, uint32_t at,
                                         const struct offset_key *key)
{
    if (group->count == group->capacity) {
        group->capacity = group->capacity == 0 ? 4 : group->capacity * 2;
        group->entries = memory_resize(group->entries, group->capacity, sizeof(*group->entries));
    }
    memmove(&group->entries[at + 1], &group->entries[at],
            (group->count - at) * sizeof(*group->entries));
    group->count++;
    group->entries[at] = (struct offset_entry){.topic = copy_slice(key->topic),
                                               .topic_bytes = key->topic.bytes,
                                               .partition = key->partition};
    return &group->entries[at];
}

static void put(struct offsets_table *table, const struct offset_key *key,
                const struct offset_value *value, int64_t record_offset)
{
    uint32_t at;
    struct group *group = group_find(table, key->group);
    if (group == NULL) group = group_new(table, key->group);
    bool known = entry_position(group, key->topic, key->partition, &at);
    if (known && group->entries[at].record_offset > record_offset) return;
    struct offset_entry *entry = known ? &group->entries[at] : entry_insert(group, at, key);
    table->hash -= entry->hash;
    if (known) table->bytes -= entry_bytes(entry);
    free(entry->metadata);
    entry->metadata = copy_slice(value->metadata);
    entry->metadata_bytes = value->metadata.bytes;
    entry->offset = value->offset;
    entry->leader_epoch = value->leader_epoch;
    entry->commit_timestamp_ms = value->commit_timestamp_ms;
    entry->record_offset = record_offset;
    entry->hash = entry_hash(group, entry);
    table->hash += entry->hash;
    table->bytes += entry_bytes(entry);
}

static void erase(struct offsets_table *table, const struct offset_key *key)
{
    uint32_t at;
    struct group *group = group_find(table, key->group);
    if (group == NULL || !entry_position(group, key->topic, key->partition, &at)) return;
    table->hash -= group->entries[at].hash;
    table->bytes -= entry_bytes(&group->entries[at]);
    entry_deinit(&group->entries[at]);
    group->count--;
    memmove(&group->entries[at], &group->entries[at + 1],
            (group->count - at) * sizeof(*group->entries));
    if (group->count == 0) group_free(table, group);
}

enum status offsets_table_apply_record(struct offsets_table *table,
                                       const struct batch_header *header,
                                       const struct record *record, struct error *error)
{
    struct offset_key key;
    struct offset_value value;
    bool transactional = (header->attributes & BATCH_TRANSACTIONAL) != 0;
    enum status status = offset_key_decode(record->key, &key);
    if (status == STATUS_NOT_FOUND) return status;
    if (status == STATUS_OK && !record->has_value) {
        /* Nobody removes an offset in a transaction. */
        if (transactional) return STATUS_OK;
        erase(table, &key);
        pending_offsets_forget(table->pending, &key);
        return STATUS_OK;
    }
    if (status == STATUS_OK) status = offset_value_decode(record->value, &value);
    if (status != STATUS_OK) {
        return error_set(error, status, "committed offset at %lld: %s", (long long)record->offset,
                         status_text(status));
    }
    if (transactional) {
        pending_offsets_put(table->pending, header->producer_id, &key, &value, record->offset);
    } else {
        put(table, &key, &value, record->offset);
    }
    return STATUS_OK;
}

static void commit_pending(void *context, const struct offset_key *key,
                           const struct offset_value *value, int64_t record_offset)
{
    put(context, key, value, record_offset);
}

void offsets_table_end_transaction(struct offsets_table *table, int64_t producer_id, bool commit)
{
    pending_offsets_end(table->pending, producer_id, commit ? commit_pending : NULL, table);
}
