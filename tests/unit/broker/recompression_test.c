/* recompression_test.c: batches that their topic stores by another codec. */
#include "base/crc32c.h"
#include "broker/partition_state.h"
#include "lib/broker_rig.h"

static void alter(struct rig *rig, const char *key, const char *value)
{
    struct rig_answer answer = {0};
    const struct topic_change change = {key, value};
    broker_alter_topic(rig->broker, &(struct admin_request){.topic = "orders",
                                                            .changes = &change,
                                                            .change_count = 1,
                                                            .done = rig_admin_done,
                                                            .context = &answer});
    stepped_loop_settle(&rig->fake);
    assert_int_equal(answer.status, STATUS_OK);
}

static int setup(void **state)
{
    struct rig *rig = *state = rig_new_leader();
    rig_create(rig, "orders", 2);
    alter(rig, "compression.type", "zstd");
    return 0;
}

static struct partition *orders(struct rig *rig)
{
    return rig_partition(rig, "orders", 0);
}

static struct shared_bytes *batch_of(struct rig *rig, enum batch_codec codec, int32_t sequence)
{
    struct batch_build_options options = BATCH_BUILD_PLAIN;
    options.codec = codec;
    if (sequence >= 0) {
        options.producer_id = 9;
        options.producer_epoch = 0;
        options.base_sequence = sequence;
    }
    return rig_build(rig, "a value that is said more than once, more than once", 3, &options);
}

static void send_to(struct rig *rig, struct rig_produce *sent, struct partition *partition,
                    enum produce_acks acks, struct shared_bytes *batch)
{
    *sent = (struct rig_produce){.produce = {.partition = partition,
                                             .batch = batch,
                                             .acks = acks,
                                             .allow_zstd = true,
                                             .done = rig_produce_done,
                                             .context = sent}};
    broker_produce(rig->broker, &sent->produce);
}

static void send(struct rig *rig, struct rig_produce *sent, enum batch_codec codec,
                 int32_t sequence)
{
    send_to(rig, sent, orders(rig), ACKS_ALL, batch_of(rig, codec, sequence));
}

/* The header of the batch at `offset`, as it is in the log; its records can be read. */
static struct batch_header stored(struct rig *rig, int64_t offset)
{
    struct log_read read = {
        .offset = offset, .limit_offset = INT64_MAX, .bytes_max = 1 << 20, .at_least_one = true};
    struct batch_header header;
    struct record_iterator iterator;
    struct record record;
    int32_t records = 0;
    assert_int_equal(partition_log_read(orders(rig)->log, &read), STATUS_OK);
    const uint8_t *data = read.pieces[0].shared->data + read.pieces[0].at;
    assert_int_equal(batch_parse(data, read.pieces[0].bytes, true, &header, NULL), STATUS_OK);
    assert_int_equal(header.base_offset, offset);
    assert_true(batch_crc_matches(data, &header));
    assert_int_equal(record_iterator_init(&iterator, data, header.batch_bytes, 1 << 20, NULL),
                     STATUS_OK);
    while (record_iterator_next(&iterator, &record, NULL) == STATUS_OK)
        assert_int_equal(record.offset, offset + records++);
    assert_int_equal(records, header.record_count);
    record_iterator_deinit(&iterator);
    log_read_release(&read);
    return header;
}

static enum batch_codec stored_codec(struct rig *rig, int64_t offset)
{
    return stored(rig, offset).attributes & BATCH_CODEC_MASK;
}

static void what_comes_by_another_codec_is_stored_by_the_topics(void **state)
{
    struct rig *rig = *state;
    static const enum batch_codec codecs[] = {CODEC_NONE, CODEC_GZIP, CODEC_SNAPPY, CODEC_LZ4,
                                              CODEC_ZSTD};
    static const struct {
        const char *type;
        enum batch_codec codec;
    } types[] = {{"zstd", CODEC_ZSTD},
                 {"gzip", CODEC_GZIP},
                 {"snappy", CODEC_SNAPPY},
                 {"lz4", CODEC_LZ4},
                 {"uncompressed", CODEC_NONE}};
    int64_t offset = 0;
    for (size_t t = 0; t < ARRAY_COUNT(types); t++) {
        alter(rig, "compression.type", types[t].type);
        for (size_t c = 0; c < ARRAY_COUNT(codecs); c++) {
            struct rig_produce sent;
            send(rig, &sent, codecs[c], -1);
            stepped_loop_settle(&rig->fake);
            assert_int_equal(sent.calls, 1);
            assert_int_equal(sent.produce.status, STATUS_OK);
            assert_int_equal(sent.produce.base_offset, offset);
            assert_int_equal(stored_codec(rig, offset), types[t].codec);
            offset += 3;
        }
    }
    alter(rig, "compression.type", NULL);
    for (size_t c = 0; c < ARRAY_COUNT(codecs); c++) {
        struct rig_produce sent;
        send(rig, &sent, codecs[c], -1);
        stepped_loop_settle(&rig->fake);
        assert_int_equal(stored_codec(rig, offset), codecs[c]);
        offset += 3;
    }
}

