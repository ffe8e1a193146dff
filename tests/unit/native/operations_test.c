/* Operations of the native front end on a real broker: topics, produce, fetch, commit, offsets. */
#include "unit/native/front_end.h"

static struct client client;

static int greet(void **state)
{
    client_open(&client, *state);
    client_greet(&client);
    return 0;
}

static int leave(void **state)
{
    (void)state;
    client_free(&client);
    return 0;
}

/* ---- topics ---- */

static void created_topic_is_listed_and_described(void **state)
{
    (void)state;
    client_create_topic(&client, "apples", 3);
    uint64_t number = client_ask(&client, WIRE_LIST_TOPICS, NULL);
    union wire_message message = client_expect(&client, number, WIRE_TOPIC_LIST);
    struct wire_cursor cursor;
    struct wire_name name;
    bool found = false;
    wire_cursor_init(&cursor, &message.topic_list.topics, &wire_shape_name);
    while (wire_cursor_next(&cursor, &name)) {
        if (name.name.bytes == 6 && memcmp(name.name.data, "apples", 6) == 0) found = true;
        assert_false(name.name.bytes > 2 && memcmp(name.name.data, "__", 2) == 0);
    }
    assert_true(found);
    struct wire_text_message describe = {wire_text("apples")};
    number = client_ask(&client, WIRE_DESCRIBE_TOPIC, &describe);
    message = client_expect(&client, number, WIRE_TOPIC_DESCRIPTION);
    assert_int_equal(message.topic_description.partitions, 3);
}

static void refused_topics_have_their_codes(void **state)
{
    (void)state;
    struct wire_topic_count create = {.name = wire_text("pears"), .partitions = 1};
    client_create_topic(&client, "pears", 1);
    uint64_t number = client_ask(&client, WIRE_CREATE_TOPIC, &create);
    union wire_message message = client_expect(&client, number, WIRE_ERROR);
    assert_int_equal(message.error.code, WIRE_CODE_INTERNAL);
    assert_memory_equal(message.error.text.data, "topic exists", 12);
    create.name = wire_text("__secret");
    client_expect_error(&client, client_ask(&client, WIRE_CREATE_TOPIC, &create),
                        WIRE_CODE_BAD_FRAME);
    create.name = wire_text("no/slash");
    client_expect_error(&client, client_ask(&client, WIRE_CREATE_TOPIC, &create),
                        WIRE_CODE_INTERNAL);
    struct wire_text_message name = {wire_text("nothing")};
    client_expect_error(&client, client_ask(&client, WIRE_DELETE_TOPIC, &name),
                        WIRE_CODE_TOPIC_MISSING);
    client_expect_error(&client, client_ask(&client, WIRE_DESCRIBE_TOPIC, &name),
                        WIRE_CODE_TOPIC_MISSING);
    name.text = wire_text("__consumer_offsets");
    client_expect_error(&client, client_ask(&client, WIRE_DELETE_TOPIC, &name),
                        WIRE_CODE_TOPIC_FORBIDDEN);
}

static void topic_grows_but_does_not_shrink(void **state)
{
    (void)state;
    client_create_topic(&client, "grapes", 2);
    struct wire_topic_count grow = {.name = wire_text("grapes"), .partitions = 2};
    client_expect_error(&client, client_ask(&client, WIRE_CREATE_PARTITIONS, &grow),
                        WIRE_CODE_INVALID_PARTITIONS);
    grow.partitions = 1025;
    client_expect_error(&client, client_ask(&client, WIRE_CREATE_PARTITIONS, &grow),
                        WIRE_CODE_INVALID_PARTITIONS);
    grow.partitions = 4;
    client_expect(&client, client_ask(&client, WIRE_CREATE_PARTITIONS, &grow), WIRE_OK);
    struct wire_text_message describe = {wire_text("grapes")};
    uint64_t number = client_ask(&client, WIRE_DESCRIBE_TOPIC, &describe);
    assert_int_equal(
        client_expect(&client, number, WIRE_TOPIC_DESCRIPTION).topic_description.partitions, 4);
}

