/* produce_batch.h: what the front end looks at in a produced batch before it is copied; the rest is
 * record/'s and broker/'s business.                                                            */
#ifndef MOONMQ_KAFKA_PRODUCE_BATCH_H
#define MOONMQ_KAFKA_PRODUCE_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/status.h"

/* One batch of magic 2 within `batch_bytes_max`? STATUS_INVALID_RECORD (none, several, another
 * magic), CORRUPT (cut), TOO_LARGE. */
STATUS_MUST_CHECK
enum status produce_batch_check(struct slice records, uint32_t batch_bytes_max,
                                struct error *error);

/* Of a checked batch. */
bool produce_batch_is_transactional(struct slice records);

/* Of a checked batch that is transactional: whose it is. */
struct produce_owner {
    int64_t producer_id;
    int16_t producer_epoch;
};
struct produce_owner produce_batch_owner(struct slice records);

#endif
