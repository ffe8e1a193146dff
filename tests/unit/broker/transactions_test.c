/* The coordinator on one broker: what is on record when, who waits for whom, what a new leader
 * does. */
#include "broker/partition_state.h"
#include "broker/transaction_table.h"
#include "broker/transactions.h"

#include "lib/broker_rig.h"

#define TIMEOUT_MS 4000

static int setup(void **state)
{
    struct rig *rig = *state = rig_new_leader();
    rig_create(rig, "orders", 4);
    return 0;
}

/* ---- requests ---- */

struct call {
    struct transaction_request request;
    struct transaction_partition partitions[4];
    uint32_t calls;
};

static void call_done(void *context, struct transaction_request *request)
{
    struct call *call = context;
    assert_ptr_equal(request, &call->request);
    call->calls++;
}

static void call_begin(struct call *call, int64_t producer_id, int16_t epoch)
{
    *call = (struct call){.request = {.id = rig_text("tx"),
                                      .producer_id = producer_id,
                                      .producer_epoch = epoch,
                                      .transaction_timeout_ms = TIMEOUT_MS,
                                      .done = call_done}};
    call->request.context = call;
}

static void send_init(struct rig *rig, struct call *call)
{
    call_begin(call, -1, -1);
    broker_init_transaction(rig->broker, &call->request);
}

static void send_add(struct rig *rig, struct call *call, int64_t producer_id, int16_t epoch,
                     uint32_t partition_count)
{
    call_begin(call, producer_id, epoch);
    for (uint32_t i = 0; i < partition_count; i++) {
        call->partitions[i] = (struct transaction_partition){rig_text("orders"), (int32_t)i};
    }
    call->request.partitions = call->partitions;
    call->request.partition_count = partition_count;
    broker_add_to_transaction(rig->broker, &call->request);
}

static void send_end(struct rig *rig, struct call *call, int64_t producer_id, int16_t epoch,
                     bool commit, bool transaction_v2)
{
    call_begin(call, producer_id, epoch);
    call->request.commit = commit;
    call->request.transaction_v2 = transaction_v2;
    broker_end_transaction(rig->broker, &call->request);
}

static void assert_answered(struct rig *rig, const struct call *call, enum status status)
{
    stepped_loop_settle(&rig->fake);
    assert_int_equal(call->calls, 1);
    assert_int_equal(call->request.status, status);
}

/* A new instance; its producer id, in `epoch`. */
static int64_t init_producer(struct rig *rig, int16_t epoch)
{
    struct call call;
    send_init(rig, &call);
    assert_answered(rig, &call, STATUS_OK);
    assert_int_equal(call.request.next_producer_epoch, epoch);
    return call.request.next_producer_id;
}

static void add_partitions(struct rig *rig, int64_t producer_id, int16_t epoch, uint32_t count)
{
    struct call call;
    send_add(rig, &call, producer_id, epoch, count);
    assert_answered(rig, &call, STATUS_OK);
}

static void end_transaction(struct rig *rig, int64_t producer_id, int16_t epoch, bool commit)
{
    struct call call;
    send_end(rig, &call, producer_id, epoch, commit, false);
    assert_answered(rig, &call, STATUS_OK);
}

/* ---- batches ---- */

static void send_batch(struct rig *rig, struct rig_produce *sent, uint32_t partition,
                       int64_t producer_id, int16_t epoch, int32_t sequence,
                       enum transaction_client client)
{
    struct batch_build_options options = BATCH_BUILD_PLAIN;
    options.producer_id = producer_id;
    options.producer_epoch = epoch;
    options.base_sequence = sequence;
    options.transactional = true;
    *sent = (struct rig_produce){.produce = {.partition = rig_partition(rig, "orders", partition),
                                             .batch = rig_build(rig, "t", 1, &options),
                                             .acks = ACKS_ALL,
                                             .transactional_id = rig_text("tx"),
                                             .transaction_client = client,
                                             .done = rig_produce_done,
                                             .context = sent}};
    broker_produce(rig->broker, &sent->produce);
}

static void write_batch(struct rig *rig, uint32_t partition, int64_t producer_id, int16_t epoch,
                        int32_t sequence)
{
    struct rig_produce sent;
    send_batch(rig, &sent, partition, producer_id, epoch, sequence, TRANSACTION_CLIENT_OLD);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(sent.calls, 1);
    assert_int_equal(sent.produce.status, STATUS_OK);
}

static void assert_produced(struct rig *rig, const struct rig_produce *sent, enum status status)
{
    stepped_loop_settle(&rig->fake);
    assert_int_equal(sent->calls, 1);
    assert_int_equal(sent->produce.status, status);
}

/* ---- what is on record ---- */

static struct partition *state_partition(struct rig *rig)
{
    return rig_partition(rig, "__transaction_state", internal_partition_of(rig_text("tx"), 4));
}

