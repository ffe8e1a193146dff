/* memory_disk.h: a file system in memory for unit tests, with what a unit test needs to break.
 *
 * Every file and directory knows what of it is synced. memory_disk_power_cut() leaves just that.
 * The n-th changing operation from now can be made to fail, once or for ever; files can be damaged.
 * Nothing is freed before memory_disk_deinit().                                                */
#ifndef MOONMQ_TESTS_MEMORY_DISK_H
#define MOONMQ_TESTS_MEMORY_DISK_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "io/file_system.h"

struct memory_node {
    bool directory;
    uint8_t *data, *durable;
    size_t bytes, capacity, durable_bytes, durable_capacity;
    size_t dirty_from, dirty_to;  /* what differs from `durable`, at most */
    struct memory_entry *entries; /* directories */
    size_t entry_count;
    struct memory_entry *durable_entries;
    size_t durable_entry_count;
    struct memory_node *next; /* all nodes */
};
struct memory_entry {
    char name[300];
    struct memory_node *node;
};
struct memory_file {
    struct file file;
    struct memory_disk *disk;
    struct memory_node *node;
    bool writable;
};
struct memory_disk {
    struct file_system fs;
    struct memory_node *nodes, *root;
    uint64_t operations; /* changing ones so far */
    uint64_t fail_at;    /* 0: never */
    enum status fail_with;
    bool fail_for_ever;
    bool nowait_misses; /* read_nowait finds nothing in memory */
    uint64_t syncs, writes, directory_syncs, opens;
    int64_t capacity_bytes, used_bytes; /* 0: unlimited */
    int open_files;
};

static inline enum status memory_error(struct error *error, enum status status, const char *what)
{
    return error_set(error, status, "%s", what);
}
/* Counts a changing operation; not OK: it is the one to fail. */
static inline enum status memory_step(struct memory_disk *disk, struct error *error,
                                      const char *what)
{
    disk->operations++;
    bool fails = disk->fail_at != 0 && (disk->fail_for_ever ? disk->operations >= disk->fail_at
                                                            : disk->operations == disk->fail_at);
    return fails ? memory_error(error, disk->fail_with, what) : STATUS_OK;
}
static inline struct memory_node *memory_node_new(struct memory_disk *disk, bool directory)
{
    struct memory_node *node = calloc(1, sizeof(*node));
    node->directory = directory;
    node->next = disk->nodes;
    disk->nodes = node;
    return node;
}
static inline struct memory_entry *memory_entry_find(struct memory_node *directory,
                                                     const char *name, size_t name_bytes)
{
    for (size_t i = 0; i < directory->entry_count; i++) {
        struct memory_entry *entry = &directory->entries[i];
        if (strlen(entry->name) == name_bytes && memcmp(entry->name, name, name_bytes) == 0) {
            return entry;
        }
    }
    return NULL;
}
/* Kept ascending by name. */
static inline void memory_entry_set(struct memory_node *directory, const char *name,
                                    struct memory_node *node)
{
    struct memory_entry *entry = memory_entry_find(directory, name, strlen(name));
    if (entry != NULL && node != NULL) {
        entry->node = node;
    } else if (entry != NULL) {
        size_t at = (size_t)(entry - directory->entries);
        memmove(entry, entry + 1, (directory->entry_count - at - 1) * sizeof(*entry));
        directory->entry_count--;
    } else if (node != NULL) {
        directory->entries =
            realloc(directory->entries, (directory->entry_count + 1) * sizeof(*directory->entries));
        size_t at = directory->entry_count++;
        while (at > 0 && strcmp(directory->entries[at - 1].name, name) > 0) {
            directory->entries[at] = directory->entries[at - 1];
            at--;
        }
        snprintf(directory->entries[at].name, sizeof(directory->entries[at].name), "%s", name);
        directory->entries[at].node = node;
    }
}
/* The node of a path; *parent and *name: where it is or would be. NULL: not there. */
static inline struct memory_node *memory_find(struct memory_disk *disk, const char *path,
                                              struct memory_node **parent, const char **name)
{
    struct memory_node *node = disk->root;
    if (parent != NULL) *parent = NULL;
    while (*path == '/') {
        path++;
    }
    while (*path != '\0') {
        if (node == NULL || !node->directory) {
            if (parent != NULL) *parent = NULL;
            return NULL;
        }
        const char *end = strchrnul(path, '/');
        if (parent != NULL) *parent = node;
        if (name != NULL) *name = path;
        struct memory_entry *entry = memory_entry_find(node, path, (size_t)(end - path));
        node = entry == NULL ? NULL : entry->node;
        path = end;
        while (*path == '/') {
            path++;
        }
    }
    return node;
}
static inline void memory_resize_data(uint8_t **data, size_t *capacity, size_t bytes)
{
    if (bytes <= *capacity) return;
    size_t wanted = *capacity * 2 > bytes ? *capacity * 2 : bytes;
    /* Untouched pages of large files cost nothing. */
    uint8_t *grown = calloc(1, wanted);
    if (*capacity > 0) memcpy(grown, *data, *capacity);
    free(*data);
    *data = grown;
    *capacity = wanted;
}
static inline void memory_touch(struct memory_node *node, size_t from, size_t to)
{
    if (from >= to) return;
    if (node->dirty_from >= node->dirty_to) {
        node->dirty_from = from;
        node->dirty_to = to;
    }
    if (from < node->dirty_from) node->dirty_from = from;
    if (to > node->dirty_to) node->dirty_to = to;
}
static inline enum status memory_set_length(struct memory_disk *disk, struct memory_node *node,
                                            size_t bytes, struct error *error)
{
    int64_t growth = (int64_t)bytes - (int64_t)node->bytes;
    if (disk->capacity_bytes > 0 && growth > 0 &&
        disk->used_bytes + growth > disk->capacity_bytes) {
        return memory_error(error, STATUS_NO_SPACE, "no space left");
    }
    disk->used_bytes += growth;
    memory_resize_data(&node->data, &node->capacity, bytes);
    if (bytes < node->bytes) {
        memset(node->data + bytes, 0, node->bytes - bytes);
        memory_touch(node, bytes, node->bytes);
    }
    node->bytes = bytes;
    return STATUS_OK;
}

