/* broker.c: the life of the broker, and what the group tells it. */
#include "broker/broker.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/memory.h"
#include "broker/group_coordinator_state.h"
#include "broker/modern_coordinator_state.h"
#include "broker/partition_change.h"
#include "broker/partition_state.h"
#include "log/compaction.h"

/* A promotion under way: the catalog's version, then everything so far on disk. */
struct promotion {
    struct broker *broker;
    int32_t epoch;
    broker_done_fn done;
    void *context;
    struct promotion *next, *prev;
};

void broker_settings_default(struct broker_settings *settings)
{
    *settings = (struct broker_settings){
        .default_acks = ACKS_ALL,
        .ack_timeout_us = 5000000,
        .auto_create_topics = true,
        .default_partitions = 1,
        .topics_max = 10000,
        .fetch_bytes_max = 57671680,
        .fetch_parked_partitions_max = 200000,
        .cache_bytes_max = 268435456,
        .unsynced_bytes_max = 134217728,
        .retention_check_us = 30000000,
        .compaction_map_bytes = COMPACTION_MAP_BYTES,
        .internal_partitions = 16,
        .transaction_timeout_ms_max = 900000,
        .transactional_id_expiration_ms = 604800000,
        .producer_id_expiration_ms = PRODUCER_EXPIRATION_MS,
        .offset_metadata_bytes_max = 4096,
        .offsets_retention_ms = INT64_C(604800000),
    };
    consumer_group_limits_default(&settings->groups);
    modern_group_options_default(&settings->modern_groups);
}

struct broker *broker_new(const struct broker_options *options)
{
    struct broker *broker = memory_new(sizeof(*broker));
    broker->fs = options->fs;
    broker->executor = options->executor;
    broker->loop = options->loop;
    broker->data_dir = memory_copy_text(options->data_dir);
    broker->settings = options->settings;
    broker->producer_id_epoch = -1;
    broker->seen = (struct seen_leadership){.leader_id = -1, .epoch = -1};
    random_seed(&broker->random, options->random_seed);
    deadlines_init(&broker->deadlines, broker->loop, broker);
    broker->groups = group_coordinator_new();
    broker->modern = modern_coordinator_new();
    catalog_init(&broker->catalog);
    broker->transactions = transactions_new(broker);
    const struct log_store_options store = {
        .fs = broker->fs,
        .executor = broker->executor,
        .loop = broker->loop,
        .data_dir = broker->data_dir,
        .cache_bytes_max = broker->settings.cache_bytes_max,
        .unsynced_bytes_max = broker->settings.unsynced_bytes_max,
        .handlers =
            {
                .durable = partition_log_durable,
                .failed = partition_log_broke,
                .snapshot = partition_log_snapshot,
                .context = broker,
            },
    };
    broker->store = log_store_new(&store);
    return broker;
}

void broker_free(struct broker *broker)
{
    if (broker == NULL) return;
    broker->phase = BROKER_STOPPED;
    retention_stop(broker);
    timer_free(broker->backlog_timer);
    timer_free(broker->recompression_timer);
    while (broker->jobs != NULL) {
        struct broker_job *job = broker->jobs;
        DL_DELETE(broker->jobs, job);
        job->dispose(job);
    }
    log_store_free(broker->store);
    struct promotion *promotion, *next;
    DL_FOREACH_SAFE(broker->promotions, promotion, next)
    {
        DL_DELETE(broker->promotions, promotion);
        free(promotion);
    }
    fetch_watch_lose_all(broker);
    leader_wait_free(broker);
    admin_free(broker);
    offsets_free(broker);
    marker_writes_free(broker);
    record_deletions_free(broker);
    transactions_free(broker);
    group_coordinator_free(broker);
    modern_coordinator_free(broker);
    catalog_deinit(broker);
    partition_changes_free(broker);
    deadlines_deinit(&broker->deadlines);
    free(broker->data_dir);
    free(broker);
}

void broker_set_group(struct broker *broker, const struct group_port *port,
                      const struct broker_handlers *handlers)
{
    ASSERT(broker->phase == BROKER_NEW);
    broker->port = *port;
    broker->handlers = *handlers;
}

