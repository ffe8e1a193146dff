/* topics.c: CREATE_TOPIC, DELETE_TOPIC, CREATE_PARTITIONS, ALTER_TOPIC_CONFIG, LIST_TOPICS,
 * DESCRIBE_TOPIC. Changes are answered when they are committed (replication.md section 7).       */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/admin.h"
#include "broker/topic_config.h"
#include "native/native_state.h"
#include "native/operations.h"

struct topic_work {
    struct native_request *request;
    char topic[WIRE_TOPIC_BYTES_MAX + 1];
    struct topic_change *changes;
    uint32_t change_count;
};

static void work_free(struct native_request *request)
{
    struct topic_work *work = request->work;
    for (uint32_t i = 0; i < work->change_count; i++) {
        free((char *)work->changes[i].key);
        free((char *)work->changes[i].value);
    }
    free(work->changes);
    free(work);
}

static void changed(void *context, enum status status, const struct error *error)
{
    struct topic_work *work = context;
    if (status == STATUS_OK) {
        native_answer_ok(work->request);
    } else {
        native_fail_status(work->request, status, error);
    }
}

/* NULL: the request was failed. A name that is none is none of a topic's: `bad` tells by which
 * code. */
static struct topic_work *work_new(struct native_request *request, struct slice name,
                                   enum wire_error_code bad)
{
    struct topic_work *work = calloc(1, sizeof(*work));
    if (work == NULL) {
        native_fail(request, WIRE_CODE_INTERNAL, "out of memory");
        return NULL;
    }
    request->work = work;
    request->free_work = work_free;
    work->request = request;
    if (native_topic_text(name, work->topic)) return work;
    native_fail(request, bad, "invalid topic name");
    return NULL;
}

static struct admin_request admin_of(struct topic_work *work)
{
    return (struct admin_request){
        .topic = work->topic,
        .timeout_us = broker_settings_of(native_broker(work->request))->ack_timeout_us,
        .done = changed,
        .context = work,
    };
}

/* ---- changes ---- */

void native_create_topic(struct native_request *request, const union wire_message *message)
{
    const struct wire_topic_count *create = &message->topic_count;
    if (create->name.bytes >= 2 && memcmp(create->name.data, "__", 2) == 0) {
        native_fail(request, WIRE_CODE_BAD_FRAME, "names that begin with __ are internal");
        return;
    }
    /* Stricter than Kafka, whose names may begin with "-". */
    if (!topic_name_is_valid((const char *)create->name.data, create->name.bytes, true)) {
        native_fail(request, WIRE_CODE_INTERNAL, "invalid topic name");
        return;
    }
    struct topic_work *work = work_new(request, create->name, WIRE_CODE_INTERNAL);
    if (work == NULL) return;
    struct admin_request admin = admin_of(work);
    admin.partitions = create->partitions;
    broker_create_topic(native_broker(request), &admin);
}

void native_delete_topic(struct native_request *request, const union wire_message *message)
{
    struct topic_work *work = work_new(request, message->text.text, WIRE_CODE_TOPIC_MISSING);
    if (work == NULL) return;
    struct admin_request admin = admin_of(work);
    broker_delete_topic(native_broker(request), &admin);
}

void native_create_partitions(struct native_request *request, const union wire_message *message)
{
    const struct wire_topic_count *grow = &message->topic_count;
    struct topic_work *work = work_new(request, grow->name, WIRE_CODE_TOPIC_MISSING);
    if (work == NULL) return;
    struct admin_request admin = admin_of(work);
    admin.partitions = grow->partitions;
    broker_grow_topic(native_broker(request), &admin);
}

static bool copy_changes(struct topic_work *work, const struct wire_list *entries)
{
    work->changes = calloc(entries->count + 1, sizeof(*work->changes));
    if (work->changes == NULL) return false;
    struct wire_cursor cursor;
    struct wire_config_entry entry;
    wire_cursor_init(&cursor, entries, &wire_shape_config_entry);
    while (wire_cursor_next(&cursor, &entry)) {
        struct topic_change *change = &work->changes[work->change_count++];
        change->key = strndup((const char *)entry.key.data, entry.key.bytes);
        change->value = strndup((const char *)entry.value.data, entry.value.bytes);
        if (change->key == NULL || change->value == NULL) return false;
    }
    return true;
}

