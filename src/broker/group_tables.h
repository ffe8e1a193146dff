/* group_tables.h: what the records of one partition of `__consumer_offsets` say, by what their keys
 * name: committed offsets, groups of the classic protocol, groups of the new one. Pure.
 *
 * A batch is unfolded and walked once; each record goes to the table that its key names, in order:
 * one batch may say of a group that it is of the one kind no longer and of the other from now on.
 */
#ifndef MOONMQ_BROKER_GROUP_TABLES_H
#define MOONMQ_BROKER_GROUP_TABLES_H

#include "broker/consumer_group_table.h"
#include "broker/modern_group_table.h"
#include "broker/offsets_table.h"

/* Of one that is NULL, the records are skipped. */
struct group_tables {
    struct offsets_table *offsets;
    struct consumer_group_table *groups;
    struct modern_group_table *modern;
};
/* Takes in a committed batch, its base offset filled in. Records of types that no table knows are
 * skipped. STATUS_CORRUPT, or UNSUPPORTED: written by a later version; what came before it in the
 * batch was taken in. */
STATUS_MUST_CHECK
enum status group_tables_apply_batch(const struct group_tables *tables, const uint8_t *data,
                                     size_t bytes, struct error *error);

#endif
