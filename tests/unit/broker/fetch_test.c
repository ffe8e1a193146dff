#include "base/mutant.h"
#include "base/random.h"
#include "broker/broker_state.h"
#include "lib/broker_rig.h"

static int setup(void **state)
{
    struct rig *rig = *state = rig_new_leader();
    rig_create(rig, "orders", 3);
    return 0;
}

#define PARTS 3
struct consumer {
    struct fetch fetch;
    struct fetch_partition parts[PARTS];
    uint32_t calls;
};

static void reader_done(void *context, struct fetch *fetch)
{
    (void)fetch;
    ((struct consumer *)context)->calls++;
}

/* Reads partitions 0 .. count-1 of orders from `offset` on. */
static void read_from(struct rig *rig, struct consumer *reader, uint32_t count, int64_t offset,
                      int64_t max_wait_us)
{
    *reader = (struct consumer){.fetch = {.partition_count = count,
                                          .max_wait_us = max_wait_us,
                                          .bytes_min = 1,
                                          .bytes_max = 1 << 20,
                                          .done = reader_done}};
    reader->fetch.partitions = reader->parts;
    reader->fetch.context = reader;
    for (uint32_t i = 0; i < count; i++) {
        reader->parts[i] = (struct fetch_partition){.partition = rig_partition(rig, "orders", i),
                                                    .offset = offset,
                                                    .bytes_max = 1 << 20,
                                                    .current_epoch = -1,
                                                    .last_fetched_epoch = -1};
    }
}

static void run(struct rig *rig, struct consumer *reader)
{
    broker_fetch(rig->broker, &reader->fetch);
    stepped_loop_run(&rig->fake);
}

static void what_is_committed_is_given_with_watermarks_of_that_moment(void **state)
{
    struct rig *rig = *state;
    struct consumer reader;
    rig_write(rig, "orders", 0, "v", 2);
    read_from(rig, &reader, 1, 0, 500000);
    run(rig, &reader);
    assert_int_equal(reader.calls, 1);
    assert_int_equal(reader.parts[0].status, STATUS_OK);
    assert_int_equal(reader.parts[0].high_watermark, 2);
    assert_int_equal(reader.parts[0].last_stable_offset, 2);
    assert_int_equal(reader.parts[0].log_start, 0);
    assert_int_equal(reader.parts[0].read.next_offset, 2);
    assert_true(reader.fetch.bytes > 0);
    fetch_release(&reader.fetch);
}

static void nothing_above_the_high_watermark_is_given(void **state)
{
    struct rig *rig = *state;
    struct consumer reader;
    struct rig_produce sent;
    rig_write(rig, "orders", 0, "v", 2);
    rig->hold_high_watermark = true;
    rig_send(rig, &sent, rig_partition(rig, "orders", 0), ACKS_NONE,
             rig_batch(rig, "w", 2, -1, -1));
    stepped_loop_settle(&rig->fake);
    read_from(rig, &reader, 1, 0, 0);
    run(rig, &reader);
    assert_int_equal(reader.parts[0].read.next_offset, 2);
    fetch_release(&reader.fetch);
}

static void too_many_that_wait_are_answered_at_once(void **state)
{
    struct rig *rig = *state;
    struct consumer waits, refused, fits, again;
    rig->broker->settings.fetch_parked_partitions_max = 3;
    read_from(rig, &waits, 2, 0, 500000);
    run(rig, &waits);
    read_from(rig, &refused, 2, 0, 500000);
    run(rig, &refused);
    read_from(rig, &fits, 1, 0, 500000);
    run(rig, &fits);
    assert_int_equal(waits.calls, 0);
    assert_int_equal(refused.calls, 1);
    assert_int_equal(refused.parts[0].status, STATUS_OK);
    assert_int_equal(refused.parts[0].high_watermark, 0);
    assert_int_equal(fits.calls, 0);
    rig_write(rig, "orders", 0, "v", 1);
    assert_int_equal(waits.calls + fits.calls, 2);
    read_from(rig, &again, 3, 1, 500000);
    again.parts[1].offset = again.parts[2].offset = 0;
    run(rig, &again);
    assert_int_equal(again.calls, 0);
    assert_true(broker_fetch_cancel(rig->broker, &again.fetch));
    assert_int_equal(rig->broker->fetch_parked_partitions, 0);
    fetch_release(&waits.fetch);
    fetch_release(&fits.fetch);
}

