/* json.c: checked getters over jansson; see json.h. */
#include "base/json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/crc32c.h"

#define JSON_DEPTH_MAX     32
#define JSON_CHECKSUM_KEY  "checksum"
#define JSON_CHECKSUM_TEXT 9 /* eight hex digits and the NUL */

/* jansson's own bound is 2048 levels, each a stack frame: text nested deeper than ours is refused
 * before it is parsed. Brackets inside strings do not count. */
static bool json_depth_is_bounded(const char *text, size_t bytes)
{
    size_t depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < bytes; i++) {
        char symbol = text[i];
        if (in_string) {
            if (symbol == '\\') {
                i++;
            } else if (symbol == '"') {
                in_string = false;
            }
        } else if (symbol == '"') {
            in_string = true;
        } else if (symbol == '{' || symbol == '[') {
            if (++depth > JSON_DEPTH_MAX) return false;
        } else if ((symbol == '}' || symbol == ']') && depth > 0) {
            depth--;
        }
    }
    return true;
}

enum status json_parse(const void *data, size_t bytes, json_t **out, struct error *error)
{
    *out = NULL;
    if (!json_depth_is_bounded(data, bytes)) {
        return error_set(error, STATUS_INVALID, "JSON nested deeper than %d", JSON_DEPTH_MAX);
    }
    json_error_t problem;
    json_t *value = json_loadb(data != NULL ? data : "", bytes, JSON_REJECT_DUPLICATES, &problem);
    if (value == NULL) {
        return error_set(error, STATUS_INVALID, "line %d, column %d: %s", problem.line,
                         problem.column, problem.text);
    }
    *out = value;
    return STATUS_OK;
}

static int json_write_part(const char *part, size_t bytes, void *context)
{
    struct buffer *buffer = context;
    buffer_put(buffer, part, bytes);
    return buffer_failed(buffer) ? -1 : 0;
}

void json_write(struct buffer *buffer, const json_t *value)
{
    int flags = JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY;
    if (json_dump_callback(value, json_write_part, buffer, flags) != 0) buffer->failed = true;
}

/* The value under `key`, or NULL if absent or null. */
static json_t *json_present(const json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);
    return json_is_null(value) ? NULL : value;
}

static enum status json_expected(struct error *error, const char *key, const json_t *value,
                                 const char *what)
{
    return error_set(error, STATUS_INVALID, "\"%s\": %s %s", key,
                     value == NULL ? "missing, expected" : "expected", what);
}

enum status json_get_int(const json_t *object, const char *key, int64_t low, int64_t high,
                         int64_t *out, struct error *error)
{
    const json_t *value = json_present(object, key);
    if (!json_is_integer(value)) return json_expected(error, key, value, "an integer");
    int64_t number = json_integer_value(value);
    if (number < low || number > high) {
        return error_set(error, STATUS_INVALID,
                         "\"%s\": %" PRId64 " is not within %" PRId64 " .. %" PRId64, key, number,
                         low, high);
    }
    *out = number;
    return STATUS_OK;
}

enum status json_get_int_or(const json_t *object, const char *key, int64_t low, int64_t high,
                            int64_t fallback, int64_t *out, struct error *error)
{
    if (json_present(object, key) == NULL) {
        *out = fallback;
        return STATUS_OK;
    }
    return json_get_int(object, key, low, high, out, error);
}

enum status json_get_bool_or(const json_t *object, const char *key, bool fallback, bool *out,
                             struct error *error)
{
    const json_t *value = json_present(object, key);
    if (value != NULL && !json_is_boolean(value)) {
        return json_expected(error, key, value, "true or false");
    }
    *out = value == NULL ? fallback : json_is_true(value);
    return STATUS_OK;
}

enum status json_get_string(const json_t *object, const char *key, bool optional, const char **out,
                            struct error *error)
{
    const json_t *value = json_present(object, key);
    if (value == NULL && optional) {
        *out = NULL;
        return STATUS_OK;
    }
    if (!json_is_string(value)) return json_expected(error, key, value, "a string");
    *out = json_string_value(value);
    return STATUS_OK;
}

enum status json_get_array(const json_t *object, const char *key, const json_t **out,
                           struct error *error)
{
    const json_t *value = json_present(object, key);
    if (!json_is_array(value)) return json_expected(error, key, value, "a list");
    *out = value;
    return STATUS_OK;
}

enum status json_get_object(const json_t *object, const char *key, bool optional,
                            const json_t **out, struct error *error)
{
    const json_t *value = json_present(object, key);
    if (value == NULL && optional) {
        *out = NULL;
        return STATUS_OK;
    }
    if (!json_is_object(value)) return json_expected(error, key, value, "an object");
    *out = value;
    return STATUS_OK;
}

enum status json_get_uuid(const json_t *object, const char *key, bool optional, struct uuid *out,
                          struct error *error)
{
    const json_t *value = json_present(object, key);
    if (value == NULL && optional) {
        *out = (struct uuid){0};
        return STATUS_OK;
    }
    if (!json_is_string(value) || !uuid_parse(json_string_value(value), out)) {
        return json_expected(error, key, value, "an id of 22 base64url characters");
    }
    return STATUS_OK;
}

/* CRC-32C, as eight hex digits, over the compact text of `object` without its checksum. */
static bool json_checksum(const json_t *object, char text[JSON_CHECKSUM_TEXT])
{
    json_t *rest = json_copy((json_t *)object);
    struct buffer buffer;
    buffer_init(&buffer, 0);
    if (rest != NULL) {
        json_object_del(rest, JSON_CHECKSUM_KEY);
        json_write(&buffer, rest);
    }
    bool ok = rest != NULL && !buffer_failed(&buffer);
    if (ok) {
        snprintf(text, JSON_CHECKSUM_TEXT, "%08" PRIx32, crc32c(buffer.data, buffer.bytes));
    }
    buffer_deinit(&buffer);
    json_decref(rest);
    return ok;
}

void json_seal(struct buffer *buffer, const json_t *object)
{
    ASSERT(json_is_object(object));
    char checksum[JSON_CHECKSUM_TEXT];
    json_t *sealed = json_copy((json_t *)object);
    if (sealed == NULL || !json_checksum(object, checksum) ||
        json_object_set_new(sealed, JSON_CHECKSUM_KEY, json_string(checksum)) != 0) {
        buffer->failed = true;
    } else {
        json_write(buffer, sealed);
        buffer_put_u8(buffer, '\n');
    }
    json_decref(sealed);
}

enum status json_open_sealed(const void *data, size_t bytes, json_t **out, struct error *error)
{
    *out = NULL;
    json_t *value = NULL;
    /* Malformed text here is damage, not somebody's mistake. */
    if (json_parse(data, bytes, &value, error) != STATUS_OK) {
        if (error != NULL) error->status = STATUS_CORRUPT;
        return STATUS_CORRUPT;
    }
    char expected[JSON_CHECKSUM_TEXT] = "";
    const char *found = json_string_value(json_object_get(value, JSON_CHECKSUM_KEY));
    if (!json_is_object(value) || found == NULL || !json_checksum(value, expected) ||
        strcmp(found, expected) != 0) {
        json_decref(value);
        return error_set(error, STATUS_CORRUPT, "checksum does not match the content");
    }
    json_object_del(value, JSON_CHECKSUM_KEY);
    *out = value;
    return STATUS_OK;
}
