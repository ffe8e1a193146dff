#include "sim/sim_executor.h"

#include "base/assert.h"
#include "sim/machine.h"

/* How often a task on a stalled disk looks again. */
#define STALL_POLL_US 50000

struct sim_task {
    struct sim_resource resource;
    struct sim_event event;
    struct sim_executor *executor;
    struct sim_task *next; /* in the lane's queue */
    struct job *job;
    enum executor_lane lane;
};

static void task_run(struct sim_event *event);
static void task_done(struct sim_event *event);

static void task_free(struct sim_task *task)
{
    struct sim_machine *machine = task->executor->machine;
    sim_world_cancel(sim_machine_world(machine), &task->event);
    sim_machine_unhang(machine, &task->resource);
    sim_release(task);
}

static void task_release(struct sim_resource *resource)
{
    task_free(CONTAINER_OF(resource, struct sim_task, resource));
}

static void task_start(struct sim_task *task)
{
    struct sim_lane *lane = &task->executor->lanes[task->lane];
    struct sim_world *world = sim_machine_world(task->executor->machine);
    lane->busy++;
    sim_world_schedule(world, &task->event,
                       world->now_us +
                           sim_world_between(world, lane->latency_us_min, lane->latency_us_max));
}

/* True: the disk stands still for this task; it looks again later. */
static bool task_waits_for_disk(struct sim_task *task, bool before_run)
{
    struct sim_machine *machine = task->executor->machine;
    struct sim_world *world = sim_machine_world(machine);
    const struct sim_stall *stall = sim_machine_stall(machine);
    if (world->now_us >= stall->until_us || (stall->lanes & 1u << task->lane) == 0) return false;
    if (before_run && !stall->before_run) return false;
    int64_t again_us = world->now_us + STALL_POLL_US;
    sim_world_schedule(world, &task->event,
                       again_us < stall->until_us ? again_us : stall->until_us);
    return true;
}

static void task_run(struct sim_event *event)
{
    struct sim_task *task = CONTAINER_OF(event, struct sim_task, event);
    if (task_waits_for_disk(task, true)) return;
    struct sim_machine *machine = task->executor->machine;
    struct sim_world *world = sim_machine_world(machine);
    struct sim_disk *disk = sim_machine_disk(machine);
    event->kind = SIM_EVENT_JOB_DONE;
    event->fire = task_done;
    sim_disk_take_time(disk);
    task->job->run(task->job);
    sim_world_schedule(world, event, world->now_us + sim_disk_take_time(disk));
}

static void task_done(struct sim_event *event)
{
    struct sim_task *task = CONTAINER_OF(event, struct sim_task, event);
    if (task_waits_for_disk(task, false)) return;
    struct sim_executor *executor = task->executor;
    struct sim_lane *lane = &executor->lanes[task->lane];
    struct job *job = task->job;
    task_free(task);
    executor->pending--;
    lane->busy--;
    if (lane->first != NULL) {
        struct sim_task *next = lane->first;
        lane->first = next->next;
        if (lane->first == NULL) lane->last = NULL;
        task_start(next);
    }
    job->done(job);
}

static void sim_submit(struct executor *base, enum executor_lane lane_index, struct job *job)
{
    struct sim_executor *executor = (struct sim_executor *)base;
    ASSERT(lane_index < EXECUTOR_LANE_COUNT);
    struct sim_lane *lane = &executor->lanes[lane_index];
    struct sim_task *task = sim_alloc(sizeof(*task));
    task->executor = executor;
    task->job = job;
    task->lane = lane_index;
    sim_event_init(&task->event, SIM_EVENT_JOB_RUN, executor->machine, task_run);
    task->event.detail = (uint64_t)lane_index << 32 | (executor->next_number++ & 0xffffffffu);
    task->resource.release = task_release;
    sim_machine_hang(executor->machine, &task->resource);
    executor->pending++;
    if (lane->busy < lane->workers) {
        task_start(task);
        return;
    }
    if (lane->last != NULL)
        lane->last->next = task;
    else
        lane->first = task;
    lane->last = task;
}

static const struct executor_ops sim_executor_ops = {.submit = sim_submit};

void sim_executor_init(struct sim_executor *executor, struct sim_machine *machine,
                       const struct sim_lane_options *lanes)
{
    *executor = (struct sim_executor){.base = {.ops = &sim_executor_ops}, .machine = machine};
    for (int i = 0; i < EXECUTOR_LANE_COUNT; i++) {
        executor->lanes[i].workers = lanes[i].workers > 0 ? lanes[i].workers : 1;
        executor->lanes[i].latency_us_min = lanes[i].latency_us_min;
        executor->lanes[i].latency_us_max = lanes[i].latency_us_max;
    }
}

void sim_executor_forget(struct sim_executor *executor)
{
    for (int i = 0; i < EXECUTOR_LANE_COUNT; i++) {
        executor->lanes[i].busy = 0;
        executor->lanes[i].first = NULL;
        executor->lanes[i].last = NULL;
    }
    executor->pending = 0;
}
