/* node_solo.c: a group of one (decisions 6): no Replication block. Epoch = 1 + restarts, kept in
 * the identity file; the high watermark is the own durable position. The same leader object runs,
 * with nobody to wait for.   */
#include <string.h>

#include "base/assert.h"
#include "base/log.h"
#include "replication/node_internal.h"

#define RESUME_EVERY_US 2000000

static int32_t latest_epoch(struct broker *broker)
{
    int32_t latest = -1;
    struct topic *topic = NULL;
    while ((topic = catalog_next(broker, topic)) != NULL) {
        for (uint32_t i = 0; i < topic_partition_count(topic); i++) {
            const struct partition_log *log = partition_log_of(topic_partition(topic, i));
            int32_t epoch = epoch_history_latest(partition_log_epochs(log));
            if (epoch > latest) latest = epoch;
        }
    }
    return latest;
}

static void solo_promoted(void *context, enum status status, const struct error *error)
{
    struct node *node = context;
    if (status != STATUS_OK) {
        node_finish_start(node, status, error);
        return;
    }
    node->tail_synced = node->promoted = true;
    node_serve_if_ready(node);
    node_tick_start(node);
    node_static_begin(node);
}

void node_solo_begin(struct node *node)
{
    struct broker *broker = node->options.broker;
    int32_t latest = latest_epoch(broker);
    bool changed = uuid_is_none(&node->identity.group) || latest >= node->identity.solo_epoch;
    if (uuid_is_none(&node->identity.group)) node->identity.group = uuid_random(&node->random);
    /* Its records may come from a group, whose epochs were higher. */
    if (latest >= node->identity.solo_epoch) node->identity.solo_epoch = latest + 1;
    if (changed) node_persist_identity(node, false);
    int32_t epoch = node->identity.solo_epoch;
    node->role = NODE_PENDING;
    node->won_us = node_now(node);
    node->view.epoch = epoch;
    node->view.group = node->identity.group;
    node->view.isr[0] = node->view.self_id;
    node->view.isr_count = 1;
    node->view.in_sync_now = 1;
    struct topic *topic = NULL;
    while ((topic = catalog_next(broker, topic)) != NULL) {
        for (uint32_t i = 0; i < topic_partition_count(topic); i++) {
            partition_begin_epoch(topic_partition(topic, i), epoch);
        }
    }
    node_make_leader(node, epoch);
    struct leader_group group = {.isr_mask = 1, .waited_mask = 1};
    group.members[0] = (struct leader_member){true, node->identity.incarnation};
    leader_set_group(node->leader, &group);
    broker_promote(broker, epoch, solo_promoted, node);
}

/* What failed for want of space is tried again now and then (F40): with nobody to hand over to, and
 * nobody who has what was not durable. */
void node_solo_tick(struct node *node)
{
    struct broker *broker = node->options.broker;
    int64_t now = node_now(node);
    if (!node->damaged || node->stopping || now < node->resume_at_us) return;
    node->resume_at_us = now + RESUME_EVERY_US;
    node_look_for_damage(node);
    struct topic *topic = NULL;
    while ((topic = catalog_next(broker, topic)) != NULL) {
        for (uint32_t i = 0; i < topic_partition_count(topic); i++) {
            partition_resume(topic_partition(topic, i));
        }
    }
}
