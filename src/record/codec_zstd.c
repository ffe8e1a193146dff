/* codec_zstd.c: one or more zstd frames, with or without content size. */
#include "record/codec_stream.h"

#include <zstd.h>
#include <zstd_errors.h>

#define ZSTD_NAME "zstd"
/* 128 MiB, what level 22 without a known size asks for: the largest that clients send. */
#define ZSTD_WINDOW_LOG_MAX 27

static enum status zstd_failed(size_t result, struct error *error)
{
    if (ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation) {
        return codec_no_memory(ZSTD_NAME, error);
    }
    return codec_corrupt(ZSTD_NAME, ZSTD_getErrorName(result), error);
}

static enum status zstd_decompress_all(ZSTD_DCtx *context, struct slice in,
                                       struct codec_output *output, struct error *error)
{
    size_t result = ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG_MAX);
    if (ZSTD_isError(result)) return zstd_failed(result, error);
    ZSTD_inBuffer input = {in.data, in.bytes, 0};
    for (;;) {
        uint8_t *at;
        size_t room;
        enum status status = codec_output_room(output, &at, &room, error);
        if (status != STATUS_OK) return status;
        ZSTD_outBuffer made = {at, room, 0};
        /* 0: a frame ended and all of it was handed out. */
        result = ZSTD_decompressStream(context, &made, &input);
        if (ZSTD_isError(result)) return zstd_failed(result, error);
        codec_output_advance(output, made.pos);
        if (input.pos == input.size) {
            if (result == 0) return STATUS_OK;
            if (made.pos < made.size) return codec_corrupt(ZSTD_NAME, "cut short", error);
        }
    }
}

enum status zstd_decompress(struct slice in, struct codec_output *output, struct error *error)
{
    ZSTD_DCtx *context = ZSTD_createDCtx();
    if (context == NULL) return codec_no_memory(ZSTD_NAME, error);
    enum status status = zstd_decompress_all(context, in, output, error);
    ZSTD_freeDCtx(context);
    return status;
}

enum status zstd_compress(struct slice in, int level, struct buffer *out, struct error *error)
{
    size_t bound = ZSTD_compressBound(in.bytes);
    uint8_t *at = buffer_extend(out, bound);
    if (at == NULL) return codec_no_memory(ZSTD_NAME, error);
    size_t bytes = ZSTD_compress(at, bound, in.data, in.bytes, level);
    if (ZSTD_isError(bytes)) return zstd_failed(bytes, error);
    out->bytes -= bound - bytes;
    return STATUS_OK;
}
