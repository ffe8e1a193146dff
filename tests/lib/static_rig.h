/* static_rig.h: a static leader and one follower, two brokers with a wire of the test's own between
 * them: it can be cut, and answers can be lost on it. */
#ifndef MOONMQ_TESTS_LIB_STATIC_RIG_H
#define MOONMQ_TESTS_LIB_STATIC_RIG_H

#include "lib/broker_rig.h"
#include "lib/memory_disk.h"
#include "replication/static_follower.h"
#include "replication/static_leader.h"
#include "replication/static_rules.h"
#include "replication/static_wire.h"

#define WIRES_MAX 400

struct wire {
    struct rpc_link base; /* first */
    struct pair *pair;
    const struct rpc_link_handlers *handlers;
    void *context;
    bool wanted, open, freed, called;
    char fields[1024];
    struct buffer body;
    rpc_answer_fn answered;
    void *answered_context;
};
/* A request on its way, and its answer. */
struct arrival {
    struct rpc_request base; /* first */
    char fields[1024];
    bool answered;
    int status;
    struct buffer answer;
};
struct pair {
    struct memory_disk disks[2];
    struct rig leader_rig, follower_rig;
    struct rpc_transport transport; /* the leader's, and the follower's requests' */
    struct replication_config config;
    struct wire wires[WIRES_MAX];
    uint32_t wire_count;
    bool away;        /* connections are refused */
    bool lose_answer; /* the next one; its connection breaks */
    int cut_after;    /* the follower loses power so many disk operations into the next push */
    struct static_leader *leader;
    struct static_follower *follower;
    uint32_t pushes; /* with records */
    uint32_t alarms;
    enum node_alarm last_alarm;
    char last_text[300];
    uint32_t copied_calls;
};

/* ---- the wire ---- */

static struct rpc_link *wire_link_new(struct rpc_transport *transport, const char *address,
                                      const struct rpc_link_handlers *handlers, void *context)
{
    struct pair *pair = CONTAINER_OF(transport, struct pair, transport);
    (void)address;
    assert_true(pair->wire_count < WIRES_MAX);
    struct wire *wire = &pair->wires[pair->wire_count++];
    *wire = (struct wire){
        .base.transport = transport, .pair = pair, .handlers = handlers, .context = context};
    buffer_init(&wire->body, 0);
    return &wire->base;
}

static void wire_connect(struct rpc_link *base)
{
    ((struct wire *)base)->wanted = true;
}

static void wire_call(struct rpc_link *base, const char *method, const char *path,
                      struct slice body, bool binary, int64_t timeout_us, rpc_answer_fn answered,
                      void *context)
{
    struct wire *wire = (struct wire *)base;
    assert_string_equal(method, "POST");
    assert_string_equal(path, "/replicate");
    assert_true(binary && timeout_us > 0 && wire->open && !wire->called);
    buffer_clear(&wire->body);
    if (body.bytes > 0) buffer_put(&wire->body, body.data, body.bytes);
    wire->answered = answered;
    wire->answered_context = context;
    wire->called = true;
    if (body.bytes > 0) wire->pair->pushes++;
}

static void wire_fields(struct rpc_link *base, const char *fields)
{
    snprintf(((struct wire *)base)->fields, sizeof(((struct wire *)base)->fields), "%s", fields);
}

static void wire_close(struct rpc_link *base)
{
    (void)base;
}

static void wire_free(struct rpc_link *base)
{
    struct wire *wire = (struct wire *)base;
    wire->freed = true;
    buffer_deinit(&wire->body);
}

/* The value of a field in lines "Name: value\r\n"; the last few results stay. */
static const char *field_in(const char *fields, const char *name)
{
    static char values[8][300];
    static uint32_t next;
    char *value = values[next++ % 8];
    size_t name_bytes = strlen(name);
    for (const char *line = fields; *line != '\0';) {
        const char *end = strstr(line, "\r\n");
        assert_non_null(end);
        if (strncmp(line, name, name_bytes) == 0 && strncmp(line + name_bytes, ": ", 2) == 0) {
            snprintf(value, sizeof(values[0]), "%.*s", (int)(end - line - (int)name_bytes - 2),
                     line + name_bytes + 2);
            return value;
        }
        line = end + 2;
    }
    return NULL;
}

