/* modern_live.c: see modern_live.h. */
#include "broker/modern_live.h"

#include <stdlib.h>
#include <utlist.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/slice.h"
#include "broker/group_coordinator_state.h"
#include "broker/modern_group_classic.h"

#define RELOAD_US INT64_C(1000000)
/* A deadline that comes this late did not hear the heartbeats that wait behind it. */
#define LATE_US INT64_C(1000000)

/* ---- the topics, as groups see them ---- */

static struct group_topic topic_of(const struct topic *topic)
{
    return (struct group_topic){.name = slice_of_text(topic_name(topic)),
                                .uid = *topic_uid(topic),
                                .partitions = topic_partition_count(topic)};
}

static bool find_topic(void *context, struct slice name, struct group_topic *out)
{
    const struct topic *topic = catalog_find(context, (const char *)name.data, name.bytes);
    if (topic == NULL) return false;
    *out = topic_of(topic);
    return true;
}

static bool find_topic_uid(void *context, const struct uuid *uid, struct group_topic *out)
{
    const struct topic *topic = catalog_find_uid(context, uid);
    if (topic == NULL) return false;
    *out = topic_of(topic);
    return true;
}

/* Internal topics are read by name alone. */
static void each_topic(void *context, group_topic_fn each, void *each_context)
{
    struct topic *topic = NULL;
    while ((topic = catalog_next(context, topic)) != NULL) {
        if (topic_is_internal(topic)) continue;
        const struct group_topic seen = topic_of(topic);
        each(each_context, &seen);
    }
}

struct group_topics modern_topics_now(struct broker *broker)
{
    return (struct group_topics){.version = catalog_version(broker).n,
                                 .find = find_topic,
                                 .find_uid = find_topic_uid,
                                 .each = each_topic,
                                 .context = broker};
}

struct modern_group_step modern_step_now(struct broker *broker, const struct group_topics *topics,
                                         struct modern_records *records)
{
    return (struct modern_group_step){.options = &broker->settings.modern_groups,
                                      .topics = topics,
                                      .records = records,
                                      .now_us = loop_now_us(broker->loop)};
}

/* ---- groups that live ---- */

struct modern_live *modern_live_find(struct broker *broker, struct slice id)
{
    struct modern_live *live = NULL;
    const void *key = id.bytes > 0 ? (const void *)id.data : "";
    HASH_FIND(hh, broker->modern->live, key, id.bytes, live);
    return live;
}

void modern_live_measure(struct modern_live *live)
{
    size_t bytes = live->group != NULL ? modern_group_bytes(live->group) : 0;
    live->broker->modern->bytes += bytes - live->bytes;
    live->bytes = bytes;
}

struct modern_live *modern_live_add(struct broker *broker, struct slice id,
                                    struct modern_group *group)
{
    struct modern_live *live = memory_new(sizeof(*live));
    live->broker = broker;
    live->id = slice_copy(id);
    live->group = group;
    HASH_ADD_KEYPTR(hh, broker->modern->live, live->id.data, live->id.bytes, live);
    modern_live_measure(live);
    return live;
}

static void live_free(struct modern_live *live)
{
    free((void *)live->id.data);
    free(live);
}

void modern_live_retire(struct modern_live *live)
{
    struct broker *broker = live->broker;
    deadlines_remove(&broker->deadlines, &live->deadline);
    modern_group_free(live->group);
    live->group = NULL;
    modern_live_measure(live);
    HASH_DEL(broker->modern->live, live);
    live->retired = true;
    if (live->stores == NULL) live_free(live);
}

static void live_due(void *context, struct deadline *deadline);

void modern_live_settle(struct modern_live *live)
{
    struct broker *broker = live->broker;
    int64_t due_us = loop_now_us(broker->loop) + RELOAD_US;
    if (live->group != NULL) {
        if (modern_group_member_count(live->group) == 0 && live->stores == NULL) {
            modern_live_retire(live);
            return;
        }
        due_us = modern_group_next_due(live->group);
    }
    if (live->deadline.slot != 0 && live->deadline.at_us == due_us) return;
    deadlines_remove(&broker->deadlines, &live->deadline);
    if (due_us != INT64_MAX) deadlines_add(&broker->deadlines, &live->deadline, due_us, live_due);
}

