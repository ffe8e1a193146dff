/* sequences.h: the producer of a connection, and where its sequences stand in each topic
 * (native-protocol.md 4.5 and 4.6; decisions 10).
 *
 * One sequence a producer and topic runs over all partitions, counting records mod 2^31. What was
 * taken is what the partitions' logs say, all of them together: nothing of it is written a second
 * time. In the log each batch holds a run of consecutive sequences, so the runs of one partition
 * have gaps. The connection adds what the logs do not know: which requests are under way (they are
 * one chain: behind a refused one none of them is written), and where the records of the last few
 * lie: a partition remembers five runs of a producer, a request may have had more.
 * Thread: event loop. */
#ifndef MOONMQ_NATIVE_SEQUENCES_H
#define MOONMQ_NATIVE_SEQUENCES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/uuid.h"
#include "broker/catalog.h"
#include "broker/produce.h"
#include "native/wire.h"

#define SEQUENCE_MASK 0x7fffffffu
/* Topics one connection may write to with sequences. */
#define SEQUENCE_TOPICS_MAX 4096

struct sequence_topic {
    struct uuid uid;
    struct produce_chain chain;
    uint32_t open;    /* requests under way */
    uint32_t next;    /* expected, if all of them are taken */
    uint32_t settled; /* expected, of those that were; counts where no log knows the producer */
    struct sequence_topic *next_topic;
};

/* Of a request whose records were appended, whatever it was told: where. */
#define SEQUENCE_MEMOS 5
struct sequence_memo {
    struct uuid topic;
    uint32_t sequence, count;
    struct wire_ack *acks; /* NULL: unused */
};

struct native_identity {
    int64_t id;
    int16_t epoch; /* of an unnamed one 0, whatever its frames say */
    char name[WIRE_NAME_BYTES_MAX];
    size_t name_bytes; /* 0: unnamed */
};

struct native_producer {
    bool known; /* INIT_PRODUCER_ID was answered */
    struct native_identity identity;
    struct sequence_topic *topics;
    uint32_t topic_count;
    struct sequence_memo memos[SEQUENCE_MEMOS]; /* a ring */
    uint32_t next_memo;
};

/* A new identity: sequences begin at 0 everywhere. No request is under way. */
void native_producer_begin(struct native_producer *producer,
                           const struct native_identity *identity);
void native_producer_free(struct native_producer *producer);

/* A request joins those under way, and may be judged. NULL: no memory, or too many topics. */
struct sequence_topic *sequence_topic_join(struct native_producer *producer,
                                           const struct topic *topic);
/* Its records up to `end` are its own to write, and what comes next is expected behind them. */
void sequence_topic_take(struct sequence_topic *sequences, uint32_t end);
/* It has its outcome: all records before `end` are there. */
void sequence_topic_leave(struct sequence_topic *sequences, uint32_t end);

/* `acks` is taken: where the `count` records from `sequence` on were appended. */
void sequence_remember(struct native_producer *producer, const struct uuid *topic,
                       uint32_t sequence, struct wire_ack *acks, uint32_t count);

/* a - b, from -2^30 up to 2^30 - 1: sequences wrap. */
int32_t sequence_distance(uint32_t a, uint32_t b);

/* Where the record with this sequence lies. STATUS_OK; STATUS_NOT_FOUND: not there, or no longer
 * remembered. */
STATUS_MUST_CHECK
enum status sequence_find(const struct native_producer *producer, const struct topic *topic,
                          uint32_t sequence, struct wire_ack *out);

#endif
