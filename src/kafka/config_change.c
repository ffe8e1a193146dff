#include "kafka/config_change.h"

#include "kafka/errors.h"

struct config_change {
    struct kafka_request *request;
    struct config_outcome outcome;
};

void config_change_fail(struct kafka_request *request, const struct config_outcome *outcome,
                        int16_t error, const char *text)
{
    *outcome->error_code = error;
    *outcome->error_message = arena_copy(&request->arena, kafka_text(text));
}

static const char *why_not(int8_t resource_type)
{
    switch (resource_type) {
    case KAFKA_RESOURCE_BROKER:
        return "settings of brokers are read-only here: they stand in each broker's configuration "
               "file (Server.Kafka)";
    case KAFKA_RESOURCE_BROKER_LOGGER: return "the log level is set in the broker's configuration";
    case KAFKA_RESOURCE_CLIENT_METRICS: return "no metrics of clients are collected";
    case KAFKA_RESOURCE_GROUP: return "the broker's group.* settings hold for all groups";
    default: return "no such kind of resource";
    }
}

const struct topic *config_change_find(struct kafka_request *request, int8_t resource_type,
                                       struct slice resource_name, struct slice first_key,
                                       struct seen *seen, const struct config_outcome *outcome)
{
    if (seen_before(seen, resource_name, resource_type)) {
        config_change_fail(request, outcome, KAFKA_INVALID_REQUEST, "the resource is named twice");
        return NULL;
    }
    if (resource_type != KAFKA_RESOURCE_TOPIC) {
        int bytes = first_key.bytes > 100 ? 100 : (int)first_key.bytes;
        *outcome->error_code = KAFKA_INVALID_REQUEST;
        *outcome->error_message =
            arena_printf(&request->arena, "%.*s: %s", bytes,
                         bytes > 0 ? (const char *)first_key.data : "", why_not(resource_type));
        return NULL;
    }
    const struct topic *topic = kafka_find_topic(request, resource_name);
    if (topic == NULL) {
        config_change_fail(request, outcome, kafka_no_topic(resource_name),
                           "there is no such topic");
    }
    return topic;
}

void config_change_finish(struct kafka_request *request)
{
    request->open--;
    if (request->open == 0) kafka_finish(request);
}

static void changed(void *context, enum status status, const struct error *error)
{
    struct config_change *change = context;
    struct kafka_request *request = change->request;
    if (status != STATUS_OK) {
        config_change_fail(request, &change->outcome, kafka_request_error(request, status),
                           error != NULL ? error->text : status_text(status));
    }
    config_change_finish(request);
}

void config_change_apply(struct kafka_request *request, const struct topic *topic,
                         const struct topic_change *changes, uint32_t count, bool replace_all,
                         bool validate_only, const struct config_outcome *outcome)
{
    struct broker *broker = kafka_request_broker(request);
    struct config_change *change = arena_new(&request->arena, sizeof(*change));
    const char *name = kafka_request_text(request, kafka_text(topic_name(topic)));
    if (change == NULL || name == NULL) return;
    *change = (struct config_change){request, *outcome};
    request->open++;
    broker_alter_topic(broker, &(struct admin_request){
                                   .topic = name,
                                   .changes = changes,
                                   .change_count = count,
                                   .replace_all = replace_all,
                                   .validate_only = validate_only,
                                   .timeout_us = broker_settings_of(broker)->ack_timeout_us,
                                   .done = changed,
                                   .context = change,
                               });
}
