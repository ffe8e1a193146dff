#include "broker/sequence_search.h"
#include "lib/broker_rig.h"

static int setup(void **state)
{
    struct rig *rig = *state = rig_new_leader();
    rig_create(rig, "orders", 2);
    return 0;
}

static void send_plain(struct rig *rig, struct rig_produce *sent, enum produce_acks acks)
{
    rig_send(rig, sent, rig_partition(rig, "orders", 0), acks, rig_batch(rig, "v", 3, -1, -1));
}

static void acks_none_answers_at_once(void **state)
{
    struct rig_produce sent;
    send_plain(*state, &sent, ACKS_NONE);
    assert_int_equal(sent.calls, 1);
    assert_int_equal(sent.produce.status, STATUS_OK);
    assert_int_equal(sent.produce.base_offset, 0);
    assert_int_equal(sent.produce.last_offset, 2);
    assert_int_equal(sent.produce.log_append_time_ms, -1);
    stepped_loop_settle(&((struct rig *)*state)->fake);
}

static void acks_leader_answers_when_it_is_durable_here(void **state)
{
    struct rig *rig = *state;
    struct rig_produce sent;
    rig->hold_high_watermark = true;
    send_plain(rig, &sent, ACKS_LEADER);
    stepped_loop_run(&rig->fake);
    assert_int_equal(sent.calls, 0);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(sent.calls, 1);
    assert_int_equal(sent.produce.status, STATUS_OK);
    stepped_loop_settle(&rig->fake);
}

static void acks_all_answers_when_the_high_watermark_has_passed_it_whole(void **state)
{
    struct rig *rig = *state;
    struct rig_produce sent;
    rig->hold_high_watermark = true;
    send_plain(rig, &sent, ACKS_ALL);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(sent.calls, 0);
    partition_set_high_watermark(rig_partition(rig, "orders", 0), 2);
    assert_int_equal(sent.calls, 0);
    partition_set_high_watermark(rig_partition(rig, "orders", 0), 3);
    assert_int_equal(sent.calls, 1);
    assert_int_equal(sent.produce.status, STATUS_OK);
    assert_int_equal(rig->appended, 1);
    stepped_loop_settle(&rig->fake);
}

static void an_advance_answers_those_it_passed_in_order_and_no_others(void **state)
{
    struct rig *rig = *state;
    struct rig_produce sent[4];
    rig->hold_high_watermark = true;
    for (int i = 0; i < 4; i++)
        send_plain(rig, &sent[i], ACKS_ALL);
    stepped_loop_settle(&rig->fake);
    partition_set_high_watermark(rig_partition(rig, "orders", 0), 9);
    assert_int_equal(sent[2].calls, 1);
    assert_int_equal(sent[3].calls, 0);
    assert_int_equal(sent[2].produce.base_offset, 6);
    stepped_loop_settle(&rig->fake);
}

static void too_few_in_sync_is_refused_before_the_append(void **state)
{
    struct rig *rig = *state;
    struct rig_produce sent;
    rig->view.in_sync_now = 1;
    send_plain(rig, &sent, ACKS_ALL);
    assert_int_equal(sent.produce.status, STATUS_NOT_ENOUGH_REPLICAS);
    assert_string_equal(sent.produce.error.text, "not enough in-sync replicas: 1 of 2");
    assert_false(sent.produce.appended);
    assert_int_equal(partition_log_end(rig_partition(rig, "orders", 0)), 0);
    send_plain(rig, &sent, ACKS_LEADER);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(sent.produce.status, STATUS_OK);
    stepped_loop_settle(&rig->fake);
}

static void a_topic_can_raise_the_minimum_up_to_the_members(void **state)
{
    struct rig *rig = *state;
    struct rig_produce sent;
    struct rig_answer answer = {0};
    const struct topic_change change = {"min.insync.replicas", "5"};
    broker_alter_topic(rig->broker, &(struct admin_request){.topic = "orders",
                                                            .changes = &change,
                                                            .change_count = 1,
                                                            .done = rig_admin_done,
                                                            .context = &answer});
    stepped_loop_settle(&rig->fake);
    assert_int_equal(answer.status, STATUS_OK);
    rig->view.in_sync_now = 2;
    send_plain(rig, &sent, ACKS_ALL);
    assert_int_equal(sent.produce.status, STATUS_NOT_ENOUGH_REPLICAS);
    rig->view.in_sync_now = 3;
    send_plain(rig, &sent, ACKS_ALL);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(sent.produce.status, STATUS_OK);
    stepped_loop_settle(&rig->fake);
}

