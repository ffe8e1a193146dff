/* modern_live.h: a group of the new protocol that lives on this leader, and its records on their
 * way to the log. For modern_coordinator.c and modern_live.c only.
 *
 * It is in the coordinator's table while it has members or records on their way. `group` is ahead
 * of the log by what its stores hold; NULL after one of them failed, until all that is in the log
 * is applied. NULL, too, while the group becomes a classic one: when that is applied, or has
 * failed, it is whichever the log says. */
#ifndef MOONMQ_BROKER_MODERN_LIVE_H
#define MOONMQ_BROKER_MODERN_LIVE_H

#include "broker/modern_coordinator_state.h"

/* Records on their way; who is answered when they are there. */
struct modern_store {
    struct broker *broker;
    struct modern_live *live;
    struct produce produce;
    struct modern_request *waiting; /* in the order in which they came */
    struct modern_store *next, *prev;
};

struct modern_live {
    struct broker *broker;
    struct slice id;            /* own memory */
    struct modern_group *group; /* NULL: to be copied anew from the table */
    int64_t reload_at; /* when everything below it is applied; while it has stores not known yet */
    struct modern_store *stores; /* the oldest first */
    struct produce_chain chain;
    struct deadline deadline;
    size_t bytes; /* as counted in the coordinator */
    bool retired; /* not in the table: goes with its last store */
    UT_hash_handle hh;
};

/* The topics as they are, and what an event of now brings with it. */
struct group_topics modern_topics_now(struct broker *broker);
struct modern_group_step modern_step_now(struct broker *broker, const struct group_topics *topics,
                                         struct modern_records *records);

struct modern_live *modern_live_find(struct broker *broker, struct slice id);
/* `group` is taken. */
struct modern_live *modern_live_add(struct broker *broker, struct slice id,
                                    struct modern_group *group);
/* Out of the table; what it still waits for ends by itself. */
void modern_live_retire(struct modern_live *live);
/* After every event: it goes, or its next moment is watched for. */
void modern_live_settle(struct modern_live *live);
/* What it holds has changed. */
void modern_live_measure(struct modern_live *live);
/* There is a group, or there is one again; false: not yet. If the log has a classic one instead,
 * that lives from here on, and this one has no members. */
bool modern_live_reload(struct modern_live *live);
/* As recorded, every timer begun anew; or an empty one. */
struct modern_group *modern_live_copy_recorded(struct broker *broker,
                                               const struct partition *partition, struct slice id);

/* Until it is sent the caller adds those who wait. */
struct modern_store *modern_store_new(struct modern_live *live,
                                      const struct modern_records *records);
/* What the event wrote is sent; the answer follows it, and all that went before. */
void modern_live_answer(struct modern_live *live, struct modern_records *records,
                        struct modern_request *request);
/* What nobody asked for, or nobody waits for, is sent. */
void modern_live_send(struct modern_live *live, struct modern_records *records);
void modern_store_wait(struct modern_store *store, struct modern_request *request);
/* Last in its caller: the group may be gone afterwards. */
void modern_store_send(struct modern_store *store);
/* The callback comes; the request may be gone afterwards. */
void modern_request_finish(struct modern_request *request, enum status status);

#endif
