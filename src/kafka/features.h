/* features.h: the features this broker offers and has finalized: they come with the program, so all
 * brokers say the same, and nothing here changes them (kafka-listener.md 2.1). */
#ifndef MOONMQ_KAFKA_FEATURES_H
#define MOONMQ_KAFKA_FEATURES_H

#include <stdint.h>

#include "base/buffer.h"

struct kafka_feature {
    const char *name;
    int16_t version_min, version_max; /* supported; a minimum of 0 is refused by older Java */
    int16_t finalized;
};
const struct kafka_feature *kafka_features(int32_t *count);
/* NULL: there is none of this name. */
const struct kafka_feature *kafka_feature_find(struct slice name);

#endif
