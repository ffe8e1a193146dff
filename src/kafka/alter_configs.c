/* AlterConfigs (33): replaces a topic's overrides; what is not listed goes back to its default. */
#include "kafka/config_change.h"
#include "kafka/errors.h"
#include "kafka/forward.h"
#include "kafka/handlers.h"

static void lay_out_answer(struct kafka_request *request, int16_t error)
{
    const struct kafka_alter_configs_request *message = KAFKA_MESSAGE(request, alter_configs);
    struct kafka_alter_configs_response *answer = KAFKA_ANSWER(request, alter_configs);
    int32_t count = message->resources.count;
    answer->responses.items = kafka_alter_configs_response_resource_new(&request->arena, count);
    if (answer->responses.items == NULL) return;
    answer->responses.count = count;
    for (int32_t i = 0; i < count; i++) {
        answer->responses.items[i].error_code = error;
        answer->responses.items[i].resource_type = message->resources.items[i].resource_type;
        answer->responses.items[i].resource_name = message->resources.items[i].resource_name;
    }
}

void alter_configs_refuse(struct kafka_request *request, enum status status)
{
    lay_out_answer(request, kafka_request_error(request, status));
    kafka_finish(request);
}

static void alter(struct kafka_request *request,
                  const struct kafka_alter_configs_request_resource *in,
                  struct kafka_alter_configs_response_resource *out, struct seen *seen)
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
        if (seen_before(&keys, in->configs.items[i].name, 0)) {
            config_change_fail(request, &outcome, KAFKA_INVALID_REQUEST,
                               "a configuration is named twice");
            return;
        }
        changes[i].key = kafka_request_text(request, in->configs.items[i].name);
        changes[i].value = kafka_request_text(request, in->configs.items[i].value);
        if (changes[i].key == NULL || changes[i].value == NULL) {
            config_change_fail(request, &outcome, KAFKA_INVALID_REQUEST,
                               "a configuration needs a name and a value");
            return;
        }
    }
    config_change_apply(request, topic, changes, (uint32_t)count, true,
                        KAFKA_MESSAGE(request, alter_configs)->validate_only, &outcome);
}

void alter_configs_handle(struct kafka_request *request)
{
    if (kafka_forward(request)) return;
    const struct kafka_alter_configs_request *message = KAFKA_MESSAGE(request, alter_configs);
    struct kafka_alter_configs_response *answer = KAFKA_ANSWER(request, alter_configs);
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
