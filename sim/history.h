/* history.h: what the clients sent, were told and saw; the judge of I1–I3 and I5–I7.
 *
 * Every record carries a value that names its writer and a counter, and whose other bytes follow
 * from these two: so any record read anywhere tells who sent it, and whether it is unchanged. An
 * acknowledgement (acks=all) and a read are observations alike: "at this offset stands this
 * value". No two observations of an offset may disagree, ever.                                */
#ifndef MOONMQ_SIM_HISTORY_H
#define MOONMQ_SIM_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/uuid.h"
#include "sim/verdict.h"

#define HISTORY_TOPIC_BYTES 64
#define HISTORY_NOTHING     0 /* no value: the offset was not observed */

/* What the writer was told of a record. */
enum history_outcome {
    HISTORY_PENDING,
    HISTORY_OK,      /* acknowledged */
    HISTORY_NO,      /* a definite error before anything was appended */
    HISTORY_UNKNOWN, /* may appear, now or later */
};

/* A record's name: writer << 40 | counter; writers count from 1. */
typedef uint64_t history_id;

struct history_record {
    int64_t offset; /* where it was acknowledged or seen; -1: nowhere */
    uint32_t log;
    uint32_t transaction; /* history_transactions.h; 0: none */
    uint16_t key;         /* history_keyed.h; 0: none */
    uint16_t value_bytes;
    uint8_t outcome;
    uint8_t delivered;  /* to these committed readers, bits */
    bool durable : 1;   /* acks=all */
    bool found : 1;     /* by the final reading */
    bool tombstone : 1; /* its value is null */
};

struct history_writer {
    bool ordered; /* idempotent: its records keep their order and appear once */
    struct history_record *records;
    uint32_t count, capacity;
};

/* One partition of one topic incarnation. */
struct history_log {
    struct uuid uid;
    int32_t partition;
    char topic[HISTORY_TOPIC_BYTES];
    bool dropped;    /* its topic was deleted, or a deletion was tried: not judged at the end */
    history_id *ids; /* by offset */
    int64_t count, capacity;
    int64_t committed;     /* one past the highest offset acknowledged or read */
    int64_t start;         /* highest log start seen */
    int64_t asked;         /* highest offset below which anybody asked to delete all */
    int64_t deleted;       /* … and was told that it is done */
    int32_t deleted_epoch; /* … by the leader of this epoch */
    bool kept;             /* nothing but such requests may move its start */
    uint8_t readers;       /* committed readers of it, bits */
    bool compacted;        /* only the newest record of each key need be there: history_keyed.h */
    uint16_t key_count;
    uint32_t key_writer;
};

struct history_transaction;
struct history_grant;

struct history {
    struct sim_verdict *verdict;
    struct history_writer *writers;
    uint32_t writer_count, writer_capacity;
    struct history_log *logs;
    uint32_t log_count, log_capacity;
    struct history_transaction *transactions; /* from 1 on */
    uint32_t transaction_count, transaction_capacity;
    struct history_grant *grants; /* history_fences.h: by transactional id */
    uint32_t grant_count, grant_capacity;
    int reader_count;
    uint64_t acknowledged, read, refused, unknown;
};

void history_init(struct history *history, struct sim_verdict *verdict);
void history_deinit(struct history *history);

uint32_t history_add_writer(struct history *history, bool ordered);
/* Index of the log, made when it is new. */
uint32_t history_find_log(struct history *history, const struct uuid *uid, int32_t partition,
                          const char *topic);

/* A new record of `writer`; not sent anywhere yet. */
history_id history_new_record(struct history *history, uint32_t writer, uint16_t value_bytes);
struct history_record *history_record(struct history *history, history_id id);
/* Writes the record's value, `value_bytes` long. */
void history_write_value(const struct history *history, history_id id, struct buffer *out);
uint16_t history_value_bytes_min(void);

/* `count` records from `first` on were sent to `log` (again); acks=all or not. */
void history_sent(struct history *history, history_id first, uint32_t count, uint32_t log,
                  bool durable);
/* … and this is what came of it. OK: they stand from base_offset on. */
void history_told(struct history *history, history_id first, uint32_t count,
                  enum history_outcome outcome, int64_t base_offset);
/* A consumer was given this value at this offset: whose it is, HISTORY_NOTHING: nobody's. */
history_id history_read_value(struct history *history, uint32_t log, int64_t offset,
                              struct slice value);

/* DeleteRecords up to `offset` reached a broker. */
void history_ask_deletion(struct history *history, uint32_t log, int64_t offset);
/* … and was acknowledged by the leader of `epoch`: the log begins at low_watermark. */
void history_told_deletion(struct history *history, uint32_t log, int64_t offset,
                           int64_t low_watermark, int32_t epoch);
/* A copy of the log begins at `start`; one that serves clients must have done what was
 * acknowledged. */
void history_see_start(struct history *history, uint32_t log, int64_t start, bool serving,
                       int node);

/* A record of a transaction whose marker the reading has not met yet. */
struct history_open_record {
    int64_t producer_id, offset;
    history_id id;
};

/* The highest epoch of a producer that the reading has met. */
struct history_producer_seen {
    int64_t producer_id;
    int16_t epoch;
};

/* A consumer was given this record there. */
void history_observe(struct history *history, uint32_t log, int64_t offset, history_id id,
                     const char *how);

/* The final reading of a log that nothing changes any more: begin, each batch and its records (or
 * the marker it is) in order, end. */
struct history_reading {
    uint32_t log;
    int64_t start, next;
    uint32_t *last_counter; /* by writer */
    int64_t producer_id;    /* of the batch */
    bool transactional;
    struct history_open_record *open;
    uint32_t open_count, open_capacity;
    struct history_producer_seen *producers;
    uint32_t producer_count, producer_capacity;
};
void history_reading_begin(struct history *history, struct history_reading *reading, uint32_t log,
                           int64_t start);
/* The records that follow are of a batch like this. Not called: of one without a producer id. */
void history_reading_batch(struct history *history, struct history_reading *reading, int64_t offset,
                           int64_t producer_id, int16_t epoch, bool transactional);
void history_reading_record(struct history *history, struct history_reading *reading,
                            int64_t offset, struct slice value);
/* The end of the producer's transaction in this log. */
void history_reading_marker(struct history *history, struct history_reading *reading,
                            int64_t offset, int64_t producer_id, int16_t epoch, bool commit);
void history_reading_end(struct history *history, struct history_reading *reading);

#endif
