/* topic_config.c: the table of topic keys, and what each accepts (kafka-listener.md 11.4).
 *
 * Values are kept as canonical text (integers without leading zeros, lists in the table's order),
 * so that the copies of two replicas compare equal. Pure. */
#include "broker/topic_config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/assert.h"
#include "base/memory.h"
#include "record/batch.h"

#define CONFIG_VALUE_BYTES_MAX 1024

/* In the order of names: an index into both tables. */
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
    KEY_COUNT,
};

static const struct topic_config_key config_keys[KEY_COUNT] = {
    [KEY_CLEANUP_POLICY] = {"cleanup.policy", TOPIC_CONFIG_LIST, "delete",
                            "What becomes of old records: delete, compact, or both.",
                            "cleanup_policy"},
    [KEY_COMPRESSION_GZIP_LEVEL] = {"compression.gzip.level", TOPIC_CONFIG_INT, "-1",
                                    "Accepted; batches stay as their producer compressed them.",
                                    NULL},
    [KEY_COMPRESSION_LZ4_LEVEL] = {"compression.lz4.level", TOPIC_CONFIG_INT, "9",
                                   "Accepted; batches stay as their producer compressed them.",
                                   NULL},
    [KEY_COMPRESSION_TYPE] = {"compression.type", TOPIC_CONFIG_STRING, "producer",
                              "Only producer: batches stay as their producer compressed them.",
                              NULL},
    [KEY_COMPRESSION_ZSTD_LEVEL] = {"compression.zstd.level", TOPIC_CONFIG_INT, "3",
                                    "Accepted; batches stay as their producer compressed them.",
                                    NULL},
    [KEY_DELETE_RETENTION_MS] = {"delete.retention.ms", TOPIC_CONFIG_LONG, "86400000",
                                 "How long a compacted topic keeps the marks of deleted keys.",
                                 NULL},
    [KEY_FILE_DELETE_DELAY_MS] = {"file.delete.delay.ms", TOPIC_CONFIG_LONG, "60000",
                                  "Accepted; files go when nothing reads them.", NULL},
    [KEY_FLUSH_MESSAGES] = {"flush.messages", TOPIC_CONFIG_LONG, "9223372036854775807",
                            "Accepted; every commit is synced before it is answered.", NULL},
    [KEY_FLUSH_MS] = {"flush.ms", TOPIC_CONFIG_LONG, "9223372036854775807",
                      "Accepted; every commit is synced before it is answered.", NULL},
    [KEY_FOLLOWER_REPLICATION_THROTTLED_REPLICAS] = {"follower.replication.throttled.replicas",
                                                     TOPIC_CONFIG_LIST, "",
                                                     "Accepted; replication is not throttled.",
                                                     NULL},
    [KEY_INDEX_INTERVAL_BYTES] = {"index.interval.bytes", TOPIC_CONFIG_INT, "4096",
                                  "Bytes of records between two entries of the offset index.",
                                  NULL},
    [KEY_LEADER_REPLICATION_THROTTLED_REPLICAS] = {"leader.replication.throttled.replicas",
                                                   TOPIC_CONFIG_LIST, "",
                                                   "Accepted; replication is not throttled.", NULL},
    [KEY_LOCAL_RETENTION_BYTES] = {"local.retention.bytes", TOPIC_CONFIG_LONG, "-2",
                                   "Accepted; there is no remote storage.", NULL},
    [KEY_LOCAL_RETENTION_MS] = {"local.retention.ms", TOPIC_CONFIG_LONG, "-2",
                                "Accepted; there is no remote storage.", NULL},
    [KEY_MAX_COMPACTION_LAG_MS] = {"max.compaction.lag.ms", TOPIC_CONFIG_LONG,
                                   "9223372036854775807",
                                   "The longest a record stays out of reach of compaction.", NULL},
    [KEY_MAX_MESSAGE_BYTES] = {"max.message.bytes", TOPIC_CONFIG_INT, "1048588",
                               "The largest batch accepted, as it arrives.", NULL},
    [KEY_MESSAGE_TIMESTAMP_AFTER_MAX_MS] =
        {"message.timestamp.after.max.ms", TOPIC_CONFIG_LONG, "3600000",
         "How far a create time may lie ahead of the broker's clock.", NULL},
    [KEY_MESSAGE_TIMESTAMP_BEFORE_MAX_MS] =
        {"message.timestamp.before.max.ms", TOPIC_CONFIG_LONG, "9223372036854775807",
         "How far a create time may lie behind the broker's clock.", NULL},
    [KEY_MESSAGE_TIMESTAMP_TYPE] =
        {"message.timestamp.type", TOPIC_CONFIG_STRING, "CreateTime",
         "CreateTime, or LogAppendTime: the broker's clock at the append.", NULL},
    [KEY_MIN_CLEANABLE_DIRTY_RATIO] =
        {"min.cleanable.dirty.ratio", TOPIC_CONFIG_DOUBLE, "0.5",
         "The share of bytes not yet compacted at which compaction begins.", NULL},
    [KEY_MIN_COMPACTION_LAG_MS] = {"min.compaction.lag.ms", TOPIC_CONFIG_LONG, "0",
                                   "How long a record is safe from compaction.", NULL},
    [KEY_MIN_INSYNC_REPLICAS] =
        {"min.insync.replicas", TOPIC_CONFIG_INT, "1",
         "Replicas in sync that acks=all needs; only raises the group's minimum.", NULL},
    [KEY_PREALLOCATE] = {"preallocate", TOPIC_CONFIG_BOOLEAN, "false",
                         "Accepted; segments are preallocated in steps.", NULL},
    [KEY_REMOTE_STORAGE_ENABLE] = {"remote.storage.enable", TOPIC_CONFIG_BOOLEAN, "false",
                                   "Only false: there is no remote storage.", NULL},
    [KEY_RETENTION_BYTES] = {"retention.bytes", TOPIC_CONFIG_LONG, "-1",
                             "Bytes a partition may hold before old segments go; -1: no limit.",
                             "max_log_bytes"},
    [KEY_RETENTION_MS] = {"retention.ms", TOPIC_CONFIG_LONG, "604800000",
                          "Age at which old segments go; -1: no limit.", "retention"},
    [KEY_SEGMENT_BYTES] = {"segment.bytes", TOPIC_CONFIG_INT, "1073741824",
                           "The size at which a segment is closed.", "max_segment_size"},
    [KEY_SEGMENT_INDEX_BYTES] = {"segment.index.bytes", TOPIC_CONFIG_INT, "10485760",
                                 "Accepted; indexes grow as needed.", NULL},
    [KEY_SEGMENT_JITTER_MS] = {"segment.jitter.ms", TOPIC_CONFIG_LONG, "0",
                               "Accepted; segments roll without jitter.", NULL},
    [KEY_SEGMENT_MS] = {"segment.ms", TOPIC_CONFIG_LONG, "604800000",
                        "The age at which a segment is closed.", NULL},
    [KEY_UNCLEAN_LEADER_ELECTION_ENABLE] = {"unclean.leader.election.enable", TOPIC_CONFIG_BOOLEAN,
                                            "false",
                                            "Accepted; a replica that is not in sync never leads.",
                                            NULL},
    [KEY_OFFSET_GAPS] = {TOPIC_CONFIG_OFFSET_GAPS, TOPIC_CONFIG_BOOLEAN, "false",
                         "The topic was compacted: its offsets have gaps for as long as it lives.",
                         NULL},
};

