/* JoinGroup, SyncGroup, Heartbeat, LeaveGroup, DescribeGroups, ListGroups, DeleteGroups,
 * OffsetDelete over one real group without a log. */
#include "unit/kafka/fake_broker.h"

static struct kafka_join_group_request *join_of(struct client *client, const char *member)
{
    struct kafka_join_group_request *request = kafka_join_group_request_new(&client->arena, 1);
    request->group_id = kafka_text("g");
    request->session_timeout_ms = 10000;
    request->rebalance_timeout_ms = 20000;
    request->member_id = kafka_text(member);
    request->protocol_type = kafka_text("consumer");
    request->protocols.items = kafka_join_group_request_protocol_new(&client->arena, 1);
    request->protocols.count = 1;
    struct kafka_join_group_request_protocol *protocol = request->protocols.items;
    protocol->name = kafka_text("range");
    protocol->metadata = kafka_text("sub");
    return request;
}

static const struct kafka_join_group_response *join(struct client *client, int16_t version)
{
    return client_ask(client, KAFKA_JOIN_GROUP, version, join_of(client, ""));
}

static struct kafka_sync_group_request *sync_of(struct client *client, const char *member,
                                                const char *assignment)
{
    struct kafka_sync_group_request *request = kafka_sync_group_request_new(&client->arena, 1);
    request->group_id = kafka_text("g");
    request->generation_id = consumer_group_generation(fake.group);
    request->member_id = kafka_text(member);
    request->assignments.items = kafka_sync_group_request_assignment_new(&client->arena, 1);
    struct kafka_sync_group_request_assignment *first = request->assignments.items;
    first->member_id = kafka_text(member);
    first->assignment = kafka_text(assignment);
    request->assignments.count = 1;
    return request;
}

/* One member, in a stable group; its id. */
static const char *one_member(struct client *client)
{
    const struct kafka_join_group_response *joined = join(client, 3);
    assert_int_equal(joined->error_code, 0);
    const char *id =
        (const char *)arena_printf(&client->arena, "%.*s%c", (int)joined->member_id.bytes,
                                   (const char *)joined->member_id.data, 0)
            .data;
    (void)client_ask(client, KAFKA_SYNC_GROUP, 3, sync_of(client, id, "part"));
    assert_int_equal(consumer_group_state(fake.group), CONSUMER_GROUP_STABLE);
    return id;
}

static void a_first_member_leads_and_is_told_all_members(void **state)
{
    struct client *client = *state;
    for (int16_t version = 0; version <= 9; version++) {
        consumer_group_free(fake.group);
        fake.group = NULL;
        const struct kafka_join_group_response *answer = join(client, version);
        if (version >= 4) {
            assert_int_equal(answer->error_code, KAFKA_MEMBER_ID_REQUIRED);
            assert_text(answer->member_id, "given-id");
            continue;
        }
        assert_int_equal(answer->error_code, 0);
        assert_int_equal(answer->generation_id, 1);
        assert_text(answer->protocol_name, "range");
        assert_true(kafka_slice_equal(answer->leader, answer->member_id));
        assert_int_equal(answer->members.count, 1);
        const struct kafka_join_group_response_member *member = answer->members.items;
        assert_true(kafka_slice_equal(member->member_id, answer->member_id));
        assert_text(member->metadata, "sub");
    }
}

static void a_static_member_joins_in_every_version_that_has_them(void **state)
{
    struct client *client = *state;
    for (int16_t version = 5; version <= 9; version++) {
        consumer_group_free(fake.group);
        fake.group = NULL;
        struct kafka_join_group_request *request = join_of(client, "");
        request->group_instance_id = kafka_text("i1");
        const struct kafka_join_group_response *answer =
            client_ask(client, KAFKA_JOIN_GROUP, version, request);
        assert_int_equal(answer->error_code, 0);
        if (version >= 7) assert_text(answer->protocol_type, "consumer");
        const struct kafka_join_group_response_member *member = answer->members.items;
        assert_text(member->group_instance_id, "i1");
    }
}

static void a_refused_join_has_null_or_empty_where_its_version_wants_it(void **state)
{
    struct client *client = *state;
    fake.group_status = STATUS_UNKNOWN_MEMBER;
    const struct kafka_join_group_response *answer =
        client_ask(client, KAFKA_JOIN_GROUP, 5, join_of(client, "m"));
    assert_int_equal(answer->error_code, KAFKA_UNKNOWN_MEMBER_ID);
    assert_int_equal(answer->generation_id, -1);
    assert_text(answer->member_id, "m");
    assert_non_null(answer->protocol_name.data);
    answer = client_ask(client, KAFKA_JOIN_GROUP, 9, join_of(client, "m"));
    assert_null(answer->protocol_name.data);
}

