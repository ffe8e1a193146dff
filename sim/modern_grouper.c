/* modern_grouper.c: one consumer group of the new protocol (KIP-848), whose members come and go:
 * they join, heartbeat, walk to what they are assigned (give up first, sometimes late, then take),
 * commit offsets and read them, leave, fall silent and come back with what they remember; some are
 * static, some subscribe by a pattern. Judged by history_shares.h and history_groups.h (I18, I20).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "broker/group_coordinator.h"
#include "broker/modern_coordinator.h"
#include "sim/history_shares.h"
#include "sim/workload.h"

#define MEMBERS_MAX    4
#define PARTITIONS     6
#define GROUP_NAME     "walkers"
#define TIMEOUT_US     4000000 /* shorter than a session: an answer is never about one that is over */
#define ACK_TIMEOUT_US 3500000
#define RETRY_US_MIN   20000
#define RETRY_US_MAX   150000
#define SILENT_US_MAX  15000000
#define REVOKE_US_MAX  6000000 /* more than the rebalance time-out */
#define SESSION_MS     6000
#define INTERVAL_MS    300
#define REBALANCE_MS   4000
#define MEMBER_BYTES   32

enum walker_state { WALKER_JOINING, WALKER_IN };

enum walker_act { WALKER_HEARTBEAT, WALKER_COMMIT, WALKER_READ, WALKER_LEAVE };

struct walker {
    struct sim_modern_grouper *grouper;
    int client, index;
    struct sim_leader_guess guess;
    struct sim_event wake;
    enum walker_state state;
    char id[MEMBER_BYTES], instance[16]; /* "": none */
    bool by_pattern;
    const char *assignor;
    int process;
    int32_t epoch;
    uint32_t owned, wanted; /* bits; it gives up what is in the first only */
    int64_t revoke_us;      /* … and not before then */
    bool tells_all;         /* the next heartbeat says everything: the last was not answered */
    bool tells_owned;
    bool asking;
    bool heard; /* the last heartbeat was answered */
};

struct sim_modern_grouper {
    struct sim_workload *workload;
    struct sim_topic *topic;
    struct history_shares shares;
    struct history_group offsets;
    struct walker walkers[MEMBERS_MAX];
    int walker_count;
    int32_t newest; /* epoch that anybody was given */
};

struct walker_call {
    struct sim_call base;
    struct walker *walker;
    enum walker_act act;
    char id[MEMBER_BYTES];
    int process;
    bool put_out; /* as far as the history knew when it was sent */
    int32_t epoch;
    bool tells_all, tells_owned;
    uint32_t owned;
    uint32_t partition;
    int64_t value, acknowledged;
    /* answer */
    int32_t new_epoch;
    bool has_assignment;
    uint32_t assignment;
};

struct walker_at_node {
    struct walker_call *call;
    struct modern_request request;
    struct offsets_request offsets;
    struct committed_offset offset;
};

static void walker_wake(struct sim_event *event);
static void call_ended(struct sim_call *base, enum sim_call_end end);

/* Another process of it; a static member's takes the seat of the one before. */
static void become_new(struct walker *walker)
{
    walker->process = history_shares_new_process(&walker->grouper->shares);
    snprintf(walker->id, sizeof(walker->id), "walker-%d-%d", walker->index, walker->process);
}

static void init_walker(struct sim_modern_grouper *grouper, int index, int client)
{
    static const char *const assignors[] = {NULL, "uniform", "range"};
    struct walker *walker = &grouper->walkers[index];
    struct random *random = &grouper->workload->domain_random;
    walker->grouper = grouper;
    walker->client = client;
    walker->index = index;
    walker->guess.epoch = -1;
    if (random_below(random, 3) == 0)
        snprintf(walker->instance, sizeof(walker->instance), "seat%d", index);
    walker->by_pattern = random_below(random, 3) == 0;
    walker->assignor = assignors[random_below(random, ARRAY_COUNT(assignors))];
    become_new(walker);
    sim_event_init(&walker->wake, SIM_EVENT_CLIENT, NULL, walker_wake);
    walker->wake.detail = 0xf4000000u + (uint64_t)index;
}

