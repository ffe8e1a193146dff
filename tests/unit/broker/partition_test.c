#include "lib/broker_rig.h"

static int setup(void **state)
{
    struct rig *rig = *state = rig_new_leader();
    rig_create(rig, "orders", 1);
    rig->hold_high_watermark = true;
    rig_follow(rig, 2, 2);
    return 0;
}

static struct partition *orders(struct rig *rig)
{
    return rig_partition(rig, "orders", 0);
}

static void follow(struct rig *rig, int64_t base_offset, uint32_t count, int64_t producer_id,
                   int32_t sequence)
{
    struct error error;
    struct shared_bytes *batch = rig_batch(rig, "v", count, producer_id, sequence);
    batch_set_base_offset(batch->data, base_offset);
    batch_set_leader_epoch(batch->data, 2);
    assert_int_equal(partition_follow_append(orders(rig), batch, false, &error), STATUS_OK);
    shared_bytes_unref(batch);
}

static void a_follower_derives_what_the_leader_has(void **state)
{
    struct rig *rig = *state;
    uint64_t before = partition_producers_hash(orders(rig));
    follow(rig, 0, 2, 7, 0);
    assert_true(partition_producers_hash(orders(rig)) != before);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(partition_durable(orders(rig)), 2);
    assert_int_equal(partition_log_end(orders(rig)), 2);
    stepped_loop_settle(&rig->fake);
}

static void the_high_watermark_is_clamped_and_never_goes_back(void **state)
{
    struct rig *rig = *state;
    follow(rig, 0, 2, -1, -1);
    partition_set_high_watermark(orders(rig), 100);
    assert_int_equal(partition_high_watermark(orders(rig)), 2);
    partition_set_high_watermark(orders(rig), 1);
    assert_int_equal(partition_high_watermark(orders(rig)), 2);
    assert_int_equal(partition_last_stable_offset(orders(rig)), 2);
    stepped_loop_settle(&rig->fake);
}

static void a_cut_takes_the_producers_of_the_cut_part_along(void **state)
{
    struct rig *rig = *state;
    struct rig_answer answer = {0};
    follow(rig, 0, 2, 7, 0);
    uint64_t hash = partition_producers_hash(orders(rig));
    for (int i = 0; i < 8; i++)
        follow(rig, 2 + i, 1, 7, 2 + i);
    follow(rig, 10, 1, 8, 0);
    stepped_loop_settle(&rig->fake);
    partition_truncate(orders(rig), 2, rig_admin_done, &answer);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(answer.status, STATUS_OK);
    assert_int_equal(partition_log_end(orders(rig)), 2);
    assert_true(partition_producers_hash(orders(rig)) == hash);
    follow(rig, 2, 1, 7, 2);
    stepped_loop_settle(&rig->fake);
}

/* After a restart there are no undo records above the high watermark on record to rely on. */
static void a_cut_deeper_than_memory_rebuilds_the_producers(void **state)
{
    struct rig *rig = *state;
    struct rig_answer answer = {0};
    follow(rig, 0, 2, 7, 0);
    uint64_t hash = partition_producers_hash(orders(rig));
    follow(rig, 2, 1, 7, 2);
    follow(rig, 3, 1, 8, 0);
    stepped_loop_settle(&rig->fake);
    rig_restart(rig);
    partition_truncate(orders(rig), 2, rig_admin_done, &answer);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(answer.status, STATUS_OK);
    assert_true(partition_producers_hash(orders(rig)) == hash);
    stepped_loop_settle(&rig->fake);
}

static void a_reset_takes_both_marks_and_is_damaged_until_it_is_whole(void **state)
{
    struct rig *rig = *state;
    struct rig_answer answer = {0};
    follow(rig, 0, 2, 7, 0);
    stepped_loop_settle(&rig->fake);
    partition_set_high_watermark(orders(rig), 2);
    partition_reset(orders(rig),
                    &(struct partition_restart){.offset = 100, .epoch = 2, .high_watermark = 103},
                    rig_admin_done, &answer);
    assert_true(partition_damaged(orders(rig)));
    stepped_loop_settle(&rig->fake);
    assert_int_equal(answer.status, STATUS_OK);
    assert_int_equal(partition_log_start(orders(rig)), 100);
    assert_int_equal(partition_high_watermark(orders(rig)), 100);
    assert_true(partition_damaged(orders(rig)));
    rig_restart(rig);
    assert_true(partition_damaged(orders(rig)));
    rig_follow(rig, 2, 2);
    follow(rig, 100, 3, 9, 0);
    stepped_loop_settle(&rig->fake);
    partition_set_high_watermark(orders(rig), 103);
    assert_false(partition_damaged(orders(rig)));
    stepped_loop_settle(&rig->fake);
}

