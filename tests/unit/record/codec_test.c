/* codec_test.c: streams of other programs, round trips, truncation, bombs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/assert.h"
#include "base/random.h"
#include "record/batch.h"
#include "unit/record/batch_vectors.h"

static const struct {
    enum batch_codec codec;
    const uint8_t *data;
    size_t bytes;
} STREAMS[] = {
    {CODEC_GZIP, STREAM_GZIP_TWO_MEMBERS, sizeof STREAM_GZIP_TWO_MEMBERS},
    {CODEC_ZSTD, STREAM_ZSTD_TWO_FRAMES, sizeof STREAM_ZSTD_TWO_FRAMES},
    {CODEC_SNAPPY, STREAM_SNAPPY_RAW, sizeof STREAM_SNAPPY_RAW},
    {CODEC_SNAPPY, STREAM_SNAPPY_XERIAL, sizeof STREAM_SNAPPY_XERIAL},
    {CODEC_LZ4, STREAM_LZ4_LINKED, sizeof STREAM_LZ4_LINKED},
    {CODEC_LZ4, STREAM_LZ4_TWO_FRAMES, sizeof STREAM_LZ4_TWO_FRAMES},
};
static const enum batch_codec CODECS[] = {CODEC_GZIP, CODEC_SNAPPY, CODEC_LZ4, CODEC_ZSTD};

#define TEXT_LINES      8
#define TEXT_LINE_BYTES 48
#define TEXT_BYTES      ((size_t)TEXT_LINES * TEXT_LINE_BYTES)

static void streams_of_other_programs_are_read(void **state)
{
    (void)state;
    struct buffer expected;
    buffer_init(&expected, 0);
    for (int i = 0; i < TEXT_LINES; i++) {
        buffer_printf(&expected, "line %d of a text that repeats, repeats, repeats\n", i);
    }
    assert_int_equal(expected.bytes, TEXT_BYTES);
    for (size_t i = 0; i < ARRAY_COUNT(STREAMS); i++) {
        struct buffer out;
        buffer_init(&out, 0);
        struct slice in = {STREAMS[i].data, STREAMS[i].bytes};
        assert_int_equal(codec_decompress(STREAMS[i].codec, in, TEXT_BYTES, &out, NULL), STATUS_OK);
        assert_int_equal(out.bytes, TEXT_BYTES);
        assert_memory_equal(out.data, expected.data, TEXT_BYTES);
        buffer_deinit(&out);
    }
    buffer_deinit(&expected);
}

static void stream_over_its_bound_leaves_the_buffer_as_it_was(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(STREAMS); i++) {
        struct slice in = {STREAMS[i].data, STREAMS[i].bytes};
        for (size_t bound = 0; bound < TEXT_BYTES; bound++) {
            struct buffer out;
            buffer_init(&out, 0);
            buffer_put_u8(&out, 0x5a);
            assert_int_equal(codec_decompress(STREAMS[i].codec, in, bound, &out, NULL),
                             STATUS_TOO_LARGE);
            assert_int_equal(out.bytes, 1);
            assert_false(buffer_failed(&out));
            buffer_deinit(&out);
        }
    }
}

/* Where two streams follow each other, the first alone is a whole stream too. */
#define FIRST_STREAM_BYTES 200

static void stream_cut_anywhere_is_corrupt_or_ends_between_two(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(STREAMS); i++) {
        int whole_prefixes = 0;
        for (size_t bytes = 0; bytes < STREAMS[i].bytes; bytes++) {
            uint8_t *cut = malloc(bytes + 1);
            memcpy(cut, STREAMS[i].data, bytes);
            struct buffer out;
            buffer_init(&out, 0);
            enum status status =
                codec_decompress(STREAMS[i].codec, (struct slice){cut, bytes}, 65536, &out, NULL);
            if (status == STATUS_OK) {
                whole_prefixes++;
                assert_true(out.bytes == FIRST_STREAM_BYTES || out.bytes == 0);
            } else {
                assert_int_equal(status, STATUS_CORRUPT);
            }
            buffer_deinit(&out);
            free(cut);
        }
        /* Xerial framing has two: its header alone, and the first block. */
        assert_true(whole_prefixes <= (STREAMS[i].data == STREAM_SNAPPY_XERIAL ? 2 : 1));
    }
}

static void trailing_garbage_is_corrupt(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(STREAMS); i++) {
        uint8_t *data = malloc(STREAMS[i].bytes + 5);
        memcpy(data, STREAMS[i].data, STREAMS[i].bytes);
        memcpy(data + STREAMS[i].bytes, "\x01\x02\x03\x04\x05", 5);
        struct buffer out;
        buffer_init(&out, 0);
        struct slice in = {data, STREAMS[i].bytes + 5};
        assert_int_equal(codec_decompress(STREAMS[i].codec, in, 4096, &out, NULL), STATUS_CORRUPT);
        buffer_deinit(&out);
        free(data);
    }
}

