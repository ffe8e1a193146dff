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
    peer_expect(peer, WIRE_PRODUCE_BATCH);
    const struct wire_produce_batch *batch = &peer->message.produce_batch;
    if (batch->flags != WIRE_BATCH_IDEMPOTENT || batch->base_sequence != 1) abort();
    struct buffer items;
    struct wire_ack item = {0, 1};
    buffer_init(&items, 0);
    wire_put(&items, &wire_shape_ack, &item);
    struct wire_produce_batch_ack acks = {.acks = {1, buffer_slice(&items)},
                                          .error_text = wire_text("")};
    peer_answer(peer, WIRE_PRODUCE_BATCH_ACK, &acks);
    buffer_deinit(&items);
    peer_expect(peer, WIRE_TXN_OFFSET_COMMIT);
    peer_answer(peer, WIRE_OK, NULL);
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
    broker_start(&broker);
    assert_int_equal(connect_as(&broker, "p", &client), MOONMQ_OK);
    assert_int_equal(moonmq_commit_transaction(client, NULL), MOONMQ_INVALID_TRANSACTION);
    assert_int_equal(moonmq_begin_transaction(client, NULL), MOONMQ_OK);
    assert_int_equal(moonmq_begin_transaction(client, NULL), MOONMQ_INVALID_TRANSACTION);
    assert_int_equal(moonmq_produce_async(client, "t", &record, NULL, NULL, NULL),
                     MOONMQ_INVALID_TRANSACTION);
    assert_int_equal(moonmq_produce(client, "t", &record, NULL, NULL), MOONMQ_OK);
    assert_int_equal(moonmq_produce_batch(client, "t", &record, 1, NULL, NULL, NULL), MOONMQ_OK);
    assert_int_equal(moonmq_commit_in_transaction(client, "g", &offset, 1, NULL), MOONMQ_OK);
    assert_int_equal(moonmq_commit_transaction(client, NULL), MOONMQ_OK);
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
        cmocka_unit_test(transaction_begins_holds_and_ends),
        cmocka_unit_test(transaction_is_lost_with_its_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
