/* partition_set.c: see partition_set.h. */
#include "broker/partition_set.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

int partition_id_compare(const struct partition_id *a, const struct partition_id *b)
{
    int order = uuid_compare(&a->topic, &b->topic);
    if (order != 0) return order;
    return a->partition < b->partition ? -1 : a->partition > b->partition;
}

static int compare_items(const void *a, const void *b)
{
    return partition_id_compare(a, b);
}

void partition_set_deinit(struct partition_set *set)
{
    free(set->items);
    *set = (struct partition_set){0};
}

void partition_set_clear(struct partition_set *set)
{
    set->count = 0;
}

static void append_id(struct partition_set *set, const struct partition_id *id)
{
    if (set->count == set->capacity) {
        set->capacity = set->capacity == 0 ? 8 : set->capacity * 2;
        set->items = memory_resize(set->items, set->capacity, sizeof(*set->items));
    }
    set->items[set->count++] = *id;
}

void partition_set_append(struct partition_set *set, const struct uuid *topic, int32_t partition)
{
    append_id(set, &(struct partition_id){*topic, partition});
}

void partition_set_sort(struct partition_set *set)
{
    uint32_t kept = 0;
    if (set->count < 2) return;
    qsort(set->items, set->count, sizeof(*set->items), compare_items);
    for (uint32_t i = 0; i < set->count; i++) {
        if (kept > 0 && partition_id_compare(&set->items[kept - 1], &set->items[i]) == 0) continue;
        set->items[kept++] = set->items[i];
    }
    set->count = kept;
}

void partition_set_copy(struct partition_set *out, const struct partition_set *from)
{
    partition_set_clear(out);
    for (uint32_t i = 0; i < from->count; i++)
        append_id(out, &from->items[i]);
}

void partition_set_move(struct partition_set *out, struct partition_set *from)
{
    free(out->items);
    *out = *from;
    *from = (struct partition_set){0};
}

bool partition_set_contains(const struct partition_set *set, const struct partition_id *id)
{
    return set->count > 0 &&
           bsearch(id, set->items, set->count, sizeof(*set->items), compare_items) != NULL;
}

bool partition_set_equal(const struct partition_set *a, const struct partition_set *b)
{
    if (a->count != b->count) return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (partition_id_compare(&a->items[i], &b->items[i]) != 0) return false;
    return true;
}

/* One walk over both: each item that is in `a` only, in both, or in `b` only. */
enum side { SIDE_A = 1, SIDE_BOTH = 2, SIDE_B = 4 };

static void merge(struct partition_set *out, const struct partition_set *a,
                  const struct partition_set *b, unsigned wanted)
{
    uint32_t i = 0, j = 0;
    partition_set_clear(out);
    while (i < a->count || j < b->count) {
        int order = i == a->count   ? 1
                    : j == b->count ? -1
                                    : partition_id_compare(&a->items[i], &b->items[j]);
        enum side side = order < 0 ? SIDE_A : order > 0 ? SIDE_B : SIDE_BOTH;
        if (wanted & side) append_id(out, order <= 0 ? &a->items[i] : &b->items[j]);
        if (order <= 0) i++;
        if (order >= 0) j++;
    }
}

bool partition_set_overlaps(const struct partition_set *a, const struct partition_set *b)
{
    uint32_t i = 0, j = 0;
    while (i < a->count && j < b->count) {
        int order = partition_id_compare(&a->items[i], &b->items[j]);
        if (order == 0) return true;
        if (order < 0) {
            i++;
        } else {
            j++;
        }
    }
    return false;
}

bool partition_set_within(const struct partition_set *part, const struct partition_set *whole)
{
    uint32_t j = 0;
    for (uint32_t i = 0; i < part->count; i++, j++) {
        while (j < whole->count && partition_id_compare(&whole->items[j], &part->items[i]) < 0)
            j++;
        if (j == whole->count || partition_id_compare(&whole->items[j], &part->items[i]) != 0)
            return false;
    }
    return true;
}

void partition_set_intersect(struct partition_set *out, const struct partition_set *a,
                             const struct partition_set *b)
{
    merge(out, a, b, SIDE_BOTH);
}

void partition_set_subtract(struct partition_set *out, const struct partition_set *a,
                            const struct partition_set *b)
{
    merge(out, a, b, SIDE_A);
}

void partition_set_unite(struct partition_set *out, const struct partition_set *a,
                         const struct partition_set *b)
{
    merge(out, a, b, SIDE_A | SIDE_BOTH | SIDE_B);
}
