#include "sim/sim_group.h"

#include <string.h>

#define KIB 1024
#define MIB (1024 * KIB)

void sim_group_init(struct sim_group *group, struct sim_world *world, int node_count)
{
    memset(group, 0, sizeof(*group));
    group->world = world;
    group->network = sim_network_new(world);
    group->node_count = node_count;
    replication_config_default(&group->config, (uint32_t)node_count);
    broker_settings_default(&group->settings);
    group->settings.auto_create_topics = false;
    group->settings.default_partitions = 1;
    group->settings.internal_partitions = 2;
    group->settings.cache_bytes_max = 4 * MIB;
    group->settings.unsynced_bytes_max = 4 * MIB;
    /* What the slow tick does is to happen in more than one piece; how often it comes is drawn
     * where logs are compacted (keeper.c), and not shorter than a jump of a clock elsewhere. */
    group->settings.compaction_map_bytes = KIB;
    for (int i = 0; i < node_count; i++)
        sim_node_init(&group->nodes[i], group, i);
}

void sim_group_deinit(struct sim_group *group)
{
    group->node_died = NULL;
    for (int i = 0; i < group->node_count; i++)
        sim_node_deinit(&group->nodes[i]);
    sim_network_free(group->network);
}

int sim_group_majority(const struct sim_group *group)
{
    return group->node_count / 2 + 1;
}

struct sim_node *sim_group_leader(struct sim_group *group)
{
    struct sim_node *leader = NULL;
    int32_t epoch = -1;
    for (int i = 0; i < group->node_count; i++) {
        struct node_facts facts;
        if (!sim_node_facts(&group->nodes[i], &facts) || !facts.leader_serving) continue;
        if (facts.epoch <= epoch) continue;
        epoch = facts.epoch;
        leader = &group->nodes[i];
    }
    return leader;
}

void sim_group_cut(struct sim_group *group, int a, int b, bool cut)
{
    sim_network_path(group->network, a + 1, b + 1)->cut = cut;
    sim_network_path(group->network, b + 1, a + 1)->cut = cut;
}

void sim_group_heal_network(struct sim_group *group)
{
    for (int a = 0; a < group->node_count; a++) {
        for (int b = 0; b < group->node_count; b++) {
            struct sim_path *path = sim_network_path(group->network, a + 1, b + 1);
            *path = (struct sim_path){.delay_us_min = 50, .delay_us_max = 250};
        }
    }
    *sim_network_faults(group->network) = (struct sim_network_faults){0};
}
