/* node.c: life of a replica: made, started, ticking, stopped. */
#include "replication/node_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/log.h"
#include "base/mutant.h"

/* SIGTERM: how long a successor is looked for, and how often. */
#define STOP_US_MAX  5000000
#define STOP_POLL_US 20000
#define STOP_REST_US 3000

void node_raise_alarm(struct node *node, enum node_alarm alarm, const char *text)
{
    if (!alarms_raise(&node->alarms, alarm, text, node_now(node))) return;
    log_error("alarm kind=%s text=\"%s\"", alarm_name(alarm), text);
}

void node_alarm_by_name(void *context, const char *kind, const char *text)
{
    node_raise_alarm(context, alarm_of_name(kind), text);
}

bool node_alarm_count(const struct node *node, uint32_t index, const char **kind, uint64_t *count)
{
    if (index >= ALARM_COUNT) return false;
    *kind = alarm_name((enum node_alarm)index);
    *count = node->alarms.counts[index];
    return true;
}

int node_member_index(const struct node *node, int32_t id)
{
    for (uint32_t i = 0; i < node->member_count; i++) {
        if (node->member_ids[i] == id) return (int)i;
    }
    return -1;
}

static const struct replication_peer *config_of(const struct node *node, int32_t id)
{
    const struct replication_config *config = &node->options.config;
    for (uint32_t i = 0; i < config->peer_count; i++) {
        if (config->peers[i].id == id) return &config->peers[i];
    }
    return NULL;
}

/* Members in ascending order of ids, this replica among them. */
static void gather_members(struct node *node)
{
    const struct replication_config *config = &node->options.config;
    raft_ids_add(&node->raft_members, config->replica_id);
    for (uint32_t i = 0; i < config->peer_count; i++) {
        bool added = raft_ids_add(&node->raft_members, config->peers[i].id);
        ASSERT(added);
    }
    node->member_count = (uint32_t)node->raft_members.count;
    raft_members_hash(&node->raft_members, node->members_text);
    for (int i = 0; i < 8; i++) {
        char pair[3] = {node->members_text[2 * i], node->members_text[2 * i + 1], '\0'};
        node->members_hash[i] = (uint8_t)strtoul(pair, NULL, 16);
    }
    node->view.member_count = node->member_count;
    for (uint32_t i = 0; i < node->member_count; i++) {
        int32_t id = node->raft_members.ids[i];
        struct group_member *member = &node->view.members[i];
        node->member_ids[i] = member->id = id;
        const struct replication_peer *peer = config_of(node, id);
        const char *host = peer == NULL ? config->client_host : peer->client_host;
        snprintf(member->client_host, sizeof(member->client_host), "%s", host);
        member->client_port = peer == NULL ? config->client_port : peer->client_port;
        if (peer == NULL) node->self = i;
        node->peers[i].node = node;
        node->peers[i].index = i;
        node->peers[i].config = peer;
    }
}

static void tick_fire(void *context);
static void raft_fire(void *context)
{
    struct node *node = context;
    struct raft_event event = {.kind = RAFT_EVENT_TICK};
    if (node->raft != NULL) (void)node_step(node, &event, NULL, NULL);
}

struct node *node_new(const struct node_options *options)
{
    struct node *node = calloc(1, sizeof(*node));
    if (node == NULL) return NULL;
    node->options = *options;
    random_seed(&node->random, options->random_seed);
    node->began_us = node_now(node);
    gather_members(node);
    node->view.self_id = options->config.replica_id;
    node->view.leader_id = node->view.successor_id = node->view.epoch = -1;
    node->view.min_insync = options->config.enabled ? options->config.min_insync : 1;
    node->follow_leader = node->follow_epoch = node->last_followed_leader = -1;
    node->last_isr_us = node->leader_lost_us = -1;
    node->raft_timer = timer_new(options->loop, raft_fire, node);
    node->tick_timer = timer_new(options->loop, tick_fire, node);
    node_install_port(node);
    return node;
}

