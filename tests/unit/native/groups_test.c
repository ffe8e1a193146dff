/* Groups over the native protocol: members, what they read, and what is told of groups
 * (native-protocol.md 4.8). */
#include "front_end.h"

#include "broker/group_coordinator.h"
#include "broker/modern_coordinator.h"

static struct front_end front;

static int setup(void **state)
{
    (void)state;
    front_end_start(&front);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    front_end_stop(&front);
    return 0;
}

static void open_client(struct client *client)
{
    client_open(client, &front);
    client_greet(client);
}

static uint64_t ask_join_as(struct client *client, const char *group, const char *member,
                            const char *topics, uint8_t flags)
{
    struct buffer items;
    uint32_t count = 0;
    buffer_init(&items, 0);
    for (const char *at = topics; *at != '\0'; at++, count++) {
        struct wire_name item = {{(const uint8_t *)at, 1}};
        wire_put(&items, &wire_shape_name, &item);
    }
    struct wire_join_group join = {
        .group = wire_text(group),
        .member_id = wire_text(member),
        .topics = {count, buffer_slice(&items)},
        .has_flags = flags != 0,
        .flags = flags,
    };
    uint64_t number = client_ask(client, WIRE_JOIN_GROUP, &join);
    buffer_deinit(&items);
    return number;
}

/* An assignment as "t:1,2 u:1", partitions as on the wire. */
static const char *assignments_text(const struct wire_list *assignments)
{
    static char text[512];
    size_t at = 0;
    struct wire_cursor topics, partitions;
    struct wire_assignment topic;
    struct wire_partition partition;
    text[0] = '\0';
    wire_cursor_init(&topics, assignments, &wire_shape_assignment);
    while (wire_cursor_next(&topics, &topic)) {
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%.*s:", at > 0 ? " " : "",
                               (int)topic.topic.bytes, (const char *)topic.topic.data);
        wire_cursor_init(&partitions, &topic.partitions, &wire_shape_partition);
        for (bool first = true; wire_cursor_next(&partitions, &partition); first = false) {
            at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%d", first ? "" : ",",
                                   partition.partition + 1);
        }
    }
    return text;
}

static void expect_assignment(struct client *client, uint64_t number, const char *expected)
{
    union wire_message message = client_expect(client, number, WIRE_GROUP_ASSIGNMENT);
    assert_string_equal(assignments_text(&message.group_assignment.assignments), expected);
}

static uint64_t ask_heartbeat(struct client *client, const char *group)
{
    struct wire_group_member beat = {wire_text(group), wire_text("whoever")};
    return client_ask(client, WIRE_GROUP_HEARTBEAT, &beat);
}

/* Heartbeats until the assignment is `expected`. */
static void follow(struct client *client, const char *group, const char *expected)
{
    struct loop *loop = loop_event_interface(front.loop);
    int64_t end_us = loop_now_us(loop) + FRONT_END_PATIENCE_US;
    for (;;) {
        assert_true(loop_now_us(loop) < end_us);
        ask_heartbeat(client, group);
        struct wire_frame frame = client_frame(client);
        if (frame.opcode == WIRE_OK) {
            event_base_loop(loop_event_base(front.loop), EVLOOP_ONCE | EVLOOP_NONBLOCK);
            continue;
        }
        assert_int_equal(frame.opcode, WIRE_GROUP_ASSIGNMENT);
        union wire_message message = client_decode(&frame);
        if (strcmp(assignments_text(&message.group_assignment.assignments), expected) == 0) return;
    }
}

static void ask_fetch(struct client *client, const char *topic, const char *group, uint32_t wait_ms)
{
    struct wire_fetch fetch = {
        .topic = wire_text(topic),
        .group = wire_text(group),
        .max_records = 100,
        .has_isolation = true,
        .has_flags = true,
        .flags = WIRE_FETCH_BATCHED | WIRE_FETCH_WAIT,
        .max_wait_ms = wait_ms,
    };
    client_ask(client, WIRE_FETCH, &fetch);
}

static void expect_values(struct client *client, const char *expected)
{
    char text[512] = "";
    struct wire_frame frame = client_frame(client);
    if (frame.opcode == WIRE_RECORD_BATCH) {
        union wire_message message = client_decode(&frame);
        values_of(&message.record_batch.records, text, sizeof(text));
        frame = client_frame(client);
    }
    assert_int_equal(frame.opcode, WIRE_OK);
    assert_string_equal(text, expected);
}