static void parked_ones_fail_at_once_when_too_few_are_in_sync(void **state)
{
    struct rig *rig = *state;
    struct rig_produce all, leader;
    rig->hold_high_watermark = true;
    send_plain(rig, &all, ACKS_ALL);
    send_plain(rig, &leader, ACKS_LEADER);
    rig->view.in_sync_now = 1;
    broker_view_changed(rig->broker);
    assert_int_equal(all.calls, 1);
    assert_int_equal(all.produce.status, STATUS_NOT_ENOUGH_REPLICAS_AFTER);
    assert_true(all.produce.appended);
    assert_int_equal(leader.calls, 0);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(leader.produce.status, STATUS_OK);
    stepped_loop_settle(&rig->fake);
}

static void a_parked_one_times_out_as_written(void **state)
{
    struct rig *rig = *state;
    struct rig_produce sent = {0};
    rig->hold_high_watermark = true;
    sent.produce = (struct produce){.partition = rig_partition(rig, "orders", 0),
                                    .batch = rig_batch(rig, "v", 1, -1, -1),
                                    .acks = ACKS_ALL,
                                    .timeout_us = 300000,
                                    .done = rig_produce_done,
                                    .context = &sent};
    broker_produce(rig->broker, &sent.produce);
    stepped_loop_advance(&rig->fake, 299999);
    assert_int_equal(sent.calls, 0);
    stepped_loop_advance(&rig->fake, 1);
    assert_int_equal(sent.calls, 1);
    assert_int_equal(sent.produce.status, STATUS_TIMEOUT);
    assert_true(sent.produce.appended);
    partition_set_high_watermark(rig_partition(rig, "orders", 0), 1);
    assert_int_equal(sent.calls, 1);
    stepped_loop_settle(&rig->fake);
}

static void ack_timeout_bounds_a_longer_one(void **state)
{
    struct rig *rig = *state;
    struct rig_produce sent = {0};
    rig->hold_high_watermark = true;
    sent.produce = (struct produce){.partition = rig_partition(rig, "orders", 0),
                                    .batch = rig_batch(rig, "v", 1, -1, -1),
                                    .acks = ACKS_ALL,
                                    .timeout_us = 60000000,
                                    .done = rig_produce_done,
                                    .context = &sent};
    broker_produce(rig->broker, &sent.produce);
    stepped_loop_advance(&rig->fake, rig->settings.ack_timeout_us);
    assert_int_equal(sent.produce.status, STATUS_TIMEOUT);
    stepped_loop_settle(&rig->fake);
}

static void demotion_answers_all_that_wait(void **state)
{
    struct rig *rig = *state;
    struct rig_produce all, leader, late;
    rig->hold_high_watermark = true;
    send_plain(rig, &all, ACKS_ALL);
    send_plain(rig, &leader, ACKS_LEADER);
    rig_follow(rig, 2, 2);
    assert_int_equal(all.produce.status, STATUS_NOT_LEADER);
    assert_true(all.produce.appended);
    assert_int_equal(leader.produce.status, STATUS_NOT_LEADER);
    assert_true(leader.produce.appended);
    send_plain(rig, &late, ACKS_ALL);
    assert_int_equal(late.produce.status, STATUS_NOT_LEADER);
    assert_false(late.produce.appended);
    stepped_loop_settle(&rig->fake);
}

static void a_pause_parks_in_order_and_a_resume_goes_on(void **state)
{
    struct rig *rig = *state;
    struct rig_produce first, second;
    broker_pause_produce(rig->broker, true);
    send_plain(rig, &first, ACKS_ALL);
    send_plain(rig, &second, ACKS_ALL);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(first.calls + second.calls, 0);
    assert_int_equal(partition_log_end(rig_partition(rig, "orders", 0)), 0);
    broker_pause_produce(rig->broker, false);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(first.produce.base_offset, 0);
    assert_int_equal(second.produce.base_offset, 3);
    stepped_loop_settle(&rig->fake);
}

