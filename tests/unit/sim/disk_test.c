/* The virtual disk: what kill -9 and a power cut leave, by trying every decision of the cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "io/file_system.h"
#include "sim/sim_disk.h"
#include "sim/world.h"

/* Enumerates every sequence of decisions: an odometer whose wheels are the bounds met. */
struct odometer {
    uint64_t digit[64], bound[64];
    size_t count, used;
};

static uint64_t odometer_below(void *context, uint64_t bound)
{
    struct odometer *odometer = context;
    assert_true(odometer->used < 64);
    if (odometer->used == odometer->count) odometer->digit[odometer->count++] = 0;
    odometer->bound[odometer->used] = bound;
    return odometer->digit[odometer->used++];
}

static bool odometer_next(struct odometer *odometer)
{
    odometer->count = odometer->used;
    odometer->used = 0;
    while (odometer->count > 0) {
        size_t last = odometer->count - 1;
        if (++odometer->digit[last] < odometer->bound[last]) return true;
        odometer->count--;
    }
    return false;
}

/* The contents seen after some cut, as texts. */
struct outcomes {
    char text[256][512];
    size_t count;
};

static void outcomes_add(struct outcomes *outcomes, const char *text)
{
    for (size_t i = 0; i < outcomes->count; i++) {
        if (strcmp(outcomes->text[i], text) == 0) return;
    }
    assert_true(outcomes->count < 256);
    strcpy(outcomes->text[outcomes->count++], text);
}

static bool outcomes_have(const struct outcomes *outcomes, const char *text)
{
    for (size_t i = 0; i < outcomes->count; i++) {
        if (strcmp(outcomes->text[i], text) == 0) return true;
    }
    return false;
}

static struct sim_world world;

static struct file_system *fs_of(struct sim_disk *disk)
{
    return sim_disk_file_system(disk);
}

static void put(struct file_system *fs, const char *path, const char *text, int64_t at, bool sync)
{
    struct file *file;
    assert_int_equal(file_open(fs, path, FILE_WRITE | FILE_CREATE, &file, NULL), STATUS_OK);
    assert_int_equal(file_write(file, text, strlen(text), at, NULL), STATUS_OK);
    if (sync) assert_int_equal(file_sync(file, NULL), STATUS_OK);
    file_close(file);
}

/* A file's bytes with zeros shown as '.', or "-" if it is not there. */
static void show(struct file_system *fs, const char *path, char *out)
{
    struct buffer buffer;
    buffer_init(&buffer, 500);
    enum status status = file_read_whole(fs, path, 500, &buffer, NULL);
    if (status == STATUS_NOT_FOUND) {
        strcpy(out, "-");
    } else {
        assert_int_equal(status, STATUS_OK);
        for (size_t i = 0; i < buffer.bytes; i++)
            out[i] = buffer.data[i] == 0 ? '.' : (char)buffer.data[i];
        out[buffer.bytes] = '\0';
    }
    buffer_deinit(&buffer);
}

typedef void (*scene_fn)(struct file_system *fs);
typedef void (*look_fn)(struct file_system *fs, char *out);

/* Plays `scene`, cuts the power in every possible way, and collects what `look` shows. */
static void try_every_cut(scene_fn scene, look_fn look, struct outcomes *outcomes)
{
    struct odometer odometer = {.count = 0};
    outcomes->count = 0;
    do {
        char text[512];
        struct sim_disk *disk = sim_disk_new(&world, NULL);
        scene(fs_of(disk));
        const struct sim_power_cut cut = {.chooser = {odometer_below, &odometer}};
        sim_disk_power_cut(disk, &cut);
        look(fs_of(disk), text);
        outcomes_add(outcomes, text);
        uint64_t hash = sim_disk_hash(disk);
        sim_disk_power_cut(disk, &(struct sim_power_cut){0}); /* nothing is left to decide */
        assert_int_equal(hash, sim_disk_hash(disk));
        sim_disk_free(disk);
    } while (odometer_next(&odometer));
}

static void look_at_f(struct file_system *fs, char *out)
{
    show(fs, "f", out);
}

static void sync_root(struct file_system *fs)
{
    assert_int_equal(file_sync_directory(fs, "/", NULL), STATUS_OK);
}

static void scene_synced(struct file_system *fs)
{
    put(fs, "f", "abc", 0, true);
    sync_root(fs);
}