static enum transaction_status status_now(struct rig *rig)
{
    const struct transaction_value *value =
        broker_describe_transaction(rig->broker, rig_text("tx"));
    assert_non_null(value);
    return value->status;
}

static int64_t log_end(struct rig *rig, uint32_t partition)
{
    return partition_log_end(rig_partition(rig, "orders", partition));
}

static void release(struct partition *partition)
{
    partition_set_high_watermark(partition, partition_log_end(partition));
}

/* ---- the whole way ---- */

static void a_commit_makes_what_was_written_stable(void **state)
{
    struct rig *rig = *state;
    struct partition *partition = rig_partition(rig, "orders", 0);
    int64_t producer_id = init_producer(rig, 0);
    add_partitions(rig, producer_id, 0, 1);
    assert_int_equal(status_now(rig), TRANSACTION_ONGOING);
    write_batch(rig, 0, producer_id, 0, 0);
    assert_int_equal(partition_last_stable_offset(partition), 0);
    end_transaction(rig, producer_id, 0, true);
    assert_int_equal(status_now(rig), TRANSACTION_COMPLETE_COMMIT);
    assert_int_equal(log_end(rig, 0), 2);
    assert_int_equal(partition_last_stable_offset(partition), 2);
    /* And once more, with the same epoch. */
    add_partitions(rig, producer_id, 0, 2);
    write_batch(rig, 0, producer_id, 0, 1);
    write_batch(rig, 1, producer_id, 0, 0);
    end_transaction(rig, producer_id, 0, false);
    assert_int_equal(status_now(rig), TRANSACTION_COMPLETE_ABORT);
    assert_int_equal(partition_last_stable_offset(partition), 4);
    assert_int_equal(log_end(rig, 1), 2);
}

static void no_marker_is_written_before_the_outcome_is_replicated(void **state)
{
    struct rig *rig = *state;
    struct call call;
    int64_t producer_id = init_producer(rig, 0);
    add_partitions(rig, producer_id, 0, 1);
    write_batch(rig, 0, producer_id, 0, 0);
    rig->hold_high_watermark = true;
    send_end(rig, &call, producer_id, 0, true, false);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(call.calls, 0);
    assert_int_equal(log_end(rig, 0), 1);
    assert_int_equal(status_now(rig), TRANSACTION_ONGOING);
    release(state_partition(rig));
    assert_int_equal(call.calls, 1);
    assert_int_equal(call.request.status, STATUS_OK);
    assert_int_equal(log_end(rig, 0), 2);
    /* Nor is it complete before its markers are. */
    stepped_loop_settle(&rig->fake);
    release(state_partition(rig));
    assert_int_equal(status_now(rig), TRANSACTION_PREPARE_COMMIT);
    release(rig_partition(rig, "orders", 0));
    stepped_loop_settle(&rig->fake);
    release(state_partition(rig));
    assert_int_equal(status_now(rig), TRANSACTION_COMPLETE_COMMIT);
}

static void what_comes_next_waits_until_the_end_is_complete(void **state)
{
    struct rig *rig = *state;
    struct call end, add;
    struct rig_produce late;
    int64_t producer_id = init_producer(rig, 0);
    add_partitions(rig, producer_id, 0, 1);
    write_batch(rig, 0, producer_id, 0, 0);
    rig->hold_high_watermark = true;
    send_end(rig, &end, producer_id, 0, true, false);
    release(state_partition(rig));
    assert_int_equal(end.calls, 1);
    send_add(rig, &add, producer_id, 0, 2);
    send_batch(rig, &late, 1, producer_id, 0, 0, TRANSACTION_CLIENT_OLD);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(add.calls, 0);
    assert_int_equal(late.calls, 0);
    rig->hold_high_watermark = false;
    release(rig_partition(rig, "orders", 0));
    assert_answered(rig, &add, STATUS_OK);
    /* In order: the batch came behind the request that adds its partition. */
    assert_produced(rig, &late, STATUS_OK);
    assert_int_equal(status_now(rig), TRANSACTION_ONGOING);
}

static void who_waits_too_long_is_told_so(void **state)
{
    struct rig *rig = *state;
    struct call end, add;
    struct rig_produce batch;
    int64_t producer_id = init_producer(rig, 0);
    add_partitions(rig, producer_id, 0, 1);
    write_batch(rig, 0, producer_id, 0, 0);
    rig->hold_high_watermark = true;
    send_end(rig, &end, producer_id, 0, true, false);
    release(state_partition(rig));
    send_add(rig, &add, producer_id, 0, 1);
    send_batch(rig, &batch, 0, producer_id, 0, 1, TRANSACTION_CLIENT_OLD);
    stepped_loop_advance(&rig->fake, rig->settings.ack_timeout_us);
    assert_answered(rig, &add, STATUS_CONCURRENT_TRANSACTIONS);
    assert_produced(rig, &batch, STATUS_CONCURRENT_TRANSACTIONS);
    assert_int_equal(log_end(rig, 0), 2);
}

