/* UpdateFeatures (57): the features come with the program. Asking for the level that holds is done
 * already; every other update is refused by name. All or nothing, which differs from nothing only
 * in what is told: up to version 1 each update has its own result. */
#include "kafka/errors.h"
#include "kafka/features.h"
#include "kafka/handlers.h"

enum upgrade_type {
    UPGRADE_UNKNOWN = 0,
    UPGRADE = 1,
    DOWNGRADE_SAFE = 2,
    DOWNGRADE_UNSAFE = 3,
};

typedef struct kafka_update_features_request_feature_update update_asked;

struct verdict {
    int16_t error;
    struct slice text;
};

/* Up to version 0 a flag said what a type says from version 1 on. */
static int8_t upgrade_type_of(const struct kafka_request *request, const update_asked *update)
{
    if (request->header.api_version > 0) return update->upgrade_type;
    return update->allow_downgrade ? DOWNGRADE_SAFE : UPGRADE;
}

static const char *why_not(const struct kafka_request *request, const update_asked *update,
                           int16_t *error)
{
    const struct kafka_feature *feature = kafka_feature_find(update->feature);
    int8_t type = upgrade_type_of(request, update);
    int16_t level = update->max_version_level;
    *error = KAFKA_INVALID_UPDATE_VERSION;
    if (type < UPGRADE || type > DOWNGRADE_UNSAFE) return "unknown type of upgrade";
    if (feature == NULL) return "there is no such feature here";
    if (level == feature->finalized) return NULL;
    if (level > feature->version_max) return "this level is not known here";
    if (level < 0) return "a level is at least 0";
    if (type == UPGRADE) return "this would be a downgrade";
    *error = KAFKA_FEATURE_UPDATE_FAILED;
    return "the level comes with the program and is not lowered";
}

static struct verdict judge(struct kafka_request *request, const update_asked *update,
                            struct seen *seen)
{
    int16_t error;
    const char *text = why_not(request, update, &error);
    if (seen_before(seen, update->feature, 0)) {
        error = KAFKA_INVALID_REQUEST;
        text = "the feature is named twice";
    }
    if (text == NULL) return (struct verdict){KAFKA_NONE, KAFKA_NULL};
    int bytes = update->feature.bytes > 100 ? 100 : (int)update->feature.bytes;
    return (struct verdict){error, arena_printf(&request->arena, "%.*s to level %d: %s", bytes,
                                                (const char *)update->feature.data,
                                                update->max_version_level, text)};
}

void update_features_handle(struct kafka_request *request)
{
    const struct kafka_update_features_request *message = KAFKA_MESSAGE(request, update_features);
    struct kafka_update_features_response *answer = KAFKA_ANSWER(request, update_features);
    int32_t count = message->feature_updates.count;
    struct seen seen;
    kafka_request_seen(request, &seen, (size_t)count);
    answer->results.items = kafka_update_features_response_result_new(&request->arena, count);
    for (int32_t i = 0; i < count && !request->arena.failed; i++) {
        const update_asked *update = &message->feature_updates.items[i];
        struct verdict verdict = judge(request, update, &seen);
        struct kafka_update_features_response_result *out = &answer->results.items[i];
        out->feature = update->feature;
        out->error_code = verdict.error;
        out->error_message = verdict.text;
        answer->results.count++;
        bool only_place = request->header.api_version >= 2 && answer->error_code == KAFKA_NONE;
        if (only_place) {
            answer->error_code = verdict.error;
            answer->error_message = verdict.text;
        }
    }
    kafka_finish(request);
}
