/* follow_rig.h: a follower over a real broker, with a leader that says what the test says.
 *
 * The follower is replica 2, its leader replica 1 in epoch EPOCH. Its two links are scripted: they
 * open at once, keep the request they were given, and answer when told to.                       */
#ifndef MOONMQ_TESTS_LIB_FOLLOW_RIG_H
#define MOONMQ_TESTS_LIB_FOLLOW_RIG_H

#include "base/json.h"
#include "lib/broker_rig.h"
#include "replication/follower.h"
#include "replication/wire_json.h"

#define EPOCH      7
#define MS         INT64_C(1000)
#define LINKS_MAX  8
#define ORDERS_UID "RERERERERERERERERERERA" /* 16 bytes 0x44 */
#define OTHER_UID  "VVVVVVVVVVVVVVVVVVVVVQ" /* 16 bytes 0x55 */

struct script;
struct scripted_link {
    struct rpc_link base;
    struct script *script;
    const struct rpc_link_handlers *handlers;
    void *context;
    bool open, freed;
    rpc_answer_fn answered; /* a call is in flight */
    void *answered_context;
    char path[64];
    struct buffer body;
    uint32_t calls;
};

struct script {
    struct rig rig;
    struct rpc_transport transport;
    struct scripted_link links[LINKS_MAX];
    uint32_t link_count;
    bool refuse_connections;
    struct replication_config config;
    struct follow *follow;
    uint64_t session;
    /* what the handlers heard */
    uint32_t not_leading, amnesia, alarms, heard, truncated;
    int32_t named_leader;
    int64_t named_epoch;
    int rewinding;
    uint64_t fetched;
    char alarm[32];
};

static struct uuid script_uuid(uint8_t byte)
{
    struct uuid uuid;
    memset(uuid.bytes, byte, sizeof(uuid.bytes));
    return uuid;
}

/* ---- links ---- */

static struct rpc_link *script_link_new(struct rpc_transport *transport, const char *address,
                                        const struct rpc_link_handlers *handlers, void *context)
{
    struct script *script = CONTAINER_OF(transport, struct script, transport);
    (void)address;
    assert_true(script->link_count < LINKS_MAX);
    struct scripted_link *link = &script->links[script->link_count++];
    *link = (struct scripted_link){
        .base.transport = transport, .script = script, .handlers = handlers, .context = context};
    buffer_init(&link->body, 0);
    return &link->base;
}

static void script_opened(void *context)
{
    struct scripted_link *link = context;
    if (link->freed) return;
    if (link->script->refuse_connections) {
        link->handlers->closed(link->context, &link->base, STATUS_REFUSED);
        return;
    }
    link->open = true;
    link->handlers->opened(link->context, &link->base);
}

static void script_link_connect(struct rpc_link *base)
{
    struct scripted_link *link = (struct scripted_link *)base;
    if (!link->open) loop_defer(&link->script->rig.fake.loop, script_opened, link);
}

static void script_link_call(struct rpc_link *base, const char *method, const char *path,
                             struct slice body, bool binary, int64_t timeout_us,
                             rpc_answer_fn answered, void *context)
{
    struct scripted_link *link = (struct scripted_link *)base;
    (void)method, (void)binary, (void)timeout_us;
    assert_true(link->open && link->answered == NULL);
    snprintf(link->path, sizeof(link->path), "%s", path + strlen("/replication/"));
    buffer_clear(&link->body);
    buffer_put(&link->body, body.data, body.bytes);
    link->answered = answered;
    link->answered_context = context;
    link->calls++;
}

static void script_link_free(struct rpc_link *base)
{
    struct scripted_link *link = (struct scripted_link *)base;
    link->freed = true;
    link->answered = NULL;
    buffer_deinit(&link->body);
}

static void script_link_close(struct rpc_link *base)
{
    (void)base;
}

static const struct rpc_transport_ops script_ops = {
    .link_new = script_link_new,
    .link_connect = script_link_connect,
    .link_call = script_link_call,
    .link_close = script_link_close,
    .link_free = script_link_free,
};

/* The links of the following that is under way: fetch first. */
static struct scripted_link *script_fetch(struct script *script)
{
    return &script->links[script->link_count - 2];
}

static struct scripted_link *script_progress(struct script *script)
{
    return &script->links[script->link_count - 1];
}

static void script_settle(struct script *script)
{
    stepped_loop_settle(&script->rig.fake);
}

static void script_pass(struct script *script, int64_t us)
{
    stepped_loop_advance(&script->rig.fake, us);
}

static void assert_asks(const struct scripted_link *link, const char *route)
{
    assert_non_null(link->answered);
    assert_string_equal(link->path, route);
}

