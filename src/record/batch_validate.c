/* batch_validate.c: what a batch from a producer must satisfy before it is appended.
 *
 * Order: shape, size, CRC, header fields, header timestamps, then the records in one pass. The
 * payload of an uncompressed batch is always walked; a compressed one is unfolded (bounded) only
 * for compacted topics, whose keys are looked at. Nothing is allocated per record. Pure. Source:
 * kafka-listener.md 3.5.                                                               */
#include "record/batch.h"

#include "record/layout.h"

/* Sets the fault and the error alike. */
#define FAULT_BATCH (-1)

static enum status batch_check_shape(const uint8_t *data, size_t bytes,
                                     const struct batch_limits *limits, struct batch_header *out,
                                     struct error *error)
{
    if (bytes == 0) return error_set(error, STATUS_INVALID_RECORD, "no batch");
    if (bytes > BATCH_AT_MAGIC && data[BATCH_AT_MAGIC] != BATCH_MAGIC) {
        return error_set(error, STATUS_INVALID_RECORD, "batch of magic %u, expected %d",
                         data[BATCH_AT_MAGIC], BATCH_MAGIC);
    }
    if (bytes < BATCH_HEADER_BYTES) {
        return error_set(error, STATUS_CORRUPT, "batch of %zu bytes is shorter than its header",
                         bytes);
    }
    uint64_t declared = (uint64_t)load_u32(data + BATCH_AT_LENGTH) + BATCH_LENGTH_EXCLUDES;
    if (declared < BATCH_HEADER_BYTES || declared > bytes) {
        return error_set(error, STATUS_CORRUPT, "batch declares %llu bytes, %zu are there",
                         (unsigned long long)declared, bytes);
    }
    if (declared < bytes) {
        bool another = bytes - declared >= BATCH_HEADER_BYTES;
        return error_set(error, another ? STATUS_INVALID_RECORD : STATUS_CORRUPT,
                         another ? "more than one batch for a partition"
                                 : "stray bytes after the batch");
    }
    batch_header_load(data, out);
    if (out->batch_bytes > limits->batch_bytes_max || out->batch_bytes > BATCH_BYTES_MAX) {
        return error_set(
            error, STATUS_TOO_LARGE, "batch of %u bytes, at most %u are taken", out->batch_bytes,
            limits->batch_bytes_max < BATCH_BYTES_MAX ? limits->batch_bytes_max : BATCH_BYTES_MAX);
    }
    if (!batch_crc_matches(data, out)) {
        return error_set(error, STATUS_CORRUPT, "batch fails its CRC");
    }
    return STATUS_OK;
}

static enum status batch_check_attributes(const struct batch_header *header,
                                          const struct batch_limits *limits, struct error *error)
{
    uint16_t attributes = (uint16_t)header->attributes;
    if ((attributes & BATCH_CONTROL) != 0) {
        return error_set(error, STATUS_INVALID_RECORD, "a client may not write control batches");
    }
    if ((attributes & ~BATCH_ATTRIBUTES_KNOWN) != 0 || (attributes & BATCH_DELETE_HORIZON) != 0) {
        return error_set(error, STATUS_INVALID_RECORD, "batch attributes 0x%x", attributes);
    }
    if ((attributes & BATCH_LOG_APPEND_TIME) != 0) {
        return error_set(error, STATUS_INVALID_TIMESTAMP, "a client may not set log append time");
    }
    unsigned codec = attributes & BATCH_CODEC_MASK;
    if (codec > CODEC_ZSTD || (codec == CODEC_ZSTD && !limits->allow_zstd)) {
        return error_set(error, STATUS_UNSUPPORTED_COMPRESSION, "compression %u is not taken here",
                         codec);
    }
    return STATUS_OK;
}

static enum status batch_check_numbers(const struct batch_header *header,
                                       const struct batch_limits *limits, struct error *error)
{
    if (header->base_offset != 0) {
        return error_set(error, STATUS_INVALID_RECORD, "base offset %lld, expected 0",
                         (long long)header->base_offset);
    }
    if (header->record_count <= 0 ||
        (int64_t)header->last_offset_delta + 1 != header->record_count) {
        return error_set(error, STATUS_INVALID_RECORD, "%d records with last offset delta %d",
                         header->record_count, header->last_offset_delta);
    }
    /* A compressed payload is not looked at: without this, few bytes could claim 2^31 offsets. */
    if (header->record_count > (int64_t)(RECORD_BYTES_VALIDATE_MAX / RECORD_BYTES_MIN)) {
        return error_set(error, STATUS_INVALID_RECORD, "%d records in one batch",
                         header->record_count);
    }
    bool has_producer = header->producer_id >= 0;
    bool sequenced = header->base_sequence >= 0 || limits->allow_unsequenced;
    if (has_producer && (!sequenced || header->producer_epoch < 0)) {
        return error_set(error, STATUS_INVALID_RECORD, "producer id with sequence %d, epoch %d",
                         header->base_sequence, header->producer_epoch);
    }
    if (!has_producer && (header->attributes & BATCH_TRANSACTIONAL) != 0) {
        return error_set(error, STATUS_INVALID_RECORD, "transactional without a producer id");
    }
    return STATUS_OK;
}

