/* The table of fetch sessions: what is in them, who gets in, what they may take. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <utlist.h>

#include "base/random.h"
#include "kafka/fetch_session.h"

#define IDLE_US  120000000
#define SESSIONS 4

struct partition {
    struct fetch_watch *watches;
};
struct broker {
    struct fetch_watch_set *sets;
};
static struct broker broker;

struct fetch_watch **partition_watches(struct partition *partition)
{
    return &partition->watches;
}

struct fetch_watch_set **broker_watch_sets(struct broker *of)
{
    return &of->sets;
}

static uint32_t dropped;

static void note_dropped(void *in_flight, struct fetch_session *session)
{
    assert_ptr_equal(in_flight, &broker);
    session->in_flight = NULL;
    dropped++;
}

static int set_up(void **state)
{
    static struct fetch_sessions sessions;
    struct fetch_sessions_options options;
    fetch_sessions_options_default(&options);
    options.sessions_max = SESSIONS;
    options.seed = 7;
    options.broker = &broker;
    options.dropped = note_dropped;
    fetch_sessions_init(&sessions, &options);
    dropped = 0;
    *state = &sessions;
    return 0;
}

static int tear_down(void **state)
{
    struct fetch_sessions *sessions = *state;
    fetch_sessions_deinit(sessions);
    assert_int_equal(sessions->bytes, 0);
    assert_int_equal(sessions->count, 0);
    assert_int_equal(sessions->partition_count, 0);
    assert_null(broker.sets);
    return 0;
}

static struct slice text(const char *value)
{
    return (struct slice){(const uint8_t *)value, strlen(value)};
}

static struct fetch_session_partition *put(struct fetch_session *session, const char *topic,
                                           int32_t index, int64_t offset)
{
    struct fetch_session_asked asked = {.offset = offset};
    return fetch_session_put(session, text(topic), index, &asked);
}

static struct fetch_session *add(struct fetch_sessions *sessions, int64_t now_us, uint32_t count)
{
    struct fetch_session *session = fetch_session_new(sessions, now_us, false, count);
    for (uint32_t i = 0; session != NULL && i < count; i++)
        assert_non_null(put(session, "t", (int32_t)i, 0));
    return session;
}

static void full_table_keeps_out_whoever_comes(void **state)
{
    struct fetch_sessions *sessions = *state;
    for (int i = 0; i < SESSIONS; i++)
        assert_non_null(add(sessions, 0, 1));
    assert_null(add(sessions, IDLE_US, 100));
    assert_int_equal(sessions->count, SESSIONS);
}

static void longest_unused_gives_its_place_when_that_is_long_enough(void **state)
{
    struct fetch_sessions *sessions = *state;
    int32_t ids[SESSIONS];
    for (int i = 0; i < SESSIONS; i++)
        ids[i] = add(sessions, i, 50)->id;
    fetch_session_step(fetch_session_find(sessions, ids[0]), 10);
    assert_non_null(add(sessions, IDLE_US + 2, 1)); /* even for a small one */
    assert_null(fetch_session_find(sessions, ids[1]));
    assert_non_null(fetch_session_find(sessions, ids[0]));
    assert_int_equal(sessions->evicted, 1);
}

static void smallest_that_had_its_time_gives_its_place_to_a_larger_one(void **state)
{
    struct fetch_sessions *sessions = *state;
    static const uint32_t sizes[SESSIONS] = {5, 3, 9, 3};
    int32_t ids[SESSIONS];
    for (int i = 0; i < SESSIONS; i++)
        ids[i] = add(sessions, 0, sizes[i])->id;
    int64_t now_us = IDLE_US + 1;
    for (int i = 0; i < SESSIONS; i++)
        fetch_session_step(fetch_session_find(sessions, ids[i]), now_us);
    assert_null(add(sessions, now_us, 3)); /* not larger */
    struct fetch_session *fourth = add(sessions, now_us, 4);
    assert_non_null(fourth);
    assert_null(fetch_session_find(sessions, ids[1]));
    assert_null(add(sessions, now_us, 3)); /* the other of 3 is next, for more than 3 */
    assert_non_null(add(sessions, now_us, 10));
    assert_null(fetch_session_find(sessions, ids[3]));
    assert_non_null(fetch_session_find(sessions, fourth->id)); /* has not had its time */
}

static void one_with_a_request_under_way_is_told_that_it_goes(void **state)
{
    struct fetch_sessions *sessions = *state;
    struct fetch_session *session = add(sessions, 0, 2);
    session->in_flight = &broker;
    fetch_session_drop(session);
    assert_int_equal(dropped, 1);
    add(sessions, 0, 2);
    fetch_watch_lose_all(&broker);
    assert_int_equal(sessions->count, 0);
}

