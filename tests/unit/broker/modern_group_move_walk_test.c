/* Random walks of a group between the two protocols: clients of both join, leave and die, the group
 * moves with the first of the new one and back with the last, leaders fall with or without what was
 * written last. No partition has two owners after any step; left in peace, all are read. */
#include <stdio.h>

#include "base/assert.h"
#include "base/random.h"
#include "broker/consumer_assignment.h"
#include "broker/modern_group_classic.h"
#include "unit/broker/modern_group_rig.h"

#define CLIENTS    5
#define PARTITIONS 7
#define STEPS      600

enum client_state { CLIENT_OUT, CLIENT_JOINING, CLIENT_SYNCING, CLIENT_IN };

struct client {
    char id[16];
    struct group_waiter waiter;
    enum client_state state; /* of one of the new protocol: OUT or IN */
    bool modern;
    bool asking; /* its question waits in the classic group */
    bool known;  /* it was told its id */
    bool leads;
    int32_t epoch;
    uint32_t owned; /* bits */
    unsigned incarnation;
};

struct walk {
    struct rig rig;
    struct random random;
    bool cooperative;
    struct consumer_group *classic; /* NULL: the rig's group is in force */
    struct consumer_group_limits limits;
    struct buffer record; /* of the classic group, as stored; empty: none */
    struct client clients[CLIENTS];
    uint32_t moves, moves_back;
};

static bool chance(struct walk *walk, unsigned percent)
{
    return random_below(&walk->random, 100) < percent;
}

static struct group_clock clock_of(const struct walk *walk)
{
    return (struct group_clock){.now_us = walk->rig.now_us, .wall_ms = 5000};
}

/* ---- what consumers write ---- */

static void put_partitions(struct buffer *out, uint32_t bits)
{
    buffer_put_u32(out, 1);
    buffer_put_i16(out, 6);
    buffer_put_string(out, "orders");
    buffer_put_i32(out, __builtin_popcount(bits));
    for (int32_t i = 0; i < PARTITIONS; i++)
        if ((bits >> i & 1) != 0) buffer_put_i32(out, i);
}

static void put_subscription(struct buffer *out, uint32_t owned)
{
    buffer_init(out, 0);
    buffer_put_i16(out, 1);
    buffer_put_u32(out, 1);
    buffer_put_i16(out, 6);
    buffer_put_string(out, "orders");
    buffer_put_i32(out, -1);
    put_partitions(out, owned);
}

static uint32_t read_bits(struct assignment_cursor cursor)
{
    struct assigned_topic topic;
    uint32_t bits = 0;
    while (assignment_cursor_next(&cursor, &topic))
        for (uint32_t i = 0; i < topic.count; i++)
            bits |= 1u << assigned_partition(&topic, i);
    return bits;
}

static uint32_t assignment_bits(struct slice assignment)
{
    struct assignment_cursor cursor;
    assignment_cursor_init(&cursor, assignment);
    return read_bits(cursor);
}

/* ---- what clients hear ---- */

static void forget(struct client *client)
{
    client->owned = 0;
    client->known = false;
    client->state = CLIENT_JOINING;
}

static void hear_join(struct client *client, enum status status, int32_t generation, bool leads)
{
    if (status == STATUS_UNKNOWN_MEMBER) {
        forget(client);
    } else if (status == STATUS_OK) {
        client->known = true;
        client->epoch = generation;
        client->leads = leads;
        client->state = CLIENT_SYNCING;
    } else {
        assert_int_equal(status, STATUS_REBALANCE_IN_PROGRESS);
    }
}

static void hear_sync(struct walk *walk, struct client *client, enum status status,
                      uint32_t assigned)
{
    client->state = CLIENT_JOINING;
    if (status == STATUS_UNKNOWN_MEMBER) {
        forget(client);
    } else if (status == STATUS_ILLEGAL_GENERATION) {
        client->owned = 0;
    } else if (status == STATUS_OK) {
        bool loses = (client->owned & ~assigned) != 0;
        client->owned = assigned;
        client->state = walk->cooperative && loses ? CLIENT_JOINING : CLIENT_IN;
    } else {
        assert_int_equal(status, STATUS_REBALANCE_IN_PROGRESS);
    }
}

