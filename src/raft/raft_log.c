/* raft_log.c: the replicated log in memory, its snapshot, and the two views of it. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "raft/raft_core.h"

void raft_log_init(struct raft_log *log, int capacity)
{
    *log = (struct raft_log){.capacity = capacity};
    log->entries = memory_new((size_t)capacity * sizeof(log->entries[0]));
    log->generations = memory_new((size_t)capacity * sizeof(log->generations[0]));
    raft_view_init(&log->snapshot);
    raft_view_init(&log->known);
    raft_view_init(&log->seen);
}

void raft_log_deinit(struct raft_log *log)
{
    free(log->entries);
    free(log->generations);
}

int64_t raft_log_last_index(const struct raft_log *log)
{
    return log->snapshot_index + log->count;
}

int64_t raft_log_last_term(const struct raft_log *log)
{
    return log->count > 0 ? log->entries[log->count - 1].term : log->snapshot_term;
}

const struct raft_entry *raft_log_at(const struct raft_log *log, int64_t index)
{
    ASSERT(index > log->snapshot_index && index <= raft_log_last_index(log));
    return &log->entries[index - log->snapshot_index - 1];
}

int64_t raft_log_term_at(const struct raft_log *log, int64_t index)
{
    if (index == log->snapshot_index) return log->snapshot_term; /* 0 without a snapshot */
    return raft_log_at(log, index)->term;
}

int raft_log_room(const struct raft_log *log)
{
    return log->capacity - log->count;
}

/* The seen view again, from the known one on. */
static void log_look(struct raft_log *log)
{
    log->seen = log->known;
    for (int64_t i = log->applied + 1; i <= raft_log_last_index(log); i++) {
        (void)raft_view_apply(&log->seen, raft_log_at(log, i));
    }
}

void raft_log_load(struct raft_log *log, const struct raft_state *state)
{
    ASSERT(state->entry_count <= (size_t)log->capacity);
    log->snapshot_index = state->snapshot_index;
    log->snapshot_term = state->snapshot_term;
    log->snapshot = state->snapshot;
    log->count = (int)state->entry_count;
    memcpy(log->entries, state->entries, state->entry_count * sizeof(log->entries[0]));
    memset(log->generations, 0, state->entry_count * sizeof(log->generations[0]));
    /* What was known committed beyond the snapshot is not on disk: it is learned again. */
    log->commit = log->applied = log->snapshot_index;
    log->known = log->snapshot;
    log_look(log);
}

void raft_log_append(struct raft_log *log, const struct raft_entry *entry, uint64_t generation)
{
    ASSERT(log->count < log->capacity);
    ASSERT(entry->index == raft_log_last_index(log) + 1);
    ASSERT(entry->term >= raft_log_last_term(log));
    log->entries[log->count] = *entry;
    log->generations[log->count] = generation;
    log->count++;
    (void)raft_view_apply(&log->seen, entry);
}

void raft_log_cut(struct raft_log *log, int64_t index)
{
    ASSERT(index > log->commit && index > log->snapshot_index);
    if (index > raft_log_last_index(log)) return;
    log->count = (int)(index - log->snapshot_index - 1);
    log_look(log);
}

void raft_log_install(struct raft_log *log, const struct raft_snapshot *snapshot, bool keep_tail)
{
    ASSERT(snapshot->last_index > log->applied);
    int dropped = log->count;
    if (keep_tail) {
        dropped = (int)(snapshot->last_index - log->snapshot_index);
        size_t kept = (size_t)(log->count - dropped);
        memmove(log->entries, log->entries + dropped, kept * sizeof(log->entries[0]));
        memmove(log->generations, log->generations + dropped, kept * sizeof(log->generations[0]));
    }
    log->count -= dropped;
    log->snapshot_index = snapshot->last_index;
    log->snapshot_term = snapshot->last_term;
    log->snapshot = snapshot->state;
    log->applied = snapshot->last_index;
    if (log->commit < log->applied) log->commit = log->applied;
    log->known = snapshot->state;
    log_look(log);
}

void raft_log_compact(struct raft_log *log)
{
    int dropped = (int)(log->applied - log->snapshot_index);
    ASSERT(dropped > 0 && dropped <= log->count);
    size_t kept = (size_t)(log->count - dropped);
    log->snapshot_term = raft_log_term_at(log, log->applied);
    log->snapshot_index = log->applied;
    memmove(log->entries, log->entries + dropped, kept * sizeof(log->entries[0]));
    memmove(log->generations, log->generations + dropped, kept * sizeof(log->generations[0]));
    log->count = (int)kept;
    /* A snapshot is known committed, so all it records is sure. */
    for (int i = 0; i < log->known.member_count; i++) {
        struct raft_view_member *member = &log->known.members[i];
        member->sure = !uuid_is_none(&member->incarnation);
    }
    log->snapshot = log->known;
    log->snapshot.stopped = false; /* the entry that stops us is still in the log */
    log_look(log);
}

int64_t raft_log_durable_index(const struct raft_log *log, uint64_t generation)
{
    int count = log->count;
    while (count > 0 && log->generations[count - 1] > generation)
        count--;
    return log->snapshot_index + count;
}

bool raft_log_is_founding_only(const struct raft_log *log)
{
    if (log->snapshot_index > 0) return false;
    /* Only a member of a group appends anything else, and nothing founding follows it. */
    return log->count == 0 || raft_entry_is_founding(&log->entries[log->count - 1]);
}

bool raft_log_change_pending(const struct raft_log *log)
{
    for (int64_t i = log->applied + 1; i <= raft_log_last_index(log); i++) {
        enum raft_entry_kind kind = raft_log_at(log, i)->kind;
        if (kind == RAFT_ENTRY_ISR || kind == RAFT_ENTRY_INCARNATION) return true;
    }
    return false;
}

/* A readmission served its purpose once an entry records an incarnation. */
static void log_end_readmission(struct raft *raft, int32_t replica)
{
    int kept = 0;
    for (int i = 0; i < raft->readmitted_count; i++) {
        if (raft->readmitted[i].id != replica) raft->readmitted[kept++] = raft->readmitted[i];
    }
    if (kept < raft->readmitted_count) raft_touch(raft);
    raft->readmitted_count = kept;
}

void raft_apply(struct raft *raft)
{
    struct raft_log *log = &raft->log;
    while (log->applied < log->commit &&
           raft->out->count + RAFT_ACTIONS_RESERVED < RAFT_ACTIONS_MAX) {
        const struct raft_entry *entry = raft_log_at(log, log->applied + 1);
        bool effective = raft_view_apply(&log->known, entry);
        if (log->known.stopped) break;
        log->applied++;
        if (entry->kind == RAFT_ENTRY_INCARNATION) {
            log_end_readmission(raft, entry->incarnation.replica);
        }
        struct raft_action *action = raft_act(raft, RAFT_ACTION_APPLIED);
        action->applied.index = log->applied;
        action->applied.entry = *entry;
        action->applied.effective = effective;
        action->applied.view = log->known;
    }
    /* An earlier founding claim may be followed by the one that replaced it: look at the end. */
    if (!raft->bound && log->applied == log->commit && !uuid_is_none(&log->known.group)) {
        raft_bind(raft, &log->known.group);
    }
}
