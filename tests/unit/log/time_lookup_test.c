/* time_lookup_test.c: offsets by timestamp, against a plain search. */
#include "base/buffer.h"
#include "base/crc32c.h"
#include "base/random.h"
#include "lib/log_fixture.h"

#define BATCHES 400

struct lookup_result {
    struct log_time_lookup lookup;
    bool done;
};

static void lookup_done(void *context, struct log_time_lookup *lookup)
{
    (void)lookup;
    ((struct lookup_result *)context)->done = true;
}

static int64_t look_up(struct log_fixture *f, int64_t timestamp_ms, bool want_max, int64_t limit)
{
    struct lookup_result result = {.lookup = {.timestamp_ms = timestamp_ms,
                                              .want_max = want_max,
                                              .limit_offset = limit,
                                              .done = lookup_done,
                                              .context = &result}};
    partition_log_find_timestamp(f->log, &result.lookup);
    assert_false(result.done);
    fake_loop_run_job(&f->loop);
    assert_true(result.done);
    assert_int_equal(result.lookup.status, STATUS_OK);
    return result.lookup.found_offset;
}

/* Two records a batch, the second a millisecond later. */
static int64_t expected_offset(const int64_t *timestamps, int64_t start, int64_t wanted,
                               bool want_max, int64_t limit)
{
    int64_t best = -1, best_ms = -1;
    for (int64_t offset = start; offset < limit / 2 * 2; offset++) {
        int64_t ms = timestamps[offset / 2] + offset % 2;
        if (!want_max && ms >= wanted) return offset;
        if (want_max && ms > best_ms) {
            best = offset;
            best_ms = ms;
        }
    }
    return best;
}

static void look_ups_agree_with_a_plain_search(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    struct random random;
    int64_t timestamps[BATCHES];
    (void)state;
    random_seed(&random, 7);
    for (int disorder = 0; disorder < 3; disorder++) {
        fixture_begin(&f, &disk);
        f.config.segment_bytes = 9000;
        f.config.index_interval_bytes = 1024;
        fixture_open(&f);
        for (int i = 0; i < BATCHES; i++) {
            int64_t spread = disorder == 0 ? 1 : disorder == 1 ? 300 : 5000;
            timestamps[i] = 10000 + i * 10 + (int64_t)random_below(&random, (uint64_t)spread);
            assert_int_equal(fixture_append_to(f.log, 2, 1, timestamps[i], 20), STATUS_OK);
            if (i % 3 == 0) fake_loop_run(&f.loop);
        }
        for (int reopened = 0; reopened < 2; reopened++) {
            for (int i = 0; i < 300; i++) {
                int64_t wanted = 9000 + (int64_t)random_below(&random, 12000);
                int64_t limit = i % 2 ? 2 * BATCHES : (int64_t)random_below(&random, 2 * BATCHES);
                int64_t start = partition_log_start_offset(f.log);
                assert_int_equal(look_up(&f, wanted, false, limit),
                                 expected_offset(timestamps, start, wanted, false, limit));
                assert_int_equal(look_up(&f, -1, true, limit),
                                 expected_offset(timestamps, start, 0, true, limit));
            }
            fixture_rest(&f);
            if (reopened) break;
            partition_log_raise_start(f.log, 101, 2 * BATCHES);
            fixture_rest(&f);
            fixture_crash(&f);
            memory_disk_power_cut(&disk);
            fixture_reopen(&f);
        }
        fixture_stop(&f);
        memory_disk_deinit(&disk);
    }
}

static void what_is_not_durable_yet_is_found_in_memory(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    (void)state;
    fixture_begin(&f, &disk);
    fixture_open(&f);
    f.loop.manual = true;
    assert_int_equal(fixture_append_to(f.log, 3, 1, 500, 20), STATUS_OK);
    assert_int_equal(look_up(&f, 501, false, 3), 1);
    f.loop.manual = false;
    fake_loop_run(&f.loop);
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

/* As compaction leaves it: the record with the largest timestamp is gone, the header knows of it.
 */
static void append_stale(struct log_fixture *f, int64_t timestamp_ms, int64_t max_timestamp_ms)
{
    enum { CRC_AT = 17, CRC_FROM = 21, MAX_TIMESTAMP_AT = 35 };
    struct shared_bytes *batch =
        fixture_batch(partition_log_end_offset(f->log), 2, 1, timestamp_ms, 20);
    store_u64(batch->data + MAX_TIMESTAMP_AT, (uint64_t)max_timestamp_ms);
    store_u32(batch->data + CRC_AT, crc32c(batch->data + CRC_FROM, batch->bytes - CRC_FROM));
    assert_int_equal(partition_log_append(f->log, batch, false, NULL), STATUS_OK);
    shared_bytes_unref(batch);
}

static void the_largest_timestamp_is_one_that_is_there(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    (void)state;
    fixture_begin(&f, &disk);
    f.config.segment_bytes = 500;
    f.config.index_interval_bytes = 1;
    fixture_open(&f);
    f.loop.manual = true;
    assert_int_equal(fixture_append_to(f.log, 2, 1, 5000, 20), STATUS_OK);
    append_stale(&f, 4000, 9000);
    assert_int_equal(fixture_append_to(f.log, 2, 1, 3000, 20), STATUS_OK);
    assert_int_equal(look_up(&f, -1, true, 6), 1); /* in memory */
    f.loop.manual = false;
    for (int i = 0; i < 6; i++) {
        assert_int_equal(fixture_append_to(f.log, 2, 1, 3000 + i, 20), STATUS_OK);
        fake_loop_run(&f.loop);
    }
    for (int reopened = 0; reopened < 2; reopened++) {
        assert_int_equal(look_up(&f, -1, true, 18), 1);
        fixture_stop(&f);
        fixture_reopen(&f);
    }
    /* What was the largest is found as long as it is below the limit and above the start. */
    partition_log_raise_start(f.log, 2, 18);
    assert_int_equal(look_up(&f, -1, true, 18), 3);
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

static void damage_is_stepped_over(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    (void)state;
    fixture_begin(&f, &disk);
    fixture_open(&f);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(fixture_append_to(f.log, 1, 1, 1000 + i, 20), STATUS_OK);
    }
    fixture_rest(&f);
    struct memory_node *file =
        memory_disk_file(&disk, FIXTURE_DIRECTORY "/00000000000000000000.log");
    struct shared_bytes *batch = fixture_batch(0, 1, 1, 1000, 20);
    file->data[3 * batch->bytes + 70] ^= 1;
    shared_bytes_unref(batch);
    assert_int_equal(look_up(&f, 1003, false, 10), 4);
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(look_ups_agree_with_a_plain_search),
        cmocka_unit_test(what_is_not_durable_yet_is_found_in_memory),
        cmocka_unit_test(the_largest_timestamp_is_one_that_is_there),
        cmocka_unit_test(damage_is_stepped_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
