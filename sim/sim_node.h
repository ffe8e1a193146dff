/* sim_node.h: one replica of a virtual group: broker and replication node on a virtual machine.
 *
 * States: down -> starting (recovery) -> running -> stopping -> down; death from any. A start that
 * ends in an error leaves, as the program would, and may be tried again.                        */
#ifndef MOONMQ_SIM_SIM_NODE_H
#define MOONMQ_SIM_SIM_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/broker.h"
#include "replication/node.h"
#include "sim/machine.h"

#define SIM_DATA_DIR "/data"

struct sim_group;

struct sim_node {
    struct sim_group *group;
    int index; /* 0-based; the replica id is one more */
    struct sim_machine *machine;
    struct broker *broker; /* while the process is up */
    struct node *node;
    bool running; /* started: clients are let in */
    bool stopping;
    uint32_t starts, refusals; /* processes begun; of these, ended by an error of the start */
    struct error start_error;  /* of the last refusal */
    uint32_t members_mask;     /* bit i: node i is on this node's list (all, usually) */
    int64_t down_since_us;
    int64_t resumed_us; /* of the last gap that its clock showed; -1: none yet */
};

void sim_node_init(struct sim_node *node, struct sim_group *group, int index);
void sim_node_deinit(struct sim_node *node);
bool sim_node_is_up(const struct sim_node *node);
/* How the others know node `index` (0-based). */
void sim_node_name_peer(int index, struct replication_peer *out);
/* No-op unless down. */
void sim_node_start(struct sim_node *node);
void sim_node_kill(struct sim_node *node, enum sim_death death);
/* SIGTERM: hands over, flushes, leaves. */
void sim_node_stop(struct sim_node *node);
/* `moonmq leader transfer`; nothing comes of it unless it leads. to_id -1: the most caught up. */
void sim_node_transfer(struct sim_node *node, int32_t to_id);
/* False: no process to ask. */
bool sim_node_facts(struct sim_node *node, struct node_facts *out);

#endif