void node_free(struct node *node)
{
    if (node == NULL) return;
    if (node->leader != NULL) leader_free(node->leader, -1, node->view.epoch);
    if (node->follow != NULL) follow_free(node->follow, true);
    node_static_free(node);
    node_forwards_free(node);
    node_hashings_free(node);
    node_ends_free(node);
    node_links_free(node);
    node_requests_drop(node);
    struct node_confirm *confirm;
    while ((confirm = node->confirms) != NULL) {
        node->confirms = confirm->next;
        free(confirm);
    }
    timer_free(node->raft_timer);
    timer_free(node->tick_timer);
    timer_free(node->confirm_timer);
    timer_free(node->stop_timer);
    timer_free(node->amnesia_timer);
    timer_free(node->reopen_timer);
    node_files_free(node);
    node_start_free(node);
    node_promotions_free(node);
    raft_free(node->raft);
    for (int i = 0; i < NODE_STEP_DEPTH_MAX; i++)
        free(node->actions[i]);
    free(node);
}

void node_start(struct node *node, broker_done_fn done, void *context)
{
    node->started = done;
    node->started_context = context;
    node_start_files(node);
}

void node_finish_start(struct node *node, enum status status, const struct error *error)
{
    broker_done_fn done = node->started;
    node->started = NULL;
    if (status == STATUS_OK && node->role == NODE_STARTING) node->role = NODE_FOLLOWER;
    if (done != NULL) done(node->started_context, status, error);
}

/* ---- ticking ---- */

void node_tick_start(struct node *node)
{
    node->last_tick_us = node_now(node);
    timer_start(node->tick_timer, NODE_TICK_US);
}

/* An own disk that does not finish a sync: no heartbeat leaves, so that the others elect (F43). */
static void watch_disk(struct node *node, int64_t now)
{
    int64_t since = log_store_commit_started_us(broker_log_store(node->options.broker));
    bool stalled = since > 0 && now - since > node->options.config.election_timeout_us;
    if (MUTANT(28)) stalled = false;
    if (stalled == node->quiet) return;
    node->quiet = stalled;
    log_warn("own_disk stalled=%d since_ms=%lld", stalled,
             since > 0 ? (long long)((now - since) / 1000) : 0LL);
    struct raft_event event = {.kind = RAFT_EVENT_QUIET, .quiet.on = stalled};
    (void)node_step(node, &event, NULL, NULL);
}

/* Contact is proved in the direction data flows: without fetches a leader steps down (F14). */
static void watch_fetches(struct node *node)
{
    const struct replication_config *config = &node->options.config;
    int64_t limit = 2 * config->max_fetch_wait_us + config->election_timeout_us;
    if (node->role != NODE_SERVING || MUTANT(9)) return;
    if (leader_fetch_contact_age_us(node->leader) <= limit) return;
    log_warn("leader_without_fetches epoch=%d", node->view.epoch);
    struct raft_event event = {.kind = RAFT_EVENT_STEP_DOWN, .step_down.why = RAFT_DOWN_NO_FETCH};
    (void)node_step(node, &event, NULL, NULL);
}

/* A peer under another incarnation than the recorded one is admitted by an entry (Amnesia). */
static void admit_incarnations(struct node *node, int64_t now)
{
    if (node->role != NODE_SERVING || raft_change_pending(node->raft)) return;
    for (uint32_t i = 0; i < node->member_count; i++) {
        struct peer *peer = &node->peers[i];
        if (i == node->self || !peer->heard || uuid_is_none(&peer->incarnation)) continue;
        if (raft_view_records(raft_known(node->raft), node->member_ids[i], &peer->incarnation)) {
            continue;
        }
        if (now - peer->incarnation_proposed_us < 100000) continue;
        peer->incarnation_proposed_us = now;
        struct raft_event event = {.kind = RAFT_EVENT_PROPOSE};
        event.propose.kind = RAFT_ENTRY_INCARNATION;
        event.propose.replica = node->member_ids[i];
        event.propose.incarnation = peer->incarnation;
        if (node_step(node, &event, NULL, NULL) == STATUS_OK) {
            char text[120], uuid[UUID_TEXT_BYTES];
            snprintf(text, sizeof(text), "replica %d is now incarnation %s", node->member_ids[i],
                     uuid_format(&peer->incarnation, uuid));
            node_raise_alarm(node, ALARM_INCARNATION_CHANGED, text);
            return;
        }
    }
}

