/* transaction_partitions.c: see transaction_partitions.h. */
#include "broker/transaction_partitions.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static int compare(const struct transaction_partition *a, const struct transaction_partition *b)
{
    size_t common = a->topic.bytes < b->topic.bytes ? a->topic.bytes : b->topic.bytes;
    int order = common == 0 ? 0 : memcmp(a->topic.data, b->topic.data, common);
    if (order != 0) return order;
    if (a->topic.bytes != b->topic.bytes) return a->topic.bytes < b->topic.bytes ? -1 : 1;
    return a->partition < b->partition ? -1 : a->partition > b->partition;
}

/* Where it is or belongs; true if it is there. */
static bool position(const struct transaction_partitions *set,
                     const struct transaction_partition *partition, uint32_t *at)
{
    uint32_t low = 0, high = set->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (compare(&set->items[middle], partition) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *at = low;
    return low < set->count && compare(&set->items[low], partition) == 0;
}

static struct transaction_partition copy_of(const struct transaction_partition *partition)
{
    struct slice topic = partition->topic;
    uint8_t *copy = memory_new(topic.bytes + 1);
    if (topic.bytes > 0) memcpy(copy, topic.data, topic.bytes);
    return (struct transaction_partition){{copy, topic.bytes}, partition->partition};
}

void transaction_partitions_deinit(struct transaction_partitions *set)
{
    for (uint32_t i = 0; i < set->count; i++)
        free((void *)set->items[i].topic.data);
    free(set->items);
    *set = (struct transaction_partitions){0};
}

void transaction_partitions_copy(struct transaction_partitions *out,
                                 const struct transaction_partitions *set)
{
    *out = (struct transaction_partitions){.count = set->count, .capacity = set->count};
    if (set->count == 0) return;
    out->items = memory_resize(NULL, set->count, sizeof(*out->items));
    for (uint32_t i = 0; i < set->count; i++)
        out->items[i] = copy_of(&set->items[i]);
}

bool transaction_partitions_contain(const struct transaction_partitions *set,
                                    const struct transaction_partition *partition)
{
    uint32_t at;
    return position(set, partition, &at);
}

uint32_t transaction_partitions_missing(const struct transaction_partitions *set,
                                        const struct transaction_partition *partitions,
                                        uint32_t count)
{
    uint32_t missing = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!transaction_partitions_contain(set, &partitions[i])) missing++;
    }
    return missing;
}

enum status transaction_partitions_add(struct transaction_partitions *set,
                                       const struct transaction_partition *partition)
{
    uint32_t at;
    if (position(set, partition, &at)) return STATUS_OK;
    if (set->count >= TRANSACTION_PARTITIONS_MAX) return STATUS_LIMIT;
    if (set->count == set->capacity) {
        set->capacity = set->capacity == 0 ? 4 : set->capacity * 2;
        set->items = memory_resize(set->items, set->capacity, sizeof(*set->items));
    }
    memmove(&set->items[at + 1], &set->items[at], (set->count - at) * sizeof(*set->items));
    set->items[at] = copy_of(partition);
    set->count++;
    return STATUS_OK;
}
