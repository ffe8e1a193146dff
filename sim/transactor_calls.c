/* transactor_calls.c: the requests of a transactional producer, inside the process that serves
 * them. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "broker/offsets.h"
#include "broker/transactions.h"
#include "record/batch.h"
#include "sim/transactor.h"

#define ACK_TIMEOUT_US 5000000

struct transactor_at_node {
    struct transactor_call *call;
    struct transaction_request request;
    struct transaction_partition partitions[TRANSACTOR_LANES_MAX + 1];
    struct produce produce;
    struct offsets_request offsets;
    struct committed_offset offset;
};

static struct slice text_slice(const char *text)
{
    return (struct slice){(const uint8_t *)text, strlen(text)};
}

static void answer(struct transactor_at_node *at_node, enum status status)
{
    struct transactor_call *call = at_node->call;
    call->base.status = status;
    sim_call_done(&call->base);
    free(at_node);
}

static void request_done(void *context, struct transaction_request *request)
{
    struct transactor_at_node *at_node = context;
    at_node->call->next =
        (struct history_grant){request->next_producer_id, request->next_producer_epoch};
    answer(at_node, request->status);
}

static void produce_done(void *context, struct produce *produce)
{
    struct transactor_at_node *at_node = context;
    at_node->call->base_offset = produce->base_offset;
    at_node->call->duplicate = produce->duplicate;
    answer(at_node, produce->status);
}

static void offsets_done(void *context, struct offsets_request *request)
{
    struct transactor_at_node *at_node = context;
    enum status status = request->status == STATUS_OK ? at_node->offset.status : request->status;
    if (at_node->call->act == TRANSACTOR_READ_OFFSET)
        at_node->call->offset = at_node->offset.offset;
    answer(at_node, status);
}

static struct shared_bytes *build_batch(const struct transactor_call *call)
{
    const struct history *history = &call->transactor->payer->workload->history;
    struct batch_builder builder;
    struct buffer value, out;
    batch_builder_init(&builder);
    buffer_init(&value, 0);
    buffer_init(&out, 0);
    for (uint32_t i = 0; i < call->records; i++) {
        buffer_clear(&value);
        history_write_value(history, call->first + i, &value);
        batch_builder_add(&builder, SIM_WALL_START_MS + (int64_t)((call->first + i) & 0xffffff),
                          (struct slice){NULL, 0}, buffer_slice(&value), 0,
                          (struct slice){NULL, 0});
    }
    struct batch_build_options options = BATCH_BUILD_PLAIN;
    options.transactional = true;
    options.producer_id = call->grant.producer_id;
    options.producer_epoch = call->grant.epoch;
    options.base_sequence = call->sequence;
    struct error error;
    enum status status = batch_builder_finish(&builder, &options, &out, &error);
    ASSERT(status == STATUS_OK);
    struct shared_bytes *batch = shared_bytes_copy(out.data, out.bytes);
    buffer_deinit(&out);
    buffer_deinit(&value);
    batch_builder_deinit(&builder);
    return batch;
}

static void serve_produce(struct transactor_call *call, struct transactor_at_node *at_node)
{
    struct transactor *transactor = call->transactor;
    const struct transactor_lane *lane = &transactor->lanes[call->lane];
    enum status status;
    struct partition *partition = sim_workload_partition(
        transactor->payer->workload, call->base.node, lane->topic, lane->partition, &status);
    if (partition == NULL) {
        answer(at_node, status);
        return;
    }
    at_node->produce = (struct produce){
        .partition = partition,
        .batch = build_batch(call),
        .acks = ACKS_ALL,
        .timeout_us = ACK_TIMEOUT_US,
        .rules = transactor->v2 ? PRODUCER_RULES_KAFKA_V2 : PRODUCER_RULES_KAFKA,
        .transactional_id = text_slice(transactor->payer->id),
        .transaction_client = transactor->v2 ? TRANSACTION_CLIENT_V2 : TRANSACTION_CLIENT_OLD,
        .done = produce_done,
        .context = at_node,
    };
    broker_produce(call->base.node->broker, &at_node->produce);
}

static void serve_offsets(struct transactor_call *call, struct transactor_at_node *at_node)
{
    struct transactor *transactor = call->transactor;
    struct sim_payer *payer = transactor->payer;
    struct broker *broker = call->base.node->broker;
    bool transactional = call->act == TRANSACTOR_OFFSET;
    bool commits = transactional || call->act == TRANSACTOR_PLAIN_OFFSET;
    at_node->offset =
        (struct committed_offset){.topic = text_slice(transactor->lanes[0].topic->name),
                                  .partition = 0,
                                  .offset = commits ? call->offset : -1,
                                  .leader_epoch = -1};
    at_node->offsets = (struct offsets_request){.group = text_slice(payer->group),
                                                .generation = -1,
                                                .require_stable = true,
                                                .offsets = &at_node->offset,
                                                .offset_count = 1,
                                                .timeout_us = ACK_TIMEOUT_US,
                                                .done = offsets_done,
                                                .context = at_node};
    if (transactional) {
        at_node->offsets.transactional = true;
        at_node->offsets.transactional_id = text_slice(payer->id);
        at_node->offsets.transaction_client =
            transactor->v2 ? TRANSACTION_CLIENT_V2 : TRANSACTION_CLIENT_OLD;
        at_node->offsets.producer_id = call->grant.producer_id;
        at_node->offsets.producer_epoch = call->grant.epoch;
    }
    if (commits)
        broker_commit_offsets(broker, &at_node->offsets);
    else
        broker_fetch_offsets(broker, &at_node->offsets);
}

/* False: the group's partition is not there. */
static bool list_partitions(const struct transactor_call *call, struct transactor_at_node *at_node)
{
    const struct transactor *transactor = call->transactor;
    struct transaction_request *request = &at_node->request;
    request->partitions = at_node->partitions;
    for (int i = 0; i < transactor->lane_count; i++) {
        const struct transactor_lane *lane = &transactor->lanes[i];
        if ((call->lanes & 1u << i) == 0) continue;
        at_node->partitions[request->partition_count++] =
            (struct transaction_partition){text_slice(lane->topic->name), (int32_t)lane->partition};
    }
    return !call->with_offset ||
           broker_offsets_partition(call->base.node->broker, text_slice(transactor->payer->group),
                                    &at_node->partitions[request->partition_count++]);
}