/* ---- records that cannot be written (T28, T29) ---- */

static void a_record_that_could_not_be_written_leaves_nothing_behind(void **state)
{
    struct rig *rig = *state;
    struct call call;
    int64_t producer_id = init_producer(rig, 0);
    rig->view.in_sync_now = 1;
    send_add(rig, &call, producer_id, 0, 1);
    assert_answered(rig, &call, STATUS_NOT_ENOUGH_REPLICAS);
    send_init(rig, &call);
    assert_answered(rig, &call, STATUS_NOT_ENOUGH_REPLICAS);
    rig->view.in_sync_now = 3;
    assert_int_equal(status_now(rig), TRANSACTION_EMPTY);
    add_partitions(rig, producer_id, 0, 1);
    write_batch(rig, 0, producer_id, 0, 0);
    end_transaction(rig, producer_id, 0, true);
}

static void a_record_that_is_late_still_counts_when_it_is_replicated(void **state)
{
    struct rig *rig = *state;
    struct call call, again;
    int64_t producer_id = init_producer(rig, 0);
    add_partitions(rig, producer_id, 0, 1);
    rig->hold_high_watermark = true;
    send_end(rig, &call, producer_id, 0, true, false);
    stepped_loop_advance(&rig->fake, rig->settings.ack_timeout_us);
    assert_answered(rig, &call, STATUS_TIMEOUT);
    /* The client asks again; the record of its first try is the outcome. */
    send_end(rig, &again, producer_id, 0, true, false);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(again.calls, 0);
    rig->hold_high_watermark = false;
    release(state_partition(rig));
    assert_answered(rig, &again, STATUS_OK);
    assert_int_equal(status_now(rig), TRANSACTION_COMPLETE_COMMIT);
}

/* The outcome is decided: it is carried out when there are replicas again. */
static void completion_goes_on_when_there_are_replicas_again(void **state)
{
    struct rig *rig = *state;
    struct call call;
    int64_t producer_id = init_producer(rig, 0);
    add_partitions(rig, producer_id, 0, 1);
    write_batch(rig, 0, producer_id, 0, 0);
    rig->hold_high_watermark = true;
    send_end(rig, &call, producer_id, 0, true, false);
    release(state_partition(rig));
    stepped_loop_settle(&rig->fake);
    rig->view.in_sync_now = 1;
    broker_view_changed(rig->broker);
    release(rig_partition(rig, "orders", 0));
    stepped_loop_advance(&rig->fake, 1000000);
    assert_int_equal(status_now(rig), TRANSACTION_PREPARE_COMMIT);
    rig->view.in_sync_now = 3;
    rig->hold_high_watermark = false;
    broker_view_changed(rig->broker);
    stepped_loop_advance(&rig->fake, 1000000);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(status_now(rig), TRANSACTION_COMPLETE_COMMIT);
    assert_int_equal(log_end(rig, 0), 2);
}

/* ---- fences ---- */

static void a_second_instance_aborts_what_the_first_left_and_fences_it(void **state)
{
    struct rig *rig = *state;
    struct call call;
    struct rig_produce late;
    int64_t producer_id = init_producer(rig, 0);
    add_partitions(rig, producer_id, 0, 1);
    write_batch(rig, 0, producer_id, 0, 0);
    /* One epoch for the fence, one for the new instance. */
    assert_int_equal(init_producer(rig, 2), producer_id);
    assert_int_equal(status_now(rig), TRANSACTION_EMPTY);
    assert_int_equal(partition_last_stable_offset(rig_partition(rig, "orders", 0)), 2);
    send_add(rig, &call, producer_id, 0, 1);
    assert_answered(rig, &call, STATUS_PRODUCER_FENCED);
    send_end(rig, &call, producer_id, 0, true, false);
    assert_answered(rig, &call, STATUS_PRODUCER_FENCED);
    send_batch(rig, &late, 0, producer_id, 0, 1, TRANSACTION_CLIENT_OLD);
    assert_produced(rig, &late, STATUS_STALE_PRODUCER_EPOCH);
    /* Also where the partition itself never heard of the new epoch. */
    send_batch(rig, &late, 3, producer_id, 0, 0, TRANSACTION_CLIENT_V2);
    assert_produced(rig, &late, STATUS_STALE_PRODUCER_EPOCH);
}

static void a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced(void **state)
{
    struct rig *rig = *state;
    struct call call;
    struct rig_produce late;
    int64_t producer_id = init_producer(rig, 0);
    add_partitions(rig, producer_id, 0, 1);
    write_batch(rig, 0, producer_id, 0, 0);
    stepped_loop_advance(&rig->fake, (TIMEOUT_MS - 1) * 1000);
    assert_int_equal(status_now(rig), TRANSACTION_ONGOING);
    stepped_loop_advance(&rig->fake, 1000);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(status_now(rig), TRANSACTION_COMPLETE_ABORT);
    assert_int_equal(partition_last_stable_offset(rig_partition(rig, "orders", 0)), 2);
    send_batch(rig, &late, 0, producer_id, 0, 1, TRANSACTION_CLIENT_OLD);
    assert_produced(rig, &late, STATUS_STALE_PRODUCER_EPOCH);
    send_end(rig, &call, producer_id, 0, true, false);
    assert_answered(rig, &call, STATUS_PRODUCER_FENCED);
    init_producer(rig, 2);
}

