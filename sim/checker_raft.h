/* checker_raft.h: what Raft promises of its entries: one that is known committed anywhere stands at
 * its index for ever (I9), and what a process knows committed it goes on knowing (T52, T53). */
#ifndef MOONMQ_SIM_CHECKER_RAFT_H
#define MOONMQ_SIM_CHECKER_RAFT_H

#include "sim/sim_group.h"
#include "sim/verdict.h"

struct sim_raft_checker;

struct sim_raft_checker *sim_raft_checker_new(struct sim_verdict *verdict);
void sim_raft_checker_free(struct sim_raft_checker *checker);
/* `facts`: of this node, now. Not for one whose disk was damaged. */
void sim_raft_checker_look(struct sim_raft_checker *checker, struct sim_node *node,
                           const struct node_facts *facts);

#endif
