/* Static mode: what is on the wire and in the file, what is decided, and a leader with a follower
 * through cuts, lost answers, restarts, refusals and other topics of the same name
 * (native-protocol.md 4.13 and section 7, replication.md section 1). */
#include "lib/static_rig.h"
#include "record/pushed_record.h"

/* ---- one record ---- */

/* native-protocol.md 4.13: key k1, value hello, timestamp 1700000000123. */
static const uint8_t vector[] = {0,    0,    0,    0,    0,    0,    0,    0x1c, 0,
                                 0,    0,    0,    2,    0,    0,    0x01, 0x8b, 0xcf,
                                 0xe5, 0x68, 0x7b, 0xc7, 0x1c, 0x99, 0x22, 'k',  '1',
                                 'h',  'e',  'l',  'l',  'o',  0x2b, 0xc9, 0x42, 0xf2};

static void the_record_of_the_specification_is_read_and_written(void **state)
{
    (void)state;
    struct pushed_record record;
    struct buffer again;
    struct error error;
    assert_int_equal(pushed_record_decode((struct slice){vector, sizeof(vector)}, &record, &error),
                     STATUS_OK);
    assert_int_equal(record.codec, CODEC_NONE);
    assert_false(record.control || record.transactional);
    assert_true(record.timestamp_ms == UINT64_C(1700000000123));
    assert_memory_equal(record.key.data, "k1", 2);
    assert_int_equal(record.value.bytes, 5);
    buffer_init(&again, 0);
    pushed_record_encode(&record, &again);
    assert_int_equal(again.bytes, sizeof(vector));
    assert_memory_equal(again.data, vector, sizeof(vector));
    buffer_deinit(&again);
}

static void a_record_that_is_cut_or_changed_is_refused(void **state)
{
    (void)state;
    struct pushed_record record;
    struct error error;
    for (size_t bytes = 0; bytes < sizeof(vector); bytes++) {
        assert_int_equal(pushed_record_decode((struct slice){vector, bytes}, &record, &error),
                         STATUS_CORRUPT);
    }
    for (size_t i = 0; i < sizeof(vector); i++) {
        uint8_t changed[sizeof(vector) + 1];
        memcpy(changed, vector, sizeof(vector));
        changed[sizeof(vector)] = 0;
        changed[i] ^= 1;
        assert_int_equal(
            pushed_record_decode((struct slice){changed, sizeof(vector)}, &record, &error),
            STATUS_CORRUPT);
        changed[i] ^= 1;
        assert_int_equal(
            pushed_record_decode((struct slice){changed, sizeof(vector) + 1}, &record, &error),
            STATUS_CORRUPT);
    }
}

static void a_record_of_a_transaction_has_ten_bytes_more(void **state)
{
    (void)state;
    struct pushed_record record = {.codec = CODEC_GZIP,
                                   .transactional = true,
                                   .timestamp_ms = 7,
                                   .producer_id = 12,
                                   .producer_epoch = 3,
                                   .key = {NULL, 0},
                                   .value = {(const uint8_t *)"v", 1}};
    struct pushed_record read;
    struct buffer bytes;
    struct error error;
    buffer_init(&bytes, 0);
    pushed_record_encode(&record, &bytes);
    assert_int_equal(bytes.bytes, 8 + 23 + 4 + 1 + 4);
    assert_int_equal(pushed_record_decode(buffer_slice(&bytes), &read, &error), STATUS_OK);
    assert_true(read.transactional && read.producer_id == 12 && read.producer_epoch == 3);
    assert_int_equal(read.codec, CODEC_GZIP);
    buffer_deinit(&bytes);
}

/* ---- the head, the answer, the file ---- */

static const char *field_of_lines(void *context, const char *name)
{
    return field_in(context, name);
}

