/* recompression.c: batches that a topic stores by another codec than their producer's
 * (`compression.type`), on their way from the check at arrival to the append.
 *
 * The work is a worker's. A partition's batches leave in the order in which they came: what needs
 * no work waits behind what does, and partitions do not wait for each other. Broker-wide they are
 * bounded like the backlog, and each waits no longer than its own time-out. A batch whose producer
 * waits no longer counts until its worker let go of it, or time-outs would be a way past the bound;
 * work that has not begun then is skipped. End markers and the internal topics' batches pass by:
 * theirs are never compressed. Thread: loop, but for recompress_run().                          */
#include <stdatomic.h>
#include <stdlib.h>
#include <utlist.h>

#include "base/assert.h"
#include "base/memory.h"
#include "broker/parked.h"
#include "record/batch_recompress.h"

#define RECOMPRESSIONS_MAX 65536

struct recompression {
    struct broker_job job;
    struct produce *produce; /* NULL: nobody waits for it any more */
    atomic_bool unwanted;    /* the same, for the worker */
    struct shared_bytes *batch;
    struct batch_compression compression;
    struct batch_limits limits;
    /* out */
    struct shared_bytes *result;
    struct batch_fault fault;
    enum status status;
    struct error error;
};

/* ---- the list of a partition ---- */

static void list_produce(struct broker *broker, struct produce *produce)
{
    struct partition *partition = produce->partition;
    if (partition->recompressing == NULL) {
        DL_APPEND2(broker->recompressing, partition, recompressing_prev, recompressing_next);
    }
    DL_APPEND(partition->recompressing, produce);
    produce->parked_on = &partition->recompressing;
    broker->recompressing_count++;
    broker->recompressing_bytes += produce->batch->bytes;
    broker->stats.produce_parked++;
}

static void discount(struct broker *broker, size_t bytes)
{
    ASSERT(broker->recompressing_count > 0 && broker->recompressing_bytes >= bytes);
    broker->recompressing_count--;
    broker->recompressing_bytes -= bytes;
}

static void unlist_produce(struct broker *broker, struct produce *produce)
{
    struct partition *partition = produce->partition;
    DL_DELETE(partition->recompressing, produce);
    if (partition->recompressing == NULL) {
        DL_DELETE2(broker->recompressing, partition, recompressing_prev, recompressing_next);
    }
    produce->parked_on = NULL;
    broker->stats.produce_parked--;
    deadlines_remove(&broker->deadlines, &produce->deadline);
    if (produce->recompression == NULL) {
        discount(broker, produce->batch->bytes);
        return;
    }
    produce->recompression->produce = NULL; /* recompress_done() discounts it */
    atomic_store_explicit(&produce->recompression->unwanted, true, memory_order_relaxed);
    produce->recompression = NULL;
}

/* Those at the head whose work is done go on. An answer may bring new ones, or end this. */
static void partition_go_on(struct broker *broker, struct partition *partition)
{
    struct produce *produce;
    while ((produce = partition->recompressing) != NULL && produce->recompression == NULL) {
        unlist_produce(broker, produce);
        if (produce->status != STATUS_OK) {
            produce_refuse(produce, produce->status);
        } else {
            produce_resume(broker, produce);
        }
    }
}

static void go_on(void *context)
{
    struct broker *broker = context;
    struct partition *partition, *next;
    DL_FOREACH_SAFE2(broker->recompressing, partition, next, recompressing_next)
    {
        if (partition->recompressing->recompression != NULL) continue;
        partition_go_on(broker, partition);
        /* The list may be another one now. */
        timer_start(broker->recompression_timer, 0);
        return;
    }
}

/* After the current callback: in it somebody may be going through what waits. */
static void go_on_soon(struct broker *broker)
{
    if (broker->recompressing == NULL) return;
    if (broker->recompression_timer == NULL) {
        broker->recompression_timer = timer_new(broker->loop, go_on, broker);
    }
    timer_start(broker->recompression_timer, 0);
}

static void give_up(struct broker *broker, struct produce *produce, enum status status,
                    const char *text)
{
    unlist_produce(broker, produce);
    error_set(&produce->error, status, "%s", text);
    produce_finish(produce, status);
}

static void waited_too_long(void *context, struct deadline *deadline)
{
    struct produce *produce = CONTAINER_OF(deadline, struct produce, deadline);
    give_up(context, produce, STATUS_TIMEOUT, "the batch was not recompressed in time");
    go_on_soon(context);
}

/* ---- the work ---- */

static void recompress_run(struct broker_job *job)
{
    struct recompression *work = CONTAINER_OF(job, struct recompression, job);
    struct buffer out;
    if (atomic_load_explicit(&work->unwanted, memory_order_relaxed)) return;
    buffer_init(&out, 0);
    work->status = batch_recompress(work->batch->data, work->batch->bytes, &work->compression,
                                    &work->limits, &out, &work->fault, &work->error);
    if (work->status == STATUS_OK) {
        work->result = shared_bytes_copy(out.data, out.bytes);
        if (work->result == NULL) {
            work->status = error_set(&work->error, STATUS_NO_MEMORY, "no memory for a batch");
        }
    }
    buffer_deinit(&out);
}

