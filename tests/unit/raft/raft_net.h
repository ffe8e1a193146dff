/* raft_net.h: a group of Raft cores, a bag of messages and disks, for tests.
 *
 * Nothing happens by itself: tests deliver, drop and repeat packets, finish writes, crash, wipe and
 * restart nodes, and move the clock; net_settle() does it fairly. After every step the net checks
 * what must always hold and keeps the first violation as text. Included, not linked.           */
#ifndef MOONMQ_TESTS_RAFT_NET_H
#define MOONMQ_TESTS_RAFT_NET_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/buffer.h"
#include "base/memory.h"
#include "raft/raft.h"
#include "raft/raft_json.h"

#define NET_NODES_MAX   5
#define NET_PACKETS_MAX 96
#define NET_ENTRIES_MAX 4096
#define NET_TERMS_MAX   4096
#define NET_MS          INT64_C(1000)
#define NET_T           (1000 * NET_MS) /* election timeout */

enum packet_kind { PACKET_REQUEST, PACKET_ANSWER, PACKET_FAILED };

struct packet {
    enum packet_kind kind;
    int from, to;
    uint32_t caller_boot;
    uint64_t call;
    struct raft_sender sender;
    struct raft_message message;
    struct raft_entry *entries; /* owned */
};

struct net_request { /* arrived, not answered yet */
    uint64_t token;
    int from;
    uint32_t caller_boot;
    uint64_t call;
};

struct node {
    int index;
    struct raft *raft; /* NULL: down */
    uint32_t boot;
    /* Disk. */
    struct uuid incarnation;
    struct uuid group;
    struct raft_state *disk; /* NULL: none */
    bool holds_records;
    /* Writes under way. */
    struct raft_state *writing;
    uint64_t writing_generation;
    bool identity_writing;
    struct uuid identity_group;
    /* What the last step said. */
    bool persist_wanted;
    int64_t deadline_us;
    bool leads, serves, caretaker;
    int64_t epoch;
    int64_t commit_seen;
    uint64_t confirmed;
    uint64_t confirms;
    int alarms[8];
    enum raft_stepped_down down_why;
    int step_downs;
    int transfers_failed;
    int32_t follows;
    bool hurt; /* wiped, and not a complete member of the ISR again */
    struct net_request requests[64];
    int request_count;
};

struct net_vote {
    int node;
    struct uuid incarnation;
    int64_t term;
    int32_t candidate;
};

struct net {
    int n;
    struct random random;
    int64_t now_us;
    struct node nodes[NET_NODES_MAX];
    bool cut[NET_NODES_MAX][NET_NODES_MAX]; /* [from][to]: nothing passes */
    struct packet packets[NET_PACKETS_MAX];
    int packet_count;
    uint64_t next_token;
    struct raft_options options; /* for all */
    /* History. */
    int64_t committed_count;
    struct {
        int64_t term;
        enum raft_entry_kind kind;
        struct uuid group;
    } committed[NET_ENTRIES_MAX];
    int leader_by_term[NET_TERMS_MAX]; /* 1 + node, of bound leaders and of committed claims */
    struct net_vote votes[NET_TERMS_MAX];
    int vote_count;
    int64_t claims, caretakers, installs, changes; /* how much happened */
    char violation[200];
    bool trace;
    struct raft_actions *out;
};

static inline __attribute__((format(printf, 2, 3))) void net_violate(struct net *net,
                                                                     const char *format, ...)
{
    if (net->violation[0] != '\0') return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(net->violation, sizeof(net->violation), format, arguments);
    va_end(arguments);
    if (net->trace) printf("VIOLATION %s\n", net->violation);
}

static inline __attribute__((format(printf, 2, 3))) void net_note(struct net *net,
                                                                  const char *format, ...)
{
    if (!net->trace) return;
    va_list arguments;
    va_start(arguments, format);
    printf("%9.3f ", (double)net->now_us / 1000.0);
    vprintf(format, arguments);
    putchar('\n');
    va_end(arguments);
}

static inline int net_id(int index)
{
    return index + 1;
}

static inline struct raft_info net_info(struct net *net, int i)
{
    struct raft_info info = {0};
    raft_get_info(net->nodes[i].raft, &info);
    return info;
}

