/* DescribeTopicPartitions (75): topics in name order, so many partitions at a time; a cursor names
 * the partition the next request begins with. What it says of a partition Metadata says, too. */
#include <stdlib.h>

#include "kafka/errors.h"
#include "kafka/handlers.h"
#include "kafka/kafka_state.h"
#include "kafka/operations.h"
#include "kafka/view.h"

/* Kafka's max.request.partition.size.limit. */
#define PARTITIONS_MAX 2000

typedef struct kafka_describe_topic_partitions_response_topic topic_answer;

struct page {
    struct kafka_request *request;
    struct kafka_replica_lists lists;
    struct slice from_topic; /* null: from the start */
    int32_t from_partition;
    int32_t room; /* for so many partitions */
};

static int compare(struct slice a, struct slice b)
{
    size_t common = a.bytes < b.bytes ? a.bytes : b.bytes;
    int order = common > 0 ? memcmp(a.data, b.data, common) : 0;
    if (order != 0) return order;
    return (a.bytes > b.bytes) - (a.bytes < b.bytes);
}

static int compare_names(const void *a, const void *b)
{
    return compare(*(const struct slice *)a, *(const struct slice *)b);
}

static void end_page(struct page *page, struct slice topic_name, int32_t partition)
{
    struct kafka_describe_topic_partitions_response *answer =
        KAFKA_ANSWER(page->request, describe_topic_partitions);
    answer->next_cursor =
        kafka_describe_topic_partitions_response_next_cursor_new(&page->request->arena, 1);
    if (answer->next_cursor == NULL) return;
    answer->next_cursor->topic_name = topic_name;
    answer->next_cursor->partition_index = partition;
}

static void put_partitions(struct page *page, const struct topic *topic, int32_t from,
                           topic_answer *out)
{
    struct kafka_request *request = page->request;
    int32_t leader = kafka_leader_id(request);
    int32_t end = (int32_t)topic_partition_count(topic);
    if (from > end) from = end;
    if (end - from > page->room) end = from + page->room;
    struct kafka_describe_topic_partitions_response_partition *partitions =
        kafka_describe_topic_partitions_response_partition_new(&request->arena, end - from);
    if (partitions == NULL) return;
    for (int32_t i = from; i < end; i++) {
        struct kafka_describe_topic_partitions_response_partition *each = &partitions[i - from];
        each->error_code = leader < 0 ? KAFKA_LEADER_NOT_AVAILABLE : KAFKA_NONE;
        each->partition_index = i;
        each->leader_id = leader;
        each->leader_epoch = kafka_view(request)->epoch;
        each->replica_nodes.items = page->lists.all;
        each->replica_nodes.count = page->lists.all_count;
        each->isr_nodes.items = page->lists.in_sync;
        each->isr_nodes.count = page->lists.in_sync_count;
        each->eligible_leader_replicas.count = 0; /* beside the in-sync ones: never any */
        each->last_known_elr.count = 0;
    }
    out->partitions.items = partitions;
    out->partitions.count = end - from;
    page->room -= end - from;
    if (end < (int32_t)topic_partition_count(topic)) end_page(page, out->name, end);
}

static void put_unknown(const struct page *page, topic_answer *out)
{
    if (!topic_name_is_valid((const char *)out->name.data, out->name.bytes, false)) {
        out->error_code = KAFKA_INVALID_TOPIC;
    } else if (kafka_may_have_missed_topics(page->request)) {
        out->error_code = KAFKA_LEADER_NOT_AVAILABLE;
    } else {
        out->error_code = KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
    }
}

