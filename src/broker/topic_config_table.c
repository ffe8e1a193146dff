/* topic_config_table.c: the table of topic keys, and what each accepts (kafka-listener.md 11.4).
 *
 * A key is here if it works, or if what it promises holds whatever its value; values whose promise
 * we would not keep are refused with the reason. Pure. */
#include "broker/topic_config_table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/assert.h"
#include "base/memory.h"
#include "broker/client_quotas.h"
#include "record/batch.h"

#define CONFIG_VALUE_BYTES_MAX 1024
#define CHOICES_MAX            6

static const struct topic_config_key config_keys[KEY_COUNT] = {
    [KEY_CLEANUP_POLICY] = {"cleanup.policy", TOPIC_CONFIG_LIST, "delete",
                            "What becomes of old records: delete (by age and size), compact (of "
                            "each key the newest stays), or both.",
                            "cleanup_policy", NULL},
    [KEY_COMPRESSION_GZIP_LEVEL] = {"compression.gzip.level", TOPIC_CONFIG_INT, "-1",
                                    "The level, 1 to 9, at which the broker compresses with gzip "
                                    "where compression.type is gzip; -1: zlib's default.",
                                    NULL, "compression.gzip.level"},
    [KEY_COMPRESSION_LZ4_LEVEL] =
        {"compression.lz4.level", TOPIC_CONFIG_INT, "9",
         "The level, 1 to 17, at which the broker compresses with lz4 where compression.type is "
         "lz4. 9, the default, is the fast kind, as in Kafka; 12 and above are alike.",
         NULL, "compression.lz4.level"},
    [KEY_COMPRESSION_TYPE] =
        {"compression.type", TOPIC_CONFIG_STRING, "producer",
         "The codec that batches are stored by: gzip, snappy, lz4, zstd or uncompressed; the "
         "broker recompresses what comes by another. producer: batches stay as they come.",
         NULL, "compression.type"},
    [KEY_COMPRESSION_ZSTD_LEVEL] = {"compression.zstd.level", TOPIC_CONFIG_INT, "3",
                                    "The level, -131072 to 22, at which the broker compresses with "
                                    "zstd where compression.type is zstd.",
                                    NULL, "compression.zstd.level"},
    [KEY_DELETE_RETENTION_MS] = {"delete.retention.ms", TOPIC_CONFIG_LONG, "86400000",
                                 "How long a compacted topic keeps the marks of deleted keys, from "
                                 "their first compaction on.",
                                 NULL, "log.cleaner.delete.retention.ms"},
    [KEY_FILE_DELETE_DELAY_MS] =
        {"file.delete.delay.ms", TOPIC_CONFIG_LONG, "0",
         "Only 0: the files of a removed segment go as soon as nothing reads them.", NULL, NULL},
    [KEY_FLUSH_MESSAGES] =
        {"flush.messages", TOPIC_CONFIG_LONG, "9223372036854775807",
         "Any value holds: every record is synced to disk before it is acknowledged.", NULL, NULL},
    [KEY_FLUSH_MS] = {"flush.ms", TOPIC_CONFIG_LONG, "9223372036854775807",
                      "Any value holds: every record is synced to disk before it is acknowledged.",
                      NULL, NULL},
    [KEY_FOLLOWER_REPLICATION_THROTTLED_REPLICAS] =
        {"follower.replication.throttled.replicas", TOPIC_CONFIG_LIST, "",
         "The replicas that follower.replication.throttled.rate applies to: a list of "
         "partition:broker, or *. That rate cannot be set, it is unlimited.",
         NULL, NULL},
    [KEY_INDEX_INTERVAL_BYTES] =
        {"index.interval.bytes", TOPIC_CONFIG_INT, "4096",
         "Bytes of records between two entries of an index; below 1024 counts as 1024.", NULL,
         "log.index.interval.bytes"},
    [KEY_LEADER_REPLICATION_THROTTLED_REPLICAS] =
        {"leader.replication.throttled.replicas", TOPIC_CONFIG_LIST, "",
         "The replicas that leader.replication.throttled.rate applies to: a list of "
         "partition:broker, or *. That rate cannot be set, it is unlimited.",
         NULL, NULL},
    [KEY_LOCAL_RETENTION_BYTES] = {"local.retention.bytes", TOPIC_CONFIG_LONG, "-2",
                                   "Only -2, which is retention.bytes: there is no remote storage.",
                                   NULL, NULL},
    [KEY_LOCAL_RETENTION_MS] = {"local.retention.ms", TOPIC_CONFIG_LONG, "-2",
                                "Only -2, which is retention.ms: there is no remote storage.", NULL,
                                NULL},
    [KEY_MAX_COMPACTION_LAG_MS] =
        {"max.compaction.lag.ms", TOPIC_CONFIG_LONG, "9223372036854775807",
         "The longest a record of a compacted topic stays out of reach of compaction; also the age "
         "at which its segments are closed. Not below min.compaction.lag.ms.",
         NULL, "log.cleaner.max.compaction.lag.ms"},
    [KEY_MAX_MESSAGE_BYTES] = {"max.message.bytes", TOPIC_CONFIG_INT, "1048588",
                               "The largest batch accepted: as it comes and, where the broker "
                               "recompresses it, as it is stored.",
                               NULL, "message.max.bytes"},
    [KEY_MESSAGE_TIMESTAMP_AFTER_MAX_MS] =
        {"message.timestamp.after.max.ms", TOPIC_CONFIG_LONG, "3600000",
         "How far a record's create time may lie ahead of the broker's clock.", NULL,
         "log.message.timestamp.after.max.ms"},
    [KEY_MESSAGE_TIMESTAMP_BEFORE_MAX_MS] =
        {"message.timestamp.before.max.ms", TOPIC_CONFIG_LONG, "9223372036854775807",
         "How far a record's create time may lie behind the broker's clock.", NULL,
         "log.message.timestamp.before.max.ms"},
    [KEY_MESSAGE_TIMESTAMP_TYPE] = {"message.timestamp.type", TOPIC_CONFIG_STRING, "CreateTime",
                                    "CreateTime: records keep their producer's time. "
                                    "LogAppendTime: they get the broker's at the append.",
                                    NULL, "log.message.timestamp.type"},
    [KEY_MIN_CLEANABLE_DIRTY_RATIO] = {"min.cleanable.dirty.ratio", TOPIC_CONFIG_DOUBLE, "0.5",
                                       "The share of bytes written since the last pass above which "
                                       "a partition of a compacted topic is compacted.",
                                       NULL, "log.cleaner.min.cleanable.ratio"},
    [KEY_MIN_COMPACTION_LAG_MS] =
        {"min.compaction.lag.ms", TOPIC_CONFIG_LONG, "0",
         "How long a record is safe from compaction. Not above max.compaction.lag.ms.", NULL,
         "log.cleaner.min.compaction.lag.ms"},
    [KEY_MIN_INSYNC_REPLICAS] =
        {"min.insync.replicas", TOPIC_CONFIG_INT, "1",
         "Replicas in sync that acks=all needs. It raises the group's minimum (MinInsyncReplicas) "
         "and never lowers it; more than there are brokers means all of them.",
         NULL, NULL},
    [KEY_PREALLOCATE] = {"preallocate", TOPIC_CONFIG_BOOLEAN, "false",
                         "Only false: the space of a segment is reserved in steps of up to 8 MiB.",
                         NULL, NULL},
    [KEY_REMOTE_STORAGE_ENABLE] = {"remote.storage.enable", TOPIC_CONFIG_BOOLEAN, "false",
                                   "Only false: there is no remote storage.", NULL, NULL},
    [KEY_RETENTION_BYTES] = {"retention.bytes", TOPIC_CONFIG_LONG, "-1",
                             "Bytes that a partition keeps at least when its oldest closed "
                             "segments go for their size; -1: no limit.",
                             "max_log_bytes", "log.retention.bytes"},
    [KEY_RETENTION_MS] = {"retention.ms", TOPIC_CONFIG_LONG, "604800000",
                          "Age at which a segment goes, when all its records are older; -1: never.",
                          "retention", "log.retention.ms"},
    [KEY_SEGMENT_BYTES] = {"segment.bytes", TOPIC_CONFIG_INT, "1073741824",
                           "The size at which a segment is closed.", "max_segment_size",
                           "log.segment.bytes"},
    [KEY_SEGMENT_INDEX_BYTES] = {"segment.index.bytes", TOPIC_CONFIG_INT, "10485760",
                                 "The size of a segment's offset or time index at which the "
                                 "segment is closed, counted in entries of 8 and 12 bytes.",
                                 NULL, "log.index.size.max.bytes"},
    [KEY_SEGMENT_JITTER_MS] =
        {"segment.jitter.ms", TOPIC_CONFIG_LONG, "0",
         "Segments are closed up to so much before segment.ms is over, each by its own share.",
         NULL, "log.roll.jitter.ms"},
    [KEY_SEGMENT_MS] = {"segment.ms", TOPIC_CONFIG_LONG, "604800000",
                        "The age at which a segment is closed: by the first record that is so much "
                        "younger than its first one.",
                        NULL, "log.roll.ms"},
    [KEY_UNCLEAN_LEADER_ELECTION_ENABLE] = {"unclean.leader.election.enable", TOPIC_CONFIG_BOOLEAN,
                                            "false",
                                            "Only false: a replica that is not in sync never "
                                            "leads, for it would lose acknowledged records.",
                                            NULL, NULL},
    [KEY_OFFSET_GAPS] = {TOPIC_CONFIG_OFFSET_GAPS, TOPIC_CONFIG_BOOLEAN, "false",
                         "The topic was compacted: its offsets have gaps for as long as it lives.",
                         NULL, NULL},
    [KEY_CLIENT_QUOTAS] = {TOPIC_CONFIG_CLIENT_QUOTAS, TOPIC_CONFIG_STRING, "",
                           "How fast clients may write and read.", NULL, NULL},
};