static void a_join_waits_for_the_others(void **state)
{
    struct client *client = *state;
    (void)one_member(client);
    assert_int_equal(client_send(client, KAFKA_JOIN_GROUP, 3, join_of(client, "")), STATUS_OK);
    assert_int_equal(client->answer_count, client->taken);
    client_disconnect(client);
    assert_int_equal(fake.groups_cancelled, 1);
    assert_int_equal(consumer_group_member_count(fake.group), 2); /* its session decides */
}

static void an_assignment_is_given_when_it_is_stored(void **state)
{
    struct client *client = *state;
    for (int16_t version = 0; version <= 5; version++) {
        consumer_group_free(fake.group);
        fake.group = NULL;
        fake.hold_store = true;
        const struct kafka_join_group_response *joined = join(client, 3);
        char id[32];
        snprintf(id, sizeof(id), "%.*s", (int)joined->member_id.bytes,
                 (const char *)joined->member_id.data);
        assert_int_equal(
            client_send(client, KAFKA_SYNC_GROUP, version, sync_of(client, id, "part")), STATUS_OK);
        assert_int_equal(client->answer_count, client->taken);
        struct group_actions actions;
        group_actions_init(&actions);
        consumer_group_stored(fake.group, consumer_group_store_id(fake.group), STATUS_OK,
                              fake_clock(), &actions);
        fake_act(&actions);
        const struct kafka_sync_group_response *answer =
            client_take(client, KAFKA_SYNC_GROUP, version);
        assert_int_equal(answer->error_code, 0);
        assert_text(answer->assignment, "part");
        if (version >= 5) assert_text(answer->protocol_name, "range");
    }
}

static void while_groups_are_not_known_each_api_says_what_its_clients_bear(void **state)
{
    struct client *client = *state;
    fake.group_status = STATUS_NOT_READY;
    assert_int_equal(join(client, 9)->error_code, KAFKA_COORDINATOR_LOAD_IN_PROGRESS);
    struct kafka_sync_group_request sync = {.group_id = kafka_text("g"),
                                            .member_id = kafka_text("m")};
    const struct kafka_sync_group_response *synced = client_ask(client, KAFKA_SYNC_GROUP, 5, &sync);
    assert_int_equal(synced->error_code, KAFKA_REBALANCE_IN_PROGRESS);
    struct kafka_heartbeat_request beat = {.group_id = kafka_text("g"),
                                           .member_id = kafka_text("m")};
    const struct kafka_heartbeat_response *heard = client_ask(client, KAFKA_HEARTBEAT, 4, &beat);
    assert_int_equal(heard->error_code, 0);
    struct kafka_list_groups_request list = {0};
    const struct kafka_list_groups_response *listed =
        client_ask(client, KAFKA_LIST_GROUPS, 5, &list);
    assert_int_equal(listed->error_code, KAFKA_COORDINATOR_LOAD_IN_PROGRESS);
}

static void a_follower_is_not_the_coordinator_and_lists_nothing(void **state)
{
    struct client *client = *state;
    fake_follow(2);
    assert_int_equal(join(client, 9)->error_code, KAFKA_NOT_COORDINATOR);
    struct kafka_heartbeat_request beat = {.group_id = kafka_text("g"),
                                           .member_id = kafka_text("m")};
    const struct kafka_heartbeat_response *heard = client_ask(client, KAFKA_HEARTBEAT, 0, &beat);
    assert_int_equal(heard->error_code, KAFKA_NOT_COORDINATOR);
    struct kafka_list_groups_request list = {0};
    const struct kafka_list_groups_response *listed =
        client_ask(client, KAFKA_LIST_GROUPS, 5, &list);
    assert_int_equal(listed->error_code, 0);
    assert_int_equal(listed->groups.count, 0);
}

static void a_heartbeat_tells_whether_to_go_on(void **state)
{
    struct client *client = *state;
    const char *id = one_member(client);
    struct kafka_heartbeat_request beat = {
        .group_id = kafka_text("g"), .generation_id = 1, .member_id = kafka_text(id)};
    for (int16_t version = 0; version <= 4; version++) {
        const struct kafka_heartbeat_response *answer =
            client_ask(client, KAFKA_HEARTBEAT, version, &beat);
        assert_int_equal(answer->error_code, 0);
    }
    beat.generation_id = 0;
    const struct kafka_heartbeat_response *answer = client_ask(client, KAFKA_HEARTBEAT, 4, &beat);
    assert_int_equal(answer->error_code, KAFKA_ILLEGAL_GENERATION);
}

