/* ConsumerGroupHeartbeat, ConsumerGroupDescribe, and a member's OffsetFetch. */
#include "unit/kafka/fake_broker.h"

static struct kafka_consumer_group_heartbeat_request *heartbeat_of(struct client *client)
{
    struct kafka_consumer_group_heartbeat_request *request =
        kafka_consumer_group_heartbeat_request_new(&client->arena, 1);
    request->group_id = kafka_text("g");
    request->member_id = kafka_text("m");
    request->rebalance_timeout_ms = 1000;
    request->subscribed_topic_names.count = -1;
    request->topic_partitions.count = 0;
    return request;
}

static void a_heartbeat_is_answered_when_the_broker_says_so(void **state)
{
    struct client *client = *state;
    const struct uuid one = {{1}}, two = {{2}};
    assert_int_equal(client_send(client, KAFKA_CONSUMER_GROUP_HEARTBEAT, 1, heartbeat_of(client)),
                     STATUS_OK);
    assert_int_equal(client->answer_count, 0);
    struct modern_request *waiting = fake.modern_request;
    waiting->has_assignment = true;
    partition_set_append(&waiting->assignment, &one, 0);
    partition_set_append(&waiting->assignment, &one, 4);
    partition_set_append(&waiting->assignment, &two, 1);
    struct partition_set assignment = waiting->assignment;
    fake_finish_modern(STATUS_OK);
    const struct kafka_consumer_group_heartbeat_response *answer =
        client_take(client, KAFKA_CONSUMER_GROUP_HEARTBEAT, 1);
    assert_int_equal(answer->error_code, 0);
    assert_text(answer->member_id, "m");
    assert_int_equal(answer->member_epoch, 1);
    assert_int_equal(answer->heartbeat_interval_ms, 5000);
    assert_non_null(answer->assignment);
    assert_int_equal(answer->assignment->topic_partitions.count, 2);
    assert_int_equal(answer->assignment->topic_partitions.items[0].partitions.count, 2);
    assert_int_equal(answer->assignment->topic_partitions.items[0].partitions.items[1], 4);
    assert_true(uuid_equal(&answer->assignment->topic_partitions.items[1].topic_id, &two));
    partition_set_deinit(&assignment);
}

static void an_unchanged_assignment_is_null(void **state)
{
    struct client *client = *state;
    assert_int_equal(client_send(client, KAFKA_CONSUMER_GROUP_HEARTBEAT, 0, heartbeat_of(client)),
                     STATUS_OK);
    fake_finish_modern(STATUS_OK);
    const struct kafka_consumer_group_heartbeat_response *answer =
        client_take(client, KAFKA_CONSUMER_GROUP_HEARTBEAT, 0);
    assert_null(answer->assignment);
}

static void version_0_is_given_a_member_id(void **state)
{
    struct client *client = *state;
    struct kafka_consumer_group_heartbeat_request *request = heartbeat_of(client);
    request->member_id = kafka_text("");
    assert_int_equal(client_send(client, KAFKA_CONSUMER_GROUP_HEARTBEAT, 0, request), STATUS_OK);
    fake_finish_modern(STATUS_OK);
    const struct kafka_consumer_group_heartbeat_response *answer =
        client_take(client, KAFKA_CONSUMER_GROUP_HEARTBEAT, 0);
    assert_int_equal(answer->member_id.bytes, UUID_TEXT_BYTES - 1);
}

static void errors_have_kafkas_codes(void **state)
{
    struct client *client = *state;
    static const struct {
        enum status status;
        int16_t code;
    } cases[] = {{STATUS_INVALID, 42},
                 {STATUS_UNKNOWN_MEMBER, 25},
                 {STATUS_FENCED_MEMBER_EPOCH, 110},
                 {STATUS_UNRELEASED_INSTANCE, 111},
                 {STATUS_UNSUPPORTED_ASSIGNOR, 112},
                 {STATUS_STALE_MEMBER_EPOCH, 113},
                 {STATUS_INVALID_PATTERN, 128},
                 {STATUS_UNKNOWN_GROUP, 69},
                 {STATUS_FENCED_INSTANCE, 82},
                 {STATUS_GROUP_FULL, 81},
                 {STATUS_NOT_READY, 14},
                 {STATUS_NOT_ENOUGH_REPLICAS, 15},
                 {STATUS_TIMEOUT, 15},
                 {STATUS_NOT_LEADER, 16}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(
            client_send(client, KAFKA_CONSUMER_GROUP_HEARTBEAT, 1, heartbeat_of(client)),
            STATUS_OK);
        fake_finish_modern(cases[i].status);
        const struct kafka_consumer_group_heartbeat_response *answer =
            client_take(client, KAFKA_CONSUMER_GROUP_HEARTBEAT, 1);
        assert_int_equal(answer->error_code, cases[i].code);
    }
}

