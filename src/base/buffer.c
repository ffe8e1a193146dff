/* buffer.c: growth by doubling within the bound; big-endian and LEB128 writers. */
#include "base/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

#define BUFFER_CAPACITY_MIN 64

void buffer_init(struct buffer *buffer, size_t bytes_max)
{
    *buffer = (struct buffer){.bytes_max = bytes_max};
}

void buffer_deinit(struct buffer *buffer)
{
    free(buffer->data);
    *buffer = (struct buffer){.bytes_max = buffer->bytes_max};
}

void buffer_clear(struct buffer *buffer)
{
    buffer->bytes = 0;
    buffer->failed = false;
}

bool buffer_failed(const struct buffer *buffer)
{
    return buffer->failed;
}

struct slice buffer_slice(const struct buffer *buffer)
{
    return (struct slice){buffer->data, buffer->bytes};
}

/* Makes the capacity at least `needed`; false (and failed) when memory is out. */
static bool buffer_grow(struct buffer *buffer, size_t needed)
{
    size_t capacity =
        buffer->capacity < BUFFER_CAPACITY_MIN ? BUFFER_CAPACITY_MIN : buffer->capacity;
    while (capacity < needed) {
        capacity = capacity > SIZE_MAX / 2 ? needed : capacity * 2;
    }
    if (buffer->bytes_max != 0 && capacity > buffer->bytes_max) capacity = buffer->bytes_max;
    uint8_t *data = realloc(buffer->data, capacity);
    if (data == NULL) {
        buffer->failed = true;
        return false;
    }
    buffer->data = data;
    buffer->capacity = capacity;
    return true;
}

uint8_t *buffer_extend(struct buffer *buffer, size_t bytes)
{
    if (buffer->failed) return NULL;
    size_t bound = buffer->bytes_max != 0 ? buffer->bytes_max : SIZE_MAX / 2;
    if (buffer->bytes > bound || bytes > bound - buffer->bytes) {
        buffer->failed = true;
        return NULL;
    }
    size_t needed = buffer->bytes + bytes;
    /* Also with nothing to add: a caller may tell success from failure by the pointer alone. */
    if ((needed > buffer->capacity || buffer->data == NULL) && !buffer_grow(buffer, needed)) {
        return NULL;
    }
    uint8_t *at = buffer->data + buffer->bytes;
    buffer->bytes = needed;
    return at;
}

void buffer_put(struct buffer *buffer, const void *data, size_t bytes)
{
    if (bytes == 0) return;
    uint8_t *at = buffer_extend(buffer, bytes);
    if (at != NULL) memcpy(at, data, bytes);
}

void buffer_put_string(struct buffer *buffer, const char *text)
{
    buffer_put(buffer, text, strlen(text));
}

void buffer_printf(struct buffer *buffer, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    /* Room for the NUL that vsnprintf insists on is taken and given back: the bound counts it. */
    uint8_t *at = length < 0 ? NULL : buffer_extend(buffer, (size_t)length + 1);
    if (at != NULL) {
        vsnprintf((char *)at, (size_t)length + 1, format, again);
        buffer->bytes--;
    } else {
        buffer->failed = true;
    }
    va_end(again);
}

void buffer_put_u8(struct buffer *buffer, uint8_t value)
{
    uint8_t *at = buffer_extend(buffer, 1);
    if (at != NULL) *at = value;
}

void buffer_put_u16(struct buffer *buffer, uint16_t value)
{
    uint8_t *at = buffer_extend(buffer, 2);
    if (at != NULL) store_u16(at, value);
}

void buffer_put_u32(struct buffer *buffer, uint32_t value)
{
    uint8_t *at = buffer_extend(buffer, 4);
    if (at != NULL) store_u32(at, value);
}

void buffer_put_u64(struct buffer *buffer, uint64_t value)
{
    uint8_t *at = buffer_extend(buffer, 8);
    if (at != NULL) store_u64(at, value);
}

void buffer_put_i8(struct buffer *buffer, int8_t value)
{
    buffer_put_u8(buffer, (uint8_t)value);
}

void buffer_put_i16(struct buffer *buffer, int16_t value)
{
    buffer_put_u16(buffer, (uint16_t)value);
}

void buffer_put_i32(struct buffer *buffer, int32_t value)
{
    buffer_put_u32(buffer, (uint32_t)value);
}

void buffer_put_i64(struct buffer *buffer, int64_t value)
{
    buffer_put_u64(buffer, (uint64_t)value);
}

void buffer_put_uvarint(struct buffer *buffer, uint64_t value)
{
    uint8_t bytes[10];
    size_t count = 0;
    while (value >= 0x80) {
        bytes[count++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    bytes[count++] = (uint8_t)value;
    buffer_put(buffer, bytes, count);
}

void buffer_put_varint(struct buffer *buffer, int64_t value)
{
    uint64_t sign = value < 0 ? UINT64_MAX : 0;
    buffer_put_uvarint(buffer, ((uint64_t)value << 1) ^ sign);
}

void buffer_set_u32(struct buffer *buffer, size_t at, uint32_t value)
{
    if (buffer->failed) return;
    ASSERT(buffer->bytes >= 4 && at <= buffer->bytes - 4);
    store_u32(buffer->data + at, value);
}
