/* file_system.c: the interface's calls, handed to the implementation with the path put before each
 * error; and what is made of them: whole files, replacing, removing a tree.                   */
#include "io/file_system.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"

#define FILE_TREE_DEPTH_MAX 8

/* Puts the path before the text of a failure. */
static enum status file_result(enum status status, const char *path, struct error *error)
{
    if (status != STATUS_OK) error_prefix(error, "%s", path);
    return status;
}

enum status file_open(struct file_system *fs, const char *path, int flags, struct file **out,
                      struct error *error)
{
    *out = NULL;
    return file_result(fs->ops->open(fs, path, flags, out, error), path, error);
}

void file_close(struct file *file)
{
    if (file != NULL) file->ops->close(file);
}

enum status file_read(struct file *file, void *data, size_t bytes, int64_t at, size_t *read_bytes,
                      struct error *error)
{
    return file->ops->read(file, data, bytes, at, read_bytes, error);
}

enum status file_read_nowait(struct file *file, void *data, size_t bytes, int64_t at,
                             size_t *read_bytes, struct error *error)
{
    return file->ops->read_nowait(file, data, bytes, at, read_bytes, error);
}

enum status file_write(struct file *file, const void *data, size_t bytes, int64_t at,
                       struct error *error)
{
    return file->ops->write(file, data, bytes, at, error);
}

enum status file_sync(struct file *file, struct error *error)
{
    return file->ops->sync(file, error);
}

enum status file_size(struct file *file, int64_t *bytes, struct error *error)
{
    return file->ops->size(file, bytes, error);
}

enum status file_truncate(struct file *file, int64_t bytes, struct error *error)
{
    return file->ops->truncate(file, bytes, error);
}

enum status file_allocate(struct file *file, int64_t bytes, struct error *error)
{
    return file->ops->allocate(file, bytes, error);
}

enum status file_rename(struct file_system *fs, const char *from, const char *to,
                        struct error *error)
{
    return file_result(fs->ops->rename(fs, from, to, error), from, error);
}

enum status file_remove(struct file_system *fs, const char *path, struct error *error)
{
    return file_result(fs->ops->remove(fs, path, error), path, error);
}

enum status file_make_directory(struct file_system *fs, const char *path, struct error *error)
{
    return file_result(fs->ops->make_directory(fs, path, error), path, error);
}

enum status file_remove_directory(struct file_system *fs, const char *path, struct error *error)
{
    return file_result(fs->ops->remove_directory(fs, path, error), path, error);
}

enum status file_sync_directory(struct file_system *fs, const char *path, struct error *error)
{
    return file_result(fs->ops->sync_directory(fs, path, error), path, error);
}

enum status file_list(struct file_system *fs, const char *path, file_list_fn each, void *context,
                      struct error *error)
{
    return file_result(fs->ops->list(fs, path, each, context, error), path, error);
}

enum status file_kind(struct file_system *fs, const char *path, enum file_kind *kind,
                      struct error *error)
{
    return file_result(fs->ops->kind(fs, path, kind, error), path, error);
}

enum status file_lock(struct file *file, struct error *error)
{
    return file->ops->lock(file, error);
}

enum status file_free_bytes(struct file_system *fs, const char *path, int64_t *bytes,
                            struct error *error)
{
    return file_result(fs->ops->free_bytes(fs, path, bytes, error), path, error);
}

/* Appends all of an open file. The size is asked first, so that nothing is read of a file that is
 * too large. */
static enum status file_read_all(struct file *file, size_t bytes_max, struct buffer *out,
                                 struct error *error)
{
    int64_t size = 0;
    enum status status = file_size(file, &size, error);
    if (status != STATUS_OK) return status;
    if (size < 0 || (uint64_t)size > bytes_max) {
        return error_set(error, STATUS_TOO_LARGE, "%lld bytes, at most %zu are expected",
                         (long long)size, bytes_max);
    }
    uint8_t *at = buffer_extend(out, (size_t)size);
    if (at == NULL)
        return error_set(error, STATUS_NO_MEMORY, "no memory for %lld bytes", (long long)size);
    size_t read_bytes = 0;
    status = file_read(file, at, (size_t)size, 0, &read_bytes, error);
    if (status != STATUS_OK) read_bytes = 0;
    out->bytes -= (size_t)size - read_bytes;
    return status;
}

