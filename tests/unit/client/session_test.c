/* What libmoonmq keeps over a connection that breaks: its membership, its producer; and what it
 * does not: a transaction. */
#include "scripted_broker.h"

/* ---- groups ---- */

static void answer_assignment(struct peer *peer, const char *member, int32_t partition)
{
    struct buffer partitions, items;
    buffer_init(&partitions, 0);
    buffer_init(&items, 0);
    struct wire_partition number = {partition};
    wire_put(&partitions, &wire_shape_partition, &number);
    struct wire_assignment item = {wire_text("t"), {1, buffer_slice(&partitions)}};
    wire_put(&items, &wire_shape_assignment, &item);
    struct wire_group_assignment answer = {wire_text(member), {1, buffer_slice(&items)}};
    peer_answer(peer, WIRE_GROUP_ASSIGNMENT, &answer);
    buffer_deinit(&partitions);
    buffer_deinit(&items);
}

static void expect_join(struct peer *peer, const char *member)
{
    peer_expect(peer, WIRE_JOIN_GROUP);
    const struct wire_join_group *join = &peer->message.join_group;
    if (join->member_id.bytes != strlen(member) ||
        memcmp(join->member_id.data, member, join->member_id.bytes) != 0 ||
        join->topics.count != 1 || join->flags != WIRE_JOIN_FOLLOW) {
        abort();
    }
}

static char told[64];
static void note_assigned(void *context, const struct moonmq_assignment *assignments, size_t count)
{
    (void)context;
    size_t at = strlen(told);
    if (count == 0) {
        snprintf(told + at, sizeof(told) - at, " none");
    } else {
        snprintf(told + at, sizeof(told) - at, " %s/%d", assignments[0].topic,
                 assignments[0].partitions[0]);
    }
}

static int join(struct moonmq_client *client, struct moonmq_error *error)
{
    static const char *const topics[] = {"t"};
    struct moonmq_join request = {
        .group = "g", .topics = topics, .topic_count = 1, .assigned = note_assigned};
    told[0] = '\0';
    return moonmq_join_group(client, &request, error);
}

static int fetch(struct moonmq_client *client, struct moonmq_error *error)
{
    struct moonmq_fetch request = {.topic = "t", .group = "g", .records_max = 10};
    struct moonmq_records *records = NULL;
    int code = moonmq_fetch(client, &request, &records, error);
    moonmq_records_free(records);
    return code;
}

static void play_member_that_is_cut_off(struct peer *peer)
{
    peer_welcome(peer);
    expect_join(peer, "");
    answer_assignment(peer, "m1", 0);
    peer_expect(peer, WIRE_FETCH);
}

static void play_member_that_comes_back(struct peer *peer)
{
    peer_welcome(peer);
    expect_join(peer, "m1");
    answer_assignment(peer, "m1", 2);
    peer_expect(peer, WIRE_FETCH);
    peer_answer(peer, WIRE_OK, NULL);
    peer_expect(peer, WIRE_LEAVE_GROUP);
    peer_answer(peer, WIRE_OK, NULL);
    peer_expect(peer, WIRE_GOODBYE);
}

static void member_joins_again_with_its_id_before_it_reads_on(void **state)
{
    (void)state;
    struct broker broker = {.scripts = {play_member_that_is_cut_off, play_member_that_comes_back}};
    broker_start(&broker);
    struct moonmq_client *client = connected_to(&broker, 5000);
    assert_int_equal(join(client, NULL), MOONMQ_OK);
    assert_string_equal(moonmq_member_id(client), "m1");
    assert_int_equal(fetch(client, NULL), MOONMQ_OK);
    assert_string_equal(told, " t/0 t/2");
    assert_int_equal(moonmq_leave_group(client, NULL), MOONMQ_OK);
    assert_null(moonmq_member_id(client));
    moonmq_client_free(client);
    broker_stop(&broker);
}

static void play_member_whose_group_is_taken(struct peer *peer)
{
    peer_welcome(peer);
    expect_join(peer, "m1");
    peer_fail(peer, WIRE_CODE_GROUP_CONFLICT, "the group has members of another protocol");
    peer_expect(peer, WIRE_GOODBYE);
}

