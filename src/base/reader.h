/* reader.h: bounds-checked reads from borrowed bytes.
 *
 * Errors are sticky: a read past the end returns 0 / an empty slice and sets `failed`; check once
 * at the end. Nothing is allocated; results borrow the reader's bytes.                        */
#ifndef MOONMQ_BASE_READER_H
#define MOONMQ_BASE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

struct reader {
    const uint8_t *data;
    size_t bytes;
    size_t at;
    bool failed;
};

void reader_init(struct reader *reader, const void *data, size_t bytes);
bool reader_failed(const struct reader *reader);
void reader_fail(struct reader *reader);
size_t reader_left(const struct reader *reader); /* 0 once failed */

uint8_t reader_u8(struct reader *reader);
uint16_t reader_u16(struct reader *reader);
uint32_t reader_u32(struct reader *reader);
uint64_t reader_u64(struct reader *reader);
int8_t reader_i8(struct reader *reader);
int16_t reader_i16(struct reader *reader);
int32_t reader_i32(struct reader *reader);
int64_t reader_i64(struct reader *reader);
uint32_t reader_uvarint32(struct reader *reader); /* at most 5 bytes, else failed */
uint64_t reader_uvarint64(struct reader *reader); /* at most 10 bytes */
int32_t reader_varint32(struct reader *reader);   /* zigzag */
int64_t reader_varint64(struct reader *reader);
struct slice reader_bytes(struct reader *reader, size_t bytes);
void reader_skip(struct reader *reader, size_t bytes);

#endif
