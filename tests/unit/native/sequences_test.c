/* Idempotent produces of the native front end on a real broker (native-protocol.md 4.5, 4.6). */
#include "native/sequences.h"

#include "unit/native/front_end.h"

static struct client client;
static int64_t producer_id;
static uint16_t producer_epoch;

static int64_t init_named(const char *name)
{
    struct wire_init_producer_id init = {.has_name = name != NULL,
                                         .name = wire_text(name != NULL ? name : "")};
    union wire_message message =
        client_expect(&client, client_ask(&client, WIRE_INIT_PRODUCER_ID, &init), WIRE_PRODUCER_ID);
    producer_epoch = message.producer_id.epoch;
    return message.producer_id.producer_id;
}

static int64_t init_producer(void)
{
    int64_t id = init_named(NULL);
    assert_int_equal(producer_epoch, 0);
    return id;
}

static int greet(void **state)
{
    client_open(&client, *state);
    client_greet(&client);
    producer_id = init_producer();
    return 0;
}

static int leave(void **state)
{
    (void)state;
    client_free(&client);
    return 0;
}

static uint64_t ask_one(const char *topic, uint32_t sequence)
{
    struct wire_produce_idempotent produce = {.producer_id = producer_id,
                                              .sequence = sequence,
                                              .epoch = producer_epoch,
                                              .topic = wire_text(topic),
                                              .key = wire_text(""),
                                              .value = wire_text("v")};
    return client_ask(&client, WIRE_PRODUCE_IDEMPOTENT, &produce);
}

static struct wire_ack produce_one(const char *topic, uint32_t sequence)
{
    return client_expect(&client, ask_one(topic, sequence), WIRE_PRODUCE_ACK).ack;
}

/* Records of keys k<sequence> (or of none) from `sequence` on. */
static uint64_t ask_batch(const char *topic, uint32_t sequence, uint32_t count, bool keys)
{
    struct buffer items;
    buffer_init(&items, 0);
    for (uint32_t i = 0; i < count; i++) {
        char key[16] = "";
        if (keys) snprintf(key, sizeof(key), "k%u", sequence + i);
        struct wire_key_value record = {wire_text(key), wire_text("v")};
        wire_put(&items, &wire_shape_key_value, &record);
    }
    struct wire_produce_batch batch = {.flags = WIRE_BATCH_IDEMPOTENT,
                                       .topic = wire_text(topic),
                                       .producer_id = producer_id,
                                       .base_sequence = sequence,
                                       .epoch = producer_epoch,
                                       .records = {count, buffer_slice(&items)}};
    uint64_t number = client_ask(&client, WIRE_PRODUCE_BATCH, &batch);
    buffer_deinit(&items);
    return number;
}

static void expect_acks(uint64_t number, struct wire_ack *acks, uint32_t count)
{
    union wire_message message = client_expect(&client, number, WIRE_PRODUCE_BATCH_ACK);
    struct wire_cursor cursor;
    assert_int_equal(message.produce_batch_ack.error_code, 0);
    assert_int_equal(message.produce_batch_ack.acks.count, count);
    wire_cursor_init(&cursor, &message.produce_batch_ack.acks, &wire_shape_ack);
    for (uint32_t i = 0; i < count; i++)
        assert_true(wire_cursor_next(&cursor, &acks[i]));
}

static int64_t records_of(const char *topic)
{
    struct wire_list_offsets list = {.topic = wire_text(topic)};
    union wire_message message =
        client_expect(&client, client_ask(&client, WIRE_LIST_OFFSETS, &list), WIRE_OFFSETS);
    struct wire_cursor cursor;
    struct wire_partition_offsets item;
    int64_t sum = 0;
    wire_cursor_init(&cursor, &message.offsets.partitions, &wire_shape_partition_offsets);
    while (wire_cursor_next(&cursor, &item))
        sum += item.latest;
    return sum;
}

static void run_done(void *context, struct produce *produce)
{
    assert_int_equal(produce->status, STATUS_OK);
    *(bool *)context = true;
}

