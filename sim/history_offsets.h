/* history_offsets.h: one committed offset that transactions and plain commits set in turn; the
 * judge of what a reading of it may give (I16, I18, F63).
 *
 * The later record counts, not the later marker. What is known of the order of the records: that
 * of transactions of one id is the order of these; a plain commit and anything else are in order
 * if one was over before the other began. What was acknowledged, committed or read has taken
 * effect; nothing that is certainly older than that may be read. */
#ifndef MOONMQ_SIM_HISTORY_OFFSETS_H
#define MOONMQ_SIM_HISTORY_OFFSETS_H

#include "sim/history.h"

struct history_offset {
    int64_t value;              /* a transaction's number, or a plain commit's own */
    int64_t begun_us, ended_us; /* ended_us INT64_MAX: its outcome is open */
    bool effective;             /* for certain */
};

struct history_offsets {
    struct history *history;
    const char *name; /* borrowed */
    struct history_offset *commits;
    uint32_t count, capacity;
    int64_t plain_count;
    int64_t read; /* the last that was read; 0: none */
};

void history_offsets_init(struct history_offsets *offsets, struct history *history,
                          const char *name);
void history_offsets_deinit(struct history_offsets *offsets);
/* The value to commit. */
int64_t history_offsets_begin_plain(struct history_offsets *offsets);
/* The transaction, which has just begun, is to commit its number. */
void history_offsets_begin_transactional(struct history_offsets *offsets, uint32_t transaction);
/* It is acknowledged, or the transaction that it is part of was committed. */
void history_offsets_told(struct history_offsets *offsets, int64_t value);
/* `value` (below 1: none) was read from `node` (1-based); the reading was begun at sent_us. */
void history_offsets_read(struct history_offsets *offsets, int64_t value, int64_t sent_us,
                          int node);
/* All logs were read to their ends, and the offset after everything had ended. */
void history_offsets_judge(struct history_offsets *offsets);

#endif
