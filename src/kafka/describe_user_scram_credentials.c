/* DescribeUserScramCredentials (50): no user has credentials here, so that tools that ask for them
 * beside other things (kafka-configs for users) have an answer. */
#include "kafka/errors.h"
#include "kafka/handlers.h"

/* None named, or null: all who have any. */
void describe_user_scram_credentials_handle(struct kafka_request *request)
{
    const struct kafka_describe_user_scram_credentials_request *message =
        KAFKA_MESSAGE(request, describe_user_scram_credentials);
    struct kafka_describe_user_scram_credentials_response *answer =
        KAFKA_ANSWER(request, describe_user_scram_credentials);
    int32_t count = message->users.count > 0 ? message->users.count : 0;
    struct seen seen;
    kafka_request_seen(request, &seen, (size_t)count);
    answer->results.items =
        kafka_describe_user_scram_credentials_response_result_new(&request->arena, count);
    for (int32_t i = 0; i < count && !request->arena.failed; i++) {
        struct slice user = message->users.items[i].name;
        if (seen_before(&seen, user, 0)) continue;
        struct kafka_describe_user_scram_credentials_response_result *out =
            &answer->results.items[answer->results.count++];
        out->user = user;
        out->error_code = KAFKA_RESOURCE_NOT_FOUND;
        out->error_message = kafka_text("this user has no SCRAM credentials here");
    }
    kafka_finish(request);
}
