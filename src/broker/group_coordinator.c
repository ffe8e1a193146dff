/* group_coordinator.c: see group_coordinator.h. */
#include "broker/group_coordinator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/memory.h"
#include "broker/group_tombstones.h"
#include "broker/modern_coordinator_state.h"

/* What of a client's name goes into the id of its member. */
#define ID_PREFIX_BYTES_MAX 200
/* A tick that comes this late did not hear the heartbeats that wait behind it. */
#define LATE_US 1000000

struct group_store {
    struct broker *broker;
    struct produce produce;
    struct slice group;      /* own memory */
    uint64_t life, store_id; /* whose it is, and which of its */
    struct group_store *next, *prev;
};

static struct group_clock clock_of(struct broker *broker)
{
    return (struct group_clock){.now_us = loop_now_us(broker->loop),
                                .wall_ms = loop_wall_ms(broker->loop)};
}

struct group_coordinator *group_coordinator_new(void)
{
    return memory_new(sizeof(struct group_coordinator));
}

/* ---- groups that live ---- */

struct live_group *group_coordinator_find(struct broker *broker, struct slice id)
{
    struct live_group *live = NULL;
    const void *key = id.bytes > 0 ? (const void *)id.data : "";
    HASH_FIND(hh, broker->groups->live, key, id.bytes, live);
    return live;
}

static struct live_group *live_add(struct broker *broker, struct consumer_group *group)
{
    struct live_group *live = memory_new(sizeof(*live));
    struct slice id = consumer_group_id(group);
    live->broker = broker;
    live->group = group;
    live->life = ++broker->groups->lives;
    HASH_ADD_KEYPTR(hh, broker->groups->live, id.data, id.bytes, live);
    return live;
}

static void live_free(struct live_group *live)
{
    struct broker *broker = live->broker;
    deadlines_remove(&broker->deadlines, &live->deadline);
    HASH_DEL(broker->groups->live, live);
    broker->groups->bytes -= live->bytes;
    consumer_group_free(live->group);
    free(live);
}

/* Does the record say all there is to know? */
static bool is_on_record(const struct live_group *live)
{
    struct group_record record;
    struct slice id = consumer_group_id(live->group);
    struct partition *partition = internal_partition(live->broker, CONSUMER_OFFSETS_TOPIC, id);
    if (partition == NULL) return true;
    int32_t generation = consumer_group_generation(live->group);
    if (!consumer_group_table_find(partition->internal->groups, id, &record)) {
        return generation == 0;
    }
    return record.generation == generation && record.member_count == 0;
}

bool group_coordinator_has_members(struct broker *broker, struct slice id)
{
    const struct live_group *live = group_coordinator_find(broker, id);
    return live != NULL && consumer_group_state(live->group) != CONSUMER_GROUP_EMPTY;
}

void group_coordinator_forget(struct broker *broker, struct slice id)
{
    struct live_group *live = group_coordinator_find(broker, id);
    if (live == NULL || consumer_group_state(live->group) != CONSUMER_GROUP_EMPTY) return;
    if (consumer_group_is_storing(live->group)) {
        /* Its record on the way ends what the table still says of its members. */
        live->forgotten = true;
    } else {
        live_free(live);
    }
}

static void group_due(void *context, struct deadline *deadline);

/* After every event: it goes, or its next moment is watched for. */
static void settle(struct live_group *live)
{
    struct broker *broker = live->broker;
    if (consumer_group_state(live->group) == CONSUMER_GROUP_PREPARING) {
        group_sessions_rebalancing(broker, consumer_group_id(live->group));
    }
    if (consumer_group_state(live->group) != CONSUMER_GROUP_EMPTY) live->forgotten = false;
    if (consumer_group_is_idle(live->group) && (live->forgotten || is_on_record(live))) {
        live_free(live);
        return;
    }
    broker->groups->bytes += consumer_group_bytes(live->group) - live->bytes;
    live->bytes = consumer_group_bytes(live->group);
    int64_t due_us = consumer_group_due_us(live->group);
    bool waits = live->deadline.slot != 0;
    if (waits && live->deadline.at_us == due_us) return;
    deadlines_remove(&broker->deadlines, &live->deadline);
    if (due_us == CONSUMER_GROUP_NEVER_US) return;
    deadlines_add(&broker->deadlines, &live->deadline, due_us, group_due);
}

