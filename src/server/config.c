/* config.c: see config.h. */
#include "server/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/json.h"
#include "base/slice.h"
#include "io/file_system.h"
#include "native/password.h"

#define REQUEST_BYTES_DEFAULT (INT64_C(256) << 20)
#define DESCRIPTORS_MAX       1048576
#define CONFIG_BYTES_MAX      (4u << 20)
#define S                     INT64_C(1000000)

void config_warn(struct server_config *config, const char *format, ...)
{
    if (config->warning_count == CONFIG_WARNINGS_MAX) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(config->warnings[config->warning_count++], sizeof(config->warnings[0]), format,
              arguments);
    va_end(arguments);
}

static void set_defaults(struct server_config *config)
{
    memset(config, 0, sizeof(*config));
    snprintf(config->host, sizeof(config->host), "0.0.0.0");
    config->port = 9092;
    snprintf(config->data_dir, sizeof(config->data_dir), "./data_server");
    config->max_connections = config->max_connections_per_ip = -1;
    config->fd_reserve = 64;
    config->max_frame_size = 1 << 20;
    config->max_pending_bytes = 16 << 20;
    config->send_deadline_us = 30 * S;
    config->receive_deadline_us = 60 * S;
    config->handshake_deadline_us = config->pre_auth_read_deadline_us = 5 * S;
    config->idle_deadline_us = 60 * S;
    config->heartbeat_interval_us = 30 * S;
    config->heartbeat_miss_threshold = 3;
    config->max_topics = 1024;
    config->max_list_topics = -1;
    snprintf(config->dead_letter_suffix, sizeof(config->dead_letter_suffix), ".dlq");
    config->deliveries_max = 3;
    snprintf(config->metrics_host, sizeof(config->metrics_host), "127.0.0.1");
    config->metrics_port = 9090;
    config->cache_bytes = 64 << 20;
    config->unsynced_bytes = 64 << 20;
    config->request_bytes = -1;
    config->answer_bytes = 256 << 20;
    config->kafka_request_bytes_max = 104857600;
    config->kafka_num_partitions = 1;
    config->kafka_fetch_bytes_max = 57671680;
    config->kafka_transaction_timeout_ms_max = 900000;
    config->kafka_transactional_id_expiration_ms = 604800000;
    config->kafka_producer_id_expiration_ms = 86400000;
    config->kafka_auto_create = config->kafka_delete_topics = true;
    config->kafka_group_delay_us = 3000000;
    config->kafka_check_us = 30000000;
    config->kafka_group_size_max = CONSUMER_GROUP_MEMBERS_MAX;
    config->kafka_session_ms_min = 6000;
    config->kafka_session_ms_max = 1800000;
    config->kafka_consumer_heartbeat_ms = 5000;
    config->kafka_consumer_session_ms = 45000;
    config->kafka_consumer_size_max = 1000;
    snprintf(config->kafka_migration, sizeof(config->kafka_migration), "%s",
             modern_migration_name(MODERN_MIGRATION_BIDIRECTIONAL));
    config->kafka_offset_metadata_bytes_max = 4096;
    config->kafka_offsets_retention_minutes = 10080;
    snprintf(config->role, sizeof(config->role), "leader");
    replication_config_default(&config->replication, 1);
    snprintf(config->replication.replicate_host, sizeof(config->replication.replicate_host),
             "127.0.0.1");
    config->replica_id = 1;
    config->replicate_port = -1;
    config->election_timeout_us = config->election_timeout_max_us = -1;
    config->min_insync = config->max_log_entries = config->max_fetch_bytes = -1;
    snprintf(config->log_level, sizeof(config->log_level), "INFO");
    config->log_to_stderr = true;
}

