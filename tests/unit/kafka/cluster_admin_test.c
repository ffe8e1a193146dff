/* What admin tools ask about the cluster as a whole: elections, reassignments, features, telemetry,
 * access rules, and topics page by page. */
#include "unit/kafka/fake_broker.h"

/* ---- ElectLeaders ---- */

typedef struct kafka_elect_leaders_request_topic_partition election;

static struct kafka_elect_leaders_request *elect(struct client *client, const char *topic,
                                                 int32_t *partitions, int32_t count)
{
    struct kafka_elect_leaders_request *request =
        kafka_elect_leaders_request_new(&client->arena, 1);
    request->topic_partitions.items =
        kafka_elect_leaders_request_topic_partition_new(&client->arena, 1);
    request->topic_partitions.items[0] =
        (election){.topic = kafka_text(topic), .partitions = {partitions, count}};
    request->topic_partitions.count = 1;
    request->timeout_ms = 1000;
    return request;
}

/* This replica is 2 then, and leads: the preferred one is 1. */
static void lead_as_another(void)
{
    fake.view.self_id = fake.view.leader_id = 2;
}

static int16_t code_of(const struct kafka_elect_leaders_response *answer, int32_t partition)
{
    return answer->replica_election_results.items[0].partition_result.items[partition].error_code;
}

