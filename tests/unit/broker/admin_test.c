#include "base/mutant.h"
#include "lib/broker_rig.h"

static int setup(void **state)
{
    *state = rig_new_leader();
    return 0;
}

static struct topic *find(struct rig *rig, const char *name)
{
    return catalog_find(rig->broker, name, strlen(name));
}

typedef void (*call_fn)(struct broker *broker, const struct admin_request *request);

static void call(struct rig *rig, call_fn function, const char *topic, uint32_t partitions,
                 struct rig_answer *answer)
{
    *answer = (struct rig_answer){0};
    function(rig->broker, &(struct admin_request){.topic = topic,
                                                  .partitions = partitions,
                                                  .done = rig_admin_done,
                                                  .context = answer});
}

static void assert_call(struct rig *rig, call_fn function, const char *topic, uint32_t partitions,
                        enum status expected)
{
    struct rig_answer answer;
    call(rig, function, topic, partitions, &answer);
    stepped_loop_settle(&rig->fake);
    assert_true(answer.called);
    assert_int_equal(answer.status, expected);
    if (expected != STATUS_OK) assert_true(answer.error.text[0] != '\0');
}

static void the_first_leader_creates_the_internal_topics(void **state)
{
    struct rig *rig = *state;
    assert_int_equal(catalog_topic_count(rig->broker), 2);
    const struct topic *offsets = find(rig, "__consumer_offsets");
    assert_non_null(offsets);
    assert_true(topic_is_internal(offsets));
    assert_int_equal(topic_partition_count(offsets), rig->settings.internal_partitions);
    assert_true(topic_settings_of(offsets)->compacted);
    assert_int_equal(topic_settings_of(offsets)->log.segment_bytes, 100 * 1024 * 1024);
    assert_non_null(find(rig, "__transaction_state"));
    assert_int_equal(catalog_version(rig->broker).epoch, 1);
}

static void a_created_topic_is_on_disk_before_it_shows(void **state)
{
    struct rig *rig = *state;
    struct rig_answer answer;
    struct manifest_version before = catalog_version(rig->broker);
    call(rig, broker_create_topic, "orders", 3, &answer);
    stepped_loop_run(&rig->fake);
    assert_null(find(rig, "orders"));
    stepped_loop_settle(&rig->fake);
    assert_int_equal(answer.status, STATUS_OK);
    assert_int_equal(topic_partition_count(find(rig, "orders")), 3);
    assert_true(rig_has_path(rig, "topics/orders/topic.json"));
    assert_int_equal(catalog_version(rig->broker).n, before.n + 1);
    assert_int_equal(catalog_durable_version(rig->broker).n, before.n + 1);
}

static void an_answer_waits_until_the_version_is_committed(void **state)
{
    struct rig *rig = *state;
    struct rig_answer answer;
    rig->hold_commit = true;
    call(rig, broker_create_topic, "orders", 1, &answer);
    stepped_loop_settle(&rig->fake);
    assert_non_null(find(rig, "orders"));
    assert_false(answer.called);
    struct manifest_version made = catalog_version(rig->broker);
    broker_manifest_committed(rig->broker, (struct manifest_version){made.epoch, made.n - 1});
    assert_false(answer.called);
    broker_manifest_committed(rig->broker, made);
    assert_true(answer.called);
    assert_int_equal(answer.status, STATUS_OK);
#ifdef MOONMQ_MUTANTS
    mutant_set(33);
    call(rig, broker_create_topic, "early", 1, &answer);
    stepped_loop_settle(&rig->fake);
    mutant_set(0);
    assert_true(answer.called);
#endif
}

static void time_out_and_demotion_leave_the_outcome_open(void **state)
{
    struct rig *rig = *state;
    struct rig_answer late, demoted;
    rig->hold_commit = true;
    call(rig, broker_create_topic, "late", 1, &late);
    stepped_loop_advance(&rig->fake, rig->settings.ack_timeout_us);
    assert_int_equal(late.status, STATUS_TIMEOUT);
    assert_non_null(find(rig, "late"));
    call(rig, broker_create_topic, "demoted", 1, &demoted);
    rig_follow(rig, 2, 2);
    assert_true(demoted.called);
    assert_int_equal(demoted.status, STATUS_NOT_LEADER);
    /* It was on its way to disk: memory follows. */
    stepped_loop_settle(&rig->fake);
    assert_non_null(find(rig, "demoted"));
}