static inline void net_dump(struct net *net)
{
    for (int i = 0; i < net->n && net->trace; i++) {
        if (net->nodes[i].raft == NULL) {
            printf("  %d down\n", net_id(i));
            continue;
        }
        struct raft_info info = net_info(net, i);
        const struct raft_view *view = raft_known(net->nodes[i].raft);
        printf("  %d role=%d term=%" PRId64 " leader=%d last=%" PRId64 "/%" PRId64
               " commit=%" PRId64 " bound=%d learner=%d eligible=%d pending=%d isr=",
               net_id(i), (int)info.role, info.term, info.leader, info.last_index, info.last_term,
               info.commit, info.bound, info.learner, info.eligible,
               raft_change_pending(net->nodes[i].raft));
        for (int k = 0; k < view->isr.count; k++)
            printf("%d ", view->isr.ids[k]);
        for (int j = 0; j < net->n; j++) {
            printf(" match%d=%" PRId64, net_id(j), raft_match(net->nodes[i].raft, net_id(j)));
        }
        printf("\n");
    }
}

/* ---- packets ------------------------------------------------------------------------------ */

static inline void net_drop_packet(struct net *net, int at)
{
    free(net->packets[at].entries);
    net->packets[at] = net->packets[--net->packet_count];
}

static inline void net_put_packet(struct net *net, const struct packet *packet)
{
    if (net->packet_count == NET_PACKETS_MAX) {
        int victim = (int)random_below(&net->random, NET_PACKETS_MAX);
        struct packet *lost = &net->packets[victim];
        bool request = lost->kind == PACKET_REQUEST;
        struct packet failed = {.kind = PACKET_FAILED,
                                .to = request ? lost->from : lost->to,
                                .caller_boot = lost->caller_boot,
                                .call = lost->call};
        free(lost->entries);
        *lost = failed;
        if (packet->kind == PACKET_FAILED) return;
        net_drop_packet(net, (victim + 1) % NET_PACKETS_MAX);
    }
    struct packet *put = &net->packets[net->packet_count++];
    *put = *packet;
    put->entries = NULL;
    bool append = packet->message.kind == RAFT_MESSAGE_APPEND;
    if (append && packet->kind == PACKET_REQUEST && packet->message.append.entry_count > 0) {
        size_t bytes = packet->message.append.entry_count * sizeof(struct raft_entry);
        put->entries = malloc(bytes);
        ASSERT(put->entries != NULL);
        memcpy(put->entries, packet->message.append.entries, bytes);
    }
    put->message.append.entries = append ? put->entries : put->message.append.entries;
}

/* ---- checks ------------------------------------------------------------------------------- */

static inline int64_t net_disk_last(const struct node *node)
{
    if (node->disk == NULL) return 0;
    return node->disk->snapshot_index + (int64_t)node->disk->entry_count;
}

static inline void net_check_vote(struct net *net, struct node *node, int64_t term,
                                  int32_t candidate)
{
    if (node->disk == NULL || node->disk->term < term ||
        (node->disk->term == term && node->disk->voted_for != candidate)) {
        net_violate(net, "vote of %d for %d in term %" PRId64 " left before it was durable",
                    net_id(node->index), candidate, term);
    }
    for (int i = 0; i < net->vote_count; i++) {
        const struct net_vote *vote = &net->votes[i];
        if (vote->node != node->index || vote->term != term) continue;
        if (!uuid_equal(&vote->incarnation, &node->incarnation)) continue;
        if (vote->candidate != candidate) {
            net_violate(net, "%d voted twice in term %" PRId64, net_id(node->index), term);
        }
        return;
    }
    if (net->vote_count == NET_TERMS_MAX) return;
    net->votes[net->vote_count++] = (struct net_vote){.node = node->index,
                                                      .incarnation = node->incarnation,
                                                      .term = term,
                                                      .candidate = candidate};
}