static struct partition *partition_of(const struct modern_live *live)
{
    return internal_partition(live->broker, CONSUMER_OFFSETS_TOPIC, live->id);
}

/* From here on the log says what it is. */
static void let_go(struct modern_live *live)
{
    modern_group_free(live->group);
    live->group = NULL;
    modern_live_measure(live);
}

/* A write failed: the log may have it or not. */
static void lose(struct modern_live *live)
{
    const struct partition *partition = partition_of(live);
    if (live->retired || partition == NULL || partition->log == NULL) return;
    let_go(live);
    live->reload_at = partition_log_end(partition);
    modern_live_settle(live);
}

struct modern_group *modern_live_copy_recorded(struct broker *broker,
                                               const struct partition *partition, struct slice id)
{
    const struct modern_group *recorded = modern_group_table_find(partition->internal->modern, id);
    if (recorded == NULL) return modern_group_new(id);
    struct modern_group *group = modern_group_copy(recorded);
    modern_group_start_timers(group, &broker->settings.modern_groups, loop_now_us(broker->loop));
    return group;
}

bool modern_live_reload(struct modern_live *live)
{
    const struct partition *partition = partition_of(live);
    if (live->group != NULL) return true;
    if (partition == NULL || live->stores != NULL || partition->internal->failed ||
        partition->internal->applied < live->reload_at ||
        broker_check_serving(live->broker) != STATUS_OK)
        return false;
    live->chain = (struct produce_chain){0};
    live->group = modern_live_copy_recorded(live->broker, partition, live->id);
    modern_live_measure(live);
    if (modern_group_member_count(live->group) == 0)
        group_coordinator_revive(live->broker, live->id);
    return true;
}

/* ---- records on their way ---- */

void modern_request_finish(struct modern_request *request, enum status status)
{
    request->status = status;
    if (status != STATUS_OK && request->error.text[0] == '\0')
        error_set(&request->error, status, "%s", status_text(status));
    /* The callback may let the request go. */
    struct partition_set assignment = request->assignment;
    request->done(request->context, request);
    partition_set_deinit(&assignment);
}

static void store_unlink(struct modern_store *store)
{
    DL_DELETE(store->live->stores, store);
    if (store->live->retired && store->live->stores == NULL) live_free(store->live);
}

static void stored(void *context, struct produce *produce)
{
    struct modern_store *store = context;
    struct modern_live *live = store->live;
    struct modern_request *waiting = store->waiting, *request, *next;
    enum status status = produce->status;
    offsets_note_uncertain(produce);
    if (status != STATUS_OK) {
        log_warn("group_not_stored group=\"%.*s\" reason=\"%s\"", (int)live->id.bytes,
                 (const char *)live->id.data, produce->error.text);
        lose(live);
    } else if (live->group == NULL && live->reload_at <= produce->last_offset) {
        live->reload_at = produce->last_offset + 1;
    }
    bool lives = !live->retired;
    store_unlink(store);
    if (lives) {
        (void)modern_live_reload(live);
        modern_live_settle(live);
    }
    DL_FOREACH_SAFE(waiting, request, next)
    {
        store->broker->modern->waiting--;
        request->store = NULL;
        request->error = produce->error;
        modern_request_finish(request, status);
    }
    free(store);
}

static struct shared_bytes *build_batch(struct broker *broker, const struct modern_records *records)
{
    struct batch_builder builder;
    const struct batch_build_options options = BATCH_BUILD_PLAIN;
    struct buffer bytes;
    struct error error;
    struct shared_bytes *batch = NULL;
    buffer_init(&bytes, 0);
    batch_builder_init(&builder);
    for (uint32_t i = 0; i < records->count; i++) {
        struct slice key, value;
        modern_records_get(records, i, &key, &value);
        batch_builder_add(&builder, loop_wall_ms(broker->loop), key, value, 0, (struct slice){0});
    }
    if (batch_builder_finish(&builder, &options, &bytes, &error) == STATUS_OK)
        batch = shared_bytes_copy(bytes.data, bytes.bytes);
    batch_builder_deinit(&builder);
    buffer_deinit(&bytes);
    return batch;
}