static void paused_ones_fail_unwritten_when_leadership_goes(void **state)
{
    struct rig *rig = *state;
    struct rig_produce sent;
    broker_pause_produce(rig->broker, true);
    send_plain(rig, &sent, ACKS_ALL);
    rig_follow(rig, 2, 2);
    assert_int_equal(sent.produce.status, STATUS_NOT_LEADER);
    assert_false(sent.produce.appended);
    stepped_loop_settle(&rig->fake);
}

static void a_retry_gets_the_original_offset_once_that_is_committed(void **state)
{
    struct rig *rig = *state;
    struct partition *partition = rig_partition(rig, "orders", 0);
    struct rig_produce first, second, retry;
    rig->hold_high_watermark = true;
    rig_send(rig, &first, partition, ACKS_ALL, rig_batch(rig, "a", 2, 7, 0));
    rig_send(rig, &second, partition, ACKS_ALL, rig_batch(rig, "b", 2, 7, 2));
    rig_send(rig, &retry, partition, ACKS_ALL, rig_batch(rig, "a", 2, 7, 0));
    assert_int_equal(partition_log_end(partition), 4);
    assert_int_equal(retry.calls, 0);
    stepped_loop_settle(&rig->fake);
    partition_set_high_watermark(partition, 2);
    assert_int_equal(first.calls, 1);
    assert_int_equal(retry.calls, 1);
    assert_int_equal(second.calls, 0);
    assert_int_equal(retry.produce.status, STATUS_OK);
    assert_true(retry.produce.duplicate);
    assert_int_equal(retry.produce.base_offset, 0);
    partition_set_high_watermark(partition, 4);
    assert_int_equal(second.produce.base_offset, 2);
    stepped_loop_settle(&rig->fake);
}

static void a_retry_without_enough_replicas_is_said_to_be_written(void **state)
{
    struct rig *rig = *state;
    struct partition *partition = rig_partition(rig, "orders", 0);
    struct rig_produce first, retry;
    rig->hold_high_watermark = true;
    rig_send(rig, &first, partition, ACKS_ALL, rig_batch(rig, "a", 2, 7, 0));
    rig->view.in_sync_now = 1;
    rig_send(rig, &retry, partition, ACKS_ALL, rig_batch(rig, "a", 2, 7, 0));
    assert_int_equal(retry.produce.status, STATUS_NOT_ENOUGH_REPLICAS_AFTER);
    assert_true(retry.produce.appended);
    stepped_loop_settle(&rig->fake);
}

static void a_gap_in_the_sequence_is_refused_unwritten(void **state)
{
    struct rig *rig = *state;
    struct partition *partition = rig_partition(rig, "orders", 0);
    struct rig_produce first, gap;
    rig_send(rig, &first, partition, ACKS_ALL, rig_batch(rig, "a", 2, 7, 0));
    rig_send(rig, &gap, partition, ACKS_ALL, rig_batch(rig, "b", 2, 7, 5));
    assert_int_equal(gap.produce.status, STATUS_OUT_OF_ORDER_SEQUENCE);
    assert_int_equal(partition_log_end(partition), 2);
    stepped_loop_settle(&rig->fake);
}

static enum status send_numbered(struct rig *rig, int64_t producer_id, int32_t sequence)
{
    struct rig_produce sent;
    rig_send(rig, &sent, rig_partition(rig, "orders", 0), ACKS_ALL,
             rig_batch(rig, "v", 2, producer_id, sequence));
    stepped_loop_settle(&rig->fake);
    assert_int_equal(sent.calls, 1);
    return sent.produce.status;
}

