/* Random walks: clients that join, leave, die and lose answers, topics that change, leaders that
 * fall with or without the last records. I20 is checked after every step; left in peace, the group
 * settles with every partition read. */
#include <stdio.h>

#include "base/random.h"
#include "unit/broker/modern_group_rig.h"

#define CLIENTS 6
#define STEPS   400

struct client {
    char id[16];
    const char *instance; /* NULL: dynamic */
    bool alive, leaving;
    bool in_full; /* says all, as after an error */
    int32_t epoch;
    unsigned incarnation;
    struct slice topics[2];
    uint32_t topic_count;
    bool by_pattern;
    struct partition_set owned, assigned;
};

struct walk {
    struct rig rig;
    struct random random;
    struct client clients[CLIENTS];
};

static bool chance(struct walk *walk, unsigned percent)
{
    return random_below(&walk->random, 100) < percent;
}

static void subscribe(struct walk *walk, struct client *client)
{
    static const char *const names[] = {"bills", "orders", "orders2"};
    client->by_pattern = chance(walk, 30);
    client->topic_count = 1 + (uint32_t)random_below(&walk->random, 2);
    for (uint32_t i = 0; i < client->topic_count; i++)
        client->topics[i] = slice_of_text(names[random_below(&walk->random, 3)]);
    client->in_full = true;
}

static void begin(struct walk *walk, uint32_t number)
{
    struct client *client = &walk->clients[number];
    static const char *const instances[CLIENTS] = {"s0", "s1"};
    client->instance = instances[number];
    client->alive = true;
    client->leaving = false;
    client->epoch = 0;
    client->incarnation++;
    snprintf(client->id, sizeof(client->id), "c%u-%u", number, client->incarnation);
    partition_set_clear(&client->owned);
    partition_set_clear(&client->assigned);
    subscribe(walk, client);
}

static void rejoin(struct client *client)
{
    client->epoch = 0;
    client->in_full = true;
    partition_set_clear(&client->owned);
    partition_set_clear(&client->assigned);
}

static void hear(struct client *client, const struct modern_answer *answer)
{
    if (answer->status == STATUS_FENCED_MEMBER_EPOCH || answer->status == STATUS_UNKNOWN_MEMBER) {
        rejoin(client);
        return;
    }
    if (answer->status == STATUS_UNRELEASED_INSTANCE) return; /* asks again */
    assert_int_equal(answer->status, STATUS_OK);
    client->epoch = answer->member_epoch;
    client->in_full = false;
    if (answer->assignment == NULL) return;
    /* What it is to lose goes at once; what it gains too: nobody else may have it. */
    partition_set_copy(&client->assigned, answer->assignment);
    partition_set_copy(&client->owned, answer->assignment);
}

/* One that was taken out does not know it yet, and cannot commit. */
static bool is_member(const struct walk *walk, const struct client *client)
{
    return modern_group_check_commit(walk->rig.group, slice_of_text(client->id), -9) !=
           STATUS_UNKNOWN_MEMBER;
}

static void assert_one_owner(struct walk *walk)
{
    struct partition_set all = {0}, next = {0}, both = {0};
    for (uint32_t i = 0; i < CLIENTS; i++) {
        const struct client *client = &walk->clients[i];
        if (!client->alive || !is_member(walk, client)) continue;
        assert_false(partition_set_overlaps(&all, &client->owned));
        partition_set_unite(&next, &all, &client->owned);
        partition_set_move(&all, &next);
    }
    partition_set_clear(&all);
    for (uint32_t i = 0; i < modern_group_member_count(walk->rig.group); i++) {
        struct modern_member_view view = modern_group_member(walk->rig.group, i);
        partition_set_unite(&both, view.assigned, view.revoking);
        assert_int_equal(both.count, view.assigned->count + view.revoking->count);
        assert_false(partition_set_overlaps(&all, &both));
        partition_set_unite(&next, &all, &both);
        partition_set_move(&all, &next);
    }
    partition_set_deinit(&all);
    partition_set_deinit(&next);
    partition_set_deinit(&both);
}

/* What a new leader would go on from is what this one has. */
static void assert_records_tell_all(struct walk *walk)
{
    const struct modern_group *stored =
        modern_group_table_find(walk->rig.table, modern_group_id(walk->rig.group));
    if (stored == NULL) return;
    assert_int_equal(modern_group_hash(stored), modern_group_hash(walk->rig.group));
    assert_string_equal(modern_group_state_name(stored), modern_group_state_name(walk->rig.group));
}

