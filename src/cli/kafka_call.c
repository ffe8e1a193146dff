/* kafka_call.c: see kafka_call.h. */
#include "cli/kafka_call.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buffer.h"
#include "client/address.h"
#include "kafka/errors.h"
#include "kafka/header.h"
#include "kafka/messages.h"

#define REQUEST_BYTES_MAX (1u << 20)
#define ANSWER_BYTES_MAX  (64u << 20)

/* ---- connecting ---- */

static int connect_to(struct cli_kafka *kafka, const struct client_address *address)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *targets;
    int failure = getaddrinfo(address->host, address->port, &hints, &targets);
    if (failure != 0) return cli_fail_text("%s: %s", kafka->address, gai_strerror(failure));
    int timeout_ms = kafka->options->timeout_ms;
    struct timeval limit = {.tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000};
    int reason = ECONNREFUSED;
    for (struct addrinfo *each = targets; each != NULL && kafka->descriptor < 0;
         each = each->ai_next) {
        int descriptor = socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP);
        bool connected =
            descriptor >= 0 &&
            setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == 0 &&
            setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) == 0 &&
            connect(descriptor, each->ai_addr, each->ai_addrlen) == 0;
        if (connected) {
            kafka->descriptor = descriptor;
        } else {
            reason = errno;
            if (descriptor >= 0) close(descriptor);
        }
    }
    freeaddrinfo(targets);
    if (kafka->descriptor >= 0) return CLI_OK;
    return cli_fail_text("%s: %s", kafka->address, strerror(reason));
}

int cli_kafka_open(struct cli_kafka *kafka, const struct cli_options *options)
{
    *kafka = (struct cli_kafka){.options = options, .descriptor = -1};
    arena_init(&kafka->arena, kafka_arena_bytes_max(ANSWER_BYTES_MAX));
    struct moonmq_client *client = cli_connect(options, true);
    if (client == NULL) return CLI_FAILED;
    snprintf(kafka->address, sizeof(kafka->address), "%s", moonmq_client_address(client));
    moonmq_client_free(client);
    struct client_address address;
    if (!client_address_parse(kafka->address, &address)) {
        return cli_fail_text("%s is no address", kafka->address);
    }
    return connect_to(kafka, &address);
}

void cli_kafka_close(struct cli_kafka *kafka)
{
    if (kafka->descriptor >= 0) close(kafka->descriptor);
    kafka->descriptor = -1;
    arena_deinit(&kafka->arena);
    free(kafka->answer);
    kafka->answer = NULL;
}

/* ---- one request ---- */

static int lost(const struct cli_kafka *kafka)
{
    bool late = errno == EAGAIN || errno == EWOULDBLOCK;
    return cli_fail_text("%s: %s", kafka->address,
                         late ? "no answer in time; `moonmq status` shows the state of the group"
                              : "the broker closed the connection; with Auth configured it takes "
                                "no Kafka requests yet, and its log says why");
}

static int send_all(struct cli_kafka *kafka, struct slice bytes)
{
    while (bytes.bytes > 0) {
        ssize_t sent = send(kafka->descriptor, bytes.data, bytes.bytes, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) return lost(kafka);
        bytes.data += sent;
        bytes.bytes -= (size_t)sent;
    }
    return CLI_OK;
}

static int receive_all(struct cli_kafka *kafka, uint8_t *at, size_t bytes)
{
    while (bytes > 0) {
        errno = 0;
        ssize_t received = recv(kafka->descriptor, at, bytes, 0);
        if (received < 0 && errno == EINTR) continue;
        if (received <= 0) return lost(kafka);
        at += received;
        bytes -= (size_t)received;
    }
    return CLI_OK;
}