static enum status check_user(struct server_config *config, struct error *error)
{
    struct native_login login;
    if (config->username[0] == '\0') {
        if (config->password[0] == '\0' && config->password_hash[0] == '\0') return STATUS_OK;
        return error_set(error, STATUS_INVALID_CONFIG,
                         "Auth.Username: missing (a password is given)");
    }
    if ((config->password[0] != '\0') == (config->password_hash[0] != '\0')) {
        return error_set(error, STATUS_INVALID_CONFIG,
                         "Auth: give either Password or PasswordHash with Username");
    }
    struct native_user user = {
        .name = config->username,
        .password = config->password[0] == '\0' ? NULL : config->password,
        .password_hash = config->password_hash[0] == '\0' ? NULL : config->password_hash,
    };
    struct error why;
    if (native_login_init(&login, &user, &why) != STATUS_OK) {
        return error_set(error, STATUS_INVALID_CONFIG, "Auth.PasswordHash: %s", why.text);
    }
    native_login_deinit(&login);
    config_warn(config, "Auth is set, so every Kafka client is refused (there is no SASL yet) and "
                        "only native clients get in: leave Auth out if Kafka clients are to come");
    if (user.password != NULL) {
        config_warn(config, "Auth.Password is plain text: give Auth.PasswordHash instead (`moonmq "
                            "hash` makes it)");
    }
    return STATUS_OK;
}

static enum status check_groups(const struct server_config *config, struct error *error)
{
    enum modern_migration migration;
    if (!modern_migration_find(slice_of_text(config->kafka_migration), &migration))
        return error_set(error, STATUS_INVALID_CONFIG,
                         "Server.Kafka.group.consumer.migration.policy: \"%s\" is none of "
                         "bidirectional, upgrade, downgrade, disabled",
                         config->kafka_migration);
    if (config->kafka_session_ms_min <= config->kafka_session_ms_max) return STATUS_OK;
    return error_set(error, STATUS_INVALID_CONFIG,
                     "Server.Kafka.group.min.session.timeout.ms: %lld is above "
                     "group.max.session.timeout.ms, %lld: no time-out would do",
                     (long long)config->kafka_session_ms_min,
                     (long long)config->kafka_session_ms_max);
}

static enum status check_topic_defaults(const struct server_config *config, struct error *error)
{
    struct topic_config defaults;
    struct error detail = {0};
    enum status status = config_topic_defaults(config, &defaults, &detail);
    topic_config_deinit(&defaults);
    if (status == STATUS_OK) return STATUS_OK;
    return error_set(error, STATUS_INVALID_CONFIG,
                     "Server.Kafka.log.cleaner.min.compaction.lag.ms: of topics, %s", detail.text);
}

static bool same_place(const char *host, const char *other)
{
    static const char *const any[] = {"", "0.0.0.0", "::", "*"};
    for (size_t i = 0; i < ARRAY_COUNT(any); i++) {
        if (strcmp(host, any[i]) == 0 || strcmp(other, any[i]) == 0) return true;
    }
    return strcmp(host, other) == 0;
}

/* One port cannot be listened on for two things. */
static enum status check_ports(const struct server_config *config, struct error *error)
{
    const struct replication_config *replication = &config->replication;
    const struct {
        const char *key, *host;
        int64_t port;
    } listeners[] = {
        {"Server.Port", config->host, config->port},
        {"Server.MetricsPort", config->metrics_host, config->metrics_port},
        {"Server.Replication.ReplicatePort", replication->replicate_host,
         replication_has_port(replication) ? replication->replicate_port : 0},
    };
    for (size_t i = 1; i < ARRAY_COUNT(listeners); i++) {
        for (size_t k = 0; k < i; k++) {
            if (listeners[i].port == 0 || listeners[i].port != listeners[k].port ||
                !same_place(listeners[i].host, listeners[k].host)) {
                continue;
            }
            return error_set(error, STATUS_INVALID_CONFIG,
                             "%s: %lld is taken by %s (each listens on a port of its own)",
                             listeners[i].key, (long long)listeners[i].port, listeners[k].key);
        }
    }
    return STATUS_OK;
}

int64_t config_connections_max(const struct server_config *config, uint64_t descriptors)
{
    int64_t all = descriptors > DESCRIPTORS_MAX ? DESCRIPTORS_MAX : (int64_t)descriptors;
    int64_t most =
        (all - config->fd_reserve) / 2; /* the other half is for log files and replicas */
    if (most < 32) return 0;
    int64_t asked = config->max_connections;
    return asked > 0 && asked < most ? asked : most;
}

size_t config_largest_frame_bytes(const struct server_config *config)
{
    int64_t largest = config->max_frame_size > config->kafka_request_bytes_max
                          ? config->max_frame_size
                          : config->kafka_request_bytes_max;
    return (size_t)largest + 4;
}

