/* IncrementalAlterConfigs (44): sets, unsets, and edits lists of single settings of a topic. */
#include "kafka/config_change.h"
#include "kafka/errors.h"
#include "kafka/forward.h"
#include "kafka/handlers.h"

typedef struct kafka_incremental_alter_configs_request_config config_in;

enum operation {
    OPERATION_SET = 0,
    OPERATION_DELETE = 1,
    OPERATION_APPEND = 2,
    OPERATION_SUBTRACT = 3
};

static void lay_out_answer(struct kafka_request *request, int16_t error)
{
    const struct kafka_incremental_alter_configs_request *message =
        KAFKA_MESSAGE(request, incremental_alter_configs);
    struct kafka_incremental_alter_configs_response *answer =
        KAFKA_ANSWER(request, incremental_alter_configs);
    int32_t count = message->resources.count;
    answer->responses.items =
        kafka_incremental_alter_configs_response_resource_new(&request->arena, count);
    if (answer->responses.items == NULL) return;
    answer->responses.count = count;
    for (int32_t i = 0; i < count; i++) {
        answer->responses.items[i].error_code = error;
        answer->responses.items[i].resource_type = message->resources.items[i].resource_type;
        answer->responses.items[i].resource_name = message->resources.items[i].resource_name;
    }
}

void incremental_alter_configs_refuse(struct kafka_request *request, enum status status)
{
    lay_out_answer(request, kafka_request_error(request, status));
    kafka_finish(request);
}

/* ---- lists: "a,b" plus or less "b,c" ---- */

static struct slice next_item(struct slice *rest)
{
    const uint8_t *comma = rest->bytes > 0 ? memchr(rest->data, ',', rest->bytes) : NULL;
    size_t bytes = comma != NULL ? (size_t)(comma - rest->data) : rest->bytes;
    struct slice item = {rest->data, bytes};
    size_t skipped = comma != NULL ? bytes + 1 : bytes;
    *rest = (struct slice){rest->data + skipped, rest->bytes - skipped};
    while (item.bytes > 0 && item.data[0] == ' ')
        item = (struct slice){item.data + 1, item.bytes - 1};
    while (item.bytes > 0 && item.data[item.bytes - 1] == ' ')
        item.bytes--;
    return item;
}

static bool list_has(struct slice list, struct slice wanted)
{
    while (list.bytes > 0) {
        if (kafka_slice_equal(next_item(&list), wanted)) return true;
    }
    return false;
}

/* The items of `from` that `unless` does not have, each with a comma before it, into `out`. */
static void put_items(struct buffer *out, struct slice from, struct slice unless)
{
    while (from.bytes > 0) {
        struct slice item = next_item(&from);
        if (item.bytes == 0 || list_has(unless, item)) continue;
        if (out->bytes > 0) buffer_put_u8(out, ',');
        buffer_put(out, item.data, item.bytes);
    }
}

static const char *edit_list(struct kafka_request *request, struct slice now, struct slice items,
                             bool append)
{
    struct buffer edited;
    buffer_init(&edited, 0);
    put_items(&edited, now, append ? kafka_text("") : items);
    if (append) put_items(&edited, items, now);
    const char *text =
        kafka_request_text(request, edited.bytes > 0 ? buffer_slice(&edited) : kafka_text(""));
    buffer_deinit(&edited);
    return text;
}

/* ---- one change ---- */

/* NULL, or what is wrong with it (and the code for that). */
static const char *check(const config_in *in, const struct topic_config_key *key, int16_t *error)
{
    bool edits =
        in->config_operation == OPERATION_APPEND || in->config_operation == OPERATION_SUBTRACT;
    *error = KAFKA_INVALID_REQUEST;
    if (in->config_operation < OPERATION_SET || in->config_operation > OPERATION_SUBTRACT) {
        return "unknown operation";
    }
    if (in->config_operation != OPERATION_DELETE && in->value.data == NULL) {
        return "a value is needed";
    }
    *error = KAFKA_INVALID_CONFIG;
    if (key == NULL) return "unknown configuration";
    if (edits && key->type != TOPIC_CONFIG_LIST) return "only a list can be added to or taken from";
    return NULL;
}

static bool read_change(struct kafka_request *request, const struct topic *topic,
                        const config_in *in, const struct config_outcome *outcome,
                        struct topic_change *out)
{
    const char *name = kafka_request_text(request, in->name);
    const struct topic_config_key *key = name != NULL ? topic_config_find(name) : NULL;
    int16_t error;
    const char *fault = check(in, key, &error);
    if (fault != NULL) {
        struct slice text =
            arena_printf(&request->arena, "%s: %s", name != NULL ? name : "?", fault);
        *outcome->error_code = error;
        *outcome->error_message = text;
        return false;
    }
    out->key = key->name;
    if (in->config_operation == OPERATION_DELETE) {
        out->value = NULL;
        return true;
    }
    if (in->config_operation == OPERATION_SET) {
        out->value = kafka_request_text(request, in->value);
    } else {
        const char *now = topic_config_get(topic_config_of(topic), key->name);
        out->value = edit_list(request, kafka_text(now), in->value,
                               in->config_operation == OPERATION_APPEND);
    }
    if (out->value != NULL) return true;
    config_change_fail(request, outcome, KAFKA_INVALID_CONFIG, "the value is no text");
    return false;
}

static void alter(struct kafka_request *request,
                  const struct kafka_incremental_alter_configs_request_resource *in,
                  struct kafka_incremental_alter_configs_response_resource *out, struct seen *seen)
{
    struct config_outcome outcome = {&out->error_code, &out->error_message};
    struct slice first_key = in->configs.count > 0 ? in->configs.items[0].name : kafka_text("");
    const struct topic *topic = config_change_find(request, in->resource_type, in->resource_name,
                                                   first_key, seen, &outcome);
    if (topic == NULL) return;
    int32_t count = in->configs.count;
    struct topic_change *changes =
        arena_new_array(&request->arena, (size_t)count, sizeof(*changes));
    struct seen keys;
    kafka_request_seen(request, &keys, (size_t)count);
    if (request->arena.failed) return;
    for (int32_t i = 0; i < count; i++) {
        const config_in *config = &in->configs.items[i];
        if (seen_before(&keys, config->name, 0)) {
            config_change_fail(request, &outcome, KAFKA_INVALID_REQUEST,
                               "a configuration is named twice");
            return;
        }
        if (!read_change(request, topic, config, &outcome, &changes[i])) return;
    }
    config_change_apply(request, topic, changes, (uint32_t)count, false,
                        KAFKA_MESSAGE(request, incremental_alter_configs)->validate_only, &outcome);
}

void incremental_alter_configs_handle(struct kafka_request *request)
{
    if (kafka_forward(request)) return;
    const struct kafka_incremental_alter_configs_request *message =
        KAFKA_MESSAGE(request, incremental_alter_configs);
    struct kafka_incremental_alter_configs_response *answer =
        KAFKA_ANSWER(request, incremental_alter_configs);
    struct seen seen;
    lay_out_answer(request, KAFKA_NONE);
    kafka_request_seen(request, &seen, (size_t)message->resources.count);
    if (request->arena.failed) {
        kafka_finish(request);
        return;
    }
    request->open = 1; /* ours, until all are asked */
    for (int32_t i = 0; i < message->resources.count; i++) {
        alter(request, &message->resources.items[i], &answer->responses.items[i], &seen);
    }
    config_change_finish(request);
}