static void bad_requests_are_refused(void **state)
{
    struct rig *rig = *state;
    rig_create(rig, "orders", 2);
    assert_call(rig, broker_create_topic, "orders", 1, STATUS_EXISTS);
    assert_call(rig, broker_create_topic, "a b", 1, STATUS_INVALID_TOPIC);
    assert_call(rig, broker_create_topic, "__mine", 1, STATUS_TOPIC_FORBIDDEN);
    assert_call(rig, broker_create_topic, "wide", 1025, STATUS_INVALID_PARTITIONS);
    assert_call(rig, broker_grow_topic, "orders", 2, STATUS_INVALID_PARTITIONS);
    assert_call(rig, broker_grow_topic, "none", 5, STATUS_UNKNOWN_TOPIC);
    assert_call(rig, broker_delete_topic, "none", 0, STATUS_UNKNOWN_TOPIC);
    assert_call(rig, broker_delete_topic, "__consumer_offsets", 0, STATUS_TOPIC_FORBIDDEN);
    rig->view.in_sync_now = 1;
    assert_call(rig, broker_create_topic, "more", 1, STATUS_NOT_ENOUGH_REPLICAS);
    rig_follow(rig, 2, 2);
    assert_call(rig, broker_create_topic, "more", 1, STATUS_NOT_LEADER);
}

static void validate_only_changes_nothing(void **state)
{
    struct rig *rig = *state;
    struct rig_answer answer = {0};
    struct manifest_version before = catalog_version(rig->broker);
    broker_create_topic(rig->broker, &(struct admin_request){.topic = "orders",
                                                             .validate_only = true,
                                                             .done = rig_admin_done,
                                                             .context = &answer});
    stepped_loop_settle(&rig->fake);
    assert_int_equal(answer.status, STATUS_OK);
    assert_null(find(rig, "orders"));
    assert_int_equal(manifest_version_compare(before, catalog_version(rig->broker)), 0);
}

static void growing_adds_partitions_and_keeps_the_old(void **state)
{
    struct rig *rig = *state;
    rig_create(rig, "orders", 1);
    rig_write(rig, "orders", 0, "v", 1);
    uint32_t added = rig->added;
    assert_call(rig, broker_grow_topic, "orders", 3, STATUS_OK);
    assert_int_equal(topic_partition_count(find(rig, "orders")), 3);
    assert_int_equal(rig->added, added + 2);
    assert_int_equal(partition_log_end(rig_partition(rig, "orders", 0)), 1);
    rig_write(rig, "orders", 2, "v", 1);
}

static void altering_sets_and_replacing_resets(void **state)
{
    struct rig *rig = *state;
    struct rig_answer answer = {0};
    rig_create(rig, "orders", 1);
    struct topic_change change = {"retention.ms", "1000"};
    struct admin_request request = {.topic = "orders",
                                    .changes = &change,
                                    .change_count = 1,
                                    .done = rig_admin_done,
                                    .context = &answer};
    broker_alter_topic(rig->broker, &request);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(answer.status, STATUS_OK);
    assert_int_equal(topic_settings_of(find(rig, "orders"))->log.retention_ms, 1000);
    change = (struct topic_change){"segment.ms", "7"};
    request.replace_all = true;
    answer.called = false;
    broker_alter_topic(rig->broker, &request);
    stepped_loop_settle(&rig->fake);
    const struct topic_config *config = topic_config_of(find(rig, "orders"));
    assert_false(topic_config_is_set(config, "retention.ms"));
    assert_string_equal(topic_config_get(config, "segment.ms"), "7");
    change = (struct topic_change){"segment.ms", "x"};
    answer.called = false;
    broker_alter_topic(rig->broker, &request);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(answer.status, STATUS_INVALID_CONFIG);
    change = (struct topic_change){TOPIC_CONFIG_CLIENT_QUOTAS, ""}; /* the broker's own */
    answer.called = false;
    broker_alter_topic(rig->broker, &request);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(answer.status, STATUS_INVALID_CONFIG);
}

static void a_deleted_topic_is_hidden_at_once_and_its_bytes_go_when_committed(void **state)
{
    struct rig *rig = *state;
    struct rig_answer answer;
    rig_create(rig, "orders", 1);
    rig_write(rig, "orders", 0, "v", 1);
    struct uuid uid = *topic_uid(find(rig, "orders"));
    rig->hold_commit = true;
    uint32_t removed = rig->removed;
    call(rig, broker_delete_topic, "orders", 0, &answer);
    stepped_loop_settle(&rig->fake);
    assert_null(find(rig, "orders"));
    assert_int_equal(rig->removed, removed + 1);
    assert_false(answer.called);
    assert_int_equal(catalog_tombstone_count(rig->broker), 1);
    struct manifest_tombstone tombstone = catalog_tombstone(rig->broker, 0);
    assert_true(uuid_equal(&tombstone.uid, &uid));
    assert_true(rig_has_path(rig, "topics/orders/topic.json"));
    broker_manifest_committed(rig->broker, catalog_version(rig->broker));
    assert_int_equal(answer.status, STATUS_OK);
    stepped_loop_settle(&rig->fake);
    assert_false(rig_has_path(rig, "topics/orders"));
    catalog_forget_tombstones(rig->broker, catalog_version(rig->broker));
    assert_int_equal(catalog_tombstone_count(rig->broker), 0);
}

static void a_tombstone_is_kept_while_its_bytes_are_here(void **state)
{
    struct rig *rig = *state;
    struct rig_answer answer;
    rig_create(rig, "orders", 1);
    rig->hold_commit = true;
    call(rig, broker_delete_topic, "orders", 0, &answer);
    stepped_loop_settle(&rig->fake);
    catalog_forget_tombstones(rig->broker, catalog_version(rig->broker));
    assert_int_equal(catalog_tombstone_count(rig->broker), 1);
}