static void synced_bytes_under_a_synced_name_stay(void **state)
{
    struct outcomes outcomes;
    (void)state;
    try_every_cut(scene_synced, look_at_f, &outcomes);
    assert_int_equal(outcomes.count, 1);
    assert_string_equal(outcomes.text[0], "abc");
}

static void scene_unsynced_name(struct file_system *fs)
{
    put(fs, "f", "abc", 0, true);
}

static void a_name_needs_the_directory_synced(void **state)
{
    struct outcomes outcomes;
    (void)state;
    try_every_cut(scene_unsynced_name, look_at_f, &outcomes);
    assert_int_equal(outcomes.count, 2);
    assert_true(outcomes_have(&outcomes, "-"));
    assert_true(outcomes_have(&outcomes, "abc"));
}

static void scene_append(struct file_system *fs)
{
    put(fs, "f", "abc", 0, true);
    sync_root(fs);
    put(fs, "f", "de", 3, false);
}

static void an_unsynced_append_is_kept_lost_or_torn(void **state)
{
    struct outcomes outcomes;
    (void)state;
    try_every_cut(scene_append, look_at_f, &outcomes);
    const char *const legal[] = {"abc", "abcd", "abcde", "abc..", "abcd."};
    for (size_t i = 0; i < 5; i++)
        assert_true(outcomes_have(&outcomes, legal[i]));
    assert_int_equal(outcomes.count, 5);
}

static void scene_two_writes(struct file_system *fs)
{
    put(fs, "f", "0123", 0, true);
    sync_root(fs);
    put(fs, "f", "ab", 0, false);
    put(fs, "f", "XY", 1, false);
}

static void unsynced_writes_survive_independently_and_in_order(void **state)
{
    struct outcomes outcomes;
    (void)state;
    try_every_cut(scene_two_writes, look_at_f, &outcomes);
    assert_true(outcomes_have(&outcomes, "0123"));
    assert_true(outcomes_have(&outcomes, "ab23"));
    assert_true(outcomes_have(&outcomes, "0XY3"));
    assert_true(outcomes_have(&outcomes, "aXY3"));
    assert_true(outcomes_have(&outcomes, "0X23")); /* the second torn after a byte */
    assert_false(outcomes_have(&outcomes, "abY3"));
    assert_false(outcomes_have(&outcomes, "abXY"));
}

static void scene_sectors(struct file_system *fs)
{
    static char text[1025];
    memset(text, 'a', 1024);
    put(fs, "f", text, 0, false);
    sync_root(fs);
}

static void look_at_two_sectors(struct file_system *fs, char *out)
{
    struct file *file;
    uint8_t data[1024];
    size_t bytes = 0;
    memset(data, 0, sizeof(data));
    assert_int_equal(file_open(fs, "f", FILE_READ, &file, NULL), STATUS_OK);
    assert_int_equal(file_read(file, data, sizeof(data), 0, &bytes, NULL), STATUS_OK);
    file_close(file);
    snprintf(out, 512, "%c%c%c%c", data[0] ? data[0] : '.', data[511] ? data[511] : '.',
             data[512] ? data[512] : '.', data[1023] ? data[1023] : '.');
}

static void any_subset_of_sectors_may_be_lost(void **state)
{
    struct outcomes outcomes;
    (void)state;
    try_every_cut(scene_sectors, look_at_two_sectors, &outcomes);
    assert_true(outcomes_have(&outcomes, "...."));
    assert_true(outcomes_have(&outcomes, "aa.."));
    assert_true(outcomes_have(&outcomes, "..aa"));
    assert_true(outcomes_have(&outcomes, "aaaa"));
    assert_true(outcomes_have(&outcomes, "a..."));
}

static void scene_replace(struct file_system *fs)
{
    put(fs, "f", "old", 0, true);
    sync_root(fs);
    assert_int_equal(file_replace(fs, "f", "new", 3, NULL), STATUS_OK);
}

static void file_replace_is_durable_when_it_returns(void **state)
{
    struct outcomes outcomes;
    (void)state;
    try_every_cut(scene_replace, look_at_f, &outcomes);
    assert_int_equal(outcomes.count, 1);
    assert_string_equal(outcomes.text[0], "new");
}

static void scene_rename(struct file_system *fs)
{
    put(fs, "f", "old", 0, true);
    sync_root(fs);
    put(fs, "f.tmp", "new", 0, true);
    assert_int_equal(file_rename(fs, "f.tmp", "f", NULL), STATUS_OK);
}

