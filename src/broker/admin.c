/* admin.c: topics are created, deleted, grown and altered (replication.md section 7, I15).
 *
 * A change is QUEUED, then WRITING (its files and the new manifest version go to disk, several
 * changes in one version if they concern different topics), then shows in memory and is WAITING
 * until its version is committed. Demotion or time-out answer at any stage; a change that is on its
 * way to disk still comes to show then: memory follows the disk. */
#include "broker/admin.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "broker/catalog_write.h"
#include "broker/internal_topics.h"
#include "broker/partition_state.h"

#define ADMIN_CHANGES_MAX 4096
#define ADMIN_BATCH_MAX   64

enum admin_kind { ADMIN_CREATE, ADMIN_DELETE, ADMIN_GROW, ADMIN_ALTER };
enum admin_stage { ADMIN_QUEUED, ADMIN_WRITING, ADMIN_WAITING };

struct admin_change {
    struct broker *broker;
    enum admin_kind kind;
    enum admin_stage stage;
    char *topic;
    uint32_t partitions;
    struct topic_change *changes; /* owns the text */
    uint32_t change_count;
    bool replace_all, validate_only, internal_allowed;
    struct topic_config config; /* create and alter, once checked: the new one */
    struct uuid uid;
    struct manifest_version version; /* from WRITING on */
    admin_fn done;                   /* NULL once answered */
    void *context;
    struct deadline deadline;
    struct admin_change *next, *prev;
};

struct admin_operation {
    struct catalog_operation operation;
    struct manifest_version version;
    struct admin_change *changes[ADMIN_BATCH_MAX];
    uint32_t change_count;
};

/* ---- the life of a change ---- */

static void change_free(struct admin_change *change)
{
    struct broker *broker = change->broker;
    DL_DELETE(broker->admin_changes, change);
    broker->admin_change_count--;
    deadlines_remove(&broker->deadlines, &change->deadline);
    for (uint32_t i = 0; i < change->change_count; i++) {
        free((char *)change->changes[i].key);
        free((char *)change->changes[i].value);
    }
    free(change->changes);
    free(change->topic);
    topic_config_deinit(&change->config);
    free(change);
}

/* Answers; one that is being written lives on until it is. */
static void change_answer(struct admin_change *change, enum status status,
                          const struct error *error)
{
    admin_fn done = change->done;
    void *context = change->context;
    struct error copy = error != NULL ? *error : (struct error){0};
    change->done = NULL;
    deadlines_remove(&change->broker->deadlines, &change->deadline);
    if (change->stage != ADMIN_WRITING) change_free(change);
    if (done != NULL) done(context, status, &copy);
}

static void change_refuse(struct admin_change *change, enum status status, const char *text)
{
    struct error error;
    error_set(&error, status, "%s", text);
    change_answer(change, status, &error);
}

static void change_expired(void *context, struct deadline *deadline)
{
    struct admin_change *change = CONTAINER_OF(deadline, struct admin_change, deadline);
    (void)context;
    change_refuse(change, STATUS_TIMEOUT,
                  change->stage == ADMIN_QUEUED
                      ? "the change was not begun in time"
                      : "the change is made, but not yet on enough replicas");
}

static struct admin_change *change_new(struct broker *broker, enum admin_kind kind,
                                       const struct admin_request *request)
{
    struct admin_change *change = memory_new(sizeof(*change));
    change->broker = broker;
    change->kind = kind;
    change->topic = memory_copy_text(request->topic);
    change->partitions = request->partitions;
    change->replace_all = request->replace_all;
    change->validate_only = request->validate_only;
    change->internal_allowed = request->internal_allowed;
    change->done = request->done;
    change->context = request->context;
    change->changes = memory_new((request->change_count + 1) * sizeof(*change->changes));
    change->change_count = request->change_count;
    for (uint32_t i = 0; i < request->change_count; i++) {
        const char *value = request->changes[i].value;
        change->changes[i].key = memory_copy_text(request->changes[i].key);
        change->changes[i].value = value != NULL ? memory_copy_text(value) : NULL;
    }
    topic_config_init(&change->config);
    DL_APPEND(broker->admin_changes, change);
    broker->admin_change_count++;
    return change;
}

