/* scram.h: the client's side of SCRAM-SHA-256 (native-protocol.md 1.6; RFC 5802, 7677): the
 * password does not leave this process, and the broker has to show that it knows it, too.
 *
 * begin -> answer -> check. Without TLS there is no channel to bind to ("n,,"). Pure: the nonce
 * comes in. Errors are MOONMQ_PROTOCOL_ERROR (what the broker says makes no sense) or
 * MOONMQ_AUTH_FAILED (it does not know the password). */
#ifndef MOONMQ_CLIENT_SCRAM_H
#define MOONMQ_CLIENT_SCRAM_H

#include "base/buffer.h"
#include "base/sha256.h"
#include "moonmq.h"

/* Random bytes of a nonce. */
#define CLIENT_SCRAM_NONCE_BYTES      18
#define CLIENT_SCRAM_NONCE_TEXT_BYTES 25 /* with the NUL */

struct client_scram {
    struct buffer auth_message; /* grows to what both sides sign */
    size_t nonce_at, nonce_bytes;
    uint8_t server_signature[SHA256_BYTES];
};

void client_scram_init(struct client_scram *scram);
void client_scram_deinit(struct client_scram *scram);
/* The text of a nonce. */
void client_scram_nonce(const uint8_t bytes[CLIENT_SCRAM_NONCE_BYTES],
                        char text[CLIENT_SCRAM_NONCE_TEXT_BYTES]);
/* Appends the first message to `out`. `nonce` is text without commas. */
void client_scram_begin(struct client_scram *scram, const char *user, const char *nonce,
                        struct buffer *out);
/* Reads the challenge, and appends the final message to `out`. Takes as long as the broker's
 * iteration count says, which is bounded (F50). */
int client_scram_answer(struct client_scram *scram, const char *password, struct slice challenge,
                        struct buffer *out, struct moonmq_error *error);
/* Is the broker one that knows the password? */
int client_scram_check(const struct client_scram *scram, struct slice final,
                       struct moonmq_error *error);

#endif
