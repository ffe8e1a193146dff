/* transaction_end.c: the end of a transaction that was decided: its markers, then Complete*.
 *
 * Nothing is decided here: Prepare* is on record and replicated, so every leader writes the same
 * markers, as often as it takes (I16). A partition that is gone, or that knows a later epoch of the
 * producer, needs none. Complete* follows when each marker is below its high watermark: were it
 * first, a failover could forget a marker for good.                                           */
#include <stdlib.h>

#include "base/failpoint.h"
#include "base/memory.h"
#include "broker/transactions_state.h"

#define MARKER_LOG_US 1000000

static struct partition *find_partition(struct broker *broker,
                                        const struct transaction_partition *at)
{
    const struct topic *topic = catalog_find(broker, (const char *)at->topic.data, at->topic.bytes);
    bool there =
        topic != NULL && at->partition >= 0 && (uint32_t)at->partition < topic->partition_count;
    return there ? topic->partitions[at->partition] : NULL;
}

/* Its outcome is final for this partition. */
static bool is_settled(const struct partition_marker *marker)
{
    return marker->status == STATUS_OK || marker->status == STATUS_UNKNOWN_TOPIC ||
           marker->status == STATUS_STALE_PRODUCER_EPOCH;
}

static void marker_done(void *context, struct partition_marker *marker)
{
    struct live_transaction *live = context;
    struct broker *broker = live->broker;
    live->markers_open--;
    if (is_settled(marker)) {
        (void)FAILPOINT("transaction.marker");
    } else if (marker->status != STATUS_NOT_LEADER) {
        log_limited(&broker->transactions->marker_limiter, loop_now_us(broker->loop), MARKER_LOG_US,
                    LOG_WARN, "marker_not_written transaction=\"%.*s\" reason=\"%s\"",
                    (int)live->id.bytes, (const char *)live->id.data, marker->error.text);
    }
    live_run(live);
}

static void prepare_markers(struct live_transaction *live, const struct transaction_value *value)
{
    const struct transaction_partitions *partitions = &value->partitions;
    live->markers = memory_new(((size_t)partitions->count + 1) * sizeof(*live->markers));
    live->marker_count = 0;
    for (uint32_t i = 0; i < partitions->count; i++) {
        struct partition *partition = find_partition(live->broker, &partitions->items[i]);
        if (partition == NULL) continue;
        live->markers[live->marker_count++] = (struct partition_marker){
            .partition = partition,
            .producer_id = value->producer_id,
            .producer_epoch = value->producer_epoch,
            .coordinator_epoch = live->broker->leading_epoch,
            .commit = value->status == TRANSACTION_PREPARE_COMMIT,
            .transaction_v2 = value->client_version >= 2,
            .done = marker_done,
            .context = live,
        };
    }
}

static void send_markers(struct live_transaction *live)
{
    live->ending = true;
    live->markers_open = live->marker_count;
    for (uint32_t i = 0; i < live->marker_count; i++)
        partition_write_marker(&live->markers[i]);
}

static bool all_settled(const struct live_transaction *live)
{
    for (uint32_t i = 0; i < live->marker_count; i++) {
        if (!is_settled(&live->markers[i])) return false;
    }
    return true;
}

void live_end_forget(struct live_transaction *live)
{
    ASSERT(live->markers_open == 0);
    free(live->markers);
    live->markers = NULL;
    live->marker_count = 0;
    live->ending = false;
}

bool live_end(struct live_transaction *live, const struct transaction_value *value)
{
    if (live->markers_open > 0 || live->retry.slot != 0) return false;
    if (!live->ending) {
        (void)FAILPOINT("transaction.prepared");
        prepare_markers(live, value);
        send_markers(live);
        return true;
    }
    if (!all_settled(live)) {
        /* All of them again, later, where they are by then: one that is there is not repeated. */
        live_end_forget(live);
        live_retry_later(live);
        return true;
    }
    (void)FAILPOINT("transaction.complete");
    live_write_complete(live, value);
    return true;
}
