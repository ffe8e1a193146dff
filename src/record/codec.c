/* codec.c: picks the codec, and bounds what it produces.
 *
 * Whatever fails, `out` ends where it ended before. Source: kafka-listener.md 3.4.             */
#include "record/batch.h"
#include "record/codec_stream.h"

#include <stdint.h>

#define CODEC_ROOM_BYTES_MIN 4096
/* The libraries count in int or uint32_t; nothing near it is ever passed. */
#define CODEC_INPUT_BYTES_MAX ((size_t)INT32_MAX / 2)

enum status codec_no_memory(const char *codec, struct error *error)
{
    return error_set(error, STATUS_NO_MEMORY, "%s: out of memory", codec);
}

enum status codec_corrupt(const char *codec, const char *what, struct error *error)
{
    return error_set(error, STATUS_CORRUPT, "%s: %s", codec, what);
}

static enum status output_too_large(const struct codec_output *output, struct error *error)
{
    return error_set(error, STATUS_TOO_LARGE, "decompresses to more than %zu bytes",
                     output->bytes_max);
}

enum status codec_output_room(struct codec_output *output, uint8_t **at, size_t *room,
                              struct error *error)
{
    struct buffer *buffer = output->buffer;
    size_t produced = buffer->bytes - output->start;
    if (produced > output->bytes_max) return output_too_large(output, error);
    size_t left = output->bytes_max - produced + 1;
    if (buffer->capacity == buffer->bytes) {
        size_t wish = produced < CODEC_ROOM_BYTES_MIN ? CODEC_ROOM_BYTES_MIN : produced;
        if (wish > left) wish = left;
        if (buffer->bytes_max != 0 && wish > buffer->bytes_max - buffer->bytes) {
            wish = buffer->bytes_max - buffer->bytes;
            if (wish == 0) return output_too_large(output, error);
        }
        if (buffer_extend(buffer, wish) == NULL) return codec_no_memory("codec", error);
        buffer->bytes -= wish;
    }
    *at = buffer->data + buffer->bytes;
    *room = buffer->capacity - buffer->bytes;
    if (*room > left) *room = left;
    return STATUS_OK;
}

void codec_output_advance(struct codec_output *output, size_t bytes)
{
    output->buffer->bytes += bytes;
}

enum status codec_output_finish(const struct codec_output *output, struct error *error)
{
    if (output->buffer->bytes - output->start > output->bytes_max) {
        return output_too_large(output, error);
    }
    return STATUS_OK;
}

static enum status codec_unknown(enum batch_codec codec, struct error *error)
{
    return error_set(error, STATUS_UNSUPPORTED_COMPRESSION, "compression codec %d is unknown",
                     (int)codec);
}

static enum status copy_plain(struct slice in, size_t bytes_max, struct buffer *out,
                              struct error *error)
{
    if (in.bytes > bytes_max) {
        return error_set(error, STATUS_TOO_LARGE, "%zu bytes, at most %zu", in.bytes, bytes_max);
    }
    buffer_put(out, in.data, in.bytes);
    return buffer_failed(out) ? codec_no_memory("copy", error) : STATUS_OK;
}

enum status codec_decompress(enum batch_codec codec, struct slice in, size_t bytes_max,
                             struct buffer *out, struct error *error)
{
    if (in.bytes > CODEC_INPUT_BYTES_MAX) {
        return error_set(error, STATUS_TOO_LARGE, "%zu bytes to decompress", in.bytes);
    }
    struct codec_output output = {
        .buffer = out,
        .start = out->bytes,
        .bytes_max = bytes_max < SIZE_MAX / 4 ? bytes_max : SIZE_MAX / 4,
    };
    enum status status = STATUS_OK;
    switch (codec) {
    case CODEC_NONE: status = copy_plain(in, bytes_max, out, error); break;
    case CODEC_GZIP: status = gzip_decompress(in, &output, error); break;
    case CODEC_SNAPPY: status = snappy_decompress(in, &output, error); break;
    case CODEC_LZ4: status = lz4_decompress(in, &output, error); break;
    case CODEC_ZSTD: status = zstd_decompress(in, &output, error); break;
    default: status = codec_unknown(codec, error); break;
    }
    if (status == STATUS_OK) status = codec_output_finish(&output, error);
    if (status != STATUS_OK) out->bytes = output.start;
    return status;
}

static int default_level(enum batch_codec codec)
{
    switch (codec) {
    case CODEC_GZIP: return CODEC_GZIP_LEVEL_DEFAULT;
    case CODEC_LZ4: return CODEC_LZ4_LEVEL_DEFAULT;
    case CODEC_ZSTD: return CODEC_ZSTD_LEVEL_DEFAULT;
    default: return 0;
    }
}

enum status codec_compress(enum batch_codec codec, struct slice in, struct buffer *out,
                           struct error *error)
{
    return codec_compress_at(codec, default_level(codec), in, out, error);
}

enum status codec_compress_at(enum batch_codec codec, int level, struct slice in,
                              struct buffer *out, struct error *error)
{
    if (in.bytes > CODEC_INPUT_BYTES_MAX) {
        return error_set(error, STATUS_TOO_LARGE, "%zu bytes to compress", in.bytes);
    }
    size_t start = out->bytes;
    enum status status = STATUS_OK;
    switch (codec) {
    case CODEC_NONE: status = copy_plain(in, SIZE_MAX, out, error); break;
    case CODEC_GZIP: status = gzip_compress(in, level, out, error); break;
    case CODEC_SNAPPY: status = snappy_compress_framed(in, out, error); break;
    case CODEC_LZ4: status = lz4_compress(in, level, out, error); break;
    case CODEC_ZSTD: status = zstd_compress(in, level, out, error); break;
    default: status = codec_unknown(codec, error); break;
    }
    if (status != STATUS_OK) out->bytes = start;
    return status;
}
