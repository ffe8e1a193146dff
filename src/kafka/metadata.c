/* Metadata (3): the brokers, the leader, and the topics asked for (kafka-listener.md 11.1, 9.4).
 *
 * Steps: wait for a leader during an election -> create what is missing and may be created ->
 * answer from what this replica knows then. A topic that exists is never called unknown: a replica
 * that may not have heard of it yet says "leader not available", which all clients retry (rule 7).
 */
#include "kafka/auto_create.h"
#include "kafka/errors.h"
#include "kafka/handlers.h"
#include "kafka/kafka_state.h"
#include "kafka/operations.h"
#include "kafka/view.h"

typedef struct kafka_metadata_response_topic topic_answer;

static bool asks_for_all(const struct kafka_request *request)
{
    int32_t count = KAFKA_MESSAGE(request, metadata)->topics.count;
    return request->header.api_version == 0 ? count == 0 : count < 0;
}

/* ---- the answer ---- */

static void list_brokers(struct kafka_request *request)
{
    struct kafka_metadata_response *answer = KAFKA_ANSWER(request, metadata);
    const struct group_view *view = kafka_view(request);
    struct kafka_metadata_response_broker *brokers =
        kafka_metadata_response_broker_new(&request->arena, (int32_t)view->member_count);
    if (brokers == NULL) return;
    for (uint32_t i = 0; i < view->member_count; i++) {
        struct kafka_node node = kafka_node_of(request, &view->members[i]);
        brokers[i].node_id = node.id;
        brokers[i].host = node.host;
        brokers[i].port = node.port;
        if (node.id == view->self_id) {
            brokers[i].rack = kafka_text(kafka_request_settings(request)->rack);
        }
    }
    answer->brokers.items = brokers;
    answer->brokers.count = (int32_t)view->member_count;
}

static void answer_topic(struct kafka_request *request, const struct topic *topic,
                         const struct kafka_replica_lists *lists, topic_answer *out)
{
    const struct group_view *view = kafka_view(request);
    int32_t leader = kafka_leader_id(request);
    int32_t count = (int32_t)topic_partition_count(topic);
    out->name = kafka_text(topic_name(topic));
    out->topic_id = *topic_uid(topic);
    out->is_internal = topic_is_internal(topic);
    if (KAFKA_MESSAGE(request, metadata)->include_topic_authorized_operations) {
        out->topic_authorized_operations = KAFKA_TOPIC_OPERATIONS;
    }
    struct kafka_metadata_response_partition *partitions =
        kafka_metadata_response_partition_new(&request->arena, count);
    if (partitions == NULL) return;
    for (int32_t i = 0; i < count; i++) {
        partitions[i].error_code = leader < 0 ? KAFKA_LEADER_NOT_AVAILABLE : KAFKA_NONE;
        partitions[i].partition_index = i;
        partitions[i].leader_id = leader;
        partitions[i].leader_epoch = view->epoch;
        partitions[i].replica_nodes.items = lists->all;
        partitions[i].replica_nodes.count = lists->all_count;
        partitions[i].isr_nodes.items = lists->in_sync;
        partitions[i].isr_nodes.count = lists->in_sync_count;
    }
    out->partitions.items = partitions;
    out->partitions.count = count;
}

static int16_t missing_error(struct kafka_request *request, enum status creation)
{
    switch (creation) {
    case STATUS_INVALID_TOPIC:
    case STATUS_TOPIC_FORBIDDEN: return KAFKA_INVALID_TOPIC;
    case STATUS_UNKNOWN_TOPIC: /* was not to be created */
    case STATUS_LIMIT:
        return kafka_may_have_missed_topics(request) ? KAFKA_LEADER_NOT_AVAILABLE
                                                     : KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
    default: return KAFKA_LEADER_NOT_AVAILABLE; /* on its way */
    }
}

static void answer_all_topics(struct kafka_request *request,
                              const struct kafka_replica_lists *lists)
{
    struct broker *broker = kafka_request_broker(request);
    struct kafka_metadata_response *answer = KAFKA_ANSWER(request, metadata);
    uint32_t count = catalog_topic_count(broker);
    topic_answer *topics = kafka_metadata_response_topic_new(&request->arena, (int32_t)count);
    if (topics == NULL) return;
    int32_t at = 0;
    struct topic *topic = catalog_next(broker, NULL);
    for (; topic != NULL && at < (int32_t)count; topic = catalog_next(broker, topic)) {
        answer_topic(request, topic, lists, &topics[at++]);
    }
    answer->topics.items = topics;
    answer->topics.count = at;
}

/* What became of the topics that were to be created. */
struct creations {
    struct auto_create *topics;
    uint32_t count;
};

static enum status creation_of(const struct creations *creations, struct slice name,
                               uint32_t *cursor)
{
    /* They are in the order of the request: the next one, or none. */
    if (*cursor < creations->count && kafka_slice_equal(creations->topics[*cursor].name, name)) {
        return creations->topics[(*cursor)++].status;
    }
    bool valid = topic_name_is_valid((const char *)name.data, name.bytes, false);
    return valid ? STATUS_UNKNOWN_TOPIC : STATUS_INVALID_TOPIC;
}

static void answer_by_id(struct kafka_request *request, const struct uuid *id,
                         const struct kafka_replica_lists *lists, topic_answer *out)
{
    const struct topic *topic = catalog_find_uid(kafka_request_broker(request), id);
    if (topic != NULL) {
        answer_topic(request, topic, lists, out);
        return;
    }
    out->topic_id = *id;
    out->error_code =
        kafka_may_have_missed_topics(request) ? KAFKA_LEADER_NOT_AVAILABLE : KAFKA_UNKNOWN_TOPIC_ID;
}

