#include "base/failpoint.h"
#include "base/mutant.h"
#include "base/random.h"
#include "lib/broker_rig.h"

static int setup(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    rig_init(rig);
    rig_start(rig);
    rig_follow(rig, 2, 1);
    *state = rig;
    return 0;
}

static struct topic *find(struct rig *rig, const char *name)
{
    return catalog_find(rig->broker, name, strlen(name));
}

static struct uuid uid_of(uint64_t seed)
{
    struct random random;
    random_seed(&random, seed);
    return uuid_random(&random);
}

/* A leader's manifest in the making. */
struct manifest {
    struct manifest_version version;
    struct topic_config config;
    struct manifest_topic topics[4];
    uint32_t topic_count;
    struct manifest_tombstone tombstones[4];
    uint32_t tombstone_count;
};

static void add_topic(struct manifest *manifest, const char *name, uint64_t uid,
                      uint32_t partitions)
{
    manifest->topics[manifest->topic_count++] = (struct manifest_topic){.name = name,
                                                                        .uid = uid_of(uid),
                                                                        .partitions = partitions,
                                                                        .config = &manifest->config,
                                                                        .since = {1, 1}};
}

static void add_tombstone(struct manifest *manifest, const char *name, uint64_t uid, int64_t n)
{
    manifest->tombstones[manifest->tombstone_count++] =
        (struct manifest_tombstone){.uid = uid_of(uid), .name = name, .at = {1, n}};
}

static void begin_apply(struct rig *rig, struct manifest *manifest, int64_t n,
                        struct rig_answer *answer)
{
    *answer = (struct rig_answer){0};
    manifest->version = (struct manifest_version){1, n};
    catalog_apply(rig->broker, manifest->version, manifest->topics, manifest->topic_count,
                  manifest->tombstones, manifest->tombstone_count, rig_admin_done, answer);
}

static void apply(struct rig *rig, struct manifest *manifest, int64_t n)
{
    struct rig_answer answer;
    begin_apply(rig, manifest, n, &answer);
    stepped_loop_settle(&rig->fake);
    assert_true(answer.called);
    assert_int_equal(answer.status, STATUS_OK);
    assert_int_equal(
        manifest_version_compare(catalog_durable_version(rig->broker), manifest->version), 0);
}

/* Records as a leader would send them. */
static void follow(struct rig *rig, const char *topic, uint32_t index, int64_t base_offset,
                   uint32_t count, int32_t epoch)
{
    struct error error;
    struct shared_bytes *batch = rig_batch(rig, "v", count, -1, -1);
    batch_set_base_offset(batch->data, base_offset);
    batch_set_leader_epoch(batch->data, epoch);
    assert_int_equal(
        partition_follow_append(rig_partition(rig, topic, index), batch, false, &error), STATUS_OK);
    shared_bytes_unref(batch);
    stepped_loop_settle(&rig->fake);
}

static void topics_are_created_grown_and_configured(void **state)
{
    struct rig *rig = *state;
    struct error error;
    struct manifest manifest = {0};
    add_topic(&manifest, "a", 1, 1);
    add_topic(&manifest, "b", 2, 2);
    apply(rig, &manifest, 5);
    assert_int_equal(topic_partition_count(find(rig, "b")), 2);
    assert_int_equal(rig->added, 3);
    manifest.topics[0].partitions = 3;
    assert_int_equal(topic_config_set(&manifest.config, "segment.ms", "9", &error), STATUS_OK);
    apply(rig, &manifest, 6);
    assert_int_equal(topic_partition_count(find(rig, "a")), 3);
    assert_int_equal(rig->added, 5);
    assert_string_equal(topic_config_get(topic_config_of(find(rig, "b")), "segment.ms"), "9");
    rig_restart(rig);
    assert_int_equal(topic_partition_count(find(rig, "a")), 3);
    assert_string_equal(topic_config_get(topic_config_of(find(rig, "b")), "segment.ms"), "9");
    assert_int_equal(catalog_version(rig->broker).n, 6);
    topic_config_deinit(&manifest.config);
}

static void nothing_is_reported_before_it_is_synced(void **state)
{
    struct rig *rig = *state;
    struct manifest manifest = {0};
    struct rig_answer answer;
    add_topic(&manifest, "a", 1, 1);
    begin_apply(rig, &manifest, 5, &answer);
    stepped_loop_run(&rig->fake);
    assert_false(answer.called);
    assert_int_equal(catalog_durable_version(rig->broker).epoch, -1);
    assert_null(find(rig, "a"));
}

static void applying_twice_changes_nothing(void **state)
{
    struct rig *rig = *state;
    struct manifest manifest = {0};
    add_topic(&manifest, "a", 1, 1);
    apply(rig, &manifest, 5);
    const struct topic *before = find(rig, "a");
    apply(rig, &manifest, 5);
    assert_ptr_equal(find(rig, "a"), before);
    assert_int_equal(rig->added, 1);
    assert_int_equal(rig->removed, 0);
    assert_int_equal(rig->alarms, 0);
}

