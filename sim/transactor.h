/* transactor.h: one instance of a transactional producer, as transactor.c (what it does next) and
 * transactor_calls.c (its requests, inside the process) share it. Others use workload.h.
 *
 * A payer is one transactional id with up to two instances, which take it from each other without
 * asking: who lost it goes on until it is told.                                                */
#ifndef MOONMQ_SIM_TRANSACTOR_H
#define MOONMQ_SIM_TRANSACTOR_H

#include "sim/history_fences.h"
#include "sim/history_offsets.h"
#include "sim/history_transactions.h"
#include "sim/workload.h"

#define TRANSACTOR_IN_FLIGHT_MAX 5
#define TRANSACTOR_LANES_MAX     (SIM_PAY_TOPICS * SIM_PARTITIONS_MAX)
#define TRANSACTOR_GHOSTS_MAX    4
#define PAYER_INSTANCES          2

enum transactor_act {
    TRANSACTOR_INIT,
    TRANSACTOR_ADD,
    TRANSACTOR_PRODUCE,
    TRANSACTOR_OFFSET,
    TRANSACTOR_END,
    TRANSACTOR_READ_OFFSET,
    TRANSACTOR_PLAIN_OFFSET, /* committed outside of any transaction */
};

struct transactor_batch {
    history_id first;
    uint32_t records;
    int32_t sequence;
    bool sent, told, rejected;
};

/* What an instance writes to one partition. */
struct transactor_lane {
    const struct sim_topic *topic;
    uint32_t partition, log;
    int32_t next_sequence;
    int32_t acknowledged_epoch; /* the newest of a leader that took a batch */
    bool used;                  /* in the transaction under way */
    int planned;                /* batches of it that are not begun yet */
    struct transactor_batch batches[TRANSACTOR_IN_FLIGHT_MAX]; /* oldest first */
    int batch_count;
};

enum transactor_state {
    TRANSACTOR_NEW,    /* has no epoch, or lost it */
    TRANSACTOR_IDLE,   /* between two transactions */
    TRANSACTOR_ADDING, /* version 1: names its partitions */
    TRANSACTOR_WRITING,
    TRANSACTOR_LEAVING, /* lets the time-out come */
    TRANSACTOR_ENDING,
};

struct transactor_call;

/* A request that is to arrive once more, much later. */
struct transactor_ghost {
    int64_t due_us;
    struct transactor_call *call; /* not sent yet */
};

struct transactor {
    struct sim_payer *payer;
    int client;
    uint32_t writer;
    struct sim_leader_guess guess;
    struct sim_event wake;
    bool v2;
    int32_t timeout_ms; /* of its transactions */
    enum transactor_state state;
    struct history_grant grant; /* producer_id -1: none */
    bool bumps;                 /* the next InitProducerId goes on from `grant` */
    struct transactor_lane lanes[TRANSACTOR_LANES_MAX];
    int lane_count;
    uint32_t transaction;
    bool asking; /* for anything but a batch */
    bool with_offset, offset_told;
    bool commits, leaves; /* how it means to end */
    int64_t patience_us;  /* aborts then, whatever is in flight; 0: never */
    int64_t next_batch_us, think_us;
    int64_t retry_us;
    struct transactor_ghost ghosts[TRANSACTOR_GHOSTS_MAX];
    int ghost_count;
};

struct sim_payer {
    struct sim_workload *workload;
    char id[16], group[16];
    uint32_t holder;      /* every pair that a client was told */
    uint32_t init_holder; /* only those that InitProducerId gave */
    struct transactor instances[PAYER_INSTANCES];
    int instance_count;
    struct sim_event read_wake;
    bool reading;
    struct history_offsets offsets; /* what they commit for the group */
    bool read_last;                 /* the last reading was after everything had ended */
};

/* Everything that the process needs is copied in, so that a late one finds it. */
struct transactor_call {
    struct sim_call base;
    struct transactor *transactor;
    enum transactor_act act;
    bool ghost; /* a repetition that was held up: its answer changes nothing */
    struct history_grant grant, newest;
    bool bumps, commit, with_offset;
    uint32_t transaction;
    uint32_t lanes; /* bits: those to add */
    int lane;
    history_id first;
    uint32_t records;
    int32_t sequence;
    int64_t offset;  /* to commit, or (answer) read */
    int64_t sent_us; /* of a read */
    /* answer */
    struct history_grant next;
    int64_t base_offset;
    bool duplicate; /* it is there already; nothing was done */
};

/* transactor_calls.c */
void transactor_serve(struct sim_call *base);

#endif
