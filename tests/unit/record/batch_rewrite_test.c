/* batch_rewrite_test.c: batches with records taken out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "record/batch_recompress.h"
#include "record/batch_rewrite.h"
#include "record/layout.h"

#define BASE_OFFSET 1000
#define BASE_TIME   5000

/* Five records, keys "a" to "e", at offsets 1000 to 1004; the third one is a tombstone. */
static void build(struct buffer *out, enum batch_codec codec)
{
    struct batch_builder builder;
    struct batch_build_options options = {.base_offset = BASE_OFFSET,
                                          .leader_epoch = 3,
                                          .codec = codec,
                                          .transactional = true,
                                          .producer_id = 77,
                                          .producer_epoch = 2,
                                          .base_sequence = 12};
    static const uint8_t letters[] = "abcde";
    static const uint8_t headers[] = {2, 'h', 2, 'v'};
    batch_builder_init(&builder);
    buffer_init(out, 0);
    for (int i = 0; i < 5; i++) {
        struct slice value = {letters + i, i == 2 ? 0 : 1};
        if (i == 2) value.data = NULL;
        batch_builder_add(&builder, BASE_TIME + i, (struct slice){letters + i, 1}, value, i == 0,
                          (struct slice){headers, i == 0 ? sizeof(headers) : 0});
    }
    assert_int_equal(batch_builder_finish(&builder, &options, out, NULL), STATUS_OK);
    batch_builder_deinit(&builder);
}

/* Keeps the records whose bit is set. */
static bool keep_bits(void *context, const struct record *record)
{
    return *(const unsigned *)context >> (record->offset - BASE_OFFSET) & 1;
}

static struct batch_rewrite options_of(unsigned *bits)
{
    return (struct batch_rewrite){.keep = keep_bits,
                                  .context = bits,
                                  .horizon_ms = BATCH_HORIZON_NONE,
                                  .decompressed_bytes_max = 1 << 20};
}

/* The batch in `out` holds exactly the records of `bits`, as they were. */
static void assert_holds(const struct buffer *out, unsigned bits, struct batch_header *header)
{
    struct record_iterator iterator;
    struct record record;
    int records = 0;
    assert_int_equal(batch_parse(out->data, out->bytes, true, header, NULL), STATUS_OK);
    assert_int_equal(header->batch_bytes, out->bytes);
    assert_true(batch_crc_matches(out->data, header));
    assert_int_equal(header->base_offset, BASE_OFFSET);
    assert_int_equal(header->last_offset_delta, 4);
    assert_int_equal(header->leader_epoch, 3);
    assert_int_equal(header->producer_id, 77);
    assert_int_equal(header->producer_epoch, 2);
    assert_int_equal(header->base_sequence, 12);
    assert_true(header->attributes & BATCH_TRANSACTIONAL);
    assert_int_equal(record_iterator_init(&iterator, out->data, out->bytes, 1 << 20, NULL),
                     STATUS_OK);
    enum status status;
    while ((status = record_iterator_next(&iterator, &record, NULL)) == STATUS_OK) {
        int64_t i = record.offset - BASE_OFFSET;
        assert_true(bits >> i & 1);
        assert_int_equal(record.timestamp_ms, BASE_TIME + i);
        assert_int_equal(record.key.data[0], 'a' + i);
        assert_int_equal(record.has_value, i != 2);
        if (record.has_value) assert_int_equal(record.value.data[0], 'a' + i);
        assert_int_equal(record.header_count, i == 0);
        assert_int_equal(record.headers.bytes, i == 0 ? 4 : 0);
        records++;
    }
    assert_int_equal(status, STATUS_NOT_FOUND);
    assert_int_equal(records, __builtin_popcount(bits));
    assert_int_equal(header->record_count, records);
    record_iterator_deinit(&iterator);
}

static void every_choice_of_records_is_what_is_left(void **state)
{
    (void)state;
    for (int codec = CODEC_NONE; codec <= CODEC_ZSTD; codec++) {
        for (unsigned bits = 1; bits < 32; bits++) {
            struct buffer batch, out;
            struct batch_header header;
            struct batch_rewrite rewrite = options_of(&bits);
            build(&batch, (enum batch_codec)codec);
            buffer_init(&out, 0);
            assert_int_equal(batch_rewrite(&rewrite, batch.data, batch.bytes, &out, NULL),
                             STATUS_OK);
            assert_holds(&out, bits, &header);
            assert_int_equal(header.attributes & BATCH_CODEC_MASK, codec);
            assert_int_equal(rewrite.kept + rewrite.dropped, 5);
            assert_int_equal(rewrite.changed, bits != 31);
            int top = 31 - __builtin_clz(bits);
            assert_int_equal(header.max_timestamp_ms, BASE_TIME + top);
            buffer_deinit(&batch);
            buffer_deinit(&out);
        }
    }
}

