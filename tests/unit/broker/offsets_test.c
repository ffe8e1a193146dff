#include "broker/group_coordinator.h"
#include "broker/group_tables.h"
#include "broker/partition_state.h"
#include "lib/broker_rig.h"

static int setup(void **state)
{
    struct rig *rig = *state = rig_new_leader();
    rig_create(rig, "orders", 4);
    return 0;
}

struct call {
    struct offsets_request request;
    struct committed_offset offsets[4];
    uint32_t calls;
    int64_t listed[4]; /* of a fetch of all */
};

static void call_done(void *context, struct offsets_request *request)
{
    struct call *call = context;
    call->calls++;
    for (uint32_t i = 0; request->all && i < request->offset_count && i < 4; i++) {
        call->listed[i] = request->offsets[i].offset;
    }
}

static void begin(struct call *call, const char *group, uint32_t count)
{
    *call = (struct call){
        .request = {
            .group = rig_text(group), .generation = -1, .offset_count = count, .done = call_done}};
    call->request.offsets = call->offsets;
    call->request.context = call;
    for (uint32_t i = 0; i < count; i++) {
        call->offsets[i] = (struct committed_offset){
            .topic = rig_text("orders"), .partition = (int32_t)i, .leader_epoch = -1};
    }
}

static void commit(struct rig *rig, struct call *call, int64_t offset)
{
    begin(call, "group", 2);
    call->offsets[0].offset = offset;
    call->offsets[0].metadata = rig_text("note");
    call->offsets[1].offset = offset + 1;
    call->offsets[1].leader_epoch = 1;
    broker_commit_offsets(rig->broker, &call->request);
}

static void committed(struct rig *rig, int64_t offset)
{
    struct call call;
    commit(rig, &call, offset);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(call.calls, 1);
    assert_int_equal(call.request.status, STATUS_OK);
    assert_int_equal(call.offsets[1].status, STATUS_OK);
}

static void fetch(struct rig *rig, struct call *call)
{
    begin(call, "group", 3);
    broker_fetch_offsets(rig->broker, &call->request);
}

static struct partition *group_partition(struct rig *rig)
{
    return rig_partition(rig, "__consumer_offsets", internal_partition_of(rig_text("group"), 4));
}

static void what_was_committed_is_fetched(void **state)
{
    struct rig *rig = *state;
    struct call call;
    committed(rig, 10);
    committed(rig, 20);
    fetch(rig, &call);
    assert_int_equal(call.calls, 1);
    assert_int_equal(call.request.status, STATUS_OK);
    assert_int_equal(call.offsets[0].offset, 20);
    assert_int_equal(call.offsets[0].leader_epoch, -1);
    assert_int_equal(call.offsets[1].offset, 21);
    assert_int_equal(call.offsets[1].leader_epoch, 1);
    assert_int_equal(call.offsets[2].offset, -1);
    assert_int_equal(call.offsets[2].status, STATUS_OK);
    begin(&call, "group", 0);
    call.request.all = true;
    broker_fetch_offsets(rig->broker, &call.request);
    assert_int_equal(call.request.offset_count, 2);
    assert_int_equal(call.listed[0], 20);
    assert_int_equal(call.listed[1], 21);
    begin(&call, "unknown", 1);
    broker_fetch_offsets(rig->broker, &call.request);
    assert_int_equal(call.request.status, STATUS_OK);
    assert_int_equal(call.offsets[0].offset, -1);
}

static void a_commit_is_answered_when_it_is_replicated(void **state)
{
    struct rig *rig = *state;
    struct call call;
    rig->hold_high_watermark = true;
    commit(rig, &call, 10);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(call.calls, 0);
    struct partition *partition = group_partition(rig);
    partition_set_high_watermark(partition, partition_log_end(partition));
    assert_int_equal(call.calls, 1);
    assert_int_equal(call.request.status, STATUS_OK);
}

static void an_offset_that_is_not_committed_is_not_shown(void **state)
{
    struct rig *rig = *state;
    struct call open, call;
    committed(rig, 10);
    rig->hold_high_watermark = true;
    commit(rig, &open, 99);
    stepped_loop_settle(&rig->fake);
    fetch(rig, &call);
    assert_int_equal(call.offsets[0].offset, 10);
}

