/* broker_rig.h: one broker in a temporary directory, with a group made of knobs.
 *
 * By default the group is as good as it gets: the high watermark follows the durable offset, a
 * manifest version is committed when it is durable here, confirmations come at once. Tests turn the
 * knobs they need.  */
#ifndef MOONMQ_TESTS_LIB_BROKER_RIG_H
#define MOONMQ_TESTS_LIB_BROKER_RIG_H

/* A test uses what it needs. */
#pragma GCC diagnostic ignored "-Wunused-function"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "broker/admin.h"
#include "broker/broker.h"
#include "broker/fetch.h"
#include "broker/offsets.h"
#include "lib/stepped_loop.h"
#include "record/batch.h"

struct rig {
    struct stepped_loop fake;
    struct file_system *fs;
    char directory[64];
    struct broker *broker;
    struct broker_settings settings;
    struct group_view view;
    bool hold_high_watermark, hold_commit, hold_confirm;
    group_done_fn confirm_done; /* held */
    void *confirm_context;
    uint32_t appended, changed, manifest_changes, added, removed, failed, alarms;
    char last_alarm[32];
    bool started, stopped;
    enum status start_status;
    int promoted; /* -1: not yet; else a status */
};

static const struct group_view *rig_view(void *context)
{
    return &((struct rig *)context)->view;
}

static void rig_appended(void *context, struct partition *partition)
{
    (void)partition;
    ((struct rig *)context)->appended++;
}

static void rig_changed(void *context, struct partition *partition)
{
    (void)partition;
    ((struct rig *)context)->changed++;
}

static void rig_manifest_changed(void *context)
{
    struct rig *rig = context;
    rig->manifest_changes++;
    if (rig->hold_commit) return;
    broker_manifest_committed(rig->broker, catalog_durable_version(rig->broker));
}

static void rig_confirm(void *context, group_done_fn done, void *done_context)
{
    struct rig *rig = context;
    if (!rig->hold_confirm) {
        done(done_context, STATUS_OK, NULL);
        return;
    }
    rig->confirm_done = done;
    rig->confirm_context = done_context;
}

static void rig_transfer(void *context, int32_t to, group_done_fn done, void *done_context)
{
    (void)context, (void)to;
    done(done_context, STATUS_UNSUPPORTED, NULL);
}

static void rig_forward(void *context, struct group_forward *forward)
{
    (void)context;
    forward->done(forward->context, STATUS_NO_LEADER, (struct slice){0});
}

static void rig_status(void *context, struct buffer *out)
{
    (void)context, (void)out;
}

static void rig_partition_added(void *context, struct partition *partition)
{
    (void)partition;
    ((struct rig *)context)->added++;
}

static void rig_partition_removed(void *context, struct partition *partition)
{
    (void)partition;
    ((struct rig *)context)->removed++;
}

static void rig_partition_durable(void *context, struct partition *partition)
{
    struct rig *rig = context;
    if (!rig->hold_high_watermark) {
        partition_set_high_watermark(partition, partition_durable(partition));
    }
}

static void rig_partition_failed(void *context, struct partition *partition,
                                 const struct error *error)
{
    (void)partition, (void)error;
    ((struct rig *)context)->failed++;
}

static void rig_alarm(void *context, const char *kind, const char *text)
{
    struct rig *rig = context;
    (void)text;
    rig->alarms++;
    snprintf(rig->last_alarm, sizeof(rig->last_alarm), "%s", kind);
}

static void rig_started(void *context, enum status status, const struct error *error)
{
    struct rig *rig = context;
    (void)error;
    rig->started = true;
    rig->start_status = status;
}

static void rig_promoted(void *context, enum status status, const struct error *error)
{
    (void)error;
    ((struct rig *)context)->promoted = (int)status;
}

/* A new object on the same directory. */
static void rig_open(struct rig *rig)
{
    const struct broker_options options = {.fs = rig->fs,
                                           .executor = &rig->fake.executor,
                                           .loop = &rig->fake.loop,
                                           .data_dir = rig->directory,
                                           .random_seed = 42,
                                           .settings = rig->settings};
    const struct group_port port = {.view = rig_view,
                                    .appended = rig_appended,
                                    .partition_changed = rig_changed,
                                    .manifest_changed = rig_manifest_changed,
                                    .confirm = rig_confirm,
                                    .transfer = rig_transfer,
                                    .forward = rig_forward,
                                    .status = rig_status,
                                    .context = rig};
    const struct broker_handlers handlers = {.partition_added = rig_partition_added,
                                             .partition_removed = rig_partition_removed,
                                             .partition_durable = rig_partition_durable,
                                             .partition_failed = rig_partition_failed,
                                             .alarm = rig_alarm,
                                             .context = rig};
    rig->started = false;
    rig->promoted = -1;
    rig->broker = broker_new(&options);
    broker_set_group(rig->broker, &port, &handlers);
    broker_start(rig->broker, rig_started, rig);
}

