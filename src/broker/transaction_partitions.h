/* transaction_partitions.h: the partitions that one transaction has touched: a sorted set. Pure.
 *
 * Ascending by (topic, partition), so that it has one order on every replica.                */
#ifndef MOONMQ_BROKER_TRANSACTION_PARTITIONS_H
#define MOONMQ_BROKER_TRANSACTION_PARTITIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/status.h"

/* As many as fit into one record of `__transaction_state` whatever their names: see
 * transaction_records.c. */
#define TRANSACTION_PARTITIONS_MAX 3900

struct transaction_partition {
    struct slice topic;
    int32_t partition;
};
/* Zeroed: empty. */
struct transaction_partitions {
    struct transaction_partition *items; /* topics are the set's own copies */
    uint32_t count, capacity;
};

void transaction_partitions_deinit(struct transaction_partitions *set); /* empty afterwards */
void transaction_partitions_copy(struct transaction_partitions *out,
                                 const struct transaction_partitions *set);
bool transaction_partitions_contain(const struct transaction_partitions *set,
                                    const struct transaction_partition *partition);
/* How many of `partitions` are not in the set yet (a repeated one counts each time). */
uint32_t transaction_partitions_missing(const struct transaction_partitions *set,
                                        const struct transaction_partition *partitions,
                                        uint32_t count);
/* One that is there already changes nothing. STATUS_LIMIT: the set is full. */
STATUS_MUST_CHECK
enum status transaction_partitions_add(struct transaction_partitions *set,
                                       const struct transaction_partition *partition);

#endif
