#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/assert.h"
#include "broker/topic_config.h"

/* kafka-listener.md 11.4, in its words. */
static const struct {
    const char *name, *default_value;
    enum topic_config_type type;
} spec_rows[] = {
    {"cleanup.policy", "delete", TOPIC_CONFIG_LIST},
    {"retention.ms", "604800000", TOPIC_CONFIG_LONG},
    {"retention.bytes", "-1", TOPIC_CONFIG_LONG},
    {"segment.bytes", "1073741824", TOPIC_CONFIG_INT},
    {"segment.ms", "604800000", TOPIC_CONFIG_LONG},
    {"segment.jitter.ms", "0", TOPIC_CONFIG_LONG},
    {"segment.index.bytes", "10485760", TOPIC_CONFIG_INT},
    {"index.interval.bytes", "4096", TOPIC_CONFIG_INT},
    {"flush.messages", "9223372036854775807", TOPIC_CONFIG_LONG},
    {"flush.ms", "9223372036854775807", TOPIC_CONFIG_LONG},
    {"delete.retention.ms", "86400000", TOPIC_CONFIG_LONG},
    {"min.compaction.lag.ms", "0", TOPIC_CONFIG_LONG},
    {"max.compaction.lag.ms", "9223372036854775807", TOPIC_CONFIG_LONG},
    {"min.cleanable.dirty.ratio", "0.5", TOPIC_CONFIG_DOUBLE},
    {"message.timestamp.type", "CreateTime", TOPIC_CONFIG_STRING},
    {"message.timestamp.before.max.ms", "9223372036854775807", TOPIC_CONFIG_LONG},
    {"message.timestamp.after.max.ms", "3600000", TOPIC_CONFIG_LONG},
    {"compression.type", "producer", TOPIC_CONFIG_STRING},
    {"compression.gzip.level", "-1", TOPIC_CONFIG_INT},
    {"compression.lz4.level", "9", TOPIC_CONFIG_INT},
    {"compression.zstd.level", "3", TOPIC_CONFIG_INT},
    {"unclean.leader.election.enable", "false", TOPIC_CONFIG_BOOLEAN},
    {"min.insync.replicas", "1", TOPIC_CONFIG_INT},
    {"max.message.bytes", "1048588", TOPIC_CONFIG_INT},
    {"preallocate", "false", TOPIC_CONFIG_BOOLEAN},
    {"file.delete.delay.ms", "0", TOPIC_CONFIG_LONG}, /* Kafka: 60000 */
    {"remote.storage.enable", "false", TOPIC_CONFIG_BOOLEAN},
    {"local.retention.ms", "-2", TOPIC_CONFIG_LONG},
    {"local.retention.bytes", "-2", TOPIC_CONFIG_LONG},
    {"leader.replication.throttled.replicas", "", TOPIC_CONFIG_LIST},
    {"follower.replication.throttled.replicas", "", TOPIC_CONFIG_LIST},
};

static void every_key_of_the_spec_is_there_with_its_default(void **state)
{
    (void)state;
    uint32_t count;
    const struct topic_config_key *keys = topic_config_keys(&count);
    assert_int_equal(count, ARRAY_COUNT(spec_rows));
    for (size_t i = 0; i < ARRAY_COUNT(spec_rows); i++) {
        const struct topic_config_key *key = topic_config_find(spec_rows[i].name);
        assert_non_null(key);
        assert_string_equal(key->default_value, spec_rows[i].default_value);
        assert_int_equal(key->type, spec_rows[i].type);
        assert_true(key->documentation[0] != '\0');
    }
    for (uint32_t i = 1; i < count; i++)
        assert_true(strcmp(keys[i - 1].name, keys[i].name) < 0);
}

static void every_default_is_accepted_as_a_value(void **state)
{
    (void)state;
    uint32_t count;
    struct error error;
    struct topic_config config;
    const struct topic_config_key *keys = topic_config_keys(&count);
    topic_config_init(&config);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(topic_config_set(&config, keys[i].name, keys[i].default_value, &error),
                         STATUS_OK);
        assert_string_equal(topic_config_get(&config, keys[i].name), keys[i].default_value);
    }
    assert_int_equal(config.count, count);
    topic_config_deinit(&config);
}