/* 2 and 3 were on their way to the old leader, 4 and 5 come first to the new one. */
static void what_a_dead_leader_lost_may_come_again_behind_what_follows_it(void **state)
{
    struct rig *rig = *state;
    struct partition *partition = rig_partition(rig, "orders", 0);
    assert_int_equal(send_numbered(rig, 7, 0), STATUS_OK);
    assert_int_equal(send_numbered(rig, 7, 4), STATUS_OUT_OF_ORDER_SEQUENCE);
    rig_follow(rig, 2, 2);
    rig_lead(rig, 3);
    assert_int_equal(send_numbered(rig, 7, 4), STATUS_NOT_READY);
    assert_int_equal(send_numbered(rig, 8, 2), STATUS_NOT_READY); /* not even its first */
    assert_int_equal(partition_log_end(partition), 2);
    assert_int_equal(send_numbered(rig, 7, 2), STATUS_OK);
    assert_int_equal(send_numbered(rig, 7, 4), STATUS_OK);
    assert_int_equal(send_numbered(rig, 8, 0), STATUS_OK);
    assert_int_equal(send_numbered(rig, 8, 2), STATUS_OK);
    assert_int_equal(partition_log_end(partition), 10);
}

static void what_a_new_leader_waits_for_in_vain_is_missing(void **state)
{
    struct rig *rig = *state;
    assert_int_equal(send_numbered(rig, 7, 0), STATUS_OK);
    assert_int_equal(send_numbered(rig, 8, 0), STATUS_OK);
    rig_follow(rig, 2, 2);
    rig_lead(rig, 3);
    /* In order under this leader, or there already: no failover made that. */
    assert_int_equal(send_numbered(rig, 8, 2), STATUS_OK);
    assert_int_equal(send_numbered(rig, 8, 6), STATUS_OUT_OF_ORDER_SEQUENCE);
    assert_int_equal(send_numbered(rig, 7, 1), STATUS_OUT_OF_ORDER_SEQUENCE);
    stepped_loop_advance(&rig->fake, 4900000);
    assert_int_equal(send_numbered(rig, 7, 4), STATUS_NOT_READY);
    stepped_loop_advance(&rig->fake, 100000);
    assert_int_equal(send_numbered(rig, 7, 4), STATUS_OUT_OF_ORDER_SEQUENCE);
    assert_int_equal(send_numbered(rig, 9, 4), STATUS_OK); /* its state may have expired */
}

static void batches_behind_one_refused_for_replicas_are_refused_alike(void **state)
{
    struct rig *rig = *state;
    struct partition *partition = rig_partition(rig, "orders", 0);
    struct rig_produce sent;
    rig_send(rig, &sent, partition, ACKS_ALL, rig_batch(rig, "a", 1, 7, 0));
    stepped_loop_settle(&rig->fake);
    rig->view.in_sync_now = 1;
    rig_send(rig, &sent, partition, ACKS_ALL, rig_batch(rig, "b", 1, 7, 1));
    assert_int_equal(sent.produce.status, STATUS_NOT_ENOUGH_REPLICAS);
    rig_send(rig, &sent, partition, ACKS_ALL, rig_batch(rig, "c", 1, 7, 2));
    assert_int_equal(sent.produce.status, STATUS_NOT_ENOUGH_REPLICAS);
    stepped_loop_settle(&rig->fake);
}

/* ---- chains ---- */

static void send_chained(struct rig *rig, struct rig_produce *sent, uint32_t partition,
                         struct produce_chain *chain, int64_t timeout_us)
{
    *sent = (struct rig_produce){.produce = {.partition = rig_partition(rig, "orders", partition),
                                             .batch = rig_batch(rig, "v", 1, -1, -1),
                                             .acks = ACKS_ALL,
                                             .timeout_us = timeout_us,
                                             .chain = chain,
                                             .done = rig_produce_done,
                                             .context = sent}};
    broker_produce(rig->broker, &sent->produce);
}

