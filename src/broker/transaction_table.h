/* transaction_table.h: the transactional ids that one partition of `__transaction_state` holds.
 * Pure.
 *
 * Derived from the log's batches alone, in order, on leader and followers alike. The hash of the
 * whole is kept up to date with each change and does not depend on the order of changes (I24). */
#ifndef MOONMQ_BROKER_TRANSACTION_TABLE_H
#define MOONMQ_BROKER_TRANSACTION_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "broker/transaction_records.h"

struct transaction_table;

/* Read-only outside; valid until the next change of the table. */
struct transaction_entry {
    struct slice id;
    struct transaction_value value;
};

struct transaction_table *transaction_table_new(void);
void transaction_table_free(struct transaction_table *table); /* NULL is allowed */
void transaction_table_clear(struct transaction_table *table);
/* Takes in a committed batch; records of other types are skipped. STATUS_CORRUPT, or UNSUPPORTED:
 * written by a later version. */
STATUS_MUST_CHECK
enum status transaction_table_apply_batch(struct transaction_table *table, const uint8_t *data,
                                          size_t bytes, struct error *error);
/* NULL: nothing on record. */
const struct transaction_entry *transaction_table_find(const struct transaction_table *table,
                                                       struct slice id);
/* In the order in which they were first seen; NULL starts, NULL ends. */
const struct transaction_entry *transaction_table_next(const struct transaction_table *table,
                                                       const struct transaction_entry *after);
uint32_t transaction_table_count(const struct transaction_table *table);
/* Keys and values as they are written, together. */
size_t transaction_table_bytes(const struct transaction_table *table);
uint64_t transaction_table_hash(const struct transaction_table *table);

#endif
