#include "sim/history_fences.h"

static bool is_older(struct history_grant a, struct history_grant b)
{
    return a.producer_id != b.producer_id ? a.producer_id < b.producer_id : a.epoch < b.epoch;
}

uint32_t history_add_holder(struct history *history)
{
    if (history->grant_count == history->grant_capacity) {
        history->grant_capacity = history->grant_capacity == 0 ? 8 : 2 * history->grant_capacity;
        history->grants =
            sim_grow(history->grants, history->grant_capacity * sizeof(history->grants[0]));
    }
    history->grants[history->grant_count] = (struct history_grant){-1, -1};
    return history->grant_count++;
}

void history_granted(struct history *history, uint32_t holder, struct history_grant grant)
{
    if (is_older(history->grants[holder], grant)) history->grants[holder] = grant;
}

struct history_grant history_newest_grant(const struct history *history, uint32_t holder)
{
    return history->grants[holder];
}

void history_accepted(struct history *history, struct history_grant used,
                      struct history_grant newest, const char *what)
{
    if (!is_older(used, newest)) return;
    sim_verdict_fail(history->verdict, "I17",
                     "%s of producer %lld epoch %d is accepted, sent after %lld epoch %d was "
                     "granted",
                     what, (long long)used.producer_id, used.epoch, (long long)newest.producer_id,
                     newest.epoch);
}

void history_epoch_found(struct history *history, struct history_reading *reading, int64_t offset,
                         int64_t producer_id, int16_t epoch)
{
    const struct history_log *log = &history->logs[reading->log];
    for (uint32_t i = 0; i < reading->producer_count; i++) {
        struct history_producer_seen *seen = &reading->producers[i];
        if (seen->producer_id != producer_id) continue;
        if (epoch < seen->epoch)
            sim_verdict_fail(history->verdict, "I17",
                             "%s/%d offset %lld: epoch %d of producer %lld after its epoch %d",
                             log->topic, log->partition, (long long)offset, epoch,
                             (long long)producer_id, seen->epoch);
        seen->epoch = epoch;
        return;
    }
    if (reading->producer_count == reading->producer_capacity) {
        reading->producer_capacity =
            reading->producer_capacity == 0 ? 16 : 2 * reading->producer_capacity;
        reading->producers = sim_grow(reading->producers,
                                      reading->producer_capacity * sizeof(reading->producers[0]));
    }
    reading->producers[reading->producer_count++] =
        (struct history_producer_seen){producer_id, epoch};
}
