/* recovery_test.c: torn tails, rot, lost files, crashes at every file operation. */
#include "base/mutant.h"
#include "lib/log_fixture.h"

#define FIRST_SEGMENT FIXTURE_DIRECTORY "/00000000000000000000.log"

/* A log of `synced` batches on record and `more` beyond, the process dead. Returns where the record
 * ends. */
static size_t make_log(struct log_fixture *f, struct memory_disk *disk, int synced, int more,
                       size_t *end)
{
    fixture_begin(f, disk);
    fixture_open(f);
    fixture_append_durably(f, synced);
    fixture_rest(f);
    uint64_t writes = disk->writes;
    size_t position = 0;
    struct shared_bytes *batch = fixture_batch(0, 1, 1, 1000, 20);
    position = (size_t)synced * batch->bytes;
    *end = position + (size_t)more * batch->bytes;
    shared_bytes_unref(batch);
    /* All in one commit, so that no position is recorded beside it. */
    for (int i = 0; i < more; i++) {
        fixture_append(f);
    }
    f->loop.manual = true;
    fake_loop_run(&f->loop);
    while (f->loop.job_count > 0 && disk->writes == writes) {
        fake_loop_run_job(&f->loop);
    }
    f->loop.manual = false;
    fixture_crash(f);
    return position;
}

/* Opens; whatever was damaged, nothing below `synced` may be cut away. */
static void reopen_and_check(struct log_fixture *f, int64_t synced, int64_t most)
{
    int64_t from, to;
    enum status status;
    fixture_reopen(f);
    int64_t end = partition_log_end_offset(f->log);
    assert_in_range(end, synced, most);
    int64_t offset = partition_log_start_offset(f->log);
    for (;;) {
        offset = fixture_read_all(f, offset, 200, &status);
        if (status == STATUS_OK) break;
        assert_int_equal(status, STATUS_CORRUPT);
        assert_true(partition_log_quarantined(f->log, &from, &to));
        /* On behind the damage at this place. */
        while (status == STATUS_CORRUPT && offset < end) {
            struct log_read read = {.offset = ++offset,
                                    .limit_offset = INT64_MAX,
                                    .bytes_max = 100,
                                    .at_least_one = true};
            status = fixture_read_once(f, &read);
            log_read_release(&read);
        }
    }
    assert_int_equal(offset, end);
}

static void a_tail_cut_at_any_byte_is_cut_back_to_the_last_whole_batch(void **state)
{
    struct memory_disk whole;
    struct log_fixture f;
    size_t end, position = make_log(&f, &whole, 3, 4, &end);
    size_t batch = (end - position) / 4;
    (void)state;
    for (size_t keep = position; keep <= end; keep++) {
        for (int zeros = 0; zeros < 2; zeros++) {
            struct memory_disk disk;
            memory_disk_copy(&disk, &whole);
            struct memory_node *file = memory_disk_file(&disk, FIRST_SEGMENT);
            memset(file->data + keep, 0, file->bytes - keep);
            if (!zeros) file->bytes = keep; /* and behind it zeros */
            /* Zeros that were there anyway are no loss. */
            int64_t intact = 0;
            const uint8_t *before = memory_disk_file(&whole, FIRST_SEGMENT)->data;
            while (position + (size_t)(intact + 1) * batch <= (zeros ? end : keep) &&
                   memcmp(file->data + position, before + position, (size_t)(intact + 1) * batch) ==
                       0) {
                intact++;
            }
            fixture_init(&f, &disk);
            reopen_and_check(&f, 3, 7);
            assert_int_equal(partition_log_end_offset(f.log), 3 + intact);
            assert_false(f.recovery.quarantined);
            /* And again: nothing more to do. */
            int64_t recovered = partition_log_end_offset(f.log);
            fixture_stop(&f);
            uint64_t hash = memory_disk_hash(&disk);
            fixture_reopen(&f);
            assert_int_equal(f.recovery.cut_bytes, 0);
            assert_int_equal(partition_log_end_offset(f.log), recovered);
            assert_int_equal(memory_disk_hash(&disk), hash);
            fixture_append_durably(&f, 2);
            fixture_stop(&f);
            fixture_reopen(&f);
            assert_int_equal(partition_log_end_offset(f.log), recovered + 2);
            fixture_stop(&f);
            memory_disk_deinit(&disk);
        }
    }
    memory_disk_deinit(&whole);
}

