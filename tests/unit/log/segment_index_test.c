/* segment_index_test.c: look-ups, blocks on disk, damage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/memory_disk.h"
#include "log/segment_index.h"

#define BASE  1000
#define PATH  "/i"
#define COUNT 1000

/* COUNT batches of 1 KiB and ten offsets, timestamps ten apart; full blocks go to the file. */
static struct segment_index *make_index(struct memory_disk *disk, enum index_kind kind)
{
    static const uint32_t none[INDEX_KIND_COUNT];
    struct segment_index *index = segment_index_new(none);
    struct file *file = NULL;
    memory_disk_init(disk);
    for (int i = 0; i < COUNT; i++) {
        segment_index_note(index, BASE, BASE + i * 10, i * 1024, 1024, i * 10 - 1,
                           BASE + (i - 1) * 10);
    }
    assert_int_equal(file_open(&disk->fs, PATH, FILE_WRITE | FILE_CREATE, &file, NULL), STATUS_OK);
    assert_int_equal(segment_index_pending_at(index, kind), 0);
    assert_int_equal(
        file_write(file, index->pending[kind].data, index->pending[kind].bytes, 0, NULL),
        STATUS_OK);
    file_close(file);
    return index;
}

static void entries_are_found_in_memory_or_in_the_file(void **state)
{
    struct memory_disk disk;
    struct index_entry entry;
    struct file *file = NULL;
    (void)state;
    struct segment_index *index = make_index(&disk, INDEX_OFFSETS);
    assert_int_equal(index->blocks[INDEX_OFFSETS], (COUNT - 2) / INDEX_BLOCK_ENTRIES);
    assert_int_equal(file_open(&disk.fs, PATH, FILE_READ, &file, NULL), STATUS_OK);
    int64_t in_file = (int64_t)index->blocks[INDEX_OFFSETS] * INDEX_BLOCK_ENTRIES;
    for (int64_t i = 0; i < COUNT; i++) {
        bool found = segment_index_find(index, INDEX_OFFSETS, false, i * 10 + 3, &entry);
        assert_int_equal(found, i > in_file);
        if (!found) {
            enum status status =
                index_file_find(file, INDEX_OFFSETS, BASE, false, i * 10 + 3, &entry, NULL);
            assert_int_equal(status, i == 0 ? STATUS_NOT_FOUND : STATUS_OK);
            if (status != STATUS_OK) continue;
        }
        assert_int_equal(entry.key, i * 10);
        assert_int_equal(entry.value, i * 1024);
    }
    file_close(file);
    segment_index_free(index);
    memory_disk_deinit(&disk);
}

static void times_are_found_by_timestamp_and_by_offset(void **state)
{
    struct memory_disk disk;
    struct index_entry entry;
    struct file *file = NULL;
    (void)state;
    struct segment_index *index = make_index(&disk, INDEX_TIMES);
    assert_int_equal(file_open(&disk.fs, PATH, FILE_READ, &file, NULL), STATUS_OK);
    assert_int_equal(index_file_find(file, INDEX_TIMES, BASE, false, 500, &entry, NULL), STATUS_OK);
    assert_int_equal(entry.key, 499);
    assert_int_equal(entry.value, 490);
    assert_int_equal(index_file_find(file, INDEX_TIMES, BASE, true, 495, &entry, NULL), STATUS_OK);
    assert_int_equal(entry.key, 499);
    assert_int_equal(index_file_find(file, INDEX_TIMES, BASE, false, 3, &entry, NULL),
                     STATUS_NOT_FOUND);
    file_close(file);
    segment_index_free(index);
    memory_disk_deinit(&disk);
}

static void a_damaged_block_is_never_believed(void **state)
{
    struct memory_disk disk;
    struct index_entry entry;
    struct file *file = NULL;
    (void)state;
    struct segment_index *index = make_index(&disk, INDEX_OFFSETS);
    struct memory_node *node = memory_disk_file(&disk, PATH);
    assert_int_equal(file_open(&disk.fs, PATH, FILE_READ, &file, NULL), STATUS_OK);
    for (size_t at = 0; at < 3 * index_block_bytes(INDEX_OFFSETS); at++) {
        node->data[at] ^= 0x20;
        for (int64_t i = 1; i < COUNT; i += 37) {
            enum status status =
                index_file_find(file, INDEX_OFFSETS, BASE, false, i * 10, &entry, NULL);
            if (status != STATUS_OK) {
                assert_int_equal(status, STATUS_NOT_FOUND);
                continue;
            }
            assert_true(entry.key <= i * 10);
            assert_int_equal(entry.value, entry.key / 10 * 1024);
        }
        node->data[at] ^= 0x20;
    }
    /* Of another segment: not ours. */
    assert_int_equal(index_file_find(file, INDEX_OFFSETS, BASE + 1, false, 500, &entry, NULL),
                     STATUS_NOT_FOUND);
    file_close(file);
    segment_index_free(index);
    memory_disk_deinit(&disk);
}

static void cutting_the_file_keeps_the_full_blocks_below(void **state)
{
    struct memory_disk disk;
    uint32_t blocks;
    (void)state;
    struct segment_index *index = make_index(&disk, INDEX_OFFSETS);
    assert_int_equal(
        index_file_cut(&disk.fs, PATH, INDEX_OFFSETS, BASE, 64 * 10 * 3, 1 << 30, &blocks, NULL),
        STATUS_OK);
    assert_int_equal(blocks, 2); /* the third block ends at the cut itself */
    assert_int_equal(memory_disk_file(&disk, PATH)->bytes, 2 * index_block_bytes(INDEX_OFFSETS));
    assert_int_equal(
        index_file_cut(&disk.fs, "/missing", INDEX_OFFSETS, BASE, 10, 10, &blocks, NULL),
        STATUS_OK);
    assert_int_equal(blocks, 0);
    segment_index_free(index);
    memory_disk_deinit(&disk);
}

static void cutting_in_memory_forgets_what_lies_behind(void **state)
{
    static const uint32_t none[INDEX_KIND_COUNT];
    struct segment_index *index = segment_index_new(none);
    struct index_entry entry;
    (void)state;
    for (int i = 0; i < 40; i++) {
        segment_index_note(index, BASE, BASE + i * 10, i * 1024, 1024, i, BASE);
    }
    segment_index_cut(index, 200, 20 * 1024);
    assert_true(segment_index_find(index, INDEX_OFFSETS, false, 10000, &entry));
    assert_int_equal(entry.key, 190);
    segment_index_free(index);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_are_found_in_memory_or_in_the_file),
        cmocka_unit_test(times_are_found_by_timestamp_and_by_offset),
        cmocka_unit_test(a_damaged_block_is_never_believed),
        cmocka_unit_test(cutting_the_file_keeps_the_full_blocks_below),
        cmocka_unit_test(cutting_in_memory_forgets_what_lies_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