static void heartbeat(struct walk *walk, struct client *client, bool trouble)
{
    struct modern_heartbeat heartbeat = rig_heartbeat(client->id, client->epoch);
    heartbeat.instance_id = slice_of_text(client->instance);
    if (client->leaving)
        heartbeat.member_epoch =
            client->instance != NULL ? MODERN_EPOCH_LEAVE_STATIC : MODERN_EPOCH_LEAVE;
    heartbeat.has_owned = client->in_full || chance(walk, 50);
    heartbeat.owned = heartbeat.has_owned ? &client->owned : NULL;
    if (client->in_full) {
        heartbeat.rebalance_timeout_ms = 30000;
        heartbeat.has_names = true;
        heartbeat.names = client->topics;
        heartbeat.name_count = client->by_pattern ? 0 : client->topic_count;
        heartbeat.regex = slice_of_text(client->by_pattern ? "orders.*" : "");
    }
    enum status status = rig_send(&walk->rig, &heartbeat);
    if (trouble && chance(walk, 5)) { /* the leader falls, its last records with it */
        client->in_full = true;
        rig_fail_over(&walk->rig);
        return;
    }
    rig_commit(&walk->rig);
    assert_records_tell_all(walk);
    if (client->leaving) {
        client->alive = false;
        partition_set_clear(&client->owned);
    } else if (trouble && chance(walk, 10)) {
        client->in_full = true; /* the answer is lost */
    } else {
        (void)status;
        hear(client, &walk->rig.answer);
    }
    if (trouble && chance(walk, 3)) rig_fail_over(&walk->rig);
}

static void change_topics(struct walk *walk)
{
    static const char *const names[] = {"bills", "orders", "orders2"};
    rig_set_topic(&walk->rig, names[random_below(&walk->random, 3)],
                  (uint32_t)random_below(&walk->random, 9));
}

static void step(struct walk *walk)
{
    uint32_t number = (uint32_t)random_below(&walk->random, CLIENTS);
    struct client *client = &walk->clients[number];
    walk->rig.now_us += (int64_t)random_below(&walk->random, 2 * RIG_SECOND_US);
    if (modern_group_next_due(walk->rig.group) <= walk->rig.now_us) rig_expire(&walk->rig);
    if (chance(walk, 4)) change_topics(walk);
    if (!client->alive) {
        if (chance(walk, 40)) begin(walk, number);
        return;
    }
    if (chance(walk, 3)) { /* dies without a word */
        client->alive = false;
        partition_set_clear(&client->owned);
        return;
    }
    if (chance(walk, 4)) subscribe(walk, client);
    if (chance(walk, 4)) client->leaving = true;
    heartbeat(walk, client, true);
}

/* Whoever lives goes on for ten minutes; the dead are taken out. */
static void settle(struct walk *walk)
{
    for (int round = 0; round < 120; round++) {
        walk->rig.now_us += 5 * RIG_SECOND_US;
        if (modern_group_next_due(walk->rig.group) <= walk->rig.now_us) rig_expire(&walk->rig);
        for (uint32_t i = 0; i < CLIENTS; i++) {
            struct client *client = &walk->clients[i];
            if (client->alive && !client->leaving) heartbeat(walk, client, false);
            assert_one_owner(walk);
        }
    }
}

static void assert_settled(struct walk *walk)
{
    uint32_t alive = 0;
    for (uint32_t i = 0; i < CLIENTS; i++) {
        const struct client *client = &walk->clients[i];
        if (!client->alive || client->leaving) continue;
        alive++;
        assert_true(partition_set_equal(&client->owned, &client->assigned));
    }
    assert_int_equal(modern_group_member_count(walk->rig.group), alive);
    assert_string_equal(modern_group_state_name(walk->rig.group), alive > 0 ? "Stable" : "Empty");
    for (uint32_t i = 0; i < alive; i++) {
        struct modern_member_view view = modern_group_member(walk->rig.group, i);
        assert_true(partition_set_equal(view.assigned, view.target));
    }
}

static void walks_keep_one_owner_a_partition_and_settle(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct walk walk = {0};
        rig_init(&walk.rig);
        random_seed(&walk.random, seed);
        rig_set_topic(&walk.rig, "orders", 6);
        rig_set_topic(&walk.rig, "bills", 3);
        for (int i = 0; i < STEPS; i++) {
            step(&walk);
            assert_one_owner(&walk);
        }
        settle(&walk);
        assert_settled(&walk);
        for (uint32_t i = 0; i < CLIENTS; i++) {
            partition_set_deinit(&walk.clients[i].owned);
            partition_set_deinit(&walk.clients[i].assigned);
        }
        rig_deinit(&walk.rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(walks_keep_one_owner_a_partition_and_settle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
