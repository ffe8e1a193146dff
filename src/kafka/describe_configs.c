/* DescribeConfigs (32): the configuration of topics, from replicated state on any broker, and of
 * this broker itself (kafka-listener.md 11.2 to 11.4). */
#include <stdio.h>

#include "base/assert.h"
#include "base/log.h"
#include "kafka/broker_config.h"
#include "kafka/config_change.h"
#include "kafka/errors.h"
#include "kafka/handlers.h"
#include "kafka/view.h"

typedef struct kafka_describe_configs_response_config config_answer;
typedef struct kafka_describe_configs_response_result result_answer;
typedef struct kafka_describe_configs_request_resource resource_asked;

/* Null asks for every key, and so does none. */
static bool is_asked(const resource_asked *resource, const char *name)
{
    if (resource->configuration_keys.count <= 0) return true;
    for (int32_t i = 0; i < resource->configuration_keys.count; i++) {
        if (kafka_slice_equal(resource->configuration_keys.items[i], kafka_text(name))) return true;
    }
    return false;
}

static void fail(struct kafka_request *request, result_answer *out, int16_t error, const char *text)
{
    out->error_code = error;
    out->error_message = arena_copy(&request->arena, kafka_text(text));
}

/* Where a value comes from, the nearest first; at most three. */
static void put_synonym(struct kafka_request *request, const char *name, struct slice value,
                        enum kafka_config_source source, config_answer *out)
{
    if (!KAFKA_MESSAGE(request, describe_configs)->include_synonyms) return;
    if (out->synonyms.items == NULL) {
        out->synonyms.items = kafka_describe_configs_response_synonym_new(&request->arena, 3);
        if (out->synonyms.items == NULL) return;
    }
    out->synonyms.items[out->synonyms.count++] =
        (struct kafka_describe_configs_response_synonym){kafka_text(name), value, (int8_t)source};
}

static void put_documentation(struct kafka_request *request, const char *text, config_answer *out)
{
    if (!KAFKA_MESSAGE(request, describe_configs)->include_documentation) return;
    out->documentation = kafka_text(text);
}

/* ---- a topic ---- */

static void put_topic_config(struct kafka_request *request, const struct topic_config *config,
                             const struct topic_config_key *key, config_answer *out)
{
    const char *outer = key->broker_name != NULL ? key->broker_name : key->name;
    out->name = kafka_text(key->name);
    out->config_type = (int8_t)key->type;
    out->config_source = KAFKA_SOURCE_DEFAULT;
    out->value = kafka_text(key->default_value);
    put_documentation(request, key->documentation, out);
    struct slice default_of_broker = broker_topic_default(request, config, key);
    if (default_of_broker.data != NULL) {
        out->config_source = KAFKA_SOURCE_STATIC_BROKER;
        out->value = default_of_broker;
    }
    if (topic_config_is_set(config, key->name)) {
        out->config_source = KAFKA_SOURCE_TOPIC;
        out->value = kafka_text(topic_config_get(config, key->name));
        put_synonym(request, key->name, out->value, KAFKA_SOURCE_TOPIC, out);
    }
    if (default_of_broker.data != NULL) {
        put_synonym(request, outer, default_of_broker, KAFKA_SOURCE_STATIC_BROKER, out);
    }
    put_synonym(request, outer, kafka_text(key->default_value), KAFKA_SOURCE_DEFAULT, out);
}

static void describe_topic(struct kafka_request *request, const resource_asked *resource,
                           result_answer *out)
{
    struct slice name = resource->resource_name;
    const struct topic *topic = kafka_find_topic(request, name);
    if (topic == NULL) {
        fail(request, out, kafka_no_topic(name), "there is no such topic");
        return;
    }
    uint32_t count;
    const struct topic_config_key *keys = topic_config_keys(&count);
    out->configs.items =
        kafka_describe_configs_response_config_new(&request->arena, (int32_t)count);
    if (out->configs.items == NULL) return;
    for (uint32_t i = 0; i < count; i++) {
        if (!is_asked(resource, keys[i].name)) continue;
        put_topic_config(request, topic_config_of(topic), &keys[i],
                         &out->configs.items[out->configs.count++]);
    }
}

/* ---- this broker ---- */

static bool names_this_broker(const struct kafka_request *request, struct slice name)
{
    char self[16];
    snprintf(self, sizeof(self), "%d", kafka_view(request)->self_id);
    return kafka_slice_equal(name, kafka_text(self));
}