/* ---- the classic group ---- */

static void store(struct walk *walk)
{
    buffer_clear(&walk->record);
    consumer_group_record(walk->classic, &walk->record);
}

static void act(struct walk *walk, struct group_actions *actions)
{
    for (uint32_t i = 0; i < actions->answer_count; i++) {
        const struct group_answer *answer = &actions->answers[i];
        struct client *client = CONTAINER_OF(answer->waiter, struct client, waiter);
        client->asking = false;
        if (client->state == CLIENT_JOINING) {
            hear_join(client, answer->status, consumer_group_generation(walk->classic),
                      answer->lists_members);
        } else if (client->state == CLIENT_SYNCING) {
            uint32_t bits =
                answer->status == STATUS_OK
                    ? assignment_bits(
                          consumer_member_view(walk->classic, answer->member).assignment)
                    : 0;
            hear_sync(walk, client, answer->status, bits);
        }
    }
    bool stores = actions->store;
    group_actions_deinit(actions);
    if (!stores) return;
    struct group_actions next;
    group_actions_init(&next);
    store(walk);
    consumer_group_stored(walk->classic, consumer_group_store_id(walk->classic), STATUS_OK,
                          clock_of(walk), &next);
    act(walk, &next);
}

static void classic_restore(struct walk *walk)
{
    struct group_record record;
    for (uint32_t i = 0; i < CLIENTS; i++) {
        if (walk->clients[i].asking) consumer_group_cancel(&walk->clients[i].waiter);
        walk->clients[i].asking = false;
    }
    consumer_group_free(walk->classic);
    if (walk->record.bytes == 0) {
        walk->classic = consumer_group_new(slice_of_text("g"), &walk->limits);
        return;
    }
    assert_int_equal(group_record_decode(buffer_slice(&walk->record), &record), STATUS_OK);
    walk->classic =
        consumer_group_restore(slice_of_text("g"), &walk->limits, &record, clock_of(walk));
}

/* What the group's leader divides among the members: in turn, and, if they keep what they have
 * across a join, nothing that another one has. */
struct division {
    struct buffer bytes[CLIENTS * 4];
    struct consumer_assignment items[CLIENTS * 4];
    uint32_t bits[CLIENTS * 4], owned[CLIENTS * 4], count;
};

static void division_init(struct walk *walk, struct division *out)
{
    const struct consumer_member *member = NULL;
    uint32_t all = 0;
    *out = (struct division){0};
    while ((member = consumer_group_next(walk->classic, member)) != NULL) {
        struct consumer_subscription subscription;
        struct consumer_member_view view = consumer_member_view(walk->classic, member);
        assert_true(out->count < CLIENTS * 4);
        assert_true(consumer_subscription_read(view.metadata, &subscription));
        out->items[out->count].member_id = view.id;
        out->owned[out->count] = read_bits(subscription.owned);
        all |= out->owned[out->count++];
    }
    for (uint32_t i = 0; i < PARTITIONS; i++) {
        uint32_t to = i % out->count, bit = 1u << i;
        if ((all & bit) == 0 || (out->owned[to] & bit) != 0) out->bits[to] |= bit;
    }
    for (uint32_t i = 0; i < out->count; i++) {
        buffer_init(&out->bytes[i], 0);
        buffer_put_i16(&out->bytes[i], 1);
        put_partitions(&out->bytes[i], out->bits[i]);
        buffer_put_i32(&out->bytes[i], -1);
        out->items[i].assignment = buffer_slice(&out->bytes[i]);
    }
}