static void member_that_cannot_come_back_reads_nothing(void **state)
{
    (void)state;
    struct broker broker = {
        .scripts = {play_member_that_is_cut_off, play_member_whose_group_is_taken}};
    struct moonmq_error error;
    broker_start(&broker);
    struct moonmq_client *client = connected_to(&broker, 5000);
    assert_int_equal(join(client, NULL), MOONMQ_OK);
    /* Without its membership it would read what others are assigned. */
    assert_int_equal(fetch(client, &error), MOONMQ_GROUP_CONFLICT);
    assert_string_equal(told, " t/0 none");
    assert_int_equal(fetch(client, &error), MOONMQ_GROUP_CONFLICT);
    moonmq_client_free(client);
    broker_stop(&broker);
}

/* ---- producers ---- */

static int connect_as(struct broker *broker, const char *name, struct moonmq_client **client)
{
    struct moonmq_options options = MOONMQ_OPTIONS_DEFAULT;
    const char *hosts[] = {broker->address};
    options.hosts = hosts;
    options.host_count = 1;
    options.reconnect_ms_max = options.connect_ms_max = 5000;
    options.idempotent = true;
    options.producer_name = name;
    return moonmq_client_new(&options, client, NULL);
}

static void give_identity(struct peer *peer, uint16_t epoch)
{
    struct wire_producer_id identity = {.producer_id = 7, .epoch = epoch};
    peer_answer(peer, WIRE_PRODUCER_ID, &identity);
}

static void expect_init(struct peer *peer, bool resumes)
{
    peer_expect(peer, WIRE_INIT_PRODUCER_ID);
    const struct wire_init_producer_id *init = &peer->message.init_producer_id;
    if (init->has_resume != resumes || (resumes && init->producer_id != 7)) abort();
}

static void expect_record(struct peer *peer, uint32_t sequence)
{
    peer_expect(peer, WIRE_PRODUCE_IDEMPOTENT);
    if (peer->message.produce_idempotent.producer_id != 7 ||
        peer->message.produce_idempotent.sequence != sequence) {
        abort();
    }
}

static void ack(struct peer *peer, int64_t offset)
{
    struct wire_ack message = {.partition = 0, .offset = offset};
    peer_answer(peer, WIRE_PRODUCE_ACK, &message);
}

static const struct moonmq_message record = {.value = "v", .value_bytes = 1};

static void play_producer_that_is_cut_off(struct peer *peer)
{
    peer_welcome(peer);
    expect_init(peer, false);
    give_identity(peer, 0);
    expect_record(peer, 0);
    ack(peer, 0);
    expect_record(peer, 1);
}

static void play_producer_that_resumes(struct peer *peer)
{
    peer_welcome(peer);
    expect_init(peer, true);
    give_identity(peer, 0);
    expect_record(peer, 1);
    peer_fail(peer, WIRE_CODE_INTERNAL, "written, but not replicated yet");
    expect_record(peer, 1);
    ack(peer, 1);
    peer_expect(peer, WIRE_GOODBYE);
}

static void record_is_sent_again_with_its_sequence(void **state)
{
    (void)state;
    struct broker broker = {.scripts = {play_producer_that_is_cut_off, play_producer_that_resumes}};
    struct moonmq_client *client;
    struct moonmq_ack acked;
    broker_start(&broker);
    assert_int_equal(connect_as(&broker, NULL, &client), MOONMQ_OK);
    assert_int_equal(moonmq_produce(client, "t", &record, NULL, NULL), MOONMQ_OK);
    assert_int_equal(moonmq_produce(client, "t", &record, &acked, NULL), MOONMQ_OK);
    assert_int_equal(acked.offset, 1);
    moonmq_client_free(client);
    broker_stop(&broker);
}

static void play_refusal(struct peer *peer)
{
    peer_welcome(peer);
    expect_init(peer, false);
    give_identity(peer, 0);
    expect_record(peer, 0);
    peer_fail(peer, WIRE_CODE_TOPIC_MISSING, "no topic t");
    expect_record(peer, 0);
    ack(peer, 0);
    expect_record(peer, 1);
    peer_fail(peer, WIRE_CODE_OUT_OF_ORDER_SEQUENCE, "sequence 1, expected 0");
    expect_init(peer, false); /* that one is of no use any more */
    give_identity(peer, 0);
    expect_record(peer, 0);
    ack(peer, 1);
    peer_expect(peer, WIRE_GOODBYE);
}

