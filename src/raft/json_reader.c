/* json_reader.c: fields out of and into JSON objects; see json_reader.h. */
#include "raft/json_reader.h"

#include <string.h>

#include "base/assert.h"
#include "base/json.h"

/* ---- reading ------------------------------------------------------------------------------ */

int64_t read_int(struct json_reader *reader, const json_t *object, const char *key, int64_t low,
                 int64_t high)
{
    int64_t value = 0;
    if (reader->status != STATUS_OK) return 0;
    reader->status = json_get_int(object, key, low, high, &value, reader->error);
    return reader->status == STATUS_OK ? value : 0;
}

bool read_bool(struct json_reader *reader, const json_t *object, const char *key)
{
    if (reader->status != STATUS_OK) return false;
    const json_t *value = json_object_get(object, key);
    if (!json_is_boolean(value)) {
        reader->status =
            error_set(reader->error, STATUS_INVALID, "\"%s\": expected true or false", key);
        return false;
    }
    return json_is_true(value);
}

const char *read_string(struct json_reader *reader, const json_t *object, const char *key)
{
    const char *text = "";
    if (reader->status != STATUS_OK) return "";
    reader->status = json_get_string(object, key, false, &text, reader->error);
    return reader->status == STATUS_OK ? text : "";
}

struct uuid read_uuid(struct json_reader *reader, const json_t *object, const char *key,
                      bool optional)
{
    struct uuid value = {0};
    if (reader->status != STATUS_OK) return value;
    reader->status = json_get_uuid(object, key, optional, &value, reader->error);
    if (reader->status == STATUS_OK && !optional && uuid_is_none(&value)) {
        read_fail(reader, key, "is none");
    }
    return value;
}

const json_t *read_object(struct json_reader *reader, const json_t *object, const char *key,
                          bool optional)
{
    const json_t *value = NULL;
    if (reader->status != STATUS_OK) return NULL;
    reader->status = json_get_object(object, key, optional, &value, reader->error);
    return reader->status == STATUS_OK ? value : NULL;
}

const json_t *read_array(struct json_reader *reader, const json_t *object, const char *key,
                         size_t count_max)
{
    const json_t *value = NULL;
    if (reader->status != STATUS_OK) return NULL;
    reader->status = json_get_array(object, key, &value, reader->error);
    if (reader->status != STATUS_OK) return NULL;
    if (json_array_size(value) > count_max) {
        read_fail(reader, key, "has too many items");
        return NULL;
    }
    return value;
}

void read_fail(struct json_reader *reader, const char *key, const char *what)
{
    if (reader->status != STATUS_OK) return;
    reader->status = error_set(reader->error, STATUS_INVALID, "\"%s\": %s", key, what);
}

void read_prefix(struct json_reader *reader, const char *list, size_t index)
{
    if (reader->status != STATUS_OK) error_prefix(reader->error, "%s[%zu]", list, index);
}

/* ---- words and sets ----------------------------------------------------------------------- */
const char *word_text(const struct word *words, int value)
{
    while (words->text != NULL && words->value != value)
        words++;
    ASSERT(words->text != NULL);
    return words->text;
}

int read_word(struct json_reader *reader, const json_t *object, const char *key,
              const struct word *words, int fallback)
{
    const char *text = read_string(reader, object, key);
    if (reader->status != STATUS_OK) return words[0].value;
    for (; words->text != NULL; words++) {
        if (strcmp(words->text, text) == 0) return words->value;
    }
    if (fallback < 0) read_fail(reader, key, "is no word known here");
    return fallback;
}

/* ---- writing ------------------------------------------------------------------------------ */

void put_new(json_t *object, const char *key, json_t *value)
{
    int failed = json_object_set_new(object, key, value);
    /* Out of memory, which ends the process: a document with a key missing must not leave. */
    ASSERT(failed == 0);
}

void append_new(json_t *list, json_t *value)
{
    int failed = json_array_append_new(list, value);
    ASSERT(failed == 0);
}

void put_int(json_t *object, const char *key, int64_t value)
{
    put_new(object, key, json_integer(value));
}

void put_bool(json_t *object, const char *key, bool value)
{
    put_new(object, key, json_boolean(value));
}

void put_text(json_t *object, const char *key, const char *text)
{
    put_new(object, key, json_string(text));
}

void put_uuid(json_t *object, const char *key, const struct uuid *value)
{
    char text[UUID_TEXT_BYTES];
    put_new(object, key, uuid_is_none(value) ? json_null() : json_string(uuid_format(value, text)));
}

json_t *encode_ids(const struct raft_ids *set)
{
    json_t *list = json_array();
    for (int i = 0; i < set->count; i++)
        append_new(list, json_integer(set->ids[i]));
    return list;
}

struct raft_ids read_ids(struct json_reader *reader, const json_t *object, const char *key)
{
    struct raft_ids set = {0};
    const json_t *list = read_array(reader, object, key, RAFT_MEMBERS_MAX);
    for (size_t i = 0; list != NULL && i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        int64_t id = json_integer_value(item);
        bool ascending = set.count == 0 || id > set.ids[set.count - 1];
        if (!json_is_integer(item) || id < 0 || id > RAFT_ID_MAX || !ascending) {
            read_fail(reader, key, "expected ascending replica ids");
            break;
        }
        set.ids[set.count++] = (int32_t)id;
    }
    return set;
}
