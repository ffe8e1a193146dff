/* errors.c: see errors.h. */
#include "native/errors.h"

#include <stdio.h>
#include <string.h>

enum wire_error_code native_error_code(enum status status)
{
    switch (status) {
    case STATUS_NOT_LEADER:
    case STATUS_NOT_READY:
    case STATUS_NO_LEADER: return WIRE_CODE_NOT_LEADER;
    case STATUS_UNKNOWN_TOPIC:
    case STATUS_UNKNOWN_TOPIC_ID:
    case STATUS_NOT_FOUND: return WIRE_CODE_TOPIC_MISSING;
    case STATUS_TOPIC_FORBIDDEN: return WIRE_CODE_TOPIC_FORBIDDEN;
    case STATUS_INVALID_PARTITIONS: return WIRE_CODE_INVALID_PARTITIONS;
    case STATUS_INVALID_CONFIG: return WIRE_CODE_INVALID_CONFIG;
    /* What the same request would meet again; 7 invites to try once more. */
    case STATUS_INVALID:
    case STATUS_INVALID_RECORD:
    case STATUS_INVALID_TIMESTAMP:
    case STATUS_TOO_LARGE:
    case STATUS_OUT_OF_RANGE: return WIRE_CODE_BAD_FRAME;
    case STATUS_GROUP_FULL:
    case STATUS_LIMIT: return WIRE_CODE_RATE_LIMITED;
    case STATUS_DENIED: return WIRE_CODE_NOT_AUTHORIZED;
    case STATUS_OUT_OF_ORDER_SEQUENCE: return WIRE_CODE_OUT_OF_ORDER_SEQUENCE;
    case STATUS_STALE_PRODUCER_EPOCH: return WIRE_CODE_PRODUCER_FENCED;
    case STATUS_TXN_ABORTABLE:
    case STATUS_INVALID_TXN_STATE: return WIRE_CODE_INVALID_TXN_STATE;
    case STATUS_GROUP_NOT_EMPTY: return WIRE_CODE_GROUP_NOT_EMPTY;
    case STATUS_UNKNOWN_MEMBER:
    case STATUS_ILLEGAL_GENERATION: return WIRE_CODE_GROUP_MEMBER_UNKNOWN;
    case STATUS_GROUP_PROTOCOL: return WIRE_CODE_GROUP_CONFLICT;
    case STATUS_UNKNOWN_GROUP: return WIRE_CODE_GROUP_MISSING;
    case STATUS_PRODUCER_FENCED: return WIRE_CODE_PRODUCER_FENCED;
    case STATUS_PRODUCER_ID_MAPPING: return WIRE_CODE_PRODUCER_FENCED;
    default: return WIRE_CODE_INTERNAL;
    }
}

static const struct group_member *member_of(const struct group_view *view, int32_t id)
{
    for (uint32_t i = 0; i < view->member_count; i++) {
        if (view->members[i].id == id) return &view->members[i];
    }
    return NULL;
}

void native_not_leader_text(const struct group_view *view, char text[NATIVE_NOT_LEADER_BYTES])
{
    /* A leader that has not taken over yet names nobody: itself would send clients in circles. */
    int32_t id = view->leader_id < 0 ? view->successor_id : view->leader_id;
    const struct group_member *leader = id < 0 || id == view->self_id ? NULL : member_of(view, id);
    if (leader == NULL || leader->client_host[0] == '\0') {
        snprintf(text, NATIVE_NOT_LEADER_BYTES, "not the leader; no leader elected yet");
        return;
    }
    bool is_v6 = strchr(leader->client_host, ':') != NULL;
    snprintf(text, NATIVE_NOT_LEADER_BYTES,
             is_v6 ? "not the leader; leader=[%s]:%d" : "not the leader; leader=%s:%d",
             leader->client_host, leader->client_port);
}