static void sequence_is_used_when_the_record_may_be_there(void **state)
{
    (void)state;
    struct broker broker = {.scripts = {play_refusal}};
    struct moonmq_client *client;
    broker_start(&broker);
    assert_int_equal(connect_as(&broker, NULL, &client), MOONMQ_OK);
    assert_int_equal(moonmq_produce(client, "t", &record, NULL, NULL), MOONMQ_TOPIC_MISSING);
    assert_int_equal(moonmq_produce(client, "t", &record, NULL, NULL), MOONMQ_OK);
    assert_int_equal(moonmq_produce(client, "t", &record, NULL, NULL), MOONMQ_OUT_OF_ORDER);
    assert_int_equal(moonmq_produce(client, "t", &record, NULL, NULL), MOONMQ_OK);
    moonmq_client_free(client);
    broker_stop(&broker);
}

/* ---- queued, with sequences ---- */

static struct moonmq_client *connected_in_batches(struct broker *broker, uint32_t records_max)
{
    struct moonmq_options options = MOONMQ_OPTIONS_DEFAULT;
    const char *hosts[] = {broker->address};
    struct moonmq_client *client = NULL;
    options.hosts = hosts;
    options.host_count = 1;
    options.reconnect_ms_max = 5000;
    options.idempotent = true;
    options.batch_records_max = records_max;
    assert_int_equal(moonmq_client_new(&options, &client, NULL), MOONMQ_OK);
    return client;
}

static struct moonmq_client *connected_one_by_one(struct broker *broker)
{
    return connected_in_batches(broker, 1);
}

struct fates {
    char text[64]; /* of each record: its offset, or its code behind an x */
};

static void note_fate(void *context, const struct moonmq_delivery *delivery)
{
    struct fates *fates = context;
    size_t at = strlen(fates->text);
    bool good = delivery->code == MOONMQ_OK;
    snprintf(fates->text + at, sizeof(fates->text) - at, good ? " %lld" : " x%lld",
             good ? (long long)delivery->ack.offset : (long long)delivery->code);
}

static void queue_some(struct moonmq_client *client, int count, struct fates *fates)
{
    for (int i = 0; i < count; i++) {
        assert_int_equal(moonmq_produce_async(client, "t", &record, note_fate, fates, NULL),
                         MOONMQ_OK);
    }
}

static void describe(struct peer *peer, uint32_t partitions)
{
    struct wire_topic_description description = {.name = wire_text("t"), .partitions = partitions};
    peer_expect(peer, WIRE_DESCRIBE_TOPIC);
    peer_answer(peer, WIRE_TOPIC_DESCRIPTION, &description);
}

static struct wire_id expect_batch(struct peer *peer, uint32_t sequence)
{
    peer_expect(peer, WIRE_PRODUCE_BATCH);
    const struct wire_produce_batch *batch = &peer->message.produce_batch;
    if (batch->flags != WIRE_BATCH_IDEMPOTENT || batch->base_sequence != sequence ||
        batch->records.count != 1 || batch->producer_id != 7) {
        fprintf(stderr, "expected sequence %u, received %u with flags %u\n", sequence,
                batch->base_sequence, batch->flags);
        abort();
    }
    return peer->frame.id;
}

static void take_batch(struct peer *peer, struct wire_id id, int64_t offset)
{
    struct buffer items;
    struct wire_ack item = {0, offset};
    buffer_init(&items, 0);
    wire_put(&items, &wire_shape_ack, &item);
    struct wire_produce_batch_ack acks = {.acks = {1, buffer_slice(&items)},
                                          .error_text = wire_text("")};
    peer_send(peer, WIRE_PRODUCE_BATCH_ACK, &id, &acks);
    buffer_deinit(&items);
}

static void refuse_batch(struct peer *peer, struct wire_id id, uint16_t code)
{
    struct wire_error_message error = {.code = code, .text = wire_text("no")};
    peer_send(peer, WIRE_ERROR, &id, &error);
}

static void play_queue_that_is_cut_off(struct peer *peer)
{
    peer_welcome(peer);
    expect_init(peer, false);
    give_identity(peer, 0);
    describe(peer, 1);
    struct wire_id first = expect_batch(peer, 0);
    expect_batch(peer, 1);
    expect_batch(peer, 2);
    take_batch(peer, first, 0);
}

