/* batch.h: RecordBatch v2 (Kafka magic 2): header access, validation, iteration, building.
 *
 * Layout and rules: kafka-listener.md section 3; KIP-98. All functions are pure. A batch is kept as
 * its producer sent it; only base offset and partition leader epoch are filled in, neither of
 * which is under the CRC.                                                                      */
#ifndef MOONMQ_RECORD_BATCH_H
#define MOONMQ_RECORD_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/reader.h"
#include "base/status.h"

#define BATCH_HEADER_BYTES 61
#define BATCH_BYTES_MAX    104857600u /* what any replica accepts, whatever its own limits */

enum batch_codec { CODEC_NONE, CODEC_GZIP, CODEC_SNAPPY, CODEC_LZ4, CODEC_ZSTD };
enum batch_attributes {
    BATCH_CODEC_MASK = 0x07,
    BATCH_LOG_APPEND_TIME = 0x08,
    BATCH_TRANSACTIONAL = 0x10,
    BATCH_CONTROL = 0x20,
    BATCH_DELETE_HORIZON = 0x40,
};

/* The header, decoded. */
struct batch_header {
    int64_t base_offset;
    uint32_t batch_bytes; /* whole batch: the length field + 12 */
    int32_t leader_epoch;
    uint32_t crc;
    int16_t attributes;
    int32_t last_offset_delta; /* last offset = base_offset + this */
    int64_t base_timestamp_ms;
    int64_t max_timestamp_ms;
    int64_t producer_id; /* -1: none */
    int16_t producer_epoch;
    int32_t base_sequence;
    int32_t record_count;
};

static inline int64_t batch_last_offset(const struct batch_header *header)
{
    return header->base_offset + header->last_offset_delta;
}
/* After 2^31-1 comes 0. */
int32_t batch_last_sequence(const struct batch_header *header);

/* Decodes a header from `bytes` available bytes and checks its shape: magic 2, length 61 ..
 * BATCH_BYTES_MAX, non-negative delta. Does not look at the CRC.
 * STATUS_AGAIN: fewer bytes there than the header or (with `whole`) than the batch needs.
 * STATUS_CORRUPT: anything else. */
STATUS_MUST_CHECK
enum status batch_parse(const uint8_t *data, size_t bytes, bool whole, struct batch_header *out,
                        struct error *error);

/* Does the CRC over byte 21 to the end match? `data` holds a whole batch. */
bool batch_crc_matches(const uint8_t *data, const struct batch_header *header);

/* In place, before the batch is shared. */
void batch_set_base_offset(uint8_t *data, int64_t base_offset);
void batch_set_leader_epoch(uint8_t *data, int32_t leader_epoch);
/* Sets bit 3 and max timestamp and mends the CRC without re-reading the payload. */
void batch_set_log_append_time(uint8_t *data, int64_t timestamp_ms);
/* Makes the batch a plain one (not of a transaction) of that producer, and mends the CRC likewise.
 */
void batch_set_producer(uint8_t *data, int64_t producer_id, int16_t producer_epoch,
                        int32_t base_sequence);

/* What a produce must satisfy (kafka-listener.md 3.5). */
struct batch_limits {
    uint32_t batch_bytes_max; /* max.message.bytes */
    bool compacted;           /* null keys are refused */
    bool log_append_time;     /* timestamps are not checked */
    bool allow_zstd;
    bool allow_unsequenced; /* a producer id without sequences: a coordinator's own batch */
    int64_t now_ms;
    int64_t timestamp_before_max_ms;
    int64_t timestamp_after_max_ms;
};
/* A record at fault, for Kafka's record_errors; index -1: the batch as a whole. */
struct batch_fault {
    int32_t record_index;
};
/* Checks one produced batch whole: header, CRC, records (compressed ones are decompressed only if
 * `compacted`, with the output bounded). On success *out holds the header, with max_timestamp_ms
 * the true maximum. Errors: CORRUPT, TOO_LARGE, INVALID_RECORD, INVALID_TIMESTAMP,
 * UNSUPPORTED_COMPRESSION. */
STATUS_MUST_CHECK
enum status batch_validate_produced(const uint8_t *data, size_t bytes,
                                    const struct batch_limits *limits, struct batch_header *out,
                                    struct batch_fault *fault, struct error *error);