static void assert_refused(const char *name, const char *value)
{
    struct error error = {0};
    struct topic_config config;
    topic_config_init(&config);
    assert_int_equal(topic_config_set(&config, name, value, &error), STATUS_INVALID_CONFIG);
    assert_int_equal(error.status, STATUS_INVALID_CONFIG);
    assert_non_null(strstr(error.text, name));
    assert_int_equal(config.count, 0);
    topic_config_deinit(&config);
}

static void values_out_of_bounds_are_refused_by_name(void **state)
{
    (void)state;
    assert_refused("no.such.key", "1");
    assert_refused("retention.ms", "-2");
    assert_refused("retention.ms", "12x");
    assert_refused("retention.ms", "");
    assert_refused("retention.ms", "5 6");
    assert_refused("retention.ms", "+");
    assert_refused("retention.ms", "9223372036854775808");
    assert_refused("segment.bytes", "1048575");
    assert_refused("segment.bytes", "2147483648");
    assert_refused("min.insync.replicas", "0");
    assert_refused("max.message.bytes", "104857601");
    assert_refused("cleanup.policy", "keep");
    assert_refused("cleanup.policy", "");
    assert_refused("cleanup.policy", "delete,");
    assert_refused("compression.type", "ZSTD");
    assert_refused("compression.type", "none");
    assert_refused("compression.gzip.level", "0");
    assert_refused("compression.gzip.level", "10");
    assert_refused("compression.lz4.level", "0");
    assert_refused("compression.lz4.level", "18");
    assert_refused("compression.zstd.level", "23");
    assert_refused("leader.replication.throttled.replicas", "0:1,");
    assert_refused("leader.replication.throttled.replicas", "0");
    assert_refused("follower.replication.throttled.replicas", "*,0:1");
    assert_refused("message.timestamp.type", "createtime");
    assert_refused("min.cleanable.dirty.ratio", "1.5");
    assert_refused("min.cleanable.dirty.ratio", "nan");
    assert_refused("preallocate", "yes");
    assert_refused("remote.storage.enable", "true");
}

static void values_become_canonical(void **state)
{
    (void)state;
    struct error error;
    struct topic_config config;
    topic_config_init(&config);
    assert_int_equal(topic_config_set(&config, "cleanup.policy", "delete, compact", &error), 0);
    assert_string_equal(topic_config_get(&config, "cleanup.policy"), "compact,delete");
    assert_int_equal(topic_config_set(&config, "retention.ms", "007", &error), 0);
    assert_string_equal(topic_config_get(&config, "retention.ms"), "7");
    assert_int_equal(topic_config_set(&config, "retention.ms", " +8\t", &error), 0);
    assert_string_equal(topic_config_get(&config, "retention.ms"), "8");
    assert_int_equal(topic_config_set(&config, "preallocate", "FALSE", &error), 0);
    assert_string_equal(topic_config_get(&config, "preallocate"), "false");
    topic_config_deinit(&config);
}

static void native_names_mean_the_same_and_retention_counts_seconds(void **state)
{
    (void)state;
    struct error error;
    struct topic_config config;
    topic_config_init(&config);
    assert_int_equal(topic_config_set(&config, "retention", "60", &error), 0);
    assert_string_equal(topic_config_get(&config, "retention.ms"), "60000");
    assert_int_equal(topic_config_set(&config, "retention", "-1", &error), 0);
    assert_string_equal(topic_config_get(&config, "retention.ms"), "-1");
    assert_int_equal(topic_config_set(&config, "max_segment_size", "2097152", &error), 0);
    assert_string_equal(topic_config_get(&config, "segment.bytes"), "2097152");
    assert_int_equal(topic_config_set(&config, "max_log_bytes", "99", &error), 0);
    assert_string_equal(topic_config_get(&config, "retention.bytes"), "99");
    assert_int_equal(topic_config_set(&config, "cleanup_policy", "compact", &error), 0);
    assert_string_equal(topic_config_get(&config, "cleanup.policy"), "compact");
    topic_config_deinit(&config);
}

