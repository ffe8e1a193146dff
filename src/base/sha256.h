/* sha256.h: SHA-256 over bytes at hand (OpenSSL): member hashes, segment digests. */
#ifndef MOONMQ_BASE_SHA256_H
#define MOONMQ_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define SHA256_BYTES 32

void sha256(const void *data, size_t bytes, uint8_t digest[SHA256_BYTES]);

/* In pieces. A state is finished exactly once, which also frees it. */
struct sha256_state;
struct sha256_state *sha256_new(void);
void sha256_add(struct sha256_state *state, const void *data, size_t bytes);
void sha256_finish(struct sha256_state *state, uint8_t digest[SHA256_BYTES]);

/* For many short inputs: the digest of `data` by a state that is as new before and after. */
void sha256_reuse(struct sha256_state *state, const void *data, size_t bytes,
                  uint8_t digest[SHA256_BYTES]);
void sha256_free(struct sha256_state *state); /* one that is not finished; NULL is allowed */

#endif
