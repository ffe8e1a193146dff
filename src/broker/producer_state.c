/* producer_state.c: the table itself: looking up, checking, taking in, forgetting.
 *
 * Invariant: every batch remembered of a producer is of its current epoch, and sequences do not run
 * backwards among them. Undoing is in producer_undo.c, snapshots are in producer_snapshot.c.    */
#include "broker/producer_state.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/mutant.h"
#include "broker/producer_table.h"

#define SEQUENCE_MASK    0x7fffffffu
#define SEQUENCES_HALF   0x40000000u
#define CLOSED_COUNT_MIN 8

struct producer_table *producer_table_new(void)
{
    return calloc(1, sizeof(struct producer_table));
}

void producer_table_clear(struct producer_table *table, int64_t end_offset)
{
    struct producer_entry *entry, *next;
    HASH_ITER(hh, table->by_id, entry, next)
    {
        producer_entry_remove(table, entry);
    }
    producer_undo_clear(table);
    table->closed_count = 0;
    aborted_index_clear(&table->aborted);
    table->end_offset = end_offset;
    table->high_watermark = 0;
    table->undo_from = end_offset;
}

void producer_table_free(struct producer_table *table)
{
    if (table == NULL) return;
    producer_table_clear(table, 0);
    free(table->undo);
    free(table->closed);
    aborted_index_deinit(&table->aborted);
    free(table);
}

int64_t producer_table_end_offset(const struct producer_table *table)
{
    return table->end_offset;
}

size_t producer_table_count(const struct producer_table *table)
{
    return HASH_COUNT(table->by_id);
}

/* ---- entries ---- */

struct producer_entry *producer_entry_find(const struct producer_table *table, int64_t producer_id)
{
    struct producer_entry *entry;
    HASH_FIND(hh, table->by_id, &producer_id, sizeof producer_id, entry);
    return entry;
}

struct producer_entry *producer_entry_add(struct producer_table *table, int64_t producer_id)
{
    struct producer_entry *entry = calloc(1, sizeof *entry);
    if (entry == NULL) return NULL;
    entry->state = (struct producer_state){
        .producer_id = producer_id,
        .last_offset = -1,
        .last_timestamp_ms = -1,
        .open_first_offset = PRODUCER_NOT_OPEN,
        .coordinator_epoch = -1,
        .epoch = -1,
    };
    HASH_ADD(hh, table->by_id, state.producer_id, sizeof producer_id, entry);
    if (entry->hash_failed) {
        free(entry);
        return NULL;
    }
    DL_APPEND(table->idle, entry);
    return entry;
}

static void entry_unlink(struct producer_table *table, struct producer_entry *entry)
{
    if (entry->in_open) {
        DL_DELETE(table->open, entry);
    } else {
        DL_DELETE(table->idle, entry);
    }
}

void producer_entry_remove(struct producer_table *table, struct producer_entry *entry)
{
    entry_unlink(table, entry);
    HASH_DEL(table->by_id, entry);
    free(entry);
}

void producer_entry_place(struct producer_table *table, struct producer_entry *entry)
{
    int64_t first_offset = entry->state.open_first_offset;
    entry_unlink(table, entry);
    entry->in_open = first_offset != PRODUCER_NOT_OPEN;
    if (!entry->in_open) {
        DL_APPEND(table->idle, entry);
        return;
    }
    /* A new transaction is the youngest; only undoing a marker reaches further back. */
    struct producer_entry *before = table->open == NULL ? NULL : table->open->prev;
    while (before != NULL && before->state.open_first_offset > first_offset) {
        before = before == table->open ? NULL : before->prev;
    }
    if (before == NULL) {
        DL_PREPEND(table->open, entry);
    } else {
        DL_APPEND_ELEM(table->open, before, entry);
    }
}

const struct producer_state *producer_table_find(const struct producer_table *table,
                                                 int64_t producer_id)
{
    const struct producer_entry *entry = producer_entry_find(table, producer_id);
    return entry == NULL ? NULL : &entry->state;
}

