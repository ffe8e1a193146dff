/* sim_group.h: a whole replication group in one virtual world. */
#ifndef MOONMQ_SIM_SIM_GROUP_H
#define MOONMQ_SIM_SIM_GROUP_H

#include "sim/sim_node.h"

#define SIM_NODES_MAX 5

struct sim_group {
    struct sim_world *world;
    struct sim_network *network;
    struct sim_node nodes[SIM_NODES_MAX];
    int node_count;
    struct replication_config config; /* what all share */
    struct broker_settings settings;
    void (*node_died)(void *context, struct sim_node *node);
    void *context;
    /* What one node's file says otherwise; NULL: nothing. */
    void (*configure)(void *context, const struct sim_node *node,
                      struct replication_config *config);
    void *configure_context;
};

/* Machines without a process; config and settings at small defaults, the caller may change them
 * before the first start. */
void sim_group_init(struct sim_group *group, struct sim_world *world, int node_count);
void sim_group_deinit(struct sim_group *group);
int sim_group_majority(const struct sim_group *group);
/* The node that serves clients in the highest epoch, as far as it knows itself; NULL: none. */
struct sim_node *sim_group_leader(struct sim_group *group);
/* Both directions between two nodes. */
void sim_group_cut(struct sim_group *group, int a, int b, bool cut);
void sim_group_heal_network(struct sim_group *group);

#endif
