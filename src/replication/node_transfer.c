/* node_transfer.c: handing leadership to a chosen ISR member (replication.md section 6, F10).
 *
 * Produces pause; when the target holds everything durably (and has the manifest), it is told to
 * stand now; clients are answered with the new leader. On any failure the old leader resumes within
 * a second.           */
#include <string.h>

#include "base/log.h"
#include "replication/node_internal.h"

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
    node_set_paused(node);
    leader_handing_over(node->leader, true);
    node_transfer_poll(node);
}

/* Called whenever a position may have moved. */
void node_transfer_poll(struct node *node)
{
    struct node_transfer *transfer = &node->transfer;
    if (!transfer->active) return;
    if (node_now(node) > transfer->deadline_us) {
        struct raft_event cancel = {.kind = RAFT_EVENT_TRANSFER_CANCEL};
        if (transfer->handed) (void)node_step(node, &cancel, NULL, NULL);
        node_transfer_ended(node, STATUS_TIMEOUT, "the successor did not take over in time");
        return;
    }
    if (transfer->handed || node->role != NODE_SERVING) return;
    uint32_t index = (uint32_t)node_member_index(node, transfer->target);
    if (!leader_member_caught_up(node->leader, index)) return;
    struct raft_event event = {.kind = RAFT_EVENT_TRANSFER};
    struct manifest_version version = catalog_version(node->options.broker);
    event.transfer.target = transfer->target;
    event.transfer.has_version = true;
    event.transfer.version.epoch = version.epoch;
    event.transfer.version.n = version.n;
    enum status status = node_step(node, &event, NULL, NULL);
    if (status == STATUS_OK) {
        transfer->handed = true;
    } else if (status != STATUS_CONFLICT) {
        node_transfer_ended(node, status, "the group does not allow it now");
    }
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
    /* A broken copy does not keep leading because nobody took over. */
    if (status != STATUS_OK && node->damaged && node->role == NODE_SERVING && !node->stopping) {
        struct raft_event event = {.kind = RAFT_EVENT_STEP_DOWN, .step_down.why = RAFT_DOWN_DISK};
        (void)node_step(node, &event, NULL, NULL);
    }
    if (ended.done != NULL) ended.done(ended.context, status, &error);
}
