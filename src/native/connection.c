/* connection.c: see connection.h. Liveness is in liveness.c, single requests in request.c. */
#include "native/connection.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/assert.h"
#include "native/errors.h"
#include "native/native_state.h"
#include "native/push.h"

/* Requests a connection may have open. */
#define REQUESTS_MAX 1024
/* Bytes of frames behind them; one frame always fits. */
#define REQUEST_BYTES_MAX     (16u << 20)
#define LOGIN_FRAME_BYTES_MAX 65536

/* ---- birth and death ---- */

struct native_connection *native_connection_new(struct native *native,
                                                const struct native_connection_handlers *handlers,
                                                const char *peer_host)
{
    struct native_connection *connection = calloc(1, sizeof(*connection));
    if (connection == NULL) return NULL;
    connection->native = native;
    connection->handlers = *handlers;
    connection->state = NATIVE_NEW;
    connection->peer_host = strdup(peer_host);
    buffer_init(&connection->out, 0);
    if (connection->peer_host == NULL) {
        free(connection);
        return NULL;
    }
    DL_APPEND(native->connections, connection);
    native->stats.connections_open++;
    native_liveness_start(connection);
    return connection;
}

/* Drops a request of a connection that goes: at once, or when the broker lets go of it. */
static void abandon(struct native_request *request)
{
    bool running = request->state == NATIVE_REQUEST_RUNNING;
    request->connection = NULL;
    if (!running || (request->abandon != NULL && request->abandon(request))) {
        native_request_free(request);
        return;
    }
    DL_APPEND(request->native->orphans, request);
}

void native_connection_free(struct native_connection *connection)
{
    struct native *native = connection->native;
    if (connection->state != NATIVE_CLOSED) native->stats.closed[NATIVE_CLOSE_PEER_CLOSED]++;
    connection->state = NATIVE_CLOSED;
    while (connection->requests != NULL) {
        struct native_request *request = connection->requests;
        DL_DELETE(connection->requests, request);
        native->stats.requests_in_flight--;
        abandon(request);
    }
    if (connection->is_due) DL_DELETE2(native->due, connection, prev_due, next_due);
    DL_DELETE(native->connections, connection);
    native->stats.connections_open--;
    native_push_end(connection);
    native_membership_free(connection->membership);
    native_session_free(connection->session);
    native_scram_free(connection->scram);
    ordered_topics_free(&connection->ordered);
    native_transaction_close(connection);
    native_producer_free(&connection->producer);
    timer_free(connection->timer);
    buffer_deinit(&connection->out);
    free(connection->peer_host);
    free(connection);
}

void native_connection_set_state(struct native_connection *connection, enum native_state state)
{
    ASSERT(connection->state != NATIVE_CLOSED);
    connection->state = state;
    native_liveness_rearm(connection);
}

/* ---- sending ---- */

static void send_out(struct native_connection *connection)
{
    if (connection->out.bytes == 0) return;
    struct native *native = connection->native;
    native->stats.bytes_sent += connection->out.bytes;
    connection->sent_bytes += connection->out.bytes;
    connection->handlers.send(connection->handlers.context, buffer_slice(&connection->out));
    buffer_clear(&connection->out);
    /* A burst leaves a large buffer behind; thousands of idle connections should not each keep one.
     */
    if (connection->out.capacity > REQUEST_BYTES_MAX / 16) buffer_deinit(&connection->out);
}

static void close_now(struct native_connection *connection, enum native_close_reason reason,
                      const char *text)
{
    if (connection->state == NATIVE_CLOSED) return;
    send_out(connection);
    connection->native->stats.closed[reason]++;
    /* Requests stay until the shell frees the connection: we may be inside a broker's callback. */
    native_connection_set_state(connection, NATIVE_CLOSED);
    connection->handlers.close(connection->handlers.context, reason, text);
}

/* After sending: is the peer too slow to take its answers? */
static void check_unsent(struct native_connection *connection)
{
    if (connection->state == NATIVE_CLOSED) return;
    size_t unsent = connection->handlers.unsent(connection->handlers.context);
    if (unsent > connection->native->settings.pending_bytes_max) {
        close_now(connection, NATIVE_CLOSE_PENDING_SEND_TOO_LARGE,
                  "too many answers wait to be read");
    } else if (unsent > 0) {
        native_liveness_rearm(connection);
    }
}

void native_connection_die(struct native_connection *connection, enum wire_error_code code,
                           enum native_close_reason reason, const char *text)
{
    if (connection->state == NATIVE_CLOSED) return;
    if (code != WIRE_CODE_NONE) {
        wire_encode_error(&connection->out, &wire_id_zero, (uint16_t)code, text);
        connection->native->stats.frames_sent++;
    }
    close_now(connection, reason, text);
}

void native_refuse_connection(struct buffer *out, const char *text)
{
    wire_encode_error(out, &wire_id_zero, WIRE_CODE_RATE_LIMITED, text);
}

