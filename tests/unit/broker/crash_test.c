/* A power cut at every single step of a change, and what the next start makes of it. */
#include "base/random.h"
#include "lib/broker_rig.h"
#include "lib/memory_disk.h"

struct world {
    struct memory_disk disk;
    struct rig rig;
};

static void world_init(struct world *world)
{
    memory_disk_init(&world->disk);
    struct error error;
    assert_int_equal(file_make_directory(&world->disk.fs, "/data", &error), STATUS_OK);
    assert_int_equal(file_sync_directory(&world->disk.fs, "/", &error), STATUS_OK);
    rig_init_on(&world->rig, &world->disk.fs, "/data");
    world->rig.settings.internal_partitions = 1;
    rig_start(&world->rig);
}

static void world_deinit(struct world *world)
{
    rig_crash(&world->rig);
    memory_disk_deinit(&world->disk);
}

/* From the k-th operation on everything fails; then what was not synced is gone. True: it came to
 * that. */
static bool power_cut_at(struct world *world, uint64_t k, void (*change)(struct world *world))
{
    uint64_t before = world->disk.operations;
    world->disk.fail_at = before + k;
    world->disk.fail_with = STATUS_IO;
    world->disk.fail_for_ever = true;
    change(world);
    stepped_loop_settle(&world->rig.fake);
    bool cut = world->disk.operations >= before + k;
    rig_crash(&world->rig);
    world->disk.fail_at = 0;
    memory_disk_power_cut(&world->disk);
    world->rig.view.leader_id = -1;
    world->rig.view.serving = false;
    rig_start(&world->rig);
    return cut;
}

static struct topic *find(struct world *world, const char *name)
{
    return catalog_find(world->rig.broker, name, strlen(name));
}

/* ---- a follower's apply ---- */

static struct uuid uid_of(uint64_t seed)
{
    struct random random;
    random_seed(&random, seed);
    return uuid_random(&random);
}

static void ignore(void *context, enum status status, const struct error *error)
{
    (void)error;
    if (context != NULL) *(enum status *)context = status;
}

static void apply_first(struct world *world)
{
    struct topic_config config = {0};
    const struct manifest_topic topics[] = {
        {.name = "a", .uid = uid_of(1), .partitions = 1, .config = &config, .since = {1, 1}},
        {.name = "b", .uid = uid_of(2), .partitions = 1, .config = &config, .since = {1, 1}},
        {.name = "d", .uid = uid_of(4), .partitions = 1, .config = &config, .since = {1, 1}},
    };
    catalog_apply(world->rig.broker, (struct manifest_version){1, 5}, topics, 3, NULL, 0, ignore,
                  NULL);
}

/* a is another topic now, b grew, c is new, d was deleted. */
static void apply_second_to(struct world *world, enum status *status)
{
    struct topic_config config = {0};
    const struct manifest_topic topics[] = {
        {.name = "a", .uid = uid_of(11), .partitions = 1, .config = &config, .since = {1, 6}},
        {.name = "b", .uid = uid_of(2), .partitions = 2, .config = &config, .since = {1, 6}},
        {.name = "c", .uid = uid_of(3), .partitions = 1, .config = &config, .since = {1, 6}},
    };
    const struct manifest_tombstone tombstones[] = {
        {.uid = uid_of(1), .name = "a", .at = {1, 6}},
        {.uid = uid_of(4), .name = "d", .at = {1, 6}},
    };
    catalog_apply(world->rig.broker, (struct manifest_version){1, 6}, topics, 3, tombstones, 2,
                  ignore, status);
    catalog_committed(world->rig.broker, (struct manifest_version){1, 6});
}

static void apply_second(struct world *world)
{
    apply_second_to(world, NULL);
}

static void follow(struct world *world, const char *topic, uint32_t count)
{
    struct rig *rig = &world->rig;
    struct error error;
    struct shared_bytes *batch = rig_batch(rig, "v", count, -1, -1);
    struct partition *partition = rig_partition(rig, topic, 0);
    batch_set_base_offset(batch->data, partition_log_end(partition));
    batch_set_leader_epoch(batch->data, 1);
    assert_int_equal(partition_follow_append(partition, batch, false, &error), STATUS_OK);
    shared_bytes_unref(batch);
    stepped_loop_settle(&rig->fake);
}

