/* sequences.h: the producer of a connection, and where its sequences stand in each topic
 * (native-protocol.md 4.5 and 4.6; decisions 10).
 *
 * One sequence a producer and topic runs over all partitions, counting records mod 2^31. What was
 * taken is what the partitions' logs say, all of them together: nothing of it is written a second
 * time. In the log each batch holds a run of consecutive sequences, so the runs of one partition
 * have gaps. A partition gets its records in the order of their sequences; so what it does not have
 * of a sequence beyond its last one is not there, although other partitions went on: it was lost
 * with a leader before it was safe, and is written when it is sent again.
 *
 * The connection adds what the logs do not know: which requests are under way (they are one chain:
 * behind a refused one none of them is written, until one comes that begins where the logs end),
 * and where the records of the last few lie: a partition remembers five runs of a producer, a
 * request may have had more. Thread: event loop. */
#ifndef MOONMQ_NATIVE_SEQUENCES_H
#define MOONMQ_NATIVE_SEQUENCES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/uuid.h"
#include "broker/catalog.h"
#include "broker/produce.h"
#include "broker/sequence_search.h"
#include "native/wire.h"

struct native_request;

#define SEQUENCE_MASK 0x7fffffffu
/* Topics one connection may write to with sequences. */
#define SEQUENCE_TOPICS_MAX 4096

struct sequence_topic {
    struct uuid uid;
    struct produce_chain chain;
    uint32_t open;    /* requests under way */
    uint32_t next;    /* expected, if all of them are taken */
    uint32_t settled; /* expected, of those that were; counts where no log knows the producer */
    bool any_acknowledged;
    uint32_t acknowledged; /* expected, of those that were on this connection: they are there */
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

/* The connection's producer, if it may write `record_count` records under this identity; NULL: the
 * request was failed. */
struct native_producer *native_producer_admit(struct native_request *request, int64_t producer_id,
                                              uint16_t epoch, uint32_t record_count);

/* One request with sequences. It begins, is asked of each of its records in order, is ready, and
 * ends with its outcome. Zeroed: a request without. */
struct sequence_request {
    struct native_producer *producer; /* the connection's; NULL: without sequences */
    struct sequence_topic *sequences; /* the connection's, between begin and end */
    struct topic *topic;              /* until it is ready: the broker may drop it later */
    struct uuid topic_uid;
    uint32_t first, count; /* the sequence of its first record; its records */
    /* Of each record. partition -1: it is to be written; offset < 0: it is there, somewhere. */
    struct wire_ack *known;
    struct error stopped;   /* status not OK: nothing of it is to be written */
    struct error unlocated; /* why those with offset < 0 are not acknowledged */
    struct sequence_locating *locating;
};
/* False: no memory, or too many topics. */
STATUS_MUST_CHECK
bool sequence_request_begin(struct sequence_request *request, struct native_producer *producer,
                            struct topic *topic, uint32_t first, uint32_t count);
/* Is the record to be written to the partition it belongs to? False: it is there already
 * (sequence_request_known), or the request is stopped. `acks`: what its acknowledgement is worth.
 */
STATUS_MUST_CHECK
bool sequence_request_wants(struct sequence_request *request, uint32_t index, uint32_t partition,
                            enum produce_acks acks);
/* All of its records were asked of. What is to be written is written now, or nothing of it. */
void sequence_request_ready(struct sequence_request *request);
/* NULL: the record was not there when it was asked of. Its offset may be < 0. */
const struct wire_ack *sequence_request_known(const struct sequence_request *request,
                                              uint32_t index);
/* The first `acked` records are acknowledged. `acks`, taken: where the first `ack_count` of them
 * lie, safe or not; NULL: not worth remembering. */
void sequence_request_end(struct sequence_request *request, uint32_t acked, struct wire_ack *acks,
                          uint32_t ack_count);
/* After its end: looks for those of whom nobody remembers where they are. True: `done` is called
 * once, maybe at once, and the request must stay until then. False: there are none. */
STATUS_MUST_CHECK
bool sequence_request_locate(struct sequence_request *request, struct broker *broker,
                             enum produce_acks acks, void (*done)(void *context), void *context);
bool sequence_request_is_locating(const struct sequence_request *request);
/* Also one that did not come to its end. */
void sequence_request_deinit(struct sequence_request *request);

/* a - b, from -2^30 up to 2^30 - 1: sequences wrap. */
int32_t sequence_distance(uint32_t a, uint32_t b);

#endif
