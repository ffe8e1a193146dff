/* epoch_history.h: where each leader epoch of one partition began. Pure.
 *
 * Invariants: epochs strictly ascending, start offsets non-descending; a run of consecutive epochs
 * with one start is kept as [first_epoch, last_epoch] of one entry. Every epoch ever told to a
 * client has an entry, even if nothing was written in it (KAFKA-7415). replication.md sections 8,
 * wire S5.   */
#ifndef MOONMQ_LOG_EPOCH_HISTORY_H
#define MOONMQ_LOG_EPOCH_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

struct epoch_entry {
    int32_t first_epoch, last_epoch; /* equal unless several began at one offset */
    int64_t start_offset;
};
struct epoch_history {
    struct epoch_entry *entries;
    uint32_t count, capacity;
};
/* An answer to "where does this epoch end". epoch -1: nothing known. */
struct epoch_end {
    int32_t epoch;
    int64_t end_offset;
};

void epoch_history_init(struct epoch_history *history);
void epoch_history_deinit(struct epoch_history *history);
int32_t epoch_history_latest(const struct epoch_history *history); /* -1: none */
/* Records that `epoch` begins at `start_offset`. Nothing happens when it is not newer than the
 * latest; true if recorded. Entries at or past start_offset of older epochs keep their place
 * (an epoch may be empty). */
bool epoch_history_assign(struct epoch_history *history, int32_t epoch, int64_t start_offset);
/* The largest recorded epoch <= `epoch`, and where it ends: the start of the next, or `log_end` if
 * it is the last. Below all recorded: `epoch` itself with the first recorded start. Empty: -1,
 * log_end. */
struct epoch_end epoch_history_end_of(const struct epoch_history *history, int32_t epoch,
                                      int64_t log_end);
/* The epoch that holds `offset`; -1 if before all. */
int32_t epoch_history_at(const struct epoch_history *history, int64_t offset);
bool epoch_history_has(const struct epoch_history *history, int32_t epoch);
/* The log was cut to `log_end`: entries starting at or past it go (but one at offset 0 of an empty
 * log stays out too). KAFKA-10706: always, even if the cut was past the end of the log. */
void epoch_history_truncate_end(struct epoch_history *history, int64_t log_end);
/* Epochs above `epoch` go (truncation rounds: the leader answered an older epoch). */
void epoch_history_truncate_epochs(struct epoch_history *history, int32_t epoch);
/* The log now starts at `log_start`: entries wholly below go; the one covering it moves up. */
void epoch_history_truncate_start(struct epoch_history *history, int64_t log_start);
void epoch_history_clear(struct epoch_history *history);
/* `to` becomes a copy (it is initialised). */
void epoch_history_copy(struct epoch_history *to, const struct epoch_history *from);
bool epoch_history_equal(const struct epoch_history *a, const struct epoch_history *b);

#endif
