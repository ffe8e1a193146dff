/* config_change.h: changing one topic's configuration, for AlterConfigs (33) and
 * IncrementalAlterConfigs (44), which differ only in how a change is written down.           */
#ifndef MOONMQ_KAFKA_CONFIG_CHANGE_H
#define MOONMQ_KAFKA_CONFIG_CHANGE_H

#include "kafka/request.h"

/* kafka-listener.md 11.3 */
enum kafka_resource_type {
    KAFKA_RESOURCE_TOPIC = 2,
    KAFKA_RESOURCE_BROKER = 4,
    KAFKA_RESOURCE_BROKER_LOGGER = 8,
    KAFKA_RESOURCE_CLIENT_METRICS = 16,
    KAFKA_RESOURCE_GROUP = 32,
};

/* Where the outcome goes: into an entry of the answer. */
struct config_outcome {
    int16_t *error_code;
    struct slice *error_message;
};
void config_change_fail(struct kafka_request *request, const struct config_outcome *outcome,
                        int16_t error, const char *text);

/* Checks the resource and finds its topic; NULL with the outcome set. Only topics are configured
 * over the network: of anything else `first_key`, the first setting named, is refused by name. */
const struct topic *config_change_find(struct kafka_request *request, int8_t resource_type,
                                       struct slice resource_name, struct slice first_key,
                                       struct seen *seen, const struct config_outcome *outcome);

/* Has the broker make the changes (arena memory). Counts in request->open; the request is finished
 * when that is 0 again. */
void config_change_apply(struct kafka_request *request, const struct topic *topic,
                         const struct topic_change *changes, uint32_t count, bool replace_all,
                         bool validate_only, const struct config_outcome *outcome);
/* Ends the handler's own hold on request->open. */
void config_change_finish(struct kafka_request *request);

#endif
