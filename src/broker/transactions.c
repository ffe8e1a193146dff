/* transactions.c: see transactions.h, transactions_state.h: the objects, their queues, and what is
 * done next.
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
static bool is_taken_up(const struct live_transaction *live)
{
    const struct partition *partition = live_partition(live);
    return partition != NULL && !partition->internal->failed &&
           broker_check_serving(live->broker) == STATUS_OK &&
           partition->internal->taken_up_epoch == live->broker->leading_epoch;
}

/* ---- who waits ---- */

static struct produce *wait_produce(struct transaction_wait *wait)
{
    return CONTAINER_OF(wait, struct produce, hold);
}

static struct transaction_request *wait_request(struct transaction_wait *wait)
{
    return CONTAINER_OF(wait, struct transaction_request, wait);
}

static void queue_remove(struct transaction_wait *wait)
{
    struct live_transaction *live = wait->live;
    struct transactions *transactions = live->broker->transactions;
    DL_DELETE(live->waiting, wait);
    transactions->waiting_count--;
    if (wait->is_produce) transactions->waiting_bytes -= wait_produce(wait)->batch->bytes;
    wait->live = NULL;
    wait->gathered = false;
}

static bool queue_is_full(const struct broker *broker, size_t bytes)
{
    const struct transactions *transactions = broker->transactions;
    return transactions->waiting_count >= TRANSACTION_WAITING_MAX ||
           (transactions->waiting_bytes > 0 &&
            transactions->waiting_bytes + bytes > broker->settings.unsynced_bytes_max);
}

static void queue_add(struct live_transaction *live, struct transaction_wait *wait)
{
    struct transactions *transactions = live->broker->transactions;
    wait->live = live;
    wait->gathered = false;
    DL_APPEND(live->waiting, wait);
    transactions->waiting_count++;
    if (wait->is_produce) transactions->waiting_bytes += wait_produce(wait)->batch->bytes;
}

void live_requeue(struct live_transaction *live, struct transaction_request *request)
{
    request->wait.live = live;
    DL_PREPEND(live->waiting, &request->wait);
    live->broker->transactions->waiting_count++;
}

void transaction_request_finish(struct transaction_request *request, enum status status)
{
    request->status = status;
    if (status != STATUS_OK && request->error.text[0] == '\0') {
        error_set(&request->error, status, "%s", status_text(status));
    }
    request->done(request->context, request);
}

/* Takes it out of the heap first. */
static void request_answer(struct live_transaction *live, struct transaction_request *request,
                           enum status status)
{
    deadlines_remove(&live->broker->deadlines, &request->deadline);
    transaction_request_finish(request, status);
}

static void produce_let_go(struct live_transaction *live, struct produce *produce)
{
    queue_remove(&produce->hold);
    deadlines_remove(&live->broker->deadlines, &produce->deadline);
    live->broker->stats.produce_parked--;
}

