/* node_roles.c: from a won election to serving, and back; whom to follow.
 *
 * A leader serves after (a) its claim committed, (b) it stopped following and synced its own tail,
 * (c) coordinators hold the state of the internal topics. From (a) on followers may fetch: epochs
 * begin at the log ends of that moment. "Leadership" is numbered: a late callback of an earlier one
 * is void.                           */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/mutant.h"
#include "replication/node_internal.h"

#define REOPEN_US_MIN 500000
#define REOPEN_US_MAX 5000000

/* ---- the leader's handlers ---- */

static enum raft_isr_why raft_why(enum isr_why why)
{
    return (enum raft_isr_why)((int)why + (int)RAFT_ISR_LAG);
}

static bool propose(void *context, uint32_t member, bool into, enum isr_why why)
{
    struct node *node = context;
    if (node->role != NODE_SERVING || node->transfer.pausing) return false;
    struct raft_event event = {.kind = RAFT_EVENT_PROPOSE};
    event.propose.kind = RAFT_ENTRY_ISR;
    event.propose.isr.isr = raft_known(node->raft)->isr;
    event.propose.isr.why = raft_why(why);
    if (into)
        raft_ids_add(&event.propose.isr.isr, node->member_ids[member]);
    else
        raft_ids_remove(&event.propose.isr.isr, node->member_ids[member]);
    if (node_step(node, &event, NULL, NULL) != STATUS_OK) return false;
    (void)FAILPOINT("isr.appended");
    node->last_isr_replica = node->member_ids[member];
    log_info("isr_proposed replica=%d into=%d why=%s", node->member_ids[member], into,
             isr_why_text(why));
    node_group_changed(node); /* the union is waited for from now on */
    return true;
}

static void in_sync_changed(void *context)
{
    struct node *node = context;
    node->view.in_sync_now = __builtin_popcount(leader_in_sync_now(node->leader));
    broker_view_changed(node->options.broker);
}

static void manifest_committed(void *context, struct manifest_version committed)
{
    struct node *node = context;
    broker_manifest_committed(node->options.broker, committed);
}

/* A replica that refused to cut holds what this leader lacks: it takes over, if it is in the ISR
 * (decisions 23). */
static void conflict(void *context, uint32_t member, struct partition *partition)
{
    struct node *node = context;
    char text[200];
    snprintf(text, sizeof(text), "%s: replica %d refused to cut below its high watermark",
             partition_name(partition), node->member_ids[member]);
    node_raise_alarm(node, ALARM_TRUNCATION_REFUSED, text);
    if (raft_ids_contain(&raft_known(node->raft)->isr, node->member_ids[member]) &&
        node->role == NODE_SERVING && !node->transfer.active) {
        node_transfer_begin(node, node->member_ids[member], 5000000, NULL, NULL);
    }
}

void node_make_leader(struct node *node, int32_t epoch)
{
    struct leader_options options = {
        .broker = node->options.broker,
        .loop = node->options.loop,
        .config = &node->options.config,
        .epoch = epoch,
        .member_ids = node->member_ids,
        .member_count = node->member_count,
        .self = node->self,
        .group = node->identity.group,
        .incarnation = node->identity.incarnation,
        .random_seed = random_u64(&node->random),
        .handlers = {propose, in_sync_changed, manifest_committed, conflict, node_found_corrupt,
                     node_alarm_by_name, node},
    };
    memcpy(options.members_hash, node->members_hash, sizeof(options.members_hash));
    node->leader = leader_new(&options);
    ASSERT(node->leader != NULL);
    /* What broke with the leader before this one is known already: its refused connection is reason
     * enough. */
    for (uint32_t i = 0; i < node->member_count; i++) {
        if (i != node->self && node->peers[i].refused) leader_refused(node->leader, i, true);
    }
}

/* ---- following ---- */

static void stop_following(struct node *node)
{
    if (node->follow == NULL) return;
    follow_free(node->follow, false);
    node->follow = NULL;
    node->last_followed_leader = node->follow_leader;
    node->follow_leader = node->follow_epoch = -1;
}

