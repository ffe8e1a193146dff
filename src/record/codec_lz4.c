/* codec_lz4.c: the LZ4 frame format. Written frames have independent blocks and a header without
 * content size, the only kind that every reader of Kafka's takes; any kind is read.            */
#include "record/batch.h"
#include "record/codec_stream.h"

#include <lz4frame.h>

#define LZ4_NAME "lz4"

static enum status lz4_decompress_all(LZ4F_dctx *context, struct slice in,
                                      struct codec_output *output, struct error *error)
{
    size_t consumed = 0;
    for (;;) {
        uint8_t *at;
        size_t room;
        enum status status = codec_output_room(output, &at, &room, error);
        if (status != STATUS_OK) return status;
        size_t taken = in.bytes - consumed;
        size_t made = room;
        size_t hint = LZ4F_decompress(context, at, &made, in.data + consumed, &taken, NULL);
        if (LZ4F_isError(hint)) {
            return codec_corrupt(LZ4_NAME, LZ4F_getErrorName(hint), error);
        }
        consumed += taken;
        codec_output_advance(output, made);
        if (consumed == in.bytes) {
            if (hint == 0) return STATUS_OK;
            if (made < room) return codec_corrupt(LZ4_NAME, "cut short", error);
        }
    }
}

enum status lz4_decompress(struct slice in, struct codec_output *output, struct error *error)
{
    if (in.bytes == 0) return codec_corrupt(LZ4_NAME, "cut short", error);
    LZ4F_dctx *context;
    if (LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION))) {
        return codec_no_memory(LZ4_NAME, error);
    }
    enum status status = lz4_decompress_all(context, in, output, error);
    LZ4F_freeDecompressionContext(context);
    return status;
}

enum status lz4_compress(struct slice in, int level, struct buffer *out, struct error *error)
{
    const LZ4F_preferences_t preferences = {
        .frameInfo = {.blockSizeID = LZ4F_max64KB, .blockMode = LZ4F_blockIndependent},
        .compressionLevel = level == CODEC_LZ4_LEVEL_DEFAULT ? 0 : level,
    };
    size_t bound = LZ4F_compressFrameBound(in.bytes, &preferences);
    uint8_t *at = buffer_extend(out, bound);
    if (at == NULL) return codec_no_memory(LZ4_NAME, error);
    size_t bytes = LZ4F_compressFrame(at, bound, in.data, in.bytes, &preferences);
    if (LZ4F_isError(bytes)) return codec_no_memory(LZ4_NAME, error);
    out->bytes -= bound - bytes;
    return STATUS_OK;
}
