/* group_test.c: whole groups of cores, run fairly with planted faults. Messages and writes take no
 * time here, so times are what the rules alone cost.                                          */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "unit/raft/raft_net.h"

static void close_net(struct net *net)
{
    assert_string_equal(net->violation, "");
    net_free(net);
}

static bool in_isr(struct net *net, int by, int who)
{
    return raft_ids_contain(&raft_known(net->nodes[by].raft)->isr, net_id(who));
}

/* ---- founding ----------------------------------------------------------------------------- */

static void fresh_members_found_a_group(void **state)
{
    (void)state;
    for (int n = 3; n <= 5; n += 2) {
        struct net *net = net_new(n, (uint64_t)n);
        for (int i = 0; i < n; i++)
            net_start(net, i);
        net_run(net, NET_T);
        int leader = net_leader(net);
        assert_true(leader >= 0);
        for (int i = 0; i < n; i++) {
            assert_true(net_info(net, i).bound);
            assert_int_equal(net_info(net, i).leader, net_id(leader));
            assert_int_equal(raft_known(net->nodes[i].raft)->isr.count, n);
        }
        close_net(net);
    }
}

static void nothing_is_founded_while_a_member_is_missing(void **state)
{
    (void)state;
    struct net *net = net_new(3, 1);
    net_start(net, 0);
    net_start(net, 1);
    net_run(net, 20 * NET_T);
    assert_int_equal(net_leader(net), -1);
    assert_int_equal(net_info(net, 0).term, 0);
    net_start(net, 2);
    net_run(net, 3 * NET_T);
    assert_true(net_leader(net) >= 0);
    close_net(net);
}

static void replica_with_records_founds_alone_in_the_isr(void **state)
{
    (void)state;
    struct net *net = net_new(3, 1);
    net->nodes[2].holds_records = true;
    for (int i = 0; i < 3; i++)
        net_start(net, i);
    net_run(net, 3 * NET_T);
    assert_int_equal(net_leader(net), 2);
    assert_int_equal(raft_known(net->nodes[0].raft)->isr.count, 1);
    close_net(net);
}

static void two_replicas_with_records_found_nothing(void **state)
{
    (void)state;
    struct net *net = net_new(3, 1);
    net->nodes[1].holds_records = net->nodes[2].holds_records = true;
    for (int i = 0; i < 3; i++)
        net_start(net, i);
    net_run(net, 20 * NET_T);
    assert_int_equal(net_leader(net), -1);
    struct raft_ids missing;
    raft_missing_for_founding(net->nodes[0].raft, &missing);
    assert_int_equal(missing.count, 2);
    close_net(net);
}

static void wiped_replicas_alone_can_found_nothing(void **state)
{
    (void)state;
    struct net *net = net_founded(3, 2);
    net_crash(net, 0, true);
    net_crash(net, 1, true);
    net_wipe(net, 0, false);
    net_wipe(net, 1, false);
    net_start(net, 0);
    net_start(net, 1);
    net_run(net, 30 * NET_T);
    assert_int_equal(net_leader(net), -1);
    assert_false(net_info(net, 0).bound);
    close_net(net);
}

/* ---- failing over ------------------------------------------------------------------------- */

static void dead_leader_is_replaced_within_a_quarter_of_a_second(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct net *net = net_founded(3, seed);
        net_crash(net, net_leader(net), true);
        int64_t from = net->now_us;
        while (net_leader(net) < 0 && net->now_us - from < 5 * NET_T)
            net_run(net, 5 * NET_MS);
        assert_in_range(net->now_us - from, 10 * NET_MS, 250 * NET_MS);
        close_net(net);
    }
}

static void silent_leader_is_replaced_within_two_timeouts_and_a_half(void **state)
{
    (void)state;
    struct net *net = net_founded(3, 4);
    int old = net_leader(net);
    net_isolate(net, old, true);
    int64_t from = net->now_us;
    while ((net_leader(net) < 0 || net_leader(net) == old) && net->now_us - from < 9 * NET_T)
        net_run(net, 10 * NET_MS);
    assert_true(net->now_us - from <= 5 * NET_T / 2);
    assert_false(net->nodes[old].serves);
    assert_int_equal(net->nodes[old].down_why, RAFT_DOWN_NO_MAJORITY);
    close_net(net);
}

static void cut_off_replica_comes_back_without_an_election(void **state)
{
    (void)state;
    struct net *net = net_founded(3, 5);
    int leader = net_leader(net);
    int other = (leader + 1) % 3;
    int64_t term = net_info(net, leader).term;
    net_isolate(net, other, true);
    net_run(net, 20 * NET_T);
    assert_int_equal(net_info(net, other).term, term);
    net_isolate(net, other, false);
    net_run(net, 5 * NET_T);
    assert_int_equal(net_leader(net), leader);
    assert_int_equal(net_info(net, leader).term, term);
    close_net(net);
}

