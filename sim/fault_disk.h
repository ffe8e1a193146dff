/* fault_disk.h: damage aimed at the files that a replica keeps. */
#ifndef MOONMQ_SIM_FAULT_DISK_H
#define MOONMQ_SIM_FAULT_DISK_H

#include "sim/faults.h"

void sim_fault_flip(struct sim_faults *faults, int node);   /* a bit in some file */
void sim_fault_damage(struct sim_faults *faults, int node); /* zeros, cut, garbage, deleted */
void sim_fault_lose_file(struct sim_faults *faults,
                         int node); /* one of the small files, or topics/ */
void sim_fault_wipe(struct sim_faults *faults, int node);
void sim_fault_restore(struct sim_faults *faults, int node); /* an older copy of itself */

#endif
