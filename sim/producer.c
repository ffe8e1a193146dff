/* producer.c: a virtual producer. Plain: a batch is sent once, and what becomes of it is noted.
 * Idempotent: up to five batches in flight to one partition, each sent again under its sequence
 * until its outcome is known, in order, as Kafka's client does. One partition at a time.        */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "record/batch.h"
#include "sim/workload.h"

#define IN_FLIGHT_MAX  5
#define TIMEOUT_US     6000000
#define ACK_TIMEOUT_US 5000000
#define RETRY_US_MIN   20000
#define RETRY_US_MAX   120000

struct produced_batch {
    history_id first;
    uint32_t records;
    int32_t sequence;
    bool sent, told; /* in flight now; answered */
    bool rejected;   /* the last attempt was refused as out of order */
};

struct sim_producer {
    struct sim_workload *workload;
    int client;
    uint32_t writer;
    bool idempotent;
    int acks;
    struct sim_leader_guess guess;
    struct sim_event wake;
    int topic;
    uint32_t partition;
    uint32_t log;
    bool has_log;
    int64_t producer_id; /* -1: none yet */
    int32_t next_sequence;
    int32_t acknowledged_epoch; /* the newest of a leader that took a batch */
    int64_t timestamp_ms;
    struct produced_batch batches[IN_FLIGHT_MAX]; /* oldest first */
    int batch_count;
    bool asking_id;
    int64_t next_batch_us, retry_us;
};

/* The call: everything that the process needs is copied in, so that a late one finds it. */
struct produce_call {
    struct sim_call base;
    struct sim_producer *producer;
    history_id first;
    uint32_t records;
    int32_t sequence;
    int64_t producer_id;
    int topic;
    uint32_t partition;
    bool asks_id;
    /* answer */
    int64_t new_producer_id;
    bool appended;
    int64_t base_offset;
};

/* Inside the process. */
struct produce_at_node {
    struct produce produce;
    struct produce_call *call;
};

static void producer_wake(struct sim_event *event);
static void producer_go_on(struct sim_producer *producer);

struct sim_producer *sim_producer_new(struct sim_workload *workload, int client, bool idempotent,
                                      int acks)
{
    struct sim_producer *producer = sim_alloc(sizeof(*producer));
    producer->workload = workload;
    producer->client = client;
    producer->idempotent = idempotent;
    producer->acks = acks;
    producer->writer = history_add_writer(&workload->history, idempotent);
    producer->guess = (struct sim_leader_guess){
        (int)random_below(&workload->random, (uint64_t)workload->group->node_count), -1, false};
    producer->producer_id = -1;
    producer->topic = (int)random_below(&workload->random, (uint64_t)workload->options.data_topics);
    producer->partition =
        (uint32_t)random_below(&workload->random, (uint64_t)workload->options.partitions);
    if (workload->options.own_topics) {
        while ((workload->options.written & 1u << producer->topic) == 0)
            producer->topic = (producer->topic + 1) % workload->options.data_topics;
        producer->guess = (struct sim_leader_guess){producer->topic, -1, true};
    }
    sim_event_init(&producer->wake, SIM_EVENT_CLIENT, NULL, producer_wake);
    producer->wake.detail = 0xa0000000u + (uint64_t)client;
    return producer;
}

void sim_producer_free(struct sim_producer *producer)
{
    sim_world_cancel(producer->workload->world, &producer->wake);
    sim_release(producer);
}

int sim_producer_topic(const struct sim_producer *producer)
{
    return producer->topic;
}

bool sim_producer_drained(const struct sim_producer *producer)
{
    return producer->batch_count == 0 && !producer->asking_id;
}

void sim_producer_start(struct sim_producer *producer)
{
    struct sim_world *world = producer->workload->world;
    producer->next_batch_us = world->now_us + sim_workload_pause_us(producer->workload);
    sim_world_schedule(world, &producer->wake, producer->next_batch_us);
}