/* The window of create times, computed once: no sum can overflow. */
struct timestamp_window {
    bool checked;
    int64_t first_ms, last_ms;
};

static struct timestamp_window timestamp_window(const struct batch_limits *limits)
{
    struct timestamp_window window = {.checked = !limits->log_append_time};
    if (__builtin_sub_overflow(limits->now_ms, limits->timestamp_before_max_ms, &window.first_ms)) {
        window.first_ms = INT64_MIN;
    }
    if (__builtin_add_overflow(limits->now_ms, limits->timestamp_after_max_ms, &window.last_ms)) {
        window.last_ms = INT64_MAX;
    }
    return window;
}

static bool timestamp_in_window(const struct timestamp_window *window, int64_t timestamp_ms)
{
    return !window->checked || timestamp_ms == RECORD_TIMESTAMP_NONE ||
           (timestamp_ms >= window->first_ms && timestamp_ms <= window->last_ms);
}

static enum status timestamp_refuse(int64_t timestamp_ms, struct error *error)
{
    return error_set(error, STATUS_INVALID_TIMESTAMP,
                     "timestamp %lld is outside of what the topic accepts",
                     (long long)timestamp_ms);
}

enum status batch_check_records(struct slice records, const struct batch_header *header,
                                const struct batch_limits *limits, int64_t *max_timestamp_ms,
                                struct batch_fault *fault, struct error *error)
{
    const struct timestamp_window window = timestamp_window(limits);
    int64_t newest_ms = INT64_MIN;
    struct reader reader;
    reader_init(&reader, records.data, records.bytes);
    for (int32_t i = 0; i < header->record_count; i++) {
        struct record_fields record;
        int64_t timestamp_ms;
        fault->record_index = i;
        if (!record_read(&reader, &record) ||
            __builtin_add_overflow(header->base_timestamp_ms, record.timestamp_delta,
                                   &timestamp_ms)) {
            return error_set(error, STATUS_INVALID_RECORD, "record %d is malformed", i);
        }
        if (record.offset_delta != i) {
            return error_set(error, STATUS_INVALID_RECORD, "record %d has offset delta %d", i,
                             record.offset_delta);
        }
        if (limits->compacted && record.key_bytes < 0) {
            return error_set(error, STATUS_INVALID_RECORD,
                             "record %d has no key, and the topic is compacted", i);
        }
        if (!timestamp_in_window(&window, timestamp_ms)) {
            return timestamp_refuse(timestamp_ms, error);
        }
        if (timestamp_ms > newest_ms) newest_ms = timestamp_ms;
    }
    fault->record_index = FAULT_BATCH;
    if (reader_left(&reader) != 0) {
        return error_set(error, STATUS_INVALID_RECORD, "%zu bytes after the last record",
                         reader_left(&reader));
    }
    *max_timestamp_ms = newest_ms;
    return STATUS_OK;
}

enum status batch_unfold_records(struct slice stream, const struct batch_header *header,
                                 struct buffer *out, struct error *error)
{
    enum status status = codec_decompress(header->attributes & BATCH_CODEC_MASK, stream,
                                          RECORD_BYTES_VALIDATE_MAX, out, error);
    if (status == STATUS_OK || status == STATUS_NO_MEMORY) return status;
    if (error != NULL) error->status = STATUS_INVALID_RECORD;
    return STATUS_INVALID_RECORD;
}

static enum status batch_check_compressed(struct slice stream, const struct batch_header *header,
                                          const struct batch_limits *limits,
                                          int64_t *max_timestamp_ms, struct batch_fault *fault,
                                          struct error *error)
{
    struct buffer records;
    buffer_init(&records, 0);
    enum status status = batch_unfold_records(stream, header, &records, error);
    if (status == STATUS_OK) {
        status = batch_check_records(buffer_slice(&records), header, limits, max_timestamp_ms,
                                     fault, error);
    }
    buffer_deinit(&records);
    return status;
}

enum status batch_validate_produced(const uint8_t *data, size_t bytes,
                                    const struct batch_limits *limits, struct batch_header *out,
                                    struct batch_fault *fault, struct error *error)
{
    struct batch_fault ignored;
    if (fault == NULL) fault = &ignored;
    fault->record_index = FAULT_BATCH;

    enum status status = batch_check_shape(data, bytes, limits, out, error);
    if (status == STATUS_OK) status = batch_check_attributes(out, limits, error);
    if (status == STATUS_OK) status = batch_check_numbers(out, limits, error);
    if (status != STATUS_OK) return status;

    /* Looked at whatever the records say: recovery builds the time index from it. */
    const struct timestamp_window window = timestamp_window(limits);
    if (!timestamp_in_window(&window, out->max_timestamp_ms)) {
        return timestamp_refuse(out->max_timestamp_ms, error);
    }
    struct slice payload = {data + BATCH_HEADER_BYTES, bytes - BATCH_HEADER_BYTES};
    if ((out->attributes & BATCH_CODEC_MASK) == CODEC_NONE) {
        return batch_check_records(payload, out, limits, &out->max_timestamp_ms, fault, error);
    }
    if (!limits->compacted) return STATUS_OK;
    return batch_check_compressed(payload, out, limits, &out->max_timestamp_ms, fault, error);
}
