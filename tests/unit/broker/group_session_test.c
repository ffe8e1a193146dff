/* Members whose partitions the broker divides, over a real broker: leases, failovers. */
#include "base/assert.h"
#include "broker/group_session.h"
#include "lib/broker_rig.h"

#define SECOND_US 1000000

struct member {
    struct group_session *session;
    uint32_t answers, changes;
    enum status status;
    bool holds;
};

static int setup(void **state)
{
    struct rig *rig = *state = rig_new_leader();
    rig_create(rig, "orders", 4);
    return 0;
}

static int teardown(void **state)
{
    struct rig *rig = *state;
    stepped_loop_settle(&rig->fake); /* who left is still being written */
    rig_deinit(rig);
    free(rig);
    return 0;
}

static void joined(void *context, enum status status)
{
    struct member *member = context;
    member->answers++;
    member->status = status;
}

static void changed(void *context)
{
    ((struct member *)context)->changes++;
}

static bool holds(void *context)
{
    return ((struct member *)context)->holds;
}

static void ask_join(struct rig *rig, struct member *member, const char *id)
{
    const struct group_session_handlers handlers = {changed, member, holds};
    const struct slice topic = rig_text("orders");
    *member =
        (struct member){.session = group_session_new(rig->broker, rig_text("group"), &handlers)};
    group_session_join(member->session, rig_text(id), &topic, 1, joined, member);
}

static void join(struct rig *rig, struct member *member, const char *id)
{
    ask_join(rig, member, id);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(member->answers, 1);
    assert_int_equal(member->status, STATUS_OK);
}

/* How many partitions it has; -1: its assignment is not in force. */
static int partitions_of(const struct member *member)
{
    struct assignment_cursor cursor;
    struct assigned_topic topic;
    int count = 0;
    if (!group_session_is_settled(member->session)) return -1;
    assignment_cursor_init(&cursor, group_session_assignment(member->session));
    while (assignment_cursor_next(&cursor, &topic))
        count += (int)topic.count;
    return count;
}

/* Time goes by; those who are there are heard each second. */
static void pass(struct rig *rig, int seconds, struct member *heard)
{
    for (int i = 0; i < seconds; i++) {
        stepped_loop_advance(&rig->fake, SECOND_US);
        stepped_loop_settle(&rig->fake);
        if (heard != NULL) assert_int_equal(group_session_heartbeat(heard->session), STATUS_OK);
        stepped_loop_settle(&rig->fake);
    }
}

/* The connections end with the leadership, before anybody could say that they leave. */
static void change_leader(struct rig *rig, struct member *members, size_t count)
{
    rig_follow(rig, 2, rig->view.epoch + 1);
    for (size_t i = 0; i < count; i++)
        group_session_free(members[i].session);
    rig_lead(rig, rig->view.epoch + 1);
    stepped_loop_settle(&rig->fake);
}

static void join_is_answered_at_once_and_without_delay_for_others(void **state)
{
    struct rig *rig = *state;
    struct member member;
    join(rig, &member, "");
    assert_int_equal(partitions_of(&member), 4);
    assert_true(group_session_member_id(member.session).bytes > 0);
    group_session_free(member.session);
}

static void a_group_that_begins_anew_waits_for_what_a_member_holds(void **state)
{
    struct rig *rig = *state;
    struct member a, b;
    join(rig, &a, "a");
    int32_t generation = group_session_generation(a.session);
    a.holds = true;
    ask_join(rig, &b, "b");
    stepped_loop_settle(&rig->fake);
    assert_int_equal(b.answers, 0);
    assert_true(group_session_is_yielding(a.session));
    assert_int_equal(partitions_of(&a), -1);
    /* Its commits count until then. */
    assert_true(group_session_owns(a.session, rig_text("orders"), 3));
    assert_int_equal(group_session_identity(a.session).generation, generation);
    group_session_yield(a.session);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(b.answers, 1);
    assert_int_equal(partitions_of(&a), 2);
    group_session_free(a.session);
    group_session_free(b.session);
}

static void a_member_that_keeps_what_it_holds_delays_the_others_for_a_moment(void **state)
{
    struct rig *rig = *state;
    struct member a, b;
    join(rig, &a, "a");
    a.holds = true;
    ask_join(rig, &b, "b");
    stepped_loop_settle(&rig->fake);
    stepped_loop_advance(&rig->fake, GROUP_SESSION_YIELD_US - 1);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(b.answers, 0);
    stepped_loop_advance(&rig->fake, 1);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(b.answers, 1);
    assert_int_equal(partitions_of(&a), 2);
    assert_false(group_session_is_yielding(a.session));
    group_session_free(a.session);
    group_session_free(b.session);
}

