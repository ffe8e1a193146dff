/* transaction_queue.c: who waits for a transactional id: requests and produces, in order. */
#include <utlist.h>

#include "broker/transactions_state.h"

struct produce *wait_produce(struct transaction_wait *wait)
{
    return CONTAINER_OF(wait, struct produce, hold);
}

struct transaction_request *wait_request(struct transaction_wait *wait)
{
    return CONTAINER_OF(wait, struct transaction_request, wait);
}

void live_queue_remove(struct transaction_wait *wait)
{
    struct live_transaction *live = wait->live;
    struct transactions *transactions = live->broker->transactions;
    DL_DELETE(live->waiting, wait);
    transactions->waiting_count--;
    if (wait->is_produce) transactions->waiting_bytes -= wait_produce(wait)->batch->bytes;
    wait->live = NULL;
    wait->gathered = false;
}

bool transactions_queue_is_full(const struct broker *broker, size_t bytes)
{
    const struct transactions *transactions = broker->transactions;
    return transactions->waiting_count >= TRANSACTION_WAITING_MAX ||
           (transactions->waiting_bytes > 0 &&
            transactions->waiting_bytes + bytes > broker->settings.unsynced_bytes_max);
}

void live_queue_add(struct live_transaction *live, struct transaction_wait *wait)
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
void live_answer(struct live_transaction *live, struct transaction_request *request,
                 enum status status)
{
    deadlines_remove(&live->broker->deadlines, &request->deadline);
    transaction_request_finish(request, status);
}

void live_let_go(struct live_transaction *live, struct produce *produce)
{
    live_queue_remove(&produce->hold);
    deadlines_remove(&live->broker->deadlines, &produce->deadline);
    live->broker->stats.produce_parked--;
}

void live_fail_wait(struct live_transaction *live, struct transaction_wait *wait,
                    enum status status, const char *text)
{
    if (wait->is_produce) {
        struct produce *produce = wait_produce(wait);
        live_let_go(live, produce);
        error_set(&produce->error, status, "%s", text);
        produce_finish(produce, status);
    } else {
        struct transaction_request *request = wait_request(wait);
        live_queue_remove(wait);
        error_set(&request->error, status, "%s", text);
        live_answer(live, request, status);
    }
}
