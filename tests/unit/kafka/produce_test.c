/* Produce: verdicts and their codes, version by version. */
#include "unit/kafka/fake_broker.h"
#include "unit/kafka/sample_requests.h"

typedef struct kafka_produce_response_partition partition_answer;

static const partition_answer *only_partition(const struct kafka_produce_response *answer)
{
    assert_int_equal(answer->responses.count, 1);
    assert_text(answer->responses.items[0].name, "orders");
    assert_int_equal(answer->responses.items[0].partition_responses.count, 1);
    return &answer->responses.items[0].partition_responses.items[0];
}

static const partition_answer *ask(struct client *client, int16_t version,
                                   const struct kafka_produce_request *request)
{
    return only_partition(client_ask(client, KAFKA_PRODUCE, version, request));
}

static void set_records(struct kafka_produce_request *request, struct slice records)
{
    request->topic_data.items[0].partition_data.items[0].records.data = records;
}

static void answer_carries_the_offset_and_the_log_start(void **state)
{
    struct client *client = *state;
    fake.produce_at_once = STATUS_OK;
    const partition_answer *answer = ask(client, 8, produce_to(client, 2, -1));
    assert_int_equal(answer->index, 2);
    assert_int_equal(answer->error_code, 0);
    assert_int_equal(answer->base_offset, 100);
    assert_int_equal(answer->log_append_time_ms, -1);
    assert_int_equal(answer->log_start_offset, 0);
}

