/* cut_test.c: truncation, reset, dropping: on a living log, and through a crash at any operation.
 */
#include "lib/log_fixture.h"

static void begin_with(struct log_fixture *f, struct memory_disk *disk, int batches)
{
    fixture_begin(f, disk);
    f->config.segment_bytes = 400;
    fixture_open(f);
    for (int i = 0; i < batches; i++) {
        assert_int_equal(fixture_append_to(f->log, 2, i / 3, 1000 + i, 20), STATUS_OK);
        fake_loop_run(&f->loop);
    }
}

static void assert_log_ends(struct log_fixture *f, int64_t end)
{
    enum status status;
    assert_int_equal(partition_log_end_offset(f->log), end);
    assert_int_equal(partition_log_durable_offset(f->log), end);
    assert_int_equal(fixture_read_all(f, partition_log_start_offset(f->log), 1000, &status), end);
    assert_int_equal(status, STATUS_OK);
    assert_true(epoch_history_latest(partition_log_epochs(f->log)) < (end + 5) / 6 + 1);
}

/* A log that lost all its files knows what it lacks, before a cut and after it. */
static void a_cut_of_lost_files_leaves_what_is_before_it_missing(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    struct error error;
    enum status status;
    int64_t from, to;
    (void)state;
    begin_with(&f, &disk, 20);
    fixture_stop(&f);
    assert_int_equal(file_remove_tree(&disk.fs, FIXTURE_DIRECTORY, &error), STATUS_OK);
    memory_disk_settle(&disk);
    fixture_reopen(&f);
    assert_true(f.recovery.quarantined);
    partition_log_truncate(f.log, 30, fixture_done, &f);
    fake_loop_run(&f.loop);
    assert_int_equal(f.done_status, STATUS_OK);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(partition_log_start_offset(f.log), 0);
        assert_int_equal(partition_log_end_offset(f.log), 30);
        assert_true(partition_log_quarantined(f.log, &from, &to));
        assert_int_equal(from, 0);
        assert_int_equal(to, 30);
        assert_int_equal(epoch_history_latest(partition_log_epochs(f.log)), 4);
        if (again) break;
        fixture_crash(&f);
        memory_disk_power_cut(&disk);
        fixture_reopen(&f);
    }
    assert_int_equal(fixture_append_to(f.log, 4, 12, 1000, 20), STATUS_OK);
    fake_loop_run(&f.loop);
    assert_int_equal(fixture_read_all(&f, 30, 1000, &status), 34);
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

