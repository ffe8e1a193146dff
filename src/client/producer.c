/* producer.c: see producer.h. */
#include "client/producer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/assert.h"
#include "client/client.h"
#include "client/flight.h"

/* Between two attempts at a batch the broker refused. */
#define RETRY_PAUSE_US 100000
/* Bytes of unsent frames beyond which further batches wait in their own memory. */
#define UNSENT_BYTES_MAX (4u << 20)
/* With sequences: what the broker takes in one batch, and remembers of a partition. */
#define SEQUENCED_RECORDS_MAX 1024
#define LANE_FLIGHTS_MAX      5

struct producer_topic {
    char *name;
    uint32_t partitions;     /* 0: not known, or of no interest: one lane */
    bool moved;              /* there are more by now */
    bool may_not_ask;        /* the broker does not tell this client */
    struct flight **filling; /* one a lane, or NULL */
    uint32_t lane_count;
    uint32_t keyless_lane; /* where records without key go, until that batch is sealed */
    struct producer_topic *next;
};

void client_producer_init(struct client_producer *producer, const struct moonmq_options *options)
{
    bool sequenced = options->idempotent || options->producer_name != NULL;
    *producer = (struct client_producer){
        .batch_records_max = options->batch_records_max,
        .batch_bytes_max = options->batch_bytes_max,
        .window_batches_max = options->window_batches_max,
        .queue_bytes_max = options->queue_bytes_max,
        .linger_us = (int64_t)options->linger_ms * 1000,
    };
    if (sequenced && producer->batch_records_max > SEQUENCED_RECORDS_MAX) {
        producer->batch_records_max = SEQUENCED_RECORDS_MAX;
    }
}

static void free_list(struct flight *list)
{
    struct flight *flight, *next;
    DL_FOREACH_SAFE(list, flight, next)
    {
        flight_free(flight);
    }
}

void client_producer_deinit(struct client_producer *producer)
{
    free_list(producer->queue);
    free_list(producer->filling);
    producer->queue = NULL;
    producer->filling = NULL;
    while (producer->topics != NULL) {
        struct producer_topic *topic = producer->topics;
        producer->topics = topic->next;
        free(topic->name);
        free(topic->filling);
        free(topic);
    }
    producer->queue_count = 0;
    producer->record_count = 0;
    producer->bytes = 0;
}

/* ---- topics and their lanes ---- */

static int no_memory(struct moonmq_error *error)
{
    return client_fail(error, MOONMQ_NO_MEMORY, "no memory for a record");
}

static bool grow_lanes(struct producer_topic *topic, uint32_t count)
{
    if (count <= topic->lane_count) return true;
    struct flight **filling = realloc(topic->filling, count * sizeof(struct flight *));
    if (filling == NULL) return false;
    memset(filling + topic->lane_count, 0, (count - topic->lane_count) * sizeof(struct flight *));
    topic->filling = filling;
    topic->lane_count = count;
    return true;
}

static struct producer_topic *add_topic(struct client_producer *producer, const char *name)
{
    struct producer_topic *topic = calloc(1, sizeof(*topic));
    if (topic == NULL) return NULL;
    topic->name = strdup(name);
    if (topic->name == NULL || !grow_lanes(topic, 1)) {
        free(topic->name);
        free(topic);
        return NULL;
    }
    topic->next = producer->topics;
    producer->topics = topic;
    return topic;
}

static void seal(struct moonmq_client *client, struct flight *flight)
{
    struct client_producer *producer = &client->producer;
    struct producer_topic *topic = flight->topic;
    DL_DELETE(producer->filling, flight);
    topic->filling[flight->lane] = NULL;
    if (topic->partitions > 0 && flight->lane == topic->keyless_lane) {
        topic->keyless_lane = client_next_spread(client) % topic->partitions;
    }
    flight->state = FLIGHT_READY;
    flight->ready_at_us = 0;
    DL_APPEND(producer->queue, flight);
    producer->queue_count++;
}

