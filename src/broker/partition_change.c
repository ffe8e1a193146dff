/* partition_change.c: what replication does to a follower's copy: append, cut, restart. */
#include "broker/partition_change.h"

#include <stdlib.h>
#include <utlist.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/memory.h"

/* ---- append ---- */

void follow_cursor_apply(struct partition *partition, int64_t below)
{
    struct follow_cursor *cursor = &partition->following;
    int64_t written_ms = producer_clock_ms(partition->broker);
    while (cursor->at < cursor->bytes) {
        struct batch_header header;
        const uint8_t *data = cursor->data + cursor->at;
        enum status status = batch_parse(data, cursor->bytes - cursor->at, true, &header, NULL);
        ASSERT(status == STATUS_OK); /* the log has looked at it already */
        if (header.base_offset >= below) return;
        producers_apply_batch(partition->producers, data, &header, written_ms);
        cursor->at += header.batch_bytes;
    }
}

enum status partition_follow_append(struct partition *partition, struct shared_bytes *batches,
                                    bool allow_gap, struct error *error)
{
    if (partition->change != NULL) {
        return error_set(error, STATUS_AGAIN, "%s: being cut", partition_name(partition));
    }
    /* A segment may roll in the midst of them and ask for a snapshot: see partition_log_snapshot().
     */
    partition->following = (struct follow_cursor){.data = batches->data, .bytes = batches->bytes};
    enum status status = partition_log_append(partition->log, batches, allow_gap, error);
    if (status == STATUS_OK) follow_cursor_apply(partition, INT64_MAX);
    partition->following = (struct follow_cursor){0};
    return status;
}

void partition_follow_log_start(struct partition *partition, int64_t log_start)
{
    if (log_start <= partition_log_start(partition)) return;
    partition_raise_log_start(partition, log_start);
    /* The leader hears of it when it is on disk: somebody may wait for that (DeleteRecords). */
    log_store_flush(partition->broker->store, NULL, NULL);
}

/* ---- changes ---- */

bool partition_change_is_reset(const struct partition *partition)
{
    return partition->change != NULL && partition->change->reset;
}

void partition_change_orphan(struct partition *partition)
{
    if (partition->change == NULL) return;
    partition->change->partition = NULL;
    partition->change = NULL;
}

bool partition_change_drop_later(struct partition *partition, struct log_drops *drops,
                                 bool set_aside)
{
    struct partition_change *change = partition->change;
    if (change == NULL || !change->rebuilding) return false;
    change->drops = drops;
    change->drop_set_aside = set_aside;
    change->drop_log = partition_release_log(partition);
    return true;
}

void partition_changes_free(struct broker *broker)
{
    struct partition_change *change, *next;
    DL_FOREACH_SAFE(broker->changes, change, next)
    {
        DL_DELETE(broker->changes, change);
        free(change);
    }
}

static struct partition_change *change_new(struct partition *partition, int64_t offset,
                                           log_done_fn done, void *context)
{
    ASSERT(partition->change == NULL);
    struct partition_change *change = memory_new(sizeof(*change));
    change->broker = partition->broker;
    change->partition = partition;
    change->offset = offset;
    change->done = done;
    change->context = context;
    DL_APPEND(partition->broker->changes, change);
    partition->change = change;
    return change;
}

static void change_finish(struct partition_change *change, enum status status,
                          const struct error *error)
{
    struct broker *broker = change->broker;
    struct partition *partition = change->partition;
    log_done_fn done = change->done;
    void *context = change->context;
    struct error copy = error != NULL ? *error : (struct error){0};
    if (partition == NULL) {
        status = error_set(&copy, STATUS_CANCELLED, "the partition is gone");
    } else {
        partition->change = NULL;
    }
    DL_DELETE(broker->changes, change);
    free(change);
    done(context, status, &copy);
    produce_backlog_continue(broker);
}

/* ---- rebuilding the producer table ---- */

struct rebuild_job {
    struct broker_job job;
    struct partition_change *change;
    struct partition_log *log;
    int64_t written_ms;
    struct producer_table *table;
    struct log_damage damage;
    enum status status;
    struct error error;
};

static void rebuild_run(struct broker_job *job)
{
    struct rebuild_job *rebuild = CONTAINER_OF(job, struct rebuild_job, job);
    rebuild->status = producers_load(rebuild->log, rebuild->written_ms, rebuild->table,
                                     &rebuild->damage, &rebuild->error);
}

static void rebuild_dispose(struct broker_job *job)
{
    struct rebuild_job *rebuild = CONTAINER_OF(job, struct rebuild_job, job);
    producer_table_free(rebuild->table);
    free(rebuild);
}

