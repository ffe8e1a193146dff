/* scram.c: see scram.h. */
#include "native/scram.h"

#include <string.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/assert.h"
#include "base/constant_time.h"

/* Base64 of a key, and of the largest salt (password.h), with the NUL OpenSSL adds. */
#define BASE64_BYTES(bytes) (((bytes) + 2) / 3 * 4 + 1)
#define SALT_BYTES_MAX      64

/* ---- keys ---- */

static void hmac(const uint8_t key[SHA256_BYTES], struct slice data, uint8_t out[SHA256_BYTES])
{
    unsigned bytes = SHA256_BYTES;
    const void *done = HMAC(EVP_sha256(), key, SHA256_BYTES, data.data, data.bytes, out, &bytes);
    ASSERT(done != NULL);
}

static struct slice text_of(const char *text)
{
    return (struct slice){(const uint8_t *)text, strlen(text)};
}

void scram_derive(const uint8_t salted[SHA256_BYTES], uint8_t stored_key[SHA256_BYTES],
                  uint8_t server_key[SHA256_BYTES])
{
    uint8_t client_key[SHA256_BYTES];
    hmac(salted, text_of("Client Key"), client_key);
    sha256(client_key, sizeof(client_key), stored_key);
    hmac(salted, text_of("Server Key"), server_key);
    explicit_bzero(client_key, sizeof(client_key));
}

static void put_base64(struct buffer *out, const uint8_t *data, size_t bytes)
{
    char text[BASE64_BYTES(SALT_BYTES_MAX)];
    ASSERT(bytes <= SALT_BYTES_MAX);
    int count = EVP_EncodeBlock((unsigned char *)text, data, (int)bytes);
    buffer_put(out, text, (size_t)count);
}

/* Exactly the one way to write these 32 bytes. */
static bool decode_key(struct slice text, uint8_t key[SHA256_BYTES])
{
    uint8_t decoded[SHA256_BYTES + 3];
    char again[BASE64_BYTES(SHA256_BYTES)];
    if (text.bytes != sizeof(again) - 1) return false;
    if (EVP_DecodeBlock(decoded, text.data, (int)text.bytes) < SHA256_BYTES) return false;
    memcpy(key, decoded, SHA256_BYTES);
    EVP_EncodeBlock((unsigned char *)again, key, SHA256_BYTES);
    return memcmp(again, text.data, text.bytes) == 0;
}

/* ---- messages ---- */

void scram_init(struct scram *scram)
{
    *scram = (struct scram){.binding = 'n'};
    buffer_init(&scram->first, 0);
    buffer_init(&scram->nonce, 0);
}

void scram_deinit(struct scram *scram)
{
    buffer_deinit(&scram->first);
    buffer_deinit(&scram->nonce);
}

static enum status malformed(struct error *error, const char *what)
{
    return error_set(error, STATUS_INVALID, "SCRAM: %s", what);
}

/* The attribute `name` at the front of *rest, up to a comma or the end; moves behind both. */
static bool take_attribute(struct slice *rest, char name, struct slice *value)
{
    if (rest->bytes < 2 || rest->data[0] != (uint8_t)name || rest->data[1] != '=') return false;
    const uint8_t *start = rest->data + 2;
    const uint8_t *comma = memchr(start, ',', rest->bytes - 2);
    size_t bytes = comma == NULL ? rest->bytes - 2 : (size_t)(comma - start);
    *value = (struct slice){start, bytes};
    size_t taken = 2 + bytes + (comma == NULL ? 0 : 1);
    *rest = (struct slice){rest->data + taken, rest->bytes - taken};
    return true;
}

/* "=2C" is a comma, "=3D" an equals sign, and nothing else begins with "=". */
static bool take_user(struct scram *scram, struct slice escaped)
{
    size_t count = 0;
    for (size_t at = 0; at < escaped.bytes; at++) {
        uint8_t byte = escaped.data[at];
        if (count == WIRE_NAME_BYTES_MAX || byte == 0) return false;
        if (byte == '=') {
            if (escaped.bytes - at < 3) return false;
            bool comma = memcmp(escaped.data + at, "=2C", 3) == 0;
            if (!comma && memcmp(escaped.data + at, "=3D", 3) != 0) return false;
            byte = comma ? ',' : '=';
            at += 2;
        }
        scram->user[count++] = (char)byte;
    }
    scram->user[count] = '\0';
    scram->user_bytes = count;
    return count > 0;
}

static bool is_nonce(struct slice nonce)
{
    for (size_t i = 0; i < nonce.bytes; i++)
        if (nonce.data[i] < 0x21 || nonce.data[i] > 0x7e || nonce.data[i] == ',') return false;
    return nonce.bytes > 0;
}

