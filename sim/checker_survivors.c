#include "sim/checker_survivors.h"

#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "record/batch.h"

#define DECOMPRESSED_MAX (16u << 20)

void survivors_begin(struct survivors *survivors, int64_t start, int64_t end)
{
    *survivors = (struct survivors){.start = start, .end = end};
}

void survivors_free(struct survivors *survivors)
{
    for (size_t i = 0; i < survivors->count; i++)
        sim_release(survivors->entries[i].key);
    sim_release(survivors->entries);
    *survivors = (struct survivors){0};
}

static void add(struct survivors *survivors, const struct record *record, int64_t producer_id)
{
    if (survivors->count == survivors->capacity) {
        survivors->capacity = survivors->capacity == 0 ? 64 : 2 * survivors->capacity;
        survivors->entries =
            sim_grow(survivors->entries, survivors->capacity * sizeof(survivors->entries[0]));
    }
    struct survivor *entry = &survivors->entries[survivors->count++];
    *entry = (struct survivor){
        .key = sim_alloc(record->key.bytes + 1),
        .key_bytes = (uint32_t)record->key.bytes,
        .value_crc = record->has_value ? crc32c(record->value.data, record->value.bytes) : 0,
        .offset = record->offset,
        .producer_id = producer_id,
        .tombstone = !record->has_value};
    if (record->key.bytes > 0) memcpy(entry->key, record->key.data, record->key.bytes);
}

static void end_transaction(struct survivors *survivors, int64_t producer_id, bool commit)
{
    for (size_t i = 0; i < survivors->count; i++) {
        struct survivor *entry = &survivors->entries[i];
        if (entry->producer_id != producer_id) continue;
        entry->producer_id = -1;
        entry->aborted = !commit;
    }
}

void survivors_batch(struct survivors *survivors, const struct log_inspect_batch *batch)
{
    const struct batch_header *header = &batch->header;
    struct record_iterator iterator;
    struct record record;
    struct error error;
    if ((header->attributes & BATCH_CONTROL) != 0) {
        struct batch_marker marker;
        if (batch_read_marker(batch->data, header->batch_bytes, &marker, &error) == STATUS_OK)
            end_transaction(survivors, header->producer_id, marker.commit);
        return;
    }
    bool transactional = (header->attributes & BATCH_TRANSACTIONAL) != 0;
    if (record_iterator_init(&iterator, batch->data, header->batch_bytes, DECOMPRESSED_MAX,
                             &error) != STATUS_OK)
        return;
    while (record_iterator_next(&iterator, &record, &error) == STATUS_OK) {
        if (record.offset >= survivors->start && record.offset < survivors->end)
            add(survivors, &record, transactional ? header->producer_id : -1);
    }
    record_iterator_deinit(&iterator);
}

static int compare_keys(const struct survivor *a, const struct survivor *b)
{
    uint32_t bytes = a->key_bytes < b->key_bytes ? a->key_bytes : b->key_bytes;
    int order = memcmp(a->key, b->key, bytes);
    if (order != 0) return order;
    return (a->key_bytes > b->key_bytes) - (a->key_bytes < b->key_bytes);
}

static int compare_entries(const void *a, const void *b)
{
    const struct survivor *x = a, *y = b;
    int order = compare_keys(x, y);
    return order != 0 ? order : (x->offset > y->offset) - (x->offset < y->offset);
}

void survivors_end(struct survivors *survivors)
{
    size_t kept = 0;
    for (size_t i = 0; i < survivors->count; i++) {
        if (survivors->entries[i].aborted)
            sim_release(survivors->entries[i].key);
        else
            survivors->entries[kept++] = survivors->entries[i];
    }
    survivors->count = kept;
    if (kept > 1) qsort(survivors->entries, kept, sizeof(survivors->entries[0]), compare_entries);
    kept = 0;
    for (size_t i = 0; i < survivors->count; i++) {
        struct survivor *entry = &survivors->entries[i];
        bool last = i + 1 == survivors->count || compare_keys(entry, entry + 1) != 0;
        if (!last || entry->tombstone)
            sim_release(entry->key);
        else
            survivors->entries[kept++] = *entry;
    }
    survivors->count = kept;
}

int64_t survivors_difference(const struct survivors *a, const struct survivors *b, int64_t from)
{
    size_t i = 0, j = 0;
    for (;;) {
        while (i < a->count && a->entries[i].offset < from)
            i++;
        while (j < b->count && b->entries[j].offset < from)
            j++;
        if (i == a->count && j == b->count) return -1;
        if (i == a->count) return b->entries[j].offset;
        if (j == b->count) return a->entries[i].offset;
        const struct survivor *x = &a->entries[i++], *y = &b->entries[j++];
        if (compare_keys(x, y) != 0 || x->offset != y->offset || x->value_crc != y->value_crc)
            return x->offset;
    }
}