static void a_push_says_topic_partition_and_position(void **state)
{
    (void)state;
    struct random random;
    struct buffer lines;
    struct error error;
    random_seed(&random, 1);
    struct static_push push = {.topic = "orders",
                               .partition = 2,
                               .source = 7,
                               .has_position = true,
                               .topic_id = uuid_random(&random),
                               .position = 1234567890123};
    buffer_init(&lines, 0);
    static_put_push(&lines, &push);
    buffer_put_u8(&lines, 0);
    char *text = (char *)lines.data;
    assert_string_equal(field_in(text, "X-Partition"), "3"); /* 1-based */
    assert_string_equal(field_in(text, "X-Topic"), "orders");
    assert_string_equal(field_in(text, "X-Replica-ID"), "7");
    struct static_push read;
    assert_int_equal(static_get_push(field_of_lines, text, &read, &error), STATUS_OK);
    assert_string_equal(read.topic, "orders");
    assert_true(read.partition == 2 && read.source == 7 && read.has_position);
    assert_true(read.position == push.position && uuid_equal(&read.topic_id, &push.topic_id));
    buffer_deinit(&lines);
}

static void a_push_that_lacks_a_field_or_has_a_bad_one_is_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "X-Topic: orders\r\n",
        "X-Partition: 1\r\n",
        "X-Topic: or/ders\r\nX-Partition: 1\r\n",
        "X-Topic: orders\r\nX-Partition: 0\r\n",
        "X-Topic: orders\r\nX-Partition: 1x\r\n",
        "X-Topic: orders\r\nX-Partition: -1\r\n",
        "X-Topic: orders\r\nX-Partition: 99999999999999999999\r\n",
        "X-Topic: orders\r\nX-Partition: 1\r\nX-Replica-ID: one\r\n",
        "X-Topic: orders\r\nX-Partition: 1\r\nX-Position: 4\r\n",
        "X-Topic: orders\r\nX-Partition: 1\r\nX-Topic-ID: AAAAAAAAAAAAAAAAAAAAAA\r\nX-Position: "
        "4\r\nX-Replica-ID: 1\r\n",
        "X-Topic: orders\r\nX-Partition: 1\r\nX-Topic-ID: AAAAAAAAAAAAAAAAAAAAAg\r\nX-Replica-ID: "
        "1\r\n",
        "X-Topic: orders\r\nX-Partition: 1\r\nX-Topic-ID: AAAAAAAAAAAAAAAAAAAAAg\r\nX-Position: "
        "4\r\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct static_push push;
        struct error error;
        assert_int_equal(static_get_push(field_of_lines, (void *)(uintptr_t)bad[i], &push, &error),
                         STATUS_INVALID);
    }
}

static struct slice text_slice(const char *text)
{
    return (struct slice){(const uint8_t *)text, strlen(text)};
}

static void an_answer_without_a_position_is_a_plain_followers(void **state)
{
    (void)state;
    struct static_answer answer;
    struct error error;
    assert_int_equal(static_get_answer(text_slice("{\"offset\": 12}"), &answer, &error), STATUS_OK);
    assert_true(answer.offset == 12 && !answer.has_position);
    assert_int_equal(
        static_get_answer(text_slice("{\"offset\":12,\"position\":-1}"), &answer, &error),
        STATUS_OK);
    assert_true(answer.has_position && answer.position == -1);
    static const char *const bad[] = {
        "", "{}", "[]", "{\"offset\":-1}", "{\"offset\":\"1\"}", "{\"offset\":1,\"position\":-2}"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_not_equal(static_get_answer(text_slice(bad[i]), &answer, &error), STATUS_OK);
    }
}

static void count_place(void *context, const struct static_place *place)
{
    struct static_place *last = context;
    *last = *place;
}

static void the_file_is_read_as_it_was_written_or_not_at_all(void **state)
{
    (void)state;
    struct random random;
    struct static_places_writer writer;
    struct buffer file;
    struct error error;
    random_seed(&random, 3);
    struct static_place place = {.topic_id = uuid_random(&random),
                                 .partition = 5,
                                 .source = 1,
                                 .source_topic_id = uuid_random(&random),
                                 .generation = 9,
                                 .position = 77,
                                 .end = 66};
    buffer_init(&file, 0);
    static_places_begin(&writer);
    static_places_put(&writer, &place);
    static_places_finish(&writer, &file);
    struct static_place read = {0};
    assert_int_equal(static_places_decode(buffer_slice(&file), count_place, &read, &error),
                     STATUS_OK);
    assert_true(uuid_equal(&read.topic_id, &place.topic_id) && read.partition == 5);
    assert_true(uuid_equal(&read.source_topic_id, &place.source_topic_id) && read.source == 1);
    assert_true(read.generation == 9 && read.position == 77 && read.end == 66);
    assert_int_equal(file.data[file.bytes - 1], '\n');
    for (size_t bytes = 0; bytes + 1 < file.bytes; bytes++) {
        assert_int_equal(
            static_places_decode((struct slice){file.data, bytes}, count_place, &read, &error),
            STATUS_CORRUPT);
    }
    buffer_deinit(&file);
}