/* False: the page is full. */
static bool put_topic(struct page *page, struct slice name, const struct topic *topic)
{
    struct kafka_describe_topic_partitions_response *answer =
        KAFKA_ANSWER(page->request, describe_topic_partitions);
    int order = page->from_topic.data != NULL ? compare(name, page->from_topic) : 1;
    if (order < 0) return true; /* on an earlier page */
    if (page->room <= 0) {
        end_page(page, name, 0);
        return false;
    }
    topic_answer *out = &answer->topics.items[answer->topics.count++];
    out->name = name;
    if (topic == NULL) {
        put_unknown(page, out);
        return true;
    }
    out->topic_id = *topic_uid(topic);
    out->is_internal = topic_is_internal(topic);
    out->topic_authorized_operations = KAFKA_TOPIC_OPERATIONS;
    put_partitions(page, topic, order == 0 ? page->from_partition : 0, out);
    return answer->next_cursor == NULL;
}

static bool make_room(struct page *page, int32_t topics)
{
    struct kafka_describe_topic_partitions_response *answer =
        KAFKA_ANSWER(page->request, describe_topic_partitions);
    answer->topics.items =
        kafka_describe_topic_partitions_response_topic_new(&page->request->arena, topics);
    return answer->topics.items != NULL;
}

static void put_all(struct page *page)
{
    struct broker *broker = kafka_request_broker(page->request);
    if (!make_room(page, (int32_t)catalog_topic_count(broker))) return;
    struct topic *topic = catalog_next(broker, NULL);
    for (; topic != NULL; topic = catalog_next(broker, topic)) {
        if (!put_topic(page, kafka_text(topic_name(topic)), topic)) return;
    }
}

static void put_asked(struct page *page)
{
    struct kafka_request *request = page->request;
    const struct kafka_describe_topic_partitions_request *message =
        KAFKA_MESSAGE(request, describe_topic_partitions);
    int32_t count = message->topics.count;
    struct slice *names = arena_new_array(&request->arena, (size_t)count, sizeof(*names));
    if (names == NULL || !make_room(page, count)) return;
    for (int32_t i = 0; i < count; i++)
        names[i] = message->topics.items[i].name;
    qsort(names, (size_t)count, sizeof(*names), compare_names);
    for (int32_t i = 0; i < count; i++) {
        if (i > 0 && compare(names[i - 1], names[i]) == 0) continue;
        if (!put_topic(page, names[i], kafka_find_topic(request, names[i]))) return;
    }
}

static void refuse_cursor(struct kafka_request *request)
{
    const struct kafka_describe_topic_partitions_request *message =
        KAFKA_MESSAGE(request, describe_topic_partitions);
    struct kafka_describe_topic_partitions_response *answer =
        KAFKA_ANSWER(request, describe_topic_partitions);
    int32_t count = message->topics.count;
    answer->topics.items =
        kafka_describe_topic_partitions_response_topic_new(&request->arena, count);
    for (int32_t i = 0; i < count && answer->topics.items != NULL; i++) {
        answer->topics.items[i].name = message->topics.items[i].name;
        answer->topics.items[i].error_code = KAFKA_INVALID_REQUEST;
        answer->topics.count++;
    }
}

static void answer_now(struct kafka_request *request)
{
    const struct kafka_describe_topic_partitions_request *message =
        KAFKA_MESSAGE(request, describe_topic_partitions);
    struct page page = {.request = request,
                        .lists = kafka_new_replica_lists(request),
                        .room = message->response_partition_limit};
    if (page.room > PARTITIONS_MAX) page.room = PARTITIONS_MAX;
    if (page.room < 1) page.room = 1;
    if (message->cursor != NULL) {
        page.from_topic = message->cursor->topic_name;
        page.from_partition = message->cursor->partition_index;
    }
    if (page.from_partition < 0) {
        refuse_cursor(request);
    } else if (message->topics.count > 0) {
        put_asked(&page);
    } else {
        put_all(&page);
    }
    kafka_finish(request);
}

void describe_topic_partitions_handle(struct kafka_request *request)
{
    if (kafka_leader_id(request) >= 0) {
        answer_now(request);
    } else {
        kafka_wait_leader(request, kafka_request_settings(request)->leader_wait_us, answer_now);
    }
}
