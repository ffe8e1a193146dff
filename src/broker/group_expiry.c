/* group_expiry.c: groups and committed offsets that go by themselves: with their topic, or by their
 * age.
 *
 * A bounded part is written at a time. By age, the rest is the next look's. With a topic it is
 * gone on with until all is written, or the leadership is over: the next leader looks for offsets
 * of topics that are not there. */
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/memory.h"
#include "broker/group_tombstones.h"
#include "broker/modern_coordinator_state.h"

#define EXPIRE_CHECK_US INT64_C(600000000)
#define FORGET_RETRY_US 1000000

/* ---- with their topic ---- */

/* Offsets that one partition of `__consumer_offsets` has to forget. */
struct gone_offsets {
    struct broker *broker;
    struct partition *partition; /* as long as the leadership lasts */
    int32_t epoch;               /* the leadership's */
    int64_t before;              /* what is committed from here on is a new topic's of the name */
    char topic[TOPIC_NAME_BYTES_MAX + 1]; /* "": of every topic that is not there */
    struct group_tombstones *tombstones;  /* while they are collected */
    bool again;                           /* not the first look */
    bool more;                            /* there was something, or may be */
    bool full, warned;
    struct deadline retry;
    struct gone_offsets *next, *prev;
};

static void gone_free(struct gone_offsets *gone)
{
    deadlines_remove(&gone->broker->deadlines, &gone->retry);
    DL_DELETE(gone->broker->groups->gone, gone);
    free(gone);
}

void group_offsets_free(struct broker *broker)
{
    while (broker->groups->gone != NULL)
        gone_free(broker->groups->gone);
}

/* One that is hidden is forgotten when it is dropped. */
static bool topic_is_known(struct broker *broker, struct slice name)
{
    char text[TOPIC_NAME_BYTES_MAX + 1];
    if (catalog_find(broker, (const char *)name.data, name.bytes) != NULL) return true;
    if (name.bytes > TOPIC_NAME_BYTES_MAX) return false;
    memcpy(text, name.data, name.bytes);
    text[name.bytes] = '\0';
    return catalog_name_is_hidden(&broker->catalog, text);
}

static bool is_gone(const struct gone_offsets *gone, struct slice topic)
{
    if (gone->topic[0] == '\0') return !topic_is_known(gone->broker, topic);
    return topic.bytes == strlen(gone->topic) && memcmp(topic.data, gone->topic, topic.bytes) == 0;
}

/* At the first look there is no new topic of the name; later what is on its way may be for one. */
static bool may_be_renewed(const struct gone_offsets *gone, const struct offset_key *key)
{
    return gone->again && (offsets_group_is_committing(gone->broker, key->group) ||
                           offsets_table_is_pending(gone->partition->internal->offsets, key));
}

static void forget_key(struct gone_offsets *gone, const struct offset_key *key)
{
    if (group_tombstones_are_full(gone->tombstones)) return;
    gone->more = true;
    group_tombstones_add_offset(gone->tombstones, key);
}

static void forget_group(void *context, const struct offset_group *group)
{
    struct gone_offsets *gone = context;
    for (uint32_t i = 0; i < group->count; i++) {
        const struct offset_entry *entry = &group->entries[i];
        const struct slice id = {(const uint8_t *)group->id, group->id_bytes};
        const struct offset_key key = offset_entry_key(id, entry);
        if (entry->record_offset >= gone->before || !is_gone(gone, key.topic)) continue;
        if (may_be_renewed(gone, &key)) {
            gone->more = true;
        } else {
            forget_key(gone, &key);
        }
    }
}

/* Of a pending one it is not known when it was committed. */
static void forget_pending(void *context, const struct offset_key *key)
{
    struct gone_offsets *gone = context;
    if (is_gone(gone, key->topic) && !topic_is_known(gone->broker, key->topic)) {
        forget_key(gone, key);
    }
}

static void forget_written(void *context, enum status status, const struct error *error);

static void forget(struct gone_offsets *gone)
{
    const struct internal_state *state = gone->partition->internal;
    /* What was committed just before the topic went may not be in the state yet. */
    gone->more = gone->topic[0] != '\0' && state->applied < gone->before;
    gone->tombstones = group_tombstones_new(gone->partition, forget_written, gone);
    offsets_table_each(state->offsets, forget_group, gone);
    offsets_table_each_pending(state->offsets, forget_pending, gone);
    gone->again = true;
    gone->full = group_tombstones_are_full(gone->tombstones);
    group_tombstones_write(gone->tombstones, 0);
}

static void forget_again(void *context, struct deadline *deadline)
{
    struct gone_offsets *gone = CONTAINER_OF(deadline, struct gone_offsets, retry);
    struct broker *broker = context;
    if (broker_check_serving(broker) != STATUS_OK || gone->epoch != broker->leading_epoch) {
        gone_free(gone);
    } else {
        forget(gone);
    }
}

static void forget_written(void *context, enum status status, const struct error *error)
{
    struct gone_offsets *gone = context;
    struct broker *broker = gone->broker;
    if (status == STATUS_OK && !gone->more) {
        gone_free(gone);
        return;
    }
    if (status != STATUS_OK && !gone->warned) {
        log_warn("offsets_not_forgotten partition=%s reason=\"%s\"",
                 partition_name(gone->partition), error->text);
    }
    gone->warned |= status != STATUS_OK;
    deadlines_add(&broker->deadlines, &gone->retry,
                  loop_now_us(broker->loop) +
                      (status == STATUS_OK && gone->full ? 0 : FORGET_RETRY_US),
                  forget_again);
}