/* ---- may it be made? Against the catalog as it is at its turn ---- */

static enum status check_config(struct admin_change *change, const struct topic_config *base,
                                struct error *error)
{
    topic_config_deinit(&change->config);
    if (base != NULL) topic_config_copy(&change->config, base);
    change->config.defaults = catalog_topic_defaults(change->broker, change->topic);
    for (uint32_t i = 0; i < change->change_count; i++) {
        const char *name = change->changes[i].key;
        if (!change->internal_allowed &&
            strncmp(name, TOPIC_CONFIG_OWN, sizeof(TOPIC_CONFIG_OWN) - 1) == 0) {
            return error_set(error, STATUS_INVALID_CONFIG, "unknown topic configuration \"%.100s\"",
                             name);
        }
        enum status status = topic_config_set(&change->config, change->changes[i].key,
                                              change->changes[i].value, error);
        if (status != STATUS_OK) return status;
    }
    return topic_config_check(&change->config, error);
}

/* The broker's own take no place that a client was promised. */
static uint32_t client_topic_count(struct broker *broker)
{
    uint32_t count = broker->catalog.topic_count;
    for (uint32_t i = 0; i < INTERNAL_TOPIC_COUNT; i++) {
        const char *name = internal_topic_names[i];
        if (catalog_find(broker, name, strlen(name)) != NULL) count--;
    }
    return count;
}

static enum status check_create(struct broker *broker, struct admin_change *change,
                                struct error *error)
{
    size_t bytes = strlen(change->topic);
    if (!topic_name_is_valid(change->topic, bytes, false)) {
        return error_set(error, STATUS_INVALID_TOPIC,
                         "\"%.100s\": a topic name is 1 to 249 of A-Z a-z 0-9 . _ -",
                         change->topic);
    }
    if (strncmp(change->topic, "__", 2) == 0 && !change->internal_allowed) {
        return error_set(error, STATUS_TOPIC_FORBIDDEN,
                         "%s: names beginning with __ are the broker's own", change->topic);
    }
    if (catalog_find(broker, change->topic, bytes) != NULL) {
        return error_set(error, STATUS_EXISTS, "topic exists: %s", change->topic);
    }
    if (change->partitions == 0) change->partitions = broker->settings.default_partitions;
    if (change->partitions > TOPIC_PARTITIONS_MAX) {
        return error_set(error, STATUS_INVALID_PARTITIONS, "1 to %d partitions, not %u",
                         TOPIC_PARTITIONS_MAX, change->partitions);
    }
    if (client_topic_count(broker) >= broker->settings.topics_max) {
        return error_set(error, STATUS_LIMIT, "%u topics are all there may be",
                         broker->settings.topics_max);
    }
    return check_config(change, NULL, error);
}

static enum status check_existing(struct broker *broker, struct admin_change *change,
                                  struct error *error)
{
    const struct topic *topic = catalog_find(broker, change->topic, strlen(change->topic));
    if (topic == NULL) {
        return error_set(error, STATUS_UNKNOWN_TOPIC, "no topic %.249s", change->topic);
    }
    if (topic->internal && !change->internal_allowed) {
        return error_set(error, STATUS_TOPIC_FORBIDDEN, "%s is internal", topic->name);
    }
    if (change->kind == ADMIN_ALTER) {
        enum status status =
            check_config(change, change->replace_all ? NULL : &topic->config, error);
        if (status == STATUS_OK) topic_config_follow(&change->config, &topic->config);
        return status;
    }
    if (change->kind != ADMIN_GROW) return STATUS_OK;
    if (change->partitions <= topic->partition_count) {
        return error_set(error, STATUS_INVALID_PARTITIONS, "%s has %u partitions already",
                         topic->name, topic->partition_count);
    }
    if (change->partitions > TOPIC_PARTITIONS_MAX) {
        return error_set(error, STATUS_INVALID_PARTITIONS, "at most %d partitions, not %u",
                         TOPIC_PARTITIONS_MAX, change->partitions);
    }
    return STATUS_OK;
}

