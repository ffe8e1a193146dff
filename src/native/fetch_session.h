/* fetch_session.h: what a connection remembers of its reading for a group.
 *
 * The first FETCH or SUBSCRIBE binds the connection to a group, an isolation, and to pulling or
 * being pushed. Of each topic named since, every partition has a cursor: the next offset to read,
 * and whether what the client has is committed. Records are committed when the client shows that it
 * has them: by the next FETCH of the topic, by reading on (push.h), or by COMMIT (F9, F12). Nothing
 * here is durable: a new connection begins at the committed offsets.                            */
#ifndef MOONMQ_NATIVE_FETCH_SESSION_H
#define MOONMQ_NATIVE_FETCH_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/uuid.h"
#include "broker/catalog.h"
#include "native/request.h"

struct session_cursor {
    bool loaded; /* `next` is known */
    bool dirty;  /* delivered up to `next` (pushed: received up to `received`), not committed */
    bool owned;  /* assigned to the connection's member, if it is one */
    int64_t next;
    int64_t received; /* pushed: the client has shown that it has what is before it; <= next */
};

struct session_topic {
    char name[TOPIC_NAME_BYTES_MAX + 1];
    struct uuid uid;
    struct session_cursor *cursors;
    uint32_t cursor_count;
    uint32_t rotation; /* partition the next answer begins with: none starves */
    bool manual;       /* pushed: the client commits itself */
    struct session_topic *next;
};

/* Topics one connection may read. */
#define SESSION_TOPICS_MAX 256

struct native_session {
    char group[WIRE_NAME_BYTES_MAX + 1];
    size_t group_bytes;
    bool read_committed;
    bool pushed; /* SUBSCRIBE: records come unasked */
    struct session_topic *topics;
    uint32_t topic_count;
};

/* What a FETCH or SUBSCRIBE says of its reader. */
struct native_reader {
    struct slice group;
    bool read_committed, pushed;
};
/* Binds the request's connection to this reader, if it is bound to none, and gives the topic's
 * cursors. NULL: the request was failed: it is bound to another one, or a member of another group
 * (8), reads too many topics (6), or there is no memory. */
struct session_topic *native_session_bind(struct native_request *request,
                                          const struct native_reader *reader,
                                          const struct topic *topic);
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