static inline enum status memory_open(struct file_system *fs, const char *path, int flags,
                                      struct file **out, struct error *error)
{
    struct memory_disk *disk = (struct memory_disk *)fs;
    struct memory_node *parent = NULL;
    const char *name = NULL;
    struct memory_node *node = memory_find(disk, path, &parent, &name);
    disk->opens++;
    if (node == NULL) {
        if (!(flags & FILE_CREATE) || parent == NULL) {
            return memory_error(error, STATUS_NOT_FOUND, "open: no such file");
        }
        enum status status = memory_step(disk, error, "create fails");
        if (status != STATUS_OK) return status;
        node = memory_node_new(disk, false);
        memory_entry_set(parent, name, node);
    } else if (node->directory) {
        return memory_error(error, STATUS_IO, "open: a directory");
    } else if (flags & FILE_EXCLUSIVE) {
        return memory_error(error, STATUS_EXISTS, "open: exists");
    }
    if (flags & FILE_TRUNCATE) {
        enum status status = memory_step(disk, error, "truncate fails");
        if (status == STATUS_OK) status = memory_set_length(disk, node, 0, error);
        if (status != STATUS_OK) return status;
    }
    struct memory_file *file = calloc(1, sizeof(*file));
    file->file.ops = fs->ops;
    file->disk = disk;
    file->node = node;
    file->writable = flags & FILE_WRITE;
    disk->open_files++;
    *out = &file->file;
    return STATUS_OK;
}
static inline void memory_close(struct file *file)
{
    ((struct memory_file *)file)->disk->open_files--;
    free(file);
}
static inline enum status memory_read(struct file *base, void *data, size_t bytes, int64_t at,
                                      size_t *read_bytes, struct error *error)
{
    struct memory_node *node = ((struct memory_file *)base)->node;
    (void)error;
    size_t left = (size_t)at >= node->bytes ? 0 : node->bytes - (size_t)at;
    *read_bytes = bytes < left ? bytes : left;
    if (*read_bytes > 0) memcpy(data, node->data + at, *read_bytes);
    return STATUS_OK;
}
static inline enum status memory_read_nowait(struct file *base, void *data, size_t bytes,
                                             int64_t at, size_t *read_bytes, struct error *error)
{
    *read_bytes = 0;
    if (((struct memory_file *)base)->disk->nowait_misses) return STATUS_AGAIN;
    return memory_read(base, data, bytes, at, read_bytes, error);
}
static inline enum status memory_write(struct file *base, const void *data, size_t bytes,
                                       int64_t at, struct error *error)
{
    struct memory_file *file = (struct memory_file *)base;
    ASSERT(file->writable);
    enum status status = memory_step(file->disk, error, "write fails");
    size_t to = (size_t)at + bytes;
    file->disk->writes++;
    if (status != STATUS_OK) {
        /* Half of it got there. */
        bytes /= 2;
        to = (size_t)at + bytes;
        if (to > file->node->bytes) (void)!memory_set_length(file->disk, file->node, to, NULL);
        if (bytes > 0 && to <= file->node->bytes) {
            memcpy(file->node->data + at, data, bytes);
            memory_touch(file->node, (size_t)at, to);
        }
        return status;
    }
    if (to > file->node->bytes) status = memory_set_length(file->disk, file->node, to, error);
    if (status == STATUS_OK && bytes > 0) {
        memcpy(file->node->data + at, data, bytes);
        memory_touch(file->node, (size_t)at, to);
    }
    return status;
}
static inline enum status memory_sync(struct file *base, struct error *error)
{
    struct memory_file *file = (struct memory_file *)base;
    struct memory_node *node = file->node;
    enum status status = memory_step(file->disk, error, "sync fails");
    if (status != STATUS_OK) return status;
    file->disk->syncs++;
    memory_resize_data(&node->durable, &node->durable_capacity, node->capacity);
    if (node->dirty_to > node->dirty_from) {
        memcpy(node->durable + node->dirty_from, node->data + node->dirty_from,
               node->dirty_to - node->dirty_from);
    }
    node->dirty_from = node->dirty_to = 0;
    node->durable_bytes = node->bytes;
    return STATUS_OK;
}
static inline enum status memory_size(struct file *base, int64_t *bytes, struct error *error)
{
    (void)error;
    *bytes = (int64_t)((struct memory_file *)base)->node->bytes;
    return STATUS_OK;
}
static inline enum status memory_truncate(struct file *base, int64_t bytes, struct error *error)
{
    struct memory_file *file = (struct memory_file *)base;
    enum status status = memory_step(file->disk, error, "truncate fails");
    return status == STATUS_OK ? memory_set_length(file->disk, file->node, (size_t)bytes, error)
                               : status;
}
static inline enum status memory_allocate(struct file *base, int64_t bytes, struct error *error)
{
    struct memory_file *file = (struct memory_file *)base;
    enum status status = memory_step(file->disk, error, "allocate fails");
    if (status != STATUS_OK || (size_t)bytes <= file->node->bytes) return status;
    return memory_set_length(file->disk, file->node, (size_t)bytes, error);
}
static inline enum status memory_rename(struct file_system *fs, const char *from, const char *to,
                                        struct error *error)
{
    struct memory_disk *disk = (struct memory_disk *)fs;
    struct memory_node *from_parent, *to_parent;
    const char *from_name = NULL, *to_name = NULL;
    struct memory_node *node = memory_find(disk, from, &from_parent, &from_name);
    memory_find(disk, to, &to_parent, &to_name);
    if (node == NULL || to_parent == NULL) return memory_error(error, STATUS_NOT_FOUND, "rename");
    enum status status = memory_step(disk, error, "rename fails");
    if (status != STATUS_OK) return status;
    memory_entry_set(to_parent, to_name, node);
    memory_entry_set(from_parent, from_name, NULL);
    return STATUS_OK;
}
static inline enum status memory_remove(struct file_system *fs, const char *path,
                                        struct error *error)
{
    struct memory_disk *disk = (struct memory_disk *)fs;
    struct memory_node *parent;
    const char *name = NULL;
    struct memory_node *node = memory_find(disk, path, &parent, &name);
    if (node == NULL) return memory_error(error, STATUS_NOT_FOUND, "remove");
    if (node->directory && node->entry_count > 0) {
        return memory_error(error, STATUS_CONFLICT, "remove: not empty");
    }
    enum status status = memory_step(disk, error, "remove fails");
    if (status == STATUS_OK) memory_entry_set(parent, name, NULL);
    return status;
}
static inline enum status memory_make_directory(struct file_system *fs, const char *path,
                                                struct error *error)
{
    struct memory_disk *disk = (struct memory_disk *)fs;
    struct memory_node *parent;
    const char *name = NULL;
    struct memory_node *node = memory_find(disk, path, &parent, &name);
    if (node != NULL) {
        return node->directory ? STATUS_OK : memory_error(error, STATUS_EXISTS, "make directory");
    }
    if (parent == NULL) return memory_error(error, STATUS_NOT_FOUND, "make directory");
    enum status status = memory_step(disk, error, "make directory fails");
    if (status == STATUS_OK) memory_entry_set(parent, name, memory_node_new(disk, true));
    return status;
}
static inline enum status memory_sync_directory(struct file_system *fs, const char *path,
                                                struct error *error)
{
    struct memory_disk *disk = (struct memory_disk *)fs;
    struct memory_node *node = memory_find(disk, path, NULL, NULL);
    if (node == NULL) return memory_error(error, STATUS_NOT_FOUND, "sync directory");
    enum status status = memory_step(disk, error, "sync directory fails");
    if (status != STATUS_OK) return status;
    disk->directory_syncs++;
    node->durable_entries =
        realloc(node->durable_entries, (node->entry_count + 1) * sizeof(*node->entries));
    if (node->entry_count > 0) {
        memcpy(node->durable_entries, node->entries, node->entry_count * sizeof(*node->entries));
    }
    node->durable_entry_count = node->entry_count;
    return STATUS_OK;
}
static inline enum status memory_list(struct file_system *fs, const char *path, file_list_fn each,
                                      void *context, struct error *error)
{
    struct memory_node *node = memory_find((struct memory_disk *)fs, path, NULL, NULL);
    if (node == NULL || !node->directory) return memory_error(error, STATUS_NOT_FOUND, "list");
    for (size_t i = 0; i < node->entry_count; i++) {
        bool directory = node->entries[i].node->directory;
        if (!each(context, node->entries[i].name,
                  directory ? FILE_KIND_DIRECTORY : FILE_KIND_REGULAR)) {
            break;
        }
    }
    return STATUS_OK;
}
static inline enum status memory_kind(struct file_system *fs, const char *path,
                                      enum file_kind *kind, struct error *error)
{
    struct memory_node *node = memory_find((struct memory_disk *)fs, path, NULL, NULL);
    if (node == NULL) return memory_error(error, STATUS_NOT_FOUND, "kind");
    *kind = node->directory ? FILE_KIND_DIRECTORY : FILE_KIND_REGULAR;
    return STATUS_OK;
}
static inline enum status memory_lock(struct file *file, struct error *error)
{
    (void)file;
    (void)error;
    return STATUS_OK;
}
static inline enum status memory_free_bytes(struct file_system *fs, const char *path,
                                            int64_t *bytes, struct error *error)
{
    struct memory_disk *disk = (struct memory_disk *)fs;
    (void)path;
    (void)error;
    *bytes = disk->capacity_bytes == 0 ? INT64_MAX : disk->capacity_bytes - disk->used_bytes;
    return STATUS_OK;
}

