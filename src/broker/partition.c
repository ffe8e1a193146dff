/* partition.c: the life of a partition object, and its high watermark. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/memory.h"
#include "broker/partition_change.h"
#include "broker/partition_state.h"

struct partition *partition_new(struct topic *topic, int32_t index, struct partition_log *log,
                                struct producer_table *producers)
{
    struct partition *partition = memory_new(sizeof(*partition));
    partition->broker = topic->broker;
    partition->topic = topic;
    partition->index = index;
    partition->log = log;
    partition->epoch = -1;
    partition->producers = producers != NULL ? producers : producer_table_new();
    ASSERT(partition->producers != NULL);
    partition->internal = internal_state_new(partition);
    partition_log_set_owner(log, partition);
    return partition;
}

void partition_free(struct partition *partition)
{
    partition_change_orphan(partition);
    ASSERT(partition->watches == NULL);
    internal_state_drop(partition->internal);
    producer_table_free(partition->producers);
    free(partition);
}

void partition_show(struct partition *partition)
{
    const struct broker_handlers *handlers = &partition->broker->handlers;
    partition->visible = true;
    if (partition->broker->leading) {
        partition_begin_epoch(partition, partition->broker->leading_epoch);
    }
    handlers->partition_added(handlers->context, partition);
}

void partition_hide(struct partition *partition)
{
    const struct broker_handlers *handlers = &partition->broker->handlers;
    if (!partition->visible) return;
    partition->visible = false;
    handlers->partition_removed(handlers->context, partition);
    partition->replica = NULL;
    produce_partition_gone(partition, STATUS_UNKNOWN_TOPIC, "the topic was deleted");
    fetch_partition_gone(partition);
    record_deletions_partition_gone(partition, STATUS_UNKNOWN_TOPIC);
    offset_lookup_wake(partition);
    if (partition->internal != NULL) offsets_applied(partition);
}

struct partition_log *partition_release_log(struct partition *partition)
{
    struct partition_log *log = partition->log;
    ASSERT(!partition->visible && log != NULL);
    partition_change_orphan(partition);
    compaction_orphan(partition);
    partition_log_set_owner(log, NULL);
    partition->log = NULL;
    return log;
}

/* ---- questions ---- */

struct topic *partition_topic(const struct partition *partition)
{
    return partition->topic;
}

int32_t partition_index(const struct partition *partition)
{
    return partition->index;
}

const char *partition_name(const struct partition *partition)
{
    return partition_log_name(partition->log);
}

struct partition_log *partition_log_of(const struct partition *partition)
{
    return partition->log;
}

int64_t partition_log_start(const struct partition *partition)
{
    return partition_log_start_offset(partition->log);
}

int64_t partition_log_end(const struct partition *partition)
{
    return partition_log_end_offset(partition->log);
}

int64_t partition_durable(const struct partition *partition)
{
    return partition_log_durable_offset(partition->log);
}

int64_t partition_high_watermark(const struct partition *partition)
{
    return partition->high_watermark;
}

int64_t partition_last_stable_offset(const struct partition *partition)
{
    /* Retention does not wait for transactions. */
    int64_t start = partition_log_start(partition);
    int64_t stable =
        producer_table_last_stable_offset(partition->producers, partition->high_watermark);
    return stable > start ? stable : start;
}

const struct producer_table *partition_producers(const struct partition *partition)
{
    return partition->producers;
}

struct fetch_watch **partition_watches(struct partition *partition)
{
    return &partition->watches;
}

uint32_t partition_find_aborted(const struct partition *partition, int64_t offset,
                                int64_t end_offset, struct aborted_transaction *out,
                                uint32_t capacity)
{
    return producer_table_find_aborted(partition->producers, offset, end_offset, out, capacity);
}

void partition_raise_log_start(struct partition *partition, int64_t log_start)
{
    partition_log_raise_start(partition->log, log_start, partition->high_watermark);
    producer_table_prune(partition->producers, partition_log_start(partition));
    fetch_watch_tell(partition);
}

