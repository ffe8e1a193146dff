#include <fcntl.h>

#include "lib/broker_rig.h"

static int setup(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    rig_init(rig);
    rig_start(rig);
    *state = rig;
    return 0;
}

static struct topic *find(struct rig *rig, const char *name)
{
    return catalog_find(rig->broker, name, strlen(name));
}

/* Changes one byte in the midst of a file. */
static void damage(struct rig *rig, const char *relative)
{
    char path[300], byte;
    struct stat info;
    snprintf(path, sizeof(path), "%s/%s", rig->directory, relative);
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &info), 0);
    assert_int_equal(pread(fd, &byte, 1, info.st_size / 2), 1);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, info.st_size / 2), 1);
    close(fd);
}

static void lose(struct rig *rig, const char *relative)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/%s", rig->directory, relative);
    assert_int_equal(unlink(path), 0);
}

static void offsets_answered(void *context, struct offsets_request *request)
{
    ((struct rig_answer *)context)->status = request->status;
}

static void records_watermarks_and_producers_survive_a_restart(void **state)
{
    struct rig *rig = *state;
    struct rig_produce sent, retry;
    rig_lead(rig, 1);
    rig_create(rig, "orders", 2);
    struct partition *partition = rig_partition(rig, "orders", 1);
    rig_send(rig, &sent, partition, ACKS_ALL, rig_batch(rig, "v", 3, 7, 0));
    stepped_loop_settle(&rig->fake);
    assert_int_equal(sent.produce.status, STATUS_OK);
    uint64_t hash = partition_producers_hash(partition);
    rig_restart(rig);
    partition = rig_partition(rig, "orders", 1);
    assert_int_equal(partition_log_end(partition), 3);
    assert_int_equal(partition_high_watermark(partition), 3);
    assert_true(partition_producers_hash(partition) == hash);
    assert_false(partition_damaged(partition));
    rig_lead(rig, 2);
    rig_send(rig, &retry, partition, ACKS_ALL, rig_batch(rig, "v", 3, 7, 0));
    stepped_loop_settle(&rig->fake);
    assert_true(retry.produce.duplicate);
    assert_int_equal(retry.produce.base_offset, 0);
}

static void the_high_watermark_starts_at_what_is_on_record(void **state)
{
    struct rig *rig = *state;
    struct rig_produce sent;
    rig_lead(rig, 1);
    rig_create(rig, "orders", 1);
    rig_write(rig, "orders", 0, "v", 2);
    rig->hold_high_watermark = true;
    rig_send(rig, &sent, rig_partition(rig, "orders", 0), ACKS_LEADER,
             rig_batch(rig, "v", 3, -1, -1));
    stepped_loop_settle(&rig->fake);
    rig_restart(rig);
    assert_int_equal(partition_log_end(rig_partition(rig, "orders", 0)), 5);
    assert_int_equal(partition_high_watermark(rig_partition(rig, "orders", 0)), 2);
}

static void a_lost_topic_file_is_known_from_the_manifest_but_must_not_lead(void **state)
{
    struct rig *rig = *state;
    rig_lead(rig, 1);
    rig_create(rig, "orders", 2);
    rig_write(rig, "orders", 1, "v", 2);
    struct uuid uid = *topic_uid(find(rig, "orders"));
    rig_restart(rig);
    damage(rig, "topics/orders/topic.json");
    rig_restart(rig);
    assert_true(catalog_damaged(rig->broker));
    assert_true(uuid_equal(topic_uid(find(rig, "orders")), &uid));
    assert_int_equal(partition_log_end(rig_partition(rig, "orders", 1)), 2);
    rig->view.leader_id = 1;
    rig->view.epoch = 2;
    broker_promote(rig->broker, 2, rig_promoted, rig);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(rig->promoted, STATUS_CORRUPT);
}