static uint64_t ask_alter(const char *topic, const char *key, const char *value)
{
    struct buffer items;
    buffer_init(&items, 0);
    struct wire_config_entry entry = {wire_text(key), wire_text(value)};
    wire_put(&items, &wire_shape_config_entry, &entry);
    struct wire_alter_topic_config alter = {.name = wire_text(topic),
                                            .entries = {1, buffer_slice(&items)}};
    uint64_t number = client_ask(&client, WIRE_ALTER_TOPIC_CONFIG, &alter);
    buffer_deinit(&items);
    return number;
}

static void native_setting_is_shown_under_both_names(void **state)
{
    (void)state;
    client_create_topic(&client, "plums", 1);
    client_expect(&client, ask_alter("plums", "retention", "60"), WIRE_OK);
    struct wire_text_message describe = {wire_text("plums")};
    uint64_t number = client_ask(&client, WIRE_DESCRIBE_TOPIC, &describe);
    union wire_message message = client_expect(&client, number, WIRE_TOPIC_DESCRIPTION);
    assert_int_equal(message.topic_description.entries.count, 2);
    struct wire_cursor cursor;
    struct wire_config_entry entry;
    wire_cursor_init(&cursor, &message.topic_description.entries, &wire_shape_config_entry);
    assert_true(wire_cursor_next(&cursor, &entry));
    assert_int_equal(entry.key.bytes, 9);
    assert_memory_equal(entry.key.data, "retention", 9);
    assert_int_equal(entry.value.bytes, 2);
    assert_memory_equal(entry.value.data, "60", 2);
    assert_true(wire_cursor_next(&cursor, &entry));
    assert_int_equal(entry.key.bytes, 12);
    assert_memory_equal(entry.key.data, "retention.ms", 12);
    assert_memory_equal(entry.value.data, "60000", 5);
}

static void unknown_setting_is_refused(void **state)
{
    (void)state;
    client_create_topic(&client, "figs", 1);
    client_expect_error(&client, ask_alter("figs", "sweetness", "9"), WIRE_CODE_INVALID_CONFIG);
    client_expect_error(&client, ask_alter("figs", "backend", "segmented"),
                        WIRE_CODE_INVALID_CONFIG);
    client_expect_error(&client, ask_alter("nuts", "retention", "9"), WIRE_CODE_TOPIC_MISSING);
}

static void deleted_topic_is_gone(void **state)
{
    (void)state;
    client_create_topic(&client, "dates", 1);
    client_produce(&client, "dates", "", "v");
    struct wire_text_message name = {wire_text("dates")};
    client_expect(&client, client_ask(&client, WIRE_DELETE_TOPIC, &name), WIRE_OK);
    client_expect_error(&client, client_ask_produce(&client, "dates", "", "v"),
                        WIRE_CODE_TOPIC_MISSING);
}

/* ---- produce ---- */

static void offsets_of_a_partition_are_dense(void **state)
{
    (void)state;
    client_create_topic(&client, "dense", 1);
    for (int64_t i = 0; i < 3; i++) {
        assert_int_equal(client_produce(&client, "dense", "k", "v").offset, i);
    }
}

static void key_decides_the_partition(void **state)
{
    (void)state;
    client_create_topic(&client, "keys", 12);
    /* native-protocol.md 4.1 counts from 1: 10 and 11. */
    assert_int_equal(client_produce(&client, "keys", "k1", "v").partition, 9);
    assert_int_equal(client_produce(&client, "keys", "key-1", "v").partition, 10);
}

static void produce_without_topic_or_codec_is_refused(void **state)
{
    (void)state;
    client_expect_error(&client, client_ask_produce(&client, "nowhere", "", "v"),
                        WIRE_CODE_TOPIC_MISSING);
    client_expect_error(&client, client_ask_produce(&client, "no/where", "", "v"),
                        WIRE_CODE_INTERNAL);
    client_expect_error(&client, client_ask_produce(&client, "__consumer_offsets", "", "v"),
                        WIRE_CODE_TOPIC_FORBIDDEN);
    client_create_topic(&client, "codec", 1);
    struct wire_produce produce = {
        .codec = 3, .topic = wire_text("codec"), .key = wire_text(""), .value = wire_text("v")};
    client_expect_error(&client, client_ask(&client, WIRE_PRODUCE, &produce), WIRE_CODE_INTERNAL);
}

