#include "sim/history.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "sim/history_fences.h"
#include "sim/history_transactions.h"

#define COUNTER_BITS       40
#define COUNTER_MASK       ((UINT64_C(1) << COUNTER_BITS) - 1)
#define VALUE_HEADER_BYTES 10 /* id, length */

void history_init(struct history *history, struct sim_verdict *verdict)
{
    memset(history, 0, sizeof(*history));
    history->verdict = verdict;
}

void history_deinit(struct history *history)
{
    for (uint32_t i = 0; i < history->writer_count; i++)
        sim_release(history->writers[i].records);
    for (uint32_t i = 0; i < history->log_count; i++)
        sim_release(history->logs[i].ids);
    sim_release(history->writers);
    sim_release(history->logs);
    sim_release(history->transactions);
    sim_release(history->grants);
}

static uint32_t writer_of(history_id id)
{
    return (uint32_t)(id >> COUNTER_BITS);
}

static uint64_t counter_of(history_id id)
{
    return id & COUNTER_MASK;
}

uint32_t history_add_writer(struct history *history, bool ordered)
{
    if (history->writer_count == history->writer_capacity) {
        history->writer_capacity = history->writer_capacity == 0 ? 8 : 2 * history->writer_capacity;
        history->writers =
            sim_grow(history->writers, history->writer_capacity * sizeof(history->writers[0]));
    }
    history->writers[history->writer_count] = (struct history_writer){.ordered = ordered};
    return ++history->writer_count;
}

uint32_t history_find_log(struct history *history, const struct uuid *uid, int32_t partition,
                          const char *topic)
{
    for (uint32_t i = 0; i < history->log_count; i++) {
        const struct history_log *log = &history->logs[i];
        if (log->partition == partition && uuid_equal(&log->uid, uid)) return i;
    }
    if (history->log_count == history->log_capacity) {
        history->log_capacity = history->log_capacity == 0 ? 16 : 2 * history->log_capacity;
        history->logs = sim_grow(history->logs, history->log_capacity * sizeof(history->logs[0]));
    }
    struct history_log *log = &history->logs[history->log_count];
    memset(log, 0, sizeof(*log));
    log->uid = *uid;
    log->partition = partition;
    snprintf(log->topic, sizeof(log->topic), "%s", topic);
    return history->log_count++;
}

history_id history_new_record(struct history *history, uint32_t writer_number, uint16_t value_bytes)
{
    struct history_writer *writer = &history->writers[writer_number - 1];
    if (writer->count == writer->capacity) {
        writer->capacity = writer->capacity == 0 ? 64 : 2 * writer->capacity;
        writer->records = sim_grow(writer->records, writer->capacity * sizeof(writer->records[0]));
    }
    if (value_bytes < VALUE_HEADER_BYTES) value_bytes = VALUE_HEADER_BYTES;
    writer->records[writer->count] =
        (struct history_record){.offset = -1, .value_bytes = value_bytes};
    return (uint64_t)writer_number << COUNTER_BITS | writer->count++;
}

/* NULL: nobody sent such a record. */
static struct history_record *find_record(struct history *history, history_id id)
{
    uint32_t number = writer_of(id);
    if (number == 0 || number > history->writer_count) return NULL;
    struct history_writer *writer = &history->writers[number - 1];
    return counter_of(id) < writer->count ? &writer->records[counter_of(id)] : NULL;
}

struct history_record *history_record(struct history *history, history_id id)
{
    struct history_record *record = find_record(history, id);
    ASSERT(record != NULL);
    return record;
}

uint16_t history_value_bytes_min(void)
{
    return VALUE_HEADER_BYTES;
}

/* The i-th byte behind the header. */
static uint8_t filler(history_id id, uint32_t i)
{
    return (uint8_t)((id * 31 + i) * 0x9e3779b1u >> 13);
}

