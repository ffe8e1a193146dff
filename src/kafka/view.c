#include "kafka/view.h"

#include "kafka/kafka_state.h"

bool kafka_placement_is_valid(const struct kafka_request *request, const int32_t *brokers,
                              int32_t count)
{
    const struct group_view *view = kafka_view(request);
    if (count < 1 || count > (int32_t)view->member_count) return false;
    for (int32_t i = 0; i < count; i++) {
        if (kafka_member_find(view, brokers[i]) == NULL) return false;
        for (int32_t k = 0; k < i; k++) {
            if (brokers[k] == brokers[i]) return false;
        }
    }
    return true;
}

const struct group_view *kafka_view(const struct kafka_request *request)
{
    return broker_group_view(request->kafka->broker);
}

int32_t kafka_leader_id(const struct kafka_request *request)
{
    const struct group_view *view = kafka_view(request);
    if (view->leader_id == view->self_id && !view->serving) return -1;
    return view->leader_id;
}

const struct group_member *kafka_member_find(const struct group_view *view, int32_t id)
{
    for (uint32_t i = 0; i < view->member_count; i++) {
        if (view->members[i].id == id) return &view->members[i];
    }
    return NULL;
}

const struct group_member *kafka_leader_elsewhere(const struct kafka_request *request)
{
    const struct group_view *view = kafka_view(request);
    if (view->leader_id < 0 || view->leader_id == view->self_id) return NULL;
    return kafka_member_find(view, view->leader_id);
}

struct kafka_node kafka_node_of(const struct kafka_request *request,
                                const struct group_member *member)
{
    const struct kafka_settings *settings = &request->kafka->settings;
    const struct kafka_connection *connection = request->connection;
    if (member->client_host[0] != '\0') {
        return (struct kafka_node){member->id, kafka_text(member->client_host),
                                   member->client_port};
    }
    bool self = member->id == kafka_view(request)->self_id;
    if (self && settings->advertised_host != NULL) {
        return (struct kafka_node){member->id, kafka_text(settings->advertised_host),
                                   settings->advertised_port};
    }
    if (self && connection != NULL && connection->local_host != NULL) {
        return (struct kafka_node){member->id, kafka_text(connection->local_host),
                                   connection->local_port};
    }
    return (struct kafka_node){member->id, kafka_text(""), 0};
}

struct slice kafka_cluster_id(struct kafka_request *request)
{
    char text[UUID_TEXT_BYTES];
    const struct group_view *view = kafka_view(request);
    if (uuid_is_none(&view->group)) return KAFKA_NULL;
    return arena_copy(&request->arena, kafka_text(uuid_format(&view->group, text)));
}

struct kafka_replica_lists kafka_new_replica_lists(struct kafka_request *request)
{
    const struct group_view *view = kafka_view(request);
    struct kafka_replica_lists lists = {
        .all = arena_new_array(&request->arena, view->member_count, sizeof(int32_t)),
        .in_sync = arena_new_array(&request->arena, view->isr_count, sizeof(int32_t)),
        .all_count = (int32_t)view->member_count,
        .in_sync_count = (int32_t)view->isr_count,
    };
    if (request->arena.failed) return (struct kafka_replica_lists){0};
    for (uint32_t i = 0; i < view->member_count; i++)
        lists.all[i] = view->members[i].id;
    for (uint32_t i = 0; i < view->isr_count; i++)
        lists.in_sync[i] = view->isr[i];
    return lists;
}

bool kafka_may_have_missed_topics(const struct kafka_request *request)
{
    const struct group_view *view = kafka_view(request);
    if (view->serving) return false;
    /* not even the internal ones */
    if (catalog_topic_count(kafka_request_broker(request)) == 0) return true;
    for (uint32_t i = 0; i < view->isr_count; i++) {
        if (view->isr[i] == view->self_id) return false;
    }
    return true;
}
