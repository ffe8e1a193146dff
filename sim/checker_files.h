/* checker_files.h: the last judgement over the files of a group that stands still. */
#ifndef MOONMQ_SIM_CHECKER_FILES_H
#define MOONMQ_SIM_CHECKER_FILES_H

#include "sim/workload.h"

/* Reads every segment of the leader against the history, and compares the other nodes of `core`
 * with it, batch by batch, below the high watermark (I11). Faults in the files of `excused` nodes
 * are not held against them where the copy says so itself. */
void sim_files_judge(struct sim_workload *workload, struct sim_verdict *verdict, int leader,
                     uint32_t core, uint32_t excused);

#endif