static void rebuild_done(struct broker_job *job)
{
    struct rebuild_job *rebuild = CONTAINER_OF(job, struct rebuild_job, job);
    struct partition_change *change = rebuild->change;
    struct partition *partition = change->partition;
    if (change->drop_log != NULL) {
        log_drop_now(change->broker, change->drop_log, change->drops, change->drop_set_aside);
    }
    if (partition != NULL) {
        /* Not all of it, maybe, but nothing of what was cut. */
        producer_table_free(partition->producers);
        partition->producers = rebuild->table;
        rebuild->table = NULL;
        producer_table_settle(partition->producers, partition->high_watermark);
        producer_table_prune(partition->producers, partition_log_start(partition));
        if (rebuild->status != STATUS_OK) {
            partition_producers_lost(partition, &rebuild->damage, &rebuild->error);
        }
    }
    change_finish(change, rebuild->status, &rebuild->error);
    rebuild_dispose(job);
}

static void rebuild_start(struct partition_change *change)
{
    struct rebuild_job *rebuild = memory_new(sizeof(*rebuild));
    rebuild->job.run = rebuild_run;
    rebuild->job.done = rebuild_done;
    rebuild->job.dispose = rebuild_dispose;
    rebuild->change = change;
    rebuild->log = change->partition->log;
    rebuild->written_ms = producer_clock_ms(change->broker);
    rebuild->table = producer_table_new();
    ASSERT(rebuild->table != NULL);
    change->rebuilding = true;
    broker_job_submit(change->broker, EXECUTOR_LANE_BACKGROUND, &rebuild->job);
}

/* ---- truncate ---- */

static void truncate_done(void *context, enum status status, const struct error *error)
{
    struct partition_change *change = context;
    struct partition *partition = change->partition;
    if (status == STATUS_OK && partition != NULL &&
        producer_table_end_offset(partition->producers) > change->offset &&
        !producer_table_truncate(partition->producers, change->offset)) {
        rebuild_start(change);
        return;
    }
    change_finish(change, status, error);
}

void partition_truncate(struct partition *partition, int64_t offset, log_done_fn done,
                        void *context)
{
    ASSERT(offset >= partition->high_watermark);
    struct partition_change *change = change_new(partition, offset, done, context);
    partition_log_truncate(partition->log, offset, truncate_done, change);
}

/* ---- resume ---- */

static void resume_logged(void *context, enum status status, const struct error *error)
{
    (void)context, (void)status, (void)error;
}

static void resume_done(void *context, enum status status, const struct error *error)
{
    struct partition_change *change = context;
    struct partition *partition = change->partition;
    if (status == STATUS_OK && partition != NULL) {
        int64_t end = partition_log_end(partition);
        /* The epoch may have begun in what was cut. */
        if (partition->epoch >= 0)
            partition_log_assign_epoch(partition->log, partition->epoch, end);
        if (partition->epoch_start > end) partition->epoch_start = end;
        log_info("partition_resumed partition=%s log_end=%lld", partition_name(partition),
                 (long long)end);
    }
    truncate_done(context, status, error);
}

void partition_resume(struct partition *partition)
{
    if (partition->change != NULL || !partition_log_lacked_space(partition->log)) return;
    int64_t durable = partition_durable(partition);
    ASSERT(durable >= partition->high_watermark);
    struct partition_change *change = change_new(partition, durable, resume_logged, NULL);
    partition_log_resume(partition->log, resume_done, change);
}

/* ---- reset ---- */

static void reset_on_record(void *context, enum status status, const struct error *error)
{
    change_finish(context, status, error);
}

static void reset_done(void *context, enum status status, const struct error *error)
{
    struct partition_change *change = context;
    struct partition *partition = change->partition;
    if (status == STATUS_OK && partition != NULL) {
        /* Both at once (T12): a high watermark left behind would point into what is no more, one
         * ahead of the log would show what is not there. What is still missing up to the leader's
         * keeps the copy damaged. */
        partition->high_watermark = change->offset;
        partition->whole_from =
            change->high_watermark > change->offset ? change->high_watermark : 0;
        partition->epoch_start = change->offset;
        partition->corruption_told = partition->corruption_alarmed = false;
        partition->producers_lost = false;
        partition_log_note_high_watermark(partition->log, partition->whole_from > change->offset
                                                              ? partition->whole_from
                                                              : change->offset);
        producer_table_clear(partition->producers, change->offset);
        producer_table_settle(partition->producers, change->offset);
        if (partition->internal != NULL) internal_state_reset(partition->internal, change->offset);
        partition_log_note_dropped(partition->log, change->dropped_to);
        if (change->says_dropped) {
            /* Before the first record: else a crash could leave records beside the old value. */
            log_store_flush(change->broker->store, reset_on_record, change);
            return;
        }
    }
    change_finish(change, status, error);
}

void partition_reset(struct partition *partition, const struct partition_restart *restart,
                     log_done_fn done, void *context)
{
    struct partition_change *change = change_new(partition, restart->offset, done, context);
    change->reset = true;
    change->high_watermark = restart->high_watermark;
    change->dropped_to = restart->dropped_to;
    change->says_dropped = restart->dropped_to != partition_log_dropped_to(partition->log);
    partition_log_reset(partition->log, restart->offset, restart->epoch, restart->set_aside,
                        reset_done, change);
}
