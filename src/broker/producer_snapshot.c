/* producer_snapshot.c: a producer table as bytes, and as one number.
 *
 * Layout (big-endian): u32 magic, u16 version, i64 end offset, u32 closed count, u32 producer
 * count, u32 aborted count (since version 2), closed × {i64 first offset, i64 marker offset},
 * producers (idle ones first, each list in its order) × {i64 id, i64 last offset, i64 last
 * timestamp, i64 written, i64 open first offset, i32 coordinator epoch, i16 epoch, u8 batch count,
 * batches × {i64 base offset, i64 timestamp, i32 first sequence, u32 delta, top bit log append
 * time}}, aborted × {i64 producer id, i64 first offset, i64 marker offset, i64 last stable offset},
 * u32 CRC-32C of all before it. */
#include "base/crc32c.h"
#include "base/reader.h"
#include "broker/producer_state.h"
#include "broker/producer_table.h"

#define SNAPSHOT_MAGIC           0x4d4d5053u /* "MMPS" */
#define SNAPSHOT_HEADER_BYTES    22          /* of version 1 */
#define SNAPSHOT_BEFORE_ABORTED  1
#define SNAPSHOT_CRC_BYTES       4
#define BATCH_LOG_APPEND_TIME_ON 0x80000000u

static void put_batch(struct buffer *out, const struct producer_batch *batch)
{
    buffer_put_i64(out, batch->base_offset);
    buffer_put_i64(out, batch->timestamp_ms);
    buffer_put_i32(out, batch->first_sequence);
    buffer_put_u32(out, batch->delta | (batch->log_append_time ? BATCH_LOG_APPEND_TIME_ON : 0));
}

static void put_state(struct buffer *out, const struct producer_state *state)
{
    buffer_put_i64(out, state->producer_id);
    buffer_put_i64(out, state->last_offset);
    buffer_put_i64(out, state->last_timestamp_ms);
    buffer_put_i64(out, state->written_ms);
    buffer_put_i64(out, state->open_first_offset);
    buffer_put_i32(out, state->coordinator_epoch);
    buffer_put_i16(out, state->epoch);
    buffer_put_u8(out, state->batch_count);
    for (int i = 0; i < state->batch_count; i++) {
        put_batch(out, &state->batches[i]);
    }
}

static void put_aborted(struct buffer *out, const struct aborted_transaction *transaction)
{
    buffer_put_i64(out, transaction->producer_id);
    buffer_put_i64(out, transaction->first_offset);
    buffer_put_i64(out, transaction->marker_offset);
    buffer_put_i64(out, transaction->last_stable_offset);
}

void producer_table_encode(const struct producer_table *table, struct buffer *out)
{
    size_t start = out->bytes;
    buffer_put_u32(out, SNAPSHOT_MAGIC);
    buffer_put_u16(out, PRODUCER_SNAPSHOT_VERSION);
    buffer_put_i64(out, table->end_offset);
    buffer_put_u32(out, table->closed_count);
    buffer_put_u32(out, (uint32_t)producer_table_count(table));
    buffer_put_u32(out, table->aborted.count);
    for (uint32_t i = 0; i < table->closed_count; i++) {
        buffer_put_i64(out, table->closed[i].first_offset);
        buffer_put_i64(out, table->closed[i].marker_offset);
    }
    const struct producer_entry *entry;
    DL_FOREACH(table->idle, entry)
    {
        put_state(out, &entry->state);
    }
    DL_FOREACH(table->open, entry)
    {
        put_state(out, &entry->state);
    }
    for (uint32_t i = 0; i < table->aborted.count; i++) {
        put_aborted(out, &table->aborted.entries[i]);
    }
    if (!buffer_failed(out)) {
        buffer_put_u32(out, crc32c(out->data + start, out->bytes - start));
    }
}

