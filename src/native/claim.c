/* claim.c: see claim.h. */
#include "native/claim.h"

#include <string.h>

#include "native/native_state.h"

/* How long a claim waits while its group begins anew. */
#define SETTLE_US 10000000

struct partition *native_claim_init(struct native_claim *claim, struct native_request *request,
                                    struct slice topic, int32_t partition)
{
    struct topic *found =
        catalog_find(native_broker(request), (const char *)topic.data, topic.bytes);
    if (request->connection->session == NULL) {
        native_fail(request, WIRE_CODE_BAD_PROTOCOL,
                    "%s needs a FETCH or SUBSCRIBE for a group before it",
                    wire_opcode_name(request->opcode));
        return NULL;
    }
    if (found == NULL) {
        native_fail(request, WIRE_CODE_TOPIC_MISSING, "no topic %.*s", (int)topic.bytes,
                    (const char *)topic.data);
        return NULL;
    }
    struct partition *claimed = topic_partition(found, (uint32_t)partition);
    if (claimed == NULL) {
        native_fail(request, WIRE_CODE_BAD_FRAME, "%s has no partition %d", topic_name(found),
                    partition + 1);
        return NULL;
    }
    *claim = (struct native_claim){
        .request = request,
        .uid = *topic_uid(found),
        .partition = partition,
        .member = request->connection->membership,
        .until_us = loop_now_us(request->native->loop) + SETTLE_US,
    };
    strcpy(claim->topic, topic_name(found));
    return claimed;
}

static void ask(void *context)
{
    struct native_claim *claim = context;
    struct native_request *request = claim->request;
    claim->waiting = false;
    if (claim->member == NULL) {
        claim->granted(claim->context);
        return;
    }
    struct group_session *session = claim->member->session;
    if (!native_membership_admit(claim->member, request)) return;
    int64_t left_us = claim->until_us - loop_now_us(request->native->loop);
    bool settled = group_session_is_settled(session);
    /* A group that begins anew waits for what its members still commit. */
    if ((settled || group_session_is_yielding(session)) &&
        group_session_owns(session, wire_text(claim->topic), claim->partition)) {
        claim->granted(claim->context);
    } else if (settled) {
        native_fail(request, WIRE_CODE_BAD_PROTOCOL, "partition %d of %s is another member's now",
                    claim->partition + 1, claim->topic);
    } else if (left_us <= 0) {
        native_fail_status(request, STATUS_REBALANCE_IN_PROGRESS, NULL);
    } else {
        claim->waiting = true;
        native_membership_wait(claim->member, left_us, ask, claim);
    }
}

void native_claim_ask(struct native_claim *claim, native_claim_fn granted, void *context)
{
    claim->granted = granted;
    claim->context = context;
    ask(claim);
}

bool native_claim_abandon(const struct native_claim *claim)
{
    if (claim->waiting) native_membership_stop_waiting(claim->member);
    return claim->waiting;
}

void native_claim_sign(const struct native_claim *claim, struct offsets_request *offsets)
{
    const struct native_session *session = claim->request->connection->session;
    offsets->group = (struct slice){(const uint8_t *)session->group, session->group_bytes};
    offsets->generation = -1;
    offsets->timeout_us = broker_settings_of(native_broker(claim->request))->ack_timeout_us;
    if (claim->member == NULL) return;
    offsets->member_id = group_session_member_id(claim->member->session);
    offsets->generation = group_session_identity(claim->member->session).generation;
}

struct session_cursor *native_claim_cursor(const struct native_claim *claim,
                                           struct session_topic **topic)
{
    struct topic *found = catalog_find_uid(native_broker(claim->request), &claim->uid);
    struct native_session *session = claim->request->connection->session;
    *topic = found == NULL ? NULL : native_session_find(session, found);
    if (*topic == NULL || (uint32_t)claim->partition >= (*topic)->cursor_count) return NULL;
    return &(*topic)->cursors[claim->partition];
}