/* ---- what an event leads to ---- */

static void fill_result(struct group_result *result, const struct consumer_group *group,
                        const struct group_answer *given)
{
    const struct consumer_member_view view = consumer_member_view(group, given->member);
    result->member_id = view.id;
    result->generation = consumer_group_generation(group);
    result->protocol_type = consumer_group_protocol_type(group);
    result->protocol = consumer_group_protocol(group);
    result->leader = given->leader;
    result->skip_assignment = given->skip_assignment;
    result->assignment = view.assignment;
    result->group = group;
}

static void give_answers(struct live_group *live, struct group_actions *actions)
{
    struct group_coordinator *coordinator = live->broker->groups;
    coordinator->answering = true;
    for (uint32_t i = 0; i < actions->answer_count; i++) {
        const struct group_answer *given = &actions->answers[i];
        struct group_request *request = CONTAINER_OF(given->waiter, struct group_request, waiter);
        struct group_result result = {.status = given->status, .answer = given};
        if (given->status == STATUS_OK) fill_result(&result, live->group, given);
        request->done(request->context, &result);
    }
    coordinator->answering = false;
}

static void store_free(struct group_store *store)
{
    DL_DELETE(store->broker->groups->stores, store);
    free((void *)store->group.data);
    free(store);
}

static void act(struct live_group *live, struct group_actions *actions);

static void stored(void *context, struct produce *produce)
{
    struct group_store *store = context;
    struct broker *broker = store->broker;
    struct live_group *live = group_coordinator_find(broker, store->group);
    uint64_t life = store->life, store_id = store->store_id;
    enum status status = produce->status;
    if (status != STATUS_OK) {
        log_warn("group_not_stored group=\"%.*s\" reason=\"%s\"", (int)store->group.bytes,
                 (const char *)store->group.data, produce->error.text);
        offsets_note_uncertain(produce);
    }
    store_free(store);
    if (live == NULL || live->life != life) return;
    struct group_actions actions;
    group_actions_init(&actions);
    consumer_group_stored(live->group, store_id, status, clock_of(broker), &actions);
    act(live, &actions);
}

static struct shared_bytes *record_batch(struct broker *broker, const struct consumer_group *group)
{
    struct buffer key, value, bytes;
    struct batch_builder builder;
    struct error error;
    struct shared_bytes *batch = NULL;
    const struct batch_build_options options = BATCH_BUILD_PLAIN;
    buffer_init(&key, 0);
    buffer_init(&value, 0);
    buffer_init(&bytes, 0);
    batch_builder_init(&builder);
    group_key_encode(&key, consumer_group_id(group));
    consumer_group_record(group, &value);
    batch_builder_add(&builder, loop_wall_ms(broker->loop), buffer_slice(&key),
                      buffer_slice(&value), 0, (struct slice){0});
    if (!buffer_failed(&key) && !buffer_failed(&value) &&
        batch_builder_finish(&builder, &options, &bytes, &error) == STATUS_OK) {
        batch = shared_bytes_copy(bytes.data, bytes.bytes);
    }
    batch_builder_deinit(&builder);
    buffer_deinit(&bytes);
    buffer_deinit(&value);
    buffer_deinit(&key);
    return batch;
}

/* Last in its caller: the group may be gone afterwards. */
static void store_group(struct live_group *live)
{
    struct broker *broker = live->broker;
    struct slice id = consumer_group_id(live->group);
    struct group_store *store = memory_new(sizeof(*store));
    uint8_t *copy = memory_new(id.bytes + 1);
    memcpy(copy, id.data, id.bytes);
    store->broker = broker;
    store->group = (struct slice){copy, id.bytes};
    store->life = live->life;
    store->store_id = consumer_group_store_id(live->group);
    DL_APPEND(broker->groups->stores, store);
    store->produce = (struct produce){
        .partition = internal_partition(broker, CONSUMER_OFFSETS_TOPIC, id),
        .batch = record_batch(broker, live->group),
        .acks = ACKS_ALL,
        .internal = true,
        .done = stored,
        .context = store,
    };
    if (store->produce.partition == NULL || store->produce.batch == NULL) {
        shared_bytes_unref(store->produce.batch);
        store->produce.status = STATUS_NO_MEMORY;
        stored(store, &store->produce);
        return;
    }
    broker_produce(broker, &store->produce);
}