static uint64_t ask_commit(struct client *client, const char *topic, int32_t partition,
                           int64_t offset)
{
    struct wire_commit commit = {wire_text(topic), partition, offset};
    return client_ask(client, WIRE_COMMIT, &commit);
}

/* ---- members ---- */

static void one_member_has_all_partitions(void **state)
{
    (void)state;
    struct client client;
    open_client(&client);
    client_create_topic(&client, "t", 3);
    client_create_topic(&client, "u", 2);
    expect_assignment(&client, ask_join_as(&client, "g", "m", "ut", 0), "t:1,2,3 u:1,2");
    client_expect(&client, ask_heartbeat(&client, "g"), WIRE_OK);
    client_free(&client);
}

static void members_share_by_range_in_order_of_their_ids(void **state)
{
    (void)state;
    struct client a, b;
    open_client(&a);
    open_client(&b);
    client_create_topic(&a, "t", 3);
    client_create_topic(&a, "u", 1);
    expect_assignment(&a, ask_join_as(&a, "g", "zz", "tu", WIRE_JOIN_FOLLOW), "t:1,2,3 u:1");
    expect_assignment(&b, ask_join_as(&b, "g", "aa", "t", 0), "t:1,2");
    follow(&a, "g", "t:3 u:1");
    client_free(&b);
    follow(&a, "g", "t:1,2,3 u:1");
    client_free(&a);
}

static void member_without_an_id_is_given_one_and_keeps_it(void **state)
{
    (void)state;
    struct client client;
    char id[WIRE_NAME_BYTES_MAX + 1];
    open_client(&client);
    client_create_topic(&client, "t", 1);
    for (int i = 0; i < 2; i++) {
        union wire_message message =
            client_expect(&client, ask_join_as(&client, "g", "", "t", 0), WIRE_GROUP_ASSIGNMENT);
        struct slice given = message.group_assignment.member_id;
        assert_in_range(given.bytes, 1, WIRE_NAME_BYTES_MAX);
        if (i == 1) assert_memory_equal(given.data, id, given.bytes);
        memcpy(id, given.data, given.bytes);
    }
    client_free(&client);
}

static void joining_again_replaces_the_topics(void **state)
{
    (void)state;
    struct client client;
    open_client(&client);
    client_create_topic(&client, "t", 1);
    client_create_topic(&client, "u", 2);
    expect_assignment(&client, ask_join_as(&client, "g", "m", "t", 0), "t:1");
    expect_assignment(&client, ask_join_as(&client, "g", "m", "u", 0), "u:1,2");
    client_free(&client);
}

static void grown_topic_is_shared_anew(void **state)
{
    (void)state;
    struct client client;
    open_client(&client);
    client_create_topic(&client, "t", 1);
    expect_assignment(&client, ask_join_as(&client, "g", "m", "t", WIRE_JOIN_FOLLOW), "t:1");
    struct wire_topic_count grow = {wire_text("t"), 3};
    client_expect(&client, client_ask(&client, WIRE_CREATE_PARTITIONS, &grow), WIRE_OK);
    follow(&client, "g", "t:1,2,3");
    client_free(&client);
}

static void refusals_have_their_codes(void **state)
{
    (void)state;
    struct client client;
    open_client(&client);
    client_create_topic(&client, "t", 1);
    client_expect_error(&client, ask_heartbeat(&client, "g"), WIRE_CODE_GROUP_MEMBER_UNKNOWN);
    struct wire_group_member leave = {wire_text("g"), wire_text("m")};
    client_expect_error(&client, client_ask(&client, WIRE_LEAVE_GROUP, &leave),
                        WIRE_CODE_GROUP_MEMBER_UNKNOWN);
    client_expect_error(&client, ask_join_as(&client, "g", "m", "tx", 0), WIRE_CODE_TOPIC_MISSING);
    client_expect_error(&client, ask_join_as(&client, "", "m", "t", 0), WIRE_CODE_BAD_FRAME);
    expect_assignment(&client, ask_join_as(&client, "g", "m", "t", 0), "t:1");
    client_expect_error(&client, ask_join_as(&client, "h", "m", "t", 0), WIRE_CODE_GROUP_CONFLICT);
    client_expect(&client, client_ask(&client, WIRE_LEAVE_GROUP, &leave), WIRE_OK);
    expect_assignment(&client, ask_join_as(&client, "h", "m", "t", 0), "t:1");
    client_free(&client);
}

