/* node_status.c: the JSON of /replication/status and native STATUS, and readyz (replication-wire.md
 * S8, decisions 25–26). */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/json.h"
#include "replication/node_internal.h"

static json_t *version_json(struct manifest_version version)
{
    return json_pack("[I,I]", (json_int_t)version.epoch, (json_int_t)version.n);
}

static json_t *uuid_json(const struct uuid *uuid)
{
    char text[UUID_TEXT_BYTES];
    return uuid_is_none(uuid) ? json_null() : json_string(uuid_format(uuid, text));
}

static json_t *id_or_null(int32_t id)
{
    return id < 0 ? json_null() : json_integer(id);
}

static json_t *followers_json(const struct node *node)
{
    struct node_follower_facts facts[GROUP_MEMBERS_MAX];
    uint32_t count = node_followers(node, facts);
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++) {
        const struct node_follower_facts *each = &facts[i];
        json_array_append_new(
            list,
            json_pack(
                "{s:i,s:b,s:b,s:b,s:I,s:I,s:I,s:I}", "id", each->id, "in_isr", each->in_isr,
                "learner", each->learner, "connected", each->connected, "lag_records",
                (json_int_t)each->lag_records, "lag_bytes", (json_int_t)each->lag_bytes,
                "last_contact_ms",
                (json_int_t)(each->last_contact_us_ago < 0 ? -1 : each->last_contact_us_ago / 1000),
                "durable_lag_ms", (json_int_t)(each->durable_lag_us / 1000)));
        if (each->refusal != NULL) {
            json_object_set_new(json_array_get(list, i), "refused", json_string(each->refusal));
        }
    }
    return list;
}

static json_t *alarms_json(const struct node *node)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < node->alarms.entry_count; i++) {
        const struct alarm_entry *entry = &node->alarms.entries[i];
        char text[ALARM_TEXT_BYTES + 80];
        int bytes = snprintf(text, sizeof(text), "%s: %s", alarm_name(entry->kind), entry->text);
        if (entry->count > 1) {
            bytes += snprintf(text + bytes, sizeof(text) - (size_t)bytes, " (%llu times)",
                              (unsigned long long)entry->count);
        }
        json_array_append_new(list, json_stringn_nocheck(text, (size_t)bytes));
    }
    return list;
}

static json_t *last_isr_json(const struct node *node)
{
    if (node->last_isr_us < 0) return json_null();
    return json_pack("{s:s,s:i,s:I}", "why",
                     isr_why_text((enum isr_why)((int)node->last_isr_why - (int)RAFT_ISR_LAG)),
                     "replica", node->last_isr_replica, "ago_ms",
                     (json_int_t)((node_now(node) - node->last_isr_us) / 1000));
}

/* Why that member answers this replica nothing; NULL: it does not refuse. */
static const char *refusal_of(const struct node *node, int32_t id)
{
    for (uint32_t i = 0; i < node->member_count; i++) {
        const char *refusal = node->peers[i].refusal;
        if (node->member_ids[i] == id && i != node->self && refusal[0] != '\0') return refusal;
    }
    return NULL;
}

static json_t *members_json(const struct node *node)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < node->view.member_count; i++) {
        const struct group_member *member = &node->view.members[i];
        char address[GROUP_HOST_BYTES + 16];
        snprintf(address, sizeof(address), "%s:%d", member->client_host, member->client_port);
        json_t *row = json_pack("{s:i,s:s}", "id", member->id, "client_address", address);
        const char *refusal = refusal_of(node, member->id);
        if (refusal != NULL) json_object_set_new(row, "refused", json_string(refusal));
        json_array_append_new(list, row);
    }
    return list;
}

static json_t *not_ready_json(struct node *node)
{
    char reason[256];
    return node_ready(node, reason, sizeof(reason)) ? json_null() : json_string(reason);
}

