/* deleter.c: who deletes the oldest records of data topics by hand (DeleteRecords, F55), up to an
 * offset that was acknowledged or read, or up to the high watermark.
 *
 * Judged: a deletion that was acknowledged is for good (I15), also for who reads from the start;
 * and no log begins above what anybody asked for (I1). A deletion whose outcome is open may take
 * effect at any later time. */
#include <stdlib.h>

#include "base/assert.h"
#include "broker/delete_records.h"
#include "sim/workload.h"

#define TIMEOUT_US     6000000
#define ACK_TIMEOUT_US 5000000
#define PAUSE_US_MIN   100000
#define PAUSE_US_MAX   4000000

struct sim_deleter {
    struct sim_workload *workload;
    int client;
    struct sim_leader_guess guess;
    struct sim_event wake;
    bool asking;
};

struct deletion_call {
    struct sim_call base;
    struct sim_deleter *deleter;
    const struct sim_topic *topic;
    uint32_t partition, log;
    int64_t before_offset; /* DELETE_TO_HIGH_WATERMARK: the process fills it in */
    /* answer */
    int64_t low_watermark;
};

struct deletion_at_node {
    struct delete_records deletion;
    struct deletion_call *call;
};

static void deleter_wake(struct sim_event *event);

struct sim_deleter *sim_deleter_new(struct sim_workload *workload, int client)
{
    struct sim_deleter *deleter = sim_alloc(sizeof(*deleter));
    deleter->workload = workload;
    deleter->client = client;
    deleter->guess.epoch = -1;
    sim_event_init(&deleter->wake, SIM_EVENT_CLIENT, NULL, deleter_wake);
    deleter->wake.detail = 0xe4000000u;
    return deleter;
}

void sim_deleter_free(struct sim_deleter *deleter)
{
    sim_world_cancel(deleter->workload->world, &deleter->wake);
    sim_release(deleter);
}

static void wake_later(struct sim_deleter *deleter)
{
    struct sim_workload *workload = deleter->workload;
    sim_world_schedule(workload->world, &deleter->wake,
                       workload->world->now_us +
                           random_between(&workload->domain_random, PAUSE_US_MIN, PAUSE_US_MAX));
}

/* Where nothing else deletes, what was asked for bounds the log's start. */
void sim_deleter_start(struct sim_deleter *deleter)
{
    struct sim_workload *workload = deleter->workload;
    for (int t = 0; t < workload->options.data_topics; t++) {
        const struct sim_topic *topic = &workload->topics[t];
        bool retention =
            workload->options.retention_bytes > 0 && t == workload->options.data_topics - 1;
        for (uint32_t p = 0; p < topic->partitions; p++) {
            uint32_t log =
                history_find_log(&workload->history, &topic->uid, (int32_t)p, topic->name);
            workload->history.logs[log].kept = !retention;
        }
    }
    wake_later(deleter);
}

bool sim_deleter_drained(const struct sim_deleter *deleter)
{
    return !deleter->asking;
}

/* Inside the process. */

static void deletion_done(void *context, struct delete_records *deletion)
{
    struct deletion_at_node *at_node = context;
    struct deletion_call *call = at_node->call;
    call->base.status = deletion->status;
    call->low_watermark = deletion->low_watermark;
    sim_call_done(&call->base);
    free(at_node);
}

static void serve_deletion(struct sim_call *base)
{
    struct deletion_call *call = (struct deletion_call *)base;
    struct sim_workload *workload = call->deleter->workload;
    struct broker *broker = base->node->broker;
    struct partition *partition = NULL;
    base->status = broker_check_serving(broker);
    if (base->status == STATUS_OK)
        partition = sim_workload_partition(workload, base->node, call->topic, call->partition,
                                           &base->status);
    if (partition == NULL) {
        sim_call_done(base);
        return;
    }
    struct deletion_at_node *at_node = calloc(1, sizeof(*at_node));
    ASSERT(at_node != NULL);
    at_node->call = call;
    at_node->deletion = (struct delete_records){.partition = partition,
                                                .before_offset = call->before_offset,
                                                .timeout_us = ACK_TIMEOUT_US,
                                                .done = deletion_done,
                                                .context = at_node};
    if (call->before_offset == DELETE_TO_HIGH_WATERMARK)
        call->before_offset = partition_high_watermark(partition);
    history_ask_deletion(&workload->history, call->log, call->before_offset);
    broker_delete_records(broker, &at_node->deletion);
}

/* Outside. */

static void deletion_ended(struct sim_call *base, enum sim_call_end end)
{
    struct deletion_call *call = (struct deletion_call *)base;
    struct sim_deleter *deleter = call->deleter;
    struct sim_workload *workload = deleter->workload;
    bool answered = end == SIM_CALL_ANSWERED;
    sim_leader_guess_learn(&deleter->guess, base, end,
                           answered && sim_status_redirects(base->status));
    if (answered)
        sim_world_trace(workload->world, NULL, "records of %s/%u below %lld are deleted: %s, %lld",
                        call->topic->name, call->partition, (long long)call->before_offset,
                        status_text(base->status), (long long)call->low_watermark);
    if (answered && base->status == STATUS_OK)
        history_told_deletion(&workload->history, call->log, call->before_offset,
                              call->low_watermark, base->epoch);
    deleter->asking = false;
    wake_later(deleter);
}

/* Mostly a few of the oldest; sometimes all, or what is gone already. */
static int64_t draw_offset(struct random *random, const struct history_log *log)
{
    uint64_t draw = random_below(random, 8);
    if (draw == 0) return DELETE_TO_HIGH_WATERMARK;
    if (draw == 1 || log->committed <= log->start) return random_between(random, 0, log->committed);
    return random_between(random, log->start, log->start + (log->committed - log->start) / 4);
}

static void deleter_wake(struct sim_event *event)
{
    struct sim_deleter *deleter = CONTAINER_OF(event, struct sim_deleter, wake);
    struct sim_workload *workload = deleter->workload;
    struct random *random = &workload->domain_random;
    if (workload->draining) return;
    const struct sim_topic *topic =
        &workload->topics[random_below(random, (uint64_t)workload->options.data_topics)];
    struct deletion_call *call = sim_call_new(&workload->clients, sizeof(*call), deleter->client,
                                              serve_deletion, deletion_ended);
    call->deleter = deleter;
    call->topic = topic;
    call->partition = (uint32_t)random_below(random, topic->partitions);
    call->log =
        history_find_log(&workload->history, &topic->uid, (int32_t)call->partition, topic->name);
    call->before_offset = draw_offset(random, &workload->history.logs[call->log]);
    deleter->asking = true;
    sim_workload_count(workload, SIM_REQUEST_DELETE_RECORDS);
    sim_call_send(&call->base, deleter->guess.node, TIMEOUT_US);
}
