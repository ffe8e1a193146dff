/* marker.c: the end of a producer's transaction, written into a partition (kafka-listener.md 8.2).
 *
 * A marker goes the way of every batch, behind those that came before it: through pauses and the
 * backlog into the log, then parked until the high watermark has passed it. But the
 * coordinator's has no time-out, and too few replicas in sync make it wait, not fail: the
 * transaction's outcome is decided, and only who leads can change who writes it.  Thread: loop. */
#include <stdlib.h>
#include <utlist.h>

#include "base/memory.h"
#include "broker/parked.h"

struct marker_write {
    struct produce produce;
    struct partition_marker *marker;
    struct marker_write *next, *prev; /* in broker->marker_writes */
};

static void marker_finish(struct partition_marker *marker, enum status status)
{
    marker->status = status;
    marker->private_state = NULL;
    marker->done(marker->context, marker);
}

static void marker_written(void *context, struct produce *produce)
{
    struct marker_write *write = context;
    struct partition_marker *marker = write->marker;
    enum status status = produce->status;
    marker->error = produce->error;
    DL_DELETE(marker->partition->broker->marker_writes, write);
    free(write);
    marker_finish(marker, status);
}

static struct shared_bytes *marker_batch(const struct partition_marker *marker, int64_t now_ms)
{
    struct buffer bytes;
    buffer_init(&bytes, 0);
    batch_build_marker(&bytes, marker->producer_id, marker->producer_epoch, marker->commit,
                       marker->coordinator_epoch, now_ms, -1);
    struct shared_bytes *batch =
        buffer_failed(&bytes) ? NULL : shared_bytes_copy(bytes.data, bytes.bytes);
    buffer_deinit(&bytes);
    return batch;
}

void partition_write_marker(struct partition_marker *marker)
{
    struct broker *broker = marker->partition->broker;
    marker->status = STATUS_OK;
    marker->error = (struct error){0};
    struct shared_bytes *batch = marker_batch(marker, loop_wall_ms(broker->loop));
    if (batch == NULL) {
        marker_finish(marker, error_set(&marker->error, STATUS_NO_MEMORY, "out of memory"));
        return;
    }
    struct marker_write *write = memory_new(sizeof(*write));
    write->marker = marker;
    marker->private_state = write;
    DL_APPEND(broker->marker_writes, write);
    write->produce = (struct produce){
        .partition = marker->partition,
        .batch = batch,
        .acks = ACKS_ALL,
        .internal = true,
        .marker = marker,
        .done = marker_written,
        .context = write,
    };
    broker_produce(broker, &write->produce);
}

void marker_writes_free(struct broker *broker)
{
    struct marker_write *write, *next;
    DL_FOREACH_SAFE(broker->marker_writes, write, next)
    {
        DL_DELETE(broker->marker_writes, write);
        shared_bytes_unref(write->produce.batch);
        free(write);
    }
}
