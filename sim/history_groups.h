/* history_groups.h: who was given which partition in which generation of a group, and what its
 * members committed; the judge of I20, and of I18 for members.
 *
 * Generations only grow, and in one of them a partition has one owner. Once somebody was given a
 * generation, what an earlier one asks for is refused; so a commit of it whose outcome is open
 * cannot undo one that was acknowledged in a later generation.                                 */
#ifndef MOONMQ_SIM_HISTORY_GROUPS_H
#define MOONMQ_SIM_HISTORY_GROUPS_H

#include "sim/history.h"

#define HISTORY_GROUP_PARTITIONS_MAX 8

struct history_owner {
    int32_t generation;
    int member;
    uint32_t partitions; /* bits */
};

struct history_commit {
    int32_t generation;
    bool open; /* its outcome is not known, or was not when it was looked at last */
};

struct history_group {
    struct sim_verdict *verdict;
    int32_t newest; /* generation that anybody was given; 0: none */
    struct history_owner *owners;
    uint32_t owner_count, owner_capacity;
    struct {
        struct history_commit *commits; /* by value, from 1 on: one value is sent once */
        int64_t sent, capacity;
        int64_t acknowledged; /* the last value; 0: none */
    } partitions[HISTORY_GROUP_PARTITIONS_MAX];
};

void history_group_init(struct history_group *group, struct sim_verdict *verdict);
void history_group_deinit(struct history_group *group);
/* `member` (a number that one process of a member keeps) is given these partitions. `newest`: of
 * the generations, when it asked. */
void history_group_given(struct history_group *group, int32_t generation, int member,
                         uint32_t partitions, int32_t newest);
/* A request of `generation` was answered OK; `newest` had been given when it was sent. */
void history_group_accepted(struct history_group *group, int32_t generation, int32_t newest,
                            const char *what);
/* A new value to commit: larger than all before it. */
int64_t history_group_commit(struct history_group *group, uint32_t partition, int32_t generation);
/* It is being carried out, in this generation. */
void history_group_committing(struct history_group *group, uint32_t partition, int64_t value,
                              int32_t generation);
void history_group_committed(struct history_group *group, uint32_t partition, int64_t value);
/* It cannot take effect: it was never there. */
void history_group_refused(struct history_group *group, uint32_t partition, int64_t value);
/* The committed value was read; `acknowledged` was the last when the read was sent. */
void history_group_read(struct history_group *group, uint32_t partition, int64_t value,
                        int64_t acknowledged);
/* How a commit of `value`, or a read of what is committed, ended: carried out, certainly not
 * carried out, or (neither) nobody knows. */
struct history_offset_call {
    bool commit;
    uint32_t partition;
    int64_t value;        /* the one to commit, or the one read; -1: none is committed */
    int64_t acknowledged; /* of a read: the last when it was sent */
};
void history_group_offset_ended(struct history_group *group, const struct history_offset_call *call,
                                bool done, bool refused);

#endif
