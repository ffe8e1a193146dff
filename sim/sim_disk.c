#include "sim/sim_disk.h"

#include <string.h>

#include "base/assert.h"
#include "sim/machine.h"
#include "sim/sim_disk_internal.h"

/* Time of the cheap operations, and the usual rate of the others. */
#define OPERATION_US 2
#define SYNC_US_MIN  80
#define SYNC_US_MAX  400
#define BYTES_PER_MS 500000

struct sim_file {
    struct file base;
    struct sim_resource resource;
    struct sim_disk *disk;
    struct sim_inode *inode;
    bool writable;
    bool hung; /* opened by the process, not by the rig */
};

static bool disk_is_under_test(const struct sim_disk *disk)
{
    return disk->world->running == disk->machine && disk->machine != NULL;
}

static bool disk_draws(struct sim_disk *disk, uint32_t chance_ppm)
{
    return disk_is_under_test(disk) && sim_world_chance(disk->world, chance_ppm);
}

/* Paths. */

/* Copies the next name of *path and moves past it. False at the end, or if it is too long. */
static bool next_name(const char **path, char name[SIM_NAME_BYTES_MAX])
{
    const char *at = *path;
    while (*at == '/' || (at[0] == '.' && (at[1] == '/' || at[1] == '\0')))
        at++;
    size_t bytes = strcspn(at, "/");
    *path = at + bytes;
    if (bytes == 0 || bytes >= SIM_NAME_BYTES_MAX) return false;
    memcpy(name, at, bytes);
    name[bytes] = '\0';
    return true;
}

struct sim_inode *sim_disk_find(const struct sim_disk *disk, const char *path)
{
    struct sim_inode *inode = disk->volume.root;
    char name[SIM_NAME_BYTES_MAX];
    while (inode != NULL && next_name(&path, name))
        inode = inode->directory ? sim_directory_find(inode, name) : NULL;
    return inode;
}

struct sim_inode *sim_disk_find_parent(const struct sim_disk *disk, const char *path,
                                       char name[SIM_NAME_BYTES_MAX])
{
    struct sim_inode *inode = disk->volume.root;
    if (!next_name(&path, name)) return NULL;
    for (;;) {
        char next[SIM_NAME_BYTES_MAX];
        if (!inode->directory) return NULL;
        if (!next_name(&path, next)) return inode;
        inode = sim_directory_find(inode, name);
        if (inode == NULL) return NULL;
        memcpy(name, next, sizeof(next));
    }
}

/* Crash points and errors. */

static _Noreturn void disk_crash(struct sim_disk *disk)
{
    disk->crash_in = 0;
    sim_machine_die(disk->machine, (enum sim_death)disk->crash_death);
}

/* Counts a changing operation. True: the process dies at this one, and not before it. */
static bool disk_counts_operation(struct sim_disk *disk)
{
    disk->operations++;
    disk->time_us += OPERATION_US;
    if (!disk_is_under_test(disk) || disk->crash_in == 0 || --disk->crash_in > 0) return false;
    if (random_below(&disk->world->random, 2) == 0) disk_crash(disk);
    return true;
}

static enum status disk_fails(struct error *error, const char *what)
{
    return error_set(error, STATUS_IO, "%s: input/output error", what);
}

static enum status disk_misses(struct error *error, const char *path)
{
    return error_set(error, STATUS_NOT_FOUND, "%s: no such file or directory", path);
}

static bool disk_has_room(const struct sim_disk *disk, const struct sim_inode *file, int64_t end)
{
    int64_t have = (file->bytes + SIM_PAGE_BYTES - 1) / SIM_PAGE_BYTES;
    int64_t want = (end + SIM_PAGE_BYTES - 1) / SIM_PAGE_BYTES;
    return want <= have || disk->faults.capacity_bytes == 0 ||
           disk->volume.used_bytes + (want - have) * SIM_PAGE_BYTES <= disk->faults.capacity_bytes;
}

/* Files. */

static void file_forget(struct sim_file *file)
{
    if (file->inode->lock_owner == file) file->inode->lock_owner = NULL;
    sim_inode_unref(file->inode);
    if (file->hung) sim_machine_unhang(file->disk->machine, &file->resource);
    sim_release(file);
}

static void file_release(struct sim_resource *resource)
{
    file_forget(CONTAINER_OF(resource, struct sim_file, resource));
}

