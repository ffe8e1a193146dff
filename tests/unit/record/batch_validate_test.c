/* batch_validate_test.c: each row of kafka-listener.md 3.5 that concerns the bytes of a batch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "record/batch.h"
#include "unit/record/batch_vectors.h"

#define NO_RECORD (-1)

/* Limits that all vectors pass. */
static struct batch_limits limits_open(void)
{
    return (struct batch_limits){
        .batch_bytes_max = 1048588,
        .allow_zstd = true,
        .now_ms = VECTOR_TIME_MS,
        .timestamp_before_max_ms = INT64_MAX,
        .timestamp_after_max_ms = INT64_MAX,
    };
}

/* A batch to spoil: a copy on the heap, so that a read past its end is seen. */
struct spoiled {
    uint8_t *data;
    size_t bytes;
};

static struct spoiled spoil(const uint8_t *data, size_t bytes)
{
    struct spoiled copy = {malloc(bytes), bytes};
    memcpy(copy.data, data, bytes);
    return copy;
}
#define SPOIL(vector) spoil(vector, sizeof vector)

static void reseal(struct spoiled *batch)
{
    store_u32(batch->data + 8, (uint32_t)batch->bytes - 12);
    store_u32(batch->data + 17, crc32c(batch->data + 21, batch->bytes - 21));
}

static enum status validate(const struct spoiled *batch, const struct batch_limits *limits,
                            int32_t *record_index)
{
    struct batch_header header;
    struct batch_fault fault = {12345};
    struct error error;
    enum status status =
        batch_validate_produced(batch->data, batch->bytes, limits, &header, &fault, &error);
    if (record_index != NULL) *record_index = fault.record_index;
    if (status != STATUS_OK) assert_int_equal(error.status, status);
    return status;
}

/* Validates, resealed, and frees. */
static void assert_refused(struct spoiled batch, const struct batch_limits *limits,
                           enum status expected, int32_t expected_index)
{
    int32_t index;
    reseal(&batch);
    assert_int_equal(validate(&batch, limits, &index), expected);
    assert_int_equal(index, expected_index);
    free(batch.data);
}

static void batches_of_real_clients_pass(void **state)
{
    (void)state;
    static const struct {
        const uint8_t *data;
        size_t bytes;
    } vectors[] = {
        {LIBRDKAFKA_NONE, sizeof LIBRDKAFKA_NONE},
        {LIBRDKAFKA_GZIP, sizeof LIBRDKAFKA_GZIP},
        {LIBRDKAFKA_SNAPPY, sizeof LIBRDKAFKA_SNAPPY},
        {LIBRDKAFKA_LZ4, sizeof LIBRDKAFKA_LZ4},
        {LIBRDKAFKA_ZSTD, sizeof LIBRDKAFKA_ZSTD},
        {LIBRDKAFKA_IDEMPOTENT, sizeof LIBRDKAFKA_IDEMPOTENT},
        {KAFKA_PYTHON_NONE, sizeof KAFKA_PYTHON_NONE},
        {KAFKA_PYTHON_GZIP, sizeof KAFKA_PYTHON_GZIP},
        {KAFKA_PYTHON_SNAPPY, sizeof KAFKA_PYTHON_SNAPPY},
        {KAFKA_PYTHON_LZ4, sizeof KAFKA_PYTHON_LZ4},
        {KAFKA_PYTHON_ZSTD, sizeof KAFKA_PYTHON_ZSTD},
        {KAFKA_PYTHON_TRANSACTIONAL, sizeof KAFKA_PYTHON_TRANSACTIONAL},
    };
    struct batch_limits limits = limits_open();
    for (size_t i = 0; i < ARRAY_COUNT(vectors); i++) {
        struct batch_header header;
        struct batch_fault fault;
        struct error error;
        assert_int_equal(batch_validate_produced(vectors[i].data, vectors[i].bytes, &limits,
                                                 &header, &fault, &error),
                         STATUS_OK);
        assert_int_equal(header.batch_bytes, vectors[i].bytes);
    }
}

static void batch_cut_anywhere_is_refused(void **state)
{
    (void)state;
    struct batch_limits limits = limits_open();
    for (size_t bytes = 0; bytes < sizeof LIBRDKAFKA_NONE; bytes++) {
        struct spoiled batch = spoil(LIBRDKAFKA_NONE, bytes);
        assert_int_equal(validate(&batch, &limits, NULL),
                         bytes == 0 ? STATUS_INVALID_RECORD : STATUS_CORRUPT);
        free(batch.data);
    }
}