/* ---- requests in order ---- */

static void remove_request(struct native_connection *connection, struct native_request *request)
{
    DL_DELETE(connection->requests, request);
    connection->request_count--;
    connection->request_bytes -= request->frame_bytes;
    connection->native->stats.requests_in_flight--;
    native_request_free(request);
}

/* Sends the head's answer; false if the connection closed with it. */
static bool emit(struct native_connection *connection, struct native_request *request)
{
    bool failed = buffer_failed(&request->answer);
    buffer_put(&connection->out, request->answer.data, request->answer.bytes);
    bool closes = request->closes;
    enum native_close_reason reason = request->close_reason;
    uint8_t opcode = request->opcode;
    remove_request(connection, request);
    if (failed || buffer_failed(&connection->out)) {
        close_now(connection, NATIVE_CLOSE_PENDING_SEND_TOO_LARGE,
                  "an answer larger than MaxPendingBytes");
        return false;
    }
    if (!closes) return true;
    char text[64];
    snprintf(text, sizeof(text), "behind the answer to %s", wire_opcode_name(opcode));
    close_now(connection, reason, text);
    return false;
}

static bool may_start(const struct native_connection *connection,
                      const struct native_request *request)
{
    if (connection->running_count == 0) return true;
    return !connection->exclusive && request->operation != NULL && request->operation->produces;
}

static void start(struct native_connection *connection, struct native_request *request,
                  struct slice payload)
{
    connection->running_count++;
    connection->exclusive = request->operation == NULL || !request->operation->produces;
    native_request_begin(request, payload);
}

/* The first that is queued, if its turn has come. */
static struct native_request *next_to_start(struct native_connection *connection)
{
    struct native_request *request = connection->first_queued;
    if (request == NULL || connection->closing) return NULL;
    return may_start(connection, request) ? request : NULL;
}

static void start_queued(struct native_connection *connection, struct native_request *request)
{
    connection->first_queued = request->next;
    /* The copy lives until the request does: `begin` borrows it. */
    start(connection, request, (struct slice){request->payload, request->payload_bytes});
}

static void advance_once(struct native_connection *connection)
{
    struct native_request *head;
    while ((head = connection->requests) != NULL && head->state == NATIVE_REQUEST_FINISHED) {
        if (!emit(connection, head)) return;
    }
}

/* Answers of one turn leave together, unless this is the only one. */
static void send_or_wait(struct native_connection *connection)
{
    if (connection->out.bytes == 0 && !connection->frame_waits) return;
    if (connection->requests == NULL && !connection->frame_waits) {
        send_out(connection);
        check_unsent(connection);
    } else {
        native_connection_due(connection);
    }
}

static void die_demoted(struct native_connection *connection)
{
    char text[NATIVE_NOT_LEADER_BYTES];
    native_not_leader_text(broker_group_view(connection->native->broker), text);
    native_connection_die(connection, WIRE_CODE_NOT_LEADER, NATIVE_CLOSE_NOT_LEADER, text);
}

void native_connection_advance(struct native_connection *connection)
{
    /* Finished inside `begin` or inside a broker's call below: the loop there goes on. */
    if (connection->advancing || connection->state == NATIVE_CLOSED) return;
    connection->advancing = true;
    for (;;) {
        advance_once(connection);
        if (connection->state == NATIVE_CLOSED) break;
        struct native_request *request = next_to_start(connection);
        if (request == NULL) break;
        start_queued(connection, request);
    }
    connection->advancing = false;
    if (connection->state == NATIVE_CLOSED) return;
    if (connection->demoted && connection->requests == NULL) {
        native_connection_due(connection);
        return;
    }
    send_or_wait(connection);
}

void native_connection_turn(struct native_connection *connection)
{
    if (connection->state == NATIVE_CLOSED) return;
    send_out(connection);
    check_unsent(connection);
    if (connection->state == NATIVE_CLOSED) return;
    if (connection->demoted && connection->requests == NULL) {
        die_demoted(connection);
        return;
    }
    bool has_room = connection->request_count < REQUESTS_MAX / 2 &&
                    connection->request_bytes < REQUEST_BYTES_MAX / 2;
    if (connection->frame_waits && has_room) {
        connection->frame_waits = false;
        connection->handlers.resume(connection->handlers.context);
    }
}

/* ---- frames in ---- */

enum status native_frame_bytes(const struct native_connection *connection, const uint8_t prefix[4],
                               size_t *frame_bytes)
{
    size_t bytes = load_u32(prefix);
    size_t bytes_max = connection->native->settings.frame_bytes_max;
    bool logged_in = connection->state == NATIVE_AUTHENTICATED ||
                     (connection->state == NATIVE_GREETED && native_is_open(connection->native));
    if (!logged_in && bytes_max > LOGIN_FRAME_BYTES_MAX) bytes_max = LOGIN_FRAME_BYTES_MAX;
    if (bytes < WIRE_BODY_BYTES_MIN) return STATUS_INVALID;
    if (bytes > bytes_max) return STATUS_TOO_LARGE;
    *frame_bytes = bytes;
    return STATUS_OK;
}