static void a_read_waits_for_a_confirmation_begun_after_it(void **state)
{
    struct rig *rig = *state;
    struct call call;
    committed(rig, 10);
    rig->hold_confirm = true;
    fetch(rig, &call);
    assert_int_equal(call.calls, 0);
    rig->confirm_done(rig->confirm_context, STATUS_OK, NULL);
    assert_int_equal(call.calls, 1);
    assert_int_equal(call.offsets[0].offset, 10);
    fetch(rig, &call);
    rig->confirm_done(rig->confirm_context, STATUS_NOT_LEADER, NULL);
    assert_int_equal(call.request.status, STATUS_NOT_LEADER);
}

static void a_read_times_out_and_a_late_confirmation_is_harmless(void **state)
{
    struct rig *rig = *state;
    struct call call;
    rig->hold_confirm = true;
    fetch(rig, &call);
    stepped_loop_advance(&rig->fake, rig->settings.ack_timeout_us);
    assert_int_equal(call.calls, 1);
    assert_int_equal(call.request.status, STATUS_TIMEOUT);
    rig->confirm_done(rig->confirm_context, STATUS_OK, NULL);
    assert_int_equal(call.calls, 1);
}

/* What the predecessor acknowledged may lie above the high watermark known here (I18). */
static void a_new_leader_answers_once_its_epochs_start_is_committed(void **state)
{
    struct rig *rig = *state;
    struct call open, call;
    committed(rig, 10);
    rig->hold_high_watermark = true;
    commit(rig, &open, 50);
    stepped_loop_settle(&rig->fake);
    rig_follow(rig, 2, 2);
    assert_int_equal(open.request.status, STATUS_NOT_LEADER);
    rig_lead(rig, 3);
    fetch(rig, &call);
    assert_int_equal(call.calls, 0);
    struct partition *partition = group_partition(rig);
    partition_set_high_watermark(partition, partition_log_end(partition));
    assert_int_equal(call.calls, 1);
    assert_int_equal(call.offsets[0].offset, 50);
}

static void bad_offsets_are_refused_one_by_one(void **state)
{
    struct rig *rig = *state;
    struct call call;
    uint8_t *large = calloc(1, 4096 + 1);
    begin(&call, "group", 4);
    call.offsets[0].topic = rig_text("nowhere");
    call.offsets[1].partition = 4;
    call.offsets[2].metadata = (struct slice){large, 4096 + 1};
    call.offsets[3].offset = 7;
    broker_commit_offsets(rig->broker, &call.request);
    stepped_loop_settle(&rig->fake);
    free(large);
    assert_int_equal(call.request.status, STATUS_OK);
    assert_int_equal(call.offsets[0].status, STATUS_UNKNOWN_TOPIC);
    assert_int_equal(call.offsets[1].status, STATUS_UNKNOWN_TOPIC);
    assert_int_equal(call.offsets[2].status, STATUS_METADATA_TOO_LARGE);
    assert_int_equal(call.offsets[3].status, STATUS_OK);
}

static void offsets_survive_a_restart_with_the_same_hash(void **state)
{
    struct rig *rig = *state;
    struct call call;
    committed(rig, 10);
    uint64_t hash = broker_internal_state_hash(rig->broker, group_partition(rig));
    assert_true(hash != 0);
    rig_restart(rig);
    assert_true(broker_internal_state_hash(rig->broker, group_partition(rig)) == hash);
    rig_lead(rig, 2);
    fetch(rig, &call);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(call.request.status, STATUS_OK);
    assert_int_equal(call.offsets[0].offset, 10);
}

/* Nothing of it is in memory any more: it comes from the disk, in order. */
static void a_tail_on_disk_is_applied_as_the_high_watermark_passes(void **state)
{
    struct rig *rig = *state;
    struct call open[3], call;
    committed(rig, 10);
    rig->hold_high_watermark = true;
    for (uint32_t i = 0; i < 3; i++) {
        commit(rig, &open[i], 20 + 10 * (int64_t)i);
        stepped_loop_settle(&rig->fake);
    }
    rig_follow(rig, 2, 2);
    assert_int_equal(open[2].request.status, STATUS_NOT_LEADER);
    rig_restart(rig);
    struct partition *partition = group_partition(rig);
    assert_true(partition_high_watermark(partition) < partition_log_end(partition));
    rig_lead(rig, 9);
    fetch(rig, &call);
    partition_set_high_watermark(partition, partition_log_end(partition));
    stepped_loop_settle(&rig->fake);
    assert_false(partition_damaged(partition));
    assert_int_equal(call.calls, 1);
    assert_int_equal(call.request.status, STATUS_OK);
    assert_int_equal(call.offsets[0].offset, 40);
}