static void look_at_both_names(struct file_system *fs, char *out)
{
    char name[512], temporary[512];
    show(fs, "f", name);
    show(fs, "f.tmp", temporary);
    snprintf(out, 512, "%.20s %.20s", name, temporary);
}

static void a_rename_in_one_directory_is_atomic_and_may_be_lost(void **state)
{
    struct outcomes outcomes;
    (void)state;
    try_every_cut(scene_rename, look_at_both_names, &outcomes);
    assert_int_equal(outcomes.count, 3);
    assert_true(outcomes_have(&outcomes, "old -"));
    assert_true(outcomes_have(&outcomes, "old new"));
    assert_true(outcomes_have(&outcomes, "new -"));
}

static void scene_rename_unsynced_bytes(struct file_system *fs)
{
    put(fs, "f", "old", 0, true);
    sync_root(fs);
    put(fs, "f.tmp", "new", 0, false);
    assert_int_equal(file_rename(fs, "f.tmp", "f", NULL), STATUS_OK);
    sync_root(fs);
}

static void a_rename_may_outlive_the_bytes_that_were_not_synced(void **state)
{
    struct outcomes outcomes;
    (void)state;
    try_every_cut(scene_rename_unsynced_bytes, look_at_f, &outcomes);
    assert_true(outcomes_have(&outcomes, ""));
    assert_true(outcomes_have(&outcomes, "new"));
    assert_false(outcomes_have(&outcomes, "old"));
}

static void scene_move(struct file_system *fs)
{
    assert_int_equal(file_make_directory(fs, "a", NULL), STATUS_OK);
    assert_int_equal(file_make_directory(fs, "b", NULL), STATUS_OK);
    put(fs, "a/f", "x", 0, true);
    assert_int_equal(file_sync_directory(fs, "a", NULL), STATUS_OK);
    sync_root(fs);
    assert_int_equal(file_rename(fs, "a/f", "b/f", NULL), STATUS_OK);
}

static void look_at_both_directories(struct file_system *fs, char *out)
{
    char here[512], there[512];
    show(fs, "a/f", here);
    show(fs, "b/f", there);
    snprintf(out, 512, "%.20s %.20s", here, there);
}

static void a_move_between_directories_may_leave_both_names_or_none(void **state)
{
    struct outcomes outcomes;
    (void)state;
    try_every_cut(scene_move, look_at_both_directories, &outcomes);
    assert_int_equal(outcomes.count, 4);
}

static void scene_remove(struct file_system *fs)
{
    put(fs, "f", "x", 0, true);
    sync_root(fs);
    assert_int_equal(file_remove(fs, "f", NULL), STATUS_OK);
}

static void an_unsynced_removal_may_come_back(void **state)
{
    struct outcomes outcomes;
    (void)state;
    try_every_cut(scene_remove, look_at_f, &outcomes);
    assert_int_equal(outcomes.count, 2);
    assert_true(outcomes_have(&outcomes, "x"));
    assert_true(outcomes_have(&outcomes, "-"));
}

static void scene_truncate(struct file_system *fs)
{
    struct file *file;
    put(fs, "f", "abcd", 0, true);
    sync_root(fs);
    assert_int_equal(file_open(fs, "f", FILE_WRITE, &file, NULL), STATUS_OK);
    assert_int_equal(file_truncate(file, 2, NULL), STATUS_OK);
    assert_int_equal(file_allocate(file, 5, NULL), STATUS_OK);
    file_close(file);
}

static void changes_of_length_are_kept_as_a_prefix(void **state)
{
    struct outcomes outcomes;
    (void)state;
    try_every_cut(scene_truncate, look_at_f, &outcomes);
    assert_int_equal(outcomes.count, 3);
    assert_true(outcomes_have(&outcomes, "abcd"));
    assert_true(outcomes_have(&outcomes, "ab"));
    assert_true(outcomes_have(&outcomes, "ab..."));
}

static uint64_t choose_zero(void *context, uint64_t bound)
{
    (void)context;
    (void)bound;
    return 0;
}

static uint64_t choose_one(void *context, uint64_t bound)
{
    (void)context;
    return bound > 1 ? 1 : 0;
}