struct sim_modern_grouper *sim_modern_grouper_new(struct sim_workload *workload, int *client)
{
    struct sim_modern_grouper *grouper = sim_alloc(sizeof(*grouper));
    grouper->workload = workload;
    grouper->topic = sim_workload_add_topic(workload, "walk0", PARTITIONS);
    grouper->walker_count = (int)random_between(&workload->domain_random, 2, MEMBERS_MAX);
    history_shares_init(&grouper->shares, workload->verdict);
    history_group_init(&grouper->offsets, workload->verdict);
    for (int i = 0; i < grouper->walker_count; i++)
        init_walker(grouper, i, (*client)++);
    workload->group->settings.modern_groups.session_timeout_ms = SESSION_MS;
    workload->group->settings.modern_groups.heartbeat_interval_ms = INTERVAL_MS;
    return grouper;
}

void sim_modern_grouper_free(struct sim_modern_grouper *grouper)
{
    for (int i = 0; i < grouper->walker_count; i++)
        sim_world_cancel(grouper->workload->world, &grouper->walkers[i].wake);
    history_group_deinit(&grouper->offsets);
    history_shares_deinit(&grouper->shares);
    sim_release(grouper);
}

static int64_t draw_pause(const struct walker *walker, int64_t low_us, int64_t high_us)
{
    return random_between(&walker->grouper->workload->domain_random, low_us, high_us);
}

static void wake_in(struct walker *walker, int64_t us)
{
    struct sim_world *world = walker->grouper->workload->world;
    sim_world_schedule(world, &walker->wake, world->now_us + us);
}

void sim_modern_grouper_start(struct sim_modern_grouper *grouper)
{
    for (int i = 0; i < grouper->walker_count; i++)
        wake_in(&grouper->walkers[i], draw_pause(&grouper->walkers[i], RETRY_US_MIN, 3000000));
}

int32_t sim_modern_grouper_epoch(const struct sim_modern_grouper *grouper)
{
    return grouper->newest;
}

/* All are at one epoch, and each partition has its owner. */
bool sim_modern_grouper_drained(const struct sim_modern_grouper *grouper, char *why,
                                size_t why_bytes)
{
    uint32_t owned = 0;
    for (int i = 0; i < grouper->walker_count; i++) {
        const struct walker *walker = &grouper->walkers[i];
        if (walker->state != WALKER_IN || !walker->heard || walker->epoch != grouper->newest ||
            walker->owned != walker->wanted || (owned & walker->owned) != 0) {
            snprintf(why, why_bytes,
                     "%s is in state %d, epoch %d of %d, and has %#x of %#x, %#x others",
                     walker->id, walker->state, walker->epoch, grouper->newest, walker->owned,
                     walker->wanted, owned);
            return false;
        }
        owned |= walker->owned;
    }
    if (owned == (1u << PARTITIONS) - 1) return true;
    snprintf(why, why_bytes, "the members of the new protocol's group own partitions %#x only",
             owned);
    return false;
}

/* Inside the process. */

static struct slice text_slice(const char *text)
{
    return (struct slice){(const uint8_t *)text, strlen(text)};
}

/* data NULL: none. */
static struct slice optional_slice(const char *text)
{
    return text == NULL || text[0] == '\0' ? (struct slice){NULL, 0} : text_slice(text);
}

static void answer(struct walker_at_node *at_node, enum status status)
{
    struct walker_call *call = at_node->call;
    call->base.status = status;
    sim_call_done(&call->base);
    free(at_node);
}

static void heartbeat_done(void *context, struct modern_request *request)
{
    struct walker_at_node *at_node = context;
    struct walker_call *call = at_node->call;
    call->new_epoch = request->member_epoch;
    call->has_assignment = request->has_assignment;
    for (uint32_t i = 0; request->has_assignment && i < request->assignment.count; i++)
        call->assignment |= 1u << request->assignment.items[i].partition;
    answer(at_node, request->status);
}

