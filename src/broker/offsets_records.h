/* offsets_records.h: Kafka's schemas of `__consumer_offsets` (kafka-listener.md appendix B). Pure.
 *
 * A key begins with an i16 version that is the record's type: 0 and 1 are offsets. We write key 1
 * and value 3; values 0 to 4 are read, as Kafka of any age left them. */
#ifndef MOONMQ_BROKER_OFFSETS_RECORDS_H
#define MOONMQ_BROKER_OFFSETS_RECORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/status.h"

/* Borrowed from the record. */
struct offset_key {
    struct slice group, topic;
    int32_t partition;
};
struct offset_value {
    int64_t offset;
    int32_t leader_epoch; /* -1: none */
    struct slice metadata;
    int64_t commit_timestamp_ms;
};
void offset_key_encode(struct buffer *out, const struct offset_key *key);
void offset_value_encode(struct buffer *out, const struct offset_value *value);
/* STATUS_NOT_FOUND: a record of another type. STATUS_CORRUPT. */
STATUS_MUST_CHECK
enum status offset_key_decode(struct slice bytes, struct offset_key *out);
/* STATUS_UNSUPPORTED: a version from the future. STATUS_CORRUPT. */
STATUS_MUST_CHECK
enum status offset_value_decode(struct slice bytes, struct offset_value *out);

#endif
