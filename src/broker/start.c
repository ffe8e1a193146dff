/* start.c: from a DataDir to a broker that can follow or lead, on workers, step by step.
 *
 * 1. the store's small files and the catalog's files; 2. each partition's log and producer table,
 * many partitions a job; 3. committed offsets, up to the high watermarks on record; 4. the topics
 * show. Until then nothing else touches the broker, so that a step's worker may fill its objects.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/memory.h"
#include "broker/partition_change.h"
#include "broker/partition_state.h"

#define RECOVER_BATCH 128

struct recovered_partition {
    struct topic *topic;
    int32_t index;
    struct partition_log *log;
    struct producer_table *producers;
    struct log_recovery recovery;
    enum status status;
    struct error error;
    struct error producers_error;
    enum status producers_status;
    struct log_damage producers_damage;
};

/* One struct for all steps; it is the job of the step under way. */
struct start {
    struct broker_job job;
    struct broker *broker;
    broker_done_fn done;
    void *context;
    struct catalog_on_disk disk;
    struct recovered_partition *partitions;
    uint32_t partition_count, recovered; /* those before `recovered` are done */
    uint32_t batch;                      /* in the step under way */
    int64_t written_ms, begun_us;
    enum status status;
    struct error error;
};

static void start_dispose(struct broker_job *job)
{
    struct start *start = CONTAINER_OF(job, struct start, job);
    for (uint32_t i = start->recovered; i < start->partition_count; i++) {
        producer_table_free(start->partitions[i].producers);
    }
    free(start->partitions);
    catalog_on_disk_deinit(&start->disk);
    free(start);
}

static void start_step(struct start *start, void (*run)(struct broker_job *job),
                       void (*done)(struct broker_job *job))
{
    start->job.run = run;
    start->job.done = done;
    start->job.dispose = start_dispose;
    broker_job_submit(start->broker, EXECUTOR_LANE_BACKGROUND, &start->job);
}

static void start_finish(struct start *start, enum status status)
{
    struct broker *broker = start->broker;
    broker_done_fn done = start->done;
    void *context = start->context;
    struct error error = start->error;
    if (status == STATUS_OK) {
        broker->phase = BROKER_RUNNING;
        log_info("recovered topics=%u partitions=%u took_ms=%lld", broker->catalog.topic_count,
                 start->partition_count,
                 (long long)((loop_now_us(broker->loop) - start->begun_us) / 1000));
        retention_start(broker);
    } else {
        broker->phase = BROKER_STOPPED;
    }
    start_dispose(&start->job);
    broker_done_fn stop_done = broker->stop_done;
    done(context, status, &error);
    if (stop_done == NULL) return;
    if (status == STATUS_OK) {
        broker_stop(broker, stop_done, broker->stop_context);
    } else {
        stop_done(broker->stop_context, STATUS_OK, &error);
    }
}

/* ---- 4: everything shows ---- */

static void show_topics(struct start *start)
{
    struct broker *broker = start->broker;
    struct catalog *catalog = &broker->catalog;
    for (uint32_t i = 0; i < catalog->hidden_count;) {
        struct topic *topic = catalog->hidden[i];
        if (catalog_find_tombstone(catalog, &topic->uid) != NULL) {
            i++;
        } else {
            catalog_show(broker, topic);
        }
    }
    start_finish(start, STATUS_OK);
}

/* ---- 3: committed offsets ---- */

static bool apply_batch(void *context, const uint8_t *data, size_t bytes)
{
    struct internal_state *state = context;
    struct error error = {0};
    enum status status = internal_state_apply_batch(state, data, bytes, &error);
    if (status == STATUS_OK) return true;
    log_error("internal_state_failed partition=%s reason=\"%s\"", partition_name(state->partition),
              error.text);
    state->failed = true;
    return false;
}

