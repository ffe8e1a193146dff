/* static_rules.c: see static_rules.h. */
#include "replication/static_rules.h"

#include "replication/static_wire.h"

/* ---- the leader's ---- */

enum static_task static_copy_task(const struct static_copy *copy, int64_t end, int64_t now_us)
{
    if (copy->busy) return STATIC_NOTHING;
    bool behind = copy->ask || copy->position < 0 || copy->position < end;
    if (!behind) return STATIC_NOTHING;
    if (now_us < copy->not_before) return STATIC_WAIT;
    return copy->ask || copy->position < 0 ? STATIC_ASK : STATIC_SEND;
}

enum static_told static_copy_told(struct static_copy *copy, int64_t position, int64_t log_end)
{
    if (position > log_end) {
        copy->position = copy->told = -1;
        copy->ask = true;
        return STATIC_TOLD_AHEAD;
    }
    /* Nothing held is a position, too: from there on it is copied. */
    if (position < 0) position = 0;
    bool went_back = position < copy->told;
    if (position != copy->told) copy->position = copy->told = position;
    copy->ask = false;
    return went_back ? STATIC_TOLD_BACK : STATIC_TOLD_WELL;
}

void static_copy_skipped(struct static_copy *copy, int64_t offset)
{
    if (copy->position >= 0 && offset > copy->position) copy->position = offset;
}

int64_t static_copied_to(const struct static_copy *copies, uint32_t count)
{
    int64_t lowest = INT64_MAX;
    for (uint32_t i = 0; i < count; i++) {
        int64_t position = copies[i].position < 0 ? 0 : copies[i].position;
        if (position < lowest) lowest = position;
    }
    return lowest;
}

bool static_high_watermark(const struct static_copy *copies, uint32_t count, int64_t log_end,
                           int64_t lag_max, int64_t *out)
{
    bool any = false;
    for (uint32_t i = 0; i < count; i++) {
        int64_t position = copies[i].position;
        if (position < 0 || log_end - position > lag_max) continue;
        if (!any || position < *out) *out = position;
        any = true;
    }
    return any;
}

bool static_is_pushed(const struct batch_header *header)
{
    if ((header->attributes & BATCH_CONTROL) != 0) return false;
    return header->producer_id < STATIC_PRODUCER_ID_BASE;
}

/* ---- the follower's ---- */

enum static_take static_take(int64_t position, int64_t first, int64_t last)
{
    if (last < position) return STATIC_HAVE;
    return first >= position ? STATIC_TAKE : STATIC_ASTRIDE;
}

int32_t static_sequence_of(int64_t offset)
{
    return (int32_t)(offset & INT32_MAX);
}

int64_t static_offset_of(int64_t known, int32_t sequence)
{
    uint32_t ahead = ((uint32_t)sequence - (uint32_t)known) & INT32_MAX;
    return known + ahead;
}