static void play_queue_that_goes_on(struct peer *peer)
{
    peer_welcome(peer);
    expect_init(peer, true);
    give_identity(peer, 0);
    struct wire_id second = expect_batch(peer, 1);
    struct wire_id third = expect_batch(peer, 2);
    take_batch(peer, second, 1);
    take_batch(peer, third, 2);
    /* A call that waits takes its turn behind what is queued. */
    struct wire_id fourth = expect_batch(peer, 3);
    take_batch(peer, fourth, 3);
    expect_record(peer, 4);
    ack(peer, 4);
    struct wire_id fifth = expect_batch(peer, 5);
    take_batch(peer, fifth, 5);
    peer_expect(peer, WIRE_GOODBYE);
}

static void queued_records_keep_their_sequences(void **state)
{
    (void)state;
    struct broker broker = {.scripts = {play_queue_that_is_cut_off, play_queue_that_goes_on}};
    broker_start(&broker);
    struct moonmq_client *client = connected_one_by_one(&broker);
    struct fates fates = {0};
    struct moonmq_ack acked;
    size_t count = 0;
    queue_some(client, 3, &fates);
    assert_int_equal(moonmq_flush(client, 5000, NULL), MOONMQ_OK);
    assert_string_equal(fates.text, " 0 1 2");
    queue_some(client, 1, &fates);
    assert_int_equal(moonmq_produce(client, "t", &record, NULL, NULL), MOONMQ_OK);
    assert_string_equal(fates.text, " 0 1 2 3");
    assert_int_equal(moonmq_produce_batch(client, "t", &record, 1, &acked, &count, NULL),
                     MOONMQ_OK);
    assert_int_equal(count, 1);
    assert_int_equal(acked.offset, 5);
    moonmq_client_free(client);
    broker_stop(&broker);
}

static void play_refuse_one_for_good(struct peer *peer)
{
    peer_welcome(peer);
    expect_init(peer, false);
    give_identity(peer, 0);
    describe(peer, 1);
    struct wire_id first = expect_batch(peer, 0);
    struct wire_id second = expect_batch(peer, 1);
    struct wire_id third = expect_batch(peer, 2);
    refuse_batch(peer, first, WIRE_CODE_BAD_FRAME);
    refuse_batch(peer, second, WIRE_CODE_OUT_OF_ORDER_SEQUENCE);
    refuse_batch(peer, third, WIRE_CODE_OUT_OF_ORDER_SEQUENCE);
    second = expect_batch(peer, 0);
    take_batch(peer, second, 0);
    third = expect_batch(peer, 1);
    take_batch(peer, third, 1);
    peer_expect(peer, WIRE_GOODBYE);
}

static void those_behind_a_refused_record_take_up_its_sequence(void **state)
{
    (void)state;
    struct broker broker = {.scripts = {play_refuse_one_for_good}};
    broker_start(&broker);
    struct moonmq_client *client = connected_one_by_one(&broker);
    struct fates fates = {0};
    queue_some(client, 3, &fates);
    assert_int_equal(moonmq_flush(client, 5000, NULL), MOONMQ_OK);
    assert_string_equal(fates.text, " x1 0 1");
    moonmq_client_free(client);
    broker_stop(&broker);
}

static void play_lose_track(struct peer *peer)
{
    peer_welcome(peer);
    expect_init(peer, false);
    give_identity(peer, 0);
    describe(peer, 1);
    struct wire_id first = expect_batch(peer, 0);
    expect_batch(peer, 1);
    refuse_batch(peer, first, WIRE_CODE_OUT_OF_ORDER_SEQUENCE);
    expect_init(peer, false);
    give_identity(peer, 0);
    first = expect_batch(peer, 0);
    take_batch(peer, first, 9);
    peer_expect(peer, WIRE_GOODBYE);
}

static void open_outcome_ends_the_identity_and_all_that_has_a_number(void **state)
{
    (void)state;
    struct broker broker = {.scripts = {play_lose_track}};
    broker_start(&broker);
    struct moonmq_client *client = connected_one_by_one(&broker);
    struct fates fates = {0};
    queue_some(client, 2, &fates);
    assert_int_equal(moonmq_flush(client, 5000, NULL), MOONMQ_OK);
    assert_string_equal(fates.text, " x11 x11");
    queue_some(client, 1, &fates);
    assert_int_equal(moonmq_flush(client, 5000, NULL), MOONMQ_OK);
    assert_string_equal(fates.text, " x11 x11 9");
    moonmq_client_free(client);
    broker_stop(&broker);
}