/* A further partition does not begin it anew, nor does a clock that is put back (T28). */
static void nothing_makes_a_transaction_immortal(void **state)
{
    struct rig *rig = *state;
    int64_t producer_id = init_producer(rig, 0);
    add_partitions(rig, producer_id, 0, 1);
    rig->fake.wall_ms -= 86400000;
    stepped_loop_advance(&rig->fake, TIMEOUT_MS / 2 * 1000);
    add_partitions(rig, producer_id, 0, 2);
    stepped_loop_advance(&rig->fake, TIMEOUT_MS / 2 * 1000);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(status_now(rig), TRANSACTION_COMPLETE_ABORT);
}

/* ---- batches at their append (T26) ---- */

static void a_late_batch_opens_no_transaction(void **state)
{
    struct rig *rig = *state;
    struct rig_produce late;
    int64_t producer_id = init_producer(rig, 0);
    add_partitions(rig, producer_id, 0, 1);
    write_batch(rig, 0, producer_id, 0, 0);
    end_transaction(rig, producer_id, 0, false);
    send_batch(rig, &late, 0, producer_id, 0, 1, TRANSACTION_CLIENT_OLD);
    assert_produced(rig, &late, STATUS_INVALID_TXN_STATE);
    send_batch(rig, &late, 0, producer_id, 0, 1, TRANSACTION_CLIENT_ABORTABLE);
    assert_produced(rig, &late, STATUS_TXN_ABORTABLE);
    assert_int_equal(partition_last_stable_offset(rig_partition(rig, "orders", 0)), 2);
    /* One that is there is not refused for what has changed since. */
    send_batch(rig, &late, 0, producer_id, 0, 0, TRANSACTION_CLIENT_OLD);
    assert_produced(rig, &late, STATUS_OK);
    assert_true(late.produce.duplicate);
}

static void batches_of_version_2_add_their_partitions_with_one_record(void **state)
{
    struct rig *rig = *state;
    struct rig_produce sent[3];
    struct call end;
    int64_t producer_id = init_producer(rig, 0);
    int64_t before = partition_log_end(state_partition(rig));
    send_batch(rig, &sent[0], 0, producer_id, 0, 0, TRANSACTION_CLIENT_V2);
    send_batch(rig, &sent[1], 1, producer_id, 0, 0, TRANSACTION_CLIENT_V2);
    send_batch(rig, &sent[2], 0, producer_id, 0, 1, TRANSACTION_CLIENT_V2);
    assert_int_equal(log_end(rig, 0), 0);
    for (int i = 0; i < 3; i++)
        assert_produced(rig, &sent[i], STATUS_OK);
    assert_int_equal(sent[2].produce.base_offset, 1);
    assert_int_equal(partition_log_end(state_partition(rig)), before + 1);
    send_end(rig, &end, producer_id, 0, true, true);
    assert_answered(rig, &end, STATUS_OK);
    assert_int_equal(end.request.next_producer_id, producer_id);
    assert_int_equal(end.request.next_producer_epoch, 1);
    assert_int_equal(log_end(rig, 0), 3);
    assert_int_equal(log_end(rig, 1), 2);
    /* The next one begins with the epoch that the end gave. */
    send_batch(rig, &sent[0], 0, producer_id, 1, 0, TRANSACTION_CLIENT_V2);
    assert_produced(rig, &sent[0], STATUS_OK);
    send_batch(rig, &sent[1], 0, producer_id, 0, 2, TRANSACTION_CLIENT_V2);
    assert_produced(rig, &sent[1], STATUS_STALE_PRODUCER_EPOCH);
}

static void a_batch_whose_client_is_gone_does_not_hold_the_others_up(void **state)
{
    struct rig *rig = *state;
    struct rig_produce gone, stays;
    int64_t producer_id = init_producer(rig, 0);
    send_batch(rig, &gone, 0, producer_id, 0, 0, TRANSACTION_CLIENT_V2);
    send_batch(rig, &stays, 1, producer_id, 0, 0, TRANSACTION_CLIENT_V2);
    broker_produce_cancel(rig->broker, &gone.produce);
    assert_produced(rig, &stays, STATUS_OK);
    assert_int_equal(gone.calls, 0);
    assert_int_equal(log_end(rig, 0), 0);
}

