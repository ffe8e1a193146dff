/* retention.c: the broker's slow tick: old segments go (leader; followers follow its log start),
 * idle producers are forgotten, what was set aside a day ago is removed.                        */
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/memory.h"
#include "broker/catalog_write.h"
#include "broker/group_coordinator_state.h"
#include "broker/partition_state.h"

#define QUARANTINE_SWEEP_MS 3600000

static int64_t mono_ms(const struct broker *broker)
{
    return loop_now_us(broker->loop) / 1000;
}

int64_t producer_clock_ms(const struct broker *broker)
{
    return broker->began_wall_ms + (loop_now_us(broker->loop) - broker->began_us) / 1000;
}

int64_t producer_expiration_ms(const struct broker *broker)
{
    int64_t up_ms = producer_clock_ms(broker) - broker->began_wall_ms;
    int64_t expiration_ms = broker->settings.producer_id_expiration_ms;
    return up_ms < expiration_ms ? INT64_MAX : expiration_ms;
}

/* A look at the clock: what it says, and whether that is to be believed in this tick. */
struct clock_look {
    int64_t wall_ms;
    bool trusted;
};

static void note_trust(struct broker *broker, enum clock_trust trust, int64_t wall_ms)
{
    char text[120];
    bool doubted = trust == CLOCK_DOUBTED;
    broker->clock_trusted = trust == CLOCK_TRUSTED;
    if (doubted == broker->clock_doubted) return;
    broker->clock_doubted = doubted;
    if (!doubted) {
        log_info("clock_believed wall_ms=%lld", (long long)wall_ms);
        return;
    }
    snprintf(text, sizeof(text),
             "the wall clock says %lld ms: nothing goes by age until others confirm it, or an hour",
             (long long)wall_ms);
    broker_alarm(broker, "clock_doubted", text);
}

static struct clock_look look_at_clock(struct broker *broker)
{
    const struct group_port *port = &broker->port;
    enum clock_witness witness =
        port->clock == NULL ? CLOCK_UNWITNESSED : port->clock(port->context);
    struct clock_look look = {.wall_ms = loop_wall_ms(broker->loop)};
    note_trust(broker, log_store_look_at_clock(broker->store, look.wall_ms, witness), look.wall_ms);
    look.trusted = broker->clock_trusted;
    return look;
}

static void retain_partition(struct broker *broker, struct partition *partition,
                             struct clock_look look)
{
    if (partition->change != NULL || partition_log_failed(partition->log)) return;
    int64_t start = partition_log_retention_start(partition->log, look.wall_ms, look.trusted,
                                                  partition->high_watermark);
    if (start <= partition_log_start(partition)) return;
    partition_raise_log_start(partition, start);
    broker->port.partition_changed(broker->port.context, partition);
}

static void look_at_partitions(struct broker *broker, struct clock_look look)
{
    bool serving = broker_check_serving(broker) == STATUS_OK;
    int64_t expiration_ms = producer_expiration_ms(broker);
    struct topic *topic = NULL;
    while ((topic = catalog_next(broker, topic)) != NULL) {
        for (uint32_t i = 0; i < topic->partition_count; i++) {
            struct partition *partition = topic->partitions[i];
            if (serving && topic->settings.log.delete_old)
                retain_partition(broker, partition, look);
            if (expiration_ms == INT64_MAX) continue;
            producer_table_expire(partition->producers, producer_clock_ms(broker), expiration_ms);
        }
    }
}

/* ---- the sweep of quarantine/, between two changes of the catalog ---- */

struct sweep_operation {
    struct catalog_operation operation;
};
struct sweep_job {
    struct broker_job job;
    struct file_system *fs;
    const char *data_dir;
    int64_t wall_ms;
    struct sweep_operation *sweep;
};

static void sweep_run(struct broker_job *job)
{
    struct sweep_job *sweep = CONTAINER_OF(job, struct sweep_job, job);
    quarantine_sweep(sweep->fs, sweep->data_dir, sweep->wall_ms);
}

static void sweep_job_dispose(struct broker_job *job)
{
    free(CONTAINER_OF(job, struct sweep_job, job));
}

static void sweep_done(struct broker_job *job)
{
    struct sweep_operation *operation = CONTAINER_OF(job, struct sweep_job, job)->sweep;
    job->broker->quarantine_sweeping = false;
    sweep_job_dispose(job);
    catalog_operation_finish(&operation->operation);
}

static void sweep_begin(struct catalog_operation *operation)
{
    struct broker *broker = operation->broker;
    struct sweep_job *sweep = memory_new(sizeof(*sweep));
    sweep->job.run = sweep_run;
    sweep->job.done = sweep_done;
    sweep->job.dispose = sweep_job_dispose;
    sweep->fs = broker->fs;
    sweep->data_dir = broker->data_dir;
    sweep->wall_ms = loop_wall_ms(broker->loop);
    sweep->sweep = CONTAINER_OF(operation, struct sweep_operation, operation);
    broker_job_submit(broker, EXECUTOR_LANE_BACKGROUND, &sweep->job);
}

static void sweep_dispose(struct catalog_operation *operation)
{
    free(CONTAINER_OF(operation, struct sweep_operation, operation));
}

static void sweep_quarantine(struct broker *broker)
{
    int64_t now_ms = mono_ms(broker);
    bool due = broker->quarantine_swept_ms == 0 ||
               now_ms - broker->quarantine_swept_ms >= QUARANTINE_SWEEP_MS;
    if (!due || broker->quarantine_sweeping) return;
    broker->quarantine_swept_ms = now_ms;
    broker->quarantine_sweeping = true;
    struct sweep_operation *sweep = memory_new(sizeof(*sweep));
    sweep->operation.begin = sweep_begin;
    sweep->operation.dispose = sweep_dispose;
    catalog_enqueue(broker, &sweep->operation);
}

/* ---- the tick ---- */

static void retention_tick(void *context)
{
    struct broker *broker = context;
    /* Also by who does not lead now: a leader must know the clock from before. */
    struct clock_look look = look_at_clock(broker);
    look_at_partitions(broker, look);
    compaction_look(broker);
    if (look.trusted) group_offsets_expire(broker);
    if (look.trusted) sweep_quarantine(broker);
    if (look.trusted) transactions_tick(broker);
    timer_start(broker->retention_timer, broker->settings.retention_check_us);
}

void retention_start(struct broker *broker)
{
    (void)look_at_clock(broker);
    broker->retention_timer = timer_new(broker->loop, retention_tick, broker);
    timer_start(broker->retention_timer, broker->settings.retention_check_us);
    compaction_start(broker);
}

void retention_stop(struct broker *broker)
{
    compaction_stop(broker);
    timer_free(broker->retention_timer);
    broker->retention_timer = NULL;
}
