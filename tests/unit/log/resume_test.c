/* resume_test.c: a copy that failed for want of space goes on from what is durable (F40). */
#include "lib/log_fixture.h"

#define BIG 30000

/* A log of a few small segments, durable. */
static void begin_small(struct log_fixture *f, struct memory_disk *disk)
{
    fixture_begin(f, disk);
    f->config.segment_bytes = 100000;
    fixture_open(f);
    fixture_append_durably(f, 3);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(fixture_append_to(f->log, 1, 1, 1000, BIG), STATUS_OK);
        fake_loop_run(&f->loop);
    }
}

static bool append_until_it_fails(struct log_fixture *f, int count)
{
    for (int i = 0; i < count && !partition_log_failed(f->log); i++) {
        (void)fixture_append_to(f->log, 1, 2, 1000, BIG);
        fake_loop_run(&f->loop);
    }
    return partition_log_failed(f->log);
}

static enum status resume(struct log_fixture *f)
{
    f->done_calls = 0;
    partition_log_resume(f->log, fixture_done, f);
    fake_loop_run(&f->loop);
    fixture_rest(f);
    assert_int_equal(f->done_calls, 1);
    return f->done_status;
}

/* By a resume, or, where only that helps, by opening it anew. */
static void mend(struct log_fixture *f)
{
    if (!partition_log_failed(f->log)) return;
    if (partition_log_lacked_space(f->log)) {
        assert_int_equal(resume(f), STATUS_OK);
        return;
    }
    assert_int_equal(resume(f), STATUS_STORAGE_ERROR);
    fixture_stop(f);
    fixture_reopen(f);
}

static void assert_whole_to_its_end(struct log_fixture *f)
{
    enum status status;
    int64_t end = partition_log_end_offset(f->log);
    assert_int_equal(fixture_read_all(f, 0, 1 << 16, &status), end);
    assert_int_equal(status, STATUS_OK);
}

/* Writes on, and looks again after an orderly stop or a crash. */
static void assert_goes_on(struct log_fixture *f, bool crash)
{
    for (int i = 0; i < 6; i++) {
        assert_int_equal(fixture_append_to(f->log, 1, 2, 1000, BIG), STATUS_OK);
        fake_loop_run(&f->loop);
    }
    int64_t end = partition_log_end_offset(f->log);
    assert_int_equal(partition_log_durable_offset(f->log), end);
    assert_whole_to_its_end(f);
    if (crash) {
        fixture_crash(f);
        memory_disk_power_cut(f->disk);
    } else {
        fixture_stop(f);
    }
    fixture_reopen(f);
    assert_int_equal(partition_log_end_offset(f->log), end);
    assert_whole_to_its_end(f);
    fixture_stop(f);
    memory_disk_deinit(f->disk);
}

static void a_full_disk_costs_what_was_not_durable(void **state)
{
    (void)state;
    for (int crash = 0; crash < 2; crash++) {
        struct memory_disk disk;
        struct log_fixture f;
        begin_small(&f, &disk);
        disk.capacity_bytes = disk.used_bytes + 70000;
        assert_true(append_until_it_fails(&f, 100));
        assert_true(partition_log_lacked_space(f.log));
        int64_t durable = partition_log_durable_offset(f.log);
        /* There still is none: it fails again, and can be resumed again. */
        assert_int_equal(resume(&f), STATUS_OK);
        assert_int_equal(partition_log_end_offset(f.log), durable);
        assert_true(append_until_it_fails(&f, 100));
        disk.capacity_bytes = 0;
        assert_int_equal(resume(&f), STATUS_OK);
        assert_false(partition_log_failed(f.log));
        assert_true(partition_log_end_offset(f.log) >= durable);
        assert_goes_on(&f, crash);
    }
}

static void space_may_be_wanting_at_every_operation(void **state)
{
    (void)state;
    bool any = false;
    for (uint64_t n = 1;; n++) {
        struct memory_disk disk;
        struct log_fixture f;
        begin_small(&f, &disk);
        disk.fail_at = disk.operations + n;
        disk.fail_with = STATUS_NO_SPACE;
        bool failed = append_until_it_fails(&f, 8);
        bool over = disk.operations < disk.fail_at;
        disk.fail_at = 0;
        any = any || (failed && partition_log_lacked_space(f.log));
        mend(&f);
        assert_goes_on(&f, n % 2 == 0);
        if (over) break;
    }
    assert_true(any);
}

static void a_resume_that_breaks_off_can_be_had_again(void **state)
{
    (void)state;
    for (uint64_t n = 1;; n++) {
        struct memory_disk disk;
        struct log_fixture f;
        begin_small(&f, &disk);
        disk.capacity_bytes = disk.used_bytes + 70000;
        assert_true(append_until_it_fails(&f, 100));
        disk.capacity_bytes = 0;
        disk.fail_at = disk.operations + n;
        disk.fail_with = STATUS_NO_SPACE;
        (void)resume(&f);
        bool over = disk.operations < disk.fail_at;
        disk.fail_at = 0;
        mend(&f);
        assert_goes_on(&f, n % 2 == 0);
        if (over) break;
    }
}

static void what_failed_otherwise_does_not_go_on(void **state)
{
    (void)state;
    struct memory_disk disk;
    struct log_fixture f;
    begin_small(&f, &disk);
    disk.fail_at = disk.operations + 1;
    disk.fail_with = STATUS_IO;
    assert_true(append_until_it_fails(&f, 1));
    disk.fail_at = 0;
    assert_false(partition_log_lacked_space(f.log));
    assert_int_equal(resume(&f), STATUS_STORAGE_ERROR);
    assert_true(partition_log_failed(f.log));
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_disk_costs_what_was_not_durable),
        cmocka_unit_test(space_may_be_wanting_at_every_operation),
        cmocka_unit_test(a_resume_that_breaks_off_can_be_had_again),
        cmocka_unit_test(what_failed_otherwise_does_not_go_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