struct modern_store *modern_store_new(struct modern_live *live,
                                      const struct modern_records *records)
{
    struct broker *broker = live->broker;
    struct modern_store *store = memory_new(sizeof(*store));
    store->broker = broker;
    store->live = live;
    store->produce = (struct produce){
        .partition = partition_of(live),
        .batch = build_batch(broker, records),
        .acks = ACKS_ALL,
        .internal = true,
        .chain = &live->chain,
        .done = stored,
        .context = store,
    };
    DL_APPEND(live->stores, store);
    return store;
}

void modern_store_wait(struct modern_store *store, struct modern_request *request)
{
    request->store = store;
    DL_APPEND(store->waiting, request);
    store->broker->modern->waiting++;
}

void modern_store_send(struct modern_store *store)
{
    if (store->produce.batch == NULL || store->produce.partition == NULL) {
        shared_bytes_unref(store->produce.batch);
        store->produce.status = STATUS_NO_MEMORY;
        stored(store, &store->produce);
        return;
    }
    broker_produce(store->broker, &store->produce);
}

/* Nobody of the new protocol is left: it becomes a classic one, if that is wanted. */
static void return_to_classic(struct modern_live *live, struct modern_records *records)
{
    struct broker *broker = live->broker;
    const struct group_topics topics = modern_topics_now(broker);
    const struct modern_group_step step = modern_step_now(broker, &topics, records);
    if (!modern_group_is_classic(live->group) || !modern_downgrades(step.options->migration) ||
        modern_group_member_count(live->group) > broker->settings.groups.members_max)
        return;
    if (!modern_group_to_classic(live->group, &step, loop_wall_ms(broker->loop))) return;
    log_info("group_to_classic group=\"%.*s\"", (int)live->id.bytes, (const char *)live->id.data);
    let_go(live);
    live->reload_at = 0;
}

void modern_live_answer(struct modern_live *live, struct modern_records *records,
                        struct modern_request *request)
{
    if (records->count > 0) return_to_classic(live, records);
    struct modern_store *last = live->stores != NULL ? live->stores->prev : NULL;
    struct modern_store *store = records->count > 0 ? modern_store_new(live, records) : NULL;
    if (store != NULL) {
        modern_live_measure(live);
        modern_store_wait(store, request);
    } else if (last != NULL) {
        modern_store_wait(last, request);
    }
    modern_live_settle(live);
    if (store != NULL) {
        modern_store_send(store);
    } else if (last == NULL) {
        modern_request_finish(request, STATUS_OK);
    }
}

void modern_live_send(struct modern_live *live, struct modern_records *records)
{
    if (records->count > 0) return_to_classic(live, records);
    struct modern_store *store = records->count > 0 ? modern_store_new(live, records) : NULL;
    modern_live_measure(live);
    modern_live_settle(live);
    if (store != NULL) modern_store_send(store);
}

/* ---- time ---- */

static void live_due(void *context, struct deadline *deadline)
{
    struct modern_live *live = CONTAINER_OF(deadline, struct modern_live, deadline);
    struct broker *broker = context;
    struct modern_records records = {0};
    const struct group_topics topics = modern_topics_now(broker);
    const struct modern_group_step step = modern_step_now(broker, &topics, &records);
    if (!modern_live_reload(live)) {
        modern_live_settle(live);
        return;
    }
    /* Paused: whoever could not be heard meanwhile is not to blame. */
    if (step.now_us - deadline->at_us > LATE_US)
        modern_group_start_timers(live->group, step.options, step.now_us);
    modern_group_expire(live->group, &step);
    modern_live_send(live, &records);
    modern_records_deinit(&records);
}
