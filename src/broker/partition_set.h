/* partition_set.h: a set of partitions by topic uid, ascending and without repeats. Pure.
 *
 * What a member of a consumer group has, is to have, or must give up. Kept as one sorted array, so
 * that every operation is a merge and has one order on every replica. */
#ifndef MOONMQ_BROKER_PARTITION_SET_H
#define MOONMQ_BROKER_PARTITION_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/uuid.h"

struct partition_id {
    struct uuid topic;
    int32_t partition;
};
int partition_id_compare(const struct partition_id *a, const struct partition_id *b);

/* Zeroed: empty. */
struct partition_set {
    struct partition_id *items; /* ascending */
    uint32_t count, capacity;
};
void partition_set_deinit(struct partition_set *set); /* empty afterwards */
void partition_set_clear(struct partition_set *set);
/* Adds at the end, in whatever order; partition_set_sort() makes a set of it. */
void partition_set_append(struct partition_set *set, const struct uuid *topic, int32_t partition);
/* Sorts, and drops repeats. */
void partition_set_sort(struct partition_set *set);
void partition_set_copy(struct partition_set *out, const struct partition_set *from);
/* `from` is empty afterwards. */
void partition_set_move(struct partition_set *out, struct partition_set *from);

bool partition_set_contains(const struct partition_set *set, const struct partition_id *id);
bool partition_set_equal(const struct partition_set *a, const struct partition_set *b);
bool partition_set_overlaps(const struct partition_set *a, const struct partition_set *b);
bool partition_set_within(const struct partition_set *part, const struct partition_set *whole);
/* out = a and b, a without b, a or b; `out` is none of them, and what it held is gone. */
void partition_set_intersect(struct partition_set *out, const struct partition_set *a,
                             const struct partition_set *b);
void partition_set_subtract(struct partition_set *out, const struct partition_set *a,
                            const struct partition_set *b);
void partition_set_unite(struct partition_set *out, const struct partition_set *a,
                         const struct partition_set *b);

#endif
