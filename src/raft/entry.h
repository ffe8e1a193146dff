/* entry.h: what a Raft log of the group holds, and sets of replica ids.
 *
 * Entries are plain values: no pointers, so they are copied freely and cost no allocation. An
 * entry of a kind this version does not know keeps its kind and data as text, so that it is stored
 * and passed on unchanged, though never applied. Spec: replication-wire.md section 4.          */
#ifndef MOONMQ_RAFT_ENTRY_H
#define MOONMQ_RAFT_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/uuid.h"

#define RAFT_MEMBERS_MAX       7
#define RAFT_NOBODY            (-1) /* no replica */
#define RAFT_EPOCH_NONE        (-1)
#define RAFT_TERM_MAX          INT32_MAX /* a term becomes an epoch, and those are 32 bits */
#define RAFT_INDEX_MAX         ((INT64_C(1) << 53) - 1)
#define RAFT_OPAQUE_KIND_BYTES 32  /* with NUL */
#define RAFT_OPAQUE_DATA_BYTES 256 /* with NUL; larger ones are refused when decoded */

/* A set of replica ids, ascending and without repeats. */
struct raft_ids {
    int count;
    int32_t ids[RAFT_MEMBERS_MAX];
};

bool raft_ids_contain(const struct raft_ids *set, int32_t id);
/* false: the set is full. Adding what is there changes nothing. */
bool raft_ids_add(struct raft_ids *set, int32_t id);
void raft_ids_remove(struct raft_ids *set, int32_t id);
void raft_ids_unite(struct raft_ids *set, const struct raft_ids *with);
bool raft_ids_equal(const struct raft_ids *a, const struct raft_ids *b);

enum raft_entry_kind {
    RAFT_ENTRY_CLAIM = 1,   /* leader from here on; the founding one creates the group */
    RAFT_ENTRY_ISR,         /* the in-sync set as of here */
    RAFT_ENTRY_INCARNATION, /* a member's DataDir is another one */
    RAFT_ENTRY_NOOP,        /* a caretaker's */
    RAFT_ENTRY_OPAQUE,      /* `members`, or a kind of a later version: stops the replica */
};

enum raft_isr_why {
    RAFT_ISR_LAG = 1,
    RAFT_ISR_GONE,
    RAFT_ISR_REFUSED,
    RAFT_ISR_STALL,
    RAFT_ISR_FAILED,
    RAFT_ISR_CAUGHT_UP,
};

struct raft_member {
    int32_t id;
    struct uuid incarnation; /* none: never recorded, the member is a learner */
};

struct raft_claim {
    int32_t leader;
    int32_t min_insync;
    bool founding; /* the rest is valid in a founding claim only */
    struct uuid group;
    int member_count;
    struct raft_member members[RAFT_MEMBERS_MAX]; /* ascending ids */
    struct raft_ids isr;
};

struct raft_isr_change {
    struct raft_ids isr;
    enum raft_isr_why why;
};

struct raft_incarnation_change {
    int32_t replica;
    struct uuid incarnation;
    struct uuid replaces; /* none: null */
};

struct raft_opaque {
    char kind[RAFT_OPAQUE_KIND_BYTES];
    char data[RAFT_OPAQUE_DATA_BYTES]; /* JSON object, compact */
};

struct raft_entry {
    int64_t index; /* from 1 */
    int64_t term;
    int64_t epoch; /* who proposed it: the stamp; a claim's own term; noop, opaque: 0 */
    enum raft_entry_kind kind;
    union {
        struct raft_claim claim;
        struct raft_isr_change isr;
        struct raft_incarnation_change incarnation;
        struct raft_opaque opaque;
    };
};

bool raft_entry_is_founding(const struct raft_entry *entry);

#endif
