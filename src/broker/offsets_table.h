/* offsets_table.h: the committed offsets that one partition of `__consumer_offsets` holds. Pure.
 *
 * Derived from the log's records alone, in order (group_tables.h). What was committed inside a
 * transaction is pending until the marker of its producer; then, of it and of a plain commit, the
 * one whose record lies further on counts: compaction keeps that one, too (T35). Groups are found
 * by hash; the offsets of one are kept ascending by (topic, partition), so that what is listed has
 * one order everywhere. The hash of the whole is kept up to date with each change and does not
 * depend on the order of changes (I24).                   */
#ifndef MOONMQ_BROKER_OFFSETS_TABLE_H
#define MOONMQ_BROKER_OFFSETS_TABLE_H

#include "broker/offsets_records.h"
#include "record/batch.h"

struct offsets_table;

/* Read-only outside; valid until the next change of the table. */
struct offset_entry {
    char *topic;
    size_t topic_bytes;
    int32_t partition;
    int64_t offset;
    int32_t leader_epoch;
    char *metadata;
    size_t metadata_bytes;
    int64_t commit_timestamp_ms;
    int64_t record_offset; /* where its record lies */
    uint64_t hash;
};
struct offset_group {
    const char *id;
    size_t id_bytes;
    const struct offset_entry *entries;
    uint32_t count;
};

struct offsets_table *offsets_table_new(void);
void offsets_table_free(struct offsets_table *table); /* NULL is allowed */
void offsets_table_clear(struct offsets_table *table);
/* Takes in a record, which has a key, of a committed batch; in a transaction it is pending.
 * STATUS_NOT_FOUND: one of another type. STATUS_CORRUPT, or UNSUPPORTED: written by a later
 * version. */
STATUS_MUST_CHECK
enum status offsets_table_apply_record(struct offsets_table *table,
                                       const struct batch_header *header,
                                       const struct record *record, struct error *error);
/* What the producer's transaction left pending counts, or is forgotten. */
void offsets_table_end_transaction(struct offsets_table *table, int64_t producer_id, bool commit);
/* Borrowed from the table. */
struct offset_key offset_entry_key(struct slice group, const struct offset_entry *entry);
/* NULL: none committed. */
const struct offset_entry *offsets_table_find(const struct offsets_table *table, struct slice group,
                                              struct slice topic, int32_t partition);
/* May an open transaction still change it? */
bool offsets_table_is_pending(const struct offsets_table *table, const struct offset_key *key);
/* count 0 when the group is not known. */
struct offset_group offsets_table_group(const struct offsets_table *table, struct slice group);
/* Groups in the order in which they were first seen: index 0, 1, …; false at the end. */
typedef void (*offset_group_fn)(void *context, const struct offset_group *group);
void offsets_table_each(const struct offsets_table *table, offset_group_fn each, void *context);
/* Every key that is pending, once. */
typedef void (*offset_key_fn)(void *context, const struct offset_key *key);
void offsets_table_each_pending(const struct offsets_table *table, offset_key_fn each,
                                void *context);
/* The room that groups and their offsets take, and what is pending; and of it the latter. */
size_t offsets_table_bytes(const struct offsets_table *table);
size_t offsets_table_pending_bytes(const struct offsets_table *table);
uint64_t offsets_table_hash(const struct offsets_table *table);

#endif
