#include "kafka/features.h"

#include "base/assert.h"
#include "kafka/codec.h"

static const struct kafka_feature features[] = {
    {"group.version", 1, 1, 1},       /* groups of the new consumer protocol (KIP-848) */
    {"transaction.version", 1, 2, 2}, /* each end raises the producer's epoch (KIP-890) */
};

const struct kafka_feature *kafka_features(int32_t *count)
{
    *count = (int32_t)ARRAY_COUNT(features);
    return features;
}

const struct kafka_feature *kafka_feature_find(struct slice name)
{
    for (size_t i = 0; i < ARRAY_COUNT(features); i++) {
        if (kafka_slice_equal(name, kafka_text(features[i].name))) return &features[i];
    }
    return NULL;
}