/* Last in its caller: the group may be gone afterwards. Takes the actions. */
static void act(struct live_group *live, struct group_actions *actions)
{
    bool store = actions->store;
    give_answers(live, actions);
    group_actions_deinit(actions);
    if (store) {
        struct slice id = consumer_group_id(live->group);
        settle(live); /* stays: it waits for the store */
        ASSERT(group_coordinator_find(live->broker, id) == live);
        store_group(live);
    } else {
        settle(live);
    }
}

static void group_due(void *context, struct deadline *deadline)
{
    struct live_group *live = CONTAINER_OF(deadline, struct live_group, deadline);
    struct broker *broker = context;
    struct group_clock clock = clock_of(broker);
    struct group_actions actions;
    group_actions_init(&actions);
    /* Paused: whoever could not be heard meanwhile is not to blame. */
    if (clock.now_us - deadline->at_us > LATE_US) {
        consumer_group_restart_sessions(live->group, clock);
    }
    consumer_group_tick(live->group, clock, &actions);
    act(live, &actions);
}

/* ---- a leadership begins and ends ---- */

struct restoring {
    struct broker *broker;
};

static void restore_group(void *context, struct slice id, struct group_record *record)
{
    struct broker *broker = ((struct restoring *)context)->broker;
    if (record->member_count == 0 || group_coordinator_find(broker, id) != NULL ||
        modern_coordinator_has_members(broker, id))
        return;
    struct consumer_group *group =
        consumer_group_restore(id, &broker->settings.groups, record, clock_of(broker));
    settle(live_add(broker, group));
}

void group_coordinator_applied(struct partition *partition)
{
    struct broker *broker = partition->broker;
    struct internal_state *internal = partition->internal;
    if (internal->groups == NULL || internal->failed || !partition->visible ||
        broker_check_serving(broker) != STATUS_OK ||
        internal->groups_epoch == broker->leading_epoch ||
        internal->applied < partition->epoch_start) {
        return;
    }
    internal->groups_epoch = broker->leading_epoch;
    struct restoring restoring = {broker};
    consumer_group_table_each(internal->groups, restore_group, &restoring);
    modern_coordinator_restore(partition);
    group_offsets_forget_gone(partition);
}

void group_coordinator_serving_began(struct broker *broker)
{
    const struct topic *topic =
        catalog_find(broker, CONSUMER_OFFSETS_TOPIC, strlen(CONSUMER_OFFSETS_TOPIC));
    for (uint32_t i = 0; topic != NULL && i < topic->partition_count; i++) {
        group_coordinator_applied(topic->partitions[i]);
        offsets_applied(topic->partitions[i]);
    }
}

/* Who waits is told why it ends here. */
static void live_end(struct live_group *live, enum status status)
{
    struct group_actions actions;
    group_actions_init(&actions);
    consumer_group_refuse_all(live->group, status, &actions);
    give_answers(live, &actions);
    group_actions_deinit(&actions);
    live_free(live);
}

void group_coordinator_demoted(struct broker *broker)
{
    while (broker->groups->live != NULL)
        live_end(broker->groups->live, STATUS_NOT_LEADER);
}

void group_coordinator_hand_over(struct broker *broker, struct slice id)
{
    struct live_group *live = group_coordinator_find(broker, id);
    if (live != NULL) live_end(live, STATUS_REBALANCE_IN_PROGRESS);
}

void group_coordinator_revive(struct broker *broker, struct slice id)
{
    struct group_record record;
    struct restoring restoring = {broker};
    const struct partition *partition = internal_partition(broker, CONSUMER_OFFSETS_TOPIC, id);
    if (consumer_group_table_find(partition->internal->groups, id, &record))
        restore_group(&restoring, id, &record);
}

void group_coordinator_free(struct broker *broker)
{
    struct group_coordinator *coordinator = broker->groups;
    while (coordinator->stores != NULL)
        store_free(coordinator->stores);
    group_tombstones_free_all(broker);
    group_offsets_free(broker);
    while (coordinator->live != NULL)
        live_free(coordinator->live);
    ASSERT(coordinator->sessions == NULL);
    free(coordinator);
}

/* ---- finding one ---- */

