/* threads_test.c: the store on the machine's own files, threads and event loop. Under the thread
 * sanitizer it shows that loop and workers keep apart.                                        */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "io/executor_threads.h"
#include "io/loop_event.h"
#include "log/log_store.h"
#include "record/batch.h"

#define PARTITIONS 12
#define ROUNDS     60

struct world {
    struct loop_event *loop;
    struct executor *executor;
    struct log_store *store;
    struct partition_log *logs[PARTITIONS];
    int rounds, waiting;
    struct log_read reads[PARTITIONS];
};

static struct log_config config = {.segment_bytes = 2000,
                                   .segment_ms = -1,
                                   .index_interval_bytes = 1024,
                                   .retention_ms = -1,
                                   .retention_bytes = 3000,
                                   .delete_old = true};

static void quiet(void *context, enum log_level level, const char *line)
{
    (void)context;
    if (level == LOG_ERROR) fprintf(stderr, "%s\n", line);
}

static struct log_identity identity(int partition)
{
    return (struct log_identity){.topic = "busy", .uid = {{7}}, .partition = partition};
}

static void append(struct partition_log *log)
{
    struct batch_builder builder;
    struct buffer out;
    struct batch_build_options options = BATCH_BUILD_PLAIN;
    uint8_t value[100] = {1};
    batch_builder_init(&builder);
    buffer_init(&out, 0);
    for (int i = 0; i < 3; i++) {
        batch_builder_add(&builder, 1000, (struct slice){0},
                          (struct slice){.data = value, .bytes = sizeof(value)}, 0,
                          (struct slice){0});
    }
    options.base_offset = partition_log_end_offset(log);
    options.leader_epoch = 1;
    assert_int_equal(batch_builder_finish(&builder, &options, &out, NULL), STATUS_OK);
    struct shared_bytes *shared = shared_bytes_copy(out.data, out.bytes);
    enum status status = partition_log_append(log, shared, false, NULL);
    assert_true(status == STATUS_OK || status == STATUS_AGAIN);
    shared_bytes_unref(shared);
    batch_builder_deinit(&builder);
    buffer_deinit(&out);
}

static void round_done(struct world *world);

static void one_done(struct world *world)
{
    if (--world->waiting == 0) round_done(world);
}

static void flushed(void *context, enum status status, const struct error *error)
{
    (void)error;
    assert_int_equal(status, STATUS_OK);
    one_done(context);
}

static void cut(void *context, enum status status, const struct error *error)
{
    (void)error;
    assert_int_equal(status, STATUS_OK);
    one_done(context);
}

static void was_read(void *context, struct log_read *read)
{
    assert_true(read->status == STATUS_OK || read->status == STATUS_OUT_OF_RANGE);
    log_read_release(read);
    one_done(context);
}

/* Appends, reads from the beginning, removes old segments, cuts one log, flushes: all at once. */
static void round_begin(struct world *world)
{
    world->waiting = 1;
    for (int i = 0; i < PARTITIONS; i++) {
        struct partition_log *log = world->logs[i];
        append(log);
        int64_t durable = partition_log_durable_offset(log);
        int64_t start = partition_log_retention_start(log, 0, true, durable);
        partition_log_raise_start(log, start, durable);
        partition_log_note_high_watermark(log, durable);
        world->reads[i] = (struct log_read){.offset = partition_log_start_offset(log),
                                            .limit_offset = durable,
                                            .bytes_max = 1 << 17,
                                            .at_least_one = true,
                                            .done = was_read,
                                            .context = world};
        if (partition_log_read(log, &world->reads[i]) == STATUS_AGAIN) {
            world->waiting++;
        } else {
            log_read_release(&world->reads[i]);
        }
    }
    int64_t end = partition_log_end_offset(world->logs[world->rounds % PARTITIONS]);
    if (world->rounds % 5 == 4 && end > 10) {
        world->waiting++;
        partition_log_truncate(world->logs[world->rounds % PARTITIONS], end - 5, cut, world);
    }
    log_store_flush(world->store, flushed, world);
}

static void round_done(struct world *world)
{
    if (++world->rounds == ROUNDS) {
        loop_event_stop(world->loop);
        return;
    }
    round_begin(world);
}

static void stopped(void *context, enum status status, const struct error *error)
{
    (void)error;
    assert_int_equal(status, STATUS_OK);
    loop_event_stop(((struct world *)context)->loop);
}

static void world_open(struct world *world, const char *directory)
{
    log_set_sink(quiet, NULL);
    assert_int_equal(loop_event_new(&world->loop, NULL), STATUS_OK);
    assert_int_equal(executor_threads_new(world->loop, &world->executor, NULL), STATUS_OK);
    world->store =
        log_store_new(&(struct log_store_options){.fs = file_system_posix(),
                                                  .executor = world->executor,
                                                  .loop = loop_event_interface(world->loop),
                                                  .data_dir = directory,
                                                  .cache_bytes_max = 2000,
                                                  .unsynced_bytes_max = 1 << 20});
    assert_int_equal(log_store_load(world->store, NULL), STATUS_OK);
    for (int i = 0; i < PARTITIONS; i++) {
        struct log_identity who = identity(i);
        struct log_recovery recovery;
        assert_int_equal(
            log_store_recover(world->store, &who, &config, &world->logs[i], &recovery, NULL),
            STATUS_OK);
        assert_false(recovery.quarantined);
    }
}

static void world_close(struct world *world)
{
    log_store_stop(world->store, stopped, world);
    loop_event_run(world->loop);
    executor_threads_drain(world->executor);
    log_store_free(world->store);
    executor_threads_free(world->executor);
    loop_event_free(world->loop);
}

static void loop_and_workers_keep_apart(void **state)
{
    char directory[] = "/tmp/moonmq-log-XXXXXX";
    struct world world = {0};
    int64_t ends[PARTITIONS];
    (void)state;
    assert_non_null(mkdtemp(directory));
    world_open(&world, directory);
    round_begin(&world);
    loop_event_run(world.loop);
    for (int i = 0; i < PARTITIONS; i++) {
        ends[i] = partition_log_end_offset(world.logs[i]);
        assert_int_equal(partition_log_durable_offset(world.logs[i]), ends[i]);
    }
    world_close(&world);
    world_open(&world, directory);
    for (int i = 0; i < PARTITIONS; i++) {
        assert_int_equal(partition_log_end_offset(world.logs[i]), ends[i]);
    }
    world_close(&world);
    assert_int_equal(file_remove_tree(file_system_posix(), directory, NULL), STATUS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loop_and_workers_keep_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
