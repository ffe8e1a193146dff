/* batch_test.c: headers, CRC mending, markers and iteration, against batches of real clients. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/random.h"
#include "record/batch.h"
#include "unit/record/batch_vectors.h"

#define DECOMPRESSED_BYTES_MAX 65536

struct vector {
    const char *name;
    const uint8_t *data;
    size_t bytes;
};
#define VECTOR(name)             \
    {                            \
#name, name, sizeof name \
    }
static const struct vector LIBRDKAFKA[] = {
    VECTOR(LIBRDKAFKA_NONE), VECTOR(LIBRDKAFKA_GZIP), VECTOR(LIBRDKAFKA_SNAPPY),
    VECTOR(LIBRDKAFKA_LZ4),  VECTOR(LIBRDKAFKA_ZSTD), VECTOR(LIBRDKAFKA_IDEMPOTENT),
};
static const struct vector KAFKA_PYTHON[] = {
    VECTOR(KAFKA_PYTHON_NONE), VECTOR(KAFKA_PYTHON_GZIP), VECTOR(KAFKA_PYTHON_SNAPPY),
    VECTOR(KAFKA_PYTHON_LZ4),  VECTOR(KAFKA_PYTHON_ZSTD),
};

static void assert_slice(struct slice slice, const char *text)
{
    assert_int_equal(slice.bytes, strlen(text));
    assert_memory_equal(slice.data, text, slice.bytes);
}

static void header_of_an_idempotent_client_is_decoded(void **state)
{
    (void)state;
    struct batch_header header;
    assert_int_equal(
        batch_parse(LIBRDKAFKA_IDEMPOTENT, sizeof LIBRDKAFKA_IDEMPOTENT, true, &header, NULL),
        STATUS_OK);
    assert_int_equal(header.batch_bytes, sizeof LIBRDKAFKA_IDEMPOTENT);
    assert_int_equal(header.base_offset, 0);
    assert_int_equal(header.attributes, 0);
    assert_int_equal(header.producer_id, 4242);
    assert_int_equal(header.producer_epoch, 7);
    assert_int_equal(header.base_sequence, 0);
    assert_int_equal(header.record_count, 6);
    assert_int_equal(header.last_offset_delta, 5);
    assert_int_equal(batch_last_offset(&header), 5);
    assert_true(batch_crc_matches(LIBRDKAFKA_IDEMPOTENT, &header));
}

static void sequence_goes_on_at_zero_after_the_largest(void **state)
{
    (void)state;
    struct batch_header header;
    assert_int_equal(batch_parse(KAFKA_PYTHON_TRANSACTIONAL, sizeof KAFKA_PYTHON_TRANSACTIONAL,
                                 true, &header, NULL),
                     STATUS_OK);
    assert_int_equal(header.base_sequence, 2147483646);
    assert_int_equal(header.last_offset_delta, 2);
    assert_int_equal(batch_last_sequence(&header), 0);
    assert_int_equal(header.producer_id, 0x1122334455667788);
    assert_int_equal(header.attributes, BATCH_TRANSACTIONAL);
}

static void incomplete_batch_asks_for_more_at_every_length(void **state)
{
    (void)state;
    for (size_t bytes = 0; bytes < sizeof LIBRDKAFKA_NONE; bytes++) {
        uint8_t *cut = malloc(bytes + 1);
        memcpy(cut, LIBRDKAFKA_NONE, bytes);
        struct batch_header header;
        assert_int_equal(batch_parse(cut, bytes, true, &header, NULL), STATUS_AGAIN);
        assert_int_equal(batch_parse(cut, bytes, false, &header, NULL),
                         bytes < BATCH_HEADER_BYTES ? STATUS_AGAIN : STATUS_OK);
        free(cut);
    }
}

static void header_that_contradicts_itself_is_corrupt(void **state)
{
    (void)state;
    static const struct {
        size_t at;
        uint32_t value;
    } faults[] = {
        {8, 48},                   /* one byte short of a header */
        {8, BATCH_BYTES_MAX - 11}, /* one byte too long */
        {8, UINT32_MAX},           /* negative */
        {8, UINT32_MAX - 11},      /* length + 12 wraps to 0 */
        {13, 0x00000001},          /* magic 1 */
        {23, 0x80000000},          /* negative delta */
        {0, 0xffffffff},           /* negative base offset */
    };
    for (size_t i = 0; i < ARRAY_COUNT(faults); i++) {
        uint8_t data[sizeof LIBRDKAFKA_NONE];
        memcpy(data, LIBRDKAFKA_NONE, sizeof data);
        store_u32(data + faults[i].at, faults[i].value);
        struct batch_header header;
        struct error error;
        assert_int_equal(batch_parse(data, sizeof data, false, &header, &error), STATUS_CORRUPT);
        assert_true(strlen(error.text) > 0);
    }
}

