/* config_values.c: the walk that finds each key of a document in the table, and reads its value. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_layers.h"
#include "server/config.h"
#include "server/config_keys.h"

static enum status unknown_key(const char *path, struct error *error)
{
    const char *meant = config_key_suggest(path);
    if (meant == NULL) {
        return error_set(error, STATUS_INVALID_CONFIG,
                         "%s: unknown key (remove it; docs/configuration.md lists all keys)", path);
    }
    if (strcmp(meant, path) == 0) {
        return error_set(error, STATUS_INVALID_CONFIG,
                         "%s: written with a dot (make it the key \"%s\" of the block \"%.*s\")",
                         path, config_key_name(path), (int)config_section_bytes(path), path);
    }
    return error_set(error, STATUS_INVALID_CONFIG, "%s: unknown key (did you mean %s?)", path,
                     meant);
}

/* ---- values ---- */

static enum status wrong_type(const char *path, const char *expected, struct error *error)
{
    return error_set(error, STATUS_INVALID_CONFIG, "%s: expected %s", path, expected);
}

static enum status read_integer(const struct config_key *key, const json_t *value, int64_t scale,
                                int64_t *out, struct error *error)
{
    if (!json_is_integer(value)) return wrong_type(key->path, "an integer", error);
    int64_t number = json_integer_value(value);
    if (number < key->low || number > key->high) {
        return error_set(error, STATUS_INVALID_CONFIG, "%s: %lld is not within %lld..%lld",
                         key->path, (long long)number, (long long)key->low, (long long)key->high);
    }
    *out = number * scale;
    return STATUS_OK;
}

static enum status read_seconds(const struct config_key *key, const json_t *value, int64_t *out,
                                struct error *error)
{
    if (!json_is_number(value)) return wrong_type(key->path, "a number of seconds", error);
    double seconds = json_number_value(value);
    if (!isfinite(seconds) || seconds <= 0 || seconds > (double)key->high) {
        return error_set(error, STATUS_INVALID_CONFIG,
                         "%s: %g is not a time above 0 and up to %lld seconds", key->path, seconds,
                         (long long)key->high);
    }
    *out = (int64_t)llround(seconds * 1e6);
    return STATUS_OK;
}

static enum status read_text(const struct config_key *key, const json_t *value, char *out,
                             struct error *error)
{
    if (!json_is_string(value)) return wrong_type(key->path, "text", error);
    size_t bytes = json_string_length(value);
    if (bytes >= (size_t)key->high || strlen(json_string_value(value)) != bytes) {
        return error_set(error, STATUS_INVALID_CONFIG, "%s: longer than %lld bytes", key->path,
                         (long long)key->high - 1);
    }
    memcpy(out, json_string_value(value), bytes + 1);
    return STATUS_OK;
}

static enum status read_section(const json_t *object, const char *path,
                                struct server_config *config, struct error *error);

static enum status read_failover(const struct config_key *key, const json_t *value,
                                 struct server_config *config, struct error *error)
{
    config->failover_present = true;
    if (json_is_boolean(value)) {
        config->failover_enabled = json_is_true(value);
        return STATUS_OK;
    }
    if (!json_is_object(value)) return wrong_type(key->path, "true, or an object", error);
    config->failover_enabled = true; /* unless Enabled says otherwise */
    return read_section(value, key->path, config, error);
}

/* Who says that it is off asks for nothing. */
static bool is_off(const json_t *value)
{
    return json_is_false(value) || json_is_false(json_object_get(value, "Enabled"));
}

static enum status read_value(const struct config_key *key, const json_t *value,
                              struct server_config *config, struct error *error)
{
    char *at = (char *)config + key->offset;
    switch (key->type) {
    case KEY_INT: return read_integer(key, value, 1, (int64_t *)(void *)at, error);
    case KEY_MS: return read_integer(key, value, 1000, (int64_t *)(void *)at, error);
    case KEY_SECONDS: return read_seconds(key, value, (int64_t *)(void *)at, error);
    case KEY_TEXT:
    case KEY_SECRET: return read_text(key, value, at, error);
    case KEY_BOOL:
        if (!json_is_boolean(value)) return wrong_type(key->path, "true or false", error);
        *(bool *)at = json_is_true(value);
        return STATUS_OK;
    case KEY_TOPIC: return config_read_topic_default(key, value, config, error);
    case KEY_SECTION:
        if (!json_is_object(value)) return wrong_type(key->path, "an object", error);
        return read_section(value, key->path, config, error);
    case KEY_IGNORED:
        config_warn(config, "%s has no effect: %s", key->path, key->text);
        return STATUS_OK;
    case KEY_LATER:
        if (is_off(value)) return STATUS_OK;
        return error_set(error, STATUS_INVALID_CONFIG, "%s: not supported (%s)", key->path,
                         key->text);
    case KEY_PEERS: return config_read_peers(value, config, error);
    case KEY_TOKEN: return config_read_token(value, config, error);
    case KEY_FAILOVER: return read_failover(key, value, config, error);
    }
    return STATUS_OK;
}

static enum status read_section(const json_t *object, const char *path,
                                struct server_config *config, struct error *error)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)object, name, value)
    {
        char full[JSON_PATH_BYTES];
        if (name[0] == '_') continue;
        json_path_join(full, path, name);
        const struct config_key *key = config_key_find(full);
        if (key == NULL || config_section_bytes(full) != strlen(path)) {
            return unknown_key(full, error);
        }
        enum status status = read_value(key, value, config, error);
        if (status != STATUS_OK) return status;
    }
    return STATUS_OK;
}

enum status config_read_keys(const json_t *root, struct server_config *config, struct error *error)
{
    if (!json_is_object(root)) {
        return error_set(error, STATUS_INVALID_CONFIG, "the document must be one object");
    }
    return read_section(root, "", config, error);
}
