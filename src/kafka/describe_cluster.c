/* DescribeCluster (60): the brokers, as Metadata names them. */
#include "kafka/errors.h"
#include "kafka/handlers.h"
#include "kafka/kafka_state.h"
#include "kafka/operations.h"
#include "kafka/view.h"

enum endpoint_type { ENDPOINT_BROKER = 1, ENDPOINT_CONTROLLER = 2 };

static void list_brokers(struct kafka_request *request)
{
    struct kafka_describe_cluster_response *answer = KAFKA_ANSWER(request, describe_cluster);
    const struct group_view *view = kafka_view(request);
    struct kafka_describe_cluster_response_broker *brokers =
        kafka_describe_cluster_response_broker_new(&request->arena, (int32_t)view->member_count);
    if (brokers == NULL) return;
    for (uint32_t i = 0; i < view->member_count; i++) {
        struct kafka_node node = kafka_node_of(request, &view->members[i]);
        brokers[i].broker_id = node.id;
        brokers[i].host = node.host;
        brokers[i].port = node.port;
        if (node.id == view->self_id) {
            brokers[i].rack = kafka_text(kafka_request_settings(request)->rack);
        }
    }
    answer->brokers.items = brokers;
    answer->brokers.count = (int32_t)view->member_count;
}

static void answer_now(struct kafka_request *request)
{
    const struct kafka_describe_cluster_request *message = KAFKA_MESSAGE(request, describe_cluster);
    struct kafka_describe_cluster_response *answer = KAFKA_ANSWER(request, describe_cluster);
    answer->cluster_id = kafka_cluster_id(request);
    if (message->endpoint_type == ENDPOINT_CONTROLLER) {
        answer->error_code = KAFKA_MISMATCHED_ENDPOINT_TYPE;
    } else if (message->endpoint_type != ENDPOINT_BROKER) {
        answer->error_code = KAFKA_UNSUPPORTED_ENDPOINT_TYPE;
    } else {
        answer->controller_id = kafka_leader_id(request);
        list_brokers(request);
    }
    if (message->include_cluster_authorized_operations) {
        answer->cluster_authorized_operations = KAFKA_CLUSTER_OPERATIONS;
    }
    kafka_finish(request);
}

void describe_cluster_handle(struct kafka_request *request)
{
    if (kafka_leader_id(request) >= 0) {
        answer_now(request);
    } else {
        kafka_wait_leader(request, kafka_request_settings(request)->leader_wait_us, answer_now);
    }
}
