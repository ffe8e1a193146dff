/* groups.c: LIST_GROUPS, DESCRIBE_GROUP, DELETE_GROUP: every group, whichever protocol its members
 * speak. No more is listed than a client must understand (1.3, F35); names that are too long for
 * this protocol are left out. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "broker/consumer_assignment.h"
#include "broker/group_coordinator.h"
#include "broker/modern_coordinator.h"
#include "native/native_state.h"
#include "native/operations.h"

static struct slice state_name(enum consumer_group_state state)
{
    static const char *const names[] = {
        [CONSUMER_GROUP_EMPTY] = "empty",
        [CONSUMER_GROUP_PREPARING] = "preparing_rebalance",
        [CONSUMER_GROUP_COMPLETING] = "completing_rebalance",
        [CONSUMER_GROUP_STABLE] = "stable",
    };
    return wire_text(names[state]);
}

static int compare_slices(struct slice a, struct slice b)
{
    size_t bytes = a.bytes < b.bytes ? a.bytes : b.bytes;
    int order = bytes == 0 ? 0 : memcmp(a.data, b.data, bytes);
    return order != 0 ? order : a.bytes < b.bytes ? -1 : a.bytes > b.bytes;
}

/* Kafka's names of the states of groups of the new protocol (KIP-848), as this one's. */
static struct slice modern_state_name(const struct modern_group *group)
{
    const char *name = modern_group_state_name(group);
    bool moving = strcmp(name, "Assigning") == 0 || strcmp(name, "Reconciling") == 0;
    return wire_text(strcmp(name, "Empty") == 0 ? "empty"
                     : moving                   ? "preparing_rebalance"
                                                : "stable");
}

/* ---- LIST_GROUPS ---- */

struct entries {
    struct wire_group_entry *items;
    uint32_t count, capacity;
};

static void add_entry(void *context, const struct group_description *group)
{
    struct entries *entries = context;
    if (group->id.bytes > WIRE_NAME_BYTES_MAX) return;
    if (entries->count == entries->capacity) {
        entries->capacity = entries->capacity * 2 + 16;
        entries->items = memory_resize(entries->items, entries->capacity, sizeof(*entries->items));
    }
    struct wire_group_entry entry = {.group = group->id, .state = state_name(group->state)};
    if (group->modern != NULL) {
        entry.state = modern_state_name(group->modern);
        entry.members = modern_group_member_count(group->modern);
    } else if (group->group != NULL) {
        entry.members = consumer_group_member_count(group->group);
    }
    entries->items[entries->count++] = entry;
}

static int by_group(const void *a, const void *b)
{
    return compare_slices(((const struct wire_group_entry *)a)->group,
                          ((const struct wire_group_entry *)b)->group);
}

static void answer_list(struct native_request *request, struct entries *entries)
{
    struct buffer items;
    buffer_init(&items, 0);
    if (entries->count > 0)
        qsort(entries->items, entries->count, sizeof(*entries->items), by_group);
    uint32_t count = entries->count < WIRE_GROUPS_MAX ? entries->count : WIRE_GROUPS_MAX;
    for (uint32_t i = 0; i < count; i++)
        wire_put(&items, &wire_shape_group_entry, &entries->items[i]);
    struct wire_group_list list = {.groups = {count, buffer_slice(&items)}};
    native_answer(request, WIRE_GROUP_LIST, &list);
    buffer_deinit(&items);
}

void native_list_groups(struct native_request *request, const union wire_message *message)
{
    struct entries entries = {0};
    (void)message;
    enum status status = broker_list_groups(native_broker(request), add_entry, &entries);
    if (status == STATUS_OK) {
        answer_list(request, &entries);
    } else {
        native_fail_status(request, status, NULL);
    }
    free(entries.items);
}

/* ---- DESCRIBE_GROUP ---- */

struct describe_work {
    struct native_request *request;
    struct offsets_request offsets;
    struct slice group; /* own memory */
    struct buffer *offset_items;
    uint32_t offset_count;
};

static void describe_free(struct native_request *request)
{
    struct describe_work *work = request->work;
    free((void *)work->group.data);
    free(work);
}

