/* committed_reader.c: a virtual consumer that reads all that was committed in the topics of the
 * payers, and nothing else (read_committed): what the broker gives it of open transactions, it
 * does not get; what it is given of aborted ones, it drops, as the list of these says.          */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "broker/fetch.h"
#include "record/batch.h"
#include "sim/history_transactions.h"
#include "sim/workload.h"

#define TIMEOUT_US       3000000
#define MAX_WAIT_US      400000
#define BYTES_MAX        (64 * 1024)
#define RETRY_US         40000
#define POLL_US          5000
#define DECOMPRESSED_MAX (1u << 20)
#define PARTITIONS_MAX   (SIM_PAY_TOPICS * SIM_PARTITIONS_MAX)

struct read_log {
    const struct sim_topic *topic;
    uint32_t partition, log;
    int64_t position;
};

struct sim_committed_reader {
    struct sim_workload *workload;
    int client, reader;
    struct sim_leader_guess guess;
    struct sim_event wake;
    struct read_log logs[PARTITIONS_MAX];
    int log_count, next;
    bool asking;
};

struct committed_call {
    struct sim_call base;
    struct sim_committed_reader *reader;
    struct read_log *log;
    int64_t position;
    int32_t known_epoch;
    /* answer */
    int64_t high_watermark, last_stable_offset;
    uint8_t *data; /* whole batches */
    size_t bytes;
    struct aborted_transaction *aborted;
    uint32_t aborted_count;
};

struct committed_at_node {
    struct fetch fetch;
    struct fetch_partition partition;
    struct committed_call *call;
};

static void reader_wake(struct sim_event *event);

struct sim_committed_reader *sim_committed_reader_new(struct sim_workload *workload, int client)
{
    struct sim_committed_reader *reader = sim_alloc(sizeof(*reader));
    reader->workload = workload;
    reader->client = client;
    reader->reader = history_add_reader(&workload->history);
    reader->guess.epoch = -1;
    sim_event_init(&reader->wake, SIM_EVENT_CLIENT, NULL, reader_wake);
    reader->wake.detail = 0xf2000000u + (uint64_t)client;
    return reader;
}

void sim_committed_reader_free(struct sim_committed_reader *reader)
{
    sim_world_cancel(reader->workload->world, &reader->wake);
    sim_release(reader);
}

void sim_committed_reader_start(struct sim_committed_reader *reader)
{
    struct sim_workload *workload = reader->workload;
    for (int t = 0; t < SIM_PAY_TOPICS; t++) {
        const struct sim_topic *topic = workload->pay_topics[t];
        for (uint32_t p = 0; p < topic->partitions; p++) {
            uint32_t log =
                history_find_log(&workload->history, &topic->uid, (int32_t)p, topic->name);
            history_reader_reads(&workload->history, reader->reader, log);
            reader->logs[reader->log_count++] = (struct read_log){topic, p, log, 0};
        }
    }
    sim_world_schedule(workload->world, &reader->wake, workload->world->now_us + RETRY_US);
}

static bool has_all(const struct sim_committed_reader *reader, const struct read_log *log)
{
    return log->position >= reader->workload->history.logs[log->log].committed;
}

bool sim_committed_reader_drained(const struct sim_committed_reader *reader, char *why,
                                  size_t why_bytes)
{
    for (int i = 0; i < reader->log_count; i++) {
        const struct read_log *log = &reader->logs[i];
        if (has_all(reader, log)) continue;
        snprintf(why, why_bytes,
                 "a committed reader of %s/%u is at %lld; %lld are acknowledged or read",
                 log->topic->name, log->partition, (long long)log->position,
                 (long long)reader->workload->history.logs[log->log].committed);
        return false;
    }
    return true;
}

/* Inside the process. */

