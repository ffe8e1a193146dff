/* grouper.c: one consumer group whose members come and go: they join, share the partitions of a
 * topic, heartbeat, commit offsets and read them, leave, fall silent and come back with what they
 * remember; some are static. What they were told is judged by history_groups.h (I18, I20).      */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "broker/group_coordinator.h"
#include "sim/history_groups.h"
#include "sim/workload.h"

#define MEMBERS_MAX      5
#define PARTITIONS       4
#define GROUP_NAME       "workers"
#define PROTOCOL         "share"
#define PROTOCOL_TYPE    "consumer"
#define TIMEOUT_US       6000000
#define JOIN_TIMEOUT_US  9000000
#define ACK_TIMEOUT_US   5000000
#define RETRY_US_MIN     20000
#define RETRY_US_MAX     150000
#define SILENT_US_MAX    15000000
#define SESSION_MS       6000
#define REBALANCE_MS     4000
#define MEMBER_BYTES     80
#define INITIAL_DELAY_US 200000

enum member_state { MEMBER_OUT, MEMBER_JOINING, MEMBER_SYNCING, MEMBER_IN };

enum member_act {
    MEMBER_JOIN,
    MEMBER_SYNC,
    MEMBER_HEARTBEAT,
    MEMBER_COMMIT,
    MEMBER_READ,
    MEMBER_LEAVE,
};

struct member {
    struct sim_grouper *grouper;
    int client, index;
    struct sim_leader_guess guess;
    struct sim_event wake;
    enum member_state state;
    char id[MEMBER_BYTES], instance[16]; /* "": none */
    int number;                          /* of this process of it, for the history */
    int32_t generation;
    uint32_t partitions; /* bits: owned */
    bool leads;
    char others[MEMBERS_MAX * 2][MEMBER_BYTES]; /* if it leads: whom it assigns to */
    int other_count;
    bool asking;
    bool heard; /* the last heartbeat of this generation was answered */
};

struct sim_grouper {
    struct sim_workload *workload;
    struct sim_topic *topic;
    struct history_group history;
    struct member members[MEMBERS_MAX];
    int member_count, process_count;
};

struct member_call {
    struct sim_call base;
    struct member *member;
    enum member_act act;
    char id[MEMBER_BYTES];
    int32_t generation, newest;
    int number;
    uint32_t partition;
    int64_t value, acknowledged;
    char others[MEMBERS_MAX * 2][MEMBER_BYTES];
    int other_count;
    /* answer */
    char new_id[MEMBER_BYTES];
    int32_t new_generation;
    bool leads;
    uint32_t partitions;
};

struct member_at_node {
    struct member_call *call;
    struct group_request request;
    struct offsets_request offsets;
    struct committed_offset offset;
};

static void member_wake(struct sim_event *event);
static void call_ended(struct sim_call *base, enum sim_call_end end);

struct sim_grouper *sim_grouper_new(struct sim_workload *workload, int *client)
{
    struct sim_grouper *grouper = sim_alloc(sizeof(*grouper));
    struct random *random = &workload->domain_random;
    grouper->workload = workload;
    grouper->topic = sim_workload_add_topic(workload, "work0", PARTITIONS);
    grouper->member_count = (int)random_between(random, 2, MEMBERS_MAX);
    history_group_init(&grouper->history, workload->verdict);
    for (int i = 0; i < grouper->member_count; i++) {
        struct member *member = &grouper->members[i];
        member->grouper = grouper;
        member->client = (*client)++;
        member->index = i;
        member->guess.epoch = -1;
        if (random_below(random, 3) == 0)
            snprintf(member->instance, sizeof(member->instance), "seat%d", i);
        sim_event_init(&member->wake, SIM_EVENT_CLIENT, NULL, member_wake);
        member->wake.detail = 0xf3000000u + (uint64_t)i;
    }
    workload->group->settings.groups.initial_delay_us = INITIAL_DELAY_US;
    return grouper;
}

void sim_grouper_free(struct sim_grouper *grouper)
{
    for (int i = 0; i < grouper->member_count; i++)
        sim_world_cancel(grouper->workload->world, &grouper->members[i].wake);
    history_group_deinit(&grouper->history);
    sim_release(grouper);
}

void sim_grouper_start(struct sim_grouper *grouper)
{
    struct sim_world *world = grouper->workload->world;
    for (int i = 0; i < grouper->member_count; i++)
        sim_world_schedule(world, &grouper->members[i].wake,
                           world->now_us + random_between(&grouper->workload->domain_random,
                                                          RETRY_US_MIN, 3000000));
}

int32_t sim_grouper_generation(const struct sim_grouper *grouper)
{
    return grouper->history.newest;
}

