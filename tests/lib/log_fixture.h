/* log_fixture.h: a log store with one partition, "t/0", on a disk in memory. */
#ifndef MOONMQ_TESTS_LOG_FIXTURE_H
#define MOONMQ_TESTS_LOG_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/log.h"
#include "lib/fake_loop.h"
#include "lib/memory_disk.h"
#include "log/log_store.h"
#include "record/batch.h"

#define FIXTURE_DIRECTORY "/data/topics/t/0"

struct log_fixture {
    struct memory_disk *disk;
    struct fake_loop loop;
    struct log_store *store;
    struct partition_log *log;
    struct log_recovery recovery;
    struct log_config config;
    size_t cache_bytes_max, unsynced_bytes_max;
    int durable_calls, failed_calls, snapshot_calls;
    enum status failed_status;
    int64_t snapshot_offset;
    /* the last done callback */
    int done_calls;
    enum status done_status;
};

static inline void fixture_durable(void *context, struct partition_log *log)
{
    (void)log;
    ((struct log_fixture *)context)->durable_calls++;
}
static inline void fixture_failed(void *context, struct partition_log *log,
                                  const struct error *error)
{
    struct log_fixture *fixture = context;
    (void)log;
    fixture->failed_calls++;
    fixture->failed_status = error->status;
}
static inline void fixture_snapshot(void *context, struct partition_log *log, int64_t base_offset,
                                    struct buffer *out)
{
    struct log_fixture *fixture = context;
    fixture->snapshot_calls++;
    fixture->snapshot_offset = base_offset;
    assert_int_equal(base_offset, partition_log_end_offset(log));
    buffer_printf(out, "state at %lld", (long long)base_offset);
}
static inline void fixture_done(void *context, enum status status, const struct error *error)
{
    struct log_fixture *fixture = context;
    (void)error;
    fixture->done_calls++;
    fixture->done_status = status;
}

static inline void fixture_quiet(void *context, enum log_level level, const char *line)
{
    (void)context;
    if (level == LOG_ERROR && getenv("LOG_FIXTURE_LOUD") != NULL) fprintf(stderr, "%s\n", line);
}

static inline void fixture_init(struct log_fixture *fixture, struct memory_disk *disk)
{
    log_set_sink(fixture_quiet, NULL);
    *fixture = (struct log_fixture){.disk = disk,
                                    .cache_bytes_max = 1 << 20,
                                    .unsynced_bytes_max = 1 << 24,
                                    .config = {.segment_bytes = 1 << 20,
                                               .segment_ms = -1,
                                               .index_interval_bytes = 4096,
                                               .retention_ms = -1,
                                               .retention_bytes = -1,
                                               .delete_old = true}};
    fake_loop_init(&fixture->loop);
}
static inline struct log_identity fixture_identity(int32_t partition)
{
    return (struct log_identity){
        .topic = "t", .uid = {{1, 2, 3, 4, 5, 6, 7, 8}}, .partition = partition};
}
static inline struct log_store *fixture_store(struct log_fixture *fixture)
{
    return log_store_new(
        &(struct log_store_options){.fs = &fixture->disk->fs,
                                    .executor = &fixture->loop.executor,
                                    .loop = &fixture->loop.loop,
                                    .data_dir = "/data",
                                    .cache_bytes_max = fixture->cache_bytes_max,
                                    .unsynced_bytes_max = fixture->unsynced_bytes_max,
                                    .handlers = {.durable = fixture_durable,
                                                 .failed = fixture_failed,
                                                 .snapshot = fixture_snapshot,
                                                 .context = fixture}});
}
/* Opens the store and recovers the partition; the status is recovery's (or loading's). */
static inline enum status fixture_try_open(struct log_fixture *fixture)
{
    struct error error = {0};
    struct log_identity identity = fixture_identity(0);
    fixture->log = NULL;
    fixture->store = fixture_store(fixture);
    enum status status = log_store_load(fixture->store, &error);
    if (status != STATUS_OK) return status;
    return log_store_recover(fixture->store, &identity, &fixture->config, &fixture->log,
                             &fixture->recovery, &error);
}
static inline void fixture_open(struct log_fixture *fixture)
{
    assert_int_equal(fixture_try_open(fixture), STATUS_OK);
}
/* A new disk with a DataDir. */
static inline void fixture_begin(struct log_fixture *fixture, struct memory_disk *disk)
{
    memory_disk_init(disk);
    fixture_init(fixture, disk);
    assert_int_equal(file_make_directory(&disk->fs, "/data", NULL), STATUS_OK);
    memory_disk_settle(disk);
}
/* Lets everything come to rest, positions and offsets included. */
static inline void fixture_rest(struct log_fixture *fixture)
{
    fake_loop_advance(&fixture->loop, 5000000);
}
/* The process ends without a word: what is under way fails, and nothing more reaches the disk. */
static inline void fixture_crash(struct log_fixture *fixture)
{
    fixture->disk->fail_at = fixture->disk->operations + 1;
    fixture->disk->fail_for_ever = true;
    fake_loop_run(&fixture->loop);
    log_store_free(fixture->store);
    fake_loop_deinit(&fixture->loop);
    fixture->store = NULL;
    fixture->disk->fail_at = 0;
    fixture->disk->fail_for_ever = false;
    assert_int_equal(fixture->disk->open_files, 0);
}
static inline void fixture_stop(struct log_fixture *fixture)
{
    log_store_stop(fixture->store, fixture_done, fixture);
    fixture_rest(fixture);
    log_store_free(fixture->store);
    fake_loop_deinit(&fixture->loop);
    fixture->store = NULL;
    assert_int_equal(fixture->disk->open_files, 0);
}
static inline void fixture_reopen(struct log_fixture *fixture)
{
    int64_t now_us = fixture->loop.now_us;
    fake_loop_init(&fixture->loop);
    fixture->loop.now_us = now_us;
    fixture_open(fixture);
}

