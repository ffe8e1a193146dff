/* transactions_state.h: the coordinator's inside, for the files of this folder only.
 *
 * One live_transaction for each id that something was asked about, or that has something to be
 * done. Its state is what the table holds: live objects add what is under way and who waits. At
 * most one record of an id is under way.
 *
 *   requests, produces -> queue -> decide (transaction.c) -> record -> applied -> answer
 *                                                             Prepare* -> markers -> Complete*  */
#ifndef MOONMQ_BROKER_TRANSACTIONS_STATE_H
#define MOONMQ_BROKER_TRANSACTIONS_STATE_H

#include <uthash.h>

#include "base/assert.h"
#include "base/log.h"
#include "broker/parked.h"
#include "broker/transactions.h"

#define TRANSACTION_RETRY_US 200000 /* after a record or marker that could not be written */

struct live_transaction {
    struct broker *broker;
    struct slice id; /* own copy */
    uint32_t busy;   /* somebody up the stack works on it: not to be freed, nor run */
    bool dropped;    /* leadership is gone; freed when nobody calls back any more */

    /* transaction_write.c: the record under way, from its decision until it is applied */
    bool pending, at_broker;
    bool unapplied; /* in transactions->unapplied: in the log, its fate is open */
    enum transaction_status pending_status;
    int64_t pending_offset;                  /* valid while unapplied */
    struct transaction_request *pending_for; /* NULL: nobody, or answered already */
    bool pending_again;                      /* no answer yet: decide again */
    int64_t pending_producer_id;             /* for the answer */
    int16_t pending_producer_epoch;
    struct produce produce;

    /* transaction_end.c: while Prepare* is on record */
    bool ending; /* the markers were sent */
    struct partition_marker *markers;
    uint32_t marker_count, markers_open;

    bool abort_wanted, expire_wanted;
    int64_t timed_start_ms; /* whose time-out is armed; -1: none */
    struct deadline timeout, retry;
    struct transaction_wait *waiting;
    bool runnable; /* in transactions->runnable */
    struct live_transaction *next_runnable, *previous_runnable;
    struct live_transaction *next_unapplied, *previous_unapplied;
    struct live_transaction *next, *prev; /* in transactions->lives */
    UT_hash_handle hh;
};

struct transactions {
    struct broker *broker;
    struct live_transaction *by_id;
    struct live_transaction *lives; /* in the order in which they were made; dropped ones too */
    struct live_transaction *unapplied;
    struct live_transaction *runnable;
    struct timer *soon;
    uint32_t waiting_count;
    size_t waiting_bytes;
    int64_t expiry_looked_ms; /* monotonic; 0: not yet */
    struct log_limiter marker_limiter;
};

/* ---- transactions.c ---- */
struct live_transaction *live_find(const struct transactions *transactions, struct slice id);
struct live_transaction *live_get(struct broker *broker, struct slice id);
/* The partition of `__transaction_state` its record is in; NULL: it is not there yet. */
struct partition *live_partition(const struct live_transaction *live);
const struct transaction_value *live_value(const struct live_transaction *live);
/* Does whatever can be done now, and lets go of an object that has nothing to do. */
void live_run(struct live_transaction *live);
/* Around a call that answers somebody: it may come back here. */
void live_enter(struct live_transaction *live);
void live_leave(struct live_transaction *live); /* and runs it */
void live_run_soon(struct live_transaction *live);
/* Answers all who wait, and makes it findable no more: leadership is gone. */
void live_drop(struct live_transaction *live, enum status status);
void live_free(struct live_transaction *live);
void live_retry_later(struct live_transaction *live);
/* Its leader here has read all that its predecessors left. */
bool live_is_taken_up(const struct live_transaction *live);
/* For a decision about what is on record. */
struct transaction_view live_view(const struct live_transaction *live,
                                  const struct transaction_value *value);

/* ---- transaction_queue.c ---- */
struct produce *wait_produce(struct transaction_wait *wait);
struct transaction_request *wait_request(struct transaction_wait *wait);
void live_queue_add(struct live_transaction *live, struct transaction_wait *wait);
void live_queue_remove(struct transaction_wait *wait);
bool transactions_queue_is_full(const struct broker *broker, size_t bytes);
/* Puts it back at the head of the queue. */
void live_requeue(struct live_transaction *live, struct transaction_request *request);
void transaction_request_finish(struct transaction_request *request, enum status status);
/* Takes it out of the heap of deadlines first. */
void live_answer(struct live_transaction *live, struct transaction_request *request,
                 enum status status);
/* Takes the produce out of the queue; nobody is answered. */
void live_let_go(struct live_transaction *live, struct produce *produce);
/* Takes it out of the queue and answers. */
void live_fail_wait(struct live_transaction *live, struct transaction_wait *wait,
                    enum status status, const char *text);

/* ---- transaction_requests.c, transaction_produces.c ---- */
/* Decides the one at the head of the queue. False: it has to wait. */
bool live_serve_request(struct live_transaction *live, const struct transaction_value *value,
                        struct transaction_request *request);
bool live_serve_produce(struct live_transaction *live, const struct transaction_value *value,
                        struct produce *produce);

/* ---- transaction_takeover.c ---- */
/* Ids at rest that were last updated by then are forgotten. */
int64_t transactions_unused_since_ms(const struct broker *broker);
bool transaction_value_is_unused(const struct transaction_value *value, int64_t since_ms);

/* ---- transaction_write.c ---- */
/* Puts decision->next on record, and takes it. `request`: whom to answer then; may be NULL. */
void live_write(struct live_transaction *live, struct transaction_decision *decision,
                struct transaction_request *request);
void live_write_complete(struct live_transaction *live, const struct transaction_value *value);
void live_write_tombstone(struct live_transaction *live);
/* The record in the log is applied, or was cut off: true, and nothing is pending any more. */
bool live_settle(struct live_transaction *live);
void live_forget_pending(struct live_transaction *live);

/* ---- transaction_end.c ---- */
/* Prepare* is on record: writes what markers are missing, then Complete*. True: something was done.
 */
bool live_end(struct live_transaction *live, const struct transaction_value *value);
void live_end_forget(struct live_transaction *live);

#endif