const struct producer_state *producer_table_first(const struct producer_table *table)
{
    return table->by_id == NULL ? NULL : &table->by_id->state;
}

const struct producer_state *producer_table_next(const struct producer_state *state)
{
    const struct producer_entry *entry = (const struct producer_entry *)state;
    const struct producer_entry *next = entry->hh.next;
    return next == NULL ? NULL : &next->state;
}

/* ---- checking ---- */

static int32_t sequence_after(int32_t sequence)
{
    return (int32_t)(((uint32_t)sequence + 1) & SEQUENCE_MASK);
}

static int32_t producer_batch_last_sequence(const struct producer_batch *batch)
{
    return (int32_t)(((uint32_t)batch->first_sequence + batch->delta) & SEQUENCE_MASK);
}

int32_t producer_state_last_sequence(const struct producer_state *state)
{
    if (state->batch_count == 0) return -1;
    return producer_batch_last_sequence(&state->batches[state->batch_count - 1]);
}

/* Is `sequence` behind `expected`, as numbers that wrap? */
static bool sequence_is_behind(int32_t sequence, int32_t expected)
{
    return (((uint32_t)sequence - (uint32_t)expected) & SEQUENCE_MASK) >= SEQUENCES_HALF;
}

static bool producer_is_idle_for(const struct producer_state *state, int64_t now_ms,
                                 int64_t duration_ms)
{
    int64_t since_ms;
    if (__builtin_sub_overflow(now_ms, duration_ms, &since_ms)) return false;
    return state->open_first_offset == PRODUCER_NOT_OPEN && state->written_ms <= since_ms;
}

static const struct producer_batch *find_duplicate(const struct producer_state *state,
                                                   const struct batch_header *header)
{
    if (state->epoch != header->producer_epoch) return NULL;
    for (int i = 0; i < state->batch_count; i++) {
        const struct producer_batch *batch = &state->batches[i];
        if (batch->first_sequence == header->base_sequence &&
            batch->delta == (uint32_t)header->last_offset_delta) {
            return batch;
        }
    }
    return NULL;
}

static enum status out_of_order(const struct batch_header *header, int32_t expected,
                                struct error *error)
{
    return error_set(
        error, STATUS_OUT_OF_ORDER_SEQUENCE, "producer %lld epoch %d: sequence %d, expected %d",
        (long long)header->producer_id, header->producer_epoch, header->base_sequence, expected);
}

/* The producer that makes room when the table is full, or NULL. Those whose last batch may still be
 * undone stay, whatever the clock says. */
static struct producer_entry *find_evictable(const struct producer_table *table, int64_t now_ms)
{
    struct producer_entry *oldest = table->idle;
    if (oldest == NULL || oldest->state.last_offset >= table->undo_from ||
        !producer_is_idle_for(&oldest->state, now_ms, PRODUCER_IDLE_MS_MIN)) {
        return NULL;
    }
    return oldest;
}

static enum status check_unknown(const struct producer_table *table,
                                 const struct batch_header *header, enum producer_rules rules,
                                 int64_t now_ms, struct error *error)
{
    bool transactional = (header->attributes & BATCH_TRANSACTIONAL) != 0;
    if (rules == PRODUCER_RULES_KAFKA_V2 && transactional && header->base_sequence > 0) {
        return out_of_order(header, 0, error);
    }
    if (producer_table_count(table) >= PRODUCER_COUNT_MAX &&
        find_evictable(table, now_ms) == NULL) {
        return error_set(error, STATUS_LIMIT, "%u producer ids in use on one partition",
                         PRODUCER_COUNT_MAX);
    }
    return STATUS_OK;
}

static enum status check_sequence(const struct producer_state *state,
                                  const struct batch_header *header, enum producer_rules rules,
                                  struct producer_verdict *out, struct error *error)
{
    bool new_epoch = header->producer_epoch > state->epoch || state->batch_count == 0;
    if (rules == PRODUCER_RULES_NATIVE) {
        if (new_epoch) return STATUS_OK;
        int32_t expected = sequence_after(producer_state_last_sequence(state));
        return sequence_is_behind(header->base_sequence, expected)
                   ? out_of_order(header, expected, error)
                   : STATUS_OK;
    }
    int32_t expected = new_epoch ? 0 : sequence_after(producer_state_last_sequence(state));
    if (header->base_sequence == expected) return STATUS_OK;
    out->gap = !sequence_is_behind(header->base_sequence, expected);
    out->known_offset = state->last_offset;
    return out_of_order(header, expected, error);
}