static void last_offset_may_not_overflow(void **state)
{
    (void)state;
    uint8_t data[sizeof LIBRDKAFKA_NONE];
    memcpy(data, LIBRDKAFKA_NONE, sizeof data);
    struct batch_header header;
    batch_set_base_offset(data, INT64_MAX - 6);
    assert_int_equal(batch_parse(data, sizeof data, true, &header, NULL), STATUS_OK);
    batch_set_base_offset(data, INT64_MAX - 5);
    assert_int_equal(batch_parse(data, sizeof data, true, &header, NULL), STATUS_CORRUPT);
}

static void broker_fields_are_outside_the_crc(void **state)
{
    (void)state;
    uint8_t data[sizeof LIBRDKAFKA_LZ4];
    memcpy(data, LIBRDKAFKA_LZ4, sizeof data);
    batch_set_base_offset(data, 0x0102030405060708);
    batch_set_leader_epoch(data, 77);
    struct batch_header header;
    assert_int_equal(batch_parse(data, sizeof data, true, &header, NULL), STATUS_OK);
    assert_int_equal(header.base_offset, 0x0102030405060708);
    assert_int_equal(header.leader_epoch, 77);
    assert_true(batch_crc_matches(data, &header));
}

static void every_flip_under_the_crc_is_seen(void **state)
{
    (void)state;
    uint8_t data[sizeof LIBRDKAFKA_ZSTD];
    memcpy(data, LIBRDKAFKA_ZSTD, sizeof data);
    struct batch_header header;
    assert_int_equal(batch_parse(data, sizeof data, true, &header, NULL), STATUS_OK);
    for (size_t bit = 21 * 8; bit < sizeof data * 8; bit++) {
        data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_false(batch_crc_matches(data, &header));
        data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

/* The mended CRC against one computed over the whole batch, for every length up to some hundred
 * bytes and then for lengths around the powers of two. */
static void check_mended_crc(struct random *random, size_t payload_bytes)
{
    size_t bytes = BATCH_HEADER_BYTES + payload_bytes;
    uint8_t *data = malloc(bytes);
    random_bytes(random, data, bytes);
    store_u64(data, 0);
    store_u32(data + 8, (uint32_t)bytes - 12);
    data[16] = 2;
    data[23] &= 0x7f;
    store_u32(data + 17, crc32c(data + 21, bytes - 21));

    int64_t timestamp_ms = random_between(random, -1, INT64_MAX);
    batch_set_log_append_time(data, timestamp_ms);

    struct batch_header header;
    assert_int_equal(batch_parse(data, bytes, true, &header, NULL), STATUS_OK);
    assert_int_equal(header.max_timestamp_ms, timestamp_ms);
    assert_true((header.attributes & BATCH_LOG_APPEND_TIME) != 0);
    assert_int_equal(header.crc, crc32c(data + 21, bytes - 21));
    free(data);
}

static void log_append_time_mends_the_crc_as_a_recompute_would(void **state)
{
    (void)state;
    struct random random;
    random_seed(&random, 7);
    for (size_t payload = 0; payload < 600; payload++) {
        check_mended_crc(&random, payload);
    }
    for (size_t power = 10; power <= 24; power++) {
        for (size_t payload = ((size_t)1 << power) - 70; payload < ((size_t)1 << power) + 3;
             payload += power < 20 ? 1 : 24) {
            check_mended_crc(&random, payload);
        }
    }
}

static void a_batch_given_to_another_producer_is_a_plain_one_with_a_crc_that_matches(void **state)
{
    (void)state;
    struct random random;
    random_seed(&random, 8);
    for (size_t bytes = 61; bytes < 700; bytes += 13) {
        uint8_t *data = malloc(bytes);
        random_bytes(&random, data, bytes);
        store_u64(data, 0);
        store_u32(data + 8, (uint32_t)bytes - 12);
        data[16] = 2;
        data[22] |= BATCH_TRANSACTIONAL;
        data[23] &= 0x7f;
        store_u32(data + 17, crc32c(data + 21, bytes - 21));
        uint16_t attributes = load_u16(data + 21);
        batch_set_producer(data, INT64_C(0x7fffffff00000002), 32767, INT32_MAX);
        struct batch_header header;
        assert_int_equal(batch_parse(data, bytes, true, &header, NULL), STATUS_OK);
        assert_true(header.producer_id == INT64_C(0x7fffffff00000002));
        assert_int_equal(header.producer_epoch, 32767);
        assert_int_equal(header.base_sequence, INT32_MAX);
        assert_int_equal((uint16_t)header.attributes, attributes & ~BATCH_TRANSACTIONAL);
        assert_int_equal(header.crc, crc32c(data + 21, bytes - 21));
        free(data);
    }
}

static void log_append_time_set_twice_still_matches(void **state)
{
    (void)state;
    uint8_t data[sizeof KAFKA_PYTHON_GZIP];
    memcpy(data, KAFKA_PYTHON_GZIP, sizeof data);
    batch_set_log_append_time(data, 5);
    batch_set_log_append_time(data, VECTOR_TIME_MS + 12345);
    struct batch_header header;
    assert_int_equal(batch_parse(data, sizeof data, true, &header, NULL), STATUS_OK);
    assert_true(batch_crc_matches(data, &header));
    assert_int_equal(header.attributes, CODEC_GZIP | BATCH_LOG_APPEND_TIME);
    assert_int_equal(header.base_timestamp_ms, VECTOR_TIME_MS);
}

static void librdkafka_batches_are_read_in_every_codec(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(LIBRDKAFKA); i++) {
        struct record_iterator iterator;
        struct record record;
        assert_int_equal(record_iterator_init(&iterator, LIBRDKAFKA[i].data, LIBRDKAFKA[i].bytes,
                                              DECOMPRESSED_BYTES_MAX, NULL),
                         STATUS_OK);
        for (int64_t n = 0; n < 5; n++) {
            char key[16], value[80];
            snprintf(key, sizeof key, "key-%d", (int)n);
            snprintf(value, sizeof value, "the quick brown fox jumps over the lazy dog, record %d",
                     (int)n);
            assert_int_equal(record_iterator_next(&iterator, &record, NULL), STATUS_OK);
            assert_int_equal(record.offset, n);
            assert_int_equal(record.timestamp_ms, iterator.header.base_timestamp_ms);
            assert_slice(record.key, key);
            assert_slice(record.value, value);
            assert_int_equal(record.header_count, 2);
            static const uint8_t headers[] = "\x0csource\x08kcat\x0a"
                                             "empty"; /* its NUL is the empty value's length */
            assert_int_equal(record.headers.bytes, sizeof headers);
            assert_memory_equal(record.headers.data, headers, sizeof headers);
        }
        assert_int_equal(record_iterator_next(&iterator, &record, NULL), STATUS_OK);
        assert_false(record.has_key);
        assert_slice(record.value, "null key and one more lazy dog, lazy dog, lazy dog");
        assert_int_equal(record_iterator_next(&iterator, &record, NULL), STATUS_NOT_FOUND);
        record_iterator_deinit(&iterator);
    }
}

static void nulls_and_empties_are_told_apart_in_every_codec(void **state)
{
    (void)state;
    static const int64_t after_ms[] = {0, 1500, -250, 3, 70000};
    for (size_t i = 0; i < ARRAY_COUNT(KAFKA_PYTHON); i++) {
        struct record_iterator iterator;
        struct record records[5], none;
        assert_int_equal(record_iterator_init(&iterator, KAFKA_PYTHON[i].data,
                                              KAFKA_PYTHON[i].bytes, DECOMPRESSED_BYTES_MAX, NULL),
                         STATUS_OK);
        for (int n = 0; n < 5; n++) {
            assert_int_equal(record_iterator_next(&iterator, &records[n], NULL), STATUS_OK);
            assert_int_equal(records[n].timestamp_ms, VECTOR_TIME_MS + after_ms[n]);
            assert_int_equal(records[n].offset, n);
        }
        assert_int_equal(record_iterator_next(&iterator, &none, NULL), STATUS_NOT_FOUND);
        assert_false(records[1].has_key);
        assert_slice(records[1].headers, "\x04h1\x02x\x04h2\x01");
        assert_true(records[2].has_key);
        assert_false(records[2].has_value);
        assert_true(records[3].has_key);
        assert_int_equal(records[3].key.bytes, 0);
        assert_true(records[3].has_value);
        assert_int_equal(records[3].header_count, 1);
        assert_int_equal(records[4].key.bytes, 70);
        assert_int_equal(records[4].value.bytes, 240);
        record_iterator_deinit(&iterator);
    }
}

static void log_append_time_is_the_time_of_every_record(void **state)
{
    (void)state;
    uint8_t data[sizeof KAFKA_PYTHON_SNAPPY];
    memcpy(data, KAFKA_PYTHON_SNAPPY, sizeof data);
    batch_set_log_append_time(data, 99);
    batch_set_base_offset(data, 1000);
    struct record_iterator iterator;
    struct record record;
    assert_int_equal(
        record_iterator_init(&iterator, data, sizeof data, DECOMPRESSED_BYTES_MAX, NULL),
        STATUS_OK);
    for (int n = 0; n < 5; n++) {
        assert_int_equal(record_iterator_next(&iterator, &record, NULL), STATUS_OK);
        assert_int_equal(record.timestamp_ms, 99);
        assert_int_equal(record.offset, 1000 + n);
    }
    record_iterator_deinit(&iterator);
}

static enum status iterate_all(const uint8_t *data, size_t bytes, size_t bytes_max)
{
    struct record_iterator iterator;
    struct record record;
    enum status status = record_iterator_init(&iterator, data, bytes, bytes_max, NULL);
    if (status != STATUS_OK) return status;
    while ((status = record_iterator_next(&iterator, &record, NULL)) == STATUS_OK) {
    }
    record_iterator_deinit(&iterator);
    return status;
}

static void iteration_of_a_batch_cut_anywhere_is_corrupt(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(KAFKA_PYTHON); i++) {
        for (size_t bytes = 0; bytes < KAFKA_PYTHON[i].bytes; bytes++) {
            uint8_t *cut = malloc(bytes + 1);
            memcpy(cut, KAFKA_PYTHON[i].data, bytes);
            assert_int_equal(iterate_all(cut, bytes, DECOMPRESSED_BYTES_MAX), STATUS_CORRUPT);
            /* And where the length field was cut along. */
            if (bytes >= BATCH_HEADER_BYTES) {
                store_u32(cut + 8, (uint32_t)bytes - 12);
                assert_int_equal(iterate_all(cut, bytes, DECOMPRESSED_BYTES_MAX), STATUS_CORRUPT);
            }
            free(cut);
        }
    }
}

