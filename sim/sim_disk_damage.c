/* sim_disk_damage.c: what happens to a disk behind the broker's back, and looking at all of it. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "sim/sim_disk_internal.h"
#include "sim/world.h"

#define HASH_START 0xcbf29ce484222325u

static struct sim_inode *find_file(struct sim_disk *disk, const char *path)
{
    struct sim_inode *inode = sim_disk_find(disk, path);
    return inode == NULL || inode->directory ? NULL : inode;
}

bool sim_disk_overwrite(struct sim_disk *disk, const char *path, int64_t at, const void *data,
                        int64_t bytes)
{
    struct sim_inode *file = find_file(disk, path);
    if (file == NULL || at < 0 || at + bytes > file->bytes) return false;
    sim_file_damage(file, at, data, bytes);
    return true;
}

bool sim_disk_flip_bit(struct sim_disk *disk, const char *path, int64_t at, int bit)
{
    struct sim_inode *file = find_file(disk, path);
    uint8_t byte;
    if (file == NULL || at < 0 || at >= file->bytes) return false;
    sim_file_read(file, at, &byte, 1);
    byte ^= (uint8_t)(1u << bit);
    sim_file_damage(file, at, &byte, 1);
    return true;
}

bool sim_disk_set_length(struct sim_disk *disk, const char *path, int64_t bytes)
{
    struct sim_inode *file = find_file(disk, path);
    if (file == NULL || bytes < 0) return false;
    sim_file_settle(file);
    sim_file_set_length(file, bytes);
    sim_file_sync(file);
    return true;
}

bool sim_disk_append_noise(struct sim_disk *disk, const char *path, int64_t bytes)
{
    struct sim_inode *file = find_file(disk, path);
    if (file == NULL) return false;
    sim_file_settle(file);
    for (int64_t i = 0; i < bytes; i++) {
        uint8_t byte = (uint8_t)random_below(&disk->world->random, 256);
        sim_file_write(file, file->bytes, &byte, 1);
    }
    sim_file_sync(file);
    return true;
}

bool sim_disk_make_unreadable(struct sim_disk *disk, const char *path, int64_t from, int64_t to)
{
    struct sim_inode *file = find_file(disk, path);
    if (file == NULL) return false;
    file->unreadable_from = from;
    file->unreadable_to = to;
    return true;
}

bool sim_disk_delete(struct sim_disk *disk, const char *path)
{
    char name[SIM_NAME_BYTES_MAX];
    struct sim_inode *parent = sim_disk_find_parent(disk, path, name);
    if (parent == NULL || sim_directory_find(parent, name) == NULL) return false;
    sim_directory_set(parent, name, NULL, NULL);
    sim_directory_sync(parent);
    return true;
}

void sim_disk_wipe(struct sim_disk *disk)
{
    struct sim_inode *root = disk->volume.root;
    while (root->entry_count > 0) {
        char name[SIM_NAME_BYTES_MAX];
        snprintf(name, sizeof(name), "%s", root->entries[0].name);
        sim_directory_set(root, name, NULL, NULL);
    }
    sim_directory_sync(root);
}

static void copy_tree(struct sim_volume *volume, struct sim_inode *to, const struct sim_inode *from)
{
    for (uint32_t i = 0; i < from->entry_count; i++) {
        const struct sim_entry *entry = &from->entries[i];
        struct sim_inode *copy = sim_inode_new(volume, entry->inode->directory);
        sim_directory_set(to, entry->name, copy, NULL);
        sim_inode_unref(copy);
        if (copy->directory) {
            copy_tree(volume, copy, entry->inode);
            continue;
        }
        uint8_t page[SIM_PAGE_BYTES];
        sim_file_set_length(copy, entry->inode->bytes);
        for (uint32_t index = 0; index < entry->inode->page_count; index++) {
            int64_t at = (int64_t)index * SIM_PAGE_BYTES;
            if (entry->inode->pages[index].data == NULL || at >= entry->inode->bytes) continue;
            int64_t bytes = entry->inode->bytes - at;
            if (bytes > SIM_PAGE_BYTES) bytes = SIM_PAGE_BYTES;
            sim_file_read(entry->inode, at, page, bytes);
            sim_file_write(copy, at, page, bytes);
        }
        sim_file_sync(copy);
    }
    sim_directory_sync(to);
}

struct sim_disk_image *sim_disk_copy(struct sim_disk *disk)
{
    struct sim_disk_image *image = sim_alloc(sizeof(*image));
    sim_volume_init(&image->volume);
    copy_tree(&image->volume, image->volume.root, disk->volume.root);
    return image;
}

void sim_disk_restore(struct sim_disk *disk, const struct sim_disk_image *image)
{
    sim_disk_wipe(disk);
    copy_tree(&disk->volume, disk->volume.root, image->volume.root);
}

void sim_disk_image_free(struct sim_disk_image *image)
{
    if (image == NULL) return;
    sim_volume_deinit(&image->volume);
    sim_release(image);
}

static bool each_file_below(const struct sim_inode *directory, char *path, size_t path_bytes,
                            sim_disk_file_fn each, void *context)
{
    for (uint32_t i = 0; i < directory->entry_count; i++) {
        const struct sim_entry *entry = &directory->entries[i];
        size_t name_bytes = strlen(entry->name);
        ASSERT(path_bytes + name_bytes + 2 < SIM_PATH_BYTES_MAX);
        path[path_bytes] = '/';
        memcpy(path + path_bytes + 1, entry->name, name_bytes + 1);
        bool more =
            entry->inode->directory
                ? each_file_below(entry->inode, path, path_bytes + 1 + name_bytes, each, context)
                : each(context, path, entry->inode->bytes);
        if (!more) return false;
    }
    return true;
}

void sim_disk_each_file(struct sim_disk *disk, sim_disk_file_fn each, void *context)
{
    char path[SIM_PATH_BYTES_MAX] = "";
    each_file_below(disk->volume.root, path, 0, each, context);
}

struct hash_context {
    struct sim_disk *disk;
    uint64_t hash;
};

static void hash_bytes(uint64_t *hash, const uint8_t *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        *hash = (*hash ^ data[i]) * 0x100000001b3u;
}

static bool hash_file(void *context, const char *path, int64_t bytes)
{
    struct hash_context *hashing = context;
    const struct sim_inode *file = sim_disk_find(hashing->disk, path);
    uint8_t page[SIM_PAGE_BYTES];
    hash_bytes(&hashing->hash, (const uint8_t *)path, strlen(path) + 1);
    for (int64_t at = 0; at < bytes; at += SIM_PAGE_BYTES) {
        int64_t part = bytes - at < SIM_PAGE_BYTES ? bytes - at : SIM_PAGE_BYTES;
        sim_file_read(file, at, page, part);
        hash_bytes(&hashing->hash, page, (size_t)part);
    }
    return true;
}

uint64_t sim_disk_hash(struct sim_disk *disk)
{
    struct hash_context hashing = {disk, HASH_START};
    sim_disk_each_file(disk, hash_file, &hashing);
    return hashing.hash;
}
