/* consumer.c: a virtual consumer that reads every partition of every data topic, position by
 * position, from the start; now and then it asks where the log ends, or begins anew.            */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "broker/fetch.h"
#include "record/batch.h"
#include "sim/workload.h"

#define TIMEOUT_US       3000000
#define MAX_WAIT_US      400000
#define BYTES_MAX        (256 * 1024)
#define RETRY_US         40000
#define POLL_US          5000
#define DECOMPRESSED_MAX (16u << 20)
#define PARTITIONS_MAX   (SIM_DATA_TOPICS_MAX * SIM_PARTITIONS_MAX)

struct consumed {
    int topic;
    uint32_t partition;
    uint32_t log;
    int64_t position;
    int64_t known_end; /* one past the highest offset this client was given or told */
};

struct sim_consumer {
    struct sim_workload *workload;
    int client;
    struct sim_leader_guess guess;
    struct sim_event wake;
    struct consumed partitions[PARTITIONS_MAX];
    int partition_count, next;
    bool asking;
};

struct fetch_call {
    struct sim_call base;
    struct sim_consumer *consumer;
    struct consumed *consumed;
    int64_t position, known_end;
    int32_t known_epoch;
    bool lists; /* LIST_OFFSETS -1 instead */
    /* answer */
    int64_t high_watermark, log_start, log_end, listed;
    uint8_t *data; /* whole batches */
    size_t bytes;
};

struct fetch_at_node {
    struct fetch fetch;
    struct fetch_partition partition;
    struct fetch_call *call;
};

struct lookup_at_node {
    struct offset_lookup lookup;
    struct fetch_call *call;
};

static void consumer_wake(struct sim_event *event);

struct sim_consumer *sim_consumer_new(struct sim_workload *workload, int client)
{
    struct sim_consumer *consumer = sim_alloc(sizeof(*consumer));
    consumer->workload = workload;
    consumer->client = client;
    consumer->guess.epoch = -1;
    sim_event_init(&consumer->wake, SIM_EVENT_CLIENT, NULL, consumer_wake);
    consumer->wake.detail = 0xb0000000u + (uint64_t)client;
    return consumer;
}

void sim_consumer_free(struct sim_consumer *consumer)
{
    sim_world_cancel(consumer->workload->world, &consumer->wake);
    sim_release(consumer);
}

void sim_consumer_start(struct sim_consumer *consumer)
{
    struct sim_workload *workload = consumer->workload;
    for (int t = 0; t < workload->options.data_topics; t++) {
        const struct sim_topic *topic = &workload->topics[t];
        for (uint32_t p = 0; p < topic->partitions; p++) {
            consumer->partitions[consumer->partition_count++] = (struct consumed){
                .topic = t,
                .partition = p,
                .log = history_find_log(&workload->history, &topic->uid, (int32_t)p, topic->name)};
        }
    }
    sim_world_schedule(workload->world, &consumer->wake, workload->world->now_us + RETRY_US);
}

static bool has_all(const struct sim_consumer *consumer, const struct consumed *consumed)
{
    return consumed->position >= consumer->workload->history.logs[consumed->log].committed;
}

/* In turn; once nothing new comes, those that are read to the end are left out: the time to come to
 * rest is for the brokers, not for a reader that asks in vain. */
static struct consumed *next_partition(struct sim_consumer *consumer)
{
    struct consumed *consumed = NULL;
    for (int i = 0; i < consumer->partition_count; i++) {
        consumed = &consumer->partitions[consumer->next];
        consumer->next = (consumer->next + 1) % consumer->partition_count;
        if (!consumer->workload->draining || !has_all(consumer, consumed)) break;
    }
    return consumed;
}

bool sim_consumer_drained(const struct sim_consumer *consumer, char *why, size_t why_bytes)
{
    const struct history *history = &consumer->workload->history;
    for (int i = 0; i < consumer->partition_count; i++) {
        const struct consumed *consumed = &consumer->partitions[i];
        const struct history_log *log = &history->logs[consumed->log];
        if (has_all(consumer, consumed)) continue;
        snprintf(why, why_bytes, "a consumer of %s/%d is at %lld; %lld are acknowledged or read",
                 log->topic, log->partition, (long long)consumed->position,
                 (long long)log->committed);
        return false;
    }
    return true;
}

