/* Whole groups in a virtual world: founding, serving, losing a leader, handing over, coming back.
 */
#include "broker/delete_records.h"
#include "lib/sim_rig.h"

static void a_fresh_group_founds_itself_and_serves(void **state)
{
    int leader;
    (void)state;
    struct rig *rig = rig_founded(3, 1, &leader);
    struct node_facts facts = rig_facts(rig, leader);
    assert_true(facts.leader_serving);
    assert_int_equal(facts.isr_mask, 7);
    rig_produce_many(rig, 20);
    for (int i = 0; i < 3; i++)
        rig_assert_catches_up(rig, i, 2 * S);
    for (int i = 0; i < 3; i++)
        assert_true(rig_wait(rig, rig_is_ready, &i, 2 * S) >= 0);
    rig_free(rig);
}

static void founding_waits_for_all_members(void **state)
{
    (void)state;
    struct rig *rig = rig_new(3, 2);
    sim_node_start(rig_node(rig, 0));
    sim_node_start(rig_node(rig, 1));
    assert_int_equal(rig_leader(rig, 10 * S), -1);
    char reason[256];
    assert_false(node_ready(rig_node(rig, 0)->node, reason, sizeof(reason)));
    assert_non_null(strstr(reason, "3"));
    sim_node_start(rig_node(rig, 2));
    assert_true(rig_leader(rig, 5 * S) >= 0);
    rig_free(rig);
}

static void a_group_of_five_serves(void **state)
{
    int leader;
    (void)state;
    struct rig *rig = rig_founded(5, 3, &leader);
    rig_produce_many(rig, 10);
    for (int i = 0; i < 5; i++)
        rig_assert_catches_up(rig, i, 2 * S);
    rig_free(rig);
}

/* Kills the leader and produces through the next one; how long clients had none. */
static int64_t lose_leader(struct rig *rig, int *leader, enum sim_death death)
{
    int32_t epoch = rig_facts(rig, *leader).epoch;
    sim_node_kill(rig_node(rig, *leader), death);
    int64_t gap = rig_wait(rig, rig_leads_above, &epoch, 10 * S);
    assert_true(gap >= 0);
    *leader = sim_group_leader(&rig->group)->index;
    return gap;
}

static void a_killed_leader_is_replaced_within_a_moment(void **state)
{
    (void)state;
    for (uint64_t seed = 10; seed < 20; seed++) {
        int leader;
        struct rig *rig = rig_founded(3, seed, &leader);
        rig_produce_many(rig, 5);
        int old = leader;
        int64_t began = rig->world.now_us;
        int64_t gap = lose_leader(rig, &leader, SIM_DEATH_KILL);
        assert_true(gap <= 300 * MS);
        /* The first acks=all does not wait on the dead process. */
        rig_produce_many(rig, 1);
        int64_t total = rig->world.now_us - began;
        print_message("seed %llu: serving after %lld ms, acknowledged after %lld ms\n",
                      (unsigned long long)seed, (long long)(gap / 1000), (long long)(total / 1000));
        assert_true(total <= 500 * MS);
        rig_produce_many(rig, 5);
        sim_node_start(rig_node(rig, old));
        rig_assert_catches_up(rig, old, 5 * S);
        uint32_t all = 7;
        assert_true(rig_wait(rig, rig_in_sync, &all, 5 * S) >= 0);
        for (int i = 0; i < 3; i++)
            rig_assert_log(rig, i);
        rig_free(rig);
    }
}

static void a_leader_without_power_is_replaced(void **state)
{
    int leader;
    (void)state;
    struct rig *rig = rig_founded(3, 30, &leader);
    rig_produce_many(rig, 5);
    int old = leader;
    int64_t gap = lose_leader(rig, &leader, SIM_DEATH_POWER);
    assert_true(gap <= 4 * S);
    rig_produce_many(rig, 5);
    sim_node_start(rig_node(rig, old));
    rig_assert_catches_up(rig, old, 5 * S);
    rig_free(rig);
}

