/* catalog_apply.c: a follower makes its catalog equal to its leader's manifest (replication.md 8.1,
 * wire S5).
 *
 * Steps: what is in neither list, or has another uid under its name, is taken out and its logs set
 * aside (a tombstoned one without an alarm); then new and changed topic files and the manifest file
 * are synced; then memory follows. Doing it again from any point gives the same. Absence is never a
 * delete: only a tombstone hides a topic, only a committed one removes it.   */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "broker/catalog_write.h"
#include "broker/partition_state.h"

struct apply_operation {
    struct catalog_operation operation;
    struct manifest_version version;
    struct manifest_topic *topics; /* ascending; owns names and configs */
    struct topic_config *configs;
    uint32_t topic_count;
    struct manifest_tombstone *tombstones; /* owns names */
    uint32_t tombstone_count;
    catalog_done_fn done;
    void *context;
    struct log_drops drops;
    struct catalog_write *write; /* being filled; NULL once submitted */
};

static void apply_dispose(struct catalog_operation *operation)
{
    struct apply_operation *apply = CONTAINER_OF(operation, struct apply_operation, operation);
    for (uint32_t i = 0; i < apply->topic_count; i++) {
        free((char *)apply->topics[i].name);
        topic_config_deinit(&apply->configs[i]);
    }
    for (uint32_t i = 0; i < apply->tombstone_count; i++) {
        free((char *)apply->tombstones[i].name);
    }
    free(apply->topics);
    free(apply->configs);
    free(apply->tombstones);
    catalog_write_free(apply->write);
    free(apply);
}

static void apply_finish(struct apply_operation *apply, enum status status,
                         const struct error *error)
{
    struct broker *broker = apply->operation.broker;
    catalog_done_fn done = apply->done;
    void *context = apply->context;
    struct error copy = error != NULL ? *error : (struct error){0};
    catalog_operation_finish(&apply->operation);
    if (status == STATUS_OK) catalog_drop_committed(broker);
    done(context, status, &copy);
}

/* ---- what the manifest says of a local topic ---- */

