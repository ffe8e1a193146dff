/* transaction.h: one transactional id as a pure state machine (kafka-listener.md 8.1 and 8.3).
 *
 *   Empty -> Ongoing -> PrepareCommit -> CompleteCommit -> Ongoing …
 *                    -> PrepareAbort  -> CompleteAbort  -> Ongoing …
 *   InitProducerId: Empty, Complete* -> Empty; Ongoing -> PrepareAbort, then again.
 *
 * A request and what is on record give a decision; nothing is changed by it. The state is what the
 * log says, once that is replicated: so a record that could not be written leaves nothing behind,
 * and a new leader decides as the old one would have (T28, T29, T36). A transition on its way to
 * the log is `pending`. Time is an argument, and so is the producer id to use if a new one is
 * needed.  */
#ifndef MOONMQ_BROKER_TRANSACTION_H
#define MOONMQ_BROKER_TRANSACTION_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/transaction_records.h"

/* Epochs that a producer is given: 0 to this; one more is left for the fence of the last. */
#define TRANSACTION_EPOCH_MAX 32766

/* What is known about one id. */
struct transaction_view {
    const struct transaction_value *value; /* applied; NULL: nothing on record */
    bool pending;                          /* a record is on its way */
    enum transaction_status pending_status;
    int64_t spare_producer_id; /* valid where transaction_wants_producer_id() */
    int64_t now_ms;
};

enum transaction_action {
    TRANSACTION_REFUSE, /* answer `status` */
    TRANSACTION_ANSWER, /* nothing to write: STATUS_OK, with the producer's id and epoch */
    TRANSACTION_WRITE,  /* put `next` on record; answer when it is applied */
    TRANSACTION_WAIT,   /* decide again when the transition under way has ended */
};
struct transaction_decision {
    enum transaction_action action;
    enum status status;
    struct transaction_value next; /* WRITE: owned by the decision */
    bool again;                    /* WRITE: no answer yet; decide again when it has ended */
    int64_t producer_id;           /* for the answer */
    int16_t producer_epoch;
};
/* Frees `next`, if there is one that was not taken. */
void transaction_decision_deinit(struct transaction_decision *decision);

/* Does the next step need a producer id that never was? */
bool transaction_wants_producer_id(const struct transaction_value *value);
bool transaction_is_prepared(const struct transaction_value *value);

struct transaction_init {
    int32_t timeout_ms;     /* already checked */
    int64_t producer_id;    /* -1 with epoch -1: a new instance, which fences the old one */
    int16_t producer_epoch; /* else the producer goes on after an error */
    bool admitted;          /* decided before with `again`: producer id and epoch were right */
};
void transaction_decide_init(const struct transaction_view *view,
                             const struct transaction_init *init, struct transaction_decision *out);

struct transaction_add {
    int64_t producer_id;
    int16_t producer_epoch;
    bool transaction_v2;
    const struct transaction_partition *partitions;
    uint32_t partition_count;
};
void transaction_decide_add(const struct transaction_view *view, const struct transaction_add *add,
                            struct transaction_decision *out);

struct transaction_end {
    int64_t producer_id;
    int16_t producer_epoch;
    bool commit;
    bool transaction_v2;
};
void transaction_decide_end(const struct transaction_view *view, const struct transaction_end *end,
                            struct transaction_decision *out);

/* Which client wrote a transactional batch: what it understands, and whether it names its
 * partitions beforehand. */
enum transaction_client {
    TRANSACTION_CLIENT_OLD,       /* Produce up to 10 */
    TRANSACTION_CLIENT_ABORTABLE, /* Produce 11: knows STATUS_TXN_ABORTABLE */
    TRANSACTION_CLIENT_V2,        /* transaction.version 2: partitions are added by writing */
};
/* May a batch of this producer be appended to this partition? ANSWER: yes, now. WRITE: when the
 * partition is on record. (4.3) */
void transaction_decide_append(const struct transaction_view *view,
                               const struct transaction_add *append, enum transaction_client client,
                               struct transaction_decision *out);

/* Aborts what is ongoing and fences its producer: the time-out, an administrator, a session that is
 * gone. REFUSE with INVALID_TXN_STATE: nothing is ongoing. */
void transaction_decide_abort(const struct transaction_view *view,
                              struct transaction_decision *out);

/* In Prepare*, and every marker is written: what goes on record then. */
void transaction_complete(const struct transaction_value *value, int64_t now_ms,
                          struct transaction_value *out);

#endif
