/* leader_sessions.c: a follower's session: its slots, the marks in them, who has news, who lags.
 *
 * Costs are O(slots that changed): news and lag are intrusive lists; a lagging slot has the log end
 * it must reach (Kafka's rule: what was the log end when its last mark was reached), oldest mark
 * first.         */
#include <stdlib.h>

#include "base/assert.h"
#include "replication/leader_internal.h"

#define MARKS_WAIT_US 2000

static struct follower *follower_of(struct leader *leader, const struct position *position)
{
    return &leader->followers[position->member];
}

static void news_remove(struct follower *follower, struct position *position)
{
    if (!position->has_news) return;
    position->has_news = false;
    DL_DELETE2(follower->news, position, news_prev, news_next);
}

static void lag_remove(struct follower *follower, struct position *position)
{
    if (!position->lagging) return;
    position->lagging = false;
    DL_DELETE2(follower->lag, position, lag_prev, lag_next);
}

static void lag_mark(struct leader *leader, struct follower *follower, struct position *position,
                     int64_t log_end)
{
    lag_remove(follower, position);
    position->lagging = true;
    position->lag_offset = log_end;
    position->lag_since_us = leader_now(leader);
    DL_APPEND2(follower->lag, position, lag_prev, lag_next);
}

void position_update_lag(struct leader *leader, struct position *position, bool moved)
{
    struct follower *follower = follower_of(leader, position);
    if (position->of == NULL) {
        lag_remove(follower, position);
        return;
    }
    int64_t log_end = partition_log_end(position->of->partition);
    if (position->durable >= log_end) {
        lag_remove(follower, position);
        return;
    }
    int64_t now = leader_now(leader);
    if (moved || !position->lagging) position->moved_us = now;
    if (!position->lagging || position->durable >= position->lag_offset) {
        lag_mark(leader, follower, position, log_end);
    }
}

/* Is there anything that this slot's follower has not been told? */
bool position_is_news(const struct leader *leader, const struct position *position)
{
    (void)leader;
    if (position->of == NULL) return !position->told_error;
    const struct partition *partition = position->of->partition;
    if (position->failed || position->conflict) return false;
    return partition_log_end(partition) != position->fetch_offset ||
           partition_high_watermark(partition) != position->told_high_watermark ||
           partition_log_start(partition) != position->told_log_start;
}

/* Bytes, and whatever a follower must act on, wake its fetch at once. A high watermark alone waits
 * a moment for bytes to ride with: nothing depends on how soon a follower knows it, and under a
 * steady writer it would cost a fetch of its own for each commit (docs/replication.md). */
void position_add_news(struct leader *leader, struct position *position)
{
    struct follower *follower = follower_of(leader, position);
    if (!position->has_news) {
        if (!position_is_news(leader, position)) return;
        position->has_news = true;
        DL_APPEND2(follower->news, position, news_prev, news_next);
    }
    const struct partition *partition = position->of == NULL ? NULL : position->of->partition;
    bool mark_only = partition != NULL && partition_log_end(partition) == position->fetch_offset &&
                     partition_log_start(partition) == position->told_log_start;
    if (!mark_only) {
        follower_wake(leader, follower);
    } else if (!leader->marks_wait && !leader->dead) {
        leader->marks_wait = true;
        timer_start(leader->marks_timer, MARKS_WAIT_US);
    }
}

void position_remove(struct leader *leader, struct position *position)
{
    struct follower *follower = follower_of(leader, position);
    news_remove(follower, position);
    lag_remove(follower, position);
    if (position->of != NULL) {
        position->of->positions[position->member] = NULL;
        follower->defined--;
    }
    if (position->failed || position->conflict) follower->failed_count--;
    if (position->apart) follower->apart_count--;
    if (follower->cold != NULL && follower->cold->position == position) {
        follower->cold->position = NULL;
    }
    follower->slots[position->slot] = NULL;
    DL_DELETE2(follower->all, position, all_prev, all_next);
    free(position);
}

static bool slots_reserve(struct follower *follower, uint32_t slot)
{
    if (slot < follower->slot_capacity) return true;
    uint32_t capacity = follower->slot_capacity == 0 ? 64 : follower->slot_capacity;
    while (capacity <= slot)
        capacity *= 2;
    struct position **slots = realloc(follower->slots, capacity * sizeof(*slots));
    if (slots == NULL) return false;
    for (uint32_t i = follower->slot_capacity; i < capacity; i++)
        slots[i] = NULL;
    follower->slots = slots;
    follower->slot_capacity = capacity;
    return true;
}

