/* modern_group_records.c: see modern_group_records.h. */
#include "broker/modern_group_records.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/reader.h"
#include "broker/classic_member.h"

#define VALUE_VERSION 0

void modern_record_deinit(struct modern_record *record)
{
    free(record->settings.names);
    partition_set_deinit(&record->partitions);
    partition_set_deinit(&record->revoking);
    *record = (struct modern_record){0};
}

static bool has_member(enum modern_record_type type)
{
    return type == MODERN_RECORD_MEMBER || type == MODERN_RECORD_MEMBER_TARGET ||
           type == MODERN_RECORD_MEMBER_CURRENT;
}

/* ---- writing ---- */

static void put_key_string(struct buffer *out, struct slice text)
{
    buffer_put_i16(out, (int16_t)text.bytes);
    buffer_put(out, text.data, text.bytes);
}

/* Flexible: length + 1, 0 for none. */
static void put_string(struct buffer *out, struct slice text)
{
    buffer_put_uvarint(out, text.data == NULL ? 0 : text.bytes + 1);
    buffer_put(out, text.data, text.bytes);
}

/* A string that cannot be none. */
static void put_text(struct buffer *out, struct slice text)
{
    buffer_put_uvarint(out, text.bytes + 1);
    buffer_put(out, text.data, text.bytes);
}

static void put_no_tags(struct buffer *out)
{
    buffer_put_uvarint(out, 0);
}

static uint32_t same_topic(const struct partition_set *set, uint32_t from)
{
    uint32_t end = from + 1;
    while (end < set->count && uuid_equal(&set->items[end].topic, &set->items[from].topic))
        end++;
    return end;
}

static void put_partitions(struct buffer *out, const struct partition_set *set)
{
    uint32_t topics = 0;
    for (uint32_t at = 0; at < set->count; at = same_topic(set, at))
        topics++;
    buffer_put_uvarint(out, topics + 1);
    for (uint32_t at = 0; at < set->count;) {
        uint32_t end = same_topic(set, at);
        buffer_put(out, set->items[at].topic.bytes, UUID_BYTES);
        buffer_put_uvarint(out, end - at + 1);
        for (; at < end; at++)
            buffer_put_i32(out, set->items[at].partition);
        put_no_tags(out);
    }
}

static void put_settings(struct buffer *out, const struct modern_member_settings *settings)
{
    put_string(out, settings->instance_id);
    put_string(out, settings->rack_id);
    put_text(out, settings->client_id);
    put_text(out, settings->client_host);
    buffer_put_uvarint(out, settings->name_count + 1);
    for (uint32_t i = 0; i < settings->name_count; i++)
        put_text(out, settings->names[i]);
    put_string(out, settings->regex);
    buffer_put_i32(out, settings->rebalance_timeout_ms);
    put_string(out, settings->assignor);
    if (settings->classic.data == NULL) {
        put_no_tags(out);
        return;
    }
    buffer_put_uvarint(out, 1);
    buffer_put_uvarint(out, 0);
    buffer_put_uvarint(out, settings->classic.bytes);
    buffer_put(out, settings->classic.data, settings->classic.bytes);
}

static void put_group_epoch(struct buffer *out, const struct modern_record *record)
{
    buffer_put_i32(out, record->epoch);
    if (record->metadata_hash == 0) {
        put_no_tags(out);
        return;
    }
    buffer_put_uvarint(out, 1);
    buffer_put_uvarint(out, 0);
    buffer_put_uvarint(out, sizeof(int64_t));
    buffer_put_i64(out, record->metadata_hash);
}

void modern_record_encode_key(struct buffer *out, const struct modern_record *record)
{
    buffer_put_i16(out, (int16_t)record->type);
    put_key_string(out, record->group);
    if (has_member(record->type)) put_key_string(out, record->member);
}

void modern_record_encode_value(struct buffer *out, const struct modern_record *record)
{
    ASSERT(!record->tombstone);
    buffer_put_i16(out, VALUE_VERSION);
    switch (record->type) {
    case MODERN_RECORD_GROUP: put_group_epoch(out, record); break;
    case MODERN_RECORD_MEMBER: put_settings(out, &record->settings); break;
    case MODERN_RECORD_TARGET:
        buffer_put_i32(out, record->epoch);
        put_no_tags(out);
        break;
    case MODERN_RECORD_MEMBER_TARGET:
        put_partitions(out, &record->partitions);
        put_no_tags(out);
        break;
    case MODERN_RECORD_MEMBER_CURRENT:
        buffer_put_i32(out, record->epoch);
        buffer_put_i32(out, record->previous_epoch);
        buffer_put_i8(out, (int8_t)record->state);
        put_partitions(out, &record->partitions);
        put_partitions(out, &record->revoking);
        put_no_tags(out);
        break;
    }
}

