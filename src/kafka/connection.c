#include "kafka/connection.h"

#include <stdio.h>
#include <stdlib.h>

#include <utlist.h>

#include "base/assert.h"
#include "base/memory.h"
#include "io/address.h"
#include "kafka/header.h"
#include "kafka/kafka_state.h"

/* Produces of one connection that may wait for their acknowledgement at once; clients send 5. */
#define IN_FLIGHT_MAX 64
/* A parked Fetch gives way to a frame behind it, but not before: else a client that always has one
 * more request to send would turn every wait into a busy loop. */
#define GIVE_WAY_AFTER_US 5000
#define CLOSE_LOG_US      1000000

#define FRAME_BYTES_MIN 8
/* A TLS ClientHello read as a frame size: 0x16 0x03 0x0x. */
#define TLS_HANDSHAKE 0x1603

struct kafka_connection *kafka_connection_new(struct kafka *kafka,
                                              const struct kafka_connection_options *options)
{
    struct kafka_connection *connection = memory_new(sizeof(*connection));
    connection->kafka = kafka;
    connection->handlers = options->handlers;
    connection->client_host = memory_copy_text(options->client_host);
    connection->client_port = options->client_port;
    if (options->local_host != NULL) {
        connection->local_host = memory_copy_text(options->local_host);
        connection->local_port = options->local_port;
    }
    return connection;
}

void kafka_connection_free(struct kafka_connection *connection)
{
    if (connection == NULL) return;
    connection->closed = true;
    kafka_forget_resumable(connection);
    while (connection->requests != NULL) {
        struct kafka_request *request = connection->requests;
        DL_DELETE(connection->requests, request);
        kafka_request_abandon(request);
    }
    timer_free(connection->give_way);
    timer_free(connection->unmute);
    free(connection->refused);
    free(connection->client_host);
    free(connection->local_host);
    free(connection);
}

uint32_t kafka_connection_in_flight(const struct kafka_connection *connection)
{
    return connection->request_count;
}

enum status kafka_frame_bytes(const struct kafka *kafka, const uint8_t prefix[4],
                              size_t *frame_bytes, struct error *error)
{
    uint32_t bytes = load_u32(prefix);
    *frame_bytes = bytes;
    if (load_u16(prefix) == TLS_HANDSHAKE) {
        return error_set(error, STATUS_INVALID, "the client speaks TLS to a plain port");
    }
    if (bytes < FRAME_BYTES_MIN || bytes > INT32_MAX) {
        return error_set(error, STATUS_INVALID, "%u is no size of a Kafka request", bytes);
    }
    if (bytes > kafka->settings.request_bytes_max) {
        return error_set(error, STATUS_INVALID, "a request of %u bytes, over the limit of %zu",
                         bytes, kafka->settings.request_bytes_max);
    }
    return STATUS_OK;
}

void kafka_connection_close(struct kafka_connection *connection, const char *reason)
{
    struct kafka *kafka = connection->kafka;
    char client[ADDRESS_TEXT_BYTES];
    if (connection->closed) return;
    connection->closed = true;
    kafka_forget_resumable(connection);
    log_limited(&kafka->close_limiter, loop_now_us(kafka->loop), CLOSE_LOG_US, LOG_WARN,
                "kafka_close client=%s reason=\"%s\"",
                address_format(connection->client_host, connection->client_port, client), reason);
    connection->handlers.close(connection->handlers.context, reason);
}

void kafka_connection_resume(struct kafka_connection *connection)
{
    if (!connection->closed) connection->handlers.resume(connection->handlers.context);
}

void kafka_connection_flush(struct kafka_connection *connection)
{
    while (connection->requests != NULL && connection->requests->finished) {
        struct kafka_request *request = connection->requests;
        struct kafka_response *response = request->response;
        DL_DELETE(connection->requests, request);
        connection->request_count--;
        request->response = NULL;
        kafka_request_free(request);
        if (response == NULL) continue;
        if (connection->closed) {
            kafka_response_free(response);
        } else {
            connection->handlers.send(connection->handlers.context, response);
        }
    }
    if (connection->frame_waits && !connection->closed) kafka_resume_later(connection);
}

/* ---- a frame behind a parked fetch ---- */

static void ask_to_give_way(void *context);

static void give_way_later(struct kafka_connection *connection, int64_t delay_us)
{
    if (connection->give_way == NULL) {
        connection->give_way = timer_new(connection->kafka->loop, ask_to_give_way, connection);
    }
    timer_start(connection->give_way, delay_us);
}

static void ask_to_give_way(void *context)
{
    struct kafka_connection *connection = context;
    struct kafka_request *request = connection->requests;
    if (!connection->frame_waits || connection->closed || request == NULL) return;
    if (!request->begun || request->finished || request->api->give_way == NULL) return;
    int64_t waited_us = loop_now_us(connection->kafka->loop) - request->begun_us;
    if (waited_us < GIVE_WAY_AFTER_US) {
        give_way_later(connection, GIVE_WAY_AFTER_US - waited_us);
        return;
    }
    request->api->give_way(request);
}

/* ---- over its limit ---- */

static void unmute(void *context)
{
    struct kafka_connection *connection = context;
    if (connection->frame_waits && !connection->closed) kafka_resume_later(connection);
}