static void unacknowledged_records_of_a_dead_leader_are_cut(void **state)
{
    int leader;
    (void)state;
    struct rig *rig = rig_founded(3, 31, &leader);
    rig_produce_many(rig, 3);
    int old = leader;
    for (int i = 0; i < 3; i++)
        if (i != old) sim_group_cut(&rig->group, old, i, true);
    struct rig_call lost[4];
    for (int i = 0; i < 4; i++)
        rig_send(rig, &lost[i], old, 0, 1000 + i);
    int32_t epoch = rig_facts(rig, old).epoch;
    rig_run(rig, 100 * MS);
    assert_true(rig_wait(rig, rig_leads_above, &epoch, 10 * S) >= 0);
    rig_run(rig, 3 * S); /* the old leader notices that it has no majority */
    assert_false(rig_facts(rig, old).leader_serving);
    for (int i = 0; i < 4; i++)
        assert_true(lost[i].done && lost[i].status != STATUS_OK);
    rig_produce_many(rig, 5);
    sim_group_heal_network(&rig->group);
    rig_assert_catches_up(rig, old, 8 * S);
    struct rig_look *look = rig_look(rig, old, 0);
    assert_int_equal(look->count, rig->acknowledged);
    assert_int_equal(rig_facts(rig, old).truncations, 1);
    rig_free(rig);
}

static void a_dead_follower_leaves_the_set_at_once(void **state)
{
    int leader;
    (void)state;
    struct rig *rig = rig_founded(3, 40, &leader);
    rig_produce_many(rig, 3);
    int dead = (leader + 1) % 3;
    sim_node_kill(rig_node(rig, dead), SIM_DEATH_KILL);
    int64_t began = rig->world.now_us;
    rig_produce_many(rig, 1);
    assert_true(rig->world.now_us - began <= 100 * MS);
    uint32_t isr = 7u & ~(1u << dead);
    assert_true(rig_wait(rig, rig_isr_is, &isr, 100 * MS) >= 0);
    rig_produce_many(rig, 20);
    int32_t epoch = rig_facts(rig, leader).epoch;
    sim_node_start(rig_node(rig, dead));
    uint32_t all = 7;
    assert_true(rig_wait(rig, rig_in_sync, &all, 5 * S) >= 0);
    rig_assert_catches_up(rig, dead, S);
    assert_int_equal(rig_facts(rig, leader).epoch, epoch);
    rig_free(rig);
}

static void a_silent_follower_leaves_the_set_soon(void **state)
{
    int leader;
    (void)state;
    struct rig *rig = rig_founded(3, 41, &leader);
    rig_produce_many(rig, 3);
    int silent = (leader + 1) % 3;
    sim_machine_pause(rig_node(rig, silent)->machine, false);
    int64_t began = rig->world.now_us;
    rig_produce_many(rig, 1);
    assert_true(rig->world.now_us - began <= 1000 * MS);
    rig_run(rig, 3 * S);
    sim_machine_resume(rig_node(rig, silent)->machine);
    uint32_t all = 7;
    assert_true(rig_wait(rig, rig_in_sync, &all, 5 * S) >= 0);
    rig_produce_many(rig, 3);
    rig_assert_catches_up(rig, silent, S);
    rig_free(rig);
}

static void a_group_below_its_minimum_refuses(void **state)
{
    int leader;
    (void)state;
    struct rig *rig = rig_founded(3, 42, &leader);
    rig_produce_many(rig, 3);
    for (int i = 0; i < 3; i++)
        if (i != leader) sim_node_kill(rig_node(rig, i), SIM_DEATH_KILL);
    rig_run(rig, 200 * MS);
    struct rig_call call;
    rig_send(rig, &call, leader, 0, 500);
    assert_true(rig_wait(rig, rig_call_done, &call, 6 * S) >= 0);
    assert_int_not_equal(call.status, STATUS_OK);
    rig_run(rig, 5 * S);
    assert_false(rig_facts(rig, leader).leader_serving);
    sim_node_start(rig_node(rig, (leader + 1) % 3));
    assert_true(rig_leader(rig, 8 * S) >= 0);
    rig_assert_log(rig, sim_group_leader(&rig->group)->index);
    rig_free(rig);
}

