#include "unit/broker/modern_group_rig.h"

static struct rig rig;

static int setup(void **state)
{
    (void)state;
    rig_init(&rig);
    rig_set_topic(&rig, "orders", 6);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rig_deinit(&rig);
    return 0;
}

/* ---- short words ---- */

static const struct partition_set nothing;

static struct modern_heartbeat joining(const char *member, const struct slice *topic)
{
    struct modern_heartbeat heartbeat = rig_heartbeat(member, MODERN_EPOCH_JOIN);
    heartbeat.rebalance_timeout_ms = 60000;
    heartbeat.has_names = true;
    heartbeat.names = topic;
    heartbeat.name_count = topic != NULL ? 1 : 0;
    heartbeat.has_owned = true;
    heartbeat.owned = &nothing;
    return heartbeat;
}

static struct slice orders = {(const uint8_t *)"orders", 6};

static enum status join(const char *member)
{
    struct modern_heartbeat heartbeat = joining(member, &orders);
    enum status status = rig_send(&rig, &heartbeat);
    rig_commit(&rig);
    return status;
}

static enum status join_static(const char *member, const char *instance)
{
    struct modern_heartbeat heartbeat = joining(member, &orders);
    heartbeat.instance_id = slice_of_text(instance);
    enum status status = rig_send(&rig, &heartbeat);
    rig_commit(&rig);
    return status;
}

/* A heartbeat that says nothing new. */
static enum status beat(const char *member, int32_t epoch)
{
    struct modern_heartbeat heartbeat = rig_heartbeat(member, epoch);
    enum status status = rig_send(&rig, &heartbeat);
    rig_commit(&rig);
    return status;
}

static enum status leave_static(const char *member, const char *instance, int32_t epoch)
{
    struct modern_heartbeat heartbeat = rig_heartbeat(member, epoch);
    heartbeat.instance_id = slice_of_text(instance);
    enum status status = rig_send(&rig, &heartbeat);
    rig_commit(&rig);
    return status;
}

static enum status report(const char *member, int32_t epoch, const struct partition_set *owned)
{
    struct modern_heartbeat heartbeat = rig_heartbeat(member, epoch);
    struct partition_set copy = {0};
    partition_set_copy(&copy, owned);
    heartbeat.has_owned = true;
    heartbeat.owned = &copy;
    enum status status = rig_send(&rig, &heartbeat);
    partition_set_deinit(&copy);
    rig_commit(&rig);
    return status;
}

static struct modern_member_view member(const char *id)
{
    for (uint32_t i = 0; i < modern_group_member_count(rig.group); i++) {
        struct modern_member_view view = modern_group_member(rig.group, i);
        if (slice_compare(view.id, slice_of_text(id)) == 0) return view;
    }
    fail_msg("no member %s", id);
    return (struct modern_member_view){0};
}

static void assert_state(const char *name)
{
    assert_string_equal(modern_group_state_name(rig.group), name);
}

/* a joins and has all six; b joins and is to have three of them. */
static void one_member_and_a_newcomer(void)
{
    assert_int_equal(join("a"), STATUS_OK);
    assert_int_equal(join("b"), STATUS_OK);
}

/* And they come to terms: three each, both at epoch 2. */
static void two_stable_members(void)
{
    one_member_and_a_newcomer();
    assert_int_equal(beat("a", 1), STATUS_OK);
    assert_int_equal(report("a", 1, member("a").assigned), STATUS_OK);
    assert_int_equal(beat("b", 2), STATUS_OK);
    assert_state("Stable");
}

/* ---- join, reconciliation ---- */

static void the_first_member_has_all_partitions_at_once(void **state)
{
    (void)state;
    assert_int_equal(join("a"), STATUS_OK);
    assert_int_equal(rig.answer.member_epoch, 1);
    assert_non_null(rig.answer.assignment);
    assert_int_equal(rig.answer.assignment->count, 6);
    assert_state("Stable");
}

