/* fetch_session.c: see fetch_session.h. */
#include "native/fetch_session.h"

#include <stdlib.h>
#include <string.h>

#include "broker/consumer_assignment.h"
#include "native/native_state.h"

void native_session_free(struct native_session *session)
{
    if (session == NULL) return;
    while (session->topics != NULL) {
        struct session_topic *topic = session->topics;
        session->topics = topic->next;
        free(topic->cursors);
        free(topic);
    }
    free(session);
}

static struct session_topic *find_name(struct native_session *session, const char *name)
{
    for (struct session_topic *topic = session->topics; topic != NULL; topic = topic->next) {
        if (strcmp(topic->name, name) == 0) return topic;
    }
    return NULL;
}

struct session_topic *native_session_find(struct native_session *session, const struct topic *topic)
{
    struct session_topic *found = find_name(session, topic_name(topic));
    bool same = found != NULL && uuid_equal(&found->uid, topic_uid(topic));
    return same ? found : NULL;
}

/* Of the topics that were fetched. */
static void own_topic(struct native_session *session, const struct assigned_topic *assigned)
{
    struct session_topic *topic = session->topics;
    while (topic != NULL && (strlen(topic->name) != assigned->topic.bytes ||
                             memcmp(topic->name, assigned->topic.data, assigned->topic.bytes) != 0))
        topic = topic->next;
    if (topic == NULL) return;
    for (uint32_t i = 0; i < assigned->count; i++) {
        uint32_t partition = (uint32_t)assigned_partition(assigned, i);
        if (partition < topic->cursor_count) topic->cursors[partition].owned = true;
    }
}

void native_session_assign(struct native_session *session, struct slice assignment, bool keep)
{
    struct assignment_cursor cursor;
    struct assigned_topic assigned;
    struct session_topic *topic;
    for (topic = session->topics; topic != NULL; topic = topic->next)
        for (uint32_t i = 0; i < topic->cursor_count; i++)
            topic->cursors[i].owned = false;
    assignment_cursor_init(&cursor, assignment);
    while (assignment_cursor_next(&cursor, &assigned))
        own_topic(session, &assigned);
    for (topic = session->topics; topic != NULL; topic = topic->next)
        for (uint32_t i = 0; i < topic->cursor_count; i++)
            if (!keep || !topic->cursors[i].owned)
                topic->cursors[i] = (struct session_cursor){.owned = topic->cursors[i].owned};
}

static bool grow(struct session_topic *topic, uint32_t count)
{
    if (count <= topic->cursor_count) return true;
    struct session_cursor *cursors = realloc(topic->cursors, count * sizeof(*cursors));
    if (cursors == NULL) return false;
    memset(cursors + topic->cursor_count, 0, (count - topic->cursor_count) * sizeof(*cursors));
    topic->cursors = cursors;
    topic->cursor_count = count;
    return true;
}

static struct session_topic *add_topic(struct native_session *session, const char *name)
{
    if (session->topic_count >= SESSION_TOPICS_MAX) return NULL;
    struct session_topic *topic = calloc(1, sizeof(*topic));
    if (topic == NULL) return NULL;
    strcpy(topic->name, name);
    topic->next = session->topics;
    session->topics = topic;
    session->topic_count++;
    return topic;
}

struct session_topic *native_session_topic(struct native_session *session,
                                           const struct topic *topic)
{
    struct session_topic *found = find_name(session, topic_name(topic));
    if (found == NULL) found = add_topic(session, topic_name(topic));
    if (found == NULL) return NULL;
    if (!uuid_equal(&found->uid, topic_uid(topic))) {
        /* Deleted and made anew: what was read of the old one says nothing about this one. */
        free(found->cursors);
        found->cursors = NULL;
        found->cursor_count = 0;
        found->rotation = 0;
        found->uid = *topic_uid(topic);
    }
    return grow(found, topic_partition_count(topic)) ? found : NULL;
}

/* ---- binding ---- */

static bool slice_is(struct slice slice, const char *text, size_t bytes)
{
    return slice.bytes == bytes && (bytes == 0 || memcmp(slice.data, text, bytes) == 0);
}

static struct native_session *session_new(const struct native_reader *reader)
{
    struct native_session *session = calloc(1, sizeof(*session));
    if (session == NULL) return NULL;
    memcpy(session->group, reader->group.data, reader->group.bytes);
    session->group_bytes = reader->group.bytes;
    session->read_committed = reader->read_committed;
    session->pushed = reader->pushed;
    return session;
}

/* Is the connection's session this reader's, or may it become that? Else the request was failed. */
static bool check_reader(struct native_request *request, const struct native_reader *reader)
{
    const struct native_session *session = request->connection->session;
    const struct native_membership *member = request->connection->membership;
    if (reader->group.bytes == 0) {
        native_fail(request, WIRE_CODE_BAD_FRAME, "%s names a group",
                    wire_opcode_name(request->opcode));
        return false;
    }
    if (session != NULL && session->pushed != reader->pushed) {
        native_fail(request, WIRE_CODE_BAD_PROTOCOL,
                    session->pushed ? "this connection is subscribed: FETCH needs another one"
                                    : "this connection fetches: SUBSCRIBE needs another one");
        return false;
    }
    if (session != NULL && (session->read_committed != reader->read_committed ||
                            !slice_is(reader->group, session->group, session->group_bytes))) {
        native_fail(request, WIRE_CODE_BAD_PROTOCOL,
                    "this connection reads for group %s; another group or isolation needs "
                    "another connection",
                    session->group);
        return false;
    }
    if (member != NULL) {
        struct slice joined = group_session_group(member->session);
        if (!slice_is(reader->group, (const char *)joined.data, joined.bytes)) {
            native_fail(request, WIRE_CODE_BAD_PROTOCOL,
                        "this connection is a member of another group");
            return false;
        }
    }
    return true;
}

struct session_topic *native_session_bind(struct native_request *request,
                                          const struct native_reader *reader,
                                          const struct topic *topic)
{
    struct native_connection *connection = request->connection;
    if (!check_reader(request, reader)) return NULL;
    if (connection->session == NULL) connection->session = session_new(reader);
    struct session_topic *cursors =
        connection->session == NULL ? NULL : native_session_topic(connection->session, topic);
    if (cursors == NULL) {
        native_fail(request, WIRE_CODE_RATE_LIMITED,
                    "a connection reads at most %d topics, in the memory there is",
                    SESSION_TOPICS_MAX);
    }
    return cursors;
}