/* What a value must satisfy besides its type. */
struct config_rule {
    int64_t low, high;      /* INT, LONG and DOUBLE, both included */
    const char *choices[2]; /* STRING, BOOLEAN and LIST: what is allowed; none: anything */
};
static const struct config_rule config_rules[KEY_COUNT] = {
    [KEY_CLEANUP_POLICY] = {.choices = {"compact", "delete"}},
    [KEY_COMPRESSION_GZIP_LEVEL] = {.low = -1, .high = 9},
    [KEY_COMPRESSION_LZ4_LEVEL] = {.low = 1, .high = 17},
    [KEY_COMPRESSION_TYPE] = {.choices = {"producer"}},
    [KEY_COMPRESSION_ZSTD_LEVEL] = {.low = -131072, .high = 22},
    [KEY_DELETE_RETENTION_MS] = {.low = 0, .high = INT64_MAX},
    [KEY_FILE_DELETE_DELAY_MS] = {.low = 0, .high = INT64_MAX},
    [KEY_FLUSH_MESSAGES] = {.low = 1, .high = INT64_MAX},
    [KEY_FLUSH_MS] = {.low = 0, .high = INT64_MAX},
    [KEY_INDEX_INTERVAL_BYTES] = {.low = 0, .high = INT32_MAX},
    [KEY_LOCAL_RETENTION_BYTES] = {.low = -2, .high = INT64_MAX},
    [KEY_LOCAL_RETENTION_MS] = {.low = -2, .high = INT64_MAX},
    [KEY_MAX_COMPACTION_LAG_MS] = {.low = 1, .high = INT64_MAX},
    [KEY_MAX_MESSAGE_BYTES] = {.low = 0, .high = BATCH_BYTES_MAX},
    [KEY_MESSAGE_TIMESTAMP_AFTER_MAX_MS] = {.low = 0, .high = INT64_MAX},
    [KEY_MESSAGE_TIMESTAMP_BEFORE_MAX_MS] = {.low = 0, .high = INT64_MAX},
    [KEY_MESSAGE_TIMESTAMP_TYPE] = {.choices = {"CreateTime", "LogAppendTime"}},
    [KEY_MIN_CLEANABLE_DIRTY_RATIO] = {.low = 0, .high = 1},
    [KEY_MIN_COMPACTION_LAG_MS] = {.low = 0, .high = INT64_MAX},
    [KEY_MIN_INSYNC_REPLICAS] = {.low = 1, .high = INT32_MAX},
    [KEY_PREALLOCATE] = {.choices = {"false", "true"}},
    [KEY_REMOTE_STORAGE_ENABLE] = {.choices = {"false"}},
    [KEY_RETENTION_BYTES] = {.low = -1, .high = INT64_MAX},
    [KEY_RETENTION_MS] = {.low = -1, .high = INT64_MAX},
    [KEY_SEGMENT_BYTES] = {.low = 1048576, .high = INT32_MAX},
    [KEY_SEGMENT_INDEX_BYTES] = {.low = 4, .high = INT32_MAX},
    [KEY_SEGMENT_JITTER_MS] = {.low = 0, .high = INT64_MAX},
    [KEY_SEGMENT_MS] = {.low = 1, .high = INT64_MAX},
    [KEY_UNCLEAN_LEADER_ELECTION_ENABLE] = {.choices = {"false", "true"}},
    [KEY_OFFSET_GAPS] = {.choices = {"false", "true"}},
};

