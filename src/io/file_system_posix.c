/* file_system_posix.c: the file system of the machine.
 *
 * Stateless but for one thing: a file remembers the size of its commits, to choose how allocate()
 * reserves. Thread: any; one file may be written, synced and allocated by different workers.
 *
 * What allocate() does, measured on ext4 (a step of 8 MiB, then appends each with fdatasync, p50):
 *
 *     commit    extending   fallocate only   fallocate + zeros written + synced
 *      4 KiB      213 us        213 us            140 us
 *     64 KiB      320 us        330 us            197 us
 *    256 KiB      630 us        650 us            435 us
 *
 * Reserved extents are unwritten: each sync converts some, which costs a journal commit. Zeros
 * written ahead make the later syncs pure data writes, but cost some 16 ms of the disk for 8 MiB.
 * So small commits are worth zeros; above 64 KiB a commit the zeros would cost the disk more than
 * the syncs save, and the step is only reserved (contiguous, and no late "no space").         */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/assert.h"
#include "io/file_system.h"

#define POSIX_FILE_MODE          0640
#define POSIX_DIRECTORY_MODE     0750
#define POSIX_ZEROS_BYTES        (256 * 1024)
#define POSIX_ZEROED_COMMIT_MAX  (64 * 1024)
#define POSIX_TRANSFER_BYTES_MAX (1u << 30)

struct posix_file {
    struct file base;
    int fd;
    /* Written and synced since the last allocate(): the average commit. */
    atomic_uint_fast64_t written_bytes;
    atomic_uint_fast64_t syncs;
};

static struct posix_file *posix_file_of(struct file *file)
{
    return (struct posix_file *)file;
}

static enum status posix_status_of(int code)
{
    switch (code) {
    case ENOENT: return STATUS_NOT_FOUND;
    case EEXIST: return STATUS_EXISTS;
    case ENOTEMPTY: return STATUS_CONFLICT;
    case ENOSPC:
    case EDQUOT: return STATUS_NO_SPACE;
    case ENOMEM: return STATUS_NO_MEMORY;
    case EMFILE:
    case ENFILE: return STATUS_LIMIT;
    case EACCES:
    case EPERM:
    case EROFS: return STATUS_DENIED;
    case ENAMETOOLONG: return STATUS_INVALID;
    default: return STATUS_IO;
    }
}

static enum status posix_failed(struct error *error, const char *what, int code)
{
    char text[128];
    return error_set(error, posix_status_of(code), "%s: %s", what,
                     strerror_r(code, text, sizeof(text)));
}

static enum status posix_open(struct file_system *fs, const char *path, int flags,
                              struct file **out, struct error *error)
{
    int mode = O_CLOEXEC | ((flags & FILE_WRITE) ? O_RDWR : O_RDONLY);
    if (flags & FILE_CREATE) mode |= O_CREAT;
    if (flags & FILE_EXCLUSIVE) mode |= O_EXCL;
    if (flags & FILE_TRUNCATE) mode |= O_TRUNC;
    int fd;
    do {
        fd = open(path, mode, POSIX_FILE_MODE);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0) return posix_failed(error, "open", errno);
    struct posix_file *file = calloc(1, sizeof(*file));
    if (file == NULL) {
        close(fd);
        return error_set(error, STATUS_NO_MEMORY, "open: out of memory");
    }
    file->base.ops = fs->ops;
    file->fd = fd;
    *out = &file->base;
    return STATUS_OK;
}

static void posix_close(struct file *file)
{
    /* What close could report concerns bytes that nobody asked to be synced. */
    close(posix_file_of(file)->fd);
    free(file);
}

