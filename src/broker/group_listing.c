/* group_listing.c: which groups there are, and what one is like: those with members from their
 * state machines, the others from their records and offsets. */
#include <string.h>

#include "base/assert.h"
#include "broker/group_coordinator_state.h"
#include "broker/modern_coordinator_state.h"

static void give_live(const struct live_group *live, group_description_fn each, void *context)
{
    const struct group_description description = {
        .id = consumer_group_id(live->group),
        .state = consumer_group_state(live->group),
        .protocol_type = consumer_group_protocol_type(live->group),
        .group = live->group,
    };
    each(context, &description);
}

static void give_empty(struct slice id, struct slice protocol_type, group_description_fn each,
                       void *context)
{
    const struct group_description description = {
        .id = id, .state = CONSUMER_GROUP_EMPTY, .protocol_type = protocol_type};
    each(context, &description);
}

static const struct slice no_type = {(const uint8_t *)"", 0};

static void give_modern(const struct modern_group *group, group_description_fn each, void *context)
{
    const struct group_description description = {
        .id = modern_group_id(group),
        .state = CONSUMER_GROUP_EMPTY,
        .protocol_type = {(const uint8_t *)"consumer", strlen("consumer")},
        .modern = group,
    };
    each(context, &description);
}

enum status broker_describe_group(struct broker *broker, struct slice id, group_description_fn each,
                                  void *context)
{
    struct partition *partition;
    struct group_record record;
    enum status status = group_coordinator_partition(broker, id, &partition);
    if (status != STATUS_OK) return status;
    const struct live_group *live = group_coordinator_find(broker, id);
    if (live != NULL) {
        give_live(live, each, context);
    } else if (modern_coordinator_find(broker, id) != NULL) {
        return STATUS_UNKNOWN_GROUP;
    } else if (consumer_group_table_find(partition->internal->groups, id, &record)) {
        give_empty(id, record.protocol_type, each, context);
    } else if (offsets_table_group(partition->internal->offsets, id).count > 0) {
        give_empty(id, no_type, each, context);
    } else {
        return STATUS_UNKNOWN_GROUP;
    }
    return STATUS_OK;
}

struct listing {
    struct broker *broker;
    const struct internal_state *state;
    group_description_fn each;
    void *context;
};

static void list_recorded(void *context, struct slice id, struct group_record *record)
{
    struct listing *listing = context;
    if (group_coordinator_find(listing->broker, id) != NULL ||
        modern_group_table_find(listing->state->modern, id) != NULL) {
        return;
    }
    /* On its way to the new protocol: what that group is, is not applied yet. */
    const struct modern_group *moved = modern_coordinator_find(listing->broker, id);
    if (moved != NULL && modern_group_member_count(moved) > 0) {
        give_modern(moved, listing->each, listing->context);
        return;
    }
    give_empty(id, record->protocol_type, listing->each, listing->context);
}

static void list_offsets_only(void *context, const struct offset_group *group)
{
    struct listing *listing = context;
    struct slice id = {(const uint8_t *)group->id, group->id_bytes};
    struct group_record record;
    if (group_coordinator_find(listing->broker, id) != NULL ||
        modern_group_table_find(listing->state->modern, id) != NULL ||
        consumer_group_table_find(listing->state->groups, id, &record)) {
        return;
    }
    give_empty(id, no_type, listing->each, listing->context);
}

/* One whose id a classic group has taken is on its way out. */
static void list_modern(void *context, const struct modern_group *group)
{
    struct listing *listing = context;
    if (group_coordinator_find(listing->broker, modern_group_id(group)) != NULL) return;
    give_modern(group, listing->each, listing->context);
}

enum status broker_list_groups(struct broker *broker, group_description_fn each, void *context)
{
    const struct topic *topic =
        catalog_find(broker, CONSUMER_OFFSETS_TOPIC, strlen(CONSUMER_OFFSETS_TOPIC));
    enum status status = broker_check_serving(broker);
    if (status == STATUS_OK && topic == NULL) status = STATUS_NOT_READY;
    for (uint32_t i = 0; status == STATUS_OK && i < topic->partition_count; i++) {
        const struct internal_state *state = topic->partitions[i]->internal;
        /* A copy that failed never knows its groups; the others are told. */
        bool known = state->failed || state->groups_epoch == broker->leading_epoch;
        if (!known) status = STATUS_NOT_READY;
    }
    if (status != STATUS_OK) return status;
    for (const struct live_group *live = broker->groups->live; live != NULL; live = live->hh.next)
        give_live(live, each, context);
    for (uint32_t i = 0; i < topic->partition_count; i++) {
        struct listing listing = {broker, topic->partitions[i]->internal, each, context};
        if (listing.state->failed) continue;
        consumer_group_table_each(listing.state->groups, list_recorded, &listing);
        offsets_table_each(listing.state->offsets, list_offsets_only, &listing);
        modern_group_table_each(listing.state->modern, list_modern, &listing);
    }
    return STATUS_OK;
}