static void tick_fire(void *context)
{
    struct node *node = context;
    int64_t now = node_now(node);
    int64_t gap = now - node->last_tick_us - NODE_TICK_US;
    node->last_tick_us = now;
    timer_start(node->tick_timer, NODE_TICK_US);
    if (gap > node->options.config.heartbeat_us) node_loop_gap(node, gap);
    if (node->raft != NULL) {
        watch_disk(node, now);
        watch_fetches(node);
        node_update_condition(node);
        admit_incarnations(node, now);
    }
    node_files_tick(node);
    if (node->leader != NULL) leader_tick(node->leader);
    if (node_is_solo(node)) node_solo_tick(node);
    node_static_tick(node);
    node_hand_over_damaged(node);
    node_transfer_poll(node);
}

/* A round begun after the gap ended: this was the leader then. */
static void verified(void *context, enum status status, const struct error *error)
{
    struct node *node = context;
    (void)error;
    if (status != STATUS_OK || node->verifying == 0)
        return; /* leadership went, and the pause too */
    node->verifying--;
    node_set_paused(node);
}

void node_loop_gap(struct node *node, int64_t gap_us)
{
    if (node->raft == NULL || gap_us <= node->options.config.heartbeat_us) return;
    log_warn("loop_gap ms=%lld role=%d", (long long)(gap_us / 1000), (int)node->role);
    node->last_tick_us = node_now(node);
    if (node->leader != NULL) leader_forgive(node->leader);
    if (MUTANT(27)) return;
    if (node->role == NODE_SERVING) {
        /* Before one queued request is served: is this still the leader? */
        node->verifying++;
        node_set_paused(node);
    }
    struct raft_event event = {.kind = RAFT_EVENT_TICK};
    (void)node_step(node, &event, NULL, NULL);
    if (node->role != NODE_SERVING || node->verifying == 0) return;
    const struct group_port *port = broker_group_port(node->options.broker);
    port->confirm(port->context, verified, node);
}

/* ---- stopping ---- */

/* Nothing is said or promised any more; what is being written gets to its end. */
static void stop_finished(void *context)
{
    struct node *node = context;
    if (node_files_busy(node) || node_static_busy(node)) {
        timer_start(node->stop_timer, STOP_POLL_US);
        return;
    }
    broker_done_fn done = node->stopped;
    node->stopped = NULL;
    if (done != NULL) done(node->stopped_context, node->stop_status, &node->stop_error);
}

static void broker_stopped(void *context, enum status status, const struct error *error)
{
    struct node *node = context;
    node->role = NODE_STOPPED;
    node->stop_status = status;
    if (error != NULL) node->stop_error = *error;
    node_links_free(node);
    node_requests_drop(node);
    timer_stop(node->raft_timer);
    timer_start(node->stop_timer, 0);
}

static void stop_now(struct node *node)
{
    timer_stop(node->tick_timer);
    timer_stop(node->raft_timer);
    if (node->raft != NULL && (node->role == NODE_SERVING || node->role == NODE_PENDING)) {
        struct raft_event event = {.kind = RAFT_EVENT_STEP_DOWN,
                                   .step_down.why = RAFT_DOWN_ORDERED};
        (void)node_step(node, &event, NULL, NULL);
    }
    if (node->follow != NULL) follow_free(node->follow, false);
    node->follow = NULL;
    node->stop_begun = true;
    node_static_stop(node);
    broker_stop(node->options.broker, broker_stopped, node);
}

/* The successor's claim is known: answers that wait go out, and soon after the rest of the stop
 * follows: until this replica is gone it is in the set without fetching, and acks=all waits for it.
 * Not handed over: another may come within sync yet. */
static void stop_transferred(void *context, enum status status, const struct error *error)
{
    struct node *node = context;
    if (status == STATUS_OK) {
        log_info("leadership_handed_over leader=%d", node->view.leader_id);
        timer_start(node->stop_timer, STOP_REST_US);
    } else {
        log_warn("leadership_not_handed_over error=\"%s\"", error->text);
        timer_start(node->stop_timer, STOP_POLL_US);
    }
}

