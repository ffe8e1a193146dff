/* membership.c: see membership.h. */
#include "native/membership.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "native/fetch_session.h"
#include "native/native_state.h"
#include "native/operations.h"
#include "native/push.h"

/* ---- waiting for a change ---- */

void native_membership_stop_waiting(struct native_membership *membership)
{
    membership->waiter = NULL;
    timer_stop(membership->timer);
}

static void wake(void *context)
{
    struct native_membership *membership = context;
    membership_fn waiter = membership->waiter;
    if (waiter == NULL) return;
    native_membership_stop_waiting(membership);
    waiter(membership->waiter_context);
}

void native_membership_wait(struct native_membership *membership, int64_t timeout_us,
                            membership_fn waiter, void *context)
{
    membership->waiter = waiter;
    membership->waiter_context = context;
    if (timeout_us >= 0) timer_start(membership->timer, timeout_us);
}

/* ---- the cursors ---- */

void native_membership_align(struct native_membership *membership)
{
    struct native_session *reading = membership->connection->session;
    int32_t generation = group_session_generation(membership->session);
    if (reading == NULL) return;
    /* Without a gap nobody else had what is still assigned. */
    bool same = generation >= 0 && generation == membership->cursors_generation;
    bool next = generation > 0 && generation == membership->cursors_generation + 1;
    native_session_assign(reading, group_session_assignment(membership->session), same || next);
    membership->cursors_generation = generation;
}

static void changed(void *context)
{
    struct native_membership *membership = context;
    if (group_session_is_settled(membership->session)) native_membership_align(membership);
    native_push_look(membership->connection);
    wake(membership);
}

/* ---- what the client holds ---- */

/* Delivered and not committed: the client may be at it. What is pushed is committed as the client
 * shows that it has it, and nobody waits for that. */
static bool holds(void *context)
{
    const struct native_membership *membership = context;
    const struct native_session *reading = membership->connection->session;
    if (reading == NULL || reading->pushed) return false;
    for (const struct session_topic *topic = reading->topics; topic != NULL; topic = topic->next) {
        for (uint32_t i = 0; i < topic->cursor_count; i++)
            if (topic->cursors[i].owned && topic->cursors[i].dirty) return true;
    }
    return false;
}

void native_membership_committed(struct native_membership *membership)
{
    if (!holds(membership)) group_session_yield(membership->session);
}

/* ---- birth and death ---- */

static struct native_membership *membership_new(struct native_connection *connection,
                                                struct slice group)
{
    struct native_membership *membership = memory_new(sizeof(*membership));
    const struct group_session_handlers handlers = {changed, membership, holds};
    membership->connection = connection;
    membership->session = group_session_new(connection->native->broker, group, &handlers);
    membership->told_generation = membership->cursors_generation = -1;
    membership->timer = timer_new(connection->native->loop, wake, membership);
    return membership;
}

void native_membership_free(struct native_membership *membership)
{
    if (membership == NULL) return;
    group_session_free(membership->session);
    timer_free(membership->timer);
    free(membership);
}

bool native_membership_admit(struct native_membership *membership, struct native_request *request)
{
    enum status status = group_session_heartbeat(membership->session);
    if (status == STATUS_OK) return true;
    struct error error;
    error_set(&error, status, "%s",
              status == STATUS_UNKNOWN_MEMBER ? "not a member (any more): join again"
                                              : status_text(status));
    native_fail_status(request, status, &error);
    return false;
}

/* ---- JOIN_GROUP ---- */

static void put_assignment(struct slice assignment, struct buffer *out, uint32_t *count)
{
    struct assignment_cursor cursor;
    struct assigned_topic topic;
    assignment_cursor_init(&cursor, assignment);
    while (assignment_cursor_next(&cursor, &topic)) {
        struct buffer partitions;
        buffer_init(&partitions, 0);
        for (uint32_t i = 0; i < topic.count; i++) {
            struct wire_partition item = {assigned_partition(&topic, i)};
            wire_put(&partitions, &wire_shape_partition, &item);
        }
        struct wire_assignment item = {topic.topic, {topic.count, buffer_slice(&partitions)}};
        wire_put(out, &wire_shape_assignment, &item);
        buffer_deinit(&partitions);
        ++*count;
    }
}

static void answer_assignment(struct native_membership *membership, struct native_request *request)
{
    struct buffer items;
    uint32_t count = 0;
    buffer_init(&items, 0);
    put_assignment(group_session_assignment(membership->session), &items, &count);
    struct wire_group_assignment answer = {
        .member_id = group_session_member_id(membership->session),
        .assignments = {count, buffer_slice(&items)},
    };
    membership->told_generation = group_session_generation(membership->session);
    native_answer(request, WIRE_GROUP_ASSIGNMENT, &answer);
    buffer_deinit(&items);
}

