/* call.c: one request and its answer; see client.h. */
#include "base/assert.h"
#include "client/client.h"

int client_call_once(struct moonmq_client *client, uint8_t opcode, const void *message,
                     struct call *call, int64_t deadline_us, struct moonmq_error *error)
{
    ASSERT(client->call == NULL);
    call->id = client_next_id(client);
    call->done = false;
    call->code = MOONMQ_OK;
    size_t before = client->stream.out.bytes;
    wire_encode(&client->stream.out, opcode, &call->id, message);
    call->frame_bytes = client->stream.out.bytes - before;
    call->too_large = false;
    client->call = call;
    int code = MOONMQ_OK;
    while (code == MOONMQ_OK && !call->done) {
        bool progress;
        code = client_pump(client, deadline_us, &progress, error);
        if (code == MOONMQ_OK && !call->done && client_stream_now_us() >= deadline_us) {
            code = client_fail(error, MOONMQ_TIMEOUT, "no answer to %s in time",
                               wire_opcode_name(opcode));
        }
    }
    client->call = NULL;
    /* An answer counts, also if the connection broke right behind it. */
    return call->done ? call->code : code;
}

/* May the request be sent once more? A not-leader answer says that nothing was done, or that who
 * led does not know what became of it; a connection that broke before the answer says nothing. */
static bool may_repeat(const struct moonmq_client *client, const struct call *call, int code,
                       bool repeatable)
{
    if (client->reconnect_us_max == 0) return false;
    if (call->done) return code == MOONMQ_NOT_LEADER;
    if (call->too_large) return false;
    return repeatable && client->stream.descriptor < 0 && code != MOONMQ_PROTOCOL_ERROR &&
           code != MOONMQ_AUTH_FAILED;
}

int client_call(struct moonmq_client *client, uint8_t opcode, const void *message,
                struct call *call, bool repeatable, struct moonmq_error *error)
{
    int64_t deadline_us = client_stream_now_us() + client->request_timeout_us;
    struct moonmq_error why = {.code = MOONMQ_OK};
    for (;;) {
        int code = client_recover(client, deadline_us, &why);
        if (code == MOONMQ_OK && call->as_member) code = client_group_check(client, &why);
        if (code == MOONMQ_OK) {
            code = client_call_once(client, opcode, message, call, deadline_us, &why);
            /* The broker closes behind a not-leader answer. */
            if (code == MOONMQ_NOT_LEADER && client->stream.descriptor >= 0) {
                client_drop_connection(client, &why);
            }
            if (may_repeat(client, call, code, repeatable) &&
                client_stream_now_us() < deadline_us) {
                call->repeated = true;
                continue;
            }
        }
        if (code != MOONMQ_OK && error != NULL) *error = why;
        return code;
    }
}
