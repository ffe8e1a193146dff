/* delete_records.h: DeleteRecords: the log start of a partition is raised by hand.
 *
 * Answered when nobody can bring the records back: the new start is on the leader's disk, and every
 * follower in sync has taken it over. Thread: loop. Source: kafka-listener.md 11.3; F55.         */
#ifndef MOONMQ_BROKER_DELETE_RECORDS_H
#define MOONMQ_BROKER_DELETE_RECORDS_H

#include "broker/partition.h"

#define DELETE_TO_HIGH_WATERMARK (-1)

struct delete_records;
typedef void (*delete_records_fn)(void *context, struct delete_records *deletion);
/* Embedded in the caller's object, borrowed until done. */
struct delete_records {
    struct partition *partition;
    int64_t before_offset; /* the new log start; DELETE_TO_HIGH_WATERMARK */
    int64_t timeout_us;
    delete_records_fn done; /* exactly once, maybe at once */
    void *context;
    /* out: OK; NOT_LEADER and the like; OUT_OF_RANGE (below 0, or above the high watermark); LIMIT
     * (cleanup.policy lacks delete); TIMEOUT: done here, not known everywhere yet. */
    enum status status;
    int64_t low_watermark;
};
void broker_delete_records(struct broker *broker, struct delete_records *deletion);

#endif
