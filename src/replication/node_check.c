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
