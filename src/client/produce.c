/* produce.c: the public functions that append records. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "client/client.h"

#define RETRY_PAUSE_MS 20

static int check_message(const struct moonmq_message *message, struct moonmq_error *error)
{
    if (message->key_bytes <= WIRE_STRING_BYTES_MAX &&
        message->value_bytes <= WIRE_STRING_BYTES_MAX) {
        return MOONMQ_OK;
    }
    bool is_key = message->key_bytes > WIRE_STRING_BYTES_MAX;
    return client_fail(error, MOONMQ_INVALID_ARGUMENT,
                       "a %s of %zu bytes is too large for the native protocol (at most %d)",
                       is_key ? "key" : "value", is_key ? message->key_bytes : message->value_bytes,
                       WIRE_STRING_BYTES_MAX);
}

/* ---- one record ---- */

static int take_ack(void *context, const struct wire_frame *frame, struct moonmq_error *error)
{
    struct moonmq_ack *ack = context;
    if (frame->opcode != WIRE_PRODUCE_ACK) return MOONMQ_OK;
    union wire_message message;
    int code = client_decode(frame, &message, error);
    if (code != MOONMQ_OK || ack == NULL) return code;
    *ack = (struct moonmq_ack){message.ack.partition, message.ack.offset};
    return MOONMQ_OK;
}

int moonmq_produce(struct moonmq_client *client, const char *topic,
                   const struct moonmq_message *message, struct moonmq_ack *ack,
                   struct moonmq_error *error)
{
    int code = client_check_topic(topic, error);
    if (code == MOONMQ_OK) code = check_message(message, error);
    if (code != MOONMQ_OK) return code;
    if (client->identity.wanted) {
        return client_identity_produce(client, topic, message, NULL, ack, error);
    }
    struct wire_produce produce = {
        .codec = client->codec,
        .topic = wire_text(topic),
        .key = {message->key, message->key_bytes},
        .value = {message->value, message->value_bytes},
    };
    struct call call = {.reply_opcode = WIRE_PRODUCE_ACK, .take = take_ack, .context = ack};
    return client_call(client, WIRE_PRODUCE, &produce, &call, true, error);
}

/* ---- a batch ---- */

struct batch_answer {
    struct moonmq_ack *acks; /* NULL: not wanted */
    size_t count;            /* records sent */
    size_t acked;
};

static int take_batch_ack(void *context, const struct wire_frame *frame, struct moonmq_error *error)
{
    struct batch_answer *answer = context;
    if (frame->opcode != WIRE_PRODUCE_BATCH_ACK) return MOONMQ_OK;
    union wire_message message;
    int code = client_decode(frame, &message, error);
    if (code != MOONMQ_OK) return code;
    const struct wire_produce_batch_ack *ack = &message.produce_batch_ack;
    if (ack->acks.count > answer->count ||
        (ack->error_code == 0 && ack->acks.count < answer->count)) {
        return client_fail(error, MOONMQ_PROTOCOL_ERROR, "%u acknowledgements for %zu records",
                           ack->acks.count, answer->count);
    }
    struct wire_cursor cursor;
    struct wire_ack item;
    wire_cursor_init(&cursor, &ack->acks, &wire_shape_ack);
    for (size_t i = 0; wire_cursor_next(&cursor, &item); i++) {
        if (answer->acks == NULL) break;
        answer->acks[i] = (struct moonmq_ack){item.partition, item.offset};
    }
    if (ack->error_code == 0) {
        answer->acked = answer->count;
        return MOONMQ_OK;
    }
    /* All of them with an error: appended, but not known to be safe (4.4). */
    answer->acked = ack->acks.count < answer->count ? ack->acks.count : 0;
    return client_fail(error, ack->error_code, "%.*s", (int)ack->error_text.bytes,
                       (const char *)ack->error_text.data);
}

static int encode_messages(const struct moonmq_message *messages, size_t count,
                           struct buffer *items, struct moonmq_error *error)
{
    for (size_t i = 0; i < count; i++) {
        int code = check_message(&messages[i], error);
        if (code != MOONMQ_OK) return code;
        struct wire_key_value item = {
            .key = {messages[i].key, messages[i].key_bytes},
            .value = {messages[i].value, messages[i].value_bytes},
        };
        wire_put(items, &wire_shape_key_value, &item);
    }
    if (!buffer_failed(items)) return MOONMQ_OK;
    return client_fail(error, MOONMQ_INVALID_ARGUMENT,
                       "a batch of more than %u bytes does not fit into a frame",
                       WIRE_CLIENT_BODY_BYTES_MAX);
}

/* ---- a batch with sequences: queued like others, and waited for ---- */

struct batch_slot {
    struct moonmq_delivery delivery;
    bool delivered;
    char *text; /* of a failure */
};

static void keep_delivery(void *context, const struct moonmq_delivery *delivery)
{
    struct batch_slot *slot = context;
    slot->delivery = *delivery;
    slot->delivered = true;
    slot->text = delivery->code == MOONMQ_OK ? NULL : strdup(delivery->text);
}

