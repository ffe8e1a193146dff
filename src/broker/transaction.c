/* transaction.c: see transaction.h. Each function is one block of the tables there. */
#include "broker/transaction.h"

#include "base/assert.h"
#include "base/mutant.h"

#define EPOCH_FENCE_MAX INT16_MAX

void transaction_decision_deinit(struct transaction_decision *decision)
{
    transaction_value_deinit(&decision->next);
}

bool transaction_wants_producer_id(const struct transaction_value *value)
{
    return value == NULL || value->producer_epoch >= TRANSACTION_EPOCH_MAX;
}

bool transaction_is_prepared(const struct transaction_value *value)
{
    return value != NULL && (value->status == TRANSACTION_PREPARE_COMMIT ||
                             value->status == TRANSACTION_PREPARE_ABORT);
}

static bool is_complete(const struct transaction_value *value)
{
    return value->status == TRANSACTION_COMPLETE_COMMIT ||
           value->status == TRANSACTION_COMPLETE_ABORT;
}

/* Nothing is open, and nothing on its way. */
static bool is_at_rest(const struct transaction_value *value)
{
    return value->status == TRANSACTION_EMPTY || is_complete(value);
}

/* On record, and in a state that we write. */
static bool is_known(const struct transaction_value *value)
{
    return value != NULL && value->status <= TRANSACTION_COMPLETE_ABORT;
}

/* ---- decisions ---- */

static void refuse(struct transaction_decision *out, enum status status)
{
    out->action = TRANSACTION_REFUSE;
    out->status = status;
}

static void wait(struct transaction_decision *out)
{
    out->action = TRANSACTION_WAIT;
    out->status = STATUS_CONCURRENT_TRANSACTIONS;
}

static void answer(struct transaction_decision *out, int64_t producer_id, int16_t producer_epoch)
{
    out->action = TRANSACTION_ANSWER;
    out->status = STATUS_OK;
    out->producer_id = producer_id;
    out->producer_epoch = producer_epoch;
}

static void begin(struct transaction_decision *out)
{
    *out =
        (struct transaction_decision){.producer_id = -1, .producer_epoch = -1, .status = STATUS_OK};
    transaction_value_init(&out->next);
}

/* What goes on from what is on record. No answer to InitProducerId can be missing any more: its
 * producer has gone on, or was fenced. */
static void continue_from(const struct transaction_value *value, struct transaction_value *next)
{
    transaction_value_copy(next, value);
    next->last_epoch = -1;
}

/* ---- InitProducerId ---- */

static void write_next_init(const struct transaction_view *view,
                            const struct transaction_init *init, bool same_producer,
                            struct transaction_decision *out)
{
    const struct transaction_value *value = view->value;
    struct transaction_value *next = &out->next;
    next->timeout_ms = init->timeout_ms;
    next->last_update_ms = view->now_ms;
    if (transaction_wants_producer_id(value)) {
        next->producer_id = view->spare_producer_id;
        next->producer_epoch = 0;
        /* Only who asked to go on may ask for the same answer again. */
        if (value != NULL && same_producer) next->previous_producer_id = value->producer_id;
    } else {
        next->producer_id = value->producer_id;
        next->producer_epoch = (int16_t)(value->producer_epoch + 1);
        /* Not the fence's, if something had to be aborted first: nobody was told that one. */
        if (same_producer) next->last_epoch = init->producer_epoch;
    }
    out->action = TRANSACTION_WRITE;
    out->producer_id = next->producer_id;
    out->producer_epoch = next->producer_epoch;
}

static void write_fenced_abort(const struct transaction_view *view,
                               struct transaction_decision *out)
{
    struct transaction_value *next = &out->next;
    continue_from(view->value, next);
    next->status = TRANSACTION_PREPARE_ABORT;
    next->last_update_ms = view->now_ms;
    if (next->producer_epoch < EPOCH_FENCE_MAX && !MUTANT(15)) next->producer_epoch++;
    out->action = TRANSACTION_WRITE;
    out->producer_id = next->producer_id;
    out->producer_epoch = next->producer_epoch;
}