static void not_leading(void *context, int32_t leader, int64_t epoch)
{
    struct node *node = context;
    (void)leader;
    struct raft_event event = {.kind = RAFT_EVENT_NOT_LEADING};
    event.not_leading.peer = node->follow_leader;
    event.not_leading.epoch = epoch;
    (void)node_step(node, &event, NULL, NULL);
}

static void heard(void *context, bool in_isr, bool handing_over)
{
    struct node *node = context;
    (void)handing_over;
    if (!in_isr) return;
    /* In the set, with a session that the leader accepted: nothing committed is missing here. */
    node->sure = true;
    node->ends_refused = 0;
    if (!node->identity.was_cut) return;
    node->identity.was_cut = false;
    node_persist_identity(node, false);
}

static void truncated(void *context)
{
    ((struct node *)context)->truncations++;
}

static void rewinding(void *context, int change)
{
    struct node *node = context;
    node->rewinds += (uint32_t)change;
    /* A new leader is followed when nothing of the old following touches the logs any more. */
    if (node->rewinds == 0 && node->follow == NULL && node->raft != NULL) node_follow_again(node);
}

static void fetched(void *context, uint64_t records)
{
    ((struct node *)context)->fetched_records += records;
}

static void start_following(struct node *node, int32_t leader, int32_t epoch)
{
    struct peer *peer = &node->peers[node_member_index(node, leader)];
    struct follow_options options = {
        .broker = node->options.broker,
        .loop = node->options.loop,
        .transport = node->options.transport,
        .config = &node->options.config,
        .self_id = node->view.self_id,
        .leader_id = leader,
        .epoch = epoch,
        .same_leader_as_before = leader == node->last_followed_leader,
        .group = node->identity.group,
        .incarnation = node->identity.incarnation,
        .random_seed = random_u64(&node->random),
        .handlers = {not_leading, node_amnesia, node_alarm_by_name, heard, truncated, rewinding,
                     fetched, node},
    };
    if (peer->heard) options.leader_incarnation = peer->incarnation;
    snprintf(options.leader_address, sizeof(options.leader_address), "%s", peer->config->address);
    memcpy(options.members_hash, node->members_hash, sizeof(options.members_hash));
    memcpy(options.members_text, node->members_text, sizeof(options.members_text));
    node->follow = follow_new(&options);
    ASSERT(node->follow != NULL);
    node->follow_leader = leader;
    node->follow_epoch = epoch;
    log_info("follows leader=%d epoch=%d", leader, epoch);
}

/* The leader of a committed claim, while Raft still hears it in that term; -1: none to follow. */
static int32_t leader_to_follow(const struct node *node, const struct raft_info *info)
{
    const struct raft_view *known = raft_known(node->raft);
    if (node->role != NODE_FOLLOWER || node->stopping) return -1;
    if (uuid_is_none(&node->identity.group) || known->leader == RAFT_NOBODY) return -1;
    if (known->leader == node->view.self_id || info->leader != known->leader) return -1;
    if (info->term != known->epoch || known->stopped) return -1;
    return known->leader;
}

void node_follow_again(struct node *node)
{
    struct raft_info info;
    raft_get_info(node->raft, &info);
    int32_t leader = leader_to_follow(node, &info);
    bool same = node->follow != NULL && leader == node->follow_leader;
    if (node->rewinds > 0 && !same) leader = -1; /* rewinding() comes back here */
    int32_t epoch = leader < 0 ? -1 : (int32_t)raft_known(node->raft)->epoch;
    if (leader == node->follow_leader && epoch == node->follow_epoch) return;
    /* While nobody else is known, the old leader's data stays as it is: nothing is to be told. */
    stop_following(node);
    if (leader >= 0) start_following(node, leader, epoch);
}

/* ---- the group as Raft says ---- */

static void tell_leader(struct node *node)
{
    struct leader_group group = {0};
    const struct raft_view *known = raft_known(node->raft);
    struct raft_ids waited;
    raft_waited_on(node->raft, &waited);
    group.isr_mask = node_mask_of(node, &known->isr);
    group.waited_mask = node_mask_of(node, &waited);
    if (MUTANT(30)) group.waited_mask = node_mask_of(node, &raft_seen(node->raft)->isr);
    group.change_pending = raft_change_pending(node->raft);
    for (uint32_t i = 0; i < node->member_count; i++) {
        const struct raft_view_member *member = raft_view_member(known, node->member_ids[i]);
        if (member == NULL || uuid_is_none(&member->incarnation)) continue;
        group.members[i].incarnation = member->incarnation;
        group.members[i].counts =
            raft_counts(node->raft, node->member_ids[i], &member->incarnation);
    }
    leader_set_group(node->leader, &group);
}

