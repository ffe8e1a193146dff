/* run.h: one seed from beginning to end.
 *
 * A group is founded and loaded (workload.h) while faults strike (faults.h): the safety phase.
 * Then everything is mended, but only a random core of nodes goes on: it must elect, serve and
 * come to rest within the limit (I23). At last all nodes come back, agree, and all logs are
 * read.                                                                                         */
#ifndef MOONMQ_SIM_RUN_H
#define MOONMQ_SIM_RUN_H

#include "sim/faults.h"
#include "sim/static_judge.h"

#define SIM_DOMAINS_CHOSEN 0x80000000u

struct sim_run_options {
    uint64_t seed;
    bool trace;
    int mutant;             /* 0: none */
    uint64_t only, without; /* fault kinds, bits; 0: as drawn */
    uint32_t domains;       /* these and SIM_DOMAINS_CHOSEN; 0: as drawn */
    int64_t until_us;       /* stop there; 0: run to the end */
    const char *scenario;   /* scenario.h; NULL: random faults */
    bool static_mode;       /* a group without failover: static_group.h */
};

struct sim_run_result {
    bool failed;
    char invariant[8];
    char text[512];
    uint64_t trace_hash;
    uint64_t events;
    int64_t virtual_us;
    int64_t failed_us;
    uint64_t acknowledged, read;
    uint64_t enabled; /* the kinds drawn */
    uint64_t faults[SIM_FAULT_KIND_COUNT];
    uint64_t coverage[SIM_REQUEST_KIND_COUNT][SIM_FAULT_COLUMNS];
};

void sim_run(const struct sim_run_options *options, struct sim_run_result *result);

/* What a scenario works with. */
struct sim_run {
    struct sim_world world;
    struct sim_group group;
    struct sim_verdict verdict;
    struct sim_workload workload;
    struct sim_checker *checker;
    struct sim_faults faults;
    struct sim_static_group statics; /* in static mode */
    struct sim_static_judge *static_judge;
    struct random random;
    int64_t deadline_us;
    struct sim_event look;
};
/* Lets virtual time pass; false once something is broken. */
bool sim_run_for(struct sim_run *run, int64_t us);
/* Until some node serves (and its id), or the limit: then I23 is broken and it is NULL. */
struct sim_node *sim_run_until_served(struct sim_run *run, int64_t limit_us);
/* Mends everything, lets all nodes come to rest, and judges logs and files. */
void sim_run_settle(struct sim_run *run);

#endif