static void nothing_of_a_chain_is_appended_behind_a_refused_batch(void **state)
{
    struct rig *rig = *state;
    struct produce_chain chain = {0};
    struct rig_produce refused, behind, other;
    rig->view.in_sync_now = 1;
    send_chained(rig, &refused, 0, &chain, 0);
    assert_int_equal(refused.produce.status, STATUS_NOT_ENOUGH_REPLICAS);
    rig->view.in_sync_now = 2;
    send_chained(rig, &behind, 1, &chain, 0);
    assert_int_equal(behind.produce.status, STATUS_CANCELLED);
    assert_false(behind.produce.appended);
    send_plain(rig, &other, ACKS_ALL);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(other.produce.status, STATUS_OK);
    chain.broken = false;
    send_chained(rig, &behind, 0, &chain, 0);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(behind.produce.status, STATUS_OK);
    stepped_loop_settle(&rig->fake);
}

static void a_chain_holds_for_those_that_wait_behind_one_whose_time_is_up(void **state)
{
    struct rig *rig = *state;
    struct produce_chain chain = {0};
    struct rig_produce first, second;
    broker_pause_produce(rig->broker, true);
    send_chained(rig, &first, 0, &chain, 300000);
    send_chained(rig, &second, 0, &chain, 0);
    stepped_loop_advance(&rig->fake, 300000);
    assert_int_equal(first.produce.status, STATUS_TIMEOUT);
    assert_false(first.produce.appended);
    assert_int_equal(second.calls, 0);
    broker_pause_produce(rig->broker, false);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(second.produce.status, STATUS_CANCELLED);
    assert_int_equal(partition_log_end(rig_partition(rig, "orders", 0)), 0);
    stepped_loop_settle(&rig->fake);
}

static void an_error_after_the_append_breaks_no_chain(void **state)
{
    struct rig *rig = *state;
    struct produce_chain chain = {0};
    struct rig_produce first, second;
    rig->hold_high_watermark = true;
    send_chained(rig, &first, 0, &chain, 300000);
    stepped_loop_advance(&rig->fake, 300000);
    assert_int_equal(first.produce.status, STATUS_TIMEOUT);
    assert_true(first.produce.appended);
    send_chained(rig, &second, 0, &chain, 0);
    assert_int_equal(partition_log_end(rig_partition(rig, "orders", 0)), 2);
    partition_set_high_watermark(rig_partition(rig, "orders", 0), 2);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(second.produce.status, STATUS_OK);
    stepped_loop_settle(&rig->fake);
}

static void a_bad_batch_is_refused_and_taken(void **state)
{
    struct rig *rig = *state;
    struct rig_produce sent;
    struct shared_bytes *batch = rig_batch(rig, "v", 1, -1, -1);
    batch->data[batch->bytes - 1] ^= 1;
    rig_send(rig, &sent, rig_partition(rig, "orders", 0), ACKS_ALL, batch);
    assert_int_equal(sent.produce.status, STATUS_CORRUPT);
    assert_int_equal(sent.produce.base_offset, -1);
    assert_null(sent.produce.batch);
    stepped_loop_settle(&rig->fake);
}

static void internal_topics_are_closed_to_clients(void **state)
{
    struct rig *rig = *state;
    struct rig_produce sent;
    struct error error;
    struct partition *partition = rig_partition(rig, "__consumer_offsets", 0);
    rig_send(rig, &sent, partition, ACKS_ALL, rig_batch(rig, "v", 1, -1, -1));
    assert_int_equal(sent.produce.status, STATUS_TOPIC_FORBIDDEN);
    assert_int_equal(broker_produce_precheck(rig->broker, partition, ACKS_ALL, &error),
                     STATUS_TOPIC_FORBIDDEN);
    assert_int_equal(broker_produce_precheck(rig->broker, NULL, ACKS_ALL, &error),
                     STATUS_UNKNOWN_TOPIC);
    stepped_loop_settle(&rig->fake);
}

static void log_append_time_is_the_brokers_clock(void **state)
{
    struct rig *rig = *state;
    struct rig_produce sent;
    struct rig_answer answer = {0};
    const struct topic_change change = {"message.timestamp.type", "LogAppendTime"};
    broker_create_topic(rig->broker, &(struct admin_request){.topic = "stamped",
                                                             .changes = &change,
                                                             .change_count = 1,
                                                             .done = rig_admin_done,
                                                             .context = &answer});
    stepped_loop_settle(&rig->fake);
    rig_send(rig, &sent, rig_partition(rig, "stamped", 0), ACKS_ALL,
             rig_batch(rig, "v", 1, -1, -1));
    stepped_loop_settle(&rig->fake);
    assert_int_equal(sent.produce.status, STATUS_OK);
    assert_int_equal(sent.produce.log_append_time_ms, rig->fake.wall_ms);
    stepped_loop_settle(&rig->fake);
}

