/* The APIs of transactions: what they ask of the coordinator, and what they answer. */
#include "unit/kafka/fake_broker.h"

/* ---- InitProducerId ---- */

static void init_with_a_transactional_id_asks_the_coordinator(void **state)
{
    struct client *client = *state;
    struct kafka_init_producer_id_request request = {.transactional_id = kafka_text("tx"),
                                                     .transaction_timeout_ms = 9000,
                                                     .producer_id = 7,
                                                     .producer_epoch = 4};
    const struct kafka_init_producer_id_response *answer =
        client_ask(client, KAFKA_INIT_PRODUCER_ID, 4, &request);
    assert_int_equal(fake.transaction_verb, TRANSACTION_INIT);
    assert_int_equal(answer->error_code, 0);
    assert_int_equal(answer->producer_id, 77);
    assert_int_equal(answer->producer_epoch, 5);
}

static void init_passes_on_whom_the_producer_was(void **state)
{
    struct client *client = *state;
    struct kafka_init_producer_id_request request = {.transactional_id = kafka_text("tx"),
                                                     .transaction_timeout_ms = 9000,
                                                     .producer_id = 7,
                                                     .producer_epoch = 4};
    fake.transaction_status = STATUS_AGAIN;
    assert_int_equal(client_send(client, KAFKA_INIT_PRODUCER_ID, 4, &request), STATUS_OK);
    assert_text(fake.transaction->id, "tx");
    assert_int_equal(fake.transaction->transaction_timeout_ms, 9000);
    assert_int_equal(fake.transaction->producer_id, 7);
    assert_int_equal(fake.transaction->producer_epoch, 4);
    assert_false(fake.transaction->session);
    fake_finish_transaction(STATUS_PRODUCER_FENCED);
    const struct kafka_init_producer_id_response *answer =
        client_take(client, KAFKA_INIT_PRODUCER_ID, 4);
    assert_int_equal(answer->error_code, KAFKA_PRODUCER_FENCED);
    assert_int_equal(answer->producer_id, -1);
}

static void init_before_version_4_does_not_know_the_fence(void **state)
{
    struct client *client = *state;
    struct kafka_init_producer_id_request request = {.transactional_id = kafka_text("tx"),
                                                     .transaction_timeout_ms = 9000};
    fake.transaction_status = STATUS_PRODUCER_FENCED;
    const struct kafka_init_producer_id_response *answer =
        client_ask(client, KAFKA_INIT_PRODUCER_ID, 3, &request);
    assert_int_equal(answer->error_code, KAFKA_INVALID_PRODUCER_EPOCH);
}

static void init_with_an_id_is_told_where_the_coordinator_is_not(void **state)
{
    struct client *client = *state;
    struct kafka_init_producer_id_request request = {.transactional_id = kafka_text("tx"),
                                                     .transaction_timeout_ms = 9000};
    fake.transaction_status = STATUS_NOT_LEADER;
    const struct kafka_init_producer_id_response *answer =
        client_ask(client, KAFKA_INIT_PRODUCER_ID, 4, &request);
    assert_int_equal(answer->error_code, KAFKA_NOT_COORDINATOR);
    assert_int_equal(fake.forward_count, 0);
}

/* ---- AddPartitionsToTxn, AddOffsetsToTxn ---- */

static struct kafka_add_partitions_to_txn_request *add_of(struct client *client, int32_t first,
                                                          int32_t second)
{
    struct kafka_add_partitions_to_txn_request *request =
        kafka_add_partitions_to_txn_request_new(&client->arena, 1);
    struct kafka_add_partitions_to_txn_request_topic *topic =
        kafka_add_partitions_to_txn_request_topic_new(&client->arena, 1);
    int32_t *partitions = arena_new_array(&client->arena, 2, sizeof(*partitions));
    partitions[0] = first;
    partitions[1] = second;
    topic->name = kafka_text("orders");
    topic->partitions.items = partitions;
    topic->partitions.count = 2;
    request->v3_and_below_transactional_id = kafka_text("tx");
    request->v3_and_below_producer_id = 7;
    request->v3_and_below_producer_epoch = 4;
    request->v3_and_below_topics.items = topic;
    request->v3_and_below_topics.count = 1;
    return request;
}

static const struct kafka_add_partitions_to_txn_response_partition *
add(struct client *client, int16_t version, int32_t first, int32_t second)
{
    const struct kafka_add_partitions_to_txn_response *answer =
        client_ask(client, KAFKA_ADD_PARTITIONS_TO_TXN, version, add_of(client, first, second));
    assert_int_equal(answer->results_by_topic_v3_and_below.count, 1);
    assert_text(answer->results_by_topic_v3_and_below.items[0].name, "orders");
    assert_int_equal(answer->results_by_topic_v3_and_below.items[0].results_by_partition.count, 2);
    return answer->results_by_topic_v3_and_below.items[0].results_by_partition.items;
}

