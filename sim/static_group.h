/* static_group.h: a group in static mode (replication.md section 1): who pushes to whom, and its
 * topics, one of the same name on each node.
 *
 * Shapes: a leader with two followers, a chain through one that is both, three that are both. The
 * workload's topic i is node i's own (sim_workload_options.own_topics); followers get theirs when
 * the seed says so, maybe with too few partitions at first: until then they refuse, by name.     */
#ifndef MOONMQ_SIM_STATIC_GROUP_H
#define MOONMQ_SIM_STATIC_GROUP_H

#include "sim/workload.h"

#define SIM_STATIC_NODES 3
#define SIM_STATIC_TOPIC "data"
_Static_assert(SIM_STATIC_NODES <= SIM_DATA_TOPICS_MAX, "a topic a node");

struct sim_static_maker;

struct sim_static_group {
    struct sim_group *group;
    struct sim_workload *workload;
    struct random random;
    uint32_t followers[SIM_STATIC_NODES]; /* bits: whom node i pushes to; 0: it is a follower */
    uint32_t written;                     /* bits: at whom clients write */
    bool tends;     /* topics are looked after for the whole run: a follower may lose its own */
    bool identical; /* followers hold nothing but the leader's records, at the leader's offsets */
    int64_t lag_max;
    struct sim_static_maker *makers[SIM_STATIC_NODES];
};

/* Draws the shape; makes the nodes of `group` take it up when they start. */
void sim_static_group_init(struct sim_static_group *statics, struct sim_group *group,
                           uint64_t seed);
void sim_static_group_deinit(struct sim_static_group *statics);
bool sim_static_takes_pushes(const struct sim_static_group *statics, int node);
/* What follows from the shape for the clients. */
void sim_static_options(const struct sim_static_group *statics,
                        struct sim_workload_options *options);
/* Lets topics be made, from the first client on. */
void sim_static_start(struct sim_static_group *statics, struct sim_workload *workload,
                      int first_client);

#endif
