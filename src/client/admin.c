/* admin.c: the public functions about topics and about the group. */
#include <stdlib.h>
#include <string.h>

#include "client/client.h"

static int no_memory(struct moonmq_error *error)
{
    return client_fail(error, MOONMQ_NO_MEMORY, "no memory for an answer");
}

static char *copy_slice(struct slice text)
{
    return strndup((const char *)text.data, text.bytes);
}

/* ---- changes ---- */

/* *repeated, if not NULL: an earlier sending of it may have done what this one was refused for. */
static int change_topic(struct moonmq_client *client, uint8_t opcode, const char *topic,
                        const void *message, bool *repeated, struct moonmq_error *error)
{
    int code = client_check_topic(topic, error);
    if (code != MOONMQ_OK) return code;
    struct call call = {.reply_opcode = WIRE_OK};
    code = client_call(client, opcode, message, &call, false, error);
    if (repeated != NULL) *repeated = call.repeated;
    return code;
}

static bool has_partitions(struct moonmq_client *client, const char *topic, uint32_t partitions)
{
    struct moonmq_topic *description = NULL;
    struct moonmq_error ignored;
    if (moonmq_describe_topic(client, topic, &description, &ignored) != MOONMQ_OK) return false;
    bool equal = description->partitions == partitions;
    moonmq_topic_free(description);
    return equal;
}

int moonmq_create_topic(struct moonmq_client *client, const char *topic, uint32_t partitions,
                        struct moonmq_error *error)
{
    if (partitions < 1 || partitions > WIRE_PARTITIONS_MAX) {
        return client_fail(error, MOONMQ_INVALID_ARGUMENT, "partitions: %u is not in 1 .. %d",
                           partitions, WIRE_PARTITIONS_MAX);
    }
    struct wire_topic_count message = {.name = wire_text(topic == NULL ? "" : topic),
                                       .partitions = partitions};
    bool repeated = false;
    struct moonmq_error why = {.code = MOONMQ_OK};
    int code = change_topic(client, WIRE_CREATE_TOPIC, topic, &message, &repeated, &why);
    bool made_before = code == MOONMQ_INTERNAL && repeated &&
                       strstr(why.text, "topic exists") != NULL &&
                       has_partitions(client, topic, partitions);
    if (made_before) return MOONMQ_OK;
    if (code != MOONMQ_OK && error != NULL) *error = why;
    return code;
}

int moonmq_delete_topic(struct moonmq_client *client, const char *topic, struct moonmq_error *error)
{
    struct wire_text_message message = {.text = wire_text(topic == NULL ? "" : topic)};
    bool repeated = false;
    int code = change_topic(client, WIRE_DELETE_TOPIC, topic, &message, &repeated, error);
    return code == MOONMQ_TOPIC_MISSING && repeated ? MOONMQ_OK : code;
}

int moonmq_grow_topic(struct moonmq_client *client, const char *topic, uint32_t partitions,
                      struct moonmq_error *error)
{
    struct wire_topic_count message = {.name = wire_text(topic == NULL ? "" : topic),
                                       .partitions = partitions};
    return change_topic(client, WIRE_CREATE_PARTITIONS, topic, &message, NULL, error);
}

