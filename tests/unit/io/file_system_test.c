/* file_system_test.c: the file system of the machine, and what is made of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/file_system.h"

struct place {
    char path[64];
    struct file_system *fs;
};

static int place_new(void **state)
{
    struct place *place = calloc(1, sizeof(*place));
    strcpy(place->path, "/tmp/moonmq-file-test-XXXXXX");
    place->fs = file_system_posix();
    *state = place;
    return mkdtemp(place->path) == NULL;
}

static int place_free(void **state)
{
    struct place *place = *state;
    int result = file_remove_tree(place->fs, place->path, NULL) != STATUS_OK;
    free(place);
    return result;
}

static const char *in(const struct place *place, const char *name)
{
    static char paths[4][256];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof(paths[0]), "%s/%s", place->path, name);
    return path;
}

static void put(const struct place *place, const char *name, const char *text)
{
    assert_int_equal(file_replace(place->fs, in(place, name), text, strlen(text), NULL), STATUS_OK);
}

static void assert_content(const struct place *place, const char *name, const char *text)
{
    struct buffer buffer;
    buffer_init(&buffer, 0);
    assert_int_equal(file_read_whole(place->fs, in(place, name), 4096, &buffer, NULL), STATUS_OK);
    assert_int_equal(buffer.bytes, strlen(text));
    assert_memory_equal(buffer.data, text, buffer.bytes);
    buffer_deinit(&buffer);
}

static void reads_are_short_only_at_the_end(void **state)
{
    struct place *place = *state;
    struct file *file;
    char data[16];
    size_t got = 0;
    int64_t size = 0;
    int flags = FILE_WRITE | FILE_CREATE | FILE_EXCLUSIVE;
    assert_int_equal(file_open(place->fs, in(place, "a"), flags, &file, NULL), STATUS_OK);
    assert_int_equal(file_write(file, "0123456789", 10, 0, NULL), STATUS_OK);
    assert_int_equal(file_write(file, "xy", 2, 4, NULL), STATUS_OK);
    assert_int_equal(file_sync(file, NULL), STATUS_OK);
    assert_int_equal(file_size(file, &size, NULL), STATUS_OK);
    assert_int_equal(size, 10);
    assert_int_equal(file_read(file, data, 16, 2, &got, NULL), STATUS_OK);
    assert_int_equal(got, 8);
    assert_memory_equal(data, "23xy6789", 8);
    assert_int_equal(file_read(file, data, 16, 50, &got, NULL), STATUS_OK);
    assert_int_equal(got, 0);
    assert_int_equal(file_truncate(file, 3, NULL), STATUS_OK);
    assert_int_equal(file_read(file, data, 16, 0, &got, NULL), STATUS_OK);
    assert_int_equal(got, 3);
    file_close(file);
    file_close(NULL);
}

static void open_says_what_is_missing_or_in_the_way(void **state)
{
    struct place *place = *state;
    struct file *file;
    struct error error;
    const char *path = in(place, "a");
    assert_int_equal(file_open(place->fs, path, FILE_READ, &file, &error), STATUS_NOT_FOUND);
    assert_non_null(strstr(error.text, path));
    assert_non_null(strstr(error.text, "open: No such file"));
    assert_null(file);
    put(place, "a", "x");
    int flags = FILE_WRITE | FILE_CREATE | FILE_EXCLUSIVE;
    assert_int_equal(file_open(place->fs, path, flags, &file, &error), STATUS_EXISTS);
}

static void nowait_reads_what_is_cached_and_never_lies(void **state)
{
    struct place *place = *state;
    struct file *file;
    char data[8];
    size_t got = 0;
    put(place, "a", "abcdef");
    assert_int_equal(file_open(place->fs, in(place, "a"), FILE_READ, &file, NULL), STATUS_OK);
    enum status status = file_read_nowait(file, data, 8, 0, &got, NULL);
    assert_true(status == STATUS_OK || status == STATUS_AGAIN);
    if (status == STATUS_OK) assert_int_equal(got, 6);
    if (status == STATUS_AGAIN) assert_int_equal(got, 0);
    file_close(file);
}

static void full_disk_is_no_space(void **state)
{
    struct place *place = *state;
    struct file *file;
    if (file_open(place->fs, "/dev/full", FILE_WRITE, &file, NULL) != STATUS_OK) skip();
    assert_int_equal(file_write(file, "x", 1, 0, NULL), STATUS_NO_SPACE);
    file_close(file);
}

static void allocate_gives_zeros_and_keeps_what_is_there(void **state)
{
    struct place *place = *state;
    struct file *file;
    uint8_t *data = calloc(1, 700000);
    size_t got = 0;
    int64_t size = 0;
    int flags = FILE_WRITE | FILE_CREATE;
    assert_int_equal(file_open(place->fs, in(place, "a"), flags, &file, NULL), STATUS_OK);
    assert_int_equal(file_write(file, "abc", 3, 0, NULL), STATUS_OK);
    assert_int_equal(file_allocate(file, 600000, NULL), STATUS_OK);
    assert_int_equal(file_allocate(file, 10, NULL), STATUS_OK);
    assert_int_equal(file_size(file, &size, NULL), STATUS_OK);
    assert_int_equal(size, 600000);
    assert_int_equal(file_read(file, data, 700000, 0, &got, NULL), STATUS_OK);
    assert_int_equal(got, 600000);
    assert_memory_equal(data, "abc", 3);
    for (size_t i = 3; i < got; i++)
        assert_int_equal(data[i], 0);
    /* Large commits: the next step is only reserved, and reads as zeros all the same. */
    memset(data, 7, 600000);
    assert_int_equal(file_write(file, data, 600000, 0, NULL), STATUS_OK);
    assert_int_equal(file_sync(file, NULL), STATUS_OK);
    assert_int_equal(file_allocate(file, 700000, NULL), STATUS_OK);
    assert_int_equal(file_read(file, data, 700000, 0, &got, NULL), STATUS_OK);
    assert_int_equal(got, 700000);
    assert_int_equal(data[599999], 7);
    for (size_t i = 600000; i < got; i++)
        assert_int_equal(data[i], 0);
    file_close(file);
    free(data);
}

