/* pending_offsets.h: offsets committed inside transactions that are still open (kafka-listener.md
 * 8.2). Pure.
 *
 * One partition of `__consumer_offsets` has one: part of its table of committed offsets
 * (offsets_table.h), where they go when the producer's marker says commit. Keys are encoded offset
 * keys. Of one producer the last commit for a key counts. The hash does not depend on the order of
 * changes (I24). */
#ifndef MOONMQ_BROKER_PENDING_OFFSETS_H
#define MOONMQ_BROKER_PENDING_OFFSETS_H

#include "broker/offsets_records.h"

struct pending_offsets;

struct pending_offsets *pending_offsets_new(void);
void pending_offsets_free(struct pending_offsets *pending); /* NULL is allowed */
void pending_offsets_clear(struct pending_offsets *pending);
/* Copies `key` and the value. record_offset: where the record lies. */
void pending_offsets_put(struct pending_offsets *pending, int64_t producer_id,
                         const struct offset_key *key, const struct offset_value *value,
                         int64_t record_offset);
/* May an open transaction, of whatever producer, still change this offset? */
bool pending_offsets_contain(const struct pending_offsets *pending, const struct offset_key *key);
/* Every key that is pending, once. */
void pending_offsets_each_key(const struct pending_offsets *pending,
                              void (*each)(void *context, const struct offset_key *key),
                              void *context);
/* The offset was removed, by a record after all of these. */
void pending_offsets_forget(struct pending_offsets *pending, const struct offset_key *key);
/* The producer's transaction has ended: `each`, if not NULL, gets what it had committed, in the
 * order in which its keys first came; then all of it is gone. */
typedef void (*pending_offset_fn)(void *context, const struct offset_key *key,
                                  const struct offset_value *value, int64_t record_offset);
void pending_offsets_end(struct pending_offsets *pending, int64_t producer_id,
                         pending_offset_fn each, void *context);
/* The room that it takes. */
size_t pending_offsets_bytes(const struct pending_offsets *pending);
uint64_t pending_offsets_hash(const struct pending_offsets *pending);

#endif
