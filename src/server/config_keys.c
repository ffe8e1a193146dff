/* config_keys.c: the table of configuration keys, and what was probably meant by one that is not in
 * it. */
#include "server/config_keys.h"

#include <stdbool.h>
#include <string.h>

#include "base/assert.h"
#include "base/edit_distance.h"
#include "broker/offsets.h"
#include "server/config.h"

#define AT(field) offsetof(struct server_config, field)
#define TEXT(path, field)                                                              \
    {                                                                                  \
        path, KEY_TEXT, AT(field), 0, sizeof(((struct server_config *)0)->field), NULL \
    }
#define SECRET(path, field)                                                              \
    {                                                                                    \
        path, KEY_SECRET, AT(field), 0, sizeof(((struct server_config *)0)->field), NULL \
    }
#define INT(path, field, low, high)               \
    {                                             \
        path, KEY_INT, AT(field), low, high, NULL \
    }
#define SECONDS(path, field, low, high)               \
    {                                                 \
        path, KEY_SECONDS, AT(field), low, high, NULL \
    }
#define MS(path, field, low, high)               \
    {                                            \
        path, KEY_MS, AT(field), low, high, NULL \
    }
#define BOOL(path, field)                     \
    {                                         \
        path, KEY_BOOL, AT(field), 0, 0, NULL \
    }
#define SECTION(path)                    \
    {                                    \
        path, KEY_SECTION, 0, 0, 0, NULL \
    }
#define IGNORED(path, why)              \
    {                                   \
        path, KEY_IGNORED, 0, 0, 0, why \
    }
#define TOPIC(path, key, unit)           \
    {                                    \
        path, KEY_TOPIC, 0, unit, 0, key \
    }
#define LATER(path, why)              \
    {                                 \
        path, KEY_LATER, 0, 0, 0, why \
    }
#define R   "Server.Replication."
#define F   "Server.Replication.Failover."
#define DAY 86400

