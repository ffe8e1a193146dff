/* scram.h: the broker's side of SCRAM-SHA-256 (native-protocol.md 1.6; RFC 5802, 7677).
 *
 * One exchange: the client's first message is read, answered with a challenge, and its final
 * message checked; the answer to that proves the broker to the client. Without TLS there is no
 * channel to bind to: "p=" is refused, "y" accepted. Pure: nonces and secrets come in.
 * States: (begin) -> READ -> (challenge) -> CHALLENGED -> (finish). Thread: event loop. */
#ifndef MOONMQ_NATIVE_SCRAM_H
#define MOONMQ_NATIVE_SCRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/sha256.h"
#include "base/status.h"
#include "native/wire_messages.h"

#define SCRAM_NONCE_BYTES 18

/* What is stored of a password. */
struct scram_secret {
    const uint8_t *salt;
    size_t salt_bytes;
    uint32_t iterations;
    uint8_t stored_key[SHA256_BYTES], server_key[SHA256_BYTES];
};
/* From SaltedPassword (PBKDF2-HMAC-SHA-256 of the password). */
void scram_derive(const uint8_t salted[SHA256_BYTES], uint8_t stored_key[SHA256_BYTES],
                  uint8_t server_key[SHA256_BYTES]);

struct scram {
    char user[WIRE_NAME_BYTES_MAX + 1];
    size_t user_bytes;
    char binding;        /* of the gs2 header: 'n' or 'y' */
    struct buffer first; /* the client's bare first message; with the challenge: AuthMessage's */
    struct buffer nonce; /* the client's; with the challenge: both */
};

void scram_init(struct scram *scram);
void scram_deinit(struct scram *scram);
/* Reads the client's first message. STATUS_INVALID: malformed, or it asks for what there is not. */
STATUS_MUST_CHECK
enum status scram_begin(struct scram *scram, struct slice client_first, struct error *error);
/* Appends the answer to `out`. */
void scram_challenge(struct scram *scram, const struct scram_secret *secret,
                     const uint8_t server_nonce[SCRAM_NONCE_BYTES], struct buffer *out);
/* Checks the client's final message; on success the answer is appended to `out`. STATUS_INVALID:
 * malformed. STATUS_DENIED: another nonce or binding, or a wrong proof. */
STATUS_MUST_CHECK
enum status scram_finish(const struct scram *scram, const struct scram_secret *secret,
                         struct slice client_final, struct buffer *out, struct error *error);

#endif
