/* password.c: see password.h. */
#include "native/password.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "base/constant_time.h"
#include "base/hex.h"
#include "base/sha256.h"

/* Of a password that is given as it is: whoever reads its proof may read it, too. */
#define PLAIN_ITERATIONS 4096

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

static bool parse_scram(struct native_login *login, const char *hash)
{
    size_t server_key_bytes;
    login->kind = PASSWORD_SCRAM;
    return next_word(&hash, "scram-sha-256") && next_iterations(&hash, &login->iterations) &&
           next_hex(&hash, login->salt, sizeof(login->salt), &login->salt_bytes) &&
           next_hex(&hash, login->key, SHA256_BYTES, &login->key_bytes) &&
           login->key_bytes == SHA256_BYTES &&
           next_hex(&hash, login->server_key, SHA256_BYTES, &server_key_bytes) &&
           server_key_bytes == SHA256_BYTES && hash == NULL;
}

static void take_scram(struct native_login *login)
{
    login->has_scram = login->key_bytes >= SHA256_BYTES;
    if (login->kind == PASSWORD_SCRAM) {
        memcpy(login->stored_key, login->key, SHA256_BYTES);
    } else if (login->has_scram) {
        /* A longer key begins with the one of this length. */
        scram_derive(login->key, login->stored_key, login->server_key);
    }
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
    if (user->password_hash != NULL) take_scram(login);
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

static bool check_scram(const struct native_login *login, struct slice password)
{
    uint8_t salted[SHA256_BYTES], stored_key[SHA256_BYTES], server_key[SHA256_BYTES];
    if (!derive(login, password, salted, sizeof(salted))) return false;
    scram_derive(salted, stored_key, server_key);
    explicit_bzero(salted, sizeof(salted));
    return constant_time_equal(login->key, login->key_bytes, stored_key, SHA256_BYTES);
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

/* ---- for SCRAM ---- */

void native_login_salt(struct native_login *login, const uint8_t salt[PASSWORD_SALT_BYTES])
{
    uint8_t salted[SHA256_BYTES];
    if (login->kind != PASSWORD_PLAIN) return;
    memcpy(login->salt, salt, PASSWORD_SALT_BYTES);
    login->salt_bytes = PASSWORD_SALT_BYTES;
    login->iterations = PLAIN_ITERATIONS;
    struct slice password = {(const uint8_t *)login->plain, strlen(login->plain)};
    login->has_scram = derive(login, password, salted, sizeof(salted));
    scram_derive(salted, login->stored_key, login->server_key);
    explicit_bzero(salted, sizeof(salted));
}

bool native_login_secret(const struct native_login *login, struct scram_secret *out)
{
    if (!login->has_scram) return false;
    *out = (struct scram_secret){
        .salt = login->salt, .salt_bytes = login->salt_bytes, .iterations = login->iterations};
    memcpy(out->stored_key, login->stored_key, SHA256_BYTES);
    memcpy(out->server_key, login->server_key, SHA256_BYTES);
    return true;
}
