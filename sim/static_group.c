/* static_group.c: see static_group.h. */
#include "sim/static_group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "broker/admin.h"

#define TIMEOUT_US     6000000
#define ACK_TIMEOUT_US 5000000
#define RETRY_US       50000
#define LATE_US_MAX    8000000
#define TEND_US_MIN    100000
#define TEND_US_MAX    4000000

/* Makes the topic of one node: created, grown to its size, and altered last, because only what is
 * acknowledged of a topic that was there already proves that it stays. */
struct sim_static_maker {
    struct sim_static_group *statics;
    int node, client;
    struct sim_event wake;
    uint32_t partitions; /* wanted now; fewer than in the end at first, maybe */
    bool made;           /* with all of them, once */
};

struct make_call {
    struct sim_call base;
    struct sim_static_maker *maker;
    enum make_step { MAKE_CREATE, MAKE_GROW, MAKE_ALTER } step;
    uint32_t partitions;
    char segment_ms[24];
    struct uuid uid; /* answer */
};

struct make_at_node {
    struct make_call *call;
    struct topic_change changes[2];
};

/* ---- the shape ---- */

static void configure(void *context, const struct sim_node *node, struct replication_config *config)
{
    const struct sim_static_group *statics = context;
    config->enabled = false;
    config->min_insync = 1;
    config->peer_count = 0;
    config->pushes = statics->followers[node->index] != 0;
    config->takes_pushes = sim_static_takes_pushes(statics, node->index);
    config->lag_max = statics->lag_max;
    config->follower_count = 0;
    for (int i = 0; i < SIM_STATIC_NODES; i++) {
        if ((statics->followers[node->index] & 1u << i) == 0) continue;
        sim_node_name_peer(i, &config->followers[config->follower_count++]);
    }
}

bool sim_static_takes_pushes(const struct sim_static_group *statics, int node)
{
    for (int i = 0; i < SIM_STATIC_NODES; i++) {
        if ((statics->followers[i] & 1u << node) != 0) return true;
    }
    return false;
}

void sim_static_group_init(struct sim_static_group *statics, struct sim_group *group, uint64_t seed)
{
    static const int64_t lags[] = {0, 0, 5, 100};
    memset(statics, 0, sizeof(*statics));
    statics->group = group;
    random_seed(&statics->random, seed);
    uint64_t shape = random_below(&statics->random, 8);
    if (shape == 0) { /* each pushes to the two others */
        for (int i = 0; i < SIM_STATIC_NODES; i++)
            statics->followers[i] = 7u & ~(1u << i);
        statics->written = 7;
    } else if (shape <= 2) { /* 1 to 2, 2 to 3: what 2 was pushed goes no further */
        statics->followers[0] = 2;
        statics->followers[1] = 4;
        statics->written = 3;
    } else {
        statics->followers[0] = 6;
        statics->written = shape == 3 ? 3 : 1; /* a follower takes writes, too */
    }
    statics->identical = statics->written == 1;
    statics->lag_max = lags[random_below(&statics->random, ARRAY_COUNT(lags))];
    group->configure = configure;
    group->configure_context = statics;
}

void sim_static_group_deinit(struct sim_static_group *statics)
{
    for (int i = 0; i < SIM_STATIC_NODES; i++) {
        if (statics->makers[i] == NULL) continue;
        sim_world_cancel(statics->group->world, &statics->makers[i]->wake);
        sim_release(statics->makers[i]);
    }
}

void sim_static_options(const struct sim_static_group *statics,
                        struct sim_workload_options *options)
{
    options->own_topics = true;
    options->data_topics = SIM_STATIC_NODES;
    options->written = statics->written;
    options->read_topic = -1;
    for (int i = 0; i < SIM_STATIC_NODES; i++) {
        if (!sim_static_takes_pushes(statics, i)) options->read_topic = i;
    }
    if (options->read_topic < 0) options->consumers = 0;
}

/* ---- the topics ---- */

static void make_done(void *context, enum status status, const struct error *error)
{
    struct make_at_node *at_node = context;
    struct make_call *call = at_node->call;
    (void)error;
    call->base.status = status;
    const struct topic *topic =
        catalog_find(call->base.node->broker, SIM_STATIC_TOPIC, strlen(SIM_STATIC_TOPIC));
    if (topic != NULL) call->uid = *topic_uid(topic);
    sim_call_done(&call->base);
    free(at_node);
}