static inline void memory_disk_init(struct memory_disk *disk)
{
    static const struct file_system_ops ops = {.open = memory_open,
                                               .close = memory_close,
                                               .read = memory_read,
                                               .read_nowait = memory_read_nowait,
                                               .write = memory_write,
                                               .sync = memory_sync,
                                               .size = memory_size,
                                               .truncate = memory_truncate,
                                               .allocate = memory_allocate,
                                               .rename = memory_rename,
                                               .remove = memory_remove,
                                               .make_directory = memory_make_directory,
                                               .remove_directory = memory_remove,
                                               .sync_directory = memory_sync_directory,
                                               .list = memory_list,
                                               .kind = memory_kind,
                                               .lock = memory_lock,
                                               .free_bytes = memory_free_bytes};
    *disk = (struct memory_disk){.fs = {.ops = &ops}, .fail_with = STATUS_IO};
    disk->root = memory_node_new(disk, true);
}
static inline void memory_disk_deinit(struct memory_disk *disk)
{
    while (disk->nodes != NULL) {
        struct memory_node *node = disk->nodes;
        disk->nodes = node->next;
        free(node->data);
        free(node->durable);
        free(node->entries);
        free(node->durable_entries);
        free(node);
    }
}
/* What is not synced is gone. */
static inline void memory_disk_power_cut(struct memory_disk *disk)
{
    for (struct memory_node *node = disk->nodes; node != NULL; node = node->next) {
        node->entry_count = node->durable_entry_count;
        if (node->durable_entry_count > 0) {
            node->entries = realloc(node->entries, node->entry_count * sizeof(*node->entries));
            memcpy(node->entries, node->durable_entries,
                   node->entry_count * sizeof(*node->entries));
        }
        memory_resize_data(&node->durable, &node->durable_capacity, node->capacity);
        memory_resize_data(&node->data, &node->capacity, node->durable_capacity);
        if (node->dirty_to > node->dirty_from) {
            memcpy(node->data + node->dirty_from, node->durable + node->dirty_from,
                   node->dirty_to - node->dirty_from);
        }
        node->dirty_from = node->dirty_to = 0;
        node->bytes = node->durable_bytes;
    }
}
/* The root is there from the beginning, durably; so is the DataDir a test makes. */
static inline void memory_disk_settle(struct memory_disk *disk)
{
    for (struct memory_node *node = disk->nodes; node != NULL; node = node->next) {
        node->durable_entries =
            realloc(node->durable_entries, (node->entry_count + 1) * sizeof(*node->entries));
        if (node->entry_count > 0) {
            memcpy(node->durable_entries, node->entries,
                   node->entry_count * sizeof(*node->entries));
        }
        node->durable_entry_count = node->entry_count;
        memory_resize_data(&node->durable, &node->durable_capacity, node->capacity);
        if (node->bytes > 0) memcpy(node->durable, node->data, node->bytes);
        node->dirty_from = node->dirty_to = 0;
        node->durable_bytes = node->bytes;
    }
}
/* A file's content, to look at or to damage; NULL: no such file. */
static inline struct memory_node *memory_disk_file(struct memory_disk *disk, const char *path)
{
    return memory_find(disk, path, NULL, NULL);
}
/* Another disk with the same content, all of it durable. */
static inline struct memory_node *memory_node_copy(struct memory_disk *to,
                                                   const struct memory_node *from)
{
    struct memory_node *node = memory_node_new(to, from->directory);
    for (size_t i = 0; i < from->entry_count; i++) {
        memory_entry_set(node, from->entries[i].name, memory_node_copy(to, from->entries[i].node));
    }
    memory_resize_data(&node->data, &node->capacity, from->bytes);
    if (from->bytes > 0) memcpy(node->data, from->data, from->bytes);
    node->bytes = from->bytes;
    return node;
}
static inline void memory_disk_copy(struct memory_disk *to, const struct memory_disk *from)
{
    memory_disk_init(to);
    struct memory_node *root = memory_node_copy(to, from->root);
    to->root = root;
    memory_disk_settle(to);
}
/* A number over all names and contents. */
static inline uint64_t memory_node_hash(const struct memory_node *node, uint64_t hash)
{
    for (size_t i = 0; i < node->bytes; i++) {
        hash = (hash ^ node->data[i]) * 1099511628211u;
    }
    for (size_t i = 0; i < node->entry_count; i++) {
        for (const char *at = node->entries[i].name; *at != '\0'; at++) {
            hash = (hash ^ (uint8_t)*at) * 1099511628211u;
        }
        hash = memory_node_hash(node->entries[i].node, hash * 31 + 7);
    }
    return hash;
}
static inline uint64_t memory_disk_hash(const struct memory_disk *disk)
{
    return memory_node_hash(disk->root, 14695981039346656037u);
}

#endif
