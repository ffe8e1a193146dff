/* delete_records_test.c: who may raise a log start by hand, and when it is answered. */
#include "broker/delete_records.h"
#include "broker/partition_state.h"
#include "lib/broker_rig.h"

static int64_t followers_start = INT64_MAX;

static int64_t rig_followers_start(void *context, const struct partition *partition)
{
    (void)context;
    (void)partition;
    return followers_start;
}

struct deletion_seen {
    struct delete_records deletion;
    int calls;
};

static void deletion_done(void *context, struct delete_records *deletion)
{
    (void)deletion;
    ((struct deletion_seen *)context)->calls++;
}

static void send(struct rig *rig, struct deletion_seen *seen, const char *topic, int64_t offset)
{
    *seen = (struct deletion_seen){.deletion = {.partition = rig_partition(rig, topic, 0),
                                                .before_offset = offset,
                                                .timeout_us = 1000000,
                                                .done = deletion_done,
                                                .context = seen}};
    broker_delete_records(rig->broker, &seen->deletion);
}

static int setup(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    followers_start = INT64_MAX;
    rig_init(rig);
    rig_start(rig);
    rig_lead(rig, 1);
    rig->broker->port.followers_start = rig_followers_start;
    rig_create(rig, "orders", 1);
    rig_write(rig, "orders", 0, "v", 5);
    rig_write(rig, "orders", 0, "v", 5);
    *state = rig;
    return 0;
}

static int teardown(void **state)
{
    stepped_loop_settle(&((struct rig *)*state)->fake);
    rig_deinit(*state);
    free(*state);
    return 0;
}

static void the_start_is_raised_and_lasts(void **state)
{
    struct rig *rig = *state;
    struct deletion_seen seen;
    uint32_t changed = rig->changed;
    send(rig, &seen, "orders", 7);
    assert_int_equal(seen.calls, 0); /* not before it is on disk */
    stepped_loop_advance(&rig->fake, 500000);
    assert_int_equal(seen.calls, 1);
    assert_int_equal(seen.deletion.status, STATUS_OK);
    assert_int_equal(seen.deletion.low_watermark, 7);
    assert_true(rig->changed > changed); /* followers are told */
    rig_restart(rig);
    rig_lead(rig, 2);
    assert_int_equal(partition_log_start(rig_partition(rig, "orders", 0)), 7);
    assert_int_equal(partition_log_end(rig_partition(rig, "orders", 0)), 10);
}

static void minus_one_is_the_high_watermark(void **state)
{
    struct rig *rig = *state;
    struct deletion_seen seen;
    send(rig, &seen, "orders", DELETE_TO_HIGH_WATERMARK);
    stepped_loop_advance(&rig->fake, 500000);
    assert_int_equal(seen.deletion.status, STATUS_OK);
    assert_int_equal(seen.deletion.low_watermark, 10);
}

static void an_offset_that_is_gone_already_is_answered_with_the_start(void **state)
{
    struct rig *rig = *state;
    struct deletion_seen seen;
    send(rig, &seen, "orders", 7);
    send(rig, &seen, "orders", 3);
    stepped_loop_advance(&rig->fake, 500000);
    assert_int_equal(seen.deletion.status, STATUS_OK);
    assert_int_equal(seen.deletion.low_watermark, 7);
}

static void offsets_out_of_range_are_refused(void **state)
{
    struct rig *rig = *state;
    struct deletion_seen seen;
    send(rig, &seen, "orders", 11);
    assert_int_equal(seen.deletion.status, STATUS_OUT_OF_RANGE);
    send(rig, &seen, "orders", -2);
    assert_int_equal(seen.deletion.status, STATUS_OUT_OF_RANGE);
    assert_int_equal(partition_log_start(rig_partition(rig, "orders", 0)), 0);
}

static void a_topic_that_is_only_compacted_keeps_its_start(void **state)
{
    struct rig *rig = *state;
    struct deletion_seen seen;
    send(rig, &seen, "__consumer_offsets", 0);
    assert_int_equal(seen.deletion.status, STATUS_LIMIT);
}

static void followers_in_sync_are_waited_for(void **state)
{
    struct rig *rig = *state;
    struct deletion_seen seen;
    followers_start = 0;
    send(rig, &seen, "orders", 4);
    stepped_loop_advance(&rig->fake, 300000);
    assert_int_equal(seen.calls, 0);
    followers_start = 4;
    stepped_loop_advance(&rig->fake, 100000);
    assert_int_equal(seen.calls, 1);
    assert_int_equal(seen.deletion.status, STATUS_OK);
}

static void a_time_out_says_that_the_outcome_is_open(void **state)
{
    struct rig *rig = *state;
    struct deletion_seen seen;
    followers_start = 0;
    send(rig, &seen, "orders", 4);
    stepped_loop_advance(&rig->fake, 1100000);
    assert_int_equal(seen.deletion.status, STATUS_TIMEOUT);
    assert_int_equal(partition_log_start(rig_partition(rig, "orders", 0)), 4);
}

static void who_leads_no_longer_says_so(void **state)
{
    struct rig *rig = *state;
    struct deletion_seen seen;
    followers_start = 0;
    send(rig, &seen, "orders", 4);
    rig_follow(rig, 2, 2);
    assert_int_equal(seen.calls, 1);
    assert_int_equal(seen.deletion.status, STATUS_NOT_LEADER);
    send(rig, &seen, "orders", 5);
    assert_int_equal(seen.deletion.status, STATUS_NOT_LEADER);
}

static void a_topic_deleted_meanwhile_is_unknown(void **state)
{
    struct rig *rig = *state;
    struct deletion_seen seen;
    struct rig_answer answer = {0};
    followers_start = 0;
    send(rig, &seen, "orders", 4);
    broker_delete_topic(
        rig->broker,
        &(struct admin_request){.topic = "orders", .done = rig_admin_done, .context = &answer});
    stepped_loop_settle(&rig->fake);
    assert_int_equal(seen.calls, 1);
    assert_int_equal(seen.deletion.status, STATUS_UNKNOWN_TOPIC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_start_is_raised_and_lasts, setup, teardown),
        cmocka_unit_test_setup_teardown(minus_one_is_the_high_watermark, setup, teardown),
        cmocka_unit_test_setup_teardown(an_offset_that_is_gone_already_is_answered_with_the_start,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(offsets_out_of_range_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_topic_that_is_only_compacted_keeps_its_start, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(followers_in_sync_are_waited_for, setup, teardown),
        cmocka_unit_test_setup_teardown(a_time_out_says_that_the_outcome_is_open, setup, teardown),
        cmocka_unit_test_setup_teardown(who_leads_no_longer_says_so, setup, teardown),
        cmocka_unit_test_setup_teardown(a_topic_deleted_meanwhile_is_unknown, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