/* ---- what is decided ---- */

static void a_copy_is_asked_before_anything_is_sent(void **state)
{
    (void)state;
    struct static_copy copy = {.position = -1, .told = -1, .ask = true};
    assert_int_equal(static_copy_task(&copy, 10, 0), STATIC_ASK);
    assert_int_equal(static_copy_told(&copy, 4, 10), STATIC_TOLD_WELL);
    assert_int_equal(static_copy_task(&copy, 10, 0), STATIC_SEND);
    copy.busy = true;
    assert_int_equal(static_copy_task(&copy, 10, 0), STATIC_NOTHING);
    copy.busy = false;
    copy.not_before = 5;
    assert_int_equal(static_copy_task(&copy, 10, 4), STATIC_WAIT);
    assert_int_equal(static_copy_task(&copy, 10, 5), STATIC_SEND);
    assert_int_equal(static_copy_told(&copy, 10, 10), STATIC_TOLD_WELL);
    assert_int_equal(static_copy_task(&copy, 10, 5), STATIC_NOTHING);
    copy.ask = true; /* its connection came anew */
    assert_int_equal(static_copy_task(&copy, 10, 5), STATIC_ASK);
    assert_true(copy.position == 10); /* and it counts all the same */
}

static void a_copy_that_went_back_is_copied_again_and_one_ahead_counts_for_nothing(void **state)
{
    (void)state;
    struct static_copy copy = {.position = -1, .told = -1, .ask = true};
    (void)static_copy_told(&copy, 8, 10);
    assert_int_equal(static_copy_told(&copy, 3, 10), STATIC_TOLD_BACK);
    assert_true(copy.position == 3);
    assert_int_equal(static_copy_told(&copy, -1, 10), STATIC_TOLD_BACK);
    assert_true(copy.position == 0);
    assert_int_equal(static_copy_told(&copy, 11, 10), STATIC_TOLD_AHEAD);
    assert_true(copy.position == -1 && copy.ask);
}

static void what_is_nothing_to_push_counts_as_held(void **state)
{
    (void)state;
    struct static_copy copy = {.position = -1, .told = -1, .ask = true};
    (void)static_copy_told(&copy, 8, 10);
    static_copy_skipped(&copy, 10);
    assert_true(copy.position == 10 && copy.told == 8);
    /* The follower says the same as before: it is still so. */
    assert_int_equal(static_copy_told(&copy, 8, 10), STATIC_TOLD_WELL);
    assert_true(copy.position == 10);
}

static void acks_wait_for_every_follower_whatever_the_lag_allowed(void **state)
{
    (void)state;
    struct static_copy copies[2] = {{.position = 7}, {.position = 5}};
    assert_true(static_copied_to(copies, 2) == 5);
    copies[1].position = -1;
    assert_true(static_copied_to(copies, 2) == 0);
}

static void the_high_watermark_is_that_of_followers_within_lag_max(void **state)
{
    (void)state;
    struct static_copy copies[2] = {{.position = 100}, {.position = 40}};
    int64_t mark;
    assert_true(static_high_watermark(copies, 2, 100, 0, &mark) && mark == 100);
    assert_true(static_high_watermark(copies, 2, 100, 59, &mark) && mark == 100);
    assert_true(static_high_watermark(copies, 2, 100, 60, &mark) && mark == 40);
    assert_false(static_high_watermark(copies, 2, 101, 0, &mark)); /* nobody counts */
    copies[0].position = -1;
    assert_false(static_high_watermark(copies, 2, 100, 59, &mark));
}

