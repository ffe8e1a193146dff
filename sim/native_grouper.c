/* native_grouper.c: one consumer group whose members the broker looks after (group_session.h), as
 * connections of the native protocol have them: they join, are told their partitions with a
 * heartbeat, commit offsets and read them, leave, break off, fall silent and come back, at another
 * node with the id they had. Judged by history_groups.h (I18, I20).
 *
 * A member's connection is a link: it is at one node, its session lives in the process there and
 * goes with it. A link whose end does not reach the node stays there, half open.              */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "broker/group_session.h"
#include "sim/history_groups.h"
#include "sim/workload.h"

#define MEMBERS_MAX     4
#define PARTITIONS      5
#define GROUP_NAME      "sharers"
#define TIMEOUT_US      6000000
#define JOIN_TIMEOUT_US 9000000
#define ACK_TIMEOUT_US  5000000
#define RETRY_US_MIN    20000
#define RETRY_US_MAX    150000
#define SILENT_US_MAX   15000000
#define SESSION_MS      6000
#define MEMBER_BYTES    80

enum sharer_act {
    SHARER_JOIN,
    SHARER_HEARTBEAT,
    SHARER_COMMIT,
    SHARER_READ,
    SHARER_LEAVE,
    SHARER_CLOSE, /* the link's end arrives */
};

struct sharer_call;

struct link {
    struct sim_resource resource;
    uint32_t number;
    struct sim_node *node;         /* NULL: closed, or the process is gone */
    struct group_session *session; /* the process's */
    struct sharer_call *joining;
    struct link *next;
};

struct sharer {
    struct sim_native_grouper *grouper;
    int client, index;
    struct sim_leader_guess guess;
    struct sim_event wake;
    bool in;
    char id[MEMBER_BYTES]; /* "": none yet */
    int number;            /* of this process of it, for the history */
    uint32_t link;         /* 0: none */
    int link_node;
    int32_t generation;
    uint32_t partitions; /* bits: owned */
    bool asking;
    bool heard; /* the last heartbeat told of a group at rest */
};

struct sim_native_grouper {
    struct sim_workload *workload;
    struct sim_topic *topic;
    struct history_group history;
    struct sharer sharers[MEMBERS_MAX];
    int sharer_count, process_count;
    struct link *links;
    uint32_t link_count;
};

struct sharer_call {
    struct sim_call base;
    struct sharer *sharer;
    enum sharer_act act;
    char id[MEMBER_BYTES];
    uint32_t link;
    int32_t newest;
    int number;
    uint32_t partition;
    int64_t value, acknowledged;
    /* answer */
    char new_id[MEMBER_BYTES];
    int32_t generation; /* -1: the group is not at rest */
    uint32_t partitions;
};

struct sharer_at_node {
    struct sharer_call *call;
    struct offsets_request offsets;
    struct committed_offset offset;
};

static void sharer_wake(struct sim_event *event);
static void call_ended(struct sim_call *base, enum sim_call_end end);

static void become_new(struct sharer *sharer)
{
    sharer->number = ++sharer->grouper->process_count;
    sharer->id[0] = '\0';
    sharer->in = sharer->heard = false;
    sharer->partitions = 0;
}

struct sim_native_grouper *sim_native_grouper_new(struct sim_workload *workload, int *client)
{
    struct sim_native_grouper *grouper = sim_alloc(sizeof(*grouper));
    grouper->workload = workload;
    grouper->topic = sim_workload_add_topic(workload, "share0", PARTITIONS);
    grouper->sharer_count = (int)random_between(&workload->domain_random, 2, MEMBERS_MAX);
    history_group_init(&grouper->history, workload->verdict);
    for (int i = 0; i < grouper->sharer_count; i++) {
        struct sharer *sharer = &grouper->sharers[i];
        sharer->grouper = grouper;
        sharer->client = (*client)++;
        sharer->index = i;
        sharer->guess.epoch = -1;
        become_new(sharer);
        sim_event_init(&sharer->wake, SIM_EVENT_CLIENT, NULL, sharer_wake);
        sharer->wake.detail = 0xf5000000u + (uint64_t)i;
    }
    workload->group->settings.groups.session_timeout_ms_max = SESSION_MS;
    return grouper;
}

