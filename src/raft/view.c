/* view.c: the reducer over log entries; see view.h. */
#include "raft/view.h"

void raft_view_init(struct raft_view *view)
{
    *view = (struct raft_view){.epoch = RAFT_EPOCH_NONE, .leader = RAFT_NOBODY};
}

static struct raft_view_member *view_find(struct raft_view *view, int32_t id)
{
    for (int i = 0; i < view->member_count; i++) {
        if (view->members[i].id == id) return &view->members[i];
    }
    return NULL;
}

const struct raft_view_member *raft_view_member(const struct raft_view *view, int32_t id)
{
    return view_find((struct raft_view *)view, id);
}

bool raft_view_records(const struct raft_view *view, int32_t id, const struct uuid *incarnation)
{
    const struct raft_view_member *member = raft_view_member(view, id);
    return member != NULL && !uuid_is_none(incarnation) &&
           uuid_equal(&member->incarnation, incarnation);
}

/* "Reached" once the ISR was at least the minimum; a later, larger minimum does not take it back.
 */
static void view_note_minimum(struct raft_view *view)
{
    if (view->isr.count > 0 && view->isr.count >= view->min_insync) view->reached_minimum = true;
}

static bool view_apply_claim(struct raft_view *view, const struct raft_entry *entry)
{
    const struct raft_claim *claim = &entry->claim;
    view->epoch = entry->term;
    view->leader = claim->leader;
    view->min_insync = claim->min_insync;
    if (claim->founding) {
        view->group = claim->group;
        view->isr = claim->isr;
        view->reached_minimum = false;
        view->member_count = claim->member_count;
        for (int i = 0; i < claim->member_count; i++) {
            view->members[i] = (struct raft_view_member){
                .id = claim->members[i].id,
                .incarnation = claim->members[i].incarnation,
                .sure = true,
            };
        }
        view_note_minimum(view);
    }
    return true;
}

static bool view_apply_isr(struct raft_view *view, const struct raft_entry *entry)
{
    const struct raft_ids *isr = &entry->isr.isr;
    if (entry->epoch != view->epoch || isr->count == 0) return false;
    for (int i = 0; i < isr->count; i++) {
        if (view_find(view, isr->ids[i]) == NULL) return false;
    }
    view->isr = *isr;
    /* Who proposed this knew that those it lists were recorded, and that this was committed. */
    for (int i = 0; i < isr->count; i++)
        view_find(view, isr->ids[i])->sure = true;
    view_note_minimum(view);
    return true;
}

static bool view_apply_incarnation(struct raft_view *view, const struct raft_entry *entry)
{
    const struct raft_incarnation_change *change = &entry->incarnation;
    struct raft_view_member *member = view_find(view, change->replica);
    if (member == NULL || uuid_equal(&member->incarnation, &change->incarnation)) return false;
    if (!uuid_is_none(&member->incarnation)) raft_ids_remove(&view->isr, change->replica);
    member->incarnation = change->incarnation;
    member->sure = false;
    return true;
}

bool raft_view_apply(struct raft_view *view, const struct raft_entry *entry)
{
    if (view->stopped) return false;
    switch (entry->kind) {
    case RAFT_ENTRY_CLAIM: return view_apply_claim(view, entry);
    case RAFT_ENTRY_ISR: return view_apply_isr(view, entry);
    case RAFT_ENTRY_INCARNATION: return view_apply_incarnation(view, entry);
    case RAFT_ENTRY_NOOP: return true;
    case RAFT_ENTRY_OPAQUE: view->stopped = true; return false;
    }
    return false;
}
