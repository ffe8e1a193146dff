/* consumer_group_records.c: see consumer_group_records.h. */
#include "broker/consumer_group_records.h"

#include "base/assert.h"

#define GROUP_KEY_VERSION       2
#define GROUP_VALUE_VERSION     3
#define GROUP_VALUE_VERSION_MAX 4
#define VERSION_REBALANCE       1 /* since which version a value has it */
#define VERSION_TIMESTAMP       2
#define VERSION_INSTANCE        3
#define VERSION_FLEXIBLE        4
/* Three strings, two lengths, a time-out in version 0; in version 4 five lengths, two time-outs, a
 * null and an empty tag buffer. */
#define MEMBER_BYTES_MIN 15

/* ---- writing ---- */

static void put_string(struct buffer *out, struct slice text)
{
    if (text.data == NULL) {
        buffer_put_i16(out, -1);
        return;
    }
    ASSERT(text.bytes <= INT16_MAX);
    buffer_put_i16(out, (int16_t)text.bytes);
    buffer_put(out, text.data, text.bytes);
}

static void put_bytes(struct buffer *out, struct slice bytes)
{
    buffer_put_i32(out, (int32_t)bytes.bytes);
    buffer_put(out, bytes.data, bytes.bytes);
}

/* What is null only for want of a pointer. */
static struct slice not_null(struct slice text)
{
    return text.data != NULL ? text : (struct slice){(const uint8_t *)"", 0};
}

void group_key_encode(struct buffer *out, struct slice group)
{
    buffer_put_i16(out, GROUP_KEY_VERSION);
    put_string(out, not_null(group));
}

void group_record_encode(struct buffer *out, const struct group_record *record)
{
    buffer_put_i16(out, GROUP_VALUE_VERSION);
    put_string(out, not_null(record->protocol_type));
    buffer_put_i32(out, record->generation);
    put_string(out, record->protocol);
    put_string(out, record->leader);
    buffer_put_i64(out, record->state_timestamp_ms);
    buffer_put_i32(out, (int32_t)record->member_count);
}

void group_record_encode_member(struct buffer *out, const struct group_record_member *member)
{
    put_string(out, not_null(member->id));
    put_string(out, member->instance_id);
    put_string(out, not_null(member->client_id));
    put_string(out, not_null(member->client_host));
    buffer_put_i32(out, member->rebalance_timeout_ms);
    buffer_put_i32(out, member->session_timeout_ms);
    put_bytes(out, member->subscription);
    put_bytes(out, member->assignment);
}

/* ---- reading ---- */

/* In flexible versions lengths are length + 1 as unsigned varint, 0 = null. -1: null. */
static int64_t read_length(struct reader *reader, int16_t version, bool wide)
{
    if (version >= VERSION_FLEXIBLE) return (int64_t)reader_uvarint32(reader) - 1;
    return wide ? reader_i32(reader) : reader_i16(reader);
}

static struct slice read_nullable(struct reader *reader, int16_t version)
{
    int64_t bytes = read_length(reader, version, false);
    if (bytes == -1) return (struct slice){0};
    if (bytes < 0) {
        reader_fail(reader);
        return (struct slice){0};
    }
    return reader_bytes(reader, (size_t)bytes);
}

static struct slice read_filled(struct reader *reader, int16_t version, bool wide)
{
    int64_t bytes = read_length(reader, version, wide);
    if (bytes < 0) {
        reader_fail(reader);
        return (struct slice){0};
    }
    return reader_bytes(reader, (size_t)bytes);
}

static void skip_tags(struct reader *reader, int16_t version)
{
    if (version < VERSION_FLEXIBLE) return;
    for (uint32_t count = reader_uvarint32(reader); count > 0 && !reader_failed(reader); count--) {
        (void)reader_uvarint32(reader);
        reader_skip(reader, reader_uvarint32(reader));
    }
}

static void read_member(struct reader *reader, int16_t version, struct group_record_member *out)
{
    *out = (struct group_record_member){0};
    out->id = read_filled(reader, version, false);
    if (version >= VERSION_INSTANCE) out->instance_id = read_nullable(reader, version);
    out->client_id = read_filled(reader, version, false);
    out->client_host = read_filled(reader, version, false);
    if (version >= VERSION_REBALANCE) out->rebalance_timeout_ms = reader_i32(reader);
    out->session_timeout_ms = reader_i32(reader);
    if (version < VERSION_REBALANCE) out->rebalance_timeout_ms = out->session_timeout_ms;
    out->subscription = read_filled(reader, version, true);
    out->assignment = read_filled(reader, version, true);
    skip_tags(reader, version);
}

enum status group_key_decode(struct slice bytes, struct slice *group)
{
    struct reader reader;
    reader_init(&reader, bytes.data, bytes.bytes);
    int16_t version = reader_i16(&reader);
    if (reader_failed(&reader) || version < 0) return STATUS_CORRUPT;
    if (version != GROUP_KEY_VERSION) return STATUS_NOT_FOUND;
    *group = read_filled(&reader, version, false);
    return reader_failed(&reader) ? STATUS_CORRUPT : STATUS_OK;
}

static void check_members(struct reader reader, struct group_record *record)
{
    for (uint32_t i = 0; i < record->member_count && !reader_failed(&reader); i++) {
        struct group_record_member member;
        read_member(&reader, record->version, &member);
    }
    if (reader_failed(&reader)) reader_fail(&record->members);
}

enum status group_record_decode(struct slice bytes, struct group_record *out)
{
    struct reader reader;
    *out = (struct group_record){.state_timestamp_ms = -1};
    reader_init(&reader, bytes.data, bytes.bytes);
    int16_t version = out->version = reader_i16(&reader);
    if (reader_failed(&reader) || version < 0) return STATUS_CORRUPT;
    if (version > GROUP_VALUE_VERSION_MAX) return STATUS_UNSUPPORTED;
    out->protocol_type = read_filled(&reader, version, false);
    out->generation = reader_i32(&reader);
    out->protocol = read_nullable(&reader, version);
    out->leader = read_nullable(&reader, version);
    if (version >= VERSION_TIMESTAMP) out->state_timestamp_ms = reader_i64(&reader);
    int64_t count = read_length(&reader, version, true);
    if (reader_failed(&reader) || count < 0 ||
        count > (int64_t)(reader_left(&reader) / MEMBER_BYTES_MIN)) {
        return STATUS_CORRUPT;
    }
    out->member_count = (uint32_t)count;
    out->members = reader;
    check_members(reader, out);
    return reader_failed(&out->members) ? STATUS_CORRUPT : STATUS_OK;
}

void group_record_next(struct group_record *record, struct group_record_member *out)
{
    read_member(&record->members, record->version, out);
    ASSERT(!reader_failed(&record->members));
}