void sim_native_grouper_free(struct sim_native_grouper *grouper)
{
    for (int i = 0; i < grouper->sharer_count; i++)
        sim_world_cancel(grouper->workload->world, &grouper->sharers[i].wake);
    while (grouper->links != NULL) {
        struct link *link = grouper->links;
        grouper->links = link->next;
        if (link->node != NULL) sim_machine_unhang(link->node->machine, &link->resource);
        sim_release(link);
    }
    history_group_deinit(&grouper->history);
    sim_release(grouper);
}

static int64_t draw_pause(const struct sharer *sharer, int64_t low_us, int64_t high_us)
{
    return random_between(&sharer->grouper->workload->domain_random, low_us, high_us);
}

static void wake_in(struct sharer *sharer, int64_t us)
{
    struct sim_world *world = sharer->grouper->workload->world;
    sim_world_schedule(world, &sharer->wake, world->now_us + us);
}

void sim_native_grouper_start(struct sim_native_grouper *grouper)
{
    for (int i = 0; i < grouper->sharer_count; i++)
        wake_in(&grouper->sharers[i], draw_pause(&grouper->sharers[i], RETRY_US_MIN, 3000000));
}

int32_t sim_native_grouper_generation(const struct sim_native_grouper *grouper)
{
    return grouper->history.newest;
}

/* All are in one generation, and each partition has its owner. */
bool sim_native_grouper_drained(const struct sim_native_grouper *grouper, char *why,
                                size_t why_bytes)
{
    uint32_t owned = 0;
    for (int i = 0; i < grouper->sharer_count; i++) {
        const struct sharer *sharer = &grouper->sharers[i];
        if (!sharer->in || !sharer->heard || sharer->generation != grouper->history.newest) {
            snprintf(why, why_bytes, "native member %d is %s, generation %d of %d", i,
                     sharer->in ? "in" : "out", sharer->generation, grouper->history.newest);
            return false;
        }
        owned |= sharer->partitions;
    }
    if (owned == (1u << PARTITIONS) - 1) return true;
    snprintf(why, why_bytes, "the native group's members own partitions %#x only", owned);
    return false;
}

static struct slice text_slice(const char *text)
{
    return (struct slice){(const uint8_t *)text, strlen(text)};
}

static void copy_text(char out[MEMBER_BYTES], struct slice text)
{
    ASSERT(text.bytes < MEMBER_BYTES);
    if (text.bytes > 0) memcpy(out, text.data, text.bytes);
    out[text.bytes] = '\0';
}

/* Inside the process: links. */

static void link_release(struct sim_resource *resource)
{
    struct link *link = CONTAINER_OF(resource, struct link, resource);
    sim_machine_unhang(link->node->machine, &link->resource);
    link->node = NULL;
    link->session = NULL;
    link->joining = NULL;
}

static struct link *find_link(const struct sharer_call *call)
{
    struct link *link = call->sharer->grouper->links;
    while (link != NULL && (link->number != call->link || link->node != call->base.node))
        link = link->next;
    return link;
}

static void session_changed(void *context)
{
    (void)context; /* the next heartbeat tells */
}

static struct link *open_link(const struct sharer_call *call)
{
    struct sim_native_grouper *grouper = call->sharer->grouper;
    struct link *link = sim_alloc(sizeof(*link));
    const struct group_session_handlers handlers = {.changed = session_changed, .context = link};
    link->number = call->link;
    link->node = call->base.node;
    link->resource.release = link_release;
    sim_machine_hang(link->node->machine, &link->resource);
    link->session = group_session_new(link->node->broker, text_slice(GROUP_NAME), &handlers);
    link->next = grouper->links;
    grouper->links = link;
    return link;
}

static void refuse_joining(struct link *link)
{
    struct sharer_call *joining = link->joining;
    link->joining = NULL;
    if (joining == NULL) return;
    joining->base.status = STATUS_CANCELLED;
    sim_call_done(&joining->base);
}