/* A run of this producer's that is in a partition's log, whatever the other partitions have. */
static void write_run(const char *topic, uint32_t partition, uint32_t sequence, uint32_t count)
{
    struct batch_builder builder;
    struct buffer bytes;
    struct error error;
    bool done = false;
    struct batch_build_options options = BATCH_BUILD_PLAIN;
    options.producer_id = producer_id;
    options.producer_epoch = (int16_t)producer_epoch;
    options.base_sequence = (int32_t)sequence;
    batch_builder_init(&builder);
    buffer_init(&bytes, 0);
    for (uint32_t i = 0; i < count; i++)
        batch_builder_add(&builder, 1, (struct slice){0}, wire_text("v"), 0, (struct slice){0});
    assert_int_equal(batch_builder_finish(&builder, &options, &bytes, &error), STATUS_OK);
    struct broker *broker = client.front->broker;
    struct produce produce = {
        .partition = topic_partition(catalog_find(broker, topic, strlen(topic)), partition),
        .batch = shared_bytes_copy(bytes.data, bytes.bytes),
        .acks = ACKS_LEADER,
        .rules = PRODUCER_RULES_NATIVE,
        .done = run_done,
        .context = &done};
    broker_produce(broker, &produce);
    while (!done)
        front_end_turn(client.front);
    batch_builder_deinit(&builder);
    buffer_deinit(&bytes);
}

/* ---- claims ---- */

static void each_init_without_a_name_gives_an_id_of_its_own(void **state)
{
    (void)state;
    int64_t first = producer_id;
    assert_int_not_equal(init_producer(), first);
}

static void a_record_sent_again_is_answered_with_its_first_offset(void **state)
{
    (void)state;
    client_create_topic(&client, "again", 1);
    assert_int_equal(produce_one("again", 0).offset, 0);
    assert_int_equal(produce_one("again", 1).offset, 1);
    assert_int_equal(produce_one("again", 1).offset, 1);
    assert_int_equal(produce_one("again", 0).offset, 0); /* older ones, too (F21) */
    assert_int_equal(produce_one("again", 2).offset, 2);
    assert_int_equal(records_of("again"), 3);
}

static void a_sequence_that_skips_is_refused(void **state)
{
    (void)state;
    client_create_topic(&client, "skip", 1);
    client_expect_error(&client, ask_one("skip", 1), WIRE_CODE_OUT_OF_ORDER_SEQUENCE);
    assert_int_equal(produce_one("skip", 0).offset, 0);
    client_expect_error(&client, ask_one("skip", 2), WIRE_CODE_OUT_OF_ORDER_SEQUENCE);
    assert_int_equal(produce_one("skip", 1).offset, 1);
}

/* The partition remembers five batches; who asks for an older one is told by the log. */
static void a_record_sent_long_ago_is_looked_for_in_the_log(void **state)
{
    (void)state;
    struct wire_ack acks[40];
    client_create_topic(&client, "long", 1);
    for (uint32_t i = 0; i < 40; i++)
        produce_one("long", i);
    assert_int_equal(produce_one("long", 0).offset, 0);
    assert_int_equal(produce_one("long", 30).offset, 30);
    expect_acks(ask_batch("long", 10, 35, false), acks, 35);
    for (uint32_t i = 0; i < 35; i++)
        assert_int_equal(acks[i].offset, 10 + i);
    assert_int_equal(records_of("long"), 45);
}

static void a_sequence_that_is_nowhere_in_the_log_is_refused(void **state)
{
    (void)state;
    client_create_topic(&client, "gone", 1);
    for (uint32_t i = 0; i < 7; i++)
        write_run("gone", 0, 3 * i, 2); /* and every third is nobody's */
    assert_int_equal(produce_one("gone", 0).offset, 0);
    client_expect_error(&client, ask_one("gone", 2), WIRE_CODE_OUT_OF_ORDER_SEQUENCE);
    union wire_message message =
        client_expect(&client, ask_batch("gone", 1, 3, false), WIRE_PRODUCE_BATCH_ACK);
    assert_int_equal(message.produce_batch_ack.acks.count, 1);
    assert_int_equal(message.produce_batch_ack.error_code, WIRE_CODE_OUT_OF_ORDER_SEQUENCE);
    assert_int_equal(records_of("gone"), 14);
}