/* Both connections with the leader are down: it may be gone. Until it is there again, or another
 * is, clients are told of none, so that their question waits here for the answer that will hold
 * (kafka-listener.md 9.4, 2). */
static bool leader_is_suspect(const struct node *node, int32_t leader)
{
    const struct peer *peer = &node->peers[node_member_index(node, leader)];
    return !peer->control.greeted && peer->append_connection == 0;
}

/* Clients that are sent away meanwhile are told whom to try. */
static int32_t handed_to(const struct node *node)
{
    bool handed = node->transfer.active && node->transfer.handed;
    return handed && node->role != NODE_SERVING ? node->transfer.target : -1;
}

static void update_view(struct node *node, const struct raft_info *info)
{
    const struct raft_view *known = raft_known(node->raft);
    struct group_view *view = &node->view;
    int32_t leader = -1;
    if (node->role == NODE_SERVING)
        leader = view->self_id;
    else if (known->leader != RAFT_NOBODY && known->leader != view->self_id &&
             info->leader == known->leader && info->term == known->epoch &&
             !leader_is_suspect(node, known->leader)) {
        leader = known->leader;
    }
    if (leader < 0 && view->leader_id >= 0) node->leader_lost_us = node_now(node);
    if (leader >= 0 && leader != view->leader_id) {
        node->leader_changes++;
        if (node->leader_lost_us >= 0) {
            node->last_failover_us = node_now(node) - node->leader_lost_us;
        }
        log_info("leader_is replica=%d epoch=%lld", leader, (long long)known->epoch);
    }
    view->leader_id = leader;
    view->successor_id = leader < 0 ? handed_to(node) : -1;
    if (known->epoch > view->epoch) view->epoch = (int32_t)known->epoch;
    view->serving = node->role == NODE_SERVING;
    view->group = raft_group(node->raft);
    view->isr_count = 0;
    for (int i = 0; i < known->isr.count && i < GROUP_MEMBERS_MAX; i++) {
        view->isr[view->isr_count++] = known->isr.ids[i];
    }
    /* The minimum in force is the leader's (F52). */
    view->min_insync = node->role == NODE_SERVING || known->min_insync == 0
                           ? node->options.config.min_insync
                           : known->min_insync;
    if (node->leader == NULL) view->in_sync_now = 0;
}

void node_group_changed(struct node *node)
{
    struct raft_info info;
    if (node->raft == NULL) return;
    raft_get_info(node->raft, &info);
    node_follow_again(node);
    update_view(node, &info);
    if (node->leader != NULL) tell_leader(node);
    broker_view_changed(node->options.broker);
    if (node->transfer.active && node->transfer.handed && node->role != NODE_SERVING &&
        node->view.leader_id >= 0) {
        node_transfer_ended(node, STATUS_OK, "");
    }
}

void node_contact_changed(struct node *node, const struct peer *peer)
{
    if (node->raft == NULL || raft_known(node->raft)->leader != node->member_ids[peer->index])
        return;
    struct raft_info info;
    int32_t before = node->view.leader_id;
    raft_get_info(node->raft, &info);
    update_view(node, &info);
    if (node->view.leader_id != before) broker_view_changed(node->options.broker);
}

/* ---- to the top and back ---- */

void node_became_leader(struct node *node, bool caretaker)
{
    stop_following(node);
    node->role = caretaker ? NODE_CARETAKER : NODE_PENDING;
    node->leadership++;
    node->won_us = node_now(node);
    node->tail_synced = node->promoted = false;
    node_raft_links_open(node);
    node_group_changed(node);
}

