/* state.h: what Raft keeps on disk: term, vote, snapshot, log, readmitted incarnations.
 *
 * The document `replication-raft.json` (raft_json.h) holds exactly this, sealed, bound to replica
 * id and incarnation. The commit index is not on disk: a restart knows the snapshot's.        */
#ifndef MOONMQ_RAFT_STATE_H
#define MOONMQ_RAFT_STATE_H

#include <stdint.h>

#include "base/uuid.h"
#include "raft/entry.h"
#include "raft/view.h"

#define RAFT_STATE_ENTRIES_MAX 16384 /* more than any capacity of the log in memory */

struct raft;

struct raft_state {
    int32_t replica;
    struct uuid incarnation;
    int64_t term;
    int32_t voted_for;      /* in this term, or RAFT_NOBODY */
    int64_t snapshot_index; /* 0: no snapshot */
    int64_t snapshot_term;
    struct raft_view snapshot; /* as of snapshot_index; initial if that is 0 */
    int readmitted_count;
    struct raft_member readmitted[RAFT_MEMBERS_MAX];
    size_t entry_count;
    struct raft_entry entries[]; /* snapshot_index + 1 … */
};

/* A copy of the core's state as it is now; NULL if memory ran out. Free with free(). */
struct raft_state *raft_state_copy(const struct raft *raft);

#endif
