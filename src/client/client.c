/* client.c: birth and death of a client, and which frame belongs to whom. */
#include "client/client.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/random.h"

/* ---- options ---- */

static int copy_text(const char *from, size_t bytes_max, const char *what, char **to,
                     struct moonmq_error *error)
{
    if (from == NULL) return MOONMQ_OK;
    if (strlen(from) > bytes_max) {
        return client_fail(error, MOONMQ_INVALID_ARGUMENT, "%s is longer than %zu bytes", what,
                           bytes_max);
    }
    *to = strdup(from);
    if (*to == NULL) return client_fail(error, MOONMQ_NO_MEMORY, "no memory for a client");
    return MOONMQ_OK;
}

static int copy_texts(struct moonmq_client *client, const struct moonmq_options *options,
                      struct moonmq_error *error)
{
    const struct {
        const char *from;
        size_t bytes_max;
        const char *what;
        char **to;
    } texts[] = {
        {options->user, WIRE_NAME_BYTES_MAX, "user", &client->user},
        {options->password, WIRE_PASSWORD_BYTES_MAX, "password", &client->password},
        {options->producer_name, WIRE_NAME_BYTES_MAX, "producer_name", &client->identity.name},
        {options->client_name, WIRE_CLIENT_NAME_BYTES_MAX, "client_name", &client->name},
        {options->client_version, WIRE_CLIENT_VERSION_BYTES_MAX, "client_version",
         &client->version},
    };
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        int code = copy_text(texts[i].from, texts[i].bytes_max, texts[i].what, texts[i].to, error);
        if (code != MOONMQ_OK) return code;
    }
    return MOONMQ_OK;
}

/* Malformed hosts are skipped (5.1); none left is an error. */
static int copy_hosts(struct moonmq_client *client, const struct moonmq_options *options,
                      struct moonmq_error *error)
{
    if (options->host_count < 1 || options->host_count > CLIENT_HOSTS_MAX) {
        return client_fail(error, MOONMQ_INVALID_ARGUMENT, "hosts: 1 to %d are needed",
                           CLIENT_HOSTS_MAX);
    }
    client->hosts = calloc(options->host_count, sizeof(*client->hosts));
    if (client->hosts == NULL) return client_fail(error, MOONMQ_NO_MEMORY, "no memory for hosts");
    for (size_t i = 0; i < options->host_count; i++) {
        if (options->hosts[i] != NULL &&
            client_address_parse(options->hosts[i], &client->hosts[client->host_count])) {
            client->host_count++;
        }
    }
    if (client->host_count > 0) return MOONMQ_OK;
    return client_fail(error, MOONMQ_INVALID_ARGUMENT, "hosts: %s is not host:port or [v6]:port",
                       options->hosts[0] == NULL ? "(null)" : options->hosts[0]);
}

static int check_numbers(const struct moonmq_options *options, struct moonmq_error *error)
{
    const struct {
        const char *name;
        int64_t value, low, high;
    } numbers[] = {
        {"connect_timeout_ms", options->connect_timeout_ms, 1, INT32_MAX},
        {"connect_ms_max", options->connect_ms_max, 0, INT32_MAX},
        {"request_timeout_ms", options->request_timeout_ms, 1, INT32_MAX},
        {"reconnect_ms_max", options->reconnect_ms_max, 0, INT32_MAX},
        {"batch_records_max", options->batch_records_max, 1, WIRE_BATCH_RECORDS_MAX},
        {"batch_bytes_max", options->batch_bytes_max, 1, WIRE_CLIENT_BODY_BYTES_MAX},
        {"window_batches_max", options->window_batches_max, 1, 1024},
        {"queue_bytes_max", options->queue_bytes_max, 1, INT64_C(1) << 40},
        {"linger_ms", options->linger_ms, 0, INT32_MAX},
        {"mechanism", options->mechanism, MOONMQ_MECHANISM_PLAIN, MOONMQ_MECHANISM_SCRAM_SHA_256},
        {"compression", options->compression, MOONMQ_COMPRESSION_NONE, MOONMQ_COMPRESSION_SNAPPY},
    };
    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++) {
        if (numbers[i].value >= numbers[i].low && numbers[i].value <= numbers[i].high) continue;
        return client_fail(error, MOONMQ_INVALID_ARGUMENT, "%s: %lld is not in %lld .. %lld",
                           numbers[i].name, (long long)numbers[i].value, (long long)numbers[i].low,
                           (long long)numbers[i].high);
    }
    return MOONMQ_OK;
}

