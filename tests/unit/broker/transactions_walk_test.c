/* Random walks of producers, time, replication and leaders: whatever happens in whatever order,
 * everybody is answered, and in the end nothing is open (I16: no transaction hangs). */
#include "base/random.h"
#include "broker/transactions.h"
#include "lib/broker_rig.h"
#include "lib/memory_disk.h"

#define SEEDS      150
#define STEPS      120
#define IDS        3
#define PARTITIONS 3
#define TIMEOUT_MS 3000
#define OPEN_MAX   64

static const char *const names[IDS] = {"tx-a", "tx-b", "tx-c"};

/* What a client knows of itself; version 1 or 2. */
struct walker {
    int64_t producer_id;
    int16_t epoch;
    bool transaction_v2;
    int32_t sequences[PARTITIONS];
};

struct call {
    struct transaction_request request;
    struct transaction_partition partition;
    struct walk *walk;
    struct walker *walker;
    bool open;
};
struct sent {
    struct produce produce;
    struct walk *walk;
    bool open;
};

struct walk {
    struct memory_disk disk;
    struct rig rig;
    struct random random;
    struct walker walkers[IDS];
    struct call calls[OPEN_MAX];
    struct sent produces[OPEN_MAX];
    int32_t epoch;
};

static uint32_t pick(struct walk *walk, uint32_t count)
{
    return (uint32_t)(random_u64(&walk->random) % count);
}

static void call_done(void *context, struct transaction_request *request)
{
    struct call *call = context;
    assert_true(call->open);
    call->open = false;
    if (request->status != STATUS_OK || request->verb == TRANSACTION_ADD ||
        request->verb == TRANSACTION_ABORT) {
        return;
    }
    struct walker *walker = call->walker;
    if (walker->producer_id != request->next_producer_id ||
        walker->epoch != request->next_producer_epoch) {
        memset(walker->sequences, 0, sizeof(walker->sequences));
    }
    walker->producer_id = request->next_producer_id;
    walker->epoch = request->next_producer_epoch;
}

static void produce_done(void *context, struct produce *produce)
{
    struct sent *sent = context;
    (void)produce;
    assert_true(sent->open);
    sent->open = false;
}

static struct call *free_call(struct walk *walk)
{
    for (uint32_t i = 0; i < OPEN_MAX; i++) {
        if (!walk->calls[i].open) return &walk->calls[i];
    }
    return NULL;
}

static void step_request(struct walk *walk, uint32_t id)
{
    struct broker *broker = walk->rig.broker;
    struct walker *walker = &walk->walkers[id];
    struct call *call = free_call(walk);
    if (call == NULL) return;
    *call = (struct call){
        .request = {.id = rig_text(names[id]),
                    .producer_id = walker->producer_id,
                    .producer_epoch = walker->epoch,
                    .transaction_v2 = walker->transaction_v2,
                    .transaction_timeout_ms = TIMEOUT_MS,
                    .commit = pick(walk, 2) == 0,
                    .done = call_done,
                    .context = call},
        .partition = {rig_text("orders"), (int32_t)pick(walk, PARTITIONS)},
        .walk = walk,
        .walker = walker,
        .open = true,
    };
    call->request.partitions = &call->partition;
    call->request.partition_count = 1;
    switch (pick(walk, 8)) {
    case 0: call->request.producer_id = call->request.producer_epoch = -1; /* fall through */
    case 1: broker_init_transaction(broker, &call->request); break;
    case 2:
    case 3:
    case 4: broker_add_to_transaction(broker, &call->request); break;
    case 5:
    case 6: broker_end_transaction(broker, &call->request); break;
    default: broker_abort_transaction(broker, &call->request); break;
    }
}

static void step_produce(struct walk *walk, uint32_t id)
{
    struct walker *walker = &walk->walkers[id];
    uint32_t partition = pick(walk, PARTITIONS), at = 0;
    while (at < OPEN_MAX && walk->produces[at].open)
        at++;
    if (at == OPEN_MAX || walker->producer_id < 0) return;
    struct batch_build_options options = BATCH_BUILD_PLAIN;
    options.producer_id = walker->producer_id;
    options.producer_epoch = walker->epoch;
    options.base_sequence = walker->sequences[partition];
    options.transactional = true;
    /* Now and then one that is sent again, or whose client goes. */
    if (pick(walk, 8) != 0) walker->sequences[partition]++;
    struct sent *sent = &walk->produces[at];
    *sent = (struct sent){.produce = {.partition = rig_partition(&walk->rig, "orders", partition),
                                      .batch = rig_build(&walk->rig, "t", 1, &options),
                                      .acks = ACKS_ALL,
                                      .transactional_id = rig_text(names[id]),
                                      .transaction_client = walker->transaction_v2
                                                                ? TRANSACTION_CLIENT_V2
                                                                : TRANSACTION_CLIENT_OLD,
                                      .done = produce_done,
                                      .context = sent},
                          .walk = walk,
                          .open = true};
    broker_produce(walk->rig.broker, &sent->produce);
    if (sent->open && pick(walk, 10) == 0) {
        broker_produce_cancel(walk->rig.broker, &sent->produce);
        sent->open = false;
    }
}