static void stop_go_on(void *context)
{
    struct node *node = context;
    int64_t left_us = node->stop_deadline_us - node_now(node);
    if (node->role == NODE_STOPPED)
        stop_finished(node);
    else if (node->stop_begun)
        return;
    else if (node->role == NODE_SERVING && !node_is_solo(node) && left_us > 0 &&
             node_reaches_anyone(node))
        node_transfer_begin(node, -1, left_us, stop_transferred, node);
    else
        stop_now(node);
}

void node_stop(struct node *node, broker_done_fn done, void *context)
{
    node->stopped = done;
    node->stopped_context = context;
    node->stopping = true;
    node->stop_deadline_us = node_now(node) + STOP_US_MAX;
    node->stop_timer = timer_new(node->options.loop, stop_go_on, node);
    timer_start(node->stop_timer, 0);
}

/* ---- facts ---- */

uint32_t node_mask_of(const struct node *node, const struct raft_ids *ids)
{
    uint32_t mask = 0;
    for (int i = 0; i < ids->count; i++) {
        int index = node_member_index(node, ids->ids[i]);
        if (index >= 0) mask |= 1u << index;
    }
    return mask;
}

void node_facts(const struct node *node, struct node_facts *out)
{
    memset(out, 0, sizeof(*out));
    out->id = node->view.self_id;
    out->leader_serving = node->view.serving;
    out->epoch = node->view.epoch;
    out->leader_id = node->view.leader_id;
    out->group = node->identity.group;
    out->incarnation = node->identity.incarnation;
    out->elections = node->elections;
    out->leader_changes = node->leader_changes;
    out->isr_shrinks = node->isr_shrinks;
    out->isr_expands = node->isr_expands;
    out->truncations = node->truncations;
    out->fetched_records = node->fetched_records;
    out->last_failover_us = node->last_failover_us;
    for (int i = 0; i < ALARM_COUNT; i++)
        out->alarms += node->alarms.counts[i];
    out->raft_leader_id = RAFT_NOBODY;
    if (node->broker_ready) out->manifest = catalog_version(node->options.broker);
    out->manifest_committed = node->leader != NULL ? leader_committed_manifest(node->leader)
                                                   : (struct manifest_version){-1, 0};
    out->raft_life = node->raft_life;
    out->raft_term = node->dropped_term;
    if (node->raft == NULL) {
        out->isr_mask = out->waited_mask = node_is_solo(node) ? 1 : 0;
        return;
    }
    struct raft_info info;
    struct raft_ids waited;
    raft_get_info(node->raft, &info);
    raft_waited_on(node->raft, &waited);
    out->raft_leader = info.role == RAFT_ROLE_LEADER;
    out->caretaker = info.caretaker;
    out->electing = info.leader == RAFT_NOBODY;
    out->raft_term = info.term;
    out->raft_leader_id = info.leader;
    out->raft_commit_index = info.commit;
    out->isr_mask = node_mask_of(node, &raft_known(node->raft)->isr);
    out->waited_mask = node_mask_of(node, &waited);
    out->change_pending = raft_change_pending(node->raft);
    out->elections = info.elections;
}

int64_t node_raft_term_of(const struct node *node, int64_t index)
{
    return node->raft == NULL ? -1 : raft_term_of(node->raft, index);
}

uint32_t node_followers(const struct node *node, struct node_follower_facts out[GROUP_MEMBERS_MAX])
{
    uint32_t count = 0;
    if (node->leader == NULL) return 0;
    for (uint32_t i = 0; i < node->member_count; i++) {
        if (i == node->self) continue;
        struct leader_follower_facts facts;
        leader_follower_facts(node->leader, i, &facts);
        out[count++] = (struct node_follower_facts){
            .id = node->member_ids[i],
            .in_isr = node->raft != NULL &&
                      raft_ids_contain(&raft_known(node->raft)->isr, node->member_ids[i]),
            .learner = facts.learner,
            .connected = facts.connected,
            .lag_records = facts.lag_records,
            .lag_bytes = facts.lag_bytes,
            .last_contact_us_ago = facts.last_contact_us,
            .durable_lag_us = facts.durable_lag_us,
            .refusal = node->peers[i].refusal[0] == '\0' ? NULL : node->peers[i].refusal,
        };
    }
    return count;
}
