/* topic_config.h: a topic's configuration by Kafka's names: one table of keys, types, defaults and
 * bounds.
 *
 * kafka-listener.md 11.4, decisions 12. A key works, or what it promises holds whatever its value;
 * values that we would not keep, and unknown keys, are refused by name. Pure. */
#ifndef MOONMQ_BROKER_TOPIC_CONFIG_H
#define MOONMQ_BROKER_TOPIC_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "log/partition_log.h"
#include "record/batch_recompress.h"

/* Kafka's type codes of DescribeConfigs. */
enum topic_config_type {
    TOPIC_CONFIG_BOOLEAN = 1,
    TOPIC_CONFIG_STRING = 2,
    TOPIC_CONFIG_INT = 3,
    TOPIC_CONFIG_LONG = 5,
    TOPIC_CONFIG_DOUBLE = 6,
    TOPIC_CONFIG_LIST = 7,
};
struct topic_config_key {
    const char *name;
    enum topic_config_type type;
    const char *default_value;
    const char *documentation;
    const char *native_name; /* decisions 12; NULL: none */
    const char *broker_name; /* what Kafka calls the broker's default for it; NULL: there is none */
};
const struct topic_config_key *topic_config_keys(uint32_t *count); /* ascending by name */
/* By Kafka or native name; NULL: unknown. */
const struct topic_config_key *topic_config_find(const char *name);
/* By the broker's name for its default; NULL: none that may be set. */
const struct topic_config_key *topic_config_find_default(const char *broker_name);

/* The overrides of one topic; values are canonical text. */
struct topic_config_entry {
    const struct topic_config_key *key;
    char *value;
};
struct topic_config {
    struct topic_config_entry *entries; /* ascending by key name */
    uint32_t count, capacity;
    /* The broker's own defaults, which outlive it; NULL: Kafka's. Not compared. */
    const struct topic_config *defaults;
};
void topic_config_init(struct topic_config *config);
void topic_config_deinit(struct topic_config *config);
void topic_config_copy(struct topic_config *to, const struct topic_config *from);
bool topic_config_equal(const struct topic_config *a, const struct topic_config *b);
/* Validates and sets (value NULL: back to the default). Accepts Kafka and native names (native
 * retention in seconds). STATUS_INVALID_CONFIG names key, value and what would be accepted. */
STATUS_MUST_CHECK
enum status topic_config_set(struct topic_config *config, const char *name, const char *value,
                             struct error *error);
/* The same from a file or another replica: a value that an earlier version took and this one would
 * not keep is left out. */
STATUS_MUST_CHECK
enum status topic_config_restore(struct topic_config *config, const char *name, const char *value,
                                 struct error *error);
/* Do the values agree with each other? To be asked when all of a change are set. */
STATUS_MUST_CHECK
enum status topic_config_check(const struct topic_config *config, struct error *error);
/* The value in force; borrowed. */
const char *topic_config_get(const struct topic_config *config, const char *name);
bool topic_config_is_set(const struct topic_config *config, const char *name);
/* Of a topic's configuration: the broker has a default of its own for it. */
bool topic_config_has_default(const struct topic_config *config, const char *name);

/* Decoded for the paths that need it fast. */
struct topic_settings {
    struct log_config log; /* its `compacted` also where the topic once was: gaps stay */
    bool compacted;        /* cleanup.policy has compact */
    double min_cleanable_ratio;
    int64_t min_compaction_lag_ms, max_compaction_lag_ms;
    int64_t delete_retention_ms;
    bool log_append_time;
    uint32_t batch_bytes_max; /* max.message.bytes */
    int32_t min_insync;       /* min.insync.replicas */
    int64_t timestamp_before_max_ms, timestamp_after_max_ms;
    bool recompress; /* compression.type is not "producer": what comes by another codec … */
    struct batch_compression compression; /* … is stored by this one */
};
void topic_config_settings(const struct topic_config *config, struct topic_settings *out);

/* How the names of the broker's own keys begin: clients do not set them. */
#define TOPIC_CONFIG_OWN "moonmq."
/* The broker's own key: offsets of the topic have gaps, whatever its policy is now. */
#define TOPIC_CONFIG_OFFSET_GAPS "moonmq.offset.gaps"
/* The broker's own key, of __consumer_offsets alone: client_quotas.h. */
#define TOPIC_CONFIG_CLIENT_QUOTAS "moonmq.client.quotas"
/* `config` is to take the place of `before`: a topic that ceases to be compacted keeps its gaps. */
void topic_config_follow(struct topic_config *config, const struct topic_config *before);

/* Topic name syntax (native 1.3, Kafka 11.1): 1..249 of [A-Za-z0-9._-], not "." or "..", not
 * starting with '-' when `strict`. Names beginning with "__" are reserved for internal topics. */
bool topic_name_is_valid(const char *name, size_t bytes, bool strict);
bool topic_name_is_internal(const char *name); /* the two internal topics */

#endif
