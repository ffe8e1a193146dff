/* reader.c: bounds-checked reads; see reader.h. */
#include "base/reader.h"

static const uint8_t reader_nothing[1];

void reader_init(struct reader *reader, const void *data, size_t bytes)
{
    *reader = (struct reader){.data = data, .bytes = bytes};
}

bool reader_failed(const struct reader *reader)
{
    return reader->failed;
}

void reader_fail(struct reader *reader)
{
    reader->failed = true;
}

size_t reader_left(const struct reader *reader)
{
    return reader->failed ? 0 : reader->bytes - reader->at;
}

/* The next `bytes` bytes, or NULL (and failed). */
static const uint8_t *reader_take(struct reader *reader, size_t bytes)
{
    if (reader->failed || bytes > reader->bytes - reader->at) {
        reader->failed = true;
        return NULL;
    }
    const uint8_t *at = reader->data + reader->at;
    reader->at += bytes;
    return at;
}

uint8_t reader_u8(struct reader *reader)
{
    const uint8_t *at = reader_take(reader, 1);
    return at == NULL ? 0 : *at;
}

uint16_t reader_u16(struct reader *reader)
{
    const uint8_t *at = reader_take(reader, 2);
    return at == NULL ? 0 : load_u16(at);
}

uint32_t reader_u32(struct reader *reader)
{
    const uint8_t *at = reader_take(reader, 4);
    return at == NULL ? 0 : load_u32(at);
}

uint64_t reader_u64(struct reader *reader)
{
    const uint8_t *at = reader_take(reader, 8);
    return at == NULL ? 0 : load_u64(at);
}

int8_t reader_i8(struct reader *reader)
{
    return (int8_t)reader_u8(reader);
}

int16_t reader_i16(struct reader *reader)
{
    return (int16_t)reader_u16(reader);
}

int32_t reader_i32(struct reader *reader)
{
    return (int32_t)reader_u32(reader);
}

int64_t reader_i64(struct reader *reader)
{
    return (int64_t)reader_u64(reader);
}

/* LEB128 of at most `value_bits` bits: the last byte that may come carries only what is left. */
static uint64_t reader_leb128(struct reader *reader, unsigned value_bits)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < value_bits; shift += 7) {
        uint8_t byte = reader_u8(reader);
        unsigned left = value_bits - shift;
        if (left < 7 && (byte >> left) != 0) break;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0) return reader->failed ? 0 : value;
    }
    reader->failed = true;
    return 0;
}

uint32_t reader_uvarint32(struct reader *reader)
{
    return (uint32_t)reader_leb128(reader, 32);
}

uint64_t reader_uvarint64(struct reader *reader)
{
    return reader_leb128(reader, 64);
}

int32_t reader_varint32(struct reader *reader)
{
    uint32_t value = reader_uvarint32(reader);
    return (int32_t)((value >> 1) ^ (0u - (value & 1)));
}

int64_t reader_varint64(struct reader *reader)
{
    uint64_t value = reader_uvarint64(reader);
    return (int64_t)((value >> 1) ^ (0u - (value & 1)));
}

struct slice reader_bytes(struct reader *reader, size_t bytes)
{
    const uint8_t *at = reader_take(reader, bytes);
    /* Never NULL data: an empty slice is passed to memcpy and hashes all over. */
    if (at == NULL) return (struct slice){reader_nothing, 0};
    return (struct slice){at, bytes};
}

void reader_skip(struct reader *reader, size_t bytes)
{
    reader_take(reader, bytes);
}