static enum status check_group(struct broker *broker, struct error *error)
{
    enum status status = broker_check_serving(broker);
    if (status != STATUS_OK) return error_set(error, status, "%s", status_text(status));
    const struct group_view *view = broker_group_view(broker);
    if (view->in_sync_now >= view->min_insync) return STATUS_OK;
    return error_set(error, STATUS_NOT_ENOUGH_REPLICAS, "not enough in-sync replicas: %d of %d",
                     view->in_sync_now, view->min_insync);
}

static enum status check_change(struct broker *broker, struct admin_change *change,
                                struct error *error)
{
    enum status status = check_group(broker, error);
    if (status != STATUS_OK) return status;
    return change->kind == ADMIN_CREATE ? check_create(broker, change, error)
                                        : check_existing(broker, change, error);
}

/* ---- whose turn is it ---- */

/* Changes of one topic are made one after the other; a name whose deleted topic is still here waits
 * for it to go. */
static bool change_may_begin(const struct broker *broker, const struct admin_change *change)
{
    if (change->stage != ADMIN_QUEUED) return false;
    const struct admin_change *before;
    DL_FOREACH(broker->admin_changes, before)
    {
        if (before == change) break;
        if (before->stage != ADMIN_WAITING && strcmp(before->topic, change->topic) == 0) {
            return false;
        }
    }
    return change->kind != ADMIN_CREATE || !catalog_name_is_hidden(&broker->catalog, change->topic);
}

static struct admin_change *next_change(const struct broker *broker)
{
    struct admin_change *change;
    DL_FOREACH(broker->admin_changes, change)
    {
        if (change_may_begin(broker, change)) return change;
    }
    return NULL;
}

/* ---- one version ---- */

static int compare_lines(const void *a, const void *b)
{
    return strcmp(((const struct manifest_topic *)a)->name,
                  ((const struct manifest_topic *)b)->name);
}

static struct manifest_topic change_line(const struct broker *broker,
                                         const struct admin_change *change)
{
    const struct topic *topic =
        catalog_find((struct broker *)broker, change->topic, strlen(change->topic));
    struct manifest_topic line = {.name = change->topic,
                                  .uid = change->uid,
                                  .partitions = change->partitions,
                                  .internal = change->internal_allowed &&
                                              topic_name_is_internal(change->topic),
                                  .config = &change->config,
                                  .since = change->version};
    if (topic == NULL) return line;
    line.uid = topic->uid;
    line.internal = topic->internal;
    if (change->kind != ADMIN_GROW) line.partitions = topic->partition_count;
    if (change->kind != ADMIN_ALTER) line.config = &topic->config;
    return line;
}

static void write_manifest(const struct admin_operation *operation, struct catalog_write *write)
{
    const struct broker *broker = operation->operation.broker;
    const struct catalog *catalog = &broker->catalog;
    struct manifest_topic *lines = catalog_lines(catalog, operation->change_count);
    struct manifest_tombstone *tombstones = catalog_tombstones(catalog, operation->change_count);
    uint32_t count = catalog->topic_count, dead = catalog->tombstone_count, known = count;
    for (uint32_t i = 0; i < operation->change_count; i++) {
        const struct admin_change *change = operation->changes[i];
        struct manifest_topic line = change_line(broker, change);
        struct manifest_topic *at =
            known > 0 ? bsearch(&line, lines, known, sizeof(*lines), compare_lines) : NULL;
        if (at == NULL) at = &lines[count++];
        *at = line;
        if (change->kind != ADMIN_DELETE) continue;
        tombstones[dead++] = (struct manifest_tombstone){
            .uid = line.uid, .name = change->topic, .at = operation->version};
        at->partitions = 0; /* taken out below */
    }
    if (count > 0) qsort(lines, count, sizeof(*lines), compare_lines);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (lines[i].partitions > 0) lines[kept++] = lines[i];
    }
    manifest_file_encode(&write->manifest, operation->version, lines, kept, tombstones, dead);
    free(lines);
    free(tombstones);
}