static void answer_asked_topics(struct kafka_request *request,
                                const struct kafka_replica_lists *lists,
                                const struct creations *creations)
{
    const struct kafka_metadata_request *message = KAFKA_MESSAGE(request, metadata);
    struct kafka_metadata_response *answer = KAFKA_ANSWER(request, metadata);
    struct broker *broker = kafka_request_broker(request);
    int32_t count = message->topics.count;
    topic_answer *topics = kafka_metadata_response_topic_new(&request->arena, count);
    struct seen seen;
    kafka_request_seen(request, &seen, (size_t)count);
    if (request->arena.failed) return;
    answer->topics.items = topics;
    uint32_t cursor = 0;
    for (int32_t i = 0; i < count; i++) {
        const struct kafka_metadata_request_topic *asked = &message->topics.items[i];
        /* Java's admin client leaves the name empty, not null. */
        bool by_id = asked->name.data == NULL || !uuid_is_none(&asked->topic_id);
        struct slice key = by_id ? (struct slice){asked->topic_id.bytes, UUID_BYTES} : asked->name;
        if (seen_before(&seen, key, by_id)) continue;
        topic_answer *out = &topics[answer->topics.count++];
        if (by_id) {
            answer_by_id(request, &asked->topic_id, lists, out);
            continue;
        }
        enum status creation = creation_of(creations, asked->name, &cursor);
        const struct topic *topic =
            catalog_find(broker, (const char *)asked->name.data, asked->name.bytes);
        if (topic != NULL) {
            answer_topic(request, topic, lists, out);
        } else {
            out->name = asked->name;
            out->error_code = missing_error(request, creation);
        }
    }
}

static void answer_with(struct kafka_request *request, const struct creations *creations)
{
    const struct kafka_metadata_request *message = KAFKA_MESSAGE(request, metadata);
    struct kafka_metadata_response *answer = KAFKA_ANSWER(request, metadata);
    struct kafka_replica_lists lists = kafka_new_replica_lists(request);
    list_brokers(request);
    answer->cluster_id = kafka_cluster_id(request);
    answer->controller_id = kafka_leader_id(request);
    if (message->include_cluster_authorized_operations) {
        answer->cluster_authorized_operations = KAFKA_CLUSTER_OPERATIONS;
    }
    if (request->arena.failed) {
        /* kafka_finish() sees it */
    } else if (asks_for_all(request)) {
        answer_all_topics(request, &lists);
    } else {
        answer_asked_topics(request, &lists, creations);
    }
    kafka_finish(request);
}

/* ---- before the answer ---- */

static bool may_be_created(struct kafka_request *request, struct slice name)
{
    if (name.data == NULL || !topic_name_is_valid((const char *)name.data, name.bytes, false)) {
        return false;
    }
    const char *text = kafka_request_text(request, name);
    return text != NULL && !topic_name_is_internal(text) &&
           catalog_find(kafka_request_broker(request), text, name.bytes) == NULL;
}

static struct creations find_missing(struct kafka_request *request)
{
    const struct kafka_metadata_request *message = KAFKA_MESSAGE(request, metadata);
    const struct broker_settings *settings = broker_settings_of(kafka_request_broker(request));
    struct creations creations = {0};
    int32_t count = message->topics.count;
    if (count <= 0 || !message->allow_auto_topic_creation || !settings->auto_create_topics ||
        kafka_leader_id(request) < 0) {
        return creations;
    }
    struct seen seen;
    kafka_request_seen(request, &seen, (size_t)count);
    for (int32_t i = 0; i < count && !request->arena.failed; i++) {
        struct slice name = message->topics.items[i].name;
        if (!may_be_created(request, name) || seen_before(&seen, name, 0)) continue;
        if (creations.topics == NULL) {
            creations.topics =
                arena_new_array(&request->arena, (size_t)(count - i), sizeof(*creations.topics));
            if (creations.topics == NULL) return creations;
        }
        creations.topics[creations.count++] = (struct auto_create){name, STATUS_OK};
    }
    return creations;
}

static void created(struct kafka_request *request, struct auto_create *topics, uint32_t count)
{
    struct creations creations = {topics, count};
    answer_with(request, &creations);
}

/* A client that asks on one connection for ever would never hear of the leader from a broker that
 * is cut off from the others (librdkafka does): told once that none is known, the next time its
 * connection is closed, and it tries another broker. */
static bool is_left_alone(struct kafka_request *request)
{
    struct kafka_connection *connection = request->connection;
    if (connection == NULL) return false;
    if (kafka_leader_id(request) >= 0) {
        connection->heard_of_no_leader = false;
        return false;
    }
    bool again = connection->heard_of_no_leader;
    connection->heard_of_no_leader = true;
    return again;
}

static void leader_known(struct kafka_request *request)
{
    if (is_left_alone(request)) {
        kafka_finish_close(request, "still no leader known here");
        return;
    }
    struct creations missing = find_missing(request);
    if (missing.count == 0) {
        answer_with(request, &missing);
    } else {
        kafka_auto_create(request, missing.topics, missing.count, created);
    }
}

void metadata_handle(struct kafka_request *request)
{
    if (kafka_leader_id(request) >= 0) {
        leader_known(request);
    } else {
        kafka_wait_leader(request, kafka_request_settings(request)->leader_wait_us, leader_known);
    }
}
