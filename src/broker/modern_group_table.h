/* modern_group_table.h: the groups of the new protocol that one partition of `__consumer_offsets`
 * holds. Pure.
 *
 * Derived from the log's records alone, in order (group_tables.h), on leader and followers alike:
 * whoever comes to lead copies a group from here and goes on with it, without a rebalance. The
 * groups here run no timers. Walks go in the order in which the groups were first seen; the hash of
 * the whole does not depend on it (I24). */
#ifndef MOONMQ_BROKER_MODERN_GROUP_TABLE_H
#define MOONMQ_BROKER_MODERN_GROUP_TABLE_H

#include "broker/modern_group.h"
#include "record/batch.h"

struct modern_group_table;

struct modern_group_table *modern_group_table_new(void);
void modern_group_table_free(struct modern_group_table *table); /* NULL is allowed */
void modern_group_table_clear(struct modern_group_table *table);
/* Takes in a record, which has a key, of a committed batch. STATUS_NOT_FOUND: one of another type.
 * STATUS_CORRUPT, or UNSUPPORTED: written by a later version. */
STATUS_MUST_CHECK
enum status modern_group_table_apply_record(struct modern_group_table *table,
                                            const struct record *record, struct error *error);
/* NULL: not there. Until the next batch. */
const struct modern_group *modern_group_table_find(const struct modern_group_table *table,
                                                   struct slice group);
typedef void (*modern_group_fn)(void *context, const struct modern_group *group);
void modern_group_table_each(const struct modern_group_table *table, modern_group_fn each,
                             void *context);
uint64_t modern_group_table_hash(const struct modern_group_table *table);

#endif