static void a_sequence_names_one_offset_above_what_is_known(void **state)
{
    (void)state;
    static const int64_t offsets[] = {
        0, 1, INT32_MAX, (int64_t)INT32_MAX + 1, INT64_C(5000000000), INT64_C(1) << 50};
    for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
        int64_t known = offsets[i] > 1000 ? offsets[i] - 1000 : 0;
        int32_t sequence = static_sequence_of(offsets[i]);
        assert_true(sequence >= 0);
        assert_true(static_offset_of(known, sequence) == offsets[i]);
        assert_true(static_offset_of(offsets[i], sequence) == offsets[i]);
    }
}

static void a_batch_is_new_or_here_or_astride(void **state)
{
    (void)state;
    assert_int_equal(static_take(10, 10, 12), STATIC_TAKE);
    assert_int_equal(static_take(10, 15, 19), STATIC_TAKE); /* what lies between is no record */
    assert_int_equal(static_take(10, 5, 9), STATIC_HAVE);
    assert_int_equal(static_take(10, 9, 10), STATIC_ASTRIDE);
}

/* ---- leader and follower ---- */

static void what_clients_produce_is_pushed_and_acknowledged(void **state)
{
    struct pair *pair = pair_new(0);
    struct rig_produce sent;
    int64_t mark;
    (void)state;
    rig_create(&pair->leader_rig, "orders", 1);
    rig_create(&pair->follower_rig, "orders", 1);
    rig_send(&pair->leader_rig, &sent, at_leader(pair), ACKS_ALL,
             rig_batch(&pair->leader_rig, "a", 3, -1, -1));
    stepped_loop_settle(&pair->leader_rig.fake);
    assert_int_equal(sent.calls, 0); /* durable here is not enough */
    assert_true(partition_high_watermark(at_leader(pair)) == 3);
    assert_false(static_leader_high_watermark(pair->leader, at_leader(pair), &mark));
    pair_run(pair, 100000);
    assert_int_equal(sent.calls, 1);
    assert_int_equal(sent.produce.status, STATUS_OK);
    assert_string_equal(pair_values(pair, at_follower(pair)), "a a a");
    assert_true(static_leader_high_watermark(pair->leader, at_leader(pair), &mark) && mark == 3);
    assert_int_equal(pair->alarms, 0);
    pair_free(pair);
}

static void a_follower_that_is_away_fails_acks_all_in_time_and_is_caught_up(void **state)
{
    struct pair *pair = pair_new(0);
    struct rig_produce sent;
    (void)state;
    rig_create(&pair->leader_rig, "orders", 1);
    rig_create(&pair->follower_rig, "orders", 1);
    pair_write(pair, "a", 2);
    pair_run(pair, 100000);
    pair->away = true;
    pair_run(pair, 100000);
    assert_false(pair_facts(pair).connected);
    rig_send(&pair->leader_rig, &sent, at_leader(pair), ACKS_ALL,
             rig_batch(&pair->leader_rig, "b", 2, -1, -1));
    pair_run(pair, 1000000);
    assert_int_equal(sent.calls, 0);
    pair_run(pair, pair->leader_rig.settings.ack_timeout_us);
    assert_int_equal(sent.calls, 1);
    assert_int_equal(sent.produce.status, STATUS_TIMEOUT);
    assert_int_equal(pair_facts(pair).lag_records, 2);
    pair->away = false;
    pair_run(pair, 1000000);
    assert_string_equal(pair_values(pair, at_follower(pair)), "a a b b");
    assert_int_equal(pair_facts(pair).lag_records, 0);
    pair_free(pair);
}

static void a_lost_answer_doubles_nothing(void **state)
{
    struct pair *pair = pair_new(0);
    (void)state;
    rig_create(&pair->leader_rig, "orders", 1);
    rig_create(&pair->follower_rig, "orders", 1);
    pair_run(pair, 100000);
    for (int i = 0; i < 5; i++) {
        pair_write(pair, "x", 1);
        pair->lose_answer = true;
        pair_run(pair, 600000);
        assert_false(pair->lose_answer);
    }
    assert_string_equal(pair_values(pair, at_follower(pair)), "x x x x x");
    assert_int_equal(pair_facts(pair).lag_records, 0);
    pair_free(pair);
}

