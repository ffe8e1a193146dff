/* history_fences.h: who holds which transactional id; the judge of I17.
 *
 * Producer ids grow, and so do the epochs of each: the larger pair is the newer holder. Once a
 * client was granted a pair, whatever is sent under a smaller one from then on is refused, and in
 * no log does a producer's epoch go back.                                                      */
#ifndef MOONMQ_SIM_HISTORY_FENCES_H
#define MOONMQ_SIM_HISTORY_FENCES_H

#include "sim/history.h"

struct history_grant {
    int64_t producer_id; /* -1: nothing yet */
    int16_t epoch;
};

/* A transactional id that nobody holds yet: its index. */
uint32_t history_add_holder(struct history *history);
/* A client was told that it holds it with this pair. */
void history_granted(struct history *history, uint32_t holder, struct history_grant grant);
/* The newest pair that anybody was told. */
struct history_grant history_newest_grant(const struct history *history, uint32_t holder);
/* A request under `used` was answered OK; `newest` had been told when it was sent. */
void history_accepted(struct history *history, struct history_grant used,
                      struct history_grant newest, const char *what);

/* For history.c's final reading. */
void history_epoch_found(struct history *history, struct history_reading *reading, int64_t offset,
                         int64_t producer_id, int16_t epoch);

#endif