void broker_start(struct broker *broker, broker_done_fn done, void *context)
{
    ASSERT(broker->phase == BROKER_NEW);
    broker->phase = BROKER_STARTING;
    broker->began_us = loop_now_us(broker->loop);
    broker->began_wall_ms = loop_wall_ms(broker->loop);
    broker_start_begin(broker, done, context);
}

/* ---- small things for everybody here ---- */

static void job_run(struct job *job)
{
    struct broker_job *owned = CONTAINER_OF(job, struct broker_job, job);
    owned->run(owned);
}

static void job_done(struct job *job)
{
    struct broker_job *owned = CONTAINER_OF(job, struct broker_job, job);
    DL_DELETE(owned->broker->jobs, owned);
    owned->done(owned);
}

void broker_job_submit(struct broker *broker, enum executor_lane lane, struct broker_job *job)
{
    job->broker = broker;
    job->job = (struct job){.run = job_run, .done = job_done};
    DL_APPEND(broker->jobs, job);
    executor_submit(broker->executor, lane, &job->job);
}

void broker_alarm(struct broker *broker, const char *kind, const char *text)
{
    broker->handlers.alarm(broker->handlers.context, kind, text);
}

char *data_path(const char *data_dir, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int bytes = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    size_t prefix = strlen(data_dir) + 1;
    char *path = memory_new(prefix + (size_t)bytes + 1);
    snprintf(path, prefix + 1, "%s/", data_dir);
    va_start(arguments, format);
    vsnprintf(path + prefix, (size_t)bytes + 1, format, arguments);
    va_end(arguments);
    return path;
}

const struct group_view *broker_group_view(struct broker *broker)
{
    return broker->port.view(broker->port.context);
}

const struct broker_settings *broker_settings_of(const struct broker *broker)
{
    return &broker->settings;
}

struct loop *broker_loop(struct broker *broker)
{
    return broker->loop;
}

struct executor *broker_executor(struct broker *broker)
{
    return broker->executor;
}

struct log_store *broker_log_store(struct broker *broker)
{
    return broker->store;
}

const struct group_port *broker_group_port(struct broker *broker)
{
    return &broker->port;
}

void broker_stats(const struct broker *broker, struct broker_stats *out)
{
    *out = broker->stats;
}

uint64_t broker_internal_state_hash(struct broker *broker, const struct partition *partition)
{
    (void)broker;
    if (partition->internal == NULL) return 0;
    if (partition->internal->transactions != NULL) {
        return transaction_table_hash(partition->internal->transactions);
    }
    return offsets_table_hash(partition->internal->offsets) +
           consumer_group_table_hash(partition->internal->groups) +
           modern_group_table_hash(partition->internal->modern);
}

enum status broker_check_serving(struct broker *broker)
{
    const struct group_view *view = broker_group_view(broker);
    if (broker->stepping_down || broker->phase > BROKER_RUNNING) return STATUS_NOT_LEADER;
    if (view->leader_id < 0 || view->leader_id != view->self_id) return STATUS_NOT_LEADER;
    bool ready = view->serving && broker->leading && broker->phase == BROKER_RUNNING;
    return ready ? STATUS_OK : STATUS_NOT_READY;
}

/* ---- stop ---- */

struct stop_operation {
    struct catalog_operation operation;
    broker_done_fn done;
    void *context;
};

static void stop_dispose(struct catalog_operation *operation)
{
    free(CONTAINER_OF(operation, struct stop_operation, operation));
}

static void stop_finished(void *context, enum status status, const struct error *error)
{
    struct stop_operation *stop = context;
    broker_done_fn done = stop->done;
    void *done_context = stop->context;
    struct error copy = error != NULL ? *error : (struct error){0};
    stop->operation.broker->phase = BROKER_STOPPED;
    catalog_operation_finish(&stop->operation);
    done(done_context, status, &copy);
}

static void stop_begin(struct catalog_operation *operation)
{
    struct stop_operation *stop = CONTAINER_OF(operation, struct stop_operation, operation);
    log_store_stop(operation->broker->store, stop_finished, stop);
}