static void what_comes_by_the_topics_codec_stays_as_it_is(void **state)
{
    struct rig *rig = *state;
    struct rig_produce sent;
    alter(rig, "compression.zstd.level", "19");
    struct shared_bytes *batch = batch_of(rig, CODEC_ZSTD, -1);
    size_t bytes = batch->bytes;
    uint64_t jobs = rig->fake.jobs_run;
    send_to(rig, &sent, orders(rig), ACKS_NONE, batch);
    assert_int_equal(sent.calls, 1);
    assert_int_equal(rig->fake.jobs_run, jobs);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(stored(rig, 0).batch_bytes, bytes);
}

static void the_loop_does_none_of_the_work(void **state)
{
    struct rig *rig = *state;
    struct rig_produce sent;
    send(rig, &sent, CODEC_NONE, -1);
    assert_int_equal(partition_log_end(orders(rig)), 0);
    assert_int_equal(rig->fake.job_count, 1);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(sent.produce.status, STATUS_OK);
}

static void what_needs_no_work_waits_for_what_came_before_it(void **state)
{
    struct rig *rig = *state;
    struct rig_produce sent[4];
    static const enum batch_codec codecs[] = {CODEC_GZIP, CODEC_ZSTD, CODEC_NONE, CODEC_ZSTD};
    for (int i = 0; i < 4; i++)
        send(rig, &sent[i], codecs[i], i * 3);
    struct rig_produce other;
    send_to(rig, &other, rig_partition(rig, "orders", 1), ACKS_NONE, batch_of(rig, CODEC_ZSTD, -1));
    assert_int_equal(other.calls, 1); /* of another partition */
    stepped_loop_settle(&rig->fake);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(sent[i].produce.status, STATUS_OK);
        assert_int_equal(sent[i].produce.base_offset, i * 3);
        assert_int_equal(stored_codec(rig, i * 3), CODEC_ZSTD);
        assert_int_equal(stored(rig, i * 3).base_sequence, i * 3);
    }
}

static void a_retry_gets_the_original_offset(void **state)
{
    struct rig *rig = *state;
    struct rig_produce first, again;
    send(rig, &first, CODEC_GZIP, 0);
    send(rig, &again, CODEC_GZIP, 0);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(first.produce.base_offset, 0);
    assert_int_equal(again.produce.status, STATUS_OK);
    assert_true(again.produce.duplicate);
    assert_int_equal(again.produce.base_offset, 0);
    assert_int_equal(partition_log_end(orders(rig)), 3);
}

static void the_time_of_the_append_is_stamped_on_the_new_batch(void **state)
{
    struct rig *rig = *state;
    struct rig_produce sent;
    alter(rig, "message.timestamp.type", "LogAppendTime");
    send(rig, &sent, CODEC_GZIP, -1);
    rig->fake.wall_ms += 77;
    stepped_loop_settle(&rig->fake);
    assert_int_equal(sent.produce.log_append_time_ms, rig->fake.wall_ms);
    struct batch_header header = stored(rig, 0);
    assert_int_equal(header.attributes & BATCH_CODEC_MASK, CODEC_ZSTD);
    assert_true(header.attributes & BATCH_LOG_APPEND_TIME);
    assert_int_equal(header.max_timestamp_ms, rig->fake.wall_ms);
}

static void a_batch_that_outgrows_the_topic_is_refused_at_its_turn(void **state)
{
    struct rig *rig = *state;
    struct rig_produce fits, grows, after;
    alter(rig, "compression.type", "uncompressed");
    alter(rig, "max.message.bytes", "200");
    send(rig, &fits, CODEC_NONE, -1);
    assert_int_equal(fits.produce.status, STATUS_TOO_LARGE); /* as it comes */
    send(rig, &grows, CODEC_GZIP, -1);
    send_to(rig, &after, orders(rig), ACKS_ALL, rig_batch(rig, "v", 3, -1, -1));
    stepped_loop_settle(&rig->fake);
    assert_int_equal(grows.produce.status, STATUS_TOO_LARGE);
    assert_non_null(strstr(grows.produce.error.text, "max.message.bytes is 200"));
    assert_false(grows.produce.appended);
    assert_int_equal(after.produce.status, STATUS_OK);
    assert_int_equal(after.produce.base_offset, 0);
}

static void a_stream_that_cannot_be_read_is_refused(void **state)
{
    struct rig *rig = *state;
    struct rig_produce sent;
    struct batch_header header;
    struct shared_bytes *batch = batch_of(rig, CODEC_GZIP, -1);
    batch->data[BATCH_HEADER_BYTES + 12] ^= 0x55;
    assert_int_equal(batch_parse(batch->data, batch->bytes, true, &header, NULL), STATUS_OK);
    store_u32(batch->data + 17, crc32c(batch->data + 21, batch->bytes - 21));
    send_to(rig, &sent, orders(rig), ACKS_ALL, batch);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(sent.produce.status, STATUS_INVALID_RECORD);
    assert_int_equal(partition_log_end(orders(rig)), 0);
}

