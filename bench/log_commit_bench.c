/* log_commit_bench.c: what a commit costs: append to durable, against a bare pwrite and fdatasync.
 *
 *   log_commit_bench DIR [SECONDS]
 *
 * Four measurements, one line each: the bare device, 100-byte appends one after another, 64 KiB
 * appends with sixteen in flight, 100-byte appends to 16 partitions at once. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "io/executor_threads.h"
#include "io/loop_event.h"
#include "log/log_store.h"
#include "record/batch.h"

#define SAMPLES_MAX    1000000
#define PARTITIONS_MAX 64

struct bench {
    struct loop_event *loop;
    struct executor *executor;
    struct log_store *store;
    struct partition_log *logs[PARTITIONS_MAX];
    int partitions, window; /* appends in flight, a partition */
    size_t value_bytes;
    int64_t began_us[PARTITIONS_MAX], until_us, start_us;
    int64_t acknowledged[PARTITIONS_MAX];
    int64_t samples[SAMPLES_MAX];
    int sample_count;
    int64_t bytes;
    bool done;
};

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static void report(const char *what, int64_t *samples, int count, int64_t bytes, int64_t took_us)
{
    qsort(samples, (size_t)count, sizeof(*samples), compare);
    printf("%-28s n=%-7d p50=%lldus p99=%lldus max=%lldus rate=%.0f/s %.1f MB/s\n", what, count,
           (long long)samples[count / 2], (long long)samples[count * 99 / 100],
           (long long)samples[count - 1], count * 1e6 / (double)took_us,
           (double)bytes / (double)took_us);
}

static void append(struct bench *bench, int partition)
{
    struct batch_builder builder;
    struct buffer out;
    static uint8_t value[1 << 20];
    struct batch_build_options options = BATCH_BUILD_PLAIN;
    struct partition_log *log = bench->logs[partition];
    batch_builder_init(&builder);
    buffer_init(&out, 0);
    batch_builder_add(&builder, 1000, (struct slice){0},
                      (struct slice){.data = value, .bytes = bench->value_bytes}, 0,
                      (struct slice){0});
    options.base_offset = partition_log_end_offset(log);
    options.leader_epoch = 1;
    if (batch_builder_finish(&builder, &options, &out, NULL) != STATUS_OK) abort();
    struct shared_bytes *shared = shared_bytes_copy(out.data, out.bytes);
    bench->began_us[partition] = loop_now_us(loop_event_interface(bench->loop));
    bench->bytes += (int64_t)out.bytes;
    if (partition_log_append(log, shared, false, NULL) != STATUS_OK) abort();
    shared_bytes_unref(shared);
    batch_builder_deinit(&builder);
    buffer_deinit(&out);
}

static void durable(void *context, struct partition_log *log)
{
    struct bench *bench = context;
    int partition = partition_log_partition(log);
    int64_t now_us = loop_now_us(loop_event_interface(bench->loop));
    int64_t count = partition_log_durable_offset(log) - bench->acknowledged[partition];
    bench->acknowledged[partition] += count;
    for (int64_t i = 0; i < count && bench->sample_count < SAMPLES_MAX; i++) {
        bench->samples[bench->sample_count++] = now_us - bench->began_us[partition];
    }
    if (now_us >= bench->until_us) {
        if (!bench->done) loop_event_stop(bench->loop);
        bench->done = true;
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        append(bench, partition);
    }
}

static void stopped(void *context, enum status status, const struct error *error)
{
    struct bench *bench = context;
    (void)error;
    if (status != STATUS_OK) abort();
    loop_event_stop(bench->loop);
}