static void bytes_of_a_failed_sync_are_read_but_never_reach_the_disk(void **state)
{
    char text[512];
    struct sim_inode *file;
    struct sim_volume volume;
    const struct sim_chooser dooms = {choose_zero, NULL};
    (void)state;
    sim_volume_init(&volume);
    file = sim_inode_new(&volume, false);
    sim_file_write(file, 0, "aaaa", 4);
    sim_file_sync(file);
    sim_file_write(file, 0, "bb", 2);
    sim_file_sync_fails(file, &dooms);
    sim_file_write(file, 2, "cc", 2);
    sim_file_sync(file); /* the retry: it succeeds, and only the new bytes were written */
    memset(text, 0, sizeof(text));
    sim_file_read(file, 0, text, 4);
    assert_string_equal(text, "bbcc");
    sim_volume_power_cut(&volume, &(struct sim_power_cut){.chooser = {choose_one, NULL}});
    sim_file_read(file, 0, text, 4);
    assert_string_equal(text, "aacc");
    sim_inode_unref(file);
    sim_volume_deinit(&volume);
}

static void kill_leaves_everything_written(void **state)
{
    char text[512];
    (void)state;
    struct sim_disk *disk = sim_disk_new(&world, NULL);
    put(fs_of(disk), "f", "abc", 0, false);
    sim_disk_process_died(disk);
    show(fs_of(disk), "f", text);
    assert_string_equal(text, "abc");
    sim_disk_free(disk);
}

static void damage_at_rest_outlives_a_power_cut(void **state)
{
    char text[512];
    (void)state;
    struct sim_disk *disk = sim_disk_new(&world, NULL);
    struct file_system *fs = fs_of(disk);
    put(fs, "f", "abcd", 0, true);
    sync_root(fs);
    put(fs, "f", "xy", 2, false);
    assert_true(sim_disk_flip_bit(disk, "f", 0, 0));
    assert_false(sim_disk_flip_bit(disk, "f", 4, 0));
    assert_false(sim_disk_flip_bit(disk, "g", 0, 0));
    show(fs, "f", text);
    assert_string_equal(text, "`bxy");
    sim_disk_power_cut(disk, &(struct sim_power_cut){.chooser = {choose_zero, NULL}});
    show(fs, "f", text);
    assert_string_equal(text, "`bcd");
    assert_true(sim_disk_overwrite(disk, "f", 1, NULL, 2));
    assert_true(sim_disk_set_length(disk, "f", 5));
    show(fs, "f", text);
    assert_string_equal(text, "`..d.");
    assert_true(sim_disk_delete(disk, "f"));
    sim_disk_power_cut(disk, &(struct sim_power_cut){.chooser = {choose_zero, NULL}});
    show(fs, "f", text);
    assert_string_equal(text, "-");
    sim_disk_free(disk);
}

static void an_old_copy_can_be_put_back(void **state)
{
    char text[512];
    (void)state;
    struct sim_disk *disk = sim_disk_new(&world, NULL);
    struct file_system *fs = fs_of(disk);
    assert_int_equal(file_make_directory(fs, "d", NULL), STATUS_OK);
    put(fs, "d/f", "old", 5000, false);
    uint64_t hash = sim_disk_hash(disk);
    struct sim_disk_image *image = sim_disk_copy(disk);
    put(fs, "d/f", "new", 0, false);
    put(fs, "d/g", "new", 0, false);
    assert_int_not_equal(hash, sim_disk_hash(disk));
    sim_disk_restore(disk, image);
    sim_disk_power_cut(disk, &(struct sim_power_cut){.chooser = {choose_zero, NULL}});
    assert_int_equal(hash, sim_disk_hash(disk));
    show(fs, "d/g", text);
    assert_string_equal(text, "-");
    sim_disk_image_free(image);
    sim_disk_wipe(disk);
    assert_int_equal(sim_disk_used_bytes(disk), 0);
    sim_disk_free(disk);
}