static void a_topic_in_neither_list_is_set_aside_with_an_alarm(void **state)
{
    struct rig *rig = *state;
    struct manifest manifest = {0}, without = {0};
    char path[200], uid[UUID_TEXT_BYTES];
    struct uuid gone = uid_of(1);
    add_topic(&manifest, "a", 1, 1);
    apply(rig, &manifest, 5);
    follow(rig, "a", 0, 0, 3, 1);
    apply(rig, &without, 6);
    assert_null(find(rig, "a"));
    assert_int_equal(rig->alarms, 1);
    assert_string_equal(rig->last_alarm, "topic_set_aside");
    assert_false(rig_has_path(rig, "topics/a"));
    snprintf(path, sizeof(path), "quarantine/a.%s/topic.json", uuid_format(&gone, uid));
    assert_true(rig_has_path(rig, path));
    snprintf(path, sizeof(path), "quarantine/a.%s/0/00000000000000000000.log", uid);
    assert_true(rig_has_path(rig, path));
    rig_restart(rig);
    assert_null(find(rig, "a"));
    assert_false(catalog_damaged(rig->broker));
}

static void missing_is_never_dropped_but_by_the_mutant(void **state)
{
#ifdef MOONMQ_MUTANTS
    struct rig *rig = *state;
    struct manifest manifest = {0}, without = {0};
    add_topic(&manifest, "a", 1, 1);
    apply(rig, &manifest, 5);
    follow(rig, "a", 0, 0, 3, 1);
    mutant_set(12);
    apply(rig, &without, 6);
    catalog_committed(rig->broker, (struct manifest_version){1, 6});
    stepped_loop_settle(&rig->fake);
    mutant_set(0);
    assert_false(rig_has_path(rig, "topics/a"));
    assert_false(rig_has_path(rig, "quarantine"));
#else
    (void)state;
#endif
}

static void another_uid_under_the_name_sets_the_old_one_aside(void **state)
{
    struct rig *rig = *state;
    struct manifest manifest = {0}, other = {0};
    struct uuid uid = uid_of(9);
    add_topic(&manifest, "a", 1, 1);
    apply(rig, &manifest, 5);
    follow(rig, "a", 0, 0, 3, 1);
    add_topic(&other, "a", 9, 1);
    apply(rig, &other, 6);
    assert_true(uuid_equal(topic_uid(find(rig, "a")), &uid));
    assert_int_equal(partition_log_end(rig_partition(rig, "a", 0)), 0);
    assert_int_equal(rig->alarms, 1);
    follow(rig, "a", 0, 0, 1, 1);
    rig_restart(rig);
    assert_true(uuid_equal(topic_uid(find(rig, "a")), &uid));
    assert_int_equal(partition_log_end(rig_partition(rig, "a", 0)), 1);
}

static void a_tombstoned_one_is_hidden_and_goes_when_committed(void **state)
{
    struct rig *rig = *state;
    struct manifest manifest = {0}, dead = {0};
    add_topic(&manifest, "a", 1, 1);
    apply(rig, &manifest, 5);
    follow(rig, "a", 0, 0, 3, 1);
    add_tombstone(&dead, "a", 1, 6);
    apply(rig, &dead, 6);
    assert_null(find(rig, "a"));
    assert_int_equal(rig->removed, 1);
    assert_int_equal(rig->alarms, 0);
    assert_true(rig_has_path(rig, "topics/a/topic.json"));
    catalog_committed(rig->broker, (struct manifest_version){1, 5});
    stepped_loop_settle(&rig->fake);
    assert_true(rig_has_path(rig, "topics/a/topic.json"));
    catalog_committed(rig->broker, (struct manifest_version){1, 6});
    stepped_loop_settle(&rig->fake);
    assert_false(rig_has_path(rig, "topics/a"));
    assert_false(rig_has_path(rig, "quarantine"));
}

/* A deposed leader hid it; the new one never heard of that. */
static void a_hidden_one_that_lives_on_at_the_leader_shows_again_whole(void **state)
{
    struct rig *rig = *state;
    struct manifest manifest = {0}, dead = {0};
    add_topic(&manifest, "a", 1, 1);
    apply(rig, &manifest, 5);
    follow(rig, "a", 0, 0, 3, 1);
    add_tombstone(&dead, "a", 1, 6);
    apply(rig, &dead, 6);
    apply(rig, &manifest, 7);
    assert_non_null(find(rig, "a"));
    assert_int_equal(partition_log_end(rig_partition(rig, "a", 0)), 3);
    assert_int_equal(rig->added, 2);
    assert_int_equal(catalog_tombstone_count(rig->broker), 0);
    follow(rig, "a", 0, 3, 1, 1);
}

static void a_tombstoned_one_whose_name_is_taken_goes_aside_quietly(void **state)
{
    struct rig *rig = *state;
    struct manifest manifest = {0}, next = {0};
    add_topic(&manifest, "a", 1, 1);
    apply(rig, &manifest, 5);
    follow(rig, "a", 0, 0, 3, 1);
    add_topic(&next, "a", 2, 1);
    add_tombstone(&next, "a", 1, 6);
    apply(rig, &next, 7);
    assert_int_equal(rig->alarms, 0);
    assert_int_equal(partition_log_end(rig_partition(rig, "a", 0)), 0);
}

