/* fetch_session.c: see fetch_session.h. */
#include "native/fetch_session.h"

#include <stdlib.h>
#include <string.h>

#include "broker/consumer_assignment.h"
#include "native/native_state.h"

struct native_session *native_session_new(struct slice group, bool read_committed)
{
    struct native_session *session = calloc(1, sizeof(*session));
    if (session == NULL) return NULL;
    memcpy(session->group, group.data, group.bytes);
    session->group_bytes = group.bytes;
    session->read_committed = read_committed;
    return session;
}

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

bool native_session_fits(const struct native_session *session, struct slice group,
                         bool read_committed)
{
    return session->read_committed == read_committed && session->group_bytes == group.bytes &&
           memcmp(session->group, group.data, group.bytes) == 0;
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