/* The partition a DEFINE names, or why there is none. */
static struct leader_partition *resolve(struct leader *leader,
                                        const struct wire_request_entry *entry, uint8_t *code)
{
    struct topic *topic = catalog_find_uid(leader->options.broker, &entry->uid);
    if (topic == NULL) {
        *code = WIRE_ERROR_UNKNOWN_UID;
        return NULL;
    }
    struct partition *partition = topic_partition(topic, entry->partition);
    if (partition == NULL) {
        *code = WIRE_ERROR_UNKNOWN_PARTITION;
        return NULL;
    }
    *code = WIRE_ERROR_NOT_READY;
    return partition_replica(partition);
}

struct position *position_define(struct leader *leader, struct follower *follower,
                                 const struct wire_request_entry *entry)
{
    if (!slots_reserve(follower, entry->slot)) return NULL;
    if (follower->slots[entry->slot] != NULL) {
        position_remove(leader, follower->slots[entry->slot]);
    }
    struct position *position = calloc(1, sizeof(*position));
    if (position == NULL) return NULL;
    position->member = follower->member;
    position->slot = entry->slot;
    position->told_high_watermark = position->told_log_start = -1;
    position->of = resolve(leader, entry, &position->error);
    if (position->of != NULL && position->of->positions[follower->member] != NULL) {
        /* One partition in two slots: the newer definition is the one that counts. */
        position_remove(leader, position->of->positions[follower->member]);
    }
    follower->slots[entry->slot] = position;
    DL_APPEND2(follower->all, position, all_prev, all_next);
    if (position->of != NULL) {
        position->of->positions[follower->member] = position;
        follower->defined++;
    }
    return position;
}

static void set_apart(struct follower *follower, struct position *position, bool apart)
{
    if (position->apart != apart) follower->apart_count += apart ? 1 : (uint32_t)-1;
    position->apart = apart;
}

void position_set_apart(struct leader *leader, struct position *position,
                        const struct wire_request_entry *entry)
{
    set_apart(follower_of(leader, position), position, true);
    position->fetch_offset = entry->fetch_offset;
    position->follower_start = entry->log_start;
    position->last_epoch = entry->last_epoch;
    position->dropped_to = entry->dropped_to;
    position->told_high_watermark = -1; /* so that it is told where it stands */
    position_update_lag(leader, position, false);
    position_add_news(leader, position);
}

void position_set_marks(struct leader *leader, struct position *position,
                        const struct wire_request_entry *entry, uint64_t seq)
{
    struct follower *follower = follower_of(leader, position);
    set_apart(follower, position, false);
    bool was_bad = position->failed || position->conflict;
    position->marks_seq = seq;
    position->failed = entry->flags & WIRE_FAILED;
    position->conflict = entry->flags & WIRE_CONFLICT;
    position->reason = entry->reason;
    bool is_bad = position->failed || position->conflict;
    if (is_bad != was_bad) follower->failed_count += is_bad ? 1 : (uint32_t)-1;
    bool moved = entry->durable_offset != position->durable;
    position->fetch_offset = entry->fetch_offset;
    position->durable = position->conflict ? entry->fetch_offset : entry->durable_offset;
    position->follower_start = entry->log_start;
    position->last_epoch = entry->last_epoch;
    position->dropped_to = entry->dropped_to;
    position_update_lag(leader, position, moved);
    if (position->of != NULL) leader_update_high_watermark(leader, position->of);
    if (!leader->dead) position_add_news(leader, position);
}

void follower_drop_session(struct leader *leader, struct follower *follower)
{
    struct position *position, *next;
    DL_FOREACH_SAFE2(follower->all, position, next, all_next)
    {
        position_remove(leader, position);
    }
    ASSERT(follower->all == NULL && follower->news == NULL && follower->lag == NULL);
    ASSERT(follower->defined == 0 && follower->failed_count == 0 && follower->apart_count == 0);
    follower->session = 0;
    follower->seq_fetch = follower->seq_progress = 0;
}