void history_write_value(const struct history *history, history_id id, struct buffer *out)
{
    const struct history_writer *writer = &history->writers[writer_of(id) - 1];
    uint16_t bytes = writer->records[counter_of(id)].value_bytes;
    buffer_put_u64(out, id);
    buffer_put_u16(out, bytes);
    uint8_t *rest = buffer_extend(out, (size_t)bytes - VALUE_HEADER_BYTES);
    for (uint32_t i = 0; rest != NULL && i < (uint32_t)bytes - VALUE_HEADER_BYTES; i++)
        rest[i] = filler(id, i);
}

/* HISTORY_NOTHING: this is no value that anybody sent, as it stands. */
static history_id parse_value(struct history *history, struct slice value)
{
    if (value.bytes < VALUE_HEADER_BYTES) return HISTORY_NOTHING;
    history_id id = load_u64(value.data);
    const struct history_record *record = find_record(history, id);
    if (record == NULL || load_u16(value.data + 8) != value.bytes ||
        record->value_bytes != value.bytes)
        return HISTORY_NOTHING;
    for (uint32_t i = 0; i < value.bytes - VALUE_HEADER_BYTES; i++) {
        if (value.data[VALUE_HEADER_BYTES + i] != filler(id, i)) return HISTORY_NOTHING;
    }
    return id;
}

void history_observe(struct history *history, uint32_t log_index, int64_t offset, history_id id,
                     const char *how)
{
    struct history_log *log = &history->logs[log_index];
    struct history_record *record = history_record(history, id);
    if (offset < 0 || offset > (INT64_C(1) << 40)) {
        sim_verdict_fail(history->verdict, "I1", "%s/%d: offset %lld %s", log->topic,
                         log->partition, (long long)offset, how);
        return;
    }
    if (offset >= log->capacity) {
        int64_t capacity = log->capacity == 0 ? 256 : 2 * log->capacity;
        while (capacity <= offset)
            capacity *= 2;
        log->ids = sim_grow(log->ids, (size_t)capacity * sizeof(log->ids[0]));
        memset(&log->ids[log->capacity], 0,
               (size_t)(capacity - log->capacity) * sizeof(log->ids[0]));
        log->capacity = capacity;
    }
    if (offset >= log->count) log->count = offset + 1;
    if (log->ids[offset] != HISTORY_NOTHING && log->ids[offset] != id)
        sim_verdict_fail(history->verdict, "I2",
                         "%s/%d offset %lld: was %u:%llu, is now %u:%llu (%s)", log->topic,
                         log->partition, (long long)offset, writer_of(log->ids[offset]),
                         (unsigned long long)counter_of(log->ids[offset]), writer_of(id),
                         (unsigned long long)counter_of(id), how);
    if (record->offset >= 0 && record->offset != offset && record->log == log_index)
        sim_verdict_fail(history->verdict, "I6", "%s/%d: %u:%llu is at %lld and at %lld (%s)",
                         log->topic, log->partition, writer_of(id),
                         (unsigned long long)counter_of(id), (long long)record->offset,
                         (long long)offset, how);
    log->ids[offset] = id;
    record->offset = offset;
    if (offset >= log->committed) log->committed = offset + 1;
}

void history_sent(struct history *history, history_id first, uint32_t count, uint32_t log,
                  bool durable)
{
    for (uint32_t i = 0; i < count; i++) {
        struct history_record *record = history_record(history, first + i);
        record->log = log;
        record->durable = durable;
    }
}

void history_told(struct history *history, history_id first, uint32_t count,
                  enum history_outcome outcome, int64_t base_offset)
{
    for (uint32_t i = 0; i < count; i++) {
        struct history_record *record = history_record(history, first + i);
        if (record->outcome == HISTORY_OK) continue;
        record->outcome = (uint8_t)outcome;
        switch (outcome) {
        case HISTORY_OK:
            history->acknowledged++;
            if (record->durable)
                history_observe(history, record->log, base_offset + i, first + i, "acknowledged");
            break;
        case HISTORY_NO: history->refused++; break;
        case HISTORY_UNKNOWN: history->unknown++; break;
        case HISTORY_PENDING: break;
        }
    }
}

