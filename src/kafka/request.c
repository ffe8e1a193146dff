#include "kafka/request.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <utlist.h>

#include "base/assert.h"
#include "kafka/errors.h"
#include "kafka/kafka_state.h"

struct broker *kafka_request_broker(const struct kafka_request *request)
{
    return request->kafka->broker;
}

const struct kafka_settings *kafka_request_settings(const struct kafka_request *request)
{
    return &request->kafka->settings;
}

bool kafka_request_wanted(const struct kafka_request *request)
{
    return request->connection != NULL || request->forwarded != NULL;
}

const char *kafka_request_client_host(const struct kafka_request *request)
{
    if (request->connection != NULL) return request->connection->client_host;
    if (request->forwarded_host != NULL) {
        return request->forwarded_host;
    }
    return "";
}

/* ---- birth ---- */

static enum status read_request(struct kafka_request *request, struct slice frame, size_t frame_at,
                                bool with_header, struct error *error)
{
    const struct kafka_messages *messages = request->messages;
    struct reader reader;
    reader_init(&reader, frame.data, frame.bytes);
    reader_skip(&reader, frame_at);
    if (with_header) {
        enum status status =
            kafka_read_header_rest(&reader, request->flexible, &request->header, error);
        if (status != STATUS_OK) return status;
    }
    request->body = (struct slice){frame.data + reader.at, frame.bytes - reader.at};
    request->message = arena_new(&request->arena, messages->request->bytes);
    if (request->message == NULL) return error_set(error, STATUS_NO_MEMORY, "out of memory");
    /* Bytes after the message are let pass, as Kafka does. */
    return kafka_decode(messages->request, request->header.api_version, request->flexible, &reader,
                        &request->arena, request->message, error);
}

enum status kafka_request_new(struct kafka *kafka, const struct kafka_api *api,
                              const struct kafka_request_header *start, struct slice frame,
                              size_t frame_at, bool with_header, bool copy_frame,
                              struct kafka_request **out, struct error *error)
{
    struct kafka_request *request = calloc(1, sizeof(*request));
    if (request == NULL) return error_set(error, STATUS_NO_MEMORY, "out of memory");
    request->kafka = kafka;
    request->api = api;
    request->messages = kafka_messages_find(api->key);
    ASSERT(request->messages != NULL);
    request->header = *start;
    request->flexible = kafka_messages_flexible(request->messages, start->api_version);
    size_t copied_bytes = copy_frame ? frame.bytes + 16 : 0;
    arena_init(&request->arena, copied_bytes + request->messages->request->bytes + 16 +
                                    kafka_arena_bytes_max(frame.bytes));
    kafka->stats.in_flight++;
    enum status status = STATUS_OK;
    if (copy_frame) {
        frame = arena_copy(&request->arena, frame);
        if (frame.data == NULL) status = error_set(error, STATUS_NO_MEMORY, "out of memory");
    }
    if (status == STATUS_OK) {
        status = read_request(request, frame, frame_at, with_header, error);
    }
    struct slice client_id = request->header.client_id;
    if (!copy_frame) request->header.client_id = KAFKA_NULL; /* it would outlive the frame */
    if (status != STATUS_OK) {
        kafka_request_free(request);
        return status;
    }
    if (copy_frame && kafka->settings.pool != NULL) {
        request->charged_bytes = request->arena.used;
        byte_pool_charge(kafka->settings.pool, request->charged_bytes);
    }
    request->arena.bytes_max = request->arena.used + KAFKA_ANSWER_ARENA_BYTES_MAX;
    if (!copy_frame && client_id.data != NULL) {
        request->header.client_id = arena_copy(&request->arena, client_id);
    }
    request->answer = kafka_struct_new(request->messages->response, &request->arena, 1);
    *out = request;
    return STATUS_OK;
}

