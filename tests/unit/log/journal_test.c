/* journal_test.c: commits of many files: one sync, and nothing lost by it. */
#include "lib/log_fixture.h"

#define PARTITIONS 20

struct many {
    struct log_fixture f;
    struct partition_log *logs[PARTITIONS];
    int64_t durable[PARTITIONS];
    bool any_quarantined;
};

static void many_open(struct many *many)
{
    struct log_recovery recovery;
    many->f.store = fixture_store(&many->f);
    assert_int_equal(log_store_load(many->f.store, NULL), STATUS_OK);
    for (int i = 0; i < PARTITIONS; i++) {
        struct log_identity identity = fixture_identity(i);
        assert_int_equal(log_store_recover(many->f.store, &identity, &many->f.config,
                                           &many->logs[i], &recovery, NULL),
                         STATUS_OK);
        many->any_quarantined = many->any_quarantined || recovery.quarantined;
    }
}

static void many_begin(struct many *many, struct memory_disk *disk)
{
    memset(many, 0, sizeof(*many));
    fixture_begin(&many->f, disk);
    many->f.config.segment_bytes = 600;
    many_open(many);
}

static void many_append(struct many *many, int32_t epoch)
{
    for (int i = 0; i < PARTITIONS; i++) {
        if (partition_log_failed(many->logs[i])) continue;
        assert_int_equal(fixture_append_to(many->logs[i], 1 + i % 2, epoch, 1000, 20), STATUS_OK);
    }
    fake_loop_run(&many->f.loop);
    for (int i = 0; i < PARTITIONS; i++) {
        many->durable[i] = partition_log_durable_offset(many->logs[i]);
    }
}

static void many_reopen(struct many *many)
{
    fake_loop_init(&many->f.loop);
    many_open(many);
}

static void many_check(struct many *many, const int64_t *at_least, const int64_t *at_most)
{
    enum status status;
    assert_false(many->any_quarantined);
    for (int i = 0; i < PARTITIONS; i++) {
        many->f.log = many->logs[i];
        int64_t end = partition_log_end_offset(many->logs[i]);
        assert_in_range(end, at_least[i], at_most[i]);
        assert_int_equal(
            fixture_read_all(&many->f, partition_log_start_offset(many->logs[i]), 100, &status),
            end);
        assert_int_equal(status, STATUS_OK);
    }
}

static void a_commit_of_many_files_costs_one_sync(void **state)
{
    struct memory_disk disk;
    struct many many;
    (void)state;
    many_begin(&many, &disk);
    for (int i = 0; i < 2; i++) {
        many_append(&many, 1); /* each journal file is made at its first use */
        fixture_rest(&many.f);
    }
    uint64_t syncs = disk.syncs;
    for (int i = 0; i < PARTITIONS; i++) {
        assert_int_equal(fixture_append_to(many.logs[i], 1, 1, 1000, 20), STATUS_OK);
    }
    fake_loop_run(&many.f.loop);
    assert_int_equal(partition_log_durable_offset(many.logs[0]),
                     partition_log_end_offset(many.logs[0]));
    assert_int_equal(disk.syncs - syncs, 1);
    fixture_stop(&many.f);
    memory_disk_deinit(&disk);
}

static void what_the_journal_alone_holds_survives_a_power_cut(void **state)
{
    (void)state;
    for (int rounds = 1; rounds < 8; rounds++) {
        for (int rest = 0; rest < 3; rest++) {
            struct memory_disk disk;
            struct many many;
            many_begin(&many, &disk);
            for (int i = 0; i < rounds; i++) {
                many_append(&many, 1);
                if (rest == 1) fake_loop_advance(&many.f.loop, 100000);
                if (rest == 2 && i == rounds / 2) fixture_rest(&many.f);
            }
            fixture_crash(&many.f);
            memory_disk_power_cut(&disk);
            many_reopen(&many);
            many_check(&many, many.durable, many.durable);
            many_append(&many, 1);
            fixture_stop(&many.f);
            many_reopen(&many);
            many_check(&many, many.durable, many.durable);
            fixture_stop(&many.f);
            memory_disk_deinit(&disk);
        }
    }
}

