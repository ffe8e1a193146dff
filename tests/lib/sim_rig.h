/* sim_rig.h: a replication group in one virtual world, with the few calls that scenarios need.
 *
 * Requests run inside a broker's process; their outcome is read outside of it, after the world has
 * gone on. Assertions belong outside only.                                                      */
#ifndef MOONMQ_TESTS_LIB_SIM_RIG_H
#define MOONMQ_TESTS_LIB_SIM_RIG_H

/* A test uses what it needs. */
#pragma GCC diagnostic ignored "-Wunused-function"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "broker/admin.h"
#include "broker/broker.h"
#include "broker/produce.h"
#include "record/batch.h"
#include "sim/sim_group.h"

#define MS    INT64_C(1000)
#define S     (1000 * MS)
#define TOPIC "orders"

struct rig {
    struct sim_world world;
    struct sim_group group;
    int acknowledged; /* values 0 … acknowledged-1 were */
};

static struct rig *rig_new(int node_count, uint64_t seed)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    sim_world_init(&rig->world, seed);
    rig->world.trace = getenv("SIM_RIG_TRACE") != NULL;
    sim_group_init(&rig->group, &rig->world, node_count);
    sim_group_heal_network(&rig->group);
    return rig;
}

static void rig_free(struct rig *rig)
{
    sim_group_deinit(&rig->group);
    sim_world_deinit(&rig->world);
    free(rig);
}

static void rig_start_all(struct rig *rig)
{
    for (int i = 0; i < rig->group.node_count; i++)
        sim_node_start(&rig->group.nodes[i]);
}

static void rig_run(struct rig *rig, int64_t us)
{
    sim_world_run_until(&rig->world, rig->world.now_us + us);
}

typedef bool (*rig_condition_fn)(struct rig *rig, void *context);

/* Virtual microseconds until it held, -1: it did not within `us`. */
static int64_t rig_wait(struct rig *rig, rig_condition_fn holds, void *context, int64_t us)
{
    int64_t began = rig->world.now_us;
    while (!holds(rig, context)) {
        if (rig->world.now_us - began >= us) return -1;
        sim_world_run_until(&rig->world, rig->world.now_us + MS);
    }
    return rig->world.now_us - began;
}

/* Replica i + 1, and what it says of itself. */
static struct sim_node *rig_node(struct rig *rig, int index)
{
    return &rig->group.nodes[index];
}

static struct node_facts rig_facts(struct rig *rig, int index)
{
    struct node_facts facts;
    memset(&facts, 0, sizeof(facts));
    facts.epoch = facts.leader_id = -1;
    (void)sim_node_facts(rig_node(rig, index), &facts);
    return facts;
}

static bool rig_has_leader(struct rig *rig, void *context)
{
    (void)context;
    return sim_group_leader(&rig->group) != NULL;
}

/* Index of the leader, once there is one; -1: none within `us`. */
static int rig_leader(struct rig *rig, int64_t us)
{
    if (rig_wait(rig, rig_has_leader, NULL, us) < 0) return -1;
    return sim_group_leader(&rig->group)->index;
}

/* A leader that serves in an epoch above `epoch`. */
static bool rig_leads_above(struct rig *rig, void *epoch)
{
    struct sim_node *leader = sim_group_leader(&rig->group);
    struct node_facts facts;
    return leader != NULL && sim_node_facts(leader, &facts) && facts.epoch > *(int32_t *)epoch;
}

/* All of `mask` are in the recorded set, as the leader knows it. */
static bool rig_in_sync(struct rig *rig, void *mask)
{
    struct sim_node *leader = sim_group_leader(&rig->group);
    struct node_facts facts;
    uint32_t all = *(uint32_t *)mask;
    return leader != NULL && sim_node_facts(leader, &facts) && (facts.isr_mask & all) == all;
}

static bool rig_isr_is(struct rig *rig, void *mask)
{
    struct sim_node *leader = sim_group_leader(&rig->group);
    struct node_facts facts;
    return leader != NULL && sim_node_facts(leader, &facts) && facts.isr_mask == *(uint32_t *)mask;
}

static bool rig_is_ready(struct rig *rig, void *index)
{
    char reason[256];
    struct sim_node *node = rig_node(rig, *(int *)index);
    return node->running && node_ready(node->node, reason, sizeof(reason));
}

/* ---- requests ---- */

struct rig_call {
    struct rig *rig;
    struct sim_node *node;
    bool done;
    enum status status;
    char text[200];
    int64_t base_offset;
    /* in */
    const char *topic;
    uint32_t partitions, partition;
    int value;
    enum produce_acks acks;
    struct produce produce;
};

static bool rig_call_done(struct rig *rig, void *context)
{
    (void)rig;
    return ((struct rig_call *)context)->done;
}

static void rig_admin_done(void *context, enum status status, const struct error *error)
{
    struct rig_call *call = context;
    call->done = true;
    call->status = status;
    if (status != STATUS_OK && error != NULL) {
        snprintf(call->text, sizeof(call->text), "%.190s", error->text);
    }
}

