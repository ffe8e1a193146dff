/* batch_builder_test.c: batches that we build, byte for byte against a client's, and read back. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/assert.h"
#include "record/batch.h"
#include "unit/record/batch_vectors.h"

#define SLICE(text) ((struct slice){(const uint8_t *)(text), sizeof(text) - 1})
#define NONE        ((struct slice){NULL, 0})

/* The five records of the KAFKA_PYTHON_* vectors. */
static void add_vector_records(struct batch_builder *builder)
{
    uint8_t long_key[70], long_value[240];
    memset(long_key, 'k', sizeof long_key);
    for (size_t i = 0; i < sizeof long_value; i += 12) {
        memcpy(long_value + i, "lorem ipsum ", 12);
    }
    batch_builder_add(builder, VECTOR_TIME_MS, SLICE("a"),
                      SLICE("first value first value first value"), 0, NONE);
    batch_builder_add(builder, VECTOR_TIME_MS + 1500, NONE, SLICE("null key"), 2,
                      SLICE("\x04h1\x02x\x04h2\x01"));
    batch_builder_add(builder, VECTOR_TIME_MS - 250, SLICE("c"), NONE, 0, NONE);
    batch_builder_add(builder, VECTOR_TIME_MS + 3, SLICE(""), SLICE(""), 1, SLICE("\0\0"));
    batch_builder_add(builder, VECTOR_TIME_MS + 70000, (struct slice){long_key, sizeof long_key},
                      (struct slice){long_value, sizeof long_value}, 1,
                      SLICE("\x0atrace\x14"
                            "0123456789"));
}

static void plain_batch_is_byte_for_byte_a_clients(void **state)
{
    (void)state;
    struct batch_builder builder;
    struct buffer out;
    batch_builder_init(&builder);
    buffer_init(&out, 0);
    add_vector_records(&builder);
    assert_int_equal(batch_builder_bytes(&builder), sizeof KAFKA_PYTHON_NONE);
    struct batch_build_options options = BATCH_BUILD_PLAIN;
    options.leader_epoch = (int32_t)load_u32(KAFKA_PYTHON_NONE + 12);
    assert_int_equal(batch_builder_finish(&builder, &options, &out, NULL), STATUS_OK);
    assert_int_equal(out.bytes, sizeof KAFKA_PYTHON_NONE);
    assert_memory_equal(out.data, KAFKA_PYTHON_NONE, out.bytes);
    assert_int_equal(batch_builder_bytes(&builder), BATCH_HEADER_BYTES);
    batch_builder_deinit(&builder);
    buffer_deinit(&out);
}

static void options_go_into_the_header(void **state)
{
    (void)state;
    struct batch_builder builder;
    struct buffer out;
    batch_builder_init(&builder);
    buffer_init(&out, 0);
    batch_builder_add(&builder, 7, NONE, NONE, 0, NONE);
    const struct batch_build_options options = {
        .base_offset = 5,
        .leader_epoch = 6,
        .codec = CODEC_GZIP,
        .transactional = true,
        .control = true,
        .producer_id = INT64_MAX,
        .producer_epoch = 12,
        .base_sequence = 13,
    };
    assert_int_equal(batch_builder_finish(&builder, &options, &out, NULL), STATUS_OK);
    struct batch_header header;
    assert_int_equal(batch_parse(out.data, out.bytes, true, &header, NULL), STATUS_OK);
    assert_true(batch_crc_matches(out.data, &header));
    assert_int_equal(header.batch_bytes, out.bytes);
    assert_int_equal(header.base_offset, 5);
    assert_int_equal(header.leader_epoch, 6);
    assert_int_equal(header.attributes, CODEC_GZIP | BATCH_TRANSACTIONAL | BATCH_CONTROL);
    assert_int_equal(header.producer_id, INT64_MAX);
    assert_int_equal(header.producer_epoch, 12);
    assert_int_equal(header.base_sequence, 13);
    assert_int_equal(header.record_count, 1);
    assert_int_equal(header.base_timestamp_ms, 7);
    batch_builder_deinit(&builder);
    buffer_deinit(&out);
}

