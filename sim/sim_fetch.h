/* sim_fetch.h: what a virtual consumer asks of one partition, a fetch or where an offset is, and
 * what a fetch brought: batch by batch, record by record.
 *
 * sim_fetch_serve() runs inside the process (sim_client.h), the rest outside, once the call ended.
 * What is judged here is what no reader may be given: bytes that are no batch (I1). */
#ifndef MOONMQ_SIM_SIM_FETCH_H
#define MOONMQ_SIM_SIM_FETCH_H

#include "broker/fetch.h"
#include "record/batch.h"
#include "sim/workload.h"

/* The first member of each kind of reader's call. */
struct sim_fetch {
    struct sim_call base;
    struct sim_workload *workload;
    const struct sim_topic *topic;
    uint32_t partition;
    int32_t known_epoch;
    bool looks_up;        /* an offset, by timestamp; else it fetches */
    int64_t timestamp_ms; /* -1: the end; -2: the start */
    int64_t position;     /* to fetch from */
    uint32_t bytes_max;   /* of the fetch */
    int64_t max_wait_us;  /* … unless the workload drains: then not at all */
    bool read_committed;
    /* answer */
    int64_t looked_up;
    int64_t high_watermark, last_stable_offset, log_start, log_end;
    uint8_t *data; /* whole batches */
    size_t bytes;
    struct aborted_transaction *aborted;
    uint32_t aborted_count;
};

/* For sim_call_new(). */
void sim_fetch_serve(struct sim_call *call);
/* Last thing of what the call leads to. */
void sim_fetch_release(struct sim_fetch *fetch);

/* In order; stops at bytes that are no batch. */
typedef void (*sim_fetch_batch_fn)(struct sim_fetch *fetch, const uint8_t *data,
                                   const struct batch_header *header);
void sim_fetch_each_batch(struct sim_fetch *fetch, sim_fetch_batch_fn each);
typedef void (*sim_fetch_record_fn)(struct sim_fetch *fetch, const struct record *record);
void sim_fetch_each_record(struct sim_fetch *fetch, const uint8_t *data,
                           const struct batch_header *header, sim_fetch_record_fn each);

#endif