static void recompression_dispose(struct broker_job *job)
{
    struct recompression *work = CONTAINER_OF(job, struct recompression, job);
    if (work->produce != NULL) work->produce->recompression = NULL;
    shared_bytes_unref(work->batch);
    shared_bytes_unref(work->result);
    free(work);
}

/* The batch as it is now is looked at again: it may have grown. */
static enum status check_result(struct produce *produce, const struct batch_limits *limits,
                                size_t bytes)
{
    if (bytes > limits->batch_bytes_max) {
        return error_set(&produce->error, STATUS_TOO_LARGE,
                         "recompressed to %zu bytes, max.message.bytes is %u", bytes,
                         limits->batch_bytes_max);
    }
    return produce_check_segment(produce, bytes);
}

/* What came of it, into the produce; it is told at its turn. */
static void take_result(struct broker *broker, struct recompression *work)
{
    struct produce *produce = work->produce;
    if (work->status == STATUS_OK) {
        work->status = check_result(produce, &work->limits, work->result->bytes);
    } else {
        produce->error = work->error;
        produce->fault_record = work->fault.record_index;
    }
    if (work->status == STATUS_OK) {
        broker->stats.recompressed_batches++;
        broker->recompressing_bytes -= produce->batch->bytes;
        broker->recompressing_bytes += work->result->bytes;
        shared_bytes_unref(produce->batch);
        produce->batch = work->result;
        work->result = NULL;
        return;
    }
    struct batch_header header;
    bool idempotent = batch_parse(produce->batch->data, produce->batch->bytes, true, &header,
                                  NULL) == STATUS_OK &&
                      header.producer_id >= 0;
    produce->mistimed = work->status == STATUS_INVALID_TIMESTAMP && idempotent;
    produce->status = produce->mistimed ? STATUS_OK : work->status;
}

static void recompress_done(struct broker_job *job)
{
    struct recompression *work = CONTAINER_OF(job, struct recompression, job);
    struct broker *broker = job->broker;
    struct produce *produce = work->produce;
    struct partition *partition = produce != NULL ? produce->partition : NULL;
    if (produce != NULL) {
        take_result(broker, work);
    } else {
        discount(broker, work->batch->bytes);
    }
    recompression_dispose(job);
    if (partition != NULL) partition_go_on(broker, partition);
}

static void recompress(struct broker *broker, struct produce *produce)
{
    struct recompression *work = memory_new(sizeof(*work));
    work->job.run = recompress_run;
    work->job.done = recompress_done;
    work->job.dispose = recompression_dispose;
    work->produce = produce;
    work->batch = shared_bytes_ref(produce->batch);
    work->compression = produce->partition->topic->settings.compression;
    work->limits = produce_limits(broker, produce);
    produce->recompression = work;
    broker_job_submit(broker, EXECUTOR_LANE_COMPUTE, &work->job);
}

/* ---- in, and out before its turn ---- */

bool recompression_hold(struct broker *broker, struct produce *produce,
                        const struct batch_header *header)
{
    const struct partition *partition = produce->partition;
    const struct topic_settings *settings = &partition->topic->settings;
    if (produce->marker != NULL || partition->topic->internal) return false;
    enum batch_codec codec = header->attributes & BATCH_CODEC_MASK;
    bool wanted =
        settings->recompress && codec != settings->compression.codec && !produce->mistimed;
    if (!wanted && partition->recompressing == NULL) return false;
    size_t bytes_max = broker->settings.unsynced_bytes_max;
    if (broker->recompressing_count >= RECOMPRESSIONS_MAX ||
        (broker->recompressing_count > 0 &&
         broker->recompressing_bytes + produce->batch->bytes > bytes_max)) {
        produce_refuse(produce, error_set(&produce->error, STATUS_LIMIT,
                                          "too many bytes wait to be recompressed"));
        return true;
    }
    list_produce(broker, produce);
    deadlines_add(&broker->deadlines, &produce->deadline, produce->until_us, waited_too_long);
    if (wanted) recompress(broker, produce);
    return true;
}

void recompression_let_go(struct broker *broker, struct produce *produce)
{
    unlist_produce(broker, produce);
    go_on_soon(broker);
}

void recompression_partition_gone(struct partition *partition, enum status status, const char *text)
{
    while (partition->recompressing != NULL)
        give_up(partition->broker, partition->recompressing, status, text);
}

void recompression_fail_all(struct broker *broker, enum status status)
{
    while (broker->recompressing != NULL)
        recompression_partition_gone(broker->recompressing, status, status_text(status));
}