enum status producer_check(const struct producer_table *table, const struct batch_header *header,
                           enum producer_rules rules, int64_t now_ms, int64_t expiration_ms,
                           struct producer_verdict *out, struct error *error)
{
    *out = (struct producer_verdict){.kind = PRODUCER_APPEND,
                                     .base_offset = -1,
                                     .last_offset = -1,
                                     .log_append_time_ms = -1,
                                     .known_offset = -1};
    if (header->producer_id < 0) return STATUS_OK;

    const struct producer_state *state = producer_table_find(table, header->producer_id);
    if (state == NULL) {
        out->gap = rules != PRODUCER_RULES_NATIVE && header->base_sequence > 0;
        return check_unknown(table, header, rules, now_ms, error);
    }
    if (producer_is_idle_for(state, now_ms, expiration_ms)) return STATUS_OK;

    bool sequenced = header->base_sequence >= 0;
    const struct producer_batch *duplicate = sequenced ? find_duplicate(state, header) : NULL;
    if (duplicate != NULL) {
        if (MUTANT(16)) return out_of_order(header, producer_state_last_sequence(state), error);
        *out = (struct producer_verdict){
            .kind = PRODUCER_DUPLICATE,
            .base_offset = duplicate->base_offset,
            .last_offset = duplicate->base_offset + duplicate->delta,
            .log_append_time_ms = duplicate->log_append_time ? duplicate->timestamp_ms : -1,
        };
        return STATUS_OK;
    }
    if (header->producer_epoch < state->epoch) {
        return error_set(error, STATUS_STALE_PRODUCER_EPOCH, "producer %lld: epoch %d is below %d",
                         (long long)header->producer_id, header->producer_epoch, state->epoch);
    }
    if (sequenced) {
        enum status status = check_sequence(state, header, rules, out, error);
        if (status != STATUS_OK) return status;
    }
    if ((header->attributes & BATCH_TRANSACTIONAL) == 0 &&
        state->open_first_offset != PRODUCER_NOT_OPEN) {
        return error_set(error, STATUS_INVALID_TXN_STATE,
                         "producer %lld has a transaction open since offset %lld",
                         (long long)header->producer_id, (long long)state->open_first_offset);
    }
    return STATUS_OK;
}

enum status producer_check_marker(const struct producer_table *table,
                                  const struct batch_header *header,
                                  const struct batch_marker *marker, bool transaction_v2,
                                  struct error *error)
{
    const struct producer_state *state = producer_table_find(table, header->producer_id);
    if (state == NULL) return STATUS_OK;
    if (marker->coordinator_epoch < state->coordinator_epoch) {
        return error_set(error, STATUS_FENCED_EPOCH, "marker of coordinator epoch %d, seen %d",
                         marker->coordinator_epoch, state->coordinator_epoch);
    }
    /* Under v2 every end raises the epoch: a marker of the epoch in which the transaction was
     * written belongs to the one before. Sent again with nothing open, it does no harm. */
    bool open = state->open_first_offset != PRODUCER_NOT_OPEN;
    if (header->producer_epoch < state->epoch ||
        (transaction_v2 && open && header->producer_epoch == state->epoch)) {
        return error_set(error, STATUS_STALE_PRODUCER_EPOCH,
                         "producer %lld: marker of epoch %d, known %d",
                         (long long)header->producer_id, header->producer_epoch, state->epoch);
    }
    return STATUS_OK;
}

int64_t producer_marked_offset(const struct producer_table *table,
                               const struct batch_header *header)
{
    const struct producer_state *state = producer_table_find(table, header->producer_id);
    bool marked = state != NULL && state->coordinator_epoch >= 0 &&
                  state->open_first_offset == PRODUCER_NOT_OPEN &&
                  state->epoch == header->producer_epoch;
    return marked ? state->last_offset : -1;
}

