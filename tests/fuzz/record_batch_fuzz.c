/* record_batch_fuzz.c: whatever bytes come, validation and iteration in every codec end without a
 * bad access, and what validation lets through can be iterated.
 *
 * The first byte picks the limits; the CRC and the length are mended, or no input would get past
 * them.                                                                                        */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "record/batch.h"
#include "record/batch_recompress.h"

#define DECOMPRESSED_BYTES_MAX (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t bytes);

static enum status iterate(const uint8_t *data, size_t bytes, int32_t *count)
{
    struct record_iterator iterator;
    struct record record;
    *count = 0;
    enum status status = record_iterator_init(&iterator, data, bytes, DECOMPRESSED_BYTES_MAX, NULL);
    if (status != STATUS_OK) return status;
    while ((status = record_iterator_next(&iterator, &record, NULL)) == STATUS_OK) {
        ASSERT(record.offset >= iterator.header.base_offset);
        ASSERT(record.offset <= batch_last_offset(&iterator.header));
        (*count)++;
    }
    record_iterator_deinit(&iterator);
    return status;
}

static void mend(uint8_t *data, size_t bytes)
{
    store_u32(data + 8, (uint32_t)bytes - 12);
    store_u32(data + 17, crc32c(data + 21, bytes - 21));
}

/* What a topic's compression.type makes of it has the same records. */
static void check_recompressed(const uint8_t *data, size_t bytes, const struct batch_limits *limits)
{
    const struct batch_compression compression = {(enum batch_codec)(bytes % 5), 1};
    struct batch_fault fault;
    struct batch_header before, after;
    struct error error;
    struct buffer out;
    int32_t count;
    buffer_init(&out, 0);
    if (batch_recompress(data, bytes, &compression, limits, &out, &fault, &error) == STATUS_OK) {
        ASSERT(batch_parse(data, bytes, true, &before, &error) == STATUS_OK);
        ASSERT(batch_parse(out.data, out.bytes, true, &after, &error) == STATUS_OK);
        ASSERT(after.batch_bytes == out.bytes && batch_crc_matches(out.data, &after));
        ASSERT((after.attributes & BATCH_CODEC_MASK) == (int)compression.codec);
        enum status status = iterate(out.data, out.bytes, &count);
        ASSERT(status == STATUS_NOT_FOUND || status == STATUS_TOO_LARGE);
        ASSERT(status == STATUS_TOO_LARGE || count == before.record_count);
    } else {
        ASSERT(out.bytes == 0);
    }
    buffer_deinit(&out);
}

static void check_batch(uint8_t *data, size_t bytes, const struct batch_limits *limits)
{
    struct batch_header header;
    struct batch_fault fault;
    struct batch_marker marker;
    struct error error;
    int32_t count;
    enum status validated = batch_validate_produced(data, bytes, limits, &header, &fault, &error);
    enum status iterated = iterate(data, bytes, &count);
    enum batch_codec codec = header.attributes & BATCH_CODEC_MASK;
    if (validated == STATUS_OK && (codec == CODEC_NONE || limits->compacted)) {
        ASSERT(iterated == STATUS_NOT_FOUND || iterated == STATUS_TOO_LARGE);
        ASSERT(iterated == STATUS_TOO_LARGE || count == header.record_count);
    }
    if (batch_read_marker(data, bytes, &marker, &error) == STATUS_OK && validated == STATUS_OK) {
        abort(); /* a client's batch is never a marker */
    }
    if (validated == STATUS_OK) check_recompressed(data, bytes, limits);
    if (validated == STATUS_OK) {
        batch_set_log_append_time(data, 1234567);
        ASSERT(batch_parse(data, bytes, true, &header, &error) == STATUS_OK);
        ASSERT(batch_crc_matches(data, &header));
    }
}

static void check_streams(struct slice in)
{
    for (enum batch_codec codec = CODEC_NONE; codec <= CODEC_ZSTD; codec++) {
        struct buffer out;
        buffer_init(&out, 0);
        enum status status = codec_decompress(codec, in, DECOMPRESSED_BYTES_MAX, &out, NULL);
        ASSERT(out.bytes <= DECOMPRESSED_BYTES_MAX);
        ASSERT(status == STATUS_OK || out.bytes == 0);
        buffer_deinit(&out);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t bytes)
{
    if (bytes == 0) return 0;
    const struct batch_limits limits = {
        .batch_bytes_max = 1u << 20,
        .allow_zstd = true,
        .compacted = (input[0] & 1) != 0,
        .log_append_time = (input[0] & 2) != 0,
        .now_ms = INT64_C(1700000000000),
        .timestamp_before_max_ms = INT64_MAX,
        .timestamp_after_max_ms = INT64_MAX,
    };
    size_t batch_bytes = bytes - 1;
    uint8_t *data = malloc(batch_bytes + 1);
    memcpy(data, input + 1, batch_bytes);
    if (batch_bytes >= BATCH_HEADER_BYTES && (input[0] & 4) == 0) mend(data, batch_bytes);
    struct batch_header header = {0};
    if (batch_parse(data, batch_bytes, true, &header, NULL) == STATUS_OK) {
        check_batch(data, batch_bytes, &limits);
    } else {
        struct error error;
        enum status status =
            batch_validate_produced(data, batch_bytes, &limits, &header, NULL, &error);
        ASSERT(status != STATUS_OK);
    }
    check_streams((struct slice){data, batch_bytes});
    free(data);
    return 0;
}