static void payload_cut_anywhere_is_refused_though_the_crc_is_right(void **state)
{
    (void)state;
    struct batch_limits limits = limits_open();
    limits.compacted = true; /* compressed ones are looked into */
    for (size_t bytes = BATCH_HEADER_BYTES; bytes < sizeof KAFKA_PYTHON_GZIP; bytes++) {
        struct spoiled batch = spoil(KAFKA_PYTHON_GZIP, bytes);
        assert_refused(batch, &limits, STATUS_INVALID_RECORD, NO_RECORD);
    }
    limits.compacted = false;
    for (size_t bytes = BATCH_HEADER_BYTES; bytes < sizeof KAFKA_PYTHON_NONE; bytes++) {
        struct spoiled batch = spoil(KAFKA_PYTHON_NONE, bytes);
        reseal(&batch);
        assert_int_equal(validate(&batch, &limits, NULL), STATUS_INVALID_RECORD);
        free(batch.data);
    }
}

static void every_flipped_bit_but_of_the_leader_epoch_is_refused(void **state)
{
    (void)state;
    struct batch_limits limits = limits_open();
    struct spoiled batch = SPOIL(LIBRDKAFKA_SNAPPY);
    for (size_t bit = 0; bit < batch.bytes * 8; bit++) {
        batch.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        bool leader_epoch = bit / 8 >= 12 && bit / 8 < 16;
        assert_int_equal(validate(&batch, &limits, NULL) == STATUS_OK, leader_epoch);
        batch.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    free(batch.data);
}

static void more_than_one_batch_is_refused(void **state)
{
    (void)state;
    struct batch_limits limits = limits_open();
    struct spoiled batch = {malloc(2 * sizeof KAFKA_PYTHON_GZIP), 2 * sizeof KAFKA_PYTHON_GZIP};
    memcpy(batch.data, KAFKA_PYTHON_GZIP, sizeof KAFKA_PYTHON_GZIP);
    memcpy(batch.data + sizeof KAFKA_PYTHON_GZIP, KAFKA_PYTHON_GZIP, sizeof KAFKA_PYTHON_GZIP);
    assert_int_equal(validate(&batch, &limits, NULL), STATUS_INVALID_RECORD);
    batch.bytes = sizeof KAFKA_PYTHON_GZIP + 3;
    assert_int_equal(validate(&batch, &limits, NULL), STATUS_CORRUPT);
    free(batch.data);
}

static void old_formats_are_refused(void **state)
{
    (void)state;
    struct batch_limits limits = limits_open();
    struct spoiled batch = SPOIL(LIBRDKAFKA_NONE);
    batch.data[16] = 1;
    assert_int_equal(validate(&batch, &limits, NULL), STATUS_INVALID_RECORD);
    batch.bytes = 34; /* an empty message of magic 1 */
    assert_int_equal(validate(&batch, &limits, NULL), STATUS_INVALID_RECORD);
    free(batch.data);
}

static void size_limit_counts_the_whole_batch(void **state)
{
    (void)state;
    struct batch_limits limits = limits_open();
    struct spoiled batch = SPOIL(LIBRDKAFKA_NONE);
    limits.batch_bytes_max = sizeof LIBRDKAFKA_NONE;
    assert_int_equal(validate(&batch, &limits, NULL), STATUS_OK);
    limits.batch_bytes_max--;
    assert_int_equal(validate(&batch, &limits, NULL), STATUS_TOO_LARGE);
    free(batch.data);
}

static void zstd_is_taken_only_where_allowed(void **state)
{
    (void)state;
    struct batch_limits limits = limits_open();
    struct spoiled batch = SPOIL(LIBRDKAFKA_ZSTD);
    limits.allow_zstd = false;
    assert_int_equal(validate(&batch, &limits, NULL), STATUS_UNSUPPORTED_COMPRESSION);
    batch.data[22] = 5; /* no such codec */
    limits.allow_zstd = true;
    assert_refused(batch, &limits, STATUS_UNSUPPORTED_COMPRESSION, NO_RECORD);
}

static void header_fields_are_checked_one_by_one(void **state)
{
    (void)state;
    static const struct {
        size_t at, bytes;
        uint64_t value;
        enum status expected;
    } faults[] = {
        {0, 8, 1, STATUS_INVALID_RECORD},                     /* base offset */
        {57, 4, 0, STATUS_INVALID_RECORD},                    /* count */
        {57, 4, UINT32_MAX, STATUS_INVALID_RECORD},           /* count negative */
        {57, 4, 5, STATUS_INVALID_RECORD},                    /* count below delta + 1 */
        {57, 4, 7, STATUS_INVALID_RECORD},                    /* and above */
        {23, 4, 4, STATUS_INVALID_RECORD},                    /* delta */
        {23, 4, UINT32_MAX, STATUS_INVALID_RECORD},           /* delta negative */
        {21, 2, BATCH_CONTROL, STATUS_INVALID_RECORD},        /* control bit */
        {21, 2, BATCH_DELETE_HORIZON, STATUS_INVALID_RECORD}, /* the cleaner's */
        {21, 2, 0x80, STATUS_INVALID_RECORD},                 /* unknown bit */
        {21, 2, 0x8000, STATUS_INVALID_RECORD},               /* unknown bit */
        {21, 2, BATCH_LOG_APPEND_TIME, STATUS_INVALID_TIMESTAMP},
        {53, 4, UINT32_MAX, STATUS_INVALID_RECORD}, /* sequence -1 with a producer */
        {51, 2, UINT16_MAX, STATUS_INVALID_RECORD}, /* epoch -1 with a producer */
    };
    struct batch_limits limits = limits_open();
    for (size_t i = 0; i < ARRAY_COUNT(faults); i++) {
        struct spoiled batch = SPOIL(LIBRDKAFKA_IDEMPOTENT);
        uint8_t *at = batch.data + faults[i].at;
        if (faults[i].bytes == 8) store_u64(at, faults[i].value);
        if (faults[i].bytes == 4) store_u32(at, (uint32_t)faults[i].value);
        if (faults[i].bytes == 2) store_u16(at, (uint16_t)faults[i].value);
        assert_refused(batch, &limits, faults[i].expected, NO_RECORD);
    }
}

static void control_batches_of_clients_are_refused(void **state)
{
    (void)state;
    struct batch_limits limits = limits_open();
    assert_refused(SPOIL(MARKER_COMMIT), &limits, STATUS_INVALID_RECORD, NO_RECORD);
}

static void transaction_needs_a_producer(void **state)
{
    (void)state;
    struct batch_limits limits = limits_open();
    struct spoiled batch = SPOIL(KAFKA_PYTHON_TRANSACTIONAL);
    memset(batch.data + 43, 0xff, 8);
    assert_refused(batch, &limits, STATUS_INVALID_RECORD, NO_RECORD);
}

static void epoch_and_sequence_without_a_producer_mean_nothing(void **state)
{
    (void)state;
    struct batch_limits limits = limits_open();
    struct spoiled batch = SPOIL(LIBRDKAFKA_NONE);
    store_u16(batch.data + 51, 0);
    store_u32(batch.data + 53, 0);
    reseal(&batch);
    assert_int_equal(validate(&batch, &limits, NULL), STATUS_OK);
    free(batch.data);
}

static void compressed_batch_cannot_claim_countless_records(void **state)
{
    (void)state;
    struct batch_limits limits = limits_open();
    struct spoiled batch = SPOIL(KAFKA_PYTHON_GZIP);
    store_u32(batch.data + 57, INT32_MAX);
    store_u32(batch.data + 23, INT32_MAX - 1);
    assert_refused(batch, &limits, STATUS_INVALID_RECORD, NO_RECORD);
}

/* KAFKA_PYTHON_NONE: record 0 lies at 61 (length 42 in one byte, then attributes, time, offset). */
static void malformed_records_are_named(void **state)
{
    (void)state;
    enum { RECORD = BATCH_HEADER_BYTES, KEY_LENGTH = RECORD + 4, VALUE_LENGTH = RECORD + 6 };
    size_t second = RECORD + 1 + KAFKA_PYTHON_NONE[RECORD] / 2u;
    const struct {
        size_t at;
        uint8_t value;
        int32_t index;
    } faults[] = {
        {RECORD, 1, 0},                                        /* negative length */
        {RECORD, 0, 0},                                        /* no body */
        {RECORD, (uint8_t)(KAFKA_PYTHON_NONE[RECORD] - 2), 0}, /* one byte too short */
        {RECORD, (uint8_t)(KAFKA_PYTHON_NONE[RECORD] + 2), 0}, /* one too long */
        {RECORD + 3, 2, 0},                                    /* offset delta 1 first */
        {RECORD + 3, 1, 0},                                    /* offset delta -1 */
        {second + 4, 0, 1},                                    /* time takes two bytes: delta 0 */
        {KEY_LENGTH, 3, 0},                                    /* key length -2 */
        {KEY_LENGTH, 0x7e, 0},                                 /* key beyond the record */
        {VALUE_LENGTH, 3, 0},
        {VALUE_LENGTH, 0x7e, 0},
        {second - 1, 1, 0}, /* header count -1 */
        {second - 1, 2, 0}, /* a header that is not there */
    };
    struct batch_limits limits = limits_open();
    for (size_t i = 0; i < ARRAY_COUNT(faults); i++) {
        struct spoiled batch = SPOIL(KAFKA_PYTHON_NONE);
        batch.data[faults[i].at] = faults[i].value;
        assert_refused(batch, &limits, STATUS_INVALID_RECORD, faults[i].index);
    }
}

static void endless_header_count_ends_at_once(void **state)
{
    (void)state;
    /* One record: null key and value, then 2^31-1 headers and a varint that never ends. */
    static const uint8_t record[] = {13 * 2, 0,    0,    0,    1,    1,    0xfe,
                                     0xff,   0xff, 0xff, 0x0f, 0xff, 0xff, 0xff};
    struct batch_limits limits = limits_open();
    struct spoiled batch = {malloc(BATCH_HEADER_BYTES + sizeof record),
                            BATCH_HEADER_BYTES + sizeof record};
    memcpy(batch.data, KAFKA_PYTHON_NONE, BATCH_HEADER_BYTES);
    memcpy(batch.data + BATCH_HEADER_BYTES, record, sizeof record);
    store_u32(batch.data + 23, 0);
    store_u32(batch.data + 57, 1);
    assert_refused(batch, &limits, STATUS_INVALID_RECORD, 0);
}

static void bytes_after_the_last_record_are_refused(void **state)
{
    (void)state;
    struct batch_limits limits = limits_open();
    struct spoiled batch = {malloc(sizeof KAFKA_PYTHON_NONE + 1), sizeof KAFKA_PYTHON_NONE + 1};
    memcpy(batch.data, KAFKA_PYTHON_NONE, sizeof KAFKA_PYTHON_NONE);
    batch.data[batch.bytes - 1] = 0;
    assert_refused(batch, &limits, STATUS_INVALID_RECORD, NO_RECORD);
}

static void compacted_topic_refuses_null_keys_in_every_codec(void **state)
{
    (void)state;
    struct batch_limits limits = limits_open();
    limits.compacted = true;
    assert_refused(SPOIL(KAFKA_PYTHON_NONE), &limits, STATUS_INVALID_RECORD, 1);
    assert_refused(SPOIL(KAFKA_PYTHON_GZIP), &limits, STATUS_INVALID_RECORD, 1);
    assert_refused(SPOIL(KAFKA_PYTHON_SNAPPY), &limits, STATUS_INVALID_RECORD, 1);
    assert_refused(SPOIL(KAFKA_PYTHON_LZ4), &limits, STATUS_INVALID_RECORD, 1);
    assert_refused(SPOIL(KAFKA_PYTHON_ZSTD), &limits, STATUS_INVALID_RECORD, 1);
    assert_refused(SPOIL(LIBRDKAFKA_LZ4), &limits, STATUS_INVALID_RECORD, 5);
}

static void compressed_payload_is_looked_at_only_for_compaction(void **state)
{
    (void)state;
    struct batch_limits limits = limits_open();
    struct spoiled batch = SPOIL(KAFKA_PYTHON_ZSTD);
    batch.data[BATCH_HEADER_BYTES] ^= 0xff;
    reseal(&batch);
    assert_int_equal(validate(&batch, &limits, NULL), STATUS_OK);
    limits.compacted = true;
    assert_refused(batch, &limits, STATUS_INVALID_RECORD, NO_RECORD);
}

/* kafka-python's five records lie at T, T + 1500, T - 250, T + 3 and T + 70000. */
static void create_times_outside_the_window_are_named(void **state)
{
    (void)state;
    struct batch_limits limits = limits_open();
    struct spoiled batch = SPOIL(KAFKA_PYTHON_NONE);
    int32_t index;

    limits.timestamp_after_max_ms = 70000;
    limits.timestamp_before_max_ms = 250;
    assert_int_equal(validate(&batch, &limits, &index), STATUS_OK);

    limits.timestamp_before_max_ms = 249;
    assert_int_equal(validate(&batch, &limits, &index), STATUS_INVALID_TIMESTAMP);
    assert_int_equal(index, 2);

    limits.timestamp_before_max_ms = 250;
    limits.timestamp_after_max_ms = 69999;
    assert_int_equal(validate(&batch, &limits, &index), STATUS_INVALID_TIMESTAMP);
    assert_int_equal(index, NO_RECORD); /* the header's max timestamp tells already */

    store_u64(batch.data + 35, VECTOR_TIME_MS); /* a header that lies */
    reseal(&batch);
    assert_int_equal(validate(&batch, &limits, &index), STATUS_INVALID_TIMESTAMP);
    assert_int_equal(index, 4);

    limits.log_append_time = true;
    assert_int_equal(validate(&batch, &limits, &index), STATUS_OK);
    free(batch.data);
}

static void window_does_not_overflow(void **state)
{
    (void)state;
    struct batch_limits limits = limits_open();
    struct spoiled batch = SPOIL(KAFKA_PYTHON_NONE);
    limits.now_ms = INT64_MAX - 1;
    assert_int_equal(validate(&batch, &limits, NULL), STATUS_OK);
    limits.now_ms = INT64_MIN + 1; /* the window then ends at 0 */
    assert_int_equal(validate(&batch, &limits, NULL), STATUS_INVALID_TIMESTAMP);
    free(batch.data);
}

static void record_timestamp_may_not_overflow(void **state)
{
    (void)state;
    struct batch_limits limits = limits_open();
    struct spoiled batch = SPOIL(KAFKA_PYTHON_NONE);
    store_u64(batch.data + 27, INT64_MAX);
    assert_refused(batch, &limits, STATUS_INVALID_RECORD, 1);
}

static void true_maximum_of_the_timestamps_is_told(void **state)
{
    (void)state;
    struct batch_limits limits = limits_open();
    struct spoiled batch = SPOIL(KAFKA_PYTHON_NONE);
    store_u64(batch.data + 35, 1);
    reseal(&batch);
    struct batch_header header;
    assert_int_equal(batch_validate_produced(batch.data, batch.bytes, &limits, &header, NULL, NULL),
                     STATUS_OK);
    assert_int_equal(header.max_timestamp_ms, VECTOR_TIME_MS + 70000);
    free(batch.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_of_real_clients_pass),
        cmocka_unit_test(batch_cut_anywhere_is_refused),
        cmocka_unit_test(payload_cut_anywhere_is_refused_though_the_crc_is_right),
        cmocka_unit_test(every_flipped_bit_but_of_the_leader_epoch_is_refused),
        cmocka_unit_test(more_than_one_batch_is_refused),
        cmocka_unit_test(old_formats_are_refused),
        cmocka_unit_test(size_limit_counts_the_whole_batch),
        cmocka_unit_test(zstd_is_taken_only_where_allowed),
        cmocka_unit_test(header_fields_are_checked_one_by_one),
        cmocka_unit_test(control_batches_of_clients_are_refused),
        cmocka_unit_test(transaction_needs_a_producer),
        cmocka_unit_test(epoch_and_sequence_without_a_producer_mean_nothing),
        cmocka_unit_test(compressed_batch_cannot_claim_countless_records),
        cmocka_unit_test(malformed_records_are_named),
        cmocka_unit_test(endless_header_count_ends_at_once),
        cmocka_unit_test(bytes_after_the_last_record_are_refused),
        cmocka_unit_test(compacted_topic_refuses_null_keys_in_every_codec),
        cmocka_unit_test(compressed_payload_is_looked_at_only_for_compaction),
        cmocka_unit_test(create_times_outside_the_window_are_named),
        cmocka_unit_test(window_does_not_overflow),
        cmocka_unit_test(record_timestamp_may_not_overflow),
        cmocka_unit_test(true_maximum_of_the_timestamps_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
