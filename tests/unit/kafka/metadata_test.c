/* What clients are told about the group: Metadata, FindCoordinator, DescribeCluster, ListGroups. */
#include "unit/kafka/fake_broker.h"

typedef struct kafka_metadata_response_topic topic_answer;

static struct kafka_metadata_request *metadata_of(struct client *client, const char *const *names,
                                                  int32_t count)
{
    struct kafka_metadata_request *request = kafka_metadata_request_new(&client->arena, 1);
    request->allow_auto_topic_creation = false;
    request->topics.count = count;
    if (count < 0) return request;
    request->topics.items = kafka_metadata_request_topic_new(&client->arena, count);
    for (int32_t i = 0; i < count; i++)
        request->topics.items[i].name = kafka_text(names[i]);
    return request;
}

static const topic_answer *ask_one(struct client *client, int16_t version, const char *name)
{
    const struct kafka_metadata_response *answer =
        client_ask(client, KAFKA_METADATA, version, metadata_of(client, &name, 1));
    assert_int_equal(answer->topics.count, 1);
    return &answer->topics.items[0];
}

static void all_brokers_and_the_leader_are_named(void **state)
{
    struct client *client = *state;
    char cluster[UUID_TEXT_BYTES];
    const struct kafka_metadata_response *answer =
        client_ask(client, KAFKA_METADATA, 12, metadata_of(client, NULL, 0));
    assert_int_equal(answer->brokers.count, 3);
    assert_int_equal(answer->brokers.items[1].node_id, 2);
    assert_text(answer->brokers.items[1].host, "host2");
    assert_int_equal(answer->brokers.items[1].port, 9092);
    assert_null(answer->brokers.items[1].rack.data);
    assert_int_equal(answer->controller_id, 1);
    assert_text(answer->cluster_id, uuid_format(&fake.view.group, cluster));
    assert_int_equal(answer->topics.count, 0);
}

static void broker_without_configured_address_names_the_one_it_was_reached_at(void **state)
{
    struct client *client = *state;
    fake.view.members[0].client_host[0] = '\0';
    const struct kafka_metadata_response *answer =
        client_ask(client, KAFKA_METADATA, 1, metadata_of(client, NULL, 0));
    assert_text(answer->brokers.items[0].host, "10.0.0.1");
    assert_int_equal(answer->brokers.items[0].port, 9092);
}

static void partitions_have_leader_epoch_replicas_and_isr(void **state)
{
    struct client *client = *state;
    fake.view.isr_count = 2;
    const topic_answer *topic = ask_one(client, 12, "orders");
    assert_int_equal(topic->error_code, 0);
    assert_text(topic->name, "orders");
    assert_true(uuid_equal(&topic->topic_id, &fake.topics[0].uid));
    assert_false(topic->is_internal);
    assert_int_equal(topic->topic_authorized_operations, INT32_MIN);
    assert_int_equal(topic->partitions.count, 3);
    for (int32_t i = 0; i < 3; i++) {
        assert_int_equal(topic->partitions.items[i].partition_index, i);
        assert_int_equal(topic->partitions.items[i].error_code, 0);
        assert_int_equal(topic->partitions.items[i].leader_id, 1);
        assert_int_equal(topic->partitions.items[i].leader_epoch, 7);
        assert_int_equal(topic->partitions.items[i].replica_nodes.count, 3);
        assert_int_equal(topic->partitions.items[i].isr_nodes.count, 2);
        assert_int_equal(topic->partitions.items[i].isr_nodes.items[1], 2);
    }
}

static void null_and_version_0_without_topics_ask_for_all(void **state)
{
    struct client *client = *state;
    (void)fake_add_topic("__consumer_offsets", 2);
    const struct kafka_metadata_response *answer =
        client_ask(client, KAFKA_METADATA, 1, metadata_of(client, NULL, -1));
    assert_int_equal(answer->topics.count, 2);
    assert_true(answer->topics.items[1].is_internal);
    answer = client_ask(client, KAFKA_METADATA, 0, metadata_of(client, NULL, 0));
    assert_int_equal(answer->topics.count, 2);
    answer = client_ask(client, KAFKA_METADATA, 1, metadata_of(client, NULL, 0));
    assert_int_equal(answer->topics.count, 0);
}

