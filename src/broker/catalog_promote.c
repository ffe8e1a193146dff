/* catalog_promote.c: what a new leader declares: its catalog under a version of its own epoch.
 *
 * The new version makes the leader's catalog win over whatever a deposed leader left uncommitted at
 * a follower, with versions that only grow. Nothing in it changes but the version, so it is told at
 * once and synced behind. Only the group's first leader waits for the disk: it creates the internal
 * topics.       */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/memory.h"
#include "broker/catalog_write.h"
#include "broker/internal_topics.h"
#include "broker/partition_state.h"

struct promote_operation {
    struct catalog_operation operation;
    int32_t epoch;
    struct manifest_version version;
    struct manifest_topic created[INTERNAL_TOPIC_COUNT];
    struct topic_config configs[INTERNAL_TOPIC_COUNT];
    uint32_t created_count;
    catalog_done_fn done; /* NULL once called */
    void *context;
};

static void promote_dispose(struct catalog_operation *operation)
{
    struct promote_operation *promote =
        CONTAINER_OF(operation, struct promote_operation, operation);
    for (uint32_t i = 0; i < promote->created_count; i++) {
        topic_config_deinit(&promote->configs[i]);
    }
    free(promote);
}

static void promote_answer(struct promote_operation *promote, enum status status,
                           const struct error *error)
{
    catalog_done_fn done = promote->done;
    promote->done = NULL;
    if (done != NULL) done(promote->context, status, error);
}

static void show_created(struct promote_operation *promote)
{
    struct broker *broker = promote->operation.broker;
    for (uint32_t i = 0; i < promote->created_count; i++) {
        const struct manifest_topic *created = &promote->created[i];
        struct topic *topic = topic_new(broker, created->name, &created->uid);
        topic->internal = true;
        topic->since = created->since;
        topic_configure(topic, created->config);
        topic_grow(topic, created->partitions);
        catalog_show(broker, topic);
        log_info("topic_created topic=%s partitions=%u", topic->name, topic->partition_count);
    }
}

static void promote_written(struct catalog_write *write)
{
    struct promote_operation *promote = write->context;
    struct broker *broker = promote->operation.broker;
    if (write->status == STATUS_OK) {
        show_created(promote);
        if (promote->created_count > 0) catalog_set_version(broker, promote->version);
        broker->catalog.durable_version = promote->version;
        broker->catalog.verified = true;
    } else {
        log_error("manifest_write_failed reason=\"%s\"", write->error.text);
    }
    promote_answer(promote, write->status, &write->error);
    catalog_operation_finish(&promote->operation);
    if (write->status == STATUS_OK) broker->port.manifest_changed(broker->port.context);
}

static void plan_internal_topic(struct promote_operation *promote, const char *name)
{
    struct broker *broker = promote->operation.broker;
    if (catalog_find(broker, name, strlen(name)) != NULL) return;
    uint32_t at = promote->created_count++;
    internal_topic_config(&promote->configs[at], name);
    promote->created[at] = (struct manifest_topic){
        .name = name,
        .uid = uuid_random(&broker->random),
        .partitions = broker->settings.internal_partitions,
        .internal = true,
        .config = &promote->configs[at],
        .since = promote->version,
    };
}

static int compare_lines(const void *a, const void *b)
{
    return strcmp(((const struct manifest_topic *)a)->name,
                  ((const struct manifest_topic *)b)->name);
}

static void promote_write(struct promote_operation *promote)
{
    struct broker *broker = promote->operation.broker;
    const struct catalog *catalog = &broker->catalog;
    struct catalog_write *write = catalog_write_new(broker, promote_written, promote);
    struct manifest_topic *lines = catalog_lines(catalog, INTERNAL_TOPIC_COUNT);
    struct manifest_tombstone *tombstones = catalog_tombstones(catalog, 0);
    uint32_t count = catalog->topic_count;
    for (uint32_t i = 0; i < promote->created_count; i++) {
        catalog_write_topic_file(write, &promote->created[i], true);
        lines[count++] = promote->created[i];
    }
    if (count > 0) qsort(lines, count, sizeof(*lines), compare_lines);
    manifest_file_encode(&write->manifest, promote->version, lines, count, tombstones,
                         catalog->tombstone_count);
    free(lines);
    free(tombstones);
    catalog_write_submit(write);
}

static void promote_begin(struct catalog_operation *operation)
{
    struct promote_operation *promote =
        CONTAINER_OF(operation, struct promote_operation, operation);
    struct broker *broker = operation->broker;
    if (!broker->leading || broker->leading_epoch != promote->epoch) {
        struct error error;
        enum status status = error_set(&error, STATUS_NOT_LEADER, "no longer the leader");
        promote_answer(promote, status, &error);
        catalog_operation_finish(operation);
        return;
    }
    promote->version = catalog_next_version(broker, promote->epoch);
    for (uint32_t i = 0; i < INTERNAL_TOPIC_COUNT; i++) {
        plan_internal_topic(promote, internal_topic_names[i]);
    }
    promote_write(promote);
    if (promote->created_count > 0) return;
    catalog_set_version(broker, promote->version);
    promote_answer(promote, STATUS_OK, NULL);
    broker->port.manifest_changed(broker->port.context);
}

void catalog_promote(struct broker *broker, int32_t epoch, catalog_done_fn done, void *context)
{
    struct promote_operation *promote = memory_new(sizeof(*promote));
    promote->operation.begin = promote_begin;
    promote->operation.dispose = promote_dispose;
    promote->epoch = epoch;
    promote->done = done;
    promote->context = context;
    catalog_enqueue(broker, &promote->operation);
}
