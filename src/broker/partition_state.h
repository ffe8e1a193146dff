/* partition_state.h: the partition object itself, for the files of this folder only.
 *
 * Visible: in the catalog, known to replication. Hidden: its topic is tombstoned; no requests, the
 * log stays open. A partition whose log was released serves nothing and is about to be freed. */
#ifndef MOONMQ_BROKER_PARTITION_STATE_H
#define MOONMQ_BROKER_PARTITION_STATE_H

#include "broker/broker_state.h"
#include "broker/internal_topics.h"
#include "broker/partition.h"
#include "broker/producer_state.h"

/* Batches being appended by partition_follow_append(): those before `at` are in the producer table.
 */
struct follow_cursor {
    const uint8_t *data;
    size_t bytes, at;
};

struct partition {
    struct broker *broker;
    struct topic *topic;
    int32_t index;
    bool visible;
    struct partition_log *log; /* NULL: released */
    void *replica;
    struct producer_table *producers;
    struct follow_cursor following;
    int64_t high_watermark;
    int32_t epoch;           /* of the last leadership of this replica; -1: none */
    int64_t epoch_start;     /* where it began */
    int64_t whole_from;      /* damaged until the log is durable to here: it lost what was below */
    bool corruption_told;    /* to replication: once a partition, until it is reset */
    bool corruption_alarmed; /* likewise */
    bool was_cut;            /* by recovery */
    bool producers_lost;     /* the table lacks what could not be read, until the copy is reset */
    struct partition_change *change; /* truncation or reset under way */
    int64_t compaction_after_us;     /* no pass before: the last one failed */
    struct internal_state *internal;

    /* produce.c: parked, ascending by last offset */
    struct produce *committing;    /* until the high watermark passes */
    struct produce *syncing;       /* until it is durable here */
    bool listed_parked;            /* in broker->parked */
    struct partition *next, *prev; /* there */

    /* recompression.c: in the order of arrival; the partition is in broker->recompressing then */
    struct produce *recompressing;
    struct partition *recompressing_next, *recompressing_prev;

    /* fetch.c */
    struct fetch_partition *waiters; /* parked, in the order of parking */
    struct fetch_watch *watches;     /* those that wait for news (fetch_watch.h) */
};

/* `producers` NULL: an empty table; taken. */
struct partition *partition_new(struct topic *topic, int32_t index, struct partition_log *log,
                                struct producer_table *producers);
void partition_free(struct partition *partition);
/* Becomes visible: replication hears of it; a leader begins its epoch in it. */
void partition_show(struct partition *partition);
/* Requests fail with UNKNOWN_TOPIC, replication hears of it. Hidden already: nothing happens. */
void partition_hide(struct partition *partition);
/* Cuts every tie to the log, for log_store_drop(). */
struct partition_log *partition_release_log(struct partition *partition);
/* The log's high watermark on record, after recovery: what of it this copy still has. */
void partition_recovered(struct partition *partition);

/* What is below goes; what is derived from it alone goes along. */
void partition_raise_log_start(struct partition *partition, int64_t log_start);

/* STATUS_OK, FENCED_EPOCH, UNKNOWN_EPOCH, NOT_LEADER, NOT_READY, UNKNOWN_TOPIC, STORAGE_ERROR: may
 * a consumer be answered from it? (kafka-listener.md 5.2, in its order) */
enum status partition_check_read(const struct partition *partition, int32_t current_epoch);
/* The copy cannot take or give records: failed, or records that were committed are missing at its
 * end, or it can't tell which producer wrote what and which transactions are open. */
bool partition_is_unusable(const struct partition *partition);
/* A read met bytes that are not as written: alarm, and replication hears of it. */
void partition_found_corrupt(struct partition *partition, const struct error *error);
/* The producer table could not be read out of the log whole. */
void partition_producers_lost(struct partition *partition, const struct log_damage *damage,
                              const struct error *error);
/* What acks=all needs here: the group's minimum, raised by the topic's. */
int32_t partition_min_insync(const struct partition *partition);

/* The store's handlers. */
void partition_log_durable(void *context, struct partition_log *log);
void partition_log_broke(void *context, struct partition_log *log, const struct error *error);
void partition_log_snapshot(void *context, struct partition_log *log, int64_t base_offset,
                            struct buffer *out);

/* parked.c */
void parked_high_watermark(struct partition *partition);
void parked_durable(struct partition *partition);
void parked_fail(struct partition *partition, enum status status, const char *text);
/* produce.c: those not yet appended, too */
void produce_partition_gone(struct partition *partition, enum status status, const char *text);
/* fetch.c: someone waits for this partition, and there may be something to say */
void fetch_wake(struct partition *partition);
void fetch_partition_gone(struct partition *partition);
/* offset_lookup.c */
void offset_lookup_wake(struct partition *partition);
/* offsets.c: `applied` moved */
void offsets_applied(struct partition *partition);

#endif