static void a_whole_group_restarts_in_any_order(void **state)
{
    (void)state;
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (int order = 0; order < 6; order++) {
        int leader;
        struct rig *rig = rig_founded(3, 50 + (uint64_t)order, &leader);
        rig_produce_many(rig, 10);
        for (int i = 0; i < 3; i++)
            sim_node_kill(rig_node(rig, i), order % 2 ? SIM_DEATH_KILL : SIM_DEATH_POWER);
        rig_run(rig, 100 * MS);
        for (int i = 0; i < 3; i++) {
            sim_node_start(rig_node(rig, orders[order][i]));
            rig_run(rig, order * 500 * MS);
        }
        assert_true(rig_leader(rig, 8 * S) >= 0);
        rig_assert_log(rig, sim_group_leader(&rig->group)->index);
        for (int i = 0; i < 3; i++)
            rig_assert_catches_up(rig, i, 5 * S);
        rig_free(rig);
    }
}

/* ---- handing over ---- */

static void leadership_is_handed_over_without_a_failed_request(void **state)
{
    (void)state;
    for (uint64_t seed = 60; seed < 66; seed++) {
        int leader;
        struct rig *rig = rig_founded(3, seed, &leader);
        rig_produce_many(rig, 10);
        int target = (leader + 1) % 3;
        int32_t epoch = rig_facts(rig, leader).epoch;
        struct rig_call call;
        rig_send(rig, &call, leader, 0, rig->acknowledged);
        sim_node_transfer(rig_node(rig, leader), target + 1);
        int64_t gap = rig_wait(rig, rig_leads_above, &epoch, 2 * S);
        assert_true(gap >= 0);
        print_message("seed %llu: handed over in %lld ms\n", (unsigned long long)seed,
                      (long long)(gap / 1000));
        assert_true(gap <= 60 * MS);
        assert_int_equal(sim_group_leader(&rig->group)->index, target);
        assert_true(call.done);
        assert_int_equal(call.status, STATUS_OK);
        rig->acknowledged++;
        int64_t began = rig->world.now_us;
        rig_produce_many(rig, 1);
        assert_true(rig->world.now_us - began <= 50 * MS);
        rig_produce_many(rig, 10);
        for (int i = 0; i < 3; i++)
            rig_assert_catches_up(rig, i, 2 * S);
        rig_free(rig);
    }
}

static bool is_down(struct rig *rig, void *index)
{
    return !sim_node_is_up(rig_node(rig, *(int *)index));
}

static void a_stopped_leader_leaves_a_successor(void **state)
{
    int leader;
    (void)state;
    struct rig *rig = rig_founded(3, 70, &leader);
    rig_produce_many(rig, 5);
    int old = leader;
    int32_t epoch = rig_facts(rig, leader).epoch;
    sim_node_stop(rig_node(rig, old));
    assert_true(rig_wait(rig, rig_leads_above, &epoch, 2 * S) >= 0);
    assert_true(rig_wait(rig, is_down, &old, 2 * S) >= 0);
    rig_produce_many(rig, 5);
    sim_node_start(rig_node(rig, old));
    rig_assert_catches_up(rig, old, 5 * S);
    rig_free(rig);
}

static void a_transfer_to_a_dead_replica_leaves_the_leader_serving(void **state)
{
    int leader;
    (void)state;
    struct rig *rig = rig_founded(3, 71, &leader);
    rig_produce_many(rig, 5);
    int dead = (leader + 1) % 3;
    int32_t epoch = rig_facts(rig, leader).epoch;
    sim_node_kill(rig_node(rig, dead), SIM_DEATH_POWER);
    sim_node_transfer(rig_node(rig, leader), dead + 1);
    rig_run(rig, 10 * MS);
    int64_t began = rig->world.now_us;
    rig_produce_many(rig, 3);
    assert_true(rig->world.now_us - began <= 2500 * MS);
    assert_int_equal(rig_facts(rig, leader).epoch, epoch);
    rig_free(rig);
}