static void whole_request_is_answered_when_its_last_partition_is_done(void **state)
{
    struct client *client = *state;
    struct kafka_produce_request *request = produce_to(client, 0, -1);
    struct kafka_produce_request_partition *partitions =
        kafka_produce_request_partition_new(&client->arena, 2);
    partitions[0].index = 0;
    partitions[1].index = 9; /* unknown: fails early, waits with the rest */
    partitions[0].records.data = partitions[1].records.data = one_batch(client);
    request->topic_data.items[0].partition_data.items = partitions;
    request->topic_data.items[0].partition_data.count = 2;
    assert_int_equal(client_send(client, KAFKA_PRODUCE, 9, request), STATUS_OK);
    assert_int_equal(client->answer_count, 0);
    fake_finish_produce(0, STATUS_OK, 10);
    const struct kafka_produce_response *answer = client_take(client, KAFKA_PRODUCE, 9);
    const partition_answer *both = answer->responses.items[0].partition_responses.items;
    assert_int_equal(both[0].base_offset, 10);
    assert_int_equal(both[1].index, 9);
    assert_int_equal(both[1].error_code, KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
    assert_int_equal(both[1].base_offset, -1);
}

static void request_without_topics_is_answered_at_once(void **state)
{
    struct client *client = *state;
    struct kafka_produce_request request = {.acks = -1};
    const struct kafka_produce_response *answer = client_ask(client, KAFKA_PRODUCE, 7, &request);
    assert_int_equal(answer->responses.count, 0);
}

static void acks_and_time_out_reach_the_broker(void **state)
{
    struct client *client = *state;
    struct kafka_produce_request *request = produce_to(client, 0, 1);
    request->timeout_ms = 1500;
    assert_int_equal(client_send(client, KAFKA_PRODUCE, 6, request), STATUS_OK);
    assert_int_equal(fake.produces[0]->acks, ACKS_LEADER);
    assert_int_equal(fake.produces[0]->timeout_us, 1500000);
    assert_false(fake.produces[0]->allow_zstd);
    request = produce_to(client, 0, -1);
    request->timeout_ms = 30000; /* the smaller of it and AckTimeout */
    assert_int_equal(client_send(client, KAFKA_PRODUCE, 7, request), STATUS_OK);
    assert_int_equal(fake.produces[1]->acks, ACKS_ALL);
    assert_int_equal(fake.produces[1]->timeout_us, 5000000);
    assert_true(fake.produces[1]->allow_zstd);
}

static void unknown_acks_are_refused(void **state)
{
    struct client *client = *state;
    assert_int_equal(ask(client, 9, produce_to(client, 0, 2))->error_code,
                     KAFKA_INVALID_REQUIRED_ACKS);
    assert_int_equal(fake.produce_count, 0);
}

static void what_is_not_one_batch_is_refused(void **state)
{
    struct client *client = *state;
    struct slice batch = one_batch(client);
    uint8_t *twice = arena_new(&client->arena, batch.bytes * 2);
    memcpy(twice, batch.data, batch.bytes);
    memcpy(twice + batch.bytes, batch.data, batch.bytes);
    uint8_t *old = arena_new(&client->arena, batch.bytes);
    memcpy(old, batch.data, batch.bytes);
    old[16] = 1;
    const struct {
        struct slice records;
        int16_t error;
    } cases[] = {
        {KAFKA_NULL, KAFKA_INVALID_RECORD},
        {kafka_text(""), KAFKA_INVALID_RECORD},
        {{twice, batch.bytes * 2}, KAFKA_INVALID_RECORD},
        {{old, batch.bytes}, KAFKA_INVALID_RECORD},
        {{batch.data, batch.bytes - 1}, KAFKA_CORRUPT_MESSAGE},
        {{batch.data, 60}, KAFKA_CORRUPT_MESSAGE},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct kafka_produce_request *request = produce_to(client, 0, -1);
        set_records(request, cases[i].records);
        const partition_answer *answer = ask(client, 9, request);
        assert_int_equal(answer->error_code, cases[i].error);
        assert_true(answer->error_message.bytes > 0);
    }
    assert_int_equal(fake.produce_count, 0);
}

static void batch_over_the_topics_limit_is_refused_before_it_is_copied(void **state)
{
    struct client *client = *state;
    fake.topics[0].settings.batch_bytes_max = 70;
    struct kafka_produce_request *request = produce_to(client, 0, -1);
    assert_true(one_batch(client).bytes <= 70);
    fake.topics[0].settings.batch_bytes_max = 65;
    assert_int_equal(ask(client, 9, request)->error_code, KAFKA_MESSAGE_TOO_LARGE);
    assert_int_equal(fake.produce_count, 0);
}

static void follower_names_the_leader_from_version_10_on(void **state)
{
    struct client *client = *state;
    fake_follow(2);
    const partition_answer *answer = ask(client, 9, produce_to(client, 0, -1));
    assert_int_equal(answer->error_code, KAFKA_NOT_LEADER_OR_FOLLOWER);
    assert_null(answer->error_message.data);

    const struct kafka_produce_response *whole =
        client_ask(client, KAFKA_PRODUCE, 10, produce_to(client, 0, -1));
    answer = only_partition(whole);
    assert_int_equal(answer->current_leader.leader_id, 2);
    assert_int_equal(answer->current_leader.leader_epoch, 7);
    assert_int_equal(whole->node_endpoints.count, 1);
    assert_int_equal(whole->node_endpoints.items[0].node_id, 2);
    assert_text(whole->node_endpoints.items[0].host, "host2");
    assert_int_equal(whole->node_endpoints.items[0].port, 9092);
}

static void unknown_leader_is_not_named(void **state)
{
    struct client *client = *state;
    fake_follow(-1);
    const struct kafka_produce_response *whole =
        client_ask(client, KAFKA_PRODUCE, 10, produce_to(client, 0, -1));
    assert_int_equal(only_partition(whole)->error_code, KAFKA_NOT_LEADER_OR_FOLLOWER);
    assert_int_equal(only_partition(whole)->current_leader.leader_id, -1);
    assert_int_equal(whole->node_endpoints.count, 0);
}

static void parked_produce_gets_the_new_leader_on_step_down(void **state)
{
    struct client *client = *state;
    assert_int_equal(client_send(client, KAFKA_PRODUCE, 10, produce_to(client, 0, -1)), STATUS_OK);
    fake_follow(3);
    fake.view.epoch = 8;
    fake_finish_produce(0, STATUS_NOT_LEADER, -1);
    const partition_answer *answer = only_partition(client_take(client, KAFKA_PRODUCE, 10));
    assert_int_equal(answer->error_code, KAFKA_NOT_LEADER_OR_FOLLOWER);
    assert_int_equal(answer->current_leader.leader_id, 3);
    assert_int_equal(answer->current_leader.leader_epoch, 8);
}

static void brokers_verdicts_have_kafkas_codes(void **state)
{
    struct client *client = *state;
    static const struct {
        enum status status;
        int16_t error;
    } cases[] = {
        {STATUS_NOT_ENOUGH_REPLICAS_AFTER, 20},
        {STATUS_TIMEOUT, 7},
        {STATUS_OUT_OF_ORDER_SEQUENCE, 45},
        {STATUS_STALE_PRODUCER_EPOCH, 47},
        {STATUS_INVALID_RECORD, 87},
        {STATUS_INVALID_TIMESTAMP, 32},
        {STATUS_CORRUPT, 2},
        {STATUS_STORAGE_ERROR, 56},
        {STATUS_NO_SPACE, 56},
        {STATUS_UNSUPPORTED_COMPRESSION, 76},
        {STATUS_FENCED_EPOCH, 6},
        {STATUS_LIMIT, 19},
        {STATUS_TOPIC_FORBIDDEN, 17},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        fake.produce_at_once = cases[i].status;
        assert_int_equal(ask(client, 9, produce_to(client, 0, -1))->error_code, cases[i].error);
    }
    fake.produce_at_once = STATUS_STORAGE_ERROR;
    assert_int_equal(ask(client, 3, produce_to(client, 0, -1))->error_code, 6);
    fake.precheck = STATUS_NOT_ENOUGH_REPLICAS;
    assert_int_equal(ask(client, 9, produce_to(client, 0, -1))->error_code, 19);
}

/* A batch of an idempotent producer; only its header is looked at here. */
static struct kafka_produce_request *numbered(struct client *client, int32_t partition,
                                              int16_t epoch, int32_t sequence)
{
    struct kafka_produce_request *request = produce_to(client, partition, -1);
    struct slice batch = one_batch(client);
    uint8_t *copy = arena_new(&client->arena, batch.bytes);
    memcpy(copy, batch.data, batch.bytes);
    store_u64(copy + 43, 4711);
    store_u16(copy + 51, (uint16_t)epoch);
    store_u32(copy + 53, (uint32_t)sequence);
    set_records(request, (struct slice){copy, batch.bytes});
    return request;
}

static int16_t refuse_numbered(struct client *client, enum status status, int32_t partition,
                               int16_t epoch, int32_t sequence)
{
    fake.produce_at_once = status;
    return ask(client, 9, numbered(client, partition, epoch, sequence))->error_code;
}

static void what_is_pipelined_behind_a_refused_batch_is_refused_alike(void **state)
{
    struct client *client = *state;
    const enum status ahead = STATUS_OUT_OF_ORDER_SEQUENCE;
    assert_int_equal(refuse_numbered(client, ahead, 0, 0, 10), 45); /* nothing refused yet */
    fake.precheck = STATUS_NOT_LEADER;
    assert_int_equal(refuse_numbered(client, STATUS_OK, 0, 0, 10), 6);
    fake.precheck = STATUS_OK;
    assert_int_equal(refuse_numbered(client, ahead, 0, 0, 12), 6);
    assert_int_equal(refuse_numbered(client, ahead, 0, 0, 15), 6);
    assert_int_equal(refuse_numbered(client, ahead, 0, 0, 9), 45);  /* before it */
    assert_int_equal(refuse_numbered(client, ahead, 1, 0, 12), 45); /* elsewhere */
    assert_int_equal(refuse_numbered(client, ahead, 0, 1, 12), 45); /* another epoch of it */
    assert_int_equal(refuse_numbered(client, STATUS_OK, 0, 0, 10), 0);
    assert_int_equal(refuse_numbered(client, ahead, 0, 0, 20), 45); /* the first one is there */
    fake.precheck = STATUS_NOT_ENOUGH_REPLICAS;
    assert_int_equal(refuse_numbered(client, STATUS_OK, 0, 0, INT32_MAX), 19);
    fake.precheck = STATUS_OK;
    assert_int_equal(refuse_numbered(client, ahead, 0, 0, 0), 19); /* numbers go round */
    fake.loop.now_us += 6000000;
    assert_int_equal(refuse_numbered(client, ahead, 0, 0, 0), 45); /* it did not come again */
}

static void record_at_fault_is_named(void **state)
{
    struct client *client = *state;
    assert_int_equal(client_send(client, KAFKA_PRODUCE, 8, produce_to(client, 0, -1)), STATUS_OK);
    fake.produces[0]->fault_record = 3;
    fake_finish_produce(0, STATUS_INVALID_RECORD, -1);
    const partition_answer *answer = only_partition(client_take(client, KAFKA_PRODUCE, 8));
    assert_int_equal(answer->record_errors.count, 1);
    assert_int_equal(answer->record_errors.items[0].batch_index, 3);
    assert_text(answer->error_message, "because");
}

static struct kafka_produce_request *transactional_produce(struct client *client,
                                                           int64_t producer_id)
{
    struct batch_build_options options = BATCH_BUILD_PLAIN;
    options.transactional = true;
    options.producer_id = producer_id;
    options.producer_epoch = 0;
    options.base_sequence = 0;
    struct kafka_produce_request *request = produce_to(client, 0, -1);
    set_records(request, one_batch_of(client, options));
    return request;
}

static void a_transactional_batch_without_a_transactional_id_is_refused(void **state)
{
    struct client *client = *state;
    struct kafka_produce_request *request = transactional_produce(client, 5);
    assert_int_equal(ask(client, 10, request)->error_code,
                     KAFKA_TRANSACTIONAL_ID_AUTHORIZATION_FAILED);
    assert_int_equal(fake.produce_count, 0);
}

static void the_broker_hears_of_which_transaction_and_client_a_batch_is(void **state)
{
    static const struct {
        int16_t version;
        enum transaction_client client;
    } cases[] = {{10, TRANSACTION_CLIENT_OLD},
                 {11, TRANSACTION_CLIENT_ABORTABLE},
                 {12, TRANSACTION_CLIENT_V2}};
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct client *client = *state;
        struct kafka_produce_request *request = transactional_produce(client, 5);
        request->transactional_id = kafka_text("tx");
        assert_int_equal(client_send(client, KAFKA_PRODUCE, cases[i].version, request), STATUS_OK);
        struct produce *produce = fake.produces[i];
        assert_text(produce->transactional_id, "tx");
        assert_int_equal(produce->transaction_client, cases[i].client);
        assert_int_equal(produce->rules,
                         cases[i].version == 12 ? PRODUCER_RULES_KAFKA_V2 : PRODUCER_RULES_KAFKA);
        fake_finish_produce((uint32_t)i, STATUS_OK, 7);
        client_take(client, KAFKA_PRODUCE, cases[i].version);
    }
}

