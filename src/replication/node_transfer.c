/* node_transfer.c: handing leadership to a chosen ISR member (replication.md section 6, F10).
 *
 * CHASING: the target comes close to the log ends, produces go on -> PAUSING: no new ones, until
 * the target holds everything durably -> HANDED: it is told to stand now -> its claim; clients are
 * answered with the new leader. Produces are held for a second at most: on any failure the old
 * leader resumes. */
#include <string.h>

#include "base/log.h"
#include "replication/node_internal.h"

/* The target is close when all it lacks is younger than this; then it has this long to get it. */
#define CLOSE_US 200000
#define PAUSE_US 500000

static void fail_at_once(struct node *node, enum status status, const char *text,
                         group_done_fn done, void *context)
{
    struct error error;
    (void)node;
    error_set(&error, status, "%s", text);
    if (done != NULL) done(context, status, &error);
}

/* The member to hand over to; -1 with why not. */
static int choose(const struct node *node, int32_t target, const char **why)
{
    if (target < 0) {
        int best = leader_best_successor(node->leader);
        if (best < 0) *why = "no other replica is in sync now";
        return best;
    }
    int index = node_member_index(node, target);
    if (index < 0)
        *why = "no replica of that id (see `moonmq status`)";
    else if (index == (int)node->self)
        *why = "it leads already";
    else if (!(leader_in_sync_now(node->leader) >> index & 1))
        *why = "it is not in sync now";
    else
        return index;
    return -1;
}

void node_transfer_begin(struct node *node, int32_t target, int64_t timeout_us, group_done_fn done,
                         void *context)
{
    const char *why = NULL;
    if (node_is_solo(node)) {
        fail_at_once(node, STATUS_UNSUPPORTED, "a group of one has nobody to hand over to", done,
                     context);
        return;
    }
    if (node->role != NODE_SERVING) {
        fail_at_once(node, STATUS_NOT_LEADER, "this replica does not lead", done, context);
        return;
    }
    if (node->transfer.active) {
        fail_at_once(node, STATUS_CONFLICT, "a transfer is under way", done, context);
        return;
    }
    int index = choose(node, target, &why);
    if (index < 0) {
        fail_at_once(node, STATUS_NOT_ENOUGH_REPLICAS, why, done, context);
        return;
    }
    node->transfer = (struct node_transfer){
        .active = true,
        .target = node->member_ids[index],
        .deadline_us = node_now(node) + timeout_us,
        .done = done,
        .context = context,
    };
    log_info("transfer_begins target=%d", node->transfer.target);
    node_transfer_poll(node);
}

static void begin_pause(struct node *node, uint32_t target)
{
    struct leader_follower_facts facts;
    leader_follower_facts(node->leader, target, &facts);
    if (!facts.connected || facts.durable_lag_us > CLOSE_US) return;
    node->transfer.pausing = true;
    node->transfer.pause_until_us = node_now(node) + PAUSE_US;
    node_set_paused(node);
    leader_handing_over(node->leader, true);
}

static void hand_over(struct node *node)
{
    struct raft_event event = {.kind = RAFT_EVENT_TRANSFER};
    struct manifest_version version = catalog_version(node->options.broker);
    event.transfer.target = node->transfer.target;
    event.transfer.has_version = true;
    event.transfer.version.epoch = version.epoch;
    event.transfer.version.n = version.n;
    node->transfer.handed = true;
    enum status status = node_step(node, &event, NULL, NULL);
    if (status == STATUS_OK || !node->transfer.active) return;
    node->transfer.handed = false;
    /* A change of the in-sync set that is under way ends soon: tried again then. */
    if (status != STATUS_CONFLICT) {
        node_transfer_ended(node, status, "the group does not allow it now");
    }
}

/* Called whenever a position may have moved, and each tick. */
void node_transfer_poll(struct node *node)
{
    struct node_transfer *transfer = &node->transfer;
    if (!transfer->active) return;
    int64_t now = node_now(node);
    if (node->stopping && !node_reaches_anyone(node)) {
        /* All are being stopped: nobody is left who could take over. */
        node_transfer_ended(node, STATUS_NOT_ENOUGH_REPLICAS, "no other replica is there");
        return;
    }
    bool late = now > transfer->deadline_us ||
                (transfer->pausing && !transfer->handed && now > transfer->pause_until_us);
    if (late) {
        struct raft_event cancel = {.kind = RAFT_EVENT_TRANSFER_CANCEL};
        if (transfer->handed) (void)node_step(node, &cancel, NULL, NULL);
        node_transfer_ended(node, STATUS_TIMEOUT, "the successor did not take over in time");
        return;
    }
    if (transfer->handed || node->role != NODE_SERVING) return;
    uint32_t index = (uint32_t)node_member_index(node, transfer->target);
    if (!(leader_in_sync_now(node->leader) >> index & 1)) {
        node_transfer_ended(node, STATUS_NOT_ENOUGH_REPLICAS, "the successor is not in sync now");
        return;
    }
    if (!transfer->pausing) begin_pause(node, index);
    if (!transfer->pausing || !leader_member_caught_up(node->leader, index)) return;
    hand_over(node);
}

void node_transfer_ended(struct node *node, enum status status, const char *text)
{
    if (!node->transfer.active) return;
    struct node_transfer ended = node->transfer;
    memset(&node->transfer, 0, sizeof(node->transfer));
    if (node->leader != NULL) leader_handing_over(node->leader, false);
    node_set_paused(node);
    struct error error;
    if (status != STATUS_OK) {
        error_set(&error, status, "%s", text);
        log_warn("transfer_failed target=%d why=\"%s\"", ended.target, text);
    }
    if (ended.done != NULL) ended.done(ended.context, status, &error);
}