static void one_member_leaves_in_the_old_form(void **state)
{
    struct client *client = *state;
    const char *id = one_member(client);
    struct kafka_leave_group_request leave = {.group_id = kafka_text("g"),
                                              .member_id = kafka_text("nobody")};
    const struct kafka_leave_group_response *answer =
        client_ask(client, KAFKA_LEAVE_GROUP, 1, &leave);
    assert_int_equal(answer->error_code, KAFKA_UNKNOWN_MEMBER_ID);
    leave.member_id = kafka_text(id);
    answer = client_ask(client, KAFKA_LEAVE_GROUP, 0, &leave);
    assert_int_equal(answer->error_code, 0);
    assert_int_equal(consumer_group_member_count(fake.group), 0);
}

static void members_leave_each_with_its_own_error(void **state)
{
    struct client *client = *state;
    const char *id = one_member(client);
    struct kafka_leave_group_request_member *members =
        kafka_leave_group_request_member_new(&client->arena, 2);
    members[0].member_id = kafka_text("");
    members[0].group_instance_id = kafka_text("i1");
    members[1].member_id = kafka_text(id);
    struct kafka_leave_group_request leave = {.group_id = kafka_text("g"), .members = {members, 2}};
    const struct kafka_leave_group_response *answer =
        client_ask(client, KAFKA_LEAVE_GROUP, 5, &leave);
    assert_int_equal(answer->error_code, 0);
    assert_int_equal(answer->members.count, 2);
    const struct kafka_leave_group_response_member *out = answer->members.items;
    assert_int_equal(out[0].error_code, KAFKA_UNKNOWN_MEMBER_ID);
    assert_text(out[0].group_instance_id, "i1");
    assert_int_equal(out[1].error_code, 0);
    fake.group_status = STATUS_NOT_LEADER;
    answer = client_ask(client, KAFKA_LEAVE_GROUP, 3, &leave);
    assert_int_equal(answer->error_code, KAFKA_NOT_COORDINATOR);
    assert_int_equal(answer->members.count, 0);
}

/* ---- describing and listing ---- */

static const struct kafka_describe_groups_response *describe(struct client *client, int16_t version,
                                                             const char *group)
{
    struct slice *names = arena_new_array(&client->arena, 1, sizeof(*names));
    names[0] = kafka_text(group);
    struct kafka_describe_groups_request request = {.groups = {names, 1}};
    return client_ask(client, KAFKA_DESCRIBE_GROUPS, version, &request);
}

static void a_stable_group_is_described_whole(void **state)
{
    struct client *client = *state;
    const char *id = one_member(client);
    for (int16_t version = 0; version <= 6; version++) {
        const struct kafka_describe_groups_response *answer = describe(client, version, "g");
        assert_int_equal(answer->groups.count, 1);
        const struct kafka_describe_groups_response_group *group = answer->groups.items;
        assert_int_equal(group->error_code, 0);
        assert_text(group->group_id, "g");
        assert_text(group->group_state, "Stable");
        assert_text(group->protocol_type, "consumer");
        assert_text(group->protocol_data, "range");
        assert_int_equal(group->members.count, 1);
        const struct kafka_describe_groups_response_member *member = group->members.items;
        assert_text(member->member_id, id);
        assert_true(member->client_host.bytes > 0 && member->client_host.data[0] == '/');
        assert_text(member->member_metadata, "sub");
        assert_text(member->member_assignment, "part");
    }
}

static void of_a_group_that_changes_no_assignment_is_told(void **state)
{
    struct client *client = *state;
    (void)join(client, 3);
    const struct kafka_describe_groups_response_group *group =
        describe(client, 5, "g")->groups.items;
    assert_text(group->group_state, "CompletingRebalance");
    assert_text(group->protocol_data, "");
    const struct kafka_describe_groups_response_member *member = group->members.items;
    assert_int_equal(member->member_metadata.bytes, 0);
}

static void an_unknown_group_is_dead(void **state)
{
    struct client *client = *state;
    const struct kafka_describe_groups_response_group *group =
        describe(client, 5, "none")->groups.items;
    assert_int_equal(group->error_code, 0);
    assert_text(group->group_state, "Dead");
    group = describe(client, 6, "none")->groups.items;
    assert_int_equal(group->error_code, KAFKA_GROUP_ID_NOT_FOUND);
    assert_text(group->group_state, "Dead");
    assert_true(group->error_message.bytes > 0);
}

static int32_t listed(struct client *client, const char *state_filter, const char *type_filter)
{
    struct slice states[1] = {kafka_text(state_filter)}, types[1] = {kafka_text(type_filter)};
    struct kafka_list_groups_request request = {0};
    request.states_filter.items = states;
    request.states_filter.count = state_filter != NULL ? 1 : 0;
    request.types_filter.items = types;
    request.types_filter.count = type_filter != NULL ? 1 : 0;
    const struct kafka_list_groups_response *answer =
        client_ask(client, KAFKA_LIST_GROUPS, 5, &request);
    assert_int_equal(answer->error_code, 0);
    return answer->groups.count;
}

