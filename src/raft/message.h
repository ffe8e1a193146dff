/* message.h: the messages of Raft between replicas, as values. Their JSON: raft_json.h.
 * Spec: replication-wire.md section 4.                                                        */
#ifndef MOONMQ_RAFT_MESSAGE_H
#define MOONMQ_RAFT_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "raft/entry.h"
#include "raft/view.h"

#define RAFT_APPEND_ENTRIES_MAX 64

enum raft_message_kind {
    RAFT_MESSAGE_VOTE = 1,
    RAFT_MESSAGE_VOTE_ANSWER,
    RAFT_MESSAGE_APPEND,
    RAFT_MESSAGE_APPEND_ANSWER,
    RAFT_MESSAGE_SNAPSHOT,
    RAFT_MESSAGE_SNAPSHOT_ANSWER,
    RAFT_MESSAGE_STAND,
    RAFT_MESSAGE_STAND_ANSWER,
};

enum raft_vote_why { /* why a replica stands */
                     RAFT_WHY_TIMEOUT = 1,
                     RAFT_WHY_LOST,
                     RAFT_WHY_TRANSFER,
                     RAFT_WHY_CARETAKER,
                     RAFT_WHY_FOUNDING,
};

enum raft_no {                      /* why a vote, or a stand, is refused */
               RAFT_NO_NOTHING = 0, /* granted; "" on the wire */
               RAFT_NO_TERM,
               RAFT_NO_LOG,
               RAFT_NO_VOTED,
               RAFT_NO_LEADER_ALIVE,
               RAFT_NO_FOUNDED,
               RAFT_NO_HOLDS_RECORDS,
               RAFT_NO_LEARNER,
               RAFT_NO_DISK,
               RAFT_NO_NOT_ELIGIBLE, /* stand only: not in the ISR */
               RAFT_NO_DAMAGED,      /* stand only */
               RAFT_NO_VERSION,      /* stand only: the manifest version is not applied */
               RAFT_NO_OTHER,        /* a word of a later version */
};

struct raft_version { /* of the manifest */
    int64_t epoch;
    int64_t n;
};

struct raft_vote {
    bool pre;
    enum raft_vote_why why;
    int64_t last_index;
    int64_t last_term;
    bool has_transfer;
    int32_t transfer_leader;
    int64_t transfer_epoch;
};

struct raft_vote_answer {
    bool pre;
    bool granted;
    enum raft_no why;
    bool fresh;
    bool holds_records;
};

struct raft_append {
    int32_t leader;
    bool caretaker;
    int64_t prev_index;
    int64_t prev_term;
    int64_t commit;
    uint64_t round;
    size_t entry_count;
    const struct raft_entry *entries; /* borrowed; indexes prev_index + 1 … */
};

struct raft_append_answer {
    bool ok;
    int64_t match; /* ok: durable here and equal to the leader's up to this index */
    int64_t hint;  /* not ok: the prev_index to try next */
    bool need_snapshot;
    bool bound;
    uint64_t round;
};

struct raft_snapshot {
    int32_t leader;
    int64_t last_index;
    int64_t last_term;
    uint64_t round;
    struct raft_view state; /* every recorded member `sure` */
};

struct raft_snapshot_answer {
    bool ok;
    int64_t match;
    uint64_t round;
};

struct raft_stand {
    int32_t leader;
    int64_t epoch;    /* RAFT_EPOCH_NONE: none */
    bool has_version; /* false, of a caretaker: not checked; of a leader with a claim: it holds less
                         than this replica and cannot lead, be this one damaged or not */
    struct raft_version version;
};

struct raft_stand_answer {
    bool accepted;
    enum raft_no why;
};

struct raft_message {
    enum raft_message_kind kind;
    int64_t term; /* a pre-vote's: the one it would use; an answer's: the answerer's own */
    union {
        struct raft_vote vote;
        struct raft_vote_answer vote_answer;
        struct raft_append append;
        struct raft_append_answer append_answer;
        struct raft_snapshot snapshot;
        struct raft_snapshot_answer snapshot_answer;
        struct raft_stand stand;
        struct raft_stand_answer stand_answer;
    };
};

#endif
