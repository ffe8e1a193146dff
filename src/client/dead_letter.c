/* dead_letter.c: refusing a record, and reading what became of those refused too often
 * (native-protocol.md 4.10). */
#include <string.h>

#include "client/client.h"

static int take_nack(void *context, const struct wire_frame *frame, struct moonmq_error *error)
{
    struct moonmq_nacked *nacked = context;
    if (frame->opcode != WIRE_NACK_ACK) return MOONMQ_OK;
    union wire_message message;
    int code = client_decode(frame, &message, error);
    if (code != MOONMQ_OK) return code;
    const struct wire_nack_ack *ack = &message.nack_ack;
    nacked->dead_lettered = ack->dead_lettered != 0;
    nacked->attempts = ack->attempts;
    size_t bytes = ack->dlq_topic.bytes;
    if (bytes >= sizeof(nacked->topic)) bytes = sizeof(nacked->topic) - 1;
    if (bytes > 0) memcpy(nacked->topic, ack->dlq_topic.data, bytes);
    nacked->topic[bytes] = '\0';
    return MOONMQ_OK;
}

int moonmq_nack(struct moonmq_client *client, const char *topic, int32_t partition, int64_t offset,
                const char *reason, struct moonmq_nacked *nacked, struct moonmq_error *error)
{
    int code = client_check_topic(topic, error);
    if (code != MOONMQ_OK) return code;
    const char *text = reason == NULL ? "" : reason;
    if (partition < 0 || offset < 0 || strlen(text) > WIRE_REASON_BYTES_MAX) {
        return client_fail(error, MOONMQ_INVALID_ARGUMENT,
                           "partition and offset must not be negative, the reason has at most %d "
                           "bytes",
                           WIRE_REASON_BYTES_MAX);
    }
    struct wire_nack nack = {wire_text(topic), partition, offset, wire_text(text)};
    struct moonmq_nacked taken = {0};
    struct call call = {
        .reply_opcode = WIRE_NACK_ACK, .take = take_nack, .context = &taken, .as_member = true};
    code = client_call(client, WIRE_NACK, &nack, &call, false, error);
    if (code != MOONMQ_OK) return code;
    if (!taken.dead_lettered) client_subscriptions_skip(&client->subscriptions, topic, partition);
    if (nacked != NULL) *nacked = taken;
    return MOONMQ_OK;
}

/* ---- envelopes ---- */

static struct moonmq_bytes bytes_of(struct slice slice)
{
    return (struct moonmq_bytes){slice.data, slice.bytes};
}

int moonmq_decode_dead_letter(const void *value, size_t value_bytes,
                              struct moonmq_dead_letter *letter, struct moonmq_error *error)
{
    struct wire_dead_letter decoded;
    struct error why;
    if (wire_decode_dead_letter((struct slice){value, value_bytes}, &decoded, &why) != STATUS_OK) {
        return client_fail(error, MOONMQ_PROTOCOL_ERROR, "not a dead letter: %s", why.text);
    }
    *letter = (struct moonmq_dead_letter){
        .topic = bytes_of(decoded.topic),
        .partition = decoded.partition,
        .offset = decoded.offset,
        .timestamp_ms = decoded.timestamp_ms,
        .group = bytes_of(decoded.group),
        .attempts = decoded.attempts,
        .reason = bytes_of(decoded.reason),
        .value = bytes_of(decoded.value),
    };
    return MOONMQ_OK;
}