static inline void net_check_answer(struct net *net, struct node *node,
                                    const struct raft_message *answer, int32_t asker)
{
    if (answer->kind == RAFT_MESSAGE_VOTE_ANSWER && answer->vote_answer.granted &&
        !answer->vote_answer.pre) {
        net_check_vote(net, node, answer->term, asker);
    }
    if (answer->kind == RAFT_MESSAGE_APPEND_ANSWER && answer->append_answer.ok) {
        if (net_disk_last(node) < answer->append_answer.match ||
            (node->disk == NULL ? 0 : node->disk->term) < answer->term) {
            net_violate(net, "%d answered an append before it was durable", net_id(node->index));
        }
    }
    if (answer->kind == RAFT_MESSAGE_SNAPSHOT_ANSWER && answer->snapshot_answer.ok &&
        net_disk_last(node) < answer->snapshot_answer.match) {
        net_violate(net, "%d answered a snapshot before it was durable", net_id(node->index));
    }
}

/* Until somebody has stored that it exists, a group may be founded anew. */
static inline bool net_is_void(const struct net *net, const struct uuid *group)
{
    for (int i = 0; i < net->n && !uuid_is_none(group); i++) {
        if (uuid_equal(&net->nodes[i].group, group)) return false;
    }
    return !uuid_is_none(group);
}

static inline void net_check_applied(struct net *net, struct node *node,
                                     const struct raft_entry *entry)
{
    int64_t at = entry->index;
    net->changes += entry->kind == RAFT_ENTRY_ISR || entry->kind == RAFT_ENTRY_INCARNATION;
    if (at >= NET_ENTRIES_MAX) return;
    struct uuid group = raft_entry_is_founding(entry) ? entry->claim.group : (struct uuid){0};
    if (at <= net->committed_count && net->committed[at].term != 0 &&
        !net_is_void(net, &net->committed[at].group)) {
        if (net->committed[at].term != entry->term || net->committed[at].kind != entry->kind ||
            !uuid_equal(&net->committed[at].group, &group)) {
            net_violate(net, "committed entry %" PRId64 " was overwritten (seen by %d)", at,
                        net_id(node->index));
        }
        return;
    }
    net->committed[at].term = entry->term;
    net->committed[at].kind = entry->kind;
    net->committed[at].group = group;
    if (at > net->committed_count) net->committed_count = at;
}

static inline void net_check_leader(struct net *net, struct node *node, int64_t term)
{
    if (term >= NET_TERMS_MAX) return;
    int *leader = &net->leader_by_term[term];
    if (*leader != 0 && *leader != node->index + 1) {
        net_violate(net, "two leaders in term %" PRId64, term);
    }
    *leader = node->index + 1;
}

/* A leader whose claim is committed holds everything ever committed. */
static inline void net_check_complete(struct net *net, struct node *node)
{
    struct raft_state *state = raft_state_copy(node->raft);
    ASSERT(state != NULL);
    int64_t last = state->snapshot_index + (int64_t)state->entry_count;
    for (int64_t at = state->snapshot_index + 1; at <= net->committed_count; at++) {
        if (net->committed[at].term == 0) continue;
        if (at > last ||
            state->entries[at - state->snapshot_index - 1].term != net->committed[at].term) {
            net_violate(net, "leader %d lacks committed entry %" PRId64, net_id(node->index), at);
        }
    }
    free(state);
}

/* ---- steps -------------------------------------------------------------------------------- */

static inline enum status net_step(struct net *net, int i, struct raft_event *event);

static inline struct raft_sender net_sender(struct net *net, int i)
{
    return (struct raft_sender){.id = net_id(i),
                                .incarnation = net->nodes[i].incarnation,
                                .group = raft_group(net->nodes[i].raft)};
}

static inline void net_on_call(struct net *net, struct node *node, const struct raft_action *action)
{
    const struct raft_message *message = &action->call.message;
    if (message->kind == RAFT_MESSAGE_VOTE && !message->vote.pre) {
        net_check_vote(net, node, message->term, net_id(node->index));
    }
    struct packet packet = {
        .kind = PACKET_REQUEST,
        .from = node->index,
        .to = action->call.peer - 1,
        .caller_boot = node->boot,
        .call = action->call.call,
        .sender = net_sender(net, node->index),
        .message = *message,
    };
    net_put_packet(net, &packet);
}

