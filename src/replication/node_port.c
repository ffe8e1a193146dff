/* node_port.c: what the broker asks of the group (broker/group_port.h), and what it tells it of
 * partitions. */
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/mutant.h"
#include "replication/node_internal.h"

#define HAND_OVER_AGAIN_US 1000000

static const struct group_view *port_view(void *context)
{
    return &((struct node *)context)->view;
}

static void port_appended(void *context, struct partition *partition)
{
    struct node *node = context;
    if (node->leader != NULL) leader_appended(node->leader, partition);
}

static void port_partition_changed(void *context, struct partition *partition)
{
    struct node *node = context;
    if (node->leader != NULL) leader_partition_changed(node->leader, partition);
}

static int64_t port_followers_start(void *context, const struct partition *partition)
{
    const struct node *node = context;
    return node->leader == NULL ? INT64_MAX : leader_followers_start(node->leader, partition);
}

static int64_t port_copied_to(void *context, const struct partition *partition)
{
    const struct node *node = context;
    return node->leader == NULL ? INT64_MAX : leader_copied_to(node->leader, partition);
}

static int64_t port_pushed_to(void *context, const struct partition *partition)
{
    const struct node *node = context;
    return node->pushing == NULL ? INT64_MAX : static_leader_copied_to(node->pushing, partition);
}

static bool port_told_high_watermark(void *context, const struct partition *partition, int64_t *out)
{
    const struct node *node = context;
    if (node->pushing != NULL) {
        return static_leader_high_watermark(node->pushing, partition, out);
    }
    *out = partition_high_watermark(partition);
    return *out >= partition_epoch_start(partition);
}

static enum clock_witness port_clock(void *context)
{
    return node_clock(context);
}

static void port_manifest_changed(void *context)
{
    struct node *node = context;
    if (node->leader != NULL) leader_manifest_changed(node->leader);
}

/* ---- confirmation rounds ---- */

/* One round for all that came in this turn of the loop. */
static void begin_round(void *context)
{
    struct node *node = context;
    uint64_t round = 0;
    struct raft_event event = {.kind = RAFT_EVENT_CONFIRM};
    if (node->role != NODE_SERVING || node_step(node, &event, NULL, &round) != STATUS_OK) {
        node_confirms_fail(node);
        return;
    }
    struct node_confirm *confirm;
    DL_FOREACH(node->confirms, confirm)
    {
        if (confirm->round == 0) confirm->round = round;
    }
}

static void port_confirm(void *context, group_done_fn done, void *done_context)
{
    struct node *node = context;
    if (node->role != NODE_SERVING) {
        struct error error;
        error_set(&error, STATUS_NOT_LEADER, "this replica does not lead");
        if (done != NULL) done(done_context, STATUS_NOT_LEADER, &error);
        return;
    }
    if (node_is_solo(node) || MUTANT(27)) {
        if (done != NULL) done(done_context, STATUS_OK, NULL);
        return;
    }
    struct node_confirm *confirm = calloc(1, sizeof(*confirm));
    ASSERT(confirm != NULL);
    confirm->done = done;
    confirm->context = done_context;
    DL_APPEND(node->confirms, confirm);
    if (node->confirm_timer == NULL) {
        node->confirm_timer = timer_new(node->options.loop, begin_round, node);
    }
    timer_start(node->confirm_timer, 0);
}

static void finish_confirm(struct node *node, struct node_confirm *confirm, enum status status)
{
    struct error error;
    DL_DELETE(node->confirms, confirm);
    if (status != STATUS_OK) error_set(&error, status, "leadership was lost");
    if (confirm->done != NULL) confirm->done(confirm->context, status, &error);
    free(confirm);
}

/* Rounds are given out in order, so confirms are listed in order of them. */
void node_confirmed(struct node *node, uint64_t round)
{
    while (node->confirms != NULL && node->confirms->round != 0 && node->confirms->round <= round) {
        finish_confirm(node, node->confirms, STATUS_OK);
    }
}

void node_confirms_fail(struct node *node)
{
    while (node->confirms != NULL)
        finish_confirm(node, node->confirms, STATUS_NOT_LEADER);
}

/* Produce pauses while leadership is handed over, and after a gap of the own loop until it is
 * confirmed. */
void node_set_paused(struct node *node)
{
    bool paused = node->role == NODE_SERVING && (node->verifying > 0 || node->transfer.pausing);
    if (paused == node->paused) return;
    node->paused = paused;
    broker_pause_produce(node->options.broker, paused);
}

static void port_transfer(void *context, int32_t to, group_done_fn done, void *done_context)
{
    node_transfer_begin(context, to, 5000000, done, done_context);
}

/* A group of one has no such log: nothing to hold, and nobody to hear. */
static void port_quorum(void *context, struct group_quorum *out)
{
    const struct node *node = context;
    struct raft_info info = {0};
    if (node->raft != NULL) raft_get_info(node->raft, &info);
    *out = (struct group_quorum){.committed = info.commit + 1};
    for (uint32_t i = 0; i < node->member_count; i++) {
        int32_t id = node->member_ids[i];
        bool self = i == node->self;
        if (!self && node->raft == NULL) continue;
        struct group_voter *voter = &out->voters[out->voter_count++];
        *voter = (struct group_voter){
            .id = id, .incarnation = node->identity.incarnation, .log_end = info.last_index + 1};
        if (self) continue;
        const struct raft_view_member *member = raft_view_member(raft_known(node->raft), id);
        int64_t match = raft_match(node->raft, id), heard_us = raft_heard_us(node->raft, id);
        voter->incarnation = member != NULL ? member->incarnation : (struct uuid){{0}};
        voter->log_end = match > 0 ? match + 1 : -1;
        voter->heard_us_ago = heard_us == INT64_MIN ? -1 : node_now(node) - heard_us;
    }
}

