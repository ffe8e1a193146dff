/* password.c: see password.h. */
#include "native/password.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/constant_time.h"
#include "base/hex.h"
#include "base/sha256.h"

/* ---- reading stored hashes ---- */

/* The field up to the next '$' or the end; advances *at behind it. False: there is none. */
static bool next_field(const char **at, const char **field, size_t *bytes)
{
    if (*at == NULL) return false;
    *field = *at;
    *bytes = strcspn(*at, "$");
    *at = (*at)[*bytes] == '$' ? *at + *bytes + 1 : NULL;
    return *bytes > 0;
}

static bool next_hex(const char **at, uint8_t *out, size_t bytes_max, size_t *bytes)
{
    const char *field;
    size_t digits;
    if (!next_field(at, &field, &digits) || digits % 2 != 0 || digits / 2 > bytes_max) {
        return false;
    }
    *bytes = digits / 2;
    return hex_decode(field, digits, out, *bytes);
}

static bool next_iterations(const char **at, uint32_t *iterations)
{
    const char *field;
    size_t digits;
    if (!next_field(at, &field, &digits) || digits > 8) return false;
    if (strspn(field, "0123456789") != digits) return false;
    *iterations = (uint32_t)strtoul(field, NULL, 10);
    return *iterations >= 1 && *iterations <= PASSWORD_ITERATIONS_MAX;
}

static bool next_word(const char **at, const char *word)
{
    const char *field;
    size_t bytes;
    return next_field(at, &field, &bytes) && bytes == strlen(word) &&
           memcmp(field, word, bytes) == 0;
}

static bool parse_pbkdf2(struct native_login *login, const char *hash)
{
    login->kind = PASSWORD_PBKDF2;
    return next_word(&hash, "pbkdf2-sha256") && next_iterations(&hash, &login->iterations) &&
           next_hex(&hash, login->salt, sizeof(login->salt), &login->salt_bytes) &&
           next_hex(&hash, login->key, sizeof(login->key), &login->key_bytes) && hash == NULL;
}

/* The server key proves the broker to the client and is of no use here; its shape is checked. */
static bool parse_scram(struct native_login *login, const char *hash)
{
    uint8_t server_key[SHA256_BYTES];
    size_t server_key_bytes;
    login->kind = PASSWORD_SCRAM;
    return next_word(&hash, "scram-sha-256") && next_iterations(&hash, &login->iterations) &&
           next_hex(&hash, login->salt, sizeof(login->salt), &login->salt_bytes) &&
           next_hex(&hash, login->key, SHA256_BYTES, &login->key_bytes) &&
           login->key_bytes == SHA256_BYTES &&
           next_hex(&hash, server_key, sizeof(server_key), &server_key_bytes) &&
           server_key_bytes == SHA256_BYTES && hash == NULL;
}

enum status native_login_init(struct native_login *login, const struct native_user *user,
                              struct error *error)
{
    *login = (struct native_login){0};
    if (user->name == NULL || user->name[0] == '\0') {
        return error_set(error, STATUS_INVALID, "a user without a name");
    }
    if ((user->password == NULL) == (user->password_hash == NULL)) {
        return error_set(error, STATUS_INVALID, "user %s: give either Password or PasswordHash",
                         user->name);
    }
    if (user->password_hash != NULL && !parse_pbkdf2(login, user->password_hash) &&
        !parse_scram(login, user->password_hash)) {
        return error_set(error, STATUS_INVALID,
                         "user %s: PasswordHash is neither pbkdf2-sha256$… nor scram-sha-256$… "
                         "(`moonmq hash` makes one)",
                         user->name);
    }
    login->user = strdup(user->name);
    if (user->password != NULL) {
        login->kind = PASSWORD_PLAIN;
        login->plain = strdup(user->password);
    }
    if (login->user != NULL && (user->password == NULL || login->plain != NULL)) return STATUS_OK;
    native_login_deinit(login);
    return error_set(error, STATUS_NO_MEMORY, "no memory for a user");
}

void native_login_deinit(struct native_login *login)
{
    if (login->plain != NULL) explicit_bzero(login->plain, strlen(login->plain));
    free(login->plain);
    free(login->user);
    explicit_bzero(login, sizeof(*login));
}

/* ---- checking ---- */

bool native_login_is_slow(const struct native_login *login)
{
    return login->kind != PASSWORD_PLAIN;
}

static bool derive(const struct native_login *login, struct slice password, uint8_t *key,
                   size_t key_bytes)
{
    return PKCS5_PBKDF2_HMAC((const char *)password.data, (int)password.bytes, login->salt,
                             (int)login->salt_bytes, (int)login->iterations, EVP_sha256(),
                             (int)key_bytes, key) == 1;
}

/* RFC 5802: StoredKey = H(HMAC(SaltedPassword, "Client Key")). */
static bool check_scram(const struct native_login *login, struct slice password)
{
    static const char client_key_name[] = "Client Key";
    uint8_t salted[SHA256_BYTES], client_key[SHA256_BYTES], stored_key[SHA256_BYTES];
    unsigned client_key_bytes = sizeof(client_key);
    if (!derive(login, password, salted, sizeof(salted))) return false;
    if (HMAC(EVP_sha256(), salted, sizeof(salted), (const uint8_t *)client_key_name,
             sizeof(client_key_name) - 1, client_key, &client_key_bytes) == NULL) {
        return false;
    }
    sha256(client_key, sizeof(client_key), stored_key);
    bool matches = constant_time_equal(login->key, login->key_bytes, stored_key, SHA256_BYTES);
    explicit_bzero(salted, sizeof(salted));
    explicit_bzero(client_key, sizeof(client_key));
    return matches;
}

bool native_login_check(const struct native_login *login, struct slice password)
{
    if (login->kind == PASSWORD_SCRAM) return check_scram(login, password);
    if (login->kind == PASSWORD_PLAIN) {
        return constant_time_equal(login->plain, strlen(login->plain), password.data,
                                   password.bytes);
    }
    uint8_t key[PASSWORD_KEY_BYTES_MAX];
    bool matches = derive(login, password, key, login->key_bytes) &&
                   constant_time_equal(login->key, login->key_bytes, key, login->key_bytes);
    explicit_bzero(key, sizeof(key));
    return matches;
}
