#include "sim/sim_fetch.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

#define DECOMPRESSED_MAX (16u << 20)

struct fetch_at_node {
    struct fetch fetch;
    struct fetch_partition partition;
    struct offset_lookup lookup;
    struct sim_fetch *asked;
};

/* Inside the process. */

static void take_data(struct sim_fetch *asked, const struct fetch_partition *partition)
{
    asked->data = sim_alloc(partition->read.bytes);
    for (uint32_t i = 0; i < partition->read.piece_count; i++) {
        const struct log_piece *piece = &partition->read.pieces[i];
        memcpy(asked->data + asked->bytes, piece->shared->data + piece->at, piece->bytes);
        asked->bytes += piece->bytes;
    }
    if (partition->aborted_count == 0) return;
    asked->aborted_count = partition->aborted_count;
    asked->aborted = sim_alloc(partition->aborted_count * sizeof(asked->aborted[0]));
    memcpy(asked->aborted, partition->aborted,
           partition->aborted_count * sizeof(asked->aborted[0]));
}

static void fetch_done(void *context, struct fetch *fetch)
{
    struct fetch_at_node *at_node = context;
    struct sim_fetch *asked = at_node->asked;
    const struct fetch_partition *partition = &at_node->partition;
    asked->base.status = partition->status;
    if (fetch->leadership_lost && asked->base.status == STATUS_OK)
        asked->base.status = STATUS_NOT_LEADER;
    asked->high_watermark = partition->high_watermark;
    asked->last_stable_offset = partition->last_stable_offset;
    asked->log_start = partition_log_start(partition->partition);
    asked->log_end = partition_log_end(partition->partition);
    if (asked->base.status == STATUS_OK && partition->read.bytes > 0) take_data(asked, partition);
    fetch_release(fetch);
    sim_call_done(&asked->base);
    free(at_node);
}

static void lookup_done(void *context, struct offset_lookup *lookup)
{
    struct fetch_at_node *at_node = context;
    struct sim_fetch *asked = at_node->asked;
    asked->base.status = lookup->status;
    asked->looked_up = lookup->offset;
    sim_call_done(&asked->base);
    free(at_node);
}

static void begin_lookup(struct broker *broker, struct fetch_at_node *at_node,
                         struct partition *partition)
{
    at_node->lookup = (struct offset_lookup){.partition = partition,
                                             .timestamp_ms = at_node->asked->timestamp_ms,
                                             .current_epoch = at_node->asked->known_epoch,
                                             .done = lookup_done,
                                             .context = at_node};
    broker_lookup_offset(broker, &at_node->lookup);
}

static void begin_fetch(struct broker *broker, struct fetch_at_node *at_node,
                        struct partition *partition)
{
    const struct sim_fetch *asked = at_node->asked;
    at_node->partition = (struct fetch_partition){.partition = partition,
                                                  .offset = asked->position,
                                                  .bytes_max = asked->bytes_max,
                                                  .current_epoch = asked->known_epoch,
                                                  .last_fetched_epoch = -1};
    at_node->fetch =
        (struct fetch){.partitions = &at_node->partition,
                       .partition_count = 1,
                       .max_wait_us = asked->workload->draining ? 0 : asked->max_wait_us,
                       .bytes_min = 1,
                       .bytes_max = asked->bytes_max,
                       .read_committed = asked->read_committed,
                       .done = fetch_done,
                       .context = at_node};
    broker_fetch(broker, &at_node->fetch);
}

void sim_fetch_serve(struct sim_call *call)
{
    struct sim_fetch *asked = (struct sim_fetch *)call;
    struct broker *broker = call->node->broker;
    struct partition *partition = NULL;
    call->status = broker_check_serving(broker);
    if (call->status == STATUS_OK)
        partition = sim_workload_partition(asked->workload, call->node, asked->topic,
                                           asked->partition, &call->status);
    if (partition == NULL) {
        sim_call_done(call);
        return;
    }
    struct fetch_at_node *at_node = calloc(1, sizeof(*at_node));
    ASSERT(at_node != NULL);
    at_node->asked = asked;
    if (asked->looks_up)
        begin_lookup(broker, at_node, partition);
    else
        begin_fetch(broker, at_node, partition);
}

/* Outside. */

void sim_fetch_release(struct sim_fetch *fetch)
{
    sim_release(fetch->data);
    sim_release(fetch->aborted);
    fetch->data = NULL;
    fetch->aborted = NULL;
    fetch->bytes = 0;
    fetch->aborted_count = 0;
}

void sim_fetch_each_batch(struct sim_fetch *fetch, sim_fetch_batch_fn each)
{
    for (size_t at = 0; at < fetch->bytes;) {
        struct batch_header header;
        struct error error;
        if (batch_parse(fetch->data + at, fetch->bytes - at, true, &header, &error) != STATUS_OK ||
            !batch_crc_matches(fetch->data + at, &header)) {
            sim_verdict_fail(fetch->workload->verdict, "I1",
                             "a consumer of %s/%u was given bytes that are no batch",
                             fetch->topic->name, fetch->partition);
            return;
        }
        each(fetch, fetch->data + at, &header);
        at += header.batch_bytes;
    }
}

void sim_fetch_each_record(struct sim_fetch *fetch, const uint8_t *data,
                           const struct batch_header *header, sim_fetch_record_fn each)
{
    struct record_iterator iterator;
    struct record record;
    struct error error;
    if (record_iterator_init(&iterator, data, header->batch_bytes, DECOMPRESSED_MAX, &error) !=
        STATUS_OK) {
        sim_verdict_fail(fetch->workload->verdict, "I1",
                         "%s/%u: a consumer was given a bad batch: %s", fetch->topic->name,
                         fetch->partition, error.text);
        return;
    }
    while (record_iterator_next(&iterator, &record, &error) == STATUS_OK)
        each(fetch, &record);
    record_iterator_deinit(&iterator);
}