static const char *arrival_field(const struct rpc_request *base, const char *name)
{
    return field_in(((const struct arrival *)base)->fields, name);
}

static void arrival_answer(struct rpc_request *base, int status, bool binary,
                           const struct slice *parts, size_t part_count)
{
    struct arrival *arrival = (struct arrival *)base;
    (void)binary;
    assert_false(arrival->answered);
    arrival->answered = true;
    arrival->status = status;
    for (size_t i = 0; i < part_count; i++)
        buffer_put(&arrival->answer, parts[i].data, parts[i].bytes);
}

static void arrival_answer_text(struct rpc_request *base, int status, const char *text)
{
    struct slice part = {(const uint8_t *)text, strlen(text)};
    arrival_answer(base, status, false, &part, 1);
}

static const struct rpc_transport_ops wire_ops = {
    .link_new = wire_link_new,
    .link_connect = wire_connect,
    .link_call = wire_call,
    .link_close = wire_close,
    .link_free = wire_free,
    .answer = arrival_answer,
    .link_fields = wire_fields,
    .request_field = arrival_field,
    .answer_text = arrival_answer_text,
};

/* One push as it comes over HTTP; the caller gives the answer's buffer back. */
static struct arrival pair_push(struct pair *pair, const char *fields, struct slice body)
{
    struct arrival arrival = {.base.transport = &pair->transport};
    snprintf(arrival.fields, sizeof(arrival.fields), "%s", fields);
    buffer_init(&arrival.answer, 0);
    static_follower_push(pair->follower, &arrival.base, body);
    for (int i = 0; i < 100 && !arrival.answered; i++) {
        stepped_loop_settle(&pair->follower_rig.fake);
        static_follower_tick(pair->follower, pair->follower_rig.fake.now_us);
    }
    assert_true(arrival.answered);
    return arrival;
}

static void wire_break(struct wire *wire, enum status why)
{
    wire->open = false;
    if (wire->called) {
        struct rpc_answer answer = {.status = 0, .failure = STATUS_CLOSED};
        wire->called = false;
        wire->answered(wire->answered_context, &answer);
    }
    if (!wire->freed) wire->handlers->closed(wire->context, &wire->base, why);
}

static void pair_crash_follower(struct pair *pair, bool power);

/* The follower loses power in the midst of a push: from there on its disk takes nothing. */
static void wire_cut(struct pair *pair, struct wire *wire)
{
    struct arrival arrival = {.base.transport = &pair->transport};
    snprintf(arrival.fields, sizeof(arrival.fields), "%s", wire->fields);
    buffer_init(&arrival.answer, 0);
    struct memory_disk *disk = &pair->disks[1];
    disk->fail_at = disk->operations + 1 + (uint64_t)pair->cut_after;
    disk->fail_with = STATUS_IO;
    disk->fail_for_ever = true;
    pair->cut_after = -1;
    static_follower_push(pair->follower, &arrival.base, buffer_slice(&wire->body));
    stepped_loop_settle(&pair->follower_rig.fake);
    pair_crash_follower(pair, true);
    buffer_deinit(&arrival.answer);
    wire_break(wire, STATUS_CLOSED);
}

static void wire_deliver(struct pair *pair, struct wire *wire)
{
    if (pair->cut_after >= 0) {
        wire_cut(pair, wire);
        return;
    }
    struct arrival arrival = pair_push(pair, wire->fields, buffer_slice(&wire->body));
    if (pair->lose_answer) {
        pair->lose_answer = false;
        wire_break(wire, STATUS_CLOSED);
    } else {
        struct rpc_answer answer = {.status = arrival.status,
                                    .body = buffer_slice(&arrival.answer)};
        wire->called = false;
        wire->answered(wire->answered_context, &answer);
    }
    buffer_deinit(&arrival.answer);
}

