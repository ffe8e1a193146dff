/* OffsetCommit and OffsetFetch of consumers that assign themselves. */
#include "unit/kafka/fake_broker.h"

static struct kafka_offset_commit_request *commit_of(struct client *client, int32_t partition,
                                                     int64_t offset)
{
    struct kafka_offset_commit_request *request =
        kafka_offset_commit_request_new(&client->arena, 1);
    request->group_id = kafka_text("g");
    request->topics.items = kafka_offset_commit_request_topic_new(&client->arena, 1);
    request->topics.count = 1;
    request->topics.items[0].name = kafka_text("orders");
    request->topics.items[0].partitions.items =
        kafka_offset_commit_request_partition_new(&client->arena, 1);
    request->topics.items[0].partitions.count = 1;
    request->topics.items[0].partitions.items[0].partition_index = partition;
    request->topics.items[0].partitions.items[0].committed_offset = offset;
    request->topics.items[0].partitions.items[0].committed_metadata = kafka_text("m");
    return request;
}

static int16_t commit(struct client *client, int16_t version,
                      const struct kafka_offset_commit_request *request)
{
    const struct kafka_offset_commit_response *answer =
        client_ask(client, KAFKA_OFFSET_COMMIT, version, request);
    assert_int_equal(answer->topics.count, 1);
    assert_text(answer->topics.items[0].name, "orders");
    return answer->topics.items[0].partitions.items[0].error_code;
}

static void commit_reaches_the_broker(void **state)
{
    struct client *client = *state;
    struct kafka_offset_commit_request *request = commit_of(client, 1, 42);
    request->topics.items[0].partitions.items[0].committed_leader_epoch = 6;
    fake.offsets_later = true;
    assert_int_equal(client_send(client, KAFKA_OFFSET_COMMIT, 8, request), STATUS_OK);
    assert_text(fake.offsets->group, "g");
    assert_int_equal(fake.offsets->offset_count, 1);
    assert_text(fake.offsets->offsets[0].topic, "orders");
    assert_int_equal(fake.offsets->offsets[0].partition, 1);
    assert_int_equal(fake.offsets->offsets[0].offset, 42);
    assert_int_equal(fake.offsets->offsets[0].leader_epoch, 6);
    assert_text(fake.offsets->offsets[0].metadata, "m");
    assert_int_equal(client->answer_count, 0);
    fake_finish_offsets(STATUS_OK);
    const struct kafka_offset_commit_response *answer = client_take(client, KAFKA_OFFSET_COMMIT, 8);
    assert_int_equal(answer->topics.items[0].partitions.items[0].error_code, 0);
}

static void partition_at_fault_does_not_stop_the_others(void **state)
{
    struct client *client = *state;
    struct kafka_offset_commit_request *request = commit_of(client, 0, 1);
    struct kafka_offset_commit_request_partition *partitions =
        kafka_offset_commit_request_partition_new(&client->arena, 3);
    uint8_t *long_text = arena_new(&client->arena, 4096 + 1);
    memset(long_text, 'x', 4096 + 1);
    partitions[0].partition_index = 9;
    partitions[1].partition_index = 1;
    partitions[1].committed_metadata = (struct slice){long_text, 4096 + 1};
    partitions[2].partition_index = 2;
    partitions[2].committed_offset = 33;
    request->topics.items[0].partitions.items = partitions;
    request->topics.items[0].partitions.count = 3;
    const struct kafka_offset_commit_response *answer =
        client_ask(client, KAFKA_OFFSET_COMMIT, 2, request);
    const struct kafka_offset_commit_response_partition *out =
        answer->topics.items[0].partitions.items;
    assert_int_equal(out[0].error_code, KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
    assert_int_equal(out[1].error_code, KAFKA_OFFSET_METADATA_TOO_LARGE);
    assert_int_equal(out[2].error_code, 0);
    assert_int_equal(fake.stored_count, 1);
    assert_int_equal(fake.stored[0].offset, 33);
}

static void a_member_commits_as_such(void **state)
{
    struct client *client = *state;
    struct kafka_offset_commit_request *request = commit_of(client, 0, 1);
    request->generation_id_or_member_epoch = 3;
    request->member_id = kafka_text("m-1");
    request->group_instance_id = kafka_text("i-1");
    fake.offsets_later = true;
    assert_int_equal(client_send(client, KAFKA_OFFSET_COMMIT, 8, request), STATUS_OK);
    assert_text(fake.offsets->member_id, "m-1");
    assert_text(fake.offsets->instance_id, "i-1");
    assert_int_equal(fake.offsets->generation, 3);
    fake_finish_offsets(STATUS_OK);
    (void)client_take(client, KAFKA_OFFSET_COMMIT, 8);
}

/* kafka-listener.md 7.4. */
static void what_membership_forbids_is_told_by_its_code(void **state)
{
    struct client *client = *state;
    static const struct {
        enum status status;
        int16_t version, error;
    } cases[] = {{STATUS_UNKNOWN_MEMBER, 8, 25},     {STATUS_FENCED_INSTANCE, 8, 82},
                 {STATUS_ILLEGAL_GENERATION, 8, 22}, {STATUS_REBALANCE_IN_PROGRESS, 8, 27},
                 {STATUS_UNKNOWN_GROUP, 8, 22},      {STATUS_UNKNOWN_GROUP, 9, 69},
                 {STATUS_STALE_MEMBER_EPOCH, 8, 35}, {STATUS_STALE_MEMBER_EPOCH, 9, 113},
                 {STATUS_TOO_LARGE, 8, 28}};
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        fake.offsets_status = cases[i].status;
        assert_int_equal(commit(client, cases[i].version, commit_of(client, 0, 1)), cases[i].error);
    }
}

