/* keeper.c: writes the keys of a compacted topic over and over, deletes some, and reads the whole
 * again and again: each key's newest value is there, and no older one (I19).
 *
 * One batch at a time, sent under its sequence until it is acknowledged; and beside it one that is
 * sent once: if its outcome is open, nobody writes its keys again. A reading goes from the start of
 * the log to the end as its last answer has it: what was there when it began may be superseded, and
 * cleaned away, meanwhile. One that takes too long is given up, as tombstones stay for a limited
 * time only.                                                                                    */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "sim/history_keyed.h"
#include "sim/sim_fetch.h"

#define TIMEOUT_US     6000000
#define ACK_TIMEOUT_US 5000000
#define MAX_WAIT_US    200000
#define BYTES_MAX      (64 * 1024)
#define RETRY_US       40000
#define PAUSE_US_MAX   1500000
#define READING_US_MAX 15000000 /* tombstones stay longer than that */
#define LOOSE_KEYS     3        /* that the batches sent once are about, at a time */
#define LOOSE_ROUNDS   200
#define LEAVES_ONE_IN  4

struct sim_keeper {
    struct sim_workload *workload;
    int client;
    struct sim_topic *topic;
    uint32_t writer, log;
    uint16_t key_count;
    struct sim_leader_guess guess;
    struct sim_event write_wake, read_wake;
    int64_t producer_id; /* -1: none yet */
    int32_t next_sequence;
    bool writing; /* a request is out */
    history_id first;
    uint32_t records; /* of the batch that is not acknowledged yet; 0: none */
    struct sim_event loose_wake;
    int loose_round; /* which keys it is about; those of earlier ones are left as they are */
    bool loosely;    /* a batch that is sent once is out */
    bool reading;    /* a request is out */
    bool has_map;
    struct history_map map;
    int64_t position, end; /* of the reading; position -1: the start is not known yet */
    int64_t begun_us;
};

struct keeper_call {
    struct sim_call base;
    struct sim_keeper *keeper;
    bool asks_id;
    bool loose; /* sent once */
    history_id first;
    uint32_t records;
    int64_t producer_id;
    int32_t sequence;
    /* answer */
    int64_t number; /* producer id, base offset */
};

struct keeper_read {
    struct sim_fetch fetch;
    struct sim_keeper *keeper;
};

struct keeper_at_node {
    struct produce produce;
    struct keeper_call *call;
};

static void write_wake(struct sim_event *event);
static void loose_wake(struct sim_event *event);
static void read_wake(struct sim_event *event);

struct sim_keeper *sim_keeper_new(struct sim_workload *workload, int client)
{
    struct sim_keeper *keeper = sim_alloc(sizeof(*keeper));
    struct random *random = &workload->domain_random;
    keeper->workload = workload;
    keeper->client = client;
    keeper->guess.epoch = -1;
    keeper->writer = history_add_writer(&workload->history, true);
    keeper->key_count = (uint16_t)random_between(random, 1, 40);
    keeper->producer_id = -1;
    keeper->topic = sim_workload_add_topic(workload, "keyed0", 1);
    sim_topic_change_text(keeper->topic, "cleanup.policy", "compact");
    sim_topic_change(keeper->topic, "segment.ms", random_between(random, 200, 4000));
    sim_topic_change(keeper->topic, "delete.retention.ms", random_between(random, 20000, 40000));
    sim_topic_change_text(keeper->topic, "min.cleanable.dirty.ratio",
                          random_below(random, 2) == 0 ? "0.01" : "0.5");
    if (random_below(random, 2) == 0)
        sim_topic_change(keeper->topic, "max.compaction.lag.ms", random_between(random, 200, 3000));
    workload->group->settings.retention_check_us = random_between(random, 500000, 5000000);
    sim_event_init(&keeper->write_wake, SIM_EVENT_CLIENT, NULL, write_wake);
    sim_event_init(&keeper->loose_wake, SIM_EVENT_CLIENT, NULL, loose_wake);
    keeper->loose_wake.detail = 0xe3000000u;
    sim_event_init(&keeper->read_wake, SIM_EVENT_CLIENT, NULL, read_wake);
    keeper->write_wake.detail = 0xe1000000u;
    keeper->read_wake.detail = 0xe2000000u;
    return keeper;
}