/* Until then it can't be told whether the committer still belongs to its group. */
static void a_commit_waits_until_a_new_leader_knows_its_groups(void **state)
{
    struct rig *rig = *state;
    struct call open, call;
    committed(rig, 10);
    rig->hold_high_watermark = true;
    commit(rig, &open, 20);
    stepped_loop_settle(&rig->fake);
    rig_follow(rig, 2, 2);
    rig_lead(rig, 3);
    struct partition *partition = group_partition(rig);
    int64_t end = partition_log_end(partition);
    commit(rig, &call, 30);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(partition_log_end(partition), end);
    partition_set_high_watermark(partition, end);
    stepped_loop_settle(&rig->fake);
    partition_set_high_watermark(partition, partition_log_end(partition));
    assert_int_equal(call.calls, 1);
    assert_int_equal(call.request.status, STATUS_OK);
    commit(rig, &call, 40);
    rig_follow(rig, 2, 4);
    rig_lead(rig, 5);
    commit(rig, &call, 50);
    rig_follow(rig, 2, 6);
    assert_int_equal(call.calls, 1);
    assert_int_equal(call.request.status, STATUS_NOT_LEADER);
}

static void a_follower_refuses(void **state)
{
    struct rig *rig = *state;
    struct call call;
    rig_follow(rig, 2, 2);
    commit(rig, &call, 10);
    assert_int_equal(call.request.status, STATUS_NOT_LEADER);
    fetch(rig, &call);
    assert_int_equal(call.request.status, STATUS_NOT_LEADER);
}

static void a_deleted_topics_offsets_go_with_it(void **state)
{
    struct rig *rig = *state;
    struct call call;
    struct rig_answer answer = {0};
    committed(rig, 10);
    broker_delete_topic(
        rig->broker,
        &(struct admin_request){.topic = "orders", .done = rig_admin_done, .context = &answer});
    stepped_loop_settle(&rig->fake);
    rig_create(rig, "orders", 4);
    fetch(rig, &call);
    assert_int_equal(call.offsets[0].offset, -1);
}

static void delete_orders(struct rig *rig)
{
    struct rig_answer answer = {0};
    broker_delete_topic(
        rig->broker,
        &(struct admin_request){.topic = "orders", .done = rig_admin_done, .context = &answer});
    stepped_loop_settle(&rig->fake);
    assert_int_equal(answer.status, STATUS_OK);
}

/* Deleted while the tombstones cannot be replicated; a second after they can. */
static void a_topics_offsets_go_when_there_are_replicas_again(void **state)
{
    struct rig *rig = *state;
    struct call call, renewed;
    struct rig_answer answer = {0};
    committed(rig, 10);
    broker_delete_topic(
        rig->broker,
        &(struct admin_request){.topic = "orders", .done = rig_admin_done, .context = &answer});
    rig->view.in_sync_now = 1;
    stepped_loop_settle(&rig->fake);
    rig->view.in_sync_now = 3;
    rig_create(rig, "orders", 4);
    /* What is committed for the new topic stays. */
    begin(&renewed, "group", 1);
    renewed.offsets[0].offset = 3;
    broker_commit_offsets(rig->broker, &renewed.request);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(renewed.request.status, STATUS_OK);
    stepped_loop_advance(&rig->fake, 1000000);
    fetch(rig, &call);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(call.offsets[0].offset, 3);
    assert_int_equal(call.offsets[1].offset, -1);
}