static void a_heartbeat_without_news_writes_nothing_and_answers_no_assignment(void **state)
{
    (void)state;
    join("a");
    struct modern_heartbeat heartbeat = rig_heartbeat("a", 1);
    assert_int_equal(rig_send(&rig, &heartbeat), STATUS_OK);
    assert_int_equal(rig.records.count, 0);
    assert_null(rig.answer.assignment);
    assert_int_equal(rig.answer.member_epoch, 1);
}

static void a_newcomer_waits_until_the_old_owner_reports_partitions_gone(void **state)
{
    (void)state;
    one_member_and_a_newcomer();
    assert_int_equal(member("b").state, MODERN_MEMBER_UNRELEASED);
    assert_int_equal(rig.answer.member_epoch, 2);
    assert_int_equal(rig.answer.assignment->count, 0);
    assert_state("Reconciling");

    assert_int_equal(beat("a", 1), STATUS_OK); /* told to give up three: keeps its epoch */
    assert_int_equal(rig.answer.member_epoch, 1);
    assert_int_equal(rig.answer.assignment->count, 3);
    assert_int_equal(member("a").state, MODERN_MEMBER_UNREVOKED);

    beat("b", 2); /* still nothing free */
    assert_int_equal(member("b").assigned->count, 0);

    assert_int_equal(report("a", 1, member("a").assigned), STATUS_OK);
    assert_int_equal(rig.answer.member_epoch, 2);
    assert_int_equal(member("a").state, MODERN_MEMBER_STABLE);

    beat("b", 2);
    assert_int_equal(rig.answer.assignment->count, 3);
    assert_int_equal(member("b").state, MODERN_MEMBER_STABLE);
    assert_state("Stable");
}

static void who_still_owns_what_it_must_give_up_keeps_its_epoch(void **state)
{
    (void)state;
    one_member_and_a_newcomer();
    struct partition_set all = {0};
    partition_set_copy(&all, member("a").assigned);
    beat("a", 1);
    assert_int_equal(report("a", 1, &all), STATUS_OK);
    assert_int_equal(rig.answer.member_epoch, 1);
    assert_null(rig.answer.assignment);
    assert_int_equal(member("a").state, MODERN_MEMBER_UNREVOKED);
    partition_set_deinit(&all);
}

static void a_rebalance_timeout_hands_partitions_over(void **state)
{
    (void)state;
    one_member_and_a_newcomer();
    beat("a", 1);
    rig.now_us += 59 * RIG_SECOND_US;
    struct modern_heartbeat heartbeat = rig_heartbeat("a", 1);
    rig_send(&rig, &heartbeat);
    beat("b", 2);
    rig_expire(&rig);
    assert_int_equal(modern_group_member_count(rig.group), 2);
    rig.now_us += RIG_SECOND_US;
    assert_true(modern_group_next_due(rig.group) <= rig.now_us);
    rig_expire(&rig);
    assert_int_equal(modern_group_member_count(rig.group), 1);
    assert_int_equal(beat("a", 1), STATUS_UNKNOWN_MEMBER);
    beat("b", 2);
    assert_int_equal(rig.answer.assignment->count, 6);
}

static void a_session_that_ends_frees_its_partitions(void **state)
{
    (void)state;
    two_stable_members();
    assert_int_equal(modern_group_next_due(rig.group), 46 * RIG_SECOND_US);
    rig.now_us += 30 * RIG_SECOND_US;
    beat("b", 2);
    rig.now_us += 15 * RIG_SECOND_US;
    rig_expire(&rig);
    assert_state("Assigning");
    beat("b", 2);
    assert_int_equal(rig.answer.member_epoch, 3);
    assert_int_equal(rig.answer.assignment->count, 6);
    assert_state("Stable");
}

static void who_leaves_frees_its_partitions_at_once(void **state)
{
    (void)state;
    two_stable_members();
    assert_int_equal(beat("a", MODERN_EPOCH_LEAVE), STATUS_OK);
    assert_int_equal(rig.answer.member_epoch, MODERN_EPOCH_LEAVE);
    beat("b", 2);
    assert_int_equal(rig.answer.assignment->count, 6);
    beat("b", MODERN_EPOCH_LEAVE);
    assert_state("Empty");
    assert_int_equal(modern_group_next_due(rig.group), INT64_MAX);
}

/* ---- epochs ---- */