static void a_follower_that_crashed_knows_from_its_log_how_far_it_got(void **state)
{
    struct pair *pair = pair_new(0);
    (void)state;
    rig_create(&pair->leader_rig, "orders", 1);
    rig_create(&pair->follower_rig, "orders", 1);
    for (int i = 0; i < 6; i++) {
        char text[16];
        snprintf(text, sizeof(text), "r%d", i);
        pair_write(pair, text, 1);
        /* Some of the time the file is as new as the log, and some of the time not. */
        pair_run(pair, i % 2 == 0 ? 40000 : 1200000);
        if (i % 3 == 2) pair->lose_answer = true;
        pair_write(pair, "and", 1);
        pair_run(pair, 400000);
        pair->away = true;
        pair_run(pair, 20000);
        pair_crash_follower(pair, false);
        pair->away = false;
        pair_run(pair, 500000);
    }
    assert_string_equal(pair_values(pair, at_follower(pair)),
                        "r0 and r1 and r2 and r3 and r4 and r5 and");
    assert_int_equal(pair->alarms, 0);
    pair_free(pair);
}

static void a_leader_that_restarts_goes_on_where_the_follower_is(void **state)
{
    struct pair *pair = pair_new(0);
    (void)state;
    rig_create(&pair->leader_rig, "orders", 1);
    rig_create(&pair->follower_rig, "orders", 1);
    pair_write(pair, "a", 1);
    pair_run(pair, 100000);
    pair_restart_leader(pair, false);
    pair_write(pair, "b", 1);
    uint32_t pushes = pair->pushes;
    pair_run(pair, 500000);
    assert_string_equal(pair_values(pair, at_follower(pair)), "a b");
    assert_int_equal(pair->pushes, pushes + 1);
    pair_free(pair);
}

static void a_topic_that_is_missing_is_a_refusal_by_name_until_it_is_there(void **state)
{
    struct pair *pair = pair_new(0);
    (void)state;
    rig_create(&pair->leader_rig, "orders", 1);
    pair_write(pair, "a", 1);
    pair_run(pair, 100000);
    struct static_follower_facts facts = pair_facts(pair);
    assert_int_equal(facts.refused_partitions, 1);
    assert_non_null(strstr(facts.refusal, "orders/0: replica 2"));
    assert_non_null(strstr(facts.refusal, "no topic orders here"));
    assert_int_equal(pair->last_alarm, ALARM_FOLLOWER_REFUSED);
    rig_create(&pair->follower_rig, "orders", 1);
    pair_run(pair, 1500000);
    facts = pair_facts(pair);
    assert_int_equal(facts.refused_partitions, 0);
    assert_string_equal(facts.refusal, "");
    assert_string_equal(pair_values(pair, at_follower(pair)), "a");
    pair_free(pair);
}

static void a_follower_of_another_past_is_refused_by_name(void **state)
{
    struct pair *pair = pair_new(0);
    struct buffer lines;
    (void)state;
    rig_create(&pair->leader_rig, "orders", 1);
    rig_create(&pair->follower_rig, "orders", 1);
    pair_write(pair, "a", 1);
    pair_run(pair, 100000);
    /* The leader's DataDir as it was, when another life of it had written more. */
    struct static_push push = {.topic = "orders", .source = 1, .has_position = true, .position = 1};
    push.topic_id = *topic_uid(partition_topic(at_leader(pair)));
    struct shared_bytes *more = rig_batch(&pair->leader_rig, "lost", 5, -1, -1);
    batch_set_base_offset(more->data, 1);
    buffer_init(&lines, 0);
    static_put_push(&lines, &push);
    buffer_put_u8(&lines, 0);
    struct arrival arrival =
        pair_push(pair, (char *)lines.data, (struct slice){more->data, more->bytes});
    assert_int_equal(arrival.status, 200);
    buffer_deinit(&arrival.answer);
    buffer_deinit(&lines);
    shared_bytes_unref(more);
    pair_write(pair, "b", 1);
    pair_run(pair, 500000);
    assert_non_null(strstr(pair_facts(pair).refusal, "older DataDir"));
    int64_t mark;
    assert_false(static_leader_high_watermark(pair->leader, at_leader(pair), &mark));
    pair_free(pair);
}