static void a_null_value_goes_back_to_the_default(void **state)
{
    (void)state;
    struct error error;
    struct topic_config config;
    topic_config_init(&config);
    assert_int_equal(topic_config_set(&config, "segment.ms", "5", &error), 0);
    assert_true(topic_config_is_set(&config, "segment.ms"));
    assert_int_equal(topic_config_set(&config, "segment.ms", NULL, &error), 0);
    assert_false(topic_config_is_set(&config, "segment.ms"));
    assert_string_equal(topic_config_get(&config, "segment.ms"), "604800000");
    topic_config_deinit(&config);
}

/* Kafka 4 does not know them any more either. */
static void retired_keys_are_unknown(void **state)
{
    (void)state;
    assert_refused("message.format.version", "3.0");
    assert_refused("message.downconversion.enable", "false");
    assert_refused("message.timestamp.difference.max.ms", "1");
}

static void what_we_would_not_keep_is_refused_with_the_reason(void **state)
{
    (void)state;
    static const char *const rows[][3] = {
        {"unclean.leader.election.enable", "true", "would lose acknowledged records"},
        {"remote.storage.enable", "true", "there is no remote storage"},
        {"local.retention.ms", "1000", "there is no remote storage"},
        {"local.retention.bytes", "1000", "there is no remote storage"},
        {"preallocate", "true", "reserved in steps"},
        {"file.delete.delay.ms", "60000", "as soon as nothing reads them"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct error error = {0};
        struct topic_config config;
        topic_config_init(&config);
        assert_int_equal(topic_config_set(&config, rows[i][0], rows[i][1], &error),
                         STATUS_INVALID_CONFIG);
        assert_non_null(strstr(error.text, rows[i][0]));
        assert_non_null(strstr(error.text, rows[i][1]));
        assert_non_null(strstr(error.text, rows[i][2]));
    }
}

/* A broker of an earlier version wrote them; they never had an effect. */
static void what_earlier_versions_took_is_left_out_when_read_again(void **state)
{
    (void)state;
    struct error error;
    struct topic_config config;
    topic_config_init(&config);
    assert_int_equal(
        topic_config_restore(&config, "unclean.leader.election.enable", "true", &error), 0);
    assert_int_equal(topic_config_restore(&config, "preallocate", "true", &error), 0);
    assert_int_equal(config.count, 0);
    assert_int_equal(topic_config_restore(&config, "segment.ms", "5", &error), 0);
    assert_int_equal(config.count, 1);
    assert_int_equal(topic_config_restore(&config, "segment.ms", "-5", &error),
                     STATUS_INVALID_CONFIG);
    assert_int_equal(topic_config_restore(&config, "no.such.key", "5", &error),
                     STATUS_INVALID_CONFIG);
    topic_config_deinit(&config);
}

static void bounds_of_compaction_must_not_cross(void **state)
{
    (void)state;
    struct error error;
    struct topic_config config;
    topic_config_init(&config);
    assert_int_equal(topic_config_set(&config, "min.compaction.lag.ms", "10", &error), 0);
    assert_int_equal(topic_config_check(&config, &error), 0);
    assert_int_equal(topic_config_set(&config, "max.compaction.lag.ms", "10", &error), 0);
    assert_int_equal(topic_config_check(&config, &error), 0);
    assert_int_equal(topic_config_set(&config, "max.compaction.lag.ms", "9", &error), 0);
    assert_int_equal(topic_config_check(&config, &error), STATUS_INVALID_CONFIG);
    assert_string_equal(error.text, "min.compaction.lag.ms: 10 is above max.compaction.lag.ms, "
                                    "which is 9");
    topic_config_deinit(&config);
}

static void compression_is_by_codec_and_its_own_level(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        bool recompress;
        enum batch_codec codec;
        int level;
    } rows[] = {{"producer", false, CODEC_NONE, 0}, {"uncompressed", true, CODEC_NONE, 0},
                {"gzip", true, CODEC_GZIP, 4},      {"snappy", true, CODEC_SNAPPY, 0},
                {"lz4", true, CODEC_LZ4, 5},        {"zstd", true, CODEC_ZSTD, -6}};
    struct error error;
    struct topic_config config;
    struct topic_settings settings;
    topic_config_init(&config);
    assert_int_equal(topic_config_set(&config, "compression.gzip.level", "4", &error), 0);
    assert_int_equal(topic_config_set(&config, "compression.lz4.level", "5", &error), 0);
    assert_int_equal(topic_config_set(&config, "compression.zstd.level", "-6", &error), 0);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        assert_int_equal(topic_config_set(&config, "compression.type", rows[i].type, &error), 0);
        topic_config_settings(&config, &settings);
        assert_int_equal(settings.recompress, rows[i].recompress);
        assert_int_equal(settings.compression.codec, rows[i].codec);
        assert_int_equal(settings.compression.level, rows[i].level);
    }
    topic_config_deinit(&config);
}