void broker_stop(struct broker *broker, broker_done_fn done, void *context)
{
    if (broker->phase == BROKER_STARTING) {
        broker->stop_done = done;
        broker->stop_context = context;
        return;
    }
    broker->phase = BROKER_STOPPING;
    broker_demoted(broker);
    retention_stop(broker);
    struct stop_operation *stop = memory_new(sizeof(*stop));
    stop->operation.begin = stop_begin;
    stop->operation.dispose = stop_dispose;
    stop->done = done;
    stop->context = context;
    catalog_enqueue(broker, &stop->operation);
}

struct fetch_watch_set **broker_watch_sets(struct broker *broker)
{
    return &broker->watch_sets;
}

/* ---- from the group ---- */

void broker_view_changed(struct broker *broker)
{
    produce_check_in_sync(broker);
    leader_wait_view_changed(broker);
}

static void promotion_finish(struct promotion *promotion, enum status status,
                             const struct error *error)
{
    struct broker *broker = promotion->broker;
    struct error copy = error != NULL ? *error : (struct error){0};
    if (status == STATUS_OK && (!broker->leading || broker->leading_epoch != promotion->epoch)) {
        status = error_set(&copy, STATUS_NOT_LEADER, "no longer the leader");
    }
    broker_done_fn done = promotion->done;
    void *context = promotion->context;
    DL_DELETE(broker->promotions, promotion);
    free(promotion);
    done(context, status, &copy);
}

static void promotion_flushed(void *context, enum status status, const struct error *error)
{
    promotion_finish(context, status, error);
}

static void promotion_declared(void *context, enum status status, const struct error *error)
{
    struct promotion *promotion = context;
    if (status != STATUS_OK) {
        promotion_finish(promotion, status, error);
        return;
    }
    /* The own tail, and where the epoch began: told to clients from now on, so never to be
     * forgotten. */
    log_store_flush(promotion->broker->store, promotion_flushed, promotion);
}

static void begin_epoch_everywhere(struct broker *broker, int32_t epoch)
{
    struct topic *topic = NULL;
    while ((topic = catalog_next(broker, topic)) != NULL) {
        for (uint32_t i = 0; i < topic->partition_count; i++) {
            partition_begin_epoch(topic->partitions[i], epoch);
        }
    }
}

void broker_promote(struct broker *broker, int32_t epoch, broker_done_fn done, void *context)
{
    struct promotion *promotion = memory_new(sizeof(*promotion));
    *promotion =
        (struct promotion){.broker = broker, .epoch = epoch, .done = done, .context = context};
    DL_APPEND(broker->promotions, promotion);
    if (catalog_damaged(broker)) {
        struct error error;
        enum status status =
            error_set(&error, STATUS_CORRUPT, "metadata of topics cannot be read: must not lead");
        promotion_finish(promotion, status, &error);
        return;
    }
    broker->leading = true;
    broker->leading_epoch = epoch;
    broker->paused = false;
    producer_ids_promoted(broker, epoch);
    begin_epoch_everywhere(broker, epoch);
    catalog_promote(broker, epoch, promotion_declared, promotion);
}

void broker_serving_began(struct broker *broker)
{
    broker->serving_since_us = loop_now_us(broker->loop);
    group_coordinator_serving_began(broker);
    leader_wait_view_changed(broker);
    produce_backlog_continue(broker);
    transactions_serving_began(broker);
    fetch_serving_began(broker);
}

void broker_demoted(struct broker *broker)
{
    broker->leading = false;
    broker->paused = false;
    broker->stepping_down = true;
    produce_fail_all(broker, STATUS_NOT_LEADER);
    produce_backlog_fail(broker, STATUS_NOT_LEADER);
    recompression_fail_all(broker, STATUS_NOT_LEADER);
    transactions_demoted(broker);
    fetch_fail_all(broker);
    offset_lookup_fail_all(broker);
    record_deletions_fail_all(broker);
    offsets_fail_all(broker);
    group_coordinator_demoted(broker);
    modern_coordinator_demoted(broker);
    admin_fail_all(broker);
    broker->stepping_down = false;
}

void broker_manifest_committed(struct broker *broker, struct manifest_version committed)
{
    catalog_committed(broker, committed);
    admin_committed(broker, committed);
}