void native_alter_topic_config(struct native_request *request, const union wire_message *message)
{
    const struct wire_alter_topic_config *alter = &message->alter_topic_config;
    struct topic_work *work = work_new(request, alter->name, WIRE_CODE_TOPIC_MISSING);
    if (work == NULL) return;
    if (!copy_changes(work, &alter->entries)) {
        native_fail(request, WIRE_CODE_INTERNAL, "out of memory");
        return;
    }
    struct admin_request admin = admin_of(work);
    admin.changes = work->changes;
    admin.change_count = work->change_count;
    broker_alter_topic(native_broker(request), &admin);
}

/* ---- questions ---- */

void native_list_topics(struct native_request *request, const union wire_message *message)
{
    (void)message;
    struct broker *broker = native_broker(request);
    struct buffer names;
    buffer_init(&names, 0);
    uint32_t count = 0;
    for (struct topic *topic = catalog_next(broker, NULL); topic != NULL;
         topic = catalog_next(broker, topic)) {
        if (topic_is_internal(topic)) continue;
        if (count == request->native->settings.topics_listed_max) break;
        struct wire_name item = {wire_text(topic_name(topic))};
        wire_put(&names, &wire_shape_name, &item);
        count++;
    }
    struct wire_topic_list list = {.topics = {count, buffer_slice(&names)}};
    native_answer(request, WIRE_TOPIC_LIST, &list);
    buffer_deinit(&names);
}

struct entries {
    struct wire_config_entry items[WIRE_CONFIG_ENTRIES_MAX];
    char native_values[WIRE_CONFIG_ENTRIES_MAX][24];
    uint32_t count;
};

static void add_entry(struct entries *entries, const char *key, const char *value)
{
    if (entries->count == WIRE_CONFIG_ENTRIES_MAX || strlen(value) > WIRE_CONFIG_VALUE_BYTES_MAX) {
        return;
    }
    entries->items[entries->count++] = (struct wire_config_entry){wire_text(key), wire_text(value)};
}

/* By the name a native client sets it (4.12), whose retention is in seconds. */
static void add_native(struct entries *entries, const struct topic_config_entry *entry)
{
    char *text = entries->native_values[entries->count % WIRE_CONFIG_ENTRIES_MAX];
    const char *name = entry->key->native_name;
    if (name == NULL) return;
    if (strcmp(name, "retention") != 0) {
        add_entry(entries, name, entry->value);
        return;
    }
    long long ms = strtoll(entry->value, NULL, 10);
    snprintf(text, sizeof(entries->native_values[0]), "%lld", ms < 0 ? ms : ms / 1000);
    add_entry(entries, name, text);
}

static int by_key(const void *a, const void *b)
{
    const struct wire_config_entry *left = a, *right = b;
    /* Keys are the broker's own texts. */
    return strcmp((const char *)left->key.data, (const char *)right->key.data);
}

/* What was set for this topic, by Kafka's names and by this protocol's where there are any;
 * defaults are the broker's. */
static uint32_t put_entries(const struct topic *topic, struct buffer *out)
{
    const struct topic_config *config = topic_config_of(topic);
    struct entries entries = {.count = 0};
    for (uint32_t i = 0; i < config->count; i++) {
        add_entry(&entries, config->entries[i].key->name, config->entries[i].value);
        add_native(&entries, &config->entries[i]);
    }
    qsort(entries.items, entries.count, sizeof(entries.items[0]), by_key);
    for (uint32_t i = 0; i < entries.count; i++)
        wire_put(out, &wire_shape_config_entry, &entries.items[i]);
    return entries.count;
}

void native_describe_topic(struct native_request *request, const union wire_message *message)
{
    struct slice name = message->text.text;
    struct topic *topic = catalog_find(native_broker(request), (const char *)name.data, name.bytes);
    if (topic == NULL) {
        native_fail(request, WIRE_CODE_TOPIC_MISSING, "no topic %.*s", (int)name.bytes,
                    (const char *)name.data);
        return;
    }
    struct buffer entries;
    buffer_init(&entries, 0);
    uint32_t count = put_entries(topic, &entries);
    struct wire_topic_description description = {
        .name = wire_text(topic_name(topic)),
        .partitions = topic_partition_count(topic),
        .entries = {count, buffer_slice(&entries)},
    };
    native_answer(request, WIRE_TOPIC_DESCRIPTION, &description);
    buffer_deinit(&entries);
}
