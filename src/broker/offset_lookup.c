/* offset_lookup.c: ListOffsets and OffsetForLeaderEpoch (kafka-listener.md section 6).
 *
 * A new leader's high watermark may lie below what its predecessor showed; until it has reached
 * where this epoch began, "latest" and look-ups by time would answer too low (I4). They wait for
 * that up to a second, then say "not available yet". */
#include <utlist.h>

#include "base/assert.h"
#include "broker/partition_state.h"

#define NOT_YET_WAIT_US 1000000

enum special_timestamp {
    TIMESTAMP_LATEST = -1,
    TIMESTAMP_EARLIEST = -2,
    TIMESTAMP_MAX = -3,
    TIMESTAMP_EARLIEST_LOCAL = -4,
    TIMESTAMP_LATEST_TIERED = -5,
    TIMESTAMP_EARLIEST_PENDING_UPLOAD = -6,
};

static void lookup_finish(struct offset_lookup *lookup, enum status status)
{
    lookup->status = status;
    lookup->done(lookup->context, lookup);
}

static int64_t read_limit(const struct offset_lookup *lookup)
{
    return lookup->read_committed ? partition_last_stable_offset(lookup->partition)
                                  : lookup->partition->high_watermark;
}

static bool is_below_epoch_start(const struct partition *partition)
{
    return partition->high_watermark < partition->epoch_start;
}

/* ---- by time ---- */

static void time_found(void *context, struct log_time_lookup *time)
{
    struct offset_lookup *lookup = context;
    if (time->status != STATUS_OK) {
        lookup_finish(lookup, STATUS_STORAGE_ERROR);
        return;
    }
    if (time->found_offset < 0) {
        /* What was looked for may lie above a high watermark that lags. */
        lookup_finish(lookup, lookup->below_epoch_start ? STATUS_OFFSET_NOT_AVAILABLE : STATUS_OK);
        return;
    }
    lookup->offset = time->found_offset;
    lookup->found_timestamp_ms = time->found_timestamp_ms;
    lookup->leader_epoch = time->found_epoch;
    lookup_finish(lookup, STATUS_OK);
}

static void find_time(struct offset_lookup *lookup)
{
    lookup->below_epoch_start = is_below_epoch_start(lookup->partition);
    if (lookup->below_epoch_start && lookup->timestamp_ms == TIMESTAMP_MAX) {
        lookup_finish(lookup, STATUS_OFFSET_NOT_AVAILABLE);
        return;
    }
    lookup->time = (struct log_time_lookup){
        .timestamp_ms = lookup->timestamp_ms,
        .want_max = lookup->timestamp_ms == TIMESTAMP_MAX,
        .limit_offset = read_limit(lookup),
        .done = time_found,
        .context = lookup,
    };
    partition_log_find_timestamp(lookup->partition->log, &lookup->time);
}

/* ---- special positions ---- */

static void answer_latest(struct offset_lookup *lookup)
{
    if (is_below_epoch_start(lookup->partition)) {
        lookup_finish(lookup, STATUS_OFFSET_NOT_AVAILABLE);
        return;
    }
    lookup->offset = read_limit(lookup);
    lookup->leader_epoch = broker_group_view(lookup->partition->broker)->epoch;
    lookup_finish(lookup, STATUS_OK);
}

static void answer_earliest(struct offset_lookup *lookup)
{
    const struct partition *partition = lookup->partition;
    lookup->offset = partition_log_start(partition);
    lookup->leader_epoch = epoch_history_at(partition_log_epochs(partition->log), lookup->offset);
    lookup_finish(lookup, STATUS_OK);
}

static void lookup_run(struct offset_lookup *lookup)
{
    switch (lookup->timestamp_ms) {
    case TIMESTAMP_LATEST: answer_latest(lookup); return;
    case TIMESTAMP_EARLIEST:
    case TIMESTAMP_EARLIEST_LOCAL: answer_earliest(lookup); return;
    case TIMESTAMP_LATEST_TIERED:
    case TIMESTAMP_EARLIEST_PENDING_UPLOAD: lookup_finish(lookup, STATUS_OK); return;
    case TIMESTAMP_MAX: find_time(lookup); return;
    default: break;
    }
    if (lookup->timestamp_ms < 0) {
        lookup_finish(lookup, STATUS_UNSUPPORTED);
    } else {
        find_time(lookup);
    }
}

static bool must_wait(const struct offset_lookup *lookup)
{
    bool bound = lookup->timestamp_ms >= 0 || lookup->timestamp_ms == TIMESTAMP_LATEST ||
                 lookup->timestamp_ms == TIMESTAMP_MAX;
    return bound && is_below_epoch_start(lookup->partition);
}

/* ---- parking ---- */

static void lookup_unpark(struct broker *broker, struct offset_lookup *lookup)
{
    DL_DELETE(broker->lookups, lookup);
    deadlines_remove(&broker->deadlines, &lookup->deadline);
}

static void lookup_expired(void *context, struct deadline *deadline)
{
    struct offset_lookup *lookup = CONTAINER_OF(deadline, struct offset_lookup, deadline);
    lookup_unpark(context, lookup);
    lookup_run(lookup);
}

void broker_lookup_offset(struct broker *broker, struct offset_lookup *lookup)
{
    lookup->offset = lookup->found_timestamp_ms = -1;
    lookup->leader_epoch = -1;
    lookup->below_epoch_start = false;
    lookup->deadline = (struct deadline){0};
    enum status status = partition_check_read(lookup->partition, lookup->current_epoch);
    if (status != STATUS_OK) {
        lookup_finish(lookup, status);
    } else if (must_wait(lookup)) {
        DL_APPEND(broker->lookups, lookup);
        deadlines_add(&broker->deadlines, &lookup->deadline,
                      loop_now_us(broker->loop) + NOT_YET_WAIT_US, lookup_expired);
    } else {
        lookup_run(lookup);
    }
}

void offset_lookup_wake(struct partition *partition)
{
    struct broker *broker = partition->broker;
    for (struct offset_lookup *lookup = broker->lookups; lookup != NULL;) {
        enum status status = STATUS_OK;
        if (lookup->partition == partition) {
            status = partition_check_read(partition, lookup->current_epoch);
        }
        if (lookup->partition != partition || (status == STATUS_OK && must_wait(lookup))) {
            lookup = lookup->next;
            continue;
        }
        lookup_unpark(broker, lookup);
        if (status != STATUS_OK) {
            lookup_finish(lookup, status);
        } else {
            lookup_run(lookup);
        }
        lookup = broker->lookups; /* the answer may have changed the list */
    }
}

void offset_lookup_fail_all(struct broker *broker)
{
    while (broker->lookups != NULL) {
        struct offset_lookup *lookup = broker->lookups;
        lookup_unpark(broker, lookup);
        lookup_finish(lookup, STATUS_NOT_LEADER);
    }
}

/* ---- epochs ---- */

enum status broker_epoch_end(struct broker *broker, struct partition *partition,
                             int32_t current_epoch, int32_t asked_epoch, int32_t *epoch,
                             int64_t *end_offset)
{
    (void)broker;
    *epoch = -1;
    *end_offset = -1;
    enum status status = partition_check_read(partition, current_epoch);
    if (status != STATUS_OK) return status;
    const struct epoch_history *epochs = partition_log_epochs(partition->log);
    if (asked_epoch < 0 || asked_epoch > epoch_history_latest(epochs)) return STATUS_OK;
    struct epoch_end end = epoch_history_end_of(epochs, asked_epoch, partition_log_end(partition));
    *epoch = end.epoch;
    *end_offset = end.end_offset;
    return STATUS_OK;
}