static void producer_wake(struct sim_event *event)
{
    producer_go_on(CONTAINER_OF(event, struct sim_producer, wake));
}

/* In the process: one batch, its values made from the history. */

static struct shared_bytes *build_batch(const struct produce_call *call)
{
    struct sim_workload *workload = call->producer->workload;
    struct batch_builder builder;
    struct buffer value, out;
    batch_builder_init(&builder);
    buffer_init(&value, 0);
    buffer_init(&out, 0);
    for (uint32_t i = 0; i < call->records; i++) {
        buffer_clear(&value);
        history_write_value(&workload->history, call->first + i, &value);
        batch_builder_add(&builder, SIM_WALL_START_MS + (int64_t)((call->first + i) & 0xffffff),
                          (struct slice){NULL, 0}, buffer_slice(&value), 0,
                          (struct slice){NULL, 0});
    }
    struct batch_build_options options = BATCH_BUILD_PLAIN;
    if (call->producer_id >= 0) {
        options.producer_id = call->producer_id;
        options.producer_epoch = 0;
        options.base_sequence = call->sequence;
    }
    struct error error;
    enum status status = batch_builder_finish(&builder, &options, &out, &error);
    ASSERT(status == STATUS_OK);
    struct shared_bytes *batch = shared_bytes_copy(out.data, out.bytes);
    buffer_deinit(&out);
    buffer_deinit(&value);
    batch_builder_deinit(&builder);
    return batch;
}

static void produce_done(void *context, struct produce *produce)
{
    struct produce_at_node *at_node = context;
    struct produce_call *call = at_node->call;
    call->base.status = produce->status;
    call->appended = produce->appended;
    call->base_offset = produce->base_offset;
    struct sim_workload *workload = call->producer->workload;
    if (produce->status == STATUS_OK && produce->acks == ACKS_ALL && workload->acknowledged != NULL)
        workload->acknowledged(workload->acknowledged_context, call->base.node, produce->partition,
                               produce->base_offset + call->records);
    sim_call_done(&call->base);
    free(at_node);
}

static void serve_produce(struct sim_call *base)
{
    struct produce_call *call = (struct produce_call *)base;
    struct sim_workload *workload = call->producer->workload;
    struct broker *broker = base->node->broker;
    const struct sim_topic *topic = &workload->topics[call->topic];
    call->base_offset = -1;
    struct partition *partition = NULL;
    base->status = broker_check_serving(broker);
    if (base->status == STATUS_OK && call->asks_id) {
        base->status = broker_new_producer_id(broker, &call->new_producer_id);
        sim_call_done(base);
        return;
    }
    if (base->status == STATUS_OK)
        partition =
            sim_workload_partition(workload, base->node, topic, call->partition, &base->status);
    if (partition == NULL) {
        sim_call_done(base);
        return;
    }
    struct produce_at_node *at_node = calloc(1, sizeof(*at_node));
    ASSERT(at_node != NULL);
    at_node->call = call;
    at_node->produce = (struct produce){
        .partition = partition,
        .batch = build_batch(call),
        .acks = (enum produce_acks)call->producer->acks,
        .timeout_us = ACK_TIMEOUT_US,
        .allow_zstd = true,
        .done = produce_done,
        .context = at_node,
    };
    broker_produce(broker, &at_node->produce);
}

/* Outside: what it means. */

static struct produced_batch *find_batch(struct sim_producer *producer, history_id first)
{
    for (int i = 0; i < producer->batch_count; i++) {
        if (producer->batches[i].first == first) return &producer->batches[i];
    }
    return NULL;
}

static void forget_told_batches(struct sim_producer *producer)
{
    while (producer->batch_count > 0 && producer->batches[0].told) {
        producer->batch_count--;
        memmove(&producer->batches[0], &producer->batches[1],
                (size_t)producer->batch_count * sizeof(producer->batches[0]));
    }
}