static void fetch_done(void *context, struct fetch *fetch)
{
    struct committed_at_node *at_node = context;
    struct committed_call *call = at_node->call;
    const struct fetch_partition *partition = &at_node->partition;
    call->base.status = partition->status;
    if (fetch->leadership_lost && call->base.status == STATUS_OK)
        call->base.status = STATUS_NOT_LEADER;
    call->high_watermark = partition->high_watermark;
    call->last_stable_offset = partition->last_stable_offset;
    if (call->base.status == STATUS_OK && partition->read.bytes > 0) {
        call->data = sim_alloc(partition->read.bytes);
        for (uint32_t i = 0; i < partition->read.piece_count; i++) {
            const struct log_piece *piece = &partition->read.pieces[i];
            memcpy(call->data + call->bytes, piece->shared->data + piece->at, piece->bytes);
            call->bytes += piece->bytes;
        }
        call->aborted_count = partition->aborted_count;
        call->aborted = sim_alloc((partition->aborted_count + 1u) * sizeof(call->aborted[0]));
        if (call->aborted_count > 0)
            memcpy(call->aborted, partition->aborted,
                   call->aborted_count * sizeof(call->aborted[0]));
    }
    fetch_release(fetch);
    sim_call_done(&call->base);
    free(at_node);
}

static void serve_fetch(struct sim_call *base)
{
    struct committed_call *call = (struct committed_call *)base;
    struct sim_workload *workload = call->reader->workload;
    struct broker *broker = base->node->broker;
    struct partition *partition = NULL;
    base->status = broker_check_serving(broker);
    if (base->status == STATUS_OK)
        partition = sim_workload_partition(workload, base->node, call->log->topic,
                                           call->log->partition, &base->status);
    if (partition == NULL) {
        sim_call_done(base);
        return;
    }
    struct committed_at_node *at_node = calloc(1, sizeof(*at_node));
    ASSERT(at_node != NULL);
    at_node->call = call;
    at_node->partition = (struct fetch_partition){.partition = partition,
                                                  .offset = call->position,
                                                  .bytes_max = BYTES_MAX,
                                                  .current_epoch = call->known_epoch,
                                                  .last_fetched_epoch = -1};
    at_node->fetch = (struct fetch){.partitions = &at_node->partition,
                                    .partition_count = 1,
                                    .max_wait_us = workload->draining ? 0 : MAX_WAIT_US,
                                    .bytes_min = 1,
                                    .bytes_max = BYTES_MAX,
                                    .read_committed = true,
                                    .done = fetch_done,
                                    .context = at_node};
    broker_fetch(broker, &at_node->fetch);
}

/* Outside. */

/* Was the transaction that the batch is part of aborted, as the answer's list has it? */
static bool is_aborted(const struct committed_call *call, const struct batch_header *header)
{
    for (uint32_t i = 0; i < call->aborted_count; i++) {
        const struct aborted_transaction *aborted = &call->aborted[i];
        if (aborted->producer_id == header->producer_id &&
            aborted->first_offset <= header->base_offset &&
            header->base_offset < aborted->marker_offset)
            return true;
    }
    return false;
}

static void deliver(struct committed_call *call, const uint8_t *data,
                    const struct batch_header *header)
{
    struct sim_committed_reader *reader = call->reader;
    struct record_iterator iterator;
    struct record record;
    struct error error;
    if (record_iterator_init(&iterator, data, header->batch_bytes, DECOMPRESSED_MAX, &error) !=
        STATUS_OK) {
        sim_verdict_fail(reader->workload->verdict, "I1",
                         "%s/%u: a committed reader was given a bad batch: %s",
                         call->log->topic->name, call->log->partition, error.text);
        return;
    }
    while (record_iterator_next(&iterator, &record, &error) == STATUS_OK) {
        if (record.offset < call->log->position) continue;
        history_read_committed(&reader->workload->history, reader->reader, call->log->log,
                               record.offset, record.value);
    }
    record_iterator_deinit(&iterator);
}

