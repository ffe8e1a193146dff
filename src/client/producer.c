/* producer.c: see producer.h. */
#include "client/producer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "client/client.h"

/* Between two attempts at a batch the broker refused. */
#define RETRY_PAUSE_US 100000
/* Bytes of unsent frames beyond which further batches wait in their own memory. */
#define UNSENT_BYTES_MAX (4u << 20)

enum flight_state { FLIGHT_FILLING, FLIGHT_READY, FLIGHT_SENT };

struct record_slot {
    moonmq_delivery_fn delivered;
    void *context;
};

struct flight {
    struct flight *next;
    enum flight_state state;
    char *topic;
    uint32_t spread;     /* where its records without key go, however often it is sent */
    struct buffer items; /* encoded records */
    size_t items_at;     /* those before are delivered */
    struct record_slot *slots;
    uint32_t slot_count, slot_capacity, delivered;
    struct wire_id id;     /* valid while SENT */
    int64_t ready_at_us;   /* valid while READY */
    int64_t refused_at_us; /* of the first refusal in a row; 0: none */
    bool in_doubt;         /* refused last, and not because one before it was */
};

void client_producer_init(struct client_producer *producer, const struct moonmq_options *options)
{
    *producer = (struct client_producer){
        .batch_records_max = options->batch_records_max,
        .batch_bytes_max = options->batch_bytes_max,
        .window_batches_max = options->window_batches_max,
    };
}

static void flight_free(struct flight *flight)
{
    buffer_deinit(&flight->items);
    free(flight->topic);
    free(flight->slots);
    free(flight);
}

void client_producer_deinit(struct client_producer *producer)
{
    while (producer->first != NULL) {
        struct flight *flight = producer->first;
        producer->first = flight->next;
        flight_free(flight);
    }
    producer->last = NULL;
    producer->flight_count = 0;
    producer->record_count = 0;
}

/* ---- queueing ---- */

bool client_producer_has_room(const struct client_producer *producer)
{
    if (producer->flight_count < producer->window_batches_max) return true;
    return producer->last != NULL && producer->last->state == FLIGHT_FILLING;
}

static struct flight *flight_new(struct client_producer *producer, const char *topic,
                                 uint32_t spread)
{
    struct flight *flight = calloc(1, sizeof(*flight));
    if (flight == NULL) return NULL;
    buffer_init(&flight->items, 0);
    flight->spread = spread;
    flight->topic = strdup(topic);
    if (flight->topic == NULL) {
        flight_free(flight);
        return NULL;
    }
    if (producer->last == NULL) {
        producer->first = flight;
    } else {
        producer->last->next = flight;
    }
    producer->last = flight;
    producer->flight_count++;
    return flight;
}

void client_producer_seal(struct client_producer *producer)
{
    struct flight *flight = producer->last;
    if (flight == NULL || flight->state != FLIGHT_FILLING) return;
    flight->state = FLIGHT_READY;
    flight->ready_at_us = 0;
}

static bool flight_takes(const struct client_producer *producer, const struct flight *flight,
                         const char *topic, size_t record_bytes)
{
    return flight != NULL && flight->state == FLIGHT_FILLING && strcmp(flight->topic, topic) == 0 &&
           flight->slot_count < producer->batch_records_max &&
           flight->items.bytes + record_bytes <= producer->batch_bytes_max;
}

static bool flight_add_slot(struct flight *flight, uint32_t slots_max)
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

static int no_memory(struct moonmq_error *error)
{
    return client_fail(error, MOONMQ_NO_MEMORY, "no memory for a record");
}

int client_producer_add(struct moonmq_client *client, const char *topic,
                        const struct moonmq_message *message, moonmq_delivery_fn delivered,
                        void *context, struct moonmq_error *error)
{
    struct client_producer *producer = &client->producer;
    size_t record_bytes = 8 + message->key_bytes + message->value_bytes;
    if (!flight_takes(producer, producer->last, topic, record_bytes)) {
        client_producer_seal(producer);
        if (flight_new(producer, topic, client_next_spread(client)) == NULL)
            return no_memory(error);
    }
    struct flight *flight = producer->last;
    size_t before = flight->items.bytes;
    struct wire_key_value item = {
        .key = {message->key, message->key_bytes},
        .value = {message->value, message->value_bytes},
    };
    bool added = flight_add_slot(flight, producer->batch_records_max);
    if (added) wire_put(&flight->items, &wire_shape_key_value, &item);
    if (!added || buffer_failed(&flight->items)) {
        flight->items.bytes = before;
        flight->items.failed = false;
        return no_memory(error);
    }
    flight->slots[flight->slot_count++] = (struct record_slot){delivered, context};
    producer->record_count++;
    if (flight->slot_count == producer->batch_records_max ||
        flight->items.bytes >= producer->batch_bytes_max) {
        client_producer_seal(producer);
    }
    return MOONMQ_OK;
}

