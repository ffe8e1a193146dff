/* transaction_write.c: one record of a transactional id on its way into `__transaction_state`.
 *
 * It is under way (`pending`) from the decision until it is applied, at most one an id. What could
 * not be appended leaves nothing behind. What is in the log stays pending even when its request was
 * told that it took too long: it may still be committed, and only the log knows; should the log be
 * cut below it (a group of one that ran out of space), it is no more.  T28, T29.            */
#include <utlist.h>

#include "broker/transactions_state.h"

static struct shared_bytes *record_batch(struct slice id, const struct transaction_value *value,
                                         int64_t now_ms)
{
    struct batch_builder builder;
    struct buffer key_bytes, value_bytes, bytes;
    struct error error;
    struct shared_bytes *batch = NULL;
    const struct batch_build_options options = BATCH_BUILD_PLAIN;
    buffer_init(&key_bytes, 0);
    buffer_init(&value_bytes, 0);
    buffer_init(&bytes, 0);
    batch_builder_init(&builder);
    transaction_key_encode(&key_bytes, id);
    if (value != NULL) transaction_value_encode(&value_bytes, value);
    batch_builder_add(&builder, now_ms, buffer_slice(&key_bytes),
                      value != NULL ? buffer_slice(&value_bytes) : (struct slice){0}, 0,
                      (struct slice){0});
    enum status status = batch_builder_finish(&builder, &options, &bytes, &error);
    if (status == STATUS_OK) batch = shared_bytes_copy(bytes.data, bytes.bytes);
    batch_builder_deinit(&builder);
    buffer_deinit(&bytes);
    buffer_deinit(&value_bytes);
    buffer_deinit(&key_bytes);
    return batch;
}

static void set_unapplied(struct live_transaction *live, bool unapplied)
{
    struct transactions *transactions = live->broker->transactions;
    if (live->unapplied == unapplied) return;
    live->unapplied = unapplied;
    if (unapplied) {
        DL_APPEND2(transactions->unapplied, live, previous_unapplied, next_unapplied);
    } else {
        DL_DELETE2(transactions->unapplied, live, previous_unapplied, next_unapplied);
    }
}

void live_forget_pending(struct live_transaction *live)
{
    set_unapplied(live, false);
    live->pending = false;
}

static void answer_pending(struct live_transaction *live, enum status status,
                           const struct error *error)
{
    struct transaction_request *request = live->pending_for;
    if (request == NULL) return;
    live->pending_for = NULL;
    deadlines_remove(&live->broker->deadlines, &request->deadline);
    if (error != NULL) request->error = *error;
    if (status == STATUS_OK) {
        request->next_producer_id = live->pending_producer_id;
        request->next_producer_epoch = live->pending_producer_epoch;
    }
    transaction_request_finish(request, status);
}

/* Those whose partitions were in the record that could not be written. */
static void fail_gathered(struct live_transaction *live, const struct produce *failed)
{
    struct transaction_wait *wait = live->waiting;
    while (wait != NULL && !wait->gathered)
        wait = wait->next;
    while (wait != NULL) {
        live_fail_wait(live, wait, failed->status, failed->error.text);
        for (wait = live->waiting; wait != NULL && !wait->gathered;)
            wait = wait->next;
    }
}

/* Nothing was written: as if it had not been decided. */
static void write_failed(struct live_transaction *live, struct produce *produce)
{
    bool wanted = live->pending_for != NULL;
    /* A disk that is behind passes; LIMIT is for who has too many ids or partitions. */
    if (produce->status == STATUS_LIMIT) produce->status = STATUS_NOT_ENOUGH_REPLICAS;
    live_forget_pending(live);
    fail_gathered(live, produce);
    answer_pending(live, produce->status, &produce->error);
    if (!wanted) live_retry_later(live);
}

/* The record is in the state, or is no more: what is on record decides how it goes on. One that is
 * no more was told to nobody: its request had its answer, an error, before the log was cut. */
static void write_settled(struct live_transaction *live)
{
    struct transaction_request *request = live->pending_for;
    live_forget_pending(live);
    if (request != NULL && live->pending_again) {
        live->pending_for = NULL;
        request->admitted = true;
        live_requeue(live, request);
    } else {
        answer_pending(live, STATUS_OK, NULL);
    }
}

static bool is_applied(const struct live_transaction *live)
{
    const struct partition *partition = live_partition(live);
    return partition == NULL || partition->internal->applied > live->pending_offset ||
           partition_log_end(partition) <= live->pending_offset;
}

bool live_settle(struct live_transaction *live)
{
    if (!live->unapplied || !is_applied(live)) return false;
    write_settled(live);
    return true;
}

static void written(void *context, struct produce *produce)
{
    struct live_transaction *live = context;
    live->at_broker = false;
    live_enter(live);
    if (!live->dropped && !produce->appended) {
        write_failed(live, produce);
    } else if (!live->dropped) {
        live->pending_offset = produce->last_offset;
        set_unapplied(live, true);
        if (produce->status != STATUS_OK) answer_pending(live, produce->status, &produce->error);
        (void)live_settle(live);
    }
    live_leave(live);
}

void transactions_applied(struct partition *partition)
{
    struct transactions *transactions = partition->broker->transactions;
    if (partition->internal->transactions == NULL) return;
    transactions_take_up(partition);
    for (struct live_transaction *live = transactions->unapplied; live != NULL;) {
        if (live_partition(live) != partition || !is_applied(live)) {
            live = live->next_unapplied;
            continue;
        }
        live_enter(live);
        write_settled(live);
        live_leave(live);
        live = transactions->unapplied; /* the answer may have changed the list */
    }
}

/* `value` NULL: a tombstone. */
static void write(struct live_transaction *live, const struct transaction_value *value)
{
    struct broker *broker = live->broker;
    ASSERT(!live->pending && !live->at_broker);
    live->pending = true;
    live->pending_status = value != NULL ? value->status : TRANSACTION_DEAD;
    live->at_broker = true;
    live->produce = (struct produce){
        .partition = live_partition(live),
        .batch = record_batch(live->id, value, loop_wall_ms(broker->loop)),
        .acks = ACKS_ALL,
        .internal = true,
        .done = written,
        .context = live,
    };
    if (live->produce.batch == NULL) {
        live->produce.status = error_set(&live->produce.error, STATUS_NO_MEMORY, "out of memory");
        written(live, &live->produce);
        return;
    }
    broker_produce(broker, &live->produce);
}

void live_write(struct live_transaction *live, struct transaction_decision *decision,
                struct transaction_request *request)
{
    live->pending_for = request;
    live->pending_again = decision->again;
    live->pending_producer_id = decision->producer_id;
    live->pending_producer_epoch = decision->producer_epoch;
    write(live, &decision->next);
    transaction_decision_deinit(decision);
}

void live_write_complete(struct live_transaction *live, const struct transaction_value *value)
{
    struct transaction_decision decision = {0};
    transaction_complete(value, producer_clock_ms(live->broker), &decision.next);
    live_write(live, &decision, NULL);
}

void live_write_tombstone(struct live_transaction *live)
{
    live->pending_for = NULL;
    live->pending_again = false;
    write(live, NULL);
}