static const struct config_key keys[] = {
    SECTION("Server"),
    TEXT("Server.Host", host),
    INT("Server.Port", port, 0, 65535),
    TEXT("Server.DataDir", data_dir),
    IGNORED("Server.StorageBackend", "there is one backend: Kafka's segment layout"),
    TEXT("Server.Acks", acks),
    INT("Server.MaxConnections", max_connections, 1, 1000000),
    INT("Server.MaxConnectionsPerIP", max_connections_per_ip, 1, 1000000),
    INT("Server.FdReserve", fd_reserve, 8, 10000),
    INT("Server.MaxFrameSize", max_frame_size, 1024, 104857600),
    INT("Server.MaxPendingBytes", max_pending_bytes, 65536, 1073741824),
    SECONDS("Server.SendDeadline", send_deadline_us, 1, DAY),
    SECONDS("Server.ReceiveDeadline", receive_deadline_us, 1, DAY),
    SECONDS("Server.HandshakeDeadline", handshake_deadline_us, 1, DAY),
    SECONDS("Server.PreAuthReadDeadline", pre_auth_read_deadline_us, 1, DAY),
    SECONDS("Server.IdleDeadline", idle_deadline_us, 1, DAY),
    SECONDS("Server.HeartbeatInterval", heartbeat_interval_us, 1, DAY),
    INT("Server.HeartbeatMissThreshold", heartbeat_miss_threshold, 1, 1000),
    INT("Server.MaxTopics", max_topics, 1, 100000),
    INT("Server.MaxListTopics", max_list_topics, 1, 100000),
    IGNORED("Server.ProducerExpirySeconds", "it is Server.Kafka.transactional.id.expiration.ms"),
    IGNORED("Server.ProducerExpiryCheckIntervalSeconds",
            "it is Server.Kafka.transactional.id.expiration.ms"),
    SECTION("Server.GroupCommit"),
    IGNORED("Server.GroupCommit.LingerMs", "a commit takes all that queued during the last one"),
    IGNORED("Server.GroupCommit.MaxWaiters", "a commit takes all that queued during the last one"),
    SECTION("Server.Dlq"),
    TEXT("Server.Dlq.Suffix", dead_letter_suffix),
    INT("Server.Dlq.MaxDeliveries", deliveries_max, 1, 65535),
    TEXT("Server.MetricsHost", metrics_host),
    INT("Server.MetricsPort", metrics_port, 0, 65535),
    SECTION("Server.MetricsAuth"),
    SECRET("Server.MetricsAuth.Token", metrics_token),
    LATER("Server.MetricsAuth.Basic", "use MetricsAuth.Token"),
    LATER("Server.Tls", "TLS comes with a later version: remove the block, or keep clients on a "
                        "trusted network"),
    LATER("Server.MetricsTls", "TLS comes with a later version: remove the block"),
    LATER("Server.Cluster", "not supported: use Server.Replication with a Failover block"),
    LATER("Server.Autobalance", "not supported: every replica holds every partition"),
    SECTION("Server.Memory"),
    INT("Server.Memory.CacheBytes", cache_bytes, 1048576, INT64_C(1) << 40),
    INT("Server.Memory.UnsyncedBytes", unsynced_bytes, 1048576, INT64_C(1) << 36),
    INT("Server.Memory.RequestBytes", request_bytes, 65536, INT64_C(1) << 40),
    INT("Server.Memory.AnswerBytes", answer_bytes, 65536, INT64_C(1) << 40),
    SECTION("Server.Kafka"),
    INT("Server.Kafka.MaxRequestSize", kafka_request_bytes_max, 65536, 2147483647),
    BOOL("Server.Kafka.auto.create.topics.enable", kafka_auto_create),
    BOOL("Server.Kafka.delete.topic.enable", kafka_delete_topics),
    INT("Server.Kafka.num.partitions", kafka_num_partitions, 1, 1024),
    INT("Server.Kafka.fetch.max.bytes", kafka_fetch_bytes_max, 1024, 2147483647),
    TEXT("Server.Kafka.broker.rack", kafka_rack),
    INT("Server.Kafka.transaction.max.timeout.ms", kafka_transaction_timeout_ms_max, 1, 2147483647),
    INT("Server.Kafka.producer.id.expiration.ms", kafka_producer_id_expiration_ms, 1,
        INT64_C(1) << 50),
    INT("Server.Kafka.transactional.id.expiration.ms", kafka_transactional_id_expiration_ms, 1,
        INT64_C(1) << 50),
    MS("Server.Kafka.log.retention.check.interval.ms", kafka_check_us, 100, 3600000),
    MS("Server.Kafka.group.initial.rebalance.delay.ms", kafka_group_delay_us, 0, 3600000),
    INT("Server.Kafka.group.min.session.timeout.ms", kafka_session_ms_min, 1, DAY * 1000),
    INT("Server.Kafka.group.max.session.timeout.ms", kafka_session_ms_max, 1, DAY * 1000),
    INT("Server.Kafka.group.consumer.heartbeat.interval.ms", kafka_consumer_heartbeat_ms, 100,
        3600000),
    INT("Server.Kafka.group.consumer.session.timeout.ms", kafka_consumer_session_ms, 1000,
        DAY * 1000),
    INT("Server.Kafka.group.consumer.max.size", kafka_consumer_size_max, 1,
        MODERN_GROUP_MEMBERS_MAX),
    TEXT("Server.Kafka.group.consumer.migration.policy", kafka_migration),
    INT("Server.Kafka.group.max.size", kafka_group_size_max, 1, CONSUMER_GROUP_MEMBERS_MAX),
    INT("Server.Kafka.offset.metadata.max.bytes", kafka_offset_metadata_bytes_max, 0,
        OFFSET_METADATA_BYTES_LIMIT),
    INT("Server.Kafka.offsets.retention.minutes", kafka_offsets_retention_minutes, 1, 2147483647),
    TOPIC("Server.Kafka.compression.gzip.level", "compression.gzip.level", 1),
    TOPIC("Server.Kafka.compression.lz4.level", "compression.lz4.level", 1),
    TOPIC("Server.Kafka.compression.type", "compression.type", 1),
    TOPIC("Server.Kafka.compression.zstd.level", "compression.zstd.level", 1),
    TOPIC("Server.Kafka.log.cleaner.delete.retention.ms", "delete.retention.ms", 1),
    TOPIC("Server.Kafka.log.cleaner.max.compaction.lag.ms", "max.compaction.lag.ms", 1),
    TOPIC("Server.Kafka.log.cleaner.min.cleanable.ratio", "min.cleanable.dirty.ratio", 1),
    TOPIC("Server.Kafka.log.cleaner.min.compaction.lag.ms", "min.compaction.lag.ms", 1),
    TOPIC("Server.Kafka.log.index.interval.bytes", "index.interval.bytes", 1),
    TOPIC("Server.Kafka.log.index.size.max.bytes", "segment.index.bytes", 1),
    TOPIC("Server.Kafka.log.message.timestamp.after.max.ms", "message.timestamp.after.max.ms", 1),
    TOPIC("Server.Kafka.log.message.timestamp.before.max.ms", "message.timestamp.before.max.ms", 1),
    TOPIC("Server.Kafka.log.message.timestamp.type", "message.timestamp.type", 1),
    TOPIC("Server.Kafka.log.retention.bytes", "retention.bytes", 1),
    TOPIC("Server.Kafka.log.retention.hours", "retention.ms", 3600000),
    TOPIC("Server.Kafka.log.retention.minutes", "retention.ms", 60000),
    TOPIC("Server.Kafka.log.retention.ms", "retention.ms", 1),
    TOPIC("Server.Kafka.log.roll.hours", "segment.ms", 3600000),
    TOPIC("Server.Kafka.log.roll.jitter.hours", "segment.jitter.ms", 3600000),
    TOPIC("Server.Kafka.log.roll.jitter.ms", "segment.jitter.ms", 1),
    TOPIC("Server.Kafka.log.roll.ms", "segment.ms", 1),
    TOPIC("Server.Kafka.log.segment.bytes", "segment.bytes", 1),
    TOPIC("Server.Kafka.message.max.bytes", "max.message.bytes", 1),
    SECTION("Server.Replication"),
    BOOL(R "Enabled", replication_enabled),
    INT(R "ReplicaId", replica_id, 0, 2147483647),
    TEXT(R "Role", role),
    TEXT(R "ReplicateHost", replication.replicate_host),
    INT(R "ReplicatePort", replicate_port, 1, 65535),
    TEXT(R "ClientAddress", client_address),
    {R "Token", KEY_TOKEN, 0, 0, 0, NULL},
    LATER(R "Tls", "TLS comes with a later version: remove the block"),
    SECONDS(R "AckTimeout", replication.ack_timeout_us, 0, DAY),
    INT(R "LagMax", replication.lag_max, 0, INT64_C(1) << 53),
    {R "Peers", KEY_PEERS, 0, 0, 0, NULL},
    {R "Failover", KEY_FAILOVER, 0, 0, 0, NULL},
    BOOL(F "Enabled", failover_enabled),
    SECONDS(F "IsrLagSeconds", replication.isr_lag_us, 0, DAY),
    MS(F "FollowerGoneMs", replication.follower_gone_us, 50, DAY * 1000),
    MS(F "DurableStallMs", replication.durable_stall_us, 50, DAY * 1000),
    INT(F "MinInsyncReplicas", min_insync, 1, GROUP_MEMBERS_MAX),
    MS(F "ElectionTimeoutMs", election_timeout_us, 50, 600000),
    MS(F "ElectionTimeoutMaxMs", election_timeout_max_us, 50, 1200000),
    MS(F "HeartbeatMs", replication.heartbeat_us, 5, 60000),
    MS(F "RpcTimeoutMs", replication.rpc_timeout_us, 10, 600000),
    SECONDS(F "CommitTimeoutSeconds", replication.commit_timeout_us, 0, DAY),
    INT(F "MaxLogEntries", max_log_entries, 2, 4096),
    MS(F "MaxFetchWaitMs", replication.max_fetch_wait_us, 1, 60000),
    INT(F "MaxFetchBytes", max_fetch_bytes, 1024, 104857600),
    SECTION("Auth"),
    TEXT("Auth.Username", username),
    SECRET("Auth.Password", password),
    SECRET("Auth.PasswordHash", password_hash),
    IGNORED("Auth.Superuser", "access control comes with a later version: the one user may do all"),
    LATER("Auth.Users", "several users come with a later version: give Auth.Username and "
                        "Auth.PasswordHash"),
    LATER("Auth.Quotas", "quotas come with a later version: remove the block"),
    IGNORED("Auth.MaxFailures", "bans come with a later version"),
    IGNORED("Auth.FailureWindow", "bans come with a later version"),
    IGNORED("Auth.BanDuration", "bans come with a later version"),
    SECTION("Logging"),
    TEXT("Logging.Level", log_level),
    TEXT("Logging.File", log_file),
    BOOL("Logging.LogToStderr", log_to_stderr),
    IGNORED("Gateway", "the gateway is a separate process"),
};