static void empty_xerial_frame_holds_nothing(void **state)
{
    (void)state;
    struct buffer out;
    buffer_init(&out, 0);
    struct slice in = {STREAM_SNAPPY_XERIAL, 16};
    assert_int_equal(codec_decompress(CODEC_SNAPPY, in, 0, &out, NULL), STATUS_OK);
    assert_int_equal(out.bytes, 0);
    buffer_deinit(&out);
}

static void xerial_streams_one_after_the_other_are_read(void **state)
{
    (void)state;
    uint8_t twice[2 * sizeof STREAM_SNAPPY_XERIAL];
    memcpy(twice, STREAM_SNAPPY_XERIAL, sizeof STREAM_SNAPPY_XERIAL);
    memcpy(twice + sizeof STREAM_SNAPPY_XERIAL, STREAM_SNAPPY_XERIAL, sizeof STREAM_SNAPPY_XERIAL);
    struct buffer out;
    buffer_init(&out, 0);
    struct slice in = {twice, sizeof twice};
    assert_int_equal(codec_decompress(CODEC_SNAPPY, in, 4096, &out, NULL), STATUS_OK);
    assert_int_equal(out.bytes, 2 * TEXT_BYTES);
    buffer_deinit(&out);
}

static void snappy_claim_of_much_memory_is_refused_before_it_is_taken(void **state)
{
    (void)state;
    static const uint8_t claim[] = {0xff, 0xff, 0xff, 0x1f, 0x00, 0x41}; /* 64 MiB out of 6 */
    struct buffer out;
    buffer_init(&out, 0);
    struct slice in = {claim, sizeof claim};
    assert_int_equal(codec_decompress(CODEC_SNAPPY, in, 1u << 30, &out, NULL), STATUS_CORRUPT);
    assert_int_equal(out.capacity, 0);
    buffer_deinit(&out);
}

static void bomb_stops_near_its_bound(void **state)
{
    (void)state;
    enum { BOMB_BYTES = 32 << 20, BOUND = 1 << 20 };
    uint8_t *zeros = calloc(1, BOMB_BYTES);
    for (size_t i = 0; i < ARRAY_COUNT(CODECS); i++) {
        struct buffer bomb, out;
        buffer_init(&bomb, 0);
        buffer_init(&out, 0);
        struct slice in = {zeros, BOMB_BYTES};
        assert_int_equal(codec_compress(CODECS[i], in, &bomb, NULL), STATUS_OK);
        assert_int_equal(codec_decompress(CODECS[i], buffer_slice(&bomb), BOUND, &out, NULL),
                         STATUS_TOO_LARGE);
        assert_true(out.capacity <= 4 * BOUND);
        buffer_deinit(&bomb);
        buffer_deinit(&out);
    }
    free(zeros);
}

static void check_round_trip(enum batch_codec codec, struct slice in)
{
    struct buffer packed, out;
    buffer_init(&packed, 0);
    buffer_init(&out, 0);
    buffer_put_u8(&packed, 1); /* both append */
    buffer_put_u8(&out, 2);
    assert_int_equal(codec_compress(codec, in, &packed, NULL), STATUS_OK);
    struct slice stream = {packed.data + 1, packed.bytes - 1};
    assert_int_equal(codec_decompress(codec, stream, in.bytes, &out, NULL), STATUS_OK);
    assert_int_equal(out.bytes, in.bytes + 1);
    assert_memory_equal(out.data + 1, in.data, in.bytes);
    buffer_deinit(&packed);
    buffer_deinit(&out);
}

static void every_codec_gives_back_what_it_took(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 100, 4095, 4096, 4097, 32768, 32769, 65537, 1000000};
    struct random random;
    random_seed(&random, 3);
    uint8_t *data = malloc(1000000);
    for (int compressible = 0; compressible < 2; compressible++) {
        random_bytes(&random, data, 1000000);
        for (size_t i = 0; compressible && i < 1000000; i++) {
            data[i] &= 3;
        }
        for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) {
            check_round_trip(CODEC_NONE, (struct slice){data, sizes[i]});
            for (size_t c = 0; c < ARRAY_COUNT(CODECS); c++) {
                check_round_trip(CODECS[c], (struct slice){data, sizes[i]});
            }
        }
    }
    free(data);
}

static void written_lz4_has_independent_blocks_and_no_content_size(void **state)
{
    (void)state;
    struct buffer out;
    buffer_init(&out, 0);
    struct slice in = {STREAM_LZ4_LINKED, sizeof STREAM_LZ4_LINKED};
    assert_int_equal(codec_compress(CODEC_LZ4, in, &out, NULL), STATUS_OK);
    static const uint8_t magic[] = {0x04, 0x22, 0x4d, 0x18};
    assert_memory_equal(out.data, magic, sizeof magic);
    /* FLG: version 01, block independence 1, block checksum, content size, content checksum,
     * reserved, dictionary id 0. */
    assert_int_equal(out.data[4], 0x60);
    buffer_deinit(&out);
}

