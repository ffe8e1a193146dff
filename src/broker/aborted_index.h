/* aborted_index.h: the aborted transactions of one partition, for read_committed (kafka-listener.md
 * 5.3). Pure.
 *
 * One entry a transaction, ascending by the offset of its marker: markers come in the order of the
 * log, so entries are added at the end and cut off there with the log. Derived from the log, as the
 * producer table is, which holds it.
 *
 * An entry also keeps the last stable offset right behind its marker. Every later transaction was
 * open then or began later, so none of them begins below it: a search ends there. */
#ifndef MOONMQ_BROKER_ABORTED_INDEX_H
#define MOONMQ_BROKER_ABORTED_INDEX_H

#include <stdbool.h>
#include <stdint.h>

struct aborted_transaction {
    int64_t producer_id;
    int64_t first_offset;  /* of its first batch */
    int64_t marker_offset; /* above first_offset */
    int64_t last_stable_offset;
};

/* All zero: empty. */
struct aborted_index {
    struct aborted_transaction *entries;
    uint32_t count, capacity;
};

void aborted_index_deinit(struct aborted_index *index); /* empty again */
void aborted_index_clear(struct aborted_index *index);
/* Room for one more? False when out of memory. */
bool aborted_index_reserve(struct aborted_index *index);
/* Room is reserved; the marker lies above all that are there. */
void aborted_index_add(struct aborted_index *index, const struct aborted_transaction *transaction);
/* The log was cut to end at `offset`: the transactions whose marker went are not aborted. */
void aborted_index_truncate(struct aborted_index *index, int64_t offset);
/* The log begins at `log_start`, or holds nothing aborted below: whose marker lies below is of no
 * use to a reader. */
void aborted_index_prune(struct aborted_index *index, int64_t log_start);

/* Transactions of which a reader of [offset, end_offset) must know: the marker is not below
 * `offset` and the first batch is below `end_offset`. Fills the first `capacity` of them, ascending
 * by marker offset; returns how many there are. */
uint32_t aborted_index_find(const struct aborted_index *index, int64_t offset, int64_t end_offset,
                            struct aborted_transaction *out, uint32_t capacity);

/* Is the transactional data batch at `base_offset` part of an aborted transaction? For a reader who
 * walks batches upwards with what aborted_index_find() gave him; *at begins at 0 and is kept. */
bool aborted_transactions_hold(const struct aborted_transaction *transactions, uint32_t count,
                               uint32_t *at, int64_t producer_id, int64_t base_offset);

#endif