static void a_leaders_manifest_mends_a_lost_topic_file(void **state)
{
    struct rig *rig = *state;
    struct rig_answer answer = {0};
    rig_lead(rig, 1);
    rig_create(rig, "orders", 1);
    rig_write(rig, "orders", 0, "v", 2);
    struct topic_config config;
    topic_config_init(&config);
    struct manifest_topic topics[3];
    uint32_t count = 0;
    for (struct topic *topic = NULL; (topic = catalog_next(rig->broker, topic)) != NULL;) {
        topics[count++] = (struct manifest_topic){.name = "",
                                                  .uid = *topic_uid(topic),
                                                  .partitions = topic_partition_count(topic),
                                                  .internal = topic_is_internal(topic),
                                                  .config = &config,
                                                  .since = topic_since(topic)};
    }
    topics[0].name = "__consumer_offsets";
    topics[1].name = "__transaction_state";
    topics[2].name = "orders";
    rig_restart(rig);
    damage(rig, "topics/orders/topic.json");
    rig_restart(rig);
    rig_follow(rig, 2, 2);
    catalog_apply(rig->broker, (struct manifest_version){2, 50}, topics, 3, NULL, 0, rig_admin_done,
                  &answer);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(answer.status, STATUS_OK);
    assert_false(catalog_damaged(rig->broker));
    assert_int_equal(partition_log_end(rig_partition(rig, "orders", 0)), 2);
    rig_restart(rig);
    assert_false(catalog_damaged(rig->broker));
}

static void a_lost_manifest_keeps_the_topics_and_must_not_lead(void **state)
{
    struct rig *rig = *state;
    rig_lead(rig, 1);
    rig_create(rig, "orders", 1);
    rig_restart(rig);
    damage(rig, "replication-manifest.json");
    rig_restart(rig);
    assert_true(catalog_damaged(rig->broker));
    assert_non_null(find(rig, "orders"));
}

static void with_both_lost_the_directory_is_kept_and_the_replica_must_not_lead(void **state)
{
    struct rig *rig = *state;
    rig_lead(rig, 1);
    rig_create(rig, "orders", 1);
    rig_write(rig, "orders", 0, "v", 2);
    rig_restart(rig);
    damage(rig, "replication-manifest.json");
    damage(rig, "topics/orders/topic.json");
    rig_restart(rig);
    assert_true(catalog_damaged(rig->broker));
    assert_null(find(rig, "orders"));
    assert_true(rig_has_path(rig, "topics/orders/0/00000000000000000000.log"));
    /* Its leader knows nothing of it either: aside it goes. */
    struct rig_answer answer = {0};
    rig_follow(rig, 2, 2);
    catalog_apply(rig->broker, (struct manifest_version){2, 50}, NULL, 0, NULL, 0, rig_admin_done,
                  &answer);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(answer.status, STATUS_OK);
    assert_false(catalog_damaged(rig->broker));
    assert_false(rig_has_path(rig, "topics/orders"));
    assert_true(rig_has_path(rig, "quarantine/orders.unknown/0/00000000000000000000.log"));
}

static void an_unfinished_creation_is_cleared_away(void **state)
{
    struct rig *rig = *state;
    char path[300];
    snprintf(path, sizeof(path), "%s/topics/half", rig->directory);
    assert_int_equal(mkdir(path, 0755), 0);
    rig_restart(rig);
    assert_false(catalog_damaged(rig->broker));
    assert_false(rig_has_path(rig, "topics/half"));
}

static void a_log_with_a_hole_below_the_high_watermark_is_damaged(void **state)
{
    struct rig *rig = *state;
    rig_lead(rig, 1);
    rig_create(rig, "orders", 1);
    rig_write(rig, "orders", 0, "v", 2);
    rig_restart(rig);
    lose(rig, "topics/orders/0/00000000000000000000.log");
    rig_restart(rig);
    assert_true(partition_damaged(rig_partition(rig, "orders", 0)));
}

static void a_hole_is_damage_though_no_high_watermark_is_on_record(void **state)
{
    struct rig *rig = *state;
    rig_lead(rig, 1);
    rig_create(rig, "orders", 1);
    rig_write(rig, "orders", 0, "v", 2);
    rig_restart(rig);
    rig_crash(rig);
    lose(rig, "topics/orders/0/00000000000000000000.log");
    lose(rig, "replication-offsets.json");
    rig_start(rig);
    struct partition *partition = rig_partition(rig, "orders", 0);
    assert_int_equal(partition_high_watermark(partition), 0);
    assert_int_equal(partition_log_end(partition), 2);
    assert_true(partition_damaged(partition));
}