static inline bool net_take_request(struct node *node, uint64_t token, struct net_request *out)
{
    for (int i = 0; i < node->request_count; i++) {
        if (node->requests[i].token != token) continue;
        *out = node->requests[i];
        node->requests[i] = node->requests[--node->request_count];
        return true;
    }
    return false;
}

static inline void net_on_answer(struct net *net, struct node *node, uint64_t token,
                                 const struct raft_message *message)
{
    struct net_request request;
    if (!net_take_request(node, token, &request)) {
        net_violate(net, "%d answered twice", net_id(node->index));
        return;
    }
    struct packet packet = {
        .kind = message == NULL ? PACKET_FAILED : PACKET_ANSWER,
        .from = node->index,
        .to = request.from,
        .caller_boot = request.caller_boot,
        .call = request.call,
    };
    if (message != NULL) {
        packet.message = *message;
        packet.sender = net_sender(net, node->index);
        net_check_answer(net, node, message, net_id(request.from));
    }
    net_put_packet(net, &packet);
}

static inline void net_on_action(struct net *net, struct node *node,
                                 const struct raft_action *action)
{
    int id = net_id(node->index);
    switch (action->kind) {
    case RAFT_ACTION_CALL: net_on_call(net, node, action); break;
    case RAFT_ACTION_ANSWER:
        net_on_answer(net, node, action->answer.token, &action->answer.message);
        break;
    case RAFT_ACTION_REFUSE: net_on_answer(net, node, action->refuse.token, NULL); break;
    case RAFT_ACTION_BECAME_LEADER:
        net_note(net, "%d leads term %" PRId64 "%s%s", id, action->became_leader.term,
                 action->became_leader.caretaker ? " as caretaker" : "",
                 action->became_leader.founding ? " founding" : "");
        node->leads = true;
        node->caretaker = action->became_leader.caretaker;
        net->caretakers += node->caretaker;
        /* A founding may have two in one term, if a voter was wiped between its votes. */
        if (!action->became_leader.founding) {
            net_check_leader(net, node, action->became_leader.term);
        }
        break;
    case RAFT_ACTION_CLAIM_COMMITTED:
        net_note(net, "%d serves epoch %" PRId64, id, action->claim_committed.epoch);
        node->serves = true;
        node->epoch = action->claim_committed.epoch;
        net->claims++;
        net_check_leader(net, node, action->claim_committed.epoch);
        net_check_complete(net, node);
        break;
    case RAFT_ACTION_STEPPED_DOWN:
        net_note(net, "%d steps down, why %d", id, (int)action->stepped_down.why);
        node->leads = node->serves = node->caretaker = false;
        node->down_why = action->stepped_down.why;
        node->step_downs++;
        break;
    case RAFT_ACTION_FOLLOWS: node->follows = action->follows.leader; break;
    case RAFT_ACTION_APPLIED: net_check_applied(net, node, &action->applied.entry); break;
    case RAFT_ACTION_INSTALLED: net->installs++; break;
    case RAFT_ACTION_BOUND:
        net_note(net, "%d is bound", id);
        node->identity_writing = true;
        node->identity_group = action->bound.group;
        break;
    case RAFT_ACTION_CONFIRMED:
        node->confirmed = action->confirmed.round;
        node->confirms++;
        break;
    case RAFT_ACTION_TRANSFER_FAILED: node->transfers_failed++; break;
    case RAFT_ACTION_ALARM: node->alarms[action->alarm.alarm]++; break;
    }
}

static inline void net_open_raft_links(struct net *net, int i);

static inline enum status net_step(struct net *net, int i, struct raft_event *event)
{
    struct node *node = &net->nodes[i];
    event->now_us = net->now_us;
    bool led = node->leads;
    enum status status = raft_step(node->raft, event, net->out);
    for (size_t a = 0; a < net->out->count; a++)
        net_on_action(net, node, &net->out->items[a]);
    node->persist_wanted = net->out->persist;
    node->deadline_us = net->out->deadline_us;
    struct raft_info info = net_info(net, i);
    if (info.commit < node->commit_seen) {
        net_violate(net, "commit of %d went back from %" PRId64 " to %" PRId64, net_id(i),
                    node->commit_seen, info.commit);
    }
    node->commit_seen = info.commit;
    uint64_t round = net->out->round;
    int64_t index = net->out->index;
    if (!led && node->leads) net_open_raft_links(net, i);
    net->out->round = round; /* for the test that asked */
    net->out->index = index;
    return status;
}