static void lock_is_exclusive_until_closed(void **state)
{
    struct place *place = *state;
    struct file *first, *second;
    struct error error;
    int flags = FILE_WRITE | FILE_CREATE;
    assert_int_equal(file_open(place->fs, in(place, "l"), flags, &first, NULL), STATUS_OK);
    assert_int_equal(file_open(place->fs, in(place, "l"), flags, &second, NULL), STATUS_OK);
    assert_int_equal(file_lock(first, NULL), STATUS_OK);
    assert_int_equal(file_lock(second, &error), STATUS_CONFLICT);
    file_close(first);
    assert_int_equal(file_lock(second, NULL), STATUS_OK);
    file_close(second);
}

static bool join_names(void *context, const char *name, enum file_kind kind)
{
    strcat(context, name);
    strcat(context, kind == FILE_KIND_DIRECTORY ? "/ " : kind == FILE_KIND_OTHER ? "@ " : " ");
    return strcmp(name, "c") != 0;
}

static void listing_is_sorted_and_can_be_stopped(void **state)
{
    struct place *place = *state;
    char names[256] = "";
    put(place, "b", "");
    put(place, "c", "");
    put(place, "Z", "");
    put(place, "d", "");
    assert_int_equal(file_make_directory(place->fs, in(place, "a"), NULL), STATUS_OK);
    assert_int_equal(symlink("/nowhere", in(place, "aa")), 0);
    assert_int_equal(file_list(place->fs, place->path, join_names, names, NULL), STATUS_OK);
    assert_string_equal(names, "Z a/ aa@ b c ");
    assert_int_equal(file_list(place->fs, in(place, "none"), join_names, names, NULL),
                     STATUS_NOT_FOUND);
}