/* By default there is room for two of the largest at once. */
static enum status finish_memory(struct server_config *config, struct error *error)
{
    int64_t largest = (int64_t)config_largest_frame_bytes(config);
    if (config->request_bytes < 0) {
        config->request_bytes =
            2 * largest > REQUEST_BYTES_DEFAULT ? 2 * largest : REQUEST_BYTES_DEFAULT;
    }
    if (config->request_bytes >= largest) return STATUS_OK;
    return error_set(error, STATUS_INVALID_CONFIG,
                     "Server.Memory.RequestBytes: %lld does not hold one request of %lld bytes "
                     "(raise it, or lower Server.Kafka.MaxRequestSize and Server.MaxFrameSize)",
                     (long long)config->request_bytes, (long long)largest);
}

static enum status finish(struct server_config *config, struct error *error)
{
    enum log_level level;
    if (config->acks[0] != '\0' && strcmp(config->acks, "none") != 0 &&
        strcmp(config->acks, "leader") != 0 && strcmp(config->acks, "all") != 0) {
        return error_set(error, STATUS_INVALID_CONFIG,
                         "Server.Acks: \"%s\" is none of none, leader, all", config->acks);
    }
    if (!log_level_parse(config->log_level, &level)) {
        return error_set(error, STATUS_INVALID_CONFIG,
                         "Logging.Level: \"%s\" is none of DEBUG, INFO, WARN, ERROR",
                         config->log_level);
    }
    if (!config->log_to_stderr && config->log_file[0] == '\0') {
        config_warn(config,
                    "Logging.LogToStderr is false and Logging.File is not given: the broker "
                    "logs nothing");
    }
    if (config->data_dir[0] == '\0') {
        return error_set(error, STATUS_INVALID_CONFIG,
                         "Server.DataDir: empty (name the directory that holds the log)");
    }
    if (!topic_name_is_valid(config->dead_letter_suffix, strlen(config->dead_letter_suffix),
                             false)) {
        return error_set(error, STATUS_INVALID_CONFIG,
                         "Server.Dlq.Suffix: \"%s\" cannot end the name of a topic (letters, "
                         "digits, '.', '_' and '-')",
                         config->dead_letter_suffix);
    }
    /* A list that is cut says nothing of it: by default all there may be are in it. */
    if (config->max_list_topics < 0) config->max_list_topics = config->max_topics;
    enum status status = check_user(config, error);
    if (status == STATUS_OK) status = finish_memory(config, error);
    if (status == STATUS_OK) status = check_groups(config, error);
    if (status == STATUS_OK) status = check_topic_defaults(config, error);
    if (status == STATUS_OK) status = config_finish_replication(config, error);
    if (config->acks[0] == '\0') {
        snprintf(config->acks, sizeof(config->acks),
                 config->replication.enabled ? "all" : "leader");
    }
    return status == STATUS_OK ? check_ports(config, error) : status;
}

/* ---- where it comes from ---- */

static enum status read_layers(const struct json_layers *layers, struct server_config *config,
                               struct error *error)
{
    enum status status = config_read_keys(layers->root, config, error);
    const json_t *block = json_object_get(json_object_get(layers->root, "Server"), "Replication");
    config->replication_enabled_given = json_object_get(block, "Enabled") != NULL;
    return status == STATUS_OK ? finish(config, error) : status;
}

enum status config_from_json(json_t *root, struct server_config *config, struct error *error)
{
    struct json_layers layers;
    set_defaults(config);
    if (!json_is_object(root)) {
        return error_set(error, STATUS_INVALID_CONFIG, "the document must be one object");
    }
    json_layers_init(&layers);
    json_layers_merge(&layers, root, NULL);
    enum status status = read_layers(&layers, config, error);
    json_layers_deinit(&layers);
    return status;
}

