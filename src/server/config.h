/* config.h: appsettings.json as a checked value.
 *
 * Three layers, each over the one before: the file; <stem>.<MOONMQ_ENVIRONMENT>.json beside it
 * (objects merge, arrays and scalars replace); environment variables like MOONMQ_SERVER__PORT, one
 * a key. Every key is in one table (config_keys.c): an unknown key, a wrong type or a value out of
 * range is an error that names the key, the file or variable that holds it, and the mend; keys
 * beginning with "_" are comments. native-protocol.md section 6, replication.md section 3,
 * decisions 1–6. */
#ifndef MOONMQ_SERVER_CONFIG_H
#define MOONMQ_SERVER_CONFIG_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/json_layers.h"
#include "base/log.h"
#include "base/status.h"
#include "broker/broker.h"
#include "native/dead_letter.h"
#include "replication/config.h"

#define CONFIG_TEXT_BYTES   512
#define CONFIG_WARNINGS_MAX 32

/* A setting of topics that do not say otherwise. */
#define CONFIG_TOPIC_DEFAULTS_MAX 32
#define CONFIG_TOPIC_VALUE_BYTES  64
struct config_topic_default {
    const char *key; /* the topic's name for it */
    char value[CONFIG_TOPIC_VALUE_BYTES];
    int64_t unit; /* what the number given was multiplied by: the finer one counts */
};

struct server_config {
    char host[GROUP_HOST_BYTES];
    int64_t port;
    char data_dir[CONFIG_TEXT_BYTES];
    char acks[16];                                               /* "" until it is finished */
    int64_t max_connections, max_connections_per_ip, fd_reserve; /* -1: by the descriptor limit */
    int64_t max_frame_size, max_pending_bytes;
    int64_t send_deadline_us, receive_deadline_us, handshake_deadline_us, pre_auth_read_deadline_us,
        idle_deadline_us;
    int64_t heartbeat_interval_us, heartbeat_miss_threshold;
    int64_t max_topics, max_list_topics; /* the latter: max_topics unless given */
    char dead_letter_suffix[DEAD_LETTER_SUFFIX_BYTES_MAX + 1];
    int64_t deliveries_max;
    char metrics_host[GROUP_HOST_BYTES];
    int64_t metrics_port;
    char metrics_token[CONFIG_TEXT_BYTES];
    int64_t cache_bytes, unsynced_bytes, request_bytes, answer_bytes;
    /* Server.Kafka */
    int64_t kafka_request_bytes_max, kafka_num_partitions, kafka_fetch_bytes_max;
    int64_t kafka_transaction_timeout_ms_max, kafka_transactional_id_expiration_ms;
    int64_t kafka_producer_id_expiration_ms;
    bool kafka_auto_create, kafka_delete_topics;
    int64_t kafka_group_delay_us, kafka_group_size_max;
    int64_t kafka_check_us; /* log.retention.check.interval.ms */
    int64_t kafka_session_ms_min, kafka_session_ms_max;
    int64_t kafka_consumer_heartbeat_ms, kafka_consumer_session_ms, kafka_consumer_size_max;
    int64_t kafka_offset_metadata_bytes_max, kafka_offsets_retention_minutes;
    char kafka_rack[GROUP_HOST_BYTES];
    char kafka_migration[16];
    struct config_topic_default topic_defaults[CONFIG_TOPIC_DEFAULTS_MAX];
    uint32_t topic_default_count;
    /* Server.Replication; AckTimeout and the rest are in `replication` */
    bool replication_enabled, replication_enabled_given, failover_present, failover_enabled;
    char role[16];
    char client_address[REPLICATION_ADDRESS_BYTES];
    char tokens[2][CONFIG_TEXT_BYTES];
    struct replication_config replication;
    int64_t replica_id, replicate_port, election_timeout_us, election_timeout_max_us;
    int64_t min_insync, max_log_entries, max_fetch_bytes; /* -1: default */
    /* Auth: one user; "" : open */
    char username[257], password[1025], password_hash[CONFIG_TEXT_BYTES];
    /* Logging */
    char log_level[16], log_file[CONFIG_TEXT_BYTES];
    bool log_to_stderr;
    /* Where it came from. overlay "": there was none. */
    char environment[CONFIG_TEXT_BYTES], overlay[1024];
    uint32_t variable_count; /* settings that variables gave */

    char warnings[CONFIG_WARNINGS_MAX][400];
    uint32_t warning_count;
};

struct config_input {
    const char *path;
    const char *environment;      /* NULL: from MOONMQ_ENVIRONMENT, else Development */
    const char *const *variables; /* "NAME=VALUE", ends with NULL; NULL: none */
    bool own_variables_only;      /* MOONMQ_METRICS_TOKEN counts, settings of keys do not */
};

/* Reads, merges, checks. STATUS_INVALID_CONFIG: `error` is one line naming the key, its source and
 * the mend (exit 78). `layers`, if not NULL: what was given, by whom, for config_show(); the
 * caller's to deinit after STATUS_OK. */
STATUS_MUST_CHECK
enum status config_load(const struct config_input *input, struct server_config *config,
                        struct json_layers *layers, struct error *error);
/* The same from one document alone. */
STATUS_MUST_CHECK
enum status config_from_json(json_t *root, struct server_config *config, struct error *error);

/* The most bytes that one request of a client may have, with its length. */
size_t config_largest_frame_bytes(const struct server_config *config);

/* Client connections at a limit of so many descriptors; 0: it is too low for any. */
int64_t config_connections_max(const struct server_config *config, uint64_t descriptors);

/* `out` is to be deinited. */
STATUS_MUST_CHECK
enum status config_topic_defaults(const struct server_config *config, struct topic_config *out,
                                  struct error *error);

void config_warn(struct server_config *config, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* config_values.c: every key of the document into the struct. */
STATUS_MUST_CHECK
enum status config_read_keys(const json_t *root, struct server_config *config, struct error *error);
/* config_replication.c: peers, tokens, and what the block as a whole must satisfy. */
STATUS_MUST_CHECK
enum status config_read_peers(const json_t *array, struct server_config *config,
                              struct error *error);
STATUS_MUST_CHECK
enum status config_read_token(const json_t *value, struct server_config *config,
                              struct error *error);
STATUS_MUST_CHECK
enum status config_finish_replication(struct server_config *config, struct error *error);

/* config_variables.c: the variable of that name, or NULL. */
const char *config_variable(const char *const *variables, const char *name);
/* Lays the variables that name keys over the files. */
STATUS_MUST_CHECK
enum status config_lay_variables(const struct config_input *input, struct json_layers *layers,
                                 struct server_config *config, struct error *error);
/* "MOONMQ_SERVER__PORT" for "Server.Port". */
#define CONFIG_VARIABLE_BYTES 160
void config_variable_name(const char *path, char name[CONFIG_VARIABLE_BYTES]);

/* config_sources.c: puts the file or variable that holds the key before an error that begins with
 * one, and the variables of the other keys that it names behind it. */
void config_name_sources(const struct json_layers *layers, struct error *error);
/* What a source (json_layers.h) is called: "appsettings.json", "MOONMQ_SERVER__PORT". */
const char *config_source_name(const json_t *source);

/* One line: does this broker stand alone, push, or belong to a group? Of a checked configuration.
 */
void config_describe_mode(const struct server_config *config, char *text, size_t text_bytes);

#endif
