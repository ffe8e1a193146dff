/* group.c: see group.h. */
#include <stdlib.h>
#include <string.h>

#include "client/client.h"

/* A third of what the broker's sessions bear, many times over. */
#define BEAT_US 3000000

void client_group_deinit(struct client_group *group)
{
    for (size_t i = 0; i < group->topic_count; i++)
        free(group->topics[i]);
    free(group->topics);
    free(group->name);
    free(group->member_id);
    memset(group, 0, sizeof(*group));
}

static int no_memory(struct moonmq_error *error)
{
    return client_fail(error, MOONMQ_NO_MEMORY, "no memory for a membership");
}

/* ---- assignments ---- */

static int tell_assignment(struct client_group *group, const struct wire_list *list,
                           struct moonmq_error *error)
{
    struct wire_cursor topics, items;
    struct wire_assignment topic;
    struct wire_partition item;
    size_t total = 0, at = 0, count = 0;
    wire_cursor_init(&topics, list, &wire_shape_assignment);
    while (wire_cursor_next(&topics, &topic))
        total += topic.partitions.count;
    struct moonmq_assignment *assignments = calloc(list->count + 1, sizeof(*assignments));
    int32_t *partitions = calloc(total + 1, sizeof(*partitions));
    char *names = calloc(list->count + 1, WIRE_NAME_BYTES_MAX + 1);
    int code =
        assignments == NULL || partitions == NULL || names == NULL ? no_memory(error) : MOONMQ_OK;
    wire_cursor_init(&topics, list, &wire_shape_assignment);
    while (code == MOONMQ_OK && wire_cursor_next(&topics, &topic)) {
        char *name = names + count * (WIRE_NAME_BYTES_MAX + 1);
        memcpy(name, topic.topic.data, topic.topic.bytes);
        assignments[count++] =
            (struct moonmq_assignment){name, partitions + at, topic.partitions.count};
        wire_cursor_init(&items, &topic.partitions, &wire_shape_partition);
        while (wire_cursor_next(&items, &item))
            partitions[at++] = item.partition;
    }
    if (code == MOONMQ_OK && group->assigned != NULL) {
        group->assigned(group->context, assignments, count);
    }
    free(assignments);
    free(partitions);
    free(names);
    return code;
}

static int take_assignment(struct client_group *group, const struct wire_frame *frame,
                           struct moonmq_error *error)
{
    union wire_message message;
    int code = client_decode(frame, &message, error);
    if (code != MOONMQ_OK) return code;
    struct slice id = message.group_assignment.member_id;
    char *copy = strndup((const char *)id.data, id.bytes);
    if (copy == NULL) return no_memory(error);
    free(group->member_id);
    group->member_id = copy;
    return tell_assignment(group, &message.group_assignment.assignments, error);
}

/* ---- heartbeats ---- */

void client_group_beat(struct moonmq_client *client)
{
    struct client_group *group = &client->group;
    bool open = !wire_id_is_zero(&group->beat_id);
    if (group->name == NULL || group->lost.code != MOONMQ_OK || open ||
        client->stream.descriptor < 0 || client_stream_now_us() < group->beat_at_us) {
        return;
    }
    struct wire_group_member beat = {wire_text(group->name), wire_text(group->member_id)};
    group->beat_id = client_next_id(client);
    group->beat_at_us = client_stream_now_us() + BEAT_US;
    wire_encode(&client->stream.out, WIRE_GROUP_HEARTBEAT, &group->beat_id, &beat);
}

int64_t client_group_until_us(const struct moonmq_client *client, int64_t deadline_us)
{
    const struct client_group *group = &client->group;
    bool beats = group->name != NULL && group->lost.code == MOONMQ_OK;
    return beats && group->beat_at_us < deadline_us && wire_id_is_zero(&group->beat_id)
               ? group->beat_at_us
               : deadline_us;
}

static void lose(struct client_group *group, const struct moonmq_error *why)
{
    group->lost = *why;
    if (group->assigned != NULL) group->assigned(group->context, NULL, 0);
}