static void a_batch_of_which_all_stays_is_the_same_bytes(void **state)
{
    struct buffer batch, out;
    unsigned bits = 31;
    struct batch_rewrite rewrite = options_of(&bits);
    (void)state;
    build(&batch, CODEC_ZSTD);
    buffer_init(&out, 0);
    assert_int_equal(batch_rewrite(&rewrite, batch.data, batch.bytes, &out, NULL), STATUS_OK);
    assert_int_equal(out.bytes, batch.bytes);
    assert_memory_equal(out.data, batch.data, batch.bytes);
    assert_false(rewrite.changed);
    buffer_deinit(&batch);
    buffer_deinit(&out);
}

static void an_emptied_batch_is_nothing_or_its_header(void **state)
{
    struct buffer batch, out;
    struct batch_header header;
    unsigned bits = 0;
    struct batch_rewrite rewrite = options_of(&bits);
    (void)state;
    build(&batch, CODEC_GZIP);
    buffer_init(&out, 0);
    assert_int_equal(batch_rewrite(&rewrite, batch.data, batch.bytes, &out, NULL), STATUS_OK);
    assert_int_equal(out.bytes, 0);
    assert_true(rewrite.changed);
    rewrite.keep_header = true;
    assert_int_equal(batch_rewrite(&rewrite, batch.data, batch.bytes, &out, NULL), STATUS_OK);
    assert_int_equal(out.bytes, BATCH_HEADER_BYTES);
    assert_holds(&out, 0, &header);
    assert_int_equal(header.max_timestamp_ms, BASE_TIME + 4);
    /* Once more: it stays as it is. */
    struct buffer again;
    buffer_init(&again, 0);
    assert_int_equal(batch_rewrite(&rewrite, out.data, out.bytes, &again, NULL), STATUS_OK);
    assert_memory_equal(again.data, out.data, out.bytes);
    assert_false(rewrite.changed);
    buffer_deinit(&again);
    buffer_deinit(&batch);
    buffer_deinit(&out);
}

static void a_horizon_is_set_once_and_only_with_tombstones(void **state)
{
    struct buffer batch, out, again;
    struct batch_header header;
    unsigned bits = 3;
    struct batch_rewrite rewrite = options_of(&bits);
    (void)state;
    build(&batch, CODEC_SNAPPY);
    buffer_init(&out, 0);
    buffer_init(&again, 0);
    rewrite.horizon_ms = 900000;
    assert_int_equal(batch_rewrite(&rewrite, batch.data, batch.bytes, &out, NULL), STATUS_OK);
    assert_holds(&out, 3, &header);
    assert_int_equal(batch_horizon_ms(&header), BATCH_HORIZON_NONE);
    bits = 31;
    buffer_clear(&out);
    assert_int_equal(batch_rewrite(&rewrite, batch.data, batch.bytes, &out, NULL), STATUS_OK);
    assert_holds(&out, 31, &header); /* the times of the records are what they were */
    assert_int_equal(batch_horizon_ms(&header), 900000);
    assert_int_equal(header.max_timestamp_ms, BASE_TIME + 4);
    rewrite.horizon_ms = 1900000;
    assert_int_equal(batch_rewrite(&rewrite, out.data, out.bytes, &again, NULL), STATUS_OK);
    assert_memory_equal(again.data, out.data, out.bytes);
    buffer_deinit(&batch);
    buffer_deinit(&out);
    buffer_deinit(&again);
}

static void a_batch_too_far_from_its_horizon_does_without(void **state)
{
    struct buffer batch, out;
    struct batch_header header;
    unsigned bits = 30; /* a tombstone among them */
    struct batch_rewrite rewrite = options_of(&bits);
    (void)state;
    build(&batch, CODEC_NONE);
    store_u64(batch.data + BATCH_AT_BASE_TIMESTAMP, (uint64_t)INT64_C(-10));
    buffer_init(&out, 0);
    rewrite.horizon_ms = INT64_MAX;
    assert_int_equal(batch_rewrite(&rewrite, batch.data, batch.bytes, &out, NULL), STATUS_OK);
    assert_int_equal(batch_parse(out.data, out.bytes, true, &header, NULL), STATUS_OK);
    assert_int_equal(header.record_count, 4);
    assert_int_equal(header.base_timestamp_ms, -10);
    assert_int_equal(batch_horizon_ms(&header), BATCH_HORIZON_NONE);
    buffer_deinit(&batch);
    buffer_deinit(&out);
}

static void what_is_no_batch_is_refused_and_nothing_is_appended(void **state)
{
    struct buffer batch, out;
    unsigned bits = 1;
    struct batch_rewrite rewrite = options_of(&bits);
    (void)state;
    build(&batch, CODEC_NONE);
    buffer_init(&out, 0);
    for (size_t bytes = 0; bytes < batch.bytes; bytes++) {
        assert_int_equal(batch_rewrite(&rewrite, batch.data, bytes, &out, NULL), STATUS_CORRUPT);
    }
    /* One record more than there is. */
    batch.data[60]++;
    assert_int_equal(batch_rewrite(&rewrite, batch.data, batch.bytes, &out, NULL), STATUS_CORRUPT);
    assert_int_equal(out.bytes, 0);
    buffer_deinit(&batch);
    buffer_deinit(&out);
}

/* ---- another codec ---- */