static void assert_idle(const struct scripted_link *link)
{
    assert_null(link->answered);
}

static void script_answer(struct script *script, struct scripted_link *link, int status,
                          struct slice body)
{
    rpc_answer_fn answered = link->answered;
    assert_non_null(answered);
    link->answered = NULL;
    struct rpc_answer answer = {.status = status, .body = body};
    answered(link->answered_context, &answer);
    script_settle(script);
}

/* The connection breaks, with a call in flight or not. */
static void script_break(struct script *script, struct scripted_link *link)
{
    if (link->answered != NULL) {
        rpc_answer_fn answered = link->answered;
        link->answered = NULL;
        struct rpc_answer answer = {.status = 0, .failure = STATUS_CLOSED};
        answered(link->answered_context, &answer);
    }
    link->open = false;
    if (!link->freed) link->handlers->closed(link->context, &link->base, STATUS_CLOSED);
    script_settle(script);
}

static void script_refuse(struct script *script, struct scripted_link *link, int status,
                          const char *error)
{
    struct buffer body;
    buffer_init(&body, 0);
    wire_put_refusal(&body, error, "because", 3, EPOCH + 1, -1);
    script_answer(script, link, status, buffer_slice(&body));
    buffer_deinit(&body);
}

/* ---- the follower's handlers ---- */

static void script_not_leading(void *context, int32_t leader, int64_t epoch)
{
    struct script *script = context;
    script->not_leading++;
    script->named_leader = leader;
    script->named_epoch = epoch;
}

static void script_amnesia(void *context)
{
    ((struct script *)context)->amnesia++;
}

static void script_alarm(void *context, const char *kind, const char *text)
{
    struct script *script = context;
    (void)text;
    script->alarms++;
    snprintf(script->alarm, sizeof(script->alarm), "%s", kind);
}

static void script_heard(void *context, bool in_isr, bool handing_over)
{
    (void)in_isr, (void)handing_over;
    ((struct script *)context)->heard++;
}

static void script_truncated(void *context)
{
    ((struct script *)context)->truncated++;
}

static void script_rewinding(void *context, int change)
{
    ((struct script *)context)->rewinding += change;
}

static void script_fetched(void *context, uint64_t records)
{
    ((struct script *)context)->fetched += records;
}

/* What the broker says of partitions goes to the follower, as the node would pass it on. */
static void script_partition_added(void *context, struct partition *partition)
{
    struct script *script = context;
    if (script->follow != NULL) follow_partition_added(script->follow, partition);
}

static void script_partition_removed(void *context, struct partition *partition)
{
    struct script *script = context;
    if (script->follow != NULL) follow_partition_removed(script->follow, partition);
}

static void script_partition_durable(void *context, struct partition *partition)
{
    struct script *script = context;
    if (script->follow != NULL) follow_durable(script->follow, partition);
}

static void script_partition_failed(void *context, struct partition *partition,
                                    const struct error *error)
{
    struct script *script = context;
    (void)error;
    if (script->follow != NULL) follow_failed(script->follow, partition);
}

static void script_begin(struct script *script, int32_t epoch)
{
    struct follow_options options = {
        .broker = script->rig.broker,
        .loop = &script->rig.fake.loop,
        .transport = &script->transport,
        .config = &script->config,
        .self_id = 2,
        .leader_id = 1,
        .leader_address = "leader:9095",
        .epoch = epoch,
        .group = script_uuid(0x11),
        .incarnation = script_uuid(0x22),
        .leader_incarnation = script_uuid(0x33),
        .members_text = "a1a2a3a4a5a6a7a8",
        .random_seed = 3,
        .handlers = {script_not_leading, script_amnesia, script_alarm, script_heard,
                     script_truncated, script_rewinding, script_fetched, script},
    };
    script->follow = follow_new(&options);
    script_settle(script);
}

static void script_end(struct script *script)
{
    struct follow *follow = script->follow;
    script->follow = NULL;
    follow_free(follow, false);
    script_settle(script);
}

/* A broker with an empty DataDir that begins to follow. */
static struct script *script_new(void)
{
    struct script *script = calloc(1, sizeof(*script));
    struct rig *rig = &script->rig;
    rig_init(rig);
    script->transport.ops = &script_ops;
    replication_config_default(&script->config, 3);
    const struct broker_options options = {.fs = rig->fs,
                                           .executor = &rig->fake.executor,
                                           .loop = &rig->fake.loop,
                                           .data_dir = rig->directory,
                                           .random_seed = 42,
                                           .settings = rig->settings};
    const struct group_port port = {.view = rig_view,
                                    .appended = rig_appended,
                                    .partition_changed = rig_changed,
                                    .manifest_changed = rig_manifest_changed,
                                    .confirm = rig_confirm,
                                    .transfer = rig_transfer,
                                    .forward = rig_forward,
                                    .status = rig_status,
                                    .context = rig};
    const struct broker_handlers handlers = {.partition_added = script_partition_added,
                                             .partition_removed = script_partition_removed,
                                             .partition_durable = script_partition_durable,
                                             .partition_failed = script_partition_failed,
                                             .alarm = script_alarm,
                                             .context = script};
    rig->view.self_id = 2;
    rig->broker = broker_new(&options);
    broker_set_group(rig->broker, &port, &handlers);
    broker_start(rig->broker, rig_started, rig);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(rig->start_status, STATUS_OK);
    script_begin(script, EPOCH);
    return script;
}

