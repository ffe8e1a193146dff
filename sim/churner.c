/* churner.c: the administrator. Creates the data topics, then lets the churn topics come and go:
 * create, grow, alter, delete, create again; sends a record now and then into what exists, so that
 * old records would show in a new incarnation (I15, F54).
 *
 * Each churn topic is in one of the states below; a request whose outcome is open leads to MAYBE,
 * and only a later acknowledged one out of it.                                                  */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "broker/admin.h"
#include "record/batch.h"
#include "sim/workload.h"

#define TIMEOUT_US     6000000
#define ACK_TIMEOUT_US 5000000
#define RETRY_US       50000
#define PAUSE_US_MIN   200000
#define PAUSE_US_MAX   2000000

enum churn_state { CHURN_ABSENT, CHURN_THERE, CHURN_MAYBE };

enum admin_act { ADMIN_CREATE, ADMIN_DELETE, ADMIN_GROW, ADMIN_ALTER, ADMIN_SEND };

struct churn_topic {
    char name[HISTORY_TOPIC_BYTES];
    enum churn_state state;
    struct uuid uid;      /* of the incarnation that was acknowledged last */
    struct uuid dead[64]; /* incarnations whose deletion was acknowledged */
    int dead_count;
    uint32_t partitions; /* at least, while THERE */
    int32_t epoch;       /* of the leader that acknowledged something of it last */
};

struct sim_churner {
    struct sim_workload *workload;
    int client;
    uint32_t writer;
    struct sim_leader_guess guess;
    struct sim_event wake;
    struct churn_topic topics[SIM_CHURN_TOPICS];
    bool asking;
};

struct admin_call {
    struct sim_call base;
    struct sim_churner *churner;
    enum admin_act act;
    int topic; /* of the churn topics, or (data) of the data topics */
    bool data;
    char name[HISTORY_TOPIC_BYTES];
    uint32_t partitions;
    char segment_ms[24], retention_bytes[24];
    history_id record;
    /* answer */
    struct uuid uid; /* of the incarnation there when the request was served or done */
    bool tried;      /* it got past the check of leadership: it may take effect */
    int64_t base_offset;
    bool appended;
};

struct admin_at_node {
    struct admin_call *call;
    struct produce produce;
    struct topic_change changes[3];
};

static void churner_wake(struct sim_event *event);

struct sim_churner *sim_churner_new(struct sim_workload *workload, int client)
{
    struct sim_churner *churner = sim_alloc(sizeof(*churner));
    churner->workload = workload;
    churner->client = client;
    churner->guess.epoch = -1;
    churner->writer = history_add_writer(&workload->history, false);
    for (int i = 0; i < SIM_CHURN_TOPICS; i++)
        snprintf(churner->topics[i].name, sizeof(churner->topics[i].name), "churn%d", i);
    sim_event_init(&churner->wake, SIM_EVENT_CLIENT, NULL, churner_wake);
    churner->wake.detail = 0xd0000000u;
    return churner;
}

void sim_churner_free(struct sim_churner *churner)
{
    sim_world_cancel(churner->workload->world, &churner->wake);
    sim_release(churner);
}

void sim_churner_start(struct sim_churner *churner)
{
    sim_world_schedule(churner->workload->world, &churner->wake,
                       churner->workload->world->now_us + RETRY_US);
}

bool sim_churner_drained(const struct sim_churner *churner)
{
    return !churner->asking && !sim_event_is_queued(&churner->wake);
}

/* Inside the process. */

static void note_uid(struct admin_call *call)
{
    struct topic *topic = catalog_find(call->base.node->broker, call->name, strlen(call->name));
    memset(&call->uid, 0, sizeof(call->uid));
    if (topic != NULL) call->uid = *topic_uid(topic);
}

static void mark_log_dropped(struct sim_churner *churner, const struct uuid *uid)
{
    struct history *history = &churner->workload->history;
    for (uint32_t i = 0; i < history->log_count; i++) {
        if (uuid_equal(&history->logs[i].uid, uid)) history->logs[i].dropped = true;
    }
}

static void admin_done(void *context, enum status status, const struct error *error)
{
    struct admin_at_node *at_node = context;
    struct admin_call *call = at_node->call;
    (void)error;
    call->base.status = status;
    if (call->act != ADMIN_DELETE) note_uid(call);
    sim_call_done(&call->base);
    free(at_node);
}

static void send_done(void *context, struct produce *produce)
{
    struct admin_at_node *at_node = context;
    struct admin_call *call = at_node->call;
    call->base.status = produce->status;
    call->appended = produce->appended;
    call->base_offset = produce->base_offset;
    sim_call_done(&call->base);
    free(at_node);
}

