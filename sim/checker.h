/* checker.h: looks into the objects of every running replica, again and again, and at the end into
 * the files: I8–I15, I24 (fault-matrix.md section 4). What clients see is history.h's.          */
#ifndef MOONMQ_SIM_CHECKER_H
#define MOONMQ_SIM_CHECKER_H

#include "sim/workload.h"

struct sim_checker;

struct sim_checker *sim_checker_new(struct sim_workload *workload, struct sim_verdict *verdict);
void sim_checker_free(struct sim_checker *checker);
/* Looks at everything now; the runner calls it every few virtual milliseconds. */
void sim_checker_look(struct sim_checker *checker);
/* A node's disk was damaged or its process may lie: what only an intact one promises is not asked
 * of it any more. */
void sim_checker_excuse(struct sim_checker *checker, int node);
/* All nodes of `core` (bits) serve or follow, agree, and have nothing left to do; else why not. */
bool sim_checker_converged(struct sim_checker *checker, uint32_t core, char *why, size_t why_bytes);
/* Everything stands still and `core` is converged: the last judgement over logs and files. */
void sim_checker_finish(struct sim_checker *checker, uint32_t core);
/* Nodes excused so far (bits), and whether any node ever served. */
uint32_t sim_checker_excused(const struct sim_checker *checker);
bool sim_checker_ever_served(const struct sim_checker *checker);

#endif
