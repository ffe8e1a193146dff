/* request.h: one request on its way through the front end.
 *
 * Born from a frame (connection.c) or from a forwarded body (forward.c); its handler fills `answer`
 * and finishes it exactly once. Everything it needs lives in its arena.
 * States: begun (or parked for a leader) -> finished (encoded) -> sent and freed, in order; or,
 * when the client went away, orphaned until the broker lets go.
 * Thread: event loop.                                                                          */
#ifndef MOONMQ_KAFKA_REQUEST_H
#define MOONMQ_KAFKA_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/admin.h"
#include "broker/broker.h"
#include "broker/fetch.h"
#include "broker/offsets.h"
#include "kafka/api.h"
#include "kafka/arena.h"
#include "kafka/header.h"
#include "kafka/messages.h"
#include "kafka/response.h"
#include "kafka/seen.h"
#include "replication/node.h"

/* An answer is never larger: room for the largest batch there can be, and the rest. */
#define KAFKA_ANSWER_BYTES_MAX ((size_t)128 << 20)
/* What building an answer may take of the arena, beyond what decoding the request took. */
#define KAFKA_ANSWER_ARENA_BYTES_MAX ((size_t)128 << 20)

struct kafka_connection;

struct kafka_request {
    struct kafka *kafka;
    struct kafka_connection *connection; /* NULL: forwarded, or the client is gone */
    struct node_forwarded *forwarded;    /* NULL: from a connection */
    const char *forwarded_host;          /* the client's address at the broker it asked */
    const struct kafka_api *api;
    const struct kafka_messages *messages;
    struct kafka_request_header header;
    bool flexible;
    struct slice body; /* without the header; gone after `handle` if borrowed */
    struct arena arena;
    size_t charged_bytes; /* to the pool: a copy of the frame, and what it was decoded into */
    void *message;        /* the decoded request, of messages->request */
    void *answer;         /* of messages->response, at its defaults at first */
    void *state;          /* the handler's own */
    uint32_t open;        /* the handler's count of answers it waits for */
    /* Called once when the request goes: lets go of what `state` holds outside the arena. */
    void (*release)(struct kafka_request *request);

    /* request.c and connection.c */
    bool begun; /* the handler was called */
    int64_t begun_us;
    bool finished;
    bool runnable; /* in the front end's list of what to run next */
    struct leader_wait *wait;
    void (*resume)(struct kafka_request *request);
    struct kafka_response *response; /* finished; NULL: no answer is sent */
    struct kafka_request *next, *prev;
    struct kafka_request *next_runnable, *previous_runnable;
};

/* The message and the answer as what they are; the handler knows. */
#define KAFKA_MESSAGE(request, name) ((const struct kafka_##name##_request *)(request)->message)
#define KAFKA_ANSWER(request, name)  ((struct kafka_##name##_response *)(request)->answer)

struct broker *kafka_request_broker(const struct kafka_request *request);
const struct kafka_settings *kafka_request_settings(const struct kafka_request *request);
/* Is there still somebody to answer? */
bool kafka_request_wanted(const struct kafka_request *request);
/* The peer's address, or the one a forwarded request came with; never NULL. */
const char *kafka_request_client_host(const struct kafka_request *request);

/* ---- finishing: exactly one of these, once; the request is gone afterwards ---- */

/* Encodes `answer`. Shared pieces in it are referenced, so they may be released afterwards. An
 * arena that failed, or an answer over its bound, closes the connection instead. */
void kafka_finish(struct kafka_request *request);
/* One of the answers that `open` counts is there; with the last one the request is finished. A
 * handler that asks several things counts itself, too, until it has asked them all. */
void kafka_part_done(struct kafka_request *request);
/* A body that is encoded already, copied. */
void kafka_finish_raw(struct kafka_request *request, struct slice body);
/* A forwarded request found no leader here. */
void kafka_finish_not_leader(struct kafka_request *request);
/* No answer at all (acks=0). */
void kafka_finish_silently(struct kafka_request *request);
/* Closes the connection without an answer. */
void kafka_finish_close(struct kafka_request *request, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- waiting ---- */

/* Calls `resume` from the loop when a leader is known (here: serves), or after `timeout_us` (at
 * most leader_wait_us) without. Never nested in the caller. */
void kafka_wait_leader(struct kafka_request *request, int64_t timeout_us,
                       void (*resume)(struct kafka_request *request));

/* ---- small things handlers share ---- */

/* A NUL-terminated copy in the arena; NULL if the text holds a NUL or the arena failed. */
const char *kafka_request_text(struct kafka_request *request, struct slice text);
/* A client's time-out: the smaller of it and AckTimeout, at least a millisecond (decisions 14). */
int64_t kafka_timeout_us(const struct kafka_request *request, int32_t timeout_ms);
/* A table for `count` names of this request (seen.h). */
void kafka_request_seen(struct kafka_request *request, struct seen *seen, size_t count);
/* NULL: there is none of this name. */
struct topic *kafka_find_topic(const struct kafka_request *request, struct slice name);
/* What is answered for a name that kafka_find_topic() does not find: that it can't be one, or that
 * there is none. */
int16_t kafka_no_topic(struct slice name);
/* NULL: there is none; `topic` may be NULL. */
struct partition *kafka_find_partition(const struct topic *topic, int32_t index);
/* A partition that the request may name once: 0, or the code of why not. */
int16_t kafka_take_partition(struct seen *seen, struct slice topic_name, const struct topic *topic,
                             int32_t index, struct partition **out);
/* The code of `status` for this request's API and version (errors.h). */
int16_t kafka_request_error(const struct kafka_request *request, enum status status);

/* ---- connection.c, forward.c, kafka.c ---- */

/* A request with header and message decoded, or NULL with the error set. `frame_copied`: `frame` is
 * put into the arena first. `at`: reader over the frame, behind the first header fields. */
STATUS_MUST_CHECK
enum status kafka_request_new(struct kafka *kafka, const struct kafka_api *api,
                              const struct kafka_request_header *start, struct slice frame,
                              size_t frame_at, bool with_header, bool copy_frame,
                              struct kafka_request **out, struct error *error);
/* Runs the handler, or parks the request first when the leader here is not ready. */
void kafka_request_begin(struct kafka_request *request);
/* Frees, or orphans what the broker still holds; taken out of its list by the caller. */
void kafka_request_abandon(struct kafka_request *request);
void kafka_request_free(struct kafka_request *request);

#endif
