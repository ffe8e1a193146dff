/* Subscriptions and assignments as Kafka's consumers write them; dividing by range
 * (kafka-listener.md appendix B, native-protocol.md 4.8). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "broker/consumer_assignment.h"

static struct slice text(const char *text)
{
    return (struct slice){(const uint8_t *)text, strlen(text)};
}

/* "a" has 1 partition, "b" 2, …; others are not there. */
static uint32_t partitions_of(void *context, struct slice topic)
{
    (void)context;
    return topic.bytes == 1 && topic.data[0] >= 'a' && topic.data[0] <= 'z'
               ? (uint32_t)(topic.data[0] - 'a') + 1
               : 0;
}

/* An assignment as "b:0,1 c:2". */
static const char *shown(struct slice assignment)
{
    static char out[256];
    size_t at = 0;
    struct assignment_cursor cursor;
    struct assigned_topic topic;
    out[0] = '\0';
    assignment_cursor_init(&cursor, assignment);
    while (assignment_cursor_next(&cursor, &topic)) {
        at += (size_t)snprintf(out + at, sizeof(out) - at, "%s%.*s:", at > 0 ? " " : "",
                               (int)topic.topic.bytes, (const char *)topic.topic.data);
        for (uint32_t i = 0; i < topic.count; i++)
            at += (size_t)snprintf(out + at, sizeof(out) - at, "%s%d", i > 0 ? "," : "",
                                   assigned_partition(&topic, i));
    }
    return out;
}

static void subscription_is_the_vector(void **state)
{
    (void)state;
    static const uint8_t expected[] = {0, 0, 0, 0, 0, 1, 0, 1, 'b', 0, 0, 0, 4, 0, 0, 0, 2};
    const struct slice topic = text("b");
    struct buffer out;
    buffer_init(&out, 0);
    consumer_subscription_put(&out, &topic, 1, partitions_of, NULL);
    assert_int_equal(out.bytes, sizeof(expected));
    assert_memory_equal(out.data, expected, sizeof(expected));
    buffer_deinit(&out);
}

static const uint8_t vector[] = {0, 0, 0, 0, 0, 2, 0, 1, 'b',  0,    0,    0,
                                 2, 0, 0, 0, 0, 0, 0, 0, 1,    0,    1,    'c',
                                 0, 0, 0, 1, 0, 0, 0, 2, 0xff, 0xff, 0xff, 0xff};

static void assignment_is_read(void **state)
{
    (void)state;
    assert_string_equal(shown((struct slice){vector, sizeof(vector)}), "b:0,1 c:2");
}

static void cut_off_assignment_tells_what_is_whole_and_no_more(void **state)
{
    (void)state;
    for (size_t cut = 0; cut < sizeof(vector); cut++) {
        /* A copy of its own, so that a read beyond it is found. */
        uint8_t *bytes = malloc(cut + 1);
        memcpy(bytes, vector, cut);
        const char *expected = cut < 21 ? "" : cut < 32 ? "b:0,1" : "b:0,1 c:2";
        assert_string_equal(shown((struct slice){bytes, cut}), expected);
        free(bytes);
    }
}

static void counts_beyond_the_bytes_are_refused(void **state)
{
    (void)state;
    static const uint8_t many[] = {0, 0, 0, 0, 0, 1, 0, 1, 'b', 0x7f, 0xff, 0xff, 0xff, 0, 0};
    assert_string_equal(shown((struct slice){many, sizeof(many)}), "");
    static const uint8_t negative[] = {0, 0, 0, 0, 0, 1, 0xff, 0xff};
    assert_string_equal(shown((struct slice){negative, sizeof(negative)}), "");
    static const uint8_t version[] = {0xff, 0xff, 0, 0, 0, 1};
    assert_string_equal(shown((struct slice){version, sizeof(version)}), "");
}

/* ---- dividing ---- */

static struct consumer_group *group;
static struct consumer_group_limits limits;
static struct group_waiter waiters[8];

static int setup(void **state)
{
    (void)state;
    consumer_group_limits_default(&limits);
    limits.initial_delay_us = 0;
    memset(waiters, 0, sizeof(waiters));
    group = consumer_group_new(text("g"), &limits);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    consumer_group_free(group);
    return 0;
}