static void plain_produce_ended(struct produce_call *call, enum sim_call_end end)
{
    struct sim_producer *producer = call->producer;
    struct history *history = &producer->workload->history;
    enum history_outcome outcome = HISTORY_UNKNOWN;
    if (end == SIM_CALL_REFUSED)
        outcome = HISTORY_NO;
    else if (end == SIM_CALL_ANSWERED && call->base.status == STATUS_OK)
        outcome = HISTORY_OK;
    else if (end == SIM_CALL_ANSWERED && !call->appended)
        outcome = HISTORY_NO;
    history_told(history, call->first, call->records, outcome, call->base_offset);
    struct produced_batch *batch = find_batch(producer, call->first);
    if (batch != NULL) batch->told = true;
}

/* True: only we could have caused this, or the broker lost something. */
static bool is_out_of_order(const struct produce_call *call, enum sim_call_end end)
{
    /* A leader of before, whose clocks stood still with its machine, judges by what it knows. */
    if (end != SIM_CALL_ANSWERED || call->base.epoch < call->producer->acknowledged_epoch)
        return false;
    return call->base.status == STATUS_OUT_OF_ORDER_SEQUENCE ||
           call->base.status == STATUS_STALE_PRODUCER_EPOCH;
}

static void idempotent_produce_ended(struct produce_call *call, enum sim_call_end end)
{
    struct sim_producer *producer = call->producer;
    struct sim_workload *workload = producer->workload;
    struct produced_batch *batch = find_batch(producer, call->first);
    if (batch == NULL) return;
    batch->sent = false;
    if (end == SIM_CALL_ANSWERED && call->base.status == STATUS_OK) {
        history_told(&workload->history, call->first, call->records, HISTORY_OK, call->base_offset);
        if (call->base.epoch > producer->acknowledged_epoch)
            producer->acknowledged_epoch = call->base.epoch;
        batch->told = true;
        return;
    }
    /* The oldest batch follows only on acknowledged ones: nothing is missing before it, unless
     * this attempt left before they were acknowledged. */
    if (is_out_of_order(call, end) && batch == &producer->batches[0] && batch->rejected)
        sim_verdict_fail(workload->verdict, "I6",
                         "%s/%u: sequence %d of producer %lld refused as out of order, though all "
                         "before it are acknowledged",
                         workload->topics[producer->topic].name, producer->partition,
                         batch->sequence, (long long)producer->producer_id);
    batch->rejected = is_out_of_order(call, end) && batch == &producer->batches[0];
}

static void produce_ended(struct sim_call *base, enum sim_call_end end)
{
    struct produce_call *call = (struct produce_call *)base;
    struct sim_producer *producer = call->producer;
    struct sim_world *world = producer->workload->world;
    bool redirected = end == SIM_CALL_ANSWERED && sim_status_redirects(base->status);
    bool ok = end == SIM_CALL_ANSWERED && base->status == STATUS_OK;
    sim_leader_guess_learn(&producer->guess, base, end, redirected);
    if (call->asks_id) {
        producer->asking_id = false;
        if (ok) producer->producer_id = call->new_producer_id;
    } else if (producer->idempotent) {
        idempotent_produce_ended(call, end);
    } else {
        plain_produce_ended(call, end);
    }
    forget_told_batches(producer);
    if (!ok) {
        int64_t retry_us =
            world->now_us + random_between(&producer->workload->random, RETRY_US_MIN, RETRY_US_MAX);
        if (retry_us > producer->retry_us) producer->retry_us = retry_us;
    }
    producer_go_on(producer);
}

static void send_batch(struct sim_producer *producer, struct produced_batch *batch)
{
    struct sim_workload *workload = producer->workload;
    struct produce_call *call = sim_call_new(&workload->clients, sizeof(*call), producer->client,
                                             serve_produce, produce_ended);
    call->producer = producer;
    call->first = batch->first;
    call->records = batch->records;
    call->sequence = batch->sequence;
    call->producer_id = producer->producer_id;
    call->topic = producer->topic;
    call->partition = producer->partition;
    batch->sent = true;
    /* A leader that is never replaced keeps what it wrote alone. */
    history_sent(&workload->history, batch->first, batch->records, producer->log,
                 producer->acks == ACKS_ALL || workload->options.own_topics);
    sim_workload_count(workload,
                       producer->idempotent ? SIM_REQUEST_PRODUCE_IDEMPOTENT : SIM_REQUEST_PRODUCE);
    sim_call_send(&call->base, producer->guess.node, TIMEOUT_US);
}

