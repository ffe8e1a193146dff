/* transaction_records.h: Kafka's schema of `__transaction_state` (kafka-listener.md appendix B).
 * Pure.
 *
 * A key begins with an i16 version that is the record's type: 0 is a transactional id. We write
 * value 1 (flexible); 0 is read too, as Kafka of any age left it.                             */
#ifndef MOONMQ_BROKER_TRANSACTION_RECORDS_H
#define MOONMQ_BROKER_TRANSACTION_RECORDS_H

#include <stdint.h>

#include "base/buffer.h"
#include "base/status.h"
#include "broker/transaction_partitions.h"

#define TRANSACTIONAL_ID_BYTES_MAX 32767

/* The numbers are those on disk. */
enum transaction_status {
    TRANSACTION_EMPTY,
    TRANSACTION_ONGOING,
    TRANSACTION_PREPARE_COMMIT,
    TRANSACTION_PREPARE_ABORT,
    TRANSACTION_COMPLETE_COMMIT,
    TRANSACTION_COMPLETE_ABORT,
    TRANSACTION_DEAD,
    TRANSACTION_PREPARE_EPOCH_FENCE,
    TRANSACTION_STATUS_COUNT
};
/* As Kafka's tools spell it: "PrepareCommit". */
const char *transaction_status_name(enum transaction_status status);

/* What is on record about one transactional id. */
struct transaction_value {
    int64_t producer_id;
    int16_t producer_epoch;
    int32_t timeout_ms; /* 0: it lives as long as its session does (native) */
    enum transaction_status status;
    struct transaction_partitions partitions; /* owned */
    int64_t last_update_ms;
    int64_t start_ms;             /* of the transaction; -1: none */
    int64_t previous_producer_id; /* the epochs of that one were used up; -1 */
    int64_t next_producer_id;     /* in Prepare*: whose epochs begin when it is complete; -1 */
    int16_t client_version;       /* 2: it was ended under transaction.version 2 */
    int16_t next_producer_epoch;  /* -1; kept as it was found */
    /* The epoch before this one, if that one was given to the same producer: it may have missed the
     * answer. -1: none. Ours alone: in a tag that Kafka skips. */
    int16_t last_epoch;
};
/* Of nobody, Empty. */
void transaction_value_init(struct transaction_value *value);
void transaction_value_deinit(struct transaction_value *value);
void transaction_value_copy(struct transaction_value *out, const struct transaction_value *value);

void transaction_key_encode(struct buffer *out, struct slice transactional_id);
void transaction_value_encode(struct buffer *out, const struct transaction_value *value);
/* Borrowed from the record. STATUS_NOT_FOUND: a record of another type. STATUS_CORRUPT. */
STATUS_MUST_CHECK
enum status transaction_key_decode(struct slice bytes, struct slice *transactional_id);
/* `out` need not be initialised, and is the caller's to deinit on STATUS_OK. STATUS_UNSUPPORTED: a
 * version from the future. STATUS_CORRUPT, also for more partitions than there may be. */
STATUS_MUST_CHECK
enum status transaction_value_decode(struct slice bytes, struct transaction_value *out);

#endif