static void settings_follow_the_values(void **state)
{
    (void)state;
    struct error error;
    struct topic_config config;
    struct topic_settings settings;
    topic_config_init(&config);
    topic_config_settings(&config, &settings);
    assert_true(settings.log.delete_old);
    assert_false(settings.compacted);
    assert_int_equal(settings.batch_bytes_max, 1048588);
    assert_int_equal(settings.min_insync, 1);
    assert_int_equal(topic_config_set(&config, "cleanup.policy", "compact", &error), 0);
    assert_int_equal(topic_config_set(&config, "message.timestamp.type", "LogAppendTime", &error),
                     0);
    assert_int_equal(topic_config_set(&config, "min.insync.replicas", "3", &error), 0);
    topic_config_settings(&config, &settings);
    assert_false(settings.log.delete_old);
    assert_true(settings.compacted && settings.log.compacted && settings.log_append_time);
    assert_int_equal(settings.min_insync, 3);
    topic_config_deinit(&config);
}

static void copies_are_equal_until_one_changes(void **state)
{
    (void)state;
    struct error error;
    struct topic_config config, copy;
    topic_config_init(&config);
    assert_int_equal(topic_config_set(&config, "segment.ms", "5", &error), 0);
    topic_config_copy(&copy, &config);
    assert_true(topic_config_equal(&config, &copy));
    assert_int_equal(topic_config_set(&copy, "segment.ms", "6", &error), 0);
    assert_false(topic_config_equal(&config, &copy));
    topic_config_deinit(&config);
    topic_config_deinit(&copy);
}

static void topic_names_follow_the_syntax(void **state)
{
    (void)state;
    char longest[251];
    memset(longest, 'a', sizeof(longest));
    assert_true(topic_name_is_valid("Orders_1.x-y", 12, true));
    assert_true(topic_name_is_valid(longest, 249, true));
    assert_false(topic_name_is_valid(longest, 250, true));
    assert_false(topic_name_is_valid("", 0, false));
    assert_false(topic_name_is_valid(".", 1, false));
    assert_false(topic_name_is_valid("..", 2, false));
    assert_true(topic_name_is_valid("..a", 3, false));
    assert_false(topic_name_is_valid("a/b", 3, false));
    assert_true(topic_name_is_valid("-a", 2, false));
    assert_false(topic_name_is_valid("-a", 2, true));
    assert_true(topic_name_is_internal("__consumer_offsets"));
    assert_true(topic_name_is_internal("__transaction_state"));
    assert_false(topic_name_is_internal("__else"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_of_the_spec_is_there_with_its_default),
        cmocka_unit_test(every_default_is_accepted_as_a_value),
        cmocka_unit_test(values_out_of_bounds_are_refused_by_name),
        cmocka_unit_test(values_become_canonical),
        cmocka_unit_test(native_names_mean_the_same_and_retention_counts_seconds),
        cmocka_unit_test(a_null_value_goes_back_to_the_default),
        cmocka_unit_test(retired_keys_are_unknown),
        cmocka_unit_test(what_we_would_not_keep_is_refused_with_the_reason),
        cmocka_unit_test(what_earlier_versions_took_is_left_out_when_read_again),
        cmocka_unit_test(bounds_of_compaction_must_not_cross),
        cmocka_unit_test(compression_is_by_codec_and_its_own_level),
        cmocka_unit_test(settings_follow_the_values),
        cmocka_unit_test(copies_are_equal_until_one_changes),
        cmocka_unit_test(topic_names_follow_the_syntax),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