static inline void net_tick(struct net *net, int i)
{
    struct raft_event event = {.kind = RAFT_EVENT_TICK};
    (void)net_step(net, i, &event);
}

static inline void net_link(struct net *net, int i, int peer, enum raft_link link,
                            enum raft_link_state state)
{
    if (net->nodes[i].raft == NULL) return;
    struct raft_event event = {.kind = RAFT_EVENT_LINK,
                               .link = {.peer = net_id(peer), .link = link, .state = state}};
    (void)net_step(net, i, &event);
}

static inline void net_open_raft_links(struct net *net, int i)
{
    for (int j = 0; j < net->n; j++) {
        bool open = j != i && net->nodes[j].raft != NULL;
        if (open) net_link(net, i, j, RAFT_LINK_RAFT_OUT, RAFT_LINK_OPEN);
    }
}

/* What node i learns from a hello of node j. */
static inline void net_hello(struct net *net, int i, int j)
{
    if (net->nodes[i].raft == NULL || net->nodes[j].raft == NULL) return;
    struct raft_sender sender = net_sender(net, j);
    struct raft_event event = {.kind = RAFT_EVENT_HELLO,
                               .hello = {.sender = sender,
                                         .members_equal = true,
                                         .fresh = uuid_is_none(&sender.group) &&
                                                  uuid_is_none(&net->nodes[j].identity_group),
                                         .holds_records = net->nodes[j].holds_records}};
    (void)net_step(net, i, &event);
}

/* i and j (re)connect: hello both ways, then control links, and raft links of who leads. */
static inline void net_connect(struct net *net, int i, int j)
{
    net_hello(net, i, j);
    net_hello(net, j, i);
    net_link(net, i, j, RAFT_LINK_CONTROL_OUT, RAFT_LINK_OPEN);
    net_link(net, j, i, RAFT_LINK_CONTROL_OUT, RAFT_LINK_OPEN);
    if (net->nodes[i].leads) net_link(net, i, j, RAFT_LINK_RAFT_OUT, RAFT_LINK_OPEN);
    if (net->nodes[j].leads) net_link(net, j, i, RAFT_LINK_RAFT_OUT, RAFT_LINK_OPEN);
}

/* ---- life of a node ----------------------------------------------------------------------- */

/* What is on disk goes through its file now and then. */
static inline void net_reread(struct net *net, struct node *node)
{
    if (node->disk == NULL || random_below(&net->random, 16) != 0) return;
    struct buffer file;
    buffer_init(&file, 0);
    raft_state_write(node->disk, &file);
    struct raft_state *read = NULL;
    struct error error = {0};
    if (raft_state_decode(buffer_slice(&file), &read, &error) != STATUS_OK) {
        net_violate(net, "state file of %d: %s", net_id(node->index), error.text);
    } else {
        free(node->disk);
        node->disk = read;
    }
    buffer_deinit(&file);
}

static inline void net_start(struct net *net, int i)
{
    struct node *node = &net->nodes[i];
    ASSERT(node->raft == NULL);
    net_reread(net, node);
    if (raft_judge_restart(net_id(i), &node->incarnation, node->disk) != RAFT_RESTART_KEEP ||
        uuid_is_none(&node->incarnation)) {
        node->incarnation = uuid_random(&net->random);
        free(node->disk);
        node->disk = NULL;
    }
    struct raft_options options = net->options;
    options.self = net_id(i);
    options.incarnation = node->incarnation;
    options.group = node->group;
    options.holds_records = node->holds_records;
    options.seed = random_u64(&net->random);
    options.now_us = net->now_us;
    node->boot++;
    node->raft = raft_new(&options, node->disk);
    node->leads = node->serves = node->caretaker = false;
    node->identity_writing = false;
    node->identity_group = node->group;
    node->request_count = 0;
    node->commit_seen = 0;
    node->follows = RAFT_NOBODY;
    net_note(net, "%d starts", net_id(i));
    net_tick(net, i);
    for (int j = 0; j < net->n; j++) {
        if (j == i) continue;
        if (net->nodes[j].raft != NULL) {
            net_connect(net, i, j);
        } else {
            net_link(net, i, j, RAFT_LINK_CONTROL_OUT, RAFT_LINK_REFUSED);
        }
    }
}