static void partitions_of_a_session_are_bounded(void **state)
{
    struct fetch_sessions *sessions = *state;
    sessions->options.partitions_max = 10;
    assert_null(fetch_session_new(sessions, 0, false, 11));
    struct fetch_session *session = add(sessions, 0, 10);
    assert_null(put(session, "t", 10, 0));
    assert_non_null(put(session, "t", 9, 5)); /* a known one is changed all the same */
    fetch_session_forget(session, text("t"), 0);
    assert_non_null(put(session, "t", 10, 0));
}

static void bytes_of_all_are_bounded(void **state)
{
    struct fetch_sessions *sessions = *state;
    sessions->options.bytes_max = 64 << 10;
    struct fetch_session *session = add(sessions, 0, 1);
    char name[200];
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    uint32_t count = 0;
    for (; count < 10000; count++) {
        snprintf(name, 6, "%05u", count);
        name[5] = 'n';
        if (put(session, name, 0, 0) == NULL) break;
    }
    assert_in_range(count, 64, 400);
    assert_true(sessions->bytes <= sessions->options.bytes_max);
    assert_null(fetch_session_new(sessions, 0, false, 300));
    assert_non_null(fetch_session_new(sessions, IDLE_US + 1, false, 100)); /* for the old one */
    assert_int_equal(sessions->count, 1);
}

/* ---- a walk beside a plain list ---- */

#define TOPICS     3
#define PARTITIONS 40

struct model {
    int64_t offset[TOPICS][PARTITIONS]; /* -1: not in it */
    bool news[TOPICS][PARTITIONS];
};

static const char *const names[TOPICS] = {"a", "bb", ""};

static void check(const struct fetch_session *session, const struct model *model)
{
    uint32_t count = 0, news = 0;
    const struct fetch_session_partition *partition;
    DL_FOREACH(session->partitions, partition)
    {
        uint32_t topic = 0;
        while (strlen(names[topic]) != partition->topic->key.bytes)
            topic++;
        assert_int_equal(partition->asked.offset, model->offset[topic][partition->index]);
        bool listed = partition->watch.listed == &session->watches.news;
        assert_int_equal(listed, model->news[topic][partition->index]);
        count++;
    }
    for (int i = 0; i < TOPICS * PARTITIONS; i++) {
        if (model->offset[i / PARTITIONS][i % PARTITIONS] < 0) continue;
        count--;
        news += model->news[i / PARTITIONS][i % PARTITIONS];
    }
    assert_int_equal(count, 0);
    assert_int_equal(news, session->watches.news_count);
}

static void session_is_what_was_put_less_what_was_forgotten(void **state)
{
    static struct partition partitions[TOPICS][PARTITIONS];
    struct fetch_sessions *sessions = *state;
    struct random random;
    random_seed(&random, 11);
    for (int round = 0; round < 20; round++) {
        struct fetch_session *session = add(sessions, 0, 0);
        struct model model;
        memset(&model, 0, sizeof(model));
        memset(model.offset, -1, sizeof(model.offset));
        for (int step = 0; step < 500; step++) {
            uint32_t topic = (uint32_t)random_below(&random, TOPICS);
            int32_t index = (int32_t)random_below(&random, PARTITIONS);
            switch (random_below(&random, 5)) {
            case 0:
            case 1:
                assert_non_null(put(session, names[topic], index, step));
                model.offset[topic][index] = step;
                model.news[topic][index] = true;
                break;
            case 2:
                fetch_session_forget(session, text(names[topic]), index);
                model.offset[topic][index] = -1;
                model.news[topic][index] = false;
                break;
            case 3:
                fetch_watch_tell(&partitions[topic][index]);
                model.news[topic][index] = model.offset[topic][index] >= 0;
                break;
            default:
                while (session->watches.news != NULL) {
                    struct fetch_session_partition *partition =
                        (struct fetch_session_partition *)session->watches.news;
                    topic = 0;
                    while (strlen(names[topic]) != partition->topic->key.bytes)
                        topic++;
                    fetch_watch_settle(&partition->watch, &partitions[topic][partition->index]);
                }
                memset(model.news, 0, sizeof(model.news));
                break;
            }
            check(session, &model);
        }
        fetch_session_drop(session);
    }
    for (int i = 0; i < TOPICS * PARTITIONS; i++)
        assert_null(partitions[i / PARTITIONS][i % PARTITIONS].watches);
}

int main(void)
{
#define SESSION_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        SESSION_TEST(full_table_keeps_out_whoever_comes),
        SESSION_TEST(longest_unused_gives_its_place_when_that_is_long_enough),
        SESSION_TEST(smallest_that_had_its_time_gives_its_place_to_a_larger_one),
        SESSION_TEST(one_with_a_request_under_way_is_told_that_it_goes),
        SESSION_TEST(partitions_of_a_session_are_bounded),
        SESSION_TEST(bytes_of_all_are_bounded),
        SESSION_TEST(session_is_what_was_put_less_what_was_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