int64_t partition_epoch_start(const struct partition *partition)
{
    return partition->epoch_start;
}

/* Before it reached where this leadership began, it may be behind what was acknowledged before
 * (decisions 15). */
bool partition_told_high_watermark(const struct partition *partition, int64_t *out)
{
    const struct group_port *port = &partition->broker->port;
    if (port->told_high_watermark != NULL) {
        return port->told_high_watermark(port->context, partition, out);
    }
    *out = partition->high_watermark;
    return partition->high_watermark >= partition->epoch_start;
}

void partition_copies_moved(struct partition *partition)
{
    parked_high_watermark(partition);
}

/* Committed records are missing at its end. */
static bool is_incomplete(const struct partition *partition)
{
    return partition->whole_from > partition_durable(partition);
}

/* What is derived from the log lacks what could not be read. */
static bool is_underived(const struct partition *partition)
{
    return partition->producers_lost ||
           (partition->internal != NULL && partition->internal->failed);
}

bool partition_is_unusable(const struct partition *partition)
{
    return partition_log_failed(partition->log) || is_incomplete(partition) ||
           partition->producers_lost;
}

bool partition_is_broken(const struct partition *partition)
{
    int64_t from, to;
    return partition_log_failed(partition->log) || is_underived(partition) ||
           partition_log_quarantined(partition->log, &from, &to);
}

/* A quarantined range counts wherever it lies: the high watermark known here may be behind the one
 * that others have told their clients, by a second after a restart. */
bool partition_damaged(const struct partition *partition)
{
    return partition_is_broken(partition) || partition_change_is_reset(partition) ||
           is_incomplete(partition);
}

bool partition_was_cut(const struct partition *partition)
{
    return partition->was_cut;
}

uint64_t partition_producers_hash(const struct partition *partition)
{
    /* How much of what was aborted is still known differs where each replica compacts by itself. */
    return partition->topic->settings.log.compacted
               ? producer_table_hash_producers(partition->producers)
               : producer_table_hash(partition->producers);
}

void partition_set_replica(struct partition *partition, void *replica)
{
    partition->replica = replica;
}

void *partition_replica(const struct partition *partition)
{
    return partition->replica;
}

enum status partition_check_read(const struct partition *partition, int32_t current_epoch)
{
    struct broker *broker = partition->broker;
    const struct group_view *view = broker_group_view(broker);
    if (!partition->visible) return STATUS_UNKNOWN_TOPIC;
    if (current_epoch >= 0 && current_epoch < view->epoch) return STATUS_FENCED_EPOCH;
    if (current_epoch > view->epoch) return STATUS_UNKNOWN_EPOCH;
    enum status status = broker_check_serving(broker);
    if (status != STATUS_OK) return status;
    if (partition_is_unusable(partition)) return STATUS_STORAGE_ERROR;
    return partition->change != NULL ? STATUS_NOT_READY : STATUS_OK;
}

int32_t partition_min_insync(const struct partition *partition)
{
    const struct group_view *view = broker_group_view(partition->broker);
    int32_t raised = partition->topic->settings.min_insync;
    if (raised > (int32_t)view->member_count) raised = (int32_t)view->member_count;
    return raised > view->min_insync ? raised : view->min_insync;
}

void partition_alarm_corrupt(struct partition *partition, const char *text)
{
    if (partition->corruption_alarmed) return;
    partition->corruption_alarmed = true;
    broker_alarm(partition->broker, "corrupt_range", text);
}

void partition_found_corrupt(struct partition *partition, const struct error *error)
{
    const struct broker_handlers *handlers = &partition->broker->handlers;
    if (partition->corruption_told) return;
    partition->corruption_told = true;
    partition_alarm_corrupt(partition, error->text);
    if (handlers->partition_corrupt != NULL && partition->visible) {
        handlers->partition_corrupt(handlers->context, partition, error);
    }
}

