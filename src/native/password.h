/* password.h: stored passwords and the check of a given one (native-protocol.md 6.3).
 *
 * A stored hash takes its time to check, on purpose: native_login_check() runs on a worker. The
 * checks are pure functions of their arguments.                                                 */
#ifndef MOONMQ_NATIVE_PASSWORD_H
#define MOONMQ_NATIVE_PASSWORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/status.h"
#include "native/native.h"
#include "native/scram.h"

#define PASSWORD_KEY_BYTES_MAX  64
#define PASSWORD_SALT_BYTES_MAX 64
/* A larger count in the configuration would take minutes a login. */
#define PASSWORD_ITERATIONS_MAX 10000000u

enum password_kind { PASSWORD_PLAIN, PASSWORD_PBKDF2, PASSWORD_SCRAM };

struct native_login {
    char *user;
    enum password_kind kind;
    char *plain; /* PLAIN */
    uint32_t iterations;
    uint8_t salt[PASSWORD_SALT_BYTES_MAX];
    size_t salt_bytes;
    /* PBKDF2: the derived key. SCRAM: the stored key. */
    uint8_t key[PASSWORD_KEY_BYTES_MAX];
    size_t key_bytes;
    /* What SCRAM asks for, whatever is stored; false: the derived key is too short for it. */
    bool has_scram;
    uint8_t stored_key[SHA256_BYTES], server_key[SHA256_BYTES];
};

/* STATUS_INVALID: no name, none or both of password and hash, or a hash that cannot be read. */
STATUS_MUST_CHECK
enum status native_login_init(struct native_login *login, const struct native_user *user,
                              struct error *error);
void native_login_deinit(struct native_login *login);
/* A plain password has no salt of its own: it gets this one. Takes a few ms. */
#define PASSWORD_SALT_BYTES 16
void native_login_salt(struct native_login *login, const uint8_t salt[PASSWORD_SALT_BYTES]);
/* False: this user cannot log in by SCRAM. Borrows the salt from `login`. */
bool native_login_secret(const struct native_login *login, struct scram_secret *out);
/* Does it take long enough to need a worker? */
bool native_login_is_slow(const struct native_login *login);
bool native_login_check(const struct native_login *login, struct slice password);

#endif