enum status scram_begin(struct scram *scram, struct slice client_first, struct error *error)
{
    struct slice rest = client_first, user, nonce;
    if (rest.bytes >= 2 && memcmp(rest.data, "p=", 2) == 0) {
        return malformed(error, "there is no channel to bind to");
    }
    bool known = rest.bytes >= 3 && (rest.data[0] == 'n' || rest.data[0] == 'y') &&
                 rest.data[1] == ',' && rest.data[2] == ',';
    if (!known) return malformed(error, "a first message begins with n,, or y,,");
    scram->binding = (char)rest.data[0];
    rest = (struct slice){rest.data + 3, rest.bytes - 3};
    buffer_put(&scram->first, rest.data, rest.bytes);
    if (!take_attribute(&rest, 'n', &user) || !take_user(scram, user)) {
        return malformed(error, "no user name");
    }
    if (!take_attribute(&rest, 'r', &nonce) || !is_nonce(nonce)) {
        return malformed(error, "no nonce");
    }
    buffer_put(&scram->nonce, nonce.data, nonce.bytes);
    return STATUS_OK;
}

void scram_challenge(struct scram *scram, const struct scram_secret *secret,
                     const uint8_t server_nonce[SCRAM_NONCE_BYTES], struct buffer *out)
{
    size_t at = out->bytes;
    put_base64(&scram->nonce, server_nonce, SCRAM_NONCE_BYTES);
    buffer_put(out, "r=", 2);
    buffer_put(out, scram->nonce.data, scram->nonce.bytes);
    buffer_put(out, ",s=", 3);
    put_base64(out, secret->salt, secret->salt_bytes);
    buffer_printf(out, ",i=%u", secret->iterations);
    if (buffer_failed(out)) return;
    buffer_put(&scram->first, ",", 1);
    buffer_put(&scram->first, out->data + at, out->bytes - at);
}

static bool slice_is(struct slice slice, const void *data, size_t bytes)
{
    return slice.bytes == bytes && memcmp(slice.data, data, bytes) == 0;
}

/* ClientKey = proof XOR HMAC(StoredKey, AuthMessage); its hash has to be StoredKey. */
static bool check_proof(const struct scram_secret *secret, struct slice auth_message,
                        const uint8_t proof[SHA256_BYTES])
{
    uint8_t key[SHA256_BYTES], hashed[SHA256_BYTES];
    hmac(secret->stored_key, auth_message, key);
    for (size_t i = 0; i < SHA256_BYTES; i++)
        key[i] ^= proof[i];
    sha256(key, sizeof(key), hashed);
    explicit_bzero(key, sizeof(key));
    return constant_time_equal(secret->stored_key, SHA256_BYTES, hashed, SHA256_BYTES);
}

static void put_server_final(const struct scram_secret *secret, struct slice auth_message,
                             struct buffer *out)
{
    uint8_t signature[SHA256_BYTES];
    hmac(secret->server_key, auth_message, signature);
    buffer_put(out, "v=", 2);
    put_base64(out, signature, sizeof(signature));
}

enum status scram_finish(const struct scram *scram, const struct scram_secret *secret,
                         struct slice client_final, struct buffer *out, struct error *error)
{
    struct slice rest = client_final, binding, nonce, proof_text = {NULL, 0};
    uint8_t proof[SHA256_BYTES];
    if (!take_attribute(&rest, 'c', &binding) || !take_attribute(&rest, 'r', &nonce)) {
        return malformed(error, "a final message is c=…,r=…,p=…");
    }
    const uint8_t *end = NULL;
    /* Extensions, which nobody knows, may stand before the proof; nothing stands behind it. */
    while (rest.bytes > 0) {
        end = rest.data;
        if (take_attribute(&rest, 'p', &proof_text)) break;
        const uint8_t *comma = memchr(rest.data, ',', rest.bytes);
        if (comma == NULL) break;
        rest = (struct slice){comma + 1, rest.bytes - (size_t)(comma + 1 - rest.data)};
    }
    if (rest.bytes > 0 || !decode_key(proof_text, proof)) return malformed(error, "no proof");
    const char *header = scram->binding == 'y' ? "eSws" : "biws"; /* base64 of y,, and n,, */
    if (!slice_is(binding, header, 4) || !slice_is(nonce, scram->nonce.data, scram->nonce.bytes)) {
        return error_set(error, STATUS_DENIED, "SCRAM: another nonce or channel");
    }
    struct buffer auth;
    buffer_init(&auth, 0);
    buffer_put(&auth, scram->first.data, scram->first.bytes);
    buffer_put(&auth, ",", 1);
    buffer_put(&auth, client_final.data, (size_t)(end - client_final.data) - 1);
    enum status status = STATUS_DENIED;
    if (!buffer_failed(&auth) && check_proof(secret, buffer_slice(&auth), proof)) {
        put_server_final(secret, buffer_slice(&auth), out);
        status = STATUS_OK;
    }
    buffer_deinit(&auth);
    if (status == STATUS_OK) return STATUS_OK;
    return error_set(error, status, "wrong user or password");
}
