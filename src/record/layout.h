/* layout.h: where the fields of a RecordBatch v2 lie, and how one record is read. Private to
 * record/.
 *
 * Source: kafka-listener.md 3.1 and 3.2.                                                       */
#ifndef MOONMQ_RECORD_LAYOUT_H
#define MOONMQ_RECORD_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/reader.h"
#include "record/batch.h"

enum batch_layout {
    BATCH_AT_BASE_OFFSET = 0,
    BATCH_AT_LENGTH = 8,
    BATCH_LENGTH_EXCLUDES = 12, /* base offset and the length field itself */
    BATCH_AT_LEADER_EPOCH = 12,
    BATCH_AT_MAGIC = 16,
    BATCH_AT_CRC = 17,
    BATCH_AT_ATTRIBUTES = 21,
    BATCH_CRC_COVERS_FROM = 21,
    BATCH_AT_LAST_OFFSET_DELTA = 23,
    BATCH_AT_BASE_TIMESTAMP = 27,
    BATCH_AT_MAX_TIMESTAMP = 35,
    BATCH_AT_PRODUCER_ID = 43,
    BATCH_AT_PRODUCER_EPOCH = 51,
    BATCH_AT_BASE_SEQUENCE = 53,
    BATCH_AT_RECORD_COUNT = 57,
};
_Static_assert(BATCH_AT_RECORD_COUNT + 4 == BATCH_HEADER_BYTES, "the records follow the count");

#define BATCH_MAGIC            2
#define BATCH_ATTRIBUTES_KNOWN 0x7f
#define RECORD_BYTES_MIN       7 /* length and six one-byte fields: null key, null value */
#define RECORD_TIMESTAMP_NONE  (-1)
/* What a compressed batch may unfold to while it is validated: the bound against bombs. */
#define RECORD_BYTES_VALIDATE_MAX BATCH_BYTES_MAX

/* Decodes the fields of a header as they are; `data` holds BATCH_HEADER_BYTES. */
void batch_header_load(const uint8_t *data, struct batch_header *out);

/* One record as it lies in the batch: deltas instead of values. */
struct record_fields {
    int64_t timestamp_delta;
    int32_t offset_delta;
    int32_t key_bytes; /* -1: null */
    int32_t value_bytes;
    const uint8_t *key, *value;
    int32_t header_count;
    struct slice headers;
};

/* Reads the next record. False: malformed; the reader is then of no further use. */
bool record_read(struct reader *reader, struct record_fields *out);

/* Walks all records of a produced batch; *max_timestamp_ms becomes the true one.
 * STATUS_INVALID_RECORD, INVALID_TIMESTAMP. */
STATUS_MUST_CHECK
enum status batch_check_records(struct slice records, const struct batch_header *header,
                                const struct batch_limits *limits, int64_t *max_timestamp_ms,
                                struct batch_fault *fault, struct error *error);
/* Unfolds the records of a compressed produced batch into `out`, within what is taken.
 * STATUS_INVALID_RECORD, whatever is wrong with the stream: to send it again does not help;
 * NO_MEMORY. */
STATUS_MUST_CHECK
enum status batch_unfold_records(struct slice stream, const struct batch_header *header,
                                 struct buffer *out, struct error *error);

#endif