static void rig_create_in(void *context)
{
    struct rig_call *call = context;
    struct admin_request request = {.topic = call->topic,
                                    .partitions = call->partitions,
                                    .timeout_us = 5 * S,
                                    .done = rig_admin_done,
                                    .context = call};
    broker_create_topic(call->node->broker, &request);
}

static void rig_delete_in(void *context)
{
    struct rig_call *call = context;
    struct admin_request request = {
        .topic = call->topic, .timeout_us = 5 * S, .done = rig_admin_done, .context = call};
    broker_delete_topic(call->node->broker, &request);
}

static enum status rig_create(struct rig *rig, const char *topic, uint32_t partitions)
{
    struct rig_call call = {.rig = rig, .topic = topic, .partitions = partitions};
    call.node = sim_group_leader(&rig->group);
    assert_non_null(call.node);
    assert_true(sim_machine_run(call.node->machine, rig_create_in, &call));
    assert_true(rig_wait(rig, rig_call_done, &call, 8 * S) >= 0);
    if (call.status != STATUS_OK) print_message("create: %s\n", call.text);
    return call.status;
}

static enum status rig_delete(struct rig *rig, const char *topic)
{
    struct rig_call call = {.rig = rig, .topic = topic};
    call.node = sim_group_leader(&rig->group);
    assert_non_null(call.node);
    assert_true(sim_machine_run(call.node->machine, rig_delete_in, &call));
    assert_true(rig_wait(rig, rig_call_done, &call, 8 * S) >= 0);
    return call.status;
}

static void rig_produce_done(void *context, struct produce *produce)
{
    struct rig_call *call = context;
    call->done = true;
    call->status = produce->status;
    call->base_offset = produce->base_offset;
    snprintf(call->text, sizeof(call->text), "%.190s", produce->error.text);
}

static struct shared_bytes *rig_batch(int value)
{
    struct batch_builder builder;
    struct buffer out;
    char text[32];
    batch_builder_init(&builder);
    buffer_init(&out, 0);
    int bytes = snprintf(text, sizeof(text), "v%d", value);
    batch_builder_add(&builder, SIM_WALL_START_MS + value, (struct slice){NULL, 0},
                      (struct slice){(const uint8_t *)text, (size_t)bytes}, 0,
                      (struct slice){NULL, 0});
    const struct batch_build_options options = BATCH_BUILD_PLAIN;
    struct error error;
    if (batch_builder_finish(&builder, &options, &out, &error) != STATUS_OK) abort();
    struct shared_bytes *batch = shared_bytes_copy(out.data, out.bytes);
    buffer_deinit(&out);
    batch_builder_deinit(&builder);
    return batch;
}

static struct partition *rig_partition(const struct sim_node *node, const char *name,
                                       uint32_t index)
{
    struct topic *topic = catalog_find(node->broker, name, strlen(name));
    return topic == NULL ? NULL : topic_partition(topic, index);
}

static void rig_produce_in(void *context)
{
    struct rig_call *call = context;
    call->produce = (struct produce){
        .partition = rig_partition(call->node, call->topic, call->partition),
        .batch = rig_batch(call->value),
        .acks = call->acks,
        .timeout_us = 5 * S,
        .done = rig_produce_done,
        .context = call,
    };
    broker_produce(call->node->broker, &call->produce);
}

/* Hands a record to a replica; its answer is in `call` some time later. */
static void rig_send(struct rig *rig, struct rig_call *call, int index, uint32_t partition,
                     int value)
{
    *call = (struct rig_call){.rig = rig,
                              .node = rig_node(rig, index),
                              .topic = TOPIC,
                              .partition = partition,
                              .value = value,
                              .acks = ACKS_ALL};
    if (!sim_machine_run(call->node->machine, rig_produce_in, call)) {
        call->done = true;
        call->status = STATUS_CLOSED;
    }
}

/* Sends the next value to the leader with acks=all and waits. */
static enum status rig_produce(struct rig *rig)
{
    struct rig_call call;
    struct sim_node *leader = sim_group_leader(&rig->group);
    if (leader == NULL) return STATUS_NO_LEADER;
    rig_send(rig, &call, leader->index, 0, rig->acknowledged);
    if (rig_wait(rig, rig_call_done, &call, 8 * S) < 0) return STATUS_TIMEOUT;
    if (call.status == STATUS_OK) {
        assert_int_equal(call.base_offset, rig->acknowledged);
        rig->acknowledged++;
    } else {
        print_message("produce: %s: %s\n", status_text(call.status), call.text);
    }
    return call.status;
}

static void rig_produce_many(struct rig *rig, int count)
{
    for (int i = 0; i < count; i++)
        assert_int_equal(rig_produce(rig), STATUS_OK);
}

/* ---- looking at the logs ---- */