static void apply_partition(struct partition *partition)
{
    struct internal_state *state = partition->internal;
    struct error error = {0};
    int64_t from = partition_log_start(partition), to = partition->high_watermark;
    int64_t hole_from, hole_to;
    state->applied = to;
    if (from >= to) return;
    enum status status =
        log_store_scan(partition->log, from, to, apply_batch, state, &state->damage, &error);
    /* A scan steps over what is quarantined: the state would lack it and not know. */
    if (status == STATUS_OK && partition_log_quarantined(partition->log, &hole_from, &hole_to) &&
        hole_from < to) {
        status = error_set(&error, STATUS_CORRUPT, "offsets %lld to %lld are quarantined",
                           (long long)hole_from, (long long)hole_to);
    }
    if (status == STATUS_OK) return;
    log_error("internal_state_failed partition=%s reason=\"%s\"", partition_name(partition),
              error.text);
    state->failed = true;
}

static void apply_run(struct broker_job *job)
{
    struct catalog *catalog = &CONTAINER_OF(job, struct start, job)->broker->catalog;
    for (uint32_t i = 0; i < catalog->hidden_count; i++) {
        struct topic *topic = catalog->hidden[i];
        for (uint32_t j = 0; j < topic->partition_count; j++) {
            if (topic->partitions[j]->internal != NULL) apply_partition(topic->partitions[j]);
        }
    }
}

/* Damage below what recovery looks at (a sealed segment's digest is taken at its word) shows only
 * now. */
static void report_applied(struct partition *partition)
{
    const struct log_damage *damage = &partition->internal->damage;
    struct error error = {0};
    if (damage->from >= damage->to) return;
    partition_log_quarantine(partition->log, damage->from, damage->to);
    error_set(&error, STATUS_CORRUPT, "%s: offsets %lld to %lld cannot be read",
              partition_name(partition), (long long)damage->from, (long long)damage->to);
    partition_found_corrupt(partition, &error);
}

static void apply_done(struct broker_job *job)
{
    struct start *start = CONTAINER_OF(job, struct start, job);
    struct catalog *catalog = &start->broker->catalog;
    for (uint32_t i = 0; i < catalog->hidden_count; i++) {
        struct topic *topic = catalog->hidden[i];
        for (uint32_t j = 0; j < topic->partition_count; j++) {
            if (topic->partitions[j]->internal != NULL) report_applied(topic->partitions[j]);
        }
    }
    show_topics(start);
}

/* ---- 2: logs and producers ---- */

static void recover_one(struct start *start, struct recovered_partition *item)
{
    const struct log_identity identity = {
        .topic = item->topic->name, .uid = item->topic->uid, .partition = item->index};
    item->status = log_store_recover(start->broker->store, &identity, &item->topic->settings.log,
                                     &item->log, &item->recovery, &item->error);
    item->producers = producer_table_new();
    ASSERT(item->producers != NULL);
    if (item->log == NULL || item->status != STATUS_OK) return;
    item->producers_status = producers_load(item->log, start->written_ms, item->producers,
                                            &item->producers_damage, &item->producers_error);
}

static void recover_run(struct broker_job *job)
{
    struct start *start = CONTAINER_OF(job, struct start, job);
    for (uint32_t i = 0; i < start->batch; i++) {
        recover_one(start, &start->partitions[start->recovered + i]);
    }
}

static void report_recovery(struct start *start, const struct recovered_partition *item,
                            struct partition *partition)
{
    const struct log_recovery *found = &item->recovery;
    char text[400];
    if (item->status != STATUS_OK) {
        log_error("partition_failed partition=%s reason=\"%s\"", partition_name(partition),
                  item->error.text);
        broker_alarm(start->broker, "sync_failed", item->error.text);
    }
    if (found->cut_bytes > 0) {
        log_info("torn_tail_cut partition=%s bytes=%lld", partition_name(partition),
                 (long long)found->cut_bytes);
    }
    if (found->quarantined) {
        snprintf(text, sizeof(text), "%s: offsets %lld to %lld cannot be read",
                 partition_name(partition), (long long)found->quarantine_from,
                 (long long)found->quarantine_to);
        partition_alarm_corrupt(partition, text);
    }
    if (item->producers_status != STATUS_OK) {
        partition_producers_lost(partition, &item->producers_damage, &item->producers_error);
    }
}

static void recover_more(struct start *start);