static enum status posix_read(struct file *file, void *data, size_t bytes, int64_t at,
                              size_t *read_bytes, struct error *error)
{
    size_t done = 0;
    *read_bytes = 0;
    while (done < bytes) {
        size_t step =
            bytes - done < POSIX_TRANSFER_BYTES_MAX ? bytes - done : POSIX_TRANSFER_BYTES_MAX;
        ssize_t got = pread(posix_file_of(file)->fd, (uint8_t *)data + done, step,
                            (off_t)(at + (int64_t)done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return posix_failed(error, "read", errno);
        if (got == 0) break;
        done += (size_t)got;
    }
    *read_bytes = done;
    return STATUS_OK;
}

static enum status posix_read_nowait(struct file *file, void *data, size_t bytes, int64_t at,
                                     size_t *read_bytes, struct error *error)
{
    size_t done = 0;
    *read_bytes = 0;
    while (done < bytes) {
        struct iovec part = {(uint8_t *)data + done, bytes - done};
        ssize_t got =
            preadv2(posix_file_of(file)->fd, &part, 1, (off_t)(at + (int64_t)done), RWF_NOWAIT);
        if (got < 0 && errno == EINTR) continue;
        /* A file system without RWF_NOWAIT (EOPNOTSUPP) leaves all reads to the workers. */
        if (got < 0 && (errno == EAGAIN || errno == EOPNOTSUPP)) return STATUS_AGAIN;
        if (got < 0) return posix_failed(error, "read", errno);
        if (got == 0) break;
        done += (size_t)got;
    }
    *read_bytes = done;
    return STATUS_OK;
}

/* Writes all of it, whatever it is for. */
static enum status posix_write_all(int fd, const void *data, size_t bytes, int64_t at,
                                   struct error *error)
{
    const uint8_t *from = data;
    while (bytes > 0) {
        size_t step = bytes < POSIX_TRANSFER_BYTES_MAX ? bytes : POSIX_TRANSFER_BYTES_MAX;
        ssize_t put = pwrite(fd, from, step, (off_t)at);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return posix_failed(error, "write", errno);
        if (put == 0) return error_set(error, STATUS_IO, "write: the device takes no bytes");
        from += put;
        at += put;
        bytes -= (size_t)put;
    }
    return STATUS_OK;
}

static enum status posix_write(struct file *file, const void *data, size_t bytes, int64_t at,
                               struct error *error)
{
    struct posix_file *posix = posix_file_of(file);
    atomic_fetch_add_explicit(&posix->written_bytes, bytes, memory_order_relaxed);
    return posix_write_all(posix->fd, data, bytes, at, error);
}

static enum status posix_fdatasync(int fd, struct error *error)
{
    int result;
    do {
        result = fdatasync(fd);
    } while (result != 0 && errno == EINTR);
    return result == 0 ? STATUS_OK : posix_failed(error, "sync", errno);
}

static enum status posix_sync(struct file *file, struct error *error)
{
    struct posix_file *posix = posix_file_of(file);
    atomic_fetch_add_explicit(&posix->syncs, 1, memory_order_relaxed);
    return posix_fdatasync(posix->fd, error);
}

static enum status posix_size(struct file *file, int64_t *bytes, struct error *error)
{
    struct stat status;
    if (fstat(posix_file_of(file)->fd, &status) != 0) return posix_failed(error, "stat", errno);
    *bytes = status.st_size;
    return STATUS_OK;
}

static enum status posix_truncate(struct file *file, int64_t bytes, struct error *error)
{
    int result;
    do {
        result = ftruncate(posix_file_of(file)->fd, (off_t)bytes);
    } while (result != 0 && errno == EINTR);
    return result == 0 ? STATUS_OK : posix_failed(error, "truncate", errno);
}

static bool posix_commits_are_small(struct posix_file *posix)
{
    uint64_t written = atomic_exchange_explicit(&posix->written_bytes, 0, memory_order_relaxed);
    uint64_t syncs = atomic_exchange_explicit(&posix->syncs, 0, memory_order_relaxed);
    return syncs == 0 || written / syncs <= POSIX_ZEROED_COMMIT_MAX;
}

static enum status posix_write_zeros(int fd, int64_t from, int64_t to, struct error *error)
{
    static const uint8_t zeros[POSIX_ZEROS_BYTES];
    enum status status = STATUS_OK;
    while (status == STATUS_OK && from < to) {
        int64_t step = to - from < POSIX_ZEROS_BYTES ? to - from : POSIX_ZEROS_BYTES;
        status = posix_write_all(fd, zeros, (size_t)step, from, error);
        from += step;
    }
    return status;
}

static enum status posix_allocate(struct file *file, int64_t bytes, struct error *error)
{
    struct posix_file *posix = posix_file_of(file);
    int64_t size = 0;
    enum status status = posix_size(file, &size, error);
    if (status != STATUS_OK || size >= bytes) return status;
    int result;
    do {
        result = fallocate(posix->fd, 0, (off_t)size, (off_t)(bytes - size));
    } while (result != 0 && errno == EINTR);
    bool reserved = result == 0;
    if (!reserved && errno != EOPNOTSUPP) return posix_failed(error, "allocate", errno);
    if (!posix_commits_are_small(posix) && reserved) return STATUS_OK;
    status = posix_write_zeros(posix->fd, size, bytes, error);
    return status == STATUS_OK ? posix_fdatasync(posix->fd, error) : status;
}

static enum status posix_rename(struct file_system *fs, const char *from, const char *to,
                                struct error *error)
{
    (void)fs;
    return rename(from, to) == 0 ? STATUS_OK : posix_failed(error, "rename", errno);
}

static enum status posix_remove(struct file_system *fs, const char *path, struct error *error)
{
    (void)fs;
    return unlink(path) == 0 ? STATUS_OK : posix_failed(error, "remove", errno);
}

static enum status posix_kind(struct file_system *fs, const char *path, enum file_kind *kind,
                              struct error *error)
{
    (void)fs;
    struct stat status;
    if (stat(path, &status) != 0) return posix_failed(error, "stat", errno);
    *kind = S_ISREG(status.st_mode)   ? FILE_KIND_REGULAR
            : S_ISDIR(status.st_mode) ? FILE_KIND_DIRECTORY
                                      : FILE_KIND_OTHER;
    return STATUS_OK;
}

static enum status posix_make_directory(struct file_system *fs, const char *path,
                                        struct error *error)
{
    if (mkdir(path, POSIX_DIRECTORY_MODE) == 0) return STATUS_OK;
    int code = errno;
    enum file_kind kind;
    if (code == EEXIST && posix_kind(fs, path, &kind, NULL) == STATUS_OK &&
        kind == FILE_KIND_DIRECTORY) {
        return STATUS_OK;
    }
    return posix_failed(error, "make directory", code);
}

static enum status posix_remove_directory(struct file_system *fs, const char *path,
                                          struct error *error)
{
    (void)fs;
    return rmdir(path) == 0 ? STATUS_OK : posix_failed(error, "remove directory", errno);
}

static enum status posix_sync_directory(struct file_system *fs, const char *path,
                                        struct error *error)
{
    (void)fs;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return posix_failed(error, "open directory", errno);
    int result;
    do {
        result = fsync(fd);
    } while (result != 0 && errno == EINTR);
    enum status status = result == 0 ? STATUS_OK : posix_failed(error, "sync directory", errno);
    close(fd);
    return status;
}

struct posix_entry {
    char *name;
    enum file_kind kind;
};

struct posix_listing {
    struct posix_entry *entries;
    size_t count;
    size_t capacity;
};

/* Symbolic links are not followed: what a tree's removal walks into is only our own. */
static enum file_kind posix_entry_kind(DIR *directory, const struct dirent *entry)
{
    if (entry->d_type == DT_REG) return FILE_KIND_REGULAR;
    if (entry->d_type == DT_DIR) return FILE_KIND_DIRECTORY;
    struct stat status;
    if (entry->d_type != DT_UNKNOWN ||
        fstatat(dirfd(directory), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
        return FILE_KIND_OTHER;
    }
    return S_ISREG(status.st_mode)   ? FILE_KIND_REGULAR
           : S_ISDIR(status.st_mode) ? FILE_KIND_DIRECTORY
                                     : FILE_KIND_OTHER;
}

static bool posix_listing_add(struct posix_listing *listing, const char *name, enum file_kind kind)
{
    if (listing->count == listing->capacity) {
        size_t capacity = listing->capacity == 0 ? 32 : listing->capacity * 2;
        struct posix_entry *entries =
            reallocarray(listing->entries, capacity, sizeof(listing->entries[0]));
        if (entries == NULL) return false;
        listing->entries = entries;
        listing->capacity = capacity;
    }
    char *copy = strdup(name);
    if (copy == NULL) return false;
    listing->entries[listing->count++] = (struct posix_entry){copy, kind};
    return true;
}

static enum status posix_listing_read(struct posix_listing *listing, DIR *directory,
                                      struct error *error)
{
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(directory);
        if (entry == NULL) return errno == 0 ? STATUS_OK : posix_failed(error, "list", errno);
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (!posix_listing_add(listing, entry->d_name, posix_entry_kind(directory, entry))) {
            return error_set(error, STATUS_NO_MEMORY, "list: out of memory");
        }
    }
}

static int posix_entry_compare(const void *a, const void *b)
{
    return strcmp(((const struct posix_entry *)a)->name, ((const struct posix_entry *)b)->name);
}

static enum status posix_list(struct file_system *fs, const char *path, file_list_fn each,
                              void *context, struct error *error)
{
    (void)fs;
    DIR *directory = opendir(path);
    if (directory == NULL) return posix_failed(error, "list", errno);
    struct posix_listing listing = {0};
    enum status status = posix_listing_read(&listing, directory, error);
    closedir(directory);
    if (listing.count > 0) {
        qsort(listing.entries, listing.count, sizeof(listing.entries[0]), posix_entry_compare);
    }
    bool more = status == STATUS_OK;
    for (size_t i = 0; i < listing.count; i++) {
        more = more && each(context, listing.entries[i].name, listing.entries[i].kind);
        free(listing.entries[i].name);
    }
    free(listing.entries);
    return status;
}

static enum status posix_lock(struct file *file, struct error *error)
{
    int result;
    do {
        result = flock(posix_file_of(file)->fd, LOCK_EX | LOCK_NB);
    } while (result != 0 && errno == EINTR);
    if (result == 0) return STATUS_OK;
    if (errno == EWOULDBLOCK) {
        return error_set(error, STATUS_CONFLICT, "lock: another process holds it");
    }
    return posix_failed(error, "lock", errno);
}

static enum status posix_free_bytes(struct file_system *fs, const char *path, int64_t *bytes,
                                    struct error *error)
{
    (void)fs;
    struct statvfs status;
    if (statvfs(path, &status) != 0) return posix_failed(error, "statvfs", errno);
    *bytes = (int64_t)(status.f_bavail * status.f_frsize);
    return STATUS_OK;
}

static const struct file_system_ops posix_ops = {
    .open = posix_open,
    .close = posix_close,
    .read = posix_read,
    .read_nowait = posix_read_nowait,
    .write = posix_write,
    .sync = posix_sync,
    .size = posix_size,
    .truncate = posix_truncate,
    .allocate = posix_allocate,
    .rename = posix_rename,
    .remove = posix_remove,
    .make_directory = posix_make_directory,
    .remove_directory = posix_remove_directory,
    .sync_directory = posix_sync_directory,
    .list = posix_list,
    .kind = posix_kind,
    .lock = posix_lock,
    .free_bytes = posix_free_bytes,
};

struct file_system *file_system_posix(void)
{
    static struct file_system posix = {&posix_ops};
    return &posix;
}