static void an_empty_one_waits_for_the_high_watermark_not_for_the_append(void **state)
{
    struct rig *rig = *state;
    struct consumer reader;
    struct rig_produce sent;
    rig->hold_high_watermark = true;
    read_from(rig, &reader, 2, 0, 500000);
    run(rig, &reader);
    rig_send(rig, &sent, rig_partition(rig, "orders", 1), ACKS_NONE,
             rig_batch(rig, "w", 2, -1, -1));
    stepped_loop_settle(&rig->fake);
    assert_int_equal(reader.calls, 0);
    partition_set_high_watermark(rig_partition(rig, "orders", 1), 2);
    assert_int_equal(reader.calls, 1);
    assert_int_equal(reader.parts[0].read.bytes, 0);
    assert_int_equal(reader.parts[1].read.next_offset, 2);
    fetch_release(&reader.fetch);
}

static void a_position_between_high_watermark_and_log_end_waits(void **state)
{
    struct rig *rig = *state;
    struct consumer reader;
    struct rig_produce sent;
    rig->hold_high_watermark = true;
    rig_send(rig, &sent, rig_partition(rig, "orders", 0), ACKS_NONE,
             rig_batch(rig, "w", 5, -1, -1));
    stepped_loop_settle(&rig->fake);
    read_from(rig, &reader, 1, 3, 500000);
    run(rig, &reader);
    assert_int_equal(reader.calls, 0);
    stepped_loop_advance(&rig->fake, 500000);
    assert_int_equal(reader.calls, 1);
    assert_int_equal(reader.parts[0].status, STATUS_OK);
    assert_int_equal(reader.fetch.bytes, 0);
    fetch_release(&reader.fetch);
#ifdef MOONMQ_MUTANTS
    mutant_set(11);
    read_from(rig, &reader, 1, 3, 0);
    run(rig, &reader);
    mutant_set(0);
    assert_int_equal(reader.parts[0].status, STATUS_OUT_OF_RANGE);
    fetch_release(&reader.fetch);
#endif
}

static void a_position_past_the_log_end_is_out_of_range_at_once(void **state)
{
    struct rig *rig = *state;
    struct consumer reader;
    read_from(rig, &reader, 2, 1, 500000);
    reader.parts[1].offset = 0;
    run(rig, &reader);
    assert_int_equal(reader.calls, 1);
    assert_int_equal(reader.parts[0].status, STATUS_OUT_OF_RANGE);
    assert_int_equal(reader.parts[0].high_watermark, -1);
    assert_int_equal(reader.parts[1].status, STATUS_OK);
    fetch_release(&reader.fetch);
}

static void too_few_bytes_wait_until_there_are_enough(void **state)
{
    struct rig *rig = *state;
    struct consumer reader;
    rig_write(rig, "orders", 0, "v", 1);
    read_from(rig, &reader, 1, 0, 500000);
    reader.fetch.bytes_min = 150;
    run(rig, &reader);
    rig_write(rig, "orders", 0, "v", 1);
    assert_int_equal(reader.calls, 0);
    rig_write(rig, "orders", 0, "v", 1);
    assert_int_equal(reader.calls, 1);
    assert_int_equal(reader.parts[0].read.next_offset, 3);
    fetch_release(&reader.fetch);
}

static void at_the_end_of_its_wait_it_gets_what_there_is(void **state)
{
    struct rig *rig = *state;
    struct consumer reader;
    rig_write(rig, "orders", 0, "v", 1);
    read_from(rig, &reader, 1, 0, 500000);
    reader.fetch.bytes_min = 100000;
    run(rig, &reader);
    stepped_loop_advance(&rig->fake, 499999);
    assert_int_equal(reader.calls, 0);
    stepped_loop_advance(&rig->fake, 1);
    assert_int_equal(reader.calls, 1);
    assert_int_equal(reader.parts[0].read.next_offset, 1);
    fetch_release(&reader.fetch);
}