/* Keys of older Kafka that tools still set: accepted, not kept. */
static const char *const retired_keys[] = {"message.downconversion.enable",
                                           "message.format.version"};

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

static bool is_retired(const char *name)
{
    for (size_t i = 0; i < ARRAY_COUNT(retired_keys); i++) {
        if (strcmp(retired_keys[i], name) == 0) return true;
    }
    return false;
}

void topic_config_init(struct topic_config *config)
{
    *config = (struct topic_config){0};
}

void topic_config_deinit(struct topic_config *config)
{
    for (uint32_t i = 0; i < config->count; i++)
        free(config->entries[i].value);
    free(config->entries);
    topic_config_init(config);
}

void topic_config_copy(struct topic_config *to, const struct topic_config *from)
{
    topic_config_init(to);
    if (from->count == 0) return;
    to->entries = memory_resize(NULL, from->count, sizeof(*to->entries));
    to->count = to->capacity = from->count;
    for (uint32_t i = 0; i < from->count; i++) {
        to->entries[i].key = from->entries[i].key;
        to->entries[i].value = memory_copy_text(from->entries[i].value);
    }
}

bool topic_config_equal(const struct topic_config *a, const struct topic_config *b)
{
    if (a->count != b->count) return false;
    for (uint32_t i = 0; i < a->count; i++) {
        if (a->entries[i].key != b->entries[i].key) return false;
        if (strcmp(a->entries[i].value, b->entries[i].value) != 0) return false;
    }
    return true;
}

/* ---- canonical values: `out` gets malloc'd text ---- */

static enum status refuse(struct error *error, const struct topic_config_key *key,
                          const char *value, const char *expected)
{
    return error_set(error, STATUS_INVALID_CONFIG, "%s: \"%.100s\" is not %s", key->name, value,
                     expected);
}

