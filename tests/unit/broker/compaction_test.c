/* compaction_test.c: which partitions are cleaned, when, and that producers are remembered. */
#include "broker/partition_state.h"
#include "lib/broker_rig.h"

#define KEYS 8

static void create_compacted(struct rig *rig, const char *name, const char *ratio)
{
    struct rig_answer answer = {0};
    const struct topic_change changes[] = {{"cleanup.policy", "compact"},
                                           {"segment.ms", "1000"},
                                           {"min.cleanable.dirty.ratio", ratio}};
    broker_create_topic(rig->broker, &(struct admin_request){.topic = name,
                                                             .partitions = 1,
                                                             .changes = changes,
                                                             .change_count = 3,
                                                             .done = rig_admin_done,
                                                             .context = &answer});
    stepped_loop_settle(&rig->fake);
    assert_int_equal(answer.status, STATUS_OK);
}

static int setup(void **state)
{
    struct rig *rig = *state = rig_new_leader();
    create_compacted(rig, "keyed", "0.5");
    return 0;
}

static int teardown(void **state)
{
    stepped_loop_settle(&((struct rig *)*state)->fake);
    rig_deinit(*state);
    free(*state);
    return 0;
}

static enum status write_keyed(struct rig *rig, const char *topic, int key, int value,
                               int64_t producer_id, int32_t sequence)
{
    struct batch_builder builder;
    struct buffer out;
    struct rig_produce sent;
    struct batch_build_options options = BATCH_BUILD_PLAIN;
    char key_text[16], value_text[16];
    snprintf(key_text, sizeof(key_text), "k%d", key);
    snprintf(value_text, sizeof(value_text), "%d", value);
    if (producer_id >= 0) {
        options.producer_id = producer_id;
        options.producer_epoch = 0;
        options.base_sequence = sequence;
    }
    batch_builder_init(&builder);
    buffer_init(&out, 0);
    batch_builder_add(&builder, rig->fake.wall_ms, key < 0 ? (struct slice){0} : rig_text(key_text),
                      rig_text(value_text), 0, (struct slice){0});
    assert_int_equal(batch_builder_finish(&builder, &options, &out, NULL), STATUS_OK);
    enum produce_acks acks = rig->hold_high_watermark ? ACKS_NONE : ACKS_ALL;
    rig_send(rig, &sent, rig_partition(rig, topic, 0), acks,
             shared_bytes_copy(out.data, out.bytes));
    stepped_loop_settle(&rig->fake);
    batch_builder_deinit(&builder);
    buffer_deinit(&out);
    return sent.produce.status;
}

/* What is in the files. */
struct seen {
    int values[KEYS];
    int records, emptied;
};

static bool see_batch(void *context, const uint8_t *data, size_t bytes)
{
    struct seen *seen = context;
    struct record_iterator iterator;
    struct record record;
    assert_int_equal(record_iterator_init(&iterator, data, bytes, 1 << 20, NULL), STATUS_OK);
    seen->emptied += iterator.header.record_count == 0;
    while (record_iterator_next(&iterator, &record, NULL) == STATUS_OK) {
        char value[16] = "";
        memcpy(value, record.value.data, record.value.bytes);
        seen->values[record.key.data[1] - '0'] = atoi(value);
        seen->records++;
    }
    record_iterator_deinit(&iterator);
    return true;
}

static struct seen see(struct rig *rig, const char *topic)
{
    struct seen seen = {0};
    struct log_damage damage;
    struct partition_log *log = partition_log_of(rig_partition(rig, topic, 0));
    assert_int_equal(
        log_store_scan(log, 0, partition_log_end_offset(log), see_batch, &seen, &damage, NULL),
        STATUS_OK);
    return seen;
}

static bool apply_batch(void *context, const uint8_t *data, size_t bytes)
{
    struct batch_header header;
    assert_int_equal(batch_parse(data, bytes, true, &header, NULL), STATUS_OK);
    assert_int_equal(producer_apply(context, &header, NULL, 0, NULL, NULL), STATUS_OK);
    return true;
}

static struct broker_stats stats_of(struct rig *rig)
{
    struct broker_stats stats;
    broker_stats(rig->broker, &stats);
    return stats;
}

static void tick(struct rig *rig, int times)
{
    for (int i = 0; i < times; i++) {
        stepped_loop_advance(&rig->fake, rig->settings.retention_check_us);
        stepped_loop_settle(&rig->fake);
    }
}