/* All are in one generation, and each partition has its owner. */
bool sim_grouper_drained(const struct sim_grouper *grouper, char *why, size_t why_bytes)
{
    uint32_t owned = 0;
    for (int i = 0; i < grouper->member_count; i++) {
        const struct member *member = &grouper->members[i];
        if (member->state != MEMBER_IN || !member->heard ||
            member->generation != grouper->history.newest) {
            snprintf(why, why_bytes, "member %d is in state %d, generation %d of %d", i,
                     member->state, member->generation, grouper->history.newest);
            return false;
        }
        owned |= member->partitions;
    }
    if (owned == (1u << PARTITIONS) - 1) return true;
    snprintf(why, why_bytes, "the group's members own partitions %#x only", owned);
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
    return text[0] == '\0' ? (struct slice){NULL, 0} : text_slice(text);
}

static void copy_text(char out[MEMBER_BYTES], struct slice text)
{
    ASSERT(text.bytes < MEMBER_BYTES);
    if (text.bytes > 0) memcpy(out, text.data, text.bytes);
    out[text.bytes] = '\0';
}

static void answer(struct member_at_node *at_node, enum status status)
{
    struct member_call *call = at_node->call;
    call->base.status = status;
    sim_call_done(&call->base);
    free(at_node);
}

static void joined(struct member_call *call, const struct group_result *result)
{
    const struct consumer_member *other = NULL;
    call->new_generation = consumer_group_generation(result->group);
    call->leads = result->answer->lists_members;
    while (call->leads && call->other_count < (int)ARRAY_COUNT(call->others) &&
           (other = consumer_group_next(result->group, other)) != NULL)
        copy_text(call->others[call->other_count++], consumer_member_view(result->group, other).id);
}

static void group_done(void *context, const struct group_result *result)
{
    struct member_at_node *at_node = context;
    struct member_call *call = at_node->call;
    copy_text(call->new_id, result->member_id);
    if (result->status == STATUS_OK && call->act == MEMBER_JOIN) joined(call, result);
    if (result->status == STATUS_OK && call->act == MEMBER_SYNC) {
        struct slice assignment =
            consumer_member_view(result->group, result->answer->member).assignment;
        call->new_generation = consumer_group_generation(result->group);
        call->partitions = assignment.bytes == 1 ? assignment.data[0] : 0;
    }
    answer(at_node, result->status);
}

static void offsets_done(void *context, struct offsets_request *request)
{
    struct member_at_node *at_node = context;
    enum status status = request->status == STATUS_OK ? at_node->offset.status : request->status;
    if (at_node->call->act == MEMBER_READ) at_node->call->value = at_node->offset.offset;
    answer(at_node, status);
}

static void serve_join(struct member_call *call, struct member_at_node *at_node)
{
    const struct consumer_protocol protocol = {text_slice(PROTOCOL), text_slice("all")};
    struct consumer_join join = {.member_id = text_slice(call->id),
                                 .instance_id = optional_slice(call->member->instance),
                                 .client_id = text_slice("worker"),
                                 .client_host = text_slice("/sim"),
                                 .protocol_type = text_slice(PROTOCOL_TYPE),
                                 .protocols = &protocol,
                                 .protocol_count = 1,
                                 .session_timeout_ms = SESSION_MS,
                                 .rebalance_timeout_ms = REBALANCE_MS,
                                 .id_required = call->member->index % 2 == 0};
    broker_join_group(call->base.node->broker, text_slice(GROUP_NAME), &join, &at_node->request);
}

/* Partition after partition to member after member. */
static void serve_sync(struct member_call *call, struct member_at_node *at_node)
{
    struct consumer_assignment assignments[MEMBERS_MAX * 2];
    uint8_t shares[MEMBERS_MAX * 2] = {0};
    for (int p = 0; p < PARTITIONS && call->other_count > 0; p++)
        shares[(p + call->generation) % call->other_count] |= (uint8_t)(1u << p);
    for (int i = 0; i < call->other_count; i++)
        assignments[i] = (struct consumer_assignment){text_slice(call->others[i]), {&shares[i], 1}};
    const struct consumer_sync sync = {.member_id = text_slice(call->id),
                                       .instance_id = optional_slice(call->member->instance),
                                       .generation = call->generation,
                                       .protocol_type = text_slice(PROTOCOL_TYPE),
                                       .protocol = text_slice(PROTOCOL),
                                       .assignments = assignments,
                                       .assignment_count = (uint32_t)call->other_count};
    broker_sync_group(call->base.node->broker, text_slice(GROUP_NAME), &sync, &at_node->request);
}