static void a_commit_that_was_on_its_way_goes_with_its_topic(void **state)
{
    struct rig *rig = *state;
    struct call late, call;
    rig->hold_high_watermark = true;
    commit(rig, &late, 10);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(late.calls, 0);
    delete_orders(rig);
    rig->hold_high_watermark = false;
    partition_set_high_watermark(group_partition(rig), partition_durable(group_partition(rig)));
    stepped_loop_settle(&rig->fake);
    assert_int_equal(late.request.status, STATUS_OK);
    stepped_loop_advance(&rig->fake, 1000000);
    rig_create(rig, "orders", 4);
    fetch(rig, &call);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(call.offsets[0].offset, -1);
}

static void a_new_leader_forgets_what_the_one_before_did_not_live_to_forget(void **state)
{
    struct rig *rig = *state;
    struct call call;
    committed(rig, 10);
    broker_pause_produce(rig->broker, true);
    delete_orders(rig);
    rig_follow(rig, 2, 2);
    stepped_loop_settle(&rig->fake);
    broker_pause_produce(rig->broker, false);
    rig_lead(rig, 3);
    rig_create(rig, "orders", 4);
    fetch(rig, &call);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(call.request.status, STATUS_OK);
    assert_int_equal(call.offsets[0].offset, -1);
}

