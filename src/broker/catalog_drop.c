/* catalog_drop.c: taking logs out of the store, and removing topics whose tombstone is committed.
 */
#include <stdlib.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/memory.h"
#include "broker/catalog_write.h"
#include "broker/group_coordinator_state.h"
#include "broker/partition_change.h"

/* ---- logs ---- */

static void log_drop_ended(struct log_drops *drops, enum status status, const struct error *error)
{
    ASSERT(drops->open > 0);
    if (status != STATUS_OK && drops->status == STATUS_OK) {
        drops->status = status;
        if (error != NULL) drops->error = *error;
    }
    if (--drops->open == 0) drops->done(drops);
}

static void log_drop_done(void *context, enum status status, const struct error *error)
{
    log_drop_ended(context, status, error);
}

void log_drop_now(struct broker *broker, struct partition_log *log, struct log_drops *drops,
                  bool set_aside)
{
    log_store_drop(broker->store, log, set_aside, log_drop_done, drops);
}

void log_drops_add(struct log_drops *drops, struct partition *partition, bool set_aside)
{
    if (drops->open == 0) drops->open = 1; /* until log_drops_ready() */
    drops->open++;
    if (partition_change_drop_later(partition, drops, set_aside)) return;
    log_drop_now(partition->broker, partition_release_log(partition), drops, set_aside);
}

void log_drops_ready(struct log_drops *drops)
{
    if (drops->open == 0) drops->open = 1;
    log_drop_ended(drops, STATUS_OK, NULL);
}

/* ---- committed tombstones ---- */

struct drop_operation {
    struct catalog_operation operation;
    struct log_drops drops;
    struct topic **topics; /* hidden ones, still the catalog's */
    uint32_t topic_count;
};

static void drop_dispose(struct catalog_operation *operation)
{
    struct drop_operation *drop = CONTAINER_OF(operation, struct drop_operation, operation);
    free(drop->topics);
    free(drop);
}

static void drop_written(struct catalog_write *write)
{
    struct drop_operation *drop = write->context;
    struct broker *broker = drop->operation.broker;
    if (write->status != STATUS_OK) {
        log_error("topic_drop_failed reason=\"%s\"", write->error.text);
    }
    for (uint32_t i = 0; i < drop->topic_count; i++) {
        struct topic *topic = drop->topics[i];
        log_info("topic_dropped topic=%s", topic->name);
        catalog_take(broker, topic);
        group_offsets_topic_gone(broker, topic->name);
        topic_free(topic);
    }
    catalog_operation_finish(&drop->operation);
    admin_continue(broker);
}

static void drop_logs_done(struct log_drops *drops)
{
    struct drop_operation *drop = CONTAINER_OF(drops, struct drop_operation, drops);
    struct broker *broker = drop->operation.broker;
    if (drops->status != STATUS_OK) {
        log_error("topic_drop_failed reason=\"%s\"", drops->error.text);
    }
    struct catalog_write *write = catalog_write_new(broker, drop_written, drop);
    for (uint32_t i = 0; i < drop->topic_count; i++) {
        catalog_write_directory_fate(write, drop->topics[i]->name, &drop->topics[i]->uid,
                                     DIRECTORY_REMOVE, false);
    }
    catalog_write_submit(write);
}

static bool topic_may_go(const struct catalog *catalog, const struct topic *topic)
{
    const struct tombstone *tombstone = catalog_find_tombstone(catalog, &topic->uid);
    return tombstone != NULL && manifest_version_compare(tombstone->at, catalog->committed) <= 0;
}

static void drop_begin(struct catalog_operation *operation)
{
    struct drop_operation *drop = CONTAINER_OF(operation, struct drop_operation, operation);
    const struct catalog *catalog = &operation->broker->catalog;
    drop->topics = memory_new((catalog->hidden_count + 1) * sizeof(struct topic *));
    for (uint32_t i = 0; i < catalog->hidden_count; i++) {
        if (topic_may_go(catalog, catalog->hidden[i])) {
            drop->topics[drop->topic_count++] = catalog->hidden[i];
        }
    }
    if (drop->topic_count == 0) {
        catalog_operation_finish(operation);
        return;
    }
    drop->drops.done = drop_logs_done;
    for (uint32_t i = 0; i < drop->topic_count; i++) {
        struct topic *topic = drop->topics[i];
        for (uint32_t j = 0; j < topic->partition_count; j++) {
            log_drops_add(&drop->drops, topic->partitions[j], false);
        }
    }
    log_drops_ready(&drop->drops);
}

void catalog_drop_committed(struct broker *broker)
{
    const struct catalog *catalog = &broker->catalog;
    bool any = false;
    for (uint32_t i = 0; i < catalog->hidden_count; i++) {
        struct topic *topic = catalog->hidden[i];
        if (topic->dropping || !topic_may_go(catalog, topic)) continue;
        topic->dropping = any = true;
    }
    if (!any) return;
    struct drop_operation *drop = memory_new(sizeof(*drop));
    drop->operation.begin = drop_begin;
    drop->operation.dispose = drop_dispose;
    catalog_enqueue(broker, &drop->operation);
}