static void the_first_partition_with_data_gives_a_batch_however_large(void **state)
{
    struct rig *rig = *state;
    struct consumer reader;
    rig_write(rig, "orders", 1, "a longer value than the limits allow", 3);
    rig_write(rig, "orders", 2, "v", 1);
    read_from(rig, &reader, 3, 0, 0);
    reader.fetch.bytes_max = 10;
    for (int i = 0; i < 3; i++)
        reader.parts[i].bytes_max = 10;
    run(rig, &reader);
    assert_int_equal(reader.parts[0].read.bytes, 0);
    assert_int_equal(reader.parts[1].read.next_offset, 3);
    assert_int_equal(reader.parts[2].read.bytes, 0);
    assert_int_equal(reader.parts[2].status, STATUS_OK);
    assert_int_equal(reader.parts[2].high_watermark, 1);
    fetch_release(&reader.fetch);
}

static void the_leader_epoch_is_checked_before_leadership(void **state)
{
    struct rig *rig = *state;
    struct consumer reader;
    rig_follow(rig, 2, 5);
    const int32_t epochs[] = {4, 5, 6};
    const enum status expected[] = {STATUS_FENCED_EPOCH, STATUS_NOT_LEADER, STATUS_UNKNOWN_EPOCH};
    for (int i = 0; i < 3; i++) {
        read_from(rig, &reader, 1, 0, 500000);
        reader.parts[0].current_epoch = epochs[i];
        run(rig, &reader);
        assert_int_equal(reader.calls, 1);
        assert_int_equal(reader.parts[0].status, expected[i]);
    }
}

static void demotion_answers_parked_ones(void **state)
{
    struct rig *rig = *state;
    struct consumer reader;
    read_from(rig, &reader, 2, 0, 500000);
    run(rig, &reader);
    rig_follow(rig, 2, 2);
    assert_int_equal(reader.calls, 1);
    assert_true(reader.fetch.leadership_lost);
    assert_int_equal(reader.parts[0].status, STATUS_NOT_LEADER);
}

static void a_leader_that_takes_over_parks_until_it_serves(void **state)
{
    struct rig *rig = *state;
    struct consumer reader;
    rig_write(rig, "orders", 0, "v", 1);
    rig_follow(rig, 2, 2);
    rig->view.leader_id = 1;
    rig->view.epoch = 3;
    broker_view_changed(rig->broker);
    read_from(rig, &reader, 1, 0, 500000);
    run(rig, &reader);
    assert_int_equal(reader.calls, 0);
    rig_lead(rig, 3);
    assert_int_equal(reader.calls, 1);
    assert_int_equal(reader.parts[0].read.next_offset, 1);
    fetch_release(&reader.fetch);
}

static void a_divergence_is_told_and_nothing_read(void **state)
{
    struct rig *rig = *state;
    struct consumer reader;
    rig_write(rig, "orders", 0, "v", 2);
    rig_follow(rig, 2, 2);
    rig_lead(rig, 4);
    rig_write(rig, "orders", 0, "v", 2);
    read_from(rig, &reader, 1, 3, 500000);
    reader.parts[0].last_fetched_epoch = 1;
    run(rig, &reader);
    assert_int_equal(reader.calls, 1);
    assert_int_equal(reader.parts[0].status, STATUS_OK);
    assert_true(reader.parts[0].diverging);
    assert_int_equal(reader.parts[0].diverging_epoch, 1);
    assert_int_equal(reader.parts[0].diverging_end_offset, 2);
    assert_int_equal(reader.fetch.bytes, 0);
    read_from(rig, &reader, 1, 2, 0);
    reader.parts[0].last_fetched_epoch = 1;
    run(rig, &reader);
    assert_false(reader.parts[0].diverging);
    assert_int_equal(reader.parts[0].read.next_offset, 4);
    fetch_release(&reader.fetch);
    read_from(rig, &reader, 1, 2, 0);
    reader.parts[0].last_fetched_epoch = 9;
    run(rig, &reader);
    assert_int_equal(reader.parts[0].status, STATUS_OUT_OF_RANGE);
}

/* F39: this leader's DataDir may be an old copy; until the set has reported nobody knows (I4). */
static void what_a_new_leader_may_lack_waits_until_its_high_watermark_is_known(void **state)
{
    struct rig *rig = *state;
    struct consumer reader, diverged;
    struct rig_produce sent;
    struct partition *partition = rig_partition(rig, "orders", 0);
    rig->hold_high_watermark = true;
    rig_send(rig, &sent, partition, ACKS_NONE, rig_batch(rig, "w", 2, -1, -1));
    stepped_loop_settle(&rig->fake);
    rig_follow(rig, 2, 2);
    rig_lead(rig, 4);
    read_from(rig, &reader, 1, 9, 500000);
    run(rig, &reader);
    read_from(rig, &diverged, 1, 9, 500000);
    diverged.parts[0].last_fetched_epoch = 3;
    run(rig, &diverged);
    assert_int_equal(reader.calls + diverged.calls, 0);
    partition_set_high_watermark(partition, 2);
    assert_int_equal(reader.calls, 1);
    assert_int_equal(reader.parts[0].status, STATUS_OUT_OF_RANGE);
    assert_int_equal(diverged.calls, 1);
    assert_true(diverged.parts[0].diverging);
}