static void division_deinit(struct division *division)
{
    for (uint32_t i = 0; i < division->count; i++)
        buffer_deinit(&division->bytes[i]);
}

static void classic_sync(struct walk *walk, struct client *client)
{
    struct group_actions actions;
    struct division division = {0};
    if (client->leads && consumer_group_state(walk->classic) == CONSUMER_GROUP_COMPLETING)
        division_init(walk, &division);
    const struct consumer_sync sync = {.member_id = slice_of_text(client->id),
                                       .generation = client->epoch,
                                       .assignments = division.items,
                                       .assignment_count = division.count};
    group_actions_init(&actions);
    client->waiter = (struct group_waiter){0};
    client->asking = true;
    consumer_group_sync(walk->classic, &sync, &client->waiter, clock_of(walk), &actions);
    act(walk, &actions);
    division_deinit(&division);
}

/* ---- from one kind to the other ---- */

/* Where there is nobody, whoever comes makes the group his. */
static bool is_empty(const struct walk *walk)
{
    return walk->classic != NULL ? consumer_group_is_idle(walk->classic)
                                 : modern_group_member_count(walk->rig.group) == 0;
}

static void begin_classic(struct walk *walk)
{
    struct modern_group_step step = rig_step(&walk->rig);
    modern_group_erase(walk->rig.group, step.records);
    rig_commit(&walk->rig);
    buffer_clear(&walk->record);
    classic_restore(walk);
}

static void begin_modern(struct walk *walk)
{
    buffer_clear(&walk->record);
    consumer_group_free(walk->classic);
    walk->classic = NULL;
}

static void move_back(struct walk *walk)
{
    struct slice key, value;
    struct modern_group_step step = {.options = &walk->rig.options,
                                     .topics = &walk->rig.topics,
                                     .records = &walk->rig.records,
                                     .now_us = walk->rig.now_us};
    if (!modern_group_is_classic(walk->rig.group)) return;
    assert_true(modern_group_to_classic(walk->rig.group, &step, 5000));
    assert_true(modern_group_is_gone(walk->rig.group));
    modern_records_get(&walk->rig.records, walk->rig.records.count - 1, &key, &value);
    buffer_clear(&walk->record);
    buffer_put(&walk->record, value.data, value.bytes);
    classic_restore(walk);
    walk->moves_back++;
}

/* What a group of the new protocol wrote is in the log, or is lost with its leader: then whoever
 * asked hears nothing. */
static bool commit_modern(struct walk *walk, bool trouble)
{
    if (trouble && chance(walk, 4)) {
        rig_fail_over(&walk->rig);
        return false;
    }
    move_back(walk);
    rig_commit(&walk->rig);
    return true;
}

static void move(struct walk *walk, const struct modern_heartbeat *heartbeat, bool trouble)
{
    struct error error;
    struct modern_group *moved = NULL;
    struct modern_group_step step = rig_step(&walk->rig);
    assert_int_equal(modern_group_from_classic(walk->classic, &step, &moved, &error), STATUS_OK);
    modern_group_heartbeat(moved, &step, heartbeat, &walk->rig.answer);
    assert_int_equal(walk->rig.answer.status, STATUS_OK);
    struct group_actions actions;
    group_actions_init(&actions);
    consumer_group_refuse_all(walk->classic, STATUS_REBALANCE_IN_PROGRESS, &actions);
    act(walk, &actions);
    if (trouble && chance(walk, 20)) { /* it is not written */
        walk->rig.answer.status = STATUS_NOT_READY;
        modern_group_free(moved);
        classic_restore(walk);
        return;
    }
    modern_group_free(walk->rig.group);
    walk->rig.group = moved;
    begin_modern(walk);
    rig_commit(&walk->rig);
    walk->moves++;
}

/* ---- clients of the classic protocol ---- */

