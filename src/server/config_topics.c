/* config_topics.c: the defaults of topics that do not say otherwise, by Kafka's names for the
 * broker's side of a topic setting (`log.retention.ms` for `retention.ms`). Some have names in
 * several units: the finest that is given counts, as in Kafka. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "broker/topic_config.h"
#include "server/config.h"
#include "server/config_keys.h"

static enum status not_a_value(const struct config_key *key, struct error *error)
{
    return error_set(error, STATUS_INVALID_CONFIG, "%s: expected %s", key->path,
                     key->low > 1 ? "an integer" : "a number, or a short text");
}

/* A number in the key's unit; -1 is "no limit" in each. */
static bool scale(const char *text, int64_t unit, char *out, size_t bytes)
{
    char *end;
    int64_t number = strtoll(text, &end, 10), product;
    if (end == text || *end != '\0') return false;
    if (number < 0) unit = 1;
    if (__builtin_mul_overflow(number, unit, &product)) product = INT64_MAX;
    return snprintf(out, bytes, "%" PRId64, product) > 0;
}

static enum status value_text(const struct config_key *key, const json_t *value, char *out,
                              size_t bytes, struct error *error)
{
    char given[CONFIG_TOPIC_VALUE_BYTES] = "";
    int length = -1;
    if (json_is_integer(value)) {
        length = snprintf(given, sizeof(given), "%lld", (long long)json_integer_value(value));
    } else if (json_is_real(value)) {
        length = snprintf(given, sizeof(given), "%g", json_real_value(value));
    } else if (json_is_string(value)) {
        length = snprintf(given, sizeof(given), "%s", json_string_value(value));
    }
    if (length < 0 || (size_t)length >= sizeof(given)) return not_a_value(key, error);
    if (key->low > 1) {
        return scale(given, key->low, out, bytes) ? STATUS_OK : not_a_value(key, error);
    }
    snprintf(out, bytes, "%s", given);
    return STATUS_OK;
}

static const struct config_topic_default *find(const struct server_config *config,
                                               const char *topic_key)
{
    for (uint32_t i = 0; i < config->topic_default_count; i++) {
        const struct config_topic_default *entry = &config->topic_defaults[i];
        if (strcmp(entry->key, topic_key) == 0) return entry;
    }
    return NULL;
}

enum status config_read_topic_default(const struct config_key *key, const json_t *value,
                                      struct server_config *config, struct error *error)
{
    struct config_topic_default entry = {.key = key->text, .unit = key->low};
    struct topic_config probe;
    struct error detail = {0};
    enum status status = value_text(key, value, entry.value, sizeof(entry.value), error);
    if (status != STATUS_OK) return status;
    topic_config_init(&probe);
    status = topic_config_set(&probe, key->text, entry.value, &detail);
    topic_config_deinit(&probe);
    if (status != STATUS_OK) {
        return error_set(error, STATUS_INVALID_CONFIG, "%s: of topics, %s", key->path, detail.text);
    }
    const struct config_topic_default *there = find(config, entry.key);
    uint32_t at = config->topic_default_count;
    if (there == NULL) {
        ASSERT(at < CONFIG_TOPIC_DEFAULTS_MAX);
        config->topic_default_count++;
    } else if (there->unit < entry.unit) {
        return STATUS_OK;
    } else {
        at = (uint32_t)(there - config->topic_defaults);
    }
    config->topic_defaults[at] = entry;
    return STATUS_OK;
}

enum status config_topic_defaults(const struct server_config *config, struct topic_config *out,
                                  struct error *error)
{
    topic_config_init(out);
    for (uint32_t i = 0; i < config->topic_default_count; i++) {
        const struct config_topic_default *entry = &config->topic_defaults[i];
        enum status status = topic_config_set(out, entry->key, entry->value, error);
        if (status != STATUS_OK) return status;
    }
    return topic_config_check(out, error);
}

json_t *config_topic_default_value(const struct server_config *config, const struct config_key *key)
{
    const struct config_topic_default *given = find(config, key->text);
    if (given != NULL ? given->unit != key->low : key->low > 1) return NULL;
    const char *text = given != NULL ? given->value : topic_config_find(key->text)->default_value;
    char *end;
    long long number = strtoll(text, &end, 10);
    if (end == text || *end != '\0') return json_string(text);
    return json_integer(number > 0 ? number / key->low : number);
}