static void an_unknown_partition_answers_at_once_beside_the_others(void **state)
{
    struct rig *rig = *state;
    struct consumer reader;
    rig_write(rig, "orders", 1, "v", 1);
    read_from(rig, &reader, 2, 0, 500000);
    reader.parts[0].partition = NULL;
    reader.parts[0].status = STATUS_UNKNOWN_TOPIC_ID;
    reader.parts[1].offset = 1;
    run(rig, &reader);
    assert_int_equal(reader.calls, 1);
    assert_int_equal(reader.parts[0].status, STATUS_UNKNOWN_TOPIC_ID);
    assert_int_equal(reader.parts[1].status, STATUS_OK);
}

static void no_partitions_answer_at_once(void **state)
{
    struct rig *rig = *state;
    struct consumer reader;
    read_from(rig, &reader, 0, 0, 500000);
    run(rig, &reader);
    assert_int_equal(reader.calls, 1);
}

static void a_cancelled_one_is_never_answered(void **state)
{
    struct rig *rig = *state;
    struct consumer reader;
    read_from(rig, &reader, 2, 0, 500000);
    run(rig, &reader);
    assert_true(broker_fetch_cancel(rig->broker, &reader.fetch));
    rig_write(rig, "orders", 0, "v", 1);
    stepped_loop_advance(&rig->fake, 600000);
    assert_int_equal(reader.calls, 0);
}

static void finish_now_gives_what_there_is(void **state)
{
    struct rig *rig = *state;
    struct consumer reader;
    rig_write(rig, "orders", 0, "v", 1);
    read_from(rig, &reader, 1, 0, 500000);
    reader.fetch.bytes_min = 100000;
    run(rig, &reader);
    broker_fetch_finish_now(rig->broker, &reader.fetch);
    assert_int_equal(reader.calls, 1);
    assert_int_equal(reader.parts[0].read.next_offset, 1);
    fetch_release(&reader.fetch);
}

static void deleting_the_topic_answers_parked_ones(void **state)
{
    struct rig *rig = *state;
    struct consumer reader;
    struct rig_answer answer = {0};
    read_from(rig, &reader, 2, 0, 500000);
    run(rig, &reader);
    broker_delete_topic(
        rig->broker,
        &(struct admin_request){.topic = "orders", .done = rig_admin_done, .context = &answer});
    stepped_loop_settle(&rig->fake);
    assert_int_equal(reader.calls, 1);
    assert_int_equal(reader.parts[0].status, STATUS_UNKNOWN_TOPIC);
    assert_null(reader.parts[0].partition);
}

/* After a restart nothing is in memory: reads come from the disk, through the executor or the page
 * cache. */
static void cold_data_comes_in_order_and_a_cancel_waits_for_the_read(void **state)
{
    struct rig *rig = *state;
    struct consumer reader;
    rig_write(rig, "orders", 0, "v", 2);
    rig_write(rig, "orders", 1, "v", 2);
    rig_restart(rig);
    rig_lead(rig, 2);
    read_from(rig, &reader, 2, 0, 500000);
    broker_fetch(rig->broker, &reader.fetch);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(reader.calls, 1);
    assert_int_equal(reader.parts[0].read.next_offset, 2);
    assert_int_equal(reader.parts[1].read.next_offset, 2);
    fetch_release(&reader.fetch);
    rig_restart(rig);
    rig_lead(rig, 3);
    read_from(rig, &reader, 2, 0, 500000);
    broker_fetch(rig->broker, &reader.fetch);
    if (reader.calls == 0 && !broker_fetch_cancel(rig->broker, &reader.fetch)) {
        stepped_loop_settle(&rig->fake);
        assert_int_equal(reader.calls, 1);
        assert_true(reader.fetch.cancelled);
    } else {
        fetch_release(&reader.fetch);
    }
}