static int by_partition(const void *left, const void *right)
{
    const struct committed_offset *a = left, *b = right;
    int order = compare_slices(a->topic, b->topic);
    return order != 0 ? order : a->partition < b->partition ? -1 : a->partition > b->partition;
}

static uint32_t put_offsets(const struct offsets_request *offsets, struct buffer *out)
{
    uint32_t count = 0;
    struct committed_offset *sorted =
        memory_new(((size_t)offsets->offset_count + 1) * sizeof(*sorted));
    if (offsets->offset_count > 0) {
        memcpy(sorted, offsets->offsets, offsets->offset_count * sizeof(*sorted));
        qsort(sorted, offsets->offset_count, sizeof(*sorted), by_partition);
    }
    for (uint32_t i = 0; i < offsets->offset_count && count < WIRE_TXN_OFFSETS_MAX; i++) {
        if (sorted[i].status != STATUS_OK || sorted[i].offset < 0) continue;
        struct wire_topic_offset item = {sorted[i].topic, sorted[i].partition, sorted[i].offset};
        wire_put(out, &wire_shape_topic_offset, &item);
        count++;
    }
    free(sorted);
    return count;
}

static struct wire_list put_assignments(struct slice assignment, struct buffer *out)
{
    struct assignment_cursor cursor;
    struct assigned_topic topic;
    uint32_t count = 0;
    buffer_init(out, 0);
    assignment_cursor_init(&cursor, assignment);
    while (count < WIRE_JOIN_TOPICS_MAX && assignment_cursor_next(&cursor, &topic)) {
        if (topic.topic.bytes > WIRE_TOPIC_BYTES_MAX || topic.count > WIRE_PARTITIONS_MAX) continue;
        struct buffer partitions;
        buffer_init(&partitions, 0);
        for (uint32_t i = 0; i < topic.count; i++) {
            struct wire_partition item = {assigned_partition(&topic, i)};
            wire_put(&partitions, &wire_shape_partition, &item);
        }
        struct wire_assignment item = {topic.topic, {topic.count, buffer_slice(&partitions)}};
        wire_put(out, &wire_shape_assignment, &item);
        buffer_deinit(&partitions);
        count++;
    }
    return (struct wire_list){count, buffer_slice(out)};
}

static int by_member_id(const void *a, const void *b)
{
    return compare_slices(((const struct consumer_member_view *)a)->id,
                          ((const struct consumer_member_view *)b)->id);
}

static uint32_t put_members(const struct consumer_group *group, struct buffer *out)
{
    uint32_t count = 0, members = consumer_group_member_count(group);
    struct consumer_member_view *views = memory_new(((size_t)members + 1) * sizeof(*views));
    const struct consumer_member *member = NULL;
    while ((member = consumer_group_next(group, member)) != NULL) {
        views[count] = consumer_member_view(group, member);
        if (views[count].id.bytes <= WIRE_NAME_BYTES_MAX) count++;
    }
    qsort(views, count, sizeof(*views), by_member_id);
    if (count > WIRE_MEMBERS_MAX) count = WIRE_MEMBERS_MAX;
    for (uint32_t i = 0; i < count; i++) {
        struct buffer assignments;
        struct wire_member item = {.member_id = views[i].id};
        item.assignments = put_assignments(views[i].assignment, &assignments);
        wire_put(out, &wire_shape_member, &item);
        buffer_deinit(&assignments);
    }
    free(views);
    return count;
}

static void answer_description(void *context, const struct group_description *group)
{
    struct describe_work *work = context;
    struct buffer members;
    uint32_t count = 0;
    buffer_init(&members, 0);
    if (group->group != NULL) count = put_members(group->group, &members);
    struct wire_group_description description = {
        .group = group->id,
        .state = state_name(group->state),
        .members = {count, buffer_slice(&members)},
        .offsets = {work->offset_count, buffer_slice(work->offset_items)},
    };
    native_reply(work->request, WIRE_GROUP_DESCRIPTION, &description);
    buffer_deinit(&members);
}