static void appends_wait_while_it_is_being_cut(void **state)
{
    struct rig *rig = *state;
    struct rig_answer answer = {0};
    struct error error;
    follow(rig, 0, 2, -1, -1);
    stepped_loop_settle(&rig->fake);
    partition_truncate(orders(rig), 1, rig_admin_done, &answer);
    struct shared_bytes *batch = rig_batch(rig, "v", 1, -1, -1);
    assert_int_equal(partition_follow_append(orders(rig), batch, false, &error), STATUS_AGAIN);
    shared_bytes_unref(batch);
    stepped_loop_settle(&rig->fake);
    assert_true(answer.called);
    stepped_loop_settle(&rig->fake);
}

/* The manifest takes the topic away while its copy is being cut. */
static void a_change_whose_partition_goes_is_told_so(void **state)
{
    struct rig *rig = *state;
    struct rig_answer answer = {0}, applied = {0};
    follow(rig, 0, 2, -1, -1);
    stepped_loop_settle(&rig->fake);
    partition_truncate(orders(rig), 1, rig_admin_done, &answer);
    catalog_apply(rig->broker, (struct manifest_version){2, 50}, NULL, 0, NULL, 0, rig_admin_done,
                  &applied);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(answer.status, STATUS_CANCELLED);
    assert_int_equal(applied.status, STATUS_OK);
    stepped_loop_settle(&rig->fake);
}

static void retention_moves_the_log_start_on_the_leader_only(void **state)
{
    struct rig *rig = *state;
    struct rig_answer answer = {0};
    const struct topic_change changes[] = {{"retention.ms", "1000"}, {"segment.ms", "10"}};
    rig->hold_high_watermark = false;
    rig_lead(rig, 3);
    broker_alter_topic(rig->broker, &(struct admin_request){.topic = "orders",
                                                            .changes = changes,
                                                            .change_count = 2,
                                                            .done = rig_admin_done,
                                                            .context = &answer});
    stepped_loop_settle(&rig->fake);
    rig_write(rig, "orders", 0, "v", 2);
    stepped_loop_advance(&rig->fake, 1000000);
    rig_write(rig, "orders", 0, "v", 2);
    rig_follow(rig, 2, 4);
    stepped_loop_advance(&rig->fake, rig->settings.retention_check_us * 3);
    assert_int_equal(partition_log_start(orders(rig)), 0);
    rig_lead(rig, 5);
    stepped_loop_advance(&rig->fake, rig->settings.retention_check_us * 3);
    assert_true(partition_log_start(orders(rig)) >= 2);
    assert_true(rig->changed > 0);
    stepped_loop_settle(&rig->fake);
}

/* F45: the first pass has the start of the process to compare with, leading or not. */
static void a_jump_before_the_first_pass_of_retention_removes_nothing(void **state)
{
    struct rig *rig = *state;
    const int64_t year_ms = 365 * 86400000LL;
    rig->hold_high_watermark = false;
    rig_lead(rig, 3);
    rig_write(rig, "orders", 0, "v", 2);
    rig_follow(rig, 2, 4);
    rig->fake.wall_ms += year_ms;
    rig_lead(rig, 5);
    stepped_loop_advance(&rig->fake, rig->settings.retention_check_us);
    assert_int_equal(partition_log_start(orders(rig)), 0);
    rig->fake.wall_ms -= year_ms;
    stepped_loop_advance(&rig->fake, rig->settings.retention_check_us * 2);
    assert_int_equal(partition_log_start(orders(rig)), 0);
    stepped_loop_settle(&rig->fake);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)
/* ---- what producers leave behind ---- */

static void lead_again(struct rig *rig, int32_t epoch)
{
    rig->hold_high_watermark = false;
    rig_lead(rig, epoch);
}

/* Sends one record of producer 7 again: true if it is answered with its first offset. */
static bool is_known(struct rig *rig, int32_t sequence)
{
    struct rig_produce sent;
    rig_send(rig, &sent, orders(rig), ACKS_ALL, rig_batch(rig, "v", 1, 7, sequence));
    stepped_loop_settle(&rig->fake);
    assert_int_equal(sent.calls, 1);
    assert_int_equal(sent.produce.status, STATUS_OK);
    return sent.produce.duplicate;
}

static void configure(struct rig *rig, const char *key, const char *value)
{
    struct rig_answer answer = {0};
    const struct topic_change change = {key, value};
    broker_alter_topic(rig->broker, &(struct admin_request){.topic = "orders",
                                                            .changes = &change,
                                                            .change_count = 1,
                                                            .done = rig_admin_done,
                                                            .context = &answer});
    stepped_loop_settle(&rig->fake);
    assert_int_equal(answer.status, STATUS_OK);
}

