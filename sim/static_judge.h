/* static_judge.h: what static mode promises (replication.md section 1, docs/replication.md "Static
 * mode"), looked for again and again, and at the end in the files.
 *
 * S1: what the leader counts as held by every follower is durable on each, and acks=all is answered
 *     for nothing else. S2: of a leader's records a follower holds the first ones, in order, each
 *     once, unchanged; at the leader's offsets where nothing else is written there. S3: a follower
 *     that comes back is caught up. S4: the high watermark that is told. What clients of one broker
 *     were told is the history's (I1–I7): nothing acknowledged is lost while its disk is whole.  */
#ifndef MOONMQ_SIM_STATIC_JUDGE_H
#define MOONMQ_SIM_STATIC_JUDGE_H

#include "sim/checker.h"
#include "sim/static_group.h"

struct sim_static_judge;

/* Hears of each acknowledgement from here on. Nodes that `checker` excuses may have lost what they
 * held. */
struct sim_static_judge *sim_static_judge_new(struct sim_static_group *statics,
                                              struct sim_workload *workload,
                                              const struct sim_checker *checker,
                                              struct sim_verdict *verdict);
void sim_static_judge_free(struct sim_static_judge *judge);
/* Into the objects; every so many times into the files. */
void sim_static_judge_look(struct sim_static_judge *judge);
/* All run, followers hold everything, clients have their answers; else why not. */
bool sim_static_judge_converged(struct sim_static_judge *judge, char *why, size_t why_bytes);
/* Everything stands still, and the power was cut everywhere: the files, against the history and
 * against each other. */
void sim_static_judge_finish(struct sim_static_judge *judge);

#endif