enum status group_coordinator_partition(struct broker *broker, struct slice group,
                                        struct partition **out)
{
    enum status status = broker_check_serving(broker);
    if (status != STATUS_OK) return status;
    if (group.bytes > GROUP_ID_BYTES_MAX) return STATUS_INVALID_GROUP;
    *out = internal_partition(broker, CONSUMER_OFFSETS_TOPIC, group);
    if (*out == NULL) return STATUS_NOT_READY;
    if ((*out)->internal->failed) return STATUS_STORAGE_ERROR;
    bool known = (*out)->internal->groups_epoch == broker->leading_epoch;
    return known ? STATUS_OK : STATUS_NOT_READY;
}

/* Alive, or brought to life of its record. UNKNOWN_GROUP: it has none. */
static enum status find_group(struct broker *broker, struct slice id, struct live_group **out)
{
    struct partition *partition;
    struct group_record record;
    ASSERT(!broker->groups->answering);
    enum status status = group_coordinator_partition(broker, id, &partition);
    if (status != STATUS_OK) return status;
    *out = group_coordinator_find(broker, id);
    if (*out != NULL) return STATUS_OK;
    if (!consumer_group_table_find(partition->internal->groups, id, &record)) {
        return STATUS_UNKNOWN_GROUP;
    }
    *out = live_add(
        broker, consumer_group_restore(id, &broker->settings.groups, &record, clock_of(broker)));
    return STATUS_OK;
}

/* A member's group: one that is not there has no such member. */
static enum status find_for_member(struct broker *broker, struct slice id, struct live_group **out)
{
    if (id.bytes == 0) return STATUS_INVALID_GROUP;
    enum status status = find_group(broker, id, out);
    return status == STATUS_UNKNOWN_GROUP ? STATUS_UNKNOWN_MEMBER : status;
}

static enum status find_for_join(struct broker *broker, struct slice id,
                                 const struct consumer_join *join, struct live_group **out)
{
    struct group_coordinator *coordinator = broker->groups;
    if (id.bytes == 0) return STATUS_INVALID_GROUP;
    enum status status = modern_coordinator_yield(broker, id);
    if (status == STATUS_OK) status = find_group(broker, id, out);
    if (status == STATUS_OK && coordinator->bytes > LIVE_GROUPS_BYTES_MAX &&
        join->member_id.bytes == 0) {
        settle(*out);
        return STATUS_GROUP_FULL;
    }
    if (status != STATUS_UNKNOWN_GROUP) return status;
    if (join->member_id.bytes > 0) return STATUS_UNKNOWN_MEMBER;
    if (HASH_COUNT(coordinator->live) >= LIVE_GROUPS_MAX ||
        coordinator->bytes > LIVE_GROUPS_BYTES_MAX) {
        return STATUS_GROUP_FULL;
    }
    *out = live_add(broker, consumer_group_new(id, &broker->settings.groups));
    return STATUS_OK;
}

/* ---- requests ---- */

static void refuse(struct group_request *request, enum status status)
{
    const struct group_result result = {.status = status};
    request->done(request->context, &result);
}

/* At most `bytes_max` of a text, cut between two characters. */
static size_t cut_text(struct slice text, size_t bytes_max)
{
    if (text.bytes <= bytes_max) return text.bytes;
    size_t bytes = bytes_max;
    while (bytes > 0 && (text.data[bytes] & 0xC0) == 0x80)
        bytes--;
    return bytes;
}

/* "<instance or client id>-<uuid>" */
static size_t new_member_id(struct broker *broker, const struct consumer_join *join, char *out,
                            size_t out_bytes)
{
    char text[UUID_TEXT_BYTES];
    struct slice prefix = join->instance_id.data != NULL ? join->instance_id : join->client_id;
    struct uuid uuid = uuid_random(&broker->random);
    int bytes =
        snprintf(out, out_bytes, "%.*s-%s", (int)cut_text(prefix, ID_PREFIX_BYTES_MAX),
                 prefix.bytes > 0 ? (const char *)prefix.data : "", uuid_format(&uuid, text));
    return (size_t)bytes;
}

