#include "lib/broker_rig.h"

static int setup(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    rig_init(rig);
    rig_start(rig);
    *state = rig;
    return 0;
}

static void waited(void *context, enum status status)
{
    struct rig_answer *answer = context;
    answer->called = true;
    answer->status = status;
}

static void count(void *context)
{
    (*(uint32_t *)context)++;
}

static void a_known_leader_answers_at_once(void **state)
{
    struct rig *rig = *state;
    struct rig_answer answer = {0};
    rig_follow(rig, 2, 1);
    assert_null(broker_wait_leader(rig->broker, 3000000, waited, &answer));
    assert_int_equal(answer.status, STATUS_OK);
}

static void an_unknown_one_is_waited_for(void **state)
{
    struct rig *rig = *state;
    struct rig_answer first = {0}, second = {0};
    assert_non_null(broker_wait_leader(rig->broker, 3000000, waited, &first));
    assert_non_null(broker_wait_leader(rig->broker, 1000000, waited, &second));
    stepped_loop_advance(&rig->fake, 1000000);
    assert_int_equal(second.status, STATUS_NO_LEADER);
    assert_false(first.called);
    rig_follow(rig, 3, 1);
    assert_true(first.called);
    assert_int_equal(first.status, STATUS_OK);
}

static void here_it_is_known_once_it_serves(void **state)
{
    struct rig *rig = *state;
    struct rig_answer answer = {0};
    rig->view.leader_id = 1;
    rig->view.epoch = 1;
    broker_view_changed(rig->broker);
    assert_int_equal(broker_check_serving(rig->broker), STATUS_NOT_READY);
    assert_non_null(broker_wait_leader(rig->broker, 3000000, waited, &answer));
    rig_lead(rig, 1);
    assert_true(answer.called);
    assert_int_equal(answer.status, STATUS_OK);
}

static void a_cancelled_wait_is_not_answered(void **state)
{
    struct rig *rig = *state;
    struct rig_answer answer = {0};
    struct leader_wait *wait = broker_wait_leader(rig->broker, 3000000, waited, &answer);
    broker_wait_leader_cancel(rig->broker, wait);
    stepped_loop_advance(&rig->fake, 4000000);
    assert_false(answer.called);
}

static void listeners_hear_of_each_change_once(void **state)
{
    struct rig *rig = *state;
    uint32_t changes = 0;
    broker_add_leadership_listener(rig->broker, &(struct leadership_listener){count, &changes});
    rig_follow(rig, 2, 1);
    assert_int_equal(changes, 1);
    rig->view.in_sync_now = 2;
    broker_view_changed(rig->broker);
    assert_int_equal(changes, 1);
    rig_lead(rig, 2);
    assert_int_equal(changes, 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_known_leader_answers_at_once),     TEST(an_unknown_one_is_waited_for),
        TEST(here_it_is_known_once_it_serves),    TEST(a_cancelled_wait_is_not_answered),
        TEST(listeners_hear_of_each_change_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