static void offsets_done(void *context, struct offsets_request *request)
{
    struct walker_at_node *at_node = context;
    enum status status = request->status == STATUS_OK ? at_node->offset.status : request->status;
    if (at_node->call->act == WALKER_READ) at_node->call->value = at_node->offset.offset;
    answer(at_node, status);
}

static void serve_heartbeat(struct walker_call *call, struct walker_at_node *at_node)
{
    const struct walker *walker = call->walker;
    const struct sim_topic *topic = walker->grouper->topic;
    const struct slice name = text_slice(topic->name);
    struct partition_set owned = {0};
    for (int32_t p = 0; p < PARTITIONS; p++)
        if ((call->owned & 1u << p) != 0) partition_set_append(&owned, &topic->uid, p);
    struct modern_heartbeat heartbeat = {.member_id = text_slice(call->id),
                                         .member_epoch = call->epoch,
                                         .instance_id = optional_slice(walker->instance),
                                         .client_id = text_slice("walker"),
                                         .client_host = text_slice("/sim"),
                                         .rebalance_timeout_ms = -1};
    if (call->tells_owned) {
        heartbeat.has_owned = true;
        heartbeat.owned = &owned;
    }
    if (call->tells_all) {
        heartbeat.rebalance_timeout_ms = REBALANCE_MS;
        heartbeat.assignor = optional_slice(walker->assignor);
        heartbeat.has_names = !walker->by_pattern;
        heartbeat.names = &name;
        heartbeat.name_count = walker->by_pattern ? 0 : 1;
        if (walker->by_pattern) heartbeat.regex = text_slice("walk[0-9]");
    }
    broker_modern_heartbeat(call->base.node->broker, text_slice(GROUP_NAME), &heartbeat,
                            &at_node->request);
    partition_set_deinit(&owned);
}

static void serve_offsets(struct walker_call *call, struct walker_at_node *at_node)
{
    struct broker *broker = call->base.node->broker;
    bool commits = call->act == WALKER_COMMIT;
    at_node->offset =
        (struct committed_offset){.topic = text_slice(call->walker->grouper->topic->name),
                                  .partition = (int32_t)call->partition,
                                  .offset = commits ? call->value : -1,
                                  .leader_epoch = -1};
    at_node->offsets = (struct offsets_request){.group = text_slice(GROUP_NAME),
                                                .generation = -1,
                                                .offsets = &at_node->offset,
                                                .offset_count = 1,
                                                .timeout_us = ACK_TIMEOUT_US,
                                                .done = offsets_done,
                                                .context = at_node};
    if (!commits) {
        broker_fetch_offsets(broker, &at_node->offsets);
        return;
    }
    at_node->offsets.member_id = text_slice(call->id);
    at_node->offsets.instance_id = optional_slice(call->walker->instance);
    at_node->offsets.generation = call->epoch;
    broker_commit_offsets(broker, &at_node->offsets);
}

static void serve_walker(struct sim_call *base)
{
    struct walker_call *call = (struct walker_call *)base;
    base->status = broker_check_serving(base->node->broker);
    if (base->status != STATUS_OK) {
        sim_call_done(base);
        return;
    }
    struct walker_at_node *at_node = calloc(1, sizeof(*at_node));
    ASSERT(at_node != NULL);
    at_node->call = call;
    at_node->request.done = heartbeat_done;
    at_node->request.context = at_node;
    if (call->act == WALKER_COMMIT || call->act == WALKER_READ)
        serve_offsets(call, at_node);
    else
        serve_heartbeat(call, at_node);
}

/* Outside: asking. */

