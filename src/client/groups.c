/* groups.c: the public functions that tell of consumer groups. */
#include <stdlib.h>
#include <string.h>

#include "client/client.h"

/* What is handed out is kept in pieces, freed together. */
struct piece {
    struct piece *next;
    max_align_t bytes[];
};

static void *keep(struct piece **pieces, size_t count, size_t bytes)
{
    struct piece *piece = calloc(1, sizeof(*piece) + count * bytes + 1);
    if (piece == NULL) return NULL;
    piece->next = *pieces;
    *pieces = piece;
    return piece->bytes;
}

static const char *keep_text(struct piece **pieces, struct slice text)
{
    char *copy = keep(pieces, text.bytes + 1, 1);
    if (copy != NULL && text.bytes > 0) memcpy(copy, text.data, text.bytes);
    return copy;
}

static void free_pieces(struct piece *pieces)
{
    while (pieces != NULL) {
        struct piece *next = pieces->next;
        free(pieces);
        pieces = next;
    }
}

static int no_memory(struct moonmq_error *error)
{
    return client_fail(error, MOONMQ_NO_MEMORY, "no memory for an answer");
}

static int check_group(const char *group, struct moonmq_error *error)
{
    size_t bytes = group == NULL ? 0 : strlen(group);
    if (bytes >= 1 && bytes <= WIRE_NAME_BYTES_MAX) return MOONMQ_OK;
    return client_fail(error, MOONMQ_INVALID_ARGUMENT, "a group's name has 1 to %d bytes",
                       WIRE_NAME_BYTES_MAX);
}

/* ---- list ---- */

struct listed {
    struct moonmq_groups shown; /* first: moonmq_groups_free() takes its address */
    struct piece *pieces;
    bool taken;
};

void moonmq_groups_free(struct moonmq_groups *groups)
{
    if (groups == NULL) return;
    struct listed *listed = (struct listed *)groups;
    free_pieces(listed->pieces);
    free(listed);
}

static int take_list(void *context, const struct wire_frame *frame, struct moonmq_error *error)
{
    struct listed *listed = context;
    if (frame->opcode != WIRE_GROUP_LIST || listed->taken) return MOONMQ_OK;
    union wire_message message;
    int code = client_decode(frame, &message, error);
    if (code != MOONMQ_OK) return code;
    listed->taken = true;
    const struct wire_list *list = &message.group_list.groups;
    struct moonmq_group_entry *entries = keep(&listed->pieces, list->count, sizeof(*entries));
    struct wire_cursor cursor;
    struct wire_group_entry item;
    if (entries == NULL) return no_memory(error);
    wire_cursor_init(&cursor, list, &wire_shape_group_entry);
    while (wire_cursor_next(&cursor, &item)) {
        struct moonmq_group_entry *entry = &entries[listed->shown.count++];
        entry->group = keep_text(&listed->pieces, item.group);
        entry->state = keep_text(&listed->pieces, item.state);
        entry->members = item.members;
        if (entry->group == NULL || entry->state == NULL) return no_memory(error);
    }
    listed->shown.groups = entries;
    return MOONMQ_OK;
}

int moonmq_list_groups(struct moonmq_client *client, struct moonmq_groups **groups,
                       struct moonmq_error *error)
{
    struct listed *listed = calloc(1, sizeof(*listed));
    if (listed == NULL) return no_memory(error);
    struct call call = {.reply_opcode = WIRE_GROUP_LIST, .take = take_list, .context = listed};
    int code = client_call(client, WIRE_LIST_GROUPS, NULL, &call, true, error);
    if (code == MOONMQ_OK) {
        *groups = &listed->shown;
    } else {
        moonmq_groups_free(&listed->shown);
    }
    return code;
}

/* ---- describe ---- */

struct described {
    struct moonmq_group shown; /* first: moonmq_group_free() takes its address */
    struct piece *pieces;
    bool taken;
};

void moonmq_group_free(struct moonmq_group *group)
{
    if (group == NULL) return;
    struct described *described = (struct described *)group;
    free_pieces(described->pieces);
    free(described);
}

