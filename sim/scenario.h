/* scenario.h: scripted runs: what random faults meet too seldom, one function each. They are the
 * named regression tests, and what shows that each mutant is noticed (tests/sim/mutants.py).    */
#ifndef MOONMQ_SIM_SCENARIO_H
#define MOONMQ_SIM_SCENARIO_H

#include "sim/run.h"

/* False: there is none of that name. */
bool sim_scenario_exists(const char *name);
/* How many nodes it wants; 0: any. */
int sim_scenario_nodes(const char *name);
/* Changes what was drawn for the run, before anything starts. */
void sim_scenario_prepare(const char *name, struct sim_group *group,
                          struct sim_workload_options *options);
void sim_scenario_play(const char *name, struct sim_run *run);
/* Names in order; NULL at the end. */
const char *sim_scenario_name(int index);

#endif