static uint64_t ask_batch_with(uint8_t flags, const char *topic, uint8_t codec, uint32_t count,
                               bool keys)
{
    struct buffer items;
    buffer_init(&items, 0);
    for (uint32_t i = 0; i < count; i++) {
        char key[16], value[16];
        snprintf(key, sizeof(key), "k%u", i);
        snprintf(value, sizeof(value), "v%u", i);
        struct wire_key_value record = {wire_text(keys ? key : ""), wire_text(value)};
        wire_put(&items, &wire_shape_key_value, &record);
    }
    struct wire_produce_batch batch = {.flags = flags,
                                       .codec = codec,
                                       .topic = wire_text(topic),
                                       .records = {count, buffer_slice(&items)}};
    uint64_t number = client_ask(&client, WIRE_PRODUCE_BATCH, &batch);
    buffer_deinit(&items);
    return number;
}

static uint64_t ask_batch(const char *topic, uint8_t codec, uint32_t count, bool keys)
{
    return ask_batch_with(0, topic, codec, count, keys);
}

static void batch_is_acknowledged_record_by_record(void **state)
{
    (void)state;
    client_create_topic(&client, "batch", 3);
    uint64_t number = ask_batch("batch", 0, 100, true);
    union wire_message message = client_expect(&client, number, WIRE_PRODUCE_BATCH_ACK);
    assert_int_equal(message.produce_batch_ack.error_code, 0);
    assert_int_equal(message.produce_batch_ack.acks.count, 100);
    int64_t next[3] = {0};
    struct wire_cursor cursor;
    struct wire_ack ack;
    wire_cursor_init(&cursor, &message.produce_batch_ack.acks, &wire_shape_ack);
    for (uint32_t i = 0; wire_cursor_next(&cursor, &ack); i++) {
        char key[16];
        snprintf(key, sizeof(key), "k%u", i);
        assert_int_equal(ack.partition, wire_key_hash(wire_text(key)) % 3);
        assert_int_equal(ack.offset, next[ack.partition]++);
    }
}

/* ---- order ---- */

enum { FIRST = WIRE_BATCH_ORDERED | WIRE_BATCH_FIRST, BEHIND = WIRE_BATCH_ORDERED };

/* One record, or with a codec that does not exist none. */
static uint64_t ask_ordered(uint8_t flags, const char *topic, bool refused)
{
    return ask_batch_with(flags, topic, refused ? 9 : 0, 1, false);
}

static int64_t expect_taken(uint64_t number)
{
    union wire_message message = client_expect(&client, number, WIRE_PRODUCE_BATCH_ACK);
    struct wire_cursor cursor;
    struct wire_ack ack = {.offset = -1};
    wire_cursor_init(&cursor, &message.produce_batch_ack.acks, &wire_shape_ack);
    assert_int_equal(message.produce_batch_ack.error_code, 0);
    assert_true(wire_cursor_next(&cursor, &ack));
    return ack.offset;
}

static void ordered_batches_behind_a_refused_one_are_refused(void **state)
{
    (void)state;
    client_create_topic(&client, "ordered", 1);
    uint64_t numbers[4] = {
        ask_ordered(FIRST, "ordered", false),
        ask_ordered(BEHIND, "ordered", true),
        ask_ordered(BEHIND, "ordered", false),
        ask_ordered(BEHIND, "ordered", false),
    };
    assert_int_equal(expect_taken(numbers[0]), 0);
    for (int i = 1; i < 4; i++) {
        client_expect_error(&client, numbers[i], WIRE_CODE_INTERNAL);
    }
    /* Also what comes after the answers: it may have been sent before they were seen. */
    client_expect_error(&client, ask_ordered(BEHIND, "ordered", false), WIRE_CODE_INTERNAL);
    assert_int_equal(expect_taken(ask_ordered(FIRST, "ordered", false)), 1);
    assert_int_equal(expect_taken(ask_ordered(BEHIND, "ordered", false)), 2);
}