/* What was gathered by the old number of partitions goes out before what is gathered by the new
 * one: the records of a key keep their order. */
static void seal_topic(struct moonmq_client *client, const struct producer_topic *topic)
{
    struct flight *flight, *next;
    DL_FOREACH_SAFE(client->producer.filling, flight, next)
    {
        if (flight->topic == topic) seal(client, flight);
    }
}

/* A client that may not ask gets along with one lane: batches have more runs of sequences then. */
static int ask_partitions(struct moonmq_client *client, struct producer_topic *topic,
                          struct moonmq_error *error)
{
    struct moonmq_topic *description;
    struct moonmq_error why;
    int code = moonmq_describe_topic(client, topic->name, &description, &why);
    topic->may_not_ask = code == MOONMQ_NOT_AUTHORIZED;
    if (topic->may_not_ask) return MOONMQ_OK;
    if (code != MOONMQ_OK) {
        if (error != NULL) *error = why;
        return code;
    }
    uint32_t partitions = description->partitions;
    moonmq_topic_free(description);
    if (!grow_lanes(topic, partitions)) return no_memory(error);
    if (topic->partitions == 0 && partitions > 0) {
        topic->keyless_lane = client_next_spread(client) % partitions;
    }
    if (topic->partitions != partitions) seal_topic(client, topic);
    topic->partitions = partitions;
    topic->moved = false;
    return MOONMQ_OK;
}

int client_producer_find_topic(struct moonmq_client *client, const char *name,
                               struct producer_topic **out, struct moonmq_error *error)
{
    struct producer_topic *topic = client->producer.topics;
    while (topic != NULL && strcmp(topic->name, name) != 0)
        topic = topic->next;
    if (topic == NULL) topic = add_topic(&client->producer, name);
    if (topic == NULL) return no_memory(error);
    *out = topic;
    bool asks =
        client->identity.wanted && !topic->may_not_ask && (topic->partitions == 0 || topic->moved);
    return asks ? ask_partitions(client, topic, error) : MOONMQ_OK;
}

static uint32_t lane_of(const struct producer_topic *topic, const struct moonmq_message *message)
{
    if (topic->partitions == 0) return 0;
    if (message->key_bytes == 0) return topic->keyless_lane;
    return wire_key_hash((struct slice){message->key, message->key_bytes}) % topic->partitions;
}

/* ---- queueing ---- */

static bool is_full(const struct client_producer *producer, const struct flight *flight)
{
    return flight->slot_count >= producer->batch_records_max ||
           flight->items.bytes >= producer->batch_bytes_max;
}

static bool takes(const struct client_producer *producer, const struct flight *flight, size_t bytes)
{
    return !is_full(producer, flight) &&
           (flight->slot_count == 0 || flight->items.bytes + bytes <= producer->batch_bytes_max);
}

enum producer_room client_producer_room(const struct client_producer *producer,
                                        const struct producer_topic *topic,
                                        const struct moonmq_message *message)
{
    size_t bytes = flight_record_bytes(message);
    if (producer->bytes > 0 && producer->bytes + bytes > producer->queue_bytes_max) {
        return PRODUCER_QUEUE_FULL;
    }
    const struct flight *flight = topic->filling[lane_of(topic, message)];
    if (flight == NULL || takes(producer, flight, bytes)) return PRODUCER_ROOM;
    return producer->queue_count < producer->window_batches_max ? PRODUCER_ROOM
                                                                : PRODUCER_WINDOW_FULL;
}

void client_producer_seal(struct moonmq_client *client, int64_t began_us)
{
    struct client_producer *producer = &client->producer;
    struct flight *flight, *next;
    DL_FOREACH_SAFE(producer->filling, flight, next)
    {
        if (producer->queue_count >= producer->window_batches_max) return;
        if (flight->began_us <= began_us || is_full(producer, flight)) seal(client, flight);
    }
}