/* The pair that a retry of what was answered brings: the one before the current. */
static bool is_previous_pair(const struct transaction_view *view,
                             const struct transaction_init *init)
{
    const struct transaction_value *value = view->value;
    if (init->producer_id == value->producer_id) {
        return value->last_epoch >= 0 && init->producer_epoch == value->last_epoch;
    }
    return value->previous_producer_id >= 0 && init->producer_id == value->previous_producer_id &&
           init->producer_epoch >= TRANSACTION_EPOCH_MAX && value->producer_epoch == 0;
}

void transaction_decide_init(const struct transaction_view *view,
                             const struct transaction_init *init, struct transaction_decision *out)
{
    const struct transaction_value *value = view->value;
    bool given = init->producer_id >= 0 || init->producer_epoch >= 0;
    begin(out);
    if (given && (init->producer_id < 0 || init->producer_epoch < 0)) {
        refuse(out, STATUS_INVALID);
        return;
    }
    if (view->pending || transaction_is_prepared(value)) {
        wait(out);
        return;
    }
    if (!is_known(value)) {
        write_next_init(&(struct transaction_view){.spare_producer_id = view->spare_producer_id,
                                                   .now_ms = view->now_ms},
                        init, false, out);
        return;
    }
    bool same_id = init->producer_id == value->producer_id;
    bool current = same_id && (init->producer_epoch == value->producer_epoch || init->admitted);
    bool previous = given && is_previous_pair(view, init);
    /* What was ongoing was aborted for who asks again now, and no more than that. */
    bool unanswered = previous && same_id && is_complete(value);
    if (given && !current && !previous) {
        refuse(out, STATUS_PRODUCER_FENCED);
    } else if (value->status == TRANSACTION_ONGOING) {
        write_fenced_abort(view, out);
        if (current) out->next.last_epoch = init->producer_epoch;
        out->again = true;
    } else if (previous && !current && !unanswered) {
        answer(out, value->producer_id, value->producer_epoch);
    } else {
        write_next_init(view, init, given, out);
    }
}

/* ---- AddPartitionsToTxn, AddOffsetsToTxn ---- */

static void write_ongoing(const struct transaction_view *view, const struct transaction_add *add,
                          struct transaction_decision *out)
{
    struct transaction_value *next = &out->next;
    bool ongoing = view->value->status == TRANSACTION_ONGOING;
    continue_from(view->value, next);
    if (!ongoing) {
        transaction_partitions_deinit(&next->partitions);
        next->start_ms = view->now_ms;
    }
    next->status = TRANSACTION_ONGOING;
    next->client_version = add->transaction_v2 ? 2 : 0;
    next->last_update_ms = view->now_ms;
    for (uint32_t i = 0; i < add->partition_count; i++) {
        if (transaction_partitions_add(&next->partitions, &add->partitions[i]) == STATUS_OK) {
            continue;
        }
        transaction_value_deinit(next);
        refuse(out, STATUS_LIMIT);
        return;
    }
    out->action = TRANSACTION_WRITE;
    out->producer_id = next->producer_id;
    out->producer_epoch = next->producer_epoch;
}

static bool contains_all(const struct transaction_view *view, const struct transaction_add *add)
{
    return view->value->status == TRANSACTION_ONGOING &&
           transaction_partitions_missing(&view->value->partitions, add->partitions,
                                          add->partition_count) == 0;
}

void transaction_decide_add(const struct transaction_view *view, const struct transaction_add *add,
                            struct transaction_decision *out)
{
    const struct transaction_value *value = view->value;
    begin(out);
    if (!is_known(value) || add->producer_id != value->producer_id) {
        refuse(out, STATUS_PRODUCER_ID_MAPPING);
    } else if (add->producer_epoch != value->producer_epoch) {
        refuse(out, STATUS_PRODUCER_FENCED);
    } else if (view->pending || transaction_is_prepared(value)) {
        wait(out);
    } else if (contains_all(view, add)) {
        answer(out, value->producer_id, value->producer_epoch);
    } else {
        write_ongoing(view, add, out);
    }
}