static void what_a_transaction_says_has_a_code_that_the_version_knows(void **state)
{
    static const struct {
        int16_t version;
        enum status status;
        int16_t error;
    } cases[] = {{10, STATUS_INVALID_TXN_STATE, KAFKA_INVALID_TXN_STATE},
                 {11, STATUS_TXN_ABORTABLE, KAFKA_TRANSACTION_ABORTABLE},
                 {10, STATUS_STALE_PRODUCER_EPOCH, KAFKA_INVALID_PRODUCER_EPOCH},
                 {12, STATUS_PRODUCER_ID_MAPPING, KAFKA_INVALID_PRODUCER_ID_MAPPING},
                 {11, STATUS_CONCURRENT_TRANSACTIONS, KAFKA_NOT_ENOUGH_REPLICAS},
                 {12, STATUS_CONCURRENT_TRANSACTIONS, KAFKA_CONCURRENT_TRANSACTIONS}};
    struct client *client = *state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct kafka_produce_request *request = transactional_produce(client, 5);
        request->transactional_id = kafka_text("tx");
        assert_int_equal(client_send(client, KAFKA_PRODUCE, cases[i].version, request), STATUS_OK);
        fake_finish_produce((uint32_t)i, cases[i].status, -1);
        assert_int_equal(
            only_partition(client_take(client, KAFKA_PRODUCE, cases[i].version))->error_code,
            cases[i].error);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLIENT_TEST(answer_carries_the_offset_and_the_log_start),
        CLIENT_TEST(whole_request_is_answered_when_its_last_partition_is_done),
        CLIENT_TEST(request_without_topics_is_answered_at_once),
        CLIENT_TEST(acks_and_time_out_reach_the_broker),
        CLIENT_TEST(unknown_acks_are_refused),
        CLIENT_TEST(what_is_not_one_batch_is_refused),
        CLIENT_TEST(batch_over_the_topics_limit_is_refused_before_it_is_copied),
        CLIENT_TEST(follower_names_the_leader_from_version_10_on),
        CLIENT_TEST(unknown_leader_is_not_named),
        CLIENT_TEST(parked_produce_gets_the_new_leader_on_step_down),
        CLIENT_TEST(brokers_verdicts_have_kafkas_codes),
        CLIENT_TEST(what_is_pipelined_behind_a_refused_batch_is_refused_alike),
        CLIENT_TEST(record_at_fault_is_named),
        CLIENT_TEST(a_transactional_batch_without_a_transactional_id_is_refused),
        CLIENT_TEST(the_broker_hears_of_which_transaction_and_client_a_batch_is),
        CLIENT_TEST(what_a_transaction_says_has_a_code_that_the_version_knows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
