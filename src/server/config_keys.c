/* config_keys.c: the table of configuration keys, and the walk that finds each key of a document in
 * it. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/edit_distance.h"
#include "broker/offsets.h"
#include "server/config.h"

enum key_type {
    KEY_INT,     /* int64_t within [low, high] */
    KEY_SECONDS, /* seconds, fractions allowed -> int64_t µs */
    KEY_MS,      /* integer ms -> int64_t µs */
    KEY_TEXT,    /* char[high] */
    KEY_BOOL,
    KEY_SECTION, /* an object of further keys */
    KEY_IGNORED, /* known, accepted, means nothing here: a warning */
    KEY_LATER,   /* comes with a later version: refused, with `text` */
    KEY_PEERS,
    KEY_TOKEN,
    KEY_FAILOVER, /* true, or a section */
};
struct key {
    const char *path;
    enum key_type type;
    size_t offset;
    int64_t low, high;
    const char *text;
};

#define AT(field) offsetof(struct server_config, field)
#define TEXT(path, field)                                                              \
    {                                                                                  \
        path, KEY_TEXT, AT(field), 0, sizeof(((struct server_config *)0)->field), NULL \
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
#define LATER(path, why)              \
    {                                 \
        path, KEY_LATER, 0, 0, 0, why \
    }
#define R   "Server.Replication."
#define F   "Server.Replication.Failover."
#define DAY 86400

static const struct key keys[] = {
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
    TEXT("Server.MetricsAuth.Token", metrics_token),
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
    TEXT("Auth.Password", password),
    TEXT("Auth.PasswordHash", password_hash),
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

static const struct key *find(const char *path)
{
    for (size_t i = 0; i < ARRAY_COUNT(keys); i++) {
        if (strcmp(keys[i].path, path) == 0) return &keys[i];
    }
    return NULL;
}

/* ---- unknown keys ---- */

/* The key that was probably meant: of the same section if one is near, else the same name
 * elsewhere. */
static const char *suggest(const char *path)
{
    const char *dot = strrchr(path, '.');
    const char *name = dot == NULL ? path : dot + 1;
    const char *best = NULL;
    size_t best_distance = strlen(name) / 2 + 1;
    for (size_t i = 0; i < ARRAY_COUNT(keys); i++) {
        const char *other_dot = strrchr(keys[i].path, '.');
        const char *other = other_dot == NULL ? keys[i].path : other_dot + 1;
        size_t section = other_dot == NULL ? 0 : (size_t)(other_dot - keys[i].path);
        size_t own_section = dot == NULL ? 0 : (size_t)(dot - path);
        bool same_section = section == own_section && strncmp(keys[i].path, path, section) == 0;
        size_t d = 2 * edit_distance(name, other) + !same_section;
        if (d < 2 * best_distance) {
            best_distance = (d + 1) / 2;
            best = keys[i].path;
        }
    }
    return best;
}

static enum status unknown_key(const char *path, struct error *error)
{
    const char *meant = suggest(path);
    if (meant == NULL) {
        return error_set(error, STATUS_INVALID_CONFIG,
                         "%s: unknown key (remove it; docs/configuration.md lists all keys)", path);
    }
    return error_set(error, STATUS_INVALID_CONFIG, "%s: unknown key (did you mean %s?)", path,
                     meant);
}

/* ---- values ---- */

static enum status wrong_type(const char *path, const char *expected, struct error *error)
{
    return error_set(error, STATUS_INVALID_CONFIG, "%s: expected %s", path, expected);
}

static enum status read_integer(const struct key *key, const json_t *value, int64_t scale,
                                int64_t *out, struct error *error)
{
    if (!json_is_integer(value)) return wrong_type(key->path, "an integer", error);
    int64_t number = json_integer_value(value);
    if (number < key->low || number > key->high) {
        return error_set(error, STATUS_INVALID_CONFIG, "%s: %lld is not within %lld..%lld",
                         key->path, (long long)number, (long long)key->low, (long long)key->high);
    }
    *out = number * scale;
    return STATUS_OK;
}

static enum status read_seconds(const struct key *key, const json_t *value, int64_t *out,
                                struct error *error)
{
    if (!json_is_number(value)) return wrong_type(key->path, "a number of seconds", error);
    double seconds = json_number_value(value);
    if (!isfinite(seconds) || seconds <= 0 || seconds > (double)key->high) {
        return error_set(error, STATUS_INVALID_CONFIG,
                         "%s: %g is not a time above 0 and up to %lld seconds", key->path, seconds,
                         (long long)key->high);
    }
    *out = (int64_t)llround(seconds * 1e6);
    return STATUS_OK;
}

static enum status read_text(const struct key *key, const json_t *value, char *out,
                             struct error *error)
{
    if (!json_is_string(value)) return wrong_type(key->path, "text", error);
    size_t bytes = json_string_length(value);
    if (bytes >= (size_t)key->high || strlen(json_string_value(value)) != bytes) {
        return error_set(error, STATUS_INVALID_CONFIG, "%s: longer than %lld bytes", key->path,
                         (long long)key->high - 1);
    }
    memcpy(out, json_string_value(value), bytes + 1);
    return STATUS_OK;
}

static enum status read_section(const json_t *object, const char *path,
                                struct server_config *config, struct error *error);

static enum status read_failover(const struct key *key, const json_t *value,
                                 struct server_config *config, struct error *error)
{
    config->failover_present = true;
    if (json_is_boolean(value)) {
        config->failover_enabled = json_is_true(value);
        return STATUS_OK;
    }
    if (!json_is_object(value)) return wrong_type(key->path, "true, or an object", error);
    config->failover_enabled = true; /* unless Enabled says otherwise */
    return read_section(value, key->path, config, error);
}

static enum status read_value(const struct key *key, const json_t *value,
                              struct server_config *config, struct error *error)
{
    char *at = (char *)config + key->offset;
    switch (key->type) {
    case KEY_INT: return read_integer(key, value, 1, (int64_t *)(void *)at, error);
    case KEY_MS: return read_integer(key, value, 1000, (int64_t *)(void *)at, error);
    case KEY_SECONDS: return read_seconds(key, value, (int64_t *)(void *)at, error);
    case KEY_TEXT: return read_text(key, value, at, error);
    case KEY_BOOL:
        if (!json_is_boolean(value)) return wrong_type(key->path, "true or false", error);
        *(bool *)at = json_is_true(value);
        return STATUS_OK;
    case KEY_SECTION:
        if (!json_is_object(value)) return wrong_type(key->path, "an object", error);
        return read_section(value, key->path, config, error);
    case KEY_IGNORED:
        config_warn(config, "%s has no effect: %s", key->path, key->text);
        return STATUS_OK;
    case KEY_LATER:
        return error_set(error, STATUS_INVALID_CONFIG, "%s: not supported (%s)", key->path,
                         key->text);
    case KEY_PEERS: return config_read_peers(value, config, error);
    case KEY_TOKEN: return config_read_token(value, config, error);
    case KEY_FAILOVER: return read_failover(key, value, config, error);
    }
    return STATUS_OK;
}

static enum status read_section(const json_t *object, const char *path,
                                struct server_config *config, struct error *error)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)object, name, value)
    {
        char full[512];
        if (name[0] == '_') continue;
        snprintf(full, sizeof(full), "%s%s%s", path, path[0] == '\0' ? "" : ".", name);
        const struct key *key = find(full);
        if (key == NULL) return unknown_key(full, error);
        enum status status = read_value(key, value, config, error);
        if (status != STATUS_OK) return status;
    }
    return STATUS_OK;
}

enum status config_read_keys(const json_t *root, struct server_config *config, struct error *error)
{
    if (!json_is_object(root)) {
        return error_set(error, STATUS_INVALID_CONFIG, "the document must be one object");
    }
    return read_section(root, "", config, error);
}