void sim_keeper_free(struct sim_keeper *keeper)
{
    struct sim_world *world = keeper->workload->world;
    sim_world_cancel(world, &keeper->write_wake);
    sim_world_cancel(world, &keeper->loose_wake);
    sim_world_cancel(world, &keeper->read_wake);
    history_map_drop(&keeper->map);
    sim_release(keeper);
}

static uint16_t all_keys(const struct sim_keeper *keeper)
{
    return (uint16_t)(keeper->key_count + LOOSE_KEYS * LOOSE_ROUNDS);
}

void sim_keeper_start(struct sim_keeper *keeper)
{
    struct sim_workload *workload = keeper->workload;
    struct sim_world *world = workload->world;
    keeper->log = history_find_log(&workload->history, &keeper->topic->uid, 0, keeper->topic->name);
    struct history_log *log = &workload->history.logs[keeper->log];
    log->compacted = true;
    log->key_writer = keeper->writer;
    log->key_count = all_keys(keeper);
    sim_world_schedule(world, &keeper->write_wake, world->now_us + RETRY_US);
    sim_world_schedule(world, &keeper->loose_wake, world->now_us + RETRY_US);
    sim_world_schedule(world, &keeper->read_wake, world->now_us + PAUSE_US_MAX);
}

bool sim_keeper_drained(const struct sim_keeper *keeper)
{
    return keeper->records == 0 && !keeper->writing && !keeper->loosely && !keeper->reading;
}

/* Inside the process. */

static struct shared_bytes *build_batch(const struct keeper_call *call)
{
    const struct history *history = &call->keeper->workload->history;
    struct batch_builder builder;
    struct buffer key, value, header, out;
    batch_builder_init(&builder);
    buffer_init(&key, 0);
    buffer_init(&value, 0);
    buffer_init(&header, 0);
    buffer_init(&out, 0);
    for (uint32_t i = 0; i < call->records; i++) {
        history_id id = call->first + i;
        buffer_clear(&key);
        buffer_clear(&value);
        buffer_clear(&header);
        history_write_key(history, id, &key);
        history_write_header(id, &header);
        bool tombstone = history_is_tombstone(history, id);
        if (!tombstone) history_write_value(history, id, &value);
        batch_builder_add(
            &builder, SIM_WALL_START_MS + (int64_t)(id & 0xffffff), buffer_slice(&key),
            tombstone ? (struct slice){NULL, 0} : buffer_slice(&value), 1, buffer_slice(&header));
    }
    struct batch_build_options options = BATCH_BUILD_PLAIN;
    if (!call->loose) {
        options.producer_id = call->producer_id;
        options.producer_epoch = 0;
        options.base_sequence = call->sequence;
    }
    struct error error;
    enum status status = batch_builder_finish(&builder, &options, &out, &error);
    ASSERT(status == STATUS_OK);
    struct shared_bytes *batch = shared_bytes_copy(out.data, out.bytes);
    buffer_deinit(&out);
    buffer_deinit(&header);
    buffer_deinit(&value);
    buffer_deinit(&key);
    batch_builder_deinit(&builder);
    return batch;
}

static void produce_done(void *context, struct produce *produce)
{
    struct keeper_at_node *at_node = context;
    struct keeper_call *call = at_node->call;
    call->base.status = produce->status;
    call->number = produce->base_offset;
    sim_call_done(&call->base);
    free(at_node);
}

static void serve_keeper(struct sim_call *base)
{
    struct keeper_call *call = (struct keeper_call *)base;
    struct sim_workload *workload = call->keeper->workload;
    struct broker *broker = base->node->broker;
    struct partition *partition = NULL;
    base->status = broker_check_serving(broker);
    if (base->status == STATUS_OK && call->asks_id) {
        base->status = broker_new_producer_id(broker, &call->number);
        sim_call_done(base);
        return;
    }
    if (base->status == STATUS_OK)
        partition =
            sim_workload_partition(workload, base->node, call->keeper->topic, 0, &base->status);
    if (partition == NULL) {
        sim_call_done(base);
        return;
    }
    struct keeper_at_node *at_node = calloc(1, sizeof(*at_node));
    ASSERT(at_node != NULL);
    at_node->call = call;
    at_node->produce = (struct produce){.partition = partition,
                                        .batch = build_batch(call),
                                        .acks = ACKS_ALL,
                                        .timeout_us = ACK_TIMEOUT_US,
                                        .done = produce_done,
                                        .context = at_node};
    broker_produce(broker, &at_node->produce);
}