/* ---- coming back with nothing ---- */

static void a_wiped_follower_comes_back_through_an_incarnation_entry(void **state)
{
    int leader;
    (void)state;
    struct rig *rig = rig_founded(3, 80, &leader);
    rig_produce_many(rig, 10);
    int wiped = (leader + 1) % 3;
    struct uuid before = rig_facts(rig, wiped).incarnation;
    sim_node_kill(rig_node(rig, wiped), SIM_DEATH_KILL);
    sim_disk_wipe(sim_machine_disk(rig_node(rig, wiped)->machine));
    sim_node_start(rig_node(rig, wiped));
    uint32_t without = 7u & ~(1u << wiped), all = 7;
    assert_true(rig_wait(rig, rig_isr_is, &without, 3 * S) >= 0);
    assert_true(rig_wait(rig, rig_in_sync, &all, 8 * S) >= 0);
    struct uuid after = rig_facts(rig, wiped).incarnation;
    assert_false(uuid_equal(&before, &after));
    rig_assert_catches_up(rig, wiped, S);
    assert_true(rig_facts(rig, leader).alarms > 0);
    rig_produce_many(rig, 5);
    rig_assert_catches_up(rig, wiped, S);
    rig_free(rig);
}

static void a_wiped_leader_does_not_take_its_records_along(void **state)
{
    int leader;
    (void)state;
    struct rig *rig = rig_founded(3, 81, &leader);
    rig_produce_many(rig, 10);
    int wiped = leader;
    int32_t epoch = rig_facts(rig, leader).epoch;
    sim_node_kill(rig_node(rig, wiped), SIM_DEATH_KILL);
    sim_disk_wipe(sim_machine_disk(rig_node(rig, wiped)->machine));
    sim_node_start(rig_node(rig, wiped));
    assert_true(rig_wait(rig, rig_leads_above, &epoch, 5 * S) >= 0);
    assert_int_not_equal(sim_group_leader(&rig->group)->index, wiped);
    rig_produce_many(rig, 5);
    uint32_t all = 7;
    assert_true(rig_wait(rig, rig_in_sync, &all, 8 * S) >= 0);
    rig_assert_catches_up(rig, wiped, S);
    rig_free(rig);
}

static void a_lost_raft_file_is_another_incarnation(void **state)
{
    int leader;
    (void)state;
    struct rig *rig = rig_founded(3, 82, &leader);
    rig_produce_many(rig, 10);
    int hurt = (leader + 2) % 3;
    struct uuid before = rig_facts(rig, hurt).incarnation;
    sim_node_kill(rig_node(rig, hurt), SIM_DEATH_KILL);
    assert_true(sim_disk_delete(sim_machine_disk(rig_node(rig, hurt)->machine),
                                SIM_DATA_DIR "/replication-raft.json"));
    sim_node_start(rig_node(rig, hurt));
    rig_run(rig, 100 * MS);
    struct uuid after = rig_facts(rig, hurt).incarnation;
    assert_false(uuid_equal(&before, &after));
    uint32_t all = 7;
    assert_true(rig_wait(rig, rig_in_sync, &all, 8 * S) >= 0);
    rig_assert_catches_up(rig, hurt, S);
    rig_free(rig);
}

/* A copy of itself from before: its durable offset went back. It draws a new incarnation by itself
 * and loses nothing of the others'. */