static void a_lost_answer_is_made_good_by_the_epoch_before(void **state)
{
    (void)state;
    one_member_and_a_newcomer();
    beat("a", 1);
    report("a", 1, member("a").assigned); /* the answer with epoch 2 is lost */
    assert_int_equal(report("a", 1, member("a").assigned), STATUS_OK);
    assert_int_equal(rig.answer.member_epoch, 2);
}

static void the_epoch_before_with_other_partitions_is_fenced(void **state)
{
    (void)state;
    one_member_and_a_newcomer();
    struct partition_set all = {0};
    partition_set_copy(&all, member("a").assigned);
    beat("a", 1);
    report("a", 1, member("a").assigned);
    assert_int_equal(report("a", 1, &all), STATUS_FENCED_MEMBER_EPOCH);
    assert_int_equal(beat("a", 1), STATUS_FENCED_MEMBER_EPOCH); /* does not say what it owns */
    partition_set_deinit(&all);
}

static void any_other_epoch_is_fenced_and_joins_again(void **state)
{
    (void)state;
    two_stable_members();
    assert_int_equal(beat("a", 3), STATUS_FENCED_MEMBER_EPOCH);
    assert_int_equal(join("a"), STATUS_OK);
    assert_int_equal(rig.answer.member_epoch, 2);
    assert_int_equal(rig.answer.assignment->count, 3);
    assert_int_equal(modern_group_epoch(rig.group), 2); /* no rebalance */
}

static void an_unknown_member_is_told_so(void **state)
{
    (void)state;
    join("a");
    assert_int_equal(beat("z", 1), STATUS_UNKNOWN_MEMBER);
    assert_int_equal(beat("z", MODERN_EPOCH_LEAVE), STATUS_UNKNOWN_MEMBER);
}

static void a_full_request_is_answered_in_full(void **state)
{
    (void)state;
    join("a");
    struct modern_heartbeat heartbeat = joining("a", &orders);
    heartbeat.member_epoch = 1;
    heartbeat.owned = member("a").assigned;
    assert_int_equal(rig_send(&rig, &heartbeat), STATUS_OK);
    assert_non_null(rig.answer.assignment);
    assert_int_equal(rig.answer.assignment->count, 6);
    assert_int_equal(rig.records.count, 0);
}

static void commits_are_taken_at_the_members_epoch_alone(void **state)
{
    (void)state;
    struct slice a = slice_of_text("a"), none = {0};
    assert_int_equal(modern_group_check_commit(rig.group, none, -1), STATUS_OK); /* empty group */
    one_member_and_a_newcomer();
    assert_int_equal(modern_group_check_commit(rig.group, a, 1), STATUS_OK);
    assert_int_equal(modern_group_check_commit(rig.group, a, 2), STATUS_STALE_MEMBER_EPOCH);
    beat("a", 1);
    assert_int_equal(modern_group_check_commit(rig.group, a, 1), STATUS_OK); /* while it revokes */
    report("a", 1, member("a").assigned);
    assert_int_equal(modern_group_check_commit(rig.group, a, 1), STATUS_STALE_MEMBER_EPOCH);
    assert_int_equal(modern_group_check_commit(rig.group, a, 2), STATUS_OK);
    assert_int_equal(modern_group_check_commit(rig.group, none, -1), STATUS_UNKNOWN_MEMBER);
    assert_int_equal(modern_group_check_fetch(rig.group, none, -1), STATUS_OK);
    assert_int_equal(modern_group_check_fetch(rig.group, a, 1), STATUS_STALE_MEMBER_EPOCH);
}

/* ---- static members ---- */

