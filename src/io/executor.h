/* executor.h: worker threads for everything that may block. `run` executes on a worker and touches
 * only what the job owns or borrows; `done` executes on the loop afterwards. Jobs of one lane may
 * run at the same time and finish in any order: who needs order keeps one job in flight.
 * Behind it stand executor_threads.c and the simulator (which runs the job at a virtual moment and
 * delivers `done` later, or never when the replica crashed).                                   */
#ifndef MOONMQ_IO_EXECUTOR_H
#define MOONMQ_IO_EXECUTOR_H

enum executor_lane {
    EXECUTOR_LANE_DISK,       /* commits: writes and syncs of logs */
    EXECUTOR_LANE_RAFT,       /* the Raft state file: a worker of its own */
    EXECUTOR_LANE_BACKGROUND, /* cold reads, recovery, index rebuilds, deletes, hashing */
    EXECUTOR_LANE_PATIENT,    /* takes seconds, nobody waits: gives way to all others */
    /* Recompression: no file is touched, and no read waits behind it. The last: */
    EXECUTOR_LANE_COMPUTE,
    EXECUTOR_LANE_COUNT
};

/* Embedded in the owner's job struct; the owner keeps it alive until `done` ran. */
struct job {
    void (*run)(struct job *job);
    void (*done)(struct job *job);
    struct job *next; /* the executor's, while queued */
};

struct executor;
struct executor_ops {
    void (*submit)(struct executor *executor, enum executor_lane lane, struct job *job);
};
struct executor {
    const struct executor_ops *ops;
};

static inline void executor_submit(struct executor *executor, enum executor_lane lane,
                                   struct job *job)
{
    executor->ops->submit(executor, lane, job);
}

#endif
