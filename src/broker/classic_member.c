/* classic_member.c: see classic_member.h. */
#include "broker/classic_member.h"

#include "base/slice.h"

/* A structure that may be missing begins with a byte that says which. */
#define IS_THERE   1
#define IS_MISSING (-1)

/* ---- reading ---- */

/* Compact: length + 1. */
static struct slice read_compact(struct reader *reader)
{
    uint32_t bytes = reader_uvarint32(reader);
    if (bytes == 0) {
        reader_fail(reader);
        return (struct slice){0};
    }
    return reader_bytes(reader, bytes - 1);
}

static void skip_tags(struct reader *reader)
{
    for (uint32_t count = reader_uvarint32(reader); count > 0 && !reader_failed(reader); count--) {
        (void)reader_uvarint32(reader);
        reader_skip(reader, reader_uvarint32(reader));
    }
}

static struct consumer_protocol read_protocol(struct reader *reader)
{
    struct consumer_protocol protocol = {.name = read_compact(reader)};
    protocol.metadata = read_compact(reader);
    skip_tags(reader);
    return protocol;
}

bool classic_member_is_null(struct slice field)
{
    return field.bytes == 1 && (int8_t)field.data[0] == IS_MISSING;
}

bool classic_member_read(struct slice field, struct classic_member *out)
{
    struct reader reader;
    reader_init(&reader, field.data, field.bytes);
    if (reader_i8(&reader) != IS_THERE) return false;
    out->session_timeout_ms = reader_i32(&reader);
    uint32_t count = reader_uvarint32(&reader);
    if (reader_failed(&reader) || count < 2 || count - 1 > CONSUMER_GROUP_PROTOCOLS_MAX)
        return false;
    out->protocol_count = count - 1;
    out->protocols = reader;
    for (uint32_t i = 0; i < out->protocol_count && !reader_failed(&reader); i++)
        (void)read_protocol(&reader);
    skip_tags(&reader);
    return !reader_failed(&reader);
}

struct consumer_protocol classic_member_next(struct classic_member *member)
{
    return read_protocol(&member->protocols);
}

struct slice classic_member_metadata(struct slice field, struct slice name)
{
    struct classic_member member;
    if (!classic_member_read(field, &member)) return (struct slice){0};
    for (uint32_t i = 0; i < member.protocol_count; i++) {
        struct consumer_protocol protocol = classic_member_next(&member);
        if (slice_compare(protocol.name, name) == 0) return protocol.metadata;
    }
    return (struct slice){0};
}

/* ---- writing ---- */

static void put_compact(struct buffer *out, struct slice bytes)
{
    buffer_put_uvarint(out, bytes.bytes + 1);
    buffer_put(out, bytes.data, bytes.bytes);
}

static bool is_repeated(const struct consumer_protocol *protocols, uint32_t index)
{
    for (uint32_t i = 0; i < index; i++)
        if (slice_compare(protocols[i].name, protocols[index].name) == 0) return true;
    return false;
}

void classic_member_put(struct buffer *out, int32_t session_timeout_ms,
                        const struct consumer_protocol *protocols, uint32_t protocol_count)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < protocol_count; i++)
        if (!is_repeated(protocols, i)) count++;
    buffer_put_i8(out, IS_THERE);
    buffer_put_i32(out, session_timeout_ms);
    buffer_put_uvarint(out, count + 1);
    for (uint32_t i = 0; i < protocol_count; i++) {
        if (is_repeated(protocols, i)) continue;
        put_compact(out, protocols[i].name);
        put_compact(out, protocols[i].metadata);
        buffer_put_uvarint(out, 0); /* no tags */
    }
    buffer_put_uvarint(out, 0);
}
