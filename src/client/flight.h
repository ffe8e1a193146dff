/* flight.h: one batch of records on its way: its records, encoded, and whom to tell of each.
 *
 * States: FILLING (in its topic's lane) -> READY (to be sent, at once or after a pause) <-> SENT.
 * With sequences a batch is numbered when it is sent for the first time, and keeps its numbers for
 * as long as it may be there. The records before `items_at` are delivered. Thread: the client's. */
#ifndef MOONMQ_CLIENT_FLIGHT_H
#define MOONMQ_CLIENT_FLIGHT_H

#include <stdbool.h>
#include <stdint.h>

#include "moonmq.h"
#include "native/wire.h"

struct producer_topic;

enum flight_state { FLIGHT_FILLING, FLIGHT_READY, FLIGHT_SENT };

struct record_slot {
    moonmq_delivery_fn delivered; /* NULL: nobody asked */
    void *context;
};

struct flight {
    struct flight *prev, *next; /* of the queue, or of those that fill */
    enum flight_state state;
    struct producer_topic *topic;
    uint32_t lane;
    uint32_t spread; /* where its records without key go, however often it is sent */
    struct buffer items;
    size_t items_at;
    struct record_slot *slots;
    uint32_t slot_count, slot_capacity, delivered;
    int64_t began_us;  /* when its first record was queued */
    struct wire_id id; /* valid while SENT, as is frame_bytes */
    size_t frame_bytes;
    int64_t ready_at_us;    /* valid while READY */
    int64_t refused_at_us;  /* of the first refusal in a row; 0: none */
    bool in_doubt;          /* refused last, and not because one before it was */
    bool numbered;          /* base_sequence is its own */
    bool maybe_there;       /* an attempt ended without saying that it is not */
    uint32_t base_sequence; /* valid while numbered: of the first record not delivered */
};

/* NULL: no memory. */
struct flight *flight_new(struct producer_topic *topic, uint32_t lane, uint32_t spread,
                          int64_t now_us);
void flight_free(struct flight *flight);

/* Bytes a record takes in a request. */
size_t flight_record_bytes(const struct moonmq_message *message);
/* False: no memory, and nothing was added. */
bool flight_add(struct flight *flight, const struct moonmq_message *message,
                moonmq_delivery_fn delivered, void *context, uint32_t slots_max);
/* Records not delivered, and their bytes. */
struct wire_list flight_rest(const struct flight *flight);

/* Tells the next record's fate. */
void flight_deliver(struct flight *flight, const struct moonmq_delivery *delivery);
/* The first records of the rest are acknowledged: tells them, and steps over them. False: more than
 * there are. *moved: some lie in another partition than `partition`. */
bool flight_take_acks(struct flight *flight, const struct wire_list *acks, int32_t partition,
                      bool *moved);

#endif
