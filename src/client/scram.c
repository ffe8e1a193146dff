/* scram.c: see scram.h. */
#include "client/scram.h"

#include <string.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/assert.h"
#include "base/constant_time.h"
#include "client/fail.h"

#define ITERATIONS_MAX   10000000u /* as many as a broker may have been told to use */
#define SALT_BYTES_MAX   1024
#define BASE64_KEY_BYTES 44
#define GS2_HEADER       "n,,"
#define GS2_BASE64       "biws"

void client_scram_init(struct client_scram *scram)
{
    memset(scram, 0, sizeof(*scram));
    buffer_init(&scram->auth_message, 0);
}

void client_scram_deinit(struct client_scram *scram)
{
    buffer_deinit(&scram->auth_message);
    explicit_bzero(scram->server_signature, sizeof(scram->server_signature));
}

static void put_text(struct buffer *out, const char *text)
{
    buffer_put(out, text, strlen(text));
}

/* ---- the first message ---- */

static void put_user(struct buffer *out, const char *user)
{
    for (; *user != '\0'; user++) {
        if (*user == '=') {
            put_text(out, "=3D");
        } else if (*user == ',') {
            put_text(out, "=2C");
        } else {
            buffer_put(out, user, 1);
        }
    }
}

void client_scram_nonce(const uint8_t bytes[CLIENT_SCRAM_NONCE_BYTES],
                        char text[CLIENT_SCRAM_NONCE_TEXT_BYTES])
{
    EVP_EncodeBlock((unsigned char *)text, bytes, CLIENT_SCRAM_NONCE_BYTES);
}

void client_scram_begin(struct client_scram *scram, const char *user, const char *nonce,
                        struct buffer *out)
{
    struct buffer *bare = &scram->auth_message;
    put_text(bare, "n=");
    put_user(bare, user);
    put_text(bare, ",r=");
    scram->nonce_at = bare->bytes;
    scram->nonce_bytes = strlen(nonce);
    put_text(bare, nonce);
    put_text(out, GS2_HEADER);
    if (!buffer_failed(bare)) buffer_put(out, bare->data, bare->bytes);
}

/* ---- the challenge ---- */

struct challenge {
    struct slice nonce, salt; /* the salt in base64 */
    uint32_t iterations;
};

/* "<name>=value" up to the next comma, which is stepped over. */
static bool take_attribute(struct slice *rest, char name, struct slice *value)
{
    if (rest->bytes < 2 || rest->data[0] != name || rest->data[1] != '=') return false;
    const uint8_t *begin = rest->data + 2;
    size_t left = rest->bytes - 2;
    const uint8_t *comma = left == 0 ? NULL : memchr(begin, ',', left);
    value->data = begin;
    value->bytes = comma == NULL ? left : (size_t)(comma - begin);
    size_t used = 2 + value->bytes + (comma != NULL);
    rest->data += used;
    rest->bytes -= used;
    return true;
}

static bool read_number(struct slice text, uint32_t *number)
{
    *number = 0;
    for (size_t i = 0; i < text.bytes; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') return false;
        *number = *number * 10 + (uint32_t)(text.data[i] - '0');
        if (*number > ITERATIONS_MAX) return false;
    }
    return *number >= 1;
}

/* The broker's nonce has to go on from ours, or the challenge was made for somebody else. */
static bool read_challenge(const struct client_scram *scram, struct slice text,
                           struct challenge *challenge)
{
    struct slice iterations;
    const uint8_t *own = scram->auth_message.data + scram->nonce_at;
    return take_attribute(&text, 'r', &challenge->nonce) &&
           take_attribute(&text, 's', &challenge->salt) &&
           take_attribute(&text, 'i', &iterations) &&
           read_number(iterations, &challenge->iterations) &&
           challenge->nonce.bytes > scram->nonce_bytes &&
           memcmp(challenge->nonce.data, own, scram->nonce_bytes) == 0;
}