/* ---- taking in ---- */

bool producer_closed_reserve(struct producer_table *table)
{
    if (table->closed_count < table->closed_capacity) return true;
    uint32_t capacity = table->closed_capacity == 0 ? CLOSED_COUNT_MIN : table->closed_capacity * 2;
    struct producer_closed *closed = realloc(table->closed, capacity * sizeof *closed);
    if (closed == NULL) return false;
    table->closed = closed;
    table->closed_capacity = capacity;
    return true;
}

static void push_batch(struct producer_state *state, const struct batch_header *header)
{
    if (state->batch_count == PRODUCER_BATCHES_KEPT) {
        memmove(state->batches, state->batches + 1,
                (PRODUCER_BATCHES_KEPT - 1) * sizeof state->batches[0]);
        state->batch_count--;
    }
    state->batches[state->batch_count++] = (struct producer_batch){
        .base_offset = header->base_offset,
        .timestamp_ms = header->max_timestamp_ms,
        .first_sequence = header->base_sequence,
        .delta = (uint32_t)header->last_offset_delta & SEQUENCE_MASK,
        .log_append_time = (header->attributes & BATCH_LOG_APPEND_TIME) != 0,
    };
}

/* Does the batch begin a new history? With a new epoch, and where sequences run backwards: the
 * producer had expired where the batch was accepted, and began anew. */
static bool begins_history(const struct producer_state *state, const struct batch_header *header)
{
    if (header->producer_epoch != state->epoch) return true;
    return header->base_sequence >= 0 && state->batch_count > 0 &&
           sequence_is_behind(header->base_sequence,
                              sequence_after(producer_state_last_sequence(state)));
}

static void take_data(struct producer_state *state, const struct batch_header *header)
{
    if (begins_history(state, header)) state->batch_count = 0;
    state->epoch = header->producer_epoch;
    if (header->base_sequence >= 0) push_batch(state, header);
    if ((header->attributes & BATCH_TRANSACTIONAL) != 0 &&
        state->open_first_offset == PRODUCER_NOT_OPEN) {
        state->open_first_offset = header->base_offset;
    }
}

/* Room in table->closed is reserved. */
static void take_marker(struct producer_table *table, struct producer_state *state,
                        const struct batch_header *header, const struct batch_marker *marker,
                        struct producer_ended *ended)
{
    if (header->producer_epoch > state->epoch) {
        state->epoch = header->producer_epoch;
        state->batch_count = 0;
    }
    state->coordinator_epoch = marker->coordinator_epoch;
    if (state->open_first_offset == PRODUCER_NOT_OPEN) return;
    *ended = (struct producer_ended){
        .ended = true,
        .aborted = !marker->commit,
        .producer_id = state->producer_id,
        .first_offset = state->open_first_offset,
        .marker_offset = header->base_offset,
    };
    if (header->base_offset >= table->high_watermark) {
        table->closed[table->closed_count++] =
            (struct producer_closed){state->open_first_offset, header->base_offset};
    }
    state->open_first_offset = PRODUCER_NOT_OPEN;
}

/* The producer's entry, made if need be, and the undo record for what comes. */
static struct producer_entry *entry_for_apply(struct producer_table *table,
                                              const struct batch_header *header, bool is_marker,
                                              int64_t written_ms)
{
    struct producer_entry *entry = producer_entry_find(table, header->producer_id);
    if (entry != NULL) {
        bool step = !is_marker && !begins_history(&entry->state, header);
        producer_undo_note(table, header->producer_id, header->base_offset, entry, step,
                           header->base_sequence >= 0);
        return entry;
    }
    if (producer_table_count(table) >= PRODUCER_COUNT_MAX) {
        struct producer_entry *evicted = find_evictable(table, written_ms);
        if (evicted != NULL) producer_entry_remove(table, evicted);
    }
    entry = producer_entry_add(table, header->producer_id);
    if (entry == NULL) return NULL;
    producer_undo_note(table, header->producer_id, header->base_offset, NULL, false, false);
    return entry;
}