/* ---- a batch on its way into a partition ---- */

/* The producer was told how to go on before the end of its last transaction was complete. */
static bool is_next_producer(const struct transaction_value *value,
                             const struct transaction_add *append)
{
    return transaction_is_prepared(value) && value->next_producer_id >= 0 &&
           append->producer_id == value->next_producer_id && append->producer_epoch == 0;
}

static enum status not_in_transaction(enum transaction_client client)
{
    return client == TRANSACTION_CLIENT_OLD ? STATUS_INVALID_TXN_STATE : STATUS_TXN_ABORTABLE;
}

void transaction_decide_append(const struct transaction_view *view,
                               const struct transaction_add *append, enum transaction_client client,
                               struct transaction_decision *out)
{
    const struct transaction_value *value = view->value;
    begin(out);
    if (MUTANT(13)) {
        answer(out, append->producer_id, append->producer_epoch);
    } else if (is_known(value) && is_next_producer(value, append)) {
        wait(out);
    } else if (!is_known(value) || append->producer_id != value->producer_id) {
        refuse(out, STATUS_PRODUCER_ID_MAPPING);
    } else if (append->producer_epoch != value->producer_epoch) {
        refuse(out, STATUS_STALE_PRODUCER_EPOCH);
    } else if (transaction_is_prepared(value)) {
        wait(out);
    } else if (contains_all(view, append) &&
               (!view->pending || view->pending_status == TRANSACTION_ONGOING)) {
        answer(out, value->producer_id, value->producer_epoch);
    } else if (view->pending) {
        wait(out);
    } else if (client == TRANSACTION_CLIENT_V2) {
        write_ongoing(view, append, out);
    } else {
        refuse(out, not_in_transaction(client));
    }
}

/* ---- EndTxn ---- */

static bool same_outcome(const struct transaction_value *value, bool commit)
{
    return commit ? value->status == TRANSACTION_PREPARE_COMMIT ||
                        value->status == TRANSACTION_COMPLETE_COMMIT
                  : value->status == TRANSACTION_PREPARE_ABORT ||
                        value->status == TRANSACTION_COMPLETE_ABORT;
}

/* What the producer goes on with after the end that is on record. */
static void answer_end(const struct transaction_value *value, struct transaction_decision *out)
{
    answer(out, value->producer_id, value->producer_epoch);
}

static void write_prepared(const struct transaction_view *view, const struct transaction_end *end,
                           struct transaction_decision *out)
{
    struct transaction_value *next = &out->next;
    continue_from(view->value, next);
    if (next->status != TRANSACTION_ONGOING) {
        transaction_partitions_deinit(&next->partitions);
        next->start_ms = view->now_ms;
    }
    next->status = end->commit ? TRANSACTION_PREPARE_COMMIT : TRANSACTION_PREPARE_ABORT;
    next->last_update_ms = view->now_ms;
    out->action = TRANSACTION_WRITE;
    out->producer_id = next->producer_id;
    out->producer_epoch = next->producer_epoch;
    next->client_version = end->transaction_v2 ? 2 : 0;
    if (!end->transaction_v2 || MUTANT(14)) return;
    if (transaction_wants_producer_id(view->value)) {
        next->next_producer_id = view->spare_producer_id;
        out->producer_id = view->spare_producer_id;
        out->producer_epoch = 0;
    } else {
        out->producer_epoch++;
    }
    if (next->producer_epoch < EPOCH_FENCE_MAX) next->producer_epoch++;
}

static void decide_end_v1(const struct transaction_view *view, const struct transaction_end *end,
                          struct transaction_decision *out)
{
    const struct transaction_value *value = view->value;
    if (!is_known(value) || end->producer_id != value->producer_id) {
        refuse(out, STATUS_PRODUCER_ID_MAPPING);
    } else if (end->producer_epoch != value->producer_epoch) {
        refuse(out, STATUS_PRODUCER_FENCED);
    } else if (view->pending) {
        wait(out);
    } else if (value->status == TRANSACTION_ONGOING) {
        write_prepared(view, end, out);
    } else if (!same_outcome(value, end->commit)) {
        refuse(out, STATUS_INVALID_TXN_STATE);
    } else if (transaction_is_prepared(value)) {
        wait(out);
    } else {
        answer_end(value, out);
    }
}