static void a_full_disk_recovers(void **state)
{
    struct file *file;
    static char bytes[3 * SIM_PAGE_BYTES];
    int64_t free_bytes;
    (void)state;
    struct sim_disk *disk = sim_disk_new(&world, NULL);
    struct file_system *fs = fs_of(disk);
    sim_disk_faults(disk)->capacity_bytes = 2 * SIM_PAGE_BYTES;
    assert_int_equal(file_open(fs, "f", FILE_WRITE | FILE_CREATE, &file, NULL), STATUS_OK);
    assert_int_equal(file_write(file, bytes, sizeof(bytes), 0, NULL), STATUS_NO_SPACE);
    assert_int_equal(file_allocate(file, sizeof(bytes), NULL), STATUS_NO_SPACE);
    assert_int_equal(file_free_bytes(fs, "/", &free_bytes, NULL), STATUS_OK);
    assert_int_equal(free_bytes, 0);
    assert_int_equal(file_truncate(file, 0, NULL), STATUS_OK);
    assert_int_equal(file_write(file, bytes, SIM_PAGE_BYTES, 0, NULL), STATUS_OK);
    file_close(file);
    sim_disk_free(disk);
}

static bool count_names(void *context, const char *name, enum file_kind kind)
{
    char *names = context;
    strcat(names, name);
    strcat(names, kind == FILE_KIND_DIRECTORY ? "/ " : " ");
    return true;
}

static void lists_ascend_and_locks_exclude(void **state)
{
    struct file *a, *b;
    char names[64] = "";
    enum file_kind kind;
    (void)state;
    struct sim_disk *disk = sim_disk_new(&world, NULL);
    struct file_system *fs = fs_of(disk);
    put(fs, "z", "1", 0, false);
    assert_int_equal(file_make_directory(fs, "m", NULL), STATUS_OK);
    assert_int_equal(file_make_directory(fs, "m", NULL), STATUS_OK);
    put(fs, "a", "1", 0, false);
    assert_int_equal(file_list(fs, "/", count_names, names, NULL), STATUS_OK);
    assert_string_equal(names, "a m/ z ");
    assert_int_equal(file_kind(fs, "m", &kind, NULL), STATUS_OK);
    assert_int_equal(kind, FILE_KIND_DIRECTORY);
    assert_int_equal(file_open(fs, "a", FILE_WRITE, &a, NULL), STATUS_OK);
    assert_int_equal(file_open(fs, "a", FILE_WRITE, &b, NULL), STATUS_OK);
    assert_int_equal(file_lock(a, NULL), STATUS_OK);
    assert_int_equal(file_lock(b, NULL), STATUS_CONFLICT);
    file_close(a);
    assert_int_equal(file_lock(b, NULL), STATUS_OK);
    file_close(b);
    assert_int_equal(file_open(fs, "q", FILE_READ, &a, NULL), STATUS_NOT_FOUND);
    assert_int_equal(file_open(fs, "a", FILE_WRITE | FILE_CREATE | FILE_EXCLUSIVE, &a, NULL),
                     STATUS_EXISTS);
    put(fs, "m/x", "1", 0, false);
    assert_int_equal(file_remove_directory(fs, "m", NULL), STATUS_IO);
    assert_int_equal(file_remove_tree(fs, "m", NULL), STATUS_OK);
    assert_int_equal(file_kind(fs, "m", &kind, NULL), STATUS_NOT_FOUND);
    sim_disk_free(disk);
}

static int setup(void **state)
{
    (void)state;
    sim_world_init(&world, 7);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sim_world_deinit(&world);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(synced_bytes_under_a_synced_name_stay),
        cmocka_unit_test(a_name_needs_the_directory_synced),
        cmocka_unit_test(an_unsynced_append_is_kept_lost_or_torn),
        cmocka_unit_test(unsynced_writes_survive_independently_and_in_order),
        cmocka_unit_test(any_subset_of_sectors_may_be_lost),
        cmocka_unit_test(file_replace_is_durable_when_it_returns),
        cmocka_unit_test(a_rename_in_one_directory_is_atomic_and_may_be_lost),
        cmocka_unit_test(a_rename_may_outlive_the_bytes_that_were_not_synced),
        cmocka_unit_test(a_move_between_directories_may_leave_both_names_or_none),
        cmocka_unit_test(an_unsynced_removal_may_come_back),
        cmocka_unit_test(changes_of_length_are_kept_as_a_prefix),
        cmocka_unit_test(bytes_of_a_failed_sync_are_read_but_never_reach_the_disk),
        cmocka_unit_test(kill_leaves_everything_written),
        cmocka_unit_test(damage_at_rest_outlives_a_power_cut),
        cmocka_unit_test(an_old_copy_can_be_put_back),
        cmocka_unit_test(a_full_disk_recovers),
        cmocka_unit_test(lists_ascend_and_locks_exclude),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
