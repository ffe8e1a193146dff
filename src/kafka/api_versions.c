/* ApiVersions (18): what this broker offers (kafka-listener.md 2.1).
 *
 * A client of a version to come is answered before its body is read: connection.c.            */
#include "kafka/errors.h"
#include "kafka/features.h"
#include "kafka/handlers.h"
#include "kafka/view.h"

static struct kafka_api_versions_response_key *new_keys(struct kafka_request *request,
                                                        int32_t *count_out)
{
    size_t count;
    const struct kafka_api *table = kafka_api_table(&count);
    struct kafka_api_versions_response_key *keys =
        kafka_api_versions_response_key_new(&request->arena, (int32_t)count);
    if (keys == NULL) return NULL;
    for (size_t i = 0; i < count; i++) {
        keys[i].api_key = table[i].key;
        keys[i].min_version = table[i].version_min;
        keys[i].max_version = table[i].version_max;
    }
    *count_out = (int32_t)count;
    return keys;
}

/* The epoch of the features never changes: they come with the program. */
static void finalize_features(struct kafka_request *request)
{
    struct kafka_api_versions_response *answer = KAFKA_ANSWER(request, api_versions);
    int32_t count;
    const struct kafka_feature *features = kafka_features(&count);
    struct kafka_api_versions_response_supported_feature *supported =
        kafka_api_versions_response_supported_feature_new(&request->arena, count);
    struct kafka_api_versions_response_finalized_feature *finalized =
        kafka_api_versions_response_finalized_feature_new(&request->arena, count);
    if (request->arena.failed) return;
    for (int32_t i = 0; i < count; i++) {
        supported[i].name = finalized[i].name = kafka_text(features[i].name);
        supported[i].min_version = features[i].version_min;
        supported[i].max_version = features[i].version_max;
        finalized[i].min_version_level = finalized[i].max_version_level = features[i].finalized;
    }
    answer->supported_features.items = supported;
    answer->finalized_features.items = finalized;
    answer->supported_features.count = answer->finalized_features.count = count;
    answer->finalized_features_epoch = 0;
}

/* Version 5: a client says whom it means to reach, so that behind a moved address it notices. */
static int16_t check_identity(struct kafka_request *request)
{
    const struct kafka_api_versions_request *message = KAFKA_MESSAGE(request, api_versions);
    bool has_cluster = message->cluster_id.data != NULL, has_node = message->node_id >= 0;
    if (!has_cluster && !has_node) return KAFKA_NONE;
    if (has_cluster != has_node) return KAFKA_INVALID_REQUEST;
    struct slice cluster_id = kafka_cluster_id(request);
    bool founded = cluster_id.data != NULL;
    if (founded && !kafka_slice_equal(message->cluster_id, cluster_id)) {
        return KAFKA_REBOOTSTRAP_REQUIRED;
    }
    return message->node_id == kafka_view(request)->self_id ? KAFKA_NONE
                                                            : KAFKA_REBOOTSTRAP_REQUIRED;
}

void api_versions_handle(struct kafka_request *request)
{
    struct kafka_api_versions_response *answer = KAFKA_ANSWER(request, api_versions);
    answer->error_code = check_identity(request);
    answer->api_keys.items = new_keys(request, &answer->api_keys.count);
    finalize_features(request);
    kafka_finish(request);
}