/* The end before this one used the epochs of another id up, and its answer was lost. */
static bool is_overflow_retry(const struct transaction_value *value,
                              const struct transaction_end *end)
{
    return value->previous_producer_id >= 0 && end->producer_id == value->previous_producer_id &&
           end->producer_epoch >= TRANSACTION_EPOCH_MAX && value->producer_epoch == 0;
}

/* A repeated end: the epoch from before it. */
static void decide_end_again(const struct transaction_value *value,
                             const struct transaction_end *end, struct transaction_decision *out)
{
    if (!same_outcome(value, end->commit)) {
        refuse(out, STATUS_INVALID_TXN_STATE);
    } else if (transaction_is_prepared(value)) {
        wait(out);
    } else {
        answer_end(value, out);
    }
}

static void decide_end_v2(const struct transaction_view *view, const struct transaction_end *end,
                          struct transaction_decision *out)
{
    const struct transaction_value *value = view->value;
    if (view->pending) {
        wait(out);
        return;
    }
    bool overflow = is_known(value) && is_overflow_retry(value, end);
    bool early = is_known(value) && transaction_is_prepared(value) &&
                 value->next_producer_id >= 0 && end->producer_id == value->next_producer_id;
    if (!is_known(value) || (end->producer_id != value->producer_id && !overflow && !early)) {
        refuse(out, STATUS_PRODUCER_ID_MAPPING);
        return;
    }
    bool current =
        end->producer_id == value->producer_id && end->producer_epoch == value->producer_epoch;
    bool before = (end->producer_id == value->producer_id &&
                   end->producer_epoch == value->producer_epoch - 1) ||
                  overflow;
    /* An end of version 1 raised no epoch, so who is one behind was fenced by another producer, and
     * what is on record was never its own: Kafka takes it for a retry, and the two go on as one. */
    bool ended =
        (transaction_is_prepared(value) || is_complete(value)) && value->client_version >= 2;
    if (ended && before) {
        decide_end_again(value, end, out);
    } else if (early || (transaction_is_prepared(value) && current)) {
        wait(out); /* the next end, of a transaction without a partition */
    } else if (!current) {
        refuse(out, STATUS_PRODUCER_FENCED);
    } else if (is_at_rest(value) && end->commit) {
        refuse(out, STATUS_INVALID_TXN_STATE);
    } else {
        write_prepared(view, end, out);
    }
}

void transaction_decide_end(const struct transaction_view *view, const struct transaction_end *end,
                            struct transaction_decision *out)
{
    begin(out);
    if (end->transaction_v2) {
        decide_end_v2(view, end, out);
    } else {
        decide_end_v1(view, end, out);
    }
}

/* ---- from inside ---- */

void transaction_decide_abort(const struct transaction_view *view, struct transaction_decision *out)
{
    begin(out);
    if (view->pending || transaction_is_prepared(view->value)) {
        wait(out);
    } else if (!is_known(view->value) || view->value->status != TRANSACTION_ONGOING) {
        refuse(out, STATUS_INVALID_TXN_STATE);
    } else {
        write_fenced_abort(view, out);
    }
}

void transaction_complete(const struct transaction_value *value, int64_t now_ms,
                          struct transaction_value *out)
{
    ASSERT(transaction_is_prepared(value));
    *out = *value;
    out->partitions = (struct transaction_partitions){0};
    out->status = value->status == TRANSACTION_PREPARE_COMMIT ? TRANSACTION_COMPLETE_COMMIT
                                                              : TRANSACTION_COMPLETE_ABORT;
    out->last_update_ms = now_ms;
    if (value->next_producer_id < 0) return;
    out->previous_producer_id = value->producer_id;
    out->producer_id = value->next_producer_id;
    out->producer_epoch = 0;
    out->next_producer_id = -1;
}