/* Who is this, and may it be here? */
static history_id judge_value(struct history *history, uint32_t log_index, int64_t offset,
                              struct slice value)
{
    const struct history_log *log = &history->logs[log_index];
    history_id id = parse_value(history, value);
    if (id == HISTORY_NOTHING) {
        sim_verdict_fail(history->verdict, "I1", "%s/%d offset %lld: bytes that nobody sent",
                         log->topic, log->partition, (long long)offset);
        return id;
    }
    const struct history_record *record = history_record(history, id);
    if (record->log != log_index) {
        sim_verdict_fail(history->verdict, "I15", "%s/%d offset %lld: record of another log",
                         log->topic, log->partition, (long long)offset);
        return HISTORY_NOTHING;
    }
    if (record->outcome == HISTORY_NO)
        sim_verdict_fail(history->verdict, "I7", "%s/%d offset %lld: %u:%llu had been refused",
                         log->topic, log->partition, (long long)offset, writer_of(id),
                         (unsigned long long)counter_of(id));
    return id;
}

history_id history_read_value(struct history *history, uint32_t log, int64_t offset,
                              struct slice value)
{
    history_id id = judge_value(history, log, offset, value);
    history->read++;
    if (id != HISTORY_NOTHING) history_observe(history, log, offset, id, "read");
    return id;
}

void history_ask_deletion(struct history *history, uint32_t log, int64_t offset)
{
    if (offset > history->logs[log].asked) history->logs[log].asked = offset;
}

void history_told_deletion(struct history *history, uint32_t log_index, int64_t offset,
                           int64_t low_watermark, int32_t epoch)
{
    struct history_log *log = &history->logs[log_index];
    if (low_watermark < offset || (log->kept && low_watermark > log->asked))
        sim_verdict_fail(history->verdict, "I15",
                         "%s/%d: a deletion below %lld leaves a log that begins at %lld; below "
                         "%lld was asked for",
                         log->topic, log->partition, (long long)offset, (long long)low_watermark,
                         (long long)log->asked);
    if (offset > log->deleted) log->deleted = offset;
    if (epoch > log->deleted_epoch) log->deleted_epoch = epoch;
}

void history_see_start(struct history *history, uint32_t log_index, int64_t start, bool serving,
                       int node)
{
    struct history_log *log = &history->logs[log_index];
    if (start > log->start) log->start = start;
    if (log->dropped) return;
    if (log->kept && start > log->asked)
        sim_verdict_fail(history->verdict, "I1",
                         "%s/%d begins at %lld on node %d, though nobody deleted more than what "
                         "is below %lld",
                         log->topic, log->partition, (long long)start, node + 1,
                         (long long)log->asked);
    if (serving && start < log->deleted)
        sim_verdict_fail(history->verdict, "I15",
                         "%s/%d begins at %lld on leader %d, though the deletion of all below "
                         "%lld was acknowledged",
                         log->topic, log->partition, (long long)start, node + 1,
                         (long long)log->deleted);
}

void history_reading_begin(struct history *history, struct history_reading *reading, uint32_t log,
                           int64_t start)
{
    *reading =
        (struct history_reading){.log = log, .start = start, .next = start, .producer_id = -1};
    reading->last_counter = sim_alloc((history->writer_count + 1) * sizeof(uint32_t));
    for (uint32_t i = 0; i < history->writer_count; i++) {
        struct history_writer *writer = &history->writers[i];
        for (uint32_t j = 0; j < writer->count; j++) {
            if (writer->records[j].log == log) writer->records[j].found = false;
        }
    }
}

void history_reading_batch(struct history *history, struct history_reading *reading, int64_t offset,
                           int64_t producer_id, int16_t epoch, bool transactional)
{
    reading->producer_id = producer_id;
    reading->transactional = transactional;
    if (producer_id >= 0) history_epoch_found(history, reading, offset, producer_id, epoch);
}