static void describe_broker(struct kafka_request *request, const resource_asked *resource,
                            result_answer *out)
{
    if (resource->resource_name.bytes == 0)
        return; /* the group's dynamic defaults: there are none */
    if (!names_this_broker(request, resource->resource_name)) {
        fail(request, out, KAFKA_INVALID_REQUEST, "a broker answers for itself only");
        return;
    }
    uint32_t count;
    const struct broker_config *configs = broker_configs(request, &count);
    if (configs == NULL) return;
    out->configs.items =
        kafka_describe_configs_response_config_new(&request->arena, (int32_t)count);
    if (out->configs.items == NULL) return;
    for (uint32_t i = 0; i < count; i++) {
        if (!is_asked(resource, configs[i].name)) continue;
        config_answer *config = &out->configs.items[out->configs.count++];
        config->name = kafka_text(configs[i].name);
        config->value = configs[i].value;
        config->read_only = true;
        config->config_type = (int8_t)configs[i].type;
        put_documentation(request, configs[i].documentation, config);
        bool usual = kafka_slice_equal(configs[i].value, configs[i].default_value);
        config->config_source = usual ? KAFKA_SOURCE_DEFAULT : KAFKA_SOURCE_STATIC_BROKER;
        if (!usual) {
            put_synonym(request, configs[i].name, config->value, KAFKA_SOURCE_STATIC_BROKER,
                        config);
        }
        if (configs[i].default_value.data == NULL) continue;
        put_synonym(request, configs[i].name, configs[i].default_value, KAFKA_SOURCE_DEFAULT,
                    config);
    }
}

/* ---- what hangs on this broker's configuration ---- */

/* There is one logger, at the level of the configuration. */
static void describe_logger(struct kafka_request *request, const resource_asked *resource,
                            result_answer *out)
{
    static const char *const levels[] = {"DEBUG", "INFO", "WARN", "ERROR"};
    if (!names_this_broker(request, resource->resource_name)) {
        fail(request, out, KAFKA_INVALID_REQUEST, "a broker answers for itself only");
        return;
    }
    if (!is_asked(resource, "root")) return;
    out->configs.items = kafka_describe_configs_response_config_new(&request->arena, 1);
    if (out->configs.items == NULL) return;
    int level = LOG_DEBUG;
    while (level < LOG_ERROR && !log_enabled((enum log_level)level))
        level++;
    out->configs.count = 1;
    out->configs.items->name = kafka_text("root");
    out->configs.items->value = kafka_text(levels[level]);
    out->configs.items->read_only = true;
    out->configs.items->config_source = KAFKA_SOURCE_LOGGER;
    out->configs.items->config_type = KAFKA_CONFIG_STRING;
}

/* No group has settings of its own: two of the broker's hold for all, under a shorter name. */
static void describe_group(struct kafka_request *request, const resource_asked *resource,
                           result_answer *out)
{
    static const char *const names[] = {"consumer.heartbeat.interval.ms",
                                        "consumer.session.timeout.ms"};
    const struct modern_group_options *groups =
        &broker_settings_of(kafka_request_broker(request))->modern_groups;
    const long long values[] = {groups->heartbeat_interval_ms, groups->session_timeout_ms};
    static const char *const broker_names[] = {"group.consumer.heartbeat.interval.ms",
                                               "group.consumer.session.timeout.ms"};
    out->configs.items =
        kafka_describe_configs_response_config_new(&request->arena, ARRAY_COUNT(names));
    if (out->configs.items == NULL) return;
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if (!is_asked(resource, names[i])) continue;
        config_answer *config = &out->configs.items[out->configs.count++];
        config->name = kafka_text(names[i]);
        config->value = arena_printf(&request->arena, "%lld", values[i]);
        config->read_only = true;
        config->config_source = KAFKA_SOURCE_STATIC_BROKER;
        config->config_type = KAFKA_CONFIG_INT;
        put_documentation(request, "as the broker's setting says", config);
        put_synonym(request, broker_names[i], config->value, KAFKA_SOURCE_STATIC_BROKER, config);
    }
}

static void describe(struct kafka_request *request, const resource_asked *resource,
                     result_answer *out)
{
    bool named = resource->resource_name.bytes > 0;
    if (!named && resource->resource_type != KAFKA_RESOURCE_BROKER) {
        fail(request, out, KAFKA_INVALID_REQUEST, "a resource of this kind needs a name");
        return;
    }
    switch (resource->resource_type) {
    case KAFKA_RESOURCE_TOPIC: describe_topic(request, resource, out); return;
    case KAFKA_RESOURCE_BROKER: describe_broker(request, resource, out); return;
    case KAFKA_RESOURCE_BROKER_LOGGER: describe_logger(request, resource, out); return;
    case KAFKA_RESOURCE_CLIENT_METRICS: return; /* none are collected: there is nothing to set */
    case KAFKA_RESOURCE_GROUP: describe_group(request, resource, out); return;
    default: fail(request, out, KAFKA_INVALID_REQUEST, "no such kind of resource here"); return;
    }
}

void describe_configs_handle(struct kafka_request *request)
{
    const struct kafka_describe_configs_request *message = KAFKA_MESSAGE(request, describe_configs);
    struct kafka_describe_configs_response *answer = KAFKA_ANSWER(request, describe_configs);
    int32_t count = message->resources.count;
    struct seen seen;
    kafka_request_seen(request, &seen, (size_t)count);
    answer->results.items = kafka_describe_configs_response_result_new(&request->arena, count);
    for (int32_t i = 0; i < count && !request->arena.failed; i++) {
        const resource_asked *resource = &message->resources.items[i];
        if (seen_before(&seen, resource->resource_name, resource->resource_type)) continue;
        result_answer *out = &answer->results.items[answer->results.count++];
        out->resource_type = resource->resource_type;
        out->resource_name = resource->resource_name;
        describe(request, resource, out);
    }
    kafka_finish(request);
}