/* The member leaves with it. */
static void close_link(struct link *link)
{
    refuse_joining(link);
    group_session_free(link->session);
    link_release(&link->resource);
}

/* Inside the process: requests. */

static void tell_assignment(struct sharer_call *call, const struct group_session *session)
{
    struct assignment_cursor cursor;
    struct assigned_topic topic;
    call->generation = group_session_generation(session);
    copy_text(call->new_id, group_session_member_id(session));
    if (call->generation < 0) return;
    assignment_cursor_init(&cursor, group_session_assignment(session));
    while (assignment_cursor_next(&cursor, &topic)) {
        for (uint32_t i = 0; i < topic.count; i++)
            call->partitions |= 1u << assigned_partition(&topic, i);
    }
}

static void session_joined(void *context, enum status status)
{
    struct link *link = context;
    struct sharer_call *call = link->joining;
    link->joining = NULL;
    if (status == STATUS_OK) tell_assignment(call, link->session);
    call->base.status = status;
    sim_call_done(&call->base);
}

static void serve_join(struct sharer_call *call)
{
    const struct slice topic = text_slice(call->sharer->grouper->topic->name);
    struct link *link = find_link(call);
    if (link == NULL) link = open_link(call);
    refuse_joining(link);
    link->joining = call;
    group_session_join(link->session, text_slice(call->id), &topic, 1, session_joined, link);
}

static void offsets_done(void *context, struct offsets_request *request)
{
    struct sharer_at_node *at_node = context;
    struct sharer_call *call = at_node->call;
    call->base.status = request->status == STATUS_OK ? at_node->offset.status : request->status;
    if (call->act == SHARER_READ) call->value = at_node->offset.offset;
    sim_call_done(&call->base);
    free(at_node);
}

/* session NULL: reads. */
static void serve_offsets(struct sharer_call *call, const struct group_session *session)
{
    struct broker *broker = call->base.node->broker;
    struct sharer_at_node *at_node = calloc(1, sizeof(*at_node));
    ASSERT(at_node != NULL);
    at_node->call = call;
    at_node->offset =
        (struct committed_offset){.topic = text_slice(call->sharer->grouper->topic->name),
                                  .partition = (int32_t)call->partition,
                                  .offset = session != NULL ? call->value : -1,
                                  .leader_epoch = -1};
    at_node->offsets = (struct offsets_request){.group = text_slice(GROUP_NAME),
                                                .generation = -1,
                                                .offsets = &at_node->offset,
                                                .offset_count = 1,
                                                .timeout_us = ACK_TIMEOUT_US,
                                                .done = offsets_done,
                                                .context = at_node};
    if (session == NULL) {
        broker_fetch_offsets(broker, &at_node->offsets);
        return;
    }
    const struct consumer_identity who = group_session_identity(session);
    at_node->offsets.member_id = who.member_id;
    at_node->offsets.generation = who.generation;
    broker_commit_offsets(broker, &at_node->offsets);
}

/* Whoever is in when it arrives commits in the generation that the group has then. */
static void serve_commit(struct sharer_call *call, const struct group_session *session)
{
    struct sim_native_grouper *grouper = call->sharer->grouper;
    const struct slice topic = text_slice(grouper->topic->name);
    if (!group_session_is_settled(session) ||
        !group_session_owns(session, topic, (int32_t)call->partition)) {
        call->base.status = STATUS_REBALANCE_IN_PROGRESS;
        sim_call_done(&call->base);
        return;
    }
    call->generation = group_session_generation(session);
    history_group_committing(&grouper->history, call->partition, call->value, call->generation);
    serve_offsets(call, session);
}

static void serve_member(struct sharer_call *call)
{
    struct link *link = find_link(call);
    call->base.status =
        link == NULL ? STATUS_UNKNOWN_MEMBER : group_session_heartbeat(link->session);
    if (call->base.status == STATUS_OK && call->act == SHARER_COMMIT) {
        serve_commit(call, link->session);
        return;
    }
    if (call->base.status == STATUS_OK) tell_assignment(call, link->session);
    sim_call_done(&call->base);
}