static void an_idle_compacted_topic_is_cleaned(void **state)
{
    struct rig *rig = *state;
    for (int i = 0; i < 40; i++) {
        assert_int_equal(write_keyed(rig, "keyed", i % KEYS, i, -1, -1), STATUS_OK);
    }
    assert_int_equal(see(rig, "keyed").records, 40);
    tick(rig, 3);
    struct seen seen = see(rig, "keyed");
    assert_int_equal(seen.records, KEYS);
    for (int i = 0; i < KEYS; i++) {
        assert_int_equal(seen.values[i], 32 + i);
    }
    assert_int_equal(stats_of(rig).compaction_passes, 1);
    assert_int_equal(stats_of(rig).compaction_cleanable_bytes, 0);
    assert_true(stats_of(rig).compaction_bytes_out < stats_of(rig).compaction_bytes_in);
}

static void set(struct rig *rig, const char *topic, const char *key, const char *value)
{
    struct rig_answer answer = {0};
    const struct topic_change change = {key, value};
    broker_alter_topic(rig->broker, &(struct admin_request){.topic = topic,
                                                            .changes = &change,
                                                            .change_count = 1,
                                                            .done = rig_admin_done,
                                                            .context = &answer});
    stepped_loop_settle(&rig->fake);
    assert_int_equal(answer.status, STATUS_OK);
}

static void the_lags_and_the_ratio_of_a_topic_say_when_it_is_cleaned(void **state)
{
    struct rig *rig = *state;
    create_compacted(rig, "safe", "0.01");   /* for an hour */
    create_compacted(rig, "overdue", "1");   /* after a minute, whatever the ratio */
    create_compacted(rig, "unwilling", "1"); /* never by its ratio */
    set(rig, "safe", "min.compaction.lag.ms", "3600000");
    set(rig, "overdue", "max.compaction.lag.ms", "60000");
    static const char *const topics[] = {"safe", "overdue", "unwilling"};
    for (int t = 0; t < 3; t++) {
        for (int i = 0; i < 16; i++)
            assert_int_equal(write_keyed(rig, topics[t], i % KEYS, i, -1, -1), STATUS_OK);
    }
    tick(rig, 6);
    assert_int_equal(see(rig, "safe").records, 16);
    assert_int_equal(see(rig, "overdue").records, KEYS);
    assert_int_equal(see(rig, "unwilling").records, 16);
    tick(rig, 130);
    assert_int_equal(see(rig, "safe").records, KEYS);
    assert_int_equal(see(rig, "unwilling").records, 16);
    set(rig, "unwilling", "min.cleanable.dirty.ratio", "0.5");
    tick(rig, 3);
    assert_int_equal(see(rig, "unwilling").records, KEYS);
}

static void nothing_above_the_high_watermark_is_cleaned(void **state)
{
    struct rig *rig = *state;
    for (int i = 0; i < 8; i++) {
        assert_int_equal(write_keyed(rig, "keyed", 0, i, -1, -1), STATUS_OK);
    }
    rig->hold_high_watermark = true;
    for (int i = 8; i < 16; i++) {
        write_keyed(rig, "keyed", 0, i, -1, -1);
    }
    tick(rig, 3);
    assert_int_equal(see(rig, "keyed").records, 16);
    assert_int_equal(stats_of(rig).compaction_passes, 0);
}

static void what_a_producer_is_known_by_survives_a_rebuild(void **state)
{
    struct rig *rig = *state;
    for (int i = 0; i < 9; i++) {
        assert_int_equal(write_keyed(rig, "keyed", 0, i, 70, i), STATUS_OK);
    }
    for (int i = 0; i < 5; i++) {
        assert_int_equal(write_keyed(rig, "keyed", 0, 100 + i, -1, -1), STATUS_OK);
    }
    uint64_t hash = partition_producers_hash(rig_partition(rig, "keyed", 0));
    tick(rig, 3);
    struct seen seen = see(rig, "keyed");
    assert_int_equal(seen.records, 1);
    assert_int_equal(seen.emptied, 6); /* five of the producer's, and where the epoch began */
    /* Without a snapshot: from the log alone. */
    struct producer_table *table = producer_table_new();
    struct log_damage damage;
    struct partition_log *log = partition_log_of(rig_partition(rig, "keyed", 0));
    assert_int_equal(
        log_store_scan(log, 0, partition_log_end_offset(log), apply_batch, table, &damage, NULL),
        STATUS_OK);
    assert_true(producer_table_hash(table) == hash);
    producer_table_free(table);
    assert_int_equal(write_keyed(rig, "keyed", 0, 8, 70, 8), STATUS_OK);
    assert_int_equal(partition_log_end(rig_partition(rig, "keyed", 0)), 14); /* a duplicate */
}