static void a_restored_data_dir_is_found_out(void **state)
{
    int leader;
    (void)state;
    struct rig *rig = rig_founded(3, 83, &leader);
    rig_produce_many(rig, 5);
    int old = (leader + 1) % 3;
    rig_assert_catches_up(rig, old, S);
    sim_node_kill(rig_node(rig, old), SIM_DEATH_KILL);
    struct sim_disk *disk = sim_machine_disk(rig_node(rig, old)->machine);
    struct sim_disk_image *image = sim_disk_copy(disk);
    struct uuid before = {{0}};
    sim_node_start(rig_node(rig, old));
    uint32_t all = 7;
    rig_run(rig, 200 * MS);
    assert_true(rig_wait(rig, rig_in_sync, &all, 8 * S) >= 0);
    before = rig_facts(rig, old).incarnation;
    rig_produce_many(rig, 10);
    rig_assert_catches_up(rig, old, S);
    sim_node_kill(rig_node(rig, old), SIM_DEATH_KILL);
    sim_disk_restore(disk, image);
    sim_disk_image_free(image);
    sim_node_start(rig_node(rig, old));
    rig_run(rig, S);
    assert_true(rig_wait(rig, rig_in_sync, &all, 10 * S) >= 0);
    rig_assert_catches_up(rig, old, 2 * S);
    (void)before;
    for (int i = 0; i < 3; i++)
        rig_assert_log(rig, i);
    rig_free(rig);
}

/* A shrink committed on the leader and on the very replica it removed; then the leader dies. */
static void a_caretaker_brings_back_a_leader(void **state)
{
    (void)state;
    for (uint64_t seed = 90; seed < 96; seed++) {
        int leader;
        struct rig *rig = rig_founded(3, seed, &leader);
        rig_produce_many(rig, 5);
        int removed = (leader + 1) % 3, stays = (leader + 2) % 3;
        /* Its disk stands still, so it leaves the set; it still stores Raft's entries. */
        struct sim_stall stall = {.until_us = rig->world.now_us + 60 * S,
                                  .lanes = 1u << EXECUTOR_LANE_DISK,
                                  .before_run = true};
        sim_machine_set_stall(rig_node(rig, removed)->machine, &stall);
        struct rig_call call;
        rig_send(rig, &call, leader, 0, rig->acknowledged);
        rig_run(rig, 900 * MS);
        /* The one that stays hears nothing of the shrink. */
        sim_group_cut(&rig->group, leader, stays, true);
        uint32_t isr = 7u & ~(1u << removed);
        int64_t shrunk = rig_wait(rig, rig_isr_is, &isr, 600 * MS);
        sim_node_kill(rig_node(rig, leader), SIM_DEATH_KILL);
        sim_group_heal_network(&rig->group);
        struct sim_stall none = {0};
        sim_machine_set_stall(rig_node(rig, removed)->machine, &none);
        assert_true(rig_leader(rig, 15 * S) >= 0);
        print_message("seed %llu: shrunk after %lld, leader %d, stays %d\n",
                      (unsigned long long)seed, (long long)shrunk,
                      sim_group_leader(&rig->group)->index, stays);
        if (call.done && call.status == STATUS_OK) rig->acknowledged++;
        rig_assert_log(rig, sim_group_leader(&rig->group)->index);
        rig_free(rig);
    }
}

/* ---- copies that were cut, and copied DataDirs ---- */

#define ORDERS_LOG SIM_DATA_DIR "/topics/orders/0/00000000000000000000.log"

/* F28: a flip in the last batch looks like a tear, and is cut. Whoever is elected, the acknowledged
 * record is still there, because another replica holds it. */