static void fail_join(struct native_request *request, enum status status)
{
    struct error error;
    const char *text = status_text(status);
    if (status == STATUS_GROUP_PROTOCOL) text = "the group has members of another protocol";
    if (status == STATUS_LIMIT || status == STATUS_GROUP_FULL) text = "too many groups or members";
    error_set(&error, status, "%s", text);
    native_fail_status(request, status, &error);
}

static void joined(void *context, enum status status)
{
    struct native_request *request = context;
    struct native_membership *membership = request->connection->membership;
    if (status != STATUS_OK) {
        fail_join(request, status);
        return;
    }
    native_membership_align(membership);
    native_push_look(membership->connection);
    answer_assignment(membership, request);
}

/* The connection goes, and the member with it. */
static bool join_abandon(struct native_request *request)
{
    (void)request;
    return true;
}

/* The topics, or NULL with the request failed. */
static struct slice *check_topics(struct native_request *request, const struct wire_list *list)
{
    struct slice *topics = memory_new(list->count * sizeof(*topics));
    struct wire_cursor cursor;
    struct wire_name item;
    wire_cursor_init(&cursor, list, &wire_shape_name);
    for (uint32_t i = 0; wire_cursor_next(&cursor, &item); i++) {
        const struct topic *topic =
            catalog_find(native_broker(request), (const char *)item.name.data, item.name.bytes);
        topics[i] = item.name;
        if (topic != NULL && !topic_is_internal(topic)) continue;
        free(topics);
        if (topic == NULL) {
            native_fail(request, WIRE_CODE_TOPIC_MISSING, "no topic %.*s", (int)item.name.bytes,
                        (const char *)item.name.data);
        } else {
            native_fail_status(request, STATUS_TOPIC_FORBIDDEN, NULL);
        }
        return NULL;
    }
    return topics;
}

static bool slice_equals(struct slice a, struct slice b)
{
    return a.bytes == b.bytes && (a.bytes == 0 || memcmp(a.data, b.data, a.bytes) == 0);
}

/* May it join this group? Else the request was failed. */
static bool check_group(struct native_request *request, struct slice group)
{
    const struct native_connection *connection = request->connection;
    const struct native_membership *membership = connection->membership;
    if (group.bytes == 0) {
        native_fail(request, WIRE_CODE_BAD_FRAME, "a group needs a name");
        return false;
    }
    bool joined_another =
        membership != NULL && !slice_equals(group_session_group(membership->session), group);
    bool reads_another = connection->session != NULL &&
                         !slice_equals((struct slice){(const uint8_t *)connection->session->group,
                                                      connection->session->group_bytes},
                                       group);
    if (!joined_another && !reads_another) return true;
    native_fail(request, WIRE_CODE_GROUP_CONFLICT, "this connection %s another group",
                joined_another ? "is a member of" : "reads for");
    return false;
}

void native_join_group(struct native_request *request, const union wire_message *message)
{
    const struct wire_join_group *join = &message->join_group;
    struct native_connection *connection = request->connection;
    if (!check_group(request, join->group)) return;
    struct slice *topics = check_topics(request, &join->topics);
    if (topics == NULL) return;
    if (connection->membership == NULL) {
        connection->membership = membership_new(connection, join->group);
    }
    connection->membership->follows = (join->flags & WIRE_JOIN_FOLLOW) != 0;
    request->abandon = join_abandon;
    group_session_join(connection->membership->session, join->member_id, topics, join->topics.count,
                       joined, request);
    free(topics);
}

/* ---- LEAVE_GROUP and GROUP_HEARTBEAT ---- */

/* The membership the frame speaks of; its member id does not count, the connection's does (2.1).
 * NULL: the request was failed. */
static struct native_membership *named(struct native_request *request,
                                       const struct wire_group_member *frame)
{
    struct native_membership *membership = request->connection->membership;
    if (membership != NULL &&
        slice_equals(group_session_group(membership->session), frame->group)) {
        return membership;
    }
    native_fail(request, WIRE_CODE_GROUP_MEMBER_UNKNOWN, "this connection did not join the group");
    return NULL;
}

void native_leave_group(struct native_request *request, const union wire_message *message)
{
    struct native_membership *membership = named(request, &message->group_member);
    if (membership == NULL) return;
    enum status status = group_session_leave(membership->session);
    request->connection->membership = NULL;
    native_push_look(request->connection);
    native_membership_free(membership);
    if (status == STATUS_OK) {
        native_answer_ok(request);
    } else {
        native_fail_status(request, status, NULL);
    }
}

void native_group_heartbeat(struct native_request *request, const union wire_message *message)
{
    struct native_membership *membership = named(request, &message->group_member);
    if (membership == NULL || !native_membership_admit(membership, request)) return;
    int32_t generation = group_session_generation(membership->session);
    if (membership->follows && generation >= 0 && generation != membership->told_generation) {
        answer_assignment(membership, request);
    } else {
        native_answer_ok(request);
    }
}