static void serve_make(struct sim_call *base)
{
    struct make_call *call = (struct make_call *)base;
    struct broker *broker = base->node->broker;
    const struct topic *topic = catalog_find(broker, SIM_STATIC_TOPIC, strlen(SIM_STATIC_TOPIC));
    struct make_at_node *at_node = calloc(1, sizeof(*at_node));
    ASSERT(at_node != NULL);
    at_node->call = call;
    /* Nothing is deleted by age: a clock that jumps takes nothing away. */
    at_node->changes[0] = (struct topic_change){"retention.ms", "-1"};
    at_node->changes[1] = (struct topic_change){"segment.ms", call->segment_ms};
    struct admin_request request = {.topic = SIM_STATIC_TOPIC,
                                    .partitions = call->partitions,
                                    .changes = at_node->changes,
                                    .change_count = 2,
                                    .timeout_us = ACK_TIMEOUT_US,
                                    .done = make_done,
                                    .context = at_node};
    if (topic == NULL)
        call->step = MAKE_CREATE;
    else if (topic_partition_count(topic) < call->partitions)
        call->step = MAKE_GROW;
    else
        call->step = MAKE_ALTER;
    switch (call->step) {
    case MAKE_CREATE: broker_create_topic(broker, &request); break;
    case MAKE_GROW: broker_grow_topic(broker, &request); break;
    case MAKE_ALTER: broker_alter_topic(broker, &request); break;
    }
}

static void topic_made(struct sim_static_maker *maker, const struct make_call *call)
{
    struct sim_static_group *statics = maker->statics;
    struct sim_workload *workload = statics->workload;
    struct sim_topic *topic = &workload->topics[maker->node];
    uint32_t all = (uint32_t)workload->options.partitions;
    topic->uid = call->uid;
    topic->exists = true;
    topic->epoch = call->base.epoch;
    topic->partitions = maker->partitions;
    if (maker->partitions < all) {
        maker->partitions = all;
        sim_world_schedule(statics->group->world, &maker->wake,
                           statics->group->world->now_us +
                               random_between(&statics->random, 0, LATE_US_MAX));
        return;
    }
    if (!maker->made) {
        maker->made = true;
        workload->topics_ready++;
        sim_workload_topic_ready(workload, maker->node);
    }
    if (statics->tends && (statics->written & 1u << maker->node) == 0)
        sim_world_schedule(statics->group->world, &maker->wake,
                           statics->group->world->now_us +
                               random_between(&statics->random, TEND_US_MIN, TEND_US_MAX));
}

static void make_ended(struct sim_call *base, enum sim_call_end end)
{
    struct make_call *call = (struct make_call *)base;
    struct sim_static_maker *maker = call->maker;
    struct sim_world *world = maker->statics->group->world;
    if (end == SIM_CALL_ANSWERED && base->status == STATUS_OK && call->step == MAKE_ALTER)
        topic_made(maker, call);
    else
        sim_world_schedule(world, &maker->wake, world->now_us + RETRY_US);
}

static void maker_wake(struct sim_event *event)
{
    struct sim_static_maker *maker = CONTAINER_OF(event, struct sim_static_maker, wake);
    struct sim_static_group *statics = maker->statics;
    struct make_call *call = sim_call_new(&statics->workload->clients, sizeof(*call), maker->client,
                                          serve_make, make_ended);
    call->maker = maker;
    call->partitions = maker->partitions;
    snprintf(call->segment_ms, sizeof(call->segment_ms), "%lld",
             (long long)random_between(&statics->random, 300, 20000));
    sim_workload_count(statics->workload, SIM_REQUEST_ADMIN);
    sim_call_send(&call->base, maker->node, TIMEOUT_US);
}

void sim_static_start(struct sim_static_group *statics, struct sim_workload *workload,
                      int first_client)
{
    struct random *random = &statics->random;
    uint32_t all = (uint32_t)workload->options.partitions;
    statics->workload = workload;
    for (int i = 0; i < SIM_STATIC_NODES; i++) {
        bool late = (statics->written & 1u << i) == 0 && random_below(random, 3) == 0;
        struct sim_static_maker *maker = sim_alloc(sizeof(*maker));
        statics->makers[i] = maker;
        maker->statics = statics;
        maker->node = i;
        maker->client = first_client + i;
        maker->partitions = late ? (uint32_t)random_between(random, 1, all) : all;
        snprintf(workload->topics[i].name, sizeof(workload->topics[i].name), SIM_STATIC_TOPIC);
        sim_event_init(&maker->wake, SIM_EVENT_CLIENT, NULL, maker_wake);
        maker->wake.detail = 0xd1000000u + (uint64_t)i;
        sim_world_schedule(statics->group->world, &maker->wake,
                           statics->group->world->now_us +
                               (late ? random_between(random, 0, LATE_US_MAX) : RETRY_US));
    }
}