static void a_static_member_comes_back_to_its_seat_without_a_rebalance(void **state)
{
    (void)state;
    join_static("a1", "one");
    join_static("b1", "two");
    beat("a1", 1); /* is told, without its instance id even */
    report("a1", 1, member("a1").assigned);
    beat("b1", 2);
    assert_state("Stable");
    struct partition_set before = {0};
    partition_set_copy(&before, member("a1").assigned);

    assert_int_equal(leave_static("a1", "one", MODERN_EPOCH_LEAVE_STATIC), STATUS_OK);
    assert_int_equal(rig.answer.member_epoch, MODERN_EPOCH_LEAVE_STATIC);
    assert_int_equal(beat("b1", 2), STATUS_OK);
    assert_null(rig.answer.assignment);

    assert_int_equal(join_static("a2", "one"), STATUS_OK);
    assert_int_equal(rig.answer.member_epoch, 2);
    assert_true(partition_set_equal(rig.answer.assignment, &before));
    assert_int_equal(modern_group_epoch(rig.group), 2);
    assert_int_equal(modern_group_member_count(rig.group), 2);
    assert_int_equal(leave_static("a1", "one", 2), STATUS_FENCED_INSTANCE);
    partition_set_deinit(&before);
}

static void a_static_id_in_use_is_not_given_to_another(void **state)
{
    (void)state;
    join_static("a1", "one");
    assert_int_equal(join_static("a2", "one"), STATUS_UNRELEASED_INSTANCE);
    assert_int_equal(modern_group_member_count(rig.group), 1);
    assert_int_equal(join_static("a1", "one"), STATUS_OK); /* the same one may */
}

static void a_seat_is_kept_for_a_session_only(void **state)
{
    (void)state;
    join_static("a1", "one");
    leave_static("a1", "one", MODERN_EPOCH_LEAVE_STATIC);
    rig.now_us += 44 * RIG_SECOND_US;
    rig_expire(&rig);
    assert_int_equal(modern_group_member_count(rig.group), 1);
    rig.now_us += RIG_SECOND_US;
    rig_expire(&rig);
    assert_int_equal(modern_group_member_count(rig.group), 0);
}

static void a_static_member_can_leave_for_good(void **state)
{
    (void)state;
    join_static("a1", "one");
    assert_int_equal(leave_static("a1", "one", MODERN_EPOCH_LEAVE), STATUS_OK);
    assert_int_equal(modern_group_member_count(rig.group), 0);
}

static void what_a_static_member_was_to_give_up_is_free_when_it_leaves(void **state)
{
    (void)state;
    join_static("a1", "one");
    join("b");
    beat("a1", 1);
    assert_int_equal(member("a1").revoking->count, 3);
    leave_static("a1", "one", MODERN_EPOCH_LEAVE_STATIC);
    beat("b", 2);
    assert_int_equal(rig.answer.assignment->count, 3);
}

/* ---- subscriptions ---- */

static void a_changed_subscription_takes_effect_with_the_heartbeat_that_says_it(void **state)
{
    (void)state;
    rig_set_topic(&rig, "bills", 2);
    join("a");
    struct slice bills = slice_of_text("bills");
    struct modern_heartbeat heartbeat = rig_heartbeat("a", 1);
    heartbeat.has_names = true;
    heartbeat.names = &bills;
    heartbeat.name_count = 1;
    assert_int_equal(rig_send(&rig, &heartbeat), STATUS_OK);
    rig_commit(&rig);
    assert_int_equal(member("a").state, MODERN_MEMBER_UNREVOKED);
    report("a", 1, &nothing);
    assert_int_equal(rig.answer.member_epoch, 2);
    assert_int_equal(rig.answer.assignment->count, 2);
}

static void topics_that_come_grow_and_go_change_the_assignment(void **state)
{
    (void)state;
    join("a");
    rig_set_topic(&rig, "orders", 8);
    beat("a", 1);
    assert_int_equal(rig.answer.member_epoch, 2);
    assert_int_equal(rig.answer.assignment->count, 8);
    rig_set_topic(&rig, "other", 3); /* nobody's */
    beat("a", 2);
    assert_int_equal(rig.answer.member_epoch, 2);
    rig_set_topic(&rig, "orders", 0);
    beat("a", 2);
    assert_int_equal(rig.answer.assignment->count, 0);
    report("a", 2, &nothing);
    assert_int_equal(rig.answer.member_epoch, 3);
    rig_set_topic(&rig, "orders", 2); /* another topic of that name */
    beat("a", 3);
    assert_int_equal(rig.answer.assignment->count, 2);
}