static void reader_of_one_group_does_not_join_another(void **state)
{
    (void)state;
    struct client client;
    open_client(&client);
    client_create_topic(&client, "t", 1);
    ask_fetch(&client, "t", "g", 0);
    expect_values(&client, "");
    client_expect_error(&client, ask_join_as(&client, "h", "m", "t", 0), WIRE_CODE_GROUP_CONFLICT);
    client_free(&client);
}

static void id_belongs_to_who_joined_with_it_last(void **state)
{
    (void)state;
    struct client a, b;
    open_client(&a);
    open_client(&b);
    client_create_topic(&a, "t", 2);
    expect_assignment(&a, ask_join_as(&a, "g", "m", "t", 0), "t:1,2");
    expect_assignment(&b, ask_join_as(&b, "g", "m", "t", 0), "t:1,2");
    client_expect_error(&a, ask_heartbeat(&a, "g"), WIRE_CODE_GROUP_MEMBER_UNKNOWN);
    client_expect(&b, ask_heartbeat(&b, "g"), WIRE_OK);
    /* The first one's end does not end the second one's membership. */
    client_free(&a);
    client_expect(&b, ask_heartbeat(&b, "g"), WIRE_OK);
    client_free(&b);
}

/* ---- reading and committing ---- */

/* Keys whose partitions of two are 1 and 2: FNV-1a of "k1" is even, of "j1" odd or the other way
 * round; the acknowledgement tells. */
static void produce_into(struct client *client, int32_t partition, const char *value)
{
    static const char *const keys[] = {"a", "b", "c", "d", "e", "f"};
    for (size_t i = 0; i < ARRAY_COUNT(keys); i++) {
        if ((int32_t)(wire_key_hash(wire_text(keys[i])) % 2) != partition) continue;
        struct wire_ack ack = client_produce(client, "t", keys[i], value);
        assert_int_equal(ack.partition, partition);
        return;
    }
    fail();
}

static void member_reads_and_commits_only_what_it_is_assigned(void **state)
{
    (void)state;
    struct client a, b;
    open_client(&a);
    open_client(&b);
    client_create_topic(&a, "t", 2);
    produce_into(&a, 0, "zero");
    produce_into(&a, 1, "one");
    ask_join_as(&a, "g", "a", "t", WIRE_JOIN_FOLLOW);
    client_frame(&a);
    ask_join_as(&b, "g", "b", "t", WIRE_JOIN_FOLLOW);
    client_frame(&b);
    follow(&a, "g", "t:1");
    ask_fetch(&a, "t", "g", 0);
    expect_values(&a, "zero");
    ask_fetch(&b, "t", "g", 0);
    expect_values(&b, "one");
    client_expect(&a, ask_commit(&a, "t", 0, 1), WIRE_OK);
    client_expect_error(&a, ask_commit(&a, "t", 1, 1), WIRE_CODE_BAD_PROTOCOL);
    client_free(&a);
    client_free(&b);
}

/* The partition moves when its owner has said that it is done with what it had. */
static void what_a_member_has_is_committed_before_its_partition_moves(void **state)
{
    (void)state;
    struct client a, b;
    open_client(&a);
    open_client(&b);
    client_create_topic(&a, "t", 2);
    produce_into(&a, 0, "zero");
    produce_into(&a, 1, "one");
    expect_assignment(&a, ask_join_as(&a, "g", "a", "t", 0), "t:1,2");
    ask_fetch(&a, "t", "g", 0);
    struct wire_frame frame = client_frame(&a);
    assert_int_equal(frame.opcode, WIRE_RECORD_BATCH);
    client_frame(&a);
    uint64_t number = ask_join_as(&b, "g", "b", "t", 0);
    for (int i = 0; i < 20; i++)
        event_base_loop(loop_event_base(front.loop), EVLOOP_ONCE | EVLOOP_NONBLOCK);
    client_expect(&a, ask_commit(&a, "t", 0, 1), WIRE_OK);
    ask_fetch(&a, "t", "g", 0);
    expect_values(&a, "");
    expect_assignment(&b, number, "t:2");
    ask_fetch(&b, "t", "g", 0);
    expect_values(&b, "");
    client_free(&a);
    client_free(&b);
}