/* The partitions of one topic, from items[*at] on; those of a topic that is gone are left out. */
static bool put_run(struct broker *broker, const struct partition_set *set, uint32_t *at,
                    struct buffer *out)
{
    const struct uuid *uid = &set->items[*at].topic;
    const struct topic *topic = catalog_find_uid(broker, uid);
    struct buffer partitions;
    uint32_t count = 0;
    buffer_init(&partitions, 0);
    for (; *at < set->count && uuid_equal(&set->items[*at].topic, uid); ++*at, count++) {
        struct wire_partition item = {set->items[*at].partition};
        wire_put(&partitions, &wire_shape_partition, &item);
    }
    if (topic != NULL) {
        struct wire_assignment item = {wire_text(topic_name(topic)),
                                       {count, buffer_slice(&partitions)}};
        wire_put(out, &wire_shape_assignment, &item);
    }
    buffer_deinit(&partitions);
    return topic != NULL;
}

static void answer_modern(void *context, const struct modern_group *group)
{
    struct describe_work *work = context;
    struct buffer members;
    uint32_t put = 0, count = modern_group_member_count(group);
    buffer_init(&members, 0);
    for (uint32_t i = 0; i < count && put < WIRE_MEMBERS_MAX; i++) {
        struct modern_member_view member = modern_group_member(group, i);
        struct wire_member item = {.member_id = member.id};
        struct buffer assignments;
        if (member.id.bytes > WIRE_NAME_BYTES_MAX) continue;
        buffer_init(&assignments, 0);
        for (uint32_t at = 0;
             at < member.assigned->count && item.assignments.count < WIRE_JOIN_TOPICS_MAX;)
            item.assignments.count +=
                put_run(native_broker(work->request), member.assigned, &at, &assignments);
        item.assignments.items = buffer_slice(&assignments);
        wire_put(&members, &wire_shape_member, &item);
        buffer_deinit(&assignments);
        put++;
    }
    struct wire_group_description description = {
        .group = modern_group_id(group),
        .state = modern_state_name(group),
        .members = {put, buffer_slice(&members)},
        .offsets = {work->offset_count, buffer_slice(work->offset_items)},
    };
    native_reply(work->request, WIRE_GROUP_DESCRIPTION, &description);
    buffer_deinit(&members);
}

static void offsets_known(void *context, struct offsets_request *offsets)
{
    struct describe_work *work = context;
    struct native_request *request = work->request;
    if (!native_request_wanted(request)) {
        native_finish(request);
        return;
    }
    enum status status = offsets->status;
    struct error error = offsets->error;
    struct buffer items;
    buffer_init(&items, 0);
    if (status == STATUS_OK) {
        work->offset_count = put_offsets(offsets, &items);
        work->offset_items = &items;
        status =
            broker_describe_group(native_broker(request), work->group, answer_description, work);
        if (status == STATUS_UNKNOWN_GROUP) {
            status =
                broker_modern_describe(native_broker(request), work->group, answer_modern, work);
        }
        error_set(&error, status, "%s", status_text(status));
    }
    buffer_deinit(&items);
    if (status == STATUS_OK) {
        native_finish(request);
    } else {
        native_fail_status(request, status, &error);
    }
}

void native_describe_group(struct native_request *request, const union wire_message *message)
{
    struct slice group = message->text.text;
    struct describe_work *work = memory_new(sizeof(*work));
    uint8_t *copy = memory_new(group.bytes + 1);
    memcpy(copy, group.data, group.bytes);
    request->work = work;
    request->free_work = describe_free;
    work->request = request;
    work->group = (struct slice){copy, group.bytes};
    work->offsets = (struct offsets_request){
        .group = work->group,
        .generation = -1,
        .all = true,
        .timeout_us = broker_settings_of(native_broker(request))->ack_timeout_us,
        .done = offsets_known,
        .context = work,
    };
    broker_fetch_offsets(native_broker(request), &work->offsets);
}

/* ---- DELETE_GROUP ---- */

static void deleted(void *context, enum status status, const struct error *error)
{
    struct native_request *request = context;
    if (status == STATUS_OK) {
        native_answer_ok(request);
    } else {
        native_fail_status(request, status, error);
    }
}

void native_delete_group(struct native_request *request, const union wire_message *message)
{
    struct broker *broker = native_broker(request);
    broker_delete_group(broker, message->text.text, broker_settings_of(broker)->ack_timeout_us,
                        deleted, request);
}
