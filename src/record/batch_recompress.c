/* batch_recompress.c: see batch_recompress.h. Pure. */
#include "record/batch_recompress.h"

#include "base/crc32c.h"
#include "record/layout.h"

static enum status put_batch(const uint8_t *data, const struct batch_compression *compression,
                             struct slice records, int64_t max_timestamp_ms, struct buffer *out,
                             struct error *error)
{
    size_t start = out->bytes;
    buffer_put(out, data, BATCH_HEADER_BYTES);
    enum status status =
        codec_compress_at(compression->codec, compression->level, records, out, error);
    if (status == STATUS_OK && buffer_failed(out)) {
        status = error_set(error, STATUS_NO_MEMORY, "no memory for a batch");
    }
    /* Bytes that do not compress can grow past the bound. */
    if (status == STATUS_OK && out->bytes - start > BATCH_BYTES_MAX) {
        status = error_set(error, STATUS_TOO_LARGE, "recompressed to %zu bytes, at most %u",
                           out->bytes - start, BATCH_BYTES_MAX);
    }
    if (status != STATUS_OK) {
        out->bytes = start;
        return status;
    }
    uint8_t *at = out->data + start;
    size_t bytes = out->bytes - start;
    unsigned attributes = load_u16(at + BATCH_AT_ATTRIBUTES) & ~(unsigned)BATCH_CODEC_MASK;
    store_u16(at + BATCH_AT_ATTRIBUTES, (uint16_t)(attributes | compression->codec));
    store_u64(at + BATCH_AT_MAX_TIMESTAMP, (uint64_t)max_timestamp_ms);
    store_u32(at + BATCH_AT_LENGTH, (uint32_t)(bytes - BATCH_LENGTH_EXCLUDES));
    store_u32(at + BATCH_AT_CRC, crc32c(at + BATCH_CRC_COVERS_FROM, bytes - BATCH_CRC_COVERS_FROM));
    return STATUS_OK;
}

enum status batch_recompress(const uint8_t *data, size_t bytes,
                             const struct batch_compression *compression,
                             const struct batch_limits *limits, struct buffer *out,
                             struct batch_fault *fault, struct error *error)
{
    struct batch_header header;
    struct buffer unfolded;
    int64_t max_timestamp_ms;
    fault->record_index = -1;
    enum status status = batch_parse(data, bytes, true, &header, error);
    if (status != STATUS_OK) return error_set(error, STATUS_INVALID_RECORD, "not a whole batch");
    struct slice records = {data + BATCH_HEADER_BYTES, header.batch_bytes - BATCH_HEADER_BYTES};
    buffer_init(&unfolded, 0);
    if ((header.attributes & BATCH_CODEC_MASK) != CODEC_NONE) {
        status = batch_unfold_records(records, &header, &unfolded, error);
        records = buffer_slice(&unfolded);
    }
    if (status == STATUS_OK) {
        status = batch_check_records(records, &header, limits, &max_timestamp_ms, fault, error);
    }
    if (status == STATUS_OK) {
        status = put_batch(data, compression, records, max_timestamp_ms, out, error);
    }
    buffer_deinit(&unfolded);
    return status;
}