static void run(const char *directory, const char *what, int partitions, int window,
                size_t value_bytes, int seconds)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    bench->partitions = partitions;
    bench->window = window;
    bench->value_bytes = value_bytes;
    if (loop_event_new(&bench->loop, NULL) != STATUS_OK) abort();
    if (executor_threads_new(bench->loop, &bench->executor, NULL) != STATUS_OK) abort();
    struct log_config config = {.segment_bytes = 1 << 30,
                                .index_interval_bytes = 4096,
                                .retention_ms = -1,
                                .retention_bytes = -1,
                                .delete_old = true};
    bench->store = log_store_new(
        &(struct log_store_options){.fs = file_system_posix(),
                                    .executor = bench->executor,
                                    .loop = loop_event_interface(bench->loop),
                                    .data_dir = directory,
                                    .cache_bytes_max = 64 << 20,
                                    .unsynced_bytes_max = 64 << 20,
                                    .handlers = {.durable = durable, .context = bench}});
    if (log_store_load(bench->store, NULL) != STATUS_OK) abort();
    for (int i = 0; i < partitions; i++) {
        struct log_identity identity = {.topic = what, .uid = {{1}}, .partition = i};
        bench->logs[i] = log_store_create(bench->store, &identity, &config);
    }
    bench->start_us = loop_now_us(loop_event_interface(bench->loop));
    bench->until_us = bench->start_us + seconds * 1000000LL;
    for (int i = 0; i < partitions * window; i++) {
        append(bench, i % partitions);
    }
    loop_event_run(bench->loop);
    report(what, bench->samples, bench->sample_count, bench->bytes,
           loop_now_us(loop_event_interface(bench->loop)) - bench->start_us);
    log_store_stop(bench->store, stopped, bench);
    loop_event_run(bench->loop);
    executor_threads_drain(bench->executor);
    struct log_store_stats stats;
    log_store_stats(bench->store, &stats);
    printf("%-28s commits=%llu position_writes=%llu max_commit=%lldus\n", "",
           (unsigned long long)stats.commits, (unsigned long long)stats.synced_position_writes,
           (long long)stats.max_commit_us);
    log_store_free(bench->store);
    executor_threads_free(bench->executor);
    loop_event_free(bench->loop);
    free(bench);
}

static int64_t now_us(void)
{
    return clock_monotonic_us(&clock_system);
}

static void run_bare(const char *directory, const char *what, size_t bytes, int seconds)
{
    char path[4096];
    static int64_t samples[SAMPLES_MAX];
    static uint8_t data[1 << 20];
    int count = 0;
    int64_t at = 0, start_us = now_us(), size = 0;
    snprintf(path, sizeof(path), "%s/bare", directory);
    struct file *file = NULL;
    if (file_open(file_system_posix(), path, FILE_WRITE | FILE_CREATE | FILE_TRUNCATE, &file,
                  NULL) != STATUS_OK) {
        abort();
    }
    while (now_us() < start_us + seconds * 1000000LL && count < SAMPLES_MAX) {
        if (at + (int64_t)bytes > size) {
            size += 8 << 20;
            if (file_allocate(file, size, NULL) != STATUS_OK) abort();
        }
        int64_t began_us = now_us();
        if (file_write(file, data, bytes, at, NULL) != STATUS_OK) abort();
        if (file_sync(file, NULL) != STATUS_OK) abort();
        samples[count++] = now_us() - began_us;
        at += (int64_t)bytes;
    }
    report(what, samples, count, at, now_us() - start_us);
    file_close(file);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: log_commit_bench DIR [SECONDS]\n");
        return 2;
    }
    int seconds = argc > 2 ? atoi(argv[2]) : 5;
    run_bare(argv[1], "bare-168B", 168, seconds);
    run(argv[1], "append-100B", 1, 1, 100, seconds);
    run_bare(argv[1], "bare-64KiB", 65536, seconds);
    run(argv[1], "append-64KiB-x16", 1, 16, 65536, seconds);
    run(argv[1], "append-64KiB-x1", 1, 1, 65536, seconds);
    run(argv[1], "append-100B-16partitions", 16, 1, 100, seconds);
    return 0;
}