static void what_keeps_a_commit_from_the_log_is_not_available(void **state)
{
    struct client *client = *state;
    static const struct {
        enum status status;
        int16_t error;
    } cases[] = {{STATUS_TIMEOUT, 15},
                 {STATUS_NOT_ENOUGH_REPLICAS, 15},
                 {STATUS_NOT_LEADER, 16},
                 {STATUS_STORAGE_ERROR, 16},
                 {STATUS_GROUP_NOT_EMPTY, 25}};
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        fake.offsets_status = cases[i].status;
        assert_int_equal(commit(client, 8, commit_of(client, 0, 1)), cases[i].error);
    }
    fake_follow(2);
    assert_int_equal(commit(client, 8, commit_of(client, 0, 1)), KAFKA_NOT_COORDINATOR);
}

/* ---- fetching ---- */

static struct kafka_offset_fetch_request *fetch_of(struct client *client, const int32_t *indexes,
                                                   int32_t count)
{
    struct kafka_offset_fetch_request *request = kafka_offset_fetch_request_new(&client->arena, 1);
    request->group_id = kafka_text("g");
    request->topics.count = -1;
    if (count < 0) return request;
    request->topics.items = kafka_offset_fetch_request_topic_new(&client->arena, 1);
    request->topics.count = 1;
    request->topics.items[0].name = kafka_text("orders");
    request->topics.items[0].partition_indexes.items =
        arena_new_array(&client->arena, (size_t)count, sizeof(int32_t));
    memcpy(request->topics.items[0].partition_indexes.items, indexes,
           (size_t)count * sizeof(int32_t));
    request->topics.items[0].partition_indexes.count = count;
    return request;
}

static void store(const char *topic, int32_t partition, int64_t offset, const char *metadata)
{
    fake.stored[fake.stored_count++] = (struct committed_offset){.topic = kafka_text(topic),
                                                                 .partition = partition,
                                                                 .offset = offset,
                                                                 .leader_epoch = 6,
                                                                 .metadata = kafka_text(metadata)};
}

static void stored_and_missing_offsets_are_answered(void **state)
{
    struct client *client = *state;
    static const int32_t indexes[] = {0, 2};
    store("orders", 2, 33, "note");
    const struct kafka_offset_fetch_response *answer =
        client_ask(client, KAFKA_OFFSET_FETCH, 5, fetch_of(client, indexes, 2));
    assert_int_equal(answer->error_code, 0);
    assert_int_equal(answer->topics.count, 1);
    const struct kafka_offset_fetch_response_partition *out =
        answer->topics.items[0].partitions.items;
    assert_int_equal(out[0].committed_offset, -1);
    assert_int_equal(out[0].committed_leader_epoch, -1);
    assert_int_equal(out[0].error_code, 0);
    assert_text(out[0].metadata, "");
    assert_int_equal(out[1].committed_offset, 33);
    assert_int_equal(out[1].committed_leader_epoch, 6);
    assert_text(out[1].metadata, "note");
}

