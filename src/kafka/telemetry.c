/* GetTelemetrySubscriptions, PushTelemetry (71, 72; KIP-714): no metrics of clients are wanted.
 *
 * A client that hears so asks again when the interval is over, and pushes nothing; it has an
 * instance id, which is what its application asks it for. All brokers say the same, so a client
 * that moves to another one has a subscription that is known there. What it pushes all the same,
 * perhaps as a farewell, is dropped; one with a subscription of somebody else asks anew. */
#include "base/random.h"
#include "kafka/errors.h"
#include "kafka/handlers.h"
#include "kafka/kafka_state.h"

#define SUBSCRIPTION_ID     1
#define ASK_AGAIN_MS        300000 /* Kafka's default interval */
#define TELEMETRY_BYTES_MAX 1048576

void get_telemetry_subscriptions_handle(struct kafka_request *request)
{
    const struct kafka_get_telemetry_subscriptions_request *message =
        KAFKA_MESSAGE(request, get_telemetry_subscriptions);
    struct kafka_get_telemetry_subscriptions_response *answer =
        KAFKA_ANSWER(request, get_telemetry_subscriptions);
    answer->client_instance_id = message->client_instance_id;
    if (uuid_is_none(&answer->client_instance_id)) {
        answer->client_instance_id = uuid_random(&request->kafka->random);
    }
    answer->subscription_id = SUBSCRIPTION_ID;
    answer->push_interval_ms = ASK_AGAIN_MS;
    answer->telemetry_max_bytes = TELEMETRY_BYTES_MAX;
    answer->delta_temporality = true;
    kafka_finish(request);
}

void push_telemetry_handle(struct kafka_request *request)
{
    const struct kafka_push_telemetry_request *message = KAFKA_MESSAGE(request, push_telemetry);
    struct kafka_push_telemetry_response *answer = KAFKA_ANSWER(request, push_telemetry);
    if (uuid_is_none(&message->client_instance_id)) {
        answer->error_code = KAFKA_INVALID_REQUEST;
    } else if (message->subscription_id != SUBSCRIPTION_ID) {
        answer->error_code = KAFKA_UNKNOWN_SUBSCRIPTION_ID;
    }
    kafka_finish(request);
}
