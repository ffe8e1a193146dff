/* catalog.c: the topics in memory, in name order and by uid, and the tombstones. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/memory.h"
#include "broker/broker_state.h"
#include "broker/partition_state.h"

void catalog_init(struct catalog *catalog)
{
    *catalog = (struct catalog){
        .version = {.epoch = -1}, .durable_version = {.epoch = -1}, .committed = {.epoch = -1}};
}

void catalog_deinit(struct broker *broker)
{
    struct catalog *catalog = &broker->catalog;
    while (catalog->operations != NULL) {
        struct catalog_operation *operation = catalog->operations;
        catalog->operations = operation->next;
        operation->dispose(operation);
    }
    client_quotas_deinit(&catalog->quotas);
    HASH_CLEAR(by_uid, catalog->by_uid);
    for (uint32_t i = 0; i < catalog->topic_count; i++)
        topic_free(catalog->topics[i]);
    for (uint32_t i = 0; i < catalog->hidden_count; i++)
        topic_free(catalog->hidden[i]);
    for (uint32_t i = 0; i < catalog->lost_directory_count; i++) {
        free(catalog->lost_directories[i]);
    }
    catalog_clear_tombstones(catalog);
    free(catalog->topics);
    free(catalog->hidden);
    free(catalog->tombstones);
    free(catalog->lost_directories);
    catalog_init(catalog);
}

/* ---- look-ups ---- */

