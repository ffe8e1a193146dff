/* transactions.c: see transactions.h, transactions_state.h: the objects, and what is done next.
 *
 * Everything goes through the queue of its id, so that nothing overtakes. What is at its head is
 * decided by what is on record; a decision to write leaves the queue waiting until the record is
 * applied (transaction_write.c). */
#include "broker/transactions_state.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/memory.h"

/* ---- objects ---- */

struct live_transaction *live_find(const struct transactions *transactions, struct slice id)
{
    struct live_transaction *live = NULL;
    const void *key = id.bytes > 0 ? (const void *)id.data : "";
    HASH_FIND(hh, transactions->by_id, key, id.bytes, live);
    return live;
}

struct live_transaction *live_get(struct broker *broker, struct slice id)
{
    struct transactions *transactions = broker->transactions;
    struct live_transaction *live = live_find(transactions, id);
    if (live != NULL) return live;
    live = memory_new(sizeof(*live));
    uint8_t *copy = memory_new(id.bytes + 1);
    if (id.bytes > 0) memcpy(copy, id.data, id.bytes);
    live->broker = broker;
    live->id = (struct slice){copy, id.bytes};
    live->timed_start_ms = -1;
    HASH_ADD_KEYPTR(hh, transactions->by_id, live->id.data, live->id.bytes, live);
    DL_APPEND(transactions->lives, live);
    return live;
}

/* Nobody finds it any more, and nothing of it happens by itself. */
static void live_unlink(struct live_transaction *live)
{
    struct transactions *transactions = live->broker->transactions;
    if (live->dropped) return;
    live->dropped = true;
    HASH_DEL(transactions->by_id, live);
    deadlines_remove(&live->broker->deadlines, &live->timeout);
    deadlines_remove(&live->broker->deadlines, &live->retry);
    if (live->runnable) {
        DL_DELETE2(transactions->runnable, live, previous_runnable, next_runnable);
        live->runnable = false;
    }
    live_forget_pending(live);
}

void live_free(struct live_transaction *live)
{
    live_unlink(live);
    DL_DELETE(live->broker->transactions->lives, live);
    free(live->markers);
    free((void *)live->id.data);
    free(live);
}

struct partition *live_partition(const struct live_transaction *live)
{
    return internal_partition(live->broker, TRANSACTION_STATE_TOPIC, live->id);
}

const struct transaction_value *live_value(const struct live_transaction *live)
{
    const struct partition *partition = live_partition(live);
    if (partition == NULL) return NULL;
    const struct transaction_entry *entry =
        transaction_table_find(partition->internal->transactions, live->id);
    return entry != NULL ? &entry->value : NULL;
}

/* Its leader here has read all that its predecessors left. */
bool live_is_taken_up(const struct live_transaction *live)
{
    const struct partition *partition = live_partition(live);
    return partition != NULL && !partition->internal->failed &&
           broker_check_serving(live->broker) == STATUS_OK &&
           partition->internal->taken_up_epoch == live->broker->leading_epoch;
}

/* ---- what is done next ---- */

static void live_timed_out(void *context, struct deadline *deadline)
{
    struct live_transaction *live = CONTAINER_OF(deadline, struct live_transaction, timeout);
    (void)context;
    live->abort_wanted = true;
    live_run(live);
}

static void live_retry(void *context, struct deadline *deadline)
{
    (void)context;
    live_run(CONTAINER_OF(deadline, struct live_transaction, retry));
}

void live_retry_later(struct live_transaction *live)
{
    struct deadlines *deadlines = &live->broker->deadlines;
    if (live->dropped || live->retry.slot != 0) return;
    deadlines_add(deadlines, &live->retry, loop_now_us(live->broker->loop) + TRANSACTION_RETRY_US,
                  live_retry);
}

/* From the recorded start, whoever recorded it; at most the whole time-out from when it is seen
 * here first, so that no clock that was ahead makes a transaction immortal (T28). */