static void a_cancelled_one_is_never_answered(void **state)
{
    struct rig *rig = *state;
    struct rig_produce parked, paused;
    send_plain(rig, &parked, ACKS_ALL);
    broker_produce_cancel(rig->broker, &parked.produce);
    broker_pause_produce(rig->broker, true);
    send_plain(rig, &paused, ACKS_ALL);
    broker_produce_cancel(rig->broker, &paused.produce);
    broker_pause_produce(rig->broker, false);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(parked.calls + paused.calls, 0);
    assert_int_equal(partition_high_watermark(rig_partition(rig, "orders", 0)), 3);
    stepped_loop_settle(&rig->fake);
}

static void deleting_the_topic_answers_those_parked_on_it(void **state)
{
    struct rig *rig = *state;
    struct rig_produce parked;
    struct rig_answer answer = {0};
    rig->hold_high_watermark = true;
    send_plain(rig, &parked, ACKS_ALL);
    broker_delete_topic(
        rig->broker,
        &(struct admin_request){.topic = "orders", .done = rig_admin_done, .context = &answer});
    stepped_loop_settle(&rig->fake);
    assert_int_equal(parked.calls, 1);
    assert_int_equal(parked.produce.status, STATUS_UNKNOWN_TOPIC);
    stepped_loop_settle(&rig->fake);
}

/* What a full disk queue does: those that find no room wait their turn, and the bound on them
 * holds. */
static void a_disk_that_is_behind_queues_in_order_within_a_bound(void **state)
{
    struct rig *rig = *state;
    rig_deinit(rig);
    rig_init(rig);
    rig->settings.unsynced_bytes_max = 400;
    rig_start(rig);
    rig_lead(rig, 1);
    rig_create(rig, "orders", 2);
    struct rig_produce sent[40];
    uint32_t refused = 0, answered = 0;
    for (int i = 0; i < 40; i++) {
        send_plain(rig, &sent[i], ACKS_ALL);
        refused += sent[i].calls;
    }
    assert_true(refused > 0 && refused < 40);
    stepped_loop_settle(&rig->fake);
    int64_t expected = 0;
    for (int i = 0; i < 40; i++) {
        assert_int_equal(sent[i].calls, 1);
        if (sent[i].produce.status != STATUS_OK) {
            assert_int_equal(sent[i].produce.status, STATUS_LIMIT);
            continue;
        }
        answered++;
        assert_int_equal(sent[i].produce.base_offset, expected);
        expected += 3;
    }
    assert_int_equal(answered + refused, 40);
    stepped_loop_settle(&rig->fake);
}

static void every_start_of_a_leadership_stamps_its_epoch(void **state)
{
    struct rig *rig = *state;
    rig_write(rig, "orders", 0, "v", 1);
    rig_follow(rig, 2, 2);
    rig_lead(rig, 3);
    rig_write(rig, "orders", 0, "v", 1);
    const struct partition *partition = rig_partition(rig, "orders", 0);
    const struct epoch_history *epochs = partition_log_epochs(partition_log_of(partition));
    assert_int_equal(epoch_history_at(epochs, 0), 1);
    assert_int_equal(epoch_history_at(epochs, 1), 3);
    assert_int_equal(partition_epoch_start(partition), 1);
    /* An idle partition has its entry, too (KAFKA-7415). */
    partition = rig_partition(rig, "orders", 1);
    assert_int_equal(epoch_history_latest(partition_log_epochs(partition_log_of(partition))), 3);
    stepped_loop_settle(&rig->fake);
}

