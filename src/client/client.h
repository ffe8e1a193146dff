/* client.h: what one libmoonmq client is made of; the public contract is include/moonmq.h.
 *
 *   client.c    options, birth and death, frames by correlation id
 *   leader.c    finding the leader, handshake; scram.c: a login that keeps the password here
 *   call.c      one request, its answer, its repetition
 *   producer.c  asynchronous batches in flight; flight.c: one of them
 *   identity.c  idempotent produces and the transaction
 *   group.c     membership in a consumer group
 *   subscription.c  topics read record by record
 *   produce.c consume.c dead_letter.c admin.c groups.c transaction.c   the public functions
 *
 * States: connected (stream open, logged in) or lost (stream closed; `lost_at_us` says since when).
 * Thread: one at a time.                                                                        */
#ifndef MOONMQ_CLIENT_CLIENT_H
#define MOONMQ_CLIENT_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "client/address.h"
#include "client/fail.h"
#include "client/group.h"
#include "client/identity.h"
#include "client/producer.h"
#include "client/stream.h"
#include "client/subscription.h"
#include "moonmq.h"
#include "native/wire.h"

#define CLIENT_HOSTS_MAX 64

/* A request that waits for its answer. */
struct call {
    struct wire_id id;
    uint8_t reply_opcode; /* what ends it, besides ERROR */
    /* Takes a frame of the answer, `reply_opcode` last. NULL: nothing in it is of interest. */
    client_stream_frame_fn take;
    void *context;
    bool as_member; /* not without the membership there was, if there was one */
    bool done;
    bool repeated; /* sent more than once: an earlier one may have been carried out */
    size_t frame_bytes;
    bool too_large; /* the connection broke for the size of a frame, and no other is larger */
    int code;
};

struct moonmq_client {
    struct client_address *hosts;
    size_t host_count;
    char *user, *password, *name, *version; /* NULL: not given */
    int64_t connect_timeout_us, request_timeout_us, reconnect_us_max;
    bool any_replica;
    uint8_t codec; /* enum moonmq_compression */
    int mechanism; /* enum moonmq_mechanism */

    struct client_stream stream;
    struct client_address connected_to;
    char connected_text[CLIENT_ADDRESS_TEXT_BYTES];
    bool has_hint;
    struct client_address hint; /* who leads, by the last not-leader text */
    int64_t lost_at_us;         /* 0: connected, or never was */
    uint8_t id_prefix[8];       /* random; with next_id a correlation id that is never zero */
    uint64_t next_id;
    uint32_t next_spread;
    struct call *call; /* the one in progress, or NULL */
    struct client_producer producer;
    struct client_group group;
    struct client_identity identity;
    struct client_subscriptions subscriptions;
};

struct wire_id client_next_id(struct moonmq_client *client);

/* For the next batch: each partition's turn comes; the first is random. */
uint32_t client_next_spread(struct moonmq_client *client);

/* One client_stream_pump() with this client's dispatch. A zero-id ERROR closes the stream and is
 * returned.
 */
int client_pump(struct moonmq_client *client, int64_t deadline_us, bool *progress,
                struct moonmq_error *error);

/* Closes the stream, noting when. Batches in flight will be sent again, or fail if the client does
 * not reconnect. */
void client_drop_connection(struct moonmq_client *client, const struct moonmq_error *why);

/* Keeps the `leader=` hint of a not-leader text, if there is one. */
void client_note_hint(struct moonmq_client *client, const char *text);

/* leader.c: looks for the leader, at least one round over the hosts, then further ones until the
 * deadline. On success the stream is open and logged in. */
int client_find_leader(struct moonmq_client *client, int64_t deadline_us,
                       struct moonmq_error *error);
/* leader.c: makes sure there is a connection, as far as the options allow reconnecting.
 * MOONMQ_CLOSED: they do not. MOONMQ_TIMEOUT: not yet, try again. Otherwise it is over. */
int client_recover(struct moonmq_client *client, int64_t deadline_us, struct moonmq_error *error);

/* call.c: sends a request and waits for its answer, at most request_timeout.
 * repeatable  send it again when the connection broke with the outcome unknown. */
int client_call(struct moonmq_client *client, uint8_t opcode, const void *message,
                struct call *call, bool repeatable, struct moonmq_error *error);
/* call.c: the same on the stream as it is, without reconnecting: for the handshake. */
int client_call_once(struct moonmq_client *client, uint8_t opcode, const void *message,
                     struct call *call, int64_t deadline_us, struct moonmq_error *error);

/* Decodes a frame's payload; MOONMQ_PROTOCOL_ERROR if it cannot be. */
int client_decode(const struct wire_frame *frame, union wire_message *message,
                  struct moonmq_error *error);

/* 1 .. 249 bytes of A-Za-z0-9._- (1.3). */
int client_check_topic(const char *topic, struct moonmq_error *error);

#endif
