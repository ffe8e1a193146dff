/* CreatePartitions (37): a topic grows; on the leader, a follower forwards. */
#include "kafka/errors.h"
#include "kafka/forward.h"
#include "kafka/handlers.h"
#include "kafka/view.h"

struct growth {
    struct kafka_request *request;
    const struct kafka_create_partitions_request_topic *in;
    struct kafka_create_partitions_response_result *out;
};

static void lay_out_answer(struct kafka_request *request, int16_t error)
{
    const struct kafka_create_partitions_request *message =
        KAFKA_MESSAGE(request, create_partitions);
    struct kafka_create_partitions_response *answer = KAFKA_ANSWER(request, create_partitions);
    int32_t count = message->topics.count;
    answer->results.items = kafka_create_partitions_response_result_new(&request->arena, count);
    if (answer->results.items == NULL) return;
    answer->results.count = count;
    for (int32_t i = 0; i < count; i++) {
        answer->results.items[i].name = message->topics.items[i].name;
        answer->results.items[i].error_code = error;
    }
}

void create_partitions_refuse(struct kafka_request *request, enum status status)
{
    lay_out_answer(request, kafka_request_error(request, status));
    kafka_finish(request);
}

static void fail(struct growth *growth, int16_t error, const char *text)
{
    growth->out->error_code = error;
    growth->out->error_message = arena_copy(&growth->request->arena, kafka_text(text));
}

static void grown(void *context, enum status status, const struct error *error)
{
    struct growth *growth = context;
    struct kafka_request *request = growth->request;
    if (status != STATUS_OK) {
        fail(growth, kafka_request_error(request, status),
             error != NULL ? error->text : status_text(status));
    }
    kafka_part_done(request);
}

/* An assignment places each new partition; all brokers get all of them, so only its shape counts.
 */
static bool assignments_fit(const struct growth *growth, uint32_t partitions_now)
{
    const struct kafka_create_partitions_request_topic *in = growth->in;
    if (in->assignments.count < 0) return true;
    if (in->assignments.count != in->count - (int32_t)partitions_now) return false;
    for (int32_t i = 0; i < in->assignments.count; i++) {
        const struct kafka_create_partitions_request_assignment *one = &in->assignments.items[i];
        if (!kafka_placement_is_valid(growth->request, one->broker_ids.items,
                                      one->broker_ids.count))
            return false;
    }
    return true;
}

static void grow(struct growth *growth)
{
    struct kafka_request *request = growth->request;
    const struct kafka_create_partitions_request *message =
        KAFKA_MESSAGE(request, create_partitions);
    struct broker *broker = kafka_request_broker(request);
    struct slice name = growth->in->name;
    const struct topic *topic = catalog_find(broker, (const char *)name.data, name.bytes);
    if (topic == NULL) {
        growth->out->error_code = KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
        return;
    }
    uint32_t now = topic_partition_count(topic);
    if (growth->in->count <= (int32_t)now) {
        fail(growth, KAFKA_INVALID_PARTITIONS, "a topic only grows");
        return;
    }
    if (!assignments_fit(growth, now)) {
        fail(growth, KAFKA_INVALID_REPLICA_ASSIGNMENT,
             "an assignment needs one entry for each new partition, on brokers of this group");
        return;
    }
    const char *text = kafka_request_text(request, name);
    if (text == NULL) return;
    request->open++;
    broker_grow_topic(broker, &(struct admin_request){
                                  .topic = text,
                                  .partitions = (uint32_t)growth->in->count,
                                  .validate_only = message->validate_only,
                                  .timeout_us = kafka_timeout_us(request, message->timeout_ms),
                                  .done = grown,
                                  .context = growth,
                              });
}

void create_partitions_handle(struct kafka_request *request)
{
    if (kafka_forward(request)) return;
    const struct kafka_create_partitions_request *message =
        KAFKA_MESSAGE(request, create_partitions);
    struct kafka_create_partitions_response *answer = KAFKA_ANSWER(request, create_partitions);
    int32_t count = message->topics.count;
    lay_out_answer(request, KAFKA_NONE);
    struct growth *growths = arena_new_array(&request->arena, (size_t)count, sizeof(*growths));
    struct seen seen;
    kafka_request_seen(request, &seen, (size_t)count);
    if (request->arena.failed) {
        kafka_finish(request);
        return;
    }
    request->open = 1; /* ours, until all are asked */
    for (int32_t i = 0; i < count; i++) {
        growths[i] = (struct growth){request, &message->topics.items[i], &answer->results.items[i]};
        if (seen_before(&seen, message->topics.items[i].name, 0)) {
            fail(&growths[i], KAFKA_INVALID_REQUEST, "the topic is named twice");
        } else {
            grow(&growths[i]);
        }
    }
    kafka_part_done(request);
}