static void batch_of_every_codec_validates_and_reads_back(void **state)
{
    (void)state;
    struct batch_limits limits = {
        .batch_bytes_max = 65536,
        .allow_zstd = true,
        .timestamp_before_max_ms = INT64_MAX,
        .timestamp_after_max_ms = INT64_MAX,
    };
    struct batch_builder builder;
    struct buffer out;
    batch_builder_init(&builder);
    buffer_init(&out, 0);
    for (enum batch_codec codec = CODEC_NONE; codec <= CODEC_ZSTD; codec++) {
        size_t start = out.bytes;
        add_vector_records(&builder);
        struct batch_build_options options = BATCH_BUILD_PLAIN;
        options.codec = codec;
        assert_int_equal(batch_builder_finish(&builder, &options, &out, NULL), STATUS_OK);
        struct batch_header header;
        assert_int_equal(batch_validate_produced(out.data + start, out.bytes - start, &limits,
                                                 &header, NULL, NULL),
                         STATUS_OK);
        assert_int_equal(header.max_timestamp_ms, VECTOR_TIME_MS + 70000);
        struct record_iterator iterator;
        struct record record;
        assert_int_equal(
            record_iterator_init(&iterator, out.data + start, out.bytes - start, 4096, NULL),
            STATUS_OK);
        for (int i = 0; i < 5; i++) {
            assert_int_equal(record_iterator_next(&iterator, &record, NULL), STATUS_OK);
        }
        assert_int_equal(record_iterator_next(&iterator, &record, NULL), STATUS_NOT_FOUND);
        record_iterator_deinit(&iterator);
    }
    batch_builder_deinit(&builder);
    buffer_deinit(&out);
}

static void empty_batch_is_not_built(void **state)
{
    (void)state;
    struct batch_builder builder;
    struct buffer out;
    struct batch_build_options options = BATCH_BUILD_PLAIN;
    batch_builder_init(&builder);
    buffer_init(&out, 0);
    assert_int_equal(batch_builder_finish(&builder, &options, &out, NULL), STATUS_INVALID);
    assert_int_equal(out.bytes, 0);
    batch_builder_deinit(&builder);
    buffer_deinit(&out);
}

static void oversized_batch_is_not_built_and_the_next_one_is(void **state)
{
    (void)state;
    struct batch_builder builder;
    struct buffer out;
    struct batch_build_options options = BATCH_BUILD_PLAIN;
    batch_builder_init(&builder);
    buffer_init(&out, 0);
    /* The size alone refuses it: the bytes are never read. */
    struct slice huge = {(const uint8_t *)"x", BATCH_BYTES_MAX};
    batch_builder_add(&builder, 0, NONE, huge, 0, NONE);
    assert_int_equal(batch_builder_finish(&builder, &options, &out, NULL), STATUS_TOO_LARGE);
    assert_int_equal(out.bytes, 0);
    batch_builder_add(&builder, 0, NONE, SLICE("small"), 0, NONE);
    assert_int_equal(batch_builder_finish(&builder, &options, &out, NULL), STATUS_OK);
    batch_builder_deinit(&builder);
    buffer_deinit(&out);
}

static void full_output_is_left_as_it_was(void **state)
{
    (void)state;
    for (enum batch_codec codec = CODEC_NONE; codec <= CODEC_ZSTD; codec++) {
        struct batch_builder builder;
        struct buffer out;
        struct batch_build_options options = BATCH_BUILD_PLAIN;
        options.codec = codec;
        batch_builder_init(&builder);
        buffer_init(&out, 80);
        buffer_put_u8(&out, 9);
        add_vector_records(&builder);
        assert_int_equal(batch_builder_finish(&builder, &options, &out, NULL), STATUS_NO_MEMORY);
        assert_int_equal(out.bytes, 1);
        batch_builder_deinit(&builder);
        buffer_deinit(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_batch_is_byte_for_byte_a_clients),
        cmocka_unit_test(options_go_into_the_header),
        cmocka_unit_test(batch_of_every_codec_validates_and_reads_back),
        cmocka_unit_test(empty_batch_is_not_built),
        cmocka_unit_test(oversized_batch_is_not_built_and_the_next_one_is),
        cmocka_unit_test(full_output_is_left_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