static void directories_are_made_once_and_removed_empty(void **state)
{
    struct place *place = *state;
    enum file_kind kind;
    struct file_system *fs = place->fs;
    assert_int_equal(file_make_directory(fs, in(place, "d"), NULL), STATUS_OK);
    assert_int_equal(file_make_directory(fs, in(place, "d"), NULL), STATUS_OK);
    assert_int_equal(file_kind(fs, in(place, "d"), &kind, NULL), STATUS_OK);
    assert_int_equal(kind, FILE_KIND_DIRECTORY);
    put(place, "d/f", "x");
    assert_int_equal(file_kind(fs, in(place, "d/f"), &kind, NULL), STATUS_OK);
    assert_int_equal(kind, FILE_KIND_REGULAR);
    assert_int_equal(file_make_directory(fs, in(place, "d/f"), NULL), STATUS_EXISTS);
    assert_int_equal(file_remove_directory(fs, in(place, "d"), NULL), STATUS_CONFLICT);
    assert_int_equal(file_remove(fs, in(place, "d/f"), NULL), STATUS_OK);
    assert_int_equal(file_remove(fs, in(place, "d/f"), NULL), STATUS_NOT_FOUND);
    assert_int_equal(file_sync_directory(fs, in(place, "d"), NULL), STATUS_OK);
    assert_int_equal(file_remove_directory(fs, in(place, "d"), NULL), STATUS_OK);
    assert_int_equal(file_kind(fs, in(place, "d"), &kind, NULL), STATUS_NOT_FOUND);
}

static void whole_files_are_bounded(void **state)
{
    struct place *place = *state;
    struct buffer buffer;
    struct error error;
    buffer_init(&buffer, 0);
    put(place, "a", "hello");
    buffer_put_string(&buffer, "> ");
    assert_int_equal(file_read_whole(place->fs, in(place, "a"), 4, &buffer, &error),
                     STATUS_TOO_LARGE);
    assert_int_equal(buffer.bytes, 2);
    assert_int_equal(file_read_whole(place->fs, in(place, "a"), 5, &buffer, &error), STATUS_OK);
    assert_memory_equal(buffer.data, "> hello", 7);
    assert_int_equal(file_read_whole(place->fs, in(place, "none"), 5, &buffer, &error),
                     STATUS_NOT_FOUND);
    buffer_deinit(&buffer);
}

static void tree_is_removed_without_following_links(void **state)
{
    struct place *place = *state;
    enum file_kind kind;
    assert_int_equal(file_make_directory(place->fs, in(place, "keep"), NULL), STATUS_OK);
    put(place, "keep/f", "kept");
    assert_int_equal(file_make_directory(place->fs, in(place, "t"), NULL), STATUS_OK);
    assert_int_equal(file_make_directory(place->fs, in(place, "t/u"), NULL), STATUS_OK);
    put(place, "t/u/f", "x");
    put(place, "t/g", "x");
    assert_int_equal(symlink(in(place, "keep"), in(place, "t/link")), 0);
    assert_int_equal(file_remove_tree(place->fs, in(place, "t"), NULL), STATUS_OK);
    assert_int_equal(file_kind(place->fs, in(place, "t"), &kind, NULL), STATUS_NOT_FOUND);
    assert_content(place, "keep/f", "kept");
    assert_int_equal(file_remove_tree(place->fs, in(place, "t"), NULL), STATUS_OK);
}

static void tree_deeper_than_its_bound_is_refused(void **state)
{
    struct place *place = *state;
    char path[200] = "t";
    for (int i = 0; i < 9; i++) {
        assert_int_equal(file_make_directory(place->fs, in(place, path), NULL), STATUS_OK);
        if (i < 8) strcat(path, "/t");
    }
    assert_int_equal(file_remove_tree(place->fs, in(place, "t"), NULL), STATUS_LIMIT);
    assert_int_equal(file_remove_directory(place->fs, in(place, path), NULL), STATUS_OK);
    assert_int_equal(file_remove_tree(place->fs, in(place, "t"), NULL), STATUS_OK);
}

