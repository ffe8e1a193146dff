/* modern_coordinator.c: see modern_coordinator.h. */
#include "broker/modern_coordinator.h"

#include <stdlib.h>
#include <utlist.h>

#include "base/log.h"
#include "base/slice.h"
#include "broker/group_coordinator_state.h"
#include "broker/modern_group_classic.h"
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

/* The classic group that has the id and members, as one of the new protocol; NULL: there is none.
 * It takes that one's place when the first member of the new protocol is in. */
static enum status move_classic(const struct modern_live *live,
                                const struct modern_group_step *step, struct modern_group **out,
                                struct error *error)
{
    struct broker *broker = live->broker;
    *out = NULL;
    if (modern_group_member_count(live->group) > 0 ||
        !group_coordinator_has_members(broker, live->id))
        return STATUS_OK;
    if (!modern_upgrades(step->options->migration))
        return error_set(error, STATUS_UNKNOWN_GROUP,
                         "the group has classic members, and group.consumer.migration.policy "
                         "forbids to move it");
    const struct live_group *classic = group_coordinator_find(broker, live->id);
    return modern_group_from_classic(classic->group, step, out, error);
}

static void take_over(struct modern_live *live, struct modern_group *moved)
{
    log_info("group_to_consumer group=\"%.*s\"", (int)live->id.bytes, (const char *)live->id.data);
    group_coordinator_hand_over(live->broker, live->id);
    modern_group_free(live->group);
    live->group = moved;
    modern_live_measure(live);
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
    struct modern_group *moved = NULL;
    enum status status = find_group(broker, id, joins, grows, &live);
    if (status == STATUS_OK && broker->modern->waiting >= MODERN_WAITING_MAX)
        status = STATUS_NOT_READY;
    if (status == STATUS_OK && joins) status = move_classic(live, &step, &moved, &request->error);
    if (status == STATUS_OK) {
        modern_group_heartbeat(moved != NULL ? moved : live->group, &step, heartbeat, &answer);
        status = answer.status;
        request->error = answer.error;
    }
    if (status != STATUS_OK) {
        modern_group_free(moved);
        if (live != NULL) modern_live_settle(live);
        modern_request_finish(request, status);
    } else {
        take_answer(request, &answer);
        if (moved != NULL) {
            take_over(live, moved);
        } else if (records.count > 0) {
            take_id(broker, id, &records);
        }
        modern_live_answer(live, &records, request);
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
                                            const struct consumer_identity *who)
{
    struct modern_live *live = modern_live_find(broker, id);
    if (live != NULL && !modern_live_reload(live)) return STATUS_NOT_READY;
    if (live == NULL || modern_group_member_count(live->group) == 0) return STATUS_NOT_FOUND;
    return modern_group_check_committer(live->group, who);
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
