#include "kafka/codec.h"

#include "base/assert.h"

struct encoder {
    struct kafka_response *out;
    int16_t version;
    bool flexible;
};

static void encode_struct(struct encoder *encoder, const struct kafka_struct *type,
                          const void *value);

static bool has_field(const struct encoder *encoder, const struct kafka_field *field)
{
    return encoder->version >= field->since && encoder->version <= field->until;
}

static bool may_be_null(const struct encoder *encoder, const struct kafka_field *field)
{
    return encoder->version >= field->null_since;
}

/* -1 stands for null. `wide`: 32 bits where it is not compact. */
static void put_length(struct encoder *encoder, int64_t length, bool wide)
{
    struct buffer *own = &encoder->out->own;
    if (length > INT32_MAX - 1 || (!encoder->flexible && !wide && length > INT16_MAX)) {
        encoder->out->failed = true;
    } else if (encoder->flexible) {
        buffer_put_uvarint(own, (uint64_t)(length + 1));
    } else if (wide) {
        buffer_put_i32(own, (int32_t)length);
    } else {
        buffer_put_i16(own, (int16_t)length);
    }
}

static void put_slice(struct encoder *encoder, const struct kafka_field *field, struct slice slice,
                      bool wide)
{
    bool null = slice.data == NULL && may_be_null(encoder, field);
    put_length(encoder, null ? -1 : (int64_t)slice.bytes, wide);
    if (slice.bytes > 0) buffer_put(&encoder->out->own, slice.data, slice.bytes);
}

static void put_records(struct encoder *encoder, const struct kafka_field *field,
                        const struct kafka_records *records)
{
    if (records->piece_count == 0) {
        put_slice(encoder, field, records->data, true);
        return;
    }
    size_t bytes = 0;
    for (size_t i = 0; i < records->piece_count; i++)
        bytes += records->pieces[i].bytes;
    put_length(encoder, (int64_t)bytes, true);
    for (size_t i = 0; i < records->piece_count; i++) {
        const struct kafka_piece *piece = &records->pieces[i];
        kafka_response_reference(encoder->out, piece->shared, piece->at, piece->bytes);
    }
}

static void put_value(struct encoder *encoder, const struct kafka_field *field, const void *value)
{
    struct buffer *own = &encoder->out->own;
    switch (field->type) {
    case KAFKA_BOOL: buffer_put_u8(own, *(const bool *)value ? 1 : 0); return;
    case KAFKA_I8: buffer_put_i8(own, *(const int8_t *)value); return;
    case KAFKA_I16: buffer_put_i16(own, *(const int16_t *)value); return;
    case KAFKA_U16: buffer_put_u16(own, *(const uint16_t *)value); return;
    case KAFKA_I32: buffer_put_i32(own, *(const int32_t *)value); return;
    case KAFKA_I64: buffer_put_i64(own, *(const int64_t *)value); return;
    case KAFKA_F64: {
        uint64_t bits;
        memcpy(&bits, value, sizeof(bits));
        buffer_put_u64(own, bits);
        return;
    }
    case KAFKA_UUID: buffer_put(own, value, UUID_BYTES); return;
    case KAFKA_STRING: put_slice(encoder, field, *(const struct slice *)value, false); return;
    case KAFKA_BYTES: put_slice(encoder, field, *(const struct slice *)value, true); return;
    case KAFKA_RECORDS: put_records(encoder, field, value); return;
    case KAFKA_STRUCT: encode_struct(encoder, field->type_struct, value); return;
    }
    ASSERT(false);
}

static void put_array(struct encoder *encoder, const struct kafka_field *field,
                      const struct kafka_array *array)
{
    bool null = array->count < 0 && may_be_null(encoder, field);
    int32_t count = array->count < 0 ? 0 : array->count;
    put_length(encoder, null ? -1 : count, true);
    size_t bytes = kafka_element_bytes(field);
    const uint8_t *items = array->items;
    for (int32_t i = 0; i < count && !kafka_response_failed(encoder->out); i++) {
        put_value(encoder, field, items + (size_t)i * bytes);
    }
}

static void put_nullable_struct(struct encoder *encoder, const struct kafka_field *field,
                                const void *const *value)
{
    /* -1 and 1 are the only two values written. */
    buffer_put_i8(&encoder->out->own, *value == NULL ? -1 : 1);
    if (*value != NULL) encode_struct(encoder, field->type_struct, *value);
}

