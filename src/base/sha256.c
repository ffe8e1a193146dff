/* sha256.c: OpenSSL's EVP digest. It fails only without memory or with a broken provider: neither
 * leaves anything to serve with, so both end the process.                                     */
#include "base/sha256.h"

#include <openssl/evp.h>

#include "base/assert.h"

struct sha256_state *sha256_new(void)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    ASSERT(context != NULL);
    int started = EVP_DigestInit_ex(context, EVP_sha256(), NULL);
    ASSERT(started == 1);
    return (struct sha256_state *)context;
}

void sha256_add(struct sha256_state *state, const void *data, size_t bytes)
{
    int added = EVP_DigestUpdate((EVP_MD_CTX *)state, data, bytes);
    ASSERT(added == 1);
}

void sha256_finish(struct sha256_state *state, uint8_t digest[SHA256_BYTES])
{
    int finished = EVP_DigestFinal_ex((EVP_MD_CTX *)state, digest, NULL);
    ASSERT(finished == 1);
    EVP_MD_CTX_free((EVP_MD_CTX *)state);
}

void sha256(const void *data, size_t bytes, uint8_t digest[SHA256_BYTES])
{
    struct sha256_state *state = sha256_new();
    sha256_add(state, data, bytes);
    sha256_finish(state, digest);
}

void sha256_reuse(struct sha256_state *state, const void *data, size_t bytes,
                  uint8_t digest[SHA256_BYTES])
{
    EVP_MD_CTX *context = (EVP_MD_CTX *)state;
    sha256_add(state, data, bytes);
    int finished = EVP_DigestFinal_ex(context, digest, NULL);
    ASSERT(finished == 1);
    int started = EVP_DigestInit_ex(context, NULL, NULL);
    ASSERT(started == 1);
}

void sha256_free(struct sha256_state *state)
{
    EVP_MD_CTX_free((EVP_MD_CTX *)state);
}