static void order_is_a_matter_of_one_topic_and_of_those_who_ask_for_it(void **state)
{
    (void)state;
    client_create_topic(&client, "asked", 1);
    client_create_topic(&client, "other", 1);
    client_expect_error(&client, ask_ordered(FIRST, "asked", true), WIRE_CODE_INTERNAL);
    assert_int_equal(expect_taken(ask_ordered(BEHIND, "other", false)), 0);
    assert_int_equal(expect_taken(ask_batch("asked", 0, 1, false)), 0);
    assert_int_equal(client_produce(&client, "asked", "", "v").offset, 1);
    client_expect_error(&client, ask_ordered(BEHIND, "asked", false), WIRE_CODE_INTERNAL);
}

static void ordered_batches_are_forgotten_with_the_connection(void **state)
{
    client_create_topic(&client, "hung-up", 1);
    client_expect_error(&client, ask_ordered(FIRST, "hung-up", true), WIRE_CODE_INTERNAL);
    ask_ordered(FIRST, "hung-up", false);
    client_free(&client);
    client_open(&client, *state);
    client_greet(&client);
    assert_true(expect_taken(ask_ordered(BEHIND, "hung-up", false)) >= 0);
}

static uint32_t partition_spread_to(uint32_t spread, const char *key)
{
    struct buffer items;
    buffer_init(&items, 0);
    struct wire_key_value record = {wire_text(key), wire_text("v")};
    wire_put(&items, &wire_shape_key_value, &record);
    struct wire_produce_batch batch = {.topic = wire_text("spread"),
                                       .records = {1, buffer_slice(&items)},
                                       .has_spread = true,
                                       .spread = spread};
    uint64_t number = client_ask(&client, WIRE_PRODUCE_BATCH, &batch);
    buffer_deinit(&items);
    union wire_message message = client_expect(&client, number, WIRE_PRODUCE_BATCH_ACK);
    struct wire_cursor cursor;
    struct wire_ack ack;
    wire_cursor_init(&cursor, &message.produce_batch_ack.acks, &wire_shape_ack);
    assert_true(wire_cursor_next(&cursor, &ack));
    return (uint32_t)ack.partition;
}

static void client_may_say_where_records_without_key_go(void **state)
{
    (void)state;
    client_create_topic(&client, "spread", 12);
    assert_int_equal(partition_spread_to(11, ""), 11);
    assert_int_equal(partition_spread_to(11, ""), 11);
    assert_int_equal(partition_spread_to(4294967295, ""), 4294967295 % 12);
    assert_int_equal(partition_spread_to(5, "k1"), 9);
}

/* ---- fetch for a group ---- */

static uint64_t ask_fetch(const char *topic, const char *group, uint32_t max_records)
{
    struct wire_fetch fetch = {.topic = wire_text(topic),
                               .group = wire_text(group),
                               .max_records = max_records,
                               .has_isolation = true,
                               .has_flags = true,
                               .flags = WIRE_FETCH_BATCHED};
    return client_ask(&client, WIRE_FETCH, &fetch);
}

/* The values of the next fetch's answer, "" for none. */
static void expect_values(uint64_t number, const char *expected)
{
    char values[512] = "";
    struct wire_frame frame = client_frame(&client);
    if (frame.opcode == WIRE_RECORD_BATCH) {
        union wire_message message = client_decode(&frame);
        values_of(&message.record_batch.records, values, sizeof(values));
        frame = client_frame(&client);
    }
    struct wire_id id = client_id(number);
    assert_true(wire_id_equal(&frame.id, &id));
    if (frame.opcode != WIRE_OK) {
        union wire_message message = client_decode(&frame);
        fail_msg("error %u: %.*s", message.error.code, (int)message.error.text.bytes,
                 (const char *)message.error.text.data);
    }
    assert_string_equal(values, expected);
}