/* ---- reading ---- */

static struct slice read_key_string(struct reader *reader)
{
    int16_t bytes = reader_i16(reader);
    if (bytes < 0) {
        reader_fail(reader);
        return (struct slice){0};
    }
    return reader_bytes(reader, (size_t)bytes);
}

static struct slice read_string(struct reader *reader)
{
    uint32_t bytes = reader_uvarint32(reader);
    return bytes == 0 ? (struct slice){0} : reader_bytes(reader, bytes - 1);
}

static struct slice read_text(struct reader *reader)
{
    struct slice text = read_string(reader);
    if (text.data == NULL) reader_fail(reader);
    return text;
}

/* Tagged fields: the bytes of number 0, if it is there. */
static struct slice read_tags(struct reader *reader)
{
    struct slice first = {0};
    uint32_t count = reader_uvarint32(reader);
    for (uint32_t i = 0; i < count && !reader_failed(reader); i++) {
        uint32_t tag = reader_uvarint32(reader);
        struct slice field = reader_bytes(reader, reader_uvarint32(reader));
        if (tag == 0) first = field;
    }
    return first;
}

/* The count of an array that cannot be none, of items of at least one byte. */
static uint32_t read_count(struct reader *reader)
{
    uint32_t count = reader_uvarint32(reader);
    if (count == 0 || count - 1 > reader_left(reader)) {
        reader_fail(reader);
        return 0;
    }
    return count - 1;
}

static void read_partitions(struct reader *reader, struct partition_set *out)
{
    uint32_t topics = read_count(reader);
    for (uint32_t i = 0; i < topics && !reader_failed(reader); i++) {
        struct uuid topic = {0};
        struct slice uid = reader_bytes(reader, UUID_BYTES);
        if (!reader_failed(reader)) memcpy(topic.bytes, uid.data, UUID_BYTES);
        uint32_t partitions = read_count(reader);
        for (uint32_t n = 0; n < partitions && !reader_failed(reader); n++) {
            int32_t partition = reader_i32(reader);
            if (partition < 0) reader_fail(reader);
            if (!reader_failed(reader)) partition_set_append(out, &topic, partition);
        }
        (void)read_tags(reader);
    }
    partition_set_sort(out);
}

static void read_names(struct reader *reader, struct modern_member_settings *out)
{
    uint32_t count = read_count(reader), capacity = 0;
    for (uint32_t i = 0; i < count && !reader_failed(reader); i++) {
        if (out->name_count == capacity) {
            capacity = capacity == 0 ? 4 : capacity * 2;
            out->names = memory_resize(out->names, capacity, sizeof(*out->names));
        }
        out->names[out->name_count++] = read_text(reader);
    }
}

static void read_settings(struct reader *reader, struct modern_member_settings *out)
{
    out->instance_id = read_string(reader);
    out->rack_id = read_string(reader);
    out->client_id = read_text(reader);
    out->client_host = read_text(reader);
    read_names(reader, out);
    out->regex = read_string(reader);
    out->rebalance_timeout_ms = reader_i32(reader);
    out->assignor = read_string(reader);
    out->classic = read_tags(reader);
    struct classic_member classic;
    if (classic_member_is_null(out->classic)) out->classic = (struct slice){0};
    if (out->classic.data != NULL && !classic_member_read(out->classic, &classic))
        reader_fail(reader);
}

static void read_current(struct reader *reader, struct modern_record *out)
{
    out->epoch = reader_i32(reader);
    out->previous_epoch = reader_i32(reader);
    uint8_t state = reader_u8(reader);
    if (state > MODERN_MEMBER_UNRELEASED) reader_fail(reader);
    out->state = (enum modern_member_state)state;
    read_partitions(reader, &out->partitions);
    read_partitions(reader, &out->revoking);
    (void)read_tags(reader);
}

static void read_group_epoch(struct reader *reader, struct modern_record *out)
{
    out->epoch = reader_i32(reader);
    struct slice hash = read_tags(reader);
    if (hash.data == NULL) return;
    if (hash.bytes != sizeof(int64_t)) {
        reader_fail(reader);
        return;
    }
    out->metadata_hash = (int64_t)load_u64(hash.data);
}