static void preferred_leader_is_not_elected_again(void **state)
{
    struct client *client = *state;
    int32_t partitions[] = {0, 2, 3};
    for (int16_t v = 0; v <= 2; v++) {
        const struct kafka_elect_leaders_response *answer =
            client_ask(client, KAFKA_ELECT_LEADERS, v, elect(client, "orders", partitions, 3));
        assert_int_equal(answer->error_code, 0);
        assert_text(answer->replica_election_results.items[0].topic, "orders");
        assert_int_equal(code_of(answer, 0), KAFKA_ELECTION_NOT_NEEDED);
        assert_int_equal(code_of(answer, 1), KAFKA_ELECTION_NOT_NEEDED);
        assert_int_equal(code_of(answer, 2), KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
    }
    assert_int_equal(fake.transfer_to, -1);
}

static void election_hands_leadership_over_and_answers_when_it_is_done(void **state)
{
    struct client *client = *state;
    int32_t partitions[] = {1, 7};
    lead_as_another();
    assert_int_equal(
        client_send(client, KAFKA_ELECT_LEADERS, 2, elect(client, "orders", partitions, 2)),
        STATUS_OK);
    assert_int_equal(fake.transfer_to, 1);
    assert_int_equal(client->answer_count, 0);
    fake_follow(1);
    fake.transfer_done(fake.transfer_context, STATUS_OK, NULL);
    const struct kafka_elect_leaders_response *answer = client_take(client, KAFKA_ELECT_LEADERS, 2);
    assert_int_equal(code_of(answer, 0), 0);
    assert_int_equal(code_of(answer, 1), KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
}

static void election_of_all_tells_only_what_was_done(void **state)
{
    struct client *client = *state;
    struct kafka_elect_leaders_request request = {.topic_partitions = {NULL, -1}};
    const struct kafka_elect_leaders_response *answer =
        client_ask(client, KAFKA_ELECT_LEADERS, 2, &request);
    assert_int_equal(answer->replica_election_results.count, 0);
    (void)fake_add_topic("payments", 2);
    lead_as_another();
    assert_int_equal(client_send(client, KAFKA_ELECT_LEADERS, 2, &request), STATUS_OK);
    fake.transfer_done(fake.transfer_context, STATUS_OK, NULL);
    answer = client_take(client, KAFKA_ELECT_LEADERS, 2);
    assert_int_equal(answer->replica_election_results.count, 2);
    assert_int_equal(answer->replica_election_results.items[1].partition_result.count, 2);
    assert_int_equal(code_of(answer, 2), 0);
}

static void failed_election_says_why(void **state)
{
    static const struct {
        enum status status;
        int16_t error;
    } cases[] = {{STATUS_NOT_ENOUGH_REPLICAS, KAFKA_PREFERRED_LEADER_NOT_AVAILABLE},
                 {STATUS_UNSUPPORTED, KAFKA_PREFERRED_LEADER_NOT_AVAILABLE},
                 {STATUS_TIMEOUT, KAFKA_REQUEST_TIMED_OUT},
                 {STATUS_CONFLICT, KAFKA_REQUEST_TIMED_OUT}};
    struct client *client = *state;
    int32_t partition = 0;
    lead_as_another();
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct error error;
        error_set(&error, cases[i].status, "because");
        assert_int_equal(
            client_send(client, KAFKA_ELECT_LEADERS, 1, elect(client, "orders", &partition, 1)),
            STATUS_OK);
        fake.transfer_done(fake.transfer_context, cases[i].status, &error);
        const struct kafka_elect_leaders_response *answer =
            client_take(client, KAFKA_ELECT_LEADERS, 1);
        assert_int_equal(answer->error_code, 0);
        assert_int_equal(code_of(answer, 0), cases[i].error);
        assert_text(
            answer->replica_election_results.items[0].partition_result.items[0].error_message,
            "because");
    }
    assert_int_equal(
        client_send(client, KAFKA_ELECT_LEADERS, 1, elect(client, "orders", &partition, 1)),
        STATUS_OK);
    fake.transfer_done(fake.transfer_context, STATUS_NOT_LEADER, NULL);
    const struct kafka_elect_leaders_response *answer = client_take(client, KAFKA_ELECT_LEADERS, 1);
    assert_int_equal(answer->error_code, KAFKA_NOT_CONTROLLER);
}

static void unclean_election_is_never_held(void **state)
{
    struct client *client = *state;
    int32_t partition = 0;
    lead_as_another();
    struct kafka_elect_leaders_request *request = elect(client, "orders", &partition, 1);
    request->election_type = 1;
    const struct kafka_elect_leaders_response *answer =
        client_ask(client, KAFKA_ELECT_LEADERS, 2, request);
    assert_int_equal(code_of(answer, 0), KAFKA_ELECTION_NOT_NEEDED);
    request->election_type = 2;
    answer = client_ask(client, KAFKA_ELECT_LEADERS, 2, request);
    assert_int_equal(answer->error_code, KAFKA_INVALID_REQUEST);
    assert_int_equal(fake.transfer_to, -1);
}

static void election_asked_of_a_follower_goes_to_the_leader(void **state)
{
    struct client *client = *state;
    int32_t partition = 0;
    fake_follow(2);
    assert_int_equal(
        client_send(client, KAFKA_ELECT_LEADERS, 0, elect(client, "orders", &partition, 1)),
        STATUS_OK);
    assert_int_equal(fake.forward->api_key, KAFKA_ELECT_LEADERS);
    fake.forward->done(fake.forward->context, STATUS_NOT_LEADER, (struct slice){NULL, 0});
    const struct kafka_elect_leaders_response *answer = client_take(client, KAFKA_ELECT_LEADERS, 0);
    assert_int_equal(code_of(answer, 0), KAFKA_NOT_CONTROLLER); /* 0 has no code for the whole */
}

/* ---- reassignments ---- */

static const struct kafka_alter_partition_reassignments_response_partition *
reassign(struct client *client, int16_t version, int32_t partition, int32_t *replicas,
         int32_t count, bool factor_changes)
{
    struct kafka_alter_partition_reassignments_request_partition one = {
        .partition_index = partition, .replicas = {replicas, count}};
    struct kafka_alter_partition_reassignments_request_topic topic = {.name = kafka_text("orders"),
                                                                      .partitions = {&one, 1}};
    struct kafka_alter_partition_reassignments_request request = {
        .topics = {&topic, 1}, .allow_replication_factor_change = factor_changes};
    const struct kafka_alter_partition_reassignments_response *answer =
        client_ask(client, KAFKA_ALTER_PARTITION_REASSIGNMENTS, version, &request);
    assert_int_equal(answer->error_code, 0);
    assert_int_equal(answer->responses.items[0].partitions.items[0].partition_index, partition);
    return &answer->responses.items[0].partitions.items[0];
}

static void only_the_placement_there_is_can_be_asked_for(void **state)
{
    struct client *client = *state;
    int32_t all[] = {1, 2, 3}, other[] = {2, 1, 3};
    for (int16_t v = 0; v <= 1; v++) {
        assert_int_equal(reassign(client, v, 0, all, 3, true)->error_code, 0);
        assert_int_equal(reassign(client, v, 0, other, 3, true)->error_code,
                         KAFKA_INVALID_REPLICA_ASSIGNMENT);
        assert_int_equal(reassign(client, v, 0, all, 2, true)->error_code,
                         KAFKA_INVALID_REPLICA_ASSIGNMENT);
        assert_int_equal(reassign(client, v, 0, NULL, -1, true)->error_code,
                         KAFKA_NO_REASSIGNMENT_IN_PROGRESS);
        assert_int_equal(reassign(client, v, 3, all, 3, true)->error_code,
                         KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
    }
    assert_int_equal(reassign(client, 1, 0, all, 2, false)->error_code,
                     KAFKA_INVALID_REPLICATION_FACTOR);
}

static void no_reassignment_is_under_way(void **state)
{
    struct client *client = *state;
    struct kafka_list_partition_reassignments_request request = {.topics = {NULL, -1}};
    const struct kafka_list_partition_reassignments_response *answer =
        client_ask(client, KAFKA_LIST_PARTITION_REASSIGNMENTS, 0, &request);
    assert_int_equal(answer->error_code, 0);
    assert_int_equal(answer->topics.count, 0);
}

/* ---- DescribeQuorum ---- */

static const struct kafka_describe_quorum_response *
quorum_of(struct client *client, int16_t version, const char *topic, int32_t partition)
{
    struct kafka_describe_quorum_request_partition partitions[1] = {{partition}};
    struct kafka_describe_quorum_request_topic topics[1] = {
        {.topic_name = kafka_text(topic), .partitions = {partitions, 1}}};
    struct kafka_describe_quorum_request request = {.topics = {topics, 1}};
    return client_ask(client, KAFKA_DESCRIBE_QUORUM, version, &request);
}

static void brokers_are_the_voters_of_the_cluster(void **state)
{
    struct client *client = *state;
    fake.quorum = (struct group_quorum){
        .committed = 12,
        .voters = {{.id = 1, .incarnation = {{7}}, .log_end = 13},
                   {.id = 2, .incarnation = {{8}}, .log_end = 12, .heard_us_ago = 250000},
                   {.id = 3, .log_end = -1, .heard_us_ago = -1}},
        .voter_count = 3};
    int64_t now_ms = fake.loop.now_us / 1000;
    for (int16_t v = 0; v <= 2; v++) {
        const struct kafka_describe_quorum_response *answer =
            quorum_of(client, v, "__cluster_metadata", 0);
        assert_int_equal(answer->error_code, 0);
        const struct kafka_describe_quorum_response_partition *log =
            &answer->topics.items[0].partitions.items[0];
        assert_int_equal(log->error_code, 0);
        assert_int_equal(log->leader_id, 1);
        assert_int_equal(log->leader_epoch, 7);
        assert_int_equal(log->high_watermark, 12);
        assert_int_equal(log->current_voters.count, 3);
        assert_int_equal(log->observers.count, 0);
        assert_int_equal(log->current_voters.items[0].log_end_offset, 13);
        assert_int_equal(log->current_voters.items[2].log_end_offset, -1);
        if (v >= 1) {
            assert_int_equal(log->current_voters.items[0].last_caught_up_timestamp, now_ms);
            assert_int_equal(log->current_voters.items[1].last_fetch_timestamp, now_ms - 250);
            assert_int_equal(log->current_voters.items[1].last_caught_up_timestamp, now_ms - 250);
            assert_int_equal(log->current_voters.items[2].last_fetch_timestamp, -1);
        }
        if (v >= 2) {
            assert_int_equal(log->current_voters.items[1].replica_directory_id.bytes[0], 8);
            assert_int_equal(answer->nodes.count, 3);
            assert_text(answer->nodes.items[2].listeners.items[0].host, "host3");
            assert_int_equal(answer->nodes.items[2].listeners.items[0].port, 9093);
        }
    }
}

static void other_logs_have_no_quorum(void **state)
{
    struct client *client = *state;
    const struct kafka_describe_quorum_response *answer = quorum_of(client, 2, "orders", 0);
    assert_int_equal(answer->topics.items[0].partitions.items[0].error_code,
                     KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
    answer = quorum_of(client, 2, "__cluster_metadata", 1);
    assert_int_equal(answer->topics.items[0].partitions.items[0].error_code,
                     KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
    fake_follow(-1);
    struct kafka_describe_quorum_request request = {.topics = {NULL, 0}};
    assert_int_equal(client_send(client, KAFKA_DESCRIBE_QUORUM, 0, &request), STATUS_OK);
    fake_pass(FAKE_LEADER_US);
    answer = client_take(client, KAFKA_DESCRIBE_QUORUM, 0);
    assert_int_equal(answer->error_code, KAFKA_NOT_CONTROLLER);
}

/* ---- features ---- */

static const struct kafka_update_features_response *
update(struct client *client, int16_t version, const char *feature, int16_t level, int8_t type)
{
    struct kafka_update_features_request_feature_update one = {.feature = kafka_text(feature),
                                                               .max_version_level = level,
                                                               .allow_downgrade = type > 1,
                                                               .upgrade_type = type};
    struct kafka_update_features_request request = {.feature_updates = {&one, 1}};
    return client_ask(client, KAFKA_UPDATE_FEATURES, version, &request);
}

static void features_stay_what_the_program_says(void **state)
{
    static const struct {
        const char *feature;
        int16_t level;
        int8_t type;
        int16_t error;
    } cases[] = {
        {"transaction.version", 2, 1, 0},
        {"group.version", 1, 1, 0},
        {"transaction.version", 3, 1, KAFKA_INVALID_UPDATE_VERSION},
        {"transaction.version", 1, 1, KAFKA_INVALID_UPDATE_VERSION},
        {"transaction.version", -1, 2, KAFKA_INVALID_UPDATE_VERSION},
        {"transaction.version", 1, 2, KAFKA_FEATURE_UPDATE_FAILED},
        {"group.version", 0, 3, KAFKA_FEATURE_UPDATE_FAILED},
        {"metadata.version", 20, 1, KAFKA_INVALID_UPDATE_VERSION},
    };
    struct client *client = *state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        for (int16_t v = 0; v <= 1; v++) {
            const struct kafka_update_features_response *answer =
                update(client, v, cases[i].feature, cases[i].level, cases[i].type);
            assert_int_equal(answer->error_code, 0);
            assert_int_equal(answer->results.items[0].error_code, cases[i].error);
            assert_text(answer->results.items[0].feature, cases[i].feature);
        }
        const struct kafka_update_features_response *answer =
            update(client, 2, cases[i].feature, cases[i].level, cases[i].type);
        assert_int_equal(answer->error_code, cases[i].error);
        assert_true((answer->error_message.data != NULL) == (cases[i].error != 0));
    }
    assert_int_equal(update(client, 2, "group.version", 1, 4)->error_code,
                     KAFKA_INVALID_UPDATE_VERSION);
}

/* ---- telemetry ---- */

static void no_metrics_of_clients_are_wanted(void **state)
{
    struct client *client = *state;
    struct kafka_get_telemetry_subscriptions_request request = {0};
    const struct kafka_get_telemetry_subscriptions_response *answer =
        client_ask(client, KAFKA_GET_TELEMETRY_SUBSCRIPTIONS, 0, &request);
    assert_int_equal(answer->error_code, 0);
    assert_int_equal(answer->requested_metrics.count, 0);
    assert_true(answer->push_interval_ms >= 60000);
    assert_false(uuid_is_none(&answer->client_instance_id));

    struct uuid id = answer->client_instance_id;
    int32_t subscription = answer->subscription_id;
    request.client_instance_id = id;
    answer = client_ask(client, KAFKA_GET_TELEMETRY_SUBSCRIPTIONS, 0, &request);
    assert_true(uuid_equal(&answer->client_instance_id, &id));
    assert_int_equal(answer->subscription_id, subscription);
}

static void pushed_metrics_are_dropped_or_lead_to_a_new_subscription(void **state)
{
    struct client *client = *state;
    struct kafka_get_telemetry_subscriptions_request ask = {0};
    const struct kafka_get_telemetry_subscriptions_response *answer =
        client_ask(client, KAFKA_GET_TELEMETRY_SUBSCRIPTIONS, 0, &ask);
    struct kafka_push_telemetry_request request = {.client_instance_id = answer->client_instance_id,
                                                   .subscription_id = answer->subscription_id,
                                                   .terminating = true,
                                                   .metrics = kafka_text("")};
    const struct kafka_push_telemetry_response *pushed =
        client_ask(client, KAFKA_PUSH_TELEMETRY, 0, &request);
    assert_int_equal(pushed->error_code, 0);
    request.subscription_id ^= 0x5a5a;
    pushed = client_ask(client, KAFKA_PUSH_TELEMETRY, 0, &request);
    assert_int_equal(pushed->error_code, KAFKA_UNKNOWN_SUBSCRIPTION_ID);
    request.client_instance_id = (struct uuid){{0}};
    pushed = client_ask(client, KAFKA_PUSH_TELEMETRY, 0, &request);
    assert_int_equal(pushed->error_code, KAFKA_INVALID_REQUEST);
}

/* ---- access rules and credentials ---- */

static void access_rules_are_disabled(void **state)
{
    struct client *client = *state;
    for (int16_t v = 1; v <= 3; v++) {
        struct kafka_describe_acls_request describe = {.resource_type_filter = 1,
                                                       .pattern_type_filter = 1,
                                                       .operation = 1,
                                                       .permission_type = 1};
        const struct kafka_describe_acls_response *described =
            client_ask(client, KAFKA_DESCRIBE_ACLS, v, &describe);
        assert_int_equal(described->error_code, KAFKA_SECURITY_DISABLED);

        struct kafka_create_acls_request_creation creations[2] = {
            {.resource_name = kafka_text("a"),
             .principal = kafka_text("User:a"),
             .host = kafka_text("*")},
            {.resource_name = kafka_text("b"),
             .principal = kafka_text("User:a"),
             .host = kafka_text("*")}};
        struct kafka_create_acls_request create = {.creations = {creations, 2}};
        const struct kafka_create_acls_response *created =
            client_ask(client, KAFKA_CREATE_ACLS, v, &create);
        assert_int_equal(created->results.count, 2);
        assert_int_equal(created->results.items[1].error_code, KAFKA_SECURITY_DISABLED);

        struct kafka_delete_acls_request_filter filters[2] = {{.resource_type_filter = 1},
                                                              {.resource_type_filter = 2}};
        struct kafka_delete_acls_request delete = {.filters = {filters, 2}};
        const struct kafka_delete_acls_response *deleted =
            client_ask(client, KAFKA_DELETE_ACLS, v, &delete);
        assert_int_equal(deleted->filter_results.count, 2);
        assert_int_equal(deleted->filter_results.items[1].error_code, KAFKA_SECURITY_DISABLED);
    }
}

static void no_user_has_credentials(void **state)
{
    struct client *client = *state;
    struct kafka_describe_user_scram_credentials_request request = {.users = {NULL, -1}};
    const struct kafka_describe_user_scram_credentials_response *answer =
        client_ask(client, KAFKA_DESCRIBE_USER_SCRAM_CREDENTIALS, 0, &request);
    assert_int_equal(answer->error_code, 0);
    assert_int_equal(answer->results.count, 0);
    struct kafka_describe_user_scram_credentials_request_user user = {.name = kafka_text("ada")};
    request.users.items = &user;
    request.users.count = 1;
    answer = client_ask(client, KAFKA_DESCRIBE_USER_SCRAM_CREDENTIALS, 0, &request);
    assert_text(answer->results.items[0].user, "ada");
    assert_int_equal(answer->results.items[0].error_code, KAFKA_RESOURCE_NOT_FOUND);
}

/* ---- ListConfigResources ---- */

static void what_has_a_configuration_is_listed_by_kind(void **state)
{
    struct client *client = *state;
    struct kafka_list_config_resources_request request = {.resource_types = {NULL, 0}};
    const struct kafka_list_config_resources_response *answer =
        client_ask(client, KAFKA_LIST_CONFIG_RESOURCES, 0, &request);
    assert_int_equal(answer->config_resources.count, 0); /* of client metrics, all it knows */
    answer = client_ask(client, KAFKA_LIST_CONFIG_RESOURCES, 1, &request);
    assert_int_equal(answer->config_resources.count, 1 + 3 + 3);
    assert_text(answer->config_resources.items[0].resource_name, "orders");
    assert_int_equal(answer->config_resources.items[0].resource_type, 2);
    assert_text(answer->config_resources.items[3].resource_name, "3");
    assert_int_equal(answer->config_resources.items[3].resource_type, 4);
    int8_t types[] = {32, 4};
    request.resource_types.items = types;
    request.resource_types.count = 2;
    answer = client_ask(client, KAFKA_LIST_CONFIG_RESOURCES, 1, &request);
    assert_int_equal(answer->config_resources.count, 3);
    types[0] = 3;
    answer = client_ask(client, KAFKA_LIST_CONFIG_RESOURCES, 1, &request);
    assert_int_equal(answer->error_code, KAFKA_UNSUPPORTED_VERSION);
    assert_int_equal(answer->config_resources.count, 0);
}

/* ---- DescribeTopicPartitions ---- */

static const struct kafka_describe_topic_partitions_response *
page(struct client *client, const char *const *names, int32_t count, int32_t limit,
     const char *cursor_topic, int32_t cursor_partition)
{
    struct kafka_describe_topic_partitions_request_topic topics[8];
    struct kafka_describe_topic_partitions_request_cursor cursor = {
        .topic_name = kafka_text(cursor_topic), .partition_index = cursor_partition};
    for (int32_t i = 0; i < count; i++)
        topics[i].name = kafka_text(names[i]);
    struct kafka_describe_topic_partitions_request request = {
        .topics = {topics, count},
        .response_partition_limit = limit,
        .cursor = cursor_topic != NULL ? &cursor : NULL};
    return client_ask(client, KAFKA_DESCRIBE_TOPIC_PARTITIONS, 0, &request);
}

static void topics_are_described_as_metadata_does(void **state)
{
    struct client *client = *state;
    static const char *const names[] = {"orders", "none", "a b", "orders"};
    const struct kafka_describe_topic_partitions_response *answer =
        page(client, names, 4, 2000, NULL, 0);
    assert_int_equal(answer->topics.count, 3);
    assert_text(answer->topics.items[0].name, "a b");
    assert_int_equal(answer->topics.items[0].error_code, KAFKA_INVALID_TOPIC);
    assert_text(answer->topics.items[1].name, "none");
    assert_int_equal(answer->topics.items[1].error_code, KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
    const struct kafka_describe_topic_partitions_response_topic *orders = &answer->topics.items[2];
    assert_int_equal(orders->error_code, 0);
    assert_true(uuid_equal(&orders->topic_id, &fake.topics[0].uid));
    assert_true(orders->topic_authorized_operations > 0);
    assert_int_equal(orders->partitions.count, 3);
    assert_int_equal(orders->partitions.items[2].partition_index, 2);
    assert_int_equal(orders->partitions.items[2].leader_id, 1);
    assert_int_equal(orders->partitions.items[2].leader_epoch, 7);
    assert_int_equal(orders->partitions.items[2].replica_nodes.count, 3);
    assert_int_equal(orders->partitions.items[2].isr_nodes.count, 3);
    assert_int_equal(orders->partitions.items[2].eligible_leader_replicas.count, 0);
    assert_null(answer->next_cursor);
}

static void pages_follow_one_another_without_a_gap(void **state)
{
    struct client *client = *state;
    (void)fake_add_topic("payments", 2);
    (void)fake_add_topic("zebra", 1);
    const char *topic = NULL;
    char name[64], seen[200] = "";
    int32_t partition = 0, pages = 0;
    for (; pages < 10; pages++) {
        const struct kafka_describe_topic_partitions_response *answer =
            page(client, NULL, 0, 2, topic, partition);
        for (int32_t i = 0; i < answer->topics.count; i++) {
            for (int32_t k = 0; k < answer->topics.items[i].partitions.count; k++) {
                size_t at = strlen(seen);
                snprintf(seen + at, sizeof(seen) - at, "%.*s-%d ",
                         (int)answer->topics.items[i].name.bytes,
                         (const char *)answer->topics.items[i].name.data,
                         answer->topics.items[i].partitions.items[k].partition_index);
            }
        }
        if (answer->next_cursor == NULL) break;
        snprintf(name, sizeof(name), "%.*s", (int)answer->next_cursor->topic_name.bytes,
                 (const char *)answer->next_cursor->topic_name.data);
        topic = name;
        partition = answer->next_cursor->partition_index;
    }
    assert_string_equal(seen, "orders-0 orders-1 orders-2 payments-0 payments-1 zebra-0 ");
    assert_int_equal(pages, 2);
}

static void odd_cursors_do_no_harm(void **state)
{
    struct client *client = *state;
    static const char *const names[] = {"orders"};
    (void)fake_add_topic("payments", 2);
    const struct kafka_describe_topic_partitions_response *answer =
        page(client, names, 1, 2000, "orders", -1);
    assert_int_equal(answer->topics.items[0].error_code, KAFKA_INVALID_REQUEST);
    answer = page(client, names, 1, 2000, "orders", INT32_MAX);
    assert_int_equal(answer->topics.items[0].partitions.count, 0);
    answer = page(client, names, 1, INT32_MIN, "gone", 5); /* at least one at a time */
    assert_int_equal(answer->topics.items[0].partitions.count, 1);
    assert_int_equal(answer->next_cursor->partition_index, 1);
    answer = page(client, names, 1, INT32_MAX, "zzz", 0);
    assert_int_equal(answer->topics.count, 0);
}

static void topics_wait_for_a_leader(void **state)
{
    struct client *client = *state;
    struct kafka_describe_topic_partitions_request request = {.response_partition_limit = 2000};
    fake_follow(-1);
    assert_int_equal(client_send(client, KAFKA_DESCRIBE_TOPIC_PARTITIONS, 0, &request), STATUS_OK);
    assert_int_equal(client->answer_count, 0);
    fake_pass(FAKE_LEADER_US);
    const struct kafka_describe_topic_partitions_response *answer =
        client_take(client, KAFKA_DESCRIBE_TOPIC_PARTITIONS, 0);
    assert_int_equal(answer->topics.items[0].partitions.items[0].error_code,
                     KAFKA_LEADER_NOT_AVAILABLE);
    assert_int_equal(answer->topics.items[0].partitions.items[0].leader_id, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLIENT_TEST(preferred_leader_is_not_elected_again),
        CLIENT_TEST(election_hands_leadership_over_and_answers_when_it_is_done),
        CLIENT_TEST(election_of_all_tells_only_what_was_done),
        CLIENT_TEST(failed_election_says_why),
        CLIENT_TEST(unclean_election_is_never_held),
        CLIENT_TEST(election_asked_of_a_follower_goes_to_the_leader),
        CLIENT_TEST(only_the_placement_there_is_can_be_asked_for),
        CLIENT_TEST(no_reassignment_is_under_way),
        CLIENT_TEST(brokers_are_the_voters_of_the_cluster),
        CLIENT_TEST(other_logs_have_no_quorum),
        CLIENT_TEST(features_stay_what_the_program_says),
        CLIENT_TEST(no_metrics_of_clients_are_wanted),
        CLIENT_TEST(pushed_metrics_are_dropped_or_lead_to_a_new_subscription),
        CLIENT_TEST(access_rules_are_disabled),
        CLIENT_TEST(no_user_has_credentials),
        CLIENT_TEST(what_has_a_configuration_is_listed_by_kind),
        CLIENT_TEST(topics_are_described_as_metadata_does),
        CLIENT_TEST(pages_follow_one_another_without_a_gap),
        CLIENT_TEST(odd_cursors_do_no_harm),
        CLIENT_TEST(topics_wait_for_a_leader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