void node_serve_if_ready(struct node *node)
{
    if (node->role != NODE_PENDING || node->leader == NULL) return;
    if (!node->tail_synced || !node->promoted) return;
    node->role = NODE_SERVING;
    if (!node_is_solo(node)) {
        node_group_changed(node);
    } else {
        node->view.serving = true;
        node->view.leader_id = node->view.self_id;
    }
    leader_serving(node->leader);
    node->view.in_sync_now = __builtin_popcount(leader_in_sync_now(node->leader));
    log_info("serving epoch=%d after_us=%lld", node->view.epoch,
             (long long)(node_now(node) - node->won_us));
    broker_view_changed(node->options.broker);
    broker_serving_began(node->options.broker);
}

/* What waits for the tail and the coordinators of one leadership; kept by the node until both have
 * called back. */
struct node_promotion {
    struct node_promotion *next;
    struct node *node;
    uint64_t leadership;
    int open;
};

/* NULL: that leadership is over. */
static struct node *promotion_end(struct node_promotion *promotion)
{
    struct node *node = promotion->node;
    bool current = promotion->leadership == node->leadership && node->role == NODE_PENDING &&
                   node->leader != NULL;
    if (--promotion->open == 0) {
        struct node_promotion **at = &node->promotions;
        while (*at != promotion)
            at = &(*at)->next;
        *at = promotion->next;
        free(promotion);
    }
    return current ? node : NULL;
}

void node_promotions_free(struct node *node)
{
    struct node_promotion *promotion;
    while ((promotion = node->promotions) != NULL) {
        node->promotions = promotion->next;
        free(promotion);
    }
}

static void step_down(struct node *node, enum raft_stepped_down why)
{
    struct raft_event event = {.kind = RAFT_EVENT_STEP_DOWN, .step_down.why = why};
    (void)node_step(node, &event, NULL, NULL);
}

static void tail_synced(void *context, enum status status, const struct error *error)
{
    struct node *node = promotion_end(context);
    if (node == NULL) return;
    (void)FAILPOINT("promote.tail_synced");
    if (status != STATUS_OK) {
        log_error("tail_not_synced error=\"%s\"", error->text);
        step_down(node, RAFT_DOWN_DISK);
        return;
    }
    node->tail_synced = true;
    node_serve_if_ready(node);
}

static void promoted(void *context, enum status status, const struct error *error)
{
    struct node *node = promotion_end(context);
    if (node == NULL) return;
    (void)FAILPOINT("promote.coordinators");
    if (status != STATUS_OK) {
        log_error("not_promoted error=\"%s\"", error->text);
        step_down(node, RAFT_DOWN_ORDERED);
        return;
    }
    node->promoted = true;
    node_serve_if_ready(node);
}

void node_claim_committed(struct node *node, int32_t epoch)
{
    ASSERT(node->role == NODE_PENDING && node->leader == NULL);
    (void)FAILPOINT("promote.claim");
    node->view.epoch = epoch;
    if (node_ends_are_due(node))
        node_ends_begin(node, epoch);
    else
        node_take_over(node, epoch);
}

void node_take_over(struct node *node, int32_t epoch)
{
    ASSERT(node->role == NODE_PENDING && node->leader == NULL);
    node->sure = true;
    struct broker *broker = node->options.broker;
    struct topic *topic = NULL;
    while ((topic = catalog_next(broker, topic)) != NULL) {
        for (uint32_t i = 0; i < topic_partition_count(topic); i++) {
            partition_begin_epoch(topic_partition(topic, i), epoch);
        }
    }
    node_make_leader(node, epoch);
    node_group_changed(node);
    struct node_promotion *promotion = calloc(1, sizeof(*promotion));
    ASSERT(promotion != NULL);
    *promotion = (struct node_promotion){node->promotions, node, node->leadership, 2};
    node->promotions = promotion;
    log_store_flush(broker_log_store(broker), tail_synced, promotion);
    broker_promote(broker, epoch, promoted, promotion);
}

void node_stepped_down(struct node *node, enum raft_stepped_down why)
{
    log_info("stepped_down epoch=%d role=%d why=%d", node->view.epoch, (int)node->role, (int)why);
    bool served = node->role == NODE_SERVING || node->role == NODE_PENDING;
    node->role = NODE_FOLLOWER;
    node->leadership++;
    node->verifying = 0;
    node_ends_free(node);
    node_raft_links_close(node);
    if (node->leader != NULL) {
        struct leader *leader = node->leader;
        node->leader = NULL;
        leader_free(leader, -1, node->view.epoch);
    }
    node->view.serving = false;
    node->view.leader_id = -1;
    node->view.successor_id = handed_to(node);
    node->leader_lost_us = node_now(node);
    node_confirms_fail(node);
    if (served) broker_demoted(node->options.broker);
    node_set_paused(node);
    node_group_changed(node);
    if (node->transfer.active && !node->transfer.handed) {
        node_transfer_ended(node, STATUS_NOT_LEADER, "leadership was lost meanwhile");
    }
}