void kafka_request_begin(struct kafka_request *request)
{
    struct kafka *kafka = request->kafka;
    if (!request->begun && request->api->waits_until_ready && request->wait == NULL &&
        request->resume == NULL && broker_check_serving(kafka->broker) == STATUS_NOT_READY) {
        kafka_wait_leader(request, kafka->settings.leader_wait_us, kafka_request_begin);
        return;
    }
    request->begun = true;
    request->begun_us = loop_now_us(kafka->loop);
    if (request->arena.failed) {
        kafka_finish(request);
        return;
    }
    request->api->handle(request);
}

void kafka_request_free(struct kafka_request *request)
{
    ASSERT(!request->runnable);
    ASSERT(request->wait == NULL);
    request->kafka->stats.in_flight--;
    if (request->release != NULL) request->release(request);
    kafka_response_free(request->response);
    arena_deinit(&request->arena);
    if (request->charged_bytes > 0) {
        byte_pool_release(request->kafka->settings.pool, request->charged_bytes);
    }
    free(request);
}

void kafka_request_abandon(struct kafka_request *request)
{
    struct kafka *kafka = request->kafka;
    request->connection = NULL;
    bool parked = request->wait != NULL || request->runnable;
    if (request->wait != NULL) {
        broker_wait_leader_cancel(kafka->broker, request->wait);
        request->wait = NULL;
    }
    kafka_forget_runnable(request);
    bool idle = request->finished || parked || !request->begun;
    if (idle || (request->api->cancel != NULL && request->api->cancel(request))) {
        kafka_request_free(request);
        return;
    }
    DL_APPEND(kafka->orphans, request);
}

/* ---- finishing ---- */

/* The answer is ready (or there is none): to whoever asked. */
static void deliver(struct kafka_request *request)
{
    ASSERT(!request->finished);
    request->finished = true;
    if (request->connection != NULL) {
        kafka_connection_flush(request->connection);
        return;
    }
    /* Orphaned: nobody is left. */
    DL_DELETE(request->kafka->orphans, request);
    kafka_request_free(request);
}

static void finish_forwarded(struct kafka_request *request, enum status status, struct slice body)
{
    ASSERT(!request->finished);
    request->finished = true;
    DL_DELETE(request->kafka->orphans, request);
    node_answer_forwarded(request->forwarded, status, body);
    kafka_request_free(request);
}

static struct kafka_response *new_response(void)
{
    struct kafka_response *response = malloc(sizeof(*response));
    if (response != NULL) kafka_response_init(response, KAFKA_ANSWER_BYTES_MAX);
    return response;
}

static void begin_answer(struct kafka_request *request, struct kafka_response *response)
{
    if (request->forwarded != NULL) return;
    kafka_write_response_header(response, request->header.api_key, request->flexible,
                                request->header.correlation_id);
}

static void end_answer(struct kafka_request *request, struct kafka_response *response)
{
    if (request->forwarded == NULL) {
        kafka_finish_frame(response);
    } else {
        kafka_response_finish(response);
    }
    if (kafka_response_failed(response)) {
        kafka_response_free(response);
        kafka_finish_close(request, "answer too large");
        return;
    }
    if (request->forwarded != NULL) {
        struct slice body = buffer_slice(&response->own);
        ASSERT(body.bytes == response->bytes); /* no forwarded API answers with records */
        request->response = response;
        finish_forwarded(request, STATUS_OK, body);
        return;
    }
    request->response = response;
    deliver(request);
}

void kafka_finish(struct kafka_request *request)
{
    if (request->arena.failed) {
        kafka_finish_close(request, "answer needs more memory than one request may take");
        return;
    }
    if (!kafka_request_wanted(request)) {
        deliver(request);
        return;
    }
    struct kafka_response *response = new_response();
    if (response == NULL) {
        kafka_finish_close(request, "out of memory");
        return;
    }
    begin_answer(request, response);
    kafka_encode(request->messages->response, request->header.api_version, request->flexible,
                 request->answer, response);
    end_answer(request, response);
}

void kafka_part_done(struct kafka_request *request)
{
    if (--request->open == 0) kafka_finish(request);
}