static void group_reads_on_where_it_left_off(void **state)
{
    (void)state;
    client_create_topic(&client, "group", 1);
    client_expect(&client, ask_batch("group", 0, 5, false), WIRE_PRODUCE_BATCH_ACK);
    expect_values(ask_fetch("group", "g", 2), "v0 v1");
    expect_values(ask_fetch("group", "g", 2), "v2 v3");
    expect_values(ask_fetch("group", "g", 9), "v4");
    expect_values(ask_fetch("group", "g", 9), "");
    client_reconnect(&client);
    expect_values(ask_fetch("group", "g", 9), "");
}

static void delivery_without_a_further_fetch_is_not_committed(void **state)
{
    (void)state;
    client_create_topic(&client, "again", 1);
    client_expect(&client, ask_batch("again", 0, 4, false), WIRE_PRODUCE_BATCH_ACK);
    expect_values(ask_fetch("again", "g", 2), "v0 v1");
    expect_values(ask_fetch("again", "g", 1), "v2");
    client_reconnect(&client);
    /* v2 was on its way only; v0 and v1 were shown to have arrived. */
    expect_values(ask_fetch("again", "g", 9), "v2 v3");
}

static void compressed_batch_is_read_in_pieces(void **state)
{
    (void)state;
    client_create_topic(&client, "packed", 1);
    client_expect(&client, ask_batch("packed", 2, 6, true), WIRE_PRODUCE_BATCH_ACK);
    expect_values(ask_fetch("packed", "g", 4), "v0 v1 v2 v3");
    expect_values(ask_fetch("packed", "g", 4), "v4 v5");
}

static void fetch_without_batching_sends_record_frames(void **state)
{
    (void)state;
    client_create_topic(&client, "single", 1);
    client_produce(&client, "single", "k", "v");
    struct wire_fetch fetch = {
        .topic = wire_text("single"), .group = wire_text("g"), .max_records = 5};
    uint64_t number = client_ask(&client, WIRE_FETCH, &fetch);
    union wire_message message = client_expect(&client, number, WIRE_RECORD);
    assert_int_equal(message.record.offset, 0);
    assert_memory_equal(message.record.key.data, "k", 1);
    assert_true(message.record.timestamp_ms > 0);
    client_expect(&client, number, WIRE_OK);
}

static void connection_is_bound_to_its_group(void **state)
{
    (void)state;
    client_create_topic(&client, "bound", 1);
    expect_values(ask_fetch("bound", "g", 1), "");
    client_expect_error(&client, ask_fetch("bound", "h", 1), WIRE_CODE_BAD_PROTOCOL);
    client_expect_error(&client, ask_fetch("unbound", "g", 1), WIRE_CODE_TOPIC_MISSING);
}

static void fetch_reads_the_named_topic_only(void **state)
{
    (void)state;
    client_create_topic(&client, "one", 1);
    client_create_topic(&client, "two", 1);
    client_produce(&client, "one", "", "1");
    client_produce(&client, "two", "", "2");
    expect_values(ask_fetch("one", "g", 9), "1");
    expect_values(ask_fetch("two", "g", 9), "2");
}

/* ---- commit ---- */

static uint64_t ask_commit(const char *topic, int32_t partition, int64_t offset)
{
    struct wire_commit commit = {
        .topic = wire_text(topic), .partition = partition, .offset = offset};
    return client_ask(&client, WIRE_COMMIT, &commit);
}

static void commit_rewinds_the_session(void **state)
{
    (void)state;
    client_create_topic(&client, "rewind", 1);
    client_expect(&client, ask_batch("rewind", 0, 3, false), WIRE_PRODUCE_BATCH_ACK);
    expect_values(ask_fetch("rewind", "g", 9), "v0 v1 v2");
    client_expect(&client, ask_commit("rewind", 0, 1), WIRE_OK);
    expect_values(ask_fetch("rewind", "g", 9), "v1 v2");
    client_expect(&client, ask_commit("rewind", 0, 3), WIRE_OK);
    client_reconnect(&client);
    expect_values(ask_fetch("rewind", "g", 9), "");
}