static void assert_second(struct world *world)
{
    struct uuid uid = uid_of(11);
    assert_int_equal(catalog_topic_count(world->rig.broker), 3);
    assert_true(uuid_equal(topic_uid(find(world, "a")), &uid));
    assert_int_equal(partition_log_end(rig_partition(&world->rig, "a", 0)), 0);
    assert_int_equal(partition_log_end(rig_partition(&world->rig, "b", 0)), 2);
    assert_int_equal(topic_partition_count(find(world, "b")), 2);
    assert_non_null(find(world, "c"));
    assert_false(catalog_damaged(world->rig.broker));
    assert_int_equal(catalog_durable_version(world->rig.broker).n, 6);
}

static void a_follower_cut_off_anywhere_in_an_apply_ends_where_the_leader_is(void **state)
{
    (void)state;
    bool cut = true;
    for (uint64_t k = 1; cut; k++) {
        struct world *world = calloc(1, sizeof(*world));
        world_init(world);
        rig_follow(&world->rig, 2, 1);
        apply_first(world);
        stepped_loop_settle(&world->rig.fake);
        follow(world, "a", 1);
        follow(world, "b", 2);
        follow(world, "d", 1);
        cut = power_cut_at(world, k, apply_second);
        assert_int_equal(partition_log_end(rig_partition(&world->rig, "b", 0)), 2);
        rig_follow(&world->rig, 2, 1);
        enum status status = STATUS_CANCELLED;
        apply_second_to(world, &status);
        stepped_loop_settle(&world->rig.fake);
        assert_int_equal(status, STATUS_OK);
        assert_second(world);
        assert_false(rig_has_path(&world->rig, "topics/d"));
        rig_restart(&world->rig);
        assert_second(world);
        world_deinit(world);
        free(world);
    }
}

/* ---- a leader's changes ---- */

static struct rig_answer leader_answers[3];

static void change_topics(struct world *world)
{
    struct rig *rig = &world->rig;
    memset(leader_answers, 0, sizeof(leader_answers));
    const struct admin_request delete_old = {
        .topic = "a", .done = rig_admin_done, .context = &leader_answers[0]};
    const struct admin_request create_new = {
        .topic = "a", .partitions = 2, .done = rig_admin_done, .context = &leader_answers[1]};
    const struct admin_request grow = {
        .topic = "b", .partitions = 3, .done = rig_admin_done, .context = &leader_answers[2]};
    broker_delete_topic(rig->broker, &delete_old);
    broker_create_topic(rig->broker, &create_new);
    broker_grow_topic(rig->broker, &grow);
}

/* What was answered OK stands; what was not may or may not. */
static void assert_leader_changes(struct world *world, const struct uuid *old_uid)
{
    const struct topic *a = find(world, "a"), *b = find(world, "b");
    assert_false(catalog_damaged(world->rig.broker));
    assert_non_null(b);
    assert_int_equal(partition_log_end(rig_partition(&world->rig, "b", 0)), 2);
    if (leader_answers[0].called && leader_answers[0].status == STATUS_OK) {
        assert_true(a == NULL || !uuid_equal(topic_uid(a), old_uid));
    }
    if (leader_answers[1].called && leader_answers[1].status == STATUS_OK) {
        assert_non_null(a);
        assert_int_equal(topic_partition_count(a), 2);
    }
    if (leader_answers[2].called && leader_answers[2].status == STATUS_OK) {
        assert_int_equal(topic_partition_count(b), 3);
    }
    if (a != NULL && uuid_equal(topic_uid(a), old_uid)) {
        assert_int_equal(partition_log_end(rig_partition(&world->rig, "a", 0)), 1);
    }
}

static void a_leader_cut_off_anywhere_in_its_changes_keeps_what_it_answered(void **state)
{
    (void)state;
    bool cut = true;
    for (uint64_t k = 1; cut; k++) {
        struct world *world = calloc(1, sizeof(*world));
        world_init(world);
        rig_lead(&world->rig, 1);
        rig_create(&world->rig, "a", 1);
        rig_create(&world->rig, "b", 1);
        rig_write(&world->rig, "a", 0, "v", 1);
        rig_write(&world->rig, "b", 0, "v", 2);
        struct uuid old_uid = *topic_uid(find(world, "a"));
        cut = power_cut_at(world, k, change_topics);
        assert_leader_changes(world, &old_uid);
        rig_lead(&world->rig, 2);
        assert_leader_changes(world, &old_uid);
        rig_create(&world->rig, "new", 1);
        rig_write(&world->rig, "new", 0, "v", 1);
        rig_write(&world->rig, "b", 0, "v", 1);
        world_deinit(world);
        free(world);
    }
}

