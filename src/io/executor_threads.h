/* executor_threads.h: executor.h on real threads: four for DISK, one for RAFT, two for BACKGROUND,
 * each started when its lane first has nobody idle. Results reach the loop by an eventfd, one
 * wake-up however many finished meanwhile.  Submit, and everything here: loop thread. */
#ifndef MOONMQ_IO_EXECUTOR_THREADS_H
#define MOONMQ_IO_EXECUTOR_THREADS_H

#include <stdint.h>

#include "base/status.h"
#include "io/executor.h"
#include "io/loop_event.h"

STATUS_MUST_CHECK
enum status executor_threads_new(struct loop_event *loop, struct executor **out,
                                 struct error *error);

/* Waits until every job was run and its `done` called, those that a `done` submits included. Blocks
 * the loop: for stopping only. */
void executor_threads_drain(struct executor *executor);

/* Drains, ends the threads and frees. NULL is allowed. */
void executor_threads_free(struct executor *executor);

/* Jobs submitted whose `done` has not run yet. */
uint64_t executor_threads_pending(const struct executor *executor);

#endif
