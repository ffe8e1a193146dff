/* offsets_records.c: see offsets_records.h. */
#include "broker/offsets_records.h"

#include "base/reader.h"

#define OFFSET_KEY_VERSION   1
#define OFFSET_VALUE_VERSION 3

static void put_string(struct buffer *out, struct slice text)
{
    buffer_put_i16(out, (int16_t)text.bytes);
    buffer_put(out, text.data, text.bytes);
}

static struct slice read_string(struct reader *reader)
{
    int16_t bytes = reader_i16(reader);
    if (bytes < 0) {
        reader_fail(reader);
        return (struct slice){0};
    }
    return reader_bytes(reader, (size_t)bytes);
}

/* Flexible versions: length + 1 as unsigned varint. */
static struct slice read_compact_string(struct reader *reader)
{
    uint32_t bytes = reader_uvarint32(reader);
    if (bytes == 0) {
        reader_fail(reader);
        return (struct slice){0};
    }
    return reader_bytes(reader, bytes - 1);
}

void offset_key_encode(struct buffer *out, const struct offset_key *key)
{
    buffer_put_i16(out, OFFSET_KEY_VERSION);
    put_string(out, key->group);
    put_string(out, key->topic);
    buffer_put_i32(out, key->partition);
}

void offset_value_encode(struct buffer *out, const struct offset_value *value)
{
    buffer_put_i16(out, OFFSET_VALUE_VERSION);
    buffer_put_i64(out, value->offset);
    buffer_put_i32(out, value->leader_epoch);
    put_string(out, value->metadata);
    buffer_put_i64(out, value->commit_timestamp_ms);
}

enum status offset_key_decode(struct slice bytes, struct offset_key *out)
{
    struct reader reader;
    reader_init(&reader, bytes.data, bytes.bytes);
    int16_t version = reader_i16(&reader);
    if (reader_failed(&reader) || version < 0) return STATUS_CORRUPT;
    if (version > OFFSET_KEY_VERSION) return STATUS_NOT_FOUND;
    out->group = read_string(&reader);
    out->topic = read_string(&reader);
    out->partition = reader_i32(&reader);
    return reader_failed(&reader) ? STATUS_CORRUPT : STATUS_OK;
}

enum status offset_value_decode(struct slice bytes, struct offset_value *out)
{
    struct reader reader;
    reader_init(&reader, bytes.data, bytes.bytes);
    int16_t version = reader_i16(&reader);
    if (reader_failed(&reader) || version < 0) return STATUS_CORRUPT;
    if (version > 4) return STATUS_UNSUPPORTED;
    out->offset = reader_i64(&reader);
    out->leader_epoch = version >= 3 ? reader_i32(&reader) : -1;
    out->metadata = version >= 4 ? read_compact_string(&reader) : read_string(&reader);
    out->commit_timestamp_ms = reader_i64(&reader);
    /* Version 1 ends with an expiry, version 4 with tagged fields: nothing here needs them. */
    return reader_failed(&reader) ? STATUS_CORRUPT : STATUS_OK;
}
