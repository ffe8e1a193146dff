#include "sim/history_transactions.h"

#include <stdio.h>

#include "base/assert.h"

uint32_t history_begin_transaction(struct history *history, const char *name)
{
    if (history->transaction_count == history->transaction_capacity) {
        history->transaction_capacity =
            history->transaction_capacity == 0 ? 64 : 2 * history->transaction_capacity;
        history->transactions =
            sim_grow(history->transactions,
                     history->transaction_capacity * sizeof(history->transactions[0]));
    }
    history->transactions[history->transaction_count] = (struct history_transaction){.name = name};
    return ++history->transaction_count;
}

struct history_transaction *history_transaction(struct history *history, uint32_t number)
{
    ASSERT(number >= 1 && number <= history->transaction_count);
    return &history->transactions[number - 1];
}

void history_sent_inside(struct history *history, history_id first, uint32_t count, uint32_t number)
{
    for (uint32_t i = 0; i < count; i++)
        history_record(history, first + i)->transaction = number;
}

static const char *ending_name(uint8_t ending)
{
    static const char *const names[] = {"open", "committed", "aborted"};
    return names[ending];
}

void history_ask_ending(struct history *history, uint32_t number, enum history_ending ending)
{
    if (ending == HISTORY_COMMITTED) history_transaction(history, number)->commit_asked = true;
}

void history_told_ending(struct history *history, uint32_t number, enum history_ending ending)
{
    struct history_transaction *transaction = history_transaction(history, number);
    if (transaction->told != HISTORY_OPEN && transaction->told != ending)
        sim_verdict_fail(history->verdict, "I16", "transaction %u of %s: told %s, then %s", number,
                         transaction->name, ending_name(transaction->told), ending_name(ending));
    if (ending == HISTORY_ABORTED && transaction->delivered)
        sim_verdict_fail(history->verdict, "I16",
                         "transaction %u of %s: told aborted, though it showed as committed",
                         number, transaction->name);
    transaction->told = (uint8_t)ending;
}

void history_shows_committed(struct history *history, uint32_t number, const char *what)
{
    struct history_transaction *transaction = history_transaction(history, number);
    if (!transaction->commit_asked)
        sim_verdict_fail(history->verdict, "I16",
                         "%s: of transaction %u of %s, which nobody asked to be committed", what,
                         number, transaction->name);
    if (transaction->told == HISTORY_ABORTED)
        sim_verdict_fail(history->verdict, "I16", "%s: of transaction %u of %s, which is aborted",
                         what, number, transaction->name);
    transaction->delivered = true;
}

int history_add_reader(struct history *history)
{
    ASSERT(history->reader_count < HISTORY_READERS_MAX);
    return history->reader_count++;
}

void history_reader_reads(struct history *history, int reader, uint32_t log)
{
    history->logs[log].readers |= (uint8_t)(1u << reader);
}

void history_read_committed(struct history *history, int reader, uint32_t log, int64_t offset,
                            struct slice value)
{
    history_id id = history_read_value(history, log, offset, value);
    if (id == HISTORY_NOTHING) return;
    struct history_record *record = history_record(history, id);
    record->delivered |= (uint8_t)(1u << reader);
    if (record->transaction == 0) return;
    char what[160];
    snprintf(what, sizeof(what), "a committed reader was given %s/%d offset %lld",
             history->logs[log].topic, history->logs[log].partition, (long long)offset);
    history_shows_committed(history, record->transaction, what);
}