static void decompression_stops_at_its_bound(void **state)
{
    (void)state;
    size_t plain = sizeof KAFKA_PYTHON_NONE - BATCH_HEADER_BYTES;
    for (size_t i = 1; i < ARRAY_COUNT(KAFKA_PYTHON); i++) {
        assert_int_equal(iterate_all(KAFKA_PYTHON[i].data, KAFKA_PYTHON[i].bytes, plain),
                         STATUS_NOT_FOUND);
        assert_int_equal(iterate_all(KAFKA_PYTHON[i].data, KAFKA_PYTHON[i].bytes, plain - 1),
                         STATUS_TOO_LARGE);
    }
}

static void offsets_with_gaps_rise_and_stay_inside_the_batch(void **state)
{
    (void)state;
    uint8_t data[sizeof KAFKA_PYTHON_NONE];
    memcpy(data, KAFKA_PYTHON_NONE, sizeof data);
    /* Record 0 is 42 bytes: length 1, attributes 1, time 1, then its offset delta. */
    data[BATCH_HEADER_BYTES + 3] = 1 << 1;
    assert_int_equal(iterate_all(data, sizeof data, 0), STATUS_CORRUPT); /* 1, 1, … */
    data[BATCH_HEADER_BYTES + 3] = 0;
    store_u32(data + 23, 3);
    assert_int_equal(iterate_all(data, sizeof data, 0), STATUS_CORRUPT); /* five up to 3 */
    store_u32(data + 23, 40);
    assert_int_equal(iterate_all(data, sizeof data, 0), STATUS_NOT_FOUND);
}

