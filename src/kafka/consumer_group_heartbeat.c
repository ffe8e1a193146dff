/* ConsumerGroupHeartbeat (68): a member of a group of the new protocol (KIP-848) joins, lives on or
 * leaves (section 7.6). Answered when what it changed is replicated. */
#include "base/uuid.h"
#include "broker/modern_coordinator.h"
#include "kafka/errors.h"
#include "kafka/handlers.h"

#define VERSION_ID_BY_CLIENT 1

struct heartbeat_state {
    struct modern_request wait;
    struct slice member_id;
    struct partition_set owned;
};

static void heartbeat_release(struct kafka_request *request)
{
    struct heartbeat_state *state = request->state;
    if (state != NULL) partition_set_deinit(&state->owned);
}

/* ---- the answer ---- */

static uint32_t count_topics(const struct partition_set *set)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < set->count; i++)
        if (i == 0 || !uuid_equal(&set->items[i].topic, &set->items[i - 1].topic)) count++;
    return count;
}

static void put_assignment(struct kafka_request *request, const struct partition_set *set)
{
    struct kafka_consumer_group_heartbeat_response_assignment *out =
        kafka_consumer_group_heartbeat_response_assignment_new(&request->arena, 1);
    if (out == NULL) return;
    out->topic_partitions.items = kafka_consumer_group_heartbeat_response_topic_partition_new(
        &request->arena, (int32_t)count_topics(set));
    int32_t *partitions = arena_new_array(&request->arena, set->count, sizeof(*partitions));
    if (request->arena.failed) return;
    for (uint32_t i = 0; i < set->count; i++) {
        bool next = i == 0 || !uuid_equal(&set->items[i].topic, &set->items[i - 1].topic);
        if (next) {
            struct kafka_consumer_group_heartbeat_response_topic_partition *topic =
                &out->topic_partitions.items[out->topic_partitions.count++];
            topic->topic_id = set->items[i].topic;
            topic->partitions.items = &partitions[i];
        }
        partitions[i] = set->items[i].partition;
        out->topic_partitions.items[out->topic_partitions.count - 1].partitions.count++;
    }
    KAFKA_ANSWER(request, consumer_group_heartbeat)->assignment = out;
}

static void heartbeat_answered(void *context, struct modern_request *wait)
{
    struct kafka_request *request = context;
    struct heartbeat_state *state = request->state;
    struct kafka_consumer_group_heartbeat_response *answer =
        KAFKA_ANSWER(request, consumer_group_heartbeat);
    answer->error_code = kafka_request_error(request, wait->status);
    if (wait->status != STATUS_OK) {
        answer->error_message = arena_printf(&request->arena, "%s", wait->error.text);
    } else {
        const struct broker *broker = kafka_request_broker(request);
        answer->member_id = state->member_id;
        answer->member_epoch = wait->member_epoch;
        answer->heartbeat_interval_ms = broker_modern_options(broker)->heartbeat_interval_ms;
        if (wait->has_assignment) put_assignment(request, &wait->assignment);
    }
    kafka_finish(request);
}

/* ---- the request ---- */

static void read_owned(const struct kafka_consumer_group_heartbeat_request *message,
                       struct partition_set *out)
{
    for (int32_t i = 0; i < message->topic_partitions.count; i++) {
        const struct kafka_consumer_group_heartbeat_request_topic_partition *topic =
            &message->topic_partitions.items[i];
        for (int32_t k = 0; k < topic->partitions.count; k++)
            partition_set_append(out, &topic->topic_id, topic->partitions.items[k]);
    }
    partition_set_sort(out);
}

/* In version 0 the coordinator names the member. */
static struct slice member_id_of(struct kafka_request *request)
{
    char text[UUID_TEXT_BYTES];
    const struct kafka_consumer_group_heartbeat_request *message =
        KAFKA_MESSAGE(request, consumer_group_heartbeat);
    bool given = message->member_id.bytes > 0 || message->member_epoch != MODERN_EPOCH_JOIN ||
                 request->header.api_version >= VERSION_ID_BY_CLIENT;
    if (given) return message->member_id;
    struct uuid uuid = broker_modern_new_id(kafka_request_broker(request));
    return arena_printf(&request->arena, "%s", uuid_format(&uuid, text));
}

void consumer_group_heartbeat_handle(struct kafka_request *request)
{
    const struct kafka_consumer_group_heartbeat_request *message =
        KAFKA_MESSAGE(request, consumer_group_heartbeat);
    struct heartbeat_state *state = arena_new(&request->arena, sizeof(*state));
    struct slice host = arena_printf(&request->arena, "/%s", kafka_request_client_host(request));
    struct slice client_id = request->header.client_id;
    if (state != NULL) state->member_id = member_id_of(request);
    if (request->arena.failed) {
        kafka_finish(request);
        return;
    }
    request->state = state;
    request->release = heartbeat_release;
    state->wait.done = heartbeat_answered;
    state->wait.context = request;
    read_owned(message, &state->owned);
    bool has_owned = message->topic_partitions.count >= 0;
    const struct modern_heartbeat heartbeat = {
        .member_id = state->member_id,
        .member_epoch = message->member_epoch,
        .instance_id = message->instance_id,
        .rack_id = message->rack_id,
        .client_id = client_id.data != NULL ? client_id : kafka_text(""),
        .client_host = host,
        .rebalance_timeout_ms = message->rebalance_timeout_ms,
        .has_names = message->subscribed_topic_names.count >= 0,
        .names = message->subscribed_topic_names.items,
        .name_count = message->subscribed_topic_names.count > 0
                          ? (uint32_t)message->subscribed_topic_names.count
                          : 0,
        .regex = message->subscribed_topic_regex,
        .assignor = message->server_assignor,
        .has_owned = has_owned,
        .owned = has_owned ? &state->owned : NULL,
    };
    broker_modern_heartbeat(kafka_request_broker(request), message->group_id, &heartbeat,
                            &state->wait);
}

bool consumer_group_heartbeat_cancel(struct kafka_request *request)
{
    struct heartbeat_state *state = request->state;
    broker_modern_cancel(kafka_request_broker(request), &state->wait);
    return true;
}
