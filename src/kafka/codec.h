/* codec.h: Kafka messages, read and written by one interpreter from generated descriptions.
 *
 * What a message looks like in each version is said once, in src/kafka/messages/<key>_<name>.txt;
 * tools/kafka_messages.py makes the C structs and the tables below of it ("kafka/messages.h").
 * No function here knows any message.
 *
 * Decoding borrows strings, bytes and records from the request and takes structs and arrays from
 * an arena; a count is believed only if the bytes left could hold that many elements. A field that
 * a version does not have reads as its default. Encoding leaves out what the version does not have.
 *
 * On the wire (kafka-listener.md section 2): big-endian integers; in flexible versions compact
 * lengths (uvarint, length + 1, 0 = null) and a tag buffer at the end of every struct.
 * Strings and bytes: data NULL is null, so an empty one needs a pointer. Arrays: count -1 is null.
 * Thread: any; no state.                                                                      */
#ifndef MOONMQ_KAFKA_CODEC_H
#define MOONMQ_KAFKA_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/buffer.h"
#include "base/reader.h"
#include "base/status.h"
#include "base/uuid.h"
#include "kafka/arena.h"
#include "kafka/response.h"

enum kafka_type {
    KAFKA_BOOL,
    KAFKA_I8,
    KAFKA_I16,
    KAFKA_U16,
    KAFKA_I32,
    KAFKA_I64,
    KAFKA_F64,
    KAFKA_UUID,
    KAFKA_STRING,
    KAFKA_BYTES,
    KAFKA_RECORDS,
    KAFKA_STRUCT,
};

#define KAFKA_VERSION_EVER INT16_MAX /* no last version; or never, where a first one is meant */

/* Batches. Decoded: `data` (NULL = null). Encoded: the pieces if there are any, without a copy,
 * else `data`. */
struct kafka_records {
    struct slice data;
    const struct kafka_piece *pieces;
    size_t piece_count;
};

/* How every array member of a message lies in memory. */
struct kafka_array {
    void *items;
    int32_t count; /* -1: null */
};

struct kafka_field {
    const char *name;
    enum kafka_type type;
    bool array;
    int16_t since, until; /* versions that have it */
    int16_t null_since;   /* first version in which null is legal; KAFKA_VERSION_EVER: none */
    int16_t tag;          /* -1: a plain field */
    size_t offset;        /* in the C struct */
    const struct kafka_struct *type_struct; /* KAFKA_STRUCT only. A nullable one that is no array
                                               is a pointer (NULL = null), others are inline. */
};

struct kafka_struct {
    const char *name;
    const struct kafka_field *fields; /* in wire order; tags ascend */
    const void *defaults;             /* an instance; NULL: all zero */
    size_t bytes;                     /* sizeof */
    size_t field_count;
};

/* One API: its two messages and the versions described (what is offered: kafka/api.c). */
struct kafka_messages {
    int16_t key;
    const char *name;
    int16_t version_min, version_max;
    int16_t flexible_since; /* KAFKA_VERSION_EVER: never */
    const struct kafka_struct *request, *response;
};
extern const struct kafka_messages kafka_messages[];
extern const size_t kafka_messages_count;

/* NULL if `key` is not described. */
const struct kafka_messages *kafka_messages_find(int16_t key);

static inline bool kafka_messages_flexible(const struct kafka_messages *messages, int16_t version)
{
    return version >= messages->flexible_since;
}

/* Bytes in memory of a field that is no array, or of one element of it. */
size_t kafka_element_bytes(const struct kafka_field *field);

/* `count` instances at their defaults; NULL when the arena failed. Each message struct has its own
 * typed form, kafka_<struct>_new(). */
void *kafka_struct_new(const struct kafka_struct *type, struct arena *arena, int32_t count);

/* How much arena decoding a request of `request_bytes` may take. No element is more than sixteen
 * times as large decoded as on the wire, and bytes and records are not copied at all. */
size_t kafka_arena_bytes_max(size_t request_bytes);

/* Decodes one message body in a described version.
 *
 * reader  at the body; left behind it. Bytes after the message are the caller's matter.
 * out     filled whole; refers to the reader's bytes and to the arena.
 *
 * STATUS_INVALID    malformed or cut; the error names the field.
 * STATUS_NO_MEMORY  the arena's bound does not hold it.                                       */
STATUS_MUST_CHECK
enum status kafka_decode(const struct kafka_struct *type, int16_t version, bool flexible,
                         struct reader *reader, struct arena *arena, void *out,
                         struct error *error);

/* Appends one message body. Null where the version does not allow it is written as empty. Failure
 * (bound, memory, a string too long for its version) is kafka_response_failed(). */
void kafka_encode(const struct kafka_struct *type, int16_t version, bool flexible,
                  const void *value, struct kafka_response *out);

/* Text as a string field, borrowed. NULL gives null. */
static inline struct slice kafka_text(const char *text)
{
    return (struct slice){(const uint8_t *)text, text != NULL ? strlen(text) : 0};
}
#define KAFKA_NULL ((struct slice){NULL, 0})

static inline bool kafka_slice_equal(struct slice a, struct slice b)
{
    return a.bytes == b.bytes && (a.bytes == 0 || memcmp(a.data, b.data, a.bytes) == 0);
}

#endif