static struct file *file_new(struct sim_disk *disk, struct sim_inode *inode, int flags)
{
    struct sim_file *file = sim_alloc(sizeof(*file));
    file->base.ops = disk->base.ops;
    file->disk = disk;
    file->inode = inode;
    file->writable = (flags & FILE_WRITE) != 0;
    file->resource.release = file_release;
    file->hung = disk_is_under_test(disk);
    sim_inode_ref(inode);
    if (file->hung) sim_machine_hang(disk->machine, &file->resource);
    return &file->base;
}

static enum status disk_create(struct sim_disk *disk, const char *path, bool directory,
                               struct sim_inode **out, struct error *error)
{
    char name[SIM_NAME_BYTES_MAX];
    struct sim_inode *parent = sim_disk_find_parent(disk, path, name);
    if (parent == NULL) return disk_misses(error, path);
    bool dies = disk_counts_operation(disk);
    if (disk_draws(disk, disk->faults.directory_error_ppm)) return disk_fails(error, path);
    if (disk->faults.capacity_bytes != 0 && disk->volume.used_bytes >= disk->faults.capacity_bytes)
        return error_set(error, STATUS_NO_SPACE, "%s: no space left on device", path);
    struct sim_inode *inode = sim_inode_new(&disk->volume, directory);
    sim_directory_set(parent, name, inode, NULL);
    sim_inode_unref(inode);
    if (dies) disk_crash(disk);
    *out = inode;
    return STATUS_OK;
}

static enum status disk_open(struct file_system *fs, const char *path, int flags, struct file **out,
                             struct error *error)
{
    struct sim_disk *disk = (struct sim_disk *)fs;
    struct sim_inode *inode = sim_disk_find(disk, path);
    if (inode == NULL) {
        if ((flags & FILE_CREATE) == 0) return disk_misses(error, path);
        enum status status = disk_create(disk, path, false, &inode, error);
        if (status != STATUS_OK) return status;
    } else if (inode->directory) {
        return error_set(error, STATUS_IO, "%s: is a directory", path);
    } else if ((flags & FILE_CREATE) != 0 && (flags & FILE_EXCLUSIVE) != 0) {
        return error_set(error, STATUS_EXISTS, "%s: exists", path);
    }
    if ((flags & FILE_TRUNCATE) != 0 && inode->bytes > 0) {
        bool dies = disk_counts_operation(disk);
        sim_file_set_length(inode, 0);
        if (dies) disk_crash(disk);
    }
    *out = file_new(disk, inode, flags);
    return STATUS_OK;
}

static void disk_close(struct file *base)
{
    file_forget((struct sim_file *)base);
}

static enum status disk_read(struct file *base, void *data, size_t bytes, int64_t at,
                             size_t *read_bytes, struct error *error)
{
    struct sim_file *file = (struct sim_file *)base;
    struct sim_inode *inode = file->inode;
    struct sim_disk *disk = file->disk;
    *read_bytes = 0;
    disk->time_us += OPERATION_US;
    if (at < 0) return error_set(error, STATUS_INVALID, "read at a negative position");
    if (at >= inode->bytes || bytes == 0) return STATUS_OK;
    int64_t part = inode->bytes - at;
    if ((uint64_t)part > bytes) part = (int64_t)bytes;
    bool touches_bad = at < inode->unreadable_to && at + part > inode->unreadable_from;
    if ((touches_bad && disk_is_under_test(disk)) || disk_draws(disk, disk->faults.read_error_ppm))
        return disk_fails(error, "read");
    sim_file_read(inode, at, data, part);
    *read_bytes = (size_t)part;
    return STATUS_OK;
}

static enum status disk_read_nowait(struct file *base, void *data, size_t bytes, int64_t at,
                                    size_t *read_bytes, struct error *error)
{
    struct sim_disk *disk = ((struct sim_file *)base)->disk;
    if (disk_draws(disk, disk->faults.cold_ppm)) {
        *read_bytes = 0;
        return STATUS_AGAIN;
    }
    return disk_read(base, data, bytes, at, read_bytes, error);
}

static int64_t disk_write_time(const struct sim_disk *disk, size_t bytes)
{
    int64_t rate = disk->faults.bytes_per_ms > 0 ? disk->faults.bytes_per_ms : BYTES_PER_MS;
    return (int64_t)bytes * 1000 / rate;
}

