/* producer_undo.c: taking applies back when the log is cut.
 *
 * The ring holds one record for each apply at or above `undo_from`, oldest first. A cut plays them
 * back from the newest. Records below the high watermark are dropped (or, while a table is
 * rebuilt, never made), and beyond PRODUCER_UNDO_COUNT_MAX the oldest go: undo_from then rises
 * past them.                                                                                   */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "broker/producer_state.h"
#include "broker/producer_table.h"

#define UNDO_CAPACITY_MIN 16
/* An emptied ring larger than this gives its memory back: partitions are many, bursts are rare. */
#define UNDO_CAPACITY_IDLE 64

static struct producer_undo *undo_at(const struct producer_table *table, uint32_t index)
{
    return &table->undo[(table->undo_head + index) % table->undo_capacity];
}

/* The apply at `base_offset` can be undone no more. A cut falls between batches: above the base
 * offset is past all of its batch. */
static void undo_forget(struct producer_table *table, int64_t base_offset)
{
    if (base_offset >= table->undo_from) table->undo_from = base_offset + 1;
}

static void undo_drop_oldest(struct producer_table *table)
{
    struct producer_undo *record = undo_at(table, 0);
    undo_forget(table, record->base_offset);
    free(record->saved);
    table->undo_head = (table->undo_head + 1) % table->undo_capacity;
    table->undo_count--;
}

void producer_undo_clear(struct producer_table *table)
{
    while (table->undo_count > 0) {
        undo_drop_oldest(table);
    }
    table->undo_head = 0;
}

/* Room for one more record; false when out of memory. */
static bool undo_reserve(struct producer_table *table)
{
    if (table->undo_count == PRODUCER_UNDO_COUNT_MAX) undo_drop_oldest(table);
    if (table->undo_count < table->undo_capacity) return true;
    uint32_t capacity = table->undo_capacity == 0 ? UNDO_CAPACITY_MIN : table->undo_capacity * 2;
    struct producer_undo *undo = malloc(capacity * sizeof *undo);
    if (undo == NULL) return false;
    for (uint32_t i = 0; i < table->undo_count; i++) {
        undo[i] = *undo_at(table, i);
    }
    free(table->undo);
    table->undo = undo;
    table->undo_capacity = capacity;
    table->undo_head = 0;
    return true;
}

void producer_undo_note(struct producer_table *table, int64_t producer_id, int64_t base_offset,
                        const struct producer_entry *entry, bool step, bool pushed)
{
    if (base_offset < table->high_watermark) {
        undo_forget(table, base_offset);
        return;
    }
    struct producer_undo record = {.base_offset = base_offset, .producer_id = producer_id};
    bool noted = undo_reserve(table);
    if (entry == NULL) {
        record.kind = PRODUCER_UNDO_CREATED;
    } else if (step) {
        const struct producer_state *state = &entry->state;
        record.kind = PRODUCER_UNDO_STEP;
        record.pushed = pushed;
        record.evicted = pushed && state->batch_count == PRODUCER_BATCHES_KEPT;
        record.oldest = state->batches[0];
        record.last_offset = state->last_offset;
        record.last_timestamp_ms = state->last_timestamp_ms;
        record.open_first_offset = state->open_first_offset;
    } else {
        record.kind = PRODUCER_UNDO_SAVED;
        record.saved = noted ? malloc(sizeof *record.saved) : NULL;
        noted = record.saved != NULL;
        if (noted) *record.saved = entry->state;
    }
    if (!noted) {
        producer_undo_clear(table);
        undo_forget(table, base_offset);
        return;
    }
    *undo_at(table, table->undo_count) = record;
    table->undo_count++;
}

static void undo_step(struct producer_state *state, const struct producer_undo *record)
{
    if (record->pushed) state->batch_count--;
    if (record->evicted) {
        memmove(state->batches + 1, state->batches,
                (PRODUCER_BATCHES_KEPT - 1) * sizeof state->batches[0]);
        state->batches[0] = record->oldest;
        state->batch_count++;
    }
    state->last_offset = record->last_offset;
    state->last_timestamp_ms = record->last_timestamp_ms;
    state->open_first_offset = record->open_first_offset;
}

