/* identity.h: who a client's idempotent produces are of, and its transaction.
 *
 * The identity is asked for with the connection. A client that reconnects outside a transaction
 * resumes the one it had, so that a record sent again is known by its sequence. After a produce
 * whose outcome stayed open the identity is stale: the sequence may be taken or not, so the next
 * produce begins with a new one.
 * States of the transaction: NONE -> OPEN -> NONE; OPEN -> LOST (its connection or a produce
 * failed: nothing of it will count) -> NONE by an abort. */
#ifndef MOONMQ_CLIENT_IDENTITY_H
#define MOONMQ_CLIENT_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

#include "moonmq.h"

#define CLIENT_TRANSACTION_LOST_TEXT "the transaction is lost, nothing of it counts: abort it"

struct sequence;

enum client_transaction {
    CLIENT_TRANSACTION_NONE,
    CLIENT_TRANSACTION_OPEN,
    CLIENT_TRANSACTION_LOST
};

struct client_identity {
    bool wanted;
    char *name; /* NULL: none */
    bool known, stale;
    bool fenced; /* somebody else has the name; it stays theirs */
    int64_t id;
    uint16_t epoch;
    struct sequence *sequences; /* one a topic */
    enum client_transaction transaction;
    bool on_connection; /* it was begun on the connection there is: the broker has it open, lost or
                           not */
};

void client_identity_deinit(struct client_identity *identity);
/* The connection is new: resumes the identity, or asks for one. */
int client_identity_connect(struct moonmq_client *client, int64_t deadline_us,
                            struct moonmq_error *error);
/* The connection is lost, and an open transaction with it. */
void client_identity_lost(struct client_identity *identity);
/* Produces one record with a sequence: the next one, or the one given. As in moonmq.h. */
int client_identity_produce(struct moonmq_client *client, const char *topic,
                            const struct moonmq_message *message, const uint32_t *given,
                            struct moonmq_ack *ack, struct moonmq_error *error);
/* Makes sure of an identity. MOONMQ_PRODUCER_FENCED: somebody else has the name. */
int client_identity_ready(struct moonmq_client *client, struct moonmq_error *error);
/* Are there sequences to be had, without asking? */
bool client_identity_is_good(const struct moonmq_client *client);
/* Refused for good, before anything was written? */
bool client_identity_is_refusal(int code);
/* What is queued shares the sequences: it is waited for before others take some. */
int client_identity_settle_queue(struct moonmq_client *client, struct moonmq_error *error);
/* Of the next record of the topic; NULL: no memory. */
uint32_t *client_identity_sequence(struct client_identity *identity, const char *topic);
/* What was numbered may be there or not: the identity is of no use any more, and neither is an open
 * transaction. */
void client_identity_doubt(struct client_identity *identity);
/* What became of a produce of `count` records. */
void client_identity_settle(struct client_identity *identity, uint32_t *sequence, uint32_t count,
                            int code);

#endif
