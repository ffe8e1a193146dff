/* pushed_record.c: see pushed_record.h. */
#include "record/pushed_record.h"

#include <zlib.h>

#include "base/reader.h"

#define TOTAL_BYTES_MIN      21
#define PLAIN_HEADER_BYTES   13
#define PRODUCER_BYTES       10
#define ATTRIBUTE_CODEC      0x03
#define ATTRIBUTE_CONTROL    0x04
#define ATTRIBUTE_PRODUCER   0x08
#define ATTRIBUTES_KNOWN     0x0f
#define VALUE_OF_EMPTY_SLICE ((const uint8_t *)"")

static uint32_t crc_of(struct slice bytes)
{
    return bytes.bytes == 0 ? 0 : (uint32_t)crc32(0, bytes.data, (uInt)bytes.bytes);
}

static enum status corrupt(struct error *error, const char *what)
{
    return error_set(error, STATUS_CORRUPT, "record: %s", what);
}

enum status pushed_record_decode(struct slice bytes, struct pushed_record *out, struct error *error)
{
    struct reader reader;
    *out = (struct pushed_record){0};
    if (bytes.bytes > UINT32_MAX) return corrupt(error, "too long");
    reader_init(&reader, bytes.data, bytes.bytes);
    uint64_t total = reader_u64(&reader);
    if (reader_failed(&reader) || total < TOTAL_BYTES_MIN) return corrupt(error, "short");
    if (total != reader_left(&reader)) return corrupt(error, "its length is not that of the body");
    size_t header_at = reader.at;
    uint8_t attributes = reader_u8(&reader);
    uint32_t key_bytes = reader_u32(&reader);
    out->timestamp_ms = reader_u64(&reader);
    if ((attributes & ~ATTRIBUTES_KNOWN) != 0) return corrupt(error, "unknown attributes");
    out->codec = (enum batch_codec)(attributes & ATTRIBUTE_CODEC);
    if (out->codec > CODEC_SNAPPY) return corrupt(error, "unknown codec");
    out->control = (attributes & ATTRIBUTE_CONTROL) != 0;
    out->transactional = (attributes & ATTRIBUTE_PRODUCER) != 0;
    if (out->transactional) {
        out->producer_id = reader_u64(&reader);
        out->producer_epoch = reader_u16(&reader);
    }
    struct slice header = {bytes.data + header_at, reader.at - header_at};
    uint32_t header_crc = reader_u32(&reader);
    if (reader_failed(&reader)) return corrupt(error, "short");
    if (header_crc != crc_of(header)) return corrupt(error, "the header's CRC differs");
    size_t left = reader_left(&reader);
    if (left < sizeof(uint32_t) || key_bytes > left - sizeof(uint32_t)) {
        return corrupt(error, "key beyond the end");
    }
    struct slice content = {bytes.data + reader.at, left - sizeof(uint32_t)};
    out->key = reader_bytes(&reader, key_bytes);
    out->value = reader_bytes(&reader, content.bytes - key_bytes);
    if (reader_u32(&reader) != crc_of(content)) return corrupt(error, "the content's CRC differs");
    return STATUS_OK;
}

void pushed_record_encode(const struct pushed_record *record, struct buffer *out)
{
    uint8_t attributes =
        (uint8_t)((uint8_t)record->codec | (record->control ? ATTRIBUTE_CONTROL : 0) |
                  (record->transactional ? ATTRIBUTE_PRODUCER : 0));
    size_t header_bytes = PLAIN_HEADER_BYTES + (record->transactional ? PRODUCER_BYTES : 0);
    size_t content_bytes = record->key.bytes + record->value.bytes;
    buffer_put_u64(out, header_bytes + content_bytes + 2 * sizeof(uint32_t));
    size_t at = out->bytes;
    buffer_put_u8(out, attributes);
    buffer_put_u32(out, (uint32_t)record->key.bytes);
    buffer_put_u64(out, record->timestamp_ms);
    if (record->transactional) {
        buffer_put_u64(out, record->producer_id);
        buffer_put_u16(out, record->producer_epoch);
    }
    if (buffer_failed(out)) return;
    buffer_put_u32(out, crc_of((struct slice){out->data + at, out->bytes - at}));
    at = out->bytes;
    if (record->key.bytes > 0) buffer_put(out, record->key.data, record->key.bytes);
    if (record->value.bytes > 0) buffer_put(out, record->value.data, record->value.bytes);
    if (buffer_failed(out)) return;
    buffer_put_u32(out, crc_of((struct slice){out->data + at, out->bytes - at}));
}

enum status pushed_record_to_batch(const struct pushed_record *record, size_t value_bytes_max,
                                   struct buffer *out, struct error *error)
{
    struct buffer plain;
    struct slice value = record->value;
    struct slice key = {record->key.bytes == 0 ? NULL : record->key.data, record->key.bytes};
    if (record->timestamp_ms > INT64_MAX) return corrupt(error, "timestamp out of range");
    buffer_init(&plain, value_bytes_max);
    enum status status = STATUS_OK;
    if (record->codec != CODEC_NONE) {
        status = codec_decompress(record->codec, record->value, value_bytes_max, &plain, error);
        value = buffer_slice(&plain);
    }
    if (value.bytes == 0) value.data = VALUE_OF_EMPTY_SLICE; /* empty, and there */
    if (status == STATUS_OK) {
        struct batch_builder builder;
        batch_builder_init(&builder);
        batch_builder_add(&builder, (int64_t)record->timestamp_ms, key, value, 0,
                          (struct slice){NULL, 0});
        status = batch_builder_finish(&builder, &BATCH_BUILD_PLAIN, out, error);
        batch_builder_deinit(&builder);
    }
    buffer_deinit(&plain);
    return status;
}
