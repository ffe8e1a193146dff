/* wire_watch.h: reads promises off the wire, where they bind.
 *
 * I13: one vote a term and incarnation, and no term in an answer lower than in an earlier one, over
 * crashes too. I14: no fetch or progress that was answered once is taken again (F19), and nothing
 * is granted to a replica whose list of members differs by more than one (F47).                */
#ifndef MOONMQ_SIM_WIRE_WATCH_H
#define MOONMQ_SIM_WIRE_WATCH_H

#include "sim/sim_group.h"
#include "sim/verdict.h"

struct sim_wire_watch;

struct sim_wire_watch *sim_wire_watch_new(struct sim_group *group, struct sim_verdict *verdict);
void sim_wire_watch_free(struct sim_wire_watch *watch);
/* This replica's disk may have forgotten what it promised. */
void sim_wire_watch_excuse(struct sim_wire_watch *watch, int replica_id);

#endif