void kafka_finish_raw(struct kafka_request *request, struct slice body)
{
    if (!kafka_request_wanted(request)) {
        deliver(request);
        return;
    }
    struct kafka_response *response = new_response();
    if (response == NULL) {
        kafka_finish_close(request, "out of memory");
        return;
    }
    begin_answer(request, response);
    buffer_put(&response->own, body.data, body.bytes);
    end_answer(request, response);
}

void kafka_finish_not_leader(struct kafka_request *request)
{
    ASSERT(request->forwarded != NULL);
    finish_forwarded(request, STATUS_NOT_LEADER, (struct slice){NULL, 0});
}

void kafka_finish_silently(struct kafka_request *request)
{
    ASSERT(request->forwarded == NULL);
    deliver(request);
}

void kafka_finish_close(struct kafka_request *request, const char *format, ...)
{
    if (request->forwarded != NULL) {
        finish_forwarded(request, STATUS_NO_MEMORY, (struct slice){NULL, 0});
        return;
    }
    if (request->connection != NULL) {
        char why[256], reason[400];
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(why, sizeof(why), format, arguments);
        va_end(arguments);
        snprintf(reason, sizeof(reason), "%s v%d: %s", request->messages->name,
                 request->header.api_version, why);
        kafka_connection_close(request->connection, reason);
    }
    deliver(request);
}

/* ---- waiting ---- */

static void leader_known(void *context, enum status status)
{
    (void)status; /* the handler looks at the view itself */
    struct kafka_request *request = context;
    request->wait = NULL;
    kafka_run_request_later(request);
}

void kafka_wait_leader(struct kafka_request *request, int64_t timeout_us,
                       void (*resume)(struct kafka_request *request))
{
    struct kafka *kafka = request->kafka;
    ASSERT(request->wait == NULL);
    if (timeout_us > kafka->settings.leader_wait_us) timeout_us = kafka->settings.leader_wait_us;
    if (timeout_us < 0) timeout_us = 0;
    request->resume = resume;
    /* NULL: leader_known() was called already, and has put the request on the list. */
    request->wait = broker_wait_leader(kafka->broker, timeout_us, leader_known, request);
}

/* ---- small things ---- */

const char *kafka_request_text(struct kafka_request *request, struct slice text)
{
    if (text.data == NULL || memchr(text.data, '\0', text.bytes) != NULL) return NULL;
    char *copy = arena_new(&request->arena, text.bytes + 1);
    if (copy != NULL) memcpy(copy, text.data, text.bytes);
    return copy;
}

int64_t kafka_timeout_us(const struct kafka_request *request, int32_t timeout_ms)
{
    int64_t timeout_us = (int64_t)timeout_ms * 1000;
    int64_t ack_timeout_us = broker_settings_of(request->kafka->broker)->ack_timeout_us;
    if (timeout_us > ack_timeout_us) timeout_us = ack_timeout_us;
    return timeout_us < 1000 ? 1000 : timeout_us;
}

void kafka_request_seen(struct kafka_request *request, struct seen *seen, size_t count)
{
    seen_init(seen, &request->arena, count, request->kafka->hash_seed);
}

struct topic *kafka_find_topic(const struct kafka_request *request, struct slice name)
{
    return catalog_find(kafka_request_broker(request), (const char *)name.data, name.bytes);
}

int16_t kafka_no_topic(struct slice name)
{
    bool valid = topic_name_is_valid((const char *)name.data, name.bytes, false);
    return valid ? KAFKA_UNKNOWN_TOPIC_OR_PARTITION : KAFKA_INVALID_TOPIC;
}

struct partition *kafka_find_partition(const struct topic *topic, int32_t index)
{
    return topic != NULL && index >= 0 ? topic_partition(topic, (uint32_t)index) : NULL;
}

int16_t kafka_take_partition(struct seen *seen, struct slice topic_name, const struct topic *topic,
                             int32_t index, struct partition **out)
{
    if (seen_before(seen, topic_name, index)) return KAFKA_INVALID_REQUEST;
    *out = kafka_find_partition(topic, index);
    return *out != NULL ? KAFKA_NONE : KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
}

int16_t kafka_request_error(const struct kafka_request *request, enum status status)
{
    return kafka_error_of(request->api, request->header.api_version, status);
}
