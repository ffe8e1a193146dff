/* transactions.h: the transaction coordinator of the leader (kafka-listener.md section 8).
 *
 * What is decided goes on record in `__transaction_state` first, and counts once it is replicated:
 * then the answer, then the markers, then the record of the end. While a transition is under way,
 * what comes next for that id waits in order, within its time-out. A new leader takes every id up
 * from its table: it completes what was prepared before that id is served, and times ongoing ones
 * by their recorded start.
 *
 * Clients of transaction.version 1 name their partitions beforehand (broker_add_to_transaction);
 * those of version 2 add one by writing to it (struct produce, `transactional_id`). A session of
 * the native protocol begins with a time-out of 0: its transaction lives until it is ended or the
 * session is (broker_abandon_transaction), and is aborted by a new leader at once.
 * Thread: event loop. */
#ifndef MOONMQ_BROKER_TRANSACTIONS_H
#define MOONMQ_BROKER_TRANSACTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "broker/deadline.h"
#include "broker/transaction.h"
#include "broker/transaction_wait.h"

struct broker;
struct partition;

/* Bounds: ids in one partition of the internal topic, and the bytes of their records; requests and
 * produces that wait for a transaction, in the whole broker (bytes: as many as may be unsynced).
 * Beyond: STATUS_LIMIT, of requests NOT_READY. */
#define TRANSACTIONAL_IDS_PER_PARTITION_MAX 65536
#define TRANSACTION_BYTES_PER_PARTITION_MAX 16777216
#define TRANSACTION_WAITING_MAX             65536

struct transaction_request;
typedef void (*transaction_fn)(void *context, struct transaction_request *request);

enum transaction_verb { TRANSACTION_INIT, TRANSACTION_ADD, TRANSACTION_END, TRANSACTION_ABORT };

/* Lives, with all it points to, until `done`. */
struct transaction_request {
    /* in */
    struct slice id;     /* not empty */
    int64_t producer_id; /* init: -1 with epoch -1: a new instance */
    int16_t producer_epoch;
    bool transaction_v2; /* add, end: the client is of transaction.version 2 */
    bool session; /* init: no time-out, see above; `transaction_timeout_ms` is not looked at */
    int32_t transaction_timeout_ms;                 /* init */
    const struct transaction_partition *partitions; /* add */
    uint32_t partition_count;
    bool commit;         /* end */
    int64_t timeout_us;  /* the smaller of it and AckTimeout is used; 0: AckTimeout */
    transaction_fn done; /* exactly once, maybe at once */
    void *context;
    /* out */
    enum status status;
    struct error error;
    /* init, end: what the producer goes on with; already those of `answered` when it is in */
    int64_t next_producer_id;
    int16_t next_producer_epoch;
    /* the broker's */
    enum transaction_verb verb;
    bool admitted;
    struct transaction_wait wait;
    struct deadline deadline;
};

/* A producer of this id begins, or goes on after an error. What its predecessor left open is
 * aborted first. TXN_TIMEOUT_RANGE, INVALID, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS, LIMIT, … */
void broker_init_transaction(struct broker *broker, struct transaction_request *request);
/* UNKNOWN_TOPIC: one of the partitions is not there, and none was added. */
void broker_add_to_transaction(struct broker *broker, struct transaction_request *request);
/* Answered when the outcome is on record: whatever happens then, it will be carried out. */
void broker_end_transaction(struct broker *broker, struct transaction_request *request);
/* Aborts what is ongoing and fences its producer, whoever that is. Answered when it is on record.
 */
void broker_abort_transaction(struct broker *broker, struct transaction_request *request);
/* The session of this producer is gone: what it has open is aborted. Nobody is told. */
void broker_abandon_transaction(struct broker *broker, struct slice id, int64_t producer_id,
                                int16_t producer_epoch);
/* The partition of `__consumer_offsets` that a group's offsets go to; false: it is not there. */
bool broker_offsets_partition(struct broker *broker, struct slice group,
                              struct transaction_partition *out);

/* NULL: nothing on record. Valid until the loop's next turn. */
const struct transaction_value *broker_describe_transaction(struct broker *broker, struct slice id);
/* Every id on record, partition by partition. */
typedef void (*transaction_each_fn)(void *context, struct slice id,
                                    const struct transaction_value *value);
void broker_list_transactions(struct broker *broker, transaction_each_fn each, void *context);

#endif
