/* view_test.c: what entries, applied in order, say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "unit/raft/raft_rig.h"

static struct raft_view founded(void)
{
    struct raft_view view;
    raft_view_init(&view);
    struct raft_entry entry = rig_founding(1, 1, 2);
    assert_true(raft_view_apply(&view, &entry));
    return view;
}

static void founding_claim_makes_the_group(void **state)
{
    (void)state;
    struct raft_view view = founded();
    assert_int_equal(view.epoch, 1);
    assert_int_equal(view.leader, 2);
    assert_int_equal(view.isr.count, 3);
    assert_true(view.reached_minimum);
    struct uuid incarnation = rig_uuid(3);
    assert_true(raft_view_records(&view, 3, &incarnation));
    assert_true(raft_view_member(&view, 3)->sure);
}

static void later_founding_claim_replaces_group_members_and_isr(void **state)
{
    (void)state;
    struct raft_view view = founded();
    struct raft_entry entry = rig_founding(2, 2, 3);
    entry.claim.group = rig_uuid(78);
    entry.claim.isr = rig_ids(3, 0, 0);
    entry.claim.members[0].incarnation = rig_uuid(9);
    assert_true(raft_view_apply(&view, &entry));
    struct uuid group = rig_uuid(78);
    struct uuid old = rig_uuid(1);
    assert_true(uuid_equal(&view.group, &group));
    assert_int_equal(view.isr.count, 1);
    assert_false(view.reached_minimum);
    assert_false(raft_view_records(&view, 1, &old));
}

static void claim_moves_leader_and_epoch_only(void **state)
{
    (void)state;
    struct raft_view view = founded();
    struct raft_entry entry = rig_claim(2, 5, 1);
    assert_true(raft_view_apply(&view, &entry));
    assert_int_equal(view.epoch, 5);
    assert_int_equal(view.leader, 1);
    assert_int_equal(view.isr.count, 3);
    assert_int_equal(view.member_count, 3);
}

static void isr_of_another_epoch_is_void(void **state)
{
    (void)state;
    struct raft_view view = founded();
    struct raft_entry entry = rig_isr(2, 2, 2, rig_ids(1, 2, 0));
    assert_false(raft_view_apply(&view, &entry));
    assert_int_equal(view.isr.count, 3);
}

static void isr_change_before_the_next_claim_counts_by_the_epoch_then_in_force(void **state)
{
    (void)state;
    struct raft_view view = founded();
    struct raft_entry entry = rig_isr(2, 1, 1, rig_ids(1, 2, 0));
    struct raft_entry claim = rig_claim(3, 4, 1);
    struct raft_entry late = rig_isr(4, 4, 1, rig_ids(1, 2, 3));
    assert_true(raft_view_apply(&view, &entry));
    assert_true(raft_view_apply(&view, &claim));
    assert_false(raft_view_apply(&view, &late));
    assert_int_equal(view.isr.count, 2);
}

static void incarnation_takes_the_replaced_one_out_even_below_the_minimum(void **state)
{
    (void)state;
    struct raft_view view = founded();
    struct raft_entry shrink = rig_isr(2, 1, 1, rig_ids(1, 2, 0));
    struct raft_entry entry = rig_incarnation(3, 1, 2, 20);
    assert_true(raft_view_apply(&view, &shrink));
    assert_true(raft_view_apply(&view, &entry));
    assert_int_equal(view.isr.count, 1);
    assert_false(raft_view_member(&view, 2)->sure);
    assert_true(view.reached_minimum);
}

static void incarnation_is_applied_whatever_its_stamp(void **state)
{
    (void)state;
    struct raft_view view = founded();
    struct raft_entry entry = rig_incarnation(2, 9, 2, 20);
    struct uuid incarnation = rig_uuid(20);
    assert_true(raft_view_apply(&view, &entry));
    assert_true(raft_view_records(&view, 2, &incarnation));
}

static void isr_entry_proves_the_incarnations_it_lists(void **state)
{
    (void)state;
    struct raft_view view = founded();
    struct raft_entry entry = rig_incarnation(2, 1, 2, 20);
    struct raft_entry expand = rig_isr(3, 1, 1, rig_ids(1, 2, 3));
    assert_true(raft_view_apply(&view, &entry));
    assert_true(raft_view_apply(&view, &expand));
    assert_true(raft_view_member(&view, 2)->sure);
}

static void strangers_change_nothing(void **state)
{
    (void)state;
    struct raft_view view = founded();
    struct raft_entry isr = rig_isr(2, 1, 1, rig_ids(1, 2, 9));
    struct raft_entry incarnation = rig_incarnation(3, 1, 9, 20);
    assert_false(raft_view_apply(&view, &isr));
    assert_false(raft_view_apply(&view, &incarnation));
    assert_int_equal(view.isr.count, 3);
}

static void unknown_kind_stops_the_view(void **state)
{
    (void)state;
    struct raft_view view = founded();
    struct raft_entry opaque = rig_opaque(2, 1);
    struct raft_entry claim = rig_claim(3, 2, 3);
    assert_false(raft_view_apply(&view, &opaque));
    assert_false(raft_view_apply(&view, &claim));
    assert_true(view.stopped);
    assert_int_equal(view.leader, 2);
}

static void sets_stay_ascending_without_repeats(void **state)
{
    (void)state;
    struct raft_ids set = {0};
    static const int32_t ids[] = {5, 1, 3, 5, 1};
    for (size_t i = 0; i < ARRAY_COUNT(ids); i++)
        assert_true(raft_ids_add(&set, ids[i]));
    assert_int_equal(set.count, 3);
    assert_int_equal(set.ids[0], 1);
    assert_int_equal(set.ids[1], 3);
    assert_int_equal(set.ids[2], 5);
    raft_ids_remove(&set, 3);
    assert_int_equal(set.count, 2);
    for (int32_t id = 10; id < 15; id++)
        assert_true(raft_ids_add(&set, id));
    assert_false(raft_ids_add(&set, 99));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(founding_claim_makes_the_group),
        cmocka_unit_test(later_founding_claim_replaces_group_members_and_isr),
        cmocka_unit_test(claim_moves_leader_and_epoch_only),
        cmocka_unit_test(isr_of_another_epoch_is_void),
        cmocka_unit_test(isr_change_before_the_next_claim_counts_by_the_epoch_then_in_force),
        cmocka_unit_test(incarnation_takes_the_replaced_one_out_even_below_the_minimum),
        cmocka_unit_test(incarnation_is_applied_whatever_its_stamp),
        cmocka_unit_test(isr_entry_proves_the_incarnations_it_lists),
        cmocka_unit_test(strangers_change_nothing),
        cmocka_unit_test(unknown_kind_stops_the_view),
        cmocka_unit_test(sets_stay_ascending_without_repeats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