/* The leader's log start never moves: only a pass makes what was aborted go. */
static void what_was_aborted_is_forgotten_with_its_records(void **state)
{
    struct rig *rig = *state;
    struct partition *partition = rig_partition(rig, "keyed", 0);
    for (int i = 0; i < 10; i++) {
        rig_write_open(rig, partition, 70, 0);
        rig_end(rig, partition, 70, 0, false);
    }
    for (int i = 0; i < 20; i++) {
        assert_int_equal(write_keyed(rig, "keyed", 0, i, -1, -1), STATUS_OK);
    }
    int64_t end = partition_log_end(partition);
    uint64_t hash = partition_producers_hash(partition);
    assert_int_equal(partition_find_aborted(partition, 0, end, NULL, 0), 10);
    tick(rig, 3);
    assert_int_equal(stats_of(rig).compaction_passes, 1);
    assert_int_equal(partition_find_aborted(partition, 0, end, NULL, 0), 0);
    /* Another replica, whose pass is still to come, has the same. */
    assert_true(partition_producers_hash(partition) == hash);
    /* And what is aborted from now on is known. */
    rig_write_open(rig, partition, 70, 0);
    rig_end(rig, partition, 70, 0, false);
    assert_int_equal(partition_find_aborted(partition, 0, end + 2, NULL, 0), 1);
}

static void a_topic_that_ceases_to_be_compacted_is_read_on_gaps_and_all(void **state)
{
    struct rig *rig = *state;
    struct rig_answer answer = {0};
    const struct topic_change changes[] = {{"cleanup.policy", "delete"}};
    for (int i = 0; i < 20; i++) {
        assert_int_equal(write_keyed(rig, "keyed", 0, i, -1, -1), STATUS_OK);
    }
    tick(rig, 3);
    assert_int_equal(see(rig, "keyed").records, 1);
    broker_alter_topic(rig->broker, &(struct admin_request){.topic = "keyed",
                                                            .changes = changes,
                                                            .change_count = 1,
                                                            .replace_all = true,
                                                            .done = rig_admin_done,
                                                            .context = &answer});
    stepped_loop_settle(&rig->fake);
    assert_int_equal(answer.status, STATUS_OK);
    assert_int_equal(see(rig, "keyed").records, 1);
    rig_restart(rig);
    rig_lead(rig, 2);
    assert_int_equal(see(rig, "keyed").records, 1);
    assert_false(partition_damaged(rig_partition(rig, "keyed", 0)));
    assert_int_equal(rig->alarms, 0);
    assert_int_equal(write_keyed(rig, "keyed", -1, 7, -1, -1),
                     STATUS_OK); /* keys are not asked for */
}

static void a_record_without_key_is_refused(void **state)
{
    struct rig *rig = *state;
    assert_int_equal(write_keyed(rig, "keyed", -1, 7, -1, -1), STATUS_INVALID_RECORD);
}

static void a_topic_dropped_under_a_pass_is_gone(void **state)
{
    struct rig *rig = *state;
    struct rig_answer answer = {0};
    for (int i = 0; i < 20; i++) {
        assert_int_equal(write_keyed(rig, "keyed", 0, i, -1, -1), STATUS_OK);
    }
    stepped_loop_advance(&rig->fake, rig->settings.retention_check_us * 2);
    broker_delete_topic(
        rig->broker,
        &(struct admin_request){.topic = "keyed", .done = rig_admin_done, .context = &answer});
    stepped_loop_settle(&rig->fake);
    assert_int_equal(answer.status, STATUS_OK);
    tick(rig, 2);
    assert_false(rig_has_path(rig, "topics/keyed/0"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_idle_compacted_topic_is_cleaned, setup, teardown),
        cmocka_unit_test_setup_teardown(the_lags_and_the_ratio_of_a_topic_say_when_it_is_cleaned,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_above_the_high_watermark_is_cleaned, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_a_producer_is_known_by_survives_a_rebuild, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_was_aborted_is_forgotten_with_its_records, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_topic_that_ceases_to_be_compacted_is_read_on_gaps_and_all,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_record_without_key_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_topic_dropped_under_a_pass_is_gone, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