static enum status disk_write(struct file *base, const void *data, size_t bytes, int64_t at,
                              struct error *error)
{
    struct sim_file *file = (struct sim_file *)base;
    struct sim_disk *disk = file->disk;
    ASSERT(file->writable && at >= 0);
    bool dies = disk_counts_operation(disk);
    disk->time_us += disk_write_time(disk, bytes);
    int64_t part = (int64_t)bytes;
    if (dies) part = random_between(&disk->world->random, 0, part);
    bool fails = disk_draws(disk, disk->faults.write_error_ppm);
    bool full = !disk_has_room(disk, file->inode, at + part);
    if (fails) part = random_between(&disk->world->random, 0, part);
    while (part > 0 && !disk_has_room(disk, file->inode, at + part))
        part -= part < SIM_PAGE_BYTES ? part : SIM_PAGE_BYTES;
    int64_t place = at;
    if (disk_draws(disk, disk->faults.misdirect_ppm) && file->inode->bytes > 0)
        place = random_between(&disk->world->random, 0, file->inode->bytes - 1);
    if (place + part > file->inode->bytes && place != at) place = at;
    sim_file_write(file->inode, place, data, part);
    if (dies) disk_crash(disk);
    if (fails) return disk_fails(error, "write");
    if (full) return error_set(error, STATUS_NO_SPACE, "write: no space left on device");
    return STATUS_OK;
}

static void disk_count_sync_time(struct sim_disk *disk)
{
    const struct sim_disk_faults *faults = &disk->faults;
    if (disk_draws(disk, faults->slow_sync_ppm))
        disk->time_us += sim_world_between(disk->world, SYNC_US_MAX, faults->slow_sync_us);
    else if (faults->sync_us_max > 0)
        disk->time_us += sim_world_between(disk->world, faults->sync_us_min, faults->sync_us_max);
    else
        disk->time_us += sim_world_between(disk->world, SYNC_US_MIN, SYNC_US_MAX);
}

static uint64_t world_below(void *context, uint64_t bound)
{
    struct sim_world *world = context;
    return random_below(&world->random, bound);
}

static struct sim_chooser disk_chooser(const struct sim_disk *disk)
{
    return (struct sim_chooser){world_below, disk->world};
}

static enum status disk_sync(struct file *base, struct error *error)
{
    struct sim_file *file = (struct sim_file *)base;
    struct sim_disk *disk = file->disk;
    bool dies = disk_counts_operation(disk);
    disk_count_sync_time(disk);
    if (disk_draws(disk, disk->faults.sync_error_ppm)) {
        const struct sim_chooser chooser = disk_chooser(disk);
        sim_file_sync_fails(file->inode, &chooser);
        return disk_fails(error, "fdatasync");
    }
    if (disk->faults.lies && disk_is_under_test(disk))
        disk->lied = true;
    else
        sim_file_sync(file->inode);
    if (dies) disk_crash(disk);
    return STATUS_OK;
}

static enum status disk_size(struct file *base, int64_t *bytes, struct error *error)
{
    (void)error;
    *bytes = ((struct sim_file *)base)->inode->bytes;
    return STATUS_OK;
}

static enum status disk_set_length(struct sim_file *file, int64_t bytes, const char *what,
                                   struct error *error)
{
    struct sim_disk *disk = file->disk;
    ASSERT(file->writable && bytes >= 0);
    bool dies = disk_counts_operation(disk);
    if (disk_draws(disk, disk->faults.write_error_ppm)) return disk_fails(error, what);
    if (!disk_has_room(disk, file->inode, bytes))
        return error_set(error, STATUS_NO_SPACE, "%s: no space left on device", what);
    sim_file_set_length(file->inode, bytes);
    if (dies) disk_crash(disk);
    return STATUS_OK;
}

static enum status disk_truncate(struct file *base, int64_t bytes, struct error *error)
{
    return disk_set_length((struct sim_file *)base, bytes, "truncate", error);
}

static enum status disk_allocate(struct file *base, int64_t bytes, struct error *error)
{
    struct sim_file *file = (struct sim_file *)base;
    if (bytes <= file->inode->bytes) return STATUS_OK;
    return disk_set_length(file, bytes, "allocate", error);
}

static enum status disk_lock(struct file *base, struct error *error)
{
    struct sim_file *file = (struct sim_file *)base;
    if (file->inode->lock_owner != NULL && file->inode->lock_owner != file)
        return error_set(error, STATUS_CONFLICT, "lock is held by another process");
    file->inode->lock_owner = file;
    return STATUS_OK;
}