static void groups_are_listed_by_state_and_type_whatever_their_case(void **state)
{
    struct client *client = *state;
    (void)one_member(client);
    assert_int_equal(listed(client, NULL, NULL), 2);
    assert_int_equal(listed(client, "stable", NULL), 1);
    assert_int_equal(listed(client, "EMPTY", NULL), 1);
    assert_int_equal(listed(client, "Dead", NULL), 0);
    assert_int_equal(listed(client, NULL, "Classic"), 2);
    assert_int_equal(listed(client, NULL, "consumer"), 0);
}

/* ---- removing ---- */

static void a_group_is_deleted_when_that_is_replicated(void **state)
{
    struct client *client = *state;
    struct slice names[2] = {kafka_text("g"), kafka_text("g")};
    struct kafka_delete_groups_request request = {.groups_names = {names, 2}};
    fake.removed_later = true;
    assert_int_equal(client_send(client, KAFKA_DELETE_GROUPS, 2, &request), STATUS_OK);
    assert_int_equal(client->answer_count, client->taken);
    struct error error = {0};
    fake_removed(fake_removed_context, STATUS_GROUP_NOT_EMPTY, &error);
    const struct kafka_delete_groups_response *answer = client_take(client, KAFKA_DELETE_GROUPS, 2);
    assert_int_equal(answer->results.count, 1);
    const struct kafka_delete_groups_response_result *result = answer->results.items;
    assert_text(result->group_id, "g");
    assert_int_equal(result->error_code, KAFKA_NON_EMPTY_GROUP);
    fake.removed_later = false;
    fake.group_status = STATUS_UNKNOWN_GROUP;
    answer = client_ask(client, KAFKA_DELETE_GROUPS, 0, &request);
    result = answer->results.items;
    assert_int_equal(result->error_code, KAFKA_GROUP_ID_NOT_FOUND);
}

static void offsets_are_deleted_one_by_one(void **state)
{
    struct client *client = *state;
    struct kafka_offset_delete_request_partition partitions[2] = {{.partition_index = 1},
                                                                  {.partition_index = 9}};
    struct kafka_offset_delete_request_topic topic = {.name = kafka_text("orders"),
                                                      .partitions = {partitions, 2}};
    struct kafka_offset_delete_request request = {.group_id = kafka_text("g"),
                                                  .topics = {&topic, 1}};
    const struct kafka_offset_delete_response *answer =
        client_ask(client, KAFKA_OFFSET_DELETE, 0, &request);
    assert_int_equal(answer->error_code, 0);
    const struct kafka_offset_delete_response_topic *out = answer->topics.items;
    const struct kafka_offset_delete_response_partition *results = out->partitions.items;
    assert_int_equal(results[0].error_code, 0);
    assert_int_equal(results[1].error_code, KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
    assert_int_equal(fake.stored_count, 1);
    fake.offsets_status = STATUS_UNKNOWN_GROUP;
    answer = client_ask(client, KAFKA_OFFSET_DELETE, 0, &request);
    assert_int_equal(answer->error_code, KAFKA_GROUP_ID_NOT_FOUND);
    assert_int_equal(answer->topics.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLIENT_TEST(a_first_member_leads_and_is_told_all_members),
        CLIENT_TEST(a_static_member_joins_in_every_version_that_has_them),
        CLIENT_TEST(a_refused_join_has_null_or_empty_where_its_version_wants_it),
        CLIENT_TEST(a_join_waits_for_the_others),
        CLIENT_TEST(an_assignment_is_given_when_it_is_stored),
        CLIENT_TEST(while_groups_are_not_known_each_api_says_what_its_clients_bear),
        CLIENT_TEST(a_follower_is_not_the_coordinator_and_lists_nothing),
        CLIENT_TEST(a_heartbeat_tells_whether_to_go_on),
        CLIENT_TEST(one_member_leaves_in_the_old_form),
        CLIENT_TEST(members_leave_each_with_its_own_error),
        CLIENT_TEST(a_stable_group_is_described_whole),
        CLIENT_TEST(of_a_group_that_changes_no_assignment_is_told),
        CLIENT_TEST(an_unknown_group_is_dead),
        CLIENT_TEST(groups_are_listed_by_state_and_type_whatever_their_case),
        CLIENT_TEST(a_group_is_deleted_when_that_is_replicated),
        CLIENT_TEST(offsets_are_deleted_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
