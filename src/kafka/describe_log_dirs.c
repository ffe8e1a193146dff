/* DescribeLogDirs (35): how large each partition is here. Every broker answers for itself. */
#include "kafka/handlers.h"
#include "kafka/kafka_state.h"

typedef struct kafka_describe_log_dirs_response_topic topic_answer;

static void put_partition(const struct topic *topic, int32_t index,
                          struct kafka_describe_log_dirs_response_partition *out)
{
    const struct partition *partition = topic_partition(topic, (uint32_t)index);
    out->partition_index = index;
    if (partition != NULL) out->partition_size = partition_log_bytes(partition_log_of(partition));
}

static void put_whole_topic(struct kafka_request *request, const struct topic *topic,
                            topic_answer *out)
{
    int32_t count = (int32_t)topic_partition_count(topic);
    out->name = kafka_text(topic_name(topic));
    out->partitions.items = kafka_describe_log_dirs_response_partition_new(&request->arena, count);
    if (out->partitions.items == NULL) return;
    out->partitions.count = count;
    for (int32_t i = 0; i < count; i++)
        put_partition(topic, i, &out->partitions.items[i]);
}

static void put_asked(struct kafka_request *request, const struct topic *topic,
                      const struct kafka_describe_log_dirs_request_topic *in, topic_answer *out)
{
    out->name = in->topic;
    out->partitions.items =
        kafka_describe_log_dirs_response_partition_new(&request->arena, in->partitions.count);
    if (out->partitions.items == NULL) return;
    for (int32_t i = 0; i < in->partitions.count; i++) {
        int32_t index = in->partitions.items[i];
        if (kafka_find_partition(topic, index) == NULL) continue;
        put_partition(topic, index, &out->partitions.items[out->partitions.count++]);
    }
}

static topic_answer *put_all_topics(struct kafka_request *request, int32_t *count_out)
{
    struct broker *broker = kafka_request_broker(request);
    uint32_t count = catalog_topic_count(broker);
    topic_answer *topics =
        kafka_describe_log_dirs_response_topic_new(&request->arena, (int32_t)count);
    if (topics == NULL) return NULL;
    int32_t at = 0;
    struct topic *topic = catalog_next(broker, NULL);
    for (; topic != NULL && at < (int32_t)count; topic = catalog_next(broker, topic)) {
        put_whole_topic(request, topic, &topics[at++]);
    }
    *count_out = at;
    return topics;
}

static topic_answer *put_asked_topics(struct kafka_request *request, int32_t *count_out)
{
    const struct kafka_describe_log_dirs_request *message =
        KAFKA_MESSAGE(request, describe_log_dirs);
    topic_answer *topics =
        kafka_describe_log_dirs_response_topic_new(&request->arena, message->topics.count);
    struct seen seen;
    kafka_request_seen(request, &seen, (size_t)message->topics.count);
    if (request->arena.failed) return NULL;
    for (int32_t i = 0; i < message->topics.count; i++) {
        const struct kafka_describe_log_dirs_request_topic *in = &message->topics.items[i];
        const struct topic *topic = kafka_find_topic(request, in->topic);
        if (topic == NULL || seen_before(&seen, in->topic, 0)) continue;
        put_asked(request, topic, in, &topics[(*count_out)++]);
    }
    return topics;
}

void describe_log_dirs_handle(struct kafka_request *request)
{
    struct kafka_describe_log_dirs_response *answer = KAFKA_ANSWER(request, describe_log_dirs);
    struct kafka_describe_log_dirs_response_result *dir =
        kafka_describe_log_dirs_response_result_new(&request->arena, 1);
    if (dir != NULL) {
        bool all = KAFKA_MESSAGE(request, describe_log_dirs)->topics.count < 0;
        dir->log_dir = kafka_text(kafka_request_settings(request)->data_dir);
        dir->topics.items = all ? put_all_topics(request, &dir->topics.count)
                                : put_asked_topics(request, &dir->topics.count);
        answer->results.items = dir;
        answer->results.count = 1;
    }
    kafka_finish(request);
}