/* On a disk of the test's own; `directory` is there. */
static void rig_init_on(struct rig *rig, struct file_system *fs, const char *directory)
{
    *rig = (struct rig){.fs = fs};
    stepped_loop_init(&rig->fake);
    snprintf(rig->directory, sizeof(rig->directory), "%s", directory);
    broker_settings_default(&rig->settings);
    rig->settings.internal_partitions = 4;
    rig->view = (struct group_view){.self_id = 1,
                                    .leader_id = -1,
                                    .epoch = -1,
                                    .member_count = 3,
                                    .min_insync = 2,
                                    .in_sync_now = 3};
}

static void rig_init(struct rig *rig)
{
    char directory[] = "/tmp/moonmq-broker-XXXXXX";
    assert_non_null(mkdtemp(directory));
    rig_init_on(rig, file_system_posix(), directory);
}

static void rig_start(struct rig *rig)
{
    rig_open(rig);
    stepped_loop_settle(&rig->fake);
    assert_true(rig->started);
    assert_int_equal(rig->start_status, STATUS_OK);
}

/* Leads and serves in `epoch`. */
static void rig_lead(struct rig *rig, int32_t epoch)
{
    rig->view.leader_id = rig->view.self_id;
    rig->view.epoch = epoch;
    broker_view_changed(rig->broker);
    broker_promote(rig->broker, epoch, rig_promoted, rig);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(rig->promoted, STATUS_OK);
    rig->view.serving = true;
    broker_view_changed(rig->broker);
    broker_serving_began(rig->broker);
    stepped_loop_settle(&rig->fake);
}

static void rig_follow(struct rig *rig, int32_t leader_id, int32_t epoch)
{
    rig->view.leader_id = leader_id;
    rig->view.epoch = epoch;
    rig->view.serving = false;
    broker_view_changed(rig->broker);
    broker_demoted(rig->broker);
}

static void rig_crash(struct rig *rig)
{
    broker_free(rig->broker);
    rig->broker = NULL;
    stepped_loop_drop(&rig->fake);
}

static void rig_deinit(struct rig *rig)
{
    struct error error;
    if (rig->broker != NULL) rig_crash(rig);
    stepped_loop_drop(&rig->fake);
    assert_int_equal(file_remove_tree(rig->fs, rig->directory, &error), STATUS_OK);
}

/* Leads in epoch 1; for a test's setup, as *state. */
static struct rig *rig_new_leader(void)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    rig_init(rig);
    rig_start(rig);
    rig_lead(rig, 1);
    return rig;
}

static int rig_teardown(void **state)
{
    rig_deinit(*state);
    free(*state);
    return 0;
}

static void rig_stop_done(void *context, enum status status, const struct error *error)
{
    (void)error;
    assert_int_equal(status, STATUS_OK);
    ((struct rig *)context)->stopped = true;
}

/* Stops, opens again on the same directory, and follows nobody. */
static void rig_restart(struct rig *rig)
{
    rig->stopped = false;
    rig->view.leader_id = -1;
    rig->view.serving = false;
    broker_view_changed(rig->broker);
    broker_stop(rig->broker, rig_stop_done, rig);
    stepped_loop_settle(&rig->fake);
    assert_true(rig->stopped);
    rig_crash(rig);
    rig_start(rig);
}

/* ---- topics ---- */

struct rig_answer {
    bool called;
    enum status status;
    struct error error;
};

static void rig_admin_done(void *context, enum status status, const struct error *error)
{
    struct rig_answer *answer = context;
    assert_false(answer->called);
    answer->called = true;
    answer->status = status;
    if (error != NULL) answer->error = *error;
}

static void rig_create(struct rig *rig, const char *name, uint32_t partitions)
{
    struct rig_answer answer = {0};
    broker_create_topic(rig->broker, &(struct admin_request){.topic = name,
                                                             .partitions = partitions,
                                                             .done = rig_admin_done,
                                                             .context = &answer});
    stepped_loop_settle(&rig->fake);
    assert_true(answer.called);
    assert_int_equal(answer.status, STATUS_OK);
}

static struct partition *rig_partition(struct rig *rig, const char *name, uint32_t index)
{
    struct topic *topic = catalog_find(rig->broker, name, strlen(name));
    assert_non_null(topic);
    return topic_partition(topic, index);
}

static bool rig_has_path(struct rig *rig, const char *relative)
{
    char path[400];
    enum file_kind kind;
    snprintf(path, sizeof(path), "%s/%s", rig->directory, relative);
    return file_kind(rig->fs, path, &kind, NULL) == STATUS_OK;
}

/* ---- batches ---- */

