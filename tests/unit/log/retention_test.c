/* retention_test.c: raising the log start, retention by size and time, and clocks that jump. */
#include "lib/log_fixture.h"

#define WALL_MS 1700000000000

static void begin_with(struct log_fixture *f, struct memory_disk *disk, int batches)
{
    fixture_begin(f, disk);
    f->config.segment_bytes = 300;
    f->config.retention_ms = 100000;
    fixture_open(f);
    for (int i = 0; i < batches; i++) {
        assert_int_equal(fixture_append_to(f->log, 1, 1, WALL_MS + i * 1000, 20), STATUS_OK);
        fake_loop_run(&f->loop);
    }
    fixture_rest(f);
}

static size_t count_logs(struct memory_disk *disk)
{
    struct memory_node *directory = memory_disk_file(disk, FIXTURE_DIRECTORY);
    size_t count = 0;
    for (size_t i = 0; directory != NULL && i < directory->entry_count; i++) {
        count += strstr(directory->entries[i].name, ".log") != NULL;
    }
    return count;
}

static void a_raised_start_removes_whole_segments_below_it_and_survives(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    enum status status;
    (void)state;
    begin_with(&f, &disk, 10); /* segments 0-2, 3-5, 6-8, 9 */
    assert_int_equal(count_logs(&disk), 4);
    partition_log_raise_start(f.log, 7, 10);
    assert_int_equal(partition_log_start_offset(f.log), 7);
    assert_int_equal(partition_log_segment_count(f.log), 2);
    assert_int_equal(count_logs(&disk), 4); /* not before the floor is on record */
    fixture_rest(&f);
    assert_int_equal(count_logs(&disk), 2);
    partition_log_raise_start(f.log, 3, 10);
    assert_int_equal(partition_log_start_offset(f.log), 7);
    partition_log_raise_start(f.log, 100, 8);
    assert_int_equal(partition_log_start_offset(f.log), 8);
    fixture_rest(&f);
    fixture_crash(&f);
    memory_disk_power_cut(&disk);
    fixture_reopen(&f);
    assert_false(f.recovery.quarantined);
    assert_int_equal(partition_log_start_offset(f.log), 8);
    assert_int_equal(fixture_read_all(&f, 8, 1000, &status), 10);
    struct log_read read = {.offset = 7, .limit_offset = INT64_MAX, .bytes_max = 100};
    assert_int_equal(fixture_read_once(&f, &read), STATUS_OUT_OF_RANGE);
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

static void a_raised_start_counts_as_recorded_when_it_is_on_disk(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    (void)state;
    begin_with(&f, &disk, 10);
    partition_log_raise_start(f.log, 2, 10); /* inside the first segment */
    assert_int_equal(partition_log_recorded_start(f.log), 0);
    disk.fail_at = disk.operations + 1;
    log_store_flush_offsets(f.store, fixture_done, &f);
    f.done_status = STATUS_OK;
    fake_loop_run(&f.loop);
    assert_int_equal(f.done_status, STATUS_IO);
    assert_int_equal(partition_log_recorded_start(f.log), 0);
    int told = f.durable_calls;
    log_store_flush_offsets(f.store, fixture_done, &f);
    fake_loop_run(&f.loop);
    assert_int_equal(f.done_status, STATUS_OK);
    assert_int_equal(partition_log_recorded_start(f.log), 2);
    assert_int_equal(f.durable_calls, told + 1);
    partition_log_raise_start(f.log, 5, 10);
    fixture_crash(&f);
    memory_disk_power_cut(&disk);
    fixture_reopen(&f);
    assert_int_equal(partition_log_start_offset(f.log), 2);
    assert_int_equal(partition_log_recorded_start(f.log), 2);
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

static void a_start_inside_a_batch_costs_nothing_at_any_restart(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    enum status status;
    (void)state;
    fixture_begin(&f, &disk);
    fixture_open(&f);
    assert_int_equal(fixture_append_to(f.log, 10, 1, WALL_MS, 20), STATUS_OK);
    fixture_rest(&f);
    partition_log_raise_start(f.log, 7, 10);
    fixture_rest(&f);
    /* The first one puts the history that the start cut on the disk. */
    for (int restart = 0; restart < 3; restart++) {
        fixture_stop(&f);
        fixture_reopen(&f);
        assert_false(f.recovery.quarantined);
        assert_int_equal(partition_log_start_offset(f.log), 7);
        assert_int_equal(partition_log_end_offset(f.log), 10);
        assert_int_equal(fixture_read_all(&f, 7, 1000, &status), 10);
        assert_int_equal(status, STATUS_OK);
    }
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

static void raising_the_start_to_the_end_begins_a_new_segment(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    (void)state;
    begin_with(&f, &disk, 10);
    partition_log_raise_start(f.log, 10, 10);
    fixture_rest(&f);
    assert_int_equal(count_logs(&disk), 1);
    assert_non_null(memory_disk_file(&disk, FIXTURE_DIRECTORY "/00000000000000000010.log"));
    fixture_crash(&f);
    memory_disk_power_cut(&disk);
    fixture_reopen(&f);
    assert_false(f.recovery.quarantined);
    assert_int_equal(partition_log_start_offset(f.log), 10);
    assert_int_equal(partition_log_end_offset(f.log), 10);
    fixture_append_durably(&f, 1);
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

static void a_crash_at_any_operation_of_removal_leaves_no_hole(void **state)
{
    (void)state;
    for (uint64_t n = 1;; n++) {
        struct memory_disk disk;
        struct log_fixture f;
        enum status status;
        begin_with(&f, &disk, 10);
        disk.fail_at = disk.operations + n;
        disk.fail_for_ever = true;
        partition_log_raise_start(f.log, n % 2 ? 7 : 10, 10);
        fake_loop_advance(&f.loop, 3000000);
        bool reached = disk.operations >= disk.fail_at;
        fixture_crash(&f);
        if (n % 3 != 0) memory_disk_power_cut(&disk);
        fixture_reopen(&f);
        assert_false(f.recovery.quarantined);
        assert_int_equal(partition_log_end_offset(f.log), 10);
        int64_t start = partition_log_start_offset(f.log);
        assert_int_equal(fixture_read_all(&f, start, 1000, &status), 10);
        assert_int_equal(status, STATUS_OK);
        fixture_stop(&f);
        memory_disk_deinit(&disk);
        if (!reached) break;
    }
}

/* A pass with one partition. */
static int64_t retention_pass(struct log_fixture *f, int64_t wall_ms, int64_t high_watermark)
{
    bool trusted = log_store_look_at_clock(f->store, wall_ms, CLOCK_UNWITNESSED) == CLOCK_TRUSTED;
    return partition_log_retention_start(f->log, wall_ms, trusted, high_watermark);
}

static void retention_by_size_keeps_what_the_limit_asks_for(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    (void)state;
    begin_with(&f, &disk, 10);
    int64_t bytes = partition_log_bytes(f.log);
    f.config.retention_ms = -1;
    f.config.retention_bytes = bytes;
    partition_log_configure(f.log, &f.config);
    assert_int_equal(retention_pass(&f, WALL_MS, 10), 0);
    f.config.retention_bytes = bytes / 2;
    partition_log_configure(f.log, &f.config);
    assert_int_equal(retention_pass(&f, WALL_MS, 10), 3);
    f.config.retention_bytes = 0;
    partition_log_configure(f.log, &f.config);
    assert_int_equal(retention_pass(&f, WALL_MS, 10), 9);
    assert_int_equal(retention_pass(&f, WALL_MS, 5), 3); /* never past the HW */
    f.config.delete_old = false;
    partition_log_configure(f.log, &f.config);
    assert_int_equal(retention_pass(&f, WALL_MS, 10), 0);
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

static void retention_by_time_takes_expired_segments_the_last_one_too(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    (void)state;
    begin_with(&f, &disk, 10);
    assert_int_equal(retention_pass(&f, WALL_MS + 100000, 10), 0);
    fake_loop_advance(&f.loop, 5000000);
    assert_int_equal(retention_pass(&f, WALL_MS + 105500, 10), 6);
    fake_loop_advance(&f.loop, 60000000);
    assert_int_equal(retention_pass(&f, WALL_MS + 165500, 10), 10);
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

static void a_wall_clock_that_jumped_postpones_one_pass(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    (void)state;
    begin_with(&f, &disk, 10);
    int64_t jump_ms = 23 * 3600000LL;
    assert_int_equal(retention_pass(&f, WALL_MS, 10), 0);
    fake_loop_advance(&f.loop, 300000000);
    /* Every partition of the pass sees the same, however long it takes. */
    assert_int_equal(log_store_look_at_clock(f.store, WALL_MS + jump_ms, CLOCK_UNWITNESSED),
                     CLOCK_JUMPED);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(partition_log_retention_start(f.log, WALL_MS + jump_ms, false, 10), 0);
        fake_loop_advance(&f.loop, 2000000);
    }
    fake_loop_advance(&f.loop, 300000000);
    /* And back again. */
    assert_int_equal(retention_pass(&f, WALL_MS + 600000, 10), 0);
    fake_loop_advance(&f.loop, 300000000);
    assert_int_equal(retention_pass(&f, WALL_MS + 900000, 10), 10);
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

static const int64_t year_ms = 365 * 86400000LL;

static enum clock_trust look(struct log_fixture *f, int64_t ahead_ms, enum clock_witness witness)
{
    return log_store_look_at_clock(f->store, WALL_MS + f->loop.now_us / 1000 + ahead_ms, witness);
}

static void a_wall_clock_far_ahead_is_doubted_until_it_is_confirmed_or_for_an_hour(void **state)
{
    (void)state;
    for (int confirmed = 0; confirmed < 2; confirmed++) {
        struct memory_disk disk;
        struct log_fixture f;
        begin_with(&f, &disk, 1);
        assert_int_equal(look(&f, 0, CLOCK_UNWITNESSED), CLOCK_TRUSTED);
        for (int i = 0; i < 59; i++) {
            fake_loop_advance(&f.loop, 60000000);
            assert_int_equal(look(&f, year_ms, CLOCK_UNWITNESSED), CLOCK_DOUBTED);
        }
        enum clock_witness witness = confirmed ? CLOCK_CONFIRMED : CLOCK_UNWITNESSED;
        assert_int_equal(look(&f, year_ms, witness), confirmed ? CLOCK_TRUSTED : CLOCK_DOUBTED);
        fake_loop_advance(&f.loop, 120000000);
        assert_int_equal(look(&f, year_ms, CLOCK_UNWITNESSED), CLOCK_TRUSTED);
        assert_int_equal(look(&f, year_ms, CLOCK_CONTRADICTED), CLOCK_DOUBTED);
        assert_int_equal(look(&f, year_ms, CLOCK_UNWITNESSED), CLOCK_TRUSTED);
        fixture_stop(&f);
        memory_disk_deinit(&disk);
    }
}

/* A start with a wrong clock, and one after a long time, cannot be told apart by one alone. */
static void a_start_holds_the_clock_against_what_is_on_record(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    (void)state;
    begin_with(&f, &disk, 1);
    assert_int_equal(look(&f, 0, CLOCK_UNWITNESSED), CLOCK_TRUSTED);
    fixture_rest(&f);
    fixture_crash(&f);
    memory_disk_power_cut(&disk);
    for (int start = 0; start < 2; start++) {
        fixture_reopen(&f);
        assert_int_equal(look(&f, 3600000, CLOCK_UNWITNESSED), CLOCK_TRUSTED);
        fixture_stop(&f);
        fixture_reopen(&f);
        /* Twice: what was doubted goes on no record. */
        assert_int_equal(look(&f, year_ms, CLOCK_UNWITNESSED), CLOCK_DOUBTED);
        fixture_stop(&f);
    }
    fixture_reopen(&f);
    assert_int_equal(look(&f, year_ms, CLOCK_UNWITNESSED), CLOCK_DOUBTED);
    assert_int_equal(look(&f, year_ms, CLOCK_CONFIRMED), CLOCK_TRUSTED);
    fixture_rest(&f);
    fixture_stop(&f);
    fixture_reopen(&f);
    assert_int_equal(look(&f, year_ms, CLOCK_UNWITNESSED), CLOCK_TRUSTED);
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_raised_start_removes_whole_segments_below_it_and_survives),
        cmocka_unit_test(a_raised_start_counts_as_recorded_when_it_is_on_disk),
        cmocka_unit_test(a_start_inside_a_batch_costs_nothing_at_any_restart),
        cmocka_unit_test(raising_the_start_to_the_end_begins_a_new_segment),
        cmocka_unit_test(a_crash_at_any_operation_of_removal_leaves_no_hole),
        cmocka_unit_test(retention_by_size_keeps_what_the_limit_asks_for),
        cmocka_unit_test(retention_by_time_takes_expired_segments_the_last_one_too),
        cmocka_unit_test(a_wall_clock_that_jumped_postpones_one_pass),
        cmocka_unit_test(a_wall_clock_far_ahead_is_doubted_until_it_is_confirmed_or_for_an_hour),
        cmocka_unit_test(a_start_holds_the_clock_against_what_is_on_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
