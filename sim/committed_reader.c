/* committed_reader.c: a virtual consumer that reads all that was committed in the topics of the
 * payers, and nothing else (read_committed): what the broker gives it of open transactions, it
 * does not get; what it is given of aborted ones, it drops, as the list of these says.          */
#include <stdio.h>

#include "base/assert.h"
#include "sim/history_transactions.h"
#include "sim/sim_fetch.h"

#define TIMEOUT_US     3000000
#define MAX_WAIT_US    400000
#define BYTES_MAX      (64 * 1024)
#define RETRY_US       40000
#define POLL_US        5000
#define PARTITIONS_MAX (SIM_PAY_TOPICS * SIM_PARTITIONS_MAX)

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
    struct sim_fetch fetch;
    struct sim_committed_reader *reader;
    struct read_log *log;
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

/* Was the transaction that the batch is part of aborted, as the answer's list has it? */
static bool is_aborted(const struct sim_fetch *fetch, const struct batch_header *header)
{
    for (uint32_t i = 0; i < fetch->aborted_count; i++) {
        const struct aborted_transaction *aborted = &fetch->aborted[i];
        if (aborted->producer_id == header->producer_id &&
            aborted->first_offset <= header->base_offset &&
            header->base_offset < aborted->marker_offset)
            return true;
    }
    return false;
}

static void deliver(struct sim_fetch *fetch, const struct record *record)
{
    const struct committed_call *call = (struct committed_call *)fetch;
    if (record->offset < call->log->position) return;
    history_read_committed(&fetch->workload->history, call->reader->reader, call->log->log,
                           record->offset, record->value);
}

static void take_batch(struct sim_fetch *fetch, const uint8_t *data,
                       const struct batch_header *header)
{
    struct sim_verdict *verdict = fetch->workload->verdict;
    struct read_log *log = ((struct committed_call *)fetch)->log;
    int64_t last = batch_last_offset(header);
    if (header->base_offset > log->position)
        sim_verdict_fail(verdict, "I4", "%s/%u: a committed poll skipped from %lld to %lld",
                         log->topic->name, log->partition, (long long)log->position,
                         (long long)header->base_offset);
    if (last >= fetch->last_stable_offset || fetch->last_stable_offset > fetch->high_watermark)
        sim_verdict_fail(verdict, "I16",
                         "%s/%u: offset %lld was given to a committed reader; last stable offset "
                         "%lld, high watermark %lld",
                         log->topic->name, log->partition, (long long)last,
                         (long long)fetch->last_stable_offset, (long long)fetch->high_watermark);
    bool transactional = (header->attributes & BATCH_TRANSACTIONAL) != 0;
    if ((header->attributes & BATCH_CONTROL) == 0 && !(transactional && is_aborted(fetch, header)))
        sim_fetch_each_record(fetch, data, header, deliver);
    if (last >= log->position) log->position = last + 1;
}

static void judge_answer(struct committed_call *call)
{
    struct sim_fetch *fetch = &call->fetch;
    if (fetch->base.status == STATUS_OUT_OF_RANGE)
        sim_verdict_fail(fetch->workload->verdict, "I4",
                         "%s/%u: position %lld of a committed reader is out of range",
                         fetch->topic->name, fetch->partition, (long long)fetch->position);
    if (fetch->base.status != STATUS_OK) return;
    sim_world_trace(fetch->workload->world, NULL,
                    "committed reader of %s/%u at %lld: %zu bytes, %lld..%lld", fetch->topic->name,
                    fetch->partition, (long long)fetch->position, fetch->bytes,
                    (long long)fetch->last_stable_offset, (long long)fetch->high_watermark);
    /* Two answers to one position are taken once. */
    if (fetch->position == call->log->position) sim_fetch_each_batch(fetch, take_batch);
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
    if (answered) judge_answer(call);
    sim_fetch_release(&call->fetch);
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
    struct committed_call *call = sim_call_new(&workload->clients, sizeof(*call), reader->client,
                                               sim_fetch_serve, fetch_ended);
    call->reader = reader;
    call->log = log;
    struct sim_fetch *fetch = &call->fetch;
    fetch->workload = workload;
    fetch->topic = log->topic;
    fetch->partition = log->partition;
    fetch->known_epoch = reader->guess.epoch;
    fetch->position = log->position;
    fetch->bytes_max = BYTES_MAX;
    fetch->max_wait_us = MAX_WAIT_US;
    fetch->read_committed = true;
    reader->asking = true;
    sim_workload_count(workload, SIM_REQUEST_FETCH_STABLE);
    sim_call_send(&fetch->base, reader->guess.node, TIMEOUT_US);
}
