/* produce.c: a batch from the front end into the log (design.md, "the produce path").
 *
 * What needs no state (shape, CRC, timestamps) is checked at arrival. Then the batch is
 * recompressed where its topic asks for another codec (recompression.c), and appended, or waits in
 * the backlog, in arrival order, while the disk is behind (STATUS_AGAIN) or leadership is being
 * handed over; what depends on state is decided at its turn. Once appended it is parked (parked.c).
 * The retry of a batch that is there is never refused for what has changed since: not for the
 * replicas in sync, nor for a clock that jumped.                                        */
#include <stdlib.h>
#include <utlist.h>

#include "base/assert.h"
#include "base/mutant.h"
#include "broker/parked.h"

#define BACKLOG_COUNT_MAX 65536
/* How long a new leader waits for what its predecessor lost. */
#define GAP_GRACE_US 5000000

/* ---- ends ---- */

void produce_finish(struct produce *produce, enum status status)
{
    shared_bytes_unref(produce->batch);
    produce->batch = NULL;
    produce->status = status;
    if (status != STATUS_OK && !produce->appended && produce->chain != NULL) {
        produce->chain->broken = true;
    }
    if (status != STATUS_OK) {
        produce->base_offset = -1;
        produce->log_append_time_ms = -1;
    }
    produce->done(produce->context, produce);
}

void produce_refuse(struct produce *produce, enum status status)
{
    produce->error.status = status;
    produce_finish(produce, status);
}

/* ---- checks ---- */

static enum status check_in_sync(struct broker *broker, const struct partition *partition,
                                 struct error *error)
{
    int32_t in_sync = broker_group_view(broker)->in_sync_now;
    int32_t needed = partition_min_insync(partition);
    if (in_sync >= needed) return STATUS_OK;
    return error_set(error, STATUS_NOT_ENOUGH_REPLICAS, "not enough in-sync replicas: %d of %d",
                     in_sync, needed);
}

static enum status check_partition(struct broker *broker, const struct partition *partition,
                                   bool internal, enum produce_acks acks, struct error *error)
{
    if (partition == NULL || !partition->visible) {
        return error_set(error, STATUS_UNKNOWN_TOPIC, "no such topic or partition");
    }
    enum status status = broker_check_serving(broker);
    if (status != STATUS_OK) return error_set(error, status, "%s", status_text(status));
    if (partition->topic->internal && !internal) {
        return error_set(error, STATUS_TOPIC_FORBIDDEN, "%s is internal", partition->topic->name);
    }
    /* Also a copy that lost what was committed: new records would take its offsets. */
    if (partition_is_unusable(partition) && !MUTANT(19)) {
        return error_set(error, STATUS_STORAGE_ERROR, "%s: this copy has failed",
                         partition_name(partition));
    }
    return acks == ACKS_ALL ? check_in_sync(broker, partition, error) : STATUS_OK;
}

enum status broker_produce_precheck(struct broker *broker, const struct partition *partition,
                                    enum produce_acks acks, struct error *error)
{
    enum status status = check_partition(broker, partition, false, acks, error);
    if (status == STATUS_NOT_ENOUGH_REPLICAS) broker->stats.under_min_isr_rejections++;
    return status;
}

struct batch_limits produce_limits(const struct broker *broker, const struct produce *produce)
{
    const struct topic_settings *settings = &produce->partition->topic->settings;
    return (struct batch_limits){
        .batch_bytes_max = settings->batch_bytes_max,
        .compacted = settings->compacted,
        .log_append_time = settings->log_append_time,
        .allow_zstd = produce->allow_zstd,
        .allow_unsequenced = produce->internal,
        .now_ms = loop_wall_ms(broker->loop),
        .timestamp_before_max_ms = settings->timestamp_before_max_ms,
        .timestamp_after_max_ms = settings->timestamp_after_max_ms,
    };
}

enum status produce_check_segment(struct produce *produce, size_t batch_bytes)
{
    int64_t segment_bytes = produce->partition->topic->settings.log.segment_bytes;
    if ((int64_t)batch_bytes <= segment_bytes) return STATUS_OK;
    return error_set(&produce->error, STATUS_TOO_LARGE,
                     "batch of %zu bytes: larger than segment.bytes", batch_bytes);
}

static enum status check_batch(struct broker *broker, struct produce *produce,
                               struct batch_header *header)
{
    const struct batch_limits limits = produce_limits(broker, produce);
    struct batch_fault fault = {.record_index = -1};
    enum status status = batch_validate_produced(produce->batch->data, produce->batch->bytes,
                                                 &limits, header, &fault, &produce->error);
    produce->fault_record = fault.record_index;
    if (status != STATUS_OK) return status;
    status = produce_check_segment(produce, header->batch_bytes);
    if (status != STATUS_OK) return status;
    if (header->producer_id >= PRODUCER_IDS_RESERVED) {
        return error_set(&produce->error, STATUS_INVALID_RECORD, "producer id %lld is none",
                         (long long)header->producer_id);
    }
    if ((header->attributes & BATCH_TRANSACTIONAL) != 0 && produce->transactional_id.data == NULL &&
        !produce->internal) {
        return error_set(&produce->error, STATUS_INVALID_TXN_STATE,
                         "no transaction is open for this producer");
    }
    return STATUS_OK;
}