static void a_member_that_does_not_come_back_delays_a_move_for_a_moment(void **state)
{
    (void)state;
    struct client a, b;
    open_client(&a);
    open_client(&b);
    client_create_topic(&a, "t", 2);
    produce_into(&a, 1, "one");
    expect_assignment(&a, ask_join_as(&a, "g", "a", "t", WIRE_JOIN_FOLLOW), "t:1,2");
    ask_fetch(&a, "t", "g", 0);
    expect_values(&a, "one");
    expect_assignment(&b, ask_join_as(&b, "g", "b", "t", 0), "t:2");
    ask_fetch(&b, "t", "g", 0);
    expect_values(&b, "one");
    follow(&a, "g", "t:1");
    client_expect_error(&a, ask_commit(&a, "t", 1, 1), WIRE_CODE_BAD_PROTOCOL);
    client_free(&a);
    client_free(&b);
}

static void waiting_fetch_sees_what_a_member_that_left_had(void **state)
{
    (void)state;
    struct client a, b;
    open_client(&a);
    open_client(&b);
    client_create_topic(&a, "t", 2);
    produce_into(&a, 1, "one");
    ask_join_as(&a, "g", "a", "t", WIRE_JOIN_FOLLOW);
    client_frame(&a);
    expect_assignment(&b, ask_join_as(&b, "g", "b", "t", 0), "t:2");
    follow(&a, "g", "t:1");
    ask_fetch(&b, "t", "g", 0);
    expect_values(&b, "one");
    ask_fetch(&a, "t", "g", 20000);
    client_free(&b); /* it never said that it has "one" */
    expect_values(&a, "one");
    client_free(&a);
}

static void member_with_nothing_waits_until_it_has_something(void **state)
{
    (void)state;
    struct client a, b;
    open_client(&a);
    open_client(&b);
    client_create_topic(&a, "t", 1);
    client_produce(&a, "t", "", "v");
    expect_assignment(&a, ask_join_as(&a, "g", "a", "t", 0), "t:1");
    expect_assignment(&b, ask_join_as(&b, "g", "b", "t", 0), "");
    ask_fetch(&b, "t", "g", 0);
    expect_values(&b, "");
    ask_fetch(&b, "t", "g", 20000);
    client_free(&a);
    expect_values(&b, "v");
    client_free(&b);
}

static void who_did_not_join_commits_nothing_for_a_group_with_members(void **state)
{
    (void)state;
    struct client a, b;
    open_client(&a);
    open_client(&b);
    client_create_topic(&a, "t", 1);
    client_produce(&a, "t", "", "v");
    expect_assignment(&a, ask_join_as(&a, "g", "a", "t", 0), "t:1");
    ask_fetch(&b, "t", "g", 0);
    expect_values(&b, "v");
    client_expect_error(&b, ask_commit(&b, "t", 0, 1), WIRE_CODE_GROUP_MEMBER_UNKNOWN);
    ask_fetch(&a, "t", "h", 0);
    struct wire_frame frame = client_frame(&a);
    assert_int_equal(frame.opcode, WIRE_ERROR);
    assert_int_equal(client_decode(&frame).error.code, WIRE_CODE_BAD_PROTOCOL);
    client_free(&a);
    client_free(&b);
}

/* ---- Kafka's members ---- */

static void kafka_done(void *context, const struct group_result *result)
{
    *(enum status *)context = result->status;
}

/* What a consumer of Kafka's that knows `protocol` is told when it joins. */
static enum status kafka_joins(struct group_request *request, enum status *status,
                               const char *protocol)
{
    static const uint8_t subscription[] = {0, 0, 0, 0, 0, 1, 0, 1, 't', 0, 0, 0, 0};
    const struct consumer_protocol offered = {wire_text(protocol),
                                              {subscription, sizeof(subscription)}};
    struct consumer_join join = {
        .member_id = wire_text(""),
        .client_id = wire_text("k"),
        .client_host = wire_text(""),
        .protocol_type = wire_text("consumer"),
        .protocols = &offered,
        .protocol_count = 1,
        .session_timeout_ms = 10000,
        .rebalance_timeout_ms = 10000,
    };
    *request = (struct group_request){.done = kafka_done, .context = status};
    *status = STATUS_AGAIN;
    broker_join_group(front.broker, wire_text("g"), &join, request);
    return *status;
}

static void kafka_member_cannot_join_a_native_group(void **state)
{
    (void)state;
    struct client client;
    struct group_request request;
    enum status status;
    open_client(&client);
    client_create_topic(&client, "t", 1);
    expect_assignment(&client, ask_join_as(&client, "g", "m", "t", 0), "t:1");
    assert_int_equal(kafka_joins(&request, &status, "range"), STATUS_GROUP_PROTOCOL);
    client_free(&client);
}