static enum status load_file(const char *path, bool optional, json_t **out, struct error *error)
{
    struct buffer file;
    struct error why;
    buffer_init(&file, CONFIG_BYTES_MAX);
    *out = NULL;
    enum status status = file_read_whole(file_system_posix(), path, CONFIG_BYTES_MAX, &file, &why);
    if (status == STATUS_NOT_FOUND && optional) {
        buffer_deinit(&file);
        return STATUS_OK;
    }
    if (status != STATUS_OK) {
        buffer_deinit(&file);
        return error_set(error, STATUS_INVALID_CONFIG,
                         "%.400s (name a configuration file that can be read)", why.text);
    }
    status = json_parse(file.data, file.bytes, out, &why);
    buffer_deinit(&file);
    if (status != STATUS_OK) {
        return error_set(error, STATUS_INVALID_CONFIG, "%.200s: %s", path, why.text);
    }
    if (json_is_object(*out)) return STATUS_OK;
    json_decref(*out);
    *out = NULL;
    return error_set(error, STATUS_INVALID_CONFIG, "%.200s: expected one JSON object: { … }", path);
}

/* dir/appsettings.json -> dir/appsettings.<environment>.json */
static void overlay_path(const char *path, const char *environment, char *out, size_t out_bytes)
{
    const char *dot = strrchr(path, '.');
    const char *slash = strrchr(path, '/');
    size_t stem =
        dot != NULL && (slash == NULL || dot > slash) ? (size_t)(dot - path) : strlen(path);
    snprintf(out, out_bytes, "%.*s.%s%s", (int)stem, path, environment, path + stem);
}

/* Lays a file over what is there; *found false: an optional one that is not there. */
static enum status lay_file(const char *path, const char *kind, bool optional,
                            struct json_layers *layers, bool *found, struct error *error)
{
    json_t *document;
    enum status status = load_file(path, optional, &document, error);
    *found = document != NULL;
    if (document == NULL) return status;
    json_t *source = json_pack("{s:s,s:s}", "kind", kind, "name", path);
    if (source == NULL) {
        status = error_set(error, STATUS_INVALID_CONFIG, "%.200s: the path is no UTF-8", path);
    } else {
        json_layers_merge(layers, document, source);
    }
    json_decref(source);
    json_decref(document);
    return status;
}

static enum status lay_files(const struct config_input *input, struct server_config *config,
                             struct json_layers *layers, struct error *error)
{
    bool found;
    const char *environment = input->environment;
    if (environment == NULL) {
        environment = config_variable(input->variables, "MOONMQ_ENVIRONMENT");
    }
    if (environment == NULL || environment[0] == '\0') environment = "Development";
    if (strchr(environment, '/') != NULL || strlen(environment) >= sizeof(config->environment)) {
        return error_set(error, STATUS_INVALID_CONFIG,
                         "MOONMQ_ENVIRONMENT: \"%.40s\" is no plain name", environment);
    }
    snprintf(config->environment, sizeof(config->environment), "%s", environment);
    if (strlen(input->path) + strlen(environment) + 2 > sizeof(config->overlay)) {
        return error_set(error, STATUS_INVALID_CONFIG, "%.100s…: path too long", input->path);
    }
    enum status status = lay_file(input->path, "file", false, layers, &found, error);
    if (status != STATUS_OK) return status;
    overlay_path(input->path, environment, config->overlay, sizeof(config->overlay));
    status = lay_file(config->overlay, "overlay", true, layers, &found, error);
    if (!found) config->overlay[0] = '\0';
    return status;
}

/* A path or a name may hold any byte; the error is one line of valid text. */
static void make_one_line(struct error *error)
{
    json_t *text = json_string(error->text);
    bool is_utf8 = text != NULL;
    json_decref(text);
    for (char *at = error->text; *at != '\0'; at++) {
        unsigned char byte = (unsigned char)*at;
        if (byte < 0x20 || byte == 0x7F || (byte > 0x7F && !is_utf8)) *at = '?';
    }
}

enum status config_load(const struct config_input *input, struct server_config *config,
                        struct json_layers *layers, struct error *error)
{
    struct json_layers own;
    if (layers == NULL) layers = &own;
    json_layers_init(layers);
    set_defaults(config);
    enum status status = lay_files(input, config, layers, error);
    if (status == STATUS_OK) status = config_lay_variables(input, layers, config, error);
    if (status == STATUS_OK) {
        status = read_layers(layers, config, error);
        if (status != STATUS_OK) config_name_sources(layers, error);
    }
    if (status != STATUS_OK) make_one_line(error);
    if (layers == &own || status != STATUS_OK) json_layers_deinit(layers);
    return status;
}