static void restarted_follower_causes_no_election(void **state)
{
    (void)state;
    struct net *net = net_founded(3, 6);
    int leader = net_leader(net);
    int other = (leader + 1) % 3;
    for (int i = 0; i < 5; i++) {
        net_crash(net, other, true);
        net_run(net, 700 * NET_MS);
        net_start(net, other);
        net_run(net, 3 * NET_T);
    }
    assert_int_equal(net_leader(net), leader);
    assert_int_equal(net_info(net, leader).term, 1);
    close_net(net);
}

static void group_comes_back_after_all_were_killed_in_any_order(void **state)
{
    (void)state;
    static const int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                    {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (size_t o = 0; o < ARRAY_COUNT(orders); o++) {
        struct net *net = net_founded(3, 7);
        for (int i = 0; i < 3; i++)
            net_crash(net, i, false);
        for (int i = 0; i < 3; i++) {
            net_start(net, orders[o][i]);
            net_run(net, 2 * NET_T);
        }
        net_run(net, 3 * NET_T);
        assert_true(net_leader(net) >= 0);
        close_net(net);
    }
}

static void minority_left_alone_does_not_lead(void **state)
{
    (void)state;
    struct net *net = net_founded(5, 8);
    int leader = net_leader(net);
    net_crash(net, (leader + 1) % 5, true);
    net_crash(net, (leader + 2) % 5, true);
    net_run(net, 5 * NET_T);
    assert_int_equal(net_leader(net), leader);
    net_crash(net, (leader + 3) % 5, true);
    net_run(net, 10 * NET_T);
    assert_int_equal(net_leader(net), -1);
    net_start(net, (leader + 1) % 5);
    net_run(net, 5 * NET_T);
    assert_true(net_leader(net) >= 0);
    close_net(net);
}

/* ---- transfer ----------------------------------------------------------------------------- */

static void transfer_takes_no_time_and_one_term(void **state)
{
    (void)state;
    struct net *net = net_founded(3, 9);
    int leader = net_leader(net);
    int target = (leader + 1) % 3;
    int64_t term = net_info(net, leader).term;
    struct raft_event event = {.kind = RAFT_EVENT_TRANSFER, .transfer = {.target = net_id(target)}};
    assert_int_equal(net_step(net, leader, &event), STATUS_OK);
    net_flush(net);
    assert_int_equal(net_leader(net), target);
    assert_int_equal(net_info(net, target).term, term + 1);
    assert_int_equal(net->nodes[leader].down_why, RAFT_DOWN_TRANSFERRED);
    close_net(net);
}

static void transfer_to_a_dead_target_is_given_up_within_a_second(void **state)
{
    (void)state;
    struct net *net = net_founded(3, 10);
    int leader = net_leader(net);
    int target = (leader + 1) % 3;
    net_isolate(net, target, true);
    struct raft_event event = {.kind = RAFT_EVENT_TRANSFER, .transfer = {.target = net_id(target)}};
    assert_int_equal(net_step(net, leader, &event), STATUS_OK);
    net_run(net, NET_T);
    assert_int_equal(net->nodes[leader].transfers_failed, 1);
    assert_int_equal(net_leader(net), leader);
    close_net(net);
}

/* ---- amnesia and caretakers --------------------------------------------------------------- */

static void wiped_replica_is_recorded_and_taken_back(void **state)
{
    (void)state;
    struct net *net = net_founded(3, 11);
    int leader = net_leader(net);
    int wiped = (leader + 1) % 3;
    net_crash(net, wiped, true);
    net_wipe(net, wiped, false);
    net_start(net, wiped);
    net_run(net, NET_T);
    assert_true(net_info(net, wiped).learner);
    assert_true(net_info(net, wiped).bound);
    assert_int_equal(net_propose_isr(net, leader, wiped, false), STATUS_OK);
    net_run(net, NET_T);
    assert_int_equal(net_propose_isr(net, leader, wiped, true), STATUS_INVALID);
    assert_int_equal(net_propose_incarnation(net, leader, wiped), STATUS_OK);
    net_run(net, NET_T);
    assert_false(net_info(net, wiped).learner);
    assert_int_equal(net_propose_isr(net, leader, wiped, true), STATUS_OK);
    net_run(net, NET_T);
    assert_true(in_isr(net, wiped, wiped));
    close_net(net);
}

static void learner_does_not_help_to_record_itself(void **state)
{
    (void)state;
    struct net *net = net_founded(3, 12);
    int leader = net_leader(net);
    int wiped = (leader + 1) % 3;
    int third = (leader + 2) % 3;
    net_crash(net, wiped, true);
    net_run(net, NET_T);
    net_wipe(net, wiped, false);
    net_start(net, wiped);
    net_run(net, NET_T / 2);
    net_isolate(net, third, true);
    assert_int_equal(net_propose_incarnation(net, leader, wiped), STATUS_OK);
    net_run(net, 10 * NET_T);
    for (int i = 0; i < 3; i++)
        assert_int_equal(net_info(net, i).commit, 1);
    assert_int_equal(net_leader(net), -1);
    net_isolate(net, third, false);
    net_run(net, 10 * NET_T);
    assert_true(net_leader(net) >= 0);
    close_net(net);
}

static void operator_readmits_where_a_majority_was_lost(void **state)
{
    (void)state;
    struct net *net = net_founded(3, 13);
    int survivor = net_leader(net);
    for (int i = 0; i < 3; i++) {
        if (i == survivor) continue;
        net_crash(net, i, true);
        net_wipe(net, i, false);
        net_start(net, i);
    }
    net_run(net, 10 * NET_T);
    assert_int_equal(net_leader(net), -1);
    int wiped = (survivor + 1) % 3;
    struct raft_event event = {
        .kind = RAFT_EVENT_READMIT,
        .readmit = {.replica = net_id(wiped), .incarnation = net->nodes[wiped].incarnation}};
    assert_int_equal(net_step(net, survivor, &event), STATUS_OK);
    assert_int_equal(net_step(net, wiped, &event), STATUS_OK);
    net_run(net, 10 * NET_T);
    assert_int_equal(net_leader(net), survivor);
    assert_int_equal(net_propose_incarnation(net, survivor, wiped), STATUS_OK);
    net_run(net, NET_T);
    assert_false(net_info(net, wiped).learner);
    close_net(net);
}

/* A shrink is known to the leader and to the one it removed, then the leader dies: the other has
 * the longer log and may not claim, the ISR member has the shorter one and is refused. */
static void caretaker_hands_over_to_the_isr_member_with_the_shorter_log(void **state)
{
    (void)state;
    struct net *net = net_founded(3, 14);
    int leader = net_leader(net);
    int removed = (leader + 1) % 3;
    int kept = (leader + 2) % 3;
    net_isolate(net, kept, true);
    assert_int_equal(net_propose_isr(net, leader, removed, false), STATUS_OK);
    net_run(net, 100 * NET_MS);
    assert_int_equal(net_info(net, leader).commit, 2);
    net_crash(net, leader, true);
    net_isolate(net, kept, false);
    net_connect(net, removed, kept);
    int64_t from = net->now_us;
    while (net_leader(net) < 0 && net->now_us - from < 20 * NET_T)
        net_run(net, 10 * NET_MS);
    assert_int_equal(net_leader(net), kept);
    assert_true(net->now_us - from <= 6 * NET_T);
    assert_int_equal(net->caretakers, 1);
    assert_false(in_isr(net, kept, removed));
    close_net(net);
}

static void lost_raft_file_makes_a_learner_that_comes_back(void **state)
{
    (void)state;
    struct net *net = net_founded(3, 15);
    int leader = net_leader(net);
    int hurt = (leader + 1) % 3;
    struct uuid before = net->nodes[hurt].incarnation;
    net_crash(net, hurt, true);
    net_wipe(net, hurt, true);
    net_start(net, hurt);
    assert_false(uuid_equal(&before, &net->nodes[hurt].incarnation));
    net_run(net, NET_T);
    assert_true(net_info(net, hurt).learner);
    assert_int_equal(net_propose_incarnation(net, leader, hurt), STATUS_OK);
    net_run(net, NET_T);
    assert_false(net_info(net, hurt).learner);
    close_net(net);
}

/* ---- confirming --------------------------------------------------------------------------- */

static void leader_without_its_majority_confirms_nothing(void **state)
{
    (void)state;
    struct net *net = net_founded(3, 16);
    int leader = net_leader(net);
    struct raft_event event = {.kind = RAFT_EVENT_CONFIRM};
    assert_int_equal(net_step(net, leader, &event), STATUS_OK);
    uint64_t round = net->out->round;
    net_flush(net);
    assert_true(net->nodes[leader].confirmed >= round);
    net_isolate(net, leader, true);
    assert_int_equal(net_step(net, leader, &event), STATUS_OK);
    round = net->out->round;
    net_run(net, 3 * NET_T);
    assert_true(net->nodes[leader].confirmed < round);
    close_net(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fresh_members_found_a_group),
        cmocka_unit_test(nothing_is_founded_while_a_member_is_missing),
        cmocka_unit_test(replica_with_records_founds_alone_in_the_isr),
        cmocka_unit_test(two_replicas_with_records_found_nothing),
        cmocka_unit_test(wiped_replicas_alone_can_found_nothing),
        cmocka_unit_test(dead_leader_is_replaced_within_a_quarter_of_a_second),
        cmocka_unit_test(silent_leader_is_replaced_within_two_timeouts_and_a_half),
        cmocka_unit_test(cut_off_replica_comes_back_without_an_election),
        cmocka_unit_test(restarted_follower_causes_no_election),
        cmocka_unit_test(group_comes_back_after_all_were_killed_in_any_order),
        cmocka_unit_test(minority_left_alone_does_not_lead),
        cmocka_unit_test(transfer_takes_no_time_and_one_term),
        cmocka_unit_test(transfer_to_a_dead_target_is_given_up_within_a_second),
        cmocka_unit_test(wiped_replica_is_recorded_and_taken_back),
        cmocka_unit_test(learner_does_not_help_to_record_itself),
        cmocka_unit_test(operator_readmits_where_a_majority_was_lost),
        cmocka_unit_test(caretaker_hands_over_to_the_isr_member_with_the_shorter_log),
        cmocka_unit_test(lost_raft_file_makes_a_learner_that_comes_back),
        cmocka_unit_test(leader_without_its_majority_confirms_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