static void added_partitions_reach_the_coordinator(void **state)
{
    struct client *client = *state;
    fake.transaction_status = STATUS_AGAIN;
    assert_int_equal(client_send(client, KAFKA_ADD_PARTITIONS_TO_TXN, 3, add_of(client, 1, 0)),
                     STATUS_OK);
    assert_int_equal(fake.transaction_verb, TRANSACTION_ADD);
    assert_text(fake.transaction->id, "tx");
    assert_int_equal(fake.transaction->producer_id, 7);
    assert_int_equal(fake.transaction->producer_epoch, 4);
    assert_int_equal(fake.transaction->partition_count, 2);
    assert_text(fake.transaction->partitions[0].topic, "orders");
    assert_int_equal(fake.transaction->partitions[0].partition, 1);
    assert_false(fake.transaction->transaction_v2);
    fake_finish_transaction(STATUS_OK);
    client_take(client, KAFKA_ADD_PARTITIONS_TO_TXN, 3);
}

static void none_is_added_when_one_is_unknown(void **state)
{
    struct client *client = *state;
    const struct kafka_add_partitions_to_txn_response_partition *answer = add(client, 3, 0, 99);
    assert_int_equal(answer[0].partition_error_code, KAFKA_OPERATION_NOT_ATTEMPTED);
    assert_int_equal(answer[1].partition_index, 99);
    assert_int_equal(answer[1].partition_error_code, KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
    assert_null(fake.transaction);
}

static void what_the_coordinator_says_stands_at_each_partition(void **state)
{
    struct client *client = *state;
    fake.transaction_status = STATUS_PRODUCER_FENCED;
    assert_int_equal(add(client, 2, 0, 1)[1].partition_error_code, KAFKA_PRODUCER_FENCED);
    assert_int_equal(add(client, 1, 0, 1)[1].partition_error_code, KAFKA_INVALID_PRODUCER_EPOCH);
    fake.transaction_status = STATUS_CONCURRENT_TRANSACTIONS;
    assert_int_equal(add(client, 0, 0, 1)[0].partition_error_code, KAFKA_CONCURRENT_TRANSACTIONS);
    fake.transaction_status = STATUS_TIMEOUT;
    assert_int_equal(add(client, 0, 0, 1)[0].partition_error_code, KAFKA_COORDINATOR_NOT_AVAILABLE);
}

static void offsets_are_announced_as_the_groups_partition(void **state)
{
    struct client *client = *state;
    struct kafka_add_offsets_to_txn_request request = {.transactional_id = kafka_text("tx"),
                                                       .producer_id = 7,
                                                       .producer_epoch = 4,
                                                       .group_id = kafka_text("g")};
    fake.transaction_status = STATUS_AGAIN;
    assert_int_equal(client_send(client, KAFKA_ADD_OFFSETS_TO_TXN, 3, &request), STATUS_OK);
    assert_int_equal(fake.transaction_verb, TRANSACTION_ADD);
    assert_int_equal(fake.transaction->partition_count, 1);
    assert_text(fake.transaction->partitions[0].topic, "__consumer_offsets");
    assert_int_equal(fake.transaction->partitions[0].partition, 3);
    fake_finish_transaction(STATUS_PRODUCER_ID_MAPPING);
    const struct kafka_add_offsets_to_txn_response *answer =
        client_take(client, KAFKA_ADD_OFFSETS_TO_TXN, 3);
    assert_int_equal(answer->error_code, KAFKA_INVALID_PRODUCER_ID_MAPPING);
}

/* ---- EndTxn ---- */

static void the_end_says_with_what_the_producer_goes_on_from_version_5(void **state)
{
    struct client *client = *state;
    struct kafka_end_txn_request request = {.transactional_id = kafka_text("tx"),
                                            .producer_id = 7,
                                            .producer_epoch = 4,
                                            .committed = true};
    const struct kafka_end_txn_response *answer = client_ask(client, KAFKA_END_TXN, 5, &request);
    assert_int_equal(fake.transaction_verb, TRANSACTION_END);
    assert_int_equal(answer->error_code, 0);
    assert_int_equal(answer->producer_id, 77);
    assert_int_equal(answer->producer_epoch, 5);
    fake.transaction_status = STATUS_AGAIN;
    assert_int_equal(client_send(client, KAFKA_END_TXN, 4, &request), STATUS_OK);
    assert_true(fake.transaction->commit);
    assert_false(fake.transaction->transaction_v2);
    fake_finish_transaction(STATUS_INVALID_TXN_STATE);
    answer = client_take(client, KAFKA_END_TXN, 4);
    assert_int_equal(answer->error_code, KAFKA_INVALID_TXN_STATE);
}

/* ---- TxnOffsetCommit ---- */

static void transactional_offsets_carry_who_commits_them(void **state)
{
    struct client *client = *state;
    struct kafka_txn_offset_commit_request_partition partition = {
        .partition_index = 1, .committed_offset = 42, .committed_metadata = KAFKA_NULL};
    struct kafka_txn_offset_commit_request_topic topic = {.name = kafka_text("orders"),
                                                          .partitions = {&partition, 1}};
    struct kafka_txn_offset_commit_request request = {.transactional_id = kafka_text("tx"),
                                                      .group_id = kafka_text("g"),
                                                      .producer_id = 7,
                                                      .producer_epoch = 4,
                                                      .generation_id_or_member_epoch = 3,
                                                      .member_id = kafka_text("m"),
                                                      .topics = {&topic, 1}};
    fake.offsets_later = true;
    assert_int_equal(client_send(client, KAFKA_TXN_OFFSET_COMMIT, 5, &request), STATUS_OK);
    assert_true(fake.offsets->transactional);
    assert_text(fake.offsets->transactional_id, "tx");
    assert_int_equal(fake.offsets->transaction_client, TRANSACTION_CLIENT_V2);
    assert_int_equal(fake.offsets->producer_id, 7);
    assert_int_equal(fake.offsets->producer_epoch, 4);
    assert_int_equal(fake.offsets->generation, 3);
    assert_text(fake.offsets->member_id, "m");
    assert_int_equal(fake.offsets->offsets[0].offset, 42);
    fake_finish_offsets(STATUS_STALE_PRODUCER_EPOCH);
    const struct kafka_txn_offset_commit_response *answer =
        client_take(client, KAFKA_TXN_OFFSET_COMMIT, 5);
    assert_int_equal(answer->topics.items[0].partitions.items[0].error_code,
                     KAFKA_INVALID_PRODUCER_EPOCH);
}

static void transactional_offsets_before_version_3_name_no_member(void **state)
{
    struct client *client = *state;
    struct kafka_txn_offset_commit_request_partition partition = {
        .partition_index = 1, .committed_offset = 42, .committed_metadata = kafka_text("")};
    struct kafka_txn_offset_commit_request_topic topic = {.name = kafka_text("orders"),
                                                          .partitions = {&partition, 1}};
    struct kafka_txn_offset_commit_request request = {
        .transactional_id = kafka_text("tx"), .group_id = kafka_text("g"), .topics = {&topic, 1}};
    fake.offsets_later = true;
    assert_int_equal(client_send(client, KAFKA_TXN_OFFSET_COMMIT, 1, &request), STATUS_OK);
    assert_int_equal(fake.offsets->generation, -1);
    assert_int_equal(fake.offsets->member_id.bytes, 0);
    assert_int_equal(fake.offsets->transaction_client, TRANSACTION_CLIENT_OLD);
    fake_finish_offsets(STATUS_NOT_READY);
    const struct kafka_txn_offset_commit_response *answer =
        client_take(client, KAFKA_TXN_OFFSET_COMMIT, 1);
    assert_int_equal(answer->topics.items[0].partitions.items[0].error_code,
                     KAFKA_COORDINATOR_NOT_AVAILABLE);
}

/* ---- DescribeTransactions, ListTransactions ---- */

static void put_on_record(const char *id, enum transaction_status status, int64_t producer_id)
{
    struct transaction_value *value = &fake.transactions[fake.transaction_count];
    transaction_value_init(value);
    value->status = status;
    value->producer_id = producer_id;
    value->producer_epoch = 2;
    value->timeout_ms = 9000;
    fake.transaction_ids[fake.transaction_count++] = id;
}

static void a_described_transaction_lists_its_partitions_by_topic(void **state)
{
    struct client *client = *state;
    put_on_record("tx", TRANSACTION_ONGOING, 7);
    struct transaction_partitions *set = &fake.transactions[0].partitions;
    const struct transaction_partition touched[] = {
        {kafka_text("b"), 1}, {kafka_text("a"), 2}, {kafka_text("b"), 0}};
    for (size_t i = 0; i < ARRAY_COUNT(touched); i++)
        assert_int_equal(transaction_partitions_add(set, &touched[i]), STATUS_OK);
    struct slice ids[] = {kafka_text("tx"), kafka_text("none"), kafka_text("tx"), kafka_text("")};
    struct kafka_describe_transactions_request request = {.transactional_ids = {ids, 4}};
    const struct kafka_describe_transactions_response *answer =
        client_ask(client, KAFKA_DESCRIBE_TRANSACTIONS, 0, &request);
    transaction_partitions_deinit(set);
    assert_int_equal(answer->transaction_states.count, 3);
    const struct kafka_describe_transactions_response_transaction_state *described =
        &answer->transaction_states.items[0];
    assert_int_equal(described->error_code, 0);
    assert_text(described->transaction_state, "Ongoing");
    assert_int_equal(described->producer_id, 7);
    assert_int_equal(described->topics.count, 2);
    assert_text(described->topics.items[0].topic, "a");
    assert_int_equal(described->topics.items[1].partitions.count, 2);
    assert_int_equal(described->topics.items[1].partitions.items[0], 0);
    assert_int_equal(answer->transaction_states.items[1].error_code,
                     KAFKA_TRANSACTIONAL_ID_NOT_FOUND);
    assert_int_equal(answer->transaction_states.items[2].error_code, KAFKA_INVALID_REQUEST);
}

static void a_follower_describes_nothing(void **state)
{
    struct client *client = *state;
    struct slice id = kafka_text("tx");
    struct kafka_describe_transactions_request request = {.transactional_ids = {&id, 1}};
    fake_follow(2);
    const struct kafka_describe_transactions_response *answer =
        client_ask(client, KAFKA_DESCRIBE_TRANSACTIONS, 0, &request);
    assert_int_equal(answer->transaction_states.items[0].error_code, KAFKA_NOT_COORDINATOR);
}

static void listed_transactions_pass_the_filters(void **state)
{
    struct client *client = *state;
    put_on_record("alpha", TRANSACTION_ONGOING, 7);
    put_on_record("beta", TRANSACTION_EMPTY, 8);
    struct slice states[] = {kafka_text("Ongoing"), kafka_text("Nonsense")};
    struct kafka_list_transactions_request request = {.state_filters = {states, 2},
                                                      .duration_filter = -1,
                                                      .transactional_id_pattern = KAFKA_NULL};
    const struct kafka_list_transactions_response *answer =
        client_ask(client, KAFKA_LIST_TRANSACTIONS, 2, &request);
    assert_int_equal(answer->error_code, 0);
    assert_int_equal(answer->unknown_state_filters.count, 1);
    assert_text(answer->unknown_state_filters.items[0], "Nonsense");
    assert_int_equal(answer->transaction_states.count, 1);
    assert_text(answer->transaction_states.items[0].transactional_id, "alpha");
    request.state_filters.count = 0;
    request.transactional_id_pattern = kafka_text("b.*");
    answer = client_ask(client, KAFKA_LIST_TRANSACTIONS, 2, &request);
    assert_int_equal(answer->transaction_states.count, 1);
    assert_text(answer->transaction_states.items[0].transactional_id, "beta");
    request.transactional_id_pattern = kafka_text("(");
    answer = client_ask(client, KAFKA_LIST_TRANSACTIONS, 2, &request);
    assert_int_equal(answer->error_code, KAFKA_INVALID_REGULAR_EXPRESSION);
}

static void a_follower_lists_nothing_and_that_is_no_error(void **state)
{
    struct client *client = *state;
    put_on_record("alpha", TRANSACTION_ONGOING, 7);
    struct kafka_list_transactions_request request = {.transactional_id_pattern = KAFKA_NULL};
    fake_follow(2);
    const struct kafka_list_transactions_response *answer =
        client_ask(client, KAFKA_LIST_TRANSACTIONS, 0, &request);
    assert_int_equal(answer->error_code, 0);
    assert_int_equal(answer->transaction_states.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLIENT_TEST(init_with_a_transactional_id_asks_the_coordinator),
        CLIENT_TEST(init_passes_on_whom_the_producer_was),
        CLIENT_TEST(init_before_version_4_does_not_know_the_fence),
        CLIENT_TEST(init_with_an_id_is_told_where_the_coordinator_is_not),
        CLIENT_TEST(added_partitions_reach_the_coordinator),
        CLIENT_TEST(none_is_added_when_one_is_unknown),
        CLIENT_TEST(what_the_coordinator_says_stands_at_each_partition),
        CLIENT_TEST(offsets_are_announced_as_the_groups_partition),
        CLIENT_TEST(the_end_says_with_what_the_producer_goes_on_from_version_5),
        CLIENT_TEST(transactional_offsets_carry_who_commits_them),
        CLIENT_TEST(transactional_offsets_before_version_3_name_no_member),
        CLIENT_TEST(a_described_transaction_lists_its_partitions_by_topic),
        CLIENT_TEST(a_follower_describes_nothing),
        CLIENT_TEST(listed_transactions_pass_the_filters),
        CLIENT_TEST(a_follower_lists_nothing_and_that_is_no_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
