/* static_wire.c: see static_wire.h. */
#include "replication/static_wire.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/json.h"
#include "broker/topic_config.h"

/* ---- a push ---- */

void static_put_push(struct buffer *out, const struct static_push *push)
{
    buffer_printf(out, "X-Replica-ID: %d\r\nX-Topic: %s\r\nX-Partition: %d\r\n", push->source,
                  push->topic, push->partition + 1);
    if (!push->has_position) return;
    char uuid[UUID_TEXT_BYTES];
    buffer_printf(out, "X-Topic-ID: %s\r\nX-Position: %lld\r\n", uuid_format(&push->topic_id, uuid),
                  (long long)push->position);
}

/* Decimal digits, all of them, up to `high`; -1: anything else. */
static int64_t number_of(const char *text, int64_t high)
{
    int64_t number = 0;
    if (*text == '\0') return -1;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9') return -1;
        if (number > (high - (*text - '0')) / 10) return -1;
        number = number * 10 + (*text - '0');
    }
    return number;
}

static enum status bad_field(const char *name, const char *text, struct error *error)
{
    if (text == NULL) return error_set(error, STATUS_INVALID, "%s: missing", name);
    return error_set(error, STATUS_INVALID, "%s: \"%.60s\" is none", name, text);
}

static enum status get_position(static_field_fn field, void *context, struct static_push *out,
                                struct error *error)
{
    const char *id = field(context, "X-Topic-ID");
    const char *position = field(context, "X-Position");
    if (id == NULL && position == NULL) return STATUS_OK;
    out->has_position = true;
    if (id == NULL || !uuid_parse(id, &out->topic_id) || uuid_is_none(&out->topic_id)) {
        return bad_field("X-Topic-ID", id, error);
    }
    out->position = position == NULL ? -1 : number_of(position, INT64_MAX - 1);
    if (out->position < 0) return bad_field("X-Position", position, error);
    /* Whose position it is. */
    return out->source < 0 ? bad_field("X-Replica-ID", NULL, error) : STATUS_OK;
}

enum status static_get_push(static_field_fn field, void *context, struct static_push *out,
                            struct error *error)
{
    memset(out, 0, sizeof(*out));
    out->source = -1;
    const char *topic = field(context, "X-Topic");
    if (topic == NULL || !topic_name_is_valid(topic, strlen(topic), false)) {
        return bad_field("X-Topic", topic, error);
    }
    snprintf(out->topic, sizeof(out->topic), "%s", topic);
    const char *partition = field(context, "X-Partition");
    int64_t number = partition == NULL ? -1 : number_of(partition, INT32_MAX);
    if (number < 1) return bad_field("X-Partition", partition, error);
    out->partition = (int32_t)number - 1;
    const char *source = field(context, "X-Replica-ID");
    if (source != NULL) {
        number = number_of(source, INT32_MAX);
        if (number < 0) return bad_field("X-Replica-ID", source, error);
        out->source = (int32_t)number;
    }
    return get_position(field, context, out, error);
}

/* ---- its answer ---- */

void static_put_answer(struct buffer *out, const struct static_answer *answer)
{
    json_t *root = json_pack("{s:I}", "offset", (json_int_t)answer->offset);
    ASSERT(root != NULL);
    if (answer->has_position) {
        json_object_set_new(root, "position", json_integer((json_int_t)answer->position));
    }
    json_write(out, root);
    json_decref(root);
}

enum status static_get_answer(struct slice body, struct static_answer *out, struct error *error)
{
    json_t *root = NULL;
    *out = (struct static_answer){.position = -1};
    enum status status = json_parse(body.data, body.bytes, &root, error);
    if (status != STATUS_OK) return status;
    status = json_get_int(root, "offset", 0, INT64_MAX - 1, &out->offset, error);
    out->has_position = json_object_get(root, "position") != NULL;
    if (status == STATUS_OK && out->has_position) {
        status = json_get_int(root, "position", -1, INT64_MAX - 1, &out->position, error);
    }
    json_decref(root);
    return status;
}

/* ---- the follower's file ---- */

void static_places_begin(struct static_places_writer *writer)
{
    writer->list = json_array();
    ASSERT(writer->list != NULL);
}

void static_places_put(struct static_places_writer *writer, const struct static_place *place)
{
    char own[UUID_TEXT_BYTES], theirs[UUID_TEXT_BYTES];
    json_t *line =
        json_pack("{s:s,s:i,s:i,s:s,s:i,s:I,s:I}", "topic", uuid_format(&place->topic_id, own),
                  "partition", place->partition, "source", place->source, "source_topic",
                  uuid_format(&place->source_topic_id, theirs), "generation", place->generation,
                  "position", (json_int_t)place->position, "end", (json_int_t)place->end);
    ASSERT(line != NULL);
    json_array_append_new(writer->list, line);
}

void static_places_finish(struct static_places_writer *writer, struct buffer *out)
{
    json_t *root = json_pack("{s:o}", "places", writer->list);
    ASSERT(root != NULL);
    writer->list = NULL;
    json_seal(out, root);
    json_decref(root);
}

static enum status get_place(const json_t *line, struct static_place *out, struct error *error)
{
    int64_t partition, source, generation;
    enum status status = json_get_uuid(line, "topic", false, &out->topic_id, error);
    if (status == STATUS_OK) {
        status = json_get_int(line, "partition", 0, TOPIC_PARTITIONS_MAX - 1, &partition, error);
    }
    if (status == STATUS_OK) status = json_get_int(line, "source", 0, INT32_MAX, &source, error);
    if (status == STATUS_OK) {
        status = json_get_uuid(line, "source_topic", false, &out->source_topic_id, error);
    }
    if (status == STATUS_OK) {
        status =
            json_get_int(line, "generation", 0, STATIC_GENERATIONS_MAX - 1, &generation, error);
    }
    if (status == STATUS_OK) {
        status = json_get_int(line, "position", 0, INT64_MAX - 1, &out->position, error);
    }
    if (status == STATUS_OK) {
        status = json_get_int(line, "end", 0, INT64_MAX - 1, &out->end, error);
    }
    if (status != STATUS_OK) return status;
    out->partition = (int32_t)partition;
    out->source = (int32_t)source;
    out->generation = (int32_t)generation;
    return STATUS_OK;
}

enum status static_places_decode(struct slice file, static_place_fn each, void *context,
                                 struct error *error)
{
    json_t *root = NULL;
    const json_t *list = NULL;
    enum status status = json_open_sealed(file.data, file.bytes, &root, error);
    if (status == STATUS_OK) status = json_get_array(root, "places", &list, error);
    for (size_t i = 0; status == STATUS_OK && i < json_array_size(list); i++) {
        struct static_place place;
        status = get_place(json_array_get(list, i), &place, error);
        if (status == STATUS_OK) each(context, &place);
    }
    json_decref(root);
    if (status == STATUS_OK) return STATUS_OK;
    error_prefix(error, STATIC_POSITIONS_FILE);
    return STATUS_CORRUPT;
}
