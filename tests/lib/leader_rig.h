/* leader_rig.h: a leader object over a real broker, with followers that say what the test says.
 *
 * Three members, ids 1 to 3; the leader is 1 (index 0). Topic "orders" of two partitions and the
 * two internal ones: slot 0 and 1 are orders/0 and orders/1, 2 and 3 the internal ones. */
#ifndef MOONMQ_TESTS_LIB_LEADER_RIG_H
#define MOONMQ_TESTS_LIB_LEADER_RIG_H

#include "lib/broker_rig.h"
#include "replication/leader.h"

#define EPOCH 7
#define MS    INT64_C(1000)
#define SLOTS 4
#define ASKED 16 /* requests kept */

struct asked {
    struct rpc_request base;
    bool answered;
    int status;
    struct buffer body;
    struct wire_answer_header header; /* of a 200 answer */
    struct reader entries;
    struct slice records;
};

struct bench {
    struct rig rig;
    struct replication_config config;
    struct leader *leader;
    struct leader_group group;
    struct rpc_transport transport;
    struct asked *asked[64];
    uint32_t asked_count;
    uint64_t seq;
    /* what the handlers heard */
    uint32_t proposals;
    uint32_t proposed_member;
    bool proposed_into, refuse_proposals;
    enum isr_why proposed_why;
    uint32_t in_sync_changes, conflicts, corrupt, alarms;
    char alarm[32];
    struct manifest_version committed;
};

static const int32_t bench_ids[3] = {1, 2, 3};

static struct uuid bench_uuid(uint8_t byte)
{
    struct uuid uuid;
    memset(uuid.bytes, byte, sizeof(uuid.bytes));
    return uuid;
}

static void bench_answer(struct rpc_request *request, int status, bool binary,
                         const struct slice *parts, size_t part_count)
{
    struct asked *asked = (struct asked *)request;
    (void)binary;
    assert_false(asked->answered);
    asked->answered = true;
    asked->status = status;
    for (size_t i = 0; i < part_count; i++)
        buffer_put(&asked->body, parts[i].data, parts[i].bytes);
    if (status != 200) return;
    struct error error;
    assert_int_equal(wire_open_answer(buffer_slice(&asked->body), &asked->header, &asked->entries,
                                      &asked->records, &error),
                     STATUS_OK);
}

static const struct rpc_transport_ops bench_ops = {.answer = bench_answer};

static bool bench_propose(void *context, uint32_t member, bool into, enum isr_why why)
{
    struct bench *bench = context;
    if (bench->refuse_proposals) return false;
    bench->proposals++;
    bench->proposed_member = member;
    bench->proposed_into = into;
    bench->proposed_why = why;
    bench->group.change_pending = true;
    if (into) bench->group.waited_mask |= 1u << member;
    leader_set_group(bench->leader, &bench->group);
    return true;
}

static void bench_in_sync_changed(void *context)
{
    struct bench *bench = context;
    bench->in_sync_changes++;
    bench->rig.view.in_sync_now = __builtin_popcount(leader_in_sync_now(bench->leader));
}

static void bench_committed(void *context, struct manifest_version committed)
{
    ((struct bench *)context)->committed = committed;
}

static void bench_conflict(void *context, uint32_t member, struct partition *partition)
{
    (void)member, (void)partition;
    ((struct bench *)context)->conflicts++;
}

static void bench_corrupt(void *context, struct partition *partition)
{
    (void)partition;
    ((struct bench *)context)->corrupt++;
}

static void bench_alarm(void *context, const char *kind, const char *text)
{
    struct bench *bench = context;
    (void)text;
    bench->alarms++;
    snprintf(bench->alarm, sizeof(bench->alarm), "%s", kind);
}

/* The pending change is known committed: `isr` is recorded and waited for. */
static void bench_commit_isr(struct bench *bench, uint32_t isr)
{
    bench->group.isr_mask = bench->group.waited_mask = isr;
    bench->group.change_pending = false;
    leader_set_group(bench->leader, &bench->group);
}