static int check_entries(const struct moonmq_config_entry *entries, size_t count,
                         struct moonmq_error *error)
{
    if (count > WIRE_CONFIG_ENTRIES_MAX) {
        return client_fail(error, MOONMQ_INVALID_ARGUMENT, "at most %d entries at once",
                           WIRE_CONFIG_ENTRIES_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        if (strlen(entries[i].key) > WIRE_CONFIG_KEY_BYTES_MAX ||
            strlen(entries[i].value) > WIRE_CONFIG_VALUE_BYTES_MAX) {
            return client_fail(error, MOONMQ_INVALID_ARGUMENT,
                               "%.64s: key over %d or value over %d bytes", entries[i].key,
                               WIRE_CONFIG_KEY_BYTES_MAX, WIRE_CONFIG_VALUE_BYTES_MAX);
        }
    }
    return MOONMQ_OK;
}

int moonmq_alter_topic(struct moonmq_client *client, const char *topic,
                       const struct moonmq_config_entry *entries, size_t count,
                       struct moonmq_error *error)
{
    int code = check_entries(entries, count, error);
    if (code != MOONMQ_OK) return code;
    struct buffer items;
    buffer_init(&items, 0);
    for (size_t i = 0; i < count; i++) {
        struct wire_config_entry item = {wire_text(entries[i].key), wire_text(entries[i].value)};
        wire_put(&items, &wire_shape_config_entry, &item);
    }
    struct wire_alter_topic_config message = {
        .name = wire_text(topic == NULL ? "" : topic),
        .entries = {.count = (uint32_t)count, .items = buffer_slice(&items)},
    };
    code = buffer_failed(&items)
               ? no_memory(error)
               : change_topic(client, WIRE_ALTER_TOPIC_CONFIG, topic, &message, NULL, error);
    buffer_deinit(&items);
    return code;
}

int moonmq_transfer_leadership(struct moonmq_client *client, int32_t replica_id,
                               struct moonmq_error *error)
{
    struct wire_transfer message = {.replica_id = replica_id};
    struct call call = {.reply_opcode = WIRE_OK};
    return client_call(client, WIRE_TRANSFER, &message, &call, false, error);
}

/* ---- descriptions ---- */

struct described {
    struct moonmq_topic shown; /* first: moonmq_topic_free() takes its address */
    struct moonmq_config_entry *entries;
    char *name;
};

void moonmq_topic_free(struct moonmq_topic *topic)
{
    if (topic == NULL) return;
    struct described *described = (struct described *)topic;
    for (size_t i = 0; i < described->shown.entry_count; i++) {
        free((char *)described->entries[i].key);
        free((char *)described->entries[i].value);
    }
    free(described->entries);
    free(described->name);
    free(described);
}

static int take_description(void *context, const struct wire_frame *frame,
                            struct moonmq_error *error)
{
    struct described *described = context;
    if (frame->opcode != WIRE_TOPIC_DESCRIPTION || described->name != NULL) return MOONMQ_OK;
    union wire_message message;
    int code = client_decode(frame, &message, error);
    if (code != MOONMQ_OK) return code;
    const struct wire_topic_description *description = &message.topic_description;
    described->name = copy_slice(description->name);
    described->entries = calloc(description->entries.count + 1, sizeof(*described->entries));
    if (described->name == NULL || described->entries == NULL) return no_memory(error);
    described->shown.name = described->name;
    described->shown.partitions = description->partitions;
    described->shown.entries = described->entries;
    struct wire_cursor cursor;
    struct wire_config_entry item;
    wire_cursor_init(&cursor, &description->entries, &wire_shape_config_entry);
    while (wire_cursor_next(&cursor, &item)) {
        struct moonmq_config_entry *entry = &described->entries[described->shown.entry_count++];
        entry->key = copy_slice(item.key);
        entry->value = copy_slice(item.value);
        if (entry->key == NULL || entry->value == NULL) return no_memory(error);
    }
    return MOONMQ_OK;
}

int moonmq_describe_topic(struct moonmq_client *client, const char *topic,
                          struct moonmq_topic **description, struct moonmq_error *error)
{
    int code = client_check_topic(topic, error);
    if (code != MOONMQ_OK) return code;
    struct described *described = calloc(1, sizeof(*described));
    if (described == NULL) return no_memory(error);
    struct wire_text_message message = {.text = wire_text(topic)};
    struct call call = {
        .reply_opcode = WIRE_TOPIC_DESCRIPTION, .take = take_description, .context = described};
    code = client_call(client, WIRE_DESCRIBE_TOPIC, &message, &call, true, error);
    if (code != MOONMQ_OK) {
        moonmq_topic_free(&described->shown);
        return code;
    }
    *description = &described->shown;
    return MOONMQ_OK;
}

struct names {
    char **names;
    size_t count;
};

void moonmq_topics_free(char **names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(names[i]);
    }
    free(names);
}

static int take_names(void *context, const struct wire_frame *frame, struct moonmq_error *error)
{
    struct names *names = context;
    if (frame->opcode != WIRE_TOPIC_LIST || names->names != NULL) return MOONMQ_OK;
    union wire_message message;
    int code = client_decode(frame, &message, error);
    if (code != MOONMQ_OK) return code;
    names->names = calloc(message.topic_list.topics.count + 1, sizeof(*names->names));
    if (names->names == NULL) return no_memory(error);
    struct wire_cursor cursor;
    struct wire_name item;
    wire_cursor_init(&cursor, &message.topic_list.topics, &wire_shape_name);
    while (wire_cursor_next(&cursor, &item)) {
        char *name = copy_slice(item.name);
        if (name == NULL) return no_memory(error);
        names->names[names->count++] = name;
    }
    return MOONMQ_OK;
}

int moonmq_list_topics(struct moonmq_client *client, char ***out, size_t *count,
                       struct moonmq_error *error)
{
    struct names names = {0};
    struct call call = {.reply_opcode = WIRE_TOPIC_LIST, .take = take_names, .context = &names};
    int code = client_call(client, WIRE_LIST_TOPICS, NULL, &call, true, error);
    if (code != MOONMQ_OK) {
        moonmq_topics_free(names.names, names.count);
        return code;
    }
    *out = names.names;
    *count = names.count;
    return MOONMQ_OK;
}

/* ---- status ---- */

static int take_status(void *context, const struct wire_frame *frame, struct moonmq_error *error)
{
    char **json = context;
    if (frame->opcode != WIRE_STATUS_REPLY || *json != NULL) return MOONMQ_OK;
    union wire_message message;
    int code = client_decode(frame, &message, error);
    if (code != MOONMQ_OK) return code;
    *json = copy_slice(message.text.text);
    return *json == NULL ? no_memory(error) : MOONMQ_OK;
}

int moonmq_status(struct moonmq_client *client, char **json, struct moonmq_error *error)
{
    char *text = NULL;
    struct call call = {.reply_opcode = WIRE_STATUS_REPLY, .take = take_status, .context = &text};
    int code = client_call(client, WIRE_STATUS, NULL, &call, true, error);
    if (code != MOONMQ_OK) {
        free(text);
        return code;
    }
    *json = text;
    return MOONMQ_OK;
}