int moonmq_client_new(const struct moonmq_options *options, struct moonmq_client **out,
                      struct moonmq_error *error)
{
    int code = check_numbers(options, error);
    if (code != MOONMQ_OK) return code;
    struct moonmq_client *client = calloc(1, sizeof(*client));
    if (client == NULL) return client_fail(error, MOONMQ_NO_MEMORY, "no memory for a client");
    client_stream_init(&client->stream);
    client_producer_init(&client->producer, options);
    client->connect_timeout_us = (int64_t)options->connect_timeout_ms * 1000;
    client->request_timeout_us = (int64_t)options->request_timeout_ms * 1000;
    client->reconnect_us_max = (int64_t)options->reconnect_ms_max * 1000;
    client->any_replica = options->any_replica;
    client->codec = (uint8_t)options->compression;
    client->mechanism = options->mechanism;
    client->identity.wanted = options->idempotent || options->producer_name != NULL;
    struct random random;
    random_seed_from_system(&random);
    random_bytes(&random, client->id_prefix, sizeof(client->id_prefix));
    client->next_spread = (uint32_t)random_u64(&random);
    code = copy_texts(client, options, error);
    if (code == MOONMQ_OK) code = copy_hosts(client, options, error);
    if (code == MOONMQ_OK) {
        code = client_find_leader(
            client, client_stream_now_us() + (int64_t)options->connect_ms_max * 1000, error);
    }
    if (code == MOONMQ_OK) {
        *out = client;
        return MOONMQ_OK;
    }
    moonmq_client_free(client);
    return code;
}

static void free_secret(char *text)
{
    if (text != NULL) explicit_bzero(text, strlen(text));
    free(text);
}

/* A goodbye that does not fit into the socket's buffer is not worth waiting for. */
static void say_goodbye(struct moonmq_client *client)
{
    if (client->stream.descriptor < 0) return;
    struct wire_id id = client_next_id(client);
    wire_encode(&client->stream.out, WIRE_GOODBYE, &id, NULL);
    bool progress;
    (void)client_pump(client, client_stream_now_us(), &progress, NULL);
}

void moonmq_client_free(struct moonmq_client *client)
{
    if (client == NULL) return;
    client_producer_deinit(&client->producer);
    client_group_deinit(&client->group);
    client_identity_deinit(&client->identity);
    client_subscriptions_deinit(&client->subscriptions);
    say_goodbye(client);
    client_stream_close(&client->stream);
    free(client->hosts);
    free(client->user);
    free_secret(client->password);
    free(client->name);
    free(client->version);
    free(client);
}

const char *moonmq_client_address(const struct moonmq_client *client)
{
    return client->connected_text;
}

void moonmq_text_free(char *text)
{
    free(text);
}

/* ---- frames ---- */

struct wire_id client_next_id(struct moonmq_client *client)
{
    struct wire_id id;
    memcpy(id.bytes, client->id_prefix, sizeof(client->id_prefix));
    store_u64(id.bytes + sizeof(client->id_prefix), ++client->next_id);
    return id;
}

uint32_t client_next_spread(struct moonmq_client *client)
{
    return client->next_spread++;
}

int client_decode(const struct wire_frame *frame, union wire_message *message,
                  struct moonmq_error *error)
{
    const struct wire_shape *shape = wire_shape_of(frame->opcode);
    struct error why;
    if (shape == NULL) {
        return client_fail(error, MOONMQ_PROTOCOL_ERROR, "unknown opcode 0x%02x", frame->opcode);
    }
    if (wire_decode(shape, frame->payload, message, &why) == STATUS_OK) return MOONMQ_OK;
    return client_fail(error, MOONMQ_PROTOCOL_ERROR, "%s", why.text);
}