static struct slice rig_text(const char *text)
{
    return (struct slice){(const uint8_t *)text, strlen(text)};
}

static struct shared_bytes *rig_build(struct rig *rig, const char *text, uint32_t count,
                                      const struct batch_build_options *options)
{
    struct batch_builder builder;
    struct buffer bytes;
    struct error error;
    batch_builder_init(&builder);
    buffer_init(&bytes, 0);
    for (uint32_t i = 0; i < count; i++) {
        batch_builder_add(&builder, rig->fake.wall_ms, rig_text("k"), rig_text(text), 0,
                          (struct slice){0});
    }
    assert_int_equal(batch_builder_finish(&builder, options, &bytes, &error), STATUS_OK);
    struct shared_bytes *batch = shared_bytes_copy(bytes.data, bytes.bytes);
    buffer_deinit(&bytes);
    batch_builder_deinit(&builder);
    return batch;
}

/* One batch of `count` records "<text>"; producer -1: none. */
static struct shared_bytes *rig_batch(struct rig *rig, const char *text, uint32_t count,
                                      int64_t producer_id, int32_t base_sequence)
{
    struct batch_build_options options = BATCH_BUILD_PLAIN;
    options.producer_id = producer_id;
    options.producer_epoch = producer_id < 0 ? -1 : 0;
    options.base_sequence = producer_id < 0 ? -1 : base_sequence;
    return rig_build(rig, text, count, &options);
}

/* One record of a transaction, without sequence. */
static struct shared_bytes *rig_transactional_batch(struct rig *rig, int64_t producer_id,
                                                    int16_t epoch)
{
    struct batch_build_options options = BATCH_BUILD_PLAIN;
    options.producer_id = producer_id;
    options.producer_epoch = epoch;
    options.transactional = true;
    return rig_build(rig, "t", 1, &options);
}

struct rig_produce {
    struct produce produce;
    uint32_t calls;
};

static void rig_produce_done(void *context, struct produce *produce)
{
    struct rig_produce *rig_produce = context;
    (void)produce;
    rig_produce->calls++;
}

static void rig_send(struct rig *rig, struct rig_produce *sent, struct partition *partition,
                     enum produce_acks acks, struct shared_bytes *batch)
{
    *sent = (struct rig_produce){.produce = {.partition = partition,
                                             .batch = batch,
                                             .acks = acks,
                                             .done = rig_produce_done,
                                             .context = sent}};
    broker_produce(rig->broker, &sent->produce);
}

/* Writes one batch of `count` records and waits until it is committed. */
static void rig_write(struct rig *rig, const char *topic, uint32_t index, const char *text,
                      uint32_t count)
{
    struct rig_produce sent;
    rig_send(rig, &sent, rig_partition(rig, topic, index), ACKS_ALL,
             rig_batch(rig, text, count, -1, -1));
    stepped_loop_settle(&rig->fake);
    assert_int_equal(sent.calls, 1);
    assert_int_equal(sent.produce.status, STATUS_OK);
}

/* ---- transactions, written by the broker itself: no coordinator is asked ---- */

static void rig_write_open(struct rig *rig, struct partition *partition, int64_t producer_id,
                           int16_t epoch)
{
    struct rig_produce sent = {
        .produce = {.partition = partition,
                    .batch = rig_transactional_batch(rig, producer_id, epoch),
                    .acks = ACKS_NONE,
                    .internal = true,
                    .done = rig_produce_done,
                    .context = &sent}};
    broker_produce(rig->broker, &sent.produce);
    assert_int_equal(sent.produce.status, STATUS_OK);
}

struct rig_marker {
    struct partition_marker marker;
    uint32_t calls;
};

static void rig_marker_done(void *context, struct partition_marker *marker)
{
    struct rig_marker *sent = context;
    assert_ptr_equal(marker, &sent->marker);
    sent->calls++;
}

/* By the coordinator of the current epoch. */
static void rig_send_marker(struct rig *rig, struct rig_marker *sent, struct partition *partition,
                            int64_t producer_id, int16_t epoch, bool commit)
{
    *sent = (struct rig_marker){.marker = {.partition = partition,
                                           .producer_id = producer_id,
                                           .producer_epoch = epoch,
                                           .coordinator_epoch = rig->view.epoch,
                                           .commit = commit,
                                           .done = rig_marker_done,
                                           .context = sent}};
    partition_write_marker(&sent->marker);
}

/* Waits until it is committed. */
static void rig_end(struct rig *rig, struct partition *partition, int64_t producer_id,
                    int16_t epoch, bool commit)
{
    struct rig_marker sent;
    rig_send_marker(rig, &sent, partition, producer_id, epoch, commit);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(sent.calls, 1);
    assert_int_equal(sent.marker.status, STATUS_OK);
}

#endif