static void a_topic_made_anew_at_the_leader_is_copied_from_its_first_record(void **state)
{
    struct pair *pair = pair_new(0);
    struct rig_answer answer = {0};
    (void)state;
    rig_create(&pair->leader_rig, "orders", 1);
    rig_create(&pair->follower_rig, "orders", 1);
    pair_write(pair, "old", 3);
    pair_run(pair, 100000);
    broker_delete_topic(
        pair->leader_rig.broker,
        &(struct admin_request){.topic = "orders", .done = rig_admin_done, .context = &answer});
    stepped_loop_settle(&pair->leader_rig.fake);
    assert_int_equal(answer.status, STATUS_OK);
    rig_create(&pair->leader_rig, "orders", 1);
    pair_write(pair, "new", 1);
    pair_run(pair, 500000);
    assert_string_equal(pair_values(pair, at_follower(pair)), "old old old new");
    /* What was of the old one behind the file's mark is not taken for the new one's. */
    pair_crash_follower(pair, false);
    pair_write(pair, "more", 1);
    pair_run(pair, 1000000);
    assert_string_equal(pair_values(pair, at_follower(pair)), "old old old new more");
    pair_free(pair);
}

static void what_was_pushed_here_is_not_pushed_on_and_nobody_waits_for_it(void **state)
{
    struct pair *pair = pair_new(0);
    struct rig_produce sent;
    (void)state;
    rig_create(&pair->leader_rig, "orders", 1);
    rig_create(&pair->follower_rig, "orders", 1);
    struct shared_bytes *batch =
        rig_batch(&pair->leader_rig, "foreign", 1, STATIC_PRODUCER_ID_BASE + 9, 0);
    struct error error;
    batch_set_leader_epoch(batch->data, -1);
    assert_int_equal(partition_follow_append(at_leader(pair), batch, false, &error), STATUS_OK);
    shared_bytes_unref(batch);
    stepped_loop_settle(&pair->leader_rig.fake);
    pair_run(pair, 100000);
    assert_string_equal(pair_values(pair, at_follower(pair)), "");
    assert_int_equal(pair_facts(pair).lag_records, 0);
    rig_send(&pair->leader_rig, &sent, at_leader(pair), ACKS_ALL,
             rig_batch(&pair->leader_rig, "own", 1, -1, -1));
    pair_run(pair, 100000);
    assert_int_equal(sent.calls, 1);
    assert_string_equal(pair_values(pair, at_follower(pair)), "own");
    pair_free(pair);
}

static void a_plain_record_is_taken_as_the_specification_says(void **state)
{
    struct pair *pair = pair_new(0);
    (void)state;
    rig_create(&pair->follower_rig, "orders", 1);
    const char *head = "X-Replica-ID: 4\r\nX-Topic: orders\r\nX-Partition: 1\r\n";
    struct slice record = {vector, sizeof(vector)};
    for (int i = 1; i <= 2; i++) {
        struct arrival arrival = pair_push(pair, head, record);
        struct static_answer said;
        struct error error;
        assert_int_equal(arrival.status, 200);
        assert_int_equal(static_get_answer(buffer_slice(&arrival.answer), &said, &error),
                         STATUS_OK);
        assert_true(said.offset == i && !said.has_position);
        buffer_deinit(&arrival.answer);
    }
    assert_string_equal(pair_values(pair, at_follower(pair)), "hello hello");
    static const struct {
        const char *head;
        size_t bytes;
        int status;
    } bad[] = {
        {"X-Replica-ID: 4\r\nX-Partition: 1\r\n", sizeof(vector), 400},
        {"X-Topic: orders\r\n", sizeof(vector), 400},
        {"X-Topic: orders\r\nX-Partition: 2\r\n", sizeof(vector), 500},
        {"X-Topic: nowhere\r\nX-Partition: 1\r\n", sizeof(vector), 500},
        {"X-Topic: orders\r\nX-Partition: 1\r\n", sizeof(vector) - 1, 500},
        {"X-Topic: __consumer_offsets\r\nX-Partition: 1\r\n", sizeof(vector), 500},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct arrival arrival = pair_push(pair, bad[i].head, (struct slice){vector, bad[i].bytes});
        assert_int_equal(arrival.status, bad[i].status);
        buffer_deinit(&arrival.answer);
    }
    assert_string_equal(pair_values(pair, at_follower(pair)), "hello hello");
    pair_free(pair);
}

