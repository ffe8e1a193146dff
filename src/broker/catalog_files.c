/* catalog_files.c: the JSON of the catalog's two kinds of file. */
#include "broker/catalog_files.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"

#define FILE_FORMAT 1

void topic_record_deinit(struct topic_record *record)
{
    free(record->name);
    topic_config_deinit(&record->config);
    *record = (struct topic_record){0};
}

void manifest_record_deinit(struct manifest_record *record)
{
    for (uint32_t i = 0; i < record->line_count; i++)
        topic_record_deinit(&record->lines[i]);
    for (uint32_t i = 0; i < record->tombstone_count; i++) {
        free((char *)record->tombstones[i].name);
    }
    free(record->lines);
    free(record->tombstones);
    *record = (struct manifest_record){0};
}

/* ---- writing ---- */

static json_t *version_json(struct manifest_version version)
{
    json_t *array = json_array();
    json_array_append_new(array, json_integer(version.epoch));
    json_array_append_new(array, json_integer(version.n));
    return array;
}

static json_t *uuid_json(const struct uuid *uuid)
{
    char text[UUID_TEXT_BYTES];
    return json_string(uuid_format(uuid, text));
}

static json_t *config_json(const struct topic_config *config)
{
    json_t *object = json_object();
    for (uint32_t i = 0; i < config->count; i++) {
        json_object_set_new(object, config->entries[i].key->name,
                            json_string(config->entries[i].value));
    }
    return object;
}

static json_t *topic_json(const struct manifest_topic *topic)
{
    json_t *object = json_object();
    json_object_set_new(object, "name", json_string(topic->name));
    json_object_set_new(object, "uid", uuid_json(&topic->uid));
    json_object_set_new(object, "partitions", json_integer(topic->partitions));
    json_object_set_new(object, "internal", json_boolean(topic->internal));
    json_object_set_new(object, "since", version_json(topic->since));
    return object;
}

void topic_file_encode(struct buffer *out, const struct manifest_topic *topic)
{
    json_t *object = topic_json(topic);
    json_object_set_new(object, "format", json_integer(FILE_FORMAT));
    json_object_set_new(object, "config", config_json(topic->config));
    json_seal(out, object);
    json_decref(object);
}

void manifest_file_encode(struct buffer *out, struct manifest_version version,
                          const struct manifest_topic *topics, uint32_t topic_count,
                          const struct manifest_tombstone *tombstones, uint32_t tombstone_count)
{
    json_t *object = json_object();
    json_object_set_new(object, "format", json_integer(FILE_FORMAT));
    json_object_set_new(object, "version", version_json(version));
    json_t *lines = json_array();
    for (uint32_t i = 0; i < topic_count; i++) {
        json_array_append_new(lines, topic_json(&topics[i]));
    }
    json_object_set_new(object, "topics", lines);
    json_t *dead = json_array();
    for (uint32_t i = 0; i < tombstone_count; i++) {
        json_t *tombstone = json_object();
        json_object_set_new(tombstone, "name", json_string(tombstones[i].name));
        json_object_set_new(tombstone, "uid", uuid_json(&tombstones[i].uid));
        json_object_set_new(tombstone, "at", version_json(tombstones[i].at));
        json_array_append_new(dead, tombstone);
    }
    json_object_set_new(object, "tombstones", dead);
    json_seal(out, object);
    json_decref(object);
}

/* ---- reading ---- */

static enum status version_from(const json_t *object, const char *key, struct manifest_version *out,
                                struct error *error)
{
    const json_t *array;
    enum status status = json_get_array(object, key, &array, error);
    if (status != STATUS_OK) return status;
    const json_t *epoch = json_array_get(array, 0);
    const json_t *n = json_array_get(array, 1);
    bool shape = json_array_size(array) == 2 && json_is_integer(epoch) && json_is_integer(n) &&
                 json_integer_value(epoch) >= -1 && json_integer_value(epoch) <= INT32_MAX &&
                 json_integer_value(n) >= 0;
    if (!shape) return error_set(error, STATUS_INVALID, "\"%s\": expected [epoch, n]", key);
    out->epoch = (int32_t)json_integer_value(epoch);
    out->n = json_integer_value(n);
    return STATUS_OK;
}