static void release_all(struct walk *walk)
{
    struct topic *topic = NULL;
    while ((topic = catalog_next(walk->rig.broker, topic)) != NULL) {
        for (uint32_t i = 0; i < topic_partition_count(topic); i++) {
            struct partition *partition = topic_partition(topic, i);
            partition_set_high_watermark(partition, partition_durable(partition));
        }
    }
}

static void lead_anew(struct walk *walk)
{
    rig_follow(&walk->rig, 2, ++walk->epoch);
    rig_lead(&walk->rig, ++walk->epoch);
}

static void step_world(struct walk *walk)
{
    struct rig *rig = &walk->rig;
    switch (pick(walk, 8)) {
    case 0: rig->hold_high_watermark = !rig->hold_high_watermark; break;
    case 1:
        rig->view.in_sync_now = rig->view.in_sync_now == 3 ? 1 : 3;
        broker_view_changed(rig->broker);
        break;
    case 2: lead_anew(walk); break;
    case 3: broker_pause_produce(rig->broker, pick(walk, 2) == 0); break;
    case 4: stepped_loop_advance(&rig->fake, 700000); break;
    case 5: release_all(walk); break;
    default: stepped_loop_settle(&rig->fake); break;
    }
}

static void assert_nothing_is_open(struct walk *walk)
{
    struct rig *rig = &walk->rig;
    for (uint32_t i = 0; i < OPEN_MAX; i++) {
        assert_false(walk->calls[i].open);
        assert_false(walk->produces[i].open);
    }
    for (uint32_t id = 0; id < IDS; id++) {
        const struct transaction_value *value =
            broker_describe_transaction(rig->broker, rig_text(names[id]));
        if (value == NULL) continue;
        assert_true(value->status != TRANSACTION_ONGOING && !transaction_is_prepared(value));
        assert_int_equal(value->partitions.count, 0);
    }
    for (uint32_t i = 0; i < PARTITIONS; i++) {
        struct partition *partition = rig_partition(rig, "orders", i);
        assert_int_equal(partition_last_stable_offset(partition), partition_log_end(partition));
    }
}

static void walk_one(uint64_t seed)
{
    struct walk *walk = calloc(1, sizeof(*walk));
    struct rig *rig = &walk->rig;
    random_seed(&walk->random, seed);
    struct error error;
    memory_disk_init(&walk->disk);
    assert_int_equal(file_make_directory(&walk->disk.fs, "/data", &error), STATUS_OK);
    rig_init_on(rig, &walk->disk.fs, "/data");
    rig_start(rig);
    rig_lead(rig, walk->epoch = 1);
    rig_create(rig, "orders", PARTITIONS);
    for (uint32_t id = 0; id < IDS; id++) {
        walk->walkers[id].producer_id = walk->walkers[id].epoch = -1;
        walk->walkers[id].transaction_v2 = pick(walk, 2) == 0;
    }
    for (uint32_t step = 0; step < STEPS; step++) {
        uint32_t id = pick(walk, IDS);
        switch (pick(walk, 4)) {
        case 0:
        case 1: step_request(walk, id); break;
        case 2: step_produce(walk, id); break;
        default: step_world(walk); break;
        }
    }
    /* All is well again, and time passes. */
    rig->hold_high_watermark = false;
    rig->view.in_sync_now = 3;
    broker_view_changed(rig->broker);
    broker_pause_produce(rig->broker, false);
    release_all(walk);
    for (int i = 0; i < 12; i++) {
        stepped_loop_advance(&rig->fake, 1000000);
        stepped_loop_settle(&rig->fake);
    }
    assert_nothing_is_open(walk);
    rig_crash(rig);
    stepped_loop_drop(&rig->fake);
    memory_disk_deinit(&walk->disk);
    free(walk);
}

static void no_walk_leaves_a_transaction_or_a_request_open(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        walk_one(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_walk_leaves_a_transaction_or_a_request_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
