/* attempts.h: how often records were given back by NACK (native-protocol.md 4.10).
 *
 * Counted by group, topic incarnation, partition and offset, in the leader's memory: a restart or
 * failover begins anew, which delivers a record a few times more and loses none. Bounded: the one
 * that was touched longest ago goes first. Pure. */
#ifndef MOONMQ_NATIVE_ATTEMPTS_H
#define MOONMQ_NATIVE_ATTEMPTS_H

#include <stdint.h>

#include "base/buffer.h"
#include "base/uuid.h"

#define ATTEMPTS_MAX 4096

struct attempts_key {
    struct slice group; /* at most WIRE_NAME_BYTES_MAX */
    struct uuid topic;
    int32_t partition;
    int64_t offset;
};

struct attempts_entry;
struct attempts {
    struct attempts_entry *by_key;
    struct attempts_entry *by_age; /* touched longest ago first */
};

void attempts_init(struct attempts *attempts);
void attempts_clear(struct attempts *attempts);
/* 0: never, or forgotten. */
uint16_t attempts_get(const struct attempts *attempts, const struct attempts_key *key);
/* `count` 0 forgets it. Without memory nothing is counted: it is delivered once more. */
void attempts_set(struct attempts *attempts, const struct attempts_key *key, uint16_t count);

#endif