static void written_snappy_is_framed(void **state)
{
    (void)state;
    struct buffer out;
    buffer_init(&out, 0);
    struct slice in = {STREAM_LZ4_LINKED, sizeof STREAM_LZ4_LINKED};
    assert_int_equal(codec_compress(CODEC_SNAPPY, in, &out, NULL), STATUS_OK);
    assert_memory_equal(out.data, STREAM_SNAPPY_XERIAL, 16);
    buffer_deinit(&out);
}

/* Text in which there is something to find: words of two letters. */
static void fill_text(uint8_t *data, size_t bytes)
{
    struct random random;
    random_seed(&random, 5);
    for (size_t i = 0; i < bytes; i++) {
        data[i] = (uint8_t)("aeinrst "[random_below(&random, 8)]);
    }
}

static void every_level_is_read_and_a_higher_one_packs_tighter(void **state)
{
    (void)state;
    static const struct {
        enum batch_codec codec;
        int low, high;
    } rows[] = {{CODEC_GZIP, 1, 9}, {CODEC_LZ4, 1, 12}, {CODEC_ZSTD, 1, 19}, {CODEC_ZSTD, -50, 1}};
    static const int others[][2] = {
        {CODEC_GZIP, -1}, {CODEC_LZ4, 9}, {CODEC_LZ4, 17}, {CODEC_ZSTD, -131072}, {CODEC_ZSTD, 22}};
    enum { BYTES = 200000 };
    uint8_t *data = malloc(BYTES);
    fill_text(data, BYTES);
    struct slice in = {data, BYTES};
    struct buffer low, high, out;
    buffer_init(&low, 0);
    buffer_init(&high, 0);
    buffer_init(&out, 0);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        buffer_clear(&low);
        buffer_clear(&high);
        assert_int_equal(codec_compress_at(rows[i].codec, rows[i].low, in, &low, NULL), STATUS_OK);
        assert_int_equal(codec_compress_at(rows[i].codec, rows[i].high, in, &high, NULL),
                         STATUS_OK);
        assert_true(high.bytes < low.bytes);
    }
    for (size_t i = 0; i < ARRAY_COUNT(others); i++) {
        enum batch_codec codec = (enum batch_codec)others[i][0];
        buffer_clear(&low);
        buffer_clear(&out);
        assert_int_equal(codec_compress_at(codec, others[i][1], in, &low, NULL), STATUS_OK);
        assert_int_equal(codec_decompress(codec, buffer_slice(&low), BYTES, &out, NULL), STATUS_OK);
        assert_memory_equal(out.data, data, BYTES);
    }
    buffer_deinit(&low);
    buffer_deinit(&high);
    buffer_deinit(&out);
    free(data);
}

static void unknown_codecs_are_unsupported(void **state)
{
    (void)state;
    struct buffer out;
    buffer_init(&out, 0);
    struct slice in = {STREAM_SNAPPY_RAW, sizeof STREAM_SNAPPY_RAW};
    for (int codec = 5; codec < 8; codec++) {
        assert_int_equal(codec_decompress((enum batch_codec)codec, in, 4096, &out, NULL),
                         STATUS_UNSUPPORTED_COMPRESSION);
        assert_int_equal(codec_compress((enum batch_codec)codec, in, &out, NULL),
                         STATUS_UNSUPPORTED_COMPRESSION);
    }
    buffer_deinit(&out);
}

static void bounded_buffer_bounds_both_ways(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(STREAMS); i++) {
        struct buffer out;
        buffer_init(&out, 100);
        struct slice in = {STREAMS[i].data, STREAMS[i].bytes};
        assert_int_not_equal(codec_decompress(STREAMS[i].codec, in, 4096, &out, NULL), STATUS_OK);
        assert_true(out.capacity <= 100);
        buffer_deinit(&out);
    }
    for (size_t i = 0; i < ARRAY_COUNT(CODECS); i++) {
        struct buffer out;
        buffer_init(&out, 10);
        struct slice in = {STREAM_LZ4_LINKED, sizeof STREAM_LZ4_LINKED};
        assert_int_equal(codec_compress(CODECS[i], in, &out, NULL), STATUS_NO_MEMORY);
        assert_int_equal(out.bytes, 0);
        buffer_deinit(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_of_other_programs_are_read),
        cmocka_unit_test(stream_over_its_bound_leaves_the_buffer_as_it_was),
        cmocka_unit_test(stream_cut_anywhere_is_corrupt_or_ends_between_two),
        cmocka_unit_test(trailing_garbage_is_corrupt),
        cmocka_unit_test(empty_xerial_frame_holds_nothing),
        cmocka_unit_test(xerial_streams_one_after_the_other_are_read),
        cmocka_unit_test(snappy_claim_of_much_memory_is_refused_before_it_is_taken),
        cmocka_unit_test(bomb_stops_near_its_bound),
        cmocka_unit_test(every_codec_gives_back_what_it_took),
        cmocka_unit_test(written_lz4_has_independent_blocks_and_no_content_size),
        cmocka_unit_test(written_snappy_is_framed),
        cmocka_unit_test(every_level_is_read_and_a_higher_one_packs_tighter),
        cmocka_unit_test(unknown_codecs_are_unsupported),
        cmocka_unit_test(bounded_buffer_bounds_both_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