static void read_value(struct reader *reader, struct modern_record *out)
{
    switch (out->type) {
    case MODERN_RECORD_GROUP: read_group_epoch(reader, out); break;
    case MODERN_RECORD_MEMBER: read_settings(reader, &out->settings); break;
    case MODERN_RECORD_TARGET:
        out->epoch = reader_i32(reader);
        (void)read_tags(reader);
        break;
    case MODERN_RECORD_MEMBER_TARGET:
        read_partitions(reader, &out->partitions);
        (void)read_tags(reader);
        break;
    case MODERN_RECORD_MEMBER_CURRENT: read_current(reader, out); break;
    }
}

static enum status read_key(struct slice key, struct modern_record *out)
{
    struct reader reader;
    reader_init(&reader, key.data, key.bytes);
    int16_t type = reader_i16(&reader);
    if (reader_failed(&reader)) return STATUS_CORRUPT;
    if (type != MODERN_RECORD_GROUP && type != MODERN_RECORD_TARGET &&
        !has_member((enum modern_record_type)type))
        return STATUS_NOT_FOUND;
    out->type = (enum modern_record_type)type;
    out->group = read_key_string(&reader);
    if (has_member(out->type)) out->member = read_key_string(&reader);
    return reader_failed(&reader) ? STATUS_CORRUPT : STATUS_OK;
}

enum status modern_record_decode(struct slice key, struct slice value, struct modern_record *out)
{
    struct reader reader;
    *out = (struct modern_record){0};
    enum status status = read_key(key, out);
    if (status != STATUS_OK) return status;
    if (value.data == NULL) {
        out->tombstone = true;
        return STATUS_OK;
    }
    reader_init(&reader, value.data, value.bytes);
    int16_t version = reader_i16(&reader);
    if (reader_failed(&reader) || version < 0) return STATUS_CORRUPT;
    if (version > VALUE_VERSION) return STATUS_UNSUPPORTED;
    read_value(&reader, out);
    if (!reader_failed(&reader)) return STATUS_OK;
    modern_record_deinit(out);
    return STATUS_CORRUPT;
}

/* ---- on their way to the log ---- */

void modern_records_deinit(struct modern_records *records)
{
    free(records->places);
    buffer_deinit(&records->bytes);
    *records = (struct modern_records){0};
}

void modern_records_clear(struct modern_records *records)
{
    records->count = 0;
    buffer_clear(&records->bytes);
}

static void add_place(struct modern_records *records, const struct modern_record_place *place)
{
    if (records->count == records->capacity) {
        records->capacity = records->capacity == 0 ? 8 : records->capacity * 2;
        records->places =
            memory_resize(records->places, records->capacity, sizeof(*records->places));
    }
    records->places[records->count++] = *place;
}

void modern_records_add_bytes(struct modern_records *records, struct slice key, struct slice value)
{
    const struct modern_record_place place = {.key_at = records->bytes.bytes,
                                              .key_bytes = key.bytes,
                                              .value_at = records->bytes.bytes + key.bytes,
                                              .value_bytes = value.bytes};
    buffer_put(&records->bytes, key.data, key.bytes);
    buffer_put(&records->bytes, value.data, value.bytes);
    add_place(records, &place);
}

void modern_records_add_tombstone(struct modern_records *records, struct slice key)
{
    const struct modern_record_place place = {
        .key_at = records->bytes.bytes, .key_bytes = key.bytes, .tombstone = true};
    buffer_put(&records->bytes, key.data, key.bytes);
    add_place(records, &place);
}

void modern_records_add(struct modern_records *records, const struct modern_record *record)
{
    struct buffer *bytes = &records->bytes;
    struct modern_record_place place = {.key_at = bytes->bytes, .tombstone = record->tombstone};
    modern_record_encode_key(bytes, record);
    place.value_at = bytes->bytes;
    place.key_bytes = place.value_at - place.key_at;
    if (!record->tombstone) modern_record_encode_value(bytes, record);
    place.value_bytes = bytes->bytes - place.value_at;
    add_place(records, &place);
}

void modern_records_get(const struct modern_records *records, uint32_t index, struct slice *key,
                        struct slice *value)
{
    ASSERT(index < records->count);
    const struct modern_record_place *place = &records->places[index];
    *key = (struct slice){records->bytes.data + place->key_at, place->key_bytes};
    *value = place->tombstone
                 ? (struct slice){0}
                 : (struct slice){records->bytes.data + place->value_at, place->value_bytes};
}