static enum status name_from(const json_t *object, char **out, struct error *error)
{
    const char *name;
    enum status status = json_get_string(object, "name", false, &name, error);
    if (status != STATUS_OK) return status;
    if (!topic_name_is_valid(name, strlen(name), false)) {
        return error_set(error, STATUS_INVALID, "\"name\": not a topic name");
    }
    *out = memory_copy_text(name);
    return STATUS_OK;
}

static enum status topic_from(const json_t *object, struct topic_record *out, struct error *error)
{
    int64_t partitions;
    enum status status = name_from(object, &out->name, error);
    if (status == STATUS_OK) status = json_get_uuid(object, "uid", false, &out->uid, error);
    if (status == STATUS_OK) {
        status = json_get_int(object, "partitions", 1, TOPIC_PARTITIONS_MAX, &partitions, error);
    }
    if (status == STATUS_OK) {
        out->partitions = (uint32_t)partitions;
        status = json_get_bool_or(object, "internal", false, &out->internal, error);
    }
    if (status == STATUS_OK) status = version_from(object, "since", &out->since, error);
    return status;
}

static enum status config_from(const json_t *object, struct topic_config *out, struct error *error)
{
    const json_t *config;
    enum status status = json_get_object(object, "config", false, &config, error);
    if (status != STATUS_OK) return status;
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)config, key, value)
    {
        if (!json_is_string(value)) {
            return error_set(error, STATUS_INVALID, "config \"%s\": expected a string", key);
        }
        status = topic_config_restore(out, key, json_string_value(value), error);
        if (status != STATUS_OK) return status;
    }
    return STATUS_OK;
}

enum status topic_file_decode(struct slice text, struct topic_record *out, struct error *error)
{
    *out = (struct topic_record){0};
    json_t *object = NULL;
    enum status status = json_open_sealed(text.data, text.bytes, &object, error);
    if (status != STATUS_OK) return status;
    int64_t format;
    status = json_get_int(object, "format", 1, FILE_FORMAT, &format, error);
    if (status == STATUS_OK) status = topic_from(object, out, error);
    if (status == STATUS_OK) status = config_from(object, &out->config, error);
    if (status != STATUS_OK) topic_record_deinit(out);
    json_decref(object);
    return status;
}

static enum status lines_from(const json_t *object, struct manifest_record *out,
                              struct error *error)
{
    const json_t *lines;
    enum status status = json_get_array(object, "topics", &lines, error);
    if (status != STATUS_OK) return status;
    size_t count = json_array_size(lines);
    if (count == 0) return STATUS_OK;
    out->lines = memory_new(count * sizeof(*out->lines));
    for (size_t i = 0; i < count; i++) {
        out->line_count++;
        status = topic_from(json_array_get(lines, i), &out->lines[i], error);
        if (status != STATUS_OK) return status;
    }
    return STATUS_OK;
}

static enum status tombstones_from(const json_t *object, struct manifest_record *out,
                                   struct error *error)
{
    const json_t *dead;
    enum status status = json_get_array(object, "tombstones", &dead, error);
    if (status != STATUS_OK) return status;
    size_t count = json_array_size(dead);
    if (count == 0) return STATUS_OK;
    out->tombstones = memory_new(count * sizeof(*out->tombstones));
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(dead, i);
        struct manifest_tombstone *tombstone = &out->tombstones[i];
        out->tombstone_count++;
        char *name = NULL;
        status = name_from(item, &name, error);
        tombstone->name = name;
        if (status == STATUS_OK) status = json_get_uuid(item, "uid", false, &tombstone->uid, error);
        if (status == STATUS_OK) status = version_from(item, "at", &tombstone->at, error);
        if (status != STATUS_OK) return status;
    }
    return STATUS_OK;
}

enum status manifest_file_decode(struct slice text, struct manifest_record *out,
                                 struct error *error)
{
    *out = (struct manifest_record){0};
    json_t *object = NULL;
    enum status status = json_open_sealed(text.data, text.bytes, &object, error);
    if (status != STATUS_OK) return status;
    int64_t format;
    status = json_get_int(object, "format", 1, FILE_FORMAT, &format, error);
    if (status == STATUS_OK) status = version_from(object, "version", &out->version, error);
    if (status == STATUS_OK) status = lines_from(object, out, error);
    if (status == STATUS_OK) status = tombstones_from(object, out, error);
    if (status != STATUS_OK) manifest_record_deinit(out);
    json_decref(object);
    return status;
}