/* Bytes decoded, or -1. */
static int decode_base64(struct slice text, uint8_t *out, size_t room)
{
    if (text.bytes == 0 || text.bytes % 4 != 0 || text.bytes / 4 * 3 > room) return -1;
    int bytes = EVP_DecodeBlock(out, text.data, (int)text.bytes);
    for (size_t i = text.bytes; i > text.bytes - 2 && text.data[i - 1] == '='; i--)
        bytes--;
    return bytes;
}

/* ---- the proof ---- */

static void hmac(const uint8_t key[SHA256_BYTES], const void *data, size_t data_bytes,
                 uint8_t out[SHA256_BYTES])
{
    unsigned bytes = SHA256_BYTES;
    const void *done = HMAC(EVP_sha256(), key, SHA256_BYTES, data, data_bytes, out, &bytes);
    ASSERT(done != NULL);
}

static void sign(struct client_scram *scram, const uint8_t salted[SHA256_BYTES],
                 uint8_t proof[SHA256_BYTES])
{
    uint8_t key[SHA256_BYTES], stored[SHA256_BYTES], signature[SHA256_BYTES];
    const struct buffer *message = &scram->auth_message;
    hmac(salted, "Client Key", 10, key);
    sha256(key, sizeof(key), stored);
    hmac(stored, message->data, message->bytes, signature);
    for (int i = 0; i < SHA256_BYTES; i++)
        proof[i] = key[i] ^ signature[i];
    hmac(salted, "Server Key", 10, key);
    hmac(key, message->data, message->bytes, scram->server_signature);
    explicit_bzero(key, sizeof(key));
}

static bool derive(const char *password, const struct challenge *challenge,
                   uint8_t salted[SHA256_BYTES])
{
    uint8_t salt[SALT_BYTES_MAX];
    int salt_bytes = decode_base64(challenge->salt, salt, sizeof(salt));
    return salt_bytes > 0 &&
           PKCS5_PBKDF2_HMAC(password, (int)strlen(password), salt, salt_bytes,
                             (int)challenge->iterations, EVP_sha256(), SHA256_BYTES, salted) == 1;
}

int client_scram_answer(struct client_scram *scram, const char *password, struct slice text,
                        struct buffer *out, struct moonmq_error *error)
{
    struct challenge challenge;
    struct buffer *message = &scram->auth_message;
    uint8_t salted[SHA256_BYTES], proof[SHA256_BYTES];
    char proof_text[BASE64_KEY_BYTES + 1];
    if (buffer_failed(message)) return client_fail(error, MOONMQ_NO_MEMORY, "no memory");
    if (!read_challenge(scram, text, &challenge) || !derive(password, &challenge, salted)) {
        return client_fail(error, MOONMQ_PROTOCOL_ERROR, "the broker's challenge makes no sense");
    }
    size_t final_at = out->bytes;
    put_text(out, "c=" GS2_BASE64 ",r=");
    buffer_put(out, challenge.nonce.data, challenge.nonce.bytes);
    put_text(message, ",");
    buffer_put(message, text.data, text.bytes);
    put_text(message, ",");
    if (!buffer_failed(out)) buffer_put(message, out->data + final_at, out->bytes - final_at);
    if (buffer_failed(message) || buffer_failed(out)) {
        return client_fail(error, MOONMQ_NO_MEMORY, "no memory");
    }
    sign(scram, salted, proof);
    explicit_bzero(salted, sizeof(salted));
    EVP_EncodeBlock((unsigned char *)proof_text, proof, SHA256_BYTES);
    put_text(out, ",p=");
    put_text(out, proof_text);
    return MOONMQ_OK;
}

int client_scram_check(const struct client_scram *scram, struct slice final,
                       struct moonmq_error *error)
{
    struct slice text;
    uint8_t signature[BASE64_KEY_BYTES / 4 * 3];
    bool good = take_attribute(&final, 'v', &text) &&
                decode_base64(text, signature, sizeof(signature)) == SHA256_BYTES &&
                constant_time_equal(scram->server_signature, SHA256_BYTES, signature, SHA256_BYTES);
    if (good) return MOONMQ_OK;
    return client_fail(error, MOONMQ_AUTH_FAILED,
                       "the broker does not know the password: it may be somebody else");
}
