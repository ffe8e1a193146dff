/* broker_config.h: this broker's settings by Kafka's names, read-only (kafka-listener.md 11.4). */
#ifndef MOONMQ_KAFKA_BROKER_CONFIG_H
#define MOONMQ_KAFKA_BROKER_CONFIG_H

#include "kafka/request.h"

/* Source and type codes of section 11.3. */
enum kafka_config_source {
    KAFKA_SOURCE_TOPIC = 1,
    KAFKA_SOURCE_STATIC_BROKER = 4,
    KAFKA_SOURCE_DEFAULT = 5,
    KAFKA_SOURCE_LOGGER = 6,
};
enum kafka_config_type {
    KAFKA_CONFIG_BOOLEAN = 1,
    KAFKA_CONFIG_STRING = 2,
    KAFKA_CONFIG_INT = 3,
    KAFKA_CONFIG_LONG = 5,
    KAFKA_CONFIG_DOUBLE = 6,
    KAFKA_CONFIG_LIST = 7,
};

struct broker_config {
    const char *name;
    enum kafka_config_type type;
    struct slice value;
    struct slice default_value; /* data NULL: it has none, it is always given */
    const char *documentation;
};
/* All of them, ascending by name, in the request's arena; NULL when it failed. */
const struct broker_config *broker_configs(struct kafka_request *request, uint32_t *count);

/* What this broker's configuration says a topic setting is where the topic does not say; data NULL:
 * nothing. */
struct slice broker_topic_default(struct kafka_request *request, const struct topic_config *config,
                                  const struct topic_config_key *key);

#endif
