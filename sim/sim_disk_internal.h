/* sim_disk_internal.h: what sim_disk.c shares with sim_disk_damage.c. */
#ifndef MOONMQ_SIM_SIM_DISK_INTERNAL_H
#define MOONMQ_SIM_SIM_DISK_INTERNAL_H

#include "sim/sim_disk.h"

#define SIM_PATH_BYTES_MAX 1024
#define SIM_NAME_BYTES_MAX 256

struct sim_disk {
    struct file_system base;
    struct sim_world *world;
    struct sim_machine *machine;
    struct sim_volume volume;
    struct sim_disk_faults faults;
    uint64_t operations;
    uint32_t crash_in; /* changing operations until the armed crash; 0: none */
    int crash_death;
    bool lied; /* since the power last went, or names were given up by a failed sync */
    sim_disk_may_fn may_forget;
    void *may_context;
    int64_t time_us;
};

struct sim_disk_image {
    struct sim_volume volume;
};

/* The inode at `path`, or NULL. */
struct sim_inode *sim_disk_find(const struct sim_disk *disk, const char *path);
/* The directory that holds the last name of `path`; NULL if there is none, or no name. */
struct sim_inode *sim_disk_find_parent(const struct sim_disk *disk, const char *path,
                                       char name[SIM_NAME_BYTES_MAX]);

#endif