/* One member "m" at epoch 3. */
static void make_group(void)
{
    struct slice names[] = {kafka_text("orders")};
    fake.modern = modern_group_new(kafka_text("g"));
    modern_group_apply(fake.modern,
                       &(struct modern_record){.type = MODERN_RECORD_GROUP, .epoch = 3});
    modern_group_apply(fake.modern,
                       &(struct modern_record){.type = MODERN_RECORD_TARGET, .epoch = 3});
    modern_group_apply(fake.modern,
                       &(struct modern_record){.type = MODERN_RECORD_MEMBER,
                                               .member = kafka_text("m"),
                                               .settings = {.client_id = kafka_text("c"),
                                                            .client_host = kafka_text("/h"),
                                                            .names = names,
                                                            .name_count = 1}});
    modern_group_apply(fake.modern, &(struct modern_record){.type = MODERN_RECORD_MEMBER_CURRENT,
                                                            .member = kafka_text("m"),
                                                            .epoch = 3});
}

static void groups_are_described(void **state)
{
    struct client *client = *state;
    struct slice ids[] = {kafka_text("g"), kafka_text("other"), kafka_text("g"), kafka_text("")};
    struct kafka_consumer_group_describe_request request = {.group_ids = {ids, 4}};
    make_group();
    const struct kafka_consumer_group_describe_response *answer =
        client_ask(client, KAFKA_CONSUMER_GROUP_DESCRIBE, 1, &request);
    assert_int_equal(answer->groups.count, 3);
    assert_int_equal(answer->groups.items[2].error_code, KAFKA_INVALID_GROUP_ID);
    assert_int_equal(answer->groups.items[0].error_code, 0);
    assert_text(answer->groups.items[0].group_state, "Stable");
    assert_int_equal(answer->groups.items[0].group_epoch, 3);
    assert_text(answer->groups.items[0].assignor_name, "uniform");
    assert_int_equal(answer->groups.items[0].members.count, 1);
    assert_text(answer->groups.items[0].members.items[0].client_host, "/h");
    assert_text(answer->groups.items[0].members.items[0].subscribed_topic_names.items[0], "orders");
    assert_int_equal(answer->groups.items[0].members.items[0].member_type, 1);
    assert_int_equal(answer->groups.items[1].error_code, 69);
    assert_text(answer->groups.items[1].group_id, "other");
}

static int16_t fetch_as(struct client *client, const char *member, int32_t epoch)
{
    struct kafka_offset_fetch_request *request = kafka_offset_fetch_request_new(&client->arena, 1);
    request->groups.items = kafka_offset_fetch_request_group_new(&client->arena, 1);
    request->groups.count = 1;
    request->groups.items[0].group_id = kafka_text("g");
    request->groups.items[0].member_id = kafka_text(member);
    request->groups.items[0].member_epoch = epoch;
    request->groups.items[0].topics.count = -1;
    const struct kafka_offset_fetch_response *answer =
        client_ask(client, KAFKA_OFFSET_FETCH, 9, request);
    return answer->groups.items[0].error_code;
}

static void offsets_are_read_at_the_members_epoch(void **state)
{
    struct client *client = *state;
    assert_int_equal(fetch_as(client, "m", 3), 0);
    make_group();
    assert_int_equal(fetch_as(client, "m", 3), 0);
    assert_int_equal(fetch_as(client, "m", 2), 113);
    assert_int_equal(fetch_as(client, "x", 3), 25);
    assert_int_equal(fetch_as(client, NULL, -1), 0);
}

#define TEST(name) CLIENT_TEST(name)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_heartbeat_is_answered_when_the_broker_says_so),
        TEST(an_unchanged_assignment_is_null),
        TEST(version_0_is_given_a_member_id),
        TEST(errors_have_kafkas_codes),
        TEST(groups_are_described),
        TEST(offsets_are_read_at_the_members_epoch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
