/* leader.c: finding the leader (native-protocol.md 5.2) and the handshake (1.5).
 *
 * One round asks each host in turn and follows up to three `leader=` hints from it. A client that
 * lost its leader first asks whom the last not-leader text named.                               */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "client/client.h"
#include "client/scram.h"

#define HINTS_MAX 3
/* Between two rounds: short at first, a failover takes tens of milliseconds. */
#define ROUND_PAUSE_MS     20
#define ROUND_PAUSE_MS_MAX 500

/* ---- handshake ---- */

static int check_welcome(void *context, const struct wire_frame *frame, struct moonmq_error *error)
{
    (void)context;
    if (frame->opcode != WIRE_WELCOME) return MOONMQ_OK;
    union wire_message message;
    int code = client_decode(frame, &message, error);
    if (code != MOONMQ_OK || message.welcome.version == WIRE_PROTOCOL_VERSION) return code;
    return client_fail(error, MOONMQ_BAD_PROTOCOL, "the broker speaks protocol version %u",
                       message.welcome.version);
}

static int say_hello(struct moonmq_client *client, int64_t deadline_us, struct moonmq_error *error)
{
    struct wire_hello hello = {
        .version = WIRE_PROTOCOL_VERSION,
        .has_purpose = client->any_replica,
        .purpose = WIRE_PURPOSE_OPERATOR,
    };
    struct call call = {.reply_opcode = WIRE_WELCOME, .take = check_welcome};
    return client_call_once(client, WIRE_HELLO, &hello, &call, deadline_us, error);
}

static int identify(struct moonmq_client *client, int64_t deadline_us, struct moonmq_error *error)
{
    if (client->name == NULL) return MOONMQ_OK;
    struct wire_identify identify = {
        .name = wire_text(client->name),
        .version = wire_text(client->version == NULL ? "0.0.0" : client->version),
    };
    struct call call = {.reply_opcode = WIRE_IDENTIFY_ACK};
    return client_call_once(client, WIRE_IDENTIFY_CLIENT, &identify, &call, deadline_us, error);
}

/* Keeps the text of a challenge, or of the broker's proof. */
static int keep_text(void *context, const struct wire_frame *frame, struct moonmq_error *error)
{
    struct buffer *kept = context;
    union wire_message message;
    int code = client_decode(frame, &message, error);
    if (code != MOONMQ_OK) return code;
    struct slice text = {NULL, 0};
    if (frame->opcode == WIRE_AUTH_CHALLENGE) text = message.text.text;
    if (frame->opcode == WIRE_AUTH_OK && message.auth_ok.has_message) {
        text = message.auth_ok.message;
    }
    buffer_put(kept, text.data, text.bytes);
    return buffer_failed(kept) ? client_fail(error, MOONMQ_NO_MEMORY, "no memory") : MOONMQ_OK;
}

static int exchange_scram(struct moonmq_client *client, struct client_scram *scram,
                          struct buffer *ours, struct buffer *theirs, int64_t deadline_us,
                          struct moonmq_error *error)
{
    struct wire_auth_scram first = {wire_text("SCRAM-SHA-256"), buffer_slice(ours)};
    struct call call = {.reply_opcode = WIRE_AUTH_CHALLENGE, .take = keep_text, .context = theirs};
    int code = client_call_once(client, WIRE_AUTH_SCRAM, &first, &call, deadline_us, error);
    const char *password = client->password == NULL ? "" : client->password;
    buffer_clear(ours);
    if (code == MOONMQ_OK) {
        code = client_scram_answer(scram, password, buffer_slice(theirs), ours, error);
    }
    if (code != MOONMQ_OK) return code;
    buffer_clear(theirs);
    struct wire_text_message final = {buffer_slice(ours)};
    call = (struct call){.reply_opcode = WIRE_AUTH_OK, .take = keep_text, .context = theirs};
    code = client_call_once(client, WIRE_AUTH_SCRAM_FINAL, &final, &call, deadline_us, error);
    return code == MOONMQ_OK ? client_scram_check(scram, buffer_slice(theirs), error) : code;
}

