/* Named producers and transactions over the native protocol (native-protocol.md 4.6, 4.9). */
#include "broker/transactions.h"

#include "front_end.h"

static struct front_end front;

static int setup(void **state)
{
    (void)state;
    front_end_start(&front);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    front_end_stop(&front);
    return 0;
}

static void open_client(struct client *client)
{
    client_open(client, &front);
    client_greet(client);
}

static struct wire_producer_id init_producer(struct client *client, const char *name)
{
    struct wire_init_producer_id init = {.has_name = true, .name = wire_text(name)};
    uint64_t number = client_ask(client, WIRE_INIT_PRODUCER_ID, &init);
    return client_expect(client, number, WIRE_PRODUCER_ID).producer_id;
}

static uint64_t ask_produce(struct client *client, struct wire_producer_id producer,
                            uint32_t sequence, const char *value)
{
    struct wire_produce_idempotent produce = {
        .producer_id = producer.producer_id,
        .epoch = producer.epoch,
        .sequence = sequence,
        .topic = wire_text("t"),
        .key = wire_text("k"),
        .value = wire_text(value),
    };
    return client_ask(client, WIRE_PRODUCE_IDEMPOTENT, &produce);
}

static void produce(struct client *client, struct wire_producer_id producer, uint32_t sequence,
                    const char *value)
{
    client_expect(client, ask_produce(client, producer, sequence, value), WIRE_PRODUCE_ACK);
}

static void begin(struct client *client)
{
    client_expect(client, client_ask(client, WIRE_BEGIN_TXN, NULL), WIRE_OK);
}

static uint64_t ask_end(struct client *client, bool commit)
{
    struct wire_end_txn end = {commit};
    return client_ask(client, WIRE_END_TXN, &end);
}

static void end(struct client *client, bool commit)
{
    client_expect(client, ask_end(client, commit), WIRE_OK);
}

/* What who reads committed records only sees of the topic "t". */
static void expect_committed(struct client *client, const char *expected)
{
    char text[512];
    struct loop *loop = loop_event_interface(front.loop);
    int64_t end_us = loop_now_us(loop) + FRONT_END_PATIENCE_US;
    struct buffer items;
    struct wire_position position = {0, 0};
    buffer_init(&items, 0);
    wire_put(&items, &wire_shape_position, &position);
    struct wire_fetch fetch = {
        .topic = wire_text("t"),
        .group = wire_text(""),
        .max_records = 100,
        .has_isolation = true,
        .isolation = 1,
        .has_flags = true,
        .flags = WIRE_FETCH_POSITIONS,
        .positions = {1, buffer_slice(&items)},
    };
    /* The outcome is on record when it is answered; its markers follow. */
    do {
        assert_true(loop_now_us(loop) < end_us);
        uint64_t number = client_ask(client, WIRE_FETCH, &fetch);
        union wire_message message = client_expect(client, number, WIRE_RECORD_BATCH);
        values_of(&message.record_batch.records, text, sizeof(text));
        client_expect(client, number, WIRE_OK);
        event_base_loop(loop_event_base(front.loop), EVLOOP_ONCE | EVLOOP_NONBLOCK);
    } while (strcmp(text, expected) != 0);
    buffer_deinit(&items);
}

/* ---- names ---- */

static void name_keeps_its_id_and_gets_a_new_epoch_each_time(void **state)
{
    (void)state;
    struct client a, b;
    open_client(&a);
    open_client(&b);
    struct wire_producer_id first = init_producer(&a, "p"), second = init_producer(&b, "p");
    assert_int_equal(first.epoch, 0);
    assert_int_equal(second.producer_id, first.producer_id);
    assert_int_equal(second.epoch, 1);
    assert_int_not_equal(init_producer(&b, "q").producer_id, first.producer_id);
    client_free(&a);
    client_free(&b);
}

static void newer_session_fences_the_older_one(void **state)
{
    (void)state;
    struct client a, b;
    open_client(&a);
    open_client(&b);
    client_create_topic(&a, "t", 1);
    struct wire_producer_id older = init_producer(&a, "p");
    produce(&a, older, 0, "v");
    struct wire_producer_id newer = init_producer(&b, "p");
    client_expect_error(&a, ask_produce(&a, older, 1, "w"), WIRE_CODE_PRODUCER_FENCED);
    client_expect_error(&a, client_ask(&a, WIRE_BEGIN_TXN, NULL), WIRE_CODE_PRODUCER_FENCED);
    produce(&b, newer, 0, "x"); /* sequences begin anew */
    client_expect_error(&b, ask_produce(&b, older, 1, "w"), WIRE_CODE_PRODUCER_FENCED);
    client_free(&a);
    client_free(&b);
}

