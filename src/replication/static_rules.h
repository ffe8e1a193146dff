/* static_rules.h: what static mode decides, apart from how it is done (replication.md section 1,
 * native-protocol.md section 7, docs/replication.md "Static mode"). Pure.
 *
 * The leader's side, one partition at one follower: ASK (how far are you?) until it was told once
 * in this connection, then SEND what is behind, one push at a time. A copy's position counts in the
 * leader's offsets: everything of the leader's below it is durable at the follower, or is nothing
 * to push. The follower's side: which batches of a push are new.                                */
#ifndef MOONMQ_REPLICATION_STATIC_RULES_H
#define MOONMQ_REPLICATION_STATIC_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "record/batch.h"

/* ---- the leader's ---- */

struct static_copy {
    int64_t position;   /* -1: not told yet, or unbelievable: it counts for nothing */
    int64_t told;       /* what the follower said last; up to `position` is nothing to push */
    bool ask;           /* to be asked before anything is sent */
    bool busy;          /* an ASK or a SEND is under way */
    int64_t not_before; /* µs: it refused; 0: it did not */
};
enum static_task { STATIC_NOTHING, STATIC_WAIT, STATIC_ASK, STATIC_SEND };
/* What is to be done about the copy now, with everything below `end` ready to be pushed. WAIT: it
 * refused, and has something to do later. */
enum static_task static_copy_task(const struct static_copy *copy, int64_t end, int64_t now_us);

enum static_told {
    STATIC_TOLD_WELL,
    STATIC_TOLD_BACK,  /* it holds less than it said before: copied again from there */
    STATIC_TOLD_AHEAD, /* more than there is: this leader's log is not the one it copied */
};
/* The follower said that it wants `position` next (-1: it holds nothing). AHEAD: the copy counts
 * for nothing until it is asked again. */
enum static_told static_copy_told(struct static_copy *copy, int64_t position, int64_t log_end);
/* Nothing below `offset` is to be pushed. */
void static_copy_skipped(struct static_copy *copy, int64_t offset);

/* What acks=all may count on: held, durably, by every one of them. */
int64_t static_copied_to(const struct static_copy *copies, uint32_t count);
/* The lowest position among those that trail by `lag_max` at most; false: none does. */
bool static_high_watermark(const struct static_copy *copies, uint32_t count, int64_t log_end,
                           int64_t lag_max, int64_t *out);

/* Does the batch come from a client of this broker? Others are pushed by whoever has them. */
bool static_is_pushed(const struct batch_header *header);

/* ---- the follower's ---- */

enum static_take { STATIC_TAKE, STATIC_HAVE, STATIC_ASTRIDE };
/* Of a batch of the leader's [first, last], when everything below `position` is here. ASTRIDE: part
 * of it, which no batch of that leader's can be. */
enum static_take static_take(int64_t position, int64_t first, int64_t last);

/* A batch carries the low 31 bits of its first offset at the leader as its sequence. */
int32_t static_sequence_of(int64_t offset);
/* Which offset at or above `known` that was. */
int64_t static_offset_of(int64_t known, int32_t sequence);

#endif