static void topic_asked_for_twice_is_answered_once(void **state)
{
    struct client *client = *state;
    static const char *const names[] = {"orders", "none", "orders", "none"};
    const struct kafka_metadata_response *answer =
        client_ask(client, KAFKA_METADATA, 9, metadata_of(client, names, 4));
    assert_int_equal(answer->topics.count, 2);
    assert_text(answer->topics.items[0].name, "orders");
    assert_text(answer->topics.items[1].name, "none");
}

static void unknown_and_invalid_names_are_told_apart(void **state)
{
    struct client *client = *state;
    assert_int_equal(ask_one(client, 9, "none")->error_code, KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
    assert_int_equal(ask_one(client, 9, "no/ne")->error_code, KAFKA_INVALID_TOPIC);
    assert_int_equal(ask_one(client, 9, "")->error_code, KAFKA_INVALID_TOPIC);
    assert_int_equal(ask_one(client, 9, "..")->error_code, KAFKA_INVALID_TOPIC);
}

static void topics_can_be_asked_for_by_id(void **state)
{
    struct client *client = *state;
    struct kafka_metadata_request *request = metadata_of(client, (const char *[]){"x", "y"}, 2);
    request->topics.items[0].name = request->topics.items[1].name = KAFKA_NULL;
    request->topics.items[0].topic_id = fake.topics[0].uid;
    request->topics.items[1].topic_id.bytes[3] = 5;
    const struct kafka_metadata_response *answer = client_ask(client, KAFKA_METADATA, 12, request);
    assert_text(answer->topics.items[0].name, "orders");
    assert_int_equal(answer->topics.items[1].error_code, KAFKA_UNKNOWN_TOPIC_ID);
    assert_null(answer->topics.items[1].name.data);
    assert_int_equal(answer->topics.items[1].topic_id.bytes[3], 5);
}

static void a_topic_id_counts_before_an_empty_name(void **state)
{
    struct client *client = *state;
    struct kafka_metadata_request *request = metadata_of(client, (const char *[]){""}, 1);
    request->topics.items[0].topic_id = fake.topics[0].uid;
    const struct kafka_metadata_response *answer = client_ask(client, KAFKA_METADATA, 12, request);
    assert_int_equal(answer->topics.items[0].error_code, KAFKA_NONE);
    assert_text(answer->topics.items[0].name, "orders");
    assert_true(uuid_equal(&answer->topics.items[0].topic_id, &fake.topics[0].uid));
}

static void operations_are_listed_when_asked_for(void **state)
{
    struct client *client = *state;
    struct kafka_metadata_request *request = metadata_of(client, (const char *[]){"orders"}, 1);
    request->include_topic_authorized_operations = true;
    request->include_cluster_authorized_operations = true;
    const struct kafka_metadata_response *answer = client_ask(client, KAFKA_METADATA, 8, request);
    assert_true(answer->topics.items[0].topic_authorized_operations & 1 << 3);
    assert_true(answer->cluster_authorized_operations & 1 << 7);
}

/* ---- elections ---- */

static void election_parks_metadata_until_the_leader_is_known(void **state)
{
    struct client *client = *state;
    fake_follow(-1);
    struct kafka_metadata_request *request = metadata_of(client, (const char *[]){"orders"}, 1);
    assert_int_equal(client_send(client, KAFKA_METADATA, 9, request), STATUS_OK);
    fake_pass(1000000);
    assert_int_equal(client->answer_count, 0);
    fake_follow(2);
    fake.view.epoch = 8;
    fake_end_waits(STATUS_OK, true);
    fake_pass(0);
    const struct kafka_metadata_response *answer = client_take(client, KAFKA_METADATA, 9);
    assert_int_equal(answer->controller_id, 2);
    assert_int_equal(answer->topics.items[0].partitions.items[0].leader_id, 2);
    assert_int_equal(answer->topics.items[0].partitions.items[0].leader_epoch, 8);
}

static void without_a_leader_in_time_partitions_say_leader_not_available(void **state)
{
    struct client *client = *state;
    fake_follow(-1);
    struct kafka_metadata_request *request = metadata_of(client, (const char *[]){"orders"}, 1);
    assert_int_equal(client_send(client, KAFKA_METADATA, 9, request), STATUS_OK);
    fake_pass(FAKE_LEADER_US);
    const struct kafka_metadata_response *answer = client_take(client, KAFKA_METADATA, 9);
    assert_int_equal(answer->brokers.count, 3);
    assert_int_equal(answer->controller_id, -1);
    const topic_answer *topic = &answer->topics.items[0];
    assert_int_equal(topic->error_code, 0);
    assert_int_equal(topic->partitions.items[0].error_code, KAFKA_LEADER_NOT_AVAILABLE);
    assert_int_equal(topic->partitions.items[0].leader_id, -1);
    assert_int_equal(topic->partitions.items[0].leader_epoch, 7);
    assert_int_equal(topic->partitions.items[0].replica_nodes.count, 3);
}

static void new_leader_does_not_name_itself_before_it_serves(void **state)
{
    struct client *client = *state;
    fake.serving = STATUS_NOT_READY;
    fake.view.serving = false;
    assert_int_equal(client_send(client, KAFKA_METADATA, 9, metadata_of(client, NULL, 0)),
                     STATUS_OK);
    assert_int_equal(client->answer_count, 0);
    fake_serve();
    fake_end_waits(STATUS_OK, true);
    fake_pass(0);
    const struct kafka_metadata_response *answer = client_take(client, KAFKA_METADATA, 9);
    assert_int_equal(answer->controller_id, 1);
}

static void follower_that_may_lag_calls_no_topic_unknown(void **state)
{
    struct client *client = *state;
    fake_follow(2);
    assert_int_equal(ask_one(client, 9, "none")->error_code, KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
    fake.view.isr[0] = 2; /* 1 is out of it */
    fake.view.isr[1] = 3;
    fake.view.isr_count = 2;
    assert_int_equal(ask_one(client, 9, "none")->error_code, KAFKA_LEADER_NOT_AVAILABLE);
}

/* ---- creation by asking ---- */

static void unknown_topic_is_created_and_its_real_metadata_answered(void **state)
{
    struct client *client = *state;
    static const char *const names[] = {"orders", "fresh"};
    struct kafka_metadata_request *request = metadata_of(client, names, 2);
    request->allow_auto_topic_creation = true;
    fake.admin_creates = true;
    const struct kafka_metadata_response *answer = client_ask(client, KAFKA_METADATA, 4, request);
    assert_int_equal(fake.admin_count, 1);
    assert_string_equal(fake.admin[0].topic, "fresh");
    assert_int_equal(fake.admin[0].partitions, 0);
    assert_int_equal(answer->topics.count, 2);
    assert_int_equal(answer->topics.items[1].error_code, 0);
    assert_int_equal(answer->topics.items[1].partitions.count, 1);
}

static void versions_before_4_always_create(void **state)
{
    struct client *client = *state;
    struct kafka_metadata_request *request = metadata_of(client, (const char *[]){"fresh"}, 1);
    fake.admin_creates = true;
    const struct kafka_metadata_response *answer = client_ask(client, KAFKA_METADATA, 1, request);
    assert_int_equal(answer->topics.items[0].error_code, 0);
}

static void nothing_is_created_where_it_is_not_wanted(void **state)
{
    struct client *client = *state;
    static const char *const names[] = {"__consumer_offsets", "no/ne", "orders"};
    struct kafka_metadata_request *request = metadata_of(client, names, 3);
    request->allow_auto_topic_creation = true;
    (void)client_ask(client, KAFKA_METADATA, 9, request);
    assert_int_equal(fake.admin_count, 0);
    request = metadata_of(client, (const char *[]){"fresh"}, 1);
    (void)client_ask(client, KAFKA_METADATA, 9, request);
    fake.settings.auto_create_topics = false;
    request->allow_auto_topic_creation = true;
    (void)client_ask(client, KAFKA_METADATA, 9, request);
    assert_int_equal(fake.admin_count, 0);
}

static void creation_that_is_not_committed_yet_reads_as_leader_not_available(void **state)
{
    struct client *client = *state;
    struct kafka_metadata_request *request = metadata_of(client, (const char *[]){"fresh"}, 1);
    request->allow_auto_topic_creation = true;
    fake.admin_status = STATUS_TIMEOUT;
    const struct kafka_metadata_response *answer = client_ask(client, KAFKA_METADATA, 9, request);
    assert_int_equal(answer->topics.items[0].error_code, KAFKA_LEADER_NOT_AVAILABLE);
    fake.admin_status = STATUS_LIMIT;
    answer = client_ask(client, KAFKA_METADATA, 9, request);
    assert_int_equal(answer->topics.items[0].error_code, KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
}

static void follower_has_the_leader_create(void **state)
{
    struct client *client = *state;
    fake_follow(2);
    struct kafka_metadata_request *request = metadata_of(client, (const char *[]){"fresh"}, 1);
    request->allow_auto_topic_creation = true;
    assert_int_equal(client_send(client, KAFKA_METADATA, 9, request), STATUS_OK);
    assert_int_equal(client->answer_count, 0);
    assert_int_equal(fake.forward_count, 1);
    assert_int_equal(fake.forward->api_key, KAFKA_CREATE_TOPICS);
    struct kafka_create_topics_request asked;
    struct reader reader;
    reader_init(&reader, fake.forward->body.data, fake.forward->body.bytes);
    assert_int_equal(kafka_decode(&kafka_create_topics_request_struct, fake.forward->api_version,
                                  true, &reader, &client->arena, &asked, NULL),
                     STATUS_OK);
    assert_int_equal(reader_left(&reader), 0);
    assert_int_equal(asked.topics.count, 1);
    assert_text(asked.topics.items[0].name, "fresh");
    assert_int_equal(asked.topics.items[0].num_partitions, -1);
    assert_int_equal(asked.topics.items[0].replication_factor, -1);

    struct kafka_create_topics_response answered = {0};
    struct kafka_create_topics_response_topic topic = {.name = kafka_text("fresh"),
                                                       .configs = {NULL, -1}};
    answered.topics.items = &topic;
    answered.topics.count = 1;
    struct kafka_response encoded;
    kafka_response_init(&encoded, 0);
    kafka_encode(&kafka_create_topics_response_struct, fake.forward->api_version, true, &answered,
                 &encoded);
    (void)fake_add_topic("fresh", 1); /* the manifest came first */
    fake.forward->done(fake.forward->context, STATUS_OK, buffer_slice(&encoded.own));
    kafka_response_deinit(&encoded);
    const struct kafka_metadata_response *answer = client_take(client, KAFKA_METADATA, 9);
    assert_int_equal(answer->topics.items[0].error_code, 0);
    assert_int_equal(answer->topics.items[0].partitions.items[0].leader_id, 2);
}

static void creation_that_the_leader_did_not_answer_is_retried_by_the_client(void **state)
{
    struct client *client = *state;
    fake_follow(2);
    struct kafka_metadata_request *request = metadata_of(client, (const char *[]){"fresh"}, 1);
    request->allow_auto_topic_creation = true;
    assert_int_equal(client_send(client, KAFKA_METADATA, 9, request), STATUS_OK);
    fake.forward->done(fake.forward->context, STATUS_TIMEOUT, (struct slice){NULL, 0});
    const struct kafka_metadata_response *answer = client_take(client, KAFKA_METADATA, 9);
    assert_int_equal(answer->topics.items[0].error_code, KAFKA_LEADER_NOT_AVAILABLE);
}

/* ---- coordinators, cluster, groups ---- */

static void leader_coordinates_groups_and_transactions(void **state)
{
    struct client *client = *state;
    struct kafka_find_coordinator_request request = {.key = kafka_text("g")};
    const struct kafka_find_coordinator_response *answer =
        client_ask(client, KAFKA_FIND_COORDINATOR, 0, &request);
    assert_int_equal(answer->error_code, 0);
    assert_int_equal(answer->node_id, 1);
    assert_text(answer->host, "host1");
    assert_int_equal(answer->port, 9091);
    request.key_type = 1;
    answer = client_ask(client, KAFKA_FIND_COORDINATOR, 3, &request);
    assert_int_equal(answer->error_code, 0);
    request.key_type = 2;
    answer = client_ask(client, KAFKA_FIND_COORDINATOR, 3, &request);
    assert_int_equal(answer->error_code, KAFKA_INVALID_REQUEST);
}

static void each_key_gets_one_coordinator(void **state)
{
    struct client *client = *state;
    struct slice keys[] = {kafka_text("a"), kafka_text("b"), kafka_text("a")};
    struct kafka_find_coordinator_request request = {.coordinator_keys = {keys, 3}};
    const struct kafka_find_coordinator_response *answer =
        client_ask(client, KAFKA_FIND_COORDINATOR, 4, &request);
    assert_int_equal(answer->coordinators.count, 2);
    assert_text(answer->coordinators.items[1].key, "b");
    assert_int_equal(answer->coordinators.items[1].node_id, 1);
}

static void coordinator_is_waited_for_and_then_not_available(void **state)
{
    struct client *client = *state;
    struct kafka_find_coordinator_request request = {.key = kafka_text("g")};
    fake_follow(-1);
    assert_int_equal(client_send(client, KAFKA_FIND_COORDINATOR, 2, &request), STATUS_OK);
    assert_int_equal(client->answer_count, 0);
    fake_pass(FAKE_LEADER_US);
    const struct kafka_find_coordinator_response *answer =
        client_take(client, KAFKA_FIND_COORDINATOR, 2);
    assert_int_equal(answer->error_code, KAFKA_COORDINATOR_NOT_AVAILABLE);
    assert_int_equal(answer->node_id, -1);
    assert_text(answer->host, "");
    assert_int_equal(answer->port, -1);
}

static void cluster_is_described_for_brokers_only(void **state)
{
    struct client *client = *state;
    struct kafka_describe_cluster_request request = {.endpoint_type = 1};
    const struct kafka_describe_cluster_response *answer =
        client_ask(client, KAFKA_DESCRIBE_CLUSTER, 2, &request);
    assert_int_equal(answer->error_code, 0);
    assert_int_equal(answer->controller_id, 1);
    assert_int_equal(answer->brokers.count, 3);
    request.endpoint_type = 2;
    answer = client_ask(client, KAFKA_DESCRIBE_CLUSTER, 1, &request);
    assert_int_equal(answer->error_code, KAFKA_MISMATCHED_ENDPOINT_TYPE);
}

static void follower_lists_no_groups_and_no_error(void **state)
{
    struct client *client = *state;
    struct kafka_list_groups_request request = {0};
    fake_follow(2);
    const struct kafka_list_groups_response *answer =
        client_ask(client, KAFKA_LIST_GROUPS, 4, &request);
    assert_int_equal(answer->error_code, 0);
    assert_int_equal(answer->groups.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLIENT_TEST(all_brokers_and_the_leader_are_named),
        CLIENT_TEST(broker_without_configured_address_names_the_one_it_was_reached_at),
        CLIENT_TEST(partitions_have_leader_epoch_replicas_and_isr),
        CLIENT_TEST(null_and_version_0_without_topics_ask_for_all),
        CLIENT_TEST(topic_asked_for_twice_is_answered_once),
        CLIENT_TEST(unknown_and_invalid_names_are_told_apart),
        CLIENT_TEST(topics_can_be_asked_for_by_id),
        CLIENT_TEST(a_topic_id_counts_before_an_empty_name),
        CLIENT_TEST(operations_are_listed_when_asked_for),
        CLIENT_TEST(election_parks_metadata_until_the_leader_is_known),
        CLIENT_TEST(without_a_leader_in_time_partitions_say_leader_not_available),
        CLIENT_TEST(new_leader_does_not_name_itself_before_it_serves),
        CLIENT_TEST(follower_that_may_lag_calls_no_topic_unknown),
        CLIENT_TEST(unknown_topic_is_created_and_its_real_metadata_answered),
        CLIENT_TEST(versions_before_4_always_create),
        CLIENT_TEST(nothing_is_created_where_it_is_not_wanted),
        CLIENT_TEST(creation_that_is_not_committed_yet_reads_as_leader_not_available),
        CLIENT_TEST(follower_has_the_leader_create),
        CLIENT_TEST(creation_that_the_leader_did_not_answer_is_retried_by_the_client),
        CLIENT_TEST(leader_coordinates_groups_and_transactions),
        CLIENT_TEST(each_key_gets_one_coordinator),
        CLIENT_TEST(coordinator_is_waited_for_and_then_not_available),
        CLIENT_TEST(cluster_is_described_for_brokers_only),
        CLIENT_TEST(follower_lists_no_groups_and_no_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
