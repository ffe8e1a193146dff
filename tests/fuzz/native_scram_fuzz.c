/* Any bytes as the two messages of a SCRAM client, the first up to a NUL: nothing is read outside
 * them, and nobody gets in who does not know the key. */
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "native/scram.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const uint8_t *end = bytes == 0 ? NULL : memchr(data, 0, bytes);
    size_t first_bytes = end == NULL ? bytes : (size_t)(end - data);
    struct slice first = {data, first_bytes};
    struct slice final = {end == NULL ? data : end + 1, end == NULL ? 0 : bytes - first_bytes - 1};
    const uint8_t salt[16] = {1}, nonce[SCRAM_NONCE_BYTES] = {2};
    /* No client key hashes to this. */
    const struct scram_secret secret = {.salt = salt, .salt_bytes = sizeof(salt), .iterations = 1};
    struct scram scram;
    struct buffer out;
    struct error error;
    scram_init(&scram);
    buffer_init(&out, 0);
    if (scram_begin(&scram, first, &error) == STATUS_OK) {
        ASSERT(scram.user_bytes > 0 && scram.user_bytes <= WIRE_NAME_BYTES_MAX);
        scram_challenge(&scram, &secret, nonce, &out);
        ASSERT(scram_finish(&scram, &secret, final, &out, &error) != STATUS_OK);
    }
    buffer_deinit(&out);
    scram_deinit(&scram);
    return 0;
}
