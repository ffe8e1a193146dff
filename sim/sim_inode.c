#include "sim/sim_inode.h"

#include <string.h>

#include "base/assert.h"
#include "sim/world.h"

static int64_t pages_of(int64_t bytes)
{
    return (bytes + SIM_PAGE_BYTES - 1) / SIM_PAGE_BYTES;
}

/* Grows an array for one more element. */
static void *room_for_one(void *array, uint32_t count, uint32_t *capacity, size_t element_bytes)
{
    if (count < *capacity) return array;
    *capacity = *capacity == 0 ? 4 : 2 * *capacity;
    return sim_grow(array, *capacity * element_bytes);
}

static char *copy_name(const char *name)
{
    size_t bytes = strlen(name) + 1;
    char *copy = sim_alloc(bytes);
    memcpy(copy, name, bytes);
    return copy;
}

/* Life and the dirty list. */

struct sim_inode *sim_inode_new(struct sim_volume *volume, bool directory)
{
    struct sim_inode *inode = sim_alloc(sizeof(*inode));
    inode->references = 1;
    inode->directory = directory;
    inode->volume = volume;
    inode->doomed_from = UINT32_MAX;
    volume->inode_count++;
    return inode;
}

static void inode_mark_dirty(struct sim_inode *inode)
{
    if (inode->dirty) return;
    struct sim_volume *volume = inode->volume;
    inode->dirty = true;
    sim_inode_ref(inode);
    inode->dirty_next = NULL;
    inode->dirty_previous = volume->dirty_last;
    if (volume->dirty_last != NULL)
        volume->dirty_last->dirty_next = inode;
    else
        volume->dirty_first = inode;
    volume->dirty_last = inode;
}

static void inode_mark_clean(struct sim_inode *inode)
{
    if (!inode->dirty) return;
    struct sim_volume *volume = inode->volume;
    inode->dirty = false;
    if (inode->dirty_previous != NULL)
        inode->dirty_previous->dirty_next = inode->dirty_next;
    else
        volume->dirty_first = inode->dirty_next;
    if (inode->dirty_next != NULL)
        inode->dirty_next->dirty_previous = inode->dirty_previous;
    else
        volume->dirty_last = inode->dirty_previous;
    sim_inode_unref(inode);
}

void sim_inode_ref(struct sim_inode *inode)
{
    inode->references++;
}

static void file_free(struct sim_inode *file)
{
    for (uint32_t i = 0; i < file->page_count; i++) {
        sim_release(file->pages[i].data);
        if (file->pages[i].saved) sim_release(file->pages[i].durable);
    }
    for (uint32_t i = 0; i < file->change_count; i++)
        sim_release(file->changes[i].data);
    sim_release(file->pages);
    sim_release(file->saved);
    sim_release(file->changes);
    file->volume->used_bytes -= pages_of(file->bytes) * SIM_PAGE_BYTES;
}

static void undo_free(struct sim_undo *undo)
{
    for (int part = 0; part < 2; part++) {
        sim_release(undo->name[part]);
        if (undo->before[part] != NULL) sim_inode_unref(undo->before[part]);
    }
}

static void directory_free(struct sim_inode *directory)
{
    for (uint32_t i = 0; i < directory->entry_count; i++) {
        sim_release(directory->entries[i].name);
        sim_inode_unref(directory->entries[i].inode);
    }
    for (uint32_t i = 0; i < directory->undo_count; i++)
        undo_free(&directory->undo[i]);
    sim_release(directory->entries);
    sim_release(directory->undo);
}

static void file_drop_saved(struct sim_inode *file);
static void file_drop_changes(struct sim_inode *file);
static void directory_forget_undo(struct sim_inode *directory, uint32_t count);

void sim_inode_unref(struct sim_inode *inode)
{
    ASSERT(inode->references > 0);
    inode->references--;
    if (inode->references == 1 && inode->dirty) {
        /* Nobody can reach it any more: what it has not written never matters. */
        if (inode->directory) {
            directory_forget_undo(inode, inode->undo_count);
        } else {
            file_drop_saved(inode);
            file_drop_changes(inode);
        }
        return;
    }
    if (inode->references > 0) return;
    ASSERT(!inode->dirty);
    if (inode->directory)
        directory_free(inode);
    else
        file_free(inode);
    inode->volume->inode_count--;
    sim_release(inode);
}

/* Pages. */