static void play_tell_nothing_of_the_topic(struct peer *peer)
{
    peer_welcome(peer);
    expect_init(peer, false);
    give_identity(peer, 0);
    peer_expect(peer, WIRE_DESCRIBE_TOPIC);
    peer_fail(peer, WIRE_CODE_NOT_AUTHORIZED, "no");
    struct wire_id first = expect_batch(peer, 0);
    struct wire_id second = expect_batch(peer, 1);
    take_batch(peer, first, 0);
    take_batch(peer, second, 1);
    peer_expect(peer, WIRE_GOODBYE);
}

static void who_may_not_ask_for_partitions_asks_once(void **state)
{
    (void)state;
    struct broker broker = {.scripts = {play_tell_nothing_of_the_topic}};
    broker_start(&broker);
    struct moonmq_client *client = connected_one_by_one(&broker);
    struct fates fates = {0};
    queue_some(client, 2, &fates);
    assert_int_equal(moonmq_flush(client, 5000, NULL), MOONMQ_OK);
    assert_string_equal(fates.text, " 0 1");
    moonmq_client_free(client);
    broker_stop(&broker);
}

static void play_one_batch_a_partition(struct peer *peer)
{
    peer_welcome(peer);
    expect_init(peer, false);
    give_identity(peer, 0);
    describe(peer, 3);
    /* "k1" is of partition 0, "key-1" of 1, "orders" of 2. */
    struct wire_id ids[3];
    for (uint32_t i = 0; i < 3; i++) {
        peer_expect(peer, WIRE_PRODUCE_BATCH);
        const struct wire_produce_batch *batch = &peer->message.produce_batch;
        if (batch->records.count != 2 || batch->base_sequence != 2 * i || batch->spread != i)
            abort();
        ids[i] = peer->frame.id;
    }
    refuse_batch(peer, ids[0], WIRE_CODE_TOPIC_MISSING);
    peer_expect(peer, WIRE_GOODBYE);
}

static void each_partition_has_its_batch(void **state)
{
    (void)state;
    struct broker broker = {.scripts = {play_one_batch_a_partition}};
    broker_start(&broker);
    struct moonmq_client *client;
    struct moonmq_error error;
    assert_int_equal(connect_as(&broker, NULL, &client), MOONMQ_OK);
    static const char *const keys[] = {"k1", "key-1", "orders"};
    for (int i = 0; i < 6; i++) {
        struct moonmq_message message = {keys[i % 3], strlen(keys[i % 3]), "v", 1};
        assert_int_equal(moonmq_produce_async(client, "t", &message, NULL, NULL, &error),
                         MOONMQ_OK);
    }
    assert_int_equal(moonmq_pending(client), 6);
    while (moonmq_pending(client) == 6)
        assert_int_equal(moonmq_poll(client, 1000, &error), MOONMQ_OK);
    assert_int_equal(moonmq_pending(client), 4);
    moonmq_client_free(client);
    broker_stop(&broker);
}

static void take_batch_of_partition_1(struct peer *peer, struct wire_id id, uint32_t count,
                                      int64_t offset)
{
    struct buffer items;
    buffer_init(&items, 0);
    for (uint32_t i = 0; i < count; i++) {
        struct wire_ack item = {1, offset + i};
        wire_put(&items, &wire_shape_ack, &item);
    }
    struct wire_produce_batch_ack acks = {.acks = {count, buffer_slice(&items)},
                                          .error_text = wire_text("")};
    peer_send(peer, WIRE_PRODUCE_BATCH_ACK, &id, &acks);
    buffer_deinit(&items);
}

