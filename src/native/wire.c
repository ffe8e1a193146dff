/* wire.c: the frame, and the one encoder and decoder that walk shapes; see wire.h. */
#include "native/wire.h"

#include <string.h>

#include "base/assert.h"
#include "native/wire_shape.h"

const struct wire_id wire_id_zero;

bool wire_id_is_zero(const struct wire_id *id)
{
    return wire_id_equal(id, &wire_id_zero);
}

bool wire_id_equal(const struct wire_id *a, const struct wire_id *b)
{
    return memcmp(a->bytes, b->bytes, WIRE_ID_BYTES) == 0;
}

/* ---- frames ---- */

enum status wire_frame_parse(const uint8_t *data, size_t bytes, size_t body_bytes_max,
                             struct wire_frame *out)
{
    if (bytes < WIRE_LENGTH_BYTES) return STATUS_AGAIN;
    size_t body_bytes = load_u32(data);
    if (body_bytes < WIRE_BODY_BYTES_MIN) return STATUS_INVALID;
    if (body_bytes > body_bytes_max) return STATUS_TOO_LARGE;
    if (bytes - WIRE_LENGTH_BYTES < body_bytes) return STATUS_AGAIN;
    out->opcode = data[WIRE_LENGTH_BYTES];
    memcpy(out->id.bytes, data + WIRE_LENGTH_BYTES + 1, WIRE_ID_BYTES);
    out->payload = (struct slice){data + WIRE_HEAD_BYTES, body_bytes - WIRE_BODY_BYTES_MIN};
    out->frame_bytes = WIRE_LENGTH_BYTES + body_bytes;
    return STATUS_OK;
}

size_t wire_frame_begin(struct buffer *out, uint8_t opcode, const struct wire_id *id)
{
    size_t at = out->bytes;
    uint8_t *head = buffer_extend(out, WIRE_HEAD_BYTES);
    if (head == NULL) return at;
    store_u32(head, 0);
    head[WIRE_LENGTH_BYTES] = opcode;
    memcpy(head + WIRE_LENGTH_BYTES + 1, id->bytes, WIRE_ID_BYTES);
    return at;
}

void wire_frame_end(struct buffer *out, size_t at)
{
    if (buffer_failed(out)) return;
    ASSERT(out->bytes >= at + WIRE_HEAD_BYTES);
    buffer_set_u32(out, at, (uint32_t)(out->bytes - at - WIRE_LENGTH_BYTES));
}

/* ---- presence ---- */

static bool field_is_present(const struct wire_field *field, const void *message)
{
    const uint8_t *when = (const uint8_t *)message + field->when_at;
    switch (field->presence) {
    case WIRE_OPTIONAL: return *(const bool *)when;
    case WIRE_IF: return (*when & field->when_mask) != 0;
    default: return true;
    }
}

/* Decides presence while decoding, and records it for an optional field. */
static bool field_arrives(const struct wire_field *field, const struct reader *reader,
                          void *message)
{
    if (field->presence != WIRE_OPTIONAL) return field_is_present(field, message);
    bool present = reader_left(reader) > 0;
    *(bool *)((uint8_t *)message + field->when_at) = present;
    return present;
}

/* ---- decoding ---- */

static bool decode_fields(struct reader *reader, const struct wire_shape *shape, void *message,
                          const struct wire_field **fault);

/* The fewest bytes one value of `shape` takes: what bounds a count before anything is done. */
static size_t shape_bytes_min(const struct wire_shape *shape)
{
    static const uint8_t kind_bytes[] = {
        [WIRE_KIND_U8] = 1,     [WIRE_KIND_U16] = 2,  [WIRE_KIND_U32] = 4,
        [WIRE_KIND_I32] = 4,    [WIRE_KIND_U64] = 8,  [WIRE_KIND_PARTITION] = 4,
        [WIRE_KIND_STRING] = 4, [WIRE_KIND_LIST] = 4,
    };
    size_t bytes = 0;
    for (size_t i = 0; i < shape->field_count; i++) {
        if (shape->fields[i].presence == WIRE_ALWAYS) bytes += kind_bytes[shape->fields[i].kind];
    }
    return bytes;
}