static void file_reserve_pages(struct sim_inode *file, int64_t count)
{
    if (count <= file->page_count) return;
    int64_t capacity = file->page_count < 4 ? 4 : 2 * (int64_t)file->page_count;
    if (capacity < count) capacity = count;
    file->pages = sim_grow(file->pages, (size_t)capacity * sizeof(file->pages[0]));
    memset(&file->pages[file->page_count], 0,
           (size_t)(capacity - file->page_count) * sizeof(file->pages[0]));
    file->page_count = (uint32_t)capacity;
}

static uint8_t *page_copy(const uint8_t *data)
{
    if (data == NULL) return NULL;
    uint8_t *copy = sim_grow(NULL, SIM_PAGE_BYTES);
    memcpy(copy, data, SIM_PAGE_BYTES);
    return copy;
}

/* Keeps the durable copy of a page that is about to change. */
static void page_save(struct sim_inode *file, uint32_t index)
{
    struct sim_page *page = &file->pages[index];
    if (page->saved) return;
    page->saved = true;
    page->durable = page_copy(page->data);
    file->saved =
        room_for_one(file->saved, file->saved_count, &file->saved_capacity, sizeof(file->saved[0]));
    file->saved[file->saved_count++] = index;
}

static uint8_t *page_for_write(struct sim_page *page)
{
    if (page->data == NULL) page->data = sim_alloc(SIM_PAGE_BYTES);
    return page->data;
}

static void file_put_length(struct sim_inode *file, int64_t bytes)
{
    file->volume->used_bytes += (pages_of(bytes) - pages_of(file->bytes)) * SIM_PAGE_BYTES;
    file->bytes = bytes;
}

/* Writes into the visible pages. data NULL: zeros. */
static void pages_put(struct sim_inode *file, int64_t at, const uint8_t *data, int64_t bytes,
                      bool save)
{
    file_reserve_pages(file, pages_of(at + bytes));
    while (bytes > 0) {
        uint32_t index = (uint32_t)(at / SIM_PAGE_BYTES);
        int64_t inside = at % SIM_PAGE_BYTES;
        int64_t part = SIM_PAGE_BYTES - inside < bytes ? SIM_PAGE_BYTES - inside : bytes;
        if (save) page_save(file, index);
        if (data != NULL) {
            memcpy(page_for_write(&file->pages[index]) + inside, data, (size_t)part);
            data += part;
        } else if (file->pages[index].data != NULL) {
            memset(file->pages[index].data + inside, 0, (size_t)part);
        }
        at += part;
        bytes -= part;
    }
}

/* Sets the length; what is cut off reads as zeros should the file grow again. */
static void pages_set_length(struct sim_inode *file, int64_t bytes, bool save)
{
    if (bytes < file->bytes) {
        int64_t end = pages_of(file->bytes) * SIM_PAGE_BYTES;
        int64_t held = (int64_t)file->page_count * SIM_PAGE_BYTES;
        if (end > held) end = held;
        if (bytes < end) pages_put(file, bytes, NULL, end - bytes, save);
    }
    file_put_length(file, bytes);
}

/* The visible state becomes the durable one; `changes` stay. */
static void file_restore_durable(struct sim_inode *file)
{
    for (uint32_t i = 0; i < file->saved_count; i++) {
        struct sim_page *page = &file->pages[file->saved[i]];
        sim_release(page->data);
        page->data = page->durable;
        page->durable = NULL;
        page->saved = false;
    }
    file->saved_count = 0;
    file_put_length(file, file->durable_bytes);
}

/* The durable state becomes the visible one; `changes` stay. */
static void file_drop_saved(struct sim_inode *file)
{
    for (uint32_t i = 0; i < file->saved_count; i++) {
        struct sim_page *page = &file->pages[file->saved[i]];
        sim_release(page->durable);
        page->durable = NULL;
        page->saved = false;
    }
    file->saved_count = 0;
    file->durable_bytes = file->bytes;
}

static void file_drop_changes(struct sim_inode *file)
{
    for (uint32_t i = 0; i < file->change_count; i++)
        sim_release(file->changes[i].data);
    file->change_count = 0;
    inode_mark_clean(file);
}

static void file_add_change(struct sim_inode *file, int64_t at, const void *data, int64_t bytes)
{
    file->changes = room_for_one(file->changes, file->change_count, &file->change_capacity,
                                 sizeof(file->changes[0]));
    struct sim_file_change *change = &file->changes[file->change_count++];
    *change = (struct sim_file_change){.at = at, .bytes = bytes};
    if (data != NULL) {
        change->data = sim_grow(NULL, (size_t)bytes + 1);
        memcpy(change->data, data, (size_t)bytes);
    }
    inode_mark_dirty(file);
}

