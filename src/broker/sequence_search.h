/* sequence_search.h: where records of a producer lie that its partition no longer remembers
 * (producer_state.h: it remembers five batches).
 *
 * The log is read backwards from the oldest batch that is remembered, a stretch at a time; of each
 * batch the header is looked at, nothing is unfolded. It ends with a batch of the producer's that
 * begins at or before what is looked for, at the log's start, or when enough was read. For who
 * sends again what was there already, and wants to know where: rare, so that it may cost reads.
 * Thread: event loop. */
#ifndef MOONMQ_BROKER_SEQUENCE_SEARCH_H
#define MOONMQ_BROKER_SEQUENCE_SEARCH_H

#include "base/uuid.h"
#include "log/partition_log.h"

struct broker;
struct sequence_search;

/* A batch of the producer's, of this epoch: sequences and offsets run first/base .. + delta. */
typedef void (*sequence_found_fn)(void *context, uint32_t first_sequence, uint32_t delta,
                                  int64_t base_offset);
struct sequence_search {
    /* in */
    struct uuid topic;
    uint32_t partition;
    int64_t producer_id;
    int16_t producer_epoch;
    uint32_t sequence;       /* the first that is looked for */
    int64_t bytes_left;      /* in and out: what may be read */
    sequence_found_fn found; /* for each batch met, in no order, one maybe twice */
    void (*done)(void *context, struct sequence_search *search);
    void *context;
    /* the broker's */
    struct broker *broker;
    struct log_read read;
    int64_t from, to, step; /* the stretch that is read now; how long the next one may be */
    bool reached;           /* a batch was met that begins early enough */
};
/* True: it is over, `done` is not called. False: `done` will be called, the search stays alive
 * until then. */
STATUS_MUST_CHECK
bool broker_search_sequences(struct broker *broker, struct sequence_search *search);

#endif