static void batches_fail_with_the_record_that_would_add_their_partition(void **state)
{
    struct rig *rig = *state;
    struct rig_produce sent[2];
    int64_t producer_id = init_producer(rig, 0);
    send_batch(rig, &sent[0], 0, producer_id, 0, 0, TRANSACTION_CLIENT_V2);
    send_batch(rig, &sent[1], 1, producer_id, 0, 0, TRANSACTION_CLIENT_V2);
    rig->view.in_sync_now = 1;
    assert_produced(rig, &sent[0], STATUS_NOT_ENOUGH_REPLICAS);
    assert_produced(rig, &sent[1], STATUS_NOT_ENOUGH_REPLICAS);
    assert_int_equal(log_end(rig, 0), 0);
}

/* ---- other leaders ---- */

static void follow_and_lead(struct rig *rig, int32_t epoch)
{
    rig_follow(rig, 2, epoch);
    rig_lead(rig, epoch + 1);
}

static void a_new_leader_completes_what_was_prepared(void **state)
{
    struct rig *rig = *state;
    struct call end, add;
    int64_t producer_id = init_producer(rig, 0);
    add_partitions(rig, producer_id, 0, 2);
    write_batch(rig, 0, producer_id, 0, 0);
    rig->hold_high_watermark = true;
    send_end(rig, &end, producer_id, 0, true, false);
    release(state_partition(rig));
    stepped_loop_settle(&rig->fake);
    assert_int_equal(end.calls, 1);
    release(rig_partition(rig, "orders", 0)); /* one marker is replicated, the other is not */
    assert_int_equal(status_now(rig), TRANSACTION_PREPARE_COMMIT);
    follow_and_lead(rig, 2);
    /* Only this id waits, and no longer than it takes. */
    send_add(rig, &add, producer_id, 0, 1);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(add.calls, 0);
    rig->hold_high_watermark = false;
    release(rig_partition(rig, "orders", 1));
    assert_answered(rig, &add, STATUS_OK);
    /* One marker a transaction and partition (I16). */
    assert_int_equal(log_end(rig, 0), 2);
    assert_int_equal(log_end(rig, 1), 1);
}

static void a_new_leader_gives_a_lost_answer_again(void **state)
{
    struct rig *rig = *state;
    struct call call;
    int64_t producer_id = init_producer(rig, 0);
    for (int32_t i = 0; i < 2; i++) {
        call_begin(&call, producer_id, 0);
        broker_init_transaction(rig->broker, &call.request);
        assert_answered(rig, &call, STATUS_OK);
        assert_int_equal(call.request.next_producer_id, producer_id);
        assert_int_equal(call.request.next_producer_epoch, 1);
        follow_and_lead(rig, 2 + 2 * i);
    }
    init_producer(rig, 2); /* another instance: now it is fenced */
    call_begin(&call, producer_id, 1);
    broker_init_transaction(rig->broker, &call.request);
    assert_answered(rig, &call, STATUS_PRODUCER_FENCED);
}

/* The leader that admitted it has aborted what was ongoing, and lived no longer than that. */
static void a_producer_that_went_on_from_an_open_transaction_may_ask_again(void **state)
{
    struct rig *rig = *state;
    struct call call, again;
    int64_t producer_id = init_producer(rig, 0);
    add_partitions(rig, producer_id, 0, 1);
    rig->hold_high_watermark = true;
    call_begin(&call, producer_id, 0);
    broker_init_transaction(rig->broker, &call.request);
    stepped_loop_settle(&rig->fake);
    follow_and_lead(rig, 2);
    assert_int_equal(call.calls, 1);
    release(state_partition(rig));
    rig->hold_high_watermark = false;
    for (int32_t i = 0; i < 2; i++) {
        call_begin(&again, producer_id, 0);
        broker_init_transaction(rig->broker, &again.request);
        assert_answered(rig, &again, STATUS_OK);
        assert_int_equal(again.request.next_producer_id, producer_id);
        assert_int_equal(again.request.next_producer_epoch, 2);
    }
}

static void ids_are_served_when_what_predecessors_left_is_applied(void **state)
{
    struct rig *rig = *state;
    struct call end, again;
    struct rig_produce batch;
    int64_t producer_id = init_producer(rig, 0);
    add_partitions(rig, producer_id, 0, 1);
    rig->hold_high_watermark = true;
    send_end(rig, &end, producer_id, 0, true, false);
    stepped_loop_settle(&rig->fake);
    follow_and_lead(rig, 2);
    assert_answered(rig, &end, STATUS_NOT_LEADER);
    send_end(rig, &again, producer_id, 0, true, false);
    send_batch(rig, &batch, 0, producer_id, 0, 0, TRANSACTION_CLIENT_OLD);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(again.calls, 0);
    assert_int_equal(batch.calls, 0);
    rig->hold_high_watermark = false;
    release(state_partition(rig));
    assert_answered(rig, &again, STATUS_OK);
    assert_produced(rig, &batch, STATUS_INVALID_TXN_STATE);
    assert_int_equal(status_now(rig), TRANSACTION_COMPLETE_COMMIT);
}

