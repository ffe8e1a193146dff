/* vote_watch.h: reads the votes off the wire (I13): one vote a term and incarnation, and no term in
 * an answer lower than in an earlier one, over crashes too.                                    */
#ifndef MOONMQ_SIM_VOTE_WATCH_H
#define MOONMQ_SIM_VOTE_WATCH_H

#include "sim/sim_group.h"
#include "sim/verdict.h"

struct sim_vote_watch;

struct sim_vote_watch *sim_vote_watch_new(struct sim_group *group, struct sim_verdict *verdict);
void sim_vote_watch_free(struct sim_vote_watch *watch);
/* This replica's disk may have forgotten what it promised. */
void sim_vote_watch_excuse(struct sim_vote_watch *watch, int replica_id);

#endif
