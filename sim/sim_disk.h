/* sim_disk.h: the disk of one virtual machine, behind io/file_system.h.
 *
 * kill -9 keeps everything written; a power cut keeps what was synced, and of the rest what the
 * seed says (sim_inode.h). The rig can let operations fail, lie, stall or be slow, can stop the
 * process between two of them, and can damage what is at rest. Faults and crash points strike the
 * machine's own process only: the rig itself may read and write freely.                        */
#ifndef MOONMQ_SIM_SIM_DISK_H
#define MOONMQ_SIM_SIM_DISK_H

#include <stdbool.h>
#include <stdint.h>

#include "io/file_system.h"
#include "sim/sim_inode.h"

struct sim_world;
struct sim_machine;
struct sim_disk;
struct sim_disk_image;

struct sim_disk_faults {
    uint32_t write_error_ppm;     /* write, allocate, truncate: STATUS_IO */
    uint32_t sync_error_ppm;      /* and the dirty pages are given up */
    uint32_t directory_error_ppm; /* create, rename, remove, directory sync */
    uint32_t read_error_ppm;
    uint32_t cold_ppm;      /* read_nowait finds nothing in memory */
    uint32_t misdirect_ppm; /* a write lands elsewhere in its file */
    bool lies;              /* syncs succeed and do nothing */
    int64_t capacity_bytes; /* 0: no limit */
    int64_t sync_us_min, sync_us_max;
    uint32_t slow_sync_ppm; /* this many syncs take up to slow_sync_us */
    int64_t slow_sync_us;
    int64_t bytes_per_ms; /* write rate; 0: free */
};

struct sim_disk *sim_disk_new(struct sim_world *world, struct sim_machine *machine);
void sim_disk_free(struct sim_disk *disk);
struct file_system *sim_disk_file_system(struct sim_disk *disk);

/* Knobs in force; the rig changes them at will. */
struct sim_disk_faults *sim_disk_faults(struct sim_disk *disk);
/* The process dies (enum sim_death) at its k-th changing operation from now, k >= 1, before it,
 * after it, or, if it is a write, in the middle. 0 disarms. */
void sim_disk_arm_crash(struct sim_disk *disk, uint32_t operation, int death);
uint64_t sim_disk_operations(const struct sim_disk *disk); /* changing ones so far */
int64_t sim_disk_used_bytes(const struct sim_disk *disk);
/* Virtual time the operations since the last call cost. */
int64_t sim_disk_take_time(struct sim_disk *disk);

/* Asked when the power goes and syncs have been lied about since it last did: false, and nothing is
 * lost this time. */
typedef bool (*sim_disk_may_fn)(void *context);
void sim_disk_on_forgetting(struct sim_disk *disk, sim_disk_may_fn may_forget, void *context);

/* For the machine. `cut` NULL: drawn from the world's seed. */
void sim_disk_process_died(struct sim_disk *disk);
void sim_disk_power_cut(struct sim_disk *disk, const struct sim_power_cut *cut);

/* Damage at rest (sim_disk_damage.c). Paths as the process sees them. False: no such file, or the
 * place lies outside of it. All of it is durable at once. */
bool sim_disk_flip_bit(struct sim_disk *disk, const char *path, int64_t at, int bit);
bool sim_disk_overwrite(struct sim_disk *disk, const char *path, int64_t at, const void *data,
                        int64_t bytes); /* data NULL: zeros */
bool sim_disk_set_length(struct sim_disk *disk, const char *path, int64_t bytes);
bool sim_disk_append_noise(struct sim_disk *disk, const char *path, int64_t bytes);
/* Reads that touch [from, to) fail from now on; from = to heals. */
bool sim_disk_make_unreadable(struct sim_disk *disk, const char *path, int64_t from, int64_t to);
bool sim_disk_delete(struct sim_disk *disk, const char *path); /* file or whole tree */
void sim_disk_wipe(struct sim_disk *disk);

/* A copy of all files, durable as they stand; and putting one in the place of what is there. */
struct sim_disk_image *sim_disk_copy(struct sim_disk *disk);
void sim_disk_restore(struct sim_disk *disk, const struct sim_disk_image *image);
void sim_disk_image_free(struct sim_disk_image *image);

/* Every file, by ascending path, with its length. Return false to stop. */
typedef bool (*sim_disk_file_fn)(void *context, const char *path, int64_t bytes);
void sim_disk_each_file(struct sim_disk *disk, sim_disk_file_fn each, void *context);
/* A hash over names and contents: recovery run twice must give the same (I24). */
uint64_t sim_disk_hash(struct sim_disk *disk);

#endif