static void ask_for_id(struct sim_producer *producer)
{
    struct produce_call *call = sim_call_new(&producer->workload->clients, sizeof(*call),
                                             producer->client, serve_produce, produce_ended);
    call->producer = producer;
    call->asks_id = true;
    call->producer_id = -1;
    producer->asking_id = true;
    sim_call_send(&call->base, producer->guess.node, TIMEOUT_US);
}

static void begin_batch(struct sim_producer *producer)
{
    struct sim_workload *workload = producer->workload;
    const struct sim_workload_options *options = &workload->options;
    struct produced_batch *batch = &producer->batches[producer->batch_count++];
    memset(batch, 0, sizeof(*batch));
    batch->records = 1 + (uint32_t)random_below(&workload->random, (uint64_t)options->records_max);
    batch->sequence = producer->next_sequence;
    producer->next_sequence += (int32_t)batch->records;
    for (uint32_t i = 0; i < batch->records; i++) {
        history_id id = history_new_record(&workload->history, producer->writer,
                                           (uint16_t)random_between(&workload->random,
                                                                    history_value_bytes_min(),
                                                                    options->value_bytes_max));
        if (i == 0) batch->first = id;
    }
}

/* An idempotent producer sends in order: nothing before a batch that waits to be sent again. */
static void send_what_waits(struct sim_producer *producer)
{
    for (int i = 0; i < producer->batch_count; i++) {
        struct produced_batch *batch = &producer->batches[i];
        if (!batch->sent && !batch->told) send_batch(producer, batch);
    }
}

static bool any_in_flight(const struct sim_producer *producer)
{
    for (int i = 0; i < producer->batch_count; i++) {
        if (producer->batches[i].sent) return true;
    }
    return false;
}

static bool any_to_retry(const struct sim_producer *producer)
{
    for (int i = 0; i < producer->batch_count; i++) {
        if (!producer->batches[i].sent && !producer->batches[i].told) return true;
    }
    return false;
}

static void producer_choose_log(struct sim_producer *producer)
{
    struct sim_workload *workload = producer->workload;
    const struct sim_topic *topic = &workload->topics[producer->topic];
    producer->log = history_find_log(&workload->history, &topic->uid, (int32_t)producer->partition,
                                     topic->name);
    producer->has_log = true;
}

static void producer_go_on(struct sim_producer *producer)
{
    struct sim_workload *workload = producer->workload;
    struct sim_world *world = workload->world;
    int64_t now_us = world->now_us;
    if (!producer->has_log) producer_choose_log(producer);
    /* After a failure everything in flight comes back first, then all is sent again in order. */
    bool retrying = any_to_retry(producer);
    if (producer->retry_us > now_us || (retrying && any_in_flight(producer))) {
        if (producer->retry_us > now_us)
            sim_world_schedule(world, &producer->wake, producer->retry_us);
        return;
    }
    if (producer->idempotent && producer->producer_id < 0) {
        if (!producer->asking_id && !workload->draining) ask_for_id(producer);
        return;
    }
    if (retrying) send_what_waits(producer);
    if (workload->draining) return;
    int in_flight_max = producer->idempotent ? IN_FLIGHT_MAX : 2;
    if (now_us >= producer->next_batch_us && producer->batch_count < in_flight_max) {
        begin_batch(producer);
        send_batch(producer, &producer->batches[producer->batch_count - 1]);
        producer->next_batch_us = now_us + sim_workload_pause_us(workload);
    }
    if (producer->batch_count < in_flight_max)
        sim_world_schedule(world, &producer->wake, producer->next_batch_us);
}