/* What a value must satisfy besides its type. */
struct config_rule {
    int64_t low, high;                /* INT, LONG and DOUBLE, both included … */
    int64_t special;                  /* … and this one; 0: none */
    const char *choices[CHOICES_MAX]; /* STRING, BOOLEAN and LIST */
    bool replicas;                    /* LIST: of partition:broker, or "*" */
    const char *why;                  /* there is no other value */
    bool laxer;                       /* earlier versions took more */
};
static const struct config_rule config_rules[KEY_COUNT] = {
    [KEY_CLEANUP_POLICY] = {.choices = {"compact", "delete"}},
    [KEY_COMPRESSION_GZIP_LEVEL] = {.low = 1, .high = 9, .special = -1, .laxer = true},
    [KEY_COMPRESSION_LZ4_LEVEL] = {.low = 1, .high = 17},
    [KEY_COMPRESSION_TYPE] = {.choices = {"uncompressed", "gzip", "snappy", "lz4", "zstd",
                                          "producer"}},
    [KEY_COMPRESSION_ZSTD_LEVEL] = {.low = -131072, .high = 22},
    [KEY_DELETE_RETENTION_MS] = {.low = 0, .high = INT64_MAX},
    [KEY_FILE_DELETE_DELAY_MS] = {.low = 0,
                                  .high = 0,
                                  .why = "files go as soon as nothing reads them",
                                  .laxer = true},
    [KEY_FLUSH_MESSAGES] = {.low = 1, .high = INT64_MAX},
    [KEY_FLUSH_MS] = {.low = 0, .high = INT64_MAX},
    [KEY_FOLLOWER_REPLICATION_THROTTLED_REPLICAS] = {.replicas = true, .laxer = true},
    [KEY_INDEX_INTERVAL_BYTES] = {.low = 0, .high = INT32_MAX},
    [KEY_LEADER_REPLICATION_THROTTLED_REPLICAS] = {.replicas = true, .laxer = true},
    [KEY_LOCAL_RETENTION_BYTES] =
        {.low = -2,
         .high = -2,
         .why = "there is no remote storage, and all that is kept is local: see retention.bytes",
         .laxer = true},
    [KEY_LOCAL_RETENTION_MS] =
        {.low = -2,
         .high = -2,
         .why = "there is no remote storage, and all that is kept is local: see retention.ms",
         .laxer = true},
    [KEY_MAX_COMPACTION_LAG_MS] = {.low = 1, .high = INT64_MAX},
    [KEY_MAX_MESSAGE_BYTES] = {.low = 0, .high = BATCH_BYTES_MAX},
    [KEY_MESSAGE_TIMESTAMP_AFTER_MAX_MS] = {.low = 0, .high = INT64_MAX},
    [KEY_MESSAGE_TIMESTAMP_BEFORE_MAX_MS] = {.low = 0, .high = INT64_MAX},
    [KEY_MESSAGE_TIMESTAMP_TYPE] = {.choices = {"CreateTime", "LogAppendTime"}},
    [KEY_MIN_CLEANABLE_DIRTY_RATIO] = {.low = 0, .high = 1},
    [KEY_MIN_COMPACTION_LAG_MS] = {.low = 0, .high = INT64_MAX},
    [KEY_MIN_INSYNC_REPLICAS] = {.low = 1, .high = INT32_MAX},
    [KEY_PREALLOCATE] = {.choices = {"false"},
                         .why = "the space of a segment is reserved in steps of up to 8 MiB",
                         .laxer = true},
    [KEY_REMOTE_STORAGE_ENABLE] = {.choices = {"false"}, .why = "there is no remote storage"},
    [KEY_RETENTION_BYTES] = {.low = -1, .high = INT64_MAX},
    [KEY_RETENTION_MS] = {.low = -1, .high = INT64_MAX},
    [KEY_SEGMENT_BYTES] = {.low = 1048576, .high = INT32_MAX},
    [KEY_SEGMENT_INDEX_BYTES] = {.low = 4, .high = INT32_MAX},
    [KEY_SEGMENT_JITTER_MS] = {.low = 0, .high = INT64_MAX},
    [KEY_SEGMENT_MS] = {.low = 1, .high = INT64_MAX},
    [KEY_UNCLEAN_LEADER_ELECTION_ENABLE] =
        {.choices = {"false"},
         .why = "a leader that was not in sync would lose acknowledged records",
         .laxer = true},
    [KEY_OFFSET_GAPS] = {.choices = {"false", "true"}},
    [KEY_CLIENT_QUOTAS] = {.laxer = true}, /* a later version's, perhaps */
};