static bool read_batches(struct reader *reader, struct producer_state *state, int64_t end_offset)
{
    int64_t floor = 0;
    for (int i = 0; i < state->batch_count; i++) {
        struct producer_batch *batch = &state->batches[i];
        batch->base_offset = reader_i64(reader);
        batch->timestamp_ms = reader_i64(reader);
        batch->first_sequence = reader_i32(reader);
        uint32_t delta = reader_u32(reader);
        batch->delta = delta & ~BATCH_LOG_APPEND_TIME_ON;
        batch->log_append_time = (delta & BATCH_LOG_APPEND_TIME_ON) != 0;
        if (batch->base_offset < floor || batch->base_offset >= end_offset ||
            end_offset - batch->base_offset <= (int64_t)batch->delta || batch->first_sequence < 0) {
            return false;
        }
        floor = batch->base_offset + batch->delta + 1;
    }
    return !reader_failed(reader);
}

static bool read_state(struct reader *reader, struct producer_state *state, int64_t end_offset)
{
    *state = (struct producer_state){
        .producer_id = reader_i64(reader),
        .last_offset = reader_i64(reader),
        .last_timestamp_ms = reader_i64(reader),
        .written_ms = reader_i64(reader),
        .open_first_offset = reader_i64(reader),
        .coordinator_epoch = reader_i32(reader),
        .epoch = reader_i16(reader),
        .batch_count = reader_u8(reader),
    };
    return !reader_failed(reader) && state->producer_id >= 0 && state->last_offset >= 0 &&
           state->last_offset < end_offset && state->open_first_offset >= PRODUCER_NOT_OPEN &&
           state->open_first_offset <= state->last_offset &&
           state->batch_count <= PRODUCER_BATCHES_KEPT && read_batches(reader, state, end_offset);
}

static enum status corrupt(const char *what, struct error *error)
{
    return error_set(error, STATUS_CORRUPT, "producer snapshot: %s", what);
}

static enum status no_memory(struct error *error)
{
    return error_set(error, STATUS_NO_MEMORY, "producer snapshot: out of memory");
}

static enum status decode_closed(struct producer_table *table, struct reader *reader,
                                 uint32_t count, struct error *error)
{
    int64_t previous = -1;
    for (uint32_t i = 0; i < count; i++) {
        struct producer_closed closed = {.first_offset = reader_i64(reader)};
        closed.marker_offset = reader_i64(reader);
        if (reader_failed(reader) || closed.marker_offset <= previous ||
            closed.marker_offset >= table->end_offset || closed.first_offset < 0 ||
            closed.first_offset >= closed.marker_offset) {
            return corrupt("malformed closed transaction", error);
        }
        if (!producer_closed_reserve(table)) return no_memory(error);
        table->closed[table->closed_count++] = closed;
        previous = closed.marker_offset;
    }
    return STATUS_OK;
}

static enum status decode_producers(struct producer_table *table, struct reader *reader,
                                    uint32_t count, struct error *error)
{
    for (uint32_t i = 0; i < count; i++) {
        struct producer_state state;
        if (!read_state(reader, &state, table->end_offset) ||
            producer_entry_find(table, state.producer_id) != NULL) {
            return corrupt("malformed producer", error);
        }
        struct producer_entry *entry = producer_entry_add(table, state.producer_id);
        if (entry == NULL) return no_memory(error);
        entry->state = state;
        producer_entry_place(table, entry);
    }
    return STATUS_OK;
}

static enum status decode_aborted(struct producer_table *table, struct reader *reader,
                                  uint32_t count, struct error *error)
{
    int64_t previous = -1;
    for (uint32_t i = 0; i < count; i++) {
        struct aborted_transaction transaction = {.producer_id = reader_i64(reader)};
        transaction.first_offset = reader_i64(reader);
        transaction.marker_offset = reader_i64(reader);
        transaction.last_stable_offset = reader_i64(reader);
        if (reader_failed(reader) || transaction.producer_id < 0 || transaction.first_offset < 0 ||
            transaction.first_offset >= transaction.marker_offset ||
            transaction.marker_offset <= previous ||
            transaction.marker_offset >= table->end_offset || transaction.last_stable_offset < 0 ||
            transaction.last_stable_offset > transaction.marker_offset + 1) {
            return corrupt("malformed aborted transaction", error);
        }
        if (!aborted_index_reserve(&table->aborted)) return no_memory(error);
        aborted_index_add(&table->aborted, &transaction);
        previous = transaction.marker_offset;
    }
    return STATUS_OK;
}