/* Room is reserved, and the marker is applied. */
static void note_aborted(struct producer_table *table, const struct producer_ended *ended)
{
    int64_t open = producer_table_first_open_offset(table);
    const struct aborted_transaction transaction = {
        .producer_id = ended->producer_id,
        .first_offset = ended->first_offset,
        .marker_offset = ended->marker_offset,
        .last_stable_offset = open == PRODUCER_NOT_OPEN ? table->end_offset : open,
    };
    aborted_index_add(&table->aborted, &transaction);
}

enum status producer_apply(struct producer_table *table, const struct batch_header *header,
                           const struct batch_marker *marker, int64_t written_ms,
                           struct producer_ended *ended, struct error *error)
{
    struct producer_ended ignored;
    if (ended == NULL) ended = &ignored;
    *ended = (struct producer_ended){.ended = false};
    if (header->base_offset < table->end_offset) {
        return error_set(error, STATUS_INVALID, "producer state: batch at %lld, already at %lld",
                         (long long)header->base_offset, (long long)table->end_offset);
    }
    bool other_control = marker == NULL && (header->attributes & BATCH_CONTROL) != 0;
    if (header->producer_id >= 0 && !other_control) {
        if (marker != NULL &&
            (!producer_closed_reserve(table) || !aborted_index_reserve(&table->aborted))) {
            goto no_memory;
        }
        struct producer_entry *entry = entry_for_apply(table, header, marker != NULL, written_ms);
        if (entry == NULL) goto no_memory;
        struct producer_state *state = &entry->state;
        if (marker != NULL) {
            take_marker(table, state, header, marker, ended);
        } else {
            take_data(state, header);
        }
        state->last_offset = batch_last_offset(header);
        state->last_timestamp_ms = header->max_timestamp_ms;
        state->written_ms = written_ms;
        producer_entry_place(table, entry);
    }
    table->end_offset = batch_last_offset(header) + 1;
    if (ended->aborted) note_aborted(table, ended);
    return STATUS_OK;

no_memory:
    return error_set(error, STATUS_NO_MEMORY, "producer state: out of memory");
}

/* ---- transactions ---- */

int64_t producer_table_first_open_offset(const struct producer_table *table)
{
    return table->open == NULL ? PRODUCER_NOT_OPEN : table->open->state.open_first_offset;
}

int64_t producer_table_last_stable_offset(const struct producer_table *table,
                                          int64_t high_watermark)
{
    int64_t stable = high_watermark;
    int64_t open = producer_table_first_open_offset(table);
    if (open != PRODUCER_NOT_OPEN && open < stable) stable = open;
    for (uint32_t i = table->closed_count; i > 0; i--) {
        const struct producer_closed *closed = &table->closed[i - 1];
        if (closed->marker_offset < high_watermark) break;
        if (closed->first_offset < stable) stable = closed->first_offset;
    }
    return stable;
}

uint32_t producer_table_find_aborted(const struct producer_table *table, int64_t offset,
                                     int64_t end_offset, struct aborted_transaction *out,
                                     uint32_t capacity)
{
    return aborted_index_find(&table->aborted, offset, end_offset, out, capacity);
}

/* ---- forgetting ---- */

void producer_table_prune(struct producer_table *table, int64_t log_start)
{
    aborted_index_prune(&table->aborted, log_start);
}

size_t producer_table_expire(struct producer_table *table, int64_t now_ms, int64_t expiration_ms)
{
    size_t count = 0;
    while (table->idle != NULL) {
        struct producer_entry *oldest = table->idle;
        /* Its undo records need the entry. */
        if (oldest->state.last_offset >= table->undo_from) break;
        if (oldest->state.written_ms > now_ms) {
            /* Written before the clock was put back: counts from now, not from the future. */
            oldest->state.written_ms = now_ms;
        }
        if (!producer_is_idle_for(&oldest->state, now_ms, expiration_ms)) break;
        producer_entry_remove(table, oldest);
        count++;
    }
    return count;
}
