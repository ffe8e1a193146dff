/* consumer_protocol.c: see consumer_protocol.h. */
#include "broker/consumer_protocol.h"

#include <string.h>

#include "base/reader.h"

bool consumer_subscription_names(struct slice subscription, struct slice topic)
{
    struct reader reader;
    reader_init(&reader, subscription.data, subscription.bytes);
    if (reader_i16(&reader) < 0) return false;
    int32_t count = reader_i32(&reader);
    for (int32_t i = 0; i < count && !reader_failed(&reader); i++) {
        int16_t bytes = reader_i16(&reader);
        struct slice name = reader_bytes(&reader, bytes < 0 ? 0 : (size_t)bytes);
        if (reader_failed(&reader)) return false;
        if (name.bytes == topic.bytes &&
            (name.bytes == 0 || memcmp(name.data, topic.data, name.bytes) == 0)) {
            return true;
        }
    }
    return false;
}
