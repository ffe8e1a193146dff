/* Order, parking and giving way on one connection; what is refused; what happens to what is left.
 */
#include "unit/kafka/fake_broker.h"
#include "unit/kafka/sample_requests.h"

static const struct kafka_metadata_request *no_topics(struct client *client)
{
    struct kafka_metadata_request *request = kafka_metadata_request_new(&client->arena, 1);
    request->topics.count = 0;
    return request;
}

static int64_t offset_of(const struct kafka_produce_response *answer)
{
    return answer->responses.items[0].partition_responses.items[0].base_offset;
}

static void produces_overlap_and_are_answered_in_request_order(void **state)
{
    struct client *client = *state;
    assert_int_equal(client_send(client, KAFKA_PRODUCE, 9, produce_to(client, 0, -1)), STATUS_OK);
    assert_int_equal(client_send(client, KAFKA_PRODUCE, 9, produce_to(client, 1, -1)), STATUS_OK);
    assert_int_equal(fake.produce_count, 2);
    fake_finish_produce(1, STATUS_OK, 20);
    assert_int_equal(client->answer_count, 0);
    fake_finish_produce(0, STATUS_OK, 10);
    assert_int_equal(offset_of(client_take(client, KAFKA_PRODUCE, 9)), 10);
    assert_int_equal(offset_of(client_take(client, KAFKA_PRODUCE, 9)), 20);
    assert_int_equal(kafka_connection_in_flight(client->connection), 0);
}

static void any_other_request_waits_for_those_before_it(void **state)
{
    struct client *client = *state;
    assert_int_equal(client_send(client, KAFKA_PRODUCE, 9, produce_to(client, 0, -1)), STATUS_OK);
    struct slice metadata = client_frame(client, KAFKA_METADATA, 9, no_topics(client));
    assert_int_equal(client_offer(client, metadata), STATUS_AGAIN);
    fake_finish_produce(0, STATUS_OK, 10);
    assert_int_equal(client->resumed, 0); /* never inside the broker's callback */
    fake_pass(0);
    assert_int_equal(client->resumed, 1);
    assert_int_equal(client_offer(client, metadata), STATUS_OK);
    (void)client_take(client, KAFKA_PRODUCE, 9);
    (void)client_take(client, KAFKA_METADATA, 9);
}

static void produce_behind_another_request_waits(void **state)
{
    struct client *client = *state;
    assert_int_equal(client_send(client, KAFKA_FETCH, 11, fetch_from(client, 0)), STATUS_OK);
    assert_int_equal(client_send(client, KAFKA_PRODUCE, 9, produce_to(client, 0, -1)),
                     STATUS_AGAIN);
    assert_int_equal(fake.produce_count, 0);
}

static void produces_in_flight_are_bounded(void **state)
{
    struct client *client = *state;
    struct slice frame = client_frame(client, KAFKA_PRODUCE, 9, produce_to(client, 0, 0));
    uint32_t taken = 0;
    while (taken < FAKE_MAX && client_offer(client, frame) == STATUS_OK)
        taken++;
    assert_int_equal(taken, 64);
}

static void parked_fetch_gives_way_to_a_frame_behind_it(void **state)
{
    struct client *client = *state;
    assert_int_equal(client_send(client, KAFKA_FETCH, 11, fetch_from(client, 0)), STATUS_OK);
    fake_pass(2000);
    struct slice metadata = client_frame(client, KAFKA_METADATA, 9, no_topics(client));
    assert_int_equal(client_offer(client, metadata), STATUS_AGAIN);
    fake_pass(2999);
    assert_non_null(fake.fetch); /* not within its first 5 ms */
    fake_pass(1);
    assert_null(fake.fetch);
    assert_int_equal(client->resumed, 1);
    assert_int_equal(client_offer(client, metadata), STATUS_OK);
    (void)client_take(client, KAFKA_FETCH, 11);
    (void)client_take(client, KAFKA_METADATA, 9);
}