static void serve_end(struct sharer_call *call)
{
    struct link *link = find_link(call);
    /* The end of a link answers nobody, whoever leads. */
    call->base.status = link == NULL ? STATUS_UNKNOWN_MEMBER : STATUS_CLOSED;
    if (link != NULL && call->act == SHARER_LEAVE)
        call->base.status = group_session_leave(link->session);
    if (link != NULL) close_link(link);
    sim_call_done(&call->base);
}

static void serve_sharer(struct sim_call *base)
{
    struct sharer_call *call = (struct sharer_call *)base;
    call->generation = -1;
    base->status = broker_check_serving(base->node->broker);
    if (base->status != STATUS_OK && call->act != SHARER_CLOSE) {
        sim_call_done(base);
        return;
    }
    switch (call->act) {
    case SHARER_JOIN: serve_join(call); break;
    case SHARER_HEARTBEAT:
    case SHARER_COMMIT: serve_member(call); break;
    case SHARER_READ: serve_offsets(call, NULL); break;
    case SHARER_LEAVE:
    case SHARER_CLOSE: serve_end(call); break;
    }
}

/* Outside: asking. */

static struct sharer_call *new_call(struct sharer *sharer, enum sharer_act act)
{
    struct sim_native_grouper *grouper = sharer->grouper;
    struct sharer_call *call = sim_call_new(&grouper->workload->clients, sizeof(*call),
                                            sharer->client, serve_sharer, call_ended);
    call->sharer = sharer;
    call->act = act;
    call->link = sharer->link;
    call->newest = grouper->history.newest;
    call->number = sharer->number;
    snprintf(call->id, sizeof(call->id), "%s", sharer->id);
    sim_workload_count(grouper->workload, SIM_REQUEST_NATIVE_GROUP);
    return call;
}

/* `tells`: the node learns of it, if it can be reached. */
static void drop_link(struct sharer *sharer, bool tells)
{
    if (sharer->link != 0 && tells)
        sim_call_send(&new_call(sharer, SHARER_CLOSE)->base, sharer->link_node, TIMEOUT_US);
    sharer->link = 0;
    sharer->in = sharer->heard = false;
}

static void ask(struct sharer *sharer, enum sharer_act act)
{
    struct sim_native_grouper *grouper = sharer->grouper;
    struct random *random = &grouper->workload->domain_random;
    if (act == SHARER_JOIN && sharer->link == 0) {
        sharer->link = ++grouper->link_count;
        sharer->link_node = sharer->guess.node;
    }
    struct sharer_call *call = new_call(sharer, act);
    if (act == SHARER_COMMIT || act == SHARER_READ) {
        do
            call->partition = (uint32_t)random_below(random, PARTITIONS);
        while (act == SHARER_COMMIT && (sharer->partitions & 1u << call->partition) == 0);
        call->acknowledged = grouper->history.partitions[call->partition].acknowledged;
    }
    if (act == SHARER_COMMIT)
        call->value = history_group_commit(&grouper->history, call->partition, sharer->generation);
    sharer->asking = true;
    sim_call_send(&call->base, sharer->link_node,
                  act == SHARER_JOIN ? JOIN_TIMEOUT_US : TIMEOUT_US);
}

/* Outside: answers. */

static void take_assignment(struct sharer_call *call)
{
    struct sharer *sharer = call->sharer;
    if (call->act == SHARER_JOIN) snprintf(sharer->id, sizeof(sharer->id), "%s", call->new_id);
    sharer->in = true;
    sharer->heard = call->generation >= 0;
    if (!sharer->heard) return;
    sharer->generation = call->generation;
    sharer->partitions = call->partitions;
    history_group_given(&sharer->grouper->history, call->generation, call->number, call->partitions,
                        call->newest);
}