static void native_member_cannot_join_a_kafka_group(void **state)
{
    (void)state;
    struct client client;
    struct group_request request;
    enum status status;
    open_client(&client);
    client_create_topic(&client, "t", 1);
    assert_int_equal(kafka_joins(&request, &status, "range"), STATUS_AGAIN); /* it waits */
    client_expect_error(&client, ask_join_as(&client, "g", "m", "t", 0), WIRE_CODE_GROUP_CONFLICT);
    broker_group_cancel(front.broker, &request);
    client_free(&client);
}

/* ---- what is told of groups ---- */

static uint64_t ask_about(struct client *client, uint8_t opcode, const char *group)
{
    struct wire_text_message message = {wire_text(group)};
    return client_ask(client, opcode, &message);
}

static void description_names_members_and_offsets(void **state)
{
    (void)state;
    struct client client;
    open_client(&client);
    client_create_topic(&client, "t", 2);
    produce_into(&client, 1, "v");
    expect_assignment(&client, ask_join_as(&client, "g", "m", "t", 0), "t:1,2");
    ask_fetch(&client, "t", "g", 0);
    expect_values(&client, "v");
    client_expect(&client, ask_commit(&client, "t", 1, 1), WIRE_OK);
    union wire_message message = client_expect(
        &client, ask_about(&client, WIRE_DESCRIBE_GROUP, "g"), WIRE_GROUP_DESCRIPTION);
    const struct wire_group_description *group = &message.group_description;
    struct wire_cursor cursor;
    struct wire_member member;
    struct wire_topic_offset offset;
    assert_memory_equal(group->state.data, "stable", 6);
    wire_cursor_init(&cursor, &group->members, &wire_shape_member);
    assert_true(wire_cursor_next(&cursor, &member));
    assert_memory_equal(member.member_id.data, "m", 1);
    assert_string_equal(assignments_text(&member.assignments), "t:1,2");
    wire_cursor_init(&cursor, &group->offsets, &wire_shape_topic_offset);
    assert_true(wire_cursor_next(&cursor, &offset));
    assert_int_equal(offset.partition, 1);
    assert_int_equal(offset.offset, 1);
    assert_false(wire_cursor_next(&cursor, &offset));
    client_free(&client);
}

static void list_has_groups_with_members_and_groups_with_offsets_only(void **state)
{
    (void)state;
    struct client a, b;
    open_client(&a);
    open_client(&b);
    client_create_topic(&a, "t", 1);
    client_produce(&a, "t", "", "v");
    expect_assignment(&a, ask_join_as(&a, "zz", "m", "t", 0), "t:1");
    ask_fetch(&b, "t", "aa", 0);
    expect_values(&b, "v");
    client_expect(&b, ask_commit(&b, "t", 0, 1), WIRE_OK);
    union wire_message message =
        client_expect(&b, client_ask(&b, WIRE_LIST_GROUPS, NULL), WIRE_GROUP_LIST);
    struct wire_cursor cursor;
    struct wire_group_entry entry;
    wire_cursor_init(&cursor, &message.group_list.groups, &wire_shape_group_entry);
    assert_true(wire_cursor_next(&cursor, &entry));
    assert_memory_equal(entry.group.data, "aa", 2);
    assert_memory_equal(entry.state.data, "empty", 5);
    assert_int_equal(entry.members, 0);
    assert_true(wire_cursor_next(&cursor, &entry));
    assert_memory_equal(entry.group.data, "zz", 2);
    assert_memory_equal(entry.state.data, "stable", 6);
    assert_int_equal(entry.members, 1);
    assert_false(wire_cursor_next(&cursor, &entry));
    client_free(&a);
    client_free(&b);
}

