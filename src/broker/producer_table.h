/* producer_table.h: the inside of a producer table. Private to producer_*.c.
 *
 * Every producer is in the hash and in exactly one list: `open` (with an open transaction, by first
 * offset) or `idle` (by last write, oldest first). So the oldest open transaction and the next
 * producer to expire are both at a head.                                                       */
#ifndef MOONMQ_BROKER_PRODUCER_TABLE_H
#define MOONMQ_BROKER_PRODUCER_TABLE_H

#include <stddef.h>

#include "broker/aborted_index.h"
#include "broker/producer_state.h"

/* Out of memory is reported by the element, not by exit(). */
#define HASH_NONFATAL_OOM        1
#define uthash_nonfatal_oom(elt) ((elt)->hash_failed = true)
#include <uthash.h>
#include <utlist.h>

#define PRODUCER_NOT_OPEN (-1)

struct producer_entry {
    struct producer_state state; /* first: a state handed out is its entry */
    struct producer_entry *prev, *next;
    bool in_open;
    bool hash_failed;
    UT_hash_handle hh;
};
_Static_assert(offsetof(struct producer_entry, state) == 0, "a state handed out is its entry");

enum producer_undo_kind {
    PRODUCER_UNDO_CREATED, /* the entry did not exist */
    PRODUCER_UNDO_STEP,    /* one more of the same epoch: undone field by field */
    PRODUCER_UNDO_SAVED,   /* anything else: the state as it was */
};

/* How to take one apply back. */
struct producer_undo {
    enum producer_undo_kind kind;
    bool pushed;  /* STEP: a batch was remembered */
    bool evicted; /* STEP: and pushed the oldest one out */
    int64_t base_offset;
    int64_t producer_id;
    int64_t last_offset, last_timestamp_ms, open_first_offset; /* STEP: as before */
    struct producer_batch oldest;                              /* STEP, evicted */
    struct producer_state *saved;                              /* SAVED: owned */
};

/* A transaction whose marker may still be cut off or be above the high watermark. */
struct producer_closed {
    int64_t first_offset, marker_offset;
};

struct producer_table {
    struct producer_entry *by_id;
    struct producer_entry *idle, *open;
    int64_t end_offset;
    int64_t high_watermark; /* settled: below it nothing needs undoing; may exceed end_offset */
    int64_t undo_from;      /* a cut at or above it is undone exactly */

    /* A ring of records, by offset. */
    struct producer_undo *undo;
    uint32_t undo_head, undo_count, undo_capacity;

    /* By marker offset. */
    struct producer_closed *closed;
    uint32_t closed_count, closed_capacity;

    struct aborted_index aborted;
};

struct producer_entry *producer_entry_find(const struct producer_table *table, int64_t producer_id);
/* A new entry with empty state, last of the idle list; NULL when out of memory. */
struct producer_entry *producer_entry_add(struct producer_table *table, int64_t producer_id);
void producer_entry_remove(struct producer_table *table, struct producer_entry *entry);
/* Puts the entry into the list that its state asks for; an idle one goes last. */
void producer_entry_place(struct producer_table *table, struct producer_entry *entry);
/* Room for one more closed transaction? False when out of memory. */
bool producer_closed_reserve(struct producer_table *table);

/* producer_undo.c. A record for the apply at `base_offset`, taken before the entry changes; without
 * memory the table forgets how to undo instead of failing. `entry` NULL: it is about to be made. */
void producer_undo_note(struct producer_table *table, int64_t producer_id, int64_t base_offset,
                        const struct producer_entry *entry, bool step, bool pushed);
void producer_undo_clear(struct producer_table *table);

#endif