void broker_join_group(struct broker *broker, struct slice group, struct consumer_join *join,
                       struct group_request *request)
{
    char id[ID_PREFIX_BYTES_MAX + UUID_TEXT_BYTES + 2];
    struct live_group *live = NULL;
    if (join->new_id.bytes == 0) {
        join->new_id =
            (struct slice){(const uint8_t *)id, new_member_id(broker, join, id, sizeof(id))};
    }
    if (modern_classic_join(broker, group, join, request)) return;
    enum status status = find_for_join(broker, group, join, &live);
    if (status != STATUS_OK) {
        refuse(request, status);
        return;
    }
    struct group_actions actions;
    group_actions_init(&actions);
    consumer_group_join(live->group, join, &request->waiter, clock_of(broker), &actions);
    /* The id it was given is in no answer of the group. */
    if (actions.answer_count > 0 && actions.answers[0].status == STATUS_MEMBER_ID_REQUIRED) {
        ASSERT(actions.answer_count == 1 && !actions.store);
        group_actions_deinit(&actions);
        settle(live);
        const struct group_result result = {.status = STATUS_MEMBER_ID_REQUIRED,
                                            .member_id = join->new_id};
        request->done(request->context, &result);
        return;
    }
    act(live, &actions);
}

void broker_sync_group(struct broker *broker, struct slice group, const struct consumer_sync *sync,
                       struct group_request *request)
{
    struct live_group *live = NULL;
    if (modern_classic_sync(broker, group, sync, request)) return;
    enum status status = find_for_member(broker, group, &live);
    if (status != STATUS_OK) {
        refuse(request, status);
        return;
    }
    struct group_actions actions;
    group_actions_init(&actions);
    consumer_group_sync(live->group, sync, &request->waiter, clock_of(broker), &actions);
    act(live, &actions);
}

void broker_group_cancel(struct broker *broker, struct group_request *request)
{
    consumer_group_cancel(&request->waiter);
    modern_classic_cancel(broker, request);
}

enum status broker_group_heartbeat(struct broker *broker, struct slice group,
                                   const struct consumer_identity *who)
{
    struct live_group *live = NULL;
    enum status status;
    if (modern_classic_heartbeat(broker, group, who, &status)) return status;
    status = find_for_member(broker, group, &live);
    if (status != STATUS_OK) return status;
    status = consumer_group_heartbeat(live->group, who, clock_of(broker));
    settle(live);
    return status;
}

enum status broker_leave_group(struct broker *broker, struct slice group, struct slice member_id,
                               struct slice instance_id)
{
    struct live_group *live = NULL;
    enum status status;
    if (modern_classic_leave(broker, group, member_id, instance_id, &status)) return status;
    status = find_for_member(broker, group, &live);
    if (status != STATUS_OK) return status;
    struct group_actions actions;
    group_actions_init(&actions);
    status = consumer_group_leave(live->group, member_id, instance_id, clock_of(broker), &actions);
    act(live, &actions);
    return status;
}

static enum status check_committer(struct broker *broker, struct slice group,
                                   const struct consumer_identity *who, bool transactional)
{
    struct live_group *live = NULL;
    struct partition *partition;
    enum status status = modern_coordinator_check_commit(broker, group, who);
    if (status != STATUS_NOT_FOUND) return status;
    status = find_group(broker, group, &live);
    if (status == STATUS_UNKNOWN_GROUP) {
        /* Not there: a consumer that assigns itself makes it. Only offsets: a group without
         * members. */
        if (who->generation < 0) return STATUS_OK;
        status = group_coordinator_partition(broker, group, &partition);
        if (status != STATUS_OK) return status;
        bool empty = offsets_table_group(partition->internal->offsets, group).count > 0;
        return empty ? STATUS_UNKNOWN_MEMBER : STATUS_UNKNOWN_GROUP;
    }
    if (status != STATUS_OK) return status;
    status = consumer_group_check_commit(live->group, who, transactional, clock_of(broker));
    settle(live);
    return status;
}

/* In a transaction nobody is checked who does not say who he is, and an epoch that is over or a
 * group that is gone are a generation that is: a producer takes 113 and 69 for fatal (8.1). */
enum status group_coordinator_check_commit(struct broker *broker, struct slice group,
                                           const struct consumer_identity *who, bool transactional)
{
    struct partition *partition;
    bool anonymous =
        who->generation < 0 && who->member_id.bytes == 0 && who->instance_id.data == NULL;
    if (!transactional) return check_committer(broker, group, who, false);
    if (anonymous) return group_coordinator_partition(broker, group, &partition);
    enum status status = check_committer(broker, group, who, true);
    bool over = status == STATUS_STALE_MEMBER_EPOCH || status == STATUS_UNKNOWN_GROUP;
    return over ? STATUS_ILLEGAL_GENERATION : status;
}