void history_transaction_found(struct history *history, struct history_reading *reading,
                               int64_t offset, history_id id)
{
    const struct history_log *log = &history->logs[reading->log];
    const struct history_record *record = history_record(history, id);
    if ((record->transaction != 0) != reading->transactional)
        sim_verdict_fail(history->verdict, "I16",
                         "%s/%d offset %lld: the batch is%s part of a transaction, its record "
                         "is%s",
                         log->topic, log->partition, (long long)offset,
                         reading->transactional ? "" : " not",
                         record->transaction != 0 ? "" : " not");
    if (!reading->transactional || record->transaction == 0) return;
    if (reading->open_count == reading->open_capacity) {
        reading->open_capacity = reading->open_capacity == 0 ? 32 : 2 * reading->open_capacity;
        reading->open = sim_grow(reading->open, reading->open_capacity * sizeof(reading->open[0]));
    }
    reading->open[reading->open_count++] =
        (struct history_open_record){reading->producer_id, offset, id};
}

/* A marker ends this record's transaction in this log. */
static void judge_marked(struct history *history, const struct history_reading *reading,
                         const struct history_open_record *open, int64_t marker_offset,
                         uint8_t ending)
{
    const struct history_log *log = &history->logs[reading->log];
    uint32_t number = history_record(history, open->id)->transaction;
    struct history_transaction *transaction = history_transaction(history, number);
    const char *against = NULL;
    if (transaction->marked != HISTORY_OPEN && transaction->marked != ending)
        against = "another marker says otherwise";
    else if (transaction->told != HISTORY_OPEN && transaction->told != ending)
        against = "its writer was told otherwise";
    else if (ending == HISTORY_COMMITTED && !transaction->commit_asked)
        against = "nobody asked for that";
    else if (ending == HISTORY_ABORTED && transaction->delivered)
        against = "a reader was given parts of it";
    if (against != NULL)
        sim_verdict_fail(history->verdict, "I16",
                         "%s/%d offset %lld: transaction %u of %s is %s by the marker at %lld; %s",
                         log->topic, log->partition, (long long)open->offset, number,
                         transaction->name, ending_name(ending), (long long)marker_offset, against);
    transaction->marked = ending;
}

void history_transaction_marked(struct history *history, struct history_reading *reading,
                                int64_t offset, int64_t producer_id, bool commit)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < reading->open_count; i++) {
        const struct history_open_record *open = &reading->open[i];
        if (open->producer_id == producer_id)
            judge_marked(history, reading, open, offset,
                         commit ? HISTORY_COMMITTED : HISTORY_ABORTED);
        else
            reading->open[kept++] = *open;
    }
    reading->open_count = kept;
}

void history_transactions_left_open(struct history *history, struct history_reading *reading)
{
    const struct history_log *log = &history->logs[reading->log];
    if (reading->open_count == 0) return;
    const struct history_open_record *open = &reading->open[0];
    uint32_t number = history_record(history, open->id)->transaction;
    sim_verdict_fail(history->verdict, "I16",
                     "%s/%d offset %lld: transaction %u of %s has no end in the log", log->topic,
                     log->partition, (long long)open->offset, number,
                     history_transaction(history, number)->name);
}

/* All that is committed was given to every committed reader, and nothing else. */
static void judge_delivered(struct history *history, uint32_t writer, uint32_t counter,
                            const struct history_record *record)
{
    const struct history_log *log = &history->logs[record->log];
    if (log->readers == 0 || log->dropped || !record->found || record->offset < log->start) return;
    bool committed = record->transaction == 0 ||
                     history_transaction(history, record->transaction)->marked == HISTORY_COMMITTED;
    if (committed ? record->delivered == log->readers : record->delivered == 0) return;
    sim_verdict_fail(history->verdict, "I16",
                     "%s/%d offset %lld: %u:%u of transaction %u, which is %s, was given to %d of "
                     "%d committed readers",
                     log->topic, log->partition, (long long)record->offset, writer, counter,
                     record->transaction, committed ? "committed" : "aborted",
                     __builtin_popcount(record->delivered), __builtin_popcount(log->readers));
}

void history_judge_transactions(struct history *history)
{
    for (uint32_t i = 0; i < history->writer_count; i++) {
        const struct history_writer *writer = &history->writers[i];
        for (uint32_t j = 0; j < writer->count; j++)
            judge_delivered(history, i + 1, j, &writer->records[j]);
    }
}