void partition_producers_lost(struct partition *partition, const struct log_damage *damage,
                              const struct error *error)
{
    partition->producers_lost = true;
    fetch_watch_tell(partition);
    log_error("producer_state_incomplete partition=%s reason=\"%s\"", partition_name(partition),
              error->text);
    partition_log_quarantine(partition->log, damage->from, damage->to);
    partition_found_corrupt(partition, error);
}

/* ---- the high watermark ---- */

/* On record goes only what this copy holds durably: then a log that ends below it after a restart
 * has lost something. While it is known to have lost something, the mark of that stays on record.
 */
static void note_high_watermark(struct partition *partition)
{
    int64_t durable = partition_durable(partition);
    int64_t mark = partition->high_watermark < durable ? partition->high_watermark : durable;
    if (partition->whole_from > durable) mark = partition->whole_from;
    if (mark != partition_log_noted_high_watermark(partition->log)) {
        partition_log_note_high_watermark(partition->log, mark);
    }
}

void partition_recovered(struct partition *partition)
{
    int64_t start = partition_log_start(partition), end = partition_log_end(partition);
    int64_t noted = partition_log_noted_high_watermark(partition->log);
    int64_t mark = noted > start ? noted : start;
    partition->high_watermark = mark < end ? mark : end;
    if (noted > end) {
        partition->whole_from = noted;
        log_error("partition_incomplete partition=%s log_end=%lld high_watermark=%lld",
                  partition_name(partition), (long long)end, (long long)noted);
    }
    producer_table_settle(partition->producers, partition->high_watermark);
    producer_table_prune(partition->producers, start);
}

void partition_set_high_watermark(struct partition *partition, int64_t offset)
{
    int64_t end = partition_log_end(partition);
    if (offset > end) offset = end;
    if (offset <= partition->high_watermark) return;
    partition->high_watermark = offset;
    note_high_watermark(partition);
    producer_table_settle(partition->producers, offset);
    if (partition->internal != NULL) internal_state_advance(partition->internal);
    parked_high_watermark(partition);
    fetch_wake(partition);
    offset_lookup_wake(partition);
}

void partition_begin_epoch(struct partition *partition, int32_t epoch)
{
    if (epoch <= partition->epoch) return;
    partition->epoch = epoch;
    partition->epoch_start = partition_log_end(partition);
    if (partition->broker->settings.unstamped) return;
    partition_log_assign_epoch(partition->log, epoch, partition->epoch_start);
}

/* ---- the store's handlers ---- */

void partition_log_durable(void *context, struct partition_log *log)
{
    struct broker *broker = context;
    struct partition *partition = partition_log_owner(log);
    if (partition == NULL) return;
    note_high_watermark(partition);
    parked_durable(partition);
    if (partition->visible) {
        broker->handlers.partition_durable(broker->handlers.context, partition);
    }
    produce_backlog_continue(broker);
}

void partition_log_broke(void *context, struct partition_log *log, const struct error *error)
{
    struct broker *broker = context;
    struct partition *partition = partition_log_owner(log);
    if (partition == NULL) return;
    log_error("partition_failed partition=%s reason=\"%s\"", partition_name(partition),
              error->text);
    /* Replication raises the alarm: it knows of its own files' failures, too. */
    if (partition->visible) {
        broker->handlers.partition_failed(broker->handlers.context, partition, error);
    }
    parked_fail(partition, STATUS_STORAGE_ERROR, error->text);
    fetch_wake(partition);
    offset_lookup_wake(partition);
    if (partition->internal != NULL) offsets_applied(partition);
    produce_backlog_continue(broker);
}

void partition_log_snapshot(void *context, struct partition_log *log, int64_t base_offset,
                            struct buffer *out)
{
    struct partition *partition = partition_log_owner(log);
    (void)context;
    if (partition == NULL) return;
    follow_cursor_apply(partition, base_offset);
    producer_table_encode(partition->producers, out);
}