/* cache_bytes_max 0: the default. */
static struct bench *bench_new_with_cache(size_t cache_bytes_max)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    struct rig *rig = &bench->rig;
    rig_init(rig);
    rig->settings.internal_partitions = 1;
    if (cache_bytes_max > 0) rig->settings.cache_bytes_max = cache_bytes_max;
    rig->hold_high_watermark = true;
    rig_start(rig);
    rig_lead(rig, EPOCH);
    rig_create(rig, "orders", 2);
    replication_config_default(&bench->config, 3);
    bench->transport.ops = &bench_ops;
    struct leader_options options = {
        .broker = rig->broker,
        .loop = &rig->fake.loop,
        .config = &bench->config,
        .epoch = EPOCH,
        .member_ids = bench_ids,
        .member_count = 3,
        .self = 0,
        .group = bench_uuid(0x99),
        .incarnation = bench_uuid(1),
        .random_seed = 5,
        .handlers = {bench_propose, bench_in_sync_changed, bench_committed, bench_conflict,
                     bench_corrupt, bench_alarm, bench},
    };
    bench->leader = leader_new(&options);
    for (uint8_t i = 0; i < 3; i++)
        bench->group.members[i] = (struct leader_member){true, bench_uuid(i + 1)};
    bench_commit_isr(bench, 7);
    leader_serving(bench->leader);
    return bench;
}

static struct bench *bench_new(void)
{
    return bench_new_with_cache(0);
}

static void bench_free(struct bench *bench)
{
    if (bench->leader != NULL) leader_free(bench->leader, -1, EPOCH);
    stepped_loop_settle(&bench->rig.fake);
    for (uint32_t i = 0; i < bench->asked_count; i++) {
        assert_true(bench->asked[i]->answered);
        buffer_deinit(&bench->asked[i]->body);
        free(bench->asked[i]);
    }
    rig_deinit(&bench->rig);
    free(bench);
}

static void bench_settle(struct bench *bench)
{
    stepped_loop_settle(&bench->rig.fake);
}

/* Time passes in steps of the leader's tick. */
static void bench_pass(struct bench *bench, int64_t us)
{
    for (int64_t passed = 0; passed < us; passed += 20 * MS) {
        stepped_loop_advance(&bench->rig.fake, 20 * MS);
        leader_tick(bench->leader);
        stepped_loop_settle(&bench->rig.fake);
    }
}

/* ---- what followers say ---- */

static struct partition *bench_partition(struct bench *bench, uint32_t slot)
{
    static const char *const names[SLOTS] = {"orders", "orders", "__consumer_offsets",
                                             "__transaction_state"};
    return rig_partition(&bench->rig, names[slot], slot == 1 ? 1 : 0);
}

struct said {
    uint32_t member; /* index */
    enum wire_fetch_kind kind;
    uint16_t flags;
    uint64_t session, seq; /* seq 0: the next */
    uint8_t incarnation;   /* 0: the member's recorded one */
    int32_t epoch;         /* 0: the leader's */
    struct manifest_version applied;
    uint32_t max_wait_ms, max_bytes; /* 0: 500 ms, 1 MiB */
    struct wire_request_entry entries[8];
    uint32_t entry_count;
};

/* Delivers a request; what comes of it is left to the loop and its jobs. */
static struct asked *bench_send(struct bench *bench, const struct said *said)
{
    struct wire_request_header header = {
        .kind = said->kind,
        .flags = said->flags,
        .from = bench_ids[said->member],
        .to = 1,
        .epoch = said->epoch == 0 ? EPOCH : said->epoch,
        .entry_count = said->entry_count,
        .session = said->session,
        .seq = said->seq == 0 ? ++bench->seq : said->seq,
        .group = bench_uuid(0x99),
        .from_incarnation =
            bench_uuid(said->incarnation == 0 ? (uint8_t)(said->member + 1) : said->incarnation),
        .to_incarnation = bench_uuid(1),
        .applied = said->applied,
        .max_wait_ms = said->max_wait_ms == 0 ? 500 : said->max_wait_ms,
        .max_bytes = said->max_bytes == 0 ? 1u << 20 : said->max_bytes,
    };
    struct buffer body;
    struct reader entries;
    struct error error;
    buffer_init(&body, 0);
    wire_put_request_header(&body, &header);
    for (uint32_t i = 0; i < said->entry_count; i++)
        wire_put_request_entry(&body, &said->entries[i]);
    wire_put_crc(&body, 0);
    assert_int_equal(wire_open_request(buffer_slice(&body), &header, &entries, &error), STATUS_OK);
    struct asked *asked = calloc(1, sizeof(*asked));
    asked->base.transport = &bench->transport;
    buffer_init(&asked->body, 0);
    assert_true(bench->asked_count < ARRAY_COUNT(bench->asked));
    bench->asked[bench->asked_count++] = asked;
    leader_fetch(bench->leader, said->member, &header, &entries, &asked->base, 100 + said->member);
    buffer_deinit(&body);
    return asked;
}

static struct asked *bench_say(struct bench *bench, const struct said *said)
{
    struct asked *asked = bench_send(bench, said);
    bench_settle(bench);
    return asked;
}