static int log_in_by_scram(struct moonmq_client *client, int64_t deadline_us,
                           struct moonmq_error *error)
{
    struct random random;
    uint8_t bytes[CLIENT_SCRAM_NONCE_BYTES];
    char nonce[CLIENT_SCRAM_NONCE_TEXT_BYTES];
    struct client_scram scram;
    struct buffer ours, theirs;
    random_seed_from_system(&random);
    random_bytes(&random, bytes, sizeof(bytes));
    client_scram_nonce(bytes, nonce);
    client_scram_init(&scram);
    buffer_init(&ours, 0);
    buffer_init(&theirs, 0);
    client_scram_begin(&scram, client->user, nonce, &ours);
    int code = buffer_failed(&ours)
                   ? client_fail(error, MOONMQ_NO_MEMORY, "no memory")
                   : exchange_scram(client, &scram, &ours, &theirs, deadline_us, error);
    buffer_deinit(&ours);
    buffer_deinit(&theirs);
    client_scram_deinit(&scram);
    return code;
}

static int log_in(struct moonmq_client *client, int64_t deadline_us, struct moonmq_error *error)
{
    if (client->user == NULL) return MOONMQ_OK;
    if (client->mechanism == MOONMQ_MECHANISM_SCRAM_SHA_256) {
        return log_in_by_scram(client, deadline_us, error);
    }
    struct wire_auth auth = {
        .user = wire_text(client->user),
        .password = wire_text(client->password == NULL ? "" : client->password),
    };
    struct call call = {.reply_opcode = WIRE_AUTH_OK};
    return client_call_once(client, WIRE_AUTH, &auth, &call, deadline_us, error);
}

/* ---- one target ---- */

/* Errors come prefixed with the address. */
static int connect_to(struct moonmq_client *client, const struct client_address *target,
                      struct moonmq_error *error)
{
    int64_t deadline_us = client_stream_now_us() + client->connect_timeout_us;
    client_stream_close(&client->stream);
    int code = client_stream_connect(&client->stream, target, deadline_us, error);
    if (code != MOONMQ_OK) return code;
    code = say_hello(client, deadline_us, error);
    if (code == MOONMQ_OK) code = identify(client, deadline_us, error);
    if (code == MOONMQ_OK) code = log_in(client, deadline_us, error);
    if (code == MOONMQ_OK) code = client_identity_connect(client, deadline_us, error);
    if (code == MOONMQ_OK) code = client_group_rejoin(client, deadline_us, error);
    if (code == MOONMQ_OK) {
        client->connected_to = *target;
        client_address_format(target, client->connected_text);
        return MOONMQ_OK;
    }
    client_stream_close(&client->stream);
    char text[CLIENT_ADDRESS_TEXT_BYTES];
    client_fail_prefix(error, client_address_format(target, text));
    return code;
}

/* A target, and whom it and those it names point to. `answered`: a broker is there that knows of no
 * leader, or holds its answer back until it does; not a port where nobody is. */
static int follow(struct moonmq_client *client, const struct client_address *first, bool *answered,
                  struct moonmq_error *error)
{
    struct client_address target = *first;
    *answered = false;
    for (int hints = 0;; hints++) {
        int code = connect_to(client, &target, error);
        if (code == MOONMQ_NOT_LEADER || code == MOONMQ_TIMEOUT) *answered = true;
        if (code != MOONMQ_NOT_LEADER || client->any_replica) return code;
        client_note_hint(client, error->text);
        if (!client->has_hint || hints == HINTS_MAX ||
            client_address_equal(&client->hint, &target)) {
            return code;
        }
        target = client->hint;
    }
}

/* ---- what became of a round ---- */

#define FATE_BYTES 160
static const char knows_none[] = " knows none";

/* Why a round found no leader, host by host; those of one fate are named together. */
struct round_report {
    char text[sizeof(((struct moonmq_error *)0)->text)];
    char fate[FATE_BYTES]; /* of the hosts named last */
    size_t hosts, alike;   /* in all; of that fate */
    bool any_answered;
};

static void report_text(struct round_report *report, const char *text)
{
    size_t at = strlen(report->text);
    snprintf(report->text + at, sizeof(report->text) - at, "%s", text);
}

static void report_fate(struct round_report *report)
{
    if (report->fate[0] == '\0') return;
    bool many_know_none = report->alike > 1 && strcmp(report->fate, knows_none) == 0;
    if (report->fate[0] != ' ') report_text(report, ": ");
    report_text(report, many_know_none ? " know none" : report->fate);
}