/* The process dies: what was not durable is gone; the others notice if `noticed`. */
static inline void net_crash(struct net *net, int i, bool noticed)
{
    struct node *node = &net->nodes[i];
    if (node->raft == NULL) return;
    net_note(net, "%d crashes", net_id(i));
    raft_free(node->raft);
    node->raft = NULL;
    free(node->writing);
    node->writing = NULL;
    node->identity_writing = false;
    node->leads = node->serves = node->caretaker = false;
    for (int j = 0; j < net->n; j++) {
        if (j == i || !noticed || net->nodes[j].raft == NULL) continue;
        net_link(net, j, i, RAFT_LINK_CONTROL_OUT, RAFT_LINK_REFUSED);
        net_link(net, j, i, RAFT_LINK_RAFT_OUT, RAFT_LINK_CLOSED);
        net_link(net, j, i, RAFT_LINK_RAFT_IN, RAFT_LINK_CLOSED);
    }
}

/* The DataDir of a node that is down is lost: whole, or only its Raft file. */
static inline void net_wipe(struct net *net, int i, bool only_raft_file)
{
    struct node *node = &net->nodes[i];
    ASSERT(node->raft == NULL);
    net_note(net, "%d is wiped%s", net_id(i), only_raft_file ? " (Raft file only)" : "");
    free(node->disk);
    node->disk = NULL;
    node->hurt = true;
    if (only_raft_file) return;
    node->group = (struct uuid){0};
    node->incarnation = (struct uuid){0};
    node->holds_records = false;
}

/* ---- disk --------------------------------------------------------------------------------- */

static inline void net_start_write(struct net *net, int i)
{
    struct node *node = &net->nodes[i];
    (void)net;
    if (node->raft == NULL || node->writing != NULL || !node->persist_wanted) return;
    node->writing = raft_state_copy(node->raft);
    ASSERT(node->writing != NULL);
    node->writing_generation = raft_generation(node->raft);
}

static inline void net_finish_write(struct net *net, int i)
{
    struct node *node = &net->nodes[i];
    if (node->raft == NULL || node->writing == NULL) return;
    if (node->disk != NULL && node->writing->term < node->disk->term) {
        net_violate(net, "term of %d went back on disk", net_id(i));
    }
    free(node->disk);
    node->disk = node->writing;
    node->writing = NULL;
    struct raft_event event = {.kind = RAFT_EVENT_PERSISTED,
                               .persisted = {.generation = node->writing_generation}};
    (void)net_step(net, i, &event);
}

static inline void net_finish_identity(struct net *net, int i)
{
    struct node *node = &net->nodes[i];
    if (node->raft == NULL || !node->identity_writing) return;
    node->group = node->identity_group;
    node->identity_writing = false;
    struct raft_event event = {.kind = RAFT_EVENT_IDENTITY_SYNCED};
    (void)net_step(net, i, &event);
}

/* ---- delivery ----------------------------------------------------------------------------- */

static inline void net_fail_call(struct net *net, const struct packet *packet, int caller)
{
    struct node *node = &net->nodes[caller];
    if (node->raft == NULL || node->boot != packet->caller_boot) return;
    struct raft_event event = {.kind = RAFT_EVENT_CALL_FAILED,
                               .call_failed = {.call = packet->call}};
    (void)net_step(net, caller, &event);
}

static inline void net_deliver_request(struct net *net, const struct packet *packet)
{
    struct node *node = &net->nodes[packet->to];
    if (node->raft == NULL || net->cut[packet->from][packet->to] || node->request_count == 64) {
        net_fail_call(net, packet, packet->from);
        return;
    }
    uint64_t token = ++net->next_token;
    node->requests[node->request_count++] = (struct net_request){
        .token = token,
        .from = packet->from,
        .caller_boot = packet->caller_boot,
        .call = packet->call,
    };
    struct raft_event event = {.kind = RAFT_EVENT_REQUEST,
                               .request = {.sender = packet->sender,
                                           .token = token,
                                           .version_applied = true,
                                           .message = &packet->message}};
    (void)net_step(net, packet->to, &event);
}