static void fetch_parked_for_longer_gives_way_at_once(void **state)
{
    struct client *client = *state;
    assert_int_equal(client_send(client, KAFKA_FETCH, 11, fetch_from(client, 0)), STATUS_OK);
    fake_pass(100000);
    assert_non_null(fake.fetch); /* nobody waits behind it */
    struct slice metadata = client_frame(client, KAFKA_METADATA, 9, no_topics(client));
    assert_int_equal(client_offer(client, metadata), STATUS_AGAIN);
    assert_null(fake.fetch);
    fake_pass(0);
    assert_int_equal(client->resumed, 1);
}

static void produce_with_acks_0_has_no_answer(void **state)
{
    struct client *client = *state;
    fake.produce_at_once = STATUS_OK;
    assert_int_equal(client_send(client, KAFKA_PRODUCE, 9, produce_to(client, 0, 0)), STATUS_OK);
    assert_int_equal(fake.produces[0] == NULL, true);
    assert_int_equal(client->answer_count, 0);
    assert_int_equal(client->closed, 0);
}

static void failed_produce_with_acks_0_closes_the_connection(void **state)
{
    struct client *client = *state;
    fake_follow(2);
    assert_int_equal(client_send(client, KAFKA_PRODUCE, 9, produce_to(client, 0, 0)),
                     STATUS_CLOSED);
    assert_int_equal(client->closed, 1);
    assert_int_equal(client->answer_count, 0);
    assert_int_equal(client_send(client, KAFKA_PRODUCE, 9, produce_to(client, 0, 0)),
                     STATUS_CLOSED);
    assert_int_equal(client->closed, 1);
}

static void unknown_api_versions_version_is_answered_with_version_0(void **state)
{
    struct client *client = *state;
    /* Key 18, version 99, correlation id 7, and a body nobody can read. */
    static const uint8_t frame[] = {0, 18, 0, 99, 0, 0, 0, 7, 0xff, 0xff, 0xff, 0xff};
    assert_int_equal(client_offer(client, (struct slice){frame, sizeof(frame)}), STATUS_OK);
    assert_int_equal(client->closed, 0);
    struct buffer bytes;
    buffer_init(&bytes, 0);
    kafka_response_copy(client->answers[0], &bytes);
    static const uint8_t expected[] = {0, 0, 0, 16, 0, 0,  0, 7, 0, 35,
                                       0, 0, 0, 1,  0, 18, 0, 0, 0, 5};
    assert_int_equal(bytes.bytes, sizeof(expected));
    assert_memory_equal(bytes.data, expected, sizeof(expected));
    buffer_deinit(&bytes);
}

static void api_versions_lists_what_is_offered(void **state)
{
    struct client *client = *state;
    struct kafka_api_versions_request request = {.client_software_name = kafka_text("x"),
                                                 .client_software_version = kafka_text("1"),
                                                 .node_id = -1};
    const struct kafka_api_versions_response *answer =
        client_ask(client, KAFKA_API_VERSIONS, 3, &request);
    assert_int_equal(answer->error_code, 0);
    assert_int_equal(answer->api_keys.items[0].api_key, KAFKA_PRODUCE);
    assert_int_equal(answer->api_keys.items[0].min_version, 0); /* rule 3 */
    assert_int_equal(answer->api_keys.items[0].max_version, 12);
    for (int32_t i = 1; i < answer->api_keys.count; i++) {
        assert_true(answer->api_keys.items[i - 1].api_key < answer->api_keys.items[i].api_key);
    }
}

static void api_versions_finalizes_what_the_program_can(void **state)
{
    struct client *client = *state;
    struct kafka_api_versions_request request = {.client_software_name = kafka_text("x"),
                                                 .client_software_version = kafka_text("1")};
    const struct kafka_api_versions_response *answer =
        client_ask(client, KAFKA_API_VERSIONS, 3, &request);
    assert_int_equal(answer->finalized_features_epoch, 0);
    assert_int_equal(answer->finalized_features.count, 2);
    assert_text(answer->finalized_features.items[0].name, "group.version");
    assert_int_equal(answer->finalized_features.items[0].max_version_level, 1);
    assert_text(answer->finalized_features.items[1].name, "transaction.version");
    assert_int_equal(answer->finalized_features.items[1].max_version_level, 2);
    assert_int_equal(answer->supported_features.items[1].max_version, 2);
}

