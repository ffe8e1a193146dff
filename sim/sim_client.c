#include "sim/sim_client.h"

#include <string.h>

#include "base/assert.h"

#define DELAY_US_MIN 50
#define DELAY_US_MAX 400

static void call_arrives(struct sim_event *event);
static void call_is_served(struct sim_event *event);
static void call_returns(struct sim_event *event);
static void call_times_out(struct sim_event *event);

void sim_clients_init(struct sim_clients *clients, struct sim_group *group)
{
    memset(clients, 0, sizeof(*clients));
    clients->group = group;
    clients->delay_us_min = DELAY_US_MIN;
    clients->delay_us_max = DELAY_US_MAX;
}

static void call_free(struct sim_call *call)
{
    struct sim_world *world = call->clients->group->world;
    sim_world_cancel(world, &call->event);
    sim_world_cancel(world, &call->timeout);
    if (call->at_node) sim_machine_unhang(call->node->machine, &call->resource);
    if (call->previous != NULL)
        call->previous->next = call->next;
    else
        call->clients->calls = call->next;
    if (call->next != NULL) call->next->previous = call->previous;
    sim_release(call);
}

void sim_clients_deinit(struct sim_clients *clients)
{
    while (clients->calls != NULL)
        call_free(clients->calls);
}

void *sim_call_new(struct sim_clients *clients, size_t bytes, int client,
                   void (*serve)(struct sim_call *call),
                   void (*ended)(struct sim_call *call, enum sim_call_end end))
{
    ASSERT(client < SIM_CLIENTS_MAX && bytes >= sizeof(struct sim_call));
    struct sim_call *call = sim_alloc(bytes);
    call->clients = clients;
    call->client = client;
    call->serve = serve;
    call->ended = ended;
    call->leader_id = -1;
    call->epoch = -1;
    sim_event_init(&call->event, SIM_EVENT_CLIENT, NULL, call_arrives);
    sim_event_init(&call->timeout, SIM_EVENT_CLIENT, NULL, call_times_out);
    call->event.detail = call->timeout.detail =
        (uint64_t)client << 32 | (clients->next_number++ & 0xffffffffu);
    call->next = clients->calls;
    if (clients->calls != NULL) clients->calls->previous = call;
    clients->calls = call;
    return call;
}

void sim_call_send(struct sim_call *call, int node, int64_t timeout_us)
{
    struct sim_clients *clients = call->clients;
    struct sim_world *world = clients->group->world;
    call->node = &clients->group->nodes[node];
    call->waiting = true;
    sim_world_schedule(world, &call->timeout, world->now_us + timeout_us);
    if (clients->cut[call->client][node]) return;
    int64_t at_us =
        world->now_us + sim_world_between(world, clients->delay_us_min, clients->delay_us_max);
    int64_t *last_us = &clients->last_arrival_us[call->client][node];
    if (at_us <= *last_us) at_us = *last_us + 1;
    *last_us = at_us;
    call->in_flight = true;
    sim_world_schedule(world, &call->event, at_us);
}

/* The answer, or the news of the end, starts on its way back. */
static void call_return(struct sim_call *call, enum sim_call_end end)
{
    struct sim_clients *clients = call->clients;
    struct sim_world *world = clients->group->world;
    call->end = end;
    if (!call->waiting) {
        call_free(call);
        return;
    }
    if (clients->cut[call->client][call->node->index]) {
        call->in_flight = false;
        return; /* the client's own time-out ends it */
    }
    sim_event_init(&call->event, SIM_EVENT_CLIENT, NULL, call_returns);
    call->event.detail = call->timeout.detail;
    sim_world_schedule(world, &call->event,
                       world->now_us +
                           sim_world_between(world, clients->delay_us_min, clients->delay_us_max));
}

/* The process died while it had the request. A machine without power tells nobody. */
static void call_release(struct sim_resource *resource)
{
    struct sim_call *call = CONTAINER_OF(resource, struct sim_call, resource);
    sim_machine_unhang(call->node->machine, &call->resource);
    call->at_node = false;
    sim_world_cancel(call->clients->group->world, &call->event);
    if (sim_machine_host_is_up(call->node->machine)) {
        call_return(call, SIM_CALL_CLOSED);
        return;
    }
    call->in_flight = false;
    if (!call->waiting) call_free(call);
}