/* Another leader answers: what the connection remembered is gone with it. */
static void a_batch_of_many_runs_is_answered_on_another_connection(void **state)
{
    struct wire_ack first[200], again[200];
    client_create_topic(&client, "resumed", 3);
    expect_acks(ask_batch("resumed", 0, 200, true), first, 200);
    client_free(&client);
    client_open(&client, *state);
    client_greet(&client);
    struct wire_init_producer_id init = {.has_name = true,
                                         .name = wire_text(""),
                                         .has_resume = true,
                                         .producer_id = producer_id,
                                         .epoch = producer_epoch};
    client_expect(&client, client_ask(&client, WIRE_INIT_PRODUCER_ID, &init), WIRE_PRODUCER_ID);
    expect_acks(ask_batch("resumed", 0, 200, true), again, 200);
    assert_memory_equal(first, again, sizeof(first));
    assert_int_equal(records_of("resumed"), 200);
}

static void singles_and_batches_share_one_sequence_over_all_partitions(void **state)
{
    (void)state;
    struct wire_ack first[40], again[40];
    client_create_topic(&client, "shared", 3);
    produce_one("shared", 0);
    expect_acks(ask_batch("shared", 1, 40, false), first, 40);
    expect_acks(ask_batch("shared", 1, 40, false), again, 40);
    assert_memory_equal(first, again, sizeof(first));
    produce_one("shared", 41);
    assert_int_equal(records_of("shared"), 42);
}

static void keys_decide_the_partition_of_a_sequenced_record(void **state)
{
    (void)state;
    struct wire_ack acks[30];
    client_create_topic(&client, "keyed", 4);
    expect_acks(ask_batch("keyed", 0, 30, true), acks, 30);
    int64_t next[4] = {0};
    for (uint32_t i = 0; i < 30; i++) {
        char key[16];
        snprintf(key, sizeof(key), "k%u", i);
        assert_int_equal(acks[i].partition, wire_key_hash(wire_text(key)) % 4);
        assert_int_equal(acks[i].offset, next[acks[i].partition]++);
    }
}

/* F21: part of it is there, the rest is not. */
static void a_batch_that_is_there_in_part_is_completed(void **state)
{
    (void)state;
    struct wire_ack first[3], whole[8];
    client_create_topic(&client, "part", 1);
    expect_acks(ask_batch("part", 0, 3, true), first, 3);
    expect_acks(ask_batch("part", 0, 8, true), whole, 8);
    for (int64_t i = 0; i < 8; i++)
        assert_int_equal(whole[i].offset, i);
    assert_int_equal(records_of("part"), 8);
}

/* More runs in a partition than that remembers of a producer. */
static void a_batch_of_many_runs_sent_again_is_answered_as_before(void **state)
{
    (void)state;
    struct wire_ack first[200], second[200], again[200];
    client_create_topic(&client, "runs", 4);
    expect_acks(ask_batch("runs", 0, 200, true), first, 200);
    expect_acks(ask_batch("runs", 200, 200, true), second, 200);
    expect_acks(ask_batch("runs", 200, 200, true), again, 200);
    assert_memory_equal(second, again, sizeof(again));
    expect_acks(ask_batch("runs", 0, 200, true), again, 200);
    assert_memory_equal(first, again, sizeof(again));
    assert_int_equal(records_of("runs"), 400);
}

/* Its leader died before all partitions had replicated it: two have their parts whole, one has the
 * first of its two runs, one has nothing. */
static void what_was_lost_of_a_batch_is_written_when_it_is_sent_again(void **state)
{
    (void)state;
    struct wire_ack first[24], again[24];
    int64_t next[4] = {0};
    uint32_t runs_of_2 = 0;
    client_create_topic(&client, "lost", 4);
    for (uint32_t i = 0; i < 24; i++) {
        char key[16];
        snprintf(key, sizeof(key), "k%u", i);
        uint32_t partition = wire_key_hash(wire_text(key)) % 4;
        bool kept = partition < 2 || (partition == 2 && runs_of_2++ == 0);
        if (kept) write_run("lost", partition, i, 1);
    }
    assert_true(runs_of_2 > 1);
    expect_acks(ask_batch("lost", 0, 24, true), first, 24);
    for (uint32_t i = 0; i < 24; i++)
        assert_int_equal(first[i].offset, next[first[i].partition]++);
    assert_int_equal(records_of("lost"), 24);
    expect_acks(ask_batch("lost", 0, 24, true), again, 24);
    assert_memory_equal(first, again, sizeof(first));
    expect_acks(ask_batch("lost", 24, 4, true), first, 4);
    assert_int_equal(records_of("lost"), 28);
}

