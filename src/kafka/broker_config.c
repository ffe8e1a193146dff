#include "kafka/broker_config.h"

#include "base/assert.h"
#include "kafka/kafka_state.h"
#include "kafka/view.h"

static struct slice number(struct kafka_request *request, int64_t value)
{
    return arena_printf(&request->arena, "%lld", (long long)value);
}

static struct slice boolean(bool value)
{
    return kafka_text(value ? "true" : "false");
}

static struct slice topic_default(const char *name)
{
    const struct topic_config_key *key = topic_config_find(name);
    return kafka_text(key != NULL ? key->default_value : "");
}

static struct slice listener(struct kafka_request *request)
{
    const struct group_view *view = kafka_view(request);
    const struct group_member *self = kafka_member_find(view, view->self_id);
    if (self == NULL) return kafka_text("");
    struct kafka_node node = kafka_node_of(request, self);
    return arena_printf(&request->arena, "PLAINTEXT://%.*s:%d", (int)node.host.bytes,
                        (const char *)node.host.data, node.port);
}

const struct broker_config *broker_configs(struct kafka_request *request, uint32_t *count)
{
    const struct group_view *view = kafka_view(request);
    const struct broker_settings *broker = broker_settings_of(kafka_request_broker(request));
    const struct kafka_settings *settings = kafka_request_settings(request);
    struct slice replicas = number(request, view->member_count);
    struct slice self = number(request, view->self_id);
    struct slice internal = number(request, broker->internal_partitions);
    struct slice address = listener(request);
    const struct broker_config all[] = {
        {"advertised.listeners", KAFKA_CONFIG_STRING, address},
        {"auto.create.topics.enable", KAFKA_CONFIG_BOOLEAN, boolean(broker->auto_create_topics)},
        {"broker.id", KAFKA_CONFIG_INT, self},
        {"broker.rack", KAFKA_CONFIG_STRING, kafka_text(settings->rack)},
        {"compression.type", KAFKA_CONFIG_STRING, topic_default("compression.type")},
        {"default.replication.factor", KAFKA_CONFIG_INT, replicas},
        {"delete.topic.enable", KAFKA_CONFIG_BOOLEAN, boolean(settings->delete_topic_enable)},
        {"fetch.max.bytes", KAFKA_CONFIG_INT, number(request, broker->fetch_bytes_max)},
        {"group.consumer.assignors", KAFKA_CONFIG_LIST, kafka_text("uniform,range")},
        {"group.consumer.heartbeat.interval.ms", KAFKA_CONFIG_INT,
         number(request, broker->modern_groups.heartbeat_interval_ms)},
        {"group.consumer.max.size", KAFKA_CONFIG_INT,
         number(request, broker->modern_groups.size_max)},
        {"group.consumer.migration.policy", KAFKA_CONFIG_STRING,
         kafka_text(modern_migration_name(broker->modern_groups.migration))},
        {"group.consumer.session.timeout.ms", KAFKA_CONFIG_INT,
         number(request, broker->modern_groups.session_timeout_ms)},
        {"group.coordinator.rebalance.protocols", KAFKA_CONFIG_LIST,
         kafka_text("classic,consumer")},
        {"group.initial.rebalance.delay.ms", KAFKA_CONFIG_INT,
         number(request, broker->groups.initial_delay_us / 1000)},
        {"group.max.session.timeout.ms", KAFKA_CONFIG_INT,
         number(request, broker->groups.session_timeout_ms_max)},
        {"group.max.size", KAFKA_CONFIG_INT, number(request, broker->groups.members_max)},
        {"group.min.session.timeout.ms", KAFKA_CONFIG_INT,
         number(request, broker->groups.session_timeout_ms_min)},
        {"listeners", KAFKA_CONFIG_STRING, address},
        {"log.cleanup.policy", KAFKA_CONFIG_LIST, topic_default("cleanup.policy")},
        {"log.dirs", KAFKA_CONFIG_STRING, kafka_text(settings->data_dir)},
        {"log.retention.bytes", KAFKA_CONFIG_LONG, topic_default("retention.bytes")},
        {"log.retention.ms", KAFKA_CONFIG_LONG, topic_default("retention.ms")},
        {"log.segment.bytes", KAFKA_CONFIG_INT, topic_default("segment.bytes")},
        {"message.max.bytes", KAFKA_CONFIG_INT, topic_default("max.message.bytes")},
        {"min.insync.replicas", KAFKA_CONFIG_INT, number(request, view->min_insync)},
        {"node.id", KAFKA_CONFIG_INT, self},
        {"num.partitions", KAFKA_CONFIG_INT, number(request, broker->default_partitions)},
        {"offset.metadata.max.bytes", KAFKA_CONFIG_INT,
         number(request, broker->offset_metadata_bytes_max)},
        {"offsets.retention.minutes", KAFKA_CONFIG_INT,
         number(request, broker->offsets_retention_ms / 60000)},
        {"offsets.topic.num.partitions", KAFKA_CONFIG_INT, internal},
        {"offsets.topic.replication.factor", KAFKA_CONFIG_INT, replicas},
        {"producer.id.expiration.ms", KAFKA_CONFIG_INT,
         number(request, broker->producer_id_expiration_ms)},
        {"socket.request.max.bytes", KAFKA_CONFIG_INT,
         number(request, (int64_t)settings->request_bytes_max)},
        {"transaction.max.timeout.ms", KAFKA_CONFIG_INT,
         number(request, broker->transaction_timeout_ms_max)},
        {"transaction.state.log.num.partitions", KAFKA_CONFIG_INT, internal},
        {"transaction.state.log.replication.factor", KAFKA_CONFIG_INT, replicas},
        {"transactional.id.expiration.ms", KAFKA_CONFIG_INT,
         number(request, broker->transactional_id_expiration_ms)},
        {"unclean.leader.election.enable", KAFKA_CONFIG_BOOLEAN, boolean(false)},
    };
    struct broker_config *copy = arena_new(&request->arena, sizeof(all));
    if (copy == NULL || request->arena.failed) return NULL;
    memcpy(copy, all, sizeof(all));
    *count = ARRAY_COUNT(all);
    return copy;
}
