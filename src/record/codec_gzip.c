/* codec_gzip.c: RFC 1952 through zlib; a stream may have several members. */
#include "record/batch.h"
#include "record/codec_stream.h"

#include <zlib.h>

_Static_assert(CODEC_GZIP_LEVEL_DEFAULT == Z_DEFAULT_COMPRESSION, "the library's own");

#define GZIP_NAME        "gzip"
#define GZIP_WINDOW_BITS (15 + 16) /* the largest window; + 16: gzip, not zlib, framing */
#define GZIP_MEMORY      8         /* zlib's default */

static enum status gzip_inflate_all(z_stream *stream, struct codec_output *output,
                                    struct error *error)
{
    for (;;) {
        size_t room;
        enum status status = codec_output_room(output, &stream->next_out, &room, error);
        if (status != STATUS_OK) return status;
        /* Room is bounded by what was produced, so it fits; a cut here would only be a detour. */
        uInt offered = room < UINT32_MAX ? (uInt)room : UINT32_MAX;
        stream->avail_out = offered;
        int result = inflate(stream, Z_NO_FLUSH);
        codec_output_advance(output, offered - stream->avail_out);
        if (result == Z_STREAM_END) {
            if (stream->avail_in == 0) return STATUS_OK;
            if (inflateReset(stream) != Z_OK) return codec_corrupt(GZIP_NAME, "reset", error);
        } else if (result == Z_MEM_ERROR) {
            return codec_no_memory(GZIP_NAME, error);
        } else if (result == Z_BUF_ERROR && stream->avail_out != 0) {
            return codec_corrupt(GZIP_NAME, "cut short", error);
        } else if (result != Z_OK && result != Z_BUF_ERROR) {
            return codec_corrupt(GZIP_NAME, "malformed", error);
        }
    }
}

enum status gzip_decompress(struct slice in, struct codec_output *output, struct error *error)
{
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)in.data, .avail_in = (uInt)in.bytes};
    if (inflateInit2(&stream, GZIP_WINDOW_BITS) != Z_OK) return codec_no_memory(GZIP_NAME, error);
    enum status status = gzip_inflate_all(&stream, output, error);
    inflateEnd(&stream);
    return status;
}

enum status gzip_compress(struct slice in, int level, struct buffer *out, struct error *error)
{
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)in.data, .avail_in = (uInt)in.bytes};
    if (deflateInit2(&stream, level, Z_DEFLATED, GZIP_WINDOW_BITS, GZIP_MEMORY,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        return codec_no_memory(GZIP_NAME, error);
    }
    enum status status = STATUS_OK;
    uLong bound = deflateBound(&stream, (uLong)in.bytes);
    uint8_t *at = buffer_extend(out, bound);
    if (at == NULL) {
        status = codec_no_memory(GZIP_NAME, error);
        goto out;
    }
    stream.next_out = at;
    stream.avail_out = (uInt)bound;
    if (deflate(&stream, Z_FINISH) != Z_STREAM_END) {
        status = codec_corrupt(GZIP_NAME, "output over its bound", error);
        goto out;
    }
    out->bytes -= stream.avail_out;
out:
    deflateEnd(&stream);
    return status;
}