static void serve_offsets(struct member_call *call, struct member_at_node *at_node)
{
    struct broker *broker = call->base.node->broker;
    bool commits = call->act == MEMBER_COMMIT;
    at_node->offset =
        (struct committed_offset){.topic = text_slice(call->member->grouper->topic->name),
                                  .partition = (int32_t)call->partition,
                                  .offset = commits ? call->value : -1,
                                  .leader_epoch = -1};
    at_node->offsets =
        (struct offsets_request){.group = text_slice(GROUP_NAME),
                                 .member_id = text_slice(call->id),
                                 .instance_id = optional_slice(call->member->instance),
                                 .generation = call->generation,
                                 .offsets = &at_node->offset,
                                 .offset_count = 1,
                                 .timeout_us = ACK_TIMEOUT_US,
                                 .done = offsets_done,
                                 .context = at_node};
    if (commits)
        broker_commit_offsets(broker, &at_node->offsets);
    else
        broker_fetch_offsets(broker, &at_node->offsets);
}

static void serve_member(struct sim_call *base)
{
    struct member_call *call = (struct member_call *)base;
    struct broker *broker = base->node->broker;
    base->status = broker_check_serving(broker);
    if (base->status != STATUS_OK) {
        sim_call_done(base);
        return;
    }
    struct member_at_node *at_node = calloc(1, sizeof(*at_node));
    ASSERT(at_node != NULL);
    at_node->call = call;
    at_node->request.done = group_done;
    at_node->request.context = at_node;
    const struct consumer_identity who = {text_slice(call->id),
                                          optional_slice(call->member->instance), call->generation};
    switch (call->act) {
    case MEMBER_JOIN: serve_join(call, at_node); break;
    case MEMBER_SYNC: serve_sync(call, at_node); break;
    case MEMBER_COMMIT:
    case MEMBER_READ: serve_offsets(call, at_node); break;
    case MEMBER_HEARTBEAT:
        answer(at_node, broker_group_heartbeat(broker, text_slice(GROUP_NAME), &who));
        break;
    case MEMBER_LEAVE:
        answer(at_node, broker_leave_group(broker, text_slice(GROUP_NAME), who.member_id,
                                           (struct slice){NULL, 0}));
        break;
    }
}

/* Outside. */

static int64_t pause_us(const struct member *member, int64_t low_us, int64_t high_us)
{
    return random_between(&member->grouper->workload->domain_random, low_us, high_us);
}

static void wake_in(struct member *member, int64_t us)
{
    struct sim_world *world = member->grouper->workload->world;
    sim_world_schedule(world, &member->wake, world->now_us + us);
}

static void ask(struct member *member, enum member_act act)
{
    struct sim_grouper *grouper = member->grouper;
    struct sim_workload *workload = grouper->workload;
    struct random *random = &workload->domain_random;
    struct member_call *call =
        sim_call_new(&workload->clients, sizeof(*call), member->client, serve_member, call_ended);
    call->member = member;
    call->act = act;
    call->generation = member->generation;
    call->newest = grouper->history.newest;
    call->number = member->number;
    snprintf(call->id, sizeof(call->id), "%s", member->id);
    if (act == MEMBER_SYNC && member->leads) {
        memcpy(call->others, member->others, sizeof(call->others));
        call->other_count = member->other_count;
    }
    if (act == MEMBER_COMMIT || act == MEMBER_READ) {
        do
            call->partition = (uint32_t)random_below(random, PARTITIONS);
        while (act == MEMBER_COMMIT && (member->partitions & 1u << call->partition) == 0);
        call->acknowledged = grouper->history.partitions[call->partition].acknowledged;
        if (act == MEMBER_COMMIT)
            call->value =
                history_group_commit(&grouper->history, call->partition, member->generation);
    }
    member->asking = true;
    sim_workload_count(workload, SIM_REQUEST_GROUP);
    sim_call_send(&call->base, member->guess.node,
                  act == MEMBER_JOIN || act == MEMBER_SYNC ? JOIN_TIMEOUT_US : TIMEOUT_US);
}

/* Another process of it; one of a static member takes the place of the one before. */
static void become_new(struct member *member)
{
    member->number =
        member->instance[0] != '\0' ? -1 - member->index : ++member->grouper->process_count;
}

static void begin_joining(struct member *member, bool forgets_id)
{
    member->state = MEMBER_JOINING;
    member->partitions = 0;
    member->heard = false;
    if (forgets_id) member->id[0] = '\0';
}

/* What every answer may say of membership. False: nothing of the kind. */
static bool lost_membership(struct member *member, enum status status)
{
    switch (status) {
    case STATUS_UNKNOWN_MEMBER:
    case STATUS_UNKNOWN_GROUP: begin_joining(member, true); return true;
    case STATUS_FENCED_INSTANCE:
        begin_joining(member, true);
        become_new(member);
        return true;
    case STATUS_ILLEGAL_GENERATION:
    case STATUS_REBALANCE_IN_PROGRESS: begin_joining(member, false); return true;
    default: return false;
    }
}

