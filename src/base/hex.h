/* hex.h: bytes as lower-case hexadecimal text and back. */
#ifndef MOONMQ_BASE_HEX_H
#define MOONMQ_BASE_HEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* `out` holds bytes * 2 + 1 (the NUL). Returns `out`. */
char *hex_encode(const void *data, size_t bytes, char *out);

/* Exactly `bytes` bytes from bytes * 2 characters, either case; false if malformed. */
bool hex_decode(const char *text, size_t text_bytes, uint8_t *out, size_t bytes);

#endif