const struct config_key *config_keys(size_t *count)
{
    *count = ARRAY_COUNT(keys);
    return keys;
}

const struct config_key *config_key_find(const char *path)
{
    for (size_t i = 0; i < ARRAY_COUNT(keys); i++) {
        if (strcmp(keys[i].path, path) == 0) return &keys[i];
    }
    return NULL;
}

size_t config_section_bytes(const char *path)
{
    size_t longest = 0;
    for (size_t i = 0; i < ARRAY_COUNT(keys); i++) {
        size_t bytes = strlen(keys[i].path);
        if ((keys[i].type == KEY_SECTION || keys[i].type == KEY_FAILOVER) && bytes > longest &&
            strncmp(keys[i].path, path, bytes) == 0 && path[bytes] == '.') {
            longest = bytes;
        }
    }
    return longest;
}

const char *config_key_name(const char *path)
{
    size_t section = config_section_bytes(path);
    return section == 0 ? path : path + section + 1;
}

/* ---- unknown keys ---- */

/* Of the same section if one is near, else the same name elsewhere. */
const char *config_key_suggest(const char *path)
{
    size_t section = config_section_bytes(path);
    const char *name = config_key_name(path);
    const char *best = NULL;
    size_t best_distance = strlen(name) / 2 + 1;
    for (size_t i = 0; i < ARRAY_COUNT(keys); i++) {
        bool same_section = config_section_bytes(keys[i].path) == section &&
                            strncmp(keys[i].path, path, section) == 0;
        size_t distance = 2 * edit_distance(name, config_key_name(keys[i].path)) + !same_section;
        if (distance < 2 * best_distance) {
            best_distance = (distance + 1) / 2;
            best = keys[i].path;
        }
    }
    return best;
}