void sim_file_write(struct sim_inode *file, int64_t at, const void *data, int64_t bytes)
{
    if (bytes == 0) return;
    file_add_change(file, at, data, bytes);
    pages_put(file, at, data, bytes, true);
    if (at + bytes > file->bytes) file_put_length(file, at + bytes);
}

void sim_file_set_length(struct sim_inode *file, int64_t bytes)
{
    if (bytes == file->bytes) return;
    file_add_change(file, -1, NULL, bytes);
    pages_set_length(file, bytes, true);
}

void sim_file_read(const struct sim_inode *file, int64_t at, void *out, int64_t bytes)
{
    uint8_t *to = out;
    ASSERT(at >= 0 && at + bytes <= file->bytes);
    while (bytes > 0) {
        int64_t index = at / SIM_PAGE_BYTES, inside = at % SIM_PAGE_BYTES;
        int64_t part = SIM_PAGE_BYTES - inside < bytes ? SIM_PAGE_BYTES - inside : bytes;
        const uint8_t *data = index < file->page_count ? file->pages[index].data : NULL;
        if (data != NULL)
            memcpy(to, data + inside, (size_t)part);
        else
            memset(to, 0, (size_t)part);
        to += part;
        at += part;
        bytes -= part;
    }
}

/* Brings every change that is not doomed into the durable state, and forgets it. The visible
 * state, doomed changes included, stays as it is. */
static void file_write_back(struct sim_inode *file)
{
    uint32_t count = file->saved_count;
    int64_t visible_bytes = file->bytes;
    uint32_t *indices = sim_alloc((count + 1) * sizeof(*indices));
    uint8_t **visible = sim_alloc((count + 1) * sizeof(*visible));
    for (uint32_t i = 0; i < count; i++) {
        indices[i] = file->saved[i];
        visible[i] = page_copy(file->pages[indices[i]].data);
    }
    file_restore_durable(file);
    uint32_t left = 0;
    for (uint32_t i = 0; i < file->change_count; i++) {
        struct sim_file_change *change = &file->changes[i];
        if (change->doomed) {
            file->changes[left++] = *change;
            continue;
        }
        if (change->at < 0) {
            pages_set_length(file, change->bytes, false);
        } else {
            pages_put(file, change->at, change->data, change->bytes, false);
            if (change->at + change->bytes > file->bytes)
                file_put_length(file, change->at + change->bytes);
        }
        sim_release(change->data);
    }
    file->change_count = left;
    file->durable_bytes = file->bytes;
    for (uint32_t i = 0; i < count; i++) {
        page_save(file, indices[i]);
        sim_release(file->pages[indices[i]].data);
        file->pages[indices[i]].data = visible[i];
    }
    file_put_length(file, visible_bytes);
    sim_release(indices);
    sim_release(visible);
}

void sim_file_sync(struct sim_inode *file)
{
    for (uint32_t i = 0; i < file->change_count; i++) {
        if (!file->changes[i].doomed) continue;
        file_write_back(file);
        return;
    }
    file_drop_saved(file);
    file_drop_changes(file);
}

void sim_file_sync_fails(struct sim_inode *file, const struct sim_chooser *chooser)
{
    for (uint32_t i = 0; i < file->change_count; i++) {
        if (chooser->below(chooser->context, 2) == 0) file->changes[i].doomed = true;
    }
    if (file->change_count > 0) sim_file_sync(file);
}

void sim_file_settle(struct sim_inode *file)
{
    file_write_back(file);
    file_restore_durable(file);
    file_drop_changes(file);
}

void sim_file_damage(struct sim_inode *file, int64_t at, const void *data, int64_t bytes)
{
    const uint8_t *from = data;
    ASSERT(at >= 0 && at + bytes <= file->bytes);
    pages_put(file, at, from, bytes, false);
    for (int64_t i = 0; i < bytes; i++) {
        struct sim_page *page = &file->pages[(at + i) / SIM_PAGE_BYTES];
        if (!page->saved) continue;
        if (page->durable == NULL) page->durable = sim_alloc(SIM_PAGE_BYTES);
        page->durable[(at + i) % SIM_PAGE_BYTES] = from == NULL ? 0 : from[i];
    }
}

/* Power cut. */

static uint64_t choose(const struct sim_power_cut *cut, uint64_t bound)
{
    return bound <= 1 ? 0 : cut->chooser.below(cut->chooser.context, bound);
}

