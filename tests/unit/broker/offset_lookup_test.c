#include "lib/broker_rig.h"

static int setup(void **state)
{
    struct rig *rig = *state = rig_new_leader();
    rig_create(rig, "orders", 1);
    return 0;
}

struct asked {
    struct offset_lookup lookup;
    uint32_t calls;
};

static void asked_done(void *context, struct offset_lookup *lookup)
{
    (void)lookup;
    ((struct asked *)context)->calls++;
}

static void ask(struct rig *rig, struct asked *asked, int64_t timestamp_ms)
{
    *asked = (struct asked){.lookup = {.partition = rig_partition(rig, "orders", 0),
                                       .timestamp_ms = timestamp_ms,
                                       .current_epoch = -1,
                                       .done = asked_done}};
    asked->lookup.context = asked;
    broker_lookup_offset(rig->broker, &asked->lookup);
}

static void assert_answer(struct rig *rig, int64_t timestamp_ms, enum status status, int64_t offset,
                          int32_t epoch)
{
    struct asked asked;
    ask(rig, &asked, timestamp_ms);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(asked.calls, 1);
    assert_int_equal(asked.lookup.status, status);
    assert_int_equal(asked.lookup.offset, offset);
    assert_int_equal(asked.lookup.leader_epoch, epoch);
}

static void special_timestamps_answer_as_the_table_says(void **state)
{
    struct rig *rig = *state;
    rig_write(rig, "orders", 0, "v", 2);
    assert_answer(rig, -1, STATUS_OK, 2, 1);
    assert_answer(rig, -2, STATUS_OK, 0, 1);
    assert_answer(rig, -4, STATUS_OK, 0, 1);
    assert_answer(rig, -5, STATUS_OK, -1, -1);
    assert_answer(rig, -6, STATUS_OK, -1, -1);
    assert_answer(rig, -7, STATUS_UNSUPPORTED, -1, -1);
}

static void a_time_finds_the_first_record_not_older(void **state)
{
    struct rig *rig = *state;
    struct asked asked;
    int64_t first_ms = rig->fake.wall_ms;
    rig_write(rig, "orders", 0, "v", 1);
    rig->fake.wall_ms += 1000;
    rig_write(rig, "orders", 0, "v", 1);
    ask(rig, &asked, first_ms + 1);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(asked.lookup.offset, 1);
    assert_int_equal(asked.lookup.found_timestamp_ms, first_ms + 1000);
    assert_answer(rig, first_ms, STATUS_OK, 0, 1);
    assert_answer(rig, first_ms + 1001, STATUS_OK, -1, -1);
    ask(rig, &asked, -3);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(asked.lookup.offset, 1);
}

/* A new leader with records above its high watermark. */
static void lag(struct rig *rig)
{
    struct rig_produce sent;
    rig->hold_high_watermark = true;
    rig_send(rig, &sent, rig_partition(rig, "orders", 0), ACKS_NONE,
             rig_batch(rig, "v", 3, -1, -1));
    stepped_loop_settle(&rig->fake);
    rig_follow(rig, 2, 2);
    rig_lead(rig, 3);
}

static void latest_waits_for_the_epochs_start(void **state)
{
    struct rig *rig = *state;
    struct asked asked;
    lag(rig);
    ask(rig, &asked, -1);
    assert_int_equal(asked.calls, 0);
    partition_set_high_watermark(rig_partition(rig, "orders", 0), 3);
    assert_int_equal(asked.calls, 1);
    assert_int_equal(asked.lookup.status, STATUS_OK);
    assert_int_equal(asked.lookup.offset, 3);
    assert_int_equal(asked.lookup.leader_epoch, 3);
}

static void latest_says_not_yet_after_a_second(void **state)
{
    struct rig *rig = *state;
    struct asked asked;
    lag(rig);
    ask(rig, &asked, -1);
    stepped_loop_advance(&rig->fake, 1000000);
    assert_int_equal(asked.calls, 1);
    assert_int_equal(asked.lookup.status, STATUS_OFFSET_NOT_AVAILABLE);
    ask(rig, &asked, rig->fake.wall_ms - 5000);
    stepped_loop_advance(&rig->fake, 1000000);
    assert_int_equal(asked.lookup.status, STATUS_OFFSET_NOT_AVAILABLE);
    assert_answer(rig, -2, STATUS_OK, 0, 1);
}

static void demotion_answers_those_that_wait(void **state)
{
    struct rig *rig = *state;
    struct asked asked;
    lag(rig);
    ask(rig, &asked, -1);
    rig_follow(rig, 2, 4);
    assert_int_equal(asked.calls, 1);
    assert_int_equal(asked.lookup.status, STATUS_NOT_LEADER);
}

static void assert_epoch_end(struct rig *rig, int32_t asked, int32_t epoch, int64_t end)
{
    int32_t got_epoch;
    int64_t got_end;
    assert_int_equal(broker_epoch_end(rig->broker, rig_partition(rig, "orders", 0), -1, asked,
                                      &got_epoch, &got_end),
                     STATUS_OK);
    assert_int_equal(got_epoch, epoch);
    assert_int_equal(got_end, end);
}

static void epoch_ends_answer_as_the_table_says(void **state)
{
    struct rig *rig = *state;
    rig_write(rig, "orders", 0, "v", 2);
    rig_follow(rig, 2, 2);
    rig_lead(rig, 4);
    rig_write(rig, "orders", 0, "v", 3);
    assert_epoch_end(rig, -1, -1, -1);
    assert_epoch_end(rig, 5, -1, -1);
    assert_epoch_end(rig, 4, 4, 5);
    assert_epoch_end(rig, 1, 1, 2);
    assert_epoch_end(rig, 3, 1, 2);
    assert_epoch_end(rig, 0, 0, 0);
    int32_t epoch;
    int64_t end;
    assert_int_equal(
        broker_epoch_end(rig->broker, rig_partition(rig, "orders", 0), 3, 1, &epoch, &end),
        STATUS_FENCED_EPOCH);
    assert_int_equal(
        broker_epoch_end(rig->broker, rig_partition(rig, "orders", 0), 5, 1, &epoch, &end),
        STATUS_UNKNOWN_EPOCH);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(special_timestamps_answer_as_the_table_says),
        TEST(a_time_finds_the_first_record_not_older),
        TEST(latest_waits_for_the_epochs_start),
        TEST(latest_says_not_yet_after_a_second),
        TEST(demotion_answers_those_that_wait),
        TEST(epoch_ends_answer_as_the_table_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
