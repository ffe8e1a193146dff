/* request.h: one request on its way through the native front end.
 *
 * Born from a frame, begun in its turn (connection.h, "Order"), finished exactly once by its
 * operation: now, or from a callback of the broker.
 * States: QUEUED -> RUNNING -> FINISHED -> sent and freed; or ORPHANED (RUNNING, client gone, the
 * broker still holds it) -> freed when it finishes. Thread: event loop.                        */
#ifndef MOONMQ_NATIVE_REQUEST_H
#define MOONMQ_NATIVE_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/broker.h"
#include "native/native.h"
#include "native/wire.h"

struct native;
struct native_connection;
struct native_request;

/* Begins the work. `message` and all it borrows are valid for the call only. */
typedef void (*native_begin_fn)(struct native_request *request, const union wire_message *message);

enum native_state {
    NATIVE_NEW = 1,
    NATIVE_GREETED = 2,
    NATIVE_AUTHENTICATED = 4,
    NATIVE_CLOSED = 8
};

struct native_operation {
    native_begin_fn begin; /* NULL: known, not implemented */
    uint8_t states;        /* in which it is allowed */
    bool produces;         /* may overlap with others that do */
    bool anywhere;         /* needs no serving leader, or looks for itself */
    bool handshake;        /* an undecodable payload ends the connection */
};
/* operations.c; NULL: an unknown opcode. */
const struct native_operation *native_operation_of(uint8_t opcode);

enum native_request_state {
    NATIVE_REQUEST_QUEUED,
    NATIVE_REQUEST_RUNNING,
    NATIVE_REQUEST_FINISHED,
};

struct native_request {
    struct native *native;
    struct native_connection *connection; /* NULL: the client is gone */
    const struct native_operation *operation;
    uint8_t opcode;
    struct wire_id id;
    enum native_request_state state;
    size_t frame_bytes; /* what it counts for in the connection's bounds */
    uint8_t *payload;   /* while QUEUED: a copy */
    size_t payload_bytes;
    struct buffer answer; /* frames, until those before it are out */
    /* The connection closes behind this answer. */
    bool closes;
    enum native_close_reason close_reason;
    /* The operation's own, set in `begin` when the work goes on after it. */
    void *work;
    void (*free_work)(struct native_request *request);
    /* The client is gone. True: nobody else holds `work` any more. NULL or false: somebody does,
     * and the request will be finished. */
    bool (*abandon)(struct native_request *request);
    struct native_request *next, *prev;
};

/* ---- for operations ---- */

struct broker *native_broker(const struct native_request *request);
/* Is there still somebody to answer? */
bool native_request_wanted(const struct native_request *request);

/* One frame of an answer; more follow. */
void native_reply(struct native_request *request, uint8_t opcode, const void *message);
/* The end of the answer; the request must not be touched afterwards. */
void native_finish(struct native_request *request);
/* The same; behind the answer the connection closes, and nothing further is begun on it. */
void native_finish_and_close(struct native_request *request, enum native_close_reason reason);
/* One frame, and the end. */
void native_answer(struct native_request *request, uint8_t opcode, const void *message);
void native_answer_ok(struct native_request *request);
/* An ERROR frame, and the end. */
void native_fail(struct native_request *request, enum wire_error_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* By the broker's status (errors.h). `error` may be NULL. NOT_LEADER also closes behind it. */
void native_fail_status(struct native_request *request, enum status status,
                        const struct error *error);
/* An ERROR frame behind which the connection closes. */
void native_fail_and_close(struct native_request *request, enum wire_error_code code,
                           enum native_close_reason reason, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* A topic name as text; false if it does not fit or holds a NUL: no such topic. */
bool native_topic_text(struct slice name, char text[WIRE_TOPIC_BYTES_MAX + 1]);

#endif