struct rig_look {
    const struct sim_node *node;
    const char *topic;
    uint32_t partition;
    bool there, finished;
    int64_t log_start, log_end, durable, high_watermark;
    int32_t epoch;
    int count; /* values read */
    int values[4096];
    enum status status;
    struct partition_log *log;
    struct log_read read;
};

static void rig_look_at_batch(struct rig_look *look, const uint8_t *data, size_t bytes)
{
    struct record_iterator iterator;
    struct record record;
    if (record_iterator_init(&iterator, data, bytes, 1u << 20, NULL) != STATUS_OK) abort();
    while (record_iterator_next(&iterator, &record, NULL) == STATUS_OK && look->count < 4096) {
        look->values[look->count++] = atoi((const char *)record.value.data + 1);
    }
    record_iterator_deinit(&iterator);
}

static void rig_look_on(struct rig_look *look);

static void rig_look_read(void *context, struct log_read *read)
{
    struct rig_look *look = context;
    look->status = read->status;
    for (uint32_t i = 0; i < read->piece_count && read->status == STATUS_OK; i++) {
        const uint8_t *data = read->pieces[i].shared->data + read->pieces[i].at;
        for (size_t left = read->pieces[i].bytes; left > 0;) {
            struct batch_header header;
            if (batch_parse(data, left, true, &header, NULL) != STATUS_OK) abort();
            rig_look_at_batch(look, data, header.batch_bytes);
            data += header.batch_bytes;
            left -= header.batch_bytes;
        }
    }
    int64_t next = read->next_offset;
    log_read_release(read);
    look->read = (struct log_read){.offset = next};
    rig_look_on(look);
}

static void rig_look_on(struct rig_look *look)
{
    struct log_read *read = &look->read;
    if (look->status != STATUS_OK || read->offset >= look->log_end) {
        look->finished = true;
        return;
    }
    read->limit_offset = look->log_end;
    read->bytes_max = 1u << 20;
    read->at_least_one = true;
    read->done = rig_look_read;
    read->context = look;
    enum status status = partition_log_read(look->log, read);
    if (status != STATUS_AGAIN) rig_look_read(look, read);
}

static void rig_look_in(void *context)
{
    struct rig_look *look = context;
    struct partition *partition = rig_partition(look->node, look->topic, look->partition);
    look->there = partition != NULL;
    look->finished = partition == NULL;
    if (partition == NULL) return;
    look->log = partition_log_of(partition);
    look->log_start = partition_log_start(partition);
    look->log_end = partition_log_end(partition);
    look->durable = partition_durable(partition);
    look->high_watermark = partition_high_watermark(partition);
    look->epoch = epoch_history_latest(partition_log_epochs(look->log));
    look->read.offset = look->log_start;
    rig_look_on(look);
}

static bool rig_has_looked(struct rig *rig, void *look)
{
    (void)rig;
    return ((struct rig_look *)look)->finished;
}

static struct rig_look *rig_look(struct rig *rig, int index, uint32_t partition)
{
    static struct rig_look look;
    look = (struct rig_look){.node = rig_node(rig, index), .topic = TOPIC, .partition = partition};
    if (sim_machine_run(look.node->machine, rig_look_in, &look)) {
        assert_true(rig_wait(rig, rig_has_looked, &look, S) >= 0);
    }
    return &look;
}

/* Every acknowledged value stands at its offset on this replica. */
static void rig_assert_log(struct rig *rig, int index)
{
    struct rig_look *look = rig_look(rig, index, 0);
    assert_true(look->there);
    assert_int_equal(look->status, STATUS_OK);
    assert_true(look->count >= rig->acknowledged);
    for (int i = 0; i < rig->acknowledged; i++)
        assert_int_equal(look->values[i], i);
}

struct rig_level {
    int index;
    int64_t end;
};

static bool rig_is_level(struct rig *rig, void *context)
{
    struct rig_level *level = context;
    const struct sim_node *node = rig_node(rig, level->index);
    if (!node->running) return false;
    const struct partition *partition = rig_partition(node, TOPIC, 0);
    return partition != NULL && partition_durable(partition) >= level->end &&
           partition_high_watermark(partition) >= level->end;
}

/* Waits until the replica holds all acknowledged records durably and knows that they are committed.
 */
static void rig_assert_catches_up(struct rig *rig, int index, int64_t us)
{
    struct rig_level level = {index, rig->acknowledged};
    assert_true(rig_wait(rig, rig_is_level, &level, us) >= 0);
    rig_assert_log(rig, index);
}

/* A group that is founded, serves, and holds a topic of one partition. */
static struct rig *rig_founded(int node_count, uint64_t seed, int *leader)
{
    struct rig *rig = rig_new(node_count, seed);
    rig_start_all(rig);
    *leader = rig_leader(rig, 5 * S);
    assert_true(*leader >= 0);
    assert_int_equal(rig_create(rig, TOPIC, 1), STATUS_OK);
    return rig;
}

#endif
