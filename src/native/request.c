/* request.c: see request.h. */
#include "native/request.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "native/errors.h"
#include "native/native_state.h"

struct native_request *native_request_new(struct native_connection *connection, uint8_t opcode,
                                          const struct wire_id *id, size_t frame_bytes)
{
    struct native_request *request = calloc(1, sizeof(*request));
    if (request == NULL) return NULL;
    request->native = connection->native;
    request->connection = connection;
    request->operation = native_operation_of(opcode);
    request->opcode = opcode;
    request->id = *id;
    request->frame_bytes = frame_bytes;
    buffer_init(&request->answer, connection->native->settings.pending_bytes_max);
    return request;
}

void native_request_free(struct native_request *request)
{
    if (request->free_work != NULL) request->free_work(request);
    struct byte_pool *pool = request->native->settings.pool;
    if (request->payload != NULL && pool != NULL) byte_pool_release(pool, request->payload_bytes);
    buffer_deinit(&request->answer);
    free(request->payload);
    free(request);
}

struct broker *native_broker(const struct native_request *request)
{
    return request->native->broker;
}

bool native_request_wanted(const struct native_request *request)
{
    return request->connection != NULL && request->connection->state != NATIVE_CLOSED;
}

/* ---- beginning ---- */

/* Where this connection stands: on an open broker a greeting is all that is asked for (F1). */
static uint8_t states_of(const struct native_connection *connection)
{
    if (connection->state == NATIVE_GREETED && native_is_open(connection->native)) {
        return NATIVE_GREETED | NATIVE_AUTHENTICATED;
    }
    return connection->state;
}

/* False: the request was failed. */
static bool may_begin(struct native_request *request)
{
    const struct native_operation *operation = request->operation;
    uint8_t states = states_of(request->connection);
    if (operation == NULL && (states & NATIVE_AUTHENTICATED) != 0) {
        native_fail(request, WIRE_CODE_UNKNOWN_OP, "unknown operation 0x%02x", request->opcode);
        return false;
    }
    if (operation == NULL || (operation->states & states) == 0) {
        native_fail(request, WIRE_CODE_BAD_FRAME, "%s is not allowed %s",
                    wire_opcode_name(request->opcode),
                    request->connection->state == NATIVE_NEW       ? "before HELLO"
                    : request->connection->state == NATIVE_GREETED ? "before logging in (AUTH)"
                                                                   : "in this state");
        return false;
    }
    if (!operation->anywhere) {
        enum status status = broker_check_serving(request->native->broker);
        if (status != STATUS_OK) {
            native_fail_status(request, status, NULL);
            return false;
        }
    }
    if (operation->begin == NULL) {
        native_fail(request, WIRE_CODE_UNKNOWN_OP, "%s is not supported yet",
                    wire_opcode_name(request->opcode));
        return false;
    }
    return true;
}

void native_request_begin(struct native_request *request, struct slice payload)
{
    request->state = NATIVE_REQUEST_RUNNING;
    if (!may_begin(request)) return;
    union wire_message message;
    struct error error;
    enum status status = wire_decode(wire_shape_of(request->opcode), payload, &message, &error);
    if (status == STATUS_OK) {
        request->operation->begin(request, &message);
    } else if (request->operation->handshake) {
        native_fail_and_close(request, WIRE_CODE_BAD_FRAME, NATIVE_CLOSE_BAD_FRAME, "%s",
                              error.text);
    } else {
        native_fail(request, WIRE_CODE_BAD_FRAME, "%s", error.text);
    }
}

/* ---- answers ---- */

void native_reply(struct native_request *request, uint8_t opcode, const void *message)
{
    if (!native_request_wanted(request)) return;
    wire_encode(&request->answer, opcode, &request->id, message);
    request->native->stats.frames_sent++;
}

void native_finish(struct native_request *request)
{
    ASSERT(request->state == NATIVE_REQUEST_RUNNING);
    request->state = NATIVE_REQUEST_FINISHED;
    struct native_connection *connection = request->connection;
    if (connection == NULL) {
        native_orphan(request);
        return;
    }
    connection->running_count--;
    native_liveness_answered(connection);
    native_connection_advance(connection);
}

void native_finish_and_close(struct native_request *request, enum native_close_reason reason)
{
    request->closes = true;
    request->close_reason = reason;
    if (request->connection != NULL) request->connection->closing = true;
    native_finish(request);
}

void native_answer(struct native_request *request, uint8_t opcode, const void *message)
{
    native_reply(request, opcode, message);
    native_finish(request);
}

void native_answer_ok(struct native_request *request)
{
    native_answer(request, WIRE_OK, NULL);
}

static void reply_error(struct native_request *request, enum wire_error_code code, const char *text)
{
    struct wire_error_message message = {.code = (uint16_t)code, .text = wire_text(text)};
    /* An error takes the place of what there was of an answer. */
    buffer_clear(&request->answer);
    native_reply(request, WIRE_ERROR, &message);
}

void native_fail(struct native_request *request, enum wire_error_code code, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    reply_error(request, code, text);
    native_finish(request);
}

void native_fail_and_close(struct native_request *request, enum wire_error_code code,
                           enum native_close_reason reason, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    reply_error(request, code, text);
    native_finish_and_close(request, reason);
}

void native_fail_status(struct native_request *request, enum status status,
                        const struct error *error)
{
    enum wire_error_code code = native_error_code(status);
    if (code == WIRE_CODE_NOT_LEADER) {
        char text[NATIVE_NOT_LEADER_BYTES];
        native_not_leader_text(broker_group_view(request->native->broker), text);
        native_fail_and_close(request, code, NATIVE_CLOSE_NOT_LEADER, "%s", text);
        return;
    }
    const char *text = error != NULL && error->text[0] != '\0' ? error->text : status_text(status);
    native_fail(request, code, "%s", text);
}

bool native_topic_text(struct slice name, char text[WIRE_TOPIC_BYTES_MAX + 1])
{
    if (name.bytes > WIRE_TOPIC_BYTES_MAX) return false;
    if (memchr(name.data, 0, name.bytes) != NULL) return false;
    memcpy(text, name.data, name.bytes);
    text[name.bytes] = '\0';
    return true;
}
