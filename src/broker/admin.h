/* admin.h: changes to topics. Leader only; answered when the manifest version that holds them is
 * committed: reported by every waited-on replica, at least the minimum (replication.md section 7,
 * I15).     */
#ifndef MOONMQ_BROKER_ADMIN_H
#define MOONMQ_BROKER_ADMIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/uuid.h"
#include "broker/topic_config.h"

struct broker;

/* Called exactly once, maybe before the call returns. STATUS_TIMEOUT: done here, not yet committed:
 * the outcome is open. NOT_LEADER after the change was made: open as well. `uid` of the topic for
 * create. */
typedef void (*admin_fn)(void *context, enum status status, const struct error *error);

struct topic_change {
    const char *key;
    const char *value; /* NULL: back to the default */
};
struct admin_request {
    const char *topic;
    uint32_t partitions;                /* create: 0 = num.partitions; grow: new total */
    const struct topic_change *changes; /* create and alter */
    uint32_t change_count;
    bool replace_all; /* alter: unlisted overrides go back to their defaults */
    bool validate_only;
    bool internal_allowed; /* by the broker itself */
    int64_t timeout_us;
    admin_fn done;
    void *context;
};
/* STATUS_EXISTS, INVALID_TOPIC, TOPIC_FORBIDDEN, INVALID_PARTITIONS, INVALID_CONFIG, LIMIT,
 * UNKNOWN_TOPIC, NOT_LEADER, NOT_ENOUGH_REPLICAS (before any change), TIMEOUT. */
void broker_create_topic(struct broker *broker, const struct admin_request *request);
void broker_delete_topic(struct broker *broker, const struct admin_request *request);
void broker_grow_topic(struct broker *broker, const struct admin_request *request);
void broker_alter_topic(struct broker *broker, const struct admin_request *request);

#endif