/* ---- transactions ---- */

static void committed_records_are_read(void **state)
{
    (void)state;
    struct client client, reader;
    open_client(&client);
    open_client(&reader);
    client_create_topic(&client, "t", 1);
    struct wire_producer_id producer = init_producer(&client, "p");
    begin(&client);
    produce(&client, producer, 0, "a");
    produce(&client, producer, 1, "b");
    expect_committed(&reader, "");
    end(&client, true);
    expect_committed(&reader, "a b");
    begin(&client);
    produce(&client, producer, 2, "c");
    end(&client, true);
    expect_committed(&reader, "a b c");
    client_free(&client);
    client_free(&reader);
}

static void aborted_records_are_not_read(void **state)
{
    (void)state;
    struct client client, reader;
    open_client(&client);
    open_client(&reader);
    client_create_topic(&client, "t", 1);
    struct wire_producer_id producer = init_producer(&client, "p");
    begin(&client);
    produce(&client, producer, 0, "a");
    end(&client, false);
    produce(&client, producer, 1, "plain"); /* not part of any */
    expect_committed(&reader, "plain");
    client_free(&client);
    client_free(&reader);
}

static void batch_is_part_of_the_transaction(void **state)
{
    (void)state;
    struct client client, reader;
    open_client(&client);
    open_client(&reader);
    client_create_topic(&client, "t", 1);
    struct wire_producer_id producer = init_producer(&client, "p");
    begin(&client);
    struct buffer items;
    struct wire_key_value item = {wire_text(""), wire_text("a")};
    buffer_init(&items, 0);
    wire_put(&items, &wire_shape_key_value, &item);
    wire_put(&items, &wire_shape_key_value, &item);
    struct wire_produce_batch batch = {
        .flags = WIRE_BATCH_IDEMPOTENT,
        .topic = wire_text("t"),
        .producer_id = producer.producer_id,
        .epoch = producer.epoch,
        .records = {2, buffer_slice(&items)},
    };
    client_expect(&client, client_ask(&client, WIRE_PRODUCE_BATCH, &batch), WIRE_PRODUCE_BATCH_ACK);
    buffer_deinit(&items);
    expect_committed(&reader, "");
    end(&client, true);
    expect_committed(&reader, "a a");
    client_free(&client);
    client_free(&reader);
}

static void transaction_is_aborted_with_its_connection(void **state)
{
    (void)state;
    struct client client, other;
    open_client(&client);
    open_client(&other);
    client_create_topic(&client, "t", 1);
    struct wire_producer_id producer = init_producer(&client, "p");
    begin(&client);
    produce(&client, producer, 0, "a");
    client_free(&client);
    client_produce(&other, "t", "k", "plain");
    expect_committed(&other, "plain");
    client_free(&other);
}

static void newer_session_aborts_what_the_older_left_open(void **state)
{
    (void)state;
    struct client a, b;
    open_client(&a);
    open_client(&b);
    client_create_topic(&a, "t", 1);
    struct wire_producer_id older = init_producer(&a, "p");
    begin(&a);
    produce(&a, older, 0, "a");
    struct wire_producer_id newer = init_producer(&b, "p");
    client_expect_error(&a, ask_end(&a, true), WIRE_CODE_PRODUCER_FENCED);
    begin(&b);
    produce(&b, newer, 0, "b");
    end(&b, true);
    expect_committed(&b, "b");
    client_free(&a);
    client_free(&b);
}

static void states_are_kept(void **state)
{
    (void)state;
    struct client client;
    open_client(&client);
    client_create_topic(&client, "t", 1);
    client_expect_error(&client, client_ask(&client, WIRE_BEGIN_TXN, NULL),
                        WIRE_CODE_INVALID_TXN_STATE);
    init_producer(&client, "p");
    client_expect_error(&client, ask_end(&client, true), WIRE_CODE_INVALID_TXN_STATE);
    begin(&client);
    client_expect_error(&client, client_ask(&client, WIRE_BEGIN_TXN, NULL),
                        WIRE_CODE_INVALID_TXN_STATE);
    end(&client, true); /* of nothing */
    begin(&client);
    end(&client, false);
    client_expect_error(&client, ask_end(&client, false), WIRE_CODE_INVALID_TXN_STATE);
    client_free(&client);
}

/* ---- offsets ---- */

static uint64_t ask_offsets(struct client *client, const char *group, int32_t partition,
                            int64_t offset)
{
    struct wire_topic_offset item = {wire_text("t"), partition, offset};
    struct buffer items;
    buffer_init(&items, 0);
    wire_put(&items, &wire_shape_topic_offset, &item);
    struct wire_txn_offset_commit commit = {wire_text(group), {1, buffer_slice(&items)}};
    uint64_t number = client_ask(client, WIRE_TXN_OFFSET_COMMIT, &commit);
    buffer_deinit(&items);
    return number;
}

