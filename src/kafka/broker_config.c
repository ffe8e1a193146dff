#include "kafka/broker_config.h"

#include <stdlib.h>
#include <string.h>

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

static struct slice listener(struct kafka_request *request)
{
    const struct group_view *view = kafka_view(request);
    const struct group_member *self = kafka_member_find(view, view->self_id);
    if (self == NULL) return kafka_text("");
    struct kafka_node node = kafka_node_of(request, self);
    return arena_printf(&request->arena, "PLAINTEXT://%.*s:%d", (int)node.host.bytes,
                        (const char *)node.host.data, node.port);
}

struct slice broker_topic_default(struct kafka_request *request, const struct topic_config *config,
                                  const struct topic_config_key *key)
{
    /* The group's minimum holds for every topic. */
    if (strcmp(key->name, "min.insync.replicas") == 0 && kafka_view(request)->min_insync > 1) {
        return number(request, kafka_view(request)->min_insync);
    }
    if (!topic_config_has_default(config, key->name)) return KAFKA_NULL;
    return kafka_text(topic_config_get(config->defaults, key->name));
}

/* The broker's side of the topic settings, its defaults for those that say nothing. */
static uint32_t put_topic_defaults(struct kafka_request *request, struct broker_config *out)
{
    const struct topic_config *defaults =
        broker_settings_of(kafka_request_broker(request))->topic_defaults;
    uint32_t key_count, count = 0;
    const struct topic_config_key *keys = topic_config_keys(&key_count);
    for (uint32_t i = 0; i < key_count; i++) {
        const struct topic_config_key *key = &keys[i];
        if (key->broker_name == NULL) continue;
        const char *value =
            defaults != NULL ? topic_config_get(defaults, key->name) : key->default_value;
        out[count++] = (struct broker_config){key->broker_name, (enum kafka_config_type)key->type,
                                              kafka_text(value), kafka_text(key->default_value),
                                              key->documentation};
    }
    return count;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct broker_config *)a)->name, ((const struct broker_config *)b)->name);
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
    const struct slice none = KAFKA_NULL;
    const struct broker_config own[] = {
        {"advertised.listeners", KAFKA_CONFIG_STRING, address, none,
         "Where this broker tells clients to find it."},
        {"auto.create.topics.enable", KAFKA_CONFIG_BOOLEAN, boolean(broker->auto_create_topics),
         kafka_text("true"), "Whether a topic that a client names and that is not there is made."},
        {"broker.id", KAFKA_CONFIG_INT, self, none, "The number of this broker: its ReplicaId."},
        {"broker.rack", KAFKA_CONFIG_STRING, kafka_text(settings->rack), none, "Told to clients."},
        {"default.replication.factor", KAFKA_CONFIG_INT, replicas, none,
         "Every broker holds every partition."},
        {"delete.topic.enable", KAFKA_CONFIG_BOOLEAN, boolean(settings->delete_topic_enable),
         kafka_text("true"), "Whether clients may delete topics."},
        {"fetch.max.bytes", KAFKA_CONFIG_INT, number(request, broker->fetch_bytes_max),
         kafka_text("57671680"), "Most bytes in one answer to a fetch."},
        {"group.consumer.assignors", KAFKA_CONFIG_LIST, kafka_text("uniform,range"),
         kafka_text("uniform,range"),
         "What assigns partitions in groups of the new consumer protocol; the first is the "
         "default."},
        {"group.consumer.heartbeat.interval.ms", KAFKA_CONFIG_INT,
         number(request, broker->modern_groups.heartbeat_interval_ms), kafka_text("5000"),
         "How often members of the new consumer protocol are told to report."},
        {"group.consumer.max.size", KAFKA_CONFIG_INT,
         number(request, broker->modern_groups.size_max), none,
         "Members of one group of the new consumer protocol."},
        {"group.consumer.migration.policy", KAFKA_CONFIG_STRING,
         kafka_text(modern_migration_name(broker->modern_groups.migration)),
         kafka_text("bidirectional"), "Which groups with members may move to the other protocol."},
        {"group.consumer.session.timeout.ms", KAFKA_CONFIG_INT,
         number(request, broker->modern_groups.session_timeout_ms), kafka_text("45000"),
         "How long a member of the new consumer protocol may be silent."},
        {"group.coordinator.rebalance.protocols", KAFKA_CONFIG_LIST, kafka_text("classic,consumer"),
         kafka_text("classic,consumer"), "The group protocols that are spoken."},
        {"group.initial.rebalance.delay.ms", KAFKA_CONFIG_INT,
         number(request, broker->groups.initial_delay_us / 1000), kafka_text("3000"),
         "How long the first members of an empty group wait for others."},
        {"group.max.session.timeout.ms", KAFKA_CONFIG_INT,
         number(request, broker->groups.session_timeout_ms_max), kafka_text("1800000"),
         "The longest session time-out that a member may ask for."},
        {"group.max.size", KAFKA_CONFIG_INT, number(request, broker->groups.members_max), none,
         "Members of one group."},
        {"group.min.session.timeout.ms", KAFKA_CONFIG_INT,
         number(request, broker->groups.session_timeout_ms_min), kafka_text("6000"),
         "The shortest session time-out that a member may ask for."},
        {"listeners", KAFKA_CONFIG_STRING, address, none,
         "Where this broker listens, as clients see it."},
        {"log.cleanup.policy", KAFKA_CONFIG_LIST, kafka_text("delete"), kafka_text("delete"),
         "Of topics that do not say otherwise; it cannot be set."},
        {"log.dirs", KAFKA_CONFIG_STRING, kafka_text(settings->data_dir), none,
         "Where the logs are: DataDir."},
        {"log.retention.check.interval.ms", KAFKA_CONFIG_LONG,
         number(request, broker->retention_check_us / 1000), kafka_text("30000"),
         "How often what goes by age is looked for. Kafka: every 300000."},
        {"min.insync.replicas", KAFKA_CONFIG_INT, number(request, view->min_insync),
         kafka_text("1"),
         "Replicas in sync that acks=all needs: MinInsyncReplicas. A topic can raise it."},
        {"node.id", KAFKA_CONFIG_INT, self, none, "The number of this broker: its ReplicaId."},
        {"num.partitions", KAFKA_CONFIG_INT, number(request, broker->default_partitions),
         kafka_text("1"), "Partitions of topics that are made without a number."},
        {"offset.metadata.max.bytes", KAFKA_CONFIG_INT,
         number(request, broker->offset_metadata_bytes_max), kafka_text("4096"),
         "Text that may be committed with an offset."},
        {"offsets.retention.minutes", KAFKA_CONFIG_INT,
         number(request, broker->offsets_retention_ms / 60000), kafka_text("10080"),
         "How long the offsets of a group without members are kept."},
        {"offsets.topic.num.partitions", KAFKA_CONFIG_INT, internal, none,
         "Partitions of __consumer_offsets."},
        {"offsets.topic.replication.factor", KAFKA_CONFIG_INT, replicas, none,
         "Every broker holds every partition."},
        {"producer.id.expiration.ms", KAFKA_CONFIG_INT,
         number(request, broker->producer_id_expiration_ms), kafka_text("86400000"),
         "How long a partition remembers an idempotent producer that is silent."},
        {"socket.request.max.bytes", KAFKA_CONFIG_INT,
         number(request, (int64_t)settings->request_bytes_max), kafka_text("104857600"),
         "The largest request: MaxRequestSize."},
        {"transaction.max.timeout.ms", KAFKA_CONFIG_INT,
         number(request, broker->transaction_timeout_ms_max), kafka_text("900000"),
         "The longest transaction.timeout.ms that a producer may ask for."},
        {"transaction.state.log.num.partitions", KAFKA_CONFIG_INT, internal, none,
         "Partitions of __transaction_state."},
        {"transaction.state.log.replication.factor", KAFKA_CONFIG_INT, replicas, none,
         "Every broker holds every partition."},
        {"transactional.id.expiration.ms", KAFKA_CONFIG_INT,
         number(request, broker->transactional_id_expiration_ms), kafka_text("604800000"),
         "How long a transactional id that nobody uses is remembered."},
        {"unclean.leader.election.enable", KAFKA_CONFIG_BOOLEAN, boolean(false),
         kafka_text("false"), "Only false: a replica that is not in sync never leads."},
    };
    uint32_t topic_keys;
    topic_config_keys(&topic_keys);
    struct broker_config *all = arena_new(&request->arena, sizeof(own) + topic_keys * sizeof(*all));
    if (all == NULL || request->arena.failed) return NULL;
    memcpy(all, own, sizeof(own));
    *count = ARRAY_COUNT(own) + put_topic_defaults(request, all + ARRAY_COUNT(own));
    qsort(all, *count, sizeof(*all), by_name);
    return all;
}