/* Outside: writing. */

/* Did it come to an answer that says OK? */
static bool learn(struct sim_keeper *keeper, const struct sim_call *call, enum sim_call_end end)
{
    bool answered = end == SIM_CALL_ANSWERED;
    sim_leader_guess_learn(&keeper->guess, call, end,
                           answered && sim_status_redirects(call->status));
    return answered && call->status == STATUS_OK;
}

static void write_ended(struct sim_call *base, enum sim_call_end end)
{
    struct keeper_call *call = (struct keeper_call *)base;
    struct sim_keeper *keeper = call->keeper;
    struct sim_workload *workload = keeper->workload;
    bool ok = learn(keeper, base, end);
    int64_t pause_us = RETRY_US;
    keeper->writing = false;
    if (ok && call->asks_id) keeper->producer_id = call->number;
    if (ok && !call->asks_id) {
        history_told(&workload->history, call->first, call->records, HISTORY_OK, call->number);
        keeper->records = 0;
        pause_us = random_between(&workload->domain_random, 1000, 120000);
    }
    sim_world_schedule(workload->world, &keeper->write_wake, workload->world->now_us + pause_us);
}

/* Records about `key_count` keys from `first_key` on; the first of them. */
static history_id new_records(struct sim_keeper *keeper, uint32_t records, uint16_t first_key,
                              uint16_t key_count)
{
    struct sim_workload *workload = keeper->workload;
    struct random *random = &workload->domain_random;
    history_id first = HISTORY_NOTHING;
    for (uint32_t i = 0; i < records; i++) {
        uint16_t key = (uint16_t)(first_key + random_below(random, key_count));
        bool tombstone = random_below(random, 5) == 0;
        history_id id = history_new_keyed_record(
            &workload->history, keeper->writer, key,
            tombstone ? 0
                      : (uint16_t)random_between(random, history_value_bytes_min(),
                                                 2 * history_value_bytes_min()));
        if (i == 0) first = id;
    }
    history_sent(&workload->history, first, records, keeper->log, true);
    return first;
}

static void begin_batch(struct sim_keeper *keeper)
{
    keeper->records = 1 + (uint32_t)random_below(&keeper->workload->domain_random, 4);
    keeper->first = new_records(keeper, keeper->records, 1, keeper->key_count);
}

static void loose_ended(struct sim_call *base, enum sim_call_end end)
{
    struct keeper_call *call = (struct keeper_call *)base;
    struct sim_keeper *keeper = call->keeper;
    struct sim_workload *workload = keeper->workload;
    bool ok = learn(keeper, base, end);
    keeper->loosely = false;
    history_told(&workload->history, call->first, call->records, ok ? HISTORY_OK : HISTORY_UNKNOWN,
                 call->number);
    bool leaves =
        workload->options.leaves_keys && random_below(&workload->domain_random, LEAVES_ONE_IN) == 0;
    if (!ok || leaves) keeper->loose_round++;
    sim_world_schedule(workload->world, &keeper->loose_wake,
                       workload->world->now_us +
                           random_between(&workload->domain_random, 20000, 500000));
}

static void loose_wake(struct sim_event *event)
{
    struct sim_keeper *keeper = CONTAINER_OF(event, struct sim_keeper, loose_wake);
    struct sim_workload *workload = keeper->workload;
    if (workload->draining || keeper->loose_round >= LOOSE_ROUNDS) return;
    struct keeper_call *call =
        sim_call_new(&workload->clients, sizeof(*call), keeper->client, serve_keeper, loose_ended);
    call->keeper = keeper;
    call->loose = true;
    call->records = LOOSE_KEYS;
    call->first = new_records(keeper, LOOSE_KEYS,
                              (uint16_t)(keeper->key_count + 1 + keeper->loose_round * LOOSE_KEYS),
                              LOOSE_KEYS);
    keeper->loosely = true;
    sim_workload_count(workload, SIM_REQUEST_KEYED);
    sim_call_send(&call->base, keeper->guess.node, TIMEOUT_US);
}

