/* scenario_steps.h: what scripts are made of (scenario*.c only).
 *
 * A step that waits gives up with a broken I23 when what it waits for does not come; it returns
 * false, NULL or -1 once the run is over, and the script then returns. */
#ifndef MOONMQ_SIM_SCENARIO_STEPS_H
#define MOONMQ_SIM_SCENARIO_STEPS_H

#include "sim/run.h"

#define SECOND_US   1000000
#define TAKEOVER_US (8 * SECOND_US) /* election, claim and first service, with room */

struct scenario {
    const char *name;
    void (*play)(struct sim_run *run);
    int nodes; /* 0: as drawn */
    /* Changes what was drawn, before anything starts. NULL: nothing. */
    void (*prepare)(struct sim_group *group, struct sim_workload_options *options);
};

/* By theme; the last has no name. */
extern const struct scenario scenario_elections[];
extern const struct scenario scenario_copies[];
extern const struct scenario scenario_sets[];
extern const struct scenario scenario_disks[];
extern const struct scenario scenario_transactions[];

/* One data partition with a record a batch, and no patience limits: a follower that does not fetch
 * stays in the in-sync set, so that all that is written meanwhile is not acknowledged. */
void scenario_prepare_one_log(struct sim_group *group, struct sim_workload_options *options);
/* A founded, loaded group; its leader. NULL: the run is over. */
struct sim_node *scenario_begin(struct sim_run *run);
void scenario_keep_down(struct sim_run *run, int node, enum sim_death death);
void scenario_start(struct sim_run *run, int node);
/* Waits until a node other than `old` serves. */
struct sim_node *scenario_until_other_serves(struct sim_run *run, const struct sim_node *old,
                                             int64_t limit_us, const char *why);
int scenario_another(const struct sim_run *run, int node);

/* Looked at after every single event, until it says true. */
typedef bool (*scenario_fn)(struct sim_run *run, void *context);
bool scenario_until(struct sim_run *run, scenario_fn happened, void *context, int64_t limit_us,
                    const char *what);
/* Both directions between `node` and all others. */
void scenario_cut_off(struct sim_run *run, int node, bool cut);
/* It opens no connection any more, and so neither fetches nor stands; but it is reached by others,
 * votes, and takes Raft's entries. */
void scenario_starve(struct sim_run *run, int node, bool starved);
/* The very event in which one of `among` (bits) wins an election in a term above *term: nobody has
 * heard of it yet. Its index; *term is its term. */
int scenario_until_won(struct sim_run *run, uint32_t among, int64_t *term);

/* Partition 0 of the first data topic; NULL, -1: not there, or no process. */
struct partition *scenario_copy(struct sim_run *run, int node);
int64_t scenario_log_end(struct sim_run *run, int node);
bool scenario_until_grown(struct sim_run *run, int node, int64_t end);
bool scenario_grow(struct sim_run *run, int node, int64_t records); /* from where it is now */

#endif
