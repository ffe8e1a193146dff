/* Idempotent produces of the native front end on a real broker (native-protocol.md 4.5, 4.6). */
#include "native/sequences.h"

#include "unit/native/front_end.h"

static struct client client;
static int64_t producer_id;
static uint16_t producer_epoch;

static int start(void **state)
{
    struct front_end *front = malloc(sizeof(*front));
    front_end_start(front);
    *state = front;
    return 0;
}

static int stop(void **state)
{
    front_end_stop(*state);
    free(*state);
    return 0;
}

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

static void a_sequence_forgotten_long_ago_is_refused(void **state)
{
    (void)state;
    client_create_topic(&client, "long", 1);
    for (uint32_t i = 0; i < 7; i++)
        produce_one("long", i);
    client_expect_error(&client, ask_one("long", 0), WIRE_CODE_OUT_OF_ORDER_SEQUENCE);
    assert_int_equal(records_of("long"), 7);
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
        TEST(a_sequence_forgotten_long_ago_is_refused),
        TEST(singles_and_batches_share_one_sequence_over_all_partitions),
        TEST(keys_decide_the_partition_of_a_sequenced_record),
        TEST(a_batch_that_is_there_in_part_is_completed),
        TEST(a_batch_of_many_runs_sent_again_is_answered_as_before),
        TEST(pipelined_requests_are_taken_in_order),
        TEST(who_has_no_producer_or_another_one_is_told_so),
        TEST(too_large_a_batch_is_refused_whole),
        TEST(sequences_begin_anew_with_a_new_identity),
        TEST(a_name_keeps_its_id_and_each_session_has_its_own_epoch),
        TEST(an_earlier_session_of_a_name_is_fenced_everywhere),
        TEST(a_frame_of_another_epoch_is_fenced),
        TEST(distances_wrap),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