static void a_topic_that_is_not_there_yet_can_be_subscribed_to(void **state)
{
    (void)state;
    struct slice later = slice_of_text("later");
    struct modern_heartbeat heartbeat = joining("a", &later);
    assert_int_equal(rig_send(&rig, &heartbeat), STATUS_OK);
    assert_int_equal(rig.answer.assignment->count, 0);
    rig_commit(&rig);
    rig_set_topic(&rig, "later", 4);
    beat("a", 1);
    assert_int_equal(rig.answer.assignment->count, 4);
}

static enum status join_by_pattern(const char *id, const char *pattern)
{
    struct modern_heartbeat heartbeat = joining(id, NULL);
    heartbeat.has_names = false;
    heartbeat.regex = slice_of_text(pattern);
    enum status status = rig_send(&rig, &heartbeat);
    rig_commit(&rig);
    return status;
}

static void a_pattern_chooses_topics_also_those_that_come_later(void **state)
{
    (void)state;
    rig_set_topic(&rig, "orders2", 2);
    rig_set_topic(&rig, "bills", 5);
    assert_int_equal(join_by_pattern("a", "orders.*"), STATUS_OK);
    assert_int_equal(rig.answer.assignment->count, 8);
    rig_set_topic(&rig, "orders3", 1);
    beat("a", 1);
    assert_int_equal(rig.answer.assignment->count, 9);
    assert_true(modern_group_subscribes(rig.group, slice_of_text("orders3")));
    assert_false(modern_group_subscribes(rig.group, slice_of_text("bills")));
}

static void a_bad_pattern_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    assert_int_equal(join_by_pattern("a", "(orders"), STATUS_INVALID_PATTERN);
    assert_int_equal(modern_group_member_count(rig.group), 0);
}

static void a_pattern_can_be_taken_back(void **state)
{
    (void)state;
    join_by_pattern("a", "orders");
    struct modern_heartbeat heartbeat = rig_heartbeat("a", 1);
    heartbeat.regex = slice_of_text("");
    assert_int_equal(rig_send(&rig, &heartbeat), STATUS_OK);
    assert_int_equal(rig.answer.assignment->count, 0);
}

/* ---- assignors ---- */

static void the_assignor_most_members_name_is_used(void **state)
{
    (void)state;
    struct modern_heartbeat heartbeat = joining("a", &orders);
    heartbeat.assignor = slice_of_text("range");
    assert_int_equal(rig_send(&rig, &heartbeat), STATUS_OK);
    assert_int_equal(modern_group_assignor(rig.group, ASSIGNOR_UNIFORM), ASSIGNOR_RANGE);
}

static void an_assignor_that_is_not_here_is_refused(void **state)
{
    (void)state;
    struct modern_heartbeat heartbeat = joining("a", &orders);
    heartbeat.assignor = slice_of_text("cooperative-sticky");
    assert_int_equal(rig_send(&rig, &heartbeat), STATUS_UNSUPPORTED_ASSIGNOR);
    assert_int_equal(modern_group_member_count(rig.group), 0);
}

/* ---- what is malformed ---- */

static void malformed_requests_are_refused(void **state)
{
    (void)state;
    struct partition_set some = {0};
    partition_set_append(&some, &rig.topic[0].uid, 1);
    struct modern_heartbeat bad[10];
    for (size_t i = 0; i < 10; i++)
        bad[i] = joining("a", &orders);
    bad[0].member_epoch = -3;
    bad[1].member_id = slice_of_text("");
    bad[2].rebalance_timeout_ms = -1;
    bad[3].has_names = false;
    bad[4].has_owned = false;
    bad[5].owned = &some;
    bad[6].member_epoch = MODERN_EPOCH_LEAVE_STATIC;
    bad[7].instance_id = slice_of_text("");
    bad[8].rack_id = slice_of_text("");
    bad[9].name_count = MODERN_NAMES_MAX + 1;
    for (size_t i = 0; i < 10; i++) {
        assert_int_equal(rig_send(&rig, &bad[i]), STATUS_INVALID);
        assert_int_equal(rig.records.count, 0);
    }
    partition_set_deinit(&some);
}

