/* modern_coordinator.c: see modern_coordinator.h. */
#include "broker/modern_coordinator.h"

#include <stdlib.h>
#include <utlist.h>

#include "base/slice.h"
#include "broker/group_coordinator_state.h"
#include "broker/modern_live.h"

struct modern_coordinator *modern_coordinator_new(void)
{
    return memory_new(sizeof(struct modern_coordinator));
}

const struct modern_group_options *broker_modern_options(const struct broker *broker)
{
    return &broker->settings.modern_groups;
}

struct uuid broker_modern_new_id(struct broker *broker)
{
    return uuid_random(&broker->random);
}

/* ---- requests ---- */

static enum status find_group(struct broker *broker, struct slice id, bool joins, bool grows,
                              struct modern_live **out)
{
    struct partition *partition;
    enum status status = group_coordinator_partition(broker, id, &partition);
    if (status != STATUS_OK) return status;
    if (id.bytes == 0) return STATUS_INVALID;
    if (joins && group_coordinator_has_members(broker, id)) return STATUS_UNKNOWN_GROUP;
    *out = modern_live_find(broker, id);
    if (*out != NULL) {
        if (!modern_live_reload(*out)) return STATUS_NOT_READY;
        bool full = broker->modern->bytes > MODERN_GROUPS_BYTES_MAX;
        return grows && full ? STATUS_GROUP_FULL : STATUS_OK;
    }
    if (!joins) return STATUS_UNKNOWN_MEMBER; /* whoever has members lives */
    if (HASH_COUNT(broker->modern->live) >= MODERN_GROUPS_MAX ||
        broker->modern->bytes > MODERN_GROUPS_BYTES_MAX)
        return STATUS_GROUP_FULL;
    *out = modern_live_add(broker, id, modern_live_copy_recorded(broker, partition, id));
    return STATUS_OK;
}

/* What is left of a classic group without members goes with the first record of this one. */
static void take_id(struct broker *broker, struct slice id, struct modern_records *records)
{
    struct group_record record;
    const struct partition *partition = internal_partition(broker, CONSUMER_OFFSETS_TOPIC, id);
    group_coordinator_forget(broker, id);
    if (!consumer_group_table_find(partition->internal->groups, id, &record)) return;
    struct buffer key;
    buffer_init(&key, 0);
    group_key_encode(&key, id);
    modern_records_add_tombstone(records, buffer_slice(&key));
    buffer_deinit(&key);
}

static void take_answer(struct modern_request *request, const struct modern_answer *answer)
{
    request->member_epoch = answer->member_epoch;
    request->has_assignment = answer->assignment != NULL;
    if (request->has_assignment) partition_set_copy(&request->assignment, answer->assignment);
}