/* One thing on the wire; false: nothing is to be done. */
static bool wire_step(struct pair *pair)
{
    for (uint32_t i = 0; i < pair->wire_count; i++) {
        struct wire *wire = &pair->wires[i];
        if (wire->freed) continue;
        if (wire->wanted) {
            wire->wanted = false;
            wire->open = !pair->away;
            if (wire->open)
                wire->handlers->opened(wire->context, &wire->base);
            else
                wire->handlers->closed(wire->context, &wire->base, STATUS_REFUSED);
            return true;
        }
        if (wire->open && pair->away) {
            wire_break(wire, STATUS_CLOSED);
            return true;
        }
        if (wire->called) {
            wire_deliver(pair, wire);
            return true;
        }
    }
    return false;
}

/* `us` go by at both ends, in steps of 20 ms. */
static void pair_run(struct pair *pair, int64_t us)
{
    for (int64_t gone = 0; gone <= us; gone += 20000) {
        do {
            stepped_loop_settle(&pair->leader_rig.fake);
            if (pair->follower != NULL) stepped_loop_settle(&pair->follower_rig.fake);
        } while (wire_step(pair));
        pair->leader_rig.fake.now_us += 20000;
        pair->follower_rig.fake.now_us += 20000;
        static_leader_tick(pair->leader);
        if (pair->follower != NULL) {
            static_follower_tick(pair->follower, pair->follower_rig.fake.now_us);
        }
    }
}

/* ---- the two brokers ---- */

static struct pair *pair_of(struct rig *rig, bool leader)
{
    return leader ? CONTAINER_OF(rig, struct pair, leader_rig)
                  : CONTAINER_OF(rig, struct pair, follower_rig);
}

static void leader_partition_durable(void *context, struct partition *partition)
{
    struct pair *pair = pair_of(context, true);
    rig_partition_durable(context, partition);
    if (pair->leader != NULL) static_leader_durable(pair->leader, partition);
}

static void leader_partition_came(void *context, struct partition *partition)
{
    struct pair *pair = pair_of(context, true);
    if (pair->leader != NULL) static_leader_partition_added(pair->leader, partition);
}

static void leader_partition_went(void *context, struct partition *partition)
{
    struct pair *pair = pair_of(context, true);
    if (pair->leader != NULL) static_leader_partition_removed(pair->leader, partition);
}

static void follower_partition_durable(void *context, struct partition *partition)
{
    struct pair *pair = pair_of(context, false);
    rig_partition_durable(context, partition);
    if (pair->follower != NULL) static_follower_durable(pair->follower, partition);
}

static void follower_partition_failed(void *context, struct partition *partition,
                                      const struct error *error)
{
    struct pair *pair = pair_of(context, false);
    rig_partition_failed(context, partition, error);
    if (pair->follower != NULL) static_follower_failed(pair->follower, partition);
}

static void follower_partition_went(void *context, struct partition *partition)
{
    struct pair *pair = pair_of(context, false);
    if (pair->follower != NULL) static_follower_partition_removed(pair->follower, partition);
}

static int64_t rig_pushed_to(void *context, const struct partition *partition)
{
    struct pair *pair = pair_of(context, true);
    return pair->leader == NULL ? INT64_MAX : static_leader_copied_to(pair->leader, partition);
}