/* Inside the process. */

static void fetch_done(void *context, struct fetch *fetch)
{
    struct fetch_at_node *at_node = context;
    struct fetch_call *call = at_node->call;
    struct fetch_partition *partition = &at_node->partition;
    call->base.status = partition->status;
    if (fetch->leadership_lost && call->base.status == STATUS_OK)
        call->base.status = STATUS_NOT_LEADER;
    call->high_watermark = partition->high_watermark;
    call->log_start = partition_log_start(partition->partition);
    call->log_end = partition_log_end(partition->partition);
    if (partition->status == STATUS_OK && partition->read.bytes > 0) {
        call->data = sim_alloc(partition->read.bytes);
        for (uint32_t i = 0; i < partition->read.piece_count; i++) {
            const struct log_piece *piece = &partition->read.pieces[i];
            memcpy(call->data + call->bytes, piece->shared->data + piece->at, piece->bytes);
            call->bytes += piece->bytes;
        }
    }
    fetch_release(fetch);
    sim_call_done(&call->base);
    free(at_node);
}

static void lookup_done(void *context, struct offset_lookup *lookup)
{
    struct lookup_at_node *at_node = context;
    struct fetch_call *call = at_node->call;
    call->base.status = lookup->status;
    call->listed = lookup->offset;
    sim_call_done(&call->base);
    free(at_node);
}

static void serve_fetch(struct sim_call *base)
{
    struct fetch_call *call = (struct fetch_call *)base;
    struct sim_workload *workload = call->consumer->workload;
    struct broker *broker = base->node->broker;
    const struct sim_topic *topic = &workload->topics[call->consumed->topic];
    struct partition *partition = NULL;
    base->status = broker_check_serving(broker);
    if (base->status == STATUS_OK)
        partition = sim_workload_partition(workload, base->node, topic, call->consumed->partition,
                                           &base->status);
    if (partition == NULL) {
        sim_call_done(base);
        return;
    }
    if (call->lists) {
        struct lookup_at_node *at_node = calloc(1, sizeof(*at_node));
        ASSERT(at_node != NULL);
        at_node->call = call;
        at_node->lookup = (struct offset_lookup){.partition = partition,
                                                 .timestamp_ms = -1,
                                                 .current_epoch = call->known_epoch,
                                                 .done = lookup_done,
                                                 .context = at_node};
        broker_lookup_offset(broker, &at_node->lookup);
        return;
    }
    struct fetch_at_node *at_node = calloc(1, sizeof(*at_node));
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
                                    .done = fetch_done,
                                    .context = at_node};
    broker_fetch(broker, &at_node->fetch);
}

/* Outside. */

/* Every record of the answer that lies at or behind the position, without a gap. */
static void judge_batch(struct fetch_call *call, const uint8_t *data, size_t bytes)
{
    struct sim_workload *workload = call->consumer->workload;
    struct consumed *consumed = call->consumed;
    const char *name = workload->topics[consumed->topic].name;
    struct record_iterator iterator;
    struct record record;
    struct error error;
    if (record_iterator_init(&iterator, data, bytes, DECOMPRESSED_MAX, &error) != STATUS_OK) {
        sim_verdict_fail(workload->verdict, "I1", "%s/%u: a consumer was given a bad batch: %s",
                         name, consumed->partition, error.text);
        return;
    }
    while (record_iterator_next(&iterator, &record, &error) == STATUS_OK) {
        if (record.offset < consumed->position) continue;
        if (record.offset != consumed->position)
            sim_verdict_fail(workload->verdict, "I4", "%s/%u: a poll skipped from %lld to %lld",
                             name, consumed->partition, (long long)consumed->position,
                             (long long)record.offset);
        if (record.offset >= call->high_watermark)
            sim_verdict_fail(workload->verdict, "I3",
                             "%s/%u: offset %lld was served above the high watermark %lld", name,
                             consumed->partition, (long long)record.offset,
                             (long long)call->high_watermark);
        history_read_value(&workload->history, consumed->log, record.offset, record.value);
        consumed->position = record.offset + 1;
    }
    record_iterator_deinit(&iterator);
}