/* Where a topic of that name is or belongs. */
static uint32_t position_of(const struct catalog *catalog, const char *name)
{
    uint32_t low = 0, high = catalog->topic_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (strcmp(catalog->topics[middle]->name, name) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct topic *catalog_find(struct broker *broker, const char *name, size_t name_bytes)
{
    char text[TOPIC_NAME_BYTES_MAX + 1];
    if (name_bytes == 0 || name_bytes > TOPIC_NAME_BYTES_MAX || memchr(name, 0, name_bytes) != NULL)
        return NULL;
    memcpy(text, name, name_bytes);
    text[name_bytes] = '\0';
    const struct catalog *catalog = &broker->catalog;
    uint32_t at = position_of(catalog, text);
    if (at == catalog->topic_count || strcmp(catalog->topics[at]->name, text) != 0) return NULL;
    return catalog->topics[at];
}

struct topic *catalog_find_uid(struct broker *broker, const struct uuid *uid)
{
    struct topic *topic = NULL;
    HASH_FIND(by_uid, broker->catalog.by_uid, uid->bytes, UUID_BYTES, topic);
    return topic;
}

struct topic *catalog_next(struct broker *broker, const struct topic *after)
{
    const struct catalog *catalog = &broker->catalog;
    uint32_t at = after == NULL ? 0 : position_of(catalog, after->name) + 1;
    return at < catalog->topic_count ? catalog->topics[at] : NULL;
}

struct topic *catalog_find_hidden(const struct catalog *catalog, const struct uuid *uid)
{
    for (uint32_t i = 0; i < catalog->hidden_count; i++) {
        if (uuid_equal(&catalog->hidden[i]->uid, uid)) return catalog->hidden[i];
    }
    return NULL;
}

bool catalog_name_is_hidden(const struct catalog *catalog, const char *name)
{
    for (uint32_t i = 0; i < catalog->hidden_count; i++) {
        if (strcmp(catalog->hidden[i]->name, name) == 0) return true;
    }
    return false;
}

uint32_t catalog_topic_count(const struct broker *broker)
{
    return broker->catalog.topic_count;
}

struct manifest_version catalog_version(const struct broker *broker)
{
    return broker->catalog.version;
}

struct manifest_version catalog_durable_version(const struct broker *broker)
{
    return broker->catalog.durable_version;
}

bool catalog_damaged(const struct broker *broker)
{
    const struct catalog *catalog = &broker->catalog;
    if (catalog->manifest_lost || catalog->lost_directory_count > 0) return true;
    for (uint32_t i = 0; i < catalog->topic_count; i++) {
        if (catalog->topics[i]->metadata_lost) return true;
    }
    return false;
}

const char *topic_name(const struct topic *topic)
{
    return topic->name;
}

const struct uuid *topic_uid(const struct topic *topic)
{
    return &topic->uid;
}

uint32_t topic_partition_count(const struct topic *topic)
{
    return topic->partition_count;
}

bool topic_has_grown_within(const struct topic *topic, int64_t duration_us)
{
    return topic->grown_us >= 0 && loop_now_us(topic->broker->loop) - topic->grown_us < duration_us;
}

struct partition *topic_partition(const struct topic *topic, uint32_t index)
{
    return index < topic->partition_count ? topic->partitions[index] : NULL;
}

bool topic_is_internal(const struct topic *topic)
{
    return topic->internal;
}

const struct topic_config *topic_config_of(const struct topic *topic)
{
    return &topic->config;
}

const struct topic_settings *topic_settings_of(const struct topic *topic)
{
    return &topic->settings;
}

struct manifest_version topic_since(const struct topic *topic)
{
    return topic->since;
}

/* ---- topics ---- */

const struct topic_config *catalog_topic_defaults(const struct broker *broker, const char *name)
{
    return topic_name_is_internal(name) ? NULL : broker->settings.topic_defaults;
}

struct topic *topic_new(struct broker *broker, const char *name, const struct uuid *uid)
{
    struct topic *topic = memory_new(sizeof(*topic));
    ASSERT(strlen(name) <= TOPIC_NAME_BYTES_MAX);
    topic->broker = broker;
    strcpy(topic->name, name);
    topic->uid = *uid;
    topic->hidden = true;
    topic->grown_us = -1;
    topic_config_init(&topic->config);
    topic->config.defaults = catalog_topic_defaults(broker, name);
    topic_config_settings(&topic->config, &topic->settings);
    internal_topic_settings(&topic->settings, topic->name);
    return topic;
}

void topic_free(struct topic *topic)
{
    for (uint32_t i = 0; i < topic->partition_count; i++)
        partition_free(topic->partitions[i]);
    free(topic->partitions);
    topic_config_deinit(&topic->config);
    free(topic);
}

/* What cannot be read was refused when it was set. */
static void follow_quotas(struct broker *broker, const struct topic_config *config)
{
    struct client_quotas quotas;
    const char *text = topic_config_get(config, TOPIC_CONFIG_CLIENT_QUOTAS);
    if (client_quotas_decode(&quotas, text, NULL) != STATUS_OK) return;
    client_quotas_deinit(&broker->catalog.quotas);
    broker->catalog.quotas = quotas;
}

const struct client_quotas *broker_client_quotas(const struct broker *broker)
{
    return &broker->catalog.quotas;
}

void topic_configure(struct topic *topic, const struct topic_config *config)
{
    struct topic_config copy;
    topic_config_copy(&copy, config);
    copy.defaults = catalog_topic_defaults(topic->broker, topic->name);
    topic_config_deinit(&topic->config);
    topic->config = copy;
    topic_config_settings(&topic->config, &topic->settings);
    for (uint32_t i = 0; i < topic->partition_count; i++) {
        partition_log_configure(topic->partitions[i]->log, &topic->settings.log);
    }
    if (strcmp(topic->name, CLIENT_QUOTAS_TOPIC) == 0) follow_quotas(topic->broker, config);
}

void topic_add_partition(struct topic *topic, struct partition *partition)
{
    ASSERT(partition->index == (int32_t)topic->partition_count);
    topic->partitions =
        memory_resize(topic->partitions, topic->partition_count + 1, sizeof(struct partition *));
    topic->partitions[topic->partition_count++] = partition;
}

void topic_grow(struct topic *topic, uint32_t count)
{
    struct broker *broker = topic->broker;
    if (topic->partition_count > 0 && topic->partition_count < count) {
        topic->grown_us = loop_now_us(broker->loop);
    }
    while (topic->partition_count < count) {
        const struct log_identity identity = {
            .topic = topic->name, .uid = topic->uid, .partition = (int32_t)topic->partition_count};
        struct partition_log *log =
            log_store_create(broker->store, &identity, &topic->settings.log);
        struct partition *partition = partition_new(topic, identity.partition, log, NULL);
        topic_add_partition(topic, partition);
        if (!topic->hidden) partition_show(partition);
    }
}

/* ---- membership ---- */

static struct topic **list_room(struct topic **list, uint32_t count, uint32_t *capacity)
{
    if (count < *capacity) return list;
    *capacity = *capacity == 0 ? 16 : *capacity * 2;
    return memory_resize(list, *capacity, sizeof(struct topic *));
}

static void list_remove(struct topic **list, uint32_t *count, uint32_t at)
{
    (*count)--;
    memmove(&list[at], &list[at + 1], (*count - at) * sizeof(struct topic *));
}

static void remove_hidden(struct catalog *catalog, const struct topic *topic)
{
    for (uint32_t i = 0; i < catalog->hidden_count; i++) {
        if (catalog->hidden[i] != topic) continue;
        list_remove(catalog->hidden, &catalog->hidden_count, i);
        return;
    }
}

static void remove_visible(struct catalog *catalog, struct topic *topic)
{
    uint32_t at = position_of(catalog, topic->name);
    ASSERT(at < catalog->topic_count && catalog->topics[at] == topic);
    list_remove(catalog->topics, &catalog->topic_count, at);
    HASH_DELETE(by_uid, catalog->by_uid, topic);
    topic->hidden = true;
    for (uint32_t i = 0; i < topic->partition_count; i++)
        partition_hide(topic->partitions[i]);
}

void catalog_show(struct broker *broker, struct topic *topic)
{
    struct catalog *catalog = &broker->catalog;
    ASSERT(topic->hidden);
    remove_hidden(catalog, topic);
    uint32_t at = position_of(catalog, topic->name);
    ASSERT(at == catalog->topic_count || strcmp(catalog->topics[at]->name, topic->name) != 0);
    catalog->topics = list_room(catalog->topics, catalog->topic_count, &catalog->topic_capacity);
    memmove(&catalog->topics[at + 1], &catalog->topics[at],
            (catalog->topic_count - at) * sizeof(struct topic *));
    catalog->topics[at] = topic;
    catalog->topic_count++;
    HASH_ADD(by_uid, catalog->by_uid, uid, sizeof(topic->uid), topic);
    topic->hidden = false;
    for (uint32_t i = 0; i < topic->partition_count; i++)
        partition_show(topic->partitions[i]);
}

void catalog_hide(struct broker *broker, struct topic *topic)
{
    ASSERT(!topic->hidden);
    remove_visible(&broker->catalog, topic);
    catalog_add_hidden(broker, topic);
}

void catalog_add_hidden(struct broker *broker, struct topic *topic)
{
    struct catalog *catalog = &broker->catalog;
    catalog->hidden = list_room(catalog->hidden, catalog->hidden_count, &catalog->hidden_capacity);
    catalog->hidden[catalog->hidden_count++] = topic;
}

void catalog_take(struct broker *broker, struct topic *topic)
{
    if (topic->hidden) {
        remove_hidden(&broker->catalog, topic);
    } else {
        remove_visible(&broker->catalog, topic);
    }
}

/* ---- versions and tombstones ---- */

void catalog_set_version(struct broker *broker, struct manifest_version version)
{
    struct catalog *catalog = &broker->catalog;
    catalog->version = version;
    if (version.n > catalog->last_n) catalog->last_n = version.n;
}

struct manifest_version catalog_next_version(struct broker *broker, int32_t epoch)
{
    return (struct manifest_version){.epoch = epoch, .n = ++broker->catalog.last_n};
}

struct manifest_topic *catalog_lines(const struct catalog *catalog, uint32_t more)
{
    size_t count = (size_t)catalog->topic_count + more + 1;
    struct manifest_topic *lines = memory_new(count * sizeof(*lines));
    for (uint32_t i = 0; i < catalog->topic_count; i++) {
        const struct topic *topic = catalog->topics[i];
        lines[i] = (struct manifest_topic){.name = topic->name,
                                           .uid = topic->uid,
                                           .partitions = topic->partition_count,
                                           .internal = topic->internal,
                                           .config = &topic->config,
                                           .since = topic->since};
    }
    return lines;
}

struct manifest_tombstone *catalog_tombstones(const struct catalog *catalog, uint32_t more)
{
    size_t count = (size_t)catalog->tombstone_count + more + 1;
    struct manifest_tombstone *tombstones = memory_new(count * sizeof(*tombstones));
    for (uint32_t i = 0; i < catalog->tombstone_count; i++) {
        const struct tombstone *tombstone = &catalog->tombstones[i];
        tombstones[i] = (struct manifest_tombstone){
            .uid = tombstone->uid, .name = tombstone->name, .at = tombstone->at};
    }
    return tombstones;
}

const struct tombstone *catalog_find_tombstone(const struct catalog *catalog,
                                               const struct uuid *uid)
{
    for (uint32_t i = 0; i < catalog->tombstone_count; i++) {
        if (uuid_equal(&catalog->tombstones[i].uid, uid)) return &catalog->tombstones[i];
    }
    return NULL;
}

void catalog_add_tombstone(struct catalog *catalog, const struct uuid *uid, const char *name,
                           struct manifest_version at)
{
    if (catalog->tombstone_count == catalog->tombstone_capacity) {
        catalog->tombstone_capacity =
            catalog->tombstone_capacity == 0 ? 16 : catalog->tombstone_capacity * 2;
        catalog->tombstones = memory_resize(catalog->tombstones, catalog->tombstone_capacity,
                                            sizeof(*catalog->tombstones));
    }
    uint32_t place = catalog->tombstone_count++;
    while (place > 0 && manifest_version_compare(catalog->tombstones[place - 1].at, at) > 0) {
        catalog->tombstones[place] = catalog->tombstones[place - 1];
        place--;
    }
    catalog->tombstones[place] =
        (struct tombstone){.uid = *uid, .name = memory_copy_text(name), .at = at};
}

void catalog_clear_tombstones(struct catalog *catalog)
{
    for (uint32_t i = 0; i < catalog->tombstone_count; i++)
        free(catalog->tombstones[i].name);
    catalog->tombstone_count = 0;
}

uint32_t catalog_tombstone_count(const struct broker *broker)
{
    return broker->catalog.tombstone_count;
}

struct manifest_tombstone catalog_tombstone(const struct broker *broker, uint32_t index)
{
    ASSERT(index < broker->catalog.tombstone_count);
    const struct tombstone *tombstone = &broker->catalog.tombstones[index];
    return (struct manifest_tombstone){
        .uid = tombstone->uid, .name = tombstone->name, .at = tombstone->at};
}

/* One whose bytes are still here is kept: forgetting it would make them look alive. The manifest
 * file follows with the next change; until then it names some in vain. */
void catalog_forget_tombstones(struct broker *broker, struct manifest_version version)
{
    struct catalog *catalog = &broker->catalog;
    if (catalog->tombstone_count == 0) return;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < catalog->tombstone_count; i++) {
        struct tombstone *tombstone = &catalog->tombstones[i];
        if (manifest_version_compare(tombstone->at, version) <= 0 &&
            catalog_find_hidden(catalog, &tombstone->uid) == NULL) {
            free(tombstone->name);
        } else {
            catalog->tombstones[kept++] = *tombstone;
        }
    }
    catalog->tombstone_count = kept;
}

void catalog_committed(struct broker *broker, struct manifest_version committed)
{
    struct catalog *catalog = &broker->catalog;
    if (manifest_version_compare(committed, catalog->committed) <= 0) return;
    catalog->committed = committed;
    catalog_drop_committed(broker);
}
