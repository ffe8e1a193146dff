/* static_wire.h: what static mode says over HTTP, and keeps in its file (native-protocol.md section
 * 7, docs/replication.md "Static mode").
 *
 * A push is POST /replicate with X-Replica-ID, X-Topic, X-Partition (from 1). Its body is one
 * record (record/pushed_record.h); or, with X-Topic-ID (the leader's incarnation of the topic) and
 * X-Position, any number of whole batches as the leader stores them: that is what this broker
 * sends. Everything of the leader's below X-Position was told to be there, or is nothing to push.
 * Pure. */
#ifndef MOONMQ_REPLICATION_STATIC_WIRE_H
#define MOONMQ_REPLICATION_STATIC_WIRE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/status.h"
#include "base/uuid.h"
#include "broker/catalog.h"
#include "broker/produce.h"

#define STATIC_POSITIONS_FILE      "replication-static.json"
#define STATIC_POSITIONS_BYTES_MAX (64u << 20)
/* Producer ids that say where a batch came from: this and the pushing replica's id. Ids that
 * leaders give out never get here. */
#define STATIC_PRODUCER_ID_BASE PRODUCER_IDS_RESERVED
/* The producer epoch of such a batch: of which agreement it is, or that it came without a position.
 */
#define STATIC_GENERATIONS_MAX 32767
#define STATIC_GENERATION_NONE 32767

struct static_push {
    char topic[TOPIC_NAME_BYTES_MAX + 1];
    int32_t partition;    /* 0-based */
    int32_t source;       /* the pushing replica; -1: it did not say */
    bool has_position;    /* batches, with the two below */
    struct uuid topic_id; /* not none */
    int64_t position;
};
/* Header lines, each with CR LF. */
void static_put_push(struct buffer *out, const struct static_push *push);
typedef const char *(*static_field_fn)(void *context, const char *name); /* NULL: not there */
/* STATUS_INVALID: a field is missing or malformed. */
STATUS_MUST_CHECK
enum status static_get_push(static_field_fn field, void *context, struct static_push *out,
                            struct error *error);

struct static_answer {
    int64_t offset;   /* the follower's log end, durable */
    int64_t position; /* of the leader's offsets: what it wants next; -1: it holds nothing of it */
    bool has_position;
};
void static_put_answer(struct buffer *out, const struct static_answer *answer);
STATUS_MUST_CHECK
enum status static_get_answer(struct slice body, struct static_answer *out, struct error *error);

/* What a follower holds of one partition of one leader: a line of its file. */
struct static_place {
    struct uuid topic_id; /* its own topic */
    int32_t partition;
    int32_t source;
    struct uuid source_topic_id;
    int32_t generation; /* of this agreement, below STATIC_GENERATIONS_MAX */
    int64_t position;   /* everything of the leader's below it is here, below: */
    int64_t end;        /* its own offset */
};
struct static_places_writer {
    json_t *list;
};
void static_places_begin(struct static_places_writer *writer);
void static_places_put(struct static_places_writer *writer, const struct static_place *place);
/* Ends the writer. */
void static_places_finish(struct static_places_writer *writer, struct buffer *out);
typedef void (*static_place_fn)(void *context, const struct static_place *place);
/* All lines, or STATUS_CORRUPT: `each` may have been called then. */
STATUS_MUST_CHECK
enum status static_places_decode(struct slice file, static_place_fn each, void *context,
                                 struct error *error);

#endif
