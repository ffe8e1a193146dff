/* consumer_protocol.h: what Kafka's consumers say to each other through the broker, as far as the
 * broker must read it (kafka-listener.md appendix B). Pure. */
#ifndef MOONMQ_BROKER_CONSUMER_PROTOCOL_H
#define MOONMQ_BROKER_CONSUMER_PROTOCOL_H

#include <stdbool.h>

#include "base/buffer.h"

/* Does the subscription name the topic? Bytes that are no subscription name nothing; what a later
 * version adds behind the topics is not looked at. */
bool consumer_subscription_names(struct slice subscription, struct slice topic);

#endif
