#include "kafka/codec.h"

#include "base/assert.h"

/* What decoding may take of an arena however large the request. A hundred thousand partitions in
 * one Fetch are 10 MB. */
#define ARENA_BYTES_MAX   ((size_t)64 << 20)
#define ARENA_BYTES_FLOOR ((size_t)4096)
#define ARENA_EXPANSION   16

const struct kafka_messages *kafka_messages_find(int16_t key)
{
    size_t low = 0, high = kafka_messages_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (kafka_messages[middle].key == key) return &kafka_messages[middle];
        if (kafka_messages[middle].key < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

size_t kafka_element_bytes(const struct kafka_field *field)
{
    switch (field->type) {
    case KAFKA_BOOL: return sizeof(bool);
    case KAFKA_I8: return sizeof(int8_t);
    case KAFKA_I16: return sizeof(int16_t);
    case KAFKA_U16: return sizeof(uint16_t);
    case KAFKA_I32: return sizeof(int32_t);
    case KAFKA_I64: return sizeof(int64_t);
    case KAFKA_F64: return sizeof(double);
    case KAFKA_UUID: return sizeof(struct uuid);
    case KAFKA_STRING:
    case KAFKA_BYTES: return sizeof(struct slice);
    case KAFKA_RECORDS: return sizeof(struct kafka_records);
    case KAFKA_STRUCT: return field->type_struct->bytes;
    }
    ASSERT(false);
    return 0;
}

void *kafka_struct_new(const struct kafka_struct *type, struct arena *arena, int32_t count)
{
    ASSERT(count >= 0);
    uint8_t *items = arena_new_array(arena, (size_t)count, type->bytes);
    if (items == NULL || type->defaults == NULL) return items;
    for (int32_t i = 0; i < count; i++) {
        memcpy(items + (size_t)i * type->bytes, type->defaults, type->bytes);
    }
    return items;
}

size_t kafka_arena_bytes_max(size_t request_bytes)
{
    if (request_bytes > ARENA_BYTES_MAX / ARENA_EXPANSION) return ARENA_BYTES_MAX;
    return request_bytes * ARENA_EXPANSION + ARENA_BYTES_FLOOR;
}
