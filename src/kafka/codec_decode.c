#include "kafka/codec.h"

#include "base/assert.h"

struct decoder {
    struct reader *reader;
    struct arena *arena;
    int16_t version;
    bool flexible;
    const struct kafka_field *at; /* the innermost field begun: for the error */
};

static void decode_struct(struct decoder *decoder, const struct kafka_struct *type, void *out);

static bool has_field(const struct decoder *decoder, const struct kafka_field *field)
{
    return decoder->version >= field->since && decoder->version <= field->until;
}

static bool may_be_null(const struct decoder *decoder, const struct kafka_field *field)
{
    return decoder->version >= field->null_since;
}

/* The least a field takes on the wire. */
static size_t field_bytes_min(const struct decoder *decoder, const struct kafka_field *field);

static size_t struct_bytes_min(const struct decoder *decoder, const struct kafka_struct *type)
{
    size_t bytes = decoder->flexible ? 1 : 0; /* the tag buffer */
    for (size_t i = 0; i < type->field_count; i++) {
        const struct kafka_field *field = &type->fields[i];
        if (field->tag >= 0 || !has_field(decoder, field)) continue;
        bytes += field->array ? (decoder->flexible ? 1u : 4u) : field_bytes_min(decoder, field);
    }
    return bytes;
}

static size_t field_bytes_min(const struct decoder *decoder, const struct kafka_field *field)
{
    switch (field->type) {
    case KAFKA_BOOL:
    case KAFKA_I8: return 1;
    case KAFKA_I16:
    case KAFKA_U16: return 2;
    case KAFKA_I32: return 4;
    case KAFKA_I64:
    case KAFKA_F64: return 8;
    case KAFKA_UUID: return UUID_BYTES;
    case KAFKA_STRING: return decoder->flexible ? 1 : 2;
    case KAFKA_BYTES:
    case KAFKA_RECORDS: return decoder->flexible ? 1 : 4;
    case KAFKA_STRUCT:
        if (!field->array && field->null_since != KAFKA_VERSION_EVER) return 1;
        return struct_bytes_min(decoder, field->type_struct);
    }
    ASSERT(false);
}

static int64_t compact_length(struct decoder *decoder)
{
    return (int64_t)reader_uvarint32(decoder->reader) - 1;
}

/* A length-prefixed range; data NULL for null. `wide`: 32-bit length where it is not compact. */
static struct slice decode_slice(struct decoder *decoder, const struct kafka_field *field,
                                 bool wide)
{
    struct reader *reader = decoder->reader;
    int64_t length;
    if (decoder->flexible) {
        length = compact_length(decoder);
    } else {
        length = wide ? reader_i32(reader) : reader_i16(reader);
    }
    if (reader_failed(reader)) return KAFKA_NULL;
    if (length < 0) {
        if (length != -1 || !may_be_null(decoder, field)) reader_fail(reader);
        return KAFKA_NULL;
    }
    if (length == 0) return (struct slice){(const uint8_t *)"", 0}; /* empty is not null */
    return reader_bytes(reader, (size_t)length);
}

static void decode_value(struct decoder *decoder, const struct kafka_field *field, void *out)
{
    struct reader *reader = decoder->reader;
    switch (field->type) {
    case KAFKA_BOOL: *(bool *)out = reader_u8(reader) != 0; return;
    case KAFKA_I8: *(int8_t *)out = reader_i8(reader); return;
    case KAFKA_I16: *(int16_t *)out = reader_i16(reader); return;
    case KAFKA_U16: *(uint16_t *)out = reader_u16(reader); return;
    case KAFKA_I32: *(int32_t *)out = reader_i32(reader); return;
    case KAFKA_I64: *(int64_t *)out = reader_i64(reader); return;
    case KAFKA_F64: {
        uint64_t bits = reader_u64(reader);
        memcpy(out, &bits, sizeof(bits));
        return;
    }
    case KAFKA_UUID: {
        struct slice bytes = reader_bytes(reader, UUID_BYTES);
        if (!reader_failed(reader)) memcpy(out, bytes.data, UUID_BYTES);
        return;
    }
    case KAFKA_STRING: *(struct slice *)out = decode_slice(decoder, field, false); return;
    case KAFKA_BYTES: *(struct slice *)out = decode_slice(decoder, field, true); return;
    case KAFKA_RECORDS:
        *(struct kafka_records *)out =
            (struct kafka_records){.data = decode_slice(decoder, field, true)};
        return;
    case KAFKA_STRUCT: decode_struct(decoder, field->type_struct, out); return;
    }
    ASSERT(false);
}