static void call_arrives(struct sim_event *event)
{
    struct sim_call *call = CONTAINER_OF(event, struct sim_call, event);
    struct sim_machine *machine = call->node->machine;
    if (!sim_machine_host_is_up(machine)) {
        call->in_flight = false;
        if (!call->waiting) call_free(call);
        return;
    }
    if (!call->node->running) {
        call_return(call, SIM_CALL_REFUSED);
        return;
    }
    sim_event_init(&call->event, SIM_EVENT_CLIENT, machine, call_is_served);
    call->event.detail = call->timeout.detail;
    call->resource.release = call_release;
    sim_machine_hang(machine, &call->resource);
    call->at_node = true;
    sim_world_schedule(call->clients->group->world, &call->event, 0);
}

static void call_is_served(struct sim_event *event)
{
    struct sim_call *call = CONTAINER_OF(event, struct sim_call, event);
    const struct group_view *view = broker_group_view(call->node->broker);
    call->leader_id = view->leader_id;
    call->epoch = view->epoch;
    call->served_us = call->clients->group->world->now_us;
    call->serve(call);
}

void sim_call_done(struct sim_call *call)
{
    const struct group_view *view = broker_group_view(call->node->broker);
    call->leader_id = view->leader_id;
    call->epoch = view->epoch;
    if (call->status == STATUS_OK && call->clients->answered_ok != NULL)
        call->clients->answered_ok(call->clients->context, call);
    sim_machine_unhang(call->node->machine, &call->resource);
    call->at_node = false;
    call_return(call, SIM_CALL_ANSWERED);
}

static void call_end(struct sim_call *call, enum sim_call_end end)
{
    struct sim_world *world = call->clients->group->world;
    static const char *const ends[] = {"answered", "refused", "closed", "timed out"};
    call->waiting = false;
    sim_world_cancel(world, &call->timeout);
    sim_world_trace(
        world, call->node->machine, "call %llx %s%s%s leader=%d epoch=%d",
        (unsigned long long)call->timeout.detail, ends[end], end == SIM_CALL_ANSWERED ? ": " : "",
        end == SIM_CALL_ANSWERED ? status_text(call->status) : "", call->leader_id, call->epoch);
    call->ended(call, end);
    if (!call->in_flight) call_free(call);
}

static void call_returns(struct sim_event *event)
{
    struct sim_call *call = CONTAINER_OF(event, struct sim_call, event);
    call->in_flight = false;
    call_end(call, call->end);
}

/* A request still under way stays there; what it does, it does. */
static void call_times_out(struct sim_event *event)
{
    struct sim_call *call = CONTAINER_OF(event, struct sim_call, timeout);
    if (call->event.fire == call_returns) {
        sim_world_cancel(call->clients->group->world, &call->event);
        call->in_flight = false;
    }
    call_end(call, SIM_CALL_TIMED_OUT);
}

bool sim_status_redirects(enum status status)
{
    return status == STATUS_NOT_LEADER || status == STATUS_NOT_READY ||
           status == STATUS_NO_LEADER || status == STATUS_FENCED_EPOCH ||
           status == STATUS_UNKNOWN_EPOCH;
}

void sim_leader_guess_learn(struct sim_leader_guess *guess, const struct sim_call *call,
                            enum sim_call_end end, bool redirected)
{
    int node_count = call->clients->group->node_count;
    if (end == SIM_CALL_ANSWERED && call->epoch > guess->epoch) guess->epoch = call->epoch;
    if (guess->fixed || (end == SIM_CALL_ANSWERED && !redirected)) return;
    if (guess->node != call->node->index) return; /* learned better meanwhile */
    if (end == SIM_CALL_ANSWERED && call->leader_id >= 1 && call->leader_id <= node_count &&
        call->leader_id - 1 != guess->node && call->epoch >= guess->epoch)
        guess->node = call->leader_id - 1;
    else
        guess->node = (guess->node + 1) % node_count;
}