static void assignment_is_in_force_when_it_is_replicated(void **state)
{
    struct rig *rig = *state;
    struct member member;
    rig->hold_high_watermark = true;
    ask_join(rig, &member, "a");
    stepped_loop_settle(&rig->fake);
    assert_int_equal(member.answers, 0);
    rig->hold_high_watermark = false;
    struct partition *partition =
        rig_partition(rig, "__consumer_offsets", internal_partition_of(rig_text("group"), 4));
    partition_set_high_watermark(partition, partition_log_end(partition));
    stepped_loop_settle(&rig->fake);
    assert_int_equal(member.answers, 1);
    assert_int_equal(partitions_of(&member), 4);
    group_session_free(member.session);
}

static void member_that_is_silent_is_put_out(void **state)
{
    struct rig *rig = *state;
    struct member a, b;
    join(rig, &a, "a");
    join(rig, &b, "b");
    assert_int_equal(partitions_of(&a), 2);
    assert_int_equal(partitions_of(&b), 2);
    pass(rig, 31, &b);
    assert_int_equal(partitions_of(&b), 4);
    assert_int_equal(group_session_heartbeat(a.session), STATUS_UNKNOWN_MEMBER);
    group_session_free(a.session);
    group_session_free(b.session);
}

static void members_that_come_back_after_a_failover_begin_no_generation(void **state)
{
    struct rig *rig = *state;
    struct member members[2];
    join(rig, &members[0], "a");
    join(rig, &members[1], "b");
    int32_t generation = group_session_generation(members[0].session);
    change_leader(rig, members, 2);
    /* Whoever led the group may come first or last. */
    join(rig, &members[1], "b");
    join(rig, &members[0], "a");
    assert_int_equal(group_session_generation(members[0].session), generation);
    assert_int_equal(group_session_generation(members[1].session), generation);
    assert_int_equal(partitions_of(&members[0]), 2);
    assert_int_equal(members[1].changes, 0);
    group_session_free(members[0].session);
    group_session_free(members[1].session);
}

static void member_that_does_not_come_back_is_put_out_in_its_time(void **state)
{
    struct rig *rig = *state;
    struct member members[2];
    join(rig, &members[0], "a");
    join(rig, &members[1], "b");
    change_leader(rig, members, 2);
    join(rig, &members[0], "a");
    pass(rig, 25, &members[0]);
    assert_int_equal(partitions_of(&members[0]), 2);
    pass(rig, 12, &members[0]);
    assert_int_equal(partitions_of(&members[0]), 4);
    group_session_free(members[0].session);
}

static void newcomer_waits_a_short_time_for_members_without_a_connection(void **state)
{
    struct rig *rig = *state;
    struct member member, newcomer;
    join(rig, &member, "a");
    change_leader(rig, &member, 1);
    ask_join(rig, &newcomer, "b");
    stepped_loop_settle(&rig->fake);
    assert_int_equal(newcomer.answers, 0);
    pass(rig, 6, NULL);
    assert_int_equal(newcomer.answers, 1);
    assert_int_equal(partitions_of(&newcomer), 4);
    group_session_free(newcomer.session);
}

static void member_that_leaves_while_it_joins_is_gone(void **state)
{
    struct rig *rig = *state;
    struct member a, b;
    join(rig, &a, "a");
    ask_join(rig, &b, "b");
    group_session_free(b.session);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(b.answers, 0);
    assert_int_equal(partitions_of(&a), 4);
    group_session_free(a.session);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(join_is_answered_at_once_and_without_delay_for_others),
        TEST(a_group_that_begins_anew_waits_for_what_a_member_holds),
        TEST(a_member_that_keeps_what_it_holds_delays_the_others_for_a_moment),
        TEST(assignment_is_in_force_when_it_is_replicated),
        TEST(member_that_is_silent_is_put_out),
        TEST(members_that_come_back_after_a_failover_begin_no_generation),
        TEST(member_that_does_not_come_back_is_put_out_in_its_time),
        TEST(newcomer_waits_a_short_time_for_members_without_a_connection),
        TEST(member_that_leaves_while_it_joins_is_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