static void ask(struct walker *walker, enum walker_act act)
{
    struct sim_modern_grouper *grouper = walker->grouper;
    struct sim_workload *workload = grouper->workload;
    struct random *random = &workload->domain_random;
    struct walker_call *call =
        sim_call_new(&workload->clients, sizeof(*call), walker->client, serve_walker, call_ended);
    bool joins = walker->state == WALKER_JOINING;
    if (act == WALKER_HEARTBEAT && joins) history_shares_rejoin(&grouper->shares, walker->process);
    call->walker = walker;
    call->act = act;
    call->process = walker->process;
    call->put_out = history_shares_is_put_out(&grouper->shares, walker->process);
    call->epoch = joins ? MODERN_EPOCH_JOIN : walker->epoch;
    if (act == WALKER_LEAVE)
        call->epoch = walker->instance[0] != '\0' ? MODERN_EPOCH_LEAVE_STATIC : MODERN_EPOCH_LEAVE;
    call->tells_all = act == WALKER_HEARTBEAT && (joins || walker->tells_all);
    call->tells_owned = call->tells_all || (act == WALKER_HEARTBEAT && walker->tells_owned);
    call->owned = walker->owned;
    snprintf(call->id, sizeof(call->id), "%s", walker->id);
    if (act == WALKER_COMMIT || act == WALKER_READ) {
        do
            call->partition = (uint32_t)random_below(random, PARTITIONS);
        while (act == WALKER_COMMIT && (walker->owned & 1u << call->partition) == 0);
        call->acknowledged = grouper->offsets.partitions[call->partition].acknowledged;
    }
    if (act == WALKER_COMMIT)
        call->value =
            history_group_commit(&grouper->offsets, call->partition,
                                 history_shares_tenure(&grouper->shares, call->partition));
    walker->asking = true;
    sim_workload_count(workload, SIM_REQUEST_MODERN_GROUP);
    sim_call_send(&call->base, walker->guess.node, TIMEOUT_US);
}

/* Outside: answers. */

static void begin_joining(struct walker *walker)
{
    walker->state = WALKER_JOINING;
    walker->owned = walker->wanted = 0;
    walker->heard = false;
}

/* Its process ends, and what it had with it. */
static void end_process(struct walker *walker)
{
    history_shares_give_up(&walker->grouper->shares, walker->process, HISTORY_ALL_SHARES);
    begin_joining(walker);
    become_new(walker);
}

static void lost_membership(struct walker *walker, enum status status)
{
    switch (status) {
    case STATUS_UNKNOWN_MEMBER:
    case STATUS_UNKNOWN_GROUP:
    case STATUS_FENCED_MEMBER_EPOCH: begin_joining(walker); break;
    case STATUS_FENCED_INSTANCE: end_process(walker); break;
    default: break;
    }
}

/* First what it must give up, then what is new. */
static void walk(struct walker *walker)
{
    struct sim_modern_grouper *grouper = walker->grouper;
    uint32_t lost = walker->owned & ~walker->wanted;
    if (lost != 0 && walker->revoke_us > grouper->workload->world->now_us) return;
    if (walker->owned == walker->wanted) return;
    history_shares_give_up(&grouper->shares, walker->process, lost);
    history_shares_take(&grouper->shares, walker->process, walker->wanted & ~walker->owned);
    walker->owned = walker->wanted;
    walker->tells_owned = true;
}

static void take_assignment(struct walker *walker, uint32_t wanted)
{
    const struct sim_workload *workload = walker->grouper->workload;
    if ((walker->owned & ~walker->wanted) == 0) {
        bool late = !workload->draining && !workload->options.steady_groups &&
                    random_below(&walker->grouper->workload->domain_random, 4) == 0;
        walker->revoke_us =
            workload->world->now_us + (late ? draw_pause(walker, 0, REVOKE_US_MAX) : 0);
    }
    walker->wanted = wanted;
    walk(walker);
}