/* One record, borrowed from the batch (or from the iterator's decompressed bytes). */
struct record {
    int64_t offset;
    int64_t timestamp_ms;    /* max timestamp of the batch under log append time */
    bool has_key, has_value; /* false: null */
    struct slice key, value;
    int32_t header_count;
    struct slice headers; /* encoded: header_count × (varint key, varint value) */
};

/* Iterates the records of a whole batch; decompresses at most `decompressed_bytes_max`. */
struct record_iterator {
    struct batch_header header;
    struct reader reader;
    struct buffer decompressed;
    int32_t next;           /* index of the record to come */
    int32_t previous_delta; /* offset delta of the last one; offsets rise strictly */
};
STATUS_MUST_CHECK
enum status record_iterator_init(struct record_iterator *iterator, const uint8_t *data,
                                 size_t bytes, size_t decompressed_bytes_max, struct error *error);
/* STATUS_OK with *out filled; STATUS_NOT_FOUND at the end; CORRUPT. */
STATUS_MUST_CHECK
enum status record_iterator_next(struct record_iterator *iterator, struct record *out,
                                 struct error *error);
void record_iterator_deinit(struct record_iterator *iterator);

/* Builds one batch record by record. */
struct batch_builder {
    struct buffer records;
    int64_t base_timestamp_ms, max_timestamp_ms;
    int32_t record_count;
};
struct batch_build_options {
    int64_t base_offset;
    int32_t leader_epoch;
    enum batch_codec codec;
    bool transactional, control;
    int64_t producer_id; /* -1: none */
    int16_t producer_epoch;
    int32_t base_sequence;
};
#define BATCH_BUILD_PLAIN                                                                \
    (struct batch_build_options)                                                         \
    {                                                                                    \
        .leader_epoch = -1, .producer_id = -1, .producer_epoch = -1, .base_sequence = -1 \
    }
void batch_builder_init(struct batch_builder *builder);
void batch_builder_deinit(struct batch_builder *builder);
/* key/value NULL data = null. `headers` is encoded as in struct record, NULL data = none. */
void batch_builder_add(struct batch_builder *builder, int64_t timestamp_ms, struct slice key,
                       struct slice value, int32_t header_count, struct slice headers);
size_t batch_builder_bytes(const struct batch_builder *builder); /* uncompressed, with header */
/* Appends the finished batch to `out` and empties the builder. */
STATUS_MUST_CHECK
enum status batch_builder_finish(struct batch_builder *builder,
                                 const struct batch_build_options *options, struct buffer *out,
                                 struct error *error);

/* An end-transaction marker (kafka-listener.md 3.3), appended to `out`. */
void batch_build_marker(struct buffer *out, int64_t producer_id, int16_t producer_epoch,
                        bool commit, int32_t coordinator_epoch, int64_t timestamp_ms,
                        int32_t leader_epoch);

/* What an end-transaction marker says. */
struct batch_marker {
    bool commit;
    int32_t coordinator_epoch;
};
/* Reads the marker out of a whole control batch. STATUS_NOT_FOUND: a control record of another kind
 * (nothing to do with transactions); STATUS_CORRUPT. */
STATUS_MUST_CHECK
enum status batch_read_marker(const uint8_t *data, size_t bytes, struct batch_marker *out,
                              struct error *error);

/* Codecs (3.4): snappy accepts raw and xerial framing; output is bounded. */
STATUS_MUST_CHECK
enum status codec_decompress(enum batch_codec codec, struct slice in, size_t bytes_max,
                             struct buffer *out, struct error *error);
STATUS_MUST_CHECK
enum status codec_compress(enum batch_codec codec, struct slice in, struct buffer *out,
                           struct error *error);
/* The same at a level of Kafka's: gzip 1 to 9, lz4 1 to 17, zstd down to -131072 and up to 22, or
 * the codec's default. As in Kafka lz4's default is its fast kind, not the ninth of its levels.
 * Snappy has none. */
#define CODEC_GZIP_LEVEL_DEFAULT (-1)
#define CODEC_LZ4_LEVEL_DEFAULT  9
#define CODEC_ZSTD_LEVEL_DEFAULT 3
STATUS_MUST_CHECK
enum status codec_compress_at(enum batch_codec codec, int level, struct slice in,
                              struct buffer *out, struct error *error);

#endif