static enum status integer_canonical(enum config_index index, const char *value, bool in_seconds,
                                     char **out, struct error *error)
{
    const struct config_rule *rule = &config_rules[index];
    char expected[96];
    snprintf(expected, sizeof(expected), "an integer from %" PRId64 " to %" PRId64, rule->low,
             rule->high);
    char *end;
    errno = 0;
    long long number = strtoll(value, &end, 10);
    bool shape = (*value == '-' || (*value >= '0' && *value <= '9')) && *end == '\0';
    if (!shape || errno != 0) return refuse(error, &config_keys[index], value, expected);
    if (in_seconds && number > 0) {
        if (number > INT64_MAX / 1000) return refuse(error, &config_keys[index], value, expected);
        number *= 1000;
    }
    if (number < rule->low || number > rule->high) {
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

static const char *choices_text(enum config_index index, char *text, size_t bytes)
{
    const char *const *choices = config_rules[index].choices;
    snprintf(text, bytes, "%s%s%s", choices[0], choices[1] != NULL ? " or " : "",
             choices[1] != NULL ? choices[1] : "");
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
    char text[64];
    return refuse(error, &config_keys[index], value, choices_text(index, text, sizeof(text)));
}

/* A comma-separated list out of the choices: each named once in the result, in their order. */
static enum status list_canonical(enum config_index index, const char *value, char **out,
                                  struct error *error)
{
    const char *const *choices = config_rules[index].choices;
    if (choices[0] == NULL) {
        *out = memory_copy_text(value);
        return STATUS_OK;
    }
    bool chosen[ARRAY_COUNT(config_rules[index].choices)] = {false};
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

static enum status value_canonical(const struct topic_config_key *key, const char *name,
                                   const char *value, char **out, struct error *error)
{
    enum config_index index = (enum config_index)(key - config_keys);
    if (strlen(value) > CONFIG_VALUE_BYTES_MAX) {
        return refuse(error, key, value, "of at most 1024 bytes");
    }
    switch (key->type) {
    case TOPIC_CONFIG_INT:
    case TOPIC_CONFIG_LONG: {
        bool in_seconds = index == KEY_RETENTION_MS && strcmp(name, key->native_name) == 0;
        return integer_canonical(index, value, in_seconds, out, error);
    }
    case TOPIC_CONFIG_DOUBLE: return double_canonical(index, value, out, error);
    case TOPIC_CONFIG_LIST: return list_canonical(index, value, out, error);
    case TOPIC_CONFIG_BOOLEAN:
    case TOPIC_CONFIG_STRING: return choice_canonical(index, value, out, error);
    }
    return error_set(error, STATUS_INVALID_CONFIG, "%s: cannot be set", name);
}

/* ---- entries ---- */

/* Where `key` is or belongs. */
static uint32_t entry_position(const struct topic_config *config,
                               const struct topic_config_key *key)
{
    uint32_t at = 0;
    while (at < config->count && config->entries[at].key < key)
        at++;
    return at;
}

static bool entry_is_at(const struct topic_config *config, uint32_t at,
                        const struct topic_config_key *key)
{
    return at < config->count && config->entries[at].key == key;
}

static void entry_remove(struct topic_config *config, uint32_t at)
{
    free(config->entries[at].value);
    config->count--;
    memmove(&config->entries[at], &config->entries[at + 1],
            (config->count - at) * sizeof(*config->entries));
}

static void entry_insert(struct topic_config *config, uint32_t at,
                         const struct topic_config_key *key, char *value)
{
    if (config->count == config->capacity) {
        config->capacity = config->capacity == 0 ? 4 : config->capacity * 2;
        config->entries =
            memory_resize(config->entries, config->capacity, sizeof(*config->entries));
    }
    memmove(&config->entries[at + 1], &config->entries[at],
            (config->count - at) * sizeof(*config->entries));
    config->entries[at] = (struct topic_config_entry){.key = key, .value = value};
    config->count++;
}

enum status topic_config_set(struct topic_config *config, const char *name, const char *value,
                             struct error *error)
{
    if (is_retired(name)) return STATUS_OK;
    const struct topic_config_key *key = topic_config_find(name);
    if (key == NULL) {
        return error_set(error, STATUS_INVALID_CONFIG, "unknown topic configuration \"%.100s\"",
                         name);
    }
    uint32_t at = entry_position(config, key);
    if (value == NULL) {
        if (entry_is_at(config, at, key)) entry_remove(config, at);
        return STATUS_OK;
    }
    char *canonical = NULL;
    enum status status = value_canonical(key, name, value, &canonical, error);
    if (status != STATUS_OK) return status;
    if (entry_is_at(config, at, key)) {
        free(config->entries[at].value);
        config->entries[at].value = canonical;
    } else {
        entry_insert(config, at, key, canonical);
    }
    return STATUS_OK;
}

static const char *value_of(const struct topic_config *config, const struct topic_config_key *key)
{
    uint32_t at = entry_position(config, key);
    return entry_is_at(config, at, key) ? config->entries[at].value : key->default_value;
}

const char *topic_config_get(const struct topic_config *config, const char *name)
{
    const struct topic_config_key *key = topic_config_find(name);
    return key == NULL ? NULL : value_of(config, key);
}

bool topic_config_is_set(const struct topic_config *config, const char *name)
{
    const struct topic_config_key *key = topic_config_find(name);
    return key != NULL && entry_is_at(config, entry_position(config, key), key);
}

/* Values are canonical, so they parse. */
static int64_t number_of(const struct topic_config *config, enum config_index index)
{
    return strtoll(value_of(config, &config_keys[index]), NULL, 10);
}

void topic_config_settings(const struct topic_config *config, struct topic_settings *out)
{
    const char *policy = value_of(config, &config_keys[KEY_CLEANUP_POLICY]);
    const char *stamp = value_of(config, &config_keys[KEY_MESSAGE_TIMESTAMP_TYPE]);
    const char *gaps = value_of(config, &config_keys[KEY_OFFSET_GAPS]);
    bool compacted = strstr(policy, "compact") != NULL;
    int64_t segment_ms = number_of(config, KEY_SEGMENT_MS);
    int64_t lag_ms_max = number_of(config, KEY_MAX_COMPACTION_LAG_MS);
    /* Only what is in a closed segment can be compacted. */
    if (compacted && lag_ms_max < segment_ms) segment_ms = lag_ms_max;
    *out = (struct topic_settings){
        .log =
            {
                .segment_bytes = number_of(config, KEY_SEGMENT_BYTES),
                .segment_ms = segment_ms,
                .index_interval_bytes = number_of(config, KEY_INDEX_INTERVAL_BYTES),
                .retention_ms = number_of(config, KEY_RETENTION_MS),
                .retention_bytes = number_of(config, KEY_RETENTION_BYTES),
                .delete_old = strstr(policy, "delete") != NULL,
                .compacted = compacted || strcmp(gaps, "true") == 0,
            },
        .compacted = compacted,
        .min_cleanable_ratio =
            strtod(value_of(config, &config_keys[KEY_MIN_CLEANABLE_DIRTY_RATIO]), NULL),
        .min_compaction_lag_ms = number_of(config, KEY_MIN_COMPACTION_LAG_MS),
        .max_compaction_lag_ms = lag_ms_max,
        .delete_retention_ms = number_of(config, KEY_DELETE_RETENTION_MS),
        .log_append_time = strcmp(stamp, "LogAppendTime") == 0,
        .batch_bytes_max = (uint32_t)number_of(config, KEY_MAX_MESSAGE_BYTES),
        .min_insync = (int32_t)number_of(config, KEY_MIN_INSYNC_REPLICAS),
        .timestamp_before_max_ms = number_of(config, KEY_MESSAGE_TIMESTAMP_BEFORE_MAX_MS),
        .timestamp_after_max_ms = number_of(config, KEY_MESSAGE_TIMESTAMP_AFTER_MAX_MS),
    };
}

void topic_config_follow(struct topic_config *config, const struct topic_config *before)
{
    struct topic_settings was, is;
    topic_config_settings(before, &was);
    topic_config_settings(config, &is);
    if (!was.log.compacted || is.log.compacted) return;
    enum status status = topic_config_set(config, TOPIC_CONFIG_OFFSET_GAPS, "true", NULL);
    ASSERT(status == STATUS_OK);
}

/* ---- names ---- */

bool topic_name_is_valid(const char *name, size_t bytes, bool strict)
{
    if (bytes == 0 || bytes > 249) return false;
    if (strict && name[0] == '-') return false;
    if (name[0] == '.' && (bytes == 1 || (bytes == 2 && name[1] == '.'))) return false;
    for (size_t i = 0; i < bytes; i++) {
        char c = name[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter && !(c >= '0' && c <= '9') && c != '.' && c != '_' && c != '-') return false;
    }
    return true;
}

bool topic_name_is_internal(const char *name)
{
    return strcmp(name, "__consumer_offsets") == 0 || strcmp(name, "__transaction_state") == 0;
}