const struct topic_config_key *topic_config_keys(uint32_t *count)
{
    *count = KEY_PUBLIC_COUNT;
    return config_keys;
}

const struct topic_config_key *topic_config_find(const char *name)
{
    for (size_t i = 0; i < KEY_COUNT; i++) {
        const char *native_name = config_keys[i].native_name;
        if (strcmp(config_keys[i].name, name) == 0) return &config_keys[i];
        if (native_name != NULL && strcmp(native_name, name) == 0) return &config_keys[i];
    }
    return NULL;
}

const struct topic_config_key *topic_config_find_default(const char *broker_name)
{
    for (size_t i = 0; i < KEY_PUBLIC_COUNT; i++) {
        const char *name = config_keys[i].broker_name;
        if (name != NULL && strcmp(name, broker_name) == 0) return &config_keys[i];
    }
    return NULL;
}

const struct topic_config_key *topic_config_key_at(enum config_index index)
{
    return &config_keys[index];
}

static enum config_index index_of(const struct topic_config_key *key)
{
    return (enum config_index)(key - config_keys);
}

bool topic_config_was_laxer(const struct topic_config_key *key)
{
    return config_rules[index_of(key)].laxer;
}

/* ---- canonical values: `out` gets malloc'd text ---- */

static enum status refuse(struct error *error, const struct topic_config_key *key,
                          const char *value, const char *expected)
{
    const char *why = config_rules[index_of(key)].why;
    return error_set(error, STATUS_INVALID_CONFIG, "%s: \"%.100s\" is not %s%s%s", key->name, value,
                     expected, why != NULL ? ": " : "", why != NULL ? why : "");
}

