/* faults.h: what goes wrong in a run: a seed draws which kinds, how often, and whom they hit.
 *
 * Swarm: most kinds are off in any one run. Two kinds of kinds: those that a correct group survives
 * on every replica at once (crashes, power cuts, anything in the network, full or slow disks), and
 * those that destroy what one replica promised to keep (damage, wipes, lying disks, I/O errors);
 * these hit only the run's victims, at most a minority, so that every committed range stays whole
 * on a majority (the fault atlas).
 *
 * A replica that goes back in time without knowing it (an old copy put back, a disk that lied)
 * takes with it votes and log entries that others counted on: with anything else hurt as well, two
 * of three are, and no majority protocol survives that. So it happens only while the whole group is
 * well, and until it is whole again nothing else goes wrong (G1: at most f hurt at a time).
 *
 * Each fault ends by itself; sim_faults_heal() ends all.                                         */
#ifndef MOONMQ_SIM_FAULTS_H
#define MOONMQ_SIM_FAULTS_H

#include "sim/checker.h"

enum sim_fault_kind {
    SIM_FAULT_KILL,        /* F1–F3 */
    SIM_FAULT_KILL_MANY,   /* F4, F5 */
    SIM_FAULT_POWER,       /* F24, F25 */
    SIM_FAULT_POWER_MANY,  /* F26 */
    SIM_FAULT_CRASH_POINT, /* F6, F28, F29: between two file operations, kill or power */
    SIM_FAULT_FAILPOINT,   /* F6 */
    SIM_FAULT_PAUSE,       /* F7–F9 */
    SIM_FAULT_SUSPEND,     /* F46 */
    SIM_FAULT_TERM,        /* F10 */
    SIM_FAULT_TRANSFER,    /* F10 */
    SIM_FAULT_ISOLATE,     /* F12 */
    SIM_FAULT_SPLIT,       /* F13 */
    SIM_FAULT_ONE_WAY,     /* F14, F15 */
    SIM_FAULT_PARTIAL,     /* F16 */
    SIM_FAULT_FLAP,        /* F17 */
    SIM_FAULT_SLOW_LINK,   /* F18 */
    SIM_FAULT_LOSS,        /* F18 */
    SIM_FAULT_CLAMP,       /* F18 */
    SIM_FAULT_REPLAY,      /* F19 */
    SIM_FAULT_RESET,       /* F20, F22 */
    SIM_FAULT_CLOG,        /* F22 */
    SIM_FAULT_CLIENT_CUT,  /* F21 */
    SIM_FAULT_SLOW_DISK,   /* F43 */
    SIM_FAULT_STALL,       /* F43 */
    SIM_FAULT_FULL_DISK,   /* F40 */
    SIM_FAULT_COLD_READS,
    SIM_FAULT_CLOCK_JUMP,  /* F45 */
    SIM_FAULT_CLOCK_RATE,  /* F46 */
    SIM_FAULT_WRITE_ERROR, /* F41; from here on: victims only */
    SIM_FAULT_SYNC_ERROR,  /* F41 */
    SIM_FAULT_READ_ERROR,  /* F42 */
    SIM_FAULT_LYING_DISK,  /* F27 */
    SIM_FAULT_FLIP,        /* F30, F31 */
    SIM_FAULT_DAMAGE,      /* F35, F36 */
    SIM_FAULT_LOSE_FILE,   /* F32–F34, F38 */
    SIM_FAULT_WIPE,        /* F37 */
    SIM_FAULT_RESTORE,     /* F39 */
    SIM_FAULT_KIND_COUNT
};
_Static_assert(SIM_FAULT_KIND_COUNT < SIM_FAULT_COLUMNS, "a column a fault, and one for none");

const char *sim_fault_name(enum sim_fault_kind kind);
bool sim_fault_find(const char *name, enum sim_fault_kind *kind);

/* Asked by a node's disk whether it may lose what it lied about. */
struct sim_forgetting {
    struct sim_faults *faults;
    int node;
};

struct sim_faults {
    struct sim_group *group;
    struct sim_workload *workload;
    struct sim_checker *checker;
    struct random random;
    uint64_t enabled;      /* bits */
    uint32_t victims;      /* bits; at most a minority */
    int64_t pause_us_mean; /* between two faults */
    bool stopped;
    uint32_t revived; /* once stopped: who is started again whenever it leaves */
    struct sim_event next, restart_look;
    struct sim_ending *endings; /* faults in force */
    struct sim_disk_image *old_image;
    int old_image_node;
    struct sim_forgetting forgetting[SIM_NODES_MAX];
    bool alone;     /* static mode: nobody counts on what another remembers */
    bool whole;     /* the group was, when the strike under way began */
    bool unsettled; /* a node has gone back in time, and the group was not whole since */
    int64_t restart_us[SIM_NODES_MAX]; /* when a node that is down comes back; -1: not */
    const char *failpoint;             /* armed */
    int failpoint_node, failpoint_passings;
    uint64_t counts[SIM_FAULT_KIND_COUNT];
};

/* Draws the run's kinds from `seed`. `only`: these kinds (bits) instead, 0: the drawn ones; but
 * none of `without`. */
void sim_faults_init(struct sim_faults *faults, struct sim_workload *workload,
                     struct sim_checker *checker, uint64_t seed, uint64_t only, uint64_t without);
void sim_faults_deinit(struct sim_faults *faults);
void sim_faults_start(struct sim_faults *faults);
/* Lets one happen now, to `node` (-1: drawn). */
void sim_faults_strike(struct sim_faults *faults, enum sim_fault_kind kind, int node);
/* No new ones; disks, links, clocks and pauses of all nodes are mended. Nodes of `revive` (bits)
 * that are down start again; the others are killed and stay down. */
void sim_faults_heal(struct sim_faults *faults, uint32_t revive);

/* For fault_disk.c: a node is about to go back in time. False: not now. */
bool sim_faults_may_forget(struct sim_faults *faults);

/* For the runner: a node died by itself or by a fault. */
void sim_faults_node_died(struct sim_faults *faults, struct sim_node *node);

#endif
