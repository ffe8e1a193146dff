/* epoch_history.c: where each leader epoch of one partition began; see epoch_history.h.
 *
 * Only consecutive epochs with one start share an entry: [3, 7] for epochs 3 and 7 would claim to
 * know epoch 5, and a follower that asked about its own epoch 5 would keep records we never had.
 * Pure. */
#include "log/epoch_history.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"

void epoch_history_init(struct epoch_history *history)
{
    *history = (struct epoch_history){0};
}

void epoch_history_deinit(struct epoch_history *history)
{
    free(history->entries);
    *history = (struct epoch_history){0};
}

int32_t epoch_history_latest(const struct epoch_history *history)
{
    return history->count == 0 ? -1 : history->entries[history->count - 1].last_epoch;
}

static void epoch_history_push(struct epoch_history *history, int32_t epoch, int64_t start_offset)
{
    if (history->count == history->capacity) {
        history->capacity = history->capacity == 0 ? 2 : history->capacity * 2;
        history->entries =
            memory_resize(history->entries, history->capacity, sizeof(*history->entries));
    }
    history->entries[history->count++] = (struct epoch_entry){
        .first_epoch = epoch, .last_epoch = epoch, .start_offset = start_offset};
}

bool epoch_history_assign(struct epoch_history *history, int32_t epoch, int64_t start_offset)
{
    if (epoch < 0 || epoch <= epoch_history_latest(history)) return false;
    if (history->count > 0) {
        struct epoch_entry *last = &history->entries[history->count - 1];
        /* An empty epoch may have been recorded past where the next one turns out to begin. */
        if (start_offset < last->start_offset) start_offset = last->start_offset;
        if (last->start_offset == start_offset && last->last_epoch + 1 == epoch) {
            last->last_epoch = epoch;
            return true;
        }
    }
    epoch_history_push(history, epoch, start_offset);
    return true;
}

struct epoch_end epoch_history_end_of(const struct epoch_history *history, int32_t epoch,
                                      int64_t log_end)
{
    if (history->count == 0) return (struct epoch_end){.epoch = -1, .end_offset = log_end};
    if (epoch < history->entries[0].first_epoch) {
        return (struct epoch_end){.epoch = epoch, .end_offset = history->entries[0].start_offset};
    }
    uint32_t at = history->count - 1;
    while (history->entries[at].first_epoch > epoch) {
        at--;
    }
    const struct epoch_entry *entry = &history->entries[at];
    if (epoch < entry->last_epoch) {
        return (struct epoch_end){.epoch = epoch, .end_offset = entry->start_offset};
    }
    int64_t end = at + 1 < history->count ? entry[1].start_offset : log_end;
    return (struct epoch_end){.epoch = entry->last_epoch, .end_offset = end};
}

int32_t epoch_history_at(const struct epoch_history *history, int64_t offset)
{
    for (uint32_t i = history->count; i > 0; i--) {
        if (history->entries[i - 1].start_offset <= offset)
            return history->entries[i - 1].last_epoch;
    }
    return -1;
}

bool epoch_history_has(const struct epoch_history *history, int32_t epoch)
{
    for (uint32_t i = 0; i < history->count; i++) {
        const struct epoch_entry *entry = &history->entries[i];
        if (epoch >= entry->first_epoch && epoch <= entry->last_epoch) return true;
    }
    return false;
}

void epoch_history_truncate_end(struct epoch_history *history, int64_t log_end)
{
    while (history->count > 0 && history->entries[history->count - 1].start_offset >= log_end) {
        history->count--;
    }
}

void epoch_history_truncate_epochs(struct epoch_history *history, int32_t epoch)
{
    while (history->count > 0 && history->entries[history->count - 1].first_epoch > epoch) {
        history->count--;
    }
    if (history->count > 0 && history->entries[history->count - 1].last_epoch > epoch) {
        history->entries[history->count - 1].last_epoch = epoch;
    }
}

void epoch_history_truncate_start(struct epoch_history *history, int64_t log_start)
{
    uint32_t gone = 0;
    while (gone + 1 < history->count && history->entries[gone].start_offset < log_start &&
           history->entries[gone + 1].start_offset <= log_start) {
        gone++;
    }
    if (gone == 0 && history->count == 0) return;
    history->count -= gone;
    memmove(history->entries, history->entries + gone, history->count * sizeof(*history->entries));
    if (history->count > 0 && history->entries[0].start_offset < log_start) {
        history->entries[0].start_offset = log_start;
    }
}

void epoch_history_clear(struct epoch_history *history)
{
    history->count = 0;
}

void epoch_history_copy(struct epoch_history *to, const struct epoch_history *from)
{
    if (to->capacity < from->count) {
        to->entries = memory_resize(to->entries, from->count, sizeof(*to->entries));
        to->capacity = from->count;
    }
    if (from->count > 0) memcpy(to->entries, from->entries, from->count * sizeof(*to->entries));
    to->count = from->count;
}

bool epoch_history_equal(const struct epoch_history *a, const struct epoch_history *b)
{
    if (a->count != b->count) return false;
    for (uint32_t i = 0; i < a->count; i++) {
        const struct epoch_entry *left = &a->entries[i], *right = &b->entries[i];
        if (left->first_epoch != right->first_epoch || left->last_epoch != right->last_epoch ||
            left->start_offset != right->start_offset) {
            return false;
        }
    }
    return true;
}