static int send_request(struct cli_kafka *kafka, const struct kafka_messages *messages,
                        int16_t version, const void *request)
{
    struct kafka_response out;
    struct buffer bytes;
    bool flexible = kafka_messages_flexible(messages, version);
    const struct kafka_request_header header = {.api_key = messages->key,
                                                .api_version = version,
                                                .correlation_id = ++kafka->correlation_id,
                                                .client_id = kafka_text("moonmq")};
    kafka_response_init(&out, REQUEST_BYTES_MAX);
    kafka_write_request_header(&out, flexible, &header);
    kafka_encode(messages->request, version, flexible, request, &out);
    kafka_finish_frame(&out);
    buffer_init(&bytes, 0);
    int code = CLI_OK;
    if (kafka_response_failed(&out)) {
        code = cli_fail_text("the request has more than %u bytes", REQUEST_BYTES_MAX);
    } else {
        kafka_response_copy(&out, &bytes);
        code = buffer_failed(&bytes) ? cli_fail_text("out of memory")
                                     : send_all(kafka, buffer_slice(&bytes));
    }
    buffer_deinit(&bytes);
    kafka_response_deinit(&out);
    return code;
}

static int receive_answer(struct cli_kafka *kafka, size_t *bytes)
{
    uint8_t prefix[KAFKA_FRAME_PREFIX_BYTES];
    struct reader reader;
    int code = receive_all(kafka, prefix, sizeof(prefix));
    if (code != CLI_OK) return code;
    reader_init(&reader, prefix, sizeof(prefix));
    *bytes = reader_u32(&reader);
    if (*bytes > ANSWER_BYTES_MAX) {
        return cli_fail_text("%s: an answer of %zu bytes; at most %u are taken", kafka->address,
                             *bytes, ANSWER_BYTES_MAX);
    }
    free(kafka->answer);
    kafka->answer = malloc(*bytes + 1);
    if (kafka->answer == NULL) return cli_fail_text("out of memory");
    return receive_all(kafka, kafka->answer, *bytes);
}

int cli_kafka_ask(struct cli_kafka *kafka, int16_t api_key, int16_t api_version,
                  const void *request, void *response)
{
    const struct kafka_messages *messages = kafka_messages_find(api_key);
    size_t bytes = 0;
    int code = send_request(kafka, messages, api_version, request);
    if (code == CLI_OK) code = receive_answer(kafka, &bytes);
    if (code != CLI_OK) return code;
    struct reader reader;
    struct error error;
    int32_t correlation_id = 0;
    bool flexible = kafka_messages_flexible(messages, api_version);
    reader_init(&reader, kafka->answer, bytes);
    enum status status =
        kafka_read_response_header(&reader, api_key, flexible, &correlation_id, &error);
    if (status == STATUS_OK) {
        status = kafka_decode(messages->response, api_version, flexible, &reader, &kafka->arena,
                              response, &error);
    }
    if (status == STATUS_OK && correlation_id == kafka->correlation_id) return CLI_OK;
    return cli_fail_text("%s: an answer that cannot be read: %s", kafka->address,
                         status == STATUS_OK ? "to another request" : error.text);
}

int cli_kafka_check(int16_t error_code, const char *subject)
{
    static const struct {
        int16_t code;
        const char *text;
    } texts[] = {
        {KAFKA_COORDINATOR_LOAD_IN_PROGRESS, "the leader still takes over: try again"},
        {KAFKA_COORDINATOR_NOT_AVAILABLE,
         "too few brokers are up: `moonmq status` shows who is missing"},
        {KAFKA_NOT_COORDINATOR, "leadership moved meanwhile: try again"},
        {KAFKA_REQUEST_TIMED_OUT, "not done in time; it may still happen"},
        {KAFKA_CONCURRENT_TRANSACTIONS, "its transaction is just ending: try again"},
        {KAFKA_TRANSACTIONAL_ID_NOT_FOUND,
         "no such transactional id: `moonmq txn list` shows those there are"},
        {KAFKA_UNSUPPORTED_VERSION, "the broker is of another version than this program"},
    };
    if (error_code == KAFKA_NONE) return CLI_OK;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (texts[i].code == error_code) return cli_fail_text("%s: %s", subject, texts[i].text);
    }
    return cli_fail_text("%s: refused with Kafka's error %d", subject, error_code);
}