/* Items of lists have no optional fields (they could not be told from the next item), so a scratch
 * struct of the largest item takes them all. */
#define WIRE_ITEM_BYTES_MAX 128

static void decode_list(struct reader *reader, const struct wire_field *field,
                        struct wire_list *list)
{
    uint32_t count = reader_u32(reader);
    if (count < field->min || count > field->max ||
        count > reader_left(reader) / shape_bytes_min(field->item)) {
        reader_fail(reader);
        return;
    }
    size_t start = reader->at;
    _Alignas(max_align_t) uint8_t item[WIRE_ITEM_BYTES_MAX];
    ASSERT(field->item->struct_bytes <= sizeof(item));
    const struct wire_field *fault;
    for (uint32_t i = 0; i < count; i++) {
        if (!decode_fields(reader, field->item, item, &fault)) {
            reader_fail(reader);
            return;
        }
    }
    *list = (struct wire_list){count, {reader->data + start, reader->at - start}};
}

static void decode_number(struct reader *reader, const struct wire_field *field, uint8_t *at)
{
    switch (field->kind) {
    case WIRE_KIND_U8: *at = reader_u8(reader); return;
    case WIRE_KIND_U16: *(uint16_t *)at = reader_u16(reader); return;
    case WIRE_KIND_I32: *(int32_t *)at = reader_i32(reader); return;
    case WIRE_KIND_U32: {
        uint32_t value = reader_u32(reader);
        if (value < field->min || value > field->max) reader_fail(reader);
        *(uint32_t *)at = value;
        return;
    }
    case WIRE_KIND_U64: {
        uint64_t value = reader_u64(reader);
        if (value > INT64_MAX) reader_fail(reader);
        *(int64_t *)at = (int64_t)value;
        return;
    }
    case WIRE_KIND_PARTITION: {
        uint32_t value = reader_u32(reader);
        if (value < 1 || value > INT32_MAX) reader_fail(reader);
        *(int32_t *)at = (int32_t)(value - 1);
        return;
    }
    default: ASSERT(false);
    }
}

static void decode_field(struct reader *reader, const struct wire_field *field, uint8_t *at)
{
    if (field->kind == WIRE_KIND_LIST) {
        decode_list(reader, field, (struct wire_list *)at);
    } else if (field->kind == WIRE_KIND_STRING) {
        uint32_t bytes = reader_u32(reader);
        if (bytes < field->min || bytes > field->max) reader_fail(reader);
        *(struct slice *)at = reader_bytes(reader, bytes);
    } else {
        decode_number(reader, field, at);
    }
}

static bool decode_fields(struct reader *reader, const struct wire_shape *shape, void *message,
                          const struct wire_field **fault)
{
    memset(message, 0, shape->struct_bytes);
    for (size_t i = 0; i < shape->field_count; i++) {
        const struct wire_field *field = &shape->fields[i];
        if (!field_arrives(field, reader, message)) continue;
        decode_field(reader, field, (uint8_t *)message + field->at);
        if (reader_failed(reader)) {
            *fault = field;
            return false;
        }
    }
    return true;
}

enum status wire_decode(const struct wire_shape *shape, struct slice payload, void *message,
                        struct error *error)
{
    struct reader reader;
    reader_init(&reader, payload.data, payload.bytes);
    const struct wire_field *fault;
    if (decode_fields(&reader, shape, message, &fault)) return STATUS_OK;
    return error_set(error, STATUS_INVALID, "%s: field %s is cut off or out of range", shape->name,
                     fault->name);
}

enum status wire_decode_dead_letter(struct slice value, struct wire_dead_letter *out,
                                    struct error *error)
{
    if (value.bytes > 0 && value.data[0] != WIRE_DEAD_LETTER_VERSION) {
        return error_set(error, STATUS_UNSUPPORTED, "dead letter of version %u", value.data[0]);
    }
    return wire_decode(&wire_shape_dead_letter, value, out, error);
}

/* ---- encoding ---- */