static void emptied_batch_has_no_records(void **state)
{
    (void)state;
    uint8_t data[BATCH_HEADER_BYTES];
    memcpy(data, KAFKA_PYTHON_ZSTD, sizeof data);
    store_u32(data + 8, sizeof data - 12);
    store_u32(data + 57, 0);
    assert_int_equal(iterate_all(data, sizeof data, 0), STATUS_NOT_FOUND);
}

static void commit_marker_is_built_as_kafka_builds_it(void **state)
{
    (void)state;
    struct buffer buffer;
    buffer_init(&buffer, 0);
    batch_build_marker(&buffer, 4242, 7, true, 11, VECTOR_TIME_MS, -1);
    /* Leader epoch is the one field that differs by who writes. */
    uint8_t expected[sizeof MARKER_COMMIT];
    memcpy(expected, MARKER_COMMIT, sizeof expected);
    batch_set_leader_epoch(expected, -1);
    assert_int_equal(buffer.bytes, sizeof expected);
    assert_memory_equal(buffer.data, expected, sizeof expected);
    buffer_deinit(&buffer);
}

static void marker_is_read_back(void **state)
{
    (void)state;
    struct batch_marker marker;
    assert_int_equal(batch_read_marker(MARKER_COMMIT, sizeof MARKER_COMMIT, &marker, NULL),
                     STATUS_OK);
    assert_true(marker.commit);
    assert_int_equal(marker.coordinator_epoch, 11);

    struct buffer buffer;
    buffer_init(&buffer, 0);
    buffer_put_u8(&buffer, 0xaa); /* appended, not written at the start */
    batch_build_marker(&buffer, INT64_MAX, INT16_MAX, false, INT32_MAX, INT64_MAX, 3);
    assert_int_equal(batch_read_marker(buffer.data + 1, buffer.bytes - 1, &marker, NULL),
                     STATUS_OK);
    assert_false(marker.commit);
    assert_int_equal(marker.coordinator_epoch, INT32_MAX);
    buffer_deinit(&buffer);
}

