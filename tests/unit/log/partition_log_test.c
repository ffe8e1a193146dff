/* partition_log_test.c: appending, rolling, reading, failing. */
#include "lib/log_fixture.h"
#include "log/segment.h"

static void append_is_readable_at_once_and_durable_after_one_write_and_one_sync(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    (void)state;
    fixture_begin(&f, &disk);
    fixture_open(&f);
    fixture_append_durably(&f, 1);
    fixture_rest(&f);
    uint64_t writes = disk.writes, syncs = disk.syncs, directories = disk.directory_syncs;
    f.loop.manual = true;
    fixture_append(&f);
    assert_int_equal(partition_log_end_offset(f.log), 2);
    assert_int_equal(partition_log_durable_offset(f.log), 1);
    fake_loop_run(&f.loop);
    assert_int_equal(f.loop.job_count, 1);
    assert_true(fake_loop_run_job(&f.loop));
    assert_int_equal(partition_log_durable_offset(f.log), 2);
    assert_int_equal(disk.writes - writes, 1);
    assert_int_equal(disk.syncs - syncs, 1);
    assert_int_equal(disk.directory_syncs - directories, 0);
    f.loop.manual = false;
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

static void durable_records_survive_a_power_cut_in_the_middle_of_any_number_of_rolls(void **state)
{
    (void)state;
    for (int count = 1; count < 60; count += 7) {
        struct memory_disk disk;
        struct log_fixture f;
        enum status status;
        fixture_begin(&f, &disk);
        f.config.segment_bytes = 500;
        fixture_open(&f);
        fixture_append_durably(&f, count);
        fixture_crash(&f);
        memory_disk_power_cut(&disk);
        fixture_reopen(&f);
        assert_int_equal(partition_log_end_offset(f.log), count);
        assert_int_equal(fixture_read_all(&f, 0, 1000, &status), count);
        assert_int_equal(status, STATUS_OK);
        assert_false(f.recovery.quarantined);
        fixture_stop(&f);
        memory_disk_deinit(&disk);
    }
}

static void segments_roll_before_they_exceed_their_size_and_the_snapshot_is_exact(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    (void)state;
    fixture_begin(&f, &disk);
    f.config.segment_bytes = 300;
    fixture_open(&f);
    fixture_append_durably(&f, 9);
    assert_true(partition_log_segment_count(f.log) >= 3);
    assert_int_equal(f.snapshot_calls, (int)partition_log_segment_count(f.log) - 1);
    fixture_rest(&f);
    struct memory_node *directory = memory_disk_file(&disk, FIXTURE_DIRECTORY);
    int digests = 0;
    for (size_t i = 0; i < directory->entry_count; i++) {
        const struct memory_entry *entry = &directory->entries[i];
        if (strstr(entry->name, ".digest") == NULL) continue;
        char path[400];
        snprintf(path, sizeof(path), FIXTURE_DIRECTORY "/%.20s.log", entry->name);
        assert_in_range(memory_disk_file(&disk, path)->bytes, 1, 300);
        digests++;
    }
    assert_int_equal(digests, (int)partition_log_segment_count(f.log) - 1);
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

static bool count_batches(void *context, const uint8_t *batch, size_t bytes)
{
    (void)batch;
    (void)bytes;
    ++*(int *)context;
    return true;
}

static bool has_snapshot(struct memory_disk *disk, int64_t base)
{
    char path[100];
    snprintf(path, sizeof(path), FIXTURE_DIRECTORY "/%020lld.snapshot", (long long)base);
    return memory_disk_file(disk, path) != NULL;
}

static void a_stop_takes_its_snapshot_when_all_is_durable(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    (void)state;
    fixture_begin(&f, &disk);
    fixture_open(&f);
    fixture_append_durably(&f, 3);
    f.loop.manual = true;
    fixture_append(&f);
    log_store_stop(f.store, fixture_done, &f);
    assert_int_equal(f.snapshot_calls, 0);
    f.loop.manual = false;
    fixture_rest(&f);
    assert_int_equal(f.done_calls, 1);
    assert_int_equal(f.done_status, STATUS_OK);
    assert_int_equal(f.snapshot_calls, 1);
    assert_true(has_snapshot(&disk, 4));
    log_store_free(f.store);
    fake_loop_deinit(&f.loop);
    memory_disk_deinit(&disk);
}

static void a_stop_whose_flush_fails_says_so_and_takes_no_snapshot(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    (void)state;
    fixture_begin(&f, &disk);
    fixture_open(&f);
    fixture_append_durably(&f, 3);
    fixture_rest(&f);
    fixture_append(&f);
    disk.fail_at = disk.operations + 1;
    disk.fail_for_ever = true;
    log_store_stop(f.store, fixture_done, &f);
    fixture_rest(&f);
    assert_int_equal(f.done_calls, 1);
    assert_int_not_equal(f.done_status, STATUS_OK);
    assert_int_equal(f.snapshot_calls, 0);
    fixture_crash(&f);
    memory_disk_deinit(&disk);
}

static void a_snapshot_above_the_end_is_gone_for_good_after_a_recovery(void **state)
{
    static const uint8_t content[] = "state of what was lost";
    const struct slice state_bytes = {.data = content, .bytes = sizeof(content)};
    struct memory_disk disk;
    struct log_fixture f;
    (void)state;
    fixture_begin(&f, &disk);
    fixture_open(&f);
    fixture_append_durably(&f, 3);
    fixture_rest(&f);
    for (int64_t base = 3; base <= 4; base++) {
        assert_int_equal(
            segment_snapshot_write(&disk.fs, FIXTURE_DIRECTORY, base, state_bytes, NULL),
            STATUS_OK);
    }
    assert_int_equal(file_sync_directory(&disk.fs, FIXTURE_DIRECTORY, NULL), STATUS_OK);
    fixture_crash(&f);
    fixture_reopen(&f);
    fixture_crash(&f);
    memory_disk_power_cut(&disk);
    assert_true(has_snapshot(&disk, 3));
    assert_false(has_snapshot(&disk, 4));
    fixture_reopen(&f);
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

static void snapshots_of_stops_go_with_the_segments_they_lie_in(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    (void)state;
    fixture_begin(&f, &disk);
    f.config.segment_bytes = 300;
    fixture_open(&f);
    fixture_append_durably(&f, 2);
    fixture_stop(&f);
    fixture_reopen(&f);
    fixture_append_durably(&f, 6); /* segments 0-2, 3-5, 6-7 */
    fixture_rest(&f);
    assert_true(has_snapshot(&disk, 2));
    assert_true(has_snapshot(&disk, 6));
    partition_log_raise_start(f.log, 7, 8);
    fixture_rest(&f);
    assert_false(has_snapshot(&disk, 2));
    assert_false(has_snapshot(&disk, 3));
    assert_true(has_snapshot(&disk, 6));
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

static void producers_are_scanned_from_the_newest_snapshot_on(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    int batches = 0;
    (void)state;
    fixture_begin(&f, &disk);
    f.config.segment_bytes = 300;
    fixture_open(&f);
    fixture_append_durably(&f, 10);
    int64_t last_base = f.snapshot_offset;
    fixture_rest(&f);
    struct buffer snapshot;
    struct log_damage damage;
    buffer_init(&snapshot, 0);
    assert_int_equal(
        log_store_scan_producers(f.log, &snapshot, count_batches, &batches, &damage, NULL),
        STATUS_OK);
    buffer_put_u8(&snapshot, 0);
    char expected[40];
    snprintf(expected, sizeof(expected), "state at %lld", (long long)last_base);
    assert_string_equal((char *)snapshot.data, expected);
    assert_int_equal(batches, 10 - last_base);
    buffer_deinit(&snapshot);
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

/* A log start inside a segment: who wrote below it is still told by the files. */
static void producers_below_the_log_start_are_scanned_as_long_as_files_hold_them(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    int batches = 0;
    (void)state;
    fixture_begin(&f, &disk);
    fixture_open(&f);
    fixture_append_durably(&f, 10);
    partition_log_raise_start(f.log, 7, 9);
    fixture_rest(&f);
    struct buffer snapshot;
    struct log_damage damage;
    buffer_init(&snapshot, 0);
    assert_int_equal(
        log_store_scan_producers(f.log, &snapshot, count_batches, &batches, &damage, NULL),
        STATUS_OK);
    assert_int_equal(snapshot.bytes, 0);
    assert_int_equal(batches, 10);
    buffer_deinit(&snapshot);
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

static void flip_byte(struct memory_disk *disk, int64_t segment_base, size_t at)
{
    char path[400];
    snprintf(path, sizeof(path), FIXTURE_DIRECTORY "/%020lld.log", (long long)segment_base);
    struct memory_node *file = memory_disk_file(disk, path);
    assert_true(at < file->bytes);
    file->data[at] ^= 0x40;
}

/* Recovery takes a sealed segment on its digest's word: what is rotten in it, a scan finds. */
static void a_scan_names_what_it_could_not_read(void **state)
{
    static const size_t places[] = {0 /* base offset */, 61 /* under the CRC */};
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(places); i++) {
        struct memory_disk disk;
        struct log_fixture f;
        struct log_damage damage;
        struct error error;
        int64_t from, to;
        int batches = 0;
        fixture_begin(&f, &disk);
        f.config.segment_bytes = 300;
        fixture_open(&f);
        fixture_append_durably(&f, 10);
        fixture_stop(&f);
        flip_byte(&disk, 0, places[i]);
        fixture_reopen(&f);
        assert_false(f.recovery.quarantined);
        assert_int_equal(log_store_scan(f.log, 0, 10, count_batches, &batches, &damage, &error),
                         STATUS_CORRUPT);
        assert_int_equal(batches, 0);
        assert_int_equal(damage.from, 0);
        assert_int_equal(damage.to, 1);
        /* Below what is asked for it harms nobody. */
        assert_int_equal(log_store_scan(f.log, 1, 10, count_batches, &batches, &damage, &error),
                         STATUS_OK);
        assert_int_equal(batches, 9);
        partition_log_quarantine(f.log, 0, 1);
        partition_log_quarantine(f.log, 0, 1);
        assert_true(partition_log_quarantined(f.log, &from, &to));
        assert_int_equal(to, 1);
        fixture_stop(&f);
        memory_disk_deinit(&disk);
    }
}

static void cold_reads_give_every_batch_whatever_the_size_asked_for(void **state)
{
    (void)state;
    for (uint32_t bytes_max = 1; bytes_max < 3000; bytes_max = bytes_max * 3 + 1) {
        for (int misses = 0; misses < 2; misses++) {
            struct memory_disk disk;
            struct log_fixture f;
            enum status status;
            fixture_begin(&f, &disk);
            f.cache_bytes_max = 0;
            f.config.segment_bytes = 5000;
            f.config.index_interval_bytes = 1024;
            disk.nowait_misses = misses == 1;
            fixture_open(&f);
            fixture_append_durably(&f, 200);
            for (int64_t from = 0; from <= 200; from += 23) {
                assert_int_equal(fixture_read_all(&f, from, bytes_max, &status), 200);
                assert_int_equal(status, STATUS_OK);
            }
            fixture_stop(&f);
            memory_disk_deinit(&disk);
        }
    }
}

static void reads_respect_limit_size_and_range(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    (void)state;
    fixture_begin(&f, &disk);
    fixture_open(&f);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(fixture_append_to(f.log, 10, 1, 1000, 10), STATUS_OK);
    }
    fake_loop_run(&f.loop);
    struct log_read read = {
        .offset = 5, .limit_offset = 35, .bytes_max = 1 << 20, .at_least_one = true};
    assert_int_equal(fixture_read_once(&f, &read), STATUS_OK);
    assert_int_equal(read.next_offset, 30);
    assert_int_equal(read.piece_count, 3);
    log_read_release(&read);
    read = (struct log_read){.offset = 0, .limit_offset = 100, .bytes_max = 10};
    assert_int_equal(fixture_read_once(&f, &read), STATUS_OK);
    assert_int_equal(read.next_offset, 0);
    assert_int_equal(read.bytes, 0);
    read.at_least_one = true;
    assert_int_equal(fixture_read_once(&f, &read), STATUS_OK);
    assert_int_equal(read.next_offset, 10);
    log_read_release(&read);
    read = (struct log_read){.offset = 101, .limit_offset = INT64_MAX, .bytes_max = 10};
    assert_int_equal(fixture_read_once(&f, &read), STATUS_OUT_OF_RANGE);
    read.offset = 100;
    assert_int_equal(fixture_read_once(&f, &read), STATUS_OK);
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

static void appends_out_of_place_or_epoch_are_refused(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    (void)state;
    fixture_begin(&f, &disk);
    fixture_open(&f);
    assert_int_equal(fixture_append_to(f.log, 1, 5, 1000, 10), STATUS_OK);
    struct shared_bytes *batch = fixture_batch(3, 1, 5, 1000, 10);
    assert_int_equal(partition_log_append(f.log, batch, false, NULL), STATUS_INVALID);
    shared_bytes_unref(batch);
    assert_int_equal(fixture_append_to(f.log, 1, 4, 1000, 10), STATUS_INVALID);
    assert_int_equal(partition_log_end_offset(f.log), 1);
    assert_int_equal(fixture_append_to(f.log, 1, -1, 1000, 10), STATUS_OK);
    fake_loop_run(&f.loop);
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

static void appends_wait_while_too_many_bytes_are_unsynced(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    (void)state;
    fixture_begin(&f, &disk);
    f.unsynced_bytes_max = 150;
    fixture_open(&f);
    f.loop.manual = true;
    fixture_append(&f);
    assert_int_equal(fixture_append_to(f.log, 1, 1, 1000, 20), STATUS_AGAIN);
    f.loop.manual = false;
    fake_loop_run(&f.loop);
    assert_int_equal(log_store_unsynced_bytes(f.store), 0);
    fixture_append_durably(&f, 1);
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

static void after_a_failed_sync_nothing_is_durable_or_accepted_any_more(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    (void)state;
    fixture_begin(&f, &disk);
    fixture_open(&f);
    fixture_append_durably(&f, 3);
    fixture_rest(&f);
    fixture_append(&f);
    disk.fail_at = disk.operations + 2; /* the write succeeds, the sync does not */
    fake_loop_run(&f.loop);
    assert_int_equal(f.failed_calls, 1);
    assert_int_equal(f.failed_status, STATUS_IO);
    assert_true(partition_log_failed(f.log));
    assert_int_equal(partition_log_durable_offset(f.log), 3);
    assert_int_equal(fixture_append_to(f.log, 1, 1, 1000, 20), STATUS_STORAGE_ERROR);
    assert_int_equal(log_store_unsynced_bytes(f.store), 0);
    enum status status;
    assert_int_equal(fixture_read_all(&f, 0, 100, &status), 3);
    assert_int_equal(status, STATUS_STORAGE_ERROR);
    uint64_t operations = disk.operations;
    fixture_rest(&f);
    assert_int_equal(disk.operations, operations);
    fixture_stop(&f);
    assert_int_equal(f.failed_calls, 1);
    memory_disk_deinit(&disk);
}

static void a_full_disk_fails_with_its_own_status_and_a_reopened_copy_goes_on(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    enum status status;
    (void)state;
    fixture_begin(&f, &disk);
    fixture_open(&f);
    fixture_append_durably(&f, 5);
    fixture_rest(&f);
    disk.capacity_bytes = disk.used_bytes + 100;
    while (!partition_log_failed(f.log)) {
        if (fixture_append_to(f.log, 1, 1, 1000, 20) != STATUS_OK) break;
        fake_loop_run(&f.loop);
    }
    int64_t durable = partition_log_durable_offset(f.log);
    assert_int_equal(f.failed_status, STATUS_NO_SPACE);
    assert_true(durable > 300);
    disk.capacity_bytes = 0;
    log_store_close(f.store, f.log, fixture_done, &f);
    fake_loop_run(&f.loop);
    assert_int_equal(f.done_calls, 1);
    assert_int_equal(f.done_status, STATUS_OK);
    struct log_identity identity = fixture_identity(0);
    assert_int_equal(log_store_recover(f.store, &identity, &f.config, &f.log, &f.recovery, NULL),
                     STATUS_OK);
    assert_int_equal(partition_log_end_offset(f.log), durable);
    fixture_append_durably(&f, 3);
    assert_int_equal(fixture_read_all(&f, 0, 100, &status), durable + 3);
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

static void flush_ends_when_everything_before_it_is_durable(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    (void)state;
    fixture_begin(&f, &disk);
    fixture_open(&f);
    log_store_flush(f.store, fixture_done, &f);
    fake_loop_run(&f.loop);
    assert_int_equal(f.done_calls, 1);
    f.loop.manual = true;
    fixture_append(&f);
    fake_loop_run(&f.loop);
    fixture_append(&f); /* the first one is in flight by now */
    partition_log_assign_epoch(f.log, 7, 2);
    partition_log_note_high_watermark(f.log, 1);
    log_store_flush(f.store, fixture_done, &f);
    while (f.done_calls == 1) {
        assert_true(fake_loop_run_job(&f.loop));
        if (f.done_calls == 1) continue;
        assert_int_equal(partition_log_durable_offset(f.log), 2);
    }
    f.loop.manual = false;
    fixture_crash(&f);
    memory_disk_power_cut(&disk);
    fixture_reopen(&f);
    assert_int_equal(partition_log_end_offset(f.log), 2);
    assert_int_equal(epoch_history_latest(partition_log_epochs(f.log)), 7);
    assert_int_equal(partition_log_noted_high_watermark(f.log), 1);
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

/* The first writes again what could not be written before; nothing is left for the second. */
static void two_flushes_end_after_the_offsets_could_not_be_written(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    (void)state;
    fixture_begin(&f, &disk);
    fixture_open(&f);
    fixture_append_durably(&f, 2);
    fixture_rest(&f);
    partition_log_note_high_watermark(f.log, 2);
    disk.fail_at = disk.operations + 1;
    fake_loop_advance(&f.loop, 1000000);
    assert_true(disk.operations >= disk.fail_at);
    disk.fail_at = 0;
    log_store_flush(f.store, fixture_done, &f);
    log_store_flush(f.store, fixture_done, &f);
    fake_loop_run(&f.loop);
    assert_int_equal(f.done_calls, 2);
    assert_int_equal(f.done_status, STATUS_OK);
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

static void the_synced_position_is_at_most_one_commit_behind_when_a_commit_starts(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    (void)state;
    fixture_begin(&f, &disk);
    fixture_open(&f);
    fixture_append_durably(&f, 1);
    f.loop.manual = true;
    fixture_append(&f);
    fake_loop_run(&f.loop);
    /* Commit 2 and, beside it, the position of commit 1. */
    assert_int_equal(f.loop.job_count, 2);
    assert_true(fake_loop_run_job(&f.loop));
    assert_int_equal(partition_log_durable_offset(f.log), 2);
    fixture_append(&f);
    fake_loop_run(&f.loop);
    assert_int_equal(f.loop.job_count, 1); /* commit 3 waits for it */
    assert_true(fake_loop_run_job(&f.loop));
    assert_int_equal(f.loop.job_count, 2);
    f.loop.manual = false;
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

static void memory_stays_within_its_bound(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    enum status status;
    (void)state;
    fixture_begin(&f, &disk);
    f.cache_bytes_max = 1000;
    fixture_open(&f);
    fixture_append_durably(&f, 100);
    struct log_store_stats stats;
    assert_int_equal(fixture_read_all(&f, 95, 10000, &status), 100);
    log_store_stats(f.store, &stats);
    assert_int_equal(stats.cold_reads, 0);
    assert_int_equal(fixture_read_all(&f, 0, 10000, &status), 100);
    log_store_stats(f.store, &stats);
    assert_true(stats.cold_reads > 0);
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

static void gaps_are_kept_and_read_over_in_a_compacted_log(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    enum status status;
    (void)state;
    fixture_begin(&f, &disk);
    f.config.compacted = true;
    f.config.delete_old = false;
    f.config.segment_bytes = 400;
    fixture_open(&f);
    int64_t end = 0;
    for (int i = 0; i < 20; i++) {
        struct shared_bytes *batch = fixture_batch(end + i, 1, 1, 1000, 10);
        assert_int_equal(partition_log_append(f.log, batch, true, NULL), STATUS_OK);
        shared_bytes_unref(batch);
        end += i + 1;
        fake_loop_run(&f.loop);
    }
    assert_int_equal(fixture_read_all(&f, 0, 10000, &status), end);
    fixture_crash(&f);
    memory_disk_power_cut(&disk);
    f.cache_bytes_max = 0;
    fixture_reopen(&f);
    assert_false(f.recovery.quarantined);
    assert_int_equal(partition_log_end_offset(f.log), end);
    for (int64_t from = 0; from < end; from += 3) {
        assert_int_equal(fixture_read_all(&f, from, 120, &status), end);
        assert_int_equal(status, STATUS_OK);
    }
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

enum { ROLLS = 12 };

/* Appends one record after the other, `step_ms` apart, up to 2000, until so many segments are full;
 * how many records each took. */
static void fill_segments(const struct log_config *config, int64_t step_ms, int taken[ROLLS])
{
    struct memory_disk disk;
    struct log_fixture f;
    uint32_t full = 0;
    fixture_begin(&f, &disk);
    f.config = *config;
    fixture_open(&f);
    memset(taken, 0, ROLLS * sizeof(taken[0]));
    for (int i = 0; i < 2000; i++) {
        assert_int_equal(fixture_append_to(f.log, 1, 1, 1000000 + i * step_ms, 20), STATUS_OK);
        full = partition_log_segment_count(f.log) - 1;
        if (full == ROLLS) break;
        taken[full]++;
    }
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

static void a_segment_ends_by_age_less_its_share_of_the_jitter(void **state)
{
    (void)state;
    struct log_config config = {.segment_bytes = 1 << 30, .segment_ms = 1000};
    int taken[ROLLS], again[ROLLS], least = INT32_MAX, most = 0;
    fill_segments(&config, 100, taken);
    for (int i = 0; i < ROLLS; i++)
        assert_int_equal(taken[i], 11);
    config.segment_jitter_ms = 1000;
    fill_segments(&config, 100, taken);
    for (int i = 0; i < ROLLS; i++) {
        assert_true(taken[i] >= 1 && taken[i] <= 11);
        if (taken[i] < least) least = taken[i];
        if (taken[i] > most) most = taken[i];
    }
    assert_true(most - least >= 3);
    /* Not by chance: another run does the same. */
    fill_segments(&config, 100, again);
    assert_memory_equal(taken, again, sizeof(taken));
}

static void a_segment_ends_when_its_index_is_full(void **state)
{
    (void)state;
    /* An entry each 1024 bytes: of about each eleventh of these records. */
    struct log_config config = {.segment_bytes = 1 << 30, .index_bytes = 40};
    int taken[ROLLS];
    fill_segments(&config, 0, taken);
    assert_true(taken[0] >= 40 && taken[0] <= 65);
    assert_int_equal(taken[1], taken[0]);
    config.index_bytes = 80;
    fill_segments(&config, 0, taken);
    assert_true(taken[0] >= 90 && taken[0] <= 125);
    config.index_bytes = 0;
    fill_segments(&config, 0, taken);
    assert_int_equal(taken[0], 2000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(append_is_readable_at_once_and_durable_after_one_write_and_one_sync),
        cmocka_unit_test(durable_records_survive_a_power_cut_in_the_middle_of_any_number_of_rolls),
        cmocka_unit_test(segments_roll_before_they_exceed_their_size_and_the_snapshot_is_exact),
        cmocka_unit_test(a_stop_takes_its_snapshot_when_all_is_durable),
        cmocka_unit_test(a_stop_whose_flush_fails_says_so_and_takes_no_snapshot),
        cmocka_unit_test(a_snapshot_above_the_end_is_gone_for_good_after_a_recovery),
        cmocka_unit_test(snapshots_of_stops_go_with_the_segments_they_lie_in),
        cmocka_unit_test(producers_are_scanned_from_the_newest_snapshot_on),
        cmocka_unit_test(producers_below_the_log_start_are_scanned_as_long_as_files_hold_them),
        cmocka_unit_test(a_scan_names_what_it_could_not_read),
        cmocka_unit_test(cold_reads_give_every_batch_whatever_the_size_asked_for),
        cmocka_unit_test(reads_respect_limit_size_and_range),
        cmocka_unit_test(appends_out_of_place_or_epoch_are_refused),
        cmocka_unit_test(appends_wait_while_too_many_bytes_are_unsynced),
        cmocka_unit_test(after_a_failed_sync_nothing_is_durable_or_accepted_any_more),
        cmocka_unit_test(a_full_disk_fails_with_its_own_status_and_a_reopened_copy_goes_on),
        cmocka_unit_test(flush_ends_when_everything_before_it_is_durable),
        cmocka_unit_test(two_flushes_end_after_the_offsets_could_not_be_written),
        cmocka_unit_test(the_synced_position_is_at_most_one_commit_behind_when_a_commit_starts),
        cmocka_unit_test(memory_stays_within_its_bound),
        cmocka_unit_test(gaps_are_kept_and_read_over_in_a_compacted_log),
        cmocka_unit_test(a_segment_ends_by_age_less_its_share_of_the_jitter),
        cmocka_unit_test(a_segment_ends_when_its_index_is_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