static void script_free(struct script *script)
{
    if (script->follow != NULL) script_end(script);
    assert_int_equal(script->rewinding, 0);
    rig_deinit(&script->rig);
    free(script);
}

/* ---- what the leader says ---- */

/* The id block of an answer to the JSON request that `link` holds. */
static void script_put_id(const struct scripted_link *link, struct buffer *out)
{
    json_t *root = NULL;
    struct raft_id id;
    struct error error;
    char group[UUID_TEXT_BYTES], mine[UUID_TEXT_BYTES], theirs[UUID_TEXT_BYTES];
    struct uuid bytes[3] = {script_uuid(0x11), script_uuid(0x33), script_uuid(0x22)};
    assert_int_equal(json_parse(link->body.data, link->body.bytes, &root, &error), STATUS_OK);
    assert_int_equal(raft_id_decode(root, &id, &error), STATUS_OK);
    assert_int_equal(id.from, 2);
    assert_int_equal(id.to, 1);
    json_decref(root);
    buffer_printf(out,
                  "\"id\":{\"v\":1,\"group\":\"%s\",\"from\":1,\"incarnation\":\"%s\",\"to\":2,"
                  "\"to_incarnation\":\"%s\",\"members\":\"a1a2a3a4a5a6a7a8\",\"rid\":%llu}",
                  uuid_format(&bytes[0], group), uuid_format(&bytes[1], mine),
                  uuid_format(&bytes[2], theirs), (unsigned long long)id.rid);
}

#define ORDERS_TOPIC                             \
    "{\"name\":\"orders\",\"uid\":\"" ORDERS_UID \
    "\",\"partitions\":1,\"internal\":false,\"config\":{},\"since\":[7,1]}"
#define OTHER_TOPIC                            \
    "{\"name\":\"other\",\"uid\":\"" OTHER_UID \
    "\",\"partitions\":1,\"internal\":false,\"config\":{},\"since\":[7,2]}"

static void script_send_manifest(struct script *script, int32_t epoch, int64_t n,
                                 const char *topics)
{
    struct scripted_link *link = script_fetch(script);
    struct buffer body;
    assert_asks(link, "manifest");
    buffer_init(&body, 0);
    buffer_put_string(&body, "{");
    script_put_id(link, &body);
    buffer_printf(&body,
                  ",\"epoch\":%d,\"version\":[%d,%lld],\"committed\":[%d,0],\"more\":false,"
                  "\"topics\":[%s],\"tombstones\":[]}",
                  epoch, epoch, (long long)n, epoch, topics);
    script_answer(script, link, 200, buffer_slice(&body));
    buffer_deinit(&body);
}

/* Answers one question of the epochs request, about orders/0. */
static void script_send_epochs(struct script *script, int32_t leader_epoch, int64_t asked_epoch,
                               int64_t asked_end, int64_t epoch, int64_t end, int64_t begin)
{
    struct scripted_link *link = script_fetch(script);
    struct wire_list list;
    struct raft_id id;
    int64_t of_epoch;
    struct wire_epoch_question question;
    struct error error;
    struct buffer body;
    assert_asks(link, "epochs");
    assert_int_equal(wire_list_open(&list, buffer_slice(&link->body), &id, &of_epoch, &error),
                     STATUS_OK);
    assert_int_equal(of_epoch, leader_epoch);
    assert_int_equal(wire_list_count(&list), 1);
    assert_int_equal(wire_list_get_question(&list, 0, true, &question, &error), STATUS_OK);
    wire_list_close(&list);
    assert_int_equal(question.epoch, asked_epoch);
    assert_int_equal(question.offset, asked_end);
    buffer_init(&body, 0);
    buffer_put_string(&body, "{");
    script_put_id(link, &body);
    buffer_printf(&body,
                  ",\"epoch\":%d,\"partitions\":[{\"u\":\"" ORDERS_UID "\",\"p\":0,\"e\":%lld,"
                  "\"end\":%lld,\"start\":0,\"hw\":0,\"begin\":%lld}]}",
                  leader_epoch, (long long)epoch, (long long)end, (long long)begin);
    script_answer(script, link, 200, buffer_slice(&body));
    buffer_deinit(&body);
}

