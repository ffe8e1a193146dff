/* sim_inode.h: the files and directories of a virtual disk, each in two states at once: what a
 * reader sees now, and what would be left after a power cut.
 *
 * A file is an array of pages; a page that was changed since the last sync keeps its durable copy
 * beside it, and the changes themselves are kept one by one, because a power cut keeps, loses or
 * tears each of them separately. A directory keeps its changes since its last sync as an undo
 * list: a power cut keeps some prefix of them.
 *
 * A change that a failed sync gave up on is `doomed`: still read from memory, as the page cache
 * shows it, but no later sync writes it (the trap of retrying fsync).                           */
#ifndef MOONMQ_SIM_SIM_INODE_H
#define MOONMQ_SIM_SIM_INODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_PAGE_BYTES 4096

/* Where a power cut takes its decisions from: a number below `bound`. Tests enumerate them all. */
struct sim_chooser {
    uint64_t (*below)(void *context, uint64_t bound);
    void *context;
};

/* What stands in blocks that belong to a file but whose write was lost. */
enum sim_leftover { SIM_LEFTOVER_ZEROS, SIM_LEFTOVER_NOISE, SIM_LEFTOVER_STALE };

struct sim_power_cut {
    struct sim_chooser chooser;
    enum sim_leftover leftover;
};

struct sim_page {
    uint8_t *data;    /* NULL: zeros */
    uint8_t *durable; /* valid if saved; NULL: zeros */
    bool saved;
};

struct sim_file_change {
    int64_t at; /* < 0: the length becomes `bytes` */
    int64_t bytes;
    uint8_t *data;
    bool doomed;
};

struct sim_entry {
    char *name;
    struct sim_inode *inode;
};

/* The undoing of one name: it had `before` (NULL: nothing). A rename has two parts. */
struct sim_undo {
    char *name[2];
    struct sim_inode *before[2];
};

struct sim_inode {
    uint32_t references; /* names, undo lists, open handles, the dirty list */
    bool directory;
    bool dirty; /* on the dirty list */
    struct sim_volume *volume;
    struct sim_inode *dirty_previous, *dirty_next;

    /* a file */
    int64_t bytes, durable_bytes;
    struct sim_page *pages;
    uint32_t page_count;
    uint32_t *saved; /* indices of saved pages */
    uint32_t saved_count, saved_capacity;
    struct sim_file_change *changes;
    uint32_t change_count, change_capacity;
    const void *lock_owner;
    int64_t unreadable_from, unreadable_to; /* reads that touch this fail */

    /* a directory; entries ascend by name */
    struct sim_entry *entries;
    uint32_t entry_count, entry_capacity;
    struct sim_undo *undo;
    uint32_t undo_count, undo_capacity;
    uint32_t doomed_from; /* undo entries from here on were given up by a failed sync */
};

/* One disk's inodes. */
struct sim_volume {
    struct sim_inode *root;
    struct sim_inode *dirty_first, *dirty_last;
    int64_t used_bytes; /* pages of all lengths */
    uint32_t inode_count;
};

void sim_volume_init(struct sim_volume *volume);
void sim_volume_deinit(struct sim_volume *volume);
/* Every inode settles into what the cut left of it. */
void sim_volume_power_cut(struct sim_volume *volume, const struct sim_power_cut *cut);
/* Everything becomes durable (but for doomed changes, which are lost): memory was written back. */
void sim_volume_settle(struct sim_volume *volume);

struct sim_inode *sim_inode_new(struct sim_volume *volume, bool directory);
void sim_inode_ref(struct sim_inode *inode);
void sim_inode_unref(struct sim_inode *inode);

/* Files. */
void sim_file_write(struct sim_inode *file, int64_t at, const void *data, int64_t bytes);
void sim_file_set_length(struct sim_inode *file, int64_t bytes);
void sim_file_read(const struct sim_inode *file, int64_t at, void *out, int64_t bytes);
void sim_file_sync(struct sim_inode *file);
/* A sync that failed: `keep(i)` decides by the chooser which changes reached the disk all the same;
 * the others are doomed. */
void sim_file_sync_fails(struct sim_inode *file, const struct sim_chooser *chooser);
/* Changes both states, as damage at rest does. Only inside the length. */
void sim_file_damage(struct sim_inode *file, int64_t at, const void *data, int64_t bytes);
void sim_file_settle(struct sim_inode *file);

/* Directories. */
struct sim_inode *sim_directory_find(const struct sim_inode *directory, const char *name);
/* The first entry behind `name`, by order of names; NULL: none. */
const struct sim_entry *sim_directory_after(const struct sim_inode *directory, const char *name);
/* name -> inode, and (unless NULL) old_name goes in the same step. NULL inode: name goes. */
void sim_directory_set(struct sim_inode *directory, const char *name, struct sim_inode *inode,
                       const char *old_name);
void sim_directory_sync(struct sim_inode *directory);
void sim_directory_sync_fails(struct sim_inode *directory);

#endif
