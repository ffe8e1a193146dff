/* login_scram.c: AUTH_SCRAM and AUTH_SCRAM_FINAL (native-protocol.md 1.6): the exchange of scram.h
 * on a connection. EXTERNAL needs a certificate, and so TLS: refused.
 *
 * A user there is none of gets a challenge like any other, always with the same salt, and fails at
 * the proof. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/random.h"
#include "native/native_state.h"
#include "native/operations.h"
#include "native/scram.h"

struct native_scram {
    struct scram scram;
    struct scram_secret secret;
    uint8_t decoy[SHA256_BYTES]; /* the salt, if there is no such user */
};

void native_scram_free(struct native_scram *scram)
{
    if (scram == NULL) return;
    scram_deinit(&scram->scram);
    explicit_bzero(scram, sizeof(*scram));
    free(scram);
}

static void drop(struct native_connection *connection)
{
    native_scram_free(connection->scram);
    connection->scram = NULL;
}

static void fail_protocol(struct native_request *request, const char *text)
{
    native_fail_and_close(request, WIRE_CODE_BAD_PROTOCOL, NATIVE_CLOSE_BAD_PROTOCOL, "%s", text);
}

static bool is_mechanism(struct slice mechanism, const char *name)
{
    return mechanism.bytes == strlen(name) &&
           strncasecmp((const char *)mechanism.data, name, mechanism.bytes) == 0;
}

/* ---- AUTH_SCRAM ---- */

static void take_decoy(const struct native *native, struct native_scram *scram)
{
    struct buffer bytes;
    buffer_init(&bytes, 0);
    buffer_put(&bytes, native->decoy, sizeof(native->decoy));
    buffer_put(&bytes, scram->scram.user, scram->scram.user_bytes);
    sha256(bytes.data, bytes.bytes, scram->decoy);
    buffer_deinit(&bytes);
    scram->secret = (struct scram_secret){
        .salt = scram->decoy, .salt_bytes = PASSWORD_SALT_BYTES, .iterations = 1};
    for (size_t i = 0; i < native->user_count; i++) {
        uint32_t iterations = native->users[i].iterations;
        if (iterations > scram->secret.iterations) scram->secret.iterations = iterations;
    }
    /* A stored key that nobody knows a client key of. */
    sha256(scram->decoy, sizeof(scram->decoy), scram->secret.stored_key);
}

static void challenge(struct native_request *request, struct native_scram *scram)
{
    const struct native *native = request->native;
    struct slice user = {(const uint8_t *)scram->scram.user, scram->scram.user_bytes};
    const struct native_login *login = native_find_login(native, user);
    if (login == NULL || !native_login_secret(login, &scram->secret)) take_decoy(native, scram);
    /* Of its own seed: the numbers that clients see elsewhere tell nothing of it. */
    struct random random;
    uint8_t nonce[SCRAM_NONCE_BYTES];
    random_seed_from_system(&random);
    random_bytes(&random, nonce, sizeof(nonce));
    struct buffer text;
    buffer_init(&text, 0);
    scram_challenge(&scram->scram, &scram->secret, nonce, &text);
    struct wire_text_message answer = {buffer_slice(&text)};
    native_answer(request, WIRE_AUTH_CHALLENGE, &answer);
    buffer_deinit(&text);
}

void native_auth_scram(struct native_request *request, const union wire_message *message)
{
    const struct wire_auth_scram *auth = &message->auth_scram;
    struct native_connection *connection = request->connection;
    bool external = is_mechanism(auth->mechanism, "EXTERNAL");
    if (!external && !is_mechanism(auth->mechanism, "SCRAM-SHA-256")) {
        fail_protocol(request, "the mechanisms are SCRAM-SHA-256 and EXTERNAL");
        return;
    }
    if (external || native_is_open(request->native)) {
        native_refuse_login(request, external ? "EXTERNAL needs TLS and a certificate"
                                              : "this broker has no users: AUTH takes any");
        return;
    }
    drop(connection);
    struct native_scram *scram = calloc(1, sizeof(*scram));
    if (scram == NULL) {
        native_fail_and_close(request, WIRE_CODE_INTERNAL, NATIVE_CLOSE_AUTH_FAILED,
                              "out of memory");
        return;
    }
    scram_init(&scram->scram);
    connection->scram = scram;
    struct error error;
    if (scram_begin(&scram->scram, auth->message, &error) == STATUS_OK) {
        challenge(request, scram);
    } else {
        fail_protocol(request, error.text);
    }
}

/* ---- AUTH_SCRAM_FINAL ---- */

void native_auth_scram_final(struct native_request *request, const union wire_message *message)
{
    struct native_connection *connection = request->connection;
    struct native_scram *scram = connection->scram;
    if (scram == NULL) {
        fail_protocol(request, "AUTH_SCRAM_FINAL without AUTH_SCRAM before it");
        return;
    }
    struct buffer text;
    struct error error;
    buffer_init(&text, 0);
    enum status status =
        scram_finish(&scram->scram, &scram->secret, message->text.text, &text, &error);
    drop(connection);
    if (status == STATUS_OK) {
        const struct wire_auth_ok answer = {.has_message = true, .message = buffer_slice(&text)};
        native_log_in(request, &answer);
    } else if (status == STATUS_DENIED) {
        native_refuse_login(request, error.text);
    } else {
        request->native->stats.auth_failures++;
        fail_protocol(request, error.text);
    }
    buffer_deinit(&text);
}