bool client_group_take(struct moonmq_client *client, const struct wire_frame *frame)
{
    struct client_group *group = &client->group;
    union wire_message message;
    if (!wire_id_equal(&frame->id, &group->beat_id)) return false;
    group->beat_id = wire_id_zero;
    if (frame->opcode == WIRE_GROUP_ASSIGNMENT) {
        (void)take_assignment(group, frame, NULL);
    } else if (frame->opcode == WIRE_ERROR && client_decode(frame, &message, NULL) == MOONMQ_OK &&
               message.error.code == WIRE_CODE_GROUP_MEMBER_UNKNOWN) {
        struct moonmq_error why;
        client_fail_broker(&why, &message.error);
        lose(group, &why);
    }
    /* Other errors: the next heartbeat will tell more, or the connection is about to close. */
    return true;
}

int client_group_check(const struct moonmq_client *client, struct moonmq_error *error)
{
    int code = client->group.lost.code;
    if (code != MOONMQ_OK && error != NULL) *error = client->group.lost;
    return code;
}

/* ---- joining ---- */

static int take_join(void *context, const struct wire_frame *frame, struct moonmq_error *error)
{
    struct client_group *group = context;
    if (frame->opcode != WIRE_GROUP_ASSIGNMENT) return MOONMQ_OK;
    group->beat_at_us = client_stream_now_us() + BEAT_US;
    return take_assignment(group, frame, error);
}

/* Its topics are put into `items`, which the message borrows. */
static struct wire_join_group join_message(const struct client_group *group, struct buffer *items)
{
    buffer_init(items, 0);
    for (size_t i = 0; i < group->topic_count; i++) {
        struct wire_name item = {wire_text(group->topics[i])};
        wire_put(items, &wire_shape_name, &item);
    }
    return (struct wire_join_group){
        .group = wire_text(group->name),
        .member_id = wire_text(group->member_id == NULL ? "" : group->member_id),
        .topics = {(uint32_t)group->topic_count, buffer_slice(items)},
        .has_flags = true,
        .flags = WIRE_JOIN_FOLLOW,
    };
}

int client_group_rejoin(struct moonmq_client *client, int64_t deadline_us,
                        struct moonmq_error *error)
{
    struct client_group *group = &client->group;
    group->beat_id = wire_id_zero;
    if (group->name == NULL || group->lost.code != MOONMQ_OK) return MOONMQ_OK;
    struct buffer items;
    struct moonmq_error why = {.code = MOONMQ_OK};
    struct wire_join_group join = join_message(group, &items);
    struct call call = {.reply_opcode = WIRE_GROUP_ASSIGNMENT, .take = take_join, .context = group};
    int code = client_call_once(client, WIRE_JOIN_GROUP, &join, &call, deadline_us, &why);
    buffer_deinit(&items);
    if (call.done && code > 0 && code != MOONMQ_NOT_LEADER && code != MOONMQ_INTERNAL) {
        lose(group, &why);
        return MOONMQ_OK;
    }
    if (code != MOONMQ_OK && error != NULL) *error = why;
    return code;
}

static int check_join(const struct moonmq_join *join, struct moonmq_error *error)
{
    size_t group_bytes = join->group == NULL ? 0 : strlen(join->group);
    size_t member_bytes = join->member_id == NULL ? 0 : strlen(join->member_id);
    if (group_bytes < 1 || group_bytes > WIRE_NAME_BYTES_MAX ||
        member_bytes > WIRE_NAME_BYTES_MAX || join->topic_count < 1 ||
        join->topic_count > WIRE_JOIN_TOPICS_MAX) {
        return client_fail(error, MOONMQ_INVALID_ARGUMENT,
                           "a join needs a group and 1 to %d topics; names have at most %d bytes",
                           WIRE_JOIN_TOPICS_MAX, WIRE_NAME_BYTES_MAX);
    }
    int code = MOONMQ_OK;
    for (size_t i = 0; i < join->topic_count && code == MOONMQ_OK; i++)
        code = client_check_topic(join->topics[i], error);
    return code;
}

