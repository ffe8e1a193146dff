/* batch_rewrite.h: one batch with some of its records taken out, as compaction leaves it.
 *
 * What stays as it was: base offset, last offset (so offsets keep gaps), leader epoch, producer
 * fields, attributes but for what is said below, and every kept record, byte for byte. The CRC is
 * computed anew; what was compressed is compressed by the same codec. A batch of which nothing is
 * kept can be kept as a header (record count 0): it holds a producer's sequence, or the end of a
 * segment. Delete horizon (KIP-534): attribute bit 6 says that the base timestamp is the time from
 * which tombstones of the batch may go; timestamps are then relative to it. Pure.
 * Source: kafka-listener.md 3.1, 3.2.                                                          */
#ifndef MOONMQ_RECORD_BATCH_REWRITE_H
#define MOONMQ_RECORD_BATCH_REWRITE_H

#include "record/batch.h"

#define BATCH_HORIZON_NONE INT64_MIN

struct batch_rewrite {
    /* in */
    bool (*keep)(void *context, const struct record *record); /* asked in order, maybe twice */
    void *context;
    bool keep_header;        /* of an emptied batch */
    bool keep_max_timestamp; /* though the record that had it goes */
    /* Set in a batch that has none, if what is kept holds a tombstone or `horizon_always`.
     * BATCH_HORIZON_NONE: not now. Not set where a timestamp is too far from it to be told. */
    int64_t horizon_ms;
    bool horizon_always;
    size_t decompressed_bytes_max;
    /* out */
    int32_t kept, dropped;
    bool changed; /* what was appended, if anything, is not the batch as it was */
};

/* The horizon that a batch carries, or BATCH_HORIZON_NONE. */
static inline int64_t batch_horizon_ms(const struct batch_header *header)
{
    return (header->attributes & BATCH_DELETE_HORIZON) ? header->base_timestamp_ms
                                                       : BATCH_HORIZON_NONE;
}

/* Appends to `out` what is left of the whole batch in `data`: nothing, its header, or a batch.
 * STATUS_CORRUPT, or what its codec says: its records cannot be read; NO_MEMORY, TOO_LARGE: `out`
 * is as before. */
STATUS_MUST_CHECK
enum status batch_rewrite(struct batch_rewrite *rewrite, const uint8_t *data, size_t bytes,
                          struct buffer *out, struct error *error);

#endif
