/* fail.c: errors as the public header shows them. */
#include "client/fail.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int client_fail(struct moonmq_error *error, int code, const char *format, ...)
{
    if (error == NULL) return code;
    error->code = code;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof(error->text), format, arguments);
    va_end(arguments);
    return code;
}

int client_fail_broker(struct moonmq_error *error, const struct wire_error_message *message)
{
    /* Code 0 in an ERROR frame would read as success. */
    int code = message->code == 0 ? MOONMQ_PROTOCOL_ERROR : message->code;
    return client_fail(error, code, "%.*s", (int)message->text.bytes,
                       (const char *)message->text.data);
}

void client_fail_prefix(struct moonmq_error *error, const char *prefix)
{
    if (error == NULL) return;
    size_t room = sizeof(error->text) - 1;
    size_t prefix_bytes = strnlen(prefix, room - 2);
    size_t shift = prefix_bytes + 2;
    size_t kept = strnlen(error->text, room - shift);
    memmove(error->text + shift, error->text, kept);
    memcpy(error->text, prefix, prefix_bytes);
    memcpy(error->text + prefix_bytes, ": ", 2);
    error->text[shift + kept] = '\0';
}

const char *moonmq_code_text(int code)
{
    switch (code) {
    case MOONMQ_OK: return "ok";
    case MOONMQ_BAD_REQUEST: return "bad request";
    case MOONMQ_UNKNOWN_OPERATION: return "unknown operation";
    case MOONMQ_AUTH_FAILED: return "authentication failed";
    case MOONMQ_TOPIC_MISSING: return "topic missing";
    case MOONMQ_RATE_LIMITED: return "limit reached";
    case MOONMQ_INTERNAL: return "broker error";
    case MOONMQ_BAD_PROTOCOL: return "protocol mismatch";
    case MOONMQ_TOO_LARGE: return "too large";
    case MOONMQ_MEMBER_UNKNOWN: return "not a member";
    case MOONMQ_GROUP_CONFLICT: return "group conflict";
    case MOONMQ_GROUP_MISSING: return "group missing";
    case MOONMQ_GROUP_NOT_EMPTY: return "group has members";
    case MOONMQ_OUT_OF_ORDER: return "out of order";
    case MOONMQ_BATCH_TOO_LARGE: return "batch too large";
    case MOONMQ_PRODUCER_FENCED: return "producer fenced";
    case MOONMQ_INVALID_TRANSACTION: return "invalid transaction state";
    case MOONMQ_INVALID_CONFIG: return "invalid configuration";
    case MOONMQ_TOPIC_FORBIDDEN: return "topic is internal";
    case MOONMQ_NOT_AUTHORIZED: return "not authorized";
    case MOONMQ_NOT_LEADER: return "not the leader";
    case MOONMQ_INVALID_PARTITIONS: return "invalid partition count";
    case MOONMQ_INVALID_ARGUMENT: return "invalid argument";
    case MOONMQ_NO_MEMORY: return "out of memory";
    case MOONMQ_UNREACHABLE: return "unreachable";
    case MOONMQ_TIMEOUT: return "timed out";
    case MOONMQ_CLOSED: return "connection lost";
    case MOONMQ_PROTOCOL_ERROR: return "protocol error";
    default: return "broker error";
    }
}