static void any_subset_of_torn_sectors_is_cut_and_never_comes_back(void **state)
{
    struct memory_disk whole;
    struct log_fixture f;
    size_t end, position = make_log(&f, &whole, 3, 24, &end);
    size_t first = position / 512, last = (end - 1) / 512;
    unsigned sectors = (unsigned)(last - first + 1);
    (void)state;
    assert_in_range(sectors, 5, 12);
    for (unsigned kept = 0; kept < 1u << sectors; kept++) {
        struct memory_disk disk;
        memory_disk_copy(&disk, &whole);
        struct memory_node *file = memory_disk_file(&disk, FIRST_SEGMENT);
        for (unsigned i = 0; i < sectors; i++) {
            if (kept & 1u << i) continue;
            size_t from = (first + i) * 512, to = from + 512;
            if (from < position) from = position;
            memset(file->data + from, 0, to - from);
        }
        fixture_init(&f, &disk);
        reopen_and_check(&f, 3, 27);
        assert_false(f.recovery.quarantined);
        int64_t recovered = partition_log_end_offset(f.log);
        fixture_append_durably(&f, 1);
        fixture_crash(&f);
        memory_disk_power_cut(&disk);
        /* Old sectors behind the cut must not be taken for what follows the new batch. */
        fixture_reopen(&f);
        assert_int_equal(partition_log_end_offset(f.log), recovered + 1);
        fixture_stop(&f);
        memory_disk_deinit(&disk);
    }
    memory_disk_deinit(&whole);
}

static void any_flipped_bit_is_found_and_never_costs_what_was_synced(void **state)
{
    struct memory_disk whole;
    struct log_fixture f;
    size_t end;
    (void)state;
    make_log(&f, &whole, 4, 0, &end);
    for (size_t at = 0; at < end; at++) {
        for (int bit = 0; bit < 8; bit++) {
            struct memory_disk disk;
            memory_disk_copy(&disk, &whole);
            memory_disk_file(&disk, FIRST_SEGMENT)->data[at] ^= (uint8_t)(1 << bit);
            fixture_init(&f, &disk);
            reopen_and_check(&f, 4, 4);
            assert_true(f.recovery.quarantined);
            assert_int_equal(f.recovery.cut_bytes, 0);
            /* Just the one batch. */
            assert_int_equal(f.recovery.quarantine_to - f.recovery.quarantine_from, 1);
            fixture_stop(&f);
            memory_disk_deinit(&disk);
        }
    }
    memory_disk_deinit(&whole);
}

static void any_flipped_byte_beyond_the_synced_position_is_a_tear(void **state)
{
    struct memory_disk whole;
    struct log_fixture f;
    size_t end, position = make_log(&f, &whole, 2, 3, &end);
    size_t batch = (end - position) / 3;
    (void)state;
    for (size_t at = position; at < end; at++) {
        struct memory_disk disk;
        memory_disk_copy(&disk, &whole);
        memory_disk_file(&disk, FIRST_SEGMENT)->data[at] ^= 0x40;
        fixture_init(&f, &disk);
        reopen_and_check(&f, 2, 5);
        assert_false(f.recovery.quarantined);
        int64_t good = (int64_t)((at - position) / batch);
        int64_t recovered = partition_log_end_offset(f.log);
        /* A leader epoch raised in the last batch cannot be told from news. */
        bool epoch_byte = (at - position) % batch >= 12 && (at - position) % batch < 16;
        if (epoch_byte) {
            assert_in_range(recovered, 2 + good, 5);
        } else {
            assert_int_equal(recovered, 2 + good);
        }
        fixture_stop(&f);
        memory_disk_deinit(&disk);
    }
    memory_disk_deinit(&whole);
}

/* Several segments, the first ones sealed. */
static void make_segments(struct log_fixture *f, struct memory_disk *disk)
{
    fixture_begin(f, disk);
    f->config.segment_bytes = 300;
    f->cache_bytes_max = 0;
    fixture_open(f);
    fixture_append_durably(f, 10);
    fixture_rest(f);
    fixture_crash(f);
}