static void arm_time_out(struct live_transaction *live, const struct transaction_value *value)
{
    struct deadlines *deadlines = &live->broker->deadlines;
    bool timed = value != NULL && value->status == TRANSACTION_ONGOING && value->timeout_ms > 0;
    if (timed && live->timed_start_ms == value->start_ms) return;
    deadlines_remove(deadlines, &live->timeout);
    live->timed_start_ms = timed ? value->start_ms : -1;
    if (!timed) return;
    int64_t left_ms = value->timeout_ms;
    int64_t passed_ms = producer_clock_ms(live->broker) - value->start_ms;
    if (passed_ms > 0) left_ms = passed_ms < left_ms ? left_ms - passed_ms : 0;
    deadlines_add(deadlines, &live->timeout, loop_now_us(live->broker->loop) + left_ms * 1000,
                  live_timed_out);
}

struct transaction_view live_view(const struct live_transaction *live,
                                  const struct transaction_value *value)
{
    return (struct transaction_view){
        .value = value,
        .pending = live->pending,
        .pending_status = live->pending_status,
        .spare_producer_id = -1,
        .now_ms = producer_clock_ms(live->broker),
    };
}

/* Judged when it is written: somebody may have begun since the tick wanted it. */
static bool is_unused(const struct live_transaction *live, const struct transaction_value *value)
{
    return value != NULL && live->waiting == NULL &&
           transaction_value_is_unused(value, transactions_unused_since_ms(live->broker));
}

/* True: something was done. */
static bool abort_or_expire(struct live_transaction *live, const struct transaction_value *value)
{
    if (live->pending || live->retry.slot != 0) return false;
    if (live->abort_wanted) {
        struct transaction_view view = live_view(live, value);
        struct transaction_decision decision;
        transaction_decide_abort(&view, &decision);
        if (decision.action == TRANSACTION_WRITE) {
            live_write(live, &decision, NULL);
            return true;
        }
        live->abort_wanted = false; /* it has ended, or is about to */
        return true;
    }
    if (!live->expire_wanted) return false;
    live->expire_wanted = false;
    if (is_unused(live, value)) live_write_tombstone(live);
    return true;
}

static bool serve_head(struct live_transaction *live, const struct transaction_value *value)
{
    struct transaction_wait *wait = live->waiting;
    if (wait == NULL) return false;
    return wait->is_produce ? live_serve_produce(live, value, wait_produce(wait))
                            : live_serve_request(live, value, wait_request(wait));
}

static bool live_step(struct live_transaction *live)
{
    if (live->dropped || !live_is_taken_up(live)) return false;
    if (live_settle(live)) return true;
    const struct transaction_value *value = live_value(live);
    arm_time_out(live, value);
    if (live->ending && !live->pending && !transaction_is_prepared(value)) live_end_forget(live);
    if (!live->pending && transaction_is_prepared(value) && live_end(live, value)) return true;
    return abort_or_expire(live, value) || serve_head(live, value);
}

static bool is_idle(const struct live_transaction *live)
{
    return !live->pending && !live->at_broker && live->markers_open == 0 && live->waiting == NULL &&
           !live->runnable && (live->dropped || live_value(live) == NULL);
}

void live_run(struct live_transaction *live)
{
    if (live->busy > 0) return; /* who is up the stack looks again */
    live->busy++;
    while (live_step(live))
        continue;
    live->busy--;
    if (is_idle(live)) live_free(live);
}

void live_enter(struct live_transaction *live)
{
    live->busy++;
}

void live_leave(struct live_transaction *live)
{
    live->busy--;
    live_run(live);
}

static void run_soon(void *context)
{
    struct transactions *transactions = context;
    while (transactions->runnable != NULL) {
        struct live_transaction *live = transactions->runnable;
        DL_DELETE2(transactions->runnable, live, previous_runnable, next_runnable);
        live->runnable = false;
        live_run(live);
    }
}

void live_run_soon(struct live_transaction *live)
{
    struct transactions *transactions = live->broker->transactions;
    if (live->runnable || live->dropped) return;
    live->runnable = true;
    DL_APPEND2(transactions->runnable, live, previous_runnable, next_runnable);
    if (transactions->soon == NULL) {
        transactions->soon = timer_new(live->broker->loop, run_soon, transactions);
    }
    timer_start(transactions->soon, 0);
}

void live_drop(struct live_transaction *live, enum status status)
{
    struct transaction_request *request = live->pending_for;
    live_unlink(live);
    live->pending_for = NULL;
    if (request != NULL) live_answer(live, request, status);
    while (live->waiting != NULL)
        live_fail_wait(live, live->waiting, status, status_text(status));
}