static void report_host(struct round_report *report, const struct client_address *host,
                        bool answered, const struct moonmq_error *error)
{
    char address[CLIENT_ADDRESS_TEXT_BYTES], fate[FATE_BYTES];
    size_t bytes = strlen(client_address_format(host, address));
    bool own =
        strncmp(error->text, address, bytes) == 0 && strncmp(error->text + bytes, ": ", 2) == 0;
    if (error->code == MOONMQ_NOT_LEADER && own) {
        snprintf(fate, sizeof(fate), "%s", knows_none);
    } else if (own) {
        snprintf(fate, sizeof(fate), "%.*s", FATE_BYTES - 1, error->text + bytes + 2);
    } else { /* of whom it pointed to */
        snprintf(fate, sizeof(fate), " points to %.*s", FATE_BYTES - 12, error->text);
    }
    if (strcmp(fate, report->fate) != 0) {
        report_fate(report);
        if (report->hosts > 0) report_text(report, "; ");
        memcpy(report->fate, fate, sizeof(fate));
        report->alike = 0;
    } else {
        report_text(report, ", ");
    }
    report_text(report, address);
    report->hosts++;
    report->alike++;
    if (answered) report->any_answered = true;
}

/* The text of one host stays as it is: a hint is read from it. */
static void report_finish(struct round_report *report, struct moonmq_error *error)
{
    if (report->hosts < 2) return;
    report_fate(report);
    snprintf(error->text, sizeof(error->text), "%s%.490s",
             report->any_answered ? "no leader: " : "", report->text);
}

/* ---- rounds ---- */

/* Would another host, or another round, say otherwise? Wrong credentials stay wrong. */
static bool is_final(int code)
{
    return code == MOONMQ_AUTH_FAILED || code == MOONMQ_BAD_PROTOCOL ||
           code == MOONMQ_NOT_AUTHORIZED || code == MOONMQ_NO_MEMORY;
}

static int ask_round(struct moonmq_client *client, struct moonmq_error *error)
{
    bool answered;
    struct round_report report = {.hosts = 0};
    if (client->has_hint && !client->any_replica) {
        struct client_address hint = client->hint;
        client->has_hint = false;
        if (follow(client, &hint, &answered, error) == MOONMQ_OK) return MOONMQ_OK;
    }
    int code = MOONMQ_UNREACHABLE;
    for (size_t i = 0; i < client->host_count; i++) {
        code = follow(client, &client->hosts[i], &answered, error);
        if (code == MOONMQ_OK || is_final(code)) return code;
        report_host(&report, &client->hosts[i], answered, error);
    }
    report_finish(&report, error);
    return code;
}

static int name_failure(int code, struct moonmq_error *error)
{
    if (code == MOONMQ_NOT_LEADER || code == MOONMQ_CLOSED || code == MOONMQ_TIMEOUT) {
        code = MOONMQ_UNREACHABLE;
    }
    error->code = code;
    return code;
}

int client_find_leader(struct moonmq_client *client, int64_t deadline_us,
                       struct moonmq_error *error)
{
    /* The hint is read from the text, so there must be one. */
    struct moonmq_error own = {.code = MOONMQ_OK};
    int pause_ms = ROUND_PAUSE_MS;
    for (;;) {
        int code = ask_round(client, &own);
        if (code == MOONMQ_OK) {
            client->has_hint = false;
            client->lost_at_us = 0;
            client_producer_connected(client);
            return MOONMQ_OK;
        }
        int64_t left_ms = (deadline_us - client_stream_now_us()) / 1000;
        if (left_ms <= 0 || is_final(code)) {
            code = name_failure(code, &own);
            if (error != NULL) *error = own;
            return code;
        }
        poll(NULL, 0, pause_ms < left_ms ? pause_ms : (int)left_ms);
        pause_ms = pause_ms * 2 < ROUND_PAUSE_MS_MAX ? pause_ms * 2 : ROUND_PAUSE_MS_MAX;
    }
}

int client_recover(struct moonmq_client *client, int64_t deadline_us, struct moonmq_error *error)
{
    if (client->stream.descriptor >= 0) return MOONMQ_OK;
    if (client->reconnect_us_max == 0) {
        return client_fail(error, MOONMQ_CLOSED, "not connected: make a new client");
    }
    int64_t give_up_us = client->lost_at_us + client->reconnect_us_max;
    struct moonmq_error why;
    int code =
        client_find_leader(client, deadline_us < give_up_us ? deadline_us : give_up_us, &why);
    if (code == MOONMQ_OK) return MOONMQ_OK;
    if (!is_final(code) && client_stream_now_us() < give_up_us) {
        return client_fail(error, MOONMQ_TIMEOUT, "still looking for the leader: %.440s", why.text);
    }
    client_producer_give_up(client, &why);
    if (error != NULL) *error = why;
    return code;
}