static enum status decode_into(struct producer_table *table, struct slice snapshot,
                               struct error *error)
{
    if (snapshot.bytes < SNAPSHOT_HEADER_BYTES + SNAPSHOT_CRC_BYTES) {
        return corrupt("cut short", error);
    }
    size_t bytes = snapshot.bytes - SNAPSHOT_CRC_BYTES;
    struct reader reader;
    reader_init(&reader, snapshot.data, bytes);
    if (reader_u32(&reader) != SNAPSHOT_MAGIC) return corrupt("no such file", error);
    if (crc32c(snapshot.data, bytes) != load_u32(snapshot.data + bytes)) {
        return corrupt("fails its checksum", error);
    }
    uint16_t version = reader_u16(&reader);
    if (version < SNAPSHOT_BEFORE_ABORTED || version > PRODUCER_SNAPSHOT_VERSION) {
        return error_set(error, STATUS_UNSUPPORTED, "producer snapshot: version %u", version);
    }
    int64_t end_offset = reader_i64(&reader);
    if (end_offset < 0) return corrupt("negative end offset", error);
    producer_table_clear(table, end_offset);
    uint32_t closed_count = reader_u32(&reader);
    uint32_t producer_count = reader_u32(&reader);
    uint32_t aborted_count = version > SNAPSHOT_BEFORE_ABORTED ? reader_u32(&reader) : 0;
    if (reader_failed(&reader)) return corrupt("cut short", error);
    enum status status = decode_closed(table, &reader, closed_count, error);
    if (status == STATUS_OK) status = decode_producers(table, &reader, producer_count, error);
    if (status == STATUS_OK) status = decode_aborted(table, &reader, aborted_count, error);
    if (status == STATUS_OK && reader_left(&reader) != 0) {
        status = corrupt("bytes after the last entry", error);
    }
    return status;
}

enum status producer_table_decode(struct producer_table *table, struct slice snapshot,
                                  struct error *error)
{
    producer_table_clear(table, 0);
    enum status status = decode_into(table, snapshot, error);
    if (status != STATUS_OK) producer_table_clear(table, 0);
    return status;
}

/* ---- hash ---- */

/* One step of a 64-bit multiply-xor mix (the constant is 2^64 over the golden ratio, odd). */
static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ (hash >> 29);
}

static uint64_t state_hash(const struct producer_state *state)
{
    uint64_t hash = mix(1, (uint64_t)state->producer_id);
    hash = mix(hash, (uint64_t)state->last_offset);
    hash = mix(hash, (uint64_t)state->last_timestamp_ms);
    hash = mix(hash, (uint64_t)state->open_first_offset);
    hash = mix(hash, (uint32_t)state->coordinator_epoch);
    hash = mix(hash, (uint64_t)(uint16_t)state->epoch << 8 | state->batch_count);
    for (int i = 0; i < state->batch_count; i++) {
        const struct producer_batch *batch = &state->batches[i];
        hash = mix(hash, (uint64_t)batch->base_offset);
        hash = mix(hash, (uint64_t)batch->timestamp_ms);
        hash = mix(hash, (uint64_t)(uint32_t)batch->first_sequence << 32 |
                             (uint64_t)batch->delta << 1 | batch->log_append_time);
    }
    return mix(hash, 0);
}

static uint64_t aborted_hash(const struct aborted_transaction *transaction)
{
    uint64_t hash = mix(2, (uint64_t)transaction->producer_id);
    hash = mix(hash, (uint64_t)transaction->first_offset);
    return mix(hash, (uint64_t)transaction->marker_offset);
}

uint64_t producer_table_hash_producers(const struct producer_table *table)
{
    /* A sum: the same in whatever order the producers came. */
    uint64_t sum = 0;
    const struct producer_state *state = producer_table_first(table);
    for (; state != NULL; state = producer_table_next(state)) {
        sum += state_hash(state);
    }
    return sum;
}

uint64_t producer_table_hash(const struct producer_table *table)
{
    uint64_t sum = producer_table_hash_producers(table);
    for (uint32_t i = 0; i < table->aborted.count; i++) {
        sum += aborted_hash(&table->aborted.entries[i]);
    }
    return sum;
}
