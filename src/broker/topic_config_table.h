/* topic_config_table.h: the keys of a topic's configuration and what each accepts; for
 * topic_config.c only. Pure. */
#ifndef MOONMQ_BROKER_TOPIC_CONFIG_TABLE_H
#define MOONMQ_BROKER_TOPIC_CONFIG_TABLE_H

#include "broker/topic_config.h"

/* In the order of names. */
enum config_index {
    KEY_CLEANUP_POLICY,
    KEY_COMPRESSION_GZIP_LEVEL,
    KEY_COMPRESSION_LZ4_LEVEL,
    KEY_COMPRESSION_TYPE,
    KEY_COMPRESSION_ZSTD_LEVEL,
    KEY_DELETE_RETENTION_MS,
    KEY_FILE_DELETE_DELAY_MS,
    KEY_FLUSH_MESSAGES,
    KEY_FLUSH_MS,
    KEY_FOLLOWER_REPLICATION_THROTTLED_REPLICAS,
    KEY_INDEX_INTERVAL_BYTES,
    KEY_LEADER_REPLICATION_THROTTLED_REPLICAS,
    KEY_LOCAL_RETENTION_BYTES,
    KEY_LOCAL_RETENTION_MS,
    KEY_MAX_COMPACTION_LAG_MS,
    KEY_MAX_MESSAGE_BYTES,
    KEY_MESSAGE_TIMESTAMP_AFTER_MAX_MS,
    KEY_MESSAGE_TIMESTAMP_BEFORE_MAX_MS,
    KEY_MESSAGE_TIMESTAMP_TYPE,
    KEY_MIN_CLEANABLE_DIRTY_RATIO,
    KEY_MIN_COMPACTION_LAG_MS,
    KEY_MIN_INSYNC_REPLICAS,
    KEY_PREALLOCATE,
    KEY_REMOTE_STORAGE_ENABLE,
    KEY_RETENTION_BYTES,
    KEY_RETENTION_MS,
    KEY_SEGMENT_BYTES,
    KEY_SEGMENT_INDEX_BYTES,
    KEY_SEGMENT_JITTER_MS,
    KEY_SEGMENT_MS,
    KEY_UNCLEAN_LEADER_ELECTION_ENABLE,
    KEY_PUBLIC_COUNT,
    KEY_OFFSET_GAPS = KEY_PUBLIC_COUNT, /* the broker's own: known, but not shown */
    KEY_CLIENT_QUOTAS,                  /* likewise */
    KEY_COUNT,
};

const struct topic_config_key *topic_config_key_at(enum config_index index);

/* The canonical text of a value, malloc'd: integers without leading zeros, lists in the table's
 * order. `name` is the key as it was given: the native names may count in other units.
 * STATUS_INVALID_CONFIG names key, value and what would be accepted. */
STATUS_MUST_CHECK
enum status topic_config_canonical(const struct topic_config_key *key, const char *name,
                                   const char *value, char **out, struct error *error);
/* Earlier versions took values of this key that are refused now. */
bool topic_config_was_laxer(const struct topic_config_key *key);

#endif