static bool keep_assignments(struct piece **pieces, const struct wire_list *list,
                             struct moonmq_group_member *member)
{
    struct moonmq_assignment *assignments = keep(pieces, list->count, sizeof(*assignments));
    struct wire_cursor topics, items;
    struct wire_assignment topic;
    struct wire_partition item;
    if (assignments == NULL) return false;
    member->assignments = assignments;
    wire_cursor_init(&topics, list, &wire_shape_assignment);
    while (wire_cursor_next(&topics, &topic)) {
        int32_t *partitions = keep(pieces, topic.partitions.count, sizeof(*partitions));
        const char *name = keep_text(pieces, topic.topic);
        size_t count = 0;
        if (partitions == NULL || name == NULL) return false;
        wire_cursor_init(&items, &topic.partitions, &wire_shape_partition);
        while (wire_cursor_next(&items, &item))
            partitions[count++] = item.partition;
        assignments[member->assignment_count++] =
            (struct moonmq_assignment){name, partitions, count};
    }
    return true;
}

static bool keep_members(struct described *described, const struct wire_list *list)
{
    struct moonmq_group_member *members = keep(&described->pieces, list->count, sizeof(*members));
    struct wire_cursor cursor;
    struct wire_member item;
    if (members == NULL) return false;
    described->shown.members = members;
    wire_cursor_init(&cursor, list, &wire_shape_member);
    while (wire_cursor_next(&cursor, &item)) {
        struct moonmq_group_member *member = &members[described->shown.member_count++];
        member->member_id = keep_text(&described->pieces, item.member_id);
        if (member->member_id == NULL ||
            !keep_assignments(&described->pieces, &item.assignments, member)) {
            return false;
        }
    }
    return true;
}

static bool keep_offsets(struct described *described, const struct wire_list *list)
{
    struct moonmq_group_offset *offsets = keep(&described->pieces, list->count, sizeof(*offsets));
    struct wire_cursor cursor;
    struct wire_topic_offset item;
    if (offsets == NULL) return false;
    described->shown.offsets = offsets;
    wire_cursor_init(&cursor, list, &wire_shape_topic_offset);
    while (wire_cursor_next(&cursor, &item)) {
        const char *topic = keep_text(&described->pieces, item.topic);
        if (topic == NULL) return false;
        offsets[described->shown.offset_count++] =
            (struct moonmq_group_offset){topic, item.partition, item.offset};
    }
    return true;
}

static int take_description(void *context, const struct wire_frame *frame,
                            struct moonmq_error *error)
{
    struct described *described = context;
    if (frame->opcode != WIRE_GROUP_DESCRIPTION || described->taken) return MOONMQ_OK;
    union wire_message message;
    int code = client_decode(frame, &message, error);
    if (code != MOONMQ_OK) return code;
    described->taken = true;
    described->shown.group = keep_text(&described->pieces, message.group_description.group);
    described->shown.state = keep_text(&described->pieces, message.group_description.state);
    bool kept = described->shown.group != NULL && described->shown.state != NULL &&
                keep_members(described, &message.group_description.members) &&
                keep_offsets(described, &message.group_description.offsets);
    return kept ? MOONMQ_OK : no_memory(error);
}

int moonmq_describe_group(struct moonmq_client *client, const char *group,
                          struct moonmq_group **description, struct moonmq_error *error)
{
    int code = check_group(group, error);
    if (code != MOONMQ_OK) return code;
    struct described *described = calloc(1, sizeof(*described));
    if (described == NULL) return no_memory(error);
    struct wire_text_message message = {.text = wire_text(group)};
    struct call call = {
        .reply_opcode = WIRE_GROUP_DESCRIPTION, .take = take_description, .context = described};
    code = client_call(client, WIRE_DESCRIBE_GROUP, &message, &call, true, error);
    if (code == MOONMQ_OK) {
        *description = &described->shown;
    } else {
        moonmq_group_free(&described->shown);
    }
    return code;
}

/* ---- delete ---- */

int moonmq_delete_group(struct moonmq_client *client, const char *group, struct moonmq_error *error)
{
    int code = check_group(group, error);
    if (code != MOONMQ_OK) return code;
    struct wire_text_message message = {.text = wire_text(group)};
    struct call call = {.reply_opcode = WIRE_OK};
    code = client_call(client, WIRE_DELETE_GROUP, &message, &call, false, error);
    /* An earlier sending of it did it. */
    return code == MOONMQ_GROUP_MISSING && call.repeated ? MOONMQ_OK : code;
}