/* A fetch or progress request that `link` holds. */
struct told {
    struct wire_request_header header;
    struct wire_request_entry entries[8];
};

static struct told script_told(const struct scripted_link *link)
{
    struct told told;
    struct reader entries;
    struct error error;
    assert_non_null(link->answered);
    assert_int_equal(wire_open_request(buffer_slice(&link->body), &told.header, &entries, &error),
                     STATUS_OK);
    assert_true(told.header.entry_count <= 8);
    for (uint32_t i = 0; i < told.header.entry_count; i++) {
        assert_int_equal(wire_next_request_entry(&entries, &told.entries[i], &error), STATUS_OK);
    }
    return told;
}

struct reply {
    uint16_t flags;
    uint64_t session; /* 0: as asked */
    struct manifest_version version;
    struct wire_answer_entry entries[4];
    uint32_t entry_count;
    const struct shared_bytes *records;
};

static void script_reply(struct script *script, struct scripted_link *link,
                         const struct reply *reply)
{
    struct told told = script_told(link);
    struct wire_answer_header header = {
        .kind = told.header.kind,
        .flags = reply->flags,
        .from = 1,
        .to = 2,
        .epoch = told.header.epoch,
        .entry_count = reply->entry_count,
        .session = reply->session != 0 ? reply->session : told.header.session,
        .seq = told.header.seq,
        .group = script_uuid(0x11),
        .from_incarnation = script_uuid(0x33),
        .to_incarnation = script_uuid(0x22),
        .version = reply->version.n != 0 ? reply->version : told.header.applied,
        .committed = {-1, 0},
        .min_insync = 2,
        .data_bytes = reply->records == NULL ? 0 : (uint32_t)reply->records->bytes,
    };
    struct buffer body;
    buffer_init(&body, 0);
    wire_put_answer_header(&body, &header);
    for (uint32_t i = 0; i < reply->entry_count; i++)
        wire_put_answer_entry(&body, &reply->entries[i]);
    wire_put_crc(&body, 0);
    if (reply->records != NULL) buffer_put(&body, reply->records->data, reply->records->bytes);
    script_answer(script, link, 200, buffer_slice(&body));
    buffer_deinit(&body);
}

/* One batch of `count` records at `offset`, as the leader has it. */
static struct shared_bytes *script_batch(struct script *script, int64_t offset, uint32_t count,
                                         int32_t epoch)
{
    struct shared_bytes *batch = rig_batch(&script->rig, "value", count, -1, -1);
    batch_set_base_offset(batch->data, offset);
    batch_set_leader_epoch(batch->data, epoch);
    return batch;
}

/* Answers the parked fetch with a batch for orders/0. */
static void script_send_batch(struct script *script, int64_t offset, uint32_t count, int32_t epoch,
                              int64_t high_watermark)
{
    struct told told = script_told(script_fetch(script));
    struct shared_bytes *batch = script_batch(script, offset, count, epoch);
    struct reply reply = {.session = script->session,
                          .entry_count = 1,
                          .entries = {{.slot = 0,
                                       .kind = WIRE_DATA,
                                       .high_watermark = high_watermark,
                                       .offset = offset,
                                       .epoch = epoch,
                                       .bytes = (uint32_t)batch->bytes}},
                          .records = batch};
    (void)told;
    script_reply(script, script_fetch(script), &reply);
    shared_bytes_unref(batch);
}

static void script_send_entry(struct script *script, const struct wire_answer_entry *entry)
{
    struct reply reply = {.session = script->session, .entry_count = 1, .entries = {*entry}};
    script_reply(script, script_fetch(script), &reply);
}

/* Answers the OPEN that waits. */
static void script_open(struct script *script)
{
    struct told told = script_told(script_fetch(script));
    assert_true(told.header.flags & WIRE_OPEN);
    assert_int_equal(told.header.session, 0);
    script->session = 0xabc0 + script_fetch(script)->calls;
    struct reply reply = {.flags = WIRE_OPENED | WIRE_IN_ISR, .session = script->session};
    script_reply(script, script_fetch(script), &reply);
}

/* From nothing to an open session on the topic orders. */
static struct script *script_following(void)
{
    struct script *script = script_new();
    script_send_manifest(script, EPOCH, 1, ORDERS_TOPIC);
    script_send_epochs(script, EPOCH, -1, 0, -1, 0, 0);
    script_open(script);
    return script;
}

static struct partition *script_orders(struct script *script)
{
    return rig_partition(&script->rig, "orders", 0);
}

#endif
