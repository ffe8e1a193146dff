/* history_transactions.h: which records belong together, and what their writers were told of the
 * whole; the judge of I16.
 *
 * A transaction is committed or aborted, once, in every log alike. What shows which: what its
 * writer was told, what a committed reader was given, and the markers that the final reading
 * meets. None of them may disagree with another.                                               */
#ifndef MOONMQ_SIM_HISTORY_TRANSACTIONS_H
#define MOONMQ_SIM_HISTORY_TRANSACTIONS_H

#include "sim/history.h"

#define HISTORY_READERS_MAX 8

enum history_ending { HISTORY_OPEN, HISTORY_COMMITTED, HISTORY_ABORTED };

struct history_transaction {
    const char *name;  /* of its transactional id; borrowed */
    uint8_t told;      /* enum history_ending: what its writer was told for certain */
    uint8_t marked;    /* … and what the markers of the final logs say */
    bool commit_asked; /* its writer asked for it to be committed at least once */
    bool delivered;    /* a committed reader was given a record of it, or an offset was read */
};

/* A transaction begins; its number, from 1 on. */
uint32_t history_begin_transaction(struct history *history, const char *name);
struct history_transaction *history_transaction(struct history *history, uint32_t number);
/* `count` records from `first` on are sent as part of it. */
void history_sent_inside(struct history *history, history_id first, uint32_t count,
                         uint32_t number);
/* Its writer asks for it to end. */
void history_ask_ending(struct history *history, uint32_t number, enum history_ending ending);
/* It is certain that it ended so. */
void history_told_ending(struct history *history, uint32_t number, enum history_ending ending);
/* What was done inside it (an offset, a record) shows as committed. */
void history_shows_committed(struct history *history, uint32_t number, const char *what);

/* A reader that is to be given what is committed only, and all of that: its bit. */
int history_add_reader(struct history *history);
void history_reader_reads(struct history *history, int reader, uint32_t log);
/* It was given this value. */
void history_read_committed(struct history *history, int reader, uint32_t log, int64_t offset,
                            struct slice value);
/* All logs were read to their ends, by every reader too, and by the final reading. */
void history_judge_transactions(struct history *history);

/* For history.c's final reading. */
void history_transaction_found(struct history *history, struct history_reading *reading,
                               int64_t offset, history_id id);
void history_transaction_marked(struct history *history, struct history_reading *reading,
                                int64_t offset, int64_t producer_id, bool commit);
void history_transactions_left_open(struct history *history, struct history_reading *reading);

#endif