static void a_topic_created_anew_waits_for_the_old_bytes_to_go_and_has_another_uid(void **state)
{
    struct rig *rig = *state;
    struct rig_answer deleted, created, other;
    rig_create(rig, "orders", 1);
    rig_write(rig, "orders", 0, "v", 2);
    struct uuid uid = *topic_uid(find(rig, "orders"));
    rig->hold_commit = true;
    call(rig, broker_delete_topic, "orders", 0, &deleted);
    call(rig, broker_create_topic, "orders", 1, &created);
    call(rig, broker_create_topic, "other", 1, &other);
    stepped_loop_settle(&rig->fake);
    assert_null(find(rig, "orders"));
    assert_non_null(find(rig, "other"));
    rig->hold_commit = false;
    broker_manifest_committed(rig->broker, catalog_durable_version(rig->broker));
    stepped_loop_settle(&rig->fake);
    assert_int_equal(created.status, STATUS_OK);
    assert_false(uuid_equal(topic_uid(find(rig, "orders")), &uid));
    assert_int_equal(partition_log_end(rig_partition(rig, "orders", 0)), 0);
    rig_write(rig, "orders", 0, "v", 1);
}

static void many_changes_share_a_version(void **state)
{
    struct rig *rig = *state;
    struct rig_answer answers[30];
    char names[30][16];
    struct manifest_version before = catalog_version(rig->broker);
    for (int i = 0; i < 30; i++) {
        snprintf(names[i], sizeof(names[i]), "t%02d", 29 - i);
        call(rig, broker_create_topic, names[i], 1, &answers[i]);
    }
    stepped_loop_settle(&rig->fake);
    for (int i = 0; i < 30; i++)
        assert_int_equal(answers[i].status, STATUS_OK);
    assert_int_equal(catalog_version(rig->broker).n, before.n + 2);
    const struct topic *topic = NULL;
    const char *last = "";
    while ((topic = catalog_next(rig->broker, topic)) != NULL) {
        assert_true(strcmp(last, topic_name(topic)) < 0);
        last = topic_name(topic);
    }
    assert_int_equal(catalog_topic_count(rig->broker), 32);
}

static void changes_survive_a_restart(void **state)
{
    struct rig *rig = *state;
    rig_create(rig, "orders", 2);
    rig_create(rig, "gone", 1);
    assert_call(rig, broker_grow_topic, "orders", 4, STATUS_OK);
    rig->hold_commit = true;
    struct rig_answer answer;
    call(rig, broker_delete_topic, "gone", 0, &answer);
    stepped_loop_settle(&rig->fake);
    struct uuid uid = *topic_uid(find(rig, "orders"));
    struct manifest_version version = catalog_version(rig->broker);
    rig_restart(rig);
    assert_int_equal(manifest_version_compare(catalog_version(rig->broker), version), 0);
    assert_int_equal(topic_partition_count(find(rig, "orders")), 4);
    assert_true(uuid_equal(topic_uid(find(rig, "orders")), &uid));
    assert_null(find(rig, "gone"));
    assert_int_equal(catalog_tombstone_count(rig->broker), 1);
    assert_false(catalog_damaged(rig->broker));
    broker_manifest_committed(rig->broker, version);
    stepped_loop_settle(&rig->fake);
    assert_false(rig_has_path(rig, "topics/gone"));
}

static void a_new_leader_declares_its_catalog_under_its_own_epoch(void **state)
{
    struct rig *rig = *state;
    struct manifest_version before = catalog_version(rig->broker);
    rig_follow(rig, 2, 2);
    rig_lead(rig, 3);
    struct manifest_version after = catalog_version(rig->broker);
    assert_int_equal(after.epoch, 3);
    assert_true(after.n > before.n);
    assert_int_equal(manifest_version_compare(after, catalog_durable_version(rig->broker)), 0);
    assert_int_equal(catalog_topic_count(rig->broker), 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_first_leader_creates_the_internal_topics),
        TEST(a_created_topic_is_on_disk_before_it_shows),
        TEST(an_answer_waits_until_the_version_is_committed),
        TEST(time_out_and_demotion_leave_the_outcome_open),
        TEST(bad_requests_are_refused),
        TEST(validate_only_changes_nothing),
        TEST(growing_adds_partitions_and_keeps_the_old),
        TEST(altering_sets_and_replacing_resets),
        TEST(a_deleted_topic_is_hidden_at_once_and_its_bytes_go_when_committed),
        TEST(a_tombstone_is_kept_while_its_bytes_are_here),
        TEST(a_topic_created_anew_waits_for_the_old_bytes_to_go_and_has_another_uid),
        TEST(many_changes_share_a_version),
        TEST(changes_survive_a_restart),
        TEST(a_new_leader_declares_its_catalog_under_its_own_epoch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