/* F45: a duplicate stays one, whatever the wall clock does. */
static void a_jump_of_the_wall_clock_forgets_no_producer(void **state)
{
    struct rig *rig = *state;
    struct partition *partition = rig_partition(rig, "orders", 0);
    struct rig_produce first, retry;
    rig_send(rig, &first, partition, ACKS_ALL, rig_batch(rig, "a", 2, 7, 0));
    stepped_loop_settle(&rig->fake);
    rig->fake.wall_ms += 10 * 86400000LL;
    stepped_loop_advance(&rig->fake, rig->settings.retention_check_us * 2);
    rig_send(rig, &retry, partition, ACKS_ALL, rig_batch(rig, "a", 2, 7, 0));
    stepped_loop_settle(&rig->fake);
    assert_int_equal(retry.produce.status, STATUS_OK);
    assert_true(retry.produce.duplicate);
    assert_int_equal(partition_log_end(partition), 2);
}

static void the_retry_of_a_batch_that_is_there_is_not_refused_for_its_timestamps(void **state)
{
    struct rig *rig = *state;
    struct partition *partition = rig_partition(rig, "orders", 0);
    struct rig_produce first, retry, next;
    struct shared_bytes *same = rig_batch(rig, "a", 2, 7, 0);
    struct shared_bytes *later = rig_batch(rig, "b", 2, 7, 2);
    rig_send(rig, &first, partition, ACKS_ALL, rig_batch(rig, "a", 2, 7, 0));
    stepped_loop_settle(&rig->fake);
    rig->fake.wall_ms -= 10 * 86400000LL;
    rig_send(rig, &retry, partition, ACKS_ALL, same);
    rig_send(rig, &next, partition, ACKS_ALL, later);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(retry.produce.status, STATUS_OK);
    assert_true(retry.produce.duplicate);
    assert_int_equal(retry.produce.base_offset, 0);
    assert_int_equal(next.produce.status, STATUS_INVALID_TIMESTAMP);
    assert_int_equal(next.produce.error.status, STATUS_INVALID_TIMESTAMP);
    assert_false(next.produce.appended);
    assert_int_equal(partition_log_end(partition), 2);
}

static void producer_ids_never_repeat(void **state)
{
    struct rig *rig = *state;
    int64_t first, second, third;
    assert_int_equal(broker_new_producer_id(rig->broker, &first), STATUS_OK);
    assert_int_equal(broker_new_producer_id(rig->broker, &second), STATUS_OK);
    rig_follow(rig, 2, 2);
    assert_int_equal(broker_new_producer_id(rig->broker, &third), STATUS_NOT_LEADER);
    rig_lead(rig, 3);
    assert_int_equal(broker_new_producer_id(rig->broker, &third), STATUS_OK);
    assert_true(first >= 0 && second > first && third > second);
    stepped_loop_settle(&rig->fake);
}

/* ---- where what is no longer remembered lies ---- */

#define RUNS 80

struct searched {
    int64_t offsets[2 * RUNS]; /* by sequence; -1: not met */
    bool done;
};

static void run_found(void *context, uint32_t first_sequence, uint32_t delta, int64_t base_offset)
{
    struct searched *searched = context;
    assert_int_equal(delta, 0);
    assert_true(first_sequence < 2 * RUNS);
    searched->offsets[first_sequence] = base_offset;
}

static void search_done(void *context, struct sequence_search *search)
{
    (void)search;
    ((struct searched *)context)->done = true;
}

static void search_from(struct rig *rig, struct searched *searched, uint32_t sequence,
                        int64_t bytes)
{
    struct topic *topic = catalog_find(rig->broker, "orders", 6);
    struct sequence_search search = {.topic = *topic_uid(topic),
                                     .producer_id = 7,
                                     .sequence = sequence,
                                     .bytes_left = bytes,
                                     .found = run_found,
                                     .done = search_done,
                                     .context = searched};
    memset(searched, 0xff, sizeof(*searched));
    searched->done = broker_search_sequences(rig->broker, &search);
    stepped_loop_settle(&rig->fake);
    assert_true(searched->done);
}