/* "k1" is of partition 0 of 3, 1 of 4. */
static void play_topic_that_grows(struct peer *peer)
{
    struct wire_topic_list none = {.topics = {0}};
    peer_welcome(peer);
    expect_init(peer, false);
    give_identity(peer, 0);
    describe(peer, 3);
    struct wire_id first = expect_batch(peer, 0);
    peer_expect(peer, WIRE_LIST_TOPICS);
    struct wire_id list = peer->frame.id;
    take_batch_of_partition_1(peer, first, 1, 0);
    peer_send(peer, WIRE_TOPIC_LIST, &list, &none);
    describe(peer, 4);
    /* The second, gathered by the old number, before the next two, though these fill a batch. */
    struct wire_id second = expect_batch(peer, 1);
    peer_expect(peer, WIRE_PRODUCE_BATCH);
    const struct wire_produce_batch *batch = &peer->message.produce_batch;
    if (batch->base_sequence != 2 || batch->records.count != 2) abort();
    struct wire_id last = peer->frame.id;
    take_batch_of_partition_1(peer, second, 1, 1);
    take_batch_of_partition_1(peer, last, 2, 2);
    peer_expect(peer, WIRE_GOODBYE);
}

static void key_keeps_its_order_when_the_topic_grows(void **state)
{
    (void)state;
    struct broker broker = {.scripts = {play_topic_that_grows}};
    struct moonmq_message message = {"k1", 2, "v", 1};
    struct fates fates = {0};
    char **names;
    size_t count;
    broker_start(&broker);
    struct moonmq_client *client = connected_in_batches(&broker, 2);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(moonmq_produce_async(client, "t", &message, note_fate, &fates, NULL),
                         MOONMQ_OK);
        if (i == 0) assert_int_equal(moonmq_poll(client, 0, NULL), MOONMQ_OK);
        if (i != 1) continue;
        /* Brings the first one's answer, and sends nothing of the queue. */
        assert_int_equal(moonmq_list_topics(client, &names, &count, NULL), MOONMQ_OK);
        moonmq_topics_free(names, count);
    }
    assert_int_equal(moonmq_flush(client, 5000, NULL), MOONMQ_OK);
    assert_string_equal(fates.text, " 0 1 2 3");
    moonmq_client_free(client);
    broker_stop(&broker);
}

/* ---- dead letters ---- */

static void dead_letter_is_read_or_refused(void **state)
{
    (void)state;
    /* native-protocol.md 4.10 */
    static const uint8_t letter[] = {
        0x01, 0x00, 0x00, 0x00, 0x06, 'o',  'r',  'd',  'e',  'r',  's',  0x00, 0x00, 0x00, 0x02,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x8b, 0xcf, 0xe5, 0x68,
        0x7b, 0x00, 0x00, 0x00, 0x07, 'b',  'i',  'l',  'l',  'i',  'n',  'g',  0x00, 0x03, 0x00,
        0x00, 0x00, 0x03, 'b',  'a',  'd',  0x00, 0x00, 0x00, 0x05, 'h',  'e',  'l',  'l',  'o'};
    struct moonmq_dead_letter decoded;
    assert_int_equal(moonmq_decode_dead_letter(letter, sizeof(letter), &decoded, NULL), MOONMQ_OK);
    assert_int_equal(decoded.topic.bytes, 6);
    assert_memory_equal(decoded.topic.data, "orders", 6);
    assert_int_equal(decoded.partition, 1);
    assert_int_equal(decoded.offset, 0);
    assert_int_equal(decoded.timestamp_ms, 1700000000123);
    assert_memory_equal(decoded.group.data, "billing", 7);
    assert_int_equal(decoded.attempts, 3);
    assert_memory_equal(decoded.reason.data, "bad", 3);
    assert_int_equal(decoded.value.bytes, 5);
    assert_memory_equal(decoded.value.data, "hello", 5);
    for (size_t bytes = 0; bytes < sizeof(letter); bytes++) {
        assert_int_equal(moonmq_decode_dead_letter(letter, bytes, &decoded, NULL),
                         MOONMQ_PROTOCOL_ERROR);
    }
    uint8_t other[sizeof(letter)];
    memcpy(other, letter, sizeof(letter));
    other[0] = 2;
    assert_int_equal(moonmq_decode_dead_letter(other, sizeof(other), &decoded, NULL),
                     MOONMQ_PROTOCOL_ERROR);
}

/* ---- transactions ---- */