/* -1: none. */
static int64_t committed_offset(struct client *client, const char *group)
{
    struct wire_text_message message = {wire_text(group)};
    uint64_t number = client_ask(client, WIRE_DESCRIBE_GROUP, &message);
    struct wire_frame frame = client_frame(client);
    struct wire_cursor cursor;
    struct wire_topic_offset item;
    (void)number;
    if (frame.opcode == WIRE_ERROR) return -1;
    union wire_message answer = client_decode(&frame);
    wire_cursor_init(&cursor, &answer.group_description.offsets, &wire_shape_topic_offset);
    return wire_cursor_next(&cursor, &item) ? item.offset : -1;
}

static void wait_committed(struct client *client, const char *group, int64_t expected)
{
    struct loop *loop = loop_event_interface(front.loop);
    int64_t end_us = loop_now_us(loop) + FRONT_END_PATIENCE_US;
    while (committed_offset(client, group) != expected) {
        assert_true(loop_now_us(loop) < end_us);
        event_base_loop(loop_event_base(front.loop), EVLOOP_ONCE | EVLOOP_NONBLOCK);
    }
}

static void offsets_count_when_the_transaction_is_committed(void **state)
{
    (void)state;
    struct client client;
    open_client(&client);
    client_create_topic(&client, "t", 1);
    client_produce(&client, "t", "k", "a");
    client_produce(&client, "t", "k", "b");
    init_producer(&client, "p");
    begin(&client);
    client_expect(&client, ask_offsets(&client, "g", 0, 1), WIRE_OK);
    assert_int_equal(committed_offset(&client, "g"), -1);
    end(&client, false);
    begin(&client);
    client_expect(&client, ask_offsets(&client, "g", 0, 2), WIRE_OK);
    end(&client, true);
    wait_committed(&client, "g", 2);
    client_free(&client);
}

static const struct transaction_value *on_record(const char *name)
{
    return broker_describe_transaction(front.broker, wire_text(name));
}

static void offsets_that_wait_begin_no_transaction_when_their_connection_is_gone(void **state)
{
    (void)state;
    struct client client, other;
    struct loop *loop = loop_event_interface(front.loop);
    open_client(&client);
    open_client(&other);
    client_create_topic(&client, "t", 1);
    client_produce(&client, "t", "k", "a");
    init_producer(&client, "p");
    begin(&client);
    client_expect(&client, ask_offsets(&client, "g", 0, 1), WIRE_OK);
    end(&client, true);
    begin(&client);
    ask_offsets(&client, "g", 0, 0); /* behind the end of the first */
    client_free(&client);
    int64_t end_us = loop_now_us(loop) + FRONT_END_PATIENCE_US;
    while (on_record("p")->status != TRANSACTION_COMPLETE_COMMIT) {
        assert_true(loop_now_us(loop) < end_us);
        front_end_turn(&front);
    }
    /* Time enough for what would come now. */
    init_producer(&other, "q");
    begin(&other);
    client_expect(&other, ask_offsets(&other, "h", 0, 1), WIRE_OK);
    end(&other, true);
    wait_committed(&other, "h", 1);
    assert_int_equal(on_record("p")->status, TRANSACTION_COMPLETE_COMMIT);
    assert_int_equal(committed_offset(&other, "g"), 1);
    client_free(&other);
}

static void offsets_are_checked(void **state)
{
    (void)state;
    struct client client;
    open_client(&client);
    client_create_topic(&client, "t", 1);
    init_producer(&client, "p");
    client_expect_error(&client, ask_offsets(&client, "g", 0, 0), WIRE_CODE_INVALID_TXN_STATE);
    begin(&client);
    client_expect_error(&client, ask_offsets(&client, "g", 0, 1), WIRE_CODE_BAD_FRAME);
    client_expect_error(&client, ask_offsets(&client, "g", 1, 0), WIRE_CODE_BAD_FRAME);
    client_free(&client);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(name_keeps_its_id_and_gets_a_new_epoch_each_time),
        TEST(newer_session_fences_the_older_one),
        TEST(committed_records_are_read),
        TEST(aborted_records_are_not_read),
        TEST(batch_is_part_of_the_transaction),
        TEST(transaction_is_aborted_with_its_connection),
        TEST(newer_session_aborts_what_the_older_left_open),
        TEST(states_are_kept),
        TEST(offsets_count_when_the_transaction_is_committed),
        TEST(offsets_that_wait_begin_no_transaction_when_their_connection_is_gone),
        TEST(offsets_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