static const struct batch_limits any_time = {.batch_bytes_max = BATCH_BYTES_MAX,
                                             .timestamp_before_max_ms = INT64_MAX,
                                             .timestamp_after_max_ms = INT64_MAX};

/* As a producer sends it: base offset 0. */
static void build_produced(struct buffer *out, enum batch_codec codec)
{
    build(out, codec);
    batch_set_base_offset(out->data, 0);
}

static void every_codec_becomes_every_other_with_all_its_records(void **state)
{
    (void)state;
    for (int from = CODEC_NONE; from <= CODEC_ZSTD; from++) {
        for (int to = CODEC_NONE; to <= CODEC_ZSTD; to++) {
            struct buffer batch, out;
            struct batch_header header;
            struct batch_fault fault;
            const struct batch_compression compression = {(enum batch_codec)to, 1};
            build_produced(&batch, (enum batch_codec)from);
            buffer_init(&out, 0);
            assert_int_equal(batch_recompress(batch.data, batch.bytes, &compression, &any_time,
                                              &out, &fault, NULL),
                             STATUS_OK);
            batch_set_base_offset(out.data, BASE_OFFSET);
            assert_holds(&out, 31, &header);
            assert_int_equal(header.attributes & BATCH_CODEC_MASK, to);
            assert_int_equal(header.max_timestamp_ms, BASE_TIME + 4);
            buffer_deinit(&batch);
            buffer_deinit(&out);
        }
    }
}

/* The header's claim is not under what was looked at when the batch came compressed. */
static void a_recompressed_batch_has_the_true_max_timestamp(void **state)
{
    (void)state;
    struct buffer batch, out;
    struct batch_header header;
    struct batch_fault fault;
    const struct batch_compression compression = {CODEC_ZSTD, 3};
    build_produced(&batch, CODEC_GZIP);
    store_u64(batch.data + BATCH_AT_MAX_TIMESTAMP, 1);
    buffer_init(&out, 0);
    assert_int_equal(
        batch_recompress(batch.data, batch.bytes, &compression, &any_time, &out, &fault, NULL),
        STATUS_OK);
    assert_int_equal(batch_parse(out.data, out.bytes, true, &header, NULL), STATUS_OK);
    assert_int_equal(header.max_timestamp_ms, BASE_TIME + 4);
    buffer_deinit(&batch);
    buffer_deinit(&out);
}

static void what_cannot_be_read_is_not_recompressed(void **state)
{
    (void)state;
    struct buffer batch, out;
    struct batch_fault fault;
    const struct batch_compression compression = {CODEC_ZSTD, 3};
    struct batch_limits compacted = any_time;
    build_produced(&batch, CODEC_GZIP);
    buffer_init(&out, 0);
    /* Fewer records than the header says. */
    store_u32(batch.data + BATCH_AT_RECORD_COUNT, 6);
    store_u32(batch.data + BATCH_AT_LAST_OFFSET_DELTA, 5);
    assert_int_equal(
        batch_recompress(batch.data, batch.bytes, &compression, &compacted, &out, &fault, NULL),
        STATUS_INVALID_RECORD);
    assert_int_equal(fault.record_index, 5);
    /* Not its stream. */
    batch.data[BATCH_HEADER_BYTES] ^= 1;
    assert_int_equal(
        batch_recompress(batch.data, batch.bytes, &compression, &compacted, &out, &fault, NULL),
        STATUS_INVALID_RECORD);
    assert_int_equal(out.bytes, 0);
    buffer_deinit(&batch);
    buffer_deinit(&out);
}

static void records_out_of_time_are_found_where_the_header_hides_them(void **state)
{
    (void)state;
    struct buffer batch, out;
    struct batch_fault fault;
    const struct batch_compression compression = {CODEC_NONE, 0};
    struct batch_limits limits = any_time;
    limits.now_ms = BASE_TIME;
    limits.timestamp_after_max_ms = 2;
    build_produced(&batch, CODEC_LZ4);
    buffer_init(&out, 0);
    assert_int_equal(
        batch_recompress(batch.data, batch.bytes, &compression, &limits, &out, &fault, NULL),
        STATUS_INVALID_TIMESTAMP);
    assert_int_equal(fault.record_index, 3);
    buffer_deinit(&batch);
    buffer_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_choice_of_records_is_what_is_left),
        cmocka_unit_test(a_batch_of_which_all_stays_is_the_same_bytes),
        cmocka_unit_test(an_emptied_batch_is_nothing_or_its_header),
        cmocka_unit_test(a_horizon_is_set_once_and_only_with_tombstones),
        cmocka_unit_test(a_batch_too_far_from_its_horizon_does_without),
        cmocka_unit_test(what_is_no_batch_is_refused_and_nothing_is_appended),
        cmocka_unit_test(every_codec_becomes_every_other_with_all_its_records),
        cmocka_unit_test(a_recompressed_batch_has_the_true_max_timestamp),
        cmocka_unit_test(what_cannot_be_read_is_not_recompressed),
        cmocka_unit_test(records_out_of_time_are_found_where_the_header_hides_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