static void follow(struct history *history, struct history_reading *reading, int64_t offset)
{
    const struct history_log *log = &history->logs[reading->log];
    if (offset != reading->next)
        sim_verdict_fail(history->verdict, "I4", "%s/%d: offset %lld follows %lld in the log",
                         log->topic, log->partition, (long long)offset,
                         (long long)reading->next - 1);
    reading->next = offset + 1;
}

void history_reading_marker(struct history *history, struct history_reading *reading,
                            int64_t offset, int64_t producer_id, int16_t epoch, bool commit)
{
    follow(history, reading, offset);
    history_epoch_found(history, reading, offset, producer_id, epoch);
    history_transaction_marked(history, reading, offset, producer_id, commit);
}

void history_reading_record(struct history *history, struct history_reading *reading,
                            int64_t offset, struct slice value)
{
    struct history_log *log = &history->logs[reading->log];
    follow(history, reading, offset);
    history_id id = judge_value(history, reading->log, offset, value);
    if (id == HISTORY_NOTHING) return;
    struct history_record *record = history_record(history, id);
    if (offset < log->count && log->ids[offset] != HISTORY_NOTHING && log->ids[offset] != id)
        sim_verdict_fail(history->verdict, "I3",
                         "%s/%d offset %lld: %u:%llu was acknowledged or read, %u:%llu is there",
                         log->topic, log->partition, (long long)offset, writer_of(log->ids[offset]),
                         (unsigned long long)counter_of(log->ids[offset]), writer_of(id),
                         (unsigned long long)counter_of(id));
    if (record->found)
        sim_verdict_fail(history->verdict, "I6", "%s/%d offset %lld: %u:%llu a second time",
                         log->topic, log->partition, (long long)offset, writer_of(id),
                         (unsigned long long)counter_of(id));
    record->found = true;
    history_transaction_found(history, reading, offset, id);
    uint32_t number = writer_of(id);
    if (history->writers[number - 1].ordered) {
        uint32_t counter = (uint32_t)counter_of(id) + 1;
        if (counter <= reading->last_counter[number - 1])
            sim_verdict_fail(history->verdict, "I5", "%s/%d offset %lld: %u:%u after %u",
                             log->topic, log->partition, (long long)offset, number, counter - 1,
                             reading->last_counter[number - 1] - 1);
        reading->last_counter[number - 1] = counter;
    }
}

/* Nothing that was acknowledged or read may be missing behind the end. */
void history_reading_end(struct history *history, struct history_reading *reading)
{
    struct history_log *log = &history->logs[reading->log];
    for (int64_t offset = reading->next; offset < log->count; offset++) {
        if (log->ids[offset] == HISTORY_NOTHING) continue;
        sim_verdict_fail(history->verdict, "I1",
                         "%s/%d offset %lld: %u:%llu was acknowledged or read, the log ends at "
                         "%lld",
                         log->topic, log->partition, (long long)offset, writer_of(log->ids[offset]),
                         (unsigned long long)counter_of(log->ids[offset]),
                         (long long)reading->next);
        break;
    }
    for (uint32_t i = 0; i < history->writer_count; i++) {
        const struct history_writer *writer = &history->writers[i];
        for (uint32_t j = 0; j < writer->count; j++) {
            const struct history_record *record = &writer->records[j];
            if (record->log != reading->log || record->outcome != HISTORY_OK || !record->durable ||
                record->found || record->offset < reading->start)
                continue;
            sim_verdict_fail(history->verdict, "I1", "%s/%d: %u:%u, acknowledged at %lld, is lost",
                             log->topic, log->partition, i + 1, j, (long long)record->offset);
        }
    }
    history_transactions_left_open(history, reading);
    sim_release(reading->last_counter);
    sim_release(reading->open);
    sim_release(reading->producers);
}