/* What a reader finds in [at, at + bytes), which the lost part of a write left behind. */
static void file_put_leftover(struct sim_inode *file, const struct sim_power_cut *cut, int64_t at,
                              int64_t bytes)
{
    if (cut->leftover == SIM_LEFTOVER_ZEROS) return;
    for (int64_t i = 0; i < bytes; i++) {
        uint8_t byte;
        if (cut->leftover == SIM_LEFTOVER_NOISE)
            byte = (uint8_t)choose(cut, 256);
        else
            sim_file_read(file, i % (at > 0 ? at : 1), &byte, 1);
        pages_put(file, at + i, &byte, 1, false);
    }
}

/* Puts down the part of a write that reached the disk. */
static void file_keep_part(struct sim_inode *file, const struct sim_file_change *change,
                           int64_t from, int64_t to)
{
    pages_put(file, change->at + from, change->data + from, to - from, false);
    if (change->at + to > file->bytes) file_put_length(file, change->at + to);
}

static void file_tear(struct sim_inode *file, const struct sim_power_cut *cut,
                      const struct sim_file_change *change, int64_t sector_bytes)
{
    for (int64_t from = 0; from < change->bytes;) {
        int64_t to = ((change->at + from) / sector_bytes + 1) * sector_bytes - change->at;
        if (to > change->bytes) to = change->bytes;
        if (choose(cut, 2) == 1) file_keep_part(file, change, from, to);
        from = to;
    }
}

/* One unsynced write: lost, kept, a prefix of its bytes, or some of its sectors. */
static void file_cut_write(struct sim_inode *file, const struct sim_power_cut *cut,
                           const struct sim_file_change *change)
{
    int64_t bytes_before = file->bytes;
    switch (choose(cut, 5)) {
    case 0: return;
    case 1: file_keep_part(file, change, 0, change->bytes); return;
    case 2:
        file_keep_part(file, change, 0, (int64_t)choose(cut, (uint64_t)change->bytes + 1));
        break;
    case 3: file_tear(file, cut, change, 512); break;
    default: file_tear(file, cut, change, 4096); break;
    }
    /* The length is metadata of its own: it may have grown by the whole write. */
    int64_t end = change->at + change->bytes;
    if (end <= file->bytes || choose(cut, 2) == 0) return;
    int64_t from = file->bytes > bytes_before ? file->bytes : bytes_before;
    file_put_length(file, end);
    file_reserve_pages(file, pages_of(end));
    file_put_leftover(file, cut, from, end - from);
}

static void file_power_cut(struct sim_inode *file, const struct sim_power_cut *cut)
{
    file_restore_durable(file);
    /* Changes of the length are journaled: what is kept of them is a prefix. */
    uint64_t lengths = 0;
    for (uint32_t i = 0; i < file->change_count; i++)
        lengths += file->changes[i].at < 0;
    uint64_t lengths_kept = lengths == 0 ? 0 : choose(cut, lengths + 1);
    for (uint32_t i = 0; i < file->change_count; i++) {
        const struct sim_file_change *change = &file->changes[i];
        if (change->at >= 0) {
            if (!change->doomed) file_cut_write(file, cut, change);
        } else if (lengths_kept > 0) {
            lengths_kept--;
            if (!change->doomed) pages_set_length(file, change->bytes, false);
        }
    }
    file->durable_bytes = file->bytes;
    file_drop_changes(file);
}

/* Directories. */