/* ---- amnesia ---- */

/* The core goes, and with it all that hangs on it. */
static void drop_raft(struct node *node)
{
    stop_following(node);
    node_links_free(node);
    node_requests_drop(node);
    struct raft_info info;
    raft_get_info(node->raft, &info);
    node->dropped_term = info.term;
    raft_free(node->raft);
    node->raft = NULL;
    node->raft_life++;
    node->persist_wanted = false;
    timer_stop(node->raft_timer);
    node->view.leader_id = -1;
    broker_view_changed(node->options.broker);
}

static void begin_shedding(void *context)
{
    struct node *node = context;
    if (node->role != NODE_FOLLOWER || node->stopping || node->raft == NULL) return;
    drop_raft(node);
    node->dropped_term = 0;
    node->sure = false; /* its own disk spoke against it */
    node->identity.incarnation = uuid_random(&node->random);
    node_shed(node);
}

/* Vote and Raft log are gone, and the new incarnation is on disk: a learner from here on. */
void node_shed_done(struct node *node, enum status status)
{
    if (node->stopping || node->role == NODE_STOPPED) return;
    if (status != STATUS_OK) {
        node_raft_file_failed(
            node); /* read again after a while: the new incarnation fits no file */
        return;
    }
    node_raft_begin(node, NULL);
    node_persist_raft(node);
    node_links_begin(node);
    node_group_changed(node);
}

/* ---- a Raft file that could not be written ---- */

static void reopen_fire(void *context)
{
    struct node *node = context;
    if (node->stopping || node->shedding || node->role != NODE_FOLLOWER) return;
    if (node_files_busy(node)) {
        timer_start(node->reopen_timer, REOPEN_US_MIN);
        return;
    }
    if (node->raft != NULL) drop_raft(node);
    node_reopen(node);
}

/* The core answers nothing any more (F41), and nothing that depended on the failed write was ever
 * said. What the disk holds is where a restart would begin; so after a while this does. */
void node_raft_file_failed(struct node *node)
{
    node->reopen_us = node->reopen_us == 0 ? REOPEN_US_MIN : node->reopen_us * 2;
    if (node->reopen_us > REOPEN_US_MAX) node->reopen_us = REOPEN_US_MAX;
    if (node->reopen_timer == NULL) {
        node->reopen_timer = timer_new(node->options.loop, reopen_fire, node);
    }
    timer_start(node->reopen_timer, node->reopen_us);
}

void node_reopened(struct node *node, enum status status, const struct raft_state *state)
{
    if (node->stopping || node->role == NODE_STOPPED) return;
    bool lost = status == STATUS_NOT_FOUND || status == STATUS_CORRUPT;
    bool other = status == STATUS_OK &&
                 raft_judge_restart(node->view.self_id, &node->identity.incarnation, state) ==
                     RAFT_RESTART_NEW_INCARNATION;
    if (lost || other) {
        node->identity.incarnation = uuid_random(&node->random);
        node_shed(node);
    } else if (status != STATUS_OK) {
        node_raft_file_failed(node);
    } else {
        log_info("raft_file_reopened term=%lld", (long long)state->term);
        node_raft_begin(node, state);
        node_links_begin(node);
        node_group_changed(node);
    }
}

/* The leader found that a durable position went back: another incarnation from here on, copies
 * kept, vote and Raft log shed (S6 rule 4). Not from inside the follower's own callback. */
void node_amnesia(void *context)
{
    struct node *node = context;
    node_raise_alarm(node, ALARM_DURABLE_WENT_BACK,
                     "the leader knows a higher durable offset of this replica than it holds");
    if (node->amnesia_timer == NULL) {
        node->amnesia_timer = timer_new(node->options.loop, begin_shedding, node);
    }
    timer_start(node->amnesia_timer, 0);
}
