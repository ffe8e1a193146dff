/* transaction.c: the public functions about transactions; see identity.h. */
#include <poll.h>
#include <string.h>

#include "client/client.h"

#define RETRY_PAUSE_MS 20

static int fail_state(struct moonmq_error *error, const char *text)
{
    return client_fail(error, MOONMQ_INVALID_TRANSACTION, "%s", text);
}

int moonmq_begin_transaction(struct moonmq_client *client, struct moonmq_error *error)
{
    struct client_identity *identity = &client->identity;
    if (identity->name == NULL) {
        return fail_state(error, "a transaction needs a producer_name");
    }
    if (identity->transaction != CLIENT_TRANSACTION_NONE) {
        return fail_state(error, "end the transaction that is open first");
    }
    int code = client_identity_settle_queue(client, error);
    if (code == MOONMQ_OK) code = client_identity_ready(client, error);
    if (code != MOONMQ_OK) return code;
    struct call call = {.reply_opcode = WIRE_OK};
    /* One that was begun on a connection that broke ended with it. */
    code = client_call(client, WIRE_BEGIN_TXN, NULL, &call, true, error);
    if (code == MOONMQ_OK) {
        identity->transaction = CLIENT_TRANSACTION_OPEN;
        identity->on_connection = true;
    } else if (code == MOONMQ_PRODUCER_FENCED) {
        identity->fenced = true;
    } else if (code != MOONMQ_INVALID_TRANSACTION) {
        identity->stale = true; /* it may be open */
    }
    return code;
}

/* Not repeated on another connection: there it would be another transaction's end. */
static int end(struct moonmq_client *client, bool commit, struct moonmq_error *error)
{
    struct client_identity *identity = &client->identity;
    int64_t deadline_us = client_stream_now_us() + client->request_timeout_us;
    struct wire_end_txn message = {commit};
    struct moonmq_error why = {.code = MOONMQ_OK};
    int code;
    for (;;) {
        struct call call = {.reply_opcode = WIRE_OK};
        code = client_call_once(client, WIRE_END_TXN, &message, &call, deadline_us, &why);
        if (code != MOONMQ_INTERNAL || client->stream.descriptor < 0 ||
            client_stream_now_us() >= deadline_us) {
            break;
        }
        poll(NULL, 0, RETRY_PAUSE_MS);
    }
    identity->transaction = CLIENT_TRANSACTION_NONE;
    identity->on_connection = false;
    if (code == MOONMQ_OK) return code;
    identity->stale = true;
    if (code == MOONMQ_PRODUCER_FENCED) identity->fenced = true;
    if (code == MOONMQ_NOT_LEADER && client->stream.descriptor >= 0) {
        client_drop_connection(client, &why);
    }
    if (error != NULL) *error = why;
    return code;
}

int moonmq_commit_transaction(struct moonmq_client *client, struct moonmq_error *error)
{
    /* What is not acknowledged by now does not count, and so nothing does. */
    bool open = client->identity.transaction == CLIENT_TRANSACTION_OPEN;
    if (open && client_identity_settle_queue(client, NULL) != MOONMQ_OK) {
        client_identity_doubt(&client->identity);
    }
    switch (client->identity.transaction) {
    case CLIENT_TRANSACTION_OPEN: return end(client, true, error);
    case CLIENT_TRANSACTION_LOST: return fail_state(error, CLIENT_TRANSACTION_LOST_TEXT);
    case CLIENT_TRANSACTION_NONE: break;
    }
    return fail_state(error, "no transaction is open");
}

int moonmq_abort_transaction(struct moonmq_client *client, struct moonmq_error *error)
{
    struct client_identity *identity = &client->identity;
    if (identity->transaction == CLIENT_TRANSACTION_NONE) {
        return fail_state(error, "no transaction is open");
    }
    struct moonmq_error aborted;
    client_fail(&aborted, MOONMQ_INVALID_TRANSACTION, "the transaction was aborted");
    client_producer_give_up(client, &aborted);
    bool lost = identity->transaction == CLIENT_TRANSACTION_LOST;
    if (identity->on_connection && client->stream.descriptor >= 0) {
        int code = end(client, false, error);
        /* One that is lost may have ended at the broker, too. */
        bool ended = code == MOONMQ_CLOSED || code == MOONMQ_NOT_LEADER ||
                     (lost && code == MOONMQ_INVALID_TRANSACTION);
        return ended ? MOONMQ_OK : code;
    }
    /* It ended with its connection. */
    identity->transaction = CLIENT_TRANSACTION_NONE;
    identity->stale = true;
    return MOONMQ_OK;
}

int moonmq_commit_in_transaction(struct moonmq_client *client, const char *group,
                                 const struct moonmq_group_offset *offsets, size_t count,
                                 struct moonmq_error *error)
{
    struct client_identity *identity = &client->identity;
    size_t group_bytes = group == NULL ? 0 : strlen(group);
    if (group_bytes < 1 || group_bytes > WIRE_NAME_BYTES_MAX || count < 1 ||
        count > WIRE_TXN_OFFSETS_MAX) {
        return client_fail(error, MOONMQ_INVALID_ARGUMENT,
                           "a group of 1 to %d bytes and 1 to %d offsets are needed",
                           WIRE_NAME_BYTES_MAX, WIRE_TXN_OFFSETS_MAX);
    }
    if (identity->transaction != CLIENT_TRANSACTION_OPEN) {
        return fail_state(error, "no transaction is open (any more)");
    }
    struct buffer items;
    buffer_init(&items, 0);
    int code = MOONMQ_OK;
    for (size_t i = 0; i < count && code == MOONMQ_OK; i++) {
        struct wire_topic_offset item = {wire_text(offsets[i].topic), offsets[i].partition,
                                         offsets[i].offset};
        code = client_check_topic(offsets[i].topic, error);
        if (code == MOONMQ_OK && (item.partition < 0 || item.offset < 0)) {
            code = client_fail(error, MOONMQ_INVALID_ARGUMENT,
                               "partitions and offsets must not be negative");
        }
        wire_put(&items, &wire_shape_topic_offset, &item);
    }
    if (code == MOONMQ_OK) {
        struct wire_txn_offset_commit commit = {wire_text(group),
                                                {(uint32_t)count, buffer_slice(&items)}};
        struct call call = {.reply_opcode = WIRE_OK};
        code = client_call(client, WIRE_TXN_OFFSET_COMMIT, &commit, &call, false, error);
    }
    buffer_deinit(&items);
    return code;
}