/* The machine's file system with the n-th writing call failing. */
static struct file_system_ops failing_ops;
static int failing_countdown;

static bool fails_now(void)
{
    return failing_countdown-- == 0;
}

static enum status failing_write(struct file *file, const void *data, size_t bytes, int64_t at,
                                 struct error *error)
{
    const struct file_system_ops *real = file_system_posix()->ops;
    if (!fails_now()) return real->write(file, data, bytes, at, error);
    enum status half = real->write(file, data, bytes / 2, at, error);
    return half == STATUS_OK ? error_set(error, STATUS_NO_SPACE, "write: planted") : half;
}

static enum status failing_sync(struct file *file, struct error *error)
{
    if (fails_now()) return error_set(error, STATUS_IO, "sync: planted");
    return file_system_posix()->ops->sync(file, error);
}

static enum status failing_rename(struct file_system *fs, const char *from, const char *to,
                                  struct error *error)
{
    if (fails_now()) return error_set(error, STATUS_IO, "rename: planted");
    return file_system_posix()->ops->rename(fs, from, to, error);
}

static enum status failing_sync_directory(struct file_system *fs, const char *path,
                                          struct error *error)
{
    if (fails_now()) return error_set(error, STATUS_IO, "sync directory: planted");
    return file_system_posix()->ops->sync_directory(fs, path, error);
}

static void replacing_leaves_old_or_new_whatever_fails(void **state)
{
    struct place *place = *state;
    failing_ops = *place->fs->ops;
    failing_ops.write = failing_write;
    failing_ops.sync = failing_sync;
    failing_ops.rename = failing_rename;
    failing_ops.sync_directory = failing_sync_directory;
    struct file_system failing = {&failing_ops};
    for (int n = 0; n < 5; n++) {
        put(place, "a", "old");
        failing_countdown = n;
        struct error error;
        enum status status = file_replace(&failing, in(place, "a"), "newer", 5, &error);
        assert_int_equal(status, n == 0 ? STATUS_NO_SPACE : n < 4 ? STATUS_IO : STATUS_OK);
        assert_content(place, "a", n < 3 ? "old" : "newer");
        enum file_kind kind;
        assert_int_equal(file_kind(place->fs, in(place, "a.tmp"), &kind, NULL), STATUS_NOT_FOUND);
    }
}

static void free_bytes_are_told(void **state)
{
    struct place *place = *state;
    int64_t bytes = 0;
    assert_int_equal(file_free_bytes(place->fs, place->path, &bytes, NULL), STATUS_OK);
    assert_true(bytes > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reads_are_short_only_at_the_end, place_new, place_free),
        cmocka_unit_test_setup_teardown(open_says_what_is_missing_or_in_the_way, place_new,
                                        place_free),
        cmocka_unit_test_setup_teardown(nowait_reads_what_is_cached_and_never_lies, place_new,
                                        place_free),
        cmocka_unit_test_setup_teardown(full_disk_is_no_space, place_new, place_free),
        cmocka_unit_test_setup_teardown(allocate_gives_zeros_and_keeps_what_is_there, place_new,
                                        place_free),
        cmocka_unit_test_setup_teardown(lock_is_exclusive_until_closed, place_new, place_free),
        cmocka_unit_test_setup_teardown(listing_is_sorted_and_can_be_stopped, place_new,
                                        place_free),
        cmocka_unit_test_setup_teardown(directories_are_made_once_and_removed_empty, place_new,
                                        place_free),
        cmocka_unit_test_setup_teardown(whole_files_are_bounded, place_new, place_free),
        cmocka_unit_test_setup_teardown(tree_is_removed_without_following_links, place_new,
                                        place_free),
        cmocka_unit_test_setup_teardown(tree_deeper_than_its_bound_is_refused, place_new,
                                        place_free),
        cmocka_unit_test_setup_teardown(replacing_leaves_old_or_new_whatever_fails, place_new,
                                        place_free),
        cmocka_unit_test_setup_teardown(free_bytes_are_told, place_new, place_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