static inline void net_deliver_answer(struct net *net, const struct packet *packet)
{
    struct node *node = &net->nodes[packet->to];
    if (node->raft == NULL || node->boot != packet->caller_boot) return;
    if (net->cut[packet->from][packet->to]) {
        net_fail_call(net, packet, packet->to);
        return;
    }
    struct raft_event event = {
        .kind = RAFT_EVENT_ANSWER,
        .answer = {.sender = packet->sender, .call = packet->call, .message = &packet->message}};
    (void)net_step(net, packet->to, &event);
}

/* Delivers packet `at`; it stays in the bag if `keep` (a duplicate). */
static inline void net_deliver(struct net *net, int at, bool keep)
{
    struct packet packet = net->packets[at];
    if (keep && packet.entries != NULL) {
        size_t bytes = packet.message.append.entry_count * sizeof(struct raft_entry);
        struct raft_entry *copy = malloc(bytes);
        ASSERT(copy != NULL);
        memcpy(copy, packet.entries, bytes);
        packet.entries = copy;
        packet.message.append.entries = copy;
    }
    if (!keep) net->packets[at] = net->packets[--net->packet_count];
    switch (packet.kind) {
    case PACKET_REQUEST: net_deliver_request(net, &packet); break;
    case PACKET_ANSWER: net_deliver_answer(net, &packet); break;
    case PACKET_FAILED: net_fail_call(net, &packet, packet.to); break;
    }
    free(packet.entries);
}

/* Loses packet `at`: its caller hears of it by and by. */
static inline void net_lose(struct net *net, int at)
{
    struct packet *packet = &net->packets[at];
    if (packet->kind == PACKET_FAILED) return;
    int caller = packet->kind == PACKET_REQUEST ? packet->from : packet->to;
    free(packet->entries);
    *packet = (struct packet){.kind = PACKET_FAILED,
                              .to = caller,
                              .caller_boot = packet->caller_boot,
                              .call = packet->call};
}

/* ---- fair running ------------------------------------------------------------------------- */

/* Everything under way is done, in order; time stands still. */
static inline void net_flush(struct net *net)
{
    for (int rounds = 0; rounds < 2000; rounds++) {
        bool busy = false;
        for (int i = 0; i < net->n; i++) {
            net_start_write(net, i);
            busy = busy || net->nodes[i].writing != NULL || net->nodes[i].identity_writing;
            net_finish_write(net, i);
            net_finish_identity(net, i);
        }
        if (net->packet_count > 0) {
            busy = true;
            struct packet first = net->packets[0];
            /* Oldest first: take the head and keep the order of the rest. */
            memmove(net->packets, net->packets + 1,
                    (size_t)(net->packet_count - 1) * sizeof(first));
            net->packets[net->packet_count - 1] = first;
            net_deliver(net, net->packet_count - 1, false);
        }
        if (!busy) return;
    }
}

static inline int64_t net_next_deadline(const struct net *net)
{
    int64_t at = INT64_MAX;
    for (int i = 0; i < net->n; i++) {
        const struct node *node = &net->nodes[i];
        if (node->raft != NULL && node->deadline_us < at) at = node->deadline_us;
    }
    return at;
}

/* Runs fairly for `us`: messages take no time, writes neither. */
static inline void net_run(struct net *net, int64_t us)
{
    int64_t until = net->now_us + us;
    net_flush(net);
    while (net->violation[0] == '\0') {
        int64_t at = net_next_deadline(net);
        if (at > until) break;
        if (at <= net->now_us) at = net->now_us + 1;
        net->now_us = at;
        for (int i = 0; i < net->n; i++) {
            if (net->nodes[i].raft != NULL && net->nodes[i].deadline_us <= at) net_tick(net, i);
        }
        net_flush(net);
    }
    if (net->now_us < until) net->now_us = until;
}