int64_t client_producer_linger_until(const struct client_producer *producer)
{
    if (producer->linger_us == 0 || producer->filling == NULL) return INT64_MAX;
    return producer->filling->began_us + producer->linger_us;
}

/* The batch of a lane that takes the record. NULL: no memory. */
static struct flight *filling_for(struct moonmq_client *client, struct producer_topic *topic,
                                  const struct moonmq_message *message)
{
    struct client_producer *producer = &client->producer;
    struct flight *flight = topic->filling[lane_of(topic, message)];
    if (flight != NULL && takes(producer, flight, flight_record_bytes(message))) return flight;
    if (flight != NULL) seal(client, flight);
    uint32_t lane = lane_of(topic, message);
    uint32_t spread = topic->partitions > 0 ? lane : client_next_spread(client);
    flight = topic->filling[lane];
    if (flight != NULL) return flight;
    flight = flight_new(topic, lane, spread, client_stream_now_us());
    if (flight == NULL) return NULL;
    topic->filling[lane] = flight;
    DL_APPEND(producer->filling, flight);
    return flight;
}

int client_producer_add(struct moonmq_client *client, struct producer_topic *topic,
                        const struct moonmq_message *message, moonmq_delivery_fn delivered,
                        void *context, struct moonmq_error *error)
{
    struct client_producer *producer = &client->producer;
    struct flight *flight = filling_for(client, topic, message);
    if (flight == NULL ||
        !flight_add(flight, message, delivered, context, producer->batch_records_max)) {
        return no_memory(error);
    }
    producer->record_count++;
    producer->bytes += flight_record_bytes(message);
    bool has_room = producer->queue_count < producer->window_batches_max;
    if (is_full(producer, flight) && has_room) seal(client, flight);
    return MOONMQ_OK;
}

static void forget(struct flight *list, const void *low, const void *high)
{
    struct flight *flight;
    DL_FOREACH(list, flight)
    {
        for (uint32_t i = flight->delivered; i < flight->slot_count; i++) {
            struct record_slot *slot = &flight->slots[i];
            bool within = (uintptr_t)slot->context >= (uintptr_t)low &&
                          (uintptr_t)slot->context < (uintptr_t)high;
            if (within) slot->delivered = NULL;
        }
    }
}

void client_producer_forget(struct client_producer *producer, const void *low, const void *high)
{
    forget(producer->queue, low, high);
    forget(producer->filling, low, high);
}

/* ---- sending ---- */

/* What the other batches of its topic mean for a batch. */
struct neighbours {
    bool doubt_before; /* one before it is not sent, or was refused and has not passed since */
    bool sent_before, sent_behind; /* one is on its way */
    uint32_t lane_before;          /* those before it in its lane */
};