static void group_is_deleted_when_it_has_no_members(void **state)
{
    (void)state;
    struct client a, b;
    open_client(&a);
    open_client(&b);
    client_create_topic(&a, "t", 1);
    client_produce(&a, "t", "", "v");
    client_expect_error(&b, ask_about(&b, WIRE_DELETE_GROUP, "g"), WIRE_CODE_GROUP_MISSING);
    client_expect_error(&b, ask_about(&b, WIRE_DESCRIBE_GROUP, "g"), WIRE_CODE_GROUP_MISSING);
    expect_assignment(&a, ask_join_as(&a, "g", "m", "t", 0), "t:1");
    ask_fetch(&a, "t", "g", 0);
    expect_values(&a, "v");
    client_expect(&a, ask_commit(&a, "t", 0, 1), WIRE_OK);
    client_expect_error(&b, ask_about(&b, WIRE_DELETE_GROUP, "g"), WIRE_CODE_GROUP_NOT_EMPTY);
    struct wire_group_member leave = {wire_text("g"), wire_text("m")};
    client_expect(&a, client_ask(&a, WIRE_LEAVE_GROUP, &leave), WIRE_OK);
    client_expect(&b, ask_about(&b, WIRE_DELETE_GROUP, "g"), WIRE_OK);
    client_expect_error(&b, ask_about(&b, WIRE_DESCRIBE_GROUP, "g"), WIRE_CODE_GROUP_MISSING);
    client_free(&a);
    client_free(&b);
}

static void modern_done(void *context, struct modern_request *request)
{
    *(enum status *)context = request->status;
}

/* A consumer of the new protocol (KIP-848) joins "g". */
static void modern_joins(void)
{
    const struct partition_set nothing = {0};
    const struct slice topic = wire_text("t");
    const struct modern_heartbeat heartbeat = {
        .member_id = wire_text("m848"),
        .client_id = wire_text("k"),
        .client_host = wire_text(""),
        .rebalance_timeout_ms = 30000,
        .has_names = true,
        .names = &topic,
        .name_count = 1,
        .has_owned = true,
        .owned = &nothing,
    };
    enum status status = STATUS_AGAIN;
    struct modern_request request = {.done = modern_done, .context = &status};
    broker_modern_heartbeat(front.broker, wire_text("g"), &heartbeat, &request);
    while (status == STATUS_AGAIN)
        front_end_turn(&front);
    assert_int_equal(status, STATUS_OK);
}

static void groups_of_the_new_protocol_are_told_of_too(void **state)
{
    (void)state;
    struct client client;
    open_client(&client);
    client_create_topic(&client, "t", 2);
    modern_joins();
    client_expect_error(&client, ask_join_as(&client, "g", "m", "t", 0), WIRE_CODE_GROUP_CONFLICT);
    union wire_message message =
        client_expect(&client, client_ask(&client, WIRE_LIST_GROUPS, NULL), WIRE_GROUP_LIST);
    struct wire_cursor cursor;
    struct wire_group_entry entry;
    struct wire_member member;
    wire_cursor_init(&cursor, &message.group_list.groups, &wire_shape_group_entry);
    assert_true(wire_cursor_next(&cursor, &entry));
    assert_memory_equal(entry.state.data, "stable", 6);
    assert_int_equal(entry.members, 1);
    message = client_expect(&client, ask_about(&client, WIRE_DESCRIBE_GROUP, "g"),
                            WIRE_GROUP_DESCRIPTION);
    wire_cursor_init(&cursor, &message.group_description.members, &wire_shape_member);
    assert_true(wire_cursor_next(&cursor, &member));
    assert_memory_equal(member.member_id.data, "m848", 4);
    assert_string_equal(assignments_text(&member.assignments), "t:1,2");
    client_expect_error(&client, ask_about(&client, WIRE_DELETE_GROUP, "g"),
                        WIRE_CODE_GROUP_NOT_EMPTY);
    client_free(&client);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_member_has_all_partitions),
        TEST(members_share_by_range_in_order_of_their_ids),
        TEST(member_without_an_id_is_given_one_and_keeps_it),
        TEST(joining_again_replaces_the_topics),
        TEST(grown_topic_is_shared_anew),
        TEST(refusals_have_their_codes),
        TEST(reader_of_one_group_does_not_join_another),
        TEST(id_belongs_to_who_joined_with_it_last),
        TEST(member_reads_and_commits_only_what_it_is_assigned),
        TEST(what_a_member_has_is_committed_before_its_partition_moves),
        TEST(a_member_that_does_not_come_back_delays_a_move_for_a_moment),
        TEST(waiting_fetch_sees_what_a_member_that_left_had),
        TEST(member_with_nothing_waits_until_it_has_something),
        TEST(who_did_not_join_commits_nothing_for_a_group_with_members),
        TEST(kafka_member_cannot_join_a_native_group),
        TEST(native_member_cannot_join_a_kafka_group),
        TEST(description_names_members_and_offsets),
        TEST(list_has_groups_with_members_and_groups_with_offsets_only),
        TEST(group_is_deleted_when_it_has_no_members),
        TEST(groups_of_the_new_protocol_are_told_of_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