static void judge_data(struct fetch_call *call)
{
    size_t at = 0;
    /* Two answers to one position would be judged twice. */
    if (call->position != call->consumed->position) return;
    while (at < call->bytes) {
        struct batch_header header;
        struct error error;
        if (batch_parse(call->data + at, call->bytes - at, true, &header, &error) != STATUS_OK ||
            !batch_crc_matches(call->data + at, &header)) {
            sim_verdict_fail(call->consumer->workload->verdict, "I1",
                             "a consumer of %s was given bytes that are no batch",
                             call->consumer->workload->topics[call->consumed->topic].name);
            return;
        }
        judge_batch(call, call->data + at, header.batch_bytes);
        at += header.batch_bytes;
    }
    if (call->consumed->known_end < call->consumed->position)
        call->consumed->known_end = call->consumed->position;
}

static void judge_out_of_range(struct fetch_call *call)
{
    struct sim_workload *workload = call->consumer->workload;
    struct consumed *consumed = call->consumed;
    struct history_log *log = &workload->history.logs[consumed->log];
    bool retention = workload->options.retention_bytes > 0 &&
                     consumed->topic == workload->options.data_topics - 1;
    if (call->log_start > log->start) log->start = call->log_start;
    if (call->position < call->log_start && retention) {
        consumed->position = call->log_start;
        return;
    }
    sim_verdict_fail(workload->verdict, "I4",
                     "%s/%u: position %lld is out of range at node %d (log %lld..%lld, epoch %d)",
                     log->topic, log->partition, (long long)call->position,
                     call->base.node->index + 1, (long long)call->log_start,
                     (long long)call->log_end, call->base.epoch);
}

static void fetch_ended(struct sim_call *base, enum sim_call_end end)
{
    struct fetch_call *call = (struct fetch_call *)base;
    struct sim_consumer *consumer = call->consumer;
    struct sim_world *world = consumer->workload->world;
    bool answered = end == SIM_CALL_ANSWERED;
    bool redirected = answered && sim_status_redirects(base->status);
    sim_leader_guess_learn(&consumer->guess, base, end, redirected);
    if (answered && call->lists && base->status == STATUS_OK && call->listed < call->known_end)
        sim_verdict_fail(consumer->workload->verdict, "I4",
                         "%s/%u: LIST_OFFSETS says %lld, though offsets below %lld were read",
                         consumer->workload->topics[call->consumed->topic].name,
                         call->consumed->partition, (long long)call->listed,
                         (long long)call->known_end);
    if (answered && !call->lists)
        sim_world_trace(world, NULL, "consumer %d reads %s/%u at %lld: %zu bytes, %lld..%lld..%lld",
                        consumer->client, consumer->workload->topics[call->consumed->topic].name,
                        call->consumed->partition, (long long)call->position, call->bytes,
                        (long long)call->log_start, (long long)call->high_watermark,
                        (long long)call->log_end);
    if (answered && !call->lists && base->status == STATUS_OK) judge_data(call);
    if (answered && !call->lists && base->status == STATUS_OUT_OF_RANGE) judge_out_of_range(call);
    sim_release(call->data);
    call->data = NULL;
    consumer->asking = false;
    bool ok = answered && base->status == STATUS_OK;
    sim_world_schedule(world, &consumer->wake, world->now_us + (ok ? POLL_US : RETRY_US));
}

static void consumer_wake(struct sim_event *event)
{
    struct sim_consumer *consumer = CONTAINER_OF(event, struct sim_consumer, wake);
    struct sim_workload *workload = consumer->workload;
    if (consumer->asking || consumer->partition_count == 0) return;
    struct consumed *consumed = next_partition(consumer);
    if (!workload->draining && random_below(&workload->random, 500) == 0) consumed->position = 0;
    struct fetch_call *call =
        sim_call_new(&workload->clients, sizeof(*call), consumer->client, serve_fetch, fetch_ended);
    call->consumer = consumer;
    call->consumed = consumed;
    call->position = consumed->position;
    call->known_end = consumed->known_end;
    call->known_epoch = consumer->guess.epoch;
    call->lists = random_below(&workload->random, 20) == 0;
    consumer->asking = true;
    sim_workload_count(workload, call->lists ? SIM_REQUEST_LIST_OFFSETS : SIM_REQUEST_FETCH);
    sim_call_send(&call->base, consumer->guess.node, TIMEOUT_US);
}
