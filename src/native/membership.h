/* membership.h: a connection's place in a consumer group: JOIN_GROUP, GROUP_HEARTBEAT, LEAVE_GROUP.
 *
 * While it is there, FETCH reads and COMMIT commits only what the member is assigned, and both
 * count as heartbeats (F31, F32, F34). The member leaves with the connection. One that was put out
 * keeps its place here, so that its connection is told (12) until it joins again or leaves.
 * Thread: event loop. */
#ifndef MOONMQ_NATIVE_MEMBERSHIP_H
#define MOONMQ_NATIVE_MEMBERSHIP_H

#include "broker/group_session.h"
#include "io/loop.h"

struct native_connection;
struct native_request;

/* The assignment changed, or the wait is over. */
typedef void (*membership_fn)(void *context);

struct native_membership {
    struct native_connection *connection;
    struct group_session *session;
    bool follows;               /* its heartbeats are answered with assignments */
    int32_t told_generation;    /* which one it was told last */
    int32_t cursors_generation; /* to which the session's cursors belong; -1: none */
    membership_fn waiter;       /* of the one request that may wait; NULL: none does */
    void *waiter_context;
    struct timer *timer;
};

/* NULL is allowed. */
void native_membership_free(struct native_membership *membership);
/* A request of the member's: OK, or the request was failed. */
bool native_membership_admit(struct native_membership *membership, struct native_request *request);
/* Calls `waiter` once when something changes, or after `timeout_us` (negative: only then). */
void native_membership_wait(struct native_membership *membership, int64_t timeout_us,
                            membership_fn waiter, void *context);
void native_membership_stop_waiting(struct native_membership *membership);
/* Something that the client had was committed. If that was all, and the group waits for it, the
 * group goes on. */
void native_membership_committed(struct native_membership *membership);
/* Brings the cursors of what is read into line with the assignment: what was taken away is
 * forgotten. */
void native_membership_align(struct native_membership *membership);

#endif