/* Count of an array, -1 for null. Failed if the bytes left could not hold so many. */
static int32_t decode_count(struct decoder *decoder, const struct kafka_field *field)
{
    struct reader *reader = decoder->reader;
    int64_t count = decoder->flexible ? compact_length(decoder) : reader_i32(reader);
    if (reader_failed(reader)) return 0;
    if (count == -1 && may_be_null(decoder, field)) return -1;
    size_t bytes_min = field_bytes_min(decoder, field);
    if (bytes_min == 0) bytes_min = 1; /* no element is free: it would allocate without bound */
    if (count < 0 || (uint64_t)count > reader_left(reader) / bytes_min) {
        reader_fail(reader);
        return 0;
    }
    return (int32_t)count;
}

static void decode_array(struct decoder *decoder, const struct kafka_field *field,
                         struct kafka_array *out)
{
    int32_t count = decode_count(decoder, field);
    *out = (struct kafka_array){NULL, count};
    if (count <= 0 || reader_failed(decoder->reader)) return;
    size_t bytes = kafka_element_bytes(field);
    uint8_t *items = arena_new_array(decoder->arena, (size_t)count, bytes);
    if (items == NULL) {
        out->count = 0;
        reader_fail(decoder->reader);
        return;
    }
    out->items = items;
    for (int32_t i = 0; i < count && !reader_failed(decoder->reader); i++) {
        decode_value(decoder, field, items + (size_t)i * bytes);
    }
}

static void decode_nullable_struct(struct decoder *decoder, const struct kafka_field *field,
                                   void **out)
{
    *out = NULL;
    int8_t present = reader_i8(decoder->reader);
    if (reader_failed(decoder->reader)) return;
    if (present < 0) {
        if (!may_be_null(decoder, field)) reader_fail(decoder->reader);
        return;
    }
    *out = arena_new(decoder->arena, field->type_struct->bytes);
    if (*out == NULL) {
        reader_fail(decoder->reader);
        return;
    }
    decode_struct(decoder, field->type_struct, *out);
}

static void decode_field(struct decoder *decoder, const struct kafka_field *field, uint8_t *out)
{
    decoder->at = field;
    if (field->array) {
        decode_array(decoder, field, (struct kafka_array *)(void *)(out + field->offset));
    } else if (field->type == KAFKA_STRUCT && field->null_since != KAFKA_VERSION_EVER) {
        decode_nullable_struct(decoder, field, (void **)(void *)(out + field->offset));
    } else {
        decode_value(decoder, field, out + field->offset);
    }
}

static const struct kafka_field *find_tag(const struct decoder *decoder,
                                          const struct kafka_struct *type, uint32_t tag)
{
    for (size_t i = 0; i < type->field_count; i++) {
        const struct kafka_field *field = &type->fields[i];
        if (field->tag >= 0 && (uint32_t)field->tag == tag && has_field(decoder, field)) {
            return field;
        }
    }
    return NULL;
}

/* A known tag must use up exactly the size it declares; an unknown one is skipped by it. */
static void decode_tagged(struct decoder *decoder, const struct kafka_struct *type, uint8_t *out)
{
    struct reader *outer = decoder->reader;
    uint32_t tag = reader_uvarint32(outer);
    uint32_t size = reader_uvarint32(outer);
    struct slice bytes = reader_bytes(outer, size);
    if (reader_failed(outer)) return;
    const struct kafka_field *field = find_tag(decoder, type, tag);
    if (field == NULL) return;
    struct reader inner;
    reader_init(&inner, bytes.data, bytes.bytes);
    decoder->reader = &inner;
    decode_field(decoder, field, out);
    decoder->reader = outer;
    if (reader_failed(&inner) || reader_left(&inner) != 0) reader_fail(outer);
}

static void decode_struct(struct decoder *decoder, const struct kafka_struct *type, void *out)
{
    if (type->defaults != NULL) {
        memcpy(out, type->defaults, type->bytes);
    } else {
        memset(out, 0, type->bytes);
    }
    for (size_t i = 0; i < type->field_count && !reader_failed(decoder->reader); i++) {
        const struct kafka_field *field = &type->fields[i];
        if (field->tag < 0 && has_field(decoder, field)) decode_field(decoder, field, out);
    }
    if (!decoder->flexible) return;
    uint32_t tags = reader_uvarint32(decoder->reader);
    for (uint32_t i = 0; i < tags && !reader_failed(decoder->reader); i++) {
        decode_tagged(decoder, type, out);
    }
}

enum status kafka_decode(const struct kafka_struct *type, int16_t version, bool flexible,
                         struct reader *reader, struct arena *arena, void *out, struct error *error)
{
    struct decoder decoder = {
        .reader = reader, .arena = arena, .version = version, .flexible = flexible};
    decode_struct(&decoder, type, out);
    const char *field = decoder.at != NULL ? decoder.at->name : "";
    if (arena->failed) {
        return error_set(
            error, STATUS_NO_MEMORY,
            "%s version %d: more than the %zu bytes a request of its size may need, at %s",
            type->name, version, arena->bytes_max, field);
    }
    if (reader_failed(reader)) {
        return error_set(error, STATUS_INVALID, "%s version %d: malformed or cut at %s", type->name,
                         version, field);
    }
    return STATUS_OK;
}