static void a_log_with_a_hole_judges_no_producers(void **state)
{
    struct rig *rig = *state;
    struct rig_produce sent;
    rig_lead(rig, 1);
    rig_create(rig, "orders", 1);
    rig_write(rig, "orders", 0, "v", 2);
    rig_restart(rig);
    lose(rig, "topics/orders/0/00000000000000000000.log");
    rig_restart(rig);
    rig_lead(rig, 2);
    struct partition *partition = rig_partition(rig, "orders", 0);
    rig_send(rig, &sent, partition, ACKS_ALL, rig_batch(rig, "v", 1, 7, 0));
    assert_int_equal(sent.produce.status, STATUS_STORAGE_ERROR);
}

static void a_log_that_lost_its_end_takes_and_gives_nothing(void **state)
{
    struct rig *rig = *state;
    struct rig_produce sent;
    rig_lead(rig, 1);
    rig_create(rig, "orders", 1);
    rig_write(rig, "orders", 0, "v", 2);
    rig_restart(rig);
    lose(rig, "topics/orders/0/00000000000000000000.log");
    lose(rig, "synced-positions");
    rig_restart(rig);
    rig_lead(rig, 2);
    struct partition *partition = rig_partition(rig, "orders", 0);
    rig_send(rig, &sent, partition, ACKS_ALL, rig_batch(rig, "v", 1, -1, -1));
    assert_int_equal(sent.produce.status, STATUS_STORAGE_ERROR);
    int32_t epoch;
    int64_t end;
    assert_int_equal(broker_epoch_end(rig->broker, partition, -1, 1, &epoch, &end),
                     STATUS_STORAGE_ERROR);
}

static void an_internal_topic_with_a_hole_has_no_state_to_answer_from(void **state)
{
    struct rig *rig = *state;
    rig->settings.internal_partitions = 1;
    rig_restart(rig);
    rig_lead(rig, 1);
    rig_create(rig, "orders", 1);
    struct committed_offset offset = {.topic = rig_text("orders"), .offset = 5};
    struct rig_answer answer = {0};
    struct offsets_request request = {.group = rig_text("group"),
                                      .generation = -1,
                                      .offsets = &offset,
                                      .offset_count = 1,
                                      .done = offsets_answered,
                                      .context = &answer};
    broker_commit_offsets(rig->broker, &request);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(answer.status, STATUS_OK);
    rig_restart(rig);
    lose(rig, "topics/__consumer_offsets/0/00000000000000000000.log");
    rig_restart(rig);
    assert_true(partition_damaged(rig_partition(rig, "__consumer_offsets", 0)));
    rig_lead(rig, 2);
    broker_fetch_offsets(rig->broker, &request);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(answer.status, STATUS_STORAGE_ERROR);
}

static void stopping_while_starting_stops_after_the_start(void **state)
{
    struct rig *rig = *state;
    rig_restart(rig);
    rig_crash(rig);
    rig_open(rig);
    rig->stopped = false;
    broker_stop(rig->broker, rig_stop_done, rig);
    stepped_loop_settle(&rig->fake);
    assert_true(rig->started);
    assert_true(rig->stopped);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(records_watermarks_and_producers_survive_a_restart),
        TEST(the_high_watermark_starts_at_what_is_on_record),
        TEST(a_lost_topic_file_is_known_from_the_manifest_but_must_not_lead),
        TEST(a_leaders_manifest_mends_a_lost_topic_file),
        TEST(a_lost_manifest_keeps_the_topics_and_must_not_lead),
        TEST(with_both_lost_the_directory_is_kept_and_the_replica_must_not_lead),
        TEST(an_unfinished_creation_is_cleared_away),
        TEST(a_log_with_a_hole_below_the_high_watermark_is_damaged),
        TEST(a_hole_is_damage_though_no_high_watermark_is_on_record),
        TEST(a_log_with_a_hole_judges_no_producers),
        TEST(a_log_that_lost_its_end_takes_and_gives_nothing),
        TEST(an_internal_topic_with_a_hole_has_no_state_to_answer_from),
        TEST(stopping_while_starting_stops_after_the_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
