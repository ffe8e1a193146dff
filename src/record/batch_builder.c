/* batch_builder.c: writing a batch record by record.
 *
 * The first record's timestamp becomes the base timestamp. Records lie encoded in the builder's
 * buffer until finish, which compresses them if asked and puts the header in front. Pure.
 * Source: kafka-listener.md 3.1 and 3.2.                                                       */
#include "record/batch.h"

#include "base/assert.h"
#include "base/crc32c.h"
#include "record/layout.h"

#define RECORDS_BYTES_MAX (BATCH_BYTES_MAX - BATCH_HEADER_BYTES)

void batch_builder_init(struct batch_builder *builder)
{
    *builder = (struct batch_builder){0};
    buffer_init(&builder->records, RECORDS_BYTES_MAX);
}

void batch_builder_deinit(struct batch_builder *builder)
{
    buffer_deinit(&builder->records);
}

static size_t varint_bytes(int64_t value)
{
    uint64_t zigzag = ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
    size_t bytes = 1;
    for (; zigzag >= 0x80; zigzag >>= 7) {
        bytes++;
    }
    return bytes;
}

static size_t nullable_bytes(struct slice slice)
{
    return slice.data == NULL ? 1 : varint_bytes((int64_t)slice.bytes) + slice.bytes;
}

static void put_nullable(struct buffer *buffer, struct slice slice)
{
    buffer_put_varint(buffer, slice.data == NULL ? -1 : (int64_t)slice.bytes);
    if (slice.data != NULL) buffer_put(buffer, slice.data, slice.bytes);
}

void batch_builder_add(struct batch_builder *builder, int64_t timestamp_ms, struct slice key,
                       struct slice value, int32_t header_count, struct slice headers)
{
    ASSERT(header_count >= 0);
    struct buffer *records = &builder->records;
    /* Checked before they are added up; the buffer's bound would refuse them anyway. */
    if (key.bytes > RECORDS_BYTES_MAX || value.bytes > RECORDS_BYTES_MAX ||
        headers.bytes > RECORDS_BYTES_MAX || builder->record_count == INT32_MAX) {
        records->failed = true;
        return;
    }
    if (builder->record_count == 0) {
        builder->base_timestamp_ms = timestamp_ms;
        builder->max_timestamp_ms = timestamp_ms;
    }
    if (timestamp_ms > builder->max_timestamp_ms) builder->max_timestamp_ms = timestamp_ms;
    int64_t timestamp_delta;
    if (__builtin_sub_overflow(timestamp_ms, builder->base_timestamp_ms, &timestamp_delta)) {
        records->failed = true;
        return;
    }
    int32_t offset_delta = builder->record_count++;
    size_t header_bytes = headers.data == NULL ? 0 : headers.bytes;
    size_t bytes = 1 + varint_bytes(timestamp_delta) + varint_bytes(offset_delta) +
                   nullable_bytes(key) + nullable_bytes(value) + varint_bytes(header_count) +
                   header_bytes;
    buffer_put_varint(records, (int64_t)bytes);
    size_t start = records->bytes;
    buffer_put_u8(records, 0);
    buffer_put_varint(records, timestamp_delta);
    buffer_put_varint(records, offset_delta);
    put_nullable(records, key);
    put_nullable(records, value);
    buffer_put_varint(records, header_count);
    if (header_bytes != 0) buffer_put(records, headers.data, header_bytes);
    ASSERT(buffer_failed(records) || records->bytes == start + bytes);
}

size_t batch_builder_bytes(const struct batch_builder *builder)
{
    return BATCH_HEADER_BYTES + builder->records.bytes;
}

static void put_header(const struct batch_builder *builder,
                       const struct batch_build_options *options, struct buffer *out)
{
    unsigned attributes = options->codec;
    if (options->transactional) attributes |= BATCH_TRANSACTIONAL;
    if (options->control) attributes |= BATCH_CONTROL;
    buffer_put_i64(out, options->base_offset);
    buffer_put_i32(out, 0); /* length, set when known */
    buffer_put_i32(out, options->leader_epoch);
    buffer_put_u8(out, BATCH_MAGIC);
    buffer_put_u32(out, 0); /* CRC, likewise */
    buffer_put_u16(out, (uint16_t)attributes);
    buffer_put_i32(out, builder->record_count - 1);
    buffer_put_i64(out, builder->base_timestamp_ms);
    buffer_put_i64(out, builder->max_timestamp_ms);
    buffer_put_i64(out, options->producer_id);
    buffer_put_i16(out, options->producer_epoch);
    buffer_put_i32(out, options->base_sequence);
    buffer_put_i32(out, builder->record_count);
}

/* Sets length and CRC of the batch that begins at `start`. */
static void seal(struct buffer *out, size_t start)
{
    size_t bytes = out->bytes - start;
    buffer_set_u32(out, start + BATCH_AT_LENGTH, (uint32_t)(bytes - BATCH_LENGTH_EXCLUDES));
    buffer_set_u32(
        out, start + BATCH_AT_CRC,
        crc32c(out->data + start + BATCH_CRC_COVERS_FROM, bytes - BATCH_CRC_COVERS_FROM));
}

enum status batch_builder_finish(struct batch_builder *builder,
                                 const struct batch_build_options *options, struct buffer *out,
                                 struct error *error)
{
    size_t start = out->bytes;
    enum status status = STATUS_OK;
    if (buffer_failed(&builder->records)) {
        status = error_set(error, STATUS_TOO_LARGE, "batch of over %u bytes, or no memory for it",
                           BATCH_BYTES_MAX);
        goto out;
    }
    if (builder->record_count == 0) {
        status = error_set(error, STATUS_INVALID, "batch without records");
        goto out;
    }
    put_header(builder, options, out);
    status = codec_compress(options->codec, buffer_slice(&builder->records), out, error);
    if (status != STATUS_OK) goto out;
    if (buffer_failed(out)) {
        status = error_set(error, STATUS_NO_MEMORY, "no room for a batch of %zu bytes",
                           batch_builder_bytes(builder));
        goto out;
    }
    /* Bytes that do not compress can grow past the bound. */
    if (out->bytes - start > BATCH_BYTES_MAX) {
        status = error_set(error, STATUS_TOO_LARGE, "batch of %zu bytes", out->bytes - start);
        goto out;
    }
    seal(out, start);
out:
    if (status != STATUS_OK) out->bytes = start;
    buffer_clear(&builder->records);
    builder->record_count = 0;
    return status;
}
