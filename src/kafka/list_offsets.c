/* ListOffsets (2): where to start reading: the ends of a partition, or a time (section 6). */
#include "kafka/errors.h"
#include "kafka/handlers.h"
#include "kafka/kafka_state.h"

#define READ_COMMITTED 1

enum special_timestamp {
    TIMESTAMP_LATEST = -1,
    TIMESTAMP_EARLIEST = -2,
    TIMESTAMP_MAX = -3,
    TIMESTAMP_EARLIEST_LOCAL = -4,
    TIMESTAMP_LATEST_TIERED = -5,
};

struct lookup_entry {
    struct offset_lookup lookup;
    struct kafka_request *request;
    struct kafka_list_offsets_response_partition *answer;
};

static bool timestamp_is_offered(int64_t timestamp, int16_t api_version)
{
    switch (timestamp) {
    case TIMESTAMP_LATEST:
    case TIMESTAMP_EARLIEST: return true;
    case TIMESTAMP_MAX: return api_version >= 7;
    case TIMESTAMP_EARLIEST_LOCAL: return api_version >= 8;
    case TIMESTAMP_LATEST_TIERED: return api_version >= 9;
    default: return timestamp >= 0;
    }
}

static void looked_up(void *context, struct offset_lookup *lookup)
{
    struct lookup_entry *entry = context;
    struct kafka_list_offsets_response_partition *out = entry->answer;
    out->error_code = kafka_request_error(entry->request, lookup->status);
    if (lookup->status == STATUS_OK) {
        out->offset = lookup->offset;
        out->timestamp = lookup->found_timestamp_ms;
        out->leader_epoch = lookup->leader_epoch;
    }
    kafka_part_done(entry->request);
}

static void look_up(struct kafka_request *request, struct partition *partition,
                    const struct kafka_list_offsets_request_partition *in,
                    struct kafka_list_offsets_response_partition *out)
{
    if (!timestamp_is_offered(in->timestamp, request->header.api_version)) {
        out->error_code = KAFKA_UNSUPPORTED_VERSION;
        return;
    }
    struct lookup_entry *entry = arena_new(&request->arena, sizeof(*entry));
    if (entry == NULL) return;
    entry->request = request;
    entry->answer = out;
    entry->lookup.partition = partition;
    entry->lookup.timestamp_ms = in->timestamp;
    entry->lookup.current_epoch = in->current_leader_epoch;
    entry->lookup.read_committed =
        KAFKA_MESSAGE(request, list_offsets)->isolation_level == READ_COMMITTED;
    entry->lookup.done = looked_up;
    entry->lookup.context = entry;
    request->open++;
    broker_lookup_offset(kafka_request_broker(request), &entry->lookup);
}

static void look_up_topic(struct kafka_request *request,
                          const struct kafka_list_offsets_request_topic *in,
                          struct kafka_list_offsets_response_topic *out, struct seen *seen)
{
    const struct topic *topic = kafka_find_topic(request, in->name);
    int32_t count = in->partitions.count;
    out->name = in->name;
    out->partitions.items = kafka_list_offsets_response_partition_new(&request->arena, count);
    if (out->partitions.items == NULL) return;
    out->partitions.count = count;
    for (int32_t i = 0; i < count; i++) {
        struct partition *partition;
        struct kafka_list_offsets_response_partition *answer = &out->partitions.items[i];
        answer->partition_index = in->partitions.items[i].partition_index;
        answer->error_code =
            kafka_take_partition(seen, in->name, topic, answer->partition_index, &partition);
        if (answer->error_code != KAFKA_NONE) continue;
        look_up(request, partition, &in->partitions.items[i], answer);
    }
}

void list_offsets_handle(struct kafka_request *request)
{
    const struct kafka_list_offsets_request *message = KAFKA_MESSAGE(request, list_offsets);
    struct kafka_list_offsets_response *answer = KAFKA_ANSWER(request, list_offsets);
    int32_t topics = message->topics.count;
    size_t partitions = 0;
    for (int32_t i = 0; i < topics; i++) {
        partitions += (size_t)message->topics.items[i].partitions.count;
    }
    struct seen seen;
    kafka_request_seen(request, &seen, partitions);
    answer->topics.items = kafka_list_offsets_response_topic_new(&request->arena, topics);
    if (request->arena.failed) {
        kafka_finish(request);
        return;
    }
    answer->topics.count = topics;
    request->open = 1; /* ours, until all are asked */
    for (int32_t i = 0; i < topics; i++) {
        look_up_topic(request, &message->topics.items[i], &answer->topics.items[i], &seen);
    }
    kafka_part_done(request);
}