static void undo_newest(struct producer_table *table)
{
    struct producer_undo *record = undo_at(table, table->undo_count - 1);
    struct producer_entry *entry = producer_entry_find(table, record->producer_id);
    ASSERT(entry != NULL); /* neither expired nor evicted while it has a record */
    switch (record->kind) {
    case PRODUCER_UNDO_CREATED: producer_entry_remove(table, entry); break;
    case PRODUCER_UNDO_STEP:
        undo_step(&entry->state, record);
        producer_entry_place(table, entry);
        break;
    case PRODUCER_UNDO_SAVED: {
        int64_t written_ms = entry->state.written_ms;
        entry->state = *record->saved;
        entry->state.written_ms = written_ms;
        producer_entry_place(table, entry);
        break;
    }
    }
    free(record->saved);
    table->undo_count--;
}

void producer_table_settle(struct producer_table *table, int64_t high_watermark)
{
    if (high_watermark <= table->high_watermark) return;
    table->high_watermark = high_watermark;
    while (table->undo_count > 0 && undo_at(table, 0)->base_offset < high_watermark) {
        undo_drop_oldest(table);
    }
    int64_t settled_end = high_watermark < table->end_offset ? high_watermark : table->end_offset;
    if (settled_end > table->undo_from) table->undo_from = settled_end;
    if (table->undo_count == 0 && table->undo_capacity > UNDO_CAPACITY_IDLE) {
        free(table->undo);
        table->undo = NULL;
        table->undo_head = table->undo_capacity = 0;
    }
    uint32_t settled = 0;
    while (settled < table->closed_count && table->closed[settled].marker_offset < high_watermark) {
        settled++;
    }
    if (settled > 0) {
        table->closed_count -= settled;
        memmove(table->closed, table->closed + settled,
                table->closed_count * sizeof table->closed[0]);
    }
}

/* Is nothing that is remembered derived from `offset` or above? */
static bool untouched_since(const struct producer_table *table, int64_t offset)
{
    const struct producer_state *state = producer_table_first(table);
    for (; state != NULL; state = producer_table_next(state)) {
        if (state->last_offset >= offset) return false;
    }
    return true;
}

bool producer_table_truncate(struct producer_table *table, int64_t offset)
{
    if (offset >= table->end_offset) return true;
    /* Below undo_from records are missing, but if nobody wrote since there is nothing to undo. */
    if (offset < table->undo_from && !untouched_since(table, offset)) {
        producer_table_clear(table, 0);
        return false;
    }
    while (table->undo_count > 0 && undo_at(table, table->undo_count - 1)->base_offset >= offset) {
        undo_newest(table);
    }
    while (table->closed_count > 0 &&
           table->closed[table->closed_count - 1].marker_offset >= offset) {
        table->closed_count--;
    }
    aborted_index_truncate(&table->aborted, offset);
    table->end_offset = offset;
    if (table->undo_from > offset) table->undo_from = offset;
    if (table->high_watermark > offset) table->high_watermark = offset;
    return true;
}

/* ---- for compaction ---- */

struct kept_offsets {
    int64_t limit;
    int64_t *offsets;
    size_t count, capacity;
};

static void kept_add(struct kept_offsets *kept, int64_t offset)
{
    if (offset < 0 || offset >= kept->limit) return;
    if (kept->count == kept->capacity) {
        kept->capacity = kept->capacity == 0 ? 64 : kept->capacity * 2;
        kept->offsets = memory_resize(kept->offsets, kept->capacity, sizeof(*kept->offsets));
    }
    kept->offsets[kept->count++] = offset;
}

static void kept_add_batch(struct kept_offsets *kept, const struct producer_batch *batch)
{
    kept_add(kept, batch->base_offset + batch->delta);
}

static void kept_add_state(struct kept_offsets *kept, const struct producer_state *state)
{
    for (int i = 0; i < state->batch_count; i++) {
        kept_add_batch(kept, &state->batches[i]);
    }
    kept_add(kept, state->last_offset);
}

size_t producer_table_list_offsets(const struct producer_table *table, int64_t limit,
                                   int64_t **offsets)
{
    struct kept_offsets kept = {.limit = limit};
    for (const struct producer_state *state = producer_table_first(table); state != NULL;
         state = producer_table_next(state)) {
        kept_add_state(&kept, state);
    }
    for (uint32_t i = 0; i < table->undo_count; i++) {
        const struct producer_undo *record = undo_at(table, i);
        if (record->kind == PRODUCER_UNDO_SAVED) kept_add_state(&kept, record->saved);
        if (record->kind != PRODUCER_UNDO_STEP) continue;
        kept_add(&kept, record->last_offset);
        if (record->evicted) kept_add_batch(&kept, &record->oldest);
    }
    *offsets = kept.offsets;
    return kept.count;
}