/* Every second sequence, with many records of others in between; offset of a run's record. */
static int64_t write_runs(struct rig *rig)
{
    for (int32_t i = 0; i < RUNS; i++) {
        struct rig_produce sent = {.produce = {.partition = rig_partition(rig, "orders", 0),
                                               .batch = rig_batch(rig, "v", 1, 7, 2 * i),
                                               .acks = ACKS_ALL,
                                               .rules = PRODUCER_RULES_NATIVE,
                                               .done = rig_produce_done}};
        sent.produce.context = &sent;
        broker_produce(rig->broker, &sent.produce);
        stepped_loop_settle(&rig->fake);
        assert_int_equal(sent.produce.status, STATUS_OK);
        rig_write(rig, "orders", 0, "other", 299);
    }
    return 300;
}

static void runs_that_nobody_remembers_are_found_in_memory_and_on_disk(void **state)
{
    struct rig *rig = *state;
    struct searched searched;
    int64_t apart = write_runs(rig);
    for (int restarted = 0; restarted < 2; restarted++) {
        search_from(rig, &searched, 0, INT64_MAX);
        for (int64_t i = 0; i < RUNS - PRODUCER_BATCHES_KEPT; i++) {
            assert_int_equal(searched.offsets[2 * i], apart * i);
            assert_int_equal(searched.offsets[2 * i + 1], -1);
        }
        rig_restart(rig);
        rig_lead(rig, 2 + restarted);
    }
}

static void a_search_reads_no_more_than_it_may(void **state)
{
    struct rig *rig = *state;
    struct searched searched;
    write_runs(rig);
    search_from(rig, &searched, 0, 1);
    assert_int_equal(searched.offsets[0], -1);
    /* Nor further back than to the first that is wanted. */
    search_from(rig, &searched, 2 * (RUNS - PRODUCER_BATCHES_KEPT) - 2, INT64_MAX);
    assert_int_equal(searched.offsets[2 * (RUNS - PRODUCER_BATCHES_KEPT) - 2],
                     300 * (RUNS - PRODUCER_BATCHES_KEPT - 1));
    assert_int_equal(searched.offsets[0], -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(acks_none_answers_at_once),
        TEST(acks_leader_answers_when_it_is_durable_here),
        TEST(acks_all_answers_when_the_high_watermark_has_passed_it_whole),
        TEST(an_advance_answers_those_it_passed_in_order_and_no_others),
        TEST(too_few_in_sync_is_refused_before_the_append),
        TEST(a_topic_can_raise_the_minimum_up_to_the_members),
        TEST(parked_ones_fail_at_once_when_too_few_are_in_sync),
        TEST(a_parked_one_times_out_as_written),
        TEST(ack_timeout_bounds_a_longer_one),
        TEST(demotion_answers_all_that_wait),
        TEST(a_pause_parks_in_order_and_a_resume_goes_on),
        TEST(paused_ones_fail_unwritten_when_leadership_goes),
        TEST(a_retry_gets_the_original_offset_once_that_is_committed),
        TEST(a_retry_without_enough_replicas_is_said_to_be_written),
        TEST(a_gap_in_the_sequence_is_refused_unwritten),
        TEST(what_a_dead_leader_lost_may_come_again_behind_what_follows_it),
        TEST(what_a_new_leader_waits_for_in_vain_is_missing),
        TEST(batches_behind_one_refused_for_replicas_are_refused_alike),
        TEST(nothing_of_a_chain_is_appended_behind_a_refused_batch),
        TEST(a_chain_holds_for_those_that_wait_behind_one_whose_time_is_up),
        TEST(an_error_after_the_append_breaks_no_chain),
        TEST(a_bad_batch_is_refused_and_taken),
        TEST(internal_topics_are_closed_to_clients),
        TEST(log_append_time_is_the_brokers_clock),
        TEST(a_cancelled_one_is_never_answered),
        TEST(deleting_the_topic_answers_those_parked_on_it),
        TEST(a_disk_that_is_behind_queues_in_order_within_a_bound),
        TEST(every_start_of_a_leadership_stamps_its_epoch),
        TEST(a_jump_of_the_wall_clock_forgets_no_producer),
        TEST(the_retry_of_a_batch_that_is_there_is_not_refused_for_its_timestamps),
        TEST(producer_ids_never_repeat),
        TEST(runs_that_nobody_remembers_are_found_in_memory_and_on_disk),
        TEST(a_search_reads_no_more_than_it_may),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