/* ---- read_committed ---- */

static struct partition *orders(struct rig *rig)
{
    return rig_partition(rig, "orders", 0);
}

static void read_committed_from(struct rig *rig, struct consumer *reader, int64_t offset,
                                int64_t max_wait_us)
{
    read_from(rig, reader, 1, offset, max_wait_us);
    reader->fetch.read_committed = true;
    broker_fetch(rig->broker, &reader->fetch);
    stepped_loop_settle(&rig->fake);
}

static void an_open_transaction_hides_what_comes_after_it(void **state)
{
    struct rig *rig = *state;
    struct consumer reader;
    rig_write(rig, "orders", 0, "v", 2);
    rig_write_open(rig, orders(rig), 7, 0);
    rig_write(rig, "orders", 0, "v", 2);
    read_committed_from(rig, &reader, 0, 0);
    assert_int_equal(reader.parts[0].high_watermark, 5);
    assert_int_equal(reader.parts[0].last_stable_offset, 2);
    assert_int_equal(reader.parts[0].read.next_offset, 2);
    fetch_release(&reader.fetch);
    read_from(rig, &reader, 1, 0, 0); /* others see it */
    run(rig, &reader);
    assert_int_equal(reader.parts[0].read.next_offset, 5);
    assert_int_equal(reader.parts[0].aborted_count, 0);
    fetch_release(&reader.fetch);
    stepped_loop_settle(&rig->fake);
}

static void aborted_transactions_of_what_was_read_are_told(void **state)
{
    struct rig *rig = *state;
    struct consumer reader;
    rig_write_open(rig, orders(rig), 7, 0);
    rig_write_open(rig, orders(rig), 8, 0);
    rig_end(rig, orders(rig), 8, 0, true);
    rig_end(rig, orders(rig), 7, 0, false);
    read_committed_from(rig, &reader, 0, 0);
    assert_int_equal(reader.parts[0].read.next_offset, 4);
    assert_int_equal(reader.parts[0].aborted_count, 1);
    assert_int_equal(reader.parts[0].aborted[0].producer_id, 7);
    assert_int_equal(reader.parts[0].aborted[0].first_offset, 0);
    fetch_release(&reader.fetch);
    assert_null(reader.parts[0].aborted);
    rig_write(rig, "orders", 0, "v", 1);
    read_committed_from(rig, &reader, 4, 0); /* behind the marker: nothing to drop */
    assert_int_equal(reader.parts[0].aborted_count, 0);
    fetch_release(&reader.fetch);
    stepped_loop_settle(&rig->fake);
}

/* T33, and the last stable offset moves by a marker alone. */
static void a_marker_wakes_who_waits_with_the_list_of_that_moment(void **state)
{
    struct rig *rig = *state;
    struct consumer reader;
    struct rig_marker sent;
    rig_write_open(rig, orders(rig), 7, 0);
    rig_write(rig, "orders", 0, "v", 1);
    read_committed_from(rig, &reader, 0, 60000000);
    assert_int_equal(reader.calls, 0);
    rig->hold_high_watermark = true;
    rig_send_marker(rig, &sent, orders(rig), 7, 0, false);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(reader.calls, 0); /* not before the marker is committed */
    partition_set_high_watermark(orders(rig), 3);
    stepped_loop_run(&rig->fake);
    assert_int_equal(reader.calls, 1);
    assert_int_equal(reader.parts[0].last_stable_offset, 3);
    assert_int_equal(reader.parts[0].read.next_offset, 3);
    assert_int_equal(reader.parts[0].aborted_count, 1);
    fetch_release(&reader.fetch);
    stepped_loop_settle(&rig->fake);
}

static void aborted_transactions_are_known_after_a_restart(void **state)
{
    struct rig *rig = *state;
    struct consumer reader;
    rig_write_open(rig, orders(rig), 7, 0);
    rig_end(rig, orders(rig), 7, 0, false);
    uint64_t hash = partition_producers_hash(orders(rig));
    rig_restart(rig);
    assert_true(partition_producers_hash(orders(rig)) == hash);
    rig_lead(rig, 2);
    partition_set_high_watermark(orders(rig), 2);
    read_committed_from(rig, &reader, 0, 0);
    assert_int_equal(reader.parts[0].read.next_offset, 2);
    assert_int_equal(reader.parts[0].aborted_count, 1);
    fetch_release(&reader.fetch);
    stepped_loop_settle(&rig->fake);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)