static void ask_join(struct walk *walk, struct client *client, bool trouble)
{
    struct buffer metadata;
    struct modern_joined joined;
    if (!walk->cooperative) client->owned = 0;
    put_subscription(&metadata, client->owned);
    const struct consumer_protocol protocol = {slice_of_text("p"), buffer_slice(&metadata)};
    if (!client->known)
        snprintf(client->id, sizeof(client->id), "c%u-%u", (unsigned)(client - walk->clients),
                 ++client->incarnation);
    const struct consumer_join join = {.member_id = slice_of_text(client->known ? client->id : ""),
                                       .new_id = slice_of_text(client->id),
                                       .client_id = slice_of_text("client"),
                                       .client_host = slice_of_text("/host"),
                                       .protocol_type = slice_of_text("consumer"),
                                       .protocols = &protocol,
                                       .protocol_count = 1,
                                       .session_timeout_ms = 10000,
                                       .rebalance_timeout_ms = 15000};
    if (walk->classic == NULL && is_empty(walk)) begin_classic(walk);
    if (walk->classic != NULL) {
        struct group_actions actions;
        group_actions_init(&actions);
        client->waiter = (struct group_waiter){0};
        client->asking = true;
        consumer_group_join(walk->classic, &join, &client->waiter, clock_of(walk), &actions);
        act(walk, &actions);
    } else {
        struct modern_group_step step = rig_step(&walk->rig);
        enum status status = modern_group_classic_join(walk->rig.group, &step, &join, &joined);
        int32_t generation = joined.generation;
        if (commit_modern(walk, trouble)) hear_join(client, status, generation, false);
    }
    buffer_deinit(&metadata);
}

static void ask_sync(struct walk *walk, struct client *client)
{
    struct buffer assignment;
    struct slice protocol;
    if (walk->classic != NULL) {
        classic_sync(walk, client);
        return;
    }
    const struct consumer_sync sync = {.member_id = slice_of_text(client->id),
                                       .generation = client->epoch};
    struct modern_group_step step = rig_step(&walk->rig);
    buffer_init(&assignment, 0);
    enum status status =
        modern_group_classic_sync(walk->rig.group, &step, &sync, &protocol, &assignment);
    hear_sync(walk, client, status,
              status == STATUS_OK ? assignment_bits(buffer_slice(&assignment)) : 0);
    buffer_deinit(&assignment);
}

static void ask_heartbeat(struct walk *walk, struct client *client)
{
    const struct consumer_identity who = {.member_id = slice_of_text(client->id),
                                          .generation = client->epoch};
    struct modern_group_step step = rig_step(&walk->rig);
    enum status status = walk->classic != NULL
                             ? consumer_group_heartbeat(walk->classic, &who, clock_of(walk))
                             : modern_group_classic_heartbeat(walk->rig.group, &step, &who);
    if (status == STATUS_OK) return;
    client->state = CLIENT_JOINING;
    if (status == STATUS_REBALANCE_IN_PROGRESS) return;
    client->owned = 0;
    if (status == STATUS_UNKNOWN_MEMBER) client->known = false;
}

static void leave_classic(struct walk *walk, struct client *client)
{
    if (walk->classic != NULL) {
        struct group_actions actions;
        group_actions_init(&actions);
        (void)consumer_group_leave(walk->classic, slice_of_text(client->id), (struct slice){0},
                                   clock_of(walk), &actions);
        act(walk, &actions);
    } else {
        struct modern_group_step step = rig_step(&walk->rig);
        (void)modern_group_classic_leave(walk->rig.group, &step, slice_of_text(client->id),
                                         (struct slice){0});
        (void)commit_modern(walk, false);
    }
}

/* ---- clients of the new protocol ---- */

static void put_set(struct walk *walk, uint32_t bits, struct partition_set *out)
{
    for (int32_t i = 0; i < PARTITIONS; i++)
        if ((bits >> i & 1) != 0) partition_set_append(out, &walk->rig.topic[0].uid, i);
}