static bool keep_join(struct client_group *group, const struct moonmq_join *join)
{
    group->name = strdup(join->group);
    group->topics = calloc(join->topic_count, sizeof(*group->topics));
    bool kept = group->name != NULL && group->topics != NULL;
    for (size_t i = 0; kept && i < join->topic_count; i++, group->topic_count++)
        kept = (group->topics[i] = strdup(join->topics[i])) != NULL;
    if (join->member_id != NULL && join->member_id[0] != '\0') {
        group->member_id = strdup(join->member_id);
        kept = kept && group->member_id != NULL;
    }
    group->assigned = join->assigned;
    group->context = join->context;
    return kept;
}

int moonmq_join_group(struct moonmq_client *client, const struct moonmq_join *join,
                      struct moonmq_error *error)
{
    int code = check_join(join, error);
    if (code != MOONMQ_OK) return code;
    struct client_group group = {0};
    if (!keep_join(&group, join)) {
        client_group_deinit(&group);
        return no_memory(error);
    }
    if (group.member_id == NULL && client->group.member_id != NULL &&
        strcmp(group.name, client->group.name) == 0) {
        group.member_id = strdup(client->group.member_id);
    }
    /* Until it is answered there is no membership that a new connection should take up. */
    client_group_deinit(&client->group);
    struct buffer items;
    struct wire_join_group message = join_message(&group, &items);
    struct call call = {
        .reply_opcode = WIRE_GROUP_ASSIGNMENT, .take = take_join, .context = &group};
    code = client_call(client, WIRE_JOIN_GROUP, &message, &call, true, error);
    buffer_deinit(&items);
    if (code == MOONMQ_OK) {
        client->group = group;
    } else {
        client_group_deinit(&group);
    }
    return code;
}

int moonmq_leave_group(struct moonmq_client *client, struct moonmq_error *error)
{
    struct client_group *group = &client->group;
    if (group->name == NULL) {
        return client_fail(error, MOONMQ_MEMBER_UNKNOWN, "this client is in no group");
    }
    struct wire_group_member leave = {wire_text(group->name),
                                      wire_text(group->member_id == NULL ? "" : group->member_id)};
    struct call call = {.reply_opcode = WIRE_OK};
    int code = client->stream.descriptor < 0
                   ? MOONMQ_OK /* it left with its connection */
                   : client_call_once(client, WIRE_LEAVE_GROUP, &leave, &call,
                                      client_stream_now_us() + client->request_timeout_us, error);
    client_group_deinit(group);
    return code;
}

int moonmq_group_heartbeat(struct moonmq_client *client, struct moonmq_error *error)
{
    struct client_group *group = &client->group;
    int64_t deadline_us = client_stream_now_us() + client->request_timeout_us;
    if (group->name == NULL) {
        return client_fail(error, MOONMQ_MEMBER_UNKNOWN, "this client is in no group");
    }
    /* A new connection begins with joining again, which is as good as a heartbeat. */
    int code = client_recover(client, deadline_us, error);
    group->beat_at_us = 0;
    client_group_beat(client);
    while (code == MOONMQ_OK && !wire_id_is_zero(&group->beat_id)) {
        bool progress;
        code = client_pump(client, deadline_us, &progress, error);
        if (code != MOONMQ_OK && client->reconnect_us_max > 0) {
            code = client_recover(client, deadline_us, error);
        }
        if (code == MOONMQ_OK && client_stream_now_us() >= deadline_us) {
            code = client_fail(error, MOONMQ_TIMEOUT, "no answer to a heartbeat in time");
        }
    }
    return code == MOONMQ_OK ? client_group_check(client, error) : code;
}

const char *moonmq_member_id(const struct moonmq_client *client)
{
    return client->group.member_id;
}