/* The acknowledgements from the first on; why the next one failed. */
static int collect_slots(const struct batch_slot *slots, size_t count, struct moonmq_ack *acks,
                         size_t *acked, struct moonmq_error *error)
{
    for (size_t i = 0; i < count; i++) {
        const struct batch_slot *slot = &slots[i];
        if (!slot->delivered) return MOONMQ_TIMEOUT;
        if (slot->delivery.code != MOONMQ_OK) {
            return client_fail(error, slot->delivery.code, "%s",
                               slot->text == NULL ? "" : slot->text);
        }
        if (acks != NULL) acks[i] = slot->delivery.ack;
        if (acked != NULL) *acked = i + 1;
    }
    return MOONMQ_OK;
}

static int produce_sequenced_batch(struct moonmq_client *client, const char *topic,
                                   const struct moonmq_message *messages, size_t count,
                                   struct moonmq_ack *acks, size_t *acked,
                                   struct moonmq_error *error)
{
    int code = MOONMQ_OK;
    for (size_t i = 0; i < count && code == MOONMQ_OK; i++)
        code = check_message(&messages[i], error);
    if (code != MOONMQ_OK) return code;
    struct batch_slot *slots = calloc(count, sizeof(*slots));
    if (slots == NULL) return client_fail(error, MOONMQ_NO_MEMORY, "no memory for a batch");
    struct moonmq_error why = {.code = MOONMQ_OK};
    for (size_t i = 0; i < count && code == MOONMQ_OK; i++) {
        code = moonmq_produce_async(client, topic, &messages[i], keep_delivery, &slots[i], &why);
    }
    int flushed = moonmq_flush(client, (int)(client->request_timeout_us / 1000), &why);
    if (code == MOONMQ_OK) code = flushed;
    client_producer_forget(&client->producer, slots, slots + count);
    int collected = collect_slots(slots, count, acks, acked, &why);
    if (collected != MOONMQ_TIMEOUT || code == MOONMQ_OK) code = collected;
    if (code != MOONMQ_OK && error != NULL) *error = why;
    for (size_t i = 0; i < count; i++)
        free(slots[i].text);
    free(slots);
    return code;
}

int moonmq_produce_batch(struct moonmq_client *client, const char *topic,
                         const struct moonmq_message *messages, size_t count,
                         struct moonmq_ack *acks, size_t *acked, struct moonmq_error *error)
{
    if (acked != NULL) *acked = 0;
    int code = client_check_topic(topic, error);
    if (code != MOONMQ_OK) return code;
    if (count < 1 || count > WIRE_BATCH_RECORDS_MAX) {
        return client_fail(error, MOONMQ_INVALID_ARGUMENT, "a batch holds 1 to %d records",
                           WIRE_BATCH_RECORDS_MAX);
    }
    if (client->identity.wanted) {
        return produce_sequenced_batch(client, topic, messages, count, acks, acked, error);
    }
    struct buffer items;
    buffer_init(&items, WIRE_CLIENT_BODY_BYTES_MAX - 512);
    code = encode_messages(messages, count, &items, error);
    if (code == MOONMQ_OK) {
        struct wire_produce_batch batch = {
            .codec = client->codec,
            .topic = wire_text(topic),
            .records = {.count = (uint32_t)count, .items = buffer_slice(&items)},
            .has_spread = true,
            .spread = client_next_spread(client),
        };
        struct batch_answer answer = {.acks = acks, .count = count};
        struct call call = {
            .reply_opcode = WIRE_PRODUCE_BATCH_ACK, .take = take_batch_ack, .context = &answer};
        code = client_call(client, WIRE_PRODUCE_BATCH, &batch, &call, true, error);
        if (acked != NULL) *acked = answer.acked;
    }
    buffer_deinit(&items);
    return code;
}

/* ---- asynchronously ---- */

/* What is queued with sequences needs somebody they are of. MOONMQ_TIMEOUT: not yet. */
static int ready_identity(struct moonmq_client *client, struct moonmq_error *error)
{
    bool waits = client->identity.wanted && client->producer.queue != NULL;
    if (!waits || client_identity_is_good(client)) return MOONMQ_OK;
    int code = client_identity_ready(client, error);
    if (code == MOONMQ_PRODUCER_FENCED) client_producer_give_up(client, error);
    if (code != MOONMQ_INTERNAL && code != MOONMQ_NOT_LEADER) return code;
    poll(NULL, 0, RETRY_PAUSE_MS);
    return MOONMQ_TIMEOUT;
}

/* Sends what began to fill at `began_us` or before, receives, and looks for the leader if need be;
 * waits at most until the deadline. What fails the call is the end: no leader any more, or
 * reconnecting is not wanted. */
