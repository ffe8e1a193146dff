/* push.h: records that come unasked: what SUBSCRIBE starts on a connection
 * (native-protocol.md 4.7).
 *
 * One engine a connection, over all topics it subscribed to, beside its requests: it loads the
 * group's committed offsets, reads, sends RECORD frames with the zero id, and commits what the
 * client has shown to have (push_window.h), unless the client commits itself. A member is pushed
 * what it is assigned, and its answers to marks renew its lease. An error that would only come
 * again ends the connection by name (F15). Ends with the connection. Thread: event loop. */
#ifndef MOONMQ_NATIVE_PUSH_H
#define MOONMQ_NATIVE_PUSH_H

#include "native/fetch_session.h"

struct native_connection;

/* False: no memory. Begun already: looks again. Nothing is sent inside the call. */
bool native_push_begin(struct native_connection *connection);
/* What may be read is another now: topics, assignment, positions. */
void native_push_look(struct native_connection *connection);
/* A heartbeat was answered. */
void native_push_heard(struct native_connection *connection, const struct wire_id *id);
/* The partition's cursor was moved back: what is on its way of it counts no more. */
void native_push_rewound(struct native_connection *connection, struct session_topic *topic,
                         int32_t partition);
/* The connection is going to be freed. */
void native_push_end(struct native_connection *connection);

#endif