/* Of two requests under way the first lost a part, and the second did not. */
static void what_was_lost_before_a_batch_that_was_not_is_written_too(void **state)
{
    (void)state;
    struct wire_ack acks[32];
    client_create_topic(&client, "holes", 2);
    /* Records without key: runs of 16 go to the one partition and the other. */
    uint32_t second = ((uint32_t)producer_id + 1) % 2;
    write_run("holes", second, 16, 16);
    expect_acks(ask_batch("holes", 0, 32, false), acks, 32);
    assert_int_equal(acks[15].offset, 15);
    assert_int_equal(acks[16].partition, second);
    assert_int_equal(acks[31].offset, 15);
    assert_int_equal(records_of("holes"), 32);
}

static void set_config(const char *topic, const char *key, const char *value)
{
    struct buffer items;
    buffer_init(&items, 0);
    struct wire_config_entry entry = {wire_text(key), wire_text(value)};
    wire_put(&items, &wire_shape_config_entry, &entry);
    struct wire_alter_topic_config alter = {.name = wire_text(topic),
                                            .entries = {1, buffer_slice(&items)}};
    client_expect(&client, client_ask(&client, WIRE_ALTER_TOPIC_CONFIG, &alter), WIRE_OK);
    buffer_deinit(&items);
}

/* It is over before the others arrive; they are not called out of order. */
static void what_is_sent_behind_a_refused_batch_may_be_sent_again(void **state)
{
    (void)state;
    struct wire_ack acks[10];
    client_create_topic(&client, "behind", 1);
    set_config("behind", "max.message.bytes", "65");
    client_expect_error(&client, ask_batch("behind", 0, 10, true), WIRE_CODE_BAD_FRAME);
    client_expect_error(&client, ask_one("behind", 10), WIRE_CODE_INTERNAL);
    client_expect_error(&client, ask_one("behind", 11), WIRE_CODE_INTERNAL);
    set_config("behind", "max.message.bytes", "10000");
    expect_acks(ask_batch("behind", 0, 10, true), acks, 10);
    produce_one("behind", 10);
    client_expect_error(&client, ask_one("behind", 12), WIRE_CODE_OUT_OF_ORDER_SEQUENCE);
    assert_int_equal(records_of("behind"), 11);
}

static void pipelined_requests_are_taken_in_order(void **state)
{
    (void)state;
    uint64_t numbers[20];
    client_create_topic(&client, "piped", 2);
    for (uint32_t i = 0; i < 20; i++)
        numbers[i] = ask_one("piped", i);
    for (uint32_t i = 0; i < 20; i++)
        client_expect(&client, numbers[i], WIRE_PRODUCE_ACK);
    assert_int_equal(records_of("piped"), 20);
}

static void who_has_no_producer_or_another_one_is_told_so(void **state)
{
    client_create_topic(&client, "whose", 1);
    producer_id++;
    client_expect_error(&client, ask_one("whose", 0), WIRE_CODE_BAD_PROTOCOL);
    client_free(&client);
    client_open(&client, *state);
    client_greet(&client);
    client_expect_error(&client, ask_one("whose", 0), WIRE_CODE_NO_PRODUCER_ID);
    client_expect_error(&client, ask_batch("whose", 0, 2, false), WIRE_CODE_NO_PRODUCER_ID);
}

static void too_large_a_batch_is_refused_whole(void **state)
{
    (void)state;
    client_create_topic(&client, "large", 1);
    client_expect_error(&client, ask_batch("large", 0, 1025, false), WIRE_CODE_BATCH_TOO_LARGE);
    client_expect_error(&client, ask_one("nowhere", 0), WIRE_CODE_TOPIC_MISSING);
    struct wire_ack acks[1024];
    expect_acks(ask_batch("large", 0, 1024, false), acks, 1024);
    assert_int_equal(records_of("large"), 1024);
}