static void a_cut_is_not_undone_by_what_the_journal_held(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        struct memory_disk disk;
        struct many many;
        enum status status;
        many_begin(&many, &disk);
        for (int i = 0; i < 5; i++) {
            many_append(&many, 1);
        }
        int64_t expected = 2;
        if (kind == 0) partition_log_truncate(many.logs[3], 4, fixture_done, &many.f);
        if (kind == 1) partition_log_reset(many.logs[3], 4, 2, false, fixture_done, &many.f);
        if (kind == 2) partition_log_reset(many.logs[3], 0, 2, false, fixture_done, &many.f);
        if (kind == 3) log_store_drop(many.f.store, many.logs[3], false, fixture_done, &many.f);
        fake_loop_run(&many.f.loop);
        assert_int_equal(many.f.done_calls, 1);
        assert_int_equal(many.f.done_status, STATUS_OK);
        struct log_identity identity = fixture_identity(3);
        if (kind == 3) {
            identity.uid.bytes[0] = 99;
            many.logs[3] = log_store_create(many.f.store, &identity, &many.f.config);
        }
        /* Something else takes the place of what was there. */
        for (int i = 0; i < 2; i++) {
            assert_int_equal(fixture_append_to(many.logs[3], 1, 2, 1000, 30), STATUS_OK);
            fake_loop_run(&many.f.loop);
        }
        expected = partition_log_end_offset(many.logs[3]);
        assert_int_equal(partition_log_durable_offset(many.logs[3]), expected);
        fixture_crash(&many.f);
        memory_disk_power_cut(&disk);
        fake_loop_init(&many.f.loop);
        many.f.store = fixture_store(&many.f);
        assert_int_equal(log_store_load(many.f.store, NULL), STATUS_OK);
        assert_int_equal(log_store_recover(many.f.store, &identity, &many.f.config, &many.f.log,
                                           &many.f.recovery, NULL),
                         STATUS_OK);
        assert_false(many.f.recovery.quarantined);
        assert_int_equal(partition_log_end_offset(many.f.log), expected);
        assert_int_equal(
            fixture_read_all(&many.f, partition_log_start_offset(many.f.log), 100, &status),
            expected);
        assert_int_equal(epoch_history_at(partition_log_epochs(many.f.log), expected - 1), 2);
        fixture_stop(&many.f);
        memory_disk_deinit(&disk);
    }
}

static void a_crash_at_any_operation_loses_nothing_that_was_durable(void **state)
{
    (void)state;
    for (uint64_t n = 1;; n += 1 + n / 60) {
        struct memory_disk disk;
        struct many many;
        int64_t at_most[PARTITIONS];
        many_begin(&many, &disk);
        disk.fail_at = disk.operations + n;
        disk.fail_for_ever = true;
        int64_t cut = -1;
        for (int i = 0; i < 8; i++) {
            many_append(&many, 1 + i / 3);
            if (i % 3 == 2) fake_loop_advance(&many.f.loop, 300000);
            if (i == 4 && !partition_log_failed(many.logs[7])) {
                cut = partition_log_end_offset(many.logs[7]) - 3;
                partition_log_truncate(many.logs[7], cut, fixture_done, &many.f);
                fake_loop_run(&many.f.loop);
            }
        }
        bool reached = disk.operations >= disk.fail_at;
        for (int i = 0; i < PARTITIONS; i++) {
            at_most[i] = partition_log_end_offset(many.logs[i]);
        }
        /* A cut that did not come to its end may have left what it was to take. */
        if (cut >= 0 && many.f.done_status != STATUS_OK) many.durable[7] = cut / 2 * 2;
        if (cut >= 0) at_most[7] = 100;
        fixture_crash(&many.f);
        if (n % 4 != 0) memory_disk_power_cut(&disk);
        many_reopen(&many);
        many_check(&many, many.durable, at_most);
        int64_t ends[PARTITIONS];
        for (int i = 0; i < PARTITIONS; i++) {
            ends[i] = partition_log_end_offset(many.logs[i]);
        }
        fixture_crash(&many.f);
        memory_disk_power_cut(&disk);
        many_reopen(&many);
        many_check(&many, ends, ends);
        fixture_stop(&many.f);
        memory_disk_deinit(&disk);
        if (!reached) break;
    }
}

static void a_torn_record_is_no_record(void **state)
{
    struct memory_disk whole;
    struct many many;
    (void)state;
    many_begin(&many, &whole);
    many_append(&many, 1);
    int64_t before[PARTITIONS];
    memcpy(before, many.durable, sizeof(before));
    fixture_rest(&many.f);
    many_append(&many, 1);
    fixture_crash(&many.f);
    memory_disk_power_cut(&whole);
    for (int which = 0; which < 2; which++) {
        char path[64];
        snprintf(path, sizeof(path), "/data/commit-journal-%d", which);
        if (memory_disk_file(&whole, path) == NULL) continue;
        for (size_t at = 0; at < 3000; at += 37) {
            struct memory_disk disk;
            memory_disk_copy(&disk, &whole);
            memory_disk_file(&disk, path)->data[at] ^= 0x11;
            many.f.disk = &disk;
            many_reopen(&many);
            many_check(&many, before, many.durable);
            fixture_stop(&many.f);
            memory_disk_deinit(&disk);
        }
    }
    memory_disk_deinit(&whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_commit_of_many_files_costs_one_sync),
        cmocka_unit_test(what_the_journal_alone_holds_survives_a_power_cut),
        cmocka_unit_test(a_cut_is_not_undone_by_what_the_journal_held),
        cmocka_unit_test(a_crash_at_any_operation_loses_nothing_that_was_durable),
        cmocka_unit_test(a_torn_record_is_no_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
