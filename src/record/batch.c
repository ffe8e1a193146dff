/* batch.c: the header of a batch: reading it, checking its shape and CRC, filling in what a broker
 * may fill in, and the end-transaction marker.
 *
 * Invariant: nothing here reads past `bytes`, whatever the header claims. Pure.
 * Source: kafka-listener.md 3.1 and 3.3.                                                       */
#include "record/batch.h"

#include <string.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "record/crc_shift.h"
#include "record/layout.h"

enum {
    MARKER_VERSION = 0,
    MARKER_ABORT = 0,
    MARKER_COMMIT = 1,
    MARKER_KEY_BYTES = 4,
    MARKER_VALUE_BYTES = 6,
};

int32_t batch_last_sequence(const struct batch_header *header)
{
    uint32_t sum = (uint32_t)header->base_sequence + (uint32_t)header->last_offset_delta;
    return (int32_t)(sum & INT32_MAX);
}

void batch_header_load(const uint8_t *data, struct batch_header *out)
{
    *out = (struct batch_header){
        .base_offset = (int64_t)load_u64(data + BATCH_AT_BASE_OFFSET),
        .batch_bytes = load_u32(data + BATCH_AT_LENGTH) + BATCH_LENGTH_EXCLUDES,
        .leader_epoch = (int32_t)load_u32(data + BATCH_AT_LEADER_EPOCH),
        .crc = load_u32(data + BATCH_AT_CRC),
        .attributes = (int16_t)load_u16(data + BATCH_AT_ATTRIBUTES),
        .last_offset_delta = (int32_t)load_u32(data + BATCH_AT_LAST_OFFSET_DELTA),
        .base_timestamp_ms = (int64_t)load_u64(data + BATCH_AT_BASE_TIMESTAMP),
        .max_timestamp_ms = (int64_t)load_u64(data + BATCH_AT_MAX_TIMESTAMP),
        .producer_id = (int64_t)load_u64(data + BATCH_AT_PRODUCER_ID),
        .producer_epoch = (int16_t)load_u16(data + BATCH_AT_PRODUCER_EPOCH),
        .base_sequence = (int32_t)load_u32(data + BATCH_AT_BASE_SEQUENCE),
        .record_count = (int32_t)load_u32(data + BATCH_AT_RECORD_COUNT),
    };
}

enum status batch_parse(const uint8_t *data, size_t bytes, bool whole, struct batch_header *out,
                        struct error *error)
{
    if (bytes < BATCH_HEADER_BYTES) {
        return error_set(error, STATUS_AGAIN, "batch: %zu of %d header bytes", bytes,
                         BATCH_HEADER_BYTES);
    }
    uint32_t length = load_u32(data + BATCH_AT_LENGTH);
    if (length < BATCH_HEADER_BYTES - BATCH_LENGTH_EXCLUDES ||
        length > BATCH_BYTES_MAX - BATCH_LENGTH_EXCLUDES) {
        return error_set(error, STATUS_CORRUPT, "batch: length field %u is out of range", length);
    }
    if (data[BATCH_AT_MAGIC] != BATCH_MAGIC) {
        return error_set(error, STATUS_CORRUPT, "batch: magic %u, expected %d",
                         data[BATCH_AT_MAGIC], BATCH_MAGIC);
    }
    batch_header_load(data, out);
    if (out->last_offset_delta < 0 || out->base_offset < 0 ||
        out->base_offset > INT64_MAX - 1 - out->last_offset_delta) {
        return error_set(error, STATUS_CORRUPT, "batch: base offset %lld with last offset delta %d",
                         (long long)out->base_offset, out->last_offset_delta);
    }
    if (whole && bytes < out->batch_bytes) {
        return error_set(error, STATUS_AGAIN, "batch: %zu of %u bytes", bytes, out->batch_bytes);
    }
    return STATUS_OK;
}

bool batch_crc_matches(const uint8_t *data, const struct batch_header *header)
{
    return crc32c(data + BATCH_CRC_COVERS_FROM, header->batch_bytes - BATCH_CRC_COVERS_FROM) ==
           header->crc;
}

void batch_set_base_offset(uint8_t *data, int64_t base_offset)
{
    store_u64(data + BATCH_AT_BASE_OFFSET, (uint64_t)base_offset);
}

void batch_set_leader_epoch(uint8_t *data, int32_t leader_epoch)
{
    store_u32(data + BATCH_AT_LEADER_EPOCH, (uint32_t)leader_epoch);
}

/* The fields under the CRC that are ever changed in place: attributes up to the base sequence. */
struct batch_fields {
    uint8_t bytes[BATCH_AT_RECORD_COUNT - BATCH_CRC_COVERS_FROM];
};

static void fields_load(struct batch_fields *fields, const uint8_t *data)
{
    memcpy(fields->bytes, data + BATCH_CRC_COVERS_FROM, sizeof(fields->bytes));
}

/* A CRC is linear: crc(new) = crc(old) ^ crc of the difference, and the difference is zero after
 * these fields, so its CRC over them is shifted through the rest.                              */
static void mend_crc(uint8_t *data, const struct batch_fields *before)
{
    struct batch_fields difference;
    fields_load(&difference, data);
    for (size_t i = 0; i < sizeof(difference.bytes); i++) {
        difference.bytes[i] ^= before->bytes[i];
    }
    uint32_t batch_bytes = load_u32(data + BATCH_AT_LENGTH) + BATCH_LENGTH_EXCLUDES;
    ASSERT(batch_bytes >= BATCH_HEADER_BYTES);
    uint32_t after = batch_bytes - BATCH_AT_RECORD_COUNT;
    uint32_t patch =
        crc_shift(crc_of_difference(difference.bytes, sizeof(difference.bytes)), after);
    store_u32(data + BATCH_AT_CRC, load_u32(data + BATCH_AT_CRC) ^ patch);
}

