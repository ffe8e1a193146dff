/* consumer_group_table.h: the consumer groups that one partition of `__consumer_offsets` holds, as
 * last written. Pure.
 *
 * Derived from the log's records alone, in order (group_tables.h), on leader and followers alike. A
 * group is kept as the bytes of its record, checked when they came. Walks go in the order in which
 * the groups were first seen; the hash of the whole does not depend on that order (I24). */
#ifndef MOONMQ_BROKER_CONSUMER_GROUP_TABLE_H
#define MOONMQ_BROKER_CONSUMER_GROUP_TABLE_H

#include <stdbool.h>

#include "broker/consumer_group_records.h"
#include "record/batch.h"

struct consumer_group_table;

struct consumer_group_table *consumer_group_table_new(void);
void consumer_group_table_free(struct consumer_group_table *table); /* NULL is allowed */
void consumer_group_table_clear(struct consumer_group_table *table);
/* Takes in a record, which has a key, of a committed batch. STATUS_NOT_FOUND: one of another type.
 * STATUS_CORRUPT, or UNSUPPORTED: written by a later version. */
STATUS_MUST_CHECK
enum status consumer_group_table_apply_record(struct consumer_group_table *table,
                                              const struct record *record, struct error *error);
/* false: not there. *out is borrowed until the next change of the table. */
bool consumer_group_table_find(const struct consumer_group_table *table, struct slice group,
                               struct group_record *out);
typedef void (*group_record_fn)(void *context, struct slice group, struct group_record *record);
void consumer_group_table_each(const struct consumer_group_table *table, group_record_fn each,
                               void *context);
uint64_t consumer_group_table_hash(const struct consumer_group_table *table);

#endif