static void a_group_has_a_largest_size(void **state)
{
    (void)state;
    rig.options.size_max = 2;
    one_member_and_a_newcomer();
    assert_int_equal(join("c"), STATUS_GROUP_FULL);
    assert_int_equal(join("b"), STATUS_OK);
}

/* ---- a new leader ---- */

static void a_new_leader_goes_on_without_a_rebalance(void **state)
{
    (void)state;
    two_stable_members();
    uint64_t hash = modern_group_hash(rig.group);
    rig_fail_over(&rig);
    assert_int_equal(modern_group_hash(rig.group), hash);
    struct modern_heartbeat heartbeat = rig_heartbeat("a", 2);
    assert_int_equal(rig_send(&rig, &heartbeat), STATUS_OK);
    assert_int_equal(rig.answer.member_epoch, 2);
    assert_null(rig.answer.assignment);
    assert_int_equal(rig.records.count, 0);
    assert_state("Stable");
}

static void a_new_leader_waits_for_partitions_as_the_old_one_did(void **state)
{
    (void)state;
    one_member_and_a_newcomer();
    beat("a", 1);
    rig_fail_over(&rig);
    beat("b", 2);
    assert_int_equal(member("b").assigned->count, 0);
    report("a", 1, member("a").assigned);
    beat("b", 2);
    assert_int_equal(member("b").assigned->count, 3);
}

static void timers_begin_anew_with_a_new_leader(void **state)
{
    (void)state;
    two_stable_members();
    rig.now_us += 1000 * RIG_SECOND_US;
    rig_fail_over(&rig);
    assert_int_equal(modern_group_next_due(rig.group), rig.now_us + 45 * RIG_SECOND_US);
    rig_expire(&rig);
    assert_int_equal(modern_group_member_count(rig.group), 2);
}

static void an_erased_group_leaves_no_record(void **state)
{
    (void)state;
    two_stable_members();
    modern_group_erase(rig.group, &rig.records);
    assert_true(modern_group_is_gone(rig.group));
    rig_commit(&rig);
    assert_null(modern_group_table_find(rig.table, slice_of_text("g")));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_first_member_has_all_partitions_at_once),
        TEST(a_heartbeat_without_news_writes_nothing_and_answers_no_assignment),
        TEST(a_newcomer_waits_until_the_old_owner_reports_partitions_gone),
        TEST(who_still_owns_what_it_must_give_up_keeps_its_epoch),
        TEST(a_rebalance_timeout_hands_partitions_over),
        TEST(a_session_that_ends_frees_its_partitions),
        TEST(who_leaves_frees_its_partitions_at_once),
        TEST(a_lost_answer_is_made_good_by_the_epoch_before),
        TEST(the_epoch_before_with_other_partitions_is_fenced),
        TEST(any_other_epoch_is_fenced_and_joins_again),
        TEST(an_unknown_member_is_told_so),
        TEST(a_full_request_is_answered_in_full),
        TEST(commits_are_taken_at_the_members_epoch_alone),
        TEST(a_static_member_comes_back_to_its_seat_without_a_rebalance),
        TEST(a_static_id_in_use_is_not_given_to_another),
        TEST(a_seat_is_kept_for_a_session_only),
        TEST(a_static_member_can_leave_for_good),
        TEST(what_a_static_member_was_to_give_up_is_free_when_it_leaves),
        TEST(a_changed_subscription_takes_effect_with_the_heartbeat_that_says_it),
        TEST(topics_that_come_grow_and_go_change_the_assignment),
        TEST(a_topic_that_is_not_there_yet_can_be_subscribed_to),
        TEST(a_pattern_chooses_topics_also_those_that_come_later),
        TEST(a_bad_pattern_is_refused_and_changes_nothing),
        TEST(a_pattern_can_be_taken_back),
        TEST(the_assignor_most_members_name_is_used),
        TEST(an_assignor_that_is_not_here_is_refused),
        TEST(malformed_requests_are_refused),
        TEST(a_group_has_a_largest_size),
        TEST(a_new_leader_goes_on_without_a_rebalance),
        TEST(a_new_leader_waits_for_partitions_as_the_old_one_did),
        TEST(timers_begin_anew_with_a_new_leader),
        TEST(an_erased_group_leaves_no_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