static void describe_range(const struct config_rule *rule, char *text, size_t bytes)
{
    if (rule->low == rule->high) {
        snprintf(text, bytes, "%" PRId64, rule->low);
    } else if (rule->special != 0) {
        snprintf(text, bytes, "%" PRId64 ", or an integer from %" PRId64 " to %" PRId64,
                 rule->special, rule->low, rule->high);
    } else {
        snprintf(text, bytes, "an integer from %" PRId64 " to %" PRId64, rule->low, rule->high);
    }
}

static enum status integer_canonical(enum config_index index, const char *value, bool in_seconds,
                                     char **out, struct error *error)
{
    const struct config_rule *rule = &config_rules[index];
    char expected[96];
    describe_range(rule, expected, sizeof(expected));
    char *end;
    errno = 0;
    long long number = strtoll(value, &end, 10);
    bool shape = (*value == '-' || *value == '+' || (*value >= '0' && *value <= '9')) &&
                 end != value && *end == '\0';
    if (!shape || errno != 0) return refuse(error, &config_keys[index], value, expected);
    if (in_seconds && number > 0) {
        if (number > INT64_MAX / 1000) return refuse(error, &config_keys[index], value, expected);
        number *= 1000;
    }
    bool special = rule->special != 0 && number == rule->special;
    if (!special && (number < rule->low || number > rule->high)) {
        return refuse(error, &config_keys[index], value, expected);
    }
    char text[24];
    snprintf(text, sizeof(text), "%lld", number);
    *out = memory_copy_text(text);
    return STATUS_OK;
}

