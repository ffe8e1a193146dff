/* modern_group_rig.h: a consumer group of the new protocol with topics of our making, and
 * heartbeats in short words. What it writes goes through batches into a table, as in a broker. */
#ifndef MOONMQ_TESTS_MODERN_GROUP_RIG_H
#define MOONMQ_TESTS_MODERN_GROUP_RIG_H

/* A test uses what it needs. */
#pragma GCC diagnostic ignored "-Wunused-function"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/slice.h"
#include "broker/group_tables.h"
#include "broker/modern_group.h"
#include "record/batch.h"

#define RIG_TOPICS_MAX 8
#define RIG_SECOND_US  INT64_C(1000000)

struct rig {
    struct modern_group *group;
    struct modern_group_table *table; /* of what was written so far */
    struct modern_group_options options;
    struct modern_records records; /* of the last event */
    struct modern_answer answer;   /* to the last heartbeat */
    int64_t now_us;
    struct group_topics topics;
    struct rig_topic {
        char name[32];
        struct uuid uid;
        uint32_t partitions;
    } topic[RIG_TOPICS_MAX]; /* ascending by name */
    uint32_t topic_count;
    uint8_t uids;
};

static bool rig_find_topic(void *context, struct slice name, struct group_topic *out)
{
    const struct rig *rig = context;
    for (uint32_t i = 0; i < rig->topic_count; i++) {
        const struct rig_topic *topic = &rig->topic[i];
        if (slice_compare(slice_of_text(topic->name), name) != 0) continue;
        *out = (struct group_topic){slice_of_text(topic->name), topic->uid, topic->partitions};
        return true;
    }
    return false;
}

static bool rig_find_topic_uid(void *context, const struct uuid *uid, struct group_topic *out)
{
    const struct rig *rig = context;
    for (uint32_t i = 0; i < rig->topic_count; i++)
        if (uuid_equal(&rig->topic[i].uid, uid))
            return rig_find_topic(context, slice_of_text(rig->topic[i].name), out);
    return false;
}

static void rig_each_topic(void *context, group_topic_fn each, void *each_context)
{
    const struct rig *rig = context;
    for (uint32_t i = 0; i < rig->topic_count; i++) {
        const struct rig_topic *topic = &rig->topic[i];
        each(each_context,
             &(struct group_topic){slice_of_text(topic->name), topic->uid, topic->partitions});
    }
}

static void rig_init(struct rig *rig)
{
    *rig = (struct rig){.now_us = RIG_SECOND_US};
    rig->group = modern_group_new(slice_of_text("g"));
    rig->table = modern_group_table_new();
    modern_group_options_default(&rig->options);
    rig->topics = (struct group_topics){.find = rig_find_topic,
                                        .find_uid = rig_find_topic_uid,
                                        .each = rig_each_topic,
                                        .context = rig};
}

static void rig_deinit(struct rig *rig)
{
    modern_group_free(rig->group);
    modern_group_table_free(rig->table);
    modern_records_deinit(&rig->records);
}

/* A new topic, or the partitions of one; 0 partitions: it goes. */
static void rig_set_topic(struct rig *rig, const char *name, uint32_t partitions)
{
    uint32_t at = 0;
    rig->topics.version++;
    while (at < rig->topic_count && strcmp(rig->topic[at].name, name) < 0)
        at++;
    bool there = at < rig->topic_count && strcmp(rig->topic[at].name, name) == 0;
    if (there && partitions > 0) {
        rig->topic[at].partitions = partitions;
    } else if (there) {
        rig->topic_count--;
        memmove(&rig->topic[at], &rig->topic[at + 1],
                (rig->topic_count - at) * sizeof(rig->topic[0]));
    } else if (partitions > 0) {
        memmove(&rig->topic[at + 1], &rig->topic[at],
                (rig->topic_count - at) * sizeof(rig->topic[0]));
        rig->topic_count++;
        rig->topic[at] =
            (struct rig_topic){.uid = {{[15] = ++rig->uids}}, .partitions = partitions};
        strcpy(rig->topic[at].name, name);
    }
}

static struct modern_group_step rig_step(struct rig *rig)
{
    modern_records_clear(&rig->records);
    return (struct modern_group_step){.options = &rig->options,
                                      .topics = &rig->topics,
                                      .records = &rig->records,
                                      .now_us = rig->now_us};
}

/* The last event's records are replicated. */
static void rig_commit(struct rig *rig)
{
    struct batch_builder builder;
    struct batch_build_options options = BATCH_BUILD_PLAIN;
    struct buffer batch;
    struct error error;
    if (rig->records.count == 0) return;
    buffer_init(&batch, 0);
    batch_builder_init(&builder);
    for (uint32_t i = 0; i < rig->records.count; i++) {
        struct slice key, value;
        modern_records_get(&rig->records, i, &key, &value);
        batch_builder_add(&builder, 1, key, value, 0, (struct slice){0});
    }
    assert_int_equal(batch_builder_finish(&builder, &options, &batch, &error), STATUS_OK);
    assert_int_equal(group_tables_apply_batch(&(struct group_tables){.modern = rig->table},
                                              batch.data, batch.bytes, &error),
                     STATUS_OK);
    batch_builder_deinit(&builder);
    buffer_deinit(&batch);
    modern_records_clear(&rig->records);
}

/* Another leader goes on from what is replicated. */
static void rig_fail_over(struct rig *rig)
{
    const struct modern_group *stored =
        modern_group_table_find(rig->table, modern_group_id(rig->group));
    struct modern_group *next =
        stored != NULL ? modern_group_copy(stored) : modern_group_new(modern_group_id(rig->group));
    modern_group_free(rig->group);
    rig->group = next;
    modern_records_clear(&rig->records);
    modern_group_start_timers(rig->group, &rig->options, rig->now_us);
}

static enum status rig_send(struct rig *rig, const struct modern_heartbeat *heartbeat)
{
    struct modern_group_step step = rig_step(rig);
    modern_group_heartbeat(rig->group, &step, heartbeat, &rig->answer);
    return rig->answer.status;
}

static void rig_expire(struct rig *rig)
{
    struct modern_group_step step = rig_step(rig);
    modern_group_expire(rig->group, &step);
    rig_commit(rig);
}

/* What every client says of itself; the rest is the test's. */
static struct modern_heartbeat rig_heartbeat(const char *member, int32_t epoch)
{
    return (struct modern_heartbeat){.member_id = slice_of_text(member),
                                     .member_epoch = epoch,
                                     .client_id = slice_of_text("client"),
                                     .client_host = slice_of_text("/127.0.0.1"),
                                     .rebalance_timeout_ms = -1};
}

#endif