static void first_leadership(struct world *world)
{
    struct rig *rig = &world->rig;
    rig->view.leader_id = 1;
    rig->view.epoch = 1;
    broker_view_changed(rig->broker);
    broker_promote(rig->broker, 1, rig_promoted, rig);
}

static void a_first_leader_cut_off_anywhere_can_be_the_first_again(void **state)
{
    (void)state;
    bool cut = true;
    for (uint64_t k = 1; cut; k++) {
        struct world *world = calloc(1, sizeof(*world));
        world_init(world);
        cut = power_cut_at(world, k, first_leadership);
        assert_false(catalog_damaged(world->rig.broker));
        rig_lead(&world->rig, 2);
        assert_int_equal(catalog_topic_count(world->rig.broker), 2);
        world_deinit(world);
        free(world);
    }
}

/* ---- dropping the object with its own jobs in flight ---- */

static void dropping_the_broker_with_a_job_in_flight_leaks_nothing(void **state)
{
    (void)state;
    struct world *world = calloc(1, sizeof(*world));
    struct rig_answer answer = {0};
    world_init(world);
    rig_lead(&world->rig, 1);
    rig_create(&world->rig, "a", 1);
    stepped_loop_settle(&world->rig.fake);
    broker_create_topic(
        world->rig.broker,
        &(struct admin_request){.topic = "b", .done = rig_admin_done, .context = &answer});
    assert_true(world->rig.fake.job_count > 0);
    rig_crash(&world->rig);
    world->rig.view.leader_id = -1;
    rig_open(&world->rig);
    assert_int_equal(world->rig.fake.job_count, 1);
    world_deinit(world);
    free(world);
    assert_false(answer.called);
}

/* ---- a full disk ---- */

static void a_resumed_copy_knows_what_its_producers_wrote_and_what_not(void **state)
{
    (void)state;
    struct world world;
    struct rig_produce first, lost, retry;
    world_init(&world);
    struct rig *rig = &world.rig;
    rig_lead(rig, 1);
    rig_create(rig, "orders", 1);
    struct partition *partition = rig_partition(rig, "orders", 0);
    rig_send(rig, &first, partition, ACKS_ALL, rig_batch(rig, "a", 2, 7, 0));
    stepped_loop_settle(&rig->fake);
    assert_int_equal(first.produce.status, STATUS_OK);
    world.disk.fail_at = world.disk.operations + 1;
    world.disk.fail_with = STATUS_NO_SPACE;
    rig_send(rig, &lost, partition, ACKS_ALL, rig_batch(rig, "b", 3, 7, 2));
    stepped_loop_settle(&rig->fake);
    world.disk.fail_at = 0;
    assert_int_equal(lost.produce.status, STATUS_STORAGE_ERROR);
    assert_true(partition_damaged(partition));
    partition_resume(partition);
    stepped_loop_settle(&rig->fake);
    assert_false(partition_damaged(partition));
    assert_int_equal(partition_log_end(partition), 2);
    /* Neither taken for there already, nor for out of order. */
    rig_send(rig, &retry, partition, ACKS_ALL, rig_batch(rig, "b", 3, 7, 2));
    stepped_loop_settle(&rig->fake);
    assert_int_equal(retry.produce.status, STATUS_OK);
    assert_false(retry.produce.duplicate);
    assert_int_equal(retry.produce.base_offset, 2);
    world_deinit(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_follower_cut_off_anywhere_in_an_apply_ends_where_the_leader_is),
        cmocka_unit_test(a_leader_cut_off_anywhere_in_its_changes_keeps_what_it_answered),
        cmocka_unit_test(a_first_leader_cut_off_anywhere_can_be_the_first_again),
        cmocka_unit_test(dropping_the_broker_with_a_job_in_flight_leaks_nothing),
        cmocka_unit_test(a_resumed_copy_knows_what_its_producers_wrote_and_what_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