void native_connection_refuse_frame(struct native_connection *connection, enum status why)
{
    if (why == STATUS_TOO_LARGE) {
        native_connection_die(connection, WIRE_CODE_FRAME_TOO_LARGE, NATIVE_CLOSE_FRAME_TOO_LARGE,
                              "frame larger than MaxFrameSize");
    } else {
        native_connection_die(connection, WIRE_CODE_BAD_FRAME, NATIVE_CLOSE_BAD_FRAME,
                              "frame shorter than its head");
    }
}

static void answer_heartbeat(struct native_connection *connection, const struct wire_id *id)
{
    wire_encode(&connection->out, WIRE_HEARTBEAT_RESP, id, NULL);
    connection->native->stats.frames_sent++;
    native_connection_due(connection);
}

static bool has_room_for(const struct native_connection *connection, size_t frame_bytes)
{
    const struct byte_pool *pool = connection->native->settings.pool;
    if (connection->requests == NULL) return true;
    if (pool != NULL && !byte_pool_has_room(pool, frame_bytes)) return false;
    return connection->request_count < REQUESTS_MAX &&
           connection->request_bytes + frame_bytes <= REQUEST_BYTES_MAX &&
           connection->out.bytes <= REQUEST_BYTES_MAX;
}

/* Behind others: its payload is kept. False: no memory for it. */
static bool keep_payload(struct native_request *request, struct slice payload)
{
    request->payload = malloc(payload.bytes + 1);
    if (request->payload == NULL) return false;
    memcpy(request->payload, payload.data, payload.bytes);
    request->payload_bytes = payload.bytes;
    if (request->native->settings.pool != NULL) {
        byte_pool_charge(request->native->settings.pool, payload.bytes);
    }
    return true;
}

static void take_request(struct native_connection *connection, struct native_request *request,
                         struct slice payload)
{
    bool starts = connection->first_queued == NULL && may_start(connection, request);
    if (!starts && !keep_payload(request, payload)) {
        native_request_free(request);
        native_connection_die(connection, WIRE_CODE_INTERNAL, NATIVE_CLOSE_BAD_FRAME,
                              "out of memory");
        return;
    }
    DL_APPEND(connection->requests, request);
    connection->request_count++;
    connection->request_bytes += request->frame_bytes;
    connection->native->stats.requests_in_flight++;
    if (!starts) {
        if (connection->first_queued == NULL) connection->first_queued = request;
        return;
    }
    bool outermost = !connection->advancing;
    connection->advancing = true;
    start(connection, request, payload);
    if (!outermost) return;
    connection->advancing = false;
    native_connection_advance(connection);
}

static void count_frame(struct native *native, uint8_t opcode)
{
    bool known =
        opcode < ARRAY_COUNT(native->stats.frames_received) && native_operation_of(opcode) != NULL;
    native->stats.frames_received[known ? opcode : 0]++;
}

enum status native_connection_receive(struct native_connection *connection, struct slice frame)
{
    if (connection->state == NATIVE_CLOSED || connection->closing) return STATUS_CLOSED;
    ASSERT(frame.bytes >= WIRE_BODY_BYTES_MIN);
    uint8_t opcode = frame.data[0];
    struct wire_id id;
    memcpy(id.bytes, frame.data + 1, WIRE_ID_BYTES);
    struct slice payload = {frame.data + WIRE_BODY_BYTES_MIN, frame.bytes - WIRE_BODY_BYTES_MIN};
    connection->received_at_us = loop_now_us(connection->native->loop);
    if (opcode == WIRE_HEARTBEAT_REQ || opcode == WIRE_HEARTBEAT_RESP) {
        count_frame(connection->native, opcode);
        if (opcode == WIRE_HEARTBEAT_REQ) {
            answer_heartbeat(connection, &id);
        } else {
            native_push_heard(connection, &id);
        }
        return connection->state == NATIVE_CLOSED ? STATUS_CLOSED : STATUS_OK;
    }
    if (!has_room_for(connection, frame.bytes)) {
        connection->frame_waits = true;
        return STATUS_AGAIN;
    }
    count_frame(connection->native, opcode);
    struct native_request *request = native_request_new(connection, opcode, &id, frame.bytes);
    if (request == NULL) {
        native_connection_die(connection, WIRE_CODE_INTERNAL, NATIVE_CLOSE_BAD_FRAME,
                              "out of memory");
        return STATUS_CLOSED;
    }
    take_request(connection, request, payload);
    return connection->state == NATIVE_CLOSED ? STATUS_CLOSED : STATUS_OK;
}
