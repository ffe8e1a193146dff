#include "kafka/auto_create.h"

#include "base/assert.h"
#include "kafka/errors.h"
#include "kafka/forward.h"
#include "kafka/kafka_state.h"

#define CREATE_TOPICS_VERSION 7
#define USE_DEFAULT           (-1)

struct creation {
    struct kafka_request *request;
    struct auto_create *topics;
    uint32_t count;
    uint32_t open; /* answers to come, and one more while the loop that asks runs */
    auto_create_fn done;
};
struct one_creation {
    struct creation *creation;
    struct auto_create *topic;
};

static void creation_done(struct creation *creation)
{
    creation->done(creation->request, creation->topics, creation->count);
}

static void one_less_open(struct creation *creation)
{
    if (--creation->open == 0) creation_done(creation);
}

/* ---- on the leader ---- */

static void created(void *context, enum status status, const struct error *error)
{
    (void)error;
    struct one_creation *one = context;
    one->topic->status = status;
    one_less_open(one->creation);
}

static void create_here(struct creation *creation)
{
    struct kafka_request *request = creation->request;
    struct broker *broker = kafka_request_broker(request);
    creation->open = 1;
    for (uint32_t i = 0; i < creation->count; i++) {
        struct one_creation *one = arena_new(&request->arena, sizeof(*one));
        const char *name = kafka_request_text(request, creation->topics[i].name);
        creation->topics[i].status = STATUS_NO_MEMORY;
        if (one == NULL || name == NULL) continue;
        *one = (struct one_creation){creation, &creation->topics[i]};
        creation->open++;
        broker_create_topic(broker, &(struct admin_request){
                                        .topic = name,
                                        .timeout_us = broker_settings_of(broker)->ack_timeout_us,
                                        .done = created,
                                        .context = one});
    }
    one_less_open(creation);
}

/* ---- on a follower ---- */

static enum status status_of(int16_t error)
{
    switch (error) {
    case KAFKA_NONE: return STATUS_OK;
    case KAFKA_TOPIC_ALREADY_EXISTS: return STATUS_EXISTS;
    case KAFKA_INVALID_TOPIC: return STATUS_INVALID_TOPIC;
    case KAFKA_POLICY_VIOLATION: return STATUS_LIMIT;
    default: return STATUS_TIMEOUT; /* the outcome is open, or will be another one */
    }
}

static void take_answer(struct creation *creation, struct slice body)
{
    struct kafka_create_topics_response answer;
    struct reader reader;
    struct error error;
    reader_init(&reader, body.data, body.bytes);
    if (kafka_decode(&kafka_create_topics_response_struct, CREATE_TOPICS_VERSION, true, &reader,
                     &creation->request->arena, &answer, &error) != STATUS_OK) {
        return;
    }
    /* One result a topic; in the order asked, but the name decides. */
    for (int32_t i = 0; i < answer.topics.count; i++) {
        for (uint32_t k = 0; k < creation->count; k++) {
            uint32_t at = ((uint32_t)i + k) % creation->count;
            if (!kafka_slice_equal(creation->topics[at].name, answer.topics.items[i].name))
                continue;
            creation->topics[at].status = status_of(answer.topics.items[i].error_code);
            break;
        }
    }
}

static void leader_created(struct kafka_request *request, enum status status, struct slice answer)
{
    struct creation *creation = request->state;
    if (status == STATUS_OK) take_answer(creation, answer);
    creation_done(creation);
}

static void create_there(struct creation *creation)
{
    struct kafka_request *request = creation->request;
    struct kafka_create_topics_request message = {
        .topics = {kafka_create_topics_request_topic_new(&request->arena, (int32_t)creation->count),
                   (int32_t)creation->count},
        .timeout_ms =
            (int32_t)(broker_settings_of(kafka_request_broker(request))->ack_timeout_us / 1000),
    };
    for (uint32_t i = 0; i < creation->count; i++) {
        creation->topics[i].status = STATUS_TIMEOUT;
        if (message.topics.items == NULL) continue;
        message.topics.items[i].name = creation->topics[i].name;
        message.topics.items[i].num_partitions = USE_DEFAULT;
        message.topics.items[i].replication_factor = USE_DEFAULT;
    }
    struct kafka_response encoded;
    kafka_response_init(&encoded, 0);
    kafka_encode(&kafka_create_topics_request_struct, CREATE_TOPICS_VERSION, true, &message,
                 &encoded);
    struct slice body = arena_copy(&request->arena, buffer_slice(&encoded.own));
    bool failed = kafka_response_failed(&encoded) || body.data == NULL;
    kafka_response_deinit(&encoded);
    if (failed) {
        creation_done(creation);
    } else {
        kafka_ask_leader(request, KAFKA_CREATE_TOPICS, CREATE_TOPICS_VERSION, body, leader_created);
    }
}

void kafka_auto_create(struct kafka_request *request, struct auto_create *topics, uint32_t count,
                       auto_create_fn done)
{
    ASSERT(request->state == NULL);
    struct creation *creation = arena_new(&request->arena, sizeof(*creation));
    if (creation == NULL) {
        done(request, topics, count);
        return;
    }
    *creation = (struct creation){request, topics, count, 0, done};
    request->state = creation;
    if (broker_check_serving(kafka_request_broker(request)) == STATUS_OK) {
        create_here(creation);
    } else {
        create_there(creation);
    }
}