static void hear_modern(struct client *client, const struct modern_answer *answer)
{
    if (answer->status == STATUS_NOT_READY) return;
    if (answer->status != STATUS_OK) {
        client->epoch = 0;
        client->owned = 0;
        return;
    }
    client->epoch = answer->member_epoch;
    if (answer->assignment == NULL) return;
    client->owned = 0;
    for (uint32_t i = 0; i < answer->assignment->count; i++)
        client->owned |= 1u << answer->assignment->items[i].partition;
}

static void beat_modern(struct walk *walk, struct client *client, int32_t epoch, bool trouble)
{
    const struct slice orders = slice_of_text("orders");
    struct partition_set owned = {0};
    struct modern_heartbeat heartbeat = rig_heartbeat(client->id, epoch);
    put_set(walk, client->owned, &owned);
    heartbeat.rebalance_timeout_ms = 15000;
    heartbeat.has_names = heartbeat.has_owned = true;
    heartbeat.names = &orders;
    heartbeat.name_count = 1;
    heartbeat.owned = &owned;
    if (walk->classic != NULL && epoch != MODERN_EPOCH_JOIN) {
        hear_modern(client, &(struct modern_answer){.status = STATUS_UNKNOWN_MEMBER});
    } else if (walk->classic != NULL && !is_empty(walk)) {
        move(walk, &heartbeat, trouble);
        hear_modern(client, &walk->rig.answer);
    } else {
        if (walk->classic != NULL) begin_modern(walk);
        (void)rig_send(&walk->rig, &heartbeat);
        /* The answer is of the group as it was before it may have moved back. */
        struct client heard = *client;
        hear_modern(&heard, &walk->rig.answer);
        if (commit_modern(walk, trouble)) *client = heard;
    }
    partition_set_deinit(&owned);
}

/* ---- a walk ---- */

static bool is_member(const struct walk *walk, const struct client *client)
{
    const struct consumer_member *member = NULL;
    struct slice id = slice_of_text(client->id);
    if (walk->classic == NULL)
        return modern_group_check_commit(walk->rig.group, id, -9) != STATUS_UNKNOWN_MEMBER;
    while ((member = consumer_group_next(walk->classic, member)) != NULL)
        if (slice_compare(consumer_member_view(walk->classic, member).id, id) == 0) return true;
    return false;
}

/* One that was taken out does not know it yet, and cannot commit. */
static void assert_one_owner(const struct walk *walk)
{
    uint32_t all = 0;
    for (uint32_t i = 0; i < CLIENTS; i++) {
        const struct client *client = &walk->clients[i];
        if (client->state == CLIENT_OUT || !is_member(walk, client)) continue;
        assert_int_equal(all & client->owned, 0);
        all |= client->owned;
    }
}

static void pass_time(struct walk *walk, int64_t us)
{
    walk->rig.now_us += us;
    if (walk->classic != NULL) {
        struct group_actions actions;
        if (consumer_group_due_us(walk->classic) > walk->rig.now_us) return;
        group_actions_init(&actions);
        consumer_group_tick(walk->classic, clock_of(walk), &actions);
        act(walk, &actions);
    } else if (modern_group_next_due(walk->rig.group) <= walk->rig.now_us) {
        struct modern_group_step step = rig_step(&walk->rig);
        modern_group_expire(walk->rig.group, &step);
        (void)commit_modern(walk, false);
    }
}

static void go_away(struct walk *walk, struct client *client)
{
    if (client->asking) consumer_group_cancel(&client->waiter);
    client->asking = false;
    client->state = CLIENT_OUT;
    client->owned = 0;
    (void)walk;
}

static void come(struct walk *walk, struct client *client)
{
    client->modern = chance(walk, 25);
    client->known = client->leads = false;
    client->epoch = 0;
    client->owned = 0;
    client->state = client->modern ? CLIENT_IN : CLIENT_JOINING;
    if (client->modern)
        snprintf(client->id, sizeof(client->id), "m%u-%u", (unsigned)(client - walk->clients),
                 ++client->incarnation);
}