static void write_wake(struct sim_event *event)
{
    struct sim_keeper *keeper = CONTAINER_OF(event, struct sim_keeper, write_wake);
    struct sim_workload *workload = keeper->workload;
    if (keeper->records == 0 && workload->draining) return;
    struct keeper_call *call =
        sim_call_new(&workload->clients, sizeof(*call), keeper->client, serve_keeper, write_ended);
    call->keeper = keeper;
    call->producer_id = keeper->producer_id;
    if (keeper->producer_id < 0) {
        call->asks_id = true;
    } else {
        if (keeper->records == 0) {
            begin_batch(keeper);
            call->sequence = keeper->next_sequence;
            keeper->next_sequence += (int32_t)keeper->records;
        }
        call->sequence = keeper->next_sequence - (int32_t)keeper->records;
        call->first = keeper->first;
        call->records = keeper->records;
    }
    keeper->writing = true;
    sim_workload_count(workload, SIM_REQUEST_KEYED);
    sim_call_send(&call->base, keeper->guess.node, TIMEOUT_US);
}

/* Outside: reading. */

static void take_record(struct sim_fetch *fetch, const struct record *record)
{
    struct sim_keeper *keeper = ((struct keeper_read *)fetch)->keeper;
    if (record->offset >= keeper->position)
        history_map_record(&keeper->workload->history, &keeper->map, record);
}

static void take_batch(struct sim_fetch *fetch, const uint8_t *data,
                       const struct batch_header *header)
{
    sim_fetch_each_record(fetch, data, header, take_record);
    ((struct keeper_read *)fetch)->keeper->position = batch_last_offset(header) + 1;
}

static void begin_reading(struct sim_keeper *keeper)
{
    struct history *history = &keeper->workload->history;
    history_map_begin(history, &keeper->map, keeper->log, keeper->writer, all_keys(keeper));
    keeper->has_map = true;
    keeper->position = -1;
    keeper->end = history->logs[keeper->log].committed;
    keeper->begun_us = keeper->workload->world->now_us;
}

static void read_ended(struct sim_call *base, enum sim_call_end end)
{
    struct sim_fetch *fetch = (struct sim_fetch *)base;
    struct sim_keeper *keeper = ((struct keeper_read *)fetch)->keeper;
    struct sim_world *world = keeper->workload->world;
    bool ok = learn(keeper, base, end);
    int64_t pause_us = ok ? 1000 : RETRY_US;
    keeper->reading = false;
    if (ok && fetch->looks_up) keeper->position = fetch->looked_up;
    if (ok && !fetch->looks_up) {
        sim_fetch_each_batch(fetch, take_batch);
        if (fetch->high_watermark > keeper->end) keeper->end = fetch->high_watermark;
    }
    sim_fetch_release(fetch);
    if (world->now_us - keeper->begun_us > READING_US_MAX ||
        (keeper->position >= 0 && keeper->position >= keeper->end)) {
        if (world->now_us - keeper->begun_us > READING_US_MAX)
            history_map_drop(&keeper->map);
        else
            history_map_end(&keeper->workload->history, &keeper->map);
        keeper->has_map = false;
        pause_us = random_between(&keeper->workload->domain_random, 1000, PAUSE_US_MAX);
    }
    sim_world_schedule(world, &keeper->read_wake, world->now_us + pause_us);
}

static void read_wake(struct sim_event *event)
{
    struct sim_keeper *keeper = CONTAINER_OF(event, struct sim_keeper, read_wake);
    struct sim_workload *workload = keeper->workload;
    if (workload->draining) return;
    if (!keeper->has_map) begin_reading(keeper);
    struct keeper_read *call = sim_call_new(&workload->clients, sizeof(*call), keeper->client,
                                            sim_fetch_serve, read_ended);
    call->keeper = keeper;
    struct sim_fetch *fetch = &call->fetch;
    fetch->workload = workload;
    fetch->topic = keeper->topic;
    fetch->known_epoch = keeper->guess.epoch;
    fetch->looks_up = keeper->position < 0;
    fetch->timestamp_ms = -2;
    fetch->position = keeper->position;
    fetch->bytes_max = BYTES_MAX;
    fetch->max_wait_us = MAX_WAIT_US;
    keeper->reading = true;
    sim_workload_count(workload, SIM_REQUEST_KEYED);
    sim_call_send(&fetch->base, keeper->guess.node, TIMEOUT_US);
}
