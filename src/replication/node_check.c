/* node_check.c: who is speaking: the checks of replication-wire.md S2, in its order, before any
 * effect. */
#include "replication/node_internal.h"

#include <stdarg.h>
#include <string.h>

#include "base/mutant.h"

__attribute__((format(printf, 4, 5))) static void refuse(struct node_refusal *refusal, int status,
                                                         const char *error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    refusal->status = status;
    refusal->error = error;
    vsnprintf(refusal->detail, sizeof(refusal->detail), format, arguments);
    va_end(arguments);
}

static bool group_fits(const struct uuid *mine, const struct uuid *theirs, enum node_id_use use)
{
    if (uuid_equal(mine, theirs)) return true;           /* both null: founding */
    if (uuid_is_none(mine)) return use != NODE_ID_OTHER; /* it may teach me the group */
    if (uuid_is_none(theirs)) return use == NODE_ID_HELLO || use == NODE_ID_VOTE;
    return false;
}

void node_check_id(struct node *node, const struct raft_id *id, enum node_id_use use,
                   struct node_refusal *refusal)
{
    struct uuid mine = raft_group(node->raft);
    refusal->status = 0;
    if (id->version != RAFT_WIRE_VERSION) {
        refuse(refusal, 409, "wire_version", "version %d, this replica speaks %d", id->version,
               RAFT_WIRE_VERSION);
        node_raise_alarm(node, ALARM_WIRE_VERSION, refusal->detail);
        return;
    }
    bool to_me = id->to == node->view.self_id;
    bool my_incarnation = uuid_is_none(&id->to_incarnation) ||
                          uuid_equal(&id->to_incarnation, &node->identity.incarnation);
    if (!to_me || !my_incarnation || id->from == node->view.self_id ||
        node_member_index(node, id->from) < 0) {
        refuse(refusal, 403, "wrong_replica", "replica %d asked for replica %d%s, this is %d",
               id->from, id->to, my_incarnation ? "" : " in another incarnation",
               node->view.self_id);
        if (!to_me || my_incarnation) node_raise_alarm(node, ALARM_WRONG_REPLICA, refusal->detail);
        return;
    }
    if (!group_fits(&mine, &id->group, use)) {
        char a[UUID_TEXT_BYTES], b[UUID_TEXT_BYTES];
        refuse(refusal, 403, "wrong_group", "replica %d is of group %s, this is of group %s",
               id->from, uuid_is_none(&id->group) ? "none" : uuid_format(&id->group, a),
               uuid_is_none(&mine) ? "none" : uuid_format(&mine, b));
        if (!uuid_is_none(&mine) && !uuid_is_none(&id->group)) {
            node_raise_alarm(node, ALARM_WRONG_GROUP, refusal->detail);
        }
        return;
    }
    if (strcmp(id->members, node->members_text) != 0 && !MUTANT(35)) {
        refuse(refusal, 403, "members_differ",
               "replica %d has member list %s, this has %s: Peers must name the same ids on all",
               id->from, id->members, node->members_text);
        node_raise_alarm(node, ALARM_MEMBERS_DIFFER, refusal->detail);
    }
}

static const struct group_member *own_member(const struct node *node, int32_t id)
{
    int index = node_member_index(node, id);
    return index < 0 ? NULL : &node->view.members[index];
}

/* The ids are equal, or nobody would get this far. Not refused: copies are safe, but clients are
 * sent to another place by each leader. Said when it is found, not with each hello. */
void node_compare_addresses(struct node *node, struct peer *peer, const struct wire_hello *hello)
{
    bool differ = false;
    for (uint32_t i = 0; i < hello->member_count; i++) {
        const struct group_member *theirs = &hello->members[i];
        const struct group_member *mine = own_member(node, theirs->id);
        char text[ALARM_TEXT_BYTES];
        if (mine == NULL || mine->client_host[0] == '\0' || theirs->client_host[0] == '\0')
            continue;
        if (strcmp(mine->client_host, theirs->client_host) == 0 &&
            mine->client_port == theirs->client_port) {
            continue;
        }
        differ = true;
        if (peer->addresses_differ) continue;
        snprintf(text, sizeof(text),
                 "ClientAddress of replica %d is %.50s:%d to replica %d and %.50s:%d to replica "
                 "%d: give all the same",
                 theirs->id, theirs->client_host, theirs->client_port, hello->id.from,
                 mine->client_host, mine->client_port, node->view.self_id);
        node_raise_alarm(node, ALARM_MEMBERS_DIFFER, text);
    }
    peer->addresses_differ = differ;
}

bool node_founding_conflict(const struct node *node, char *text, size_t text_bytes)
{
    size_t at = 0;
    int holders = 0;
    char ids[64] = "";
    for (uint32_t i = 0; i < node->member_count; i++) {
        bool holds = i == node->self ? node->told_holds : node->peers[i].holds_records;
        if (!holds) continue;
        holders++;
        at += (size_t)snprintf(ids + at, sizeof(ids) - at, " %d", node->member_ids[i]);
    }
    if (holders < 2) return false;
    snprintf(text, text_bytes,
             "the group cannot be founded: %s replicas hold records (%s): move the DataDir of %s "
             "away",
             holders == 2 ? "two" : "several", ids + 1, holders == 2 ? "one" : "all but one");
    return true;
}