static void forget_in(struct partition *partition, const char *topic_name)
{
    struct gone_offsets *gone = memory_new(sizeof(*gone));
    gone->broker = partition->broker;
    gone->partition = partition;
    gone->epoch = partition->broker->leading_epoch;
    gone->before = partition_log_end(partition);
    strcpy(gone->topic, topic_name);
    DL_APPEND(partition->broker->groups->gone, gone);
    forget(gone);
}

void group_offsets_topic_gone(struct broker *broker, const char *topic_name)
{
    const struct topic *topic =
        catalog_find(broker, CONSUMER_OFFSETS_TOPIC, strlen(CONSUMER_OFFSETS_TOPIC));
    if (topic == NULL || broker_check_serving(broker) != STATUS_OK) return;
    for (uint32_t i = 0; i < topic->partition_count; i++)
        forget_in(topic->partitions[i], topic_name);
}

void group_offsets_forget_gone(struct partition *partition)
{
    struct gone_offsets *gone;
    DL_FOREACH(partition->broker->groups->gone, gone)
    {
        bool under_way = gone->partition == partition && gone->topic[0] == '\0';
        if (under_way && gone->epoch == partition->broker->leading_epoch) return;
    }
    forget_in(partition, "");
}

/* ---- by their age ---- */

struct expiry {
    struct broker *broker;
    struct group_tombstones *tombstones;
    const struct internal_state *state;
    int64_t now_ms;
};

static bool is_old(const struct expiry *expiry, int64_t since_ms)
{
    return expiry->now_ms - since_ms >= expiry->broker->settings.offsets_retention_ms;
}

/* Members, or somebody about to become one or to commit: nothing of it is old. */
static bool is_in_use(const struct expiry *expiry, struct slice id,
                      const struct group_record *record)
{
    const struct live_group *live = group_coordinator_find(expiry->broker, id);
    if (live != NULL && !consumer_group_is_idle(live->group)) return true;
    if (modern_coordinator_is_in_use(expiry->broker, id)) return true;
    return record->member_count > 0 || offsets_group_is_committing(expiry->broker, id);
}

static void expire_offsets(void *context, const struct offset_group *group)
{
    struct expiry *expiry = context;
    struct slice id = {(const uint8_t *)group->id, group->id_bytes};
    struct group_record record = {.state_timestamp_ms = -1};
    if (group_tombstones_are_full(expiry->tombstones)) return;
    (void)consumer_group_table_find(expiry->state->groups, id, &record);
    if (is_in_use(expiry, id, &record) || !is_old(expiry, record.state_timestamp_ms)) return;
    for (uint32_t i = 0; i < group->count; i++) {
        const struct offset_entry *entry = &group->entries[i];
        const struct offset_key key = offset_entry_key(id, entry);
        if (!is_old(expiry, entry->commit_timestamp_ms) ||
            offsets_table_is_pending(expiry->state->offsets, &key)) {
            continue;
        }
        group_tombstones_add_offset(expiry->tombstones, &key);
    }
}

/* A group without members and without offsets: nothing is left to remember. */
static void expire_group(void *context, struct slice id, struct group_record *record)
{
    struct expiry *expiry = context;
    if (group_tombstones_are_full(expiry->tombstones) || is_in_use(expiry, id, record)) return;
    bool rests = expiry->now_ms - record->state_timestamp_ms >= EXPIRE_CHECK_US / 1000;
    if (!rests || offsets_table_group(expiry->state->offsets, id).count > 0) return;
    group_tombstones_add_group(expiry->tombstones, id);
    group_coordinator_forget(expiry->broker, id);
}

static void expire_modern_group(void *context, const struct modern_group *group)
{
    struct expiry *expiry = context;
    struct slice id = modern_group_id(group);
    struct group_record record = {0};
    if (group_tombstones_are_full(expiry->tombstones) || is_in_use(expiry, id, &record)) return;
    if (offsets_table_group(expiry->state->offsets, id).count > 0) return;
    group_tombstones_add_modern_group(expiry->tombstones, id);
}

static void expire_partition(struct broker *broker, struct partition *partition)
{
    const struct internal_state *state = partition->internal;
    bool known = state->groups_epoch == broker->leading_epoch && !state->failed;
    /* A commit that was answered as failed may still be applied: what it renews is not old. */
    if (!known || state->applied < state->uncertain_end) return;
    group_offsets_forget_gone(partition);
    struct expiry expiry = {.broker = broker, .state = state};
    expiry.now_ms = loop_wall_ms(broker->loop);
    expiry.tombstones = group_tombstones_new(partition, NULL, NULL);
    offsets_table_each(state->offsets, expire_offsets, &expiry);
    consumer_group_table_each(state->groups, expire_group, &expiry);
    modern_group_table_each(state->modern, expire_modern_group, &expiry);
    group_tombstones_write(expiry.tombstones, 0);
}

void group_offsets_expire(struct broker *broker)
{
    struct group_coordinator *coordinator = broker->groups;
    int64_t now_us = loop_now_us(broker->loop);
    const struct topic *topic =
        catalog_find(broker, CONSUMER_OFFSETS_TOPIC, strlen(CONSUMER_OFFSETS_TOPIC));
    if (topic == NULL || broker_check_serving(broker) != STATUS_OK) return;
    /* Never right after taking over: who uses a group shall have come back first (T35). */
    if (now_us - broker->serving_since_us < EXPIRE_CHECK_US ||
        now_us - coordinator->expired_us < EXPIRE_CHECK_US) {
        return;
    }
    coordinator->expired_us = now_us;
    for (uint32_t i = 0; i < topic->partition_count; i++)
        expire_partition(broker, topic->partitions[i]);
}
