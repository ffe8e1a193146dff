/* inspect_test.c: reading segment files without a store. */
#include "lib/log_fixture.h"
#include "log/inspect.h"

struct collected {
    int batches, faults;
    int64_t last_offset;
};

static bool collect_batch(void *context, const struct log_inspect_batch *batch)
{
    struct collected *collected = context;
    collected->batches++;
    collected->last_offset = batch->header.base_offset;
    return true;
}

static void collect_fault(void *context, const struct log_inspect_fault *fault)
{
    struct collected *collected = context;
    assert_non_null(strstr(fault->path, ".log"));
    collected->faults++;
}

static void make_files(struct log_fixture *f, struct memory_disk *disk)
{
    fixture_begin(f, disk);
    f->config.segment_bytes = 300;
    fixture_open(f);
    fixture_append_durably(f, 10);
    fixture_rest(f);
    fixture_stop(f);
}

static struct log_inspect_result verify(struct memory_disk *disk, const char *path,
                                        struct collected *collected)
{
    struct log_inspect_result result = LOG_INSPECT_RESULT_NONE;
    struct log_inspect_handlers handlers = {
        .batch = collect_batch, .fault = collect_fault, .context = collected};
    *collected = (struct collected){0};
    assert_int_equal(log_verify_directory(&disk->fs, path, &handlers, &result, NULL), STATUS_OK);
    assert_int_equal(result.faults, collected->faults);
    return result;
}

static void a_sound_directory_shows_every_batch_and_no_fault(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    struct collected collected;
    (void)state;
    make_files(&f, &disk);
    static const char *const paths[] = {"/data", "/data/topics", "/data/topics/t",
                                        FIXTURE_DIRECTORY};
    for (size_t i = 0; i < ARRAY_COUNT(paths); i++) {
        struct log_inspect_result result = verify(&disk, paths[i], &collected);
        assert_int_equal(result.files, 4);
        assert_int_equal(result.batches, 10);
        assert_int_equal(result.records, 10);
        assert_int_equal(result.faults, 0);
        assert_int_equal(result.first_offset, 0);
        assert_int_equal(result.next_offset, 10);
        assert_true(result.reserved_bytes > 0);
        assert_int_equal(collected.last_offset, 9);
    }
    memory_disk_deinit(&disk);
}

static void any_flipped_byte_of_a_sealed_segment_is_a_fault(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    struct collected collected;
    (void)state;
    make_files(&f, &disk);
    struct memory_node *file =
        memory_disk_file(&disk, FIXTURE_DIRECTORY "/00000000000000000003.log");
    for (size_t at = 0; at < file->bytes; at++) {
        file->data[at] ^= 0x08;
        assert_true(verify(&disk, "/data", &collected).faults > 0);
        assert_true(collected.batches >= 9);
        file->data[at] ^= 0x08;
    }
    memory_disk_deinit(&disk);
}

static void a_missing_segment_and_a_missing_file_are_told(void **state)
{
    struct memory_disk disk;
    struct log_fixture f;
    struct collected collected;
    struct log_inspect_result result = LOG_INSPECT_RESULT_NONE;
    (void)state;
    make_files(&f, &disk);
    memory_entry_set(memory_disk_file(&disk, FIXTURE_DIRECTORY), "00000000000000000003.log", NULL);
    assert_int_equal(verify(&disk, "/data", &collected).faults, 1);
    assert_int_equal(log_inspect_file(&disk.fs, "/data/none.log", NULL, &result, NULL),
                     STATUS_NOT_FOUND);
    memory_disk_deinit(&disk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sound_directory_shows_every_batch_and_no_fault),
        cmocka_unit_test(any_flipped_byte_of_a_sealed_segment_is_a_fault),
        cmocka_unit_test(a_missing_segment_and_a_missing_file_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