enum status file_read_whole(struct file_system *fs, const char *path, size_t bytes_max,
                            struct buffer *out, struct error *error)
{
    struct file *file = NULL;
    enum status status = file_open(fs, path, FILE_READ, &file, error);
    if (status != STATUS_OK) return status;
    status = file_result(file_read_all(file, bytes_max, out, error), path, error);
    file_close(file);
    return status;
}

/* The directory of `path`: what stands before the last slash. */
static void file_directory_of(const char *path, char directory[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL) {
        strcpy(directory, ".");
    } else if (slash == path) {
        strcpy(directory, "/");
    } else {
        memcpy(directory, path, (size_t)(slash - path));
        directory[slash - path] = '\0';
    }
}

static enum status file_write_temporary(struct file_system *fs, const char *path, const void *data,
                                        size_t bytes, struct error *error)
{
    struct file *file = NULL;
    enum status status =
        file_open(fs, path, FILE_WRITE | FILE_CREATE | FILE_TRUNCATE, &file, error);
    if (status != STATUS_OK) return status;
    status = file_write(file, data, bytes, 0, error);
    if (status == STATUS_OK) status = file_sync(file, error);
    file_close(file);
    return file_result(status, path, error);
}

enum status file_replace(struct file_system *fs, const char *path, const void *data, size_t bytes,
                         struct error *error)
{
    char temporary[PATH_MAX], directory[PATH_MAX];
    int length = snprintf(temporary, sizeof(temporary), "%s.tmp", path);
    if (length < 0 || (size_t)length >= sizeof(temporary)) {
        return error_set(error, STATUS_INVALID, "%.64s…: path too long", path);
    }
    file_directory_of(path, directory);
    enum status status = file_write_temporary(fs, temporary, data, bytes, error);
    if (status == STATUS_OK) {
        status = file_rename(fs, temporary, path, error);
    }
    if (status != STATUS_OK) {
        /* Best effort: a temporary file left behind is overwritten by the next replacement. */
        enum status removed = file_remove(fs, temporary, NULL);
        (void)removed;
        return status;
    }
    return file_sync_directory(fs, directory, error);
}

/* Entries of one directory, as kind byte and name with its NUL. They are collected before the
 * first is removed: a listing under change is promised by nobody. */
static bool file_tree_collect(void *context, const char *name, enum file_kind kind)
{
    struct buffer *entries = context;
    buffer_put_u8(entries, (uint8_t)kind);
    buffer_put(entries, name, strlen(name) + 1);
    return !buffer_failed(entries);
}

static enum status file_tree_remove(struct file_system *fs, const char *path, int depth,
                                    struct error *error);

static enum status file_tree_remove_entry(struct file_system *fs, const char *path,
                                          const char *name, enum file_kind kind, int depth,
                                          struct error *error)
{
    char entry[PATH_MAX];
    int length = snprintf(entry, sizeof(entry), "%s/%s", path, name);
    if (length < 0 || (size_t)length >= sizeof(entry)) {
        return error_set(error, STATUS_INVALID, "%.64s…: path too long", path);
    }
    if (kind == FILE_KIND_DIRECTORY) return file_tree_remove(fs, entry, depth + 1, error);
    return file_remove(fs, entry, error);
}

static enum status file_tree_remove(struct file_system *fs, const char *path, int depth,
                                    struct error *error)
{
    if (depth > FILE_TREE_DEPTH_MAX) {
        return error_set(error, STATUS_LIMIT, "%s: deeper than %d directories", path,
                         FILE_TREE_DEPTH_MAX);
    }
    struct buffer entries;
    buffer_init(&entries, 0);
    enum status status = file_list(fs, path, file_tree_collect, &entries, error);
    if (status == STATUS_OK && buffer_failed(&entries)) {
        status = error_set(error, STATUS_NO_MEMORY, "%s: no memory for the listing", path);
    }
    for (size_t at = 0; status == STATUS_OK && at < entries.bytes;) {
        enum file_kind kind = (enum file_kind)entries.data[at];
        const char *name = (const char *)entries.data + at + 1;
        status = file_tree_remove_entry(fs, path, name, kind, depth, error);
        at += 1 + strlen(name) + 1;
    }
    buffer_deinit(&entries);
    if (status == STATUS_OK) status = file_remove_directory(fs, path, error);
    return status;
}

enum status file_remove_tree(struct file_system *fs, const char *path, struct error *error)
{
    enum file_kind kind;
    enum status status = file_kind(fs, path, &kind, error);
    if (status == STATUS_NOT_FOUND) return STATUS_OK;
    if (status != STATUS_OK) return status;
    return file_tree_remove(fs, path, 1, error);
}
