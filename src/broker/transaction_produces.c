/* transaction_produces.c: transactional batches on their way into a partition (4.3): may they be
 * appended, or what has to come before? */
#include <string.h>
#include <utlist.h>

#include "broker/transactions_state.h"

/* ---- decided ---- */

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

bool live_serve_produce(struct live_transaction *live, const struct transaction_value *value,
                        struct produce *produce)
{
    struct transaction_view view = live_view(live, value);
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
        live_let_go(live, produce);
        produce->admitted = true;
        produce_resume(live->broker, produce);
        return true;
    case TRANSACTION_REFUSE: break;
    }
    live_fail_wait(live, &produce->hold, decision.status, status_text(decision.status));
    return true;
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
    if (live_is_taken_up(live)) {
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
    if (transactions_queue_is_full(broker, produce->batch->bytes)) {
        error_set(&produce->error, STATUS_LIMIT, "too many produces wait for transactions");
        produce_finish(produce, STATUS_LIMIT);
        return;
    }
    struct live_transaction *live = live_get(broker, produce->transactional_id);
    produce->admitted = false;
    produce->hold.is_produce = true;
    live_queue_add(live, &produce->hold);
    broker->stats.produce_parked++;
    deadlines_add(&broker->deadlines, &produce->deadline, produce->until_us, hold_expired);
    /* Not at once: what else this request writes to is gathered. */
    live_run_soon(live);
}

void transactions_let_go(struct produce *produce)
{
    struct live_transaction *live = produce->hold.live;
    live_let_go(live, produce);
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
