/* committer.c: one member-less consumer group: commits ever larger offsets and reads them back
 * (I18). A commit whose outcome is open may take effect at any later time, so its value stays
 * possible; everything else that is older than the last acknowledged commit is not.            */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "broker/offsets.h"
#include "sim/workload.h"

#define TIMEOUT_US     6000000
#define ACK_TIMEOUT_US 5000000
#define PAUSE_US_MIN   30000
#define PAUSE_US_MAX   250000
#define OPEN_MAX       256
#define GROUP_NAME     "readers"

struct sim_committer {
    struct sim_workload *workload;
    int client;
    struct sim_leader_guess guess;
    struct sim_event wake;
    int64_t attempted;      /* last value sent */
    int64_t acknowledged;   /* last value acknowledged; 0: none */
    int64_t open[OPEN_MAX]; /* values whose outcome is open */
    int open_count;
    bool asking;
};

struct offsets_call {
    struct sim_call base;
    struct sim_committer *committer;
    bool commits;
    int64_t offset;       /* to commit, or (answer) read */
    int64_t acknowledged; /* when a read was sent */
};

struct offsets_at_node {
    struct offsets_request request;
    struct committed_offset offset;
    struct offsets_call *call;
};

static void committer_wake(struct sim_event *event);

struct sim_committer *sim_committer_new(struct sim_workload *workload, int client)
{
    struct sim_committer *committer = sim_alloc(sizeof(*committer));
    committer->workload = workload;
    committer->client = client;
    committer->guess.epoch = -1;
    sim_event_init(&committer->wake, SIM_EVENT_CLIENT, NULL, committer_wake);
    committer->wake.detail = 0xc0000000u;
    return committer;
}

void sim_committer_free(struct sim_committer *committer)
{
    sim_world_cancel(committer->workload->world, &committer->wake);
    sim_release(committer);
}

void sim_committer_start(struct sim_committer *committer)
{
    struct sim_world *world = committer->workload->world;
    sim_world_schedule(world, &committer->wake, world->now_us + PAUSE_US_MIN);
}

bool sim_committer_drained(const struct sim_committer *committer)
{
    return !committer->asking;
}

static void offsets_done(void *context, struct offsets_request *request)
{
    struct offsets_at_node *at_node = context;
    struct offsets_call *call = at_node->call;
    call->base.status = request->status;
    if (request->status == STATUS_OK) {
        if (call->commits)
            call->base.status = at_node->offset.status;
        else
            call->offset = at_node->offset.offset;
    }
    sim_call_done(&call->base);
    free(at_node);
}

static struct slice text_slice(const char *text)
{
    return (struct slice){(const uint8_t *)text, strlen(text)};
}

static void serve_offsets(struct sim_call *base)
{
    struct offsets_call *call = (struct offsets_call *)base;
    struct broker *broker = base->node->broker;
    base->status = broker_check_serving(broker);
    if (base->status != STATUS_OK) {
        sim_call_done(base);
        return;
    }
    struct offsets_at_node *at_node = calloc(1, sizeof(*at_node));
    ASSERT(at_node != NULL);
    at_node->call = call;
    at_node->offset =
        (struct committed_offset){.topic = text_slice(call->committer->workload->topics[0].name),
                                  .partition = 0,
                                  .offset = call->commits ? call->offset : -1,
                                  .leader_epoch = -1};
    at_node->request = (struct offsets_request){.group = text_slice(GROUP_NAME),
                                                .generation = -1,
                                                .offsets = &at_node->offset,
                                                .offset_count = 1,
                                                .timeout_us = ACK_TIMEOUT_US,
                                                .done = offsets_done,
                                                .context = at_node};
    if (call->commits)
        broker_commit_offsets(broker, &at_node->request);
    else
        broker_fetch_offsets(broker, &at_node->request);
}

static void commit_ended(struct offsets_call *call, enum sim_call_end end)
{
    struct sim_committer *committer = call->committer;
    if (end == SIM_CALL_ANSWERED && call->base.status == STATUS_OK) {
        committer->acknowledged = call->offset;
        return;
    }
    if (end == SIM_CALL_REFUSED) return;
    if (committer->open_count < OPEN_MAX) committer->open[committer->open_count++] = call->offset;
}

static bool is_open(const struct sim_committer *committer, int64_t offset)
{
    for (int i = 0; i < committer->open_count; i++) {
        if (committer->open[i] == offset) return true;
    }
    return false;
}

static void read_ended(struct offsets_call *call, enum sim_call_end end)
{
    struct sim_committer *committer = call->committer;
    if (end != SIM_CALL_ANSWERED || call->base.status != STATUS_OK) return;
    int64_t read = call->offset < 0 ? 0 : call->offset;
    if (read > committer->attempted || (read < call->acknowledged && !is_open(committer, read)))
        sim_verdict_fail(committer->workload->verdict, "I18",
                         "committed offset read as %lld from node %d (epoch %d); %lld was "
                         "acknowledged before, %lld is the highest sent",
                         (long long)call->offset, call->base.node->index + 1, call->base.epoch,
                         (long long)call->acknowledged, (long long)committer->attempted);
}

static void offsets_ended(struct sim_call *base, enum sim_call_end end)
{
    struct offsets_call *call = (struct offsets_call *)base;
    struct sim_committer *committer = call->committer;
    struct sim_workload *workload = committer->workload;
    bool redirected = end == SIM_CALL_ANSWERED && sim_status_redirects(base->status);
    sim_leader_guess_learn(&committer->guess, base, end, redirected);
    if (call->commits)
        commit_ended(call, end);
    else
        read_ended(call, end);
    committer->asking = false;
    if (workload->draining) return;
    sim_world_schedule(workload->world, &committer->wake,
                       workload->world->now_us +
                           random_between(&workload->random, PAUSE_US_MIN, PAUSE_US_MAX));
}

static void committer_wake(struct sim_event *event)
{
    struct sim_committer *committer = CONTAINER_OF(event, struct sim_committer, wake);
    struct sim_workload *workload = committer->workload;
    struct offsets_call *call = sim_call_new(&workload->clients, sizeof(*call), committer->client,
                                             serve_offsets, offsets_ended);
    call->committer = committer;
    call->commits = random_below(&workload->random, 2) == 0;
    if (call->commits) call->offset = ++committer->attempted;
    call->acknowledged = committer->acknowledged;
    committer->asking = true;
    sim_workload_count(workload, call->commits ? SIM_REQUEST_COMMIT : SIM_REQUEST_FETCH_COMMITTED);
    sim_call_send(&call->base, committer->guess.node, TIMEOUT_US);
}