static void port_status(void *context, struct buffer *out)
{
    node_put_status(context, NULL, out);
}

/* ---- partitions ---- */

static void partition_came(void *context, struct partition *partition)
{
    struct node *node = context;
    if (node->leader != NULL)
        leader_partition_added(node->leader, partition);
    else if (node->follow != NULL)
        follow_partition_added(node->follow, partition);
    node_static_partition_came(node, partition);
}

static void partition_went(void *context, struct partition *partition)
{
    struct node *node = context;
    if (node->leader != NULL)
        leader_partition_removed(node->leader, partition);
    else if (node->follow != NULL)
        follow_partition_removed(node->follow, partition);
    node_static_partition_went(node, partition);
}

static void partition_synced(void *context, struct partition *partition)
{
    struct node *node = context;
    if (node->leader != NULL)
        leader_durable(node->leader, partition);
    else if (node->follow != NULL)
        follow_durable(node->follow, partition);
    node_static_durable(node, partition);
}

static void not_handed_over(void *context, enum status status, const struct error *error)
{
    struct node *node = context;
    (void)error;
    /* Nobody took over: a broken copy does not go on leading all the same. */
    bool leads = node->role == NODE_SERVING || node->role == NODE_PENDING;
    if (status == STATUS_OK || !leads || node->stopping) return;
    struct raft_event event = {.kind = RAFT_EVENT_STEP_DOWN, .step_down.why = RAFT_DOWN_DISK};
    (void)node_step(node, &event, NULL, NULL);
}

/* A leader whose own copy failed hands over, or steps down: within a second (F41). */
static void own_copy_failed(struct node *node)
{
    if (node_is_solo(node)) return;
    if (node->role == NODE_PENDING)
        not_handed_over(node, STATUS_NOT_READY, NULL);
    else if (node->role == NODE_SERVING && !node->transfer.active)
        node_transfer_begin(node, -1, 900000, not_handed_over, node);
}

static void partition_broke(void *context, struct partition *partition, const struct error *error)
{
    struct node *node = context;
    node->damaged = true;
    node->damage_checked_us = node_now(node);
    node_raise_alarm(node, ALARM_SYNC_FAILED, error->text);
    if (node->follow != NULL) follow_failed(node->follow, partition);
    node_static_failed(node, partition);
    if (node->raft != NULL) node_update_condition(node);
    own_copy_failed(node);
}

/* The rest is served on; a replica whose copy is clean leads rather than this one (F30). */
static void partition_is_corrupt(void *context, struct partition *partition,
                                 const struct error *error)
{
    struct node *node = context;
    (void)error;
    node->damaged = true;
    node->damage_checked_us = node_now(node);
    if (node->follow != NULL) follow_marks_changed(node->follow, partition);
    if (node->raft != NULL) node_update_condition(node);
}

void node_found_corrupt(void *context, struct partition *partition)
{
    int64_t from, to;
    if (!partition_damaged(partition)) return; /* it has been cut meanwhile */
    /* One that failed for want of space, or by an error, has said so already. */
    if (partition_log_quarantined(partition_log_of(partition), &from, &to)) {
        char text[400];
        snprintf(text, sizeof(text), "%s: offsets %lld to %lld cannot be read",
                 partition_name(partition), (long long)from, (long long)to);
        partition_alarm_corrupt(partition, text);
    }
    partition_is_corrupt(context, partition, NULL);
}

/* A clean replica takes over from a damaged one as soon as there is one. */
void node_hand_over_damaged(struct node *node)
{
    if (!node->damaged || node->role != NODE_SERVING || node_is_solo(node)) return;
    if (node->transfer.active || node->stopping || leader_best_successor(node->leader) < 0) return;
    int64_t now = node_now(node);
    if (now - node->damage_handed_us < HAND_OVER_AGAIN_US) return;
    node->damage_handed_us = now;
    node_transfer_begin(node, -1, HAND_OVER_AGAIN_US, NULL, NULL);
}

void node_install_port(struct node *node)
{
    struct group_port port = {
        .view = port_view,
        .appended = port_appended,
        .partition_changed = port_partition_changed,
        .followers_start = port_followers_start,
        .copied_to = port_copied_to,
        .pushed_to = port_pushed_to,
        .told_high_watermark = port_told_high_watermark,
        .clock = port_clock,
        .manifest_changed = port_manifest_changed,
        .confirm = port_confirm,
        .transfer = port_transfer,
        .forward = node_forward,
        .quorum = port_quorum,
        .status = port_status,
        .context = node,
    };
    struct broker_handlers handlers = {
        .partition_added = partition_came,
        .partition_removed = partition_went,
        .partition_durable = partition_synced,
        .partition_failed = partition_broke,
        .partition_corrupt = partition_is_corrupt,
        .alarm = node_alarm_by_name,
        .context = node,
    };
    broker_set_group(node->options.broker, &port, &handlers);
}
