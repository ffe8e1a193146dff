/* refused.h: what a connection's idempotent producers were refused for now.
 *
 * Clients pipeline. When a batch is refused for want of a leader or of replicas, and there are
 * again when the next one comes, that one's sequence is ahead through no fault of the client's.
 * Told OUT_OF_ORDER_SEQUENCE_NUMBER, it gives up its numbers and begins a new epoch, and what was
 * written but not answered is there twice. So it is told what the one before it was told: both come
 * again, in order. For some seconds only: a client that does not come back with the first is told
 * the truth. Thread: event loop. */
#ifndef MOONMQ_KAFKA_REFUSED_H
#define MOONMQ_KAFKA_REFUSED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"

/* Which batch of which producer, where. */
struct batch_identity {
    uint64_t place; /* of topic and partition, hashed: a clash costs a retry */
    int64_t producer_id;
    int16_t producer_epoch;
    int32_t sequence;
};
/* false: it is no whole header, or of no idempotent producer. */
bool batch_identify(struct slice topic, int32_t partition, struct slice batch,
                    struct batch_identity *out);

struct refused_batches; /* of one connection; NULL: none so far */

/* It was refused with `error`, nothing of it was written. */
void refused_note(struct refused_batches **refused, const struct batch_identity *batch,
                  int16_t error, int64_t now_us);
/* It was taken. */
void refused_forget(struct refused_batches *refused, const struct batch_identity *batch);
/* Its sequence is not the next: the error of the batch before it that was refused, or 0. */
int16_t refused_before(const struct refused_batches *refused, const struct batch_identity *batch,
                       int64_t now_us);

#endif
