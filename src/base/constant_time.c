/* constant_time.c: see constant_time.h. Digests are compared, which have one length whatever the
 * secret's.                                                                                   */
#include "base/constant_time.h"

#include <openssl/crypto.h>

#include "base/sha256.h"

bool constant_time_equal(const void *secret, size_t secret_bytes, const void *given,
                         size_t given_bytes)
{
    uint8_t left[SHA256_BYTES], right[SHA256_BYTES];
    sha256(secret, secret_bytes, left);
    sha256(given, given_bytes, right);
    return CRYPTO_memcmp(left, right, sizeof(left)) == 0;
}