static void an_emptied_follower_is_copied_to_anew(void **state)
{
    struct pair *pair = pair_new(0);
    struct rig_answer answer = {0};
    (void)state;
    rig_create(&pair->leader_rig, "orders", 1);
    rig_create(&pair->follower_rig, "orders", 1);
    pair_write(pair, "a", 2);
    pair_run(pair, 100000);
    broker_delete_topic(
        pair->follower_rig.broker,
        &(struct admin_request){.topic = "orders", .done = rig_admin_done, .context = &answer});
    stepped_loop_settle(&pair->follower_rig.fake);
    rig_create(&pair->follower_rig, "orders", 1);
    pair_write(pair, "b", 1);
    pair_run(pair, 500000);
    assert_string_equal(pair_values(pair, at_follower(pair)), "a a b");
    assert_int_equal(pair->last_alarm, ALARM_DURABLE_WENT_BACK);
    pair_free(pair);
}

/* ---- at random ---- */

#define WALK_STEPS 60
#define WALK_SENT  200

struct walk {
    struct pair *pair;
    struct random random;
    struct rig_produce *sent[WALK_SENT]; /* with acks=all; NULL: its broker is gone */
    bool acknowledged[WALK_SENT];
    uint32_t count;
};

static void walk_send(struct walk *walk)
{
    char text[16];
    if (walk->count == WALK_SENT) return;
    uint32_t number = walk->count++;
    struct pair *pair = walk->pair;
    snprintf(text, sizeof(text), "v%u", number);
    walk->sent[number] = calloc(1, sizeof(*walk->sent[number]));
    rig_send(&pair->leader_rig, walk->sent[number], at_leader(pair), ACKS_ALL,
             rig_batch(&pair->leader_rig, text, 1, -1, -1));
}

static void walk_note_answers(struct walk *walk)
{
    for (uint32_t i = 0; i < walk->count; i++) {
        if (walk->sent[i] == NULL || walk->sent[i]->calls == 0) continue;
        walk->acknowledged[i] = walk->sent[i]->produce.status == STATUS_OK;
        free(walk->sent[i]);
        walk->sent[i] = NULL;
    }
}

/* How often the value stands in the text of values. */
static uint32_t times_in(const char *values, uint32_t number)
{
    char text[16];
    uint32_t times = 0;
    size_t bytes = (size_t)snprintf(text, sizeof(text), "v%u", number);
    for (const char *at = values; (at = strstr(at, text)) != NULL; at += bytes) {
        times += at[bytes] == ' ' || at[bytes] == '\0';
    }
    return times;
}

/* What was acknowledged is at the follower once, whatever just happened to it. */
static void walk_check(struct walk *walk)
{
    const char *values = pair_values(walk->pair, at_follower(walk->pair));
    for (uint32_t i = 0; i < walk->count; i++) {
        uint32_t times = times_in(values, i);
        assert_true(times <= 1);
        if (walk->acknowledged[i]) assert_int_equal(times, 1);
    }
}

static void walk_restart_leader(struct walk *walk)
{
    walk_note_answers(walk);
    for (uint32_t i = 0; i < walk->count; i++) {
        free(walk->sent[i]);
        walk->sent[i] = NULL;
    }
    pair_restart_leader(walk->pair, random_below(&walk->random, 2) == 0);
}

