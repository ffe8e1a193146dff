/* batch_recompress.h: a produced batch by another codec, as a topic's `compression.type` asks.
 *
 * What stays as it was: every record, byte for byte, offsets, producer fields and attributes but
 * for the codec; the base timestamp. The max timestamp becomes the true one, the CRC is computed
 * anew. Pure. Source: kafka-listener.md 3.1, 3.4. */
#ifndef MOONMQ_RECORD_BATCH_RECOMPRESS_H
#define MOONMQ_RECORD_BATCH_RECOMPRESS_H

#include "record/batch.h"

struct batch_compression {
    enum batch_codec codec;
    int level; /* as for codec_compress_at() */
};

/* Appends to `out` the batch in `data`, which batch_validate_produced() took, its records checked
 * by `limits` as they are seen here. The result may be larger than `limits` allow, up to
 * BATCH_BYTES_MAX: the caller looks. STATUS_INVALID_RECORD, INVALID_TIMESTAMP (with *fault),
 * TOO_LARGE, NO_MEMORY: `out` is as before. */
STATUS_MUST_CHECK
enum status batch_recompress(const uint8_t *data, size_t bytes,
                             const struct batch_compression *compression,
                             const struct batch_limits *limits, struct buffer *out,
                             struct batch_fault *fault, struct error *error);

#endif