/* An end marker is of our own making, and judged by epochs alone: the coordinator's is never
 * refused for want of replicas, it waits for them. */
static enum status check_arrival(struct broker *broker, struct produce *produce,
                                 struct batch_header *header)
{
    if (produce->marker == NULL) return check_batch(broker, produce, header);
    return batch_parse(produce->batch->data, produce->batch->bytes, true, header, &produce->error);
}

/* ---- append ---- */

static enum status produce_stamp(struct broker *broker, struct produce *produce,
                                 struct batch_header *header)
{
    uint8_t *data = produce->batch->data;
    batch_set_base_offset(data, partition_log_end(produce->partition));
    batch_set_leader_epoch(data,
                           broker->settings.unstamped ? -1 : broker_group_view(broker)->epoch);
    if (produce->partition->topic->settings.log_append_time) {
        produce->log_append_time_ms = loop_wall_ms(broker->loop);
        batch_set_log_append_time(data, produce->log_append_time_ms);
    }
    return batch_parse(data, produce->batch->bytes, true, header, &produce->error);
}

static void count_append(struct broker *broker, const struct batch_header *header)
{
    broker->stats.produce_batches++;
    broker->stats.produce_records += (uint64_t)header->record_count;
    broker->stats.produce_bytes += header->batch_bytes;
}

/* STATUS_OK: in the log and in the producer table. STATUS_AGAIN: not now. */
static enum status produce_append(struct broker *broker, struct produce *produce,
                                  struct batch_header *header)
{
    struct partition *partition = produce->partition;
    enum status status = produce_stamp(broker, produce, header);
    if (status != STATUS_OK) return status;
    status = partition_log_append(partition->log, produce->batch, false, &produce->error);
    if (status != STATUS_OK) return status;
    /* The table follows the log, never the other way (T36). */
    producers_apply_batch(partition->producers, produce->batch->data, header,
                          producer_clock_ms(broker));
    produce->appended = true;
    produce->appended_us = loop_now_us(broker->loop);
    produce->base_offset = header->base_offset;
    produce->last_offset = batch_last_offset(header);
    if (produce->marker == NULL) count_append(broker, header);
    shared_bytes_unref(produce->batch);
    produce->batch = NULL;
    broker->port.appended(broker->port.context, partition);
    return STATUS_OK;
}

/* The retry of a batch that is there: answered with the original's offset, and no sooner than the
 * original. */
static enum status produce_take_duplicate(struct broker *broker, struct produce *produce,
                                          const struct producer_verdict *verdict)
{
    broker->stats.produce_duplicates++;
    if (MUTANT(16)) {
        return error_set(&produce->error, STATUS_OUT_OF_ORDER_SEQUENCE, "duplicate batch");
    }
    produce->duplicate = true;
    produce->appended = true;
    produce->appended_us = loop_now_us(broker->loop);
    produce->error = (struct error){.status = STATUS_OK};
    produce->fault_record = -1;
    produce->base_offset = verdict->base_offset;
    produce->last_offset = verdict->last_offset;
    produce->log_append_time_ms = verdict->log_append_time_ms;
    return STATUS_OK;
}

/* A marker that was sent again after a failover is there already: one marker a transaction (I16).
 */
static enum status produce_try_marker(struct broker *broker, struct produce *produce,
                                      struct batch_header *header)
{
    const struct producer_table *producers = produce->partition->producers;
    const struct partition_marker *marker = produce->marker;
    const struct batch_marker says = {.commit = marker->commit,
                                      .coordinator_epoch = marker->coordinator_epoch};
    enum status status =
        producer_check_marker(producers, header, &says, marker->transaction_v2, &produce->error);
    if (status != STATUS_OK) return status;
    int64_t offset = producer_marked_offset(producers, header);
    if (offset < 0 && !produce_is_patient(produce)) {
        status = check_in_sync(broker, produce->partition, &produce->error);
        if (status != STATUS_OK) return status;
    }
    if (offset < 0) return produce_append(broker, produce, header);
    const struct producer_verdict verdict = {.kind = PRODUCER_DUPLICATE,
                                             .base_offset = offset,
                                             .last_offset = offset,
                                             .log_append_time_ms = -1};
    return produce_take_duplicate(broker, produce, &verdict);
}

