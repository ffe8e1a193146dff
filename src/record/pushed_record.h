/* pushed_record.h: one record as static replication pushes it (native-protocol.md 4.13).
 *
 * u64 bytes behind it, at least 21 | header: u8 attributes, u32 key bytes, u64 timestamp [, u64
 * producer id, u16 epoch when transactional] | u32 CRC-32 (IEEE) of the header | key, stored value
 * | u32 CRC-32 of both. The value is stored with the codec that attributes name. Pure. */
#ifndef MOONMQ_RECORD_PUSHED_RECORD_H
#define MOONMQ_RECORD_PUSHED_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/status.h"
#include "record/batch.h"

struct pushed_record {
    enum batch_codec codec; /* of the value: none, gzip, snappy */
    bool control, transactional;
    uint64_t timestamp_ms;
    uint64_t producer_id; /* when transactional */
    uint16_t producer_epoch;
    struct slice key, value; /* decoded: borrowed from the bytes; value as stored */
};

/* Takes exactly one record. STATUS_CORRUPT: short, long, unknown attributes, or a CRC differs. */
STATUS_MUST_CHECK
enum status pushed_record_decode(struct slice bytes, struct pushed_record *out,
                                 struct error *error);
void pushed_record_encode(const struct pushed_record *record, struct buffer *out);

/* The record as a batch of its own, value in plain, appended to `out`. An empty key is none.
 * STATUS_CORRUPT, TOO_LARGE: the value cannot be unpacked within `value_bytes_max`. */
STATUS_MUST_CHECK
enum status pushed_record_to_batch(const struct pushed_record *record, size_t value_bytes_max,
                                   struct buffer *out, struct error *error);

#endif