static int producer_step(struct moonmq_client *client, int64_t began_us, int64_t deadline_us,
                         bool *progress, struct moonmq_error *error)
{
    *progress = false;
    struct moonmq_error why;
    client_producer_seal(client, began_us);
    int code = client_recover(client, deadline_us, &why);
    if (code == MOONMQ_OK) code = ready_identity(client, &why);
    if (code == MOONMQ_TIMEOUT) return MOONMQ_OK;
    if (code == MOONMQ_OK) {
        int64_t due_us = client_producer_send(client);
        code = client_pump(client, due_us < deadline_us ? due_us : deadline_us, progress, &why);
        /* Lost just now, and to be found again: the next step does it. */
        if (code != MOONMQ_OK && client->reconnect_us_max > 0 && code != MOONMQ_PROTOCOL_ERROR) {
            return MOONMQ_OK;
        }
    }
    if (code != MOONMQ_OK && error != NULL) *error = why;
    return code;
}

/* What began to fill at this time or before has lingered long enough. */
static int64_t lingered_us(const struct moonmq_client *client)
{
    int64_t linger_us = client->producer.linger_us;
    return linger_us == 0 ? INT64_MIN : client_stream_now_us() - linger_us;
}

static int fail_waiting(const struct moonmq_client *client, struct moonmq_error *error)
{
    const char *refusal = client->producer.refusal;
    return client_fail(error, MOONMQ_TIMEOUT,
                       "no acknowledgement in time, %zu records are waiting%s%s",
                       client->producer.record_count, refusal[0] == '\0' ? "" : ": ", refusal);
}

static int wait_for_room(struct moonmq_client *client, const struct producer_topic *topic,
                         const struct moonmq_message *message, struct moonmq_error *error)
{
    int64_t deadline_us = 0;
    for (;;) {
        enum producer_room room = client_producer_room(&client->producer, topic, message);
        if (room == PRODUCER_ROOM) return MOONMQ_OK;
        if (deadline_us == 0) {
            deadline_us = client_stream_now_us() + client->request_timeout_us;
        } else if (client_stream_now_us() >= deadline_us) {
            return fail_waiting(client, error);
        }
        /* Batches that fill could take all the room there is. */
        int64_t began_us = room == PRODUCER_QUEUE_FULL ? INT64_MAX : lingered_us(client);
        bool progress;
        int code = producer_step(client, began_us, deadline_us, &progress, error);
        if (code != MOONMQ_OK) return code;
    }
}

int moonmq_produce_async(struct moonmq_client *client, const char *topic,
                         const struct moonmq_message *message, moonmq_delivery_fn delivered,
                         void *context, struct moonmq_error *error)
{
    int code = client_check_topic(topic, error);
    if (code == MOONMQ_OK) code = check_message(message, error);
    struct producer_topic *found = NULL;
    if (code == MOONMQ_OK) code = client_producer_find_topic(client, topic, &found, error);
    if (code == MOONMQ_OK) code = wait_for_room(client, found, message, error);
    /* Lost before, or while waiting: outside of it the record has no business. */
    if (client->identity.transaction == CLIENT_TRANSACTION_LOST) {
        return client_fail(error, MOONMQ_INVALID_TRANSACTION, CLIENT_TRANSACTION_LOST_TEXT);
    }
    if (code != MOONMQ_OK) return code;
    uint32_t before = client->producer.queue_count;
    code = client_producer_add(client, found, message, delivered, context, error);
    /* A batch was sealed, or has lingered: on its way with it, while the next one fills. */
    bool lingered = client->producer.linger_us > 0 &&
                    client_producer_linger_until(&client->producer) <= client_stream_now_us();
    if (code == MOONMQ_OK && (client->producer.queue_count != before || lingered)) {
        bool progress;
        /* This record is queued: a connection lost now is told by its delivery. */
        (void)producer_step(client, lingered_us(client), client_stream_now_us(), &progress, NULL);
    }
    return code;
}

int moonmq_poll(struct moonmq_client *client, int timeout_ms, struct moonmq_error *error)
{
    int64_t deadline_us = client_stream_now_us() + (int64_t)timeout_ms * 1000;
    bool lingers = client->producer.linger_us > 0;
    for (;;) {
        bool progress;
        client_group_beat(client);
        int64_t until_us = client_group_until_us(client, deadline_us);
        int64_t lingered = client_producer_linger_until(&client->producer);
        if (lingered < until_us) until_us = lingered;
        int code = producer_step(client, lingers ? lingered_us(client) : INT64_MAX, until_us,
                                 &progress, error);
        if (code != MOONMQ_OK || progress || client_stream_now_us() >= deadline_us) return code;
    }
}

int moonmq_flush(struct moonmq_client *client, int timeout_ms, struct moonmq_error *error)
{
    int64_t deadline_us = client_stream_now_us() + (int64_t)timeout_ms * 1000;
    while (client->producer.record_count > 0) {
        bool progress;
        int code = producer_step(client, INT64_MAX, deadline_us, &progress, error);
        if (code != MOONMQ_OK) return code;
        if (client->producer.record_count > 0 && client_stream_now_us() >= deadline_us) {
            return fail_waiting(client, error);
        }
    }
    return MOONMQ_OK;
}

size_t moonmq_pending(const struct moonmq_client *client)
{
    return client->producer.record_count;
}
