/* DeleteTopics (20): by name, from version 6 on also by id; on the leader, a follower forwards. */
#include "kafka/errors.h"
#include "kafka/forward.h"
#include "kafka/handlers.h"
#include "kafka/kafka_state.h"

#define VERSION_IDS 6

struct deletion {
    struct kafka_request *request;
    struct kafka_delete_topics_response_topic *out;
};

static int32_t count_asked(const struct kafka_request *request)
{
    const struct kafka_delete_topics_request *message = KAFKA_MESSAGE(request, delete_topics);
    return request->header.api_version >= VERSION_IDS ? message->topics.count
                                                      : message->topic_names.count;
}

/* The answer in the order asked, under the name or id asked with. */
static void lay_out_answer(struct kafka_request *request, int16_t error)
{
    const struct kafka_delete_topics_request *message = KAFKA_MESSAGE(request, delete_topics);
    struct kafka_delete_topics_response *answer = KAFKA_ANSWER(request, delete_topics);
    int32_t count = count_asked(request);
    answer->responses.items = kafka_delete_topics_response_topic_new(&request->arena, count);
    if (answer->responses.items == NULL) return;
    answer->responses.count = count;
    for (int32_t i = 0; i < count; i++) {
        struct kafka_delete_topics_response_topic *out = &answer->responses.items[i];
        out->error_code = error;
        if (request->header.api_version >= VERSION_IDS) {
            out->name = message->topics.items[i].name;
            out->topic_id = message->topics.items[i].topic_id;
        } else {
            out->name = message->topic_names.items[i];
        }
    }
}

void delete_topics_refuse(struct kafka_request *request, enum status status)
{
    lay_out_answer(request, kafka_request_error(request, status));
    kafka_finish(request);
}

static void deleted(void *context, enum status status, const struct error *error)
{
    struct deletion *deletion = context;
    struct kafka_request *request = deletion->request;
    deletion->out->error_code = kafka_request_error(request, status);
    if (status != STATUS_OK && error != NULL) {
        deletion->out->error_message = arena_copy(&request->arena, kafka_text(error->text));
    }
    kafka_part_done(request);
}

/* The topic meant, or NULL with the error set. Fills in the other of name and id. */
static const struct topic *find_asked(struct deletion *deletion)
{
    struct kafka_delete_topics_response_topic *out = deletion->out;
    struct broker *broker = kafka_request_broker(deletion->request);
    bool by_id = !uuid_is_none(&out->topic_id);
    if (by_id == (out->name.data != NULL)) { /* both, or neither */
        out->error_code = KAFKA_INVALID_REQUEST;
        return NULL;
    }
    const struct topic *topic =
        by_id ? catalog_find_uid(broker, &out->topic_id)
              : catalog_find(broker, (const char *)out->name.data, out->name.bytes);
    if (topic == NULL) {
        out->error_code = by_id ? KAFKA_UNKNOWN_TOPIC_ID : KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
        return NULL;
    }
    out->topic_id = *topic_uid(topic);
    /* The topic will be gone when the answer is written. */
    if (by_id) out->name = arena_copy(&deletion->request->arena, kafka_text(topic_name(topic)));
    return topic;
}

static void delete_one(struct deletion *deletion, struct seen *seen)
{
    struct kafka_request *request = deletion->request;
    const struct topic *topic = find_asked(deletion);
    if (topic == NULL) return;
    if (seen_before(seen, deletion->out->name, 0)) {
        deletion->out->error_code = KAFKA_INVALID_REQUEST;
        return;
    }
    if (!kafka_request_settings(request)->delete_topic_enable) {
        deletion->out->error_code = KAFKA_TOPIC_DELETION_DISABLED;
        return;
    }
    const char *name = kafka_request_text(request, kafka_text(topic_name(topic)));
    if (name == NULL) return;
    int32_t timeout_ms = KAFKA_MESSAGE(request, delete_topics)->timeout_ms;
    request->open++;
    broker_delete_topic(kafka_request_broker(request),
                        &(struct admin_request){.topic = name,
                                                .timeout_us = kafka_timeout_us(request, timeout_ms),
                                                .done = deleted,
                                                .context = deletion});
}

void delete_topics_handle(struct kafka_request *request)
{
    if (kafka_forward(request)) return;
    struct kafka_delete_topics_response *answer = KAFKA_ANSWER(request, delete_topics);
    int32_t count = count_asked(request);
    lay_out_answer(request, KAFKA_NONE);
    struct deletion *deletions =
        arena_new_array(&request->arena, (size_t)count, sizeof(*deletions));
    struct seen seen;
    kafka_request_seen(request, &seen, (size_t)count);
    if (request->arena.failed) {
        kafka_finish(request);
        return;
    }
    request->open = 1; /* ours, until all are asked */
    for (int32_t i = 0; i < count; i++) {
        deletions[i] = (struct deletion){request, &answer->responses.items[i]};
        delete_one(&deletions[i], &seen);
    }
    kafka_part_done(request);
}