void node_put_status(struct node *node, json_t *state_hash, struct buffer *out)
{
    struct node_facts facts;
    node_facts(node, &facts);
    json_t *isr = json_array();
    for (uint32_t i = 0; i < node->view.isr_count; i++) {
        json_array_append_new(isr, json_integer(node->view.isr[i]));
    }
    json_t *root = json_pack("{s:i,s:s,s:o,s:i,s:o,s:I,s:o}", "id", node->view.self_id, "role",
                             node->view.serving ? "leader" : "follower", "leader",
                             id_or_null(node->view.leader_id), "epoch", node->view.epoch, "isr",
                             isr, "raft_term", (json_int_t)facts.raft_term, "raft_leader",
                             id_or_null(facts.raft_leader_id));
    ASSERT(root != NULL);
    json_object_set_new(root, "group", uuid_json(&node->identity.group));
    json_object_set_new(root, "incarnation", uuid_json(&node->identity.incarnation));
    json_object_set_new(root, "version", json_string(MOONMQ_VERSION));
    json_object_set_new(root, "uptime_ms", json_integer((node_now(node) - node->began_us) / 1000));
    json_object_set_new(root, "serving", json_boolean(node->view.serving));
    json_object_set_new(root, "not_ready", not_ready_json(node));
    json_object_set_new(root, "min_insync", json_integer(node->view.min_insync));
    json_object_set_new(root, "in_sync_now", json_integer(node->view.in_sync_now));
    json_object_set_new(root, "manifest",
                        json_pack("{s:o,s:o}", "version", version_json(facts.manifest), "committed",
                                  version_json(facts.manifest_committed)));
    json_object_set_new(root, "members", members_json(node));
    json_object_set_new(root, "last_isr_change", last_isr_json(node));
    json_object_set_new(root, "alarms", alarms_json(node));
    json_object_set_new(root, "followers", followers_json(node));
    json_t *static_mode = node_static_status(node);
    if (static_mode != NULL) json_object_set_new(root, "static", static_mode);
    if (state_hash != NULL) json_object_set(root, "state_hash", state_hash);
    json_write(out, root);
    json_decref(root);
}

/* ---- readyz ---- */

static void name_missing(const struct node *node, char *reason, size_t reason_bytes)
{
    struct raft_ids missing;
    if (node_founding_conflict(node, reason, reason_bytes)) return;
    raft_missing_for_founding(node->raft, &missing);
    size_t at = (size_t)snprintf(reason, reason_bytes,
                                 "the group is not founded yet: the first start needs all "
                                 "members; not ready:");
    for (int i = 0; i < missing.count && at < reason_bytes; i++) {
        at += (size_t)snprintf(reason + at, reason_bytes - at, " %d", missing.ids[i]);
    }
}

bool node_ready(struct node *node, char *reason, size_t reason_bytes)
{
    reason[0] = '\0';
    if (node->role == NODE_STARTING || !node->broker_ready) {
        snprintf(reason, reason_bytes, "starting: recovering the DataDir");
    } else if (node->role == NODE_STOPPED || node->stopping) {
        snprintf(reason, reason_bytes, "stopping");
    } else if (node->damaged) {
        snprintf(reason, reason_bytes, "a partition's copy has failed or is quarantined");
    } else if (node->role == NODE_SERVING) {
        if (node->view.in_sync_now >= node->view.min_insync) return true;
        snprintf(reason, reason_bytes, "leading with %d of %d replicas in sync",
                 node->view.in_sync_now, node->view.min_insync);
    } else if (node->raft != NULL && uuid_is_none(&node->identity.group)) {
        name_missing(node, reason, reason_bytes);
    } else if (node->view.leader_id < 0) {
        snprintf(reason, reason_bytes, "no leader known");
    } else if (node->follow == NULL || !follow_is_fetching(node->follow)) {
        snprintf(reason, reason_bytes, "not yet following replica %d", node->view.leader_id);
    } else if (!raft_ids_contain(&raft_known(node->raft)->isr, node->view.self_id)) {
        snprintf(reason, reason_bytes, "not in the in-sync set: catching up");
    } else {
        return true;
    }
    return false;
}
