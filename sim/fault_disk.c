#include "sim/fault_disk.h"

#include <stdio.h>
#include <string.h>

#define PATH_BYTES_MAX 300

/* Picks one file at random, those of `suffix` only (NULL: any), in one pass. */
struct file_draw {
    struct random *random;
    const char *suffix;
    uint64_t seen;
    char path[PATH_BYTES_MAX];
    int64_t bytes;
};

static bool draw_file(void *context, const char *path, int64_t bytes)
{
    struct file_draw *draw = context;
    size_t length = strlen(path);
    if (bytes == 0 || length >= PATH_BYTES_MAX) return true;
    if (draw->suffix != NULL && (length < strlen(draw->suffix) ||
                                 strcmp(path + length - strlen(draw->suffix), draw->suffix) != 0))
        return true;
    if (random_below(draw->random, ++draw->seen) == 0) {
        memcpy(draw->path, path, length + 1);
        draw->bytes = bytes;
    }
    return true;
}

static struct sim_disk *disk_of(struct sim_faults *faults, int node)
{
    return sim_machine_disk(faults->group->nodes[node].machine);
}

static bool pick_file(struct sim_faults *faults, int node, struct file_draw *draw)
{
    *draw = (struct file_draw){.random = &faults->random};
    /* Segments twice as often as everything else together. */
    if (random_below(&faults->random, 3) != 0) draw->suffix = ".log";
    sim_disk_each_file(disk_of(faults, node), draw_file, draw);
    return draw->seen > 0;
}

/* Half of all damage is found by the next start, the other half by a running process. */
static void maybe_kill(struct sim_faults *faults, int node)
{
    if (random_below(&faults->random, 2) == 0)
        sim_node_kill(&faults->group->nodes[node], SIM_DEATH_KILL);
}

static void tell(struct sim_faults *faults, int node, const char *what, const char *path)
{
    sim_world_trace(faults->group->world, faults->group->nodes[node].machine, "disk: %s %s", what,
                    path);
}

/* Segments are preallocated: most of the damage should hit what is in use. */
static int64_t draw_place(struct sim_faults *faults, const struct file_draw *draw)
{
    int64_t bytes = draw->bytes;
    if (random_below(&faults->random, 2) == 0 && bytes > 4096) bytes = 4096;
    return (int64_t)random_below(&faults->random, (uint64_t)bytes);
}

void sim_fault_flip(struct sim_faults *faults, int node)
{
    struct file_draw draw;
    if (!pick_file(faults, node, &draw)) return;
    maybe_kill(faults, node);
    tell(faults, node, "flips a bit of", draw.path);
    sim_disk_flip_bit(disk_of(faults, node), draw.path, draw_place(faults, &draw),
                      (int)random_below(&faults->random, 8));
}

static void delete_last_name(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash != NULL && slash != path) *slash = '\0';
}

void sim_fault_damage(struct sim_faults *faults, int node)
{
    struct sim_disk *disk = disk_of(faults, node);
    struct file_draw draw;
    uint8_t garbage[700];
    if (!pick_file(faults, node, &draw)) return;
    maybe_kill(faults, node);
    int64_t at = draw_place(faults, &draw);
    int64_t bytes = draw.bytes - at < 700 ? draw.bytes - at : 700;
    switch (random_below(&faults->random, 7)) {
    case 0:
        tell(faults, node, "zeroes part of", draw.path);
        sim_disk_overwrite(disk, draw.path, at, NULL, bytes);
        break;
    case 1:
        tell(faults, node, "overwrites part of", draw.path);
        random_bytes(&faults->random, garbage, sizeof(garbage));
        sim_disk_overwrite(disk, draw.path, at, garbage, bytes);
        break;
    case 2:
        tell(faults, node, "cuts", draw.path);
        sim_disk_set_length(disk, draw.path, at);
        break;
    case 3:
        tell(faults, node, "appends garbage to", draw.path);
        sim_disk_append_noise(disk, draw.path, 300);
        break;
    case 4:
        tell(faults, node, "deletes", draw.path);
        sim_disk_delete(disk, draw.path);
        break;
    case 5:
        /* A whole partition directory, if the file lies in one. */
        if (strstr(draw.path, "/topics/") != NULL) delete_last_name(draw.path);
        tell(faults, node, "deletes", draw.path);
        sim_disk_delete(disk, draw.path);
        break;
    default:
        tell(faults, node, "makes unreadable part of", draw.path);
        sim_disk_make_unreadable(disk, draw.path, at, at + bytes);
        break;
    }
}

void sim_fault_lose_file(struct sim_faults *faults, int node)
{
    static const char *const names[] = {
        "replication-raft.json",
        "replication-epochs.json",
        "replication-offsets.json",
        "replication-identity.json",
        "replication-manifest.json",
        "synced-positions",
        "topics",
    };
    char path[PATH_BYTES_MAX];
    const char *name = names[random_below(&faults->random, sizeof(names) / sizeof(names[0]))];
    snprintf(path, sizeof(path), SIM_DATA_DIR "/%s", name);
    sim_node_kill(&faults->group->nodes[node], SIM_DEATH_KILL);
    tell(faults, node, "deletes", path);
    sim_disk_delete(disk_of(faults, node), path);
}

void sim_fault_wipe(struct sim_faults *faults, int node)
{
    sim_node_kill(&faults->group->nodes[node], SIM_DEATH_KILL);
    tell(faults, node, "is wiped", "");
    sim_disk_wipe(disk_of(faults, node));
}

/* The first time a copy is put aside, another time it comes back. */
void sim_fault_restore(struct sim_faults *faults, int node)
{
    if (faults->old_image == NULL) {
        faults->old_image = sim_disk_copy(disk_of(faults, node));
        faults->old_image_node = node;
        return;
    }
    if (faults->old_image_node != node || !sim_faults_may_forget(faults)) return;
    sim_node_kill(&faults->group->nodes[node], SIM_DEATH_KILL);
    tell(faults, node, "gets an old copy back", "");
    sim_disk_restore(disk_of(faults, node), faults->old_image);
    sim_disk_image_free(faults->old_image);
    faults->old_image = NULL;
}