static void play_transaction(struct peer *peer)
{
    peer_welcome(peer);
    expect_init(peer, false);
    give_identity(peer, 3);
    peer_expect(peer, WIRE_BEGIN_TXN);
    peer_answer(peer, WIRE_OK, NULL);
    expect_record(peer, 0);
    if (peer->message.produce_idempotent.epoch != 3) abort();
    ack(peer, 0);
    describe(peer, 1);
    take_batch(peer, expect_batch(peer, 1), 1);
    peer_expect(peer, WIRE_TXN_OFFSET_COMMIT);
    peer_answer(peer, WIRE_OK, NULL);
    /* What is queued comes before the end. */
    take_batch(peer, expect_batch(peer, 2), 2);
    peer_expect(peer, WIRE_END_TXN);
    peer_fail(peer, WIRE_CODE_INTERNAL, "not yet");
    peer_expect(peer, WIRE_END_TXN);
    if (peer->message.end_txn.commit != 1) abort();
    peer_answer(peer, WIRE_OK, NULL);
    peer_expect(peer, WIRE_GOODBYE);
}

static void transaction_begins_holds_and_ends(void **state)
{
    (void)state;
    struct broker broker = {.scripts = {play_transaction}};
    struct moonmq_client *client;
    struct moonmq_group_offset offset = {"t", 0, 5};
    struct fates fates = {0};
    broker_start(&broker);
    assert_int_equal(connect_as(&broker, "p", &client), MOONMQ_OK);
    assert_int_equal(moonmq_commit_transaction(client, NULL), MOONMQ_INVALID_TRANSACTION);
    assert_int_equal(moonmq_begin_transaction(client, NULL), MOONMQ_OK);
    assert_int_equal(moonmq_begin_transaction(client, NULL), MOONMQ_INVALID_TRANSACTION);
    assert_int_equal(moonmq_produce(client, "t", &record, NULL, NULL), MOONMQ_OK);
    assert_int_equal(moonmq_produce_batch(client, "t", &record, 1, NULL, NULL, NULL), MOONMQ_OK);
    assert_int_equal(moonmq_commit_in_transaction(client, "g", &offset, 1, NULL), MOONMQ_OK);
    queue_some(client, 1, &fates);
    assert_int_equal(moonmq_commit_transaction(client, NULL), MOONMQ_OK);
    assert_string_equal(fates.text, " 2");
    moonmq_client_free(client);
    broker_stop(&broker);
}

static void play_transaction_that_is_cut_off(struct peer *peer)
{
    peer_welcome(peer);
    expect_init(peer, false);
    give_identity(peer, 0);
    peer_expect(peer, WIRE_BEGIN_TXN);
    peer_answer(peer, WIRE_OK, NULL);
    expect_record(peer, 0);
}

static void play_next_transaction(struct peer *peer)
{
    peer_welcome(peer);
    expect_init(peer, false); /* with a new epoch: it has ended */
    give_identity(peer, 1);
    peer_expect(peer, WIRE_BEGIN_TXN);
    peer_answer(peer, WIRE_OK, NULL);
    expect_record(peer, 0);
    ack(peer, 1);
    peer_expect(peer, WIRE_END_TXN);
    peer_answer(peer, WIRE_OK, NULL);
    peer_expect(peer, WIRE_GOODBYE);
}

static void play_queue_of_a_transaction(struct peer *peer)
{
    peer_welcome(peer);
    expect_init(peer, false);
    give_identity(peer, 0);
    peer_expect(peer, WIRE_BEGIN_TXN);
    peer_answer(peer, WIRE_OK, NULL);
    describe(peer, 1);
    expect_batch(peer, 0);
}

static void play_nothing_of_a_lost_transaction(struct peer *peer)
{
    peer_welcome(peer);
    expect_init(peer, false);
    give_identity(peer, 1);
    peer_expect(peer, WIRE_BEGIN_TXN);
    peer_answer(peer, WIRE_OK, NULL);
    struct wire_id first = expect_batch(peer, 0);
    refuse_batch(peer, first, WIRE_CODE_BAD_FRAME);
    peer_expect(peer, WIRE_END_TXN); /* the broker has it open, and others wait for its end */
    if (peer->message.end_txn.commit != 0) abort();
    peer_answer(peer, WIRE_OK, NULL);
    expect_init(peer, false);
    give_identity(peer, 2);
    peer_expect(peer, WIRE_BEGIN_TXN);
    peer_answer(peer, WIRE_OK, NULL);
    peer_expect(peer, WIRE_END_TXN); /* what was queued is not sent */
    if (peer->message.end_txn.commit != 0) abort();
    peer_answer(peer, WIRE_OK, NULL);
    peer_expect(peer, WIRE_GOODBYE);
}