/* As rig_start(), with the handlers of the pair. */
static void pair_open_rig(struct rig *rig, bool leader)
{
    const struct broker_options options = {.fs = rig->fs,
                                           .executor = &rig->fake.executor,
                                           .loop = &rig->fake.loop,
                                           .data_dir = rig->directory,
                                           .random_seed = leader ? 42 : 43,
                                           .settings = rig->settings};
    const struct group_port port = {.view = rig_view,
                                    .appended = rig_appended,
                                    .partition_changed = rig_changed,
                                    .pushed_to = leader ? rig_pushed_to : NULL,
                                    .manifest_changed = rig_manifest_changed,
                                    .confirm = rig_confirm,
                                    .transfer = rig_transfer,
                                    .forward = rig_forward,
                                    .status = rig_status,
                                    .context = rig};
    const struct broker_handlers handlers = {
        .partition_added = leader ? leader_partition_came : rig_partition_added,
        .partition_removed = leader ? leader_partition_went : follower_partition_went,
        .partition_durable = leader ? leader_partition_durable : follower_partition_durable,
        .partition_failed = leader ? rig_partition_failed : follower_partition_failed,
        .alarm = rig_alarm,
        .context = rig,
    };
    rig->started = false;
    rig->promoted = -1;
    rig->broker = broker_new(&options);
    broker_set_group(rig->broker, &port, &handlers);
    broker_start(rig->broker, rig_started, rig);
    stepped_loop_settle(&rig->fake);
    assert_true(rig->started);
    assert_int_equal(rig->start_status, STATUS_OK);
}

static void pair_started(void *context, enum status status, const struct error *error)
{
    (void)error;
    assert_int_equal(status, STATUS_OK);
    *(bool *)context = true;
}

static void pair_follower_begin(struct pair *pair);

static void pair_appended(void *context, struct partition *partition)
{
    (void)context, (void)partition;
}

static void pair_follower_begin(struct pair *pair)
{
    struct rig *rig = &pair->follower_rig;
    bool started = false;
    const struct static_follower_options options = {.broker = rig->broker,
                                                    .executor = &rig->fake.executor,
                                                    .fs = rig->fs,
                                                    .data_dir = rig->directory,
                                                    .appended = pair_appended};
    pair->follower = static_follower_new(&options);
    static_follower_start(pair->follower, pair_started, &started);
    stepped_loop_settle(&rig->fake);
    assert_true(started);
}

/* The follower's process dies, and comes back on the same DataDir. */
static void pair_crash_follower(struct pair *pair, bool power)
{
    static int32_t epoch = 1;
    struct rig *rig = &pair->follower_rig;
    static_follower_free(pair->follower);
    pair->follower = NULL;
    rig_crash(rig);
    pair->disks[1].fail_at = 0;
    if (power) memory_disk_power_cut(&pair->disks[1]);
    rig->view.leader_id = -1;
    rig->view.serving = false;
    pair_open_rig(rig, false);
    rig_lead(rig, ++epoch);
    pair_follower_begin(pair);
}

static void pair_copied(void *context, struct partition *partition)
{
    ((struct pair *)context)->copied_calls++;
    partition_copies_moved(partition);
}

static void pair_alarm(void *context, enum node_alarm kind, const char *text)
{
    struct pair *pair = context;
    pair->alarms++;
    pair->last_alarm = kind;
    snprintf(pair->last_text, sizeof(pair->last_text), "%s", text);
}

static void pair_leader_begin(struct pair *pair)
{
    const struct static_leader_options options = {.broker = pair->leader_rig.broker,
                                                  .loop = &pair->leader_rig.fake.loop,
                                                  .transport = &pair->transport,
                                                  .config = &pair->config,
                                                  .handlers = {pair_copied, pair_alarm, pair}};
    pair->leader = static_leader_new(&options);
}

/* The leader's process ends and begins again. */
static void pair_restart_leader(struct pair *pair, bool power)
{
    static int32_t epoch = 1;
    struct rig *rig = &pair->leader_rig;
    static_leader_free(pair->leader);
    pair->leader = NULL;
    rig_crash(rig);
    if (power) memory_disk_power_cut(&pair->disks[0]);
    rig->view.leader_id = -1;
    rig->view.serving = false;
    pair_open_rig(rig, true);
    rig_lead(rig, ++epoch);
    pair_leader_begin(pair);
}