static enum status double_canonical(enum config_index index, const char *value, char **out,
                                    struct error *error)
{
    const struct config_rule *rule = &config_rules[index];
    char *end;
    double number = strtod(value, &end);
    bool shape = ((*value >= '0' && *value <= '9') || *value == '.') && *end == '\0';
    if (!shape || !(number >= (double)rule->low && number <= (double)rule->high)) {
        return refuse(error, &config_keys[index], value, "a number from 0 to 1");
    }
    *out = memory_copy_text(value);
    return STATUS_OK;
}

/* "a, b or c" */
static const char *choices_text(enum config_index index, char *text, size_t bytes)
{
    const char *const *choices = config_rules[index].choices;
    size_t at = 0;
    text[0] = '\0';
    for (size_t i = 0; i < CHOICES_MAX && choices[i] != NULL && at < bytes; i++) {
        bool last = i + 1 == CHOICES_MAX || choices[i + 1] == NULL;
        const char *before = i == 0 ? "" : last ? " or " : ", ";
        at += (size_t)snprintf(text + at, bytes - at, "%s%s", before, choices[i]);
    }
    return text;
}

static enum status choice_canonical(enum config_index index, const char *value, char **out,
                                    struct error *error)
{
    for (size_t i = 0; i < ARRAY_COUNT(config_rules[index].choices); i++) {
        const char *choice = config_rules[index].choices[i];
        if (choice == NULL) break;
        bool boolean = config_keys[index].type == TOPIC_CONFIG_BOOLEAN;
        if (strcmp(value, choice) != 0 && !(boolean && strcasecmp(value, choice) == 0)) continue;
        *out = memory_copy_text(choice);
        return STATUS_OK;
    }
    char text[96];
    return refuse(error, &config_keys[index], value, choices_text(index, text, sizeof(text)));
}

static const char *skip_digits(const char *at)
{
    return at + strspn(at, "0123456789");
}