static void take_join(struct member_call *call)
{
    struct member *member = call->member;
    if (call->base.status == STATUS_MEMBER_ID_REQUIRED) {
        snprintf(member->id, sizeof(member->id), "%s", call->new_id);
        return;
    }
    snprintf(member->id, sizeof(member->id), "%s", call->new_id);
    member->generation = call->new_generation;
    member->leads = call->leads;
    memcpy(member->others, call->others, sizeof(member->others));
    member->other_count = call->other_count;
    member->state = MEMBER_SYNCING;
}

static void take_sync(struct member_call *call)
{
    struct member *member = call->member;
    member->partitions = call->partitions;
    member->state = MEMBER_IN;
    history_group_given(&member->grouper->history, call->new_generation, call->number,
                        call->partitions, call->newest);
}

static void judge_offsets(struct member_call *call, enum sim_call_end end)
{
    struct history_group *history = &call->member->grouper->history;
    bool ok = end == SIM_CALL_ANSWERED && call->base.status == STATUS_OK;
    bool commit = call->act == MEMBER_COMMIT;
    if (!commit && call->act != MEMBER_READ) return;
    if (commit && ok) history_group_accepted(history, call->generation, call->newest, "a commit");
    history_group_offset_ended(
        history,
        &(struct history_offset_call){commit, call->partition, call->value, call->acknowledged}, ok,
        end == SIM_CALL_REFUSED);
}

static void take_answer(struct member_call *call, bool answered)
{
    struct member *member = call->member;
    enum status status = call->base.status;
    bool taken = call->act == MEMBER_JOIN && status == STATUS_MEMBER_ID_REQUIRED;
    if (answered && (status == STATUS_OK || taken)) {
        if (call->act == MEMBER_JOIN) take_join(call);
        if (call->act == MEMBER_SYNC) take_sync(call);
        if (call->act == MEMBER_HEARTBEAT) {
            history_group_accepted(&member->grouper->history, call->generation, call->newest,
                                   "a heartbeat");
            member->heard = true;
        }
        wake_in(member, member->state == MEMBER_IN ? pause_us(member, 5000, 400000) : 1000);
        return;
    }
    if (answered && call->act != MEMBER_READ && call->act != MEMBER_LEAVE)
        (void)lost_membership(member, status);
    wake_in(member, pause_us(member, RETRY_US_MIN, RETRY_US_MAX));
}

static void call_ended(struct sim_call *base, enum sim_call_end end)
{
    static const char *const names[] = {"join", "sync", "heartbeat", "commit", "read", "leave"};
    struct member_call *call = (struct member_call *)base;
    struct member *member = call->member;
    bool answered = end == SIM_CALL_ANSWERED;
    sim_leader_guess_learn(&member->guess, base, end,
                           answered && sim_status_redirects(base->status));
    if (answered)
        sim_world_trace(member->grouper->workload->world, NULL,
                        "%s of member %d (%s), generation %d: %s, generation %d, partitions %#x",
                        names[call->act], member->index, call->id, call->generation,
                        status_text(base->status), call->new_generation, call->partitions);
    judge_offsets(call, end);
    member->asking = false;
    if (call->act == MEMBER_LEAVE) {
        begin_joining(member, true);
        become_new(member);
        wake_in(member, pause_us(member, 1000, 3000000));
        return;
    }
    take_answer(call, answered);
}

/* It falls silent; afterwards it goes on as if nothing had been, or begins anew. */
static void fall_silent(struct member *member)
{
    struct sim_grouper *grouper = member->grouper;
    if (random_below(&grouper->workload->domain_random, 2) == 0) {
        begin_joining(member, true);
        become_new(member);
    }
    wake_in(member, pause_us(member, 1000000, SILENT_US_MAX));
}

static void member_wake(struct sim_event *event)
{
    struct member *member = CONTAINER_OF(event, struct member, wake);
    struct sim_workload *workload = member->grouper->workload;
    struct random *random = &workload->domain_random;
    if (member->asking) return;
    switch (member->state) {
    case MEMBER_OUT:
        become_new(member);
        begin_joining(member, true);
        ask(member, MEMBER_JOIN);
        break;
    case MEMBER_JOINING: ask(member, MEMBER_JOIN); break;
    case MEMBER_SYNCING: ask(member, MEMBER_SYNC); break;
    case MEMBER_IN: {
        uint64_t draw = random_below(random, 1000);
        bool calm = workload->draining || workload->options.steady_groups;
        if (draw < 8 && !calm)
            fall_silent(member);
        else if (draw < 12 && !calm && member->instance[0] == '\0')
            ask(member, MEMBER_LEAVE);
        else if (draw < 400 || workload->draining)
            ask(member, MEMBER_HEARTBEAT);
        else if (draw < 700 && member->partitions != 0)
            ask(member, MEMBER_COMMIT);
        else
            ask(member, MEMBER_READ);
        break;
    }
    }
}
