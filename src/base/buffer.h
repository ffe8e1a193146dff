/* buffer.h: a growable byte buffer with a bound, and big-endian writers on it.
 *
 * Errors are sticky: after the bound or memory is exceeded every further put is ignored and
 * buffer_failed() is true; check once at the end.                                             */
#ifndef MOONMQ_BASE_BUFFER_H
#define MOONMQ_BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Borrowed bytes. */
struct slice {
    const uint8_t *data;
    size_t bytes;
};

struct buffer {
    uint8_t *data;
    size_t bytes; /* used */
    size_t capacity;
    size_t bytes_max; /* bound; 0 = none */
    bool failed;
};

void buffer_init(struct buffer *buffer, size_t bytes_max);
void buffer_deinit(struct buffer *buffer);
void buffer_clear(struct buffer *buffer); /* keeps the memory and clears `failed` */
bool buffer_failed(const struct buffer *buffer);
struct slice buffer_slice(const struct buffer *buffer);

/* Room for `bytes` more at the end, or NULL (and failed). The bytes are counted as used. */
uint8_t *buffer_extend(struct buffer *buffer, size_t bytes);
void buffer_put(struct buffer *buffer, const void *data, size_t bytes);
void buffer_put_string(struct buffer *buffer, const char *text); /* without its NUL */
void buffer_printf(struct buffer *buffer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void buffer_put_u8(struct buffer *buffer, uint8_t value);
void buffer_put_u16(struct buffer *buffer, uint16_t value);
void buffer_put_u32(struct buffer *buffer, uint32_t value);
void buffer_put_u64(struct buffer *buffer, uint64_t value);
void buffer_put_i8(struct buffer *buffer, int8_t value);
void buffer_put_i16(struct buffer *buffer, int16_t value);
void buffer_put_i32(struct buffer *buffer, int32_t value);
void buffer_put_i64(struct buffer *buffer, int64_t value);
void buffer_put_uvarint(struct buffer *buffer, uint64_t value); /* LEB128 */
void buffer_put_varint(struct buffer *buffer, int64_t value);   /* zigzag + LEB128 */
/* Overwrites at `at`, which must lie inside what is used. */
void buffer_set_u32(struct buffer *buffer, size_t at, uint32_t value);

/* Big-endian loads and stores for fixed layouts; the caller has checked the length. */
static inline uint16_t load_u16(const uint8_t *at)
{
    return (uint16_t)((uint16_t)at[0] << 8 | at[1]);
}
static inline uint32_t load_u32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}
static inline uint64_t load_u64(const uint8_t *at)
{
    return (uint64_t)load_u32(at) << 32 | load_u32(at + 4);
}
static inline void store_u16(uint8_t *at, uint16_t value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}
static inline void store_u32(uint8_t *at, uint32_t value)
{
    store_u16(at, (uint16_t)(value >> 16));
    store_u16(at + 2, (uint16_t)value);
}
static inline void store_u64(uint8_t *at, uint64_t value)
{
    store_u32(at, (uint32_t)(value >> 32));
    store_u32(at + 4, (uint32_t)value);
}

#endif