/* A member with its topics, a letter each; or with bytes that are no subscription. */
static void add_member(int index, const char *id, const char *topics, struct slice raw)
{
    struct slice names[8];
    uint32_t count = 0;
    struct buffer subscription;
    struct group_actions actions;
    buffer_init(&subscription, 0);
    group_actions_init(&actions);
    for (const char *at = topics; at != NULL && *at != '\0'; at++)
        names[count++] = (struct slice){(const uint8_t *)at, 1};
    consumer_subscription_put(&subscription, names, count, partitions_of, NULL);
    const struct consumer_protocol protocol = {text("p"),
                                               topics == NULL ? raw : buffer_slice(&subscription)};
    struct consumer_join join = {
        .member_id = text(""),
        .new_id = text(id),
        .client_id = text("c"),
        .client_host = text("h"),
        .protocol_type = text("consumer"),
        .protocols = &protocol,
        .protocol_count = 1,
        .session_timeout_ms = 10000,
        .rebalance_timeout_ms = 10000,
    };
    consumer_group_join(group, &join, &waiters[index], (struct group_clock){0}, &actions);
    group_actions_deinit(&actions);
    buffer_deinit(&subscription);
}

static const char *share_of(const struct assignment_plan *plan, const char *id)
{
    for (uint32_t i = 0; i < plan->count; i++) {
        if (plan->items[i].member_id.bytes == strlen(id) &&
            memcmp(plan->items[i].member_id.data, id, strlen(id)) == 0) {
            return shown(plan->items[i].assignment);
        }
    }
    return "not there";
}

static void one_member_gets_all_of_its_topics(void **state)
{
    (void)state;
    struct assignment_plan plan = {0};
    add_member(0, "m", "cab", (struct slice){0});
    assignment_plan_range(&plan, group, partitions_of, NULL);
    assert_int_equal(plan.count, 1);
    assert_string_equal(share_of(&plan, "m"), "a:0 b:0,1 c:0,1,2");
    assignment_plan_deinit(&plan);
}

static void topic_named_twice_or_not_there_counts_once_or_not(void **state)
{
    (void)state;
    struct assignment_plan plan = {0};
    add_member(0, "m", "bb!", (struct slice){0});
    assignment_plan_range(&plan, group, partitions_of, NULL);
    assert_string_equal(share_of(&plan, "m"), "b:0,1");
    assignment_plan_deinit(&plan);
}

static void what_is_no_subscription_gets_nothing(void **state)
{
    (void)state;
    static const uint8_t garbage[] = {0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 9, 'b'};
    struct assignment_plan plan = {0};
    add_member(0, "m", NULL, (struct slice){garbage, sizeof(garbage)});
    assignment_plan_range(&plan, group, partitions_of, NULL);
    assert_string_equal(share_of(&plan, "m"), "");
    assignment_plan_deinit(&plan);
}

static bool is_text(struct slice slice, const char *expected)
{
    return slice.bytes == strlen(expected) && memcmp(slice.data, expected, slice.bytes) == 0;
}

/* Version 3: "t", user data "u", what it has of "t": 7, generation 4, rack "k". */
static const uint8_t said[] = {0, 3, 0,   0, 0, 1, 0, 1, 't', 0, 0, 0, 1, 'u', 0, 0, 0, 1,
                               0, 1, 't', 0, 0, 0, 1, 0, 0,   0, 7, 0, 0, 0,   4, 0, 1, 'k'};

static void a_subscription_is_read_in_each_version(void **state)
{
    struct consumer_subscription read;
    struct assigned_topic topic;
    (void)state;
    assert_true(consumer_subscription_read((struct slice){said, sizeof(said)}, &read));
    assert_int_equal(read.version, 3);
    assert_int_equal(read.topic_count, 1);
    assert_true(is_text(consumer_subscription_next(&read), "t"));
    assert_true(assignment_cursor_next(&read.owned, &topic));
    assert_true(is_text(topic.topic, "t"));
    assert_int_equal(assigned_partition(&topic, 0), 7);
    assert_true(is_text(read.rack, "k"));
    /* Some write a version above the fields they fill: between two fields it may end. */
    static const size_t whole[] = {9, 14, 29, 33};
    for (size_t bytes = 0; bytes < sizeof(said); bytes++) {
        bool ends_well = false;
        for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++)
            ends_well |= bytes == whole[i];
        assert_int_equal(consumer_subscription_read((struct slice){said, bytes}, &read), ends_well);
    }
    static const uint8_t old[] = {0, 0, 0, 0, 0, 1, 0, 1, 't', 0xFF, 0xFF, 0xFF, 0xFF};
    assert_true(consumer_subscription_read((struct slice){old, sizeof(old)}, &read));
    assert_false(assignment_cursor_next(&read.owned, &topic));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(subscription_is_the_vector),
        cmocka_unit_test(assignment_is_read),
        cmocka_unit_test(cut_off_assignment_tells_what_is_whole_and_no_more),
        cmocka_unit_test(counts_beyond_the_bytes_are_refused),
        cmocka_unit_test(a_subscription_is_read_in_each_version),
        TEST(one_member_gets_all_of_its_topics),
        TEST(topic_named_twice_or_not_there_counts_once_or_not),
        TEST(what_is_no_subscription_gets_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