/* One batch of `records` records at `offset`; each value is its offset, padded to `value_bytes`. */
static inline struct shared_bytes *fixture_batch(int64_t offset, int records, int32_t epoch,
                                                 int64_t timestamp_ms, size_t value_bytes)
{
    struct batch_builder builder;
    struct buffer out;
    struct batch_build_options options = BATCH_BUILD_PLAIN;
    uint8_t *value = calloc(1, value_bytes + 24);
    batch_builder_init(&builder);
    buffer_init(&out, 0);
    for (int i = 0; i < records; i++) {
        int length = snprintf((char *)value, 24, "%lld", (long long)(offset + i));
        memset(value + length, '.',
               value_bytes > (size_t)length ? value_bytes - (size_t)length : 0);
        size_t bytes = value_bytes > (size_t)length ? value_bytes : (size_t)length;
        batch_builder_add(&builder, timestamp_ms + i, (struct slice){0},
                          (struct slice){.data = value, .bytes = bytes}, 0, (struct slice){0});
    }
    options.base_offset = offset;
    options.leader_epoch = epoch;
    assert_int_equal(batch_builder_finish(&builder, &options, &out, NULL), STATUS_OK);
    struct shared_bytes *shared = shared_bytes_copy(out.data, out.bytes);
    batch_builder_deinit(&builder);
    buffer_deinit(&out);
    free(value);
    return shared;
}
static inline enum status fixture_append_to(struct partition_log *log, int records, int32_t epoch,
                                            int64_t timestamp_ms, size_t value_bytes)
{
    struct shared_bytes *batch =
        fixture_batch(partition_log_end_offset(log), records, epoch, timestamp_ms, value_bytes);
    enum status status = partition_log_append(log, batch, false, NULL);
    shared_bytes_unref(batch);
    return status;
}
/* One record of about 100 bytes on disk, epoch 1. */
static inline void fixture_append(struct log_fixture *fixture)
{
    assert_int_equal(fixture_append_to(fixture->log, 1, 1, 1000, 20), STATUS_OK);
}
/* Appends and lets it become durable. */
static inline void fixture_append_durably(struct log_fixture *fixture, int count)
{
    for (int i = 0; i < count; i++) {
        fixture_append(fixture);
        fake_loop_run(&fixture->loop);
    }
    assert_int_equal(partition_log_durable_offset(fixture->log),
                     partition_log_end_offset(fixture->log));
}

/* Reads from `offset` on, to the end; checks every record's value. Returns the offset it stopped
 * at, and the last status. */
struct fixture_reading {
    bool done;
};
static inline void fixture_read_done(void *context, struct log_read *read)
{
    (void)read;
    ((struct fixture_reading *)context)->done = true;
}
static inline void fixture_check_batches(const struct log_read *read)
{
    for (uint32_t i = 0; i < read->piece_count; i++) {
        const uint8_t *data = read->pieces[i].shared->data + read->pieces[i].at;
        uint32_t bytes = read->pieces[i].bytes, at = 0;
        while (at < bytes) {
            struct record_iterator iterator;
            struct record record;
            struct batch_header header;
            assert_int_equal(batch_parse(data + at, bytes - at, true, &header, NULL), STATUS_OK);
            assert_true(batch_crc_matches(data + at, &header));
            assert_int_equal(
                record_iterator_init(&iterator, data + at, header.batch_bytes, 1 << 24, NULL),
                STATUS_OK);
            while (record_iterator_next(&iterator, &record, NULL) == STATUS_OK) {
                char text[24] = "";
                memcpy(text, record.value.data, record.value.bytes < 23 ? record.value.bytes : 23);
                assert_int_equal(strtoll(text, NULL, 10), record.offset);
            }
            record_iterator_deinit(&iterator);
            at += header.batch_bytes;
        }
    }
}
static inline enum status fixture_read_once(struct log_fixture *fixture, struct log_read *read)
{
    struct fixture_reading reading = {0};
    read->done = fixture_read_done;
    read->context = &reading;
    enum status status = partition_log_read(fixture->log, read);
    if (status == STATUS_AGAIN) {
        while (!reading.done) {
            assert_true(fake_loop_run_job(&fixture->loop) ||
                        fake_loop_run_deferred(&fixture->loop));
        }
        status = read->status;
    }
    assert_int_equal(status, read->status);
    return status;
}
static inline int64_t fixture_read_all(struct log_fixture *fixture, int64_t offset,
                                       uint32_t bytes_max, enum status *status)
{
    for (;;) {
        struct log_read read = {.offset = offset,
                                .limit_offset = INT64_MAX,
                                .bytes_max = bytes_max,
                                .at_least_one = true};
        *status = fixture_read_once(fixture, &read);
        if (*status != STATUS_OK || read.next_offset == offset) {
            log_read_release(&read);
            return offset;
        }
        fixture_check_batches(&read);
        offset = read.next_offset;
        log_read_release(&read);
    }
}

#endif
