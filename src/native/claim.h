/* claim.h: a request that speaks for one partition on behalf of the connection's group: COMMIT and
 * NACK (native-protocol.md 4.7).
 *
 * The connection must have read for a group. If it is a member, the group must have settled, which
 * is waited for, and the partition must be the member's; what is then committed is fenced with it.
 * Thread: event loop. */
#ifndef MOONMQ_NATIVE_CLAIM_H
#define MOONMQ_NATIVE_CLAIM_H

#include "broker/catalog.h"
#include "broker/offsets.h"
#include "native/fetch_session.h"
#include "native/membership.h"
#include "native/request.h"

typedef void (*native_claim_fn)(void *context);

struct native_claim {
    struct native_request *request;
    char topic[TOPIC_NAME_BYTES_MAX + 1];
    struct uuid uid;
    int32_t partition;
    struct native_membership *member; /* NULL: the connection speaks for itself */
    int64_t until_us;
    bool waiting;
    native_claim_fn granted;
    void *context;
};

/* Fills `claim` in. NULL: the request was failed: no session (8), no such topic (5), no such
 * partition (1). */
struct partition *native_claim_init(struct native_claim *claim, struct native_request *request,
                                    struct slice topic, int32_t partition);
/* Calls `granted` once, maybe at once, unless the request was failed: 12, 8 (another member's), 7
 * (the group did not settle in time). */
void native_claim_ask(struct native_claim *claim, native_claim_fn granted, void *context);
/* The client is gone. True: nothing of the claim is open. */
bool native_claim_abandon(const struct native_claim *claim);
/* Whose offsets these are, and who asks. Borrows from the connection until its next event. */
void native_claim_sign(const struct native_claim *claim, struct offsets_request *offsets);
/* The session's cursor of the partition; NULL: it has none (any more), or not yet. */
struct session_cursor *native_claim_cursor(const struct native_claim *claim,
                                           struct session_topic **topic);

#endif
