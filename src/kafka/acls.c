/* DescribeAcls, CreateAcls, DeleteAcls (29, 30, 31): there are no access rules, which is said as
 * Kafka does without an authorizer (kafka-listener.md 1.1). */
#include "kafka/errors.h"
#include "kafka/handlers.h"

#define NO_RULES "no access rules are kept here"

void describe_acls_handle(struct kafka_request *request)
{
    struct kafka_describe_acls_response *answer = KAFKA_ANSWER(request, describe_acls);
    answer->error_code = KAFKA_SECURITY_DISABLED;
    answer->error_message = kafka_text(NO_RULES);
    kafka_finish(request);
}

void create_acls_handle(struct kafka_request *request)
{
    struct kafka_create_acls_response *answer = KAFKA_ANSWER(request, create_acls);
    int32_t count = KAFKA_MESSAGE(request, create_acls)->creations.count;
    answer->results.items = kafka_create_acls_response_result_new(&request->arena, count);
    for (int32_t i = 0; i < count && answer->results.items != NULL; i++) {
        answer->results.items[i].error_code = KAFKA_SECURITY_DISABLED;
        answer->results.items[i].error_message = kafka_text(NO_RULES);
        answer->results.count++;
    }
    kafka_finish(request);
}

void delete_acls_handle(struct kafka_request *request)
{
    struct kafka_delete_acls_response *answer = KAFKA_ANSWER(request, delete_acls);
    int32_t count = KAFKA_MESSAGE(request, delete_acls)->filters.count;
    answer->filter_results.items =
        kafka_delete_acls_response_filter_result_new(&request->arena, count);
    for (int32_t i = 0; i < count && answer->filter_results.items != NULL; i++) {
        answer->filter_results.items[i].error_code = KAFKA_SECURITY_DISABLED;
        answer->filter_results.items[i].error_message = kafka_text(NO_RULES);
        answer->filter_results.count++;
    }
    kafka_finish(request);
}
