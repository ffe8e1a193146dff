/* group_removal.c: groups and committed offsets that go because somebody asks for it. */
#include <string.h>

#include "broker/group_tombstones.h"
#include "broker/modern_coordinator_state.h"

/* ---- a group is to go ---- */

static bool has_members(struct broker *broker, struct slice id)
{
    return group_coordinator_has_members(broker, id) || modern_coordinator_has_members(broker, id);
}

static enum status check_removable(struct broker *broker, struct slice id,
                                   struct partition **partition)
{
    struct group_record record;
    if (id.bytes == 0) return STATUS_INVALID_GROUP;
    enum status status = group_coordinator_partition(broker, id, partition);
    if (status != STATUS_OK) return status;
    const struct internal_state *state = (*partition)->internal;
    if (has_members(broker, id)) return STATUS_GROUP_NOT_EMPTY;
    bool there = group_coordinator_find(broker, id) != NULL ||
                 modern_coordinator_find(broker, id) != NULL ||
                 consumer_group_table_find(state->groups, id, &record) ||
                 offsets_table_group(state->offsets, id).count > 0;
    return there ? STATUS_OK : STATUS_UNKNOWN_GROUP;
}

struct pending_removal {
    struct group_tombstones *tombstones;
    struct slice id;
};

/* A transaction that is still open would bring it back. */
static void remove_pending(void *context, const struct offset_key *key)
{
    struct pending_removal *pending = context;
    if (key->group.bytes != pending->id.bytes ||
        memcmp(key->group.data, pending->id.data, key->group.bytes) != 0) {
        return;
    }
    group_tombstones_add_offset(pending->tombstones, key);
}

void broker_delete_group(struct broker *broker, struct slice id, int64_t timeout_us,
                         group_removed_fn done, void *context)
{
    struct partition *partition;
    struct error error = {0};
    enum status status = check_removable(broker, id, &partition);
    if (status != STATUS_OK) {
        error_set(&error, status, "%s", status_text(status));
        done(context, status, &error);
        return;
    }
    struct group_tombstones *tombstones = group_tombstones_new(partition, done, context);
    struct offset_group group = offsets_table_group(partition->internal->offsets, id);
    for (uint32_t i = 0; i < group.count; i++) {
        const struct offset_key key = offset_entry_key(id, &group.entries[i]);
        group_tombstones_add_offset(tombstones, &key);
    }
    struct pending_removal pending = {tombstones, id};
    offsets_table_each_pending(partition->internal->offsets, remove_pending, &pending);
    group_tombstones_add_group(tombstones, id);
    group_coordinator_forget(broker, id);
    group_tombstones_add_modern_group(tombstones, id);
    group_tombstones_write(tombstones, timeout_us);
}

/* ---- offsets are to go ---- */

static void offsets_removed(void *context, enum status status, const struct error *error)
{
    struct offsets_request *request = context;
    request->status = status;
    request->error = *error;
    for (uint32_t i = 0; status != STATUS_OK && i < request->offset_count; i++) {
        if (request->offsets[i].status == STATUS_OK) request->offsets[i].status = status;
    }
    request->done(request->context, request);
}

static enum status check_offsets_removable(struct broker *broker,
                                           const struct offsets_request *request,
                                           struct partition **partition)
{
    enum status status = check_removable(broker, request->group, partition);
    if (status != STATUS_GROUP_NOT_EMPTY) return status;
    if (modern_coordinator_has_members(broker, request->group)) return STATUS_OK;
    const struct live_group *live = group_coordinator_find(broker, request->group);
    struct slice type = consumer_group_protocol_type(live->group);
    bool readable = type.bytes == strlen("consumer") && memcmp(type.data, "consumer", 8) == 0;
    return readable ? STATUS_OK : STATUS_GROUP_NOT_EMPTY;
}

static bool is_subscribed(struct broker *broker, struct slice group, struct slice topic)
{
    const struct live_group *live = group_coordinator_find(broker, group);
    const struct modern_group *modern = modern_coordinator_find(broker, group);
    return (live != NULL && consumer_group_reads_topic(live->group, topic)) ||
           (modern != NULL && modern_group_subscribes(modern, topic));
}

void broker_delete_offsets(struct broker *broker, struct offsets_request *request)
{
    struct partition *partition;
    struct error error = {0};
    for (uint32_t i = 0; i < request->offset_count; i++)
        request->offsets[i].status = STATUS_OK;
    enum status status = check_offsets_removable(broker, request, &partition);
    if (status != STATUS_OK) {
        error_set(&error, status, "%s", status_text(status));
        offsets_removed(request, status, &error);
        return;
    }
    struct group_tombstones *tombstones = group_tombstones_new(partition, offsets_removed, request);
    for (uint32_t i = 0; i < request->offset_count; i++) {
        struct committed_offset *offset = &request->offsets[i];
        if (is_subscribed(broker, request->group, offset->topic)) {
            offset->status = STATUS_GROUP_SUBSCRIBED;
        } else if (offsets_table_find(partition->internal->offsets, request->group, offset->topic,
                                      offset->partition) != NULL) {
            const struct offset_key key = {request->group, offset->topic, offset->partition};
            group_tombstones_add_offset(tombstones, &key);
        }
    }
    group_tombstones_write(tombstones, request->timeout_us);
}