/* What the event wrote is sent; the answer follows it, and all that went before. */
static void answer_when_stored(struct modern_live *live, const struct modern_records *records,
                               struct modern_request *request)
{
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

void broker_modern_heartbeat(struct broker *broker, struct slice id,
                             const struct modern_heartbeat *heartbeat,
                             struct modern_request *request)
{
    struct modern_live *live = NULL;
    struct modern_answer answer;
    struct modern_records records = {0};
    const struct group_topics topics = modern_topics_now(broker);
    const struct modern_group_step step = modern_step_now(broker, &topics, &records);
    bool joins = heartbeat->member_epoch == MODERN_EPOCH_JOIN;
    /* Whoever joined with little can bring more with any later heartbeat. */
    bool grows = joins || heartbeat->has_names || heartbeat->regex.bytes > 0;
    enum status status = find_group(broker, id, joins, grows, &live);
    if (status == STATUS_OK && broker->modern->waiting >= MODERN_WAITING_MAX)
        status = STATUS_NOT_READY;
    if (status != STATUS_OK) {
        if (live != NULL) modern_live_settle(live);
        modern_request_finish(request, status);
        return;
    }
    modern_group_heartbeat(live->group, &step, heartbeat, &answer);
    if (answer.status != STATUS_OK) {
        request->error = answer.error;
        modern_live_settle(live);
        modern_request_finish(request, answer.status);
    } else {
        take_answer(request, &answer);
        if (records.count > 0) take_id(broker, id, &records);
        answer_when_stored(live, &records, request);
    }
    modern_records_deinit(&records);
}

void broker_modern_cancel(struct broker *broker, struct modern_request *request)
{
    if (request->store == NULL) return;
    DL_DELETE(request->store->waiting, request);
    request->store = NULL;
    broker->modern->waiting--;
    partition_set_deinit(&request->assignment);
}

/* ---- questions ---- */

enum status broker_modern_describe(struct broker *broker, struct slice id,
                                   modern_description_fn each, void *context)
{
    struct partition *partition;
    enum status status = group_coordinator_partition(broker, id, &partition);
    if (status != STATUS_OK) return status;
    const struct modern_group *group = modern_group_table_find(partition->internal->modern, id);
    if (group == NULL) return STATUS_UNKNOWN_GROUP;
    each(context, group);
    return STATUS_OK;
}

const struct modern_group *modern_coordinator_find(struct broker *broker, struct slice id)
{
    const struct modern_live *live = modern_live_find(broker, id);
    if (live != NULL && live->group != NULL) return live->group;
    const struct partition *partition = internal_partition(broker, CONSUMER_OFFSETS_TOPIC, id);
    return partition != NULL ? modern_group_table_find(partition->internal->modern, id) : NULL;
}

bool modern_coordinator_has_members(struct broker *broker, struct slice id)
{
    const struct modern_group *group = modern_coordinator_find(broker, id);
    return group != NULL && modern_group_member_count(group) > 0;
}

enum status modern_coordinator_check_commit(struct broker *broker, struct slice id,
                                            struct slice member_id, int32_t epoch)
{
    struct modern_live *live = modern_live_find(broker, id);
    if (live != NULL && !modern_live_reload(live)) return STATUS_NOT_READY;
    if (live == NULL || modern_group_member_count(live->group) == 0) return STATUS_NOT_FOUND;
    return modern_group_check_commit(live->group, member_id, epoch);
}

enum status broker_modern_check_fetch(struct broker *broker, struct slice id,
                                      struct slice member_id, int32_t epoch)
{
    const struct modern_group *group = modern_coordinator_find(broker, id);
    return group != NULL ? modern_group_check_fetch(group, member_id, epoch) : STATUS_OK;
}

bool modern_coordinator_is_in_use(struct broker *broker, struct slice id)
{
    return modern_live_find(broker, id) != NULL || modern_coordinator_has_members(broker, id);
}

void modern_coordinator_forget(struct broker *broker, struct slice id,
                               struct modern_records *records)
{
    const struct modern_group *group = modern_coordinator_find(broker, id);
    struct modern_live *live = modern_live_find(broker, id);
    if (group != NULL) {
        struct modern_group *copy = modern_group_copy(group);
        modern_group_erase(copy, records);
        modern_group_free(copy);
    }
    if (live != NULL) modern_live_retire(live);
}

enum status modern_coordinator_yield(struct broker *broker, struct slice id)
{
    struct partition *partition;
    struct modern_records records = {0};
    enum status status = group_coordinator_partition(broker, id, &partition);
    if (status != STATUS_OK) return status;
    struct modern_live *live = modern_live_find(broker, id);
    if (live != NULL && !modern_live_reload(live)) return STATUS_NOT_READY;
    const struct modern_group *group = modern_coordinator_find(broker, id);
    if (group == NULL || modern_group_is_gone(group)) return STATUS_OK;
    if (modern_group_member_count(group) > 0) return STATUS_GROUP_PROTOCOL;
    if (live == NULL) live = modern_live_add(broker, id, modern_group_copy(group));
    modern_group_erase(live->group, &records);
    struct modern_store *store = modern_store_new(live, &records);
    modern_records_deinit(&records);
    modern_store_send(store);
    return STATUS_OK;
}

/* ---- a leadership begins and ends ---- */

static void restore_group(void *context, const struct modern_group *recorded)
{
    struct partition *partition = context;
    struct broker *broker = partition->broker;
    struct slice id = modern_group_id(recorded);
    if (modern_group_member_count(recorded) == 0 || modern_live_find(broker, id) != NULL) return;
    modern_live_settle(
        modern_live_add(broker, id, modern_live_copy_recorded(broker, partition, id)));
}

void modern_coordinator_restore(struct partition *partition)
{
    modern_group_table_each(partition->internal->modern, restore_group, partition);
}

void modern_coordinator_demoted(struct broker *broker)
{
    while (broker->modern->live != NULL)
        modern_live_retire(broker->modern->live);
}

static void stores_free(struct modern_live *live)
{
    while (live->stores != NULL) {
        struct modern_store *store = live->stores;
        DL_DELETE(live->stores, store);
        free(store);
    }
}

void modern_coordinator_free(struct broker *broker)
{
    while (broker->modern->live != NULL) {
        struct modern_live *live = broker->modern->live;
        stores_free(live);
        modern_live_retire(live);
    }
    free(broker->modern);
}