void batch_set_log_append_time(uint8_t *data, int64_t timestamp_ms)
{
    struct batch_fields before;
    fields_load(&before, data);
    uint16_t attributes = load_u16(data + BATCH_AT_ATTRIBUTES);
    store_u16(data + BATCH_AT_ATTRIBUTES, (uint16_t)(attributes | BATCH_LOG_APPEND_TIME));
    store_u64(data + BATCH_AT_MAX_TIMESTAMP, (uint64_t)timestamp_ms);
    mend_crc(data, &before);
}

void batch_set_producer(uint8_t *data, int64_t producer_id, int16_t producer_epoch,
                        int32_t base_sequence)
{
    struct batch_fields before;
    fields_load(&before, data);
    uint16_t attributes = load_u16(data + BATCH_AT_ATTRIBUTES);
    store_u16(data + BATCH_AT_ATTRIBUTES, (uint16_t)(attributes & ~BATCH_TRANSACTIONAL));
    store_u64(data + BATCH_AT_PRODUCER_ID, (uint64_t)producer_id);
    store_u16(data + BATCH_AT_PRODUCER_EPOCH, (uint16_t)producer_epoch);
    store_u32(data + BATCH_AT_BASE_SEQUENCE, (uint32_t)base_sequence);
    mend_crc(data, &before);
}

void batch_build_marker(struct buffer *out, int64_t producer_id, int16_t producer_epoch,
                        bool commit, int32_t coordinator_epoch, int64_t timestamp_ms,
                        int32_t leader_epoch)
{
    /* Length of the rest, attributes, both deltas, then key and value, no headers. Every varint
     * here is one byte. */
    enum { RECORD_BYTES = 4 + 1 + MARKER_KEY_BYTES + 1 + MARKER_VALUE_BYTES };
    size_t start = out->bytes;
    buffer_put_i64(out, 0);
    buffer_put_i32(out, BATCH_HEADER_BYTES - BATCH_LENGTH_EXCLUDES + 1 + RECORD_BYTES);
    buffer_put_i32(out, leader_epoch);
    buffer_put_u8(out, BATCH_MAGIC);
    buffer_put_u32(out, 0);
    buffer_put_i16(out, BATCH_TRANSACTIONAL | BATCH_CONTROL);
    buffer_put_i32(out, 0);
    buffer_put_i64(out, timestamp_ms);
    buffer_put_i64(out, timestamp_ms);
    buffer_put_i64(out, producer_id);
    buffer_put_i16(out, producer_epoch);
    buffer_put_i32(out, -1);
    buffer_put_i32(out, 1);

    buffer_put_varint(out, RECORD_BYTES);
    buffer_put_u8(out, 0);
    buffer_put_varint(out, 0);
    buffer_put_varint(out, 0);
    buffer_put_varint(out, MARKER_KEY_BYTES);
    buffer_put_i16(out, MARKER_VERSION);
    buffer_put_i16(out, commit ? MARKER_COMMIT : MARKER_ABORT);
    buffer_put_varint(out, MARKER_VALUE_BYTES);
    buffer_put_i16(out, MARKER_VERSION);
    buffer_put_i32(out, coordinator_epoch);
    buffer_put_varint(out, 0);
    if (!buffer_failed(out)) {
        const uint8_t *covered = out->data + start + BATCH_CRC_COVERS_FROM;
        size_t covered_bytes = out->bytes - start - BATCH_CRC_COVERS_FROM;
        buffer_set_u32(out, start + BATCH_AT_CRC, crc32c(covered, covered_bytes));
    }
}

enum status batch_read_marker(const uint8_t *data, size_t bytes, struct batch_marker *out,
                              struct error *error)
{
    struct batch_header header;
    enum status status = batch_parse(data, bytes, true, &header, error);
    if (status == STATUS_AGAIN) {
        return error_set(error, STATUS_CORRUPT, "control batch: cut short");
    }
    if (status != STATUS_OK) return status;
    if ((header.attributes & BATCH_CONTROL) == 0 ||
        (header.attributes & BATCH_CODEC_MASK) != CODEC_NONE || header.record_count != 1) {
        return error_set(error, STATUS_CORRUPT, "control batch: attributes 0x%x with %d records",
                         (unsigned)(uint16_t)header.attributes, header.record_count);
    }
    struct reader reader;
    struct record_fields record;
    reader_init(&reader, data + BATCH_HEADER_BYTES, header.batch_bytes - BATCH_HEADER_BYTES);
    if (!record_read(&reader, &record) || record.key_bytes < MARKER_KEY_BYTES) {
        return error_set(error, STATUS_CORRUPT, "control batch: malformed record");
    }
    /* Higher versions keep the known fields in front. */
    int16_t type = (int16_t)load_u16(record.key + 2);
    if (type != MARKER_ABORT && type != MARKER_COMMIT) {
        return error_set(error, STATUS_NOT_FOUND, "control batch: type %d ends no transaction",
                         type);
    }
    if (record.value_bytes < MARKER_VALUE_BYTES) {
        return error_set(error, STATUS_CORRUPT, "control batch: value of %d bytes",
                         record.value_bytes);
    }
    out->commit = type == MARKER_COMMIT;
    out->coordinator_epoch = (int32_t)load_u32(record.value + 2);
    return STATUS_OK;
}