/* Index of `name`, or where it would stand. */
static uint32_t entry_index(const struct sim_inode *directory, const char *name, bool *found)
{
    uint32_t low = 0, high = directory->entry_count;
    *found = false;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        int order = strcmp(directory->entries[middle].name, name);
        if (order == 0) {
            *found = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct sim_inode *sim_directory_find(const struct sim_inode *directory, const char *name)
{
    bool found;
    uint32_t index = entry_index(directory, name, &found);
    return found ? directory->entries[index].inode : NULL;
}

const struct sim_entry *sim_directory_after(const struct sim_inode *directory, const char *name)
{
    bool found;
    uint32_t index = entry_index(directory, name, &found);
    if (found) index++;
    return index < directory->entry_count ? &directory->entries[index] : NULL;
}

/* Sets or removes one entry; takes a reference to `inode`. Returns what was there, whose
 * reference passes to the caller. */
static struct sim_inode *entry_put(struct sim_inode *directory, const char *name,
                                   struct sim_inode *inode)
{
    bool found;
    uint32_t index = entry_index(directory, name, &found);
    struct sim_inode *before = found ? directory->entries[index].inode : NULL;
    if (inode != NULL) sim_inode_ref(inode);
    if (found && inode != NULL) {
        directory->entries[index].inode = inode;
    } else if (found) {
        sim_release(directory->entries[index].name);
        directory->entry_count--;
        memmove(&directory->entries[index], &directory->entries[index + 1],
                (directory->entry_count - index) * sizeof(directory->entries[0]));
    } else if (inode != NULL) {
        directory->entries = room_for_one(directory->entries, directory->entry_count,
                                          &directory->entry_capacity, sizeof(struct sim_entry));
        memmove(&directory->entries[index + 1], &directory->entries[index],
                (directory->entry_count - index) * sizeof(directory->entries[0]));
        directory->entries[index] = (struct sim_entry){copy_name(name), inode};
        directory->entry_count++;
    }
    return before;
}

void sim_directory_set(struct sim_inode *directory, const char *name, struct sim_inode *inode,
                       const char *old_name)
{
    directory->undo = room_for_one(directory->undo, directory->undo_count,
                                   &directory->undo_capacity, sizeof(struct sim_undo));
    struct sim_undo *undo = &directory->undo[directory->undo_count++];
    memset(undo, 0, sizeof(*undo));
    if (old_name != NULL) {
        undo->name[1] = copy_name(old_name);
        undo->before[1] = entry_put(directory, old_name, NULL);
    }
    undo->name[0] = copy_name(name);
    undo->before[0] = entry_put(directory, name, inode);
    inode_mark_dirty(directory);
}

static void directory_forget_undo(struct sim_inode *directory, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        undo_free(&directory->undo[i]);
    directory->undo_count -= count;
    memmove(&directory->undo[0], &directory->undo[count],
            directory->undo_count * sizeof(directory->undo[0]));
    if (directory->undo_count == 0) inode_mark_clean(directory);
}

void sim_directory_sync(struct sim_inode *directory)
{
    if (directory->undo_count == 0) return;
    uint32_t count = directory->undo_count;
    if (directory->doomed_from < count) {
        count = directory->doomed_from;
        directory->doomed_from = 0;
    }
    directory_forget_undo(directory, count);
}

void sim_directory_sync_fails(struct sim_inode *directory)
{
    if (directory->undo_count > 0 && directory->doomed_from > 0) directory->doomed_from = 0;
}

static void directory_undo_last(struct sim_inode *directory)
{
    struct sim_undo undo = directory->undo[--directory->undo_count];
    for (int part = 0; part < 2; part++) {
        if (undo.name[part] == NULL) continue;
        struct sim_inode *after = entry_put(directory, undo.name[part], undo.before[part]);
        if (after != NULL) sim_inode_unref(after);
    }
    undo_free(&undo);
}

static void directory_power_cut(struct sim_inode *directory, const struct sim_power_cut *cut)
{
    uint32_t kept_max = directory->doomed_from < directory->undo_count ? directory->doomed_from
                                                                       : directory->undo_count;
    uint32_t kept = (uint32_t)choose(cut, kept_max + 1);
    while (directory->undo_count > kept)
        directory_undo_last(directory);
    directory->doomed_from = UINT32_MAX;
    directory_forget_undo(directory, directory->undo_count);
}

static uint64_t choose_last(void *context, uint64_t bound)
{
    (void)context;
    return bound - 1;
}

void sim_volume_power_cut(struct sim_volume *volume, const struct sim_power_cut *cut)
{
    while (volume->dirty_first != NULL) {
        struct sim_inode *inode = volume->dirty_first;
        if (inode->directory)
            directory_power_cut(inode, cut);
        else
            file_power_cut(inode, cut);
    }
}

void sim_volume_settle(struct sim_volume *volume)
{
    const struct sim_power_cut keep_names = {.chooser = {.below = choose_last}};
    while (volume->dirty_first != NULL) {
        struct sim_inode *inode = volume->dirty_first;
        if (inode->directory) {
            inode->doomed_from = UINT32_MAX;
            directory_power_cut(inode, &keep_names);
        } else {
            sim_file_settle(inode);
        }
    }
}

void sim_volume_init(struct sim_volume *volume)
{
    memset(volume, 0, sizeof(*volume));
    volume->root = sim_inode_new(volume, true);
}

void sim_volume_deinit(struct sim_volume *volume)
{
    sim_volume_settle(volume);
    sim_inode_unref(volume->root);
    ASSERT(volume->inode_count == 0 && volume->used_bytes == 0);
}