static void put_field(struct encoder *encoder, const struct kafka_field *field,
                      const uint8_t *value)
{
    const void *at = value + field->offset;
    if (field->array) {
        put_array(encoder, field, at);
    } else if (field->type == KAFKA_STRUCT && field->null_since != KAFKA_VERSION_EVER) {
        put_nullable_struct(encoder, field, at);
    } else {
        put_value(encoder, field, at);
    }
}

static bool struct_is_default(const struct kafka_struct *type, const uint8_t *value);

static const void *default_of(const struct kafka_struct *type, const struct kafka_field *field)
{
    static const union {
        int64_t number;
        struct uuid uuid;
    } zero = {0};
    return type->defaults != NULL ? (const uint8_t *)type->defaults + field->offset
                                  : (const void *)&zero;
}

/* Is the field what an absent one reads as? Only tagged fields ask. */
static bool field_is_default(const struct kafka_struct *type, const struct kafka_field *field,
                             const uint8_t *value)
{
    const void *at = value + field->offset;
    if (field->array) {
        int32_t count = ((const struct kafka_array *)at)->count;
        return field->null_since != KAFKA_VERSION_EVER ? count < 0 : count <= 0;
    }
    switch (field->type) {
    case KAFKA_STRUCT:
        if (field->null_since != KAFKA_VERSION_EVER) return *(const void *const *)at == NULL;
        return struct_is_default(field->type_struct, at);
    case KAFKA_STRING:
    case KAFKA_BYTES:
    case KAFKA_RECORDS: {
        const struct slice *slice = at; /* also the first member of struct kafka_records */
        return field->null_since != KAFKA_VERSION_EVER ? slice->data == NULL : slice->bytes == 0;
    }
    default: return memcmp(at, default_of(type, field), kafka_element_bytes(field)) == 0;
    }
}

static bool struct_is_default(const struct kafka_struct *type, const uint8_t *value)
{
    for (size_t i = 0; i < type->field_count; i++) {
        if (!field_is_default(type, &type->fields[i], value)) return false;
    }
    return true;
}

/* Tag, size, value. The size is known only afterwards, so the value is moved to make room. */
static void put_tagged(struct encoder *encoder, const struct kafka_field *field,
                       const uint8_t *value)
{
    struct buffer *own = &encoder->out->own;
    ASSERT(field->type != KAFKA_RECORDS); /* pieces can't be moved; no tagged field has records */
    buffer_put_uvarint(own, (uint64_t)field->tag);
    size_t start = own->bytes;
    put_field(encoder, field, value);
    if (kafka_response_failed(encoder->out)) return;
    size_t size = own->bytes - start;
    buffer_put_uvarint(own, size);
    if (kafka_response_failed(encoder->out)) return;
    size_t prefix = own->bytes - start - size;
    uint8_t size_bytes[10];
    ASSERT(prefix <= sizeof(size_bytes));
    memcpy(size_bytes, own->data + start + size, prefix);
    memmove(own->data + start + prefix, own->data + start, size);
    memcpy(own->data + start, size_bytes, prefix);
}

static bool tag_is_written(const struct encoder *encoder, const struct kafka_struct *type,
                           const struct kafka_field *field, const uint8_t *value)
{
    return field->tag >= 0 && has_field(encoder, field) && !field_is_default(type, field, value);
}

static void encode_struct(struct encoder *encoder, const struct kafka_struct *type,
                          const void *value)
{
    uint64_t tags = 0;
    for (size_t i = 0; i < type->field_count; i++) {
        const struct kafka_field *field = &type->fields[i];
        if (field->tag < 0 && has_field(encoder, field)) put_field(encoder, field, value);
        if (encoder->flexible && tag_is_written(encoder, type, field, value)) tags++;
    }
    if (!encoder->flexible) return;
    buffer_put_uvarint(&encoder->out->own, tags);
    for (size_t i = 0; i < type->field_count && tags > 0; i++) {
        const struct kafka_field *field = &type->fields[i];
        if (tag_is_written(encoder, type, field, value)) put_tagged(encoder, field, value);
    }
}

void kafka_encode(const struct kafka_struct *type, int16_t version, bool flexible,
                  const void *value, struct kafka_response *out)
{
    struct encoder encoder = {.out = out, .version = version, .flexible = flexible};
    encode_struct(&encoder, type, value);
}