/* Names. */

static enum status disk_rename(struct file_system *fs, const char *from, const char *to,
                               struct error *error)
{
    struct sim_disk *disk = (struct sim_disk *)fs;
    char from_name[SIM_NAME_BYTES_MAX], to_name[SIM_NAME_BYTES_MAX];
    struct sim_inode *inode = sim_disk_find(disk, from);
    struct sim_inode *from_parent = sim_disk_find_parent(disk, from, from_name);
    struct sim_inode *to_parent = sim_disk_find_parent(disk, to, to_name);
    if (inode == NULL || from_parent == NULL || to_parent == NULL) return disk_misses(error, from);
    struct sim_inode *there = sim_disk_find(disk, to);
    if (there != NULL && (there->directory != inode->directory || there->entry_count > 0))
        return error_set(error, STATUS_EXISTS, "%s: is in the way", to);
    bool dies = disk_counts_operation(disk);
    if (disk_draws(disk, disk->faults.directory_error_ppm)) return disk_fails(error, "rename");
    sim_inode_ref(inode);
    if (from_parent == to_parent) {
        sim_directory_set(to_parent, to_name, inode, from_name);
    } else {
        /* Two directories, synced apart: after a crash both names may be there, or neither. */
        sim_directory_set(to_parent, to_name, inode, NULL);
        sim_directory_set(from_parent, from_name, NULL, NULL);
    }
    sim_inode_unref(inode);
    if (dies) disk_crash(disk);
    return STATUS_OK;
}

static enum status disk_remove_name(struct sim_disk *disk, const char *path, bool directory,
                                    struct error *error)
{
    char name[SIM_NAME_BYTES_MAX];
    struct sim_inode *inode = sim_disk_find(disk, path);
    struct sim_inode *parent = sim_disk_find_parent(disk, path, name);
    if (inode == NULL || parent == NULL) return disk_misses(error, path);
    if (inode->directory != directory)
        return error_set(error, STATUS_IO, "%s: %s a directory", path, directory ? "not" : "is");
    if (inode->entry_count > 0) return error_set(error, STATUS_IO, "%s: directory not empty", path);
    bool dies = disk_counts_operation(disk);
    if (disk_draws(disk, disk->faults.directory_error_ppm)) return disk_fails(error, path);
    sim_directory_set(parent, name, NULL, NULL);
    if (dies) disk_crash(disk);
    return STATUS_OK;
}

static enum status disk_remove(struct file_system *fs, const char *path, struct error *error)
{
    return disk_remove_name((struct sim_disk *)fs, path, false, error);
}

static enum status disk_remove_directory(struct file_system *fs, const char *path,
                                         struct error *error)
{
    return disk_remove_name((struct sim_disk *)fs, path, true, error);
}

static enum status disk_make_directory(struct file_system *fs, const char *path,
                                       struct error *error)
{
    struct sim_disk *disk = (struct sim_disk *)fs;
    struct sim_inode *inode = sim_disk_find(disk, path);
    if (inode == NULL) return disk_create(disk, path, true, &inode, error);
    if (!inode->directory) return error_set(error, STATUS_EXISTS, "%s: not a directory", path);
    return STATUS_OK;
}

static enum status disk_sync_directory(struct file_system *fs, const char *path,
                                       struct error *error)
{
    struct sim_disk *disk = (struct sim_disk *)fs;
    struct sim_inode *inode = sim_disk_find(disk, path);
    if (inode == NULL || !inode->directory) return disk_misses(error, path);
    bool dies = disk_counts_operation(disk);
    disk_count_sync_time(disk);
    if (disk_draws(disk, disk->faults.directory_error_ppm)) {
        sim_directory_sync_fails(inode);
        /* The next process finds the names, and cannot know: to lose them is to forget. */
        disk->lied = true;
        return disk_fails(error, path);
    }
    if (disk->faults.lies && disk_is_under_test(disk))
        disk->lied = true;
    else
        sim_directory_sync(inode);
    if (dies) disk_crash(disk);
    return STATUS_OK;
}