static void take_batch(struct committed_call *call, const uint8_t *data,
                       const struct batch_header *header)
{
    struct sim_verdict *verdict = call->reader->workload->verdict;
    struct read_log *log = call->log;
    int64_t last = batch_last_offset(header);
    if (header->base_offset > log->position)
        sim_verdict_fail(verdict, "I4", "%s/%u: a committed poll skipped from %lld to %lld",
                         log->topic->name, log->partition, (long long)log->position,
                         (long long)header->base_offset);
    if (last >= call->last_stable_offset || call->last_stable_offset > call->high_watermark)
        sim_verdict_fail(verdict, "I16",
                         "%s/%u: offset %lld was given to a committed reader; last stable offset "
                         "%lld, high watermark %lld",
                         log->topic->name, log->partition, (long long)last,
                         (long long)call->last_stable_offset, (long long)call->high_watermark);
    bool transactional = (header->attributes & BATCH_TRANSACTIONAL) != 0;
    if ((header->attributes & BATCH_CONTROL) == 0 && !(transactional && is_aborted(call, header)))
        deliver(call, data, header);
    if (last >= log->position) log->position = last + 1;
}

static void take_data(struct committed_call *call)
{
    if (call->position != call->log->position) return; /* two answers to one position */
    for (size_t at = 0; at < call->bytes;) {
        struct batch_header header;
        struct error error;
        if (batch_parse(call->data + at, call->bytes - at, true, &header, &error) != STATUS_OK ||
            !batch_crc_matches(call->data + at, &header)) {
            sim_verdict_fail(call->reader->workload->verdict, "I1",
                             "a committed reader of %s was given bytes that are no batch",
                             call->log->topic->name);
            return;
        }
        take_batch(call, call->data + at, &header);
        at += header.batch_bytes;
    }
}

static void fetch_ended(struct sim_call *base, enum sim_call_end end)
{
    struct committed_call *call = (struct committed_call *)base;
    struct sim_committed_reader *reader = call->reader;
    struct sim_world *world = reader->workload->world;
    bool answered = end == SIM_CALL_ANSWERED;
    bool ok = answered && base->status == STATUS_OK;
    sim_leader_guess_learn(&reader->guess, base, end,
                           answered && sim_status_redirects(base->status));
    if (answered && base->status == STATUS_OUT_OF_RANGE)
        sim_verdict_fail(reader->workload->verdict, "I4",
                         "%s/%u: position %lld of a committed reader is out of range",
                         call->log->topic->name, call->log->partition, (long long)call->position);
    if (ok)
        sim_world_trace(world, NULL, "committed reader of %s/%u at %lld: %zu bytes, %lld..%lld",
                        call->log->topic->name, call->log->partition, (long long)call->position,
                        call->bytes, (long long)call->last_stable_offset,
                        (long long)call->high_watermark);
    if (ok) take_data(call);
    sim_release(call->data);
    sim_release(call->aborted);
    reader->asking = false;
    sim_world_schedule(world, &reader->wake, world->now_us + (ok ? POLL_US : RETRY_US));
}

/* In turn; once nothing new comes, those that are read to the end are left out. */
static struct read_log *next_log(struct sim_committed_reader *reader)
{
    struct read_log *log = NULL;
    for (int i = 0; i < reader->log_count; i++) {
        log = &reader->logs[reader->next];
        reader->next = (reader->next + 1) % reader->log_count;
        if (!reader->workload->draining || !has_all(reader, log)) break;
    }
    return log;
}

static void reader_wake(struct sim_event *event)
{
    struct sim_committed_reader *reader = CONTAINER_OF(event, struct sim_committed_reader, wake);
    struct sim_workload *workload = reader->workload;
    if (reader->asking) return;
    struct read_log *log = next_log(reader);
    if (!workload->draining && random_below(&workload->domain_random, 500) == 0) log->position = 0;
    struct committed_call *call =
        sim_call_new(&workload->clients, sizeof(*call), reader->client, serve_fetch, fetch_ended);
    call->reader = reader;
    call->log = log;
    call->position = log->position;
    call->known_epoch = reader->guess.epoch;
    reader->asking = true;
    sim_workload_count(workload, SIM_REQUEST_FETCH_STABLE);
    sim_call_send(&call->base, reader->guess.node, TIMEOUT_US);
}