/* One record into partition 0 of the incarnation that is there. */
static void serve_send(struct admin_call *call, struct admin_at_node *at_node)
{
    struct sim_workload *workload = call->churner->workload;
    struct broker *broker = call->base.node->broker;
    struct topic *topic = catalog_find(broker, call->name, strlen(call->name));
    if (topic == NULL) {
        call->base.status = STATUS_UNKNOWN_TOPIC;
        sim_call_done(&call->base);
        free(at_node);
        return;
    }
    history_sent(&workload->history, call->record, 1,
                 history_find_log(&workload->history, topic_uid(topic), 0, call->name), true);
    struct batch_builder builder;
    struct buffer value, out;
    struct error error;
    batch_builder_init(&builder);
    buffer_init(&value, 0);
    buffer_init(&out, 0);
    history_write_value(&workload->history, call->record, &value);
    batch_builder_add(&builder, SIM_WALL_START_MS, (struct slice){NULL, 0}, buffer_slice(&value), 0,
                      (struct slice){NULL, 0});
    const struct batch_build_options options = BATCH_BUILD_PLAIN;
    enum status status = batch_builder_finish(&builder, &options, &out, &error);
    ASSERT(status == STATUS_OK);
    at_node->produce = (struct produce){.partition = topic_partition(topic, 0),
                                        .batch = shared_bytes_copy(out.data, out.bytes),
                                        .acks = ACKS_ALL,
                                        .timeout_us = ACK_TIMEOUT_US,
                                        .done = send_done,
                                        .context = at_node};
    buffer_deinit(&out);
    buffer_deinit(&value);
    batch_builder_deinit(&builder);
    broker_produce(broker, &at_node->produce);
}

static void serve_admin(struct sim_call *base)
{
    struct admin_call *call = (struct admin_call *)base;
    struct broker *broker = base->node->broker;
    base->status = broker_check_serving(broker);
    if (base->status != STATUS_OK) {
        sim_call_done(base);
        return;
    }
    struct admin_at_node *at_node = calloc(1, sizeof(*at_node));
    ASSERT(at_node != NULL);
    at_node->call = call;
    call->tried = true;
    note_uid(call);
    if (call->act == ADMIN_DELETE) mark_log_dropped(call->churner, &call->uid);
    if (call->act == ADMIN_SEND) {
        serve_send(call, at_node);
        return;
    }
    struct admin_request request = {.topic = call->name,
                                    .partitions = call->partitions,
                                    .changes = at_node->changes,
                                    .timeout_us = ACK_TIMEOUT_US,
                                    .done = admin_done,
                                    .context = at_node};
    if (call->segment_ms[0] != '\0')
        at_node->changes[request.change_count++] =
            (struct topic_change){"segment.ms", call->segment_ms};
    if (call->retention_bytes[0] != '\0')
        at_node->changes[request.change_count++] =
            (struct topic_change){"retention.bytes", call->retention_bytes};
    /* Retention looks often where logs are compacted, also after a jump of the clock; and where
     * records are deleted by hand, nothing else may. */
    const uint32_t domains = call->churner->workload->options.domains;
    if (call->data && (domains & (SIM_COMPACTION | SIM_DELETIONS)) != 0)
        at_node->changes[request.change_count++] = (struct topic_change){"retention.ms", "-1"};
    switch (call->act) {
    case ADMIN_CREATE: broker_create_topic(broker, &request); break;
    case ADMIN_DELETE: broker_delete_topic(broker, &request); break;
    case ADMIN_GROW: broker_grow_topic(broker, &request); break;
    case ADMIN_ALTER: broker_alter_topic(broker, &request); break;
    case ADMIN_SEND: break;
    }
}

/* Outside. */

static bool is_dead(const struct churn_topic *topic, const struct uuid *uid)
{
    for (int i = 0; i < topic->dead_count; i++) {
        if (uuid_equal(&topic->dead[i], uid)) return true;
    }
    return false;
}

/* "It exists" may be said of a creation that is not committed yet: then an alteration that is
 * acknowledged proves it. */
static void data_topic_ended(struct admin_call *call, enum sim_call_end end)
{
    struct sim_workload *workload = call->churner->workload;
    struct sim_topic *topic = &workload->topics[call->topic];
    if (end != SIM_CALL_ANSWERED) return;
    topic->exists = call->base.status == STATUS_EXISTS ||
                    (topic->exists && call->base.status != STATUS_UNKNOWN_TOPIC);
    if (call->base.status != STATUS_OK || uuid_is_none(&call->uid)) return;
    topic->uid = call->uid;
    topic->exists = true;
    topic->epoch = call->base.epoch;
    workload->topics_ready++;
    if (workload->topics_ready == workload->options.data_topics)
        sim_workload_topics_ready(workload);
}