static void any_flipped_byte_of_a_sealed_segment_is_found_by_reading_it(void **state)
{
    struct memory_disk whole;
    struct log_fixture f;
    (void)state;
    make_segments(&f, &whole);
    size_t bytes = memory_disk_file(&whole, FIRST_SEGMENT)->bytes;
    for (size_t at = 0; at < bytes; at++) {
        struct memory_disk disk;
        int64_t from, to;
        memory_disk_copy(&disk, &whole);
        memory_disk_file(&disk, FIRST_SEGMENT)->data[at] ^= 0x10;
        fixture_init(&f, &disk);
        f.config.segment_bytes = 300;
        f.cache_bytes_max = 0;
        reopen_and_check(&f, 10, 10);
        assert_true(partition_log_quarantined(f.log, &from, &to));
        assert_int_equal(to - from, 1);
        fixture_stop(&f);
        memory_disk_deinit(&disk);
    }
    memory_disk_deinit(&whole);
}

static void lost_and_shortened_files_are_quarantined_and_the_rest_stays_readable(void **state)
{
    enum { DELETE, HALVE, ZERO, GARBAGE, WAYS };
    struct memory_disk whole;
    struct log_fixture f;
    (void)state;
    make_segments(&f, &whole);
    struct memory_node *directory = memory_disk_file(&whole, FIXTURE_DIRECTORY);
    for (size_t i = 0; i < directory->entry_count; i++) {
        if (strstr(directory->entries[i].name, ".log") == NULL) continue;
        for (int way = 0; way < WAYS; way++) {
            struct memory_disk disk;
            char path[400];
            memory_disk_copy(&disk, &whole);
            snprintf(path, sizeof(path), FIXTURE_DIRECTORY "/%s", directory->entries[i].name);
            struct memory_node *file = memory_disk_file(&disk, path);
            if (way == DELETE) {
                memory_entry_set(memory_disk_file(&disk, FIXTURE_DIRECTORY),
                                 directory->entries[i].name, NULL);
            } else if (way == HALVE) {
                memset(file->data + 50, 0, file->bytes - 50);
                file->bytes = 50;
            } else if (way == ZERO) {
                memset(file->data, 0, file->bytes);
            } else {
                size_t before = file->bytes;
                memory_resize_data(&file->data, &file->capacity, before + 1000);
                memset(file->data + before, 0xa5, 1000);
                file->bytes += 1000;
            }
            fixture_init(&f, &disk);
            f.config.segment_bytes = 300;
            f.cache_bytes_max = 0;
            reopen_and_check(&f, 10, 10);
            if (way == DELETE || way == HALVE) assert_true(f.recovery.quarantined);
            assert_int_equal(partition_log_start_offset(f.log), 0);
            fixture_append_durably(&f, 1);
            fixture_rest(&f);
            int64_t from = f.recovery.quarantine_from, to = f.recovery.quarantine_to;
            bool quarantined = f.recovery.quarantined;
            fixture_crash(&f);
            fixture_reopen(&f);
            assert_int_equal(partition_log_end_offset(f.log), 11);
            assert_int_equal(f.recovery.quarantined, quarantined);
            assert_int_equal(f.recovery.quarantine_from, from);
            assert_int_equal(f.recovery.quarantine_to, to);
            fixture_stop(&f);
            memory_disk_deinit(&disk);
        }
    }
    memory_disk_deinit(&whole);
}

