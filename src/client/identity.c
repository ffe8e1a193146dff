/* identity.c: see identity.h. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "client/client.h"

#define RETRY_PAUSE_MS 20

struct sequence {
    char *topic;
    uint32_t next;
    struct sequence *other;
};

static void free_sequences(struct client_identity *identity)
{
    while (identity->sequences != NULL) {
        struct sequence *sequence = identity->sequences;
        identity->sequences = sequence->other;
        free(sequence->topic);
        free(sequence);
    }
}

void client_identity_deinit(struct client_identity *identity)
{
    free_sequences(identity);
    free(identity->name);
    identity->name = NULL;
}

void client_identity_lost(struct client_identity *identity)
{
    identity->on_connection = false;
    if (identity->transaction != CLIENT_TRANSACTION_OPEN) return;
    identity->transaction = CLIENT_TRANSACTION_LOST;
    identity->stale = true;
}

/* ---- asking for it ---- */

static int take_identity(void *context, const struct wire_frame *frame, struct moonmq_error *error)
{
    struct client_identity *identity = context;
    if (frame->opcode != WIRE_PRODUCER_ID) return MOONMQ_OK;
    union wire_message message;
    int code = client_decode(frame, &message, error);
    if (code != MOONMQ_OK) return code;
    bool same = identity->known && !identity->stale &&
                identity->id == message.producer_id.producer_id &&
                identity->epoch == message.producer_id.epoch;
    if (!same) free_sequences(identity);
    identity->known = true;
    identity->stale = false;
    identity->id = message.producer_id.producer_id;
    identity->epoch = message.producer_id.epoch;
    return MOONMQ_OK;
}

static struct wire_init_producer_id init_message(const struct client_identity *identity,
                                                 bool resumes)
{
    return (struct wire_init_producer_id){
        .has_name = identity->name != NULL || resumes,
        .name = wire_text(identity->name == NULL ? "" : identity->name),
        .has_resume = resumes,
        .producer_id = identity->id,
        .epoch = identity->epoch,
    };
}

int client_identity_connect(struct moonmq_client *client, int64_t deadline_us,
                            struct moonmq_error *error)
{
    struct client_identity *identity = &client->identity;
    if (!identity->wanted || identity->fenced) return MOONMQ_OK;
    bool resumes = identity->known && !identity->stale;
    struct wire_init_producer_id init = init_message(identity, resumes);
    struct call call = {
        .reply_opcode = WIRE_PRODUCER_ID, .take = take_identity, .context = identity};
    int code = client_call_once(client, WIRE_INIT_PRODUCER_ID, &init, &call, deadline_us, error);
    if (code != MOONMQ_PRODUCER_FENCED) return code;
    /* The connection is good for everything else. */
    identity->fenced = true;
    return MOONMQ_OK;
}

int client_identity_ready(struct moonmq_client *client, struct moonmq_error *error)
{
    struct client_identity *identity = &client->identity;
    /* A new connection brings one along. */
    int code = client_recover(client, client_stream_now_us() + client->request_timeout_us, error);
    if (code == MOONMQ_OK && identity->fenced) {
        code = client_fail(error, MOONMQ_PRODUCER_FENCED, "another client has the name %s",
                           identity->name == NULL ? "" : identity->name);
    }
    if (code != MOONMQ_OK || (identity->known && !identity->stale)) return code;
    struct wire_init_producer_id init = init_message(identity, false);
    struct call call = {
        .reply_opcode = WIRE_PRODUCER_ID, .take = take_identity, .context = identity};
    return client_call(client, WIRE_INIT_PRODUCER_ID, &init, &call, true, error);
}

/* ---- sequences ---- */

uint32_t *client_identity_sequence(struct client_identity *identity, const char *topic)
{
    struct sequence *sequence = identity->sequences;
    while (sequence != NULL && strcmp(sequence->topic, topic) != 0)
        sequence = sequence->other;
    if (sequence != NULL) return &sequence->next;
    sequence = calloc(1, sizeof(*sequence));
    if (sequence != NULL) sequence->topic = strdup(topic);
    if (sequence == NULL || sequence->topic == NULL) {
        free(sequence);
        return NULL;
    }
    sequence->other = identity->sequences;
    identity->sequences = sequence;
    return &sequence->next;
}

bool client_identity_is_good(const struct moonmq_client *client)
{
    const struct client_identity *identity = &client->identity;
    return identity->known && !identity->stale && !identity->fenced;
}

bool client_identity_is_refusal(int code)
{
    return code == MOONMQ_BAD_REQUEST || code == MOONMQ_TOPIC_MISSING ||
           code == MOONMQ_RATE_LIMITED || code == MOONMQ_TOO_LARGE ||
           code == MOONMQ_BATCH_TOO_LARGE || code == MOONMQ_TOPIC_FORBIDDEN ||
           code == MOONMQ_NOT_AUTHORIZED || code == MOONMQ_NO_MEMORY ||
           code == MOONMQ_INVALID_ARGUMENT;
}