static void churn_topic_ended(struct admin_call *call, enum sim_call_end end)
{
    struct sim_churner *churner = call->churner;
    struct churn_topic *topic = &churner->topics[call->topic];
    enum status status = call->base.status;
    bool answered = end == SIM_CALL_ANSWERED;
    if (end == SIM_CALL_REFUSED) return;
    bool open = !answered || status == STATUS_TIMEOUT || status == STATUS_NOT_LEADER ||
                status == STATUS_NOT_READY || status == STATUS_NOT_ENOUGH_REPLICAS_AFTER ||
                status == STATUS_IO;
    if (answered && !call->tried) return;
    /* One that was leader before (see sim_workload_partition()) refuses by what it knew then. */
    if (answered && !open && status != STATUS_OK && call->base.epoch < topic->epoch) return;
    if (answered && status == STATUS_OK) topic->epoch = call->base.epoch;
    switch (call->act) {
    case ADMIN_CREATE:
        if (open) {
            topic->state = CHURN_MAYBE;
        } else if (status == STATUS_OK) {
            if (is_dead(topic, &call->uid))
                sim_verdict_fail(churner->workload->verdict, "I15",
                                 "%s: a dead incarnation is back", topic->name);
            topic->state = CHURN_THERE;
            topic->uid = call->uid;
            topic->partitions = call->partitions;
        } else if (status == STATUS_EXISTS && topic->state == CHURN_ABSENT) {
            sim_verdict_fail(churner->workload->verdict, "I15",
                             "%s exists though its deletion was acknowledged", topic->name);
        } else if (status == STATUS_EXISTS) {
            topic->state = CHURN_MAYBE;
        }
        break;
    case ADMIN_DELETE:
        /* The records of what is being deleted are judged no more, whatever the outcome. */
        mark_log_dropped(churner, &topic->uid);
        if (!uuid_is_none(&call->uid)) mark_log_dropped(churner, &call->uid);
        if (open) {
            topic->state = CHURN_MAYBE;
        } else if (status == STATUS_OK) {
            topic->state = CHURN_ABSENT;
            if (topic->dead_count < (int)ARRAY_COUNT(topic->dead))
                topic->dead[topic->dead_count++] = call->uid;
        } else if (status == STATUS_UNKNOWN_TOPIC) {
            if (topic->state == CHURN_THERE)
                sim_verdict_fail(churner->workload->verdict, "I15",
                                 "%s is unknown though its creation was acknowledged", topic->name);
            topic->state = CHURN_MAYBE; /* an earlier, open request may have ended it */
        }
        break;
    case ADMIN_GROW:
    case ADMIN_ALTER:
        if (status == STATUS_UNKNOWN_TOPIC && answered && topic->state == CHURN_THERE)
            sim_verdict_fail(churner->workload->verdict, "I15",
                             "%s is unknown though its creation was acknowledged", topic->name);
        if (answered && status == STATUS_OK && call->act == ADMIN_GROW &&
            uuid_equal(&call->uid, &topic->uid) && topic->partitions < call->partitions)
            topic->partitions = call->partitions;
        break;
    case ADMIN_SEND: break;
    }
}

static void send_ended(struct admin_call *call, enum sim_call_end end)
{
    enum history_outcome outcome = HISTORY_UNKNOWN;
    if (end == SIM_CALL_REFUSED)
        outcome = HISTORY_NO;
    else if (end == SIM_CALL_ANSWERED && call->base.status == STATUS_OK)
        outcome = HISTORY_OK;
    else if (end == SIM_CALL_ANSWERED && !call->appended)
        outcome = HISTORY_NO;
    history_told(&call->churner->workload->history, call->record, 1, outcome, call->base_offset);
}

static void admin_ended(struct sim_call *base, enum sim_call_end end)
{
    struct admin_call *call = (struct admin_call *)base;
    struct sim_churner *churner = call->churner;
    struct sim_workload *workload = churner->workload;
    bool redirected = end == SIM_CALL_ANSWERED && sim_status_redirects(base->status);
    sim_leader_guess_learn(&churner->guess, base, end, redirected);
    churner->asking = false;
    int64_t pause_us = RETRY_US;
    if (call->data) {
        data_topic_ended(call, end);
    } else {
        if (call->act == ADMIN_SEND)
            send_ended(call, end);
        else
            churn_topic_ended(call, end);
        if (call->act != ADMIN_SEND && end == SIM_CALL_ANSWERED && base->status == STATUS_OK)
            workload->admin_acknowledged++;
        pause_us = random_between(&workload->random, PAUSE_US_MIN, PAUSE_US_MAX);
    }
    if (workload->topics_ready == workload->options.data_topics &&
        (workload->draining || !workload->options.churns))
        return;
    sim_world_schedule(workload->world, &churner->wake, workload->world->now_us + pause_us);
}