static void a_new_leader_times_a_transaction_by_its_recorded_start(void **state)
{
    struct rig *rig = *state;
    int64_t producer_id = init_producer(rig, 0);
    add_partitions(rig, producer_id, 0, 1);
    stepped_loop_advance(&rig->fake, TIMEOUT_MS / 2 * 1000);
    follow_and_lead(rig, 2);
    assert_int_equal(status_now(rig), TRANSACTION_ONGOING);
    stepped_loop_advance(&rig->fake, TIMEOUT_MS / 2 * 1000);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(status_now(rig), TRANSACTION_COMPLETE_ABORT);
}

static void a_session_has_no_time_out_but_ends_with_its_leader(void **state)
{
    struct rig *rig = *state;
    struct call call;
    call_begin(&call, -1, -1);
    call.request.session = true;
    broker_init_transaction(rig->broker, &call.request);
    assert_answered(rig, &call, STATUS_OK);
    int64_t producer_id = call.request.next_producer_id;
    add_partitions(rig, producer_id, 0, 1);
    stepped_loop_advance(&rig->fake, INT64_C(86400000000));
    assert_int_equal(status_now(rig), TRANSACTION_ONGOING);
    follow_and_lead(rig, 2);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(status_now(rig), TRANSACTION_COMPLETE_ABORT);
}

static void a_session_that_is_gone_is_aborted(void **state)
{
    struct rig *rig = *state;
    int64_t producer_id = init_producer(rig, 0);
    add_partitions(rig, producer_id, 0, 1);
    broker_abandon_transaction(rig->broker, rig_text("tx"), producer_id, 9);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(status_now(rig), TRANSACTION_ONGOING);
    broker_abandon_transaction(rig->broker, rig_text("tx"), producer_id, 0);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(status_now(rig), TRANSACTION_COMPLETE_ABORT);
}

static void an_administrators_abort_needs_no_producer(void **state)
{
    struct rig *rig = *state;
    struct call call;
    int64_t producer_id = init_producer(rig, 0);
    call_begin(&call, -1, -1);
    broker_abort_transaction(rig->broker, &call.request);
    assert_answered(rig, &call, STATUS_INVALID_TXN_STATE);
    add_partitions(rig, producer_id, 0, 1);
    call_begin(&call, -1, -1);
    broker_abort_transaction(rig->broker, &call.request);
    assert_answered(rig, &call, STATUS_OK);
    assert_int_equal(status_now(rig), TRANSACTION_COMPLETE_ABORT);
}

static void who_waits_hears_of_the_loss_of_leadership(void **state)
{
    struct rig *rig = *state;
    struct call end, add;
    struct rig_produce batch;
    int64_t producer_id = init_producer(rig, 0);
    add_partitions(rig, producer_id, 0, 1);
    rig->hold_high_watermark = true;
    send_end(rig, &end, producer_id, 0, true, false);
    send_add(rig, &add, producer_id, 0, 1);
    send_batch(rig, &batch, 0, producer_id, 0, 0, TRANSACTION_CLIENT_OLD);
    stepped_loop_settle(&rig->fake);
    rig_follow(rig, 2, 2);
    assert_answered(rig, &end, STATUS_NOT_LEADER);
    assert_answered(rig, &add, STATUS_NOT_LEADER);
    assert_produced(rig, &batch, STATUS_NOT_LEADER);
    send_init(rig, &add);
    assert_answered(rig, &add, STATUS_NOT_LEADER);
}

static void transactions_survive_a_restart_with_the_same_hash(void **state)
{
    struct rig *rig = *state;
    int64_t producer_id = init_producer(rig, 0);
    add_partitions(rig, producer_id, 0, 3);
    uint64_t hash = broker_internal_state_hash(rig->broker, state_partition(rig));
    assert_true(hash != 0);
    rig_restart(rig);
    assert_true(broker_internal_state_hash(rig->broker, state_partition(rig)) == hash);
    rig_lead(rig, 2);
    end_transaction(rig, producer_id, 0, true);
    assert_int_equal(status_now(rig), TRANSACTION_COMPLETE_COMMIT);
}

/* ---- the rest ---- */

static void a_deleted_topic_does_not_block_the_end(void **state)
{
    struct rig *rig = *state;
    struct rig_answer answer = {0};
    int64_t producer_id = init_producer(rig, 0);
    add_partitions(rig, producer_id, 0, 2);
    write_batch(rig, 0, producer_id, 0, 0);
    broker_delete_topic(
        rig->broker,
        &(struct admin_request){.topic = "orders", .done = rig_admin_done, .context = &answer});
    stepped_loop_settle(&rig->fake);
    assert_int_equal(answer.status, STATUS_OK);
    end_transaction(rig, producer_id, 0, true);
    assert_int_equal(status_now(rig), TRANSACTION_COMPLETE_COMMIT);
}