static void partitions_unknown_to_the_leader_go_aside(void **state)
{
    struct rig *rig = *state;
    struct manifest manifest = {0};
    add_topic(&manifest, "a", 1, 3);
    apply(rig, &manifest, 5);
    follow(rig, "a", 2, 0, 1, 1);
    manifest.topics[0].partitions = 2;
    apply(rig, &manifest, 6);
    assert_int_equal(topic_partition_count(find(rig, "a")), 2);
    assert_int_equal(rig->alarms, 1);
    manifest.topics[0].partitions = 3;
    apply(rig, &manifest, 7);
    assert_int_equal(partition_log_end(rig_partition(rig, "a", 2)), 0);
}

static void what_was_set_aside_goes_after_a_day(void **state)
{
    struct rig *rig = *state;
    struct manifest manifest = {0}, without = {0};
    add_topic(&manifest, "a", 1, 1);
    apply(rig, &manifest, 5);
    apply(rig, &without, 6);
    char path[200], uid[UUID_TEXT_BYTES];
    struct uuid gone = uid_of(1);
    snprintf(path, sizeof(path), "quarantine/a.%s", uuid_format(&gone, uid));
    stepped_loop_advance(&rig->fake, 3700 * 1000000LL);
    assert_true(rig_has_path(rig, path));
    rig->fake.wall_ms += 90000000;
    stepped_loop_advance(&rig->fake, 3700 * 1000000LL);
    assert_false(rig_has_path(rig, path));
}

#if defined(MOONMQ_FAILPOINTS) || defined(MOONMQ_MUTANTS)
struct failing {
    const char *name;
    bool once;
};

static bool fail_named(void *context, const char *name)
{
    struct failing *failing = context;
    if (failing->once || strcmp(name, failing->name) != 0) return false;
    failing->once = true;
    return true;
}

/* Whatever step fails, the next try, in the same process or after a restart, ends where it should.
 */
static void a_failed_step_is_made_up_for(void **state)
{
    const char *names[] = {"topic.create", "manifest.persist", "topic.drop"};
    struct rig *rig = *state;
    for (int i = 0; i < 6; i++) {
        struct failing failing = {.name = names[i / 2]};
        struct manifest manifest = {0}, next = {0};
        struct rig_answer answer;
        rig_deinit(rig);
        rig_init(rig);
        rig_start(rig);
        rig_follow(rig, 2, 1);
        add_topic(&manifest, "a", 1, 1);
        add_topic(&manifest, "b", 2, 1);
        apply(rig, &manifest, 5);
        follow(rig, "b", 0, 0, 2, 1);
        add_topic(&next, "a", 3, 1);
        add_topic(&next, "b", 2, 2);
        add_topic(&next, "c", 4, 1);
        failpoint_set_handler(fail_named, &failing);
        begin_apply(rig, &next, 6, &answer);
        stepped_loop_settle(&rig->fake);
        failpoint_set_handler(NULL, NULL);
        assert_true(failing.once);
        assert_int_equal(answer.status, STATUS_IO);
        assert_int_equal(catalog_durable_version(rig->broker).n, 5);
        if (i % 2 == 1) {
            rig_restart(rig);
            rig_follow(rig, 2, 1);
        }
        apply(rig, &next, 6);
        struct uuid uid = uid_of(3);
        assert_true(uuid_equal(topic_uid(find(rig, "a")), &uid));
        assert_int_equal(partition_log_end(rig_partition(rig, "b", 0)), 2);
        assert_non_null(find(rig, "c"));
        assert_false(catalog_damaged(rig->broker));
        rig_restart(rig);
        assert_int_equal(catalog_topic_count(rig->broker), 3);
        assert_int_equal(catalog_version(rig->broker).n, 6);
        assert_false(catalog_damaged(rig->broker));
    }
}
#endif

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(topics_are_created_grown_and_configured),
        TEST(nothing_is_reported_before_it_is_synced),
        TEST(applying_twice_changes_nothing),
        TEST(a_topic_in_neither_list_is_set_aside_with_an_alarm),
        TEST(missing_is_never_dropped_but_by_the_mutant),
        TEST(another_uid_under_the_name_sets_the_old_one_aside),
        TEST(a_tombstoned_one_is_hidden_and_goes_when_committed),
        TEST(a_hidden_one_that_lives_on_at_the_leader_shows_again_whole),
        TEST(a_tombstoned_one_whose_name_is_taken_goes_aside_quietly),
        TEST(partitions_unknown_to_the_leader_go_aside),
        TEST(what_was_set_aside_goes_after_a_day),
#if defined(MOONMQ_FAILPOINTS) || defined(MOONMQ_MUTANTS)
        TEST(a_failed_step_is_made_up_for),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