static void who_cut_a_tail_leads_only_if_nobody_holds_more(void **state)
{
    (void)state;
    int cut = 0;
    for (uint64_t seed = 100; seed < 112; seed++) {
        int leader;
        struct rig *rig = rig_founded(3, seed, &leader);
        rig_produce_many(rig, 10);
        for (int i = 0; i < 3; i++)
            rig_assert_catches_up(rig, i, 2 * S);
        int hurt = (int)(seed % 3), absent = (hurt + 1) % 3;
        struct partition *orders = rig_partition(rig_node(rig, hurt), TOPIC, 0);
        int64_t bytes = partition_log_bytes(partition_log_of(orders));
        for (int i = 0; i < 3; i++)
            sim_node_kill(rig_node(rig, i), SIM_DEATH_KILL);
        struct sim_disk *disk = sim_machine_disk(rig_node(rig, hurt)->machine);
        assert_true(sim_disk_flip_bit(disk, ORDERS_LOG, bytes - 2, 3));
        for (int i = 0; i < 3; i++) {
            if (i != absent) sim_node_start(rig_node(rig, i));
        }
        assert_true(rig_leader(rig, 15 * S) >= 0);
        rig_assert_log(rig, sim_group_leader(&rig->group)->index);
        if (partition_was_cut(rig_partition(rig_node(rig, hurt), TOPIC, 0))) cut++;
        sim_node_start(rig_node(rig, absent));
        for (int i = 0; i < 3; i++)
            rig_assert_catches_up(rig, i, 15 * S);
        rig_free(rig);
    }
    assert_true(cut > 0); /* or this shows nothing */
}

/* F39: the documented seeding, with a damaged byte in it. */
static void a_copied_data_dir_is_verified_before_it_follows(void **state)
{
    (void)state;
    for (int damaged = 0; damaged < 2; damaged++) {
        int leader;
        struct rig *rig = rig_founded(3, 120, &leader);
        rig_produce_many(rig, 20);
        int from = (leader + 1) % 3, to = (leader + 2) % 3;
        rig_assert_catches_up(rig, from, 2 * S);
        struct uuid before = rig_facts(rig, to).incarnation;
        struct uuid theirs = rig_facts(rig, from).incarnation;
        sim_node_kill(rig_node(rig, to), SIM_DEATH_KILL);
        struct sim_disk_image *image =
            sim_disk_copy(sim_machine_disk(rig_node(rig, from)->machine));
        struct sim_disk *disk = sim_machine_disk(rig_node(rig, to)->machine);
        sim_disk_wipe(disk);
        sim_disk_restore(disk, image);
        sim_disk_image_free(image);
        if (damaged) assert_true(sim_disk_flip_bit(disk, ORDERS_LOG, 100, 2));
        sim_node_start(rig_node(rig, to));
        rig_run(rig, 200 * MS);
        struct uuid after = rig_facts(rig, to).incarnation;
        assert_false(uuid_equal(&after, &before) || uuid_equal(&after, &theirs));
        uint32_t all = 7;
        assert_true(rig_wait(rig, rig_in_sync, &all, 15 * S) >= 0);
        rig_assert_catches_up(rig, to, 2 * S);
        for (int i = 0; i < 3; i++)
            rig_assert_log(rig, i);
        rig_free(rig);
    }
}

/* ---- what goes by time, or by hand ---- */

static uint64_t alarms_of(struct rig *rig, int index, const char *wanted)
{
    const char *kind;
    uint64_t count;
    for (uint32_t i = 0; node_alarm_count(rig_node(rig, index)->node, i, &kind, &count); i++) {
        if (strcmp(kind, wanted) == 0) return count;
    }
    return 0;
}

/* F45: neither while it runs, nor when it starts with it. */
static void a_leader_whose_clock_the_others_contradict_deletes_nothing(void **state)
{
    int leader;
    (void)state;
    struct rig *rig = rig_founded(3, 45, &leader);
    rig_produce_many(rig, 5);
    struct sim_node *wrong = rig_node(rig, leader);
    sim_machine_set_wall_offset(wrong->machine, 3650 * 86400000LL);
    rig_run(rig, 100 * S);
    assert_true(alarms_of(rig, leader, "clock_doubted") > 0);
    assert_int_equal(partition_log_start(rig_partition(wrong, TOPIC, 0)), 0);
    sim_node_kill(wrong, SIM_DEATH_KILL);
    sim_node_start(wrong);
    rig_run(rig, 20 * S);
    for (int i = 0; i < 3; i++) {
        if (i != leader) sim_node_kill(rig_node(rig, i), SIM_DEATH_KILL);
    }
    for (int i = 0; i < 3; i++) {
        if (i != leader) sim_node_start(rig_node(rig, i));
    }
    assert_true(rig_leader(rig, 20 * S) >= 0);
    rig_run(rig, 100 * S);
    for (int i = 0; i < 3; i++)
        assert_int_equal(partition_log_start(rig_partition(rig_node(rig, i), TOPIC, 0)), 0);
    rig_free(rig);
}

