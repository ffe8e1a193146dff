/* checker_survivors.h: what is left of each key in a compacted log: the last record of it that is
 * not of an aborted transaction, a tombstone being the same as nothing. Replicas compact when they
 * like, so their batches differ; their survivors may not (I11c).                                */
#ifndef MOONMQ_SIM_CHECKER_SURVIVORS_H
#define MOONMQ_SIM_CHECKER_SURVIVORS_H

#include <stdint.h>

#include "base/status.h"
#include "log/inspect.h"
#include "sim/world.h"

struct survivor {
    uint8_t *key;
    uint32_t key_bytes, value_crc;
    int64_t offset;
    int64_t producer_id; /* while its transaction has not ended; -1 */
    bool tombstone, aborted;
};

struct survivors {
    struct survivor *entries; /* all records, in order; after survivors_end() one a key, by key */
    size_t count, capacity;
    int64_t start, end; /* offsets looked at: [start, end) */
};

void survivors_begin(struct survivors *survivors, int64_t start, int64_t end);
void survivors_batch(struct survivors *survivors, const struct log_inspect_batch *batch);
void survivors_end(struct survivors *survivors);
void survivors_free(struct survivors *survivors);
/* -1: they are the same from offset `from` on; else the offset of a record that one of them lacks.
 */
int64_t survivors_difference(const struct survivors *a, const struct survivors *b, int64_t from);

#endif
