/* topic_config.c: the overrides of one topic, and what they amount to (kafka-listener.md 11.4).
 * Which keys there are and what each accepts: topic_config_table.c. Pure. */
#include "broker/topic_config.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/edit_distance.h"
#include "base/memory.h"
#include "broker/topic_config_table.h"

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
    to->defaults = from->defaults;
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

static enum status refuse_unknown(const char *name, struct error *error)
{
    const char *best = "";
    size_t best_distance = EDIT_DISTANCE_BYTES_MAX;
    for (int i = 0; i < KEY_PUBLIC_COUNT; i++) {
        const char *each = topic_config_key_at((enum config_index)i)->name;
        size_t distance = edit_distance(name, each);
        if (distance >= best_distance) continue;
        best_distance = distance;
        best = each;
    }
    bool near = edit_distance_is_near(name, best_distance);
    return error_set(error, STATUS_INVALID_CONFIG, "unknown topic configuration \"%.100s\"%s%s%s",
                     name, near ? " (did you mean \"" : "", near ? best : "", near ? "\"?)" : "");
}

enum status topic_config_set(struct topic_config *config, const char *name, const char *value,
                             struct error *error)
{
    const struct topic_config_key *key = topic_config_find(name);
    if (key == NULL) return refuse_unknown(name, error);
    uint32_t at = entry_position(config, key);
    if (value == NULL) {
        if (entry_is_at(config, at, key)) entry_remove(config, at);
        return STATUS_OK;
    }
    char *canonical = NULL;
    enum status status = topic_config_canonical(key, name, value, &canonical, error);
    if (status != STATUS_OK) return status;
    if (entry_is_at(config, at, key)) {
        free(config->entries[at].value);
        config->entries[at].value = canonical;
    } else {
        entry_insert(config, at, key, canonical);
    }
    return STATUS_OK;
}

enum status topic_config_restore(struct topic_config *config, const char *name, const char *value,
                                 struct error *error)
{
    const struct topic_config_key *key = topic_config_find(name);
    enum status status = topic_config_set(config, name, value, error);
    if (status == STATUS_OK || key == NULL || !topic_config_was_laxer(key)) return status;
    error->status = STATUS_OK;
    return STATUS_OK;
}

static const char *value_of(const struct topic_config *config, const struct topic_config_key *key)
{
    uint32_t at = entry_position(config, key);
    if (entry_is_at(config, at, key)) return config->entries[at].value;
    return config->defaults != NULL ? value_of(config->defaults, key) : key->default_value;
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

enum status topic_config_check(const struct topic_config *config, struct error *error)
{
    struct topic_settings settings;
    topic_config_settings(config, &settings);
    if (settings.min_compaction_lag_ms <= settings.max_compaction_lag_ms) return STATUS_OK;
    return error_set(error, STATUS_INVALID_CONFIG,
                     "min.compaction.lag.ms: %lld is above max.compaction.lag.ms, which is %lld",
                     (long long)settings.min_compaction_lag_ms,
                     (long long)settings.max_compaction_lag_ms);
}

bool topic_config_has_default(const struct topic_config *config, const char *name)
{
    return config->defaults != NULL && topic_config_is_set(config->defaults, name);
}

/* Values are canonical, so they parse. */
static int64_t number_of(const struct topic_config *config, enum config_index index)
{
    return strtoll(value_of(config, topic_config_key_at(index)), NULL, 10);
}

static struct batch_compression compression_of(const struct topic_config *config, const char *type)
{
    static const struct {
        const char *name;
        enum batch_codec codec;
        enum config_index level; /* KEY_COUNT: none */
    } kinds[] = {{"gzip", CODEC_GZIP, KEY_COMPRESSION_GZIP_LEVEL},
                 {"snappy", CODEC_SNAPPY, KEY_COUNT},
                 {"lz4", CODEC_LZ4, KEY_COMPRESSION_LZ4_LEVEL},
                 {"zstd", CODEC_ZSTD, KEY_COMPRESSION_ZSTD_LEVEL}};
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
        if (strcmp(kinds[i].name, type) != 0) continue;
        int level = kinds[i].level == KEY_COUNT ? 0 : (int)number_of(config, kinds[i].level);
        return (struct batch_compression){kinds[i].codec, level};
    }
    return (struct batch_compression){CODEC_NONE, 0};
}

void topic_config_settings(const struct topic_config *config, struct topic_settings *out)
{
    const char *policy = value_of(config, topic_config_key_at(KEY_CLEANUP_POLICY));
    const char *stamp = value_of(config, topic_config_key_at(KEY_MESSAGE_TIMESTAMP_TYPE));
    const char *gaps = value_of(config, topic_config_key_at(KEY_OFFSET_GAPS));
    const char *compression = value_of(config, topic_config_key_at(KEY_COMPRESSION_TYPE));
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
                .segment_jitter_ms = number_of(config, KEY_SEGMENT_JITTER_MS),
                .index_bytes = number_of(config, KEY_SEGMENT_INDEX_BYTES),
                .index_interval_bytes = number_of(config, KEY_INDEX_INTERVAL_BYTES),
                .retention_ms = number_of(config, KEY_RETENTION_MS),
                .retention_bytes = number_of(config, KEY_RETENTION_BYTES),
                .delete_old = strstr(policy, "delete") != NULL,
                .compacted = compacted || strcmp(gaps, "true") == 0,
            },
        .compacted = compacted,
        .min_cleanable_ratio =
            strtod(value_of(config, topic_config_key_at(KEY_MIN_CLEANABLE_DIRTY_RATIO)), NULL),
        .min_compaction_lag_ms = number_of(config, KEY_MIN_COMPACTION_LAG_MS),
        .max_compaction_lag_ms = lag_ms_max,
        .delete_retention_ms = number_of(config, KEY_DELETE_RETENTION_MS),
        .log_append_time = strcmp(stamp, "LogAppendTime") == 0,
        .batch_bytes_max = (uint32_t)number_of(config, KEY_MAX_MESSAGE_BYTES),
        .min_insync = (int32_t)number_of(config, KEY_MIN_INSYNC_REPLICAS),
        .timestamp_before_max_ms = number_of(config, KEY_MESSAGE_TIMESTAMP_BEFORE_MAX_MS),
        .timestamp_after_max_ms = number_of(config, KEY_MESSAGE_TIMESTAMP_AFTER_MAX_MS),
        .recompress = strcmp(compression, "producer") != 0,
        .compression = compression_of(config, compression),
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
