/* partitioner.h: which partition a native record goes to (native-protocol.md 4.1).
 *
 * With a key: FNV-1a of it, mod the number of partitions. Without: a random partition, kept for at
 * most 16 records or 10 ms, then another one; a topic's choice is shared by all connections.
 * Pure: time and randomness come in.                                                            */
#ifndef MOONMQ_NATIVE_PARTITIONER_H
#define MOONMQ_NATIVE_PARTITIONER_H

#include <stdint.h>

#include "base/buffer.h"
#include "base/random.h"
#include "base/uuid.h"

struct sticky;
struct partitioner {
    struct random random;
    struct sticky *topics; /* by topic incarnation */
};

void partitioner_init(struct partitioner *partitioner, uint64_t seed);
void partitioner_deinit(struct partitioner *partitioner);

/* 0-based. partition_count >= 1. */
uint32_t partitioner_choose(struct partitioner *partitioner, const struct uuid *topic,
                            uint32_t partition_count, struct slice key, int64_t now_us);

#endif
