#include "sim/history_shares.h"

#include <string.h>

void history_shares_init(struct history_shares *shares, struct sim_verdict *verdict)
{
    memset(shares, 0, sizeof(*shares));
    shares->verdict = verdict;
}

void history_shares_deinit(struct history_shares *shares)
{
    sim_release(shares->put_out);
}

int history_shares_new_process(struct history_shares *shares)
{
    int process = ++shares->process_count;
    if (process >= shares->process_capacity) {
        shares->process_capacity = 2 * process + 16;
        shares->put_out = sim_grow(shares->put_out,
                                   (size_t)shares->process_capacity * sizeof(shares->put_out[0]));
    }
    shares->put_out[process] = false;
    return process;
}

void history_shares_take(struct history_shares *shares, int process, uint32_t partitions)
{
    for (int i = 0; i < HISTORY_GROUP_PARTITIONS_MAX; i++) {
        int had = shares->partitions[i].process;
        if ((partitions & 1u << i) == 0 || had == process) continue;
        if (had != 0) shares->put_out[had] = true;
        shares->partitions[i].process = process;
        shares->partitions[i].tenure++;
    }
}

void history_shares_give_up(struct history_shares *shares, int process, uint32_t partitions)
{
    for (int i = 0; i < HISTORY_GROUP_PARTITIONS_MAX; i++) {
        if ((partitions & 1u << i) != 0 && shares->partitions[i].process == process)
            shares->partitions[i].process = 0;
    }
}

void history_shares_rejoin(struct history_shares *shares, int process)
{
    history_shares_give_up(shares, process, HISTORY_ALL_SHARES);
    shares->put_out[process] = false;
}

bool history_shares_is_put_out(const struct history_shares *shares, int process)
{
    return shares->put_out[process];
}

void history_shares_accepted(struct history_shares *shares, int process, bool was_put_out,
                             const char *what)
{
    if (!was_put_out) return;
    sim_verdict_fail(shares->verdict, "I20",
                     "%s of process %d is accepted, sent after another was given a partition that "
                     "it had",
                     what, process);
}

int32_t history_shares_tenure(const struct history_shares *shares, uint32_t partition)
{
    return shares->partitions[partition].tenure;
}
