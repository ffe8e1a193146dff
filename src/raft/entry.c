/* entry.c: sets of replica ids; see entry.h. */
#include "raft/entry.h"

#include <string.h>

bool raft_ids_contain(const struct raft_ids *set, int32_t id)
{
    for (int i = 0; i < set->count; i++) {
        if (set->ids[i] == id) return true;
    }
    return false;
}

bool raft_ids_add(struct raft_ids *set, int32_t id)
{
    if (raft_ids_contain(set, id)) return true;
    if (set->count == RAFT_MEMBERS_MAX) return false;
    int at = set->count++;
    while (at > 0 && set->ids[at - 1] > id) {
        set->ids[at] = set->ids[at - 1];
        at--;
    }
    set->ids[at] = id;
    return true;
}

void raft_ids_remove(struct raft_ids *set, int32_t id)
{
    int kept = 0;
    for (int i = 0; i < set->count; i++) {
        if (set->ids[i] != id) set->ids[kept++] = set->ids[i];
    }
    set->count = kept;
}

void raft_ids_unite(struct raft_ids *set, const struct raft_ids *with)
{
    for (int i = 0; i < with->count; i++) {
        (void)raft_ids_add(set, with->ids[i]); /* full only if both hold strangers; dropped */
    }
}

bool raft_ids_equal(const struct raft_ids *a, const struct raft_ids *b)
{
    return a->count == b->count &&
           memcmp(a->ids, b->ids, (size_t)a->count * sizeof(a->ids[0])) == 0;
}

bool raft_entry_is_founding(const struct raft_entry *entry)
{
    return entry->kind == RAFT_ENTRY_CLAIM && entry->claim.founding;
}