static void commit_is_checked(void **state)
{
    (void)state;
    client_create_topic(&client, "check", 1);
    client_expect_error(&client, ask_commit("check", 0, 0), WIRE_CODE_BAD_PROTOCOL);
    expect_values(ask_fetch("check", "g", 1), "");
    client_expect_error(&client, ask_commit("check", 0, 1), WIRE_CODE_BAD_FRAME);
    client_expect_error(&client, ask_commit("check", 1, 0), WIRE_CODE_BAD_FRAME);
    client_expect_error(&client, ask_commit("gone", 0, 0), WIRE_CODE_TOPIC_MISSING);
    client_expect(&client, ask_commit("check", 0, 0), WIRE_OK);
}

/* ---- fetch at positions ---- */

static uint64_t ask_positions(const char *topic, int32_t partition, int64_t offset,
                              uint32_t max_records, uint32_t wait_ms)
{
    struct buffer items;
    buffer_init(&items, 0);
    struct wire_position position = {partition, offset};
    wire_put(&items, &wire_shape_position, &position);
    struct wire_fetch fetch = {.topic = wire_text(topic),
                               .group = wire_text(""),
                               .max_records = max_records,
                               .has_isolation = true,
                               .has_flags = true,
                               .flags = WIRE_FETCH_POSITIONS | WIRE_FETCH_WAIT,
                               .max_wait_ms = wait_ms,
                               .positions = {1, buffer_slice(&items)}};
    uint64_t number = client_ask(&client, WIRE_FETCH, &fetch);
    buffer_deinit(&items);
    return number;
}

static struct wire_next_position expect_positions(uint64_t number, const char *expected)
{
    char values[512];
    union wire_message message = client_expect(&client, number, WIRE_RECORD_BATCH);
    values_of(&message.record_batch.records, values, sizeof(values));
    assert_string_equal(values, expected);
    assert_int_equal(message.record_batch.positions.count, 1);
    struct wire_cursor cursor;
    struct wire_next_position position;
    wire_cursor_init(&cursor, &message.record_batch.positions, &wire_shape_next_position);
    assert_true(wire_cursor_next(&cursor, &position));
    client_expect(&client, number, WIRE_OK);
    return position;
}

static void positions_need_no_group_and_tell_where_to_go_on(void **state)
{
    (void)state;
    client_create_topic(&client, "places", 1);
    client_expect(&client, ask_batch("places", 0, 5, false), WIRE_PRODUCE_BATCH_ACK);
    struct wire_next_position next = expect_positions(ask_positions("places", 0, 1, 2, 0), "v1 v2");
    assert_int_equal(next.next_offset, 3);
    assert_int_equal(next.end_offset, 5);
    next = expect_positions(ask_positions("places", 0, 5, 2, 0), "");
    assert_int_equal(next.next_offset, 5);
    client_expect_error(&client, ask_positions("places", 0, 6, 2, 0), WIRE_CODE_BAD_FRAME);
    client_expect_error(&client, ask_positions("places", 1, 0, 2, 0), WIRE_CODE_TOPIC_MISSING);
}

static void fetch_waits_for_a_first_record(void **state)
{
    struct client producer;
    client_create_topic(&client, "wait", 1);
    uint64_t number = ask_positions("wait", 0, 0, 9, 20000);
    client_open(&producer, *state);
    client_greet(&producer);
    client_produce(&producer, "wait", "", "late");
    expect_positions(number, "late");
    client_free(&producer);
}

static void reader_that_leaves_while_it_waits_is_forgotten(void **state)
{
    struct front_end *front = *state;
    client_create_topic(&client, "left", 1);
    ask_positions("left", 0, 0, 9, 20000);
    assert_int_equal(native_stats(front->native)->requests_in_flight, 1);
    client_reconnect(&client);
    client_produce(&client, "left", "", "v");
    assert_int_equal(native_stats(front->native)->requests_in_flight, 0);
}

/* ---- offsets ---- */

