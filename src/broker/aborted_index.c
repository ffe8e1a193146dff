/* aborted_index.c: see aborted_index.h. */
#include "broker/aborted_index.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

#define CAPACITY_MIN 8

void aborted_index_deinit(struct aborted_index *index)
{
    free(index->entries);
    *index = (struct aborted_index){0};
}

void aborted_index_clear(struct aborted_index *index)
{
    index->count = 0;
}

bool aborted_index_reserve(struct aborted_index *index)
{
    if (index->count < index->capacity) return true;
    if (index->capacity > UINT32_MAX / 2) return false;
    uint32_t capacity = index->capacity == 0 ? CAPACITY_MIN : index->capacity * 2;
    struct aborted_transaction *entries =
        realloc(index->entries, (size_t)capacity * sizeof(*entries));
    if (entries == NULL) return false;
    index->entries = entries;
    index->capacity = capacity;
    return true;
}

void aborted_index_add(struct aborted_index *index, const struct aborted_transaction *transaction)
{
    ASSERT(index->count < index->capacity);
    ASSERT(index->count == 0 ||
           index->entries[index->count - 1].marker_offset < transaction->marker_offset);
    index->entries[index->count++] = *transaction;
}

/* The first entry whose marker is not below `offset`. */
static uint32_t first_marker_from(const struct aborted_index *index, int64_t offset)
{
    uint32_t low = 0, high = index->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (index->entries[middle].marker_offset < offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

void aborted_index_truncate(struct aborted_index *index, int64_t offset)
{
    index->count = first_marker_from(index, offset);
}

void aborted_index_prune(struct aborted_index *index, int64_t log_start)
{
    uint32_t gone = first_marker_from(index, log_start);
    if (gone == 0) return;
    index->count -= gone;
    memmove(index->entries, index->entries + gone, index->count * sizeof(index->entries[0]));
}

uint32_t aborted_index_find(const struct aborted_index *index, int64_t offset, int64_t end_offset,
                            struct aborted_transaction *out, uint32_t capacity)
{
    uint32_t found = 0;
    if (offset >= end_offset) return 0;
    for (uint32_t i = first_marker_from(index, offset); i < index->count; i++) {
        const struct aborted_transaction *entry = &index->entries[i];
        if (entry->first_offset < end_offset) {
            if (found < capacity) out[found] = *entry;
            found++;
        }
        if (entry->last_stable_offset >= end_offset) break;
    }
    return found;
}

bool aborted_transactions_hold(const struct aborted_transaction *transactions, uint32_t count,
                               uint32_t *at, int64_t producer_id, int64_t base_offset)
{
    while (*at < count && transactions[*at].marker_offset < base_offset)
        ++*at;
    for (uint32_t i = *at; i < count; i++) {
        const struct aborted_transaction *transaction = &transactions[i];
        if (transaction->producer_id == producer_id && transaction->first_offset <= base_offset) {
            return true;
        }
        if (transaction->last_stable_offset > base_offset) break;
    }
    return false;
}