void live_fail_wait(struct live_transaction *live, struct transaction_wait *wait,
                    enum status status, const char *text)
{
    if (wait->is_produce) {
        struct produce *produce = wait_produce(wait);
        produce_let_go(live, produce);
        error_set(&produce->error, status, "%s", text);
        produce_finish(produce, status);
    } else {
        struct transaction_request *request = wait_request(wait);
        queue_remove(wait);
        error_set(&request->error, status, "%s", text);
        request_answer(live, request, status);
    }
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

static struct transaction_view view_of(const struct live_transaction *live,
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
        struct transaction_view view = view_of(live, value);
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

static enum status check_new_id(const struct live_transaction *live,
                                const struct transaction_value *value,
                                struct transaction_request *request)
{
    const struct transaction_table *table = live_partition(live)->internal->transactions;
    if (value != NULL) return STATUS_OK;
    if (transaction_table_bytes(table) > TRANSACTION_BYTES_PER_PARTITION_MAX) {
        return error_set(&request->error, STATUS_LIMIT,
                         "transactional ids take too much room: %zu bytes in %s, at most %d",
                         transaction_table_bytes(table), partition_name(live_partition(live)),
                         TRANSACTION_BYTES_PER_PARTITION_MAX);
    }
    if (transaction_table_count(table) < TRANSACTIONAL_IDS_PER_PARTITION_MAX) return STATUS_OK;
    return error_set(&request->error, STATUS_LIMIT, "too many transactional ids: %u in %s",
                     transaction_table_count(table), partition_name(live_partition(live)));
}

static enum status decide_request(struct live_transaction *live,
                                  const struct transaction_value *value,
                                  struct transaction_request *request,
                                  struct transaction_decision *decision)
{
    struct transaction_view view = view_of(live, value);
    enum status status = STATUS_OK;
    bool bumps = request->verb == TRANSACTION_INIT ||
                 (request->verb == TRANSACTION_END && request->transaction_v2);
    if (bumps && !view.pending && transaction_wants_producer_id(value)) {
        status = broker_new_producer_id(live->broker, &view.spare_producer_id);
    }
    if (status == STATUS_OK && request->verb == TRANSACTION_INIT) {
        status = check_new_id(live, value, request);
    }
    if (status != STATUS_OK) return status;
    const struct transaction_init init = {
        .timeout_ms = request->session ? 0 : request->transaction_timeout_ms,
        .producer_id = request->producer_id,
        .producer_epoch = request->producer_epoch,
        .admitted = request->admitted};
    const struct transaction_add add = {.producer_id = request->producer_id,
                                        .producer_epoch = request->producer_epoch,
                                        .transaction_v2 = request->transaction_v2,
                                        .partitions = request->partitions,
                                        .partition_count = request->partition_count};
    const struct transaction_end end = {.producer_id = request->producer_id,
                                        .producer_epoch = request->producer_epoch,
                                        .commit = request->commit,
                                        .transaction_v2 = request->transaction_v2};
    switch (request->verb) {
    case TRANSACTION_INIT: transaction_decide_init(&view, &init, decision); break;
    case TRANSACTION_ADD: transaction_decide_add(&view, &add, decision); break;
    case TRANSACTION_END: transaction_decide_end(&view, &end, decision); break;
    case TRANSACTION_ABORT: transaction_decide_abort(&view, decision); break;
    }
    return STATUS_OK;
}

static bool serve_request(struct live_transaction *live, const struct transaction_value *value,
                          struct transaction_request *request)
{
    struct transaction_decision decision;
    enum status status = decide_request(live, value, request, &decision);
    if (status == STATUS_OK && decision.action == TRANSACTION_WAIT) return false;
    queue_remove(&request->wait);
    if (status == STATUS_OK && decision.action == TRANSACTION_WRITE) {
        request->wait.live = live;
        live_write(live, &decision, request);
        return true;
    }
    if (status == STATUS_OK) {
        status = decision.status;
        request->next_producer_id = decision.producer_id;
        request->next_producer_epoch = decision.producer_epoch;
    }
    request_answer(live, request, status);
    return true;
}

/* ---- produces ---- */

struct append_view {
    struct transaction_partition partition;
    struct transaction_add add;
};

static void append_view_of(const struct produce *produce, struct append_view *out)
{
    struct batch_header header;
    const struct partition *partition = produce->partition;
    enum status status =
        batch_parse(produce->batch->data, produce->batch->bytes, true, &header, NULL);
    ASSERT(status == STATUS_OK); /* it was validated at arrival */
    out->partition = (struct transaction_partition){
        {(const uint8_t *)partition->topic->name, strlen(partition->topic->name)},
        partition->index};
    out->add = (struct transaction_add){
        .producer_id = header.producer_id,
        .producer_epoch = header.producer_epoch,
        .transaction_v2 = produce->transaction_client == TRANSACTION_CLIENT_V2,
        .partitions = &out->partition,
        .partition_count = 1,
    };
}

/* The partitions that are written to next go into the same record. */
static void gather(struct live_transaction *live, const struct transaction_add *first,
                   struct transaction_decision *decision)
{
    struct transaction_wait *wait;
    DL_FOREACH(live->waiting, wait)
    {
        struct append_view append;
        if (!wait->is_produce) return;
        append_view_of(wait_produce(wait), &append);
        if (!append.add.transaction_v2 || append.add.producer_id != first->producer_id ||
            append.add.producer_epoch != first->producer_epoch) {
            return;
        }
        if (transaction_partitions_add(&decision->next.partitions, &append.partition) !=
            STATUS_OK) {
            return;
        }
        wait->gathered = true;
    }
}

static bool serve_produce(struct live_transaction *live, const struct transaction_value *value,
                          struct produce *produce)
{
    struct transaction_view view = view_of(live, value);
    struct transaction_decision decision;
    struct append_view append;
    append_view_of(produce, &append);
    transaction_decide_append(&view, &append.add, produce->transaction_client, &decision);
    switch (decision.action) {
    case TRANSACTION_WAIT: return false;
    case TRANSACTION_WRITE:
        gather(live, &append.add, &decision);
        live_write(live, &decision, NULL);
        return true;
    case TRANSACTION_ANSWER:
        produce_let_go(live, produce);
        produce->admitted = true;
        produce_resume(live->broker, produce);
        return true;
    case TRANSACTION_REFUSE: break;
    }
    live_fail_wait(live, &produce->hold, decision.status, status_text(decision.status));
    return true;
}

static bool serve_head(struct live_transaction *live, const struct transaction_value *value)
{
    struct transaction_wait *wait = live->waiting;
    if (wait == NULL) return false;
    return wait->is_produce ? serve_produce(live, value, wait_produce(wait))
                            : serve_request(live, value, wait_request(wait));
}

static bool live_step(struct live_transaction *live)
{
    if (live->dropped || !is_taken_up(live)) return false;
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
    if (request != NULL) request_answer(live, request, status);
    while (live->waiting != NULL)
        live_fail_wait(live, live->waiting, status, status_text(status));
}

/* ---- produce.c asks ---- */

enum status transactions_admit(struct broker *broker, struct produce *produce)
{
    const struct slice id = produce->transactional_id;
    const struct partition *partition = internal_partition(broker, TRANSACTION_STATE_TOPIC, id);
    struct transaction_decision decision;
    struct append_view append;
    if (partition == NULL) {
        return error_set(&produce->error, STATUS_NOT_ENOUGH_REPLICAS, "%s is not there yet",
                         TRANSACTION_STATE_TOPIC);
    }
    if (partition->internal->failed) {
        return error_set(&produce->error, STATUS_STORAGE_ERROR, "%s cannot be read",
                         partition_name(partition));
    }
    if (partition->internal->taken_up_epoch != broker->leading_epoch) return STATUS_CONFLICT;
    const struct live_transaction *live = live_find(broker->transactions, id);
    const struct transaction_entry *entry =
        transaction_table_find(partition->internal->transactions, id);
    const struct transaction_view view = {
        .value = entry != NULL ? &entry->value : NULL,
        .pending = live != NULL && live->pending,
        .pending_status = live != NULL ? live->pending_status : TRANSACTION_EMPTY,
        .now_ms = producer_clock_ms(broker),
    };
    append_view_of(produce, &append);
    transaction_decide_append(&view, &append.add, produce->transaction_client, &decision);
    transaction_decision_deinit(&decision);
    if (decision.action == TRANSACTION_ANSWER) return STATUS_OK;
    if (decision.action != TRANSACTION_REFUSE) return STATUS_CONFLICT;
    return error_set(&produce->error, decision.status, "%s", status_text(decision.status));
}

bool transactions_must_queue(const struct broker *broker, const struct produce *produce)
{
    if (produce->admitted) return false;
    const struct live_transaction *live =
        live_find(broker->transactions, produce->transactional_id);
    return live != NULL && live->waiting != NULL;
}

static void hold_expired(void *context, struct deadline *deadline)
{
    struct produce *produce = CONTAINER_OF(deadline, struct produce, deadline);
    struct live_transaction *live = produce->hold.live;
    (void)context;
    live_enter(live);
    if (is_taken_up(live)) {
        live_fail_wait(live, &produce->hold, STATUS_CONCURRENT_TRANSACTIONS,
                       "the transaction before it has not ended in time");
    } else {
        live_fail_wait(live, &produce->hold, STATUS_NOT_ENOUGH_REPLICAS,
                       "transactions are still being read");
    }
    live_leave(live);
}

void transactions_hold(struct broker *broker, struct produce *produce)
{
    if (queue_is_full(broker, produce->batch->bytes)) {
        error_set(&produce->error, STATUS_LIMIT, "too many produces wait for transactions");
        produce_finish(produce, STATUS_LIMIT);
        return;
    }
    struct live_transaction *live = live_get(broker, produce->transactional_id);
    produce->admitted = false;
    produce->hold.is_produce = true;
    queue_add(live, &produce->hold);
    broker->stats.produce_parked++;
    deadlines_add(&broker->deadlines, &produce->deadline, produce->until_us, hold_expired);
    /* Not at once: what else this request writes to is gathered. */
    live_run_soon(live);
}

void transactions_let_go(struct produce *produce)
{
    struct live_transaction *live = produce->hold.live;
    produce_let_go(live, produce);
    live_run_soon(live);
}

static struct transaction_wait *find_wait_for(const struct partition *partition)
{
    struct live_transaction *live;
    struct transaction_wait *wait;
    DL_FOREACH(partition->broker->transactions->lives, live)
    {
        DL_FOREACH(live->waiting, wait)
        {
            if (wait->is_produce && wait_produce(wait)->partition == partition) return wait;
        }
    }
    return NULL;
}

void transactions_partition_gone(struct partition *partition, enum status status, const char *text)
{
    const struct transactions *transactions = partition->broker->transactions;
    struct transaction_wait *wait;
    while (transactions->waiting_count > 0 && (wait = find_wait_for(partition)) != NULL) {
        live_run_soon(wait->live);
        live_fail_wait(wait->live, wait, status, text);
    }
}

/* ---- the front ends ask ---- */

static void request_expired(void *context, struct deadline *deadline)
{
    struct transaction_request *request =
        CONTAINER_OF(deadline, struct transaction_request, deadline);
    struct live_transaction *live = request->wait.live;
    (void)context;
    live_enter(live);
    if (live->pending_for == request) {
        live->pending_for = NULL;
        error_set(&request->error, STATUS_TIMEOUT, "not on record in time");
        transaction_request_finish(request, STATUS_TIMEOUT);
    } else if (is_taken_up(live)) {
        live_fail_wait(live, &request->wait, STATUS_CONCURRENT_TRANSACTIONS,
                       "the transaction before it has not ended in time");
    } else {
        live_fail_wait(live, &request->wait, STATUS_NOT_READY, "transactions are still being read");
    }
    live_leave(live);
}

static enum status check_timeout(const struct broker *broker, struct transaction_request *request)
{
    int32_t max_ms = broker->settings.transaction_timeout_ms_max;
    if (request->session ||
        (request->transaction_timeout_ms > 0 && request->transaction_timeout_ms <= max_ms)) {
        return STATUS_OK;
    }
    return error_set(&request->error, STATUS_TXN_TIMEOUT_RANGE,
                     "transaction time-out of %d ms, allowed are 1 to %d",
                     request->transaction_timeout_ms, max_ms);
}

static enum status check_partitions(struct broker *broker, struct transaction_request *request)
{
    for (uint32_t i = 0; i < request->partition_count; i++) {
        const struct transaction_partition *partition = &request->partitions[i];
        const struct topic *topic =
            catalog_find(broker, (const char *)partition->topic.data, partition->topic.bytes);
        if (topic == NULL || partition->partition < 0 ||
            (uint32_t)partition->partition >= topic->partition_count) {
            return error_set(&request->error, STATUS_UNKNOWN_TOPIC, "no such topic or partition");
        }
    }
    return STATUS_OK;
}

static enum status check_request(struct broker *broker, struct transaction_request *request)
{
    enum status status = broker_check_serving(broker);
    if (status != STATUS_OK) return status;
    if (request->id.bytes == 0 || request->id.bytes > TRANSACTIONAL_ID_BYTES_MAX) {
        return error_set(&request->error, STATUS_INVALID, "a transactional id has 1 to %d bytes",
                         TRANSACTIONAL_ID_BYTES_MAX);
    }
    const struct partition *partition =
        internal_partition(broker, TRANSACTION_STATE_TOPIC, request->id);
    if (partition == NULL) return STATUS_NOT_READY;
    if (partition->internal->failed) return STATUS_STORAGE_ERROR;
    if (request->verb == TRANSACTION_INIT) return check_timeout(broker, request);
    if (request->verb == TRANSACTION_ADD) return check_partitions(broker, request);
    return STATUS_OK;
}

static void submit(struct broker *broker, struct transaction_request *request,
                   enum transaction_verb verb)
{
    request->verb = verb;
    request->admitted = false;
    request->error = (struct error){0};
    request->next_producer_id = -1;
    request->next_producer_epoch = -1;
    request->wait = (struct transaction_wait){0};
    request->deadline = (struct deadline){0};
    enum status status = check_request(broker, request);
    if (status == STATUS_OK && queue_is_full(broker, 0)) {
        status =
            error_set(&request->error, STATUS_NOT_READY, "too many requests wait for transactions");
    }
    if (status != STATUS_OK) {
        transaction_request_finish(request, status);
        return;
    }
    int64_t wait_us = broker->settings.ack_timeout_us;
    if (request->timeout_us > 0 && request->timeout_us < wait_us) wait_us = request->timeout_us;
    deadlines_add(&broker->deadlines, &request->deadline, loop_now_us(broker->loop) + wait_us,
                  request_expired);
    struct live_transaction *live = live_get(broker, request->id);
    queue_add(live, &request->wait);
    live_run(live);
}

void broker_init_transaction(struct broker *broker, struct transaction_request *request)
{
    submit(broker, request, TRANSACTION_INIT);
}

void broker_add_to_transaction(struct broker *broker, struct transaction_request *request)
{
    submit(broker, request, TRANSACTION_ADD);
}

void broker_end_transaction(struct broker *broker, struct transaction_request *request)
{
    submit(broker, request, TRANSACTION_END);
}

void broker_abort_transaction(struct broker *broker, struct transaction_request *request)
{
    submit(broker, request, TRANSACTION_ABORT);
}

void broker_abandon_transaction(struct broker *broker, struct slice id, int64_t producer_id,
                                int16_t producer_epoch)
{
    if (broker_check_serving(broker) != STATUS_OK) return; /* the next leader finds it */
    const struct transaction_value *value = broker_describe_transaction(broker, id);
    if (value == NULL || value->producer_id != producer_id ||
        value->producer_epoch != producer_epoch) {
        return;
    }
    struct live_transaction *live = live_get(broker, id);
    live->abort_wanted = true;
    live_run(live);
}

bool broker_offsets_partition(struct broker *broker, struct slice group,
                              struct transaction_partition *out)
{
    const struct partition *partition = internal_partition(broker, CONSUMER_OFFSETS_TOPIC, group);
    if (partition == NULL) return false;
    *out = (struct transaction_partition){
        {(const uint8_t *)CONSUMER_OFFSETS_TOPIC, sizeof(CONSUMER_OFFSETS_TOPIC) - 1},
        partition->index};
    return true;
}

const struct transaction_value *broker_describe_transaction(struct broker *broker, struct slice id)
{
    const struct partition *partition = internal_partition(broker, TRANSACTION_STATE_TOPIC, id);
    if (partition == NULL) return NULL;
    const struct transaction_entry *entry =
        transaction_table_find(partition->internal->transactions, id);
    return entry != NULL ? &entry->value : NULL;
}

void broker_list_transactions(struct broker *broker, transaction_each_fn each, void *context)
{
    const struct topic *topic =
        catalog_find(broker, TRANSACTION_STATE_TOPIC, strlen(TRANSACTION_STATE_TOPIC));
    for (uint32_t i = 0; topic != NULL && i < topic->partition_count; i++) {
        const struct transaction_table *table = topic->partitions[i]->internal->transactions;
        const struct transaction_entry *entry = NULL;
        while ((entry = transaction_table_next(table, entry)) != NULL)
            each(context, entry->id, &entry->value);
    }
}
