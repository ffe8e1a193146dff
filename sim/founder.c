/* founder.c: makes the topics of the domains, one after the other, as the churner makes the data
 * topics: asks until one answer says that it exists as it should.                              */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "broker/admin.h"
#include "sim/workload.h"

#define TIMEOUT_US     6000000
#define ACK_TIMEOUT_US 5000000
#define RETRY_US       50000

struct sim_founder {
    struct sim_workload *workload;
    int client;
    struct sim_leader_guess guess;
    struct sim_event wake;
    int ready; /* of the domains' topics */
};

struct founding_call {
    struct sim_call base;
    struct sim_founder *founder;
    const struct sim_topic *topic;
    bool creates; /* false: it exists; an alteration that is acknowledged proves it for good */
    struct uuid uid;
};

struct founding_at_node {
    struct founding_call *call;
    struct topic_change changes[SIM_TOPIC_CHANGES_MAX];
};

static void founder_wake(struct sim_event *event);

struct sim_founder *sim_founder_new(struct sim_workload *workload, int client)
{
    struct sim_founder *founder = sim_alloc(sizeof(*founder));
    founder->workload = workload;
    founder->client = client;
    founder->guess.epoch = -1;
    sim_event_init(&founder->wake, SIM_EVENT_CLIENT, NULL, founder_wake);
    founder->wake.detail = 0xe0000000u;
    return founder;
}

void sim_founder_free(struct sim_founder *founder)
{
    sim_world_cancel(founder->workload->world, &founder->wake);
    sim_release(founder);
}

void sim_founder_start(struct sim_founder *founder)
{
    struct sim_world *world = founder->workload->world;
    sim_world_schedule(world, &founder->wake, world->now_us + RETRY_US);
}

bool sim_founder_is_done(const struct sim_founder *founder)
{
    return founder->ready == founder->workload->domain_topic_count;
}

/* Inside the process. */

static void founding_done(void *context, enum status status, const struct error *error)
{
    struct founding_at_node *at_node = context;
    struct founding_call *call = at_node->call;
    const char *name = call->topic->name;
    struct topic *topic = catalog_find(call->base.node->broker, name, strlen(name));
    (void)error;
    call->base.status = status;
    if (topic != NULL) call->uid = *topic_uid(topic);
    sim_call_done(&call->base);
    free(at_node);
}

static void serve_founding(struct sim_call *base)
{
    struct founding_call *call = (struct founding_call *)base;
    struct broker *broker = base->node->broker;
    base->status = broker_check_serving(broker);
    if (base->status != STATUS_OK) {
        sim_call_done(base);
        return;
    }
    struct founding_at_node *at_node = calloc(1, sizeof(*at_node));
    ASSERT(at_node != NULL);
    at_node->call = call;
    for (uint32_t i = 0; i < call->topic->change_count; i++)
        at_node->changes[i] =
            (struct topic_change){call->topic->change_names[i], call->topic->change_values[i]};
    const struct admin_request request = {.topic = call->topic->name,
                                          .partitions = call->topic->partitions,
                                          .changes = at_node->changes,
                                          .change_count = call->topic->change_count,
                                          .timeout_us = ACK_TIMEOUT_US,
                                          .done = founding_done,
                                          .context = at_node};
    if (call->creates)
        broker_create_topic(broker, &request);
    else
        broker_alter_topic(broker, &request);
}

/* Outside. */

static void founding_ended(struct sim_call *base, enum sim_call_end end)
{
    struct founding_call *call = (struct founding_call *)base;
    struct sim_founder *founder = call->founder;
    struct sim_workload *workload = founder->workload;
    struct sim_topic *topic = &workload->domain_topics[founder->ready];
    bool answered = end == SIM_CALL_ANSWERED;
    sim_leader_guess_learn(&founder->guess, base, end,
                           answered && sim_status_redirects(base->status));
    if (answered)
        topic->exists = base->status == STATUS_EXISTS ||
                        (topic->exists && base->status != STATUS_UNKNOWN_TOPIC);
    if (answered && base->status == STATUS_OK && !uuid_is_none(&call->uid)) {
        topic->uid = call->uid;
        topic->epoch = base->epoch;
        topic->exists = true;
        founder->ready++;
    }
    if (sim_founder_is_done(founder))
        sim_workload_domains_ready(workload);
    else
        sim_world_schedule(workload->world, &founder->wake, workload->world->now_us + RETRY_US);
}

static void founder_wake(struct sim_event *event)
{
    struct sim_founder *founder = CONTAINER_OF(event, struct sim_founder, wake);
    struct sim_workload *workload = founder->workload;
    if (sim_founder_is_done(founder)) {
        sim_workload_domains_ready(workload);
        return;
    }
    struct founding_call *call = sim_call_new(&workload->clients, sizeof(*call), founder->client,
                                              serve_founding, founding_ended);
    call->founder = founder;
    call->topic = &workload->domain_topics[founder->ready];
    call->creates = !call->topic->exists;
    sim_workload_count(workload, SIM_REQUEST_ADMIN);
    sim_call_send(&call->base, founder->guess.node, TIMEOUT_US);
}