static void a_held_batch_hears_that_its_topic_is_gone(void **state)
{
    struct rig *rig = *state;
    struct rig_answer answer = {0};
    struct rig_produce sent;
    int64_t producer_id = init_producer(rig, 0);
    rig->hold_high_watermark = true;
    send_batch(rig, &sent, 0, producer_id, 0, 0, TRANSACTION_CLIENT_V2);
    broker_delete_topic(
        rig->broker,
        &(struct admin_request){.topic = "orders", .done = rig_admin_done, .context = &answer});
    assert_produced(rig, &sent, STATUS_UNKNOWN_TOPIC);
}

static void an_id_that_nobody_uses_is_forgotten(void **state)
{
    struct rig *rig = *state;
    struct call call;
    int64_t producer_id = init_producer(rig, 0);
    stepped_loop_advance(&rig->fake, rig->settings.transactional_id_expiration_ms * 1000 / 2);
    stepped_loop_settle(&rig->fake);
    assert_non_null(broker_describe_transaction(rig->broker, rig_text("tx")));
    stepped_loop_advance(&rig->fake,
                         rig->settings.transactional_id_expiration_ms * 1000 / 2 + 3700000000);
    stepped_loop_settle(&rig->fake);
    assert_null(broker_describe_transaction(rig->broker, rig_text("tx")));
    send_add(rig, &call, producer_id, 0, 1);
    assert_answered(rig, &call, STATUS_PRODUCER_ID_MAPPING);
    assert_true(init_producer(rig, 0) != producer_id);
}

static void a_producer_that_has_just_begun_is_not_forgotten(void **state)
{
    struct rig *rig = *state;
    struct call call;
    int64_t producer_id = init_producer(rig, 0);
    stepped_loop_advance(&rig->fake,
                         rig->settings.transactional_id_expiration_ms * 1000 - 1800000000);
    stepped_loop_settle(&rig->fake);
    assert_non_null(broker_describe_transaction(rig->broker, rig_text("tx")));
    rig->hold_high_watermark = true;
    /* Under way while the ticks find it old: again and again, as none is answered in time. */
    send_init(rig, &call);
    stepped_loop_advance(&rig->fake, 3 * INT64_C(3600000000));
    stepped_loop_settle(&rig->fake);
    rig->hold_high_watermark = false;
    release(state_partition(rig));
    stepped_loop_settle(&rig->fake);
    const struct transaction_value *value =
        broker_describe_transaction(rig->broker, rig_text("tx"));
    assert_non_null(value);
    assert_int_equal(value->producer_id, producer_id);
    assert_int_equal(value->producer_epoch, 1);
}

static void ids_and_time_outs_have_bounds(void **state)
{
    struct rig *rig = *state;
    struct call call;
    call_begin(&call, -1, -1);
    call.request.id = rig_text("");
    broker_init_transaction(rig->broker, &call.request);
    assert_answered(rig, &call, STATUS_INVALID);
    const int32_t refused[] = {0, -1, rig->settings.transaction_timeout_ms_max + 1};
    for (int i = 0; i < 3; i++) {
        call_begin(&call, -1, -1);
        call.request.transaction_timeout_ms = refused[i];
        broker_init_transaction(rig->broker, &call.request);
        assert_answered(rig, &call, STATUS_TXN_TIMEOUT_RANGE);
    }
    send_add(rig, &call, 1, 0, 1);
    assert_answered(rig, &call, STATUS_PRODUCER_ID_MAPPING);
}

/* Ids as long as they may be, past the log. */
static void fill_table(struct transaction_table *table, uint32_t first, uint32_t count)
{
    static uint8_t id[TRANSACTIONAL_ID_BYTES_MAX];
    struct batch_builder builder;
    struct buffer key, value, batch;
    struct error error;
    struct transaction_value empty;
    const struct batch_build_options options = BATCH_BUILD_PLAIN;
    transaction_value_init(&empty);
    batch_builder_init(&builder);
    buffer_init(&batch, 0);
    for (uint32_t i = 0; i < count; i++) {
        store_u32(id, first + i);
        buffer_init(&key, 0);
        buffer_init(&value, 0);
        transaction_key_encode(&key, (struct slice){id, sizeof(id)});
        transaction_value_encode(&value, &empty);
        batch_builder_add(&builder, 1, buffer_slice(&key), buffer_slice(&value), 0,
                          (struct slice){0});
        buffer_deinit(&key);
        buffer_deinit(&value);
    }
    assert_int_equal(batch_builder_finish(&builder, &options, &batch, &error), STATUS_OK);
    assert_int_equal(transaction_table_apply_batch(table, batch.data, batch.bytes, &error),
                     STATUS_OK);
    batch_builder_deinit(&builder);
    buffer_deinit(&batch);
}

