/* codec_snappy.c: raw snappy blocks, and the framing of snappy-java ("xerial"): a magic, two
 * version numbers, then blocks, each behind its length. Both are read; the framing is written,
 * because every Kafka client reads it. */
#include "record/codec_stream.h"

#include <snappy-c.h>
#include <string.h>

#include "base/reader.h"

#define SNAPPY_NAME       "snappy"
#define FRAME_MAGIC_BYTES 8
#define FRAME_VERSION     1
#define FRAME_BLOCK_BYTES 32768
/* The densest element, a copy of 64 bytes, takes three: no block unfolds further than this. */
#define SNAPPY_EXPANSION_MAX 32

static const uint8_t FRAME_MAGIC[FRAME_MAGIC_BYTES] = {0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0};

static bool at_frame_magic(const struct reader *reader)
{
    return reader_left(reader) >= FRAME_MAGIC_BYTES &&
           memcmp(reader->data + reader->at, FRAME_MAGIC, FRAME_MAGIC_BYTES) == 0;
}

static enum status decompress_block(struct slice block, struct codec_output *output,
                                    struct error *error)
{
    const char *data = (const char *)block.data;
    size_t bytes;
    if (snappy_uncompressed_length(data, block.bytes, &bytes) != SNAPPY_OK) {
        return codec_corrupt(SNAPPY_NAME, "malformed block length", error);
    }
    size_t produced = output->buffer->bytes - output->start;
    if (bytes > output->bytes_max - produced) {
        return error_set(error, STATUS_TOO_LARGE, "decompresses to more than %zu bytes",
                         output->bytes_max);
    }
    /* Before the memory is taken: the length is only a claim. */
    if (bytes > block.bytes * SNAPPY_EXPANSION_MAX) {
        return codec_corrupt(SNAPPY_NAME, "a block claims more than it can hold", error);
    }
    uint8_t *at = buffer_extend(output->buffer, bytes);
    if (at == NULL) return codec_no_memory(SNAPPY_NAME, error);
    if (snappy_uncompress(data, block.bytes, (char *)at, &bytes) != SNAPPY_OK) {
        return codec_corrupt(SNAPPY_NAME, "malformed block", error);
    }
    return STATUS_OK;
}

static enum status decompress_frame(struct reader *reader, struct codec_output *output,
                                    struct error *error)
{
    while (reader_left(reader) > 0) {
        /* Streams that were written one after the other begin anew in the middle. */
        if (at_frame_magic(reader)) {
            reader_skip(reader, FRAME_MAGIC_BYTES);
            reader_skip(reader, sizeof(uint32_t)); /* version of the writer */
            if (reader_i32(reader) > FRAME_VERSION) {
                return codec_corrupt(SNAPPY_NAME, "framing of a later version", error);
            }
        } else {
            struct slice block = reader_bytes(reader, reader_u32(reader));
            if (reader_failed(reader)) break;
            enum status status = decompress_block(block, output, error);
            if (status != STATUS_OK) return status;
        }
    }
    return reader_failed(reader) ? codec_corrupt(SNAPPY_NAME, "cut short", error) : STATUS_OK;
}

enum status snappy_decompress(struct slice in, struct codec_output *output, struct error *error)
{
    struct reader reader;
    reader_init(&reader, in.data, in.bytes);
    if (at_frame_magic(&reader)) return decompress_frame(&reader, output, error);
    return decompress_block(in, output, error);
}

static enum status put_block(struct slice block, struct buffer *out, struct error *error)
{
    size_t length_at = out->bytes;
    size_t bytes = snappy_max_compressed_length(block.bytes);
    buffer_put_u32(out, 0);
    uint8_t *at = buffer_extend(out, bytes);
    if (at == NULL) return codec_no_memory(SNAPPY_NAME, error);
    size_t room = bytes;
    if (snappy_compress((const char *)block.data, block.bytes, (char *)at, &bytes) != SNAPPY_OK) {
        return codec_corrupt(SNAPPY_NAME, "output over its bound", error);
    }
    out->bytes -= room - bytes;
    buffer_set_u32(out, length_at, (uint32_t)bytes);
    return STATUS_OK;
}

enum status snappy_compress_framed(struct slice in, struct buffer *out, struct error *error)
{
    buffer_put(out, FRAME_MAGIC, FRAME_MAGIC_BYTES);
    buffer_put_i32(out, FRAME_VERSION);
    buffer_put_i32(out, FRAME_VERSION);
    for (size_t at = 0; at < in.bytes; at += FRAME_BLOCK_BYTES) {
        size_t left = in.bytes - at;
        struct slice block = {in.data + at, left < FRAME_BLOCK_BYTES ? left : FRAME_BLOCK_BYTES};
        enum status status = put_block(block, out, error);
        if (status != STATUS_OK) return status;
    }
    return buffer_failed(out) ? codec_no_memory(SNAPPY_NAME, error) : STATUS_OK;
}
