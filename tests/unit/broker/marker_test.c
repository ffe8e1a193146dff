#include "lib/broker_rig.h"

static int setup(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    rig_init(rig);
    rig_start(rig);
    rig_lead(rig, 3);
    rig_create(rig, "orders", 1);
    *state = rig;
    return 0;
}

/* ---- helpers ---- */

static struct partition *orders(struct rig *rig)
{
    return rig_partition(rig, "orders", 0);
}

static void send_marker(struct rig *rig, struct rig_marker *sent, int64_t producer_id,
                        int16_t epoch, bool commit)
{
    rig_send_marker(rig, sent, orders(rig), producer_id, epoch, commit);
}

static void write_open(struct rig *rig, int64_t producer_id, int16_t epoch)
{
    rig_write_open(rig, orders(rig), producer_id, epoch);
}

/* ---- claims ---- */

static void a_marker_ends_the_transaction_when_the_high_watermark_has_passed_it(void **state)
{
    struct rig *rig = *state;
    struct rig_marker sent;
    write_open(rig, 7, 0);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(partition_last_stable_offset(orders(rig)), 0);
    rig->hold_high_watermark = true;
    send_marker(rig, &sent, 7, 0, true);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(sent.calls, 0);
    assert_int_equal(partition_log_end(orders(rig)), 2);
    assert_int_equal(partition_last_stable_offset(orders(rig)), 0);
    partition_set_high_watermark(orders(rig), 2);
    assert_int_equal(sent.calls, 1);
    assert_int_equal(sent.marker.status, STATUS_OK);
    assert_int_equal(partition_last_stable_offset(orders(rig)), 2);
}

static void a_marker_sent_again_is_answered_without_a_second_one(void **state)
{
    struct rig *rig = *state;
    struct rig_marker first, again;
    write_open(rig, 7, 0);
    rig->hold_high_watermark = true;
    send_marker(rig, &first, 7, 0, false);
    send_marker(rig, &again, 7, 0, false);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(partition_log_end(orders(rig)), 2);
    assert_int_equal(again.calls, 0); /* no sooner than the first */
    partition_set_high_watermark(orders(rig), 2);
    assert_int_equal(first.calls, 1);
    assert_int_equal(again.calls, 1);
    assert_int_equal(again.marker.status, STATUS_OK);
}

static void a_marker_for_a_producer_that_never_wrote_is_written_and_harmless(void **state)
{
    struct rig *rig = *state;
    struct rig_marker sent;
    send_marker(rig, &sent, 9, 4, true);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(sent.calls, 1);
    assert_int_equal(sent.marker.status, STATUS_OK);
    assert_int_equal(partition_last_stable_offset(orders(rig)), 1);
}

static void a_marker_of_an_older_producer_epoch_is_refused(void **state)
{
    struct rig *rig = *state;
    struct rig_marker sent;
    write_open(rig, 7, 2);
    send_marker(rig, &sent, 7, 1, false);
    assert_int_equal(sent.calls, 1);
    assert_int_equal(sent.marker.status, STATUS_STALE_PRODUCER_EPOCH);
    stepped_loop_settle(&rig->fake);
}

static void a_marker_of_an_older_coordinator_is_refused(void **state)
{
    struct rig *rig = *state;
    struct rig_marker sent;
    send_marker(rig, &sent, 7, 0, true);
    write_open(rig, 7, 0);
    sent = (struct rig_marker){.marker = {.partition = orders(rig),
                                          .producer_id = 7,
                                          .coordinator_epoch = 2,
                                          .done = rig_marker_done,
                                          .context = &sent}};
    partition_write_marker(&sent.marker);
    assert_int_equal(sent.marker.status, STATUS_FENCED_EPOCH);
    stepped_loop_settle(&rig->fake);
}

static void a_v2_marker_of_the_epoch_that_wrote_ends_nothing(void **state)
{
    struct rig *rig = *state;
    struct rig_marker sent;
    write_open(rig, 7, 2);
    sent = (struct rig_marker){.marker = {.partition = orders(rig),
                                          .producer_id = 7,
                                          .producer_epoch = 2,
                                          .coordinator_epoch = 3,
                                          .transaction_v2 = true,
                                          .done = rig_marker_done,
                                          .context = &sent}};
    partition_write_marker(&sent.marker);
    assert_int_equal(sent.marker.status, STATUS_STALE_PRODUCER_EPOCH);
    stepped_loop_settle(&rig->fake);
}

static void a_marker_waits_for_replicas_however_long_it_takes(void **state)
{
    struct rig *rig = *state;
    struct rig_marker sent;
    struct rig_produce data;
    write_open(rig, 7, 0);
    rig->hold_high_watermark = true;
    rig_send(rig, &data, orders(rig), ACKS_ALL, rig_batch(rig, "v", 1, -1, -1));
    send_marker(rig, &sent, 7, 0, true);
    rig->view.in_sync_now = 1;
    broker_view_changed(rig->broker);
    assert_int_equal(data.produce.status, STATUS_NOT_ENOUGH_REPLICAS_AFTER);
    stepped_loop_advance(&rig->fake, 3600 * INT64_C(1000000));
    assert_int_equal(sent.calls, 0);
    partition_set_high_watermark(orders(rig), 3);
    assert_int_equal(sent.calls, 1);
    assert_int_equal(sent.marker.status, STATUS_OK);
}

