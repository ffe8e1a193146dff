/* uuid.h: 16 random bytes: topic uids, group ids, incarnations. As text 22 characters of unpadded
 * base64url; all zero = none / not known yet.                                                */
#ifndef MOONMQ_BASE_UUID_H
#define MOONMQ_BASE_UUID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/random.h"

#define UUID_BYTES      16
#define UUID_TEXT_BYTES 23 /* with NUL */

struct uuid {
    uint8_t bytes[UUID_BYTES];
};

/* Never none, never Kafka's reserved 0 and 1, and its text never begins with '-'. */
struct uuid uuid_random(struct random *random);
bool uuid_is_none(const struct uuid *uuid);
bool uuid_equal(const struct uuid *a, const struct uuid *b);
int uuid_compare(const struct uuid *a, const struct uuid *b);
const char *uuid_format(const struct uuid *uuid, char text[UUID_TEXT_BYTES]);
bool uuid_parse(const char *text, struct uuid *uuid);

/* Unpadded base64url. encode: `out` holds (bytes * 4 + 2) / 3 + 1. decode: returns -1 if malformed.
 */
void base64url_encode(const void *data, size_t bytes, char *out);
long base64url_decode(const char *text, size_t text_bytes, uint8_t *out, size_t out_bytes_max);

#endif