/* ---- sets of watches ---- */

#define WATCHED 20

struct watcher {
    struct fetch fetch;
    struct fetch_partition parts[WATCHED];
    struct fetch_watch_set set;
    struct fetch_watch watches[WATCHED];
    struct rig *rig;
    int64_t offsets[WATCHED];
    bool waiting, in_fetch[WATCHED];
    uint32_t answers, lost;
};

static void watcher_lost(void *context)
{
    struct watcher *watcher = context;
    watcher->lost++;
    for (int i = 0; i < WATCHED; i++)
        fetch_watch_remove(&watcher->watches[i]);
}

static void watcher_gather(void *context, struct fetch *fetch)
{
    struct watcher *watcher = context;
    while (watcher->set.news != NULL) {
        uint32_t i = (uint32_t)(watcher->set.news - watcher->watches);
        struct topic *topic = catalog_find(watcher->rig->broker, "many", 4);
        struct partition *partition = topic != NULL ? topic_partition(topic, i) : NULL;
        fetch_watch_settle(&watcher->watches[i], partition);
        if (watcher->in_fetch[i]) continue;
        watcher->in_fetch[i] = true;
        fetch->partitions[fetch->partition_count++] =
            (struct fetch_partition){.partition = partition,
                                     .offset = watcher->offsets[i],
                                     .bytes_max = 1 << 20,
                                     .current_epoch = -1,
                                     .last_fetched_epoch = -1,
                                     .watch = &watcher->watches[i]};
    }
}

static void watcher_done(void *context, struct fetch *fetch)
{
    struct watcher *watcher = context;
    watcher->waiting = false;
    watcher->answers++;
    for (uint32_t i = 0; i < fetch->partition_count; i++) {
        struct fetch_partition *part = &fetch->partitions[i];
        size_t at = (size_t)(part->watch - watcher->watches);
        watcher->in_fetch[at] = false;
        if (part->status != STATUS_OK || part->offset < part->high_watermark) {
            fetch_watch_renew(part->watch);
        }
        if (part->status == STATUS_OK && part->read.bytes > 0) {
            assert_int_equal(part->offset, watcher->offsets[at]);
            watcher->offsets[at] = part->read.next_offset;
        }
    }
    fetch_release(fetch);
}

static void watch(struct watcher *watcher, struct rig *rig)
{
    *watcher = (struct watcher){.rig = rig};
    fetch_watch_set_init(&watcher->set, rig->broker, watcher_lost, watcher);
    for (int i = 0; i < WATCHED; i++)
        fetch_watch_add(&watcher->watches[i], &watcher->set);
}

static void ask_for_news(struct watcher *watcher, int64_t max_wait_us, uint32_t bytes_min)
{
    watcher->fetch = (struct fetch){.partitions = watcher->parts,
                                    .max_wait_us = max_wait_us,
                                    .bytes_min = bytes_min,
                                    .bytes_max = 1 << 20,
                                    .done = watcher_done,
                                    .context = watcher,
                                    .watches = &watcher->set,
                                    .gather = watcher_gather};
    watcher->waiting = true;
    broker_fetch(watcher->rig->broker, &watcher->fetch);
}

static uint64_t looks(struct rig *rig)
{
    struct broker_stats stats;
    broker_stats(rig->broker, &stats);
    return stats.fetch_looks;
}

static void only_partitions_with_news_are_looked_at(void **state)
{
    struct rig *rig = *state;
    static struct watcher watcher;
    rig_create(rig, "many", WATCHED);
    watch(&watcher, rig);
    ask_for_news(&watcher, 0, 1);
    assert_int_equal(looks(rig), WATCHED); /* nothing is known at first */
    ask_for_news(&watcher, 1000000, 1);
    assert_true(watcher.waiting);
    assert_int_equal(looks(rig), WATCHED);
    rig_write(rig, "many", 7, "v", 1);
    stepped_loop_settle(&rig->fake);
    assert_false(watcher.waiting);
    assert_int_equal(watcher.offsets[7], 1);
    assert_int_equal(looks(rig), WATCHED + 1);
    rig_write(rig, "many", 8, "v", 1); /* between two requests */
    ask_for_news(&watcher, 1000000, 1);
    assert_false(watcher.waiting);
    assert_int_equal(looks(rig), WATCHED + 3); /* and 7 again: whether there was more */
    watcher_lost(&watcher);
    fetch_watch_set_deinit(&watcher.set);
}