static void null_topics_ask_for_all_offsets_of_the_group(void **state)
{
    struct client *client = *state;
    store("a", 0, 1, "");
    store("a", 1, 2, "");
    store("b", 0, 3, "");
    const struct kafka_offset_fetch_response *answer =
        client_ask(client, KAFKA_OFFSET_FETCH, 7, fetch_of(client, NULL, -1));
    assert_int_equal(answer->topics.count, 2);
    assert_text(answer->topics.items[0].name, "a");
    assert_int_equal(answer->topics.items[0].partitions.count, 2);
    assert_text(answer->topics.items[1].name, "b");
    assert_int_equal(answer->topics.items[1].partitions.items[0].committed_offset, 3);
}

static void several_groups_come_from_version_8_on(void **state)
{
    struct client *client = *state;
    int32_t index = 0;
    struct kafka_offset_fetch_request_group_topic topic = {.name = kafka_text("orders"),
                                                           .partition_indexes = {&index, 1}};
    struct kafka_offset_fetch_request_group groups[] = {
        {.group_id = kafka_text("g"), .topics = {&topic, 1}},
        {.group_id = kafka_text("h"), .topics = {NULL, -1}},
        {.group_id = kafka_text("g"), .topics = {NULL, -1}}}; /* once more: once is enough */
    struct kafka_offset_fetch_request request = {.groups = {groups, 3}};
    store("orders", 0, 9, "");
    const struct kafka_offset_fetch_response *answer =
        client_ask(client, KAFKA_OFFSET_FETCH, 8, &request);
    assert_int_equal(answer->groups.count, 2);
    assert_text(answer->groups.items[0].group_id, "g");
    assert_int_equal(answer->groups.items[0].topics.items[0].partitions.items[0].committed_offset,
                     9);
    assert_text(answer->groups.items[1].group_id, "h");
}

static void error_of_a_group_stands_where_the_version_has_it(void **state)
{
    struct client *client = *state;
    static const int32_t index = 1;
    fake_follow(2);
    const struct kafka_offset_fetch_response *answer =
        client_ask(client, KAFKA_OFFSET_FETCH, 1, fetch_of(client, &index, 1));
    assert_int_equal(answer->topics.items[0].partitions.items[0].partition_index, 1);
    assert_int_equal(answer->topics.items[0].partitions.items[0].error_code, 16);
    answer = client_ask(client, KAFKA_OFFSET_FETCH, 2, fetch_of(client, &index, 1));
    assert_int_equal(answer->error_code, 16);
    assert_int_equal(answer->topics.count, 0);
    struct kafka_offset_fetch_request_group group = {.group_id = kafka_text("g"),
                                                     .topics = {NULL, -1}};
    struct kafka_offset_fetch_request request = {.groups = {&group, 1}};
    answer = client_ask(client, KAFKA_OFFSET_FETCH, 9, &request);
    assert_int_equal(answer->groups.items[0].error_code, 16);
}

static void
offsets_that_a_transaction_may_change_are_refused_to_who_asks_for_stable_ones(void **state)
{
    struct client *client = *state;
    static const int32_t indexes[] = {0, 2};
    struct kafka_offset_fetch_request *request = fetch_of(client, indexes, 2);
    request->require_stable = true;
    store("orders", 2, 33, "");
    fake.offsets_later = true;
    assert_int_equal(client_send(client, KAFKA_OFFSET_FETCH, 7, request), STATUS_OK);
    assert_true(fake.offsets->require_stable);
    fake.offsets->offsets[0].status = STATUS_UNSTABLE_OFFSET;
    fake_finish_offsets(STATUS_OK);
    const struct kafka_offset_fetch_response *answer = client_take(client, KAFKA_OFFSET_FETCH, 7);
    const struct kafka_offset_fetch_response_partition *out =
        answer->topics.items[0].partitions.items;
    assert_int_equal(answer->error_code, 0);
    assert_int_equal(out[0].error_code, 88);
    assert_int_equal(out[0].committed_offset, -1);
    assert_int_equal(out[1].error_code, 0);
    assert_int_equal(out[1].committed_offset, 33);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLIENT_TEST(commit_reaches_the_broker),
        CLIENT_TEST(partition_at_fault_does_not_stop_the_others),
        CLIENT_TEST(a_member_commits_as_such),
        CLIENT_TEST(what_membership_forbids_is_told_by_its_code),
        CLIENT_TEST(what_keeps_a_commit_from_the_log_is_not_available),
        CLIENT_TEST(stored_and_missing_offsets_are_answered),
        CLIENT_TEST(null_topics_ask_for_all_offsets_of_the_group),
        CLIENT_TEST(offsets_that_a_transaction_may_change_are_refused_to_who_asks_for_stable_ones),
        CLIENT_TEST(several_groups_come_from_version_8_on),
        CLIENT_TEST(error_of_a_group_stands_where_the_version_has_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
