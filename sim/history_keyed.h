/* history_keyed.h: records with keys, in a log that is compacted; the judge of I19 and I11c.
 *
 * Each key is written by one writer, in order; a tombstone deletes it. Compaction may take away
 * every record of a key but the newest, and that one too once it is a tombstone: so a reading from
 * the start to the end gives each key's newest value, never an older one. Who a record is stands
 * in a header of it, as a tombstone has no value.                                              */
#ifndef MOONMQ_SIM_HISTORY_KEYED_H
#define MOONMQ_SIM_HISTORY_KEYED_H

#include "record/batch.h"
#include "sim/history.h"

/* A new record of `writer` for `key` (from 1 on); value_bytes 0: a tombstone. */
history_id history_new_keyed_record(struct history *history, uint32_t writer, uint16_t key,
                                    uint16_t value_bytes);
bool history_is_tombstone(const struct history *history, history_id id);
/* Its key and its one header, as a batch has them. */
void history_write_key(const struct history *history, history_id id, struct buffer *out);
void history_write_header(history_id id, struct buffer *out);

/* One reading of a log from its start to an end that lies behind all that was acknowledged when it
 * began. */
struct history_map {
    uint32_t log, writer;
    int64_t next;       /* offsets before it were read */
    uint16_t key_count; /* keys 1 .. key_count */
    history_id *last;   /* of each key: the last record met; HISTORY_NOTHING: none */
    history_id *newest; /* of each key: the newest record acknowledged when it began */
};
void history_map_begin(struct history *history, struct history_map *map, uint32_t log,
                       uint32_t writer, uint16_t key_count);
/* In the order of their offsets. */
void history_map_record(struct history *history, struct history_map *map,
                        const struct record *record);
/* Judges, and frees what the map holds. */
void history_map_end(struct history *history, struct history_map *map);
void history_map_drop(struct history_map *map);

#endif
