/* fetch_session.h: what a connection remembers of its reading for a group.
 *
 * The first FETCH of a group binds the connection to group and isolation. Of each topic fetched
 * since, every partition has a cursor: the next offset to read, and whether that is committed.
 * Records are committed when the client shows that it has them: by the next FETCH of the topic, or
 * by COMMIT (F9, F12). Nothing here is durable: a new connection begins at the committed offsets.
 */
#ifndef MOONMQ_NATIVE_FETCH_SESSION_H
#define MOONMQ_NATIVE_FETCH_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/uuid.h"
#include "broker/catalog.h"
#include "native/wire.h"

struct session_cursor {
    bool loaded; /* `next` is known */
    bool dirty;  /* delivered up to `next`, not committed */
    bool owned;  /* assigned to the connection's member, if it is one */
    int64_t next;
};

struct session_topic {
    char name[TOPIC_NAME_BYTES_MAX + 1];
    struct uuid uid;
    struct session_cursor *cursors;
    uint32_t cursor_count;
    uint32_t rotation; /* partition the next answer begins with: none starves */
    struct session_topic *next;
};

/* Topics one connection may read. */
#define SESSION_TOPICS_MAX 256

struct native_session {
    char group[WIRE_NAME_BYTES_MAX + 1];
    size_t group_bytes;
    bool read_committed;
    struct session_topic *topics;
    uint32_t topic_count;
};

/* NULL: out of memory. */
struct native_session *native_session_new(struct slice group, bool read_committed);
bool native_session_fits(const struct native_session *session, struct slice group,
                         bool read_committed);
/* The topic's cursors, brought to its present incarnation and partition count. NULL: too many
 * topics, or out of memory. */
struct session_topic *native_session_topic(struct native_session *session,
                                           const struct topic *topic);
/* What is in the assignment (consumer_assignment.h) is owned, all else is not and forgotten;
 * without `keep` so are the positions of what is owned. */
void native_session_assign(struct native_session *session, struct slice assignment, bool keep);
/* Only if it was fetched, in its present incarnation. */
struct session_topic *native_session_find(struct native_session *session,
                                          const struct topic *topic);

#endif