static void the_room_that_ids_take_has_a_bound(void **state)
{
    struct rig *rig = *state;
    struct call call;
    struct transaction_table *table = state_partition(rig)->internal->transactions;
    fill_table(table, 0, 256);
    int64_t producer_id = init_producer(rig, 0);
    fill_table(table, 256, 256);
    add_partitions(rig, producer_id, 0, 1); /* known: it may go on */
    end_transaction(rig, producer_id, 0, true);
    init_producer(rig, 1);
    call_begin(&call, -1, -1);
    call.request.id = rig_text("other");
    assert_int_equal(internal_partition_of(call.request.id, 4),
                     internal_partition_of(rig_text("tx"), 4));
    broker_init_transaction(rig->broker, &call.request);
    assert_answered(rig, &call, STATUS_LIMIT);
}

static void a_partition_that_is_not_there_is_not_added(void **state)
{
    struct rig *rig = *state;
    struct call call;
    int64_t producer_id = init_producer(rig, 0);
    call_begin(&call, producer_id, 0);
    call.partitions[0] = (struct transaction_partition){rig_text("orders"), 4};
    call.request.partitions = call.partitions;
    call.request.partition_count = 1;
    broker_add_to_transaction(rig->broker, &call.request);
    assert_answered(rig, &call, STATUS_UNKNOWN_TOPIC);
    assert_int_equal(status_now(rig), TRANSACTION_EMPTY);
}

static void count_one(void *context, struct slice id, const struct transaction_value *value)
{
    assert_int_equal(id.bytes, 2);
    assert_int_equal(value->status, TRANSACTION_EMPTY);
    ++*(uint32_t *)context;
}

static void ids_on_record_are_listed(void **state)
{
    struct rig *rig = *state;
    uint32_t count = 0;
    init_producer(rig, 0);
    broker_list_transactions(rig->broker, count_one, &count);
    assert_int_equal(count, 1);
}

/* LIMIT would say that there are too many ids, which does not pass. */
static void a_record_the_disk_has_no_room_for_is_no_limit_of_ids(void **state)
{
    struct rig *rig = *state;
    struct rig_produce sent;
    struct call call;
    rig_deinit(rig);
    rig_init(rig);
    rig->settings.unsynced_bytes_max = 100;
    rig_start(rig);
    rig_lead(rig, 1);
    rig_create(rig, "orders", 4);
    broker_pause_produce(rig->broker, true);
    sent = (struct rig_produce){
        .produce = {.partition = rig_partition(rig, "orders", 0),
                    .batch = rig_build(rig, "t", 1, &(struct batch_build_options)BATCH_BUILD_PLAIN),
                    .acks = ACKS_ALL,
                    .done = rig_produce_done,
                    .context = &sent}};
    broker_produce(rig->broker, &sent.produce);
    send_init(rig, &call);
    assert_answered(rig, &call, STATUS_NOT_ENOUGH_REPLICAS);
    broker_pause_produce(rig->broker, false);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(sent.produce.status, STATUS_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_commit_makes_what_was_written_stable),
        TEST(a_record_the_disk_has_no_room_for_is_no_limit_of_ids),
        TEST(no_marker_is_written_before_the_outcome_is_replicated),
        TEST(what_comes_next_waits_until_the_end_is_complete),
        TEST(who_waits_too_long_is_told_so),
        TEST(a_record_that_could_not_be_written_leaves_nothing_behind),
        TEST(a_record_that_is_late_still_counts_when_it_is_replicated),
        TEST(completion_goes_on_when_there_are_replicas_again),
        TEST(a_second_instance_aborts_what_the_first_left_and_fences_it),
        TEST(a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced),
        TEST(nothing_makes_a_transaction_immortal),
        TEST(a_late_batch_opens_no_transaction),
        TEST(batches_of_version_2_add_their_partitions_with_one_record),
        TEST(a_batch_whose_client_is_gone_does_not_hold_the_others_up),
        TEST(batches_fail_with_the_record_that_would_add_their_partition),
        TEST(a_new_leader_completes_what_was_prepared),
        TEST(a_new_leader_gives_a_lost_answer_again),
        TEST(a_producer_that_went_on_from_an_open_transaction_may_ask_again),
        TEST(ids_are_served_when_what_predecessors_left_is_applied),
        TEST(a_new_leader_times_a_transaction_by_its_recorded_start),
        TEST(a_session_has_no_time_out_but_ends_with_its_leader),
        TEST(a_session_that_is_gone_is_aborted),
        TEST(an_administrators_abort_needs_no_producer),
        TEST(who_waits_hears_of_the_loss_of_leadership),
        TEST(transactions_survive_a_restart_with_the_same_hash),
        TEST(a_deleted_topic_does_not_block_the_end),
        TEST(a_held_batch_hears_that_its_topic_is_gone),
        TEST(an_id_that_nobody_uses_is_forgotten),
        TEST(a_producer_that_has_just_begun_is_not_forgotten),
        TEST(ids_and_time_outs_have_bounds),
        TEST(the_room_that_ids_take_has_a_bound),
        TEST(a_partition_that_is_not_there_is_not_added),
        TEST(ids_on_record_are_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