/* Kafka's syntax: nothing, "*", or partition:broker, separated by commas. */
static enum status replicas_canonical(enum config_index index, const char *value, char **out,
                                      struct error *error)
{
    const char *at = value;
    bool sound = *value == '\0' || strcmp(value, "*") == 0;
    while (!sound) {
        const char *colon = skip_digits(at);
        const char *end = *colon == ':' ? skip_digits(colon + 1) : colon;
        if (colon == at || *colon != ':' || end == colon + 1) break;
        sound = *end == '\0';
        if (!sound && *end != ',') break;
        at = end + 1;
    }
    if (!sound) {
        return refuse(error, &config_keys[index], value,
                      "a list of partition:broker, or *, or nothing");
    }
    *out = memory_copy_text(value);
    return STATUS_OK;
}

/* A comma-separated list out of the choices: each named once in the result, in their order. */
static enum status list_canonical(enum config_index index, const char *value, char **out,
                                  struct error *error)
{
    const char *const *choices = config_rules[index].choices;
    bool chosen[CHOICES_MAX] = {false};
    const char *at = value;
    for (;;) {
        at += strspn(at, " ");
        size_t bytes = strcspn(at, ", ");
        bool known = false;
        for (size_t i = 0; i < ARRAY_COUNT(chosen); i++) {
            if (choices[i] == NULL || strlen(choices[i]) != bytes) continue;
            if (memcmp(choices[i], at, bytes) != 0) continue;
            chosen[i] = known = true;
        }
        if (!known) return refuse(error, &config_keys[index], value, "a list of compact, delete");
        at += bytes + strspn(at + bytes, " ");
        if (*at == '\0') break;
        if (*at != ',') return refuse(error, &config_keys[index], value, "separated by commas");
        at++;
    }
    char text[64] = "";
    for (size_t i = 0; i < ARRAY_COUNT(chosen); i++) {
        if (!chosen[i]) continue;
        if (text[0] != '\0') strcat(text, ",");
        strcat(text, choices[i]);
    }
    *out = memory_copy_text(text);
    return STATUS_OK;
}

/* Made by this broker or another one of the group. */
static enum status quotas_canonical(const char *value, char **out, struct error *error)
{
    struct client_quotas quotas;
    if (client_quotas_decode(&quotas, value, error) != STATUS_OK) {
        error->status = STATUS_INVALID_CONFIG;
        return STATUS_INVALID_CONFIG;
    }
    client_quotas_deinit(&quotas);
    *out = memory_copy_text(value);
    return STATUS_OK;
}

static enum status canonical_of(enum config_index index, const char *name, const char *value,
                                char **out, struct error *error)
{
    const struct topic_config_key *key = &config_keys[index];
    switch (key->type) {
    case TOPIC_CONFIG_INT:
    case TOPIC_CONFIG_LONG: {
        bool in_seconds = index == KEY_RETENTION_MS && strcmp(name, key->native_name) == 0;
        return integer_canonical(index, value, in_seconds, out, error);
    }
    case TOPIC_CONFIG_DOUBLE: return double_canonical(index, value, out, error);
    case TOPIC_CONFIG_LIST:
        return config_rules[index].replicas ? replicas_canonical(index, value, out, error)
                                            : list_canonical(index, value, out, error);
    case TOPIC_CONFIG_BOOLEAN:
    case TOPIC_CONFIG_STRING: return choice_canonical(index, value, out, error);
    }
    return error_set(error, STATUS_INVALID_CONFIG, "%s: cannot be set", name);
}

enum status topic_config_canonical(const struct topic_config_key *key, const char *name,
                                   const char *value, char **out, struct error *error)
{
    char trimmed[CONFIG_VALUE_BYTES_MAX + 1];
    if (index_of(key) == KEY_CLIENT_QUOTAS) return quotas_canonical(value, out, error);
    /* As Kafka: what surrounds a value is no part of it. */
    value += strspn(value, " \t");
    size_t bytes = strlen(value);
    while (bytes > 0 && (value[bytes - 1] == ' ' || value[bytes - 1] == '\t'))
        bytes--;
    if (bytes > CONFIG_VALUE_BYTES_MAX) return refuse(error, key, value, "of at most 1024 bytes");
    memcpy(trimmed, value, bytes);
    trimmed[bytes] = '\0';
    return canonical_of(index_of(key), name, trimmed, out, error);
}