static void reader_with_a_set_misses_nothing_whatever_happens_when(void **state)
{
    struct rig *rig = *state;
    static struct watcher watcher;
    struct random random;
    int64_t written[WATCHED] = {0};
    rig_create(rig, "many", WATCHED);
    watch(&watcher, rig);
    random_seed(&random, 5);
    for (int step = 0; step < 600; step++) {
        uint32_t i = (uint32_t)random_below(&random, WATCHED);
        switch (random_below(&random, 4)) {
        case 0:
        case 1:
            rig_write(rig, "many", i, "v", 1);
            written[i]++;
            break;
        case 2: stepped_loop_advance(&rig->fake, (int64_t)random_below(&random, 300000)); break;
        default:
            if (watcher.waiting) {
                if (random_below(&random, 4) == 0) {
                    broker_fetch_finish_now(rig->broker, &watcher.fetch);
                }
            } else {
                uint32_t bytes_min = random_below(&random, 2) == 0 ? 1 : 500;
                ask_for_news(&watcher, (int64_t)random_below(&random, 400000), bytes_min);
            }
            break;
        }
    }
    stepped_loop_advance(&rig->fake, 1000000);
    assert_false(watcher.waiting);
    ask_for_news(&watcher, 0, 1);
    stepped_loop_settle(&rig->fake);
    for (uint32_t i = 0; i < WATCHED; i++)
        assert_int_equal(watcher.offsets[i], written[i]);
    assert_true(watcher.answers > 50);
    broker_demoted(rig->broker);
    assert_int_equal(watcher.lost, 1);
}

static void deleted_topic_ends_the_wait_of_a_set(void **state)
{
    struct rig *rig = *state;
    static struct watcher watcher;
    struct rig_answer answer = {0};
    rig_create(rig, "many", WATCHED);
    watch(&watcher, rig);
    ask_for_news(&watcher, 0, 1);
    ask_for_news(&watcher, 1000000, 1);
    assert_true(watcher.waiting);
    broker_delete_topic(
        rig->broker,
        &(struct admin_request){.topic = "many", .done = rig_admin_done, .context = &answer});
    stepped_loop_settle(&rig->fake);
    assert_false(watcher.waiting);
    assert_int_equal(watcher.fetch.partitions[0].status, STATUS_UNKNOWN_TOPIC);
    watcher_lost(&watcher);
    fetch_watch_set_deinit(&watcher.set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_committed_is_given_with_watermarks_of_that_moment),
        TEST(nothing_above_the_high_watermark_is_given),
        TEST(too_many_that_wait_are_answered_at_once),
        TEST(an_empty_one_waits_for_the_high_watermark_not_for_the_append),
        TEST(a_position_between_high_watermark_and_log_end_waits),
        TEST(a_position_past_the_log_end_is_out_of_range_at_once),
        TEST(too_few_bytes_wait_until_there_are_enough),
        TEST(at_the_end_of_its_wait_it_gets_what_there_is),
        TEST(the_first_partition_with_data_gives_a_batch_however_large),
        TEST(the_leader_epoch_is_checked_before_leadership),
        TEST(demotion_answers_parked_ones),
        TEST(a_leader_that_takes_over_parks_until_it_serves),
        TEST(a_divergence_is_told_and_nothing_read),
        TEST(what_a_new_leader_may_lack_waits_until_its_high_watermark_is_known),
        TEST(an_unknown_partition_answers_at_once_beside_the_others),
        TEST(no_partitions_answer_at_once),
        TEST(a_cancelled_one_is_never_answered),
        TEST(finish_now_gives_what_there_is),
        TEST(deleting_the_topic_answers_parked_ones),
        TEST(cold_data_comes_in_order_and_a_cancel_waits_for_the_read),
        TEST(an_open_transaction_hides_what_comes_after_it),
        TEST(aborted_transactions_of_what_was_read_are_told),
        TEST(a_marker_wakes_who_waits_with_the_list_of_that_moment),
        TEST(aborted_transactions_are_known_after_a_restart),
        TEST(only_partitions_with_news_are_looked_at),
        TEST(reader_with_a_set_misses_nothing_whatever_happens_when),
        TEST(deleted_topic_ends_the_wait_of_a_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