/* May the batch that is missing before this one still come? Clients pipeline: when a leader dies,
 * what was on its way to it is sent to the next, but what stands behind it may be there first, if
 * the client's own connections disagree for a moment about who leads. Told OUT_OF_ORDER_SEQUENCE a
 * client takes that for lost data and gives up for good. So for a while a new leader asks for it
 * again, from whoever has written nothing under it yet: the one before comes first then. */
static bool gap_may_close(const struct broker *broker, const struct partition *partition,
                          const struct producer_verdict *verdict)
{
    return verdict->gap && verdict->known_offset < partition->epoch_start &&
           loop_now_us(broker->loop) - broker->serving_since_us < GAP_GRACE_US;
}

/* All that depends on state, and the append. STATUS_AGAIN: unchanged, try again later.
 * STATUS_CONFLICT: unchanged, and to be held by its transaction. */
static enum status produce_try(struct broker *broker, struct produce *produce)
{
    struct partition *partition = produce->partition;
    struct batch_header header;
    enum status status =
        check_partition(broker, partition, produce->internal, ACKS_NONE, &produce->error);
    if (status != STATUS_OK) return status;
    if (partition->change != NULL) return STATUS_AGAIN;
    status =
        batch_parse(produce->batch->data, produce->batch->bytes, true, &header, &produce->error);
    if (status != STATUS_OK) return status;
    produce->log_start_offset = partition_log_start(partition);
    if (produce->marker != NULL) return produce_try_marker(broker, produce, &header);
    bool transactional =
        (header.attributes & BATCH_TRANSACTIONAL) != 0 && produce->transactional_id.data != NULL;
    if (transactional && transactions_must_queue(broker, produce)) return STATUS_CONFLICT;
    struct producer_verdict verdict;
    struct error objection;
    enum status judged =
        producer_check(partition->producers, &header, produce->rules, producer_clock_ms(broker),
                       producer_expiration_ms(broker), &verdict, &objection);
    if (judged == STATUS_OK && verdict.kind == PRODUCER_DUPLICATE) {
        return produce_take_duplicate(broker, produce, &verdict);
    }
    if (produce->mistimed) return STATUS_INVALID_TIMESTAMP;
    if (produce->chain != NULL && produce->chain->broken) {
        return error_set(&produce->error, STATUS_CANCELLED, "a batch before it was refused");
    }
    /* Before what is wrong with the sequence: batches behind one that was refused for want of
     * replicas are refused for the same reason, not called out of order. */
    if (produce->acks == ACKS_ALL) status = check_in_sync(broker, partition, &produce->error);
    if (status != STATUS_OK) broker->stats.under_min_isr_rejections++;
    if (status != STATUS_OK) return status;
    if (gap_may_close(broker, partition, &verdict)) {
        return error_set(&produce->error, STATUS_NOT_READY, "a batch before it is still to come");
    }
    if (judged != STATUS_OK) {
        produce->error = objection;
        return judged;
    }
    /* In one step with the append: no marker can come between (T26). The partition's own producer
     * epoch was looked at first (4.3). */
    if (transactional) status = transactions_admit(broker, produce);
    if (status == STATUS_OK && produce->admit != NULL) {
        status = produce->admit(produce->context);
        ASSERT(status != STATUS_AGAIN && status != STATUS_CONFLICT);
        error_set(&produce->error, status, "%s", status_text(status));
    }
    if (status != STATUS_OK) return status;
    return produce_append(broker, produce, &header);
}

/* ---- backlog ---- */

static void backlog_remove(struct broker *broker, struct produce *produce)
{
    DL_DELETE(broker->backlog, produce);
    produce->parked_on = NULL;
    broker->backlog_count--;
    broker->backlog_bytes -= produce->batch->bytes;
    broker->stats.produce_parked--;
    deadlines_remove(&broker->deadlines, &produce->deadline);
}

static void backlog_expired(void *context, struct deadline *deadline)
{
    struct produce *produce = CONTAINER_OF(deadline, struct produce, deadline);
    backlog_remove(context, produce);
    error_set(&produce->error, STATUS_TIMEOUT, "the log did not take the batch in time");
    produce_finish(produce, STATUS_TIMEOUT);
}

static void backlog_add(struct broker *broker, struct produce *produce)
{
    size_t bytes_max = broker->settings.unsynced_bytes_max;
    bool full =
        broker->backlog_count >= BACKLOG_COUNT_MAX ||
        (broker->backlog_count > 0 && broker->backlog_bytes + produce->batch->bytes > bytes_max);
    if (full && !produce_is_patient(produce)) {
        error_set(&produce->error, STATUS_LIMIT, "too many bytes wait for the disk");
        produce_finish(produce, STATUS_LIMIT);
        return;
    }
    DL_APPEND(broker->backlog, produce);
    produce->parked_on = &broker->backlog;
    broker->backlog_count++;
    broker->backlog_bytes += produce->batch->bytes;
    broker->stats.produce_parked++;
    if (produce_is_patient(produce)) return;
    deadlines_add(&broker->deadlines, &produce->deadline, produce->until_us, backlog_expired);
}

