/* record_iterator.c: reading the records of a batch one by one, without allocating per record.
 *
 * Invariant: offsets a caller sees rise strictly and lie within the batch. Pure.
 * Source: kafka-listener.md 3.2.                                                               */
#include "record/batch.h"

#include "base/assert.h"
#include "record/layout.h"

/* Nearly all varints of a record take one or two bytes: those do not go through the general reader.
 * False: neither, or it lies at the end. */
static inline bool record_short_varint(struct reader *reader, int32_t *out)
{
    if (reader->bytes - reader->at < 2) return false;
    const uint8_t *at = reader->data + reader->at;
    uint32_t value = at[0];
    size_t bytes = 1;
    if (value >= 0x80) {
        if (at[1] >= 0x80) return false;
        value = (value & 0x7f) | (uint32_t)at[1] << 7;
        bytes = 2;
    }
    reader->at += bytes;
    *out = (int32_t)(value >> 1) ^ -(int32_t)(value & 1);
    return true;
}

static inline int32_t record_varint32(struct reader *reader)
{
    int32_t value;
    return record_short_varint(reader, &value) ? value : reader_varint32(reader);
}

static inline int64_t record_varint64(struct reader *reader)
{
    int32_t value;
    return record_short_varint(reader, &value) ? value : reader_varint64(reader);
}

/* A nullable length and its bytes; *out is NULL for null. False: malformed. */
static inline bool record_read_nullable(struct reader *reader, int32_t *bytes_out,
                                        const uint8_t **out)
{
    int32_t bytes = record_varint32(reader);
    *bytes_out = bytes;
    /* Checked here, not once at the end: a failed reader yields zeros for as long as it is asked,
     * and a header count can ask two thousand million times. */
    if (reader_failed(reader)) return false;
    *out = bytes < 0 ? NULL : reader->data + reader->at;
    if (bytes < 0) return bytes == -1;
    if ((size_t)bytes > reader_left(reader)) return false;
    reader->at += (size_t)bytes;
    return true;
}

static bool record_read_headers(struct reader *reader, struct record_fields *out)
{
    out->header_count = record_varint32(reader);
    size_t start = reader->at;
    for (int32_t i = 0; i < out->header_count; i++) {
        int32_t bytes;
        const uint8_t *at;
        if (!record_read_nullable(reader, &bytes, &at) || bytes < 0 ||
            !record_read_nullable(reader, &bytes, &at)) {
            return false;
        }
    }
    out->headers = (struct slice){reader->data + start, reader->at - start};
    return out->header_count >= 0;
}

bool record_read(struct reader *reader, struct record_fields *out)
{
    int32_t bytes = record_varint32(reader);
    if (reader_failed(reader) || bytes < 0 || (size_t)bytes > reader_left(reader)) {
        return false;
    }
    /* Nothing of the record may reach past its own length. */
    struct reader body;
    reader_init(&body, reader->data + reader->at, (size_t)bytes);
    reader->at += (size_t)bytes;
    reader_skip(&body, 1); /* attributes: none are defined */
    out->timestamp_delta = record_varint64(&body);
    out->offset_delta = record_varint32(&body);
    return record_read_nullable(&body, &out->key_bytes, &out->key) &&
           record_read_nullable(&body, &out->value_bytes, &out->value) &&
           record_read_headers(&body, out) && !reader_failed(&body) && reader_left(&body) == 0;
}

enum status record_iterator_init(struct record_iterator *iterator, const uint8_t *data,
                                 size_t bytes, size_t decompressed_bytes_max, struct error *error)
{
    *iterator = (struct record_iterator){.previous_delta = -1};
    buffer_init(&iterator->decompressed, 0);
    enum status status = batch_parse(data, bytes, true, &iterator->header, error);
    if (status == STATUS_AGAIN) return error_set(error, STATUS_CORRUPT, "batch: cut short");
    if (status != STATUS_OK) return status;
    if (iterator->header.record_count < 0 ||
        iterator->header.record_count > (int64_t)iterator->header.last_offset_delta + 1) {
        return error_set(error, STATUS_CORRUPT, "batch: %d records up to offset delta %d",
                         iterator->header.record_count, iterator->header.last_offset_delta);
    }
    struct slice records = {data + BATCH_HEADER_BYTES,
                            iterator->header.batch_bytes - BATCH_HEADER_BYTES};
    enum batch_codec codec = iterator->header.attributes & BATCH_CODEC_MASK;
    /* A batch that compaction emptied holds no stream, whatever its codec. */
    if (codec != CODEC_NONE && iterator->header.record_count > 0) {
        status = codec_decompress(codec, records, decompressed_bytes_max, &iterator->decompressed,
                                  error);
        if (status != STATUS_OK) {
            buffer_deinit(&iterator->decompressed);
            return status;
        }
        records = buffer_slice(&iterator->decompressed);
    }
    reader_init(&iterator->reader, records.data, records.bytes);
    return STATUS_OK;
}

static struct slice record_slice(const uint8_t *data, int32_t bytes)
{
    return (struct slice){data, bytes < 0 ? 0 : (size_t)bytes};
}

enum status record_iterator_next(struct record_iterator *iterator, struct record *out,
                                 struct error *error)
{
    const struct batch_header *header = &iterator->header;
    if (iterator->next == header->record_count) {
        if (reader_left(&iterator->reader) == 0) return STATUS_NOT_FOUND;
        return error_set(error, STATUS_CORRUPT, "batch: %zu bytes after the last record",
                         reader_left(&iterator->reader));
    }
    struct record_fields fields;
    int64_t timestamp_ms;
    if (!record_read(&iterator->reader, &fields) ||
        fields.offset_delta <= iterator->previous_delta ||
        fields.offset_delta > header->last_offset_delta ||
        __builtin_add_overflow(header->base_timestamp_ms, fields.timestamp_delta, &timestamp_ms)) {
        return error_set(error, STATUS_CORRUPT, "batch: record %d is malformed", iterator->next);
    }
    bool log_append_time = (header->attributes & BATCH_LOG_APPEND_TIME) != 0;
    *out = (struct record){
        .offset = header->base_offset + fields.offset_delta,
        .timestamp_ms = log_append_time ? header->max_timestamp_ms : timestamp_ms,
        .has_key = fields.key_bytes >= 0,
        .has_value = fields.value_bytes >= 0,
        .key = record_slice(fields.key, fields.key_bytes),
        .value = record_slice(fields.value, fields.value_bytes),
        .header_count = fields.header_count,
        .headers = fields.headers,
    };
    iterator->previous_delta = fields.offset_delta;
    iterator->next++;
    return STATUS_OK;
}

void record_iterator_deinit(struct record_iterator *iterator)
{
    buffer_deinit(&iterator->decompressed);
}