static void what_is_no_marker_is_not_taken_for_one(void **state)
{
    (void)state;
    struct batch_marker marker;
    uint8_t data[sizeof MARKER_COMMIT];
    assert_int_equal(batch_read_marker(LIBRDKAFKA_NONE, sizeof LIBRDKAFKA_NONE, &marker, NULL),
                     STATUS_CORRUPT);
    for (size_t bytes = 0; bytes < sizeof data; bytes++) {
        memcpy(data, MARKER_COMMIT, bytes);
        assert_int_equal(batch_read_marker(data, bytes, &marker, NULL), STATUS_CORRUPT);
    }
    memcpy(data, MARKER_COMMIT, sizeof data);
    data[sizeof data - 1 - 6 - 1 - 1] = 2; /* the low byte of the type */
    assert_int_equal(batch_read_marker(data, sizeof data, &marker, NULL), STATUS_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(header_of_an_idempotent_client_is_decoded),
        cmocka_unit_test(sequence_goes_on_at_zero_after_the_largest),
        cmocka_unit_test(incomplete_batch_asks_for_more_at_every_length),
        cmocka_unit_test(header_that_contradicts_itself_is_corrupt),
        cmocka_unit_test(last_offset_may_not_overflow),
        cmocka_unit_test(broker_fields_are_outside_the_crc),
        cmocka_unit_test(every_flip_under_the_crc_is_seen),
        cmocka_unit_test(log_append_time_mends_the_crc_as_a_recompute_would),
        cmocka_unit_test(a_batch_given_to_another_producer_is_a_plain_one_with_a_crc_that_matches),
        cmocka_unit_test(log_append_time_set_twice_still_matches),
        cmocka_unit_test(librdkafka_batches_are_read_in_every_codec),
        cmocka_unit_test(nulls_and_empties_are_told_apart_in_every_codec),
        cmocka_unit_test(log_append_time_is_the_time_of_every_record),
        cmocka_unit_test(iteration_of_a_batch_cut_anywhere_is_corrupt),
        cmocka_unit_test(decompression_stops_at_its_bound),
        cmocka_unit_test(offsets_with_gaps_rise_and_stay_inside_the_batch),
        cmocka_unit_test(emptied_batch_has_no_records),
        cmocka_unit_test(commit_marker_is_built_as_kafka_builds_it),
        cmocka_unit_test(marker_is_read_back),
        cmocka_unit_test(what_is_no_marker_is_not_taken_for_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