void kafka_connection_mute(struct kafka_connection *connection, int64_t for_us)
{
    struct kafka *kafka = connection->kafka;
    int64_t until_us = loop_now_us(kafka->loop) + for_us;
    if (until_us <= connection->muted_until_us) return;
    connection->muted_until_us = until_us;
    if (connection->unmute == NULL) {
        connection->unmute = timer_new(kafka->loop, unmute, connection);
    }
    timer_start(connection->unmute, for_us);
}

static bool is_muted(const struct kafka_connection *connection)
{
    return connection->muted_until_us > 0 &&
           loop_now_us(connection->kafka->loop) < connection->muted_until_us;
}

/* ---- receiving ---- */

static bool may_begin(const struct kafka_connection *connection, const struct kafka_api *api)
{
    if (connection->requests == NULL) return true;
    const struct kafka_request *first = connection->requests, *last = first->prev;
    /* One that waits for a leader has not begun: none may overtake it. */
    return api != NULL && api->pipelines && first->api == api && last->begun &&
           connection->request_count < IN_FLIGHT_MAX;
}

static enum status refuse_frame(struct kafka_connection *connection,
                                const struct kafka_request_header *start, const char *why)
{
    char reason[700];
    snprintf(reason, sizeof(reason), "api key %d v%d: %s", start->api_key, start->api_version, why);
    connection->kafka->stats.closed_malformed++;
    kafka_connection_close(connection, reason);
    return STATUS_CLOSED;
}

/* An ApiVersions of a version to come: its body can't be read, and need not be (section 2.1). The
 * answer is version 0 with the range of this one API. */
static enum status answer_unknown_api_versions(struct kafka_connection *connection,
                                               const struct kafka_api *api, int32_t correlation_id)
{
    struct kafka_api_versions_response_key key = {api->key, api->version_min, api->version_max};
    struct kafka_api_versions_response answer = {.error_code = 35,
                                                 .api_keys = {&key, 1}}; /* UNSUPPORTED_VERSION */
    struct kafka_response *response = malloc(sizeof(*response));
    if (response == NULL) {
        kafka_connection_close(connection, "out of memory");
        return STATUS_CLOSED;
    }
    kafka_response_init(response, 0);
    kafka_write_response_header(response, api->key, false, correlation_id);
    kafka_encode(&kafka_api_versions_response_struct, 0, false, &answer, response);
    kafka_finish_frame(response);
    if (kafka_response_failed(response)) {
        kafka_response_free(response);
        kafka_connection_close(connection, "out of memory");
        return STATUS_CLOSED;
    }
    connection->handlers.send(connection->handlers.context, response);
    return STATUS_OK;
}

static enum status begin_request(struct kafka_connection *connection, const struct kafka_api *api,
                                 const struct kafka_request_header *start, struct slice frame,
                                 size_t at)
{
    struct kafka *kafka = connection->kafka;
    /* A request that must wait before its handler runs can't borrow the frame. */
    bool waits = api->waits_until_ready && broker_check_serving(kafka->broker) == STATUS_NOT_READY;
    struct kafka_request *request;
    struct error error;
    enum status status = kafka_request_new(kafka, api, start, frame, at, true,
                                           !api->borrows_frame || waits, &request, &error);
    if (status != STATUS_OK) return refuse_frame(connection, start, error.text);
    request->connection = connection;
    DL_APPEND(connection->requests, request);
    connection->request_count++;
    kafka_request_begin(request);
    return connection->closed ? STATUS_CLOSED : STATUS_OK;
}

enum status kafka_connection_receive(struct kafka_connection *connection, struct slice frame)
{
    struct kafka *kafka = connection->kafka;
    struct kafka_request_header start;
    struct reader reader;
    struct error error;
    if (connection->closed) return STATUS_CLOSED;
    reader_init(&reader, frame.data, frame.bytes);
    if (kafka_read_header_start(&reader, &start, &error) != STATUS_OK) {
        return refuse_frame(connection, &start, error.text);
    }
    const struct kafka_api *api = kafka_api_find(start.api_key);
    if (!may_begin(connection, api)) {
        connection->frame_waits = true;
        ask_to_give_way(connection);
        return STATUS_AGAIN;
    }
    if (is_muted(connection)) {
        connection->frame_waits = true;
        return STATUS_AGAIN;
    }
    connection->frame_waits = false;
    if (api == NULL) return refuse_frame(connection, &start, "not offered");
    kafka->stats.requests++;
    kafka->request_counts[api - kafka_api_table(&(size_t){0})]++;
    if (start.api_version < api->version_min || start.api_version > api->version_max) {
        if (api->key == KAFKA_API_VERSIONS) {
            return answer_unknown_api_versions(connection, api, start.correlation_id);
        }
        return refuse_frame(connection, &start, "version not offered");
    }
    const struct kafka_messages *messages = kafka_messages_find(api->key);
    if (start.api_version < messages->version_min) {
        /* Produce 0-2: offered because clients look at the minimum (rule 3), never used. */
        return refuse_frame(connection, &start, "version too old");
    }
    return begin_request(connection, api, &start, frame, reader.at);
}