static void put_field(struct buffer *out, const struct wire_field *field, const uint8_t *at)
{
    switch (field->kind) {
    case WIRE_KIND_U8: buffer_put_u8(out, *at); return;
    case WIRE_KIND_U16: buffer_put_u16(out, *(const uint16_t *)at); return;
    case WIRE_KIND_U32: buffer_put_u32(out, *(const uint32_t *)at); return;
    case WIRE_KIND_I32: buffer_put_i32(out, *(const int32_t *)at); return;
    case WIRE_KIND_U64: buffer_put_i64(out, *(const int64_t *)at); return;
    case WIRE_KIND_PARTITION: buffer_put_u32(out, (uint32_t) * (const int32_t *)at + 1); return;
    case WIRE_KIND_STRING: {
        const struct slice *text = (const struct slice *)at;
        buffer_put_u32(out, (uint32_t)text->bytes);
        buffer_put(out, text->data, text->bytes);
        return;
    }
    case WIRE_KIND_LIST: {
        const struct wire_list *list = (const struct wire_list *)at;
        buffer_put_u32(out, list->count);
        buffer_put(out, list->items.data, list->items.bytes);
        return;
    }
    default: ASSERT(false);
    }
}

void wire_put(struct buffer *out, const struct wire_shape *shape, const void *value)
{
    for (size_t i = 0; i < shape->field_count; i++) {
        const struct wire_field *field = &shape->fields[i];
        if (!field_is_present(field, value)) continue;
        put_field(out, field, (const uint8_t *)value + field->at);
    }
}

void wire_encode(struct buffer *out, uint8_t opcode, const struct wire_id *id, const void *message)
{
    size_t at = wire_frame_begin(out, opcode, id);
    const struct wire_shape *shape = wire_shape_of(opcode);
    ASSERT(shape != NULL);
    if (message != NULL) wire_put(out, shape, message);
    wire_frame_end(out, at);
}

void wire_encode_error(struct buffer *out, const struct wire_id *id, uint16_t code,
                       const char *text)
{
    struct wire_error_message message = {.code = code, .text = wire_text(text)};
    if (message.text.bytes > WIRE_STRING_BYTES_MAX) message.text.bytes = WIRE_STRING_BYTES_MAX;
    wire_encode(out, WIRE_ERROR, id, &message);
}

/* ---- lists ---- */

void wire_cursor_init(struct wire_cursor *cursor, const struct wire_list *list,
                      const struct wire_shape *shape)
{
    *cursor = (struct wire_cursor){.shape = shape, .left = list->count};
    reader_init(&cursor->reader, list->items.data, list->items.bytes);
}

bool wire_cursor_next(struct wire_cursor *cursor, void *item)
{
    if (cursor->left == 0) return false;
    cursor->left--;
    const struct wire_field *fault;
    bool decoded = decode_fields(&cursor->reader, cursor->shape, item, &fault);
    ASSERT(decoded);
    return true;
}

/* ---- texts and keys ---- */

struct slice wire_text(const char *text)
{
    return (struct slice){(const uint8_t *)text, strlen(text)};
}

static bool is_space(uint8_t byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

bool wire_leader_hint(struct slice text, char *out, size_t out_bytes)
{
    static const char mark[] = "leader=";
    const size_t mark_bytes = sizeof(mark) - 1;
    if (text.bytes == 0) return false;
    const uint8_t *found = memmem(text.data, text.bytes, mark, mark_bytes);
    if (found == NULL) return false;
    const uint8_t *start = found + mark_bytes;
    const uint8_t *end = start;
    while (end < text.data + text.bytes && !is_space(*end)) {
        end++;
    }
    size_t bytes = (size_t)(end - start);
    if (bytes == 0 || bytes >= out_bytes || memchr(start, 0, bytes) != NULL) return false;
    memcpy(out, start, bytes);
    out[bytes] = '\0';
    return true;
}

uint32_t wire_key_hash(struct slice key)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < key.bytes; i++) {
        hash = (hash ^ key.data[i]) * 16777619u;
    }
    return hash;
}