static void send_impatient(struct rig *rig, struct rig_marker *sent, int64_t producer_id)
{
    *sent = (struct rig_marker){.marker = {.partition = orders(rig),
                                           .producer_id = producer_id,
                                           .coordinator_epoch = 3,
                                           .impatient = true,
                                           .done = rig_marker_done,
                                           .context = sent}};
    partition_write_marker(&sent->marker);
}

static void an_impatient_marker_is_refused_and_timed_out_as_any_produce(void **state)
{
    struct rig *rig = *state;
    struct rig_marker late, held, unreplicated, refused;
    write_open(rig, 7, 0);
    stepped_loop_settle(&rig->fake);
    rig->hold_high_watermark = true;
    send_impatient(rig, &late, 7);
    broker_pause_produce(rig->broker, true);
    send_impatient(rig, &held, 8);
    stepped_loop_advance(&rig->fake, rig->settings.ack_timeout_us + 1000000);
    assert_int_equal(late.marker.status, STATUS_TIMEOUT);
    assert_int_equal(held.marker.status, STATUS_TIMEOUT);
    broker_pause_produce(rig->broker, false);
    send_impatient(rig, &unreplicated, 9);
    rig->view.in_sync_now = 1;
    broker_view_changed(rig->broker);
    assert_int_equal(unreplicated.marker.status, STATUS_NOT_ENOUGH_REPLICAS_AFTER);
    send_impatient(rig, &refused, 10);
    assert_int_equal(refused.marker.status, STATUS_NOT_ENOUGH_REPLICAS);
    stepped_loop_settle(&rig->fake);
}

static void a_marker_is_taken_while_too_few_are_in_sync(void **state)
{
    struct rig *rig = *state;
    struct rig_marker sent;
    rig->view.in_sync_now = 1;
    broker_view_changed(rig->broker);
    send_marker(rig, &sent, 7, 0, true);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(sent.calls, 1);
    assert_int_equal(sent.marker.status, STATUS_OK);
}

static void a_marker_waits_behind_what_a_pause_holds_back(void **state)
{
    struct rig *rig = *state;
    struct rig_marker sent;
    write_open(rig, 7, 0);
    broker_pause_produce(rig->broker, true);
    send_marker(rig, &sent, 7, 0, true);
    stepped_loop_advance(&rig->fake, 3600 * INT64_C(1000000));
    assert_int_equal(sent.calls, 0);
    broker_pause_produce(rig->broker, false);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(sent.calls, 1);
    assert_int_equal(sent.marker.status, STATUS_OK);
}

static void a_marker_ends_with_the_leadership(void **state)
{
    struct rig *rig = *state;
    struct rig_marker parked, waiting;
    rig->hold_high_watermark = true;
    send_marker(rig, &parked, 7, 0, true);
    broker_pause_produce(rig->broker, true);
    send_marker(rig, &waiting, 8, 0, true);
    rig_follow(rig, 2, 4);
    assert_int_equal(parked.calls, 1);
    assert_int_equal(parked.marker.status, STATUS_NOT_LEADER);
    assert_int_equal(waiting.calls, 1);
    assert_int_equal(waiting.marker.status, STATUS_NOT_LEADER);
    stepped_loop_settle(&rig->fake);
}

static void a_marker_for_a_topic_that_goes_is_told_so(void **state)
{
    struct rig *rig = *state;
    struct rig_marker sent;
    struct rig_answer answer = {0};
    rig->hold_high_watermark = true;
    send_marker(rig, &sent, 7, 0, true);
    broker_delete_topic(
        rig->broker,
        &(struct admin_request){.topic = "orders", .done = rig_admin_done, .context = &answer});
    stepped_loop_settle(&rig->fake);
    assert_int_equal(sent.calls, 1);
    assert_int_equal(sent.marker.status, STATUS_UNKNOWN_TOPIC);
}

static void a_broker_that_is_dropped_forgets_its_markers(void **state)
{
    struct rig *rig = *state;
    struct rig_marker parked, waiting;
    rig->hold_high_watermark = true;
    send_marker(rig, &parked, 7, 0, true);
    broker_pause_produce(rig->broker, true);
    send_marker(rig, &waiting, 8, 0, true);
    stepped_loop_settle(&rig->fake);
    rig_crash(rig);
    assert_int_equal(parked.calls + waiting.calls, 0);
}

int main(void)
{
#define CLAIM(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        CLAIM(a_marker_ends_the_transaction_when_the_high_watermark_has_passed_it),
        CLAIM(a_marker_sent_again_is_answered_without_a_second_one),
        CLAIM(a_marker_for_a_producer_that_never_wrote_is_written_and_harmless),
        CLAIM(a_marker_of_an_older_producer_epoch_is_refused),
        CLAIM(a_marker_of_an_older_coordinator_is_refused),
        CLAIM(a_v2_marker_of_the_epoch_that_wrote_ends_nothing),
        CLAIM(a_marker_waits_for_replicas_however_long_it_takes),
        CLAIM(an_impatient_marker_is_refused_and_timed_out_as_any_produce),
        CLAIM(a_marker_is_taken_while_too_few_are_in_sync),
        CLAIM(a_marker_waits_behind_what_a_pause_holds_back),
        CLAIM(a_marker_ends_with_the_leadership),
        CLAIM(a_marker_for_a_topic_that_goes_is_told_so),
        CLAIM(a_broker_that_is_dropped_forgets_its_markers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