static struct neighbours neighbours_of(const struct client_producer *producer,
                                       const struct flight *flight)
{
    struct neighbours found = {0};
    bool before = true;
    for (const struct flight *other = producer->queue; other != NULL; other = other->next) {
        if (other == flight) {
            before = false;
            continue;
        }
        if (other->topic != flight->topic) continue;
        bool sent = other->state == FLIGHT_SENT;
        if (!before) {
            found.sent_behind |= sent;
        } else {
            found.sent_before |= sent;
            found.doubt_before |= !sent || other->in_doubt;
            found.lane_before += other->lane == flight->lane;
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

/* False: no memory. */
static bool number(struct moonmq_client *client, struct flight *flight)
{
    if (flight->numbered) return true;
    uint32_t *sequence = client_identity_sequence(&client->identity, flight->topic->name);
    if (sequence == NULL) return false;
    flight->base_sequence = *sequence;
    flight->numbered = true;
    *sequence += flight->slot_count - flight->delivered;
    return true;
}

static void send_flight(struct moonmq_client *client, struct flight *flight, bool behind_others)
{
    struct wire_produce_batch batch = {
        .flags = order_flags(client, behind_others),
        .codec = client->codec,
        .topic = wire_text(flight->topic->name),
        .records = flight_rest(flight),
        .has_spread = true,
        .spread = flight->spread,
    };
    if (flight->numbered) {
        batch.flags = WIRE_BATCH_IDEMPOTENT;
        batch.producer_id = client->identity.id;
        batch.epoch = client->identity.epoch;
        batch.base_sequence = flight->base_sequence;
    }
    flight->id = client_next_id(client);
    flight->state = FLIGHT_SENT;
    size_t before = client->stream.out.bytes;
    wire_encode(&client->stream.out, WIRE_PRODUCE_BATCH, &flight->id, &batch);
    flight->frame_bytes = client->stream.out.bytes - before;
}

int64_t client_producer_send(struct moonmq_client *client)
{
    int64_t next_us = INT64_MAX;
    bool sequenced = client->identity.wanted;
    if (client->stream.descriptor < 0 || (sequenced && !client_identity_is_good(client))) {
        return next_us;
    }
    int64_t now_us = client_stream_now_us();
    struct flight *flight;
    DL_FOREACH(client->producer.queue, flight)
    {
        if (flight->state != FLIGHT_READY) continue;
        struct neighbours neighbours = neighbours_of(&client->producer, flight);
        /* Those on their way behind a refused one will be refused with it. Sent before that is
         * known, this one would make them count again (FIRST), or be refused with them. */
        if (neighbours.doubt_before || neighbours.sent_behind) continue;
        if (sequenced && neighbours.lane_before >= LANE_FLIGHTS_MAX) continue;
        if (flight->ready_at_us > now_us) {
            if (flight->ready_at_us < next_us) next_us = flight->ready_at_us;
            continue;
        }
        if (client_stream_unsent(&client->stream) > UNSENT_BYTES_MAX) break;
        if (sequenced && !number(client, flight)) break;
        send_flight(client, flight, neighbours.sent_before);
    }
    return next_us;
}

/* ---- outcomes ---- */

static void remove_flight(struct client_producer *producer, struct flight *flight)
{
    if (flight->state == FLIGHT_FILLING) {
        DL_DELETE(producer->filling, flight);
        flight->topic->filling[flight->lane] = NULL;
    } else {
        DL_DELETE(producer->queue, flight);
        producer->queue_count--;
    }
    producer->bytes -= flight->items.bytes;
    flight_free(flight);
}

static void fail_flight(struct client_producer *producer, struct flight *flight,
                        const struct moonmq_error *why)
{
    struct moonmq_delivery delivery = {
        .code = why->code, .text = why->text, .ack = {.partition = -1, .offset = -1}};
    while (flight->delivered < flight->slot_count) {
        producer->record_count--;
        flight_deliver(flight, &delivery);
    }
    remove_flight(producer, flight);
}

/* Refusals that may pass: by themselves, or with another leader. */
static bool may_pass(int code)
{
    return code == MOONMQ_INTERNAL || code == MOONMQ_RATE_LIMITED || code == MOONMQ_NOT_LEADER;
}

/* How long a batch is sent again. One with sequences arrives once all the same. */
static int64_t patience_us(const struct moonmq_client *client)
{
    bool waits = client->identity.wanted && client->request_timeout_us > client->reconnect_us_max;
    return waits ? client->request_timeout_us : client->reconnect_us_max;
}

/* Behind one that may or may not be there nobody knows which sequence is next: all that have one
 * fail with it. */
static void fail_numbered(struct moonmq_client *client, const struct moonmq_error *why)
{
    struct flight *flight, *next;
    client_identity_doubt(&client->identity);
    DL_FOREACH_SAFE(client->producer.queue, flight, next)
    {
        if (flight->numbered) fail_flight(&client->producer, flight, why);
    }
}

/* It is certainly not there, and neither are those behind it: they take up its sequences. */
static void fail_refused(struct moonmq_client *client, struct flight *flight,
                         const struct moonmq_error *why)
{
    uint32_t *sequence =
        flight->numbered ? client_identity_sequence(&client->identity, flight->topic->name) : NULL;
    if (sequence != NULL) *sequence = flight->base_sequence;
    for (struct flight *behind = flight->next; behind != NULL; behind = behind->next) {
        if (behind->topic != flight->topic) continue;
        behind->numbered = false;
        /* It will be refused: nothing behind it may be sent before it is sent again. */
        behind->in_doubt = behind->state == FLIGHT_SENT;
    }
    fail_flight(&client->producer, flight, why);
}

static void fail_for_good(struct moonmq_client *client, struct flight *flight,
                          const struct moonmq_error *why)
{
    bool all_or_nothing = client->identity.transaction == CLIENT_TRANSACTION_OPEN;
    client->identity.fenced |= why->code == MOONMQ_PRODUCER_FENCED;
    if (client->identity.fenced || all_or_nothing) {
        client_producer_give_up(client, why);
    } else if (flight->numbered &&
               (flight->maybe_there || !client_identity_is_refusal(why->code))) {
        fail_numbered(client, why);
    } else {
        fail_refused(client, flight, why);
    }
}

static void take_refusal(struct moonmq_client *client, struct flight *flight,
                         const struct moonmq_error *why)
{
    bool doubt_before = neighbours_of(&client->producer, flight).doubt_before;
    /* "Out of order" because one before it is missing: that one is sent again first. */
    bool waits = why->code == MOONMQ_OUT_OF_ORDER && client->identity.wanted &&
                 (doubt_before || !flight->numbered);
    int64_t now_us = client_stream_now_us();
    if (flight->refused_at_us == 0) flight->refused_at_us = now_us;
    bool late = now_us - flight->refused_at_us >= patience_us(client);
    if ((!may_pass(why->code) && !waits) || late) {
        fail_for_good(client, flight, why);
        return;
    }
    /* Of those refused because one before them was, that one has the reason. */
    flight->in_doubt = !doubt_before;
    if (flight->in_doubt) {
        snprintf(client->producer.refusal, sizeof(client->producer.refusal), "%s", why->text);
    }
    flight->maybe_there |= !waits && !client_identity_is_refusal(why->code);
    flight->state = FLIGHT_READY;
    flight->ready_at_us =
        why->code == MOONMQ_NOT_LEADER || waits ? now_us : now_us + RETRY_PAUSE_US;
}

static bool deliver_acks(struct client_producer *producer, struct flight *flight,
                         const struct wire_list *acks)
{
    struct producer_topic *topic = flight->topic;
    int32_t partition = (int32_t)flight->lane;
    bool moved = false;
    if (!flight_take_acks(flight, acks, partition, &moved)) return false;
    producer->record_count -= acks->count;
    if (moved && topic->partitions > 0) topic->moved = true;
    return true;
}

static int take_ack(struct moonmq_client *client, struct flight *flight,
                    const struct wire_produce_batch_ack *ack, struct moonmq_error *error)
{
    uint32_t waiting = flight->slot_count - flight->delivered;
    struct moonmq_error why;
    client_fail(&why, ack->error_code, "%.*s", (int)ack->error_text.bytes,
                (const char *)ack->error_text.data);
    /* All of them with an error: appended, but not known to be safe (4.4): none counts. */
    bool counts = ack->error_code == 0 || ack->acks.count < waiting;
    if (counts && !deliver_acks(&client->producer, flight, &ack->acks)) {
        return client_fail(error, MOONMQ_PROTOCOL_ERROR, "more acknowledgements than records");
    }
    if (counts && ack->acks.count > 0) {
        flight->refused_at_us = 0;
        flight->in_doubt = false;
        client->producer.refusal[0] = '\0';
    }
    if (flight->delivered == flight->slot_count) {
        remove_flight(&client->producer, flight);
    } else if (ack->error_code != 0) {
        take_refusal(client, flight, &why);
    } else {
        return client_fail(error, MOONMQ_PROTOCOL_ERROR, "fewer acknowledgements than records");
    }
    return MOONMQ_OK;
}

int client_producer_take(struct moonmq_client *client, const struct wire_frame *frame,
                         struct moonmq_error *error)
{
    struct flight *flight = client->producer.queue;
    while (flight != NULL &&
           (flight->state != FLIGHT_SENT || !wire_id_equal(&flight->id, &frame->id))) {
        flight = flight->next;
    }
    if (flight == NULL) return MOONMQ_OK;
    union wire_message message;
    int code = client_decode(frame, &message, error);
    if (code != MOONMQ_OK) return code;
    if (frame->opcode == WIRE_PRODUCE_BATCH_ACK) {
        return take_ack(client, flight, &message.produce_batch_ack, error);
    }
    if (frame->opcode != WIRE_ERROR) {
        return client_fail(error, MOONMQ_PROTOCOL_ERROR, "%s in answer to a batch",
                           wire_opcode_name(frame->opcode));
    }
    struct moonmq_error why;
    code = client_fail_broker(&why, &message.error);
    take_refusal(client, flight, &why);
    if (code != MOONMQ_NOT_LEADER) return MOONMQ_OK;
    if (error != NULL) *error = why;
    return code;
}

/* ---- connections ---- */

void client_producer_give_up(struct moonmq_client *client, const struct moonmq_error *why)
{
    struct client_producer *producer = &client->producer;
    bool in_doubt =
        client->identity.transaction == CLIENT_TRANSACTION_OPEN && producer->record_count > 0;
    struct flight *flight;
    DL_FOREACH(producer->queue, flight)
    {
        in_doubt |= flight->numbered;
    }
    if (in_doubt) client_identity_doubt(&client->identity);
    while (producer->queue != NULL)
        fail_flight(producer, producer->queue, why);
    while (producer->filling != NULL)
        fail_flight(producer, producer->filling, why);
}

/* Which frame the broker found too large it does not say: if any is, the largest is. NULL: that of
 * the call that is under way, or none. */
static struct flight *largest_sent(struct moonmq_client *client)
{
    struct flight *largest = NULL, *flight;
    DL_FOREACH(client->producer.queue, flight)
    {
        if (flight->state != FLIGHT_SENT) continue;
        if (largest == NULL || flight->frame_bytes > largest->frame_bytes) largest = flight;
    }
    struct call *call = client->call;
    if (call == NULL || (largest != NULL && largest->frame_bytes > call->frame_bytes))
        return largest;
    call->too_large = true;
    return NULL;
}

static void fail_too_large(struct moonmq_client *client, struct flight *flight,
                           const struct moonmq_error *why)
{
    struct moonmq_error error;
    client_fail(&error, MOONMQ_TOO_LARGE,
                "%.200s (a batch of %zu bytes: lower batch_bytes_max, or raise it there)",
                why->text, flight->frame_bytes);
    /* The broker has not read it. */
    fail_for_good(client, flight, &error);
}

void client_producer_connection_lost(struct moonmq_client *client, const struct moonmq_error *why)
{
    if (client->identity.transaction == CLIENT_TRANSACTION_LOST) {
        struct moonmq_error lost;
        client_fail(&lost, MOONMQ_INVALID_TRANSACTION, "%s", CLIENT_TRANSACTION_LOST_TEXT);
        client_producer_give_up(client, why->code == MOONMQ_TOO_LARGE ? why : &lost);
        return;
    }
    if (client->reconnect_us_max == 0) {
        client_producer_give_up(client, why);
        return;
    }
    struct flight *too_large = why->code == MOONMQ_TOO_LARGE ? largest_sent(client) : NULL;
    struct flight *flight;
    DL_FOREACH(client->producer.queue, flight)
    {
        if (flight->state != FLIGHT_SENT) continue;
        flight->state = FLIGHT_READY;
        flight->ready_at_us = 0;
        if (flight != too_large) flight->maybe_there = true;
    }
    if (too_large != NULL) fail_too_large(client, too_large, why);
}

void client_producer_connected(struct moonmq_client *client)
{
    (void)client_producer_send(client);
}
