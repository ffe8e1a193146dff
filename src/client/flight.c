/* flight.c: see flight.h. */
#include "client/flight.h"

#include <stdlib.h>

struct flight *flight_new(struct producer_topic *topic, uint32_t lane, uint32_t spread,
                          int64_t now_us)
{
    struct flight *flight = calloc(1, sizeof(*flight));
    if (flight == NULL) return NULL;
    buffer_init(&flight->items, 0);
    flight->topic = topic;
    flight->lane = lane;
    flight->spread = spread;
    flight->began_us = now_us;
    return flight;
}

void flight_free(struct flight *flight)
{
    buffer_deinit(&flight->items);
    free(flight->slots);
    free(flight);
}

/* ---- filling ---- */

size_t flight_record_bytes(const struct moonmq_message *message)
{
    return 8 + message->key_bytes + message->value_bytes;
}

static bool add_slot(struct flight *flight, uint32_t slots_max)
{
    if (flight->slot_count < flight->slot_capacity) return true;
    uint32_t capacity = flight->slot_capacity == 0 ? 64 : flight->slot_capacity * 2;
    if (capacity > slots_max) capacity = slots_max;
    struct record_slot *slots = realloc(flight->slots, capacity * sizeof(*slots));
    if (slots == NULL) return false;
    flight->slots = slots;
    flight->slot_capacity = capacity;
    return true;
}

bool flight_add(struct flight *flight, const struct moonmq_message *message,
                moonmq_delivery_fn delivered, void *context, uint32_t slots_max)
{
    size_t before = flight->items.bytes;
    struct wire_key_value item = {
        .key = {message->key, message->key_bytes},
        .value = {message->value, message->value_bytes},
    };
    bool added = add_slot(flight, slots_max);
    if (added) wire_put(&flight->items, &wire_shape_key_value, &item);
    if (!added || buffer_failed(&flight->items)) {
        flight->items.bytes = before;
        flight->items.failed = false;
        return false;
    }
    flight->slots[flight->slot_count++] = (struct record_slot){delivered, context};
    return true;
}

struct wire_list flight_rest(const struct flight *flight)
{
    return (struct wire_list){
        .count = flight->slot_count - flight->delivered,
        .items = {flight->items.data + flight->items_at, flight->items.bytes - flight->items_at}};
}

/* ---- outcomes ---- */

void flight_deliver(struct flight *flight, const struct moonmq_delivery *delivery)
{
    struct record_slot slot = flight->slots[flight->delivered++];
    if (slot.delivered != NULL) slot.delivered(slot.context, delivery);
}

/* So that only the rest is sent again. */
static void step_over(struct flight *flight, uint32_t count)
{
    struct wire_list taken = {
        .count = count,
        .items = {flight->items.data + flight->items_at, flight->items.bytes - flight->items_at}};
    struct wire_cursor cursor;
    struct wire_key_value item;
    wire_cursor_init(&cursor, &taken, &wire_shape_key_value);
    while (wire_cursor_next(&cursor, &item)) {
    }
    flight->items_at += cursor.reader.at;
    flight->base_sequence += count;
}

bool flight_take_acks(struct flight *flight, const struct wire_list *acks, int32_t partition,
                      bool *moved)
{
    if (acks->count > flight->slot_count - flight->delivered) return false;
    struct wire_cursor cursor;
    struct wire_ack ack;
    step_over(flight, acks->count);
    wire_cursor_init(&cursor, acks, &wire_shape_ack);
    while (wire_cursor_next(&cursor, &ack)) {
        struct moonmq_delivery delivery = {
            .text = "", .ack = {.partition = ack.partition, .offset = ack.offset}};
        if (ack.partition != partition) *moved = true;
        flight_deliver(flight, &delivery);
    }
    return true;
}