/* ---- sending ---- */

/* What the other batches of its topic mean for a batch. */
struct neighbours {
    bool doubt_before; /* one before it is not sent, or was refused and has not passed since */
    bool sent_before, sent_behind; /* one is on its way */
};

static struct neighbours neighbours_of(const struct client_producer *producer,
                                       const struct flight *flight)
{
    struct neighbours found = {0};
    bool before = true;
    for (const struct flight *other = producer->first; other != NULL; other = other->next) {
        if (other == flight) {
            before = false;
            continue;
        }
        if (strcmp(other->topic, flight->topic) != 0) continue;
        bool sent = other->state == FLIGHT_SENT;
        if (!before) {
            found.sent_behind |= sent;
        } else {
            found.sent_before |= sent;
            found.doubt_before |= !sent || other->in_doubt;
        }
    }
    return found;
}

/* Who sends again by itself keeps the order by itself. Otherwise a refusal is the application's
 * business, and no reason to refuse what is behind it. */
static uint8_t order_flags(const struct moonmq_client *client, bool behind_others)
{
    if (client->reconnect_us_max == 0) return 0;
    return behind_others ? WIRE_BATCH_ORDERED : WIRE_BATCH_ORDERED | WIRE_BATCH_FIRST;
}

static void flight_send(struct moonmq_client *client, struct flight *flight, uint8_t flags)
{
    struct wire_produce_batch batch = {
        .flags = flags,
        .topic = wire_text(flight->topic),
        .records = {.count = flight->slot_count - flight->delivered,
                    .items = {flight->items.data + flight->items_at,
                              flight->items.bytes - flight->items_at}},
        .has_spread = true,
        .spread = flight->spread,
    };
    flight->id = client_next_id(client);
    flight->state = FLIGHT_SENT;
    wire_encode(&client->stream.out, WIRE_PRODUCE_BATCH, &flight->id, &batch);
}

int64_t client_producer_send(struct moonmq_client *client)
{
    int64_t next_us = INT64_MAX;
    if (client->stream.descriptor < 0) return next_us;
    int64_t now_us = client_stream_now_us();
    for (struct flight *flight = client->producer.first; flight != NULL; flight = flight->next) {
        if (flight->state != FLIGHT_READY) continue;
        struct neighbours neighbours = neighbours_of(&client->producer, flight);
        /* Those on their way behind a refused one will be refused with it. Sent before that is
         * known, this one would make them count again (FIRST), or be refused with them. */
        if (neighbours.doubt_before || neighbours.sent_behind) continue;
        if (flight->ready_at_us > now_us) {
            if (flight->ready_at_us < next_us) next_us = flight->ready_at_us;
            continue;
        }
        if (client_stream_unsent(&client->stream) > UNSENT_BYTES_MAX) break;
        flight_send(client, flight, order_flags(client, neighbours.sent_before));
    }
    return next_us;
}

/* ---- outcomes ---- */

static void flight_remove(struct client_producer *producer, struct flight *flight)
{
    struct flight **link = &producer->first;
    struct flight *previous = NULL;
    while (*link != flight) {
        previous = *link;
        link = &previous->next;
    }
    *link = flight->next;
    if (producer->last == flight) producer->last = previous;
    producer->flight_count--;
    flight_free(flight);
}

static void deliver_next(struct client_producer *producer, struct flight *flight,
                         const struct moonmq_delivery *delivery)
{
    struct record_slot slot = flight->slots[flight->delivered++];
    producer->record_count--;
    if (slot.delivered != NULL) slot.delivered(slot.context, delivery);
}

static void flight_fail(struct client_producer *producer, struct flight *flight,
                        const struct moonmq_error *why)
{
    struct moonmq_delivery delivery = {
        .code = why->code, .text = why->text, .ack = {.partition = -1, .offset = -1}};
    while (flight->delivered < flight->slot_count) {
        deliver_next(producer, flight, &delivery);
    }
    flight_remove(producer, flight);
}

/* Refusals that may pass: by themselves, or with another leader. */
static bool may_pass(int code)
{
    return code == MOONMQ_INTERNAL || code == MOONMQ_RATE_LIMITED || code == MOONMQ_NOT_LEADER;
}

