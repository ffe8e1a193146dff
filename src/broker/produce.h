/* produce.h: one batch on its way into a partition (design.md, "the produce path").
 *
 * validate (record/) -> producer state -> append (log/) -> answer now, when durable here, or when
 * the high watermark passes, as `acks` says. Requests are parked on the partition, not polled. */
#ifndef MOONMQ_BROKER_PRODUCE_H
#define MOONMQ_BROKER_PRODUCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/shared_bytes.h"
#include "base/status.h"
#include "broker/deadline.h"
#include "broker/producer_state.h"
#include "broker/transaction.h"
#include "broker/transaction_wait.h"

struct broker;
struct partition;
struct produce;
struct partition_marker;
struct recompression;
typedef void (*produce_fn)(void *context, struct produce *produce);

enum produce_acks { ACKS_NONE = 0, ACKS_LEADER = 1, ACKS_ALL = -1 };

/* Batches of one sender that must not overtake each other. When one of them is refused, those of
 * them that are not appended yet are refused too (STATUS_CANCELLED), until the sender begins anew:
 * what it sends again would otherwise land behind what it sent later. Zeroed to begin. */
struct produce_chain {
    bool broken;
};

/* Embedded in the front end's request; untouched by it between call and `done`. */
struct produce {
    /* in */
    struct partition *partition;
    struct shared_bytes *batch; /* exactly one batch, unshared; taken in every case */
    enum produce_acks acks;
    int64_t timeout_us; /* the smaller of it and AckTimeout is used; 0: AckTimeout */
    bool allow_zstd;
    bool internal;               /* by the broker itself: internal topics allowed */
    enum producer_rules rules;   /* how its sequences are judged; 0 = Kafka's */
    struct produce_chain *chain; /* NULL: it stands alone; borrowed until `done` */
    /* Of a transactional batch; borrowed until `done`. data NULL: such a batch is
     * refused, unless it is the broker's own. */
    struct slice transactional_id;
    enum transaction_client transaction_client;
    /* marker.c: the batch is this end marker; unless impatient it waits without a
     * time-out. NULL: data. */
    const struct partition_marker *marker;
    /* Asked in one step with the append: may it still be? Anything but OK refuses it. NULL: yes. */
    enum status (*admit)(void *context);
    produce_fn done; /* exactly once; may be called before broker_produce() returns */
    void *context;
    /* out */
    enum status status;
    struct error error;
    int32_t fault_record; /* -1: none in particular */
    bool appended;        /* with an error: written, the outcome is open */
    bool duplicate;       /* the idempotent retry of a batch that is there */
    int64_t base_offset;  /* -1 on error; the original one for a duplicate */
    int64_t last_offset;
    int64_t log_append_time_ms; /* -1 under create time */
    int64_t log_start_offset;
    /* the broker's while parked */
    struct produce *next, *prev;
    struct produce **parked_on; /* the list it waits in; NULL: none */
    struct deadline deadline;
    int64_t appended_us;
    int64_t until_us;                    /* when it gives up */
    struct transaction_wait hold;        /* in the queue of its transaction */
    struct recompression *recompression; /* under way; NULL: none, or it waits for its turn */
    bool admitted;                       /* its transaction let it pass */
    bool mistimed; /* refused for its timestamps, unless it is there already */
};
void broker_produce(struct broker *broker, struct produce *produce);
/* The client is gone: `done` will not be called, the struct may go. */
void broker_produce_cancel(struct broker *broker, struct produce *produce);

/* What may be asked for before any record is sent: STATUS_OK, or NOT_LEADER, NOT_READY,
 * UNKNOWN_TOPIC, NOT_ENOUGH_REPLICAS… */
enum status broker_produce_precheck(struct broker *broker, const struct partition *partition,
                                    enum produce_acks acks, struct error *error);

/* Ids from here on are of no producer: static mode marks by them where a batch came from
 * (replication/static_wire.h), and no client may. */
#define PRODUCER_IDS_RESERVED (INT64_C(0x7fffffff) << 32)
/* A producer id that never repeats: leader epoch 31 bits, counter 32 bits. Leader only.  */
STATUS_MUST_CHECK
enum status broker_new_producer_id(struct broker *broker, int64_t *producer_id);

#endif
