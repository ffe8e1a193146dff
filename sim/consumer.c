/* consumer.c: a virtual consumer that reads every partition of every data topic, position by
 * position, from the start; now and then it asks where the log ends, or begins anew.            */
#include <stdio.h>

#include "base/assert.h"
#include "sim/sim_fetch.h"

#define TIMEOUT_US     3000000
#define MAX_WAIT_US    400000
#define BYTES_MAX      (256 * 1024)
#define RETRY_US       40000
#define POLL_US        5000
#define PARTITIONS_MAX (SIM_DATA_TOPICS_MAX * SIM_PARTITIONS_MAX)

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

struct consumer_call {
    struct sim_fetch fetch;
    struct sim_consumer *consumer;
    struct consumed *consumed;
    int64_t known_end;
    int64_t deleted; /* what was below it had been deleted for good */
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
    bool own = workload->options.own_topics;
    if (own) consumer->guess = (struct sim_leader_guess){workload->options.read_topic, -1, true};
    for (int t = 0; t < workload->options.data_topics; t++) {
        if (own && t != workload->options.read_topic) continue;
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

/* Every record of the answer that lies at or behind the position, without a gap. */
static void judge_record(struct sim_fetch *fetch, const struct record *record)
{
    const struct consumer_call *call = (struct consumer_call *)fetch;
    struct consumed *consumed = call->consumed;
    struct sim_workload *workload = fetch->workload;
    const char *name = fetch->topic->name;
    if (record->offset < consumed->position) return;
    if (record->offset != consumed->position)
        sim_verdict_fail(workload->verdict, "I4", "%s/%u: a poll skipped from %lld to %lld", name,
                         consumed->partition, (long long)consumed->position,
                         (long long)record->offset);
    if (record->offset >= fetch->high_watermark)
        sim_verdict_fail(
            workload->verdict, "I3", "%s/%u: offset %lld was served above the high watermark %lld",
            name, consumed->partition, (long long)record->offset, (long long)fetch->high_watermark);
    if (record->offset < call->deleted &&
        fetch->base.epoch >= workload->history.logs[consumed->log].deleted_epoch)
        sim_verdict_fail(workload->verdict, "I15",
                         "%s/%u: offset %lld was served, though the deletion of all below %lld "
                         "had been acknowledged",
                         name, consumed->partition, (long long)record->offset,
                         (long long)call->deleted);
    history_read_value(&workload->history, consumed->log, record->offset, record->value);
    consumed->position = record->offset + 1;
}

static void judge_batch(struct sim_fetch *fetch, const uint8_t *data,
                        const struct batch_header *header)
{
    sim_fetch_each_record(fetch, data, header, judge_record);
}

static void judge_data(struct consumer_call *call)
{
    struct consumed *consumed = call->consumed;
    /* Two answers to one position would be judged twice. */
    if (call->fetch.position != consumed->position) return;
    sim_fetch_each_batch(&call->fetch, judge_batch);
    if (consumed->known_end < consumed->position) consumed->known_end = consumed->position;
}

static void judge_out_of_range(struct consumer_call *call)
{
    const struct sim_fetch *fetch = &call->fetch;
    struct sim_workload *workload = fetch->workload;
    struct consumed *consumed = call->consumed;
    struct history_log *log = &workload->history.logs[consumed->log];
    bool retention = workload->options.retention_bytes > 0 &&
                     consumed->topic == workload->options.data_topics - 1;
    if (fetch->log_start > log->start) log->start = fetch->log_start;
    if (fetch->position < fetch->log_start && (retention || fetch->log_start <= log->asked)) {
        consumed->position = fetch->log_start;
        return;
    }
    sim_verdict_fail(workload->verdict, "I4",
                     "%s/%u: position %lld is out of range at node %d (log %lld..%lld, epoch %d)",
                     log->topic, log->partition, (long long)fetch->position,
                     fetch->base.node->index + 1, (long long)fetch->log_start,
                     (long long)fetch->log_end, fetch->base.epoch);
}

static void judge_answer(struct consumer_call *call)
{
    const struct sim_fetch *fetch = &call->fetch;
    enum status status = fetch->base.status;
    if (fetch->looks_up) {
        if (status == STATUS_OK && fetch->looked_up < call->known_end)
            sim_verdict_fail(fetch->workload->verdict, "I4",
                             "%s/%u: LIST_OFFSETS says %lld, though offsets below %lld were read",
                             fetch->topic->name, fetch->partition, (long long)fetch->looked_up,
                             (long long)call->known_end);
        return;
    }
    sim_world_trace(fetch->workload->world, NULL,
                    "consumer %d reads %s/%u at %lld: %zu bytes, %lld..%lld..%lld",
                    call->consumer->client, fetch->topic->name, fetch->partition,
                    (long long)fetch->position, fetch->bytes, (long long)fetch->log_start,
                    (long long)fetch->high_watermark, (long long)fetch->log_end);
    if (status == STATUS_OK) judge_data(call);
    if (status == STATUS_OUT_OF_RANGE) judge_out_of_range(call);
}

static void fetch_ended(struct sim_call *base, enum sim_call_end end)
{
    struct consumer_call *call = (struct consumer_call *)base;
    struct sim_consumer *consumer = call->consumer;
    struct sim_world *world = consumer->workload->world;
    bool answered = end == SIM_CALL_ANSWERED;
    bool redirected = answered && sim_status_redirects(base->status);
    sim_leader_guess_learn(&consumer->guess, base, end, redirected);
    if (answered) judge_answer(call);
    sim_fetch_release(&call->fetch);
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
    struct consumer_call *call = sim_call_new(&workload->clients, sizeof(*call), consumer->client,
                                              sim_fetch_serve, fetch_ended);
    call->consumer = consumer;
    call->consumed = consumed;
    call->known_end = consumed->known_end;
    call->deleted = workload->history.logs[consumed->log].deleted;
    struct sim_fetch *fetch = &call->fetch;
    fetch->workload = workload;
    fetch->topic = &workload->topics[consumed->topic];
    fetch->partition = consumed->partition;
    fetch->known_epoch = consumer->guess.epoch;
    fetch->looks_up = random_below(&workload->random, 20) == 0;
    fetch->timestamp_ms = -1;
    fetch->position = consumed->position;
    fetch->bytes_max = BYTES_MAX;
    fetch->max_wait_us = MAX_WAIT_US;
    consumer->asking = true;
    sim_workload_count(workload, fetch->looks_up ? SIM_REQUEST_LIST_OFFSETS : SIM_REQUEST_FETCH);
    sim_call_send(&fetch->base, consumer->guess.node, TIMEOUT_US);
}