static void bounds_of_every_partition_are_listed(void **state)
{
    (void)state;
    client_create_topic(&client, "bounds", 2);
    struct wire_ack ack = client_produce(&client, "bounds", "k", "v");
    struct wire_list_offsets list = {.topic = wire_text("bounds")};
    uint64_t number = client_ask(&client, WIRE_LIST_OFFSETS, &list);
    union wire_message message = client_expect(&client, number, WIRE_OFFSETS);
    assert_int_equal(message.offsets.partitions.count, 2);
    assert_false(message.offsets.has_times);
    struct wire_cursor cursor;
    struct wire_partition_offsets item;
    wire_cursor_init(&cursor, &message.offsets.partitions, &wire_shape_partition_offsets);
    while (wire_cursor_next(&cursor, &item)) {
        int64_t end = item.partition == ack.partition ? 1 : 0;
        assert_int_equal(item.earliest, 0);
        assert_int_equal(item.latest, end);
        assert_int_equal(item.high_watermark, end);
        assert_int_equal(item.flags, 7);
    }
}

static void offsets_for_a_time_are_found(void **state)
{
    (void)state;
    client_create_topic(&client, "times", 1);
    client_produce(&client, "times", "", "v");
    struct wire_list_offsets list = {
        .topic = wire_text("times"), .has_mode = true, .mode = 1, .timestamp_ms = 1};
    uint64_t number = client_ask(&client, WIRE_LIST_OFFSETS, &list);
    union wire_message message = client_expect(&client, number, WIRE_OFFSETS);
    struct wire_cursor cursor;
    struct wire_time_offset item;
    wire_cursor_init(&cursor, &message.offsets.times, &wire_shape_time_offset);
    assert_true(wire_cursor_next(&cursor, &item));
    assert_int_equal(item.offset, 0);
    assert_int_equal(item.flags, WIRE_TIME_FOUND);
    list.timestamp_ms = INT64_MAX / 2;
    number = client_ask(&client, WIRE_LIST_OFFSETS, &list);
    message = client_expect(&client, number, WIRE_OFFSETS);
    wire_cursor_init(&cursor, &message.offsets.times, &wire_shape_time_offset);
    assert_true(wire_cursor_next(&cursor, &item));
    assert_int_equal(item.offset, 1);
    assert_int_equal(item.flags, 0);
    list.mode = 2;
    client_expect_error(&client, client_ask(&client, WIRE_LIST_OFFSETS, &list),
                        WIRE_CODE_BAD_FRAME);
}

/* ---- the group ---- */

static void status_is_json(void **state)
{
    (void)state;
    union wire_message message =
        client_expect(&client, client_ask(&client, WIRE_STATUS, NULL), WIRE_STATUS_REPLY);
    assert_true(message.text.text.bytes > 2);
    assert_int_equal(message.text.text.data[0], '{');
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, greet, leave)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(created_topic_is_listed_and_described),
        TEST(refused_topics_have_their_codes),
        TEST(topic_grows_but_does_not_shrink),
        TEST(native_setting_is_shown_under_both_names),
        TEST(unknown_setting_is_refused),
        TEST(deleted_topic_is_gone),
        TEST(offsets_of_a_partition_are_dense),
        TEST(key_decides_the_partition),
        TEST(produce_without_topic_or_codec_is_refused),
        TEST(batch_is_acknowledged_record_by_record),
        TEST(ordered_batches_behind_a_refused_one_are_refused),
        TEST(order_is_a_matter_of_one_topic_and_of_those_who_ask_for_it),
        TEST(ordered_batches_are_forgotten_with_the_connection),
        TEST(client_may_say_where_records_without_key_go),
        TEST(group_reads_on_where_it_left_off),
        TEST(delivery_without_a_further_fetch_is_not_committed),
        TEST(compressed_batch_is_read_in_pieces),
        TEST(fetch_without_batching_sends_record_frames),
        TEST(connection_is_bound_to_its_group),
        TEST(fetch_reads_the_named_topic_only),
        TEST(commit_rewinds_the_session),
        TEST(commit_is_checked),
        TEST(positions_need_no_group_and_tell_where_to_go_on),
        TEST(fetch_waits_for_a_first_record),
        TEST(reader_that_leaves_while_it_waits_is_forgotten),
        TEST(bounds_of_every_partition_are_listed),
        TEST(offsets_for_a_time_are_found),
        TEST(status_is_json),
    };
    return cmocka_run_group_tests(tests, front_end_set_up, front_end_tear_down);
}
