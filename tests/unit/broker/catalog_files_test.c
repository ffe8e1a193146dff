#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "broker/catalog_files.h"

static struct uuid some_uid(uint64_t seed)
{
    struct random random;
    random_seed(&random, seed);
    return uuid_random(&random);
}

static void topic_text(struct buffer *out, struct topic_config *config)
{
    struct error error;
    topic_config_init(config);
    assert_int_equal(topic_config_set(config, "retention.ms", "5", &error), STATUS_OK);
    const struct manifest_topic topic = {.name = "orders",
                                         .uid = some_uid(1),
                                         .partitions = 12,
                                         .internal = false,
                                         .config = config,
                                         .since = {3, 9}};
    buffer_init(out, 0);
    topic_file_encode(out, &topic);
}

static void a_topic_file_reads_back(void **state)
{
    (void)state;
    struct buffer text;
    struct topic_config config;
    struct topic_record record;
    struct error error;
    struct uuid uid = some_uid(1);
    topic_text(&text, &config);
    assert_int_equal(topic_file_decode(buffer_slice(&text), &record, &error), STATUS_OK);
    assert_string_equal(record.name, "orders");
    assert_true(uuid_equal(&record.uid, &uid));
    assert_int_equal(record.partitions, 12);
    assert_int_equal(record.since.epoch, 3);
    assert_int_equal(record.since.n, 9);
    assert_true(topic_config_equal(&record.config, &config));
    topic_record_deinit(&record);
    topic_config_deinit(&config);
    buffer_deinit(&text);
}

static void every_truncation_and_every_flipped_bit_of_a_topic_file_is_refused(void **state)
{
    (void)state;
    struct buffer text;
    struct topic_config config;
    struct topic_record record;
    struct error error;
    topic_text(&text, &config);
    size_t whole = text.bytes;
    while (whole > 0 && text.data[whole - 1] == '\n')
        whole--;
    for (size_t bytes = 0; bytes < whole; bytes++) {
        assert_int_not_equal(topic_file_decode((struct slice){text.data, bytes}, &record, &error),
                             STATUS_OK);
    }
    for (size_t at = 0; at < whole; at++) {
        text.data[at] ^= 4;
        enum status status = topic_file_decode(buffer_slice(&text), &record, &error);
        assert_int_not_equal(status, STATUS_OK);
        text.data[at] ^= 4;
    }
    topic_config_deinit(&config);
    buffer_deinit(&text);
}

static void a_manifest_file_reads_back_in_order(void **state)
{
    (void)state;
    struct buffer text;
    struct topic_config config;
    struct manifest_record record;
    struct error error;
    topic_config_init(&config);
    const struct manifest_topic topics[] = {
        {.name = "a", .uid = some_uid(1), .partitions = 1, .config = &config, .since = {1, 2}},
        {.name = "b", .uid = some_uid(2), .partitions = 3, .internal = true, .since = {1, 4}},
    };
    const struct manifest_tombstone tombstones[] = {
        {.uid = some_uid(3), .name = "c", .at = {1, 3}}};
    buffer_init(&text, 0);
    manifest_file_encode(&text, (struct manifest_version){2, 5}, topics, 2, tombstones, 1);
    assert_int_equal(manifest_file_decode(buffer_slice(&text), &record, &error), STATUS_OK);
    assert_int_equal(record.version.epoch, 2);
    assert_int_equal(record.version.n, 5);
    assert_int_equal(record.line_count, 2);
    assert_string_equal(record.lines[1].name, "b");
    assert_true(record.lines[1].internal);
    assert_int_equal(record.lines[1].partitions, 3);
    assert_int_equal(record.tombstone_count, 1);
    assert_string_equal(record.tombstones[0].name, "c");
    assert_int_equal(record.tombstones[0].at.n, 3);
    manifest_record_deinit(&record);
    for (size_t bytes = 0; bytes + 2 < text.bytes; bytes++) {
        assert_int_not_equal(
            manifest_file_decode((struct slice){text.data, bytes}, &record, &error), STATUS_OK);
    }
    buffer_deinit(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_topic_file_reads_back),
        cmocka_unit_test(every_truncation_and_every_flipped_bit_of_a_topic_file_is_refused),
        cmocka_unit_test(a_manifest_file_reads_back_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
