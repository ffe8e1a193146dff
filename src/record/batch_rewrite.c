/* batch_rewrite.c: see batch_rewrite.h. Pure. */
#include "record/batch_rewrite.h"

#include "base/assert.h"
#include "base/crc32c.h"
#include "record/layout.h"

/* The records kept so far, encoded. */
struct rewriting {
    struct batch_rewrite *rewrite;
    struct buffer records;
    int64_t base_timestamp_ms; /* what timestamps are relative to */
    int64_t max_timestamp_ms;  /* of the records kept */
    bool tombstones;
};

static void put_nullable(struct buffer *buffer, bool has, struct slice slice)
{
    buffer_put_varint(buffer, has ? (int64_t)slice.bytes : -1);
    if (has) buffer_put(buffer, slice.data, slice.bytes);
}

/* The record with its timestamp relative to another base. */
static enum status put_rebased(struct rewriting *work, const struct record *record,
                               int64_t timestamp_ms, int32_t offset_delta, struct error *error)
{
    struct buffer body;
    int64_t timestamp_delta;
    if (__builtin_sub_overflow(timestamp_ms, work->base_timestamp_ms, &timestamp_delta)) {
        return error_set(error, STATUS_INVALID_TIMESTAMP, "batch: timestamp %lld",
                         (long long)timestamp_ms);
    }
    buffer_init(&body, BATCH_BYTES_MAX);
    buffer_put_u8(&body, 0);
    buffer_put_varint(&body, timestamp_delta);
    buffer_put_varint(&body, offset_delta);
    put_nullable(&body, record->has_key, record->key);
    put_nullable(&body, record->has_value, record->value);
    buffer_put_varint(&body, record->header_count);
    if (record->headers.bytes > 0) buffer_put(&body, record->headers.data, record->headers.bytes);
    if (buffer_failed(&body)) work->records.failed = true;
    buffer_put_varint(&work->records, (int64_t)body.bytes);
    buffer_put(&work->records, body.data, body.bytes);
    buffer_deinit(&body);
    return STATUS_OK;
}