static void choose_churn(struct sim_churner *churner, struct admin_call *call)
{
    struct sim_workload *workload = churner->workload;
    call->topic = (int)random_below(&workload->random, SIM_CHURN_TOPICS);
    const struct churn_topic *topic = &churner->topics[call->topic];
    snprintf(call->name, sizeof(call->name), "%s", topic->name);
    uint64_t draw = random_below(&workload->random, 10);
    call->partitions = 1;
    if (topic->state == CHURN_ABSENT || (topic->state == CHURN_MAYBE && draw < 4)) {
        call->act = ADMIN_CREATE;
        call->partitions = 1 + (uint32_t)random_below(&workload->random, 3);
    } else if (draw < 3 || topic->state == CHURN_MAYBE) {
        call->act = ADMIN_DELETE;
    } else if (draw < 4) {
        call->act = ADMIN_GROW;
        call->partitions = topic->partitions + 1;
    } else if (draw < 5) {
        call->act = ADMIN_ALTER;
        snprintf(call->segment_ms, sizeof(call->segment_ms), "%d",
                 1000 + (int)random_below(&workload->random, 60000));
    } else {
        call->act = ADMIN_SEND;
        call->record = history_new_record(&workload->history, churner->writer, 40);
    }
}

static void churner_wake(struct sim_event *event)
{
    struct sim_churner *churner = CONTAINER_OF(event, struct sim_churner, wake);
    struct sim_workload *workload = churner->workload;
    if (churner->asking) return;
    struct admin_call *call =
        sim_call_new(&workload->clients, sizeof(*call), churner->client, serve_admin, admin_ended);
    call->churner = churner;
    if (workload->topics_ready < workload->options.data_topics) {
        call->data = true;
        call->topic = workload->topics_ready;
        call->act = workload->topics[call->topic].exists ? ADMIN_ALTER : ADMIN_CREATE;
        call->partitions = (uint32_t)workload->options.partitions;
        snprintf(call->name, sizeof(call->name), "%s", workload->topics[call->topic].name);
        snprintf(call->segment_ms, sizeof(call->segment_ms), "%d",
                 300 + (int)random_below(&workload->random, 8000));
        if (workload->options.retention_bytes > 0 &&
            call->topic == workload->options.data_topics - 1)
            snprintf(call->retention_bytes, sizeof(call->retention_bytes), "%lld",
                     (long long)workload->options.retention_bytes);
    } else {
        choose_churn(churner, call);
    }
    churner->asking = true;
    sim_workload_count(workload, SIM_REQUEST_ADMIN);
    sim_call_send(&call->base, churner->guess.node, TIMEOUT_US);
}

void sim_churner_check_catalog(struct sim_churner *churner, struct sim_node *node)
{
    struct sim_verdict *verdict = churner->workload->verdict;
    for (int i = 0; i < SIM_CHURN_TOPICS; i++) {
        const struct churn_topic *topic = &churner->topics[i];
        struct topic *there = catalog_find(node->broker, topic->name, strlen(topic->name));
        if (topic->state == CHURN_THERE &&
            (there == NULL || !uuid_equal(topic_uid(there), &topic->uid) ||
             topic_partition_count(there) < topic->partitions))
            sim_verdict_fail(verdict, "I15", "node %d lacks %s, or has another incarnation of it",
                             node->index + 1, topic->name);
        if (topic->state == CHURN_ABSENT && there != NULL)
            sim_verdict_fail(verdict, "I15", "node %d has %s, whose deletion was acknowledged",
                             node->index + 1, topic->name);
        if (there != NULL && is_dead(topic, topic_uid(there)))
            sim_verdict_fail(verdict, "I15", "node %d has a dead incarnation of %s",
                             node->index + 1, topic->name);
    }
    for (int i = 0; i < churner->workload->topics_ready; i++) {
        const struct sim_topic *topic = &churner->workload->topics[i];
        struct topic *there = catalog_find(node->broker, topic->name, strlen(topic->name));
        if (there == NULL || !uuid_equal(topic_uid(there), &topic->uid))
            sim_verdict_fail(verdict, "I15", "node %d lacks %s", node->index + 1, topic->name);
    }
}