static void walk_step(struct walk *walk)
{
    struct pair *pair = walk->pair;
    switch (random_below(&walk->random, 10)) {
    case 0: pair->away = !pair->away; break;
    case 1: pair->lose_answer = true; break;
    case 2: pair->cut_after = (int)random_below(&walk->random, 6); break;
    case 3: pair_crash_follower(pair, random_below(&walk->random, 2) == 0); break;
    case 4: walk_restart_leader(walk); break;
    case 5: pair_run(pair, 1500000); break;
    default:
        for (uint32_t i = random_below(&walk->random, 5); i > 0; i--)
            walk_send(walk);
        break;
    }
    pair_run(pair, 20000 * (int64_t)random_below(&walk->random, 20));
    walk_note_answers(walk);
    walk_check(walk);
}

/* In the end the follower has what the leader has, in its order, and nothing twice. */
static void walk_whole(uint64_t seed)
{
    struct walk walk = {.pair = pair_new(0)};
    struct pair *pair = walk.pair;
    random_seed(&walk.random, seed);
    rig_create(&pair->leader_rig, "orders", 1);
    rig_create(&pair->follower_rig, "orders", 1);
    for (int i = 0; i < WALK_STEPS; i++)
        walk_step(&walk);
    pair->away = pair->lose_answer = false;
    pair->cut_after = -1;
    pair_run(pair, 10000000);
    walk_note_answers(&walk);
    walk_check(&walk);
    char at_end[4096];
    snprintf(at_end, sizeof(at_end), "%s", pair_values(pair, at_leader(pair)));
    assert_string_equal(pair_values(pair, at_follower(pair)), at_end);
    assert_int_equal(pair_facts(pair).lag_records, 0);
    assert_int_equal(pair->alarms, 0);
    for (uint32_t i = 0; i < walk.count; i++)
        free(walk.sent[i]);
    pair_free(pair);
}

static void nothing_is_lost_or_doubled_whatever_happens_in_between(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 25; seed++)
        walk_whole(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_record_of_the_specification_is_read_and_written),
        cmocka_unit_test(a_record_that_is_cut_or_changed_is_refused),
        cmocka_unit_test(a_record_of_a_transaction_has_ten_bytes_more),
        cmocka_unit_test(a_push_says_topic_partition_and_position),
        cmocka_unit_test(a_push_that_lacks_a_field_or_has_a_bad_one_is_refused),
        cmocka_unit_test(an_answer_without_a_position_is_a_plain_followers),
        cmocka_unit_test(the_file_is_read_as_it_was_written_or_not_at_all),
        cmocka_unit_test(a_copy_is_asked_before_anything_is_sent),
        cmocka_unit_test(a_copy_that_went_back_is_copied_again_and_one_ahead_counts_for_nothing),
        cmocka_unit_test(what_is_nothing_to_push_counts_as_held),
        cmocka_unit_test(acks_wait_for_every_follower_whatever_the_lag_allowed),
        cmocka_unit_test(the_high_watermark_is_that_of_followers_within_lag_max),
        cmocka_unit_test(a_sequence_names_one_offset_above_what_is_known),
        cmocka_unit_test(a_batch_is_new_or_here_or_astride),
        cmocka_unit_test(what_clients_produce_is_pushed_and_acknowledged),
        cmocka_unit_test(a_follower_that_is_away_fails_acks_all_in_time_and_is_caught_up),
        cmocka_unit_test(a_lost_answer_doubles_nothing),
        cmocka_unit_test(a_follower_that_crashed_knows_from_its_log_how_far_it_got),
        cmocka_unit_test(a_leader_that_restarts_goes_on_where_the_follower_is),
        cmocka_unit_test(a_topic_that_is_missing_is_a_refusal_by_name_until_it_is_there),
        cmocka_unit_test(a_follower_of_another_past_is_refused_by_name),
        cmocka_unit_test(a_topic_made_anew_at_the_leader_is_copied_from_its_first_record),
        cmocka_unit_test(what_was_pushed_here_is_not_pushed_on_and_nobody_waits_for_it),
        cmocka_unit_test(a_plain_record_is_taken_as_the_specification_says),
        cmocka_unit_test(an_emptied_follower_is_copied_to_anew),
        cmocka_unit_test(nothing_is_lost_or_doubled_whatever_happens_in_between),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
