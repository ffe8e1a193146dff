/* uuid.c: see uuid.h. */
#include "base/uuid.h"

#include <string.h>

struct uuid uuid_random(struct random *random)
{
    struct uuid uuid;
    char text[UUID_TEXT_BYTES];
    do {
        random_bytes(random, uuid.bytes, sizeof(uuid.bytes));
        uuid_format(&uuid, text);
        /* Kafka reserves 0 and 1 (a first byte of zero covers both); a leading '-' would read as an
         * option on a command line. */
    } while (uuid.bytes[0] == 0 || text[0] == '-');
    return uuid;
}

bool uuid_is_none(const struct uuid *uuid)
{
    static const struct uuid none;
    return uuid_equal(uuid, &none);
}

bool uuid_equal(const struct uuid *a, const struct uuid *b)
{
    return uuid_compare(a, b) == 0;
}

int uuid_compare(const struct uuid *a, const struct uuid *b)
{
    return memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

const char *uuid_format(const struct uuid *uuid, char text[UUID_TEXT_BYTES])
{
    base64url_encode(uuid->bytes, sizeof(uuid->bytes), text);
    return text;
}

bool uuid_parse(const char *text, struct uuid *uuid)
{
    size_t bytes = strlen(text);
    if (bytes != UUID_TEXT_BYTES - 1) return false;
    struct uuid parsed;
    if (base64url_decode(text, bytes, parsed.bytes, sizeof(parsed.bytes)) != UUID_BYTES) {
        return false;
    }
    *uuid = parsed;
    return true;
}
