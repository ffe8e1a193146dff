/* compaction_test.c: passes over a log: what stays, the swap under crashes, cancelling, memory. */
#include "base/crc32c.h"
#include "lib/compaction_model.h"
#include "record/layout.h"

static void the_last_record_of_each_key_stays(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    struct log_compaction pass;
    (void)state;
    compaction_begin(&f, &disk, 1000);
    for (int i = 0; i < 200; i++) {
        keyed_append(&f, (struct keyed){.key = i % 4, .value = i});
    }
    uint32_t before = partition_log_segment_count(f.log);
    assert_true(before > 5);
    int64_t bytes = partition_log_bytes(f.log);
    assert_int_equal(compact(&f, &pass, NULL), STATUS_OK);
    assert_true(pass.swaps > 0 && pass.records_out < pass.records_in);
    assert_true(partition_log_bytes(f.log) < bytes);
    assert_true(partition_log_segment_count(f.log) < before);
    assert_last_values(&f, (int64_t[]){196, 197, 198, 199}, 4);
    assert_int_equal(partition_log_end_offset(f.log), 200);
    fixture_stop(&f);
    fixture_reopen(&f);
    assert_false(f.recovery.quarantined);
    assert_last_values(&f, (int64_t[]){196, 197, 198, 199}, 4);
    assert_int_equal(partition_log_end_offset(f.log), 200);
    struct log_inspect_result inspected = LOG_INSPECT_RESULT_NONE;
    assert_int_equal(log_verify_directory(&disk.fs, FIXTURE_DIRECTORY, NULL, &inspected, NULL),
                     STATUS_OK);
    assert_int_equal(inspected.faults, 0);
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

static void what_is_clean_is_not_cleaned_again(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    struct log_compaction pass;
    (void)state;
    compaction_begin(&f, &disk, 400);
    for (int i = 0; i < 40; i++) {
        keyed_append(&f, (struct keyed){.key = i % 4, .value = i});
    }
    assert_int_equal(compact(&f, &pass, NULL), STATUS_OK);
    assert_int_equal(compact(&f, &pass, NULL), STATUS_NOT_FOUND);
    fixture_stop(&f);
    fixture_reopen(&f);
    fixture_rest(&f);
    assert_int_equal(compact(&f, &pass, NULL), STATUS_NOT_FOUND);
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

static void nothing_at_or_above_the_limit_is_touched(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    struct log_compaction pass;
    (void)state;
    compaction_begin(&f, &disk, 400);
    for (int i = 0; i < 40; i++) {
        keyed_append(&f, (struct keyed){.key = 0, .value = i});
    }
    struct log_compaction options = {.limit_offset = 20};
    assert_int_equal(compact(&f, &pass, &options), STATUS_OK);
    assert_true(pass.clean_to <= 20);
    assert_true(count_records(&f, 0, 20) < 20);
    assert_int_equal(count_records(&f, 20, 40), 20);
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

static void a_read_inside_a_gap_goes_on_at_the_next_batch(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    struct log_compaction pass;
    (void)state;
    compaction_begin(&f, &disk, 400);
    for (int i = 0; i < 40; i++) {
        keyed_append(&f, (struct keyed){.key = i < 35 ? 0 : i, .value = i});
    }
    assert_int_equal(compact(&f, &pass, NULL), STATUS_OK);
    for (int64_t offset = 0; offset < 40; offset++) {
        enum status status;
        assert_int_equal(read_to_end(&f, offset, &status), 40);
        assert_int_equal(status, STATUS_OK);
    }
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

static void a_tombstone_goes_when_its_time_is_over_and_not_before(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    struct log_compaction pass;
    (void)state;
    compaction_begin(&f, &disk, 400);
    keyed_append(&f, (struct keyed){.key = 1, .value = 7});
    keyed_append(&f, (struct keyed){.key = 1, .tombstone = true});
    for (int i = 0; i < 20; i++) {
        keyed_append(&f, (struct keyed){.key = 2, .value = i});
    }
    struct log_compaction options = {.now_ms = 1000, .delete_retention_ms = 500};
    assert_int_equal(compact(&f, &pass, &options), STATUS_OK);
    assert_int_equal(count_tombstones(&f), 1);
    assert_int_equal(count_records(&f, 0, 2), 1);
    for (int i = 0; i < 20; i++) {
        keyed_append(&f, (struct keyed){.key = 2, .value = 20 + i});
    }
    options.now_ms = 1499;
    assert_int_equal(compact(&f, &pass, &options), STATUS_OK);
    assert_int_equal(count_tombstones(&f), 1);
    for (int i = 0; i < 20; i++) {
        keyed_append(&f, (struct keyed){.key = 2, .value = 40 + i});
    }
    options.now_ms = 1500;
    assert_int_equal(compact(&f, &pass, &options), STATUS_OK);
    assert_int_equal(count_tombstones(&f), 0);
    assert_int_equal(count_records(&f, 0, 2), 0);
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

/* Keys 0 and 1 are deleted at offsets 2 and 3, a transaction ends at 6; then others. */
static void append_what_is_dropped(struct log_fixture *f)
{
    for (int i = 0; i < 4; i++) {
        keyed_append(f, (struct keyed){.key = i % 2, .value = i, .tombstone = i >= 2});
    }
    keyed_append(f, (struct keyed){.key = 3, .value = 4});
    keyed_append(f, (struct keyed){.key = 2, .value = 5, .producer = 9, .transactional = true});
    marker_append(f, 9, false);
    for (int i = 7; i < 30; i++) {
        keyed_append(f, (struct keyed){.key = 3, .value = i});
    }
}

static void what_has_gone_for_good_is_on_record_unless_somebody_needs_it(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    struct log_compaction pass;
    (void)state;
    compaction_begin(&f, &disk, 400);
    append_what_is_dropped(&f);
    struct log_compaction options = {.now_ms = 1000, .delete_retention_ms = 500};
    assert_int_equal(compact(&f, &pass, &options), STATUS_OK);
    assert_int_equal(partition_log_dropped_to(f.log), 0);
    for (int copied_to = 0; copied_to < 3; copied_to++) {
        static const int64_t needed[] = {2, 3, 6};
        keyed_append(&f, (struct keyed){.key = 3, .value = 50});
        for (int i = 0; i < 20; i++) {
            keyed_append(&f, (struct keyed){.key = 4, .value = i});
        }
        options = (struct log_compaction){
            .now_ms = 9999, .delete_retention_ms = 500, .copied_to = needed[copied_to]};
        assert_int_equal(compact(&f, &pass, &options), STATUS_OK);
        assert_int_equal(partition_log_dropped_to(f.log), copied_to == 0   ? 0
                                                          : copied_to == 1 ? 3
                                                                           : 4);
        assert_int_equal(count_tombstones(&f), 2 - copied_to);
        assert_int_equal(count_markers(&f), 1);
    }
    for (int i = 0; i < 20; i++) {
        keyed_append(&f, (struct keyed){.key = 4, .value = i});
    }
    options.copied_to = 0;
    assert_int_equal(compact(&f, &pass, &options), STATUS_OK);
    assert_int_equal(count_markers(&f), 0);
    assert_int_equal(partition_log_dropped_to(f.log), 7);
    fixture_stop(&f);
    fixture_reopen(&f);
    assert_int_equal(partition_log_dropped_to(f.log), 7);
    int64_t clean_to = pass.clean_to;
    fixture_stop(&f);
    /* Where it is not written, as before there was such a record, it may be all that is clean. */
    assert_int_equal(file_remove(&disk.fs, "/data/replication-offsets.json", NULL), STATUS_OK);
    fixture_reopen(&f);
    assert_int_equal(partition_log_dropped_to(f.log), clean_to);
    partition_log_reset(f.log, 0, 1, false, fixture_done, &f);
    fake_loop_run(&f.loop);
    assert_int_equal(partition_log_dropped_to(f.log), 0);
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

/* No crash shows a log without its tombstones and nothing said of them. */
static void what_is_going_is_on_record_before_it_goes(void **state)
{
    (void)state;
    for (uint64_t n = 1;; n++) {
        struct memory_disk disk;
        struct log_fixture f;
        struct log_compaction pass;
        compaction_begin(&f, &disk, 400);
        append_what_is_dropped(&f);
        struct log_compaction options = {.now_ms = 1000, .delete_retention_ms = 500};
        assert_int_equal(compact(&f, &pass, &options), STATUS_OK);
        for (int i = 0; i < 20; i++) {
            keyed_append(&f, (struct keyed){.key = 3, .value = i});
        }
        options.now_ms = 9999;
        fixture_rest(&f);
        disk.fail_at = disk.operations + n;
        disk.fail_for_ever = n % 2 == 0;
        bool went = compact(&f, &pass, &options) == STATUS_OK;
        bool reached = disk.operations >= disk.fail_at;
        assert_true(reached || went);
        fixture_crash(&f);
        if (n % 3 != 0) memory_disk_power_cut(&disk);
        fixture_reopen(&f);
        int tombstones = count_tombstones(&f), markers = count_markers(&f);
        if (tombstones < 2) assert_true(partition_log_dropped_to(f.log) >= 4);
        if (markers < 1) assert_true(partition_log_dropped_to(f.log) >= 7);
        if (!reached) assert_int_equal(tombstones + markers, 0);
        fixture_stop(&f);
        memory_disk_deinit(&disk);
        if (!reached) break;
    }
}

static void records_of_aborted_transactions_go_and_do_not_hide_others(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    struct log_compaction pass;
    (void)state;
    compaction_begin(&f, &disk, 400);
    keyed_append(&f, (struct keyed){.key = 0, .value = 1});
    keyed_append(&f, (struct keyed){.key = 0, .value = 2, .producer = 9, .transactional = true});
    marker_append(&f, 9, false);
    keyed_append(&f, (struct keyed){.key = 1, .value = 3, .producer = 9, .transactional = true});
    marker_append(&f, 9, true);
    for (int i = 0; i < 20; i++) {
        keyed_append(&f, (struct keyed){.key = 2, .value = i});
    }
    struct log_compaction options = {.now_ms = 1000, .delete_retention_ms = 500};
    assert_int_equal(compact(&f, &pass, &options), STATUS_OK);
    assert_last_values(&f, (int64_t[]){1, 3, 19}, 3);
    /* The commit's marker has a record to speak for; the abort's goes when its time is over. */
    assert_int_equal(count_markers(&f), 2);
    for (int i = 0; i < 20; i++) {
        keyed_append(&f, (struct keyed){.key = 2, .value = 20 + i});
    }
    options.now_ms = 9999;
    assert_int_equal(compact(&f, &pass, &options), STATUS_OK);
    assert_int_equal(count_markers(&f), 1);
    assert_last_values(&f, (int64_t[]){1, 3, 39}, 3);
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

static void an_open_transaction_ends_what_is_cleaned(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    struct log_compaction pass;
    (void)state;
    compaction_begin(&f, &disk, 400);
    for (int i = 0; i < 10; i++) {
        keyed_append(&f, (struct keyed){.key = 0, .value = i});
    }
    keyed_append(&f, (struct keyed){.key = 0, .value = 10, .producer = 9, .transactional = true});
    for (int i = 11; i < 30; i++) {
        keyed_append(&f, (struct keyed){.key = 0, .value = i});
    }
    assert_int_equal(compact(&f, &pass, NULL), STATUS_OK);
    assert_int_equal(pass.clean_to, 10);
    assert_int_equal(count_records(&f, 10, 30), 20);
    marker_append(&f, 9, false);
    assert_int_equal(compact(&f, &pass, NULL), STATUS_OK);
    assert_true(pass.clean_to > 10);
    assert_int_equal(count_records(&f, 10, 11), 0);
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

static void a_producers_last_batch_keeps_its_header(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    struct log_compaction pass;
    (void)state;
    compaction_begin(&f, &disk, 400);
    keyed_append(&f, (struct keyed){.key = 0, .value = 1, .producer = 5, .sequence = 41});
    for (int i = 0; i < 30; i++) {
        keyed_append(&f, (struct keyed){.key = 0, .value = i});
    }
    int64_t kept[] = {0};
    struct log_compaction options = {.kept_offsets = kept, .kept_count = 1};
    assert_int_equal(compact(&f, &pass, &options), STATUS_OK);
    struct batch_header header;
    first_batch(&f, &header);
    assert_int_equal(header.base_offset, 0);
    assert_int_equal(header.record_count, 0);
    assert_int_equal(header.producer_id, 5);
    assert_int_equal(header.base_sequence, 41);
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

static void a_map_that_is_full_makes_several_passes_of_it(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    struct log_compaction pass;
    int passes = 0;
    (void)state;
    compaction_begin(&f, &disk, 2000);
    for (int i = 0; i < 300; i++) {
        keyed_append(&f, (struct keyed){.key = i % 100, .value = i});
    }
    struct log_compaction options = {.map_bytes = 40 * 24}; /* 30 keys */
    int64_t clean_to = 0;
    do {
        assert_int_equal(compact(&f, &pass, &options), STATUS_OK);
        assert_true(pass.clean_to > clean_to);
        clean_to = pass.clean_to;
        passes++;
    } while (pass.more);
    assert_true(passes > 2);
    int64_t expected[100];
    for (int i = 0; i < 100; i++) {
        expected[i] = 200 + i;
    }
    assert_last_values(&f, expected, 100);
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

static void a_crash_at_any_operation_leaves_the_old_or_the_new(void **state)
{
    (void)state;
    for (uint64_t n = 1;; n++) {
        struct memory_disk disk;
        struct log_fixture f;
        struct log_compaction pass;
        compaction_begin(&f, &disk, 400);
        for (int i = 0; i < 30; i++) {
            keyed_append(&f, (struct keyed){.key = i % 4, .value = i});
        }
        disk.fail_at = disk.operations + n;
        disk.fail_for_ever = true;
        enum status status = compact(&f, &pass, NULL);
        bool reached = disk.operations >= disk.fail_at;
        assert_true(reached || status == STATUS_OK);
        fixture_crash(&f);
        if (n % 3 != 0) memory_disk_power_cut(&disk);
        /* And a second one, while the first is being mended. */
        disk.fail_at = disk.operations + n % 7 + 1;
        disk.fail_for_ever = true;
        fake_loop_init(&f.loop);
        if (fixture_try_open(&f) != STATUS_OK && f.log == NULL) {
            log_store_free(f.store);
            fake_loop_deinit(&f.loop);
            disk.fail_at = 0;
            disk.fail_for_ever = false;
        } else {
            fixture_crash(&f);
        }
        if (n % 2 != 0) memory_disk_power_cut(&disk);
        fixture_reopen(&f);
        assert_false(f.recovery.quarantined);
        assert_int_equal(f.recovery.cut_bytes, 0);
        assert_int_equal(partition_log_end_offset(f.log), 30);
        assert_last_values(&f, (int64_t[]){28, 29, 26, 27}, 4);
        assert_no_leftovers(&disk);
        keyed_append(&f, (struct keyed){.key = 3, .value = 99});
        fixture_rest(&f);
        assert_int_equal(
            compact(&f, &pass, NULL) == STATUS_OK || partition_log_segment_count(f.log) < 4, true);
        assert_last_values(&f, (int64_t[]){28, 29, 26, 99}, 4);
        fixture_stop(&f);
        memory_disk_deinit(&disk);
        if (!reached) break;
    }
}

static void one_failed_operation_gives_the_pass_up_or_fails_the_copy(void **state)
{
    (void)state;
    for (uint64_t n = 1;; n++) {
        struct memory_disk disk;
        struct log_fixture f;
        struct log_compaction pass;
        compaction_begin(&f, &disk, 400);
        for (int i = 0; i < 30; i++) {
            keyed_append(&f, (struct keyed){.key = i % 4, .value = i});
        }
        disk.fail_at = disk.operations + n;
        disk.fail_with = n % 2 == 0 ? STATUS_NO_SPACE : STATUS_IO;
        enum status status = compact(&f, &pass, NULL);
        bool reached = disk.operations >= disk.fail_at;
        assert_true(status == STATUS_OK || reached);
        disk.fail_at = 0;
        if (!partition_log_failed(f.log)) {
            assert_last_values(&f, (int64_t[]){28, 29, 26, 27}, 4);
        }
        fixture_crash(&f);
        fixture_reopen(&f);
        assert_false(f.recovery.quarantined);
        assert_last_values(&f, (int64_t[]){28, 29, 26, 27}, 4);
        fixture_stop(&f);
        memory_disk_deinit(&disk);
        if (!reached) break;
    }
}

static void reads_that_meet_a_swap_see_every_last_value(void **state)
{
    (void)state;
    for (int steps = 0; steps < 12; steps++) {
        struct memory_disk disk;
        struct log_fixture f;
        struct log_compaction pass;
        bool done = false;
        compaction_begin(&f, &disk, 400);
        for (int i = 0; i < 30; i++) {
            keyed_append(&f, (struct keyed){.key = i % 4, .value = i});
        }
        fixture_rest(&f);
        disk.nowait_misses = true;
        pass = compaction_options(&f, NULL);
        pass.done = compaction_is_done;
        pass.context = &done;
        assert_int_equal(partition_log_compact(f.log, &pass), STATUS_OK);
        for (int i = 0; i < steps; i++) {
            fake_loop_run_job(&f.loop);
        }
        assert_last_values(&f, (int64_t[]){28, 29, 26, 27}, 4);
        while (!done) {
            assert_true(fake_loop_run_job(&f.loop));
        }
        assert_last_values(&f, (int64_t[]){28, 29, 26, 27}, 4);
        fixture_stop(&f);
        memory_disk_deinit(&disk);
    }
}

static void a_cut_cancels_a_pass_and_its_progress_is_forgotten(void **state)
{
    (void)state;
    for (int steps = 0; steps < 8; steps++) {
        struct memory_disk disk;
        struct log_fixture f;
        struct log_compaction pass;
        bool done = false;
        compaction_begin(&f, &disk, 400);
        for (int i = 0; i < 30; i++) {
            keyed_append(&f, (struct keyed){.key = 0, .value = i});
        }
        fixture_rest(&f);
        pass = compaction_options(&f, NULL);
        pass.done = compaction_is_done;
        pass.context = &done;
        assert_int_equal(partition_log_compact(f.log, &pass), STATUS_OK);
        for (int i = 0; i < steps; i++) {
            fake_loop_run_job(&f.loop);
        }
        partition_log_truncate(f.log, 10, fixture_done, &f);
        fixture_rest(&f);
        assert_true(done);
        assert_int_equal(f.done_calls, 1);
        assert_int_equal(f.done_status, STATUS_OK);
        assert_true(partition_log_end_offset(f.log) <= 10);
        while (partition_log_end_offset(f.log) < 30) {
            keyed_append(&f, (struct keyed){.key = partition_log_end_offset(f.log) % 2,
                                            .value = partition_log_end_offset(f.log)});
        }
        fixture_rest(&f);
        assert_int_equal(compact(&f, &pass, NULL), STATUS_OK);
        assert_last_values(&f, (int64_t[]){28, 29}, 2);
        assert_true(count_records(&f, 0, 20) <= 2);
        assert_no_leftovers(&disk);
        fixture_stop(&f);
        memory_disk_deinit(&disk);
    }
}

static void an_idle_log_is_rolled_so_that_it_can_be_cleaned(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    struct log_compaction pass;
    (void)state;
    compaction_begin(&f, &disk, 1 << 20);
    for (int i = 0; i < 10; i++) {
        keyed_append(&f, (struct keyed){.key = 0, .value = i});
    }
    assert_int_equal(compact(&f, &pass, NULL), STATUS_NOT_FOUND);
    partition_log_roll_before(f.log, KEYED_TIME_MS);
    assert_int_equal(partition_log_segment_count(f.log), 1);
    partition_log_roll_before(f.log, KEYED_TIME_MS + 1000000);
    assert_int_equal(partition_log_segment_count(f.log), 2);
    fixture_rest(&f);
    assert_int_equal(compact(&f, &pass, NULL), STATUS_OK);
    assert_int_equal(count_records(&f, 0, 10), 1);
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

/* Random keys, tombstones and transactions, compacted at random moments, restarted now and then:
 * the surviving values are those of a plain table. */
/* The batch as a producer might have made it: length and CRC are right. */
static void raw_append(struct log_fixture *f, struct buffer *batch)
{
    store_u32(batch->data + BATCH_AT_LENGTH, (uint32_t)(batch->bytes - BATCH_LENGTH_EXCLUDES));
    store_u32(batch->data + BATCH_AT_CRC,
              crc32c(batch->data + BATCH_CRC_COVERS_FROM, batch->bytes - BATCH_CRC_COVERS_FROM));
    batch_set_base_offset(batch->data, partition_log_end_offset(f->log));
    struct shared_bytes *shared = shared_bytes_copy(batch->data, batch->bytes);
    assert_int_equal(partition_log_append(f->log, shared, false, NULL), STATUS_OK);
    shared_bytes_unref(shared);
    fake_loop_run(&f->loop);
}

/* One record of key 1. */
static void raw_build(struct buffer *out, int64_t timestamp_ms, bool tombstone,
                      enum batch_codec codec)
{
    struct batch_builder builder;
    struct batch_build_options options = BATCH_BUILD_PLAIN;
    struct slice value = {(const uint8_t *)"1", 1};
    options.codec = codec;
    options.leader_epoch = 1;
    batch_builder_init(&builder);
    buffer_init(out, 0);
    batch_builder_add(&builder, timestamp_ms, (struct slice){(const uint8_t *)"key-1", 5},
                      tombstone ? (struct slice){0} : value, 0, (struct slice){0});
    assert_int_equal(batch_builder_finish(&builder, &options, out, NULL), STATUS_OK);
    batch_builder_deinit(&builder);
}

static void a_tombstone_of_any_time_is_cleaned(void **state)
{
    static const int64_t times_ms[] = {INT64_MIN, KEYED_TIME_MS - INT64_MAX, -2, INT64_MAX};
    (void)state;
    for (int i = 0; i < 8; i++) {
        struct memory_disk disk;
        struct log_fixture f;
        struct log_compaction pass;
        struct buffer batch;
        compaction_begin(&f, &disk, 400);
        raw_build(&batch, times_ms[i % 4], true, CODEC_NONE);
        raw_append(&f, &batch);
        raw_append(&f, &batch);
        for (int k = 0; k < 20; k++) {
            keyed_append(&f, (struct keyed){.key = 0, .value = k});
        }
        struct log_compaction options = {.delete_retention_ms = i < 4 ? 1000 : INT64_MAX};
        assert_int_equal(compact(&f, &pass, &options), STATUS_OK);
        assert_int_equal(pass.damage.to, 0);
        assert_true(pass.clean_to > 10 && pass.swaps > 0);
        buffer_deinit(&batch);
        fixture_stop(&f);
        memory_disk_deinit(&disk);
    }
}

/* Two batches that hide what they hold: one of a broken stream, one that unfolds beyond all
 * bounds. Both came when nobody had to read them. */
static void raw_unreadable(struct buffer *out, bool bomb)
{
    raw_build(out, KEYED_TIME_MS, false, CODEC_ZSTD);
    if (!bomb) {
        memset(out->data + BATCH_HEADER_BYTES, 0xaa, out->bytes - BATCH_HEADER_BYTES);
        return;
    }
    size_t bytes = BATCH_BYTES_MAX + (1 << 20);
    uint8_t *zeros = calloc(1, bytes);
    assert_non_null(zeros);
    out->bytes = BATCH_HEADER_BYTES;
    assert_int_equal(codec_compress(CODEC_ZSTD, (struct slice){zeros, bytes}, out, NULL),
                     STATUS_OK);
    free(zeros);
}

static void a_batch_that_cannot_be_read_stays_as_it_is(void **state)
{
    (void)state;
    for (int bomb = 0; bomb < 2; bomb++) {
        struct memory_disk disk;
        struct log_fixture f;
        struct log_compaction pass;
        struct buffer batch;
        compaction_begin(&f, &disk, 400);
        keyed_append(&f, (struct keyed){.key = 1, .value = 1});
        raw_unreadable(&batch, bomb == 1);
        raw_append(&f, &batch);
        for (int k = 0; k < 20; k++) {
            keyed_append(&f, (struct keyed){.key = 0, .value = k});
        }
        assert_int_equal(compact(&f, &pass, NULL), STATUS_OK);
        assert_int_equal(pass.damage.to, 0);
        assert_true(pass.clean_to > 10 && pass.swaps > 0);
        struct view_batches *batches = calloc(1, sizeof(*batches));
        enum status status;
        assert_int_equal(read_all_batches(&f, 0, batches, &status),
                         partition_log_end_offset(f.log));
        assert_int_equal(batches->items[0].header.base_offset, 0);
        assert_int_equal(batches->items[0].header.record_count, 1);
        assert_int_equal(batches->items[1].header.base_offset, 1);
        assert_int_equal(batches->items[1].header.batch_bytes, batch.bytes);
        assert_memory_equal(batches->items[1].data + BATCH_HEADER_BYTES,
                            batch.data + BATCH_HEADER_BYTES, batch.bytes - BATCH_HEADER_BYTES);
        for (int i = 0; i < batches->count; i++) {
            free(batches->items[i].data);
        }
        free(batches);
        assert_int_equal(compact(&f, &pass, NULL), STATUS_NOT_FOUND);
        buffer_deinit(&batch);
        fixture_stop(&f);
        memory_disk_deinit(&disk);
    }
}

static void where_each_epoch_began_can_be_told_from_what_is_left(void **state)
{
    /* Marker and data begin an epoch in turn; passes come in between. */
    static const int64_t begins[] = {0, 13, 31, 32, 50};
    struct memory_disk disk;
    struct log_fixture f;
    struct log_compaction pass;
    struct buffer batch;
    struct log_compaction options = {.now_ms = KEYED_TIME_MS, .delete_retention_ms = 1};
    int32_t epoch = 0;
    (void)state;
    compaction_begin(&f, &disk, 400);
    raw_build(&batch, KEYED_TIME_MS, false, CODEC_NONE);
    for (int64_t i = 0; i < 80; i++) {
        struct buffer marker;
        buffer_init(&marker, 0);
        batch_build_marker(&marker, 9, 0, false, 0, KEYED_TIME_MS, 1);
        if (epoch < 5 && i == begins[epoch]) epoch++;
        bool first = epoch > 0 && i == begins[epoch - 1];
        struct buffer *next = first && epoch % 2 == 0 ? &marker : &batch;
        batch_set_leader_epoch(next->data, epoch);
        raw_append(&f, next);
        buffer_deinit(&marker);
        options.now_ms += 10;
        if (i % 20 == 0) (void)compact(&f, &pass, &options);
    }
    options.now_ms += 10;
    assert_int_equal(compact(&f, &pass, &options), STATUS_OK);
    struct view_batches *batches = calloc(1, sizeof(*batches));
    struct epoch_history copied;
    enum status status;
    epoch_history_init(&copied);
    assert_int_equal(read_all_batches(&f, 0, batches, &status), 80);
    assert_true(batches->count < 40);
    for (int i = 0; i < batches->count; i++) {
        const struct batch_header *header = &batches->items[i].header;
        (void)epoch_history_assign(&copied, header->leader_epoch, header->base_offset);
        free(batches->items[i].data);
    }
    for (int32_t e = 1; e < 5; e++) {
        assert_int_equal(epoch_history_end_of(&copied, e, 80).end_offset, begins[e]);
    }
    epoch_history_deinit(&copied);
    free(batches);
    buffer_deinit(&batch);
    fixture_stop(&f);
    memory_disk_deinit(&disk);
}

static void a_reset_leaves_nothing_of_a_swap_that_stopped_half_way(void **state)
{
    (void)state;
    for (uint64_t n = 1;; n++) {
        struct memory_disk disk;
        struct log_fixture f;
        struct log_compaction pass;
        compaction_begin(&f, &disk, 400);
        for (int i = 0; i < 30; i++) {
            keyed_append(&f, (struct keyed){.key = i % 4, .value = i});
        }
        disk.fail_at = disk.operations + n;
        disk.fail_for_ever = true;
        enum status status = compact(&f, &pass, NULL);
        bool reached = disk.operations >= disk.fail_at;
        assert_true(reached || status == STATUS_OK);
        disk.fail_at = 0;
        disk.fail_for_ever = false;
        f.done_calls = 0;
        partition_log_reset(f.log, 0, 1, false, fixture_done, &f);
        fake_loop_run(&f.loop);
        assert_int_equal(f.done_calls, 1);
        assert_int_equal(f.done_status, STATUS_OK);
        for (int i = 0; i < 5; i++) {
            keyed_append(&f, (struct keyed){.key = 7, .value = 100 + i});
        }
        fixture_crash(&f);
        if (n % 2 != 0) memory_disk_power_cut(&disk);
        fixture_reopen(&f);
        assert_false(f.recovery.quarantined);
        assert_no_leftovers(&disk);
        assert_int_equal(partition_log_end_offset(f.log), 5);
        assert_int_equal(count_records(&f, 0, INT64_MAX), 5);
        fixture_stop(&f);
        memory_disk_deinit(&disk);
        if (!reached) break;
    }
}

/* A byte of the log's first file, at `at` of the batch with that base offset, is flipped; what the
 * next pass says of it. */
static struct log_damage pass_over_damage(int64_t offset, uint32_t at, bool clean)
{
    struct memory_disk disk;
    struct log_fixture f;
    struct log_compaction pass;
    char path[200];
    compaction_begin(&f, &disk, 600);
    for (int i = 0; i < 2; i++) {
        keyed_append(&f, (struct keyed){.key = i, .value = i});
    }
    keyed_append(&f, (struct keyed){.key = 3, .value = 2, .producer = 9, .transactional = true});
    marker_append(&f, 9, true);
    for (int i = 4; i < 20; i++) {
        keyed_append(&f, (struct keyed){.key = i, .value = i});
    }
    if (clean) {
        assert_int_equal(compact(&f, &pass, NULL), STATUS_OK);
        for (int i = 20; i < 40; i++) {
            keyed_append(&f, (struct keyed){.key = i, .value = i});
        }
    }
    snprintf(path, sizeof(path), "%s/%020d.log", FIXTURE_DIRECTORY, 0);
    struct memory_node *file = memory_disk_file(&disk, path);
    assert_non_null(file);
    size_t position = 0;
    struct batch_header header;
    for (;;) {
        assert_int_equal(
            batch_parse(file->data + position, file->bytes - position, true, &header, NULL),
            STATUS_OK);
        if (header.base_offset == offset) break;
        position += header.batch_bytes;
    }
    file->data[position + at] ^= 0x40;
    assert_int_equal(compact(&f, &pass, NULL), STATUS_CORRUPT);
    fixture_stop(&f);
    memory_disk_deinit(&disk);
    return pass.damage;
}

static void each_step_of_a_pass_tells_which_batch_is_damaged(void **state)
{
    const uint32_t body = BATCH_HEADER_BYTES + 2;
    const struct {
        int64_t offset;
        uint32_t at;
        bool clean;
    } flips[] = {
        {1, BATCH_AT_LENGTH, false}, /* looking for transactions: no batch there */
        {1, BATCH_AT_MAGIC, false},
        {1, 6, false},    /* … out of its place */
        {3, body, false}, /* … a marker */
        {2, body, false}, /* making the map */
        {1, body, true},  /* rewriting what was clean */
    };
    (void)state;
    for (size_t i = 0; i < sizeof(flips) / sizeof(flips[0]); i++) {
        struct log_damage damage = pass_over_damage(flips[i].offset, flips[i].at, flips[i].clean);
        assert_int_equal(damage.from, flips[i].offset);
        assert_int_equal(damage.to, flips[i].offset + 1);
    }
}

static void surviving_values_are_those_of_a_plain_table(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        play_model(seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_record_of_each_key_stays),
        cmocka_unit_test(what_is_clean_is_not_cleaned_again),
        cmocka_unit_test(nothing_at_or_above_the_limit_is_touched),
        cmocka_unit_test(a_read_inside_a_gap_goes_on_at_the_next_batch),
        cmocka_unit_test(a_tombstone_goes_when_its_time_is_over_and_not_before),
        cmocka_unit_test(what_has_gone_for_good_is_on_record_unless_somebody_needs_it),
        cmocka_unit_test(what_is_going_is_on_record_before_it_goes),
        cmocka_unit_test(records_of_aborted_transactions_go_and_do_not_hide_others),
        cmocka_unit_test(an_open_transaction_ends_what_is_cleaned),
        cmocka_unit_test(a_producers_last_batch_keeps_its_header),
        cmocka_unit_test(a_map_that_is_full_makes_several_passes_of_it),
        cmocka_unit_test(a_crash_at_any_operation_leaves_the_old_or_the_new),
        cmocka_unit_test(one_failed_operation_gives_the_pass_up_or_fails_the_copy),
        cmocka_unit_test(reads_that_meet_a_swap_see_every_last_value),
        cmocka_unit_test(a_cut_cancels_a_pass_and_its_progress_is_forgotten),
        cmocka_unit_test(an_idle_log_is_rolled_so_that_it_can_be_cleaned),
        cmocka_unit_test(a_tombstone_of_any_time_is_cleaned),
        cmocka_unit_test(a_batch_that_cannot_be_read_stays_as_it_is),
        cmocka_unit_test(where_each_epoch_began_can_be_told_from_what_is_left),
        cmocka_unit_test(a_reset_leaves_nothing_of_a_swap_that_stopped_half_way),
        cmocka_unit_test(each_step_of_a_pass_tells_which_batch_is_damaged),
        cmocka_unit_test(surviving_values_are_those_of_a_plain_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