/* What a try came to. */
static void produce_go_on(struct broker *broker, struct produce *produce, enum status status)
{
    if (status == STATUS_OK) {
        produce_park(broker, produce, produce->until_us);
    } else if (status == STATUS_AGAIN) {
        backlog_add(broker, produce);
    } else if (status == STATUS_CONFLICT) {
        transactions_hold(broker, produce);
    } else {
        produce_refuse(produce, status);
    }
}

void produce_resume(struct broker *broker, struct produce *produce)
{
    bool queue = broker->paused || broker->backlog != NULL;
    produce_go_on(broker, produce, queue ? STATUS_AGAIN : produce_try(broker, produce));
}

/* One try at the head; false: it stays. */
static bool backlog_try_head(struct broker *broker)
{
    struct produce *produce = broker->backlog;
    size_t bytes = produce->batch->bytes;
    enum status status = produce_try(broker, produce);
    if (status == STATUS_AGAIN) return false;
    DL_DELETE(broker->backlog, produce);
    produce->parked_on = NULL;
    broker->backlog_count--;
    broker->backlog_bytes -= bytes;
    broker->stats.produce_parked--;
    deadlines_remove(&broker->deadlines, &produce->deadline);
    produce_go_on(broker, produce, status);
    return true;
}

static void backlog_fire(void *context)
{
    struct broker *broker = context;
    while (!broker->paused && broker->backlog != NULL && backlog_try_head(broker))
        continue;
}

/* Not inside the callback that gave room: the store may not have counted it yet. */
void produce_backlog_continue(struct broker *broker)
{
    if (broker->backlog == NULL || broker->paused) return;
    if (broker->backlog_timer == NULL) {
        broker->backlog_timer = timer_new(broker->loop, backlog_fire, broker);
    }
    timer_start(broker->backlog_timer, 0);
}

void broker_pause_produce(struct broker *broker, bool paused)
{
    broker->paused = paused;
    produce_backlog_continue(broker);
}

void produce_backlog_fail(struct broker *broker, enum status status)
{
    while (broker->backlog != NULL) {
        struct produce *produce = broker->backlog;
        backlog_remove(broker, produce);
        error_set(&produce->error, status, "%s", status_text(status));
        produce_finish(produce, status);
    }
}

void produce_partition_gone(struct partition *partition, enum status status, const char *text)
{
    struct broker *broker = partition->broker;
    parked_fail(partition, status, text);
    recompression_partition_gone(partition, status, text);
    transactions_partition_gone(partition, status, text);
    for (struct produce *produce = broker->backlog; produce != NULL;) {
        if (produce->partition != partition) {
            produce = produce->next;
            continue;
        }
        backlog_remove(broker, produce);
        error_set(&produce->error, status, "%s", text);
        produce_finish(produce, status);
        produce = broker->backlog; /* the answer may have changed the list */
    }
}

/* ---- the way in ---- */

void broker_produce(struct broker *broker, struct produce *produce)
{
    struct batch_header header;
    produce->status = STATUS_OK;
    produce->error.status = STATUS_OK;
    produce->error.text[0] = '\0';
    produce->fault_record = -1;
    produce->appended = produce->duplicate = false;
    produce->base_offset = produce->last_offset = -1;
    produce->log_append_time_ms = produce->log_start_offset = -1;
    produce->parked_on = NULL;
    produce->hold = (struct transaction_wait){0};
    produce->recompression = NULL;
    produce->admitted = false;
    produce->deadline = (struct deadline){0};
    produce->until_us = loop_now_us(broker->loop) + produce_wait_us(broker, produce);
    broker->stats.produce_requests++;
    enum status status =
        check_partition(broker, produce->partition, produce->internal, ACKS_NONE, &produce->error);
    if (status == STATUS_OK) status = check_arrival(broker, produce, &header);
    produce->mistimed = status == STATUS_INVALID_TIMESTAMP && header.producer_id >= 0;
    if (status != STATUS_OK && !produce->mistimed) {
        produce_refuse(produce, status);
        return;
    }
    if (!recompression_hold(broker, produce, &header)) produce_resume(broker, produce);
}

void broker_produce_cancel(struct broker *broker, struct produce *produce)
{
    if (produce->parked_on == &broker->backlog) {
        backlog_remove(broker, produce);
    } else if (produce->parked_on == &produce->partition->recompressing) {
        recompression_let_go(broker, produce);
    } else if (produce->parked_on != NULL) {
        produce_unpark(broker, produce);
    } else if (produce->hold.live != NULL) {
        transactions_let_go(produce);
    }
    shared_bytes_unref(produce->batch);
    produce->batch = NULL;
}
