/* view.h: what the entries of a log, applied in order, say about the group.
 *
 * A replica looks at two views: *known* (snapshot and entries known committed) decides about data,
 * *seen* (the uncommitted tail included) decides who may stand. Stamps are compared when applied.
 * Spec: replication-wire.md sections 2 and 4, replication.md section 7. Pure values.           */
#ifndef MOONMQ_RAFT_VIEW_H
#define MOONMQ_RAFT_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "raft/entry.h"

struct raft_view_member {
    int32_t id;
    struct uuid incarnation; /* none: not recorded */
    bool sure;               /* recorded by a founding claim or a snapshot, or listed in a later
                                ISR entry: whoever proposed that knew it committed */
};

struct raft_view {
    struct uuid group;    /* none: no founding claim yet */
    int64_t epoch;        /* of the last claim, or RAFT_EPOCH_NONE */
    int32_t leader;       /* of the last claim, or RAFT_NOBODY */
    int32_t min_insync;   /* the last claim's, 0 before */
    bool reached_minimum; /* the ISR has once had at least the minimum */
    bool stopped;         /* an entry of an unknown kind was met: nothing after it is applied */
    int member_count;     /* 0 before a founding claim */
    struct raft_view_member members[RAFT_MEMBERS_MAX]; /* ascending ids */
    struct raft_ids isr;
};

void raft_view_init(struct raft_view *view);

/* Applies the next entry. false: it had no effect (another epoch's stamp, a stranger, or the view
 * is stopped). */
bool raft_view_apply(struct raft_view *view, const struct raft_entry *entry);

/* NULL if `id` is no member. Borrowed from the view. */
const struct raft_view_member *raft_view_member(const struct raft_view *view, int32_t id);

/* Is this the incarnation on record for `id`? */
bool raft_view_records(const struct raft_view *view, int32_t id, const struct uuid *incarnation);

#endif
