/* producer.h: records on their way, asynchronously: batches of one topic each, in the order in
 * which they were queued, several in flight.
 *
 * A batch is FILLING (at most one, the last), READY (to be sent, at once or after a pause), or
 * SENT. A lost connection makes SENT ones READY again; so does a refusal that may pass. A batch
 * leaves the list when each of its records had its delivery function called.
 *
 * Order. Batches of a topic are taken in the order of the list, however often they are sent: those
 * on their way behind a refused one are refused with it (ORDERED, native/wire.h), and none is sent
 * while one before it is not, or was refused and has not passed since. So records are there at
 * least once, and their first copies in order. */
#ifndef MOONMQ_CLIENT_PRODUCER_H
#define MOONMQ_CLIENT_PRODUCER_H

#include <stdbool.h>
#include <stdint.h>

#include "moonmq.h"
#include "native/wire.h"

struct moonmq_client;
struct flight;

struct client_producer {
    struct flight *first, *last; /* oldest first */
    uint32_t flight_count;
    size_t record_count; /* not delivered yet */
    uint32_t batch_records_max, batch_bytes_max, window_batches_max;
    char refusal[512]; /* why the broker last refused a batch for now; "" = it did not */
};

void client_producer_init(struct client_producer *producer, const struct moonmq_options *options);
/* Drops everything without a word. */
void client_producer_deinit(struct client_producer *producer);

/* Is there room for one more batch? */
bool client_producer_has_room(const struct client_producer *producer);
/* Queues a record into the filling batch, or a new one. Needs room. */
int client_producer_add(struct moonmq_client *client, const char *topic,
                        const struct moonmq_message *message, moonmq_delivery_fn delivered,
                        void *context, struct moonmq_error *error);
/* The filling batch is READY now. */
void client_producer_seal(struct client_producer *producer);
/* Encodes what is READY into the stream. Returns when the next paused batch is due (INT64_MAX: none
 * is). */
int64_t client_producer_send(struct moonmq_client *client);

/* Takes the answer to a batch; a frame of nobody's is passed over. */
int client_producer_take(struct moonmq_client *client, const struct wire_frame *frame,
                         struct moonmq_error *error);
void client_producer_connection_lost(struct moonmq_client *client, const struct moonmq_error *why);
void client_producer_connected(struct moonmq_client *client);
/* No leader was found in time: everything fails. */
void client_producer_give_up(struct moonmq_client *client, const struct moonmq_error *why);

#endif