static void a_commit_that_waits_does_not_go_to_a_new_topic_of_the_name(void **state)
{
    struct rig *rig = *state;
    struct call late, call;
    broker_pause_produce(rig->broker, true);
    commit(rig, &late, 10);
    delete_orders(rig);
    rig_create(rig, "orders", 4);
    assert_int_equal(late.calls, 0);
    broker_pause_produce(rig->broker, false);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(late.calls, 1);
    assert_int_equal(late.request.status, STATUS_NOT_READY);
    fetch(rig, &call);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(call.offsets[0].offset, -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)
static void a_commit_that_is_not_in_the_log_can_be_taken_back(void **state)
{
    struct rig *rig = *state;
    struct call open, loading, queued;
    committed(rig, 10);
    rig->hold_high_watermark = true;
    commit(rig, &open, 20);
    stepped_loop_settle(&rig->fake);
    assert_false(broker_commit_cancel(rig->broker, &open.request));
    rig_follow(rig, 2, 2);
    rig_lead(rig, 3);
    struct partition *partition = group_partition(rig);
    int64_t end = partition_log_end(partition);
    commit(rig, &loading, 30);
    assert_true(broker_commit_cancel(rig->broker, &loading.request));
    rig->hold_high_watermark = false;
    partition_set_high_watermark(partition, end);
    stepped_loop_settle(&rig->fake);
    broker_pause_produce(rig->broker, true);
    commit(rig, &queued, 40);
    assert_true(broker_commit_cancel(rig->broker, &queued.request));
    broker_pause_produce(rig->broker, false);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(loading.calls, 0);
    assert_int_equal(queued.calls, 0);
    assert_int_equal(partition_log_end(partition), end);
}

/* Groups and metadata as long as they may be, past the log; producer_id above 0: pending. */
static void fill_table(struct offsets_table *table, uint32_t first, uint32_t count,
                       int64_t producer_id)
{
    static uint8_t longest[GROUP_ID_BYTES_MAX];
    const struct slice text = {longest, sizeof(longest)};
    struct batch_builder builder;
    struct buffer key, value, batch;
    struct error error;
    struct batch_build_options options = BATCH_BUILD_PLAIN;
    options.transactional = producer_id > 0;
    if (options.transactional) options.producer_id = producer_id, options.producer_epoch = 0;
    batch_builder_init(&builder);
    buffer_init(&batch, 0);
    for (uint32_t i = 0; i < count; i++) {
        store_u32(longest, first + i);
        buffer_init(&key, 0);
        buffer_init(&value, 0);
        offset_key_encode(&key, &(struct offset_key){.group = text, .topic = rig_text("orders")});
        offset_value_encode(&value, &(struct offset_value){.leader_epoch = -1, .metadata = text});
        batch_builder_add(&builder, 1, buffer_slice(&key), buffer_slice(&value), 0,
                          (struct slice){0});
        buffer_deinit(&key);
        buffer_deinit(&value);
    }
    assert_int_equal(batch_builder_finish(&builder, &options, &batch, &error), STATUS_OK);
    assert_int_equal(group_tables_apply_batch(&(struct group_tables){.offsets = table}, batch.data,
                                              batch.bytes, &error),
                     STATUS_OK);
    batch_builder_deinit(&builder);
    buffer_deinit(&batch);
}

static void the_room_that_offsets_take_has_a_bound(void **state)
{
    struct rig *rig = *state;
    struct call call;
    committed(rig, 10);
    struct offsets_table *table = group_partition(rig)->internal->offsets;
    for (uint32_t i = 0; offsets_table_bytes(table) <= OFFSETS_BYTES_PER_PARTITION_MAX; i++)
        fill_table(table, i * 128, 128, 0);
    committed(rig, 20); /* known: it may go on */
    begin(&call, "group-more", 1);
    assert_int_equal(internal_partition_of(call.request.group, 4),
                     internal_partition_of(rig_text("group"), 4));
    broker_commit_offsets(rig->broker, &call.request);
    assert_int_equal(call.calls, 1);
    assert_int_equal(call.request.status, STATUS_TOO_LARGE);
    assert_int_equal(call.offsets[0].status, STATUS_TOO_LARGE);
}

/* ---- in a transaction ---- */

static enum status commit_in_transaction(struct rig *rig, int64_t producer_id, int16_t epoch,
                                         int64_t offset)
{
    struct call call;
    begin(&call, "group", 1);
    call.offsets[0].offset = offset;
    call.request.transactional = true;
    call.request.producer_id = producer_id;
    call.request.producer_epoch = epoch;
    broker_commit_offsets(rig->broker, &call.request);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(call.calls, 1);
    return call.request.status;
}

static enum status fetch_stable(struct rig *rig, int64_t *offset)
{
    struct call call;
    begin(&call, "group", 1);
    call.request.require_stable = true;
    broker_fetch_offsets(rig->broker, &call.request);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(call.calls, 1);
    assert_int_equal(call.request.status, STATUS_OK);
    *offset = call.offsets[0].offset;
    return call.offsets[0].status;
}

static void a_commit_in_a_transaction_is_shown_from_its_marker_on(void **state)
{
    struct rig *rig = *state;
    struct call call;
    int64_t offset;
    committed(rig, 10);
    assert_int_equal(commit_in_transaction(rig, 7, 0, 50), STATUS_OK);
    fetch(rig, &call);
    assert_int_equal(call.offsets[0].offset, 10);
    assert_int_equal(fetch_stable(rig, &offset), STATUS_UNSTABLE_OFFSET);
    assert_int_equal(offset, -1);
    rig_end(rig, group_partition(rig), 7, 0, true);
    assert_int_equal(fetch_stable(rig, &offset), STATUS_OK);
    assert_int_equal(offset, 50);
}

static void the_room_that_pending_offsets_take_has_a_bound(void **state)
{
    struct rig *rig = *state;
    struct call call;
    committed(rig, 10);
    struct offsets_table *table = group_partition(rig)->internal->offsets;
    for (uint32_t i = 0; offsets_table_pending_bytes(table) <= OFFSETS_BYTES_PER_PARTITION_MAX; i++)
        fill_table(table, i * 128, 128, 99);
    begin(&call, "group-more", 1);
    broker_commit_offsets(rig->broker, &call.request);
    assert_int_equal(call.request.status, STATUS_TOO_LARGE);
    /* A known group goes on, but not in transactions. */
    committed(rig, 20);
    assert_int_equal(commit_in_transaction(rig, 7, 0, 50), STATUS_TOO_LARGE);
}

static void an_aborted_transaction_commits_no_offset(void **state)
{
    struct rig *rig = *state;
    int64_t offset;
    committed(rig, 10);
    assert_int_equal(commit_in_transaction(rig, 7, 0, 50), STATUS_OK);
    rig_end(rig, group_partition(rig), 7, 0, false);
    assert_int_equal(fetch_stable(rig, &offset), STATUS_OK);
    assert_int_equal(offset, 10);
}

static void an_older_instance_commits_nothing(void **state)
{
    struct rig *rig = *state;
    assert_int_equal(commit_in_transaction(rig, 7, 3, 50), STATUS_OK);
    assert_int_equal(commit_in_transaction(rig, 7, 2, 60), STATUS_STALE_PRODUCER_EPOCH);
}

/* The commit was sent before its sender lost the partition to who asks now. */
static void who_asks_for_what_is_stable_waits_for_what_is_not_replicated_yet(void **state)
{
    struct rig *rig = *state;
    struct call open, call;
    committed(rig, 10);
    rig->hold_high_watermark = true;
    begin(&open, "group", 1);
    open.request.transactional = true;
    open.request.producer_id = 7;
    broker_commit_offsets(rig->broker, &open.request);
    stepped_loop_settle(&rig->fake);
    begin(&call, "group", 1);
    call.request.require_stable = true;
    broker_fetch_offsets(rig->broker, &call.request);
    assert_int_equal(call.calls, 0);
    struct partition *partition = group_partition(rig);
    partition_set_high_watermark(partition, partition_log_end(partition));
    assert_int_equal(call.calls, 1);
    assert_int_equal(call.offsets[0].status, STATUS_UNSTABLE_OFFSET);
}

static void group_deleted(void *context, enum status status, const struct error *error)
{
    (void)error;
    *(enum status *)context = status;
}

static void a_deleted_group_is_not_brought_back_by_a_transaction(void **state)
{
    struct rig *rig = *state;
    int64_t offset;
    enum status deleted = STATUS_COUNT;
    committed(rig, 10);
    assert_int_equal(commit_in_transaction(rig, 7, 0, 50), STATUS_OK);
    broker_delete_group(rig->broker, rig_text("group"), 1000000, group_deleted, &deleted);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(deleted, STATUS_OK);
    rig_end(rig, group_partition(rig), 7, 0, true);
    assert_int_equal(fetch_stable(rig, &offset), STATUS_OK);
    assert_int_equal(offset, -1);
}

static void what_is_pending_is_pending_after_a_restart(void **state)
{
    struct rig *rig = *state;
    int64_t offset;
    committed(rig, 10);
    assert_int_equal(commit_in_transaction(rig, 7, 0, 50), STATUS_OK);
    uint64_t hash = broker_internal_state_hash(rig->broker, group_partition(rig));
    rig_restart(rig);
    rig_lead(rig, 2);
    struct partition *partition = group_partition(rig);
    partition_set_high_watermark(partition, partition_log_end(partition));
    stepped_loop_settle(&rig->fake);
    assert_true(broker_internal_state_hash(rig->broker, partition) == hash);
    assert_int_equal(fetch_stable(rig, &offset), STATUS_UNSTABLE_OFFSET);
    rig_end(rig, partition, 7, 0, true);
    assert_int_equal(fetch_stable(rig, &offset), STATUS_OK);
    assert_int_equal(offset, 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_was_committed_is_fetched),
        TEST(a_commit_is_answered_when_it_is_replicated),
        TEST(an_offset_that_is_not_committed_is_not_shown),
        TEST(a_read_waits_for_a_confirmation_begun_after_it),
        TEST(a_read_times_out_and_a_late_confirmation_is_harmless),
        TEST(a_new_leader_answers_once_its_epochs_start_is_committed),
        TEST(bad_offsets_are_refused_one_by_one),
        TEST(offsets_survive_a_restart_with_the_same_hash),
        TEST(a_tail_on_disk_is_applied_as_the_high_watermark_passes),
        TEST(a_commit_waits_until_a_new_leader_knows_its_groups),
        TEST(a_follower_refuses),
        TEST(a_deleted_topics_offsets_go_with_it),
        TEST(a_topics_offsets_go_when_there_are_replicas_again),
        TEST(a_commit_that_was_on_its_way_goes_with_its_topic),
        TEST(a_new_leader_forgets_what_the_one_before_did_not_live_to_forget),
        TEST(a_commit_that_waits_does_not_go_to_a_new_topic_of_the_name),
        TEST(a_commit_that_is_not_in_the_log_can_be_taken_back),
        TEST(the_room_that_offsets_take_has_a_bound),
        TEST(the_room_that_pending_offsets_take_has_a_bound),
        TEST(a_commit_in_a_transaction_is_shown_from_its_marker_on),
        TEST(an_aborted_transaction_commits_no_offset),
        TEST(an_older_instance_commits_nothing),
        TEST(who_asks_for_what_is_stable_waits_for_what_is_not_replicated_yet),
        TEST(what_is_pending_is_pending_after_a_restart),
        TEST(a_deleted_group_is_not_brought_back_by_a_transaction),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