static void queued_records_count_with_their_transaction_or_fail(void **state)
{
    (void)state;
    struct broker broker = {
        .scripts = {play_queue_of_a_transaction, play_nothing_of_a_lost_transaction}};
    struct moonmq_client *client;
    struct fates fates = {0};
    broker_start(&broker);
    assert_int_equal(connect_as(&broker, "p", &client), MOONMQ_OK);
    /* Lost with the connection. */
    assert_int_equal(moonmq_begin_transaction(client, NULL), MOONMQ_OK);
    queue_some(client, 1, &fates);
    assert_int_equal(moonmq_commit_transaction(client, NULL), MOONMQ_INVALID_TRANSACTION);
    assert_string_equal(fates.text, " x51");
    assert_int_equal(moonmq_produce_async(client, "t", &record, NULL, NULL, NULL),
                     MOONMQ_INVALID_TRANSACTION);
    assert_int_equal(moonmq_abort_transaction(client, NULL), MOONMQ_OK);
    /* Lost with a record. */
    assert_int_equal(moonmq_begin_transaction(client, NULL), MOONMQ_OK);
    queue_some(client, 1, &fates);
    assert_int_equal(moonmq_commit_transaction(client, NULL), MOONMQ_INVALID_TRANSACTION);
    assert_string_equal(fates.text, " x51 x1");
    assert_int_equal(moonmq_abort_transaction(client, NULL), MOONMQ_OK);
    /* Aborted before it was sent. */
    assert_int_equal(moonmq_begin_transaction(client, NULL), MOONMQ_OK);
    queue_some(client, 1, &fates);
    assert_int_equal(moonmq_abort_transaction(client, NULL), MOONMQ_OK);
    assert_string_equal(fates.text, " x51 x1 x51");
    moonmq_client_free(client);
    broker_stop(&broker);
}

static void transaction_is_lost_with_its_connection(void **state)
{
    (void)state;
    struct broker broker = {.scripts = {play_transaction_that_is_cut_off, play_next_transaction}};
    struct moonmq_client *client;
    broker_start(&broker);
    assert_int_equal(connect_as(&broker, "p", &client), MOONMQ_OK);
    assert_int_equal(moonmq_begin_transaction(client, NULL), MOONMQ_OK);
    assert_int_not_equal(moonmq_produce(client, "t", &record, NULL, NULL), MOONMQ_OK);
    assert_int_equal(moonmq_produce(client, "t", &record, NULL, NULL), MOONMQ_INVALID_TRANSACTION);
    assert_int_equal(moonmq_commit_transaction(client, NULL), MOONMQ_INVALID_TRANSACTION);
    assert_int_equal(moonmq_abort_transaction(client, NULL), MOONMQ_OK);
    assert_int_equal(moonmq_begin_transaction(client, NULL), MOONMQ_OK);
    assert_int_equal(moonmq_produce(client, "t", &record, NULL, NULL), MOONMQ_OK);
    assert_int_equal(moonmq_commit_transaction(client, NULL), MOONMQ_OK);
    moonmq_client_free(client);
    broker_stop(&broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(member_joins_again_with_its_id_before_it_reads_on),
        cmocka_unit_test(member_that_cannot_come_back_reads_nothing),
        cmocka_unit_test(record_is_sent_again_with_its_sequence),
        cmocka_unit_test(sequence_is_used_when_the_record_may_be_there),
        cmocka_unit_test(queued_records_keep_their_sequences),
        cmocka_unit_test(those_behind_a_refused_record_take_up_its_sequence),
        cmocka_unit_test(open_outcome_ends_the_identity_and_all_that_has_a_number),
        cmocka_unit_test(who_may_not_ask_for_partitions_asks_once),
        cmocka_unit_test(each_partition_has_its_batch),
        cmocka_unit_test(key_keeps_its_order_when_the_topic_grows),
        cmocka_unit_test(dead_letter_is_read_or_refused),
        cmocka_unit_test(transaction_begins_holds_and_ends),
        cmocka_unit_test(transaction_is_lost_with_its_connection),
        cmocka_unit_test(queued_records_count_with_their_transaction_or_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