static void show_change(struct broker *broker, const struct admin_change *change)
{
    struct topic *topic = catalog_find(broker, change->topic, strlen(change->topic));
    switch (change->kind) {
    case ADMIN_CREATE:
        topic = topic_new(broker, change->topic, &change->uid);
        topic->internal = change->internal_allowed && topic_name_is_internal(change->topic);
        topic_configure(topic, &change->config);
        topic_grow(topic, change->partitions);
        topic->since = change->version;
        catalog_show(broker, topic);
        log_info("topic_created topic=%s partitions=%u", topic->name, topic->partition_count);
        return;
    case ADMIN_DELETE:
        catalog_add_tombstone(&broker->catalog, &topic->uid, topic->name, change->version);
        log_info("topic_deleted topic=%s", topic->name);
        catalog_hide(broker, topic);
        return;
    case ADMIN_GROW:
        topic_grow(topic, change->partitions);
        log_info("topic_grown topic=%s partitions=%u", topic->name, topic->partition_count);
        break;
    case ADMIN_ALTER: topic_configure(topic, &change->config); break;
    }
    topic->since = change->version;
}

static void show_changes(struct admin_operation *operation)
{
    struct broker *broker = operation->operation.broker;
    for (uint32_t i = 0; i < operation->change_count; i++) {
        struct admin_change *change = operation->changes[i];
        show_change(broker, change);
        broker->stats.admin_changes++;
        change->stage = ADMIN_WAITING;
        if (change->done == NULL) {
            change_free(change);
        } else if (MUTANT(33)) {
            change_answer(change, STATUS_OK, NULL);
        }
    }
    catalog_set_version(broker, operation->version);
    broker->catalog.durable_version = operation->version;
}

static void fail_changes(struct admin_operation *operation, enum status status,
                         const struct error *error)
{
    for (uint32_t i = 0; i < operation->change_count; i++) {
        operation->changes[i]->stage = ADMIN_WAITING;
        change_answer(operation->changes[i], status, error);
    }
}

static void operation_dispose(struct catalog_operation *operation)
{
    free(CONTAINER_OF(operation, struct admin_operation, operation));
}

static void operation_finish(struct admin_operation *operation)
{
    struct broker *broker = operation->operation.broker;
    broker->admin_operation_queued = false;
    catalog_operation_finish(&operation->operation);
    admin_continue(broker);
}

static void operation_written(struct catalog_write *write)
{
    struct admin_operation *operation = write->context;
    struct broker *broker = operation->operation.broker;
    bool shown = write->status == STATUS_OK;
    if (shown) {
        show_changes(operation);
    } else {
        log_error("admin_change_failed reason=\"%s\"", write->error.text);
        fail_changes(operation, write->status, &write->error);
    }
    operation_finish(operation);
    if (shown) broker->port.manifest_changed(broker->port.context);
}

static void take_change(struct admin_operation *operation, struct admin_change *change)
{
    struct broker *broker = operation->operation.broker;
    struct error error = {0};
    enum status status = check_change(broker, change, &error);
    if (status != STATUS_OK || change->validate_only) {
        change_answer(change, status, &error);
        return;
    }
    if (change->kind == ADMIN_CREATE) change->uid = uuid_random(&broker->random);
    change->stage = ADMIN_WRITING;
    operation->changes[operation->change_count++] = change;
}