static void flight_refused(struct moonmq_client *client, struct flight *flight,
                           const struct moonmq_error *why)
{
    int64_t now_us = client_stream_now_us();
    if (flight->refused_at_us == 0) flight->refused_at_us = now_us;
    if (!may_pass(why->code) || now_us - flight->refused_at_us >= client->reconnect_us_max) {
        flight_fail(&client->producer, flight, why);
        return;
    }
    /* Of those refused because one before them was, that one has the reason. */
    flight->in_doubt = !neighbours_of(&client->producer, flight).doubt_before;
    if (flight->in_doubt) {
        snprintf(client->producer.refusal, sizeof(client->producer.refusal), "%s", why->text);
    }
    flight->state = FLIGHT_READY;
    flight->ready_at_us = why->code == MOONMQ_NOT_LEADER ? now_us : now_us + RETRY_PAUSE_US;
}

static bool flight_deliver_acks(struct client_producer *producer, struct flight *flight,
                                const struct wire_list *acks)
{
    if (acks->count > flight->slot_count - flight->delivered) return false;
    struct wire_cursor cursor;
    struct wire_ack ack;
    wire_cursor_init(&cursor, acks, &wire_shape_ack);
    while (wire_cursor_next(&cursor, &ack)) {
        struct moonmq_delivery delivery = {
            .text = "", .ack = {.partition = ack.partition, .offset = ack.offset}};
        deliver_next(producer, flight, &delivery);
    }
    /* Step over the delivered records, so that only the rest is sent again. */
    struct wire_list rest = {
        .count = acks->count,
        .items = {flight->items.data + flight->items_at, flight->items.bytes - flight->items_at}};
    struct wire_key_value item;
    wire_cursor_init(&cursor, &rest, &wire_shape_key_value);
    while (wire_cursor_next(&cursor, &item)) {
    }
    flight->items_at += cursor.reader.at;
    return true;
}

static int flight_take_ack(struct moonmq_client *client, struct flight *flight,
                           const struct wire_produce_batch_ack *ack, struct moonmq_error *error)
{
    uint32_t waiting = flight->slot_count - flight->delivered;
    struct moonmq_error why;
    client_fail(&why, ack->error_code, "%.*s", (int)ack->error_text.bytes,
                (const char *)ack->error_text.data);
    /* All of them with an error: appended, but not known to be safe (4.4): none counts. */
    bool counts = ack->error_code == 0 || ack->acks.count < waiting;
    if (counts && !flight_deliver_acks(&client->producer, flight, &ack->acks)) {
        return client_fail(error, MOONMQ_PROTOCOL_ERROR, "more acknowledgements than records");
    }
    if (counts && ack->acks.count > 0) {
        flight->refused_at_us = 0;
        flight->in_doubt = false;
        client->producer.refusal[0] = '\0';
    }
    if (flight->delivered == flight->slot_count) {
        flight_remove(&client->producer, flight);
    } else if (ack->error_code != 0) {
        flight_refused(client, flight, &why);
    } else {
        return client_fail(error, MOONMQ_PROTOCOL_ERROR, "fewer acknowledgements than records");
    }
    return MOONMQ_OK;
}

int client_producer_take(struct moonmq_client *client, const struct wire_frame *frame,
                         struct moonmq_error *error)
{
    struct flight *flight = client->producer.first;
    while (flight != NULL &&
           (flight->state != FLIGHT_SENT || !wire_id_equal(&flight->id, &frame->id))) {
        flight = flight->next;
    }
    if (flight == NULL) return MOONMQ_OK;
    union wire_message message;
    int code = client_decode(frame, &message, error);
    if (code != MOONMQ_OK) return code;
    if (frame->opcode == WIRE_PRODUCE_BATCH_ACK) {
        return flight_take_ack(client, flight, &message.produce_batch_ack, error);
    }
    if (frame->opcode != WIRE_ERROR) {
        return client_fail(error, MOONMQ_PROTOCOL_ERROR, "%s in answer to a batch",
                           wire_opcode_name(frame->opcode));
    }
    struct moonmq_error why;
    code = client_fail_broker(&why, &message.error);
    flight_refused(client, flight, &why);
    if (code != MOONMQ_NOT_LEADER) return MOONMQ_OK;
    if (error != NULL) *error = why;
    return code;
}

/* ---- connections ---- */

void client_producer_give_up(struct moonmq_client *client, const struct moonmq_error *why)
{
    while (client->producer.first != NULL) {
        flight_fail(&client->producer, client->producer.first, why);
    }
}

void client_producer_connection_lost(struct moonmq_client *client, const struct moonmq_error *why)
{
    if (client->reconnect_us_max == 0) {
        client_producer_give_up(client, why);
        return;
    }
    for (struct flight *flight = client->producer.first; flight != NULL; flight = flight->next) {
        if (flight->state != FLIGHT_SENT) continue;
        flight->state = FLIGHT_READY;
        flight->ready_at_us = 0;
    }
}

void client_producer_connected(struct moonmq_client *client)
{
    (void)client_producer_send(client);
}
