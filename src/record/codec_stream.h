/* codec_stream.h: the four codecs behind codec.c, and the bounded output that they write to.
 * Private to record/.                                                                          */
#ifndef MOONMQ_RECORD_CODEC_STREAM_H
#define MOONMQ_RECORD_CODEC_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/status.h"

/* Where decompressed bytes go. One byte over the bound may be written before it is noticed: a
 * stream that ends exactly at the bound still has its trailer to read. */
struct codec_output {
    struct buffer *buffer;
    size_t start;     /* buffer->bytes at the beginning */
    size_t bytes_max; /* bound on what is produced */
};

/* Room for at least one byte: *at, *room bytes. Grows with what was produced so far, never with
 * what a header promises. TOO_LARGE over the bound, NO_MEMORY. */
STATUS_MUST_CHECK
enum status codec_output_room(struct codec_output *output, uint8_t **at, size_t *room,
                              struct error *error);
/* `bytes` of the room were filled. */
void codec_output_advance(struct codec_output *output, size_t bytes);
/* Is what was produced within the bound? To be asked at the end of the stream. */
STATUS_MUST_CHECK
enum status codec_output_finish(const struct codec_output *output, struct error *error);

STATUS_MUST_CHECK
enum status gzip_decompress(struct slice in, struct codec_output *output, struct error *error);
STATUS_MUST_CHECK
enum status snappy_decompress(struct slice in, struct codec_output *output, struct error *error);
STATUS_MUST_CHECK
enum status lz4_decompress(struct slice in, struct codec_output *output, struct error *error);
STATUS_MUST_CHECK
enum status zstd_decompress(struct slice in, struct codec_output *output, struct error *error);

/* Each appends one complete stream to `out`. */
STATUS_MUST_CHECK
enum status gzip_compress(struct slice in, int level, struct buffer *out, struct error *error);
STATUS_MUST_CHECK
enum status snappy_compress_framed(struct slice in, struct buffer *out, struct error *error);
STATUS_MUST_CHECK
enum status lz4_compress(struct slice in, int level, struct buffer *out, struct error *error);
STATUS_MUST_CHECK
enum status zstd_compress(struct slice in, int level, struct buffer *out, struct error *error);

/* What every codec says when memory is out, and when its stream is bad. */
enum status codec_no_memory(const char *codec, struct error *error);
enum status codec_corrupt(const char *codec, const char *what, struct error *error);

#endif