static void go_on(struct walk *walk, struct client *client, bool trouble)
{
    if (client->asking) return;
    if (client->modern) {
        beat_modern(walk, client, client->epoch, trouble);
    } else if (client->state == CLIENT_JOINING) {
        ask_join(walk, client, trouble);
    } else if (client->state == CLIENT_SYNCING) {
        ask_sync(walk, client);
    } else {
        ask_heartbeat(walk, client);
    }
}

static void leave(struct walk *walk, struct client *client)
{
    if (client->modern) {
        beat_modern(walk, client, MODERN_EPOCH_LEAVE, false);
    } else if (client->known && !client->asking) {
        leave_classic(walk, client);
    }
    go_away(walk, client);
}

static void fail_over(struct walk *walk)
{
    if (walk->classic != NULL) {
        classic_restore(walk);
    } else {
        rig_fail_over(&walk->rig);
    }
}

static void step(struct walk *walk)
{
    struct client *client = &walk->clients[random_below(&walk->random, CLIENTS)];
    pass_time(walk, (int64_t)random_below(&walk->random, RIG_SECOND_US));
    if (chance(walk, 1)) fail_over(walk);
    if (client->state == CLIENT_OUT) {
        if (chance(walk, 30)) come(walk, client);
    } else if (chance(walk, 2)) {
        go_away(walk, client);
    } else if (chance(walk, client->modern ? 8 : 2)) {
        leave(walk, client);
    } else {
        go_on(walk, client, true);
    }
}

/* Whoever is there goes on for minutes; the dead are taken out. */
static void settle(struct walk *walk)
{
    for (int round = 0; round < 300; round++) {
        pass_time(walk, RIG_SECOND_US);
        for (uint32_t i = 0; i < CLIENTS; i++) {
            if (walk->clients[i].state != CLIENT_OUT) go_on(walk, &walk->clients[i], false);
            assert_one_owner(walk);
        }
    }
}

static void assert_settled(const struct walk *walk)
{
    uint32_t all = 0, there = 0, modern = 0;
    for (uint32_t i = 0; i < CLIENTS; i++) {
        const struct client *client = &walk->clients[i];
        if (client->state == CLIENT_OUT) continue;
        assert_int_equal(client->state, CLIENT_IN);
        there++;
        modern += client->modern ? 1 : 0;
        all |= client->owned;
    }
    if (there == 0) return;
    assert_int_equal(all, (1u << PARTITIONS) - 1);
    /* It is of the kind its members are. */
    assert_int_equal(walk->classic == NULL, modern > 0);
}

static void walk_once(uint64_t seed, bool cooperative, uint32_t *moves, uint32_t *moves_back)
{
    struct walk walk = {.cooperative = cooperative};
    rig_init(&walk.rig);
    random_seed(&walk.random, seed);
    rig_set_topic(&walk.rig, "orders", PARTITIONS);
    consumer_group_limits_default(&walk.limits);
    walk.limits.initial_delay_us = 0;
    buffer_init(&walk.record, 0);
    for (int i = 0; i < STEPS; i++) {
        step(&walk);
        assert_one_owner(&walk);
    }
    settle(&walk);
    assert_settled(&walk);
    *moves += walk.moves;
    *moves_back += walk.moves_back;
    for (uint32_t i = 0; i < CLIENTS; i++)
        go_away(&walk, &walk.clients[i]);
    consumer_group_free(walk.classic);
    buffer_deinit(&walk.record);
    rig_deinit(&walk.rig);
}

static void walks_between_the_protocols_keep_one_owner_a_partition(void **state)
{
    uint32_t moves = 0, moves_back = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++)
        walk_once(seed, seed % 2 == 0, &moves, &moves_back);
    /* They did go to and fro. */
    assert_true(moves >= 150);
    assert_true(moves_back >= 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(walks_between_the_protocols_keep_one_owner_a_partition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
