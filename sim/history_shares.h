/* history_shares.h: which process has which partition of a group whose members walk to their
 * assignments each by itself (KIP-848); the judge of I20 there.
 *
 * A process has a partition from the answer that gives it until it gives it up: before it says so
 * to the group, or with its end. Who is given one that another has not given up shows that the
 * other was put out of the group: nothing it asks from then on may be accepted, before it joins
 * anew. Each time a partition changes hands is a tenure; commits are judged by history_groups.h,
 * the tenure being the generation. */
#ifndef MOONMQ_SIM_HISTORY_SHARES_H
#define MOONMQ_SIM_HISTORY_SHARES_H

#include "sim/history_groups.h"

#define HISTORY_ALL_SHARES UINT32_MAX

struct history_shares {
    struct sim_verdict *verdict;
    struct {
        int process; /* that has it; 0: nobody */
        int32_t tenure;
    } partitions[HISTORY_GROUP_PARTITIONS_MAX];
    bool *put_out; /* by process */
    int process_count, process_capacity;
};

void history_shares_init(struct history_shares *shares, struct sim_verdict *verdict);
void history_shares_deinit(struct history_shares *shares);

int history_shares_new_process(struct history_shares *shares);
/* Partitions (bits) that the process was given. */
void history_shares_take(struct history_shares *shares, int process, uint32_t partitions);
void history_shares_give_up(struct history_shares *shares, int process, uint32_t partitions);
/* It asks to join anew: it has nothing, and may be accepted again. */
void history_shares_rejoin(struct history_shares *shares, int process);
bool history_shares_is_put_out(const struct history_shares *shares, int process);
/* What the process asked was answered OK; was_put_out: when it asked. */
void history_shares_accepted(struct history_shares *shares, int process, bool was_put_out,
                             const char *what);
int32_t history_shares_tenure(const struct history_shares *shares, uint32_t partition);

#endif