/* One packet, or one write, or else time to the next deadline, until `done`. */
static inline bool net_creep(struct net *net, bool (*done)(struct net *net))
{
    for (int steps = 0; steps < 20000 && net->violation[0] == '\0'; steps++) {
        if (done(net)) return true;
        bool busy = false;
        for (int i = 0; i < net->n && !busy; i++) {
            net_start_write(net, i);
            busy = net->nodes[i].writing != NULL;
            net_finish_write(net, i);
        }
        if (busy) continue;
        if (net->packet_count > 0) {
            net_deliver(net, 0, false);
            continue;
        }
        int64_t at = net_next_deadline(net);
        if (at > net->now_us) net->now_us = at;
        for (int i = 0; i < net->n; i++) {
            if (net->nodes[i].raft != NULL && net->nodes[i].deadline_us <= at) net_tick(net, i);
        }
    }
    return false;
}

/* The one that serves in the highest epoch, or −1. */
static inline int net_leader(struct net *net)
{
    int leader = -1;
    for (int i = 0; i < net->n; i++) {
        if (!net->nodes[i].serves) continue;
        if (leader < 0 || net->nodes[i].epoch > net->nodes[leader].epoch) leader = i;
    }
    return leader;
}

/* ---- proposals ---------------------------------------------------------------------------- */

static inline enum status net_propose_isr(struct net *net, int leader, int peer, bool in)
{
    struct raft_event event = {
        .kind = RAFT_EVENT_PROPOSE,
        .propose = {.kind = RAFT_ENTRY_ISR,
                    .isr = {.isr = raft_known(net->nodes[leader].raft)->isr,
                            .why = in ? RAFT_ISR_CAUGHT_UP : RAFT_ISR_GONE}}};
    struct raft_ids *isr = &event.propose.isr.isr;
    if (raft_ids_contain(isr, net_id(peer)) == in) return STATUS_INVALID;
    if (in) {
        (void)raft_ids_add(isr, net_id(peer));
    } else {
        raft_ids_remove(isr, net_id(peer));
    }
    return net_step(net, leader, &event);
}

static inline enum status net_propose_incarnation(struct net *net, int leader, int peer)
{
    struct raft_event event = {.kind = RAFT_EVENT_PROPOSE,
                               .propose = {.kind = RAFT_ENTRY_INCARNATION,
                                           .replica = net_id(peer),
                                           .incarnation = net->nodes[peer].incarnation}};
    return net_step(net, leader, &event);
}

static inline enum status net_step_down(struct net *net, int i, enum raft_stepped_down why)
{
    struct raft_event event = {.kind = RAFT_EVENT_STEP_DOWN, .step_down = {.why = why}};
    return net_step(net, i, &event);
}

/* ---- a net -------------------------------------------------------------------------------- */

static inline struct net *net_new(int n, uint64_t seed)
{
    struct net *net = memory_new(sizeof(*net));
    net->n = n;
    net->now_us = 1000 * NET_MS;
    net->out = memory_new(sizeof(*net->out));
    random_seed(&net->random, seed);
    raft_options_init(&net->options);
    for (int i = 0; i < n; i++) {
        net->nodes[i].index = i;
        (void)raft_ids_add(&net->options.members, net_id(i));
    }
    net->options.min_insync = n / 2 + 1;
    return net;
}

static inline void net_free(struct net *net)
{
    while (net->packet_count > 0)
        net_drop_packet(net, 0);
    for (int i = 0; i < net->n; i++) {
        raft_free(net->nodes[i].raft);
        free(net->nodes[i].disk);
        free(net->nodes[i].writing);
    }
    free(net->out);
    free(net);
}

/* Founds and serves. */
static inline struct net *net_found(struct net *net)
{
    for (int i = 0; i < net->n; i++)
        net_start(net, i);
    net_run(net, 3 * NET_T);
    ASSERT(net_leader(net) >= 0);
    return net;
}

static inline struct net *net_founded(int n, uint64_t seed)
{
    return net_found(net_new(n, seed));
}

static inline void net_isolate(struct net *net, int i, bool cut)
{
    for (int j = 0; j < net->n; j++)
        net->cut[i][j] = net->cut[j][i] = cut && j != i;
}

#endif