static void recover_done(struct broker_job *job)
{
    struct start *start = CONTAINER_OF(job, struct start, job);
    for (uint32_t i = 0; i < start->batch; i++) {
        struct recovered_partition *item = &start->partitions[start->recovered];
        if (item->log == NULL) {
            start->error = item->error;
            start_finish(start, item->status);
            return;
        }
        struct partition *partition =
            partition_new(item->topic, item->index, item->log, item->producers);
        item->producers = NULL;
        topic_add_partition(item->topic, partition);
        partition_recovered(partition);
        partition->was_cut = item->recovery.cut_bytes > 0;
        /* A scan steps over files that are gone. */
        partition->producers_lost = item->recovery.quarantined;
        report_recovery(start, item, partition);
        start->recovered++;
    }
    if (start->partition_count > RECOVER_BATCH) {
        log_info("recovering partitions=%u of=%u", start->recovered, start->partition_count);
    }
    recover_more(start);
}

static void recover_more(struct start *start)
{
    uint32_t left = start->partition_count - start->recovered;
    start->batch = left < RECOVER_BATCH ? left : RECOVER_BATCH;
    if (start->batch == 0) {
        start_step(start, apply_run, apply_done);
    } else {
        start_step(start, recover_run, recover_done);
    }
}

/* ---- 1: the small files ---- */

static void load_run(struct broker_job *job)
{
    struct start *start = CONTAINER_OF(job, struct start, job);
    start->status = log_store_load(start->broker->store, &start->error);
    if (start->status != STATUS_OK) return;
    start->status =
        catalog_load(start->broker->fs, start->broker->data_dir, &start->disk, &start->error);
}

static void note_n(struct catalog *catalog, struct manifest_version version)
{
    if (version.n > catalog->last_n) catalog->last_n = version.n;
}

static void take_topic(struct start *start, const struct topic_record *record)
{
    struct broker *broker = start->broker;
    struct topic *topic = topic_new(broker, record->name, &record->uid);
    topic->internal = record->internal;
    topic->metadata_lost = record->metadata_lost;
    topic->since = record->since;
    topic_configure(topic, &record->config);
    catalog_add_hidden(broker, topic);
    note_n(&broker->catalog, record->since);
    for (uint32_t i = 0; i < record->partitions; i++) {
        start->partitions[start->partition_count++] =
            (struct recovered_partition){.topic = topic, .index = (int32_t)i};
    }
}

/* Without its file the version is at least that of the newest topic; tombstones are lost until a
 * leader's come. */
static void take_manifest(struct start *start)
{
    struct catalog *catalog = &start->broker->catalog;
    const struct manifest_record *manifest = &start->disk.manifest;
    catalog->version = catalog->durable_version = manifest->version;
    catalog->manifest_lost = start->disk.manifest_lost;
    note_n(catalog, manifest->version);
    for (uint32_t i = 0; i < manifest->tombstone_count; i++) {
        const struct manifest_tombstone *tombstone = &manifest->tombstones[i];
        catalog_add_tombstone(catalog, &tombstone->uid, tombstone->name, tombstone->at);
        note_n(catalog, tombstone->at);
    }
    catalog->lost_directories = start->disk.lost_directories;
    catalog->lost_directory_count = start->disk.lost_directory_count;
    start->disk.lost_directories = NULL;
    start->disk.lost_directory_count = 0;
}

static void load_done(struct broker_job *job)
{
    struct start *start = CONTAINER_OF(job, struct start, job);
    if (start->status != STATUS_OK) {
        start_finish(start, start->status);
        return;
    }
    size_t count = 0;
    for (uint32_t i = 0; i < start->disk.topic_count; i++)
        count += start->disk.topics[i].partitions;
    start->partitions = memory_new((count + 1) * sizeof(*start->partitions));
    take_manifest(start);
    for (uint32_t i = 0; i < start->disk.topic_count; i++) {
        take_topic(start, &start->disk.topics[i]);
    }
    recover_more(start);
}

void broker_start_begin(struct broker *broker, broker_done_fn done, void *context)
{
    struct start *start = memory_new(sizeof(*start));
    start->broker = broker;
    start->done = done;
    start->context = context;
    start->written_ms = producer_clock_ms(broker);
    start->begun_us = loop_now_us(broker->loop);
    start_step(start, load_run, load_done);
}