static void sequences_begin_anew_with_a_new_identity(void **state)
{
    (void)state;
    client_create_topic(&client, "anew", 1);
    produce_one("anew", 0);
    producer_id = init_producer();
    assert_int_equal(produce_one("anew", 0).offset, 1);
}

static void a_name_keeps_its_id_and_each_session_has_its_own_epoch(void **state)
{
    client_create_topic(&client, "named", 1);
    producer_id = init_named("someone");
    assert_int_equal(producer_epoch, 0);
    assert_int_equal(produce_one("named", 0).offset, 0);
    client_free(&client);
    client_open(&client, *state);
    client_greet(&client);
    assert_int_equal(init_named("someone"), producer_id);
    assert_int_equal(producer_epoch, 1);
    assert_int_equal(produce_one("named", 0).offset, 1); /* sequences begin anew */
    assert_int_equal(produce_one("named", 0).offset, 1);
}

static void an_earlier_session_of_a_name_is_fenced_everywhere(void **state)
{
    struct client later;
    client_create_topic(&client, "fenced", 1);
    producer_id = init_named("zombie");
    client_open(&later, *state);
    client_greet(&later);
    struct wire_init_producer_id init = {.has_name = true, .name = wire_text("zombie")};
    client_expect(&later, client_ask(&later, WIRE_INIT_PRODUCER_ID, &init), WIRE_PRODUCER_ID);
    /* The new one has written nothing yet. */
    client_expect_error(&client, ask_one("fenced", 0), WIRE_CODE_PRODUCER_FENCED);
    client_expect_error(&client, ask_batch("fenced", 0, 3, false), WIRE_CODE_PRODUCER_FENCED);
    client_free(&later);
}

static void a_frame_of_another_epoch_is_fenced(void **state)
{
    (void)state;
    client_create_topic(&client, "epoch", 1);
    producer_id = init_named("epochs");
    producer_epoch++;
    client_expect_error(&client, ask_one("epoch", 0), WIRE_CODE_PRODUCER_FENCED);
}

static void distances_wrap(void **state)
{
    (void)state;
    assert_int_equal(sequence_distance(0, 0x7fffffff), 1);
    assert_int_equal(sequence_distance(0x80000000u, 0x7fffffff), 1);
    assert_int_equal(sequence_distance(0x7fffffff, 0), -1);
    assert_int_equal(sequence_distance(0x3fffffff, 0), 0x3fffffff);
    assert_int_equal(sequence_distance(0x40000000, 0), -0x40000000);
    assert_int_equal(sequence_distance(7, 7), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, greet, leave)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_init_without_a_name_gives_an_id_of_its_own),
        TEST(a_record_sent_again_is_answered_with_its_first_offset),
        TEST(a_sequence_that_skips_is_refused),
        TEST(a_record_sent_long_ago_is_looked_for_in_the_log),
        TEST(a_sequence_that_is_nowhere_in_the_log_is_refused),
        TEST(a_batch_of_many_runs_is_answered_on_another_connection),
        TEST(singles_and_batches_share_one_sequence_over_all_partitions),
        TEST(keys_decide_the_partition_of_a_sequenced_record),
        TEST(a_batch_that_is_there_in_part_is_completed),
        TEST(a_batch_of_many_runs_sent_again_is_answered_as_before),
        TEST(what_was_lost_of_a_batch_is_written_when_it_is_sent_again),
        TEST(what_was_lost_before_a_batch_that_was_not_is_written_too),
        TEST(what_is_sent_behind_a_refused_batch_may_be_sent_again),
        TEST(pipelined_requests_are_taken_in_order),
        TEST(who_has_no_producer_or_another_one_is_told_so),
        TEST(too_large_a_batch_is_refused_whole),
        TEST(sequences_begin_anew_with_a_new_identity),
        TEST(a_name_keeps_its_id_and_each_session_has_its_own_epoch),
        TEST(an_earlier_session_of_a_name_is_fenced_everywhere),
        TEST(a_frame_of_another_epoch_is_fenced),
        TEST(distances_wrap),
    };
    return cmocka_run_group_tests(tests, front_end_set_up, front_end_tear_down);
}