static void a_whole_directory_gone_is_loss_not_a_fresh_partition(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    enum status status;
    (void)state;
    make_segments(&f, &disk);
    memory_entry_set(memory_disk_file(&disk, "/data/topics/t"), "0", NULL);
    fixture_reopen(&f);
    assert_false(f.recovery.had_files);
    assert_true(f.recovery.quarantined);
    assert_int_equal(partition_log_end_offset(f.log), 10);
    fixture_read_all(&f, 0, 100, &status);
    assert_int_equal(status, STATUS_CORRUPT);
    fixture_append_durably(&f, 1);
    fixture_rest(&f);
    fixture_crash(&f);
    fixture_reopen(&f);
    assert_int_equal(partition_log_end_offset(f.log), 11);
    assert_true(f.recovery.quarantined);
    assert_int_equal(f.recovery.quarantine_from, 0);
    assert_int_equal(f.recovery.quarantine_to, 10);
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

static void without_a_record_of_positions_only_what_nothing_sound_follows_is_cut(void **state)
{
    struct memory_disk whole;
    struct log_fixture f;
    size_t end, position = make_log(&f, &whole, 4, 0, &end);
    size_t batch = position / 4;
    (void)state;
    for (int lost = 0; lost < 3; lost++) {
        for (int64_t bad = 0; bad < 4; bad++) {
            struct memory_disk disk;
            memory_disk_copy(&disk, &whole);
            struct memory_node *record = memory_disk_file(&disk, "/data/synced-positions");
            if (lost == 0)
                memory_entry_set(memory_disk_file(&disk, "/data"), "synced-positions", NULL);
            if (lost == 1) record->data[3] ^= 1;
            if (lost == 2) memset(record->data + 4096, 0x77, 8192);
            memory_disk_file(&disk, FIRST_SEGMENT)->data[(size_t)bad * batch + 70] ^= 1;
            fixture_init(&f, &disk);
            reopen_and_check(&f, 3, 4);
            assert_int_equal(f.recovery.quarantined, bad < 3);
            assert_int_equal(partition_log_end_offset(f.log), bad < 3 ? 4 : 3);
            fixture_stop(&f);
            memory_disk_deinit(&disk);
        }
    }
    memory_disk_deinit(&whole);
}

/* The process died between giving a full segment its length and syncing that. */
static void a_sealed_segment_gets_its_length_for_good_before_its_digest(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    (void)state;
    make_segments(&f, &disk);
    struct memory_node *file = memory_disk_file(&disk, FIRST_SEGMENT);
    struct memory_node *directory = memory_disk_file(&disk, FIXTURE_DIRECTORY);
    size_t bytes = file->bytes;
    memory_entry_set(directory, "00000000000000000000.digest", NULL);
    assert_int_equal(memory_set_length(&disk, file, bytes + 5000, NULL), STATUS_OK);
    memory_disk_settle(&disk);
    assert_int_equal(memory_set_length(&disk, file, bytes, NULL), STATUS_OK);
    fixture_reopen(&f);
    fixture_crash(&f);
    memory_disk_power_cut(&disk);
    assert_non_null(memory_disk_file(&disk, FIXTURE_DIRECTORY "/00000000000000000000.digest"));
    assert_int_equal(memory_disk_file(&disk, FIRST_SEGMENT)->bytes, bytes);
    memory_disk_deinit(&disk);
}

static void a_sealed_segment_without_digest_loses_what_was_reserved(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    (void)state;
    make_segments(&f, &disk);
    struct memory_node *file = memory_disk_file(&disk, FIRST_SEGMENT);
    size_t bytes = file->bytes;
    memory_entry_set(memory_disk_file(&disk, FIXTURE_DIRECTORY), "00000000000000000000.digest",
                     NULL);
    assert_int_equal(memory_set_length(&disk, file, bytes + 5000, NULL), STATUS_OK);
    memory_disk_settle(&disk);
    fixture_reopen(&f);
    fixture_crash(&f);
    assert_int_equal(memory_disk_file(&disk, FIRST_SEGMENT)->bytes, bytes);
    memory_disk_deinit(&disk);
}

static void leftovers_of_rewrites_are_removed_and_indexes_rebuilt(void **state)
{
    static const char *const names[] = {"00000000000000000000.log.tmp", "x.swap", "y.cleaned",
                                        "z.deleted"};
    struct memory_disk disk;
    struct log_fixture f;
    enum status status;
    (void)state;
    fixture_begin(&f, &disk);
    fixture_open(&f);
    for (int i = 0; i < 6000; i++) {
        fixture_append(&f);
    }
    fixture_rest(&f);
    fixture_crash(&f);
    for (size_t i = 0; i < 4; i++) {
        memory_entry_set(memory_disk_file(&disk, FIXTURE_DIRECTORY), names[i],
                         memory_node_new(&disk, false));
    }
    struct memory_node *index =
        memory_disk_file(&disk, FIXTURE_DIRECTORY "/00000000000000000000.index");
    assert_non_null(index);
    memset(index->data, 0xff, index->bytes);
    f.cache_bytes_max = 0;
    fixture_reopen(&f);
    for (size_t i = 0; i < 4; i++) {
        char path[400];
        snprintf(path, sizeof(path), FIXTURE_DIRECTORY "/%s", names[i]);
        assert_null(memory_disk_file(&disk, path));
    }
    assert_int_equal(index->data[0], 'M');
    assert_int_equal(fixture_read_all(&f, 5500, 1000, &status), 6000);
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

/* ---- epochs ---- */

static void make_epochs(struct log_fixture *f, struct memory_disk *disk)
{
    fixture_begin(f, disk);
    f->config.segment_bytes = 400;
    fixture_open(f);
    for (int epoch = 0; epoch < 5; epoch++) {
        for (int i = 0; i < 3; i++) {
            assert_int_equal(fixture_append_to(f->log, 1, epoch * 2, 1000, 20), STATUS_OK);
            fake_loop_run(&f->loop);
        }
    }
    fixture_rest(f);
    fixture_crash(f);
}

static void assert_epochs(const struct log_fixture *f)
{
    const struct epoch_history *epochs = partition_log_epochs(f->log);
    assert_int_equal(epochs->count, 5);
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(epochs->entries[i].first_epoch, i * 2);
        assert_int_equal(epochs->entries[i].start_offset, i * 3);
    }
}

static void a_damaged_epochs_file_is_rebuilt_from_the_batches(void **state)
{
    struct memory_disk whole;
    struct log_fixture f;
    (void)state;
    make_epochs(&f, &whole);
    size_t bytes = memory_disk_file(&whole, "/data/replication-epochs.json")->bytes;
    for (size_t at = 0; at <= bytes + 2; at++) {
        struct memory_disk disk;
        memory_disk_copy(&disk, &whole);
        struct memory_node *file = memory_disk_file(&disk, "/data/replication-epochs.json");
        if (at < bytes) file->data[at] ^= 0x04;
        if (at == bytes) file->bytes = 0;
        if (at == bytes + 1) file->bytes /= 2;
        if (at == bytes + 2) {
            memory_entry_set(memory_disk_file(&disk, "/data"), "replication-epochs.json", NULL);
        }
        fixture_init(&f, &disk);
        fixture_reopen(&f);
        /* The newline at the end is no part of the document. */
        if (at + 1 != bytes) assert_true(f.recovery.epochs_rebuilt);
        assert_epochs(&f);
        assert_false(f.recovery.quarantined);
        fixture_rest(&f);
        fixture_stop(&f);
        fixture_reopen(&f);
        assert_false(f.recovery.epochs_rebuilt);
        assert_epochs(&f);
        fixture_stop(&f);
        memory_disk_deinit(&disk);
    }
    memory_disk_deinit(&whole);
}

static void a_history_that_most_batches_contradict_is_rebuilt(void **state)
{
    struct memory_disk disk, other;
    struct log_fixture f;
    (void)state;
    make_epochs(&f, &disk);
    /* The epochs file of a log that went another way. */
    fixture_begin(&f, &other);
    fixture_open(&f);
    for (int i = 0; i < 15; i++) {
        assert_int_equal(fixture_append_to(f.log, 1, 30, 1000, 20), STATUS_OK);
    }
    fixture_rest(&f);
    fixture_stop(&f);
    struct memory_node *from = memory_disk_file(&other, "/data/replication-epochs.json");
    memory_entry_set(memory_disk_file(&disk, "/data"), "replication-epochs.json",
                     memory_node_copy(&disk, from));
    fixture_init(&f, &disk);
    f.config.segment_bytes = 400;
    fixture_reopen(&f);
    assert_true(f.recovery.epochs_rebuilt);
    assert_false(f.recovery.quarantined);
    assert_int_equal(partition_log_end_offset(f.log), 15);
    assert_epochs(&f);
    fixture_stop(&f);
    memory_disk_deinit(&disk);
    memory_disk_deinit(&other);
}

static void an_epoch_in_which_nothing_was_written_survives_a_restart(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    (void)state;
    fixture_begin(&f, &disk);
    fixture_open(&f);
    fixture_append_durably(&f, 2);
    partition_log_assign_epoch(f.log, 5, 2);
    fake_loop_run(&f.loop);
    fixture_crash(&f);
    memory_disk_power_cut(&disk);
    fixture_reopen(&f);
    assert_int_equal(epoch_history_latest(partition_log_epochs(f.log)), 5);
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

/* ---- crashes at every operation ---- */

static void workload(struct log_fixture *f, int64_t *durable)
{
    for (int i = 0; i < 12; i++) {
        if (fixture_append_to(f->log, 1, 1 + i / 4, 1000, 20) != STATUS_OK) break;
        fake_loop_run(&f->loop);
        if (i == 7) fake_loop_advance(&f->loop, 200000);
        *durable = partition_log_durable_offset(f->log);
        if (partition_log_failed(f->log)) break;
    }
    fake_loop_advance(&f->loop, 2000000);
}

static void a_crash_at_any_operation_loses_nothing_that_was_durable(void **state)
{
    (void)state;
    for (int power = 0; power < 2; power++) {
        for (uint64_t n = 1;; n++) {
            struct memory_disk disk;
            struct log_fixture f;
            int64_t durable = 0;
            fixture_begin(&f, &disk);
            f.config.segment_bytes = 300;
            disk.fail_at = n;
            disk.fail_for_ever = true;
            bool opened = fixture_try_open(&f) == STATUS_OK;
            if (opened) workload(&f, &durable);
            bool reached = disk.operations >= n;
            fixture_crash(&f);
            if (power) memory_disk_power_cut(&disk);
            reopen_and_check(&f, durable, 12);
            assert_false(f.recovery.quarantined);
            int64_t end = partition_log_end_offset(f.log);
            fixture_crash(&f);
            if (power) memory_disk_power_cut(&disk);
            fixture_reopen(&f);
            assert_int_equal(partition_log_end_offset(f.log), end);
            assert_int_equal(f.recovery.cut_bytes, 0);
            assert_int_equal(fixture_append_to(f.log, 1, 9, 1000, 20), STATUS_OK);
            fake_loop_run(&f.loop);
            assert_int_equal(partition_log_durable_offset(f.log), end + 1);
            fixture_stop(&f);
            memory_disk_deinit(&disk);
            if (!reached) break;
        }
    }
}

/* What a process left behind that died has names that may be in memory only. */
static void what_is_written_after_a_crash_outlives_a_power_cut(void **state)
{
    (void)state;
    for (uint64_t n = 1;; n++) {
        struct memory_disk disk;
        struct log_fixture f;
        int64_t durable = 0;
        fixture_begin(&f, &disk);
        f.config.segment_bytes = 300;
        disk.fail_at = n;
        disk.fail_for_ever = true;
        if (fixture_try_open(&f) == STATUS_OK) workload(&f, &durable);
        bool reached = disk.operations >= n;
        fixture_crash(&f);
        fixture_reopen(&f);
        assert_int_equal(fixture_append_to(f.log, 1, 9, 1000, 20), STATUS_OK);
        fake_loop_run(&f.loop);
        durable = partition_log_durable_offset(f.log);
        assert_int_equal(durable, partition_log_end_offset(f.log));
        fixture_crash(&f);
        memory_disk_power_cut(&disk);
        reopen_and_check(&f, durable, durable);
        fixture_stop(&f);
        memory_disk_deinit(&disk);
        if (!reached) break;
    }
}

static void one_failing_operation_loses_nothing_that_was_durable(void **state)
{
    (void)state;
    for (uint64_t n = 1;; n++) {
        struct memory_disk disk;
        struct log_fixture f;
        int64_t durable = 0;
        fixture_begin(&f, &disk);
        f.config.segment_bytes = 300;
        disk.fail_at = n;
        bool opened = fixture_try_open(&f) == STATUS_OK;
        if (opened) workload(&f, &durable);
        bool reached = disk.operations >= n;
        fixture_crash(&f);
        memory_disk_power_cut(&disk);
        reopen_and_check(&f, durable, 12);
        fixture_stop(&f);
        memory_disk_deinit(&disk);
        if (!reached) break;
    }
}

static void recovery_itself_may_be_interrupted_at_any_operation(void **state)
{
    struct memory_disk whole;
    struct log_fixture f;
    size_t end, position = make_log(&f, &whole, 3, 4, &end);
    (void)state;
    memory_disk_file(&whole, FIRST_SEGMENT)->data[position + 150] ^= 1;
    for (uint64_t n = 1;; n++) {
        struct memory_disk disk;
        memory_disk_copy(&disk, &whole);
        fixture_init(&f, &disk);
        disk.fail_at = n;
        disk.fail_for_ever = true;
        if (fixture_try_open(&f) == STATUS_OK) fixture_rest(&f);
        bool reached = disk.operations >= n;
        fixture_crash(&f);
        memory_disk_power_cut(&disk);
        reopen_and_check(&f, 3, 7);
        assert_int_equal(partition_log_end_offset(f.log), 4);
        assert_false(f.recovery.quarantined);
        fixture_stop(&f);
        memory_disk_deinit(&disk);
        if (!reached) break;
    }
    memory_disk_deinit(&whole);
}

#ifdef MOONMQ_MUTANTS
/* The tests above are shown to notice: each mutant breaks what one of them claims. */
static void mutant_18_loses_a_segment_whose_name_was_never_synced(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    (void)state;
    fixture_begin(&f, &disk);
    mutant_set(18);
    fixture_open(&f);
    fixture_append_durably(&f, 3);
    fixture_crash(&f);
    mutant_set(0);
    memory_disk_power_cut(&disk);
    fixture_reopen(&f);
    assert_int_equal(partition_log_end_offset(f.log), 0);
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

static void mutant_22_cuts_what_was_synced(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    size_t end;
    (void)state;
    make_log(&f, &disk, 4, 0, &end);
    memory_disk_file(&disk, FIRST_SEGMENT)->data[100] ^= 1;
    mutant_set(22);
    fixture_reopen(&f);
    mutant_set(0);
    assert_true(partition_log_end_offset(f.log) < 4);
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

static void mutants_19_and_21_acknowledge_what_a_failed_sync_lost(void **state)
{
    (void)state;
    for (int mutant = 19; mutant <= 21; mutant += 2) {
        struct memory_disk disk;
        struct log_fixture f;
        fixture_begin(&f, &disk);
        fixture_open(&f);
        fixture_append_durably(&f, 1);
        fixture_rest(&f);
        mutant_set(mutant);
        fixture_append(&f);
        disk.fail_at = disk.operations + 2;
        fake_loop_run(&f.loop);
        mutant_set(0);
        assert_int_equal(partition_log_durable_offset(f.log), 2);
        assert_false(partition_log_failed(f.log));
        fixture_crash(&f);
        memory_disk_deinit(&disk);
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tail_cut_at_any_byte_is_cut_back_to_the_last_whole_batch),
        cmocka_unit_test(any_subset_of_torn_sectors_is_cut_and_never_comes_back),
        cmocka_unit_test(any_flipped_bit_is_found_and_never_costs_what_was_synced),
        cmocka_unit_test(any_flipped_byte_beyond_the_synced_position_is_a_tear),
        cmocka_unit_test(any_flipped_byte_of_a_sealed_segment_is_found_by_reading_it),
        cmocka_unit_test(lost_and_shortened_files_are_quarantined_and_the_rest_stays_readable),
        cmocka_unit_test(a_whole_directory_gone_is_loss_not_a_fresh_partition),
        cmocka_unit_test(without_a_record_of_positions_only_what_nothing_sound_follows_is_cut),
        cmocka_unit_test(a_sealed_segment_gets_its_length_for_good_before_its_digest),
        cmocka_unit_test(a_sealed_segment_without_digest_loses_what_was_reserved),
        cmocka_unit_test(leftovers_of_rewrites_are_removed_and_indexes_rebuilt),
        cmocka_unit_test(a_damaged_epochs_file_is_rebuilt_from_the_batches),
        cmocka_unit_test(a_history_that_most_batches_contradict_is_rebuilt),
        cmocka_unit_test(an_epoch_in_which_nothing_was_written_survives_a_restart),
        cmocka_unit_test(a_crash_at_any_operation_loses_nothing_that_was_durable),
        cmocka_unit_test(what_is_written_after_a_crash_outlives_a_power_cut),
        cmocka_unit_test(one_failing_operation_loses_nothing_that_was_durable),
        cmocka_unit_test(recovery_itself_may_be_interrupted_at_any_operation),
#ifdef MOONMQ_MUTANTS
        cmocka_unit_test(mutant_18_loses_a_segment_whose_name_was_never_synced),
        cmocka_unit_test(mutant_22_cuts_what_was_synced),
        cmocka_unit_test(mutants_19_and_21_acknowledge_what_a_failed_sync_lost),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
