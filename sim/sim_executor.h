/* sim_executor.h: struct executor of one virtual process.
 *
 * A lane has workers; a job waits for one, then for a drawn latency, does its work in one virtual
 * moment, and is reported done after the disk time that work cost. A crash before the moment: the
 * work never happened; after it: it did, but nobody was told; in the middle of it (sim_disk.h,
 * crash points): some of its file operations did.                                               */
#ifndef MOONMQ_SIM_SIM_EXECUTOR_H
#define MOONMQ_SIM_SIM_EXECUTOR_H

#include <stdint.h>

#include "io/executor.h"

struct sim_machine;
struct sim_task;
struct sim_lane_options;

struct sim_lane {
    int32_t workers, busy;
    int64_t latency_us_min, latency_us_max;
    struct sim_task *first, *last; /* waiting for a worker */
};

struct sim_executor {
    struct executor base;
    struct sim_machine *machine;
    struct sim_lane lanes[EXECUTOR_LANE_COUNT];
    uint64_t next_number;
    uint32_t pending;
};

void sim_executor_init(struct sim_executor *executor, struct sim_machine *machine,
                       const struct sim_lane_options *lanes);
/* The process died; its tasks were released as resources. */
void sim_executor_forget(struct sim_executor *executor);

#endif
