/* file_system.h: all file access of the broker, behind one interface.
 *
 * Calls block: they run on worker threads (executor.h), or before the loop starts. Behind it stand
 * file_system_posix.c and the simulator's virtual disk, which keeps unsynced bytes and unsynced
 * directory operations apart, and can lose, tear, flip, refuse and stall them. So callers state
 * durability in full: file_sync() makes a file's bytes and length durable, not its name; a
 * created, renamed or removed name is durable after sync_directory() of its directory.
 * An error from write or sync is final for that file: never retried as if it were fine.        */
#ifndef MOONMQ_IO_FILE_SYSTEM_H
#define MOONMQ_IO_FILE_SYSTEM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/status.h"

struct file_system;
struct file;

enum file_open_flags {
    FILE_READ = 0,
    FILE_WRITE = 1,     /* read and write */
    FILE_CREATE = 2,    /* create if missing */
    FILE_EXCLUSIVE = 4, /* with FILE_CREATE: STATUS_EXISTS if there */
    FILE_TRUNCATE = 8,
};

enum file_kind { FILE_KIND_REGULAR, FILE_KIND_DIRECTORY, FILE_KIND_OTHER };

/* One directory entry; `name` is valid during the callback. Return false to stop. */
typedef bool (*file_list_fn)(void *context, const char *name, enum file_kind kind);

struct file_system_ops {
    enum status (*open)(struct file_system *fs, const char *path, int flags, struct file **out,
                        struct error *error);
    void (*close)(struct file *file);
    /* Reads up to `bytes` at `at`; short only at the end of the file. */
    enum status (*read)(struct file *file, void *data, size_t bytes, int64_t at, size_t *read_bytes,
                        struct error *error);
    /* As read, but only what is in memory already (RWF_NOWAIT): STATUS_AGAIN if it would block. */
    enum status (*read_nowait)(struct file *file, void *data, size_t bytes, int64_t at,
                               size_t *read_bytes, struct error *error);
    /* All of `bytes`, or an error with the file in an unknown state. */
    enum status (*write)(struct file *file, const void *data, size_t bytes, int64_t at,
                         struct error *error);
    enum status (*sync)(struct file *file, struct error *error); /* fdatasync */
    enum status (*size)(struct file *file, int64_t *bytes, struct error *error);
    enum status (*truncate)(struct file *file, int64_t bytes, struct error *error);
    /* Reserves [0, bytes) as zeros and sets the length to at least that. */
    enum status (*allocate)(struct file *file, int64_t bytes, struct error *error);
    enum status (*rename)(struct file_system *fs, const char *from, const char *to,
                          struct error *error);
    enum status (*remove)(struct file_system *fs, const char *path, struct error *error);
    enum status (*make_directory)(struct file_system *fs, const char *path, struct error *error);
    enum status (*remove_directory)(struct file_system *fs, const char *path, struct error *error);
    enum status (*sync_directory)(struct file_system *fs, const char *path, struct error *error);
    /* Entries but "." and "..", in ascending byte order of their names. */
    enum status (*list)(struct file_system *fs, const char *path, file_list_fn each, void *context,
                        struct error *error);
    /* STATUS_NOT_FOUND if nothing is there. */
    enum status (*kind)(struct file_system *fs, const char *path, enum file_kind *kind,
                        struct error *error);
    /* An exclusive lock held until the file is closed; STATUS_CONFLICT if another holds it. */
    enum status (*lock)(struct file *file, struct error *error);
    /* Free bytes on the device of `path`. */
    enum status (*free_bytes)(struct file_system *fs, const char *path, int64_t *bytes,
                              struct error *error);
};

/* Implementations embed these as their first member. */
struct file_system {
    const struct file_system_ops *ops;
};
struct file {
    const struct file_system_ops *ops;
};

struct file_system *file_system_posix(void); /* the one instance, never freed */

/* Thin wrappers: file_open(fs, …), file_read(file, …) and so on; errors come prefixed with the
 * path or, for an open file, with what the caller prefixes. */
enum status file_open(struct file_system *fs, const char *path, int flags, struct file **out,
                      struct error *error) STATUS_MUST_CHECK;
void file_close(struct file *file); /* NULL is allowed */
enum status file_read(struct file *file, void *data, size_t bytes, int64_t at, size_t *read_bytes,
                      struct error *error) STATUS_MUST_CHECK;
enum status file_read_nowait(struct file *file, void *data, size_t bytes, int64_t at,
                             size_t *read_bytes, struct error *error) STATUS_MUST_CHECK;
enum status file_write(struct file *file, const void *data, size_t bytes, int64_t at,
                       struct error *error) STATUS_MUST_CHECK;
enum status file_sync(struct file *file, struct error *error) STATUS_MUST_CHECK;
enum status file_size(struct file *file, int64_t *bytes, struct error *error) STATUS_MUST_CHECK;
enum status file_truncate(struct file *file, int64_t bytes, struct error *error) STATUS_MUST_CHECK;
enum status file_allocate(struct file *file, int64_t bytes, struct error *error) STATUS_MUST_CHECK;
enum status file_rename(struct file_system *fs, const char *from, const char *to,
                        struct error *error) STATUS_MUST_CHECK;
enum status file_remove(struct file_system *fs, const char *path,
                        struct error *error) STATUS_MUST_CHECK;
enum status file_make_directory(struct file_system *fs, const char *path,
                                struct error *error) STATUS_MUST_CHECK; /* existing: OK */
enum status file_remove_directory(struct file_system *fs, const char *path,
                                  struct error *error) STATUS_MUST_CHECK;
enum status file_sync_directory(struct file_system *fs, const char *path,
                                struct error *error) STATUS_MUST_CHECK;
enum status file_list(struct file_system *fs, const char *path, file_list_fn each, void *context,
                      struct error *error) STATUS_MUST_CHECK;
enum status file_kind(struct file_system *fs, const char *path, enum file_kind *kind,
                      struct error *error) STATUS_MUST_CHECK;
enum status file_lock(struct file *file, struct error *error) STATUS_MUST_CHECK;
enum status file_free_bytes(struct file_system *fs, const char *path, int64_t *bytes,
                            struct error *error) STATUS_MUST_CHECK;

/* Whole files of at most `bytes_max`: appended to `out`. STATUS_NOT_FOUND if missing. */
enum status file_read_whole(struct file_system *fs, const char *path, size_t bytes_max,
                            struct buffer *out, struct error *error) STATUS_MUST_CHECK;
/* path.tmp written, synced, renamed to path, directory synced: old or new after any crash. */
enum status file_replace(struct file_system *fs, const char *path, const void *data, size_t bytes,
                         struct error *error) STATUS_MUST_CHECK;
/* A directory and everything below it; missing is OK. Bounded depth 8. */
enum status file_remove_tree(struct file_system *fs, const char *path,
                             struct error *error) STATUS_MUST_CHECK;

#endif
