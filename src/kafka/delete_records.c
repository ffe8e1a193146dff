/* DeleteRecords (21): what lies before an offset goes; -1: all that is committed. Answered when it
 * cannot come back, or with what is open at the time-out (kafka-listener.md 11.3). */
#include "broker/delete_records.h"

#include "kafka/errors.h"
#include "kafka/handlers.h"
#include "kafka/kafka_state.h"

#define TIMEOUT_MS_MAX 300000

typedef struct kafka_delete_records_response_partition partition_answer;

struct deletion_entry {
    struct delete_records deletion;
    struct kafka_request *request;
    partition_answer *answer;
};

static void deleted(void *context, struct delete_records *deletion)
{
    struct deletion_entry *entry = context;
    entry->answer->low_watermark = deletion->low_watermark;
    entry->answer->error_code = kafka_request_error(entry->request, deletion->status);
    kafka_part_done(entry->request);
}

static int64_t timeout_us(const struct kafka_request *request)
{
    int64_t timeout_ms = KAFKA_MESSAGE(request, delete_records)->timeout_ms;
    if (timeout_ms < 0) timeout_ms = 0;
    return (timeout_ms > TIMEOUT_MS_MAX ? TIMEOUT_MS_MAX : timeout_ms) * 1000;
}

static void delete_before(struct kafka_request *request, struct partition *partition,
                          const struct kafka_delete_records_request_partition *in,
                          partition_answer *out)
{
    struct deletion_entry *entry = arena_new(&request->arena, sizeof(*entry));
    if (entry == NULL) return;
    entry->request = request;
    entry->answer = out;
    entry->deletion = (struct delete_records){.partition = partition,
                                              .before_offset = in->offset,
                                              .timeout_us = timeout_us(request),
                                              .done = deleted,
                                              .context = entry};
    request->open++;
    broker_delete_records(kafka_request_broker(request), &entry->deletion);
}

static void delete_in_topic(struct kafka_request *request,
                            const struct kafka_delete_records_request_topic *in,
                            struct kafka_delete_records_response_topic *out, struct seen *seen)
{
    const struct topic *topic = kafka_find_topic(request, in->name);
    int32_t count = in->partitions.count;
    out->name = in->name;
    out->partitions.items = kafka_delete_records_response_partition_new(&request->arena, count);
    if (out->partitions.items == NULL) return;
    out->partitions.count = count;
    for (int32_t i = 0; i < count; i++) {
        struct partition *partition;
        partition_answer *answer = &out->partitions.items[i];
        answer->partition_index = in->partitions.items[i].partition_index;
        answer->low_watermark = -1;
        answer->error_code =
            kafka_take_partition(seen, in->name, topic, answer->partition_index, &partition);
        if (answer->error_code != KAFKA_NONE) continue;
        delete_before(request, partition, &in->partitions.items[i], answer);
    }
}

void delete_records_handle(struct kafka_request *request)
{
    const struct kafka_delete_records_request *message = KAFKA_MESSAGE(request, delete_records);
    struct kafka_delete_records_response *answer = KAFKA_ANSWER(request, delete_records);
    int32_t topics = message->topics.count;
    size_t partitions = 0;
    for (int32_t i = 0; i < topics; i++) {
        partitions += (size_t)message->topics.items[i].partitions.count;
    }
    struct seen seen;
    kafka_request_seen(request, &seen, partitions);
    answer->topics.items = kafka_delete_records_response_topic_new(&request->arena, topics);
    if (request->arena.failed) {
        kafka_finish(request);
        return;
    }
    answer->topics.count = topics;
    request->open = 1; /* ours, until all are asked */
    for (int32_t i = 0; i < topics; i++) {
        delete_in_topic(request, &message->topics.items[i], &answer->topics.items[i], &seen);
    }
    kafka_part_done(request);
}