static void serve_request(struct transactor_call *call, struct transactor_at_node *at_node)
{
    struct transactor *transactor = call->transactor;
    struct broker *broker = call->base.node->broker;
    bool continues = call->act != TRANSACTOR_INIT || call->bumps;
    at_node->request = (struct transaction_request){
        .id = text_slice(transactor->payer->id),
        .producer_id = continues ? call->grant.producer_id : -1,
        .producer_epoch = continues ? call->grant.epoch : (int16_t)-1,
        .transaction_v2 = transactor->v2,
        .transaction_timeout_ms = transactor->timeout_ms,
        .commit = call->commit,
        .timeout_us = ACK_TIMEOUT_US,
        .done = request_done,
        .context = at_node,
    };
    switch (call->act) {
    case TRANSACTOR_INIT: broker_init_transaction(broker, &at_node->request); break;
    case TRANSACTOR_END: broker_end_transaction(broker, &at_node->request); break;
    default:
        if (list_partitions(call, at_node))
            broker_add_to_transaction(broker, &at_node->request);
        else
            answer(at_node, STATUS_NOT_READY);
        break;
    }
}

void transactor_serve(struct sim_call *base)
{
    struct transactor_call *call = (struct transactor_call *)base;
    base->status = broker_check_serving(base->node->broker);
    if (base->status != STATUS_OK) {
        sim_call_done(base);
        return;
    }
    struct transactor_at_node *at_node = calloc(1, sizeof(*at_node));
    ASSERT(at_node != NULL);
    at_node->call = call;
    switch (call->act) {
    case TRANSACTOR_PRODUCE: serve_produce(call, at_node); break;
    case TRANSACTOR_OFFSET:
    case TRANSACTOR_PLAIN_OFFSET:
    case TRANSACTOR_READ_OFFSET: serve_offsets(call, at_node); break;
    default: serve_request(call, at_node); break;
    }
}