static void take_heartbeat(struct walker_call *call)
{
    struct walker *walker = call->walker;
    struct sim_modern_grouper *grouper = walker->grouper;
    history_shares_accepted(&grouper->shares, call->process, call->put_out, "a heartbeat");
    walker->state = WALKER_IN;
    walker->epoch = call->new_epoch;
    walker->heard = true;
    walker->tells_all = false;
    if (call->tells_owned && call->owned == walker->owned) walker->tells_owned = false;
    if (call->new_epoch > grouper->newest) grouper->newest = call->new_epoch;
    if (call->has_assignment) take_assignment(walker, call->assignment);
}

static void judge_offsets(struct walker_call *call, enum sim_call_end end)
{
    struct sim_modern_grouper *grouper = call->walker->grouper;
    bool ok = end == SIM_CALL_ANSWERED && call->base.status == STATUS_OK;
    bool commit = call->act == WALKER_COMMIT;
    if (!commit && call->act != WALKER_READ) return;
    if (commit && ok)
        history_shares_accepted(&grouper->shares, call->process, call->put_out, "a commit");
    history_group_offset_ended(
        &grouper->offsets,
        &(struct history_offset_call){commit, call->partition, call->value, call->acknowledged}, ok,
        end == SIM_CALL_REFUSED);
}

static void call_ended(struct sim_call *base, enum sim_call_end end)
{
    static const char *const names[] = {"heartbeat", "commit", "read", "leave"};
    struct walker_call *call = (struct walker_call *)base;
    struct walker *walker = call->walker;
    bool answered = end == SIM_CALL_ANSWERED;
    bool ok = answered && base->status == STATUS_OK;
    sim_leader_guess_learn(&walker->guess, base, end,
                           answered && sim_status_redirects(base->status));
    if (answered)
        sim_world_trace(walker->grouper->workload->world, NULL,
                        "%s of %s at epoch %d with %#x: %s, epoch %d, %s %#x", names[call->act],
                        call->id, call->epoch, call->owned, status_text(base->status),
                        call->new_epoch, call->has_assignment ? "assigned" : "as before",
                        call->assignment);
    judge_offsets(call, end);
    walker->asking = false;
    if (call->act == WALKER_LEAVE) {
        wake_in(walker, draw_pause(walker, 1000, 3000000));
        return;
    }
    if (call->act == WALKER_HEARTBEAT && ok) take_heartbeat(call);
    if (call->act == WALKER_HEARTBEAT && !ok) {
        walker->tells_all = true;
        walker->heard = false;
    }
    if (answered && !ok && call->act != WALKER_READ) lost_membership(walker, base->status);
    wake_in(walker,
            ok ? draw_pause(walker, 5000, 400000) : draw_pause(walker, RETRY_US_MIN, RETRY_US_MAX));
}

/* It falls silent; afterwards it goes on as if nothing had been, or another process begins. */
static void fall_silent(struct walker *walker)
{
    if (random_below(&walker->grouper->workload->domain_random, 2) == 0) end_process(walker);
    wake_in(walker, draw_pause(walker, 1000000, SILENT_US_MAX));
}

static void leave(struct walker *walker)
{
    history_shares_give_up(&walker->grouper->shares, walker->process, HISTORY_ALL_SHARES);
    ask(walker, WALKER_LEAVE);
    begin_joining(walker);
    become_new(walker);
}

static void walker_wake(struct sim_event *event)
{
    struct walker *walker = CONTAINER_OF(event, struct walker, wake);
    struct sim_workload *workload = walker->grouper->workload;
    if (walker->asking) return;
    walk(walker);
    uint64_t draw = random_below(&workload->domain_random, 1000);
    bool calm = workload->draining || workload->options.steady_groups;
    if (walker->state == WALKER_JOINING)
        ask(walker, WALKER_HEARTBEAT);
    else if (draw < 8 && !calm)
        fall_silent(walker);
    else if (draw < 14 && !calm)
        leave(walker);
    else if (draw < 500 || workload->draining)
        ask(walker, WALKER_HEARTBEAT);
    else if (draw < 750 && walker->owned != 0)
        ask(walker, WALKER_COMMIT);
    else
        ask(walker, WALKER_READ);
}