static void judge_offsets(struct sharer_call *call, enum sim_call_end end)
{
    struct history_group *history = &call->sharer->grouper->history;
    bool ok = end == SIM_CALL_ANSWERED && call->base.status == STATUS_OK;
    bool commit = call->act == SHARER_COMMIT;
    if (!commit && call->act != SHARER_READ) return;
    if (commit && ok) history_group_accepted(history, call->generation, call->newest, "a commit");
    history_group_offset_ended(
        history,
        &(struct history_offset_call){commit, call->partition, call->value, call->acknowledged}, ok,
        end == SIM_CALL_REFUSED);
}

/* What an answer, or none, says of the link and the membership. */
static void learn(struct sharer_call *call, enum sim_call_end end)
{
    struct sharer *sharer = call->sharer;
    enum status status = call->base.status;
    bool redirected = end == SIM_CALL_ANSWERED && sim_status_redirects(status);
    sim_leader_guess_learn(&sharer->guess, &call->base, end, redirected);
    if (end == SIM_CALL_ANSWERED && status == STATUS_OK) {
        if (call->act == SHARER_JOIN || call->act == SHARER_HEARTBEAT) take_assignment(call);
        return;
    }
    sharer->heard = false;
    if (end == SIM_CALL_ANSWERED && status == STATUS_UNKNOWN_MEMBER) sharer->in = false;
    if (end != SIM_CALL_ANSWERED || redirected)
        drop_link(sharer, end == SIM_CALL_ANSWERED || end == SIM_CALL_TIMED_OUT);
}

static void call_ended(struct sim_call *base, enum sim_call_end end)
{
    static const char *const names[] = {"join", "heartbeat", "commit", "read", "leave", "end"};
    struct sharer_call *call = (struct sharer_call *)base;
    struct sharer *sharer = call->sharer;
    bool answered = end == SIM_CALL_ANSWERED;
    if (answered)
        sim_world_trace(sharer->grouper->workload->world, NULL,
                        "%s of native member %d (%s) on link %u: %s, generation %d, partitions %#x",
                        names[call->act], sharer->index, call->id, call->link,
                        status_text(base->status), call->generation, call->partitions);
    if (call->act == SHARER_CLOSE) return;
    judge_offsets(call, end);
    sharer->asking = false;
    if (call->act == SHARER_LEAVE) {
        drop_link(sharer, end == SIM_CALL_TIMED_OUT);
        become_new(sharer);
        wake_in(sharer, draw_pause(sharer, 1000, 3000000));
        return;
    }
    learn(call, end);
    bool ok = answered && base->status == STATUS_OK;
    wake_in(sharer,
            ok ? draw_pause(sharer, 5000, 400000) : draw_pause(sharer, RETRY_US_MIN, RETRY_US_MAX));
}

/* It falls silent; or its connection breaks, known to the node or not, and the same member, or
 * another process, opens one. */
static void fall_silent(struct sharer *sharer)
{
    struct random *random = &sharer->grouper->workload->domain_random;
    uint64_t draw = random_below(random, 4);
    if (draw != 0) drop_link(sharer, draw != 1);
    if (draw == 3) become_new(sharer);
    wake_in(sharer, draw_pause(sharer, draw == 0 ? 1000000 : 1000, SILENT_US_MAX));
}

static void sharer_wake(struct sim_event *event)
{
    struct sharer *sharer = CONTAINER_OF(event, struct sharer, wake);
    struct sim_workload *workload = sharer->grouper->workload;
    if (sharer->asking) return;
    uint64_t draw = random_below(&workload->domain_random, 1000);
    bool calm = workload->draining || workload->options.steady_groups;
    if (!sharer->in)
        ask(sharer, SHARER_JOIN);
    else if (draw < 10 && !calm)
        fall_silent(sharer);
    else if (draw < 14 && !calm)
        ask(sharer, SHARER_LEAVE);
    else if (draw < 450 || workload->draining)
        ask(sharer, SHARER_HEARTBEAT);
    else if (draw < 750 && sharer->partitions != 0)
        ask(sharer, SHARER_COMMIT);
    else
        ask(sharer, SHARER_READ);
}