/* The marks of a copy that holds the log up to `end`, durably up to `durable`. */
static struct wire_request_entry bench_marks(struct bench *bench, uint32_t slot, int64_t end,
                                             int64_t durable)
{
    struct partition *partition = bench_partition(bench, slot);
    int32_t epoch = epoch_history_latest(partition_log_epochs(partition_log_of(partition)));
    return (struct wire_request_entry){
        .slot = slot, .fetch_offset = end, .durable_offset = durable, .last_epoch = epoch};
}

static struct wire_request_entry bench_define(struct bench *bench, uint32_t slot, int64_t end,
                                              int64_t durable)
{
    struct wire_request_entry entry = bench_marks(bench, slot, end, durable);
    struct partition *partition = bench_partition(bench, slot);
    entry.flags = WIRE_DEFINE;
    entry.uid = *topic_uid(partition_topic(partition));
    entry.partition = (uint32_t)partition_index(partition);
    return entry;
}

/* An OPEN that defines all partitions, level with the leader but for orders/0. */
static struct said bench_opening(struct bench *bench, uint32_t member, int64_t end, int64_t durable)
{
    struct said said = {.member = member,
                        .kind = WIRE_FETCH,
                        .flags = WIRE_OPEN,
                        .applied = catalog_version(bench->rig.broker),
                        .entry_count = SLOTS};
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        int64_t level = partition_log_end(bench_partition(bench, slot));
        said.entries[slot] = slot == 0 ? bench_define(bench, slot, end, durable)
                                       : bench_define(bench, slot, level, level);
    }
    return said;
}

/* Opens; the session. */
static uint64_t bench_open(struct bench *bench, uint32_t member, int64_t end, int64_t durable)
{
    struct said said = bench_opening(bench, member, end, durable);
    struct asked *asked = bench_say(bench, &said);
    assert_true(asked->answered);
    assert_int_equal(asked->status, 200);
    assert_true(asked->header.flags & WIRE_OPENED);
    assert_true(asked->header.session != 0);
    return asked->header.session;
}

/* A request of the session with the marks of orders/0 (end < 0: none). */
static struct said bench_marking(struct bench *bench, uint32_t member, uint64_t session,
                                 enum wire_fetch_kind kind, int64_t end, int64_t durable)
{
    struct said said = {.member = member,
                        .kind = kind,
                        .session = session,
                        .applied = catalog_version(bench->rig.broker)};
    if (end >= 0) said.entries[said.entry_count++] = bench_marks(bench, 0, end, durable);
    return said;
}

static struct asked *bench_mark(struct bench *bench, uint32_t member, uint64_t session,
                                enum wire_fetch_kind kind, int64_t end, int64_t durable)
{
    struct said said = bench_marking(bench, member, session, kind, end, durable);
    return bench_say(bench, &said);
}

/* A batch of one record, not durable yet. */
static void bench_append_one(struct bench *bench, uint32_t slot)
{
    static struct rig_produce sent[256];
    static uint32_t next;
    struct partition *partition = bench_partition(bench, slot);
    rig_send(&bench->rig, &sent[next++ % 256], partition, ACKS_LEADER,
             rig_batch(&bench->rig, "value", 1, -1, -1));
    leader_appended(bench->leader, partition);
}

/* Batches of one record each to orders/0 (slot 0) or orders/1, durable here. */
static void bench_append_to(struct bench *bench, uint32_t slot, int count)
{
    for (int i = 0; i < count; i++)
        bench_append_one(bench, slot);
    bench_settle(bench);
    leader_durable(bench->leader, bench_partition(bench, slot));
    bench_settle(bench);
}

static void bench_append(struct bench *bench, int count)
{
    bench_append_to(bench, 0, count);
}

static int64_t bench_high_watermark(struct bench *bench)
{
    return partition_high_watermark(bench_partition(bench, 0));
}

static void assert_refused(const struct asked *asked, int status, const char *error)
{
    assert_true(asked->answered);
    assert_int_equal(asked->status, status);
    char *text = strndup((const char *)asked->body.data, asked->body.bytes);
    char expected[64];
    snprintf(expected, sizeof(expected), "\"error\":\"%s\"", error);
    if (strstr(text, expected) == NULL) print_message("answer: %s\n", text);
    assert_non_null(strstr(text, expected));
    free(text);
}

/* The entry of a slot in an answer; false: none. */
static bool answer_entry_of(const struct asked *asked, uint32_t slot,
                            struct wire_answer_entry *entry)
{
    struct reader entries = asked->entries;
    struct error error;
    for (uint32_t i = 0; i < asked->header.entry_count; i++) {
        assert_int_equal(wire_next_answer_entry(&entries, entry, &error), STATUS_OK);
        if (entry->slot == slot) return true;
    }
    return false;
}

#endif