static void a_reset_that_keeps_the_files_takes_a_directory_of_its_own_each_time(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    enum status status;
    (void)state;
    begin_with(&f, &disk, 20);
    for (int i = 0; i < 2; i++) {
        char uid[UUID_TEXT_BYTES], path[400];
        partition_log_reset(f.log, 0, 12, true, fixture_done, &f);
        fake_loop_run(&f.loop);
        assert_int_equal(f.done_status, STATUS_OK);
        assert_int_equal(partition_log_end_offset(f.log), 0);
        struct log_identity identity = fixture_identity(0);
        snprintf(path, sizeof(path), "/data/quarantine/t.%s-%d/0/00000000000000000000.log",
                 uuid_format(&identity.uid, uid), i);
        assert_non_null(memory_disk_file(&disk, path));
        assert_int_not_equal(memory_disk_file(&disk, path)->bytes, 0);
        assert_int_equal(fixture_append_to(f.log, 4, 12, 1000, 20), STATUS_OK);
        fake_loop_run(&f.loop);
    }
    fixture_crash(&f);
    memory_disk_power_cut(&disk);
    fixture_reopen(&f);
    assert_false(f.recovery.quarantined);
    assert_int_equal(fixture_read_all(&f, 0, 1000, &status), 4);
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

static void a_cut_takes_bytes_epochs_and_indexes_and_appends_go_on_there(void **state)
{
    (void)state;
    for (int64_t offset = 0; offset <= 40; offset++) {
        for (int how = 0; how < 3; how++) {
            struct memory_disk disk;
            struct log_fixture f;
            begin_with(&f, &disk, 20);
            partition_log_truncate(f.log, offset, fixture_done, &f);
            assert_true(partition_log_busy(f.log) || f.done_calls == 1);
            fake_loop_run(&f.loop);
            assert_int_equal(f.done_calls, 1);
            assert_int_equal(f.done_status, STATUS_OK);
            assert_false(partition_log_busy(f.log));
            int64_t end = offset / 2 * 2;
            assert_log_ends(&f, end);
            assert_int_equal(epoch_history_latest(partition_log_epochs(f.log)), (end + 5) / 6 - 1);
            if (how == 1) fixture_rest(&f);
            if (how > 0) {
                fixture_crash(&f);
                memory_disk_power_cut(&disk);
                f.cache_bytes_max = how == 2 ? 0 : 1000;
                fixture_reopen(&f);
                assert_false(f.recovery.quarantined);
                assert_log_ends(&f, end);
            }
            assert_int_equal(fixture_append_to(f.log, 3, 50, 1000, 20), STATUS_OK);
            fake_loop_run(&f.loop);
            enum status status;
            assert_int_equal(fixture_read_all(&f, 0, 300, &status), end + 3);
            fixture_stop(&f);
            memory_disk_deinit(&disk);
        }
    }
}

/* Batches appended with one call are one chunk in memory. What a cut leaves of it is on disk only;
 * the records in it must not be taken for a gap before what comes next. */
static void a_cut_inside_of_a_chunk_leaves_no_hole_in_memory(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    enum status status;
    struct error error;
    (void)state;
    fixture_begin(&f, &disk);
    fixture_open(&f);
    assert_int_equal(fixture_append_to(f.log, 2, 0, 1000, 20), STATUS_OK);
    fake_loop_run(&f.loop);
    struct shared_bytes *first = fixture_batch(2, 2, 0, 1001, 20);
    struct shared_bytes *second = fixture_batch(4, 3, 0, 1002, 20);
    struct shared_bytes *both = shared_bytes_new(first->bytes + second->bytes);
    memcpy(both->data, first->data, first->bytes);
    memcpy(both->data + first->bytes, second->data, second->bytes);
    shared_bytes_unref(first);
    shared_bytes_unref(second);
    assert_int_equal(partition_log_append(f.log, both, false, &error), STATUS_OK);
    shared_bytes_unref(both);
    fake_loop_run(&f.loop);
    partition_log_truncate(f.log, 4, fixture_done, &f);
    fake_loop_run(&f.loop);
    assert_int_equal(f.done_status, STATUS_OK);
    assert_int_equal(fixture_append_to(f.log, 2, 1, 1003, 20), STATUS_OK);
    fake_loop_run(&f.loop);
    struct log_read read = {
        .offset = 2, .limit_offset = 6, .bytes_max = 100000, .at_least_one = true};
    assert_int_equal(fixture_read_once(&f, &read), STATUS_OK);
    assert_int_equal(load_u64(read.pieces[0].shared->data + read.pieces[0].at), 2);
    log_read_release(&read);
    assert_int_equal(fixture_read_all(&f, 0, 1000, &status), 6);
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

static void a_cut_gives_up_what_is_queued_and_waits_for_what_is_in_flight(void **state)
{
    (void)state;
    for (int64_t offset = 0; offset <= 24; offset += 1) {
        for (int in_flight = 0; in_flight < 2; in_flight++) {
            struct memory_disk disk;
            struct log_fixture f;
            begin_with(&f, &disk, 4);
            f.loop.manual = true;
            for (int i = 0; i < 8; i++) {
                if (i == 4 && in_flight) fake_loop_run(&f.loop); /* starts a commit of 4 */
                assert_int_equal(fixture_append_to(f.log, 2, 2, 1000, 60), STATUS_OK);
            }
            partition_log_truncate(f.log, offset, fixture_done, &f);
            assert_int_equal(fixture_append_to(f.log, 1, 2, 1000, 20), STATUS_AGAIN);
            f.loop.manual = false;
            fake_loop_run(&f.loop);
            assert_int_equal(f.done_calls, 1);
            assert_int_equal(f.done_status, STATUS_OK);
            assert_log_ends(&f, offset / 2 * 2);
            assert_int_equal(log_store_unsynced_bytes(f.store), 0);
            fixture_append_durably(&f, 0);
            assert_int_equal(fixture_append_to(f.log, 2, 9, 1000, 20), STATUS_OK);
            fake_loop_run(&f.loop);
            fixture_crash(&f);
            memory_disk_power_cut(&disk);
            fixture_reopen(&f);
            assert_int_equal(partition_log_end_offset(f.log), offset / 2 * 2 + 2);
            assert_false(f.recovery.quarantined);
            fixture_stop(&f);
            memory_disk_deinit(&disk);
        }
    }
}

static void a_cut_at_or_past_the_end_still_cuts_the_epochs(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    (void)state;
    begin_with(&f, &disk, 3);
    partition_log_assign_epoch(f.log, 8, 6);
    fake_loop_run(&f.loop);
    assert_int_equal(epoch_history_latest(partition_log_epochs(f.log)), 8);
    partition_log_truncate(f.log, 6, fixture_done, &f);
    fake_loop_run(&f.loop);
    assert_int_equal(epoch_history_latest(partition_log_epochs(f.log)), 0);
    fixture_crash(&f);
    memory_disk_power_cut(&disk);
    fixture_reopen(&f);
    assert_int_equal(epoch_history_latest(partition_log_epochs(f.log)), 0);
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

static void a_crash_in_a_cut_leaves_a_log_between_the_two_ends(void **state)
{
    (void)state;
    for (int64_t offset = 0; offset < 40; offset += 9) {
        for (int power = 0; power < 2; power++) {
            for (uint64_t n = 1;; n++) {
                struct memory_disk disk;
                struct log_fixture f;
                enum status status;
                begin_with(&f, &disk, 20);
                fixture_rest(&f);
                disk.fail_at = disk.operations + n;
                disk.fail_for_ever = true;
                partition_log_truncate(f.log, offset, fixture_done, &f);
                fake_loop_run(&f.loop);
                assert_int_equal(f.done_calls, 1);
                bool done = f.done_status == STATUS_OK;
                bool reached = disk.operations >= disk.fail_at;
                if (!done) assert_true(partition_log_failed(f.log));
                fixture_crash(&f);
                if (power) memory_disk_power_cut(&disk);
                fixture_reopen(&f);
                assert_false(f.recovery.quarantined);
                assert_int_equal(f.recovery.cut_bytes, 0);
                int64_t end = partition_log_end_offset(f.log), cut = offset / 2 * 2;
                assert_in_range(end, cut, done ? cut : 40);
                assert_log_ends(&f, end);
                assert_int_equal(epoch_history_latest(partition_log_epochs(f.log)),
                                 (end + 5) / 6 - 1);
                assert_int_equal(fixture_read_all(&f, 0, 1000, &status), end);
                fixture_stop(&f);
                memory_disk_deinit(&disk);
                if (!reached) break;
            }
        }
    }
}

static void a_reset_throws_all_away_and_begins_at_its_offset(void **state)
{
    static const int64_t offsets[] = {0, 8, 17, 40, 1000};
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(offsets); i++) {
        struct memory_disk disk;
        struct log_fixture f;
        enum status status;
        begin_with(&f, &disk, 20);
        assert_int_equal(fixture_append_to(f.log, 1, 9, 1000, 20), STATUS_OK);
        partition_log_reset(f.log, offsets[i], 12, false, fixture_done, &f);
        fake_loop_run(&f.loop);
        assert_int_equal(f.done_calls, 1);
        assert_int_equal(f.done_status, STATUS_OK);
        for (int again = 0; again < 2; again++) {
            assert_int_equal(partition_log_start_offset(f.log), offsets[i]);
            assert_int_equal(partition_log_end_offset(f.log), offsets[i]);
            assert_int_equal(partition_log_durable_offset(f.log), offsets[i]);
            assert_int_equal(epoch_history_latest(partition_log_epochs(f.log)), 12);
            assert_int_equal(partition_log_epochs(f.log)->count, 1);
            if (again) break;
            fixture_crash(&f);
            memory_disk_power_cut(&disk);
            fixture_reopen(&f);
            assert_false(f.recovery.quarantined);
        }
        assert_int_equal(fixture_append_to(f.log, 4, 12, 1000, 20), STATUS_OK);
        fake_loop_run(&f.loop);
        assert_int_equal(fixture_read_all(&f, offsets[i], 1000, &status), offsets[i] + 4);
        fixture_stop(&f);
        memory_disk_deinit(&disk);
    }
}

/* Its files are known to nobody: what is in the directory goes. */
static void a_reset_makes_a_copy_well_whose_recovery_failed(void **state)
{
    int resets = 0;
    (void)state;
    for (uint64_t n = 1;; n++) {
        struct memory_disk disk;
        struct log_fixture f;
        enum status status;
        begin_with(&f, &disk, 20);
        fixture_crash(&f); /* without a power cut: recovery has something to sync */
        fake_loop_init(&f.loop);
        disk.fail_at = disk.operations + n;
        bool failed = fixture_try_open(&f) != STATUS_OK;
        disk.fail_at = 0;
        if (f.log != NULL && failed) {
            resets++;
            assert_true(partition_log_failed(f.log));
            partition_log_reset(f.log, 8, 12, false, fixture_done, &f);
            fake_loop_run(&f.loop);
            assert_int_equal(f.done_status, STATUS_OK);
            assert_false(partition_log_failed(f.log));
            assert_int_equal(fixture_append_to(f.log, 4, 12, 1000, 20), STATUS_OK);
            fake_loop_run(&f.loop);
            assert_int_equal(fixture_read_all(&f, 8, 1000, &status), 12);
            fixture_crash(&f);
            memory_disk_power_cut(&disk);
            fixture_reopen(&f);
            assert_int_equal(partition_log_start_offset(f.log), 8);
            assert_int_equal(fixture_read_all(&f, 8, 1000, &status), 12);
        }
        fixture_stop(&f);
        memory_disk_deinit(&disk);
        if (!failed) break;
    }
    assert_true(resets > 0);
}

static void a_crash_in_a_reset_leaves_the_old_log_or_the_new_one(void **state)
{
    static const int64_t offsets[] = {0, 8, 17, 1000};
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(offsets); i++) {
        for (int power = 0; power < 2; power++) {
            for (uint64_t n = 1;; n++) {
                struct memory_disk disk;
                struct log_fixture f;
                begin_with(&f, &disk, 20);
                fixture_rest(&f);
                disk.fail_at = disk.operations + n;
                disk.fail_for_ever = true;
                partition_log_reset(f.log, offsets[i], 30, false, fixture_done, &f);
                fake_loop_run(&f.loop);
                bool done = f.done_status == STATUS_OK;
                bool reached = disk.operations >= disk.fail_at;
                fixture_crash(&f);
                if (power) memory_disk_power_cut(&disk);
                fixture_reopen(&f);
                assert_false(f.recovery.quarantined);
                int64_t start = partition_log_start_offset(f.log);
                int64_t end = partition_log_end_offset(f.log);
                assert_true((start == 0 && end <= 40) || start == offsets[i]);
                if (done) assert_true(start == offsets[i] && end == offsets[i]);
                enum status status;
                assert_int_equal(fixture_read_all(&f, start, 1000, &status), end);
                assert_int_equal(status, STATUS_OK);
                fixture_stop(&f);
                memory_disk_deinit(&disk);
                if (!reached) break;
            }
        }
    }
}

static void a_dropped_log_leaves_no_files_and_its_name_can_be_taken_at_once(void **state)
{
    (void)state;
    for (int aside = 0; aside < 2; aside++) {
        struct memory_disk disk;
        struct log_fixture f;
        enum status status;
        begin_with(&f, &disk, 9);
        assert_int_equal(fixture_append_to(f.log, 1, 9, 1000, 20), STATUS_OK);
        log_store_drop(f.store, f.log, aside, fixture_done, &f);
        struct log_identity identity = {.topic = "t", .uid = {{9}}};
        f.log = log_store_create(f.store, &identity, &f.config);
        fixture_append(&f);
        fake_loop_run(&f.loop);
        assert_int_equal(f.done_calls, 1);
        assert_int_equal(f.done_status, STATUS_OK);
        assert_int_equal(partition_log_durable_offset(f.log), 1);
        fixture_rest(&f);
        struct memory_node *quarantine = memory_disk_file(&disk, "/data/quarantine");
        assert_int_equal(quarantine != NULL, aside);
        struct memory_node *trash = memory_disk_file(&disk, "/data/trash");
        assert_true(trash == NULL || trash->entry_count == 0);
        assert_int_equal(fixture_read_all(&f, 0, 100, &status), 1);
        fixture_crash(&f);
        memory_disk_power_cut(&disk);
        fixture_init(&f, &disk);
        f.store = fixture_store(&f);
        assert_int_equal(log_store_load(f.store, NULL), STATUS_OK);
        assert_int_equal(
            log_store_recover(f.store, &identity, &f.config, &f.log, &f.recovery, NULL), STATUS_OK);
        assert_int_equal(partition_log_end_offset(f.log), 1);
        fixture_stop(&f);
        memory_disk_deinit(&disk);
    }
}

static void reads_under_way_when_a_log_is_dropped_are_cancelled(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    struct fixture_reading reading = {0};
    (void)state;
    fixture_begin(&f, &disk);
    f.cache_bytes_max = 0;
    disk.nowait_misses = true;
    fixture_open(&f);
    fixture_append_durably(&f, 5);
    struct log_read read = {.limit_offset = INT64_MAX,
                            .bytes_max = 100,
                            .at_least_one = true,
                            .done = fixture_read_done,
                            .context = &reading};
    assert_int_equal(partition_log_read(f.log, &read), STATUS_AGAIN);
    log_store_drop(f.store, f.log, false, fixture_done, &f);
    fake_loop_run(&f.loop);
    assert_true(reading.done);
    assert_int_equal(read.status, STATUS_CANCELLED);
    assert_int_equal(f.done_calls, 1);
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cut_takes_bytes_epochs_and_indexes_and_appends_go_on_there),
        cmocka_unit_test(a_cut_of_lost_files_leaves_what_is_before_it_missing),
        cmocka_unit_test(a_reset_that_keeps_the_files_takes_a_directory_of_its_own_each_time),
        cmocka_unit_test(a_cut_inside_of_a_chunk_leaves_no_hole_in_memory),
        cmocka_unit_test(a_cut_gives_up_what_is_queued_and_waits_for_what_is_in_flight),
        cmocka_unit_test(a_cut_at_or_past_the_end_still_cuts_the_epochs),
        cmocka_unit_test(a_crash_in_a_cut_leaves_a_log_between_the_two_ends),
        cmocka_unit_test(a_reset_throws_all_away_and_begins_at_its_offset),
        cmocka_unit_test(a_reset_makes_a_copy_well_whose_recovery_failed),
        cmocka_unit_test(a_crash_in_a_reset_leaves_the_old_log_or_the_new_one),
        cmocka_unit_test(a_dropped_log_leaves_no_files_and_its_name_can_be_taken_at_once),
        cmocka_unit_test(reads_under_way_when_a_log_is_dropped_are_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