static void operation_begin(struct catalog_operation *base)
{
    struct admin_operation *operation = CONTAINER_OF(base, struct admin_operation, operation);
    struct broker *broker = base->broker;
    struct admin_change *change;
    while (operation->change_count < ADMIN_BATCH_MAX && (change = next_change(broker)) != NULL) {
        take_change(operation, change);
    }
    if (operation->change_count == 0) {
        operation_finish(operation);
        return;
    }
    operation->version = catalog_next_version(broker, broker_group_view(broker)->epoch);
    struct catalog_write *write = catalog_write_new(broker, operation_written, operation);
    for (uint32_t i = 0; i < operation->change_count; i++) {
        change = operation->changes[i];
        change->version = operation->version;
        if (change->kind == ADMIN_DELETE) continue;
        struct manifest_topic line = change_line(broker, change);
        catalog_write_topic_file(write, &line, change->kind == ADMIN_CREATE);
    }
    write_manifest(operation, write);
    catalog_write_submit(write);
}

void admin_continue(struct broker *broker)
{
    if (broker->admin_operation_queued || next_change(broker) == NULL) return;
    broker->admin_operation_queued = true;
    struct admin_operation *operation = memory_new(sizeof(*operation));
    operation->operation.begin = operation_begin;
    operation->operation.dispose = operation_dispose;
    catalog_enqueue(broker, &operation->operation);
}

/* ---- the way in, and the ends ---- */

static void submit(struct broker *broker, enum admin_kind kind, const struct admin_request *request)
{
    struct error error = {0};
    enum status status = check_group(broker, &error);
    if (status == STATUS_OK && broker->admin_change_count >= ADMIN_CHANGES_MAX) {
        status = error_set(&error, STATUS_LIMIT, "too many changes of topics wait");
    }
    if (status != STATUS_OK) {
        request->done(request->context, status, &error);
        return;
    }
    struct admin_change *change = change_new(broker, kind, request);
    int64_t wait_us = broker->settings.ack_timeout_us;
    if (request->timeout_us > 0 && request->timeout_us < wait_us) wait_us = request->timeout_us;
    deadlines_add(&broker->deadlines, &change->deadline, loop_now_us(broker->loop) + wait_us,
                  change_expired);
    admin_continue(broker);
}

void broker_create_topic(struct broker *broker, const struct admin_request *request)
{
    submit(broker, ADMIN_CREATE, request);
}

void broker_delete_topic(struct broker *broker, const struct admin_request *request)
{
    submit(broker, ADMIN_DELETE, request);
}

void broker_grow_topic(struct broker *broker, const struct admin_request *request)
{
    submit(broker, ADMIN_GROW, request);
}

void broker_alter_topic(struct broker *broker, const struct admin_request *request)
{
    submit(broker, ADMIN_ALTER, request);
}

void admin_committed(struct broker *broker, struct manifest_version committed)
{
    for (struct admin_change *change = broker->admin_changes; change != NULL;) {
        bool ready = change->stage == ADMIN_WAITING && change->done != NULL &&
                     manifest_version_compare(change->version, committed) <= 0;
        if (!ready) {
            change = change->next;
            continue;
        }
        change_answer(change, STATUS_OK, NULL);
        change = broker->admin_changes;
    }
}

void admin_fail_all(struct broker *broker)
{
    for (struct admin_change *change = broker->admin_changes; change != NULL;) {
        if (change->done == NULL) {
            change = change->next;
            continue;
        }
        change_refuse(change, STATUS_NOT_LEADER,
                      change->stage == ADMIN_QUEUED ? "no longer the leader"
                                                    : "no longer the leader; the change may stand");
        change = broker->admin_changes;
    }
}

void admin_free(struct broker *broker)
{
    while (broker->admin_changes != NULL)
        change_free(broker->admin_changes);
}