static enum status disk_list(struct file_system *fs, const char *path, file_list_fn each,
                             void *context, struct error *error)
{
    struct sim_disk *disk = (struct sim_disk *)fs;
    struct sim_inode *inode = sim_disk_find(disk, path);
    if (inode == NULL || !inode->directory) return disk_misses(error, path);
    if (disk_draws(disk, disk->faults.read_error_ppm)) return disk_fails(error, path);
    /* The callback may remove what it was shown, the directory included, or die: look again. */
    char name[SIM_NAME_BYTES_MAX] = "";
    for (;;) {
        inode = sim_disk_find(disk, path);
        const struct sim_entry *entry = inode == NULL ? NULL : sim_directory_after(inode, name);
        if (entry == NULL) return STATUS_OK;
        memcpy(name, entry->name, strlen(entry->name) + 1);
        enum file_kind kind = entry->inode->directory ? FILE_KIND_DIRECTORY : FILE_KIND_REGULAR;
        if (!each(context, name, kind)) return STATUS_OK;
    }
}

static enum status disk_kind(struct file_system *fs, const char *path, enum file_kind *kind,
                             struct error *error)
{
    const struct sim_inode *inode = sim_disk_find((struct sim_disk *)fs, path);
    if (inode == NULL) return disk_misses(error, path);
    *kind = inode->directory ? FILE_KIND_DIRECTORY : FILE_KIND_REGULAR;
    return STATUS_OK;
}

static enum status disk_free_bytes(struct file_system *fs, const char *path, int64_t *bytes,
                                   struct error *error)
{
    const struct sim_disk *disk = (const struct sim_disk *)fs;
    (void)path;
    (void)error;
    *bytes = disk->faults.capacity_bytes == 0
                 ? INT64_C(1) << 40
                 : disk->faults.capacity_bytes - disk->volume.used_bytes;
    if (*bytes < 0) *bytes = 0;
    return STATUS_OK;
}

static const struct file_system_ops sim_disk_ops = {
    .open = disk_open,
    .close = disk_close,
    .read = disk_read,
    .read_nowait = disk_read_nowait,
    .write = disk_write,
    .sync = disk_sync,
    .size = disk_size,
    .truncate = disk_truncate,
    .allocate = disk_allocate,
    .rename = disk_rename,
    .remove = disk_remove,
    .make_directory = disk_make_directory,
    .remove_directory = disk_remove_directory,
    .sync_directory = disk_sync_directory,
    .list = disk_list,
    .kind = disk_kind,
    .lock = disk_lock,
    .free_bytes = disk_free_bytes,
};

/* The rig's side. */

struct sim_disk *sim_disk_new(struct sim_world *world, struct sim_machine *machine)
{
    struct sim_disk *disk = sim_alloc(sizeof(*disk));
    disk->base.ops = &sim_disk_ops;
    disk->world = world;
    disk->machine = machine;
    sim_volume_init(&disk->volume);
    return disk;
}

void sim_disk_free(struct sim_disk *disk)
{
    sim_volume_deinit(&disk->volume);
    sim_release(disk);
}

struct file_system *sim_disk_file_system(struct sim_disk *disk)
{
    return &disk->base;
}

struct sim_disk_faults *sim_disk_faults(struct sim_disk *disk)
{
    return &disk->faults;
}

void sim_disk_arm_crash(struct sim_disk *disk, uint32_t operation, int death)
{
    disk->crash_in = operation;
    disk->crash_death = death;
}

uint64_t sim_disk_operations(const struct sim_disk *disk)
{
    return disk->operations;
}

int64_t sim_disk_used_bytes(const struct sim_disk *disk)
{
    return disk->volume.used_bytes;
}

int64_t sim_disk_take_time(struct sim_disk *disk)
{
    int64_t time_us = disk->time_us;
    disk->time_us = 0;
    return time_us;
}

void sim_disk_process_died(struct sim_disk *disk)
{
    disk->crash_in = 0;
    disk->time_us = 0;
}

void sim_disk_on_forgetting(struct sim_disk *disk, sim_disk_may_fn may_forget, void *context)
{
    disk->may_forget = may_forget;
    disk->may_context = context;
}

void sim_disk_power_cut(struct sim_disk *disk, const struct sim_power_cut *cut)
{
    if (disk->lied && disk->may_forget != NULL && !disk->may_forget(disk->may_context))
        sim_volume_settle(&disk->volume);
    disk->lied = false;
    struct sim_power_cut drawn = {.chooser = disk_chooser(disk)};
    if (cut == NULL) {
        drawn.leftover = (enum sim_leftover)random_below(&disk->world->random, 3);
        cut = &drawn;
    }
    sim_volume_power_cut(&disk->volume, cut);
}