struct deletion_call {
    struct sim_node *node;
    struct delete_records request;
    bool done;
};

static void deletion_done(void *context, struct delete_records *request)
{
    (void)request;
    ((struct deletion_call *)context)->done = true;
}

static void deletion_in(void *context)
{
    struct deletion_call *call = context;
    call->request = (struct delete_records){.partition = rig_partition(call->node, TOPIC, 0),
                                            .before_offset = 7,
                                            .timeout_us = 5 * S,
                                            .done = deletion_done,
                                            .context = call};
    broker_delete_records(call->node->broker, &call->request);
}

static bool deletion_is_done(struct rig *rig, void *context)
{
    (void)rig;
    return ((struct deletion_call *)context)->done;
}

static void deleted_records_stay_deleted_when_all_lose_power(void **state)
{
    int leader;
    (void)state;
    struct rig *rig = rig_founded(3, 46, &leader);
    rig_produce_many(rig, 10);
    rig_run(rig, 2 * S);
    struct deletion_call call = {.node = rig_node(rig, leader)};
    assert_true(sim_machine_run(call.node->machine, deletion_in, &call));
    int64_t took = rig_wait(rig, deletion_is_done, &call, 5 * S);
    assert_true(took >= 0 && took < 500 * MS);
    assert_int_equal(call.request.status, STATUS_OK);
    for (int i = 0; i < 3; i++)
        sim_node_kill(rig_node(rig, i), SIM_DEATH_POWER);
    for (int i = 0; i < 3; i++) {
        if (i != leader) sim_node_start(rig_node(rig, i));
    }
    leader = rig_leader(rig, 20 * S);
    assert_true(leader >= 0);
    assert_int_equal(partition_log_start(rig_partition(rig_node(rig, leader), TOPIC, 0)), 7);
    rig_free(rig);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_fresh_group_founds_itself_and_serves),
    cmocka_unit_test(founding_waits_for_all_members),
    cmocka_unit_test(a_group_of_five_serves),
    cmocka_unit_test(a_killed_leader_is_replaced_within_a_moment),
    cmocka_unit_test(a_leader_without_power_is_replaced),
    cmocka_unit_test(unacknowledged_records_of_a_dead_leader_are_cut),
    cmocka_unit_test(a_dead_follower_leaves_the_set_at_once),
    cmocka_unit_test(a_silent_follower_leaves_the_set_soon),
    cmocka_unit_test(a_group_below_its_minimum_refuses),
    cmocka_unit_test(a_whole_group_restarts_in_any_order),
    cmocka_unit_test(leadership_is_handed_over_without_a_failed_request),
    cmocka_unit_test(a_stopped_leader_leaves_a_successor),
    cmocka_unit_test(a_transfer_to_a_dead_replica_leaves_the_leader_serving),
    cmocka_unit_test(a_wiped_follower_comes_back_through_an_incarnation_entry),
    cmocka_unit_test(a_wiped_leader_does_not_take_its_records_along),
    cmocka_unit_test(a_lost_raft_file_is_another_incarnation),
    cmocka_unit_test(a_restored_data_dir_is_found_out),
    cmocka_unit_test(a_caretaker_brings_back_a_leader),
    cmocka_unit_test(who_cut_a_tail_leads_only_if_nobody_holds_more),
    cmocka_unit_test(a_leader_whose_clock_the_others_contradict_deletes_nothing),
    cmocka_unit_test(deleted_records_stay_deleted_when_all_lose_power),
    cmocka_unit_test(a_copied_data_dir_is_verified_before_it_follows),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