static void api_versions_5_notices_another_cluster_or_node(void **state)
{
    struct client *client = *state;
    char cluster[UUID_TEXT_BYTES];
    struct kafka_api_versions_request request = {
        .client_software_name = kafka_text(""),
        .client_software_version = kafka_text(""),
        .cluster_id = kafka_text(uuid_format(&fake.view.group, cluster)),
        .node_id = 1};
    const struct kafka_api_versions_response *answer =
        client_ask(client, KAFKA_API_VERSIONS, 5, &request);
    assert_int_equal(answer->error_code, KAFKA_NONE);
    request.node_id = 2;
    answer = client_ask(client, KAFKA_API_VERSIONS, 5, &request);
    assert_int_equal(answer->error_code, KAFKA_REBOOTSTRAP_REQUIRED);
    request.cluster_id = KAFKA_NULL;
    answer = client_ask(client, KAFKA_API_VERSIONS, 5, &request);
    assert_int_equal(answer->error_code, KAFKA_INVALID_REQUEST);
}

static void what_is_not_offered_closes_the_connection(void **state)
{
    static const uint8_t frames[][14] = {
        {0, 4, 0, 0, 0, 0, 0, 1, 0, 0},       /* LeaderAndIsr: between brokers */
        {0, 1, 0, 17, 0, 0, 0, 1, 0, 0, 0},   /* Fetch above our versions */
        {0, 0, 0, 2, 0, 0, 0, 1, 0, 0},       /* Produce 2: offered, never used */
        {0, 3, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0}, /* Metadata, cut */
        {0xff, 0xff, 0, 0, 0, 0, 0, 1},
    };
    struct client *client = *state;
    for (size_t i = 0; i < ARRAY_COUNT(frames); i++) {
        client->closed = 0;
        assert_int_equal(client_offer(client, (struct slice){frames[i], sizeof(frames[i]) - 2}),
                         STATUS_CLOSED);
        assert_int_equal(client->closed, 1);
        client_disconnect(client);
        client_connect(client);
    }
    assert_int_equal(client->answer_count, 0);
}

static void frame_sizes_are_bounded(void **state)
{
    struct client *client = *state;
    struct error error;
    size_t bytes;
    static const uint8_t fits[] = {0x06, 0x40, 0, 0}, over[] = {0x06, 0x40, 0, 1};
    static const uint8_t small[] = {0, 0, 0, 7}, negative[] = {0xff, 0xff, 0xff, 0xff};
    static const uint8_t tls[] = {0x16, 0x03, 0x01, 0x02};
    assert_int_equal(kafka_frame_bytes(client->kafka, fits, &bytes, &error), STATUS_OK);
    assert_int_equal(bytes, 104857600);
    assert_int_equal(kafka_frame_bytes(client->kafka, over, &bytes, &error), STATUS_INVALID);
    assert_int_equal(kafka_frame_bytes(client->kafka, small, &bytes, &error), STATUS_INVALID);
    assert_int_equal(kafka_frame_bytes(client->kafka, negative, &bytes, &error), STATUS_INVALID);
    assert_int_equal(kafka_frame_bytes(client->kafka, tls, &bytes, &error), STATUS_INVALID);
    assert_non_null(strstr(error.text, "TLS"));
}

static void requests_wait_until_the_new_leader_is_ready(void **state)
{
    struct client *client = *state;
    fake.serving = STATUS_NOT_READY;
    fake.view.serving = false;
    assert_int_equal(client_send(client, KAFKA_PRODUCE, 9, produce_to(client, 0, -1)), STATUS_OK);
    struct slice second = client_frame(client, KAFKA_PRODUCE, 9, produce_to(client, 1, -1));
    assert_int_equal(client_offer(client, second), STATUS_AGAIN);
    assert_int_equal(fake.produce_count, 0);
    fake_serve();
    fake_end_waits(STATUS_OK, true);
    assert_int_equal(fake.produce_count, 0); /* not inside the broker's callback */
    fake.produce_at_once = STATUS_OK;
    fake_pass(0);
    assert_int_equal(fake.produce_count, 1);
    assert_int_equal(offset_of(client_take(client, KAFKA_PRODUCE, 9)), 100);
    fake_pass(0);
    assert_int_equal(client->resumed, 1);
    assert_int_equal(client_offer(client, second), STATUS_OK);
}

