/* OffsetDelete (47): committed offsets of topics that no member of the group reads (section 7.4).
 */
#include "broker/group_coordinator.h"
#include "kafka/errors.h"
#include "kafka/handlers.h"

struct delete_state {
    struct offsets_request offsets;
    struct kafka_offset_delete_response_partition **answers; /* one for each of the offsets */
};

static void deleted(void *context, struct offsets_request *offsets)
{
    struct kafka_request *request = context;
    struct kafka_offset_delete_response *answer = KAFKA_ANSWER(request, offset_delete);
    struct delete_state *state = request->state;
    answer->error_code = kafka_request_error(request, offsets->status);
    /* With an error of the whole nothing is told of the parts. */
    if (offsets->status != STATUS_OK) answer->topics.count = 0;
    for (uint32_t i = 0; i < offsets->offset_count; i++)
        state->answers[i]->error_code = kafka_request_error(request, offsets->offsets[i].status);
    kafka_finish(request);
}

static void add_partition(struct kafka_request *request, struct slice name, int32_t index,
                          struct kafka_offset_delete_response_partition *out)
{
    struct delete_state *state = request->state;
    const struct topic *topic = kafka_find_topic(request, name);
    out->partition_index = index;
    if (kafka_find_partition(topic, index) == NULL) {
        out->error_code = KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
        return;
    }
    uint32_t at = state->offsets.offset_count++;
    state->answers[at] = out;
    state->offsets.offsets[at] = (struct committed_offset){.topic = name, .partition = index};
}

static void add_topic(struct kafka_request *request,
                      const struct kafka_offset_delete_request_topic *in,
                      struct kafka_offset_delete_response_topic *out)
{
    out->name = in->name;
    out->partitions.items =
        kafka_offset_delete_response_partition_new(&request->arena, in->partitions.count);
    if (out->partitions.items == NULL) return;
    out->partitions.count = in->partitions.count;
    for (int32_t i = 0; i < in->partitions.count; i++) {
        add_partition(request, in->name, in->partitions.items[i].partition_index,
                      &out->partitions.items[i]);
    }
}

static bool make_room(struct kafka_request *request)
{
    const struct kafka_offset_delete_request *message = KAFKA_MESSAGE(request, offset_delete);
    struct kafka_offset_delete_response *answer = KAFKA_ANSWER(request, offset_delete);
    size_t count = 0;
    for (int32_t i = 0; i < message->topics.count; i++)
        count += (size_t)message->topics.items[i].partitions.count;
    struct delete_state *state = arena_new(&request->arena, sizeof(*state));
    if (state == NULL) return false;
    state->answers = arena_new_array(&request->arena, count, sizeof(*state->answers));
    state->offsets.offsets =
        arena_new_array(&request->arena, count, sizeof(*state->offsets.offsets));
    answer->topics.items =
        kafka_offset_delete_response_topic_new(&request->arena, message->topics.count);
    request->state = state;
    return !request->arena.failed;
}

void offset_delete_handle(struct kafka_request *request)
{
    const struct kafka_offset_delete_request *message = KAFKA_MESSAGE(request, offset_delete);
    struct kafka_offset_delete_response *answer = KAFKA_ANSWER(request, offset_delete);
    struct broker *broker = kafka_request_broker(request);
    if (!make_room(request)) {
        kafka_finish(request);
        return;
    }
    struct delete_state *state = request->state;
    answer->topics.count = message->topics.count;
    for (int32_t i = 0; i < message->topics.count; i++)
        add_topic(request, &message->topics.items[i], &answer->topics.items[i]);
    state->offsets.group = message->group_id;
    state->offsets.timeout_us = broker_settings_of(broker)->ack_timeout_us;
    state->offsets.done = deleted;
    state->offsets.context = request;
    if (request->arena.failed) {
        kafka_finish(request);
        return;
    }
    broker_delete_offsets(broker, &state->offsets);
}
