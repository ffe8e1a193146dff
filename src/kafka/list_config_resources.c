/* ListConfigResources (74): what can be asked for with DescribeConfigs. Version 0 knows client
 * metrics only, of which there are none; no group has a configuration of its own, either. */
#include "kafka/config_change.h"
#include "kafka/errors.h"
#include "kafka/handlers.h"
#include "kafka/view.h"

static struct kafka_list_config_resources_response_resource *put(struct kafka_request *request)
{
    struct kafka_list_config_resources_response *answer =
        KAFKA_ANSWER(request, list_config_resources);
    return &answer->config_resources.items[answer->config_resources.count++];
}

static void put_topics(struct kafka_request *request)
{
    struct broker *broker = kafka_request_broker(request);
    struct topic *topic = catalog_next(broker, NULL);
    for (; topic != NULL; topic = catalog_next(broker, topic)) {
        struct kafka_list_config_resources_response_resource *out = put(request);
        out->resource_name = kafka_text(topic_name(topic));
        out->resource_type = KAFKA_RESOURCE_TOPIC;
    }
}

static void put_brokers(struct kafka_request *request, int8_t type)
{
    const struct group_view *view = kafka_view(request);
    for (uint32_t i = 0; i < view->member_count; i++) {
        struct kafka_list_config_resources_response_resource *out = put(request);
        out->resource_name = arena_printf(&request->arena, "%d", view->members[i].id);
        out->resource_type = type;
    }
}

/* None named: all kinds. */
static bool is_asked(const struct kafka_list_config_resources_request *message, int8_t type)
{
    for (int32_t i = 0; i < message->resource_types.count; i++) {
        if (message->resource_types.items[i] == type) return true;
    }
    return message->resource_types.count <= 0;
}

static bool all_are_known(const struct kafka_list_config_resources_request *message)
{
    for (int32_t i = 0; i < message->resource_types.count; i++) {
        int8_t type = message->resource_types.items[i];
        bool known = type == KAFKA_RESOURCE_TOPIC || type == KAFKA_RESOURCE_BROKER ||
                     type == KAFKA_RESOURCE_BROKER_LOGGER ||
                     type == KAFKA_RESOURCE_CLIENT_METRICS || type == KAFKA_RESOURCE_GROUP;
        if (!known) return false;
    }
    return true;
}

void list_config_resources_handle(struct kafka_request *request)
{
    const struct kafka_list_config_resources_request *message =
        KAFKA_MESSAGE(request, list_config_resources);
    struct kafka_list_config_resources_response *answer =
        KAFKA_ANSWER(request, list_config_resources);
    uint32_t room =
        catalog_topic_count(kafka_request_broker(request)) + 2 * kafka_view(request)->member_count;
    if (!all_are_known(message)) {
        answer->error_code = KAFKA_UNSUPPORTED_VERSION;
    } else if (request->header.api_version > 0) {
        answer->config_resources.items =
            kafka_list_config_resources_response_resource_new(&request->arena, (int32_t)room);
    }
    if (answer->config_resources.items != NULL) {
        if (is_asked(message, KAFKA_RESOURCE_TOPIC)) put_topics(request);
        if (is_asked(message, KAFKA_RESOURCE_BROKER)) put_brokers(request, KAFKA_RESOURCE_BROKER);
        if (is_asked(message, KAFKA_RESOURCE_BROKER_LOGGER)) {
            put_brokers(request, KAFKA_RESOURCE_BROKER_LOGGER);
        }
    }
    kafka_finish(request);
}