static const struct manifest_topic *manifest_find(const struct apply_operation *apply,
                                                  const char *name)
{
    uint32_t low = 0, high = apply->topic_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = strcmp(apply->topics[middle].name, name);
        if (order == 0) return &apply->topics[middle];
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

static bool is_tombstoned(const struct apply_operation *apply, const struct uuid *uid)
{
    for (uint32_t i = 0; i < apply->tombstone_count; i++) {
        if (uuid_equal(&apply->tombstones[i].uid, uid)) return true;
    }
    return false;
}

enum topic_fate { TOPIC_STAYS, TOPIC_HIDDEN, TOPIC_SET_ASIDE };

static enum topic_fate fate_of(const struct apply_operation *apply, const struct topic *topic)
{
    const struct manifest_topic *listed = manifest_find(apply, topic->name);
    if (listed != NULL && uuid_equal(&listed->uid, &topic->uid)) return TOPIC_STAYS;
    if (listed != NULL) return TOPIC_SET_ASIDE; /* its name is another's now */
    if (is_tombstoned(apply, &topic->uid)) return TOPIC_HIDDEN;
    if (MUTANT(12)) return TOPIC_HIDDEN;
    /* One hidden here whose tombstone the others have forgotten was committed: no alarm, see below.
     */
    return TOPIC_SET_ASIDE;
}

static struct topic *known_topic(struct broker *broker, const struct uuid *uid)
{
    struct topic *topic = catalog_find_uid(broker, uid);
    return topic != NULL ? topic : catalog_find_hidden(&broker->catalog, uid);
}

/* ---- step 1: setting aside ---- */

static void set_topic_aside(struct apply_operation *apply, struct topic *topic)
{
    struct broker *broker = apply->operation.broker;
    bool expected = topic->hidden || is_tombstoned(apply, &topic->uid);
    bool replaced = manifest_find(apply, topic->name) != NULL;
    if (!expected) {
        char uid[UUID_TEXT_BYTES], text[400];
        snprintf(text, sizeof(text), "topic %s (uid %s): %s", topic->name,
                 uuid_format(&topic->uid, uid),
                 replaced ? "the leader has another topic of that name"
                          : "the leader neither has it nor deleted it");
        broker_alarm(broker, "topic_set_aside", text);
    }
    catalog_write_directory_fate(apply->write, topic->name, &topic->uid, DIRECTORY_SET_ASIDE,
                                 replaced);
    catalog_take(broker, topic);
    for (uint32_t i = 0; i < topic->partition_count; i++) {
        log_drops_add(&apply->drops, topic->partitions[i], true);
    }
    topic_free(topic);
}

/* Partitions that a leader added before it was deposed: they hold nothing that was acknowledged. */
static void set_partitions_aside(struct apply_operation *apply, struct topic *topic, uint32_t count)
{
    if (topic->partition_count <= count) return;
    char text[400];
    snprintf(text, sizeof(text), "topic %s: partitions %u and above, unknown to the leader",
             topic->name, count);
    broker_alarm(apply->operation.broker, "topic_set_aside", text);
    while (topic->partition_count > count) {
        struct partition *partition = topic->partitions[--topic->partition_count];
        partition_hide(partition);
        log_drops_add(&apply->drops, partition, true);
        partition_free(partition);
    }
}

static void set_lost_directories_aside(struct apply_operation *apply)
{
    const struct catalog *catalog = &apply->operation.broker->catalog;
    for (uint32_t i = 0; i < catalog->lost_directory_count; i++) {
        const char *name = catalog->lost_directories[i];
        char text[400];
        snprintf(text, sizeof(text), "topic directory %s: its metadata cannot be read", name);
        broker_alarm(apply->operation.broker, "topic_set_aside", text);
        catalog_write_directory_fate(apply->write, name, NULL, DIRECTORY_SET_ASIDE,
                                     manifest_find(apply, name) != NULL);
    }
}

static void set_aside(struct apply_operation *apply)
{
    struct catalog *catalog = &apply->operation.broker->catalog;
    for (uint32_t i = 0; i < catalog->topic_count;) {
        struct topic *topic = catalog->topics[i];
        if (fate_of(apply, topic) == TOPIC_SET_ASIDE) {
            set_topic_aside(apply, topic);
        } else {
            i++;
        }
    }
    for (uint32_t i = 0; i < catalog->hidden_count;) {
        struct topic *topic = catalog->hidden[i];
        if (fate_of(apply, topic) == TOPIC_SET_ASIDE) {
            set_topic_aside(apply, topic);
        } else {
            i++;
        }
    }
    for (uint32_t i = 0; i < apply->topic_count; i++) {
        struct topic *topic = known_topic(apply->operation.broker, &apply->topics[i].uid);
        if (topic != NULL) set_partitions_aside(apply, topic, apply->topics[i].partitions);
    }
    set_lost_directories_aside(apply);
}

/* ---- step 2: files ---- */

static bool topic_differs(const struct topic *topic, const struct manifest_topic *listed)
{
    return topic->metadata_lost || topic->partition_count != listed->partitions ||
           topic->internal != listed->internal ||
           manifest_version_compare(topic->since, listed->since) != 0 ||
           !topic_config_equal(&topic->config, listed->config);
}

static void write_files(struct apply_operation *apply)
{
    struct broker *broker = apply->operation.broker;
    for (uint32_t i = 0; i < apply->topic_count; i++) {
        const struct manifest_topic *listed = &apply->topics[i];
        const struct topic *topic = known_topic(broker, &listed->uid);
        if (topic == NULL) {
            catalog_write_topic_file(apply->write, listed, true);
        } else if (topic_differs(topic, listed)) {
            catalog_write_topic_file(apply->write, listed, false);
        }
    }
    manifest_file_encode(&apply->write->manifest, apply->version, apply->topics, apply->topic_count,
                         apply->tombstones, apply->tombstone_count);
}

/* ---- step 3: memory ---- */

static void take_over_topic(struct broker *broker, const struct manifest_topic *listed)
{
    struct topic *topic = known_topic(broker, &listed->uid);
    if (topic == NULL) topic = topic_new(broker, listed->name, &listed->uid);
    topic->internal = listed->internal;
    topic->since = listed->since;
    topic->metadata_lost = false;
    topic->dropping = false;
    topic_configure(topic, listed->config);
    topic_grow(topic, listed->partitions);
    if (topic->hidden) catalog_show(broker, topic);
}

static void hide_unlisted(struct apply_operation *apply)
{
    struct catalog *catalog = &apply->operation.broker->catalog;
    for (uint32_t i = 0; i < catalog->topic_count;) {
        struct topic *topic = catalog->topics[i];
        if (fate_of(apply, topic) == TOPIC_HIDDEN) {
            log_info("topic_hidden topic=%s", topic->name);
            catalog_hide(apply->operation.broker, topic);
            if (MUTANT(12) && !is_tombstoned(apply, &topic->uid)) {
                catalog_add_tombstone(catalog, &topic->uid, topic->name,
                                      (struct manifest_version){.epoch = -1});
            }
        } else {
            i++;
        }
    }
}

static void take_over(struct apply_operation *apply)
{
    struct broker *broker = apply->operation.broker;
    struct catalog *catalog = &broker->catalog;
    catalog_clear_tombstones(catalog);
    for (uint32_t i = 0; i < apply->tombstone_count; i++) {
        const struct manifest_tombstone *tombstone = &apply->tombstones[i];
        catalog_add_tombstone(catalog, &tombstone->uid, tombstone->name, tombstone->at);
    }
    hide_unlisted(apply);
    for (uint32_t i = 0; i < apply->topic_count; i++)
        take_over_topic(broker, &apply->topics[i]);
    for (uint32_t i = 0; i < catalog->lost_directory_count; i++) {
        free(catalog->lost_directories[i]);
    }
    catalog->lost_directory_count = 0;
    catalog->manifest_lost = false;
    catalog->verified = true;
    catalog_set_version(broker, apply->version);
    catalog->durable_version = apply->version;
}

static void apply_written(struct catalog_write *write)
{
    struct apply_operation *apply = write->context;
    if (write->status == STATUS_OK) take_over(apply);
    apply_finish(apply, write->status, &write->error);
}

static void apply_logs_done(struct log_drops *drops)
{
    struct apply_operation *apply = CONTAINER_OF(drops, struct apply_operation, drops);
    if (drops->status != STATUS_OK) {
        log_error("topic_set_aside_failed reason=\"%s\"", drops->error.text);
    }
    write_files(apply);
    struct catalog_write *write = apply->write;
    apply->write = NULL;
    catalog_write_submit(write);
}

static void apply_begin(struct catalog_operation *operation)
{
    struct apply_operation *apply = CONTAINER_OF(operation, struct apply_operation, operation);
    struct broker *broker = operation->broker;
    bool known = manifest_version_compare(apply->version, broker->catalog.version) == 0 &&
                 manifest_version_compare(apply->version, broker->catalog.durable_version) == 0;
    if (known && broker->catalog.verified && !catalog_damaged(broker)) {
        apply_finish(apply, STATUS_OK, NULL);
        return;
    }
    apply->write = catalog_write_new(broker, apply_written, apply);
    apply->drops.done = apply_logs_done;
    set_aside(apply);
    log_drops_ready(&apply->drops);
}

void catalog_apply(struct broker *broker, struct manifest_version version,
                   const struct manifest_topic *topics, uint32_t topic_count,
                   const struct manifest_tombstone *tombstones, uint32_t tombstone_count,
                   catalog_done_fn done, void *context)
{
    struct apply_operation *apply = memory_new(sizeof(*apply));
    apply->operation.begin = apply_begin;
    apply->operation.dispose = apply_dispose;
    apply->version = version;
    apply->done = done;
    apply->context = context;
    apply->topics = memory_new((topic_count + 1) * sizeof(*apply->topics));
    apply->configs = memory_new((topic_count + 1) * sizeof(*apply->configs));
    for (uint32_t i = 0; i < topic_count; i++) {
        apply->topics[i] = topics[i];
        apply->topics[i].name = memory_copy_text(topics[i].name);
        topic_config_copy(&apply->configs[i], topics[i].config);
        apply->topics[i].config = &apply->configs[i];
    }
    apply->topic_count = topic_count;
    apply->tombstones = memory_new((tombstone_count + 1) * sizeof(*apply->tombstones));
    for (uint32_t i = 0; i < tombstone_count; i++) {
        apply->tombstones[i] = tombstones[i];
        apply->tombstones[i].name = memory_copy_text(tombstones[i].name);
    }
    apply->tombstone_count = tombstone_count;
    catalog_enqueue(broker, &apply->operation);
}