/* Goes through the batch and encodes what is kept. */
static enum status rewrite_records(struct rewriting *work, const uint8_t *data, size_t bytes,
                                   struct error *error)
{
    struct batch_rewrite *rewrite = work->rewrite;
    struct record_iterator iterator;
    struct record record;
    rewrite->kept = rewrite->dropped = 0;
    work->tombstones = false;
    work->max_timestamp_ms = INT64_MIN;
    buffer_clear(&work->records);
    enum status status =
        record_iterator_init(&iterator, data, bytes, rewrite->decompressed_bytes_max, error);
    if (status != STATUS_OK) return status;
    const struct batch_header *header = &iterator.header;
    bool rebased = work->base_timestamp_ms != header->base_timestamp_ms;
    for (;;) {
        size_t from = iterator.reader.at;
        status = record_iterator_next(&iterator, &record, error);
        if (status != STATUS_OK) break;
        if (!rewrite->keep(rewrite->context, &record)) {
            rewrite->dropped++;
            continue;
        }
        rewrite->kept++;
        work->tombstones = work->tombstones || !record.has_value;
        if (record.timestamp_ms > work->max_timestamp_ms) {
            work->max_timestamp_ms = record.timestamp_ms;
        }
        if (rebased) {
            status = put_rebased(work, &record, record.timestamp_ms,
                                 (int32_t)(record.offset - header->base_offset), error);
            if (status != STATUS_OK) break;
        } else {
            buffer_put(&work->records, iterator.reader.data + from, iterator.reader.at - from);
        }
    }
    record_iterator_deinit(&iterator);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* Fills in length and CRC of the batch that begins at `start`. */
static void rewrite_seal(struct buffer *out, size_t start)
{
    size_t bytes = out->bytes - start;
    buffer_set_u32(out, start + BATCH_AT_LENGTH, (uint32_t)(bytes - BATCH_LENGTH_EXCLUDES));
    buffer_set_u32(
        out, start + BATCH_AT_CRC,
        crc32c(out->data + start + BATCH_CRC_COVERS_FROM, bytes - BATCH_CRC_COVERS_FROM));
}

static enum status rewrite_put_batch(const struct rewriting *work, const uint8_t *data,
                                     const struct batch_header *header, bool set_horizon,
                                     struct buffer *out, struct error *error)
{
    const struct batch_rewrite *rewrite = work->rewrite;
    size_t start = out->bytes;
    bool empty = rewrite->kept == 0;
    bool own_time = (header->attributes & BATCH_LOG_APPEND_TIME) == 0;
    enum batch_codec codec = header->attributes & BATCH_CODEC_MASK;
    unsigned attributes = (uint16_t)header->attributes;
    if (set_horizon) attributes |= BATCH_DELETE_HORIZON;
    if (empty) attributes &= ~(unsigned)(BATCH_DELETE_HORIZON | BATCH_CODEC_MASK);
    buffer_put(out, data, BATCH_HEADER_BYTES);
    enum status status = STATUS_OK;
    if (!empty) status = codec_compress(codec, buffer_slice(&work->records), out, error);
    if (status == STATUS_OK && buffer_failed(out)) {
        status = error_set(error, STATUS_NO_MEMORY, "no memory for a batch");
    }
    if (status == STATUS_OK && out->bytes - start > BATCH_BYTES_MAX) {
        status = error_set(error, STATUS_TOO_LARGE, "batch of %zu bytes", out->bytes - start);
    }
    if (status != STATUS_OK) {
        out->bytes = start;
        return status;
    }
    uint8_t *at = out->data + start;
    store_u16(at + BATCH_AT_ATTRIBUTES, (uint16_t)attributes);
    store_u32(at + BATCH_AT_RECORD_COUNT, (uint32_t)rewrite->kept);
    if (set_horizon) store_u64(at + BATCH_AT_BASE_TIMESTAMP, (uint64_t)work->base_timestamp_ms);
    if (!empty && own_time && !rewrite->keep_max_timestamp) {
        store_u64(at + BATCH_AT_MAX_TIMESTAMP, (uint64_t)work->max_timestamp_ms);
    }
    rewrite_seal(out, start);
    return STATUS_OK;
}

enum status batch_rewrite(struct batch_rewrite *rewrite, const uint8_t *data, size_t bytes,
                          struct buffer *out, struct error *error)
{
    struct batch_header header;
    rewrite->changed = false;
    rewrite->kept = rewrite->dropped = 0;
    enum status status = batch_parse(data, bytes, true, &header, error);
    if (status != STATUS_OK) return STATUS_CORRUPT;
    struct rewriting work = {.rewrite = rewrite, .base_timestamp_ms = header.base_timestamp_ms};
    buffer_init(&work.records, BATCH_BYTES_MAX);
    status = rewrite_records(&work, data, bytes, error);
    bool set_horizon = status == STATUS_OK && rewrite->horizon_ms != BATCH_HORIZON_NONE &&
                       rewrite->kept > 0 && (header.attributes & BATCH_DELETE_HORIZON) == 0 &&
                       (work.tombstones || rewrite->horizon_always);
    if (set_horizon) {
        work.base_timestamp_ms = rewrite->horizon_ms;
        status = rewrite_records(&work, data, bytes, error);
        if (status == STATUS_INVALID_TIMESTAMP) {
            /* A timestamp too far from the horizon to be told by it: such a batch does without. */
            set_horizon = false;
            work.base_timestamp_ms = header.base_timestamp_ms;
            status = rewrite_records(&work, data, bytes, error);
        }
    }
    if (status == STATUS_OK && buffer_failed(&work.records)) {
        status = error_set(error, STATUS_NO_MEMORY, "no memory for a batch");
    }
    if (status != STATUS_OK) goto out;
    bool as_it_was = rewrite->dropped == 0 && !set_horizon;
    if (as_it_was && (rewrite->kept > 0 || rewrite->keep_header)) {
        buffer_put(out, data, header.batch_bytes);
        if (buffer_failed(out)) status = error_set(error, STATUS_NO_MEMORY, "no memory");
        goto out;
    }
    rewrite->changed = true;
    if (rewrite->kept == 0 && !rewrite->keep_header) goto out;
    status = rewrite_put_batch(&work, data, &header, set_horizon, out, error);
out:
    buffer_deinit(&work.records);
    return status;
}