/* F61, KAFKA-7190: for as long as the producer lives, not for as long as its records do. */
static void producers_outlive_the_retention_of_their_records(void **state)
{
    struct rig *rig = *state;
    lead_again(rig, 3);
    configure(rig, "retention.ms", "1000");
    configure(rig, "segment.ms", "10");
    assert_false(is_known(rig, 0));
    for (int i = 0; i < 2; i++) {
        stepped_loop_advance(&rig->fake, 1000000);
        rig_write(rig, "orders", 0, "v", 1);
    }
    stepped_loop_advance(&rig->fake, rig->settings.retention_check_us * 3);
    assert_true(partition_log_start(orders(rig)) > 0);
    assert_true(is_known(rig, 0));
    rig_restart(rig);
    lead_again(rig, 4);
    assert_true(is_known(rig, 0));
}

static void idle_producers_are_forgotten_but_none_in_a_transaction(void **state)
{
    struct rig *rig = *state;
    int64_t day_us = rig->settings.producer_id_expiration_ms * 1000;
    lead_again(rig, 3);
    assert_false(is_known(rig, 0));
    rig_write_open(rig, orders(rig), 8, 0);
    stepped_loop_advance(&rig->fake, day_us / 2);
    assert_true(is_known(rig, 0));
    stepped_loop_advance(&rig->fake, day_us + rig->settings.retention_check_us);
    const struct producer_table *producers = partition_producers(orders(rig));
    assert_null(producer_table_find(producers, 7));
    assert_non_null(producer_table_find(producers, 8));
    assert_int_equal(partition_last_stable_offset(orders(rig)), 1);
}

static void the_stable_offset_does_not_fall_below_the_log_start(void **state)
{
    struct rig *rig = *state;
    lead_again(rig, 3);
    configure(rig, "retention.ms", "1000");
    configure(rig, "segment.ms", "10");
    rig_write_open(rig, orders(rig), 8, 0);
    for (int i = 0; i < 2; i++) {
        stepped_loop_advance(&rig->fake, 1000000);
        rig_write(rig, "orders", 0, "v", 1);
    }
    assert_int_equal(partition_last_stable_offset(orders(rig)), 0);
    stepped_loop_advance(&rig->fake, rig->settings.retention_check_us * 3);
    int64_t start = partition_log_start(orders(rig));
    assert_true(start > 0);
    assert_int_equal(partition_last_stable_offset(orders(rig)), start);
    rig_end(rig, orders(rig), 8, 0, false);
    assert_int_equal(partition_last_stable_offset(orders(rig)), partition_log_end(orders(rig)));
}

/* A transaction that the leader closed, cut here together with its marker, is open again. */
static void a_cut_takes_an_abort_back(void **state)
{
    struct rig *rig = *state;
    struct rig_answer answer = {0};
    struct error error;
    struct buffer bytes;
    struct shared_bytes *batch = rig_transactional_batch(rig, 7, 0);
    batch_set_leader_epoch(batch->data, 2);
    assert_int_equal(partition_follow_append(orders(rig), batch, false, &error), STATUS_OK);
    shared_bytes_unref(batch);
    uint64_t hash = partition_producers_hash(orders(rig));
    buffer_init(&bytes, 0);
    batch_build_marker(&bytes, 7, 0, false, 2, rig->fake.wall_ms, 2);
    batch = shared_bytes_copy(bytes.data, bytes.bytes);
    batch_set_base_offset(batch->data, 1);
    assert_int_equal(partition_follow_append(orders(rig), batch, false, &error), STATUS_OK);
    shared_bytes_unref(batch);
    buffer_deinit(&bytes);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(partition_find_aborted(orders(rig), 0, 1, NULL, 0), 1);
    partition_truncate(orders(rig), 1, rig_admin_done, &answer);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(answer.status, STATUS_OK);
    assert_int_equal(partition_find_aborted(orders(rig), 0, 1, NULL, 0), 0);
    assert_true(partition_producers_hash(orders(rig)) == hash);
    partition_set_high_watermark(orders(rig), 1);
    assert_int_equal(partition_last_stable_offset(orders(rig)), 0);
    stepped_loop_settle(&rig->fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_follower_derives_what_the_leader_has),
        TEST(the_high_watermark_is_clamped_and_never_goes_back),
        TEST(a_cut_takes_the_producers_of_the_cut_part_along),
        TEST(a_cut_deeper_than_memory_rebuilds_the_producers),
        TEST(a_reset_takes_both_marks_and_is_damaged_until_it_is_whole),
        TEST(appends_wait_while_it_is_being_cut),
        TEST(a_change_whose_partition_goes_is_told_so),
        TEST(retention_moves_the_log_start_on_the_leader_only),
        TEST(a_jump_before_the_first_pass_of_retention_removes_nothing),
        TEST(producers_outlive_the_retention_of_their_records),
        TEST(idle_producers_are_forgotten_but_none_in_a_transaction),
        TEST(the_stable_offset_does_not_fall_below_the_log_start),
        TEST(a_cut_takes_an_abort_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