static void leader_that_is_not_ready_in_time_is_told_as_not_leader(void **state)
{
    struct client *client = *state;
    fake.serving = STATUS_NOT_READY;
    fake.view.serving = false;
    assert_int_equal(client_send(client, KAFKA_PRODUCE, 9, produce_to(client, 0, -1)), STATUS_OK);
    fake_pass(FAKE_LEADER_US);
    const struct kafka_produce_response *answer = client_take(client, KAFKA_PRODUCE, 9);
    assert_int_equal(answer->responses.items[0].partition_responses.items[0].error_code,
                     KAFKA_NOT_LEADER_OR_FOLLOWER);
}

static void produce_of_a_gone_client_is_cancelled(void **state)
{
    struct client *client = *state;
    assert_int_equal(client_send(client, KAFKA_PRODUCE, 9, produce_to(client, 0, -1)), STATUS_OK);
    client_disconnect(client);
    assert_int_equal(fake.produces_cancelled, 1);
    struct kafka_stats stats;
    kafka_stats(client->kafka, &stats);
    assert_int_equal(stats.in_flight, 0);
}

static void fetch_of_a_gone_client_is_cancelled(void **state)
{
    struct client *client = *state;
    assert_int_equal(client_send(client, KAFKA_FETCH, 11, fetch_from(client, 0)), STATUS_OK);
    client_disconnect(client);
    assert_true(fake.fetch_cancelled);
}

static void request_that_cannot_be_cancelled_outlives_its_client(void **state)
{
    struct client *client = *state;
    struct kafka_list_offsets_request request = {.replica_id = -1};
    struct kafka_list_offsets_request_topic topic = {.name = kafka_text("orders")};
    struct kafka_list_offsets_request_partition partition = {.timestamp = -1};
    request.topics.items = &topic;
    request.topics.count = 1;
    topic.partitions.items = &partition;
    topic.partitions.count = 1;
    fake.lookup_later = true;
    assert_int_equal(client_send(client, KAFKA_LIST_OFFSETS, 1, &request), STATUS_OK);
    client_disconnect(client);
    struct kafka_stats stats;
    kafka_stats(client->kafka, &stats);
    assert_int_equal(stats.in_flight, 1);
    fake_finish_lookup(0, STATUS_OK, 5);
    kafka_stats(client->kafka, &stats);
    assert_int_equal(stats.in_flight, 0);
}

static void request_parked_for_a_leader_goes_with_its_client(void **state)
{
    struct client *client = *state;
    fake_follow(-1);
    assert_int_equal(client_send(client, KAFKA_METADATA, 9, no_topics(client)), STATUS_OK);
    assert_int_equal(fake.wait_count, 1);
    client_disconnect(client);
    assert_int_equal(fake.wait_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLIENT_TEST(produces_overlap_and_are_answered_in_request_order),
        CLIENT_TEST(any_other_request_waits_for_those_before_it),
        CLIENT_TEST(produce_behind_another_request_waits),
        CLIENT_TEST(produces_in_flight_are_bounded),
        CLIENT_TEST(parked_fetch_gives_way_to_a_frame_behind_it),
        CLIENT_TEST(fetch_parked_for_longer_gives_way_at_once),
        CLIENT_TEST(produce_with_acks_0_has_no_answer),
        CLIENT_TEST(failed_produce_with_acks_0_closes_the_connection),
        CLIENT_TEST(unknown_api_versions_version_is_answered_with_version_0),
        CLIENT_TEST(api_versions_lists_what_is_offered),
        CLIENT_TEST(api_versions_finalizes_what_the_program_can),
        CLIENT_TEST(api_versions_5_notices_another_cluster_or_node),
        CLIENT_TEST(what_is_not_offered_closes_the_connection),
        CLIENT_TEST(frame_sizes_are_bounded),
        CLIENT_TEST(requests_wait_until_the_new_leader_is_ready),
        CLIENT_TEST(leader_that_is_not_ready_in_time_is_told_as_not_leader),
        CLIENT_TEST(produce_of_a_gone_client_is_cancelled),
        CLIENT_TEST(fetch_of_a_gone_client_is_cancelled),
        CLIENT_TEST(request_that_cannot_be_cancelled_outlives_its_client),
        CLIENT_TEST(request_parked_for_a_leader_goes_with_its_client),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