void client_identity_doubt(struct client_identity *identity)
{
    identity->stale = true;
    if (identity->transaction == CLIENT_TRANSACTION_OPEN) {
        identity->transaction = CLIENT_TRANSACTION_LOST;
    }
}

void client_identity_settle(struct client_identity *identity, uint32_t *sequence, uint32_t count,
                            int code)
{
    if (code == MOONMQ_PRODUCER_FENCED) identity->fenced = true;
    if (code == MOONMQ_OK) {
        *sequence += count;
    } else if (!client_identity_is_refusal(code)) {
        client_identity_doubt(identity);
    }
}

int client_identity_settle_queue(struct moonmq_client *client, struct moonmq_error *error)
{
    if (moonmq_pending(client) == 0) return MOONMQ_OK;
    return moonmq_flush(client, (int)(client->request_timeout_us / 1000), error);
}

/* ---- one record ---- */

static int take_ack(void *context, const struct wire_frame *frame, struct moonmq_error *error)
{
    struct moonmq_ack *ack = context;
    if (frame->opcode != WIRE_PRODUCE_ACK) return MOONMQ_OK;
    union wire_message message;
    int code = client_decode(frame, &message, error);
    if (code == MOONMQ_OK) *ack = (struct moonmq_ack){message.ack.partition, message.ack.offset};
    return code;
}

static int produce(struct moonmq_client *client, const char *topic,
                   const struct moonmq_message *message, uint32_t sequence, struct moonmq_ack *ack,
                   struct moonmq_error *error)
{
    const struct client_identity *identity = &client->identity;
    int64_t deadline_us = client_stream_now_us() + client->request_timeout_us;
    bool open = identity->transaction == CLIENT_TRANSACTION_OPEN;
    struct wire_produce_idempotent message_out = {
        .producer_id = identity->id,
        .sequence = sequence,
        .epoch = identity->epoch,
        .codec = client->codec,
        .topic = wire_text(topic),
        .key = {message->key, message->key_bytes},
        .value = {message->value, message->value_bytes},
    };
    for (;;) {
        struct call call = {.reply_opcode = WIRE_PRODUCE_ACK, .take = take_ack, .context = ack};
        int code = client_call(client, WIRE_PRODUCE_IDEMPOTENT, &message_out, &call, !open, error);
        /* Its sequence makes it safe to ask again. */
        if (code != MOONMQ_INTERNAL || client_stream_now_us() >= deadline_us) return code;
        poll(NULL, 0, RETRY_PAUSE_MS);
    }
}

int client_identity_produce(struct moonmq_client *client, const char *topic,
                            const struct moonmq_message *message, const uint32_t *given,
                            struct moonmq_ack *ack, struct moonmq_error *error)
{
    struct client_identity *identity = &client->identity;
    int code = client_identity_settle_queue(client, error);
    bool open = identity->transaction == CLIENT_TRANSACTION_OPEN;
    if (identity->transaction == CLIENT_TRANSACTION_LOST) {
        return client_fail(error, MOONMQ_INVALID_TRANSACTION, CLIENT_TRANSACTION_LOST_TEXT);
    }
    if (code == MOONMQ_OK && !open) code = client_identity_ready(client, error);
    if (code != MOONMQ_OK) return code;
    uint32_t *sequence = client_identity_sequence(identity, topic);
    if (sequence == NULL) return client_fail(error, MOONMQ_NO_MEMORY, "no memory for a topic");
    uint32_t number = given != NULL ? *given : *sequence;
    struct moonmq_ack taken = {0};
    code = produce(client, topic, message, number, &taken, error);
    if (code == MOONMQ_OK && ack != NULL) *ack = taken;
    /* A new identity while it was under way took the sequences with it. */
    sequence = client_identity_sequence(identity, topic);
    bool counts = sequence != NULL && (given == NULL || (code == MOONMQ_OK && number == *sequence));
    if (counts) client_identity_settle(identity, sequence, 1, code);
    return code;
}

int moonmq_produce_at_sequence(struct moonmq_client *client, const char *topic,
                               const struct moonmq_message *message, uint32_t sequence,
                               struct moonmq_ack *ack, struct moonmq_error *error)
{
    int code = client_check_topic(topic, error);
    if (code != MOONMQ_OK) return code;
    if (!client->identity.wanted) {
        return client_fail(error, MOONMQ_INVALID_ARGUMENT, "only an idempotent client has numbers");
    }
    return client_identity_produce(client, topic, message, &sequence, ack, error);
}

int64_t moonmq_next_sequence(struct moonmq_client *client, const char *topic)
{
    const struct sequence *sequence = client->identity.sequences;
    if (!client_identity_is_good(client)) return -1;
    while (sequence != NULL && strcmp(sequence->topic, topic) != 0)
        sequence = sequence->other;
    return sequence == NULL ? 0 : sequence->next;
}
