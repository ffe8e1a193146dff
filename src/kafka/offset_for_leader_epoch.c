/* OffsetForLeaderEpoch (23): where an epoch ends here; how consumers notice that what they read was
 * cut off after a failover (section 6).                                                        */
#include "kafka/errors.h"
#include "kafka/handlers.h"

static void answer_partition(struct kafka_request *request, const struct topic *topic,
                             const struct kafka_offset_for_leader_epoch_request_partition *in,
                             struct kafka_offset_for_leader_epoch_response_partition *out)
{
    out->partition = in->partition;
    struct partition *partition = kafka_find_partition(topic, in->partition);
    if (partition == NULL) {
        out->error_code = KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
        return;
    }
    int32_t epoch = -1;
    int64_t end_offset = -1;
    enum status status =
        broker_epoch_end(kafka_request_broker(request), partition, in->current_leader_epoch,
                         in->leader_epoch, &epoch, &end_offset);
    out->error_code = kafka_request_error(request, status);
    if (status != STATUS_OK) return;
    out->leader_epoch = epoch;
    out->end_offset = end_offset;
}

void offset_for_leader_epoch_handle(struct kafka_request *request)
{
    const struct kafka_offset_for_leader_epoch_request *message =
        KAFKA_MESSAGE(request, offset_for_leader_epoch);
    struct kafka_offset_for_leader_epoch_response *answer =
        KAFKA_ANSWER(request, offset_for_leader_epoch);
    int32_t topics = message->topics.count;
    answer->topics.items =
        kafka_offset_for_leader_epoch_response_topic_new(&request->arena, topics);
    for (int32_t i = 0; i < topics && !request->arena.failed; i++) {
        const struct kafka_offset_for_leader_epoch_request_topic *in = &message->topics.items[i];
        struct kafka_offset_for_leader_epoch_response_topic *out = &answer->topics.items[i];
        const struct topic *topic = kafka_find_topic(request, in->topic);
        out->topic = in->topic;
        out->partitions.items = kafka_offset_for_leader_epoch_response_partition_new(
            &request->arena, in->partitions.count);
        if (out->partitions.items == NULL) break;
        out->partitions.count = in->partitions.count;
        for (int32_t k = 0; k < in->partitions.count; k++) {
            answer_partition(request, topic, &in->partitions.items[k], &out->partitions.items[k]);
        }
    }
    answer->topics.count = topics;
    kafka_finish(request);
}