static void all_are_answered_when_leadership_goes(void **state)
{
    struct rig *rig = *state;
    struct rig_produce first, second;
    send(rig, &first, CODEC_GZIP, -1);
    send(rig, &second, CODEC_ZSTD, -1);
    rig_follow(rig, 2, 2);
    assert_int_equal(first.produce.status, STATUS_NOT_LEADER);
    assert_int_equal(second.produce.status, STATUS_NOT_LEADER);
    assert_false(first.produce.appended);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(first.calls + second.calls, 2);
    assert_int_equal(partition_log_end(orders(rig)), 0);
}

static void all_are_answered_when_the_topic_goes(void **state)
{
    struct rig *rig = *state;
    struct rig_produce sent;
    struct rig_answer answer = {0};
    broker_delete_topic(
        rig->broker,
        &(struct admin_request){.topic = "orders", .done = rig_admin_done, .context = &answer});
    send(rig, &sent, CODEC_GZIP, -1);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(answer.status, STATUS_OK);
    assert_int_equal(sent.calls, 1);
    assert_true(sent.produce.status == STATUS_UNKNOWN_TOPIC || sent.produce.status == STATUS_OK);
}

static void one_that_is_cancelled_or_out_of_time_holds_up_nobody(void **state)
{
    struct rig *rig = *state;
    struct rig_produce cancelled, late = {0}, last;
    send(rig, &cancelled, CODEC_GZIP, -1);
    late.produce = (struct produce){.partition = orders(rig),
                                    .batch = batch_of(rig, CODEC_GZIP, -1),
                                    .acks = ACKS_ALL,
                                    .allow_zstd = true,
                                    .timeout_us = 1,
                                    .done = rig_produce_done,
                                    .context = &late};
    broker_produce(rig->broker, &late.produce);
    send(rig, &last, CODEC_ZSTD, -1);
    broker_produce_cancel(rig->broker, &cancelled.produce);
    rig->fake.now_us += 10;
    stepped_loop_settle(&rig->fake);
    assert_int_equal(cancelled.calls, 0);
    assert_int_equal(late.calls, 1);
    assert_int_equal(last.produce.status, STATUS_OK);
}

/* Nobody waits for them, but workers have them still: they count, and are not worked at. */
static void what_ran_out_of_time_counts_until_its_worker_let_go_of_it(void **state)
{
    struct rig *rig = *state;
    struct rig_produce late[3], refused, after;
    size_t each = 0;
    for (int i = 0; i < 3; i++) {
        struct shared_bytes *batch = batch_of(rig, CODEC_GZIP, -1);
        each = batch->bytes;
        late[i] = (struct rig_produce){.produce = {.partition = orders(rig),
                                                   .batch = batch,
                                                   .acks = ACKS_ALL,
                                                   .allow_zstd = true,
                                                   .timeout_us = 1,
                                                   .done = rig_produce_done,
                                                   .context = &late[i]}};
        broker_produce(rig->broker, &late[i].produce);
    }
    rig->fake.now_us += 10;
    stepped_loop_run(&rig->fake);
    for (int i = 0; i < 3; i++)
        assert_int_equal(late[i].produce.status, STATUS_TIMEOUT);
    assert_int_equal(rig->broker->recompressing_count, 3);
    rig->broker->settings.unsynced_bytes_max = 3 * each;
    send(rig, &refused, CODEC_GZIP, -1);
    assert_int_equal(refused.produce.status, STATUS_LIMIT);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(rig->broker->recompressing_count, 0);
    assert_int_equal(rig->broker->recompressing_bytes, 0);
    assert_int_equal(rig->broker->stats.recompressed_batches, 0);
    send(rig, &after, CODEC_GZIP, -1);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(after.produce.status, STATUS_OK);
    assert_int_equal(after.produce.base_offset, 0);
}

/* The simulator's crash: nobody is answered, nothing is lost track of. */
static void a_crash_in_the_middle_frees_all(void **state)
{
    struct rig *rig = *state;
    struct rig_produce sent[2];
    send(rig, &sent[0], CODEC_GZIP, -1);
    send(rig, &sent[1], CODEC_ZSTD, -1);
    struct shared_bytes *left = sent[1].produce.batch, *worked = sent[0].produce.batch;
    rig_crash(rig);
    shared_bytes_unref(left);
    shared_bytes_unref(worked);
    assert_int_equal(sent[0].calls + sent[1].calls, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_comes_by_another_codec_is_stored_by_the_topics),
        TEST(what_comes_by_the_topics_codec_stays_as_it_is),
        TEST(the_loop_does_none_of_the_work),
        TEST(what_needs_no_work_waits_for_what_came_before_it),
        TEST(a_retry_gets_the_original_offset),
        TEST(the_time_of_the_append_is_stamped_on_the_new_batch),
        TEST(a_batch_that_outgrows_the_topic_is_refused_at_its_turn),
        TEST(a_stream_that_cannot_be_read_is_refused),
        TEST(all_are_answered_when_leadership_goes),
        TEST(all_are_answered_when_the_topic_goes),
        TEST(one_that_is_cancelled_or_out_of_time_holds_up_nobody),
        TEST(what_ran_out_of_time_counts_until_its_worker_let_go_of_it),
        TEST(a_crash_in_the_middle_frees_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