/* The reason this connection is dying (1.7); pushed records are nobody's here. */
static int take_unsolicited(struct moonmq_client *client, const struct wire_frame *frame,
                            struct moonmq_error *error)
{
    if (frame->opcode != WIRE_ERROR) return MOONMQ_OK;
    union wire_message message;
    int code = client_decode(frame, &message, error);
    if (code == MOONMQ_OK) code = client_fail_broker(error, &message.error);
    client_stream_close(&client->stream);
    return code;
}

static int take_answer(struct call *call, const struct wire_frame *frame,
                       struct moonmq_error *error)
{
    if (frame->opcode == WIRE_ERROR) {
        union wire_message message;
        call->code = client_decode(frame, &message, error);
        if (call->code == MOONMQ_OK) call->code = client_fail_broker(error, &message.error);
        call->done = true;
        return MOONMQ_OK;
    }
    int code = call->take == NULL ? MOONMQ_OK : call->take(call->context, frame, error);
    if (code == MOONMQ_OK && frame->opcode != call->reply_opcode) return MOONMQ_OK;
    call->code = code;
    call->done = true;
    return MOONMQ_OK;
}

static int take_frame(void *context, const struct wire_frame *frame, struct moonmq_error *error)
{
    struct moonmq_client *client = context;
    if (wire_id_is_zero(&frame->id)) return take_unsolicited(client, frame, error);
    if (client->call != NULL && wire_id_equal(&frame->id, &client->call->id)) {
        return take_answer(client->call, frame, error);
    }
    if (client_group_take(client, frame)) return MOONMQ_OK;
    /* What is nobody's answers a call that gave up waiting. */
    return client_producer_take(client, frame, error);
}

int client_pump(struct moonmq_client *client, int64_t deadline_us, bool *progress,
                struct moonmq_error *error)
{
    /* Errors steer what happens next, so they are kept also for a caller who does not look. */
    struct moonmq_error kept = {.code = MOONMQ_OK};
    int code =
        client_stream_pump(&client->stream, deadline_us, take_frame, client, progress, &kept);
    if (error != NULL && kept.code != MOONMQ_OK) *error = kept;
    if (code != MOONMQ_OK) client_drop_connection(client, &kept);
    return code;
}

void client_note_hint(struct moonmq_client *client, const char *text)
{
    char hint[CLIENT_ADDRESS_TEXT_BYTES];
    client->has_hint = wire_leader_hint(wire_text(text), hint, sizeof(hint)) &&
                       client_address_parse(hint, &client->hint);
}

void client_drop_connection(struct moonmq_client *client, const struct moonmq_error *why)
{
    client_stream_close(&client->stream);
    client_identity_lost(&client->identity);
    /* Failed attempts to connect again do not renew the time that there is for them. */
    if (client->lost_at_us == 0) client->lost_at_us = client_stream_now_us();
    if (why->code == MOONMQ_NOT_LEADER) client_note_hint(client, why->text);
    client_producer_connection_lost(client, why);
}

int client_check_topic(const char *topic, struct moonmq_error *error)
{
    static const char legal[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    size_t bytes = topic == NULL ? 0 : strlen(topic);
    if (bytes >= 1 && bytes <= WIRE_TOPIC_BYTES_MAX && strspn(topic, legal) == bytes &&
        topic[0] != '-' && strcmp(topic, ".") != 0 && strcmp(topic, "..") != 0) {
        return MOONMQ_OK;
    }
    return client_fail(error, MOONMQ_INVALID_ARGUMENT,
                       "\"%s\" is not a topic name: 1 to %d of A-Z a-z 0-9 . _ - are, not "
                       "beginning with -",
                       topic == NULL ? "" : topic, WIRE_TOPIC_BYTES_MAX);
}
