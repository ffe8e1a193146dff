/* machine.h: one computer of the virtual world and the broker process on it.
 *
 * States: host down (power cut) -> host up -> process up -> paused -> process up …; a process
 * dies by kill -9 (the disk keeps everything written), by a power cut (the disk loses what was
 * not synced, peers hear nothing) or by leaving. Whatever belongs to the process (timers, jobs,
 * links, open files, memory) hangs on the machine as a resource and goes with it.
 *
 * Code of the process runs only inside sim_machine_deliver(); from there sim_machine_die() leaves
 * at once, like a signal, however deep the call: that is how a crash between two file operations
 * of one job, or at a failpoint, comes about.                                                   */
#ifndef MOONMQ_SIM_MACHINE_H
#define MOONMQ_SIM_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "io/executor.h"
#include "io/file_system.h"
#include "io/loop.h"
#include "io/rpc.h"
#include "sim/sim_disk.h"
#include "sim/sim_network.h"
#include "sim/world.h"

#define SIM_WALL_START_MS 1767225600000 /* 2026-01-01 UTC */

enum sim_death { SIM_DEATH_KILL, SIM_DEATH_POWER, SIM_DEATH_EXIT };

/* Something the process holds. `release` frees it without telling the process. */
struct sim_resource {
    struct sim_resource *previous, *next;
    void (*release)(struct sim_resource *resource);
};

/* How long the work of a lane takes before and after the job's own disk time. */
struct sim_lane_options {
    int32_t workers;
    int64_t latency_us_min, latency_us_max;
};

struct sim_machine_options {
    int id;              /* replica id, 1-based */
    const char *address; /* host:port that others connect to */
    struct sim_lane_options lanes[EXECUTOR_LANE_COUNT];
};

/* How a stalled disk holds jobs: those of `lanes` (bits) neither finish nor, if `before_run`, even
 * do their work until `until_us`. */
struct sim_stall {
    int64_t until_us;
    uint32_t lanes;
    bool before_run;
};

/* Called after a death, outside the process, when all its resources are gone. */
typedef void (*sim_death_fn)(void *context, struct sim_machine *machine, enum sim_death death);

struct sim_machine *sim_machine_new(struct sim_world *world, struct sim_network *network,
                                    const struct sim_machine_options *options);
/* Also kills. The machine leaves the network's list last; free all machines before the network. */
void sim_machine_free(struct sim_machine *machine);
void sim_machine_on_death(struct sim_machine *machine, sim_death_fn died, void *context);

int sim_machine_id(const struct sim_machine *machine);
struct sim_world *sim_machine_world(const struct sim_machine *machine);
struct sim_disk *sim_machine_disk(const struct sim_machine *machine);
struct sim_endpoint *sim_machine_endpoint(const struct sim_machine *machine);
bool sim_machine_host_is_up(const struct sim_machine *machine);
bool sim_machine_process_is_up(const struct sim_machine *machine);
bool sim_machine_is_paused(const struct sim_machine *machine);
size_t sim_machine_memory_bytes(const struct sim_machine *machine);
uint32_t sim_machine_generation(const struct sim_machine *machine); /* processes so far */

/* What the process is given. */
struct loop *sim_machine_loop(struct sim_machine *machine);
struct executor *sim_machine_executor(struct sim_machine *machine);
struct rpc_transport *sim_machine_transport(struct sim_machine *machine);
struct file_system *sim_machine_file_system(struct sim_machine *machine);

/* Boots the host if needed and starts a process at once: `main_fn(context)` runs inside it. */
void sim_machine_start(struct sim_machine *machine, loop_fn main_fn, void *context);
/* From outside the process. No-op if there is none (a power cut still takes the host down). */
void sim_machine_kill(struct sim_machine *machine, enum sim_death death);
/* From inside the process: never returns. */
_Noreturn void sim_machine_die(struct sim_machine *machine, enum sim_death death);
void sim_machine_boot(struct sim_machine *machine); /* after a power cut, no process yet */

/* SIGSTOP and SIGCONT. While stopped, events queue up; at resume they come in one burst, in the
 * order they fell due, or timers first, or messages first (drawn). With `suspended` the machine's
 * clocks stand still meanwhile, as in a suspended virtual machine. */
void sim_machine_pause(struct sim_machine *machine, bool suspended);
void sim_machine_resume(struct sim_machine *machine);
/* `gap(context, us)` runs inside the process first thing after a resume, as a shell that measures
 * the gap of its own loop would: with what its clock says. */
typedef void (*sim_gap_fn)(void *context, int64_t gap_us);
void sim_machine_on_gap(struct sim_machine *machine, sim_gap_fn gap, void *context);

/* Clocks: rate in parts per million of real time, ticks of tick_us (1: fine). */
void sim_machine_set_clock_rate(struct sim_machine *machine, int64_t rate_ppm, int64_t tick_us);
void sim_machine_set_wall_offset(struct sim_machine *machine, int64_t offset_ms);
int64_t sim_machine_clock_us(const struct sim_machine *machine);
int64_t sim_machine_wall_ms(const struct sim_machine *machine);
/* World time at which the machine's clock shows clock_us (never before now). */
int64_t sim_machine_when(const struct sim_machine *machine, int64_t clock_us);

void sim_machine_set_stall(struct sim_machine *machine, const struct sim_stall *stall);
const struct sim_stall *sim_machine_stall(const struct sim_machine *machine);
/* Jobs that have not run yet, or not been reported done. */
uint32_t sim_machine_jobs_pending(const struct sim_machine *machine);

/* For the world. */
void sim_machine_deliver(struct sim_machine *machine, struct sim_event *event);
void sim_machine_hold(struct sim_machine *machine, struct sim_event *event);
void sim_machine_unhold(struct sim_machine *machine, struct sim_event *event);

/* Runs `run(context)` inside the process, now, from outside. False: there is no process, it is
 * paused, or it died of it. */
bool sim_machine_run(struct sim_machine *machine, loop_fn run, void *context);

void sim_machine_hang(struct sim_machine *machine, struct sim_resource *resource);
void sim_machine_unhang(struct sim_machine *machine, struct sim_resource *resource);

#endif
