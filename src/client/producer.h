/* producer.h: records on their way, asynchronously: batches of one topic each (flight.h).
 *
 * Records are gathered in the lanes of their topic, one batch FILLING a lane. A batch that is full,
 * or waited long enough, is sealed: it goes to the end of the queue, READY, and is sent, several
 * being in flight. A lost connection makes SENT ones READY again; so does a refusal that may pass.
 * A batch leaves the queue when each of its records had its delivery function called.
 *
 * Order. Batches of a topic are taken in the order of the queue, however often they are sent: those
 * on their way behind a refused one are refused with it (ORDERED of native/wire.h, or by their
 * sequences), and none is sent while one before it is not, or was refused and has not passed since.
 *
 * Without sequences a topic has one lane: records are there at least once, and their first copies
 * in order. With sequences it has one a partition, because a partition remembers only the last five
 * batches of a producer: so a batch has one run of sequences in one partition, and no more than
 * five of a partition are in flight; each record is there once. When the outcome of a batch has to
 * be left open, all numbered ones share its fate, and what comes then is numbered anew under
 * another identity.                                                                              */
#ifndef MOONMQ_CLIENT_PRODUCER_H
#define MOONMQ_CLIENT_PRODUCER_H

#include <stdbool.h>
#include <stdint.h>

#include "moonmq.h"
#include "native/wire.h"

struct moonmq_client;
struct flight;
struct producer_topic;

struct client_producer {
    struct flight *queue; /* oldest first */
    uint32_t queue_count;
    struct flight *filling; /* oldest first; not in the queue yet */
    struct producer_topic *topics;
    size_t record_count, bytes; /* not delivered yet; of batches that are not done with */
    uint32_t batch_records_max, batch_bytes_max, window_batches_max;
    size_t queue_bytes_max;
    int64_t linger_us;
    char refusal[512]; /* why the broker last refused a batch for now; "" = it did not */
};

void client_producer_init(struct client_producer *producer, const struct moonmq_options *options);
/* Drops everything without a word. */
void client_producer_deinit(struct client_producer *producer);

/* The topic's entry, made if need be. With sequences it asks the broker for the number of
 * partitions, which may take a request's time. */
int client_producer_find_topic(struct moonmq_client *client, const char *topic,
                               struct producer_topic **out, struct moonmq_error *error);

enum producer_room { PRODUCER_ROOM, PRODUCER_WINDOW_FULL, PRODUCER_QUEUE_FULL };
/* Is there room for this record? */
enum producer_room client_producer_room(const struct client_producer *producer,
                                        const struct producer_topic *topic,
                                        const struct moonmq_message *message);
/* Queues a record. Needs room. */
int client_producer_add(struct moonmq_client *client, struct producer_topic *topic,
                        const struct moonmq_message *message, moonmq_delivery_fn delivered,
                        void *context, struct moonmq_error *error);
/* Nobody is told any more of the records with a context in [low, high). */
void client_producer_forget(struct client_producer *producer, const void *low, const void *high);

/* Batches that are full, or began at `began_us` or before, are READY now, as the window allows. */
void client_producer_seal(struct moonmq_client *client, int64_t began_us);
/* When the oldest batch that fills has lingered long enough; INT64_MAX: none fills, or for ever. */
int64_t client_producer_linger_until(const struct client_producer *producer);
/* Encodes what is READY into the stream. Returns when the next paused batch is due (INT64_MAX: none
 * is). */
int64_t client_producer_send(struct moonmq_client *client);

/* Takes the answer to a batch; a frame of nobody's is passed over. */
int client_producer_take(struct moonmq_client *client, const struct wire_frame *frame,
                         struct moonmq_error *error);
void client_producer_connection_lost(struct moonmq_client *client, const struct moonmq_error *why);
void client_producer_connected(struct moonmq_client *client);
/* No leader was found in time, or the identity is another's: everything fails. */
void client_producer_give_up(struct moonmq_client *client, const struct moonmq_error *why);

#endif