static struct pair *pair_new(int64_t lag_max)
{
    struct pair *pair = calloc(1, sizeof(*pair));
    struct rig *rigs[] = {&pair->leader_rig, &pair->follower_rig};
    pair->transport.ops = &wire_ops;
    pair->cut_after = -1;
    replication_config_default(&pair->config, 1);
    pair->config.replica_id = 1;
    pair->config.pushes = true;
    pair->config.lag_max = lag_max;
    pair->config.follower_count = 1;
    pair->config.followers[0].id = 2;
    snprintf(pair->config.followers[0].address, sizeof(pair->config.followers[0].address),
             "follower:9095");
    for (int i = 0; i < 2; i++) {
        struct error error;
        memory_disk_init(&pair->disks[i]);
        assert_int_equal(file_make_directory(&pair->disks[i].fs, "/data", &error), STATUS_OK);
        assert_int_equal(file_sync_directory(&pair->disks[i].fs, "/", &error), STATUS_OK);
        rig_init_on(rigs[i], &pair->disks[i].fs, "/data");
        rigs[i]->settings.internal_partitions = 1;
        rigs[i]->settings.unstamped = true;
        rigs[i]->view.member_count = 1;
        rigs[i]->view.min_insync = rigs[i]->view.in_sync_now = 1;
        pair_open_rig(rigs[i], i == 0);
        rig_lead(rigs[i], 1);
    }
    pair_follower_begin(pair);
    pair_leader_begin(pair);
    return pair;
}

static void pair_free(struct pair *pair)
{
    static_leader_free(pair->leader);
    static_follower_free(pair->follower);
    rig_crash(&pair->leader_rig);
    rig_crash(&pair->follower_rig);
    for (int i = 0; i < 2; i++)
        memory_disk_deinit(&pair->disks[i]);
    free(pair);
}

static struct partition *at_leader(struct pair *pair)
{
    return rig_partition(&pair->leader_rig, "orders", 0);
}

static struct partition *at_follower(struct pair *pair)
{
    return rig_partition(&pair->follower_rig, "orders", 0);
}

/* Appended at the leader, and durable there. */
static void pair_write(struct pair *pair, const char *text, uint32_t count)
{
    struct rig_produce sent;
    rig_send(&pair->leader_rig, &sent, at_leader(pair), ACKS_LEADER,
             rig_batch(&pair->leader_rig, text, count, -1, -1));
    stepped_loop_settle(&pair->leader_rig.fake);
    assert_int_equal(sent.calls, 1);
    assert_int_equal(sent.produce.status, STATUS_OK);
}

static void values_read(void *context, struct log_read *read)
{
    (void)context, (void)read;
}

/* All values of the partition, blanks between them. */
static const char *pair_values(struct pair *pair, struct partition *partition)
{
    static char text[4096];
    struct log_read read = {.limit_offset = partition_log_end(partition),
                            .offset = partition_log_start(partition),
                            .bytes_max = 1 << 20,
                            .at_least_one = true,
                            .done = values_read};
    size_t at = 0;
    text[0] = '\0';
    if (partition_log_read(partition_log_of(partition), &read) == STATUS_AGAIN) {
        stepped_loop_settle(&pair->leader_rig.fake);
        stepped_loop_settle(&pair->follower_rig.fake);
    }
    assert_int_equal(read.status, STATUS_OK);
    for (uint32_t i = 0; i < read.piece_count; i++) {
        const uint8_t *data = read.pieces[i].shared->data + read.pieces[i].at;
        for (size_t left = read.pieces[i].bytes; left > 0;) {
            struct record_iterator iterator;
            struct record record;
            struct error error;
            assert_int_equal(record_iterator_init(&iterator, data, left, 1 << 20, &error),
                             STATUS_OK);
            assert_true(batch_crc_matches(data, &iterator.header));
            assert_int_equal(iterator.header.leader_epoch, -1);
            while (record_iterator_next(&iterator, &record, &error) == STATUS_OK) {
                at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%.*s", at == 0 ? "" : " ",
                                       (int)record.value.bytes, (const char *)record.value.data);
            }
            data += iterator.header.batch_bytes;
            left -= iterator.header.batch_bytes;
            record_iterator_deinit(&iterator);
        }
    }
    log_read_release(&read);
    return text;
}

static struct static_follower_facts pair_facts(struct pair *pair)
{
    struct static_follower_facts facts;
    assert_true(static_leader_follower(pair->leader, 0, &facts));
    return facts;
}

#endif
